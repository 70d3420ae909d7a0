"""Strings of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.typing import Array, Coins, Flags, Integers
from privfit.runs.spaces.common import Genes, Gridless, check_size, of_shape

__all__ = ["Bits"]


@dataclass(frozen=True)
class Bits(Gridless, Genes):
    """Strings of n bits, as rows of booleans.

    Parameters
    ----------
    n : int
        The number of bits.

    See Also
    --------
    search : Searches a space.
    Subsets : Sets of a given size.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, search
    >>> taste = np.random.default_rng(0).random((2000, 8)) < [0.9, 0.1] * 4  # private
    >>> def agreement(taste, P):
    ...     return (taste[:, None] == P).mean(axis=2)
    >>> found = search(RecordObjective(taste, agreement, 0.0, 1.0), Bits(8), 1.0)
    >>> found.answer.shape
    (8,)
    """

    has_means: ClassVar[bool] = False

    n: int

    def __post_init__(self) -> None:
        check_size("n", self.n)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return (self.n,)

    @property
    def size(self) -> int:
        """The number of genes."""
        return self.n

    @property
    def middle(self) -> Array:
        """The start of a walk: all zeros."""
        return np.zeros(self.n, dtype=bool)

    @property
    def extremes(self) -> Array:
        """(2, n): all zeros and all ones."""
        return np.stack([self.middle, ~self.middle])

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
        found = of_shape(P, self.shape, "b")
        return np.full(len(np.atleast_1d(P)), found is not None)

    def snap(self, P: ArrayLike) -> Flags:
        """Which numbers are above 1/2.

        Parameters
        ----------
        P : array-like of shape (m, n)
            Any numbers.

        Returns
        -------
        array of shape (m, n)
            The strings.
        """
        return np.asarray(np.asarray(P) > 0.5)

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw strings uniformly.

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
        return coins.random((m, self.n)) < 0.5

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Array]:
        """All flips of a single bit.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Has no effect here.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        return np.arange(self.n), ~w

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw flips uniformly.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        where = coins.integers(self.n, size=m)
        return where, ~w[where]

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The strings after each flip.

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
        P = np.tile(w, (len(where), 1))
        P[np.arange(len(where)), where] = what
        return P

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Flip one bit of each string.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        result = P.copy()
        result[np.arange(len(P)), coins.integers(self.n, size=len(P))] ^= True
        return result

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Flip each bit with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        return P ^ (coins.random(P.shape) < rate)
