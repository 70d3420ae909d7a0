"""Recursive medians from smooth sensitivity, as the ROC curves of 2014 print them.

Stoddard, Chen, Machanavajjhala, Algorithm 4, after Nissim, Raskhodnikova, Smith (2007). In a cell
[a, b) of places, the median m of its records gets Cauchy noise of scale 8 S / epsilon and is
rounded to a place; one at or beyond an end of the cell gives way to the cell's middle. S is the
smooth sensitivity of m with beta = epsilon / 2. `roc.Medians` finds better ones.

**The median.** Sorted records are x_1 ... x_n, with x_i = a for i < 1 and x_i = b for i > n, and m
is x_r, r = ceil(n / 2). One more record y makes x'_i <= x_i <= x'_{i+1}, and r' is r or r + 1: from
n = 2 r - 1 the median goes to [x_{r-1}, x_r], from n = 2 r to [x_r, x_{r+1}].

**Smooth sensitivity.** A(k) is the widest x_e - x_s with s <= r <= e and e - s = k + 1, and S is
the largest exp(-beta k) A(k). By the above m changes by at most A(0) <= S. And A(k) of x is at most
A(k + 1) of x': the interval [s, e + 1] of x' is wider, and has r' in it; with a record less it is
[s - 1, e]. So S changes by a factor of exp(beta) at most. So does the larger of S and a constant.

**Cost.** The log density of Cauchy noise z, -ln(1 + z^2), has a slope of at most 1. A shift of m by
S is one of epsilon / 8 noise scales and costs that much. A scale that changes by exp(beta) costs
beta = epsilon / 2, since the derivative of ln(1 / s) - ln(1 + z^2 / s^2) by ln s lies in [-1, 1].
Both together are 5/8 of epsilon; rounding to places is post-processing. What is left covers the
arithmetic: weights are computed in float64, with relative errors below 2^-40, and places are then
drawn by these very numbers as whole ones, exactly.

One record added or removed is in one cell of a level: a level costs epsilon. One replaced is
removed and added, in one cell or in two: epsilon is halved for that.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.privacy.medians import RecursiveMedians

__all__ = ["SmoothMedians"]


NOISE, BETA = 8.0, 0.5  # scale 8 S / epsilon (Algorithm 4); beta of the noise 1 / (1 + z^2)
LEAST = 2.0**-10  # of S, in places
LEAST_EPSILON = 1e-9  # 3/8 of it are far above errors of 2^-40
MOST_EPSILON = 1e6  # what is above is not spent: noise is far below a place by then
UNIT_BITS = 160  # of a weight: the smallest are above 2^-80


@dataclass(frozen=True, repr=False)
class SmoothMedians(RecursiveMedians):
    """Thresholds that halve cells near the median of their records, or in the middle.

    Its parameters are those of `RecursiveMedians`.
    """

    kind = "pure"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_finite(self.epsilon_each) or self.epsilon_each < LEAST_EPSILON:
            raise DeclarationError(
                f"epsilon_each ({self.epsilon_each!r}) must be a number of at least "
                f"{LEAST_EPSILON:g}; pass a larger epsilon"
            )

    def cut(self, counts: Integers, source: BitSource) -> int:
        """A place near the median, or the middle."""
        return 1 + _draw(self.law(counts), source)

    def law(self, counts: Integers) -> Floats:
        """(c - 1,): the probabilities of the cuts 1 ... c - 1 of a cell of c places."""
        width = len(counts)
        epsilon = min(self.epsilon_each, MOST_EPSILON) / self.neighbours.changes
        median = int(np.searchsorted(np.cumsum(counts), (int(counts.sum()) + 1) // 2))
        scale = NOISE * smooth_sensitivity(counts, BETA * epsilon) / epsilon
        away = np.arange(1, width) - float(median)
        # P(t - 1/2 < m + scale z < t + 1/2): a difference of two arc tangents is one of them.
        weights = np.arctan2(scale, scale**2 + away**2 - 0.25)
        outside = math.atan2(scale, median - 0.5) + math.atan2(scale, width - 0.5 - median)
        weights[width // 2 - 1] += outside
        return np.asarray(weights / math.pi)


def smooth_sensitivity(counts: Integers, beta: float) -> float:
    """S of the median of a cell, in places: the widest pair of records around it, discounted."""
    n, places = int(counts.sum()), np.flatnonzero(counts)
    last = np.cumsum(counts)[places]
    first, r = last - counts[places] + 1, (n + 1) // 2
    below, above = first <= r, last >= r
    # Of equal records the nearest to x_r counts; the ends of the cell are records 0 and n + 1.
    low = np.append(places[below], 0), np.append(np.minimum(last[below], r), 0)
    high = np.append(places[above], len(counts)), np.append(np.maximum(first[above], r), n + 1)
    k = np.maximum(high[1] - low[1][:, None] - 1, 0)
    return max(LEAST, float(((high[0] - low[0][:, None]) * np.exp(-beta * k)).max()))


def _draw(weights: Floats, source: BitSource) -> int:
    """An index, with probability in proportion to its weight, exactly."""
    upto = list(accumulate(int(math.ldexp(weight, UNIT_BITS)) for weight in weights.tolist()))
    drawn = total = upto[-1]
    while drawn >= total:
        drawn = source.bits(total.bit_length())
    return bisect_right(upto, drawn)
