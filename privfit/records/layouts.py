"""Linear losses on dense, on sparse and on coded records: the same answers bit for bit.

Candidates come as whole numbers of grid units. `losses` needs margins that fit in 32 bits, as the
caller has shown from public bounds; `losses_wide` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import codes as code_kernels
from privfit._kernels import linear as kernels
from privfit._kernels.records import BLOCK_ROWS, LANE_WIDTH, PANEL_ROWS, QUAD_SIZE, Loss
from privfit._kernels.smooth import Packed
from privfit.base.typing import Floats, Integers
from privfit.records.candidates import lane_groups, quad_starts, quads, two_to_a_lane, wrap32
from privfit.records.codes import CodeRecords
from privfit.records.levels import COUNTED, PairSums, Unfolded
from privfit.records.packing import DenseRecords, SparseRecords, aligned, tiles
from privfit.records.parents import DenseParent, SparseParent
from privfit.records.rows import Rows

IMAGE = 256  # coordinates of coded records' images that are summed at a time
FEW_CHANGES = 4  # of weights, by which margins follow a candidate; of more they are made afresh
HALF_BLOCK = BLOCK_ROWS // 2  # records whose gradients fit in 32 bits

Caps: TypeAlias = NDArray[np.int16]
# Float64 numbers that are looked at together: workers of Dask tell the C library to return all
# memory from 128 kB on to the system, and then new arrays cost more than what is done with them.
AT_ONCE = 15_000
NO_TABLE = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
NO_WIDE = (np.empty(0), np.empty(0))
NO_CAPS: Caps = np.empty(0, dtype=np.int16)  # of single records: one cap holds for all


@dataclass(frozen=True, repr=False)
class DenseLayout(Unfolded):
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

    @property
    def _places(self) -> Integers:
        """Where panels have the columns, and the intercept."""
        return np.append(np.arange(self.records.n_features), 2 * self.records.pairs)

    def spread(self, w: Integers) -> Integers:
        """Weights (m, d + 1) as `packed` has its columns."""
        weights = np.zeros((len(w), 2 * self.records.pairs + 1), dtype=np.int64)
        weights[:, self._places] = w
        return weights

    def folded(self, sums: Integers) -> Integers:
        """Sums (m, columns) as (m, d + 1)."""
        return sums[:, self._places]

    def lengths(self, columns: Integers, shift: int, squared: bool, rows: Rows) -> Integers:
        """int64 (packed rows,): norms of the records' images; see `sparse_lengths`."""
        records = self.records
        matrix, found = columns[:-1].astype(np.float64), []
        for block in records.blocks(AT_ONCE // len(columns)):
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
        for block in self.records.blocks(AT_ONCE // (d + 1)):
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
class SparseLayout(Unfolded):
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
        pairs = two_to_a_lane(w[..., :half], w[..., half:]) if short else w[:0]
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

    def spread(self, w: Integers) -> Integers:
        """Weights (m, d + 1) as `packed` has its columns."""
        return w

    def folded(self, sums: Integers) -> Integers:
        """Sums (m, columns) as (m, d + 1)."""
        return sums

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

    def follow(
        self, before: Floats | None, whole: Floats, z: NDArray[np.int32], rows: Rows
    ) -> None:
        """Bring margins (n,), less the intercept, from one candidate to another."""
        if before is not None:
            changed = np.flatnonzero(whole[:-1] != before[:-1])
            if len(changed) <= FEW_CHANGES:
                columns, steps = self.records.by_column, wrap32(whole - before)
                for j in changed.tolist():
                    part = slice(columns.start[j], columns.start[j + 1])
                    kernels.sparse_shift(columns.row[part], columns.value[part], int(steps[j]), z)
                return
        n_threads = rows.threads(float(rows.n_records) * (10 + self.records.mean_entries))
        kernels.sparse_margins(
            self.records.rows, tiles(rows.runs, rows.tile_rows),
            wrap32(np.append(whole[:-1], 0.0)), self.a, z, n_threads,
        )  # fmt: skip

    def gradient_at(self, z: NDArray[np.int32], whole: Floats, cap: int, rows: Rows) -> Integers:
        """Clipped gradient sums of a candidate with these margins (n,), less the intercept."""
        work = float(rows.n_records) * (20 + self.records.mean_entries)
        n_threads = rows.threads(work)
        out = np.zeros((n_threads, 2, len(whole)), dtype=np.int64)
        buffer = aligned((n_threads, 2, BLOCK_ROWS), np.int32)
        for part in rows.slices(work, 8 * rows.tile_rows):
            kernels.sparse_gradient_at(
                self.records.rows, part, z, _in_margins(whole[-1], self.a), self.loss, cap, buffer,
                out,
            )  # fmt: skip
        ones, values = out.sum(axis=0)
        return np.asarray((ones << self.a) + values)

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


@dataclass(frozen=True, repr=False)
class CodeLayout:
    """Records as rows of joint codes; margins are look-ups, gradients are histograms."""

    records: CodeRecords
    loss: Loss
    a: int

    def fits(self, whole: Floats) -> NDArray[np.bool_]:
        """(m,) which candidates' weights fit: all, since sums wrap and margins are bounded."""
        return np.ones(len(whole), dtype=bool)

    def losses(self, whole: Floats, rows: Rows, short: bool = False) -> Integers:
        """int64 (m,): the loss of each candidate; `short` sums over levels fit in 16 bits."""
        numbers = whole[:, self.records.plan.ends[:-1]]
        if not short or np.abs(numbers).max(initial=0) > 32767:
            return self._losses(lane_groups(whole), rows)[: len(whole)]
        many = len(whole) // LANE_WIDTH * LANE_WIDTH
        if len(whole) - many > LANE_WIDTH // 2:
            many = len(whole)
        parts = [self._losses(lane_groups(some, width), rows, paired=True)[: len(some)]
                 for some, width in ((whole[:many], LANE_WIDTH), (whole[many:], LANE_WIDTH // 2))
                 if len(some)]  # fmt: skip
        return np.concatenate(parts)

    def _losses(self, w: NDArray[np.int32], rows: Rows, paired: bool = False) -> Integers:
        """int64 (groups * width,): the losses of groups of candidates (groups, d + 1, width).

        Where they are `paired`, two candidates share a lane, and so do the weights of two numbers.
        """
        plan, width = self.records.plan, w.shape[2]
        work = float(rows.n_records) * w.shape[0] * width * (8 + self.records.mean_entries / 4)
        n_threads = rows.threads(work)
        levels, numbers = w, np.ascontiguousarray(w[:, plan.ends[:-1]])
        if paired:
            levels = two_to_a_lane(w[..., : width // 2], w[..., width // 2 :])
            if len(plan.ends) % 2 == 0:
                numbers = np.pad(numbers, ((0, 0), (0, 1), (0, 0)))
            numbers = two_to_a_lane(numbers[:, ::2] & 0xFFFF, numbers[:, 1::2])
        table = aligned((len(w), plan.bins, levels.shape[2]), np.int32, zero=False)
        code_kernels.tables(plan.parts, levels, table)
        start = np.ascontiguousarray(levels[:, -1:])
        out = np.zeros((n_threads, w.shape[0] * width), dtype=np.int64)
        buffer = aligned((n_threads, 32, LANE_WIDTH), np.int32, zero=False)
        for part in rows.slices(work):
            code_kernels.losses(
                self.records.rows, part, table, start, numbers, self.a, self.loss, buffer, out
            )
        return out.sum(axis=0)

    def losses_wide(self, whole: Floats, rows: Rows) -> Integers:
        """The same where margins may not fit in 32 bits."""
        work = float(rows.n_records) * len(whole) * 4 * (10 + self.records.mean_entries)
        n_threads, plan = rows.threads(work), self.records.plan
        table = np.empty((len(whole), plan.bins, 1))
        code_kernels.tables_wide(plan.parts, np.ascontiguousarray(whole)[..., None], table)
        ends = np.ascontiguousarray(whole[:, plan.ends])
        out = np.zeros((n_threads, len(whole)), dtype=np.int64)
        buffer = np.empty((n_threads, rows.tile_rows))
        for part in rows.slices(work):
            code_kernels.losses_wide(
                self.records.rows, part, table[..., 0], ends, self.a, self.loss,
                buffer, out,
            )  # fmt: skip
        return out.sum(axis=0)

    def _table(self, whole: Floats) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The weights of bins, and those of numbers and the intercept, of one candidate."""
        plan, w = self.records.plan, wrap32(whole)
        table = np.empty((1, plan.bins, 1), dtype=np.int32)
        code_kernels.tables(plan.parts, w[None, :, None], table)
        return table[0, :, 0], w[plan.ends]

    def _wide_table(self, whole: Floats) -> tuple[Floats, Floats]:
        plan = self.records.plan
        table = np.empty((1, plan.bins, 1))
        code_kernels.tables_wide(plan.parts, np.ascontiguousarray(whole)[None, :, None], table)
        return table[0, :, 0], whole[plan.ends]

    def gradient(
        self, whole: Floats, wide: bool, cap: int, rows: Rows, caps: Caps = NO_CAPS
    ) -> Integers:
        """int64 (d + 1,): clipped gradient sums of one candidate; `caps` of each packed row."""
        table, w = NO_TABLE if wide else self._table(whole)
        wide_table, wide_w = self._wide_table(whole) if wide else NO_WIDE

        def add(part: Integers, buffer: NDArray[np.int32], *sums: Any) -> None:
            margins = np.empty((len(buffer), BLOCK_ROWS if wide else 0))
            code_kernels.gradient(
                self.records.rows, part, table, w, wide_table, wide_w, self.a, self.loss, cap,
                caps, margins, buffer, *sums,
            )  # fmt: skip

        return self._summed(rows, add)

    def gradient_at(self, z: NDArray[np.int32], whole: Floats, cap: int, rows: Rows) -> Integers:
        """The same of a candidate with these margins (n,), less the intercept."""
        start = _in_margins(whole[-1], self.a)
        return self._summed(rows, lambda part, *sums: code_kernels.gradient_at(
            self.records.rows, part, z, start, self.loss, cap, *sums))  # fmt: skip

    def _summed(self, rows: Rows, add: Callable[..., None]) -> Integers:
        """int64 (d + 1,): what `add` puts into the buffers of a gradient, tile by tile."""
        plan = self.records.plan
        work = float(rows.n_records) * (16 + 2 * self.records.mean_entries)
        n_threads = rows.threads(work)
        buffer = aligned((n_threads, 2, BLOCK_ROWS), np.int32, zero=False)
        counted = np.zeros(n_threads, dtype=np.int64)
        sums = np.zeros((n_threads, plan.bins), dtype=np.int32)
        out = np.zeros((n_threads, plan.bins + len(plan.ends)), dtype=np.int64)
        for part in rows.slices(work, 8 * rows.tile_rows):
            add(part, buffer, counted, sums, out)
        result = np.zeros(plan.n_features + 1, dtype=np.int64)
        code_kernels.finished(plan.parts, plan.ends, self.a, sums, out, result)
        return result

    def follow(
        self, before: Floats | None, whole: Floats, z: NDArray[np.int32], rows: Rows
    ) -> None:
        """Bring margins (n,), less the intercept, from one candidate to another.

        A look-up a record does if weights of levels changed, and those of one joint column alone.
        """
        joint, weights = -1, whole
        if before is not None:
            changed = np.flatnonzero(whole[:-1] != before[:-1])
            if len(changed) == 0:
                return
            first, *others = set(self.records.plan.joint_of[changed].tolist())
            if first >= 0 and not others:
                joint, weights = first, whole - before
        n_threads = rows.threads(float(rows.n_records) * (10 + self.records.mean_entries))
        code_kernels.follow(self.records.rows, joint, *self._table(weights), self.a, z, n_threads)

    def pass_work(self, coords: Integers, steps: NDArray[np.int32]) -> int:
        """What a record costs `moved_losses`, in losses: one for each step, and for each number."""
        of_numbers = np.isin(coords, self.records.plan.ends[:-1])
        return 3 + 3 * len(np.unique(steps[~of_numbers])) + int(of_numbers.sum())

    def moved_losses(
        self, whole: Floats, coords: Integers, steps: NDArray[np.int32], most: int, rows: Rows
    ) -> Integers:
        """int64 (m,): the loss after each move of one candidate, by one pass over all records.

        The 32 bits of a bin hold the changes of `most` records.
        """
        plan = self.records.plan
        work = float(rows.n_records) * 8 * self.pass_work(coords, steps)
        n_threads = rows.threads(work)
        place = np.searchsorted(plan.places, coords).clip(max=len(plan.places) - 1)
        of_numbers = np.isin(coords, plan.ends[:-1])
        used, which = np.unique(steps[~of_numbers], return_inverse=True)
        buffer = aligned((n_threads, 3, BLOCK_ROWS), np.int32, zero=False)
        counted = np.zeros((n_threads, len(used)), dtype=np.int64)
        sums = np.zeros((n_threads, len(used), plan.bins), dtype=np.int32)
        out = np.zeros((n_threads, len(used), plan.bins + 1), dtype=np.int64)
        losses = np.zeros((n_threads, int(of_numbers.sum()) + 1), dtype=np.int64)
        for part in rows.slices(work, 4 * rows.tile_rows):
            code_kernels.moves(
                self.records.rows, part, *self._table(whole), used, place[of_numbers],
                steps[of_numbers], self.a, self.loss, most, buffer, counted, sums, out, losses,
            )  # fmt: skip
        out[..., :-1] += sums
        changes = np.zeros((len(used), plan.n_features + 1), dtype=np.int64)
        code_kernels.folded(plan.parts, plan.ends[-1:], out.sum(axis=0), changes)
        *moved, before = losses.sum(axis=0).tolist()
        result = np.empty(len(coords), dtype=np.int64)
        result[of_numbers] = moved
        result[~of_numbers] = before + changes[which, coords[~of_numbers]]
        return result

    @property
    def rows(self) -> int:
        """Packed rows."""
        return len(self.records.codes)

    @property
    def entries(self) -> float:
        """Columns of a record that a pass reads."""
        return self.records.mean_entries

    def packed(self) -> Packed:
        """The records for the kernels of smooth losses."""
        return Packed.coded(self.records.rows, self.records.plan.bins, self.a)

    def spread(self, w: Integers) -> Integers:
        """Weights (m, d + 1) as `packed` has its columns: bins, numbers and the intercept."""
        plan = self.records.plan
        table = np.empty((len(w), plan.bins, 1), dtype=np.int64)
        code_kernels.tables_long(plan.parts, np.ascontiguousarray(w)[..., None], table)
        return np.concatenate([table[..., 0], w[:, plan.ends]], axis=1)

    def folded(self, sums: Integers) -> Integers:
        """Sums (m, columns) as (m, d + 1)."""
        plan = self.records.plan
        result = np.zeros((len(sums), plan.n_features + 1), dtype=np.int64)
        code_kernels.folded(plan.parts, plan.ends, np.ascontiguousarray(sums), result)
        return result

    def lengths(self, columns: Integers, shift: int, squared: bool, rows: Rows) -> Integers:
        """int64 (packed rows,): norms of the records' images; see `sparse_lengths`."""
        plan, records, width = self.records.plan, self.records, columns.shape[1]
        work = float(rows.n_records) * (4 + records.mean_entries) * width / 4
        n_threads, result = rows.threads(work), np.zeros(rows.n_records, dtype=np.int64)
        for first in range(0, width, IMAGE):
            some = np.ascontiguousarray(columns[:, first : first + IMAGE], dtype=np.float64)
            table = np.empty((1, plan.bins, some.shape[1]))
            code_kernels.tables_wide(plan.parts, some[None], table)
            for part in rows.slices(work * IMAGE / width):
                code_kernels.add_lengths(
                    records.rows, part, table[0], some[-1], some[plan.ends[:-1]], self.a, shift,
                    squared, np.empty((n_threads, some.shape[1])), result,
                )  # fmt: skip
        return result

    def second_moments(self, rows: Rows) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~', from tables of pairs of levels."""
        plan, pieces, numbers = self.records.plan, self.records.plan.pieces, self.records.numbers
        work = float(rows.n_records) * len(pieces.rows) * (1 + len(pieces.rows) + len(numbers))
        n_threads, tile = rows.threads(work), 4 * rows.tile_rows
        levels = np.empty((n_threads, len(pieces.rows), tile), dtype=np.uint16)
        counts = np.zeros((n_threads, pieces.counts), dtype=np.int32)
        products = len(numbers) * (len(numbers) + 1) // 2
        sums = np.zeros(
            (n_threads, len(numbers) * int(pieces.rows[:, 1].sum()) + products), dtype=np.int64
        )
        for part in rows.slices(work, tile):
            code_kernels.add_counts(
                self.records.rows, part, pieces.rows, pieces.lookup, levels, counts, sums
            )
        result = np.zeros((plan.n_features + 1, plan.n_features + 1), dtype=np.int64)
        code_kernels.moments(
            pieces.rows, pieces.parts, plan.ends, self.a,
            counts.sum(axis=0, dtype=np.int64) << 2 * self.a, sums.sum(axis=0),
            np.empty(pieces.room, dtype=np.int64), result,
        )  # fmt: skip
        result[-1, -1] = rows.n_records << 2 * self.a
        return result

    def level_counts(self) -> Integers:
        """int64 (2, d): the records of class 0 and of class 1 at each level."""
        plan, codes = self.records.plan, self.records.codes
        sums = np.zeros((2, plan.bins + len(plan.ends)), dtype=np.int64)
        for run in self.records.runs:
            of_run = codes[run.first : run.first + run.count]
            for first in range(0, run.count, COUNTED):
                some = of_run[first : first + COUNTED].ravel()
                sums[1 + run.flip, : plan.bins] += np.bincount(some, minlength=plan.bins)
        return self.folded(sums)[:, :-1]

    def feature_moments(self, matrix: Integers) -> Integers:
        """int64 (p, p): the sum of phi phi', from tables of pairs of levels."""
        plan, codes = self.records.plan, self.records.codes
        pairs = PairSums(plan.groups, matrix)
        for first in range(0, len(codes), COUNTED):
            pairs.add(plan.levels(codes[first : first + COUNTED]))
        return pairs.total

    def parent(self, whole: Floats, rows: Rows) -> SparseParent:
        """The margins and losses of one candidate."""
        n_threads = rows.threads(float(rows.n_records) * (10 + self.records.mean_entries))
        state = np.empty((rows.n_records, 2), dtype=np.int32)
        code_kernels.margins(
            self.records.rows, tiles(rows.runs, rows.tile_rows), *self._table(whole), self.a,
            self.loss, state, aligned((n_threads, 2, BLOCK_ROWS), np.int32),
        )  # fmt: skip
        return SparseParent(self, state, int(state[:, 1].sum(dtype=np.int64)))


def _in_margins(intercept: float, a: int) -> int:
    """An intercept in margin units, modulo 2^32."""
    return int(wrap32(np.array([intercept * 2.0**a]))[0])


# ---------------------------------------------------------------------------------- all layouts

Records: TypeAlias = DenseRecords | SparseRecords | CodeRecords
Layout: TypeAlias = DenseLayout | SparseLayout | CodeLayout


def layout_of(records: Records, loss: Loss, a: int) -> Layout:
    """The layout that packed records have."""
    if isinstance(records, DenseRecords):
        return DenseLayout(records, loss, a)
    if isinstance(records, CodeRecords):
        return CodeLayout(records, loss, a)
    return SparseLayout(records, loss, a)
