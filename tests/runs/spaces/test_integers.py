"""Boxes of whole numbers: moves as their naive twins, and draws as uniform as they say.

On fresh seeds a statistical test of right code fails with a probability of at most 1e-6: it asks
for at most ten p-values, each of at least 1e-7.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.spaces import check_inside

from privfit import Integers

LEAST = 1e-7  # p-value

bounds = st.lists(st.tuples(st.integers(-(2**52), 2**52 - 1), st.integers(1, 2**52)), min_size=1,
                  max_size=4)  # fmt: skip


def coins(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(bounds, st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_operator_stays_in_the_box(pairs, step, rate, seed):
    low = [start for start, _ in pairs]
    high = [min(start + width, 2**52) for start, width in pairs]
    space, c = Integers(low, high), coins(seed)
    A, B = space.sample(7, c), space.sample(7, c)
    child = space.mix(A, B, c)
    for P in (A, child, space.splice(A, B, c), space.sibling(A, B, child, c), space.extremes,
              space.nudge(A, step, c), space.jitter(A, step, rate, c), space.redraw(A, rate, c),
              space.moved(A[0], *space.all_moves(A[0], step)),
              space.moved(A[0], *space.some_moves(A[0], 7, step, c)),
              space.snap(c.normal(0, 1e17, size=A.shape))):  # fmt: skip
        check_inside(space, P)


@pytest.mark.parametrize("step", [0.0, 0.01, 0.25, 0.5, 1.0])
def test_all_moves_go_both_ways_along_every_coordinate(step):
    space = Integers(-3, 8, 3)
    for w in (space.middle, space.low, space.high, np.array([-2, 0, 8])):
        expected = reference.neighbours_of_integers(w.tolist(), -3, 8, step)
        assert space.moved(w, *space.all_moves(w, step)).tolist() == expected


def test_a_step_is_a_share_of_the_coordinates_own_width_and_at_least_one():
    space = Integers([0, 0], [1000, 9])
    P = np.tile([500, 5], (200, 1))
    changes = space.nudge(P, 0.01, coins()) - P
    assert ((changes != 0).sum(axis=1) == 1).all()
    assert np.unique(changes[:, 0]).tolist() == [-10, 0, 10]
    assert np.unique(changes[:, 1]).tolist() == [-1, 0, 1]


@pytest.mark.statistical
def test_samples_are_uniform_with_both_bounds():
    P = Integers([0, -2], [2, 1]).sample(6000, coins())
    every = list(itertools.product(range(3), range(-2, 2)))
    counts = [int((P == row).all(axis=1).sum()) for row in every]
    assert sum(counts) == 6000
    assert scipy.stats.chisquare(counts).pvalue > LEAST


@pytest.mark.statistical
def test_some_moves_and_nudges_are_uniform_over_all_moves():
    space = Integers(-9, 9, 3)
    w = space.middle
    every = space.moved(w, *space.all_moves(w, 0.1))
    for drawn in (space.moved(w, *space.some_moves(w, 6000, 0.1, coins())),
                  space.nudge(np.tile(w, (6000, 1)), 0.1, coins(2))):  # fmt: skip
        counts = [int((drawn == row).all(axis=1).sum()) for row in every]
        assert sum(counts) == 6000
        assert scipy.stats.chisquare(counts).pvalue > LEAST


@pytest.mark.statistical
def test_jitter_is_rounded_normal_noise_at_its_rate():
    space = Integers([-50_000, -50], [50_000, 50])
    changes = space.jitter(np.zeros((8000, 2), dtype=int), 0.01, 0.3, coins())
    for column in (0, 1):
        hit = changes[:, column][changes[:, column] != 0]
        assert scipy.stats.binomtest(len(hit), 8000, 0.3).pvalue > LEAST
    wide = changes[:, 0][changes[:, 0] != 0]
    assert scipy.stats.kstest(wide / 1000, "norm").pvalue > LEAST
    # Of deviation 1: what is below 1 in size is rounded up to it.
    narrow = changes[:, 1][changes[:, 1] != 0]
    ones = 2 * scipy.stats.norm.cdf(1.5) - 1
    count = int((np.abs(narrow) == 1).sum())
    assert scipy.stats.binomtest(count, len(narrow), ones).pvalue > LEAST
    assert scipy.stats.binomtest(int((narrow > 0).sum()), len(narrow), 0.5).pvalue > LEAST


@pytest.mark.statistical
def test_coordinates_are_drawn_anew_at_their_rate():
    space = Integers(0, 3, 2)
    P = np.full((8000, 2), 3)
    found = space.redraw(P, 0.4, coins())
    for column in (0, 1):
        counts = np.bincount(found[:, column], minlength=4)
        expected = np.array([0.1, 0.1, 0.1, 0.7]) * 8000
        assert scipy.stats.chisquare(counts, expected).pvalue > LEAST


def test_numbers_are_rounded_into_the_box():
    space = Integers([0, -5], [9, 5])
    P = [[1.4, 1.6], [-3, 99], [np.inf, -np.inf], [np.nan, np.nan]]
    assert space.snap(P).tolist() == [[1, 2], [0, 5], [9, -5], [0, 0]]
    P = space.sample(20, coins())
    assert np.array_equal(space.snap(P), P)


def test_what_is_outside_is_not_contained():
    space = Integers([0, -5], [9, 5])
    P = [[0, -5], [9, 5], [10, 0], [-1, 0], [0, 6]]
    assert space.contains(P).tolist() == [True, True, False, False, False]
    assert space.contains([[1.0, 2.0]]).tolist() == [False]
    assert space.contains([[1, 2, 3]]).tolist() == [False]


def test_the_shape_is_that_of_the_bounds():
    assert Integers([[0], [1]], [5, 6, 7]).shape == (2, 3)
    assert Integers(0, [5, 6, 7]).shape == Integers(0, 5, 3).shape == Integers(0, 5, (3,)).shape
