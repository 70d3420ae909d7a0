"""What every estimator keeps: scikit-learn's habits, a truthful ledger, no private value.

A new estimator joins by a line in `ESTIMATORS`, a new method by a line in `SOLVERS`.
"""

from __future__ import annotations

import copy
import gc
import io
import logging
import math
import pickle
import re
import struct
import sys
import weakref
from collections.abc import Callable
from dataclasses import asdict, fields, is_dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.special
from makers.cases import case, encoded, scikit_learn_checks
from makers.raises import messages_of, raises_in
from scipy.spatial.distance import cdist
from sklearn.base import ClassifierMixin, ClusterMixin, clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import privfit
from privfit import (
    DPSGA,
    EEM,
    Box,
    Budget,
    BudgetError,
    Categorical,
    Coreset,
    FrankWolfe,
    Gradient,
    Greedy,
    Gupt,
    Hybrid,
    KMeans,
    KMedian,
    L1Ball,
    L2Ball,
    Ledger,
    LinearSVC,
    Lloyd,
    Local,
    LogisticRegression,
    Numeric,
    OutputPerturbation,
    PrivacyLeakWarning,
    PrivateSVM,
    PrivGene,
    Release,
    Schema,
    SelectRefine,
    Stream,
    Subsample,
    Swaps,
    Synopsis,
    UniformGrid,
)
from privfit._kernels.threads import has_openmp
from privfit.clustering import (
    CellMedians,
    Mean,
    Medians,
    OverSeeded,
    Tree,
    kmeans,
    kmedian,
    medians,
)
from privfit.datasets import load_adult
from privfit.estimators import linear
from privfit.estimators.common import as_domain


class KMedianAnywhere(KMedian):
    """With as many public facilities as declared, but in the space of whatever records come."""

    def _objective(self, X: Any) -> Any:
        here = copy.copy(self)
        here.facilities = places(len(self.facilities), X, self.domain)
        return super(KMedianAnywhere, here)._objective(X)


class KMedianCentres(KMedian):
    """Without facilities."""


def places(m: int, X: Any, domain: Any) -> np.ndarray:
    """m points of the domain of these records; what is wrong with either, the estimator tells."""
    coins, width = np.random.default_rng(0), 1
    if isinstance(domain, Schema):
        return domain.points(m, coins)
    try:
        width = (X if hasattr(X, "shape") else np.asarray(X)).shape[1]
        return as_domain(domain, "KMedian").bind(width).points(m, coins)
    except (ValueError, TypeError, IndexError):
        return np.zeros((m, width))


# Each estimator, and the arrays that a fit of it releases.
ESTIMATORS: dict[Any, tuple[str, ...]] = {
    LogisticRegression: ("coef_", "intercept_"),
    LinearSVC: ("coef_", "intercept_"),
    KMeans: ("cluster_centers_",),
    KMedianAnywhere: ("facilities_", "cluster_centers_"),
    KMedianCentres: ("cluster_centers_",),
}
CLASSIFIERS = [kind for kind in ESTIMATORS if issubclass(kind, ClassifierMixin)]
CLUSTERERS = [kind for kind in ESTIMATORS if issubclass(kind, ClusterMixin)]

# Each method with few generations; how many draws a fit makes (of two classes, or of three
# clusters); a generation to interrupt it at, and the draws until then.
SELECT_REFINE = SelectRefine(
    select=Local(generations=4), refine=Gradient(steps=4, whiten=True, average=0.0)
)
SOLVERS: dict[str, tuple[Any, int, int, int]] = {
    "local": (Local(generations=12), 12, 3, 3),
    "local by loss": (Local(scoring="loss", generations=12), 12, 3, 3),
    "eem": (EEM(generations=12, population=30), 12, 3, 3),
    "privgene": (PrivGene(generations=3, population=30, survivors=5), 3 * 5 + 1, 3, 3 * 5),
    "dpsga": (DPSGA(generations=3, population=30, survivors=5), 3 * 5 + 1, 3, 3 * 5),
    "subsample": (Subsample(candidates=300), 1, 1, 1),
    "gradient": (Gradient(steps=6), 1 + 6, 3, 1 + 3),
    "frank_wolfe": (FrankWolfe(steps=12), 12, 3, 3),
    "select_refine": (SELECT_REFINE, 4 + 1 + 4, 3, 3),
}
HYBRID = Hybrid(tree=Tree(restarts=2), lloyd=Lloyd(steps=2, residual=True))
KMEANS: dict[str, tuple[Any, int, int, int]] = {
    "lloyd": (Lloyd(steps=3), 3, 2, 2),
    "residuals": (Lloyd(steps=3, residual=True), 3, 2, 2),
    "grid": (UniformGrid(cells=64, restarts=2), 1, 1, 1),
    "tree": (Tree(restarts=2), 2, 1, 2),
    "hybrid": (HYBRID, 4, 2, 3),
    "over_seeded": (OverSeeded(tree=Tree(restarts=2), steps=2, mean=True), 3 + 2 + 3 + 2, 2, 9),
    "over_seeded, in a frame": (OverSeeded(tree=Tree(restarts=2), steps=2, frame=True), 12, 2, 11),
    "over_seeded, on scales": (
        OverSeeded(tree=Tree(restarts=2), steps=2, deviations=True),
        11,
        2,
        10,
    ),
    "mean": (Mean(), 3, 2, 3),
    "gupt": (Gupt(blocks=20), 1, 1, 1),
    **{name: SOLVERS[name] for name in ("local", "eem", "privgene", "dpsga")},
}
KMEDIAN: dict[str, tuple[Any, int, int, int]] = {
    "synopsis": (Synopsis(depth=8), 2, 1, 2),
    "greedy": (Greedy(), 2 + 3, 2, 4),
    "greedy with swaps": (Greedy(swaps=2), 2 + 3 + 2, 4, 6),
    "greedy, over-seeded": (Greedy(seeds=2, swaps=1), 2 + 6 + 1 + 1, 1, 9),
    "swaps": (Swaps(steps=3), 4, 2, 1),
    "coreset": (Coreset(radii=2), 2 * 3 + 1, 1, 7),
    **{name: SOLVERS[name] for name in ("local", "eem", "privgene", "dpsga", "subsample")},
}
MEDIANS = Medians(tree=Tree(restarts=2), steps=2, mean=True)
CENTRES: dict[str, tuple[Any, int, int, int]] = {
    "medians": (MEDIANS, 3 + 2 + 3 + 2, 2, 9),
    "cell_medians": (CellMedians(restarts=2), 2, 1, 2),
    **{name: KMEANS[name] for name in ("hybrid", "mean")},
}
METHODS = {**dict.fromkeys(CLASSIFIERS, SOLVERS), KMeans: KMEANS, KMedianAnywhere: KMEDIAN,
           KMedianCentres: CENTRES}  # fmt: skip
KNOWN = {**dict.fromkeys(CLASSIFIERS, linear.METHODS), KMeans: kmeans.METHODS,
         KMedianAnywhere: kmedian.METHODS, KMedianCentres: medians.METHODS}  # fmt: skip

# What an estimator must be told besides a budget and a domain, and its method in most tests here.
DECLARED: dict[Any, dict[str, Any]] = {
    **{
        kind: {"classes": [0, 1], "solver": Local(generations=12), "calibrate": False}
        for kind in CLASSIFIERS
    },
    KMeans: {"n_clusters": 3, "solver": HYBRID},
    KMedianAnywhere: {"n_clusters": 3, "solver": Greedy(), "facilities": range(30)},
    KMedianCentres: {"n_clusters": 3, "solver": MEDIANS, "metric": "l2"},
}
GENERATIONS = {**dict.fromkeys(CLASSIFIERS, 12), KMeans: 3, KMedianAnywhere: 3, KMedianCentres: 3}

every_estimator = pytest.mark.parametrize("kind", ESTIMATORS)
every_classifier = pytest.mark.parametrize("kind", CLASSIFIERS)
every_solver = pytest.mark.parametrize(
    ("solver", "selections"), [case[:2] for case in SOLVERS.values()], ids=SOLVERS
)
every_method = pytest.mark.parametrize(
    ("kind", "solver", "draws"),
    [pytest.param(kind, *case[:2], id=f"{kind.__name__}-{name}")
     for kind, methods in METHODS.items() for name, case in methods.items()],
)  # fmt: skip

N = 397  # a prime: no number of the model is this one by chance
SECRET = 0.1234567890123
OTHER_SECRET = 4567.891011

GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(-1, 1, (N, 3))
X[0], X[1, 1] = SECRET, OTHER_SECRET
Y = (X[:, 0] + X[:, 1] > X[:, 2]).astype(int)
MANY = (2 * (X[:, 0] > 0.3) + (X[:, 1] > 0)).clip(0, 2)  # three classes
NAMES = ["age", "height", "weight"]
FRAME = pd.DataFrame(X, columns=NAMES)
SCHEMA = Schema({name: Numeric(-1, 1) for name in NAMES})


def make(kind: Any, **changes: Any) -> Any:
    declared = {"epsilon": 1.0, "delta": 1e-6, "domain": (-1, 1), "random_state": 7}
    return kind(**{**declared, **DECLARED[kind], **changes})


def released(model: Any) -> dict[str, np.ndarray]:
    return {name: getattr(model, name) for name in ESTIMATORS[type(model)]}


def same_model(one: Any, other: Any) -> bool:
    """Bit for bit."""
    return all(np.array_equal(value, getattr(other, name)) for name, value in released(one).items())


def asked(model: Any, table: Any) -> np.ndarray:
    """What a model says of each record, before it becomes a label."""
    if isinstance(model, ClusterMixin):
        return model.transform(table)
    return model.decision_function(table)


def same_values(one: Any, other: Any) -> bool:
    """But for the order in which a table's layout adds up a few products."""
    return bool(np.allclose(one, other, rtol=1e-14, atol=1e-14))


def fitted_names(model: Any) -> set[str]:
    return {name for name in vars(model) if name.endswith("_")}


def drawn(ledger: Any) -> int:
    return sum(event.count for event in ledger.events)


# ------------------------------------------------------------------------ scikit-learn's own checks


def name_of(check: Any) -> str:
    while hasattr(check, "func"):
        check = check.func
    return str(check.__name__)


DEFAULTS = {KMedianAnywhere: {"facilities": range(30)}, KMedianCentres: {"metric": "l2"}}
# The check of clusterers asks for `labels_`, one value a record, which privacy forbids.
every_check = scikit_learn_checks(
    [kind(epsilon=1000, domain=(-5, 5), **DEFAULTS.get(kind, {})) for kind in ESTIMATORS],
    allowed=lambda check: name_of(check) != "check_clustering",
)

# scikit-learn casts labels to whole numbers before it looks whether they are finite.
INVALID_CAST = "ignore:invalid value encountered in cast:RuntimeWarning"


# Privacy forbids none of the others. Those of sample_weight and partial_fit do not apply: both are
# absent on purpose. Classes are read off the data there, which is what the warning says.
@pytest.mark.few(32)
@pytest.mark.filterwarnings("ignore::privfit.PrivacyLeakWarning", INVALID_CAST)
@every_check
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


@every_estimator
def test_weights_and_unknown_arguments_are_refused_with_the_reason(kind):
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(TypeError, match="sample_weight is refused: a weight multiplies what one"):
        make(kind, ledger=ledger).fit(X, Y, sample_weight=np.ones(N))
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'weights'"):
        make(kind, ledger=ledger).fit(X, Y, weights=np.ones(N))
    assert not ledger.entries
    assert make(kind).fit(X, Y, sample_weight=None).release_.verify()
    assert not hasattr(kind, "partial_fit")


# ------------------------------------------------------------------------------------------- labels

LABELS = {
    "signs": [-1, 1],
    "floats": [1.0, 2.0],
    "halves": [0.5, 1.5],
    "far apart": [-(10**12), 10**12],
    "strings": ["no", "yes"],
    "bools": [False, True],
    "objects": np.array(["no", "yes"], dtype=object),
    "numbers as objects": np.array([1, 2], dtype=object),
}


@every_classifier
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind_give_the_same_model(kind, labels):
    names = np.asarray(labels)
    model = make(kind, classes=labels).fit(X, names[Y])
    assert same_model(model, make(kind).fit(X, Y))
    assert model.classes_.tolist() == names.tolist()
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert np.array_equal(predicted, names[(model.decision_function(X) > 0).astype(int)])
    assert np.mean(predicted == names[Y]) > 0.8
    again = Release.from_json(model.release_.to_json())
    assert again.verify()
    assert len(again.parameters["classes"]) == 2


@every_classifier
@pytest.mark.parametrize(
    "wrapped",
    [list, tuple, pd.Series, lambda y: pd.Series(y, dtype="category"), lambda y: y.astype(float)],
    ids=["list", "tuple", "series", "categories", "floats"],
)
def test_labels_in_any_container_give_the_same_model(kind, wrapped):
    assert same_model(make(kind).fit(X, wrapped(Y)), make(kind).fit(X, Y))


@every_classifier
def test_a_column_of_labels_is_taken_with_a_warning(kind):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = make(kind).fit(X, Y[:, None])
    assert same_model(model, make(kind).fit(X, Y))


@every_classifier
def test_the_order_of_declared_classes_does_not_matter(kind):
    names = np.array(["b", "c", "a"])
    expected = make(kind, classes=["a", "b", "c"]).fit(X, names[MANY])
    for order in (["c", "a", "b"], ("b", "c", "a"), np.array(["c", "b", "a"])):
        model = make(kind, classes=order).fit(X, names[MANY])
        assert same_model(model, expected)
        assert model.classes_.tolist() == ["a", "b", "c"]


@every_classifier
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_a_declared_class_need_not_occur(kind, classes):
    model = make(kind, classes=classes, epsilon=50).fit(X, np.zeros(N, dtype=int))
    assert model.classes_.tolist() == classes
    assert model.coef_.shape == (1 if len(classes) == 2 else 3, 3)
    assert (model.predict(X) == 0).all()


@every_classifier
def test_classes_that_are_not_declared_are_a_leak_and_say_so(kind):
    message = f"{kind.__name__} reads its classes from the private labels; pass classes="
    with pytest.warns(PrivacyLeakWarning, match=message) as caught:
        model = make(kind, classes=None).fit(X, np.array(["u", "v"])[Y])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.classes_.tolist() == ["u", "v"]
    assert same_model(model, make(kind).fit(X, Y))


def test_declared_labels_do_not_make_scikit_learn_guess():
    """Many classes, few records: scikit-learn would warn of what it counts in the labels."""
    model = make(LogisticRegression, classes=range(30)).fit(X[:30], np.arange(30))
    assert model.coef_.shape == (30, 3)


# -------------------------------------------------------------------------------- several classes


@pytest.mark.few(6)
@every_classifier
@every_solver
def test_several_classes_share_one_budget(kind, solver, selections):
    model = make(kind, classes=[0, 1, 2], solver=solver).fit(X, MANY)
    release = model.release_
    assert release.settings["budget_split"] == {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3}
    assert sum(event.count for event in release.events) == 3 * selections
    assert release.verify()
    assert (release.epsilon, release.delta) == (1.0, 1e-6)
    assert 0.99 < release.cost() <= 1.0
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    z = model.decision_function(X)
    assert z.shape == (N, 3)
    assert np.array_equal(model.predict(X), z.argmax(axis=1))


@every_classifier
@every_solver
def test_two_classes_have_the_whole_budget(kind, solver, selections):
    ledger = Ledger(2.0, 1e-5)
    model = make(kind, solver=solver, ledger=ledger).fit(X, Y)
    assert model.release_.settings["budget_split"] == {"1": 1.0}
    assert sum(event.count for event in model.release_.events) == drawn(ledger) == selections
    assert model.release_.verify()
    assert 0.99 < model.release_.cost() <= 1.0
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert model.decision_function(X).shape == (N,)


@every_classifier
def test_several_classes_are_told_apart(kind):
    model = make(kind, classes=[0, 1, 2], epsilon=50, solver="auto").fit(X, MANY)
    assert model.score(X, MANY) > 0.8


# ------------------------------------------------------------------------------------------ domains


@every_estimator
def test_a_pair_of_bounds_is_a_box(kind):
    expected = make(kind).fit(X, Y)
    for domain in ([-1, 1], (-1.0, 1.0), Box(-1, 1), Box(-1, 1, 3), Box([-1] * 3, [1] * 3),
                   ([-1, -1, -1], 1)):  # fmt: skip
        model = make(kind, domain=domain).fit(X, Y)
        assert same_model(model, expected)
        assert np.array_equal(model.predict(X), expected.predict(X))


DOMAINS = {
    "box": Box([-1, 0, -3], [1, 0.5, 2]),
    "wide box": Box(-1000, 3000),
    "l1": L1Ball(1.25),
    "l2": L2Ball(0.75),
}


@pytest.mark.few(6)
@every_classifier
@every_solver
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_records_are_read_alike_when_fitting_and_predicting(kind, solver, selections, domain):
    """As the declared domain clips, scales and rounds them."""
    bound, rows = domain.bind(3), X[:100] * 3
    model = make(kind, domain=domain, solver=solver).fit(rows, Y[:100])
    seen = encoded(bound, rows) * bound.record_units()
    assert same_model(model, make(kind, domain=domain, solver=solver).fit(seen, Y[:100]))
    z = model.decision_function(rows)
    assert np.array_equal(z, model.decision_function(seen))
    assert z == pytest.approx(seen @ model.coef_[0] + model.intercept_[0], rel=1e-12, abs=1e-12)
    if isinstance(domain, Box):
        inside = np.clip(rows, domain.lower, domain.upper)
        assert not np.array_equal(inside, rows)
        assert np.array_equal(model.predict(inside), model.predict(rows))
        assert same_model(model, make(kind, domain=domain, solver=solver).fit(inside, Y[:100]))


@pytest.mark.few(8)
@every_estimator
@pytest.mark.parametrize(
    "form",
    [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array],
    ids=lambda form: form.__name__,
)
@pytest.mark.parametrize("domain", [(-1, 1), L1Ball(0.5), L2Ball(0.5)], ids=["box", "l1", "l2"])
def test_sparse_records_give_the_very_model_of_dense_ones(kind, form, domain):
    dense = np.where(X > 0.2, 2 * X, 0)
    expected = make(kind, domain=domain).fit(dense, Y)
    model = make(kind, domain=domain).fit(form(dense), Y)
    assert same_model(model, expected)
    z = asked(expected, dense)
    assert same_values(asked(model, form(dense)), z)
    assert np.array_equal(model.predict(form(dense)), expected.predict(dense))


@every_estimator
def test_entries_that_a_sparse_record_repeats_are_added_before_they_are_clipped(kind):
    repeated = sp.csr_matrix(
        (np.tile([0.75, 0.75, -0.25], N), np.tile([0, 0, 1], N), np.arange(N + 1) * 3), (N, 3)
    )
    before = repeated.data.copy()
    expected = make(kind).fit(repeated.toarray(), Y)
    model = make(kind).fit(repeated, Y)
    assert same_model(model, expected)
    z = asked(expected, repeated.toarray())
    assert same_values(asked(model, repeated), z)
    assert np.array_equal(repeated.data, before)


@pytest.mark.few(11)
@every_estimator
@pytest.mark.parametrize(
    "form",
    [np.asfortranarray, lambda a: a.astype(np.float32), lambda a: a.tolist(), pd.DataFrame,
     lambda a: a.astype(object), lambda a: np.repeat(a, 2, axis=0)[::2],
     lambda a: pd.DataFrame(a).astype("Float64")],
    ids=["fortran", "float32", "lists", "frame", "objects", "strided", "nullable"],
)  # fmt: skip
def test_the_form_of_a_table_does_not_matter(kind, form):
    table = X.astype(np.float32).astype(np.float64)
    expected, model = make(kind).fit(table, Y), make(kind).fit(form(table), Y)
    assert same_model(model, expected)
    z = asked(expected, table)
    assert same_values(asked(model, form(table)), z)


@every_estimator
def test_whole_numbers_and_truth_values_are_records_too(kind):
    bits = X > 0
    expected = make(kind).fit(bits.astype(float), Y)
    for form in (bits, bits.astype(np.int8), bits.astype(np.uint64)):
        assert same_model(make(kind).fit(form, Y), expected)


def people(rng: np.random.Generator, n: int) -> tuple[Any, pd.DataFrame]:
    """The schema of the shared cases, and records for it with unknown and missing values."""
    made = case("schema")
    table = made.rows(rng, n)
    return made.domain, pd.DataFrame(table, columns=list(made.domain.columns))


@pytest.mark.few(2)
@every_estimator
def test_a_schema_reads_frames_dicts_and_arrays_alike(kind, rng):
    schema, frame = people(rng, N)
    expected = make(kind, domain=schema).fit(frame, Y)
    assert expected.feature_names_in_.tolist() == list(schema.columns)
    assert expected.n_features_in_ == len(schema.columns)
    z = asked(expected, frame)
    if kind in CLASSIFIERS:
        assert expected.coef_.shape == (1, schema.width)
        assert expected.coef_names_ == schema.feature_names
        seen = encoded(schema, frame.to_numpy()) * schema.record_units()
        assert z == pytest.approx(seen @ expected.coef_[0] + expected.intercept_[0], rel=1e-12)
    else:
        assert z.shape == (N, 3)
        assert expected.cluster_centers_.shape == (3, schema.width)
    backwards = frame[frame.columns[::-1]]
    forms: list[Any] = [
        frame.to_numpy(),
        dict(frame.items()),
        {name: frame[name].to_numpy() for name in backwards},
        backwards,
        frame.assign(name="somebody"),
    ]
    for form in forms:
        model = make(kind, domain=schema).fit(form, Y)
        assert same_model(model, expected)
        assert np.array_equal(asked(model, form), z)
        assert np.array_equal(expected.predict(form), expected.predict(frame))


@every_estimator
def test_a_schema_clips_fills_and_puts_aside_alike_in_fit_and_predict(kind, rng):
    schema, frame = people(rng, N)
    tidy = frame.assign(
        age=frame.age.astype(float).fillna(48).clip(16, 80),
        colour=frame.colour.where(frame.colour.isin(["red", "green", "blue"]), "puce"),
        income=frame.income.astype(float).clip(0, 1024),
    )
    assert not tidy.equals(frame)
    model = make(kind, domain=schema).fit(frame, Y)
    assert same_model(model, make(kind, domain=schema).fit(tidy, Y))
    assert np.array_equal(asked(model, frame), asked(model, tidy))


@every_estimator
def test_a_fitted_model_keeps_the_domain_it_was_fitted_with(kind):
    bounds = [-1, 1]
    model = make(kind, domain=bounds).fit(X * 3, Y)
    z = asked(model, X * 3)
    bounds[1] = 7
    assert np.array_equal(asked(model, X * 3), z)
    for other in ((0, 9), SCHEMA, None):
        model.set_params(domain=other)
        assert np.array_equal(asked(model, X * 3), z)
        if kind in CLASSIFIERS:
            assert model.coef_names_ == ["x0", "x1", "x2"]


@every_estimator
def test_names_of_columns_are_kept_and_compared(kind):
    model = make(kind).fit(FRAME, Y)
    assert model.feature_names_in_.tolist() == NAMES
    if kind in CLASSIFIERS:
        assert model.coef_names_ == NAMES
    assert same_model(model, make(kind).fit(X, Y))
    assert np.array_equal(model.predict(FRAME), make(kind).fit(X, Y).predict(X))
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but .* was fitted w"
    ):
        model.predict(X)
    swapped = FRAME[["height", "age", "weight"]]
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(swapped)
    renamed = FRAME.rename(columns={"age": "years"})
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- years\n.*now missing:\n- age\n"):
        model.predict(renamed)
    unnamed = make(kind).fit(X, Y)
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but .* was fitted without feature"):
        unnamed.predict(FRAME)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
    numbered = make(kind).fit(pd.DataFrame(X), Y)
    assert not hasattr(numbered, "feature_names_in_")


@every_estimator
def test_an_unfitted_model_says_so(kind):
    model = make(kind)
    asks = [model.predict, partial(asked, model), partial(model.score, y=Y)]
    if kind in CLUSTERERS:
        asks += [partial(private_cost(model), epsilon=1.0), model.get_feature_names_out]
    for ask in asks:
        with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted"):
            ask(X)
    assert not hasattr(model, "coef_names_")


def private_cost(model: Any) -> Callable[..., float]:
    """What releases the cost of a clustering for a budget of its own."""
    return model.private_inertia if isinstance(model, KMeans) else model.private_cost


# -------------------------------------------------------------------------------------- predictions


@every_classifier
def test_predictions_are_signs_and_zero_is_the_first_class(kind):
    model = make(kind).fit(X, Y)
    z = model.decision_function(X)
    assert 0 < (z > 0).sum() < N
    assert np.array_equal(model.predict(X), (z > 0).astype(int))
    model.coef_, model.intercept_ = np.zeros((1, 3)), np.zeros(1)
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("solver", [case[0] for case in SOLVERS.values()], ids=SOLVERS)
def test_probabilities_of_two_classes_are_those_of_the_logistic_model(solver):
    model = make(LogisticRegression, solver=solver).fit(X, Y)
    z, p = model.decision_function(X), model.predict_proba(X)
    assert p.shape == (N, 2)
    assert p.sum(axis=1) == pytest.approx(np.ones(N), abs=1e-15)
    assert p[:, 1] == pytest.approx(scipy.special.expit(z), rel=1e-14)
    order = np.argsort(z)
    assert (np.diff(p[order, 1]) >= 0).all()
    assert (np.diff(p[order, 1])[np.diff(z[order]) > 1e-9] > 0).all()
    assert np.array_equal(p.argmax(axis=1), model.predict(X))
    assert model.predict_log_proba(X) == pytest.approx(np.log(p), rel=1e-12)


def test_probabilities_of_several_classes_share_one():
    model = make(LogisticRegression, classes=[0, 1, 2]).fit(X, MANY)
    z, p = model.decision_function(X), model.predict_proba(X)
    assert p.shape == (N, 3)
    assert p.sum(axis=1) == pytest.approx(np.ones(N), abs=1e-15)
    each = scipy.special.expit(z)
    assert p == pytest.approx(each / each.sum(axis=1, keepdims=True), rel=1e-13)
    assert np.array_equal(p.argmax(axis=1), model.predict(X))
    assert model.predict_log_proba(X) == pytest.approx(np.log(p), rel=1e-12)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("size", [40.0, 400.0])
def test_probabilities_far_from_the_border_stay_numbers(classes, size):
    """Where every class is unlikely, and where 1 - p would be 0."""
    model = make(LogisticRegression, classes=classes).fit(X, Y)
    model.coef_[:] = -size * np.arange(1, len(model.coef_) + 1)[:, None] / 3
    model.intercept_[:] = 0
    corner = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]) * 4095 / 4096
    p, logs = model.predict_proba(corner), model.predict_log_proba(corner)
    assert np.isfinite(p).all()
    assert p.sum(axis=1) == pytest.approx(np.ones(2))
    assert np.isfinite(logs).all()
    z = model.decision_function(corner)
    if z.ndim == 1:
        assert logs[:, 1] == pytest.approx(-np.logaddexp(0, -z), rel=1e-12)
        assert logs[:, 0] == pytest.approx(-np.logaddexp(0, z), rel=1e-12)
    else:
        each = -np.logaddexp(0, -z)
        total = scipy.special.logsumexp(each, axis=1, keepdims=True)
        assert logs == pytest.approx(each - total, rel=1e-12)


def test_only_a_model_of_probabilities_gives_them():
    assert not hasattr(LinearSVC(), "predict_proba")
    assert not hasattr(LinearSVC(), "predict_log_proba")


# ------------------------------------------------------------------------------------------- ledger


@every_method
def test_a_shared_ledger_is_charged_once_a_fit(kind, solver, draws):
    ledger = Ledger(3.0, 1e-5)
    model = make(kind, ledger=ledger, solver=solver).fit(X, Y)
    entry = ("", kind.__name__, Budget(1.0, 1e-6))
    assert ledger.entries == (entry,)
    assert ledger.spent == Budget(1.0, 1e-6)
    assert ledger.events == model.release_.events
    assert model.release_.verify()
    assert 0.9 < model.release_.cost() <= 1.0
    model.fit(X, Y)
    model.predict(X)
    model.score(X, Y)
    assert ledger.entries == (entry, entry)
    assert drawn(ledger) == 2 * draws


@pytest.mark.few(2)
@every_estimator
def test_an_exhausted_ledger_refuses_before_anything_is_drawn(kind):
    ledger, random = Ledger(1.5, 1e-5), np.random.RandomState(3)
    model = make(kind, ledger=ledger).fit(X, Y)
    late = make(kind, ledger=ledger, random_state=random, callback=pytest.fail)
    before, state = ledger.events, random.get_state()
    with pytest.raises(
        BudgetError, match=r"has epsilon 0\.5, delta 9e-06 left .* ask for less, or"
    ):
        late.fit(X, Y)
    assert ledger.events == before
    assert ledger.spent == Budget(1.0, 1e-6)
    assert np.array_equal(random.get_state()[1], state[1])
    assert random.get_state()[2] == state[2]
    assert not fitted_names(late)
    assert same_model(
        make(kind, ledger=ledger, epsilon=0.5).fit(X, Y), make(kind, epsilon=0.5).fit(X, Y)
    )
    assert model.release_.epsilon == 1.0


@every_estimator
def test_a_fit_without_a_ledger_spends_its_own_budget(kind):
    model = make(kind)
    first, second = model.fit(X, Y).release_, model.fit(X, Y).release_
    assert first.epsilon == second.epsilon == 1.0
    assert model.ledger is None


@pytest.mark.few(11)
@every_estimator
@pytest.mark.parametrize("one", [1, np.int64(1), np.float32(1), np.float64(1)], ids=repr)
def test_budgets_are_numbers_of_any_kind(kind, one):
    ledger = Ledger(2.0, 1e-5)
    model = make(kind, epsilon=one, delta=np.float64(1e-6), ledger=ledger).fit(X, Y)
    assert ledger.spent == Budget(1.0, 1e-6)
    assert same_model(model, make(kind).fit(X, Y))
    assert Release.from_json(model.release_.to_json()).verify()


@every_estimator
def test_clones_and_copies_spend_from_the_same_ledger(kind):
    ledger = Ledger(10.0, 1e-4)
    model = make(kind, ledger=ledger)
    for other in (clone(model), copy.copy(model), copy.deepcopy(model)):
        assert other.ledger is ledger
        other.fit(X, Y)
    assert len(ledger.entries) == 3


@pytest.mark.few(2)
@every_estimator
def test_cross_validation_spends_for_every_fold(kind):
    ledger = Ledger(10.0, 1e-4)
    scores = cross_val_score(
        make(kind, ledger=ledger, epsilon=2.0), X, Y, cv=3, error_score="raise"
    )
    assert scores.min() > 0.8 or kind in CLUSTERERS
    assert ledger.entries == (("", kind.__name__, Budget(2.0, 1e-6)),) * 3
    with pytest.raises(BudgetError, match="ask for less"):
        cross_val_score(make(kind, ledger=ledger, epsilon=2.0), X, Y, cv=3, error_score="raise")
    assert ledger.spent.epsilon == 10.0  # two more folds fitted before the third was refused


@pytest.mark.few(1)
@every_estimator
def test_a_grid_search_spends_for_every_fit_and_keeps_the_best(kind):
    ledger = Ledger(100.0, 1e-4)
    tried = {KMeans: ["lloyd", HYBRID, "tree"], KMedianAnywhere: ["greedy", Swaps(), "coreset"],
             KMedianCentres: ["hybrid", MEDIANS, "cell_medians"]}  # fmt: skip
    solvers = tried.get(kind, [Local(generations=12), EEM(generations=12), "dpsga"])
    search = GridSearchCV(make(kind, ledger=ledger), {"solver": solvers}, cv=2, n_jobs=1)
    search.fit(X, Y)
    assert len(ledger.entries) == 3 * 2 + 1
    assert search.best_params_["solver"] in solvers
    best = search.best_estimator_
    assert best.ledger is ledger
    assert same_model(best, make(kind, **search.best_params_).fit(X, Y))
    assert search.score(X, Y) > 0.8 or kind in CLUSTERERS


def halve(table: Any) -> Any:
    """A step that learns nothing from records; a fitted scaler would leak."""
    return table / 2


@pytest.mark.few(2)
@every_estimator
def test_settings_can_be_searched_inside_a_pipeline(kind):
    ledger = Ledger(10.0, 1e-4)
    steps = Pipeline([("halve", FunctionTransformer(halve)), ("model", make(kind, ledger=ledger))])
    solvers = [DECLARED[kind]["solver"], "auto"]
    search = GridSearchCV(steps, {"model__solver": solvers}, cv=2)
    best = search.fit(X, Y).best_estimator_
    assert len(ledger.entries) == 5
    assert same_model(best["model"], make(kind, solver=best["model"].solver).fit(X / 2, Y))
    assert np.array_equal(best.predict(X), best["model"].predict(X / 2))
    assert search.score(X, Y) > 0.8 or kind in CLUSTERERS


def dumped(model: Any) -> bytes:
    return pickle.dumps(model)


def written(model: Any) -> bytes:
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


WAYS = {
    "pickle": (dumped, pickle.loads),
    "oldest pickle": (partial(pickle.dumps, protocol=2), pickle.loads),
    "joblib": (written, lambda data: joblib.load(io.BytesIO(data))),
}


@pytest.mark.few(7)
@every_estimator
@pytest.mark.parametrize(("save", "load"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("domain", [(-1, 1), Box([-1] * 3, [1] * 3), L2Ball(1.0), SCHEMA], ids=repr)
def test_a_saved_model_predicts_alike_and_its_ledger_is_closed(kind, save, load, domain):
    ledger = Ledger(2.5, 1e-4)
    model = make(kind, ledger=ledger, domain=domain).fit(FRAME, Y)
    other = load(save(model))
    assert same_model(other, model)
    assert np.array_equal(asked(other, FRAME), asked(model, FRAME))
    assert other.release_.to_json() == model.release_.to_json()
    assert other.ledger.entries == ledger.entries
    with pytest.raises(
        BudgetError, match="this ledger is closed: it is a copy; spend from the orig"
    ):
        other.fit(FRAME, Y)
    with pytest.raises(BudgetError, match="this ledger is closed"):
        clone(other).fit(FRAME, Y)
    assert same_model(other, model)
    assert len(ledger.entries) == 1
    model.fit(FRAME, Y)
    assert len(ledger.entries) == 2


# ------------------------------------------------------------------------------------ interruptions


class Stop:
    """Ctrl-C at a given generation."""

    def __init__(self, at: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.at, self.error = at, error

    def __call__(self, generation: Any) -> None:
        if generation.index == self.at:
            raise self.error


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("kind", "solver", "at", "until"),
    [pytest.param(kind, case[0], *case[2:], id=f"{kind.__name__}-{name}")
     for kind, methods in METHODS.items() for name, case in methods.items()],
)  # fmt: skip
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_fit_leaves_a_ledger_that_tells_the_truth(kind, solver, at, until, error):
    """The whole grant is charged; what was drawn until then is listed; no model is left behind."""
    ledger = Ledger(5.0, 1e-4)
    model = make(kind, solver=solver, ledger=ledger, callback=Stop(at, error))
    with pytest.raises(error):
        model.fit(X, Y)
    assert ledger.spent == Budget(1.0, 1e-6)
    assert drawn(ledger) == until
    assert not fitted_names(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.set_params(callback=None).fit(X, Y)
    assert same_model(model, make(kind, solver=solver).fit(X, Y))
    assert ledger.spent == Budget(2.0, 2e-6)


@every_classifier
def test_an_interrupted_second_class_is_charged_too(kind):
    ledger, heard = Ledger(5.0, 1e-4), []

    def listen(generation):
        heard.append(generation.index)
        if len(heard) == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(kind, classes=[0, 1, 2], ledger=ledger, callback=listen).fit(X, MANY)
    assert heard == [*range(1, 13), 1, 2, 3]
    assert drawn(ledger) == 15
    assert ledger.spent == Budget(1.0, 1e-6)


@every_estimator
def test_a_failed_refit_leaves_the_model_as_it_was(kind):
    ledger = Ledger(5.0, 1e-4)
    model = make(kind, ledger=ledger).fit(FRAME, Y)
    kept, before = make(kind).fit(FRAME, Y), {n: getattr(model, n) for n in fitted_names(model)}
    wider = np.c_[X, X]

    def unchanged() -> bool:
        now = {name: getattr(model, name) for name in fitted_names(model)}
        return now.keys() == before.keys() and all(now[n] is before[n] for n in now)

    if kind in CLASSIFIERS:
        with pytest.raises(ValueError, match="y has labels outside"):
            model.fit(wider, Y + 1)
        assert unchanged()
        with pytest.raises(ValueError, match="y must have one label for each record"):
            model.fit(wider, Y[1:])
        assert unchanged()
    model.set_params(callback=Stop(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(wider, Y)
    assert unchanged()
    model.set_params(domain=SCHEMA)
    with pytest.raises(ValueError, match="X lacks the declared columns"):
        model.fit({"age": X[:, 0]}, Y)
    assert unchanged()
    assert np.array_equal(model.predict(FRAME), kept.predict(FRAME))
    assert ledger.spent == Budget(2.0, 2e-6)


# ---------------------------------------------------------------------------------------- bad input

WORDS = X.astype(object)
WORDS[5, 1] = f"canary {SECRET}"
ODD = np.array(["u", "v"], dtype=object)[Y]
ODD[5] = SECRET
BLANK = np.array(["u", "v"], dtype=object)[Y]
BLANK[5] = None


def case_of(message: str, X: Any = X, y: Any = Y, **changes: Any) -> Any:
    return pytest.param(X, y, changes, message, id=f"{re.sub('[^a-zA-Z0-9_]+', ' ', message)[:50]}")


BAD = [
    # tables
    case_of("Input (X )?contains NaN", X=np.where(X > 0.9, np.nan, X)),
    case_of("X must hold numbers", X=pd.DataFrame(X).astype("Float64").mask(X > 0.9)),
    case_of("Input (X )?contains NaN", X=sp.csr_array(np.where(X > 0.9, np.nan, X))),
    case_of("Input (X )?contains infinity", X=np.where(X > 0.9, np.inf, X)),
    case_of("Input (X )?contains infinity", X=np.where(X > 0.9, -np.inf, X)),
    case_of(r"Expected 2D array, got 1D array instead.*Reshape your data", X=X[:, 0]),
    case_of(r"Expected 2D array, got scalar array instead.*Reshape your data", X=SECRET),
    case_of("Expected (2D|a 2-dim).* instead.*Reshape your data", X=pd.Series(X[:, 0])),
    case_of("Found array with dim 3", X=X[None]),
    case_of("Complex data not supported", X=X + 1j * SECRET),
    case_of("Complex data not supported", X=sp.csr_array(X + 1j * SECRET)),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=WORDS),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=WORDS.tolist()),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=pd.DataFrame(WORDS)),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=WORDS.astype(str)),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=WORDS.astype(bytes)),
    case_of("X must hold numbers; pass numbers, or declare a Schema", X=[[SECRET, 1.0], [0.0]]),
    case_of(r"Found array with 0 sample\(s\)", X=X[:0], y=Y[:0]),
    case_of(r"Found array with 0 feature\(s\)", X=X[:, :0]),
    case_of("sparse X must have 0 inside the bounds", X=sp.csr_array(X), domain=(0.5, 1)),
    case_of("X has 3 columns but Box declares 5", domain=Box(-1, 1, 5)),
    case_of("X has 3 columns but L2Ball declares 2", domain=L2Ball(1, 2)),
    case_of(r"X lacks the declared columns \['age', 'height', 'weight'\]",
            X=FRAME.add_prefix("old "), domain=SCHEMA),
    case_of("column 'age' has missing values", X=FRAME.assign(age=np.nan), domain=SCHEMA),
    case_of("column 'age' has .*cells that are not numbers", X=FRAME.assign(age="canary"),
            domain=SCHEMA),
    case_of("column 'age' has values that are not declared", X=FRAME.assign(age="canary"),
            domain=Schema({"age": Categorical(["old"])})),
    case_of("X must have columns of one equal length", X={"age": X[:, 0], "height": X[1:, 0]},
            domain=Schema({"age": Numeric(0, 1), "height": Numeric(0, 1)})),
    case_of(r"must have the 3 declared columns", X=sp.csr_array(X), domain=SCHEMA),
    case_of("X must have at least one record", X=FRAME[:0], y=Y[:0], domain=SCHEMA),
    # domains
    *(case_of(r"domain \(\w+\) must be a pair of bounds or a Domain; pass domain=", domain=domain)
      for domain in (3.0, (1, 2, 3), {"low": -1}, Box, np.array([-1, 1]), "ab")),
    case_of("Box lower bounds must not exceed the upper ones", domain=(1, -1)),
    case_of("Box bounds must be finite", domain=(0, np.inf)),
    case_of("Box is narrower than its grid", domain=(1000.1, 1000.2)),
    # budgets
    *(case_of(r"epsilon \(.*\) must be a number of at least 0", epsilon=epsilon)
      for epsilon in (-1, np.nan, "1", None, True, [1.0], 1j, -np.inf, np.array([1.0, 2.0]))),
    case_of(r"epsilon \(0\) must be positive", epsilon=0),
    case_of(r"epsilon \(inf\) is for the plain genetic algorithm", epsilon=np.inf),
    *(case_of(r"delta \(.*\) must lie in \[0, 1\)", delta=delta)
      for delta in (-1e-9, 1, np.nan, "0", None)),
    # settings
    *(case_of(r"solver \(.*\) must be one of .*settings", solver=solver)
      for solver in ("newton", None, 3, Local, np.zeros(2))),
    *(case_of(r"adjacency \(.*\) must be 'replace' or 'add_remove'", adjacency=adjacency)
      for adjacency in ("swap", None)),
    *(case_of("n_public must be given under adjacency='add_remove'", adjacency="add_remove",
              solver=solver) for solver in ("eem", "privgene")),
    *(case_of(r"n_public \(.*\) must be a positive whole number", n_public=n)
      for n in (0, -1, 2.5, "many")),
    *(case_of(r"n_threads \(.*\) must be a whole number of at least 1", n_threads=n)
      for n in (0, -1, 1.5)),
    *(case_of(r"random_state \(.*\) must", random_state=state) for state in (-1, "x", 1.5, True)),
    case_of(r"callback \(int\) must be a function; pass callback\(generation\)", callback=3),
    *(case_of(r"ledger \(\w+\) must be a Ledger; pass Ledger\(", ledger=ledger)
      for ledger in (3.0, Ledger, Budget(1.0))),
]  # fmt: skip


BAD_OF_CLASSIFIERS = [
    case_of("y must have one label for each record of X", y=Y[1:]),
    case_of("y must have one label for each record of X", X=FRAME, y=Y[1:], domain=SCHEMA),
    case_of("y should be a 1d array", y=None),
    case_of("y should be a 1d array", y=np.c_[Y, Y]),
    case_of("y should be a 1d array", y=SECRET),
    case_of("Sparse data was passed", y=sp.csr_array(Y[None])),
    case_of("y has labels outside the declared classes; pass classes=", y=Y + 1),
    case_of("y has labels outside the declared classes; pass classes=", y=Y * OTHER_SECRET),
    case_of("y has labels outside the declared classes; pass classes=", y=X[:, 0]),
    case_of("y has labels outside the declared classes; pass classes=", y=np.where(Y, "yes", "0")),
    case_of("y has labels outside the declared classes; pass classes=", y=Y.astype(object) * 2),
    case_of("y has labels outside the declared classes; pass classes=", y=ODD, classes=["u", "v"]),
    case_of("y has labels outside the declared classes; pass classes=", y=BLANK,
            classes=["u", "v"]),
    case_of("y has labels outside the declared classes; pass classes=", y=BLANK[::-1],
            classes=["u", "v"]),
    case_of("y has labels outside the declared classes; pass classes=", y=np.where(Y, np.nan, 0)),
    case_of("y has labels outside the declared classes; pass classes=",
            y=np.array([{SECRET}] * N, dtype=object)),
    *(case_of(rf"classes must be at least two different labels, but \w+ got {count} class\(es\)",
              classes=classes)
      for classes, count in (([], 0), ([0], 1), ([1, 1], 1), (3, 1), ("ab", 1), ([[0, 1]], 2),
                             ([0, 1, 1], 2))),
    *(case_of("classes must be labels of one kind; pass classes=", classes=classes)
      for classes in ([None, 1], [0, "a", None], [{0}, {1}], [[0], [1, 2]])),
    *(case_of("n_public must be given under adjacency='add_remove'", adjacency="add_remove",
              solver=solver) for solver in ("auto", "local")),
]  # fmt: skip

BAD_OF_CLUSTERERS = [
    *(case_of(r"n_clusters \(.*\) must be a positive whole number; pass n_clusters=8", n_clusters=k)
      for k in (0, -1, 2.0, "2", True, None)),
]  # fmt: skip

BAD_OF_CLASSIFIERS += [
    case_of(r"calibrate \('yes'\) must be True, False or 'auto'; pass one", calibrate="yes"),
    case_of(r"calibrate \(True\) must be False for a solver with paper=True and for an infinite "
            r"epsilon; pass calibrate=False or calibrate='auto'",
            calibrate=True, solver=PrivGene(paper=True)),
]  # fmt: skip

# `KMeans` fills in missing numbers; centres without facilities are found by no search.
FILLED = [case for case in BAD if not case.id.startswith("column age has ")]
UNSEARCHED = [case for case in BAD if not case.id.startswith("n_public must be given")]
UNDECLARED = case_of(r"\w+ needs the declared domain of a record; pass domain=\(low", domain=None)
BAD_OF: dict[Any, list[Any]] = {
    **{kind: [*BAD, *BAD_OF_CLASSIFIERS, UNDECLARED] for kind in CLASSIFIERS},
    LinearSVC: [
        *BAD, *BAD_OF_CLASSIFIERS, UNDECLARED,
        *(case_of(r"C \(.*\) must be a positive number; pass C=1.0", C=C, solver="eem")
          for C in (0, -1.0, math.nan, math.inf, "1", None, True)),
        *(case_of(r"C \(10.0\) must be 1.0 for solver .*, which does not weigh its loss; pass "
                  r"solver='eem', 'privgene' or Local\(scoring='loss'\), or leave C out",
                  C=10.0, solver=solver)
          for solver in ("gradient", "select_refine", "objective", "output", "privatesvm", "local",
                         "sgd")),
        *(case_of(r"C \(10.0\) must be 1.0 for solver", C=10.0, solver=solver)
          for solver in ("dpsga", "subsample")),
    ],
    KMeans: [
        *FILLED, *BAD_OF_CLUSTERERS, UNDECLARED,
        case_of(r"n_public must be given .*, or UniformGrid\(cells=...\)", solver="grid",
                adjacency="add_remove"),
        *(case_of(r"noise this wide does not fit in 64 bits; pass a larger", epsilon=1e-30,
                  delta=0.0, solver=solver)
          for solver in ("lloyd", "grid", "tree", "hybrid", "over_seeded", "mean")),
        *(case_of(r"postprocess \(.*\) must be None, 'auto', 'mcmc' or 'an", postprocess=name)
          for name in ("average", "MCMC", True, 3, ["mcmc"])),
        *(case_of(r"postprocess \('mcmc'\) needs noisy counts of clusters or cells, which solver",
                  postprocess="mcmc", solver=solver)
          for solver in ("mean", "eem", "gupt")),
        case_of(r"solver \('newton'\) must be one of lloyd", postprocess="anneal", solver="newton"),
        *(case_of(r"scale \(.*\) must be 'equal' or a number from 0.1 to 1; pass scale='equal'",
                  scale=scale) for scale in ("variance", 0.05, 1.5, math.nan, None, True)),
        case_of(r"scale \('equal'\) is for the categories of a Schema; leave it out, or pass a Sch",
                scale="equal"),
    ],
    KMedianAnywhere: [
        *BAD, *BAD_OF_CLUSTERERS,
        case_of(r"metric \(l1\) must be 'l2' if there are no facilities; pass metric='l2', or the",
                facilities=None),
        case_of(r"n_clusters \(31\) must be at most the number of facilities \(30\); pass fewer",
                n_clusters=31),
        case_of(r"clip must bound the distances of a user-defined metric; pass clip=\(lo, hi\)",
                metric=cdist),
        case_of(r"metric \('cosine'\) must be 'l1', 'l2' or a function", metric="cosine"),
        case_of(r"clip \(2.0, 1.0\) must increase from 0 or more", clip=(2, 1)),
        case_of("cells are found for l1 and l2 distances of at most 3 columns; use a solver that n",
                X=np.c_[X, X], solver="synopsis"),
        *(case_of(r"noise this wide does not fit in 64 bits; pass a larger", epsilon=1e-30,
                  delta=0.0, solver=solver) for solver in ("coreset", "synopsis")),
    ],
    KMedianCentres: [
        *UNSEARCHED, *BAD_OF_CLUSTERERS, UNDECLARED,
        case_of(r"metric \(l1\) must be 'l2' if there are no facilities; pass metric='l2', or the",
                metric="l1"),
        case_of(r"clip \(2.0, 1.0\) must increase from 0 or more", clip=(2, 1)),
        *(case_of(r"noise this wide does not fit in 64 bits; pass a larger", epsilon=1e-30,
                  delta=0.0, solver=solver) for solver in ("medians", "cell_medians")),
    ],
}  # fmt: skip


@pytest.mark.few(78)
@pytest.mark.parametrize(
    ("kind", "table", "labels", "changes", "message"),
    [pytest.param(kind, *bad.values, id=f"{kind.__name__}-{bad.id}")
     for kind, cases in BAD_OF.items() for bad in cases],
)  # fmt: skip
def test_bad_input_is_refused_clearly_and_costs_nothing(kind, table, labels, changes, message):
    ledger, random = Ledger(5.0, 1e-4), np.random.RandomState(0)
    model = make(kind, **{"ledger": ledger, "random_state": random, "callback": print, **changes})
    state = random.get_state()[1].copy()
    with pytest.raises((ValueError, TypeError), match=re.compile(message, re.DOTALL)) as caught:
        model.fit(table, labels)
    assert not ledger.entries
    assert np.array_equal(random.get_state()[1], state)
    assert not fitted_names(model)
    shown = str(caught.value)
    assert_harmless(shown)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def assert_harmless(text: str) -> None:
    """No record and no label."""
    for secret in (SECRET, OTHER_SECRET, X[7, 1], X[-1, -1]):
        assert repr(float(secret))[:6] not in text  # as Python or numpy would print it
    assert "canary" not in text


@every_classifier
@pytest.mark.filterwarnings("ignore::privfit.PrivacyLeakWarning", INVALID_CAST)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(N), r"classes must be at least two different labels, but \w+ got 1 class\(es\)"),
        (X[:, 0], "Unknown label type: continuous"),
        (np.where(Y, np.nan, 0), "Input y contains NaN"),
        (np.array([{SECRET}] * N, dtype=object), "classes must be labels of one kind; pass cl"),
        (ODD, "classes must be labels of one kind; pass classes="),
        (np.array([None, 1] * N, dtype=object)[:N], "classes must be labels of one kind"),
    ],
    ids=["one class", "continuous", "missing", "sets", "mixed", "nothing"],
)
def test_bad_labels_are_refused_when_classes_are_read_off_them(kind, labels, message):
    ledger = Ledger(5.0, 1e-4)
    model = make(kind, classes=None, ledger=ledger)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, labels)
    assert not ledger.entries
    assert not fitted_names(model)
    assert_harmless(str(caught.value))


@pytest.mark.few(23)
@every_estimator
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.c_[X, X], "X has 6 features, but \\w+ is expecting 3 features as input"),
        (sp.csr_array(X[:, :2]), "X has 2 features, but \\w+ is expecting 3 features as input"),
        (np.where(X > 0.9, np.nan, X), "Input (X )?contains NaN"),
        (np.where(X > 0.9, np.inf, X), "Input (X )?contains infinity"),
        (X[0], "Expected 2D array, got 1D array instead.*Reshape your data"),
        (X + 1j * SECRET, "Complex data not supported"),
        (WORDS, "X must hold numbers; pass numbers, or declare a Schema"),
        (X[:0], r"Found array with 0 sample\(s\)"),
    ],
)
def test_bad_input_to_a_fitted_model_is_refused_without_showing_it(kind, table, message):
    model = make(kind).fit(X, Y)
    model.set_params(ledger=Ledger(5.0))
    asks = [model.predict, partial(asked, model)]
    if kind in CLUSTERERS:
        asks += [model.score, partial(private_cost(model), epsilon=1.0)]
    for ask in asks:
        with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)) as caught:
            ask(table)
        assert not model.ledger.entries
        assert_harmless(str(caught.value))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.few(5)
@every_method
def test_little_and_dull_data_are_fitted(kind, solver, draws):
    """One record, constant columns, a domain of one point, all labels alike, one column."""
    dull = [(X[:1], Y[:1], (-1, 1)), (np.full_like(X, 0.5), Y, (-1, 1)), (X, Y, (0, 0)),
            (X, Y, Box([-1, 0.5, -1], [1, 0.5, 1])), (X, np.ones(N), (-1, 1)),
            (X[:, :1], Y, (-1, 1)), (X[:2], Y[:2], (-1, 1))]  # fmt: skip
    for table, labels, domain in dull:
        model = make(kind, solver=solver, domain=domain).fit(table, labels)
        assert np.isfinite(asked(model, table)).all()
        assert model.release_.verify()


def test_every_raise_is_reached_by_a_case_above():
    fitted = make(LogisticRegression).fit(X, Y)
    calls: list[Callable[[], Any]] = [
        *(partial(make(kind, **bad.values[2]).fit, *bad.values[:2])
          for kind, cases in BAD_OF.items() for bad in cases),
        partial(make(LogisticRegression).fit, X, Y, sample_weight=Y),
        partial(make(LogisticRegression).fit, X, Y, weights=Y),
        partial(fitted.predict, np.c_[X, X]),
        partial(fitted.predict_interval, Stream(X)),
        partial(fitted.predict, [{"a": 1.0}]),
        KMedian(2, facilities=X[:5], metric=cdist, clip=(0, 9)).fit(X).to_sklearn,
        partial(make(LogisticRegression, classes=None).fit, Stream(X), Y),
        partial(make(LogisticRegression, solver="sgd").fit, Stream(X), Y),
        partial(make(KMeans, solver="gupt").fit, Stream(X)),
        make(KMeans, solver="mean").fit(X).cluster_size_intervals,
        partial(KMedian(facilities=3).fit, X),
        partial(make(LinearSVC).fit(X, Y).set_params(calibrate=True).predict_proba, X),
        partial(fitted.predict, X, threshold="0.5"),
        partial(fitted.weight_errors, [1.0]),
        partial(fitted.importances, "no class"),
        partial(make(LogisticRegression, classes=[0, 1, 2]).fit(X, Y).predict, X, threshold=0.5),
    ]  # fmt: skip
    seen = "\n".join(messages_of(call) for call in calls)
    # Binary features, and models of scikit-learn alone, have files of their own.
    others = {"bayes.py", "select.py", "text.py", "serving.py"}
    sources = sorted(Path(privfit.__file__).parent.glob("estimators/*.py"))
    sources = [source for source in sources if source.name not in others]
    missed = [
        f"{source.name}:{line}: {' ... '.join(parts)}"
        for source in sources
        for line, parts in raises_in(source)
        if not all(part in seen for part in parts)
    ]
    assert not missed, "no case reaches\n" + "\n".join(missed)
    assert sum(len(raises_in(source)) for source in sources) >= 8


# ----------------------------------------------------------------------------- nothing private left

# What a fit keeps besides its released arrays, what its release holds, and how long an array is.
KEPT: dict[Any, set[str]] = {
    **{
        kind: {"classes_", "domain_", "n_features_in_", "path_", "release_"} for kind in CLASSIFIERS
    },
    KMeans: {
        "cluster_size_errors_",
        "cluster_sizes_",
        "domain_",
        "n_features_in_",
        "path_",
        "release_",
    },
    KMedianAnywhere: {"clip_", "domain_", "metric_", "n_features_in_", "path_", "release_"},
    KMedianCentres: {"clip_", "domain_", "metric_", "n_features_in_", "path_", "release_"},
}
PARAMETERS: dict[Any, set[str]] = {
    **{kind: {"coef", "intercept", "classes"} for kind in CLASSIFIERS},
    KMeans: {"centers"},
    KMedianAnywhere: {"facilities", "centers"},
    KMedianCentres: {"centers"},
}
SETTINGS: dict[Any, set[str]] = {
    **{kind: {"solver", "budget_split", "fit_intercept"} for kind in CLASSIFIERS},
    LinearSVC: {"solver", "budget_split", "fit_intercept", "C"},
    KMeans: {"solver", "n_clusters", "postprocess"},
    KMedianAnywhere: {"solver", "n_clusters", "clip", "metric"},
    KMedianCentres: {"solver", "n_clusters", "clip", "metric"},
}
# What runs note beside the settings of their solvers: public numbers that follow from these.
NOTED = {
    **{key: {"selections", "eps_s"} for key in (Local, EEM, PrivGene, DPSGA, FrankWolfe)},
    **{key: {"selections", "eps_s"} for key in (Greedy, Swaps, Coreset)},
    **{key: {"average"} for key in (Hybrid, Medians, OverSeeded, SelectRefine)},
    UniformGrid: {"parts"},
}
MOST_NUMBERS = {**dict.fromkeys(CLASSIFIERS, 4), KMeans: 27, KMedianAnywhere: 30,
                KMedianCentres: 27}  # fmt: skip
# Solvers whose noise is kept: a function of releases, as tests/linear/test_uncertainty.py shows.
KNOWS_NOISE = (Gradient, OutputPerturbation, PrivateSVM, SelectRefine)
KNOWS_SIZES = (Lloyd, Tree, Hybrid, OverSeeded)  # counts of clusters or cells are released
# Solvers whose releases are kept part by part, for post-processing.
IN_PARTS = (Lloyd, Hybrid, Mean, OverSeeded, Tree, UniformGrid)
PATHS = ("Path", "Spread", "Clustering", "Draws", "Event", "Budget", "LloydTrace", "Cells", "Box",
         "Grid", "Sizes", "CellCounts", "ClusterSums", "NormCounts")  # fmt: skip


def reachable(root: Any) -> list[Any]:
    """All that hangs on an object: attributes, items, fields, slots."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen.add(id(thing))
        found.append(thing)
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += thing
        elif isinstance(thing, np.ndarray):
            waiting += [thing.base] if thing.base is not None else []
            waiting += thing.tolist() if thing.dtype == object else []
        waiting += list(getattr(thing, "__dict__", {}).values())
    return found


@pytest.mark.few(19)
@every_method
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_fitted_model_holds_released_values_only(kind, solver, draws, adjacency):
    model = make(kind, solver=solver, adjacency=adjacency, n_public=400).fit(X, Y)
    names = fitted_names(model)
    assert names == KEPT[kind] | set(released(model))
    release = model.release_
    plain = isinstance(solver, Lloyd) and not solver.residual
    more = {"trace"} if plain else {"noise"} if isinstance(solver, KNOWS_NOISE) else set()
    if kind is KMeans and isinstance(solver, KNOWS_SIZES):
        more = more | {"sizes", "size_noise"}
    more |= {"parts"} if kind is KMeans and isinstance(solver, IN_PARTS) and not plain else set()
    parts = [id(thing) for thing in reachable(dict(release.parameters).get("parts"))]
    assert set(release.parameters) == PARAMETERS[kind] | more
    noted = {field.name for field in fields(solver)} - set(solver.unlisted)
    noted |= {name for name in solver.unlisted if getattr(solver, name) is not None}
    noted |= NOTED.get(type(solver), set())
    assert set(release.settings) == SETTINGS[kind] | noted
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "inertia_")
    assert adjacency == release.adjacency
    path = vars(model).pop("path_")
    assert_path_is_released(path, len(path.generations[0]))
    sizes = {N, int(Y.sum()), N - int(Y.sum())}
    for thing in reachable(model):
        if isinstance(thing, np.ndarray) or sp.issparse(thing):
            assert not sizes & set(thing.shape)
            assert thing.size <= MOST_NUMBERS[kind] or id(thing) in parts
        if isinstance(thing, int | float | np.number):
            assert thing not in sizes
        assert thing is model or type(thing).__module__.split(".")[0] in {
            "builtins", "numpy", "privfit"}  # fmt: skip
        assert not is_dataclass(thing) or type(thing).__name__ in {
            "Release", "Event", "Box", "Grid", "Budget", "Tree", "Lloyd", "Local", "Gradient",
            type(solver).__name__,
        }  # fmt: skip


def assert_path_is_released(path: Any, survivors: int) -> None:
    """It has candidates, draws and settings, and nothing of the size of the records."""
    kinds = set()
    for thing in reachable(path):
        if isinstance(thing, np.ndarray):
            assert N not in thing.shape
        if is_dataclass(thing):
            kinds.add(type(thing).__name__)
    assert kinds <= {*PATHS}
    assert all(1 <= len(one) <= survivors for one in path.generations)
    assert all(one.base is None for one in path.generations)


@pytest.mark.few(20)
@every_method
@pytest.mark.parametrize(("save", "load"), WAYS.values(), ids=WAYS)
def test_no_record_is_in_a_saved_model(kind, solver, draws, save, load):
    model = make(kind, solver=solver, ledger=Ledger(1.0, 1e-6)).fit(X, Y)
    data, path = save(model), vars(model).pop("path_")
    for secret in (*X[:20].flat, *X[-20:].flat):
        for form in ("<d", ">d", "<f"):
            assert struct.pack(form, secret) not in data
        assert repr(float(secret)).encode() not in data
    assert Y.astype(np.int64).tobytes()[:64] not in data
    assert Y.astype(bool).tobytes()[:64] not in data
    numbers = sum(one.size for one in reachable(path.kept) if isinstance(one, np.ndarray))
    assert len(save(model)) < (4000 if kind in CLASSIFIERS else 6000) + 20 * numbers
    numbers = sum(one.size for one in reachable(path) if isinstance(one, np.ndarray))
    assert len(data) - len(save(model)) < 3000 + 400 * len(path.generations) + 20 * numbers


@every_estimator
@pytest.mark.parametrize(("save", "load"), WAYS.values(), ids=WAYS)
def test_no_word_of_a_table_is_in_a_saved_model(kind, save, load):
    """Values that fall to the other level, an undeclared column, and its name."""
    words = np.where(Y == 1, "old", "canary")
    frame = FRAME.assign(status=words, **{"canary column": "canary", "age": FRAME.age + 0.25})
    schema = Schema({"age": Numeric(-1, 1), "status": Categorical(["old"], other=True)})
    model = make(kind, domain=schema).fit(frame, Y)
    assert b"old" in save(model)
    assert b"canary" not in save(model)
    assert struct.pack("<d", SECRET + 0.25) not in save(model)


@pytest.mark.slow
@every_estimator
def test_a_fitted_model_lets_go_of_the_records(kind):
    table, labels = X.copy(), Y.copy()
    ends = [weakref.ref(table), weakref.ref(labels)]
    model = make(kind, ledger=Ledger(1.0, 1e-6), callback=len_of_nothing).fit(table, labels)
    del table, labels
    gc.collect()
    assert [end() for end in ends] == [None, None]
    assert model.release_.verify()


def len_of_nothing(generation: Any) -> int:
    return 0


def numbers_in(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)}


@every_estimator
def test_what_a_model_shows_is_harmless(kind, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    model = make(kind, ledger=Ledger(1.0, 1e-6), adjacency="add_remove", n_public=400).fit(X, Y)
    shown = [repr(model), str(model), repr(model.get_params()), repr(model.release_),
             model.release_.to_json(), repr(model.ledger), repr(vars(model)),
             repr(model.domain_)]  # fmt: skip
    for text in shown:
        assert_harmless(text)
        assert not numbers_in(text) & {N, int(Y.sum()), N - int(Y.sum())}
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


# ------------------------------------------------------------------------------------------- random


@pytest.mark.few(8)
@every_method
def test_threads_and_the_order_of_records_do_not_matter(kind, solver, draws, threads_used, rng):
    expected = make(kind, solver=solver, n_threads=1).fit(X, Y)
    # The fits of Gupt are not ours; KMeans packs all records before.
    parallel = issubclass(kind, KMeans) or not isinstance(solver, Gupt)
    assert set(threads_used) == ({1} if parallel else set())
    # Gupt's coins fall on records in turn: only their law does not depend on the order.
    order = slice(None) if isinstance(solver, Gupt) else rng.permutation(N)
    for threads, rows in ((4, slice(None)), (1, order), (4, order)):
        model = make(kind, solver=solver, n_threads=threads).fit(X[rows], Y[rows])
        assert same_model(model, expected)
        assert model.release_.to_json() == expected.release_.to_json()
    assert not parallel or max(threads_used) == (4 if has_openmp() else 1)


@pytest.mark.few(2)
@every_estimator
def test_without_a_seed_every_fit_differs(kind):
    """Of sets of facilities there are few, but twelve alike would be a chance below 1e-12."""
    models = [make(kind, random_state=None, epsilon=0.1).fit(X, Y) for _ in range(12)]
    found = {b"".join(array.tobytes() for array in released(model).values()) for model in models}
    assert len(found) == 12 or (len(found) > 1 and kind is KMedianAnywhere)
    assert not any(model.release_.seeded for model in models)


@every_estimator
@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng, int])
def test_a_seed_of_any_kind_gives_the_same_model_and_is_confessed(kind, source):
    one, other, third = (make(kind, random_state=source(seed), epsilon=0.1).fit(X, Y)
                         for seed in (3, 3, 4))  # fmt: skip
    assert same_model(one, other)
    assert not same_model(one, third)
    assert one.release_.seeded
    assert '"seeded": true' in one.release_.to_json()
    if source is not int:
        assert not same_model(make(kind, random_state=one.random_state, epsilon=0.1).fit(X, Y), one)


# ------------------------------------------------------------------------------------------ manners


@pytest.mark.few(27)
@every_method
def test_a_fit_changes_nothing_that_it_was_given(kind, solver, draws):
    table, labels = X.copy(), Y.copy()
    table.setflags(write=False)
    labels.setflags(write=False)
    told = {"classes": [1, 0]} if kind in CLASSIFIERS else {}
    model = make(kind, solver=solver, domain=[-1, 1], **told)
    before = model.get_params(deep=False)
    assert model.fit(table, labels) is model
    after = model.get_params(deep=False)
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
    assert all(after[name] == value for name, value in told.items())
    assert np.array_equal(table, X)
    assert np.array_equal(labels, Y)
    assert set(vars(model)) == set(before) | fitted_names(model)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLUSTERERS)
def test_a_clustering_can_be_made_again_of_other_records(kind):
    wider, solver = np.c_[X, X[:, 0]], "hybrid" if kind is KMedianCentres else "eem"
    model = make(kind).fit(FRAME, Y).set_params(solver=solver, n_clusters=4).fit(wider)
    assert same_model(model, make(kind, solver=solver, n_clusters=4).fit(wider))
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert model.cluster_centers_.shape == (4, 4)


@every_classifier
def test_a_model_can_be_fitted_again_to_other_records(kind):
    model = make(kind).fit(X, Y)
    wider = np.c_[X, X[:, 0]]
    model.set_params(solver="eem", classes=["u", "v"]).fit(wider, np.array(["u", "v"])[Y])
    expected = make(kind, solver="eem").fit(wider, Y)
    assert same_model(model, expected)
    assert model.n_features_in_ == 4
    assert model.classes_.tolist() == ["u", "v"]
    assert np.array_equal(model.predict(wider), np.array(["u", "v"])[expected.predict(wider)])


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore:solver 'local' of KMedian is Local now")  # for one version
@every_method
def test_a_solver_is_given_by_name_or_by_settings(kind, solver, draws):
    name = next(name for name, made in KNOWN[kind].items() if isinstance(solver, made))
    model = make(kind, solver=name).fit(X[:50], Y[:50])
    assert same_model(model, make(kind, solver=type(solver)()).fit(X[:50], Y[:50]))
    assert model.release_.settings["solver"] == name
    kept = make(kind, solver=solver).fit(X[:50], Y[:50]).release_.settings
    check_used(asdict(solver), kept)


def check_used(given: dict[str, Any], kept: dict[str, Any]) -> None:
    """What was given is what was used, or None where it had no use; test_realised.py has the rest.

    A tree ends where its box has no more halves, only reals have an average, and only linear models
    a gradient.
    """
    for name, value in given.items():
        if isinstance(value, dict):
            check_used(value, kept[name])
        elif name == "depth":
            assert 1 <= kept[name] <= value
        elif value is not None:
            assert kept[name] in (value, {"average": 0.0, "scoring": "loss"}.get(name)), name


@every_classifier
def test_more_budget_and_more_records_are_not_worse(kind, rng):
    """The estimator learns: near chance with no budget to speak of, near perfect with plenty."""
    table = rng.uniform(-1, 1, (4000, 3))
    labels = (table.sum(axis=1) > 0).astype(int)
    poor = make(kind, solver="auto", epsilon=1e-6, delta=0.0).fit(table, labels)
    rich = make(kind, solver="auto").fit(table, labels)
    assert rich.score(table, labels) > 0.95
    assert poor.score(table, labels) < rich.score(table, labels)


@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if "dpsga" in KNOWN[kind]])
def test_an_infinite_budget_is_not_private_and_says_so(kind):
    with pytest.warns(PrivacyLeakWarning, match="epsilon=inf: this is not private"):
        model = make(kind, epsilon=np.inf, solver="dpsga").fit(X, Y)
    assert model.release_ is None
    assert kind in CLUSTERERS or model.score(X, Y) > 0.9


# ----------------------------------------------------------------------------------------- progress


@every_method
def test_a_callback_hears_released_values_in_order(kind, solver, draws):
    heard: list[Any] = []

    def listen(generation):
        heard.append(replace(generation, parameters=generation.parameters.copy()))
        generation.parameters[:] = 99  # a listener owns what it hears

    settings = {"solver": solver, "adjacency": "add_remove", "n_public": 400}
    model = make(kind, **settings, callback=listen).fit(X, Y)
    total = heard[0].total
    assert [generation.index for generation in heard] == list(range(1, total + 1))
    assert {generation.total for generation in heard} == {total}
    assert {generation.spent for generation in heard} == {Budget(1.0, 1e-6)}
    assert {field.name for field in fields(heard[0])} == {
        "index", "total", "parameters", "spent", "survivors", "step", "drawn"
    }  # fmt: skip
    shapes = {generation.parameters.shape for generation in heard}
    if kind is KMedianAnywhere:
        assert shapes <= {(1,), (2,), (3,)}  # a greedy set grows
        assert np.array_equal(np.sort(heard[-1].parameters), model.facilities_)
    else:
        assert shapes == {(4,) if kind in CLASSIFIERS else (3, 3)}
    share = getattr(solver, "average", 0.0)
    if kind in CLASSIFIERS and getattr(solver, "survivors", 1) == 1:
        last = heard[-max(1, round(share * total)) :]
        answer = np.mean([generation.parameters for generation in last], axis=0)
        assert np.array_equal(np.append(model.coef_, model.intercept_), answer)
    assert same_model(model, make(kind, **settings).fit(X, Y))


@pytest.mark.parametrize("bar", ["tqdm", "text"])
@pytest.mark.parametrize(
    ("kind", "classes"),
    [*((kind, classes) for kind in CLASSIFIERS for classes in ([0, 1], [0, 1, 2])),
     *((kind, None) for kind in CLUSTERERS)],
)  # fmt: skip
def test_verbose_shows_a_bar_and_nothing_private(kind, bar, classes, monkeypatch, capfd):
    if bar == "tqdm":
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    heard: list[int] = []
    settings = {"adjacency": "add_remove", "n_public": 400}
    heads, total = [""], GENERATIONS[kind]
    if classes:
        settings["classes"] = classes
        heads = [" 1"] if len(classes) == 2 else [f" {label}" for label in classes]
    model = make(kind, **settings, verbose=1, callback=lambda g: heard.append(g.index))
    model.fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    for head in heads:
        assert f"{kind.__name__}{head}: " in err
    assert err.endswith("\n")
    if bar == "tqdm":
        assert err.count(f"{total}/{total}") >= len(heads)
    else:
        assert err.count(f"generation {total} of {total}\n") == len(heads)
        assert err.count("\r") == total * len(heads)
    assert_harmless(err)
    assert not numbers_in(err) & {N, int(Y.sum()), N - int(Y.sum())}
    assert heard == list(range(1, total + 1)) * len(heads)
    assert same_model(model, make(kind, **settings).fit(X, Y))
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------------------------------- real data


@lru_cache(maxsize=1)
def adult(folder: Path) -> Any:
    return load_adult(folder, ranges="observed").split()


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "least"), [(LogisticRegression, 0.82), (LinearSVC, 0.81)])
def test_models_of_census_records_are_accurate(kind, least, data_folder):
    train, test = adult(data_folder)
    model = kind(1.0, 1e-6, domain=train.schema, classes=[0, 1], random_state=1)
    model.fit(train.table, train.labels)
    assert model.score(test.table, test.labels) > least
    assert model.release_.verify()
    frame = pd.DataFrame(test.table)
    assert np.array_equal(model.predict(frame), model.predict(test.table))


# -------------------------------------------------------------------------------------------- scale


@every_classifier
@every_solver
def test_the_unit_of_a_column_changes_nothing_but_its_weight(kind, solver, selections):
    factor = np.array([2.0**40, 2.0**-9, 1.0])
    clipped = np.clip(X, -1, 1)
    one = make(kind, solver=solver).fit(clipped, Y)
    domain = Box(-factor, factor)
    other = make(kind, solver=solver, domain=domain).fit(clipped * factor, Y)
    assert np.array_equal(one.coef_, other.coef_ * factor)
    assert np.array_equal(one.intercept_, other.intercept_)


def test_an_infinite_budget_is_not_charged_to_a_ledger():
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=r"epsilon \(inf\) cannot be charged to a ledger"):
        make(LogisticRegression, epsilon=np.inf, solver="dpsga", ledger=ledger).fit(X, Y)
    assert ledger.spent == Budget(0.0)


def test_a_release_keeps_its_own_copy_of_the_model():
    model = make(LogisticRegression).fit(X, Y)
    before = model.release_.to_json()
    model.coef_[:] = 0
    model.classes_[:] = 5
    assert model.release_.to_json() == before
