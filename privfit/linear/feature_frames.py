"""The coordinates of an additive descent: moments of features are bought, pooled and whitened.

`privfit.linear.additive` says what is released. Everything else here is a function of that.

**Block metric.** Of each column the second moments and means are bought, and products of columns
are taken to be those of independent ones: M / n = m m' + C, with C the covariances within columns,
whose eigenvalues are raised to half of what noise alone would give. Then all eigenvalues of M are
raised by a floor l = f n p / (h mu n)^2, at which the noise of gradients drowns a direction;
p = sum of lambda / (lambda + l) is the number of directions above it, and depends on l in turn.

**Pooling.** Numbers with the same public table have moments of the same meaning. Of J > 2 of them
each entry x_i, which has a known noise variance s, is replaced by
mean + t / (t + s) (x_i - mean). Here t is what the columns differ by beyond noise,
(J max(0, v - s) + 4 max(0, mean of v - s)) / (J + 4), with v the variance of the entry over
columns, and the mean of v - s that over all entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base import blas
from privfit.base.typing import Floats
from privfit.linear.descent import CURVATURE, LEAST, Descent, Frame, Noise, whitened
from privfit.linear.recipe import BLOCK_FLOOR, FASTEST, Metric
from privfit.linear.uncertainty import Records, estimated
from privfit.objectives import LinearObjective
from privfit.objectives.feature_moments import BlockMoments, Blocks, FullMoments
from privfit.objectives.features import Curve, Features, Table
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

__all__ = ["FeatureFrame", "Filled", "bought_frame"]

USUAL_CURVATURE = 0.6  # of a loss at the records, in units of its largest: .15 for the logistic
LEAST_RISE = 1e-4  # of eigenvalues, in units of n: directions without records stay in bounds
ROUNDS = 20  # in which the floor of the block metric and its p settle
WIDEST_FULL = 1024  # features up to which products of columns are bought
FEW = 2  # columns that are not pooled
PRIOR_COLUMNS = 4  # that the mean over entries counts for


@dataclass(frozen=True)
class Filled:
    """The settings of an additive fit with all defaults filled in; see `Additive`."""

    steps: int
    metric: Metric
    moments: float
    floor: float
    clip: float
    ridge: float
    average: float
    public: int
    learned: int
    mixing: float
    shrink: bool
    smooth: float
    straight: float
    pool: bool
    caution: float
    weak: float
    fastest: float

    @property
    def noted(self) -> dict[str, Any]:
        """The settings as they are used."""
        return {name: value for name, value in asdict(self).items() if name != "fastest"}

    @property
    def descent(self) -> Descent:
        """The settings of the descent."""
        return Descent(
            steps=self.steps, whiten=True, moments=self.moments, floor=self.floor, clip=self.clip,
            momentum=0.0, ridge=self.ridge, average=self.average,
        )  # fmt: skip

    def features(self, objective: LinearObjective) -> Features:
        """The public maps of the columns."""
        return Features.of(
            objective.domain, self.learned, self.public, self.mixing, self.smooth, self.straight
        )

    def fitting(self, features: Features) -> Filled:
        """These settings, with the block metric if there are too many features for the full one.

        The share of moments stays, as it was planned.
        """
        if self.metric == "block" or features.dimensions <= WIDEST_FULL:
            return self
        return replace(self, metric="block", floor=BLOCK_FLOOR, weak=0.0, fastest=FASTEST)

    @property
    def averaged(self) -> int:
        """How many of the last steps the answer is the mean of."""
        return max(1, round(self.average * self.steps))


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureFrame(Frame):
    """Coordinates of features: `basis` (k, p) maps features to them.

    `rise` was added to the eigenvalues of the moments M (`matrix`) of `n_records` records, which it
    whitens; `likely` (p, p) is what M / n is likely to be without noise, where records say enough.
    `noise` is the standard deviation of what was added to each number of M.
    """

    features: Features
    rise: float
    n_records: float
    matrix: Floats
    likely: Floats
    noise: float

    @classmethod
    def made(
        cls, matrix: Floats, likely: Floats, rise: float, size: float, fastest: float,
        features: Features, noise: float,
    ) -> FeatureFrame:  # fmt: skip
        """The frame that whitens these moments."""
        rise = max(rise, LEAST_RISE * size)
        transform, length = whitened(matrix, rise, size)
        likely = _told_apart(likely, matrix, rise, features)
        return cls(
            transform, length, size, fastest, features=features, rise=rise, n_records=size,
            matrix=matrix, likely=likely, noise=noise,
        )  # fmt: skip

    def raised(self, factor: float) -> FeatureFrame:
        """The frame of the same moments with so many times the floor."""
        rise = self.rise * factor
        transform, length = whitened(self.matrix, rise, self.n_records)
        return replace(self, basis=transform, length=length, rise=rise)

    @property
    def means(self) -> Floats:
        """(p,): those of features, as far as they are known."""
        return np.asarray(self.matrix[-1] / self.n_records)

    @property
    def law(self) -> Records:
        """What is known of records, in the coordinates of the frame."""
        return Records(self.likely, self.basis, 1.0)

    def of_codes(self) -> Floats:
        with blas.one_thread():
            return self.basis @ self.features.of_codes

    def variances(self, noise: float, sampling: float) -> Floats:
        """(p,): of weights, from those of noise and of sampling in whitened coordinates.

        With K = n (M + rise)^-1 noise has the covariance K, and sampling, which is in proportion to
        M, that of K M K / n = K - rise K^2 / n: directions without records are not sampled.
        """
        with blas.one_thread():
            inverse = self.basis.T @ self.basis
        own, raised = (
            inverse.diagonal(),
            np.square(inverse).sum(axis=0) * self.rise / self.n_records,
        )
        return np.asarray(noise * own + sampling * np.maximum(own - raised, 0.0))

    def coded(self, weights: Floats) -> Floats:
        with blas.one_thread():
            return weights @ self.features.of_codes

    def placed(self, weights: Floats, space: Reals) -> tuple[Floats, Floats]:
        return weights, np.clip(self.coded(weights), space.low, space.high)


def bought_frame(
    run: Run[LinearObjective, Reals], s: Filled, noise: Noise, features: Features
) -> FeatureFrame:
    """Release second moments of features, and whiten by them."""
    frame = (_bought_blocks if s.metric == "block" else _bought_whole)(run, s, noise, features)
    return replace(frame, size=frame.size * run.objective.mean_weight)


def _bought_whole(
    run: Run[LinearObjective, Reals], s: Filled, noise: Noise, features: Features
) -> FeatureFrame:
    """Release the second moments of all features, and whiten by them."""
    moments = FullMoments(run.objective, features)
    mechanism = noise.of_moments(moments.sensitivity(run.neighbours))
    matrix = moments.matrix(run.release(mechanism, moments.sums()))
    size = run.n_public or max(1.0, float(matrix[-1, -1]))
    deviation = math.sqrt(mechanism.variance) * moments.unit
    rise = s.floor * deviation * math.sqrt(len(matrix))
    likely = estimated(matrix, deviation, features.empty) / size
    return FeatureFrame.made(matrix, likely, rise, size, s.fastest, features, deviation)


def _bought_blocks(
    run: Run[LinearObjective, Reals], s: Filled, noise: Noise, features: Features
) -> FeatureFrame:
    """Release the second moments and means of each column, and whiten as if none were related."""
    moments = BlockMoments(run.objective, features)
    mechanism = noise.of_moments(moments.sensitivity(run.neighbours))
    blocks = moments.read(run.release(mechanism, moments.sums()))
    size = run.n_public or max(1.0, blocks.count)
    deviation = math.sqrt(mechanism.variance) * moments.unit
    left = [1.0] * len(features.tables)
    if s.pool:
        blocks, left = _pooled(blocks, features.tables, deviation)
    matrix = _independent(blocks, size, deviation, left)
    curvature = USUAL_CURVATURE * CURVATURE[run.objective.loss] * run.objective.mean_weight
    mu = math.hypot(noise.mu_moments, noise.mu * math.sqrt(s.steps)) / run.neighbours.changes
    rise = _water_level(matrix, s.floor * size / (mu * size * curvature) ** 2)
    return FeatureFrame.made(matrix, matrix / size, rise, size, s.fastest, features, deviation)


def _pooled(
    blocks: Blocks, tables: tuple[Table, ...], deviation: float
) -> tuple[Blocks, list[float]]:
    """Blocks nearer to the mean of numbers like them, and the part of noise that each keeps."""
    products, sums, left = [*blocks.products], [*blocks.sums], [1.0] * len(tables)
    for columns in _alike(tables):
        filled = tables[columns[0]].filled
        means, _ = _towards_mean(
            [sums[i] for i in columns], deviation, np.ones(len(filled), dtype=np.bool_)
        )
        found, kept = _towards_mean([products[i] for i in columns], deviation, filled)
        for i, own, mean in zip(columns, found, means, strict=True):
            products[i], sums[i], left[i] = own, mean, kept
    return Blocks(tuple(products), tuple(sums), blocks.count), left


def _alike(tables: tuple[Table, ...]) -> Iterator[list[int]]:
    """Numbers that have the same table, if they are more than a few."""
    groups: dict[Any, list[int]] = {}
    for i, table in enumerate(tables):
        if isinstance(table, Curve) and table.dimensions:
            groups.setdefault((table.rows.shape, table.rows.tobytes()), []).append(i)
    return (columns for columns in groups.values() if len(columns) > FEW)


def _towards_mean(
    found: list[Floats], deviation: float, filled: NDArray[np.bool_]
) -> tuple[Floats, float]:
    """Entries of several columns nearer to their means, and the mean part of noise that is left."""
    every, count, noise = np.stack(found), len(found), max(deviation**2, LEAST)
    mean = every.mean(axis=0)
    beyond = np.square(every - mean).sum(axis=0) / (count - 1) - noise
    usual = max(0.0, float(beyond[filled].mean()))
    own = (count * np.maximum(beyond, 0.0) + PRIOR_COLUMNS * usual) / (count + PRIOR_COLUMNS)
    kept = own / (own + noise)
    return mean + kept * (every - mean), float(kept[filled].mean())


def _independent(blocks: Blocks, size: float, deviation: float, left: list[float]) -> Floats:
    """(p, p): the second moments of columns that are independent of each other.

    `left` is the part of noise that is left in the blocks of each column.
    """
    means = [total / size for total in blocks.sums]
    every = np.append(np.concatenate(means), 1.0)
    matrix, first = np.outer(every, every), 0
    with blas.one_thread():
        for products, mean, part in zip(blocks.products, means, left, strict=True):
            values, vectors = np.linalg.eigh(products / size - np.outer(mean, mean))
            least = deviation / size * math.sqrt(len(mean) * part) / 2
            own = slice(first, first := first + len(mean))
            matrix[own, own] += (vectors * np.maximum(values, least)) @ vectors.T
    return matrix * size


def _told_apart(moments: Floats, matrix: Floats, rise: float, features: Features) -> Floats:
    """(p, p): moments without directions that records say nothing of, or next to nothing.

    No record has any part of the first. Along the others the functions of a number are as near to a
    constant as its moments say, so that the intercept can take their place: what noise leaves of
    such a small moment is mostly noise, and would count as curvature.
    """
    directions = [*features.empty]
    with blas.one_thread():
        for part, table in zip(features.parts, features.tables, strict=True):
            if isinstance(table, Curve):
                values, vectors = np.linalg.eigh(matrix[part, part])
                raised = np.maximum(values, 0.0) + rise
                near = np.zeros(len(matrix))
                near[part] = (vectors / raised) @ (vectors.T @ matrix[part, -1])
                near[-1] = -1.0
                directions.append(near)
        whole, _ = np.linalg.qr(np.array(directions).T, mode="complete")
        told = whole[:, len(directions) :]
        return np.asarray(told @ (told.T @ moments @ told) @ told.T)


def _water_level(moments: Floats, scale: float) -> float:
    """l = scale times the number of directions that are above it, sum of lambda / (lambda + l)."""
    with blas.one_thread():
        values = np.maximum(np.linalg.eigvalsh(moments), 0.0)
    level = 0.0
    for _ in range(ROUNDS):
        level = scale * float((values / np.maximum(values + level, LEAST)).sum())
    return level
