"""Objectives of users, which see records: what they are handed, and what is taken from them.

A user's objective gets copies of candidates that it cannot write into, so that what a search
reports is what it proposed. A user's view is followed: the candidate that is reported after a step
is the one that the space makes of the move, and not what the view says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privfit.base.frozen import frozen
from privfit.base.typing import Array, Integers
from privfit.objectives.common import Objective as Ours
from privfit.privacy.neighbours import Neighbours
from privfit.runs.protocols import Objective, Space, View

__all__ = ["Followed", "GuestObjective", "complete"]


class GuestObjective:
    """An objective of a user: it gets frozen candidates, and has `spread` in any case."""

    def __init__(self, objective: Any) -> None:
        self._objective = objective

    def __repr__(self) -> str:
        return f"<{type(self._objective).__name__} of private records>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself, such as those of copies
            raise AttributeError(name)
        return getattr(self._objective, name)

    def scores(self, P: Array) -> Integers:
        """The scores. They are private."""
        return np.array(self._objective.scores(frozen(P)))

    def prior(self, P: Array) -> Integers:
        """The part that does not depend on records."""
        return np.array(self._objective.prior(frozen(P)))

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How much the difference of two scores can change between neighbours."""
        return self._objective.range(frozen(P), neighbours)

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The objective's own, or else the range."""
        own = getattr(self._objective, "spread", self._objective.range)
        return own(frozen(P), neighbours)


class Followed:
    """A view of a user's objective, whose candidate is kept here."""

    def __init__(self, view: View, space: Space, w: Array) -> None:
        self._view, self._space, self.w = view, space, w

    @property
    def model(self) -> Array:
        """The candidate that moves start from."""
        return self.w

    def scores(self, where: Integers, what: Array) -> Integers:
        """The scores after each move. They are private."""
        return np.array(self._view.scores(frozen(where), frozen(what)))

    def prior(self, where: Integers, what: Array) -> Integers:
        """The part that does not depend on records, after each move."""
        return np.array(self._view.prior(frozen(where), frozen(what)))

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""
        return self._view.range(frozen(where), frozen(what), neighbours)

    def step(self, where: int, what: Any) -> None:
        """Move."""
        self._view.step(where, frozen(what))
        self.w = self._space.moved(self.w, np.asarray(where), np.asarray(what))[0]


def complete(objective: Any) -> Objective | Any:
    """An objective of ours itself, or a user's one with all that a search may ask for."""
    has = [hasattr(objective, part) for part in ("n_records", "scores", "range", "prior")]
    if isinstance(objective, Ours | GuestObjective) or not all(has):
        return objective
    return GuestObjective(objective)
