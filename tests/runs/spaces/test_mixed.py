"""Several spaces side by side: every part is a candidate of its space, whatever is done to it.

On fresh seeds a statistical test of right code fails with a probability of at most 1e-6: it asks
for at most ten p-values, each of at least 1e-7.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.spaces import check_inside

from privfit import Bits, Box, CentersObjective, Integers, Mixed, Permutations, Reals, Subsets

LEAST = 1e-7  # p-value

PARTS = st.one_of(
    st.integers(1, 4).map(lambda d: Reals(-1, 1, d)),
    st.just(Reals([0, -1], [1, 1], (3, 2), units=0.25)),
    st.integers(1, 5).map(Bits),
    st.tuples(st.integers(1, 6), st.integers(0, 3)).map(lambda p: Subsets(p[0] + p[1], p[0])),
    st.integers(1, 5).map(Permutations),
    st.integers(1, 9).map(lambda high: Integers(-3, high, 2)),
)
SPACES = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: Mixed(*parts))
ALL = Mixed(Reals(-1, 1, (2, 2)), Subsets(6, 2), Bits(3), Permutations(4), Integers(0, 5, 2))


def coins(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(SPACES, st.integers(1, 9), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_operator_stays_in_the_space(space, m, step, rate, seed):
    c = coins(seed)
    A, B = space.sample(m, c), space.sample(m, c)
    child = space.mix(A, B, c)
    for P in (A, child, space.middle[None], space.extremes, space.splice(A, B, c),
              space.sibling(A, B, child, c), space.nudge(A, step, c),
              space.jitter(A, step, rate, c), space.redraw(A, rate, c),
              space.moved(A[0], *space.all_moves(A[0], step)),
              space.moved(A[0], *space.some_moves(A[0], m, step, c)),
              space.snap(c.normal(0, 5, size=A.shape))):  # fmt: skip
        check_inside(space, P)
    assert np.array_equal(space.join(*space.split(A)), A)


def test_parts_have_their_own_type_and_shape():
    P = ALL.sample(7, coins())
    assert P.shape == (7, 15)
    assert P.dtype == np.float64
    parts = ALL.split(P)
    assert [part.shape for part in parts] == [(7, 2, 2), (7, 2), (7, 3), (7, 4), (7, 2)]
    assert [part.dtype.kind for part in parts] == ["f", "i", "b", "i", "i"]
    assert Mixed(Bits(2), Integers(0, 9, 1)).middle.dtype == np.int64
    assert Mixed(Bits(2), Bits(1)).middle.dtype == bool


def test_all_moves_are_those_of_each_part():
    w = ALL.sample(1, coins())[0]
    found = ALL.moved(w, *ALL.all_moves(w, 0.1))
    parts = ALL.split(w[None])
    count = 0
    for number, (one, part) in enumerate(zip(ALL.spaces, parts, strict=True)):
        moved = one.moved(part[0], *one.all_moves(part[0], 0.1))
        expected = [np.repeat(other, len(moved), axis=0) for other in parts]
        expected[number] = moved
        assert np.array_equal(found[count : count + len(moved)], ALL.join(*expected))
        count += len(moved)
    assert count == len(found)


@pytest.mark.statistical
def test_parts_are_moved_as_often_as_their_sizes_say():
    space = Mixed(Bits(3), Integers(0, 99, 1), Bits(2))
    w = space.sample(1, coins())[0]
    P = np.tile(w, (6000, 1))
    for drawn in (space.nudge(P, 0.1, coins(2)),
                  space.moved(w, *space.some_moves(w, 6000, 0.1, coins(3)))):  # fmt: skip
        assert ((drawn != w).sum(axis=1) == 1).all()
        assert scipy.stats.chisquare((drawn != w).sum(axis=0)).pvalue > LEAST


@pytest.mark.statistical
def test_a_splice_has_the_first_parts_of_one_parent_and_the_last_of_the_other():
    space = Mixed(Bits(2), Bits(3), Bits(1))
    A, B = np.zeros((6000, 6), dtype=bool), np.ones((6000, 6), dtype=bool)
    children = space.splice(A, B, coins())
    assert (children[:, :-1] <= children[:, 1:]).all()
    heads = (~children).sum(axis=1)
    # The part is drawn by its size, the cut within it uniformly; a lone bit is the first parent's.
    expected = {1: 2 / 6, 3: 3 / 6 / 2, 4: 3 / 6 / 2, 6: 1 / 6}
    assert set(heads.tolist()) == set(expected)
    counts = [int((heads == head).sum()) for head in expected]
    assert scipy.stats.chisquare(counts, 6000 * np.array(list(expected.values()))).pvalue > LEAST


def test_a_mean_is_a_candidate_if_all_parts_are_real():
    assert Mixed(Reals(0, 1, 2), Reals(5, 6, 1)).has_means
    assert not Mixed(Reals(0, 1, 2), Bits(1)).has_means


def test_real_parts_take_the_grid_of_the_objective():
    objective = CentersObjective(np.zeros((3, 2)), 2, Box(-1, 1, 2))
    space = Mixed(Reals(-1, 1, (2, 2)), Bits(1))
    found = space.on_grid_of(objective)
    assert found.spaces[0].units == objective.candidate_units
    assert found.spaces[1] is space.spaces[1]


def test_what_is_outside_a_part_is_not_contained():
    space = Mixed(Reals(-1, 1, 1), Bits(1), Permutations(2), Integers(0, 9, 1))
    P = np.array([
        [0.5, 1, 1, 0, 7], [1.5, 1, 1, 0, 7], [0.5, 0.5, 1, 0, 7], [0.5, 1, 1, 1, 7],
        [0.5, 1, 1, 0, 7.5], [0.5, 1, 1, 0, 10], [np.nan, 1, 1, 0, 7], [0.5, 1, np.inf, 0, 7],
    ])  # fmt: skip
    assert space.contains(P).tolist() == [True, *[False] * 7]
    assert space.contains(P[:, 1:]).tolist() == [False] * 8
    assert space.contains([["a"] * 5]).tolist() == [False]
