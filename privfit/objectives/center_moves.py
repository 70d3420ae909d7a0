"""Moves away from one set of centres: of one centre, or of one coordinate of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.objectives.common import integer_range
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.centers import CentersRows

if TYPE_CHECKING:
    from privfit.objectives.centers import CentersObjective

FEW_PAIRS = 2e7  # differences of coordinates that a range may take: some 10 ms


class CenterMoves:
    """The sets that differ from a parent in one centre; k times less work than from scratch.

    Parameters
    ----------
    objective : CentersObjective
        The objective.
    centers : array-like of shape (k, d)
        The parent, on the grid.

    See Also
    --------
    privfit.CentersObjective.at : Makes it.

    Examples
    --------
    >>> from privfit import Box, CentersObjective
    >>> objective = CentersObjective([[0.0], [0.25], [1.0]], 2, Box(0, 1))
    >>> moves = objective.at([[0.0], [1.0]])
    >>> moves.candidates([0, 1], [[0.25], [0.5]]).tolist()
    [[[0.25], [1.0]], [[0.0], [0.5]]]
    """

    def __init__(self, objective: CentersObjective, centers: ArrayLike) -> None:
        self._objective = objective
        self._whole = objective._candidates(np.asarray(centers, dtype=np.float64)[None])[0]

    @property
    def centers(self) -> Floats:
        """The parent."""
        return self._whole * self._objective._record_unit

    def _moves(self, which: ArrayLike, centers: ArrayLike) -> tuple[Integers, Floats]:
        objective = self._objective
        which = np.atleast_1d(np.asarray(which))
        centers = np.atleast_2d(np.asarray(centers, dtype=np.float64))
        if which.ndim != 1 or centers.shape != (len(which), objective.n_features):
            raise DeclarationError(
                f"which (shape {which.shape}) and centers (shape {centers.shape}) must match; pass "
                f"one new centre with {objective.n_features} columns for each index"
            )
        if which.dtype.kind not in "iu" or (
            which.size and not (0 <= which.min() and which.max() < objective.n_clusters)
        ):
            raise DeclarationError(
                f"which must hold indices in 0..{objective.n_clusters - 1}; pass centres to replace"
            )
        return which.astype(np.int64), centers

    def candidates(self, which: ArrayLike, centers: ArrayLike) -> Floats:
        """The changed sets themselves.

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The centre that each move replaces.
        centers : array-like of shape (m, d)
            The new centres.

        Returns
        -------
        array of shape (m, k, d)
            The sets.
        """
        which, centers = self._moves(which, centers)
        P = np.tile(self.centers, (len(which), 1, 1))
        P[np.arange(len(which)), which] = centers
        return P

    def scores(self, which: ArrayLike, centers: ArrayLike) -> Integers:
        """The scores with centre which[i] replaced by centers[i].

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The centre that each move replaces.
        centers : array-like of shape (m, d)
            The new centres.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        objective = self._objective
        which, centers = self._moves(which, centers)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        new = objective._candidates(np.repeat(centers[:, None], objective.n_clusters, axis=1))[:, 0]
        objective._check_room(self._covers(which, new))
        return -objective._sums.sum(CentersRows.moved_costs, self._whole, which, new)

    def _covers(self, which: Integers, new: Floats) -> Floats:
        """(m,): `CentersObjective._cover` of the changed sets, without making them."""
        objective = self._objective
        kept = np.tile(objective._farthest(self._whole[None])[0], (len(which), 1))
        kept[np.arange(len(which)), which] = objective._farthest(new[None])[0]
        return np.asarray(kept.min(axis=1))

    def step(self, which: int, center: ArrayLike) -> None:
        """Replace one centre of the parent.

        Parameters
        ----------
        which : int
            The centre to replace.
        center : array-like of shape (d,)
            The new centre.
        """
        index, new = self._moves([which], np.asarray(center, dtype=np.float64)[None])
        self._whole = self._objective._candidates(self.candidates(index, new))[0]


class CenterSteps:
    """The sets that differ from a parent in one coordinate of one centre."""

    def __init__(self, objective: CentersObjective, centers: ArrayLike) -> None:
        self._objective, self._at = objective, objective.at(centers)

    @property
    def w(self) -> Floats:
        """The parent."""
        return self._at.centers

    @property
    def model(self) -> Floats:
        """The parent as a candidate of the objective: itself."""
        return self.w

    def _moved(self, coords: ArrayLike, steps: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """The centre of each move, where it was and where it goes."""
        coords, steps = np.atleast_1d(coords), np.atleast_1d(np.asarray(steps, dtype=np.float64))
        which, column = np.divmod(coords, self._objective.n_features)
        old = self.w[which]
        new = old.copy()
        new[np.arange(len(coords)), column] += steps
        return which, old, new

    def candidates(self, coords: ArrayLike, steps: ArrayLike) -> Floats:
        """(m, k, d): the moved sets themselves."""
        which, _, new = self._moved(coords, steps)
        return self._at.candidates(which, new)

    def scores(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """int64 (m,): the scores of the moved sets."""
        which, _, new = self._moved(coords, steps)
        return self._at.scores(which, new)

    def prior(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(np.size(coords), dtype=np.int64)

    def range(self, coords: ArrayLike, steps: ArrayLike, adjacency: Adjacency) -> int:
        """`CentersObjective.range` of these sets if they are few, or else a bound on it.

        That takes a time of m^2 k^2 d; the bound takes m, and may be twice as wide. Let up_i be the
        supremum over t of dist(t, new_i) - dist(t, old_i), down_i the other way round, both at
        least 0. A record nearest to an unmoved centre of set j costs no more in set i; so cost_i -
        cost_j is at most up_i + down_j if both moved the same centre, and at most
        max(up_i, down_j) if not, since a record is nearest to one centre alone.
        """
        neighbours = Neighbours.of(adjacency)
        coords, steps = np.atleast_1d(coords), np.atleast_1d(np.asarray(steps, dtype=np.float64))
        _, first = np.unique(np.column_stack([coords, steps]), axis=0, return_index=True)
        if len(first) == 1:
            return 0
        objective, (k, d) = self._objective, self.w.shape
        if (len(first) * k) ** 2 * d <= FEW_PAIRS:
            return objective.range(self.candidates(coords[first], steps[first]), neighbours)
        which, old, new = self._moved(coords[first], steps[first])
        old, new = old / objective._record_unit, new / objective._record_unit
        objective._check_room(self._at._covers(which, new), neighbours)
        gaps = objective._step_gaps(old, new)
        up, down = (np.maximum(gap, 0.0) for gap in gaps)
        bound = neighbours.span(-down, up).max()
        for centre in np.unique(which):
            here = which == centre
            if neighbours.replaces:
                both = np.sort(up[here] + down[here])
                bound = max(bound, both[-2:].sum())
            else:
                bound = max(bound, _largest_pair(up[here], down[here]))
        if neighbours.replaces:
            for one in (up, down):
                tops = [one[which == centre].max() for centre in np.unique(which)]
                bound = max(bound, sum(sorted(tops)[-2:]))
        return integer_range(float(bound), 1.0, 0, exact=objective.domain.exact_distances)

    def step(self, coord: ArrayLike, step: ArrayLike) -> None:
        """Move the parent."""
        which, _, new = self._moved(coord, step)
        self._at.step(int(which[0]), new[0])


def _largest_pair(up: Floats, down: Floats) -> float:
    """The largest up_i + down_j with i and j different; 0 if there is one alone."""
    if len(up) == 1:
        return 0.0
    i, j = int(up.argmax()), int(down.argmax())
    if i != j:
        return float(up[i] + down[j])
    others = np.arange(len(up)) != i
    return float(max(up[i] + down[others].max(), up[others].max() + down[j]))
