"""Sums that minimise a smooth loss of a linear model: of slopes, of curvatures, of losses.

Newton's method asks for real numbers, yet what is added over records are integers, so that a sum is
the same bit for bit in any order, part or thread, on any machine:

- Weights come as whole numbers: w_j times a unit of column j is a multiple of 2^-bits, with as many
  bits as leave every margin below 2^61 (`MarginGrid`). So a margin is an exact integer, and what
  float64 makes of it depends on the record and the weights alone.
- Slopes, curvatures and losses are functions of the margin without libm (`smooth_tiles.h`).
- A product of a slope and a column, of at most 1 in size, is rounded to a multiple of 2^-PULL_BITS.
  Sums over 65,536 records fit in 64 bits; those of all are kept in two halves, so that no bound
  depends on the number of records.

Where a clip is asked for, the `numbers` of a record are scaled down, all together, to an l1 norm of
`radius`. The factor is a function of the record alone, as everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit._kernels import smooth as kernels
from privfit._kernels.smooth import HALF_BITS
from privfit.domains import Domain
from privfit.objectives.common import Floats, Integers

if TYPE_CHECKING:
    from privfit.objectives.linear import LinearObjective

MARGIN_BITS = 61  # of a margin
PULL_BITS = 45  # of a slope times a column: MOST_SUMMED of them, with a sign, stay below 2^62


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a linear model as whole numbers (d + 1,), the intercept last.

    A margin is 2^-bits times the sum of packed columns times weights, the last weight added.
    """

    whole: Integers
    bits: int

    @property
    def loss_bits(self) -> int:
        """Of a loss, at most 1 + 2^(MARGIN_BITS - bits): as many as of products can be added."""
        return PULL_BITS - 1 - max(0, MARGIN_BITS - self.bits)


class MarginGrid:
    """Turns weights of linear models on records of a domain into whole ones."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self.units = np.append(domain.record_units(), 1.0)  # of packed columns
        self.largest = np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0)

    def weights(self, w: Floats) -> Weights:
        """The nearest weights (d + 1,) on the finest grid that serves all records of the domain.

        No weight reaches 2^62, nor the sum of absolute products 2^71 (see `margin_long`).
        """
        scaled, sum_of_sizes = w * self.units, np.abs(w) @ self.largest
        largest = max(self._domain.norm(w)[0], np.abs(scaled).max(), sum_of_sizes / 2**10)
        bits = MARGIN_BITS - math.frexp(largest)[1]
        return Weights(np.rint(np.ldexp(scaled, bits)).astype(np.int64), bits)


def in_halves(total: Integers) -> Integers:
    """(2, ...): the upper and the lower half of 64-bit sums; sums of halves do not overflow."""
    return np.stack([total >> HALF_BITS, total & ((1 << HALF_BITS) - 1)])


def from_halves(halves: Integers, bits: int) -> Floats:
    """Sums of halves as multiples of 2^-bits, each rounded once, however they were cut."""
    return np.ldexp(np.ldexp(halves[0].astype(np.float64), HALF_BITS) + halves[1], -bits)


class SmoothSums:
    """Sums over the records of a `LinearObjective`. Private: release none of it.

    Parameters
    ----------
    width : float
        Half the width of the parabola that rounds a hinge; 0 for the logistic loss.
    numbers, radius : columns, float
        What is clipped to an l1 norm of `radius`; an infinite radius for no clip.

    Curvatures at the last weights are kept, a float for each record.
    """

    def __init__(
        self, objective: LinearObjective, width: float, numbers: Integers, radius: float
    ) -> None:
        self._run, self._layout = objective, objective._layout
        self._records = self._layout.packed()
        self._width, self._numbers = width, numbers
        # Where a layout has the columns, the intercept and, last, the losses.
        last = self._records.columns
        self._places = np.append(np.arange(objective.n_features), [last - 1, last])
        self._at = np.empty(0, dtype=np.int64)  # the weights, and their bits, of the curvatures
        self._bend, self._factors = np.empty(self._layout.rows), np.empty(0)
        if radius < math.inf:
            self._factors = radius / np.maximum(self._sizes(), radius)

    def slopes(self, w: Integers, bits: int) -> Integers:
        """(2, d + 2): sums of y x_j times minus the slope, the intercept's, and that of losses."""
        self._at = self._at[:0]  # an interrupted pass leaves curvatures of two models
        total = self._sums(
            kernels.slopes, w, 2.0**-bits, self._width, self._factors, self._scale,
            2.0 ** Weights(w, bits).loss_bits, self._bend,
        )  # fmt: skip
        self._at = np.append(w, bits)
        return total

    def bends(self, w: Integers, bits: int, v: Integers) -> Integers:
        """(2, d + 1): sums of x_j times the curvature at w times the margin of v.

        Curvatures are relative to the largest, and a margin of v is to 2^MARGIN_BITS.
        """
        if not np.array_equal(self._at, np.append(w, bits)):
            self.slopes(w, bits)
        scale = self._scale * 2.0**-MARGIN_BITS
        return self._sums(kernels.bends, v, self._factors, scale, self._bend)[:, :-1]

    def size_counts(self, radii: Floats) -> Integers:
        """int64 (radii + 1,): records by the l1 norm of numbers, in classes up to each radius."""
        places = np.searchsorted(radii, self._sizes())
        runs = [places[run.first : run.first + run.count] for run in self._run._runs]
        return np.bincount(np.concatenate(runs), minlength=len(radii) + 1).astype(np.int64)

    @property
    def _scale(self) -> float:
        """Of what is multiplied by packed columns."""
        return 2.0 ** (PULL_BITS - self._layout.a)

    def _sums(self, kernel: Callable[..., None], w: Integers, *settings: Any) -> Integers:
        """(2, d + 2): a kernel's sums in halves; clipped numbers have a side of their own."""
        sides = 2 if self._factors.size else 1
        weights = np.zeros((sides, self._records.columns), dtype=np.int64)
        weights[0, self._places[:-1]] = w
        if sides == 2:
            weights[0, self._numbers] = 0
            weights[1, self._numbers] = w[self._numbers]
        work = float(self._run.n_records) * (10 + 2 * self._layout.entries) * sides
        n_threads, rows = self._run._threads(work), self._run._tile_rows
        room = np.empty((n_threads, rows), np.int64), np.empty((n_threads, 3, rows))
        summed = np.zeros(n_threads, np.int64)
        sums = np.zeros((n_threads, sides, self._records.columns + 1), np.int64)
        halves = np.zeros((n_threads, 2, *sums.shape[1:]), np.int64)
        for part in self._run._slices(work):
            kernel(self._records, part, weights, *settings, *room, summed, sums, halves)
        total = halves.sum(axis=0) + in_halves(sums).sum(axis=1)
        total[:, 0, self._numbers] = total[:, -1, self._numbers]
        return total[:, 0, self._places]

    def _sizes(self) -> Floats:
        """(packed rows,): the sum of a record's numbers, none of which is negative; exact."""
        ones = np.zeros(self._records.columns, dtype=np.int64)
        ones[self._numbers] = 1
        z = np.zeros(self._layout.rows, dtype=np.int64)
        work = float(self._run.n_records) * (10 + self._layout.entries)
        for part in self._run._slices(work):
            kernels.margins(self._records, part, ones, z, self._run._threads(work))
        return np.asarray(z * 2.0**-self._layout.a, dtype=np.float64)
