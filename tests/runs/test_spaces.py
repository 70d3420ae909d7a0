"""Search spaces: proposals stay in the space, reach all of it, and are drawn as they say.

Distributions are tested with fixed seeds. On fresh seeds a test of right code would fail with a
probability of at most 1e-6: it asks for at most ten p-values, each of at least 1e-7.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import reference
import scipy.stats
from makers.raises import assert_reached, messages_of
from makers.spaces import check_inside

from privfit import (
    Bits,
    Box,
    CentersObjective,
    FacilityObjective,
    Integers,
    LinearObjective,
    Mixed,
    Permutations,
    Reals,
    RecordObjective,
    Subsets,
)
from privfit.runs import Space, spaces

LEAST = 1e-7  # p-value

SPACES: dict[str, Space] = {
    "reals": Reals(-1, 1, 4),
    "one real": Reals(2, 5, 1),
    "reals on a grid": Reals(-0.7, 1.3, 4, units=0.25),
    "a grid of its own for each": Reals([-1, 0, -10], [1, 100, 10], 3, units=[0.125, 32, 1]),
    "a grid coarser than the box": Reals(-0.7, 0.7, 2, units=4.0),
    "centres": Reals([0, -1], [1, 1], (3, 2), units=2.0**-8),
    "subsets": Subsets(9, 4),
    "one index": Subsets(5, 1),
    "all but one": Subsets(6, 5),
    "all indices": Subsets(4, 4),
    "the only index": Subsets(1, 1),
    "bits": Bits(5),
    "one bit": Bits(1),
    "permutations": Permutations(5),
    "two things": Permutations(2),
    "one thing": Permutations(1),
    "integers": Integers(-3, 8, 4),
    "integers of their own bounds": Integers([0, -1, 100], [1, 1, 100_000]),
    "a table of integers": Integers(0, 9, (2, 3)),
    "large integers": Integers(-(2**52), 2**52, 1),
    "mixed": Mixed(Reals(-1, 1, (2, 2), units=0.25), Subsets(6, 2), Bits(3), Permutations(4),
                   Integers(0, 5, 2)),
    "mixed without reals": Mixed(Bits(2), Integers(0, 9, 1)),
    "mixed bits": Mixed(Bits(2), Bits(1)),
    "mixed in mixed": Mixed(Mixed(Reals(0, 1, 1), Bits(1)), Permutations(3)),
}  # fmt: skip


@pytest.fixture(params=list(SPACES), ids=str)
def space(request):
    return SPACES[request.param]


def coins(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def proposals(space: Space) -> dict[str, np.ndarray]:
    """What every operator makes of random populations, with steps from tiny to beyond the box."""
    A, B = space.sample(60, coins(1)), space.sample(60, coins(2))
    found = {"sample": A, "middle": space.middle[None], "extremes": space.extremes,
             "splice": space.splice(A, B, coins()), "mix": space.mix(A, B, coins())}  # fmt: skip
    for step in (0.0, 0.01, 0.3, 1.0):
        for i, w in enumerate((space.middle, A[0], *space.extremes)):
            found[f"all {step} {i}"] = space.moved(w, *space.all_moves(w, step))
            found[f"some {step} {i}"] = space.moved(w, *space.some_moves(w, 30, step, coins()))
        found[f"nudge {step}"] = space.nudge(A, step, coins())
        for rate in (0.0, 0.5, 1.0):
            found[f"jitter {step} {rate}"] = space.jitter(A, step, rate, coins())
            found[f"redraw {rate}"] = space.redraw(A, rate, coins())
    for name in ("splice", "mix"):
        found[f"sibling of a {name}"] = space.sibling(A, B, found[name], coins())
    if isinstance(space, Permutations):
        found["swap"], found["insert"] = space.swap(A, coins()), space.insert(A, coins())
    return found


def test_every_proposal_lies_in_the_space_and_on_the_grid(space):
    for P in proposals(space).values():
        check_inside(space, P)


def test_operators_leave_their_arguments_alone(space):
    A, B = space.sample(20, coins(1)), space.sample(20, coins(2))
    before = A.copy(), B.copy()
    A.flags.writeable = B.flags.writeable = False
    space.splice(A, B, coins())
    space.sibling(A, B, space.mix(A, B, coins()), coins())
    space.nudge(A, 0.3, coins())
    space.jitter(A, 0.3, 0.5, coins())
    space.redraw(A, 0.5, coins())
    space.contains(A)
    space.snap(A)
    space.moved(A[0], *space.all_moves(A[0], 0.3))
    space.moved(A[0], *space.some_moves(A[0], 5, 0.3, coins()))
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])


@pytest.mark.few(8)
def test_the_same_coins_give_the_same_proposals(space):
    for first, second in zip(proposals(space).values(), proposals(space).values(), strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize("name", ["reals", "subsets", "bits", "permutations", "integers", "mixed"])
def test_other_coins_give_other_proposals(name):
    space = SPACES[name]
    A, B = space.sample(60, coins(1)), space.sample(60, coins(2))
    operators = [
        lambda c: space.sample(60, c), lambda c: space.splice(A, B, c),
        lambda c: space.mix(A, B, c), lambda c: space.nudge(A, 0.3, c),
        lambda c: space.jitter(A, 0.3, 0.5, c), lambda c: space.redraw(A, 0.5, c),
        lambda c: space.moved(A[0], *space.some_moves(A[0], 60, 0.3, c)),
    ]  # fmt: skip
    for operator in operators:
        assert not np.array_equal(operator(coins(1)), operator(coins(2)))


def test_size_is_the_number_of_genes():
    assert Reals(0, 1, (3, 2)).size == 6
    assert Reals(0, 1, 4).size == 4
    assert Subsets(9, 4).size == 4
    assert Bits(5).size == 5
    assert Permutations(5).size == 5
    assert Integers(0, 9, (3, 2)).size == Integers(np.zeros((3, 2), int), 9).size == 6
    assert Mixed(Reals(0, 1, (3, 2)), Bits(5)).size == 11


# ------------------------------------------------------------------------------------------ middles


def test_walks_start_nearest_to_zero():
    assert Reals(-1, 1, 3).middle.tolist() == [0, 0, 0]
    assert Reals([1, -3, -1], [2, -1, 5], 3).middle.tolist() == [1, -1, 0]
    assert Reals(0.3, 2, 1, units=0.25).middle.tolist() == [0.5]
    assert Reals(-2, -0.3, 1, units=0.25).middle.tolist() == [-0.5]
    assert Subsets(9, 4).middle.tolist() == [0, 1, 2, 3]
    assert Bits(3).middle.tolist() == [False] * 3


def test_other_walks_start_in_the_middle_or_in_order():
    assert Integers([0, -3], [9, 4]).middle.tolist() == [4, 0]
    assert Permutations(3).middle.tolist() == [0, 1, 2]
    assert Mixed(Reals(1, 2, 1), Integers(0, 9, 1), Bits(1)).middle.tolist() == [1.0, 4.0, 0.0]


def test_extremes_hold_the_ends_of_the_space():
    found = Reals([-3, -1], [1, 2], 2).extremes
    assert found.tolist() == [[0, 0], [-3, -1], [1, 2], [-3, 2]]
    assert Subsets(9, 4).extremes.tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert Subsets(4, 4).extremes.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert Bits(2).extremes.tolist() == [[False, False], [True, True]]
    assert Permutations(3).extremes.tolist() == [[0, 1, 2], [2, 1, 0]]
    assert Integers([0, -3], [9, 4]).extremes.tolist() == [[4, 0], [0, -3], [9, 4]]
    found = Mixed(Reals(-3, 1, 1), Bits(1)).extremes
    assert found.tolist() == [[0, 0], [-3, 1], [1, 0], [-3, 1]]


# -------------------------------------------------------------------------------------------- grids


def test_a_box_takes_the_grid_of_its_objective_unless_it_has_one(rng):
    X = rng.uniform(-1, 1, (5, 2))
    domain = Box([-1, -8], [1, 8])
    linear = LinearObjective(X, [0, 1, 0, 1, 1], domain=domain)
    space = Reals(-1, 1, 3)
    assert np.array_equal(space.on_grid_of(linear).units, domain.weight_units())
    assert space.units is None
    assert Reals(-1, 1, 3, units=0.5).on_grid_of(linear).units == 0.5
    centers = CentersObjective(X, 2, domain)
    assert Reals(-1, 1, (2, 2)).on_grid_of(centers).units == centers.candidate_units == 2.0**-9
    own = RecordObjective(X, lambda x, P: np.zeros((len(x), len(P))), 0, 1)
    assert Reals(-1, 1, 3).on_grid_of(own).units is None
    places = FacilityObjective(X, X, (0, 4), domain)
    for other in (Subsets(5, 2), Bits(3), Permutations(3), Integers(0, 9, 2), Mixed(Bits(3))):
        assert other.on_grid_of(places) is other


def test_snapped_candidates_are_the_nearest_points_of_the_grid_in_the_box():
    space = Reals(-0.7, 1.3, 1, units=0.25)
    grid = [k / 4 for k in range(-2, 6)]
    P = np.linspace(-2, 2, 401)[:, None]
    for p, snapped in zip(P[:, 0], space.snap(P)[:, 0], strict=True):
        assert snapped in grid
        assert abs(p - snapped) == min(abs(p - g) for g in grid)
    assert space.snap([[np.inf], [-np.inf]]).tolist() == [[1.25], [-0.5]]


def test_without_a_grid_candidates_are_only_clipped():
    assert Reals(-1, 1, 3).snap([[0.123456789, 7, -7]]).tolist() == [[0.123456789, 1, -1]]


def test_numbers_become_sets_and_strings():
    assert Bits(3).snap([[0.7, -2, 0.5]]).tolist() == [[True, False, False]]
    space = Subsets(6, 3)
    assert space.snap([[2, 2, 2], [5, 5, 5], [-9, 0.4, 99]]).tolist() == [[2, 3, 4], [3, 4, 5],
                                                                          [0, 1, 5]]  # fmt: skip
    P = space.sample(40, coins())
    assert np.array_equal(space.snap(P), np.sort(P))
    for one in (space, Subsets(4, 4), Subsets(1, 1)):
        check_inside(one, one.snap(coins().normal(0, 9, (200, one.k))))
    check_inside(space, space.snap([[np.nan, np.inf, -np.inf]]))


def test_what_is_snapped_is_contained_and_stays(space):
    wild = coins().normal(0, 30, (60, *space.shape))
    P = space.snap(wild)
    check_inside(space, P)
    assert np.array_equal(space.snap(P), P)


OUTSIDE = [
    (Reals(-1, 1, 2), [[0.5, 1], [-1, 1.01], [np.nan, 0], [-np.inf, 0]], 1),
    (Reals(-1, 1, 2, units=0.25), [[0.5, 0.25], [-1, 1], [0.5, 0.3], [1.25, 0]], 2),
    (Reals(-0.7, 0.7, 1, units=0.5), [[0.5], [0.7], [-0.7], [1.0]], 1),
    (Reals(0, 1, (2, 1)), [[[0], [1]], [[0], [2]]], 1),
    (Subsets(5, 2), [[0, 4], [3, 1], [2, 2], [0, 5], [-1, 2]], 2),
    (Bits(2), [[True, False], [False, False]], 2),
]


@pytest.mark.parametrize(("space", "P", "inside"), OUTSIDE, ids=[repr(s) for s, *_ in OUTSIDE])
def test_what_is_outside_is_not_contained(space, P, inside):
    assert space.contains(P).tolist() == [True] * inside + [False] * (len(P) - inside)
    assert space.contains(np.asarray(P)[:, :, None]).tolist() == [False] * len(P)
    assert space.contains(np.full((3, *space.shape), "a")).tolist() == [False] * 3
    assert space.contains(space.sample(1, coins())[:0]).tolist() == []
    assert space.contains(1).tolist() == [False]


def test_whole_numbers_are_neither_sets_nor_bits_in_another_type():
    assert Subsets(5, 2).contains([[0.0, 4.0]]).tolist() == [False]
    assert Bits(2).contains([[0, 1]]).tolist() == [False]
    assert Reals(-1, 1, 2).contains([[0, 1]]).tolist() == [True]


# -------------------------------------------------------------------------------------------- moves


@pytest.mark.parametrize("units", [None, 0.25])
@pytest.mark.parametrize("step", [0.01, 0.1, 0.25, 1.0])
def test_all_moves_of_reals_go_both_ways_along_every_coordinate(step, units):
    space = Reals(-0.7, 1.3, 3, units=units)
    for w in (space.middle, space.snap([1.3, -0.7, 0.5])):
        expected = reference.neighbours_in_box(w.tolist(), -0.7, 1.3, units, step)
        found = space.moved(w, *space.all_moves(w, step))
        assert found.tolist() == expected
        assert len(found) == 6


def test_moves_of_arrays_have_the_widths_of_their_coordinates():
    space = Reals([0, -10], [1, 10], (3, 2))
    w = space.middle
    found = space.moved(w, *space.all_moves(w, 0.1)) - w
    changed = [tuple(map(tuple, np.argwhere(change))) for change in found]
    assert changed.count(()) == 3  # down from the lower bound of the first column
    assert {position for places in changed for position in places} == set(
        itertools.product(range(3), range(2))
    )
    assert np.unique(found[..., 0]).tolist() == [0, 0.1]
    assert np.unique(found[..., 1]).tolist() == [-2, 0, 2]


@pytest.mark.parametrize(("n", "k"), [(9, 4), (5, 1), (6, 5), (2, 1)])
def test_all_moves_of_sets_are_all_swaps_just_once(n, k):
    space = Subsets(n, k)
    w = coins().choice(n, k, replace=False)
    found = space.moved(w, *space.all_moves(w, 0.1)).tolist()
    assert found == reference.neighbours_of_set(w.tolist(), n)
    assert len({frozenset(row) for row in found}) == len(found) == k * (n - k)


@pytest.mark.parametrize("n", [1, 4])
def test_a_set_of_all_indices_can_only_stay(n):
    space = Subsets(n, n)
    w = space.sample(1, coins())[0]
    for moves in (space.all_moves(w, 0.1), space.some_moves(w, 5, 0.1, coins())):
        found = space.moved(w, *moves)
        assert len(found) > 0
        assert (found == w).all()
    assert np.array_equal(space.nudge(w[None], 0.1, coins()), w[None])
    assert np.array_equal(space.jitter(w[None], 0.1, 1.0, coins()), w[None])


@pytest.mark.parametrize("n", [1, 6])
def test_all_moves_of_bits_are_all_flips_just_once(n):
    space = Bits(n)
    w = space.sample(1, coins())[0]
    found = space.moved(w, *space.all_moves(w, 0.1)).tolist()
    assert found == reference.neighbours_of_bits(w.tolist())
    assert len({tuple(row) for row in found}) == n


def test_one_move_may_be_given_by_numbers(space):
    w = space.sample(1, coins())[0]
    where, what = space.all_moves(w, 0.3)
    each = [space.moved(w, a, b)[0] for a, b in zip(where, what, strict=True)]
    assert np.array_equal(each, space.moved(w, where, what))


# ---------------------------------------------------------------------------------- distributions


def check_uniform(labels: list, expected: list, times: int) -> None:
    """Every expected label, no other, and equally often."""
    counts = dict.fromkeys(expected, 0)
    for label in labels:
        counts[label] += 1
    assert len(labels) == times
    assert scipy.stats.chisquare(list(counts.values())).pvalue > LEAST


@pytest.mark.slow
@pytest.mark.statistical
def test_some_moves_are_uniform_over_all_moves():
    for space in (Reals(-1, 1, 4), Subsets(6, 3), Bits(5)):
        w = space.middle
        every = [tuple(row) for row in space.moved(w, *space.all_moves(w, 0.2)).tolist()]
        drawn = space.moved(w, *space.some_moves(w, 9000, 0.2, coins()))
        check_uniform([tuple(row) for row in drawn.tolist()], every, 9000)


@pytest.mark.statistical
def test_a_nudge_is_uniform_over_all_moves_and_hits_the_last_coordinate():
    for space in (Reals(-1, 1, 4), Subsets(6, 3), Bits(5)):
        w = space.middle
        every = [tuple(row) for row in space.moved(w, *space.all_moves(w, 0.2)).tolist()]
        drawn = space.nudge(np.tile(w, (9000, 1)), 0.2, coins())
        check_uniform([tuple(row) for row in drawn.tolist()], every, 9000)
        assert (drawn[:, -1] != w[-1]).any()


def test_a_nudge_moves_by_a_share_of_the_coordinates_own_width():
    space = Reals([0, -10], [1, 10], 2)
    P = np.tile([0.5, 0.0], (200, 1))
    changes = space.nudge(P, 0.1, coins()) - P
    assert ((changes != 0).sum(axis=1) == 1).all()
    assert np.allclose(np.unique(np.abs(changes[:, 0])), [0, 0.1], rtol=0, atol=1e-15)
    assert np.unique(np.abs(changes[:, 1])).tolist() == [0, 2]


@pytest.mark.statistical
def test_samples_of_reals_are_uniform():
    space = Reals([-1, 5], [1, 6], 2)
    P = space.sample(4000, coins())
    for column in (0, 1):
        low, width = space.low[column], space.width[column]
        test = scipy.stats.kstest((P[:, column] - low) / width, "uniform")
        assert test.pvalue > LEAST


@pytest.mark.statistical
def test_samples_of_sets_and_strings_are_uniform():
    every = [frozenset(c) for c in itertools.combinations(range(6), 3)]
    P = Subsets(6, 3).sample(6000, coins())
    check_uniform([frozenset(row) for row in P.tolist()], every, 6000)
    strings = list(itertools.product([False, True], repeat=4))
    P = Bits(4).sample(6000, coins())
    check_uniform([tuple(row) for row in P.tolist()], strings, 6000)


@pytest.mark.statistical
def test_jitter_of_reals_is_normal_at_its_rate():
    space = Reals([-50, -5], [50, 5], 2)
    P = np.zeros((8000, 2))
    changes = space.jitter(P, 0.01, 0.3, coins())
    for column, deviation in ((0, 1.0), (1, 0.1)):
        hit = changes[:, column][changes[:, column] != 0]
        assert scipy.stats.binomtest(len(hit), 8000, 0.3).pvalue > LEAST
        assert scipy.stats.kstest(hit / deviation, "norm").pvalue > LEAST
    both = int((changes != 0).all(axis=1).sum())
    assert scipy.stats.binomtest(both, 8000, 0.09).pvalue > LEAST


@pytest.mark.statistical
def test_jitter_of_sets_swaps_each_member_at_its_rate_for_any_index():
    space = Subsets(30, 3)
    P = np.tile([4, 0, 7], (6000, 1))
    Q = space.jitter(P, 0.1, 0.3, coins())
    for position in range(3):
        hit = Q[:, position] != P[:, position]
        assert scipy.stats.binomtest(int(hit.sum()), 6000, 0.3).pvalue > LEAST
    # The first position is swapped while the others stand: uniform over the 27 outside.
    newcomers = Q[:, 0][Q[:, 0] != 4]
    counts = np.bincount(newcomers, minlength=30)
    assert counts[[4, 0, 7]].tolist() == [0, 0, 0]
    assert scipy.stats.chisquare(np.delete(counts, [4, 0, 7])).pvalue > LEAST


@pytest.mark.statistical
def test_jitter_of_bits_flips_each_at_its_rate():
    P = Bits(3).sample(6000, coins())
    flips = Bits(3).jitter(P, 0.1, 0.3, coins(2)) ^ P
    for column in range(3):
        hits = int(flips[:, column].sum())
        assert scipy.stats.binomtest(hits, 6000, 0.3).pvalue > LEAST


@pytest.mark.statistical
def test_coordinates_are_drawn_anew_at_their_rate():
    """Members of a set are swapped for any other, bits may stay what they are."""
    P = Reals([-1, 5], [1, 6], 2).redraw(np.tile([2.0, 2.0], (6000, 1)), 0.3, coins())
    for column, low, width in ((0, -1, 2), (1, 5, 1)):
        hit = P[:, column][P[:, column] != 2.0]
        assert scipy.stats.binomtest(len(hit), 6000, 0.3).pvalue > LEAST
        assert scipy.stats.kstest((hit - low) / width, "uniform").pvalue > LEAST
    P = Bits(2).redraw(np.zeros((6000, 2), dtype=bool), 0.6, coins())
    assert scipy.stats.binomtest(int(P[:, 1].sum()), 6000, 0.3).pvalue > LEAST
    P = np.tile([4, 0, 7], (6000, 1))
    changed = Subsets(30, 3).redraw(P, 0.3, coins()) != P
    assert scipy.stats.binomtest(int(changed[:, 2].sum()), 6000, 0.3).pvalue > LEAST


def test_jitter_at_rate_zero_is_none_and_at_rate_one_everywhere():
    for space in (Reals(-1, 1, 4), Subsets(9, 4), Bits(5)):
        P = space.sample(50, coins(1))
        assert np.array_equal(space.jitter(P, 0.01, 0.0, coins()), P)
    P = Reals(-1, 1, 4).snap(np.zeros((50, 4)))
    assert (Reals(-1, 1, 4).jitter(P, 0.01, 1.0, coins()) != 0).all()
    P = Bits(5).sample(50, coins(1))
    assert np.array_equal(Bits(5).jitter(P, 0.01, 1.0, coins()), ~P)


# --------------------------------------------------------------------------------------- crossover


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("space", "ends"),
    [(Reals(-1, 1, 5), (-1.0, 1.0)), (Reals(-1, 1, (5, 1)), (-1.0, 1.0)), (Bits(5), (False, True))],
    ids=repr,
)
def test_a_splice_is_a_head_of_one_parent_and_a_tail_of_the_other(space, ends):
    A, B = (np.full((6000, *space.shape), end) for end in ends)
    children = space.splice(A, B, coins()).reshape(6000, 5)
    heads = (children == ends[0]).sum(axis=1)
    assert ((children[:, :-1] == ends[0]) >= (children[:, 1:] == ends[0])).all()
    check_uniform(heads.tolist(), [1, 2, 3, 4], 6000)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("space", "ends"), [(Reals(-1, 1, 3), (-1.0, 1.0)), (Bits(3), (False, True))], ids=repr
)
def test_a_mix_takes_each_gene_from_either_parent(space, ends):
    A, B = (np.full((6000, 3), end) for end in ends)
    children = space.mix(A, B, coins()).tolist()
    check_uniform([tuple(c) for c in children], list(itertools.product(ends, repeat=3)), 6000)


def test_a_lone_gene_comes_from_a_parent():
    for space in (Reals(0, 1, 1), Bits(1)):
        A, B = space.sample(40, coins(1)), space.sample(40, coins(2))
        assert np.array_equal(space.splice(A, B, coins()), A)
        mixed = space.mix(A, B, coins())
        assert ((mixed == A) | (mixed == B)).all()


@pytest.mark.statistical
def test_children_of_sets_are_uniform_subsets_of_the_union():
    space = Subsets(9, 3)
    A, B = np.tile([0, 1, 2], (9000, 1)), np.tile([2, 5, 3], (9000, 1))
    every = [frozenset(c) for c in itertools.combinations([0, 1, 2, 3, 5], 3)]
    for cross in (space.mix, space.splice):
        children = cross(A, B, coins())
        check_inside(space, children)
        check_uniform([frozenset(c) for c in children.tolist()], every, 9000)


def test_children_of_equal_sets_are_their_parents():
    for space in (Subsets(9, 4), Subsets(4, 4), Subsets(1, 1)):
        A = space.sample(40, coins(1))
        children = space.mix(A, A[:, ::-1], coins())
        assert np.array_equal(np.sort(children), np.sort(A))


def test_genes_of_children_come_from_parents(space):
    A, B = space.sample(60, coins(1)), space.sample(60, coins(2))
    for children in (space.splice(A, B, coins()), space.mix(A, B, coins())):
        if isinstance(space, Subsets):
            for child, a, b in zip(children.tolist(), A.tolist(), B.tolist(), strict=True):
                assert set(child) <= {*a, *b}
        elif not isinstance(space, Permutations | Mixed):
            assert ((children == A) | (children == B)).all()


# ------------------------------------------------------------------------------------------- errors

WRONG = [
    *((partial(Reals, 0, 1, d), rf"d \({re.escape(repr(shown))}\) must be a positive whole number")
      for d, shown in [(0, 0), (-1, -1), (2.0, 2.0), ("3", "3"), (True, True), ((2, 0), 0),
                       ((1.5, 2), 1.5), (None, None)]),
    *((partial(Subsets, n, 1), rf"n \({n!r}\) must be a positive whole number; pass n=10")
      for n in (0, -3, 2.0, True, None)),
    *((partial(Subsets, 5, k), rf"k \({k!r}\) must be a positive whole number; pass k=10")
      for k in (0, -3, 2.0, None)),
    (partial(Subsets, 3, 4), r"k \(4\) must be at most n \(3\); pass a smaller k"),
    *((partial(Bits, n), rf"n \({n!r}\) must be a positive whole number; pass n=10")
      for n in (0, -1, 1.0, True, None)),
    *((partial(Reals, *bounds, 3), r"low and high must be numbers or arrays of shape \(3,\)")
      for bounds in [([0, 0], 1), (0, [1, 1]), ("a", 1), (np.zeros((3, 3)), 1)]),
    *((partial(Reals, *bounds, 2), r"low must be below high, both finite; pass Reals\(-1, 1, d\)")
      for bounds in [(1, 1), (1, -1), (0, math.inf), (-math.inf, 0), (math.nan, 1), (0, math.nan),
                     ([0, 1], [1, 1]), (None, 1)]),
    *((partial(Reals, *bounds, 2, units=units), r"must have a point of the grid between them")
      for bounds, units in [((0.1, 0.2), 0.25), (([0, 0.1], [1, 0.2]), 0.25),
                            (([0.1, 0.1], [0.2, 1.0]), 0.25), ((1, 2), [0.5, 512.0])]),
    *((partial(Permutations, n), rf"n \({n!r}\) must be a positive whole number; pass n=10")
      for n in (0, -1, 1.0, True, None)),
    *((partial(Integers, 0, 9, d), rf"d \({d!r}\) must be a positive whole number; pass d=10")
      for d in (0, -1, 1.5, True)),
    *((partial(Integers, *bounds, 2), r"low and high must be whole numbers between -2\^52 and")
      for bounds in [(0.0, 9), (0, 9.5), (None, 9), ("0", 9), (0, 2**53), (-(2**63), 9), (0, 2**70),
                     (False, True)]),
    *((partial(Integers, *bounds), r"low and high must be numbers or arrays of the shape of a cand")
      for bounds in [([0, 0], [1, 1, 1]), (0, [1, 1], 3)]),
    *((partial(Integers, *bounds), r"low must be below high, in one coordinate or more; pass I")
      for bounds in [(3, 3, 1), (4, 3, 1), ([0, 3], [9, 3]), ([1], np.zeros(0, int))]),
    (partial(Integers, 0, 9), r"d must be given if low and high are numbers; pass Integers\(0, 9"),
    *((partial(Mixed, *parts), r"spaces \(.*\) must be at least one space, and nothing else; pass")
      for parts in [(), (3,), (Bits(2), None), (Reals,)]),
    (partial(Reals(-1, 1, 3).on_grid_of, SimpleNamespace(candidate_units=np.ones(2))),
     r"candidates \(shape \(3,\)\) must have the shape of the objective's, \(2,\); pass Reals"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_wrong_sizes_and_bounds_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in WRONG)
    assert_reached(sorted(Path(spaces.__file__).parent.glob("*.py")), seen)


def test_spaces_are_frozen_and_their_bounds_their_own():
    low = np.zeros(2)
    space = Reals(low, 1, 2)
    low[:] = 7
    assert space.low.tolist() == [0, 0]
    numbers = np.array([0, 0])
    whole = Integers(numbers, 9)
    numbers[:] = 7
    assert whole.low.tolist() == [0, 0]
    for each, name in ((space, "low"), (Subsets(5, 2), "k"), (Bits(3), "n"), (whole, "high"),
                       (Permutations(3), "n"), (Mixed(Bits(1)), "spaces")):  # fmt: skip
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(each, name, 1)


def test_representations_are_short():
    assert repr(Reals(np.zeros(1000), 1, 1000)) == "Reals(<1000 numbers>)"
    assert repr(Reals(0, 1, (3, 2))) == "Reals(<3 x 2 numbers>)"
    assert repr(Subsets(5, 2)) == "Subsets(n=5, k=2)"
    assert repr(Bits(3)) == "Bits(n=3)"
    assert repr(Permutations(3)) == "Permutations(n=3)"
    assert repr(Integers(0, 9, (3, 2))) == "Integers(<3 x 2 whole numbers>)"
    assert repr(Mixed(Bits(3), Reals(0, 1, 2))) == "Mixed(Bits(n=3), Reals(<2 numbers>))"
