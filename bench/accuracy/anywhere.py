"""k-median without facilities on real tables and mixtures: l2 cost over that of a plain reference.

Columns are scaled to [-1, 1] by the table's own least and largest values, and rows with missing
values are left out: a convention for measuring, not a private step. The reference is not private:
Weiszfeld's steps within Lloyd's, the best of ten starts.

    python -m bench.accuracy.anywhere --tables s1 adult --seeds 5
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

import privfit
from bench import pages, tables
from privfit.runs.means import seeds as starts

CLUSTERS = {"s1": 15, "adult": 5, "credit_default": 5, "lifesci": 3, "gowalla_pois": 5,
            "bank_full": 6, "mixture 10,000 x 5": 5, "mixture 100,000 x 10, 1/j": 20}  # fmt: skip
BUDGETS = tuple(itertools.product((0.0, 1e-6), (0.1, 1.0)))
STARTS = 10
SIDE, PLACES = 32, 1000  # public facilities: a grid in the plane, else uniform in the box


@lru_cache(maxsize=1)
def records(name: str) -> Any:
    """(n, d) in [-1, 1]."""
    if name.startswith("mixture"):
        return _mixture(*((100_000, 10, 20, True) if "1/j" in name else (10_000, 5, 5, False)))
    data = tables.real(name)
    columns = [np.asarray(values) for values in data.table.values()]
    numbers = [values.astype(float) for values in columns if values.dtype.kind in "iuf"]
    X = np.stack(numbers, axis=1)
    X = X[~np.isnan(X).any(axis=1)]
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.maximum(high - low, 1e-12) - 1


def _mixture(n: int, d: int, k: int, unbalanced: bool) -> Any:
    coins = np.random.default_rng(k)
    middles = coins.uniform(-0.8, 0.8, (k, d))
    weights = 1 / np.arange(1, k + 1) if unbalanced else np.ones(k)
    own = coins.choice(k, n, p=weights / weights.sum())
    return np.clip(middles[own] + coins.normal(0, 0.15, (n, d)), -1, 1)


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


def fitted(name: str, method: str, epsilon: float, delta: float, relation: str, seed: int) -> float:
    """The cost of one fit over that of the reference.

    A method is 'facilities' (a public grid, or random places), 'kmeans', or a solver of `KMedian`
    without facilities.
    """
    X, k = records(name), CLUSTERS[name]
    shared = {"domain": (-1, 1), "adjacency": relation, "n_public": len(X), "n_threads": 1,
              "random_state": seed}  # fmt: skip
    if method == "kmeans":
        model: Any = privfit.KMeans(k, epsilon, delta, **shared)
    elif method == "facilities":
        model = privfit.KMedian(
            k, epsilon, delta, facilities=places(X.shape[1], seed), metric="l2", **shared
        )
    else:
        model = privfit.KMedian(k, epsilon, delta, metric="l2", solver=method, **shared)
    return cost(X, model.fit(X).cluster_centers_) / best_plain(name)


def places(d: int, seed: int) -> Any:
    if d > 2:
        return np.random.default_rng(1000 + seed).uniform(-1, 1, (PLACES, d))
    middles = (np.arange(SIDE) + 0.5) * 2 / SIDE - 1
    return np.array(np.meshgrid(*[middles] * d)).reshape(d, -1).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["s1"], choices=list(CLUSTERS))
    parser.add_argument("--methods", nargs="+", default=["facilities", "kmeans", "auto"])
    parser.add_argument("--relation", default="add_remove")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of seeds
    for name, method in itertools.product(options.tables, options.methods):
        cells = []
        for delta, epsilon in BUDGETS:
            values = [fitted(name, method, epsilon, delta, options.relation, seed)
                      for seed in range(options.seeds)]  # fmt: skip
            mean, half = pages.interval(values)
            cells.append(f"{mean:.3f} +- {half:.3f}")
        print(f"| {name} | {method} | {options.relation} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
