"""Moves away from one linear model: scored by the loss, or by the clipped gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.candidates import ELSEWHERE, FINE, NOT_FINITE, whole_moves
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.objectives.common import integer_range, refuse_candidates
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.linear import LinearRows

if TYPE_CHECKING:
    from privfit.objectives.linear import LinearObjective


class LinearMoves:
    """The candidates w + step e_coord around one parent w.

    Their scores are equal to those of `LinearObjective.scores` bit for bit; only a column's
    non-zeros are read.

    Parameters
    ----------
    objective : LinearObjective
        The objective.
    w : array-like of shape (n_weights,)
        The parent, on the grid.

    See Also
    --------
    privfit.LinearObjective.at : Makes it.

    Examples
    --------
    >>> from privfit import Box, LinearObjective
    >>> objective = LinearObjective([[-1.0], [1.0]], [0, 1], domain=Box(-1, 1))
    >>> objective.at([0.5, 0.0]).candidates([0, 1], [0.5, -0.25]).tolist()
    [[1.0, 0.0], [0.5, -0.25]]
    """

    def __init__(self, objective: LinearObjective, w: ArrayLike) -> None:
        w = np.asarray(w, dtype=np.float64)
        if w.ndim != 1:
            raise DeclarationError(f"w (shape {w.shape}) must be one candidate; pass a vector")
        self._objective, self._safe = objective, objective._safe_margin()
        self._move_to(objective._candidates(w[None])[1][0])

    @property
    def w(self) -> Floats:
        """The parent."""
        return (self._whole * self._objective.domain.weight_units())[: self._objective.n_weights]

    @property
    def model(self) -> Floats:
        """The parent as a candidate of the objective: itself."""
        return self.w

    def _move_to(self, whole: Floats) -> None:
        """Take these weights, in whole units of the grid, as the parent."""
        objective = self._objective
        padded = whole * objective.domain.weight_units()
        self._whole, self._norm = whole, float(objective.domain.norm(padded)[0])
        self._margin = float(np.abs(padded) @ objective._largest_record)

    def _moves(self, coords: ArrayLike, steps: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """Coordinates, steps in whole units, and bounds on the norms of the moved candidates."""
        objective = self._objective
        coords = np.atleast_1d(np.asarray(coords))
        steps = np.atleast_1d(np.asarray(steps, dtype=np.float64))
        if coords.ndim != 1 or coords.shape != steps.shape:
            raise DeclarationError(
                f"coords (shape {coords.shape}) and steps (shape {steps.shape}) must be vectors "
                "of one length; pass one step for each coordinate"
            )
        if coords.dtype.kind not in "iu":
            raise DeclarationError(
                f"coords (dtype {coords.dtype}) must be whole numbers; pass indices"
            )
        coords, whole, norms = coords.astype(np.int64), np.empty(len(steps)), np.empty(len(steps))
        verdict = whole_moves(
            coords, np.ascontiguousarray(steps), objective.n_weights,
            objective.domain.weight_units(), objective._largest_record, whole, norms,
        )  # fmt: skip
        if verdict == ELSEWHERE:
            last = objective.n_weights - 1
            raise DeclarationError(f"coords must lie in 0..{last}, an intercept last; pass indices")
        if verdict == NOT_FINITE:
            raise DeclarationError("steps must be finite; pass steps without NaN or infinity")
        if verdict != FINE:
            refuse_candidates(True, "steps on the grid")
        norms += self._norm
        return coords, whole, norms

    def candidates(self, coords: ArrayLike, steps: ArrayLike) -> Floats:
        """The moved candidates themselves.

        Parameters
        ----------
        coords : array-like of int of shape (m,)
            The coordinate of each move.
        steps : array-like of shape (m,)
            The signed step of each move.

        Returns
        -------
        array of shape (m, n_weights)
            The candidates.
        """
        coords, whole, _ = self._moves(coords, steps)
        return self._moved(coords, whole)

    def _moved(self, coords: Integers, whole: Floats) -> Floats:
        P = np.tile(self._whole, (len(coords), 1))
        P[np.arange(len(coords)), coords] += whole
        return (P * self._objective.domain.weight_units())[:, : self._objective.n_weights]

    def scores(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """The scores of w + steps[i] e_coords[i].

        Parameters
        ----------
        coords : array-like of int of shape (m,)
            The coordinate of each move.
        steps : array-like of shape (m,)
            The signed step of each move.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        objective = self._objective
        coords, whole, norms = self._moves(coords, steps)
        if coords.size == 0:
            return np.empty(0, dtype=np.int64)
        farther = float(norms.max()) - self._norm
        if self._margin + farther >= self._safe:
            objective._scored(self._moved(coords, whole))
        return -objective._sums.sum(LinearRows.moved_losses, self._whole, coords, whole, farther)

    def prior(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """`LinearObjective.prior` of the moved candidates.

        Parameters
        ----------
        coords : array-like of int of shape (m,)
            The coordinate of each move.
        steps : array-like of shape (m,)
            The signed step of each move.

        Returns
        -------
        array of int64 of shape (m,)
            What to add to the scores. It is public.
        """
        objective = self._objective
        coords, whole, _ = self._moves(coords, steps)
        if objective.l2 == 0:
            return np.zeros(len(coords), dtype=np.int64)
        unit = 2.0**-objective.grid.b  # of a weight in units of its column's scale
        w, step = self._whole[:-1] * unit, whole * unit
        grown = step * (2 * np.append(w, 0.0)[coords] + step)
        return objective._priors(w @ w + np.where(coords == len(w), 0.0, grown))

    def step(self, coord: int, step: float) -> None:
        """Move the parent.

        Parameters
        ----------
        coord : int
            The coordinate.
        step : float
            The signed step.
        """
        coords, steps, norms = self._moves([coord], [step])
        if self._margin + float(norms[0]) - self._norm >= self._safe:
            self._objective._candidates(self._moved(coords, steps))
        moved = self._whole.copy()
        moved[coords] += steps
        self._move_to(moved)

    def range(self, coords: ArrayLike, steps: ArrayLike, adjacency: Adjacency) -> int:
        """The range of these moves' scores: at least that of `LinearObjective.range`, and fast.

        With r_i = abs(steps[i]) max abs(x_coord), two moved candidates differ by at most the sum of
        the two largest r_i, and no norm exceeds N(w) plus the largest.

        Parameters
        ----------
        coords : array-like of int of shape (m,)
            The coordinate of each move.
        steps : array-like of shape (m,)
            The signed step of each move.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        neighbours, objective = Neighbours.of(adjacency), self._objective
        _, whole, norms = self._moves(coords, steps)
        if not objective._has_room(float(norms.max(initial=0.0)), neighbours):
            objective._scored(self.candidates(coords, steps), neighbours)
        if not whole.any():
            return 0
        if objective.loss == "zero_one":
            return neighbours.changes
        reach = norms - self._norm
        B, D = norms.max(), np.partition(reach, max(0, len(reach) - 2))[-2:].sum()
        if objective.loss == "logistic":
            gap = np.logaddexp(0, B) - np.logaddexp(0, B - D)
            bound = min(2 * gap, 2 * B) if neighbours.replaces else gap
        elif neighbours.replaces:
            bound = objective.C * min(2 * D, 2 * min(2 * B, 1 + B))
        else:
            bound = objective.C * min(D, 1 + B)
        return integer_range(float(bound), objective.unit, neighbours.changes)


class LinearSlopes:
    """Moves of centred weights by +-step along one coordinate, scored by the clipped gradient.

    A move scores the gradient of its coordinate with its sign; its size does not enter, so one
    record changes the difference of two scores by at most 2 x_max cap (add or remove) or 4 x_max
    cap (replace), x_max = 1/2: less than the loss itself allows, and one pass serves all moves.
    """

    def __init__(self, objective: LinearObjective, position: ArrayLike, cap: float) -> None:
        self._objective, self._cap = objective, objective._cap(cap)
        self.w = np.asarray(position)

    @property
    def w(self) -> Floats:
        """The present position, for reading; assign another to leap there."""
        return self._w

    @w.setter
    def w(self, position: Floats) -> None:
        self._w = np.array(position, dtype=np.float64)
        self._w.setflags(write=False)
        self._model = self._objective.centred.weights(self._w)

    @property
    def model(self) -> Floats:
        """(n_weights,): the linear candidate at the present position."""
        return self._model

    def scores(self, coords: Integers, steps: Floats) -> Integers:
        """int64 (m,): the gradient along each move."""
        found = self._objective.followed_gradient(self._model, self._cap)
        gradient = self._objective.centred.gradient(found)
        return gradient[coords] * np.sign(steps).astype(np.int64)

    def prior(self, coords: Integers, steps: Floats) -> Integers:
        """int64 (m,): zeros; the slope of a regulariser is lost beside that of many records."""
        return np.zeros(len(coords), dtype=np.int64)

    def range(self, coords: Integers, steps: Floats, adjacency: Adjacency) -> int:
        """The range of the scores; the same wherever the view stands."""
        ways = 2 * Neighbours.of(adjacency).changes
        return ways * self._objective.centred.largest * self._cap

    def step(self, coord: int, step: float) -> None:
        """Move."""
        w = self._w.copy()
        w[coord] += step
        self.w = w
