"""The differentially private simple genetic algorithm (Humphries 2021).

Truncation selection by peeling: the best N_s of a population are drawn one after the other by the
exponential mechanism. They are kept (elitism) and bred by uniform crossover and mutation. With an
infinite budget the same loop is the plain simple genetic algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.ledger import Grant
from privfit.mechanisms import TopK
from privfit.paths import OPEN, Conduct, Generation, Path, check_counts, check_shares, fill
from privfit.spaces import Reals, Space

__all__ = ["DPSGA", "dpsga"]

Array: TypeAlias = NDArray[Any]

# Generations by epsilon, in half decades from 10^-2 to 10^1.5 (the thesis's table).
GENERATIONS = (10, 10, 20, 50, 75, 100, 120, 120)


@dataclass(frozen=True)
class DPSGA:
    """Settings of `dpsga`; what is left out takes our default, or the thesis's.

    Parameters
    ----------
    generations : int, optional
        N_g; by default from epsilon, by the thesis's table.
    population, survivors : int
        N_p and N_s.
    crossover : float
        p_c: the share of children that have two parents.
    mutation : float, optional
        p_m: the rate at which a gene mutates; by default 1 / (genes + 1).
    step : float
        Deviation of a real gene's mutation, as a share of its width (0.1 in [-1, 1]).
    average : float
        The share of the released path whose mean is the answer; 0 for the last selection.
    paper : bool
        The publication's own parameters. Repaired: the population is filled to exactly N_p, not
        202; the signs of its equation 8.1 and Algorithm 8; scaling, clipping and N_g never look at
        the records.

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

    generations: int | None = None
    population: int = OPEN
    survivors: int = OPEN
    crossover: float = OPEN
    mutation: float | None = None
    step: float = OPEN
    average: float = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        shared = {"population": 200, "survivors": 10, "crossover": 0.5, "step": 0.05}
        fill(self, ours={**shared, "average": 0.25}, paper={**shared, "average": 0.0})
        check_counts(self, "generations", "population", "survivors")
        check_shares(self, "crossover", "mutation", "step", "average")
        if self.survivors >= self.population:
            raise ValueError(
                f"survivors ({self.survivors}) must be below the population ({self.population}); "
                "pass fewer"
            )


def dpsga(
    objective: Any,
    space: Space,
    settings: DPSGA,
    grant: Grant | None,
    rng: Any = None,
    callback: Callable[[Generation], object] | None = None,
    **public: Any,
) -> Path:
    """Peel N_s parents, keep them, breed N_p - N_s children, repeat; at last select one.

    Released: the parents of each generation. Cost: N_g N_s + 1 selections, the grant's budget.
    Without a grant nothing is private.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    space, coins, s = conduct.space, conduct.coins, settings
    n_g = s.generations or _generations(grant)
    rate = 1 / (space.size + 1) if s.mutation is None else s.mutation
    eps_s = conduct.plan(n_g * s.survivors + 1, n_g + 1)

    def select(k: int) -> Array:
        if grant is None:
            return np.argsort(-scores, kind="stable")[:k]
        reach = objective.range(P, conduct.adjacency)
        return np.asarray(grant.release(TopK(k, eps_s, reach), scores, conduct.source))

    P = _starts(space, s.population, coins)
    scores = objective.scores(P) + objective.prior(P)
    for _ in range(n_g):
        chosen = select(s.survivors)
        parents = P[chosen]
        conduct.tell(parents)
        first, second = parents[coins.integers(len(parents), size=(2, len(P) - len(parents)))]
        crossed = coins.random(len(first)) < s.crossover
        children = first.copy()
        children[crossed] = space.mix(first[crossed], second[crossed], coins)
        children = space.jitter(children, s.step, rate, coins)
        P = np.concatenate([parents, children])
        scores = np.concatenate(
            [scores[chosen], objective.scores(children) + objective.prior(children)]
        )
    conduct.tell(P[select(1)])
    return conduct.path(s.average)


def _generations(grant: Grant | None) -> int:
    """N_g of the nearest epsilon in the table."""
    if grant is None:
        return GENERATIONS[-1]
    place = round(2 * (math.log10(grant.budget.epsilon) + 2))
    return GENERATIONS[min(max(place, 0), len(GENERATIONS) - 1)]


def _starts(space: Space, m: int, coins: np.random.Generator) -> Array:
    """Random candidates; of reals one in twenty at zero."""
    P = space.sample(m, coins)
    if isinstance(space, Reals):
        P[: m // 20] = space.middle
    return P
