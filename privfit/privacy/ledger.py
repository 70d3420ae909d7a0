"""The ledger: what was promised, what was spent, and the one door through which numbers leave.

A `Ledger` holds a budget. A fit takes a `Grant` of it: charged whole when it is made, accounted
tightly inside, and never returned, so that an interrupted run leaves a ledger that tells the truth.
`grant.release(mechanism, value, rng)` checks that the grant still covers the draw, records it, and
only then draws. `grant.close` gives the `Release`: everything that is public afterwards, enough for
somebody else to recompute the guarantee.

A ledger counts under one neighbour relation and one privacy unit. A grant under 'add_remove' is
charged to a ledger under 'replace' as the two steps that a replacement is; the other way round it
is refused, since no number of steps leads there.

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

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from fractions import Fraction
from numbers import Real
from typing import TypedDict, cast
from weakref import WeakSet

from privfit.base.errors import BudgetError, DeclarationError, DeclarationTypeError
from privfit.base.json import parse, write
from privfit.base.rounding import exact, rounded_down, rounded_up
from privfit.base.tables import Frame, as_frame
from privfit.privacy.accounting import Event
from privfit.privacy.budgets import Budget
from privfit.privacy.cards import ledger_card
from privfit.privacy.charges import (
    UNKNOWN,
    Charge,
    Entry,
    Running,
    charge_of,
    decimals,
    relations_of,
    total,
)
from privfit.privacy.fields import LedgerFields, ReleaseFields
from privfit.privacy.grants import (
    FORKED,
    NOT_OURS,
    Grant,
    Release,
    fields_of,
    release_of,
    told_apart,
    written_fields,
)
from privfit.privacy.neighbours import (
    ADJACENCIES,
    REPLACE,
    Adjacency,
    Neighbours,
    check_rows,
    relation_of,
)

__all__ = [
    "ADJACENCIES",
    "Budget",
    "BudgetError",
    "Entry",
    "Grant",
    "Ledger",
    "Release",
    "reserve_from",
]

LEAST, MOST = 1e-9, 1e6  # of epsilon: noise and rates stay within 64 bits, and draws quick
VERSION = 2  # of a ledger as JSON; the first knew no relations
FILES = 3  # the version of budget files, which have reservations besides


class _State(TypedDict):
    """What a pickle of a ledger holds."""

    charges: tuple[Charge, ...]
    releases: tuple[Release, ...]
    adjacency: str | None
    max_rows: int


class Ledger:
    """A budget shared by several fits.

    `reserve` takes grants of it; `spent` and `remaining` show its state. It survives
    `sklearn.clone` as the same object. Pickling makes a closed copy that shows what was spent and
    refuses to spend, and so does a fork: a worker process cannot spend unnoticed.

    Parameters
    ----------
    epsilon : float
        The budget. Decimals add up exactly: three times 0.1 is 0.3.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    adjacency : {'replace', 'add_remove'} or None, default=None
        The neighbour relation of the guarantee; by default that of the first grant that has one.
    max_rows : int, default=1
        How many rows one person may own. More than 1 is stored and shown, but nothing can be
        reserved yet: fits bound the influence of a row.

    See Also
    --------
    open_ledger : A ledger in a file.
    Release : What a closed grant leaves.

    Examples
    --------
    >>> from privfit import DiscreteLaplace, Ledger
    >>> ledger = Ledger(epsilon=1.0, adjacency="replace")
    >>> grant = ledger.reserve(0.75, name="count")
    >>> noisy = grant.release(DiscreteLaplace(0.75, sensitivity=1), [1234])
    >>> release = grant.close(parameters={"count": noisy})
    >>> ledger
    Ledger(epsilon 1, delta 0; spent epsilon 0.75, delta 0; replace)
    >>> ledger.reserve(0.5)
    Traceback (most recent call last):
        ...
    privfit.base.errors.BudgetError: the ledger has epsilon 0.25, delta 0 left of epsilon 1, \
delta 0, but 'fit' asks for epsilon 0.5, delta 0 under 'replace'; ask for less, or start a larger \
ledger
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | None = None,
        max_rows: int = 1,
    ) -> None:
        self._budget = Budget(epsilon, delta)
        relation = None if adjacency is None else Neighbours.of(adjacency).relation
        self._max_rows = check_rows(max_rows, "max_rows")
        self._neighbours = None if relation is None else Neighbours(relation, self._max_rows)
        self._outer: Ledger | None = None  # the one that a nested ledger is a part of
        self._charges: list[Charge] = []
        self._grants: list[Grant] = []
        self._releases: list[Release] = []
        self._scopes = threading.local()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = ""
        _LEDGERS.add(self)

    def __repr__(self) -> str:
        return f"Ledger({self._shown()}{' (closed)' if self._closed else ''})"

    def _repr_html_(self) -> str:
        return ledger_card(self)

    def _shown(self) -> str:
        spent = replace(self.spent, adjacency=None)
        relation = relation_of(self._known())
        unit = f"; {relation}" if relation else ""
        rows = f"; max_rows {self._max_rows}" if self._max_rows > 1 else ""
        return f"{self._budget}; spent {spent}{unit}{rows}"

    def _promise(self) -> Budget:
        """The budget with the relation that it is under."""
        return replace(self._budget, adjacency=relation_of(self._known()))

    @property
    def budget(self) -> Budget:
        """What was promised."""
        return self._budget

    @property
    def adjacency(self) -> str | None:
        """The neighbour relation; None until it is declared."""
        return relation_of(self.neighbours)

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation and the privacy unit; None until the relation is declared."""
        return self._known()

    def _known(self) -> Neighbours | None:
        """The same as far as it was heard of here."""
        if self._neighbours is None and self._outer is not None:
            return self._outer.neighbours
        return self._neighbours

    @property
    def max_rows(self) -> int:
        """How many rows one person may own."""
        return self._max_rows

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What every grant requested and under which relation, in order."""
        return tuple(self._charges)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """(group, name, budget) of every grant, in order: its cost under the relation."""
        charges, neighbours = self.charges, self._known()
        return tuple((one.group, one.name, one.cost(neighbours)) for one in charges)

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn through the grants of this process."""
        return tuple(event for grant in self._grants for event in grant.events)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public: the release of every closed grant, in order."""
        return tuple(self._releases)

    @property
    def spent(self) -> Budget:
        """What was reserved: sums within a group of records, the largest over disjoint groups."""
        return self._cost_of(self._counting())

    @property
    def remaining(self) -> Budget:
        """What can still be reserved for all records."""
        return self._left(self._counting())

    def _counting(self) -> Iterable[Entry]:
        """The entries that take from the budget as it is now: all, unless it renews."""
        return self.entries

    def remaining_for(self, group: str) -> Budget:
        """What can still be reserved for one group of records.

        Parameters
        ----------
        group : str
            The group; '' is all records.

        Returns
        -------
        Budget
            What is left.
        """
        if not group:
            return self.remaining
        return self._left(entry for entry in self._counting() if entry[0] in ("", group))

    def cost(self, scope: str) -> Budget:
        """What was reserved within a scope.

        Parameters
        ----------
        scope : str
            The name of the scope.

        Returns
        -------
        Budget
            What was reserved.
        """
        return self._cost_of(e for e in self.entries if f"{e[1]}/".startswith(f"{scope}/"))

    def _cost_of(self, entries: Iterable[Entry]) -> Budget:
        epsilon, delta = total(entries)
        return Budget(
            rounded_up(epsilon, exact), rounded_up(delta, exact), relation_of(self._known())
        )

    def _left(self, entries: Iterable[Entry]) -> Budget:
        (epsilon, delta), (whole_epsilon, whole_delta) = total(entries), decimals(self._budget)
        return Budget(
            rounded_down(max(whole_epsilon - epsilon, Fraction(0)), exact),
            rounded_down(max(whole_delta - delta, Fraction(0)), exact),
            relation_of(self._known()),
        )

    def reserve(
        self,
        epsilon: float,
        delta: float = 0.0,
        name: str = "fit",
        group: str | None = None,
        adjacency: Adjacency | None = None,
    ) -> Grant:
        """Reserve a grant, charged in full now.

        Parameters
        ----------
        epsilon : float
            What the grant may spend.
        delta : float, default=0.0
            The delta that the grant may spend.
        name : str, default='fit'
            What it is for.
        group : str or None, default=None
            A set of records that is declared disjoint from every other group's; by default the
            group that this thread is in. Outside all groups a grant may concern all records.
        adjacency : {'replace', 'add_remove'} or None, default=None
            The relation under which the grant is spent; by default the ledger's own. Under
            'add_remove' it costs (2 epsilon, (1 + e^epsilon) delta) of a ledger under 'replace'.

        Returns
        -------
        Grant
            The grant. It is never returned to the ledger, even if it is not used.

        Raises
        ------
        BudgetError
            If the ledger does not cover it.
        """
        self._check_process()
        group = getattr(self._scopes, "group", "") if group is None else group
        relation = None if adjacency is None else Neighbours.of(adjacency).relation
        wanted = Budget(epsilon, delta)
        if wanted.epsilon == 0:
            raise DeclarationError(
                "epsilon (0) must be positive to reserve; pass a budget such as 1.0"
            )
        Neighbours("replace", self._max_rows).check_one_row(
            "max_rows", " to reserve", "start a ledger with max_rows=1"
        )
        with self._lock:
            if self._closed:
                raise BudgetError(f"this ledger is closed: {self._closed}")
            charge = Charge(group, "/".join([*self._path(), name]), wanted, relation)
            self._charge(charge)
            grant = self._grant(charge)
            self._grants.append(grant)
        grant.tell_reserved()
        return grant

    def _charge(self, charge: Charge) -> None:
        """Store a charge, or refuse it."""
        neighbours = self._check_covers(charge)
        if self._outer is not None and neighbours is not None and self._known() is None:
            self._outer.agree(neighbours)
            neighbours = self._check_covers(charge)  # others may have been declared meanwhile
        self._charges.append(charge)
        self._neighbours = neighbours

    def _check_covers(self, charge: Charge) -> Neighbours | None:
        """The neighbours for which the ledger also covers this charge; refuse it if none do."""
        neighbours = self._neighbours_with(charge)
        cost = charge.cost(neighbours)
        sums = self._sums_beside(charge, neighbours)
        if sums.exceeds(self._budget, (charge.group, charge.name, cost)):
            beside = self._beside(charge)
            entries = [(one.group, one.name, one.cost(neighbours)) for one in beside]
            raise BudgetError(self._shortage(entries, charge, cost, relation_of(neighbours)))
        return neighbours

    def _beside(self, charge: Charge) -> list[Charge]:
        """The charges that take from the same budget as this one."""
        return self._charges

    def _sums_beside(self, charge: Charge, neighbours: Neighbours | None) -> Running:
        """The sums of those charges."""
        beside = self._beside(charge)
        return Running((one.group, one.name, one.cost(neighbours)) for one in beside)

    def _neighbours_with(self, charge: Charge) -> Neighbours | None:
        """The ledger's neighbours, or what they become with a charge.

        Charges of the first version have a relation of their own before their ledger has one.
        """
        if self._known() is not None:
            return self._known()
        earlier = {one.adjacency for one in self._charges} - {None}
        if earlier and charge.adjacency is None:
            raise BudgetError(
                "the ledger is of an earlier version, which did not say under which relation it "
                f"counts, and neither does {charge.name!r}; pass adjacency='replace' or "
                "'add_remove'"
            )
        relation = REPLACE.relation if REPLACE.relation in earlier else charge.adjacency
        return None if relation is None else Neighbours(relation, self._max_rows)

    def _shortage(
        self, entries: list[Entry], charge: Charge, cost: Budget, relation: str | None
    ) -> str:
        """Why a charge is refused: numbers that differ, and what can be done."""
        left = self._left(e for e in entries if not charge.group or e[0] in ("", charge.group))
        epsilons, deltas = (
            told_apart(have, need) if need > have else (f"{have:.6g}", f"{need:.6g}")
            for have, need in ((left.epsilon, cost.epsilon), (left.delta, cost.delta))
        )
        under = f" under {relation!r}" if relation else ""
        asks = f"epsilon {epsilons[1]}, delta {deltas[1]}{under}"
        if cost != charge.budget:
            asks = f"{charge.budget} under 'add_remove', which is {asks}"
        remedy = "ask for less, or start a larger ledger"
        if any(one.adjacency == UNKNOWN for one in self._charges):
            remedy += (
                "; charges of unknown relation count as 'add_remove' here: if you know that they "
                "are not, open the file with adjacency='replace'"
            )
        return (
            f"the ledger has epsilon {epsilons[0]}, delta {deltas[0]} left of {self._budget}, but "
            f"{charge.name!r} asks for {asks}; {remedy}"
        )

    def _exceeded_by(self, entries: Iterable[Entry]) -> bool:
        """Whether they add up to more than the budget: see `Running.exceeds`."""
        return Running(entries).exceeds(self._budget)

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours: its own, or these from now on.

        Parameters
        ----------
        neighbours : Neighbours or None
            The relation to declare if there is none; None is 'replace'.

        Returns
        -------
        Neighbours
            Those that the ledger counts for.
        """
        with self._lock:
            known = self._known()
            if known is None:
                known = neighbours or REPLACE
                if self._outer is not None:
                    known = self._outer.agree(known)
                self._neighbours = known
            return known

    def publish(self, release: Release) -> None:
        """Keep the release of a closed grant.

        Parameters
        ----------
        release : Release
            The release.
        """
        self._releases.append(release)

    def _grant(self, charge: Charge) -> Grant:
        return Grant(*self._terms(charge))

    def _terms(self, charge: Charge) -> tuple[str, Budget, threading.RLock, Ledger]:
        """The arguments of a grant; its budget has the relation, if that is known."""
        relation = charge.adjacency or relation_of(self._known())
        return charge.name, replace(charge.budget, adjacency=relation), self._lock, self

    def nested(
        self,
        epsilon: float,
        delta: float = 0.0,
        name: str = "part",
        adjacency: Adjacency | None = None,
    ) -> Ledger:
        """Make a ledger within this one: charged in full here, divided there.

        Parameters
        ----------
        epsilon : float
            The budget of the new ledger.
        delta : float, default=0.0
            Its delta.
        name : str, default='part'
            What it is for.
        adjacency : {'replace', 'add_remove'} or None, default=None
            Its neighbour relation; by default this ledger's.

        Returns
        -------
        Ledger
            The new ledger.
        """
        self.reserve(epsilon, delta, name, adjacency=adjacency)
        inner = Ledger(epsilon, delta, adjacency)
        inner._outer = self
        return inner

    @contextmanager
    def scope(self, name: str) -> Iterator[Ledger]:
        """Name what is reserved inside: ``with ledger.scope("selection"): ...``.

        Parameters
        ----------
        name : str
            The name of the scope.

        Yields
        ------
        Ledger
            This ledger.
        """
        outside = self._path()
        self._scopes.path = (*outside, name)
        try:
            yield self
        finally:
            self._scopes.path = outside

    @contextmanager
    def group(self, name: str) -> Iterator[Ledger]:
        """Declare that what is reserved inside concerns only this group of records.

        Groups are disjoint: no record is in two of them. See the top of this module.

        Parameters
        ----------
        name : str
            The name of the group.

        Yields
        ------
        Ledger
            This ledger.
        """
        outside = getattr(self._scopes, "group", "")
        if not isinstance(name, str) or not name:
            raise DeclarationError(f"name ({name!r}) must name a group of records; pass a text")
        if outside not in ("", name):
            raise DeclarationError(
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

    # ----------------------------------------------------------------- copies, forks and files

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[type[Ledger], tuple[float, float], _State]:
        """A closed copy, wherever the original is stored."""
        return Ledger, (self._budget.epsilon, self._budget.delta), self.__getstate__()

    def __getstate__(self) -> _State:
        return {
            "charges": self.charges,
            "releases": self.releases,
            "adjacency": relation_of(self._known()),
            "max_rows": self._max_rows,
        }

    def __setstate__(self, state: _State) -> None:
        self._charges, self._releases = list(state["charges"]), list(state["releases"])
        relation, self._max_rows = state["adjacency"], state["max_rows"]
        self._neighbours = None if relation is None else Neighbours(relation, self._max_rows)
        self._closed = "it is a copy; spend from the original, or fit in the process that holds it"

    def _check_process(self) -> None:
        """Called before the lock is taken: in a forked child the parent may seem to hold it."""
        if os.getpid() != self._process:
            self._after_fork()

    def _after_fork(self) -> None:
        """Close the copy in a forked child: it shows what was spent, and spends nothing."""
        self._lock, self._process = threading.RLock(), os.getpid()
        self._closed = self._closed or FORKED
        for grant in self._grants:
            grant.close_in_fork(self._lock)

    def to_json(self) -> str:
        """Write budget, relation, grants and releases as JSON: everything public about a whole run.

        Returns
        -------
        str
            The text.
        """
        charges, releases = self.charges, self.releases
        return ledger_json(self._promise(), charges, releases, self._max_rows, **self._more())

    def _more(self) -> dict[str, str]:
        """Fields of a kind of ledger of its own."""
        return {}

    def to_dict(self) -> dict[str, object]:
        """Budget, relation, grants and releases as plain values: what `to_json` writes.

        Returns
        -------
        dict
            Numbers, texts, lists and dicts.
        """
        return parse(self.to_json(), finite=False)

    def to_frame(self) -> Frame:
        """The table of the grants: what each requested, and what it cost.

        Returns
        -------
        pandas.DataFrame
            A row for each grant: its `group` and `name`, the `epsilon` and `delta` that it
            requested under its `adjacency`, and the `charged_epsilon` and `charged_delta` under
            the ledger's.
        """
        charges, costs = self.charges, [budget for _, _, budget in self.entries]
        return as_frame({
            "group": [one.group for one in charges],
            "name": [one.name for one in charges],
            "epsilon": [one.budget.epsilon for one in charges],
            "delta": [one.budget.delta for one in charges],
            "adjacency": [one.adjacency or self.adjacency for one in charges],
            "charged_epsilon": [cost.epsilon for cost in costs],
            "charged_delta": [cost.delta for cost in costs],
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        Ledger
            An open ledger with its grants charged and its releases.
        """
        return ledger_of(cast("LedgerFields", fields_of(text, *range(1, FILES + 1))))


_LEDGERS: WeakSet[Ledger] = WeakSet()


def _after_fork() -> None:
    for ledger in list(_LEDGERS):
        ledger._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


# ------------------------------------------------------------------------------------------- JSON


def ledger_json(
    promise: Budget,
    charges: Iterable[Charge],
    releases: Iterable[Release],
    max_rows: int = 1,
    **more: str,
) -> str:
    """A ledger as JSON, with additional fields `more`."""
    relation = promise.adjacency
    neighbours = None if relation is None else Neighbours(relation, max_rows)
    shown = [charge.fields(neighbours) for charge in charges]
    fields = {"privfit": VERSION, **more, **asdict(promise), "max_rows": max_rows}
    lines = [f"{write(name)}: {write(value)}" for name, value in fields.items()]
    lines += [f'"entries": {_rows(shown)}', f'"releases": {_rows(map(written_fields, releases))}']
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"


def _rows(items: Iterable[object]) -> str:
    """A list, one item per line: twice as fast to write as `indent`, and shorter to read."""
    rows = ",\n    ".join(write(item) for item in items)
    return f"[\n    {rows}\n  ]"


def ledger_of(fields: LedgerFields) -> Ledger:
    """The ledger with the fields that `ledger_json` wrote; an overspent one is refused."""
    if fields.get("renewal") is not None:
        raise DeclarationError(
            f"renewal ({fields['renewal']!r}) is for budget files, whose entries have times; open "
            "the file by open_ledger"
        )
    try:
        entries, made = fields["entries"], fields.get("releases", [])
        if fields["privfit"] == 1:
            ledger = Ledger(fields["epsilon"], fields["delta"])
            relations: list[str | None] = relations_of(entries, made)
        else:
            unit = fields.get("adjacency"), fields.get("max_rows", 1)
            ledger = Ledger(fields["epsilon"], fields["delta"], *unit)
            relations = [entry.get("adjacency", UNKNOWN) for entry in entries]
        ledger._charges = list(map(charge_of, entries, relations))
        ledger._releases = [release_of(_without_run(one)) for one in made]
        overspent = ledger._exceeded_by(ledger.entries)
    except (KeyError, TypeError, AttributeError):
        raise DeclarationError(NOT_OURS) from None
    if overspent:
        raise BudgetError("this ledger has reserved more than its budget; do not rely on it")
    return ledger


def _without_run(fields: ReleaseFields) -> ReleaseFields:
    """A release of a budget file without the names of its run and part."""
    return cast(
        "ReleaseFields",
        {name: fields[name] for name in fields if name not in ("run", "part")},  # type: ignore[literal-required]
    )


def reserve_from(
    ledger: Ledger | None,
    epsilon: float,
    delta: float,
    name: str,
    adjacency: Adjacency | None = None,
) -> Grant:
    """A grant of this ledger, or of a new one; invalid budgets are refused before the charge."""
    if isinstance(epsilon, Real) and 0 < epsilon and not LEAST <= epsilon <= MOST:
        raise DeclarationError(
            f"epsilon ({epsilon!r}) must lie between {LEAST:g} and {MOST:g}; pass a budget such as "
            "1.0"
        )
    if ledger is None:
        ledger = Ledger(epsilon, delta)
    if not isinstance(ledger, Ledger):
        raise DeclarationTypeError(
            f"ledger ({type(ledger).__name__}) must be a Ledger; pass Ledger(epsilon, delta)"
        )
    return ledger.reserve(epsilon, delta, name, adjacency=adjacency)
