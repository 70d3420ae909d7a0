"""The ROC curves of 2014, as published, beside which `roc_curve` may be measured.

Stoddard, Chen, Machanavajjhala: *Differentially private algorithms for empirical machine learning*,
Sections 4 and 5.2. `PriROC` says which of the paper's three curves ``roc_curve(paper=...)`` is to
draw, with what breaks privacy repaired:

===========  ====================================================================================
`medians`    k-RecursiveMedians: 2^k - 1 thresholds from 0.2 epsilon, Privelet with the rest;
             `smooth_medians.py` has the medians
`grid`       alpha-FixedSpace: floor(alpha n) even cells, Privelet with all of epsilon
`laplace`    the baseline: noise on the counts at t thresholds and on the sizes of both classes.
             The thresholds are even, where the paper lets them be chosen by the data
===========  ====================================================================================

n is private if records are added or removed, so k and the grid then take a public number. Privelet
gets half of its budget for each class, as printed. A record has one class, so this costs that half
once, and the rest of the budget is never used; `Counted` has more noise than it needs, too. Neither
breaks anything, and both are left as they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.evaluation.cumulative import Measurement
from privfit.runs.sizes import known_size

__all__ = ["Counted", "PriROC"]


MEDIANS_SHARE = 0.2  # of epsilon, for thresholds (Section 5.2)
MOST_LEVELS = 12  # of medians: the places of a score are 2^12
MOST_CELLS = 2**MOST_LEVELS


@dataclass(frozen=True)
class PriROC:
    """Which of the curves of 2014 to draw.

    Parameters
    ----------
    thresholds : {'medians', 'grid', 'laplace'}, default='medians'
        k-RecursiveMedians, alpha-FixedSpace, or the baseline: noise on the counts at t thresholds.
    k : int or None, default=None
        Number of levels of medians; by default ceil(log2 n), at most 12.
    alpha : float, default=1.0
        Number of cells of the grid, as a fraction of n: the paper tries 1, 0.5, 0.25 and 0.125.
    t : int, default=10
        Number of thresholds of the baseline: the paper tries 10, 9, 8 and 7.

    See Also
    --------
    privfit.roc_curve : Has a parameter `paper`.

    References
    ----------
    B. Stoddard, Y. Chen, A. Machanavajjhala, "Differentially private algorithms for empirical
    machine learning", 2014, Sections 4 and 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> from privfit.evaluation.priroc import PriROC
    >>> y = np.repeat([0, 1], 500)
    >>> curve = roc_curve(y, np.linspace(0, 1, 1000), 1.0, paper=PriROC("grid", alpha=0.25))
    >>> len(curve.fpr)
    251
    """

    thresholds: str = "medians"
    k: int | None = None
    alpha: float = 1.0
    t: int = 10

    def __post_init__(self) -> None:
        if self.thresholds not in ("medians", "grid", "laplace"):
            raise DeclarationError(
                f"thresholds ({self.thresholds!r}) must be 'medians', 'grid' or 'laplace'; pass "
                "one of them"
            )
        if self.k is not None and (not is_whole(self.k) or not 1 <= self.k <= MOST_LEVELS):
            raise DeclarationError(
                f"k ({self.k!r}) must be a whole number from 1 to {MOST_LEVELS}; leave it out"
            )
        if not is_finite(self.alpha) or not 0 < self.alpha <= 1:
            raise DeclarationError(f"alpha ({self.alpha!r}) must lie in (0, 1]; pass alpha=1.0")
        if not is_whole(self.t) or not 1 <= self.t < MOST_CELLS:
            raise DeclarationError(
                f"t ({self.t!r}) must be a whole number from 1 to {MOST_CELLS - 1}; pass t=10"
            )

    def levels(self, size: int | None) -> int:
        """The number of levels k: as given, or ceil(log2 n), from 1 to 12.

        Parameters
        ----------
        size : int or None
            Public number of records.

        Returns
        -------
        int
            The number.
        """
        if self.k is not None:
            return self.k
        return min(max(1, math.ceil(math.log2(self._known(size)))), MOST_LEVELS)

    def cells(self, size: int | None) -> int:
        """The number of even cells: floor(alpha n), or t + 1; at least 2, at most 2^12.

        Parameters
        ----------
        size : int or None
            Public number of records.

        Returns
        -------
        int
            The number.
        """
        if self.thresholds == "laplace":
            return self.t + 1
        return min(max(2, math.floor(self.alpha * self._known(size))), MOST_CELLS)

    def cuts(self, bounds: tuple[float, float], size: int | None) -> Floats:
        """The thresholds between even cells of the bounds.

        Parameters
        ----------
        bounds : pair of float
            The public range of scores.
        size : int or None
            Public number of records.

        Returns
        -------
        array
            Increasing thresholds.
        """
        m = self.cells(size)
        return bounds[0] + (bounds[1] - bounds[0]) * (np.arange(1, m) / m)

    @staticmethod
    def _known(size: int | None) -> int:
        return known_size(size, remedy="a public estimate, or PriROC(k=...)")


@dataclass(frozen=True)
class Counted(Measurement):
    """The records above each of t thresholds, and all of them, of each histogram.

    The published sensitivity for both classes is 2 t + 1. A record of one class is in at most t + 1
    of these counts, so that it is enough.
    """

    t: int

    @property
    def levels(self) -> int:
        return 2 * self.t + 1

    def measure(self, cells: Integers) -> Integers:
        return np.cumsum(cells[..., self.t :: -1], axis=-1)[..., ::-1]

    def estimate(self, noisy: Any) -> Floats:
        above = np.asarray(noisy, dtype=np.float64)
        cells = above - np.append(above[..., 1:], np.zeros((*above.shape[:-1], 1)), axis=-1)
        empty = 2**self.bits - cells.shape[-1]
        return np.pad(cells, [*[(0, 0)] * (cells.ndim - 1), (0, empty)])
