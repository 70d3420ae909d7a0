"""Our implementation of a peer finds clusters where there is no noise, and stays in the box."""

from __future__ import annotations

import numpy as np

from bench.peers import fast_lloyd


def test_clusters_are_found_without_noise():
    coins = np.random.default_rng(0)
    middles = np.array([[-0.6, -0.6], [0.6, -0.6], [0.0, 0.7]])
    X = middles[coins.integers(3, size=6000)] + coins.uniform(-0.1, 0.1, (6000, 2))
    found = fast_lloyd.fit(X, 3, 1e6, 3)
    away = np.linalg.norm(found[:, None] - middles, axis=2)
    assert away.min(axis=0).max() < 0.01


def test_centres_are_folded_into_the_box():
    inside = fast_lloyd.folded(np.array([-1.0, 1.25, -1.5, 0.5, 3.5, -7.0]))
    assert inside.tolist() == [-1.0, 0.75, -0.5, 0.5, -0.5, 1.0]
    coins = np.random.default_rng(1)
    found = fast_lloyd.fit(coins.uniform(-1, 1, (50, 4)), 5, 0.01, 1)
    assert found.shape == (5, 4)
    assert (np.abs(found) <= 1).all()
