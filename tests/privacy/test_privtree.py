"""The private partition: its law by enumeration, the proof's worst path, its geometry."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import reference
import scipy.stats
from makers.cases import ADJACENCIES, DISTANCE_DOMAINS, distance_rows, packed
from makers.raises import messages_of, raises_in
from makers.trees import names_of, rate_of, shape_log, shapes

import privfit
from privfit import Box, CentersObjective, FacilityObjective, Ledger
from privfit._kernels import threads
from privfit._kernels.random import BitSource
from privfit.audit import neighbours
from privfit.clustering import Tree
from privfit.domains import Grid
from privfit.privacy.accounting import Event
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.privtree import (
    Cells,
    Halvings,
    Partition,
    SplitTree,
    check_depth,
)
from privfit.privacy.remainder import epsilon_left
from privfit.records.facilities import FEW_COLUMNS

FALSE_ALARM = 1e-7  # of each of four draws of many trees

# ----------------------------------------------------------------------------------------- the law


def few_records(adjacency: str) -> tuple[list[tuple[int, ...]], Any]:
    """All data sets of up to three records in eight cells."""
    found = neighbours(8, 3 if adjacency == "replace" else 2, adjacency)
    return list(found.data_sets), found.pairs


def many_records(adjacency: str) -> tuple[list[tuple[int, ...]], Any]:
    """All counts up to four in each of four cells."""
    counts = list(itertools.product(range(5), repeat=4))
    place = {cells: i for i, cells in enumerate(counts)}
    pairs = set()
    for cells in counts:
        for j in range(4):
            more = tuple(c + (i == j) for i, c in enumerate(cells))
            others = [more] if adjacency == "add_remove" else [
                tuple(c - (i == j) for i, c in enumerate(more)) for j in range(4)
            ]  # fmt: skip
            pairs |= {(place[cells], place[other]) for other in others if other in place}
    return [tuple(np.repeat(range(4), cells).tolist()) for cells in counts], pairs


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("data", "depth", "roots", "epsilon", "told"),
    [(few_records, 3, 0, 0.5, 0.3), (few_records, 3, 0, 3.0, 0.3), (few_records, 3, 1, 3.0, 0.3),
     (many_records, 2, 0, 2.4, 0.45)],
    ids=["little noise", "much noise", "two roots", "many records"],
)  # fmt: skip
def test_no_shape_tells_neighbours_apart_by_more_than_epsilon(
    data, depth, roots, epsilon, told, adjacency
):
    """All shapes, all neighbours; their probabilities add up to one."""
    mechanism, every = SplitTree(epsilon, Neighbours(adjacency), roots, depth), shapes(roots, depth)
    assert len(every) == {(0, 3): 26, (1, 3): 25, (0, 2): 5}[roots, depth]
    data_sets, pairs = data(adjacency)
    table = []
    for cells in data_sets:
        logs = [shape_log(mechanism, shape, cells) for shape in every]
        assert abs(mpmath.fsum(map(mpmath.exp, logs)) - 1) < 1e-25
        table.append(np.array(logs, dtype=np.float64))
    worst = max(np.abs(table[i] - table[j]).max() for i, j in pairs)
    assert told * epsilon < worst <= epsilon * (1 + 1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_cost_of_a_shape_does_not_grow_with_its_depth_and_needs_its_constants(
    adjacency, epsilon
):
    """Over all counts that fall along a path: at most 3 r, nearly reached; a cell kept whole, r.

    With a quarter more than r = epsilon / 3, or with r = epsilon / 3 where a record is replaced,
    some path would tell more than epsilon.
    """

    def costs(rate, decay):
        return [reference.path_cost(rate, decay, depth, 13 * decay) for depth in (1, 3, 12)]

    def in_all(rate, decay):
        kept = reference.stop_cost(rate, 12) if adjacency == "replace" else 0
        return costs(rate, decay)[-1] + kept

    mechanism = SplitTree(epsilon, Neighbours(adjacency), 0, 62)
    rate, decay = rate_of(mechanism), mechanism.decay
    assert mpmath.exp(-rate * decay) <= 0.5 < mpmath.exp(-rate * (decay - 1))
    one, few, many = costs(rate, decay)
    assert one <= few <= many <= 3 * rate
    assert one <= rate * (1 + mpmath.mpf(2) ** -90)
    assert many > 1.9 * rate
    assert 0.99 * rate < reference.stop_cost(rate, 12) <= rate * (1 + mpmath.mpf(2) ** -90)
    assert in_all(rate, decay) <= epsilon
    if epsilon < 4:  # coarser noise has some room left
        larger = rate * mpmath.mpf(5 if adjacency == "add_remove" else 16 / 3) / 4
        assert in_all(larger, math.ceil(math.log(2) / larger)) > epsilon


def test_without_decay_a_path_has_no_bound():
    """What the test above would find if the decay did nothing."""
    assert reference.path_cost(mpmath.mpf(1) / 3, 0, 40, 1) > 10


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("roots", [0, 1])
def test_shapes_are_drawn_as_often_as_the_formula_says(roots, adjacency):
    mechanism, runs = SplitTree(2.0, Neighbours(adjacency), roots, 3), 3000
    cells = np.array([0, 0, 0, 1, 5, 5], dtype=np.uint64)
    texts = [format(c, "03b") for c in cells.tolist()]
    index = {shape: i for i, shape in enumerate(shapes(roots, 3))}
    source, seen = BitSource(3), np.zeros(len(index))
    for _ in range(runs):
        leaves = mechanism(cells, source)
        names = names_of(leaves)
        seen[index[frozenset(names)]] += 1
        counts = [sum(text.startswith(name) for text in texts) for name in names]
        assert leaves.counts(cells, 3).tolist() == counts
    logs = [shape_log(mechanism, shape, cells) for shape in index]
    expected = runs * np.exp(np.array(logs, dtype=np.float64))
    assert expected.sum() == pytest.approx(runs)
    rare = expected < 8
    seen, expected = (np.append(v[~rare], v[rare].sum()) for v in (seen, expected))
    assert scipy.stats.chisquare(seen, expected).pvalue > FALSE_ALARM


def test_leaves_cover_every_cell_once_in_order(rng):
    """None coarser than the roots, none finer than the depth."""
    cells = np.sort(np.repeat(np.arange(64), rng.integers(0, 3000, 64))).astype(np.uint64)
    cells = cells[(cells < 5) | (cells >= 40)]
    for roots in (2, 6):
        leaves = SplitTree(1.0, ADD_REMOVE, roots, 6)(cells, 9)
        size = 1 << 6 - leaves.levels
        first = leaves.codes.astype(np.int64) * size
        assert np.array_equal(first, np.cumsum(size) - size)
        assert size.sum() == 64
        assert leaves.levels.min() == roots
        assert leaves.levels.max() == 6
        assert np.array_equal(
            leaves.counts(cells, 6),
            np.add.reduceat(np.bincount(cells.astype(int), minlength=64), first),
        )
        assert repr(leaves) == f"Leaves(<{len(first)} cells>)"


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [0, 1])
def test_shapes_of_hardly_any_record_end(n):
    """Empty cells are halved with probability at most 1/4 once they are below a root."""
    mechanism = SplitTree(0.01, ADD_REMOVE, 0, 62)
    cells = np.zeros(n, dtype=np.uint64)
    assert np.mean([len(mechanism(cells, seed).codes) for seed in range(50)]) < 4


# ---------------------------------------------------------------------------------------- geometry


def cells_of(objective: Any, axes: Any) -> np.ndarray:
    """(n,): the cells of single records."""
    return packed(objective).cells(objective.cells(axes).axes)


def centres(X: Any, domain: Any, n_threads: int) -> Any:
    return CentersObjective(X, 2, domain, n_threads=n_threads)


def facilities(X: Any, domain: Any, n_threads: int) -> Any:
    places = domain.points(4, np.random.default_rng(0))
    return FacilityObjective(X, places, (0.0, 1e6), domain, n_threads)


FEW = [name for name, domain in DISTANCE_DOMAINS.items() if domain.width <= FEW_COLUMNS]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("make", "name"),
    [*((centres, name) for name in DISTANCE_DOMAINS), *((facilities, name) for name in FEW)],
)
def test_cells_equal_the_twin(make, name, rng, knobs, threads_used):
    X, domain = distance_rows(name, rng, 300), DISTANCE_DOMAINS[name]
    rows = reference.records(X, domain, uniform=True)
    for n_threads, tile_rows in ((1, 256), (3, 256), (1, 23)):
        knobs(tile_rows=tile_rows)
        objective = make(X, domain, n_threads)
        low, high = (bound.tolist() for bound in objective.bounds)
        for depth in (0, 1, 7, 62):
            axes = Halvings(*objective.bounds, depth).axes
            cells = cells_of(objective, axes)
            codes = [format(code, f"0{len(axes)}b")[: len(axes)] for code in cells]
            assert codes == [reference.cell(x, axes, low, high) for x in rows]
    assert {1, threads.resolve(3)} <= set(threads_used)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_corners_of_cells_hold_their_records_and_cover_the_domain(name, rng):
    X = distance_rows(name, rng, 200)
    objective = CentersObjective(X, 2, DISTANCE_DOMAINS[name])
    rows = np.array(reference.records(X, DISTANCE_DOMAINS[name], uniform=True))
    halvings = Halvings(*objective.bounds, 9)
    depth, codes = len(halvings.axes), cells_of(objective, halvings.axes)
    for level in (0, 4, depth):
        low, high = halvings.corners(codes >> np.uint64(depth - level), level)
        assert (low <= rows).all()
        assert (rows < high).all()
        low, high = halvings.corners(np.arange(2**level, dtype=np.uint64), level)
        assert (high > low).all()
        bottom, top = objective.bounds
        volumes = [math.prod(row) for row in (high - low).tolist()]
        assert sum(volumes) == math.prod((top - bottom + 1).tolist())


def test_halvings_take_the_widest_column_and_stop_at_a_grid_step():
    coarse = Box([0, 0, 0], [1, 4, 0], grid=Grid(a=2, b=6, c=0))
    objective = CentersObjective(np.zeros((1, 3)), 1, coarse)
    # 1, 4 and 0 in steps of one: 2, 5 and 1 integers wide.
    assert objective.bounds[1].tolist() == [1, 4, 0]
    assert Halvings(*objective.bounds).axes.tolist() == [1, 1, 0]

    def whole(*bounds: Sequence[int]) -> tuple[np.ndarray, ...]:
        return tuple(np.array(bound) for bound in bounds)

    assert Halvings(*whole([-9, -9], [9, 9]), 5).axes.tolist() == [0, 1, 0, 1, 0]
    assert Halvings(*whole([0, -1000, 3], [5000, 1000, 3]), 3).axes.tolist() == [0, 0, 1]
    assert len(Halvings(*whole([0] * 9, [4096] * 9)).axes) == 62
    still = CentersObjective(np.ones((1, 2)), 1, Box(1, 1))
    assert Halvings(*still.bounds).axes.size == 0
    assert cells_of(still, Halvings(*still.bounds).axes).tolist() == [0]


# -------------------------------------------------------------------------------- shape and counts


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_partition_spends_epsilon_and_no_more(adjacency, rng):
    """As rational numbers, and all but a unit in the last place."""
    bounds = np.zeros(2, dtype=int), np.full(2, 99)
    for epsilon, share in zip(10 ** rng.uniform(-3, 2, 200), rng.uniform(0.01, 0.99, 200),
                              strict=True):  # fmt: skip
        plan = Partition.plan(Tree(share, roots=3), bounds, 1, epsilon, Neighbours(adjacency))
        spent = sum(Fraction(event.parameter) * event.count for event in plan.events)
        assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) < spent <= Fraction(epsilon)
        assert {event.kind for event in plan.events} == {"pure"}
        assert (plan.shape.roots, plan.shape.depth) == (3, len(Halvings(*bounds).axes))
        assert plan.counts.sensitivity == (2 if adjacency == "replace" else 1)
    shallow = np.zeros(1, dtype=int), np.array([3])
    assert Partition.plan(Tree(roots=9), shallow, 1, 1.0, Neighbours(adjacency)).shape.roots == 2
    assert (
        Partition.plan(Tree(), bounds, 5, 1.0, Neighbours(adjacency)).shape.roots == 4
    )  # log2 of 3 k


@pytest.mark.few(2)
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_cells_are_grown_where_records_are_and_counted(name, rng):
    """With next to no noise: counts are those of the records in each box, whatever their order."""
    X, domain = distance_rows(name, rng, 500), DISTANCE_DOMAINS[name]
    objective = CentersObjective(X, 2, domain)
    plan = Partition.plan(Tree(0.5, roots=2, depth=8), objective.bounds, 1, 4000.0, REPLACE)
    codes = cells_of(objective, plan.halvings.axes)
    rows = np.array(reference.records(X, domain, uniform=True))
    for order in (codes, codes[::-1]):
        grant = Ledger(4000.0).reserve(4000.0)
        grant.plan(*plan.events)
        source = BitSource(4)
        cells = plan.grow(
            order, lambda m, v, grant=grant, source=source: grant.release(m, v, source)
        )
        inside = (cells.low[:, None] <= rows) & (rows < cells.high[:, None])
        assert np.array_equal(inside.all(axis=2).sum(axis=1), cells.counts)
        assert cells.counts.sum() == cells.size == 500
        assert cells.scale == plan.counts.sensitivity / plan.counts.epsilon
        assert len(cells.counts) > 8
        assert repr(cells) == f"Cells(<{len(cells.counts)} cells>)"


def test_weights_of_cells_are_what_a_zero_would_hardly_show():
    cells = Cells(np.zeros((3, 1)), np.ones((3, 1)), np.array([-8, 3, 50]), 10.0)
    assert cells.weights == pytest.approx([0, 0, 50 - 10 * math.log(2)])
    assert cells.size == 45.0
    assert Cells(np.zeros((1, 1)), np.ones((1, 1)), np.array([-8]), 10.0).size == 1.0


def test_rounding_down_never_rounds_up(rng):
    for a, b in rng.uniform(0, 1, (200, 2)):
        exact = Fraction(a) - 3 * Fraction(b)
        found = epsilon_left(a, Event("pure", b, 3))
        assert Fraction(found) <= exact < Fraction(math.nextafter(found, math.inf))


# ------------------------------------------------------------------------------------- wrong input

WRONG: list[tuple[Any, str]] = [
    *((partial(SplitTree, v, REPLACE, 0, 3), r"epsilon \(.*\) must be a positive number; pass a")
      for v in (0, -1, math.nan, math.inf, "1")),
    *((partial(SplitTree, 1.0, REPLACE, *v), r"must be a whole number of halvings; pass such")
      for v in ((0.0, 3), (0, 3.0), (0, True))),
    *((partial(SplitTree, 1.0, REPLACE, *v), r"must rise from 0 to at most 62 halvings; pass")
      for v in ((-1, 3), (4, 3), (0, 63))),
    (partial(check_depth, 63), r"depth \(63\) must be at most 62; leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_raise_is_reached_by_a_case_above():
    source = Path(privfit.__file__).parent / "privacy/privtree.py"
    seen = "\n".join(messages_of(call) for call, _ in WRONG)
    assert not [line for line, parts in raises_in(source) if not all(p in seen for p in parts)]
    assert len(raises_in(source)) == 4


def test_constants_are_those_of_the_proof():
    assert [SplitTree(1.0, one, 0, 3).tests for one in (ADD_REMOVE, REPLACE)] == [3, 4]
