"""Several spaces side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.base import typing
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Flags
from privfit.runs.protocols import Space
from privfit.runs.spaces.common import of_shape

__all__ = ["Mixed"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Mixed(Space):
    """Candidates of several spaces side by side, in one row.

    Parameters
    ----------
    *spaces : Space
        The spaces of the parts, at least one.

    See Also
    --------
    search : Searches a space.
    Reals, Integers, Bits, Subsets, Permutations : Spaces of parts.

    Notes
    -----
    A row has the type that holds all parts: floats if one of them has floats. `split` gives the
    parts back, each in its own type and shape. Operators and moves of a part are those of its
    space; where an operator changes one coordinate, parts are drawn by their sizes.

    Examples
    --------
    A rule for buyers: a column, and a threshold for it.

    >>> import numpy as np
    >>> from privfit import Integers, Mixed, Reals, RecordObjective, search
    >>> X = np.random.default_rng(0).uniform(0, 1, (4000, 3))  # private
    >>> buys = X[:, 2] > 0.7
    >>> space = Mixed(Integers(0, 2, 1), Reals(0, 1, 1))
    >>> def right(records, P):
    ...     column, threshold = (part[:, 0] for part in space.split(P))
    ...     return (records[:, column] > threshold) == (records[:, 3:] > 0)
    >>> objective = RecordObjective(np.column_stack([X, buys]), right, low=0.0, high=1.0)
    >>> found = search(objective, space, 1.0, 1e-6, random_state=0)
    >>> column, threshold = space.split(found.answer[None])
    >>> int(column[0, 0]), bool(abs(threshold[0, 0] - 0.7) < 0.1)
    (2, True)
    """

    spaces: tuple[Any, ...]

    def __init__(self, *spaces: Space) -> None:
        if not spaces or not all(
            hasattr(one, "all_moves") and not isinstance(one, type) for one in spaces
        ):
            raise DeclarationError(
                f"spaces ({', '.join(map(repr, spaces))}) must be at least one space, and nothing "
                "else; pass Mixed(Reals(-1, 1, 2), Bits(3))"
            )
        object.__setattr__(self, "spaces", spaces)

    def __repr__(self) -> str:
        return f"Mixed({', '.join(map(repr, self.spaces))})"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def size(self) -> int:
        return int(self._ends[-1])

    @property
    def has_means(self) -> bool:
        return all(one.has_means for one in self.spaces)

    @cached_property
    def _ends(self) -> typing.Integers:
        """(k + 1,): where the part of each space begins, and the whole ends."""
        return np.cumsum([0, *(one.size for one in self.spaces)])

    @cached_property
    def _types(self) -> tuple[np.dtype[Any], ...]:
        """The type of each part, and that of a row."""
        own = [np.asarray(one.middle).dtype for one in self.spaces]
        return (*own, np.result_type(*own))

    @property
    def middle(self) -> Array:
        """The start of a walk: the middle of each part."""
        return self._joined(one.middle[None] for one in self.spaces)[0]

    @property
    def extremes(self) -> Array:
        """(m, ...): the outermost candidates of all parts, side by side."""
        found = [one.extremes for one in self.spaces]
        rows = np.arange(max(map(len, found)))
        return self._joined(part[rows % len(part)] for part in found)

    def on_grid_of(self, objective: Any) -> Mixed:
        own = [one.on_grid_of(objective) for one in self.spaces]
        alike = all(one is other for one, other in zip(own, self.spaces, strict=True))
        return self if alike else Mixed(*own)

    # ---------------------------------------------------------------------------------------- parts

    def split(self, P: ArrayLike) -> tuple[Array, ...]:
        """The parts of candidates, each in its own type and shape.

        Parameters
        ----------
        P : array-like of shape (m, size)
            The candidates.

        Returns
        -------
        tuple of arrays of shape (m, ...)
            One array for each space.
        """
        columns = np.split(np.asarray(P), self._ends[1:-1], axis=1)
        return tuple(
            part.astype(dtype).reshape(-1, *one.shape)
            for part, one, dtype in zip(columns, self.spaces, self._types, strict=False)
        )

    def join(self, *parts: ArrayLike) -> Array:
        """Candidates with these parts: the inverse of `split`.

        Parameters
        ----------
        *parts : array-like of shape (m, ...)
            Candidates of each space.

        Returns
        -------
        array of shape (m, size)
            The candidates.
        """
        return self._joined(map(np.asarray, parts))

    def _joined(self, parts: Iterable[Array]) -> Array:
        rows = [part.reshape(len(part), one.size).astype(self._types[-1])
                for part, one in zip(parts, self.spaces, strict=True)]  # fmt: skip
        return np.concatenate(rows, axis=1)

    def _each(self, call: Callable[..., Array], *populations: Array) -> Array:
        """The same call for each space with the parts of these populations."""
        parts = zip(*map(self.split, populations), strict=True)
        return self._joined(call(one, *own) for one, own in zip(self.spaces, parts, strict=True))

    def _drawn(self, m: int, coins: Coins) -> typing.Integers:
        """(m,): spaces, drawn by the number of their coordinates."""
        place = coins.integers(self.size, size=m)
        return np.searchsorted(self._ends, place, side="right") - 1

    def contains(self, P: ArrayLike) -> Flags:
        """Whether candidates belong to this space.

        Parameters
        ----------
        P : array-like of shape (m, size)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that do; arrays of another shape do not.
        """
        found = of_shape(P, self.shape, "biuf")
        if found is None:
            return np.zeros(len(np.atleast_1d(P)), dtype=bool)
        real = np.asarray(np.isfinite(found).all(axis=1))
        found = np.where(real[:, None], found, 0)
        parts = self.split(found)
        kept = (self.join(*parts) == found).all(axis=1)  # none of them was rounded
        inside = [one.contains(part) for one, part in zip(self.spaces, parts, strict=True)]
        return np.asarray(real & kept & np.all(inside, axis=0))

    def snap(self, P: ArrayLike) -> Array:
        """The nearest candidate of each part.

        Parameters
        ----------
        P : array-like of shape (m, size)
            Any numbers.

        Returns
        -------
        array of shape (m, size)
            The candidates.
        """
        columns = np.split(np.asarray(P), self._ends[1:-1], axis=1)
        return self._joined(
            one.snap(part.reshape(-1, *one.shape))
            for part, one in zip(columns, self.spaces, strict=True)
        )

    def sample(self, m: int, coins: Coins) -> Array:
        return self._joined(one.sample(m, coins) for one in self.spaces)

    # ---------------------------------------------------------------------------------------- moves

    def all_moves(self, w: Array, step: float) -> tuple[typing.Integers, Array]:
        found = [one.all_moves(part[0], step)
                 for one, part in zip(self.spaces, self.split(w[None]), strict=True)]  # fmt: skip
        where = [own + end for (own, _), end in zip(found, self._ends, strict=False)]
        return np.concatenate(where), np.concatenate([self._plain(what) for _, what in found])

    def some_moves(
        self, w: Array, m: int, step: float, coins: Coins
    ) -> tuple[typing.Integers, Array]:
        """Draw moves: a part by its size, then one of its moves uniformly.

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
        which, parts = self._drawn(m, coins), self.split(w[None])
        where, what = np.empty(m, dtype=np.int64), np.empty(m, dtype=self._types[-1])
        for number, (one, part) in enumerate(zip(self.spaces, parts, strict=True)):
            rows = np.flatnonzero(which == number)
            own_where, own_what = one.some_moves(part[0], len(rows), step, coins)
            where[rows], what[rows] = own_where + self._ends[number], self._plain(own_what)
        return where, what

    def _plain(self, what: Array) -> Array:
        """What a move of a part does, in the type of a row."""
        return np.asarray(what).astype(self._types[-1])

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(w, (len(where), 1))
        which = np.searchsorted(self._ends, where, side="right") - 1
        for number, (one, part) in enumerate(zip(self.spaces, self.split(w[None]), strict=True)):
            rows = np.flatnonzero(which == number)
            start, end = self._ends[number : number + 2]
            own = one.moved(part[0], where[rows] - start, what[rows].astype(self._types[number]))
            P[rows, start:end] = own.reshape(len(rows), one.size)
        return P

    # ------------------------------------------------------------------------------------ operators

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover: the first parts from A, the last from B, one is spliced itself.

        Parameters
        ----------
        A, B : array of shape (m, size)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, size)
            The children.
        """
        cut = self._drawn(len(A), coins)[:, None]
        spliced = self._each(lambda one, a, b: one.splice(a, b, coins), A, B)
        of_part = np.repeat(np.arange(len(self.spaces)), np.diff(self._ends))
        return np.where(of_part < cut, A, np.where(of_part > cut, B, spliced))

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        return self._each(lambda one, a, b: one.mix(a, b, coins), A, B)

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        return self._each(lambda one, a, b, c: one.sibling(a, b, c, coins), A, B, child)

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        mutants, which = np.array(P), self._drawn(len(P), coins)
        for number, (one, part) in enumerate(zip(self.spaces, self.split(P), strict=True)):
            rows = np.flatnonzero(which == number)
            if len(rows):
                own = one.nudge(part[rows], step, coins).reshape(len(rows), one.size)
                mutants[rows, self._ends[number] : self._ends[number + 1]] = own
        return mutants

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        return self._each(lambda one, part: one.jitter(part, step, rate, coins), P)

    def redraw(self, P: Array, rate: float, coins: Coins) -> Array:
        """Draw coordinates of each part anew, with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, size)
            A population.
        rate : float
            Probability that a coordinate is drawn anew.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, size)
            The mutants.
        """
        return self._each(lambda one, part: one.redraw(part, rate, coins), P)
