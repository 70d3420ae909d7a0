"""Records of binary features, and how many records of each class have each feature.

A feature is present where X > 0, so any table of numbers is valid input and nothing has to be
refused. A record is a list of its ones. `at_most` bounds their number: a record with more keeps a
sample of them. The sample is drawn by hashing a public random key and *that record's own features*:
for each key it is a function of the record alone. So whatever the key is, neighbours stay
neighbours after sampling: they differ in one record, and no other record changes. No coupling of
random draws is needed, and the order of records does not matter. Equal records keep the same
sample.

**What one record changes.** Let a record have at most s ones. It adds one to the size n_L of its
class, and one to n_{F=1,L} for each of its features. So (n_L, n_{F=1,L}) over all features and
classes changes in s + 1 entries, by one each, if a record is added or removed. If a record is
replaced, 2 (s + 1) entries change, by one each: those of the old record fall, those of the new one
rise. If both have the same class and features, these cancel. Hence

=============  ==========  ===========
               l1          l2 squared
=============  ==========  ===========
add_remove     s + 1       s + 1
replace        2 (s + 1)   2 (s + 1)
=============  ==========  ===========
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels.counts import count_ones, sample_ones
from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Integers
from privfit.base.validation import is_sparse, is_whole
from privfit.privacy.neighbours import Neighbours
from privfit.records.packing import CHUNK_BYTES, TABLE_RECORDS, Run
from privfit.records.places import sums_of
from privfit.records.rows import Rows
from privfit.records.sums import Sums

__all__ = ["BinaryRecords", "ClassCounts", "count_sensitivity"]


@dataclass(frozen=True, repr=False)
class ClassCounts:
    """Exact, private counts: `ones` (classes, d) records with each feature, `sizes` (classes,)."""

    ones: Integers
    sizes: Integers


class BinaryRows(Rows):
    """Lists of ones: record i has the features column[start[i] : start[i + 1]] and a class."""

    def __init__(
        self,
        start: Integers,
        column: NDArray[np.int32],
        label: NDArray[np.int32],
        n_features: int,
        n_classes: int,
        n_threads: int | None = None,
    ) -> None:
        super().__init__((Run(0, len(label), 0),), n_features, n_threads)
        self.start, self.column, self.label, self.n_classes = start, column, label, n_classes

    @classmethod
    def pack(
        cls,
        X: Any,
        y: Any,
        *,
        n_classes: int,
        read: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        n_threads: int | None = None,
    ) -> BinaryRows:
        """Pack a table (n, d) with classes 0, 1, ... (n,); `read` converts both first."""
        X, label = (X, y) if read is None else read(X, y)
        if X.shape[0] > TABLE_RECORDS:
            raise InputError(
                f"X must have at most {TABLE_RECORDS} records in memory; pass more as a Stream"
            )
        label = np.ascontiguousarray(label, dtype=np.int32)
        if label.shape != (X.shape[0],):
            raise InputError(
                "y must have one label for each record of X; pass a vector of that length"
            )
        start, column = _ones_of_sparse(X) if is_sparse(X) else _ones_of_dense(X)
        return cls(start, column, label, int(X.shape[1]), n_classes, n_threads)

    def at_most(self, ones: int, key: int) -> BinaryRows:
        """A view where records with more ones are reduced to a sample, drawn by `key`."""
        length = np.diff(self.start)
        longest = int(length.max(initial=0))
        if longest <= ones:
            return self
        rows = copy(self)
        rows.start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(length, ones))])
        rows.column = np.empty(int(rows.start[-1]), dtype=np.int32)
        work = np.empty((self.threads(self.column.size), 2, longest), dtype=np.uint64)
        sample_ones(self.start, self.column, ones, key, rows.start, work, rows.column)
        return rows

    def counts(self) -> Integers:
        """int64 (classes, d + 1): records of a class with each feature, then all of the class."""
        shape = (self.n_classes, self.n_features + 1)
        table = np.empty(shape, dtype=np.int64)
        work = np.zeros((self.threads(self.column.size), *shape), dtype=np.int32)
        count_ones(self.start, self.column, self.label, work, table)
        return table


@dataclass(frozen=True, repr=False)
class BinaryRecords:
    """Records of binary features, wherever they are stored, and their counts."""

    sums: Sums[BinaryRows]
    n_classes: int

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        n_classes: int,
        n_threads: int | None = None,
        read: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    ) -> BinaryRecords:
        """Pack records X (n, d), in memory or elsewhere, with classes 0, 1, ... (n,).

        `read(X, y)` converts both to such tables, in the place where they are stored.
        """
        make = partial(BinaryRows.pack, n_classes=n_classes, read=read, n_threads=n_threads)
        return cls(sums_of(X, y, make, n_threads), n_classes)

    @property
    def n_records(self) -> int:
        """The number of records; private if records are added or removed."""
        return self.sums.n_records

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.sums.n_features

    @property
    def column_names(self) -> tuple[Any, ...]:
        """The names of the features, if they were only read where the records are."""
        return self.sums.column_names

    def at_most(self, ones: int, key: int) -> BinaryRecords:
        """The same records, where those with more ones are reduced to a sample, drawn by `key`."""
        return replace(self, sums=self.sums.viewed(BinaryRows.at_most, ones, key))

    def counts(self) -> ClassCounts:
        """Exact counts, the same for any order of the records and any number of threads."""
        table = self.sums.sum(BinaryRows.counts)
        return ClassCounts(table[:, :-1], table[:, -1])


def count_sensitivity(ones: int, neighbours: Neighbours) -> int:
    """The l1, and squared l2, sensitivity of `ClassCounts` if a record has at most so many ones."""
    return (ones + 1) * neighbours.changes


def bound_ones(max_ones: Any, n_features: int) -> int:
    """The number of ones that a record may keep."""
    if max_ones is None:
        return n_features
    if not is_whole(max_ones) or max_ones < 1:
        raise DeclarationError(
            f"max_ones ({max_ones!r}) must be a positive whole number; pass how many features a "
            "record may keep"
        )
    return min(int(max_ones), n_features)


# ----------------------------------------------------------------------------------------- reading


def _ones_of_sparse(X: Any) -> tuple[Integers, NDArray[np.int32]]:
    X = scipy.sparse.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()  # the caller's arrays are left alone
        X.sum_duplicates()
    start, column = X.indptr.astype(np.int64), X.indices
    present = X.data > 0
    if not present.all():
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(present, dtype=np.int64)])[start]
        column = column[present]
    return start, np.ascontiguousarray(column, dtype=np.int32)


def _ones_of_dense(X: Any) -> tuple[Integers, NDArray[np.int32]]:
    """Read a few megabytes at a time: positions of ones take eight times the room of booleans."""
    n, d = X.shape
    rows = max(1, CHUNK_BYTES // (8 * d))
    length, columns = np.empty(n, dtype=np.int64), [np.empty(0, np.int32)]
    for first in range(0, n, rows):
        present = np.asarray(X[first : first + rows] > 0)
        length[first : first + rows] = present.sum(axis=1)
        columns.append(np.nonzero(present)[1].astype(np.int32))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(length)]), np.concatenate(columns)
