"""Rows of joint codes: the plan is public and loses nothing; every answer is that of the twins."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit import Categorical, LinearObjective, Numeric, Schema
from privfit.base.errors import DeclarationError
from privfit.domains.codes import Codes, level_type
from privfit.records import codes
from privfit.records.candidates import wrap32
from privfit.records.codes import (
    APART,
    JOINT,
    MOST_BINS,
    MOST_COUNTS,
    CodeRecords,
    pack_codes,
    plan_of,
)
from privfit.records.layouts import CodeLayout, SparseLayout
from privfit.records.linear import Image, LinearRows, LossGrid
from privfit.records.packing import pack
from privfit.records.smooth import Smoothing, clipped

WIDTHS = [(2,), (1,), (3, 1, 2), (12, 9, 16, 7, 15, 6, 5, 2, 8, 4, 7, 42), (300, 200, 2), (2,) * 25]
LOSSES = ["logistic", "hinge", "zero_one"]


def schema_of(widths, numbers=0, first=0):
    """Groups of these widths; `numbers` of them between groups, from the place `first` on."""
    columns = {f"g{i}": Categorical(list(range(w))) for i, w in enumerate(widths)}
    named = list(columns.items())
    for j in range(numbers):
        named.insert(min(first + 2 * j, len(named)), (f"x{j}", Numeric(0, 1)))
    return Schema(dict(named))


def codes_of(schema, n, rng):
    """Made-up records of a schema."""
    widths = [group.stop - group.start for group in schema.groups]
    levels = [rng.integers(0, width, n).astype(level_type(width)) for width in widths]
    numbers = [rng.choice([0, 1, 4095, 4096, *rng.integers(0, 4097, 4)], n).astype(np.int16)
               for _ in schema.shares]  # fmt: skip
    return Codes(schema.groups, levels, list(schema.shares), numbers, (n, schema.width))


def both(schema, n, rng, loss="logistic", joint=JOINT, n_threads=1):
    """The same records in rows of codes and as lists of non-zeros."""
    X, groups = codes_of(schema, n, rng), rng.integers(0, 2, n)
    plan = plan_of(X, joint)
    grid, one = LossGrid(loss, 1.0, schema.grid.c), 1 << schema.grid.a
    coded = LinearRows(pack_codes(X, plan, groups, one), schema, grid, n_threads)
    sparse = LinearRows(pack(X, schema, groups, layout="sparse"), schema, grid, n_threads)
    assert isinstance(coded.layout, CodeLayout)
    assert isinstance(sparse.layout, SparseLayout)
    return coded, sparse


def whole(halves):
    """Python integers from sums in halves of 32 bits."""
    return halves[0].astype(object) * 2**32 + halves[1]


# ------------------------------------------------------------------------------------------- plans


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=12),
    st.integers(2, 2048),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_a_plan_loses_nothing(widths, most, seed):
    schema, rng = schema_of(widths, 2), np.random.default_rng(seed)
    X = codes_of(schema, 50, rng)
    plan = plan_of(X, most)
    found = np.column_stack(list(plan.joined(X.levels)))
    assert found.dtype == np.uint16
    back = plan.levels(found)
    assert all((a == b).all() and a.dtype == b.dtype for a, b in zip(back, X.levels, strict=True))
    assert sorted(group for joint in plan.joints for group in joint) == list(range(len(widths)))
    assert plan.bins <= max(MOST_BINS, sum(widths))
    for joint, base, size in zip(plan.joints, plan.bases, plan.sizes, strict=True):
        assert size == math.prod(widths[group] for group in joint)
        assert len(joint) == 1 or size <= most
        column = found[:, plan.joints.index(joint)]
        assert base <= column.min() <= column.max() < base + size


def test_a_plan_follows_from_declarations_alone(rng):
    schema = schema_of(WIDTHS[3], 2)
    one, other = codes_of(schema, 5, rng), codes_of(schema, 900, rng)
    assert plan_of(one) == plan_of(other)
    assert plan_of(codes_of(schema_of((), 3), 5, rng)) is None  # no groups
    wide = Codes([slice(0, 70_000)], [np.zeros(2, np.uint32)], [], [], (2, 70_000))
    assert plan_of(wide) is None  # more levels than a code has places


def test_adult_takes_twelve_bytes_a_record(rng):
    schema = schema_of(WIDTHS[3], 2)
    coded, sparse = both(schema, 1000, rng)
    assert coded.nbytes == 12 * 1000
    assert sparse.nbytes > 70 * 1000
    coded, _ = both(schema, 1000, rng, joint=256)
    assert coded.nbytes == 14 * 1000


def test_pieces_have_few_levels(rng):
    plan = plan_of(codes_of(schema_of(WIDTHS[3], 2), 5, rng))
    sizes = plan.pieces.rows[:, 1]
    assert (sizes <= APART).all()
    assert plan.pieces.counts == sum(a * b for i, a in enumerate(sizes) for b in sizes[:i]) + sum(
        sizes
    )


# ------------------------------------------------------------------------------------------ layouts


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize(("numbers", "joint"), [(0, 1024), (1, 256), (3, 64), (2, 2)])
def test_losses_are_those_of_other_layouts(widths, loss, numbers, joint, rng):
    schema = schema_of(widths, numbers, first=1)
    coded, sparse = both(schema, 700, rng, loss, joint)
    for m in (1, 16, 17, 49, 64):  # whole groups of candidates, and what is left
        for size in (30, 300, 40_000):  # short sums, narrow and wide margins
            P = np.rint(rng.normal(0, size, (m, schema.width + 1)))
            assert coded.losses(P).tolist() == sparse.losses(P).tolist()
    P = np.rint(rng.normal(0, 30, (40, schema.width + 1)))
    P[3, list(schema.shares)] = 40_000  # short sums of levels, but a weight beyond 16 bits
    assert coded.losses(P).tolist() == sparse.losses(P).tolist()


@pytest.mark.parametrize("loss", LOSSES[:2])
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize(("numbers", "joint"), [(0, 1024), (2, 256), (3, 16)])
def test_gradients_and_moments_are_those_of_other_layouts(widths, loss, numbers, joint, rng):
    schema = schema_of(widths, numbers)
    coded, sparse = both(schema, 900, rng, loss, joint)
    d = schema.width
    columns = rng.integers(-1000, 1000, (d + 1, 20))
    images = [None, *(Image(columns, shift, square, 3_000_000 >> shift)
                      for shift in (0, 3) for square in (False, True))]  # fmt: skip
    for size in (300, 40_000):  # narrow and wide
        w = np.rint(rng.normal(0, size, d + 1))
        for image in images:
            one, other = (rows.gradient(w, 3000, image) for rows in (coded, sparse))
            assert one.tolist() == other.tolist()
        assert coded.followed_gradient(w, 99).tolist() == sparse.gradient(w, 99).tolist()
    assert coded.second_moments().tolist() == sparse.second_moments().tolist()
    assert coded.label_counts().tolist() == sparse.label_counts().tolist()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("loss", LOSSES[:2])
def test_margins_follow_a_candidate(loss, n_threads, rng):
    """By a level, the intercept, both, a number, levels of two joint columns, and nothing."""
    schema = schema_of(WIDTHS[3], 2, first=1)
    coded, sparse = both(schema, 700, rng, loss, joint=64, n_threads=n_threads)
    coded.thread_work = 0.0
    joint_of, d = coded.records.plan.joint_of, schema.width
    assert (joint_of < 0).sum() == 2
    levels, numbers = np.flatnonzero(joint_of >= 0), np.flatnonzero(joint_of < 0)
    apart = levels[np.searchsorted(np.sort(joint_of[levels]), [0, 1])]
    alike = levels[joint_of[levels] == joint_of[levels[0]]][:3]
    moves = [levels[:1], [d], [levels[-1], d], numbers[:1], apart, alike, [], [*numbers, *apart, d]]
    w = np.zeros(d + 1)
    for coords in [*moves, *([one] for one in rng.integers(0, d + 1, 40))]:
        w = w.copy()
        w[coords] += rng.integers(-300, 300, len(coords))
        found = coded.followed_gradient(w, 2000)
        assert found.tolist() == sparse.gradient(w, 2000).tolist()
    far = 1e6 * w  # margins that need more than 32 bits, and back
    assert coded.followed_gradient(far, 9).tolist() == sparse.gradient(far, 9).tolist()
    assert coded.followed_gradient(w, 9).tolist() == sparse.gradient(w, 9).tolist()


def test_a_view_of_other_classes_follows_by_itself(rng):
    schema = schema_of((3, 5))
    coded, _ = both(schema, 300, rng)
    w = np.rint(rng.normal(0, 300, schema.width + 1))
    coded.followed_gradient(w, 2000)
    for rows in (coded.against(1), coded.weighed(0.5, 1.0)):
        assert rows.followed_gradient(w, 2000).tolist() == rows.gradient(w, 2000).tolist()


def test_wide_and_narrow_pieces_count_alike(rng, monkeypatch):
    """Tables of pairs are smaller where those of wide columns would take too much memory."""
    schema = schema_of(WIDTHS[3], 2)
    coded, sparse = both(schema, 900, rng)
    wide = coded.records.plan.pieces
    assert wide.counts <= MOST_COUNTS
    monkeypatch.setattr(codes, "MOST_COUNTS", wide.counts - 1)
    plan = replace(coded.records.plan)  # which has not cut its columns yet
    assert len(plan.pieces.rows) > len(wide.rows)
    assert plan.pieces.counts < wide.counts
    narrow = replace(coded.layout, records=replace(coded.records, plan=plan))
    moments = sparse.second_moments().tolist()
    assert narrow.second_moments(coded).tolist() == coded.second_moments().tolist() == moments


def test_records_are_packed_in_parts(rng, monkeypatch):
    schema = schema_of((3, 5, 4), 2)
    X, groups = codes_of(schema, 100, rng), rng.integers(0, 3, 100)
    whole = pack_codes(X, plan_of(X), groups, 4096)
    order = np.argsort(groups, kind="stable")
    for column, packed in zip(X.numbers, whole.numbers, strict=True):
        assert packed.tolist() == column[order].tolist()
    monkeypatch.setattr(codes, "PART", 7)
    parts = pack_codes(X, plan_of(X), groups, 4096)
    assert parts.codes.tolist() == whole.codes.tolist()
    assert parts.numbers.tolist() == whole.numbers.tolist()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize(("numbers", "joint"), [(0, 1024), (2, 256), (3, 16)])
def test_moves_are_those_of_other_layouts(widths, loss, numbers, joint, rng):
    """In one pass where steps are few, by the records of each level, or as candidates."""
    schema = schema_of(widths, numbers, first=1)
    coded, sparse = both(schema, 2500, rng, loss, joint)
    d = schema.width
    every = np.tile(np.arange(d + 1), 2)
    some = rng.integers(0, d + 1, 60)
    two = np.repeat([50.0, -50.0], d + 1)
    cases = [(every, two, 0.1), (every, 40 * two, 400.0), (some, two[:1].repeat(60), 0.1),
             (some, rng.integers(-999, 999, 60).astype(float), 1.0)]  # fmt: skip
    w = np.rint(rng.normal(0, 200, d + 1))
    passes = set()
    for coords, steps, farther in cases:
        passes.add(coded._in_one_pass(w, coords, wrap32(steps), farther))
        one, other = (rows.moved_losses(w, coords, steps, farther) for rows in (coded, sparse))
        assert one.tolist() == other.tolist()
        P = np.tile(w, (len(coords), 1))
        P[np.arange(len(coords)), coords] += steps
        assert one.tolist() == coded.losses(P).tolist()
    assert passes == {True, False} or d < 30


def test_changes_are_moved_before_they_overflow(rng):
    """Large steps of records that all share a bin: their changes do not fit in 32 bits."""
    schema = schema_of((2, 2))
    n, step = 200_000, 90.0 * 1024
    X = Codes(schema.groups, [np.zeros(n, np.uint8)] * 2, [], [], (n, 4))
    rows = LinearRows(pack_codes(X, plan_of(X), np.zeros(n, int), 4096), schema,
                      LossGrid("logistic", 1.0, 12), 1)  # fmt: skip
    coords, steps = np.tile(np.arange(5), 6), np.repeat([step, -step], 15)
    w = np.zeros(5)
    assert rows._in_one_pass(w, coords, wrap32(steps), 91.0)
    assert n * 90 * 2**12 > 2**31
    moved = rows.moved_losses(w, coords, steps, 91.0)
    touched = np.isin(coords, (0, 2, 4))  # the levels that all records have, and the intercept
    same = rows.losses(w[None])[0]
    assert (moved[~touched] == same).all()
    assert (moved[touched & (steps < 0)] == n * 90 * 2**12).all()
    assert (moved[touched & (steps > 0)] == 0).all()


@pytest.mark.parametrize("widths", WIDTHS[2:], ids=str)
@pytest.mark.parametrize("radius", [0.3, math.inf])
def test_smooth_losses_are_those_of_other_layouts(widths, radius, rng):
    schema = schema_of(widths, 3)
    coded, sparse = both(schema, 800, rng)
    numbers = np.array(sorted(schema.shares)[:2])
    smoothing = Smoothing(0.0, numbers, radius)
    w = rng.integers(-(2**40), 2**40, (2, schema.width + 1))
    bits = np.array([42, 62])
    for fine in (False, True):
        slopes = [rows.slopes(smoothing, w, bits, fine) for rows in (coded, sparse)]
        assert (whole(slopes[0]) == whole(slopes[1])).all()
    bends = [rows.bends(smoothing, w, bits, w[:1]) for rows in (coded, sparse)]
    assert (whole(bends[0]) == whole(bends[1])).all()
    radii = np.array([0.1, 0.5, 1.0])
    assert (coded.size_counts(numbers, radii) == sparse.size_counts(numbers, radii)).all()


def test_answers_are_those_of_the_naive_twins(rng):
    schema = schema_of((3, 4, 2), 2)
    coded, _ = both(schema, 60, rng, "hinge", joint=8)
    rows, labels = [], []
    for run, block in coded.records.labelled_blocks(25):
        rows += block.toarray().tolist()
        labels += [int(run.flip == 0)] * block.shape[0]
    a, w = schema.grid.a, np.rint(rng.normal(0, 300, schema.width + 1))
    z = [reference.margin(x, list(map(int, w)), a) for x in rows]
    losses = [reference.hinge_integer(m, y, schema.grid) for m, y in zip(z, labels, strict=True)]
    assert coded.losses(w[None]).tolist() == [sum(losses)]
    assert coded.second_moments().tolist() == reference.second_moments(rows, a)
    residuals = [reference.hinge_residual(m, y, 2000, schema.grid, 4096)
                 for m, y in zip(z, labels, strict=True)]  # fmt: skip
    near = [math.floor(r + Fraction(1, 2)) for r in residuals]
    twin = reference.gradient(rows, labels, near, a)
    assert coded.gradient(w, 2000).tolist() == twin


def test_threads_tiles_and_many_records_change_nothing(rng):
    """More records than the 32-bit sums of a bin can take before they are moved."""
    schema = schema_of((3, 50), 1)
    n = 300_000
    coded, _ = both(schema, n, rng)
    coded.records.codes[: n // 2] = coded.records.codes[0]  # one bin gets most
    two = LinearRows(coded.records, schema, coded.loss, 2)
    P = np.rint(rng.normal(0, 3000, (33, schema.width + 1)))
    one, other = coded.gradient(P[0], 4096), two.gradient(P[0], 4096)
    assert one.tolist() == other.tolist()
    levels = coded.records.plan.levels(coded.records.codes)
    assert two.losses(P).tolist() == coded.losses(P).tolist()
    assert two.second_moments().tolist() == coded.second_moments().tolist()
    counts = np.diag(two.second_moments())[: schema.width] >> 2 * schema.grid.a
    found = [
        np.bincount(level, minlength=width) for level, width in zip(levels, (3, 50), strict=True)
    ]
    expected = np.insert(np.concatenate(found), next(iter(schema.shares)), 0)
    place = next(iter(schema.shares))
    assert np.delete(counts, place).tolist() == np.delete(expected, place).tolist()


# ---------------------------------------------------------------------------------- around packing


def test_tables_are_joined_and_pickled(rng):
    schema = schema_of((3, 9, 2), 1)
    some = [both(schema, n, rng)[0] for n in (5, 70, 1)]
    joined = some[0].joined(some[1:])
    assert joined.n_records == 76
    P = np.rint(rng.normal(0, 300, (5, schema.width + 1)))
    assert joined.losses(P).tolist() == sum(rows.losses(P) for rows in some).tolist()
    again = pickle.loads(pickle.dumps(joined))
    assert again.losses(P).tolist() == joined.losses(P).tolist()
    assert again.records.plan == joined.records.plan


def test_classes_flip_runs_and_nothing_is_packed_again(rng):
    schema = schema_of((3, 9, 2), 1)
    X, groups = codes_of(schema, 90, rng), rng.integers(0, 3, 90)
    records = pack_codes(X, plan_of(X), groups, 4096)
    rows = LinearRows(records, schema, LossGrid("logistic", 1.0, 12))
    P = np.rint(rng.normal(0, 300, (5, schema.width + 1)))
    rows.moved_losses(P[0], np.arange(4), np.ones(4), 1.0)
    for head in range(3):
        view = rows.against(head)
        assert view.records.codes is records.codes
        lone = LinearRows(pack_codes(X, plan_of(X), (groups != head).astype(int), 4096), schema,
                          rows.loss)  # fmt: skip
        assert view.losses(P).tolist() == lone.losses(P).tolist()
        moved = [one.moved_losses(P[0], np.arange(4), np.ones(4), 1.0) for one in (view, lone)]
        assert moved[0].tolist() == moved[1].tolist()


def test_numbers_are_clipped_as_in_other_layouts(rng):
    coded, sparse = both(schema_of((3, 9), 3), 200, rng)
    numbers = np.array(sorted(coded.records.plan.places))
    found = [clipped(rows.records, numbers, 2000) for rows in (coded, sparse)]
    assert isinstance(found[0], CodeRecords)
    tables = [[block.toarray() for _, block in records.labelled_blocks(64)] for records in found]
    assert all((a == b).all() for a, b in zip(*tables, strict=True))


def test_schemas_are_packed_as_codes_and_boxes_are_not(rng):
    people = {"sex": ["f", "m", "f"], "age": [20.0, 50.0, 90.0]}
    schema = Schema({"sex": Categorical(["f", "m"]), "age": Numeric(0, 100)})
    objective = LinearObjective(people, [0, 1, 1], domain=schema)
    assert isinstance(objective._sums.records.layout, CodeLayout)
    P = schema.snap(rng.normal(0, 1, (7, 4)))
    for layout in ("dense", "sparse"):
        other = LinearObjective(people, [0, 1, 1], domain=schema, layout=layout)
        assert not isinstance(other._sums.records.layout, CodeLayout)
        assert other.scores(P).tolist() == objective.scores(P).tolist()


@pytest.mark.parametrize("joint", [1, 2.5, "many"])
def test_a_joint_column_has_some_bins(joint):
    with pytest.raises(DeclarationError, match=r"joint .* must be a whole number of at least 2"):
        LinearObjective([[0.0]], [1], domain=schema_of((2,)), joint=joint)
