"""Columns of which nothing is declared but their kind: each record by itself, as keys, and counts.

No cell is refused. A number is its place in the order of all numbers, a category the bucket of its
text; what is missing, or cannot be read as the column's kind, counts nowhere. Counts are sums over
records, so they are the same for a stream or a Dask collection. Names are counted by their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import InputError
from privfit.base.typing import Array, Integers
from privfit.domains.columns import Column
from privfit.domains.frames import columns_of
from privfit.domains.hashing import BUCKETS, BucketReader, NameReader
from privfit.domains.keys import INSIDE, KEYS, MISSING, first_place, key_of, places
from privfit.domains.kinds import check_numbers
from privfit.domains.reading import NumberReader
from privfit.domains.schema import Schema
from privfit.records.packing import TABLE_RECORDS, Run
from privfit.records.places import sums_of
from privfit.records.rows import Rows
from privfit.records.sums import Sums

__all__ = ["BlankRows", "Blanks"]


@dataclass(frozen=True)
class Blanks:
    """The blank columns of a schema: their names, by what is to be bought.

    cuts      numbers whose cuts are bought
    ranges    numbers whose range is bought
    hashed    categories whose buckets are bought
    named     categories whose names are bought
    spans     numbers beside the public scale that are cut equally where they lie
    """

    cuts: tuple[str, ...]
    ranges: tuple[str, ...]
    hashed: tuple[str, ...]
    named: tuple[str, ...]
    spans: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: Schema) -> Blanks:
        """Those of a schema."""
        blank = {name: column for name, column in schema.columns.items() if column.is_blank}

        def those(kind: str) -> tuple[str, ...]:
            return tuple(name for name, column in blank.items() if _kind(column) == kind)

        return cls(those("cuts"), those("ranges"), those("hashed"), those("named"), those("spans"))

    @property
    def numbers(self) -> tuple[str, ...]:
        """All blank numbers."""
        return self.cuts + self.ranges + self.spans

    @property
    def categories(self) -> tuple[str, ...]:
        """All blank categories."""
        return self.hashed + self.named


def _kind(column: Column) -> str:
    if column.holds_numbers:
        if column.bins == "auto":
            return "cuts"
        return "ranges" if column.scale is None else "spans"
    return "hashed" if column.names is None else "named"


class BlankRows(Rows):
    """Places of numbers, buckets and tallies of categories, column by column.

    numbers   int32 (n,) of each number: its place, or `MISSING`
    buckets   int16 (n,) of each hashed category, -1 where it is missing
    tallies   of each named category, how many records have each text
    """

    def __init__(
        self,
        n: int,
        numbers: Mapping[str, NDArray[np.int32]],
        buckets: Mapping[str, NDArray[np.int16]],
        tallies: Mapping[str, Counter[str]],
        n_threads: int | None = None,
    ) -> None:
        super().__init__((Run(0, n, 0),), len(numbers) + len(buckets) + len(tallies), n_threads)
        self.numbers, self.buckets, self.tallies = numbers, buckets, tallies

    @classmethod
    def pack(
        cls, X: Any, y: Any = None, *, schema: Schema, n_threads: int | None = None
    ) -> BlankRows:
        """Read the blank columns of a table, each cell by itself; labels are not looked at."""
        n, cells = columns_of(X, list(schema.columns))
        if n > TABLE_RECORDS:
            raise InputError(
                f"X must have at most {TABLE_RECORDS} records in memory; pass more as a Stream"
            )
        blanks, missing = Blanks.of(schema), schema.missing
        found = dict(zip(schema.columns, cells, strict=True))
        reader = NumberReader(missing)
        for name in blanks.numbers:
            check_numbers(name, found[name])
        numbers = {name: _placed(reader.numbers(found[name]), schema.columns[name])
                   for name in blanks.numbers}  # fmt: skip
        buckets = {name: BucketReader(name, missing).codes(found[name]).astype(np.int16)
                   for name in blanks.hashed}  # fmt: skip
        tallies = {name: Counter(NameReader(missing).counts(found[name])) for name in blanks.named}
        return cls(n, numbers, buckets, tallies, n_threads)

    @classmethod
    def sums(cls, X: Any, schema: Schema, n_threads: int | None = None) -> Sums[BlankRows]:
        """The records of a table, a stream or a Dask collection."""
        return sums_of(X, None, partial(cls.pack, schema=schema, n_threads=n_threads), n_threads)

    def key_counts(self, name: str) -> Integers:
        """int64 (KEYS,): how many numbers of a column have each key."""
        return np.bincount(key_of(self._present(name)), minlength=KEYS)

    def inside_counts(self, name: str, keys: Sequence[int]) -> Integers:
        """int64 (keys, INSIDE): how many numbers are at each place of some keys."""
        here = self._present(name)
        counts = np.zeros((len(keys), INSIDE), dtype=np.int64)
        for row, key in zip(counts, keys, strict=True):
            first, last = first_place(key), first_place(key + 1)
            inside = here[(here >= first) & (here < last)].astype(np.int64) - first
            row += np.bincount(inside, minlength=INSIDE)
        return counts

    def _present(self, name: str) -> NDArray[np.int32]:
        column = self.numbers[name]
        return column[column != MISSING]

    def bucket_counts(self) -> Integers:
        """int64 (columns, BUCKETS): how many values of each hashed category are in each bucket."""
        counts = np.zeros((len(self.buckets), BUCKETS), dtype=np.int64)
        for row, codes in zip(counts, self.buckets.values(), strict=True):
            row += np.bincount(codes[codes >= 0], minlength=BUCKETS)
        return counts

    def name_counts(self) -> Array:
        """(columns,) of Counter: how many records have each text of each named category."""
        found = np.empty(len(self.tallies), dtype=object)
        found[:] = list(self.tallies.values())
        return found


def _placed(numbers: Any, column: Column) -> NDArray[np.int32]:
    """Places of numbers, clipped to the column's range if it has one."""
    found = places(numbers)
    if not column.holds_numbers or not column.has_range:
        return found
    low, high = places(np.array([column.low, column.high], dtype=np.float64))
    return np.where(found == MISSING, found, np.clip(found, low, high))
