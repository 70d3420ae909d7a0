"""Post-processing of noisy Lloyd: it takes released values and never records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LloydTrace"]


@dataclass(frozen=True, eq=False)
class LloydTrace:
    """What noisy Lloyd released, about the middle of the domain, in units of the records.

    Attributes
    ----------
    centroids : (T, k, d)
        The centres that step t assigned records to.
    counts, sums : (T, k), (T, k, d)
        Records of each cluster and their sum, with noise, as drawn.
    scale_counts, scale_sums : float
        Of the noise: b of discrete Laplace noise exp(-abs(x) / b), or a standard deviation.
    low, high : (d,)
        Bounds of a record.
    kind : 'laplace' or 'gaussian'
    """

    centroids: Any
    counts: Any
    sums: Any
    scale_counts: float
    scale_sums: float
    low: Any
    high: Any
    kind: str
