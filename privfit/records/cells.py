"""Records in a box that is repeatedly halved: the cell of each record, and counts of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import halvings as kernels
from privfit._kernels.records import PANEL_ROWS
from privfit.base.errors import DeclarationError
from privfit.base.rulers import Ruler
from privfit.base.typing import Integers
from privfit.records.packing import DenseRecords
from privfit.records.rows import Rows
from privfit.records.sums import Sums

MOST_HALVINGS = 62  # bits of a cell's code


class CellRows(Rows):
    """Dense records, all columns in one unit, within public bounds."""

    dense: DenseRecords | None
    bounds: tuple[Integers, Integers]

    def cells(self, axes: NDArray[np.int32], *scale: Integers) -> NDArray[np.uint64]:
        """(n,) the cell of each record in a box halved across these columns, one bit each.

        `scale` are the numbers of a ruler, if the box is halved on its scale.
        """
        assert self.dense is not None
        panels = self.dense.panels
        columns, bits = halved_columns(axes, *self.bounds, Ruler(*scale) if scale else None)
        work = float(self.n_records) * 4 * (1 + len(columns))
        n_threads = self.threads(work)
        out = np.empty(len(panels) * PANEL_ROWS, dtype=np.uint64)
        for part in self.slices(work):
            kernels.cells(panels, part, columns, bits, out, n_threads)
        return np.concatenate([out[run.first : run.first + run.count] for run in self.runs])

    def cell_counts(
        self,
        codes: NDArray[np.uint64],
        shift: NDArray[np.uint64],
        axes: NDArray[np.int32],
        *scale: Integers,
    ) -> Integers:
        """int64: the number of records in each of these cells, whose codes lack `shift` bits."""
        cells = self._stay("cells", (axes, *scale), lambda: np.sort(self.cells(axes, *scale)))
        first = np.searchsorted(cells, codes << shift)
        return np.asarray(np.searchsorted(cells, (codes + np.uint64(1)) << shift) - first)


def halved_columns(
    axes: NDArray[np.int32], low: Integers, high: Integers, ruler: Ruler | None = None
) -> tuple[Integers, NDArray[np.uint64]]:
    """(c, 4) the columns that are halved, and the bits of a code that each of their numbers has.

    Of a column: which one it is, its least and its largest number, and where its bits begin. With a
    ruler, columns are halved on its scale.
    """
    columns, tables, start = [], [np.empty(0, dtype=np.uint64)], 0
    scaled = None if ruler is None else ruler.tables(low, high)
    for j in np.unique(axes).tolist():
        numbers = np.arange(low[j], high[j] + 1) if scaled is None else scaled[j]
        bits = np.zeros(len(numbers), dtype=np.uint64)
        left, right = np.full((2, len(numbers)), [[numbers[0]], [numbers[-1] + 1]])
        for i in np.flatnonzero(axes == j).tolist():
            cut = (left + right) >> 1
            upper = numbers >= cut
            left, right = np.where(upper, cut, left), np.where(upper, right, cut)
            bits |= upper.astype(np.uint64) << np.uint64(len(axes) - 1 - i)
        columns.append((j, low[j], high[j], start))
        tables.append(bits)
        start += len(bits)
    return np.array(columns, dtype=np.int64).reshape(-1, 4), np.concatenate(tables)


C = TypeVar("C", bound=CellRows)


@dataclass(frozen=True, repr=False)
class Halved(Generic[C]):
    """Cells of records, which can be counted wherever the records are."""

    sums: Sums[C]
    axes: NDArray[np.int32]
    scale: tuple[Integers, ...] = ()  # the numbers of a ruler, if there is one

    @classmethod
    def along(cls, sums: Sums[C], axes: ArrayLike, ruler: Ruler | None = None) -> Halved[C]:
        """Records in a box that is halved across these columns, one after the other."""
        axes, d = np.ascontiguousarray(axes, dtype=np.int32), sums.n_features
        if axes.ndim != 1 or len(axes) > MOST_HALVINGS:
            raise DeclarationError(
                f"axes (shape {axes.shape}) must be at most {MOST_HALVINGS} columns; pass "
                "Halvings(low, high).axes"
            )
        if len(axes) and not (0 <= axes.min() and axes.max() < d):
            raise DeclarationError(f"axes must lie in 0..{d - 1}; pass columns to halve")
        scale = () if ruler is None else (ruler.origin, ruler.reach, ruler.bits)
        return cls(sums, axes, scale)

    def count(self, codes: NDArray[np.uint64], shift: NDArray[np.uint64]) -> Integers:
        """int64: the number of records in each cell, whose code lacks the last `shift` halvings."""
        return self.sums.sum(CellRows.cell_counts, codes, shift, self.axes, *self.scale)
