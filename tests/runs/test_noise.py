"""The noise of an answer: compact forms keep errors, and files keep all of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse

from privfit.runs import Spread
from privfit.runs.noise import MOST, WIDEST


def rows_of(k: int, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(k, n))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 5), (5, 3), (40, 40), (180, 180)])
def test_small_answers_keep_all_of_it(k, n):
    rows, directions = rows_of(k, n), rows_of(7, n, 1)
    spread = Spread.of(rows)
    assert not spread.rest.any()
    np.testing.assert_allclose(spread.errors, np.sqrt((rows**2).sum(axis=0)), rtol=1e-4)
    found = np.sqrt(((rows @ directions.T) ** 2).sum(axis=0))
    np.testing.assert_allclose(spread.along(directions), found, rtol=1e-3)


@pytest.mark.parametrize("n", [181, 400])
def test_wide_answers_keep_errors_and_the_leading_directions(n):
    rows = rows_of(n, n) * np.geomspace(1, 1e-4, n)[:, None]
    spread = Spread.of(rows)
    assert spread.factor.shape == (MOST // n, n)
    np.testing.assert_allclose(spread.errors, np.sqrt((rows**2).sum(axis=0)), rtol=1e-3)
    leading = np.linalg.svd(rows)[2][:3]
    found = np.sqrt(((rows @ leading.T) ** 2).sum(axis=0))
    # What is left counts as independent, so it is added in these directions, too; never less.
    most = np.sqrt(found**2 + spread.rest.max() ** 2)
    rounding = 1e-4 * found
    assert (found - rounding <= spread.along(leading)).all()
    assert (spread.along(leading) <= most + rounding).all()


def test_the_widest_answers_keep_errors():
    rows = scipy.sparse.csr_array(scipy.sparse.eye(WIDEST + 1) * 3.0)
    spread = Spread.of(rows)
    assert (len(spread.factor), set(spread.errors.tolist())) == (0, {3.0})


def test_sparse_rows_and_directions_are_the_same():
    rows, directions = rows_of(4, 6), rows_of(9, 6, 1)
    sparse = Spread.of(scipy.sparse.csr_array(rows))
    np.testing.assert_array_equal(sparse.factor, Spread.of(rows).factor)
    found = sparse.along(scipy.sparse.csr_array(directions))
    np.testing.assert_allclose(found, sparse.along(directions), rtol=1e-12)
    assert sparse.along(np.zeros((0, 6))).shape == (0,)


@pytest.mark.parametrize("n", [1, 6, 200])
def test_a_file_keeps_every_bit(n):
    spread = Spread.of(rows_of(n, n)).times(-0.7)
    again = Spread.from_dict(json.loads(json.dumps(spread.to_dict())), n)
    np.testing.assert_array_equal(again.factor, spread.factor)
    np.testing.assert_array_equal(again.rest, spread.rest)


def test_numbers_have_five_digits_whatever_their_size():
    spread = Spread.of(np.diag([1 / 3, 1e9 / 3, 1e-9 / 3, 0.0]))
    assert np.abs(np.diag(spread.factor)).tolist() == [0.33333, 333330000.0, 3.3333e-10, 0.0]


def test_the_noise_of_a_multiple_is_as_much_longer():
    spread = Spread.of(rows_of(3, 3))
    np.testing.assert_allclose(spread.times(-2.0).errors, 2 * spread.errors, rtol=1e-4)
