"""Permutations: crossover and mutations as their naive twins, and as uniform as they say.

On fresh seeds a statistical test of right code fails with a probability of at most 1e-6: it asks
for at most ten p-values, each of at least 1e-7.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import reference
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.spaces import check_inside

from privfit import Permutations

LEAST = 1e-7  # p-value
TIMES = 7200

populations = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**32))


def coins(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def check_uniform(P: np.ndarray, expected: list[tuple[int, ...]]) -> None:
    """Every expected row, no other, and equally often."""
    counts = dict.fromkeys(expected, 0)
    for row in P.tolist():
        counts[tuple(row)] += 1
    assert scipy.stats.chisquare(list(counts.values())).pvalue > LEAST


@given(populations, st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_every_operator_stays_among_the_permutations(case, rate):
    n, m, seed = case
    space, c = Permutations(n), coins(seed)
    A, B = space.sample(m, c), space.sample(m, c)
    child = space.mix(A, B, c)
    for P in (A, child, space.splice(A, B, c), space.sibling(A, B, child, c),
              space.nudge(A, rate, c), space.swap(A, c), space.insert(A, c),
              space.jitter(A, 0.1, rate, c), space.redraw(A, rate, c),
              space.moved(A[0], *space.all_moves(A[0], rate)),
              space.moved(A[0], *space.some_moves(A[0], m, rate, c)),
              space.snap(c.normal(size=(m, n)))):  # fmt: skip
        check_inside(space, P)


@given(populations)
@settings(max_examples=60, deadline=None)
def test_crossover_keeps_places_of_one_parent_and_the_order_of_the_other(case):
    n, m, seed = case
    space = Permutations(n)
    A, B = space.sample(m, coins(seed)), space.sample(m, coins(seed + 1))
    kept = coins(seed + 2).random((m, n)) < 0.5
    expected = [
        reference.in_order_of([x if k else None for x, k in zip(a, keep, strict=True)], list(b))
        for a, b, keep in zip(A.tolist(), B.tolist(), kept, strict=True)
    ]
    assert space.mix(A, B, coins(seed + 2)).tolist() == expected
    cut = coins(seed + 3).integers(1, max(n, 2), size=m)
    expected = [
        reference.in_order_of([*a[:c], *[None] * (n - c)], list(b))
        for a, b, c in zip(A.tolist(), B.tolist(), cut, strict=True)
    ]
    assert space.splice(A, B, coins(seed + 3)).tolist() == expected


def test_children_of_equal_parents_are_their_parents():
    for n in (1, 2, 6):
        space = Permutations(n)
        A = space.sample(30, coins())
        child = space.mix(A, A, coins())
        assert np.array_equal(child, A)
        assert np.array_equal(space.splice(A, A, coins()), A)
        assert np.array_equal(space.sibling(A, A, child, coins()), A)


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 3, 5])
def test_samples_are_uniform(n):
    check_uniform(Permutations(n).sample(TIMES, coins()), list(itertools.permutations(range(n))))


@pytest.mark.statistical
def test_swaps_are_uniform_over_all_pairs():
    space = Permutations(4)
    w = np.array([2, 0, 3, 1])
    every = [tuple(row) for row in reference.neighbours_of_order(w.tolist())]
    P = np.tile(w, (TIMES, 1))
    check_uniform(space.swap(P, coins()), every)
    check_uniform(space.nudge(P, 0.1, coins(2)), every)
    check_uniform(space.moved(w, *space.some_moves(w, TIMES, 0.1, coins(3))), every)
    assert space.moved(w, *space.all_moves(w, 0.1)).tolist() == [list(row) for row in every]


def inserted(w: list[int], start: int, end: int) -> tuple[int, ...]:
    rest = [*w[:start], *w[start + 1 :]]
    return (*rest[:end], w[start], *rest[end:])


@pytest.mark.statistical
def test_insertions_are_uniform_over_things_and_places():
    w = [2, 0, 3, 1]
    pairs = list(itertools.permutations(range(4), 2))
    found = Permutations(4).insert(np.tile(w, (TIMES, 1)), coins())
    # Neighbours that swap places are reached from both sides: twice as likely as the others.
    counts: dict[tuple[int, ...], int] = {}
    for pair in pairs:
        counts[inserted(w, *pair)] = counts.get(inserted(w, *pair), 0) + 1
    assert sorted(counts.values()) == [1] * 6 + [2] * 3
    rows = [tuple(row) for row in found.tolist()]
    assert set(rows) == set(counts)
    seen = [rows.count(row) for row in counts]
    assert scipy.stats.chisquare(seen, [TIMES * c / 12 for c in counts.values()]).pvalue > LEAST


@pytest.mark.statistical
def test_places_are_swapped_at_their_rate():
    """Of two things, each place that is hit swaps them: an odd number of hits changes the order."""
    P = np.tile([0, 1], (TIMES, 1))
    changed = int((Permutations(2).jitter(P, 0.1, 0.3, coins())[:, 0] == 1).sum())
    assert scipy.stats.binomtest(changed, TIMES, 2 * 0.3 * 0.7).pvalue > LEAST


@pytest.mark.statistical
def test_places_that_are_drawn_anew_are_shuffled():
    """All of them: uniform. At a rate, each set of places is as likely as its number says."""
    P = np.tile([3, 1, 0, 2], (TIMES, 1))
    check_uniform(Permutations(4).redraw(P, 1.0, coins()), list(itertools.permutations(range(4))))
    found = Permutations(4).redraw(P, 0.5, coins(2))
    # A permutation of j things is the identity once in j! times.
    same = sum(math.comb(4, j) / 2**4 / math.factorial(j) for j in range(5))
    count = int((found == P).all(axis=1).sum())
    assert scipy.stats.binomtest(count, TIMES, same).pvalue > LEAST
    assert np.array_equal(Permutations(4).redraw(P, 0.0, coins()), P)
    assert np.array_equal(Permutations(4).jitter(P, 0.1, 0.0, coins()), P)


def test_a_single_thing_can_only_stay():
    space = Permutations(1)
    P = space.sample(5, coins())
    for found in (space.swap(P, coins()), space.insert(P, coins()),
                  space.jitter(P, 0.1, 1.0, coins()), space.redraw(P, 1.0, coins()),
                  space.moved(P[0], *space.all_moves(P[0], 0.1)),
                  space.moved(P[0], *space.some_moves(P[0], 5, 0.1, coins()))):  # fmt: skip
        assert len(found) > 0
        assert (found == 0).all()


def test_numbers_become_their_ranks():
    space = Permutations(4)
    assert space.snap([[0.3, -5, 9, 0.1]]).tolist() == [[2, 0, 3, 1]]
    assert space.snap([[1, 1, 0, 1]]).tolist() == [[1, 2, 0, 3]]
    P = space.sample(20, coins())
    assert np.array_equal(space.snap(P), P)


def test_what_is_no_permutation_is_not_contained():
    space = Permutations(3)
    P = [[0, 1, 2], [2, 1, 0], [0, 0, 1], [1, 2, 3], [-1, 0, 1]]
    assert space.contains(P).tolist() == [True, True, False, False, False]
    assert space.contains(np.zeros((2, 4), dtype=int)).tolist() == [False, False]
    assert space.contains([[0.0, 1.0, 2.0]]).tolist() == [False]
    assert space.contains(np.zeros((0, 3), dtype=int)).tolist() == []
    assert space.contains(7).tolist() == [False]
