"""Balls: the l1 or l2 norm of a record is at most a declared radius."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_sparse
from privfit.domains.domain import Domain, Quantised, check_width
from privfit.domains.geometry import pair_distances
from privfit.domains.grid import (
    Grid,
    covering_exponents,
    frozen,
    has_ordinary_size,
    whole_units,
)

__all__ = ["L1Ball", "L2Ball"]


@dataclass(frozen=True, eq=False)
class _Ball(Domain):
    """Records of norm at most `radius`; longer ones are scaled down.

    Scaling is done on integers. A record whose rounded columns are already in the ball is kept; any
    other is multiplied by radius / norm, rounded so that the result is inside.

    Sums fit in 64 bits: columns are capped at 2^14 + 1 units, so the squares of 2^31 columns stay
    below 2^60. The columns of a record that is scaled keep as many leading bits as let d squares
    stay below 2^62, at most 22. With fewer bits, more columns are rounded towards zero, and the
    result is still inside.
    """

    radius: float
    n_features: int | None = None
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        radius = self.radius
        if not is_finite(radius) or radius <= 0 or not has_ordinary_size(radius):
            raise DeclarationError(
                f"radius ({radius!r}) must be a positive number; pass the declared bound"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self.radius)!r})"

    def bind(self, n_features: int) -> Domain:
        check_width(self, n_features)
        return self if self.n_features == n_features else replace(self, n_features=n_features)

    @property
    def _declared_low(self) -> Floats:
        return np.full(self.width, -float(self.radius))

    @property
    def _declared_high(self) -> Floats:
        return np.full(self.width, float(self.radius))

    @property
    def _unit(self) -> float:
        return float(np.ldexp(1.0, covering_exponents(np.array([self.radius]))[0] - self.grid.a))

    @property
    def _radius_units(self) -> int:
        return math.floor(self.radius / self._unit)

    @cached_property
    def low(self) -> Floats:
        return frozen(np.full(self.width, -self._radius_units * self._unit))

    @cached_property
    def high(self) -> Floats:
        return frozen(-self.low)

    def _stacked_radius(self, k: int) -> float:
        """The largest norm of k records side by side."""
        raise NotImplementedError

    def repeated(self, k: int, grid: Grid) -> Domain:
        return type(self)(self._stacked_radius(k), k * self.width, grid)

    def _inside(self, norm: Integers) -> NDArray[np.bool_]:
        raise NotImplementedError

    def _terms(self, whole: Integers) -> Integers:
        raise NotImplementedError

    def _root(self, norm: Integers) -> Integers:
        raise NotImplementedError

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        if is_sparse(block):
            start = np.asarray(block.indptr, dtype=np.int64)
            values = self._scaled(block.data, start, block.shape[1])
            return scipy.sparse.csr_array((values, block.indices, block.indptr), shape=block.shape)
        n, d = block.shape
        entries = np.ascontiguousarray(block).reshape(-1)
        return self._scaled(entries, np.arange(n + 1, dtype=np.int64) * d, d).reshape(n, d)

    def _scaled(self, entries: Floats, start: Integers, d: int) -> NDArray[np.int16]:
        """The entries of records start[i]:start[i+1], d columns each, scaled into the ball."""
        rows = np.repeat(np.arange(start.size - 1), np.diff(start))
        units = whole_units(entries, self._unit)
        # A column beyond the radius by itself puts the record outside; cap it against overflow.
        capped = np.minimum(np.abs(units), self._radius_units + 1).astype(np.int64)
        outside = ~self._inside(_row_sums(self._terms(capped), start))
        result = np.where(outside[rows], 0.0, units)
        if outside.any():
            many = outside[rows]
            # Leading bits of each column, relative to the record's largest: int64 holds squares.
            bits = min(22, (62 - d.bit_length()) // 2)
            top = _row_max(np.abs(entries), start)[rows[many]]
            lead = np.ldexp(np.abs(entries[many]), bits - np.frexp(top)[1]).astype(np.int64)
            kept = np.zeros(entries.size, dtype=np.int64)
            kept[many] = lead
            length = self._root(_row_sums(self._terms(kept), start))[rows[many]]
            shrunk = lead * self._radius_units // np.maximum(length, 1)
            result[many] = np.copysign(shrunk, entries[many])
        return result.astype(np.int16)

    def project(self, points: Floats) -> Floats:
        flat = self.quantise(points.reshape(-1, self.width), uniform=True)
        return np.asarray(flat, dtype=np.float64).reshape(points.shape) * self._unit

    def power_sum(self, sizes: list[int], power: int, columns: Iterable[int] | None = None) -> int:
        return int(sizes[0] ** power)

    def square_changes(self, sizes: list[int], columns: Iterable[int] | None = None) -> int:
        return 2 * self.power_sum(sizes, 4, columns)

    @property
    def l2_diameter(self) -> float:
        return float(self._whole_widths[0])

    def uniform_points(self, m: int, rng: np.random.Generator) -> Floats:
        ways = self._ways(m, rng)
        ways /= np.linalg.norm(ways, ord=self.order, axis=1, keepdims=True)
        return np.asarray(ways * float(self.high[0]) * rng.random((m, 1)) ** (1 / self.width))

    def _ways(self, m: int, rng: np.random.Generator) -> Floats:
        """(m, d) vectors whose directions are uniform on the boundary."""
        raise NotImplementedError

    def drawn_in(self, points: Floats, distance: float) -> Floats:
        return points * max(0.0, 1 - distance * self._depth / float(self.high[0]))

    @property
    def _depth(self) -> float:
        """The radius, divided by the l2 distance from the middle to the boundary."""
        raise NotImplementedError


def _row_sums(values: Integers, start: Integers) -> Integers:
    total = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])
    return np.asarray(total[start[1:]] - total[start[:-1]])


def _row_max(values: Floats, start: Integers) -> Floats:
    result = np.zeros(start.size - 1)
    filled = np.diff(start) > 0
    if filled.any():
        result[filled] = np.maximum.reduceat(values, start[:-1][filled])
    return result


class L1Ball(_Ball):
    """Records whose l1 norm is at most `radius`; longer ones are scaled down.

    Parameters
    ----------
    radius : float
        Declared bound on the l1 norm, from documentation and never from the data.
    n_features : int or None, default=None
        Number of columns. If None, it is taken from the records' shape.
    grid : Grid, default=Grid()
        Bits of records, candidates and scores.

    See Also
    --------
    L2Ball : The same for the l2 norm.
    Box : A range for each column.

    Examples
    --------
    >>> from privfit import L1Ball
    >>> L1Ball(radius=1.0, n_features=3).width
    3
    """

    order = 1
    dual_norm = "linf"

    def _stacked_radius(self, k: int) -> float:
        return k * self.radius

    def _terms(self, whole: Integers) -> Integers:
        return whole

    def _inside(self, norm: Integers) -> NDArray[np.bool_]:
        return norm <= self._radius_units

    def _root(self, norm: Integers) -> Integers:
        return norm

    def norm(self, V: ArrayLike) -> Floats:
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        return self.high[0] * np.abs(V[:, :-1]).max(axis=1, initial=0.0) + np.abs(V[:, -1])

    def pair_norms(self, P: Floats) -> Floats:
        steps = pair_distances(P[:, :-1], "chebyshev")
        return self.high[0] * steps + np.abs(P[:, -1][:, None] - P[:, -1])

    def spans(self, V: Floats) -> Floats:
        return 2 * float(self.high[0]) * np.abs(V).max(axis=1)

    def farthest(self, points: Floats, power: int) -> Floats:
        radius = float(self.high[0])
        if power == 1:
            return np.asarray(np.abs(points).sum(axis=-1) + radius)
        squares = np.square(points).sum(axis=-1)
        return np.asarray(squares + radius**2 + 2 * radius * np.abs(points).max(axis=-1))

    def farthest_apart(self, power: int) -> float:
        return float((self.high[0] - self.low[0]) ** power)

    @property
    def l1_diameter(self) -> int:
        return self._whole_widths[0]

    def whole_reach(self, norm: int) -> int:
        return int(self.whole_bounds[1][0])

    @property
    def typical_length(self) -> float:
        d = self.width
        return float(self.high[0]) * math.sqrt(2 * d / ((d + 1) * (d + 2)))

    def _ways(self, m: int, rng: np.random.Generator) -> Floats:
        return rng.laplace(size=(m, self.width))

    @property
    def _depth(self) -> float:
        return math.sqrt(self.width)

    def outline(self, i: int, j: int) -> Floats:
        return self.radius * np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])


class L2Ball(_Ball):
    """Records whose l2 norm is at most `radius`; longer ones are scaled down.

    Parameters
    ----------
    radius : float
        Declared bound on the l2 norm, from documentation and never from the data.
    n_features : int or None, default=None
        Number of columns. If None, it is taken from the records' shape.
    grid : Grid, default=Grid()
        Bits of records, candidates and scores.

    See Also
    --------
    L1Ball : The same for the l1 norm.
    Box : A range for each column.

    Examples
    --------
    >>> from privfit import L2Ball
    >>> L2Ball(radius=1.0, n_features=3).width
    3
    """

    order = 2
    dual_norm = "l2"
    exact_distances = False

    def _stacked_radius(self, k: int) -> float:
        return math.sqrt(k) * self.radius

    def _terms(self, whole: Integers) -> Integers:
        return whole * whole

    def _inside(self, norm: Integers) -> NDArray[np.bool_]:
        return norm <= self._radius_units**2

    def _root(self, norm: Integers) -> Integers:
        """The square root, rounded up: sqrt of float64 may be one off on either side."""
        root = np.sqrt(norm.astype(np.float64)).astype(np.int64) + 1
        root -= (root - 1) * (root - 1) >= norm
        root -= (root - 1) * (root - 1) >= norm
        return root

    def norm(self, V: ArrayLike) -> Floats:
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        lengths = np.sqrt(np.square(V[:, :-1]).sum(axis=1))
        return _up(self.high[0] * lengths, self.width) + np.abs(V[:, -1])

    def pair_norms(self, P: Floats) -> Floats:
        lengths = pair_distances(P[:, :-1], "euclidean")
        return _up(self.high[0] * lengths, self.width) + np.abs(P[:, -1][:, None] - P[:, -1])

    def power_sum(self, sizes: list[int], power: int, columns: Iterable[int] | None = None) -> int:
        if power == 1:  # l1 <= sqrt(d) l2
            return int(sizes[0]) * (math.isqrt(len(sizes) - 1) + 1)
        return super().power_sum(sizes, power, columns)

    def spans(self, V: Floats) -> Floats:
        return 2 * float(self.high[0]) * np.sqrt(np.square(V).sum(axis=1))

    def farthest(self, points: Floats, power: int) -> Floats:
        if power == 1:
            return super().farthest(points, power)
        lengths = np.sqrt(np.square(points).sum(axis=-1))
        return np.asarray(np.square(lengths + float(self.high[0])))

    def farthest_apart(self, power: int) -> float:
        if power == 1:
            return super().farthest_apart(power)
        return float((self.high[0] - self.low[0]) ** 2)

    @property
    def l1_diameter(self) -> int:  # l1 <= sqrt(d) l2
        return math.isqrt(self.width * self._whole_widths[0] ** 2) + 1

    def whole_reach(self, norm: int) -> int:
        radius = int(self.whole_bounds[1][0])
        return radius if norm == 2 else math.isqrt(self.width * radius**2)  # l1 <= sqrt(d) l2

    @property
    def typical_length(self) -> float:
        return float(self.high[0]) * math.sqrt(self.width / (self.width + 2))

    def _ways(self, m: int, rng: np.random.Generator) -> Floats:
        return rng.normal(size=(m, self.width))

    @property
    def _depth(self) -> float:
        return 1.0

    def outline(self, i: int, j: int) -> Floats:
        angle = np.linspace(0, 2 * math.pi, 240, endpoint=False)
        return self.radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _up(values: Floats, terms: int) -> Floats:
    """A factor above any rounding error of a sum of that many terms and its square root."""
    return values * (1 + (terms + 8) * np.finfo(np.float64).eps)
