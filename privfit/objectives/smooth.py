"""Sums that minimise a smooth loss of a linear model: of slopes, and of curvatures.

Newton's method asks for real numbers, yet what is added over records are integers, so that a sum is
the same bit for bit in any order, part or thread, on any machine:

- Columns are taken from their middle: twice a packed integer less a whole number m_j, a declared
  one. Weights of these come as whole numbers in one or more *limbs* (`MarginGrid`), each of which
  leaves every margin below 2^62. So the margins of a limb are exact integers, and what float64
  makes of their sum depends on the record and the weights alone.
- Slopes and curvatures are functions of the margin without libm (`smooth_tiles.h`): those of the
  logistic loss, of a rounded hinge, or of a table of slopes at margins that are 1/CELLS apart, with
  straight lines in between (`losses`).
- A product of a slope and a column, of at most 1 in size, is rounded to a multiple of 2^-PULL_BITS.
  Where that is too coarse, a slope is cut into two whole numbers, and no product is rounded.
  Sums over 65,536 records fit in 64 bits; those of all are kept in two halves, so that no bound
  depends on the number of records.

Where a clip is asked for, the `numbers` of a record are scaled down, all together, to an l1 norm of
`radius`, and rounded down to whole units: a function of the record alone, as everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels import smooth as kernels
from privfit._kernels.linear import PANEL_ROWS
from privfit._kernels.smooth import HALF_BITS
from privfit.base.dyadic import Dyadic
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.records.packing import DenseRecords, SparseRecords

if TYPE_CHECKING:
    from privfit.objectives.linear import LinearObjective

MARGIN_BITS = 61  # of a margin
NO_KNOTS = np.empty(0)
CELLS = 128  # of a table of slopes, to a margin of 1; a power of two
PULL_BITS = 45  # of a slope times a column: MOST_SUMMED of them, with a sign, stay below 2^62


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a linear model as whole numbers (limbs, d + 1), the intercept last.

    A margin is the sum over limbs of 2^-bits times the sum of packed columns times weights, the
    last weight added. `error` bounds how far a margin is from that of the weights meant.
    """

    whole: Integers
    bits: Integers
    error: float


class MarginGrid:
    """Turns weights of centred columns, 2 x_j - middle_j in record units, into whole ones."""

    def __init__(self, domain: Domain, middle: Integers) -> None:
        self._domain, self._middle = domain, middle
        units = domain.record_units()
        ends = [np.rint(bound / units).astype(np.int64) for bound in (domain.low, domain.high)]
        self._packed = np.maximum(*map(np.abs, ends)).astype(np.float64)
        self.widest = np.maximum(*(np.abs(2 * end - middle) for end in ends)).astype(np.float64)
        self._half_units = self.largest(np.full(domain.width + 1, 0.5))

    def largest(self, sizes: Floats) -> float:
        """The most that sum of sizes_j abs(2 x_j - middle_j), and the last size, can be."""
        return self._domain.rescaled_norm(sizes, self.widest)

    def weights(self, meant: Dyadic, enough: float = math.inf) -> Weights:
        """Weights (d + 1,) in as many limbs as bring the error of a margin below `enough`.

        No packed weight reaches 2^62, nor the sum of absolute products 2^71 (see `margin_long`).
        """
        limbs: list[tuple[Integers, int]] = []
        left, error = meant, math.inf
        while not limbs or error > enough:  # what is left of them halves 61 times a limb, or is 0
            bits = self._bits(left.floats())
            whole = left.rounded(bits)
            limbs.append((whole.astype(np.int64), bits))
            left = left - Dyadic(whole, bits) if bits >= 0 else left - Dyadic(whole << -bits, 0)
            error = math.ldexp(self._half_units, -bits) if left.whole.any() else 0.0
        return self._of(limbs, error)

    def near(self, meant: Floats) -> Weights:
        """The same for weights in float64, in one limb, with fewer bits than would fit."""
        sizes = np.abs(meant)
        largest = 2 * sizes[:-1] @ (self.widest + self._packed) + 4 * sizes.max()
        bits = MARGIN_BITS - math.frexp(largest)[1]
        return self._of([(np.rint(np.ldexp(meant, bits)).astype(np.int64), bits)], math.inf)

    def _bits(self, meant: Floats) -> int:
        sizes = np.abs(meant)
        products = 2 * sizes[:-1] @ self._packed
        largest = max(self.largest(sizes), 4 * sizes.max(), products / 2**9)
        return MARGIN_BITS - math.frexp(largest)[1]

    def _of(self, limbs: list[tuple[Integers, int]], error: float) -> Weights:
        """Of packed columns: twice the weights, and what the middles add is taken from the last."""
        rows = [np.append(2 * h[:-1], h[-1:] - (h[:-1] * self._middle).sum()) for h, _ in limbs]
        return Weights(np.array(rows), np.array([bits for _, bits in limbs]), error)


def in_halves(total: Integers) -> Integers:
    """(2, ...): the upper and the lower half of 64-bit sums; sums of halves do not overflow."""
    return np.stack([total >> HALF_BITS, total & ((1 << HALF_BITS) - 1)])


def from_halves(halves: Integers, bits: int) -> Floats:
    """Sums of halves as multiples of 2^-bits, each rounded once, however they were cut."""
    return np.ldexp(np.ldexp(halves[0].astype(np.float64), HALF_BITS) + halves[1], -bits)


def exact_slopes(halves: Integers, a: int) -> Dyadic:
    """(d + 1,): what `SmoothSums.slopes` tells, in units of packed columns."""
    whole = (halves[0].astype(object) << HALF_BITS) + halves[1].astype(object)
    if len(whole) == 1:
        return Dyadic(whole[0], PULL_BITS - a)
    return Dyadic((whole[0] << (PULL_BITS - a)) + whole[1], 2 * (PULL_BITS - a))


def _cells(knots: Floats, steepest: float) -> Floats:
    """(cells, 3): minus the slope at a cell's left end, what it falls by, and its curvature.

    The first and the last cell stand for all margins beyond the knots.
    """
    left, falls = np.append(knots[0], knots), np.concatenate([[0.0], -np.diff(knots), [0.0]])
    return np.column_stack([left, falls, falls * (CELLS / steepest)])


class SmoothSums:
    """Sums over the records of a `LinearObjective`. Private: release none of it.

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

    Curvatures at the last weights are kept, a float for each record.
    """

    def __init__(
        self,
        objective: LinearObjective,
        width: float,
        numbers: Integers,
        radius: float,
        knots: Floats = NO_KNOTS,
        steepest: float = 1.0,
    ) -> None:
        self._run, self._layout = objective, objective._layout
        if radius < math.inf:
            limit = math.floor(math.ldexp(radius, self._layout.a))
            records: Any = clipped(self._layout.records, numbers, limit)
            self._layout = replace(self._layout, records=records)
        self._records = self._layout.packed()
        self._width, self._numbers = width, numbers
        self._table = _cells(knots, steepest) if knots.size else np.empty((0, 3))
        # Where a layout has the columns, and the intercept.
        self._places = np.append(np.arange(objective.n_features), self._records.columns - 1)
        self._at: tuple[Any, Any] | None = None  # the weights, and their bits, of the curvatures
        self._bend = np.empty(self._layout.rows)

    def slopes(self, w: Integers, bits: Integers, fine: bool = False) -> Integers:
        """(2, parts, d + 1): sums of y x_j times minus the slope, and the intercept's.

        `fine` has two parts, the second one of what the first has rounded away.
        """
        self._at = None  # an interrupted pass leaves curvatures of two models
        units = np.ldexp(1.0, -bits)
        loss = self._width, self._table, float(CELLS)
        total = self._sums(kernels.slopes, w, 1 + fine, units, *loss, self._scale, self._bend)
        self._at = w.copy(), bits.copy()
        return total

    def bends(self, w: Integers, bits: Integers, v: Integers) -> Integers:
        """(2, d + 1): sums of x_j times the curvature at w times the margin of v.

        Curvatures are relative to the largest, and a margin of v is to 2^MARGIN_BITS.
        """
        kept = self._at is not None and all(map(np.array_equal, self._at, (w, bits)))
        if not kept:
            self.slopes(w, bits)
        units = np.array([self._scale * 2.0**-MARGIN_BITS])
        return self._sums(kernels.bends, v, 1, units, self._bend)[:, 0]

    def size_counts(self, radii: Floats) -> Integers:
        """int64 (radii + 1,): records by the l1 norm of numbers, in classes up to each radius."""
        places = np.searchsorted(radii, self._sizes())
        runs = [places[run.first : run.first + run.count] for run in self._run._runs]
        return np.bincount(np.concatenate(runs), minlength=len(radii) + 1).astype(np.int64)

    @property
    def _scale(self) -> float:
        """Of what is multiplied by packed columns."""
        return 2.0 ** (PULL_BITS - self._layout.a)

    def _sums(self, kernel: Callable[..., None], w: Integers, parts: int, *rest: Any) -> Integers:
        """(2, parts, d + 1): a kernel's sums in halves, at weights (limbs, d + 1)."""
        weights = np.zeros((len(w), self._records.columns), dtype=np.int64)
        weights[:, self._places] = w
        work = float(self._run.n_records) * (10 + (1 + parts) * self._layout.entries)
        n_threads, rows = self._run._threads(work), self._run._tile_rows
        room = np.empty((n_threads, rows), np.int64), np.empty((n_threads, 3, rows))
        summed = np.zeros(n_threads, np.int64)
        sums = np.zeros((n_threads, parts, self._records.columns), np.int64)
        halves = np.zeros((n_threads, 2, *sums.shape[1:]), np.int64)
        for tiles in self._run._slices(work):
            kernel(self._records, tiles, weights, *rest, *room, summed, sums, halves)
        total = halves.sum(axis=0) + in_halves(sums).sum(axis=1)
        return total[..., self._places]

    def _sizes(self) -> Floats:
        """(packed rows,): the sum of a record's numbers, none of which is negative; exact."""
        ones = np.zeros(self._records.columns, dtype=np.int64)
        ones[self._numbers] = 1
        z = np.zeros(self._layout.rows, dtype=np.int64)
        work = float(self._run.n_records) * (10 + self._layout.entries)
        for part in self._run._slices(work):
            kernels.margins(self._records, part, ones, z, self._run._threads(work))
        return np.asarray(z * 2.0**-self._layout.a, dtype=np.float64)


# ---------------------------------------------------------------------------------------- clipping

CLIP_ROWS = 1 << 14  # records that are clipped at a time


def clipped(
    records: DenseRecords | SparseRecords, numbers: Integers, limit: int
) -> DenseRecords | SparseRecords:
    """The same records, the numbers of each scaled down to a sum of at most `limit` units.

    No number is negative: x becomes x limit / sum where the sum is above the limit, rounded down.
    """
    if isinstance(records, SparseRecords):
        return _clipped_sparse(records, numbers, limit)
    panels = records.panels.copy()
    for first in range(0, len(panels), CLIP_ROWS // PANEL_ROWS):
        part = panels[first : first + CLIP_ROWS // PANEL_ROWS]  # (panels, pairs, rows, 2)
        x = part[:, numbers // 2, :, numbers % 2].astype(np.int64)  # (numbers, panels, rows)
        sums = x.sum(axis=0)
        part[:, numbers // 2, :, numbers % 2] = np.where(
            sums > limit, x * limit // np.maximum(sums, 1), x
        )
    return replace(records, panels=panels)


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
