"""More seeds than clusters from released cells, and fewer again once a step has moved them.

k-means of noisy cells is caught in local minima, and a tree in many columns halves few of them. So
twice as many seeds as clusters are taken, one noisy step moves and counts them, and weighted
k-means of what is released makes k of them. Everything here is computed from released values, and
costs nothing.
"""

from __future__ import annotations

import numpy as np

from privfit.base.typing import Floats
from privfit.objectives import CentersObjective
from privfit.privacy.privtree import Cells
from privfit.runs.means import weighted_means

__all__ = ["carried", "fill_in", "over_seed", "reduce"]

MANY_COLUMNS = 7  # beyond which cells say little about where records are around a seed
DRAWN_IN = 0.8  # how far cells stay from the middle of their seed's cells
RESTARTS = 30


def fill_in(
    objective: CentersObjective, cells: Cells, mean: Floats | None
) -> tuple[Floats, Floats]:
    """(m, d), (m,): points that stand for the cells of positive weight, and their weights.

    They are the middles of the cells. If the mean of the records was released, points move within
    their cells, all by the same part of a cell's width, so that their mean is that one as far as
    it can be: columns that were never halved are at the mean, not at the middle of the domain.
    """
    weights = cells.weights
    if not (weights > 0).any():
        weights = np.ones(len(weights))
    filled, unit = weights > 0, objective.candidate_units
    middles, weights = cells.middles[filled] * unit, weights[filled]
    halves = (cells.high - 1 - cells.low)[filled] / 2 * unit
    if mean is None:
        return middles, weights
    missing = mean - np.average(middles, axis=0, weights=weights)
    room = np.average(halves, axis=0, weights=weights)
    part = np.clip(missing / np.maximum(room, 1e-9 * unit), -1.0, 1.0)
    return middles + part * halves, weights


def over_seed(
    objective: CentersObjective,
    points: Floats,
    weights: Floats,
    seeds: int,
    coins: np.random.Generator,
    restarts: int,
) -> Floats:
    """(seeds, d): weighted k-means of the points of cells, on the grid."""
    found = weighted_means(points, weights, seeds, coins, restarts, objective.n_threads)
    return objective.project(found)


def reduce(
    objective: CentersObjective,
    cells: tuple[Floats, Floats],
    seeds: Floats,
    moved: Floats,
    counts: Floats,
    coins: np.random.Generator,
) -> Floats:
    """(k, d): k centres of seeds that a step has moved and counted.

    In few columns the points of cells are clustered, each moved with its seed and weighted so that
    a seed's cells have its count together; in many columns the moved seeds themselves.
    """
    points, weights = moved, counts
    if objective.n_features <= MANY_COLUMNS:
        points, weights = carried(*cells, seeds, moved, counts)
    k, n_threads = objective.n_clusters, objective.n_threads
    found = weighted_means(points, weights, k, coins, RESTARTS, n_threads)
    return objective.project(found)


def carried(
    points: Floats, weights: Floats, seeds: Floats, moved: Floats, counts: Floats
) -> tuple[Floats, Floats]:
    """The points of cells, moved with the seed that is nearest; a seed without cells is one."""
    own = np.square(points[:, None] - seeds).sum(axis=2).argmin(axis=1)
    total = np.bincount(own, weights, minlength=len(seeds))
    middles = np.zeros_like(seeds)
    np.add.at(middles, own, weights[:, None] * points)
    middles /= np.maximum(total, 1e-9)[:, None]
    carried = moved[own] + DRAWN_IN * (points - middles[own])
    lone = total <= 0
    scaled = weights * (counts / np.maximum(total, 1e-9))[own]
    return np.concatenate([carried, moved[lone]]), np.concatenate([scaled, counts[lone]])
