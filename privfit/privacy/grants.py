"""A grant, the only way for numbers to be released, and the release that it ends in.

**Plan or filter.** `compose` accounts for sizes that are fixed before the first draw. So a grant
takes plans until then; afterwards a draw is covered in one of three ways:

- it is in the plan. Of Gaussian releases only the sum of mu^2 is, since their sizes may be chosen
  along the way at no cost: all of them together are one path of a Brownian motion with drift;
- the plain sum of the epsilons of all draws is within epsilon. Then the loss never exceeds epsilon,
  whatever was seen, and such a transcript adds nothing to delta;
- by the grant's filter (`Grant.filter`), if one was chosen before the first draw.

Everything else is refused. `docs/ledger.md` has the proofs.

**A part of its own.** `Grant.enclose` begins a part whose draws are planned anew, when the first
ones are known: all of them together are one (epsilon, delta) release, which was planned before the
first draw of all. Whatever was drawn before it, the part is (epsilon, delta)-DP by its own plan,
and an approximate release that may depend on earlier outputs is what `compose` accounts for.
"""

from __future__ import annotations

import os
import reprlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import NoReturn, Protocol, TypeAlias, cast

from privfit.base import watching
from privfit.base.errors import BudgetError, DeclarationError, FileError
from privfit.base.json import FieldTwiceError, parse, plain, write
from privfit.base.rounding import exact
from privfit.base.tables import Frame, as_frame
from privfit.privacy.accounting import Event, compose
from privfit.privacy.budgets import Budget
from privfit.privacy.cards import release_card
from privfit.privacy.fields import NAMES, ReleaseFields
from privfit.privacy.filters import check_filter, filtered
from privfit.privacy.mechanisms import Mechanism, T, V
from privfit.privacy.neighbours import Adjacency, Neighbours

__all__ = ["Grant", "Holder", "Part", "Release"]

VERSION = 1  # of a release as JSON
NOT_OURS = "text must be JSON written by to_json; pass it unchanged"
FORKED = (
    "this process is a fork of the one that made it; spend there, or share a budget file "
    "(open_ledger)"
)


def _shortened() -> reprlib.Repr:
    """How long values are cut: a model holds thousands of numbers."""
    short = reprlib.Repr()
    short.maxdict = 40
    short.maxlist = short.maxtuple = 6
    short.maxstring = short.maxother = 80
    return short


@dataclass(frozen=True, repr=False)
class Release:
    """Everything that is public after a fit: what was drawn, its cost, and the declarations.

    Parameters
    ----------
    name : str
        What the grant was for.
    epsilon, delta : float
        The guarantee.
    adjacency : {'replace', 'add_remove'}
        The neighbour relation of the guarantee.
    events : tuple of Event
        What was drawn.
    domain : str, default=''
        How records were bounded.
    settings : dict, default={}
        The settings of the method, as they were used.
    parameters : dict, default={}
        The released values.
    seeded : bool, default=False
        Whether the noise came from a seed, which voids privacy.
    filter : str, default=''
        The filter that covered the draws, or '' if they were planned.

    See Also
    --------
    Ledger : Keeps the releases of its grants.
    save : Writes a model with its release.

    Examples
    --------
    >>> from privfit import DiscreteLaplace, Ledger, Release
    >>> grant = Ledger(epsilon=1.0).reserve(1.0, name="a count", adjacency="add_remove")
    >>> count = grant.release(DiscreteLaplace(epsilon=1.0, sensitivity=1), [1000])
    >>> release = grant.close(parameters={"count": count})
    >>> Release.from_json(release.to_json()).verify()
    True
    >>> release.to_dict()["events"]
    [{'kind': 'pure', 'parameter': 1.0, 'count': 1, 'delta': 0.0}]
    """

    name: str
    epsilon: float
    delta: float
    adjacency: str
    events: tuple[Event, ...]
    domain: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)
    seeded: bool = False
    filter: str = ""

    def __repr__(self) -> str:
        """All fields; long values are cut, and are whole in `to_dict` and `to_json`."""
        short = _shortened()
        shown = (f"{one.name}={short.repr(getattr(self, one.name))}" for one in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return release_card(self)

    def cost(self) -> float:
        """Recompute the epsilon of the events at delta.

        Returns
        -------
        float
            Epsilon, rounded up.
        """
        if self.filter:
            return filtered(self.events, self.delta, self.filter)
        return compose(self.events, self.delta)

    def verify(self) -> bool:
        """Check that the events cost no more than was promised.

        Returns
        -------
        bool
            True.

        Raises
        ------
        BudgetError
            If they cost more.
        """
        cost = self.cost()
        if cost > self.epsilon and not in_plain_sum(_counted(self.events), self.epsilon):
            promised, needed = told_apart(self.epsilon, cost)
            raise BudgetError(
                f"release {self.name!r} promises epsilon {promised} but its events cost "
                f"{needed} at delta {self.delta:.6g}; do not rely on it"
            )
        return True

    def to_json(self) -> str:
        """Write this release as JSON; `from_json` reads it back.

        Returns
        -------
        str
            The text.
        """
        return write({"privfit": VERSION, **written_fields(self)}, indent=2)

    def to_dict(self) -> dict[str, object]:
        """This release as plain values: what `to_json` writes.

        Returns
        -------
        dict
            Numbers, texts, lists and dicts.
        """
        return parse(self.to_json(), finite=False)

    def to_frame(self) -> Frame:
        """The table of what was drawn: a row for each kind of release.

        Returns
        -------
        pandas.DataFrame
            The columns `kind`, `parameter`, `count` and `delta` of the events.
        """
        names = ("kind", "parameter", "count", "delta")
        return as_frame({name: [getattr(one, name) for one in self.events] for name in names})

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        Release
            The release.
        """
        return release_of(cast("ReleaseFields", fields_of(text)))


def written_fields(release: Release) -> dict[str, object]:
    """The fields of a release for JSON; `filter` only where one was used, as in version 1."""
    shown = cast("dict[str, object]", plain(release))
    if not release.filter:
        del shown["filter"]
    return shown


def release_of(fields: ReleaseFields) -> Release:
    """The release with the fields that `to_json` wrote."""
    said = dict(fields)
    said["events"] = tuple(Event(**event) for event in fields["events"])
    return Release(**said)  # type: ignore[arg-type]  # an error if it has other fields


def fields_of(text: str | bytes, *versions: int) -> dict[str, object]:
    """The fields of a release, or of another object of these versions, that `to_json` wrote."""
    try:
        fields: dict[str, object] = parse(text, finite=False, public=NAMES)
        version = fields.pop("privfit")
    except FieldTwiceError as error:
        raise DeclarationError(f"{error}; pass the text as to_json wrote it") from None
    except (ValueError, KeyError, TypeError):
        raise DeclarationError(NOT_OURS) from None
    known = versions or (VERSION,)
    if version not in known:
        raise FileError(
            f"version ({version!r}) must be {' or '.join(map(str, known))}; use the privfit that "
            "wrote it"
        )
    return {**fields, "privfit": version} if versions else fields


def told_apart(smaller: float, larger: float) -> tuple[str, str]:
    """Two numbers as texts that differ: six digits, or as many as that takes."""
    texts = f"{smaller:.6g}", f"{larger:.6g}"
    return texts if texts[0] != texts[1] else (repr(smaller), repr(larger))


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


def _squares(counts: Counter[Kind]) -> Fraction:
    """The sum of mu^2 over Gaussian releases."""
    sizes = ((size, count) for (kind, size, _), count in counts.items() if kind == "gaussian")
    return sum((count * Fraction(size) ** 2 for size, count in sizes), Fraction(0))


def in_plain_sum(counts: Counter[Kind], epsilon: float) -> bool:
    """Whether the epsilons of pure releases and selections, if there are no others, fit.

    As decimals (three times 0.1 is 0.3), or as the doubles that mechanisms take.
    """
    if any(kind in ("gaussian", "approximate") for kind, _, _ in counts):
        return False
    spent = sum((count * exact(size) for (_, size, _), count in counts.items()), Fraction(0))
    return spent <= exact(epsilon) or compose(_events(counts), 0.0) <= epsilon


class Holder(Protocol):
    """What a grant needs from the ledger that it is a part of."""

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours: its own, or these from now on."""

    def publish(self, release: Release) -> None:
        """Keep the release of a closed grant."""


def check_source(rng: object, journal: object) -> None:
    """Refuse the coins of a checkpoint for draws that its journal does not have.

    Coins that are taken outside such draws go on record: the journal would have the noise.
    """
    recorded = getattr(rng, "journal", None)
    if recorded is not None and recorded is not journal:
        raise DeclarationError(
            "coins of a checkpoint must go with its ledger, or noise would be on record; pass "
            "ledger=checkpoint.ledger, too, or another random_state"
        )


class Grant:
    """Part of a budget for one fit, made by `Ledger.reserve` and charged in full then.

    `plan` declares in advance what will be drawn, and is accounted for once; draws within the plan
    cost nothing more to check. A draw that was not planned before the first one is refused, unless
    the plain sum of all epsilons covers it, or `filter` was called before the first draw. A grant
    belongs to the process that reserved it: in a forked child it is closed.

    Parameters
    ----------
    name : str
        What the grant is for.
    budget : Budget
        What was reserved.
    lock : threading.RLock
        The lock of the ledger.
    holder : Ledger
        The ledger.

    See Also
    --------
    privfit.Ledger : Makes grants.
    privfit.Release : What `close` returns.

    Examples
    --------
    >>> from privfit import DiscreteLaplace, Event, Ledger
    >>> grant = Ledger(epsilon=1.0).reserve(1.0, name="two counts")
    >>> grant.plan(Event("pure", 0.5, 2))
    >>> noise = DiscreteLaplace(epsilon=0.5, sensitivity=1)
    >>> first, second = (grant.release(noise, [count]) for count in (1000, 2000))
    >>> grant.close().epsilon
    1.0
    """

    recorder: object = None  # the journal of a checkpoint, which has what is drawn

    def __init__(
        self,
        name: str,
        budget: Budget,
        lock: threading.RLock,
        holder: Holder,
    ) -> None:
        self._name, self._budget, self._lock, self._holder = name, budget, lock, holder
        self._planned: Counter[Kind] = Counter()
        self._drawn: Counter[Kind] = Counter()
        self._by = ""  # the filter
        self._process = os.getpid()
        self._since = watching.now()  # when its run began
        self._closed, self._seeded = "", False
        self._as_planned = True  # of no kind were more draws made than planned
        self._outside: Counter[Kind] | None = None  # what was drawn before a part of its own began
        self._covers = budget  # what the plan may cost: the budget, or that of the part

    def __repr__(self) -> str:
        return f"Grant({self._name!r}, {self._budget}{' (closed)' if self._closed else ''})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a grant cannot be copied or pickled: it would be spent twice")

    @property
    def name(self) -> str:
        """What the grant is for."""
        return self._name

    @property
    def budget(self) -> Budget:
        """What was reserved, and under which relation if that is known."""
        return self._budget

    @property
    def holder(self) -> Holder:
        """The ledger that it is a part of, or its entry there."""
        return self._holder

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn so far, equal events counted together; an enclosed part is one of them."""
        with self._lock:
            return _events(self._drawn if self._outside is None else self._outside)

    @property
    def enclosed(self) -> tuple[Event, ...]:
        """What was drawn within an enclosed part so far, equal events counted together."""
        with self._lock:
            return () if self._outside is None else _events(self._drawn)

    @property
    def planned(self) -> tuple[Event, ...]:
        """What was planned so far, equal events counted together."""
        with self._lock:
            return _events(self._planned)

    @property
    def spent(self) -> float:
        """Epsilon, at the grant's delta, of what was drawn so far."""
        if self._by:
            return filtered(self.events, self._budget.delta, self._by)
        return compose(self.events, self._budget.delta)

    def filter(self, by: str) -> None:
        """Let the sizes of draws be chosen along the way, covered by a filter.

        Parameters
        ----------
        by : {'basic', 'gdp', 'zcdp'}
            Which running sum covers the draws. 'basic' adds up epsilons and deltas; 'gdp' is for
            Gaussian releases, with selections among them; 'zcdp' is better if selections take more
            than about 31 % of the cost. Choose it before the first draw, from public facts.

        Examples
        --------
        >>> from privfit import DiscreteGaussian, Ledger
        >>> grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
        >>> grant.filter("gdp")
        >>> rough = grant.release(DiscreteGaussian(mu=0.05, sensitivity=1), [1000])
        >>> finer = grant.release(DiscreteGaussian(mu=0.1 if rough[0] < 0 else 0.2, sensitivity=1),
        ...                       [1000])
        """
        self._check_process()
        with self._lock:
            self._check_open()
            check_filter(by, self._budget.delta)
            if self._drawn or self._outside is not None:
                raise BudgetError(
                    f"grant {self._name!r} has drawn already, and plan or filter is decided before "
                    "the first draw; reserve another grant"
                )
            self._by = by

    def plan(self, *events: Event) -> None:
        """Reserve draws, in addition to what was planned before.

        After the first draw nothing can be added: the events must be covered already.

        Parameters
        ----------
        *events : Event
            The draws.

        Raises
        ------
        BudgetError
            If they do not fit.
        """
        self._check_process()
        with self._lock:
            self._check_open()
            if self._by or self._drawn:
                self._check_covered(events)
                return
            planned = self._planned + _counted(events)
            if not in_plain_sum(planned, self._covers.epsilon):
                cost = compose(_events(planned), self._covers.delta)
                if cost > self._covers.epsilon:
                    self._refuse(events, cost)
            self._planned = planned

    def enclose(self, budget: Budget) -> None:
        """Begin a part of its own: draws from now on are planned anew, within this budget.

        To the plan of the grant the part is one release, ``Event("approximate", epsilon, 1,
        delta)``, which must have been planned before the first draw.

        Parameters
        ----------
        budget : Budget
            The epsilon and delta of the part.

        Raises
        ------
        BudgetError
            If that release was not planned, or if a part has begun already.

        Examples
        --------
        >>> from privfit import Budget, DiscreteLaplace, Event, Ledger
        >>> grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
        >>> grant.plan(Event("pure", 0.25), Event("approximate", 0.7, 1, 5e-7))
        >>> rough = grant.release(DiscreteLaplace(epsilon=0.25, sensitivity=1), [1000])
        >>> grant.enclose(Budget(0.7, 5e-7))
        >>> size = 0.1 if rough[0] > 500 else 0.2  # chosen after the first draw
        >>> finer = grant.release(DiscreteLaplace(epsilon=size, sensitivity=1), [1000])
        >>> grant.close().verify()
        True
        """
        part = _counted([Event("approximate", budget.epsilon, 1, budget.delta)])
        self._check_process()
        with self._lock:
            self._check_open()
            drawn = self._drawn + part
            if self._by or self._outside is not None or not self._is_planned(drawn):
                raise BudgetError(
                    f"grant {self._name!r} must have planned a part of epsilon "
                    f"{budget.epsilon:.6g}, delta {budget.delta:.6g}, once and without a filter; "
                    "plan Event('approximate', epsilon, 1, delta) before the first draw"
                )
            self._outside, self._covers = drawn, budget
            self._planned, self._drawn, self._as_planned = Counter(), Counter(), True

    def declare(self, *declarations: object) -> None:
        """Take note of public declarations under which the grant is spent.

        The journal of a `Checkpoint` keeps them, and is not resumed under others. Other ledgers
        have no use for them.

        Parameters
        ----------
        *declarations : object
            Numbers, texts, lists, None: what JSON has.
        """

    def release(self, mechanism: Mechanism[V, T], value: V, rng: object = None) -> T:
        """Check, charge and draw.

        The draw is charged before it is made, so one that fails or is interrupted stays charged.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism that draws.
        value : object
            The private value, of the kind that the mechanism takes.
        rng : None, int, numpy.random.Generator or BitSource, default=None
            Source of bits. None draws from the operating system. A seed voids privacy: it is for
            tests.

        Returns
        -------
        object
            The drawn value. It is public.
        """
        self._charge(mechanism, rng)
        drawn = mechanism(value, rng)
        self._tell("release", mechanism)
        return drawn

    def tell_reserved(self) -> None:
        """Log that the grant was reserved."""
        self._tell("reserve")

    def _tell(self, event: str, mechanism: Mechanism[V, T] | None = None) -> None:
        """Log an event of this grant: public facts only."""
        watching.tell(event, self._since, lambda: self._facts(mechanism))

    def _facts(self, mechanism: Mechanism[V, T] | None) -> dict[str, str | float]:
        budget = self._budget
        facts: dict[str, str | float] = {
            "name": self._name, "epsilon": budget.epsilon, "delta": budget.delta,
        }  # fmt: skip
        if mechanism is not None:
            cost = mechanism.event
            facts |= {"mechanism": type(mechanism).__name__, "kind": cost.kind,
                      "size": float(cost.parameter), "count": cost.count}  # fmt: skip
        return facts

    def _charge(self, mechanism: Mechanism[V, T], rng: object) -> None:
        check_source(rng, self.recorder)
        event = mechanism.event
        key = _kind(event)
        self._check_process()
        with self._lock:
            self._check_open()
            drawn = self._drawn[key] + event.count
            if self._by or not self._as_planned or drawn > self._planned[key]:
                self._cover(event)
                self._as_planned &= drawn <= self._planned[key]
            self._drawn[key] = drawn
            self._seeded |= rng is not None and getattr(rng, "seeded", True)
        self._tell("charge", mechanism)

    def _cover(self, event: Event) -> None:
        """Refuse an event that nothing covers; the first draw of all may still be planned."""
        if not (self._by or self._drawn or self._is_planned(_counted([event]))):
            self.plan(replace(event, count=event.count - self._planned[_kind(event)]))
        self._check_covered([event])

    def _check_covered(self, events: Iterable[Event]) -> None:
        """Refuse events that neither the plan, nor the plain sum, nor the filter covers."""
        wanted = self._drawn + _counted(events)
        if in_plain_sum(wanted, self._covers.epsilon):
            return
        if self._by:
            cost = filtered(_events(wanted), self._covers.delta, self._by)
            if cost > self._covers.epsilon:
                self._refuse(events, cost)
        elif not self._is_planned(wanted):
            cost = compose(_events(wanted), self._covers.delta)
            if cost > self._covers.epsilon:
                self._refuse(events, cost)
            raise BudgetError(
                f"grant {self._name!r} has drawn already, and {_named(events)} was not planned: "
                "sizes chosen after a draw are not covered by what was planned before it; plan all "
                "draws before the first, or choose a filter before it by grant.filter('gdp')"
            )

    def _is_planned(self, wanted: Counter[Kind]) -> bool:
        others = (key for key in wanted if key[0] != "gaussian")
        return (
            all(wanted[key] <= self._planned[key] for key in others)
            and _squares(wanted) <= _squares(self._planned)
        )  # fmt: skip

    def _refuse(self, events: Iterable[Event], cost: float) -> None:
        has, needs = told_apart(self._covers.epsilon, cost)
        raise BudgetError(
            f"grant {self._name!r} has epsilon {has}, delta {self._covers.delta:.6g}, but what is "
            f"planned with {_named(events)} costs epsilon {needs}; reserve more, or plan fewer or "
            "smaller draws"
        )

    def _check_process(self) -> None:
        """Called before the lock is taken: in a forked child the parent may seem to hold it."""
        if os.getpid() != self._process:
            self.close_in_fork(threading.RLock())

    def _check_open(self) -> None:
        if self._closed:
            raise BudgetError(f"grant {self._name!r} is closed: {self._closed}")

    def close_in_fork(self, lock: threading.RLock) -> None:
        """Close the copy in a forked child: it shows what was drawn, and draws nothing.

        Parameters
        ----------
        lock : threading.RLock
            A new lock.
        """
        self._closed, self._lock = FORKED, lock

    def close(
        self,
        adjacency: Adjacency | None = None,
        domain: object = "",
        settings: Mapping[str, object] | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> Release:
        """Close the grant, once, and return what is now public.

        Parameters
        ----------
        adjacency : {'replace', 'add_remove'} or None, default=None
            The neighbour relation. It must be the one that was reserved. If none was, it is the
            ledger's; if that has none either, it is this one, by default 'replace', for both from
            now on.
        domain : object, default=''
            How records were bounded.
        settings : dict or None, default=None
            The settings of the method, as they were used.
        parameters : dict or None, default=None
            The released values.

        Returns
        -------
        Release
            What was drawn, its cost, and the declarations.
        """
        declared = None if adjacency is None else Neighbours.of(adjacency)
        self._check_process()
        with self._lock:
            self._check_open()
            charged = self._budget.adjacency
            relation = (Neighbours(charged) if charged else self._holder.agree(declared)).relation
            if declared is not None and declared.relation != relation:
                raise DeclarationError(
                    f"adjacency ({declared.relation!r}) must be that of the grant, {relation!r}, "
                    f"since it was charged that way; pass adjacency={declared.relation!r} to "
                    "reserve"
                )
            self._closed = "its release was made; reserve another"
            release = Release(
                self._name, self._budget.epsilon, self._budget.delta, relation, self.events,
                str(domain), dict(settings or {}), dict(parameters or {}), self._seeded, self._by,
            )  # fmt: skip
            self._holder.publish(release)
        self._tell("close")
        return release


class Part(Grant):
    """What is left of a grant for one of its runs: a budget for rules, draws by the grant itself.

    Parameters
    ----------
    whole : Grant
        The grant, whose plan covers what is drawn here.
    budget : Budget
        The budget that a run sees.

    See Also
    --------
    Grant : Pays.

    Examples
    --------
    >>> from privfit import Budget, DiscreteLaplace, Ledger
    >>> from privfit.privacy.grants import Part
    >>> grant = Ledger(epsilon=1.0).reserve(1.0)
    >>> first = grant.release(DiscreteLaplace(epsilon=0.25, sensitivity=1), [1000])
    >>> rest = Part(grant, Budget(0.75))
    >>> second = rest.release(DiscreteLaplace(epsilon=0.75, sensitivity=1), [1000])
    >>> grant.spent
    1.0
    """

    def __init__(self, whole: Grant, budget: Budget) -> None:
        super().__init__(whole._name, budget, whole._lock, whole._holder)
        self._whole = whole
        self._closed = "it is a part of another; close that one"  # which makes the release

    @property
    def planned(self) -> tuple[Event, ...]:
        """What was planned so far of the grant, or of its enclosed part."""
        return self._whole.planned

    def plan(self, *events: Event) -> None:
        """Reserve draws from the grant; after its first draw they must be covered already.

        Parameters
        ----------
        *events : Event
            The draws.
        """
        self._whole.plan(*events)

    def declare(self, *declarations: object) -> None:
        """Take note of public declarations, by the grant.

        Parameters
        ----------
        *declarations : object
            Numbers, texts, lists, None: what JSON has.
        """
        self._whole.declare(*declarations)

    def release(self, mechanism: Mechanism[V, T], value: V, rng: object = None) -> T:
        """Check, charge and draw, by the grant.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism that draws.
        value : object
            The private value.
        rng : None, int, numpy.random.Generator or BitSource, default=None
            Source of bits.

        Returns
        -------
        object
            The drawn value. It is public.
        """
        event = mechanism.event
        self._drawn[_kind(event)] += event.count
        return self._whole.release(mechanism, value, rng)
