"""Domains: every record ends inside, on the grid, by itself; norms are those of brute force."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from makers.cases import DOMAINS, GRIDS, case, encoded

from privfit import Box, Categorical, L1Ball, L2Ball, Numeric, Schema
from privfit.domains import Grid

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NEARBY = st.floats(-3, 3)
BALLS = (L1Ball, L2Ball)

# Values at which rounding, clipping or scaling could go wrong.
EXTREMES = [0.0, -0.0, 5e-324, -2.2e-308, 1e-300, 2.0**-12, -(2.0**-12), 1 - 2.0**-53, 1.0, -1.0,
            1 + 2.0**-52, 3.0, 1e300, -1e300, 1.7e308]  # fmt: skip


def tables(numbers=NUMBERS, columns: int = 4):
    return hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(columns)), elements=numbers)


# ---------------------------------------------------------------------------------- quantisation


@pytest.mark.few(11)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_records_are_those_of_the_exact_twin(name, grid, rng):
    domain = case(name, grid).domain
    X = case(name, grid).rows(rng, 60)
    got = domain.encode(X).toarray() if name == "schema" else domain.quantise(X)
    assert got.dtype == np.int16
    assert np.array_equal(got, encoded(domain, X))


@given(X=st.one_of(tables(), tables(NEARBY)), grid=st.sampled_from(GRIDS))
def test_a_box_rounds_towards_zero_and_clips(X, grid):
    domain = Box([-1, 0, -1000, 0.1], [1, 3, -10, 1e9], grid=grid)
    assert np.array_equal(domain.quantise(X), encoded(domain, X))


@pytest.mark.few(1)
@pytest.mark.parametrize("ball", BALLS)
@given(X=st.one_of(tables(), tables(NEARBY)), grid=st.sampled_from(GRIDS))
def test_a_ball_holds_every_record_in_exact_arithmetic(ball, X, grid):
    domain = ball(1.3, 4, grid=grid)
    q = domain.quantise(X)
    assert np.array_equal(q, encoded(domain, X))
    power = 1 if ball is L1Ball else 2
    unit = reference.record_units(domain)[0]
    bound = Fraction(domain.radius) ** power
    for row in q.tolist():
        assert sum(abs(v * unit) ** power for v in row) <= bound


@pytest.mark.parametrize("radius", [1.0, 0.7, 1e-3, 5.0, 1e6])
@pytest.mark.parametrize("ball", BALLS)
def test_boundary_points_stay_inside(ball, radius, rng):
    """Rounding to nearest would leave the ball for half of these."""
    power = 1 if ball is L1Ball else 2
    domain = ball(radius, 6)
    X = rng.normal(size=(500, 6))
    X *= radius / (np.abs(X) ** power).sum(axis=1, keepdims=True) ** (1 / power)
    X = np.vstack([X, radius * np.eye(6), -radius * np.eye(6), np.full((1, 6), radius / 6)])
    whole = domain.quantise(X).astype(object)
    limit = Fraction(radius) / reference.record_units(domain)[0]
    assert max((np.abs(whole) ** power).sum(axis=1)) <= limit**power
    assert abs(whole[500, 0]) == math.floor(limit)  # a vertex is not shortened by more than a unit


@pytest.mark.parametrize("ball", BALLS)
def test_scaling_keeps_the_direction(ball, rng):
    """A scaled record is the radial projection, within a unit a column."""
    domain = ball(1.0, 5)
    X = rng.normal(size=(300, 5)) * 10.0 ** rng.integers(2, 300, (300, 1))
    power = 1 if ball is L1Ball else 2
    big = np.abs(X).max(axis=1, keepdims=True)
    shape = X / big
    ideal = shape / (np.abs(shape) ** power).sum(axis=1, keepdims=True) ** (1 / power) * 2**12
    assert np.abs(domain.quantise(X) - ideal).max() <= 1.02


@pytest.mark.parametrize("name", ["box", "l1", "l2"])
def test_extreme_values_are_clipped_like_any_other(name):
    domain = case(name).domain
    d = domain.width
    X = np.array([np.roll(EXTREMES, s)[:d] for s in range(len(EXTREMES))])
    assert np.array_equal(domain.quantise(X), encoded(domain, X))


@pytest.mark.parametrize("name", DOMAINS)
def test_a_record_is_quantised_by_itself(name, rng):
    domain = case(name).domain
    X = case(name).rows(rng, 40)

    def quantise(rows):
        return domain.encode(rows).toarray() if name == "schema" else domain.quantise(rows)

    together = quantise(X)
    order = rng.permutation(40)
    assert np.array_equal(quantise(X[order]), together[order])
    for i in range(40):
        assert np.array_equal(quantise(X[i : i + 1])[0], together[i])


@pytest.mark.parametrize("name", ["box", "l1", "l2"])
def test_sparse_and_dense_blocks_are_quantised_alike(name, rng):
    domain = case(name).domain
    X = case(name).rows(rng, 50)
    X[rng.random(X.shape) < 0.5] = 0
    X[7] = 0
    assert np.array_equal(domain.quantise(sp.csr_array(X)).toarray(), domain.quantise(X))


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("name", ["box", "l1", "l2"])
def test_quantising_twice_changes_nothing(name, uniform, rng):
    domain = case(name).domain
    once = domain.quantise(case(name).rows(rng, 100), uniform)
    again = domain.quantise(once * domain.record_units(uniform), uniform)
    assert np.array_equal(once, again)


@pytest.mark.parametrize("name", ["box", "l1", "l2"])
def test_no_column_grows_or_changes_its_sign(name, rng):
    domain = case(name).domain
    X = case(name).rows(rng, 200)
    kept = domain.quantise(X) * domain.record_units()
    assert (np.abs(kept) <= np.abs(X)).all()
    assert (kept * X >= 0).all()


@pytest.mark.parametrize("name", DOMAINS)
def test_records_keep_the_bounds_that_a_domain_states(name, rng):
    domain = case(name).domain
    kept = encoded(domain, case(name).rows(rng, 200)) * domain.record_units()
    assert (kept >= domain.low).all()
    assert (kept <= domain.high).all()
    for low, high, (least, most) in zip(
        domain.low, domain.high, reference.declared_bounds(domain), strict=True
    ):
        assert least <= Fraction(float(low))
        assert Fraction(float(high)) <= most


def test_sparse_records_need_zero_inside_a_box():
    X = sp.csr_array(np.array([[0.0, 2.0]]))
    assert np.array_equal(Box([0, 1], [1, 3]).quantise(X.toarray()), [[0, 2048]])
    with pytest.raises(ValueError, match="must have 0 inside the bounds of every column"):
        Box([0, 1], [1, 3]).quantise(X)


@pytest.mark.parametrize(
    "domain",
    [Box([-1, 0], [1, 40]), Box(-1e-3, 1e-3, 2), L1Ball(1e-3, 2), L2Ball(0.2, 2), L2Ball(9, 2)],
    ids=["wide", "small box", "small l1", "small l2", "large l2"],
)
def test_distances_use_one_unit_for_all_columns(domain, rng):
    """`uniform` means the unit of the widest column, in the records and in what they are worth."""
    units = domain.record_units(uniform=True)
    assert [Fraction(u) for u in units] == reference.record_units(domain, uniform=True)
    X = rng.uniform(domain.low, domain.high, (50, 2)) / 2  # inside, in the balls too
    kept = domain.quantise(X, uniform=True) * units
    assert np.abs(kept - X).max() <= 1.05 * units.max()


def test_a_box_does_not_follow_its_bounds_when_they_change():
    """Bounds are part of a guarantee: records were clipped to the ones that were declared."""
    lower, upper = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    domain = Box(lower, upper)
    lower[0], upper[1] = -50, 50
    assert np.array_equal(domain.low, [-1, -1])
    assert np.array_equal(domain.high, [1, 1])


@pytest.mark.parametrize("bounds", [(-5e-324, 5e-324), (0.0, 1e-310), (-1.7e308, 1.7e308)])
def test_bounds_at_the_ends_of_float64_work_or_are_refused(bounds):
    with contextlib.suppress(ValueError):  # a refusal is as good; a NaN or a warning is not
        domain = Box(*bounds, 2)
        values = [domain.low, domain.high, domain.norm(domain.weight_units()[None])]
        assert np.isfinite(np.concatenate(values)).all()


# ------------------------------------------------------------------------------------------ norms


@pytest.mark.few(7)
@pytest.mark.parametrize("grid", [Grid(), Grid(a=1, b=7, c=0)], ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_norm_is_that_of_brute_force_over_corners(name, grid, rng):
    domain = case(name, grid).domain
    P = np.vstack([domain.candidates(12, rng, radius=3.0), np.zeros((1, domain.width + 1))])
    norms = domain.norm(P)
    for w, norm in zip(P, norms, strict=True):
        truth = reference.support_norm(domain, w)
        assert norm >= truth
        assert norm <= truth * (1 + 1e-12)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", DOMAINS)
def test_no_record_exceeds_the_norm(name, rng):
    domain = case(name).domain
    P = domain.candidates(30, rng, radius=2.0)
    x = encoded(domain, case(name).rows(rng, 300)) * domain.record_units()
    z = np.column_stack([x, np.ones(300)]) @ P.T
    assert (np.abs(z).max(axis=0) <= domain.norm(P) * (1 + 1e-12)).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("name", DOMAINS)
def test_pair_norms_are_norms_of_differences(name, rng):
    domain = case(name).domain
    P = domain.candidates(9, rng, radius=3.0)
    P[4] = P[2]
    pairs = domain.pair_norms(P)
    for i in range(9):
        for j in range(9):
            truth = reference.support_norm(domain, P[i] - P[j])
            assert truth <= pairs[i, j] <= truth * (1 + 1e-12)


# ------------------------------------------------------------------------- candidates and points


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_snap_takes_the_nearest_point_of_the_grid(name, grid, rng):
    domain = case(name, grid).domain
    P = rng.normal(size=(20, domain.width + 1)) * 3
    snapped = domain.snap(P)
    units = reference.weight_units(domain)
    reference.candidates(snapped, domain)  # on the grid, exactly
    for raw, kept in zip(P, snapped, strict=True):
        for v, s, unit in zip(raw, kept, units, strict=True):
            assert abs(Fraction(v) - Fraction(s)) <= unit / 2
    assert np.array_equal(domain.snap(snapped), snapped)


@pytest.mark.parametrize("name", DOMAINS)
def test_candidates_lie_on_the_grid_and_within_the_radius(name, rng):
    domain = case(name).domain
    P = domain.candidates(50, rng, radius=2.0)
    assert P.shape == (50, domain.width + 1)
    reference.candidates(P, domain)
    moved = np.abs(P) * np.append(np.ldexp(1.0, domain.exponents), 1)
    assert moved.max() <= 2.0
    assert moved.max() > 1.5
    again = domain.candidates(50, np.random.default_rng(1), radius=2.0)
    assert np.array_equal(again, domain.candidates(50, np.random.default_rng(1), radius=2.0))


@pytest.mark.parametrize("name", ["box", "l1", "l2", "schema"])
def test_points_lie_in_the_domain_and_on_its_grid(name, rng):
    domain = case(name).domain
    points = domain.points(200, rng)
    units = np.array([float(u) for u in reference.record_units(domain, uniform=True)])
    whole = (points / units).astype(np.int64)
    assert np.array_equal(whole * units, points)
    if name == "schema":
        for group in domain.groups:
            assert (points[:, group].sum(axis=1) == 1).all()
            assert len(np.unique(points[:, group].argmax(axis=1))) == group.stop - group.start
        assert 0 <= points.min() <= points.max() <= 1
    else:
        assert np.array_equal(domain.quantise(points, uniform=True), whole)


# --------------------------------------------------------------------------------------- geometry


BODIES = [*(case(name).domain for name in ("box", "l1", "l2", "schema")),
          Box([-1, 0, 0.5, -3], [1, 3, 2.5, -2])]  # fmt: skip


def records_of(domain, rng) -> np.ndarray:
    """Records of a domain on its grid: some from within, and some far out."""
    if isinstance(domain, Schema):
        points = domain.points(60, rng)
        share = rng.integers(0, 2, (60, domain.numbers.size))
        return np.concatenate([points, _with_numbers(points, domain.numbers, share)])
    ways = rng.normal(size=(30, domain.width)) * rng.choice([0.0, 1.0], (30, domain.width))
    corners = np.concatenate([np.eye(domain.width), -np.eye(domain.width), ways]) * 1e6
    return np.concatenate([domain.points(60, rng), domain.project(corners)])


def _with_numbers(points, numbers, values):
    points = points.copy()
    points[:, numbers] = values
    return points


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_no_two_records_are_farther_apart_than_the_domain_says(domain, rng):
    X = records_of(domain, rng)
    apart = X[:, None] - X
    units, above = domain.record_units(), 1 + 1e-12
    for power in (1, 2):
        distances = (np.abs(apart) ** power).sum(axis=2)
        assert distances.max() <= domain.farthest_apart(power) * above
        assert distances.max() >= domain.farthest_apart(power) / (4 * domain.width)
        assert (distances.max(axis=0) <= domain.farthest(X, power) * above).all()
    assert (np.abs(apart) / units).sum(axis=2).max() <= domain.l1_diameter
    assert np.sqrt(np.square(apart / units).sum(axis=2)).max() <= domain.l2_diameter * above
    V = rng.normal(size=(20, domain.width))
    assert ((apart @ V.T).max(axis=(0, 1)) <= domain.spans(V) * above).all()


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_no_record_is_larger_than_the_domain_says(domain, rng):
    X = records_of(domain, rng)
    whole = np.rint(np.abs(X) / domain.record_units()).astype(object)
    sizes = np.rint(np.maximum(-domain.low, domain.high) / domain.record_units()).astype(int)
    some = np.arange(0, domain.width, 2)
    for power in (1, 2, 4):
        assert (whole**power).sum(axis=1).max() <= domain.power_sum(sizes.tolist(), power)
        part = domain.power_sum(sizes.tolist(), power, some)
        assert (whole[:, some] ** power).sum(axis=1).max() <= part
    changes = ((whole[:, None] ** 2 - whole**2) ** 2).sum(axis=2)
    assert changes.max() <= domain.square_changes(sizes.tolist())
    weights = rng.uniform(0, 1, domain.width + 1)
    reach = np.maximum(-domain.low, domain.high)
    assert (np.abs(X) @ weights[:-1]).max() + weights[-1] <= (
        domain.rescaled_norm(weights, reach) * (1 + 1e-12)
    )


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_records_are_short_about_the_middle_of_the_widest_unit(domain, rng):
    unit = domain.record_units(uniform=True)[0]
    low, high = domain.whole_bounds
    whole = np.rint(records_of(domain, rng) / unit)
    assert (low <= whole.min(axis=0)).all()
    assert (whole.max(axis=0) <= high).all()
    about = whole - domain.whole_middle
    for norm in (1, 2):
        assert np.linalg.norm(about, ord=norm, axis=1).max() <= domain.whole_reach(norm)


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_points_drawn_in_keep_their_distance_from_the_border(domain, rng):
    points = domain.uniform_points(300, rng)
    distance = 0.2 * float((domain.high - domain.low).min()) / 2 / math.sqrt(domain.width)
    kept = domain.drawn_in(points, distance)
    ways = rng.normal(size=points.shape)
    ways *= distance / np.linalg.norm(ways, axis=1, keepdims=True)
    for inside in (points, kept, kept + ways):
        assert (domain.low - 1e-9 <= inside).all()
        assert (inside <= domain.high + 1e-9).all()
        if domain.order < math.inf:
            lengths = np.linalg.norm(inside, ord=domain.order, axis=1)
            assert lengths.max() <= domain.high[0] * (1 + 1e-9)


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_records_side_by_side_lie_in_the_repeated_domain(domain, rng):
    row = domain.repeated(3, Grid(a=14))
    assert (row.width, row.grid) == (3 * domain.width, Grid(a=14))
    rows = rng.permutation(records_of(domain, rng))[:60].reshape(20, -1)
    coarsest = row.record_units().max()
    assert np.abs(row.rounded(rows) - rows).max() <= coarsest  # nothing is clipped


def test_a_domain_names_its_columns():
    box, schema = Box(0, 1, 2), case("schema").domain
    assert (box.n_columns, box.column_names, box.shares) == (2, None, {})
    assert box.coded_names() == ["x0", "x1"]
    assert box.coded_names(["a", "b"]) == ["a", "b"]
    assert (schema.n_columns, schema.column_names) == (4, ["colour", "age", "flag", "income"])
    assert schema.coded_names() == schema.coded_names(["a", "b"]) == schema.feature_names
    age = schema.columns["age"]
    assert schema.shares == {4: (age.low, age.high)}
    assert schema.numbers.tolist() == [4]
    assert schema.filled() == [0, 4, 5, 7]
    assert schema.filled([9, 2, 3, 4]) == [2, 4, 9]


def test_only_a_closed_list_of_values_has_choices():
    assert Categorical(["a", "b"]).choices == ("a", "b")
    assert Categorical(["a", "b"], other=True).choices is None
    assert Numeric(0, 1).choices is None


# ------------------------------------------------------------------------------ bounds and widths


def test_scalar_bounds_take_the_width_of_the_records():
    assert Box(-1, 1).bind(3).width == 3
    assert L2Ball(1).bind(7).width == 7
    assert Box([0, 0], 1).width == 2
    assert Box(-1, 1).n_features is None


def test_bounds_round_inwards():
    domain = Box([0.1], [0.3], grid=Grid(a=3, b=10, c=4))
    assert domain.record_units()[0] == 0.0625
    assert (domain.low[0], domain.high[0]) == (0.125, 0.25)


def test_units_cover_columns_of_any_scale():
    domain = case("box per column").domain
    assert list(domain.exponents) == reference.exponents(domain)
    assert [Fraction(u) for u in domain.record_units()] == reference.record_units(domain)
    assert [Fraction(u) for u in domain.weight_units()] == reference.weight_units(domain)


def test_domains_print_no_bounds_of_single_columns():
    assert repr(Box(-1, 1)) == "Box(-1.0, 1.0)"
    assert repr(Box([0, 1], [2, 3])) == "Box(<2 columns>)"
    assert str(case("schema").domain) == "Schema(<4 columns, 10 encoded>)"  # releases hold this


# ---------------------------------------------------------------------------------------- schemas


@pytest.fixture
def schema() -> Schema:
    return case("schema").domain


@pytest.fixture
def people(rng) -> np.ndarray:
    return case("schema").rows(rng, 80)


def test_schema_names_every_encoded_column(schema):
    assert schema.feature_names == [
        "colour=red", "colour=green", "colour=blue", "colour=<other>", "age", "flag=0", "flag=1",
        "income[0]", "income[1]", "income[2]",
    ]  # fmt: skip
    assert schema.width == 10
    assert schema.groups == [slice(0, 4), slice(5, 7), slice(7, 10)]


def test_every_group_has_exactly_one_hot_entry(schema, people):
    table = schema.encode(people).toarray()
    for group in schema.groups:
        assert np.array_equal(np.sort(table[:, group])[:, -1], np.full(80, 4096))
        assert (table[:, group].sum(axis=1) == 4096).all()


def test_frame_dict_and_array_are_encoded_alike(schema, people):
    names = list(schema.columns)
    expected = encoded(schema, people)
    columns = {name: people[:, i] for i, name in enumerate(names)}
    typed = {
        "colour": people[:, 0].tolist(),
        "age": people[:, 1].astype(np.float32),
        "flag": people[:, 2].astype(np.int8),
        "income": people[:, 3].astype(np.float64),
    }
    frame = pd.DataFrame(columns)
    nullable = pd.DataFrame(
        {
            "colour": pd.Series(people[:, 0], dtype="string"),
            "age": pd.array([None if v != v else v for v in people[:, 1]], dtype="Float64"),
            "flag": pd.array(people[:, 2].astype(int), dtype="Int64"),
            "income": people[:, 3].astype(float),
            "unused": "secret",
        }
    )
    categories = frame.assign(colour=frame["colour"].astype("category"))
    shuffled = frame[["income", "flag", "age", "colour"]]
    for X in (people, columns, typed, frame, nullable, categories, shuffled):
        assert np.array_equal(schema.encode(X).toarray(), expected)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, "mauve", 3.5, ""])
def test_unknown_and_missing_categories_go_to_other(missing):
    domain = Schema({"c": Categorical(["a", "b"], other=True)})
    X = {"c": np.array(["a", missing, "b"], dtype=object)}
    assert np.array_equal(domain.encode(X).toarray() // 4096, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("missing", [None, float("nan"), "mauve"])
def test_unknown_and_missing_categories_are_refused_without_other(missing):
    domain = Schema({"c": Categorical(["a", "b"])})
    with pytest.raises(ValueError, match="column 'c' has values that are not declared"):
        domain.encode({"c": np.array(["a", missing, "b"], dtype=object)})


def test_numbers_as_categories_match_across_types():
    domain = Schema({"c": Categorical([0, 1, 7])})
    expected = [[0, 4096, 0], [0, 0, 4096]]
    for raw in ([1, 7], np.array([1.0, 7.0]), np.array([1, 7], dtype=np.uint8), [True, 7]):
        assert np.array_equal(domain.encode({"c": raw}).toarray(), expected)


def test_missing_numbers_take_the_declared_fill_or_are_refused():
    raw = np.array([0.0, np.nan, 8.0])
    filled = Schema({"x": Numeric(0, 8, fill=2)}).encode({"x": raw})
    assert np.array_equal(filled.toarray()[:, 0], [0, 1024, 4096])
    with pytest.raises(ValueError, match=r"column 'x' has missing values or cells that are no"):
        Schema({"x": Numeric(0, 8)}).encode({"x": raw})


def test_numbers_beyond_the_range_are_clipped_also_infinite_ones():
    raw = np.array([-np.inf, -1e300, -1, 0, 3.999, 4, 5, 1e300, np.inf])
    plain = Schema({"x": Numeric(0, 4)}).encode({"x": raw}).toarray()[:, 0]
    assert np.array_equal(plain, [0, 0, 0, 0, 4094, 4096, 4096, 4096, 4096])
    binned = Schema({"x": Numeric(0, 4, bins=4)}).encode({"x": raw}).toarray().argmax(axis=1)
    assert np.array_equal(binned, [0, 0, 0, 0, 3, 3, 3, 3, 3])


@given(
    raw=st.lists(st.floats(-50, 150), min_size=1, max_size=20),
    low=st.integers(-40, 40),
    width=st.integers(1, 90),
    grid=st.sampled_from(GRIDS),
)
def test_a_number_is_its_share_of_the_range_rounded_down(raw, low, width, grid):
    """Within one unit, where float64 puts the share itself on the next multiple."""
    domain = Schema({"x": Numeric(low, low + width)}, grid=grid)
    got = domain.encode({"x": raw}).toarray()[:, 0].tolist()
    one = 1 << grid.a
    for value, whole in zip(raw, got, strict=True):
        share = min(max((Fraction(value) - low) / width, Fraction(0)), Fraction(1)) * one
        assert whole in (math.floor(share), math.floor(share + Fraction(1, 2**30)))
        assert 0 <= whole <= one


def test_a_range_wider_than_float64_is_refused_or_works():
    with contextlib.suppress(ValueError):
        domain = Schema({"x": Numeric(-1.7e308, 1.7e308)})
        got = domain.encode({"x": np.array([-1.7e308, 0.0, 1.7e308])}).toarray()[:, 0]
        assert np.array_equal(got, [0, 2048, 4096])


def test_schema_reads_no_column_that_is_not_declared(schema, people):
    class Guarded(dict):
        def __getitem__(self, name):
            assert name != "secret"
            return super().__getitem__(name)

    columns = Guarded({name: people[:, i] for i, name in enumerate(schema.columns)})
    columns["secret"] = None
    assert schema.encode(columns).shape == (80, 10)


def test_the_declaration_is_copied():
    values, columns = ["a", "b"], {"c": Categorical(["a"])}
    category, domain = Categorical(values), Schema(columns)
    values.append("c")
    columns["d"] = Numeric(0, 1)
    assert category.width == 2
    assert domain.width == 1


DECLARED = """
title = "people"                                # of no concern to a schema

[columns]
age = {low = 17, high = 90.5}
"hours per week" = {low = 1, high = 99, bins = 5, fill = 40}
sex = {values = ["Female", "Male"], other = true}
code = {values = [3, 1, 2]}

[grid]
a = 13

[data]
label = "income"
"""


@pytest.mark.parametrize("kind", [str, Path])
def test_a_toml_file_declares_what_python_would(kind, tmp_path):
    path = tmp_path / "people.toml"
    path.write_text(DECLARED)
    got = Schema.from_toml(kind(path))
    assert list(got.columns.items()) == [
        ("age", Numeric(17, 90.5)),
        ("hours per week", Numeric(1, 99, bins=5, fill=40)),
        ("sex", Categorical(["Female", "Male"], other=True)),
        ("code", Categorical([3, 1, 2])),
    ]
    assert got.grid == Grid(a=13)
    path.write_text(DECLARED.replace("[grid]", "[other]"))
    assert Schema.from_toml(kind(path)).grid == Grid()


def test_a_toml_file_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Schema.from_toml(tmp_path / "nowhere.toml")


# ---------------------------------------------------------------------- the twin itself, by hand


def test_the_twin_agrees_with_sums_done_by_hand():
    grid = SimpleNamespace(a=2, b=3, c=1)
    box = type("Box", (), {"lower": -1.0, "upper": 3.0, "n_features": 2, "grid": grid})()
    assert reference.exponents(box) == [2, 2]  # 4 covers 3; a unit is 1
    assert reference.records([[2.9, -0.9], [-7, 7]], box) == [[2, 0], [-1, 3]]
    ball = type("L2Ball", (), {"radius": 1.0, "n_features": 2, "grid": grid})()
    assert reference.records([[0.99, 0.0], [3.0, 4.0]], ball) == [[3, 0], [2, 3]]
    assert reference.support_norm(ball, [3.0, 4.0, -1.0]) == 6
    assert reference.margin([2, -1], [5, 3, 1], a=2) == 10 - 3 + 4


def test_declared_cut_points_belong_to_the_bin_above_them():
    column = Numeric(-1, 100, bins=[0, 0.3, 25, 99.9])
    raw = [-7, -1, -0.001, 0, 0.29999, 0.3, 24.999, 25, 99, 99.9, 100, 1e9]
    schema = Schema({"x": column, "y": Numeric(0, 1)})
    encoded = schema.encode({"x": raw, "y": np.ones(len(raw))}).toarray() // 4096
    assert encoded[:, :5].argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert (encoded[:, :5].sum(axis=1) == 1).all()
    assert schema.feature_names == ["x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "y"]
    assert schema.groups == [slice(0, 5)]
    assert Numeric(0, 1, bins=[0.25, 0.5, 0.75]).width == Numeric(0, 1, bins=4).width == 4
