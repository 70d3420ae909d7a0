"""Selections of features as Stoddard, Chen and Machanavajjhala printed them in 2014: not private.

No epsilon covers them (docs/ERRATA.md), so privfit does not offer them. They stand here to be
measured against what it offers, and take exact counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.features.scores import Score
from privfit.records.binary import ClassCounts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FIRST = 500.0  # counts of the centres that Algorithm 1 starts with, at most


def threshold_testing(scores: Floats, tau: float, scale: float, seed: int) -> NDArray[np.bool_]:
    """Algorithm 2: true scores against one noisy threshold."""
    return np.asarray(scores >= tau + np.random.default_rng([seed, 2]).laplace(0, scale))


def noisy_cut(scores: Floats, tau: float, epsilon: float, seed: int) -> NDArray[np.bool_]:
    """Lee and Clifton: noise on the threshold (a quarter of epsilon) and on scores, no cut-off."""
    coins = np.random.default_rng([seed, 3])
    noisy = scores + coins.laplace(0, 4 / (3 * epsilon), len(scores))
    return np.asarray(noisy >= tau + coins.laplace(0, 4 / epsilon))


def clusters(
    counts: ClassCounts, how: Score, tau: float, epsilon: float, seed: int,
    *, most: int, centers: int, rounds: int,
) -> NDArray[np.bool_]:  # fmt: skip
    """Algorithm 1: true counts, of at most `most` ones a record, assigned to noisy centres."""
    coins, rate = np.random.default_rng([seed, 4]), epsilon / rounds / 2
    points = counts.ones.T.astype(np.float64)
    places = np.exp(coins.uniform(0, np.log(FIRST), (centers, 2)))

    def nearest() -> Integers:
        return np.asarray(((points[:, None] - places) ** 2).sum(axis=2).argmin(axis=1))

    for _ in range(rounds):
        own = nearest() == np.arange(centers)[:, None]
        sizes = own.sum(axis=1) + coins.laplace(0, 1 / rate, centers)
        sums = own @ points + coins.laplace(0, most / rate, (centers, 2))
        places = np.maximum(sums / np.maximum(sizes, 1)[:, None], 0)
    found = how.of(places.T, counts.sizes.astype(np.float64))
    return np.asarray(found[nearest()] >= tau)
