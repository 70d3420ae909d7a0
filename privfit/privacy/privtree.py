"""A private adaptive partition: cells are halved where records are, after PrivTree.

Zhang, Xiao, Xie: *PrivTree: a differentially private algorithm for hierarchical decompositions*,
SIGMOD 2016. Every cell of a data-independent hierarchy is tested by one noisy, biased count, and
halved if the test says so. However deep the tree grows, its shape costs a constant.

**Why it is private.** Let Z have P(Z = z) proportional to q^abs(z) on the integers, q = e^-r. A
cell v at depth i below its root, with c(v) records, is halved if b(v) + Z > 0, where

    b(v) = max(-D, c(v) - i D),     D a whole number with q^D <= 1/2   (the decay).

Write H(u) = P(u + Z > 0): q^(1-u)/(1+q) for u <= 1 and 1 - q^u/(1+q) for u >= 1.

1. *A cell that is halved.* ln H(u)/H(u-1) = r for u <= 1. For u >= 2 it is
   ln(1 + (1-q) q^(u-1) / (1 + q - q^(u-1))) <= (1-q) q^(u-1) <= r q^(u-1). So it lies between 0 and
   r min(1, q^(u-1)).
2. *A cell that is not.* ln (1 - H(u-1))/(1 - H(u)) lies between 0 and r: it is r for u >= 1, and by
   the symmetry of Z, as in 1, less for smaller u.
3. *One more record* raises the counts of the cells that contain it by one: one root and a path
   below. Let X' be the larger data set, c' its counts, and w_i = c'(v_i) - i D on that path. Counts
   do not grow downwards, so w_i falls by at least D a level. Where w_i <= -D both data sets give
   b = -D and the test is the same. Let m be the last level with w_m >= 1 - D; then w_(m-j) is at
   least 1 + (j - 1) D, and by 1 the halved cells contribute together at most

       r (1 + sum over j >= 1 of q^((j-1) D)) = r (1 + 1/(1 - q^D)) <= 3 r.

   The path ends in one cell that is not halved, whose factor favours the smaller data set. Hence

       -r <= ln P(tree | X') / P(tree | X) <= 3 r.

4. *One record replaced* is one removed and one added: at most r + 3 r = 4 r, not 6 r.

The shape is therefore epsilon-DP with r = epsilon / 3 (add_remove) and r = epsilon / 4 (replace).
These are the constants of the paper's real-valued noise; a limit on the depth only drops factors,
and a smaller r costs less, so rounding r down is safe. Roots are not tested: they are public.

**Counts** of the final cells are released apart. One record changes one of them (two, if it is
replaced) by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.rulers import Ruler
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import DiscreteLaplace, RelatedMechanism, Releasing
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import epsilon_left

__all__ = ["Cells", "Halvings", "Leaves", "Partition", "SplitTree"]

Codes: TypeAlias = NDArray[np.uint64]

MOST_LEVELS = 62


# ---------------------------------------------------------------------------------------- geometry


class Halvings:
    """A box of whole numbers, halved again and again across its widest column.

    `low` and `high` (d,) are the least and the largest number of each column; `axes` the columns
    to halve in turn, at most `depth` of them, none below a step of the grid. With a ruler, columns
    are as wide as on its scale, and halved there.
    """

    def __init__(
        self, low: Integers, high: Integers, depth: int = MOST_LEVELS, ruler: Ruler | None = None
    ) -> None:
        self.ruler, self.width = ruler, len(low)
        self._tables = None if ruler is None else ruler.tables(low, high)
        self._bounds = low, high
        if ruler is not None:
            low, high = ruler.scaled(low), ruler.scaled(high)
        self._low, self._high = low, high
        width = (high - low + 1).astype(np.float64)
        left = np.floor(np.log2(width)).astype(np.int64)
        axes: list[int] = []
        while len(axes) < depth and left.any():
            axis = int(np.argmax(np.where(left > 0, width, 0.0)))
            axes.append(axis)
            left[axis] -= 1
            width[axis] /= 2
        self.axes = np.array(axes, dtype=np.int32)

    def corners(self, codes: Codes, level: int) -> tuple[Integers, Integers]:
        """Corners (m, d) of the cells with these codes after `level` halvings: [low, high)."""
        ends = self._places(codes, level)
        if self._tables is None:
            return ends
        low, high = (np.empty_like(end) for end in ends)
        for j, table in enumerate(self._tables):
            for found, end in zip((low, high), ends, strict=True):
                found[:, j] = self._bounds[0][j] + np.searchsorted(table, end[:, j])
        return low, high

    def middles(self, codes: Codes, level: int) -> Floats:
        """(m, d) the middles of these cells, on the scale of the ruler if there is one."""
        low, high = self._places(codes, level)
        middle = (low + high - 1) / 2
        return middle if self.ruler is None else np.clip(self.ruler.numbers(middle), *self._bounds)

    def _places(self, codes: Codes, level: int) -> tuple[Integers, Integers]:
        """The corners on the scale."""
        low = np.tile(self._low, (len(codes), 1))
        high = np.tile(self._high + 1, (len(codes), 1))
        for i, axis in enumerate(self.axes[:level]):
            upper = (codes >> np.uint64(level - 1 - i)) & np.uint64(1) == 1
            cut = (low[:, axis] + high[:, axis]) // 2
            low[:, axis] = np.where(upper, cut, low[:, axis])
            high[:, axis] = np.where(upper, high[:, axis], cut)
        return low, high


@dataclass(frozen=True, eq=False)
class Cells:
    """Released noisy counts (m,) of cells [low, high) (m, d) that cover a box once.

    `scale` is that of the counts' discrete Laplace noise. `points` (m, d) stand for the cells, if
    they are not half way between the corners.
    """

    low: Integers
    high: Integers
    counts: Integers
    scale: float
    points: Floats | None = None

    def __repr__(self) -> str:
        return f"Cells(<{len(self.counts)} cells>)"

    @property
    def size(self) -> float:
        """A noisy number of all records, at least 1."""
        return max(1.0, float(self.counts.sum()))

    @property
    def middles(self) -> Floats:
        """(m, d) points that stand for the cells."""
        return (self.low + self.high - 1) / 2 if self.points is None else self.points

    @property
    def weights(self) -> NDArray[np.float64]:
        """Counts less the median size of their noise, at least 0.

        Most cells are nearly empty, so that counts cut at 0 add up to too much; this is what an
        exact zero would show half of the time.
        """
        return np.maximum(self.counts - self.scale * math.log(2), 0.0)

    def spread(self, weights: Floats, parts: int, drawn_in: float = 1.0) -> tuple[Floats, Floats]:
        """(m', d), (m',): each cell of positive weight as parts^d points that share its weight.

        They are in the middles of equal parts of the cell, or so far drawn in to its own middle;
        with one part they are its own point.
        """
        filled, d = weights > 0, self.low.shape[1]
        if parts == 1:
            return self.middles[filled], weights[filled]
        low, high, count = self.low[filled], self.high[filled] - 1, parts**d
        steps = np.arange(count)[:, None] // parts ** np.arange(d) % parts + 0.5
        places = 0.5 + drawn_in * (steps / parts - 0.5)
        points = low[:, None] + places * (high - low)[:, None]
        return np.asarray(points.reshape(-1, d)), np.repeat(weights[filled] / count, count)


class Countable(Protocol):
    """Records that are elsewhere, and counted there."""

    def count(self, codes: Codes, shift: Codes) -> Integers:
        """How many lie in each cell; its code lacks the last `shift` halvings."""


class TreeSettings(Protocol):
    """What is declared of a tree."""

    @property
    def shape_share(self) -> float:
        """The part of epsilon that the shape may spend."""

    @property
    def roots(self) -> int | None:
        """Halvings without a test, by default as many as a rule says."""

    @property
    def depth(self) -> int:
        """The most halvings."""


# ----------------------------------------------------------------------------------- the mechanism


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cells that cover everything once: code i has levels[i] bits, one for each halving."""

    codes: Codes
    levels: Integers

    def __repr__(self) -> str:
        return f"Leaves(<{len(self.codes)} cells>)"

    def counts(self, cells: Codes | Countable, depth: int) -> Integers:
        """How many of these cells, sorted and `depth` halvings deep, lie in each leaf."""
        return _count(cells, self.codes, np.uint64(depth) - self.levels.astype(np.uint64))


def _count(cells: Codes | Countable, codes: Codes, shift: Codes | np.uint64) -> Integers:
    """How many of the cells lie in each code; those that are elsewhere are counted there."""
    if not isinstance(cells, np.ndarray):
        return np.asarray(cells.count(codes, np.asarray(shift)))
    first = np.searchsorted(cells, codes << shift)
    return np.asarray(np.searchsorted(cells, (codes + np.uint64(1)) << shift) - first)


@dataclass(frozen=True, repr=False)
class SplitTree(RelatedMechanism["Codes | Countable", Leaves]):
    """The shape of a tree of halvings, grown where noisy counts are large; see the module's proof.

    Parameters
    ----------
    epsilon : float
        What the shape costs, however large it grows.
    neighbours : Neighbours
    roots : int
        The first so many halvings are made without a test.
    depth : int
        No cell is halved more often than this.
    """

    epsilon: float
    neighbours: Neighbours
    roots: int
    depth: int

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon <= 0:
            raise DeclarationError(
                f"epsilon ({self.epsilon!r}) must be a positive number; pass a budget such as 1.0"
            )
        for name in ("roots", "depth"):
            if not is_whole(getattr(self, name)):
                raise DeclarationError(
                    f"{name} ({getattr(self, name)!r}) must be a whole number of halvings; pass "
                    "such a number"
                )
        if not 0 <= self.roots <= self.depth <= MOST_LEVELS:
            raise DeclarationError(
                f"roots ({self.roots}) and depth ({self.depth}) must rise from 0 to at most "
                f"{MOST_LEVELS} halvings; pass fewer"
            )

    @property
    def tests(self) -> int:
        """What the shape costs, in units of r: one more record costs from -1 to 3 of them."""
        return self.neighbours.span(-1, 3)

    @property
    def decay(self) -> int:
        """D: what a level takes off a count; e^(-r D) <= 1/2."""
        return math.ceil(math.log(2) * self.tests / self.epsilon * ABOVE)

    @property
    def event(self) -> Event:
        return Event("pure", self.epsilon)

    def __call__(self, value: Codes | Countable, rng: object = None) -> Leaves:
        """The leaves, in the order of their codes.

        `value` is (n,) sorted codes of the cells of all records, after `depth` halvings.
        """
        source = BitSource.of(rng)
        test = DiscreteLaplace(self.epsilon, self.tests)  # its rate is r
        codes = np.arange(2**self.roots, dtype=np.uint64)
        leaves, levels = [], []
        for level in range(self.roots, self.depth + 1):
            if level == self.depth:
                halved = np.zeros(len(codes), dtype=bool)
            else:
                counts = _count(value, codes, np.uint64(self.depth - level))
                biased = counts - (level - self.roots) * self.decay
                halved = test(np.maximum(biased, -self.decay), source) > 0
            leaves.append(codes[~halved])
            levels.append(np.full(len(leaves[-1]), level))
            codes = np.repeat(codes[halved] << np.uint64(1), 2)
            codes[1::2] += np.uint64(1)
        found, depths = np.concatenate(leaves), np.concatenate(levels)
        order = np.argsort(found << (np.uint64(self.depth) - depths.astype(np.uint64)))
        return Leaves(found[order], depths[order])


# -------------------------------------------------------------------------------- shape and counts


@dataclass(frozen=True, eq=False)
class Partition:
    """The public plan of a partition: its halvings, and the two releases that it takes."""

    halvings: Halvings
    shape: SplitTree
    counts: DiscreteLaplace

    @classmethod
    def plan(
        cls,
        settings: TreeSettings,
        bounds: tuple[Integers, Integers],
        k: int,
        epsilon: float,
        neighbours: Neighbours,
        ruler: Ruler | None = None,
    ) -> Partition:
        """Spend a share of epsilon on the shape and the rest on the counts of its cells.

        The default of `roots` is round(log2(3 k)). A ruler must be public, or released before.
        """
        halvings = Halvings(*bounds, settings.depth, ruler)
        depth, roots = len(halvings.axes), settings.roots or round(math.log2(3 * k))
        shape = SplitTree(settings.shape_share * epsilon, neighbours, min(roots, depth), depth)
        rest = epsilon_left(epsilon, shape.event)
        return cls(halvings, shape, DiscreteLaplace(rest, neighbours.changes))

    @property
    def events(self) -> tuple[Event, Event]:
        """What both releases cost."""
        return self.shape.event, self.counts.event

    @property
    def noted(self) -> dict[str, int]:
        """The settings of the tree as they are used."""
        return {"roots": self.shape.roots, "depth": self.shape.depth}

    def grow(self, cells: Codes | Countable, release: Releasing) -> Cells:
        """The released cells of private records, given by their codes (n,) in any order.

        Or by anything that can `count` them: see `_count`.
        """
        depth, cells = self.shape.depth, np.sort(cells) if isinstance(cells, np.ndarray) else cells
        leaves = release(self.shape, cells)
        counts = release(self.counts, leaves.counts(cells, depth))
        low, high = np.empty((2, len(counts), self.halvings.width), dtype=np.int64)
        middles = np.empty((len(counts), self.halvings.width))
        for level in np.unique(leaves.levels):
            here = leaves.levels == level
            low[here], high[here] = self.halvings.corners(leaves.codes[here], int(level))
            middles[here] = self.halvings.middles(leaves.codes[here], int(level))
        return Cells(low, high, counts, self.counts.sensitivity / self.counts.epsilon, middles)


def check_depth(depth: int) -> None:
    """Refuse more halvings than a code has bits."""
    if depth > MOST_LEVELS:
        raise DeclarationError(f"depth ({depth}) must be at most {MOST_LEVELS}; leave it out")
