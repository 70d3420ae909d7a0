"""Ordinary weighted k-means of public points: post-processing, at no cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privfit._kernels.means import closer, lloyd_steps
from privfit.base.typing import Floats, Integers
from privfit.records.rows import KernelCalls

__all__ = ["seeds", "weighted_means"]


MOST_WORK = 2_000_000  # distances of one Lloyd iteration of all restarts
ROUNDS = 100  # Lloyd iterations at most
SETTLED = 1e-4  # of its cost: a run that gains less in an iteration has settled


def weighted_means(
    points: Floats,
    weights: Any,
    k: int,
    coins: np.random.Generator,
    restarts: int = 20,
    n_threads: int | None = 1,
) -> Floats:
    """(k, d): the best of several runs of weighted k-means++ and Lloyd; on public points.

    There are fewer runs if there are many points: their random differences then matter less. The
    answer is the same for every number of threads.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    own = np.square(points).sum(axis=1)
    count = max(1, min(restarts, MOST_WORK // (len(points) * k)))
    starts = np.stack([seeds(points, weights, k, coins, own) for _ in range(count)])
    return _Runs(points, weights, own, starts, n_threads).best()


class _Runs:
    """Lloyd's iteration from several starts (runs, k, d), all of them a step at a time."""

    def __init__(
        self, points: Floats, weights: Floats, own: Floats, starts: Floats, n_threads: int | None
    ) -> None:
        (m, d), (count, k) = points.shape, starts.shape[:2]
        weighed = np.concatenate([weights[None], weights * points.T])
        self._about = points, own, np.ascontiguousarray(weighed)
        self._reach = float(own.max())
        self._centers, self._moved = starts, np.empty_like(starts)
        self._shifts, self._costs = np.zeros((count, k)), np.full(count, math.inf)
        self._nearest = np.zeros((count, m), dtype=np.int32)
        self._lower = np.full((count, m), -1.0)
        team = min(count, KernelCalls(n_threads).threads(float(count * m) * (k + 4) * d))
        self._work = np.empty((team, max((k + 7) * (2 + d), m + 2 * k)))
        self._places = np.empty((team, m + k), dtype=np.int32)

    def best(self) -> Floats:
        """The centres of the run with the least cost, once all have settled."""
        live = np.arange(len(self._costs), dtype=np.int32)
        for _ in range(ROUNDS):
            last = self._costs[live]
            lloyd_steps(
                *self._about, live, self._reach, self._work, self._places, self._centers,
                self._shifts, self._nearest, self._lower, self._moved, self._costs,
            )  # fmt: skip
            live = live[self._costs[live] < last * (1 - SETTLED)]
            if not len(live):
                break
            self._centers[live] = self._moved[live]
        return self._centers[int(self._costs.argmin())]


def seeds(
    points: Floats, weights: Floats, k: int, coins: np.random.Generator, own: Floats | None = None
) -> Floats:
    """k-means++ (Arthur, Vassilvitskii 2007), the best of three draws for each centre.

    `own` are the squares of the points, if they are known.
    """
    turned = np.ascontiguousarray(points.T)
    centers, far = np.empty((k, points.shape[1])), np.full(len(points), math.inf)
    own = np.square(points).sum(axis=1) if own is None else own
    fars, costs = np.empty((3, len(points))), np.empty(3)
    some = points[_drawn(weights, 1, coins)]
    for j in range(k):
        closer(turned, own, weights, some, far, fars, costs)
        winner = int(costs.argmin()) if j else 0
        centers[j], far = some[winner], fars[winner].copy()
        if j < k - 1:
            some = points[_drawn(weights * far, 3, coins)]
    return centers


def _drawn(weights: Floats, m: int, coins: np.random.Generator) -> Integers:
    """m indices drawn by weight; uniformly if all weights are 0."""
    total = np.cumsum(weights)
    if total[-1] <= 0:
        return coins.integers(len(weights), size=m)
    drawn = np.searchsorted(total, coins.random(m) * total[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)
