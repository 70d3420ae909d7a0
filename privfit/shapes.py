"""Shapes: symmetric convex bodies, the norms whose unit balls they are, uniform points of them.

Noise of density proportional to exp(-beta K(b)), with K the norm whose unit ball is a body, is
b = r U with r ~ Gamma(p + 1, 1 / beta) and U uniform in the body, p its dimension: K(U) has the
distribution function x^p, which turns r into K(b) ~ Gamma(p, 1 / beta), and U / K(U) is independent
of it. The smaller the body, the less the noise.

==============  =========================================  =====================================
shape           its norm                                   a uniform point
==============  =========================================  =====================================
`Cube`          largest entry                              uniform coordinates
`Ball`          l2                                         Gaussian direction, radius U^(1/p)
`Cross`         l1                                         exponential gaps with random signs
`Contrasts`     sum of distances to the median             the same gaps, half of each sign
`Product`       the largest of its factors' norms          one point of each factor
==============  =========================================  =====================================

**Contrasts.** A one-hot vector of k levels without its mean is e_j - 1/k. The hull of these and
their negatives is the l1 ball of R^k, projected along the vector of ones: its norm is the least l1
norm of v + c 1 over c, that is the sum of abs(v_j - m) with m a median of v. Cut the body by which
coordinate is the (lower) median and which are below it: in each cell v - m has a zero, and k - 1
other entries of fixed signs whose sizes add up to at most 1. All cells are simplices of equal
volume, so a uniform point is a uniform cell (a permutation) and a uniform point of a simplex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ball", "Contrasts", "Cross", "Cube", "Product", "Shape", "contrasts"]

Floats: TypeAlias = NDArray[np.float64]


class Shape:
    """What all bodies share."""

    @property
    def size(self) -> int:
        """p: the dimension."""
        raise NotImplementedError

    @property
    def mean_square(self) -> float:
        """The mean of l2(U)^2 over uniform points U."""
        raise NotImplementedError

    def norm(self, b: Floats) -> float:
        """The factor by which the body must grow to reach b."""
        raise NotImplementedError

    def uniform(self, generator: np.random.Generator) -> Floats:
        """(size,): a uniform point."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Round(Shape):
    """Bodies with one radius, of coordinates that are all alike."""

    count: int
    radius: float = 1.0

    @property
    def size(self) -> int:
        return self.count


class Cube(_Round):
    """Coordinates of at most the radius each."""

    @property
    def mean_square(self) -> float:
        return self.count * self.radius**2 / 3

    def norm(self, b: Floats) -> float:
        return float(np.abs(b).max(initial=0.0)) / self.radius

    def uniform(self, generator: np.random.Generator) -> Floats:
        return generator.uniform(-self.radius, self.radius, self.count)


class Ball(_Round):
    """The l2 ball."""

    @property
    def mean_square(self) -> float:
        return self.radius**2 * self.count / (self.count + 2)

    def norm(self, b: Floats) -> float:
        return float(np.linalg.norm(b)) / self.radius

    def uniform(self, generator: np.random.Generator) -> Floats:
        direction = generator.standard_normal(self.count)
        length = self.radius * generator.random() ** (1 / self.count)
        return np.asarray(length * direction / np.linalg.norm(direction))


class Cross(_Round):
    """The l1 ball, a cross-polytope."""

    @property
    def mean_square(self) -> float:
        return self.radius**2 * 2 * self.count / ((self.count + 1) * (self.count + 2))

    def norm(self, b: Floats) -> float:
        return float(np.abs(b).sum()) / self.radius

    def uniform(self, generator: np.random.Generator) -> Floats:
        signs = 2.0 * generator.integers(2, size=self.count) - 1
        return np.asarray(self.radius * signs * _simplex(self.count, generator))


@dataclass(frozen=True)
class Contrasts(Shape):
    """The hull of +-radius (e_j - 1/levels), in the coordinates of `contrasts`."""

    levels: int
    radius: float = 1.0

    @property
    def size(self) -> int:
        return self.levels - 1

    @property
    def mean_square(self) -> float:
        """Sizes of a simplex have the moments 2 / (k (k+1)), and 1 / (k (k+1)) in pairs."""
        k = self.levels
        square_of_sum = (k - 1 + (1 - k % 2)) / (k * (k + 1))
        return self.radius**2 * (2 * (k - 1) / (k * (k + 1)) - square_of_sum / k)

    def norm(self, b: Floats) -> float:
        v = b @ contrasts(self.levels)
        return float(np.abs(v - np.median(v)).sum()) / self.radius

    def uniform(self, generator: np.random.Generator) -> Floats:
        signs = np.ones(self.size)
        signs[: self.size // 2] = -1
        v = np.append(signs * _simplex(self.size, generator), 0.0)[
            generator.permutation(self.levels)
        ]
        return np.asarray(self.radius * (contrasts(self.levels) @ v))


@dataclass(frozen=True)
class Product(Shape):
    """All points whose parts lie in the factors."""

    factors: tuple[Shape, ...]

    def __repr__(self) -> str:
        return f"Product(<{len(self.factors)} factors of {self.size} dimensions>)"

    @property
    def size(self) -> int:
        return sum(factor.size for factor in self.factors)

    @property
    def mean_square(self) -> float:
        return math.fsum(factor.mean_square for factor in self.factors)

    def norm(self, b: Floats) -> float:
        ends = np.cumsum([factor.size for factor in self.factors])
        parts = np.split(b, ends[:-1])
        return max(factor.norm(part) for factor, part in zip(self.factors, parts, strict=True))

    def uniform(self, generator: np.random.Generator) -> Floats:
        return np.concatenate([factor.uniform(generator) for factor in self.factors])


def _simplex(count: int, generator: np.random.Generator) -> Floats:
    """(count,): uniform among non-negative sizes that add up to at most 1."""
    gaps = generator.standard_exponential(count + 1)
    return np.asarray(gaps[:-1] / gaps.sum())


@lru_cache(maxsize=64)
def contrasts(levels: int) -> Any:
    """(levels - 1, levels): orthonormal rows, each orthogonal to the vector of ones.

    All but the first row of the reflection that takes the first axis to the direction of the ones.
    """
    mirror = np.full(levels, -1 / math.sqrt(levels))
    mirror[0] += 1
    reflection = np.eye(levels)
    if levels > 1:
        reflection -= 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    rows = reflection[1:]
    rows.setflags(write=False)
    return rows
