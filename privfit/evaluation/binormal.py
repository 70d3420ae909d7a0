"""What noisy class counts reveal about a ROC curve: monotone fits, and a binormal posterior mean.

All of this takes released values and public numbers, so it costs nothing. Cells run from the
highest scores to the lowest.

**The binormal family.** Latent scores are N(0, 1) for negatives and N(mu, sigma^2) for positives,
up to any increasing transformation; a fraction pi of records is positive. Given the fractions of
all records above each threshold, which are the best known numbers here, (mu, sigma, pi) determine
the expected count of either class in every cell. `posterior` weights a public grid of such triples
by the likelihood of the released counts under their own Laplace noise. The prior is uniform in the
area under the curve from 1/2 to 1 and in the log-odds of pi.

**How far to trust it.** If the family were right, the squared distance of 2 m noisy counts from it
would be about 2 m times the variance of their noise. The weight of the family is that number over
the squared distance, at most 1, as in James and Stein's estimate. The rest goes to the plain
monotone curve, so that a large budget or many records lead to the true curve, binormal or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.typing import Floats

__all__ = ["Points", "isotonic", "monotone", "simplex", "smoothed"]


AREAS, ODDS = 40, 17  # nodes of the prior
SPREADS = (0.7, 1.0, 1.4)  # sigma
LATENT = np.linspace(5.0, -5.0, 161)  # thresholds, the highest first


@dataclass(frozen=True, eq=False)
class Points:
    """Rates (q,) from (0, 0) to (1, 1), and the place of each among the m cells: 0 ... m."""

    fpr: Floats
    tpr: Floats
    place: Floats


# ------------------------------------------------------------------------------------ monotone fits


def simplex(cells: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and add up to the total.

    For noise that is independent in the cells this is the monotone regression of cumulative counts.
    """
    down = np.sort(cells)[::-1]
    excess = (np.cumsum(down) - total) / np.arange(1, len(cells) + 1)
    last = int(np.flatnonzero(down > excess)[-1])
    return np.maximum(cells - excess[last], 0.0)


def isotonic(values: Floats) -> Floats:
    """The nearest sequence that does not fall: pool adjacent violators."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            size += sizes[-1]
            mean += (means.pop() - mean) * sizes.pop() / size
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def monotone(cells: Floats, flat: bool) -> Points:
    """Rates of noisy counts (2, m), negatives first, at the ends of the cells.

    `flat` says that the noise of the cells is independent; else that of sums is small, and those
    are fitted. A class counts at least one record.
    """
    rates = []
    for own in cells:
        total = max(float(own.sum()), 1.0)
        if flat:
            sums = np.cumsum(simplex(own, total))
        else:
            sums = np.clip(isotonic(np.cumsum(own)), 0.0, total)
        rates.append(np.concatenate([[0.0], sums[:-1] / total, [1.0]]).clip(0.0, 1.0))
    return Points(rates[0], rates[1], np.arange(cells.shape[1] + 1.0))


# ---------------------------------------------------------------------------------------- posterior


@dataclass(frozen=True, eq=False)
class _Family:
    """Binormal curves on the grid of the prior: rates at the latent thresholds, and the mixture."""

    pi: Floats  # (c,)
    fpr: Floats  # (t,)
    tpr: Floats  # (c, t)
    above: Floats  # (c, t): the share of all records above each threshold


@lru_cache(maxsize=1)
def _family() -> _Family:
    areas = 0.5 + (np.arange(AREAS) + 0.5) / (2 * AREAS)
    odds = np.linspace(-4.0, 4.0, ODDS)
    mesh = np.meshgrid(areas, SPREADS, scipy.special.expit(odds), indexing="ij")
    area, sigma, pi = (axis.reshape(-1, 1) for axis in mesh)
    mu = scipy.special.ndtri(area) * np.sqrt(1 + sigma**2)
    fpr, tpr = scipy.special.ndtr(-LATENT), scipy.special.ndtr((mu - LATENT) / sigma)
    return _Family(pi[:, 0], fpr, tpr, pi * tpr + (1 - pi) * fpr)


def _at_shares(family: _Family, shares: Floats) -> tuple[Floats, Floats]:
    """Rates (c, m + 1) of each curve where so large a share of all records is above."""
    each, last = np.arange(len(family.pi)), len(family.fpr) - 1
    fpr, tpr = np.zeros((2, len(family.pi), len(shares) + 2))
    fpr[:, -1] = tpr[:, -1] = 1.0
    for i, share in enumerate(shares, start=1):
        j = np.clip(np.count_nonzero(family.above <= share, axis=1), 1, last)
        low, high = family.above[each, j - 1], family.above[each, j]
        part = np.clip((share - low) / (high - low), 0.0, 1.0)
        fpr[:, i] = family.fpr[j - 1] + part * (family.fpr[j] - family.fpr[j - 1])
        lower, upper = family.tpr[each, j - 1], family.tpr[each, j]
        tpr[:, i] = lower + part * (upper - lower)
    return fpr, tpr


def posterior(cells: Floats, scale: float) -> tuple[Floats, Floats]:
    """The mean curve, (t,) at the latent false positive rates, and the expected counts (2, m)."""
    family = _family()
    together = simplex(cells.sum(axis=0), max(float(cells.sum()), 1.0))
    n = float(together.sum())
    fpr, tpr = _at_shares(family, np.cumsum(together)[:-1] / n)
    positives = n * family.pi[:, None]
    expected = np.stack([(n - positives) * np.diff(fpr), positives * np.diff(tpr)], axis=1)
    logs = -np.abs(cells - expected).sum(axis=(1, 2)) / scale
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return weights @ family.tpr, np.einsum("c,ckm->km", weights, expected)


def smoothed(cells: Floats, scale: float) -> Points:
    """The binormal posterior mean and the monotone curve of counts (2, m) with Laplace noise."""
    plain = monotone(cells, flat=True)
    mean, expected = posterior(cells, scale)
    distance = float(np.square(cells - expected).sum())
    weight = min(1.0, cells.size * 2 * scale**2 / max(distance, math.ulp(0.0)))
    fpr = np.unique(np.concatenate([plain.fpr, _family().fpr]))
    model = np.interp(fpr, [0.0, *_family().fpr, 1.0], [0.0, *mean, 1.0])
    tpr = weight * model + (1 - weight) * np.interp(fpr, plain.fpr, plain.tpr)
    fpr, tpr = np.concatenate([[0.0], fpr, [1.0]]), np.concatenate([[0.0], tpr, [1.0]])
    return Points(fpr, tpr.clip(0.0, 1.0), np.interp(fpr, plain.fpr, plain.place))
