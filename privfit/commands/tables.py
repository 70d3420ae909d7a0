"""Reading tables: CSV, gzipped or not, and Parquet, in chunks, straight into compact columns.

A number takes four bytes and a category one or two, whatever else the file contains: other columns
and the texts of a chunk are dropped before the next ones are read. Each cell is read on its own, as
in any table. Error messages name a column at most, never a value or a row. A file with unknown
columns is never quoted: its first line may be a record.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import threads
from privfit.base.errors import InputError
from privfit.base.typing import Array
from privfit.commands.console import Console
from privfit.domains import Categorical, Numeric, Schema, chunks
from privfit.domains.hashing import BUCKETS, Bucket, BucketReader
from privfit.domains.reading import NUMBER, LevelReader, NumberReader, objects
from privfit.records.ahead import in_order
from privfit.records.csv_files import CsvReader, check_delimiter
from privfit.records.sources import listed_once
from privfit.runs.listeners import bar

__all__ = [
    "Coded",
    "CsvForm",
    "Table",
    "Target",
    "add_csv_form",
    "as_labels",
    "as_number",
    "as_value",
    "opened",
    "read_chunks",
    "read_records",
    "read_table",
]

Told: TypeAlias = Callable[[int, int], object]  # (done, total)
Raw: TypeAlias = dict[str, Any]  # some rows of the wanted columns: cells of CSV or of Arrow

BLOCK, LARGEST = 1 << 17, 1 << 22  # bytes of text read at a time: the least, and the most
BLOCKS = 100  # of a file that is large enough, so that a progress bar moves smoothly
MOST_READERS = 4  # blocks that are read at a time
ROWS = 1 << 14  # of Parquet read at a time
DELIMITERS = ",;\t|"
LARGE = 1 << 23  # bytes of a table that takes a moment to read

NO_RECORDS = "{!r} has no records below its header; pass a table with records"
MORE_VALUES = (
    "add them to its line of the schema, or add other = true for unknown and missing values"
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
    """The column of labels and its declared classes."""

    name: str
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class CsvForm:
    """The CSV dialect; by default the header shows the delimiter, and each line is a record."""

    delimiter: str | None = None
    line_breaks: bool = False

    @classmethod
    def of(cls, options: argparse.Namespace) -> CsvForm:
        """As the options of a command declare it."""
        if options.delimiter is not None:
            try:
                check_delimiter(options.delimiter, "--delimiter")
            except ValueError as error:
                raise InputError(str(error)) from None
        return cls(options.delimiter, options.line_breaks)


AS_SEEN = CsvForm()


def add_csv_form(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that reads a table."""
    parser.add_argument(
        "--delimiter", metavar="CHAR", help="field delimiter; default: from the header"
    )
    parser.add_argument(
        "--line-breaks", action="store_true",
        help="allow line breaks in quoted fields; an unclosed quote then hides records",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Coded(chunks.Coded):
    """A column of categories: (n,) codes into the declared values; -1 for any other value.

    A `Schema` reads it value by value, not row by row.
    """

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
    """Records as compact columns, and their labels if a target was read."""

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
    """All records of a command's table, with a progress bar if it is large."""
    told = None
    if console.watched and os.path.getsize(options.data) > LARGE:
        told = bar("reading", "%")
    form, n_threads = CsvForm.of(options), getattr(options, "threads", None)
    return read_table(options.data, schema, target, form, told, n_threads)


def read_table(
    path: str,
    schema: Schema,
    target: Target | None = None,
    form: CsvForm = AS_SEEN,
    told: Told | None = None,
    n_threads: int | None = None,
) -> Table:
    """All records of a file, as the schema declares them; `told` is called with the progress."""
    return _joined(list(read_chunks(path, schema, target, form, told, n_threads)))


def read_chunks(
    path: str,
    schema: Schema,
    target: Target | None = None,
    form: CsvForm = AS_SEEN,
    told: Told | None = None,
    n_threads: int | None = None,
) -> Iterator[Table]:
    """The records of a file, a few thousand at a time; several pieces are read at once."""
    readers = {name: _reader(name, schema) for name in schema.columns}
    if target is not None:
        classes = Categorical(target.classes)
        readers[target.name] = _Levels(target.name, classes, MORE_CLASSES)

    def read_piece(piece: Raw) -> Table:
        columns = {name: read(piece[name]) for name, read in readers.items()}
        return Table(columns, None if target is None else columns.pop(target.name))

    with opened(path, list(readers), form, told) as pieces:
        yield from in_order(read_piece, pieces, min(threads.resolve(n_threads), MOST_READERS))


def _reader(name: str, schema: Schema) -> Any:
    column = schema.columns[name]
    if column.holds_numbers:
        return _Numbers(name, column, schema.missing)
    if column.is_blank and column.names is not None:
        return _texts
    if column.is_blank or column.buckets is not None:
        return _Hashed(name, schema.missing)
    return _Levels(name, column, MORE_VALUES)


def _joined(parts: list[Table]) -> Table:
    """Concatenate tables column by column, freeing each column to save memory."""
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
    """Convert cells to float32; missing or non-numeric ones to NaN, if the schema has a fill."""

    def __init__(self, name: str, column: Numeric, missing: Sequence[str]) -> None:
        self._name, self._column, self._reader = name, column, NumberReader(missing)

    def __call__(self, raw: Any) -> NDArray[np.float32]:
        numbers = self._reader.numbers(raw).astype(np.float32)  # which they are rounded to
        column = self._column
        lacks = column.fill is None and not column.missing and not column.is_blank
        if lacks and np.isnan(numbers).any():
            raise InputError(
                f"column {self._name!r} has missing values, or values that are not numbers; "
                "declare a replacement, fill = ... in its line of the schema, or write numbers "
                "as 1234.5, without thousands separators or units"
            )
        return numbers


class _Levels:
    """Convert cells to codes of the declared categories."""

    def __init__(self, name: str, column: Categorical, remedy: str) -> None:
        self._name, self._column, self._remedy = name, column, remedy
        self._type = np.min_scalar_type(-max(len(column.values or ()), 1))  # also holds -1
        self._reader = LevelReader(column.positions)

    def __call__(self, raw: Any) -> Coded:
        codes = np.empty(len(raw), dtype=self._type)
        if self._reader.write(raw, codes, -1) and not self._column.other:
            raise InputError(
                f"column {self._name!r} has values that are not declared; {self._remedy}"
            )
        return Coded(self._column.values, codes)


def _texts(raw: Any) -> Array:
    """Cells as they are, for names that are still to be bought."""
    cells = [*objects(raw)]
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


class _Hashed:
    """Convert cells to their buckets."""

    values = tuple(map(Bucket, range(BUCKETS)))

    def __init__(self, name: str, missing: Sequence[str]) -> None:
        self._reader = BucketReader(name, missing)

    def __call__(self, raw: Any) -> Coded:
        return Coded(self.values, self._reader.codes(raw).astype(np.int16))


def as_number(text: str) -> float | None:
    """The finite number that a text represents, or None."""
    written = NUMBER.fullmatch(text)
    number = float(written[1]) if written else math.inf
    return number if math.isfinite(number) else None


def as_value(text: str) -> Any:
    """A whole number, a number, or the text itself."""
    number = as_number(text)
    if number is None:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def as_labels(texts: Sequence[str]) -> list[Any]:
    """The texts as numbers, if all are numbers and distinct; else the texts."""
    values = [as_value(text) for text in texts]
    numbers = {value for value in values if not isinstance(value, str)}
    return values if len(numbers) == len(texts) else list(texts)


# ------------------------------------------------------------------------------------------- files


@contextmanager
def opened(
    path: str,
    names: list[str] | None = None,
    form: CsvForm = AS_SEEN,
    told: Told | None = None,
) -> Iterator[Iterator[Raw]]:
    """Yield these columns of a file, or all named columns, some rows at a time."""
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
        block = max(BLOCK, min(os.fstat(file.fileno()).st_size // BLOCKS, LARGEST))
        yield _watched(_csv(content, path, names, form, block), file, told)


def _watched(pieces: Iterator[Raw], file: IO[bytes], told: Told | None) -> Iterator[Raw]:
    """Yield the same pieces and report the progress, in per cent of the file."""
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


def _csv(
    content: IO[bytes], path: str, names: list[str] | None, form: CsvForm, block: int
) -> Iterator[Raw]:
    try:
        reader = CsvReader(content, form.delimiter or DELIMITERS, form.line_breaks, block)
        header = [name.strip() for name in reader.names]
        _check_header(header, path)
        places, empty = _places(header, names, path), True
        for columns in reader.blocks(list(places.values())):
            yield dict(zip(places, columns, strict=True))
            empty = False
        if empty:
            raise InputError(NO_RECORDS.format(path))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(
            f"{path!r} is a truncated or damaged gzip file; copy or compress it again"
        ) from None


def _check_header(header: list[str], path: str) -> None:
    if not any(header):
        raise InputError(f"{path!r} must have a header line with the column names; add it")
    line = "".join(header)
    if "\0" in line:
        raise InputError(f"{path!r} contains zero bytes, so it is not a text file; save it as CSV")
    if "\ufffd" in line:  # the replacement character of invalid UTF-8
        raise InputError(f"{path!r} is not UTF-8 text; save the table as CSV in UTF-8")


def _places(header: list[str], names: list[str] | None, path: str) -> dict[str, int]:
    """The position of each wanted column, or of every named column if all are wanted."""
    wanted = list(filter(None, header)) if names is None else names
    counts = Counter(header)
    for name in wanted:
        if name not in counts:
            raise InputError(
                f"{path!r} has no column {name!r}; its header must use the column names of the "
                "schema; pass --delimiter if it is not one of , ; | or tab"
            )
        if counts[name] > 1:
            twice = f"column {name!r}" if names else "a column"
            raise InputError(f"{path!r} has {twice} more than once; rename or remove the others")
    places = {name: place for place, name in enumerate(header)}
    return {name: places[name] for name in wanted}


def _parquet(file: IO[bytes], path: str, names: list[str] | None) -> Iterator[Raw]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            'Parquet files need pyarrow; run pip install "privfit[parquet]", or pass a CSV file'
        ) from None
    try:
        listed = listed_once(parquet.read_metadata(file))
        table = parquet.ParquetFile(file, read_dictionary=listed)
        places = _places(table.schema_arrow.names, names, path)
        if not table.metadata.num_rows:
            raise InputError(NO_RECORDS.format(path))
        for batch in table.iter_batches(ROWS, columns=list(places)):
            yield {name: batch.column(name) for name in places}
    except pyarrow.ArrowException:
        raise InputError(f"{path!r} is a damaged Parquet file; create it again") from None
