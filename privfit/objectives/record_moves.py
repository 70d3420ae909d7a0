"""Moves away from one candidate of a user-defined score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.typing import Array, Coins, Integers
from privfit.privacy.neighbours import Adjacency

if TYPE_CHECKING:
    from privfit.objectives.record import RecordObjective


class MoveSpace(Protocol):
    """What is asked of a space here: what moves are, and some moves to try."""

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates."""

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw moves away from a candidate."""

    def moved(self, w: Array, where: Array, what: Array) -> Array:
        """The candidates after each move."""


class RecordMoves:
    """The candidates around one candidate of a `RecordObjective`.

    Their scores are those of the objective's function for moves; without one, the moved candidates
    are scored one by one.

    Parameters
    ----------
    objective : RecordObjective
        The objective.
    w : array
        The candidate.
    space : Space
        The space of candidates, which says what a move is.

    See Also
    --------
    RecordObjective.at : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Reals, RecordObjective
    >>> def nearness(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> def moved(x, w, where, what):
    ...     return -np.abs(x[:, None] - (w[0] + what))
    >>> objective = RecordObjective(np.zeros(9), nearness, -10.0, 0.0, moves=moved)
    >>> view = objective.at(np.array([5.0]), Reals(-10, 10, 1))
    >>> view.step(0, -2.0)
    >>> view.w.tolist()
    [3.0]
    """

    def __init__(self, objective: RecordObjective, w: Array, space: MoveSpace) -> None:
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
        if self._objective.has_moves:
            return self._objective.moved_scores(self.w, where, what)
        return self._objective.scores(self.candidates(where, what))

    def prior(self, where: Integers, what: Array) -> Integers:
        """Zeros: there is no data-free part.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.

        Returns
        -------
        array of int64 of shape (m,)
            Zeros.
        """
        return self._objective.prior(where)

    def range(self, where: Integers, what: Array, adjacency: Adjacency) -> int:
        """The range of these scores between neighbours.

        Parameters
        ----------
        where, what : array of shape (m,)
            The moves.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        return self._objective.range(where, adjacency)

    def step(self, where: int, what: ArrayLike) -> None:
        """Move.

        Parameters
        ----------
        where, what : int and number
            The move.
        """
        self.w = self.candidates(np.asarray(where), np.asarray(what))[0]
