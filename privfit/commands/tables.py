"""Reading tables in chunks, straight into compact columns.

A number takes four bytes and a category one or two, whatever else the file contains: other columns
and the texts of a chunk are dropped before the next ones are read. Each cell is read on its own, as
in any table. Error messages name columns at most, never a value or a row.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import threads
from privfit.base.errors import InputError
from privfit.base.typing import Array
from privfit.commands.console import Console
from privfit.commands.files import AS_SEEN, CsvForm, Raw, Told, opened, size_of
from privfit.domains import Categorical, Numeric, Schema, chunks
from privfit.domains.hashing import BUCKETS, Bucket, BucketReader
from privfit.domains.reading import NUMBER, LevelReader, NumberReader, objects
from privfit.records.ahead import in_order
from privfit.runs.listeners import bar

__all__ = [
    "Coded",
    "Table",
    "Target",
    "as_labels",
    "as_number",
    "as_value",
    "read_chunks",
    "read_records",
    "read_table",
    "with_points",
]

MOST_READERS = 4  # blocks that are read at a time
LARGE = 1 << 23  # bytes of a table that takes a moment to read

NO_NUMBERS = (
    "missing values, or values that are not numbers; declare a replacement, fill = ... in its line "
    "of the schema, or write numbers as 1234.5, without thousands separators or units; pass "
    "--decimal ',' if they are written as 1234,5"
)
NO_VALUES = (
    "values that are not declared; add them to its line of the schema, or add other = true for "
    "unknown and missing values"
)
NO_CLASSES = (
    "values that are not declared; declare all classes, and remove the records without a label"
)
COMMA = str.maketrans(",.", ".,")  # with a decimal comma, 1.234 is no number


@dataclass(frozen=True)
class Target:
    """The column of labels and its declared classes."""

    name: str
    classes: tuple[Any, ...]


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
    """Records as compact columns, their labels if a target was read, and columns that are kept."""

    columns: dict[str, Array | Coded]
    labels: Coded | None
    kept: dict[str, Array] = field(default_factory=dict)

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
        """Every column and the labels, as numbers; names that are to be bought as their buckets."""
        for name, column in self.columns.items():
            if isinstance(column, Coded):
                yield column.codes
            else:
                yield BucketReader(name).codes(column) if column.dtype == object else column
        if self.labels is not None:
            yield self.labels.codes


def read_records(
    options: argparse.Namespace, console: Console, schema: Schema, target: Target | None = None
) -> Table:
    """All records of a command's table, with a progress bar if it is large."""
    told = None
    if console.watched and size_of(options.data) > LARGE:
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
    kept: Sequence[str] = (),
    doubted: Callable[[list[str]], None] | None = None,
) -> Iterator[Table]:
    """The records of a file, a few thousand at a time; several pieces are read at once.

    Columns that are `kept` stay as they are in the file. Once all records are read, one message
    names all columns that the schema does not cover. `doubted` is then called with the columns of
    numbers in which no cell is one: only where nothing is released may it say so.
    """
    readers = {name: _reader(name, schema, form) for name in schema.columns}
    if target is not None:
        readers[target.name] = _Levels(Categorical(target.classes), NO_CLASSES)

    def read_piece(piece: Raw) -> Table:
        columns = {name: read(piece[name]) for name, read in readers.items()}
        labels = None if target is None else columns.pop(target.name)
        return Table(columns, labels, {name: _texts(piece[name]) for name in kept})

    with opened(path, list(dict.fromkeys([*readers, *kept])), form, told) as pieces:
        yield from in_order(read_piece, pieces, min(threads.resolve(n_threads), MOST_READERS))
    _check_covered(readers)
    empty = [name for name, reader in readers.items() if getattr(reader, "found", True) is False]
    if doubted is not None and empty:
        doubted(empty)


def _check_covered(readers: dict[str, Any]) -> None:
    """Refuse a table with cells that its schema does not cover; all such columns are named."""
    faults: dict[str, list[str]] = {}
    for name, reader in readers.items():
        if getattr(reader, "fault", ""):
            faults.setdefault(reader.fault, []).append(repr(name))
    sentences = [
        f"column {names[0]} has {fault}" if len(names) == 1
        else f"columns {', '.join(names)} have {fault}".replace("its line", "their lines")
        for fault, names in faults.items()
    ]  # fmt: skip
    if sentences:
        raise InputError("; ".join(sentences))


def _reader(name: str, schema: Schema, form: CsvForm) -> Any:
    column = schema.columns[name]
    if column.holds_numbers:
        return _Numbers(column, schema.missing, form.decimal == ",")
    if column.is_blank and column.names is not None:
        return _texts
    if column.is_blank or column.buckets is not None:
        return _Hashed(name, schema.missing)
    return _Levels(column, NO_VALUES)


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

    def __init__(self, column: Numeric, missing: Sequence[str], comma: bool) -> None:
        self._reader, self._comma, self.fault, self.found = NumberReader(missing), comma, "", False
        self._lacks = column.fill is None and not column.missing and not column.is_blank

    def __call__(self, raw: Any) -> NDArray[np.float32]:
        cells = with_points(raw) if self._comma else raw
        numbers = self._reader.numbers(cells).astype(np.float32)  # which they are rounded to
        lost = np.isnan(numbers)
        self.found |= not lost.all()
        if self._lacks and lost.any():
            self.fault = NO_NUMBERS
        return numbers


def with_points(raw: Any) -> Array:
    """Cells whose decimal mark is a comma, with points; numbers of other files stay as they are."""
    cells = _texts(raw)
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            cells[i] = cell.translate(COMMA)
    return cells


class _Levels:
    """Convert cells to codes of the declared categories."""

    def __init__(self, column: Categorical, fault: str) -> None:
        self._column, self._fault, self.fault = column, fault, ""
        self._type = np.min_scalar_type(-max(len(column.values or ()), 1))  # also holds -1
        self._reader = LevelReader(column.positions)

    def __call__(self, raw: Any) -> Coded:
        codes = np.empty(len(raw), dtype=self._type)
        if self._reader.write(raw, codes, -1) and not self._column.other:
            self.fault = self._fault
        return Coded(self._column.values, codes)


def _texts(raw: Any) -> Array:
    """Cells as they are: kept ones, and names that are still to be bought."""
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
