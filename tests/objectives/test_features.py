"""Features of levels: public maps that are never long, exact sums, and how far a record moves them.

White box: sums against naive twins on whole numbers, whatever the layout, place and order of rows;
sensitivities by enumeration of all records of small schemas and all pairs of neighbours.
"""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES
from makers.raises import assert_reached, messages_of

from privfit import Box, Categorical, LinearObjective, Numeric, Schema, Stream
from privfit.domains.scales import CUTS, cell_map
from privfit.objectives import feature_moments, features
from privfit.objectives.feature_moments import BlockMoments, FullMoments
from privfit.objectives.features import ONE, Curve, Features, Levels
from privfit.privacy.neighbours import Neighbours
from privfit.records import levels as level_sums

WIDE = Schema(
    {
        "income": Numeric(scale="log", missing=True),
        "age": Numeric(bins=[25, 35, 50], ranks=[0.2, 0.4, 0.9], scale="log", missing=True),
        "hours": Numeric(0, 99, bins=12),
        "rate": Numeric(0, 1, bins=5, scale="log"),
        "place": Numeric(bins=[-1.0, 1.0]),
        "job": Categorical(["a", "b", "c"], other=True),
        "one": Categorical(["only"]),
    }
)


def people(rng: Any, n: int) -> dict[str, Any]:
    income = rng.lognormal(8, 3, n) * rng.choice([1, -1, 0], n, p=[0.7, 0.2, 0.1])
    return {
        "income": np.where(rng.random(n) < 0.1, np.nan, income),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 90, n)),
        "hours": rng.integers(0, 99, n),
        "rate": rng.random(n),
        "place": rng.normal(0, 2, n),
        "job": rng.choice(list("abcd"), n),
        "one": np.full(n, "only"),
    }


def levels_of(schema: Schema, table: Any) -> list[list[int]]:
    """The levels of each record."""
    hot = schema.encode(table).toarray() != 0
    return [[int(np.flatnonzero(row[group])[0]) for group in schema.groups] for row in hot]


def wide() -> Features:
    return Features.of(WIDE, learned=4, public=6, mixing=0.5)


# ------------------------------------------------------------------------------------------- maps


def test_no_row_is_longer_than_one():
    rng = np.random.default_rng(1)
    for cuts, learned, public, mixing in itertools.product(
        (1, 3, 40, 600), (1, 7, 48), (1, 24), (0.0, 0.3, 1.0)
    ):
        ranks = np.sort(rng.random(cuts))
        column = Numeric(bins=list(range(cuts)), ranks=ranks, scale="log", missing=True)
        (table,) = Features.of(Schema({"x": column}), learned, public, mixing).tables
        lengths = np.square(table.rows).sum(axis=1)
        assert lengths.max() == ONE**2  # that of a missing value
        assert lengths[:-1].max() <= ONE**2
        assert len(table.rows) == column.width
        assert table.dimensions <= learned + public + 1


def test_a_number_with_a_scale_alone_is_its_public_map():
    (table,) = Features.of(Schema({"x": Numeric(scale="log")}), 8, 6, 0.5).tables
    assert np.array_equal(table.rows, cell_map()[:, :6])


def test_levels_within_a_range_have_the_rows_of_their_cells():
    column = Numeric(0, 100, bins=[20, 50], scale="log")
    (table,) = Features.of(Schema({"x": column}), 2, 5, 0.5).tables
    numbers = np.array([0.0, 0.5, 3.0, 19.9, 20.0, 49.0, 50.0, 99.9, 100.0])
    levels = [row[0] for row in levels_of(Schema({"x": column}), {"x": numbers})]
    cells = np.searchsorted(CUTS, numbers, side="right")
    halves = np.trunc(cell_map()[cells, :5] * np.sqrt(0.5)).astype(int)
    kept = halves[:, np.trunc(cell_map()[:, :5] * np.sqrt(0.5)).any(axis=0)]
    found = table.rows[levels]
    public = found[:, : found.shape[1] - 2]
    assert public.shape[1] <= 5
    assert all(row in kept.T.tolist() for row in public.T.tolist())
    learned = found[:, -2:]  # one row for each of three bins
    bins = np.searchsorted([20, 50], numbers, side="right")
    for one, other in itertools.combinations(range(len(numbers)), 2):
        assert (learned[one] == learned[other]).all() == (bins[one] == bins[other])


def test_the_learned_half_is_the_kernel_of_ranks():
    """With as many functions as bins nothing is lost but what is rounded."""
    ranks = [0.1, 0.4, 0.5]
    (table,) = Features.of(Schema({"x": Numeric(bins=[1, 2, 3], ranks=ranks)}), 4, 1, 0.7).tables
    masses = np.diff([0, *ranks, 1])
    middles = np.cumsum(masses) - masses / 2
    kernel = 0.7 * np.exp(-np.abs(middles[:, None] - middles) / 0.3) + 0.3 * np.eye(4)
    rows = table.rows / ONE
    assert np.abs(rows @ rows.T - kernel).max() < 4 * 2 / ONE


def test_a_straight_line_spans_a_declared_range_with_one_function_beside_it():
    schema = Schema({"x": Numeric(0, 2, bins=[0.5, 1], fill=0), "free": Numeric(scale="log")})
    line, free = Features.of(schema, 4, 4, 0.5, straight=0.64).tables
    assert line.rows[:, 0].tolist() == [int(0.8 * middle / 2 * ONE) for middle in (0.25, 0.75, 1.5)]
    alone = Features.of(schema, 1, 4, 0.5).tables[0].rows[:, 0]
    assert np.abs(line.rows[:, 1:] - 0.6 * alone[:, None]).max() <= 1
    assert free.rows.tolist() == Features.of(schema, 4, 4, 0.5).tables[1].rows.tolist()  # no range
    assert line.bands == (0, 1)


@pytest.mark.parametrize("straight", [0.0, 0.3, 0.6, 1.0])
def test_no_row_with_a_line_is_longer_than_one(straight):
    columns = {
        "both": Numeric(-3, 9, bins=32, scale="log", missing=True),
        "scale": Numeric(0, 1, scale="log", fill=0),
        "bins": Numeric(0, 1e6, bins=5, fill=0),
    }
    features = Features.of(Schema(columns), 8, 8, 0.6, straight=straight)
    assert all(0 < table.square <= ONE**2 for table in features.tables)
    assert [table.dimensions for table in features.tables] == {
        0.0: [17, 7, 5], 0.3: [4, 2, 2], 0.6: [4, 2, 2], 1.0: [2, 1, 1],
    }[straight]  # fmt: skip


def test_a_missing_value_is_a_coordinate_of_its_own():
    for table, column in zip(wide().tables, WIDE.columns.values(), strict=True):
        if getattr(column, "missing", False):
            assert table.rows[-1].tolist() == [0] * (table.dimensions - 1) + [ONE]
            assert not table.rows[:-1, -1].any()


def test_many_bins_are_taken_together_by_rank():
    (table,) = Features.of(Schema({"x": Numeric(0, 1, bins=1000)}), 6, 1, 0.5).tables
    assert len(np.unique(table.rows, axis=0)) <= features.FINEST
    steps = np.abs(np.diff(table.rows, axis=0)).sum(axis=1)
    assert np.count_nonzero(steps) < features.FINEST


def test_coordinates_that_no_level_fills_are_left_out():
    (table,) = Features.of(Schema({"x": Numeric(bins=[1.0])}), 40, 1, 0.5).tables
    assert table.dimensions == 2
    assert table.rows.any(axis=0).all()


def test_parts_bands_and_matrix_agree():
    made = wide()
    assert made.matrix.shape == (made.dimensions, WIDE.width + 1)
    covered = [j for band in made.bands for j in range(band.start, band.stop)]
    assert covered == list(range(made.dimensions - 1))
    ends = {part.stop for part in made.parts}
    assert all(any(band.stop <= end for end in ends) for band in made.bands)
    for part, group, table in zip(made.parts, made.groups, made.tables, strict=True):
        assert np.array_equal(made.matrix[part, group].T, table.rows)
    assert np.count_nonzero(made.matrix[:, -1]) == 1
    assert made.matrix[-1, -1] == ONE
    assert made.groups == tuple(WIDE.groups)


# ------------------------------------------------------------------------------------------- sums


def twin_moments(schema: Schema, made: Features, table: Any) -> list[list[int]]:
    tables = [one.rows.tolist() for one in made.tables]
    rows = [reference.features_of(row, tables, ONE) for row in levels_of(schema, table)]
    return [[sum(phi[i] * phi[j] for phi in rows) for j in range(made.dimensions)]
            for i in range(made.dimensions)]  # fmt: skip


def test_sums_equal_the_twin_in_every_layout(rng, monkeypatch):
    table, y, made = people(rng, 60), rng.integers(0, 2, 60), wide()
    expected = twin_moments(WIDE, made, table)
    counts = reference.level_counts(levels_of(WIDE, table), y.tolist(), WIDE.groups)
    for layout, counted, many, folded in itertools.product(
        ("auto", "dense", "sparse"), (7, 1 << 18), (1, 512), (200, 1 << 18)
    ):
        monkeypatch.setattr("privfit.records.layouts.COUNTED", counted)
        monkeypatch.setattr(level_sums, "MANY", many)
        monkeypatch.setattr(level_sums, "FOLDED", folded)
        objective = LinearObjective(table, y, domain=WIDE, layout=layout)
        assert objective.feature_moments(made.matrix).tolist() == expected
        assert objective.level_counts().tolist() == counts


def test_sums_add_up_over_a_stream_and_over_parts(rng, tmp_path):
    table, y = people(rng, 500), rng.integers(0, 2, 500)
    made, whole = wide(), LinearObjective(table, y, domain=WIDE)
    parts = [
        LinearObjective({k: v[some] for k, v in table.items()}, y[some], domain=WIDE)
        for some in (slice(0, 200), slice(200, None))
    ]
    joined = parts[0].joined(parts[1:])
    import pyarrow as pa

    columns = {**table, "y": y}
    stream = Stream(pa.table(columns), folder=tmp_path)
    streamed = LinearObjective(stream, "y", domain=WIDE)
    for other in (joined, streamed):
        assert np.array_equal(other.level_counts(), whole.level_counts())
        assert np.array_equal(
            other.feature_moments(made.matrix), whole.feature_moments(made.matrix)
        )
    added = sum(part.feature_moments(made.matrix) for part in parts)
    assert np.array_equal(added, whole.feature_moments(made.matrix))


@pytest.mark.parametrize("kind", [FullMoments, BlockMoments])
def test_what_is_released_is_what_the_twin_adds_up(kind, rng):
    table, made = people(rng, 40), wide()
    moments = kind(LinearObjective(table, rng.integers(0, 2, 40), domain=WIDE), made)
    exact = twin_moments(WIDE, made, table)
    found, unit = moments.sums(), moments.unit
    assert len(found) == moments.size
    if kind is FullMoments:
        matrix = moments.matrix(found)
        assert np.array_equal(matrix, matrix.T)
        assert np.abs(matrix - np.array(exact) / ONE**2).max() < unit
        return
    blocks, real = moments.read(found), np.array(exact) / ONE**2
    assert blocks.count == pytest.approx(40, abs=unit)
    for part, products, sums in zip(made.parts, blocks.products, blocks.sums, strict=True):
        assert np.abs(products - real[part, part]).max() < unit
        assert np.abs(sums - real[part, -1]).max() < unit


# ---------------------------------------------------------------------------------- sensitivities


def random_tables(rng: Any, kind: str) -> tuple[Any, ...]:
    """Small tables: rows of any length, signs, zeros, indicators, equal rows."""
    if kind == "schema":
        columns = {
            "x": Numeric(bins=[1, 2], ranks=[0.1, 0.3], missing=True),
            "y": Numeric(0, 1, bins=4),
            "z": Categorical(["a", "b"]),
        }
        return Features.of(Schema(columns), 3, 2, 0.6).tables
    made: list[Any] = []
    for _ in range(3):
        levels, q = rng.integers(1, 5, 2)
        rows = rng.integers(-ONE, ONE + 1, (levels, q)) * (rng.random((levels, q)) < 0.7)
        if rng.random() < 0.5:
            rows = np.where(rng.random((levels, q)) < 0.5, rows, ONE * (rows > 0))
        made.append(Curve(rows, (0,)) if rng.random() < 0.7 else Levels.of(int(levels)))
    return tuple(made)


def objective_of(tables: Any, records: list[tuple[int, ...]]) -> LinearObjective:
    """Records with these levels, for tables that no schema has."""
    names = [f"c{i}" for i in range(len(tables))]
    schema = Schema(
        {n: Categorical(range(len(t.rows))) for n, t in zip(names, tables, strict=True)}
    )
    table = {n: [record[i] for record in records] for i, n in enumerate(names)}
    return LinearObjective(table, [0] * len(records), domain=schema)


def largest_changes(kind: Any, tables: Any) -> tuple[Any, dict[str, float]]:
    """The released object, and how far one record moves its sums: all records, all pairs."""
    made = Features(tables)
    records = list(itertools.product(*(range(len(table.rows)) for table in tables)))
    base = [records[0]]
    without = kind(objective_of(tables, base), made)
    nothing = without.sums()
    moved = np.array(
        [kind(objective_of(tables, [*base, r]), made).sums() - nothing for r in records],
        dtype=np.float64,
    )
    return without, {
        "add_remove": float(np.linalg.norm(moved, axis=1).max()),
        "replace": float(np.linalg.norm(moved[:, None] - moved, axis=2).max()),
    }


@pytest.mark.parametrize("kind", [FullMoments, BlockMoments])
@pytest.mark.parametrize("seed", range(6))
def test_no_record_moves_moments_further_than_the_sensitivity(kind, seed):
    tables = random_tables(np.random.default_rng(seed), "schema" if seed == 0 else "random")
    moments, found = largest_changes(kind, tables)
    for adjacency in ADJACENCIES:
        bound = moments.sensitivity(Neighbours(adjacency))
        rounding = np.sqrt(moments.size) if moments._drop else 0
        assert found[adjacency] <= bound
        if kind is BlockMoments or adjacency == "add_remove":
            exact = kind is BlockMoments
            assert found[adjacency] >= (1 - 1e-9 if exact else 0.6) * (bound - 2 * rounding)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_those_of_the_twin(seed):
    """The squared sensitivities in whole numbers, from what single records add."""
    tables = random_tables(np.random.default_rng(seed), "random")
    rows = [table.rows.tolist() for table in tables]
    records = list(itertools.product(*(range(len(table)) for table in rows)))
    moments = BlockMoments(objective_of(tables, records[:1]), Features(tables))
    added = [reference.block_row(record, rows, ONE) for record in records]
    once = [  # what is released of them: no number twice
        {key: value for key, value in row.items()
         if not (key[2] == -1 and key[0] >= 0
                 and all(r[key[1]] in (0, ONE) for r in rows[key[0]]))}
        for row in added
    ]  # fmt: skip
    longest = max(sum(v * v for v in row.values()) for row in once)
    farthest = max(sum((a[k] - b[k]) ** 2 for k in a) for a in once for b in once)
    assert moments._squared(Neighbours("add_remove")) == longest
    assert moments._squared(Neighbours("replace")) == farthest
    whole = [reference.full_row(reference.features_of(r, rows, ONE)) for r in records]
    full = FullMoments(objective_of(tables, records[:1]), Features(tables))
    longest = max(sum(v * v for v in row.values()) for row in whole)
    farthest = max(sum((a[k] - b[k]) ** 2 for k in a) for a in whole for b in whole)
    assert full._squared(Neighbours("add_remove")) >= longest
    assert full._squared(Neighbours("replace")) >= farthest


@pytest.mark.parametrize("seed", range(6))
def test_facts_of_tables_are_those_of_all_pairs_of_rows(seed):
    for table in random_tables(np.random.default_rng(seed), "random"):
        rows = table.rows.tolist()
        assert table.square == max(sum(v**2 for v in row) for row in rows)
        assert table.fourth == max(sum(v**4 for v in row) for row in rows)
        assert table.square_change == max(
            sum((a**2 - b**2) ** 2 for a, b in zip(r, s, strict=True)) for r in rows for s in rows
        )
        filled = [[any(r[i] and r[j] for r in rows) for j in range(len(rows[0]))]
                  for i in range(len(rows[0]))]  # fmt: skip
        assert table.filled.tolist() == filled


@pytest.mark.parametrize(
    ("kind", "where", "name"),
    [
        (FullMoments, features.Curve, "square"),
        (BlockMoments, feature_moments._Block, "longest"),
        (BlockMoments, feature_moments._Block, "farthest"),
    ],
)
def test_a_bound_that_is_too_small_is_found(kind, where, name, monkeypatch):
    """By a third of one column's part, for some of the tables above."""
    right = getattr(where, name)
    monkeypatch.setattr(where, name, property(lambda self: right.fget(self) // 3))
    faults = []
    for seed in range(6):
        tables = random_tables(np.random.default_rng(seed), "random")
        moments, found = largest_changes(kind, tables)
        faults += [found[one] > moments.sensitivity(Neighbours(one)) for one in ADJACENCIES]
    assert any(faults)


# ----------------------------------------------------------------------------------------- refusals


def made_of(domain: Any) -> Features:
    return Features.of(domain, 4, 4, 0.5)


REFUSED = [
    (partial(made_of, Box(-1, 1, 3)), r"domain \(Box\) must be a Schema for an additive model"),
    (partial(made_of, Schema({"age": Numeric(0, 9), "x": Numeric(scale="log")})),
     r"column 'age' must have levels for an additive model; pass Numeric\(scale='log'\)"),
    (partial(made_of, Schema({"job": Categorical(range(5000))})),
     r"domain \(up to 5000 coordinates\) must have fewer than 4096 for an additive model; declare"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_other_domains_are_refused_with_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_blanks_are_refused_before_a_map_is_made():
    with pytest.raises(ValueError, match="a Schema with the blanks 'x'"):
        made_of(Schema({"x": Numeric()}))


def test_every_refusal_is_tested():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    assert_reached([File(module.__file__) for module in (features, feature_moments)], seen)


def test_what_holds_sums_shows_no_record(rng):
    objective = LinearObjective(people(rng, 20), [0, 1] * 10, domain=WIDE)
    for kind in (FullMoments, BlockMoments):
        assert "array" not in repr(kind(objective, wide()))
    assert "array" not in repr(wide())
