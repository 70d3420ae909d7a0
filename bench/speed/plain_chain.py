"""The walk of `mcmc` over synthetic data sets, in plain Python: what its kernel is compared with.

As in `mcmc`, a step draws a centre of any iteration by its share of the released counts, a point
about it, and a record to replace; the likelihood of the released counts and sums, and the density
of all proposals, decide. For Laplace noise and records in the L1 ball of radius 1.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from privfit import KMeans, L1Ball, Lloyd
from privfit.clustering.consistency import consistent
from privfit.clustering.trace import LloydTrace

VARIANCE = 0.001  # of a proposal about its centre, in each coordinate
Point = list[float]


def blobs_trace(n: int, d: int, k: int, epsilon: float = 0.5) -> LloydTrace:
    """What noisy Lloyd releases of n records in k clusters."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(-0.8, 0.8, (k, d)) / d
    X = middles[rng.integers(k, size=n)] + rng.normal(0, 0.1 / d, (n, d))
    model = KMeans(
        k, epsilon, domain=L1Ball(1.0), solver=Lloyd(paper=True), adjacency="add_remove",
        n_public=n, n_threads=1, random_state=0,
    )  # fmt: skip
    return LloydTrace.from_release(model.fit(X).release_)


class PlainChain:
    """A chain over n records that begins with copies of the last means."""

    def __init__(self, trace: LloydTrace, n: int, seed: int) -> None:
        self.coins = random.Random(seed)
        means = trace.sums[-1] / np.maximum(trace.counts[-1], 1.0)[:, None]
        means /= np.maximum(np.abs(means).sum(axis=1, keepdims=True), 1.0)
        counts = consistent(trace).counts + 1e-9
        self.sets: list[list[Point]] = [*trace.centroids.tolist(), means.tolist()]
        self.shares: list[Point] = _shares(np.concatenate([counts, counts[-1:]]))
        self.weights = [1 / trace.scale_sums] * means.shape[1] + [1 / trace.scale_counts]
        released = np.concatenate([trace.sums, trace.counts[..., None]], axis=2)
        self.rows: list[list[Point]] = released.tolist()  # less the sums and counts of the records
        self.points = self.coins.choices(self.sets[-1], self.shares[-1], k=n)
        self.cells = [self.nearest(x) for x in self.points]
        self.densities = [self.density(x, c) for x, c in zip(self.points, self.cells, strict=True)]
        for x, cell in zip(self.points, self.cells, strict=True):
            for rows, i in zip(self.rows, cell, strict=False):
                rows[i] = _moved(rows[i], x, -1)
        self.accepted = 0

    def walk(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        s = self.coins.randrange(len(self.sets))
        (i,) = self.coins.choices(range(len(self.sets[s])), self.shares[s])
        x = [self.coins.gauss(c, math.sqrt(VARIANCE)) for c in self.sets[s][i]]
        if sum(map(abs, x)) > 1:
            return
        cell = self.nearest(x)
        if cell[s] != i:  # the density counts the nearest centre of a set alone
            return
        j = self.coins.randrange(len(self.points))
        density, changed = self.density(x, cell), self.changed(j, x, cell)
        gain = sum(
            self.misfit(self.rows[t][i]) - self.misfit(row) for (t, i), row in changed.items()
        )
        if math.log(1 - self.coins.random()) < gain + self.densities[j] - density:
            for (t, i), row in changed.items():
                self.rows[t][i] = row
            self.points[j], self.cells[j], self.densities[j] = x, cell, density
            self.accepted += 1

    def nearest(self, x: Point) -> list[int]:
        """The nearest centre of each set."""
        gaps = ([math.dist(x, c) for c in centers] for centers in self.sets)
        return [each.index(min(each)) for each in gaps]

    def density(self, x: Point, cell: list[int]) -> float:
        """The logarithm of the density of proposals at x, up to a constant."""
        terms = [
            math.log(shares[i]) - math.dist(x, centers[i]) ** 2 / (2 * VARIANCE)
            for i, shares, centers in zip(cell, self.shares, self.sets, strict=True)
        ]
        top = max(terms)
        return top + math.log(sum(math.exp(term - top) for term in terms))

    def changed(self, j: int, x: Point, cell: list[int]) -> dict[tuple[int, int], Point]:
        """The rows that record j leaves and x enters, afterwards, by iteration and centre."""
        rows: dict[tuple[int, int], Point] = {}
        for point, of, sign in ((self.points[j], self.cells[j], 1), (x, cell, -1)):
            for t, i in enumerate(of[: len(self.rows)]):
                rows[t, i] = _moved(rows.get((t, i), self.rows[t][i]), point, sign)
        return rows

    def misfit(self, row: Point) -> float:
        return sum(weight * abs(value) for weight, value in zip(self.weights, row, strict=True))


def _shares(counts: Any) -> Any:
    return (counts / counts.sum(axis=1, keepdims=True)).tolist()


def _moved(row: Point, x: Point, sign: int) -> Point:
    """Sums and a count with one record more, or less."""
    return [value + sign * each for value, each in zip(row, (*x, 1.0), strict=True)]
