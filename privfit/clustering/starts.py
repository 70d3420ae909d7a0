"""Where k-means starts: k centres far from each other, without looking at any record.

`spread_out` is ours, `packed` that of Su et al. (2016) and of Lee and Kifer. Both draw from the
declared domain alone.
"""

from __future__ import annotations

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.typing import Floats
from privfit.objectives import CentersObjective
from privfit.runs.means import weighted_means
from privfit.runs.spaces import Reals

__all__ = ["centre_space", "packed", "spread_out"]


def centre_space(objective: CentersObjective, source: BitSource) -> Reals:
    """The space of centres, and their start: far apart, without looking at records."""
    unit, coins = objective.candidate_units, np.random.default_rng(source.bits(128))
    low, high = (bound * unit for bound in objective.bounds)
    shape = (objective.n_clusters, objective.n_features)
    start = objective.project(spread_out(objective, coins))
    return Reals(low, np.where(high > low, high, low + unit), shape, start=start)


def spread_out(objective: CentersObjective, coins: np.random.Generator) -> Floats:
    """k points far from each other: the means of points drawn uniformly from the domain.

    Su et al. (2016) pack spheres. In a direct comparison these starts were slightly better, and
    they need no square domain.
    """
    k = objective.n_clusters
    points = objective.domain.uniform_points(max(500, 20 * k), coins)
    return weighted_means(points, np.ones(len(points)), k, coins, 1)


def packed(objective: CentersObjective, coins: np.random.Generator) -> Floats:
    """k points at least 2 a from each other and a from the boundary, for the largest a found.

    The starts of Su et al. (2016), which Lee and Kifer use: points are drawn until each keeps its
    distance, and a is bisected between what worked and what failed in 100 draws for one of them.
    """
    domain = objective.domain
    best = domain.uniform_points(objective.n_clusters, coins)
    low, high = 0.0, float((domain.high - domain.low).max()) / 2
    for _ in range(20):
        a = (low + high) / 2
        found = _packed_at(objective, a, coins)
        best, low, high = (best, low, a) if found is None else (found, a, high)
    return objective.project(best)


def _packed_at(objective: CentersObjective, a: float, coins: np.random.Generator) -> Floats | None:
    """k such points, or None if 100 draws do not find the next one."""
    domain = objective.domain
    found: list[Floats] = []
    for _ in range(objective.n_clusters):
        draws = domain.drawn_in(domain.uniform_points(100, coins), a)
        apart = np.array([np.linalg.norm(draws - point, axis=1) >= 2 * a for point in found])
        free = np.flatnonzero(apart.all(axis=0)) if found else np.arange(len(draws))
        if not len(free):
            return None
        found.append(draws[free[0]])
    return np.array(found)
