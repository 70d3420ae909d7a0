"""Ordinary weighted k-median of public points: post-processing, at no cost."""

from __future__ import annotations

import math

import numpy as np

from privfit.base import blas
from privfit.base.typing import Floats
from privfit.runs.means import seeds

__all__ = ["weighted_medians"]

MOST_WORK = 2_000_000  # distances of one iteration of all restarts
ITERATIONS = 100
ENOUGH = 1e-5  # of the cost: a smaller gain ends a run


def weighted_medians(
    points: Floats,
    weights: Floats,
    k: int,
    coins: np.random.Generator,
    restarts: int,
    blur: float,
) -> Floats:
    """(k, d): the best of several runs of Weiszfeld's steps within Lloyd's; on public points.

    A point stands for records around it. If they lie at a distance `blur` of it in directions that
    do not matter, a centre at distance m of the point is at sqrt(m^2 + blur^2) of them: points that
    stand for many records are averaged where they are near each other, and selected where they are
    far apart. There are fewer runs if there are many points.
    """
    weights, floor = np.asarray(weights, dtype=np.float64), max(blur, 1e-9) ** 2
    best, least = points[:1], math.inf
    with blas.one_thread():
        own = np.square(points).sum(axis=1)
        for _ in range(max(1, min(restarts, MOST_WORK // (len(points) * k)))):
            start = seeds(points, weights, k, coins, own)
            centers, cost = _descended(points, weights, own, start, floor)
            if cost < least:
                best, least = centers, cost
    return best


def _descended(
    points: Floats, weights: Floats, own: Floats, centers: Floats, floor: float
) -> tuple[Floats, float]:
    """Centres (k, d) after Weiszfeld's steps, each of which lowers the cost, and their cost."""
    last, k, rows = math.inf, len(centers), np.arange(len(points))
    for _ in range(ITERATIONS):
        squares = own[:, None] - 2 * points @ centers.T + np.square(centers).sum(axis=1)
        nearest = squares.argmin(axis=1)
        far = np.sqrt(np.maximum(squares[rows, nearest], 0.0) + floor)
        cost = float(weights @ far)
        if cost >= last * (1 - ENOUGH):
            break
        last, pull = cost, np.zeros((k, len(points)))
        pull[nearest, rows] = weights / far
        total = pull.sum(axis=1)
        filled = total > 0
        centers = centers.copy()
        centers[filled] = (pull @ points)[filled] / total[filled, None]
    return centers, min(cost, last)
