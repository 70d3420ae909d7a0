"""A scale for each column of a tree, bought as the mean absolute deviations of the columns.

**Sensitivity.** A record adds abs(v), v its difference to the released mean, shrunk to a norm of at
most r (`objective.deviations`): a whole vector of norm at most r that depends on that record and
the mean alone. With V = F r, one record added or removed changes F times the sums by at most V, in
l1 and in l2. One replaced changes them by at most 2 V in l1; in l2 by sqrt(2) V, since the product
of two vectors of absolute values is at least 0.

A declared range may be far wider than where most records are, if a few are far out. Then a tree of
ten halvings in all spends them on empty halves. So columns are halved on a scale that is even up to
2.2 deviations from the mean and coarse beyond (`privfit/base/rulers.py`): the widest column on that
scale first. Which cell a record is in depends on the record and on released numbers alone, so the
proof of the tree (`privtree.py`) holds as it is.
"""

from __future__ import annotations

import math

import numpy as np

from privfit.base.rounding import ABOVE
from privfit.base.rulers import Ruler
from privfit.base.typing import Array, Floats
from privfit.clustering.averages import norm_of
from privfit.clustering.lloyd import FINE
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

__all__ = ["bought_ruler", "deviation_noise"]

DEVIATIONS = 2.2  # to each side of the mean, on the even part of a scale
NORMAL = 1.25  # standard deviations in a mean absolute deviation of normal numbers
LEAST = 0.02  # of the widest column's half width: the least deviation of a column


def bought_ruler(
    run: Run[CentersObjective, Reals], mean: Floats, radius: float, cost: Event, size: float
) -> Ruler:
    """The scale of each column, from noisy deviations about a released mean.

    Released: d numbers. Cost: one release of this cost.
    """
    objective, norm = run.objective, norm_of(cost)
    unit = objective.candidate_units
    whole = max(1, min(math.floor(radius / unit), 2 * objective.reach(norm)))
    F = math.ceil(FINE / whole)
    noise = deviation_noise(cost, F * whole, run.neighbours)
    point = objective.project(mean)
    found: Array = run.release(noise, F * objective.deviations(point, whole, norm))
    spread = (
        math.sqrt(noise.variance)
        if isinstance(noise, DiscreteGaussian)
        else math.sqrt(2) * noise.scale
    )
    low, high = objective.bounds
    half = (high - low) / 2
    least = np.minimum(max(spread / (F * size), LEAST * float(half.max())), half)
    deviations = np.clip(NORMAL * found / (F * size), least, half)
    reach = np.maximum(1, np.floor(DEVIATIONS * deviations)).astype(np.int64)
    return Ruler.about(np.rint(point / unit).astype(np.int64), reach, low, high)


def deviation_noise(
    cost: Event, V: int, neighbours: Neighbours
) -> DiscreteLaplace | DiscreteGaussian:
    """The noise of the sums, for vectors of a norm of at most V; see above."""
    if cost.kind == "pure":
        return DiscreteLaplace(cost.parameter, V * neighbours.changes)
    return DiscreteGaussian(cost.parameter, V * math.sqrt(neighbours.changes) * ABOVE)
