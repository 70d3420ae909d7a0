"""Views around one linear model: ranges bound what any record can do, and the coding is exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DOMAINS, LOSSES, case, encoded, extreme_rows, labels

from privfit import (
    Box,
    Categorical,
    CentersObjective,
    FacilityObjective,
    L1Ball,
    L2Ball,
    LinearObjective,
    Numeric,
    Reals,
    RecordObjective,
    Schema,
)
from privfit._kernels.records import RESIDUAL_UNIT
from privfit.domains import Grid

ONE = round(1 / RESIDUAL_UNIT)
SLOPES = ("logistic", "hinge")
FEW = Grid(a=2, b=10, c=4)  # so few bits that all records can be tried

# Far from zero on either side, narrow, wide, off the grid, constant, and constantly zero.
BOXES = {
    "far": Box([1000, -1001], [1001, -1000]),
    "narrow": Box([0, 1 - 2**-10], [1e-9, 1]),
    "off the grid": Box([-0.3, 0.1, -7.7], [0.7, 0.9, 1.1]),
    "wide": Box([-(2.0**40), 0], [1, 3.0**20]),
    "constant": Box([-1, 3, 0], [1, 3, 0]),
}
CODED = {**BOXES, **{name: case(name).domain for name in DOMAINS}}

TINY = {
    "box": Box(-1, 1, 2, grid=Grid(a=1, b=11, c=4)),
    "box off zero": Box([2, -1], [5, -0.5], grid=FEW),
    "constant": Box([-1, 3], [1, 3], grid=FEW),
    "l1": L1Ball(1.0, 2, grid=FEW),
    "l2": L2Ball(1.5, 2, grid=FEW),
    "schema": Schema({"a": Categorical([0, 1], other=True), "b": Numeric(0, 1)}, grid=FEW),
}


def rows_of(domain, rng, n):
    """Records of a coded domain, some of them at or beyond its ends."""
    for name in DOMAINS:
        if domain is CODED[name]:
            return np.concatenate([case(name).rows(rng, n), extreme_rows(name)[:n]])
    low, high = np.asarray(domain.lower), np.asarray(domain.upper)
    share = rng.choice([0.0, 1.0, 0.5, -0.1, 1.1], (n, len(low)))
    return low + share * (high - low)


def decoded(domain, records):
    """Raw rows whose rounding gives these records."""
    if isinstance(domain, Schema):
        one = 1 << domain.grid.a
        return np.array([[x[:3].index(one), x[3] / one] for x in records], dtype=object)
    return np.array(records) * domain.record_units()


@pytest.fixture(params=list(CODED), ids=str)
def coded(request):
    return CODED[request.param]


@pytest.fixture(params=list(TINY), ids=str)
def tiny(request):
    """A small domain and all records of it, in whole units and raw."""
    domain = TINY[request.param]
    records = reference.every_record(domain)
    X = decoded(domain, records)
    assert encoded(domain, X).tolist() == records
    return domain, records, X


# ------------------------------------------------------------------------------- the centred coding


@pytest.mark.few(7)
def test_centred_records_lie_between_minus_and_plus_a_half(coded, rng):
    for x in reference.records(rows_of(coded, rng, 20), coded):
        centred = reference.centred_record(x, coded)
        assert all(abs(v) <= Fraction(1, 2) for v in centred)
        assert centred[-1] == Fraction(1, 2)


def test_a_column_uses_more_than_half_of_the_centred_range():
    for domain in TINY.values():
        corners = [reference.centred_record(x, domain) for x in reference.every_record(domain)]
        for j, (low, high) in enumerate(reference.whole_bounds(domain)):
            column = [corner[j] for corner in corners]
            spread = max(column) - min(column)
            assert spread == 0 if low == high else Fraction(1, 2) < spread <= 1


def test_centred_weights_have_the_margins_of_their_linear_model(coded, rng):
    """The twins of records and of weights agree, without any rounding."""
    units = reference.record_units(coded)
    for x in reference.records(rows_of(coded, rng, 5), coded):
        u = rng.uniform(-10, 10, coded.width + 1)
        w = reference.centred_weights(u, coded)
        centred = zip(reference.centred_record(x, coded), u, strict=True)
        margin = sum(v * Fraction(float(part)) for v, part in centred)
        plain = sum(v * unit * part for v, unit, part in zip(x, units, w[:-1], strict=True))
        assert margin == plain + w[-1]


@pytest.mark.few(7)
def test_linear_models_of_centred_weights_are_the_nearest_on_the_grid(coded, rng):
    objective = LinearObjective(rows_of(coded, rng, 2)[:2], [0, 1], domain=coded)
    U = np.vstack([rng.uniform(-10, 10, (20, coded.width + 1)), np.zeros(coded.width + 1)])
    W = objective.centred.weights(U)
    units = reference.weight_units(coded)
    for u, w in zip(U, W, strict=True):
        for got, exact, unit in zip(w, reference.centred_weights(u, coded), units, strict=True):
            assert (Fraction(float(got)) / unit).denominator == 1
            assert abs(Fraction(float(got)) - exact) <= unit * Fraction(501, 1000)
        assert np.array_equal(objective.centred.weights(u), w)
    objective.scores(W)  # they are candidates


@pytest.mark.few(7)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("loss", SLOPES)
def test_centred_gradient_equals_the_twin(coded, loss, layout, rng):
    X = rows_of(coded, rng, 5)
    y = labels(rng, len(X))
    for radius in (1.0, 1e4):
        w = coded.candidates(1, rng, radius=radius)[0]
        rows = encoded(coded, X).tolist()
        each = [LinearObjective(X[i : i + 1], y[i : i + 1], loss, coded, layout=layout)
                for i in range(len(X))]  # fmt: skip
        residuals = [abs(int(one.gradient(w, 0.75)[-1])) >> coded.grid.a for one in each]
        objective = LinearObjective(X, y, loss, coded, layout=layout)
        found = objective.centred.gradient(objective.gradient(w, 0.75))
        twin = reference.centred_gradient(rows, y, residuals, coded)
        assert found.dtype == np.int64
        assert found.tolist() == [v * 2 ** (coded.grid.a + 2) for v in twin]


@pytest.mark.few(3)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("radius", [1.0, 1e4], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", DOMAINS)
def test_hinge_residuals_are_within_0_6_units_of_the_clipped_slope(name, radius, layout, rng):
    domain = case(name).domain
    X, y = case(name).rows(rng, 6), labels(rng, 6)
    seen = set()
    for w in domain.candidates(5, rng, radius=radius):
        whole = reference.candidates([w], domain)[0]
        for i, x in enumerate(encoded(domain, X).tolist()):
            one = LinearObjective(X[i : i + 1], y[i : i + 1], "hinge", domain, layout=layout)
            z = reference.margin(x, whole, domain.grid.a)
            for cap in (1.0, 0.3):
                top = math.floor(cap * ONE)
                found = int(one.gradient(w, cap)[-1]) >> domain.grid.a
                found = found if y[i] else -found
                truth = reference.hinge_residual(z, y[i], top, domain.grid, ONE)
                assert abs(found - truth) <= Fraction(6, 10)
                assert 0 <= found <= top
                seen.add("flat" if truth == 0 else "capped" if truth == top else "between")
    assert seen >= {"flat", "capped"}
    assert "between" in seen or radius > 1


# ------------------------------------------------------------------ the range of moves by the slope


@pytest.mark.few(4)
@pytest.mark.parametrize("cap", [1.0, 0.5, 0.01])
@pytest.mark.parametrize("loss", SLOPES)
def test_range_of_slopes_bounds_all_records_and_is_reached(tiny, loss, cap, rng):
    domain, _, X = tiny
    space = Reals(-3, 3, domain.width + 1)
    each = [LinearObjective(X[i : i + 1], [label], loss, domain)
            for i in range(len(X)) for label in (0, 1)]  # fmt: skip
    for position in (space.middle, *space.sample(2, rng)):
        moves = space.all_moves(position, 0.1)
        q = np.array([one.slopes(position, cap).scores(*moves) for one in each])
        for adjacency in ADJACENCIES:
            reach = each[0].slopes(position, cap).range(*moves, adjacency)
            realised = reference.realised_range(q, adjacency)
            assert realised <= reach
            if position is space.middle:  # residuals of 1/2, or 1 for the hinge
                steepest = 0.5 if loss == "logistic" else 1.0
                top = math.floor(min(cap, steepest) * ONE), math.floor(cap * ONE)
                assert realised * top[1] == reach * top[0]


@pytest.mark.parametrize("loss", SLOPES)
def test_slopes_score_a_move_by_its_sign_and_a_stay_by_zero(loss, rng):
    X, y = rng.uniform(-1, 1, (50, 2)), labels(rng, 50)
    objective = LinearObjective(X, y, loss, Box(-1, 1, 2))
    view = objective.slopes([0.5, -0.25, 1.0], 0.5)
    gradient = objective.centred.gradient(objective.gradient(view.model, 0.5))
    found = view.scores(np.array([0, 0, 1, 2, 2, 1]), np.array([0.1, -7.0, 1e-9, -0.5, 0.0, -0.0]))
    g = gradient.tolist()
    assert found.tolist() == [g[0], -g[0], g[1], -g[2], 0, 0]
    assert view.prior(np.array([0, 1]), np.array([0.1, 0.1])).tolist() == [0, 0]
    view.step(1, 0.75)
    assert view.w.tolist() == [0.5, 0.5, 1.0]


def test_slopes_do_not_keep_the_array_they_were_given():
    objective = LinearObjective([[1.0]], [1], "logistic", Box(-1, 1, 1))
    start = np.zeros(2)
    view = objective.slopes(start, 0.5)
    view.step(0, 0.5)
    assert start.tolist() == [0, 0]


# ------------------------------------------------------------------- the range of moves by the loss


@pytest.mark.few(2)
@pytest.mark.parametrize(("loss", "C"), [*((loss, 1.0) for loss in LOSSES), ("hinge", 0.3)])
def test_range_of_moves_bounds_that_of_their_candidates_and_all_records(tiny, loss, C, rng):
    domain, _, X = tiny
    each = [LinearObjective(X[i : i + 1], [label], loss, domain, C=C)
            for i in range(len(X)) for label in (0, 1)]  # fmt: skip
    space = Reals(-3, 3, domain.width + 1).on_grid_of(each[0])
    largest = 0
    for w in (space.middle, *space.sample(2, rng)):
        for moves in (space.all_moves(w, 0.2), space.some_moves(w, 7, 0.05, rng)):
            P = space.moved(w, *moves)
            q = np.array([one.scores(P) for one in each])
            for adjacency in ADJACENCIES:
                reach = each[0].at(w).range(*moves, adjacency)
                realised = reference.realised_range(q, adjacency)
                assert realised <= reach
                assert each[0].range(P, adjacency) <= reach
                largest = max(largest, realised)
    assert largest > 0


@pytest.mark.few(14)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("loss", "C"), [*((loss, 1.0) for loss in LOSSES), ("hinge", 2.5)])
@pytest.mark.parametrize("name", DOMAINS)
def test_range_of_moves_is_at_least_that_of_their_candidates(name, loss, C, adjacency, rng):
    domain = case(name).domain
    objective = LinearObjective(case(name).rows(rng, 2), [0, 1], loss, domain, C=C)
    scale = np.append(np.ldexp(1.0, -domain.exponents), 1.0)
    for radius in (0.0, 0.3, 5.0, 60.0):
        w = domain.candidates(1, rng, radius=radius)[0]
        space = Reals(-100 * scale, 100 * scale, domain.width + 1).on_grid_of(objective)
        for step in (1e-3, 0.01, 0.3):
            moves = space.all_moves(w, step)
            reach = objective.at(w).range(*moves, adjacency)
            assert objective.range(space.moved(w, *moves), adjacency) <= reach


def test_range_of_moves_in_the_unit_box_is_that_of_the_paper():
    """4 steps under replace, 2 steps under add_remove, for the loss as for the hinge."""
    for loss in SLOPES:
        objective = LinearObjective([[1.0, 1.0]], [1], loss, Box(-1, 1, 2))
        coords, steps = np.repeat(np.arange(3), 2), np.tile([0.25, -0.25], 3)
        at = objective.at(np.zeros(3))
        assert at.range(coords, steps, "replace") * objective.unit <= 1.0 + 3 * objective.unit
        assert at.range(coords, steps, "add_remove") * objective.unit <= 0.5 + 2 * objective.unit


def test_range_of_moves_that_all_stay_is_zero(rng):
    objective = LinearObjective([[1.0]], [1], "logistic", Box(-1, 1, 1))
    assert objective.at([0.5, 0.5]).range([0, 1], [0.0, 0.0], "replace") == 0


@pytest.mark.parametrize("l2", [0.0, 1.0, 0.3, 1e-3])
@pytest.mark.parametrize("name", DOMAINS)
def test_prior_of_moves_is_that_of_their_candidates(name, l2, rng):
    domain = case(name).domain
    objective = LinearObjective(case(name).rows(rng, 2), [0, 1], "hinge", domain, l2=l2)
    scale = np.append(np.ldexp(1.0, -domain.exponents), 1.0)
    for radius in (0.0, 0.3, 5.0):
        w = domain.candidates(1, rng, radius=radius)[0]
        space = Reals(-10 * scale, 10 * scale, domain.width + 1).on_grid_of(objective)
        for moves in (space.all_moves(w, 0.03), space.some_moves(w, 50, 0.2, rng)):
            found = objective.at(w).prior(*moves)
            assert found.dtype == np.int64
            assert np.array_equal(found, objective.prior(space.moved(w, *moves)))


# ------------------------------------------------------------------------------------------- spread


def objectives(rng):
    """Every objective with populations of candidates for it: near, far, few and all the same."""
    for name in DOMAINS:
        domain = case(name).domain
        for loss, C in [*((loss, 1.0) for loss in LOSSES), ("hinge", 0.3)]:
            objective = LinearObjective(case(name).rows(rng, 3), [0, 1, 1], loss, domain, C=C)
            sets = [domain.candidates(7, rng, radius=r) for r in (0.01, 1.0, 50.0)]
            yield objective, [*sets, sets[0][:1]]
    for domain in (Box(-1, 1, 2), Box([0, 5], [1, 7]), L1Ball(1, 2), L2Ball(1, 2)):
        X = domain.points(6, rng)
        for power in (1, 2):
            centers = CentersObjective(X, 2, domain, power=power)
            P = centers.snap(rng.uniform(domain.low, domain.high, (7, 2, 2)))
            yield centers, [P, P[:1], centers.snap(P * 1.01)[:3]]
    for clip, bits in (((0, 4), 16), ((0.5, 1.0), 8), ((0, 100), 8)):
        places = FacilityObjective(rng.uniform(-1, 1, (6, 2)), rng.uniform(-1, 1, (9, 2)), clip,
                                   Box(-1, 1, 2), bits=bits)  # fmt: skip
        P = np.stack([rng.permutation(9)[:3] for _ in range(7)])
        yield places, [P, P[:1], P[:2]]
    own = RecordObjective(np.ones((3, 1)), lambda x, P: x @ np.asarray(P)[None], 0, 1)
    yield own, [rng.random(7), np.ones(1)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_spread_is_at_least_the_range(adjacency, rng):
    kinds = set()
    for objective, populations in objectives(rng):
        for P in populations:
            assert objective.spread(P, adjacency) >= objective.range(P, adjacency)
            kinds.add(type(objective))
    assert len(kinds) == 4


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_spread_bounds_all_records(tiny, adjacency, rng):
    domain, _, X = tiny
    for loss, C in (("logistic", 1.0), ("hinge", 0.3), ("zero_one", 1.0)):
        each = [LinearObjective(X[i : i + 1], [label], loss, domain, C=C)
                for i in range(len(X)) for label in (0, 1)]  # fmt: skip
        P = domain.candidates(6, rng, radius=2.0)
        q = np.array([one.scores(P) for one in each])
        assert 0 < reference.realised_range(q, adjacency) <= each[0].spread(P, adjacency)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_slopes_follow_a_walk_of_steps_leaps_and_wide_margins(loss, layout, rng):
    columns = {f"c{j}": Categorical(range(4)) for j in range(5)}
    schema = Schema(columns | {"x": Numeric(0, 1)})
    records = {name: rng.integers(0, 4, 700) for name in columns}
    records["x"] = rng.choice([0.0, 0.3, 1.0], 700)
    objective = LinearObjective(records, rng.integers(0, 2, 700), loss, schema, layout=layout)
    d = schema.width
    view = objective.slopes(np.zeros(d + 1), 0.5)
    coords, signs = np.tile(np.arange(d + 1), 2), np.repeat([1.0, -1.0], d + 1)
    for turn in range(60):
        expected = objective.centred.gradient(objective.gradient(view.model, 0.5))
        assert np.array_equal(view.scores(coords, signs), np.append(expected, -expected))
        if turn % 10 == 7:
            view.w = rng.uniform(-3, 3, d + 1)  # a leap
        elif turn % 10 == 4:
            view.step(2, 2e4)  # beyond 32 bits
        elif turn % 10 == 5:
            view.step(2, -2e4)
        else:
            view.step(int(rng.integers(d + 1)), float(rng.choice([0.6, -0.6])))
