"""Thresholds at predict time, and the best one of a private ROC curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privfit import Ledger, LinearSVC, LogisticRegression, best_threshold, roc_curve
from privfit.evaluation.roc import RocCurve
from privfit.privacy.ledger import Release


def fitted(kind=LogisticRegression, **more):
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = kind(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], random_state=0, **more)
    return model.fit(X, y), X


def curve_of(fpr, tpr, thresholds) -> RocCurve:
    release = Ledger(1.0).reserve(1.0).close("replace")
    assert isinstance(release, Release)
    return RocCurve(np.array(fpr), np.array(tpr), np.array(thresholds), release)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_threshold_is_one_of_probabilities(threshold):
    model, X = fitted()
    expected = (model.predict_proba(X)[:, 1] >= threshold).astype(int)
    np.testing.assert_array_equal(model.predict(X, threshold=threshold), expected)


def test_a_machine_has_thresholds_of_margins_or_of_calibrated_probabilities():
    model, X = fitted(LinearSVC)
    np.testing.assert_array_equal(
        model.predict(X, threshold=0.3), model.decision_function(X) >= 0.3
    )
    model, X = fitted(LinearSVC, calibrate=True)
    np.testing.assert_array_equal(
        model.predict(X, threshold=0.3), model.predict_proba(X)[:, 1] >= 0.3
    )


def test_the_threshold_beyond_all_scores_predicts_no_positive():
    model, X = fitted()
    assert not model.predict(X, threshold=math.inf).any()


@pytest.mark.parametrize(
    ("cost", "prevalence", "expected"),
    [(1.0, 0.5, 0.6), (4.0, 0.5, 0.2), (0.1, 0.5, math.inf), (10.0, 0.05, 0.6)],
)
def test_the_best_threshold_costs_least(cost, prevalence, expected):
    curve = curve_of([0, 0.2, 0.5, 1], [0, 0.7, 0.95, 1], [math.inf, 0.6, 0.2, 0])
    assert best_threshold(curve, cost=cost, prevalence=prevalence) == expected
    risks = (1 - prevalence) * curve.fpr + cost * prevalence * (1 - curve.tpr)
    assert risks[curve.thresholds.tolist().index(expected)] == risks.min()


def test_a_threshold_of_a_private_curve_costs_nothing():
    model, X = fitted()
    y, scores = (X[:, 0] > X[:, 1]).astype(int), model.predict_proba(X)[:, 1]
    ledger = Ledger(1.0)
    curve = roc_curve(y, scores, epsilon=1.0, ledger=ledger, random_state=0)
    spent = ledger.spent
    found = model.predict(X, threshold=best_threshold(curve, cost=4.0))
    assert found[y == 1].mean() > 0.9
    assert ledger.spent == spent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), r"curve \(dict\) must be a RocCurve; pass what privfit.roc_curve returns"),
        ((None, {"cost": 0}), r"cost \(0\) must be a positive number; pass cost=1.0"),
        ((None, {"cost": "1"}), r"cost \('1'\) must be a positive number; pass cost=1.0"),
        ((None, {"prevalence": 1}), r"prevalence \(1\) must lie between 0 and 1; pass"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    curve, named = (*arguments, {})[:2]
    curve = curve_of([0, 1], [0, 1], [math.inf, 0]) if curve is None else curve
    with pytest.raises((ValueError, TypeError), match=message):
        best_threshold(curve, **named)


def test_thresholds_that_mean_nothing_are_refused():
    model, X = fitted()
    for wrong in ("0.5", math.nan, [0.5]):
        with pytest.raises(ValueError, match=r"threshold \(.*\) must be a number; pass one such"):
            model.predict(X, threshold=wrong)
    three = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1, 2], random_state=0)
    with pytest.raises(
        ValueError, match=r"threshold \(0.5\) is for two classes, and the model has"
    ):
        three.fit(X, np.arange(2000) % 3).predict(X, threshold=0.5)
