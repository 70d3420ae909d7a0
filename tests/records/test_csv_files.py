"""CSV: the reader is its naive twin for any bytes, and no record changes how another is read."""

from __future__ import annotations

import io
import itertools
import math
import random
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privfit._kernels.cells import count_lines, read_numbers
from privfit.domains.texts import Texts, written_numbers
from privfit.records import csv_files
from privfit.records.csv_files import Cells, CsvReader, check_delimiter

pytestmark = pytest.mark.filterwarnings("error")


def read(data: bytes, block: int = 1 << 21, rows: int = 1 << 16, **settings):
    """All records as lists of texts, by the columns of the header."""
    reader = CsvReader(io.BytesIO(data), block=block, **settings)
    if not reader.names:
        return [], []
    blocks = list(reader.blocks(range(len(reader.names)), rows))
    records = [
        list(row) for block in blocks for row in zip(*(c.texts() for c in block), strict=True)
    ]
    return reader.names, records


def expected(data: bytes, delimiter: str = ",", **settings):
    header, *records = reference.csv_records(data, delimiter.encode(), **settings) or [[]]
    width = len(header)
    return header, [(record + [None] * width)[:width] for record in records]


def of_cells(texts) -> Cells:
    """A column of these cells, none of which holds what must be quoted."""
    data = ("x\n" + "".join(f"{text}\n" for text in texts)).encode()
    return next(CsvReader(io.BytesIO(data), block=len(data) + 1).blocks([0]))[0]


PIECES = [b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"a", b"1.5", b"\0", b"\xff", b"\xc3\xa9", b" ",
          b";"]  # fmt: skip
BYTES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=40).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(BYTES, st.sampled_from([1, 2, 3, 5, 8, 64, 1 << 21]), st.sampled_from([1, 2, 7, 1 << 16]))
@example(b'a,b\n1,"x', 1, 1)
@example(b'a,b\n"x""y"z,"\n2', 2, 7)
@example(b'a,b\r\n"x"\r\n\r\n,\r', 3, 7)
@example(b"\xef\xbb\xbfa,b\n1,2\n", 1, 1)
def test_any_bytes_are_read_as_by_the_naive_twin(data, block, rows):
    header, records = expected(data.removeprefix(b"\xef\xbb\xbf"))
    if data.removeprefix(b"\xef\xbb\xbf"):
        assert read(data, block, rows) == (header, records)
    else:
        assert read(data, block, rows) == ([], [])


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(BYTES, st.sampled_from([1, 2, 3, 8, 64, 1 << 21]), st.sampled_from([4, 9, 1 << 17]))
def test_declared_line_breaks_are_read_as_by_the_naive_twin(data, block, widest):
    data = b"a,b\n" + data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "LONGEST_CELL", widest)
        assert read(data, block, line_breaks=True) == expected(data, widest=widest)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(BYTES, st.sampled_from([1, 2, 3, 8, 1 << 21]), st.sampled_from([4, 7, 20]))
def test_a_record_that_is_too_long_loses_its_last_fields(data, block, longest):
    data = b"a,b\n" + data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "LONGEST", longest)
        assert read(data, block) == expected(data, longest=longest)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), min_size=1),
    st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")),
    st.data(),
)
def test_no_line_changes_how_another_is_read(lines, other, data):
    """Law 1: each line is one record, whatever the others are."""
    at = data.draw(st.integers(0, len(lines) - 1))
    changed = [*lines[:at], other, *lines[at + 1 :]]
    before, after = (read(b"a,b,c\n" + b"\n".join(some) + b"\n")[1] for some in (lines, changed))
    assert len(before) == len(after) == len(lines)
    assert [*before[:at], *before[at + 1 :]] == [*after[:at], *after[at + 1 :]]


@pytest.mark.parametrize(
    "odd", ['"', 'x"y', '"x', "1,2,3,4,5", "", "\0", "\r", "9" * 10**6, '"",""x"']
)
def test_one_odd_line_changes_no_other(odd):
    lines = [f"{i},text {i}" for i in range(50)]
    whole = read("\n".join(["a,b", *lines]).encode(), block=100)[1]
    lines[20] = odd
    found = read("\n".join(["a,b", *lines]).encode(), block=100)[1]
    del whole[20], found[20]
    assert whole == found


def test_what_the_rules_say():
    assert read(b'a,b\n"x ""y""",z\n') == (["a", "b"], [['x "y"', "z"]])
    assert read(b'a,b\nx "y",z\n')[1] == [['x "y"', "z"]]  # a quote within is a character
    assert read(b'a,b\n"x,y\nz,1\n')[1] == [["x,y", None], ["z", "1"]]  # closed by its line
    assert read(b'a,b\n"x,y\nz",1\n', line_breaks=True)[1] == [["x,y\nz", "1"]]
    assert read(b"a,b\n1,2,3\n\n4\n")[1] == [["1", "2"], ["", None], ["4", None]]
    assert read(b"a,b\n1\r2,\xff\0\r\n")[1] == [["1\r2", "\ufffd\0"]]
    assert read(b"a;b\n1;2\n", delimiter=";")[1] == [["1", "2"]]
    assert read(b"a|b,c|d\n1|2|3\n", delimiter=",|;")[0] == ["a", "b,c", "d"]


def test_columns_may_be_left_out_and_come_in_any_order():
    reader = CsvReader(io.BytesIO(b"a,b,c\n1,2,3\n4,5\n"))
    assert [cells.texts() for cells in next(reader.blocks([2, 0]))] == [["3", None], ["1", "4"]]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "\u00a7", None, 44])
def test_a_delimiter_is_one_ascii_character(delimiter):
    with pytest.raises(ValueError, match=re.escape(f"delimiter ({delimiter!r}) must be one ASCII")):
        check_delimiter(delimiter)


# ------------------------------------------------------------------------------------------ numbers

ODD_NUMBERS = [
    "true", " FALSE", "-true", "inf", "-Infinity", "+inf", "++inf", ".inf", "nan", "1_0", "0x10",
    ".", "e5", "1e", "1e400", "1e-400", "1e99999999999", "0e99999999999", "0" * 400 + "1",
    "1" + "0" * 30, "0." + "0" * 2000 + "1e2000", "9007199254740993", "\u0661", "-0", "1 2", "--1",
    "1.2.3",
]  # fmt: skip
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.floats(width=32).map(str),
    st.integers().map(str),
    st.from_regex(
        r"[ \t]?[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{0,4})?[ \t]?", fullmatch=True
    ),
    st.text("0123456789.+-eEinfatyINF \tx", max_size=12),
    st.sampled_from(ODD_NUMBERS),
)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(NUMBERS)
def test_a_cell_writes_the_number_that_python_reads(text):
    found, number = of_cells([text]).numbers()[0], reference.csv_number(text)
    assert found == number or (math.isnan(found) and math.isnan(number))
    assert math.copysign(1, found) == math.copysign(1, number)


def test_numbers_of_sixteen_digits_and_more_are_rounded_once():
    """What one rounding too many would move: the halfway cases of doubles, and random digits."""
    rng = random.Random(0)
    halves = [str((2**53 + 2 * i + 1) * 2**k) for i in range(200) for k in range(8)]
    drawn = [f"{rng.randrange(10**18)}e{rng.randrange(-70, 70)}" for _ in range(30_000)]
    near = [repr(math.ldexp(rng.random(), rng.randrange(-200, 200))) for _ in range(30_000)]
    texts = halves + drawn + near
    assert of_cells(texts).numbers().tolist() == [float(text) for text in texts]


def test_most_numbers_of_seventeen_digits_are_read_without_python():
    rng = np.random.default_rng(0)
    texts = [
        repr(x)
        for x in (rng.standard_normal(10_000) * 10.0 ** rng.integers(-40, 40, 10_000)).tolist()
    ]
    cells = of_cells(texts)
    left = np.empty(len(texts), dtype=np.int64)
    numbers = np.empty(len(texts))
    assert read_numbers(cells._text, cells._words, numbers, left) == 0


# ------------------------------------------------------------------------------------------- levels


class Places:
    """A reader that counts what it is asked."""

    def __init__(self, known):
        self.known, self.asked = known, []

    def place(self, text):
        self.asked.append(text)
        return self.known.get(text, -1)


def codes_of(column, reader):
    codes = np.empty(len(column), dtype=np.int64)
    text, words = column.block(0, len(column))
    Texts({}).find(text, words, lambda row, raw: reader.place(column.cell(row)), codes)
    return codes


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["a", "b", "", "aa", "a" * 9, "a" * 8 + "b", '"a"', '"a""', 'a""'])
        | st.text(max_size=9)
    )
)
def test_each_text_is_asked_for_once(texts):
    lines = [text.replace("\n", "").replace("\r", "") for text in texts]
    data = "".join(f"1,{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    found = [record[1] for record in expected(b"n,x\n" + data)[1]]
    reader = Places({"a": 3, "aa": 1, "": 2})
    column = next(
        CsvReader(io.BytesIO(b"n,x\n" + data)).blocks([1]),
        [Cells(np.empty(0, np.uint8), np.empty(0, np.int64))],
    )[0]
    assert codes_of(column, reader).tolist() == [reader.known.get(text, -1) for text in found]
    assert set(reader.asked) == set(found)


def test_many_different_texts_are_asked_once_each():
    texts = [f"text {i}" for i in range(30_000)]
    reader = Places({text: i for i, text in enumerate(texts)})
    assert codes_of(of_cells([*texts, *texts]), reader).tolist() == [*range(30_000)] * 2
    assert len(reader.asked) < 30_000 * 1.01  # a few have too many neighbours


def test_a_missing_field_has_no_code():
    column = next(CsvReader(io.BytesIO(b"a,b\n1,x\n2\n3,\n")).blocks([1]))[0]
    reader = Places({"x": 0, "": 1})
    assert codes_of(column, reader).tolist() == [0, -1, 1]
    assert reader.asked == ["x", ""]


def test_threads_read_one_column_alike():
    texts = [str(i % 999) for i in range(60_000)]
    column = of_cells(texts)
    known = {text: int(text) for text in texts}
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: column.numbers().tobytes(), range(16)))
        codes = list(pool.map(lambda _: codes_of(column, Places(known)).tobytes(), range(16)))
    assert len(set(numbers)) == len(set(codes)) == 1


@pytest.mark.parametrize("length", range(11))
def test_short_numbers_are_read_at_once_and_nothing_else_is_taken_for_one(length):
    """One digit more or less, and bytes beside those of digits, in every place of a cell."""
    rng = random.Random(length)
    near = [*b"0123456789/:.-+ eE\xff\x00\xb0"]
    texts = [bytes(rng.choices(near, k=length)) for _ in range(2000)]
    texts += [bytes(rng.choices(near[:10], k=length)) for _ in range(500)]
    texts += [text[:i] + bytes([rng.choice(near)]) + text[i + 1 :] for text in texts[-500:]
              for i in [rng.randrange(length + 1)]]  # fmt: skip
    ends = np.cumsum([0, *map(len, texts)])
    found = written_numbers(
        np.frombuffer(b"".join(texts), dtype=np.uint8), ends[:-1] << 32 | np.diff(ends) << 1
    )
    expected = [reference.csv_number(text.decode("utf-8", "replace")) for text in texts]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 1000])
def test_lines_are_counted(size, rng):
    for text in (np.full(size, 10), rng.integers(9, 12, size), np.zeros(size)):
        assert count_lines(text.astype(np.uint8)) == np.count_nonzero(text == 10)


@pytest.mark.parametrize("line_breaks", [False, True])
def test_blocks_are_read_alike_by_threads_in_any_order(line_breaks):
    data = b"a,b\n" + b"".join(b'%d,"x""%d"\n' % (i, i % 7) for i in range(20_000))
    blocks = list(CsvReader(io.BytesIO(data), line_breaks=line_breaks, block=5000).blocks([1, 0]))
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda block: [c.texts() for c in block], blocks[::-1]))[::-1]
    texts, numbers = (list(itertools.chain(*column)) for column in zip(*read, strict=True))
    assert texts == [f'x"{i % 7}' for i in range(20_000)]
    assert numbers == [str(i) for i in range(20_000)]


def test_cells_look_like_an_array_and_show_nothing():
    column = of_cells(["1", "x", ""])
    assert (repr(column), len(column), column.shape) == ("<Cells of private records>", 3, (3,))
    assert np.asarray(column).tolist() == ["1", "x", ""]
    np.testing.assert_array_equal(np.asarray(column, dtype=np.float32), [1, np.nan, np.nan])
