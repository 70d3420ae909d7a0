"""Models without privfit: pipelines of scikit-learn and ONNX that predict the same."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection

from privfit import (
    BernoulliNB,
    Box,
    Categorical,
    DeclarationError,
    InputError,
    KMeans,
    KMedian,
    L2Ball,
    LinearSVC,
    LogisticRegression,
    MissingExtraError,
    Numeric,
    Schema,
)
from privfit.domains.cells import least_numbers

COINS = np.random.default_rng(20261118)
X = COINS.uniform(-1.2, 1.2, (2000, 3))
Y = np.where(X[:, 0] > X[:, 1], "yes", "no")
THREE = np.digitize(X[:, 0], [-0.4, 0.4])
NEW = COINS.uniform(-1.5, 1.5, (4000, 3))
PLACES = np.array([[x, y, 0.0] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
SCHEMA = Schema({
    "a": Numeric(-1, 1, bins=[-0.5, 0.5]),
    "b": Numeric(-1, 1, fill=0.1),
    "c": Categorical(["x", "£"], other=True),
    "d": Numeric(bins=[-0.5, 0.5], ranks=[0.3, 0.7], scale="log", missing=True),
    "e": Categorical([3, 1, 2]),
    "f": Categorical([False, True], other=True),
    "g": Numeric(0, 1, bins=1),
    "h": Categorical([], other=True),
})  # fmt: skip


def people(n, missing):
    b, d = COINS.normal(size=n), COINS.normal(size=n) * 100
    if missing:
        b[::7], d[::5] = np.nan, np.nan
    return pd.DataFrame({
        "a": COINS.normal(size=n), "b": b,
        "c": COINS.choice(["x", "£", "?", None] if missing else ["x", "£", "?"], n), "d": d,
        "e": COINS.choice([1, 2, 3], n), "f": COINS.choice([False, True], n), "g": COINS.random(n),
        "h": COINS.choice(["u", "v"], n),
    })  # fmt: skip


PEOPLE, OTHERS = people(2000, False), people(3000, True)
LATE = (PEOPLE.a + PEOPLE.b > 0).to_numpy()


def logistic(y=Y, X=X, **changes):
    declared = {"domain": (-1, 1), "classes": np.unique(y).tolist(), "random_state": 1, **changes}
    return LogisticRegression(1.0, 1e-6, **declared).fit(X, y)


def svc(y=Y, **changes):
    declared = {"domain": (-1, 1), "classes": np.unique(y).tolist(), "random_state": 1, **changes}
    return LinearSVC(1.0, 1e-6, **declared).fit(X, y)


def of_schema(kind=LogisticRegression, **changes):
    if kind is KMeans:
        return KMeans(3, 1.0, 1e-6, domain=SCHEMA, random_state=1, **changes).fit(PEOPLE)
    declared = {"domain": SCHEMA, "classes": [False, True], "random_state": 1, **changes}
    return kind(1.0, 1e-6, **declared).fit(PEOPLE, LATE)


FAR = np.array([1000.0, 0.0, 0.2])
MODELS = {
    "numbers": (logistic, NEW),
    "three classes": (lambda: logistic(THREE), NEW),
    "columns far from zero": (
        lambda: logistic(X=X + FAR, domain=Box([999, -1, 0.1], [1001, 1, 0.3])), NEW + FAR,
    ),
    "a constant column": (lambda: logistic(domain=Box([-1, -1, 0], [1, 1, 0])), NEW),
    "margins": (svc, NEW),
    "margins of three classes": (lambda: svc(THREE), NEW),
    "an additive model": (lambda: of_schema(solver="additive"), OTHERS),
    "declared columns": (lambda: of_schema(coding="declared", solver="gradient"), OTHERS),
    "margins of a schema": (lambda: of_schema(LinearSVC), OTHERS),
    "means": (lambda: KMeans(4, 1.0, 1e-6, domain=(-1, 1), random_state=1).fit(X), NEW),
    "means of a schema": (lambda: of_schema(KMeans), OTHERS),
    "means of lighter levels": (lambda: of_schema(KMeans, scale=0.5), OTHERS),
    "median in l1": (
        lambda: KMedian(3, 1.0, facilities=PLACES, domain=(-1, 1), random_state=1).fit(X), NEW,
    ),
    "median in l2": (
        lambda: KMedian(3, 1.0, 1e-6, domain=(-1, 1), metric="l2", random_state=1).fit(X), NEW,
    ),
    "bayes": (lambda: BernoulliNB(1.0, classes=["no", "yes"], random_state=1).fit(X > 0, Y), NEW),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_pipeline_predicts_what_the_model_does(name):
    fit, records = MODELS[name]
    model = fit()
    pipeline = pickle.loads(pickle.dumps(model.to_sklearn()))
    labels = pipeline.predict(records)
    assert labels.dtype == model.predict(records).dtype
    assert (labels == model.predict(records)).all()
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method) and hasattr(pipeline, method):
            ours, theirs = (getattr(one, method)(records) for one in (model, pipeline))
            np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)
    assert hasattr(pipeline, "predict_proba") >= isinstance(model, LogisticRegression)


def test_the_pipeline_has_no_code_of_privfit(fresh_python, tmp_path):
    model = of_schema()
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model.to_sklearn()))
    OTHERS.to_pickle(tmp_path / "records.pkl")
    done = fresh_python(
        "import pickle, sys, pandas\n"
        f"model = pickle.load(open({str(tmp_path / 'model.pkl')!r}, 'rb'))\n"
        f"model.predict_proba(pandas.read_pickle({str(tmp_path / 'records.pkl')!r}))\n"
        "assert not [name for name in sys.modules if name.startswith('privfit')]\n"
    )
    assert done.returncode == 0, done.stderr


def test_numbers_at_the_edges_of_steps_are_coded_alike():
    model = logistic()
    edges = model.to_sklearn()[0].bin_edges_[0][1:-1]
    near = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    records = np.repeat(near[:, None], 3, axis=1)
    np.testing.assert_array_equal(
        model.to_sklearn().decision_function(records), model.decision_function(records)
    )
    schema = of_schema(coding="declared", solver="gradient")
    bins = schema.to_sklearn()[0].named_transformers_["b"][2].bin_edges_[0][1:-1]
    table = OTHERS.iloc[[0] * 3 * len(bins)].assign(
        b=np.concatenate([np.nextafter(bins, -np.inf), bins, np.nextafter(bins, np.inf)])
    )
    ours, theirs = schema.decision_function(table), schema.to_sklearn().decision_function(table)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-13)


@pytest.mark.parametrize("domain", ["declared", "learn"])
def test_whole_numbers_and_booleans_need_no_conversion(domain):
    coins = np.random.default_rng(3)
    table = pd.DataFrame({
        "age": coins.integers(17, 91, 3000), "kids": coins.integers(0, 5, 3000).astype(np.int32),
        "late": coins.random(3000) < 0.3, "wage": coins.random(3000, np.float32),
        "rooms": pd.array(coins.integers(1, 9, 3000), dtype="Int64"),
    })  # fmt: skip
    declared = Schema({
        "age": Numeric(17, 90, fill=40.5), "kids": Numeric(0, 4, bins=[1, 2], missing=True),
        "late": Numeric(0, 1, fill=0.5), "wage": Numeric(0, 1, fill=0.1),
        "rooms": Numeric(0, 9, fill=2),
    })  # fmt: skip
    model = logistic(
        (table["age"] > 50).to_numpy(), table,
        domain=declared if domain == "declared" else "learn",
    )  # fmt: skip
    missing = table.astype({"age": float, "kids": float}).assign(
        rooms=table["rooms"].mask(coins.random(3000) < 0.2)
    )
    missing.loc[::3, ["age", "kids"]] = np.nan
    for records in (table, table.astype(object), missing):
        np.testing.assert_allclose(
            model.to_sklearn().predict_proba(records), model.predict_proba(records),
            rtol=1e-12, atol=1e-12,
        )  # fmt: skip


@pytest.mark.skipif(
    not hasattr(model_selection, "FixedThresholdClassifier"), reason="new in scikit-learn 1.5"
)
def test_thresholds_and_calibrated_margins_are_kept():
    model, machine = logistic(), svc(calibrate=True)
    assert (model.to_sklearn(0.3).predict(NEW) == model.predict(NEW, 0.3)).all()
    assert (svc().to_sklearn(0.2).predict(NEW) == svc().predict(NEW, 0.2)).all()
    for threshold in (None, 0.3):
        stock = machine.to_sklearn(threshold)
        assert (stock.predict(NEW) == machine.predict(NEW, threshold)).all()
        np.testing.assert_allclose(
            stock.predict_proba(NEW), machine.predict_proba(NEW), rtol=1e-12, atol=1e-12
        )


def test_what_no_pipeline_can_do_is_refused(monkeypatch):
    hashed = Schema({"a": Numeric(-1, 1), "c": Categorical(buckets=range(16), hashes=16)})
    model = logistic(X={"a": X[:, 0], "c": Y}, domain=hashed)
    with pytest.raises(DeclarationError, match=r"column 'c' hashes values into buckets"):
        model.to_sklearn()
    coded = Schema({"a": Numeric(-1, 1, fill=0.0)}, missing=("", "-9"))
    with pytest.raises(DeclarationError, match=r"column 'a' counts a number as missing \(, -9\)"):
        logistic(X={"a": X[:, 0]}, domain=coded).to_sklearn()
    with pytest.raises(DeclarationError, match=r"projects whole records, which no transformer"):
        logistic(domain=L2Ball(1.5)).to_sklearn()
    own = KMedian(
        2, 1.0, facilities=PLACES, clip=(0, 3), random_state=1,
        metric=lambda x, f: np.abs(np.asarray(x)[:, None] - f).sum(axis=2),
    ).fit(X)  # fmt: skip
    with pytest.raises(DeclarationError, match=r"metric \(.*\) must be 'l1' or 'l2' for"):
        own.to_sklearn()
    with pytest.raises(DeclarationError, match=r"threshold \(0.5\) is for two classes"):
        logistic(THREE).to_sklearn(0.5)
    monkeypatch.delattr("sklearn.model_selection.FixedThresholdClassifier", raising=False)
    with pytest.raises(MissingExtraError, match=r"a threshold in scikit-learn needs its version"):
        logistic().to_sklearn(0.5)


def test_a_single_record_is_passed_as_a_list():
    named = logistic(X=pd.DataFrame(X, columns=["a", "b", "c"]))
    for model, record in (
        (of_schema(), PEOPLE.iloc[0].to_dict()),
        (named, dict(zip("abc", X[0], strict=True))),
    ):
        assert model.predict([record]).shape == (1,)
        with pytest.raises(InputError, match=r"pass one record as a list: \[record\]"):
            model.predict(record)


def test_least_numbers_are_where_steps_begin():
    for first, last, shift in ((-3, 4, 0.0), (-5, 5, 1000.3), (0, 2, -1e-9)):

        def steps(x, first=first, last=last, shift=shift):
            return np.clip(np.trunc((x - shift) * 8), first, last)

        edges = least_numbers(steps, first, last)
        wanted = np.arange(first + 1, last + 1)
        assert (steps(edges) >= wanted).all()
        assert (steps(np.nextafter(edges, -np.inf)) < wanted).all()
    assert np.isinf(least_numbers(np.zeros_like, 0, 2)).all()


# ----------------------------------------------------------------------------------------- ONNX


def answers_of_onnx(pipeline, types, records, options):
    """Labels and scores of a converted pipeline."""
    import onnxruntime
    from skl2onnx import convert_sklearn

    form = convert_sklearn(pipeline, initial_types=types, options=options)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        form.SerializeToString(), quiet, providers=["CPUExecutionProvider"]
    )
    return session.run(None, records)


def answers_to_numbers(pipeline, records, options):
    """The same of a table of doubles."""
    from skl2onnx.common.data_types import DoubleTensorType

    columns = [("X", DoubleTensorType([None, records.shape[1]]))]
    return answers_of_onnx(pipeline, columns, {"X": records}, options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_predicts_the_same_from_numbers():
    # Numbers are compared with edges in float32: a few fall on the next step.
    for model in (logistic(), logistic(THREE)):
        labels, proba = answers_to_numbers(model.to_sklearn(), NEW, {"zipmap": False})
        assert (labels == model.predict(NEW)).all()
        off = np.abs(proba - model.predict_proba(NEW)).max(axis=1)
        assert off.max() < 1e-3
        assert np.mean(off > 1e-6) < 1e-3


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ["means", "median in l1", "median in l2", "bayes"])
def test_onnx_finds_the_same_clusters_and_classes(name):
    model = MODELS[name][0]()
    records = (NEW > 0).astype(np.float64) if name == "bayes" else NEW
    options = None if name in ("means", "median in l2") else {"zipmap": False}
    labels, scores = answers_to_numbers(model.to_sklearn(), records, options)
    assert (labels == model.predict(records)).all()
    if name == "bayes":
        np.testing.assert_allclose(scores, model.predict_proba(records), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_onnx_has_the_same_margins(y):
    from sklearn import svm

    model = svc(y)
    margins = model.decision_function(NEW)
    if y is Y:
        margins = margins[:, None] * [-1, 1]
    labels, scores = answers_to_numbers(
        model.to_sklearn(), NEW, {svm.LinearSVC: {"raw_scores": True}}
    )
    assert (labels == model.predict(NEW)).all()
    np.testing.assert_allclose(scores, margins, rtol=0, atol=2e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.skipif(
    not hasattr(model_selection, "FixedThresholdClassifier"), reason="new in scikit-learn 1.5"
)
def test_onnx_has_the_probabilities_that_a_threshold_is_for():
    for model, threshold in ((svc(calibrate=True), None), (logistic(), 0.3)):
        stock = model.to_sklearn(threshold)
        _, proba = answers_to_numbers(stock.estimator_, NEW, {"zipmap": False})
        np.testing.assert_allclose(proba, model.predict_proba(NEW), rtol=0, atol=1e-3)
        labels = model.classes_[(proba[:, 1] >= stock.threshold).astype(int)]
        assert (labels == model.predict(NEW, threshold)).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_predicts_the_same_from_numbers_and_categories():
    from skl2onnx.common import data_types as types

    schema = Schema({
        "a": Numeric(-1, 1, bins=[-0.5, 0.5]), "b": Numeric(-1, 1, fill=0.1),
        "c": Categorical(["x", "£"], other=True), "e": Numeric(0, 4, fill=1.5),
    })  # fmt: skip
    model = logistic(LATE, PEOPLE, domain=schema, coding="declared", solver="gradient")
    single = types.FloatTensorType([None, 1])
    labels, proba = answers_of_onnx(
        model.to_sklearn(),
        [("a", single), ("b", single), ("c", types.StringTensorType([None, 1])),
         ("e", types.Int64TensorType([None, 1]))],
        {"a": OTHERS[["a"]].to_numpy(np.float32), "b": OTHERS[["b"]].to_numpy(np.float32),
         "c": OTHERS[["c"]].fillna("?").to_numpy(object), "e": OTHERS[["e"]].to_numpy(np.int64)},
        {"zipmap": False},
    )  # fmt: skip
    np.testing.assert_allclose(proba, model.predict_proba(OTHERS), rtol=0, atol=2e-6)
    assert (labels.astype(bool) == model.predict(OTHERS)).all()
