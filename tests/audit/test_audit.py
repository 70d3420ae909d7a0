"""The audit finds planted mistakes and stays quiet on right code; it is run on all that exists.

Black-box tests use a confidence of 1 - 1e-6 and fixed seeds. On fresh seeds one of the tests that
must stay quiet would raise a false alarm at most once in 1e6 runs each, in truth far more rarely:
the true epsilon would have to be reached exactly.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats

from privfit import (
    Box,
    CentersObjective,
    FacilityObjective,
    L1Ball,
    L2Ball,
    LinearObjective,
    RecordObjective,
)
from privfit._kernels.random import BitSource
from privfit.audit import (
    audit_outcomes,
    audit_runs,
    audit_scores,
    audit_selection,
    canary,
    neighbours,
    output_distribution,
)
from privfit.privacy.accounting import gaussian_total
from privfit.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)

ADJACENCIES = ("replace", "add_remove")
SURE = 1 - 1e-6
SELECTIONS = (Exponential, PermuteAndFlip, NoisyMax)


def name(value):
    return getattr(value, "__name__", None) or str(value)


# ----------------------------------------------------------------------------- exact distributions


def probabilities(mechanism, scores):
    return {outcome: float(log.exp()) for outcome, log in
            output_distribution(mechanism, scores).items()}  # fmt: skip


ENDS = [2**63 - 1, -(2**63), 0]


@pytest.mark.parametrize(
    ("kind", "scores"),
    [*itertools.product(SELECTIONS, [[0], [3, 3], [0, -1, 5, 2]]),
     (Exponential, ENDS), (PermuteAndFlip, ENDS)],
    ids=name,
)  # fmt: skip
def test_distributions_sum_to_one(kind, scores):
    logs = output_distribution(kind(0.7, 2), scores)
    assert list(logs) == list(range(len(scores)))
    with mpmath.workdps(60):
        total = mpmath.fsum(mpmath.exp(mpmath.mpf(str(log))) for log in logs.values())
        assert abs(total - 1) < mpmath.mpf(10) ** -30


def test_exponential_distribution_is_a_softmax():
    scores, rate = [4, 0, -3, 11, 4], Fraction(0.7) / 3
    with mpmath.workdps(60):
        powers = [mpmath.exp(mpmath.mpf(s * rate.numerator) / rate.denominator) for s in scores]
        for i, log in output_distribution(Exponential(0.7, 3), scores).items():
            expected = mpmath.log(powers[i] / mpmath.fsum(powers))
            assert abs(mpmath.mpf(str(log)) - expected) < mpmath.mpf(10) ** -40


def test_permute_and_flip_distribution_is_that_of_the_walk():
    scores, rate = [4, 0, -3, 5, 5], 0.7 / 3
    f = [math.exp(-(5 - s) * rate) for s in scores]
    expected = np.zeros(5)
    for order in itertools.permutations(range(5)):
        reach = 1 / 120
        for i in order:
            expected[i] += reach * f[i]
            reach *= 1 - f[i]
    found = probabilities(PermuteAndFlip(0.7, 3), scores)
    assert np.allclose(list(found.values()), expected, rtol=1e-12)


def test_noisy_max_distribution_is_that_of_all_noises():
    """Three candidates, all triples of noises; ties to the first."""
    scores, rate = [1, 0, 2], 1.5
    x = np.arange(-24, 25)
    pmf = np.tanh(rate / 2) * np.exp(-rate * np.abs(x))
    grids = np.meshgrid(x, x, x, indexing="ij")
    noisy = np.stack([grid + s for grid, s in zip(grids, scores, strict=True)])
    weight = pmf[:, None, None] * pmf[:, None] * pmf
    expected = np.bincount(noisy.argmax(axis=0).ravel(), weights=weight.ravel())
    found = probabilities(NoisyMax(1.5, 1), scores)
    assert np.allclose(list(found.values()), expected, rtol=0, atol=1e-14)


def test_top_k_distribution_is_that_of_peeling():
    found = probabilities(TopK(2, 0.8, 2), [0, 3, 1])
    f = np.exp(np.array([0, 3, 1]) * 0.4)
    for i, j in itertools.permutations(range(3), 2):
        assert math.isclose(found[i, j], f[i] / f.sum() * f[j] / (f.sum() - f[i]), rel_tol=1e-12)
    assert len(found) == 6


def test_range_zero_is_uniform():
    for kind in SELECTIONS:
        assert set(probabilities(kind(1.0, 0), [5, 0, 2, 1]).values()) == {0.25}


def test_distributions_do_not_depend_on_the_decimal_context():
    import decimal

    expected = output_distribution(PermuteAndFlip(0.7, 3), [0, 1, 5])
    with decimal.localcontext(decimal.Context(prec=4)):
        assert output_distribution(PermuteAndFlip(0.7, 3), [0, 1, 5]) == expected
    assert all(isinstance(log, Decimal) for log in expected.values())


def test_what_has_no_distribution_here_is_refused():
    with pytest.raises(ValueError, match="scores must hold at least one candidate; pass integers"):
        output_distribution(Exponential(1.0, 1), [])
    with pytest.raises(TypeError, match=r"mechanism \(DiscreteLaplace\) must be a selection; pass"):
        output_distribution(DiscreteLaplace(1.0, 1), [1])
    with pytest.raises(ValueError, match=r"scores \(65\) must be at most 64 here; pass fewer"):
        output_distribution(PermuteAndFlip(1.0, 1), [0] * 65)
    with pytest.raises(
        ValueError, match=r"epsilon / range \(1e-07\) is too small for these scores"
    ):
        output_distribution(NoisyMax(1e-7, 1), [0, 1])
    with pytest.raises(ValueError, match=r"k \(3\) must be at most the number of scores \(2\)"):
        output_distribution(TopK(3, 1.0, 1), [0, 1])


# --------------------------------------------------------------------------------------- white box


def test_neighbours_are_all_there():
    for n_records, n in ((2, 1), (3, 2), (4, 3)):
        found = neighbours(n_records, n, "replace")
        assert len(found.data_sets) == math.comb(n_records + n - 1, n)
        for i, j in itertools.combinations(range(len(found.data_sets)), 2):
            a, b = (list(found.data_sets[k]) for k in (i, j))
            for record in found.data_sets[i]:
                if record in b:
                    a.remove(record)
                    b.remove(record)
            assert (len(a) == 1) == ((i, j) in found.pairs or (j, i) in found.pairs)
        added = neighbours(n_records, n, "add_remove")
        assert len(added.pairs) == math.comb(n_records + n - 1, n) * n_records
        for i, j in added.pairs:
            small, large = list(added.data_sets[i]), list(added.data_sets[j])
            assert len(large) == len(small) + 1 == n + 1
            for record in small:
                large.remove(record)


LINE = Box(-1, 1, 1)
LABELLED = [(x, y) for x in (-1.0, -0.5, 0.0, 0.5, 1.0) for y in (0, 1)]
SQUARE = [list(corner) for corner in itertools.product((-1.0, 0.0, 1.0), repeat=2)]


def linear(loss, domain=LINE):
    P = domain.snap(np.array([[1.0, 0.25], [-0.75, 0.0], [0.5, -1.0], [2.0, 0.5], [0.0, 0.0]]))

    def make(rows):
        return LinearObjective([[x] for x, _ in rows], [y for _, y in rows], loss, domain)

    return make, LABELLED, P


def centers(domain, power):
    P = np.array([[[-0.5, 0.0], [0.5, 0.5]], [[1.0, 1.0], [-1.0, -1.0]], [[0.0, 0.25], [0.0, 0.0]],
                  [[0.5, -0.5], [0.0, 1.0]]])  # fmt: skip
    return lambda rows: CentersObjective(rows, 2, domain, power=power), SQUARE, P


def facility(clip, bits=16):
    places = np.array([[-1.0, -1.0], [1.0, -1.0], [0.0, 0.5], [1.0, 1.0]])
    P = np.array([[0, 1], [2, 3], [0, 2], [1, 3], [3, 3]])
    return lambda rows: FacilityObjective(rows, places, clip, bits=bits), SQUARE, P


def record(low, high):
    def score(rows, P):
        return np.where((np.asarray(rows)[:, None] + np.asarray(P)) % 2 == 0, high, low + 0.0)

    P = np.arange(5)
    return lambda rows: RecordObjective(np.array(rows), score, low, high), [0, 1, 2, 3], P


OBJECTIVES = {
    "logistic": linear("logistic"),
    "hinge": linear("hinge"),
    "zero_one": linear("zero_one"),
    "logistic l2 ball": linear("logistic", L2Ball(1.0, 1)),
    "hinge l1 ball": linear("hinge", L1Ball(1.0, 1)),
    "k-means": centers(Box(-1, 1, 2), 2),
    "k-median": centers(Box(-1, 1, 2), 1),
    "facility": facility((0.0, 4.0)),
    "facility clipped": facility((0.25, 1.5), bits=8),
    "record": record(-1.0, 2.5),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("case", OBJECTIVES)
def test_right_ranges_pass_and_halved_ones_are_caught(case, adjacency):
    """All neighbours over a small public domain that has its corners.

    Twice the rate is half the range. The log ratio alone would miss half of it: a range that is
    too small by a factor below 2 may still give ratios below epsilon.
    """
    make, records, P = OBJECTIVES[case]
    n = 2 if adjacency == "replace" else 1
    found = audit_selection(make, records, n, P, adjacency)
    assert found.passes()
    assert found.log_ratio <= found.log_range <= 1 + 1e-12
    assert found.pairs > 0
    twice = audit_selection(
        make, records, n, P, adjacency, mechanism=lambda span: Exponential(2.0, span)
    )
    assert math.isclose(twice.log_range, 2 * found.log_range)
    assert twice.passes()  # it is what a mechanism of epsilon 2 may do
    assert not twice.passes(1.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", SELECTIONS, ids=name)
def test_every_selection_passes_on_an_objective(kind, adjacency):
    """Permute-and-flip and noisy max promise a ratio only, and their range does exceed epsilon."""
    make, records, P = OBJECTIVES["zero_one"]
    found = audit_selection(make, records, 1, P, adjacency, mechanism=lambda span: kind(1.0, span))
    assert found.passes()
    assert found.bounded_range == (kind is Exponential)
    twice = audit_selection(make, records, 1, P, adjacency, mechanism=lambda span: kind(2.0, span))
    assert not twice.passes(1.0)


def test_peeling_costs_at_most_the_sum_of_its_rounds():
    """Each round is bounded-range; all of them together have a ratio, but no such range."""
    make, records, P = OBJECTIVES["zero_one"]
    found = audit_selection(make, records, 2, P, mechanism=lambda span: TopK(2, 0.5, span))
    assert found.epsilon == 1.0
    assert not found.bounded_range
    assert found.passes()
    assert found.log_range > 1.0
    assert not found.passes(0.5)


def test_the_check_value_of_the_theory():
    """PrivGene's Example 1: integers 0..10, candidates 6, 7, 8, squared error: 40 and 28."""
    singles = [[-((t - c) ** 2) for c in (6, 7, 8)] for t in range(11)]
    for adjacency, span in (("replace", 40), ("add_remove", 28)):
        found = neighbours(11, 2, adjacency)
        tables = [np.sum([singles[t] for t in D], axis=0) for D in found.data_sets]
        exact = audit_scores(tables, found.pairs, Exponential(0.3, span))
        assert exact.passes()
        assert math.isclose(exact.log_range, 0.3, rel_tol=1e-14)
        assert not audit_scores(tables, found.pairs, Exponential(0.3, span - 1)).passes()


def test_the_ratio_alone_misses_what_the_range_shows():
    """Two candidates that drift apart: the log ratio is half of the range."""
    found = audit_scores([[0, 0], [1, -1]], [(0, 1)], Exponential(1e-3, 1))
    assert math.isclose(found.log_range, 2e-3)
    assert math.isclose(found.log_ratio, 1e-3, rel_tol=1e-3)
    assert not found.passes()


def test_worst_data_sets_are_shown():
    make, records, P = OBJECTIVES["zero_one"]
    found = audit_selection(make, records, 2, P)
    a, b = found.worst
    tables = [make([records[i] for i in D]).scores(P) for D in (a, b)]
    drift = tables[0] - tables[1]
    assert math.isclose(found.log_range, (drift.max() - drift.min()) / 2)
    assert repr(found).startswith("SelectionAudit(epsilon=1.0, log_ratio=")


def test_a_prior_that_looks_at_the_data_is_found():
    class Leaky:
        def __init__(self, rows, share):
            self.rows, self.share = rows, share

        def scores(self, P):
            return np.zeros(len(P), dtype=np.int64)

        def prior(self, P):
            return np.asarray(P) * (len(self.rows) if self.share else 3)

        def range(self, P, adjacency):
            return 1

    for share in (True, False):
        found = audit_selection(
            lambda rows, share=share: Leaky(rows, share), [0, 1], 1, [0, 5], "add_remove"
        )
        assert found.passes() == (not share)


def test_a_range_that_looks_at_the_data_is_refused():
    make, records, P = OBJECTIVES["zero_one"]

    class Peeking:
        def __init__(self, rows):
            self.scores, self.rows = make(rows).scores, rows

        def range(self, P, adjacency):
            return 2 + self.rows[0][1]

    with pytest.raises(ValueError, match="range must be the same for all data sets, since a mech"):
        audit_selection(Peeking, records, 1, P)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(ValueError, match=r"^n_records \(.*\) must be a positive whole number"):
        neighbours(bad, 1)
    with pytest.raises(ValueError, match=r"^n \(.*\) must be a positive whole number; pass n=2"):
        neighbours(1, bad)


def test_other_bad_arguments_are_refused():
    for call in (lambda: neighbours(2, 1, "swap"), lambda: canary("swap")):
        with pytest.raises(ValueError, match=r"adjacency \('swap'\) must be 'replace' or 'add_rem"):
            call()
    with pytest.raises(
        ValueError, match=r"candidates \(1\) must be at least 2; pass candidates=20"
    ):
        canary(candidates=1)
    with pytest.raises(ValueError, match="tables 0 and 1 must hold the same candidates; pass"):
        audit_scores([[0, 1], [0, 1, 2]], [(0, 1)], Exponential(1.0, 1))


# ------------------------------------------------------------------------------------------ canary


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_canary_is_nearly_as_bad_as_can_be(adjacency, epsilon):
    pair = canary(adjacency)
    assert len(pair.first) == len(pair.second) == 20
    found = audit_scores([pair.first, pair.second], [(0, 1)], Exponential(epsilon, pair.range))
    assert found.passes()
    assert math.isclose(found.log_range, epsilon)
    assert found.log_ratio > 0.9 * epsilon


# --------------------------------------------------------------------------------------- black box

# Each mechanism at a given epsilon as run(input, rng), and two neighbouring inputs.
PAIR = canary()
FIRST, SECOND = np.array(PAIR.first), np.array(PAIR.second)
VECTOR = np.array([3, -2, 5])
WORST = {
    "Exponential": (lambda e: Exponential(e, PAIR.range), FIRST, SECOND),
    "TopK": (lambda e: TopK(2, e / 2, 2), [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]),
    "PermuteAndFlip": (lambda e: PermuteAndFlip(e, PAIR.range), FIRST, SECOND),
    "NoisyMax": (lambda e: NoisyMax(e, PAIR.range), FIRST[:12], SECOND[:12]),
    "DiscreteLaplace": (lambda e: DiscreteLaplace(e, 5), VECTOR, VECTOR + np.array([3, 0, -2])),
    "GammaVector": (lambda e: GammaVector(e, 1.0), np.zeros(1), np.ones(1)),
}
RUNS = {"TopK": 20_000, "GammaVector": 1600, "DiscreteLaplace": 6000}
STATISTICS = {"TopK": lambda order: frozenset(order.tolist())}


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("which", WORST)
def test_every_mechanism_stays_below_epsilon_and_a_factor_two_is_found(which):
    """A doubled epsilon of 2 stands out in this many runs, on each of the four seeds tried."""
    make, first, second = WORST[which]

    def look(epsilon):
        return audit_runs(
            make(epsilon), first, second, runs=RUNS.get(which, 8000), confidence=SURE,
            statistic=STATISTICS.get(which), rng=7,
        )  # fmt: skip

    right, doubled = look(2.0), look(4.0)
    assert right.passes(2.0)
    assert right.lower_bound > 0.5  # it did look
    assert not doubled.passes(2.0)
    assert doubled.passes(4.0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_many_draws_come_close_to_the_truth(adjacency):
    """Discrete Laplace on one count, a hundred thousand draws in one call."""
    span = 2 if adjacency == "replace" else 1
    for epsilon, least in ((1.0, 0.9), (0.1, 0.05)):
        draws = [
            DiscreteLaplace(epsilon, span)(np.full(200_000, value), seed)
            for seed, value in enumerate((10, 10 + span))
        ]
        found = audit_outcomes(*draws, confidence=SURE)
        assert least < found.lower_bound <= epsilon
        draws = [
            DiscreteLaplace(2 * epsilon, span)(np.full(200_000, value), seed)
            for seed, value in enumerate((10, 10 + span))
        ]
        assert not audit_outcomes(*draws, confidence=SURE).passes(epsilon)


def test_discrete_gaussian_keeps_its_curve_and_half_the_noise_is_found():
    """mu = 0.5 against its own (epsilon, delta); with twice that mu the same claim is refuted."""
    delta = 0.01
    epsilon = gaussian_total(0.5, delta)

    def look(mu):
        mechanism = DiscreteGaussian(mu, 8.0)
        draws = [mechanism(np.full(60_000, value), 3 + value) for value in (0, 8)]
        return audit_outcomes(*draws, confidence=SURE, delta=delta)

    assert look(0.5).passes(epsilon)
    assert not look(1.0).passes(epsilon)


@pytest.mark.slow
def test_outcomes_may_be_labels_numbers_bools_or_vectors():
    rng = np.random.default_rng(0)
    coins = [rng.random(20_000) < p for p in (0.2, 0.8)]
    expected = math.log(4)
    for outcomes in (
        coins,
        [coin.astype(float) for coin in coins],
        [np.where(coin, "heads", "tails") for coin in coins],
        [[("heads",) if c else None for c in coin] for coin in coins],
        [[frozenset({int(c)}) for c in coin] for coin in coins],
        [np.column_stack([coin, 1 - coin]) for coin in coins],
        [[[int(c), 0, 7] for c in coin] for coin in coins],
        [np.stack([np.eye(2)[int(c)] for c in coin]) for coin in coins],
    ):
        found = audit_outcomes(*outcomes)
        assert 0.8 * expected < found.lower_bound < expected
        swapped = audit_outcomes(*outcomes[::-1])
        assert math.isclose(swapped.lower_bound, found.lower_bound, rel_tol=0.1)


def test_vectors_are_told_apart_along_the_difference_of_means():
    rng = np.random.default_rng(1)
    shift = np.array([0.0, 1.0, 0.0, -1.0])
    draws = [rng.normal(size=(20_000, 4)) + s * shift for s in (0, 1)]
    found = audit_outcomes(*draws, delta=1e-3)
    along = audit_outcomes(*[d @ shift for d in draws], delta=1e-3)
    assert found.lower_bound > 0.8 * along.lower_bound > 1


def test_equal_inputs_show_nothing():
    """Also where every outcome is new: the chosen event must not be a list of what was seen."""
    rng = np.random.default_rng(2)
    for draws in (rng.normal(size=(2, 20_000)), rng.integers(0, 50, (2, 20_000)),
                  rng.normal(size=(2, 5000, 3)), np.zeros((2, 1000)),
                  rng.integers(0, 2**60, (2, 20_000)).astype(str)):  # fmt: skip
        assert audit_outcomes(*draws).lower_bound == 0


@pytest.mark.statistical
def test_certified_bounds_hold_as_often_as_promised():
    """At confidence 0.9 on a pair of coins of known epsilon; 300 audits."""
    rng = np.random.default_rng(3)
    truth = math.log(0.6 / 0.4)
    wrong = sum(
        not audit_outcomes(rng.random(200) < 0.6, rng.random(200) < 0.4, confidence=0.9).passes(
            truth
        )
        for _ in range(300)
    )
    assert scipy.stats.binom.sf(wrong - 1, 300, 0.1) > 1e-8


def test_delta_is_taken_off():
    rng = np.random.default_rng(4)
    # A leak with probability 0.02, otherwise nothing.
    draws = [np.where(rng.random(50_000) < 0.02, value, 0) for value in (1, 2)]
    assert not audit_outcomes(*draws).passes(3.0)
    assert audit_outcomes(*draws, delta=0.02).passes(1e-9)


def test_reports_are_readable():
    found = audit_runs(lambda data, rng: data, 0, 1, runs=1000, confidence=SURE, delta=1e-5)
    assert found.lower_bound > 3
    assert found.runs == 1000
    assert found.confidence == SURE
    assert repr(found).startswith("RunsAudit(epsilon >= ")
    assert "at delta 1e-05, confidence 1 - 1e-06: outcome" in repr(found)
    assert "1000 runs each)" in repr(found)
    assert 0 < found.unlikely < found.likely < 1
    with pytest.raises(AttributeError):
        found.lower_bound = 0.0


def test_runners_are_given_a_source_that_moves_on():
    """Whatever is passed as rng: an int must not become the same draw each time."""
    for rng in (None, 3, np.int64(3)):
        seen = []
        audit_runs(lambda data, source, seen=seen: seen.append(source), 0, 1, runs=4, rng=rng)
        assert len(set(map(id, seen))) == 1
        assert isinstance(seen[0], BitSource)
        assert seen[0].seeded == (rng is not None)
    for rng in (np.random.default_rng(0), np.random.RandomState(0), BitSource(1)):
        audit_runs(
            lambda data, got, rng=rng: got is rng or pytest.fail("another source"),
            0,
            1,
            runs=4,
            rng=rng,
        )
    same = [audit_runs(DiscreteLaplace(1.0, 1), [0], [1], runs=500, rng=5) for _ in range(2)]
    assert same[0] == same[1]


def test_bad_plans_are_refused():
    for runs in (0, 3, 4.0, "9", True):
        with pytest.raises(
            ValueError,
            match=r"runs \(.*\) must be a whole number of at least 4; "
            r"pass",
        ):
            audit_runs(lambda data, rng: 0, 0, 1, runs=runs)
    for confidence in (0, 1, 1.5, math.nan, "0.9"):
        with pytest.raises(ValueError, match=r"confidence \(.*\) must lie between 0 and 1; pass"):
            audit_runs(lambda data, rng: 0, 0, 1, confidence=confidence)
    for delta in (-0.1, 1, math.nan, "0"):
        with pytest.raises(ValueError, match=r"delta \(.*\) must be at least 0 and below 1; pass"):
            audit_outcomes([0, 1] * 2, [0, 1] * 2, delta=delta)
    with pytest.raises(
        ValueError, match=r"outcomes \(2 and 3\) must be equally many; pass the same number of each"
    ):
        audit_outcomes([0, 1], [0, 1, 2])
    with pytest.raises(
        TypeError, match="outcomes must be labels, numbers or vectors of one length"
    ):
        audit_outcomes([{"a": 1}] * 4, [{}] * 4)


# ------------------------------------------------------------------------ the attack on float noise


def low_bits(value):
    """Whether a float is finer than 2^-53: what 1 + x can never be near 0 (Mironov 2012)."""
    return bool(abs(value) < 0.5 and (value * 2.0**53) % 1)


@pytest.mark.statistical
def test_float_laplace_noise_gives_its_input_away():
    """Scale 1, counts 0 and 1, said to be 1-DP: some outputs of 0 are impossible for 1."""
    generator = np.random.default_rng(5)
    found = audit_runs(
        lambda count, rng: rng.laplace(float(count), 1.0), 0, 1, runs=20_000, confidence=SURE,
        statistic=low_bits, rng=generator,
    )  # fmt: skip
    assert found.lower_bound > 4
    assert not found.passes(1.0)
    impossible = generator.laplace(1.0, 1.0, 200_000)
    assert not any(map(low_bits, impossible.tolist()))


def test_float_laplace_attack_fails_on_ours():
    """Counts on a grid of 2^-40, noise a million million units wide."""
    unit = 2.0**-40
    mechanism = DiscreteLaplace(1.0, 2**40)
    draws = [mechanism(np.full(100_000, count << 40), 6 + count) for count in (0, 1)]
    attacked = [[low_bits(x) for x in (d * unit).tolist()] for d in draws]
    assert audit_outcomes(*attacked, confidence=SURE).lower_bound == 0
    # Nothing to see in the low digits either: the same integers are possible for both.
    digits = audit_outcomes(*[d % 64 for d in draws], confidence=SURE)
    assert digits.lower_bound == 0
    assert audit_outcomes(*draws, confidence=SURE).passes(1.0)
    # On a coarse grid both neighbours reach every value: the supports are one and the same.
    coarse = [DiscreteLaplace(1.0, 1)(np.full(100_000, count), 8 + count) for count in (0, 1)]
    middle = set(range(-5, 7))
    assert middle <= set(coarse[0].tolist())
    assert middle <= set(coarse[1].tolist())
