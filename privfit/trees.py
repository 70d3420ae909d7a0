"""A private partition of space: bisect where records are many, at a cost that depth does not raise.

PrivTree (Zhang, Xiao, Xie, 2016) with whole numbers. A node at depth i that holds c records is
bisected if

    max(c - i decay, threshold - decay) + x > threshold,

x discrete Laplace noise of rate r, of probability proportional to a^abs(x) with a = exp(-r). The
partition is released, the noisy counts are not.

**What it costs.** Write t for the threshold and S(b) for the probability to split at a biased
count b, a whole number: S(b) = a^(t+1-b) / (1 + a) up to b = t + 1, from there on
1 - a^(b-t) / (1 + a). So

    ln S(b + 1) - ln S(b) = r                                       for b <= t,
                         <= a^(b-t) (1 - a) / (1 + a - a^(b-t))
                         <= r a^(b-t)                               for b > t,

since 1 - a <= r and a^(b-t) <= a. Add one record: only the nodes that hold it change, one at each
depth down to a leaf. Those whose count is below the floor do not change either; the others' biased
counts b_0 > b_1 > ... fall by at least `decay` from one to the next, and none is below t - decay.
Let a^decay <= 1/2. At most two of them are <= t, namely t and t - decay, and the others are
t + decay, t + 2 decay, ... or more: the bounds add up to r (2 + 1/2 + 1/4 + ...) = 3 r. Or one is,
and the others are t + 1, t + 1 + decay, ... or more: r (1 + 1 + 1/2 + ...) = 3 r at most. Splits
grow likelier, and the stop at the leaf less likely by a factor of at most exp(r). Hence

    -r <= ln P(partition | one more record) - ln P(partition) <= 3 r.

- Adding or removing a record: epsilon = 3 r.
- Replacing one: nodes that hold both the old and the new record do not change. What is left of the
  new one's path gives at most 3 r, what is left of the old one's at most r: epsilon = 4 r, not 6 r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels.random import BitSource
from privfit.accounting import Event
from privfit.checks import is_finite, is_whole
from privfit.ledger import ADJACENCIES
from privfit.mechanisms import DiscreteLaplace, Mechanism

__all__ = ["Bisection", "Boxes", "Leaves"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

RATES = {"add_remove": 3, "replace": 4}  # epsilon in units of the noise's rate, proved above


@dataclass(frozen=True, eq=False)
class Leaves:
    """The parts of a partition: node `index[i]` of the 2^`depth[i]` at its depth."""

    depth: Integers
    index: Integers

    def __len__(self) -> int:
        return len(self.depth)


@dataclass(frozen=True)
class Bisection(Mechanism):
    """A partition of 2^m cells into runs, by bisecting what holds many records.

    Parameters
    ----------
    epsilon : float
        The cost of the whole partition.
    adjacency : 'replace' or 'add_remove'
    first : int
        The depth from which on noise decides; above it everything is bisected.
    threshold : int
        A biased count above it splits.
    """

    epsilon: float
    adjacency: str = "replace"
    first: int = 0
    threshold: int = 0

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon <= 0:
            raise ValueError(
                f"epsilon ({self.epsilon!r}) must be a positive number; pass a budget such as 1.0"
            )
        if self.adjacency not in ADJACENCIES:
            raise ValueError(
                f"adjacency ({self.adjacency!r}) must be 'replace' or 'add_remove'; pass one of "
                "them"
            )
        if not is_whole(self.first) or self.first < 0:
            raise ValueError(
                f"first ({self.first!r}) must be a whole number from 0 on; leave it out"
            )
        if not is_whole(self.threshold):
            raise ValueError(f"threshold ({self.threshold!r}) must be a whole number; leave it out")

    @property
    def rate(self) -> float:
        """The rate r of the noise, rounded down."""
        return math.nextafter(self.epsilon / RATES[self.adjacency], 0.0)

    @property
    def decay(self) -> int:
        """The least whole number with exp(-r decay) <= 1/2, r as drawn: rounded to 32 bits."""
        return math.ceil(math.log(2) / self.rate * (1 + 1e-9))

    @property
    def event(self) -> Event:
        return Event("pure", self.epsilon)

    def __call__(self, value: ArrayLike, rng: Any = None) -> Leaves:
        """The leaves for counts (2^m,) of the finest cells, in the order of bisection."""
        cells = np.asarray(value)
        m = max(cells.size.bit_length() - 1, 0)
        if cells.ndim != 1 or cells.dtype.kind not in "iu" or cells.size != 1 << m:
            raise ValueError(
                f"value (shape {cells.shape}, dtype {cells.dtype}) must be 2^m whole counts; pass "
                "the counts of the finest cells"
            )
        if self.first > m:
            raise ValueError(
                f"first ({self.first}) must be at most the depth of the cells ({m}); pass less"
            )
        levels = [cells.astype(np.int64)]
        while len(levels) <= m - self.first:
            levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
        noise, source = DiscreteLaplace(self.rate, 1), BitSource.of(rng)
        depths, indices = [], []
        nodes = np.arange(1 << self.first)
        for depth in range(self.first, m):
            counts = levels[m - depth][nodes] - (depth - self.first) * self.decay
            biased = np.maximum(counts, self.threshold - self.decay)
            split = noise(biased, source) > self.threshold
            depths.append(np.full(int((~split).sum()), depth))
            indices.append(nodes[~split])
            nodes = np.repeat(2 * nodes[split], 2)
            nodes[1::2] += 1
        depths.append(np.full(len(nodes), m))
        indices.append(nodes)
        return Leaves(np.concatenate(depths), np.concatenate(indices))


class Boxes:
    """A box that is bisected again and again along its longest side: where cells and nodes lie.

    Parameters
    ----------
    low, high : (d,)
        The public box.
    bits : int
        The depth of the finest cells: there are 2^bits of them.
    """

    def __init__(self, low: ArrayLike, high: ArrayLike, bits: int) -> None:
        self.low, self.high = (np.asarray(v, dtype=np.float64) for v in (low, high))
        sides = self.high - self.low
        self.axes = np.empty(bits, dtype=np.int64)
        for depth in range(bits):
            self.axes[depth] = axis = int(np.argmax(sides))
            sides[axis] /= 2

    def cells(self, X: Floats) -> Integers:
        """(n,): the cell of each record (n, d) of the box."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        halvings = np.bincount(self.axes, minlength=len(self.low))
        share = np.floor((X - self.low) / width * 2.0**halvings)
        place = np.clip(share, 0, 2.0**halvings - 1).astype(np.int64)
        seen = np.zeros_like(halvings)
        cell = np.zeros(len(X), dtype=np.int64)
        for axis in self.axes:
            seen[axis] += 1
            cell = 2 * cell + (place[:, axis] >> (halvings[axis] - seen[axis]) & 1)
        return cell

    def counts(self, cells: Integers, leaves: Leaves) -> Integers:
        """(m,): how many of these cells lie in each leaf."""
        bits = len(self.axes)
        first = leaves.index << (bits - leaves.depth)
        order = np.argsort(first)
        found = np.searchsorted(first[order], cells, side="right") - 1
        return np.bincount(order[found], minlength=len(leaves)).astype(np.int64)

    def sides_of(self, leaves: Leaves) -> tuple[Floats, Floats]:
        """(m, d), (m, d): the lower and upper corners of each leaf."""
        low = np.tile(self.low, (len(leaves), 1))
        width = np.tile(self.high - self.low, (len(leaves), 1))
        for depth, axis in enumerate(self.axes):
            inside = leaves.depth > depth
            upper = leaves.index >> np.maximum(leaves.depth - depth - 1, 0) & 1
            width[inside, axis] /= 2
            low[:, axis] += np.where(inside, upper * width[:, axis], 0.0)
        return low, low + width
