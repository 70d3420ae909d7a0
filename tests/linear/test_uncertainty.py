"""Errors and intervals of linear models: formulas against twins, and measured coverage.

The statistical tests use fixed seeds. Their bounds are far enough from what was measured that on
fresh seeds they fail at most once in 1e6 runs; each says how that was computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference
from scipy.special import expit

from privfit import (
    Box,
    Categorical,
    Gradient,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivateSVM,
    Reals,
    Schema,
    SelectRefine,
)
from privfit.linear import descent
from privfit.linear.summary import Intervals, Line
from privfit.linear.uncertainty import Margins, Records, Walk, deviations, estimated, noise_of
from privfit.models.model import dumps, loads
from privfit.objectives.coding import Broad, Coding
from privfit.privacy.neighbours import Neighbours
from privfit.runs import Run

REACH = 1.6448536269514722  # of a 90 % interval, in standard deviations
PEOPLE = Schema({"age": Numeric(20, 70), "job": Categorical(["a", "b", "c"])})
pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")


class WithoutNoise(Run[Any, Any]):
    """A run whose first draws, as many as `noisy`, have noise, and whose others have none."""

    noisy = 0

    def release(self, mechanism: Any, value: Any) -> Any:
        drawn = super().release(mechanism, value)
        self.noisy -= 1
        return drawn if self.noisy >= 0 else np.asarray(value)


def table(n: int = 2000, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0, 0.4, (n, d)), -1, 1)
    return X, (rng.random(n) < expit(4 * X[:, 0] - 2 * X[:, 1] - 0.5)).astype(int)


def people(n: int = 3000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    age, job = rng.uniform(20, 70, n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    return {"age": age, "job": job}, (rng.random(n) < expit((age - 45) / 10)).astype(int)


def model(kind: Any = LogisticRegression, solver: Any = "gradient", **more: Any) -> Any:
    declared = {"domain": (-1, 1), "classes": [0, 1], "random_state": 5, "epsilon": 1.0, **more}
    return kind(solver=solver, **{"delta": 1e-6, **declared})


# ---------------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("steps", "averaged"), [(1, 1), (7, 1), (7, 3), (7, 7), (32, 24)])
def test_deviations_are_those_of_the_naive_twin(momentum, steps, averaged):
    walk = Walk(1.7, 0.99, momentum, 0.3, steps, averaged)
    curvature = np.array([0.0, 0.01, 0.4])
    found = [reference.descent_deviation(walk, one) for one in curvature.tolist()]
    np.testing.assert_allclose(deviations(walk, curvature), found, rtol=1e-12)


def test_noise_follows_directions_of_the_curvature():
    rng = np.random.default_rng(0)
    walk, basis = Walk(1.0, 1.0, 0.0, 1.0, 9, 5), rng.normal(size=(3, 5))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    values = np.array([0.1, 0.2, 0.5])
    whole = noise_of(walk, turn @ np.diag(values) @ turn.T, basis)
    parts = noise_of(walk, values, turn.T @ basis)
    np.testing.assert_allclose(whole.T @ whole, parts.T @ parts, rtol=1e-10)


def test_moments_without_noise_are_kept_but_for_what_is_empty():
    rng = np.random.default_rng(0)
    records = rng.normal(size=(50, 4)) @ (np.eye(4) - 0.25)  # whose sum is 0
    matrix = records.T @ records
    np.testing.assert_allclose(estimated(matrix, 1e-9, np.ones((1, 4))), matrix, atol=1e-9)
    noisy = estimated(matrix + 5.0, 1e-9, np.ones((1, 4)))
    np.testing.assert_allclose(noisy, matrix, atol=1e-9)


@pytest.mark.statistical
def test_estimated_moments_are_nearer_than_noisy_ones():
    """Mean of 40 differences over its standard error: measured below -20, the bound is -5."""
    rng, gains = np.random.default_rng(0), []
    for _ in range(40):
        truth = np.diag(rng.uniform(0, 3, 12))
        noise = np.triu(rng.normal(size=(12, 12)))
        noisy = truth + noise + np.triu(noise, 1).T
        plain = np.linalg.norm(noisy - truth)
        gains.append(np.linalg.norm(estimated(noisy, 1.0, np.zeros((0, 12))) - truth) - plain)
    assert np.mean(gains) / (np.std(gains) / math.sqrt(len(gains))) < -5


@pytest.mark.parametrize("kind", [Broad, Coding])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_coded_record_has_a_part_of_an_empty_direction(kind, intercept):
    schema = Schema({"x": Numeric(0, 9), "a": Categorical([1, 2]), "b": Categorical([1, 2, 3])})
    coding = kind(schema, intercept)
    rows = schema.rounded({"x": [0, 4, 9], "a": [1, 2, 1], "b": [3, 1, 2]}).toarray()
    factor, offset = coding.columns
    coded = np.hstack([rows / schema.record_units() * factor, np.zeros((3, int(intercept)))])
    coded = (coded + offset) * coding.unit
    empty = coding.empty(np.arange(coding.width))
    assert empty.shape == (2 if intercept else 1, coding.width)
    np.testing.assert_allclose(coded @ empty.T, 0, atol=1e-9)
    assert coding.empty(np.arange(coding.width)[2:]).shape[0] == int(intercept)  # half of a


def exact_curvature(phi: Any, z: Any, y: Any, clip: float) -> Any:
    """The mean curvature of clipped logistic losses, record by record."""
    p = expit(z)
    inside = np.abs(y - p) * np.linalg.norm(phi, axis=1) <= clip
    return (phi * (p * (1 - p) * inside)[:, None]).T @ phi / len(phi)


@pytest.mark.parametrize("clip", [0.8, 1.5, 100.0])
def test_curvature_is_that_of_normal_records(clip, monkeypatch):
    """Of 400,000 records: within 5 % of the trace, except for the model of lengths (12 %)."""
    monkeypatch.setattr("privfit.linear.uncertainty.TRUSTED", {"logistic": 1.0})
    monkeypatch.setattr("privfit.linear.uncertainty.ODDS", 1.0)
    rng = np.random.default_rng(0)
    u = np.array([1.0, -1.5, 0.3, 0.8])
    phi = np.hstack([rng.normal(size=(400_000, 3)), np.full((400_000, 1), 0.5)])
    z = phi @ u
    y = (rng.random(len(z)) < expit(z)).astype(int)
    records = Records(phi.T @ phi / len(phi), np.eye(4), 0.5)
    found, true = records.curvature("logistic", u, clip), exact_curvature(phi, z, y, clip)
    part = 0.05 if clip == 100.0 else 0.12
    assert np.abs(found - true).max() < part * np.trace(true)


def test_the_hinge_bends_where_margins_are_one():
    found = Margins(0.0, 2.0, np.array([4.0, 0.0, 0.0]), 50.0).hinge(1e6)
    density = math.exp(-1 / 8) / (2 * math.sqrt(2 * math.pi))
    assert found[0] == pytest.approx(2 * expit(2.0) * density, rel=1e-9)
    assert found[1] == pytest.approx(0.0, abs=1e-12)
    clipped = Margins(0.0, 2.0, np.array([4.0, 0.0, 0.0]), 5000.0).hinge(1.0)
    assert clipped[0] == pytest.approx(found[0] / 2, rel=0.01)  # lengths are 2


def test_margins_that_are_certain_bend_nothing_and_divide_by_nothing():
    found = Margins(0.0, 500.0, np.array([4.0, 0.0, 0.0]), 5.0).logistic(0.5)
    assert np.isfinite(found).all()
    assert 0 <= found[0] < 0.01


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("part", [0.9, 1.1])
def test_noise_settles_below_the_edge_and_grows_beyond(momentum, part):
    edge = part * (1 + momentum) * 1.99 / (0.99 * 2.0)
    far, near = (deviations(Walk(2.0, 0.99, momentum, 1.0, n, 1), np.array([edge]))[0]
                 for n in (400, 200))  # fmt: skip
    assert Walk(2.0, 0.99, momentum, 1.0, 400, 1).settles(np.array([[edge]])) == (part < 1)
    assert (far < 1.01 * near) == (part < 1)


@pytest.mark.parametrize("steps", [8, 2000])
def test_steps_that_are_too_long_for_the_law_leave_a_model_without_errors(steps, monkeypatch):
    """A fit that is paid for ends with a model, and what cannot be computed is not known."""
    monkeypatch.setattr("privfit.linear.uncertainty.TRUSTED", {"logistic": 100.0})
    X, y = table(300)
    found = model(solver=Gradient(steps=steps, momentum=0.9)).fit(X, y)
    assert np.isfinite(found.coef_).all()
    assert found.standard_errors_ is None
    assert loads(dumps(found)).coef_.tolist() == found.coef_.tolist()


# ---------------------------------------------------------------------------------------- coverage


def gaps(settings: Any, loss: str, before: int, fits: int, delta: float, epsilon: float) -> Any:
    """(fits, weights): how many standard deviations weights are away from those without noise."""
    found, high = [], np.full(5, descent.BOUND)
    for seed in range(fits):
        objective = LinearObjective(*table(2000, 4, seed), loss, Box(-1, 1, 4), n_threads=1)
        paths = []
        for kind in (Run, WithoutNoise):
            grant = Ledger(epsilon, delta).reserve(epsilon, delta)
            run = kind(objective, Reals(-high, high, 5), grant, seed)
            if isinstance(run, WithoutNoise):
                run.noisy = before
            paths.append(settings(run))
        found.append((paths[0].answer - paths[1].answer) / paths[0].noise.errors)
    return np.array(found)


@pytest.mark.statistical
@pytest.mark.parametrize(("settings", "loss", "delta"), [
    (OutputPerturbation(), "logistic", 1e-6), (OutputPerturbation(), "logistic", 0.0),
    (PrivateSVM(), "hinge", 0.0),
])  # fmt: skip
def test_intervals_of_noise_on_weights_cover(settings, loss, delta):
    """200 fits of 5 weights, covered with chance .90 (.902 of Laplace noise, .899 of a Gamma).

    Weights of a fit are uncorrelated, and at worst (a Gamma vector has one length for all) shares
    of a fit vary as those of 2.5 independent ones: a deviation of .0135. The bounds are 5 of them
    and .002 away: a false alarm in 1.7e6 runs.
    """
    covered = np.abs(gaps(settings, loss, 0, 200, delta, 1.0)) <= REACH
    assert abs(covered.mean() - 0.9) < 0.07


@pytest.mark.statistical
def test_intervals_of_descents_cover():
    """200 fits of 5 weights, of which .918 were covered; the stronger ones less often.

    Shares of a fit have a deviation of .128, so that of 200 fits has .0091, and a second sample
    differs from the first by .0128. The bounds are 5 of these away: a false alarm in 1.7e6 runs.
    """
    covered = np.abs(gaps(Gradient(), "logistic", 1, 200, 1e-6, 1.0)) <= REACH
    assert 0.854 < covered.mean() < 0.982


def test_more_noise_makes_larger_errors():
    X, y = table()
    errors = [model(epsilon=one).fit(X, y).standard_errors_.mean() for one in (0.3, 1.0, 3.0)]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


# ---------------------------------------------------------------------------------------- privacy


class Replayed(Run[Any, Any]):
    """A run that keeps what it releases, or releases what another run did, whatever it is asked."""

    kept: list[Any]
    replays = False

    def release(self, mechanism: Any, value: Any) -> Any:
        drawn = super().release(mechanism, value)
        if self.replays:
            return self.kept.pop(0)
        self.kept.append(drawn)
        return drawn


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(("settings", "loss"), [
    (Gradient(steps=8), "logistic"), (Gradient(steps=8, momentum=0.5), "hinge"),
    (SelectRefine(), "logistic"), (OutputPerturbation(), "logistic"), (PrivateSVM(), "hinge"),
])  # fmt: skip
def test_noise_is_a_function_of_what_was_released(settings, loss, adjacency):
    """Other records, whose releases happen to be the same, have the same noise, bit for bit.

    Under 'add_remove' there is even another number of them. Selections go through `release`, too.
    """
    paths, kept = [], []
    sizes = (500, 500) if adjacency == "replace" else (500, 731)
    for seed, n in enumerate(sizes):
        objective = LinearObjective(*table(n, 4, seed), loss, Box(-1, 1, 4), adjacency=adjacency)
        grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
        public = {"neighbours": Neighbours(adjacency), "n_public": 500}
        high = np.full(5, descent.BOUND)
        run = Replayed(objective, Reals(-high, high, 5), grant, 3, **public)
        run.kept, run.replays = kept, bool(seed)
        paths.append(settings(run))
    assert not kept
    first, second = paths
    np.testing.assert_array_equal(first.answer, second.answer)
    np.testing.assert_array_equal(first.noise.factor, second.noise.factor)
    np.testing.assert_array_equal(first.noise.rest, second.noise.rest)


# -------------------------------------------------------------------------------------- estimators

KNOWN = {
    "gradient": Gradient(steps=8),
    "momentum": Gradient(steps=8, momentum=0.5),
    "select_refine": SelectRefine(),
    "output": OutputPerturbation(),
}
UNKNOWN = {"local": Local(generations=5), "objective": ObjectivePerturbation(),
           "unwhitened": Gradient(steps=8, whiten=False)}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_way_to_ask_for_errors_agrees(name, intercept, classes):
    X, y = table()
    y = y + (X[:, 2] > 0.3) * (classes == 3)
    found = model(solver=KNOWN[name], fit_intercept=intercept, classes=list(range(classes)))
    found.fit(X, y)
    heads = 1 if classes == 2 else classes
    errors = found.standard_errors_
    assert errors.shape == (heads, 5)
    assert intercept or not errors[:, -1].any()
    along = found.weight_errors(np.eye(5))
    assert along.shape == ((5,) if classes == 2 else (5, 3))
    np.testing.assert_allclose(along.reshape(5, -1).T, errors, rtol=1e-9)
    inside = found.predict_interval(X[:20])
    z, p = found.decision_function(X[:20]), found.predict_proba(X[:20])
    assert (inside.lower <= z).all()
    assert (z <= inside.upper).all()
    assert (inside.lower_proba <= p + 1e-12).all()
    assert (p <= inside.upper_proba + 1e-12).all()
    listed = found.summary().to_frame()
    assert len(listed) == heads * (4 + intercept)
    np.testing.assert_allclose(listed["error"], errors[:, : 4 + intercept].ravel(), rtol=1e-9)
    again = loads(dumps(found))
    np.testing.assert_array_equal(again.standard_errors_, errors)
    assert str(again.summary()) == str(found.summary())


@pytest.mark.parametrize("name", UNKNOWN)
def test_errors_that_no_formula_gives_are_none(name):
    X, y = table()
    found = model(solver=UNKNOWN[name]).fit(X, y)
    assert found.standard_errors_ is None
    assert found.weight_errors(np.eye(5)) is None
    assert found.predict_interval(X[:3]) is None
    solver = found.release_.settings["solver"]
    assert str(found.summary()).endswith(f"no errors are known for solver {solver!r}")
    assert found.summary().to_frame()["error"].isna().all()
    assert "noise" not in found.release_.parameters


def test_a_summary_centres_categories_and_is_per_unit_of_the_original_scale():
    X, y = people()
    found = model(domain=PEOPLE).fit(X, y)
    rows = {one.name: one for one in found.summary().weights}
    assert list(rows) == ["age", "job=a", "job=b", "job=c", "intercept"]
    assert rows["age"].per_unit == pytest.approx(found.coef_[0, 0] / 50)
    assert rows["job=a"].per_unit is None
    assert sum(rows[f"job={one}"].weight for one in "abc") == pytest.approx(0, abs=1e-12)
    direction = np.array([[0, 2 / 3, -1 / 3, -1 / 3, 0]])
    assert rows["job=a"].error == pytest.approx(found.weight_errors(direction)[0])
    assert rows["job=a"].error < found.standard_errors_[0, 1]  # what all share is not in it
    half = REACH * rows["age"].error
    assert rows["age"].upper - rows["age"].weight == pytest.approx(half)
    assert not rows["age"].below_noise
    assert rows["job=a"].below_noise == (abs(rows["job=a"].weight) <= REACH * rows["job=a"].error)


def test_a_text_shows_the_largest_weights_and_counts_those_below_noise():
    X, y = table(2000, 30)
    found = model(epsilon=0.5).fit(X, y).summary()
    below = sum(one.below_noise for one in found.weights if one.name != "intercept")
    lines = str(found).splitlines()
    assert len(lines) == 1 + 12 + 1 + 1
    assert lines[-1] == f"{below} weights are below their noise"
    assert lines[0].startswith("largest of 30 weights")
    assert lines[1].startswith("x0 ")
    assert len(found.lines(30)) == 1 + 30 + 1 + 1
    one = [weight for weight in found.weights if weight.name in ("x0", "intercept")]
    only = type(found)((*one, next(w for w in found.weights if w.below_noise)), 0.9, "gradient")
    assert str(only).endswith("1 weight is below its noise")
    assert only.to_dict()["weights"][0]["name"] == "x0"


def test_calibration_stretches_errors_of_log_odds_and_not_of_margins():
    X, y = table()
    for kind, stretches in ((LogisticRegression, True), (LinearSVC, False)):
        found = model(kind, calibrate=True).fit(X, y)
        slope = found.release_.settings["calibration"]["slope"][0] if stretches else 1.0
        errors = found.path_.noise.errors
        np.testing.assert_allclose(found.standard_errors_[0], slope * errors, rtol=1e-4)
        inside = found.predict_interval(X[:9])
        p = found.predict_proba(X[:9])
        assert (inside.lower_proba < p).all()
        assert (p < inside.upper_proba).all()
    assert model(LinearSVC).fit(X, y).predict_interval(X[:9]).lower_proba is None


def test_a_descent_that_a_callback_ended_knows_the_noise_of_its_steps():
    X, y = table()
    early = model(callback=lambda now: now.index == 3).fit(X, y)
    assert early.path_.stopped
    assert len(early.path_.generations) == 3
    assert early.standard_errors_.shape == (1, 5)


def test_odds_of_several_classes_have_the_deviations_of_small_changes():
    z, errors = np.array([[0.4, -1.0, 0.2]]), np.array([[1e-4, 2e-4, 3e-4]])
    inside = Intervals.of(0.9, z, errors, Line(np.array(1.0), np.array(0.0)))

    def share(at: Any) -> Any:
        s = expit(at)
        return s / s.sum(axis=1, keepdims=True)

    moved = [share(z + np.eye(3)[j] * errors) - share(z) for j in range(3)]
    found = (inside.upper_proba - inside.lower_proba) / (2 * REACH)
    np.testing.assert_allclose(found, np.sqrt(np.square(moved).sum(axis=0)), rtol=1e-3)


@pytest.mark.parametrize("level", [0, 1, -0.5, math.nan, "x", None, True])
def test_a_level_that_is_none_is_refused(level):
    X, y = table(300)
    found = model().fit(X, y)
    for call in (found.summary, lambda level: found.predict_interval(X[:2], level)):
        with pytest.raises(ValueError, match=r"level \(.*\) must be between 0 and 1; pass one"):
            call(level)


@pytest.mark.parametrize("directions", [[1.0], np.eye(4), np.zeros((1, 1, 5))])
def test_directions_of_a_wrong_shape_are_refused(directions):
    found = model().fit(*table(300))
    with pytest.raises(ValueError, match=r"directions .* must have the shape \(m, 5\); pass a row"):
        found.weight_errors(directions)
