"""Mechanisms: frozen parameters, honest events, safe reprs, and errors that name the remedy.

Laws of the draws are in test_random.py. The statistical tests here compare z-values with 6 and
p-values with 1e-8, on fixed seeds: a false alarm in less than one of 1e6 runs on fresh seeds.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import privfit
from privfit._kernels.random import BitSource
from privfit.privacy import mechanisms
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    Mechanism,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)

PACKAGE = Path(privfit.__file__).parent

SELECTIONS = [Exponential(0.5, 3), PermuteAndFlip(0.5, 3), NoisyMax(0.5, 3), TopK(2, 0.5, 3)]
NOISES = [DiscreteLaplace(0.5, 3), DiscreteGaussian(0.25, 3.0)]
ALL = [*SELECTIONS, *NOISES, GammaVector(0.5, 3.0)]

SCORES = np.array([4, 9, 7, -2, 9])
VALUES = {GammaVector: np.array([0.5, -0.25, 3.0])}


def name(mechanism):
    return type(mechanism).__name__


def value_for(mechanism):
    return VALUES.get(type(mechanism), SCORES)


# -------------------------------------------------------------------------- what all have in common


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_parameters_are_frozen_and_compare(mechanism):
    for field in dataclasses.fields(mechanism):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, field.name, 1)
    assert mechanism == dataclasses.replace(mechanism)
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    assert isinstance(mechanism, Mechanism)


@pytest.mark.parametrize(
    ("mechanism", "event"),
    [
        (Exponential(0.5, 3), Event("selection", 0.5, 1)),
        (TopK(7, 0.5, 3), Event("selection", 0.5, 7)),
        (PermuteAndFlip(0.5, 3), Event("pure", 0.5, 1)),
        (NoisyMax(0.5, 3), Event("pure", 0.5, 1)),
        (DiscreteLaplace(0.5, 3), Event("pure", 0.5, 1)),
        (DiscreteGaussian(0.25, 3.0), Event("gaussian", 0.25, 1)),
        (GammaVector(0.5, 3.0), Event("pure", 0.5, 1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_events_say_what_a_call_costs(mechanism, event):
    assert mechanism.event == event


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_a_call_leaves_no_trace_of_the_data(mechanism):
    before = repr(mechanism)
    mechanism(value_for(mechanism), 0)
    assert repr(mechanism) == before
    fields = [f"{f.name}={getattr(mechanism, f.name)!r}" for f in dataclasses.fields(mechanism)]
    assert before == f"{name(mechanism)}({', '.join(fields)})"
    assert set(vars(mechanism)) == {f.name for f in dataclasses.fields(mechanism)}


@pytest.mark.few(4)
@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_a_seed_is_reproducible_and_none_is_not(mechanism):
    value = value_for(mechanism)

    def draws(make):
        rng = make()
        return [np.asarray(mechanism(value, rng)).tolist() for _ in range(60)]

    for make in (lambda: BitSource(3), lambda: np.random.default_rng(3)):
        assert draws(make) == draws(make)
    assert np.array_equal(mechanism(value, 3), mechanism(value, 3))
    assert draws(lambda: None) != draws(lambda: None)  # equal by chance: 1e-20


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_inputs_are_not_modified_and_may_be_read_only(mechanism):
    value = value_for(mechanism).copy()
    value.setflags(write=False)
    expected = mechanism(value.copy(), 1)
    assert np.array_equal(mechanism(value, 1), expected)
    assert np.array_equal(value, value_for(mechanism))
    assert np.array_equal(mechanism(value.tolist(), 1), expected)
    strided = np.repeat(value, 2)[::2]
    assert np.array_equal(mechanism(strided, 1), expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32, Fraction, int])
@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_any_number_will_do_for_epsilon(mechanism, kind):
    """What the checks accept, a call must be able to use: a ledger has charged it by then."""
    first = "mu" if isinstance(mechanism, DiscreteGaussian) else None
    field = first or ("epsilon_each" if isinstance(mechanism, TopK) else "epsilon")
    plain = dataclasses.replace(mechanism, **{field: 1.0}, **(
        {"sensitivity": 8.0} if first else {}))  # fmt: skip
    other = dataclasses.replace(plain, **{field: kind(1)})
    assert np.array_equal(other(value_for(plain), 5), plain(value_for(plain), 5))


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_numpy_ranges_and_narrow_scores(mechanism):
    again = dataclasses.replace(mechanism, range=np.int64(mechanism.range))
    for kind in (np.int8, np.int16, np.uint8, np.uint64, np.int64):
        scores = np.array([4, 9, 7, 2, 9], dtype=kind)
        assert np.array_equal(again(scores, 1), mechanism(scores.astype(np.int64), 1))


# -------------------------------------------------------------------------------------- selections


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_selections_return_plain_indices(mechanism):
    chosen = mechanism(SCORES, 0)
    if isinstance(mechanism, TopK):
        assert chosen.shape == (2,)
        assert chosen.dtype == np.int64
    else:
        assert type(chosen) is int


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_range_zero_is_a_uniform_choice(mechanism):
    blind, source = dataclasses.replace(mechanism, range=0), BitSource(5)
    drawn = np.array([blind(np.array([0, 10**6, -(2**63)]), source) for _ in range(6000)])
    counts = np.bincount(drawn.reshape(6000, -1)[:, -1], minlength=3)
    assert scipy.stats.chisquare(counts).pvalue > 1e-8


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_large_epsilon_finds_the_best(mechanism):
    field = "epsilon_each" if isinstance(mechanism, TopK) else "epsilon"
    sure = dataclasses.replace(mechanism, **{field: 1e4})
    chosen = {tuple(np.atleast_1d(sure([0, 5, 9, -3], seed)).tolist()) for seed in range(20)}
    assert chosen == ({(2, 1)} if isinstance(mechanism, TopK) else {(2,)})


def test_top_k_needs_enough_candidates():
    assert sorted(TopK(5, 1.0, 1)(SCORES, 0).tolist()) == list(range(5))
    for span in (0, 1):
        with pytest.raises(ValueError, match=r"k \(6\) must be at most the number of candidates"):
            TopK(6, 1.0, span)(SCORES, 0)


def test_one_selection_is_the_first_of_many():
    assert [Exponential(0.3, 2)(SCORES, s) for s in range(30)] == [
        TopK(1, 0.3, 2)(SCORES, s)[0] for s in range(30)
    ]
    assert [Exponential(0.3, 2)(SCORES, s) for s in range(30)] == [
        TopK(4, 0.3, 2)(SCORES, s)[0] for s in range(30)
    ]


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_only_the_ratio_of_epsilon_and_range_matters(mechanism):
    field = "epsilon_each" if isinstance(mechanism, TopK) else "epsilon"
    double = dataclasses.replace(mechanism, range=6, **{field: 1.0})
    for seed in range(20):
        assert np.array_equal(mechanism(SCORES, seed), double(SCORES, seed))


# ------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("mechanism", NOISES, ids=name)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)])
def test_shapes_are_kept(mechanism, shape):
    out = mechanism(np.zeros(shape, dtype=np.int32), 0)
    assert out.shape == shape
    assert out.dtype == np.int64


@pytest.mark.parametrize("mechanism", NOISES, ids=name)
def test_noise_does_not_depend_on_the_values_or_their_order(mechanism):
    values = np.arange(24).reshape(4, 6) * 10**12
    noise = mechanism(np.zeros((4, 6), dtype=int), 9)
    assert np.array_equal(mechanism(values, 9) - values, noise)
    assert np.array_equal(mechanism(np.asfortranarray(values), 9) - values, noise)
    assert np.array_equal(mechanism(np.full((4, 6), 1 - 2**62), 9) - (1 - 2**62), noise)


def test_discrete_laplace_has_the_declared_scale():
    noise = DiscreteLaplace(0.5, 40)(np.zeros(200_000, dtype=int), 1)
    q = math.exp(-0.5 / 40)
    mean, error = 2 * q / (1 - q**2), np.abs(noise).std() / math.sqrt(200_000)
    assert abs(np.abs(noise).mean() - mean) < 6 * error


@pytest.mark.parametrize(("mu", "sensitivity"), [(0.25, 3.0), (0.1, 1.0), (1e-3, 7.5), (0.3, 2)])
def test_discrete_gaussian_variance_is_exact(mu, sensitivity):
    variance = DiscreteGaussian(mu, sensitivity).variance
    assert isinstance(variance, Fraction)
    assert variance == Fraction(sensitivity) ** 2 / Fraction(mu) ** 2 + 4


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_discrete_gaussian_variance_does_not_wrap():
    """numpy's integers overflow in silence: 2^32 squared would be 0, and the noise too small."""
    for one in (1.0, 1, np.int64(1)):
        assert DiscreteGaussian(one, np.int64(2**32)).variance == 2**64 + 4


def test_discrete_gaussian_has_the_declared_variance():
    mechanism = DiscreteGaussian(0.1, 1.0)
    noise = mechanism(np.zeros(40_000, dtype=int), 1)
    variance = float(mechanism.variance)  # of the law itself too, to within 1e-100
    assert abs(noise.mean()) < 6 * math.sqrt(variance / 40_000)
    assert abs((noise.astype(float) ** 2).mean() - variance) < 6 * variance * math.sqrt(2 / 40_000)


# ------------------------------------------------------------------------------------ GammaVector


@pytest.mark.slow
@pytest.mark.statistical
def test_gamma_vector_has_its_length_and_direction():
    """Length Gamma(d, sensitivity / epsilon), direction uniform."""
    value, mechanism, source = np.array([1.0, -2.0, 0.5]), GammaVector(0.5, 3.0), BitSource(1)
    noise = np.array([mechanism(value, source) for _ in range(4000)]) - value
    length = np.linalg.norm(noise, axis=1)
    assert scipy.stats.kstest(length, scipy.stats.gamma(3, scale=6.0).cdf).pvalue > 1e-8
    assert abs(length.mean() - 18.0) < 6 * 6 * math.sqrt(3 / 4000)
    # In three dimensions each coordinate of a uniform direction is uniform in [-1, 1].
    for column in (noise / length[:, None]).T:
        assert scipy.stats.kstest(column, scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-8


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-4, 8.0])
def test_gamma_vector_lies_on_its_grid(unit):
    out = GammaVector(1.0, 1.0, unit)(np.array([0.1, 1e3, -7.77]), 2)
    assert out.shape == (3,)
    assert out.dtype == np.float64
    assert np.array_equal(out / unit, np.rint(out / unit))


def test_gamma_vector_rounds_the_real_sum_whatever_bits_were_drawn_first(monkeypatch):
    """Where the first bits do not decide, more are drawn, until the error is below the grid."""
    value, fine = np.array([0.1, -7.77]), 2.0**-20
    exact = GammaVector(1.0, 1.0, fine)(value, BitSource(3))
    seen = []

    def rough(exactly, drawn, unit):
        seen.append(drawn[1])
        return whole_units(exactly, drawn, unit)

    whole_units = mechanisms._whole_units
    monkeypatch.setattr(mechanisms, "_whole_units", rough)
    monkeypatch.setattr(mechanisms, "FIRST_BITS", -20)
    rough_first = GammaVector(1.0, 1.0, fine)(value, BitSource(3))
    assert len(seen) > 1
    assert seen[-1] < fine < seen[0]
    assert np.abs(rough_first - exact).max() < 60  # the same law; e^-30 is the chance of more


@pytest.mark.parametrize("value", [[], [[1.0]], 1.0, [math.nan], [1.0, math.inf]])
def test_gamma_vector_refuses_what_is_no_vector(value):
    with pytest.raises(ValueError, match="value must be a non-empty, finite vector; pass an array"):
        GammaVector(1.0, 1.0)(value, 0)


# ------------------------------------------------------------------------------------ bad arguments

BAD = [0, 0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, True, 1j, [1.0]]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, NoisyMax, DiscreteLaplace])
def test_bad_epsilons_are_refused(kind, bad):
    with pytest.raises(
        ValueError, match=r"^epsilon \(.*\) must be a positive number; pass a budget"
    ):
        kind(bad, 1)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_other_bad_budgets_are_refused(bad):
    with pytest.raises(ValueError, match=r"^epsilon_each \(.*\) must be a positive number; pass a"):
        TopK(1, bad, 1)
    with pytest.raises(
        ValueError, match=r"^epsilon \(.*\) must be a positive number; pass a budget"
    ):
        GammaVector(bad, 1.0)
    with pytest.raises(ValueError, match=r"^mu \(.*\) must be a positive number; pass such"):
        DiscreteGaussian(bad, 1.0)
    for kind in (DiscreteGaussian, GammaVector):
        with pytest.raises(ValueError, match=r"^sensitivity \(.*\) must be a positive number"):
            kind(0.1, bad)
    with pytest.raises(ValueError, match=r"^unit \(.*\) must be a positive number; pass such"):
        GammaVector(0.1, 1.0, bad)


@pytest.mark.parametrize("bad", [-1, 1.0, 0.5, "1", None, True, math.nan], ids=repr)
def test_bad_ranges_are_refused(bad):
    for kind in (Exponential, PermuteAndFlip, NoisyMax, lambda e, r: TopK(1, e, r)):
        with pytest.raises(ValueError, match=r"^range \(.*\) must be a whole number of at least 0"):
            kind(1.0, bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, "1", None, True, math.nan], ids=repr)
def test_bad_counts_and_sensitivities_are_refused(bad):
    with pytest.raises(ValueError, match=r"^k \(.*\) must be a positive whole number; pass k=1"):
        TopK(bad, 1.0, 1)
    with pytest.raises(
        ValueError, match=r"^sensitivity \(.*\) must be a positive whole number; pass the l1"
    ):
        DiscreteLaplace(1.0, bad)


def test_gaussian_noise_must_cover_the_grid():
    DiscreteGaussian(0.25, 1.0)
    with pytest.raises(ValueError, match=r"mu \(0.5\) must be at most sensitivity / sqrt\(12\)"):
        DiscreteGaussian(0.5, 1.0)


@pytest.mark.parametrize(
    "scores",
    [[], [1.5, 2.0], [[1, 2]], 3, ["a"], [True, False], [None], [2**70, 1], [1 + 0j]],
    ids=repr,
)
@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_scores_must_be_a_vector_of_integers(mechanism, scores):
    with pytest.raises(
        ValueError, match=r"^scores \(dtype .*\) must be a non-empty vector of integers; pass obj"
    ):
        mechanism(scores, 0)


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
def test_scores_must_fit_with_a_sign(mechanism):
    with pytest.raises(ValueError, match="scores must fit in 64 bits with a sign; pass int64"):
        mechanism(np.array([1, 2**63], dtype=np.uint64), 0)


@pytest.mark.parametrize("mechanism", NOISES, ids=name)
def test_noise_needs_integers_of_moderate_size(mechanism):
    for values in ([1.0], [True], ["a"], [2**70]):
        with pytest.raises(ValueError, match=r"^values \(dtype .*\) must be integers; pass sums"):
            mechanism(values, 0)
    for value in (2**62, -(2**62), -(2**63)):
        with pytest.raises(ValueError, match=r"^values must be below 2\^62 in size; pass coarser"):
            mechanism([0, value], 0)
    with pytest.raises(ValueError, match=r"^values must be below 2\^62 in size; pass coarser"):
        mechanism(np.array([2**63 + 1], dtype=np.uint64), 0)


@pytest.mark.parametrize(
    ("kind", "size"),
    [(DiscreteLaplace, (1e-16, 1)), (NoisyMax, (1e-16, 1)), (DiscreteGaussian, (1e-16, 1.0)),
     (DiscreteGaussian, (1e-200, 1e200))],
)  # fmt: skip
def test_noise_too_wide_for_64_bits_is_refused_before_any_charge(kind, size):
    with pytest.raises(ValueError, match="noise this wide does not fit in 64 bits; pass a larger"):
        kind(*size)


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_errors_show_no_values(mechanism):
    """A refusal may show types and shapes, never what was computed from records."""
    secret = [123456789.5, 987654321.25]
    value = [secret] if isinstance(mechanism, GammaVector) else secret
    with pytest.raises(ValueError, match="must be") as caught:
        mechanism(value, 0)
    assert not re.search(r"12345|98765", str(caught.value))


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_bad_sources_are_refused(mechanism):
    with pytest.raises(TypeError, match=r"random_state \(str\) must be None, an int, a Generator"):
        mechanism(value_for(mechanism), "seed")


def test_the_base_class_promises_nothing():
    with pytest.raises(NotImplementedError):
        _ = Mechanism().event
    with pytest.raises(NotImplementedError):
        Mechanism()([1], 0)


# ----------------------------------------------------------------------------------- no float noise

FLOAT_NOISE = {"laplace", "gumbel", "normal", "standard_normal", "multivariate_normal", "gamma",
               "exponential", "standard_exponential", "standard_gamma", "logistic", "geometric",
               "standard_cauchy", "poisson", "binomial", "rvs"}  # fmt: skip

# Who may: proposals and random points of a domain, which see no records; and audits, which choose
# directions to look in.
MAY = {
    ("audit/strains.py", None): {"standard_normal"},
    ("clustering/pooled.py", None): {"normal"},  # points of a pool, from released centres
    ("clustering/pooled.py", "Records"): {"standard_exponential"},  # steps of a chain
    ("domains/balls.py", "L1Ball"): {"laplace"},
    ("domains/balls.py", "L2Ball"): {"normal"},
    ("linear/uncertainty.py", "Records"): {"logistic"},  # a loss by that name
    ("runs/spaces/integers.py", "Integers"): {"normal"},
    ("runs/spaces/reals.py", "Reals"): {"normal"},
}


def float_noise(source):
    """(class or None, name) of each call in a Python file to one of numpy's noisy methods."""
    tree = ast.parse(source.read_text())
    owners = {
        id(inner): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for inner in ast.walk(node)
    }
    return {
        (owners.get(id(node)), node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in FLOAT_NOISE
        # scipy.special.gamma and math.gamma are functions, not draws
        and "special" not in ast.unparse(node.func)
    }


@pytest.mark.parametrize("source", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_no_module_draws_float_noise(source):
    name = source.relative_to(PACKAGE).as_posix()
    for owner, method in float_noise(source):
        allowed = MAY.get((name, owner), set()) | MAY.get((name, None), set())
        assert method in allowed, f"{name}: {owner or 'module'} calls {method}"


def test_the_search_for_float_noise_finds_the_one_that_is_there():
    assert float_noise(PACKAGE / "runs/spaces/reals.py") == {("Reals", "normal")}


def test_no_kernel_draws_float_noise():
    for source in (PACKAGE / "_kernels").iterdir():
        if source.suffix in {".pyx", ".pxd", ".h"}:
            found = re.findall(r"\.(\w+)\(", source.read_text())
            assert not FLOAT_NOISE & set(found), source.name
            assert not re.search(
                r"\b(log1p?f?|expf?|drand48)\s*\(.*(rand|word\(\))", source.read_text()
            )
