"""Tables that are read once: cells as short arrays, which schemas of the same kinds can code.

A fit that buys its columns codes its records more than once: to check what was declared, to count,
and by the schema that it bought. The texts of a table are read, and hashed, only the first time. A
column that was read reads itself (`privfit.domains.reading`): a number is its float32, a category
its bucket or its place among declared values or texts. So every code is the one that the table
itself would give, at 4 bytes for a number and mostly 2 for a category.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Array, Integers
from privfit.domains.columns import Column
from privfit.domains.frames import columns_of
from privfit.domains.hashing import BucketReader, NameReader
from privfit.domains.kinds import check_numbers
from privfit.domains.reading import LevelReader, NumberReader
from privfit.domains.schema import Schema

__all__ = ["ReadLevels", "ReadNumbers", "ReadTexts", "read_once"]


@dataclass(frozen=True, eq=False, repr=False)
class ReadNumbers:
    """Numbers (n,) as float32; NaN where a cell is missing or not a number."""

    cells: NDArray[np.float32]

    def __repr__(self) -> str:
        return "<ReadNumbers of private records>"

    def __len__(self) -> int:
        return len(self.cells)

    def numbers(self) -> Array:
        """The numbers, which were read already."""
        return self.cells

    def read_numbers(self, reader: NumberReader) -> Array:
        """The same; what stands for a missing value is NaN already."""
        return self.cells


@dataclass(frozen=True, eq=False, repr=False)
class ReadLevels:
    """Places (n,) of cells among buckets or declared values; -1 where they have none."""

    cells: Array

    def __repr__(self) -> str:
        return "<ReadLevels of private records>"

    def __len__(self) -> int:
        return len(self.cells)

    def read_codes(self, reader: LevelReader) -> Integers:
        """The places, as the reader of the same column finds them."""
        return self.cells.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class ReadTexts:
    """Places (n,) of cells among the different texts of a column; -1 where they have none."""

    cells: NDArray[np.int32]
    texts: list[str]

    def __repr__(self) -> str:
        return "<ReadTexts of private records>"

    def __len__(self) -> int:
        return len(self.cells)

    def read_codes(self, reader: LevelReader) -> Integers:
        """What a reader finds for each cell; it reads each different text once."""
        return np.append(reader.codes(self.texts), -1)[self.cells]


def read_once(schema: Schema, X: Any) -> dict[str, ReadNumbers | ReadLevels | ReadTexts]:
    """The columns of a table in memory, read by a schema, which may have blanks.

    Parameters
    ----------
    schema : Schema
        The declared columns.
    X : DataFrame, Arrow table, dict of columns, array or list of records
        The records.

    Returns
    -------
    dict
        The columns by name: a table that this schema codes as it codes X, and so does any schema in
        which nothing but blanks and the cuts of numbers differ. It is private.
    """
    _, cells = columns_of(X, list(schema.columns))
    reader = NumberReader(schema.missing)
    pairs = zip(schema.columns.items(), cells, strict=True)
    return {name: _read(name, column, some, reader) for (name, column), some in pairs}


def _read(
    name: str, column: Column, cells: Any, reader: NumberReader
) -> ReadNumbers | ReadLevels | ReadTexts:
    if column.holds_numbers:
        check_numbers(name, cells)
        return ReadNumbers(reader.numbers(cells).astype(np.float32))
    if column.names is not None:
        names = NameReader(reader.tokens)
        found = names.codes(cells).astype(np.int32)
        return ReadTexts(found, names.texts)
    if column.is_blank or column.buckets is not None:
        return ReadLevels(BucketReader(name, reader.tokens).codes(cells).astype(np.int16))
    places = LevelReader(column.positions).codes(cells)
    return ReadLevels(places.astype(np.min_scalar_type(-1 - len(column.positions))))
