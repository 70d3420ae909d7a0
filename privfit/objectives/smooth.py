"""Sums that minimise a smooth loss of a linear model: of slopes, and of curvatures.

Newton's method asks for real numbers, yet what is added over records are integers, so that a sum is
the same bit for bit in any order, part or thread, on any machine:

- Columns are taken from their middle: twice a packed integer less a whole number m_j, a declared
  one. Weights of these come as whole numbers in one or more *limbs* (`MarginGrid`), each of which
  leaves every margin below 2^62. So the margins of a limb are exact integers, and what float64
  makes of their sum depends on the record and the weights alone.
- Slopes and curvatures are functions of the margin without libm (`slopes.pxd`): those of the
  logistic loss, of a rounded hinge, or of a table of slopes at margins that are 1/CELLS apart, with
  straight lines in between (`losses`).
- A product of a slope and a column, of at most 1 in size, is rounded to a multiple of 2^-PULL_BITS.
  Where that is too coarse, a slope is cut into two whole numbers, and no product is rounded.
  Sums over 65,536 records fit in 64 bits; those of all are kept in two halves, so that no bound
  depends on the number of records.

What a record adds is a function of that record alone; `records.smooth` adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privfit._kernels.smooth import HALF_BITS
from privfit.base.dyadic import Dyadic
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.records.linear import LinearRows
from privfit.records.smooth import CELLS, MARGIN_BITS, NO_KNOTS, PULL_BITS, Smoothing
from privfit.records.sums import Sums

__all__ = [
    "CELLS", "MARGIN_BITS", "NO_KNOTS", "PULL_BITS", "MarginGrid", "SmoothSums", "Smoothing",
    "Weights", "exact_slopes", "from_halves",
]  # fmt: skip


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


def from_halves(halves: Integers, bits: int) -> Floats:
    """Sums of halves as multiples of 2^-bits, each rounded once, however they were cut."""
    return np.ldexp(np.ldexp(halves[0].astype(np.float64), HALF_BITS) + halves[1], -bits)


def exact_slopes(halves: Integers, a: int) -> Dyadic:
    """(d + 1,): what `SmoothSums.slopes` tells, in units of packed columns."""
    whole = (halves[0].astype(object) << HALF_BITS) + halves[1].astype(object)
    if len(whole) == 1:
        return Dyadic(whole[0], PULL_BITS - a)
    return Dyadic((whole[0] << (PULL_BITS - a)) + whole[1], 2 * (PULL_BITS - a))


@dataclass(frozen=True, repr=False)
class SmoothSums:
    """Sums of a smooth loss over the records of a linear model. Private: release none of it."""

    sums: Sums[LinearRows]
    smoothing: Smoothing

    def slopes(self, w: Integers, bits: Integers, fine: bool = False) -> Integers:
        """(2, parts, d + 1): sums of y x_j times minus the slope, and the intercept's.

        `fine` has two parts, the second one of what the first has rounded away.
        """
        return self.sums.sum(LinearRows.slopes, self.smoothing, w, bits, fine)

    def bends(self, w: Integers, bits: Integers, v: Integers) -> Integers:
        """(2, d + 1): sums of x_j times the curvature at w times the margin of v.

        Curvatures are relative to the largest, and a margin of v is to 2^MARGIN_BITS.
        """
        return self.sums.sum(LinearRows.bends, self.smoothing, w, bits, v)
