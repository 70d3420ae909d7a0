"""Sums for descent: second moments, and clipped gradients in the coordinates of a public map.

**Neighbours.** Data sets differ by one record, replaced or added/removed; records lie in the
declared domain. Every sum here is an integer vector whose change between neighbours is bounded by
`sensitivity(neighbours)`, a number of the domain and of public parameters.

**Coding.** A record is u = ((x - middle) / 2^k, 1/2), one-hot columns as they are: see `Coding`.
Without an intercept it is u = x / 2^k: one coordinate less in all that follows, an intercept of 0
in every bound.

**Second moments.** One record adds u u'. Of a symmetric matrix the triangle is released. With S a
bound on the squared length of u and Q on the sum of its fourth powers, the triangle of u u' has
squared length (l2(u)^4 + sum u_j^4) / 2 <= (S^2 + Q) / 2: add or remove. For u replaced by v, it is
(l2(u)^4 + l2(v)^4 - 2 <u, v>^2 + sum (u_j^2 - v_j^2)^2) / 2 <= S^2 + F / 2, where F bounds the last
sum: its intercept is 0, a column in [-h, h] adds at most h^4, a one-hot group coded as 0 and h at
most 2 h^4, a ball of radius r at most 2 r^4. Of some columns alone, S, Q and F are those of what a
record can fill of them.

**Gradients.** For a public integer matrix R a record's clipped gradient is c R u, with an integer
residual c of at most K / length(R u), the length rounded up; so its length is at most K. The sum is
R s with s = sum c u, a sum of packed records with one cap for each; R is applied to s exactly, and
the low bits are dropped by rounding down. Two vectors that differ by z have roundings that differ
by less than one more in each coordinate, so between neighbours the result moves by at most
K + sqrt(k) in l2 (add or remove) or 2 K + sqrt(k) (replace), and with k instead of sqrt(k) in l1.

**No sum wraps.** A coded column is at most 2^(a+2) units. A sum of residuals times columns over
2^32 records is at most 2^32 2^12 2^(a+2) <= 2^60; R is applied to its halves, of 31 bits and less,
with rows of at most 2^30 in l1. Moments are at most N 4^(a+2), N the number of records (replace) or
2^32 (add_remove), and refused at 2^63: that takes a = 14 and 2^31 records.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels import linear as kernels
from privfit._kernels import smooth
from privfit._kernels.records import RESIDUAL_UNIT
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.objectives.coding import Coding
from privfit.objectives.common import MOST_SUM
from privfit.objectives.linear import LinearObjective
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.records.linear import MOST_RESIDUAL, Image

__all__ = ["OF_THREAD", "ClippedGradient", "SecondMoments", "permuted_descent"]

SUM_BITS = 18  # of a clipped gradient: rounding then adds less than k / 2^17 to a sensitivity
OF_THREAD = 6  # matrices of moments that each further thread holds while it adds up some
MOMENT_BITS = 26  # of a sensitivity of moments: finer units would only make numbers long


class SecondMoments:
    """The triangle of sum u u' over coded records, in units of `unit`.

    Of `columns` alone (by default of all), and of the intercept if there is one.
    """

    def __init__(
        self, objective: LinearObjective, coding: Coding, columns: Integers | None = None
    ) -> None:
        self._objective, self._coding = objective, coding
        d = objective.domain.width
        chosen = np.arange(d) if columns is None else columns
        self._columns, self.kept = chosen.tolist(), np.append(chosen, np.arange(d, coding.width))
        self._drop = max(0, math.ceil(self._exact_bound(REPLACE)).bit_length() - MOMENT_BITS)

    @property
    def unit(self) -> float:
        """What one unit of a moment is worth."""
        return self._coding.unit**2 * 2.0**self._drop

    def _exact_bound(self, neighbours: Neighbours) -> float:
        """The l2 sensitivity before low bits are dropped."""
        coding, columns, half = self._coding, self._columns, self._coding.constant
        squares = (coding.sums(2, columns) + half**2) ** 2
        if neighbours.replaces:
            return math.sqrt(squares + coding.square_changes(columns) / 2) * ABOVE
        return math.sqrt((squares + coding.sums(4, columns) + half**4) / 2) * ABOVE

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The l2 sensitivity of `triangle`, which is refused where it could wrap."""
        k, objective = len(self.kept), self._objective
        if objective.room(neighbours) * int(self._coding.reach.max()) ** 2 >= 2 * MOST_SUM:
            raise DeclarationError(
                f"grid bits a ({objective.grid.a}) are too many for exact moments of 2^31 and more "
                "records, which adjacency='add_remove' allows; pass a domain with Grid(a=12)"
            )
        rounding = math.sqrt(k * (k + 1) / 2) if self._drop else 0.0
        return (self._exact_bound(neighbours) / 2.0**self._drop + rounding) * ABOVE

    def triangle(self) -> Integers:
        """int64 (k (k + 1) / 2,): the upper triangle, row by row. Private: to be released."""
        moments = self._coding.moments(self._objective.second_moments())
        moments = moments[np.ix_(self.kept, self.kept)]
        return moments[np.triu_indices(len(moments))] >> self._drop

    def matrix(self, released: ArrayLike) -> Floats:
        """(k, k): the symmetric matrix of a released triangle."""
        k = len(self.kept)
        upper = np.zeros((k, k))
        upper[np.triu_indices(k)] = np.asarray(released) * self.unit
        return upper + np.triu(upper, 1).T


class ClippedGradient:
    """Sums of clipped gradients c R u of single records.

    Parameters
    ----------
    transform : (k, width)
        R, public: where coded records go. It is rounded to a grid of its own.
    clip : float
        The largest length of a record's gradient after R.
    order : 1 or 2
        Whether lengths are l1 or l2 norms.
    """

    def __init__(
        self,
        objective: LinearObjective,
        coding: Coding,
        transform: Floats,
        clip: float,
        order: int = 2,
    ) -> None:
        self._objective, self._coding, self._order = objective, coding, order
        factor, offset = coding.columns
        most = np.maximum(np.abs(objective.domain.low), np.abs(objective.domain.high))
        packed = np.rint(most / objective.domain.record_units())
        # Partial sums of R u stay below 2^50, and those of R times 31 bits below 2^62.
        d = objective.domain.width
        parts = np.append(factor * packed + np.abs(offset[:d]), offset[d:])
        # A transform may take most of a stream's memory limit, so that few copies of it are made.
        size = np.abs(transform)
        rows = max((size @ parts).max() / 2.0**19, size.sum(axis=1).max())
        self._bits = 30 - math.ceil(math.log2(rows))
        np.ldexp(transform, self._bits, out=size)
        self._matrix = np.rint(size, out=size).astype(np.int32, order="C")
        del size
        # Lengths are taken of coordinates without their low bits, so that sums of squares fit.
        most = np.array([np.abs(row.astype(np.int64)) @ coding.reach for row in self._matrix])
        room = (61 - len(most).bit_length()) // 2
        self._shift = max(0, int(most.max()).bit_length() - room)
        sizes = [(int(size) >> self._shift) + 1 for size in most]
        longest = sum(sizes) if order == 1 else math.isqrt(sum(s**2 for s in sizes)) + 1
        unit = 2.0 ** (self._shift - self._bits) * coding.unit * RESIDUAL_UNIT
        self._bound = max(1, min(math.floor(clip / unit), MOST_RESIDUAL * longest))
        self._drop = max(kernels.HALF_BITS, (self._bound << self._shift).bit_length() - SUM_BITS)
        columns = np.empty((d + 1, len(self._matrix)), dtype=np.int64)
        np.multiply(self._matrix[:, :d].T, factor[:, None], out=columns[:d])
        columns[d] = [row.astype(np.int64) @ offset for row in self._matrix]
        self._image = Image(columns, self._shift, order == 2, self._bound)

    @property
    def unit(self) -> float:
        """What one unit of the sums is worth."""
        return 2.0 ** (self._drop - self._bits) * self._coding.unit * RESIDUAL_UNIT

    @property
    def clip(self) -> float:
        """The largest length of one record's gradient, at most what was asked for."""
        return self._bound * 2.0 ** (self._shift - self._drop) * self.unit

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The sensitivity of `sums` in the norm of this clip."""
        k = len(self._matrix)
        one = self._bound * 2.0 ** (self._shift - self._drop)
        rounding = math.sqrt(k) if self._order == 2 else float(k)
        return (neighbours.changes * one + rounding) * ABOVE

    def sums(self, w: ArrayLike) -> Integers:
        """int64 (k,): minus the gradient of the loss at candidate w. Private: to be released."""
        coded = self._coding.gradient(self._packed_sums(w))
        result = np.empty(len(self._matrix), dtype=np.int64)
        halves = np.empty((2, len(coded)), dtype=np.int32)
        kernels.mapped(self._matrix, coded, self._drop, halves, result)
        return result

    def _packed_sums(self, w: ArrayLike) -> Integers:
        return self._objective.gradient(w, 1.0, self._image)


def permuted_descent(
    objective: LinearObjective,
    coding: Coding,
    order: Integers,
    *,
    batch: int,
    passes: int,
    step: float,
    ridge: float,
) -> Floats:
    """(width,): weights of coded records, divided by `longest`, after SGD over slots in an order.

    `order` holds a record's number, or one beyond them for an empty slot. Private: to be released.
    """
    scale, length = coding.unit, coding.longest(2)
    factor, offset = coding.columns
    rows = objective._sums.whole("this solver")
    blocks = (block for _, block in rows.records.labelled_blocks(1 << 16))
    table = scipy.sparse.vstack([scipy.sparse.csr_array(block) for block in blocks], format="csr")
    labels = [np.full(run.count, 1.0 + 2 * run.flip) for run in rows.runs]
    weights = np.zeros(coding.width)
    smooth.permuted_descent(
        table.indptr.astype(np.int64),
        table.indices.astype(np.int32),
        table.data * factor[table.indices] * (scale / length),
        offset.astype(np.float64) * (scale / length),
        np.concatenate(labels),
        np.where(order < objective.n_records, order, -1),
        objective.loss == "hinge",
        batch,
        passes,
        step,
        ridge,
        1 / ridge if ridge else 0.0,
        np.empty(coding.width),
        weights,
    )
    return weights
