"""A record is read by itself: what it becomes depends on it and on the declarations alone."""

from __future__ import annotations

import io
import math
import warnings
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from makers.entrances import EXACT, INFERRING, UnableError, cells, made

from privfit import (
    Box,
    Categorical,
    HashWords,
    KMeans,
    L2Ball,
    Ledger,
    LogisticRegression,
    Numeric,
    Schema,
)
from privfit._kernels.random import BitSource
from privfit.domains import Domain
from privfit.domains.frames import numbers_of
from privfit.domains.reading import (
    LevelReader,
    NumberReader,
    Odd,
    canonical,
    positions,
    raw_numbers,
)
from privfit.estimators.common import read_labels, read_table
from privfit.records.packing import CHUNK_BYTES, check_labels, check_records
from privfit.searches.sample_aggregate import _tables, aggregate, block_sums

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

SCHEMA = Schema(
    {
        "code": Categorical([1, 2, 0.1], other=True),
        "word": Categorical(["a", "NA", "01", "\u00e9", date(2020, 1, 1)], other=True),
        "size": Numeric(0, 8, fill=2),
        "cut": Numeric(-1, 1, bins=[0, 0.7], fill=0.75),
    },
    missing=("", "NA", "7"),
)
CLEAN = st.tuples(
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["a", "NA", "01", "\u00e9", "2020-01-01", "z"]),
    st.sampled_from([0, 1, 3, 7, 8]),
    st.sampled_from([0.25, 0.7, -0.5, 0.0]),
)
ODD = [
    None, math.nan, math.inf, -math.inf, 1e308, -1e308, 2**53, 2**53 + 1, 2**200, -(10**400), True,
    False, 1, 1.0, -0.0, 0.1, 0.7, np.float32(0.1), np.float64(0.7), np.int8(2), np.bool_(True),
    "x", "", "NA", "?", "01", "1", "1.0", "1e0", "1e+16", "1e400", "-0", "true", "FALSE", "+1",
    " 2 ", "1_0", "\u0663", "\u0661", "inf", "-Infinity", "nan", "0x1", "7", " 7", 7, 7.0, ".5",
    "5.", "\n1", "e\u0301", "\u00e9", "\ud800", "\0", "a\0", 'a"b', "a,b", "a\nb", "x" * 10_000,
    "9" * 5_000, b"x", b"a", b"1", b"\xff", bytearray(b"a"), date(2020, 1, 1),
    datetime(2020, 1, 1), datetime(2020, 1, 1, 12, 30, 0, 500_000),
    datetime(2020, 1, 1, tzinfo=timezone.utc), timedelta(days=1), np.datetime64("2020-01-01T00"),
    np.datetime64("NaT", "s"), np.timedelta64(1, "s"), pd.Timestamp("2020-01-01"), pd.NaT, pd.NA,
    "2020-01-01 00:00:00", "2020-01-01T00:00", "2020-01-01 12:30:00.500+00:00", Decimal("0.1"),
    Decimal("2.0"), Decimal("NaN"), Decimal("1e999"), Fraction(1, 10), 1 + 2j, [1], [], ["a", [2]],
    (1,), {"a": 1}, {1}, object(), np.array([1, 2]), np.array(2), np.ma.masked, ..., int,
]  # fmt: skip
ANYTHING = st.sampled_from(ODD) | st.text() | st.floats() | st.integers() | st.binary()
TABLES = st.lists(CLEAN, min_size=2, max_size=6)


def coded(rows) -> np.ndarray:
    return np.array([reference.schema_record(row, SCHEMA) for row in rows])


def replaced(rows, i, record):
    return [*rows[:i], record, *rows[i + 1 :]]


def others(table, i):
    return np.delete(table, i, axis=0)


def check_sentence(error, *sentences) -> None:
    """A refusal says one of these, and shows no cell."""
    assert str(error).startswith(sentences)


def check_contract(entrance, rows, i, record) -> np.ndarray:
    """Every other row is what it was, and what the specification says; the new row is returned."""
    i %= len(rows)
    try:
        before, after = entrance(SCHEMA, rows), entrance(SCHEMA, replaced(rows, i, record))
    except UnableError:
        return assume(False)
    expected = coded(rows)
    assert others(before, i).tobytes() == others(after, i).tobytes()
    assert np.array_equal(others(after, i), others(expected, i))
    return after[i]


quick = settings(
    max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip
record = st.tuples(ANYTHING, ANYTHING, ANYTHING, ANYTHING)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", EXACT)
def test_one_record_changes_no_other_and_is_read_as_specified(name):
    @quick
    @given(TABLES, st.integers(0, 5), record)
    def contract(rows, i, new):
        mine = check_contract(EXACT[name], rows, i, new)
        assert mine.tolist() == reference.schema_record(new, SCHEMA)

    contract()


@pytest.mark.few(4)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_each_odd_cell_is_read_as_specified_and_touches_no_other(odd):
    rows = [(1, "a", 3, 0.25), (2, "z", 7, 0.7)]
    for place in range(4):
        new = tuple(odd if j == place else cell for j, cell in enumerate(rows[0]))
        for name in ("dict of lists", "list of lists", "object array", "pandas objects"):
            mine = check_contract(EXACT[name], rows, 0, new)
            assert mine.tolist() == reference.schema_record(new, SCHEMA), name


@pytest.mark.few(1)
@pytest.mark.parametrize("name", INFERRING)
def test_what_a_library_makes_of_a_column_changes_no_other_record(name):
    """One cell may turn numbers into floats, texts or objects; the other rows stay as they are."""

    @quick
    @given(TABLES, st.integers(0, 5), st.integers(0, 3), ANYTHING, CLEAN)
    @example([(1, "a", 1, 0.25), (2, "z", 3, 0.7)], 0, 0, "x", (1, "a", 1, 0.25))
    @example([(1, "a", 1, 0.25), (2, "z", 3, 0.7)], 0, 2, None, (1, "a", 1, 0.25))
    @example([(1, "a", 1, 0.25), (2, "z", 3, 0.7)], 0, 3, "x", (1, "a", 1, 0.25))
    def contract(rows, i, place, odd, clean):
        if (
            name == "pandas from csv"
        ):  # pandas.read_csv itself reads these as missing, or as numbers
            rows = [(a, "z" if b in ("NA", "01") else b, c, d) for a, b, c, d in rows]
        new = tuple(odd if j == place else cell for j, cell in enumerate(clean))
        check_contract(INFERRING[name], rows, i, new)

    contract()


def old_way(schema, rows):
    """How columns were read before: numpy finds one type for all records of a list."""
    coded = np.zeros((len(rows), schema.width), dtype=np.int16)
    for i, (part, column) in enumerate(schema._parts()):
        raw = np.asarray([row[i] for row in rows])
        if isinstance(column, Categorical):
            place = {value: j for j, value in enumerate(column.values)}
            hot = [place.get(value, len(place)) for value in raw.tolist()]
            coded[np.arange(len(rows)), part.start + np.array(hot)] = 4096
        else:
            numbers = pd.to_numeric(pd.Series(raw), errors="coerce").to_numpy(dtype=float)
            share = column.share(np.where(np.isnan(numbers), column.fill, numbers))
            if column.bins:
                coded[np.arange(len(rows)), part.start + column.place(share)] = 4096
            else:
                coded[:, part.start] = share * 4096
    return coded


def test_the_contract_finds_a_reader_that_finds_one_type_for_all_records():
    @settings(quick, max_examples=200, database=None, derandomize=True)
    @given(TABLES, st.integers(0, 5), st.sampled_from(["x", True, None, "1"]))
    def contract(rows, i, odd):
        rows = [
            (code, "a", 1, 0.25) for code, *_ in rows
        ]  # plain records, read right by themselves
        check_contract(old_way, rows, i, (odd, "a", 1, 0.25))

    with pytest.raises(AssertionError):
        contract()


# ---------------------------------------------------------------------------- what was wrong once


def test_one_text_among_a_thousand_numbers_moves_one_row():
    schema = Schema({"a": Categorical([1, 2], other=True)})
    column = [1] * 500 + [2] * 500
    before = schema.encode({"a": column}).toarray()
    for odd in ("x", b"x", True, None, 1.5, [1]):
        after = schema.encode({"a": [odd, *column[1:]]}).toarray()
        assert np.array_equal(before[1:], after[1:])
    assert before.argmax(axis=1).tolist() == [0] * 500 + [1] * 500


def test_a_frame_of_read_csv_that_one_cell_turned_into_text_reads_the_same():
    schema = Schema({"a": Categorical([1, 2], other=True), "b": Numeric(0, 9, fill=0)})
    lines = [f"{1 + i % 2},{i % 10}" for i in range(1000)]
    numbers = pd.read_csv(io.StringIO("\n".join(["a,b", *lines])))
    texts = pd.read_csv(io.StringIO("\n".join(["a,b", "x,y", *lines[1:]])))
    floats = pd.read_csv(io.StringIO("\n".join(["a,b", ",", *lines[1:]])))
    assert [numbers["a"].dtype.kind, floats["a"].dtype.kind] == ["i", "f"]
    assert pd.api.types.is_string_dtype(texts["a"].dtype)
    expected = schema.encode(numbers).toarray()[1:]
    for frame in (texts, floats):
        assert np.array_equal(schema.encode(frame).toarray()[1:], expected)


def test_huge_values_in_a_narrow_range_are_clipped_without_a_warning():
    schema = Schema({"a": Numeric(1, 1.5)})
    raw = [1e308, -1e308, 2**200, -(2**200), 10**400, math.inf, "1e999", np.float64(1e300)]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for column in (raw, cells(raw), np.array([1e308, -1e308] * 4)):
            high, low = schema.encode({"a": column}).toarray()[:2, 0].tolist()
            assert (high, low) == (4096, 0)


def test_twenty_thousand_ages_with_one_text_change_one_block():
    ages = np.random.default_rng(0).integers(18, 90, 20_000).tolist()
    bounds = Box(0, 128, 1)

    def total(records):
        middle = np.array([64.0])
        return block_sums(_tables(records), np.median, 100, bounds, middle, BitSource.of(3))

    whole, spoilt = total(ages), total(["x", *ages[1:]])
    assert whole != spoilt
    assert abs(whole - spoilt)[0] <= 1 << bounds.grid.a
    for form in (cells, pd.Series, pl.Series, pa.array, np.array):
        assert total(form(ages)) == whole
    for form in (cells, lambda made: pd.Series(made, dtype=object)):
        assert total(form(["x", *ages[1:]])) == spoilt
    assert 40 < aggregate(ages, np.median, (0, 120), 1.0, random_state=0).answer[0] < 70


def test_rows_of_lists_and_frames_become_blocks_by_themselves():
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    bounds = Box(0, 16, 2)

    def total(records):
        return block_sums(
            _tables(records), lambda block: block.mean(axis=0), 2, bounds, np.zeros(2),
            BitSource.of(1),
        ).tolist()  # fmt: skip

    expected = total(np.array(rows))
    frame = pd.DataFrame(rows, columns=["a", "b"])
    for table in (rows, frame, pl.DataFrame(frame), pa.Table.from_pandas(frame)):
        assert total(table) == expected
    assert total([[1.0], *rows[1:]]) != expected  # one block fails, the other counts


# ----------------------------------------------------------------------------- canonical texts


@quick
@given(ANYTHING, ANYTHING)
def test_two_cells_match_if_the_specification_says_so(one, other):
    mine, twin = (canonical(one), canonical(other)), reference.canonical_value
    odd = {Odd.MISSING: reference.MISSING, Odd.NOTHING: reference.NOTHING}
    for text, cell in zip(mine, (one, other), strict=True):
        assert odd.get(text, "") == (twin(cell) if isinstance(twin(cell), str) else "")
        if isinstance(text, str):
            assert canonical(text) == text
    if all(isinstance(text, str) for text in mine):
        assert (mine[0] == mine[1]) == (twin(one) == twin(other))


@quick
@given(ANYTHING)
def test_a_cell_of_a_numeric_column_is_read_as_specified(cell):
    expected = reference.number_of(cell, ("", "7"))
    got = NumberReader(("", "7")).numbers([cell])[0]
    assert math.isnan(got) if expected is None else got == float(expected)


@quick
@given(st.lists(st.floats(width=64) | st.integers(-(2**60), 2**60), min_size=1), st.data())
def test_arrays_of_numbers_are_read_like_lists_of_them(values, data):
    numbers = np.array(values, dtype=np.float64)
    declared = data.draw(st.lists(st.sampled_from(values), max_size=4))
    known: dict[str, int] = {}
    for value in declared:
        text = canonical(value)
        if isinstance(text, str):
            known.setdefault(text, len(known))
    reader = LevelReader(known)
    assert reader.codes(numbers).tolist() == reader.codes(numbers.tolist()).tolist()
    tokens = [text for text in known if isinstance(text, str)]
    one, other = (NumberReader(tokens).numbers(v) for v in (numbers, numbers.tolist()))
    assert one.tobytes() == other.tobytes()


@quick
@given(st.text() | st.sampled_from([odd for odd in ODD if isinstance(odd, str)]))
def test_one_text_is_read_like_a_column_of_it(text):
    levels = LevelReader(positions(["a", 1, "x", 0.5], "values"))
    assert [levels.place(text)] == levels.codes([text]).tolist()
    reader = NumberReader(("", "7"))
    assert np.array_equal([reader.number(text)], reader.numbers([text]), equal_nan=True)


def test_moments_are_alike_in_every_library_and_unit():
    noon = datetime(2020, 1, 1, 12, 30)
    levels = LevelReader(positions([noon, "2020-01-02"], "values"))
    days = [noon, datetime(2020, 1, 2), None]
    aware = [None if day is None else day.replace(tzinfo=timezone.utc) for day in days]
    zoned = LevelReader(positions([aware[0], aware[1]], "values"))
    for unit in ("s", "ms", "us", "ns"):
        forms = [
            np.array(days, dtype=f"M8[{unit}]"), pd.Series(np.array(days, dtype=f"M8[{unit}]")),
            pa.array(days, pa.timestamp(unit)),
        ]  # fmt: skip
        zones = [pa.array(aware, pa.timestamp(unit, "Asia/Tokyo"))]
        if unit != "s":
            forms.append(pl.Series(days, dtype=pl.Datetime(unit)))
            zones.append(pl.Series(aware, dtype=pl.Datetime(unit, "Europe/Paris")))
        for form in (days, *forms):
            assert levels.codes(form).tolist() == [0, 1, -1]
            assert np.isnan(raw_numbers(form)).all()
        for form in (aware, pd.Series(aware), *zones):
            assert zoned.codes(form).tolist() == [0, 1, -1]
    days = LevelReader(positions(["2020-01-01"], "values"))
    for unit in ("Y", "M", "D", "h", "m"):
        assert days.codes(np.array(["2020"], dtype=f"M8[{unit}]")).tolist() == [0]


COLUMNS = {
    "masked array": np.ma.MaskedArray([1, 2, 9], [0, 1, 0]),
    "masked objects": np.ma.MaskedArray(cells([1, 2, 9]), [0, 1, 0]),
    "Int64": pd.Series([1, None, 9], dtype="Int64"),
    "Float64": pd.array([1, None, 9], dtype="Float64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, math.nan, 9.0])),
    "categories": pd.Categorical([1, None, 9]),
    "an index": pd.Index(["1", None, "9"]),
    "Arrow decimals": pa.array([Decimal(1), None, Decimal(9)]),
    "Arrow bytes": pa.array([b"1", None, b"9"]),
    "Arrow chunks": pa.chunked_array([["1"], [None, "9"]]),
    "Arrow truth": pa.array([True, None, False]),
    "Arrow scalars": list(pa.array([1, None, 9])),
    "Polars decimals": pl.Series([Decimal(1), None, Decimal(9)]),
    "Polars enum": pl.Series(["1", None, "9"], dtype=pl.Enum(["9", "1"])),
    "Polars truth": pl.Series([True, None, False]),
    "a memory view": memoryview(np.array([1.0, math.nan, 9.0])),
}

if hasattr(pa, "string_view"):  # from 16 on
    COLUMNS["Arrow views"] = pa.array(["1", None, "9"]).cast(pa.string_view())


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_kind_are_read(name):
    column, last = COLUMNS[name], 0.0 if "truth" in name or name == "boolean" else 9.0
    assert LevelReader(positions([1], "values")).codes(column).tolist() == [0, -1, -1]
    assert np.array_equal(NumberReader().numbers(column), [1.0, math.nan, last], equal_nan=True)


def test_an_arrow_text_that_is_no_utf8_is_read_by_its_good_bytes():
    bad = pa.Array.from_buffers(
        pa.string(), 2,
        [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xffb")],
    )  # fmt: skip
    assert LevelReader(positions(["a", "\ufffdb"], "values")).codes(bad).tolist() == [0, 1]


def test_many_different_texts_do_not_fill_the_memory_of_a_reader():
    reader = LevelReader({"a": 0})
    assert (reader.codes([f"text {i}" for i in range(70_000)]) == -1).all()
    assert len(reader._seen) < 70_000
    assert reader.codes(["a", "text 69999", math.nan]).tolist() == [0, -1, -1]


def test_a_column_may_read_itself():
    class Own:
        def __len__(self):
            return 2

        def read_codes(self, reader):
            return [reader.place("1.0"), reader.place("")]

        def read_numbers(self, reader):
            return [reader.number(" 2 "), reader.number("")]

    schema = Schema({"a": Categorical([1], other=True), "b": Numeric(0, 4, fill=1)})
    got = schema.encode({"a": Own(), "b": Own()}).toarray()
    assert got.tolist() == [[4096, 0, 2048], [0, 4096, 1024]]


# ------------------------------------------------------------------------------- labels and texts

LABELS = {
    "list": list, "tuple": tuple, "objects": cells, "array": np.array, "pandas": pd.Series,
    "pandas objects": lambda y: pd.Series(y, dtype=object),
    "pandas categories": lambda y: pd.Series(y).astype("category"), "arrow": pa.array,
    "polars": pl.Series,
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LABELS)
def test_a_label_is_read_by_itself(name):
    @quick
    @given(st.lists(st.sampled_from([1, 2]), min_size=2, max_size=6), st.integers(0, 5), ANYTHING)
    @example([1, 2], 0, "x")
    @example([1, 2], 0, "2")
    def contract(y, i, odd):
        i %= len(y)
        try:
            labels = made(LABELS[name], replaced(y, i, odd))
        except UnableError:
            return
        expected = read_labels(LABELS[name](y), [1, 2], "fit")[0]
        assert expected.tolist() == [label - 1 for label in y]
        try:
            got = read_labels(labels, [1, 2], "fit")[0]
        except ValueError as error:
            check_sentence(error, "y has labels outside the declared classes; pass classes=[...]",
                           "y should be a 1d array with one label for each record")  # fmt: skip
        else:
            assert np.array_equal(others(got, i), others(expected, i))

    contract()


def test_labels_that_read_alike_are_not_two_classes():
    with pytest.raises(ValueError, match="classes must differ, but two of them read as '1'"):
        read_labels(["1"], ["1", "1.0"], "fit")
    with (
        pytest.raises(ValueError, match="classes must be labels of one kind"),
        pytest.warns(UserWarning, match="reads its classes from the private labels"),
    ):
        read_labels([0, "x", 1], None, "fit")


def test_labels_of_an_objective_are_read_by_themselves():
    for y in ([1, 0, 1], ["1", 0.0, True], cells([1, "false", "true"]), pa.array([1, 0, 1])):
        assert check_labels(y, 3).tolist() == [0, 1, 0]
        assert check_labels(y, 3, n_classes=2).tolist() == [1, 0, 1]
    assert check_labels([-1, 1.0, "1"], 3).tolist() == [1, 0, 0]


TEXTS = {"list": list, "array": np.array, "pandas": pd.Series, "arrow": pa.array,
         "polars": pl.Series, "an iterator": iter}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_by_itself(name):
    texts = ["win 500 now", "hello", "free", "", "hello hello"]
    words = HashWords(64)
    expected = words.transform(texts).toarray()
    assert np.array_equal(words.transform(TEXTS[name](texts)).toarray(), expected)
    for odd in (*ODD, "x" * 100_000):
        try:
            column = made(TEXTS[name], [*texts[:4], odd])
        except UnableError:
            continue
        try:
            got = words.transform(column).toarray()
        except ValueError as error:
            check_sentence(error, "texts must be str; decode bytes, and replace missing texts")
        else:
            assert np.array_equal(got[:4], expected[:4])


# ------------------------------------------------------------------------------- boxes and balls

NUMBERS = {
    "list of lists": lambda rows: [list(row) for row in rows],
    "list of tuples": list,
    "list of arrays": lambda rows: [cells(row) for row in rows],
    "objects": lambda rows: np.column_stack([cells(column) for column in zip(*rows, strict=True)]),
    "array": np.array,
    "texts": lambda rows: np.array([[str(cell) for cell in row] for row in rows]),
    "sparse": lambda rows: sp.csr_array(np.array(rows)),
    "sparse keys": lambda rows: sp.dok_array(np.array(rows)),
    "dict": lambda rows: {"a": [a for a, _ in rows], "b": [b for _, b in rows]},
    "pandas": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "pandas nullable": lambda rows: pd.DataFrame(rows, columns=["a", "b"]).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b"], orient="row", strict=False),
    "arrow": lambda rows: pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}),
    "structured": lambda rows: np.array(rows, dtype=[("a", object), ("b", float)]),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("domain", [Box(-1, 1), L2Ball(1.5)], ids=["box", "ball"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_record_of_numbers_is_read_by_itself_or_refused(name, domain):
    rows = [(0.5, -0.25), (1.0, 0.0), (-0.75, 2.0)]
    expected = domain.bind(2).quantise(np.array(rows))

    def read(table):
        by_estimators = read_table(None, table, domain)
        X, bound = check_records(table, domain, "fit")
        assert (X != by_estimators).sum() == 0
        quantised = next(block for _, block in bound.blocks(X, False, CHUNK_BYTES))
        return quantised.toarray() if sp.issparse(quantised) else quantised

    assert np.array_equal(read(NUMBERS[name](rows)), expected)
    for odd in ODD:
        try:
            table = made(NUMBERS[name], [(odd, 0.0), *rows[1:]])
        except UnableError:
            continue
        try:
            got = read(table)
        except (ValueError, TypeError) as error:
            check_sentence(
                error, "X must hold numbers; pass numbers, or declare a Schema", "X must be finite",
                "Input X contains", "Input contains", "must hold real numbers", "Complex data",
            )  # fmt: skip
        else:
            assert np.array_equal(got[1:], expected[1:])


def test_a_text_among_numbers_of_a_box_is_a_number_or_refuses_the_table():
    assert numbers_of([[1, "2"], [3.5, True]]).tolist() == [[1.0, 2.0], [3.5, 1.0]]
    for table in ([[1, "x"], [3, 4]], [[1, None], [3, 4]], [[1, 2], [3]], [[1, [2]], [3, 4]]):
        for read in (numbers_of, lambda X: read_table(None, X, None)):
            with pytest.raises(ValueError, match="X must hold numbers; pass numbers, or declare"):
                read(table)


# ----------------------------------------------------------------------------------- estimators


def frames():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, 300), "b": rng.integers(0, 3, 300)})
    return {
        "pandas": frame, "polars": pl.DataFrame(frame), "arrow": pa.Table.from_pandas(frame),
        "batch": pa.RecordBatch.from_pandas(frame), "records": frame.to_records(index=False),
        "dict": {name: frame[name].to_numpy() for name in frame},
        "lists": frame.astype(object).to_numpy().tolist(),
    }  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "domain",
    [Schema({"a": Numeric(-1, 1), "b": Categorical([0, 1, 2])}), Box([-1, 0], [1, 2])],
    ids=["schema", "box"],
)
def test_estimators_read_every_kind_of_table_as_it_is(domain):
    y = np.arange(300) % 2
    fits, centers = {}, {}
    for name, X in frames().items():
        made = LogisticRegression(1.0, 1e-6, domain=domain, classes=[0, 1], random_state=0)
        fits[name] = made.fit(X, y.tolist() if name == "lists" else y).coef_.tolist()
        made.predict(X)
        if isinstance(domain, Schema) or name != "lists":
            assert made.feature_names_in_.tolist() == ["a", "b"]
        model = KMeans(2, 1.0, domain=domain, random_state=0).fit(X)
        centers[name] = model.cluster_centers_.tolist()
        model.predict(X)
    assert all(fit == fits["pandas"] for fit in fits.values())
    assert all(found == centers["pandas"] for found in centers.values())


def test_a_refusal_costs_nothing_and_names_the_column_alone():
    ledger = Ledger(1.0, 1e-6)
    schema = Schema({"a": Numeric(0, 1), "b": Categorical(["u"])})
    model = LogisticRegression(
        1.0, 1e-6, domain=schema, classes=[0, 1], coding="declared", ledger=ledger
    )
    for column, wrong in (("a", [0.5, "s3cret"]), ("b", ["u", "s3cret"])):
        table = {"a": [0.5, 0.5], "b": ["u", "u"], column: wrong}
        with pytest.raises(ValueError, match=f"column '{column}' has ") as refused:
            model.fit(table, [0, 1])
        assert "s3cret" not in str(refused.value)
    assert ledger.spent.epsilon == 0


def test_tables_that_cannot_be_read_are_refused_with_the_remedy():
    schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    twice = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["a", "b", "a"])
    for X, says in [
        (
            pl.DataFrame({"a": [1.0], "b": [1.0]}).lazy(),
            r"X \(LazyFrame\) must be in memory; pass X",
        ),
        (twice, r"X has the columns \['a'\] more than once; rename or remove"),
        (pa.table({"a": [1.0]}), r"X lacks the declared columns \['b'\]"),
        ([1.0, 2.0], r"X \(list\) must have the 2 declared columns; pass a DataFrame"),
        (np.zeros((98_765, 3)), r"X \(ndarray\) must have the 2 declared columns"),
        ({"a": [1.0], "b": "x"}, r"X must have columns of one equal length"),
        ({"a": [1.0], "b": iter([1.0])}, r"X must have columns of one equal length"),
        ({"a": iter([1.0]), "b": iter([1.0])}, r"X must have columns of one equal length"),
        ({"a": 98.5, "b": "x"}, r"must have columns; pass one record as a list: \[record\]"),
        ({"a": None, "b": np.float32(1.0)}, r"X \(a dict of single values\) must have columns"),
    ]:
        with pytest.raises((ValueError, TypeError), match=says) as refused:
            schema.encode(X)
        assert "98" not in str(refused.value)


def test_short_and_strange_records_of_a_list_are_missing_from_there_on():
    schema = Schema({"a": Numeric(0, 4, fill=1), "b": Categorical(["u"], other=True)})
    full = [2, "u"]
    rows = [full, [2], [], None, 7, "uu", {"b": "u"}, np.array([2.0]), pd.Series(full), (2, "u", 3)]
    got = schema.encode(rows).toarray() / 4096
    known, number = got[:, 1].tolist(), got[:, 0].tolist()
    assert known == [1, 0, 0, 0, 0, 0, 1, 0, 1, 1]
    assert number == [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5]


# -------------------------------------------------------------------------- declared missing texts


def test_missing_texts_are_declared_kept_and_compared(tmp_path):
    columns = {"a": Numeric(0, 9, fill=3), "b": Categorical(["NA", "x"], other=True)}
    plain, schema = Schema(columns), Schema(columns, missing=["", "NA", "?", "-9"])
    assert plain.missing == ("",)
    assert plain != schema
    assert hash(plain) != hash(schema)
    path = tmp_path / "people.toml"
    for declared in (plain, schema):
        assert Domain.from_dict(declared.to_dict()) == declared
        path.write_text(declared.to_toml())
        assert Schema.from_toml(path) == declared
    older = {name: value for name, value in plain.to_dict().items() if name != "missing"}
    assert Domain.from_dict(older) == plain
    table = {"a": ["NA", "-9", -9.0, "9"], "b": ["NA", "?", "x", ""]}
    got = schema.encode(table).toarray()
    assert got[:, 0].tolist() == [1365, 1365, 1365, 4096]
    assert got[:, 1:].argmax(axis=1).tolist() == [0, 2, 1, 2]  # a declared category is not missing


def test_a_date_is_kept_as_its_text():
    column = Categorical([date(2020, 1, 1), np.datetime64("2020-01-02"), b"u", np.int64(3)])
    assert column.values == ("2020-01-01", "2020-01-02", "u", 3)
    assert Domain.from_dict(Schema({"a": column}).to_dict()) == Schema({"a": column})


ROWS_OF = {
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X,
    "columns first": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "float16": lambda X: X.clip(-9, 9).astype(np.float16),
    "big-endian": lambda X: X.astype(">f4"),
}


@pytest.mark.parametrize("kind", ROWS_OF)
@pytest.mark.parametrize("n", [1, 511, 512, 513, 1200])
def test_numbers_that_are_side_by_side_are_read_as_columns_are(kind, n):
    rng = np.random.default_rng(n)
    schema = Schema({f"x{i}": Numeric(-1, 2 + i, fill=i / 2) for i in range(3)})
    X = rng.normal(0, 2, (n, 3)) * 10.0 ** rng.integers(-6, 30, (n, 3))
    X[rng.random((n, 3)) < 0.1] = np.nan
    X[rng.random((n, 3)) < 0.1] = np.inf
    X = ROWS_OF[kind](X)
    found, columns = schema.read(X), {f"x{i}": np.array(X[:, i]) for i in range(3)}
    assert np.array_equal(found.numbers, schema.read(columns).numbers)
    assert found.shape == (n, 3)


def test_a_row_without_a_number_is_refused_unless_a_number_is_declared_for_it():
    X = np.array([[0.5, 0.5], [0.5, np.nan]])
    declared = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1, fill=0)})
    assert declared.read(X).numbers[1][1] == declared.read(np.array([[0.5, 0]])).numbers[1][0]
    with pytest.raises(ValueError, match="column 'b' has missing values or cells that are not"):
        Schema({"a": Numeric(-1, 1, fill=0), "b": Numeric(-1, 1)}).read(X)


def test_a_number_that_stands_for_a_missing_one_does_so_in_rows_too():
    schema = Schema({"a": Numeric(-1, 99, fill=0), "b": Numeric(-1, 99, fill=0)}, missing=["99"])
    found = schema.read(np.array([[99.0, 1.0], [0.0, 99.0]])).numbers
    assert found[0][0] == found[0][1] == found[1][1] != found[1][0]


HARD = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, -1e-45, 1.1754942e-38, 3.4028235e38, 1e39,
    np.finfo(np.float64).max, -np.finfo(np.float64).max, 2.0**31, -(2.0**63), 0.1, 0.7,
]  # fmt: skip
ORDERS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 3, axis=0), 2, axis=1)[::3, ::2],
    "one row": lambda X: np.broadcast_to(X[5:6], X.shape),
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


def hard_cells(low, span, more):
    """Numbers of either width near steps of a range, and between two numbers of float32."""
    near = low + span * np.arange(0, 33) / 32
    wide = np.array(
        [*HARD, *more, *near, *np.nextafter(near, np.inf), *np.nextafter(near, -np.inf)]
    )
    narrow = wide.astype(np.float32)
    narrow = np.concatenate([narrow, np.nextafter(narrow, np.float32(0))])
    middles = (narrow.astype(np.float64) + np.nextafter(narrow, np.float32(np.inf))) / 2
    return narrow, wide, middles, np.nextafter(middles, np.inf)


@given(
    st.floats(-(2**99), 2**99, width=32), st.floats(2**-20, 2**99),
    st.sampled_from([0, 7]), st.lists(st.floats(), max_size=8), st.sampled_from(sorted(ORDERS)),
)  # fmt: skip
def test_float32_is_read_as_the_same_numbers_in_float64_are(low, span, bins, more, order):
    high = low + span
    assume(np.float32(low) < np.float32(high))
    try:
        schema = Schema({"a": Numeric(low, high, bins, low), "b": Numeric(-1, 2, bins, 0.5)})
    except ValueError:  # too narrow for its bins
        assume(False)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = hard_cells(low, span, more)
        tables = [ORDERS[order](np.stack([one, one[::-1]], axis=1)) for one in parts]
        rounded = [X.astype(np.float32) for X in tables]
    for X, narrow in zip(tables, rounded, strict=True):
        found = schema.read(X)
        columns = {"a": np.array(X[:, 0]), "b": np.array(X[:, 1])}
        for same in (narrow, narrow.astype(np.float64), columns):
            other = schema.read(same)
            assert np.array_equal(found.numbers, other.numbers)
            assert np.array_equal(found.levels, other.levels)
        for numbers, x, column in zip(
            found.numbers, narrow.T, schema.columns.values(), strict=False
        ):
            start, end = np.array(column.coded_range, np.float32).astype(np.float64)
            x = np.where(np.isnan(x), np.float32(column.fill), x).astype(np.float64)
            share = (np.clip(x, start, end) - start) / (end - start)
            assert np.array_equal(numbers, (share * (1 << schema.grid.a)).astype(np.int16))
