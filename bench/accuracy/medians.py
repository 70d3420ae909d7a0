"""k-median over public facilities on real data: cost of a record, and one fit.

The cost is the mean clipped distance of a record to the nearest chosen facility. A seed sets the
random facilities and the fit. `mushroom` and `spambase` follow the thesis: a quarter as many
facilities as records, uniform in [0, 1]^d, distances clipped to [d/4, d/2]. `s1` and `gowalla_pois`
choose from a grid over the declared range, scaled to [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bench import tables
from privfit import (
    DPSGA,
    EEM,
    Box,
    Coreset,
    FacilityObjective,
    Greedy,
    Ledger,
    PrivGene,
    Subsample,
    Subsets,
    Swaps,
    Synopsis,
)
from privfit.clustering.kmedian import METHODS as KNOWN
from privfit.clustering.kmedian import automatic
from privfit.privacy.neighbours import Neighbours
from privfit.runs import Run

METHODS: dict[str, Any] = {
    "auto": None,
    "synopsis": Synopsis(),
    "greedy": Greedy(),
    "greedy, all distances": Greedy(focus=0),
    "swaps": Swaps(),
    "swaps, paper": Swaps(paper=True),
    "coreset": Coreset(),
    "privgene": PrivGene(),
    "eem": EEM(),
    "dpsga": DPSGA(),
    "dpsga, paper": DPSGA(paper=True),
    "subsample": Subsample(),
}
# Targets of auto on mushroom with four medians, above a cost of 45.46 without privacy.
TARGETS = {0.1: 46.1 - 45.46, 0.3162: 45.8 - 45.46, 1.0: 45.6 - 45.46}
SIDE = 32  # facilities along an axis of a grid
RANDOM_SETS = 1000  # whose mean cost is what a method has to beat


@dataclass(frozen=True)
class Problem:
    """An objective, and what a record costs for a set of facilities."""

    objective: FacilityObjective
    n: int

    def cost(self, members: Any) -> float:
        return float(self.costs(np.asarray(members)[None])[0])

    def costs(self, sets: Any) -> Any:
        """(m,): of m sets of facilities, by one call of the kernel."""
        return self.objective.clip[0] - self.objective.scores(sets) * self.objective.unit / self.n

    def random_cost(self, k: int, seed: int) -> float:
        """The mean cost of random sets, the thesis's baseline."""
        space = Subsets(self.objective.n_facilities, k)
        return float(self.costs(space.sample(RANDOM_SETS, np.random.default_rng(seed))).mean())


@lru_cache(maxsize=1)
def problem(name: str, seed: int) -> Problem:
    rng = np.random.default_rng(1000 + seed)
    if name in ("s1", "gowalla_pois"):
        X, places, clip, domain = _plane(name), grid(), (0.0, 4.0), Box(-1, 1, 2)
    else:
        X = _mushrooms() if name == "mushroom" else _spam()
        d = X.shape[1]
        places, clip, domain = rng.uniform(0, 1, (len(X) // 4, d)), (d / 4, d / 2), Box(0, 1)
    return Problem(FacilityObjective(X, places, clip, domain, n_threads=1), len(X))


def grid() -> Any:
    """Places (1024, 2) in the plane, the middles of equal cells of [-1, 1]^2."""
    middles = (np.arange(SIDE) + 0.5) * 2 / SIDE - 1
    return np.array(np.meshgrid(middles, middles)).reshape(2, -1).T


@lru_cache(maxsize=1)
def _mushrooms() -> Any:
    """One-hot, 111 columns: levels that occur, without stalk-root (missing) and veil-type."""
    columns = tables.real("mushroom").table
    kept = [values for name, values in columns.items() if name not in ("stalk-root", "veil-type")]
    return np.hstack([(values[:, None] == np.unique(values)) * 1.0 for values in kept])


@lru_cache(maxsize=1)
def _spam() -> Any:
    data = tables.real("spambase")
    return data.schema.encode(data.table).toarray() * float(data.schema.record_units()[0])


@lru_cache(maxsize=2)
def _plane(name: str) -> Any:
    """Declared ranges scaled to [-1, 1]: [0, 10^6] squared, and the globe."""
    X = tables.real(name).to_array()
    return X / 5e5 - 1 if name == "s1" else X / [90, 180]


def without_privacy(objective: FacilityObjective, k: int) -> Any:
    """Greedy additions, then the best swap while one helps, as PAM does."""
    growth = objective.growth()
    for _ in range(k):
        growth.add(int(np.argmax(growth.scores())))
    view, best = objective.at(growth.members), int(objective.scores(growth.members[None])[0])
    while True:
        swaps = view.all_scores()
        i, j = np.unravel_index(np.argmax(swaps), swaps.shape)
        if swaps[i, j] <= best:
            return view.members
        best = int(swaps[i, j])
        view.step(int(i), int(j))


def private(task: Problem, *fit: Any) -> float:
    """The cost of what `members` finds."""
    return task.cost(members(task, *fit))


def members(
    task: Problem, settings: Any, k: int, epsilon: float, delta: float, adjacency: str, seed: int
) -> Any:
    """The facilities that a solver selects; without settings, that of 'auto'."""
    objective = task.objective
    if settings is None:
        settings = KNOWN[automatic(objective)]()
    grant = Ledger(epsilon, delta).reserve(epsilon, delta)
    space = Subsets(objective.n_facilities, k)
    run = Run(objective, space, grant, seed, neighbours=Neighbours(adjacency), n_public=task.n)
    return settings(run).answer
