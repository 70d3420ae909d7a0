"""Naive Bayes: scikit-learn's model of the same counts, exact sensitivity, audits, refusals."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from makers.binary_tables import FreeGrant, World, paid_by
from makers.cases import scikit_learn_checks
from makers.raises import messages_of, raises_in
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB as Plain

import privfit
from privfit import (
    BernoulliNB,
    Budget,
    BudgetError,
    DiscreteGaussian,
    DiscreteLaplace,
    Ledger,
    PrivacyLeakWarning,
    Release,
)
from privfit._kernels.random import BitSource
from privfit.audit import audit_runs
from privfit.features.bayes import NaiveBayes, NoisyCounts
from privfit.privacy.neighbours import Neighbours
from privfit.records.binary import BinaryRecords

ADJACENCIES = ("add_remove", "replace")
CERTAIN = 1 - 1e-6
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def table(n: int = 600, d: int = 9, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, Any]:
    coins = np.random.default_rng(seed)
    y = coins.integers(0, classes, n)
    return (coins.random((n, d)) < coins.uniform(0.05, 0.6, (classes, d))[y]).astype(np.int8), y


def model(**changes: Any) -> BernoulliNB:
    return BernoulliNB(**{"epsilon": 1.0, "classes": [0, 1], "random_state": 1, **changes})


def assert_same_model(ours: Any, plain: Any, X: Any) -> None:
    assert np.allclose(ours.class_count_, plain.class_count_)
    assert np.allclose(ours.feature_count_, plain.feature_count_)
    assert np.allclose(ours.class_log_prior_, plain.class_log_prior_)
    assert np.allclose(ours.feature_log_prob_, plain.feature_log_prob_)
    assert np.allclose(ours.predict_log_proba(X), plain.predict_log_proba(X))
    assert np.allclose(ours.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(ours.predict(X), plain.predict(X))


# ---------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("alpha", [1.0, 0.01])
@every_adjacency
def test_without_noise_it_is_the_model_of_scikit_learn(classes, alpha, adjacency):
    """At epsilon 10^6 discrete noise is 0 but with probability below 1e-6."""
    X, y = table(classes=classes)
    ours = model(epsilon=1e6, alpha=alpha, classes=range(classes), adjacency=adjacency).fit(X, y)
    assert_same_model(ours, Plain(alpha=alpha).fit(X, y), X)


def test_noisy_counts_are_used_as_scikit_learn_would_use_them():
    """The twin is fitted to a data set with exactly the released counts."""
    X, y = table(300, 5)
    ours = model(epsilon=3.0).fit(X, y)
    sizes, ones = ours.class_count_.astype(int), ours.feature_count_.astype(int)
    rows = [(np.arange(size)[:, None] < ones[label]) for label, size in enumerate(sizes)]
    plain = Plain().fit(np.vstack(rows), np.repeat([0, 1], sizes))
    assert_same_model(ours, plain, X)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, np.asfortranarray, np.float32])
def test_the_form_and_the_order_of_records_do_not_matter(form):
    X, y = table()
    order = np.random.default_rng(1).permutation(len(X))
    one, other = (model(max_ones=2).fit(*data) for data in ((X, y), (form(X)[order], y[order])))
    assert np.array_equal(one.feature_count_, other.feature_count_)
    assert np.allclose(one.predict_proba(X), other.predict_proba(form(X)))


def test_a_feature_is_present_where_a_number_is_positive():
    X, y = table()
    odd = np.where(X > 0, 0.25, -3.0)
    one, other = model().fit(X, y), model().fit(odd, y)
    assert np.array_equal(one.feature_count_, other.feature_count_)
    assert np.allclose(one.predict_proba(X), other.predict_proba(odd))


def test_log_odds_are_differences_of_joint_probabilities():
    X, y = table(classes=3)
    ours = model(classes=[0, 1, 2], epsilon=50.0).fit(X, y)
    assert np.array_equal(ours.decision_function(X), ours.predict_joint_log_proba(X))
    X, y = table()
    ours = model(epsilon=50.0).fit(X, y)
    odds = ours.decision_function(X)
    assert np.allclose(odds, np.subtract(*ours.predict_log_proba(X).T[::-1]))
    assert np.array_equal(ours.predict(X) == 1, odds > 0)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_clamped_counts_give_probabilities_however_large_the_noise(epsilon, delta):
    X, y = table(30)
    for seed in range(5):
        ours = model(epsilon=epsilon, delta=delta, random_state=seed, alpha=1e-6).fit(X, y)
        assert (ours.class_count_ >= 1).all()
        assert (ours.feature_count_ >= 0).all()
        assert (ours.feature_count_ <= ours.class_count_[:, None]).all()
        found = ours.predict_proba(X)
        assert np.isfinite(ours.predict_joint_log_proba(X)).all()
        assert np.allclose(found.sum(axis=1), 1)


def test_extreme_counts_have_finite_logarithms():
    counts = NoisyCounts(np.array([1.0, 2.0**31]), np.array([[0.0, 1.0], [0.0, 2.0**31]]))
    for part in counts.log_odds(1e-6):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("y", [np.zeros(40, int), np.ones(40, int)])
def test_a_declared_class_need_not_occur(y):
    X, _ = table(40)
    assert np.isfinite(model().fit(X, y).predict_log_proba(X)).all()


# ----------------------------------------------------------------------------------- the guarantee


@pytest.mark.parametrize("ones", [1, 2])
@every_adjacency
def test_noise_pays_exactly_for_what_one_record_changes(ones, adjacency):
    """All data sets of 2 records (of 2 and 3) with 3 features, and all their neighbours."""
    change = World.of(3, ones, 2, adjacency).changes(
        lambda counts: np.append(counts.sizes, counts.ones.ravel())
    )
    pure = NaiveBayes().noise(ones, Budget(1.0), Neighbours(adjacency)).mechanism
    assert pure == DiscreteLaplace(1.0, int(np.abs(change).sum(axis=1).max()))
    fine = NaiveBayes().noise(ones, Budget(1.0, 1e-6), Neighbours(adjacency))
    assert isinstance(fine.mechanism, DiscreteGaussian)
    exact = fine.units * math.sqrt(np.square(change).sum(axis=1).max())
    assert exact <= fine.mechanism.sensitivity <= exact * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.statistical
@every_adjacency
def test_an_audit_certifies_less_than_the_promise_and_sees_too_little_noise(adjacency):
    """The record (1, 1) of class 1 is added, or changes its class."""
    X = np.ones((5, 2))
    if adjacency == "replace":
        data = ([0, 0, 1, 1, 0], X), ([0, 0, 1, 1, 1], X)
    else:
        data = ([0, 0, 1, 1], X[:4]), ([0, 0, 1, 1, 1], X)
    inputs = [BinaryRecords.of(rows, y, 2) for y, rows in data]

    def certified(settings: Any, epsilon: float) -> float:
        def run(records: BinaryRecords, source: Any) -> Any:
            found = settings(records, 2, paid_by(FreeGrant(epsilon), source, adjacency))
            return np.append(found.sizes, found.ones.ravel())

        return audit_runs(run, *inputs, runs=4000, confidence=CERTAIN, rng=2).lower_bound

    assert certified(NaiveBayes(), 1.0) <= 1.0

    class Short(NaiveBayes):
        def noise(self, max_ones: int, budget: Budget, neighbours: Neighbours) -> Any:
            return super().noise(max_ones, Budget(6 * budget.epsilon), neighbours)

    assert certified(Short(), 1.0) > 1.0


@every_adjacency
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_fit_draws_once_what_it_planned(adjacency, delta):
    X, y = table()
    grant = FreeGrant(1.0, delta)
    NaiveBayes()(BinaryRecords.of(X, y, 2), 3, paid_by(grant, BitSource(0), adjacency))
    assert [mechanism.event for mechanism in grant.released] == grant.planned
    assert len(grant.released) == 1


def test_a_record_counts_with_at_most_so_many_features():
    X, y = np.ones((500, 10)), np.zeros(500, dtype=int)
    counts = model(epsilon=1e6, max_ones=3).fit(X, y).feature_count_
    assert counts.sum() == 3 * 500


# ------------------------------------------------------------------------------------ the contract


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@every_adjacency
def test_the_ledger_is_charged_once_and_the_release_is_whole(adjacency, delta):
    X, y = table()
    ledger = Ledger(1.0, delta)
    ours = model(delta=delta, adjacency=adjacency, ledger=ledger, max_ones=4).fit(X, y)
    assert ledger.spent == Budget(1.0, delta)
    release = Release.from_json(ours.release_.to_json())
    assert release.verify()
    assert release.adjacency == adjacency
    assert release.domain == "binary features, at most 4 ones a record"
    assert release.parameters["class_count"] == ours.class_count_.tolist()
    assert release.parameters["feature_count"] == ours.feature_count_.tolist()
    with pytest.raises(BudgetError, match="asks for epsilon 1"):
        clone(ours).fit(X, y)


def test_labels_of_any_kind_give_the_same_model():
    X, y = table()
    ours = model().fit(X, y)
    for labels in (["ham", "spam"], [False, True], [-1.5, 2.0]):
        other = model(classes=labels).fit(X, np.array(labels)[y])
        assert np.array_equal(other.feature_count_, ours.feature_count_)
        assert np.array_equal(other.predict(X), np.array(labels)[ours.predict(X)])


def test_a_fitted_model_keeps_released_values_only_and_pickles():
    X, y = table()
    ours = model().fit(X, y)
    assert {name for name in vars(ours) if name.startswith("_")} == {"_weights", "_offsets"}
    copy = pickle.loads(pickle.dumps(ours))
    assert np.array_equal(copy.predict_proba(X), ours.predict_proba(X))
    assert len(pickle.dumps(ours)) < 10_000


def test_a_failed_refit_leaves_the_model_as_it_was():
    X, y = table()
    ours = model().fit(X, y)
    before = ours.feature_count_.copy()
    with pytest.raises(ValueError, match="max_ones"):
        ours.set_params(max_ones=-1).fit(X[:, :3], y)
    assert np.array_equal(ours.feature_count_, before)
    assert ours.n_features_in_ == X.shape[1]


def test_classes_that_are_not_declared_are_a_leak_and_say_so():
    X, y = table()
    with pytest.warns(PrivacyLeakWarning, match="BernoulliNB reads its classes"):
        model(classes=None).fit(X, y)


def test_names_of_columns_are_kept():
    pd = pytest.importorskip("pandas")
    X, y = table(d=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ours = model().fit(frame, y)
    assert ours.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        ours.predict(frame[["b", "a", "c"]])


def test_without_a_seed_every_fit_differs():
    X, y = table()
    counts = [model(random_state=None, epsilon=0.1).fit(X, y).feature_count_ for _ in range(2)]
    assert not np.array_equal(*counts)


@pytest.mark.few(33)
@pytest.mark.filterwarnings(
    "ignore::privfit.PrivacyLeakWarning", "ignore:invalid value encountered in cast:RuntimeWarning"
)
@scikit_learn_checks([BernoulliNB(epsilon=1000)])
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


X0, Y0 = table(20, 4)
REFUSED: dict[str, tuple[Any, str]] = {
    "alpha": (lambda: model(alpha=0.0).fit(X0, Y0), r"alpha \(0.0\) must be a number of at least"),
    "max_ones": (lambda: model(max_ones=1.5).fit(X0, Y0), r"max_ones \(1.5\) must be a positive"),
    "adjacency": (lambda: model(adjacency="both").fit(X0, Y0), r"adjacency \('both'\) must be"),
    "labels": (lambda: model().fit(X0, Y0[1:]), "y must have one label for each record"),
    "no labels": (lambda: model().fit(X0, None), "requires y to be passed, .* pass the labels"),
    "classes": (lambda: model(classes=[1, 2]).fit(X0, Y0), "outside the declared classes"),
    "epsilon": (lambda: model(epsilon=0).fit(X0, Y0), r"epsilon \(0\) must be positive"),
    "infinity": (lambda: model(epsilon=math.inf).fit(X0, Y0), r"epsilon \(inf\)"),
    "weights": (lambda: model().fit(X0, Y0, sample_weight=np.ones(20)), "sample_weight is refused"),
    "wide noise": (lambda: model(epsilon=1e-16).fit(X0, Y0), "does not fit in 64 bits"),
    "columns": (
        lambda: model().fit(X0, Y0).predict(X0[:, :2]),
        "X has 2 features, but BernoulliNB",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_refused_with_a_remedy(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_refusals_cost_nothing():
    ledger = Ledger(1.0)
    for change in ({"alpha": 0.0}, {"max_ones": 0}, {"adjacency": "both"}, {"classes": [1, 2]}):
        with pytest.raises(ValueError, match=r"must|outside"):
            model(ledger=ledger, **change).fit(X0, Y0)
    assert not ledger.entries


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED.values())
    package = Path(privfit.__file__).parent
    for source in ("features/bayes.py", "estimators/bayes.py"):
        for line, parts in raises_in(package / source):
            assert all(part in seen for part in parts), f"{source}:{line}"
