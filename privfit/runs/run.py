"""One paid run of a solver: what is public about it, what it may draw, and its callback.

A solver is a settings object that is called with a run and returns a path. It plans its releases
before it looks at any record, proposes candidates without data, asks the objective for sums over
records, and draws by `Run.release`. Everything that it returns and reports has been released;
computing with a path afterwards costs nothing.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.cautions import OldNameWarning
from privfit.base.errors import DeclarationError
from privfit.base.frozen import frozen
from privfit.base.typing import Array, Coins, Integers
from privfit.base.validation import is_whole
from privfit.objectives import CentersObjective, FacilityObjective, LinearObjective
from privfit.objectives.moves import Moves
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.ledger import Budget, Grant
from privfit.privacy.mechanisms import Exponential, Mechanism, T, TopK, V
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.remainder import gaussian_left, gaussian_part
from privfit.runs.candidates import reported, to_select
from privfit.runs.failures import checked_scores
from privfit.runs.guests import Followed, GuestObjective, complete, without_records
from privfit.runs.listeners import Listener
from privfit.runs.paths import Draws, Generation, Path, together
from privfit.runs.protocols import Objective, Space, View
from privfit.runs.sizes import public_size
from privfit.runs.spaces import Integers as WholeNumbers
from privfit.runs.spaces import Mixed, Permutations, Reals
from privfit.runs.stops import RunEnded, says_stop

__all__ = ["Run", "Task", "check_space", "coins_of", "gridded", "size_of"]

# Objectives that score moves incrementally, and the spaces whose moves they know.
MOVED_AS = {CentersObjective: "Reals(-1, 1, (k, d))", FacilityObjective: "Subsets(n, k)"}

# Kinds of releases, and the tightest composition that is proved for equal ones.
COMPOSED_BY = {"selection": "tight", "pure": "kov_exact", "gaussian": "tight"}

O = TypeVar("O", bound=Objective, covariant=True)  # noqa: E741
S = TypeVar("S", bound=Space, covariant=True)
Kind = TypeVar("Kind", bound=Space)


@dataclass(frozen=True, eq=False, repr=False)
class Task(Generic[O, S]):
    """The public part of what a solver is asked to do, checked before anything is charged.

    `n_public` is the public number of records; None if it was not declared.
    """

    objective: O
    space: S
    epsilon: float
    delta: float
    neighbours: Neighbours
    n_public: int | None

    @property
    def budget(self) -> Budget:
        """The budget to spend; not valid if epsilon is infinite."""
        return Budget(self.epsilon, self.delta)


class Run(Generic[O, S]):
    """One run of a solver: its objective, space, budget, randomness and callback.

    Parameters
    ----------
    objective : Objective
        The scores of candidates.
    space : Space
        What a candidate may be.
    grant : Grant or None
        The budget that pays for the draws; without one nothing is private.
    random_state : None, int or numpy.random.Generator, default=None
        Source of the bits.
    callback : callable (Generation) -> object or None, default=None
        Called after each generation; if it returns True, the run ends there.
    neighbours : Neighbours, default=REPLACE
        The neighbour relation.
    n_public : int or None, default=None
        A public number of records, which may be approximate; rules of the solver use it. By default
        the actual number if records are replaced, where it is public.
    share : int, default=1
        Number of equal runs that share the grant; this run is one of them.
    budget : Budget or None, default=None
        What the equal runs may spend together; by default all of the grant.
    before_draws : callable () -> None or None, default=None
        Called before the first draw, when the solver has planned its own: the last moment to plan
        what others will draw from the same grant.
    charged : Budget or None, default=None
        What was charged for everything, which callbacks are told; by default all of the grant.

    Attributes
    ----------
    neighbours, share
        As passed.
    space : Space
        The space on the objective's grid; `declared_space` is as passed.
    n_public : int or None
        The public number of records.
    source : BitSource
        The source of noise.
    coins : numpy.random.Generator
        A fast generator for proposals, which never see records, seeded by the same bits.

    See Also
    --------
    privfit.search : Runs a solver.
    Path : What a solver returns.

    Notes
    -----
    `release` and `select` are the only ways to draw; they charge the grant first. Everything passed
    to `report` and `note` must be public already. A solver of a user that has asked for the
    `objective` can note nothing any more, since any number may be a score from then on. An
    objective of a user gets candidates that it cannot write into.

    Examples
    --------
    A solver of one's own: it draws candidates and selects one.

    >>> import numpy as np
    >>> from privfit import Ledger, Reals, RecordObjective
    >>> from privfit.runs import Run
    >>> def nearness(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> objective = RecordObjective(np.full(500, 3.0), nearness, low=-10.0, high=0.0)
    >>> run = Run(objective, Reals(0, 10, 1), Ledger(1.0).reserve(1.0))
    >>> size = run.plan("selection")
    >>> P = run.space.sample(50, run.coins)
    >>> run.report(P[run.select(P)])
    >>> run.path().answer.shape
    (1,)
    """

    def __init__(
        self,
        objective: O,
        space: S,
        grant: Grant | None,
        random_state: Any = None,
        callback: Listener | None = None,
        *,
        neighbours: Neighbours = REPLACE,
        n_public: int | None = None,
        share: int = 1,
        budget: Budget | None = None,
        before_draws: Callable[[], None] | None = None,
        charged: Budget | None = None,
    ) -> None:
        self.n_public = public_size(objective, neighbours, n_public)
        self._objective: O = complete(objective)
        self._looked = False  # whether anybody has asked for the objective
        self.declared_space = space
        self.neighbours, self.space = neighbours, gridded(space, objective)
        self.share = share
        self.source = BitSource.of(random_state)
        self.coins = coins_of(self.source)
        self._grant, self._callback = grant, callback
        self._part, self._before_draws, self._whole_charge = budget, before_draws, charged
        self._generations: list[Array] = []
        self._steps: list[Draws] = []
        self._before = () if grant is None else grant.events
        self._drawn: list[Mechanism[Any, Any]] = []  # since the last report
        self._ends, self._ended = False, False  # whether the callback said so; whether it did
        self._notes: dict[str, Any] = {}
        self._kept: list[object] = []
        self._total, self._size = 1, math.nan

    @property
    def objective(self) -> O:
        """The scores of candidates, which are private."""
        self._looked = True
        return self._objective

    # ------------------------------------------------------------------------------------- budget

    @property
    def is_private(self) -> bool:
        """Whether a grant pays for the draws."""
        return self._grant is not None

    @property
    def whole(self) -> Budget:
        """The budget of all equal runs together."""
        assert self._grant is not None, "a run without a grant has no budget"
        return self._grant.budget if self._part is None else self._part

    @property
    def _charged(self) -> Budget | None:
        """The guarantee of everything that shares the grant; None without one."""
        if self._grant is None or self._whole_charge is not None:
            return self._whole_charge
        return self._grant.budget

    @property
    def budget(self) -> Budget:
        """What each of the equal runs would have by itself, for rules."""
        parts = math.sqrt(self.share) if self.whole.delta else self.share
        return Budget(self.whole.epsilon / parts, self.whole.delta)

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of each of the equal runs if budgets simply add up."""
        return self.whole.epsilon / self.share

    @property
    def mu(self) -> float:
        """The Gaussian parameter of the budget; 0 if delta is 0."""
        budget = self.budget
        return gaussian_left(budget) if budget.delta else 0.0

    # --------------------------------------------------------------------------------------- plan

    def plan(
        self,
        kind: str,
        count: int = 1,
        composition: str | None = None,
        generations: int | None = None,
    ) -> float:
        """Reserve equal releases and return the size of each.

        Parameters
        ----------
        kind : {'selection', 'pure', 'gaussian'}
            The kind of release: see `size_of`.
        count : int, default=1
            Number of releases.
        composition : str or None, default=None
            Method of composition: see `size_of`.
        generations : int or None, default=None
            Number of generations to announce to the callback; by default one for each release.

        Returns
        -------
        float
            The epsilon of a 'selection' or 'pure' release, the mu of a 'gaussian' one; infinite
            without a grant, where `select` takes the best.
        """
        check_plan(kind, count)
        self._total = count if generations is None else generations
        if not self.is_private:
            self._size = math.inf
            return math.inf
        self._size = self.size_of(kind, count, composition)
        self.set_aside(Event(kind, self._size, count), generations=self._total)
        return self._size

    def size_of(self, kind: str, count: int, composition: str | None = None) -> float:
        """The size of each of several equal releases; nothing is reserved.

        Parameters
        ----------
        kind : {'selection', 'pure', 'gaussian'}
            The kind of release. A 'pure' one is not a bounded-range selection, and needs a
            composition that is proved for it, such as 'kov_exact' or 'naive'.
        count : int
            Number of releases of each of the equal runs.
        composition : str or None, default=None
            A method of `privfit.compose`; by default 'kov_exact' for 'pure' releases, and 'tight'
            for selections.

        Returns
        -------
        float
            The epsilon of a 'selection' or 'pure' release, the mu of a 'gaussian' one.
        """
        return size_of(self.whole, kind, count * self.share, composition)

    def set_aside(self, *events: Event, generations: int = 1) -> None:
        """Reserve draws.

        The first of several equal runs reserves them for all, before anything is drawn.

        Parameters
        ----------
        *events : Event
            The draws.
        generations : int, default=1
            Number of generations to announce to the callback, in addition to those reported before.
        """
        self._total = generations
        assert self._grant is not None, "a run without a grant has nothing to set aside"
        times = self.share if self.share > 1 and not self._grant.events else 1
        self._grant.plan(*(replace(event, count=times * event.count) for event in events))

    # -------------------------------------------------------------------------------------- draws

    def release(self, mechanism: Mechanism[V, T], value: V) -> T:
        """Release what a mechanism draws from a private value, through the grant.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism. Its event is charged first.
        value : object
            The private value, of the kind that the mechanism takes.

        Returns
        -------
        object
            The drawn value. It is public.
        """
        assert self._grant is not None, "a run without a grant releases nothing"
        self._go_on()
        if self._before_draws is not None:
            self._before_draws()
            self._before_draws = None
        drawn = self._grant.release(mechanism, value, self.source)
        self._drawn.append(mechanism)
        return drawn

    def select(
        self,
        P: Array,
        k: int = 1,
        *,
        size: float | None = None,
        range: Callable[[Array, Neighbours], int] | None = None,
        reach: Callable[[Array, Neighbours], int] | None = None,
    ) -> Integers:
        """Select candidates privately, one after the other, by their scores.

        Each is a selection by the exponential mechanism; without a grant, the best are taken.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        k : int, default=1
            Number of selections.
        size : float or None, default=None
            Epsilon of each selection; by default the size that was planned last.
        range : callable (P, neighbours) -> int or None, default=None
            Bounds how much the difference of two scores can change between neighbours; by default
            `objective.range`.
        reach : callable
            The old name of `range`, which works with a warning for one version.

        Returns
        -------
        array of int of shape (k,)
            Which candidates were drawn. It is public.
        """
        if reach is not None:
            warnings.warn("reach of run.select is range now; pass that", OldNameWarning, 2)
        self._go_on()
        size = self._size if size is None else size
        P = frozen(to_select(self.space, P, k, size))  # what is drawn is what was proposed
        objective = self._objective
        scores = checked_scores(objective.scores(P), len(P))
        scores = scores + checked_scores(objective.prior(P), len(P))
        if not self.is_private:
            return np.asarray(np.argsort(-scores, kind="stable")[:k], dtype=np.int64)
        bound = (range or reach or objective.range)(P, self.neighbours)
        if k == 1:
            return np.array([self.release(Exponential(size, bound), scores)], dtype=np.int64)
        return self.release(TopK(k, size, bound), scores)

    def around(self, w: Array) -> View:
        """A view that scores moves away from a candidate, incrementally if the objective can.

        It is the objective's own, ``around(w, space)`` or ``at(w)``, if it has one.

        Parameters
        ----------
        w : array
            The candidate.

        Returns
        -------
        View
            The view. Its scores are private.
        """
        objective: Any = self.objective
        is_guest = isinstance(objective, GuestObjective)
        start = frozen(w) if is_guest else w
        around = getattr(objective, "around", None)
        at = getattr(objective, "at", None)
        if around is not None:
            view = around(start, self.space)
        elif at is not None:
            view = at(start)
        else:
            return Moves(objective, w, self.space)
        return Followed(view, self.space, w) if is_guest else view

    # ------------------------------------------------------------------------------------ reports

    def note(self, **used: Any) -> None:
        """Record settings as they are used, for the `Release`.

        A solver of a user must do so before it asks for the objective, or for a view (`around`):
        what it notes later could be a score. What was selected meanwhile is public.

        Parameters
        ----------
        **used : object
            Public values by the names of settings. They are copied.
        """
        if self._looked and not _is_called_by_ours():
            raise DeclarationError(
                "settings must be noted before run.objective or run.around is used, since they "
                "are released; call run.note first"
            )
        self._notes.update(deepcopy(used))

    def keep(self, part: object) -> None:
        """Keep a part of what was released, for post-processing; only solvers of privfit may.

        Parameters
        ----------
        part : object
            Released values, and what is public about them.
        """
        if not _is_called_by_ours():
            raise DeclarationError(
                "run.keep must be called by solvers of privfit, since what is kept is released; "
                "return your values by run.report"
            )
        self._kept.append(part)

    @property
    def notes(self) -> dict[str, Any]:
        """A copy of what was noted, and whether the callback ended the run."""
        return deepcopy(self._notes) | ({"stopped": self.reported} if self._ended else {})

    def report(self, survivors: Array, *, whole: bool = True) -> None:
        """Add what a generation released to the path, and call the callback.

        If the callback returns True, this raises `RunEnded`, which `path_of` and solvers that have
        more to return catch. After the last planned generation there is nothing to end.

        Parameters
        ----------
        survivors : array of shape (s, ...)
            The released candidates, the leading one first.
        whole : bool, default=True
            Whether they are complete candidates. If not, as a set that still grows, the callback
            cannot end the run here.
        """
        self._generations.append(reported(self.space, survivors, whole))
        self._steps.append(self._step())
        if self._callback is None:
            return
        self._ends |= says_stop(self._callback(self._now())) and whole
        if self.reported != self._total:
            self._go_on()

    @property
    def reported(self) -> int:
        """Number of generations reported so far."""
        return len(self._generations)

    def _step(self) -> Draws:
        """The draws since the last report."""
        drawn, self._drawn = self._drawn, []
        if not drawn:
            return Draws()
        last = drawn[-1]
        bound = getattr(last, "range", getattr(last, "sensitivity", None))
        return Draws(together(one.event for one in drawn), bound)

    def _now(self) -> Generation:
        """The generation that was reported last; the listener owns its arrays."""
        survivors = np.array(self._generations[-1])
        return Generation(
            self.reported, self._total, survivors[0].copy(),
            self._charged, survivors, self._steps[-1],
            () if self._grant is None else self._grant.events,
        )  # fmt: skip

    def _go_on(self) -> None:
        """Raise `RunEnded` if the callback ended the run."""
        if self._ends:
            self._ended = True
            raise RunEnded

    def path(self, average: float = 0.0) -> Path:
        """Everything that was reported and noted.

        Parameters
        ----------
        average : float, default=0.0
            Fraction of the path whose mean is the answer; 0 means the last survivor. Has no effect
            in a space without means.

        Returns
        -------
        Path
            The path.
        """
        if average and not getattr(self.space, "has_means", False):
            average = 0.0
            self.note(average=average)
        return Path(
            tuple(self._generations), average, self.notes, tuple(self._steps), self._before,
            self._charged, kept=tuple(self._kept),
        )  # fmt: skip


def _is_called_by_ours() -> bool:
    """Whether the method that asks this was called by a module of privfit."""
    module: str = sys._getframe(2).f_globals.get("__name__", "")
    return module.partition(".")[0] == "privfit"


def coins_of(source: BitSource) -> Coins:
    """A fast generator for proposals, which never see records, seeded by the same bits as noise."""
    return np.random.Generator(np.random.SFC64(source.bits(128)))


def check_plan(kind: Any, count: Any) -> None:
    """Refuse kinds that cannot be planned by their number alone, and what is no number."""
    if not isinstance(kind, str) or kind not in COMPOSED_BY:
        raise DeclarationError(
            f"kind ({kind!r}) must be one of {', '.join(COMPOSED_BY)}; pass 'selection' for "
            "run.select"
        )
    if not is_whole(count) or count < 1:
        raise DeclarationError(
            f"count ({count!r}) must be a positive whole number; pass the number of draws"
        )


def size_of(budget: Budget, kind: str, count: int, composition: str | None = None) -> float:
    """The size of each of several equal releases that together cost a budget.

    It is the epsilon of a 'selection' or of a 'pure' release, the mu of a 'gaussian' one.
    `composition` is a method of `accounting`. A pure release that is not a bounded-range selection
    needs one that is proved for it: by default the exact one.
    """
    check_plan(kind, count)
    if kind == "gaussian":
        return gaussian_part(gaussian_left(budget), count)
    method = COMPOSED_BY[kind] if composition is None else composition
    return calibrate(count, epsilon=budget.epsilon, delta=budget.delta, method=method)


# ------------------------------------------------------------------------------------------ checks


def check_candidates(task: Task[Objective, Space]) -> None:
    """Refuse a space whose candidates an objective cannot score; no record is read.

    An objective with a `check` of its own, such as a user-defined score, tries it on a few records.
    """
    if not hasattr(task.space, "extremes"):  # a space of one's own, with nothing to try
        return
    P = check_space(task.objective, task.space)
    task.objective.range(P, task.neighbours)
    task.objective.prior(P)
    own = getattr(task.objective, "check", None)
    if own is not None:
        own(P, task.space)


def check_space(objective: Objective, space: Space) -> Array:
    """The outermost candidates of a space: an objective that scores these can score all."""
    if isinstance(objective, LinearObjective) and not isinstance(space, Reals):
        raise DeclarationError(
            f"space ({space!r}) must be a box of weights for a LinearObjective; pass "
            f"Reals(-1, 1, {objective.n_weights})"
        )
    if isinstance(space, WholeNumbers | Mixed | Permutations):
        for kind, wanted in MOVED_AS.items():  # its view would take their moves for other ones
            if isinstance(objective, kind):
                raise DeclarationError(
                    f"space ({space!r}) must be another one for a {kind.__name__}; pass {wanted}"
                )
    space = gridded(space, objective)
    if (
        isinstance(objective, CentersObjective)
        and isinstance(space, Reals)
        and space.shape == (objective.n_clusters, objective.n_features)
    ):
        far = space.snap(objective.outermost(space.low, space.high))
        return np.concatenate([space.extremes, far[None]])
    return space.extremes


def gridded(space: Kind, objective: Objective) -> Kind:
    """A space on the grid of an objective, if it can be moved there.

    It may be a user's, and is asked before the charge, too: it gets an objective without records.
    """
    move = getattr(space, "on_grid_of", None)
    return space if move is None else move(without_records(objective, ADD_REMOVE))
