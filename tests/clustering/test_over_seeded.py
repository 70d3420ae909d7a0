"""Parts of over-seeded k-means: exact sums, sensitivities by brute force, what is filled in."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DISTANCE_DOMAINS, distance_rows
from makers.points import COARSE, RECORDS, blobs, cost, run_of, tables, worst_gap

from privfit import (
    Box,
    Budget,
    CentersObjective,
    DiscreteGaussian,
    DiscreteLaplace,
    KMeans,
    Ledger,
    Stream,
)
from privfit.clustering import Mean, OverSeeded, Tree
from privfit.clustering.averages import clipped_mean
from privfit.clustering.frames import lost_bits, principal_frame
from privfit.clustering.kmeans import best_of
from privfit.clustering.over_seeded import Plan
from privfit.clustering.radii import best_radius, radius_by_histogram, tried_radii
from privfit.clustering.seeding import fill_in, over_seed, reduce
from privfit.clustering.signals import Signal
from privfit.privacy.accounting import Event, compose
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Cells, Halvings
from privfit.records.frames import AXIS_BITS

# ------------------------------------------------------------------------------ counts of norms


@pytest.mark.few(4)
@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_norm_counts_equal_the_twin(name, norm, k, rng):
    X = distance_rows(name, rng, 80)
    rows = reference.records(X, DISTANCE_DOMAINS[name], uniform=True)
    for power in (1, 2):
        objective = CentersObjective(X, k, DISTANCE_DOMAINS[name], power=power)
        low, high = objective.domain.low, objective.domain.high
        C = objective.snap(rng.uniform(low, high, (k, len(low))))
        whole = np.rint(C / objective.candidate_units).astype(np.int64).tolist()
        far = max(reference.distance(x, c, 1) for x in rows for c in whole)
        for bounds in ([0], [1, 5, far // 8, far // 4, far // 2], [far // 3, far // 3, 2 * far]):
            bounds = sorted(bounds)
            counts = objective.norm_counts(C, bounds, norm)
            assert counts.tolist() == reference.norm_counts(rows, whole, bounds, norm, power)
            assert counts.sum() == len(rows)


@pytest.mark.parametrize("norm", [1, 2])
def test_a_record_on_the_radius_lies_within_it(norm):
    X = np.array([[0.5, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    objective = CentersObjective(X, 1, COARSE)
    assert objective.norm_counts(np.zeros((1, 2)), [0, 1, 2], norm).tolist() == [1, 1, 1, 0]


def test_norm_counts_do_not_depend_on_where_records_are(rng):
    X = rng.uniform(-1, 1, (40_000, 3))
    C, bounds = np.round(rng.uniform(-1, 1, (5, 3)) * 512) / 512, [300, 900, 1500, 4000]
    expected = CentersObjective(X, 5, Box(-1, 1)).norm_counts(C, bounds, 2)
    streamed = CentersObjective(Stream(X), 5, Box(-1, 1))
    assert streamed.norm_counts(C, bounds, 2).tolist() == expected.tolist()
    mixed = CentersObjective(X[rng.permutation(len(X))], 5, Box(-1, 1))
    assert mixed.norm_counts(C, bounds, 2).tolist() == expected.tolist()


@pytest.mark.parametrize("bounds", [[2, 1], [0.5, 1.0], [-1, 2], [[1, 2]], [2**31]])
def test_radii_that_are_not_ascending_whole_numbers_are_refused(bounds):
    objective = CentersObjective(RECORDS, 1, COARSE)
    with pytest.raises(ValueError, match="radii must be ascending whole numbers of record units"):
        objective.norm_counts(np.zeros((1, 2)), bounds, 1)


def test_other_norms_are_refused():
    with pytest.raises(ValueError, match=r"norm \(3\) must be 1 or 2; pass one of them"):
        CentersObjective(RECORDS, 1, COARSE).norm_counts(np.zeros((1, 2)), [1], 3)


# ------------------------------------------------------------------------- products and frames


@pytest.mark.few(4)
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_products_equal_the_twin(name, norm, rng):
    X = distance_rows(name, rng, 60)
    rows = reference.records(X, DISTANCE_DOMAINS[name], uniform=True)
    objective = CentersObjective(X, 3, DISTANCE_DOMAINS[name])
    point = objective.project(rng.uniform(objective.domain.low, objective.domain.high))
    whole = np.rint(point / objective.candidate_units).astype(np.int64).tolist()
    far = objective.reach(norm)
    for shift, radius in ((0, 1), (0, far // 4 + 1), (3, far // 16 + 1), (2, 2 * far)):
        found = objective.products(point, shift, radius, norm)
        assert found.tolist() == reference.clipped_products(rows, whole, shift, radius, norm)


def test_cells_of_a_frame_equal_the_twin(rng):
    X = rng.uniform(-1, 1, (400, 4))
    objective = CentersObjective(X, 3, Box(-1, 1))
    rows = reference.records(X, Box(-1, 1, 4), uniform=True)
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0][:3]
    frame = np.rint(np.ldexp(turned, AXIS_BITS)).astype(np.int64)
    origin, reach = np.array([100, -200, 0, 50]), np.array([3000, 1500, 700])
    halvings = Halvings(-reach, reach, 9)
    places = [reference.framed_place(x, origin.tolist(), frame.tolist(), reach.tolist(), AXIS_BITS)
              for x in rows]  # fmt: skip
    cells = objective.framed_cells(origin, frame, reach, halvings.axes)
    for level in (0, 3, 9):
        codes = np.arange(2**level, dtype=np.uint64)
        low, high = halvings.corners(codes, level)
        expected = [
            sum(all(a <= p < b for p, a, b in zip(place, *ends, strict=True)) for place in places)
            for ends in zip(low.tolist(), high.tolist(), strict=True)
        ]
        shift = np.full(len(codes), 9 - level, dtype=np.uint64)
        assert cells.count(codes, shift).tolist() == expected
        assert sum(expected) == len(rows)


def test_products_and_frames_do_not_depend_on_where_records_are(rng):
    X = rng.uniform(-1, 1, (40_000, 3))
    point, origin, reach = np.array([0.25, 0.0, -0.5]), np.array([3, 1, -7]), np.array([900, 500])
    frame = np.array([[2000, 3000, 1900], [-3500, 2000, 500]])
    axes, codes = Halvings(-reach, reach, 6).axes, np.arange(64, dtype=np.uint64)
    found = []
    for records in (X, Stream(X), X[rng.permutation(len(X))]):
        objective = CentersObjective(records, 5, Box(-1, 1))
        counts = objective.framed_cells(origin, frame, reach, axes).count(codes, 0 * codes)
        found.append((objective.products(point, 1, 800, 2).tolist(), counts.tolist()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("shift", "radius"), [(0, 0), (0, 2**24), (0, 1.5), (-1, 5), (16, 5)])
def test_products_of_other_radii_and_shifts_are_refused(shift, radius):
    with pytest.raises(ValueError, match=r"radius \(.*\) and shift \(.*\) must be whole"):
        CentersObjective(RECORDS, 1, COARSE).products(np.zeros(2), shift, radius, 1)


def test_bits_are_lost_where_sums_could_wrap():
    assert lost_bits(1000, 10**6) == 0
    for radius, room in ((2**14, 2**32), (2**20, 2**32), (2**21, 10**9)):
        shift = lost_bits(radius, room)
        assert 7 * (radius >> shift) ** 2 * room < 2**62
        assert shift == 0 or 7 * ((radius >> (shift - 1)) + 1) ** 2 * room >= 2**62


@pytest.mark.parametrize(("n", "d", "epsilon"), [(300, 200, 0.01), (300, 200, 1e-3)])
def test_a_frame_of_many_columns_at_a_small_budget_is_not_refused_after_the_charge(n, d, epsilon):
    """Its noise is in proportion to the squared radius, and must fit into 64 bits."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    KMeans(3, epsilon, domain=(-1, 1), solver=OverSeeded(frame=True), random_state=0).fit(X)


def test_the_axes_of_a_frame_are_those_of_the_records():
    """Without noise: records along one diagonal, and a little across."""
    coins = np.random.default_rng(3)
    along, across = coins.normal(0, 0.3, 4000), coins.normal(0, 0.02, 4000)
    X = np.clip(np.column_stack([along + across, along - across]), -1, 1)
    run = run_of(CentersObjective(X, 2, Box(-1, 1)), "replace")
    frame = principal_frame(run, np.zeros(2), 3.0, Event("gaussian", 1e6), len(X))
    axes = np.ldexp(frame.axes.astype(float), -AXIS_BITS)
    assert abs(axes[0]) == pytest.approx(np.full(2, math.sqrt(0.5)), abs=0.01)
    reach = frame.reach * run.objective.candidate_units
    assert reach == pytest.approx(2.2 * np.sqrt(np.square(X @ axes.T).mean(axis=0)), rel=0.05)


# --------------------------------------------------------------- sensitivities, for all neighbours


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("radius", [0.5, 1.0, 5.0])
def test_second_moments_stay_within_their_sensitivity(radius, kind, adjacency):
    middle = np.array([0.5, 0.0])
    worst = worst_gap(
        adjacency, kind, lambda run, cost: principal_frame(run, middle, radius, cost, 50)
    )
    assert worst <= 1 + 1e-12
    if radius <= 1.0:
        assert worst > 0.9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", [1, 2])
def test_the_histogram_stays_within_its_sensitivity(norm, adjacency):
    worst, C = 0.0, np.array([[-0.5, 0.5], [0.5, 0.0]])
    for pair in tables(adjacency):
        seen = []
        for X in pair:
            objective = CentersObjective(X, 2, COARSE, adjacency=adjacency)
            run = run_of(objective, adjacency)
            radius_by_histogram(run, C, 0.8, norm, 0.7, 0.1)
            seen += run._grant.seen
        (mechanism, first), (other, second) = seen
        assert mechanism == other
        assert mechanism.event == Event("pure", 0.7)
        worst = max(worst, np.abs(first - second).sum() / mechanism.sensitivity)
    assert worst == 1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("radius", [0.5, 1.0, 5.0])
def test_clipped_means_stay_within_their_sensitivity(radius, kind, adjacency):
    worst = 0.0
    for pair in tables(adjacency):
        seen = []
        for X in pair:
            run = run_of(CentersObjective(X, 2, COARSE, adjacency=adjacency), adjacency)
            clipped_mean(run, np.array([0.5, 0.0]), radius, Event(kind, 0.5), 50)
            seen += run._grant.seen
        (mechanism, first), (other, second) = seen
        assert mechanism == other
        assert isinstance(mechanism, DiscreteGaussian) == (kind == "gaussian")
        norm = 2 if kind == "gaussian" else 1
        gap = np.linalg.norm((first - second).astype(float), ord=norm)
        worst = max(worst, gap / mechanism.sensitivity)
    assert worst <= 1 + 1e-12
    assert worst > 0.3
    if radius <= 1.0:
        assert worst > 0.99


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "solver",
    [OverSeeded(mean=True), OverSeeded(mean=False), OverSeeded(frame=True, tree_share=0.2),
     OverSeeded(deviations=True), Mean(), Mean(steps=3)],
)  # fmt: skip
def test_plans_cost_the_budget_and_no_more(solver, adjacency):
    X = blobs(0, 2000, 5, 4)
    for epsilon, delta in itertools.product((0.05, 1.0, 8.0), (0.0, 1e-6)):
        for pure in (False, True):
            settings = solver.set_params(pure=pure)
            ledger = Ledger(epsilon, delta, adjacency=adjacency)
            model = KMeans(4, epsilon, delta, domain=(-1, 1), solver=settings, ledger=ledger,
                           adjacency=adjacency, n_public=2000, random_state=0).fit(X)  # fmt: skip
            kinds = {event.kind for event in model.release_.events}
            assert ("gaussian" in kinds) == (delta > 0 and not pure)
            spent = compose(model.release_.events, delta if "gaussian" in kinds else 0.0)
            assert 0.97 * epsilon < spent <= epsilon


def test_the_plan_does_not_depend_on_the_records():
    first, second = (
        KMeans(4, 1.0, 1e-6, domain=(-1, 1), solver=OverSeeded(), random_state=seed).fit(X)
        for seed, X in enumerate((blobs(0, 900, 5, 4), np.ones((900, 5))))
    )
    assert first.release_.events == second.release_.events
    assert len(first.path_.generations) == len(second.path_.generations)


@pytest.mark.parametrize("solver", ["over_seeded", "mean"])
def test_the_number_of_records_must_be_public(solver):
    ledger = Ledger(1.0, adjacency="add_remove")
    model = KMeans(2, 1.0, domain=(-1, 1), solver=solver, adjacency="add_remove", ledger=ledger)
    with pytest.raises(ValueError, match="n_public must be given under adjacency='add_remove'"):
        model.fit(np.zeros((5, 3)))
    assert ledger.spent.epsilon == 0


# -------------------------------------------------------------------------------- post-processing


def test_the_best_radius_balances_noise_and_what_is_cut():
    radii = tried_radii(1000.0)
    assert radii.tolist() == sorted(radii.tolist())
    assert (radii[0], radii[-2], radii[-1]) == (88, 1000, 1414)
    counts = np.zeros(10)
    counts[3] = 500
    assert best_radius(radii, counts, 1e-6, 1.0) == radii[3]  # no noise: nothing is cut
    assert best_radius(radii, counts, 10.0, 1.0) == radii[0]  # nothing but noise
    assert best_radius(radii, np.full(10, -3.0), 1e-3, 1.0) == radii[0]
    assert tried_radii(0.0).tolist() == [1] * 9


def test_a_histogram_that_is_noise_leaves_the_usual_radius():
    objective = CentersObjective(RECORDS, 1, COARSE)
    run = run_of(objective, "replace", size=100)
    assert radius_by_histogram(run, np.zeros((1, 2)), 0.8, 1, 0.05, 0.1) == 0.8
    assert radius_by_histogram(run, np.zeros((1, 2)), 0.8, 1, 0.07, 9.0) == 0.5  # one unit


def test_columns_that_were_never_halved_are_filled_in_by_the_mean():
    objective = CentersObjective(RECORDS, 1, COARSE)  # whole numbers from -2 to 2, of 1/2
    cells = Cells(
        np.array([[-2, -2], [0, -2]]), np.array([[0, 3], [3, 3]]), np.array([30, 10]), 0.0
    )
    middles, weights = fill_in(objective, cells, None)
    assert middles.tolist() == [[-0.75, 0.0], [0.5, 0.0]]
    assert weights.tolist() == [30, 10]
    mean = np.array([np.average([-0.75, 0.5], weights=[30, 10]), 0.6])
    points, _ = fill_in(objective, cells, mean)
    assert points == pytest.approx(np.array([[-0.75, 0.6], [0.5, 0.6]]))
    points, _ = fill_in(objective, cells, np.array([1.0, -1.0]))  # as far as cells reach
    assert points == pytest.approx(np.array([[-0.5, -1.0], [1.0, -1.0]]))


def test_cells_without_weight_count_the_same():
    objective = CentersObjective(RECORDS, 1, COARSE)
    cells = Cells(np.array([[-2, -2], [0, -2]]), np.array([[0, 3], [3, 3]]), np.array([-3, 0]), 2.0)
    points, weights = fill_in(objective, cells, None)
    assert len(points) == 2
    assert weights.tolist() == [1, 1]
    assert over_seed(objective, points, weights, 5, np.random.default_rng(0), 2).shape == (5, 2)


@pytest.mark.parametrize("d", [4, 12])
def test_seeds_are_reduced_to_the_clusters_they_moved_to(d):
    """Two seeds for each of three clusters, and one that has no cell; in few and many columns."""
    objective = CentersObjective(np.zeros((1, d)), 3, Box(-1, 1))
    ends = np.repeat([[-0.75], [0.0], [0.5]], 2, axis=0) * np.ones(d)
    seeds = np.concatenate([ends + 0.03 * np.tile([[1], [-1]], (3, 1)), np.full((1, d), -1.0)])
    moved = np.concatenate([ends + 0.125, [ends[0] + 0.125]])
    counts = np.array([5.0, 5.0, 3.0, 3.0, 8.0, 8.0, 1.0])
    points = np.concatenate([seeds[:6] + 0.01, seeds[:6] - 0.01])
    coins = np.random.default_rng(1)
    found = reduce(objective, (points, np.ones(12)), seeds, moved, counts, coins)
    expected = [-0.625, 0.125, 0.625]
    assert found[np.argsort(found[:, 0])] == pytest.approx(
        np.array(expected)[:, None] * np.ones(d), abs=0.01
    )


def test_a_signal_of_replaced_records_is_that_of_half_of_them():
    objective = CentersObjective(np.zeros((1, 6)), 4, Box(-1, 1))
    budget = Budget(0.5, 1e-6)
    replaced = Signal.of(objective, budget, Neighbours("replace"), 4000)
    assert replaced == Signal.of(objective, budget, Neighbours("add_remove"), 2000)
    assert replaced.laplace == pytest.approx(1.13 * 6 * 4 / (0.5 * 2000))
    assert Signal.of(objective, Budget(0.5), Neighbours("replace"), 4000).gaussian == math.inf


# ------------------------------------------------------------------------------------- whole fits


IN_PARTS = (
    OverSeeded(tree=Tree(restarts=2), mean=True, pure=False),
    OverSeeded(tree=Tree(restarts=2), frame=True, pure=False),
    Mean(),
)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_streams_give_the_bits_of_memory(delta):
    X = blobs(3, 6000, 5, 4)
    for solver in IN_PARTS:
        model = KMeans(4, 1.0, delta, domain=(-1, 1), solver=solver, random_state=7)
        expected = model.fit(X).cluster_centers_.tolist()
        assert model.fit(Stream(X)).cluster_centers_.tolist() == expected


def test_more_seeds_leave_local_minima():
    """Fixed seeds; sizes fall as 1 / j, where k-means of cells is caught in minima."""
    coins = np.random.default_rng(11)
    middles, weights = coins.uniform(-0.8, 0.8, (16, 6)), 1 / np.arange(1, 17)
    own = coins.choice(16, 40_000, p=weights / weights.sum())
    X = np.clip(middles[own] + coins.normal(0, 0.1, (40_000, 6)), -1, 1)
    found = {
        name: np.mean([
            cost(X, KMeans(16, 1.0, domain=(-1, 1), solver=name, random_state=seed).fit(X)
                 .cluster_centers_) for seed in range(4)])
        for name in ("hybrid", "over_seeded")
    }  # fmt: skip
    assert found["over_seeded"] < 0.95 * found["hybrid"]


def test_the_mean_comes_near_that_of_the_records():
    X = np.random.default_rng(0).normal(0.4, 0.1, (4000, 20))
    for delta in (0.0, 1e-6):
        model = KMeans(3, 1.0, delta, domain=(-1, 1), solver="mean", random_state=0).fit(X)
        assert np.abs(model.cluster_centers_ - X.mean(axis=0)).max() < 0.1
        assert (model.cluster_centers_ == model.cluster_centers_[0]).all()


def test_a_bought_radius_brings_the_mean_nearer():
    """Thirty categories of five levels each: residuals are as long as the third of the radii."""
    coins = np.random.default_rng(2)
    level = coins.choice(5, (6000, 30), p=[0.6, 0.2, 0.1, 0.05, 0.05])
    X = 2.0 * (level[..., None] == np.arange(5)).reshape(6000, 150) - 1

    def gap(solver):
        fits = (KMeans(2, 0.2, domain=(-1, 1), solver=solver, adjacency="add_remove",
                       n_public=6000, random_state=seed).fit(X) for seed in range(5))  # fmt: skip
        return np.mean([np.square(fit.cluster_centers_[0] - X.mean(axis=0)).sum() for fit in fits])

    assert gap(Mean()) < 0.75 * gap(Mean(steps=4))


@pytest.mark.parametrize(
    ("n", "delta", "kinds"),
    [(2500, 0.0, [0.4, 0.55, 0.05]),  # epsilon n / d = 5 for a record added or removed
     (2499, 0.0, [0.25] * 4),
     (2500, 1e-6, None)],
)  # fmt: skip
def test_a_mean_buys_its_radius_if_the_first_one_is_near(n, delta, kinds):
    X = np.zeros((50, 50))
    model = KMeans(2, 0.1, delta, domain=(-1, 1), solver=Mean(pure=None if delta else True),
                   adjacency="add_remove", n_public=n, random_state=0).fit(X)  # fmt: skip
    events = [event for event in model.release_.events for _ in range(event.count)]
    if kinds is None:
        assert [event.kind for event in events] == ["gaussian"] * 4
    else:
        shares = sorted(event.parameter / 0.1 for event in events)
        assert shares == pytest.approx(sorted(kinds))


def test_noisy_seeds_are_nearer_to_clusters_of_many_columns_than_a_hybrid():
    """Categories in 60 columns, at the budget where a step of seeds is mostly noise."""
    coins = np.random.default_rng(4)
    likely = coins.dirichlet(np.full(4, 0.4), (4, 15)).cumsum(axis=2)
    own = coins.integers(4, size=8000)
    level = (coins.random((8000, 15, 1)) > likely[own]).sum(axis=2).clip(0, 3)
    X = 2.0 * (level[..., None] == np.arange(4)).reshape(8000, 60) - 1
    chosen = best_of(CentersObjective(X, 4, Box(-1, 1)), Budget(0.35), Neighbours("add_remove"),
                     8000)  # fmt: skip
    assert chosen == OverSeeded(mean=True, tree_share=0.15)
    found = [
        np.mean([
            cost(X, KMeans(4, 0.35, domain=(-1, 1), solver=solver, adjacency="add_remove",
                           n_public=8000, random_state=seed).fit(X).cluster_centers_)
            for seed in range(3)])
        for solver in (chosen, "hybrid")
    ]  # fmt: skip
    assert found[0] < 0.95 * found[1]


def test_a_callback_ends_a_fit_with_what_was_released():
    X = blobs(5, 3000, 4, 4)
    for solver, most in ((OverSeeded(steps=3), 4), (Mean(), 2), (Mean(steps=4), 4)):
        model = KMeans(4, 1.0, domain=(-1, 1), solver=solver, random_state=0)
        assert len(model.fit(X).path_.generations) == most
        stopped = KMeans(4, 1.0, domain=(-1, 1), solver=solver, random_state=0,
                         callback=lambda now: True).fit(X)  # fmt: skip
        assert len(stopped.path_.generations) == 1
        assert stopped.path_.stopped


def test_no_gaussian_release_beside_a_tree_makes_all_pure(monkeypatch):
    monkeypatch.setattr("privfit.clustering.over_seeded.gaussian_left", lambda *a, **b: 0.0)
    objective = CentersObjective(np.zeros((1, 40)), 4, Box(-1, 1))
    plan = Plan.of(OverSeeded(), objective, Budget(1.0, 1e-6), Neighbours("replace"), 10**5)
    assert {event.kind for event in (plan.seeding, plan.steps)} == {"pure"}
    assert compose(plan.events, 0.0) <= 1.0


# --------------------------------------------------------------------------------- planted faults


PLANTED = {
    "radii": partial(test_the_histogram_stays_within_its_sensitivity, 1, "replace"),
    "frames": partial(test_second_moments_stay_within_their_sensitivity, 0.5, "pure", "replace"),
    "averages": partial(test_clipped_means_stay_within_their_sensitivity, 0.5, "pure", "replace"),
}


@pytest.mark.parametrize("part", PLANTED)
def test_the_brute_force_finds_a_sensitivity_that_is_too_small(part, monkeypatch):
    """Noise for a record added or removed, where records are replaced."""
    name = f"privfit.clustering.{part}.DiscreteLaplace"
    monkeypatch.setattr(name, lambda epsilon, span: DiscreteLaplace(epsilon, span // 2))
    with pytest.raises(AssertionError):
        PLANTED[part]()


def test_more_steps_than_a_float_has_halves_are_taken(rng):
    X = rng.uniform(-1, 1, (60, 4))
    found = KMeans(3, 1.0, domain=(-1, 1), solver=Mean(steps=1100), random_state=1).fit(X)
    assert np.isfinite(found.cluster_centers_).all()


@pytest.mark.parametrize(
    ("n", "d", "k", "delta", "settings"),
    [(30_000, 23, 5, 0.0, {"seeds": 2, "frame": True}),
     (30_000, 23, 5, 1e-6, {"seeds": 2, "frame": True}),
     (10**7, 5, 3, 0.0, {"seeds": 3, "frame": None}),  # fewer than six columns
     (10**7, 20, 11, 0.0, {"seeds": 3, "frame": None}),  # 2 k > d
     (7_000, 23, 5, 0.0, {"seeds": 2, "frame": None, "tree_share": 0.26, "mean": None}),
     (1_500, 30, 5, 0.0, {"seeds": 2, "frame": None, "tree_share": 0.15, "mean": True}),  # noisy
     (9_000, 30, 5, 1e-6, {"seeds": 2, "tree_share": 0.26})],  # Gaussian
)  # fmt: skip
def test_auto_chooses_seeds_and_frames_by_public_numbers(n, d, k, delta, settings):
    objective = CentersObjective(np.zeros((1, d)), k, Box(-1, 1))
    chosen = best_of(objective, Budget(1.0, delta), Neighbours("add_remove"), n)
    assert isinstance(chosen, OverSeeded)
    assert {name: getattr(chosen, name) for name in settings} == settings
