"""Sums for descent: second moments, and clipped gradients in the coordinates of a public map.

**Neighbours.** Data sets differ by one record, replaced or added/removed; records lie in the
declared domain. Every sum here is an integer vector whose change between neighbours is bounded by
`sensitivity(adjacency)`, a number of the domain and of public parameters.

**Coding.** A record is u = ((x - middle) / 2^k, 1/2), one-hot columns as they are: `Coding`. In
units of 2^-(a+2) it is an integer vector, an affine map of the packed record, so sums over records
in this coding come exactly from sums of packed ones.

**Second moments.** One record adds u u'. Of a symmetric matrix the triangle is released. With S a
bound on the squared length of u and Q on the sum of its fourth powers, the triangle of u u' has
squared length (l2(u)^4 + sum u_j^4) / 2 <= (S^2 + Q) / 2: add or remove. For u replaced by v, it is
(l2(u)^4 + l2(v)^4 - 2 <u, v>^2 + sum (u_j^2 - v_j^2)^2) / 2 <= S^2 + F / 2, where F bounds the last
sum: its intercept is 0, a column in [-h, h] adds at most h^4, a one-hot group 2, a ball of radius
r at most 2 r^4.

**Gradients.** For a public integer matrix R a record's clipped gradient is c R u, with an integer
residual c of at most K / length(R u), the length rounded up; so its length is at most K. The sum is
R s with s = sum c u, a sum of packed records with one cap for each; R is applied to s exactly, and
the low bits are dropped by rounding down. Two vectors that differ by z have roundings that differ
by less than one more in each coordinate, so between neighbours the result moves by at most
K + sqrt(k) in l2 (add or remove) or 2 K + sqrt(k) (replace), and with k instead of sqrt(k) in l1.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import linear as kernels
from privfit._kernels.linear import RESIDUAL_UNIT
from privfit.domains import Box, Domain, L2Ball, Schema
from privfit.objectives.common import Floats, Integers, check_adjacency
from privfit.objectives.linear import Centred, LinearObjective

__all__ = ["ClippedGradient", "Coding", "SecondMoments", "permuted_descent"]

HALF = 31  # bits of the lower part of a sum that R is applied to in two parts
SUM_BITS = 18  # of a clipped gradient: rounding then adds less than k / 2^17 to a sensitivity
MOMENT_BITS = 26  # of a sensitivity of moments: finer units would only make numbers long
MOST_RESIDUAL = round(1 / RESIDUAL_UNIT)
ABOVE = 1 + 1e-12  # above the rounding of a few float64 operations


class Coding(Centred):
    """Numbers as [-1/2, 1/2], one-hot columns as 0 and 1, the intercept as 1/2.

    One-hot records are short this way: a group adds 1 to the squared length whatever its width,
    where +-1/2 would add a quarter for each of its columns.
    """

    def _centres(self, domain: Domain) -> Floats:
        ends = super()._centres(domain)
        if isinstance(domain, Schema):
            for group in domain.groups:
                ends[group] = 0.0
        return ends

    @property
    def unit(self) -> float:
        """What one unit of a coded column is worth."""
        return 2.0 ** -(self._domain.grid.a + 2)

    @property
    def width(self) -> int:
        """Coded columns, the intercept among them."""
        return self._domain.width + 1

    @cached_property
    def columns(self) -> tuple[Integers, Integers]:
        """((d,), (d + 1,)): u_j is the first times the packed x_j plus the second."""
        one = np.int64(1)
        offset = np.append(-self._ends << self._shift, self.largest)
        return one << (self._shift + 1), offset

    @cached_property
    def reach(self) -> Integers:
        """(d + 1,): the largest size of each coded column."""
        factor, offset = self.columns
        units = self._domain.record_units()
        ends = [np.rint(bound / units) for bound in (self._domain.low, self._domain.high)]
        sizes = [np.abs(factor * end.astype(np.int64) + offset[:-1]) for end in ends]
        return np.append(np.maximum(*sizes), offset[-1])

    def _sums(self, power: int) -> int:
        """A bound on the sum of abs(u_j)^power over a record, without the intercept."""
        sizes = [int(size) ** power for size in self.reach[:-1]]
        domain = self._domain
        if isinstance(domain, Box):
            return sum(sizes)
        if isinstance(domain, Schema):  # one column of a group is hot: count the first
            cold = {j for group in domain.groups for j in range(group.start + 1, group.stop)}
            return sum(size for j, size in enumerate(sizes) if j not in cold)
        if power == 1 and isinstance(domain, L2Ball):  # l1 <= sqrt(d) l2
            return sizes[0] * (math.isqrt(len(sizes) - 1) + 1)
        return sizes[0]

    def _square_changes(self) -> int:
        """A bound on the sum of (u_j^2 - v_j^2)^2 over two records u and v."""
        if isinstance(self._domain, Box):
            return self._sums(4)
        if isinstance(self._domain, Schema):
            return self._sums(4) + len(self._domain.groups) * int(1 / self.unit) ** 4
        return 2 * self._sums(4)

    def longest(self, order: int) -> float:
        """A bound on the l1 (order 1) or l2 norm (order 2) of a coded record."""
        total = self._sums(order) + self.largest**order
        return (total if order == 1 else math.sqrt(total)) * self.unit * ABOVE


class SecondMoments:
    """The triangle of sum u u' over coded records, in units of `unit`."""

    def __init__(self, objective: LinearObjective, coding: Coding) -> None:
        self._objective, self._coding = objective, coding
        self._drop = max(0, math.ceil(self._exact_bound("replace")).bit_length() - MOMENT_BITS)

    @property
    def unit(self) -> float:
        """What one unit of a moment is worth."""
        return self._coding.unit**2 * 2.0**self._drop

    def _exact_bound(self, adjacency: str) -> float:
        """The l2 sensitivity before low bits are dropped."""
        check_adjacency(adjacency)
        coding, half = self._coding, self._coding.largest
        squares = (coding._sums(2) + half**2) ** 2
        if adjacency == "replace":
            return math.sqrt(squares + coding._square_changes() / 2) * ABOVE
        return math.sqrt((squares + coding._sums(4) + half**4) / 2) * ABOVE

    def sensitivity(self, adjacency: str) -> float:
        """The l2 sensitivity of `triangle`."""
        k = self._coding.width
        rounding = math.sqrt(k * (k + 1) / 2) if self._drop else 0.0
        return (self._exact_bound(adjacency) / 2.0**self._drop + rounding) * ABOVE

    def triangle(self) -> Integers:
        """int64 (k (k + 1) / 2,): the upper triangle, row by row. Private: to be released."""
        a = self._objective.grid.a
        packed = self._objective.second_moments()
        factor, offset = self._coding.columns
        sums, count = packed[:-1, -1] >> a, packed[-1:, -1] >> 2 * a
        scaled = np.append(factor * sums, 0)  # intermediate sums may wrap, the last one fits
        moments = np.outer(offset, offset) * count + np.outer(scaled, offset)
        moments += np.outer(offset, scaled)
        moments[:-1, :-1] += np.outer(factor, factor) * packed[:-1, :-1]
        return moments[np.triu_indices(len(moments))] >> self._drop

    def matrix(self, released: ArrayLike) -> Floats:
        """(k, k): the symmetric matrix of a released triangle."""
        k = self._coding.width
        upper = np.zeros((k, k))
        upper[np.triu_indices(k)] = np.asarray(released) * self.unit
        return upper + np.triu(upper, 1).T


class ClippedGradient:
    """Sums of clipped gradients c R u of single records.

    Parameters
    ----------
    transform : (k, d + 1)
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
        parts = np.append(factor * packed + np.abs(offset[:-1]), offset[-1])
        rows = max((np.abs(transform) @ parts).max() / 2.0**19, np.abs(transform).sum(axis=1).max())
        self._bits = 30 - math.ceil(math.log2(rows))
        self._matrix = np.rint(np.ldexp(transform, self._bits)).astype(np.int64)
        # Lengths are taken of coordinates without their low bits, so that sums of squares fit.
        most = np.abs(self._matrix) @ coding.reach
        room = (61 - len(most).bit_length()) // 2
        self._shift = max(0, int(most.max()).bit_length() - room)
        sizes = [(int(size) >> self._shift) + 1 for size in most]
        longest = sum(sizes) if order == 1 else math.isqrt(sum(s**2 for s in sizes)) + 1
        unit = 2.0 ** (self._shift - self._bits) * coding.unit * RESIDUAL_UNIT
        self._bound = max(1, min(math.floor(clip / unit), MOST_RESIDUAL * longest))
        self._drop = max(HALF, (self._bound << self._shift).bit_length() - SUM_BITS)
        self._caps = self._cap_records()

    def _cap_records(self) -> NDArray[np.int16]:
        """(packed rows,): K / length in residual units. Private, like the records."""
        factor, offset = self._coding.columns
        image = np.vstack([(self._matrix[:, :-1] * factor).T, self._matrix @ offset])
        lengths = self._objective.lengths(image, self._shift, self._order == 2)
        if self._order == 2:  # a root of at most 2^31 is off by 2^-51 of itself: see ABOVE
            lengths = np.sqrt(lengths.astype(np.float64)).astype(np.int64) + 1
        caps = np.minimum(self._bound // np.maximum(lengths, 1), MOST_RESIDUAL)
        return caps.astype(np.int16)

    @property
    def unit(self) -> float:
        """What one unit of the sums is worth."""
        return 2.0 ** (self._drop - self._bits) * self._coding.unit * RESIDUAL_UNIT

    @property
    def clip(self) -> float:
        """The largest length of one record's gradient, at most what was asked for."""
        return self._bound * 2.0 ** (self._shift - self._drop) * self.unit

    def sensitivity(self, adjacency: str) -> float:
        """The sensitivity of `sums` in the norm of this clip."""
        check_adjacency(adjacency)
        k = len(self._matrix)
        one = self._bound * 2.0 ** (self._shift - self._drop)
        rounding = math.sqrt(k) if self._order == 2 else float(k)
        return ((2 if adjacency == "replace" else 1) * one + rounding) * ABOVE

    def sums(self, w: ArrayLike) -> Integers:
        """int64 (k,): minus the gradient of the loss at candidate w. Private: to be released."""
        packed = self._objective.gradient(w, 1.0, self._caps)
        s = self._coding.gradient(packed)
        high, low = s >> HALF, s & ((1 << HALF) - 1)
        return (self._matrix @ high + (self._matrix @ low >> HALF)) >> (self._drop - HALF)


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
    """(d + 1,): weights of coded records, divided by `longest`, after SGD over slots in an order.

    `order` holds a record's number, or one beyond them for an empty slot. Private: to be released.
    """
    scale, length = coding.unit, coding.longest(2)
    factor, offset = coding.columns
    blocks = (block for _, block in objective._layout.records.labelled_blocks(1 << 16))
    table = scipy.sparse.vstack([scipy.sparse.csr_array(block) for block in blocks], format="csr")
    labels = [np.full(run.count, 1.0 + 2 * run.flip) for run in objective._runs]
    weights = np.zeros(coding.width)
    kernels.permuted_descent(
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
