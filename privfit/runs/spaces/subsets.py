"""Sets of indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Flags, Integers
from privfit.runs.spaces.common import Gridless, check_size, of_shape

__all__ = ["Subsets"]


@dataclass(frozen=True)
class Subsets(Gridless):
    """Sets of k different indices below n, as rows of integers in no particular order.

    Parameters
    ----------
    n : int
        The number of indices to choose from.
    k : int
        The size of a set.

    See Also
    --------
    search : Searches a space.
    FacilityObjective : Scores sets of facilities.
    Bits : Sets of any size.

    Examples
    --------
    >>> from privfit import Subsets
    >>> Subsets(200, 5)  # five of 200 public places, for `search`
    Subsets(n=200, k=5)
    """

    has_means: ClassVar[bool] = False

    n: int
    k: int

    def __post_init__(self) -> None:
        check_size("n", self.n)
        check_size("k", self.k)
        if self.k > self.n:
            raise DeclarationError(f"k ({self.k}) must be at most n ({self.n}); pass a smaller k")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return (self.k,)

    @property
    def size(self) -> int:
        """The number of genes."""
        return self.k

    @property
    def middle(self) -> Integers:
        """The start of a walk: the first k indices."""
        return np.arange(self.k)

    @property
    def extremes(self) -> Integers:
        """(2, k): the first and the last indices."""
        return np.stack([self.middle, self.middle + self.n - self.k])

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
        inside = ((0 <= found) & (found < self.n)).all(axis=1)
        ordered = np.sort(found, axis=1)
        return np.asarray(inside & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))

    def snap(self, P: ArrayLike) -> Integers:
        """Sets of whole numbers near any numbers; a set stays what it is, in increasing order.

        Parameters
        ----------
        P : array-like of shape (m, k)
            Any numbers; NaN counts as 0.

        Returns
        -------
        array of shape (m, k)
            The sets.
        """
        whole = np.nan_to_num(np.rint(np.asarray(P, dtype=np.float64)), nan=0.0)
        ordered = np.sort(np.clip(whole, 0, self.n - 1).astype(np.int64), axis=-1)
        # Each at least one above the one before, then at most as far as leaves room for the rest.
        apart = np.maximum.accumulate(ordered - self.middle, axis=-1) + self.middle
        return np.minimum(apart, self.n - self.k + self.middle)

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw sets uniformly.

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
        return np.stack([coins.choice(self.n, self.k, replace=False) for _ in range(m)])

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Integers]:
        """All swaps: the positions that leave and the indices that come.

        If there is nothing to swap with, staying is the only move.

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
        if self.k == self.n:
            return np.zeros(1, dtype=np.int64), np.array(w[:1])
        outside = np.setdiff1d(np.arange(self.n), w)
        return np.repeat(np.arange(self.k), len(outside)), np.tile(outside, self.k)

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Integers]:
        """Draw swaps uniformly.

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
        where = coins.integers(self.k, size=m)
        return where, self._newcomers(np.tile(w, (m, 1)), where, coins)

    def _newcomers(self, P: Array, where: Integers, coins: Coins) -> Integers:
        """A uniformly drawn index outside each set; the present one if there is none."""
        if self.k == self.n:
            return P[np.arange(len(P)), where]
        rank = coins.integers(self.n - self.k, size=(len(P), 1))
        # The rank-th index outside: every member at or below it pushes it up by one.
        below = np.sort(P, axis=1) - np.arange(self.k) <= rank
        return np.asarray(rank[:, 0] + below.sum(axis=1))

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The sets after each swap.

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

    def unite(self, A: Array, B: Array, coins: Coins) -> Array:
        """Draw k members from the union of two sets.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        both = np.concatenate([A, B], axis=1)
        keys = coins.random(both.shape)
        keys[:, self.k :][(B[:, :, None] == A[:, None, :]).any(axis=2)] = 2.0  # once each
        order = np.argsort(keys, axis=1)[:, : self.k]
        return np.take_along_axis(both, order, axis=1)

    mix = splice = unite

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of two sets: another draw from their union.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        child : array of shape (m, ...)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The other children.
        """
        return self.unite(A, B, coins)

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Swap one member of each set for a new index.

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
        where = coins.integers(self.k, size=len(P))
        result = P.copy()
        result[np.arange(len(P)), where] = self._newcomers(P, where, coins)
        return result

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Swap each member for a new index with probability `rate`.

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
        result = P.copy()
        for position in range(self.k):
            hit = np.flatnonzero(coins.random(len(P)) < rate)
            if len(hit):
                where = np.full(len(hit), position)
                result[hit, position] = self._newcomers(result[hit], where, coins)
        return result

    def redraw(self, P: Array, rate: float, coins: Coins) -> Array:
        """Swap each member for a new index with probability `rate`, as `jitter` does.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        rate : float
            Probability that a member changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        return self.jitter(P, 0.0, rate, coins)
