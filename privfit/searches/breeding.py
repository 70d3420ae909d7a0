"""How `PrivGene` and `DPSGA` use operators: completed, checked before the charge, and shown.

Operators of privfit name the methods of a space that they need. A user's function is tried on a few
candidates before anything is charged, and what it returns in a run is checked: it must be
candidates of the space, as many as were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Array, Coins
from privfit.base.validation import is_finite
from privfit.runs.protocols import Space
from privfit.runs.settings import Settings, check_shares
from privfit.runs.spaces import side_by_side
from privfit.searches.operators import Operator

__all__ = ["Breeding", "Proposal", "check_operators", "crossing", "mutating", "needed", "own_field"]

T = TypeVar("T")
Proposal: TypeAlias = Callable[..., Array]  # a crossover, a mutation or starts

CALLS = {
    "crossover": "a function (space, A, B, coins) -> children",
    "mutation": "a function (space, P, scale, coins) -> mutants",
    "schedule": "a function (generation, generations) -> factor",
    "starts": "a function (space, m, coins) -> candidates",
}
USUAL = {"crossover": "Uniform()", "mutation": "Gaussian(0.1)", "schedule": "Decay(0.9)",
         "starts": "RandomStarts()"}  # fmt: skip


@dataclass(frozen=True)
class Breeding:
    """The operators of a search, completed; `rate` is the fraction of children that are crossed.

    A rate of None means all, without a draw. `both` children of a pair are used, or the first.
    """

    crossover: Proposal
    rate: float | None
    mutation: Proposal
    schedule: Callable[[int, int], float]
    starts: Proposal
    both: bool

    def _is_ours(self, name: str) -> bool:
        return isinstance(getattr(self, name), Operator)

    def first(self, space: Space, m: int, coins: Coins) -> Array:
        """m candidates to start from."""
        found = self._asked("starts", lambda: self.starts(space, m, coins))
        return self._checked("starts", space, m, found)

    def children(self, space: Space, parents: Array, m: int, coins: Coins) -> Array:
        """m children of pairs of parents, crossed at a rate and otherwise copies."""
        pairs = (m + 1) // 2 if self.both else m
        first, second = parents[coins.integers(len(parents), size=(2, pairs))]
        if self.rate is None:
            first, second = self._crossed(space, first, second, coins)
        else:
            hit = np.flatnonzero(coins.random(pairs) < self.rate)
            if len(hit):
                first[hit], second[hit] = self._crossed(space, first[hit], second[hit], coins)
        return side_by_side(first, second)[:m] if self.both else first

    def _crossed(self, space: Space, A: Array, B: Array, coins: Coins) -> tuple[Array, Array]:
        """The child of each pair, and the other one if both are used."""
        child = self._asked("crossover", lambda: self.crossover(space, A, B, coins))
        child = self._checked("crossover", space, len(A), child)
        return child, space.sibling(A, B, child, coins) if self.both else B

    def mutants(
        self, space: Space, P: Array, generation: int, generations: int, coins: Coins
    ) -> Array:
        """The mutants of a generation, whose steps have the size that the schedule says."""
        scale = self._asked("schedule", lambda: self.schedule(generation, generations))
        if not is_finite(scale) or scale < 0:
            raise DeclarationError(
                f"schedule ({shown(self.schedule)}) must return a factor of at least 0, which is a "
                f"finite number, for generation {generation} of {generations}; correct it"
            )
        mutants = self._asked("mutation", lambda: self.mutation(space, P, scale, coins))
        return self._checked("mutation", space, len(P), mutants)

    def _asked(self, name: str, call: Callable[[], T]) -> T:
        """What an operator returns; a user's that fails is named."""
        try:
            return call()
        except Exception as error:
            if self._is_ours(name):
                raise
            raise DeclarationError(
                f"{name} ({shown(getattr(self, name))}) raised {type(error).__name__}; it must be "
                f"{CALLS[name]}: correct it"
            ) from error

    def _checked(self, name: str, space: Space, m: int, P: Array) -> Array:
        """What an operator returned; that of a user's must be m candidates of the space."""
        if self._is_ours(name):
            return P
        P = np.asarray(P)
        if P.shape != (m, *space.shape):
            raise DeclarationError(
                f"{name} ({shown(getattr(self, name))}) must return candidates of shape "
                f"{(m, *space.shape)}, not {P.shape}; correct it"
            )
        contains = getattr(space, "contains", None)
        if contains is not None and not contains(P).all():
            raise DeclarationError(
                f"{name} ({shown(getattr(self, name))}) must return candidates that lie in "
                f"{space!r}; correct it, or let it return space.snap(P)"
            )
        return P

    def check(self, space: Space) -> None:
        """Refuse operators of a user that fail on the space; ours say what they need of it."""
        if all(map(self._is_ours, CALLS)):
            return
        coins = np.random.default_rng(0)
        P = self.first(space, 4, coins)
        tried = replace(self, rate=None).children(space, P, 4, coins)
        self.mutants(space, tried, 0, 2, coins)

    def shown(self, settings: Settings) -> dict[str, object]:
        """The operators that were passed to a search, as they are used, for its `Release`."""
        passed = [name for name in CALLS if callable(vars(settings)[name])]
        return {name: shown(getattr(self, name)) for name in passed}


def shown(operator: object) -> object:
    """An operator by its name, with the values of its fields if it has some."""
    if is_dataclass(operator) and not isinstance(operator, type):
        own = {one.name: getattr(operator, one.name) for one in fields(operator)}
        return {"operator": type(operator).__name__, **own}
    if hasattr(operator, "__qualname__"):
        return f"{operator.__module__}.{operator.__qualname__}"
    return f"{type(operator).__module__}.{type(operator).__qualname__}"


def completed(operator: T, **usual: float | None) -> T:
    """An operator with the search's values in fields that were left out."""
    if not is_dataclass(operator) or isinstance(operator, type):
        return operator
    blanks = [one.name for one in fields(operator) if getattr(operator, one.name) is None]
    made: Any = replace(operator, **{name: usual[name] for name in blanks if name in usual})
    return made


def crossing(
    given: float | Proposal | None, usual: Proposal, rate: float | None
) -> tuple[Proposal, float | None]:
    """The crossover and the fraction of children that it is for, of what was given for both."""
    if given is None:
        return usual, rate
    if not callable(given):
        return usual, given
    found = completed(given, rate=rate)
    return found, getattr(found, "rate", None)


def mutating(given: Proposal, step: float | None, space: Space) -> Proposal:
    """A mutation with the search's step, and a rate of 1 / (coordinates + 1), if it has none."""
    found = completed(given, step=step)
    lacks_rate = getattr(found, "rate", 0.0) is None
    return completed(found, rate=1 / (space.size + 1)) if lacks_rate else found


def needed(both: bool, *parts: object) -> tuple[str, ...]:
    """The methods of a space that operators call; nothing is known of a user's function."""
    own = [name for part in parts if isinstance(part, Operator) for name in part.needs]
    size = ["size"] if any(getattr(part, "rate", 0.0) is None for part in parts[1:]) else []
    return (*dict.fromkeys(size + own), *(("sibling",) if both else ()))


def own_field(operator: object, name: str, usual: float) -> float | None:
    """What a setting beside an operator is: the operator's, else the usual; None without effect."""
    if not callable(operator):
        return usual
    if not hasattr(operator, name):
        return None
    own: float | None = getattr(operator, name)
    return usual if own is None else own


# ------------------------------------------------------------------------------------------ checks


def check_operators(settings: Settings, numbers: tuple[str, ...] = ("crossover",)) -> None:
    """Refuse settings that are no operators; `numbers` may be fractions instead.

    A step or a decay beside an operator must be the operator's own, or left out.
    """
    for name, call in CALLS.items():
        given = vars(settings)[name]
        if given is None:
            continue
        if name in numbers and not callable(given):
            check_shares(settings, name)
        elif not callable(given) or isinstance(given, type) or _is_for_other(given, name):
            number = "a fraction, " if name in numbers else ""
            raise DeclarationTypeError(
                f"{name} ({given!r}) must be {number}an operator such as {USUAL[name]}, or {call}; "
                "pass one of them"
            )
    for name, operator, field in (("step", "mutation", "step"), ("decay", "schedule", "factor")):
        _check_beside(settings, name, operator, field)


def _is_for_other(operator: object, name: str) -> bool:
    """Whether an operator of privfit is meant for another setting."""
    return isinstance(operator, Operator) and operator.setting != name


def _check_beside(settings: Settings, name: str, operator: str, field: str) -> None:
    passed, part = vars(settings).get(name), vars(settings)[operator]
    if passed is None or not callable(part):
        return
    own = getattr(part, field, math.nan)
    if own is not None and own != passed:
        raise DeclarationError(
            f"{name} ({passed!r}) must be left out beside {operator}={part!r}; pass it there"
        )
