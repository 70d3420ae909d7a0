"""Dask tables: records and labels of one table, columns by name, and memory that is given back."""

from __future__ import annotations

import gc
import time

import numpy as np
import pandas as pd
import pytest

from privfit import (
    BernoulliNB,
    Gradient,
    KMeans,
    KMedian,
    Ledger,
    LogisticRegression,
    Numeric,
    Schema,
    SelectFeatures,
)
from privfit.base.errors import BudgetError, InputError
from privfit.records import dask as on_workers

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfit.SeedWarning"),
    pytest.mark.usefixtures("cluster"),
]

N = 4000
SCHEMA = Schema({name: Numeric(0, 1) for name in "abc"})


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.random(N) for name in "abc"})
    return frame.assign(late=(frame.a + frame.b > 1).astype(int))


@pytest.fixture
def files(tmp_path):
    for i, part in enumerate(np.array_split(np.arange(N), 8)):
        people().iloc[part].to_parquet(tmp_path / f"{i}.parquet")
    return str(tmp_path / "*.parquet")


def model(domain=(0, 1), **settings):
    settings = {"solver": Gradient(steps=5), "classes": [0, 1], "random_state": 0, **settings}
    return LogisticRegression(1.0, 1e-6, domain=domain, **settings)


@pytest.mark.parametrize("domain", [(0, 1), SCHEMA, "learn"], ids=["box", "schema", "learn"])
def test_many_parquet_files_give_what_memory_does(files, domain):
    """Dask joins files by the columns that are read: of labels alone it would join many."""
    frame, there = people(), dd.read_parquet(files)
    X, y = frame.drop(columns="late"), frame["late"]
    expected = model(domain, solver="auto").fit(X, y)
    for given in ((there.drop(columns="late"), there["late"]), (there, "late")):
        fitted = model(domain, solver="auto").fit(*given)
        assert fitted.release_.to_json() == expected.release_.to_json()
        assert list(fitted.feature_names_in_) == ["a", "b", "c"]


def test_counts_take_the_name_of_the_label_too(files):
    frame, there = people().round(), dd.read_parquet(files).round()
    X, y = frame.drop(columns="late"), frame["late"]
    here, far = (BernoulliNB(1.0, classes=[0, 1], random_state=0).fit(*given)
                 for given in ((X, y), (there, "late")))  # fmt: skip
    assert far.release_.to_json() == here.release_.to_json()
    here, far = (SelectFeatures(1.0, k=2, classes=[0, 1], random_state=0).fit(*given)
                 for given in ((X, y), (there, "late")))  # fmt: skip
    assert list(far.feature_names_in_) == list(here.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(far.get_support(), here.get_support())


def test_partitions_are_read_by_the_names_of_their_columns():
    frame = people()
    parts = [frame.iloc[part] for part in np.array_split(np.arange(N), 4)]
    mixed = [part[["c", "late", "b", "a"]] if i % 2 else part for i, part in enumerate(parts)]
    expected = model().fit(frame.drop(columns="late"), frame["late"])
    fitted = model().fit([dask.delayed(part) for part in mixed], "late")
    assert np.array_equal(fitted.coef_, expected.coef_)
    wrong = [parts[0], parts[1].rename(columns={"b": "d"})]
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(InputError, match="partitions must have the same columns; select those"):
        model(ledger=ledger).fit([dask.delayed(part) for part in wrong], "late")
    assert ledger.spent.epsilon == 0


PLACES = {
    "delayed": lambda part: dask.delayed(part),
    "futures": lambda part: distributed.get_client().scatter(part, hash=False),
}


@pytest.mark.parametrize("place", PLACES)
def test_names_of_partitions_are_remembered(place):
    """Otherwise columns of tables in another order would get the coefficients of others."""
    frame = people()
    X, y = frame.drop(columns="late"), frame["late"]
    cut = np.array_split(np.arange(N), 3)
    parts = [PLACES[place](frame[["c", "late", "b", "a"]].iloc[part]) for part in cut]
    expected = model().fit(X[["c", "b", "a"]], y)
    fitted = model().fit(parts, "late")
    assert list(fitted.feature_names_in_) == ["c", "b", "a"]
    assert np.array_equal(fitted.coef_, expected.coef_)
    labels = expected.predict(X[["c", "b", "a"]])
    assert np.array_equal(fitted.predict(pa.table(dict(X))), labels)
    assert np.array_equal(fitted.predict([dask.delayed(X)])[0].compute(), labels)
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(X)


def test_every_estimator_remembers_the_names_of_partitions():
    numbers = people()[["c", "b", "a"]]
    parts = [dask.delayed(numbers), dask.delayed(numbers)]
    ones = dask.delayed(people().round()[["c", "late", "b", "a"]])
    declared = {"domain": (0, 1), "random_state": 0}
    for fitted in (
        KMeans(2, 1.0, 1e-6, **declared).fit(parts),
        KMedian(2, 1.0, metric="l2", **declared).fit(parts),
        KMedian(1, 1.0, **declared, facilities=np.eye(3), clip=(0, 2)).fit(parts),
        BernoulliNB(1.0, classes=[0, 1], random_state=0).fit([ones], "late"),
        SelectFeatures(1.0, k=2, classes=[0, 1], random_state=0).fit([ones], "late"),
    ):
        assert list(fitted.feature_names_in_) == ["c", "b", "a"]


@pytest.mark.parametrize("size", [0, 1])
def test_the_order_of_columns_does_not_tell_whether_a_partition_has_records(size):
    frame = people()
    parts = [frame[["c", "late", "b", "a"]].iloc[:size], frame.iloc[size:]]
    fitted = model().fit([dask.delayed(part) for part in parts], "late")
    assert list(fitted.feature_names_in_) == ["c", "b", "a"]
    odd = [pd.DataFrame({"d": []}), frame]  # none of its columns is read
    fitted = model().fit([dask.delayed(part) for part in odd], "late")
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("first", [True, False])
def test_a_partition_without_records_may_be_of_any_kind(first):
    columns = {name: column.to_numpy() for name, column in people().items()}
    none = {name: column[:0] for name, column in columns.items()}
    parts = [dask.delayed(one) for one in ([none, columns] if first else [columns, none])]
    frame = people()
    expected = model(SCHEMA).fit(frame.drop(columns="late"), frame["late"])
    assert np.array_equal(model(SCHEMA).fit(parts, "late").coef_, expected.coef_)


@pytest.mark.parametrize("odd", [7, None, "abc", "", b"", np.array(5.0)], ids=repr)
def test_a_partition_that_is_no_table_is_refused_before_the_charge(odd):
    ledger, parts = Ledger(1.0), [dask.delayed(people().drop(columns="late")), dask.delayed(odd)]
    for some in (parts, parts[1:]):
        with pytest.raises(InputError, match=r"; (pass|select) "):
            KMeans(2, 1.0, domain=SCHEMA, ledger=ledger).fit(some)
    assert ledger.spent.epsilon == 0


def test_a_label_that_is_no_column_is_refused():
    ledger, there = Ledger(1.0, 1e-6), dd.from_pandas(people(), npartitions=3)
    with pytest.raises(InputError, match=r"y \('early'\) must name a column of X"):
        model(ledger=ledger).fit(there, "early")
    with pytest.raises(InputError, match=r"y \('early'\) must name one column of X"):
        model(ledger=ledger).fit([dask.delayed(people())], "early")
    with pytest.raises(InputError, match="pass the name of a column of X"):
        model(ledger=ledger).fit(there[["a", "b", "c"]], there.repartition(npartitions=2)["late"])
    assert ledger.spent.epsilon == 0


class Failing(Gradient):
    """Fails after the charge, with the error that it is told."""

    error: type[BaseException] = OSError

    def __call__(self, run):
        raise self.error


def interrupted(generation):
    raise RuntimeError("no more")


@pytest.mark.parametrize("how", ["done", "callback", "solver", "interrupt", "budget"])
def test_workers_forget_records_when_a_fit_ends(how, monkeypatch):
    """By their own reference count: the cyclic collector may run hours later."""
    there = dd.from_pandas(people(), npartitions=3)
    monkeypatch.setattr(Failing, "error", KeyboardInterrupt if how == "interrupt" else OSError)
    settings = {
        "done": {}, "callback": {"callback": interrupted}, "solver": {"solver": Failing(steps=2)},
        "interrupt": {"solver": Failing(steps=2)}, "budget": {"ledger": Ledger(0.1)},
    }[how]  # fmt: skip
    before = {*on_workers._HELD}
    gc.disable()
    try:
        expected = {"callback": RuntimeError, "solver": Exception, "interrupt": KeyboardInterrupt,
                    "budget": BudgetError}.get(how)  # fmt: skip
        if expected is None:
            model(**settings).fit(there, "late")
            KMeans(2, 1.0, domain=(0, 1), random_state=0).fit(there)
        else:
            with pytest.raises(expected):
                model(**settings).fit(there, "late")
        for _ in range(100):  # messages take a while
            if {*on_workers._HELD} <= before:
                break
            time.sleep(0.05)
        assert {*on_workers._HELD} <= before
    finally:
        gc.enable()
