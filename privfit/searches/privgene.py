"""PrivGene, its enhanced exponential mechanism, and PrivLocal (Zhang et al., SIGMOD 2013).

Candidates are bred or moved without data, scored over all records, and selected privately. The
three searches differ in what a generation is:

==========  ====================================================================================
`PrivGene`  many survivors; offspring by crossover and mutation
`EEM`       one survivor; offspring are mutations, so close together that the range of their
            scores is small: the noise shrinks with the steps
`Local`     one survivor; the offspring are all its neighbours, without randomness. Moves of
            linear models are scored by the loss, as published, or by the clipped gradient,
            which takes one pass for all of them
==========  ====================================================================================

A selection is the exponential mechanism at rate eps_s / R, with R the range of the scores between
neighbours: sup over neighbours D, D' and candidates r, r' of (u(D,r) - u(D',r)) - (u(D,r') -
u(D',r')). R is computed from the candidates and the declared domain, both public; given the earlier
selections the candidates are the same for D and D'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeGuard, cast

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.objectives import LinearObjective
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.mechanisms import Exponential
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space, View
from privfit.runs.run import Run, Task, check_space, gridded
from privfit.runs.settings import (
    Blank,
    Search,
    blank,
    check_counts,
    check_positive_shares,
    check_shares,
)
from privfit.runs.spaces import Reals
from privfit.searches.breeding import (
    Breeding,
    Proposal,
    check_operators,
    crossing,
    mutating,
    needed,
    own_field,
)
from privfit.searches.operators import Decay, InterceptStarts, OnePoint, RandomStarts, Step

__all__ = ["EEM", "Local", "PrivGene"]


class _Steered(Search):
    """What the three searches share: their number of generations, by default from a rule."""

    without_size = "settings with generations="

    generations: int | None

    @property
    def needs_size(self) -> bool:
        return self.generations is None

    def steps_by_rule(self, run: Run[Objective, Space]) -> int:
        """The number of selections: 4 sqrt(n mu), or sqrt(n epsilon) / 3 if delta is 0; at least 8.

        mu is the Gaussian parameter of (epsilon, delta). More steps reach further but each is
        noisier; the rule was chosen on generated and public tables (`python -m bench accuracy`
        shows it on real ones).

        Parameters
        ----------
        run : Run
            The run, with its budget and public number of records.

        Returns
        -------
        int
            The number of selections.
        """
        n = self.size(run)
        if run.mu:
            return max(8, round(4 * math.sqrt(n * run.mu)))
        return max(8, round(math.sqrt(n * run.budget.epsilon) / 3))

    def paper_rounds(self, run: Run[Objective, Space], survivors: int = 1) -> int:
        """The paper's number of rounds: 1.25e-3 n epsilon / m' (Section 6.1), at least one.

        Parameters
        ----------
        run : Run
            The run, with its budget and public number of records.
        survivors : int, default=1
            Number of survivors m' of a generation.

        Returns
        -------
        int
            The number of rounds r.
        """
        return max(1, round(1.25e-3 * self.size(run) * run.pure_epsilon / survivors))


# ---------------------------------------------------------------------------------------- PrivGene


def _usual_decay(settings: PrivGene) -> float | None:
    """That of the schedule, which is 0.98 in ours and 0.95 in the paper's."""
    return own_field(settings.schedule, "factor", 0.95 if settings.paper else 0.98)


@dataclass(frozen=True, repr=False)
class PrivGene(_Steered):
    """Settings of PrivGene, for the parameter `solver`.

    Parameters
    ----------
    generations : int, optional
        Number of generations r. By default as many selections as `steps_by_rule` says, m' in each
        generation; the paper's rule is 1.25e-3 n epsilon / m' rounds, the last of which selects the
        answer.
    population, survivors : int, optional
        Sizes m and m' of the paper.
    step, decay : float, optional
        A mutation moves one coordinate by `step` times its width; `step` is multiplied by `decay`
        after each generation.
    average : float, optional
        Fraction of the released path whose mean is the answer; 0 for the last selection.
    paper : bool, default=False
        Whether to run Algorithm 1 as published: r rounds of epsilon / r each, the last of which
        selects one vector with all of its share; both children of each pair; budgets simply add up,
        whatever delta is; noise for each candidate's own sensitivity (equation 10) instead of the
        range. Repaired: the factor 2 missing from equation 18 (without it the mechanism is 2
        epsilon); the last coordinate mutates too; mutants are clipped to the space; the "+1" of the
        logistic sensitivity is dropped. `docs/privgene.md` has a table.
    crossover, mutation, schedule, starts : operator or callable, optional
        Other operators than the paper's, which are `OnePoint`, `Step`, `Decay` and, for linear
        models with an intercept, `InterceptStarts`: those of `privfit.searches`, or functions of
        your own. A number for `crossover` is its rate. `docs/spaces.md` lists them.

    See Also
    --------
    EEM : One survivor, and less noise as steps shrink.
    Local : All neighbours instead of random mutants.
    search : Searches any space with these settings.

    Notes
    -----
    Released: the survivors of each generation. Cost: r m' + 1 equal selections, which together cost
    the budget of the fit.

    References
    ----------
    J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: differentially private model
    fitting using genetic algorithms", SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, PrivGene
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = PrivGene(paper=True)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)

    A variant of it, with other operators:

    >>> from privfit.searches import Gaussian, Uniform
    >>> variant = PrivGene(crossover=Uniform(), mutation=Gaussian(0.02))
    >>> model.set_params(solver=variant).fit(X, y).coef_.shape
    (1, 2)
    """

    generations: int | None = None
    population: Blank[int] = blank(200)
    survivors: Blank[int] = blank(10)
    step: Blank[float | None] = Blank(lambda own: own_field(own.mutation, "step", 0.05))
    decay: Blank[float | None] = Blank(_usual_decay)
    average: Blank[float] = blank(0.25, paper=0.0)
    paper: bool = False
    crossover: float | Proposal | None = None
    mutation: Proposal | None = None
    schedule: Callable[[int, int], float] | None = None
    starts: Proposal | None = None

    unlisted: ClassVar[tuple[str, ...]] = ("crossover", "mutation", "schedule", "starts")

    def __post_init__(self) -> None:
        check_operators(self)
        check_counts(self, "generations", "population", "survivors")
        check_shares(self, "step", "decay", "average")
        if self.survivors > self.population:
            raise DeclarationError(
                f"survivors ({self.survivors}) must be at most the population ({self.population}); "
                "pass fewer"
            )

    @property
    def weighs_loss(self) -> bool:
        return True

    @property
    def largest_weight(self) -> float:
        return 5.0

    @property
    def space_needs(self) -> tuple[str, ...]:
        """The methods of a space that it calls."""
        crossover, _ = crossing(self.crossover, OnePoint(), None)
        return needed(self.paper, crossover, self.mutation or Step(), self.starts or RandomStarts())

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse a space that the objective cannot score, or that lacks what operators need.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        space = gridded(task.space, task.objective)
        self._breeding(task.objective, space).check(space)

    def _breeding(self, objective: Objective, space: Space) -> Breeding:
        """The operators that were passed, or else the paper's."""
        crossover, rate = crossing(self.crossover, OnePoint(), None)
        mutation = mutating(self.mutation or Step(), self.step, space)
        schedule = self.schedule or Decay(cast(float, self.decay))
        starts = self.starts or _usual_starts(objective, space)
        return Breeding(crossover, rate, mutation, schedule, starts, both=self.paper)

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """Breed, select m' survivors, repeat; finally select one (Algorithm 1).

        Released: the survivors of each generation. Cost: r m' + 1 equal selections, the grant's
        budget; as published (r - 1) m' of epsilon / (r m') and one of epsilon / r.
        """
        objective, space, coins = run.objective, run.space, run.coins
        if self.paper:
            generations, eps_s, eps_last = self._published_plan(run)
            bound = objective.spread
        else:
            generations, eps_s = self._plan(run)
            eps_last, bound = eps_s, objective.range
        breeding = self._breeding(objective, space)
        run.note(**breeding.shown(self))

        P = breeding.first(space, self.population, coins)
        for generation in range(generations):
            survivors = P[run.select(P, self.survivors, size=eps_s, range=bound)]
            run.report(survivors)
            P = breeding.children(space, survivors, self.population, coins)
            P = breeding.mutants(space, P, generation, generations, coins)
        run.report(P[run.select(P, size=eps_last, range=bound)])
        return run.path(self.average)

    def _plan(self, run: Run[Objective, Space]) -> tuple[int, float]:
        """The number of generations, and the size of a selection: all are equal."""
        generations = self.generations
        if generations is None:
            generations = max(1, round(self.steps_by_rule(run) / self.survivors))
        selections = generations * self.survivors + 1
        eps_s = run.plan("selection", selections, generations=generations + 1)
        run.note(selections=selections, eps_s=eps_s, generations=generations)
        return generations, eps_s

    def _published_plan(self, run: Run[Objective, Space]) -> tuple[int, float, float]:
        """The number of generations, and the sizes of a selection before and in the last round.

        Each round costs epsilon / r, and the last selects one vector. They add up to epsilon,
        whatever delta is.
        """
        rounds = self.generations or self.paper_rounds(run, self.survivors)
        last = run.size_of("selection", rounds, "naive")
        each = calibrate(self.survivors, epsilon=last, delta=0.0)
        before = (rounds - 1) * self.survivors
        first = (Event("selection", each, before),) if before else ()
        run.set_aside(*first, Event("selection", last), generations=rounds)
        run.note(
            selections=before + 1, eps_s=each if before else None, eps_last=last, generations=rounds
        )
        return rounds - 1, each, last


def _usual_starts(objective: Objective, space: Space) -> Proposal:
    """Random candidates; for linear models a tenth have only an intercept, of either sign."""
    intercept = isinstance(objective, LinearObjective) and objective.fit_intercept
    return InterceptStarts() if intercept and isinstance(space, Reals) else RandomStarts()


# --------------------------------------------------------------------------------------------- EEM


class _Walk(_Steered):
    """What walks share: the lengths of their steps."""

    step: Blank[float | None]
    decay: Blank[float | None]
    last_step: float | None
    paper: bool

    @property
    def largest_weight(self) -> float:
        return 5.0 if self.paper else 10.0

    def check_steps(self) -> None:
        """Refuse steps that shrink in two ways."""
        check_shares(self, "decay")
        check_positive_shares(self, "step", "last_step")
        if self.decay is not None and self.last_step is not None:
            raise DeclarationError(
                f"decay ({self.decay}) and last_step ({self.last_step}) must not both be given; "
                "pass one of them"
            )

    def plan(self, run: Run[Objective, Space]) -> tuple[int, float]:
        """Reserve the selections of a walk.

        Parameters
        ----------
        run : Run
            The run, with its budget.

        Returns
        -------
        tuple of int and float
            The number of generations r, and the size of each one's selection.
        """
        r = self.generations or (self.paper_rounds(run) if self.paper else self.steps_by_rule(run))
        eps_s = run.plan("selection", r, "naive" if self.paper else "tight")
        run.note(selections=r, eps_s=eps_s, **self.noted(r))
        return r, eps_s

    def schedule(self, r: int) -> Floats:
        """The size of each generation's moves, as a fraction of a coordinate's width.

        By default from 0.03 down to 0.3 times that: 0.6 and 0.18 for weights in [-10, 10]. Walks of
        fewer than 128 steps take longer steps, since they have as far to go; at most twice as long.

        Parameters
        ----------
        r : int
            Number of generations.

        Returns
        -------
        array of shape (r,)
            The sizes.
        """
        first, last = self._ends(r)
        if self.decay is not None:
            return np.asarray(first * self.decay ** np.arange(r))
        return np.geomspace(first, last, r)

    def _ends(self, r: int) -> tuple[float, float]:
        """The first step, and the last one if steps do not decay."""
        first = self.step or 0.03 * min(2.0, max(1.0, math.sqrt(128 / r)))
        return first, self.last_step or 0.3 * first

    def noted(self, r: int) -> dict[str, float | None]:
        """The settings of a walk as they are used.

        Parameters
        ----------
        r : int
            Number of generations.

        Returns
        -------
        dict
            Values by the names of settings; None for those without effect.
        """
        first, last = self._ends(r)
        decays = self.decay is not None
        return {"generations": r, "step": first, "last_step": None if decays else last}


def _published_decay(settings: _Walk) -> float | None:
    """0.95 in the paper, unless the last step is given."""
    return 0.95 if settings.paper and settings.last_step is None else None


@dataclass(frozen=True, repr=False)
class EEM(_Walk):
    """Settings of PrivGene's enhanced exponential mechanism, for the parameter `solver`.

    Parameters
    ----------
    generations : int, optional
        Number of generations r; by default a public rule in (n, epsilon, delta): see
        `steps_by_rule`. The paper's is 1.25e-3 n epsilon.
    population : int, optional
        Number of mutants in a generation.
    step, decay, last_step : float, optional
        A mutation moves one coordinate by a fraction of its width: `step`, multiplied by `decay`
        after each generation, or falling geometrically to `last_step` if there is no decay. By
        default from a public rule: see `schedule`.
    average : float, optional
        Fraction of the released path whose mean is the answer; 0 for the last selection.
    paper : bool, default=False
        Whether to run the enhanced exponential mechanism as published: r selections of epsilon / r,
        whatever delta is, the first among random starts instead of one walk from zero. For
        objectives that are not linear the noise is that of each candidate's own sensitivity: for
        k-means the paper has no better bound. Repaired: the range of the SVM is 4 C under
        'replace'; any coordinate mutates, including the intercept; mutants are clipped to the
        space. `docs/privgene.md` has a table.

    See Also
    --------
    PrivGene : Many survivors.
    Local : All neighbours instead of random mutants.
    search : Searches any space with these settings.

    Notes
    -----
    Released: the survivor of each generation. Cost: one selection per generation, which together
    cost the budget of the fit.

    References
    ----------
    J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: differentially private model
    fitting using genetic algorithms", SIGMOD 2013, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import EEM, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = EEM(generations=50)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    generations: int | None = None
    population: Blank[int] = blank(200)
    step: Blank[float | None] = blank(None, paper=0.05)
    decay: Blank[float | None] = Blank(_published_decay)
    last_step: float | None = None
    average: Blank[float] = blank(0.25, paper=0.0)
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "generations", "population")
        check_shares(self, "average")
        self.check_steps()

    @property
    def weighs_loss(self) -> bool:
        return True

    @property
    def space_needs(self) -> tuple[str, ...]:
        return ("middle", "some_moves", "moved", *(("sample",) if self.paper else ()))

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """Mutate the one survivor, select one mutant, repeat (Section 5 of the paper).

        Released: the survivor of each generation. Cost: one selection each; together the grant's
        budget.
        """
        objective, space, coins = run.objective, run.space, run.coins
        r, eps_s = self.plan(run)
        w = space.middle
        if self.paper:
            P = _usual_starts(objective, space)(space, self.population, coins)
            w = P[run.select(P, range=objective.spread)[0]]
            run.report(w[None])

        view = run.around(w)
        coarse = self.paper and not isinstance(objective, LinearObjective)
        for step in self.schedule(r - self.paper):
            where, what = space.some_moves(view.w, self.population, step, coins)
            scores = view.scores(where, what) + view.prior(where, what)
            if coarse:
                bound = objective.spread(space.moved(view.w, where, what), run.neighbours)
            else:
                bound = view.range(where, what, run.neighbours)
            chosen = run.release(Exponential(eps_s, bound), scores)
            view.step(where[chosen], what[chosen])
            run.report(view.model[None])
        return run.path(self.average)


# ------------------------------------------------------------------------------------------- Local


@dataclass(frozen=True, repr=False)
class Local(_Walk):
    """Settings of PrivLocal, for the parameter `solver`.

    Parameters
    ----------
    scoring : {'gradient', 'loss'}, optional
        How moves of a linear model are scored; other models are scored by their objective.
    cap : float, optional
        Bound on a record's residual, for the gradient; by default 0.5 for the logistic loss and 1
        for the hinge, the slopes at a margin of 0.
    generations : int, optional
        Number of moves; by default a public rule in (n, epsilon, delta): see `steps_by_rule`. The
        paper's is 1.25e-3 n epsilon.
    step, decay, last_step : float, optional
        A move is a fraction of a coordinate's width: `step`, multiplied by `decay` after each
        generation, or falling geometrically to `last_step` if there is no decay. By default from a
        public rule: see `schedule`.
    average : float, optional
        Fraction of the released path whose mean is the answer; 0 for the last selection.
    paper : bool, default=False
        Whether to run PrivLocal, the code published with PrivGene: 1.25e-3 n epsilon moves of 0.5
        in [-5, 5], decay 0.95, scored by the loss; epsilon / r each, whatever delta is. Repaired:
        the range is that of the realised moves, 4 steps under 'replace'.

    See Also
    --------
    EEM : Random mutants instead of all neighbours.
    Gradient : A descent with Gaussian noise.
    search : Searches any space with these settings.

    Notes
    -----
    Released: the moves. Cost: one selection per generation, which together cost the budget of the
    fit. The range of moves scored by the gradient is 4 x_max cap under 'replace' and 2 x_max cap
    under 'add_remove', with x_max = 1/2 in the centred coding.

    References
    ----------
    J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: differentially private model
    fitting using genetic algorithms", SIGMOD 2013, and the code published with it.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Local, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = Local(generations=50)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    scoring: Blank[str] = blank("gradient", paper="loss")
    cap: float | None = None
    generations: int | None = None
    step: Blank[float | None] = blank(None, paper=0.05)
    decay: Blank[float | None] = Blank(_published_decay)
    last_step: float | None = None
    average: Blank[float] = blank(0.25, paper=0.0)
    paper: bool = False

    def __post_init__(self) -> None:
        if self.scoring not in ("gradient", "loss"):
            raise DeclarationError(
                f"scoring ({self.scoring!r}) must be 'gradient' or 'loss'; pass one of them"
            )
        check_counts(self, "generations")
        check_shares(self, "average")
        check_positive_shares(self, "cap")
        self.check_steps()

    @property
    def weighs_loss(self) -> bool:
        return self.scoring == "loss"

    @property
    def space_needs(self) -> tuple[str, ...]:
        return ("middle", "all_moves", "moved")

    @property
    def weighs_classes(self) -> bool:
        """Whether it takes class weights: the slopes of a linear model are weighted."""
        return self.scoring == "gradient"

    def bounds_codes(self, objective: Objective) -> bool:
        return self._climbs(objective)

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse a space that the objective cannot score, or whose margins are not exact.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        if not self._climbs(task.objective):
            super().check(task)
            return
        if self.needs_size:
            self.size(task)
        corners = check_space(task.objective, task.space)
        task.objective.check_margins(task.objective.centred.weights(corners))

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """From the middle of the space, repeatedly select one of all neighbours and move there.

        Released: the moves. Cost: one selection per generation; together the grant's budget. The
        range of moves scored by the gradient is 4 x_max cap under replace and 2 x_max cap under
        add_remove, with x_max = 1/2 in the centred coding; the space then bounds the centred
        weights.
        """
        r, eps_s = self.plan(run)
        space, view = self._start(run)
        climb(run, space, view, eps_s, self.schedule(r))
        return run.path(self.average)

    def _start(self, run: Run[Objective, Space]) -> tuple[Space, View]:
        """The space of the walk, and a view of its moves from the middle."""
        objective = run.objective
        if not self._climbs(objective):
            run.note(scoring="loss", cap=None)
            return run.space, run.around(run.space.middle)
        # Centred weights are off the grid of linear ones, which may be coarse for a narrow column.
        space, cap = run.declared_space, self.cap_of(objective)
        run.note(cap=cap)
        return space, objective.slopes(space.middle, cap)

    def _climbs(self, objective: Objective) -> TypeGuard[LinearObjective]:
        """Whether moves of centred weights are scored by the clipped gradient."""
        return (
            self.scoring == "gradient"
            and isinstance(objective, LinearObjective)
            and objective.loss != "zero_one"
        )

    def cap_of(self, objective: LinearObjective) -> float:
        """The bound on residuals: by default the slope of the loss at a margin of 0.

        Parameters
        ----------
        objective : LinearObjective
            The objective, with its loss.

        Returns
        -------
        float
            The bound.
        """
        return self.cap or (0.5 if objective.loss == "logistic" else 1.0)


def climb(
    run: Run[Objective, Space], space: Space, view: View, eps_s: float, steps: Floats
) -> Array:
    """(r, ...): the positions of a walk that repeatedly selects one of all neighbours.

    Released: the moves, each reported. Cost: one selection of eps_s for each of the r steps.
    """
    positions = []
    for step in steps:
        where, what = space.all_moves(view.w, step)
        scores = view.scores(where, what) + view.prior(where, what)
        chosen = run.release(Exponential(eps_s, view.range(where, what, run.neighbours)), scores)
        view.step(where[chosen], what[chosen])
        run.report(view.model[None])
        positions.append(np.array(view.w))
    return np.array(positions)
