"""Real numbers drawn bit by bit, and exact vectors: their laws, and that more bits agree.

Statistical tests use fixed seeds; on fresh ones each raises a false alarm at most once in 1e8 runs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from privfit._kernels.random import BitSource
from privfit.base import dyadic
from privfit.base.dyadic import Dyadic, FixedMatrix, integers
from privfit.privacy import lazy
from privfit.privacy.lazy import Exponentials, Normals, Uniforms

LAWS = {Uniforms: "uniform", Exponentials: "expon", Normals: "norm"}
every_law = pytest.mark.parametrize("kind", LAWS, ids=lambda kind: kind.__name__)
RARE = 1e-8


@pytest.mark.few(4)
@pytest.mark.statistical
@every_law
@pytest.mark.parametrize("bits", [40, 90])
def test_draws_have_their_law(kind, bits):
    drawn = Dyadic(kind(BitSource(bits), 3000).upto(bits), bits).floats()
    assert scipy.stats.kstest(drawn, LAWS[kind]).pvalue > RARE


@every_law
def test_more_bits_contradict_nothing(kind):
    """In any order of asking; the low bits are those of a coin, too."""
    numbers = kind(BitSource(1), 600)
    told = {bits: numbers.upto(bits) for bits in (3, 100, 48, 64, 201, 60)}
    for fewer in told:
        for more in told:
            if more > fewer:
                sizes = [abs(int(v)) >> (more - fewer) for v in told[more]]
                assert sizes == [abs(int(v)) for v in told[fewer]]
    ones = sum(abs(int(v)) & 1 for v in told[201])
    assert abs(ones - 300) < 6 * math.sqrt(600) / 2


@every_law
def test_trials_that_float64_leaves_open_are_decided_exactly(kind, monkeypatch):
    """With no trial decided by float64 the draws are the same, bit for bit."""
    expected = kind(BitSource(8), 60).upto(90).tolist()
    asked = []

    def counted(*arguments):
        asked.append(1)
        return exactly(*arguments)

    exactly = lazy.is_below
    monkeypatch.setattr(lazy, "is_below", counted)
    monkeypatch.setattr(lazy, "DOUBT", 2.0)
    assert kind(BitSource(8), 60).upto(90).tolist() == expected
    assert bool(asked) == (kind is not Uniforms)


@pytest.mark.statistical
def test_a_fraction_of_an_exponential_number_is_not_quite_uniform(monkeypatch):
    """With two bits as a whole number, what is left has the density of exp(-x / 4) on [0, 1]."""
    monkeypatch.setattr(lazy, "GEOMETRIC_BITS", 2)
    numbers = Exponentials(BitSource(2), 4000)
    drawn = Dyadic(numbers.upto(40), 40).floats()
    assert scipy.stats.kstest(drawn, "expon").pvalue > RARE
    left = np.mod(4 * drawn, 1)
    law = scipy.stats.truncexpon(b=0.25, scale=4.0)
    assert scipy.stats.kstest(left, law.cdf).pvalue > RARE


# ------------------------------------------------------------------------------------ exact vectors

finite = st.floats(-(2.0**80), 2.0**80, allow_subnormal=False)


def fractions_of(vector):
    return [Fraction(int(v), 2**vector.bits) for v in vector.whole]


@given(st.lists(finite, min_size=1, max_size=5), finite, st.integers(-5, 120))
def test_exact_vectors_are_never_rounded(values, factor, bits):
    vector = Dyadic.of(values)
    exact = [Fraction(v) for v in values]
    assert fractions_of(vector) == exact
    assert fractions_of(vector + vector.times(factor)) == [v + v * Fraction(factor) for v in exact]
    assert fractions_of(vector - vector) == [0] * len(values)
    assert vector.times(factor).floats().tolist() == [float(v * Fraction(factor)) for v in exact]
    near = [Fraction(int(v)) / Fraction(2) ** bits for v in vector.rounded(bits)]
    assert all(abs(x - y) * 2 <= Fraction(2) ** -bits for x, y in zip(near, exact, strict=True))
    assert vector.floors(0.3) == [math.floor(v / Fraction(0.3)) for v in exact]


@pytest.mark.parametrize("few", [0, dyadic.FEW])
def test_products_with_matrices_are_exact(few, rng, monkeypatch):
    """By digits and one by one, with empty rows anywhere."""
    monkeypatch.setattr(dyadic, "FEW", few)
    for empty in ([], [0], [6], [2, 3], [5, 6], list(range(7))) * 4:
        entries = np.rint(rng.uniform(-1, 1, (7, 9)) * 2.0**47) * 2.0 ** (rng.integers(0, 14) - 47)
        entries[rng.random((7, 9)) < 0.4] = 0
        entries[empty] = 0
        matrix = FixedMatrix(scipy.sparse.csr_array(entries), 47)
        whole = [int(x) << int(s) for x, s in zip(rng.integers(-9, 9, 9), rng.integers(0, 200, 9),
                                                  strict=True)]  # fmt: skip
        vector = Dyadic(integers(whole), 100)
        exact = [sum(Fraction(a) * v for a, v in zip(row, fractions_of(vector), strict=True))
                 for row in entries.tolist()]  # fmt: skip
        assert fractions_of(matrix @ vector) == exact
        assert np.array_equal(matrix.T.matrix.toarray(), entries.T)


def test_a_matrix_off_its_grid_is_refused():
    for entry in (0.1, 2.0**20):
        with pytest.raises(ValueError, match=r"matrix must hold multiples of 2\^-47 below 2\^15"):
            FixedMatrix(scipy.sparse.csr_array([[entry]]), 47)
