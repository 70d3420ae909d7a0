"""Private ROC curves, confusion matrices and accuracies: proofs by enumeration, shape, audits."""

from __future__ import annotations

import ast
import csv
import gzip
import itertools
import math
import re
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
from reference import confusion, neighbours
from scipy.special import ndtr

import privfit
from privfit import (
    BudgetError,
    Exponential,
    Ledger,
    LogisticRegression,
    PrivacyLeakWarning,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
)
from privfit._kernels.random import BitSource
from privfit.audit import audit_runs, output_distribution
from privfit.domains.reading import positions
from privfit.evaluation import binormal, cumulative, priroc, roc
from privfit.evaluation.cumulative import Flat, Haar, Hierarchy, best_hierarchy
from privfit.evaluation.priroc import Counted, PriROC
from privfit.evaluation.roc import _Table, exact_roc
from privfit.evaluation.roc_plan import Counts, Medians
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.records import graded
from privfit.records.graded import PredictedRows

ADJACENCIES = ("replace", "add_remove")
SURE = 1 - 1e-6  # of audits that gate
SECRET = 123456.789


def sample(n=2000, seed=0, shift=0.2, share=0.3):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return y, np.clip(rng.normal(0.4 + shift * y, 0.15), 0, 1)


# ------------------------------------------------------------------------------------------ medians


def median_distribution(places, levels, epsilon, span, ends=None):
    """The law of `Medians` by its definition: {ends: log probability}."""
    ends = (0, len(places)) if ends is None else ends
    if levels == 0:
        return {ends: 0.0}
    choices = []
    for a, b in itertools.pairwise(ends):
        scores = [-abs(sum(places[a:t]) - sum(places[t:b])) for t in range(a + 1, b)]
        if scores:
            law = output_distribution(Exponential(epsilon, span), scores)
            choices.append([(a + 1 + i, float(log)) for i, log in law.items()])
    found: dict[Any, float] = {}
    for cuts in itertools.product(*choices):
        here = tuple(sorted([*ends, *(t for t, _ in cuts)]))
        log = sum(log for _, log in cuts)
        for outcome, more in median_distribution(places, levels - 1, epsilon, span, here).items():
            found[outcome] = np.logaddexp(found.get(outcome, -math.inf), log + more)
    return found


def worst_loss(adjacency, span, levels=2, epsilon=0.5, size=5):
    """Largest log ratio, and largest range of log ratios, over all neighbours on a tiny grid."""
    laws = {}
    loss = width = 0.0
    for pair in neighbours(range(size), 3, adjacency):
        for D in pair:
            if D not in laws:
                places = np.bincount(D, minlength=size).tolist()
                laws[D] = median_distribution(places, levels, epsilon, span)
        ratios = [laws[pair[0]][ends] - laws[pair[1]][ends] for ends in laws[pair[0]]]
        loss, width = max(loss, *ratios), max(width, max(ratios) - min(ratios))
    return loss, width


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_medians_cost_what_they_say_on_every_pair_of_neighbours(adjacency, levels):
    loss, width = worst_loss(adjacency, 2 * Neighbours(adjacency).changes, levels)
    assert loss <= levels * 0.5 * (1 + 1e-9)
    assert width <= levels * 0.5 * (1 + 1e-9)


def test_the_ranges_are_needed():
    """Half of a range overspends; on the first level the whole of it is used."""
    for adjacency in ADJACENCIES:
        assert worst_loss(adjacency, Neighbours(adjacency).changes, 1)[1] > 0.5 * 1.5
        assert worst_loss(adjacency, 2 * Neighbours(adjacency).changes, 1)[1] == pytest.approx(
            0.5, rel=0.3
        )
    assert worst_loss("replace", 2, 2)[1] > 2 * 0.5


@pytest.mark.slow
@pytest.mark.statistical
def test_medians_follow_their_law():
    """Chi-square at 1e-6 against the enumerated distribution."""
    places, law = [3, 0, 2, 1, 4], median_distribution([3, 0, 2, 1, 4], 2, 1.0, 4)
    mechanism, source = Medians(1.0, REPLACE, 2), BitSource(7)
    runs = 8_000
    seen = dict.fromkeys(law, 0)
    for _ in range(runs):
        seen[tuple(mechanism(places, source).tolist())] += 1
    expected = np.exp(list(law.values())) * runs
    assert expected.sum() == pytest.approx(runs)
    statistic = float(np.sum((np.array(list(seen.values())) - expected) ** 2 / expected))
    assert statistic < scipy_chi2(len(law) - 1)


def scipy_chi2(freedom):
    from scipy.stats import chi2

    return float(chi2.isf(1e-6, freedom))


def test_a_cell_of_one_place_is_not_halved():
    ends = Medians(1.0, REPLACE, 4)([5, 5, 5], 1)
    assert ends.tolist() == [0, 1, 2, 3]
    assert Medians(1.0, REPLACE, 3)([7], 1).tolist() == [0, 1]


# ------------------------------------------------------------------------------------- measurements

MEASUREMENTS = [
    *(Flat(bits) for bits in range(5)),
    *(Haar(bits) for bits in range(5)),
    *(best_hierarchy(bits) for bits in range(5)),
    Hierarchy(3, (1, 2)), Hierarchy(4, (2, 1, 1)), Hierarchy(4, (1, 1, 1, 1)),
]  # fmt: skip


def matrix(measurement):
    """(q, m): what one record in each cell adds to the integers of one histogram."""
    return measurement.measure(np.eye(2**measurement.bits, dtype=np.int64)).T


@pytest.mark.parametrize("measurement", MEASUREMENTS, ids=repr)
def test_sensitivities_are_those_of_the_worst_record(measurement):
    """All records of two classes and all pairs of them: Privelet's 1 + log2 m among others."""
    columns = np.kron(np.eye(2, dtype=np.int64), matrix(measurement)).T
    added = measurement.sensitivity(ADD_REMOVE)
    assert np.abs(columns).sum(axis=1).max() == added == np.square(columns).sum(axis=1).max()
    moved = columns[:, None] - columns[None]
    replaced = measurement.sensitivity(REPLACE)
    assert np.abs(moved).sum(axis=2).max() == replaced == np.square(moved).sum(axis=2).max()


@pytest.mark.parametrize("bits", range(6))
def test_haar_is_privelet(bits):
    assert Haar(bits).sensitivity(ADD_REMOVE) == 1 + bits
    cells = np.random.default_rng(bits).integers(0, 50, 2**bits)
    got = Haar(bits).measure(cells)
    assert got[0] == cells.sum()  # the base coefficient, the mean, times its weight m
    at = 1
    for level in range(bits):
        for node in cells.reshape(2**level, -1):
            left, right = np.split(node, 2)
            coefficient = (left.mean() - right.mean()) / 2
            assert got[at] == coefficient * node.size
            at += 1


@pytest.mark.parametrize("measurement", MEASUREMENTS, ids=repr)
def test_estimates_are_least_squares(measurement):
    A = matrix(measurement).astype(float)
    noisy = np.random.default_rng(1).normal(size=(3, len(A)))
    best = np.linalg.lstsq(A, noisy.T, rcond=None)[0].T
    np.testing.assert_allclose(measurement.estimate(noisy), best, atol=1e-12)
    cells = np.arange(2 * A.shape[1]).reshape(2, -1)
    np.testing.assert_allclose(measurement.estimate(measurement.measure(cells)), cells, atol=1e-12)


def exact_spread(measurement):
    """The mean variance of cumulative counts with the total known, at noise 1."""
    m = 2**measurement.bits
    A = matrix(measurement).astype(float)
    shares = np.tril(np.ones((m, m))) - np.arange(1, m + 1)[:, None] / m
    return float(np.trace(shares @ np.linalg.inv(A.T @ A) @ shares.T) / m)


@pytest.mark.few(2)
@pytest.mark.parametrize("measurement", [Flat(6), Haar(6), Haar(8), best_hierarchy(8)], ids=repr)
def test_the_spread_that_rules_stand_on_is_about_right(measurement):
    assert exact_spread(measurement) == pytest.approx(measurement.spread, rel=0.2)


def test_hierarchies_have_few_levels():
    assert best_hierarchy(4).widths == (4,)
    assert best_hierarchy(8).widths == (4, 4)
    assert best_hierarchy(12).widths == (4, 4, 4)


# ---------------------------------------------------------------------------------- post-processing


def test_simplex_is_the_nearest_point():
    rng = np.random.default_rng(2)
    for _ in range(50):
        cells, total = rng.normal(0, 5, 6), float(rng.uniform(0.5, 20))
        best = binormal.simplex(cells, total)
        assert best.min() >= 0
        assert best.sum() == pytest.approx(total)
        others = rng.dirichlet(np.ones(6), 200) * total
        assert (np.square(others - cells).sum(axis=1) >= np.square(best - cells).sum() - 1e-9).all()


def test_isotonic_is_that_of_scikit_learn():
    from sklearn.isotonic import isotonic_regression

    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 10, 100):
        values = rng.normal(np.linspace(0, 1, n), 1)
        np.testing.assert_allclose(binormal.isotonic(values), isotonic_regression(values))


def binormal_cells(mu, n=400, m=8):
    """Expected counts (2, m) of a binormal test set, a quarter positive, the highest first."""
    cuts = np.linspace(3, -2, m - 1)
    above = np.stack([ndtr(-cuts), ndtr(mu - cuts)])
    rates = np.concatenate([np.zeros((2, 1)), above, np.ones((2, 1))], axis=1)
    return np.diff(rates) * np.array([[0.75 * n], [0.25 * n]])


def area(points):
    return float(np.sum(np.diff(points.fpr) * (points.tpr[1:] + points.tpr[:-1]) / 2))


@pytest.mark.few(1)
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_a_binormal_curve_is_found_through_noise(mu):
    """Noise of scale 10 on 8 cells of 400 records: the mean error of the area falls."""
    rng, true = np.random.default_rng(4), ndtr(mu / math.sqrt(2))
    plain, smooth = [], []
    for _ in range(60):
        noisy = binormal_cells(mu) + rng.laplace(0, 10, (2, 8))
        plain.append(abs(area(binormal.monotone(noisy, flat=True)) - true))
        smooth.append(abs(area(binormal.smoothed(noisy, 10.0)) - true))
    assert np.mean(smooth) < 0.9 * np.mean(plain)


def test_what_is_not_binormal_is_not_bent():
    """Two crossing halves, a curve below the diagonal: exact counts win where noise is small."""
    cells = np.array([[300.0, 10, 10, 300], [10.0, 200, 200, 10]])
    points = binormal.smoothed(cells, 0.5)
    plain = binormal.monotone(cells, flat=True)
    assert np.abs(np.interp(plain.fpr, points.fpr, points.tpr) - plain.tpr).max() < 0.01


# --------------------------------------------------------------------------------------- the curves

AWKWARD = {
    "plain": sample(300),
    "one record": ([1], [0.5]),
    "no positives": (np.zeros(50), np.linspace(0, 1, 50)),
    "no negatives": (np.ones(50), np.linspace(0, 1, 50)),
    "constant scores": (np.arange(40) % 2, np.full(40, 0.25)),
    "ties": (np.arange(90) % 3 == 0, np.arange(90) % 4 / 4),
    "outside the bounds": (np.arange(20) % 2, np.r_[-np.inf, np.linspace(-3, 4, 18), np.inf]),
    "at the ends": (np.arange(20) % 2, np.arange(20) % 2),
    "minus one and one": (np.where(np.arange(20) % 2, 1, -1), np.linspace(0, 1, 20)),
    "worse than chance": sample(300, shift=-0.3),
}

WAYS: list[dict[str, Any]] = [
    {},
    {"adjacency": "add_remove"},
    {"adjacency": "add_remove", "n_public": 10_000},
    {"thresholds": "medians", "levels": 5},
    {"thresholds": "grid", "noise": "wavelet", "levels": 6},
    {"thresholds": "medians", "noise": "hierarchy", "levels": 6},
    {"thresholds": [0.2, 0.5], "adjacency": "add_remove"},
    {"thresholds": [0.3, 0.4, 0.5, 0.9], "noise": "wavelet"},
    {"delta": 1e-6},
    {"delta": 1e-6, "noise": "gaussian"},
    {"smooth": False},
    {"levels": 12, "thresholds": "medians"},
]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_curve_rises_from_corner_to_corner(name, way):
    for epsilon in (0.01, 1.0, 50.0):
        curve = roc_curve(*AWKWARD[name], epsilon, random_state=1, **way)
        for rate in (curve.fpr, curve.tpr):
            assert np.isfinite(rate).all()
            assert (rate[0], rate[-1]) == (0.0, 1.0)
            assert (np.diff(rate) >= 0).all()
        assert curve.thresholds[0] == np.inf
        assert curve.thresholds[-1] == 0.0
        assert (np.diff(curve.thresholds) <= 0).all()
        assert len(curve.fpr) == len(curve.tpr) == len(curve.thresholds)
        assert 0 <= curve.auc <= 1
        assert curve.release.verify()
        assert curve.release.cost() > 0.9 * epsilon or way.get("noise") == "gaussian"


def naive_rates(y, score, cuts):
    """The specification: rates of score >= cut."""
    y, score = np.asarray(y), np.asarray(score)
    return np.array([[np.mean(score[y == c] >= cut) for cut in cuts] for c in (0, 1)])


@pytest.mark.parametrize("noise", ["flat", "hierarchy", "wavelet"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_without_noise_rates_are_the_true_ones(noise, adjacency):
    y, score = sample(500)
    cuts = [0.2, 0.4, 0.41, 0.6, 0.75]
    curve = roc_curve(
        y, score, 1e4, thresholds=cuts, noise=noise, smooth=False, adjacency=adjacency
    )
    np.testing.assert_allclose(curve.thresholds[1:-1], cuts[::-1])
    fpr, tpr = naive_rates(y, score, cuts[::-1])
    np.testing.assert_allclose(curve.fpr[1:-1], fpr, atol=1e-12)
    np.testing.assert_allclose(curve.tpr[1:-1], tpr, atol=1e-12)


@pytest.mark.parametrize("thresholds", ["medians", "grid"])
def test_drawn_thresholds_are_those_that_rates_belong_to(thresholds):
    y, score = sample(500)
    curve = roc_curve(y, score, 1e4, thresholds=thresholds, levels=4, smooth=False)
    fpr, tpr = naive_rates(y, score, curve.thresholds[1:-1])
    np.testing.assert_allclose(curve.fpr[1:-1], fpr, atol=1e-12)
    np.testing.assert_allclose(curve.tpr[1:-1], tpr, atol=1e-12)


def test_much_budget_gives_the_true_area():
    from sklearn.metrics import roc_auc_score as exact

    y, score = sample(20_000)
    for way in WAYS:
        if isinstance(way.get("thresholds"), list):
            continue  # few thresholds say little of a curve, however exact
        found = roc_auc_score(y, score, 100.0, **{**way, "levels": 8})
        assert abs(found - exact(y, score)) < 0.003


def test_the_order_of_records_does_not_matter():
    y, score = sample(400)
    order = np.random.default_rng(0).permutation(400)
    first = roc_curve(y, score, 1.0, random_state=3)
    second = roc_curve(y[order], score[order], 1.0, random_state=3)
    np.testing.assert_array_equal(first.tpr, second.tpr)
    np.testing.assert_array_equal(first.thresholds, second.thresholds)


def test_inputs_may_be_lists_and_of_any_label():
    y, score = sample(200)
    words = np.where(y == 1, "spam", "ham")
    first = roc_curve(y, score, 1.0, random_state=3)
    for other in (y.tolist(), y.astype(bool), 2 * y - 1, y.astype(float)):
        np.testing.assert_array_equal(first.tpr, roc_curve(other, score, 1.0, random_state=3).tpr)
    named = roc_curve(words, list(score), 1.0, random_state=3, pos_label="spam")
    np.testing.assert_array_equal(first.tpr, named.tpr)


def test_the_rules_are_public():
    """Budget, adjacency and a public size decide what is drawn; records do not."""
    for y, score in AWKWARD.values():
        curve = roc_curve(y, score, 1.0, adjacency="add_remove", n_public=558)
        assert curve.release.settings["bits"] == 4
        assert [(e.kind, e.count) for e in curve.release.events] == [("selection", 4), ("pure", 1)]
        assert curve.release.settings["measurement"] == "Flat(bits=4)"
        few = roc_curve(y, score, 0.1, adjacency="add_remove", n_public=558)
        assert [(e.kind, e.count) for e in few.release.events] == [("pure", 1)]
        assert few.release.settings["thresholds"] == "grid"
        many = roc_curve(y, score, 1.0, adjacency="add_remove", n_public=10**6)
        assert many.release.settings["measurement"] == "Hierarchy(bits=8, widths=(4, 4))"
        unknown = roc_curve(y, score, 1.0, adjacency="add_remove")
        assert unknown.release.settings["bits"] == 3


def test_noise_is_chosen_by_its_expected_error():
    def chosen(bits, delta=0.0, noise="auto"):
        budget = privfit.Budget(1.0, delta)
        return Counts.plan(noise, bits, budget, (), ADD_REMOVE)

    for bits in range(1, 13):
        plans = [chosen(bits, noise=noise) for noise in ("flat", "hierarchy", "wavelet")]
        assert chosen(bits)._error() == min(plan._error() for plan in plans)
    loose = chosen(12, 0.01)
    assert isinstance(loose.noise, privfit.DiscreteGaussian)
    assert isinstance(loose.measurement, Haar)


# ------------------------------------------------------------------------------ matrix and accuracy


def test_a_confusion_matrix_counts_every_record_once():
    y, score = sample(1000)
    exact = np.array([[np.sum((y == c) & ((score >= 0.6) == p)) for p in (0, 1)] for c in (0, 1)])
    for adjacency in ADJACENCIES:
        found = confusion_matrix(y, score, 1e4, threshold=0.6, adjacency=adjacency)
        np.testing.assert_allclose(found.counts, exact, atol=1e-9)
        assert found.accuracy == pytest.approx(np.trace(exact) / 1000)
        right = accuracy_score(y, score, 1e4, threshold=0.6, adjacency=adjacency)
        assert right == pytest.approx(np.trace(exact) / 1000)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", AWKWARD)
def test_a_confusion_matrix_is_never_negative(name, adjacency):
    y, score = AWKWARD[name]
    for epsilon in (0.01, 1.0):
        found = confusion_matrix(y, score, epsilon, adjacency=adjacency, random_state=1)
        assert found.counts.min() >= 0
        assert 0 <= found.accuracy <= 1
        if adjacency == "replace":
            assert found.counts.sum() == pytest.approx(len(y))
        assert found.release.verify()
        assert 0 <= accuracy_score(y, score, epsilon, adjacency=adjacency, random_state=1) <= 1


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_counts_of_matrix_and_accuracy_move_as_declared(adjacency, monkeypatch):
    """Every pair of neighbours of three records: l1 of what reaches the mechanism."""
    seen: list[Any] = []
    monkeypatch.setattr(
        privfit.privacy.ledger.Grant,
        "release",
        lambda self, mechanism, value, rng: (
            seen.append((mechanism, np.asarray(value))) or np.asarray(value)
        ),
    )
    scores = [(y, s) for y in (0, 1) for s in (0.2, 0.8)], {}
    predictions = list(itertools.product("abc", repeat=2)), {"classes": list("abc")}
    for measure, (universe, told) in itertools.product(
        (confusion_matrix, accuracy_score), (scores, predictions)
    ):
        l1, l2 = 0, 0
        for pair in neighbours(universe, 3 if not told else 2, adjacency):
            seen.clear()
            for D in pair:
                measure(*map(list, zip(*D, strict=True)), 1.0, adjacency=adjacency, **told)
            (mechanism, a), (_, b) = seen
            assert np.abs(a - b).sum() <= mechanism.sensitivity
            l1, l2 = max(l1, np.abs(a - b).sum()), max(l2, np.square(a - b).sum())
        assert l1 == l2 == mechanism.sensitivity  # l2 squared


# ------------------------------------------------------------------- predictions of several classes

LETTERS = np.array(["a", "b", "c", "d"])


def predictions(n=700, k=4, seed=0):
    """Labels of k classes, and predictions of which two in three are right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return y, np.where(rng.random(n) < 2 / 3, y, rng.integers(k, size=n))


def test_predictions_are_counted_as_by_the_naive_twin():
    odd = [
        1,
        "1",
        1.0,
        True,
        np.int8(1),
        "b",
        "é",
        "e\u0301",
        0.1,
        np.float32(0.1),
        "0.1",
        2,
        "2.0",
    ]
    classes = [2, "b", 0.1, 1, "é"]
    rng = np.random.default_rng(0)
    y, predicted = ([odd[i] for i in rng.integers(len(odd), size=300)] for _ in range(2))
    rows = PredictedRows.pack(predicted, y, known=positions(classes, "classes"))
    exact = np.array(confusion(y, predicted, classes))
    assert rows.confusion(5).dtype == np.int64
    np.testing.assert_array_equal(rows.confusion(5), exact)
    assert rows.right().tolist() == [np.trace(exact)]
    one = PredictedRows.pack(predicted[:1], y[:1], known=positions(classes, "classes"))
    rest = PredictedRows.pack(predicted[1:], y[1:], known=positions(classes, "classes"))
    np.testing.assert_array_equal(one.confusion(5) + rest.confusion(5), exact)


@pytest.mark.filterwarnings("ignore::privfit.UnwiseBudgetWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_with_little_noise_predictions_are_graded_as_by_scikit_learn(adjacency):
    from sklearn import metrics

    codes = predictions()
    y, predicted = (LETTERS[one] for one in codes)
    for classes in (list("abcd"), LETTERS[::-1], tuple("dbca")):
        told = {"classes": classes, "adjacency": adjacency}
        exact = metrics.confusion_matrix(y, predicted, labels=list(classes))
        np.testing.assert_allclose(
            confusion_matrix(y, predicted, 1e4, **told).counts, exact, atol=1e-9
        )
        share = metrics.accuracy_score(y, predicted)
        assert accuracy_score(y, predicted, 1e4, **told) == pytest.approx(share)
    forms = (list, tuple, pd.Series, lambda c: pd.Series(c).astype("category"),
             lambda c: np.array(c, dtype=object))  # fmt: skip
    for form in forms:
        found = confusion_matrix(form(y), form(predicted), 1e4, classes=list("abcd"))
        np.testing.assert_allclose(found.counts, confusion(y, predicted, "abcd"), atol=1e-9)
    found = confusion_matrix(*codes, 1e4, classes=range(4), adjacency=adjacency)
    np.testing.assert_allclose(found.counts, metrics.confusion_matrix(*codes), atol=1e-9)


def test_classes_decide_whether_predictions_or_scores_are_meant_and_values_do_not():
    y, predicted = predictions(k=2)
    for measure in (confusion_matrix, accuracy_score):
        for seed in range(3):
            scores = measure(y, predicted, 1.0, random_state=seed)
            declared = measure(y, predicted, 1.0, classes=[0, 1], random_state=seed)
            assert scores.release.settings == {"threshold": 0.5}
            assert declared.release.settings == {"classes": [0, 1]}
            for name, value in scores.release.parameters.items():
                np.testing.assert_array_equal(declared.release.parameters[name], value)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_matrix_of_several_classes_is_never_negative_and_keeps_its_release(adjacency):
    y, predicted = predictions(60)
    ledger = Ledger(10.0)
    for epsilon in (0.01, 1.0):
        found = confusion_matrix(y, predicted, epsilon, classes=[0, 1, 2, 3], adjacency=adjacency,
                                 ledger=ledger, random_state=1)  # fmt: skip
        assert found.counts.shape == (4, 4)
        assert found.counts.min() >= 0
        assert found.release == ledger.releases[-1]
        assert found.release.verify()
        if adjacency == "replace":
            assert found.counts.sum() == pytest.approx(60)
        share = accuracy_score(y, predicted, epsilon, classes=[0, 1, 2, 3], adjacency=adjacency)
        assert 0 <= share <= 1


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_of_predictions_is_that_of_their_sensitivity(adjacency):
    """Chi-square of 9 cells in 1,000 runs; by chance it fails once in a million."""
    y, predicted = predictions(50, k=3)
    told = {"classes": [0, 1, 2], "adjacency": adjacency}
    exact = np.array(confusion(y, predicted, range(3))).ravel()
    rng = BitSource(11)
    noise = np.concatenate([
        confusion_matrix(y, predicted, 1.0, random_state=rng, **told).release.parameters["noisy"]
        - exact for _ in range(1000)
    ])  # fmt: skip
    p = math.exp(-1 / (2 if adjacency == "replace" else 1))
    edge = 5
    inside = (1 - p) / (1 + p) * p ** np.abs(np.arange(-edge, edge + 1))
    tail = (1 - inside.sum()) / 2
    law = np.concatenate([[tail], inside, [tail]])
    counts = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    assert scipy.stats.chisquare(counts, law * noise.size).pvalue > 1e-6


# ------------------------------------------------------------------------------------------- audits


def audit(run, adjacency, runs):
    """Two far-off neighbours; a false alarm comes once in a million runs."""
    y, score = [0, 0, 0, 1, 1], [0.05, 0.1, 0.1, 0.9, 0.95]
    other = y[:-1], score[:-1]
    if adjacency == "replace":
        other = [*other[0], 0], [*other[1], 0.02]
    return audit_runs(run, (y, score), other, runs=runs, confidence=SURE, rng=5)


def curve_audit(adjacency, runs=1500, **way):
    """At epsilon 2 so few runs tell a mistake by a factor of two: see the test that makes one."""

    def run(data, rng):
        curve = roc_curve(
            *data, 2.0, adjacency=adjacency, n_public=5, smooth=False, random_state=rng, **way
        )
        return np.concatenate([curve.release.parameters["noisy"].ravel(), curve.thresholds[1:2]])

    return audit(run, adjacency, runs)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "way",
    [{"thresholds": "medians", "levels": 1}, {"thresholds": [0.5], "noise": "wavelet"}],
    ids=str,
)
def test_audits_find_no_more_than_the_budget_of_a_curve(adjacency, way):
    assert curve_audit(adjacency, **way).passes(2.0)


@pytest.mark.slow
@pytest.mark.statistical
def test_an_audit_finds_a_sensitivity_of_replaced_records_that_is_too_small(monkeypatch):
    assert 0.5 < curve_audit("replace", thresholds=[0.5]).lower_bound <= 2.0
    monkeypatch.setattr(Flat, "sensitivity", lambda self, adjacency: 1)
    assert not curve_audit("replace", thresholds=[0.5]).passes(2.0)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_audits_find_no_more_than_the_budget_of_a_matrix(adjacency):
    def run(data, rng):
        found = confusion_matrix(*data, 2.0, adjacency=adjacency, random_state=rng)
        return found.release.parameters["noisy"]

    def right(data, rng):
        return accuracy_score(*data, 2.0, adjacency=adjacency, random_state=rng)

    def predicted(data, rng):
        codes = (3 * np.asarray(data[1])).astype(int)
        told = {"classes": [0, 1, 2], "adjacency": adjacency}
        found = confusion_matrix(data[0], codes, 2.0, random_state=rng, **told)
        return found.release.parameters["noisy"]

    for measure in (run, right, predicted):
        assert audit(measure, adjacency, 1500).passes(2.0)


# ------------------------------------------------------------------------------------------ ledgers


def test_a_whole_run_is_one_ledger_and_one_json():
    """Training and test records are disjoint: the run costs the larger of the two, not the sum."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    ledger = Ledger(1.0, 1e-6)
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], ledger=ledger)
    with ledger.group("train"):
        model.fit(X[:3000], y[:3000])
    with ledger.group("test"):
        score = model.predict_proba(X[3000:])[:, 1]
        curve = roc_curve(y[3000:], score, 0.6, ledger=ledger)
        right = accuracy_score(y[3000:], score, 0.4, ledger=ledger)
        with pytest.raises(BudgetError, match=r"asks for epsilon 0\.1"):
            roc_curve(y[3000:], score, 0.1, ledger=ledger)
    assert curve.auc > 0.8
    assert right > 0.7
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 1e-6)
    assert [entry[:2] for entry in ledger.entries] == [
        ("train", "LogisticRegression"), ("test", "roc_curve"), ("test", "accuracy_score")
    ]  # fmt: skip
    assert ledger.releases[:2] == (model.release_, curve.release)
    again = Ledger.from_json(ledger.to_json())
    assert [release.name for release in again.releases] == [entry[1] for entry in ledger.entries]
    assert all(release.verify() for release in again.releases)
    np.testing.assert_array_equal(again.releases[1].parameters["tpr"], curve.tpr)
    assert again.to_json() == ledger.to_json()


def test_nothing_is_charged_for_what_is_refused():
    ledger = Ledger(1.0)
    for call, _ in ERRORS:
        with pytest.raises((ValueError, TypeError)):
            call(ledger=ledger)
    assert ledger.spent.epsilon == 0


# --------------------------------------------------------------------------------------------- plot


def test_plots_show_the_private_curve_and_the_true_one_on_demand():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    y, score = sample(300)
    curve = roc_curve(y, score, 1.0)
    ax = curve.plot()
    assert [line.get_label() for line in ax.lines][1:] == [
        f"private, epsilon 1 (area {curve.auc:.3f})"
    ]
    with pytest.warns(PrivacyLeakWarning, match=r"plot\(true=...\) draws the exact curve"):
        same = curve.plot(pyplot.subplots()[1], true=(y, score))
    np.testing.assert_array_equal(same.lines[1].get_xdata(), exact_roc(y, score)[0])
    np.testing.assert_array_equal(same.lines[2].get_ydata(), curve.tpr)
    pyplot.close("all")


def test_the_exact_curve_is_that_of_scikit_learn():
    from sklearn.metrics import roc_curve as exact

    y, score = sample(300)
    fpr, tpr, _ = exact(y, np.round(score, 1), drop_intermediate=False)
    np.testing.assert_allclose(exact_roc(y, np.round(score, 1)), (fpr, tpr))
    np.testing.assert_array_equal(exact_roc([0, 1], [np.inf, np.inf]), [[0, 1], [0, 1]])


def test_reprs_show_released_values_alone():
    curve = roc_curve(*sample(100), 1.0, random_state=1)
    assert re.fullmatch(r"RocCurve\(<\d+ points>, auc 0\.\d+\)", repr(curve))


# ------------------------------------------------------------------------------- curves of 2014


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("t", [1, 2, 3])
def test_the_published_sensitivity_of_counts_is_enough(adjacency, t):
    """All neighbours of small tables: t + 1 counts change, and 2 t + 1 are paid for."""
    kind = Counted(2, t)
    universe = list(itertools.product(range(2), range(t + 1)))  # class and cell
    worst = 0
    for first, second in neighbours(universe, 2, adjacency):
        cells = np.zeros((2, 2, 4), dtype=np.int64)
        for table, records in zip(cells, (first, second), strict=True):
            for label, cell in records:
                table[label, cell] += 1
        a, b = kind.measure(cells[0]), kind.measure(cells[1])
        assert a.shape == (2, t + 1)
        assert np.array_equal(kind.estimate(a), cells[0])
        worst = max(worst, int(np.abs(a - b).sum()))
    ways = 2 if adjacency == "replace" else 1
    assert worst == ways * (t + 1)
    assert kind.sensitivity(Neighbours(adjacency)) == ways * (2 * t + 1) >= worst


def test_half_of_the_counts_budget_for_each_class_leaves_half_of_it_unspent():
    """A record is in one class, so two histograms of epsilon_2 / 2 cost that once."""
    y, score = sample(558)
    curve = roc_curve(y, score, 1.0, paper=True, adjacency="add_remove", n_public=558,
                      random_state=0)  # fmt: skip
    assert curve.release.epsilon == pytest.approx(1.0)  # as charged
    needed = sum(event.count * event.parameter for event in curve.release.events)
    assert needed == pytest.approx(0.2 + 0.8 / 2)
    for label, cell in itertools.product(range(2), range(8)):
        cells = np.zeros((2, 8), dtype=np.int64)
        cells[label, cell] = 1
        assert np.abs(Haar(3).measure(cells)).sum() == 1 + 3  # over both classes


@pytest.mark.few(1)
@pytest.mark.parametrize("paper", [True, PriROC("grid", alpha=0.05), PriROC("laplace")])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_published_curves_are_those_of_the_records_where_noise_is_small(paper, adjacency):
    y, score = sample(4000, seed=3)
    curve = roc_curve(y, score, 5e4, paper=paper, adjacency=adjacency, n_public=4000,
                      random_state=0)  # fmt: skip
    fpr, tpr = exact_roc(y, score)
    exact = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    assert abs(curve.auc - exact) < 0.02
    assert curve.release.verify()
    assert sum(event.count * event.parameter for event in curve.release.events) <= 5e4


def test_published_rules_depend_on_public_numbers_alone():
    for n, k in ((1, 1), (2, 1), (3, 2), (512, 9), (513, 10), (10**6, 12)):
        assert PriROC().levels(n) == k
    assert PriROC(k=3).levels(None) == 3
    assert PriROC("laplace", t=7).cells(None) == 8
    assert [PriROC("grid", alpha=0.5).cells(n) for n in (1, 10, 11, 10**6)] == [2, 5, 5, 4096]
    np.testing.assert_allclose(PriROC("grid").cuts((-1.0, 1.0), 4), [-0.5, 0.0, 0.5])


# ------------------------------------------------------------------------------------------- errors

Y, S = [0, 1, 1], [0.1, 0.2, 0.3]


def curve_of(y=Y, score=S, epsilon=1.0, **options):
    return partial(roc_curve, y, score, epsilon, **options)


ERRORS = [
    (curve_of(score=[]), r"y_true must have one label for each score"),
    (curve_of(y=[], score=[]), r"y_score must have at least one record; pass a non-empty"),
    (curve_of(y=[[0, 1]], score=np.ones((1, 2))), r"y_score \(.*\) must be a vector of numbers"),
    (curve_of(score=np.array(["a", "b", "c"])), r"y_score \(.*dtype <U1\) must be a vector of"),
    (curve_of(score=[SECRET, "b", 0]), r"y_score must not contain NaN; replace it by a public"),
    (curve_of(score=[SECRET, np.nan, 0]), r"y_score must not contain NaN; replace it by a public"),
    (curve_of(y=[0, 1, SECRET]), r"y_true must hold 0 and 1, or -1 and \+1; pass pos_label="),
    (curve_of(y=[0, 1, -1]), r"y_true must hold 0 and 1"),
    (curve_of(y=["a", "b", "b"]), r"y_true must hold 0 and 1"),
    *((curve_of(bounds=b), r"bounds \(.*\) must be two increasing numbers, 1e-100 to 1e100 apart; "
                           r"pass")
      for b in ((1, 0), (0, 0), (0, np.inf), (0,), 3, None, ("a", "b"), (0, 1e-200), (0, 1e200))),
    (curve_of(y=np.array([0, 1, 1]), pos_label="spam"),
     r"pos_label \('spam'\) must have the type of y_true.s labels; pass one"),
    (curve_of(thresholds="quartiles"), r"thresholds \('quartiles'\) must be 'auto', 'medians'"),
    *((curve_of(thresholds=t), r"thresholds \(shape .*\) must be a vector of 1 to 4095 numbers")
      for t in ([], [[0.5]], ["a"], np.linspace(0.001, 0.9, 4096))),
    *((curve_of(thresholds=t), r"thresholds must increase within the bounds; pass them sorted, or")
      for t in ([0.5, 0.4], [0.5, 0.5], [0.0, 0.5], [1.0], [np.nan])),
    *((curve_of(levels=k), r"levels \(.*\) must be a whole number from 1 to 12; leave it out")
      for k in (0, 13, 2.0, True)),
    *((curve_of(share=s, thresholds="medians"), r"share \(.*\) must lie between 0 and 1; leave it")
      for s in (0, 1, np.nan, "a")),
    (curve_of(noise="cauchy"), r"noise \('cauchy'\) must be one of auto, flat, hierarchy, wave"),
    (curve_of(noise="gaussian"), r"noise \('gaussian'\) needs delta > 0, and epsilon below a"),
    *((curve_of(paper=p), r"paper \(.*\) must be True, False or a PriROC; pass one of them")
      for p in ("medians", 1, None, 0)),
    *((curve_of(paper=True, **{name: value}), rf"{name} must be left out with paper=True, which "
       r"has its own settings; pass paper=PriROC\(...\)")
      for name, value in {"thresholds": [0.5], "levels": 3, "share": 0.2, "noise": "wavelet",
                          "smooth": False}.items()),
    *((curve_of(paper=p, adjacency="add_remove"), r"n_public must be given under adjacency='add_re")
      for p in (True, PriROC("grid"))),
    (curve_of(adjacency="swap"), r"adjacency \('swap'\) must be 'replace' or 'add_remove'"),
    (curve_of(n_public=0), r"n_public \(0\) must be a positive whole number; pass a public"),
    *((curve_of(epsilon=e), r"epsilon \(.*\) must be") for e in (0, -1, np.inf, "1")),
    (curve_of(epsilon=1e-17), r"noise this wide does not fit in 64 bits"),
    *((partial(measure, Y, S, 1.0, adjacency="swap"), r"adjacency \('swap'\) must be 'replace'")
      for measure in (confusion_matrix, accuracy_score)),
    *((partial(measure, Y, S, 1.0, threshold=np.nan), r"threshold \(nan\) must be a finite number")
      for measure in (confusion_matrix, accuracy_score)),
    *((partial(measure, Y, S, 0.0), r"epsilon \(0.0\) must be a positive number")
      for measure in (confusion_matrix, accuracy_score)),
    *((partial(measure, y, predicted, 1.0, **{"classes": [0, 1], **told}), message)
      for measure in (confusion_matrix, accuracy_score)
      for y, predicted, told, message in (
          (Y, Y[1:], {}, r"y_true must have one label for each prediction; pass vectors of one"),
          (Y, [Y], {}, r"y_true must have one label for each prediction"),
          (Y, np.array([Y]), {}, r"y_true must have one label for each prediction"),
          (Y, None, {}, r"y_true must have one label for each prediction"),
          ([], [], {}, r"y_true must have at least one record; pass a non-empty test set"),
          ([0, 1, SECRET], Y, {}, r"y_true must hold declared classes alone; pass classes=\[...\]"),
          ([0, 1, None], Y, {}, r"y_true must hold declared classes alone"),
          (Y, [0, 1, SECRET], {}, r"y_score must hold declared classes alone; pass classes="),
          (Y, [0, 1, [1]], {}, r"y_score must hold declared classes alone"),
          (Y, Y, {"threshold": 0.4}, r"threshold \(0.4\) must be left out with classes, which st"),
          (Y, Y, {"pos_label": "b"}, r"pos_label \('b'\) must be left out with classes"),
          (Y, Y, {"classes": [1]}, r"classes must be at least two labels; pass classes=\[...\]"),
          (Y, Y, {"classes": [1, 1.0]}, r"classes must differ, but two of them read as '1'"),
          (Y, Y, {"classes": [0, None]}, r"classes \(None\) must be a text, a date or a number"),
          (Y, Y, {"classes": "01"}, r"classes \(str\) must be a sequence of labels; pass classes="),
          (Y, Y, {"classes": 2}, r"classes \(int\) must be a sequence of labels"),
      )),
    (partial(confusion_matrix, Y, Y, 1.0, classes=range(1025)),
     r"classes \(1025 of them\) must be at most 1024 for a confusion matrix; pass fewer, or ask"),
]  # fmt: skip

OTHER_ERRORS = [
    (partial(PriROC, "quartiles"), r"thresholds \('quartiles'\) must be 'medians', 'grid' or 'lap"),
    *((partial(PriROC, k=k), r"k \(.*\) must be a whole number from 1 to 12; leave it out")
      for k in (0, 13, 2.0, True)),
    *((partial(PriROC, alpha=a), r"alpha \(.*\) must lie in \(0, 1\]; pass alpha=1.0")
      for a in (0, 1.5, np.nan, "1")),
    *((partial(PriROC, t=t), r"t \(.*\) must be a whole number from 1 to 4095; pass t=10")
      for t in (0, 4096, 2.5)),
    (curve_of(ledger=1.0), r"ledger \(float\) must be a Ledger; pass Ledger\(epsilon, delta\)"),
    *((partial(Medians, 1.0, REPLACE, k), r"levels \(.*\) must be a whole number from 1 to 12")
      for k in (0, 13, 1.0)),
    *((partial(Medians, e, REPLACE, 2), r"epsilon_each \(.*\) must be a positive number; pass a")
      for e in (0, -1.0, np.nan, "1")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [*ERRORS, *OTHER_ERRORS])
def test_wrong_input_has_one_clear_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert str(SECRET) not in str(caught.value)


def test_undeclared_predictions_are_refused_before_the_charge():
    ledger = Ledger(1.0)
    for y, predicted in (([0, 1], [0, 2]), ([0, 2], [0, 1])):
        for measure in (confusion_matrix, accuracy_score):
            with pytest.raises(ValueError, match="must hold declared classes alone"):
                measure(y, predicted, 1.0, classes=[0, 1], ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_accuracy_takes_more_classes_than_a_matrix():
    y = list(range(3000))
    assert accuracy_score(y, y, 1.0, classes=range(3000), random_state=1) > 0.9


def test_every_raise_is_reached():
    seen = ""
    for call, _ in (*ERRORS, *OTHER_ERRORS):
        try:
            call()
        except (ValueError, TypeError) as error:
            seen += f"\n{error}"
    for module in (roc, priroc, binormal, cumulative, graded):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                message = node.exc.args[0]
                parts = message.values if isinstance(message, ast.JoinedStr) else [message]
                fixed = [part.value for part in parts if isinstance(part, ast.Constant)]
                assert all(part in seen for part in fixed), fixed


def test_plots_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot needs matplotlib; run pip install"):
        roc_curve(Y, S, 1.0).plot()


# --------------------------------------------------------------------------------------- sms_spam

LIMITS = {1.0: 0.023, 0.5: 0.029, 0.25: 0.054, 0.1: 0.092}  # the paper's best method, Table 1


def messages(folder):
    """sms_spam as 8,192 hashed binary features, at most 20 a message, and labels."""
    with gzip.open(folder / "sms_spam.csv.gz", "rt", encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    words = [sorted({zlib.crc32(w.encode()) % 8192 for w in re.findall(r"\w+", text.lower())})[:20]
             for _, text in rows]  # fmt: skip
    lengths = np.cumsum([0, *map(len, words)])
    X = sp.csr_matrix((np.ones(lengths[-1]), np.concatenate(words), lengths), (len(rows), 8192))
    return X, np.array([label == "spam" for label, _ in rows])


@pytest.mark.slow
def test_curves_of_spam_are_closer_than_the_papers(data_folder):
    """The median l1 distance of 24 runs on 558 messages, and of a second classifier."""
    from sklearn.linear_model import LogisticRegression as Plain
    from sklearn.naive_bayes import BernoulliNB

    X, y = messages(data_folder)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[:558], order[558:]
    at = (np.arange(2000) + 0.5) / 2000
    for model in (BernoulliNB(), Plain()):
        score = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        true = np.interp(at, *exact_roc(y[test], score))
        for epsilon, limit in LIMITS.items():
            errors = []
            for seed in range(24):
                curve = roc_curve(
                    y[test], score, epsilon, adjacency="add_remove", n_public=500, random_state=seed
                )
                errors.append(np.abs(np.interp(at, curve.fpr, curve.tpr) - true).mean())
            assert np.median(errors) < limit


def test_no_score_is_so_large_that_a_warning_tells_of_it():
    y, score = np.repeat([0, 1], 50), np.linspace(0, 1, 100)
    inside = _Table.of(y, np.append(score[:-2], [0.0, 1.0]), 1).histogram()
    far = _Table.of(y, np.append(score[:-2], [-1e308, np.inf]), 1).histogram()
    np.testing.assert_array_equal(far, inside)
