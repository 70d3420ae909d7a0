"""Centres: costs are exact integers, whatever the way they are computed; ranges hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.cases import ADJACENCIES, GRIDS, case, same

from privfit import Box, CentersObjective, L1Ball, L2Ball
from privfit._kernels import threads
from privfit.domains import Grid

POWERS = (2, 1)

DOMAINS = {
    "box": Box(-1, 1, 3),
    "one column": Box(0, 10, 1),
    "shifted box": Box([2, -7, 0, 5], [3, -1, 8, 5.5]),
    "small box": Box(-0.01, 0.02, 2),
    "l1": L1Ball(1.5, 4),
    "l2": L2Ball(0.7, 3),
    "large l2": L2Ball(900.0, 2),
    "schema": case("schema").domain,
}


def rows_of(name: str, rng: np.random.Generator, n: int):
    """Raw records, some of them outside the domain."""
    if name == "schema":
        return case("schema").rows(rng, n)
    domain = DOMAINS[name]
    middle, half = (domain.high + domain.low) / 2, (domain.high - domain.low) / 2
    return middle + half * rng.uniform(-1.2, 1.2, (n, domain.width))


def sets_of(objective: CentersObjective, rng: np.random.Generator, m: int) -> np.ndarray:
    """Sets of centres on the grid: most inside, the last with centres beyond the domain."""
    domain, k = objective.domain, objective.n_clusters
    P = objective.snap(np.array([rng.uniform(domain.low, domain.high, (k, domain.width))
                                 for _ in range(m)]))  # fmt: skip
    P[-1] = objective.snap(P[-1] * 3)
    return P


def whole_units(objective: CentersObjective, P: np.ndarray) -> list:
    """Centres as Python integers of the records' grid."""
    unit = float(reference.record_units(objective.domain, uniform=True)[0])
    whole = P / unit
    assert np.array_equal(whole, np.rint(whole))
    return whole.astype(np.int64).tolist()


def answers(objective: CentersObjective, P: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that an objective computes from its records."""
    k, m = objective.n_clusters, len(P)
    which = np.arange(m) % k
    counts, sums = objective.lloyd(P[0])
    far_counts, far_sums = objective.lloyd(P[-1])
    return {
        "scores": objective.scores(P),
        "moves": objective.at(P[0]).scores(which, P[np.arange(m), which]),
        "counts": counts,
        "sums": sums,
        "far counts": far_counts,
        "far sums": far_sums,
    }


@pytest.fixture(params=[(n, p) for n in DOMAINS for p in POWERS], ids=lambda p: f"{p[0]}-{p[1]}")
def problem(request, rng):
    """(domain, power, records)."""
    name, power = request.param
    return DOMAINS[name], power, rows_of(name, rng, 150)


# ------------------------------------------------------------------------------ against the twins


@pytest.mark.few(13)
@pytest.mark.parametrize("k", [1, 3, 4, 6])
def test_scores_equal_the_twin(problem, k, rng):
    domain, power, X = problem
    X = X[:40]
    objective = CentersObjective(X, k, domain, power=power)
    P = sets_of(objective, rng, 4)
    rows = reference.records(X, domain, uniform=True)
    costs = [reference.centers_cost(rows, C, power) for C in whole_units(objective, P)]
    assert objective.scores(P).tolist() == [-cost for cost in costs]
    assert objective.unit == float(reference.record_units(domain, uniform=True)[0]) ** power


@pytest.mark.few(10)
@pytest.mark.parametrize("k", [1, 4, 5])
def test_lloyd_equals_the_twin(problem, k, rng):
    domain, power, X = problem
    X = X[:60]
    objective = CentersObjective(X, k, domain, power=power)
    rows = reference.records(X, domain, uniform=True)
    for C in sets_of(objective, rng, 3):
        counts, sums = objective.lloyd(C)
        expected = reference.lloyd(rows, whole_units(objective, C[None])[0], power)
        assert (counts.tolist(), sums.tolist()) == expected


@pytest.mark.few(6)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("k", [5, 6, 9, 64, 65])
@pytest.mark.parametrize(("n", "d"), [(7, 16), (257, 1), (270, 3), (40, 17), (24, 33)])
def test_lloyd_of_many_clusters_equals_the_twin(n, d, k, power, rng):
    """Around the clusters that are added by masks and by turned rows; with ties and extremes."""
    x, centers = (rng.choice([-4096, -1, 0, 1, 4096], (size, d)) for size in (n, k))
    x[n // 2 :] = x[0]  # a crowd
    centers[k // 2] = x[0]
    objective = CentersObjective(x / 4096, k, Box(-1, 1, d), power=power)
    counts, sums = objective.lloyd(centers / 4096)
    expected = reference.lloyd(x.tolist(), centers.tolist(), power)
    assert (counts.tolist(), sums.tolist()) == expected


@given(data=st.data(), power=st.sampled_from(POWERS), grid=st.sampled_from(GRIDS))
def test_any_small_problem_equals_the_twin(data, power, grid):
    d, k, n = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 18)))
    one = 1 << grid.a
    integers = st.one_of(st.integers(-one, one), st.integers(-2, 2))

    def table(rows):
        return data.draw(
            st.lists(st.lists(integers, min_size=d, max_size=d), min_size=rows, max_size=rows)
        )

    x, centers, new = table(n), table(k), table(3)
    objective = CentersObjective(np.array(x) / one, k, Box(-1, 1, d, grid=grid), power=power)
    C = np.array(centers) / one
    assert objective.scores(C[None]).tolist() == [-reference.centers_cost(x, centers, power)]
    counts, sums = objective.lloyd(C)
    assert (counts.tolist(), sums.tolist()) == reference.lloyd(x, centers, power)
    which = data.draw(st.lists(st.integers(0, k - 1), min_size=3, max_size=3))
    moved = objective.at(C).scores(which, np.array(new) / one)
    for i, c, score in zip(which, new, moved.tolist(), strict=True):
        changed = [*centers[:i], c, *centers[i + 1 :]]
        assert score == -reference.centers_cost(x, changed, power)


@pytest.mark.parametrize("power", POWERS)
def test_ties_go_to_the_lowest_index(power):
    x = np.array([[0.0], [0.5], [-0.5], [0.25]])
    objective = CentersObjective(x, 6, Box(-1, 1), power=power)
    counts, sums = objective.lloyd([[1.0], [-1.0], [1.0], [0.0], [0.0], [-1.0]])
    assert counts.tolist() == [1, 1, 0, 2, 0, 0]
    assert sums.tolist() == [[2048], [-2048], [0], [1024], [0], [0]]


@pytest.mark.few(5)
def test_every_record_is_counted_once(problem, rng):
    domain, power, X = problem
    objective = CentersObjective(X, 5, domain, power=power)
    counts, sums = objective.lloyd(sets_of(objective, rng, 1)[0])
    assert counts.sum() == len(X)
    rows = np.array(reference.records(X, domain, uniform=True))
    assert np.array_equal(sums.sum(axis=0), rows.sum(axis=0))


# -------------------------------------------------------------- what may not change a single bit


def test_order_of_rows_does_not_matter(problem, rng):
    domain, power, X = problem
    objective = CentersObjective(X, 3, domain, power=power)
    P = sets_of(objective, rng, 5)
    shuffled = CentersObjective(X[rng.permutation(len(X))], 3, domain, power=power)
    same(answers(shuffled, P), answers(objective, P))


@pytest.mark.few(1)
@pytest.mark.parametrize("power", POWERS)
@settings(max_examples=20)
@given(
    shard=st.lists(st.integers(0, 3), min_size=50, max_size=50), name=st.sampled_from([*DOMAINS])
)
def test_answers_of_shards_add_up(power, shard, name):
    rng = np.random.default_rng(3)
    domain, X, shard = DOMAINS[name], rows_of(name, rng, 50), np.array(shard)
    objective = CentersObjective(X, 3, domain, power=power)
    P = sets_of(objective, rng, 5)
    parts = [
        answers(CentersObjective(X[shard == s], 3, domain, power=power), P)
        for s in np.unique(shard)
    ]
    whole = answers(objective, P)
    same({key: sum(part[key] for part in parts) for key in whole}, whole)


@pytest.mark.few(2)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("k", [1, 5])
def test_number_of_threads_does_not_matter(power, k, threads_used, rng):
    X = rng.uniform(-1, 1, (3000, 3))
    objective = CentersObjective(X, k, Box(-1, 1), power=power, n_threads=1)
    P = sets_of(objective, rng, 6)
    P[-1] *= 16  # beyond 32 bits for squares
    expected = answers(objective, P) | {"range": objective.range(P, "replace")}
    for n_threads in (2, 3, 4, 7):
        threads_used.clear()
        objective = CentersObjective(X, k, Box(-1, 1), power=power, n_threads=n_threads)
        same(answers(objective, P) | {"range": objective.range(P, "replace")}, expected)
        assert set(threads_used) == {threads.resolve(n_threads)}


@pytest.mark.parametrize("rows", [16, 48, 240, 256, 4096])
@pytest.mark.parametrize("power", POWERS)
def test_size_of_tiles_does_not_matter(power, rows, knobs, rng):
    objective = CentersObjective(rng.uniform(-1, 1, (700, 5)), 6, Box(-1, 1), power=power)
    P = sets_of(objective, rng, 5)
    P[-1] *= 16
    expected = answers(objective, P)
    knobs(tile_rows=rows)
    same(answers(objective, P), expected)
    knobs(slice_work=1.0)
    same(answers(objective, P), expected)


@pytest.mark.few(6)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 255, 256, 257])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_score_is_the_sum_of_its_records_integers(n, d, rng):
    pool = rng.uniform(-1, 1, (8, d))
    which = rng.integers(0, 8, n)
    for power in POWERS:
        singles = [CentersObjective(x[None], 3, Box(-1, 1), power=power) for x in pool]
        P = sets_of(singles[0], rng, 5)
        each = np.array([single.scores(P) for single in singles])
        objective = CentersObjective(pool[which], 3, Box(-1, 1), power=power)
        assert np.array_equal(objective.scores(P), each[which].sum(axis=0))


@pytest.mark.parametrize("power", POWERS)
def test_format_of_the_input_does_not_matter(power, rng, tmp_path):
    whole = rng.integers(-9, 10, (200, 4)) * (rng.random((200, 4)) < 0.5)
    X = whole.astype(np.float64)
    objective = CentersObjective(X, 3, Box(-8, 8), power=power)
    P = sets_of(objective, rng, 5)
    expected = answers(objective, P)
    X.setflags(write=False)
    on_disk = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(200, 4))
    on_disk[:] = whole
    for given_as in (X, np.asfortranarray(X), X.astype(np.float32), whole, whole.astype(np.int8),
                     np.repeat(whole, 2, axis=1)[:, ::2], on_disk, sp.csr_array(whole),
                     sp.csc_array(X), pd.DataFrame(whole), X.tolist()):  # fmt: skip
        same(answers(CentersObjective(given_as, 3, Box(-8, 8), power=power), P), expected)


def test_a_set_scores_the_same_in_any_company(problem, rng):
    """Also beside sets whose distances do not fit in 32 bits."""
    domain, power, X = problem
    objective = CentersObjective(X, 3, domain, power=power)
    P = sets_of(objective, rng, 9)
    far = P.copy()
    far[4] *= 32
    together = objective.scores(P)
    assert np.array_equal(together, [objective.scores(C[None])[0] for C in P])
    assert np.array_equal(np.delete(objective.scores(far), 4), np.delete(together, 4))
    assert objective.scores(far)[4] == objective.scores(far[4:5])[0]


def test_centres_beyond_32_bits_equal_the_twin(rng):
    for power in POWERS:
        x = rng.integers(-4096, 4097, (30, 5)).tolist()
        objective = CentersObjective(np.array(x) / 4096, 2, Box(-1, 1), power=power)
        whole = rng.integers(-(2**19), 2**19, (4, 2, 5))
        P = whole / 4096
        costs = [reference.centers_cost(x, C, power) for C in whole.tolist()]
        assert objective.scores(P).tolist() == [-cost for cost in costs]
        counts, sums = objective.lloyd(P[0])
        assert (counts.tolist(), sums.tolist()) == reference.lloyd(x, whole[0].tolist(), power)
        moved = objective.at(P[0]).scores([0, 1], P[1])
        assert np.array_equal(
            moved, objective.scores(np.array([[P[1, 0], P[0, 1]], [P[0, 0], P[1, 1]]]))
        )


def test_order_of_centres_does_not_matter_to_the_cost(problem, rng):
    domain, power, X = problem
    objective = CentersObjective(X, 5, domain, power=power)
    P = sets_of(objective, rng, 4)
    assert np.array_equal(objective.scores(P[:, rng.permutation(5)]), objective.scores(P))


# ----------------------------------------------------------------------------- one-centre changes


@pytest.mark.few(16)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_changes_equal_full_scores_along_a_chain_of_steps(problem, k, rng):
    domain, power, X = problem
    objective = CentersObjective(X, k, domain, power=power)
    centers = sets_of(objective, rng, 2)[0]
    at = objective.at(centers)
    for _ in range(5):
        assert np.array_equal(at.centers, centers)
        which = rng.integers(0, k, 9)
        new = sets_of(objective, rng, 10)[:9, 0]
        new[-1] = objective.snap(new[-1] * 3)
        changed = np.tile(centers, (9, 1, 1))
        changed[np.arange(9), which] = new
        assert np.array_equal(at.candidates(which, new), changed)
        assert np.array_equal(at.scores(which, new), objective.scores(changed))
        index = int(rng.integers(0, k))
        at.step(index, new[0])
        centers = centers.copy()
        centers[index] = new[0]


@pytest.mark.parametrize("power", POWERS)
def test_changes_out_of_32_bits_and_back_equal_full_scores(power, rng):
    objective = CentersObjective(rng.uniform(-1, 1, (100, 4)), 2, Box(-1, 1), power=power)
    at = objective.at(np.zeros((2, 4)))
    near, far = np.full(4, 0.5), np.full(4, 100.0)
    for center in (near, far, near, -far):
        moves = [0, 1, 1], np.array([near, far, -near])
        assert np.array_equal(at.scores(*moves), objective.scores(at.candidates(*moves)))
        at.step(1, center)


def test_no_changes_have_no_scores():
    at = CentersObjective(np.eye(2), 2, Box(-1, 1)).at(np.eye(2))
    none = at.scores(np.empty(0, dtype=int), np.empty((0, 2)))
    assert (none.shape, none.dtype) == ((0,), np.int64)


def test_a_refused_step_leaves_the_parent_where_it_was():
    at = CentersObjective(np.eye(2), 2, Box(-1, 1)).at(np.eye(2))
    before = at.scores([0], [[0.5, 0.5]])
    for which, center in ((0, [0.3, 0.0]), (2, [0.0, 0.0]), (0, [2.0**30, 0.0]), (1, [0.0])):
        with pytest.raises(ValueError, match=r"grid|indices|too far|must match"):
            at.step(which, center)
        assert np.array_equal(at.centers, np.eye(2))
        assert np.array_equal(at.scores([0], [[0.5, 0.5]]), before)


# ------------------------------------------------------------------------------------------ ranges


def siblings(objective: CentersObjective, rng: np.random.Generator, step: float) -> np.ndarray:
    """All sets that move one coordinate of one centre to and fro."""
    domain, k, d = objective.domain, objective.n_clusters, objective.n_features
    parent = objective.snap(rng.uniform(domain.low, domain.high, (k, d)))
    moves = np.eye(k * d).reshape(-1, k, d) * step
    return objective.snap(np.concatenate([parent + moves, parent - moves]))


def records_to_try(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Corners of the domain, its boundary and its inside, in record units."""
    domain = DOMAINS[name]
    if name == "schema":
        return np.array(reference.corners(domain, uniform=True))
    x = rng.uniform(domain.low, domain.high, (n, domain.width))
    outward = x / np.abs(x).max(axis=1, keepdims=True) * np.abs(x).max() * 2
    x = np.concatenate([x, outward]) if name in ("l1", "l2", "large l2") else x
    return np.concatenate(
        [np.array(reference.corners(domain, uniform=True)), domain.quantise(x, uniform=True)]
    ).astype(np.int64)


def costs(x: np.ndarray, whole: np.ndarray, power: int) -> np.ndarray:
    """Minus the cost (t, m) of each record: exact in int64."""
    each = [(np.abs(x[:, None] - C[None]) ** power).sum(axis=2).min(axis=1) for C in whole]
    return -np.stack(each, axis=1)


@pytest.mark.few(16)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("name", [*DOMAINS])
def test_range_is_never_exceeded_by_integer_scores(name, power, k, rng):
    objective = CentersObjective(rows_of(name, rng, 3), k, DOMAINS[name], power=power)
    x = records_to_try(name, rng, 400)
    for P in (sets_of(objective, rng, 6), sets_of(objective, rng, 6)[:-1],
              siblings(objective, rng, float(objective.domain.high.max()) / 8)):  # fmt: skip
        whole = np.array(whole_units(objective, P))
        q = costs(x, whole, power)
        for adjacency in ADJACENCIES:
            assert reference.realised_range(q, adjacency) <= objective.range(P, adjacency)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("name", ["box", "one column", "shifted box"])
def test_range_is_that_of_the_table(name, power, adjacency, rng):
    """Distances are integers, so nothing is rounded; centres lie inside and outside the box."""
    domain = DOMAINS[name]
    unit = reference.record_units(domain, uniform=True)[0]
    ends = [(int(low / unit), int(high / unit)) for low, high in reference.declared_bounds(domain)]
    low, high = (list(end) for end in zip(*ends, strict=True))
    for k in (1, 3):
        objective = CentersObjective(rows_of(name, rng, 2), k, domain, power=power)
        for P in (
            sets_of(objective, rng, 4),
            sets_of(objective, rng, 2),
            siblings(objective, rng, 0.25)[:4],
        ):
            whole = whole_units(objective, P)
            expected = reference.box_centers_range(whole, low, high, power, adjacency)
            assert objective.range(P, adjacency) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("domain", [Box(-1, 1, 2), L1Ball(1.0, 2), L2Ball(1.0, 2)], ids=repr)
def test_range_is_within_a_quarter_of_brute_force_on_average(domain, power, rng):
    """Over random sets and siblings, one and three centres, both neighbour relations."""
    grid = np.array(np.meshgrid(*[np.linspace(-1, 1, 101)] * 2)).reshape(2, -1).T
    angle = np.linspace(0, 2 * np.pi, 721)
    rim = 2 * np.column_stack([np.cos(angle), np.sin(angle)])  # projected to the boundary
    x = domain.quantise(np.vstack([grid, rim])).astype(np.int64)
    ratios = []
    for k in (1, 3):
        objective = CentersObjective(np.zeros((1, 2)), k, domain, power=power)
        for _ in range(4):
            random = np.array([domain.points(k, rng) for _ in range(6)])
            for P in (random, siblings(objective, rng, 0.1)):
                q = costs(x, np.array(whole_units(objective, P)), power)
                for adjacency in ADJACENCIES:
                    brute = reference.realised_range(q, adjacency)
                    ratios.append(objective.range(P, adjacency) / brute)
    assert min(ratios) >= 1
    assert np.mean(ratios) <= 1.25


@pytest.mark.parametrize("grid", [Grid(a=4, b=10, c=6), Grid()], ids=str)
def test_range_of_privgene_example_1(grid):
    """t in 0..10, candidates 6, 7, 8, squared error: 40 rep, 28 ar (THEORY, check values)."""
    objective = CentersObjective(np.arange(11.0)[:, None], 1, Box(0, 10, grid=grid))
    P = np.array([6.0, 7.0, 8.0]).reshape(3, 1, 1)
    assert objective.range(P, "replace") == 40 / objective.unit
    assert objective.range(P, "add_remove") == 28 / objective.unit


def test_range_of_kmeans_siblings(rng):
    """k = 5, d = 10, one coordinate moved by 0.1: 0.80 (THEORY, check values)."""
    objective = CentersObjective(np.zeros((1, 10)), 5, Box(-1, 1))
    P = siblings(objective, rng, 0.1)
    assert objective.range(P, "replace") * objective.unit == pytest.approx(0.80, abs=0.02)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("power", POWERS)
def test_range_of_identical_sets_is_zero(power, adjacency, rng):
    objective = CentersObjective(np.zeros((1, 3)), 2, Box(-1, 1), power=power)
    C = sets_of(objective, rng, 2)[:1]
    assert objective.range(C, adjacency) == 0
    assert objective.range(np.repeat(C, 4, axis=0), adjacency) == 0


def test_range_and_prior_do_not_depend_on_records(problem, rng):
    domain, power, X = problem
    one = CentersObjective(X[:1], 3, domain, power=power)
    other = CentersObjective(X, 3, domain, power=power)
    P = sets_of(one, rng, 5)
    for adjacency in ADJACENCIES:
        assert one.range(P, adjacency) == other.range(P, adjacency)
    assert other.prior(P).tolist() == [0] * 5


# ------------------------------------------------------------------------------------------- rest


def test_snap_takes_the_nearest_point_of_the_grid(rng):
    objective = CentersObjective(np.zeros((1, 2)), 1, Box([0, 0], [1, 100]))
    P = rng.uniform(0, 100, (5, 3, 2))
    snapped = objective.snap(P)
    assert np.abs(snapped - P).max() <= 2.0**-6
    assert np.array_equal(snapped * 2**5, np.rint(snapped * 2**5))


@pytest.mark.parametrize("power", POWERS)
def test_thousands_of_columns_are_accepted(power, rng):
    """Centres inside the domain are exact at this width: 4096 columns of 13 bits squared."""
    x = rng.integers(-4096, 4097, (3, 4096))
    objective = CentersObjective(x / 4096, 1, Box(-1, 1), power=power)
    cost = reference.centers_cost(x.tolist(), [[0] * 4096], power)
    assert objective.scores(np.zeros((1, 1, 4096))).tolist() == [-cost]
