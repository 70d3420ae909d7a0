"""Loops over public numbers: equal to their naive twins; candidates are checked on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference

from privfit._kernels.candidates import (
    ELSEWHERE,
    FINE,
    NOT_FINITE,
    OFF_GRID,
    both_ways,
    curve_step,
    group_norms,
    snap,
    whole_moves,
    whole_units,
)

SHAPES = [(1, 1), (1, 3), (2, 4), (3, 5), (7, 8), (5, 137)]
WORDS = {"not finite": NOT_FINITE, "off grid": OFF_GRID}


def candidates(rng, m, d):
    """Candidates on a grid of their own in each column, of all sizes."""
    units = 2.0 ** rng.integers(-14, 3, d)
    return rng.integers(-(2 ** rng.integers(1, 40, d)), 2**20, (m, d)) * units, units


@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_candidates_in_units_and_their_reach(m, d, rng):
    P, units = candidates(rng, m, d)
    largest = rng.integers(0, 5, d) / 4
    whole = np.empty_like(P)
    verdict, margin = whole_units(P, units, largest, whole)
    expected, reach = reference.whole_candidates(P, units, largest)
    assert verdict == FINE
    assert whole.tolist() == expected
    assert margin == pytest.approx(float(reach), rel=1e-12)


@pytest.mark.parametrize(("m", "d"), SHAPES)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**-30, 1e300, 2.0**52 + 1, -0.0])
def test_one_bad_weight_is_found_wherever_it_is(m, d, bad, rng):
    P, units = candidates(rng, m, d)
    for i in range(m):
        j = int(rng.integers(d))
        Q = P.copy()
        Q[i, j] = bad
        found = whole_units(Q, units, np.ones(d), np.empty_like(Q))[0]
        expected = reference.whole_candidates(Q, units, np.ones(d))
        assert found == (WORDS[expected] if isinstance(expected, str) else FINE)


def test_what_is_not_finite_comes_before_what_is_off_the_grid():
    P = np.array([[0.25, math.nan]])
    assert whole_units(P, np.ones(2), np.ones(2), np.empty_like(P))[0] == NOT_FINITE


@pytest.mark.parametrize("m", [0, 1, 2, 31])
def test_moves_in_units_and_their_reach(m, rng):
    d = 6
    units, largest = 2.0 ** rng.integers(-9, 3, d), rng.uniform(0, 2, d)
    coords = rng.integers(0, d - 1, m)
    steps = rng.integers(-99, 99, m) * units[coords]
    whole, reach = np.full((2, m), np.nan)
    assert whole_moves(coords, steps, d - 1, units, largest, whole, reach) == FINE
    assert whole.tolist() == (steps / units[coords]).tolist()
    assert reach.tolist() == (np.abs(steps) * largest[coords]).tolist()


@pytest.mark.parametrize(
    ("coord", "step", "verdict"),
    [(-1, 1.0, ELSEWHERE), (3, 1.0, ELSEWHERE), (2**40, 1.0, ELSEWHERE), (1, math.nan, NOT_FINITE),
     (1, -math.inf, NOT_FINITE), (1, 0.5, OFF_GRID), (2, 0.5, FINE), (1, -0.0, FINE),
     (3, math.nan, ELSEWHERE)],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_move_is_found_wherever_it_is(coord, step, verdict, place):
    coords, steps = np.array([0, 0, 0]), np.array([1.0, 2.0, 3.0])
    coords[place], steps[place] = coord, step
    units = np.array([1.0, 1.0, 0.5, 1.0])  # the last one belongs to no weight
    found = whole_moves(coords, steps, 3, units, np.ones(4), np.empty(3), np.empty(3))
    assert found == verdict


def numbers(rng):
    """Numbers of all sizes, halves, and the odd ones."""
    far = rng.normal(size=300) * 2.0 ** rng.integers(-60, 60, 300)
    odd = [0.0, -0.0, -0.2, 2.0**51 + 0.5, -(2.0**51) - 0.5, 2.0**52 + 1, math.inf, -math.inf]
    return np.concatenate([far, np.arange(-9, 9) / 2, odd])


@pytest.mark.parametrize("unit", [None, 1.0, 2.0**-7, 0.3])
def test_snapping_rounds_half_to_even_and_clips(unit, rng):
    x = numbers(rng)
    low, high = np.full(x.size, -3.25), np.full(x.size, 2.0**53)
    low[::3], high[::3] = -math.inf, 0.0
    each = zip(x.tolist(), low.tolist(), high.tolist(), strict=True)
    expected = [reference.snapped(one, unit, *ends) for one, *ends in each]
    found = np.stack([x, x])
    snap(found, np.empty(0) if unit is None else np.full(x.size, unit), low, high)
    for row in found:
        if unit == 0.3:  # a quotient that is rounded once more may fall on another side
            assert np.array_equal(row, np.clip(np.rint(x / unit) * unit, low, high))
        else:
            assert row.view(np.int64).tolist() == np.array(expected).view(np.int64).tolist()


def test_snapping_leaves_what_is_not_a_number():
    P = np.array([[math.nan, 7.0]])
    snap(P, np.ones(2), np.zeros(2), np.ones(2))
    assert math.isnan(P[0, 0])
    assert P[0, 1] == 1.0


@pytest.mark.parametrize("unit", [None, 2.0**-3])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.5])
def test_steps_both_ways_stay_on_the_grid_and_in_the_box(unit, share, rng):
    d, size = 23, 2.0**-6 if unit is None else unit
    low, high = -rng.integers(0, 30, d) * size, rng.integers(0, 30, d) * size
    low[0], high[0] = 0.0, 0.0
    here = np.array([rng.choice([a, b, 0.0]) for a, b in zip(low, high, strict=True)])
    found = np.full((2, d), np.nan)
    units = np.empty(0) if unit is None else np.full(d, unit)
    both_ways(here, share, high - low, units, low, high, found)
    for row, sign in zip(found, (1, -1), strict=True):
        steps = [x if unit is None else reference.snapped(x, unit, -math.inf, math.inf)
                 for x in (sign * share * (high - low)).tolist()]  # fmt: skip
        ends = np.clip(here + steps, low, high)
        assert row.tolist() == (ends - here).tolist()


# --------------------------------------------------------------------------------- privacy curves


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 600])
def test_a_step_of_a_curve(size, rng):
    nodes = np.array([0, 1, 3, 4, 8])
    full = np.sort(rng.uniform(0, 1, 16 + size))[::-1].copy()
    p, chords = rng.uniform(0, 1, 5), rng.uniform(0, 2, (3, 4))
    chords[:, 0] = 5.0, -1.0, 0.25  # both ends of a chord are reached
    rest, out = (0.75, 2.0**-40, 2.0**-60), np.empty(size)
    curve_step(full, nodes, p, chords, *rest, out)
    told = reference.curve_step(
        full.tolist(), nodes.tolist(), p.tolist(), chords.tolist(), *rest, size
    )
    assert out.tolist() == told


def test_a_curve_that_is_not_a_number_somewhere_stays_so():
    full = np.linspace(1, 0, 20)
    full[9] = math.nan
    out = np.empty(4)
    curve_step(full, np.array([0, 2, 8]), np.ones(3), np.ones((3, 2)), 0.5, 0.0, 1e-18, out)
    touched = [any(j + start - node == 9 for start in (8, 16) for node in (0, 2, 8))
               for j in range(4)]  # fmt: skip
    assert np.isnan(out).tolist() == touched
    assert any(touched)
    assert not all(touched)


@pytest.mark.parametrize("starts", [[0], [0, 1], [0, 3, 4, 9]], ids=str)
def test_norms_over_groups_equal_the_twin(starts, rng):
    """A group adds its largest weight, which may be negative; a number adds 0 at least."""
    d = starts[-1] + 5
    least = rng.choice([0.0, -math.inf], len(starts))
    V = rng.integers(-(2**20), 2**20, (6, d + 1)) / 1024
    V[0] = -np.abs(V[0])
    found = np.empty(6)
    group_norms(V, np.array(starts), least, found)
    for v, norm in zip(V, found.tolist(), strict=True):
        sums = []
        for u in (v, -v):
            groups = zip(least, np.split(u[:-1], starts[1:]), strict=True)
            sums.append(sum(max(low, *group) for low, group in groups) + u[-1])
        assert norm == max(sums)
    V[3, 2] = math.nan
    group_norms(V, np.array(starts), least, found)
    assert np.isnan(found).tolist() == [False, False, False, True, False, False]
