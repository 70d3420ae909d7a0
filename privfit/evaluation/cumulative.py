"""Noisy histograms whose cumulative counts matter: what to release, and what to make of it.

A *measurement* turns the counts of m cells into integers. Discrete noise is added to those, and an
estimate of the cells comes back. One record lies in one cell of one histogram.

`Flat`       the cells themselves
`Hierarchy`  sums of runs of cells on h levels, made consistent afterwards (Hay, Rastogi, Miklau,
             Suciu 2010; large branches: Qardaji, Yang, Li 2013)
`Haar`       the total, and for each node of a binary tree the sum of its left half less that of its
             right half

**Haar is Privelet** (Xiao, Wang, Gehrke 2011). Their coefficient of a node over 2^j cells is (mean
of its left half - mean of its right half) / 2 = (left sum - right sum) / 2^j. Its noise has scale
lambda / 2^j. Times 2^j that is noise of scale lambda on the integer (left sum - right sum). The
base coefficient, the mean of all m cells, has weight m: noise of scale lambda on the total. So all
integers get equal noise, and generalised sensitivity is plain sensitivity.

**Sensitivity.** L = log2 m. Over any number of histograms of m cells each, one record

==========================  ==========  ============================  ============================
moves                       `Flat`      `Hierarchy`, h levels         `Haar`
==========================  ==========  ============================  ============================
added or removed: l1, l2^2  1, 1        h, h                          1 + L, 1 + L
replaced: l1, l2^2          2, 2        2 h, 2 h                      2 (1 + L), 2 (1 + L)
==========================  ==========  ============================  ============================

Added: it counts once on each level; in Haar once in the total and once, with a sign, in each of the
L nodes above its cell. Replaced: in two histograms both changes count. Within one histogram the
lowest common node of both cells, over 2^j cells, changes by 2 and nothing above it does, so that
l2^2 is at most 4 + 2 (j - 1) <= 2 (1 + L), and l1 at most 2 j <= 2 L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.typing import Floats, Integers
from privfit.privacy.neighbours import Neighbours

__all__ = ["Flat", "Haar", "Hierarchy", "Measurement", "best_hierarchy"]


@dataclass(frozen=True)
class Measurement:
    """Integers of histograms (..., 2^bits), and back."""

    bits: int

    @property
    def levels(self) -> int:
        """How many of the integers one record is counted in."""
        raise NotImplementedError

    def sensitivity(self, neighbours: Neighbours) -> int:
        """How far one record moves the integers: l1, and the square of l2."""
        return self.levels * neighbours.changes

    @property
    def spread(self) -> float:
        """About the mean variance of cumulative counts with the total known, at noise 1."""
        raise NotImplementedError

    def measure(self, cells: Integers) -> Integers:
        """int64 (..., q): what gets noise."""
        raise NotImplementedError

    def estimate(self, noisy: Any) -> Floats:
        """float64 (..., 2^bits): the cells, from noisy integers."""
        raise NotImplementedError


@dataclass(frozen=True)
class Flat(Measurement):
    """The cells themselves."""

    @property
    def levels(self) -> int:
        return 1

    @property
    def spread(self) -> float:
        """A walk of m steps tied at both ends: i (1 - i / m), on average m / 6."""
        return 2**self.bits / 6

    def measure(self, cells: Integers) -> Integers:
        return cells

    def estimate(self, noisy: Any) -> Floats:
        return np.asarray(noisy, dtype=np.float64)


@dataclass(frozen=True)
class Haar(Measurement):
    """The total, then left less right of every node, the root first."""

    @property
    def levels(self) -> int:
        return 1 + self.bits

    @property
    def spread(self) -> float:
        """At a share p of a node its noise counts min(p, 1 - p) times: squared, 1/12 a level."""
        return self.bits / 12

    def measure(self, cells: Integers) -> Integers:
        parts, sums = [], cells
        for _ in range(self.bits):
            parts.append(sums[..., ::2] - sums[..., 1::2])
            sums = sums[..., ::2] + sums[..., 1::2]
        return np.concatenate([sums, *reversed(parts)], axis=-1)

    def estimate(self, noisy: Any) -> Floats:
        noisy = np.asarray(noisy, dtype=np.float64)
        sums = noisy[..., :1]
        for _ in range(self.bits):
            size = sums.shape[-1]
            sides = np.stack([sums, sums], axis=-1)
            difference = noisy[..., size : 2 * size]
            sides[..., 0] += difference
            sides[..., 1] -= difference
            sums = (sides / 2).reshape(*sums.shape[:-1], 2 * size)
        return sums


@dataclass(frozen=True)
class Hierarchy(Measurement):
    """Sums of runs of cells: one of level i has 2^widths[i + 1] below it; last, cells."""

    widths: tuple[int, ...]

    @property
    def levels(self) -> int:
        return len(self.widths)

    @property
    def spread(self) -> float:
        """A tied walk over the branches of each level; consistency makes it a little less."""
        return sum(2**width for width in self.widths) / 6

    def measure(self, cells: Integers) -> Integers:
        parts, sums = [cells], cells
        for width in reversed(self.widths[1:]):
            sums = sums.reshape(*sums.shape[:-1], -1, 2**width).sum(axis=-1)
            parts.append(sums)
        return np.concatenate(parts[::-1], axis=-1)

    def estimate(self, noisy: Any) -> Floats:
        """Least squares: best sums from below, then what a parent has more is shared out."""
        ends = np.cumsum([2**bits for bits in np.cumsum(self.widths)])
        levels = np.split(np.asarray(noisy, dtype=np.float64), ends[:-1], axis=-1)
        best, variance = [levels[-1]], 1.0
        for own, width in zip(levels[-2::-1], self.widths[:0:-1], strict=True):
            below = best[0].reshape(*own.shape, 2**width).sum(axis=-1)
            below_variance = variance * 2**width
            weight = below_variance / (1 + below_variance)
            best.insert(0, weight * own + (1 - weight) * below)
            variance = weight
        cells = best[0]
        for below, width in zip(best[1:], self.widths[1:], strict=True):
            children = below.reshape(*cells.shape, 2**width)
            surplus = cells - children.sum(axis=-1)
            cells = (children + surplus[..., None] / 2**width).reshape(below.shape)
        return cells


def best_hierarchy(bits: int) -> Hierarchy:
    """The levels whose Laplace noise, of scale h, makes the spread least."""

    def noise(plan: Hierarchy) -> float:
        return plan.levels**2 * plan.spread

    plans = []
    for h in range(1, max(bits, 1) + 1):
        wide, rest = divmod(bits, h)
        plans.append(Hierarchy(bits, (wide + 1,) * rest + (wide,) * (h - rest)))
    return min(plans, key=noise)


def padded_bits(m: int) -> int:
    """The bits of a histogram of m cells, with empty ones after the last."""
    return max(0, math.ceil(math.log2(m)))
