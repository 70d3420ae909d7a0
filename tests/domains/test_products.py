"""Inner products of records with weights do not depend on other records, nor on their number."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import BernoulliNB, Box, L2Ball

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


@pytest.mark.parametrize("models", [1, 2, 3, 7])
@pytest.mark.parametrize("domain", [
    lambda d: Box(-1, 1, d), lambda d: Box(0.3, 1, d).centred(), lambda d: L2Ball(1.0).bind(d)
], ids=["box", "centred box", "ball"])  # fmt: skip
def test_a_product_does_not_depend_on_the_number_of_records(domain, models):
    """BLAS rounds small tables, and the last rows of others, in other ways."""
    coins = np.random.default_rng(2)
    for d in (3, 8, 13, 37, 64, 257):
        X, W = coins.uniform(-1, 1, (2500, d)), coins.normal(size=(models, d))
        whole = domain(d).products(X, W)
        for n in (1, 2, 3, 6, 7, 100, 1023, 1025, 2499):
            assert (domain(d).products(X[:n], W) == whole[:n]).all(), (d, n)


def test_chances_of_a_record_do_not_depend_on_the_number_of_records():
    coins = np.random.default_rng(3)
    X, y = coins.integers(0, 2, (700, 37)), coins.integers(0, 2, 700)
    model = BernoulliNB(1.0, classes=[0, 1], random_state=0).fit(X, y)
    whole = model.predict_joint_log_proba(X)
    for n in (1, 2, 3, 7, 101, 699):
        assert (model.predict_joint_log_proba(X[:n]) == whole[:n]).all(), n
