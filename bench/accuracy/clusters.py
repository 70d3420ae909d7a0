"""k-means on real data: records by their declared ranges, and one fit.

NICV is the mean squared distance of a record to its nearest centre, after each column was scaled
to [-1, 1] by its declared range.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import privfit
from bench import tables
from bench.measure import quiet

EPSILONS = (0.05, 0.1, 0.3162, 1.0)

# Targets of 'auto': at most 5 % above these means, at each epsilon.
TARGETS = {
    "s1": (0.0181, 0.0124, 0.0091, 0.0085),
    "gowalla_pois": (0.0099, 0.0079, 0.0075, 0.0075),
    "image_house_rgb": (0.105, 0.105, 0.104, 0.104),
    "adult": (0.227, 0.211, 0.201, 0.200),
    "lifesci": (0.721, 0.710, 0.703, 0.712),
}


# The minimum and maximum of a column are declared as if they were documented, as the papers on
# these data sets do. A private use has to take its ranges from documentation.
CLUSTERS = {"s1": 15, "gowalla_pois": 5, "image_house_rgb": 3, "adult": 5, "lifesci": 3}


@lru_cache(maxsize=1)
def records(name: str) -> Any:
    """(n, d) in [-1, 1]."""
    data = tables.real(name)
    assert data.schema is not None
    ranges = [(column.low, column.high) for column in data.schema.columns.values()
              if isinstance(column, privfit.Numeric)]  # fmt: skip
    low, high = np.array(ranges).T
    return np.clip(2 * (data.to_array() - low) / (high - low) - 1, -1, 1)


def nicv(X: Any, centers: Any) -> float:
    parts = np.square(centers).sum(axis=1) - 2 * (X @ centers.T)
    return float((parts.min(axis=1) + np.square(X).sum(axis=1)).mean())


def not_private(X: Any, k: int) -> float:
    from sklearn.cluster import KMeans

    with quiet():
        return float(KMeans(k, n_init=10, random_state=0).fit(X).inertia_ / len(X))


def estimator(
    name: str, solver: Any, epsilon: float, delta: float, adjacency: str, seed: int,
    n_threads: int | None = None, postprocess: str | None = "auto",
) -> privfit.KMeans:  # fmt: skip
    """The k-means of a data set, not yet fitted."""
    return privfit.KMeans(
        CLUSTERS[name], epsilon, delta, domain=(-1, 1), solver=solver, adjacency=adjacency,
        n_public=len(records(name)), n_threads=n_threads, postprocess=postprocess,
        random_state=seed,
    )  # fmt: skip


def fitted(name: str, *settings: Any, **options: Any) -> float:
    """NICV of one fit."""
    X = records(name)
    return nicv(X, estimator(name, *settings, **options).fit(X).cluster_centers_)
