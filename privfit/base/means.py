"""Ordinary weighted k-means of public points: post-processing, at no cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privfit.base.typing import Floats, Integers

__all__ = ["seeds", "weighted_means"]


MOST_WORK = 2_000_000  # distances of one Lloyd iteration of all restarts


def weighted_means(
    points: Floats, weights: Any, k: int, coins: np.random.Generator, restarts: int = 20
) -> Floats:
    """(k, d): the best of several runs of weighted k-means++ and Lloyd; on public points.

    There are fewer runs if there are many points: their random differences then matter less.
    """
    weights = np.asarray(weights, dtype=np.float64)
    weighed, own = weights[:, None] * points, np.square(points).sum(axis=1)
    best, least = points[:1], math.inf
    for _ in range(max(1, min(restarts, MOST_WORK // (len(points) * k)))):
        centers = seeds(points, weights, k, coins)
        cost = math.inf
        for _ in range(100):
            squares = _squares(points, own, centers)
            nearest = squares.argmin(axis=1)
            last, cost = cost, float(weights @ squares[np.arange(len(points)), nearest])
            if cost >= last * (1 - 1e-4):
                break
            order = np.argsort(nearest, kind="stable")
            filled, first = np.unique(nearest[order], return_index=True)
            sums = np.add.reduceat(weighed[order], first, axis=0)
            centers[filled] = sums / np.add.reduceat(weights[order], first)[:, None]
        if cost < least:
            best, least = centers, cost
    return best


def _squares(points: Floats, own: Floats, centers: Floats) -> Floats:
    """(m, k) squared distances of points (m, d) whose own squares are known."""
    squares = points @ (-2 * centers.T)
    squares += own[:, None]
    squares += np.square(centers).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)


def seeds(points: Floats, weights: Floats, k: int, coins: np.random.Generator) -> Floats:
    """k-means++ (Arthur, Vassilvitskii 2007), the best of three draws for each centre."""
    centers, own = np.empty((k, points.shape[1])), np.square(points).sum(axis=1)
    centers[0] = points[_drawn(weights, 1, coins)[0]]
    far = _squares(points, own, centers[:1])[:, 0]
    for j in range(1, k):
        some = points[_drawn(weights * far, 3, coins)]
        fars = np.minimum(far[:, None], _squares(points, own, some))
        winner = int((weights @ fars).argmin())
        centers[j], far = some[winner], fars[:, winner]
    return centers


def _drawn(weights: Floats, m: int, coins: np.random.Generator) -> Integers:
    """m indices drawn by weight; uniformly if all weights are 0."""
    total = np.cumsum(weights)
    if total[-1] <= 0:
        return coins.integers(len(weights), size=m)
    drawn = np.searchsorted(total, coins.random(m) * total[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)
