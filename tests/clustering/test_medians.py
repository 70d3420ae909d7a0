"""k-median without facilities, and over-seeded greedy: sensitivities by brute force, whole fits."""

from __future__ import annotations

import itertools
import json
from functools import partial

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES
from makers.points import COARSE, RECORDS, Watched, blobs, run_of, tables

import privfit
from privfit import (
    Box,
    Budget,
    CentersObjective,
    DiscreteGaussian,
    DiscreteLaplace,
    FacilityObjective,
    Greedy,
    KMeans,
    KMedian,
    Ledger,
    Stream,
    Subsets,
)
from privfit.base.errors import FileError
from privfit.clustering import CellMedians, Hybrid, Mean, Medians, Tree, kmedian, medians
from privfit.clustering.medians import MedianSteps, best_of, median_steps, short_radius
from privfit.clustering.radii import tried_radii
from privfit.clustering.weiszfeld import weighted_medians
from privfit.models.model import dumps, loads
from privfit.privacy.accounting import Event, compose
from privfit.privacy.neighbours import Neighbours

CENTERS = np.array([[-0.5, 0.5], [0.5, 0.0]])
PLACES = RECORDS[::3]


def cost(X, centers):
    return np.sqrt(np.square(X[:, None] - centers).sum(axis=2)).min(axis=1).mean()


def anywhere(k=4, epsilon=1.0, delta=0.0, **changes):
    declared = {"domain": (-1, 1), "metric": "l2", "random_state": 0}
    return KMedian(k, epsilon, delta, **{**declared, **changes})


# --------------------------------------------------------------- sensitivities, for all neighbours


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_median_steps_stay_within_their_sensitivities(kind, adjacency):
    """The histogram changes by all of its sensitivity for some neighbours; a step by most of it."""
    worst = {"radii": 0.0, "step": 0.0}
    for pair in tables(adjacency):
        seen = []
        for X in pair:
            objective = CentersObjective(X, 2, COARSE, adjacency=adjacency)
            run = run_of(objective, adjacency)
            median_steps(run, CENTERS, 0.7, Event(kind, 0.5))
            # Radii follow from what was released, so a step is compared at the same ones.
            for radius in (1, 2, 4):
                steps = stepping(run, objective, kind, radius)
                steps.released(run, objective, CENTERS)
            seen.append(run._grant.seen)
        for (mechanism, first), (other, second) in zip(*seen, strict=True):
            assert mechanism == other
            norm = 2 if isinstance(mechanism, DiscreteGaussian) else 1
            gap = np.linalg.norm((first - second).astype(float), ord=norm) / mechanism.sensitivity
            part = "radii" if len(first) == 10 else "step"
            worst[part] = max(worst[part], gap)
    assert worst["radii"] == 1
    assert 0.8 < worst["step"] <= 1 + 1e-12


def stepping(run, objective, kind, radius):
    settings = privfit.Lloyd(residual=True, radius=radius * objective.candidate_units)
    steps = medians.Steps.of(settings, objective, Event(kind, 0.5), run.neighbours)
    return MedianSteps(**vars(steps), lengthen=2.0)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_of_added_facilities_stay_within_their_sensitivity(adjacency):
    """And so do the scores of every selection: of bounds, additions and swaps."""
    worst, selected = 0.0, 0.0
    for pair in tables(adjacency):
        seen = []
        for X in pair:
            objective = FacilityObjective(X, PLACES, (0, 9), COARSE, metric="l2")
            run = run_of(objective, adjacency, Watched(Budget(1.0)), space=Subsets(9, 2))
            Greedy(seeds=2, swaps=1)(run)
            seen.append(run._grant.seen)
        for (mechanism, first), (other, second) in zip(*seen, strict=True):
            assert mechanism == other
            gap = first - second
            if isinstance(mechanism, DiscreteLaplace):
                worst = max(worst, np.abs(gap).sum() / mechanism.sensitivity)
            else:
                selected = max(selected, (gap.max() - gap.min()) / mechanism.range)
    assert worst == 1
    assert 0.9 < selected <= 1


@pytest.mark.parametrize("part", ["medians", "kmedian"])
def test_the_brute_force_finds_a_sensitivity_that_is_too_small(part, monkeypatch):
    """Noise for a record added or removed, where records are replaced."""
    monkeypatch.setitem(globals(), "tables", partial(tables, records=RECORDS[::4]))  # enough
    name = f"privfit.clustering.{part}.DiscreteLaplace"
    monkeypatch.setattr(name, lambda epsilon, span: DiscreteLaplace(epsilon, span // 2))
    test = {
        "medians": partial(test_median_steps_stay_within_their_sensitivities, "pure"),
        "kmedian": test_counts_of_added_facilities_stay_within_their_sensitivity,
    }[part]
    with pytest.raises(AssertionError):
        test("replace")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver", [Medians(mean=True), Medians(mean=False), CellMedians()])
def test_plans_cost_the_budget_and_no_more(solver, adjacency):
    X = blobs(0, 2000, 5, 4)
    for epsilon, delta in itertools.product((0.05, 1.0, 8.0), (0.0, 1e-6)):
        ledger = Ledger(epsilon, delta, adjacency=adjacency)
        model = anywhere(4, epsilon, delta, solver=solver, ledger=ledger, adjacency=adjacency,
                         n_public=2000).fit(X)  # fmt: skip
        assert 0.97 * epsilon < compose(model.release_.events, delta) <= epsilon
        assert model.release_.verify()


@pytest.mark.parametrize("solver", [Medians(), CellMedians()])
def test_the_plan_does_not_depend_on_the_records(solver):
    first, second = (
        anywhere(4, 1.0, 1e-6, solver=solver, random_state=seed).fit(X)
        for seed, X in enumerate((blobs(0, 900, 5, 4), np.ones((900, 5))))
    )
    assert first.release_.events == second.release_.events
    assert len(first.path_.generations) == len(second.path_.generations)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_over_seeded_greedy_costs_the_budget_and_no_more(adjacency):
    X, places = blobs(1, 500, 3, 4), np.random.default_rng(0).uniform(-1, 1, (40, 3))
    for (epsilon, delta), focus in itertools.product(((0.1, 0.0), (3.0, 1e-6)), (0.0, 0.2)):
        model = KMedian(
            4,
            epsilon,
            delta,
            facilities=places,
            domain=(-1, 1),
            adjacency=adjacency,
            solver=Greedy(focus=focus, seeds=3, swaps=2),
            random_state=0,
        ).fit(X)
        assert 0.9 * epsilon < compose(model.release_.events, delta) <= epsilon
        assert len(set(model.facilities_.tolist())) == 4


# -------------------------------------------------------------------------------- post-processing


def test_the_short_radius_equals_the_twin(rng):
    for radii in (tried_radii(1000.0), tried_radii(3.0)):
        for counts in (rng.integers(-5, 400, 10), np.eye(10)[3] * 50, np.eye(10)[9] * 50):
            expected = reference.short_radius(radii.tolist(), counts.tolist(), medians.SHARE)
            assert short_radius(radii, counts) == pytest.approx(expected)
        assert short_radius(radii, np.full(10, -3)) == (radii[-1], 1.0)


def test_a_histogram_that_is_noise_leaves_the_usual_radius():
    objective = CentersObjective(RECORDS, 2, COARSE)
    steps = median_steps(run_of(objective, "replace", size=2), CENTERS, 0.05, Event("pure", 0.5))
    assert steps.lengthen == 1.0


def test_a_median_step_is_that_of_weiszfeld(rng):
    """Of records around one centre, without noise, all of them beyond the radius."""
    X = np.clip(rng.normal([0.3, 0.1], 0.05, (400, 2)), -1, 1)
    objective = CentersObjective(X, 1, Box(-1, 1))
    center = np.array([[-0.5, -0.5]])
    run = run_of(objective, "add_remove", size=400)
    steps = stepping(run, objective, "gaussian", 400)
    norms = np.linalg.norm(X - center, axis=1)
    lengthen = 1 / np.mean(np.minimum(1.0, steps.radius * objective.candidate_units / norms))
    steps = MedianSteps(**{**vars(steps), "lengthen": lengthen})
    moved = steps.moved(objective, center, *steps.released(run, objective, center), 1.0)
    assert moved == pytest.approx(reference.weiszfeld_step(X, center[0])[None], abs=0.01)


def test_weighted_medians_ignore_outliers_where_means_do_not(rng):
    points = np.concatenate([rng.normal(0, 0.01, (30, 2)), [[9.0, 9.0]]])
    found = weighted_medians(points, np.ones(31), 1, rng, 3, 0.01)
    assert np.abs(found).max() < 0.02
    assert points.mean(axis=0).max() > 0.2


def test_weighted_medians_find_weighted_clusters(rng):
    points = np.repeat([[-0.5, 0.0], [0.5, 0.5], [0.5, -0.5]], 20, axis=0)
    points = points + rng.normal(0, 0.02, points.shape)
    found = weighted_medians(points, rng.uniform(1, 2, 60), 3, rng, 10, 0.01)
    for middle in ([-0.5, 0.0], [0.5, 0.5], [0.5, -0.5]):
        assert np.linalg.norm(found - middle, axis=1).min() < 0.03


def test_no_cell_of_positive_weight_leaves_the_start():
    model = anywhere(3, 1e-3, solver=CellMedians(roots=1, depth=1)).fit(np.zeros((2, 2)))
    assert np.isfinite(model.cluster_centers_).all()


# ------------------------------------------------------------------------------------- whole fits


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("solver", [Medians(tree=Tree(restarts=2), mean=True), CellMedians()])
def test_streams_give_the_bits_of_memory(solver, delta):
    X = blobs(3, 6000, 3, 4)
    model = anywhere(4, 1.0, delta, solver=solver, random_state=7)
    expected, price = model.fit(X).release_.to_json(), model.private_cost(X, 0.5)
    assert model.fit(Stream(X)).release_.to_json() == expected
    assert model.private_cost(Stream(X), 0.5) == price


def test_median_steps_beat_means_where_records_are_skewed():
    """Fixed seeds. Heavy tails pull means away from where most records are."""
    coins = np.random.default_rng(4)
    X = np.repeat(coins.uniform(-0.5, 0.0, (4, 6)), 5000, axis=0)
    X = np.clip(X + 0.03 * coins.standard_exponential(X.shape) ** 2, -1, 1)
    found = {}
    for name, make in {
        "medians": partial(anywhere, solver="medians"),
        "means": partial(KMeans, domain=(-1, 1), solver="over_seeded"),
    }.items():
        models = [
            make(n_clusters=4, epsilon=1.0, random_state=seed)
            if name == "means"
            else make(4, 1.0, random_state=seed)
            for seed in range(3)
        ]
        found[name] = np.mean([cost(X, model.fit(X).cluster_centers_) for model in models])
    assert found["medians"] < 0.98 * found["means"]


def test_a_callback_ends_a_fit_with_what_was_released():
    X = blobs(5, 3000, 4, 4)
    model = anywhere(4, solver=Medians(steps=3))
    assert len(model.fit(X).path_.generations) == 4
    stopped = anywhere(4, solver=Medians(steps=3), callback=lambda now: True).fit(X)
    assert len(stopped.path_.generations) == 1
    assert stopped.path_.stopped


def test_automatic_choices_follow_the_rule_of_kmeans():
    def chosen(d, k, epsilon, size):
        objective = CentersObjective(np.zeros((1, d)), k, Box(-1, 1))
        return best_of(objective, Budget(epsilon), Neighbours("add_remove"), size)

    assert chosen(2, 5, 1.0, 1000) == CellMedians()
    assert chosen(6, 5, 1.0, 50_000) == Medians()
    assert chosen(6, 2, 1.0, 50_000) == Medians()
    assert chosen(6, 1, 1.0, 50_000) == Hybrid()
    assert chosen(6, 2, 0.1, 2000) == Hybrid()
    assert chosen(3, 3, 1.0, 50_000) == Hybrid()
    assert chosen(20, 5, 0.1, 500) == Mean()
    assert isinstance(chosen(6, 5, 1.0, None), Hybrid)


@pytest.mark.parametrize("d", [2, 5])
def test_a_model_without_facilities_is_read_again(d):
    X = blobs(2, 3000, d, 4)
    model = anywhere(4, clip=(0, 2), adjacency="add_remove", n_public=3000).fit(X)
    assert not hasattr(model, "facilities_")
    again = loads(dumps(model))
    assert np.array_equal(again.cluster_centers_, model.cluster_centers_)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.clip_ == model.clip_
    assert again.score(X) == model.score(X)


def test_a_model_file_with_another_metric_is_refused():
    text = json.loads(dumps(anywhere(2).fit(blobs(2, 300, 2, 2))))
    text["parameters"]["metric"] = "l1"
    with pytest.raises(FileError, match="metric"):
        loads(json.dumps(text))


def test_over_seeded_greedy_keeps_the_facilities_that_serve_most():
    """Two heavy groups and a few records elsewhere; plenty of budget."""
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [900, 900, 5], axis=0)
    places = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    model = KMedian(2, 5.0, facilities=places, domain=(0, 1), solver=Greedy(seeds=2),
                    random_state=1).fit(X)  # fmt: skip
    assert model.facilities_.tolist() == [0, 1]
    assert kmedian.COUNTED < 1
