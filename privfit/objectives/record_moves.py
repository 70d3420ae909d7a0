"""Moves away from one candidate of a user-defined score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privfit.base.typing import Array, Integers
from privfit.objectives.moves import Moves
from privfit.privacy.neighbours import Adjacency

if TYPE_CHECKING:
    from privfit.objectives.record import RecordObjective


class RecordMoves(Moves):
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
    privfit.RecordObjective.at : Makes it.

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

    _objective: RecordObjective

    def scores(self, where: Integers, what: Array) -> Integers:
        if self._objective.has_moves:
            return self._objective.moved_scores(self.w, where, what)
        return super().scores(where, what)

    def prior(self, where: Integers, what: Array) -> Integers:
        return self._objective.prior(where)  # zeros

    def range(self, where: Integers, what: Array, adjacency: Adjacency) -> int:
        return self._objective.range(where, adjacency)  # the same for all candidates
