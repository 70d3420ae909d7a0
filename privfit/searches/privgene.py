"""PrivGene, its enhanced exponential mechanism, and PrivLocal (Zhang et al., SIGMOD 2013).

Candidates are bred or moved without data, scored over all records, and selected privately. The
three searches differ in what a generation is:

==========  ====================================================================================
`PrivGene`  many survivors; offspring by crossover and mutation
`EEM`       one survivor; offspring are mutations, so near each other that their scores' range is
            small: the noise shrinks with the steps
`Local`     one survivor; the offspring are all its neighbours, no coin is flipped. Moves of linear
            models are scored by the loss, as published, or by the clipped gradient, which one
            pass gives for all of them
==========  ====================================================================================

A selection is the exponential mechanism at rate eps_s / R, with R the range of the scores between
neighbours: sup over neighbours D, D' and candidates r, r' of
(u(D,r) - u(D',r)) - (u(D,r') - u(D',r')). R is computed from the candidates and the declared
domain, both public; given the earlier selections the candidates are the same for D and D'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.objectives import LinearObjective
from privfit.privacy.ledger import Grant
from privfit.privacy.mechanisms import Exponential, TopK
from privfit.runs.paths import (
    OPEN,
    Conduct,
    Generation,
    Path,
    check_counts,
    check_positive_shares,
    check_shares,
    fill,
    side_by_side,
)
from privfit.runs.spaces import Space

__all__ = ["EEM", "Local", "PrivGene", "eem", "local", "privgene"]

Callback = Callable[[Generation], object] | None


# ---------------------------------------------------------------------------------------- PrivGene


@dataclass(frozen=True)
class PrivGene:
    """Settings of `privgene`; what is left out takes our default, or the paper's.

    Parameters
    ----------
    generations : int, optional
        r; by default as many selections as `steps_by_rule` says, m' to a generation; the paper's
        rule is 1.25e-3 n epsilon / m' rounds, the last of which selects the answer.
    population, survivors : int
        m and m' of the paper.
    step, decay : float
        A mutation moves one coordinate by this share of its width, times `decay` each generation.
    average : float
        The share of the released path whose mean is the answer; 0 for the last selection.
    paper : bool
        Algorithm 1 as published: r rounds of epsilon / r each, of which the last selects one vector
        with all of its share; both children of each pair; the budgets add up, whatever delta is;
        dampening by each candidate's own sensitivity (equation 10) instead of the range. Repaired:
        the factor 2 that equation 18 lacks (without it the mechanism is 2 epsilon); the last
        coordinate mutates too; mutants are clipped to the space; the "+1" of the logistic
        sensitivity is dropped. `docs/privgene.md` has a table.

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
    """

    generations: int | None = None
    population: int = OPEN
    survivors: int = OPEN
    step: float = OPEN
    decay: float = OPEN
    average: float = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        shared = {"population": 200, "survivors": 10, "step": 0.05}
        fill(
            self,
            ours={**shared, "decay": 0.98, "average": 0.25},
            paper={**shared, "decay": 0.95, "average": 0.0},
        )
        check_counts(self, "generations", "population", "survivors")
        check_shares(self, "step", "decay", "average")
        if self.survivors > self.population:
            raise ValueError(
                f"survivors ({self.survivors}) must be at most the population ({self.population}); "
                "pass fewer"
            )


def privgene(
    objective: Any,
    space: Space,
    settings: PrivGene,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Breed, select m' survivors, repeat; at last select one (Algorithm 1).

    Released: the survivors of each generation. Cost: r m' + 1 equal selections, the grant's budget;
    as published (r - 1) m' of epsilon / (r m') and one of epsilon / r.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    space, coins, s = conduct.space, conduct.coins, settings
    if s.paper:
        rounds = s.generations or _paper_rounds(conduct, s.survivors)
        eps_s, eps_last = conduct.plan_rounds(rounds, s.survivors)
        generations, reach, breed = rounds - 1, objective.spread, _pairs_of_children
        conduct.note(generations=rounds)
    else:
        generations = s.generations or max(1, round(steps_by_rule(conduct) / s.survivors))
        eps_s = eps_last = conduct.plan(generations * s.survivors + 1, generations + 1)
        reach, breed = objective.range, _single_children
        conduct.note(generations=generations)

    P = _starts(objective, space, s.population, coins)
    for generation in range(generations):
        scores = objective.scores(P) + objective.prior(P)
        chosen = grant.release(
            TopK(s.survivors, eps_s, reach(P, conduct.adjacency)), scores, conduct.source
        )
        survivors = P[chosen]
        conduct.tell(survivors)
        P = breed(space, survivors, s.population, coins)
        P = space.nudge(P, s.step * s.decay**generation, coins)
    scores = objective.scores(P) + objective.prior(P)
    best = grant.release(Exponential(eps_last, reach(P, conduct.adjacency)), scores, conduct.source)
    conduct.tell(P[[best]])
    return conduct.path(s.average)


def _single_children(space: Any, survivors: Any, m: int, coins: np.random.Generator) -> Any:
    """m children, each of a pair of its own."""
    parents = survivors[coins.integers(len(survivors), size=(2, m))]
    return space.splice(parents[0], parents[1], coins)


def _pairs_of_children(space: Any, survivors: Any, m: int, coins: np.random.Generator) -> Any:
    """m children: both of each of m / 2 pairs, next to each other."""
    A, B = survivors[coins.integers(len(survivors), size=(2, (m + 1) // 2))]
    child = space.splice(A, B, coins)
    return side_by_side(child, space.sibling(A, B, child, coins))[:m]


def _starts(objective: Any, space: Any, m: int, coins: np.random.Generator) -> Any:
    """Random candidates; for linear models a tenth with nothing but an intercept, of both signs."""
    P = space.sample(m, coins)
    if isinstance(objective, LinearObjective) and objective.fit_intercept:
        alone = m // 20
        P[: 2 * alone, :-1] = 0
        P[:alone, -1] = np.abs(P[:alone, -1])
        P[alone : 2 * alone, -1] = -np.abs(P[alone : 2 * alone, -1])
        P = space.snap(P)  # zero or a sign may lie outside the box
    return P


# --------------------------------------------------------------------------------------------- EEM


@dataclass(frozen=True)
class EEM:
    """Settings of `eem`; what is left out takes our default, or the paper's.

    Parameters
    ----------
    generations : int, optional
        r; by default a public rule in (n, epsilon, delta): see `steps_by_rule`; the paper's is
        1.25e-3 n epsilon.
    population : int
        Mutants in a generation.
    step, decay, last_step : float
        A mutation moves one coordinate by this share of its width: `step` times `decay` each
        generation, or falling geometrically to `last_step` if there is no decay. By default from
        a public rule: see `schedule`.
    average : float
        The share of the released path whose mean is the answer; 0 for the last selection.
    paper : bool
        PrivGene with the enhanced exponential mechanism as published: r selections of epsilon / r,
        whatever delta is, the first among random starts instead of one walk from zero. Objectives
        that are not linear are dampened by each candidate's own sensitivity: for k-means the paper
        has no better bound. Repaired: the range of the SVM is 4 C under replace; any coordinate
        mutates, the intercept too; mutants are clipped to the space. A table: `docs/privgene.md`.

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
    population: int = OPEN
    step: float | None = None
    decay: float | None = None
    last_step: float | None = None
    average: float = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        fill(
            self,
            ours={"population": 200, "average": 0.25},
            paper={
                "population": 200,
                "step": 0.05,
                "decay": 0.95 if self.last_step is None else None,
                "average": 0.0,
            },
        )
        check_counts(self, "generations", "population")
        check_shares(self, "decay", "average")
        check_positive_shares(self, "step", "last_step")
        _check_schedule(self)


def eem(
    objective: Any,
    space: Space,
    settings: EEM,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Mutate the one survivor, select one mutant, repeat (Section 5 of the paper).

    Released: the survivor of each generation. Cost: one selection each, in all the grant's budget.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    space, coins, s = conduct.space, conduct.coins, settings
    r = s.generations or (_paper_rounds(conduct, 1) if s.paper else steps_by_rule(conduct))
    eps_s = conduct.plan(r, r, "naive" if s.paper else "tight")
    conduct.note(**noted_walk(r, s))
    w = space.middle
    if s.paper:
        P = _starts(objective, space, s.population, coins)
        scores = objective.scores(P) + objective.prior(P)
        reach = objective.spread(P, conduct.adjacency)
        w = P[grant.release(Exponential(eps_s, reach), scores, conduct.source)]
        conduct.tell(w[None])

    view = conduct.around(w)
    coarse = s.paper and not isinstance(objective, LinearObjective)
    for step in schedule(r - s.paper, s):
        moves = space.some_moves(view.w, s.population, step, coins)
        scores = view.scores(*moves) + view.prior(*moves)
        if coarse:
            reach = objective.spread(space.moved(view.w, *moves), conduct.adjacency)
        else:
            reach = view.range(*moves, conduct.adjacency)
        chosen = grant.release(Exponential(eps_s, reach), scores, conduct.source)
        view.step(moves[0][chosen], moves[1][chosen])
        conduct.tell(view.model[None])
    return conduct.path(s.average)


# ------------------------------------------------------------------------------------------- Local


@dataclass(frozen=True)
class Local:
    """Settings of `local`; what is left out takes our default, or that of the published code.

    Parameters
    ----------
    scoring : 'gradient' or 'loss'
        How moves of a linear model are scored; others are scored by their objective.
    cap : float, optional
        Clip of a record's residual, for the gradient; by default 0.5 for the logistic loss and 1
        for the hinge, the slopes at a margin of 0.
    generations : int, optional
        By default a public rule in (n, epsilon, delta): see `steps_by_rule`; the paper's is
        1.25e-3 n epsilon.
    step, decay, last_step : float
        Moves are this share of a coordinate's width: `step` times `decay` each generation, or
        falling geometrically to `last_step` if there is no decay. By default from a public rule:
        see `schedule`.
    average : float
        The share of the released path whose mean is the answer; 0 for the last selection.
    paper : bool
        PrivLocal, the code published with PrivGene: 1.25e-3 n epsilon moves of 0.5 in [-5, 5],
        decay 0.95, scored by the loss; epsilon / r each, whatever delta is. Repaired: the range is
        that of the realised moves, 4 steps under replace.

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

    scoring: str = OPEN
    cap: float | None = None
    generations: int | None = None
    step: float | None = None
    decay: float | None = None
    last_step: float | None = None
    average: float = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        fill(
            self,
            ours={"scoring": "gradient", "average": 0.25},
            paper={
                "scoring": "loss",
                "step": 0.05,
                "decay": 0.95 if self.last_step is None else None,
                "average": 0.0,
            },
        )
        if self.scoring not in ("gradient", "loss"):
            raise ValueError(
                f"scoring ({self.scoring!r}) must be 'gradient' or 'loss'; pass one of them"
            )
        check_counts(self, "generations")
        check_shares(self, "decay", "average")
        check_positive_shares(self, "cap", "step", "last_step")
        _check_schedule(self)


def local(
    objective: Any,
    space: Space,
    settings: Local,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """From the middle of the space, select one of all neighbours and go there, again and again.

    Released: the moves. Cost: one selection a generation, in all the grant's budget. The range of
    moves scored by the gradient is 4 x_max cap under replace and 2 x_max cap under add_remove,
    with x_max = 1/2 in the centred coding; the space then bounds the centred weights.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    s = settings
    r = s.generations or (_paper_rounds(conduct, 1) if s.paper else steps_by_rule(conduct))
    eps_s = conduct.plan(r, r, "naive" if s.paper else "tight")
    conduct.note(**noted_walk(r, s))
    if climbs_slopes(s, objective):
        # Centred weights are off the grid of linear ones, which may be coarse for a narrow column.
        conduct.note(cap=cap_of(s, objective))
        view = objective.slopes(space.middle, cap_of(s, objective))
    else:
        conduct.note(scoring="loss", cap=None)
        space = conduct.space
        view = conduct.around(space.middle)
    climb(conduct, space, view, eps_s, schedule(r, s))
    return conduct.path(s.average)


def climb(conduct: Conduct, space: Space, view: Any, eps_s: float, steps: Any) -> Any:
    """(r, ...): the positions of a walk that selects one of all neighbours again and again.

    Released: the moves, each told. Cost: one selection of eps_s for each of the r steps.
    """
    positions = []
    for step in steps:
        moves = space.all_moves(view.w, step)
        scores = view.scores(*moves) + view.prior(*moves)
        choose = Exponential(eps_s, view.range(*moves, conduct.adjacency))
        chosen = conduct.release(choose, scores)
        view.step(moves[0][chosen], moves[1][chosen])
        conduct.tell(view.model[None])
        positions.append(np.array(view.w))
    return np.array(positions)


def cap_of(settings: Local, objective: LinearObjective) -> float:
    """Where residuals are clipped: by default at the slope of the loss at a margin of 0."""
    return settings.cap or (0.5 if objective.loss == "logistic" else 1.0)


def climbs_slopes(settings: Any, objective: Any) -> bool:
    """Whether moves of centred weights are scored by the clipped gradient."""
    return (
        isinstance(settings, Local)
        and settings.scoring == "gradient"
        and isinstance(objective, LinearObjective)
        and objective.loss != "zero_one"
    )


# ------------------------------------------------------------------------------------ public rules


def steps_by_rule(conduct: Conduct) -> int:
    """How many selections: 4 sqrt(n mu), or sqrt(n epsilon) / 3 for a pure budget; at least 8.

    mu is the Gaussian parameter of (epsilon, delta). More steps reach further but each is noisier;
    the rule was chosen on generated and public tables (`bench/accuracy.py` shows it on real ones).
    """
    if conduct.mu:
        return max(8, round(4 * math.sqrt(conduct.n * conduct.mu)))
    return max(8, round(math.sqrt(conduct.n * conduct.budget.epsilon) / 3))


def _paper_rounds(conduct: Conduct, survivors: int) -> int:
    """r by the paper's rule, 1.25e-3 n epsilon / m' (Section 6.1), at least one."""
    epsilon = conduct.pure_epsilon
    return max(1, round(1.25e-3 * conduct.n * epsilon / survivors))


def _check_schedule(settings: EEM | Local) -> None:
    if settings.decay is not None and settings.last_step is not None:
        raise ValueError(
            f"decay ({settings.decay}) and last_step ({settings.last_step}) must not both be "
            "given; pass one of them"
        )


def schedule(r: int, settings: EEM | Local) -> Any:
    """The size of each generation's moves, in shares of a coordinate's width.

    By default from 0.03 down to 0.3 times that: 0.6 and 0.18 for weights in [-10, 10]. Walks of
    less than 128 steps take longer ones, since they have as far to go; at most twice as long.
    """
    first, last = _ends(r, settings)
    if settings.decay is not None:
        return first * settings.decay ** np.arange(r)
    return np.geomspace(first, last, r)


def _ends(r: int, settings: EEM | Local) -> tuple[float, float]:
    """The first step, and the last one where steps do not decay."""
    first = settings.step or 0.03 * min(2.0, max(1.0, math.sqrt(128 / r)))
    return first, settings.last_step or 0.3 * first


def noted_walk(r: int, settings: EEM | Local) -> dict[str, Any]:
    """The settings of a walk of r generations as they are used."""
    first, last = _ends(r, settings)
    decays = settings.decay is not None
    return {"generations": r, "step": first, "last_step": None if decays else last}
