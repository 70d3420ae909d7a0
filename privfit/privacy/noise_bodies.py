"""Shapes: symmetric convex bodies, the norms whose unit balls they are, uniform points of them.

Noise of density proportional to exp(-K(b) / scale), with K the norm whose unit ball is a body, is
b = scale r U with r ~ Gamma(p + 1) and U uniform in the body, p its dimension: K(U) has the
distribution function x^p, which turns r into K(b) ~ Gamma(p, scale), and U / K(U) is independent of
it. The smaller the body, the less the noise.

==============  =========================================  =====================================
shape           its norm                                   a uniform point
==============  =========================================  =====================================
`Cube`          largest entry                              uniform coordinates
`Ball`          l2                                         direction of a normal vector, length
                                                           the largest of p uniform numbers
`Cross`         l1                                         gaps of sorted uniform numbers, with
                                                           random signs
`Contrasts`     sum of distances to the median             the same gaps, half of each sign
`Product`       the largest of its factors' norms          one point of each factor
==============  =========================================  =====================================

**Exact draws.** A point, and the noise, is a real vector of the exact law, of which one asks for as
many bits as are needed (`lazy`): `point(source)` and `noise(...)` return functions of a number of
bits that give the vector and a bound on its error in l2 norm. The bound holds for every draw:
where r is large, more bits of U are taken.

**Contrasts.** A one-hot vector of k levels without its mean is e_j - 1/k. The hull of these and
their negatives is the l1 ball of R^k, projected along the vector of ones: its norm is the least l1
norm of v + c 1 over c, that is the sum of abs(v_j - m) with m a median of v. Cut the body by which
coordinate is the (lower) median and which are below it: in each cell v - m has a zero, and k - 1
other entries of fixed signs whose sizes add up to at most 1. All cells are simplices of equal
volume, so a uniform point is a uniform cell (a permutation) and a uniform point of a simplex. All
this is so in the coordinates of any k - 1 rows that are orthogonal to the vector of ones, which
those of `contrasts` are exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels.random import BitSource
from privfit._kernels.select import uniform_distinct
from privfit.base.dyadic import Dyadic, FixedMatrix, Whole, integers
from privfit.base.typing import Floats
from privfit.privacy.lazy import Exponentials, Normals, Uniforms

__all__ = ["Ball", "Contrasts", "Cross", "Cube", "Product", "Shape", "contrasts", "noise"]

Draw: TypeAlias = Callable[[int], tuple[Dyadic, float]]  # bits -> a vector, and its error in l2

CONTRAST_BITS = 47  # contrasts are multiples of 2^-47
ABOVE = 1 + 2.0**-20  # above the rounding of error bounds


def noise(shape: Shape, scale: float, source: BitSource) -> Draw:
    """A vector of density proportional to exp(-K(b) / scale), as many bits of it as one asks for.

    Of r, the sum of p + 1 exponential numbers, each is off by 2^-bits at most, and of U as much as
    adds no more than that to b.
    """
    lengths, point = Exponentials(source, shape.size + 1), shape.point(source)

    def draw(bits: int) -> tuple[Dyadic, float]:
        r = int(lengths.upto(bits).sum())
        more = max(0, r.bit_length() - bits)  # of the whole part of r
        vector, error = point(bits + more)
        product = Dyadic(vector.whole * r, vector.bits + bits).times(scale)
        of_lengths = math.ldexp(shape.size + 1, -bits) * shape.longest
        return product, scale * (of_lengths + math.ldexp(error, more)) * ABOVE

    return draw


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

    @property
    def longest(self) -> float:
        """The largest l2 norm of a point."""
        raise NotImplementedError

    def norm(self, b: Floats) -> float:
        """The factor by which the body must grow to reach b."""
        raise NotImplementedError

    def point(self, source: BitSource) -> Draw:
        """A uniform point."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Round(Shape):
    """Bodies with one radius, of coordinates that are all alike."""

    count: int
    radius: float = 1.0

    @property
    def size(self) -> int:
        return self.count

    @property
    def longest(self) -> float:
        return self.radius

    def _error(self, units: float, bits: int) -> float:
        """Of vectors with an error of so many units in each coordinate."""
        return math.ldexp(units * math.sqrt(self.count) * self.radius, -bits) * ABOVE


class Cube(_Round):
    """Coordinates of at most the radius each."""

    @property
    def mean_square(self) -> float:
        return self.count * self.radius**2 / 3

    @property
    def longest(self) -> float:
        return self.radius * math.sqrt(self.count) * ABOVE

    def norm(self, b: Floats) -> float:
        return float(np.abs(b).max(initial=0.0)) / self.radius

    def point(self, source: BitSource) -> Draw:
        uniforms = Uniforms(source, self.count)

        def draw(bits: int) -> tuple[Dyadic, float]:
            sides = 2 * uniforms.upto(bits) + 1 - (1 << bits)
            return Dyadic(sides, bits).times(self.radius), self._error(1, bits)

        return draw


class Ball(_Round):
    """The l2 ball."""

    @property
    def mean_square(self) -> float:
        return self.radius**2 * self.count / (self.count + 2)

    def norm(self, b: Floats) -> float:
        return float(np.linalg.norm(b)) / self.radius

    def point(self, source: BitSource) -> Draw:
        """The largest of k uniform numbers has the distribution function x^k, as a length should.

        Normal numbers z are taken to as many bits as make l2(z) at least 2^(bits + 2) sqrt(k)
        units; an error of a unit in each then turns the direction by 2^-bits at most.
        """
        normals, uniforms = Normals(source, self.count), Uniforms(source, self.count)
        enough = 2 + math.ceil(math.log2(self.count) / 2)

        def draw(bits: int) -> tuple[Dyadic, float]:
            fine = bits + enough + 2
            z = normals.upto(fine)
            while math.isqrt(int((z * z).sum())) >> (bits + enough) == 0:
                fine += 64
                z = normals.upto(fine)
            length = int(uniforms.upto(bits).max())
            whole = z * length // math.isqrt(int((z * z).sum()))
            return Dyadic(whole, bits).times(self.radius), self._error(4, bits)

        return draw


class Cross(_Round):
    """The l1 ball, a cross-polytope."""

    @property
    def mean_square(self) -> float:
        return self.radius**2 * 2 * self.count / ((self.count + 1) * (self.count + 2))

    def norm(self, b: Floats) -> float:
        return float(np.abs(b).sum()) / self.radius

    def point(self, source: BitSource) -> Draw:
        signs = integers([1 - 2 * source.bits(1) for _ in range(self.count)])
        uniforms = Uniforms(source, self.count)

        def draw(bits: int) -> tuple[Dyadic, float]:
            sizes = signs * _gaps(uniforms, bits)
            return Dyadic(sizes, bits).times(self.radius), self._error(1, bits)

        return draw


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

    @property
    def longest(self) -> float:
        return self.radius * ABOVE

    def norm(self, b: Floats) -> float:
        v = b @ contrasts(self.levels)
        return float(np.abs(v - np.median(v)).sum()) / self.radius

    def point(self, source: BitSource) -> Draw:
        signs = integers([-1] * (self.size // 2) + [1] * (self.size - self.size // 2))
        order = uniform_distinct(self.levels, self.levels, source)
        uniforms = Uniforms(source, self.size)
        rows = _fixed_contrasts(self.levels)

        def draw(bits: int) -> tuple[Dyadic, float]:
            v = np.append(signs * _gaps(uniforms, bits), integers([0]))[order]
            error = math.ldexp(self.radius * math.sqrt(self.size), -bits) * ABOVE
            return (rows @ Dyadic(v, bits)).times(self.radius), error

        return draw


@dataclass(frozen=True)
class Product(Shape):
    """All points whose parts lie in the factors."""

    factors: tuple[Shape, ...]

    def __repr__(self) -> str:
        return f"Product(<{len(self.factors)} factors of {self.size} dimensions>)"

    @cached_property
    def size(self) -> int:
        return sum(factor.size for factor in self.factors)

    @property
    def mean_square(self) -> float:
        return math.fsum(factor.mean_square for factor in self.factors)

    @property
    def longest(self) -> float:
        return math.hypot(*(factor.longest for factor in self.factors)) * ABOVE

    def norm(self, b: Floats) -> float:
        ends = np.cumsum([factor.size for factor in self.factors])
        parts = np.split(b, ends[:-1])
        return max(factor.norm(part) for factor, part in zip(self.factors, parts, strict=True))

    def point(self, source: BitSource) -> Draw:
        points = [factor.point(source) for factor in self.factors if factor.size]

        def draw(bits: int) -> tuple[Dyadic, float]:
            parts, errors = zip(*(point(bits) for point in points), strict=True)
            common = max(part.bits for part in parts)
            whole = np.concatenate([part.at(common) for part in parts])
            return Dyadic(whole, common), math.hypot(*errors) * ABOVE

        return draw


@lru_cache(maxsize=64)
def _fixed_contrasts(levels: int) -> FixedMatrix:
    return FixedMatrix(scipy.sparse.csr_array(contrasts(levels)), CONTRAST_BITS)


def _gaps(uniforms: Uniforms, bits: int) -> Whole:
    """The gaps between 0 and sorted uniform numbers, uniform in a simplex; each off by one unit."""
    return np.diff(np.sort(uniforms.upto(bits)), prepend=0)


@lru_cache(maxsize=64)
def contrasts(levels: int) -> Floats:
    """(levels - 1, levels): rows that are orthogonal to the vector of ones, exactly.

    All but the first row of the reflection that takes the first axis to the direction of the ones,
    rounded to multiples of 2^-47 so that rows add up to 0; they are orthonormal to 1e-12.
    """
    mirror = np.full(levels, -1 / math.sqrt(levels))
    mirror[0] += 1
    reflection = np.eye(levels)
    if levels > 1:
        reflection -= 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    whole = np.rint(np.ldexp(reflection[1:], CONTRAST_BITS)).astype(np.int64)
    whole[np.arange(levels - 1), np.arange(1, levels)] -= whole.sum(axis=1)
    rows = np.ldexp(whole, -CONTRAST_BITS)
    rows.setflags(write=False)
    return rows
