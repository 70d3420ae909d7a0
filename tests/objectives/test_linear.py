"""Linear models: scores are exact sums of one integer a record, however they are computed."""

from __future__ import annotations

import contextlib
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.cases import (
    ADJACENCIES,
    DOMAINS,
    GRIDS,
    LOSSES,
    case,
    encoded,
    extreme_rows,
    labels,
    packed,
    population,
    same,
)

from privfit import Box, Categorical, L1Ball, LinearObjective, Numeric, Schema
from privfit._kernels import linear as kernels
from privfit._kernels import threads
from privfit._kernels.records import PANEL_ROWS, RESIDUAL_UNIT, Loss
from privfit.domains import Grid
from privfit.records.candidates import quads, wrap32
from privfit.records.packing import pack, tiles

LAYOUTS = ("dense", "sparse")
CAP = 0.3
ONE = round(1 / RESIDUAL_UNIT)


def answers(objective: LinearObjective, P: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that an objective computes from its records."""
    d = objective.n_features
    coords = np.repeat(np.arange(d + 1), 2)
    steps = objective.domain.weight_units()[coords] * np.tile([37, -5], d + 1)
    found = {
        "scores": objective.scores(P),
        "moves": objective.at(P[0]).scores(coords, steps),
        "moments": objective.second_moments(),
    }
    if objective.loss == "logistic":
        found["gradient"] = objective.gradient(P[0], CAP)
        found["wide gradient"] = objective.gradient(P[-1], CAP)
    return found


def single_records(X, y, loss, domain, **settings) -> list[LinearObjective]:
    return [
        LinearObjective(X[i : i + 1], y[i : i + 1], loss, domain, **settings) for i in range(len(X))
    ]


@pytest.fixture(params=[(n, loss) for n in DOMAINS for loss in LOSSES], ids=lambda p: "-".join(p))
def problem(request, rng):
    """(name of the domain, loss, records, labels, candidates)."""
    name, loss = request.param
    X = case(name).rows(rng, 333)
    return name, loss, X, labels(rng, 333), population(case(name).domain, rng)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 100])
def test_one_packing_serves_every_class_against_the_rest(n, layout, rng):
    """Class 2 has no record; what a walk over one class worked out serves the next ones."""
    domain = Box(-1, 1, 5)
    X, y = rng.uniform(-1, 1, (n, 5)), rng.choice([0, 1, 3], n)
    X[rng.random(X.shape) < 0.3] = 1.0
    P = population(domain, rng)
    whole = LinearObjective(X, y, domain=domain, layout=layout, n_classes=4)
    for head in (0, 3, 1, 2, 0):
        apart = LinearObjective(X, y == head, domain=domain, layout=layout)
        same(answers(whole.against(head), P), answers(apart, P))
        assert whole.against(head).label_counts().tolist() == apart.label_counts().tolist()
    pieces = [LinearObjective(X, y, domain=domain, layout=layout, n_classes=4).against(head)
              for head in (1, 3, 0)]  # fmt: skip
    joined = pieces[0].joined(pieces[1:])
    thrice = LinearObjective(np.tile(X, (3, 1)), np.tile(y == 1, 3), domain=domain)
    same(answers(joined, P), answers(thrice, P))


# ------------------------------------------------------------------- integers against exact twins


def margins_to_try(grid: Grid, rng: np.random.Generator, C: float = 1.0) -> list[int]:
    """Zero, tiny, around one and sixteen, at the 32-bit limit, huge, and many between.

    Only those that 2^31 records could have without an overflow of their sum, or of 53 bits.
    """
    one, limit = 1 << (grid.a + grid.b), 1 << 31
    marks = [0, one >> 1, one, 2 * one, 8 * one, 15 * one, 16 * one, 17 * one, 40 * one, limit,
             limit - one, 1 << 40, 1 << 50]  # fmt: skip
    near = [mark + step for mark in marks for step in (-2, -1, 0, 1, 2)]
    spread = [round(v * one) for v in rng.uniform(0, 20, 90)]
    decades = [round(2.0**v) for v in rng.uniform(0, 51, 90)]
    most = min(2.0**52, 2.0 ** (31 - grid.c + grid.a + grid.b) / max(1.0, C))
    most -= 2 << (2 * grid.a)  # what the weight adds to the bound below
    return [sign * abs(z) for z in near + spread + decades if abs(z) < most for sign in (1, -1)]


def candidates_with_margins(z: list[int], grid: Grid) -> np.ndarray:
    """Candidates (m, 2) that give the record x = 2^-a just these margins."""
    weight = np.array([v % (1 << grid.a) for v in z], dtype=np.float64)
    intercept = np.array([v >> grid.a for v in z], dtype=np.float64)
    return np.column_stack([weight, intercept]) * 2.0**-grid.b


@pytest.mark.few(4)
@pytest.mark.parametrize("grid", [*GRIDS, Grid(a=14, b=13, c=14), Grid(a=13, b=15)], ids=str)
@pytest.mark.parametrize(
    ("loss", "C"),
    [("logistic", 1.0), ("zero_one", 1.0), ("hinge", 1.0), ("hinge", 0.3), ("hinge", 4.0)],
)
def test_every_integer_is_within_0_6_units_of_the_true_loss(loss, C, grid, rng):
    z = margins_to_try(grid, rng, C)
    assert max(z) > 1 << 31  # beyond the narrow kernels too
    P = candidates_with_margins(z, grid)
    domain = Box(-1, 1, 1, grid=grid)
    for label in (1, 0):
        truth = [reference.true_loss(v, label, loss, grid, C) for v in z]
        for layout in LAYOUTS:
            objective = LinearObjective([[2.0**-grid.a]], [label], loss, domain, C, layout=layout)
            integers = (-objective.scores(P)).tolist()
            wrong = [
                (v, i, float(t))
                for v, i, t in zip(z, integers, truth, strict=True)
                if not abs(i - t) <= 0.6
            ]
            assert not wrong, f"{layout}: (margin, integer, truth) {wrong[:3]}"


@pytest.mark.slow
def test_logistic_integers_are_within_0_6_units_for_a_million_margins(rng):
    """Float64 is truth enough here: its error is below a thousandth of a unit."""
    grid = Grid(c=14)
    z = rng.integers(-(18 << 22), 18 << 22, 1_000_000)
    objective = LinearObjective([[2.0**-12]], [1], "logistic", Box(-1, 1, 1, grid=grid))
    integers = -objective.scores(candidates_with_margins(z.tolist(), grid))
    truth = np.logaddexp(0, -z * 2.0**-22) * 2**14
    assert np.abs(integers - truth).max() < 0.6


@pytest.mark.few(9)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DOMAINS)
def test_margins_are_exact(name, layout, grid, rng):
    """A hinge whose unit is the unit of a margin shows margins themselves."""
    domain = case(name, grid).domain
    X, y = case(name, grid).rows(rng, 40), labels(rng, 40)
    P = population(domain, rng)
    C = 2.0 ** (grid.a + grid.b - grid.c)
    objective = LinearObjective(X, y, "hinge", domain, C, layout=layout)
    rows, whole = encoded(domain, X).tolist(), reference.candidates(P, domain)
    one = 1 << (grid.a + grid.b)
    expected = []
    for w in whole:
        z = [reference.margin(x, w, grid.a) for x in rows]
        expected.append(sum(max(one - (v if t else -v), 0) for v, t in zip(z, y, strict=True)))
    records = packed(objective)
    wide = records.layout.losses_wide(np.array(whole, dtype=np.float64), records)
    assert wide.tolist() == expected
    small = domain.norm(P) < 2.0 ** (31 - grid.a - grid.b) / 16
    assert 3 <= small.sum() < len(P)
    assert (-objective.scores(P[small])).tolist() == np.array(expected)[small].tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", DOMAINS)
def test_margin_kernels_are_exact(name, rng):
    domain = case(name).domain
    X = case(name).rows(rng, 70)
    rows, P = encoded(domain, X).tolist(), domain.candidates(3, rng, radius=6.0)
    table = domain.read(X) if name == "schema" else X
    dense, sparse = (pack(table, domain, layout=layout) for layout in LAYOUTS)
    for w in reference.candidates(P, domain):
        expected = [reference.margin(x, w, domain.grid.a) for x in rows]
        whole = np.array(w, dtype=np.float64)
        z = np.empty(dense.panels.shape[0] * PANEL_ROWS, dtype=np.int32)
        pairs = np.ascontiguousarray(quads(whole[None, :-1], dense.pairs)[0, :, 0])
        kernels.dense_margin(dense.as_pairs, pairs, w[-1] << domain.grid.a, z, 2)
        assert z[:70].tolist() == expected
        z = np.empty(70, dtype=np.int32)
        kernels.sparse_margins(
            sparse.rows, tiles(sparse.runs, 16), wrap32(whole), domain.grid.a, z, 2
        )
        assert z.tolist() == expected


def test_loss_integers_of_each_record_are_those_that_are_summed(rng):
    z = rng.integers(-(2**31), 2**31, 1000).astype(np.int32) // 4
    for name in LOSSES:
        loss = Loss(name, 12, 10, 12, 1.0)
        out = np.empty(1000, dtype=np.int32)
        parts = np.array([[0, 600, 0], [600, 400, -1]], dtype=np.int64)
        kernels.losses_each(z, parts, loss, out, 2)
        for i in (0, 1, 599, 600, 999):
            truth = reference.true_loss(int(z[i]), int(i < 600), name, Grid())
            assert abs(int(out[i]) - truth) <= 0.6


@given(
    data=st.data(),
    loss=st.sampled_from(["hinge", "zero_one"]),
    layout=st.sampled_from(LAYOUTS),
    grid=st.sampled_from(GRIDS),
    d=st.integers(1, 5),
    n=st.integers(1, 20),
    C=st.sampled_from([1.0, 0.5, 8.0, 0.3, 17.7]),
)
def test_rational_losses_equal_the_twin(data, loss, layout, grid, d, n, C):
    """Hinge and zero-one losses are rational, so the score is known to the last bit."""
    one = 1 << grid.a
    x = data.draw(st.lists(st.lists(st.integers(-one, one), min_size=d, max_size=d),
                           min_size=n, max_size=n))  # fmt: skip
    y = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    size = st.integers(0, 40 - grid.a).flatmap(lambda e: st.integers(-(1 << e), 1 << e))
    whole = data.draw(st.lists(st.lists(size, min_size=d + 1, max_size=d + 1), min_size=1,
                               max_size=6))  # fmt: skip
    C = C if loss == "hinge" else 1.0
    domain = Box(-1, 1, d, grid=grid)
    objective = LinearObjective(np.array(x) / one, y, loss, domain, C, layout=layout)
    scores = objective.scores(np.array(whole, dtype=np.float64) * 2.0**-grid.b)
    for w, score in zip(whole, scores.tolist(), strict=True):
        z = [reference.margin(record, w, grid.a) for record in x]
        if loss == "hinge":
            exact = sum(reference.hinge_integer(v, t, grid, C) for v, t in zip(z, y, strict=True))
            # A weight that is no power of two rounds once more, by less than a thousandth.
            assert abs(-score - exact) <= (0 if math.frexp(C)[0] == 0.5 else n)
        else:
            assert -score == sum(
                reference.zero_one_integer(v, t) for v, t in zip(z, y, strict=True)
            )


@pytest.mark.few(2)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [1, 4, 5])
def test_a_score_is_the_sum_of_its_records_integers(d, loss, rng):
    """At every number of rows around a panel and a tile, for mixed and for single classes."""
    domain = Box(-1, 1, d)
    pool = rng.uniform(-1, 1, (10, d)) * (rng.random((10, d)) < 0.6)
    P = population(domain, rng)[::2]
    each = np.array(
        [
            [o.scores(P) for o in single_records(pool, [label] * 10, loss, domain)]
            for label in (0, 1)
        ]
    )
    for rows in (1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257):
        which = rng.integers(0, 10, rows)
        for pattern in ("mixed", "ones", "zeros"):
            y = labels(rng, rows, pattern).astype(int)
            expected = each[y, which].sum(axis=0)
            for layout in LAYOUTS:
                objective = LinearObjective(pool[which], y, loss, domain, layout=layout)
                assert np.array_equal(objective.scores(P), expected), (rows, pattern, layout)


# -------------------------------------------------------------- what may not change a single bit


@pytest.mark.few(21)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_of_rows_does_not_matter(problem, layout, rng):
    name, loss, X, y, P = problem
    domain = case(name).domain
    expected = answers(LinearObjective(X, y, loss, domain, layout=layout), P)
    order = rng.permutation(len(X))
    same(answers(LinearObjective(X[order], y[order], loss, domain, layout=layout), P), expected)


def test_dense_and_sparse_layouts_agree(problem):
    name, loss, X, y, P = problem
    domain = case(name).domain
    dense, sparse = (LinearObjective(X, y, loss, domain, layout=layout) for layout in LAYOUTS)
    same(answers(dense, P), answers(sparse, P))
    same(answers(dense, P), answers(LinearObjective(X, y, loss, domain), P))


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=12)
@given(data=st.data())
def test_scores_of_shards_add_up(loss, layout, data):
    """For any split of the records, empty classes included."""
    rng = np.random.default_rng(5)
    name = data.draw(st.sampled_from(DOMAINS))
    domain, X, y = case(name).domain, case(name).rows(rng, 60), labels(rng, 60)
    P = population(domain, rng)
    shard = np.array(data.draw(st.lists(st.integers(0, 4), min_size=60, max_size=60)))
    whole = answers(LinearObjective(X, y, loss, domain, layout=layout), P)
    parts = [
        answers(LinearObjective(X[shard == s], y[shard == s], loss, domain, layout=layout), P)
        for s in np.unique(shard)
    ]
    same({key: sum(part[key] for part in parts) for key in whole}, whole)


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_number_of_threads_does_not_matter(loss, layout, threads_used, rng):
    domain = Box(-1, 1, 6)
    X, y = rng.uniform(-1, 1, (3000, 6)) * (rng.random((3000, 6)) < 0.5), labels(rng, 3000)
    P = population(domain, rng)
    expected = answers(LinearObjective(X, y, loss, domain, n_threads=1, layout=layout), P)
    for n_threads in (2, 3, 4, 7):
        threads_used.clear()
        objective = LinearObjective(X, y, loss, domain, n_threads=n_threads, layout=layout)
        same(answers(objective, P), expected)
        assert set(threads_used) == {threads.resolve(n_threads)}


@pytest.mark.parametrize("rows", [16, 48, 240, 256, 4096])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_size_of_tiles_does_not_matter(layout, rows, knobs, rng):
    domain = Box(-1, 1, 5)
    X, y = rng.uniform(-1, 1, (700, 5)) * (rng.random((700, 5)) < 0.5), labels(rng, 700)
    P = population(domain, rng)
    objectives = [LinearObjective(X, y, loss, domain, layout=layout) for loss in LOSSES]
    expected = [answers(objective, P) for objective in objectives]
    knobs(tile_rows=rows)
    for objective, answer in zip(objectives, expected, strict=True):
        same(answers(objective, P), answer)
    knobs(slice_work=1.0)  # every tile a call of its own
    for objective, answer in zip(objectives, expected, strict=True):
        same(answers(objective, P), answer)


def test_format_of_the_input_does_not_matter(rng, tmp_path):
    """Memory order, strides, element type, write protection, memory map, sparse formats, frames."""
    domain = Box(-8, 8, 6)
    whole = rng.integers(-9, 10, (300, 6)) * (rng.random((300, 6)) < 0.5)
    y = labels(rng, 300)
    P = population(domain, rng)
    X = whole.astype(np.float64)
    expected = answers(LinearObjective(X, y, "logistic", domain), P)
    X.setflags(write=False)
    on_disk = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(300, 6))
    on_disk[:] = whole
    on_disk.flush()
    doubled = np.repeat(np.repeat(whole, 2, axis=0), 3, axis=1)
    messy = sp.coo_array(whole)
    messy = sp.coo_array(
        (np.repeat(messy.data, 2) / 2, (np.repeat(messy.row, 2), np.repeat(messy.col, 2))),
        shape=whole.shape,
    )  # each entry in two halves
    explicit = sp.csr_array(np.where(whole == 0, 99, whole))
    explicit.data[explicit.data == 99] = 0  # zeros that are stored
    inputs = [
        X, np.asfortranarray(X), X.astype(">f8"), X.astype(np.float32), X.astype(np.float16),
        whole, whole.astype(np.int8), X[::-1][::-1], doubled[::2, ::3], on_disk,
        np.memmap(tmp_path / "x", dtype=np.float32, mode="r", shape=(300, 6)), X.tolist(),
        sp.csr_array(whole), sp.csc_array(X), sp.csr_matrix(X), sp.lil_array(X), messy, explicit,
        pd.DataFrame(whole),
    ]  # fmt: skip
    for given_as in inputs:
        for layout in ("auto", *LAYOUTS):
            objective = LinearObjective(given_as, y, "logistic", domain, layout=layout)
            same(answers(objective, P), expected)


def test_booleans_are_zeros_and_ones(rng):
    X, y = rng.random((100, 9)) < 0.3, labels(rng, 100)
    domain = Box(0, 1, 9)
    P = population(domain, rng)
    expected = answers(LinearObjective(X.astype(float), y, "logistic", domain), P)
    for given_as in (X, np.asfortranarray(X), X.astype(np.uint8), sp.csr_array(X), sp.csc_array(X)):
        same(answers(LinearObjective(given_as, y, "logistic", domain), P), expected)


def test_format_of_the_labels_does_not_matter(rng):
    domain = Box(-1, 1, 2)
    X, y = rng.uniform(-1, 1, (50, 2)), rng.integers(0, 2, 50)
    P = population(domain, rng)
    expected = answers(LinearObjective(X, y, "logistic", domain), P)
    for given_as in (2 * y - 1, y.astype(bool), y.astype(np.float32), y.tolist(), pd.Series(y),
                     (2.0 * y - 1).tolist(), y.astype(np.uint8)):  # fmt: skip
        same(answers(LinearObjective(X, given_as, "logistic", domain), P), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_schema_input_does_not_matter(loss, rng):
    domain, X, y = case("schema").domain, case("schema").rows(rng, 200), labels(rng, 200)
    P = population(domain, rng)
    columns = {name: X[:, i] for i, name in enumerate(domain.columns)}
    expected = answers(LinearObjective(X, y, loss, domain), P)
    same(answers(LinearObjective(columns, y, loss, domain), P), expected)
    same(answers(LinearObjective(pd.DataFrame(columns), y, loss, domain), P), expected)
    # The encoded table, declared as a box, is the same table.
    table = domain.encode(X).toarray() / 4096
    same(answers(LinearObjective(table, y, loss, Box(0, 1, 10)), P), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_candidate_scores_the_same_in_any_company(problem, layout):
    """Narrow and wide candidates in one call, and each on its own."""
    name, loss, X, y, P = problem
    objective = LinearObjective(X, y, loss, case(name).domain, layout=layout)
    together = objective.scores(P)
    assert np.array_equal(together, [objective.scores(w[None])[0] for w in P])
    assert np.array_equal(objective.scores(P[::-1]), together[::-1])
    many = np.tile(P, (6, 1))  # more than a lane group, and no multiple of a quad
    assert np.array_equal(objective.scores(many[:-1]), np.tile(together, 6)[:-1])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", [Grid(), Grid(a=14, b=14, c=14)], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_narrow_and_wide_kernels_give_the_same_integers(loss, grid, layout, rng):
    domain = Box(-1, 1, 5, grid=grid)
    X, y = rng.uniform(-1, 1, (300, 5)), labels(rng, 300)
    limit = 2.0 ** (31 - grid.a - grid.b)
    P = np.vstack([domain.candidates(9, rng, radius=r * limit) for r in (0.001, 0.05, 0.15)])
    objective = LinearObjective(X, y, loss, domain, layout=layout)
    whole, records = P / domain.weight_units(), packed(objective)
    narrow = records.narrow(domain.norm(P)) & records.layout.fits(whole)
    assert narrow.sum() >= 9
    whole = whole[narrow]
    wide = records.layout.losses_wide(whole, records)
    assert np.array_equal(records.layout.losses(whole, records), wide)


# ------------------------------------------------------------------------- one-coordinate moves


@pytest.mark.few(11)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_moves_equal_full_scores_along_a_chain_of_steps(problem, layout, rng):
    name, loss, X, y, _ = problem
    domain = case(name).domain
    objective = LinearObjective(X, y, loss, domain, layout=layout)
    units, d = domain.weight_units(), domain.width
    whole = np.rint(domain.candidates(1, rng)[0] / units)
    at = objective.at(whole * units)
    for turn in range(8):
        assert np.array_equal(at.w, whole * units)
        coords = rng.integers(0, d + 1, 21)
        steps = rng.integers(-3000, 3000, 21) * units[coords]
        moved = np.tile(at.w, (21, 1))
        moved[np.arange(21), coords] += steps
        assert np.array_equal(at.candidates(coords, steps), moved)
        assert np.array_equal(at.scores(coords, steps), objective.scores(moved))
        coord, step = int(rng.integers(0, d + 1)), int(rng.integers(-2000, 2000))
        at.step(coord, step * units[coord])
        whole[coord] += step
        assert turn < 7 or np.array_equal(at.w, whole * units)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_moves_across_the_32_bit_limit_equal_full_scores(loss, layout, rng):
    """Out of the narrow kernels and back, in steps and in moves; also beyond 16-bit weights."""
    domain = Box(-1, 1, 3)
    X, y = rng.uniform(-1, 1, (200, 3)), labels(rng, 200)
    objective = LinearObjective(X, y, loss, domain, layout=layout)
    at = objective.at(np.array([0.5, -0.25, 0.0, 1.0]))
    coords = np.array([0, 1, 2, 3, 0, 3, 1])
    steps = np.array([500.0, -40.0, 2.0**17, -600.0, 0.0, 2.0**-10, -(2.0**16)])
    for step in (30.0, 400.0, 2.0**15, -(2.0**15), -400.0, -30.0):
        assert np.array_equal(
            at.scores(coords, steps), objective.scores(at.candidates(coords, steps))
        )
        at.step(2, step)
    assert np.array_equal(at.w, [0.5, -0.25, 0.0, 1.0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_moves_have_no_scores(layout):
    objective = LinearObjective(np.eye(3), [1, 0, 1], "logistic", Box(-1, 1), layout=layout)
    none = objective.at(np.zeros(4)).scores(np.empty(0, dtype=int), np.empty(0))
    assert none.shape == (0,)
    assert none.dtype == np.int64


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_refused_step_leaves_the_parent_where_it_was(layout, rng):
    objective = LinearObjective(
        rng.uniform(-1, 1, (40, 2)), labels(rng, 40), "logistic", Box(-1, 1), layout=layout
    )
    at = objective.at(np.array([0.5, 0.25, 0.0]))
    before = at.scores([0, 2], [0.5, 1.0])
    for coord, step in ((0, 2.0**40), (1, 0.3), (7, 1.0), (2, np.nan)):
        with pytest.raises(ValueError, match=r"too large|grid|coords|finite"):
            at.step(coord, step)
        assert np.array_equal(at.w, [0.5, 0.25, 0.0])
        assert np.array_equal(at.scores([0, 2], [0.5, 1.0]), before)


# ------------------------------------------------------------------- gradients and second moments


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_residuals_are_within_0_6_units_of_the_truth(grid, layout, rng):
    z = margins_to_try(grid, rng)[::7]
    P = candidates_with_margins(z, grid)
    for label in (1, 0):
        objective = LinearObjective(
            [[2.0**-grid.a]], [label], "logistic", Box(-1, 1, 1, grid=grid), layout=layout
        )
        for v, w in zip(z, P, strict=True):
            for cap in (1.0, 0.3):
                top = math.floor(cap * ONE)
                got = objective.gradient(w, cap).tolist()
                r = got[0] if label else -got[0]
                truth = reference.true_residual(v, label, top, grid, ONE)
                assert abs(r - truth) <= 0.6, (v, label, cap)
                assert r <= top
                assert got == reference.gradient([[1]], [label], [r], grid.a)


@pytest.mark.few(7)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("radius", [1.0, 1e5], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", DOMAINS)
def test_gradient_is_the_sum_of_residuals_times_records(name, radius, layout, rng):
    domain = case(name).domain
    pool, label = case(name).rows(rng, 12), labels(rng, 12)
    w = domain.candidates(1, rng, radius=radius)[0]
    rows, whole = encoded(domain, pool).tolist(), reference.candidates([w], domain)[0]
    residuals = []
    for i, one in enumerate(single_records(pool, label, "logistic", domain, layout=layout)):
        residuals.append(abs(int(one.gradient(w, CAP)[-1])) >> domain.grid.a)
        z = reference.margin(rows[i], whole, domain.grid.a)
        truth = reference.true_residual(z, label[i], math.floor(CAP * ONE), domain.grid, ONE)
        assert abs(residuals[-1] - truth) <= 0.6
    which = rng.integers(0, 12, 300)  # more than a block
    objective = LinearObjective(pool[which], label[which], "logistic", domain, layout=layout)
    expected = reference.gradient([rows[i] for i in which], label[which],
                                  [residuals[i] for i in which], domain.grid.a)  # fmt: skip
    assert objective.gradient(w, CAP).tolist() == expected
    assert objective.gradient_unit == 2.0**-domain.grid.a / ONE


@pytest.mark.few(10)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_second_moments_equal_the_twin(name, grid, layout, rng):
    domain = case(name, grid).domain
    X = case(name, grid).rows(rng, 60)
    objective = LinearObjective(X, labels(rng, 60), "logistic", domain, layout=layout)
    expected = reference.second_moments(encoded(domain, X).tolist(), grid.a)
    assert objective.second_moments().tolist() == expected


# ------------------------------------------------------------------------------------------ ranges


def candidate_sets(domain, rng):
    """Siblings of one parent, random populations near and far, and a mixture."""
    units = np.append(np.ldexp(1.0, -domain.exponents), 1.0)
    parent = domain.candidates(1, rng)[0]
    siblings = domain.snap(np.vstack([parent + np.diag(units) / 4, parent - np.diag(units) / 4]))
    return [siblings, domain.candidates(7, rng), domain.candidates(7, rng, radius=6.0),
            np.vstack([siblings[:3], domain.candidates(3, rng, radius=100.0)])]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize(("loss", "C"), [*((loss, 1.0) for loss in LOSSES), ("hinge", 0.3)])
def test_range_is_never_exceeded_by_integer_scores(name, loss, C, rng):
    """Over corners of the domain and random records, for both neighbour relations."""
    domain = case(name).domain
    X = np.concatenate([extreme_rows(name), case(name).rows(rng, 16)])
    records = [
        record for label in (0, 1)
        for record in single_records(X, [label] * len(X), loss, domain, C=C)
    ]  # fmt: skip
    sets = candidate_sets(domain, rng)
    every, ends = np.vstack(sets), np.cumsum([len(P) for P in sets])
    scores = np.array([record.scores(every) for record in records])
    for P, q in zip(sets, np.split(scores, ends[:-1], axis=1), strict=True):
        for adjacency in ADJACENCIES:
            realised = reference.realised_range(q, adjacency)
            assert realised <= records[0].range(P, adjacency)


@pytest.mark.few(7)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("loss", "C"), [("logistic", 1.0), ("hinge", 1.0), ("hinge", 2.5)])
@pytest.mark.parametrize("name", DOMAINS)
def test_range_is_that_of_the_table_rounded_up(name, loss, C, adjacency, rng):
    """Pairs of unequal size too, where the order of the two in a formula shows."""
    domain = case(name).domain
    objective = LinearObjective(case(name).rows(rng, 2), [0, 1], loss, domain, C)
    slack = 2 if adjacency == "replace" else 1
    for first, second in ((1.0, 1.0), (0.5, 4.0), (4.0, 0.1)):
        P = np.vstack([domain.candidates(1, rng, radius=r) for r in (first, second)])
        exact = reference.linear_range(domain, P, loss, adjacency, C) / objective.unit
        assert 0 <= objective.range(P, adjacency) - slack - exact <= 1.001


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_range_is_within_a_quarter_of_brute_force_on_average(name, loss, rng):
    domain = case(name).domain
    objective = LinearObjective(case(name).rows(rng, 2), [0, 1], loss, domain)
    units = domain.record_units()
    corners = np.array(reference.corners(domain)) * units
    ratios = []
    for _ in range(4):
        for P in candidate_sets(domain, rng)[:3]:
            if name == "l2":  # the worst records lie along the candidates and their differences
                V = np.vstack([P[:, :-1], (P[:, None, :-1] - P[None, :, :-1]).reshape(-1, 3)])
                V = V[np.abs(V).sum(axis=1) > 0]
                corners = domain.high[0] * V / np.linalg.norm(V, axis=1, keepdims=True)
                corners = np.vstack([corners, -corners])
            i, j = rng.integers(0, len(corners), (2, 600))
            share = rng.random((600, 1))
            x = np.vstack([corners, share * corners[i] + (1 - share) * corners[j]])
            if name == "schema":
                x = corners  # a mixture of one-hot rows is no record
            z = x @ P[:, :-1].T + P[:, -1]
            z = np.vstack([z, -z])
            q = -(np.logaddexp(0, -z) if loss == "logistic" else np.maximum(1 - z, 0))
            for adjacency in ADJACENCIES:
                brute = reference.realised_range(q, adjacency)
                ratios.append(objective.range(P, adjacency) * objective.unit / brute)
    assert min(ratios) >= 1
    assert np.mean(ratios) <= 1.25


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DOMAINS)
def test_gradient_range_is_reached_and_never_exceeded(name, layout, rng):
    domain = case(name).domain
    X = np.concatenate([extreme_rows(name), case(name).rows(rng, 10)])
    records = [record for label in (0, 1) for record in
               single_records(X, [label] * len(X), "logistic", domain, layout=layout)]  # fmt: skip
    w = np.zeros(domain.width + 1)  # where a residual is one half
    for cap in (0.5, 0.01):
        g = np.array([record.gradient(w, cap) for record in records])
        q = np.hstack([g, -g])
        for adjacency in ADJACENCIES:
            assert reference.realised_range(q, adjacency) == records[0].gradient_range(
                cap, adjacency
            )
    w = domain.candidates(1, rng, radius=3.0)[0]
    g = np.array([record.gradient(w, 0.9) for record in records])
    for adjacency in ADJACENCIES:
        realised = reference.realised_range(np.hstack([g, -g]), adjacency)
        assert realised <= records[0].gradient_range(0.9, adjacency)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_range_of_identical_candidates_is_zero(loss, adjacency):
    objective = LinearObjective(np.eye(2), [0, 1], loss, Box(-1, 1))
    w = np.array([[0.5, -0.25, 1.0]])
    assert objective.range(w, adjacency) == 0
    assert objective.range(np.repeat(w, 5, axis=0), adjacency) == 0


def test_range_of_zero_one_errors_is_one_or_two():
    objective = LinearObjective(np.eye(2), [0, 1], "zero_one", Box(-1, 1))
    P = np.array([[0.5, -0.25, 1.0], [0.5, -0.25, 0.0]])
    assert objective.range(P, "add_remove") == 1
    assert objective.range(P, "replace") == 2
    assert objective.unit == 1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", DOMAINS)
def test_range_and_prior_do_not_depend_on_records(name, loss, rng):
    domain = case(name).domain
    P = domain.candidates(6, rng)
    one, other = (
        LinearObjective(case(name).rows(rng, n), labels(rng, n), loss, domain) for n in (3, 90)
    )
    for adjacency in ADJACENCIES:
        assert one.range(P, adjacency) == other.range(P, adjacency)
        assert one.gradient_range(0.5, adjacency) == other.gradient_range(0.5, adjacency)
    assert np.array_equal(one.prior(P), other.prior(P))


def test_range_of_siblings_in_the_box_is_four_steps():
    """One coordinate to and fro by lambda: 4 lambda rep, 2 lambda ar (THEORY, PrivLocal)."""
    objective = LinearObjective(np.zeros((1, 4)), [1], "hinge", Box(-1, 1))
    P = np.vstack([np.eye(5), -np.eye(5)]) / 16
    assert objective.range(P, "replace") - 4 * 4096 / 16 in (2, 3)  # rounded up
    assert objective.range(P, "add_remove") - 2 * 4096 / 16 in (1, 2)


# ------------------------------------------------------------------------------------------- rest


@pytest.mark.parametrize("l2", [0.0, 0.125, 3.3])
def test_prior_is_the_regulariser_without_the_intercept(l2, rng):
    domain = Box(-1, 1, 3)
    P = domain.candidates(20, rng, radius=9.0)
    prior = LinearObjective(np.zeros((1, 3)), [1], "logistic", domain, l2=l2).prior(P)
    for w, h in zip(P, prior.tolist(), strict=True):
        exact = -Fraction(l2) / 2 * sum(Fraction(v) ** 2 for v in w[:-1]) * 4096
        assert abs(h - exact) <= Fraction(501, 1000)


def test_prior_of_the_hinge_is_that_of_a_support_vector_machine():
    domain = Box(-1, 1, 2)
    P = np.array([[3.0, 4.0, 9.0]])
    assert LinearObjective(np.eye(2), [0, 1], "hinge", domain).prior(P) * 2.0**-12 == -12.5
    assert LinearObjective(np.eye(2), [0, 1], "logistic", domain).prior(P) == 0


def test_a_prior_too_large_for_an_integer_is_refused():
    """Margins are exact at these weights, so scores exist; their squares do not fit in 64 bits."""
    objective = LinearObjective(np.eye(2), [0, 1], "hinge", Box(-1, 1), l2=2.0**20)
    w = np.array([[2.0**18, 0.0, 0.0]])
    assert objective.scores(w)[0] < 0
    with pytest.raises(ValueError, match="prior is too large"):
        objective.prior(w)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("power", [12, 23, 30, 42, 55, 70])
def test_weights_that_cancel_are_exact_or_refused(power, layout, rng):
    """A group's level and the intercept may cancel: the norm is small, its terms are not."""
    domain = Schema({"c": Categorical("ab"), "x": Numeric(0, 1), "e": Categorical("uv")})
    X = {"c": list("abba"), "x": [0.5, 0.25, 1.0, 0.0], "e": list("uuvv")}
    y = [1, 0, 1, 0]
    big = 2.0**power
    small = 2.0 ** max(-10, power - 50)
    P = np.array([[-big + small, -big + 3 * small, 0.5, small, -small, big]])
    assert np.array_equal(domain.snap(P), P)
    whole = reference.candidates(P, domain)[0]
    rows = reference.records(zip(*X.values(), strict=True), domain)
    z = [reference.margin(x, whole, 12) for x in rows]
    with contextlib.suppress(ValueError):
        for loss in ("hinge", "zero_one"):
            objective = LinearObjective(X, y, loss, domain, layout=layout)
            truth = [reference.true_loss(v, t, loss, Grid()) for v, t in zip(z, y, strict=True)]
            assert abs(-objective.scores(P)[0] - sum(truth)) <= 0.6 * 4
        objective = LinearObjective(X, y, "logistic", domain, layout=layout)
        truth = [reference.true_loss(v, t, "logistic", Grid()) for v, t in zip(z, y, strict=True)]
        assert abs(-objective.scores(P)[0] - sum(truth)) <= 0.6 * 4
        residuals = [reference.true_residual(v, t, ONE // 2, Grid(), ONE)
                     for v, t in zip(z, y, strict=True)]  # fmt: skip
        total = sum(r if t else -r for r, t in zip(residuals, y, strict=True))
        assert abs(int(objective.gradient(P[0], 0.5)[-1]) / 4096 - total) <= 0.6 * 4


def test_margins_too_large_to_be_exact_are_refused():
    objective = LinearObjective(np.eye(2), [0, 1], "zero_one", Box(-1, 1))
    assert np.array_equal(objective.scores([[2.0**18, 0.0, -(2.0**17)]]), [-2])
    for far in ([2.0**30, 0.0, 0.0], [2.0**29, 2.0**29, 2.0**29], [0.0, 0.0, -(2.0**60)]):
        for ask in (objective.scores, lambda P: objective.range(P, "replace"), objective.prior):
            with pytest.raises(ValueError, match="too large for exact margins"):
                ask([far])


@pytest.mark.parametrize("C", [2.0**-20, 0.1, 1.0, 3.0, 1024.0, 1e4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hinge_weight_scales_the_true_loss(C, layout, rng):
    domain = Box(-1, 1, 3)
    X, y = rng.uniform(-1, 1, (30, 3)), labels(rng, 30)
    P = domain.candidates(5, rng, radius=3.0)
    objective = LinearObjective(X, y, "hinge", domain, C, layout=layout)
    rows, whole = encoded(domain, X).tolist(), reference.candidates(P, domain)
    for w, score in zip(whole, objective.scores(P), strict=True):
        truth = sum(
            reference.true_loss(reference.margin(x, w, 12), t, "hinge", Grid(), C)
            for x, t in zip(rows, y, strict=True)
        )
        assert abs(-int(score) - truth) <= 0.6 * 30
    assert objective.range(P, "replace") > objective.range(P, "add_remove") > 0


def test_scoring_many_candidates_does_not_allocate_records_times_candidates(rng):
    """A call uses less than 64 MB beyond the packed records."""
    domain = Box(-1, 1, 4)
    X, y = rng.uniform(-1, 1, (20_000, 4)), labels(rng, 20_000)
    P = domain.candidates(2000, rng)  # an int32 a pair would be 160 MB
    for layout in LAYOUTS:
        objective = LinearObjective(X, y, "zero_one", domain, layout=layout)
        tracemalloc.start()
        objective.scores(P)
        objective.at(P[0]).scores(rng.integers(0, 5, 2000), np.full(2000, 0.5))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64e6


def test_more_than_a_million_records_are_accepted(rng):
    """The bound that keeps sums below 2^63 is a matter of candidates, not of a million records."""
    n = 1_100_000
    objective = LinearObjective(np.ones((n, 1)), np.ones(n), "hinge", Box(-1, 1))
    assert np.array_equal(objective.scores([[0.0, 0.0], [1.0, 1.0]]), [-n * 4096, 0])


def test_columns_in_the_units_of_a_ball(rng):
    """A radius that is no power of two, and one far from 1."""
    for radius in (0.3, 1e-4, 12345.0):
        domain = L1Ball(radius, 3)
        X, y = rng.normal(size=(30, 3)) * radius, labels(rng, 30)
        P = domain.candidates(4, rng, radius=2.0)
        rows, whole = encoded(domain, X).tolist(), reference.candidates(P, domain)
        for layout in LAYOUTS:
            scores = LinearObjective(X, y, "zero_one", domain, layout=layout).scores(P)
            for w, score in zip(whole, scores.tolist(), strict=True):
                z = [reference.margin(x, w, 12) for x in rows]
                assert -score == sum(map(reference.zero_one_integer, z, y))


# ------------------------------------------------------------------------- two candidates to a lane


def test_paired_candidates_score_as_single_ones_up_to_the_last_bit_that_fits(rng):
    columns = {f"c{j}": Categorical(range(5)) for j in range(6)}
    schema = Schema(columns | {"x": Numeric(0, 1)})
    records = {name: rng.integers(0, 5, 500) for name in columns}
    records["x"] = rng.choice([0.0, 0.3, 1.0], 500)
    label = rng.integers(0, 2, 500)
    P = schema.candidates(70, rng, radius=4.0)
    # Weights far beyond 16 bits that cancel: a constant on a group against the intercept.
    P[1::2, :5] += 4096.0
    P[1::2, -1] -= 4096.0
    P[0, :-1], P[0, -1] = 0.0, 32 - 2**-10  # the largest sum, and the least
    P[1] = -P[0]
    for loss in ("logistic", "hinge", "zero_one"):
        sparse = LinearObjective(records, label, loss, schema, layout="sparse")
        dense = LinearObjective(records, label, loss, schema, layout="dense")
        kept = P[schema.norm(P) < 32]
        assert len(kept) > 40
        assert packed(sparse)._short(kept / schema.weight_units()).all()
        assert np.array_equal(sparse.scores(kept), dense.scores(kept))
        beyond = np.vstack([kept, kept[:1] + np.eye(kept.shape[1])[-1] * 2**-10])
        assert not packed(sparse)._short(beyond / schema.weight_units())[-1]
        assert np.array_equal(sparse.scores(beyond), dense.scores(beyond))


def test_candidates_are_not_paired_where_zero_is_outside_the_domain(rng):
    box = Box([0.9] * 16, [1.0] * 16)
    X, label = np.tile([1.0, 0.9], (300, 8)), rng.integers(0, 2, 300)
    sparse = LinearObjective(X, label, "hinge", box, layout="sparse")
    # Over the box the margin is small, over its ones alone it need not be.
    P = np.tile(np.append(np.tile([31.0, -31.0], 8), 0.0), (32, 1))
    P[:, 1] += np.arange(32) / 1024
    assert (box.norm(P) < 32).all()
    assert not packed(sparse)._short(P / box.weight_units()).any()
    dense = LinearObjective(X, label, "hinge", box, layout="dense")
    assert np.array_equal(sparse.scores(P), dense.scores(P))


@pytest.mark.few(5)
@pytest.mark.parametrize("m", [1, 32, 33, 64, 65, 130])
@pytest.mark.parametrize(("loss", "C"), [("zero_one", 1.0), ("hinge", 1.0), ("hinge", 8.0),
                                         ("hinge", 2.0**-7), ("hinge", 0.3)])  # fmt: skip
@pytest.mark.parametrize("grid", [Grid(), Grid(a=10, b=14, c=10), Grid(a=9, b=15, c=9)], ids=str)
def test_losses_in_16_bits_equal_the_twin(m, loss, C, grid, rng):
    """Groups of candidates in pairs and alone; sums up to the last bit, also of both signs."""
    d, widest = 18, 32767
    one = 1 << grid.a
    x = rng.integers(0, 2, (40, d)) * one
    x[:6] = [[one] * d, [0] * d, [one, 0] * 9, [0, one] * 9, [one] * 9 + [0] * 9, [0] * d]
    X, y = x / one, rng.integers(0, 2, 40)
    whole = rng.integers(-widest // d, widest // d, (m, d + 1))
    whole[0], whole[m // 2] = [0] * d + [widest], [0, -1] * 9 + [9 - widest]
    whole[-1] = [(2 << grid.b) - 1, 2 - (2 << grid.b)] * (d // 2) + [1 << grid.b]
    whole[-1, : d // 2] //= d  # around 1, where a hinge ends
    objective = LinearObjective(sp.csr_array(X), y, loss, Box(0, 1, d, grid=grid), C)
    P = whole * 2.0**-grid.b
    for w, score in zip(whole.tolist(), objective.scores(P).tolist(), strict=True):
        z = [reference.margin(record, w, grid.a) for record in x.tolist()]
        if loss == "hinge":
            exact = sum(reference.hinge_integer(v, t, grid, C) for v, t in zip(z, y, strict=True))
            assert abs(-score - exact) <= (0 if math.frexp(C)[0] == 0.5 else len(y))
        else:
            assert -score == sum(map(reference.zero_one_integer, z, y))


def test_short_candidates_are_scored_apart_if_that_adds_no_group(rng):
    X, y = sp.csr_array(rng.integers(0, 2, (300, 20))), rng.integers(0, 2, 300)
    box = Box(0, 1, 20)
    P = box.candidates(70, rng)
    for many in (1, 6, 7, 38, 69, 70):  # 64 short ones and 6, 63 and 7, ...
        P[:many, 0] = 31.0  # beyond 16 bits with the other columns
        for loss in ("logistic", "hinge", "zero_one"):
            sparse, dense = (
                LinearObjective(X, y, loss, box, layout=kind) for kind in LAYOUTS[::-1]
            )
            assert packed(sparse)._short(P / box.weight_units()).sum() <= 70 - many
            assert np.array_equal(sparse.scores(P), dense.scores(P))
