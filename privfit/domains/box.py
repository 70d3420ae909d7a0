"""Record domains: what a record may be, declared in public before any record is read.

A domain clips or projects each record by itself, rounds it towards zero onto a grid, and knows its
support norm N(v) = sup of abs(<x~, v>) over its records, where x~ = (x, 1). Privacy rests on the
declared bounds alone: a bound read off the data would itself be a release.

A grid has `a` bits for records, `b` for candidates and `c` for scores. Column j of a record is a
whole number of units 2^(e_j - a), where 2^e_j is the power of two that covers its declared bounds;
the weight of column j is a whole number of units 2^(-e_j - b). So every product is a whole number
of units 2^-(a+b), and every margin is exact.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import threads
from privfit._kernels.linear import group_pair_norms
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_sparse, is_whole
from privfit.domains.frames import columns_of
from privfit.domains.reading import LevelReader, NumberReader, canonical, positions, through_float32

__all__ = ["Box", "Categorical", "Domain", "Grid", "L1Ball", "L2Ball", "Numeric", "Schema"]

Quantised: TypeAlias = "NDArray[np.int16] | scipy.sparse.csr_array"


@dataclass(frozen=True)
class Grid:
    """Bits of records (a), candidates (b) and scores (c).

    The defaults keep margins up to 511 within 32 bits, where the kernels are fastest, and cost at
    most one part in 4096 of a column's range, 0.001 of a weight and 0.0003 of a score.

    >>> from privfit import Box
    >>> from privfit.domains import Grid
    >>> Box(-1, 1, n_features=2, grid=Grid(a=10)).grid.a
    10
    """

    a: int = 12
    b: int = 10
    c: int = 12

    def __post_init__(self) -> None:
        for name, low, high in (("a", 1, 14), ("b", 0, 16), ("c", 0, 14)):
            bits = getattr(self, name)
            if not is_whole(bits) or not low <= bits <= high:
                raise ValueError(
                    f"grid bits {name} ({bits!r}) must be a whole number from {low} to {high}; "
                    "pass Grid(a=12, b=10, c=12) or leave it out"
                )
        if self.c > self.a + self.b - 8:
            raise ValueError(
                f"grid bits c ({self.c}) must be at most a + b - 8 ({self.a + self.b - 8}), so "
                "that losses round once; pass a smaller c or a larger b"
            )


class Domain:
    """What all domains share: a grid, columns with a scale, snapping and sampling.

    >>> from privfit import Box, Domain
    >>> isinstance(Box(0, 1), Domain)
    True
    """

    grid: Grid
    n_features: int | None

    def __eq__(self, other: object) -> bool:
        """Whether both declare the same."""
        return self._key == other._key if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """What is declared, in order, so that it can be compared and hashed."""
        return tuple(_hashable(value) for value in self._declared().values())

    def _declared(self) -> dict[str, Any]:
        """The arguments that make this domain."""
        return {one.name: getattr(self, one.name) for one in _arguments(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """What is declared, as JSON has it; `Domain.from_dict` reads it back."""
        declared = {name: _as_plain(value) for name, value in self._declared().items()}
        return {"domain": type(self).__name__, **declared}

    @staticmethod
    def from_dict(declared: Mapping[str, Any]) -> Domain:
        """The domain that `to_dict` told of.

        >>> from privfit import Box, Domain
        >>> Box(0, 1, 3).to_dict()["upper"]
        1.0
        >>> Domain.from_dict(Box(0, 1, 3).to_dict()) == Box(0, 1, 3)
        True
        """
        return _from_plain(declared)

    def bind(self, n_features: int) -> Domain:
        """This domain for records of `n_features` columns; an error if it has another number."""
        raise NotImplementedError

    @cached_property
    def low(self) -> Floats:
        """(d,) lower bounds that every rounded record keeps."""
        raise NotImplementedError

    @cached_property
    def high(self) -> Floats:
        """(d,) upper bounds that every rounded record keeps."""
        raise NotImplementedError

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        """Clip or project records, each by itself, and round them towards zero: whole units.

        `uniform` gives every column the unit of the widest, as distances need.
        """
        raise NotImplementedError

    def norm(self, V: ArrayLike) -> Floats:
        """(m,) support norms N(v) of vectors (m, d + 1), the intercept last. Exact on the grid."""
        raise NotImplementedError

    def pair_norms(self, P: Floats) -> Floats:
        """(m, m) support norms N(w - w') of all pairs of candidates."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """The number of columns of an encoded record."""
        if self.n_features is None:
            raise ValueError(
                f"{self!r} does not know its number of columns; pass n_features, or bounds per "
                "column"
            )
        return self.n_features

    @property
    def origin(self) -> Floats:
        """(d,) what is subtracted from a record before it is put on the grid: see `Box.centred`."""
        return np.zeros(self.width)

    def centred(self) -> Domain:
        """The domain on a finer grid where its own is far from its records; here, itself."""
        return self

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """(d,) e_j: the power of two that covers column j."""
        bounds = np.maximum(np.abs(self._declared_low), np.abs(self._declared_high))
        return _frozen(_exponents(bounds))

    @property
    def _declared_low(self) -> Floats:
        raise NotImplementedError

    @property
    def _declared_high(self) -> Floats:
        raise NotImplementedError

    def record_units(self, uniform: bool = False) -> Floats:
        """(d,) what one record integer is worth in each column."""
        e = self.exponents
        return np.ldexp(1.0, (np.full_like(e, e.max()) if uniform else e) - self.grid.a)

    def weight_units(self) -> Floats:
        """(d + 1,) what one candidate integer is worth in each coordinate, the intercept last."""
        return self._weight_units

    @cached_property
    def _weight_units(self) -> Floats:
        return _frozen(np.ldexp(1.0, -np.append(self.exponents, 0) - self.grid.b))

    def snap(self, P: ArrayLike) -> Floats:
        """Candidates of a linear model (m, d + 1), rounded to the nearest point of the grid."""
        P = np.asarray(P, dtype=np.float64)
        if P.ndim == 0 or P.shape[-1] != self.width + 1:
            raise ValueError(
                f"P (shape {P.shape}) must have {self.width + 1} columns, the intercept last; pass "
                "an array (m, d + 1)"
            )
        if not np.isfinite(P).all():
            raise ValueError("P must be finite; pass candidates without NaN or infinity")
        units = self.weight_units()
        return np.rint(P / units) * units

    def candidates(self, m: int, rng: np.random.Generator, radius: float = 1.0) -> Floats:
        """(m, d + 1) linear candidates on the grid; each weight moves z by up to `radius`."""
        scale = np.append(np.ldexp(1.0, -self.exponents), 1.0)
        return self.snap(rng.uniform(-radius, radius, (m, self.width + 1)) * scale)

    def points(self, m: int, rng: np.random.Generator) -> Floats:
        """(m, d) points on the record grid, drawn from the domain's box and projected to it."""
        raw = rng.uniform(self.low, self.high, (m, self.width))
        quantised = self.quantise(raw, uniform=True)
        return np.asarray(quantised, dtype=np.float64) * self.record_units(uniform=True)


def _pair_distances(P: Floats, metric: str) -> Floats:
    distance = scipy.spatial.distance
    return np.asarray(distance.squareform(distance.pdist(P, metric)))


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """The values, safe to keep and hand out."""
    values = np.array(values)
    values.setflags(write=False)
    return values


def _exponents(bounds: Floats) -> NDArray[np.int64]:
    """The least e with 2^e >= bound; 0 for a column that is always 0."""
    mantissa, e = np.frexp(bounds)
    return np.where(bounds == 0, 0, np.where(mantissa == 0.5, e - 1, e)).astype(np.int64)


def _whole_units(values: Floats, units: Floats | float) -> Floats:
    """Values in units, rounded towards zero: rounding to nearest would leave half of a ball."""
    with np.errstate(over="ignore"):  # infinity is clipped like any value beyond the bounds
        return np.asarray(np.trunc(values / units))


def _has_ordinary_size(value: float) -> bool:
    """Whether scaling by grid units neither overflows nor underflows."""
    return value == 0 or 1e-100 <= abs(value) <= 1e100


def _check_width(domain: Domain, n_features: int) -> None:
    if domain.n_features is not None and domain.n_features != n_features:
        raise ValueError(
            f"X has {n_features} columns but {type(domain).__name__} declares "
            f"{domain.n_features}; pass a domain for the columns of X"
        )


# ------------------------------------------------------------------------------------------ boxes


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """Each column j lies in [low_j, high_j]; scalars mean the same bounds for every column.

    Parameters
    ----------
    lower, upper
        Declared bounds, from documentation and never from the data.
    n_features
        Number of columns, where scalar bounds leave it open.

    Examples
    --------
    >>> from privfit import Box
    >>> Box([0, 17], [1, 90]).width
    2
    """

    lower: ArrayLike
    upper: ArrayLike
    n_features: int | None = None
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        lower, upper = (np.asarray(v, dtype=np.float64) for v in (self.lower, self.upper))
        if lower.ndim > 1 or upper.ndim > 1:
            raise ValueError(
                "Box bounds must be numbers or one row of numbers; pass one per column"
            )
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise ValueError("Box bounds must be finite; pass the documented range of each column")
        if not all(_has_ordinary_size(bound) for bound in (*lower.flat, *upper.flat)):
            raise ValueError(
                "Box bounds must be 0 or of a size from 1e-100 to 1e100; pass columns in fit units"
            )
        lower, upper = (np.array(bound) for bound in np.broadcast_arrays(lower, upper))
        if (lower > upper).any():
            raise ValueError(
                "Box lower bounds must not exceed the upper ones; pass Box(lower, upper)"
            )
        if lower.ndim == 1:
            if self.n_features not in (None, lower.shape[0]):
                raise ValueError(
                    f"n_features ({self.n_features}) must be the number of bounds "
                    f"({lower.shape[0]}); leave it out"
                )
            object.__setattr__(self, "n_features", lower.shape[0])
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def __repr__(self) -> str:
        if np.ndim(self.lower) == 0:
            return f"Box({self.lower!s}, {self.upper!s})"
        return f"Box(<{self.n_features} columns>)"

    def bind(self, n_features: int) -> Box:
        _check_width(self, n_features)
        return self if self.n_features == n_features else replace(self, n_features=n_features)

    @property
    def _declared_low(self) -> Floats:
        return np.broadcast_to(np.asarray(self.lower, dtype=np.float64), (self.width,))

    @property
    def _declared_high(self) -> Floats:
        return np.broadcast_to(np.asarray(self.upper, dtype=np.float64), (self.width,))

    def _integer_bounds(self, uniform: bool) -> tuple[Floats, Floats]:
        units = self.record_units(uniform)
        low, high = np.ceil(self._declared_low / units), np.floor(self._declared_high / units)
        if (low > high).any():
            raise ValueError(
                f"Box is narrower than its grid in column {int(np.argmax(low > high))}; pass "
                "Grid(a=14), or shift the column towards zero"
            )
        return low, high

    @cached_property
    def low(self) -> Floats:
        return _frozen(self._integer_bounds(False)[0] * self.record_units())

    @cached_property
    def high(self) -> Floats:
        return _frozen(self._integer_bounds(False)[1] * self.record_units())

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        low, high = self._integer_bounds(uniform)
        units = self.record_units(uniform)
        if is_sparse(block):
            if ((low > 0) | (high < 0)).any():
                raise ValueError(
                    "sparse X must have 0 inside the bounds of every column; pass a dense array or "
                    "a Box that contains 0"
                )
            j = block.indices
            data = np.clip(_whole_units(block.data, units[j]), low[j], high[j])
            return scipy.sparse.csr_array(
                (data.astype(np.int16), j, block.indptr), shape=block.shape
            )
        return np.clip(_whole_units(block, units), low, high).astype(np.int16)

    def centred(self) -> Box:
        """The same box with columns taken from their middle where 0 is outside of their bounds.

        A column of [1000, 1001] has four steps of 1024 / 4096 as it is, and 8192 around 1000.5.
        """
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        far = (lower > 0) | (upper < 0)
        if not far.any():
            return self
        middle = np.where(far, (lower + upper) / 2, 0.0)
        return _CentredBox(lower - middle, upper - middle, self.n_features, self.grid, middle)

    # <x~, v> over a box: a centre and a half width.
    def _parts(self, P: Floats) -> tuple[Floats, Floats]:
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        return P[:, :-1] @ middle + P[:, -1], half

    def norm(self, V: ArrayLike) -> Floats:
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        middle, half = self._parts(V)
        return np.abs(middle) + np.abs(V[:, :-1]) @ half

    def pair_norms(self, P: Floats) -> Floats:
        middle, half = self._parts(P)
        return np.abs(middle[:, None] - middle) + _pair_distances(P[:, :-1] * half, "cityblock")


@dataclass(frozen=True, eq=False, repr=False)
class _CentredBox(Box):
    """What a box's records are less a declared point; all geometry is that of the differences."""

    middle: ArrayLike = 0.0

    @property
    def origin(self) -> Floats:
        return np.broadcast_to(np.asarray(self.middle, dtype=np.float64), (self.width,))

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        if is_sparse(block):
            raise ValueError(
                "sparse X must have 0 inside the bounds of every column; pass a dense array or a "
                "Box that contains 0"
            )
        return super().quantise(block - self.origin, uniform)


# ------------------------------------------------------------------------------------------ balls


@dataclass(frozen=True, eq=False)
class _Ball(Domain):
    """Records of norm at most `radius`; longer ones are scaled down.

    Scaling is done on integers. A record whose rounded columns already lie in the ball is kept;
    any other is multiplied by radius / norm, rounded so that it ends inside.

    Sums fit in 64 bits: columns are capped at 2^14 + 1 units, so squares of 2^31 columns stay below
    2^60; of a record that is scaled, columns keep as many leading bits as let d squares stay below
    2^62, at most 22. Fewer bits round more columns towards zero, and the record still ends inside.
    """

    radius: float
    n_features: int | None = None
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        radius = self.radius
        if not is_finite(radius) or radius <= 0 or not _has_ordinary_size(radius):
            raise ValueError(
                f"radius ({radius!r}) must be a positive number; pass the declared bound"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self.radius)!r})"

    def bind(self, n_features: int) -> Domain:
        _check_width(self, n_features)
        return self if self.n_features == n_features else replace(self, n_features=n_features)

    @property
    def _declared_low(self) -> Floats:
        return np.full(self.width, -float(self.radius))

    @property
    def _declared_high(self) -> Floats:
        return np.full(self.width, float(self.radius))

    @property
    def _unit(self) -> float:
        return float(np.ldexp(1.0, _exponents(np.array([self.radius]))[0] - self.grid.a))

    @property
    def _radius_units(self) -> int:
        return math.floor(self.radius / self._unit)

    @cached_property
    def low(self) -> Floats:
        return _frozen(np.full(self.width, -self._radius_units * self._unit))

    @cached_property
    def high(self) -> Floats:
        return _frozen(-self.low)

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
        units = _whole_units(entries, self._unit)
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
    """Records with l1 norm at most `radius`; longer ones are scaled down.

    >>> from privfit import L1Ball
    >>> L1Ball(radius=1.0, n_features=3).width
    3
    """

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
        steps = _pair_distances(P[:, :-1], "chebyshev")
        return self.high[0] * steps + np.abs(P[:, -1][:, None] - P[:, -1])


class L2Ball(_Ball):
    """Records with l2 norm at most `radius`; longer ones are scaled down.

    >>> from privfit import L2Ball
    >>> L2Ball(radius=1.0, n_features=3).width
    3
    """

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
        lengths = _pair_distances(P[:, :-1], "euclidean")
        return _up(self.high[0] * lengths, self.width) + np.abs(P[:, -1][:, None] - P[:, -1])


def _up(values: Floats, terms: int) -> Floats:
    """Above any rounding of a sum of that many terms and its square root."""
    return values * (1 + (terms + 8) * np.finfo(np.float64).eps)


# ---------------------------------------------------------------------------------------- schemas


@dataclass(frozen=True)
class Numeric:
    """A numeric column with a declared range; coded as [0, 1], or one-hot over bins.

    `bins` is a number of equal bins, or declared cut points: ``bins=[25, 35, 50]`` makes four. Bins
    let a linear model bend, and tame columns with long tails. `fill` is the declared stand-in for
    missing values and for cells that are no numbers; without it a table that has some is refused.
    Numbers are rounded to float32, so that they are the same in every kind of table.

    >>> from privfit import Numeric, Schema
    >>> Schema({"age": Numeric(17, 90), "gain": Numeric(0, 99_999, bins=[1, 1000])}).width
    4
    """

    low: float
    high: float
    bins: int | Sequence[float] = 0
    fill: float | None = None

    def __post_init__(self) -> None:
        if not (
            is_finite(self.low)
            and is_finite(self.high)
            and self.low < self.high
            and all(map(_has_ordinary_size, (self.low, self.high, self.high - self.low)))
        ):
            raise ValueError(
                f"Numeric range ({self.low!r}, {self.high!r}) must be finite and rising; pass the "
                "documented Numeric(low, high)"
            )
        if not _float32_is_fine(self.low, self.high):
            raise ValueError(
                f"Numeric range ({self.low!r}, {self.high!r}) must be at least 4096 steps of "
                "float32 wide, to which numbers are rounded; subtract an offset first, or pass the "
                "column in units of ordinary size"
            )
        if isinstance(self.bins, np.ndarray):
            object.__setattr__(self, "bins", self.bins.tolist())
        if isinstance(self.bins, Sequence) and not isinstance(self.bins, str):
            cuts = (self.low, *self.bins, self.high)
            if not all(map(is_finite, cuts)) or any(a >= b for a, b in pairwise(cuts)):
                raise ValueError(
                    f"bins ({self.bins!r}) must rise between low and high; pass cut points such as "
                    "bins=[25, 35, 50]"
                )
            object.__setattr__(self, "bins", tuple(float(cut) for cut in self.bins))
        elif not is_whole(self.bins) or self.bins < 0:
            raise ValueError(f"bins ({self.bins!r}) must be 0 or a positive number; pass bins=8")
        if self.fill is not None and not is_finite(self.fill):
            raise ValueError(
                "fill must be a finite number; pass a declared value such as the middle"
            )

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.bins) + 1 if isinstance(self.bins, Sequence) else max(self.bins, 1)

    def share(self, numbers: Floats) -> Floats:
        """(x - low) / (high - low) of numbers that are float32, clipped to [0, 1]."""
        low, high = through_float32([self.low, self.high])
        return (np.clip(numbers, low, high) - low) / (high - low)

    def place(self, share: Floats) -> Integers:
        """The bin of each share of the range, in [0, 1]."""
        if isinstance(self.bins, Sequence):
            cuts = self.share(through_float32(self.bins))
            return np.searchsorted(cuts, share, side="right")
        return np.minimum(share * self.bins, self.bins - 1).astype(np.int64)


def _float32_is_fine(low: float, high: float) -> bool:
    """Whether steps of float32 are at most 1/4096 of the range: those of the grid are no finer."""
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(np.float32(max(abs(low), abs(high))))
    return bool(4096 * float(step) <= high - low)  # false of infinity, too


@dataclass(frozen=True)
class Categorical:
    """A categorical column with declared values, coded one-hot.

    With `other` a last level takes unknown and missing values; without it a table that has some is
    refused. A value matches in whatever type it arrives: 1, 1.0, True, "1" and "1.0" are one
    category, and so are a date and its ISO text, which is how it is kept.

    >>> from privfit import Categorical, Schema
    >>> Schema({"sex": Categorical(["Female", "Male"], other=True)}).width
    3
    """

    values: Sequence[Any]
    other: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(_as_level, self.values)))
        if not self.values and not self.other:
            raise ValueError("Categorical needs at least one value; pass the documented values")
        assert len(self.positions) == len(self.values)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The canonical text of each value, and its level."""
        return positions(self.values, "Categorical values")

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.values) + self.other


def _as_level(value: Any) -> Any:
    """A declared value; what JSON has no form for, such as a date, is its canonical text."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    text = canonical(value) if not isinstance(value, str | bool | int | float) else value
    return text if isinstance(text, str) else value


@dataclass(frozen=True, eq=False)
class Schema(Domain):
    """Named columns with declared ranges or values, coded as [0, 1] and one-hot groups.

    ``Schema({"age": Numeric(17, 90), "sex": Categorical(["Female", "Male"], other=True)})``
    reads a DataFrame, an Arrow table or a dict of columns by name, and an array or a list of
    records by position. Each cell is read by itself (docs/reading.md).

    Parameters
    ----------
    columns
        A name and a declared range or values for each column.
    grid
        Bits of records, candidates and scores.
    missing
        Texts that stand for a missing value, besides None, NaN, NaT and pandas.NA. A category that
        is declared is never missing.

    Examples
    --------
    >>> from privfit import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(17, 90), "sex": Categorical(["Female", "Male"])})
    >>> schema.encode({"age": [17, 90], "sex": ["Male", "Female"]}).shape
    (2, 3)
    """

    columns: Mapping[str, Numeric | Categorical]
    grid: Grid = field(default_factory=Grid)
    missing: Sequence[str] = ("",)
    n_features: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        columns = dict(self.columns)
        if not columns:
            raise ValueError("Schema needs at least one column; pass {'name': Numeric(low, high)}")
        for name, column in columns.items():
            if not isinstance(column, Numeric | Categorical):
                raise TypeError(
                    f"Schema column {name!r} must be declared; pass Numeric(low, high) or "
                    "Categorical([...])"
                )
        if not _are_texts(self.missing):
            raise ValueError(
                f"missing ({self.missing!r}) must be a list of texts; pass those that stand for a "
                'missing value, such as missing=("", "NA", "?")'
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "missing", tuple(self.missing))
        object.__setattr__(self, "n_features", sum(column.width for column in columns.values()))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Schema:
        """The schema that a TOML file declares; whatever else the file holds is left alone.

        ::

            missing = ["", "NA", "?"]                         # by default "" alone

            [columns]
            age = {low = 17, high = 90}                       # also bins, fill
            sex = {values = ["Female", "Male"], other = true}

            [grid]                                            # may be left out, whole or in part
            a = 12
        """
        declared = read_toml(path)
        grid = _grid(declared.get("grid", {}))
        return cls(_columns(declared.get("columns")), grid, declared.get("missing", ("",)))

    def to_toml(self) -> str:
        """The text of a TOML file that `from_toml` reads as this schema.

        >>> from privfit import Categorical, Numeric, Schema
        >>> declared = {"age": Numeric(17, 90), "sex": Categorical(["f", "m"], other=True)}
        >>> print(Schema(declared).to_toml(), end="")
        [columns]
        age = {low = 17, high = 90}
        sex = {values = ["f", "m"], other = true}
        """
        tables = {"columns": _as_plain(self.columns)}
        if self.grid != Grid():
            tables["grid"] = _as_plain(self.grid)
        first = [] if self.missing == ("",) else [f"{_toml_pair('missing', list(self.missing))}\n"]
        return "\n".join(first + [
            f"[{name}]\n" + "".join(f"{_toml_pair(*pair)}\n" for pair in table.items())
            for name, table in tables.items()
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"Schema(<{len(self.columns)} columns, {self.n_features} encoded>)"

    def bind(self, n_features: int) -> Schema:
        _check_width(self, n_features)
        return self

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded columns."""
        names: list[str] = []
        for name, column in self.columns.items():
            if isinstance(column, Categorical):
                names += [f"{name}={value}" for value in column.values]
                names += [f"{name}=<other>"] * column.other
            elif column.bins:
                names += [f"{name}[{i}]" for i in range(column.width)]
            else:
                names.append(name)
        return names

    @property
    def groups(self) -> list[slice]:
        """The encoded columns of each one-hot group."""
        return [part for part, column in self._parts() if not _is_plain(column)]

    def _parts(self) -> list[tuple[slice, Numeric | Categorical]]:
        ends = np.cumsum([column.width for column in self.columns.values()])
        return [
            (slice(int(end) - column.width, int(end)), column)
            for end, column in zip(ends, self.columns.values(), strict=True)
        ]

    @property
    def _declared_low(self) -> Floats:
        return np.zeros(self.width)

    @property
    def _declared_high(self) -> Floats:
        return np.ones(self.width)

    @cached_property
    def low(self) -> Floats:
        return _frozen(np.zeros(self.width))

    @cached_property
    def high(self) -> Floats:
        return _frozen(np.ones(self.width))

    def encode(self, X: Any) -> scipy.sparse.csr_array:
        """Records (n, d) as int16 units of 2^-a: one entry for each declared column of a record."""
        one = 1 << self.grid.a
        n, cells = columns_of(X, list(self.columns))
        reader = NumberReader(self.missing)
        index = np.empty((n, len(self.columns)), dtype=np.int32)
        value = np.full((n, len(self.columns)), one, dtype=np.int16)
        for i, (name, (part, column)) in enumerate(zip(self.columns, self._parts(), strict=True)):
            if isinstance(column, Categorical):
                index[:, i] = part.start + _levels(cells[i], column, name)
                continue
            share = column.share(_filled(reader.numbers(cells[i]), column, name))
            if column.bins:
                index[:, i] = part.start + column.place(share)
            else:
                index[:, i] = part.start
                value[:, i] = _whole_units(share, 1 / one)
        start = np.arange(n + 1, dtype=np.int64) * len(self.columns)
        encoded = scipy.sparse.csr_array(
            (value.ravel(), index.ravel(), start), shape=(n, self.width)
        )
        encoded.eliminate_zeros()
        return encoded

    def points(self, m: int, rng: np.random.Generator) -> Floats:
        """(m, d) encoded records: numbers uniform in [0, 1], one level of each group."""
        result = np.trunc(rng.uniform(0, 1, (m, self.width)) * (1 << self.grid.a))
        for group in self.groups:
            hot = rng.integers(group.start, group.stop, m)
            result[:, group] = 0
            result[np.arange(m), hot] = 1 << self.grid.a
        return result * self.record_units()

    @cached_property
    def _reduction(self) -> tuple[Integers, Floats]:
        """The first encoded column of each declared one, and the least it adds to S(v)."""
        starts = np.array([part.start for part, _ in self._parts()], dtype=np.int64)
        least = [0.0 if _is_plain(column) else -np.inf for column in self.columns.values()]
        return starts, np.array(least)

    def _largest(self, V: Floats) -> Floats:
        """S(v) = v_b + sum over groups of max_j v_j + sum over numbers of max(v_j, 0)."""
        starts, least = self._reduction
        tops = np.maximum(np.maximum.reduceat(V[..., :-1], starts, axis=-1), least)
        return np.asarray(tops.sum(axis=-1) + V[..., -1])

    def norm(self, V: ArrayLike) -> Floats:
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        return np.maximum(self._largest(V), self._largest(-V))

    def pair_norms(self, P: Floats) -> Floats:
        starts, least = self._reduction
        m, n_threads = len(P), threads.resolve() if P.size * len(P) > 1 << 21 else 1
        norms = np.empty((m, m))
        group_pair_norms(
            np.ascontiguousarray(P.T), np.append(starts, self.width), least,
            np.empty((n_threads, 4, m)), norms,
        )  # fmt: skip
        return norms


# ------------------------------------------------------------------------------------ plain values


def _arguments(kind: type[Any]) -> list[Field[Any]]:
    return [one for one in fields(kind) if one.init]


def _hashable(value: Any) -> Any:
    """The same for equal declarations; the order of columns counts."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    if isinstance(value, np.ndarray):
        return tuple(value.tolist()) if value.ndim else float(value)
    return value


def _as_plain(declared: Any) -> Any:
    """A declaration as JSON and TOML have it: numbers, texts, lists and tables."""
    if isinstance(declared, np.ndarray):
        return declared.tolist()
    if isinstance(declared, tuple):  # the missing texts of a schema
        return list(declared)
    if isinstance(declared, Grid):
        return {name: int(bits) for name, bits in asdict(declared).items()}
    if isinstance(declared, Mapping):
        return {_checked_name(name): _as_plain(column) for name, column in declared.items()}
    if isinstance(declared, Numeric):
        bins, fill = declared.bins, declared.fill
        return {
            "low": _number(declared.low),
            "high": _number(declared.high),
            **({"bins": list(bins) if isinstance(bins, Sequence) else int(bins)} if bins else {}),
            **({} if fill is None else {"fill": _number(fill)}),
        }
    if isinstance(declared, Categorical):
        levels = list(declared.values)
        _check_levels(levels)
        return {"values": levels, **({"other": True} if declared.other else {})}
    return None if declared is None else _number(declared)


def _number(value: Any) -> int | float:
    return int(value) if is_whole(value) else float(value)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(
            f"column {name!r} must be named by a text to be written; pass a Schema with such names"
        )
    return name


def _from_plain(declared: Any) -> Domain:
    """The domain of a table that `Domain.to_dict` made."""
    kinds: dict[Any, type[Any]] = {kind.__name__: kind for kind in (Box, L1Ball, L2Ball, Schema)}
    kind = declared.get("domain") if isinstance(declared, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(
            f"domain ({kind!r}) must be one of {', '.join(kinds)}; pass what to_dict gave"
        )
    names = {one.name for one in _arguments(kinds[kind])}
    older = names - {"missing"}  # before texts for missing values were declared
    if declared.keys() - {"domain"} not in (names, older):
        raise ValueError(
            f"domain ({kind!r}) must have the fields {', '.join(sorted(names))}; pass what to_dict "
            "gave"
        )
    values = {name: declared[name] for name in older - {"grid", "columns"}}
    for name, value in values.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(map(is_finite, numbers)) and (name, value) != ("n_features", None):
            raise ValueError(f"{name} must be a finite number or several; pass what to_dict gave")
    if not (values.get("n_features") is None or is_whole(values["n_features"])):
        raise ValueError(
            f"n_features ({values['n_features']!r}) must be a whole number; pass what to_dict gave"
        )
    if "columns" in names:
        values["columns"] = _columns(declared["columns"])
        values["missing"] = declared.get("missing", ("",))
    return kinds[kind](**values, grid=_grid(declared["grid"]))


def _columns(columns: Any) -> dict[str, Numeric | Categorical]:
    """The columns that a table declares."""
    if not isinstance(columns, dict):
        raise ValueError(
            f"columns ({columns!r}) must be a table of declared columns; pass [columns] and "
            "below it a line such as age = {low = 17, high = 90}"
        )
    return {name: _column(name, entry) for name, entry in columns.items()}


def _grid(grid: Any) -> Grid:
    """The grid that a table declares; bits that it leaves out have their defaults."""
    if not isinstance(grid, dict) or not grid.keys() <= {"a", "b", "c"}:
        raise ValueError(
            f"grid ({grid!r}) must be a table of bits a, b and c; pass [grid] and below it a "
            "line such as a = 12, or leave it out"
        )
    return Grid(**grid)


def _toml_pair(name: str, value: Any) -> str:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
    return f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    """A plain value on one line of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(_toml_pair(*pair) for pair in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{"".join(map(_toml_character, value))}"' if isinstance(value, str) else repr(value)


def _toml_character(character: str) -> str:
    """A character between quotes; what cannot be seen is written as a number."""
    if character in '"\\':
        return f"\\{character}"
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("texts must be valid Unicode for TOML to hold them; pass decoded names")
    return character if character.isprintable() else f"\\U{code:08x}"


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise ImportError(
                "Schema.from_toml needs tomli before Python 3.11; run pip install tomli"
            ) from None
    with Path(path).open("rb") as file:
        try:
            return tomllib.load(file)
        except ValueError as error:  # not TOML, or not UTF-8
            raise ValueError(
                f"path ({os.fspath(path)!r}) must be a TOML file; pass one that parses: {error}"
            ) from None


def _column(name: str, entry: Any) -> Numeric | Categorical:
    """The column that an entry of a TOML file declares."""
    keys = entry.keys() if isinstance(entry, dict) else set()
    numeric = {"low", "high"} <= keys <= {"low", "high", "bins", "fill"}
    if not numeric and not {"values"} <= keys <= {"values", "other"}:
        raise ValueError(
            f"column {name!r} ({entry!r}) must have low and high, or values; pass {{low = 17, "
            'high = 90}, perhaps with bins and fill, or {values = ["a", "b"]}, perhaps with other'
        )
    try:
        if numeric:
            return Numeric(**entry)
        _check_levels(**entry)
        return Categorical(**entry)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def _check_levels(values: Any, other: Any = False) -> None:
    """Refuse what TOML can hold but a level cannot be: a list, a date, NaN."""
    if not isinstance(values, list) or not all(
        isinstance(value, str | bool) or is_finite(value) for value in values
    ):
        raise ValueError(
            f'values ({values!r}) must be a list of texts or numbers; pass values = ["a", "b"]'
        )
    if not isinstance(other, bool):
        raise ValueError(f"other ({other!r}) must be true or false; pass other = true")


def _is_plain(column: Numeric | Categorical) -> bool:
    return isinstance(column, Numeric) and not column.bins


def _are_texts(values: Any) -> bool:
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    return listed and all(isinstance(value, str) for value in values)


def _levels(raw: Any, column: Categorical, name: str) -> Integers:
    """The position of each value among the declared ones; unknown ones go to the other level."""
    codes = LevelReader(column.positions).codes(raw)
    unknown = codes < 0
    if not unknown.any():
        return codes
    if not column.other:
        raise ValueError(
            f"column {name!r} has values that are not declared; declare them, or pass "
            "Categorical(values, other=True)"
        )
    return np.where(unknown, len(column.values), codes)


def _filled(numbers: Floats, column: Numeric, name: str) -> Floats:
    """The numbers, and the declared fill where a cell is missing or no number."""
    unknown = np.isnan(numbers)
    if not unknown.any():
        return numbers
    if column.fill is None:
        raise ValueError(
            f"column {name!r} has missing values or cells that are no numbers; declare "
            "Numeric(low, high, fill=...), or fill them before"
        )
    return np.where(unknown, through_float32(column.fill), numbers)
