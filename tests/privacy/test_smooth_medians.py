"""Medians from smooth sensitivity: the proof by enumeration, the law, the draw."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from reference import neighbours
from scipy.stats import chi2

from privfit._kernels.random import BitSource
from privfit.audit import strain
from privfit.privacy import smooth_medians
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.smooth_medians import SmoothMedians, smooth_sensitivity

ADJACENCIES = ("add_remove", "replace")


def naive_sensitivity(records, width, beta):
    """max over k of exp(-beta k) A(k), by its definition, with x_i beyond the records."""
    n, r = len(records), (len(records) + 1) // 2

    def x(i):
        return 0 if i < 1 else width if i > n else records[i - 1]

    return max(
        math.exp(-beta * k) * max(x(r + t) - x(r + t - k - 1) for t in range(k + 2))
        for k in range(n + 2)
    )


@pytest.mark.parametrize("beta", [0.01, 0.5, 3.0])
def test_smooth_sensitivity_is_that_of_the_definition(beta):
    coins = np.random.default_rng(0)
    for _ in range(200):
        width = int(coins.integers(2, 12))
        records = sorted(coins.integers(0, width, coins.integers(0, 9)).tolist())
        found = smooth_sensitivity(np.bincount(records, minlength=width), beta)
        naive = naive_sensitivity(records, width, beta)
        assert found == pytest.approx(max(naive, smooth_medians.LEAST), rel=1e-12)


def law(places, mechanism, levels=None, ends=None):
    """{ends: log probability} of all levels, by the law of a cell."""
    levels = mechanism.levels if levels is None else levels
    ends = (0, len(places)) if ends is None else ends
    if levels == 0:
        return {ends: 0.0}
    choices = [[(a + 1 + i, math.log(p)) for i, p in enumerate(mechanism.law(places[a:b]))]
               for a, b in itertools.pairwise(ends) if b - a > 1]  # fmt: skip
    found: dict[tuple[int, ...], float] = {}
    for cuts in itertools.product(*choices):
        here = tuple(sorted([*ends, *(t for t, _ in cuts)]))
        log = sum(log for _, log in cuts)
        for outcome, more in law(places, mechanism, levels - 1, here).items():
            found[outcome] = np.logaddexp(found.get(outcome, -math.inf), log + more)
    return found


def worst_loss(adjacency, epsilon, levels=1, size=5, most=3):
    """The largest log ratio over all neighbours on a tiny grid."""
    mechanism, laws = SmoothMedians(epsilon, Neighbours(adjacency), levels), {}

    def law_of(D):
        if D not in laws:
            laws[D] = law(np.bincount(D, minlength=size), mechanism)
        return laws[D]

    return max(
        abs(log - law_of(second)[ends])
        for first, second in neighbours(range(size), most, adjacency)
        for ends, log in law_of(first).items()
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_smooth_medians_cost_what_they_say_on_every_pair_of_neighbours(adjacency, levels, epsilon):
    assert worst_loss(adjacency, epsilon, levels) <= 5 / 8 * levels * epsilon * (1 + 1e-9)


def test_noise_and_smoothness_are_needed(monkeypatch):
    """The parts of the cost add up to 5/8; a tenth of the noise overspends."""
    monkeypatch.setattr(smooth_medians, "NOISE", 0.8)
    assert worst_loss("add_remove", 1.0) > 1.1
    monkeypatch.setattr(smooth_medians, "NOISE", 8.0)
    monkeypatch.setattr(smooth_medians, "BETA", 8.0)
    assert worst_loss("add_remove", 1.0) > 1.1


def test_the_noise_that_algorithm_4_prints_costs_more_than_its_level(monkeypatch):
    """8 S / epsilon_1 where k = 10 levels of epsilon_1 / 10 are paid for: a record added at 8."""
    level = SmoothMedians(0.5, ADD_REMOVE, 1)
    monkeypatch.setattr(smooth_medians, "NOISE", 8.0 / 10)
    before, after = (np.bincount(D, minlength=12) for D in ([1, 10], [1, 8, 10]))
    loss = np.abs(np.log(level.law(before)) - np.log(level.law(after))).max()
    assert 1.14 * 0.5 < loss < 1.15 * 0.5
    assert strain(level, before, after) == pytest.approx(loss / 0.5)


def test_as_published_the_medians_of_558_records_are_middles():
    """At epsilon 1, its share 0.2 and k = 10 the noise is wider than the scores' range."""
    level = SmoothMedians(0.02, ADD_REMOVE, 10)
    assert 8 * naive_sensitivity([2047] * 558, 4096, 0.01) / 0.02 > 10 * 4096  # all alike
    for places in (np.repeat([1, 4094], [77, 481]), np.linspace(0, 4095, 558).astype(int),
                   np.repeat([1, 2047, 4000], [100, 358, 100])):  # fmt: skip
        chances = level.law(np.bincount(places, minlength=4096))
        assert chances.argmax() == 2047
        assert chances[2047] > 0.95


def test_medians_are_exact_where_noise_is_small():
    places = np.bincount([1, 1, 2, 5, 6, 6, 7], minlength=9)
    assert SmoothMedians(1e4, ADD_REMOVE, 1)(places, 0).tolist() == [0, 5, 9]
    assert SmoothMedians(1e4, REPLACE, 2)(places, 0).tolist()[2] == 5


@pytest.mark.slow
@pytest.mark.statistical
def test_smooth_medians_follow_their_law():
    """Chi-square at 1e-6 against the enumerated distribution."""
    places, runs = np.array([3, 0, 2, 1, 4]), 8_000
    mechanism, source = SmoothMedians(8.0, REPLACE, 2), BitSource(7)
    expected = {ends: runs * math.exp(log) for ends, log in law(places, mechanism).items()}
    assert sum(expected.values()) == pytest.approx(runs)
    seen = dict.fromkeys(expected, 0)
    for _ in range(runs):
        seen[tuple(mechanism(places, source).tolist())] += 1
    statistic = sum((seen[ends] - mean) ** 2 / mean for ends, mean in expected.items())
    assert statistic < chi2.isf(1e-6, len(expected) - 1)


@pytest.mark.slow
def test_a_law_is_one_for_any_budget():
    for epsilon in (1e-9, 1e-3, 1.0, 1e6, 1e300):
        for places in ([0, 0, 0], [9, 0, 0, 0, 10**6], [1] * 4096):
            chances = SmoothMedians(epsilon, REPLACE, 1).law(np.array(places))
            assert chances.sum() == pytest.approx(1.0, rel=1e-12)
            assert chances.min() > 2.0**-80


def test_a_cell_of_one_place_is_not_halved():
    assert SmoothMedians(1.0, REPLACE, 4)([5, 5, 5], 1).tolist() == [0, 1, 2, 3]
    assert SmoothMedians(1.0, REPLACE, 3)([7], 1).tolist() == [0, 1]


def test_the_strain_adds_up_both_cells_that_a_record_moves_between():
    mechanism = SmoothMedians(0.5, REPLACE, 2)
    first, second = np.zeros((2, 8), dtype=np.int64)
    first[[0, 3, 4, 7]] = 1, 2, 2, 1
    second[:] = first
    second[[0, 7]] = 0, 2
    alone = strain(mechanism, first, second)
    both = strain(mechanism, first, second, np.array([0, 2, 4, 6, 8]))
    assert 0 < alone < both <= 5 / 8
    assert strain(mechanism, first, first) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(SmoothMedians, 1.0, REPLACE, 13), r"levels \(13\) must be a whole number from"),
        (partial(SmoothMedians, 1e-10, REPLACE, 2), r"epsilon_each \(1e-10\) must be a number "
                                                      r"of at least 1e-09; pass a larger epsilon"),
        (partial(SmoothMedians, math.nan, REPLACE, 2), r"epsilon_each \(nan\) must be a number"),
    ],
)  # fmt: skip
def test_refused_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
