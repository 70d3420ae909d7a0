"""Facilities: clipped distances are the twin's integers; minima over sets are exact."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from makers.cases import ADJACENCIES, case, packed, same
from scipy.spatial.distance import cdist

from privfit import Box, Categorical, FacilityObjective, InputError, L1Ball, L2Ball, Schema
from privfit._kernels import facility as kernels
from privfit._kernels import threads
from privfit.domains import Grid
from privfit.records import facilities
from privfit.records.fours import sixteens
from privfit.records.packing import DenseRecords, SparseRecords, pack

BITS = (16, 8)
METRICS = ("l1", "l2")


def table_of(objective: FacilityObjective, X, places) -> list[list[int]]:
    """The twin's clipped distances (records, facilities)."""
    domain = objective.domain
    unit = reference.record_units(domain, uniform=True)[0]
    low, high = (reference.round_half_even(reference.Fraction(v) / unit) for v in objective.clip)
    shift = round(math.log2(reference.Fraction(objective.unit) / unit))
    assert shift == 0 or (high - low) >> (shift - 1) >= 1 << (objective.bits - 1)  # not too coarse
    rows = reference.records(X, domain, uniform=True)
    facilities = [[reference.round_half_even(reference.Fraction(float(v)) / unit) for v in f]
                  for f in places]  # fmt: skip
    twin = reference.clipped_distance if objective.metric == "l1" else reference.clipped_root
    table = [[twin(x, f, low, high, shift) for f in facilities] for x in rows]
    assert max(map(max, table)) < 1 << objective.bits
    return table


def answers(objective: FacilityObjective, P: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that an objective computes from its records."""
    m, k = P.shape
    which = np.arange(m) % k
    growth = objective.growth()
    growth.add(int(P[0, 0]))
    return {
        "scores": objective.scores(P),
        "moves": objective.at(P[0]).scores(which, P[np.arange(m), which]),
        "all moves": objective.at(P[0]).all_scores(),
        "additions": growth.scores(),
        "covered": growth.covered(objective.largest // 3),
    }


def onehot(rng: np.random.Generator, n: int) -> np.ndarray:
    """Categorical records: one of eight, one of three, one of nine."""
    parts = [np.eye(size)[rng.integers(0, size, n)] for size in (8, 3, 9)]
    return np.hstack(parts)


@pytest.fixture(params=["real", "one-hot", "sparse", "schema"])
def problem(request, rng):
    """(records, facilities, clip, domain)."""
    if request.param == "real":
        return rng.uniform(-1.2, 1.2, (150, 5)), rng.uniform(-1, 1, (37, 5)), (0.5, 3.7), None
    if request.param == "one-hot":
        return onehot(rng, 150), onehot(rng, 37), (1.0, 6.0), Box(0, 1)
    if request.param == "sparse":
        X = rng.uniform(0, 1, (150, 20)) * (rng.random((150, 20)) < 0.2)
        return X, rng.uniform(-0.3, 1.4, (37, 20)), (0.0, 9.0), Box(0, 1)
    domain = Schema({"c": Categorical("abcdefghijklmno"), "e": Categorical("uv", other=True)})
    places = domain.points(6, rng)
    X = np.column_stack([rng.choice(list("abc"), 150), rng.choice(list("uvw"), 150)]).astype(object)
    return X, places[rng.integers(0, 6, 37)], (0.0, 4.0), domain


def test_one_hot_and_dense_records_are_measured_in_two_ways():
    """The two kernels that these tests compare are really used."""
    rng = np.random.default_rng(0)
    X = onehot(rng, 30)
    assert isinstance(pack(X, Box(0, 1, 20), uniform=True), SparseRecords)
    assert isinstance(pack(X + 0.1, Box(0, 2, 20), uniform=True), DenseRecords)


# ------------------------------------------------------------------------------ against the twins


def assert_equals_the_twin(X, places, clip, domain, **settings):
    objective = FacilityObjective(X, places, clip, domain, **settings)
    table = table_of(objective, X, places)
    P = np.arange(len(places))[:, None]
    costs = [-reference.facility_cost(table, C) for C in P.tolist()]
    assert objective.scores(P).tolist() == costs


@pytest.mark.few(4)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_scores_equal_the_twin(problem, k, bits, metric, rng):
    X, places, clip, domain = problem
    objective = FacilityObjective(X[:40], places, clip, domain, bits=bits, metric=metric)
    table = table_of(objective, X[:40], places)
    P = rng.integers(0, len(places), (6, k))
    assert objective.scores(P).tolist() == [-reference.facility_cost(table, C) for C in P.tolist()]
    at = objective.at(P[0])
    which, new = rng.integers(0, k, 9), rng.integers(0, len(places), 9)
    for i, f, score in zip(which, new, at.scores(which, new).tolist(), strict=True):
        changed = P[0].tolist()
        changed[i] = f
        assert score == -reference.facility_cost(table, changed)
    growth = objective.growth()
    for member in P[0].tolist():
        before = growth.members.tolist()
        costs = [reference.facility_cost(table, [*before, f]) for f in range(len(places))]
        assert (-growth.scores()).tolist() == costs
        for radius in (0, objective.largest // 2, objective.largest - 1):
            assert growth.covered(radius).tolist() == reference.coverage(table, before, radius)
        growth.add(member)


@given(
    data=st.data(),
    bits=st.sampled_from(BITS),
    metric=st.sampled_from(METRICS),
    low=st.integers(0, 30),
    span=st.one_of(st.integers(1, 2000), st.sampled_from([255, 256, 257, 509, 511, 512, 1023])),
)
def test_any_small_problem_equals_the_twin(data, bits, metric, low, span):
    """Clips in record units around powers of two, where a rounded distance needs one bit more."""
    grid = Grid(a=12)
    d, f, n = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 12)))
    values = st.one_of(st.integers(0, 4096), st.sampled_from([0, 255, 256, 510, 511, 512, 4096]))

    def rows(count):
        part = st.lists(values, min_size=d, max_size=d)
        return np.array(data.draw(st.lists(part, min_size=count, max_size=count)))

    X, places = rows(n) / 4096, rows(f) / 4096
    objective = FacilityObjective(
        X, places, (low / 4096, (low + span) / 4096), Box(0, 1, d, grid=grid), bits=bits,
        metric=metric,
    )  # fmt: skip
    table = table_of(objective, X, places)
    P = np.arange(f)[:, None]
    assert objective.scores(P).tolist() == [-reference.facility_cost(table, C) for C in P.tolist()]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("below", [0, 1, 2])
def test_the_farthest_distance_fits_its_bytes(bits, below):
    """A span just below a power of two rounds up to it; it must not come out as 0."""
    span = 2 ** (bits + 1) - 1 - below
    unit = 2.0**-12
    x = np.array([[0.0] * 40, [1.0] * 40])  # 40 in l1, beyond every clip here
    objective = FacilityObjective(x, np.zeros((1, 40)), (0, span * unit), Box(0, 1), bits=bits)
    worth = -objective.scores([[0]])[0] * objective.unit
    assert abs(worth - span * unit) <= objective.unit


def test_a_clip_beyond_every_distance_is_no_clip():
    x, places = np.array([[0.0, 1.0], [0.25, 0.5]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    for high in (2.0, 1e3, 1e9, 1e30):
        objective = FacilityObjective(x, places, (0, high), Box(0, 1))
        scores = objective.scores([[0], [1], [0]]) * objective.unit
        assert scores == pytest.approx([-1.75, -2.25, -1.75], abs=2 * objective.unit)


def test_a_clip_narrower_than_a_unit_counts_nothing_or_little():
    objective = FacilityObjective(np.eye(2), np.zeros((1, 2)), (0.5, 0.5 + 1e-9), Box(0, 1))
    assert -1 <= objective.scores([[0]])[0] * objective.unit <= 0


@pytest.mark.few(6)
@pytest.mark.parametrize("reach", [0, 2**30], ids=["32 bits", "16 bits"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("a", [10, 12, 13, 14])
@pytest.mark.parametrize("d", [1, 2, 7, 30, 31, 32])
def test_sums_of_16_bits_equal_the_twin(reach, bits, a, d, monkeypatch, rng):
    """Records and facilities at the ends of their columns, and outside them, over many chunks."""
    monkeypatch.setattr(facilities, "SHORT_REACH", reach)
    grid = Grid(a=a)
    ends = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    outside = 1.5 if a < 14 else 0.99  # two units apart, 16 bits have no room for more
    X, places = rng.choice(ends, (19, d)), outside * rng.choice(ends, (6, d))
    X[0], X[1], places[0], places[1] = -1.0, 1.0, min(outside, 1.0), -min(outside, 1.0)
    X[2:9], places[2:4] = rng.uniform(-1, 1, (7, d)), rng.uniform(-0.9, 0.9, (2, d))
    for clip in ((0.0, 3.0 * d), (0.4 * d, 1.1 * d), (1.9 * d, 2.0 * d)):
        assert_equals_the_twin(X, places, clip, Box(-1, 1, d, grid=grid), bits=bits)


# --------------------------------------------------------------------------------- zeros and ones


@pytest.fixture(params=[True, False], ids=["codes", "lists"])
def compared(request, monkeypatch):
    """Zeros and ones compared four columns at a time, or by lists of ones, on any CPU."""
    monkeypatch.setattr(kernels, "QUICK_CODES", request.param)
    seen = []

    def code_distances(*args):
        seen.append(args)
        return plain(*args)

    plain = kernels.code_distances
    monkeypatch.setattr(kernels, "code_distances", code_distances)
    return lambda: len(seen) > 0


@pytest.mark.few(6)
@pytest.mark.parametrize("d", [4, 5, 8, 9, 17, 251, 252, 253])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("metric", METRICS)
def test_zeros_and_ones_equal_the_twin(compared, d, bits, metric, request, rng):
    """Around a code, two codes of a byte, and the columns that bytes can count."""
    X, places = (rng.integers(0, 2, (n, d)).astype(float) for n in (131 if d < 9 else 9, 4))
    X[0], places[0], places[1] = 1.0, 0.0, 1.0
    widest = d if metric == "l1" else d**0.5
    for clip in ((0.0, widest), (0.3 * widest, 0.7 * widest), (1.5, 1.6), (0.0, 1e6)):
        assert_equals_the_twin(X, places, clip, Box(0, 1), bits=bits, metric=metric)
    assert compared() == (d <= 252 and "codes" in request.node.name)


@pytest.mark.parametrize("domain", [Box(0, 1), Box(-3, 4), L1Ball(2.0), L2Ball(1.0)], ids=repr)
@pytest.mark.parametrize("value", [1.0, 2.0, 4.0])
def test_ones_are_those_of_the_grid(compared, domain, value, rng):
    """Beyond the domain, records are clipped or shortened first, and are perhaps no ones then."""
    X, places = (value * (rng.random((n, 6)) < 0.4) for n in (40, 5))
    assert_equals_the_twin(X, places, (0.0, 9.0), domain)


def test_zeros_and_ones_of_any_format_are_compared(compared, rng):
    X, places = rng.integers(0, 2, (300, 9)), rng.integers(0, 2, (4, 9))
    P = np.arange(4)[:, None]
    expected = -np.abs(X[:, None] - places).sum(axis=(0, 2))
    for given_as in (X, X.astype(bool), X.astype(np.float32), np.asfortranarray(X), sp.csr_array(X),
                     pd.DataFrame(X)):  # fmt: skip
        objective = FacilityObjective(given_as, places, (0, 9), Box(0, 1))
        assert np.array_equal(objective.scores(P) * objective.unit, expected)


def test_what_is_not_finite_is_refused_among_zeros_and_ones(compared):
    for value in (math.nan, math.inf):
        X = np.eye(4)
        X[2, 1] = value
        with pytest.raises(InputError, match="X must be finite"):
            FacilityObjective(X, np.eye(4), (0, 4), Box(0, 1))


@given(
    counts=st.lists(st.integers(0, 255), min_size=128, max_size=128),
    values=st.lists(st.integers(0, 65535), min_size=2, max_size=256),
)
@example(counts=[0, 1, 2, 255] * 32, values=[7, 7])
def test_tables_of_sixteen_keep_every_value(counts, values):
    """One record a count: what is looked up is the value of that count, or the last."""
    values = np.sort(values)
    stored, least = sixteens(values)
    codes = np.zeros((18, 128), dtype=np.uint8)
    for r, count in enumerate(counts):
        codes[:, r] = [min(15, max(0, count - 15 * j)) for j in range(18)]
    out = np.empty((1, 128), dtype=np.uint16)
    ascending = np.tile(np.arange(16, dtype=np.uint8), (16, 1))
    kernels.code_distances(codes, np.zeros((1, 18), np.uint8), ascending, stored, least, out, 1)
    assert out[0].tolist() == [values[min(count, len(values) - 1)] for count in counts]


# -------------------------------------------------------------- what may not change a single bit


@pytest.mark.parametrize("bits", BITS)
def test_order_of_rows_does_not_matter(problem, bits, rng):
    X, places, clip, domain = problem
    P = rng.integers(0, len(places), (12, 4))
    expected = answers(FacilityObjective(X, places, clip, domain, bits=bits), P)
    shuffled = FacilityObjective(X[rng.permutation(len(X))], places, clip, domain, bits=bits)
    same(answers(shuffled, P), expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("bits", BITS)
@settings(max_examples=15)
@given(shard=st.lists(st.integers(0, 3), min_size=50, max_size=50))
def test_scores_of_shards_add_up(bits, shard):
    """Some shards are one-hot and some are not: the two ways to a distance must agree."""
    rng = np.random.default_rng(9)
    X, places, shard = onehot(rng, 50), onehot(rng, 20), np.array(shard)
    X[rng.integers(0, 50, 5)] *= 0.7
    P = rng.integers(0, 20, (8, 3))
    whole = answers(FacilityObjective(X, places, (1, 5), Box(0, 1), bits=bits), P)
    parts = [
        answers(FacilityObjective(X[shard == s], places, (1, 5), Box(0, 1), bits=bits), P)
        for s in np.unique(shard)
    ]
    same({key: sum(part[key] for part in parts) for key in whole}, whole)


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", BITS)
def test_number_of_threads_does_not_matter(problem, bits, threads_used, rng):
    X, places, clip, domain = problem
    X = np.concatenate([X] * 10)
    P = rng.integers(0, len(places), (20, 4))
    objective = FacilityObjective(X, places, clip, domain, 1, bits=bits)
    expected = answers(objective, P) | {"range": objective.range(P, "replace")}
    for n_threads in (2, 3, 4, 7):
        threads_used.clear()
        objective = FacilityObjective(X, places, clip, domain, n_threads, bits=bits)
        same(answers(objective, P) | {"range": objective.range(P, "replace")}, expected)
        assert set(threads_used) == {threads.resolve(n_threads)}


@pytest.mark.few(8)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 127, 128, 129, 1023, 1024, 1025])
def test_a_score_is_the_sum_of_its_records_integers(n, bits, rng):
    """Around a panel, a strip and a tile."""
    pool, places = rng.uniform(0, 1, (8, 3)), rng.uniform(0, 1, (6, 3))
    which = rng.integers(0, 8, n)
    P = rng.integers(0, 6, (7, 2))
    singles = [FacilityObjective(x[None], places, (0, 2), Box(0, 1), bits=bits) for x in pool]
    each = np.array([answers(single, P)["scores"] for single in singles])
    moves = np.array([answers(single, P)["moves"] for single in singles])
    got = answers(FacilityObjective(pool[which], places, (0, 2), Box(0, 1), bits=bits), P)
    assert np.array_equal(got["scores"], each[which].sum(axis=0))
    assert np.array_equal(got["moves"], moves[which].sum(axis=0))


def test_length_of_slices_does_not_matter(problem, knobs, rng):
    X, places, clip, domain = problem
    P = rng.integers(0, len(places), (12, 4))
    expected = answers(FacilityObjective(X, places, clip, domain), P)
    knobs(slice_work=1.0)
    same(answers(FacilityObjective(X, places, clip, domain), P), expected)


def test_format_of_the_input_does_not_matter(rng, tmp_path):
    whole = (onehot(rng, 200)).astype(np.int64)
    places = onehot(rng, 10)
    P = rng.integers(0, 10, (9, 3))
    expected = answers(FacilityObjective(whole, places, (0, 5), Box(0, 1)), P)
    X = whole.astype(np.float64)
    X.setflags(write=False)
    on_disk = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=X.shape)
    on_disk[:] = whole
    for given_as in (X, np.asfortranarray(X), X.astype(np.float32), whole.astype(bool), on_disk,
                     np.repeat(whole, 2, axis=1)[:, ::2], sp.csr_array(whole), sp.csc_array(X),
                     pd.DataFrame(whole), X.tolist()):  # fmt: skip
        same(answers(FacilityObjective(given_as, places, (0, 5), Box(0, 1)), P), expected)
    same(answers(FacilityObjective(X, places.tolist(), [0, 5], Box(0, 1)), P), expected)
    same(answers(FacilityObjective(X, places, (0, 5), Box(0, 1)), P.astype(np.uint8)), expected)


def test_a_set_scores_the_same_in_any_company_and_order(problem, rng):
    X, places, clip, domain = problem
    objective = FacilityObjective(X, places, clip, domain)
    P = rng.integers(0, len(places), (9, 5))
    together = objective.scores(P)
    assert np.array_equal(together, [objective.scores(C[None])[0] for C in P])
    assert np.array_equal(objective.scores(P[:, ::-1]), together)
    assert np.array_equal(objective.scores(np.hstack([P, P[:, :2]])), together)


# ------------------------------------------------------------------------------ one-facility swaps


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_swaps_equal_full_scores_along_a_chain_of_steps(problem, k, bits, rng):
    X, places, clip, domain = problem
    objective = FacilityObjective(X, places, clip, domain, bits=bits)
    members = rng.integers(0, len(places), k)
    at = objective.at(members)
    for _ in range(5):
        assert np.array_equal(at.members, members)
        which, new = rng.integers(0, k, 11), rng.integers(0, len(places), 11)
        changed = np.tile(members, (11, 1))
        changed[np.arange(11), which] = new
        assert np.array_equal(at.candidates(which, new), changed)
        assert np.array_equal(at.scores(which, new), objective.scores(changed))
        at.step(int(which[0]), int(new[0]))
        members = changed[0]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 8191, 8192, 8193, 20_000])
def test_all_swaps_equal_full_scores_for_any_number_of_records(n, bits, rng):
    """Around a turn of eight and a block; facilities that do not fill the last eight."""
    X, places = rng.integers(0, 9, (n, 2)) / 8, rng.integers(0, 9, (13, 2)) / 8
    objective = FacilityObjective(X, places, (0, 1.5), Box(0, 1), bits=bits)
    for members in ([4], [4, 4], [12, 0, 3, 7, 8]):
        at = objective.at(members)
        which, what = np.divmod(np.arange(len(members) * 13), 13)
        full = objective.scores(at.candidates(which, what))
        assert np.array_equal(at.all_scores().ravel(), full)
        assert np.array_equal(at.scores(which, what), full)  # many moves: by the same pass
        assert np.array_equal(at.scores(which[:9], what[:9]), full[:9])  # few: one by one
        assert at.prior(which, what).tolist() == [0] * len(which)
        assert at.w.tolist() == at.model.tolist() == members


def test_sums_of_the_farthest_distances_do_not_wrap():
    """Twenty thousand records at the largest number that two bytes hold."""
    objective = FacilityObjective.of_distances(np.full((20_000, 9), 65535.0), (0.0, 65535.0))
    assert objective.largest == 65535
    assert (objective.at([0, 1]).all_scores() == -20_000 * 65535).all()
    assert (objective.growth().scores() == -20_000 * 65535).all()


def test_no_swaps_have_no_scores():
    at = FacilityObjective(np.eye(2), np.eye(2), (0, 1), Box(0, 1)).at([0, 1])
    none = at.scores(np.empty(0, dtype=int), np.empty(0, dtype=int))
    assert (none.shape, none.dtype) == ((0,), np.int64)


def test_a_refused_step_leaves_the_parent_where_it_was():
    at = FacilityObjective(np.eye(2), np.eye(2), (0, 1), Box(0, 1)).at([0, 1])
    at.members[0] = 1  # a copy
    before = at.scores([0], [1])
    for which, facility in ((0, 2), (2, 0), (0, -1)):
        with pytest.raises(ValueError, match=r"indices|positions"):
            at.step(which, facility)
        assert at.members.tolist() == [0, 1]
        assert np.array_equal(at.scores([0], [1]), before)


# ------------------------------------------------------------------------------------------ ranges


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("clip", [(0.0, 1.0), (0.3, 0.9), (0.0, 40.0), (1.0, 3.0)])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["box", "l1", "one-hot"])
def test_range_is_never_exceeded_by_integer_scores(name, metric, clip, bits, rng):
    """Over corners, the facilities themselves and random records."""
    domain = {"box": Box(-1, 1, 3), "l1": L1Ball(1.5, 4), "one-hot": Box(0, 1, 20)}[name]
    if name == "one-hot":
        X, places = onehot(rng, 80), onehot(rng, 15)
    else:
        corners = np.array(reference.corners(domain)) * domain.record_units()
        places = rng.uniform(domain.low, domain.high, (15, domain.width))
        X = np.vstack([corners, places, rng.uniform(domain.low, domain.high, (60, domain.width))])
    singles = [FacilityObjective(x[None], places, clip, domain, bits=bits, metric=metric)
               for x in X]  # fmt: skip
    for k in (1, 3):
        P = rng.integers(0, 15, (8, k))
        P[1] = P[0]
        P[1, 0] = (P[0, 0] + 1) % 15  # siblings
        q = np.array([single.scores(P) for single in singles])
        for adjacency in ADJACENCIES:
            assert reference.realised_range(q, adjacency) <= singles[0].range(P, adjacency)
            pair = reference.realised_range(q[:, :2], adjacency)
            assert pair <= singles[0].range(P[:2], adjacency)


@pytest.mark.few(1)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("clip", [(0.0, 0.7), (0.0, 4.0), (0.5, 1.0)])
def test_range_is_within_a_quarter_of_brute_force_on_average(clip, k, rng):
    grid = np.array(np.meshgrid(*[np.linspace(-1, 1, 41)] * 2)).reshape(2, -1).T
    places = rng.uniform(-1, 1, (12, 2))
    X = np.vstack([grid, places])
    objective = FacilityObjective(X, places, clip, Box(-1, 1))
    table = np.array(table_of(objective, X, places))
    ratios = []
    for _ in range(6):
        P = np.array([rng.choice(12, k, replace=False) for _ in range(6)])
        q = -np.stack([table[:, C].min(axis=1) for C in P], axis=1)
        for adjacency in ADJACENCIES:
            ratios.append(objective.range(P, adjacency) / reference.realised_range(q, adjacency))
    assert min(ratios) >= 1
    assert np.mean(ratios) <= 1.25


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_range_of_identical_sets_is_zero(adjacency):
    objective = FacilityObjective(np.eye(3), np.eye(3), (0, 1), Box(0, 1))
    assert objective.range([[0, 2]], adjacency) == 0
    assert objective.range([[0, 2], [2, 0]], adjacency) == 0


def test_range_is_at_most_the_clip_of_one_or_two_records():
    objective = FacilityObjective(np.eye(3), np.eye(3), (0.5, 1), Box(0, 1))
    assert objective.range([[0], [1]], "add_remove") * objective.unit == 0.5
    assert objective.range([[0], [1]], "replace") * objective.unit == 1.0


def test_range_and_prior_do_not_depend_on_records(problem, rng):
    X, places, clip, domain = problem
    domain = domain or Box(-1, 1, 5)
    one, other = (FacilityObjective(rows, places, clip, domain) for rows in (X[:1], X))
    P = rng.integers(0, len(places), (6, 3))
    for adjacency in ADJACENCIES:
        assert one.range(P, adjacency) == other.range(P, adjacency)
    assert other.prior(P).tolist() == [0] * 6
    assert one.unit == other.unit


@pytest.mark.few(1)
@pytest.mark.parametrize("clip", [(0.0, 1.0), (0.3, 0.9), (0.0, 40.0)])
@pytest.mark.parametrize("metric", METRICS)
def test_ranges_of_views_are_never_exceeded(metric, clip, rng):
    """All swaps of a set and all additions to it, over corners, facilities and random records."""
    domain = Box(-1, 1, 2)
    corners = np.array(reference.corners(domain)) * domain.record_units()
    places = rng.uniform(-1, 1, (90, 2))
    X = np.vstack([corners, places, rng.uniform(-1, 1, (60, 2))])
    singles = [FacilityObjective(x[None], places, clip, domain, metric=metric) for x in X]
    for members in ([3], [3, 50], [0, 1, 2, 3, 4, 5, 6]):
        views = [single.at(members) for single in singles]
        growths = [single.growth() for single in singles]
        for growth in growths:
            for member in members:
                growth.add(member)
        which, what = np.divmod(np.arange(len(members) * 90), 90)
        swaps = np.array([view.scores(which, what) for view in views])
        additions = np.array([growth.scores() for growth in growths])
        some = rng.choice(len(which), 40, replace=False)
        for adjacency in ADJACENCIES:
            found = reference.realised_range(additions, adjacency)
            assert found <= growths[0].range(adjacency)
            found = reference.realised_range(swaps[:, some], adjacency)
            assert found <= views[0].range(which[some], what[some], adjacency)
            if len(members) > 2:  # enough moves that not all pairs are compared
                assert len(which) > 256
                found = reference.realised_range(swaps[:, ::3], adjacency)
                assert found <= views[0].range(which, what, adjacency)
    empty = [single.growth() for single in singles]
    first = np.array([growth.scores() for growth in empty])
    for adjacency in ADJACENCIES:
        assert reference.realised_range(first, adjacency) <= empty[0].range(adjacency)


def test_ranges_of_views_shrink_with_the_distances(rng):
    """A set that covers the space leaves little to choose; far facilities count with hi - lo."""
    grid = np.linspace(0, 1, 20)
    places = np.array(np.meshgrid(grid, grid)).reshape(2, -1).T
    objective = FacilityObjective(places, places, (0, 2), Box(0, 1))
    growth = objective.growth()
    sizes = [growth.range("replace")]
    for member in (0, 399, 19, 380, 210):
        growth.add(member)
        sizes.append(growth.range("replace"))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 3
    at = objective.at([0, 399, 19, 380, 210])
    which, what = np.divmod(np.arange(2000), 400)
    assert at.range(which, what, "replace") < objective.spread([[0]], "replace") / 1.5
    assert at.range([1], [5], "replace") == 0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_facility_leaves_no_choice(adjacency):
    growth = FacilityObjective(np.eye(2), np.eye(2)[:1], (0, 1), Box(0, 1)).growth()
    assert growth.range(adjacency) == 0


# ------------------------------------------------------------------------------- own distances


def city(records, places):
    """A metric of somebody's own: l1, by hand."""
    return np.abs(np.asarray(records)[:, None] - np.asarray(places)).sum(axis=2)


@pytest.mark.parametrize("bits", BITS)
def test_own_distances_are_clipped_and_rounded_by_us(bits, rng):
    X, places = rng.uniform(0, 1, (70, 3)), rng.uniform(0, 1, (9, 3))
    low, high = 0.4, 1.3
    objective = FacilityObjective(X, places, (low, high), bits=bits, metric=city)
    expected = np.rint((np.clip(city(X, places), low, high) - low) / objective.unit)
    P = rng.integers(0, 9, (6, 3))
    assert objective.largest * objective.unit == pytest.approx(high - low, abs=objective.unit)
    assert (1 << bits) / 2 - 1 <= objective.largest < 1 << bits
    assert (-objective.scores(P)).tolist() == [expected[:, C].min(axis=1).sum() for C in P]
    ready = FacilityObjective.of_distances(city(X, places), (low, high), bits=bits)
    same(answers(ready, P), answers(objective, P))
    frame = FacilityObjective(pd.DataFrame(X), places, (low, high), bits=bits, metric=city)
    same(answers(frame, P), answers(objective, P))


def test_own_distances_fill_the_bytes_without_overflow():
    """A width just below a power of two must not round up to one."""
    for width in (1.0, 1 - 2.0**-17, 1 - 2.0**-16, 1 - 2.0**-15, 0.5, 3.7):
        objective = FacilityObjective.of_distances([[0.0, 9.0]], (0.0, width))
        assert objective.largest < 1 << 16
        assert objective.scores([[1]])[0] * objective.unit == pytest.approx(-width, rel=1e-4)


def test_own_distances_in_blocks_are_those_of_the_whole(monkeypatch, rng):
    X, places = rng.uniform(0, 1, (70, 3)), rng.uniform(0, 1, (9, 3))
    P = rng.integers(0, 9, (6, 3))
    expected = answers(FacilityObjective(X, places, (0, 3), metric=city), P)
    monkeypatch.setattr("privfit.records.facilities.BLOCK", 9 * 8)
    same(answers(FacilityObjective(X, places, (0, 3), metric=city), P), expected)


@pytest.mark.parametrize(("adjacency", "sides"), [("replace", 2), ("add_remove", 1)])
def test_own_distances_have_the_range_of_the_clip(adjacency, sides):
    objective = FacilityObjective.of_distances(np.eye(4), (0.0, 0.5))
    assert objective.range([[0], [1]], adjacency) == sides * objective.largest
    assert objective.range([[0, 1], [1, 0]], adjacency) == 0
    assert objective.growth().range(adjacency) == sides * objective.largest
    single = [FacilityObjective.of_distances(row[None], (0.0, 0.5)) for row in np.eye(4)]
    q = np.array([one.scores([[0], [1]]) for one in single])
    assert reference.realised_range(q, adjacency) == sides * objective.largest  # reached


# --------------------------------------------------------------------------- other views of records


@pytest.mark.parametrize("bits", BITS)
def test_a_narrowed_objective_clips_further(bits, rng):
    X, places = rng.uniform(0, 1, (50, 3)), rng.uniform(0, 1, (20, 3))
    wide = FacilityObjective(X, places, (0.2, 2.5), Box(0, 1), bits=bits)
    low, high = wide.largest // 5, wide.largest // 2
    narrow = wide.narrowed(low, high)
    table = np.clip(table_of(wide, X, places), low, high) - low
    P = rng.integers(0, 20, (6, 3))
    assert (-narrow.scores(P)).tolist() == [table[:, C].min(axis=1).sum() for C in P]
    assert narrow.clip == (0.2 + low * wide.unit, 0.2 + high * wide.unit)
    for adjacency in ADJACENCIES:
        assert narrow.range(P, adjacency) <= narrow.spread(P, adjacency)
    assert narrow.spread(P, "replace") == 2 * (high - low)
    assert wide.spread(P, "add_remove") == wide.largest  # the wide one stays as it was


def test_ranked_distances_are_those_of_sorting(monkeypatch, rng):
    X, places = rng.uniform(0, 1, (50, 3)), rng.uniform(0, 1, (20, 3))
    objective = FacilityObjective(X, places, (0, 3), Box(0, 1))
    table = np.array(table_of(objective, X, places))
    some = np.array([4, 1, 17, 9, 12])
    for step in (1 << 22, 5 * 7):
        monkeypatch.setattr("privfit.records.facilities.BLOCK", step)
        for rank in range(5):
            nearest = packed(objective).distances().nearest(some, rank)
            assert np.array_equal(nearest, np.sort(table[:, some], axis=1)[:, rank])


def test_counts_are_of_the_nearest_member_and_ties_go_to_the_first(rng):
    X, places = rng.integers(0, 5, (90, 2)) / 4, rng.integers(0, 5, (12, 2)) / 4
    objective = FacilityObjective(X, places, (0, 2), Box(0, 1))
    growth = objective.growth()
    for member in (5, 0, 11, 3):
        growth.add(member)
    nearest = np.array(table_of(objective, X, places))[:, [5, 0, 11, 3]].argmin(axis=1)
    assert growth.counts().tolist() == np.bincount(nearest, minlength=4).tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_public_points_are_measured_as_records_are(metric, rng):
    X, places = rng.uniform(-2, 2, (40, 3)), rng.uniform(-1, 1, (6, 3))
    objective = FacilityObjective(X, places, (0, 9), Box(-1, 1), metric=metric)
    seen = np.array(reference.records(X, objective.domain, uniform=True)) * objective.record_unit
    assert objective.record_unit == 2.0**-12
    name = "cityblock" if metric == "l1" else "euclidean"
    assert objective.clipped(seen[:4]) == pytest.approx(cdist(seen[:4], objective.places(), name))
    assert objective.between(np.array([2]))[0, 2] == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_facilities_nearer_to_each_other_than_lo_stay_apart(metric, rng):
    """Only a facility itself is at distance 0, and none is farther than hi."""
    X, places = rng.uniform(-1, 1, (40, 3)), rng.uniform(-1, 1, (6, 3))
    objective = FacilityObjective(X, places, (8, 9), Box(-1, 1), metric=metric)
    name = "cityblock" if metric == "l1" else "euclidean"
    expected = cdist(objective.places()[[2, 4]], objective.places(), name)
    assert objective.between(np.array([2, 4])) == pytest.approx(expected)
    near = FacilityObjective(X, places, (0, 0.25), Box(-1, 1), metric=metric)
    assert near.between(np.array([2])).max() == 0.25


FORMS = {"ones": lambda X: (X > 0) * 1.0, "one": np.ones_like, "numbers": np.array,
         "sparse": sp.csr_array, "sparse ones": lambda X: sp.csr_array((X > 0) * 1.0)}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
def test_whether_records_have_cells_does_not_depend_on_them(d, metric, rng):
    """Zeros and ones of many columns are stored otherwise, and still have no cells."""
    X = rng.uniform(-1, 1, (40, d))
    for form in FORMS.values():
        objective = FacilityObjective(form(X), X[:5], (0, 9), Box(-1, 1), metric=metric)
        assert objective.has_cells == (d <= 3)
        assert objective.bounds[1].tolist() == [4096] * d


# ------------------------------------------------------------------------------------------- rest


def test_the_default_domain_comes_from_the_public_facilities(rng):
    places = np.array([[0.0, -3.0], [1.0, 5.0], [0.3, 2.0]])
    objective = FacilityObjective(rng.uniform(-99, 99, (20, 2)), places, (0, 100))
    assert (objective.domain.low <= places.min(axis=0)).all()
    assert (objective.domain.high >= places.max(axis=0)).all()
    assert np.array_equal(
        FacilityObjective(np.zeros((1, 2)), places, (0, 100)).domain.low, objective.domain.low
    )


def test_a_stored_distance_takes_one_or_two_bytes(rng):
    X, places = rng.uniform(0, 1, (1000, 2)), rng.uniform(0, 1, (50, 2))
    for bits in BITS:
        objective = FacilityObjective(X, places, (0, 2), Box(0, 1), bits=bits)
        matrix = packed(objective).distances().matrix
        assert matrix.nbytes <= 1.2 * 50 * 1000 * bits // 8
        assert matrix.shape[1] >= 1000


def test_schema_records_are_their_encoded_rows(rng):
    domain, X = case("schema").domain, case("schema").rows(rng, 60)
    places = domain.points(8, rng)
    encoded = domain.encode(X).toarray() / 4096
    P = rng.integers(0, 8, (5, 2))
    expected = answers(FacilityObjective(encoded, places, (0, 5), Box(0, 1)), P)
    same(answers(FacilityObjective(X, places, (0, 5), domain), P), expected)
