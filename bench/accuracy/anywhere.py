"""k-median without facilities: the mean l2 cost over that of a plain reference.

Records are those of `optimum`. The reference is not private: Weiszfeld's steps within Lloyd's, the
best of ten starts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import privfit
from bench.accuracy import medians, optimum
from privfit.runs.means import seeds as starts

CLUSTERS = {"s1": 15, "adult": 5, "credit_default": 5, "lifesci": 3, "gowalla_pois": 5,
            "bank_full": 6, "mixture 10,000 x 5": 5, "mixture 100,000 x 10, 1/j": 20}  # fmt: skip
MIXTURES = {"mixture 10,000 x 5": (10_000, 5, 5, True),
            "mixture 100,000 x 10, 1/j": (100_000, 10, 20, False)}  # fmt: skip
# Centres among a public grid, or random places; those of k-means; those of `KMedian` alone.
METHODS = {name: name for name in ("facilities", "means", "auto")}
STARTS = 10
PLACES = 1000  # public ones beyond the plane, uniform in the box


@lru_cache(maxsize=1)
def records(name: str) -> Any:
    """(n, d) in [-1, 1]."""
    if name in MIXTURES:
        return optimum.mixture(*MIXTURES[name], seed=CLUSTERS[name])
    return optimum.records(name)


def distances(X: Any, centers: Any) -> Any:
    squares = np.square(X).sum(axis=1)[:, None] - 2 * X @ centers.T + np.square(centers).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0.0))


def cost(X: Any, centers: Any) -> float:
    """The mean l2 distance of a record to its nearest centre."""
    return float(distances(X, centers).min(axis=1).mean())


def weiszfeld(X: Any, k: int, seed: int, rounds: int = 200) -> Any:
    """(k, d): Lloyd's assignments, each followed by one of Weiszfeld's steps."""
    centers = starts(X, np.ones(len(X)), k, np.random.default_rng(seed))
    last = np.inf
    for _ in range(rounds):
        apart = distances(X, centers)
        own, far = apart.argmin(axis=1), np.maximum(apart.min(axis=1), 1e-6)
        if far.mean() > last * (1 - 1e-6):
            break
        last = far.mean()
        pull = np.zeros((len(X), k))
        pull[np.arange(len(X)), own] = 1 / far
        total = pull.sum(axis=0)[:, None]
        centers = np.where(total > 0, pull.T @ X / np.maximum(total, 1e-300), centers)
    return centers


@lru_cache(maxsize=1)
def best_plain(name: str) -> float:
    X = records(name)
    return min(cost(X, weiszfeld(X, CLUSTERS[name], seed)) for seed in range(STARTS))


def fitted(
    name: str, method: str, epsilon: float, delta: float, adjacency: str, seed: int
) -> float:
    """The cost of one fit over that of the reference."""
    X, k = records(name), CLUSTERS[name]
    shared = {"domain": (-1, 1), "adjacency": adjacency, "n_public": len(X), "n_threads": 1,
              "random_state": seed}  # fmt: skip
    if method == "means":
        model: Any = privfit.KMeans(k, epsilon, delta, **shared)
    else:
        public = places(X.shape[1], seed) if method == "facilities" else None
        model = privfit.KMedian(k, epsilon, delta, facilities=public, metric="l2", **shared)
    return cost(X, model.fit(X).cluster_centers_) / best_plain(name)


def places(d: int, seed: int) -> Any:
    if d > 2:
        return np.random.default_rng(1000 + seed).uniform(-1, 1, (PLACES, d))
    return medians.grid()
