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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from privfit._kernels.objects import look_up
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats, Integers

__all__ = [
    "LevelReader",
    "NumberReader",
    "Odd",
    "canonical",
    "objects",
    "positions",
    "raw_numbers",
    "through_float32",
    "two_classes",
]


UNSEEN = -2  # a code that none is
LIMIT = 2**53  # from here on, float64 does not hold every whole number
BLOCK = 4096  # cells that are looked up at a time
ROOM = 1 << 16  # different cells that a reader remembers while it reads a table
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


class Odd(Enum):
    """Why a cell has no canonical text."""

    MISSING = "missing"
    NOTHING = "matches nothing"


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
        return _moments(np.array([value]))[0]
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


class LevelReader:
    """Finds the declared value of each cell; `known` is a result of `positions`."""

    odd = -1  # of cells that match nothing, and of missing ones

    def __init__(self, known: Mapping[str, int]) -> None:
        self._positions = known
        self._seen: dict[Any, int] = {**known, None: -1, np.nan: -1}
        self._room = len(self._seen) + ROOM
        numbers = {float(text): i for text, i in known.items() if WHOLE_OR_FRACTION.fullmatch(text)}
        self._numbers = _canonical_numbers(np.array(sorted(numbers), dtype=np.float64))
        self._places = np.array([numbers[x] for x in sorted(numbers)], dtype=np.int64)

    def codes(self, column: Any) -> Integers:
        """The position of each cell's value among the declared ones; -1 if it is not declared."""
        if hasattr(column, "read_codes"):
            return np.asarray(column.read_codes(self), dtype=np.int64)
        return _read(column, self.codes, self._of_array, self._of_objects, self.odd)

    def place(self, text: str) -> int:
        """The position of a text among the declared values; -1 if it is not declared."""
        return self._of(text)

    def _of(self, cell: Any) -> int:
        if type(cell) not in EXACT:
            return self._positions.get(canonical(cell), -1)  # type: ignore[arg-type]
        code = self._seen.get(cell)
        if code is None:
            code = self._positions.get(canonical(cell), -1)  # type: ignore[arg-type]
            if len(self._seen) < self._room and cell == cell:
                self._seen[cell] = code
        return code

    def _of_objects(self, cells: Sequence[Any]) -> Integers:
        cells, codes = list(cells), np.empty(len(cells), dtype=np.int64)
        for first in range(0, len(cells), BLOCK):
            block = codes[first : first + BLOCK]
            look_up(cells, first, self._seen, UNSEEN, block)
            for i in np.flatnonzero(block == UNSEEN).tolist():
                block[i] = self._of(cells[first + i])
        return codes

    def _of_array(self, cells: Array) -> Integers:
        if not self._numbers.size:
            return np.full(cells.shape, -1, dtype=np.int64)
        numbers = _canonical_numbers(cells.astype(np.float64))
        at = np.minimum(np.searchsorted(self._numbers, numbers), self._numbers.size - 1)
        return np.where(self._numbers[at] == numbers, self._places[at], -1)


def two_classes(labels: Any) -> Integers | None:
    """0 for each label 1, and 1 for each 0 or each -1; None for any other set of labels."""
    codes = LevelReader({"1": 0, "0": 1, "-1": 2}).codes(labels)
    found = set(np.unique(codes).tolist())
    return np.minimum(codes, 1) if found <= {0, 1} or found <= {0, 2} else None


class NumberReader:
    """Reads a numeric column, rounded to float32; NaN where a cell is missing or not a number.

    `missing` lists the texts that stand for a missing value; a number that is written like one of
    them is missing, too.
    """

    odd = math.nan

    def __init__(self, missing: Iterable[str] = ()) -> None:
        self._missing = frozenset(canonical(token) for token in missing)
        numbers = [float(text) for text in self._missing
                   if isinstance(text, str) and WHOLE_OR_FRACTION.fullmatch(text)]  # fmt: skip
        self._numbers = _canonical_numbers(np.array(numbers))
        others = [_text_number(text) for text in self._missing
                  if isinstance(text, str) and not WHOLE_OR_FRACTION.fullmatch(text)]  # fmt: skip
        self._doubtful = through_float32([x for x in others if not math.isnan(x)])  # "01", "+1"

    def numbers(self, column: Any) -> Floats:
        """The cells as float64, each of them exact in float32."""
        if hasattr(column, "read_numbers"):
            numbers = np.asarray(column.read_numbers(self), dtype=np.float64)
            return through_float32(self._without_missing(numbers))
        return through_float32(raw_numbers(column, self._without_missing, self._of_text))

    def number(self, text: str) -> float:
        """The number that a text stands for; NaN if it is missing or not a number."""
        number = np.array([self._of_text(text)])
        return float(through_float32(self._without_missing(number))[0])

    def doubtful(self, numbers: Floats) -> Integers:
        """Rows whose text may stand for a missing value although it reads as a number."""
        if not self._doubtful.size:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.isin(through_float32(numbers), self._doubtful))

    def _of_text(self, text: str) -> float:
        return math.nan if canonical(text) in self._missing else _text_number(text)

    def _without_missing(self, numbers: Floats) -> Floats:
        if self._numbers.size:
            stands = np.isin(_canonical_numbers(numbers), self._numbers)
            return np.where(stands, math.nan, numbers)
        return numbers


def raw_numbers(
    column: Any,
    finish: Callable[[Floats], Floats] = lambda numbers: numbers,
    of_text: Callable[[str], float] | None = None,
) -> Floats:
    """The cells of a column as float64; NaN where a cell is missing or not a number."""
    if of_text is None and hasattr(column, "read_numbers"):
        return np.asarray(column.numbers(), dtype=np.float64)
    of_text = of_text or _text_number
    texts: dict[str, float] = {}

    def of_cell(cell: Any) -> float:
        if type(cell) is not str:
            return _cell_number(cell, of_text)
        number = texts.get(cell)
        if number is None:
            number = of_text(cell)
            if len(texts) < ROOM:
                texts[cell] = number
        return number

    def of_objects(cells: Sequence[Any]) -> Floats:
        with suppress(OverflowError):  # of a whole number beyond float64
            if NUMBERS.issuperset(map(type, cells)):
                return np.fromiter(cells, dtype=np.float64, count=len(cells))
        return np.fromiter(map(of_cell, cells), dtype=np.float64, count=len(cells))

    def read(cells: Any) -> Floats:
        return _read(cells, read, lambda array: array.astype(np.float64), of_objects, math.nan)

    return finish(read(column))


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


# ------------------------------------------------------------------------------------------ columns


@dataclass(frozen=True)
class Coded:
    """A column with few different values: `codes` picks one for each cell; -1 is missing."""

    values: Any
    codes: Array


def _read(
    column: Any,
    read: Callable[[Any], Array],
    of_array: Callable[[Array], Array],
    of_objects: Callable[[Sequence[Any]], Array],
    odd: float,
) -> Array:
    """Read a column by `read`, which is called once for the values of a coded column."""
    parts = []
    for cells in _chunks(column):
        if isinstance(cells, Coded):
            parts.append(np.append(read(cells.values), [odd])[cells.codes])
        elif isinstance(cells, np.ma.MaskedArray):
            part = of_array(cells.data)
            parts.append(np.where(np.ma.getmaskarray(cells), odd, part).astype(part.dtype))
        elif isinstance(cells, np.ndarray):
            parts.append(of_array(cells))
        else:
            parts.append(of_objects(cells))
    return parts[0] if len(parts) == 1 else np.concatenate([of_objects([]), *parts])


def objects(column: Any) -> Iterator[Any]:
    """The cells of a column, one by one, as Python objects; missing ones are None."""
    for cells in _chunks(column):
        if isinstance(cells, Coded):
            values = [*objects(cells.values), None]
            yield from (values[code] for code in cells.codes.tolist())
        else:
            yield from cells.tolist() if isinstance(cells, np.ndarray) else cells


def _chunks(column: Any) -> Iterator[Any]:
    """The cells of a column: arrays of numbers, lists of objects, or coded columns."""
    library = type(column).__module__.partition(".")[0]
    if isinstance(column, list | tuple):
        yield column
    elif isinstance(column, np.ndarray):
        yield _of_numpy(column)
    elif library == "pandas":
        yield from _of_pandas(column)
    elif library == "polars":
        yield from _of_polars(column)
    elif library == "pyarrow":
        for chunk in getattr(column, "chunks", [column]):
            yield _of_arrow(chunk)
    else:
        yield _of_numpy(np.asarray(column)) if hasattr(column, "__array__") else list(column)


def _of_numpy(column: Array) -> Any:
    kind = column.dtype.kind
    if kind in "biuf":
        return column
    cells = _moments(column) if kind in "mM" else np.asarray(column).tolist()
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column).tolist()
        return [None if hidden else cell for cell, hidden in zip(cells, mask, strict=True)]
    return cells


def _moments(column: Array, zone: str = "") -> list[Any]:
    """ISO texts of numpy's dates; a duration is not a date, and matches nothing."""
    if column.dtype.kind == "m":
        return [Odd.MISSING if lost else Odd.NOTHING for lost in np.isnat(column).tolist()]
    unit = np.datetime_data(column.dtype)[0]
    fine = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "generic": "D"}.get(unit)
    texts = np.datetime_as_string(column.astype(f"M8[{fine}]") if fine else column).tolist()
    lost = np.isnat(column).tolist()
    return [None if gone else text + zone for text, gone in zip(texts, lost, strict=True)]


def _of_pandas(column: Any) -> Iterator[Any]:
    dtype = column.dtype
    array = getattr(column, "array", column)  # of a series or an index
    kind = type(dtype).__name__
    if isinstance(dtype, np.dtype):
        yield _of_numpy(column.to_numpy())
    elif kind == "CategoricalDtype":
        yield Coded(array.categories, array.codes)
    elif kind == "ArrowDtype" or getattr(dtype, "storage", "") == "pyarrow":
        yield from _chunks(array.__arrow_array__())
    elif kind == "SparseDtype":
        yield _of_numpy(np.asarray(array))
    elif isinstance(getattr(dtype, "numpy_dtype", None), np.dtype):  # a mask beside the numbers
        numbers = array.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        yield np.ma.MaskedArray(numbers, array.isna())
    else:
        yield array.to_numpy(dtype=object).tolist()


def _of_polars(column: Any) -> Iterator[Any]:
    kind = str(column.dtype).partition("(")[0]
    if (kind.startswith(("Int", "UInt", "Float")) and "128" not in kind) or kind == "Boolean":
        yield _of_numpy(column.to_numpy())  # NaN or None where a cell is missing
    elif kind in ("Date", "Datetime"):
        zone = getattr(column.dtype, "time_zone", None)
        if zone:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        yield _moments(column.to_numpy(), "+00:00" if zone else "")
    elif kind in ("String", "Categorical", "Enum"):
        try:
            yield from _chunks(column.to_arrow())
        except ImportError:  # without pyarrow
            yield column.to_list()
    else:
        yield column.to_list()


def _of_arrow(column: Any) -> Any:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _of_arrow(column.storage)
    if str(kind) == "string_view":
        return _of_arrow(column.cast("large_string"))
    if types.is_dictionary(kind):
        codes = column.indices.cast("int64").fill_null(-1)
        return Coded(_of_arrow_texts(column.dictionary), codes.to_numpy(zero_copy_only=False))
    if types.is_string(kind) or types.is_large_string(kind):
        return _of_arrow(column.dictionary_encode())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return _of_numpy(column.to_numpy(zero_copy_only=False))  # NaN or None where it is missing
    if types.is_timestamp(kind) or types.is_date(kind):
        zone = "+00:00" if getattr(kind, "tz", None) else ""
        return _moments(column.to_numpy(zero_copy_only=False), zone)
    return column.to_pylist()


def _of_arrow_texts(column: Any) -> Any:
    """A dictionary's values; texts become a list, with bytes where they are not UTF-8."""
    from pyarrow import types

    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return column
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return column.cast("large_binary").to_pylist()
