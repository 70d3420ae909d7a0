"""Ordinary weighted k-means of public points: post-processing, at no cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privfit._kernels.candidates import closer, nearest_centers
from privfit.base import blas
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
    own = np.square(points).sum(axis=1)
    best, least = points[:1], math.inf
    with blas.one_thread():
        for _ in range(max(1, min(restarts, MOST_WORK // (len(points) * k)))):
            centers, cost = _lloyd(points, weights, own, seeds(points, weights, k, coins, own))
            if cost < least:
                best, least = centers, cost
    return best


def _lloyd(points: Floats, weights: Floats, own: Floats, centers: Floats) -> tuple[Floats, float]:
    """Centres (k, d) after Lloyd's iterations, in place, and their cost."""
    weighed, k, cost = weights[:, None] * points, len(centers), math.inf
    nearest, least = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for _ in range(100):
        products, squares = _products(points, centers)
        nearest_centers(products, own, squares, nearest, least)
        last, cost = cost, float(weights @ least)
        if cost >= last * (1 - 1e-4):
            break
        small = np.uint16 if k <= 1 << 16 else np.int64  # which numpy sorts by counting
        order = np.argsort(nearest.astype(small), kind="stable")
        sizes = np.bincount(nearest, minlength=k)
        filled = np.flatnonzero(sizes)
        first = np.cumsum(sizes[filled]) - sizes[filled]
        sums = np.add.reduceat(np.take(weighed, order, axis=0), first, axis=0)
        centers[filled] = sums / np.add.reduceat(weights[order], first)[:, None]
    return centers, cost


def _products(points: Floats, centers: Floats) -> tuple[Floats, Floats]:
    """(m, k) -2 times the products of points and centres, and (k,) the squares of the centres."""
    return points @ (-2 * centers.T), np.square(centers).sum(axis=1)


def seeds(
    points: Floats, weights: Floats, k: int, coins: np.random.Generator, own: Floats | None = None
) -> Floats:
    """k-means++ (Arthur, Vassilvitskii 2007), the best of three draws for each centre.

    `own` are the squares of the points, if they are known.
    """
    centers, far = np.empty((k, points.shape[1])), np.full(len(points), math.inf)
    own = np.square(points).sum(axis=1) if own is None else own
    some = points[_drawn(weights, 1, coins)]
    for j in range(k):
        fars, squares = _products(points, some)
        closer(fars, own, squares, far)
        winner = int((weights @ fars).argmin()) if j else 0
        centers[j], far = some[winner], np.ascontiguousarray(fars[:, winner])
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
