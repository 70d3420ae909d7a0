"""Scales of columns that are bought: exact sums, cells, sensitivities by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DISTANCE_DOMAINS, distance_rows
from makers.points import blobs, cost, run_of, worst_gap

from privfit import Box, Budget, CentersObjective, DiscreteGaussian, DiscreteLaplace, KMeans, Stream
from privfit.base.errors import DeclarationError
from privfit.base.rulers import Ruler
from privfit.clustering import OverSeeded
from privfit.clustering.kmeans import best_of
from privfit.clustering.rulers import bought_ruler
from privfit.privacy.accounting import Event
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Cells, Halvings


def some_ruler(rng, low, high):
    origin = rng.integers(low, high + 1)
    return Ruler.about(origin, rng.integers(1, 900, len(low)), low, high)


# ------------------------------------------------------------------------------------- the scale


def test_a_scale_equals_the_twin_and_rises(rng):
    low, high = np.array([-4000, 0, -3]), np.array([4096, 77, 2])
    for _ in range(20):
        ruler = some_ruler(rng, low, high)
        for j, table in enumerate(ruler.tables(low, high)):
            about = [int(part[j]) for part in (ruler.origin, ruler.reach, ruler.bits)]
            numbers = range(low[j], high[j] + 1)
            assert table.tolist() == [reference.ruled(x, *about) for x in numbers]
            assert (np.diff(table) >= 0).all()
            assert (np.diff(table) <= 1).all()


def test_what_is_far_out_takes_half_the_room_at_most(rng):
    low, high = np.array([-4000] * 50), np.array([4096] * 50)
    ruler = some_ruler(rng, low, high)
    for end in (low, high):
        beyond = np.abs(ruler.scaled(end)) - ruler.reach
        assert (beyond <= (ruler.reach + 1) // 2).all()
    near = np.minimum(ruler.origin + ruler.reach, high)
    assert (ruler.scaled(near) == near - ruler.origin).all()
    assert ruler.numbers(ruler.scaled(near)) == pytest.approx(near)


def test_cells_on_a_scale_cover_the_box_and_count_their_records(rng):
    X = rng.normal(0, 0.1, (300, 3)).clip(-1, 1)
    objective = CentersObjective(X, 2, Box(-1, 1))
    rows = np.array(reference.records(X, Box(-1, 1, 3), uniform=True))
    ruler = some_ruler(rng, *objective.bounds)
    halvings = Halvings(*objective.bounds, 9, ruler)
    cells = objective.cells(halvings.axes, ruler)
    for level in (0, 4, 9):
        codes = np.arange(2**level, dtype=np.uint64)
        low, high = halvings.corners(codes, level)
        inside = ((rows >= low[:, None]) & (rows < high[:, None])).all(axis=2)
        assert (inside.sum(axis=0) == 1).all()
        found = cells.count(codes, np.full(len(codes), 9 - level, dtype=np.uint64))
        assert found.tolist() == inside.sum(axis=1).tolist()
        middles, filled = halvings.middles(codes, level), (high > low).all(axis=1)
        assert (middles >= low - 0.5)[filled].all()
        assert (middles <= high)[filled].all()
    whole = np.prod(objective.bounds[1] - objective.bounds[0] + 1.0)
    assert np.prod((high - low).astype(float), axis=1).sum() == whole


def test_cells_spread_their_weight_evenly():
    cells = Cells(np.array([[0, 0], [6, 0]]), np.array([[7, 4], [7, 4]]), np.array([18, 3]), 0.0)
    points, weights = cells.spread(np.array([18.0, 0.0]), 3)
    assert weights.tolist() == [2.0] * 9
    assert np.unique(points[:, 0].round(9)).tolist() == [1, 3, 5]
    assert np.unique(points[:, 1].round(9)).tolist() == [0.5, 1.5, 2.5]
    drawn, _ = cells.spread(np.array([18.0, 0.0]), 3, 0.5)
    assert np.unique(drawn[:, 0].round(9)).tolist() == [2, 3, 4]
    points, weights = cells.spread(cells.weights, 1)
    assert points.tolist() == cells.middles.tolist() == [[3, 1.5], [6, 1.5]]
    assert weights.tolist() == [18, 3]


# ------------------------------------------------------------------------------------ deviations


@pytest.mark.few(4)
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_deviations_equal_the_twin(name, norm, rng):
    X = distance_rows(name, rng, 60)
    rows = reference.records(X, DISTANCE_DOMAINS[name], uniform=True)
    objective = CentersObjective(X, 3, DISTANCE_DOMAINS[name])
    point = objective.project(rng.uniform(objective.domain.low, objective.domain.high))
    whole = np.rint(point / objective.candidate_units).astype(np.int64).tolist()
    far = objective.reach(norm)
    for radius in (1, far // 4 + 1, 2 * far):
        found = objective.deviations(point, radius, norm)
        assert found.tolist() == reference.clipped_deviations(rows, whole, radius, norm)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("radius", [0.5, 1.0, 5.0])
def test_deviations_stay_within_their_sensitivity(radius, kind, adjacency):
    middle = np.array([0.5, 0.0])
    worst = worst_gap(
        adjacency, kind, lambda run, cost: bought_ruler(run, middle, radius, cost, 50)
    )
    assert worst <= 1 + 1e-12
    if radius <= 1.0:
        assert worst > 0.9


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_the_brute_force_finds_a_sensitivity_that_is_too_small(kind, monkeypatch):
    """Noise for a record added or removed, where records are replaced."""

    def halved(cost, V, neighbours):
        if cost.kind == "pure":
            return DiscreteLaplace(cost.parameter, V)
        return DiscreteGaussian(cost.parameter, float(V))

    monkeypatch.setattr("privfit.clustering.rulers.deviation_noise", halved)
    with pytest.raises(AssertionError):
        test_deviations_stay_within_their_sensitivity(0.5, kind, "replace")


def test_a_scale_follows_the_deviations_of_its_column():
    """Without noise: an even column, and one that is narrow but for one record far out."""
    coins = np.random.default_rng(3)
    X = np.column_stack([coins.uniform(-1, 1, 4000), coins.normal(0.5, 0.05, 4000)]).clip(-1, 1)
    X[0, 1] = -1
    run = run_of(CentersObjective(X, 2, Box(-1, 1)), "replace")
    ruler = bought_ruler(run, np.array([0.0, 0.5]), 3.0, Event("gaussian", 1e3), len(X))
    reach = ruler.reach * run.objective.candidate_units
    assert reach == pytest.approx([2.2 * 1.25 * 0.5, 2.2 * 0.05], rel=0.05)
    low, high = run.objective.bounds
    wide = ruler.scaled(high) - ruler.scaled(low)
    assert wide[0] > 5 * wide[1]
    assert Halvings(low, high, 4, ruler).axes.tolist() == [0, 0, 0, 1]


# ------------------------------------------------------------------------------------- whole fits


def test_scales_tell_clusters_apart_that_one_record_far_out_hides():
    """Fixed seeds: 6 columns of which 5 are narrow, in declared ranges that are wide."""
    X = np.concatenate([0.06 * blobs(1, 30_000, 6, 5) + 0.3, np.full((1, 6), -1.0)])
    X[:, 0] = np.clip(8 * (X[:, 0] - 0.3), -1, 1)
    found = [
        np.mean([
            cost(X, KMeans(5, 0.1, domain=(-1, 1), solver=OverSeeded(mean=True, deviations=bought),
                           adjacency="add_remove", n_public=len(X), random_state=seed).fit(X)
                 .cluster_centers_) for seed in range(4)])
        for bought in (True, None)
    ]  # fmt: skip
    assert found[0] < 0.9 * found[1]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_streams_give_the_bits_of_memory(delta):
    X = blobs(3, 6000, 5, 4)
    solver = OverSeeded(deviations=True, pure=False)
    model = KMeans(4, 1.0, delta, domain=(-1, 1), solver=solver, random_state=7)
    expected = model.fit(X).cluster_centers_.tolist()
    assert model.release_.settings["deviations"]
    assert model.fit(Stream(X)).cluster_centers_.tolist() == expected


def test_a_tree_has_one_shape():
    with pytest.raises(DeclarationError, match=r"frame \(True\) and deviations \(True\) are two"):
        OverSeeded(frame=True, deviations=True)


@pytest.mark.parametrize(
    ("n", "d", "k", "bought"),
    [(90_000, 10, 6, True),  # s is below 150
     (90_200, 10, 6, None),
     (40_000, 11, 6, None),  # many columns
     (60_000, 10, 4, None),  # a frame
     (180_000, 10, 6, True)],
)  # fmt: skip
def test_auto_buys_scales_by_public_numbers(n, d, k, bought):
    objective = CentersObjective(np.zeros((1, d)), k, Box(-1, 1))
    relation = "replace" if n == 180_000 else "add_remove"
    chosen = best_of(objective, Budget(0.0999), Neighbours(relation), n)
    assert isinstance(chosen, OverSeeded)
    assert chosen.deviations == bought
