"""Larger calls beside numpy and scikit-learn: all swaps of medians, curves, counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import tables
from bench.speed.cases import Ready, case, same, scaled
from privfit import Box, FacilityObjective, roc_curve
from privfit.evaluation.roc import exact_roc
from privfit.records.binary import BinaryRecords


def _facilities(threads: int, scale: float) -> tuple[FacilityObjective, Any, int]:
    X, _ = tables.one_hot(scaled(48_842, scale))
    places = np.random.default_rng(6).uniform(0, 1, (400, X.shape[1]))
    d = X.shape[1]
    objective = FacilityObjective(X, places, (d / 4, d / 2), Box(0, 1), threads)
    return objective, objective._sums.whole("this bench").distances(), len(X)


@case("searches", "all swaps, k = 4", 20, note="numpy: two nearest members, bincount", k=4)
@case("searches", "all swaps, k = 16", 20, k=16)
@case("searches", "all swaps, k = 64", 20, k=64)
def swaps(threads: int, scale: float, k: int) -> Ready:
    objective, distances, n = _facilities(threads, scale)
    members = np.random.default_rng(k).choice(400, k, replace=False)
    view = objective.at(members)
    two, which = distances.nearest_two(members)
    first, second = two.astype(np.float64)
    rows = distances.matrix[:400, :n].astype(np.float64)

    def grouped() -> Any:
        """All swaps of a facility at once, summed by the nearest member."""
        sums = np.empty((k, 400))
        for j in range(400):
            kept = np.minimum(rows[j], first)
            sums[:, j] = kept.sum() + np.bincount(which, np.minimum(rows[j], second) - kept, k)
        return -sums

    return Ready(f"{n:,} x 400", view.all_scores, {"numpy": grouped}, same)


@case("searches", "all additions", 10, note="numpy, row by row")
def additions(threads: int, scale: float) -> Ready:
    objective, distances, n = _facilities(threads, scale)
    growth = objective.growth()
    growth.add(3)
    near = distances.matrix[3, :n].astype(np.float64)
    rows = distances.matrix[:400, :n].astype(np.float64)
    return Ready(f"{n:,} x 400", growth.scores,
                 {"numpy": lambda: np.array([-np.minimum(row, near).sum() for row in rows])},
                 same)  # fmt: skip


@case("searches", "ROC curve", 5, note="scikit-learn's is exact and not private")
def curve(threads: int, scale: float) -> Ready:
    from sklearn.metrics import roc_curve as plain

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=scaled(1_000_000, scale))
    score = np.clip(rng.normal(0.4 + 0.2 * y, 0.15), 0, 1)
    at = np.linspace(0, 1, 1000)
    true = np.interp(at, *exact_roc(y, score))

    def agree(ours: Any, name: str, theirs: Any) -> None:
        gap = np.abs(np.interp(at, ours.fpr, ours.tpr) - true).mean()
        assert scale < 1.0 or gap < 0.01, f"the curve is {gap:.3f} from that of {name}"

    return Ready(f"{len(y):,} scores", lambda: roc_curve(y, score, 1.0),
                 {"scikit-learn": lambda: plain(y, score)}, agree)  # fmt: skip


@case("searches", "counting ones by class", 2, n=1_000_000, d=32_768)
@case("searches", "counting ones by class, small", 2, n=5_574, d=8_192)
def counting(threads: int, scale: float, n: int, d: int, ones: int = 20) -> Ready:
    n, rng = scaled(n, scale), np.random.default_rng(0)
    places = np.sort(rng.integers(0, d, (n, ones), dtype=np.int32), axis=1)
    X = sp.csr_array((np.ones(n * ones), places.ravel(), np.arange(0, n * ones + 1, ones)),
                     shape=(n, d))  # fmt: skip
    X.sum_duplicates()
    X.data[:] = 1
    y = (rng.random(n) < 0.13).astype(np.int32)
    dense, records = np.stack([1.0 - y, y], axis=1), BinaryRecords.of(X, y, 2, n_threads=threads)
    return Ready(f"{n:,} x {d:,}", lambda: records.counts().ones,
                 {"X.T @ dense": lambda: (X.T @ dense).T, "dense.T @ X": lambda: dense.T @ X},
                 same)  # fmt: skip
