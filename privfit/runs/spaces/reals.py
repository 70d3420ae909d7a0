"""A box of real numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.candidates import both_ways, snap
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Flags, Floats, Integers
from privfit.runs.spaces.common import Genes, check_size, of_shape

__all__ = ["Reals"]


@dataclass(frozen=True, eq=False)
class Reals(Genes):
    """A box of real numbers: d of them, or an array of shape d, each from low to high.

    Parameters
    ----------
    low, high : float or array of shape d
        The bounds. They must not depend on the records.
    d : int or tuple of int
        The number of coordinates, or the shape of a candidate.
    units : float, array or None, default=None
        The grid of the candidates; a search takes it from its objective.
    start : array or None, default=None
        The start of a walk, which must not depend on the records; by default the candidate nearest
        to zero.

    See Also
    --------
    search : Searches a space.
    Integers, Bits, Subsets, Permutations : Discrete spaces.
    Mixed : Several spaces side by side.

    Notes
    -----
    The sizes of steps are fractions of a coordinate's width, as in the papers.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Reals, RecordObjective, search
    >>> heights = np.random.default_rng(0).normal(170, 10, 5000)  # private
    >>> def nearness(heights, P):
    ...     return -np.abs(heights[:, None] - P[:, 0])
    >>> objective = RecordObjective(heights, nearness, low=-50.0, high=0.0)
    >>> found = search(objective, Reals(100, 250, 1), 1.0, 1e-6, random_state=0)
    >>> bool(abs(found.answer[0] - 170) < 5)
    True
    """

    has_means: ClassVar[bool] = True

    low: Any
    high: Any
    d: int | tuple[int, ...]
    units: ArrayLike | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        for size in self.shape:
            check_size("d", size)
        try:
            low, high = (
                np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), self.shape))
                for bound in (self.low, self.high)
            )
        except ValueError:
            raise DeclarationError(
                f"low and high must be numbers or arrays of shape {self.shape}; pass Reals(low, "
                "high, d)"
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise DeclarationError("low must be below high, both finite; pass Reals(-1, 1, d)")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if np.greater(*self._ends).any():
            raise DeclarationError(
                "low and high must have a point of the grid between them in every coordinate; pass "
                "wider bounds, or a finer grid"
            )

    def __repr__(self) -> str:
        return f"Reals(<{' x '.join(map(str, self.shape))} numbers>)"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return self.d if isinstance(self.d, tuple) else (self.d,)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return math.prod(self.shape)

    @property
    def width(self) -> Floats:
        """The width of each coordinate."""
        return np.asarray(np.subtract(self.high, self.low))

    @property
    def middle(self) -> Floats:
        """The start of a walk: the candidate nearest to zero, or the declared one."""
        return self.snap(np.zeros(self.shape) if self.start is None else self.start)

    @property
    def extremes(self) -> Floats:
        """(4, ...): the middle and outermost candidates; bounds that hold there hold everywhere."""
        farthest = np.where(np.abs(self.low) > np.abs(self.high), self.low, self.high)
        return self.snap(np.stack([self.middle, self.low, self.high, farthest]))

    def on_grid_of(self, objective: Any) -> Reals:
        """This box on the grid of an objective.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Reals
            The space to search.
        """
        units = getattr(objective, "candidate_units", None)
        if self.units is not None or units is None:
            return self
        if np.shape(units) not in ((), self.shape, self.shape[-1:]):
            raise DeclarationError(
                f"candidates (shape {self.shape}) must have the shape of the objective's, "
                f"{np.shape(units)}; pass Reals(low, high, d) with it"
            )
        return replace(self, units=units)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The lowest and the highest candidate of the box, on its grid."""
        if self.units is None:
            return self.low, self.high
        low, high = np.ceil(self.low / self.units), np.floor(self.high / self.units)
        return low * self.units, high * self.units

    def snap(self, P: ArrayLike) -> Floats:
        """Clip candidates to the box and round them to the grid.

        Parameters
        ----------
        P : array-like of shape (m, ...)
            The candidates.

        Returns
        -------
        array of shape (m, ...)
            The rounded candidates.
        """
        P = np.asarray(P, dtype=np.float64)
        shape = np.broadcast_shapes(P.shape, self.shape)
        return self._snapped(np.array(np.broadcast_to(P, shape), order="C"))

    def _snapped(self, P: Floats) -> Floats:
        """The same in place, for a contiguous array of candidates."""
        low, high, _, units = self._flat
        snap(P.reshape(-1, self.size), units, low, high)
        return P

    def contains(self, P: ArrayLike) -> Flags:
        """Whether candidates belong to this space.

        Parameters
        ----------
        P : array-like of shape (m, ...)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that do; arrays of another shape or kind of numbers do not.
        """
        found = of_shape(P, self.shape, "fiu")
        if found is None:
            return np.zeros(len(np.atleast_1d(P)), dtype=bool)
        low, high = self._ends
        inside = (low <= found) & (found <= high)
        if self.units is not None:
            whole = np.where(inside, found, 0.0) / self.units
            inside &= whole == np.rint(whole)
        return np.asarray(inside.reshape(len(found), self.size).all(axis=1))

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates uniformly in the box.

        Parameters
        ----------
        m : int
            Number of draws.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        return self.snap(coins.uniform(self.low, self.high, (m, *self.shape)))

    # ---------------------------------------------------------------------------------------- moves

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Floats]:
        """All moves by one step up or down along one coordinate.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Size of a step, as a fraction of a coordinate's width.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        return self._every_coordinate, self._both_ways(w, step).ravel()

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Floats]:
        """Draw moves uniformly: a coordinate, up or down.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        where = coins.integers(self.size, size=m)
        up = coins.random(m) < 0.5
        ahead, back = self._both_ways(w, step)
        return where, np.where(up, ahead[where], back[where])

    @cached_property
    def _every_coordinate(self) -> Integers:
        where = np.tile(np.arange(self.size), 2)
        where.setflags(write=False)
        return where

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The outermost points, widths and units of all coordinates, flattened; no units, none."""
        units = np.empty(0)
        if self.units is not None:
            units = np.ravel(np.broadcast_to(np.asarray(self.units, dtype=np.float64), self.shape))
        low, high = self._ends
        return np.ravel(low), np.ravel(high), np.ravel(self.width), units

    def _both_ways(self, w: Array, share: float) -> Floats:
        """(2, size): a step up and one down each coordinate, on the grid.

        Steps that would leave the box are shortened.
        """
        low, high, width, units = self._flat
        steps = np.empty((2, self.size))
        both_ways(np.ravel(w), share, width, units, low, high, steps)
        return steps

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The candidates after each move.

        Parameters
        ----------
        w : array
            The candidate.
        where : array of int
            The coordinate or position that each move changes.
        what : array
            The new value, or the step, of each move.

        Returns
        -------
        array of shape (m, ...)
            The candidates after each move.
        """
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(np.ravel(w), (len(where), 1))
        P[np.arange(len(where)), where] += what
        return P.reshape(-1, *self.shape)

    # ------------------------------------------------------------------------------------ operators

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Move one coordinate of each candidate up or down by a step.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        flat = P.reshape(len(P), -1).copy()
        where = coins.integers(self.size, size=len(P))
        signs = coins.choice((-1.0, 1.0), size=len(P))
        flat[np.arange(len(P)), where] += signs * step * np.ravel(self.width)[where]
        return self.snap(flat.reshape(P.shape))

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Add normal noise, with a step as its deviation, with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        result = np.array(P, dtype=np.float64, order="C")
        hit = np.flatnonzero(coins.random(P.shape) < rate)
        spread = step * self._flat[2][hit % self.size]
        result.reshape(-1)[hit] += coins.normal(0.0, 1.0, spread.shape) * spread
        return self._snapped(result)
