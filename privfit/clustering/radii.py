"""A radius for clipped residuals, bought by a noisy histogram of their norms.

**Sensitivity.** Which radii are tried follows from public numbers, and the centres are released. A
record is counted once, at the least of these radii that holds its residual, or beyond all of them.
So one record added or removed changes one count by one, and one replaced at most two: the l1
sensitivity is 1, or 2. Discrete Laplace noise of that sensitivity on all counts makes one pure
release. Which radius is then taken follows from released values, at no cost.
"""

from __future__ import annotations

import math

import numpy as np

from privfit.base.typing import Array, Floats, Integers
from privfit.clustering.parts import NormCounts
from privfit.objectives import CentersObjective
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

__all__ = ["best_radius", "bin_middles", "l2_in_l1", "radius_by_histogram", "tried_radii"]

HALVINGS = np.arange(7, -2, -1) / 2  # of the usual radius, from the least radius to the largest
LEAST_RECORDS = 3.0  # times the scale of the noise: below it a histogram is noise alone


def radius_by_histogram(
    run: Run[CentersObjective, Reals],
    centers: Floats,
    usual: float,
    norm: int,
    epsilon: float,
    length: float,
) -> float:
    """The radius about these centres with the least error, in units of the records.

    `usual` is the radius to expect, and `length` how long the noise of a centre is for a radius of
    one. Released: ten counts. Cost: one pure release of epsilon.
    """
    objective = run.objective.with_clusters(len(centers))
    noise = DiscreteLaplace(epsilon, run.neighbours.changes)
    radii = tried_radii(usual / objective.candidate_units)
    counts: Array = run.release(noise, objective.norm_counts(centers, radii, norm))
    unit = objective.candidate_units
    run.keep(NormCounts(centers, np.float64(unit) * radii, counts, noise.scale, norm))
    if LEAST_RECORDS * noise.scale > (run.n_public or 0):
        return usual
    excess = 1 / l2_in_l1(objective.n_features) if norm == 1 else 1.0
    return best_radius(radii, counts, length, excess) * objective.candidate_units


def tried_radii(usual: float) -> Integers:
    """The radii to choose from: 2^(-7/2) to 2^(1/2) of the usual one, whole, at least 1."""
    return np.maximum(1, np.minimum(usual * 2.0**-HALVINGS, 2.0**30)).astype(np.int64)


def best_radius(radii: Integers, counts: Array, length: float, excess: float) -> float:
    """The radius r with the least (length r)^2 + (excess times the mean excess of norms over r)^2.

    Residuals of a bin are taken to be in its middle, on a logarithmic scale.
    """
    shares = np.maximum(counts, 0) / max(1.0, float(np.maximum(counts, 0).sum()))
    middles = bin_middles(radii)
    over = (shares * np.maximum(middles - radii[:, None], 0.0)).sum(axis=1)
    return float(radii[np.argmin((length * radii) ** 2 + (excess * over) ** 2)])


def bin_middles(radii: Integers) -> Floats:
    """(m + 1,): a typical norm of the residuals that are counted at each radius, and beyond all."""
    inner = np.sqrt(radii[1:] * radii[:-1].astype(np.float64))
    return np.concatenate([[0.8 * radii[0]], inner, [1.2 * radii[-1]]])


def l2_in_l1(d: int) -> float:
    """The l1 norm of a vector of l2 norm 1 in a random direction, about sqrt(2 d / pi)."""
    return max(1.0, math.sqrt(2 * d / math.pi))
