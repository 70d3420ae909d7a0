"""One paid run of a solver: what is public about it, what it may draw, and whom it tells.

A solver is a settings object that is called with a run and returns a path. It plans its releases
before it looks at any record, proposes without data, asks the objective for sums over records, and
draws by `Run.release`. All that it returns and reports has been released; what is done to a path
afterwards costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Integers
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)
from privfit.privacy.accounting import Event, calibrate, gaussian_calibrate
from privfit.privacy.ledger import Budget, Grant
from privfit.privacy.mechanisms import Exponential, Mechanism, T, TopK, V
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.runs.listeners import Listener
from privfit.runs.paths import Generation, Path
from privfit.runs.protocols import Objective, Space, View
from privfit.runs.sizes import public_size
from privfit.runs.spaces import Reals

__all__ = ["Moves", "Run", "Task", "check_space", "coins_of", "size_of"]

O = TypeVar("O", bound=Objective, covariant=True)  # noqa: E741
S = TypeVar("S", bound=Space, covariant=True)

ALMOST = 1 - 1e-12  # of a Gaussian parameter: equal parts then cost no more than the whole


@dataclass(frozen=True, eq=False, repr=False)
class Task(Generic[O, S]):
    """What a solver is asked to do, as far as it is public: checked before anything is charged.

    `n_public` is the public number of records, None where nobody declared it.
    """

    objective: O
    space: S
    epsilon: float
    delta: float
    neighbours: Neighbours
    n_public: int | None

    @property
    def budget(self) -> Budget:
        """What may be spent; an infinite epsilon has none."""
        return Budget(self.epsilon, self.delta)


class Run(Generic[O, S]):
    """How one solver is run: what is public, its bits, its plan and its listener.

    Parameters
    ----------
    objective, space
        What is scored, and what a candidate may be.
    grant : Grant, optional
        What pays for the draws; without one nothing is private.
    random_state : optional
        Where bits come from.
    callback : callable (Generation) -> object, optional
        Called after each generation.
    neighbours : Neighbours
        What is hidden, by default which record stands in a row.
    n_public : int, optional
        A public number of records, which steers the method and may be rough. By default the real
        one where records are replaced, which makes it public.
    share : int
        This run is one of so many equal ones on the same grant.

    Attributes
    ----------
    objective, neighbours, share
        As passed.
    space : Space
        The space on the objective's grid; `declared_space` is as passed.
    n_public : int or None
        The public number of records.
    source : BitSource
        What noise is drawn from.
    coins : numpy.random.Generator
        For proposals, which never see records: a fast generator, seeded by the same bits.
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
    ) -> None:
        self.n_public = public_size(objective, neighbours, n_public)
        self.objective, self.declared_space = objective, space
        self.neighbours, self.space = neighbours, space.on_grid_of(objective)
        self.share = share
        self.source = BitSource.of(random_state)
        self.coins = coins_of(self.source)
        self._grant, self._callback = grant, callback
        self._generations: list[Array] = []
        self._notes: dict[str, Any] = {}
        self._total, self._size = 1, math.nan

    # ------------------------------------------------------------------------------------- budget

    @property
    def is_private(self) -> bool:
        """Whether a grant pays for what is drawn."""
        return self._grant is not None

    @property
    def whole(self) -> Budget:
        """The budget of all equal runs together."""
        assert self._grant is not None, "a run without a grant has no budget"
        return self._grant.budget

    @property
    def budget(self) -> Budget:
        """What each of the equal runs would have by itself, as far as rules need it."""
        parts = math.sqrt(self.share) if self.whole.delta else self.share
        return Budget(self.whole.epsilon / parts, self.whole.delta)

    @property
    def pure_epsilon(self) -> float:
        """The part of epsilon that each of the equal runs has where budgets add up."""
        return self.whole.epsilon / self.share

    @property
    def mu(self) -> float:
        """The Gaussian parameter of the budget, 0 for a pure one."""
        budget = self.budget
        return gaussian_calibrate(budget.epsilon, budget.delta) if budget.delta else 0.0

    # --------------------------------------------------------------------------------------- plan

    def plan(
        self,
        kind: str,
        count: int = 1,
        composition: str = "tight",
        generations: int | None = None,
    ) -> float:
        """Set equal releases aside and return the size of each, infinite without a grant.

        A listener is told of so many generations, by default one for each release. For `kind` and
        `composition` see `size_of`.
        """
        self._total = count if generations is None else generations
        if not self.is_private:
            return math.inf
        self._size = self.size_of(kind, count, composition)
        self.set_aside(Event(kind, self._size, count), generations=self._total)
        return self._size

    def size_of(self, kind: str, count: int, composition: str = "tight") -> float:
        """The size of each of so many equal releases of every equal run; nothing is planned."""
        return size_of(self.whole, kind, count * self.share, composition)

    def set_aside(self, *events: Event, generations: int = 1) -> None:
        """Set draws aside; with what was reported before, so many generations in all.

        The first of several equal runs does it for all of them, before anything is drawn; what the
        others need is then in the plan.
        """
        self._total = generations
        assert self._grant is not None, "a run without a grant has nothing to set aside"
        times = self.share if self.share > 1 and not self._grant.events else 1
        self._grant.plan(*(replace(event, count=times * event.count) for event in events))

    # -------------------------------------------------------------------------------------- draws

    def release(self, mechanism: Mechanism[V, T], value: V) -> T:
        """What a mechanism draws from a value of the records, through the grant."""
        assert self._grant is not None, "a run without a grant releases nothing"
        return self._grant.release(mechanism, value, self.source)

    def select(
        self,
        P: Array,
        k: int = 1,
        *,
        size: float | None = None,
        reach: Callable[[Array, Neighbours], int] | None = None,
    ) -> Integers:
        """(k,): which of the candidates P (m, ...) are drawn, one after the other, by their scores.

        Each is a selection by the exponential mechanism, by default of the size that was planned
        last. `reach` bounds how far scores drift apart between neighbours, by default
        `objective.range`.
        """
        size = self._size if size is None else size
        scores = self.objective.scores(P) + self.objective.prior(P)
        bound = (self.objective.range if reach is None else reach)(P, self.neighbours)
        if k == 1:
            return np.array([self.release(Exponential(size, bound), scores)], dtype=np.int64)
        return self.release(TopK(k, size, bound), scores)

    def around(self, w: Array) -> View:
        """A view that scores moves away from w: incremental where the objective knows how."""
        if isinstance(self.objective, LinearObjective | FacilityObjective):
            return self.objective.at(w)
        if isinstance(self.objective, CentersObjective):
            return self.objective.walk(w)
        return Moves(self.objective, self.space, w)

    # ------------------------------------------------------------------------------------ reports

    def note(self, **used: Any) -> None:
        """Keep settings as they are used, for the `Release`: public numbers alone."""
        self._notes.update(used)

    def report(self, survivors: Array) -> None:
        """Keep what a generation released, (s, ...), and let the listener know."""
        self._generations.append(survivors)
        if self._callback is not None:
            spent = self.whole if self.is_private else None
            index, leader = len(self._generations), np.array(survivors[0])
            self._callback(Generation(index, self._total, leader, spent))

    def path(self, average: float = 0.0) -> Path:
        """All that was reported and noted.

        The answer is the mean of the last `average` of it, or the last survivor: of candidates that
        have no mean always that.
        """
        if average and not self.space.has_means:
            average = 0.0
            self.note(average=average)
        return Path(tuple(self._generations), average, dict(self._notes))


def coins_of(source: BitSource) -> Coins:
    """A fast generator for what never sees records, seeded by the same bits as the noise."""
    return np.random.Generator(np.random.SFC64(source.bits(128)))


def size_of(budget: Budget, kind: str, count: int, composition: str = "tight") -> float:
    """The size of each of so many equal releases that cost a budget together.

    It is the epsilon of a 'selection' or of a 'pure' release, the mu of a 'gaussian' one.
    `composition` is a method of `accounting`. A pure release that is not a bounded-range selection
    needs one that is proved for it, such as 'naive'.
    """
    if kind == "gaussian":
        return gaussian_calibrate(budget.epsilon, budget.delta) / math.sqrt(count) * ALMOST
    return calibrate(count, budget.epsilon, budget.delta, composition)


class Moves:
    """The candidates around w, scored one by one: for objectives that know no shorter way."""

    def __init__(self, objective: Objective, space: Space, w: Array) -> None:
        self._objective, self._space, self.w = objective, space, w

    @property
    def model(self) -> Array:
        """The candidate that moves start from."""
        return self.w

    def candidates(self, where: Array, what: Array) -> Array:
        """(m, ...): the candidates after each move."""
        return self._space.moved(self.w, where, what)

    def scores(self, where: Array, what: Array) -> Integers:
        """int64 (m,): the scores after each move."""
        return np.asarray(self._objective.scores(self.candidates(where, what)))

    def prior(self, where: Array, what: Array) -> Integers:
        """int64 (m,): the data-free part of the objective after each move."""
        return np.asarray(self._objective.prior(self.candidates(where, what)))

    def range(self, where: Array, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""
        return int(self._objective.range(self.candidates(where, what), neighbours))

    def step(self, where: int, what: Any) -> None:
        """Move."""
        self.w = self.candidates(np.asarray(where), np.asarray(what))[0]


# ------------------------------------------------------------------------------------------ checks


def check_candidates(task: Task[Objective, Space]) -> None:
    """Refuse a space whose candidates an objective cannot sum up; no record is read.

    A user's own score is tried on a few records besides.
    """
    P = check_space(task.objective, task.space)
    task.objective.range(P, task.neighbours)
    task.objective.prior(P)
    if isinstance(task.objective, RecordObjective):
        task.objective.check(P)


def check_space(objective: Objective, space: Space) -> Array:
    """The outermost candidates of a space: an objective that scores these can score all."""
    if isinstance(objective, LinearObjective) and not isinstance(space, Reals):
        raise DeclarationError(
            f"space ({space!r}) must be a box of weights for a LinearObjective; pass "
            f"Reals(-1, 1, {objective.n_weights})"
        )
    space = space.on_grid_of(objective)
    if (
        isinstance(objective, CentersObjective)
        and isinstance(space, Reals)
        and space.shape == (objective.n_clusters, objective.n_features)
    ):
        far = space.snap(objective.outermost(space.low, space.high))
        return np.concatenate([space.extremes, far[None]])
    return space.extremes
