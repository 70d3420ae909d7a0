"""Predictions by name and in parts: where records are, and in which order, makes no difference."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from privfit import (
    BernoulliNB,
    Box,
    Categorical,
    InputError,
    KMeans,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Schema,
    Stream,
)
from privfit.base.errors import PrivfitError

COINS = np.random.default_rng(3)
X = COINS.uniform(-1, 1, (500, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
Y = X[:, 0] > X[:, 1]
PEOPLE = FRAME.assign(c=np.where(X[:, 2] > 0, "x", "y"))
SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1), "c": Categorical(["x", "y"])})
BOX = Box([-1, -1, -1], [1, 1, 1])


def fitted(kind, table, **changes):
    if kind is KMeans:
        return KMeans(2, 1.0, 1e-6, random_state=1, **changes).fit(table)
    return kind(1.0, 1e-6, classes=[False, True], random_state=1, **changes).fit(table, Y)


MODELS = {
    "logistic": (lambda: fitted(LogisticRegression, FRAME, domain=BOX), FRAME),
    "svc": (lambda: fitted(LinearSVC, FRAME, domain=BOX), FRAME),
    "means": (lambda: fitted(KMeans, FRAME, domain=BOX), FRAME),
    "bayes": (lambda: fitted(BernoulliNB, FRAME), FRAME),
    "schema": (lambda: fitted(LogisticRegression, PEOPLE, domain=SCHEMA), PEOPLE),
}
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
every_model = pytest.mark.parametrize("name", MODELS)


def same(model, table, other):
    for method in METHODS:
        if hasattr(model, method) and method not in ("score",):
            ours, theirs = getattr(model, method)(table), getattr(model, method)(other)
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(theirs, ours, rtol=1e-13, atol=1e-13) if (
                ours.dtype.kind == "f"
            ) else np.testing.assert_array_equal(theirs, ours)


@every_model
def test_columns_are_taken_by_name(name):
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    fit, table = MODELS[name]
    model = fit()
    other = table[["c", "a", "b"]]
    same(model, table, pa.Table.from_pandas(other))
    same(model, table, pl.DataFrame({column: other[column].to_list() for column in other}))
    same(model, table, {column: other[column].to_numpy() for column in other})
    same(model, table, json.loads(other.to_json(orient="records", double_precision=15)))
    if name != "schema":
        same(model, table, other.to_records(index=False))


def test_a_pandas_frame_in_another_order_is_refused_as_by_scikit_learn():
    with pytest.raises(PrivfitError, match="Feature names must be in the same order"):
        fitted(LogisticRegression, FRAME, domain=BOX).predict(FRAME[["c", "a", "b"]])


def test_records_with_names_need_a_model_with_names():
    model = fitted(LogisticRegression, X, domain=BOX)
    with pytest.raises(InputError, match=r"X \(records with names\) needs LogisticRegression to"):
        model.predict([{"a": 0.1, "b": 0.2, "c": 0.3}])
    with pytest.raises(ValueError, match="X must hold numbers"):
        fitted(LogisticRegression, FRAME, domain=BOX).predict([{"a": 0.1, "b": 0.2}])


@every_model
def test_streams_are_predicted_block_by_block(name, tmp_path, monkeypatch):
    monkeypatch.setattr("privfit.records.memory.LARGEST_BLOCK", 3000)  # about a hundred rows
    fit, table = MODELS[name]
    model = fit()
    table[["c", "a", "b"]].to_csv(tmp_path / "records.csv", index=False)
    same(model, table, Stream(tmp_path / "records.csv"))
    if name == "means":
        np.save(tmp_path / "records.npy", X)
        plain = fitted(KMeans, X, domain=BOX)
        same(plain, X, Stream(tmp_path / "records.npy"))


def test_an_empty_stream_has_no_predictions(tmp_path):
    (tmp_path / "none.csv").write_text("a,b,c\n")
    model = fitted(LogisticRegression, FRAME, domain=BOX)
    assert model.predict_proba(Stream(tmp_path / "none.csv")).shape == (0, 2)


def test_a_threshold_is_kept_in_parts(tmp_path):
    FRAME.to_csv(tmp_path / "records.csv", index=False)
    model = fitted(LogisticRegression, FRAME, domain=BOX)
    found = model.predict(Stream(tmp_path / "records.csv"), threshold=0.8)
    assert (found == model.predict(FRAME, threshold=0.8)).all()


@every_model
def test_dask_collections_are_predicted_lazily(name):
    pytest.importorskip("dask.dataframe")
    import dask
    import dask.array as da
    import dask.dataframe as dd

    fit, table = MODELS[name]
    model = fit()
    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_pandas(table, npartitions=3)
        for method in METHODS:
            if not hasattr(model, method):
                continue
            ask = getattr(model, method)
            lazy = ask(frame)
            assert isinstance(lazy, da.Array)
            np.testing.assert_allclose(lazy.compute(), ask(table), rtol=1e-13, atol=1e-13)
        parts = [dask.delayed(table.iloc[:200]), dask.delayed(table.iloc[200:][["c", "b", "a"]])]
        found = np.concatenate(dask.compute(*model.predict(parts)))
        np.testing.assert_array_equal(found, model.predict(table))
        if name == "svc":
            plain = fitted(LinearSVC, X, domain=BOX)
            lazy = plain.decision_function(da.from_array(X, chunks=(120, 2)))
            assert lazy.chunks == ((120, 120, 120, 120, 20),)
            np.testing.assert_allclose(lazy.compute(), plain.decision_function(X), atol=1e-13)


def test_workers_get_the_model_without_its_ledger_and_callback():
    pytest.importorskip("dask")
    import dask

    ledger = Ledger(2.0, 1e-5)
    model = fitted(
        LogisticRegression, FRAME, domain=BOX, ledger=ledger, callback=lambda generation: None
    )
    [part] = model.predict([dask.delayed(FRAME)])
    again = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(again.compute(scheduler="synchronous"), model.predict(FRAME))
    assert model.ledger is ledger


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("table", [X, np.asfortranarray(X), X.astype(np.float32)])
def test_numbers_that_are_not_finite_are_refused_wherever_they_are(table, odd):
    model = fitted(LogisticRegression, X, domain=BOX)
    table = table.copy(order="K")
    table[-1, 1] = odd
    with pytest.raises(PrivfitError, match=r"Input X contains (NaN|infinity)"):
        model.predict(table)
    table[-1, 1] = np.finfo(table.dtype).max  # large, but a number
    assert model.predict(table).shape == (500,)
