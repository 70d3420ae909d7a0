"""Read the cells of a table, each by itself: the result depends on the cell and the declarations.

A library that sees a column of 1, 2 and "x" makes it a column of texts, and then a category 1 that
was declared as a number is found in no row: one record has recoded all others, and no sensitivity
holds. Here a cell is compared by its *canonical text*, whatever its type:

- a whole number is written in its shortest form: 1, 1.0, True, "1", "1.0", "1e0" and "true" are
  "1";
- a fraction is that of its float32, so that 0.1 is one category in every width of numbers;
- numbers from 2^53 on match nothing, because float64 cannot hold all of them;
- a date is its ISO text, and a midnight is its date;
- any other text is itself, in Unicode's form NFC; bytes are read as UTF-8;
- None, NaN, NaT and pandas.NA are missing; lists, tables and other objects match nothing.

So no other row changes if one odd or missing cell makes a reader turn a column from whole numbers
into floats, texts or objects. A column may be a list, a numpy array, a pandas or Polars column, or
an Arrow array. If it lists its different values once, as categories and dictionaries do, each of
them is read once and the codes are mapped. A column that reads itself has the methods
`read_codes(reader)`, `read_numbers(reader)` and `numbers()`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.columns import (
    KINDS,
    code_numbers,
    code_table,
    find_numbers,
    narrow,
    take,
)
from privfit._kernels.objects import find_objects
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats, Integers
from privfit.domains.chunks import Coded, Odd, Written, chunks, is_numeric, moments, objects
from privfit.domains.texts import ROOM, UNSEEN, Texts, written_numbers

__all__ = [
    "Known",
    "LevelReader",
    "NumberReader",
    "Odd",
    "Steps",
    "can_read_rows",
    "canonical",
    "objects",
    "positions",
    "raw_numbers",
    "through_float32",
    "two_classes",
    "write_rows",
]


LIMIT = 2**53  # from here on, float64 does not hold every whole number
BLOCK = 1 << 14  # cells that are looked up at a time
FIRST = 1 << 9  # cells that are looked up before the texts among them are remembered
# What may be looked up without asking its own methods. Values of these types that Python calls
# equal, such as 1, 1.0 and True, have one canonical text.
NUMBERS = frozenset((int, float, bool))
EXACT = NUMBERS | {str, bytes, type(None)}

WHOLE_OR_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
NUMBER = re.compile(
    r"[ \t]*([+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?))[ \t]*",
    re.ASCII | re.IGNORECASE,
)
MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(\+00:00)?"
)
TRUTH = {"true": "1", "false": "0"}


# ---------------------------------------------------------------------------------- canonical texts


def canonical(value: Any) -> str | Odd:
    """The canonical text of one value.

    >>> [canonical(one) for one in (1, 1.0, True, "1e0", 0.5, "01", None)]
    ['1', '1', '1', '1', '0.5', '01', <Odd.MISSING: 'missing'>]
    """
    value = _unwrapped(value)
    if isinstance(value, str):
        return _of_text(str.__str__(value))
    if isinstance(value, bytes | bytearray):
        return _of_text(value.decode("utf-8", "replace"))
    if _is_missing(value):
        return Odd.MISSING
    if isinstance(value, Real | Decimal):
        return _of_number(_as_float(value))
    if isinstance(value, date):
        return _of_date(value)
    return value.isoformat() if isinstance(value, time) else Odd.NOTHING


def _unwrapped(value: Any) -> Any:
    """The value inside a numpy or Arrow scalar."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value is not np.ma.masked:
        value = value[()]
    if isinstance(value, np.datetime64 | np.timedelta64):
        return moments(np.array([value]))[0]
    if isinstance(value, np.bool_ | np.str_ | np.bytes_ | np.integer | np.floating):
        return float(value) if isinstance(value, np.floating) else value.item()
    if type(value).__module__ == "pyarrow.lib" and hasattr(value, "as_py"):
        from pyarrow import array

        return next(iter(objects(array([value]))))
    return value


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value.is_nan() if isinstance(value, Decimal) else value is Odd.MISSING


def _as_float(value: Any) -> float:
    """A number as float64; infinite if it is too large, whatever its type."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _of_number(number: float) -> str | Odd:
    if math.isnan(number):
        return Odd.MISSING
    if abs(number) >= LIMIT:
        return Odd.NOTHING
    if not number.is_integer():
        short = np.float32(number)
        if short != np.trunc(short):
            return str(short)
        number = float(short)
    return str(int(number))


def _of_text(text: str) -> str | Odd:
    if WHOLE_OR_FRACTION.fullmatch(text):
        return _of_number(float(text))
    if len(text) <= 5 and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if moment := MOMENT.fullmatch(text):
        return _of_moment(*moment.groups(default=""))
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _of_moment(day: str, minute: str, second: str, fraction: str, zone: str) -> str:
    fraction = fraction.rstrip("0")
    clock = f"{minute}:{second or '00'}" + (f".{fraction}" if fraction else "")
    return day if clock + zone == "00:00:00" else f"{day}T{clock}{zone}"


def _of_date(value: date) -> str | Odd:
    """ISO text; a moment in a time zone is converted to UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        try:
            utc = value.astimezone(timezone.utc).replace(tzinfo=None)
        except OverflowError:
            return Odd.NOTHING
        return _of_text(f"{utc.isoformat()}+00:00")
    return _of_text(value.isoformat())


def positions(values: Iterable[Any], what: str) -> dict[str, int]:
    """The position of each declared value, by its canonical text."""
    found: dict[str, int] = {}
    for i, value in enumerate(values):
        text = canonical(value)
        if isinstance(text, Odd):
            raise DeclarationError(
                f"{what} ({value!r}) must be a text, a date or a number below 2^53, so that it "
                "matches in every kind of table; pass large numbers as texts with a letter before "
                "them, and leave out missing values, which need no declaration"
            )
        if text in found:
            raise DeclarationError(
                f"{what} must differ, but two of them read as {text!r}, as 1, 1.0, True and '1' "
                "do; pass each documented value once"
            )
        found[text] = i
    return found


# ------------------------------------------------------------------------------------------ readers


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """Declared values, in the forms that cells are compared with.

    positions   by canonical text
    texts       the same, by bytes
    numbers     the values that are numbers, ascending, and NaN behind them; see `padded`
    places      the positions of these numbers
    """

    positions: Mapping[str, int]
    texts: Texts
    numbers: Floats
    places: Integers

    @classmethod
    def of(cls, known: Mapping[str, int]) -> Known:
        """The values with these positions, a result of `positions`."""
        texts = {}
        for text, i in known.items():
            with suppress(UnicodeEncodeError):  # half of a character, which no bytes stand for
                texts[text.encode()] = i
        numbers = {float(text): i for text, i in known.items() if WHOLE_OR_FRACTION.fullmatch(text)}
        ascending = _canonical_numbers(np.array(sorted(numbers), dtype=np.float64))
        places = np.array([numbers[x] for x in sorted(numbers)], dtype=np.int64)
        return cls(known, Texts(texts), padded(ascending), places)


def padded(ascending: NDArray[Any]) -> NDArray[Any]:
    """These numbers and NaN behind them: kernels search among a power of two less one."""
    room = (1 << len(ascending).bit_length()) - 1
    return np.append(ascending, np.full(room - len(ascending), math.nan, dtype=ascending.dtype))


class LevelReader:
    """Finds the declared value of each cell; `known` is a result of `positions`, or made of it."""

    def __init__(self, known: Mapping[str, int] | Known) -> None:
        self._known = known if isinstance(known, Known) else Known.of(known)
        self._texts = self._known.texts.copy()
        self._seen: dict[Any, int] = {**self._known.positions, None: -1, np.nan: -1}
        self._room = len(self._seen) + ROOM

    def codes(self, column: Any) -> Integers:
        """The position of each cell's value among the declared ones; -1 if it is not declared."""
        if hasattr(type(column), "read_codes"):
            return np.asarray(column.read_codes(self), dtype=np.int64)
        if isinstance(column, np.ndarray) and column.ndim != 1 and is_numeric(column):
            return self.codes(column.ravel()).reshape(column.shape)
        parts = list(chunks(column))
        codes = np.empty(sum(map(len, parts)), dtype=np.int64)
        self._write_parts(parts, codes, -1)
        return codes

    def write(self, column: Any, out: Array, odd: int) -> bool:
        """Write these positions, and `odd` where a value is not declared; whether one is not."""
        if hasattr(type(column), "read_codes"):
            return narrow(self.codes(column), odd, _raw(out))
        return self._write_parts(chunks(column), out, odd)

    def place(self, text: Any) -> int:
        """The position of a value among the declared ones; -1 if it is not declared."""
        return self._known.positions.get(canonical(text), -1)  # type: ignore[arg-type]

    def _write_parts(self, parts: Iterable[Any], out: Array, odd: int) -> bool:
        first, some = 0, False
        for cells in parts:
            last = first + len(cells)
            some |= self._write(cells, out[first:last], odd)
            first = last
        return some

    def _write(self, cells: Any, out: Array, odd: int) -> bool:
        if isinstance(cells, Coded):
            return _write_coded(cells, self.codes(cells.values), out, odd)
        if isinstance(cells, np.ndarray) and is_numeric(cells):
            known = self._known
            some = find_numbers(*_with_kind(cells), known.numbers, known.places, odd, _raw(out))
            return _write_hidden(cells, out, odd) or some
        find = self._in_texts if isinstance(cells, Written) else self._in_objects
        n, first, some = len(cells), 0, False
        while first < n:
            entries = find(cells, first, BLOCK if first else FIRST)
            last = first + len(entries)
            some |= narrow(entries, odd, _raw(out[first:last]))
            first = last
        return some

    def _in_texts(self, cells: Written, first: int, rows: int) -> Integers:
        text, words = cells.block(first, rows)
        entries = np.empty(len(words), dtype=np.int64)
        self._texts.find(
            text, words,
            lambda row, raw: self.place(cells.cell(first + row) if raw is None else raw), entries,
        )  # fmt: skip
        return entries

    def _in_objects(self, cells: Any, first: int, rows: int) -> Integers:
        entries = np.empty(min(rows, len(cells) - first), dtype=np.int64)
        texts, found = self._texts, dict[bytes, int]()
        if find_objects(cells, first, self._seen, *texts.table, entries):
            for row in np.flatnonzero(entries == UNSEEN).tolist():
                entries[row] = self._of(cells[first + row], found)
            texts.add(found)
        return entries

    def _of(self, cell: Any, found: dict[bytes, int]) -> int:
        """The entry of a cell; those of ASCII texts are added to what was `found`."""
        if type(cell) not in EXACT:
            return self.place(cell)
        if type(cell) is str and cell.isascii():
            raw = cell.encode()
            if raw not in found:
                found[raw] = self.place(cell)
            return found[raw]
        code = self._seen.get(cell)
        if code is None:
            code = self.place(cell)
            if len(self._seen) < self._room and cell == cell:
                self._seen[cell] = code
        return code


def two_classes(labels: Any) -> Integers | None:
    """0 for each label 1, and 1 for each 0 or each -1; None for any other set of labels."""
    codes = np.empty(len(labels), dtype=np.uint8)
    LevelReader({"1": 0, "0": 1, "-1": 2}).write(labels, codes, 3)
    found = {code for code in range(4) if (codes == code).any()}
    return np.minimum(codes, 1) if found <= {0, 1} or found <= {0, 2} else None


def _write_coded(cells: Coded, entries: Integers, out: Array, odd: int) -> bool:
    """Write the entries of a column's codes, from those of its values; whether one is odd."""
    some = take(*_with_kind(cells.codes), np.append([-1], entries), odd, _raw(out))
    if cells.missing is None:
        return some
    out[cells.missing] = odd
    return some or bool(cells.missing.any())


def _write_hidden(cells: Array, out: Array, odd: int) -> bool:
    """Write `odd` where an array is masked; whether it is anywhere."""
    mask = np.ma.getmask(cells)
    if mask is np.ma.nomask:
        return False
    out[mask] = odd
    return bool(mask.any())


def _raw(out: Array) -> NDArray[np.uint8]:
    """The bytes of whole numbers, for kernels that write any width."""
    return out.view(np.uint8).reshape(len(out), out.itemsize)


def _with_kind(numbers: Array) -> tuple[Array, int]:
    """The cells and their kind, for kernels that read any kind."""
    numbers = np.ma.getdata(numbers)
    kind = KINDS.get(numbers.dtype.str[1:])
    if kind is None or not numbers.dtype.isnative or not numbers.flags.aligned:
        whole = numbers.dtype.kind in "iu"
        numbers = numbers.astype(f"{numbers.dtype.kind}{numbers.itemsize}" if whole else np.float64)
        kind = KINDS[numbers.dtype.str[1:]]
    return numbers, kind


class NumberReader:
    """Reads a numeric column, rounded to float32; NaN where a cell is missing or not a number.

    `missing` lists the texts that stand for a missing value; a number that is written like one of
    them is missing, too.
    """

    def __init__(self, missing: Iterable[str] = ()) -> None:
        self.tokens = tuple(missing)
        self._missing = frozenset(canonical(token) for token in self.tokens)
        numbers = [float(text) for text in self._missing
                   if isinstance(text, str) and WHOLE_OR_FRACTION.fullmatch(text)]  # fmt: skip
        self._numbers = _canonical_numbers(np.array(numbers))
        others = [_text_number(text) for text in self._missing
                  if isinstance(text, str) and not WHOLE_OR_FRACTION.fullmatch(text)]  # fmt: skip
        self._doubtful = through_float32([x for x in others if not math.isnan(x)])  # "01", "+1"

    @property
    def takes_numbers_for_missing(self) -> bool:
        """Whether some numbers stand for a missing value."""
        return bool(self._numbers.size)

    def numbers(self, column: Any) -> Floats:
        """The cells as float64, each of them exact in float32."""
        if hasattr(type(column), "read_numbers"):
            numbers = np.asarray(column.read_numbers(self), dtype=np.float64)
        else:
            numbers = _CellReader(self.of_text, self.doubtful).column(column)
        return through_float32(self._without_missing(numbers))

    def write(self, column: Any, steps: Steps, out: Array) -> bool:
        """Write the steps of the cells; whether one is missing or not a number."""
        if hasattr(type(column), "read_numbers"):
            return steps.write(self.numbers(column), out)
        cell_reader = _CellReader(self.of_text, self.doubtful)
        first, some = 0, False
        for cells in chunks(column):
            some |= self._write(cells, cell_reader, steps, out[first : first + len(cells)])
            first += len(cells)
        return some

    def _write(self, cells: Any, cell_reader: _CellReader, steps: Steps, out: Array) -> bool:
        if isinstance(cells, Coded):
            return _write_coded(cells, steps.entries(self.numbers(cells.values)), out, steps.fill)
        if isinstance(cells, np.ndarray) and is_numeric(cells):
            some = self._write_numbers(np.ma.getdata(cells), steps, out)
            return _write_hidden(cells, out, steps.fill) or some
        first, some = 0, False
        while first < len(cells):
            numbers = cell_reader.block(cells, first, BLOCK)
            last = first + len(numbers)
            some |= steps.write(self._without_missing(numbers), out[first:last])
            first = last
        return some

    def _write_numbers(self, numbers: Array, steps: Steps, out: Array) -> bool:
        if not self._numbers.size:
            return steps.write(numbers, out)
        some = False
        for first in range(0, len(numbers), BLOCK):
            part = slice(first, first + BLOCK)
            known = self._without_missing(numbers[part].astype(np.float64))
            some |= steps.write(known, out[part])
        return some

    def number(self, text: str) -> float:
        """The number that a text stands for; NaN if it is missing or not a number."""
        number = np.array([self.of_text(text)])
        return float(through_float32(self._without_missing(number))[0])

    def doubtful(self, numbers: Floats) -> Integers:
        """Rows whose text may stand for a missing value although it reads as a number."""
        if not self._doubtful.size:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.isin(through_float32(numbers), self._doubtful))

    def of_text(self, text: str) -> float:
        """The number of a text, not rounded; NaN if it stands for a missing value as a text."""
        return math.nan if canonical(text) in self._missing else _text_number(text)

    def _without_missing(self, numbers: Floats) -> Floats:
        if self._numbers.size:
            stands = np.isin(_canonical_numbers(numbers), self._numbers)
            return np.where(stands, math.nan, numbers)
        return numbers


@dataclass(frozen=True, eq=False)
class Steps:
    """How numbers become small whole ones: their bin, or their share of a range in steps.

    cuts    float32: the least number of each bin but the first; empty if there are no bins
    low     the number that is 0 steps, if there are no bins
    high    the number that is `one` steps
    one     the number of steps of the range
    fill    the whole number that stands for NaN
    """

    cuts: NDArray[np.float32]
    low: float
    high: float
    one: int
    fill: int

    def write(self, numbers: Array, out: Array) -> bool:
        """Write the steps of numbers, which are rounded to float32 first; whether one is NaN."""
        return self._write(numbers, self.fill, out)

    def entries(self, numbers: Floats) -> Integers:
        """The steps of numbers; -1 for NaN."""
        entries = np.empty(len(numbers), dtype=np.int64)
        self._write(numbers, -1, entries)
        return entries

    def _write(self, numbers: Array, odd: int, out: Array) -> bool:
        ranged = self.low, self.high, self.one
        return code_numbers(*_with_kind(numbers), self.cuts, *ranged, odd, _raw(out))


def can_read_rows(table: Any) -> bool:
    """Whether a table is an array (n, d) whose rows `write_rows` can read."""
    plain = isinstance(table, np.ndarray) and not isinstance(table, np.ma.MaskedArray)
    return (
        plain
        and table.ndim == 2
        and table.dtype.char in "fd"
        and table.flags.aligned
        and table.dtype.isnative
    )


def write_rows(table: Array, steps: Sequence[Steps], out: NDArray[np.int16]) -> list[bool]:
    """Write the steps of columns that are side by side, all of them without bins.

    `out` is (d, n). Each row is fetched once, where columns by themselves would fetch it d times.
    Returns whether a number of each column is NaN.
    """
    ranges = np.array([(of.low, of.high, of.one) for of in steps], dtype=np.float64)
    seen = np.zeros(len(steps), dtype=np.uint8)
    fills = np.array([of.fill for of in steps], dtype=np.int32)
    code_table(*_with_kind(table), ranges, fills, seen, out)
    return [bool(one) for one in seen]


def raw_numbers(column: Any) -> Floats:
    """The cells of a column as float64; NaN where a cell is missing or not a number."""
    if hasattr(type(column), "read_numbers"):
        return np.asarray(column.numbers(), dtype=np.float64)
    return _CellReader(_text_number).column(column)


class _CellReader:
    """Reads cells of any kind as float64.

    `of_text` is the number of a text. Texts are also read without it; `doubtful` rows of these are
    not left at that.
    """

    def __init__(
        self, of_text: Callable[[str], float], doubtful: Callable[[Floats], Integers] | None = None
    ) -> None:
        self._of_text, self._doubtful = of_text, doubtful
        self._texts: dict[str, float] = {}

    def column(self, column: Any) -> Floats:
        """The numbers of a column."""
        parts = [self._chunk(cells) for cells in chunks(column)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    def _chunk(self, cells: Any) -> Floats:
        if isinstance(cells, Coded):
            numbers = np.append(self.column(cells.values), [math.nan])[cells.codes]
            return numbers if cells.missing is None else np.where(cells.missing, math.nan, numbers)
        if isinstance(cells, np.ma.MaskedArray):
            return np.where(np.ma.getmaskarray(cells), math.nan, cells.data.astype(np.float64))
        if isinstance(cells, np.ndarray) and is_numeric(cells):
            return cells.astype(np.float64)
        if not isinstance(cells, Written):
            return self._of_objects(cells)
        numbers, first = np.empty(len(cells)), 0
        while first < len(cells):
            block = self._of_written(cells, first, BLOCK)
            numbers[first : first + len(block)] = block
            first += len(block)
        return numbers

    def block(self, cells: Any, first: int, rows: int) -> Floats:
        """The numbers of some cells, which are texts or objects."""
        if isinstance(cells, Written):
            return self._of_written(cells, first, rows)
        return self._of_objects(cells[first : first + rows])

    def _of_written(self, cells: Written, first: int, rows: int) -> Floats:
        text, words = cells.block(first, rows)
        numbers = written_numbers(text, words)
        again = np.flatnonzero((words & 1).astype(np.bool_) & (words >= 0)).tolist()
        if self._doubtful is not None:
            again += self._doubtful(numbers).tolist()
        for row in again:
            numbers[row] = self._of_cell(cells.cell(first + row))
        return numbers

    def _of_objects(self, cells: Any) -> Floats:
        cells = cells.tolist() if isinstance(cells, np.ndarray) else cells
        with suppress(OverflowError):  # of a whole number beyond float64
            if NUMBERS.issuperset(map(type, cells)):
                return np.fromiter(cells, dtype=np.float64, count=len(cells))
        return np.fromiter(map(self._of_cell, cells), dtype=np.float64, count=len(cells))

    def _of_cell(self, cell: Any) -> float:
        if type(cell) is not str:
            return _cell_number(cell, self._of_text)
        number = self._texts.get(cell)
        if number is None:
            number = self._of_text(cell)
            if len(self._texts) < ROOM:
                self._texts[cell] = number
        return number


def _cell_number(cell: Any, of_text: Callable[[str], float]) -> float:
    if type(cell) is float:
        return cell
    cell = _unwrapped(cell)
    if isinstance(cell, str):
        return of_text(str.__str__(cell))
    if isinstance(cell, bytes | bytearray):
        return of_text(cell.decode("utf-8", "replace"))
    if _is_missing(cell) or not isinstance(cell, Real | Decimal):
        return math.nan
    return _as_float(cell)


def _text_number(text: str) -> float:
    """The number that a text stands for, where true is 1 and false 0; NaN if there is none."""
    if found := NUMBER.fullmatch(text):
        return float(found[1])
    stripped = text.strip(" \t").lower()
    return float(TRUTH[stripped]) if stripped in TRUTH else math.nan


def through_float32(numbers: Any) -> Floats:
    """The nearest float32 of each number, in float64 again."""
    with np.errstate(all="ignore"):  # what is too large becomes infinite, and is clipped
        return np.asarray(numbers, dtype=np.float64).astype(np.float32).astype(np.float64)


def _canonical_numbers(numbers: Floats) -> Floats:
    """The numbers with the canonical texts of these: fractions are those of float32."""
    with np.errstate(all="ignore"):
        return np.where(numbers == np.trunc(numbers), numbers, through_float32(numbers))
