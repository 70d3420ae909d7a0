"""A released accuracy with an interval: of the noise, whose law is known, and of the test records.

The number of correct predictions has noise of a known law, and the records of a test set are a
sample. With probability 1 - a/2 the count without noise is within the interval of the noise, and
with probability 1 - a/2 the accuracy on the population is within Wilson's interval of the accuracy
on the sample. Wilson's ends rise with the share they are around, so that the lower end for the
lowest count and the upper end for the highest one contain it with probability 1 - a. Under
'add_remove' the number of wrong predictions has noise as well, and a is divided by three. Laplace's
law stands for the discrete one, whose quantiles are less than a unit away: a unit is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationTypeError
from privfit.clustering.sizes import Sizes
from privfit.evaluation.roc import ConfusionMatrix
from privfit.privacy.ledger import Release
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.released import ReleasedFloat

__all__ = ["LEVEL", "Estimate", "share_interval"]

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A released accuracy, and the interval of the accuracy on the population."""

    value: float
    lower: float
    upper: float
    release: Release

    def __str__(self) -> str:
        return f"{self.value:.4f} ({100 * LEVEL:g} % interval {self.lower:.4f} to {self.upper:.4f})"

    @classmethod
    def of(cls, accuracy: Any, n: int | None = None) -> Estimate:
        """That of `accuracy_score` or `confusion_matrix`; anything else was not released.

        `n` is the number of test records if that is public, which a rounded accuracy may hide.
        """
        if isinstance(accuracy, ConfusionMatrix):
            return _of_matrix(accuracy)
        if isinstance(accuracy, ReleasedFloat) and "accuracy" in accuracy.release.parameters:
            return _of_score(accuracy, n)
        raise DeclarationTypeError(
            f"accuracy ({type(accuracy).__name__}) must be one that was released; pass what "
            "privfit.accuracy_score or privfit.confusion_matrix returns"
        )


def _of_score(accuracy: ReleasedFloat, known: int | None) -> Estimate:
    release = accuracy.release
    counts = np.asarray(release.parameters["noisy"], dtype=np.float64)
    scale = 1.0 / release.events[0].parameter
    n = None
    if len(counts) == 1:  # the number of records is public, and the count was divided by it
        inside = 0.0 < accuracy < 1.0
        n = known or (round(counts[0] / float(accuracy)) if inside else 0)
    noise = Sizes(counts, "laplace", scale, np.ones(len(counts), dtype=np.int64))
    return Estimate(float(accuracy), *share_interval(noise, n), release)


def _of_matrix(matrix: ConfusionMatrix) -> Estimate:
    release, k = matrix.release, len(matrix.counts)
    cells = np.asarray(release.parameters["noisy"], dtype=np.float64).reshape(k, k)
    right = float(np.trace(cells))
    neighbours = Neighbours.of(release.adjacency)
    scale = neighbours.changes / release.events[0].parameter
    if neighbours.size_is_public:
        noise = Sizes(np.array([right]), "laplace", scale, np.array([k]))
        return Estimate(
            matrix.accuracy, *share_interval(noise, round(float(matrix.counts.sum()))), release
        )
    both = np.array([right, float(cells.sum()) - right])
    noise = Sizes(both, "laplace", scale, np.array([k, k * k - k]))
    return Estimate(matrix.accuracy, *share_interval(noise), release)


def share_interval(noise: Sizes, n: int | None = None) -> tuple[float, float]:
    """The ends of the 95 % interval of a share, from the noisy count of those that have it.

    `n` is the public number of records, 0 if it is not known here. Without it, `noise` is of the
    noisy counts of those that have it and of the others.
    """
    if n == 0:
        return 0.0, 1.0
    parts = len(noise.counts) + 1
    level = 1.0 - (1.0 - LEVEL) / parts
    low, high = noise.intervals(level).T + np.array([[-1.0], [1.0]])
    least, most = np.maximum(low, 0.0), np.maximum(high, 0.0)
    if n is not None:
        lowest, highest = (least[0], n), (min(most[0], n), n)
    else:
        lowest = least[0], least[0] + most[1]
        highest = most[0], most[0] + least[1]
    return _wilson(*lowest, level)[0], _wilson(*highest, level)[1]


def _wilson(right: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's interval of a share."""
    if n <= 0:
        return 0.0, 1.0
    z = float(scipy.special.ndtri((1 + level) / 2))
    share, weight = right / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)
