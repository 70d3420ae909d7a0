"""What every private search shares: its conduct, and the path that it releases.

A search is a plain function ``(objective, space, settings, grant, rng, callback, **public)`` that
returns a `Path`. It plans its selections on the grant before it looks at any record, proposes
without data, scores with the objective, and selects through ``grant.release``. All it returns and
tells has been released; what is done to a path afterwards is free of budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.cautions import PrivacyLeakWarning
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)
from privfit.privacy.accounting import Event, calibrate, gaussian_calibrate
from privfit.privacy.ledger import ADJACENCIES, Budget, Grant
from privfit.privacy.mechanisms import Mechanism
from privfit.runs.spaces import Reals, Space

__all__ = ["Conduct", "Generation", "Moves", "Path", "PrivacyLeakWarning"]


@dataclass(frozen=True)
class Generation:
    """Where a search stands: released values only.

    `parameters` is the generation's leading candidate; `spent` what the search was granted, which
    was charged whole before it began, or None if it is not private.

    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> seen = []
    >>> declared = {"domain": (-1, 1), "classes": [0, 1], "solver": "local"}
    >>> model = LogisticRegression(1.0, 1e-6, callback=seen.append, **declared)
    >>> _ = model.fit(np.linspace(-1, 1, 1000)[:, None], np.repeat([0, 1], 500))
    >>> len(seen) == seen[-1].total
    True
    """

    index: int
    total: int
    parameters: Array
    spent: Budget | None


@dataclass(frozen=True, eq=False)
class Path:
    """All that a search released: the selected candidates (s, ...) of each generation, in order.

    `average` is the share of the path whose mean is the answer; 0 means the last selection.
    `notes` are settings as they were used: what rules chose, and None for what had no use. They are
    public, and go into the settings of a `Release`: see `realised`.

    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, search
    >>> objective = RecordObjective(np.zeros(9), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    >>> found = search(objective, Bits(4), 1.0)
    >>> found.path.answer.shape
    (4,)
    """

    generations: tuple[Array, ...]
    average: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Path(<{len(self.generations)} generations>)"

    @property
    def last(self) -> Array:
        """The candidate that was selected last."""
        return np.asarray(self.generations[-1][0])

    def mean(self, share: float) -> Array:
        """The mean of all that the last generations released; post-processing, hence free."""
        count = max(1, round(share * len(self.generations)))
        return np.asarray(np.concatenate(self.generations[-count:]).mean(axis=0))

    @property
    def answer(self) -> Array:
        """The mean of the last `average` of the path, or its last selection."""
        return self.mean(self.average) if self.average else self.last


class Conduct:
    """How one search is run: what is public about it, its bits, its plan and its listener.

    Parameters
    ----------
    adjacency : 'replace' or 'add_remove'
    n_public : int, optional
        A public number of records, which steers the method and may be rough. By default the real
        one under 'replace', where it is public.
    share : int
        This search is one of so many equal ones on the same grant.
    """

    def __init__(
        self,
        objective: Any,
        space: Space,
        grant: Grant | None,
        rng: Any = None,
        callback: Callable[[Generation], object] | None = None,
        *,
        adjacency: str = "replace",
        n_public: int | None = None,
        share: int = 1,
    ) -> None:
        self.size = public_size(objective, adjacency, n_public)  # None where nobody declared it
        self.adjacency, self.space = adjacency, space.on_grid_of(objective)
        self.source = BitSource.of(rng)
        # Proposals see no data, so a fast generator will do; its seed comes from the same bits.
        self.coins = np.random.Generator(np.random.SFC64(self.source.bits(128)))
        self.objective, self._grant, self._callback = objective, grant, callback
        self.share = share
        self._generations: list[Array] = []
        self._notes: dict[str, Any] = {}
        self._total = 1

    @property
    def n(self) -> int:
        """The public number of records."""
        if self.size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or settings with generations="
            )
        return self.size

    @property
    def budget(self) -> Budget:
        """What each of the equal searches would have by itself, as far as rules need it."""
        assert self._grant is not None
        whole = self._grant.budget
        parts = math.sqrt(self.share) if whole.delta else self.share
        return Budget(whole.epsilon / parts, whole.delta)

    @property
    def pure_epsilon(self) -> float:
        """The part of epsilon that each of the equal searches has where budgets add up."""
        assert self._grant is not None
        return self._grant.budget.epsilon / self.share

    @property
    def mu(self) -> float:
        """The Gaussian parameter of the budget, 0 for a pure one."""
        budget = self.budget
        return gaussian_calibrate(budget.epsilon, budget.delta) if budget.delta else 0.0

    def plan(
        self,
        selections: int,
        generations: int,
        composition: str = "tight",
        kind: str = "selection",
    ) -> float:
        """Set equal selections aside and return the budget of each.

        `composition` is a method of `accounting`. A mechanism that is not bounded-range is of kind
        'pure', and needs a method that treats selections as pure releases.
        """
        self._total = generations
        if self._grant is None:
            return math.inf
        whole = self._grant.budget
        eps_s = calibrate(selections * self.share, whole.epsilon, whole.delta, composition)
        self.set_aside(generations, Event(kind, eps_s, selections))
        self.note(selections=selections, eps_s=eps_s)
        return eps_s

    def plan_rounds(self, rounds: int, survivors: int) -> tuple[float, float]:
        """Set aside rounds of epsilon / rounds each: all but the last make `survivors` selections.

        Return the budgets of a selection in such a round and of the last one, which is alone. They
        add up to epsilon, whatever delta is.
        """
        assert self._grant is not None
        last = calibrate(rounds * self.share, self._grant.budget.epsilon, 0.0)
        each = calibrate(survivors, last, 0.0)
        before = (rounds - 1) * survivors
        first = (Event("selection", each, before),) if before else ()
        self.set_aside(rounds, *first, Event("selection", last))
        self.note(selections=before + 1, eps_s=each if before else None, eps_last=last)
        return each, last

    def plan_one(self, kind: str) -> float:
        """Set a single release aside, pure in the whole epsilon, and return its budget."""
        assert self._grant is not None
        epsilon = calibrate(self.share, self._grant.budget.epsilon, 0.0)
        self.set_aside(1, Event(kind, epsilon))
        return epsilon

    def set_aside(self, generations: int, *events: Event) -> None:
        """Set draws aside; with what was told, so many generations in all.

        The first of several equal searches does it for all of them, before anything is drawn; what
        the others need is then in the plan.
        """
        self._total = generations
        assert self._grant is not None
        times = self.share if self.share > 1 and not self._grant.events else 1
        self._grant.plan(*(replace(event, count=times * event.count) for event in events))

    def note(self, **used: Any) -> None:
        """Keep settings as they are used, for the `Release`: public numbers alone."""
        self._notes.update(used)

    def release(self, mechanism: Mechanism, value: Any) -> Any:
        """What a mechanism draws from a value of the records, through the grant."""
        assert self._grant is not None
        return self._grant.release(mechanism, value, self.source)

    def tell(self, selected: Array) -> None:
        """Keep what a generation released, (s, ...), and let the listener know."""
        self._generations.append(selected)
        if self._callback is not None:
            spent = None if self._grant is None else self._grant.budget
            index, leader = len(self._generations), np.array(selected[0])
            self._callback(Generation(index, self._total, leader, spent))

    def path(self, average: float | None = None) -> Path:
        """All that was told, and what was noted; only reals have a mean."""
        used = average if average and isinstance(self.space, Reals) else 0.0
        if average is not None:
            self.note(average=used)
        return Path(tuple(self._generations), used, dict(self._notes))

    def around(self, w: Array) -> Any:
        """A view that scores moves away from w: incremental where the objective knows how."""
        if isinstance(self.objective, LinearObjective | FacilityObjective):
            return self.objective.at(w)
        if isinstance(self.objective, CentersObjective):
            return self.objective.walk(w)
        return Moves(self.objective, self.space, w)


def realised(solver: str, settings: Any, path: Path) -> dict[str, Any]:
    """What was done, for the settings of a `Release`: the solver's settings as they were used."""
    return {"solver": solver, **_merged(asdict(settings), path.notes)}


def _merged(given: dict[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of their parts: what was used goes before what was given."""
    both = {
        name: _merged(given[name], value) if isinstance(value, Mapping) else value
        for name, value in used.items()
    }
    return {**given, **both}


def public_size(objective: Any, adjacency: str, n_public: int | None) -> int | None:
    """The public number of records: as declared, or the real one where a record is replaced."""
    if adjacency not in ADJACENCIES:
        raise ValueError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )
    if n_public is None:
        return int(objective.n_records) if adjacency == "replace" else None
    if not is_whole(n_public) or n_public < 1:
        raise ValueError(
            f"n_public ({n_public!r}) must be a positive whole number; pass a public estimate of "
            "the number of records"
        )
    return int(n_public)


def check_callback(callback: Any) -> None:
    """Refuse a listener that cannot be called."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback ({type(callback).__name__}) must be a function; pass callback(generation)"
        )


def check_space(objective: Any, space: Space) -> Array:
    """The outermost candidates of a space: an objective that scores these can score all."""
    if isinstance(objective, LinearObjective) and not isinstance(space, Reals):
        raise ValueError(
            f"space ({space!r}) must be a box of weights for a LinearObjective; pass "
            f"Reals(-1, 1, {objective.n_weights})"
        )
    space = space.on_grid_of(objective)
    if isinstance(objective, CentersObjective) and space.shape == (
        objective.n_clusters,
        objective.n_features,
    ):
        assert isinstance(space, Reals)
        far = space.snap(objective.outermost(space.low, space.high))
        return np.concatenate([space.extremes, far[None]])
    return space.extremes


def check_candidates(objective: Any, P: Array, adjacency: str) -> None:
    """Refuse candidates that an objective cannot sum up, from public numbers; no record is read.

    A user's own score is tried on a few records besides.
    """
    objective.range(P, adjacency)
    objective.prior(P)
    if isinstance(objective, RecordObjective):
        objective.check(P)


class Moves:
    """The candidates around w, scored one by one: for objectives that know no shorter way."""

    def __init__(self, objective: Any, space: Space, w: Array) -> None:
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

    def range(self, where: Array, what: Array, adjacency: str) -> int:
        """The range of these scores between neighbours."""
        return int(self._objective.range(self.candidates(where, what), adjacency))

    def step(self, where: Any, what: Any) -> None:
        """Move."""
        self.w = self.candidates(where, what)[0]


def side_by_side(first: Array, second: Array) -> Array:
    """(2 m, ...): two populations (m, ...) as one, pair after pair."""
    return np.stack([first, second], axis=1).reshape(-1, *first.shape[1:])


# ---------------------------------------------------------------------------------------- settings


OPEN: Any = None  # a setting that `fill` gives its default


def fill(settings: Any, ours: dict[str, Any], paper: dict[str, Any]) -> None:
    """Give every setting that was left open its default: the paper's or ours."""
    for name, value in (paper if settings.paper else ours).items():
        if getattr(settings, name) is None:
            object.__setattr__(settings, name, value)


def check_counts(settings: Any, *names: str) -> None:
    """Refuse settings that are not positive whole numbers; None stands for a rule."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_whole(value) or value < 1):
            raise ValueError(f"{name} ({value!r}) must be a positive whole number; leave it out")


def check_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside [0, 1]; None stands for a rule."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and (not is_finite(value) or not 0 <= value <= 1):
            raise ValueError(f"{name} ({value!r}) must lie in [0, 1]; leave it out")


def check_positive_shares(settings: Any, *names: str) -> None:
    """Refuse settings outside (0, 1]; None stands for a rule."""
    check_shares(settings, *names)
    for name in names:
        if getattr(settings, name) == 0:
            raise ValueError(f"{name} (0) must be above 0 and at most 1; leave it out")


def check_split(settings: Any, *names: str) -> None:
    """Refuse shares that leave nothing on one side."""
    for name in names:
        value = getattr(settings, name)
        if not is_finite(value) or not 0 < value < 1:
            raise ValueError(f"{name} ({value!r}) must lie between 0 and 1; leave it out")
