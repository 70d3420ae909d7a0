"""A box of whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base import typing
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Flags
from privfit.runs.spaces.common import Genes, Gridless, check_size, of_shape

__all__ = ["Integers"]

LARGEST = 2**52  # so that bounds and widths are exact as floats


@dataclass(frozen=True, eq=False)
class Integers(Gridless, Genes):
    """A box of whole numbers, each from low to high, both included.

    Parameters
    ----------
    low, high : int or array of int
        The bounds. They must not depend on the records.
    d : int, tuple of int or None, default=None
        The number of coordinates, or the shape of a candidate; by default that of the bounds.

    See Also
    --------
    search : Searches a space.
    Reals : A box of real numbers.

    Notes
    -----
    The sizes of steps are fractions of a coordinate's width, rounded, and at least 1.

    Examples
    --------
    A threshold of an age in years:

    >>> import numpy as np
    >>> from privfit import Integers, RecordObjective, search
    >>> ages = np.random.default_rng(0).integers(17, 91, 5000)  # private
    >>> works = ages < 67
    >>> def right(records, P):
    ...     ages, works = records.T
    ...     return (ages[:, None] < P[:, 0]) == works[:, None]
    >>> objective = RecordObjective(np.column_stack([ages, works]), right, low=0.0, high=1.0)
    >>> found = search(objective, Integers(17, 90, 1), 1.0, 1e-6, random_state=0)
    >>> bool(abs(found.answer[0] - 67) < 5)
    True
    """

    has_means: ClassVar[bool] = False

    low: Any
    high: Any
    d: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        bounds = np.asarray(self.low), np.asarray(self.high)
        if not all(
            bound.dtype.kind in "iu" and ((-LARGEST <= bound) & (bound <= LARGEST)).all()
            for bound in bounds
        ):
            raise DeclarationError(
                "low and high must be whole numbers between -2^52 and 2^52; pass Integers(0, 9, d)"
            )
        if self.d is not None:
            for size in self.d if isinstance(self.d, tuple) else (self.d,):
                check_size("d", size)
        try:
            shape = self.shape
            low, high = (np.array(np.broadcast_to(bound, shape), np.int64) for bound in bounds)
        except ValueError:
            raise DeclarationError(
                "low and high must be numbers or arrays of the shape of a candidate; pass "
                "Integers(low, high, d)"
            ) from None
        if low.ndim == 0:
            raise DeclarationError(
                "d must be given if low and high are numbers; pass Integers(0, 9, d)"
            )
        if low.size == 0 or not (low < high).all():
            raise DeclarationError(
                "low must be below high, in one coordinate or more; pass Integers(0, 9, d)"
            )
        for name, bound in (("low", low), ("high", high), ("d", shape)):
            object.__setattr__(self, name, bound)

    def __repr__(self) -> str:
        return f"Integers(<{' x '.join(map(str, self.shape))} whole numbers>)"

    @property
    def shape(self) -> tuple[int, ...]:
        if self.d is None:
            return np.broadcast_shapes(np.shape(self.low), np.shape(self.high))
        return self.d if isinstance(self.d, tuple) else (self.d,)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def width(self) -> typing.Integers:
        """The width of each coordinate."""
        return np.asarray(self.high - self.low)

    @property
    def middle(self) -> typing.Integers:
        """The start of a walk: half-way between the bounds, rounded down."""
        return np.asarray((self.low + self.high) // 2)

    @property
    def extremes(self) -> typing.Integers:
        """(3, ...): the middle, the lowest and the highest candidate."""
        return np.stack([self.middle, self.low, self.high])

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
        found = of_shape(P, self.shape, "iu")
        if found is None:
            return np.zeros(len(np.atleast_1d(P)), dtype=bool)
        inside = (self.low <= found) & (found <= self.high)
        return inside.reshape(len(found), self.size).all(axis=1)

    def snap(self, P: ArrayLike) -> typing.Integers:
        """Round numbers to whole ones, and clip them to the box.

        Parameters
        ----------
        P : array-like of shape (m, ...)
            Any numbers; NaN counts as 0.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        P = np.nan_to_num(np.rint(np.asarray(P, dtype=np.float64)), nan=0.0)
        return np.clip(P, self.low, self.high).astype(np.int64)

    def sample(self, m: int, coins: Coins) -> typing.Integers:
        return coins.integers(self.low, self.high, size=(m, *self.shape), endpoint=True)

    # ---------------------------------------------------------------------------------------- moves

    def all_moves(self, w: Array, step: float) -> tuple[typing.Integers, typing.Integers]:
        """All moves by one step up or down along one coordinate; at the border they are shorter.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Size of a step, as a fraction of a coordinate's width; at least 1.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and by how much.
        """
        return np.tile(np.arange(self.size), 2), self._both_ways(w, step).ravel()

    def some_moves(
        self, w: Array, m: int, step: float, coins: Coins
    ) -> tuple[typing.Integers, typing.Integers]:
        where = coins.integers(self.size, size=m)
        up = coins.random(m) < 0.5
        ahead, back = self._both_ways(w, step)
        return where, np.where(up, ahead[where], back[where])

    def _both_ways(self, w: Array, step: float) -> typing.Integers:
        """(2, size): a step up and one down each coordinate, within the box."""
        length = self._whole(step * self.width)
        ends = np.minimum(w + length, self.high), np.maximum(w - length, self.low)
        return np.stack([np.ravel(end - w) for end in ends])

    @staticmethod
    def _whole(lengths: Array) -> typing.Integers:
        """Lengths as whole numbers, each at least 1."""
        return np.maximum(np.rint(lengths), 1.0).astype(np.int64)

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> typing.Integers:
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(np.ravel(w), (len(where), 1))
        P[np.arange(len(where)), where] += what
        return P.reshape(-1, *self.shape)

    # ------------------------------------------------------------------------------------ operators

    def nudge(self, P: Array, step: float, coins: Coins) -> typing.Integers:
        """Move one coordinate of each candidate up or down by a step, within the box.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width; at least 1.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        flat = P.reshape(len(P), self.size).copy()
        where = coins.integers(self.size, size=len(P))
        signs = coins.choice((-1, 1), size=len(P))
        length = self._whole(step * np.ravel(self.width))
        flat[np.arange(len(P)), where] += signs * length[where]
        return np.clip(flat.reshape(P.shape), self.low, self.high)

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> typing.Integers:
        """Add normal noise, rounded to at least 1 in size, with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Deviation of the noise, as a fraction of a coordinate's width.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        mutants = np.array(P, dtype=np.int64, order="C")
        hit = np.flatnonzero(coins.random(P.shape) < rate)
        noise = coins.normal(0.0, 1.0, len(hit)) * step * np.ravel(self.width)[hit % self.size]
        length = np.minimum(np.abs(noise), 2.0 * LARGEST)
        mutants.reshape(-1)[hit] += np.where(noise < 0, -1, 1) * self._whole(length)
        return np.clip(mutants, self.low, self.high)
