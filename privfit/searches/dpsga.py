"""The differentially private simple genetic algorithm (Humphries 2021).

Truncation selection by peeling: the best N_s of a population are drawn one after the other by the
exponential mechanism. They are kept (elitism) and bred by uniform crossover and mutation. With an
infinite budget the same loop is the plain simple genetic algorithm.

Section 6.2 of the thesis compares three ways to draw a parent, and Section 6.3 the composition
theorems for their cost. Both can be chosen. The exponential mechanism is eps_s-bounded-range, and
all theorems apply to it. Permute-and-flip and report-noisy-max are only eps_s-DP at the same rate:
only theorems that hold for every pure release apply to them, and the others are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_whole
from privfit.privacy.accounting import METHODS
from privfit.privacy.mechanisms import WIDEST, Mechanism, NoisyMax, PermuteAndFlip, TopK
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task, gridded
from privfit.runs.settings import Blank, Search, blank, check_counts, check_shares
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
from privfit.searches.operators import Constant, Gaussian, MiddleStarts, RandomStarts, Uniform

__all__ = ["DPSGA", "thesis_delta"]


# Generations by epsilon, in half decades from 10^-2 to 10^1.5 (the thesis's table).
GENERATIONS = (10, 10, 20, 50, 75, 100, 120, 120)

# Selections that are eps_s-DP but not eps_s-bounded-range, and what adds such releases up.
PURE = {"noisy_max": NoisyMax, "permute_and_flip": PermuteAndFlip}
PURE_COMPOSITIONS = ("naive", "advanced", "kov", "kov_exact", "rdp")


def thesis_delta(n: int) -> float:
    """The thesis's delta for n records, n^-1.1 (Section 6.3); n must be public.

    >>> from privfit.searches.dpsga import thesis_delta
    >>> round(thesis_delta(48_842), 9)
    6.955e-06
    """
    if not is_whole(n) or n < 2:
        raise DeclarationError(
            f"n ({n!r}) must be a whole number of at least 2; pass the public number of records"
        )
    return float(n) ** -1.1


def _usual_composition(settings: DPSGA) -> str:
    """The cheapest composition that is proved for the selection, or the thesis's lemma."""
    if settings.selection in PURE:
        return "kov" if settings.paper else "kov_exact"
    return "bounded_range" if settings.paper else "tight"


@dataclass(frozen=True, repr=False)
class DPSGA(Search):
    """Settings of the simple genetic algorithm, for the parameter `solver`.

    Parameters
    ----------
    generations : int, optional
        Number of generations, N_g; by default chosen from epsilon by the thesis's table.
    population, survivors : int, optional
        Size of a population, N_p, and number of parents drawn from it, N_s.
    crossover : float, operator or callable, optional
        Fraction p_c of children with two parents, by `Uniform` crossover; or another crossover.
    mutation : float, operator or callable, optional
        Probability p_m that a gene mutates, by default 1 / (genes + 1), by a `Gaussian` step; or
        another mutation.
    step : float, optional
        Standard deviation of a real gene's mutation, as a fraction of its width (0.1 in [-1, 1]).
    average : float, optional
        Fraction of the released path whose mean is the answer; 0 for the last selection.
    paper : bool, default=False
        Whether to run Algorithm 3 as published, with the thesis's defaults, its composition, both
        children of each pair, and noise for twice a candidate's own sensitivity instead of the
        range. Repaired: the population is filled to exactly N_p, not 202; the signs of its equation
        8.1 and Algorithm 8; scaling, clipping and N_g never look at the records. `docs/dpsga.md`
        has a table.
    selection : {'exponential', 'noisy_max', 'permute_and_flip'}, default='exponential'
        The mechanism that draws a parent.
    composition : str, optional
        Composition of all draws if delta > 0: 'naive', 'advanced', 'kov', 'kov_exact' or 'rdp' for
        any selection; 'bounded_range', 'zcdp' or 'tight' for the exponential one only (`compose`
        explains the names). By default the cheapest: 'tight', or 'kov_exact'. The thesis has
        'bounded_range' (its Lemma 6.15), or 'kov' (Lemma 6.6).
    schedule, starts : operator or callable, optional
        The sizes of steps by generation, by default `Constant`; the first population, by default
        `MiddleStarts` in a box of real numbers and `RandomStarts` elsewhere. Operators are those of
        `privfit.searches`, or functions of your own; `docs/spaces.md` lists them.

    See Also
    --------
    PrivGene, EEM, Local : Other searches.
    search : Searches any space with these settings.

    Notes
    -----
    Released: the parents of each generation. Cost: N_g N_s + 1 selections, which together cost the
    budget of the fit.

    References
    ----------
    Humphries, "Differentially private simple genetic algorithms", thesis, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import DPSGA, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = DPSGA(generations=20)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    counts_errors: ClassVar[bool] = True
    runs_unpaid: ClassVar[bool] = True

    generations: int | None = None
    population: Blank[int] = blank(200)
    survivors: Blank[int] = blank(10)
    crossover: Blank[float | Proposal] = blank(0.5)
    mutation: float | Proposal | None = None
    step: Blank[float | None] = Blank(lambda own: own_field(own.mutation, "step", 0.05))
    average: Blank[float] = blank(0.25, paper=0.0)
    paper: bool = False
    selection: str = "exponential"
    composition: Blank[str] = Blank(_usual_composition)
    schedule: Callable[[int, int], float] | None = None
    starts: Proposal | None = None

    unlisted: ClassVar[tuple[str, ...]] = ("schedule", "starts")

    def __post_init__(self) -> None:
        self._check_selection()
        check_operators(self, numbers=("crossover", "mutation"))
        check_counts(self, "generations", "population", "survivors")
        check_shares(self, "step", "average")
        if self.survivors >= self.population:
            raise DeclarationError(
                f"survivors ({self.survivors}) must be below the population ({self.population}); "
                "pass fewer"
            )

    @property
    def largest_weight(self) -> float:
        return 1.0

    def _check_selection(self) -> None:
        """Refuse an unknown selection, and a composition that is not proved for it."""
        known = ("exponential", *PURE)
        if self.selection not in known:
            raise DeclarationError(
                f"selection ({self.selection!r}) must be one of {', '.join(known)}; pass one of "
                "them"
            )
        if self.composition not in METHODS:
            raise DeclarationError(
                f"composition ({self.composition!r}) must be one of {', '.join(METHODS)}; pass one "
                "of them"
            )
        if self.selection in PURE and self.composition not in PURE_COMPOSITIONS:
            raise DeclarationError(
                f"composition ({self.composition!r}) must be proved for every pure release, since "
                f"selection {self.selection!r} is not bounded-range; pass one of "
                f"{', '.join(PURE_COMPOSITIONS)}, or selection='exponential'"
            )

    @property
    def space_needs(self) -> tuple[str, ...]:
        """The methods of a space that it calls."""
        crossover, _ = crossing(self.crossover, Uniform(), 0.5)
        return needed(self.paper, crossover, self._mutation, self.starts or RandomStarts())

    @property
    def _mutation(self) -> Proposal:
        """The mutation that was passed, or the thesis's at the rate that was passed."""
        return self.mutation if callable(self.mutation) else Gaussian(rate=self.mutation)

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse a space that the objective cannot score, or that lacks what operators need.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        space = gridded(task.space, task.objective)
        self._breeding(space).check(space)

    def _breeding(self, space: Space) -> Breeding:
        """The operators that were passed, or else the thesis's."""
        crossover, rate = crossing(self.crossover, Uniform(), 0.5)
        mutation = mutating(self._mutation, self.step, space)
        starts = self.starts or (MiddleStarts() if isinstance(space, Reals) else RandomStarts())
        return Breeding(
            crossover, rate, mutation, self.schedule or Constant(), starts, both=self.paper
        )

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """Peel N_s parents, keep them, breed N_p - N_s children, repeat; finally select one.

        Released: the parents of each generation. Cost: N_g N_s + 1 selections, the grant's budget.
        Without a grant nothing is private.
        """
        objective, space, coins = run.objective, run.space, run.coins
        n_g, eps_s = self._plan(run)
        breeding = self._breeding(space)
        run.note(mutation=getattr(breeding.mutation, "rate", None))
        run.note(**breeding.shown(self))
        P = breeding.first(space, self.population, coins)
        scores = objective.scores(P) + objective.prior(P)
        for generation in range(n_g):
            chosen = self._select(run, P, scores, self.survivors, eps_s)
            parents = P[chosen]
            run.report(parents)
            # Each child has a pair of parents; as published, both children of a pair are added.
            children = breeding.children(space, parents, self.population - len(parents), coins)
            children = breeding.mutants(space, children, generation, n_g, coins)
            P = np.concatenate([parents, children])
            bred = objective.scores(children) + objective.prior(children)
            scores = np.concatenate([scores[chosen], bred])  # parents are not scored again
        run.report(P[self._select(run, P, scores, 1, eps_s)])
        return run.path(self.average)

    def _plan(self, run: Run[Objective, Space]) -> tuple[int, float]:
        """N_g, and the size of each selection."""
        n_g = self.generations or _generations(run)
        kind = "pure" if self.selection in PURE else "selection"
        selections = n_g * self.survivors + 1
        eps_s = run.plan(kind, selections, self.composition, generations=n_g + 1)
        run.note(selections=selections, eps_s=eps_s, generations=n_g)
        return n_g, eps_s

    def _select(
        self, run: Run[Objective, Space], P: Array, scores: Integers, k: int, eps_s: float
    ) -> Integers:
        """(k,): the candidates that are drawn; without privacy the best, in order."""
        if not run.is_private:
            return np.argsort(-scores, kind="stable")[:k]
        bound = (run.objective.spread if self.paper else run.objective.range)(P, run.neighbours)
        if self.selection in PURE:
            return _peel(run, _pure(self.selection, eps_s, bound), scores, k)
        return np.asarray(run.release(TopK(k, eps_s, bound), scores))


def _pure(selection: str, eps_s: float, bound: int) -> Mechanism[ArrayLike, int]:
    """The mechanism of a draw; if its noise would not fit in 64 bits, a uniform one."""
    drowned = selection == "noisy_max" and eps_s < float(WIDEST) * bound * (1 + 1e-9)
    return PURE[selection](eps_s, 0 if drowned else bound)


def _peel(
    run: Run[Objective, Space], one: Mechanism[ArrayLike, int], scores: Integers, k: int
) -> Integers:
    """(k,): draw one candidate, remove it, and draw again among the rest."""
    left = np.arange(len(scores))
    chosen = np.empty(k, dtype=np.int64)
    for i in range(k):
        place = run.release(one, scores[left])
        chosen[i] = left[place]
        left = np.delete(left, place)
    return chosen


def _generations(run: Run[Objective, Space]) -> int:
    """N_g for the nearest epsilon in the table."""
    if not run.is_private:
        return GENERATIONS[-1]
    place = round(2 * (math.log10(run.whole.epsilon) + 2))
    return GENERATIONS[min(max(place, 0), len(GENERATIONS) - 1)]
