"""A likely data set, given everything that any k-means fit released: records from a pool.

The chain of Lee and Kifer, for parts of any kind (`parts.py`). Its records are points of a pool
that is drawn without looking at records: around the centres where the steps ended, or in the cells
if there was no step. What each point adds to each part is computed once. The chain then moves
synthetic records from one point to another by the likelihood of all parts together; its prior is
that of records drawn from the pool. If there are more records than `MOST_RECORDS`, a synthetic one
stands for two, four, ... of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfit._kernels import pool as kernels
from privfit._kernels.chain import CROWD_SIZE
from privfit.base.typing import Floats
from privfit.clustering.parts import CellCounts, ClusterSums, KMeansTrace, Part

__all__ = ["Pool", "Records", "drawn_on", "ended_at", "estimated_size"]

POINTS = 1 << 14  # of a pool
MOST_RECORDS = 1 << 15
UNITS = 1 << 13  # that the half width of the widest column has
SPREAD = 0.5  # of a radius: how far points of a pool are from their centre, about
AVERAGE = 0.5  # of the last steps, whose ends are averaged
HALF_WAY = 0.5  # from the centres of a fit to the means of likely records
WIDE = 0.1  # of the domain: points about the centres of steps on whole records


class Pool:
    """Public points, their row in each part, and what they add to its sums."""

    def __init__(self, trace: KMeansTrace, coins: np.random.Generator, size: int = POINTS) -> None:
        # The kernel takes parts with sums first.
        self.parts = sorted(trace.parts, key=lambda part: not isinstance(part, ClusterSums))
        self.unit = _unit(trace)
        drawn = np.rint(_drawn(trace, size, coins) / self.unit) * self.unit
        self.points = np.ascontiguousarray(_inside(trace, drawn))
        self._first = np.cumsum([0, *map(_n_rows, self.parts)])
        own = [part.rows(self.points) for part in self.parts]
        self.rows = (np.stack(own, axis=1) + self._first[:-1]).astype(np.int32)
        self.vectors = np.zeros((size, len(self._steps), self.points.shape[1]), dtype=np.int32)
        for t, part in enumerate(self._steps):
            vectors = part.vectors(self.points, own[t], trace.origin)
            self.vectors[:, t] = np.rint(vectors / self.unit)

    @property
    def _steps(self) -> list[ClusterSums]:
        return [part for part in self.parts if isinstance(part, ClusterSums)]

    @property
    def part_of(self) -> NDArray[np.int32]:
        """(rows,): which part each row belongs to."""
        return np.repeat(np.arange(len(self.parts)), np.diff(self._first)).astype(np.int32)

    def released(self, each: float) -> kernels.Parts:
        """The released values, as the kernel takes them; a record stands for `each` records."""
        counts, weights = np.zeros((2, self._first[-1]))
        for part, first in zip(self.parts, self._first, strict=False):
            if part.counts is not None:
                own = slice(first, first + len(part.counts))
                counts[own], weights[own] = part.counts, _weight(_count_scale(part), part.kind)
        sums = [np.zeros((0, self.points.shape[1])), *(part.sums for part in self._steps)]
        return kernels.Parts(
            self.rows, self.vectors, _fine(counts), _fine(np.concatenate(sums) / self.unit),
            weights,
            np.array([_weight(part.scale_sums / self.unit, part.kind) for part in self._steps]),
            np.array([part.kind == "gaussian" for part in self.parts], dtype=np.uint8), each,
        )  # fmt: skip


class Records:
    """The state of the chain: which point of the pool each synthetic record is."""

    def __init__(self, pool: Pool, n_records: int, coins: np.random.Generator) -> None:
        self.each = 2.0 ** max(0, math.ceil(math.log2(n_records / MOST_RECORDS)))
        self._pool, self._coins = pool, coins
        self._parts = pool.released(self.each)
        count = max(1, round(n_records / self.each))
        self._chosen = coins.integers(len(pool.points), size=count).astype(np.int32)
        self._best = self._chosen.copy()
        kernels.put_in(self._parts, self._chosen)
        self._values = np.full(2, kernels.log_likelihood(self._parts, pool.part_of))
        self.accepted = 0

    @property
    def best_value(self) -> float:
        """The log likelihood of the best state."""
        return float(self._values[1])

    @property
    def points(self) -> Floats:
        """(n, d): the records of the best state."""
        return np.asarray(self._pool.points[self._best])

    def likelihood(self) -> float:
        """The log likelihood of the best state, from scratch."""
        parts = self._pool.released(self.each)
        kernels.put_in(parts, self._best)
        return kernels.log_likelihood(parts, self._pool.part_of)

    def walk(self, betas: Floats, steps: int, cooled: bool) -> None:
        """Make this many steps; one inverse temperature for each block of CROWD_SIZE.

        The prior is the same whether the chain is cooled or not.
        """
        self.accepted += kernels.walk(
            self._parts,
            self._chosen,
            self._coins.integers(len(self._chosen), size=steps),
            self._coins.integers(len(self._pool.points), size=steps),
            -self._coins.standard_exponential(steps),
            np.repeat(betas, CROWD_SIZE)[:steps],
            self._values,
            self._best,
        )


def drawn_on(centers: Floats, points: Floats) -> Floats:
    """(k, d): centres, half way to the mean of the points that are nearest to each.

    Likely records have noise of their own, and a shape that nobody released: the whole way, or
    more steps, gave worse centres on most tables (docs/postprocess.md).
    """
    part = ClusterSums(centers, None, np.zeros_like(centers), 1.0, 1.0)
    rows = part.rows(points)
    counts = np.bincount(rows, minlength=len(centers))[:, None]
    sums = np.zeros_like(centers)
    np.add.at(sums, rows, points)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), centers)
    return np.asarray(centers + HALF_WAY * (means - centers))


def estimated_size(trace: KMeansTrace) -> int | None:
    """The number of records, by the totals of all parts that have counts; None if none has.

    Totals are weighed by their precision: m counts together have m times the variance of one.
    """
    counted = [part for part in trace.parts if part.counts is not None]
    if not counted:
        return None
    variances = [
        len(part.counts) * _count_scale(part) ** 2 * (2 if part.kind == "laplace" else 1)
        for part in counted
    ]
    totals = [float(part.counts.sum()) for part in counted]
    return max(1, round(np.average(totals, weights=1 / np.array(variances))))


def ended_at(trace: KMeansTrace) -> tuple[Floats, Floats] | None:
    """(k, d), (k,): where the last steps moved their centres, on average, and their counts.

    None if no step has counts.
    """
    steps = [p for p in trace.parts if isinstance(p, ClusterSums) and p.counts is not None]
    if not steps:
        return None
    alike = [step for step in steps if step.centers.shape == steps[-1].centers.shape]
    last = alike[-max(1, round(AVERAGE * len(alike))) :]
    counts = np.mean([step.counts for step in last], axis=0)
    return np.mean([_moved(trace, step) for step in last], axis=0), np.maximum(counts, 0.0)


def _moved(trace: KMeansTrace, step: ClusterSums) -> Floats:
    """(k, d): where a step moves its centres; small counts are raised, as in `lloyd.py`."""
    least = max(1.0, step.counts.sum() / (20 * len(step.counts)))
    means = step.sums / np.maximum(step.counts, least)[:, None]
    if not step.radius:
        return _inside(trace, trace.origin + means)
    length = np.linalg.norm(means, step.norm, axis=1, keepdims=True)
    short = means * np.minimum(1.0, step.radius / np.maximum(length, step.radius))
    return _inside(trace, step.centers + short)


def _drawn(trace: KMeansTrace, size: int, coins: np.random.Generator) -> Floats:
    """(size, d): points around the centres where the steps ended; else in cells, or anywhere."""
    d = len(trace.low)
    ended = ended_at(trace)
    if ended is not None:
        centers, counts = ended
        step = [part for part in trace.parts if isinstance(part, ClusterSums)][-1]
        wide = WIDE * float((trace.high - trace.low).max())
        length = step.radius / (d if step.norm == 1 else math.sqrt(d)) or wide
        rows = coins.choice(len(counts), size=size, p=_shares(counts))
        return np.asarray(centers[rows] + coins.normal(0.0, SPREAD * length, (size, d)))
    cells = [part for part in trace.parts if isinstance(part, CellCounts)]
    if not cells:
        return coins.uniform(trace.low, trace.high, (size, d))
    weights = np.maximum(cells[-1].counts - cells[-1].scale * math.log(2), 0.0)
    rows = np.sort(coins.choice(len(weights), size=size, p=_shares(weights)))
    return coins.uniform(cells[-1].low[rows], cells[-1].high[rows])


def _shares(weights: Floats) -> Floats:
    """Weights that add up to one, equal if all are 0."""
    total = weights.sum()
    return np.asarray(weights / total if total > 0 else np.full(len(weights), 1 / len(weights)))


def _inside(trace: KMeansTrace, points: Floats) -> Floats:
    """Points moved into the domain."""
    points = np.clip(points, trace.low, trace.high)
    if trace.domain == "box":
        return points
    away = points - trace.origin
    length = np.linalg.norm(away, 1 if trace.domain == "l1" else 2, axis=1, keepdims=True)
    return np.asarray(
        trace.origin + away * np.minimum(1.0, trace.radius / np.maximum(length, trace.radius))
    )


def _unit(trace: KMeansTrace) -> float:
    """The grid of the pool, a power of two."""
    half = float((trace.high - trace.low).max()) / 2
    return 2.0 ** math.floor(math.log2(half / UNITS)) if half > 0 else 1.0


def _fine(values: Floats) -> Floats:
    """Released values on a grid on which sums of doubles are exact."""
    return np.rint(values * 2**10) / 2**10


def _n_rows(part: Part) -> int:
    """Rows of a part; cells have one more, of no weight, for points in none of them."""
    if isinstance(part, ClusterSums):
        return len(part.centers)
    return len(part.counts) + isinstance(part, CellCounts)


def _count_scale(part: Part) -> float:
    return part.scale_counts if isinstance(part, ClusterSums) else part.scale


def _weight(scale: float, kind: str) -> float:
    """What one unit of misfit takes off the log likelihood; Gaussian misfits are squared."""
    return 1 / (2 * scale**2) if kind == "gaussian" else 1 / scale
