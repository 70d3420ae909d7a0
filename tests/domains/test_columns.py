"""Columns are coded as their cells are, one by one: in every kind of memory, in blocks, by threads.

The twins are `canonical` for categories, and `Numeric.share` and `Numeric.place` for numbers.
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.entrances import cells

from privfit import Categorical, Numeric, Schema
from privfit._kernels.columns import KINDS, code_numbers, take
from privfit._kernels.objects import find_objects
from privfit.domains import texts as texts_module
from privfit.domains.chunks import chunks, objects
from privfit.domains.grid import whole_units
from privfit.domains.reading import (
    BLOCK,
    FIRST,
    LevelReader,
    NumberReader,
    canonical,
    positions,
    raw_numbers,
    through_float32,
)
from privfit.domains.texts import LONGEST, ROOM, UNSEEN, Texts, written_numbers

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")


class Label(str):
    """A text of a type of its own, which says that it equals everything."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


VALUES = [
    1,
    2,
    0.1,
    "a",
    "b" * 7,
    "c" * 8,
    "d" * 16,
    "e" * 17,
    "f" * 300,
    "\u00e9",
    "true color",
    "",
]
TEXTS = [
    "1", "1.0", "2", "0.1", "0.10000000149011612", "a", "b", "b" * 7, "c" * 8, "c" * 9, "d" * 16,
    "d" * 15, "e" * 17, "e" * 8 + "x" + "e" * 8, "f" * 300, "f" * 299 + "x", "\u00e9", "e\u0301",
    "true", "true color", "", " ", "a\0", "\0", "ab", "abc", "abd", "aXc", "x" * 40,
]  # fmt: skip
ODD = [
    None, math.nan, 1, 1.0, True, 2**200, 0.1, np.float32(0.1), np.str_("a"), Label("zzz"),
    Label("a"), b"a", b"\xff", bytearray(b"a"), "\ud800", Decimal(1), [1], ("a",), pd.NA, pd.NaT,
    object(), ...,
]  # fmt: skip
KNOWN = positions(VALUES, "values")


def codes_one_by_one(column):
    return [KNOWN.get(canonical(cell), -1) for cell in column]


def many(values, n, seed=0):
    return random.Random(seed).choices(values, k=n)


SIZES = [0, 1, FIRST - 1, FIRST, FIRST + 1, FIRST + BLOCK, FIRST + BLOCK + 1, 3 * BLOCK]


# ----------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("n", SIZES)
def test_objects_are_found_as_one_by_one(n):
    column = many([*TEXTS, *ODD], n)
    fresh = [text[:1] + text[1:] if type(text) is str else text for text in column]
    expected = codes_one_by_one(column)
    series = pd.Series(cells(column), dtype=object)
    for found in (column, tuple(column), cells(column), fresh, series):
        assert LevelReader(KNOWN).codes(found).tolist() == expected
    steps = cells([cell for cell in column for _ in range(2)])[::2]
    assert LevelReader(KNOWN).codes(steps).tolist() == expected


def arrow_forms(column):
    yield pa.array(column)
    yield pa.array(column, type=pa.large_string())
    yield pa.array([*TEXTS, *column, "z"]).slice(len(TEXTS), len(column))
    yield pa.array(column).dictionary_encode()
    yield pa.chunked_array([column[:700], [], column[700:]], type=pa.string())
    yield pl.Series(column, dtype=pl.String)
    yield pl.Series([*TEXTS, *column, "z"], dtype=pl.String).slice(len(TEXTS), len(column))
    if hasattr(pa, "string_view"):  # from 16 on
        views = pa.array([*TEXTS, *column, "z"]).cast(pa.string_view())
        yield views.slice(len(TEXTS), len(column))
        yield pa.array(column).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string_view()))
    yield pl.Series(column, dtype=pl.Categorical)
    yield pd.Series(column, dtype="string[pyarrow]")
    yield pd.Series(column, dtype="string[python]")
    if pd.Series(["a", "a\0"]).nunique() == 2:  # old versions of pandas make them one category
        yield pd.Series(column).astype("category")


@pytest.mark.parametrize("n", [1, FIRST, BLOCK + 9])
@pytest.mark.parametrize("missing", [False, True])
def test_texts_of_arrow_and_of_libraries_on_it_are_found_as_one_by_one(n, missing):
    column = many([*TEXTS, *[None] * missing], n)
    expected = codes_one_by_one(column)
    for form in arrow_forms(column):
        assert LevelReader(KNOWN).codes(form).tolist() == expected, form
        assert [None if cell is pd.NA else cell for cell in objects(form)] == column


@pytest.mark.parametrize("n", [0, 1, BLOCK + 9])
@pytest.mark.parametrize("form", [np.array, lambda x: np.array(x * 2).reshape(2, -1).T[:, 1]])
def test_texts_of_numpy_are_found_as_one_by_one(n, form):
    column = many([text for text in TEXTS if not text.endswith("\0")], n)
    found = form(column) if n else np.array([], dtype="U3")
    assert LevelReader(KNOWN).codes(found).tolist() == codes_one_by_one(column)
    assert LevelReader(KNOWN).codes(found.astype(found.dtype.newbyteorder())).tolist() \
        == codes_one_by_one(column)  # fmt: skip
    assert list(objects(found)) == column


def test_an_arrow_array_of_no_texts_is_read():
    for kind in (pa.string(), pa.large_string()):
        assert LevelReader(KNOWN).codes(pa.array([], type=kind)).tolist() == []
        assert LevelReader(KNOWN).codes(pa.nulls(3, kind)).tolist() == [-1] * 3
        assert np.isnan(NumberReader().numbers(pa.nulls(3, kind))).all()


def test_texts_beyond_what_a_cell_can_say_are_read(monkeypatch):
    from privfit.domains import chunks as module

    column = pa.array(["a", "b" * 7, "c" * 9, "c" * 8, None, "a", "1"])
    for longest in (1, 4, 8, 9, 12, 30):
        monkeypatch.setattr(module, "LONGEST", longest)
        expected = codes_one_by_one(column.to_pylist())
        texts = np.array(["" if x is None else x for x in column.to_pylist()])
        assert LevelReader(KNOWN).codes(texts).tolist() == codes_one_by_one(texts.tolist())
        for form in (column, pl.Series(column)):
            assert LevelReader(KNOWN).codes(form).tolist() == expected
            numbers = NumberReader().numbers(form)
            assert np.array_equal(numbers, [np.nan] * 6 + [1], equal_nan=True)


def test_a_dictionary_may_miss_values_and_codes():
    for kind in (pa.int8(), pa.uint8(), pa.int64(), pa.uint32()):
        codes = pa.array([0, 1, None, 2, 0], type=kind)
        column = pa.DictionaryArray.from_arrays(codes, pa.array(["a", None, "1"]))
        assert LevelReader(KNOWN).codes(column).tolist() == [KNOWN["a"], -1, -1, 0, KNOWN["a"]]
        assert list(objects(column)) == ["a", None, None, "1", "a"]
        numbers = NumberReader().numbers(column)
        assert np.array_equal(numbers, [np.nan, np.nan, np.nan, 1, np.nan], equal_nan=True)


def test_an_array_of_objects_may_have_holes():
    """Memory that numpy has not filled counts as None."""
    table, out = Texts({}), np.zeros(3, dtype=np.int64)
    holes = np.ndarray(3, dtype=object, buffer=None)
    assert find_objects(holes, 0, {None: 4}, *table.table, out) == 0
    assert out.tolist() == [4] * 3


def test_a_list_that_has_become_shorter_is_not_read_beyond_its_end():
    table, out = Texts({b"a": 0}), np.zeros(3, dtype=np.int64)
    assert find_objects(["a", "a"], 0, {}, *table.table, out) == 3
    assert out.tolist() == [UNSEEN] * 3


# ----------------------------------------------------------------------------------------- a table


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=20) | st.sampled_from([t.encode() for t in TEXTS])))
def test_a_table_of_texts_is_a_dict_of_bytes(some):
    first = dict(zip(some[::2], itertools.count(), strict=False))
    table, asked = Texts(first), []

    def entry(row, raw):
        asked.append(raw)
        return 1000 + len(raw)

    raw = b"".join(some)
    ends = np.cumsum([0, *map(len, some)])
    words = ends[:-1] << 32 | np.diff(ends) << 1
    expected = [first.get(one, 1000 + len(one)) for one in some]
    for _ in range(2):
        out = np.empty(len(some), dtype=np.int64)
        table.find(np.frombuffer(raw, dtype=np.uint8), words, entry, out)
        assert out.tolist() == expected
    new = set(some) - set(first)
    long = [one for one in new if len(one) > texts_module.LONGEST]  # are not remembered
    assert sorted(asked) == sorted([*new, *long])


def test_texts_with_one_hash_are_found():
    """Texts that differ in the middle alone, and more of them than are tried."""
    texts = [f"{'x' * 8}{i:08}{'y' * 8}".encode() for i in range(5000)]
    known = {text: i for i, text in enumerate(texts)}
    text, words = np.frombuffer(b"".join(texts), dtype=np.uint8), np.arange(5000) * 24 << 32 | 48
    out = np.empty(5000, dtype=np.int64)
    Texts(known).find(text, words, lambda row, raw: known[raw], out)
    assert out.tolist() == list(range(5000))


def test_a_full_neighbourhood_of_a_table_loses_no_text(monkeypatch):
    monkeypatch.setattr(texts_module, "SLOTS", 2)
    table = Texts({})
    table.table[0][:] = [0, 0, 7 << 32 | 2, 5]  # other texts everywhere
    out = np.empty(2, dtype=np.int64)
    words = np.array([0 << 32 | 2, 1 << 32 | 2])
    table.find(np.frombuffer(b"ab", dtype=np.uint8), words, lambda row, raw: row, out)
    assert out.tolist() == [0, 1]


def test_a_table_remembers_so_many_texts_and_no_long_ones():
    table, asked = Texts({b"known": 7}), []

    def look_up(texts):
        ends = np.cumsum([0, *map(len, texts)])
        out = np.empty(len(texts), dtype=np.int64)
        table.find(
            np.frombuffer(b"".join(texts), dtype=np.uint8), ends[:-1] << 32 | np.diff(ends) << 1,
            lambda row, raw: asked.append(raw) or len(raw), out,
        )  # fmt: skip
        return out.tolist()

    texts = [b"%d" % i for i in range(ROOM + 50)]
    assert look_up(texts) == [len(text) for text in texts]
    asked.clear()
    assert look_up(texts) == [len(text) for text in texts]
    assert 50 <= len(asked) < 50 + ROOM // 100
    long = b"x" * (LONGEST + 1)
    assert look_up([long, b"known"]) == look_up([long, b"known"]) == [len(long), 7]
    assert asked[-2:] == [long] * 2


def test_threads_share_a_table():
    column = pa.array([str(i % 5000) for i in range(20_000)])
    reader = LevelReader(positions(range(0, 5000, 2), "values"))
    expected = [i % 5000 // 2 if i % 2 == 0 else -1 for i in range(20_000)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: reader.codes(column).tolist(), range(16)))
    assert all(one == expected for one in found)


def test_a_declaration_keeps_no_cell():
    declared = Categorical(["a"], other=True)
    Schema({"x": declared}).encode({"x": ["a", "secret", "\u00e9 secret"]})
    assert b"secret" not in pickle.dumps(declared)
    assert pickle.loads(pickle.dumps(declared)) == declared == Categorical(["a"], other=True)


# --------------------------------------------------------------------------------------- numbers

WHOLE = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
NUMBERS = np.array(
    [0, 1, 2, 3, 7, 8, 9, 100, 127, 0.1, 0.25, -1, -0.0, 2.5, 1e30, -1e300, np.inf, -np.inf, np.nan]
)


def of_kind(kind, n=1500):
    drawn = np.random.default_rng(0).choice(NUMBERS, n)
    if np.dtype(kind).kind in "iub":
        drawn = np.nan_to_num(np.clip(drawn, 0, 120)).round()
    with np.errstate(over="ignore"):
        return drawn.astype(kind)


def layouts(column):
    yield column
    yield np.repeat(column, 3)[::3]
    yield column[::-1][::-1]
    yield column.astype(column.dtype.newbyteorder())
    packed = np.empty(len(column), dtype=[("", "i1"), ("x", column.dtype)])  # not aligned
    packed["x"] = column
    yield packed["x"]
    still = column.copy()
    still.setflags(write=False)
    yield still


COLUMNS = [
    Numeric(0, 8, fill=2), Numeric(-1, 1, bins=[0, 0.25, 0.7], fill=0.75), Numeric(0, 100, bins=1),
    Numeric(0.1, 100, bins=7, fill=-5), Numeric(0, 1000, bins=400, fill=1e9), Numeric(2, 2.01),
    Numeric(0, 256, bins=[*np.linspace(0.1, 255.9, 300)], fill=0),
]  # fmt: skip


def twin(numbers, column, a):
    """The bins or units of numbers, by whole arrays of numpy."""
    numbers = through_float32(numbers)
    fill = math.nan if column.fill is None else through_float32(column.fill)
    share = column.share(np.where(np.isnan(numbers), fill, numbers))
    return column.place(share) if column.bins else whole_units(share, 2.0**-a)


@pytest.mark.parametrize("kind", [*WHOLE, "b1", "f2", "f4", "f8", "g"])
@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_numbers_of_every_kind_are_coded_as_by_numpy(kind, column):
    numbers = of_kind(kind)
    if column.fill is None:
        numbers = numbers[~np.isnan(numbers)]
    schema = Schema({"x": column})
    for laid in layouts(numbers):
        [got] = [*schema.read({"x": laid}).levels, *schema.read({"x": laid}).numbers]
        assert got.tolist() == twin(numbers.astype(np.float64), column, 12).tolist()


@pytest.mark.parametrize("kind", [*WHOLE, "b1", "f2", "f4", "f8", "g"])
@pytest.mark.parametrize("values", [[], [0], [0.1, 7], [1, 2, 100], [3, -1, 8, 0.25, 127, 9]])
def test_numbers_of_every_kind_are_found_as_one_by_one(kind, values):
    numbers, known = of_kind(kind), positions(values, "values")
    expected = [known.get(canonical(x), -1) for x in numbers.astype(np.float64).tolist()]
    for laid in layouts(numbers):
        assert LevelReader(known).codes(laid).tolist() == expected
    hidden = np.arange(len(numbers)) % 3 == 0
    masked = LevelReader(known).codes(np.ma.MaskedArray(numbers, hidden))
    assert masked.tolist() == np.where(hidden, -1, expected).tolist()


@settings(max_examples=150, deadline=None)
@given(
    st.floats(-1e6, 1e6, width=32),
    st.floats(0.0009765625, 1e6, width=32),
    st.integers(1, 70) | st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40, unique=True),
)
def test_numbers_beside_a_cut_are_in_the_bin_that_numpy_finds(low, width, bins):
    """Every float32 around each cut, where the order of operations and their rounding matter."""
    try:
        cuts = bins if isinstance(bins, int) else [low + width * b for b in sorted(bins)]
        column = Numeric(low, low + width, bins=cuts)
    except ValueError:  # too narrow for float32, or two cuts that are one number
        return
    steps = (
        np.arange(1, column.width) / column.width * width + low if isinstance(cuts, int) else cuts
    )
    near = np.asarray([low, low + width, *steps], dtype=np.float32)
    around = [near]
    for direction in (-np.inf, np.inf):
        x = near
        for _ in range(3):
            x = np.nextafter(x, np.float32(direction))
            around.append(x)
    numbers = np.concatenate(around).astype(np.float64)
    got = Schema({"x": column}).read({"x": numbers}).levels[0]
    assert got.tolist() == twin(numbers, column, 12).tolist()


@pytest.mark.parametrize("n", [1, 511, 512, 513])
@pytest.mark.parametrize("cuts", [0, 1, 31, 63])
def test_a_kernel_codes_numbers_as_its_twin(n, cuts, rng):
    numbers = rng.normal(0, 1, n)
    numbers[rng.random(n) < 0.1] = np.nan
    cut = np.sort(rng.normal(0, 1, cuts)).astype(np.float32)
    for size in (1, 2, 4, 8):
        out = np.empty((n, size), dtype=np.uint8)
        some = code_numbers(numbers, KINDS["f8"], cut, -1.0, 1.5, 100.0, 3, out)
        expected = [reference.code_number(x, cut, -1.0, 1.5, 100, 3) for x in numbers.tolist()]
        assert out.view(f"i{size}").ravel().tolist() == expected
        assert some == bool(np.isnan(numbers).any())


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("values", [0, 3, 200, 300])
def test_a_kernel_takes_entries_as_its_twin(kind, size, values, rng):
    entries = rng.integers(-1, 120, values)
    wide = np.clip([-1, 0, 1, values - 1, values, 127, 255, 2**31], *limits(kind)).astype(kind)
    for codes in (np.tile(wide, 150), np.tile(wide, 150)[::3], wide[:3], wide[:0]):
        out = np.empty((len(codes), size), dtype=np.uint8)
        some = take(codes, KINDS[kind], np.append([-1], entries), 7, out)
        expected = [reference.taken(code, entries.tolist(), 7) for code in codes.tolist()]
        assert out.view(f"i{size}").ravel().tolist() == expected
        assert some == any(reference.taken(c, entries.tolist(), -9) == -9 for c in codes.tolist())


def limits(kind):
    return np.iinfo(kind).min, min(np.iinfo(kind).max, 2**40)


NUMERIC_TEXTS = [
    "1",
    " 2 ",
    "+3",
    "0.1",
    "1e400",
    "9" * 50,
    "x",
    "",
    "true",
    "7",
    "07",
    "inf",
    "\u0661",
]


@pytest.mark.parametrize("missing", [(), ("7",), ("07", "x")])
def test_texts_of_numbers_are_read_alike_in_every_kind_of_memory(missing):
    column = many(NUMERIC_TEXTS, BLOCK + 50)
    reader = NumberReader(missing)
    expected = np.array([reader.number(text) for text in column])
    forms = [column, cells(column), np.array(column), *arrow_forms(column)]
    schema = Schema({"x": Numeric(0, 8, bins=[2, 5], fill=3)}, missing=missing)
    levels = twin(expected, schema.columns["x"], 12).tolist()
    for form in forms:
        assert np.array_equal(reader.numbers(form), expected, equal_nan=True)
        assert schema.read({"x": form}).levels[0].tolist() == levels


def test_numbers_that_are_listed_once_are_coded_once():
    column = Numeric(0, 8, bins=[1, 2.5, 7], fill=8)
    schema, numbers = Schema({"x": column}), [0, 1, 2.5, 3, None, 9, -1, 1]
    twins = twin(np.array(numbers, dtype=np.float64), column, 12).tolist()
    for form in (
        pd.Series(numbers).astype("category"), pd.Series(numbers, dtype="Float64"),
        pa.array(numbers).dictionary_encode(), pa.array(numbers),
        pl.Series(numbers, dtype=pl.Float64),
        np.ma.MaskedArray(np.nan_to_num(np.array(numbers, float)), [x is None for x in numbers]),
        pd.Series([str(x) if x is not None else None for x in numbers]).astype("category"),
    ):  # fmt: skip
        assert schema.read({"x": form}).levels[0].tolist() == twins


def test_numbers_that_stand_for_missing_values_are_missing_in_every_kind_of_memory():
    schema = Schema({"x": Numeric(0, 16, fill=8)}, missing=("-1", "9"))
    numbers = [0, 9, 4, -1, 16]
    for form in (
        numbers, np.array(numbers), np.array(numbers, np.float32),
        pd.Series(numbers).astype("category"), [str(x) for x in numbers],
        np.ma.MaskedArray(numbers, [0] * 5), pa.array(numbers),
        pa.array([str(x) for x in numbers]),
    ):  # fmt: skip
        assert schema.read({"x": form}).numbers[0].tolist() == [0, 2048, 1024, 2048, 4096]


def test_reading_takes_little_memory_beside_the_codes():
    n = 400_000
    schema = Schema(
        {
            "text": Categorical(["a", "b", "c"], other=True),
            "cut": Numeric(0, 9, bins=[1, 2, 5], fill=0),
            "number": Numeric(0, 9, fill=1),
        },
        missing=("", "7"),
    )
    words, numbers = ["a", "b", "other"] * n, np.arange(n) % 10
    for table in (
        {"text": words[:n], "cut": numbers, "number": numbers.astype(np.float64)},
        {"text": pa.array(words[:n]), "cut": pa.array(numbers), "number": np.array(numbers)},
        {"text": pd.Series(words[:n]).astype("category"), "cut": numbers, "number": numbers},
    ):
        schema.read({name: column[:9] for name, column in table.items()})
        tracemalloc.start()
        codes = schema.read(table)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * n + 1_000_000  # one column of int64 alone would be 8 n
        assert codes.levels[0].nbytes + codes.levels[1].nbytes + codes.numbers[0].nbytes == 4 * n


def test_a_column_of_two_dimensions_keeps_them_where_it_has_numbers():
    square = np.array([[1, 2], [5, 1]])
    assert LevelReader(KNOWN).codes(square).tolist() == [[0, 1], [-1, 0]]
    assert raw_numbers(square).tolist() == [[1, 2], [5, 1]]


def test_levels_take_the_type_of_their_number():
    for width, kind in ((1, np.uint8), (256, np.uint8), (257, np.uint16), (65537, np.uint32)):
        column = Categorical(range(width))
        got = Schema({"x": column}).read({"x": [width - 1, 0]}).levels[0]
        assert got.dtype == kind
        assert got.tolist() == [width - 1, 0]


def test_a_number_that_python_has_to_read_is_read():
    text = np.frombuffer(b"1" * 30 + b"2", dtype=np.uint8)
    found = written_numbers(text, np.array([0 << 32 | 60, 30 << 32 | 2, -1]))
    assert np.array_equal(found, [float("1" * 30), 2, np.nan], equal_nan=True)


def test_a_subclass_of_list_is_read_by_its_iterator():
    class Backwards(list):
        def __iter__(self):
            return reversed(list(self[:]))

    assert list(chunks(Backwards(["a", "b"]))) == [["b", "a"]]
    assert LevelReader(KNOWN).codes(Backwards(["a", "b" * 7])).tolist() == [
        KNOWN["b" * 7],
        KNOWN["a"],
    ]
