"""Sums of slopes and curvatures of a smooth loss over packed records: see `objectives.smooth`.

If clipping is on, the `numbers` of a record are scaled down, all together, to an l1 norm of
`radius`, and rounded down to whole units: a function of the record alone, like everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels import smooth as kernels
from privfit._kernels.records import PANEL_ROWS
from privfit._kernels.smooth import HALF_BITS
from privfit.base.typing import Floats, Integers
from privfit.records.codes import CodeRecords
from privfit.records.layouts import Layout, Records
from privfit.records.packing import SparseRecords
from privfit.records.rows import Rows

MARGIN_BITS = 61  # of a margin
NO_KNOTS = np.empty(0)
CELLS = 128  # of a table of slopes, to a margin of 1; a power of two
PULL_BITS = 45  # of a slope times a column: MOST_SUMMED of them, with a sign, stay below 2^62
CLIP_ROWS = 1 << 14  # records that are clipped at a time


@dataclass(frozen=True, eq=False)
class Smoothing:
    """A smooth loss, and the clip of records.

    Parameters
    ----------
    width : float
        Half the width of the parabola that rounds a hinge; 0 for the logistic loss.
    numbers, radius : columns, float
        What is clipped to an l1 norm of `radius`; an infinite radius for no clip.
    knots : (odd,) float64, optional
        Minus the slopes of another loss, relative to the steepest, at margins i / CELLS, with 0 in
        the middle: none larger than the one before.
    steepest : float
        Of the slopes between knots, the largest that there may be: what curvatures are relative to.
    """

    width: float
    numbers: Integers
    radius: float
    knots: Floats = field(default_factory=lambda: NO_KNOTS)
    steepest: float = 1.0

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """A hashable identity."""
        return self.width, self.numbers, self.radius, self.knots, self.steepest

    @property
    def table(self) -> Floats:
        """(cells, 3): minus the slope at a cell's left end, its decrease, and its curvature.

        The first and the last cell stand for all margins beyond the knots.
        """
        knots = self.knots
        if knots.size == 0:
            return np.empty((0, 3))
        left, falls = np.append(knots[0], knots), np.concatenate([[0.0], -np.diff(knots), [0.0]])
        return np.column_stack([left, falls, falls * (CELLS / self.steepest)])


class SmoothPass:
    """Clipped records, and the curvatures at the last weights: a float for each record."""

    def __init__(self, layout: Layout, smoothing: Smoothing) -> None:
        if smoothing.radius < math.inf:
            limit = math.floor(math.ldexp(smoothing.radius, layout.a))
            records: Any = clipped(layout.records, smoothing.numbers, limit)
            layout = replace(layout, records=records)
        self._layout, self._smoothing = layout, smoothing
        self.records = layout.packed()
        self._table = smoothing.table
        self._at: tuple[Any, Any] | None = None  # the weights, and their bits, of the curvatures
        self._bend = np.empty(layout.rows)

    def slopes(self, rows: Rows, w: Integers, bits: Integers, fine: bool) -> Integers:
        """(2, parts, d + 1): sums of y x_j times minus the slope, and the intercept's."""
        self._at = None  # an interrupted pass leaves curvatures of two models
        units = np.ldexp(1.0, -bits)
        loss = self._smoothing.width, self._table, float(CELLS)
        total = self._sums(rows, kernels.slopes, w, 1 + fine, units, *loss, self._scale, self._bend)
        self._at = w.copy(), bits.copy()
        return total

    def bends(self, rows: Rows, w: Integers, bits: Integers, v: Integers) -> Integers:
        """(2, d + 1): sums of x_j times the curvature at w times the margin of v."""
        kept = self._at is not None and all(map(np.array_equal, self._at, (w, bits)))
        if not kept:
            self.slopes(rows, w, bits, False)
        units = np.array([self._scale * 2.0**-MARGIN_BITS])
        return self._sums(rows, kernels.bends, v, 1, units, self._bend)[:, 0]

    @property
    def _scale(self) -> float:
        """The scale of what is multiplied by packed columns."""
        return 2.0 ** (PULL_BITS - self._layout.a)

    def _sums(
        self, rows: Rows, kernel: Callable[..., None], w: Integers, parts: int, *rest: Any
    ) -> Integers:
        """(2, parts, d + 1): a kernel's sums in halves, at weights (limbs, d + 1)."""
        weights = np.ascontiguousarray(self._layout.spread(w))
        work = float(rows.n_records) * (10 + (1 + parts) * self._layout.entries)
        n_threads, tile = rows.threads(work), rows.tile_rows
        room = np.empty((n_threads, tile), np.int64), np.empty((n_threads, 3, tile))
        summed = np.zeros(n_threads, np.int64)
        sums = np.zeros((n_threads, parts, self.records.columns), np.int64)
        halves = np.zeros((n_threads, 2, *sums.shape[1:]), np.int64)
        for tiles in rows.slices(work):
            kernel(self.records, tiles, weights, *rest, *room, summed, sums, halves)
        total = halves.sum(axis=0) + in_halves(sums).sum(axis=1)
        return self._layout.folded(total.reshape(2 * parts, -1)).reshape(2, parts, -1)


def in_halves(total: Integers) -> Integers:
    """(2, ...): the upper and the lower half of 64-bit sums; sums of halves do not overflow."""
    return np.stack([total >> HALF_BITS, total & ((1 << HALF_BITS) - 1)])


def sizes(layout: Layout, numbers: Integers, rows: Rows) -> Floats:
    """(packed rows,): the sum of a record's numbers, none of which is negative; exact."""
    chosen = np.zeros(rows.n_features + 1, dtype=np.int64)
    chosen[numbers] = 1
    return np.asarray(margins(layout, chosen, rows) * 2.0**-layout.a, dtype=np.float64)


def margins(layout: Layout, w: Integers, rows: Rows) -> Integers:
    """int64 (packed rows,): the exact sums of packed columns times weights, the last one added."""
    records = layout.packed()
    weights = np.ascontiguousarray(layout.spread(w[None])[0])
    z = np.zeros(layout.rows, dtype=np.int64)
    work = float(rows.n_records) * (10 + layout.entries)
    for part in rows.slices(work):
        kernels.margins(records, part, weights, z, rows.threads(work))
    return z


# --------------------------------------------------------------------------------------- clipping


def clipped(records: Records, numbers: Integers, limit: int) -> Records:
    """The same records, the numbers of each scaled down to a sum of at most `limit` units.

    No number is negative: x becomes x limit / sum where the sum is above the limit, rounded down.
    """
    if isinstance(records, SparseRecords):
        return _clipped_sparse(records, numbers, limit)
    if isinstance(records, CodeRecords):
        return _clipped_numbers(records, numbers, limit)
    panels = records.panels.copy()
    for first in range(0, len(panels), CLIP_ROWS // PANEL_ROWS):
        part = panels[first : first + CLIP_ROWS // PANEL_ROWS]  # (panels, pairs, rows, 2)
        x = part[:, numbers // 2, :, numbers % 2].astype(np.int64)  # (numbers, panels, rows)
        sums = x.sum(axis=0)
        part[:, numbers // 2, :, numbers % 2] = np.where(
            sums > limit, x * limit // np.maximum(sums, 1), x
        )
    return replace(records, panels=panels)


def _clipped_numbers(records: CodeRecords, numbers: Integers, limit: int) -> CodeRecords:
    rows = np.searchsorted(records.plan.places, numbers)
    scaled = records.numbers.copy()
    for first in range(0, scaled.shape[1], CLIP_ROWS):
        part = slice(first, first + CLIP_ROWS)
        x = scaled[rows, part].astype(np.int64)
        sums = x.sum(axis=0)
        scaled[rows, part] = np.where(sums > limit, x * limit // np.maximum(sums, 1), x)
    return replace(records, numbers=scaled)


def _clipped_sparse(records: SparseRecords, numbers: Integers, limit: int) -> SparseRecords:
    n, d = records.one_start.size - 1, records.n_features
    ones, values = (
        records._block(0, n, *arrays)
        for arrays in ((records.one_start, records.one_column),
                       (records.value_start, records.value_column, records.value))
    )  # fmt: skip
    table = scipy.sparse.csr_array(ones + values).astype(np.int64)
    is_number = np.isin(np.arange(d), numbers)[table.indices]
    rows = np.repeat(np.arange(n), np.diff(table.indptr))
    sums = np.bincount(rows, table.data * is_number, n).astype(np.int64)[rows]
    changes = is_number & (sums > limit)
    table.data = np.where(changes, table.data * limit // np.maximum(sums, 1), table.data)
    table.eliminate_zeros()
    is_one = table.data == records.one
    starts = [np.append(0, np.cumsum(chosen))[table.indptr] for chosen in (is_one, ~is_one)]
    return SparseRecords(
        starts[0].astype(np.int64), table.indices[is_one].astype(np.int32),
        starts[1].astype(np.int64), table.indices[~is_one].astype(np.int32),
        table.data[~is_one].astype(np.int16), records.runs, d, records.one,
    )  # fmt: skip
