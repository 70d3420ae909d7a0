"""Records of a schema as small integers: levels of its groups, and whole units of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit.base.typing import Array, Floats

__all__ = ["Codes", "level_type"]

ROWS = 1 << 14  # whose sums stay in cache while columns are added


def level_type(width: int) -> Any:
    """The smallest type of the levels 0, ..., width - 1."""
    return np.min_scalar_type(max(width - 1, 0))


@dataclass(frozen=True, repr=False, eq=False)
class Codes:
    """Encoded records, column by column: a byte or two a cell, where CSR takes ten.

    Parameters
    ----------
    groups : sequence of slice
        The encoded columns of each one-hot group.
    levels : list of arrays of shape (n,)
        The level of each record in each group, of type `level_type`.
    places : sequence of int
        The encoded column of each number.
    numbers : sequence of int16 arrays of shape (n,)
        Each number in units of 2^-a.
    shape : tuple of int
        The number of records and of encoded columns.
    """

    groups: Sequence[slice]
    levels: list[Array]
    places: Sequence[int]
    numbers: Sequence[NDArray[np.int16]]
    shape: tuple[int, int]

    def __repr__(self) -> str:
        return "<Codes of private records>"

    def __getitem__(self, rows: slice) -> Codes:
        first, last, _ = rows.indices(self.shape[0])
        levels, numbers = ([column[first:last] for column in columns]
                           for columns in (self.levels, self.numbers))  # fmt: skip
        shape = (max(last - first, 0), self.shape[1])
        return Codes(self.groups, levels, self.places, numbers, shape)

    def products(self, W: Floats, one: int, unit: float) -> Floats:
        """(n, m) products with weights (m, width), where a level is `one` units in its column.

        Columns are added one after the other, as a product with `csr` adds them: the same bits.
        """
        n, hot = self.shape[0], W * (one * unit)
        ends = {group.start: group.stop for group in self.groups}
        starts, cells = [*ends, *self.places], [*self.levels, *self.numbers]
        columns = sorted(zip(starts, cells, strict=True), key=lambda one: one[0])
        found = np.zeros((n, len(W)))
        for first in range(0, n, ROWS):
            rows = slice(first, first + ROWS)
            for start, column in columns:
                some = column[rows]
                for k in range(len(W)):
                    if start in ends:
                        found[rows, k] += hot[k, start : ends[start]].take(some)
                    else:
                        found[rows, k] += some * unit * W[k, start]
        return found

    def dense(self, one: int) -> NDArray[np.int16]:
        """(n, width): the same records, where a level is `one` in its column."""
        found = np.zeros(self.shape, dtype=np.int16)
        every = np.arange(self.shape[0])
        for group, column in zip(self.groups, self.levels, strict=True):
            found[every, group.start + column.astype(np.int64)] = one
        for place, numbers in zip(self.places, self.numbers, strict=True):
            found[:, place] = numbers
        return found

    def csr(self, one: int) -> scipy.sparse.csr_array:
        """The same records as a matrix of int16, where a level is `one` in its column."""
        n, width = self.shape
        starts = [group.start for group in self.groups] + list(self.places)
        index = np.empty((n, len(starts)), dtype=np.int32)
        value = np.empty((n, len(starts)), dtype=np.int16)
        for i, j in enumerate(np.argsort(starts).tolist()):  # columns in their order
            if j < len(self.groups):
                index[:, i], value[:, i] = self.levels[j], one
                index[:, i] += starts[j]
            else:
                index[:, i], value[:, i] = starts[j], self.numbers[j - len(self.groups)]
        start = np.arange(n + 1, dtype=np.int64) * len(starts)
        matrix = scipy.sparse.csr_array((value.ravel(), index.ravel(), start), shape=(n, width))
        matrix.eliminate_zeros()
        return matrix
