"""Feature selection: exact counts, exact sensitivities, audits, and what was published wrongly."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any
from unittest import mock

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from makers.binary_tables import FreeGrant, World, count_by_hand, paid_by, sample_by_hand
from makers.cases import scikit_learn_checks
from makers.raises import messages_of, raises_in
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import privfit
from privfit import (
    AboveThreshold,
    BernoulliNB,
    Budget,
    BudgetError,
    ClusteredCounts,
    DiscreteGaussian,
    DiscreteLaplace,
    Ledger,
    NoisyScores,
    Peeling,
    PrivacyLeakWarning,
    Release,
    SelectFeatures,
    SparseVector,
    TopK,
)
from privfit._kernels.random import BitSource
from privfit._kernels.threads import has_openmp
from privfit.audit import audit_outcomes, audit_runs, audit_scores
from privfit.features import selection
from privfit.features.scores import GAIN_UNITS, SCORES, _phi, psi
from privfit.features.selection import FeatureScores, Split, best_of, check_selected
from privfit.privacy.budget_noise import CountNoise
from privfit.privacy.neighbours import Neighbours
from privfit.records.binary import BinaryRecords, ClassCounts, bound_ones, count_sensitivity
from privfit.records.rows import KernelCalls

ADJACENCIES = ("add_remove", "replace")
CERTAIN = 1 - 1e-6
COUNTED = ("total_count", "difference_count", "purity_index")

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def table(n: int = 300, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Records with two features of class 1, at columns 3 and 7."""
    coins = np.random.default_rng(seed)
    y = coins.integers(0, 2, n)
    X = (coins.random((n, d)) < 0.15).astype(np.int8)
    X[:, 3] |= (y == 1) & (coins.random(n) < 0.9)
    X[:, 7] |= (y == 1) & (coins.random(n) < 0.7)
    return X, y


def problem(
    X: Any, y: Any, score: str = "purity_index", ones: int | None = None,
    adjacency: str = "add_remove", bound: int | None = None,
) -> FeatureScores:  # fmt: skip
    records = BinaryRecords.of(X, y, 2)
    if adjacency == "replace":
        bound = records.n_records
    return FeatureScores(records, score, bound_ones(ones, X.shape[1]), Neighbours(adjacency), bound)


# ---------------------------------------------------------------------------------------- counting


FORMS = {
    "dense": lambda X: X,
    "floats": lambda X: X.astype(np.float32),
    "bools": lambda X: X.astype(bool),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_array,
    "old csr": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_counts_are_those_by_hand_in_every_form(form, classes, rng):
    X = (rng.random((137, 9)) < 0.3).astype(np.int8)
    X[5], X[6] = 0, 1
    y = rng.integers(0, classes, 137)
    ours, naive = BinaryRecords.of(form(X), y, classes).counts(), count_by_hand(X, y, classes)
    assert np.array_equal(ours.ones, naive.ones)
    assert np.array_equal(ours.sizes, naive.sizes)
    assert ours.ones.dtype == ours.sizes.dtype == np.int64


def test_a_feature_is_present_where_a_number_is_positive():
    X = np.array([[-1.0, 0.0, 0.5], [2.0, -0.0, -3.0]])
    for form in (X, sp.csr_array(X)):
        assert BinaryRecords.of(form, [0, 0], 1).counts().ones.tolist() == [[1, 0, 1]]


def test_entries_that_a_sparse_record_repeats_are_one_feature():
    repeated = sp.csr_array(
        (np.array([1, 1, 2, -2]), np.array([1, 1, 0, 0]), np.array([0, 4])), shape=(1, 3)
    )
    before = repeated.indices.copy()
    assert BinaryRecords.of(repeated, [0], 1).counts().ones.tolist() == [[0, 1, 0]]
    assert np.array_equal(repeated.indices, before)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
def test_threads_and_the_order_of_records_do_not_matter(n, rng, monkeypatch):
    monkeypatch.setattr(KernelCalls, "thread_work", -1.0)
    monkeypatch.setattr(KernelCalls, "patient_work", -1.0)
    X = sp.csr_array(rng.random((n, 40)) < 0.2)
    y = rng.integers(0, 2, n)
    one = BinaryRecords.of(X, y, 2, n_threads=1).counts()
    order = rng.permutation(n)
    for threads in (1, 2, 7) if has_openmp() else (1,):
        other = BinaryRecords.of(X[order], y[order], 2, threads).counts()
        assert np.array_equal(one.ones, other.ones)
        assert np.array_equal(one.sizes, other.sizes)


def test_counts_of_two_tables_add_up(rng):
    X, y = rng.random((50, 6)) < 0.4, rng.integers(0, 2, 50)
    parts = [BinaryRecords.of(X[part], y[part], 2).counts() for part in (slice(20), slice(20, 50))]
    whole = BinaryRecords.of(X, y, 2).counts()
    assert np.array_equal(whole.ones, parts[0].ones + parts[1].ones)


# ---------------------------------------------------------------------------------------- sampling


def rows_of(records: BinaryRecords) -> list[list[int]]:
    rows = records.sums.whole("this test")
    return [part.tolist() for part in np.split(rows.column, rows.start[1:-1])]


def test_a_record_keeps_at_most_so_many_of_its_own_features(rng):
    X = (rng.random((400, 30)) < 0.3).astype(np.int8)
    X[0], X[1] = 0, 1
    whole = BinaryRecords.of(X, np.zeros(400), 1)
    for most in (1, 5, 29, 30):
        for kept, row in zip(rows_of(whole.at_most(most, 99)), rows_of(whole), strict=True):
            assert len(kept) == min(most, len(row))
            assert set(kept) <= set(row)
            assert len(row) > most or kept == row


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("key", [0, 2**64 - 1, 123456789])
def test_samples_are_those_by_hand(key, threads, rng, monkeypatch):
    monkeypatch.setattr(KernelCalls, "thread_work", -1.0)
    monkeypatch.setattr(KernelCalls, "patient_work", -1.0)
    X = rng.random((60, 50)) < rng.random((60, 1))
    whole = BinaryRecords.of(X, np.zeros(60), 1, threads)
    for most in (1, 2, 7, 49):
        naive = [sample_by_hand(row, most, key) for row in rows_of(whole)]
        assert rows_of(whole.at_most(most, key)) == naive


def test_a_sample_depends_on_the_record_and_the_key_alone(rng):
    X = (rng.random((200, 25)) < 0.5).astype(np.int8)
    y = rng.integers(0, 2, 200)
    kept = rows_of(BinaryRecords.of(X, y, 2).at_most(4, 7))
    order = rng.permutation(200)
    moved = rows_of(BinaryRecords.of(X[order], 1 - y[order], 2).at_most(4, 7))
    assert moved == [kept[i] for i in order]
    alone = [rows_of(BinaryRecords.of(X[i : i + 1], [0], 1).at_most(4, 7))[0] for i in range(200)]
    assert alone == kept
    assert rows_of(BinaryRecords.of(X, y, 2).at_most(4, 8)) != kept


def test_every_feature_of_a_record_is_kept_equally_often():
    """Bounds of 6 standard deviations: a false alarm in 1e-8 of runs, and the keys are fixed."""
    records, keys, kept = BinaryRecords.of(np.ones((1, 10)), [0], 1), 6000, np.zeros(10)
    together = 0
    for key in range(keys):
        row = rows_of(records.at_most(3, key))[0]
        kept[row] += 1
        together += {2, 9} <= set(row)
    for count, p in ((kept, 0.3), (together, 3 * 2 / (10 * 9))):
        assert np.all(np.abs(count - keys * p) < 6 * math.sqrt(keys * p * (1 - p)))


# ------------------------------------------------------------------- sensitivities, by enumeration


def by_hand(score: str, counts: ClassCounts) -> np.ndarray:
    """The definitions; the gain in nats."""
    x, n = counts.ones, counts.sizes
    if score == "total_count":
        return x[0] + x[1]
    if score == "difference_count":
        return np.abs(x[1] - x[0])
    with_it, without = np.abs(x[1] - x[0]), np.abs((n[1] - x[1]) - (n[0] - x[0]))
    if score == "purity_index":
        return np.maximum(with_it, without)
    size = int(n.sum())
    gains = []
    for j in range(x.shape[1]):
        gain = mpmath.mpf(0)
        for label in (0, 1):
            for count, margin in ((x[label, j], x[:, j].sum()),
                                  (n[label] - x[label, j], size - x[:, j].sum())):  # fmt: skip
                if count:
                    expected = mpmath.mpf(int(margin)) * int(n[label]) / size
                    gain += int(count) * mpmath.log(int(count) / expected)
        gains.append(float(gain))
    return np.array(gains)


@pytest.mark.few(4)
@pytest.mark.parametrize("score", COUNTED)
@every_adjacency
def test_sensitivity_and_range_of_counted_scores_are_exact(score, adjacency):
    """All data sets of 3 records (of 3 and 4) with 3 features, at most 2 ones."""
    world, how = World.of(3, 2, 3, adjacency), SCORES[score]
    for counts in world.counts[::50]:
        assert np.array_equal(how.integers(counts, None), by_hand(score, counts))
    change = world.changes(lambda counts: how.integers(counts, None))
    assert np.abs(change).max() == how.sensitivity(Neighbours(adjacency), None)
    assert (change.max(axis=1) - change.min(axis=1)).max() == how.range(Neighbours(adjacency), None)


@pytest.mark.few(13)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("ones", [1, 2, 3])
@every_adjacency
def test_the_spread_of_a_statistic_is_exact(score, ones, adjacency):
    world, how = World.of(3, ones, 2, adjacency), SCORES[score]
    change = world.changes(how.statistic)
    l1, l2_squared = how.spread(ones, 3, Neighbours(adjacency))
    assert np.square(change).sum(axis=1).max() == l2_squared
    if score != "difference_count" or adjacency == "add_remove" or ones == 3:
        assert np.abs(change).sum(axis=1).max() == l1
    assert np.abs(change).sum(axis=1).max() <= l1


@pytest.mark.few(8)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("ones", [1, 2, 3])
@every_adjacency
def test_published_noise_covers_what_a_record_changes(score, ones, adjacency):
    """S(Q) Delta(Q), twice if replaced: enough on all small data sets, exact for two scores."""
    world, how = World.of(3, ones, 2, adjacency), SCORES[score]
    bound = 2 if adjacency == "replace" else 3
    change = np.abs(world.changes(lambda counts: how.integers(counts, bound))).sum(axis=1).max()
    X, y = np.ones((bound, 3), dtype=int), np.ones(bound, dtype=int)
    noise = selection.published_noise(problem(X, y, score, ones, adjacency, bound), Budget(1.0))
    assert change <= noise.sensitivity
    if score == "total_count":
        assert noise.sensitivity == (2 if adjacency == "replace" else 1) * ones
    elif score == "purity_index":
        assert noise.sensitivity == (2 if adjacency == "replace" else 1) * 3 == change


def test_published_noise_of_the_purity_index_is_that_of_all_features():
    X, y = table()
    noise = selection.published_noise(problem(X, y, ones=2), Budget(0.5))
    assert noise == DiscreteLaplace(0.5, X.shape[1])
    assert problem(X, y, ones=2).noise(Budget(0.5)).scale == pytest.approx(3 / 0.5)  # ours


@pytest.mark.parametrize("ones", [1, 2])
@every_adjacency
def test_the_spread_of_all_counts_is_exact(ones, adjacency):
    change = World.of(3, ones, 2, adjacency).changes(
        lambda counts: np.append(counts.ones.ravel(), counts.sizes)
    )
    assert np.abs(change).sum(axis=1).max() == count_sensitivity(ones, Neighbours(adjacency))
    assert np.square(change).sum(axis=1).max() == count_sensitivity(ones, Neighbours(adjacency))


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@every_adjacency
def test_sensitivity_and_range_of_information_gain_are_bounds(n, adjacency):
    world, how = World.of(2, 2, n, adjacency), SCORES["information_gain"]
    bounds = [n] if adjacency == "replace" else [1, n, n + 1, 50, None]
    for bound in bounds:
        change = world.changes(lambda counts, bound=bound: how.integers(counts, bound))
        assert np.abs(change).max() <= how.sensitivity(Neighbours(adjacency), bound)
        assert (change.max(axis=1) - change.min(axis=1)).max() <= how.range(
            Neighbours(adjacency), bound
        )


@every_adjacency
def test_the_range_of_information_gain_is_reached(adjacency):
    """psi(m), or twice psi(m), but for the rounding: one feature gains all, the other nothing."""
    m = 999
    copies = np.zeros((m, 2), dtype=np.int8)
    new, how = np.array([[1, 0]], dtype=np.int8), SCORES["information_gain"]

    def gains(X: np.ndarray, y: Any) -> np.ndarray:
        return how.integers(BinaryRecords.of(X, y, 2).counts(), m + 1)

    labels = [0] * m
    larger = gains(np.vstack([copies, new]), [*labels, 1])
    smaller = gains(copies, labels)
    most = (m + 1) * math.log(m + 1) - m * math.log(m)
    change = (larger - smaller) / GAIN_UNITS
    assert change[0] == pytest.approx(most, abs=0.02)
    assert change[1] == pytest.approx(0, abs=0.02)
    other = gains(np.vstack([copies, new[:, ::-1]]), [*labels, 1])
    replaced = (larger - other) / GAIN_UNITS
    assert replaced[0] - replaced[1] == pytest.approx(2 * most, abs=0.04)
    least = {"add_remove": most, "replace": 2 * most}[adjacency] * GAIN_UNITS
    assert least < how.range(Neighbours(adjacency), m + 1) < 1.03 * least


def test_gains_are_the_mutual_information_in_fixed_units(rng):
    counts = BinaryRecords.of(rng.random((500, 8)) < 0.4, rng.integers(0, 2, 500), 2).counts()
    exact = by_hand("information_gain", counts)
    how = SCORES["information_gain"]
    assert np.abs(how.integers(counts, 500) / GAIN_UNITS - exact).max() < 5 / GAIN_UNITS
    assert np.allclose(how.of(counts.ones, counts.sizes), exact, atol=1e-9)
    assert np.allclose(how.of_noisy(how.statistic(counts).astype(float)), exact, atol=1e-9)


def test_rounded_terms_of_the_gain_are_as_near_as_the_proof_needs(rng):
    sizes = [0, 1, 2, 3, 2**31 - 1, *rng.integers(4, 2**31, 300).tolist()]
    for m, ours in zip(sizes, _phi(np.array(sizes)).tolist(), strict=True):
        true = GAIN_UNITS * m * mpmath.log(m) if m else 0
        assert abs(ours - true) <= 0.55


def test_a_table_larger_than_declared_is_scaled_and_not_refused():
    X, y = table(200)
    counts = BinaryRecords.of(X, y, 2).counts()
    how = SCORES["information_gain"]
    whole, scaled = how.integers(counts, 200), how.integers(counts, 50)
    ratio = psi(50) / psi(200)
    assert np.abs(scaled - ratio * whole).max() <= 0.5
    assert np.array_equal(how.integers(counts, None), whole)


def test_psi_is_the_difference_of_m_ln_m():
    with mpmath.workdps(40):
        for m in (1, 2, 10, 10**6, 2**31 - 1):
            true = (m + 1) * mpmath.log(m + 1) - m * mpmath.log(m)
            assert psi(m) == pytest.approx(float(true), rel=1e-14)
    assert psi(0) == 0


# --------------------------------------------------------------------------- audits of what we ship


@pytest.mark.few(1)
@pytest.mark.parametrize("score", SCORES)
@every_adjacency
def test_peeling_keeps_its_promise_on_all_small_data_sets(score, adjacency):
    """White box: exact probabilities, every pair of neighbours; half the range must fail."""
    n = 3
    world = World.of(3, 2, n, adjacency)
    how = SCORES[score]
    bound = n if adjacency == "replace" else n + 1
    scores = [how.integers(counts, bound) for counts in world.counts]
    for k in (1, 2):
        right = TopK(k, 0.5, how.range(Neighbours(adjacency), bound))
        assert audit_scores(scores, world.pairs.tolist(), right).passes()
    if score in COUNTED:
        wrong = TopK(1, 0.5, 1) if right.range > 1 else TopK(1, 1.0, 1)
        assert not audit_scores(scores, world.pairs.tolist(), wrong).passes(0.5)


def tail(m: np.ndarray, rate: float) -> np.ndarray:
    """P(v >= m) of discrete Laplace noise."""
    q = math.exp(-rate)
    high = np.exp(-rate * np.maximum(m, 0)) / (1 + q)
    return np.where(m >= 1, high, 1 - np.exp(-rate * np.maximum(1 - m, 0)) / (1 + q))


def passing_probability(
    scores: Any, passed: set[int], most: int, threshold: int, rates: tuple[float, float]
) -> float:
    """P(exactly these pass) of a sparse vector, summed over the threshold's noise."""
    z = np.arange(-600, 601)
    q = math.exp(-rates[0])
    weight = (1 - q) / (1 + q) * np.exp(-rates[0] * np.abs(z))
    for i, score in enumerate(scores):
        above = tail(threshold + z - score, rates[1])
        weight = weight * (above if i in passed else 1 - above)
        if i in passed and len([j for j in passed if j <= i]) == most:
            break
    return float(weight.sum())


ANSWERS = [(set(), 1), ({0}, 1), ({1}, 1), ({2}, 1), ({0, 1}, 2), ({0, 2}, 2), ({1, 2}, 2)]


@pytest.mark.few(2)
@pytest.mark.parametrize("score", COUNTED)
@every_adjacency
def test_a_sparse_vector_keeps_its_promise_on_all_small_data_sets(score, adjacency):
    """White box: probabilities by summation, every pair of neighbours."""
    world, how = World.of(3, 2, 2, adjacency), SCORES[score]
    scores = [tuple(how.integers(counts, None).tolist()) for counts in world.counts]
    pairs = {(scores[i], scores[j]) for i, j in world.pairs}
    for most in (1, 2):
        mechanism = AboveThreshold(
            1.0,
            most,
            2,
            how.sensitivity(Neighbours(adjacency), None),
            how.range(Neighbours(adjacency), None),
            0.4,
        )
        rates = tuple(map(float, mechanism._rates()))
        for passed, least in ANSWERS:
            if len(passed) > most or (passed and least > most):
                continue
            known = {s: passing_probability(s, passed, most, 2, rates) for s in set(scores)}
            worst = max(abs(math.log(known[a] / known[b])) for a, b in pairs)
            assert worst <= 1.0 + 1e-9


@pytest.mark.slow
def test_a_sparse_vector_draws_from_the_distribution_of_the_proof():
    """Bounds of 6 standard deviations at a fixed seed: a false alarm in 1e-8 of runs."""
    mechanism, runs = AboveThreshold(2.0, 2, 3, 1, 2, 0.5), 20_000
    rates, source = tuple(map(float, mechanism._rates())), BitSource(4)
    scores = np.array([2, 4, 0])
    drawn = [tuple(mechanism(scores, source).tolist()) for _ in range(runs)]
    for passed in ((), (0,), (1,), (0, 1), (1, 2)):
        p = passing_probability(scores, set(passed), 2, 3, rates)
        assert abs(drawn.count(passed) - runs * p) < 6 * math.sqrt(runs * p * (1 - p))


# Total counts 11 and 10, and, with one more record, 11 and 11.
COUNTEREXAMPLE = np.array([[1, 1]] * 10 + [[1, 0]])
NEIGHBOUR = np.vstack([COUNTEREXAMPLE, [[0, 1]]])
SHIPPED = {
    "threshold": (NoisyScores(threshold=10.5), 0.0),
    "top": (NoisyScores(k=1), 0.0),
    "gaussian": (NoisyScores(threshold=10.5), 1e-3),
    "peeling": (Peeling(k=1), 0.0),
    "sparse vector": (SparseVector(k=2, threshold=10.5), 0.0),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("settings", "delta"), SHIPPED.values(), ids=SHIPPED)
@pytest.mark.parametrize("score", ["total_count", "purity_index"])
def test_the_counterexample_does_not_break_what_is_shipped(settings, delta, score):
    """Black box, whole methods: certified epsilons stay below the promise."""

    def run(asked: FeatureScores, source: Any) -> Any:
        chosen = settings(asked, paid_by(FreeGrant(1.0, delta), source))
        return tuple(sorted(chosen.features.tolist()))

    first, second = (problem(X, np.ones(len(X), dtype=int), score, 2)
                     for X in (COUNTEREXAMPLE, NEIGHBOUR))  # fmt: skip
    audit = audit_runs(run, first, second, runs=2000, confidence=CERTAIN, delta=delta, rng=3)
    assert audit.lower_bound <= 1.0


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_on_counts_passes_an_audit_under_replacement():
    """A record that keeps its features and changes its class moves every difference by two."""
    asked = [problem(np.ones((6, 2)), y, "purity_index", 2, "replace")
             for y in ([1] * 3 + [0] * 3, [1] * 4 + [0] * 2)]  # fmt: skip
    statistics = [one.how.statistic(one.counts(BitSource(0))) for one in asked]

    def certified(noise: Any) -> float:
        return audit_runs(noise, *statistics, runs=10_000, confidence=CERTAIN, rng=5).lower_bound

    assert 0.3 < certified(asked[0].noise(Budget(1.0)).mechanism) <= 1.0
    assert certified(DiscreteLaplace(1.0, 2)) > 1.0  # sensitivity s instead of 2 (s + 1)


# ------------------------------------------------------------------- test-only copies of what leaks


def laplace(coins: np.random.Generator, shape: Any, scale: float) -> np.ndarray:
    return coins.laplace(0, scale, shape)


def test_threshold_testing_as_published_leaks_and_the_audit_sees_it():
    """One noisy threshold, true scores: equal scores always fare alike."""
    coins, runs = np.random.default_rng(1), 20_000

    def published(X: np.ndarray) -> list[tuple[bool, ...]]:
        thresholds = 10.5 + laplace(coins, runs, 1.0)
        return [tuple(row) for row in (X.sum(axis=0) > thresholds[:, None]).tolist()]

    first, second = published(COUNTEREXAMPLE), published(NEIGHBOUR)
    assert (True, False) not in second
    share = first.count((True, False)) / runs
    assert share == pytest.approx(1 - math.exp(-1 / 2), abs=6 * 0.5 / math.sqrt(runs))
    assert audit_outcomes(first, second, confidence=CERTAIN).lower_bound > 4.0


def test_cluster_selection_as_published_leaks_and_the_audit_sees_it():
    """True counts assigned to noisy centres: equal features are never parted."""
    coins, runs = np.random.default_rng(2), 20_000

    def published(X: np.ndarray) -> list[tuple[int, ...]]:
        counts = X.sum(axis=0)
        centers = np.array([10.0, 11.0]) + laplace(coins, (runs, 2), 2.0)
        nearest = np.abs(counts[None, :, None] - centers[:, None, :]).argmin(axis=2)
        return [tuple(row) for row in nearest.tolist()]

    found = audit_outcomes(published(COUNTEREXAMPLE), published(NEIGHBOUR), confidence=CERTAIN)
    assert found.lower_bound > 2.0


def sparse_vector_runs(
    scores: np.ndarray, epsilon: float, factor: float, runs: int, coins: np.random.Generator
) -> np.ndarray:
    """Which score passed first, c = 1, threshold 0: noise of `factor` / (epsilon / 2) on scores."""

    def noise(rate: float, shape: Any) -> np.ndarray:
        q = 1 - math.exp(-rate)
        return coins.geometric(q, shape) - coins.geometric(q, shape)

    shift = noise(epsilon / 2, runs)
    first = np.full(runs, -1)
    for i in range(len(scores) - 1, -1, -1):
        first[scores[i] + noise(epsilon / 2 / factor, runs) >= shift] = i
    return first


@pytest.mark.slow
def test_sparse_vector_with_the_published_constants_leaks_and_the_audit_sees_it():
    """Lap(c S / epsilon_2) on scores that may rise or fall costs 1.5 epsilon; twice that is right.

    Twenty scores rise by one and one falls: the answer "the last alone" is the worst.
    """
    D, neighbour = np.array([0] * 20 + [1]), np.array([1] * 20 + [0])
    epsilon, runs, coins = 2.0, 500_000, np.random.default_rng(6)

    def loss(factor: float) -> float:
        rates = (epsilon / 2, epsilon / 2 / factor)
        return math.log(passing_probability(D, {20}, 1, 0, rates)
                        / passing_probability(neighbour, {20}, 1, 0, rates))  # fmt: skip

    assert loss(1.0) == pytest.approx(1.5 * epsilon, rel=1e-6)
    assert loss(2.0) <= epsilon

    def certified(factor: float) -> float:
        outcomes = (sparse_vector_runs(s, epsilon, factor, runs, coins) for s in (D, neighbour))
        last_alone = [(drawn == 20).tolist() for drawn in outcomes]
        return audit_outcomes(*last_alone, confidence=CERTAIN).lower_bound

    assert certified(1.0) > epsilon
    assert certified(2.0) <= epsilon


# ----------------------------------------------------------------------------------- the rule, auto


@every_adjacency
@pytest.mark.parametrize(("ones", "k", "name"), [(5, 6, "noisy"), (6, 6, "peeling"),
                                                 (7, 6, "peeling"), (1, 2, "noisy")])  # fmt: skip
def test_auto_is_laplace_exactly_if_ones_are_fewer_than_features_wanted(ones, k, name, adjacency):
    X, y = table(50, 40)
    asked = problem(X, y, "total_count", ones, adjacency)
    assert best_of(asked, k, Budget(1.0))[0] == name
    assert best_of(asked, k, Budget(0.01))[0] == name  # the size of the budget does not matter


@pytest.mark.few(2)
@pytest.mark.parametrize("score", SCORES)
def test_auto_takes_the_smaller_deviation_if_delta_is_positive(score):
    X, y = table(50, 40)
    for ones in (1, 4, 40):
        asked = problem(X, y, score, ones)
        names = []
        for k in (1, 2, 4, 8, 16, 40):
            names.append(best_of(asked, k, Budget(1.0, 1e-6))[0])
        assert names == sorted(names, reverse=True)  # peeling up to some k, then Gaussian noise
    asked = problem(X, y, "total_count", 4)
    deviation = asked.noise(Budget(1.0, 1e-6)).scale
    for k in (1, 3, 5, 30):
        each = Peeling(k).mechanism(asked, Budget(1.0, 1e-6)).epsilon_each
        smaller = deviation < math.pi / math.sqrt(6) / each
        assert (best_of(asked, k, Budget(1.0, 1e-6))[0] == "noisy") == smaller


def test_the_public_rule_looks_at_no_record():
    X, y = table(50, 40)
    for score in SCORES:
        one, other = (problem(data, y, score, 6, bound=100) for data in (X, 1 - X))
        assert best_of(one, 6, Budget(1.0)) == best_of(other, 6, Budget(1.0))


def test_noise_of_counts_is_calibrated_and_fine_enough():
    pure = CountNoise.of(Budget(0.5), 21, 21)
    assert pure.mechanism == DiscreteLaplace(0.5, 21)
    assert pure.scale == 42
    for epsilon in (0.01, 1.0, 50.0):
        noise = CountNoise.of(Budget(epsilon, 1e-6), 40, 21)
        assert isinstance(noise.mechanism, DiscreteGaussian)
        assert noise.mechanism.sensitivity >= noise.units * math.sqrt(21)
        assert noise.scale * noise.mechanism.mu == pytest.approx(math.sqrt(21), rel=0.02)


def chance_of_the_last(scores: np.ndarray, epsilon: float, passing: int) -> float:
    """That NoisyCut passes the last `passing` scores and no other; all noise discrete."""
    noise = np.arange(-300, 301)
    rate = epsilon / 2  # of the threshold's noise and of each score's
    weights = np.exp(-rate * np.abs(noise)) * math.tanh(rate / 2)

    def passes(score: int) -> np.ndarray:
        k = noise - score
        tail = np.exp(-rate * np.abs(k)) / (1 + math.exp(-rate))
        return np.where(k > 0, tail, 1 - tail * math.exp(-rate))

    failed = np.prod([1 - passes(s) for s in scores[:-passing]], axis=0)
    passed = np.prod([passes(s) for s in scores[-passing:]], axis=0)
    return float(weights @ (failed * passed))


def test_noisy_cut_costs_more_with_every_answer():
    """One record lowers half of the scores and raises the others: no epsilon covers all answers."""
    losses = []
    for m in (1, 2, 4, 8):
        before, after = np.repeat([0, 1], m), np.repeat([1, 0], m)
        losses.append(math.log(chance_of_the_last(before, 1.0, m)
                               / chance_of_the_last(after, 1.0, m)))  # fmt: skip
    assert losses[0] <= 1.0
    assert losses[2] > 1.0  # eight answers cost more than was promised
    assert (np.diff(losses) > 0.2).all()


def test_a_feature_that_changes_its_cluster_takes_all_of_its_counts_along():
    """One record with r = 1 one: published are 1 for sizes of clusters and r for sums of counts."""
    centers = np.array([5.0, 16.0])

    def sizes_and_sums(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = np.abs(counts[:, None] - centers).argmin(axis=1) == np.arange(2)[:, None]
        return own.sum(axis=1), own @ counts

    before, after = (sizes_and_sums(np.array([10 + more, 3, 20])) for more in (0, 1))
    assert np.abs(after[0] - before[0]).sum() == 2
    assert np.abs(after[1] - before[1]).sum() == 10 + 11


def test_budgets_of_the_paper():
    whole = 0.8
    assert selection.published_split("noisy", whole) == Split(0.4, 0.4, 10)
    assert selection.published_split(NoisyScores(k=3), whole) == Split(0.4, 0.4, 10)
    clusters = selection.published_split(ClusteredCounts(k=3), whole)
    assert (clusters.selection, clusters.max_ones) == (pytest.approx(0.16), 10)
    assert clusters.selection + clusters.classification == whole


def test_clusters_over_a_threshold_are_taken_whole():
    X, y = table(2000)
    model = selector(epsilon=50.0, solver=ClusteredCounts(threshold=300.0), criterion="total_count")
    scores = model.fit(X, y).release_.parameters["noisy_scores"]
    chosen = model.get_support(indices=True)
    assert 0 < len(chosen) < X.shape[1]
    assert scores[chosen].min() > np.delete(scores, chosen).max()


# ------------------------------------------------------------------------------------ the estimator


def selector(**changes: Any) -> SelectFeatures:
    declared = {"epsilon": 5.0, "k": 2, "classes": [0, 1], "random_state": 1}
    return SelectFeatures(**{**declared, **changes})


METHODS = {
    "auto": "auto",
    "noisy": "noisy",
    "threshold": NoisyScores(threshold=105.0),
    "peeling": "peeling",
    "published": NoisyScores(k=2, paper=True),
    "clusters": ClusteredCounts(k=2, n_clusters=4),
    "clusters over a threshold": ClusteredCounts(threshold=105.0, n_clusters=6),
    "sparse vector": SparseVector(k=2, threshold=105),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.mark.few(13)
@every_method
@every_adjacency
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_method_finds_the_features_of_a_class(method, adjacency, delta):
    X, y = table(2000)
    score = "difference_count" if not isinstance(method, str) else "purity_index"
    ledger = Ledger(50.0, delta)
    model = selector(epsilon=50.0, delta=delta, solver=method, adjacency=adjacency, criterion=score,
                     ledger=ledger)  # fmt: skip
    assert set(model.fit(X, y).get_support(indices=True)) == {3, 7}
    assert model.release_.verify()
    assert (ledger.remaining.epsilon, len(ledger.entries)) == (0, 1)
    assert np.array_equal(model.transform(X), X[:, [3, 7]])
    assert np.array_equal(model.transform(sp.csr_array(X)).toarray(), X[:, [3, 7]])


@pytest.mark.parametrize("score", SCORES)
@every_adjacency
def test_every_score_works_with_both_kinds_of_noise(score, adjacency):
    X, y = table(2000)
    X[:, [3, 7]] |= np.random.default_rng(0).random((2000, 2)) < 0.2  # often, too
    for method in ("noisy", "peeling", "clusters"):
        model = selector(epsilon=60.0, criterion=score, solver=method, adjacency=adjacency)
        assert set(model.fit(X, y).ranking_) == {3, 7}
        assert json.loads(model.release_.to_json())["settings"]["criterion"] == score


@every_method
def test_a_method_draws_what_it_planned_and_nothing_else(method):
    X, y = table()
    settings = selection.method_of(method, 2)[1] or Peeling(2)
    grant = FreeGrant(1.0)
    settings(problem(X, y, ones=4), paid_by(grant, BitSource(0)))
    assert [mechanism.event for mechanism in grant.released] == grant.planned
    assert len(grant.released) == 1


@pytest.mark.few(17)
@every_method
@pytest.mark.parametrize("criterion", SCORES)
def test_what_is_selected_follows_from_the_release_alone(method, criterion):
    """Two tables, one release: the same features. So clustering and ranking are post-processing."""
    settings = selection.method_of(method, 2)[1] or NoisyScores(k=2)
    drawn: list[Any] = []

    class Replay(FreeGrant):
        def release(self, mechanism: Any, value: Any, rng: Any = None) -> Any:
            if not drawn:
                drawn.append(mechanism(value, BitSource(5)))
            return drawn[0]

    X, y = table()
    one, other = (
        settings(asked, paid_by(Replay(1.0), BitSource(0)))
        for asked in (problem(X, y, criterion, 4), problem(1 - X[:100], y[:100], criterion, 4))
    )
    assert np.array_equal(one.features, other.features)
    assert (one.scores is None) == (other.scores is None)
    assert one.scores is None or np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_the_form_and_the_order_of_records_do_not_matter(form):
    X, y = table()
    order = np.random.default_rng(1).permutation(len(X))
    for method in ("noisy", "peeling", "clusters"):
        one = selector(solver=method, max_ones=2, epsilon=0.5).fit(X, y)
        other = selector(solver=method, max_ones=2, epsilon=0.5).fit(form(X)[order], y[order])
        assert np.array_equal(one.ranking_, other.ranking_)


def test_total_counts_need_no_labels():
    X, _ = table()
    model = selector(criterion="total_count", k=3, epsilon=50.0).fit(X)
    assert set(model.ranking_[:2]) == {3, 7}
    assert model.release_.verify()


def test_more_features_than_there_are_means_all():
    X, y = table(100, 8)
    for method in ("auto", "noisy", "peeling", "clusters"):
        assert selector(k=50, solver=method).fit(X, y).get_support().all()


def test_nothing_may_pass_a_high_threshold():
    X, y = table()
    model = selector(solver=SparseVector(k=3, threshold=10**6)).fit(X, y)
    assert model.ranking_.size == 0
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(X).shape == (len(X), 0)


def test_the_release_is_whole_and_can_be_read_back():
    X, y = table()
    model = selector(solver="noisy", max_ones=5, adjacency="add_remove").fit(X, y)
    release = Release.from_json(model.release_.to_json())
    assert release.verify()
    assert release.seeded
    assert release.adjacency == "add_remove"
    assert release.domain == "binary features, at most 5 ones a record"
    assert release.settings["solver"] == "noisy"
    assert release.parameters["features"] == model.ranking_.tolist()
    assert len(release.parameters["noisy_scores"]) == X.shape[1]
    assert not selector(random_state=None).fit(X, y).release_.seeded


def test_a_fitted_selector_keeps_released_values_only():
    X, y = table()
    for method in METHODS.values():
        model = selector(solver=method).fit(X, y)
        kept = {name for name in vars(model) if name.endswith("_") or name.startswith("_")}
        assert kept == {"ranking_", "n_features_in_", "release_"}
        assert len(pickle.dumps(model)) < 10_000
        assert "array" not in repr(model)


def test_private_counts_have_no_text():
    X, y = table()
    records = BinaryRecords.of(X, y, 2)
    for shown in (records, records.counts(), problem(X, y)):
        assert len(repr(shown)) < 100


def test_clones_spend_from_the_same_ledger_and_an_empty_one_refuses():
    X, y = table()
    ledger = Ledger(1.0)
    model = selector(epsilon=0.5, ledger=ledger)
    for _ in range(2):
        clone(model).fit(X, y)
    with pytest.raises(BudgetError, match="asks for epsilon"):
        model.fit(X, y)
    assert not hasattr(model, "ranking_")


def test_names_of_columns_pass_through():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"word {j}" for j in range(X.shape[1])])
    model = selector(epsilon=50.0).fit(frame, y)
    assert model.get_feature_names_out().tolist() == ["word 3", "word 7"]


def test_classes_that_are_not_declared_are_a_leak_and_say_so():
    X, y = table()
    with pytest.warns(PrivacyLeakWarning, match="SelectFeatures reads its classes"):
        selector(classes=None).fit(X, y)


def test_a_pipeline_spends_one_ledger_step_by_step():
    X, y = table(3000)
    ledger = Ledger(1.0)
    shared = {"classes": [0, 1], "adjacency": "add_remove", "ledger": ledger, "random_state": 3}
    model = Pipeline([("select", SelectFeatures(0.75, k=2, max_ones=6, **shared)),
                      ("bayes", BernoulliNB(0.25, **shared))])  # fmt: skip
    assert model.fit(X, y).score(X, y) > 0.85
    assert [name for _, name, _ in ledger.entries] == ["SelectFeatures", "BernoulliNB"]
    assert ledger.spent == Budget(1.0)
    for _, step in model.steps:
        assert step.release_.verify()
    assert model["bayes"].n_features_in_ == 2


@pytest.mark.filterwarnings("ignore::privfit.PrivacyLeakWarning")
@scikit_learn_checks([SelectFeatures(epsilon=1000)])
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------------------------- refusals

X0, Y0 = table(30, 8)


def too_many() -> None:
    with mock.patch("privfit.records.binary.TABLE_RECORDS", 29):
        selector().fit(X0, Y0)


REFUSED: dict[str, tuple[Any, str]] = {
    "too many": (too_many, "X must have at most 29 records in memory; pass more as a Stream"),
    "threshold testing": (lambda: selector(solver="threshold testing").fit(X0, Y0),
                          r"threshold testing as published is not, for any epsilon"),
    "ptt": (lambda: selection.published_split("PTT", 1.0),
            r"solver \('PTT'\) must be private, and threshold testing as published is not"),
    **{f"noisy cut {name}": (lambda name=name: selector(solver=name).fit(X0, Y0),
                             r"NoisyCut as published is not, for any epsilon that .* never stops, "
                             r"so each answer costs anew; pass SparseVector\(k=\.\.\., ")
       for name in ("noisycut", "NoisyCut", "noisy cut", "noisy-cut")},
    "split": (lambda: selection.published_split("peeling", 1.0),
              r"solver \('peeling'\) must be one of noisy, clusters, which were published; pass"),
    "split of settings": (lambda: selection.published_split(Peeling(k=3), 1.0), "must be one of"),
    "split of nothing": (lambda: selection.published_split("noisy", -1.0), r"epsilon \(-1.0\)"),
    "clusters": (lambda: ClusteredCounts(k=3, threshold=2.0),
                 r"threshold \(2.0\) must be given, or k \(3\), and not both"),
    "no clusters": (lambda: ClusteredCounts(), r"must be given, or k \(None\), and not both"),
    "threshold_testing": (lambda: selector(solver="threshold_testing").fit(X0, Y0),
                          r"compares exact scores with one noisy threshold"),
    "both names": (lambda: selector(solver="noisy", method="peeling").fit(X0, Y0),
                   r"method \('peeling'\) must be left out, since it is the old name of solver"),
    "solver": (lambda: selector(solver="best").fit(X0, Y0), r"solver \('best'\) must be one of"),
    "score": (lambda: selector(criterion="chi2").fit(X0, Y0), r"criterion \('chi2'\) must be"),
    "classes": (lambda: selector(classes=[0, 1, 2]).fit(X0, Y0), "for other than two classes"),
    "no labels": (lambda: selector().fit(X0), "requires y to be passed"),
    "labels": (lambda: selector().fit(X0, Y0[1:]), "y must have one label for each record"),
    "k": (lambda: selector(k=0).fit(X0, Y0), r"k \(0\) must be a positive whole number"),
    "k of settings": (lambda: Peeling(k=2.5), r"k \(2.5\) must be a positive whole number"),
    "k and threshold": (lambda: NoisyScores(k=2, threshold=3), "and not both"),
    "neither": (NoisyScores, "and not both"),
    "no threshold": (lambda: selector(solver="sparse_vector").fit(X0, Y0),
                     r"threshold \(None\) must be given from public knowledge"),
    "threshold": (lambda: NoisyScores(threshold=math.inf), r"threshold \(inf\) must be a number"),
    "n_clusters": (lambda: ClusteredCounts(k=2, n_clusters=1), r"n_clusters \(1\) must be"),
    "max_ones": (lambda: selector(max_ones=0).fit(X0, Y0), r"max_ones \(0\) must be a positive"),
    "adjacency": (lambda: selector(adjacency="both").fit(X0, Y0), r"adjacency \('both'\) must be"),
    "n_public": (lambda: selector(n_public=0).fit(X0, Y0), r"n_public \(0\) must be a positive"),
    "epsilon": (lambda: selector(epsilon=0).fit(X0, Y0), r"epsilon \(0\) must be positive"),
    "infinity": (lambda: selector(epsilon=math.inf).fit(X0, Y0), r"epsilon \(inf\)"),
    "weights": (lambda: selector().fit(X0, Y0, sample_weight=np.ones(30)), "sample_weight is ref"),
    "NaN": (lambda: selector().fit(np.where(X0, np.nan, 0), Y0), "Input X contains NaN"),
    "wide noise": (lambda: selector(epsilon=1e-16, solver="noisy").fit(X0, Y0), "does not fit in"),
    "share": (lambda: AboveThreshold(1.0, 1, 0, 1, 1, 1.0), r"share \(1.0\) must lie between"),
    "most": (lambda: AboveThreshold(1.0, 0, 0, 1, 1, 0.5), r"most \(0\) must be a whole number of"),
    "no selection": (lambda: check_selected(3, 2), r"a value that must be a Selected with"),
    "level": (lambda: AboveThreshold(1.0, 1, 0.5, 1, 1, 0.5), r"threshold \(0.5\) must be a whole"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_refused_with_a_remedy(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_refusals_cost_nothing():
    ledger = Ledger(1.0)
    for change in ({"solver": "best"}, {"max_ones": 0}, {"k": 0}, {"adjacency": "both"},
                   {"criterion": "chi2"}, {"epsilon": 1e-16, "solver": "noisy"}):  # fmt: skip
        with pytest.raises(ValueError, match=r"must|fit in"):
            selector(**{"epsilon": 0.5, "ledger": ledger, **change}).fit(X0, Y0)
    assert not ledger.entries


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED.values())
    package = Path(privfit.__file__).parent
    missed = [
        (source, line, parts)
        for source in (
            "features/selection.py",
            "features/scores.py",
            "records/binary.py",
            "privacy/budget_noise.py",
            "estimators/select.py",
        )
        for line, parts in raises_in(package / source)
        if not all(part in seen for part in parts)
    ]
    assert not missed
