"""Cells along the principal axes of the records, which a noisy matrix of second moments gives.

A tree halves about ten times, so in many columns it leaves most of them whole. Along the axes of
largest variance ten halvings tell much more.

**Sensitivity.** Let v be a record's difference to the released mean, in whole units, shrunk to a
norm of at most r (`objective.products`): it depends on that record and the mean alone. Released are
sums over records of integers for each i <= j,

====================  ====================  ====================  ==============================
noise                 for i = j             for i < j             norm of what one record adds
====================  ====================  ====================  ==============================
discrete Laplace      v_i^2                 2 v_i v_j             l1(v)^2 <= r^2, in l1
discrete Gaussian     5 v_i^2               7 v_i v_j             at most 5 r^2, in l2
====================  ====================  ====================  ==============================

since the absolute values in the first row add up to (sum of abs(v_i))^2, and the squares in the
second to 25 sum v_i^4 + 49 sum v_i^2 v_j^2 <= 25 (sum v_i^2)^2. One record added or removed changes
the sums by that much. One replaced changes them by at most twice as much in l1. In l2 it is sqrt(2)
times as much: the product of what two records add, 25 sum v_i^2 w_i^2 + 49 sum v_i v_j w_i w_j, is
24.5 (sum v_i w_i)^2 + 0.5 sum v_i^2 w_i^2 >= 0, so the square of the difference is at most the sum
of both squares.

The eigenvectors of the released matrix are the axes; a box about the mean reaches 2.2 standard
deviations along each, and a tree halves that box (`privtree.py`): which cell a record is in depends
on the record and on released numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.rounding import ABOVE
from privfit.base.typing import Array, Floats, Integers
from privfit.clustering.grids import Tree
from privfit.objectives import CentersObjective
from privfit.objectives.common import MOST_SUM
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Partition
from privfit.records.frames import AXIS_BITS
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

__all__ = ["Frame", "principal_frame"]

MOST_AXES = 16
DEVIATIONS = 2.2  # of an axis, that cells cover on each side
CLEAR = 1.2  # times the noise of an eigenvalue: those above it are told apart
MOST_RADIUS = 2**24  # of clipped differences
MOST_SPREAD = 2.0**48  # of noise: far within 64 bits
WEIGHTS = {1: (1, 2), 2: (5, 7)}  # of squares and of products, by norm


@dataclass(frozen=True, eq=False)
class Frame:
    """Released principal axes: an origin (d,), axes (q, d) and how far cells reach (q,).

    All are whole: in record units, and axes in 2^-AXIS_BITS.
    """

    origin: Integers
    axes: Integers
    reach: Integers

    def cells(
        self, run: Run[CentersObjective, Reals], tree: Tree, epsilon: float
    ) -> tuple[Floats, Floats, dict[str, Any]]:
        """(m, d), (m,): points that stand for cells of positive weight, and their weights.

        Released: a tree in the frame, and counts of its cells. Cost: that of a tree of epsilon.
        """
        objective = run.objective
        bounds, k = (-self.reach, self.reach), objective.n_clusters
        partition = Partition.plan(tree, bounds, k, epsilon, run.neighbours)
        private = objective.framed_cells(
            self.origin, self.axes, self.reach, partition.halvings.axes
        )
        cells = partition.grow(private, run.release)
        weights = cells.weights if (cells.weights > 0).any() else np.ones(len(cells.counts))
        filled = weights > 0
        middles = cells.middles[filled]
        points = self.origin + middles @ np.ldexp(self.axes.astype(np.float64), -AXIS_BITS)
        return points * objective.candidate_units, weights[filled], dict(partition.noted)


def principal_frame(
    run: Run[CentersObjective, Reals], mean: Floats, radius: float, cost: Event, size: float
) -> Frame:
    """The principal axes of records clipped to a radius about a released mean.

    Released: a number for each pair of columns. Cost: one release of this cost.
    """
    objective, norm = run.objective, 1 if cost.kind == "pure" else 2
    d, unit = objective.n_features, objective.candidate_units
    widest = max(1, min(math.floor(radius / unit), 2 * objective.reach(norm)))
    shift = lost_bits(widest, objective.room(run.neighbours), cost.parameter)
    whole = max(1, widest >> shift)
    noise = moment_noise(cost, whole, run.neighbours)
    point = objective.project(mean)
    sums = objective.products(point, shift, whole, norm)
    upper, (square, product) = np.triu_indices(d), WEIGHTS[norm]
    weights = np.where(upper[0] == upper[1], square, product)
    found: Array = run.release(noise, weights * sums[upper])
    moments = np.zeros((d, d))
    moments[upper] = found / weights * (4.0**shift / size)
    moments = moments + np.triu(moments, 1).T
    if isinstance(noise, DiscreteGaussian):
        spread = math.sqrt(noise.variance)
    else:
        spread = math.sqrt(2) * noise.scale
    blur = 2 * math.sqrt(d) * spread / product * (4.0**shift / size)
    values, vectors = _axes(moments, blur)
    origin = np.rint(point / unit).astype(np.int64)
    reach = np.maximum(1, np.floor(DEVIATIONS * np.sqrt(values))).astype(np.int64)
    reach = np.minimum(reach, 2 * objective.reach(2))
    return Frame(origin, np.rint(np.ldexp(vectors, AXIS_BITS)).astype(np.int64), reach)


def _axes(moments: Floats, blur: float) -> tuple[Floats, Floats]:
    """(q,), (q, d): variances along at most 16 principal axes, and their directions.

    Variances that noise hides are taken to share what the clear ones leave of the trace.
    """
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1], vectors[:, ::-1].T
    d = len(values)
    clear = max(1, int((values > CLEAR * blur).sum()))
    rest = max(float(values.sum() - values[:clear].sum()), 1.0) / max(1, d - clear)
    hidden = min(rest, max(float(values[clear - 1]), 1.0))
    values = np.where(np.arange(d) < clear, np.maximum(values, 1.0), hidden)
    return values[:MOST_AXES], vectors[:MOST_AXES]


def moment_noise(
    cost: Event, radius: int, neighbours: Neighbours
) -> DiscreteLaplace | DiscreteGaussian:
    """The noise of the sums, for differences of at most this norm; see the module's table."""
    if cost.kind == "pure":
        return DiscreteLaplace(cost.parameter, radius * radius * neighbours.changes)
    span = WEIGHTS[2][0] * radius * radius * math.sqrt(neighbours.changes)
    return DiscreteGaussian(cost.parameter, span * ABOVE)


def lost_bits(radius: int, room: int, parameter: float = 1.0) -> int:
    """The bits that differences lose, so that no sum over so many records can wrap.

    Noise by this parameter, an epsilon or a mu, fits into 64 bits, too.
    """
    shift, most = 0, min(MOST_SUM / room, MOST_SPREAD * parameter)
    while (radius >> shift) >= MOST_RADIUS or WEIGHTS[2][1] * ((radius >> shift) + 1) ** 2 >= most:
        shift += 1
        if radius >> shift == 0:
            break
    return shift
