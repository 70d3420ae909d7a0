"""scikit-learn's tools around private estimators: they work and pay, or say why they do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privfit import (
    BernoulliNB,
    BudgetError,
    HashWords,
    KMeans,
    KMedian,
    L2Ball,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PrivfitError,
    ScoreWarning,
    SelectFeatures,
)
from privfit.base import cautions

COINS = np.random.default_rng(0)
X = COINS.uniform(-1, 1, (400, 3))
Y = (X[:, 0] > 0).astype(int)
fresh = COINS.uniform(-1, 1, (400, 3))  # records that everybody may see
WEIGHTS = np.ones(len(X))


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """Warnings are given once a process."""
    monkeypatch.setattr(cautions, "_given", set())


def logistic(ledger, **options):
    return LogisticRegression(
        1.0, 1e-6, domain=(-1, 1), classes=[0, 1], ledger=ledger, n_threads=1, **options
    )


def machine(ledger):
    return LinearSVC(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], ledger=ledger, n_threads=1)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_a_vote_is_charged_for_each_of_its_models(voting):
    ledger = Ledger(2.0, 2e-6)
    parts = [("a", logistic(ledger)), ("b", logistic(ledger, solver="local"))]
    vote = VotingClassifier(parts, voting=voting).fit(X, Y)
    assert ledger.spent.epsilon == 2.0
    assert (vote.predict(fresh) == (fresh[:, 0] > 0)).mean() > 0.8
    with pytest.raises(BudgetError, match="ask for less, or start a larger ledger"):
        VotingClassifier(parts, voting=voting).fit(X, Y)


def test_a_vote_of_threads_shares_the_ledger():
    ledger = Ledger(4.0, 4e-6)
    vote = VotingClassifier([("a", logistic(ledger)), ("b", machine(ledger))], n_jobs=2)
    with parallel_config("threading"):
        vote.fit(X, Y)
    assert ledger.spent.epsilon == 2.0


@pytest.mark.slow
def test_a_vote_of_processes_says_why_it_cannot_share_a_ledger():
    ledger = Ledger(4.0, 4e-6)
    vote = VotingClassifier([("a", logistic(ledger)), ("b", machine(ledger))], n_jobs=2)
    with (
        parallel_config("loky"),
        pytest.raises(BudgetError, match="it is a copy; spend from the original, or fit in the pr"),
    ):
        vote.fit(X, Y)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("options", [
    {}, {"bootstrap": False, "max_samples": 0.5}, {"n_jobs": 2}
])  # fmt: skip
def test_bagging_is_refused_before_anything_is_charged(options):
    ledger = Ledger(9.0, 1e-5)
    bags = BaggingClassifier(logistic(ledger), n_estimators=2, **options)
    with (
        parallel_config("threading"),
        pytest.raises(PrivfitError, match="BaggingClassifier is refused: it gives each model a se"),
    ):
        bags.fit(X, Y)
    piped = BaggingClassifier(make_pipeline(FunctionTransformer(), logistic(ledger)))
    with pytest.raises(PrivfitError, match="pass them to VotingClassifier, or pass solver='gupt'"):
        piped.fit(X, Y)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("options", [{}, {"ensemble": False}, {"method": "isotonic"}])
def test_calibration_with_exact_labels_is_refused_before_anything_is_charged(options):
    ledger = Ledger(9.0, 1e-5)
    with pytest.raises(PrivfitError, match="CalibratedClassifierCV is refused: it calibrates with"):
        CalibratedClassifierCV(machine(ledger), cv=2, **options).fit(X, Y)
    assert ledger.spent.epsilon == 0.0


def test_a_threshold_of_exact_labels_is_refused_before_anything_is_charged():
    tuned = pytest.importorskip("sklearn.model_selection")
    if not hasattr(tuned, "TunedThresholdClassifierCV"):
        pytest.skip("this scikit-learn tunes no thresholds")
    ledger = Ledger(9.0, 1e-5)
    with pytest.raises(PrivfitError, match="TunedThresholdClassifierCV is refused: it chooses a t"):
        tuned.TunedThresholdClassifierCV(logistic(ledger), cv=2).fit(X, Y)
    assert ledger.spent.epsilon == 0.0


def test_a_stack_of_models_is_refused_before_anything_is_charged():
    ledger = Ledger(9.0, 1e-5)
    stack = StackingClassifier([("a", logistic(ledger)), ("b", machine(ledger))], cv=2)
    with pytest.raises(PrivfitError, match="StackingClassifier is refused: its last model learns"):
        stack.fit(X, Y)
    assert ledger.spent.epsilon == 0.0


def test_a_fitted_model_is_calibrated_with_public_records_at_no_cost():
    ledger = Ledger(1.0, 1e-6)
    fitted = machine(ledger).fit(X, Y)
    frozen = pytest.importorskip("sklearn.frozen")
    calibrated = CalibratedClassifierCV(frozen.FrozenEstimator(fitted))
    calibrated.fit(fresh, (fresh[:, 0] > 0).astype(int))
    assert calibrated.predict_proba(fresh).shape == (400, 2)
    assert ledger.spent.epsilon == 1.0


@pytest.mark.parametrize("model", [
    logistic(None), machine(None), BernoulliNB(1.0, classes=[0, 1]), KMeans(2, 1.0, domain=(-1, 1)),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_permutation_importance_works_and_says_that_it_is_not_private(model):
    model.fit(X, Y)
    with pytest.warns(ScoreWarning, match="exact"):
        found = permutation_importance(model, fresh, (fresh[:, 0] > 0).astype(int), n_repeats=2,
                                       random_state=0)  # fmt: skip
    assert found.importances.shape == (3, 2)
    if hasattr(model, "classes_"):
        assert found.importances_mean.argmax() == 0


def test_a_grid_search_and_a_cross_validation_pay_for_every_fit():
    ledger = Ledger(5.0, 5e-6)
    with pytest.warns(ScoreWarning):
        GridSearchCV(logistic(ledger), {"solver": ["gradient", "local"]}, cv=2).fit(X, Y)
    assert ledger.spent.epsilon == 5.0  # two settings on two folds, and the best on all records
    with pytest.raises(BudgetError):
        cross_val_score(logistic(ledger), X, Y, error_score="raise")


@pytest.mark.parametrize("model", [
    logistic(None), machine(None), BernoulliNB(1.0, classes=[0, 1]), KMeans(2, 1.0, domain=(-1, 1)),
    LogisticRegression(1.0, domain=L2Ball(1.0), classes=[0, 1]),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_numbers_whose_sum_is_none_are_not_warned_of(model):
    """scikit-learn adds up a table to see whether it is finite."""
    far = X.copy()
    far[0], far[1] = 1.7e308, -1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(far, Y).predict(far)


# ------------------------------------------------------------------------------- metadata routing


def test_weights_are_refused_wherever_they_come_from():
    ledger = Ledger(9.0, 1e-5)
    piped = make_pipeline(FunctionTransformer(), logistic(ledger))
    with pytest.raises(PrivfitError, match="sample_weight is refused: a weight multiplies what on"):
        piped.fit(X, Y, logisticregression__sample_weight=WEIGHTS)
    vote = VotingClassifier([("a", logistic(ledger)), ("b", machine(ledger))])
    with pytest.raises((TypeError, ValueError), match=r"sample.weight"):
        vote.fit(X, Y, sample_weight=WEIGHTS)
    assert ledger.spent.epsilon == 0.0


def test_routing_has_no_request_for_weights_and_else_changes_nothing():
    ledger = Ledger(2.0, 2e-6)
    with sklearn.config_context(enable_metadata_routing=True):
        assert not hasattr(logistic(ledger), "set_fit_request")
        piped = make_pipeline(FunctionTransformer(), logistic(ledger)).fit(X, Y)
        assert piped.predict(fresh).shape == (400,)
        with pytest.raises(TypeError, match="sample_weight"):
            piped.fit(X, Y, sample_weight=WEIGHTS)
        asked = logistic(ledger).set_predict_request(threshold=True)
        assert asked.get_metadata_routing().predict.requests["threshold"] is True
    assert ledger.spent.epsilon == 1.0


# ------------------------------------------------------------------------------------- set_output


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("model", [
    KMeans(2, 1.0, domain=(-1, 1)), KMedian(2, 1.0, facilities=fresh[:20], domain=(-1, 1)),
    SelectFeatures(1.0, k=2, classes=[0, 1]),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_transformers_give_frames_where_asked(model, library):
    frames = pytest.importorskip(library)
    names = list("abc")
    table = frames.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    try:
        model.set_output(transform=library)
    except ValueError:  # older versions of scikit-learn know pandas alone
        pytest.skip(f"this scikit-learn has no output for {library}")
    found = model.fit(table, Y).transform(table)
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == list(model.get_feature_names_out())


def test_hashed_words_stay_sparse_and_say_so():
    words = HashWords(8).set_output(transform="pandas")
    with pytest.raises(ValueError, match="sparse"):
        words.fit_transform(["a b", "c"])
    assert not hasattr(logistic(None), "set_output")  # a classifier transforms nothing
