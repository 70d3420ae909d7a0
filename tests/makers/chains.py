"""Problems for the chain, as arrays: what the kernel takes, and what its twin takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import reference

from privfit._kernels import chain
from privfit._kernels.random import BitSource

ONE = 8192  # whole units in the half-width of the domain
NORMS = {"box": 0, "l1": 1, "l2": 2}


@dataclass
class Problem:
    """A mixture, a released table and n points; `state` makes the kernel's buffers afresh."""

    centers: Any  # (sets, k, d)
    n_assign: int
    slots: Any
    spread: Any
    precision: float
    bounds: Any
    norm: int
    limit: float
    points: Any  # (n, d)
    released: Any  # (n_assign k, d + 1) sums and counts
    weight: Any  # (d + 1,)
    quadratic: bool

    def mixture(self) -> Any:
        return chain.Mixture(self.centers.astype(np.int16), self.n_assign, self.slots, self.spread,
                             self.precision, self.bounds, self.norm, self.limit)  # fmt: skip

    def twin(self, seed: Any) -> reference.Chain:
        return reference.Chain(
            self.centers.astype(int).tolist(), self.n_assign, self.slots.tolist(),
            self.spread.tolist(), self.precision, self.bounds.tolist(), self.norm, self.limit,
            self.points.astype(int).tolist(), self.released.tolist(), self.weight.tolist(),
            self.quadratic, chain.streams(BitSource(seed)).T.tolist(),
        )  # fmt: skip

    def state(self, seed: Any) -> State:
        return State(self, seed)


class State:
    """The kernel's buffers at the start of a chain."""

    def __init__(self, problem: Problem, seed: Any) -> None:
        n, d = problem.points.shape
        self.problem, self.mixture = problem, problem.mixture()
        self.width = (d + 4) // 4 * 4
        self.points = self.padded(problem.points)
        self.ids = np.zeros((n, problem.n_assign), dtype=np.uint16)
        self.log_q = np.zeros(n)
        chain.assign(self.mixture, self.points, self.ids, self.log_q)
        self.rows = self.recomputed(self.points, self.ids)
        self.weight = np.zeros(self.width)
        self.weight[: d + 1] = problem.weight
        self.best = self.points.copy()
        self.stale, self.is_stale = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
        self.counters, self.values = np.array([0, 1, 0]), np.full(2, -np.inf)
        self.streams = chain.streams(BitSource(seed))

    def padded(self, points: Any) -> Any:
        result = np.zeros((len(points), self.width), dtype=np.int16)
        result[:, : points.shape[1]] = points
        result[:, points.shape[1]] = 1
        return result

    def recomputed(self, points: Any, ids: Any) -> Any:
        """Released sums and counts less those of the points, from scratch."""
        rows = np.zeros((len(self.problem.released), self.width))
        rows[:, : self.problem.released.shape[1]] = self.problem.released
        for column in ids.T:
            np.subtract.at(rows, column, points.astype(np.float64))
        return rows

    def likelihood(self, rows: Any) -> float:
        return -float(((rows**2 if self.problem.quadratic else np.abs(rows)) * self.weight).sum())

    def walk(self, steps: int, beta: float = 1.0, tilt: float = 1.0) -> None:
        betas = np.full(-(-steps // chain.CROWD_SIZE), beta)
        chain.walk(self.mixture, self.streams, self.points, self.ids, self.log_q, self.rows,
                   self.weight, self.problem.quadratic, betas, steps, tilt, self.best, self.stale,
                   self.is_stale, self.counters, self.values)  # fmt: skip


def blobs(
    d: int, k: int, n: int, sets: int = 3, n_assign: int = 2, domain: str = "box",
    noise: float = 3.0, quadratic: bool = False, silent: bool = False, seed: int = 0,
) -> Problem:  # fmt: skip
    """Clusters whose centres move a little from set to set, and noisy counts and sums of them.

    `silent`: the first set assigns, but proposes nothing.
    """
    rng = np.random.default_rng(seed)
    middle = rng.uniform(-0.8, 0.8, (k, d)) / (1 if domain == "box" else d)
    centers = np.rint((middle + rng.normal(0, 0.02, (sets, k, d))) * ONE)
    points = centers[-1][rng.integers(k, size=n)]
    sigma = ONE * 0.001**0.5
    released = np.zeros((n_assign * k, d + 1))
    truth = middle[rng.integers(k, size=n)] * ONE + rng.normal(0, 0.1, (n, d)) * ONE
    for t in range(n_assign):
        gaps = np.square(truth[:, None] - centers[t]).sum(axis=2)
        np.add.at(released, t * k + gaps.argmin(axis=1), np.column_stack([truth, np.ones(n)]))
    draw = rng.normal if quadratic else rng.laplace
    released += draw(0, noise, released.shape) * np.append(np.full(d, ONE), 1.0)
    released = np.rint(released * 2**10) / 2**10
    weight = np.append(np.full(d, 1 / (noise * ONE)), 1 / noise)
    share = rng.uniform(0.1, 1, sets * k)
    others = rng.choice(sets * k, 4096 - sets * k, p=share / share.sum())
    slots = np.append(np.arange(sets * k), others).astype(np.uint16)  # each component has one
    if silent:
        slots[slots < k] = k
    return Problem(
        centers, n_assign, slots, np.full(d, sigma), 1 / (2 * sigma**2),
        np.stack([np.full(d, -float(ONE)), np.full(d, float(ONE))]), NORMS[domain],
        float(ONE**2 if domain == "l2" else ONE), points, released,
        weight**2 / 2 if quadratic else weight, quadratic,
    )  # fmt: skip
