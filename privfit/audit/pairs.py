"""Paired runs: one history, two neighbouring tables, and every value that went to a mechanism.

A fit is run on the first table and everything that it releases is recorded on a tape. Then it is
run on the second table with the same coins, and each release is answered from the tape. Both runs
have now seen the same outputs, so any remaining difference between them was computed from the one
record in which the tables differ:

- the value passed to each mechanism: its `strain` is at most 1 if the sensitivity is right;
- nothing else. The mechanisms, their order and number, their parameters, the answer, warnings and
  errors must be equal, since all of them are visible.

This is the induction step of every proof by composition, tested: given the same history, each
release is private. With the accountant, which the grants of both runs obey, all that remains is the
distribution of the samplers. No number is estimated, so an alarm is never false; only the pairs
that were tried are tested. A pair that strains a release by s finds every error by a factor above 1
/ s, which is the audit's power for that release.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from privfit._kernels.random import BitSource
from privfit.audit.strains import strain
from privfit.base.cautions import SeedWarning, old_names
from privfit.base.errors import DeclarationError
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Grant, Ledger
from privfit.privacy.mechanisms import Mechanism

__all__ = ["PairedAudit", "PairedStep", "paired", "worst_pair"]

ROUNDING = 1e-9  # of a strain: sums of floats; the least mistake is far larger


@dataclass(frozen=True)
class PairedStep:
    """One release of a paired run: where it happened, its mechanism, and its strain.

    Parameters
    ----------
    place : str
        The function that released.
    mechanism : str
        The mechanism.
    event : Event
        What it was charged for.
    strain : float
        The privacy loss between the two values, as a fraction of the event's.

    See Also
    --------
    PairedAudit : All steps of a run.

    Examples
    --------
    >>> from privfit import DiscreteLaplace
    >>> from privfit.audit import paired
    >>> def size(table, ledger, random_state):
    ...     noise = DiscreteLaplace(epsilon=1.0, sensitivity=1)
    ...     return ledger.reserve(1.0).release(noise, [len(table)], random_state)
    >>> [step.strain for step in paired(size, [1, 2], [1, 2, 3]).steps]
    [1.0]
    """

    place: str
    mechanism: str
    event: Event
    strain: float


@dataclass(frozen=True)
class PairedAudit:
    """What two neighbouring tables showed with one history.

    Parameters
    ----------
    steps : tuple of PairedStep
        Every release, in order.
    differences : tuple of str
        What differed besides the values that went to mechanisms: each is a leak.

    See Also
    --------
    paired, worst_pair : Return it.

    Examples
    --------
    >>> from privfit.audit import PairedAudit
    >>> PairedAudit((), ("the answers differ",)).passes()
    False
    """

    steps: tuple[PairedStep, ...]
    differences: tuple[str, ...]

    @property
    def strain(self) -> float:
        """The largest strain of a release; 0 if there was none."""
        return max((step.strain for step in self.steps), default=0.0)

    @property
    def finds(self) -> float:
        """The power: noise that is too small by more than this factor is detected on this pair."""
        return math.inf if not self.strain else 1 / self.strain

    def passes(self) -> bool:
        """Whether nothing was found.

        Returns
        -------
        bool
            False if a strain exceeds 1, or anything else differed.
        """
        return not self.differences and self.strain <= 1 + ROUNDING


def paired(
    run: Callable[[Any, Ledger, Any], Any], first: Any, second: Any, *, seed: int = 0
) -> PairedAudit:
    """Run anything that releases through a ledger on two neighbouring tables, with one history.

    Parameters
    ----------
    run : callable (table, ledger, random_state) -> answer
        Must pass `ledger` and `random_state` on to everything that it calls, and use no other
        randomness. Its result is compared, too: numbers, arrays, containers of them, fitted
        estimators, or None.
    first, second : object
        Two neighbouring tables under the relation that `run` declares; made up, not private. If
        their numbers of records differ, the last record should be the one that was added: records
        draw coins in turn.
    seed : int, default=0
        Seed of the coins that both runs share, and of the releases of the first.

    Returns
    -------
    PairedAudit
        `passes()` says whether a leak was found, `finds` how small an error this pair would show.

    See Also
    --------
    worst_pair : Several pairs and seeds.
    strain : The measure of one release.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import DiscreteLaplace
    >>> from privfit.audit import paired
    >>> def sum_of_ages(ages, ledger, random_state):  # claimed to be 1-DP for ages up to 100
    ...     grant = ledger.reserve(1.0, name="sum")
    ...     noise = DiscreteLaplace(epsilon=1.0, sensitivity=50)
    ...     return grant.release(noise, [int(np.clip(ages, 0, 100).sum())], random_state)
    >>> found = paired(sum_of_ages, [20, 30, 0], [20, 30, 100])
    >>> found.passes(), found.strain
    (False, 2.0)
    """
    tape = _Tape(seed)
    answers = [_answer(run, first, tape, seed)]
    tape.rewind()
    answers.append(_answer(run, second, tape, seed))
    differences = list(tape.differences)
    if not differences:
        differences += tape.left()
        differences += [
            f"{what} of the two runs differ"
            for what in answers[0]
            if not _same(answers[0][what], answers[1][what])
        ]
    return PairedAudit(tuple(tape.steps), tuple(differences))


def worst_pair(
    run: Callable[[Any, Ledger, Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    seeds: Iterable[int] = (0,),
) -> PairedAudit:
    """The `paired` audit that fails, or strains a release most, over pairs of tables and seeds.

    Parameters
    ----------
    run : callable (table, ledger, random_state) -> answer
        As for `paired`.
    pairs : iterable of (first, second)
        Pairs of neighbouring tables.
    seeds : iterable of int, default=(0,)
        Seeds to try for each pair.

    Returns
    -------
    PairedAudit
        The worst one.

    See Also
    --------
    paired : One pair.

    Examples
    --------
    >>> from privfit import accuracy_score
    >>> from privfit.audit import worst_pair
    >>> def accuracy(labels, ledger, random_state):
    ...     scores = [0.2] * len(labels)
    ...     return accuracy_score(labels, scores, 1.0, ledger=ledger, random_state=random_state)
    >>> found = worst_pair(accuracy, [([0, 1], [0, 1]), ([0, 1], [0, 0])])
    >>> found.passes(), found.finds
    (True, 1.0)
    """
    tried = [paired(run, *pair, seed=seed) for pair in list(pairs) for seed in seeds]
    if not tried:
        raise DeclarationError(
            "pairs must hold at least one pair of tables; pass [(first, second)]"
        )
    return max(tried, key=lambda found: (bool(found.differences), found.strain))


# -------------------------------------------------------------------------------------------- tape


class _Diverged(BaseException):
    """The runs can no longer be compared; no `except Exception` of a run may swallow this."""


class _Tape:
    """What the first run released, and how the second run compares."""

    def __init__(self, seed: int) -> None:
        self.steps: list[PairedStep] = []
        self.differences: list[str] = []
        self._draws: list[tuple[Mechanism[Any, Any], Any, Any]] = []
        self._source = BitSource(seed)  # apart from the run's own coins, which both runs share
        self._next: int | None = None

    @property
    def replays(self) -> bool:
        return self._next is not None

    def rewind(self) -> None:
        self._next = 0

    def draw(self, mechanism: Mechanism[Any, Any], value: Any) -> Any:
        """Draw and record, or compare and read."""
        if self._next is None:
            kept = np.array(value) if isinstance(value, np.ndarray | Sequence) else value
            output = mechanism(value, self._source)
            self._draws.append((mechanism, kept, output))
            return output
        position, self._next = self._next, self._next + 1
        if position == len(self._draws):
            self._diverge("the second run releases more than the first")
        known, before, output = self._draws[position]
        if known != mechanism:
            self._diverge(
                f"release {position + 1} is {known!r} in one run and {mechanism!r} in the other"
            )
        try:
            found = strain(mechanism, before, value, output)
        except ValueError:
            self._diverge(f"the values of release {position + 1} differ in shape")
        self.steps.append(PairedStep(_caller(), repr(mechanism), mechanism.event, found))
        return output

    def left(self) -> list[str]:
        """What the second run did not request."""
        if self._next == len(self._draws):
            return []
        return ["the second run releases less than the first"]

    def _diverge(self, difference: str) -> NoReturn:
        self.differences.append(difference)
        raise _Diverged


def _caller() -> str:
    """The function that requested a release, behind those that pass it on."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_name in ("draw", "__call__", "release"):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"


@dataclass(frozen=True, eq=False)
class _Taped(Mechanism[Any, Any]):
    """A mechanism whose draws are taped; it costs what the mechanism costs."""

    mechanism: Mechanism[Any, Any]
    tape: _Tape

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def __call__(self, value: Any, rng: Any = None) -> Any:
        """Draw, or read the tape; the run's own coins are not used."""
        return self.tape.draw(self.mechanism, value)


class _TapedGrant:
    """A grant whose draws are taped; otherwise the grant itself."""

    def __init__(self, grant: Grant, tape: _Tape) -> None:
        self._grant, self._tape = grant, tape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grant, name)

    def release(self, mechanism: Mechanism[Any, Any], value: Any, rng: Any = None) -> Any:
        """Check, charge, and draw or read."""
        return self._grant.release(_Taped(mechanism, self._tape), value, rng)


class _TapedLedger(Ledger):
    """A ledger that covers each grant by itself, and tapes it."""

    def __init__(self, tape: _Tape) -> None:
        super().__init__(1.0)
        self._tape = tape

    def reserve(self, epsilon: float, delta: float = 0.0, *rest: Any, **named: Any) -> Any:
        """A grant of its own budget."""
        return _TapedGrant(
            Ledger(epsilon, delta).reserve(epsilon, delta, *rest, **named), self._tape
        )


# --------------------------------------------------------------------------------------- comparing


def _answer(run: Any, table: Any, tape: _Tape, seed: int) -> dict[str, Any]:
    """Everything visible of a run: its answer, its warnings, its error."""
    answer, error = None, None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter(
            "ignore", SeedWarning
        )  # both runs are seeded; one of them would say so
        try:
            answer = run(table, _TapedLedger(tape), BitSource(seed))
        except _Diverged:
            pass
        except Exception as problem:
            if not tape.replays:  # the first table must work
                raise
            error = (type(problem).__name__, str(problem))
    said = [(warning.category.__name__, str(warning.message)) for warning in heard]
    return {"errors": error, "warnings": said, "answers": answer}


def _same(one: Any, other: Any) -> bool:
    """Equal bit for bit, as far as an answer is public; for estimators what a fit learned."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if is_dataclass(one) and not isinstance(one, type):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if hasattr(one, "__dict__"):
        return _same(_learned(one), _learned(other))
    return bool(one == other)


def _learned(thing: Any) -> dict[str, Any]:
    """The contents of an object; for an estimator what a fit stored."""
    held = vars(thing)
    return {name: held[name] for name in held if name.endswith("_")} or held


__getattr__ = old_names(__name__, {"Step": "PairedStep"})
