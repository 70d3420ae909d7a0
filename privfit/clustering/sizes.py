"""The sizes of clusters, from counts that a fit has released on its way; they cost nothing.

A Lloyd step releases a noisy count of each cluster, and a tree one of each of its cells. So a size
is a sum of released counts, and its noise a sum of as many independent draws of a public scale:

=============  ==================================================================================
steps          the mean of the counts of the last steps, as many as the centres are a mean of: m
               draws of 1/m of a step's noise
a tree         the sum of the counts of the cells whose middle is nearest to the centre: a draw for
               each cell
=============  ==================================================================================

Sizes are unbiased. They are of the records nearest to the centres where these were *counted*,
before the last move, or of the records in those cells; an interval is of noise alone.

**Intervals.** A Laplace draw of scale b is b sqrt(2 E) Z, E exponential and Z standard normal. So a
sum of m of them is b sqrt(2 G) Z with G of the Gamma law of shape m, and

    P(|sum| <= t) = E[2 Phi(t / (b sqrt(2 G))) - 1],

one integral, of which the half-width t is the root. Discrete noise of a scale of many units is so
close to it that the difference is below a unit. A sum of m Gaussian draws is Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.privacy.privtree import Cells

__all__ = ["Sizes"]

NODES = np.linspace(-36, 36, 289)  # of the integral over the law of G: ln(p / (1 - p)), p its share
MANY = 300  # draws from which a sum is as good as normal


@dataclass(frozen=True, eq=False, repr=False)
class Sizes:
    """Noisy sizes of clusters, and the law of their noise.

    `counts` (k,) are the sizes; the noise of each is a sum of `draws` (k,) independent draws, each
    Laplace of this `scale` or Gaussian with this standard deviation, in records.
    """

    counts: Floats
    kind: str
    scale: float
    draws: Integers

    @classmethod
    def of_steps(cls, counts: Sequence[Floats], last: int, kind: str, scale: float) -> Sizes:
        """The mean of the counts of the last steps, each with noise of this scale."""
        used = np.array(counts[-last:])
        draws = np.full(used.shape[1], len(used))
        return cls(used.mean(axis=0), kind, scale / len(used), draws)

    @classmethod
    def of_cells(cls, cells: Cells, centers: Floats, unit: float) -> Sizes:
        """The sums of the counts of the cells whose middle is nearest to each centre."""
        middles = cells.middles * unit
        nearest = scipy.spatial.distance.cdist(middles, centers).argmin(axis=1)
        k = len(centers)
        counts = np.bincount(nearest, cells.counts, minlength=k).astype(np.float64)
        return cls(counts, "laplace", cells.scale, np.bincount(nearest, minlength=k))

    @property
    def errors(self) -> Floats:
        """(k,): the standard deviation of the noise of each size."""
        one = math.sqrt(2) * self.scale if self.kind == "laplace" else self.scale
        return one * np.sqrt(self.draws)

    def intervals(self, level: Any) -> Floats:
        """(k, 2): intervals that contain the sizes without noise, each with this probability."""
        if not is_finite(level) or not 0 < level < 1:
            raise DeclarationError(
                f"level ({level!r}) must be between 0 and 1; pass one such as 0.9"
            )
        half = np.array([self.scale * _half(self.kind, int(m), float(level)) for m in self.draws])
        return np.stack([self.counts - half, self.counts + half], axis=1)

    def noise(self) -> dict[str, Any]:
        """The law of the noise as plain values, which JSON can hold."""
        return {"kind": self.kind, "scale": self.scale, "draws": self.draws.tolist()}

    @classmethod
    def from_noise(cls, counts: Floats, noise: Mapping[str, Any]) -> Sizes:
        """Sizes with what `noise` wrote."""
        draws = np.array(noise["draws"], dtype=np.int64)
        return cls(counts, str(noise["kind"]), float(noise["scale"]), draws)


@lru_cache(maxsize=1024)
def _half(kind: str, draws: int, level: float) -> float:
    """Half the width of an interval of a sum of so many draws of scale 1."""
    if draws == 0:  # a centre without cells
        return 0.0
    normal = float(scipy.special.ndtri((1 + level) / 2)) * math.sqrt(draws)
    if kind != "laplace":
        return normal
    if draws == 1:
        return -math.log1p(-level)
    if draws >= MANY:
        return math.sqrt(2) * normal
    below, above = scipy.special.expit(NODES), scipy.special.expit(-NODES)
    lower = scipy.special.gammaincinv(draws, below)
    lengths = np.sqrt(2 * np.where(NODES < 0, lower, scipy.special.gammainccinv(draws, above)))
    weights = (NODES[1] - NODES[0]) * below * above  # the trapezoid rule: errors below 1e-13

    def beyond(t: float) -> float:
        return float(weights @ (2 * scipy.special.ndtr(-t / lengths))) - (1 - level)

    most = 20.0 * normal - 2 * math.log1p(-level)
    return float(scipy.optimize.brentq(beyond, 0.0, most))
