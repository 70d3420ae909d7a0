"""Descents: what is summed, what it costs, how far one record can move it, and what is refused.

White box: sums against a naive twin on whole numbers; sensitivities by enumeration of all records
of small grids and all pairs of neighbours. Black box: whole fits on two neighbours at confidence
1 - 1e-6, so a right fit raises a false alarm at most once in 1e6 runs on fresh seeds; seeds are
fixed.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DOMAINS, GRIDS, case, encoded, extreme_rows, labels
from makers.descents import (
    COUNTING,
    SMALL,
    WIDE,
    assert_nothing_is_charged,
    every_record,
    fit,
    fitted,
    largest_changes,
)
from makers.raises import assert_reached, messages_of

from privfit import (
    Box,
    FrankWolfe,
    Gradient,
    Ledger,
    LinearObjective,
    PermutedSGD,
    Reals,
    Schema,
)
from privfit._kernels import linear as kernels
from privfit._kernels.records import RESIDUAL_UNIT
from privfit.audit import audit_runs
from privfit.domains import Grid
from privfit.linear import descent, frank_wolfe, permuted_sgd
from privfit.objectives.clipping import ClippedGradient, SecondMoments, permuted_descent
from privfit.objectives.coding import Coding
from privfit.objectives.linear_moves import LinearSlopes
from privfit.privacy.accounting import gaussian_calibrate
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.runs.run import Run, Task

SURE = 1 - 1e-6
LAYOUTS = ("dense", "sparse")
SIGNED = Box(-1, 1, 3)


def objective_of(name: str, rng: Any, n: int = 60, loss: str = "logistic", **more: Any) -> Any:
    made = case(name, more.pop("grid", None))
    return LinearObjective(made.rows(rng, n), labels(rng, n), loss, made.domain, **more)


def coded(domain: Any, rows: Any) -> list[list[int]]:
    """The twin's coded records, in units of 2^-(a+2), the intercept last."""
    hot = set()
    if isinstance(domain, Schema):
        hot = {j for group in domain.groups for j in range(group.start, group.stop)}
    unit = 4 * 2**domain.grid.a
    result = []
    for x in rows:
        centred = reference.centred_record(x, domain)[: len(x)]
        whole = [v * unit for v in centred]
        whole = [4 * int(x[j]) if j in hot else v for j, v in enumerate(whole)]
        assert all(v == int(v) for v in whole)
        result.append([*map(int, whole), unit // 2])
    return result


# ------------------------------------------------------------------------------------------- sums


@pytest.mark.few(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", DOMAINS)
def test_second_moments_equal_the_twin(name, grid, layout, rng):
    made = case(name, grid)
    rows = made.rows(rng, 40)
    objective = LinearObjective(rows, labels(rng, 40), "logistic", made.domain, layout=layout)
    moments = SecondMoments(objective, Coding(made.domain))
    U = np.array(coded(made.domain, encoded(made.domain, rows)), dtype=object)
    expected = (U.T @ U)[np.triu_indices(U.shape[1])]
    drop = round(math.log2(moments.unit * 16 * 4**grid.a))
    assert moments.triangle().tolist() == [int(v) >> drop for v in expected]
    matrix = moments.matrix(moments.triangle())
    assert np.array_equal(matrix, matrix.T)
    assert matrix[-1, -1] == pytest.approx(10, abs=moments.unit)  # 40 records of 1/2


def twin_sums(clipped: ClippedGradient, rows: Any, y: Any, residuals: Any) -> list[int]:
    """Records one by one: c R u with c = min(r, K / length), and low bits dropped at the end."""
    R = clipped._matrix.astype(object)
    total = np.zeros(len(R), dtype=object)
    for u, label, r in zip(coded(clipped._coding._domain, rows), y, residuals, strict=True):
        image = R @ np.array(u, dtype=object)
        sizes = [-(-abs(int(v)) >> clipped._shift) if v else 0 for v in image]
        squares = sum(v * v for v in sizes)
        length = sum(sizes) if clipped._order == 1 else math.isqrt(squares) + 1
        c = min(int(r), clipped._bound // max(length, 1))
        total += (c if label else -c) * image
    return [int(v) >> clipped._drop for v in total]


def residuals_of(objective: Any, rows: Any, y: Any, w: Any) -> list[int]:
    """Each record's residual, from an objective of that record alone: its intercept's gradient."""
    found = []
    for x, label in zip(rows, y, strict=True):
        alone = LinearObjective([x], [label], objective.loss, objective.domain)
        found.append(abs(int(alone.gradient(w, 1.0)[-1])) >> objective.grid.a)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", DOMAINS)
def test_clipped_gradients_equal_the_twin(name, loss, order, rng):
    made = case(name)
    rows, y = made.rows(rng, 37), labels(rng, 37)
    k = made.domain.width + 1
    transform = rng.normal(size=(k, k)) * rng.lognormal(size=k)
    for layout in LAYOUTS:
        objective = LinearObjective(rows, y, loss, made.domain, layout=layout)
        coding = Coding(made.domain)
        clipped = ClippedGradient(objective, coding, transform, 0.3, order)
        w = coding.weights(rng.normal(size=k) * 2)
        residuals = residuals_of(objective, rows, y, w)
        expected = twin_sums(clipped, encoded(made.domain, rows), y, residuals)
        assert clipped.sums(w).tolist() == expected
        turned = ClippedGradient(objective, coding, np.asfortranarray(transform), 0.3, order)
        assert turned.sums(w).tolist() == expected
        assert clipped.clip <= 0.3
        assert clipped.clip == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("drop", [31, 32, 45, 60])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 7), (20, 137)])
def test_maps_of_sums_are_exact(k, d, drop, rng):
    """At the largest sizes, too: rows of 2^30 in l1, sums of 2^60."""
    matrix = rng.integers(-(2**30) // d, 2**30 // d + 1, (k, d)).astype(np.int32)
    matrix[0] = 0
    matrix[0, 0] = 2**30
    for sums in (rng.integers(-(2**60), 2**60, d), np.full(d, 2**60), np.full(d, -(2**60))):
        found = np.empty(k, dtype=np.int64)
        kernels.mapped(matrix, sums, drop, np.empty((2, d), dtype=np.int32), found)
        exact = matrix.astype(object) @ sums.astype(object)
        assert found.tolist() == [int(x) >> drop for x in exact]


def test_a_gradient_without_a_clip_is_the_gradient(rng):
    objective = objective_of("box", rng, n=300)
    coding = Coding(objective.domain)
    clipped = ClippedGradient(objective, coding, np.eye(6), 1e9)
    w = coding.weights(rng.normal(size=6))
    plain = coding.gradient(objective.gradient(w, 1.0)) * coding.unit * RESIDUAL_UNIT
    assert clipped.sums(w) * clipped.unit == pytest.approx(plain, abs=2 * clipped.unit)
    assert clipped.clip < 2 * coding.longest(2)  # no longer than any record's


@pytest.mark.few(6)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", DOMAINS)
def test_threads_tiles_layouts_and_orders_do_not_matter(name, order, rng, knobs, threads_used):
    made, n = case(name), 700
    rows, y = made.rows(rng, n), labels(rng, n)
    k = made.domain.width + 1
    transform = rng.normal(size=(k, k))
    w = Coding(made.domain).weights(rng.normal(size=k))

    def all_sums(rows: Any, y: Any, **more: Any) -> list[int]:
        objective = LinearObjective(rows, y, "logistic", made.domain, **more)
        coding = Coding(made.domain)
        clipped = ClippedGradient(objective, coding, transform, 0.5, order)
        moments = SecondMoments(objective, coding)
        return [*clipped.sums(w).tolist(), *moments.triangle().tolist()]

    expected = all_sums(rows, y, n_threads=1)
    mixed = rng.permutation(n)
    for layout, threads, size in itertools.product(LAYOUTS, (1, 3), (16, 256)):
        knobs(tile_rows=size, slice_work=2e4, thread_work=0)
        found = all_sums(rows[mixed], y[mixed], layout=layout, n_threads=threads)
        assert found == expected
    assert max(threads_used) >= 1


# ---------------------------------------------------------------------------------- sensitivities


@pytest.mark.few(4)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_second_moments_further_than_the_sensitivity(name, adjacency):
    domain = SMALL[name]
    rows = every_record(domain)

    def triangle(*numbers: int) -> Any:
        objective = LinearObjective(rows[list(numbers)], [1] * len(numbers), domain=domain)
        moments = SecondMoments(objective, Coding(domain))
        assert moments.unit == Coding(domain).unit ** 2  # small grids drop no bits
        return moments.triangle(), moments.sensitivity(Neighbours(adjacency))

    others, bound = triangle(0)
    moved = [triangle(0, i)[0] for i in range(len(rows))]
    found = largest_changes(moved, others, 2)[adjacency]
    assert found <= bound
    assert found >= (0.999 if adjacency == "add_remove" else 0.7) * bound


@pytest.mark.few(1)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_a_gradient_further_than_the_sensitivity(name, loss, order, rng):
    domain = SMALL[name]
    rows, k = every_record(domain), domain.width + 1
    tight = 0.0
    for clip, trial in ((0.05, 0), (0.4, 1), (1e9, 2)):
        transform = rng.normal(size=(k, k)) * rng.lognormal(size=k) if trial else np.eye(k)
        w = Coding(domain).weights(rng.normal(size=k))

        def sums(numbers: Any, y: Any, w: Any = w, clip: Any = clip, R: Any = transform) -> Any:
            objective = LinearObjective(rows[numbers], y, loss, domain)
            clipped = ClippedGradient(objective, Coding(domain), R, clip, order)
            return clipped.sums(w), clipped

        others, clipped = sums([0], [1])
        moved = [sums([0, i], [1, y])[0] for i in range(len(rows)) for y in (0, 1)]
        for adjacency, found in largest_changes(moved, others, order).items():
            bound = clipped.sensitivity(Neighbours(adjacency))
            assert found <= bound
            tight = max(tight, found / bound)
    assert tight > 0.6


@pytest.mark.parametrize("name", DOMAINS)
def test_no_record_is_longer_than_the_longest(name):
    domain = case(name).domain
    coding = Coding(domain)
    U = np.array(coded(domain, encoded(domain, extreme_rows(name)))) * coding.unit
    for order in (1, 2):
        lengths = np.linalg.norm(U, order, axis=1)
        assert lengths.max() <= coding.longest(order)
    assert (np.abs(U).max(axis=0) == coding.reach * coding.unit).all()


def test_extreme_transforms_neither_overflow_nor_lose_the_bound(rng):
    """Entries over 12 orders of magnitude, the finest grid, far bounds: whole numbers all along."""
    domain = Box([-1, 1000, 0], [1, 1001, 1e-6], grid=Grid(a=14, b=16, c=14))
    rows, y = domain.points(50, rng), labels(rng, 50)
    objective = LinearObjective(rows, y, "logistic", domain)
    coding = Coding(domain)
    for scale in (1e-6, 1.0, 1e6):
        transform = rng.normal(size=(4, 4)) * np.geomspace(1e-6, 1e6, 4) * scale
        clipped = ClippedGradient(objective, coding, transform, scale)
        w = coding.weights(rng.normal(size=4))
        residuals = residuals_of(objective, rows, y, w)
        assert clipped.sums(w).tolist() == twin_sums(clipped, encoded(domain, rows), y, residuals)


# ---------------------------------------------------------------------------------------- gradient


def separable(rng: Any, n: int = 3000, loss: str = "logistic", domain: Any = SIGNED) -> Any:
    X = rng.uniform(-1, 1, (n, 3))
    y = X @ [2, -1, 0.5] + rng.logistic(size=n) / 4 > 0.2
    return LinearObjective(X, y, loss, domain), X, y


GRADIENTS = {
    "whitened": (Gradient(), 1e-6, 1 + 64),
    "as coded": (Gradient(whiten=False), 1e-6, 32),
    "pure": (Gradient(), 0.0, 16),
    "few steps": (Gradient(steps=3, momentum=0.5, average=0.0, ridge=0.0), 1e-6, 4),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_descent_spends_its_budget_and_learns(name, loss, adjacency, rng):
    settings, delta, draws = GRADIENTS[name]
    objective, X, y = separable(rng, loss=loss)
    heard = []
    path, grant = fit(objective, settings, 2.0, delta, callback=heard.append,
                      adjacency=adjacency, n_public=2500)  # fmt: skip
    assert sum(event.count for event in grant.events) == draws
    assert 0.999 * 2.0 < grant.spent <= 2.0
    steps = draws - (name in ("whitened", "few steps"))
    assert [g.index for g in heard] == list(range(1, steps + 1))
    assert {g.total for g in heard} == {steps}
    assert len(path.generations) == steps
    w = path.answer
    assert np.mean((X @ w[:-1] + w[-1] > 0) == y) > 0.85
    on_grid = np.concatenate(path.generations) / objective.candidate_units
    assert (on_grid == np.rint(on_grid)).all()


def test_descent_ends_near_the_optimum_where_noise_is_small(rng):
    """Noise of a millionth: what is left is the clip's bias, so nothing is clipped here."""
    objective, X, y = separable(rng)
    path, _ = fit(objective, Gradient(steps=200, clip=100.0, ridge=0.0, average=0.0), 1e6, 1e-6)
    X1, sign = np.column_stack([X, np.ones(len(X))]), np.where(y, 1, -1)
    slope = X1.T @ (sign / (1 + np.exp(sign * (X1 @ path.answer))))
    assert np.abs(slope / len(X)).max() < 2e-3


def test_whitening_helps_records_of_uneven_spread(rng):
    """A column of a tenth of its declared width decides: plain descent hardly moves there."""
    X = rng.uniform(-1, 1, (30_000, 3)) * [1, 1, 0.1]
    y = X[:, 2] > 0
    objective = LinearObjective(X, y, "logistic", SIGNED)
    accuracy = {}
    for whiten in (True, False):
        path, _ = fit(objective, Gradient(whiten=whiten), 10.0, 1e-6)
        w = path.answer
        accuracy[whiten] = np.mean((X @ w[:-1] + w[-1] > 0) == y)
    assert accuracy[True] > 0.9
    assert accuracy[True] > accuracy[False]


def test_several_fits_share_one_grant(rng):
    objective, _, _ = separable(rng)
    for delta in (0.0, 1e-6):
        grant = Ledger(1.0, delta).reserve(1.0, delta)
        for seed in range(3):
            Gradient(steps=4)(Run(objective, Reals(-9, 9, 4), grant, seed, share=3))
            once = Ledger(1.0, delta).reserve(1.0, delta)
            PermutedSGD()(Run(objective, Reals(-9, 9, 4), once, seed, share=3))
        assert 0.999 < grant.spent <= 1.0


def test_gaussian_parameters_add_up_to_the_budget(rng):
    objective, _, _ = separable(rng, n=50)
    _, grant = fit(objective, Gradient(steps=5, moments=0.3), 1.0, 1e-5)
    mu = gaussian_calibrate(1.0, 1e-5)
    moments, steps = grant.events
    assert (moments.count, steps.count) == (1, 5)
    assert moments.parameter**2 == pytest.approx(0.3 * mu**2, rel=1e-6)
    assert 5 * steps.parameter**2 == pytest.approx(0.7 * mu**2, rel=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [1e-4, 1e9])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.5])
def test_tiny_and_huge_budgets_give_a_model(epsilon, delta, rng):
    objective, _, _ = separable(rng, n=20)
    for settings in (Gradient(steps=2), FrankWolfe(steps=2), PermutedSGD()):
        settings.check(Task(objective, None, epsilon, delta, REPLACE, 20))
        path, _ = fit(objective, settings, epsilon, delta)
        assert np.isfinite(path.answer).all()


AWKWARD = {
    "one record": (np.array([[0.1, 0.2, 0.3]]), [1]),
    "equal records": (np.full((40, 3), -1.0), [0] * 40),
    "one class": (np.zeros((40, 3)), [1] * 40),
    "beyond the bounds": (np.full((40, 3), 1e9), [0, 1] * 20),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("settings", [Gradient(steps=3), FrankWolfe(steps=3), PermutedSGD()],
                         ids=lambda s: type(s).__name__)  # fmt: skip
def test_awkward_records_give_a_model(name, settings):
    X, y = AWKWARD[name]
    for delta, adjacency in itertools.product((0.0, 1e-6), ADJACENCIES):
        objective = LinearObjective(X, y, "logistic", SIGNED)
        path, _ = fit(objective, settings, 1.0, delta, adjacency=adjacency, n_public=30)
        assert np.isfinite(path.answer).all()


def test_the_size_comes_from_the_noise_where_it_is_private(rng):
    """Under add_remove a whitened descent needs no n_public."""
    objective, _, _ = separable(rng)
    path, _ = fit(objective, Gradient(steps=3), adjacency="add_remove")
    again, _ = fit(objective, Gradient(steps=3), adjacency="add_remove")
    assert np.array_equal(path.answer, again.answer)


# ------------------------------------------------------------------------------------- Frank-Wolfe


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_frank_wolfe_stays_in_its_ball_and_learns(loss, delta, adjacency, rng):
    objective, X, y = separable(rng, loss=loss)
    settings = FrankWolfe(radius=8.0)
    path, grant = fit(objective, settings, 2.0, delta, adjacency=adjacency, n_public=3000)
    assert 0.999 * 2.0 < grant.spent <= 2.0
    (event,) = grant.events
    assert (event.kind, event.count) == ("selection", len(path.generations))
    w = path.answer
    assert np.mean((X @ w[:-1] + w[-1] > 0) == y) > 0.8
    # Centred weights of the box are twice the linear ones, of the intercept too.
    sizes = np.abs(2 * np.concatenate(path.generations)).sum(axis=1)
    assert (sizes <= 8.0 + 8 * 2.0**-10).all()
    assert sizes[0] == 8.0


def test_frank_wolfe_goes_where_the_twin_goes(rng):
    """Noise of next to nothing: the steepest corner, again and again."""
    objective, _, _ = separable(rng, n=200)
    path, _ = fit(objective, FrankWolfe(steps=12, radius=4.0, cap=1.0), 1e9, 0.0)
    u = np.zeros(4)
    for t, (w,) in enumerate(path.generations):
        model = objective.centred.weights(u)
        slopes = objective.centred.gradient(objective.gradient(model, 1.0))
        j = int(np.argmax(np.abs(slopes)))
        u = (1 - 2 / (t + 2)) * u
        u[j] += 2 / (t + 2) * 4.0 * np.sign(slopes[j])
        assert np.array_equal(w, objective.centred.weights(u))


# ------------------------------------------------------------------------------------ permuted SGD

SGD = {
    "convex": PermutedSGD(passes=3, batch=4),
    "convex, long steps": PermutedSGD(passes=2, batch=1, step=9.0),
    "strongly convex": PermutedSGD(passes=3, batch=3, ridge=0.05),
    "strongly convex, first steps": PermutedSGD(passes=1, batch=1, ridge=0.001),
    "paper": PermutedSGD(paper=True, batch=2),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", SGD)
def test_no_slot_moves_sgd_further_than_the_sensitivity(name, loss, rng):
    """Replaced, or against an empty slot, in every slot; rounding aside."""
    s, slots, furthest = SGD[name], 11, 0.0
    step, bound = permuted_sgd._reach(s, loss, slots)
    domain = Box(-1, 1, 2)
    for trial in range(40):
        X = rng.uniform(-1, 1, (slots + 1, 2))
        if trial % 2:
            X = np.sign(X)
        y = rng.integers(0, 2, slots + 1)
        first = rng.integers(slots)

        def descend(X: Any, y: Any, order: Any) -> Any:
            objective = LinearObjective(X, y, loss, domain)
            return permuted_descent(objective, Coding(domain), order, batch=s.batch,
                                    passes=s.passes, step=step, ridge=s.ridge)  # fmt: skip

        ones = np.ones(slots + 1, dtype=int)
        order = rng.permutation(slots)
        signed = X * np.where(y, 1, -1)[:, None]  # the intercept apart, a flipped record
        w = descend(signed, ones, order)
        for other in (slots, slots + 5):
            v = descend(signed, ones, np.where(order == first, other, order))
            furthest = max(furthest, float(np.linalg.norm(v - w)))
            assert np.linalg.norm(v - w) <= bound
        flipped = ones.copy()
        flipped[-1] = 0  # packed last, and of the other class
        v = descend(signed, flipped, np.where(order == first, slots, order))
        furthest = max(furthest, float(np.linalg.norm(v - w)))
        assert np.linalg.norm(v - w) <= bound
    assert furthest > 0.2 * bound


@pytest.mark.few(4)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", DOMAINS)
def test_sgd_equals_the_twin(name, ridge, loss, rng):
    made, n, batch, passes, step = case(name), 23, 4, 3, 0.7
    rows, y = made.rows(rng, n), labels(rng, n)
    coding = Coding(made.domain)
    order = rng.permutation(n + 4)
    U = np.array(coded(made.domain, encoded(made.domain, rows))) * coding.unit / coding.longest(2)
    packed = np.argsort(~(y > 0), kind="stable")
    U, sign = U[packed], np.where(y[packed] > 0, 1, -1)
    w, t = np.zeros(coding.width), 0
    for _ in range(passes):
        for first in range(0, n + 4, batch):
            t += 1
            total = np.zeros(coding.width)
            for i in order[first : first + batch]:
                if i < n:
                    m = sign[i] * (U[i] @ w)
                    slope = 1 / (1 + math.exp(m)) if loss == "logistic" else min(max(1 - m, 0), 1)
                    total += sign[i] * slope * U[i]
            eta = min(step, 1 / (ridge * t)) if ridge else step
            w = (1 - eta * ridge) * w + eta / batch * total
            if ridge and np.linalg.norm(w) > 1 / ridge:
                w /= ridge * np.linalg.norm(w)
    for layout in LAYOUTS:
        objective = LinearObjective(rows, y, loss, made.domain, layout=layout)
        found = permuted_descent(objective, coding, order, batch=batch, passes=passes, step=step,
                                 ridge=ridge)  # fmt: skip
        assert found == pytest.approx(w, rel=1e-9, abs=1e-12)


def test_sgd_takes_the_shorter_noise(rng):
    objective, X, y = separable(rng)
    for epsilon, kind in ((1.0, "pure"), (1e-3, "gaussian")):
        _, grant = fit(objective, PermutedSGD(), epsilon, 0.1 if kind == "gaussian" else 1e-6)
        (event,) = grant.events
        assert (event.kind, event.count) == (kind, 1)
        assert grant.spent <= epsilon
    path, _ = fit(objective, PermutedSGD(), 5.0, 0.0)
    w = path.answer
    assert np.mean((X @ w[:-1] + w[-1] > 0) == y) > 0.8


def test_sgd_has_as_many_slots_as_are_public(rng, monkeypatch):
    seen = []
    right = permuted_sgd.permuted_descent

    def spy(objective: Any, coding: Any, order: Any, **more: Any) -> Any:
        seen.append(order)
        return right(objective, coding, order, **more)

    monkeypatch.setattr(permuted_sgd, "permuted_descent", spy)
    objective, _, _ = separable(rng, n=50)
    for size in (30, 50, 80):
        fit(objective, PermutedSGD(), adjacency="add_remove", n_public=size)
        assert len(seen[-1]) == len(set(seen[-1].tolist())) == size
        assert seen[-1].max() < max(50, size)


# ---------------------------------------------------------------------------------------- black box

# Records that pull one or two weights with all their might, and their opposites.
CANARIES = {
    1: (Box(-1, 1, 1), [[1.0]], [[-1.0]]),
    2: (Box(-1, 1, 2), [[1.0, 1.0]], [[-1.0, -1.0]]),
}
BUDGET = 1.0


def audit(settings: Any, d: int, adjacency: str, delta: float, runs: int) -> Any:
    domain, one, other = CANARIES[d]
    if adjacency == "replace":
        pair = [(one, [1]), (other, [1])]
    else:
        pair = [(one + one, [1, 1]), (one, [1])]
    objectives = [LinearObjective(X, y, "logistic", domain) for X, y in pair]

    def whole(objective: Any, rng: Any) -> Any:
        path, _ = fit(objective, settings, BUDGET, delta, rng, adjacency=adjacency, n_public=1)
        return float(sum(w[:-1].sum() for (w,) in path.generations))

    return audit_runs(whole, *objectives, runs=runs, confidence=SURE, delta=delta, rng=7)


AUDITED = {
    "gradient": Gradient(steps=2, whiten=False),
    "whitened": Gradient(steps=2),
    "frank_wolfe": FrankWolfe(steps=2, radius=1.0),
    "sgd": PermutedSGD(passes=1, batch=1, step=1.0),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("d", CANARIES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", AUDITED)
def test_whole_fits_stay_within_epsilon(name, adjacency, d):
    delta = 1e-3 if name == "whitened" else 0.0
    report = audit(AUDITED[name], d, adjacency, delta, runs=200)
    assert report.passes(BUDGET), report


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", AUDITED)
def test_the_black_box_sees_a_sensitivity_that_is_too_small(name, monkeypatch):
    """A twentieth of it, or of a range."""
    for kind, method in [(ClippedGradient, "sensitivity"), (LinearSlopes, "range")]:
        right = getattr(kind, method)
        small = lambda self, *a, right=right: max(1, right(self, *a) // 20)  # noqa: E731
        monkeypatch.setattr(kind, method, small)
    right = permuted_sgd._reach
    monkeypatch.setattr(permuted_sgd, "_reach", lambda *a: (right(*a)[0], right(*a)[1] / 20))
    delta = 1e-3 if name == "whitened" else 0.0
    report = audit(AUDITED[name], 1, "replace", delta, runs=500)
    assert not report.passes(BUDGET), report


# ----------------------------------------------------------------------------------------- refusals


def checked(settings: Any, objective: Any, adjacency: str = "replace", size: Any = 4) -> None:
    settings.check(Task(objective, None, 1.0, 1e-6, Neighbours(adjacency), size))


SIZE = r"n_public must be given under adjacency='add_remove'"
SETTINGS = [
    *((partial(Gradient, steps=value), r"steps \(.*\) must be a positive whole number")
      for value in (0, -1, 1.5, "3")),
    *((partial(kind, **{name: value}), rf"{name} \(.*\) must lie in \[0, 1\]; leave it out")
      for kind, name in [(Gradient, "average"), (Gradient, "momentum"), (Gradient, "moments"),
                         (FrankWolfe, "cap"), (FrankWolfe, "average")]
      for value in (-0.1, 1.5, math.nan, "x")),
    (partial(Gradient, moments=0), r"moments \(0\) must be above 0"),
    (partial(Gradient, moments=1.0), r"moments and momentum must be below 1; leave them out"),
    (partial(Gradient, momentum=1.0), r"moments and momentum must be below 1"),
    (partial(Gradient, whiten="yes"), r"whiten \('yes'\) must be True or False; leave it out"),
    *((partial(Gradient, **{name: value}), rf"{name} \(.*\) must be a positive number; leave it")
      for name in ("clip", "floor") for value in (0.0, -1, math.inf, "x")),
    *((partial(kind, ridge=value), r"ridge \(.*\) must be 0 or positive; leave it out")
      for kind in (Gradient, PermutedSGD) for value in (-1, math.nan, "x")),
    *((partial(FrankWolfe, radius=value), r"radius \(.*\) must be a positive number; leave it out")
      for value in (0, -1.0, math.inf, "x")),
    (partial(FrankWolfe, steps=0), r"steps \(0\) must be a positive whole number"),
    (partial(PermutedSGD, passes=0), r"passes \(0\) must be a positive whole number"),
    (partial(PermutedSGD, batch=0.5), r"batch \(0.5\) must be a positive whole number"),
    *((partial(PermutedSGD, step=value), r"step \(.*\) must be a positive number; leave it out")
      for value in (0, -1.0, math.inf, "x")),
    (partial(PermutedSGD, step=1.0, ridge=0.1), r"step must be left out if ridge > 0"),
]  # fmt: skip
REFUSED = [
    (partial(fitted, Gradient(whiten=True), delta=0.0), r"whiten \(True\) needs Gaussian noise"),
    (partial(checked, Gradient(whiten=True), WIDE), r"whiten \(True\) takes fewer than 4096"),
    *((partial(checked, settings, COUNTING), r"needs a linear model with a slope; pass a Linear")
      for settings in (Gradient(), FrankWolfe(), PermutedSGD())),
    *((partial(fitted, solver, adjacency="add_remove"), SIZE)
      for solver in (Gradient(whiten=False), "frank_wolfe", "sgd")),
    *((partial(fitted, "gradient", epsilon=e, delta=d), r"epsilon \(.*\) is too small for this "
                                                        r"number")
      for e, d in [(1e-8, 0.0), (1e-12, 1e-9)]),
    (partial(fitted, "gradient", callback=3), r"callback \(int\) must be a function"),
    (partial(fitted, FrankWolfe(radius=1e12)), r"candidates are too large for exact margins"),
]  # fmt: skip


@pytest.mark.few(30)
@pytest.mark.parametrize(("call", "message"), SETTINGS + REFUSED)
def test_wrong_settings_are_refused_with_the_remedy(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_refusals_come_before_the_charge():
    assert_nothing_is_charged(REFUSED)


def test_every_refusal_is_tested():
    seen = "\n".join(messages_of(call) for call, _ in SETTINGS + REFUSED)
    modules = (descent, frank_wolfe, permuted_sgd)
    assert_reached([File(module.__file__) for module in modules], seen)


def test_what_is_released_shows_no_record(rng):
    objective, _, _ = separable(rng, n=30)
    coding = Coding(objective.domain)
    clipped = ClippedGradient(objective, coding, np.eye(4), 0.5)
    for thing in (coding, clipped, SecondMoments(objective, coding)):
        assert "array" not in repr(thing)
    assert FrankWolfe.__doc__
    assert not [name for name in vars(fitted("gradient")) if "moments" in name]
