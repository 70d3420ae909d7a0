"""Orders of n things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.typing import Array, Coins, Flags, Integers
from privfit.runs.protocols import Space
from privfit.runs.spaces.common import Gridless, check_size, of_shape

__all__ = ["Permutations"]


@dataclass(frozen=True)
class Permutations(Gridless, Space):
    """Orders of n things, as rows with each of the indices 0, ..., n - 1 once.

    Parameters
    ----------
    n : int
        The number of things.

    See Also
    --------
    search : Searches a space.
    Subsets : Some of the things, in no particular order.

    Notes
    -----
    A move swaps two things. Crossover keeps things of one parent in their places and fills the
    other places in the order of the other parent: the first places in one-point crossover, any
    places in uniform crossover.

    Examples
    --------
    Rank five things by the preferences of many people:

    >>> import numpy as np
    >>> from privfit import Permutations, RecordObjective, search
    >>> liking = np.random.default_rng(0).normal([2, 4, 1, 3, 0], 1, (2000, 5))  # private
    >>> def agreement(liking, P):  # the share of neighbours in the ranking that are liked in order
    ...     ranked = liking[:, P]
    ...     return (ranked[:, :, :-1] > ranked[:, :, 1:]).mean(axis=2)
    >>> objective = RecordObjective(liking, agreement, low=0.0, high=1.0)
    >>> found = search(objective, Permutations(5), 5.0, 1e-6, random_state=0)
    >>> found.answer.tolist()
    [1, 3, 0, 2, 4]
    """

    has_means: ClassVar[bool] = False

    n: int

    def __post_init__(self) -> None:
        check_size("n", self.n)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def size(self) -> int:
        return self.n

    @property
    def middle(self) -> Integers:
        """The start of a walk: all things in the order of their indices."""
        return np.arange(self.n)

    @property
    def extremes(self) -> Integers:
        """(2, n): the order of the indices, and its reverse."""
        return np.stack([self.middle, self.middle[::-1]])

    def contains(self, P: ArrayLike) -> Flags:
        """Whether candidates belong to this space.

        Parameters
        ----------
        P : array-like of shape (m, n)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that do; arrays of another shape or kind of numbers do not.
        """
        found = of_shape(P, self.shape, "iu")
        if found is None:
            return np.zeros(len(np.atleast_1d(P)), dtype=bool)
        return np.asarray((np.sort(found, axis=1) == self.middle).all(axis=1))

    def snap(self, P: ArrayLike) -> Integers:
        """The ranks of any numbers, so that a permutation stays what it is.

        Parameters
        ----------
        P : array-like of shape (m, n)
            A number for each place; the least becomes 0.

        Returns
        -------
        array of shape (m, n)
            The permutations.
        """
        return np.argsort(np.argsort(np.asarray(P), axis=-1, kind="stable"), axis=-1)

    def sample(self, m: int, coins: Coins) -> Integers:
        return coins.permuted(np.tile(self.middle, (m, 1)), axis=1)

    # ---------------------------------------------------------------------------------------- moves

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Integers]:
        """All swaps of two places; a single thing can only stay.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Has no effect here.

        Returns
        -------
        tuple of arrays
            The two places of each swap.
        """
        if self.n == 1:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        first, second = np.triu_indices(self.n, 1)
        return first, second

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
            The two places of each swap.
        """
        first = coins.integers(self.n, size=m)
        return first, self._others(first, coins)

    def _others(self, places: Integers, coins: Coins) -> Integers:
        """A place other than each of these, drawn uniformly; the same if there is only one."""
        if self.n == 1:
            return places
        return (places + coins.integers(1, self.n, size=len(places))) % self.n

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Integers:
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(w, (len(where), 1))
        rows = np.arange(len(where))
        P[rows, where], P[rows, what] = w[what], w[where]
        return P

    # ------------------------------------------------------------------------------------ operators

    def splice(self, A: Array, B: Array, coins: Coins) -> Integers:
        """Order crossover at one point: the first places as in A, the others in the order of B.

        Parameters
        ----------
        A, B : array of shape (m, n)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The children.
        """
        cut = coins.integers(1, max(self.n, 2), size=(len(A), 1))
        return self._filled(A, B, self.middle < cut)

    def mix(self, A: Array, B: Array, coins: Coins) -> Integers:
        """Order crossover at random places: half of them as in A, the others in the order of B.

        Parameters
        ----------
        A, B : array of shape (m, n)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The children.
        """
        return self._filled(A, B, coins.random(A.shape) < 0.5)

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Integers:
        """The other child: the places of B where `child` is as A, the others in the order of A.

        Parameters
        ----------
        A, B : array of shape (m, n)
            Two populations, paired row by row.
        child : array of shape (m, n)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The other children.
        """
        return self._filled(B, A, child == A)

    def _filled(self, A: Array, B: Array, kept: Flags) -> Integers:
        """A in the places that are kept; the things that are left, in the order of B, elsewhere."""
        is_kept = np.empty(A.shape, dtype=bool)  # by things, not by places
        np.put_along_axis(is_kept, A, kept, axis=1)
        left = ~np.take_along_axis(is_kept, B, axis=1)
        children = np.array(A)
        children[~kept] = B[left]  # row by row, as many places as things
        return children

    def nudge(self, P: Array, step: float, coins: Coins) -> Integers:
        """Swap two things of each candidate.

        Parameters
        ----------
        P : array of shape (m, n)
            A population.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The mutants.
        """
        return self.swap(P, coins)

    def swap(self, P: Array, coins: Coins) -> Integers:
        """Swap two things of each candidate.

        Parameters
        ----------
        P : array of shape (m, n)
            A population.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The mutants.
        """
        mutants = np.array(P)
        first = coins.integers(self.n, size=len(P))
        self._swap(mutants, np.arange(len(P)), first, self._others(first, coins))
        return mutants

    @staticmethod
    def _swap(P: Array, rows: Integers, first: Integers, second: Integers) -> None:
        """Swap two things in each of some rows, in place."""
        P[rows, first], P[rows, second] = P[rows, second], P[rows, first]

    def insert(self, P: Array, coins: Coins) -> Integers:
        """Move one thing of each candidate to another place; those between shift by one.

        Parameters
        ----------
        P : array of shape (m, n)
            A population.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The mutants.
        """
        start = coins.integers(self.n, size=len(P))
        end = self._others(start, coins)
        keys = np.tile(2 * self.middle, (len(P), 1))
        keys[np.arange(len(P)), start] = 2 * end + np.sign(end - start)  # beyond what stood there
        return np.take_along_axis(P, np.argsort(keys, axis=1), axis=1)

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Integers:
        """Swap the thing in each place with another one with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, n)
            A population.
        step : float
            Has no effect here.
        rate : float
            Probability that a place is swapped with another.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The mutants.
        """
        mutants = np.array(P)
        hit = coins.random(P.shape) < rate
        times = hit.sum(axis=1)
        places = np.argsort(~hit, axis=1, kind="stable")  # those that are hit come first
        for turn in range(times.max(initial=0)):
            rows = np.flatnonzero(times > turn)
            first = places[rows, turn]
            self._swap(mutants, rows, first, self._others(first, coins))
        return mutants

    def redraw(self, P: Array, rate: float, coins: Coins) -> Integers:
        """Shuffle the things in some places, each taken with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, n)
            A population.
        rate : float
            Probability that a place takes part.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, n)
            The mutants.
        """
        hit = coins.random(P.shape) < rate
        # Those that take part come first and in random order; the others keep theirs.
        shuffled = np.argsort(np.where(hit, coins.random(P.shape), 1 + self.middle), axis=1)
        mutants = np.array(P)
        in_order = np.argsort(~hit, axis=1, kind="stable")
        np.put_along_axis(mutants, in_order, np.take_along_axis(P, shuffled, axis=1), axis=1)
        return mutants
