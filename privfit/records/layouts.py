"""Linear losses on dense and on sparse records: two layouts, the same answers bit for bit.

Candidates come as whole numbers of grid units. `losses` needs margins that fit in 32 bits, as the
caller has shown from public bounds; `losses_wide` does not. A *parent* keeps the margins of one
candidate, to score its one-coordinate moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import linear as kernels
from privfit._kernels.records import BLOCK_ROWS, LANE_WIDTH, PANEL_ROWS, QUAD_SIZE, Loss
from privfit._kernels.smooth import Packed
from privfit.base.typing import Floats, Integers
from privfit.records.candidates import lane_groups, quad_starts, quads, wrap32
from privfit.records.packing import DenseRecords, SparseRecords, aligned, tiles
from privfit.records.rows import Rows

HALF_BLOCK = BLOCK_ROWS // 2  # records whose gradients fit in 32 bits

Caps: TypeAlias = NDArray[np.int16]
NO_CAPS: Caps = np.empty(0, dtype=np.int16)  # of single records: one cap holds for all


@dataclass(frozen=True, repr=False)
class DenseLayout:
    """Records in panels; margins by products of int16 pairs."""

    records: DenseRecords
    loss: Loss
    a: int

    def fits(self, whole: Floats) -> NDArray[np.bool_]:
        """(m,) which candidates' weights fit in 16 bits."""
        return np.asarray(np.abs(whole[:, :-1]).max(axis=1) <= 32767)

    def losses(self, whole: Floats, rows: Rows, short: bool = False) -> Integers:
        """int64 (m,): the loss of each candidate."""
        work = float(rows.n_records) * len(whole) * (8 + self.records.pairs / 8)
        n_threads = rows.threads(work)
        w, start = self._weights(whole)
        out = np.zeros((n_threads, start.size), dtype=np.int64)
        buffer = aligned((n_threads, QUAD_SIZE, rows.tile_rows), np.int32)
        for part in rows.slices(work):
            kernels.dense_losses(self.records.as_pairs, part, w, start, self.loss, buffer, out)
        return out.sum(axis=0)[: len(whole)]

    def losses_wide(self, whole: Floats, rows: Rows) -> Integers:
        """The same where margins may not fit in 32 bits."""
        work = float(rows.n_records) * len(whole) * 4 * (10 + self.records.pairs)
        n_threads = rows.threads(work)
        w, start = self._wide_weights(whole)
        out = np.zeros((n_threads, len(whole)), dtype=np.int64)
        buffer = np.empty((n_threads, rows.tile_rows))
        for part in rows.slices(work):
            kernels.dense_losses_wide(self.records.panels, part, w, start, self.loss, buffer, out)
        return out.sum(axis=0)

    def _weights(self, whole: Floats) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Candidates in quads of int16 pairs, and their intercepts in margin units."""
        return quads(whole[:, :-1], self.records.pairs), quad_starts(whole[:, -1] * 2.0**self.a)

    def _wide_weights(self, whole: Floats) -> tuple[Floats, Floats]:
        weights = np.zeros((len(whole), 2 * self.records.pairs))
        weights[:, : self.records.n_features] = whole[:, :-1]
        return weights, whole[:, -1] * 2.0**self.a

    def _weights_of_one(self, whole: Floats) -> tuple[NDArray[np.int32], int]:
        w, start = self._weights(whole[None])
        return np.ascontiguousarray(w[0, :, 0]), int(start[0, 0])

    def gradient(
        self, whole: Floats, wide: bool, cap: int, rows: Rows, caps: Caps = NO_CAPS
    ) -> Integers:
        """int64 (d + 1,): clipped gradient sums of one candidate; `caps` of each packed row."""
        records, d = self.records, self.records.n_features
        work = float(rows.n_records) * (20 + records.pairs / 2)
        n_threads = rows.threads(work)
        out = np.zeros((n_threads, 2 * records.pairs + 1), dtype=np.int64)
        buffer = aligned((n_threads, 3, HALF_BLOCK), np.int32)
        for part in rows.slices(work, 16 * rows.tile_rows):
            if wide:
                weights, starts = self._wide_weights(whole[None])
                margins = np.empty((n_threads, HALF_BLOCK))
                kernels.dense_gradient_wide(
                    records.panels,
                    part,
                    weights[0],
                    starts[0],
                    self.loss,
                    cap,
                    caps,
                    margins,
                    buffer,
                    out,
                )
            else:
                w, start = self._weights_of_one(whole)
                kernels.dense_gradient(
                    records.as_pairs, part, w, start, self.loss, cap, caps, buffer, out
                )
        total = out.sum(axis=0)
        return np.append(total[:d], total[-1] << self.a)

    @property
    def rows(self) -> int:
        """Packed rows, padding included."""
        return len(self.records.panels) * PANEL_ROWS

    @property
    def entries(self) -> float:
        """Columns of a record that a pass reads."""
        return float(self.records.n_features)

    def packed(self) -> Packed:
        """The records for the kernels of smooth losses."""
        return Packed.dense(self.records.as_pairs, self.a)

    def lengths(self, columns: Integers, shift: int, squared: bool, rows: Rows) -> Integers:
        """int64 (packed rows,): norms of the records' images; see `sparse_lengths`."""
        records = self.records
        matrix, found = columns[:-1].astype(np.float64), []
        for block in records.blocks((1 << 18) // len(columns)):
            image = block.astype(np.float64) @ matrix  # whole numbers below 2^53: exact
            sizes = (np.abs(image.astype(np.int64) + columns[-1]) + ((1 << shift) - 1)) >> shift
            found.append((sizes * sizes if squared else sizes).sum(axis=1))
        result = np.zeros(records.panels.shape[0] * PANEL_ROWS, dtype=np.int64)
        result[np.concatenate([run.first + np.arange(run.count) for run in records.runs])] = (
            np.concatenate(found)
        )
        return result

    def second_moments(self, rows: Rows) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~'."""
        d = self.records.n_features
        total = np.zeros((d + 1, d + 1), dtype=np.int64)
        for block in self.records.blocks((1 << 18) // (d + 1)):
            x = np.column_stack([block, np.full(len(block), 1 << self.a)]).astype(np.float64)
            total += (x.T @ x).astype(np.int64)  # whole numbers below 2^53: exact in any order
        return total

    def parent(self, whole: Floats, rows: Rows) -> DenseParent:
        """The margins of one candidate."""
        z = aligned((self.records.panels.shape[0] * PANEL_ROWS,), np.int32)
        n_threads = rows.threads(float(rows.n_records) * (2 + self.records.pairs))
        kernels.dense_margin(self.records.as_pairs, *self._weights_of_one(whole), z, n_threads)
        return DenseParent(self, z)


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


@dataclass(frozen=True, repr=False)
class SparseLayout:
    """Records as lists of non-zeros; a one is a pure addition."""

    records: SparseRecords
    loss: Loss
    a: int

    def fits(self, whole: Floats) -> NDArray[np.bool_]:
        """(m,) which candidates' weights fit: all, since sums wrap and margins are bounded."""
        return np.ones(len(whole), dtype=bool)

    def losses(self, whole: Floats, rows: Rows, short: bool = False) -> Integers:
        """int64 (m,): the loss of each candidate; `short` margins fit in 16 bits of weights."""
        work = float(rows.n_records) * len(whole) * (8 + self.records.mean_entries / 4)
        n_threads = rows.threads(work)
        w = lane_groups(whole)
        half = LANE_WIDTH // 2
        pairs = w[..., :half] + (w[..., half:] << 16) if short else w[:0]
        out = np.zeros((n_threads, w.shape[0] * LANE_WIDTH), dtype=np.int64)
        buffer = aligned((n_threads, 32, LANE_WIDTH), np.int32)
        for part in rows.slices(work):
            kernels.sparse_losses(self.records.rows, part, w, pairs, self.a, self.loss, buffer, out)
        return out.sum(axis=0)[: len(whole)]

    def losses_wide(self, whole: Floats, rows: Rows) -> Integers:
        """The same where margins may not fit in 32 bits."""
        work = float(rows.n_records) * len(whole) * 4 * (10 + self.records.mean_entries)
        n_threads = rows.threads(work)
        out = np.zeros((n_threads, len(whole)), dtype=np.int64)
        buffer = np.empty((n_threads, rows.tile_rows))
        for part in rows.slices(work):
            kernels.sparse_losses_wide(
                self.records.rows, part, whole, self.a, self.loss, buffer, out
            )
        return out.sum(axis=0)

    def gradient(
        self, whole: Floats, wide: bool, cap: int, rows: Rows, caps: Caps = NO_CAPS
    ) -> Integers:
        """int64 (d + 1,): clipped gradient sums of one candidate; `caps` of each packed row."""
        work = float(rows.n_records) * (20 + 2 * self.records.mean_entries)
        n_threads = rows.threads(work)
        narrow_w = wrap32(whole) if not wide else np.zeros(0, dtype=np.int32)
        out = np.zeros((n_threads, 2, len(whole)), dtype=np.int64)
        buffer = aligned((n_threads, 2, BLOCK_ROWS), np.int32)
        margins = np.empty((n_threads, BLOCK_ROWS if wide else 0))
        for part in rows.slices(work, 8 * rows.tile_rows):
            kernels.sparse_gradient(
                self.records.rows, part, whole, narrow_w, self.a, self.loss, cap, caps, margins,
                buffer, out,
            )  # fmt: skip
        ones, values = out.sum(axis=0)
        return (ones << self.a) + values

    @property
    def rows(self) -> int:
        """Packed rows."""
        return self.records.one_start.size - 1

    @property
    def entries(self) -> float:
        """Columns of a record that a pass reads, on average."""
        return self.records.mean_entries

    def packed(self) -> Packed:
        """The records for the kernels of smooth losses."""
        return Packed.sparse(self.records.rows, self.records.n_features, self.a)

    def lengths(self, columns: Integers, shift: int, squared: bool, rows: Rows) -> Integers:
        """int64 (packed rows,): norms of the records' images; see `sparse_lengths`."""
        work = float(rows.n_records) * (1 + self.records.mean_entries) * columns.shape[1] / 4
        n_threads = rows.threads(work)
        result = np.empty(rows.n_records, dtype=np.int64)
        for part in rows.slices(work):
            kernels.sparse_lengths(
                self.records.rows, part, columns, self.a, shift, squared, result, n_threads
            )
        return result

    def second_moments(self, rows: Rows) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~'."""
        d = self.records.n_features
        work = float(rows.n_records) * (1 + self.records.mean_entries**2)
        n_threads = rows.threads(work)
        sums = np.zeros((n_threads, d + 1, d + 1), dtype=np.int64)
        for part in rows.slices(work):
            kernels.sparse_moments(self.records.rows, part, self.a, sums)
        upper = np.triu(sums.sum(axis=0))
        return upper + np.triu(upper, 1).T

    def parent(self, whole: Floats, rows: Rows) -> SparseParent:
        """The margins and losses of one candidate."""
        parts = tiles(rows.runs, rows.tile_rows)
        n_threads = rows.threads(float(rows.n_records) * (10 + self.records.mean_entries))
        state = np.empty((rows.n_records, 2), dtype=np.int32)
        z, losses = np.empty((2, rows.n_records), dtype=np.int32)
        kernels.sparse_margins(self.records.rows, parts, wrap32(whole), self.a, z, n_threads)
        kernels.losses_each(z, parts, self.loss, losses, n_threads)
        state[:, 0], state[:, 1] = z, losses
        return SparseParent(self, state, int(losses.sum(dtype=np.int64)))


class SparseParent:
    """Margins and losses of one candidate; a move changes only its column's non-zeros."""

    def __init__(self, layout: SparseLayout, state: NDArray[np.int32], total: int) -> None:
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

    def __init__(self, key: bytes, layout: SparseLayout) -> None:
        self.key = key
        coords = np.frombuffer(key, dtype=np.int64)
        self.order = np.argsort(coords, kind="stable")
        used, first = np.unique(coords[self.order], return_index=True)
        self.moves = np.column_stack([first, np.append(first[1:], len(coords))]).astype(np.int64)
        columns = layout.records.by_column
        entries = columns.start[used + 1] - columns.start[used]
        self.work = float(entries @ (self.moves[:, 1] - self.moves[:, 0])) * 12
        self.segments = columns.segments(used)


class SparseFollower:
    """Margins, less the intercept, of a model that changes in a few weights at a time."""

    def __init__(self, layout: SparseLayout) -> None:
        self._layout = layout
        self._whole: Floats | None = None
        self._z = np.empty(0, dtype=np.int32)

    def gradient(self, whole: Floats, cap: int, rows: Rows) -> Integers:
        """`SparseLayout.gradient` of one candidate whose margin fits in 32 bits."""
        self._follow(whole, rows)
        layout = self._layout
        work = float(rows.n_records) * (20 + layout.records.mean_entries)
        n_threads = rows.threads(work)
        start = int(wrap32(whole[-1:] * 2.0**layout.a)[0])
        out = np.zeros((n_threads, 2, len(whole)), dtype=np.int64)
        buffer = aligned((n_threads, 2, BLOCK_ROWS), np.int32)
        for part in rows.slices(work, 8 * rows.tile_rows):
            kernels.sparse_gradient_at(
                layout.records.rows, part, self._z, start, layout.loss, cap, buffer, out
            )
        ones, values = out.sum(axis=0)
        return (ones << layout.a) + values

    def _follow(self, whole: Floats, rows: Rows) -> None:
        """Bring the margins up to date; after an interruption they are computed afresh."""
        layout, before, self._whole = self._layout, self._whole, None
        changed = None if before is None else np.flatnonzero(whole[:-1] != before[:-1])
        if before is None or changed is None or len(changed) > 4:
            n_threads = rows.threads(float(rows.n_records) * (10 + layout.records.mean_entries))
            self._z = np.empty(rows.n_records, dtype=np.int32)
            kernels.sparse_margins(
                layout.records.rows, tiles(rows.runs, rows.tile_rows),
                wrap32(np.append(whole[:-1], 0.0)), layout.a, self._z, n_threads,
            )  # fmt: skip
        else:
            columns, steps = layout.records.by_column, wrap32(whole - before)
            for j in changed.tolist():
                part = slice(columns.start[j], columns.start[j + 1])
                kernels.sparse_shift(columns.row[part], columns.value[part], int(steps[j]), self._z)
        self._whole = whole
