"""Reading tables: CSV, gzipped or not, and Parquet, in chunks, straight into compact columns.

A number takes eight bytes and a category two, whatever the file holds besides: other columns and
the texts of a chunk are dropped before the next one is read. Every refusal names a column at most,
never a value or a row. A file of unknown columns is never quoted: its first line may be a record.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.commands.console import Console, InputError
from privfit.domains import Categorical, Numeric, Schema
from privfit.solvers import bar

__all__ = [
    "MISSING",
    "Coded",
    "Table",
    "Target",
    "as_labels",
    "as_number",
    "as_value",
    "opened",
    "read_chunks",
    "read_records",
    "read_table",
]

Array: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.int16] | NDArray[np.int32]
Told: TypeAlias = Callable[[int, int], object]  # (done, total)
Raw: TypeAlias = dict[str, Any]  # some rows of the wanted columns: texts, or what Parquet has

# Rows whose texts are there at a time: as 8,192 a million rows of 16 fields took twice as long.
ROWS = 256
PIECES = 64  # of so many rows in a chunk
DELIMITERS = ",;\t|"
MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "."})
LARGE = 1 << 23  # bytes of a table that takes more than a second to read
LONGEST = 2**31 - 1  # characters of a field, where csv allows 131,072

NO_RECORDS = "{!r} has no records below its header; pass a table with some"
MORE_VALUES = (
    "add them to its line of the schema, or other = true, which takes unknown and missing ones"
)
MORE_CLASSES = "declare all classes, and remove the records without a label"

SIGNATURES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet; save it as CSV",
    b"BZh": "compressed by bzip2; decompress it, or use gzip",
    b"\xfd7zXZ": "compressed by xz; decompress it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; decompress it, or use gzip",
    b"SQLite format 3": "a database; save its table as CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


@dataclass(frozen=True)
class Target:
    """The column of labels, and its declared classes."""

    name: str
    classes: tuple[Any, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A column of categories: (n,) codes into the declared values; -1 is none of them.

    Looks like an array to a `Schema`, and becomes one only while that looks.
    """

    values: Sequence[Any]
    codes: Integers

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array: (n,)."""
        return self.codes.shape

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.values, self.codes[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        levels = np.empty(len(self.values) + 1, dtype=object)
        levels[:-1] = self.values  # the last stays None, and -1 is the last
        return levels[self.codes]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Records as compact columns, and their labels where a target was read."""

    columns: dict[str, Array | Coded]
    labels: Coded | None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: Any) -> Table:
        labels = None if self.labels is None else self.labels[rows]
        return Table({name: column[rows] for name, column in self.columns.items()}, labels)

    @property
    def y(self) -> Array:
        """(n,): the label of each record."""
        if self.labels is None:
            raise InputError("the table has no labels; pass --target")
        return np.array(self.labels.values)[self.labels.codes]

    def codes(self) -> Iterator[Array]:
        """Every column and the labels, as numbers."""
        for column in (*self.columns.values(), *([] if self.labels is None else [self.labels])):
            yield column.codes if isinstance(column, Coded) else column


def read_records(
    options: argparse.Namespace, console: Console, schema: Schema, target: Target | None = None
) -> Table:
    """All records of a command's table; who waits for a large one sees a bar."""
    told = None
    if console.watched and os.path.getsize(options.data) > LARGE:
        told = bar("reading", "%")
    return read_table(options.data, schema, target, options.delimiter, told)


def read_table(
    path: str,
    schema: Schema,
    target: Target | None = None,
    delimiter: str | None = None,
    told: Told | None = None,
) -> Table:
    """All records of a file, as the schema declares them; told are hundredths that are read."""
    return _joined(list(read_chunks(path, schema, target, delimiter, told)))


def read_chunks(
    path: str,
    schema: Schema,
    target: Target | None = None,
    delimiter: str | None = None,
    told: Told | None = None,
) -> Iterator[Table]:
    """The records of a file, some thousands at a time."""
    pieces = _pieces(path, schema, target, delimiter, told)
    while some := list(islice(pieces, PIECES)):
        yield _joined(some)


def _pieces(
    path: str, schema: Schema, target: Target | None, delimiter: str | None, told: Told | None
) -> Iterator[Table]:
    parsers: dict[str, Any] = {
        name: _Numbers(name, column)
        if isinstance(column, Numeric)
        else _Levels(name, column, MORE_VALUES)
        for name, column in schema.columns.items()
    }
    if target is not None:
        classes = Categorical(target.classes)
        parsers[target.name] = _Levels(target.name, classes, MORE_CLASSES)
    with opened(path, list(parsers), delimiter, told) as pieces:
        for piece in pieces:
            columns = {name: parse(piece[name]) for name, parse in parsers.items()}
            labels = None if target is None else columns.pop(target.name)
            yield Table(columns, labels)


def _joined(parts: list[Table]) -> Table:
    """One table of several, which lose their columns one by one, so that few are there twice."""
    labels = None if parts[0].labels is None else _concatenated([part.labels for part in parts])
    names = list(parts[0].columns)
    return Table(
        {name: _concatenated([part.columns.pop(name) for part in parts]) for name in names}, labels
    )


def _concatenated(columns: list[Any]) -> Any:
    if isinstance(columns[0], Coded):
        codes = np.concatenate([column.codes for column in columns])
        return Coded(columns[0].values, codes)
    return np.concatenate(columns)


# ----------------------------------------------------------------------------------------- columns


class _Numbers:
    """Raw values to float64; missing ones to NaN, where the schema has a fill for them."""

    def __init__(self, name: str, column: Numeric) -> None:
        self._name, self._column = name, column

    def __call__(self, raw: Any) -> NDArray[np.float64]:
        numbers = raw if isinstance(raw, np.ndarray) else self._parsed(raw)
        if self._column.fill is None and np.isnan(numbers).any():
            raise InputError(
                f"column {self._name!r} has missing values; declare what stands for them: "
                "fill = ... in its line of the schema"
            )
        return numbers

    def _parsed(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        try:
            return np.fromiter(map(float, texts), np.float64, len(texts))
        except (ValueError, TypeError):
            pass
        try:
            return np.fromiter(map(_number, texts), np.float64, len(texts))
        except (ValueError, TypeError):
            raise InputError(
                f"column {self._name!r} has values that are not numbers; write numbers as 1234.5, "
                "without thousands separators or units, or declare its values as categories"
            ) from None


def as_number(text: str) -> float | None:
    """The finite number that a text writes, if it does."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_value(text: str) -> Any:
    """A whole number, a number, or the text itself."""
    number = as_number(text)
    if number is None:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def as_labels(texts: Sequence[str]) -> list[Any]:
    """The numbers that the texts write, if all do and each another one; else the texts."""
    values = [as_value(text) for text in texts]
    numbers = {value for value in values if not isinstance(value, str)}
    return values if len(numbers) == len(texts) else list(texts)


def _number(value: Any) -> float:
    return math.nan if value is None or str(value).strip() in MISSING else float(value)


class _Levels:
    """Raw values to codes of the declared categories."""

    def __init__(self, name: str, column: Categorical, remedy: str) -> None:
        self._name, self._column, self._remedy = name, column, remedy
        self._type: Any = np.int16 if len(column.values) < 2**15 else np.int32
        self._known: dict[Any, int] = {}
        self._numbers = {float(value): i for i, value in enumerate(column.values)
                         if not isinstance(value, str | bool)}  # fmt: skip
        self._texts = {str(value).lower() if isinstance(value, bool) else value: i
                       for i, value in enumerate(column.values)
                       if isinstance(value, str | bool)}  # fmt: skip
        self._flags = any(isinstance(value, bool) for value in column.values)

    def __call__(self, raw: Sequence[Any]) -> Coded:
        try:
            different = set(raw)
        except TypeError:  # Parquet may have them
            raise InputError(
                f"column {self._name!r} has lists or tables in its cells; pass one value in each, "
                "or leave the column out of the schema"
            ) from None
        for value in different.difference(self._known):
            code = self._place(value)
            if code is not None:
                self._known[value] = code
        codes = np.fromiter(map(self._known.get, raw, repeat(-1)), self._type, len(raw))
        if not self._column.other and (codes < 0).any():
            raise InputError(
                f"column {self._name!r} has values that are not declared; {self._remedy}"
            )
        return Coded(self._column.values, codes)

    def _place(self, value: Any) -> int | None:
        """The position of a value among the declared ones; 1 and 1.0 are one number."""
        if isinstance(value, str):
            if value in self._texts:
                return self._texts[value]
            value = value.strip()
            if value in self._texts:
                return self._texts[value]
            if self._flags and value.lower() in self._texts:
                return self._texts[value.lower()]
        elif isinstance(value, bool):
            return self._texts.get(str(value).lower())
        try:
            return self._numbers.get(float(value))
        except (TypeError, ValueError):
            return None


# ------------------------------------------------------------------------------------------- files


@contextmanager
def opened(
    path: str,
    names: list[str] | None = None,
    delimiter: str | None = None,
    told: Told | None = None,
) -> Iterator[Iterator[Raw]]:
    """The raw values of these columns, or of all, some rows at a time."""
    if delimiter is not None and len(delimiter) != 1:
        raise InputError(f"--delimiter ({delimiter!r}) must be one character; pass one such as ';'")
    with open(path, "rb") as file:
        start = file.peek(16)[:16]
        if not start:
            raise InputError(f"{path!r} is empty; pass a CSV file that begins with column names")
        for signature, what in SIGNATURES.items():
            if start.startswith(signature):
                raise InputError(f"{path!r} is {what}")
        if start.startswith(b"PAR1"):
            yield _watched(_parquet(file, path, names), file, told)
            return
        content: Any = gzip.GzipFile(fileobj=file) if start.startswith(b"\x1f\x8b") else file
        with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
            yield _watched(_csv(text, path, names, delimiter), file, told)


def _watched(pieces: Iterator[Raw], file: IO[bytes], told: Told | None) -> Iterator[Raw]:
    """The same pieces, telling by the place in the file how many hundredths are read."""
    if told is None:
        yield from pieces
        return
    size, last = os.fstat(file.fileno()).st_size, 0
    for piece in pieces:
        yield piece
        now = min(100 * file.tell() // size, 99)
        if now > last:
            told(now, 100)
            last = now
    told(100, 100)


def _csv(text: IO[str], path: str, names: list[str] | None, delimiter: str | None) -> Iterator[Raw]:
    lines = _lines(text, path)
    first = next(lines, "")
    if not first.strip(f" \r\n{DELIMITERS}"):
        raise InputError(f"{path!r} must name its columns in its first line; add that line")
    limit = csv.field_size_limit(LONGEST)
    try:
        rows: Iterator[list[str]] = csv.reader(
            chain([first], lines), delimiter=delimiter or _sniffed(first), strict=True,
            skipinitialspace=True,
        )  # fmt: skip
        header = [name.strip() for name in next(rows)]
        places = _places(header, names, path)
        rows, empty = filter(None, rows), True
        while batch := list(islice(rows, ROWS)):
            columns, empty = _transposed(batch, len(header), path), False
            yield {name: columns[place] for name, place in places.items()}
        if empty:
            raise InputError(NO_RECORDS.format(path))
    except csv.Error:
        raise InputError(
            f"{path!r} has a quoted field that does not end at a delimiter; quote fields as "
            '"..." and a quote within as ""'
        ) from None
    finally:
        csv.field_size_limit(limit)


def _lines(text: IO[str], path: str) -> Iterator[str]:
    """The lines of a text; what cannot be one is refused."""
    try:
        for line in text:
            if "\0" in line:
                raise InputError(f"{path!r} has zero bytes, so it is no text; save it as CSV")
            yield line
    except UnicodeDecodeError:
        raise InputError(f"{path!r} is not UTF-8 text; save the table as CSV in UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(
            f"{path!r} is a gzip file that is cut off or damaged; copy or compress it again"
        ) from None


def _sniffed(first: str) -> str:
    """The delimiter that gives the first line the most fields."""
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))


def _places(header: list[str], names: list[str] | None, path: str) -> dict[str, int]:
    """Where each wanted column stands; where all are wanted, each that has a name."""
    wanted = list(filter(None, header)) if names is None else names
    counts = Counter(header)
    for name in wanted:
        if name not in counts:
            raise InputError(
                f"{path!r} has no column {name!r}; its first line must name the columns as the "
                "schema does, with a delimiter among , ; | and tab or given by --delimiter"
            )
        if counts[name] > 1:
            twice = f"column {name!r}" if names else "a column"
            raise InputError(f"{path!r} has {twice} more than once; rename or remove the others")
    places = {name: place for place, name in enumerate(header)}
    return {name: places[name] for name in wanted}


def _transposed(rows: list[list[str]], width: int, path: str) -> list[tuple[str, ...]]:
    try:
        columns = list(zip(*rows, strict=True))
    except ValueError:
        columns = []
    if len(columns) != width:
        raise InputError(
            f"{path!r} has rows with more or fewer fields than the {width} of its header; quote "
            "fields that hold the delimiter, and fill up short rows"
        )
    return columns


def _parquet(file: IO[bytes], path: str, names: list[str] | None) -> Iterator[Raw]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            'Parquet files need pyarrow; run pip install "privfit[parquet]", or pass a CSV file'
        ) from None
    try:
        table = parquet.ParquetFile(file)
        places = _places(table.schema_arrow.names, names, path)
        if not table.metadata.num_rows:
            raise InputError(NO_RECORDS.format(path))
        for batch in table.iter_batches(ROWS * PIECES, columns=list(places)):
            yield {name: _plain(batch.column(name)) for name in places}
    except pyarrow.ArrowException:
        raise InputError(f"{path!r} is a damaged Parquet file; write it again") from None


def _plain(column: Any) -> Any:
    """An Arrow column as numbers, or as a list of Python's own values."""
    from pyarrow import types

    if types.is_integer(column.type) or types.is_floating(column.type):
        return column.cast("float64").to_numpy(zero_copy_only=False)
    return column.to_pylist()
