"""Our implementation of FastLloyd's clustering, as a peer.

Diaa, Humphries, Kerschbaum: *FastLloyd: federated, accurate, secure, and tunable k-means clustering
with differential privacy*, 2024. Lloyd steps from centres packed without data; a record farther
than a radius from its centre is left out; sums are relative to the centres, and centres move by at
most the radius. Ours is the central algorithm with Laplace noise, without the protocol of several
parties, and with what helps it: a difference of an l2 norm of at most eta has an l1 norm of at most
sqrt(d) eta, where the published code takes d eta. The noise is float: a simulation, not a release.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from privfit import Box, CentersObjective
from privfit.clustering.starts import packed

ALPHA = 0.8  # of the radius
RHO = 0.225  # a typical length of a centre
FEWEST, MOST = 2, 7  # steps


def fit(X: Any, k: int, epsilon: float, seed: int) -> Any:
    """(k, d): centres of records in [-1, 1]^d, one of them added or removed."""
    coins, (n, d) = np.random.default_rng(seed), X.shape
    centers = packed(CentersObjective(X[:1], k, Box(-1, 1)), coins)
    counted = np.cbrt(4 * d * RHO**2)  # the share of counts beside d of sums
    least = math.sqrt(500 * k**3 / n**2 * (d + counted) ** 3)
    steps = int(min(max(epsilon / least, FEWEST), MOST))
    share = epsilon / steps / (d + counted)
    for step in range(steps):
        eta = math.sqrt(d) * (1.0 if step == 0 else min(1.0, ALPHA * k ** (-1 / d)))
        away = cdist(X, centers)
        own = away.argmin(axis=1)
        held = away[np.arange(n), own] <= eta
        counts = np.bincount(own[held], minlength=k) + coins.laplace(0, 1 / (share * counted), k)
        sums = np.zeros((k, d))
        np.add.at(sums, own[held], X[held] - centers[own[held]])
        sums += coins.laplace(0, math.sqrt(d) * eta / (share * d), (k, d))
        shift = sums / np.maximum(counts, 1.0)[:, None]
        length = np.linalg.norm(shift, axis=1, keepdims=True)
        centers = folded(centers + shift * np.minimum(1.0, eta / np.maximum(length, 1e-12)))
    return centers


def folded(centers: Any) -> Any:
    """Centres reflected at the sides of the box."""
    place = (centers + 1) % 4
    return np.where(place > 2, 4 - place, place) - 1
