"""Records in a box that is repeatedly halved: the cell of each record, and counts of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels.centers import cells as kernel_cells
from privfit._kernels.records import PANEL_ROWS
from privfit.base.errors import DeclarationError
from privfit.base.typing import Integers
from privfit.records.packing import DenseRecords
from privfit.records.rows import Rows
from privfit.records.sums import Sums

MOST_HALVINGS = 62  # bits of a cell's code


class CellRows(Rows):
    """Dense records, all columns in one unit, within public bounds."""

    dense: DenseRecords | None
    bounds: tuple[Integers, Integers]

    def cells(self, axes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """(n,) the cell of each record in a box halved across these columns, one bit each."""
        assert self.dense is not None
        panels, d = self.dense.panels, self.dense.n_features
        work = float(self.n_records) * (len(axes) + d)
        box = np.array([self.bounds[0], self.bounds[1] + 1], dtype=np.int32)
        out = np.empty(len(panels) * PANEL_ROWS, dtype=np.uint64)
        buffer = np.empty((self.threads(work), 2, d), dtype=np.int32)
        for part in self.slices(work):
            kernel_cells(panels, part, axes, box, buffer, out)
        return np.concatenate([out[run.first : run.first + run.count] for run in self.runs])

    def cell_counts(
        self, axes: NDArray[np.int32], codes: NDArray[np.uint64], shift: NDArray[np.uint64]
    ) -> Integers:
        """int64: the number of records in each of these cells, whose codes lack `shift` bits."""
        cells = self._stay("cells", (axes,), lambda: np.sort(self.cells(axes)))
        first = np.searchsorted(cells, codes << shift)
        return np.asarray(np.searchsorted(cells, (codes + np.uint64(1)) << shift) - first)


C = TypeVar("C", bound=CellRows)


@dataclass(frozen=True, repr=False)
class Halved(Generic[C]):
    """Cells of records, which can be counted wherever the records are."""

    sums: Sums[C]
    axes: NDArray[np.int32]

    @classmethod
    def along(cls, sums: Sums[C], axes: ArrayLike) -> Halved[C]:
        """Records in a box that is halved across these columns, one after the other."""
        axes, d = np.ascontiguousarray(axes, dtype=np.int32), sums.n_features
        if axes.ndim != 1 or len(axes) > MOST_HALVINGS:
            raise DeclarationError(
                f"axes (shape {axes.shape}) must be at most {MOST_HALVINGS} columns; pass "
                "Halvings(low, high).axes"
            )
        if len(axes) and not (0 <= axes.min() and axes.max() < d):
            raise DeclarationError(f"axes must lie in 0..{d - 1}; pass columns to halve")
        return cls(sums, axes)

    def count(self, codes: NDArray[np.uint64], shift: NDArray[np.uint64]) -> Integers:
        """int64: the number of records in each cell, whose code lacks the last `shift` halvings."""
        return self.sums.sum(CellRows.cell_counts, self.axes, codes, shift)
