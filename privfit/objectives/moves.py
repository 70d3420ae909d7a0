"""Moves away from one candidate, for objectives without a faster way than to score each anew."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.typing import Array, Coins, Integers
from privfit.privacy.neighbours import Neighbours

__all__ = ["MoveSpace", "Moves", "Scored"]


class MoveSpace(Protocol):
    """What is asked of a space here: what moves are, and some moves to try."""

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates."""

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw moves away from a candidate."""

    def moved(self, w: Array, where: Array, what: Array) -> Array:
        """The candidates after each move."""


class Scored(Protocol):
    """What is asked of an objective here."""

    def scores(self, P: Array) -> Integers:
        """The scores of candidates."""

    def prior(self, P: Array) -> Integers:
        """The part that does not depend on records."""

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How much the difference of two scores can change between neighbours."""


class Moves:
    """The candidates around w, scored one by one."""

    def __init__(self, objective: Scored, w: Array, space: MoveSpace) -> None:
        self._objective, self._space, self.w = objective, space, w

    @property
    def model(self) -> Array:
        """The candidate that moves start from."""
        return self.w

    def candidates(self, where: Array, what: Array) -> Array:
        """The moved candidates themselves.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        return self._space.moved(self.w, where, what)

    def scores(self, where: Integers, what: Array) -> Integers:
        """The scores after each move.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        return np.asarray(self._objective.scores(self.candidates(where, what)))

    def prior(self, where: Integers, what: Array) -> Integers:
        """The part of the objective that does not depend on records, after each move.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.

        Returns
        -------
        array of int64 of shape (m,)
            What to add to the scores. It is public.
        """
        return np.asarray(self._objective.prior(self.candidates(where, what)))

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        return int(self._objective.range(self.candidates(where, what), neighbours))

    def step(self, where: int, what: ArrayLike) -> None:
        """Move.

        Parameters
        ----------
        where, what : int and number
            The move.
        """
        self.w = self.candidates(np.asarray(where), np.asarray(what))[0]
