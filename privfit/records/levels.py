"""Sums over records that are nothing but levels: counts of levels, and products of their features.

Features are a public map of levels: phi = matrix x~, with x~ 1 at a record's levels and last for
the intercept, and whole numbers of at most 2^12 in size. Of two columns it takes only a table of
how many records have each pair of levels, folded by the map at once. Tables and folds are whole
numbers in float64, exact in any order: at most 2^18 records are counted at a time, so that no sum
of absolute values exceeds 2^18 2^24.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privfit.base import blas
from privfit.base.typing import Array, Integers

__all__ = ["COUNTED", "PairSums", "Unfolded"]

COUNTED = 1 << 18  # records whose pairs of levels are counted at a time
MANY = 512  # levels of a column above which those of one row are taken together
FOLDED = 1 << 18  # features of records that are unfolded at a time


class PairSums:
    """The sum of phi phi' over records, added up from pairs of columns' levels.

    Parameters
    ----------
    groups : sequence of (first column, number of levels)
        The columns.
    matrix : int64 (p, d + 1)
        The map.
    """

    def __init__(self, groups: Sequence[tuple[int, int]], matrix: Integers) -> None:
        self._constant = matrix[:, -1]
        self._columns = [_Column(matrix[:, start : start + width]) for start, width in groups]
        self.total = np.zeros((len(matrix),) * 2, dtype=np.int64)

    def add(self, levels: Sequence[Array]) -> None:
        """Add records, at most `COUNTED`: the level (n,) of each in every column."""
        columns, found = (
            self._columns,
            [column.rows_of(some) for column, some in zip(self._columns, levels, strict=True)],
        )
        n = len(found[0])
        sums = np.zeros(len(self.total), dtype=np.int64)
        with blas.one_thread():
            for i, (one, first) in enumerate(zip(columns, found, strict=True)):
                counts = np.bincount(first, minlength=one.count).astype(np.float64)
                own = (one.table.T * counts) @ one.table
                self.total[np.ix_(one.kept, one.kept)] += own.astype(np.int64)
                sums[one.kept] += (counts @ one.table).astype(np.int64)
                for other, second in zip(columns[:i], found[:i], strict=True):
                    self._add_pair(one, other, first * other.count + second)
        across = np.outer(sums, self._constant)
        self.total += across + across.T + n * np.outer(self._constant, self._constant)

    def _add_pair(self, one: _Column, other: _Column, pairs: Integers) -> None:
        counts = np.bincount(pairs, minlength=one.count * other.count)
        table = counts.reshape(one.count, other.count).astype(np.float64)
        folded = (one.table.T @ (table @ other.table)).astype(np.int64)
        self.total[np.ix_(one.kept, other.kept)] += folded
        self.total[np.ix_(other.kept, one.kept)] += folded.T


class _Column:
    """The part of the map that belongs to one column: its features, and the rows of its levels."""

    def __init__(self, part: Integers) -> None:
        self.kept = np.flatnonzero(part.any(axis=1))
        rows = part[self.kept].T
        self._places: Integers | None = None
        if len(rows) > MANY:
            rows, places = np.unique(rows, axis=0, return_inverse=True)
            self._places = places.ravel()
        self.table = rows.astype(np.float64)

    @property
    def count(self) -> int:
        """How many rows are told apart."""
        return len(self.table)

    def rows_of(self, levels: Array) -> Integers:
        """int64 (n,): the row of each level."""
        return levels.astype(np.int64) if self._places is None else self._places[levels]


class Unfolded:
    """Answers of records in another layout: their levels are columns of zeros and ones."""

    records: Any  # DenseRecords or SparseRecords

    def level_counts(self) -> Integers:
        """int64 (2, d): the records of class 0 and of class 1 at each level."""
        records = self.records
        counts = np.zeros((2, records.n_features), dtype=np.int64)
        for run, block in records.labelled_blocks(max(1, FOLDED // records.n_features)):
            counts[1 + run.flip] += np.asarray((block != 0).sum(axis=0)).ravel()
        return counts

    def feature_moments(self, matrix: Integers) -> Integers:
        """int64 (p, p): the sum of phi phi', from the features of each record."""
        total = np.zeros((len(matrix),) * 2, dtype=np.int64)
        table, constant = matrix[:, :-1].T.astype(np.float64), matrix[:, -1].astype(np.float64)
        with blas.one_thread():
            for _, block in self.records.labelled_blocks(max(1, FOLDED // len(matrix))):
                features = np.asarray((block != 0).astype(np.float64) @ table) + constant
                total += (features.T @ features).astype(np.int64)
        return total
