"""Sums of products of features that an additive fit releases, and how far one record moves them.

With phi = (T_1, ..., T_d, ONE) the features of a record (`Features`), one record adds products of
two coordinates of phi, whole numbers in units of 4^-MAP_BITS. Data sets differ by one record,
replaced or added or removed. Every bound below is computed from the tables in whole numbers.

**Full moments** (`FullMoments`): the triangle of sum phi phi'. As for `SecondMoments`
(`objectives/clipping.py`), one record adds a vector of squared length (l2(phi)^4 + sum phi_j^4) / 2
<= (S^2 + Q) / 2: add or remove. For phi replaced by psi the sum moves by a squared length of at
most S^2 + F / 2. Here

    S = ONE^2 + sum over columns of the largest squared length of a row,
    Q = ONE^4 + sum over columns of the largest sum of fourth powers of a row,
    F = sum over columns of the largest sum of (r_j^2 - s_j^2)^2 over two rows r and s.

**Block moments** (`BlockMoments`): of each column alone the triangle of sum T T' and ONE sum T, and
ONE^2 times the number of records. In column c a record adds a public vector v_c(l), that of its
level, so that the squared sensitivity is exactly

    ONE^4 + sum over columns of max over l of l2(v_c(l))^2                       (add or remove),
            sum over columns of max over l, m of l2(v_c(l) - v_c(m))^2           (replace),

since levels of columns are chosen independently, and a replaced record leaves their number as it
is. It grows with the root of the number of columns, where that of full moments grows with their
number: the price is that nothing is known of products of columns.

**Nothing is released twice or in vain.** Products that are 0 at every level, such as those of two
levels of a category, are left out. So are block moments ONE T_j of coordinates that are either 0 or
ONE, such as levels: they equal T_j^2. Leaving out numbers makes no vector longer.

**Rounding.** Low bits are dropped by rounding down: two vectors that differ by z have roundings
that differ by less than one more in each coordinate, which adds sqrt(coordinates) to a sensitivity.

**No sum wraps.** A product is at most 2^24 in size, a sum over 2^32 records at most 2^56.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.domains.scales import MAP_BITS
from privfit.objectives.clipping import MOMENT_BITS
from privfit.objectives.features import ONE, Curve, Features, Table, gram
from privfit.objectives.linear import LinearObjective
from privfit.privacy.neighbours import REPLACE, Neighbours

__all__ = ["BlockMoments", "Blocks", "FullMoments"]


class _Released(ABC):
    """Whole numbers without their low bits, and their sensitivity."""

    def __init__(self, objective: LinearObjective, features: Features) -> None:
        self._objective, self._features = objective, features
        self._drop = max(0, math.isqrt(self._squared(REPLACE)).bit_length() - MOMENT_BITS)

    @property
    def unit(self) -> float:
        """What one unit of a moment is worth."""
        return 2.0 ** (self._drop - 2 * MAP_BITS)

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The l2 sensitivity of `sums`."""
        rounding = math.sqrt(self.size) if self._drop else 0.0
        return (math.sqrt(self._squared(neighbours)) / 2.0**self._drop + rounding) * ABOVE

    def sums(self) -> Integers:
        """int64 (size,): what is to be released. Private."""
        return self._exact() >> self._drop

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are released."""

    @abstractmethod
    def _squared(self, neighbours: Neighbours) -> int:
        """A bound on the squared l2 sensitivity before low bits are dropped, rounded up."""

    @abstractmethod
    def _exact(self) -> Integers:
        """The sums with all bits."""


class FullMoments(_Released):
    """The triangle of sum phi phi', but for products that are always 0."""

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """The rows and columns of what is released."""
        filled = np.ones((self._features.dimensions,) * 2, dtype=np.bool_)
        for part, table in zip(self._features.parts, self._features.tables, strict=True):
            filled[part, part] = table.filled
        rows, columns = np.nonzero(np.triu(filled))
        return rows, columns

    @property
    def size(self) -> int:
        return len(self._places[0])

    def _squared(self, neighbours: Neighbours) -> int:
        tables = self._features.tables
        squares = (ONE**2 + sum(table.square for table in tables)) ** 2
        if neighbours.replaces:
            return squares + -(-sum(table.square_change for table in tables) // 2)
        return -(-(squares + ONE**4 + sum(table.fourth for table in tables)) // 2)

    def _exact(self) -> Integers:
        return self._objective.feature_moments(self._features.matrix)[self._places]

    def matrix(self, released: ArrayLike) -> Floats:
        """(dimensions, dimensions): the symmetric matrix of what was released."""
        upper = np.zeros((self._features.dimensions,) * 2)
        upper[self._places] = np.asarray(released) * self.unit
        return upper + np.triu(upper, 1).T


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """Released block moments: of each column the sums of T T' and of T, and the count."""

    products: tuple[Floats, ...]
    sums: tuple[Floats, ...]
    count: float


class BlockMoments(_Released):
    """The second moments and means of each column alone, and the number of records."""

    @cached_property
    def _blocks(self) -> tuple[_Block, ...]:
        return tuple(map(_Block.of, self._features.tables))

    @cached_property
    def size(self) -> int:
        return sum(block.size for block in self._blocks) + 1

    def _squared(self, neighbours: Neighbours) -> int:
        if neighbours.replaces:
            return sum(block.farthest for block in self._blocks)
        return sum(block.longest for block in self._blocks) + ONE**4

    def _exact(self) -> Integers:
        counts = self._objective.level_counts().sum(axis=0)
        groups = self._features.groups
        parts = [block.sums(counts[group])
                 for block, group in zip(self._blocks, groups, strict=True)]  # fmt: skip
        number = counts[groups[0]].sum()
        return np.concatenate([*parts, [number * ONE**2]])

    def read(self, released: ArrayLike) -> Blocks:
        """What was released, by column."""
        numbers = np.asarray(released) * self.unit
        ends = np.cumsum([0, *(block.size for block in self._blocks)]).tolist()
        parts = [numbers[first:last] for first, last in pairwise(ends)]
        both = [block.read(part) for block, part in zip(self._blocks, parts, strict=True)]
        products, sums = zip(*both, strict=True)
        return Blocks(products, sums, float(numbers[-1]))


@dataclass(frozen=True, eq=False, repr=False)
class _Block:
    """What is released of one column: products of these coordinates, then sums of others.

    The sum of a coordinate that is 0 or ONE is that of its square.
    """

    table: Table
    rows: Integers
    columns: Integers
    means: Integers

    @classmethod
    def of(cls, table: Table) -> _Block:
        rows, columns = np.nonzero(np.triu(table.filled))
        plain = ((table.rows != 0) & (table.rows != ONE)).any(axis=0)
        return cls(table, rows, columns, np.flatnonzero(plain))

    @property
    def size(self) -> int:
        """How many numbers these are."""
        return len(self.rows) + len(self.means)

    @property
    def longest(self) -> int:
        """The largest squared length of v(l)."""
        return int(_lengths(self.table.rows, self.means).max())

    @property
    def farthest(self) -> int:
        """The largest squared length of v(l) - v(m)."""
        table = self.table
        if not isinstance(table, Curve):  # no two levels of a category share a coordinate
            return 2 * ONE**4 if len(table.rows) > 1 else 0
        rows = table.distinct
        own = _lengths(rows, self.means)
        # <v(l), v(m)> is (<r, s>^2 + sum r_j^2 s_j^2) / 2 + ONE^2 <r', s'> with r' the means.
        twice = gram(rows) ** 2 + gram(rows**2) + 2 * ONE**2 * gram(rows[:, self.means])
        return int((own[:, None] + own - twice).max())

    def sums(self, counts: Integers) -> Integers:
        """int64 (size,): the sums over records, from counts of levels."""
        rows = self.table.rows
        if not isinstance(self.table, Curve):
            return counts * ONE**2
        products = (rows * counts[:, None]).T @ rows
        return np.concatenate(
            [products[self.rows, self.columns], ONE * (counts @ rows)[self.means]]
        )

    def read(self, numbers: Floats) -> tuple[Floats, Floats]:
        """((q, q), (q,)): the sums of T T' and of T that were released."""
        q, last = self.table.dimensions, len(self.rows)
        upper = np.zeros((q, q))
        upper[self.rows, self.columns] = numbers[:last]
        sums = upper.diagonal().copy()
        sums[self.means] = numbers[last:]
        return upper + np.triu(upper, 1).T, sums


def _lengths(rows: Integers, means: Integers) -> Integers:
    """(levels,): the squared lengths of v(l), below 2^50."""
    squares = np.square(rows)
    whole = squares.sum(axis=1) ** 2 + np.square(squares).sum(axis=1)
    return np.asarray(whole // 2 + ONE**2 * squares[:, means].sum(axis=1))
