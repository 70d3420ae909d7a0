"""The ledger: what was promised, what was spent, and the one door through which numbers leave.

A `Ledger` holds a budget. A fit takes a `Grant` of it: charged whole when it is made, accounted
tightly inside, and never returned, so that an interrupted run leaves a ledger that tells the truth.
`grant.release(mechanism, value, rng)` checks that the grant still covers the draw, records it, and
only then draws. `grant.close` gives the `Release`: everything that is public afterwards, enough for
somebody else to recompute the guarantee.

Grants on one set of records add up: epsilons and deltas. Grants on groups of records that are
declared disjoint (a training and a test set) cost the largest of the groups:

    with ledger.group("train"):
        model.fit(X_train, y_train)
    with ledger.group("test"):
        roc_curve(y_test, model.predict_proba(X_test)[:, 1], epsilon=1.0, ledger=ledger)

This is parallel composition. Neighbours differ in one record, hence in one group. Fix all that was
released so far: what the other groups release next has the same distribution for both neighbours,
though it may depend on releases of any group, as test scores do on a released model. So the loss
comes from one group's grants and the common ones alone. It holds if *a record that is added,
removed or replaced leaves the others in their groups*, and itself stays in its own if replaced. A
split by position or by a public seed does so under 'replace'. Under 'add_remove' it does not, since
one more record shifts the others: let the group depend on the record alone, which in turn will not
do under 'replace', where the new record may belong to another group.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

from privfit.accounting import Event, compose
from privfit.checks import is_finite
from privfit.mechanisms import Mechanism

__all__ = ["Budget", "BudgetError", "Grant", "Ledger", "Release", "reserve_from"]

ADJACENCIES = ("replace", "add_remove")
LEAST, MOST = 1e-9, 1e6  # of epsilon: noise and rates stay within 64 bits, and draws quick
VERSION = 1
NOT_OURS = "text must be JSON written by to_json; pass it unchanged"


class BudgetError(RuntimeError):
    """A release that the budget does not cover. Nothing was drawn.

    >>> from privfit import BudgetError, Ledger
    >>> try:
    ...     Ledger(epsilon=1.0).reserve(2.0)
    ... except BudgetError:
    ...     print("refused")
    refused
    """


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) guarantee.

    >>> from privfit import Budget
    >>> print(Budget(1.0, 1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon < 0:
            raise ValueError(
                f"epsilon ({self.epsilon!r}) must be a number from 0 on; pass a budget such as 1.0"
            )
        if not is_finite(self.delta) or not 0 <= self.delta < 1:
            raise ValueError(f"delta ({self.delta!r}) must lie in [0, 1); pass one such as 1e-6")
        object.__setattr__(self, "epsilon", float(self.epsilon))  # Fraction refuses numpy's float32
        object.__setattr__(self, "delta", float(self.delta))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g}, delta {self.delta:.6g}"


Entry: TypeAlias = tuple[str, str, Budget]  # group, name, what was reserved


@dataclass(frozen=True)
class Release:
    """All that is public after a fit: what was drawn, what it cost, and under which declarations.

    `parameters` are the released values; `settings` the method's own; `domain` how records were
    bounded. `verify` recomputes the cost from the events.

    >>> from privfit import DiscreteLaplace, Ledger, Release
    >>> grant = Ledger(epsilon=1.0).reserve(1.0, name="a count")
    >>> count = grant.release(DiscreteLaplace(epsilon=1.0, sensitivity=1), [1000])
    >>> release = grant.close("add_remove", parameters={"count": count})
    >>> Release.from_json(release.to_json()).verify()
    True
    """

    name: str
    epsilon: float
    delta: float
    adjacency: str
    events: tuple[Event, ...]
    domain: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False

    def cost(self) -> float:
        """Epsilon at delta of the events, recomputed."""
        return compose(self.events, self.delta)

    def verify(self) -> bool:
        """Whether the events cost no more than was promised; an error if they do."""
        cost = self.cost()
        if cost > self.epsilon:
            raise BudgetError(
                f"release {self.name!r} promises epsilon {self.epsilon:.6g} but its events cost "
                f"{cost:.6g} at delta {self.delta:.6g}; do not rely on it"
            )
        return True

    def to_json(self) -> str:
        """This release as JSON; `from_json` reads it back."""
        return json.dumps({"privfit": VERSION, **_plain(self)}, indent=2, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read what `to_json` wrote."""
        return _release(fields_of(text))


def _release(fields: dict[str, Any]) -> Release:
    events = tuple(Event(**event) for event in fields["events"])
    return Release(**{**fields, "events": events})


Kind: TypeAlias = tuple[str, float, float]  # kind, parameter and delta: what makes events equal


def _kind(event: Event) -> Kind:
    return event.kind, float(event.parameter), float(event.delta)


def _counted(events: Iterable[Event]) -> Counter[Kind]:
    counts: Counter[Kind] = Counter()
    for event in events:
        counts[_kind(event)] += event.count
    return counts


def _events(counts: Counter[Kind]) -> tuple[Event, ...]:
    return tuple(Event(kind, size, count, delta) for (kind, size, delta), count in counts.items())


def _named(events: Iterable[Event]) -> str:
    return ", ".join(f"{e.count} {e.kind} release(s) of size {e.parameter:.6g}" for e in events)


class Grant:
    """A fit's own part of a budget, made by `Ledger.reserve`; charged whole when it was made.

    `plan` says in advance what will be drawn, and is accounted once; draws within the plan cost
    nothing more to check, and the draw after the last one planned is refused unless it fits too.
    """

    def __init__(
        self, name: str, budget: Budget, lock: threading.RLock, publish: Callable[[Release], None]
    ) -> None:
        self._name, self._budget, self._lock, self._publish = name, budget, lock, publish
        self._planned: Counter[Kind] = Counter()
        self._drawn: Counter[Kind] = Counter()
        self._closed = self._seeded = False

    def __repr__(self) -> str:
        return f"Grant({self._name!r}, {self._budget}{' (closed)' if self._closed else ''})"

    def __reduce__(self) -> Any:
        raise TypeError("a grant cannot be copied or pickled: it would be spent twice")

    @property
    def name(self) -> str:
        """What the grant is for."""
        return self._name

    @property
    def budget(self) -> Budget:
        """What was reserved."""
        return self._budget

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn so far, equal events counted together."""
        with self._lock:
            return _events(self._drawn)

    @property
    def spent(self) -> float:
        """Epsilon, at the grant's delta, of what was drawn so far."""
        return compose(self.events, self._budget.delta)

    def plan(self, *events: Event) -> None:
        """Set these draws aside, on top of what was planned before; an error if they do not fit."""
        with self._lock:
            self._check_open()
            planned = self._planned + _counted(events)
            cost = compose(_events(planned), self._budget.delta)
            if cost > self._budget.epsilon:
                raise BudgetError(
                    f"grant {self._name!r} has {self._budget}, but what is planned with "
                    f"{_named(events)} costs epsilon {cost:.6g}; reserve more, or plan fewer or "
                    "smaller draws"
                )
            self._planned = planned

    def release(self, mechanism: Mechanism, value: Any, rng: Any = None) -> Any:
        """Check, charge, draw: the drawn value.

        The draw is charged before it is made, so one that fails or is interrupted stays charged.
        """
        self._charge(mechanism, rng)
        return mechanism(value, rng)

    def _charge(self, mechanism: Mechanism, rng: Any) -> None:
        event = mechanism.event
        key = _kind(event)
        with self._lock:
            self._check_open()
            drawn = self._drawn[key] + event.count
            missing = drawn - self._planned[key]
            if missing > 0:
                self.plan(replace(event, count=missing))
            self._drawn[key] = drawn
            self._seeded |= rng is not None and getattr(rng, "seeded", True)

    def _check_open(self) -> None:
        if self._closed:
            raise BudgetError(
                f"grant {self._name!r} is closed: its release was made; reserve another"
            )

    def close(
        self,
        adjacency: str = "replace",
        domain: Any = "",
        settings: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Release:
        """End the grant, once, and say what is public now."""
        if adjacency not in ADJACENCIES:
            raise ValueError(
                f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
            )
        with self._lock:
            self._check_open()
            self._closed = True
            release = Release(
                self._name, self._budget.epsilon, self._budget.delta, adjacency, self.events,
                str(domain), dict(settings or {}), dict(parameters or {}), self._seeded,
            )  # fmt: skip
            self._publish(release)
        return release


class Ledger:
    """A budget shared by several fits.

    ``Ledger(epsilon=1.0, delta=1e-6)``; `reserve` takes grants of it, `spent` and `remaining` say
    where it stands. It survives `sklearn.clone` as the same object. Pickling gives a closed copy
    that shows what was spent and refuses to spend: a worker process cannot spend unseen.

    Examples
    --------
    >>> from privfit import DiscreteLaplace, Ledger
    >>> ledger = Ledger(epsilon=1.0)
    >>> grant = ledger.reserve(0.75, name="count")
    >>> noisy = grant.release(DiscreteLaplace(0.75, sensitivity=1), [1234])
    >>> release = grant.close(parameters={"count": noisy})
    >>> ledger
    Ledger(epsilon 1, delta 0; spent epsilon 0.75, delta 0)
    >>> ledger.reserve(0.5)
    Traceback (most recent call last):
        ...
    privfit.ledger.BudgetError: the ledger has epsilon 0.25, delta 0 left of epsilon 1, delta 0, \
but 'fit' asks for epsilon 0.5, delta 0; ask for less, or start a larger ledger
    """

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self._budget = Budget(epsilon, delta)
        self._entries: list[Entry] = []
        self._grants: list[Grant] = []
        self._releases: list[Release] = []
        self._scopes = threading.local()
        self._lock = threading.RLock()
        self._closed = ""

    def __repr__(self) -> str:
        state = " (closed)" if self._closed else ""
        return f"Ledger({self._budget}; spent {self.spent}{state})"

    @property
    def budget(self) -> Budget:
        """What was promised."""
        return self._budget

    @property
    def entries(self) -> tuple[Entry, ...]:
        """(group, name, budget) of every grant, in order."""
        return tuple(self._entries)

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn through the grants of this process."""
        return tuple(event for grant in self._grants for event in grant.events)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public: the release of every grant that was closed, in order."""
        return tuple(self._releases)

    @property
    def spent(self) -> Budget:
        """What was reserved: sums within a group of records, the largest over disjoint groups."""
        epsilon, delta = self._total(self.entries)
        return Budget(_up(epsilon), _up(delta))

    @property
    def remaining(self) -> Budget:
        """What can still be reserved for all records."""
        return self._left(self.entries)

    def remaining_for(self, group: str) -> Budget:
        """What can still be reserved for one group of records; '' is all of them."""
        if not group:
            return self.remaining
        return self._left(entry for entry in self.entries if entry[0] in ("", group))

    def _left(self, entries: Iterable[Entry]) -> Budget:
        epsilon, delta = self._total(entries)
        return Budget(
            _down(max(Fraction(self._budget.epsilon) - epsilon, Fraction(0))),
            _down(max(Fraction(self._budget.delta) - delta, Fraction(0))),
        )

    @staticmethod
    def _total(entries: Iterable[Entry]) -> tuple[Fraction, Fraction]:
        """Exact sums: the common group counts in each of the others."""
        epsilons: dict[str, Fraction] = {"": Fraction(0)}
        deltas: dict[str, Fraction] = {"": Fraction(0)}
        for group, _, budget in entries:
            epsilons[group] = epsilons.get(group, Fraction(0)) + Fraction(budget.epsilon)
            deltas[group] = deltas.get(group, Fraction(0)) + Fraction(budget.delta)
        common = epsilons.pop(""), deltas.pop("")
        return (
            common[0] + max(epsilons.values(), default=Fraction(0)),
            common[1] + max(deltas.values(), default=Fraction(0)),
        )

    def reserve(
        self, epsilon: float, delta: float = 0.0, name: str = "fit", group: str | None = None
    ) -> Grant:
        """A grant, charged whole now.

        `group` names a set of records that is declared disjoint from every other group's; by
        default the one that this thread is in, and outside of all a grant may concern all records.
        """
        group = getattr(self._scopes, "group", "") if group is None else group
        wanted = Budget(epsilon, delta)
        if wanted.epsilon == 0:
            raise ValueError("epsilon (0) must be positive to reserve; pass a budget such as 1.0")
        with self._lock:
            if self._closed:
                raise BudgetError(f"this ledger is closed: {self._closed}")
            full_name = "/".join([*self._path(), name])
            entry = (group, full_name, wanted)
            self._charge(entry)
            grant = self._grant(entry)
            self._grants.append(grant)
            return grant

    def _charge(self, entry: Entry) -> None:
        """Keep an entry, or refuse it; what is not kept is not granted."""
        self._check_covers(entry)
        self._entries.append(entry)

    def _check_covers(self, entry: Entry) -> None:
        if self._exceeded_by([*self._entries, entry]):
            group, name, wanted = entry
            raise BudgetError(
                f"the ledger has {self.remaining_for(group)} left of {self._budget}, but "
                f"{name!r} asks for {wanted}; ask for less, or start a larger ledger"
            )

    def _exceeded_by(self, entries: Iterable[Entry]) -> bool:
        epsilon, delta = self._total(entries)
        return epsilon > Fraction(self._budget.epsilon) or delta > Fraction(self._budget.delta)

    def _publish(self, release: Release) -> None:
        """Keep the release of a grant that is closed."""
        self._releases.append(release)

    def _grant(self, entry: Entry) -> Grant:
        _, name, budget = entry
        return Grant(name, budget, self._lock, self._publish)

    @contextmanager
    def scope(self, name: str) -> Iterator[Ledger]:
        """Name what is reserved inside: ``with ledger.scope("selection"): ...``."""
        outside = self._path()
        self._scopes.path = (*outside, name)
        try:
            yield self
        finally:
            self._scopes.path = outside

    @contextmanager
    def group(self, name: str) -> Iterator[Ledger]:
        """Declare that what is reserved inside concerns this group of records alone.

        Groups are disjoint: no record is in two of them. See the top of this module.
        """
        outside = getattr(self._scopes, "group", "")
        if not isinstance(name, str) or not name:
            raise ValueError(f"name ({name!r}) must name a group of records; pass a text")
        if outside not in ("", name):
            raise ValueError(
                f"group ({name!r}) must not lie within group {outside!r}, from which it is "
                "disjoint; leave that one first"
            )
        self._scopes.group = name
        try:
            yield self
        finally:
            self._scopes.group = outside

    def _path(self) -> tuple[str, ...]:
        """The scopes that this thread is in."""
        return getattr(self._scopes, "path", ())

    def cost(self, scope: str) -> Budget:
        """What was reserved within a scope."""
        inside = [entry for entry in self.entries if f"{entry[1]}/".startswith(f"{scope}/")]
        epsilon, delta = self._total(inside)
        return Budget(_up(epsilon), _up(delta))

    def nested(self, epsilon: float, delta: float = 0.0, name: str = "part") -> Ledger:
        """A ledger of its own within this one: charged whole here, shared out there."""
        self.reserve(epsilon, delta, name)
        return Ledger(epsilon, delta)

    # ------------------------------------------------------------------------- copies and files

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: Any) -> Ledger:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self._budget, "entries": self.entries, "releases": self.releases}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["budget"].epsilon, state["budget"].delta)  # type: ignore[misc]
        self._entries, self._releases = list(state["entries"]), list(state["releases"])
        self._closed = "it is a copy; spend from the original, or fit in the process that holds it"

    def to_json(self) -> str:
        """Budget, grants and releases as JSON: all that is public of a whole run."""
        return ledger_json(self._budget, self.entries, self.releases)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what `to_json` wrote: an open ledger with its grants charged and its releases."""
        return ledger_of(fields_of(text))


def ledger_json(
    budget: Budget, entries: Sequence[Entry], releases: Sequence[Release], **more: str
) -> str:
    """A ledger as JSON, with the fields of who keeps it."""
    shown = [{"group": group, "name": name, **asdict(cost)} for group, name, cost in entries]
    fields = {"privfit": VERSION, **more, **asdict(budget)}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items()]
    lines += [f'"entries": {_rows(shown)}', f'"releases": {_rows(releases)}']
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"


def _rows(items: Iterable[Any]) -> str:
    """A list, one item a line: twice as quick to write as `indent`, and shorter to read."""
    rows = ",\n    ".join(json.dumps(item, default=_plain) for item in items)
    return f"[\n    {rows}\n  ]"


def ledger_of(fields: dict[str, Any]) -> Ledger:
    """The ledger of the fields that `ledger_json` wrote; refuses one that is overspent."""
    try:
        ledger = Ledger(fields["epsilon"], fields["delta"])
        for entry in fields["entries"]:
            budget = Budget(entry["epsilon"], entry["delta"])
            ledger._entries.append((entry["group"], entry["name"], budget))
        ledger._releases = [_release(made) for made in fields.get("releases", [])]
        overspent = ledger._exceeded_by(ledger._entries)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(NOT_OURS) from None
    if overspent:
        raise BudgetError("this ledger has reserved more than its budget; do not rely on it")
    return ledger


def reserve_from(ledger: Ledger | None, epsilon: float, delta: float, name: str) -> Grant:
    """A grant of this ledger, or of one of its own; what is wrong is refused before the charge."""
    if isinstance(epsilon, Real) and 0 < epsilon and not LEAST <= epsilon <= MOST:
        raise ValueError(
            f"epsilon ({epsilon!r}) must lie between {LEAST:g} and {MOST:g}; pass a budget such as "
            "1.0"
        )
    if ledger is None:
        ledger = Ledger(epsilon, delta)
    if not isinstance(ledger, Ledger):
        raise TypeError(
            f"ledger ({type(ledger).__name__}) must be a Ledger; pass Ledger(epsilon, delta)"
        )
    return ledger.reserve(epsilon, delta, name)


def fields_of(text: str | bytes) -> dict[str, Any]:
    """The fields of a release or a ledger, as `to_json` wrote them in this version."""
    try:
        fields: dict[str, Any] = json.loads(text)
        version = fields.pop("privfit")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(NOT_OURS) from None
    if version != VERSION:
        raise ValueError(f"version ({version!r}) must be {VERSION}; use the privfit that wrote it")
    return fields


def _plain(value: Any) -> Any:
    """Events, settings and numpy's numbers as JSON's; of others, an estimator, what they print."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _up(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _down(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)
