"""The number of clusters, from a bought curve of costs.

One fit finds more centres than are asked for, and weighted k-means of what it released makes a set
of centres for every k: post-processing. Then one release buys the costs of all sets, and a public
rule reads k from them. So there are two parts, whose epsilons add up: the fit (its solver's own
proof) and the curve.

**What is released of the curve.** Let c_i(x) be the squared distance of record x to the nearest
centre of set i, cut at a public bound tau, for sets 1, ..., m of ever more centres. A record adds

    v(x) = (c_m(x), c_1(x) - c_2(x), ..., c_{m-1}(x) - c_m(x)),

the last cost and the differences, in whole units. If more centres never cost a record more, the
absolute values add up to c_1(x) <= tau. Where they add up to more, the vector is shrunk to tau and
rounded towards zero (`CentersObjective.cost_steps`). It depends on x and on released centres alone.

**Sensitivity.** The absolute values of v(x) add up to at most tau. One record added or removed
changes the sum of all v(x) by at most tau in l1, and one replaced by at most 2 tau. This does not
grow with m: the m costs themselves would change by up to m tau together. The noise is discrete
Laplace, which is smaller here than Gaussian noise at any delta. A cost is the sum of the numbers
from its place on, so its noise has a variance of that many draws; the difference of two neighbours
has that of one.

**The bound** tau is 1.96 times the squared radius of clipped residuals for the largest k
(`lloyd.radius_by_rule`), a public number. Records farther out count as tau.

**The rule.** k is where the logarithm of the cost bends most: the largest second difference of
log(cost + 2 s), with s the standard deviation of a draw, so that costs below the noise do not bend.
For the least and the largest k that may be chosen the curve has one point more on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privfit.base.typing import Array, Floats
from privfit.clustering.clustering import Clustering
from privfit.clustering.grids import Tree
from privfit.clustering.lloyd import radius_by_rule
from privfit.objectives import CentersObjective
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.runs.means import weighted_means
from privfit.runs.paths import Path
from privfit.runs.settings import Settings

__all__ = ["Curve", "CurvePlan", "bend", "nested_sets"]

SHARE = 0.2  # of epsilon for the curve
SLACK = 1e-3  # of the rest that is left over, for the accountant's rounding
WIDER = 1.4  # than the rule's radius is the distance at which costs are cut
FLOOR = 2.0  # standard deviations of a draw below which costs do not bend
DIGITS = 30  # binary digits of the bound on a cost
RESTARTS = 20
FEWEST = 20.0  # a centre counts as at least a part of so many of its equal share


@dataclass(frozen=True)
class CurvePlan:
    """The public plan of a curve: its numbers of clusters, its bound, its noise."""

    ks: tuple[int, ...]
    most: int
    shift: int
    unit: float
    mechanism: DiscreteLaplace

    @classmethod
    def of(
        cls,
        objective: CentersObjective,
        ks: tuple[int, ...],
        epsilon: float,
        neighbours: Neighbours,
    ) -> CurvePlan:
        """The curve of these numbers of clusters, at the share of epsilon that it has."""
        radius = WIDER * radius_by_rule(objective.with_clusters(ks[-1]), norm=2)
        cut = max(1, math.floor(radius * radius / objective.unit))
        shift = max(0, cut.bit_length() - DIGITS)
        most = cut >> shift
        noise = DiscreteLaplace(SHARE * epsilon, neighbours.changes * most)
        return cls(ks, most, shift, math.ldexp(objective.unit, shift), noise)

    def rest(self, budget: Budget) -> Budget:
        """What the curve leaves of a budget for the fit."""
        return Budget((budget.epsilon - self.mechanism.epsilon) * (1 - SLACK), budget.delta)

    def read(self, drawn: Array) -> Curve:
        """The costs, in squared units of the records, from what was released."""
        steps = np.asarray(drawn, dtype=np.float64) * self.unit
        costs = np.cumsum(np.append(steps[0], steps[:0:-1]))[::-1]
        draw = math.sqrt(2) * self.mechanism.scale * self.unit
        return Curve(np.array(self.ks), costs, draw, self.most * self.unit)


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Noisy clipped costs (m,) of numbers of clusters ks (m,), and the deviation of one draw."""

    ks: Array
    costs: Floats
    draw: float
    bound: float

    @property
    def errors(self) -> Floats:
        """(m,): the standard deviations of the costs; those of small k have more draws."""
        return self.draw * np.sqrt(np.arange(len(self.ks), 0, -1))

    @property
    def bends(self) -> Floats:
        """(m - 2,): how much the logarithm of the cost bends at each k but the first and last."""
        return bend(self.costs, FLOOR * self.draw)

    @property
    def k(self) -> int:
        """Where it bends most."""
        return int(self.ks[1:-1][np.argmax(self.bends)])


def bend(costs: Floats, floor: float) -> Floats:
    """(m - 2,): second differences of log(cost + floor); costs below 0 count as 0."""
    least = max(floor, 1e-300)
    return np.diff(np.log(np.maximum(costs, 0.0) + least), 2)


def nested_sets(
    objective: CentersObjective,
    settings: Settings,
    path: Path,
    ks: tuple[int, ...],
    coins: np.random.Generator,
) -> list[Floats]:
    """[(k, d)]: centres for every k, by weighted k-means of what a fit released.

    Of a tree these are its cells; otherwise the centres that it found, with their sizes.
    """
    points, weights = _points(objective, settings, path)
    return [objective.project(weighted_means(points, weights, k, coins, RESTARTS)) for k in ks]


def _points(objective: CentersObjective, settings: Settings, path: Path) -> tuple[Floats, Floats]:
    found = path if isinstance(path, Clustering) else Clustering.of(path)
    centers = objective.project(path.answer)
    if isinstance(settings, Tree) and found.cells is not None:
        weights = found.cells.weights
        filled = weights > 0
        if filled.any():
            middles = found.cells.middles[filled]
            return middles * objective.candidate_units, weights[filled]
    if found.sizes is None:
        return centers, np.ones(len(centers))
    sizes = np.maximum(found.sizes.counts, 0.0)
    return centers, np.maximum(sizes, max(1.0, sizes.sum() / (FEWEST * len(sizes))))
