"""Boxes: each column has its own declared bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse
from privfit.domains.cells import Cut, Listed, least_numbers
from privfit.domains.domain import Domain, Quantised, check_width
from privfit.domains.geometry import pair_distances
from privfit.domains.grid import Grid, frozen, has_ordinary_size, whole_units
from privfit.domains.products import rounded_products

__all__ = ["Box"]


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """Records whose column j is in [low_j, high_j]; scalar bounds apply to every column.

    Values outside the bounds are clipped.

    Parameters
    ----------
    lower, upper : float or array-like of shape (n_features,)
        Declared bounds, from documentation and never from the data.
    n_features : int or None, default=None
        Number of columns. Only needed with scalar bounds; if None, it is then taken from the
        records' shape.
    grid : Grid, default=Grid()
        Bits of records, candidates and scores.

    See Also
    --------
    Schema : Named columns of numbers and categories.
    L1Ball, L2Ball : Bounds on the norm of a record.

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
        _check_bounds(lower, upper)
        lower, upper = (np.array(bound) for bound in np.broadcast_arrays(lower, upper))
        if (lower > upper).any():
            raise DeclarationError(
                "Box lower bounds must not exceed the upper ones; pass Box(lower, upper)"
            )
        if lower.ndim == 1:
            if self.n_features not in (None, lower.shape[0]):
                raise DeclarationError(
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
        check_width(self, n_features)
        return self if self.n_features == n_features else replace(self, n_features=n_features)

    def repeated(self, k: int, grid: Grid) -> Box:
        return Box(np.tile(self.low, k), np.tile(self.high, k), grid=grid)

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
            raise DeclarationError(
                f"Box is narrower than its grid in column {int(np.argmax(low > high))}; pass "
                "Grid(a=14), or shift the column towards zero"
            )
        return low, high

    @cached_property
    def low(self) -> Floats:
        return frozen(self._integer_bounds(False)[0] * self.record_units())

    @cached_property
    def high(self) -> Floats:
        return frozen(self._integer_bounds(False)[1] * self.record_units())

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        low, high = self._integer_bounds(uniform)
        units = self.record_units(uniform)
        if is_sparse(block):
            if ((low > 0) | (high < 0)).any():
                raise DeclarationError(
                    "sparse X must have 0 inside the bounds of every column; pass a dense array or "
                    "a Box that contains 0"
                )
            j = block.indices
            data = np.clip(whole_units(block.data, units[j]), low[j], high[j])
            return scipy.sparse.csr_array(
                (data.astype(np.int16), j, block.indptr), shape=block.shape
            )
        return np.clip(whole_units(block, units), low, high).astype(np.int16)

    def products(self, X: Any, W: Floats) -> Floats:
        if is_sparse(X):
            return super().products(X, W)
        low, high = self._integer_bounds(False)
        return rounded_products(X, W, self.record_units(), self.origin, low, high)

    def table_cells(self, uniform: bool = False) -> list[Cut | Listed]:
        low, high = self._integer_bounds(uniform)
        columns = zip(self.origin, self.record_units(uniform), low, high, strict=True)
        return [_cut(*map(float, column)) for column in columns]

    def clipping(self, uniform: bool = False) -> Floats:
        low, high = self._integer_bounds(uniform)
        return np.stack([self.origin, 1 / self.record_units(uniform), low, high])

    def centred(self) -> Box:
        """The same box, where columns whose bounds exclude 0 are measured from their middle.

        As it is, a column of [1000, 1001] has four steps of 1024 / 4096; around 1000.5 it has 8192.

        Returns
        -------
        Box
            The box on the finer grid, or this box if all its columns contain 0.
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
        return np.abs(middle[:, None] - middle) + pair_distances(P[:, :-1] * half, "cityblock")

    def rescaled_norm(self, sizes: Floats, reach: Floats) -> float:
        return float(sizes[:-1] @ reach + sizes[-1])


def _cut(origin: float, unit: float, low: float, high: float) -> Cut:
    """The steps of a column, as `quantise` rounds it."""

    def steps(numbers: Floats) -> Floats:
        return np.clip(whole_units(numbers - origin, unit), low, high)

    edges = least_numbers(steps, int(low), int(high))
    return Cut(edges, step=unit, first=low * unit + origin)


def _check_bounds(lower: Floats, upper: Floats) -> None:
    if lower.ndim > 1 or upper.ndim > 1:
        raise DeclarationError(
            "Box bounds must be numbers or one row of numbers; pass one per column"
        )
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise DeclarationError(
            "Box bounds must be finite; pass the documented range of each column"
        )
    if not all(has_ordinary_size(bound) for bound in (*lower.flat, *upper.flat)):
        raise DeclarationError(
            "Box bounds must be 0 or between 1e-100 and 1e100 in size; pass columns in other units"
        )


@dataclass(frozen=True, eq=False, repr=False)
class _CentredBox(Box):
    """A box minus a declared point; all geometry is that of the differences."""

    middle: ArrayLike = 0.0

    @property
    def origin(self) -> Floats:
        return np.broadcast_to(np.asarray(self.middle, dtype=np.float64), (self.width,))

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        if is_sparse(block):
            raise DeclarationError(
                "sparse X must have 0 inside the bounds of every column; pass a dense array or a "
                "Box that contains 0"
            )
        return super().quantise(block - self.origin, uniform)
