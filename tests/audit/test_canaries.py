"""Guesses about canaries: the bound is the published one, and a factor of two is found.

Tests that draw alarm by chance at most once in 1e6 runs each; seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

from privfit import DiscreteLaplace
from privfit.audit import audit_guesses, guesses_needed, one_run

SURE = 1 - 1e-6


def naive_chance(right, guesses, canaries, epsilon, delta):
    """The bound of Steinke, Nasr and Jagielski, term by term."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))

    def f(v):
        return math.fsum(
            math.comb(guesses, k) * p**k * (1 - p) ** (guesses - k)
            for k in range(max(v, 0), guesses + 1)
        )

    gains = [(f(right - i) - f(right)) / i for i in range(1, right + 1)]
    return f(right) + 2 * canaries * delta * max(gains, default=0.0)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("right", "guesses", "canaries"), [(38, 40, 40), (30, 40, 100), (9, 9, 9)])
def test_the_bound_of_guesses_is_where_they_become_too_unlikely(right, guesses, canaries, delta):
    found = audit_guesses(right, guesses, canaries, delta=delta, confidence=0.95)
    if found.lower_bound:
        at = naive_chance(right, guesses, canaries, found.lower_bound, delta)
        assert math.isclose(at, 0.05, rel_tol=1e-6)
    assert naive_chance(right, guesses, canaries, found.lower_bound + 1e-6, delta) > 0.05
    assert not audit_guesses(right, guesses, canaries, delta=0.5).lower_bound


def test_more_right_guesses_prove_more_and_all_right_ones_much():
    bounds = [audit_guesses(right, 100, 100).lower_bound for right in range(0, 101, 10)]
    assert bounds == sorted(bounds)
    assert bounds[5] == 0 < bounds[8]
    assert math.isclose(bounds[10], scipy.special.logit(0.001 ** (1 / 100)), rel_tol=1e-9)
    assert audit_guesses(10**6, 10**6, 10**6).lower_bound > 10


@pytest.mark.parametrize(
    ("confidence", "least", "always"), [(0.95, 60, 69), (0.999, 137, 142), (SURE, 258, 268)]
)
def test_how_many_guesses_show_a_factor_of_two(confidence, least, always):
    """A perfect attack at epsilon 1, power 0.9; numbers of guesses saw the power up and down."""

    def power(m):
        counts, p = np.arange(m + 2), scipy.special.expit([1.0, 2.0])
        refutes = scipy.stats.binom.sf(counts - 1, m, p[0]) <= 1 - confidence
        return scipy.stats.binom.sf(counts[refutes][0] - 1, m, p[1])

    assert guesses_needed(1.0, 2.0, confidence) == least
    assert power(least) >= 0.9 > power(least - 1)
    assert min(power(m) for m in range(always, always + 60)) >= 0.9 > power(always - 1)


def histogram(epsilon):
    """A category for each canary, as many records beside it; add_remove, exact noise."""
    noise = DiscreteLaplace(epsilon, 1)
    return lambda included, rng: noise(5 + included.astype(np.int64), int(rng.integers(2**31)))


def swapped(epsilon):
    """Under replace a canary is in its category, or in another fixed one: two counts change."""
    noise = DiscreteLaplace(epsilon, 2)

    def run(included, rng):
        counts = np.concatenate([included, ~included]).astype(np.int64)
        noisy = noise(counts, int(rng.integers(2**31)))
        return noisy[: len(included)] - noisy[len(included) :]

    return run


@pytest.mark.parametrize("mechanism", [histogram, swapped])
def test_one_run_finds_a_factor_of_two_and_passes_right_noise(mechanism):
    def look(epsilon):
        return one_run(mechanism(epsilon), 5000, 1000, confidence=SURE, rng=1)

    right, doubled = look(1.0), look(2.0)
    assert right.passes(1.0)
    assert right.lower_bound > 0.3  # it did look
    assert not doubled.passes(1.0)
    assert doubled.passes(2.0)
    assert (doubled.guesses, doubled.canaries) == (1000, 5000)


def test_several_runs_add_up_their_guesses():
    found = one_run(histogram(2.0), 500, 100, runs=10, confidence=SURE, rng=2)
    assert (found.guesses, found.canaries) == (1000, 5000)
    assert not found.passes(1.0)


def test_guesses_do_not_see_the_order_of_equal_canaries():
    found = one_run(lambda included, rng: np.zeros(len(included)), 4000, 2000, rng=3)
    assert found.lower_bound == 0
    assert abs(found.right - 1000) < 150  # six deviations


@pytest.mark.statistical
def test_certified_guesses_are_wrong_no_more_often_than_promised():
    """300 audits at confidence 0.9 of randomised response, where the bound is sharp."""
    drawn = np.random.default_rng(4).binomial(100, scipy.special.expit(1.0), 300).tolist()
    fails = {right: not audit_guesses(right, 100, 100, confidence=0.9).passes(1.0)
             for right in set(drawn)}  # fmt: skip
    wrong = sum(fails[right] for right in drawn)
    assert wrong > 0  # the bound is sharp
    assert scipy.stats.binom.sf(wrong - 1, 300, 0.1) > 1e-8


def test_bad_guesses_are_refused():
    with pytest.raises(
        ValueError, match=r"right \(-1\) must be a whole number of at least 0; pass"
    ):
        audit_guesses(-1, 5, 5)
    with pytest.raises(ValueError, match=r"right \(6\), guesses \(5\) and canaries \(5\) must not"):
        audit_guesses(6, 5, 5)
    for confidence in (0, 1, math.nan, "a"):
        with pytest.raises(ValueError, match=r"confidence \(.*\) must lie between 0 and 1"):
            audit_guesses(1, 5, 5, confidence=confidence)
    with pytest.raises(ValueError, match=r"delta \(-0.1\) must lie between 0 and 1, and below"):
        audit_guesses(1, 5, 5, delta=-0.1)
    with pytest.raises(ValueError, match=r"guesses \(3\) must be even: half in, half out; pass 4"):
        one_run(histogram(1.0), 10, 3)
    with pytest.raises(ValueError, match=r"runs \(0\) must be a positive whole number; pass"):
        one_run(histogram(1.0), 10, 4, runs=0)
    with pytest.raises(ValueError, match=r"run must return a number for each canary, not shape"):
        one_run(lambda included, rng: [1.0], 10, 4)
