"""Margins that are kept of one candidate: for its one-coordinate moves, and for the next candidate.

They only save time: made afresh, they are the same integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import linear as kernels
from privfit._kernels.records import BLOCK_ROWS, PANEL_ROWS
from privfit.base.typing import Floats, Integers
from privfit.records.packing import aligned
from privfit.records.rows import Rows

if TYPE_CHECKING:
    from privfit.records.layouts import CodeLayout, DenseLayout, SparseLayout


@dataclass(frozen=True, repr=False)
class DenseParent:
    """Margins of one candidate; every move changes every record, but needs no product."""

    layout: DenseLayout
    z: NDArray[np.int32]

    def moved_losses(self, coords: Integers, steps: NDArray[np.int32], rows: Rows) -> Integers:
        """int64 (m,): the loss after each move."""
        records, intercept = self.layout.records, self.layout.records.n_features
        scaled = np.where(coords == intercept, steps << self.layout.a, steps).astype(np.int32)
        work = float(rows.n_records) * len(coords) * 8
        n_threads = rows.threads(work)
        out = np.zeros((n_threads, len(coords)), dtype=np.int64)
        buffer = aligned((n_threads, rows.tile_rows), np.int32)
        for part in rows.slices(work):
            kernels.dense_moves(
                records.as_pairs, part, self.z, coords, scaled, intercept, self.layout.loss, buffer,
                out,
            )  # fmt: skip
        return out.sum(axis=0)

    def step(self, coord: int, step: int) -> None:
        """Move, in place."""
        records, z = self.layout.records, self.z.reshape(-1, PANEL_ROWS)
        if coord == records.n_features:
            z += np.int32(step << self.layout.a)
        else:
            z += records.panels[:, coord // 2, :, coord % 2].astype(np.int32) * np.int32(step)


class SparseParent:
    """Margins and losses of one candidate; a move changes only its column's non-zeros."""

    def __init__(
        self, layout: SparseLayout | CodeLayout, state: NDArray[np.int32], total: int
    ) -> None:
        self._layout, self._state, self._total = layout, state, total
        self._batch: _Batch | None = None

    def moved_losses(self, coords: Integers, steps: NDArray[np.int32], rows: Rows) -> Integers:
        """int64 (m,): the loss after each move."""
        many = 4096  # moves of one column may all fall into one segment: bound a segment's work
        if len(coords) > many:
            parts = [slice(first, first + many) for first in range(0, len(coords), many)]
            return np.concatenate([self.moved_losses(coords[p], steps[p], rows) for p in parts])
        batch, key = self._batch, coords.tobytes()
        if batch is None or batch.key != key:  # a walk asks for the same columns again and again
            self._batch = batch = _Batch(key, self._layout)
        columns = self._layout.records.by_column
        n_threads = rows.threads(batch.work)
        out = np.zeros((n_threads, len(coords)), dtype=np.int64)
        buffer = aligned((n_threads, 2, BLOCK_ROWS), np.int32)
        for part in rows.steps(len(batch.segments), batch.work):
            kernels.sparse_moves(
                self._state, batch.segments[part], batch.moves, columns.row, columns.value,
                steps[batch.order], self._layout.loss, buffer, out,
            )  # fmt: skip
        result = np.empty(len(coords), dtype=np.int64)
        result[batch.order] = self._total + out.sum(axis=0)
        return result

    def step(self, coord: int, step: int) -> None:
        """Move, in place."""
        columns = self._layout.records.by_column
        self._total += kernels.sparse_step(
            self._state, columns.segments(np.array([coord])), columns.row, columns.value, step,
            self._layout.loss, aligned((2, BLOCK_ROWS), np.int32),
        )  # fmt: skip


class _Batch:
    """Moves sorted by column: their order, the moves of each column, its segments, their work."""

    def __init__(self, key: bytes, layout: SparseLayout | CodeLayout) -> None:
        self.key = key
        coords = np.frombuffer(key, dtype=np.int64)
        self.order = np.argsort(coords, kind="stable")
        used, first = np.unique(coords[self.order], return_index=True)
        self.moves = np.column_stack([first, np.append(first[1:], len(coords))]).astype(np.int64)
        columns = layout.records.by_column
        entries = columns.start[used + 1] - columns.start[used]
        self.work = float(entries @ (self.moves[:, 1] - self.moves[:, 0])) * 12
        self.segments = columns.segments(used)


class Follower:
    """Margins, less the intercept, of a model that changes in a few weights at a time."""

    def __init__(self, layout: SparseLayout | CodeLayout) -> None:
        self._layout = layout
        self._whole: Floats | None = None
        self._z = np.empty(0, dtype=np.int32)

    def gradient(self, whole: Floats, cap: int, rows: Rows) -> Integers:
        """Clipped gradient sums of one candidate whose margin fits in 32 bits."""
        before, self._whole = self._whole, None  # so that margins are made anew after an error
        if before is None:
            self._z = np.empty(rows.n_records, dtype=np.int32)
        self._layout.follow(before, whole, self._z, rows)
        self._whole = whole
        return self._layout.gradient_at(self._z, whole, cap, rows)
