"""Objectives of users, which see records: what they are handed, and what is taken from them.

A user's objective gets copies of candidates that it cannot write into, so that what a search
reports is what it proposed. That goes for a class that inherits from one of ours, too. A user's
view is followed: the candidate that is reported after a step is the one that the space makes of the
move, and not what the view says.

Code of users that is called before the charge gets an objective without records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import ismethod
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.frozen import frozen
from privfit.base.typing import Array, Integers
from privfit.objectives.common import Objective as Ours
from privfit.privacy.neighbours import Neighbours
from privfit.runs.failures import checked_range, checked_scores
from privfit.runs.protocols import Space, View

__all__ = ["Followed", "GuestObjective", "complete", "is_ours", "without_records"]


def is_ours(part: object) -> bool:
    """Whether the class of an object is one of privfit's, and not one that inherits from it."""
    return type(part).__module__.partition(".")[0] == "privfit"


class GuestObjective:
    """An objective of a user: it gets frozen candidates, and has `spread` in any case."""

    def __init__(self, objective: Any) -> None:
        self._objective = objective

    def __repr__(self) -> str:
        return f"<{type(self._objective).__name__} of private records>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself, such as those of copies
            raise AttributeError(name)
        found = getattr(self._objective, name)
        return _handed(found) if ismethod(found) else found

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # solvers may ask which objective it is
        return type(self._objective)

    def scores(self, P: Array) -> Integers:
        """The scores. They are private."""
        return checked_scores(np.array(self._objective.scores(frozen(P))), len(P))

    def prior(self, P: Array) -> Integers:
        """The part that does not depend on records."""
        return checked_scores(np.array(self._objective.prior(frozen(P))), len(P))

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How much the difference of two scores can change between neighbours."""
        return checked_range(self._objective.range(frozen(P), neighbours))

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The objective's own, or else the range."""
        own = getattr(self._objective, "spread", self._objective.range)
        return checked_range(own(frozen(P), neighbours))


def _handed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Another method of a user's objective: it gets frozen arrays, and so do those it makes."""
    kind = type(method.__self__)  # type: ignore[attr-defined]

    def kept(value: Any) -> Any:
        return frozen(value) if isinstance(value, np.ndarray) else value

    @wraps(method)
    def called(*args: Any, **named: Any) -> Any:
        found = method(*map(kept, args), **{n: kept(one) for n, one in named.items()})
        return GuestObjective(found) if isinstance(found, kind) else found

    return called


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
        return checked_scores(np.array(self._view.scores(frozen(where), frozen(what))), len(where))

    def prior(self, where: Integers, what: Array) -> Integers:
        """The part that does not depend on records, after each move."""
        return checked_scores(np.array(self._view.prior(frozen(where), frozen(what))), len(where))

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""
        return checked_range(self._view.range(frozen(where), frozen(what), neighbours))

    def step(self, where: int, what: Any) -> None:
        """Move."""
        self._view.step(where, frozen(what))
        self.w = self._space.moved(self.w, np.asarray(where), np.asarray(what))[0]


# -------------------------------------------------------------------------------- before the charge

PUBLIC = ("n_records", "range", "prior", "spread", "domain", "candidate_units", "n_weights",
          "n_features", "n_clusters")  # fmt: skip


class _Unread:
    """In place of the records of an objective of ours: what is public about them."""

    def __init__(self, sums: Any, has_size: bool) -> None:
        self.n_features, self.column_names = sums.n_features, sums.column_names
        if has_size:
            self.n_records = sums.n_records

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself, such as those of copies
            raise AttributeError(name)
        raise DeclarationError(_UNREAD)

    def try_one(self, *question: Any) -> None:
        """Nothing: privfit tries a user-defined score itself."""


class _Public:
    """An objective of a user, with what is public about it."""

    def __init__(self, objective: Any, neighbours: Neighbours) -> None:
        for name in PUBLIC[0 if neighbours.size_is_public else 1 :]:
            if hasattr(objective, name):
                setattr(self, name, getattr(objective, name))

    def __getattr__(self, name: str) -> Any:
        if name in ("scores", "at", "around", "gradient", "n_records"):
            raise DeclarationError(_UNREAD)
        raise AttributeError(name)


_UNREAD = (
    "an objective must not be asked about records before the charge; ask for its range, its prior "
    "or its domain in check(task), and for scores within the run"
)


def without_records(objective: Any, neighbours: Neighbours) -> Any:
    """An objective for code of users that is called before the charge: it answers what is public.

    Whatever such code raises reaches the caller, and nothing was paid.
    """
    if isinstance(objective, Ours):
        return objective._over(without_sums(objective._sums, neighbours.size_is_public))
    return _Public(objective, neighbours)


def without_sums(sums: Any, has_size: bool = False) -> Any:
    """What is public about packed records; to ask for anything else is an error."""
    return _Unread(sums, has_size)


# ------------------------------------------------------------------------------------------- a door


def complete(objective: Any) -> Any:
    """An objective of ours itself, or a user's one with all that a search may ask for."""
    has = [hasattr(objective, part) for part in ("n_records", "scores", "range", "prior")]
    if isinstance(objective, Ours) and is_ours(objective):  # or one of a user that is wrapped
        return objective
    is_wrapped = isinstance(objective, GuestObjective)
    return objective if is_wrapped or not all(has) else GuestObjective(objective)
