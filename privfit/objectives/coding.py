"""Codings of records, as changes of variables on candidates alone; packed records stay as they are.

==========  ============================================  ====================================
coding      a column                                      for
==========  ============================================  ====================================
`Centred`   [-1/2, 1/2], one-hot ones too                 moves that all cost alike (`Local`)
`Coding`    numbers as [-1/2, 1/2], one-hot as 0 and 1    gradients of short records
`Compact`   numbers as [-1/2, 1/2], one-hot as 0 and 1/2  sums of products of columns
`Broad`     numbers as [-1, 1], one-hot as 0 and 1/2      whitening: numbers may be narrow
==========  ============================================  ====================================

The intercept is 1/2 in all of them. In units of 2^-(a+2) a coded record is an integer vector, an
affine map of the packed one, so sums over coded records come exactly from sums of packed ones.

**Without an intercept** (`intercept=False`) nothing can take up what a middle subtracts, so zero
stays zero: a column whose largest size is at most 2^e is coded as x / 2^(e+1), within [-1/2, 1/2]
as well (`Broad`: x / 2^e, within [-1, 1]), and one-hot columns are coded as above, those of
`Centred` as 0 and 1/2. There is one coordinate less, and records are shorter by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers, Rows
from privfit.domains import Domain


class Centred:
    """Columns coded as x' = (x - middle) / 2^k in [-1/2, 1/2], the intercept as 1/2.

    A change of variables on candidates alone: the margin <x', u> + u_b / 2 is <x, w> + w_b with
    w_j = u_j / 2^k_j and w_b = u_b / 2 - sum of w_j middle_j. Records are not touched. Without an
    intercept all middles are 0, and neither w_b nor u_b is there.
    """

    def __init__(self, domain: Domain, intercept: bool = True) -> None:
        self._domain, self._intercept = domain, intercept
        units = domain.record_units()
        ends = self._centres(domain) if intercept else np.zeros(domain.width)
        k = self._exponents(domain)
        self._middle, self._units = ends / 2, domain.weight_units()[: self.width]
        self._scale = np.ldexp(1.0, -k)
        # In units of 2^-(a+2), x' is (2 x - low - high) 2^shift on the record's integers.
        self._ends = np.rint(ends / units).astype(np.int64)
        self._shift = (domain.exponents - k + 1).astype(np.int64)

    def _centres(self, domain: Domain) -> Floats:
        """(d,) twice the middle of each column."""
        return np.asarray(domain.low + domain.high)

    def _exponents(self, domain: Domain) -> Integers:
        """(d,) k: the power of two that covers the width of each column, or twice its size."""
        if not self._intercept:
            return np.asarray(domain.exponents + 1)
        width = domain.high - domain.low
        mantissa, k = np.frexp(width)
        k = np.where(mantissa == 0.5, k - 1, k)
        # A constant column has no gradient.
        return np.asarray(np.where(width == 0, domain.exponents, k), dtype=np.int64)

    @property
    def width(self) -> int:
        """Coded columns, the intercept among them if there is one."""
        return self._domain.width + self._intercept

    def weights(self, positions: ArrayLike) -> Floats:
        """(..., width): the linear candidates of these centred weights, on the grid."""
        W = self.linear(positions)
        W /= self._units
        np.rint(W, out=W)
        W *= self._units
        return W

    def linear(self, positions: ArrayLike) -> Floats:
        """(..., width): the linear weights of these centred ones, which may be off the grid."""
        U, d = np.asarray(positions, dtype=np.float64), self._domain.width
        W = np.empty_like(U)
        columns = np.multiply(U[..., :d], self._scale, out=W[..., :d])
        if self._intercept:
            W[..., d] = U[..., d] / 2 - columns @ self._middle
        return W

    def positions(self, weights: ArrayLike) -> Floats:
        """(..., width): the coded weights of these linear candidates: `weights` undone."""
        W, d = np.asarray(weights, dtype=np.float64), self._domain.width
        U = np.empty_like(W)
        U[..., :d] = W[..., :d] / self._scale
        if self._intercept:
            U[..., d] = 2 * (W[..., d] + W[..., :d] @ self._middle)
        return U

    def gradient(self, gradient: Integers) -> Integers:
        """int64 (width,): `LinearObjective.gradient` for the centred coding, exactly."""
        if not self._intercept:
            return 2 * gradient << self._shift
        a = self._domain.grid.a
        total = gradient[-1] >> a  # the sum of y min(r, cap): the intercept's column is 2^a
        coded = np.empty_like(gradient)
        np.left_shift(2 * gradient[:-1] - self._ends * total, self._shift, out=coded[:-1])
        coded[-1] = total << (a + 1)
        return coded

    @property
    def largest(self) -> int:
        """The largest abs(x'), in the units of `gradient`: 1/2, also that of the intercept."""
        return 1 << (self._domain.grid.a + 1)

    @property
    def constant(self) -> int:
        """The intercept's entry of a coded record, 1/2 in the units of `gradient`; 0 for none."""
        return self.largest if self._intercept else 0


class Coding(Centred):
    """Numbers as [-1/2, 1/2], one-hot columns as 0 and 1, the intercept as 1/2.

    One-hot records are short this way: a group adds 1 to the squared length whatever its width,
    where +-1/2 would add a quarter for each of its columns.
    """

    def _centres(self, domain: Domain) -> Floats:
        ends = super()._centres(domain)
        for group in domain.groups:
            ends[group] = 0.0
        return ends

    def _exponents(self, domain: Domain) -> Integers:
        k = super()._exponents(domain)
        for group in domain.groups:
            k[group] = 0
        return k

    @property
    def unit(self) -> float:
        """What one unit of a coded column is worth."""
        return 2.0 ** -(self._domain.grid.a + 2)

    @cached_property
    def columns(self) -> tuple[Integers, Integers]:
        """((d,), (width,)): u_j is the first times the packed x_j plus the second."""
        one = np.int64(1)
        offset = np.append(-self._ends << self._shift, self.largest)
        return one << (self._shift + 1), offset[: self.width]

    @cached_property
    def reach(self) -> Integers:
        """(width,): the largest size of each coded column."""
        factor, offset = self.columns
        d, units = self._domain.width, self._domain.record_units()
        ends = [np.rint(bound / units) for bound in (self._domain.low, self._domain.high)]
        sizes = [np.abs(factor * end.astype(np.int64) + offset[:d]) for end in ends]
        return np.append(np.maximum(*sizes), offset[d:])

    def sums(self, power: int, columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of abs(u_j)^power over these columns (all) of a record.

        The intercept is left out.
        """
        return self._domain.power_sum(self._sizes, power, columns)

    def square_changes(self, columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of (u_j^2 - v_j^2)^2 over these columns (all) of two records u, v."""
        return self._domain.square_changes(self._sizes, columns)

    @property
    def _sizes(self) -> list[int]:
        return self.reach[: self._domain.width].tolist()

    def longest(self, order: int) -> float:
        """A bound on the l1 (order 1) or l2 norm (order 2) of a coded record."""
        total = self.sums(order) + self.constant**order
        return (total if order == 1 else math.sqrt(total)) * self.unit * ABOVE

    def empty(self, columns: Integers) -> Floats:
        """(g, len(columns)): directions that no coded record has any part of, of these columns.

        A record has one category of each group, so that coded groups have the same sum, which is
        also a multiple of the intercept's.
        """
        d, place = self._domain.width, {int(j): i for i, j in enumerate(columns)}
        sums = []
        for group in self._domain.groups:
            members = range(group.start, group.stop)
            if all(j in place for j in members):
                sums.append(np.zeros(len(columns)))
                sums[-1][[place[j] for j in members]] = 1 / self._scale[group.start]
        if self._intercept:
            sums.append(np.zeros(len(columns)))
            sums[-1][place[d]] = 2.0
        return np.array(sums[:-1]).reshape(-1, len(columns)) - (sums[-1] if sums else 0.0)

    def moments(self, packed: Integers) -> Integers:
        """int64 (width, width): sums of u u', exactly, of `LinearObjective.second_moments`.

        Sums may wrap on the way; the last ones fit in 64 bits, as `SecondMoments` checks.
        """
        a = self._domain.grid.a
        factor, offset = self.columns
        if not self._intercept:
            return np.outer(factor, factor) * packed[:-1, :-1]
        sums, count = packed[:-1, -1] >> a, packed[-1:, -1] >> 2 * a
        scaled = np.append(factor * sums, 0)
        moments = np.outer(offset, offset) * count + np.outer(scaled, offset)
        moments += np.outer(offset, scaled)
        moments[:-1, :-1] += np.outer(factor, factor) * packed[:-1, :-1]
        return moments


class Compact(Coding):
    """One-hot columns as 0 and 1/2, no longer than numbers; without `centre`, zero stays zero."""

    def __init__(self, domain: Domain, centre: bool = True, intercept: bool = True) -> None:
        self._centre = centre
        super().__init__(domain, intercept)

    def _centres(self, domain: Domain) -> Floats:
        return super()._centres(domain) if self._centre else np.zeros(domain.width)

    def _exponents(self, domain: Domain) -> Integers:
        if not self._centre:
            return domain.exponents + 1
        k = super()._exponents(domain)
        for group in domain.groups:
            k[group] += 1
        return k

    def records(self, X: Rows) -> Floats:
        """Coded records (n, d), the intercept left out, of decoded ones."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        return np.asarray((dense - self._middle) * self._scale)


class Broad(Compact):
    """Numbers as [-1, 1], one-hot columns as 0 and 1/2.

    Noise on second moments is as long in every direction. Records often fill little of a declared
    range of numbers, so numbers are coded four times as wide as one-hot columns.
    """

    def __init__(self, domain: Domain, intercept: bool = True) -> None:
        super().__init__(domain, intercept=intercept)

    def _exponents(self, domain: Domain) -> Integers:
        k = super()._exponents(domain) - 1
        for group in domain.groups:
            k[group] += 1
        return k
