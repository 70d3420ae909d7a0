"""Anybody's own score: clipped, rounded and summed by us, a record at a time."""

from __future__ import annotations

import contextlib
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from makers.cases import ADJACENCIES

from privfit import RecordObjective
from privfit._kernels.threads import has_openmp

P = np.array([-1.0, 0.0, 0.5, 2.0])
P7 = np.zeros(7)


def product(records, P):
    """A score that every kind of table can serve: the first column times the candidate."""
    if sp.issparse(records):
        records = records.toarray()
    table = np.asarray(records, dtype=np.float64)
    first = table if table.ndim == 1 else table[:, 0]
    return first[:, None] * np.asarray(P)


@given(
    x=st.lists(st.integers(-192, 192), min_size=1, max_size=30),
    bounds=st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (-100, 1), (5.0, 6.0), (-0.375, 2.5)]),
    bits=st.sampled_from([1, 3, 8, 16, 30]),
    block=st.integers(1, 7),
)
def test_scores_equal_the_twin(x, bounds, bits, block):
    """Every value here is a dyadic rational, so float64 makes no error of its own."""
    objective = RecordObjective(np.array(x) / 64, product, *bounds, bits=bits, block=block)
    expected = [sum(reference.own_units(v / 64 * p, *bounds, objective.unit) for v in x) for p in P]
    assert objective.scores(P).tolist() == expected
    low, high, unit = map(Fraction, (*bounds, objective.unit))
    exact = [[min(max(Fraction(v, 64) * Fraction(p), low), high) - low for v in x] for p in P]
    whole = [[reference.round_half_even(v / unit) for v in values] for values in exact]
    assert [sum(values) for values in whole] == expected
    assert (bounds[1] - bounds[0]) / objective.unit <= 2**bits


@given(x=st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_every_integer_is_within_0_6_units_of_the_clipped_score(x):
    low, high = -0.3, 2.7
    for v in x:
        objective = RecordObjective(np.array([v]), product, low, high)
        truth = [(min(max(Fraction(v * p), Fraction(low)), Fraction(high)) - Fraction(low))
                 / Fraction(objective.unit) for p in P]  # fmt: skip
        for got, exact in zip(objective.scores(P).tolist(), truth, strict=True):
            assert abs(got - exact) <= Fraction(6, 10)


@given(
    values=st.lists(st.floats(width=64) | st.floats(-9, 9), min_size=1, max_size=20),
    bounds=st.sampled_from([(-0.3, 2.7), (-8.0, 0.0), (1e15, 1e15 + 3), (-1e99, 1e99), (0, 1e-99)]),
    bits=st.sampled_from([1, 16, 30]),
    kind=st.sampled_from([np.float64, np.float32, np.longdouble]),
)
def test_any_value_has_the_integer_of_the_twin(values, bounds, bits, kind):
    """NaN, infinities, subnormal and huge numbers, in every type that a function may return."""
    with np.errstate(over="ignore"):
        table = np.array(values).astype(kind)
    objective = RecordObjective(np.zeros(1), lambda r, P: np.tile(table, (len(r), 1)), *bounds,
                                bits=bits)  # fmt: skip
    expected = [reference.own_units(float(v), *bounds, objective.unit) for v in table]
    assert objective.scores(table).tolist() == expected
    assert max(expected) <= objective.range([0, 1], "add_remove")


def test_values_in_any_order_of_memory_count_the_same(rng):
    table = rng.normal(size=(50, 7))
    scores = [RecordObjective(np.arange(50), lambda r, P, t=t: t[r], -1, 1).scores(P7).tolist()
              for t in (table, np.asfortranarray(table), np.repeat(table, 2, axis=1)[:, ::2],
                        table.astype(">f8"), table[::-1][::-1])]  # fmt: skip
    assert all(one == scores[0] for one in scores)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("block", [1, 9, 64, 4096])
def test_number_of_threads_does_not_matter(block, n_threads, knobs, rng):
    knobs(thread_work=0.0)
    x = rng.normal(size=200)
    expected = [sum(reference.own_units(v * p, -1, 1, 2.0**-14) for v in x) for p in P]
    objective = RecordObjective(x, product, -1, 1, block=block, n_threads=n_threads)
    assert objective.unit == 2.0**-14
    assert objective.scores(P).tolist() == expected


@pytest.mark.skipif(not has_openmp(), reason="one thread without OpenMP")
def test_several_threads_score_blocks_at_the_same_time(knobs):
    """Each waits for the other, so that one thread alone would wait for ever."""
    knobs(thread_work=0.0)
    meeting = threading.Barrier(2, timeout=60)

    def score(records, P):
        if len(records) > 1:
            meeting.wait()
        return np.zeros((len(records), len(P)))

    RecordObjective(np.zeros(8), score, 0, 1, block=4, n_threads=2).scores(P)
    assert not meeting.broken


def test_ctrl_c_within_a_score_ends_all_threads(knobs):
    """Ctrl-C within a score is no fault of a record: it is not swallowed."""
    knobs(thread_work=0.0)

    def score(records, P):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RecordObjective(np.zeros(8), score, 0, 1, block=2, n_threads=2).scores(P)


def test_infinite_scores_are_clipped():
    objective = RecordObjective(np.zeros(3), lambda r, P: np.full((len(r), 2), [np.inf, -np.inf]),
                                -1, 1)  # fmt: skip
    assert (objective.scores([0, 1]) * objective.unit).tolist() == [3 * 2, 0]


@pytest.mark.parametrize("block", [1, 2, 7, 99, 100, 101, 4096])
def test_size_of_blocks_does_not_matter(block, rng):
    x = rng.normal(size=100)
    expected = RecordObjective(x, product, -1, 1).scores(P)
    assert np.array_equal(RecordObjective(x, product, -1, 1, block=block).scores(P), expected)


def test_order_of_records_does_not_matter(rng):
    x = rng.normal(size=100)
    expected = RecordObjective(x, product, -1, 1, block=9).scores(P)
    shuffled = RecordObjective(rng.permutation(x), product, -1, 1, block=9)
    assert np.array_equal(shuffled.scores(P), expected)


@given(shard=st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_scores_of_shards_add_up(shard):
    x, shard = np.random.default_rng(2).normal(size=40), np.array(shard)
    parts = [RecordObjective(x[shard == s], product, -1, 2).scores(P) for s in np.unique(shard)]
    assert np.array_equal(sum(parts), RecordObjective(x, product, -1, 2).scores(P))


def test_kind_of_table_does_not_matter(rng):
    x = rng.normal(size=(50, 2)) * (rng.random((50, 2)) < 0.5)
    expected = RecordObjective(x, product, -1, 1, block=8).scores(P)
    for records in (x.tolist(), np.asfortranarray(x), pd.DataFrame(x, index=range(50, 100)),
                    sp.csr_array(x), sp.csc_matrix(x), sp.coo_array(x)):  # fmt: skip
        assert np.array_equal(RecordObjective(records, product, -1, 1, block=8).scores(P), expected)


def test_records_may_be_anything_in_a_list():
    words = ["a", "bb", "ccc"]
    objective = RecordObjective(
        words, lambda rows, P: [[len(w) * p for p in P] for w in rows], 0, 8, bits=16
    )
    assert (objective.scores([1, 2]) * objective.unit).tolist() == [6, 12]


def test_a_candidate_scores_the_same_in_any_company(rng):
    objective = RecordObjective(rng.normal(size=30), product, -1, 1)
    together = objective.scores(P)
    assert np.array_equal(together, [objective.scores(P[i : i + 1])[0] for i in range(4)])


@pytest.mark.slow
def test_many_candidates_are_scored_in_small_blocks():
    """No block holds more than a few million scores."""
    seen = []

    def score(records, P):
        seen.append(len(records) * len(P))
        return np.zeros((len(records), len(P)))

    RecordObjective(np.zeros(300), score, 0, 1).scores(np.zeros(100_000))
    assert max(seen) <= 1 << 22
    assert sum(seen) >= 300 * 100_000


# ------------------------------------------------------------------------------------------ ranges


@pytest.mark.parametrize("bits", [1, 8, 16])
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.1, 0.8), (-7.3, 100.0)])
def test_range_is_reached_and_never_exceeded(bounds, bits, rng):
    """A hostile score reaches every corner of what clipping leaves."""
    low, high = bounds

    def hostile(records, P):
        return np.where((records[:, None] + np.asarray(P)) % 2 == 0, 1e30, -1e30)

    singles = [RecordObjective(np.array([t]), hostile, low, high, bits=bits) for t in range(4)]
    q = np.array([single.scores([0, 1, 2]) for single in singles])
    for adjacency in ADJACENCIES:
        assert reference.realised_range(q, adjacency) == singles[0].range([0, 1, 2], adjacency)
    assert singles[0].range([0, 1], "replace") == 2 * singles[0].range([0, 1], "add_remove")


def test_range_of_one_candidate_is_zero():
    objective = RecordObjective(np.zeros(3), product, -1, 1)
    assert objective.range(P[:1], "replace") == 0
    assert objective.range(P[:1], "add_remove") == 0


def test_range_and_prior_do_not_call_the_score():
    def never(records, P):
        raise AssertionError("range and prior must not look at records")

    objective = RecordObjective(np.zeros(3), never, -1, 1)
    assert objective.range(P, "replace") > 0
    assert objective.prior(P).tolist() == [0] * 4


# ------------------------------------------------------------------------------------ bad scorers


def test_a_score_that_mixes_records_is_refused_before_a_search_and_taken_apart_in_it():
    """Also where only the last record of a block shows it."""

    def standardised(records, P):
        return (records - records.mean())[:, None] * np.asarray(P)

    def rank(records, P):
        return np.arange(len(records))[:, None] * np.ones(len(P))

    for score in (standardised, rank):
        objective = RecordObjective(np.arange(10.0), score, -5, 5)
        with pytest.raises(ValueError, match="score must treat each record by itself"):
            objective.check(P)
        alone = RecordObjective(np.arange(10.0), score, -5, 5, block=1)
        assert objective.scores(P).tolist() == alone.scores(P).tolist()


def test_nan_counts_as_low(rng):
    x = rng.normal(size=50)
    holes = np.where(x > 1, np.nan, x)
    objective = RecordObjective(holes, product, -2, 2)
    filled = RecordObjective(
        x, lambda r, P: np.where(r[:, None] > 1, -2.0, product(r, P)), -2, 2
    )  # fmt: skip
    objective.check(P)
    assert objective.scores(P).tolist() == filled.scores(P).tolist()
    assert RecordObjective(np.full(9, np.nan), product, -2, 2).scores(P).tolist() == [0] * 4


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_a_record_that_fails_counts_as_low_and_leaves_the_others_as_they_were(block, rng):
    """A search that began ends: what `score` does with one record changes that record alone."""
    x = rng.uniform(-2, 2, 40)

    def fragile(records, P):
        if (records > 1.5).any():
            raise KeyError(records.max())
        return product(records, P) if (records < 1.2).all() else np.zeros(3)

    others = RecordObjective(x[x < 1.2], product, -2, 2)
    objective = RecordObjective(x, fragile, -2, 2, block=block)
    assert 0 < (x > 1.5).sum() < (x >= 1.2).sum() < 40
    assert objective.scores(P).tolist() == others.scores(P).tolist()
    objective.check(P)  # a few bad records are no reason to refuse


def test_scores_of_private_values_warn_of_nothing():
    def reciprocal(records, P):
        return np.asarray(P) / records[:, None]

    objective = RecordObjective(np.array([0.0, 1.0, -0.0]), reciprocal, -2, 2)  # warnings fail
    assert (
        objective.scores(P).tolist()
        == RecordObjective(np.array([0.0, 1.0, -0.0]), reciprocal, -2, 2, block=1)
        .scores(P)
        .tolist()
    )


def test_a_search_over_bad_records_ends_with_an_answer():
    """Its ledger is charged once, and the first records are enough to see a score that works."""
    from privfit import DPSGA, Ledger, Reals, search

    def fragile(records, P):
        if (records > 0.5).any():
            raise ZeroDivisionError
        return np.where(records[:, None] < 0, np.nan, -np.abs(records[:, None] - P[:, 0]))

    x = np.r_[np.zeros(70), np.linspace(-1, 1, 30)]
    ledger = Ledger(1.0)
    objective = RecordObjective(x, fragile, -1, 0)
    few = DPSGA(generations=2, population=10, survivors=2)
    found = search(objective, Reals(-1, 1, 1), 1.0, solver=few, ledger=ledger, random_state=0)
    assert found.answer.shape == (1,)
    assert ledger.spent.epsilon == 1.0


def test_sums_that_would_overflow_are_refused_or_right():
    """Bounds far from zero: 40,000 records of 2^50 units are more than an int64 holds."""
    low = 1e6
    with contextlib.suppress(ValueError):
        objective = RecordObjective(
            np.ones(40_000), lambda r, P: np.full((len(r), len(P)), low + 0.5), low, low + 1,
            bits=30,
        )  # fmt: skip
        scores = objective.scores([0, 1])
        assert (scores * objective.unit).tolist() in (
            [40_000 * 0.5] * 2,
            [40_000 * (low + 0.5)] * 2,
        )


@pytest.mark.parametrize("bounds", [(-1.7e308, 1.7e308), (0.0, 5e-324), (1e18, 1e18 + 256)])
def test_bounds_at_the_ends_of_float64_work_or_are_refused(bounds):
    low, high = bounds
    with contextlib.suppress(ValueError):
        objective = RecordObjective(
            np.ones(4), lambda r, P: np.full((len(r), len(P)), [low, high]), low, high, bits=8
        )
        gap = np.diff(objective.scores([0, 1]))[0]
        assert 0 < gap <= 4 * 256
        assert objective.range([0, 1], "add_remove") * 4 == gap
