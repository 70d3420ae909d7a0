"""Post-processing of noisy Lloyd: the chain against its twin and its law, the linear program.

Statistical tests run on fixed seeds and compare p-values with 1e-7; there are four of them, so on
fresh seeds this file would raise a false alarm less than once in 1e6 runs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from makers import chains

import privfit.clustering.postprocess as module
from privfit import DiscreteLaplace, Ledger
from privfit._kernels import chain
from privfit._kernels.random import BitSource
from privfit.clustering.postprocess import LloydTrace, Progress, consistent, kmeans, mcmc
from privfit.privacy.ledger import Release

FALSE_ALARM = 1e-7


def lloyd_trace(
    d=2, k=3, T=3, n=400, kind="laplace", domain="box", scale=4.0, seed=0, means=None
):  # fmt: skip
    """A noisy Lloyd run on clusters that lie well apart; the trace and the records' own means."""
    rng = np.random.default_rng(seed)
    if means is None:
        means = rng.uniform(-0.8, 0.8, (k, d)) / (1 if domain == "box" else d)
    means = np.asarray(means)
    X = np.clip(means[np.arange(n) % k] + rng.normal(0, 0.02, (n, d)), -1, 1)
    used, counts, sums = [], [], []
    centers = means + rng.normal(0, 0.05, (k, d))
    for _ in range(T):
        nearest = np.square(X[:, None] - centers).sum(axis=2).argmin(axis=1)
        used.append(centers)
        exact = np.stack([np.bincount(nearest, column, k) for column in np.c_[np.ones(n), X].T], 1)
        noisy = exact + (rng.laplace if kind == "laplace" else rng.normal)(0, scale, exact.shape)
        counts.append(noisy[:, 0])
        sums.append(noisy[:, 1:])
        centers = np.clip(noisy[:, 1:] / np.maximum(noisy[:, :1], 1.0), -1, 1)
    trace = LloydTrace(
        used, counts, sums, scale, scale, -np.ones(d), np.ones(d), kind, domain,
        0.0 if domain == "box" else 1.0,
    )  # fmt: skip
    return trace, means


# ------------------------------------------------------------------------- the chain and its twin


@pytest.mark.few(2)
@pytest.mark.parametrize("tilt", [0.0, 1.0])
@pytest.mark.parametrize(
    "arguments",
    [
        {"d": 2, "k": 3, "n": 40},
        {"d": 2, "k": 3, "n": 40, "quadratic": True},
        {"d": 3, "k": 4, "n": 50, "domain": "l1"},
        {"d": 4, "k": 4, "n": 60, "domain": "l2", "quadratic": True},
        {"d": 7, "k": 5, "n": 33, "domain": "l1", "noise": 30.0},
        {"d": 10, "k": 5, "n": 70, "sets": 5, "n_assign": 5, "noise": 0.5},
        {"d": 17, "k": 2, "n": 20, "sets": 1, "n_assign": 1},
        {"d": 1, "k": 1, "n": 1, "sets": 1, "n_assign": 1},
        {"d": 1, "k": 6, "n": 5, "sets": 4, "n_assign": 1},
        {"d": 2, "k": 3, "n": 40, "silent": True},
    ],
    ids=lambda arguments: "-".join(f"{key}={value}" for key, value in arguments.items()),
)
def test_chain_walks_the_path_of_its_twin(arguments, tilt):
    problem = chains.blobs(**arguments)
    d = arguments["d"]
    state, twin = problem.state(3), problem.twin(3)
    for steps, beta in ((chain.CROWD_SIZE * 4, 1.0), (chain.CROWD_SIZE * 3 + 5, 4.0), (1, 0.0)):
        state.walk(steps, beta, tilt)
        twin.walk(steps, beta, tilt)
        assert (state.points[:, :d] == twin.points).all()
        assert (state.ids == twin.ids).all()
        assert (state.rows[:, : d + 1] == twin.rows).all()
        assert state.log_q == pytest.approx(twin.log_q, abs=1e-5)
        assert state.counters[2] == twin.accepted
        assert state.values == pytest.approx([twin.value, twin.best_value], rel=1e-9)
        assert (state.best[:, :d] == twin.best).all()
    assert twin.accepted > 20
    assert (state.points[:, d] == 1).all()
    assert (state.points[:, d + 1 :] == 0).all()


def test_proposals_are_the_twins():
    problem = chains.blobs(d=3, k=2, n=9, domain="l1")
    twin, streams = problem.twin(5), chain.streams(BitSource(5))
    for _ in range(3):
        block = chain.propose(problem.mixture(), streams, 9)
        for index, x, ids, log_q, log_u, expected in zip(*block, twin.block(), strict=True):
            assert index == expected[0]
            inside = twin.inside(expected[1]) and expected[2] in twin.nearest(expected[1])
            assert (log_u < np.inf) == inside
            if inside:
                assert x[:3].tolist() == expected[1]
                assert ids.tolist() == twin.nearest(expected[1])[:2]
                assert log_q == pytest.approx(twin.log_density(expected[1]), abs=1e-5)
                assert log_u == pytest.approx(expected[3], rel=1e-12)


@pytest.mark.statistical
def test_proposals_are_normal():
    problem = chains.blobs(d=3, k=1, n=1, sets=1, n_assign=1)
    problem.centers[:] = 0
    problem.spread[:], problem.limit = 1000.0, 1e9
    problem.bounds[:] = [[-32000.0], [32000.0]]
    mixture, streams = problem.mixture(), chain.streams(BitSource(6))
    blocks = [chain.propose(mixture, streams, 1)[1][:, :3] for _ in range(500)]
    draws = np.concatenate(blocks).astype(float)
    draws += np.random.default_rng(1).uniform(-0.5, 0.5, draws.shape)  # undo the grid
    assert scipy.stats.kstest(draws.ravel() / 1000, "norm").pvalue > FALSE_ALARM
    assert scipy.stats.chi2(3).sf(np.square(draws / 1000).sum(axis=1)).mean() == pytest.approx(
        0.5, abs=6 * 0.29 / math.sqrt(len(draws))
    )


@pytest.mark.slow
def test_same_path_on_every_instruction_set(fresh_python):
    script = (
        "import hashlib\nfrom makers import chains\n"
        "from privfit._kernels import cpu\n"
        "for quadratic in (False, True):\n"
        "    state = chains.blobs(d=6, k=4, n=50, quadratic=quadratic, domain='l2').state(1)\n"
        "    state.walk(3000)\n"
        "    print(hashlib.sha256(state.points.tobytes() + state.rows.tobytes()"
        " + state.log_q.tobytes() + state.values.tobytes()).hexdigest())\n"
        "print(cpu.active() == 'baseline')\n"
    )
    auto, baseline = fresh_python(script), fresh_python(script, PRIVFIT_SIMD="baseline")
    assert baseline.stdout.split()[-1] == "True", baseline.stderr
    assert auto.stdout.split()[:2] == baseline.stdout.split()[:2]


@pytest.mark.parametrize("quadratic", [False, True])
def test_incremental_statistics_equal_recomputed_ones(quadratic):
    state = chains.blobs(d=5, k=6, n=2000, sets=4, n_assign=3, quadratic=quadratic).state(2)
    state.walk(100_000)
    assert state.counters[2] > 10_000
    ids, log_q = np.zeros_like(state.ids), np.zeros_like(state.log_q)
    chain.assign(state.mixture, state.points, ids, log_q)
    assert (ids == state.ids).all()
    assert (log_q == state.log_q).all()
    rows = state.recomputed(state.points, ids)
    assert (rows == state.rows).all()
    assert state.values[0] == pytest.approx(state.likelihood(rows), rel=1e-9)


@pytest.mark.parametrize("beta", [0.3, 1.0, 1e12])
def test_best_state_is_never_lost(beta):
    """Short walks, so that the chain often stops away from its best state."""
    problem = chains.blobs(d=2, k=3, n=30, noise=0.3)
    state, best = problem.state(4), -np.inf
    away = 0
    for _ in range(300):
        state.walk(7, beta)
        assert state.values[1] >= max(best, state.values[0]) - 1e-9  # summed anew each walk
        best = state.values[1]
        away += state.values[0] < best
        ids = np.zeros_like(state.ids)
        chain.assign(state.mixture, state.best, ids, np.zeros_like(state.log_q))
        rows = state.recomputed(state.best, ids)
        assert state.likelihood(rows) == pytest.approx(best, rel=1e-9)
    assert away > 100 or beta == 1e12


# ------------------------------------------------------------------------------- its stationary law


def tiny(released, weight, n):
    """n points on four places: proposals without spread are the centres themselves."""
    centers = np.array([[[-4], [3]], [[-1], [5]]])
    slots = np.repeat(np.arange(4), [1000, 500, 2000, 596]).astype(np.uint16)
    return chains.Problem(
        centers, 2, slots, np.zeros(1), 50.0, np.array([[-8.0], [8.0]]), 0, 0.0,
        np.full((n, 1), -1), released, weight, False,
    )  # fmt: skip


def exact_law(problem, tilt, steps):
    """(the law after so many steps, the stationary law) over all placings, from the definition."""
    places = problem.centers.reshape(-1)
    share = np.bincount(problem.slots) / len(problem.slots)
    states = list(itertools.product(range(4), repeat=len(problem.points)))
    log_pi = []
    for state in states:
        total = problem.released.copy()
        for i in state:
            for t in range(2):
                c = int(np.abs(places[i] - problem.centers[t, :, 0]).argmin())
                total[2 * t + c] -= [places[i], 1]
        log_pi.append(-(np.abs(total) * problem.weight).sum())
    L = np.exp(np.array(log_pi) - max(log_pi))
    P = np.zeros((len(states), len(states)))
    for a, state in enumerate(states):
        for j, i in itertools.product(range(len(state)), range(4)):
            b = states.index((*state[:j], i, *state[j + 1 :]))
            ratio = L[b] / L[a] * (share[state[j]] / share[i]) ** tilt
            P[a, b] += share[i] / len(state) * min(1.0, ratio)
        P[a, a] += 1 - P[a].sum()
    pi = L * [np.prod(share[list(state)]) ** (1 - tilt) for state in states]
    start = states.index(tuple([2] * len(problem.points)))
    return np.linalg.matrix_power(P, steps)[start], pi / pi.sum(), P


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("tilt", [0.0, 1.0])
def test_detailed_balance_on_a_tiny_space(tilt):
    released = np.array([[-3.0, 1.0], [2.0, 0.5], [-2.0, 1.5], [6.0, 1.0]])
    problem = tiny(released, np.array([0.12, 0.4]), n=2)
    steps, runs = 40, 20_000
    law, pi, P = exact_law(problem, tilt, steps)
    assert pi[:, None] * P == pytest.approx((pi[:, None] * P).T, abs=1e-14)
    assert np.abs(law - pi).sum() < 1e-3
    state = problem.state(8)
    begin = [array.copy() for array in (state.points, state.ids, state.log_q, state.rows)]
    where = {int(place): i for i, place in enumerate(problem.centers.reshape(-1))}
    counts = np.zeros(16)
    for _ in range(runs):
        for array, first in zip(
            (state.points, state.ids, state.log_q, state.rows), begin, strict=True
        ):
            array[...] = first
        state.walk(steps, 1.0, tilt)
        counts[4 * where[state.points[0, 0]] + where[state.points[1, 0]]] += 1
    assert (law * runs > 20).all()
    assert scipy.stats.chisquare(counts, law * runs).pvalue > FALSE_ALARM
    other = exact_law(problem, 1.0 - tilt, steps)[0]  # the test tells the two apart
    assert scipy.stats.chisquare(counts, other * runs).pvalue < 1e-30


@pytest.mark.statistical
def test_density_of_the_mixture_is_in_the_acceptance():
    """One point on a line: its law is the likelihood, whatever the mixture that proposes."""
    slots = np.repeat([0, 1], [3072, 1024]).astype(np.uint16)
    sigma, scale = 1000.0, 900.0
    problem = chains.Problem(
        np.array([[[-700]], [[900]]]), 1, slots, np.array([sigma]), 1 / (2 * sigma**2),
        np.array([[-1500.0], [1500.0]]), 0, 0.0, np.array([[-700]]), np.array([[600.0, 1.0]]),
        np.array([1 / scale, 1.0]), False,
    )  # fmt: skip
    state = problem.state(9)
    begin = [array.copy() for array in (state.points, state.ids, state.log_q, state.rows)]
    draws = []
    for _ in range(20_000):
        for array, first in zip(
            (state.points, state.ids, state.log_q, state.rows), begin, strict=True
        ):
            array[...] = first
        state.walk(64)
        draws.append(int(state.points[0, 0]))
    line = np.arange(-1500, 1501)
    density = np.exp(-np.abs(600 - line) / scale)
    edges = np.linspace(-1500.5, 1500.5, 13)
    expected = np.histogram(line, edges, weights=density / density.sum())[0]
    counts = np.histogram(draws, edges)[0]
    assert scipy.stats.chisquare(counts, expected * counts.sum()).pvalue > FALSE_ALARM


# --------------------------------------------------------------------------------- linear program


def lp_cost(trace, near):
    return (np.abs(near.counts - trace.counts).sum() / trace.scale_counts
            + np.abs(near.sums - trace.sums).sum() / trace.scale_sums)  # fmt: skip


def dense_optimum(trace):
    """The same program once more: n, s = p - m and gaps, one dense row for each inequality."""
    T, k, d = trace.sums.shape
    m, names = T * k, {}
    for i in range(m):
        names["n", i] = len(names)
        for j in range(d):
            names["p", i, j], names["m", i, j] = len(names), len(names) + 1
    for i in range(m):
        names["gn", i] = len(names)
        for j in range(d):
            names["gs", i, j] = len(names)
    A, b, E = [], [], []

    def add(to, terms, bound=None):
        line = np.zeros(len(names))
        for name, factor in terms:
            line[names[name]] += factor
        to.append(line)
        if bound is not None:
            b.append(bound)

    n, s = trace.counts.ravel(), trace.sums.reshape(m, d)
    for i in range(m):
        for sign in (1, -1):
            add(A, [(("n", i), sign), (("gn", i), -1)], sign * n[i])
        for j in range(d):
            value = [(("p", i, j), 1), (("m", i, j), -1)]
            for sign in (1, -1):
                gap = [(name, sign * factor) for name, factor in value]
                add(A, [*gap, (("gs", i, j), -1)], sign * s[i, j])
            add(A, [*value, (("n", i), -trace.high[j])], 0.0)
            add(A, [*((name, -f) for name, f in value), (("n", i), trace.low[j])], 0.0)
        if trace.domain == "l1":
            both = [((part, i, j), 1) for part in "pm" for j in range(d)]
            add(A, [*both, (("n", i), -trace.radius)], 0.0)
    for t in range(T - 1):
        first, second = range(t * k, t * k + k), range(t * k + k, t * k + 2 * k)
        add(E, [*((("n", i), 1) for i in first), *((("n", i), -1) for i in second)])
        for j in range(d):
            signs = [(i, 1) for i in first] + [(i, -1) for i in second]
            add(E, [((part, i, j), sign * (1 if part == "p" else -1))
                    for i, sign in signs for part in "pm"])  # fmt: skip
    cost = np.zeros(len(names))
    for name, place in names.items():
        if name[0] == "gn":
            cost[place] = 1 / trace.scale_counts
        if name[0] == "gs":
            cost[place] = 1 / trace.scale_sums
    return scipy.optimize.linprog(cost, np.array(A), b, np.array(E) if E else None,
                                  np.zeros(len(E)) if E else None).fun  # fmt: skip


def random_trace(rng, T, k, d, domain="box"):
    low, high = -rng.uniform(0.2, 1, d), rng.uniform(0.2, 1, d)
    if domain != "box":
        low, high = -np.ones(d), np.ones(d)
    return LloydTrace(
        rng.uniform(-0.2, 0.2, (T, k, d)), rng.normal(3, 4, (T, k)), rng.normal(0, 4, (T, k, d)),
        rng.uniform(0.5, 2), rng.uniform(0.5, 2), low, high, "laplace", domain,
        0.0 if domain == "box" else 1.0,
    )  # fmt: skip


@pytest.mark.few(7)
@pytest.mark.parametrize("domain", ["box", "l1", "l2"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3, 2), (3, 1, 1), (3, 4, 2), (4, 2, 5)])
def test_consistent_values_are_feasible_and_optimal(shape, domain, rng):
    trace = random_trace(rng, *shape, domain)
    near = consistent(trace)
    n, s = near.counts, near.sums
    assert (n >= 0).all()
    assert (s >= trace.low * n[..., None] - 1e-7).all()
    assert (s <= trace.high * n[..., None] + 1e-7).all()
    if domain == "l1":
        assert (np.abs(s).sum(axis=2) <= n + 1e-7).all()
    assert np.ptp(n.sum(axis=1)) < 1e-7
    assert np.ptp(s.sum(axis=1), axis=0).max() < 1e-7
    if domain != "l2":
        assert lp_cost(trace, near) == pytest.approx(dense_optimum(trace), abs=1e-6)
    assert near.centroids is trace.centroids or (near.centroids == trace.centroids).all()


def test_consistent_by_hand():
    one = LloydTrace([[[0.0]]], [[-3.0]], [[[2.0]]], 1.0, 1.0, [-1.0], [1.0])
    near = consistent(one)  # n = 0 and s = 0 cost 3 + 2; n = 2, s = 2 cost 5 as well
    assert lp_cost(one, near) == pytest.approx(5)
    cheap_counts = replace(one, scale_counts=10.0)
    near = consistent(cheap_counts)  # raising n is cheap: n = s = 2
    assert near.counts[0, 0] == pytest.approx(2)
    assert near.sums[0, 0, 0] == pytest.approx(2)
    ball = LloydTrace([[[0.0, 0.0]]], [[1.0]], [[[3.0, 1.0]]], 100.0, 1.0, [-1.0, -1.0], [1.0, 1.0],
                      "laplace", "l1", 1.0)  # fmt: skip
    assert consistent(ball).counts[0, 0] == pytest.approx(4)  # l1 of the sum
    two = LloydTrace([[[0.0]]] * 2, [[10.0], [14.0]], [[[1.0]], [[1.0]]], 2.0, 1.0, [-1.0], [1.0])
    assert lp_cost(two, consistent(two)) == pytest.approx(4 / 2)
    exact = LloydTrace(
        [[[0.0], [1.0]]] * 2, [[2.0, 3.0], [4.0, 1.0]], [[[1.0], [2.0]], [[2.5], [0.5]]],
        1.0, 1.0, [-1.0], [1.0],
    )  # fmt: skip
    assert consistent(exact).counts == pytest.approx(exact.counts)
    assert consistent(exact).sums == pytest.approx(exact.sums)


# -------------------------------------------------------------------------------------------- mcmc


@pytest.mark.few(3)
@pytest.mark.parametrize("anneal", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kind": "gaussian"},
        {"domain": "l1", "d": 3},
        {"domain": "l2", "d": 5, "kind": "gaussian"},
        {"T": 1},
        {"k": 1},
        {"d": 1, "means": [[-0.7], [0.0], [0.6]]},
        {"d": 12, "k": 4},
    ],
    ids=str,
)
def test_mcmc_finds_clusters(arguments, anneal):
    trace, means = lloyd_trace(**arguments)
    result = mcmc(trace, len(means), rng=1, anneal=anneal)
    gaps = np.abs(result.centers[:, None] - means).max(axis=2)
    assert gaps.min(axis=0).max() < 0.12
    assert result.points.shape[1] == means.shape[1]
    assert abs(len(result.points) - 400) < 60
    assert result.steps == (300_000 if anneal else 30_000)
    assert 0 < result.accepted <= result.steps
    inside = (np.abs(result.points) <= 1).all()
    if trace.domain != "box":
        order = int(trace.domain[1])
        inside &= (np.linalg.norm(result.points, order, axis=1) <= 1 + 1e-12).all()
    assert inside


def full_likelihood(trace, points):
    """From the definition, in floating point."""
    total = 0.0
    for centers, counts, sums in zip(trace.centroids, trace.counts, trace.sums, strict=True):
        nearest = np.square(points[:, None] - centers).sum(axis=2).argmin(axis=1)
        for c in range(len(centers)):
            members = points[nearest == c]
            gap_n, gap_s = counts[c] - len(members), sums[c] - members.sum(axis=0)
            if trace.kind == "laplace":
                total -= abs(gap_n) / trace.scale_counts + np.abs(gap_s).sum() / trace.scale_sums
            else:
                total -= gap_n**2 / (2 * trace.scale_counts**2)
                total -= np.square(gap_s).sum() / (2 * trace.scale_sums**2)
    return total


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_log_likelihood_is_that_of_the_points(kind):
    trace, _ = lloyd_trace(kind=kind, k=4, n=300)
    grid = np.rint(trace.centroids * 2**13) / 2**13  # so that clusters are the same ones
    trace = replace(trace, centroids=grid, scale_sums=2.5)
    result = mcmc(trace, 4, rng=2, steps=5000)
    assert result.log_likelihood == pytest.approx(full_likelihood(trace, result.points), rel=1e-4)


def test_annealing_climbs_higher_and_longer_chains_higher_still():
    trace, _ = lloyd_trace(k=5, T=5, n=1000, scale=3.0)
    settings = ((0, False), (30_000, False), (30_000, True), (300_000, True))
    values = [
        mcmc(trace, 5, steps=steps, rng=3, anneal=anneal).log_likelihood
        for steps, anneal in settings
    ]
    assert values == sorted(values)
    assert values[0] < values[1] < values[2]


def test_same_seed_same_answer_whatever_the_chunks(monkeypatch):
    trace, _ = lloyd_trace()
    first = mcmc(trace, 3, steps=5000, rng=7, anneal=True)
    monkeypatch.setattr(module, "CHUNK", 2 * chain.CROWD_SIZE)
    again = mcmc(trace, 3, steps=5000, rng=np.int64(7), anneal=True)
    assert (first.points == again.points).all()
    assert (first.centers == again.centers).all()
    assert (first.log_likelihood, first.accepted) == (again.log_likelihood, again.accepted)
    other = mcmc(trace, 3, steps=5000, rng=8, anneal=True)
    assert other.accepted != first.accepted or (other.points != first.points).any()
    assert (mcmc(trace, 3, rng=BitSource(7), steps=5000, anneal=True).points == first.points).all()


def test_fresh_randomness_without_a_seed():
    trace, _ = lloyd_trace()
    assert (mcmc(trace, 3, steps=2000).points != mcmc(trace, 3, steps=2000).points).any()


def test_progress_and_early_stop():
    trace, _ = lloyd_trace()
    seen: list[Progress] = []
    result = mcmc(trace, 3, steps=400_000, rng=1, anneal=True, tolerance=1e9, callback=seen.append)
    assert result.steps == 2 * module.CHUNK < 400_000
    assert [progress.step for progress in seen] == [module.CHUNK, 2 * module.CHUNK]
    assert seen[-1].log_likelihood >= seen[0].log_likelihood
    assert seen[-1].steps == 400_000
    assert seen[-1].log_likelihood == pytest.approx(result.log_likelihood, rel=1e-9)
    patient = mcmc(trace, 3, steps=400_000, rng=1, anneal=True, tolerance=0.0)
    assert patient.steps > result.steps
    unbounded = mcmc(trace, 3, steps=100_000, rng=1, anneal=True)
    assert unbounded.steps == 100_000


def test_odd_traces():
    """One record, no record, empty clusters, constant columns, negative counts, centres outside."""
    one = LloydTrace([[[0.25]]], [[1.0]], [[[0.5]]], 0.1, 0.1, [-1.0], [1.0])
    result = mcmc(one, 1, rng=1, steps=3000)
    assert len(result.points) == 1
    assert result.centers[0, 0] == pytest.approx(0.5, abs=0.02)
    empty = replace(one, counts=[[-5.0]], sums=[[[0.0]]])
    assert mcmc(empty, 1, rng=1, steps=100).points.shape == (1, 1)
    assert mcmc(one, 3, rng=1, steps=100).centers.shape == (3, 1)  # more clusters than points
    assert mcmc(one, 1, rng=1, steps=10, n_records=77).points.shape == (77, 1)
    trace, _ = lloyd_trace(d=3, k=4)
    counts, sums = trace.counts.copy(), trace.sums.copy()
    counts[:, 2], sums[:, 2] = -4.0, 0.0
    sums[:, :, 1] = 5.0 * counts
    low, high = [-1.0, 5.0, -1.0], [1.0, 5.0, 1.0]
    centroids = trace.centroids.copy()
    centroids[:, :, 1], centroids[0, 2, 0] = 5.0, 40.0
    odd = replace(trace, centroids=centroids, counts=counts, sums=sums, low=low, high=high)
    result = mcmc(odd, 3, rng=1, anneal=True, steps=20_000)
    assert (result.points[:, 1] == 5.0).all()
    assert result.accepted > 0
    zero = LloydTrace([[[0.0]]], [[3.0]], [[[0.0]]], 1.0, 1.0, [0.0], [0.0])
    assert (mcmc(zero, 1, rng=1, steps=200).points == 0).all()
    wide = LloydTrace(
        np.zeros((1, 2, 300)), [[4.0, 4.0]], np.zeros((1, 2, 300)), 1.0, 1.0,
        -np.ones(300), np.ones(300),
    )  # fmt: skip
    assert np.isfinite(mcmc(wide, 2, rng=1, steps=500).log_likelihood)


def test_units_do_not_matter():
    """Records, sums and their noise in other units: the same chain, for a factor of two's power."""
    trace, _ = lloyd_trace()
    factor = 2.0**20
    scaled = replace(
        trace, centroids=trace.centroids * factor, sums=trace.sums * factor,
        scale_sums=trace.scale_sums * factor, low=trace.low * factor, high=trace.high * factor,
    )  # fmt: skip
    first, second = (mcmc(each, 3, rng=5, steps=4000) for each in (trace, scaled))
    assert (first.points * factor == second.points).all()
    assert (first.centers * factor == second.centers).all()


# ----------------------------------------------------------------------------------- little k-means


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "k"), [(1, 1, 1), (5, 2, 7), (257, 3, 4), (1000, 2, 15), (6000, 7, 2)]
)
def test_kmeans_is_as_good_as_scikit_learn(n, d, k, rng):
    cluster = pytest.importorskip("sklearn.cluster")
    middle = rng.integers(-6000, 6000, (k, d))
    points = (middle[rng.integers(k, size=n)] + rng.integers(-300, 300, (n, d))).astype(np.int16)

    def cost(centers):
        return np.square(points[:, None] - centers).sum(axis=2).min(axis=1).sum()

    found = kmeans(points, k, 20, np.random.default_rng(1))
    assert found.shape == (k, d)
    if n <= k:
        assert cost(found) == 0
        return
    theirs = cluster.KMeans(k, n_init=20, random_state=0).fit(points.astype(float))
    assert cost(found) <= cost(theirs.cluster_centers_) * 1.001


# -------------------------------------------------------------------------------- traces and errors


def test_trace_of_a_release_survives_json():
    trace, _ = lloyd_trace()
    grant = Ledger(epsilon=1.0).reserve(1.0, name="clusters")
    grant.release(DiscreteLaplace(1.0, 1), [0], 1)
    release = grant.close("add_remove", parameters={"trace": trace.to_dict()})
    for each in (release, Release.from_json(release.to_json())):
        again = LloydTrace.from_release(each)
        for name in ("centroids", "counts", "sums", "low", "high"):
            assert (getattr(again, name) == getattr(trace, name)).all()
        for name in ("scale_counts", "scale_sums", "kind", "domain", "radius"):
            assert getattr(again, name) == getattr(trace, name)
    whole = replace(release, parameters={"trace": trace})
    assert LloydTrace.from_release(whole) is trace
    assert not trace.counts.flags.writeable


GOOD = {
    "centroids": np.zeros((2, 3, 2)), "counts": np.ones((2, 3)), "sums": np.zeros((2, 3, 2)),
    "scale_counts": 1.0, "scale_sums": 1.0, "low": -np.ones(2), "high": np.ones(2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centroids": "abc"}, "centroids must be an array of numbers; pass"),
        ({"counts": [[1, 2, 3], [1]]}, "counts must be an array of numbers; pass"),
        ({"centroids": np.zeros((2, 3))}, r"centroids \(shape \(2, 3\)\) must be \(T, k, d\)"),
        ({"centroids": np.zeros((0, 3, 2))}, "none of them 0; pass"),
        ({"counts": np.ones((3, 2))}, r"counts \(shape \(3, 2\)\) must be \(2, 3\), to match"),
        ({"sums": np.ones((2, 3))}, r"sums \(shape \(2, 3\)\) must be \(2, 3, 2\)"),
        ({"low": np.ones(3)}, r"low \(shape \(3,\)\) must be \(2,\)"),
        ({"high": 1.0}, r"high \(shape \(\)\) must be \(2,\)"),
        ({"sums": np.full((2, 3, 2), np.nan)}, "sums must be finite; pass released"),
        ({"counts": np.full((2, 3), np.inf)}, "counts must be finite; pass released"),
        ({"scale_counts": 0.0}, r"scale_counts \(0.0\) must be a positive number; pass"),
        ({"scale_sums": np.inf}, r"scale_sums \(inf\) must be a positive number; pass"),
        ({"scale_sums": True}, r"scale_sums \(True\) must be a positive number; pass"),
        ({"kind": "cauchy"}, r"kind \('cauchy'\) must be one of"),
        ({"domain": "torus"}, r"domain \('torus'\) must be one of"),
        ({"low": np.full(2, 2.0)}, "low must not exceed high; pass"),
        ({"radius": 1.0}, r"radius \(1.0\) must be 0 for a box"),
        ({"domain": "l1"}, r"radius \(0.0\) must be 0 for a box and positive for a ball"),
        ({"domain": "l2", "radius": -1.0}, r"radius \(-1.0\) must be 0 for a box and positive"),
        ({"domain": "l2", "radius": np.nan}, r"radius \(nan\) must be 0 for a box and positive"),
        ({"domain": "l2", "radius": 0.5}, "low and high must lie within the radius; pass"),
    ],
)
def test_malformed_traces_are_refused(change, message):
    LloydTrace(**GOOD)
    with pytest.raises(ValueError, match=message):
        LloydTrace(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "release 'fit' must hold a trace of Lloyd iterations; pass"),
        ({"trace": [1, 2]}, "release 'fit' must hold a trace of Lloyd iterations; pass"),
        ({"trace": {**GOOD, "extra": 1}}, "the trace of release 'fit' must have the fields"),
        ({"trace": {"counts": 1}}, "the trace of release 'fit' must have the fields"),
    ],
)
def test_releases_without_a_trace_are_refused(parameters, message):
    release = Release("fit", 1.0, 0.0, "add_remove", (), parameters=parameters)
    with pytest.raises(ValueError, match=message):
        LloydTrace.from_release(release)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 0}, r"n_clusters \(0\) must be a positive whole number; pass"),
        ({"n_clusters": 2.0}, r"n_clusters \(2.0\) must be a positive whole number; pass"),
        ({"n_init": 0}, r"n_init \(0\) must be a positive whole number; pass"),
        ({"steps": -1}, r"steps \(-1\) must be a whole number of at least 0; pass"),
        ({"steps": 1.5}, r"steps \(1.5\) must be a whole number of at least 0; pass"),
        ({"n_records": 0}, r"n_records \(0\) must be a positive whole number below 2\^31; pass"),
        ({"n_records": 2**31}, r"n_records \(2147483648\) must be a positive whole number below"),
        ({"delta": 0.0}, r"delta \(0.0\) must be a positive number; pass"),
        ({"tolerance": -1.0}, r"tolerance \(-1.0\) must be None or a number of at least 0; pass"),
        ({"tolerance": np.nan}, r"tolerance \(nan\) must be None or a number of at least 0; pass"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        mcmc(LloydTrace(**GOOD), **{"n_clusters": 2, "steps": 10, **change})


def test_too_many_centroids_are_refused():
    T, k = 3, 4097
    trace = LloydTrace(
        np.zeros((T, k, 1)), np.ones((T, k)), np.zeros((T, k, 1)), 1.0, 1.0, [-1.0], [1.0]
    )
    with pytest.raises(ValueError, match=r"centroids \(shape \(3, 4097, 1\)\) must be at most 2"):
        mcmc(trace, 2, steps=1)


def test_trouble_of_the_solver_is_told(monkeypatch):
    monkeypatch.setattr(
        scipy.optimize, "linprog", lambda *_, **__: SimpleNamespace(x=None, message="tired")
    )
    with pytest.raises(RuntimeError, match="must have a solution, but HiGHS reports 'tired'; pass"):
        consistent(LloydTrace(**GOOD))


@pytest.mark.parametrize("call", [consistent, lambda trace: mcmc(trace, 2)])
def test_what_is_no_trace_is_refused(call):
    with pytest.raises(
        TypeError, match=r"trace \(int\) must be a LloydTrace; pass LloydTrace.from"
    ):
        call(3)
