"""Inner products of records with weights do not depend on the place of a record among others."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import Box

WIDTHS = sorted({*range(2, 140), 256, 257, 1000, 4096, 20_001})


@pytest.mark.parametrize("models", [1, 2, 3, 10])
def test_a_product_does_not_depend_on_the_place_of_its_row(models):
    coins = np.random.default_rng(0)
    for d in WIDTHS:
        rows = 1024 if d < 5000 else 64
        X = np.tile(coins.uniform(-1, 1, d), (rows, 1))
        found = Box(-1, 1, d).products(X, coins.normal(size=(models, d)))
        assert (found == found[0]).all(), d


def test_products_of_blocks_are_those_of_their_records():
    coins = np.random.default_rng(1)
    X, W = coins.uniform(-1, 1, (3000, 36)), coins.normal(size=(2, 36))
    box = Box(-1, 1, 36)
    np.testing.assert_allclose(box.products(X, W), box.rounded(X) @ W.T, rtol=0, atol=1e-12)
    assert box.products(X[:0], W).shape == (0, 2)
