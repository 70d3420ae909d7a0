"""Tables that are read once: every schema codes them as it codes the table itself."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.entrances import EXACT, INFERRING, UnableError

from privfit import Categorical, Numeric, Schema
from privfit.domains.hashing import BUCKETS
from privfit.domains.once import ReadLevels, ReadNumbers, ReadTexts, read_once

BLANK = Schema(
    {
        "cuts": Numeric(bins="auto"),
        "ranged": Numeric(-5, 40),
        "filled": Numeric(-5, 40, fill=2.5),
        "hashed": Categorical(),
        "named": Categorical(names="bought"),
        "declared": Categorical(["a", 1, "2020-01-01"], other=True),
        "known": Categorical(buckets=[3, 529, 774]),
    },
    missing=("", "?", "-1"),
)
CELL = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=4)
    | st.sampled_from(["?", "", "-1", -1, "1e400", "01", "1.0", "a", 1, "2020-01-01T00:00", 7.25,
                       -0.0, 1e-42, "nurse", b"a", [1], "x" * 300, math.inf])
)  # fmt: skip
CUT = st.lists(
    st.floats(-(2.0**99), 2.0**99, width=32).filter(lambda x: x == 0 or abs(x) > 1e-30),
    min_size=1, max_size=40, unique=True,
).map(sorted)  # fmt: skip


def bought(cuts: list[float], names: list[str], buckets: list[int]) -> Schema:
    """What could be bought of these columns: cuts within ranges, names and buckets."""
    within = [cut for cut in cuts if -5 < cut < 40] or [3.0]
    return Schema({
        "cuts": Numeric(bins=cuts, scale="log", missing=True),
        "ranged": Numeric(-5, 40, bins=within, scale="log", missing=True),
        "filled": Numeric(-5, 40, bins=within, fill=2.5),
        "hashed": Categorical(buckets=buckets),
        "named": Categorical(names, other=True),
        "declared": BLANK.columns["declared"],
        "known": BLANK.columns["known"],
    }, missing=BLANK.missing)  # fmt: skip


def same(here, there):
    pairs = zip([*here.levels, *here.numbers], [*there.levels, *there.numbers], strict=True)
    return here.shape == there.shape and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(CELL, max_size=8), CUT,
    st.lists(st.sampled_from(["1", "a", "01", "nurse", "2020-01-01"]), unique=True),
    st.lists(st.integers(0, BUCKETS - 1), unique=True).map(sorted),
)  # fmt: skip
def test_codes_are_those_of_the_table_bit_for_bit(cells, cuts, names, buckets):
    table = {name: list(cells) for name in BLANK.columns}
    schema, once = bought(cuts, names, buckets), read_once(BLANK, table)
    assert same(schema.read(table), schema.read(once))
    assert same(schema.read(table), schema.read(read_once(BLANK, once)))  # reading it again


ROWS = [(1.5,) * 7, ("nurse", 3, None, "nurse", "a", "a", "nurse"), (37,) * 7]
ENTRANCES = {name: coded for name, coded in {**EXACT, **INFERRING}.items() if "command" not in name}


class Once:
    """A schema that codes what was read, where the entrances expect one that reads."""

    columns = BLANK.columns

    def encode(self, table):
        schema = bought([-1.0, 3.0, 7.25], ["1", "a"], [3, 529, 774])
        here, there = (schema.encode(one) for one in (table, read_once(BLANK, table)))
        assert (here != there).nnz == 0
        return there


@pytest.mark.parametrize("name", ENTRANCES)
@pytest.mark.parametrize("cell", [None, math.nan, "x", "?", "1e400", 2**53 + 1, b"a", "", 1])
def test_one_record_changes_no_other_row_at_any_entrance(name, cell):
    """Law 1, and the codes of the table itself."""
    try:
        before = ENTRANCES[name](Once(), ROWS)
        after = ENTRANCES[name](Once(), [*ROWS[:2], (cell,) * 7])
    except UnableError:
        return
    assert np.array_equal(before[:2], after[:2])


def test_numbers_that_are_no_levels_are_the_same_as_well():
    table = {"x": ["1.5", 3, math.inf, -7, "0.1"]}
    schema = Schema({"x": Numeric(-5, 5)})
    assert same(schema.read(table), schema.read(read_once(schema, table)))


def test_what_is_refused_of_the_table_is_refused_of_what_was_read():
    for column, cell in ((Numeric(0, 1), None), (Categorical(["a"]), "b")):
        schema = Schema({"x": column})
        with pytest.raises(ValueError, match="column 'x' has"):
            schema.read(read_once(schema, {"x": [cell]}))


def test_cells_take_few_bytes_and_are_not_shown():
    table = pd.DataFrame({name: ["1", "2", None] for name in BLANK.columns})
    once = read_once(BLANK, table)
    kinds = {name: (type(column), column.cells.dtype.itemsize) for name, column in once.items()}
    assert kinds == {
        "cuts": (ReadNumbers, 4), "ranged": (ReadNumbers, 4), "filled": (ReadNumbers, 4),
        "hashed": (ReadLevels, 2), "named": (ReadTexts, 4), "declared": (ReadLevels, 1),
        "known": (ReadLevels, 2),
    }  # fmt: skip
    for column in once.values():
        assert repr(column) == f"<{type(column).__name__} of private records>"
    assert np.isnan(once["cuts"].numbers()[2])


def test_more_declared_values_than_two_bytes_hold():
    values = [f"v{i}" for i in range(40_000)]
    schema = Schema({"x": Categorical(values, other=True)})
    table = {"x": ["v39999", "v0", None]}
    assert same(schema.read(table), schema.read(read_once(schema, table)))
