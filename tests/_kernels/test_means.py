"""Weighted k-means of public points: equal to its naive twin, to the bit, whatever is skipped."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from privfit._kernels.means import closer, lloyd_steps
from privfit.runs.means import MOST_WORK, seeds, weighted_means

SIZES = [(1, 1, 1), (2, 3, 1), (7, 2, 7), (40, 3, 8), (41, 2, 9), (300, 5, 17), (140, 10, 32)]


class Steps:
    """The buffers of one step of several runs."""

    def __init__(self, points, weights, starts, n_threads=1):
        (m, d), (runs, k) = points.shape, starts.shape[:2]
        self.points, self.own = points, np.square(points).sum(axis=1)
        self.weighed = np.ascontiguousarray(np.vstack([weights, weights * points.T]))
        self.work = np.full((n_threads, max((k + 7) * (2 + d), m + 2 * k)), np.nan)
        self.places = np.full((n_threads, m + k), -1, dtype=np.int32)
        self.centers, self.moved = starts.copy(), np.full_like(starts, np.nan)
        self.shifts, self.costs = np.zeros((runs, k)), np.full(runs, np.nan)
        self.nearest = np.zeros((runs, m), dtype=np.int32)
        self.lower = np.full((runs, m), -1.0)

    def __call__(self, live):
        lloyd_steps(self.points, self.own, self.weighed, np.array(live, dtype=np.int32),
                    self.own.max(), self.work, self.places, self.centers, self.shifts,
                    self.nearest, self.lower, self.moved, self.costs)  # fmt: skip


def blobs(rng, m, d, k):
    """Points around k middles, on a coarse grid, so that many are equally near to two centres."""
    middles = rng.uniform(-1, 1, (k, d))
    return np.round((middles[rng.integers(k, size=m)] + rng.normal(0, 0.1, (m, d))) * 16) / 16


@pytest.mark.parametrize(("m", "d", "k"), SIZES)
def test_steps_equal_the_twin_though_points_are_skipped(m, d, k, rng):
    """With ties, repeated centres, centres without points, and points without weight."""
    points, weights = blobs(rng, m, d, k), rng.integers(0, 5, m) / 3
    starts = np.stack([points[rng.integers(m, size=k)] for _ in range(2)])
    starts[1, -1] = 9.0
    steps = Steps(points, weights, starts)
    for _ in range(8):
        steps([0, 1])
        for run in range(2):
            nearest, cost, moved = reference.lloyd_step(
                points.tolist(), weights.tolist(), steps.centers[run].tolist()
            )
            assert steps.nearest[run].tolist() == nearest
            assert steps.costs[run] == cost
            assert steps.moved[run].tolist() == moved
        steps.centers[:] = steps.moved


def test_points_far_from_other_centres_are_skipped():
    """A skipped point keeps its centre even where that is wrong: nobody has looked."""
    points = np.array([[0.0], [0.1], [1.0]])
    steps = Steps(points, np.ones(3), np.array([[[0.0], [1.0]]]))
    steps([0])
    assert steps.nearest.tolist() == [[0, 0, 1]]
    steps.nearest[0, 0], steps.lower[0, 0] = 1, 5.0
    steps([0])
    assert steps.nearest.tolist() == [[1, 0, 1]]


def test_a_run_that_has_ended_is_left_alone(rng):
    points = rng.uniform(-1, 1, (50, 2))
    steps = Steps(points, np.ones(50), np.stack([points[:3], points[3:6]]))
    steps([1])
    assert np.isnan(steps.costs).tolist() == [True, False]
    assert np.isnan(steps.moved[0]).all()
    assert not np.isnan(steps.moved[1]).any()


@pytest.mark.parametrize(("m", "c"), [(1, 1), (3, 3), (255, 3), (256, 1), (257, 3), (700, 2)])
def test_distances_with_one_more_centre(m, c, rng):
    points, weights = blobs(rng, m, 3, 4), rng.uniform(0, 1, m)
    some, far = blobs(rng, c, 3, 4), rng.uniform(0, 0.5, m)
    fars, costs = np.empty((c, m)), np.empty(c)
    own = np.array([reference.squared_distance(p, [0.0] * 3) for p in points.tolist()])
    closer(np.ascontiguousarray(points.T), own, weights, some, far, fars, costs)
    for a, center in enumerate(some.tolist()):
        twin = [min(reference.squared_distance(p, center), most)
                for p, most in zip(points.tolist(), far.tolist(), strict=True)]  # fmt: skip
        assert fars[a].tolist() == twin
        assert costs[a] == pytest.approx(weights @ twin, rel=1e-13)


# ------------------------------------------------------------------------------ all runs together


def test_the_best_run_is_that_of_the_twin(rng):
    points, weights = blobs(rng, 60, 2, 5), rng.uniform(0, 1, 60)
    coins, found = np.random.default_rng(3), []
    for _ in range(4):
        centers, cost, last = seeds(points, weights, 5, coins).tolist(), np.inf, np.inf
        for _ in range(100):
            _, cost, moved = reference.lloyd_step(points.tolist(), weights.tolist(), centers)
            if cost >= last * (1 - 1e-4):
                break
            centers, last = moved, cost
        found.append((cost, centers))
    best = min(found, key=lambda run: run[0])[1]
    assert weighted_means(points, weights, 5, np.random.default_rng(3), 4).tolist() == best


def test_the_answer_does_not_depend_on_threads(rng, threads_used):
    points, weights = blobs(rng, 400, 3, 6), rng.uniform(0, 1, 400)
    answers = [
        weighted_means(points, weights, 6, np.random.default_rng(1), 8, n).tolist()
        for n in (1, 2, 3)
    ]
    assert answers[1] == answers[2] == answers[0]
    assert threads_used == [1, 2, 3]


def test_points_in_any_layout_have_the_same_means(rng):
    points, weights = blobs(rng, 90, 4, 5), rng.uniform(0, 1, 90)
    expected = weighted_means(points, weights, 5, np.random.default_rng(1))
    points.flags.writeable = False
    for same in (points, np.asfortranarray(points), np.repeat(points, 2, axis=0)[::2]):
        found = weighted_means(same, weights.tolist(), 5, np.random.default_rng(1))
        assert found.tolist() == expected.tolist()


def test_many_points_leave_one_run(rng):
    points = rng.uniform(-1, 1, (MOST_WORK // 4 + 1, 1))
    few, many = (weighted_means(points, np.ones(len(points)), 4, np.random.default_rng(1), runs)
                 for runs in (1, 20))  # fmt: skip
    assert few.tolist() == many.tolist()
