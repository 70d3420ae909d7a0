"""Sums that minimise a smooth loss of a linear model: of slopes, of curvatures, of losses.

Newton's method asks for real numbers, yet what is added over records are integers, so that a sum is
the same bit for bit in any order, part or thread, on any machine:

- Weights come as whole numbers: w_j times a unit of column j is a multiple of 2^-bits, with as many
  bits as leave every margin below 2^61 (`Weights`). So a margin is an exact integer, and what float64
  makes of it depends on the record and the weights alone.
- Slopes, curvatures and losses are functions of the margin without libm (`smooth_tiles.h`).
- A product of a slope and a column, of at most 1 in size, is rounded to a multiple of 2^-PULL_BITS.
  Sums over `CHUNK` records fit in 64 bits. Sums of all are kept in two halves, so no bound depends on
  the number of records.

Where a clip is asked for, the `numbers` of a record are scaled down, all together, to an l1 norm of
`radius`. The factor is a function of the record alone, as everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privfit._kernels import smooth as kernels
from privfit._kernels.linear import PANEL_ROWS
from privfit.domains import Domain
from privfit.objectives.common import Floats, Integers
from privfit.packing import tiles

if TYPE_CHECKING:
    from privfit.objectives.linear import LinearObjective

CHUNK = 1 << 16  # records whose sums fit in 64 bits
MARGIN_BITS = 61  # of a margin
PULL_BITS = 45  # of a slope times a column: CHUNK of them, with a sign, stay below 2^62
HALF = 32  # bits of the lower half of a sum


@dataclass(frozen=True)
class Weights:
    """Weights of a linear model as whole numbers (d + 1,), the intercept last.

    A margin is 2^-bits times the sum of packed columns times weights, the last weight added.
    """

    whole: Integers
    bits: int

    @staticmethod
    def of(w: Floats, domain: Domain) -> Weights:
        """The nearest weights on the finest grid that serves all records of the domain.

        No weight reaches 2^62, nor the sum of absolute products 2^71 (see `margin_long`).
        """
        scaled = w * np.append(domain.record_units(), 1.0)
        most = np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0)
        largest = max(domain.norm(w)[0], np.abs(scaled).max(), np.abs(w) @ most / 2**10)
        bits = MARGIN_BITS - math.frexp(largest)[1]
        return Weights(np.rint(np.ldexp(scaled, bits)).astype(np.int64), bits)

    @property
    def loss_bits(self) -> int:
        """Of a loss, which is at most 1 + 2^(MARGIN_BITS - bits): chunks of them can be added."""
        return PULL_BITS - 1 - max(0, MARGIN_BITS - self.bits)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Weights) and self.bits == other.bits
        return same and np.array_equal(self.whole, other.whole)


def in_halves(total: Integers) -> Integers:
    """(2, ...): the upper and the lower half of 64-bit sums; sums of halves do not overflow."""
    return np.stack([total >> HALF, total & ((1 << HALF) - 1)])


def from_halves(halves: Integers, bits: int) -> Floats:
    """Sums of halves as multiples of 2^-bits, each rounded once."""
    return np.ldexp(np.ldexp(halves[0].astype(np.float64), HALF) + halves[1], -bits)


@dataclass(frozen=True, eq=False, repr=False)
class _Chunk:
    """At most `CHUNK` records: tiles, and the packed rows that they span, padding included."""

    number: int
    tiles: Integers
    rows: int


def _chunks(objective: LinearObjective) -> Iterator[_Chunk]:
    size = objective._tile_rows
    table = tiles(objective._runs, size)
    for number, first in enumerate(range(0, len(table), CHUNK // size)):
        part = table[first : first + CHUNK // size]
        rows = int(part[-1, 0] + part[-1, 1] - part[0, 0])
        yield _Chunk(number, part, -(-rows // PANEL_ROWS) * PANEL_ROWS)


class SmoothSums:
    """Sums over the records of a `LinearObjective`. Private: release none of it.

    Parameters
    ----------
    width : float
        Half the width of the parabola that rounds a hinge; 0 for the logistic loss.
    numbers, radius : columns, float
        What is clipped to an l1 norm of `radius`; columns of none, or an infinite radius, for no
        clip.
    keeps : bool
        Whether curvatures at the last weights and factors of the clip are kept, a float each for
        every record. They are made again otherwise, the same.
    """

    def __init__(
        self,
        objective: LinearObjective,
        width: float,
        numbers: Integers,
        radius: float,
        keeps: bool = True,
    ) -> None:
        self._run, self._layout = objective, objective._layout
        self._width, self._numbers, self._radius, self._keeps = width, numbers, radius, keeps
        self._clips = bool(len(numbers)) and radius < math.inf
        self._chunks = [*_chunks(objective)]
        self._at: Weights | None = None
        self._bends: dict[int, Floats] = {}  # by number of chunk: curvatures at these weights
        self._factors: dict[int, Floats] = {}

    def slopes(self, w: Integers, bits: int) -> Integers:
        """(2, d + 2): sums of y x_j times minus the slope, the intercept's, and that of losses."""
        weights = self._stand_at(w, bits)
        total = np.zeros((2, len(w) + 1), dtype=np.int64)
        for chunk in self._chunks:
            slope, _, loss = self._slopes(chunk, weights)
            losses = kernels.whole_sum(loss, 2.0**weights.loss_bits)
            total += in_halves(np.append(self._pull(chunk, slope), losses))
        return total

    def bends(self, w: Integers, bits: int, v: Integers) -> Integers:
        """(2, d + 1): sums of x_j times the curvature at w times the margin of v.

        Curvatures are relative to the largest, and a margin of v is to 2^MARGIN_BITS.
        """
        weights = self._stand_at(w, bits)
        total = np.zeros((2, len(w)), dtype=np.int64)
        for chunk in self._chunks:
            bend = self._bends.get(chunk.number)
            if bend is None:
                bend = self._slopes(chunk, weights)[1]
            along = self._margins(chunk, v, MARGIN_BITS)
            total += in_halves(self._pull(chunk, bend * along))
        return total

    def size_counts(self, radii: Floats) -> Integers:
        """int64 (radii + 1,): how many records have an l1 norm of numbers up to each radius."""
        total = np.zeros(len(radii) + 1, dtype=np.int64)
        for chunk in self._chunks:
            place, base = np.searchsorted(radii, self._sizes(chunk)), chunk.tiles[0, 0]
            for first, count, _ in chunk.tiles - [base, 0, 0]:
                total += np.bincount(place[first : first + count], minlength=len(total))
        return total

    # ---------------------------------------------------------------------------------- by chunks

    def _threads(self, chunk: _Chunk) -> int:
        return self._run._threads(float(chunk.rows) * (20 + 2 * self._layout.entries))

    def _stand_at(self, w: Integers, bits: int) -> Weights:
        """Forget the curvatures at other weights."""
        weights = Weights(w, bits)
        if self._at != weights:
            self._at = weights
            self._bends.clear()
        return weights

    def _slopes(self, chunk: _Chunk, weights: Weights) -> tuple[Floats, Floats, Floats]:
        """Of each record: minus the slope with the sign of the class, the curvature, the loss."""
        margins = self._margins(chunk, weights.whole, weights.bits)
        slope, bend, loss = np.zeros((3, chunk.rows))
        kernels.slopes(margins, chunk.tiles, self._width, slope, bend, loss, self._threads(chunk))
        if self._keeps:
            self._bends[chunk.number] = bend
        return slope, bend, loss

    def _margins(self, chunk: _Chunk, whole: Integers, bits: int) -> Floats:
        """(rows,): exact margins of whole weights, rounded to float64."""
        if not self._clips:
            return self._whole_margins(chunk, whole) * 2.0**-bits
        numbers, others = np.zeros((2, len(whole)), dtype=np.int64)
        others[:] = whole
        others[self._numbers] = 0
        numbers[self._numbers] = whole[self._numbers]
        clipped = self._whole_margins(chunk, numbers) * 2.0**-bits * self._clip(chunk)
        return self._whole_margins(chunk, others) * 2.0**-bits + clipped

    def _whole_margins(self, chunk: _Chunk, whole: Integers) -> Integers:
        z = np.zeros(chunk.rows, dtype=np.int64)
        self._layout.long_margins(whole, chunk.tiles, z, self._threads(chunk))
        return z

    def _pull(self, chunk: _Chunk, residual: Floats) -> Integers:
        """int64 (d + 1,): the sum of residual x_j in units of 2^-PULL_BITS, rounded one by one."""
        scaled = residual * 2.0 ** (PULL_BITS - self._layout.a)
        total = self._layout.pull(scaled, chunk.tiles, self._threads(chunk))
        if self._clips:
            clipped = self._layout.pull(
                scaled * self._clip(chunk), chunk.tiles, self._threads(chunk)
            )
            total[self._numbers] = clipped[self._numbers]
        return total

    def _clip(self, chunk: _Chunk) -> Floats:
        """(rows,): what brings the numbers of a record to an l1 norm of at most the radius."""
        factors = self._factors.get(chunk.number)
        if factors is None:
            factors = self._radius / np.maximum(self._sizes(chunk), self._radius)
            if self._keeps:
                self._factors[chunk.number] = factors
        return factors

    def _sizes(self, chunk: _Chunk) -> Floats:
        """(rows,): the sum of a record's numbers, none of which is negative; exact."""
        ones = np.zeros(self._run.n_features + 1, dtype=np.int64)
        ones[self._numbers] = 1
        return self._whole_margins(chunk, ones) * 2.0**-self._layout.a
