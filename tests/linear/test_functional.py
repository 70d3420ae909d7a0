"""The functional mechanism: exact coefficients, their sensitivity, and what is made of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
from makers.cases import (
    ADJACENCIES,
    DOMAINS,
    case,
    encoded,
    extreme_rows,
    labels,
    scikit_learn_checks,
)

from privfit import (
    Box,
    Categorical,
    L1Ball,
    L2Ball,
    Ledger,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Reals,
    Release,
    Schema,
)
from privfit.audit import audit_runs
from privfit.domains import Grid
from privfit.linear import functional as module
from privfit.linear.functional import Functional, _plan, sensitivities
from privfit.objectives.coding import Compact
from privfit.privacy.accounting import Event
from privfit.privacy.budget_noise import deviation, noise_for
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.runs.run import Run, Task

SURE = 1 - 1e-6
SMALL = Grid(a=1, b=7, c=0)

# Small enough to try every pair of records.
TINY = {
    "one column": Box(-1, 1, 1, grid=SMALL),
    "box": Box([-1, 0], [1, 2], grid=SMALL),
    "box of three": Box(-1, 1, 3, grid=Grid(a=1, b=7, c=0)),
    "narrow": Box([5, -1], [6, 1], grid=Grid(a=3, b=5, c=0)),
    "constant": Box([0.5, -1], [0.5, 1], grid=SMALL),
    "l1": L1Ball(1.0, 2, grid=Grid(a=2, b=6, c=0)),
    "l1 of three": L1Ball(1.5, 3, grid=SMALL),
    "l2": L2Ball(1.0, 2, grid=Grid(a=2, b=6, c=0)),
    "l2 of three": L2Ball(1.0, 3, grid=SMALL),
    "groups": Schema({"a": Categorical("xy"), "b": Categorical("xyz")}, grid=SMALL),
    "schema": Schema(
        {"a": Categorical("xy"), "b": Numeric(0, 1), "c": Numeric(0, 2, bins=2)}, grid=SMALL
    ),
    "numbers": Schema({"a": Numeric(0, 1), "b": Numeric(0, 4)}, grid=SMALL),
}


def coded(x: list[int], domain: Any, centre: bool = True) -> list[int]:
    """The twin of `Compact`: a record's integers in units of 2^-(a + 2), the intercept last."""
    a, one = domain.grid.a, 1 << domain.grid.a
    hot: set[int] = set()
    for group in getattr(domain, "groups", []):
        hot |= set(range(group.start, group.stop))
    bounds = [(0, one)] * len(x) if isinstance(domain, Schema) else reference.whole_bounds(domain)
    v = []
    for j, (low, high) in enumerate(bounds):
        if j in hot or not centre:
            v.append(2 * x[j])
            continue
        factor = 2
        while 2 * factor * max(high - low, 1) <= 4 * one:
            factor *= 2
        middle = Fraction(low + high, 2)
        v.append(int(factor * (x[j] - middle)))
    return [*v, 1 << (a + 1)]


def released(x: list[int], label: int, domain: Any, A: int, centre: bool = True) -> np.ndarray:
    """What one record adds: A y v, and v_i v_j for i <= j."""
    v = coded(x, domain, centre)
    v = v[:-1] if getattr(domain, "groups", []) else v
    pairs = [p * q for p, q in itertools.combinations_with_replacement(v, 2)]
    return np.array([A * (1 if label else -1) * p for p in v] + pairs, dtype=float)


def objective_of(name: str, rng: Any, n: int = 40, **changes: Any) -> LinearObjective:
    made = case(name)
    return LinearObjective(made.rows(rng, n), labels(rng, n), domain=made.domain, **changes)


# ------------------------------------------------------------------------------------- the coding


@pytest.mark.few(5)
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", DOMAINS)
def test_sums_of_coded_records_are_exact(name, layout, centre, rng):
    made = case(name)
    for rows in (made.rows(rng, 37), extreme_rows(name)):
        y = labels(rng, len(rows))
        if layout == "sparse" and name == "box per column":
            continue  # zero is not a record there
        objective = LinearObjective(rows, y, domain=made.domain, layout=layout)
        plan = _plan(objective, Functional(paper=not centre), Budget(1.0), REPLACE)
        linear, quadratic = plan.coefficients(objective)
        expected = sum(
            released(x, label, made.domain, plan.A, centre)
            for x, label in zip(encoded(made.domain, rows).tolist(), y, strict=True)
        )
        got = np.concatenate([linear, quadratic[plan.upper]])
        assert np.array_equal(got.astype(float), expected)
        assert np.array_equal(quadratic, quadratic.T)


@pytest.mark.parametrize("name", DOMAINS)
def test_coded_records_are_short(name):
    domain = case(name).domain
    coding, a = Compact(domain), domain.grid.a
    v = np.array([coded(x, domain) for x in encoded(domain, extreme_rows(name)).tolist()])
    assert np.array_equal(np.abs(v).max(axis=0), coding.reach)
    assert coding.reach.max() == 1 << (a + 1)
    if name != "schema":
        plain = coding.reach[:-1]
        assert (plain > 1 << (a - 1)).all()  # at least half of [-1/2, 1/2] is used


# Zero is not a record of the box per column: it has no sparse layout.
@pytest.mark.parametrize(
    ("name", "layout"),
    [(name, "dense") for name in DOMAINS]
    + [(name, "sparse") for name in DOMAINS if name != "box per column"],
)
def test_weights_of_coded_records_give_the_same_margins(name, layout, rng):
    objective = objective_of(name, rng, layout=layout)
    coding, (records, _) = Compact(objective.domain), objective.decoded()
    u = rng.uniform(-3, 3, objective.n_features + 1)
    w = coding.weights(u)
    dense = records.toarray() if layout == "sparse" else records
    margins = coding.records(records) @ u[:-1] + u[-1] / 2
    # A weight is rounded by half of 2^-10 of what moves a margin by 1.
    assert dense @ w[:-1] + w[-1] == pytest.approx(margins, abs=(len(u) + 1) * 2.0**-10)
    objective.scores(w[None])  # on the grid


# ------------------------------------------------------------------------------------- sensitivity


@pytest.mark.few(13)
@pytest.mark.parametrize("A", [1, 3, 20])
@pytest.mark.parametrize("name", TINY)
def test_sensitivities_bound_every_pair_of_records(name, A):
    domain = TINY[name]
    l1, l2 = {}, {}
    for adjacency in ADJACENCIES:
        l1[adjacency], l2[adjacency] = sensitivities(
            domain, Compact(domain), A, Neighbours(adjacency)
        )
    rows = np.array(
        [released(x, y, domain, A) for x in reference.every_record(domain) for y in (0, 1)]
    )
    alone = np.abs(rows).sum(axis=1).max(), np.linalg.norm(rows, axis=1).max()
    gaps = rows[:, None] - rows
    replaced = np.abs(gaps).sum(axis=2).max(), np.linalg.norm(gaps, axis=2).max()
    assert alone[0] <= l1["add_remove"]
    assert alone[1] <= l2["add_remove"]
    assert replaced[0] <= l1["replace"]
    assert replaced[1] <= l2["replace"]
    if not name.startswith("l2"):  # whose longest records are off the grid
        assert alone[0] == l1["add_remove"]
        assert alone[1] == pytest.approx(l2["add_remove"], rel=1e-3)
    assert replaced[0] >= 0.6 * l1["replace"]
    assert replaced[1] >= 0.7 * l2["replace"]
    assert l1["replace"] <= 2 * l1["add_remove"]


def test_sensitivities_of_the_l1_ball_are_attained():
    domain = TINY["l1"]
    rows = [released(x, y, domain, 5) for x in reference.every_record(domain) for y in (0, 1)]
    gaps = [np.abs(p - q).sum() for p in rows for q in rows]
    assert max(gaps) == sensitivities(domain, Compact(domain), 5, REPLACE)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", ["box", "l1", "l2", "schema"])
def test_what_is_cut_off_is_paid_for(name, delta, adjacency, monkeypatch):
    """The very integers that are released, with so few bits that rounding shows."""
    monkeypatch.setattr(module, "SENSITIVITY_BITS", 4)
    domain = TINY[name]
    records = reference.every_record(domain)
    units = [float(u) for u in reference.record_units(domain)]
    raw = np.array(records) * units
    if name == "schema":
        columns = list(domain.columns)
        raw = np.array(
            [["x" if r[0] else "y", r[2] / 2, 0.5 if r[3] else 1.5] for r in records], dtype=object
        )
        assert len(columns) == 3

    def value(rows: list[int], y: list[int]) -> np.ndarray:
        objective = LinearObjective(raw[rows], y, domain=domain)
        linear, quadratic = plan.coefficients(objective)
        return np.concatenate([linear, quadratic[plan.upper]]) >> plan.cut

    whole = LinearObjective(raw[:2], [0, 1], domain=domain)
    plan = _plan(whole, Functional(weight=0.3), Budget(0.5, delta), Neighbours(adjacency))
    assert plan.cut > 0
    coins, worst = np.random.default_rng(3), 0.0
    for _ in range(100):
        rows, y = coins.integers(len(raw), size=3).tolist(), coins.integers(0, 2, 3).tolist()
        first = value(rows, y)
        if adjacency == "replace":
            second = value([int(coins.integers(len(raw))), *rows[1:]], [1 - y[0], *y[1:]])
        else:
            second = value(rows[1:], y[1:])
        gap = np.abs(first - second)
        far = gap.sum() if isinstance(plan.noise, DiscreteLaplace) else np.linalg.norm(gap)
        worst = max(worst, far / plan.noise.sensitivity)
    assert 0.2 < worst <= 1


@pytest.mark.parametrize("a", [1, 8, 12, 14])
def test_no_sum_of_all_records_that_there_may_be_overflows(a):
    grid = Grid(a=a, b=16 if a == 1 else 10, c=0)
    objective = LinearObjective(np.zeros((1, 2)), [1], domain=Box(-1, 1, grid=grid))
    plan = _plan(objective, Functional(weight=100.0), Budget(1.0), REPLACE)
    most = 2**31 - 1
    assert most * plan.A * int(plan.coding.reach.max()) < 2**62
    assert most * int(plan.coding.reach.max()) ** 2 < 2**62


# ------------------------------------------------------------------------------------- the release


def test_the_noise_is_laplace_for_a_pure_budget_and_otherwise_the_quieter_one():
    wide = LinearObjective(np.zeros((2, 40)), [0, 1], domain=Box(-1, 1))
    slim = LinearObjective(np.zeros((2, 1)), [0, 1], domain=Box(-1, 1))
    for objective, delta, kind in ((wide, 0.0, DiscreteLaplace), (wide, 1e-6, DiscreteGaussian),
                                   (slim, 1e-6, DiscreteLaplace)):  # fmt: skip
        plan = _plan(objective, Functional(), Budget(1.0, delta), REPLACE)
        assert isinstance(plan.noise, kind)
    budget = Budget(1.0, 1e-6)
    l1, l2 = 10**6, 2e5
    both = noise_for(Budget(1.0), l1, l2), DiscreteGaussian(noise_for(budget, 10**9, l2).mu, l2)
    assert deviation(noise_for(budget, l1, l2)) == min(map(deviation, both))


def test_deviations_are_those_of_the_draws():
    """20,000 draws: the relative error of a deviation is 0.8 % or less, so 5 % is 6 sigma."""
    for noise in (DiscreteLaplace(1.0, 3), DiscreteLaplace(1.0, 500), DiscreteGaussian(1.0, 9.0)):
        drawn = noise(np.zeros(20_000, dtype=np.int64), 5)
        assert drawn.std() == pytest.approx(deviation(noise), rel=0.05)
    assert deviation(DiscreteLaplace(1e6, 1)) == 0.0


def order_two(objective: LinearObjective) -> np.ndarray:
    """Where the sum of the order-2 losses of the decoded records is least, by plain algebra."""
    X, y = objective.decoded()
    X = np.column_stack([X, np.ones(len(X))])
    return np.linalg.solve(X.T @ X / 4, X.T @ (y - 0.5))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("paper", [False, True])
def test_without_noise_the_order_two_loss_is_least(paper, adjacency, rng):
    X = rng.uniform([0, 100], [1, 300], (4000, 2))
    y = X[:, 0] + X[:, 1] / 200 > rng.normal(1.5, 0.4, 4000)
    objective = LinearObjective(X, y, domain=Box([0, 100], [1, 300]))
    grant = Ledger(1e7).reserve(1e7, 0.0, "test")
    run = Run(objective, Reals(-50, 50, 3), grant, 1, neighbours=Neighbours(adjacency))
    path = Functional(paper=paper)(run)
    best = order_two(objective)
    # Weights are on a grid of 2^-10 of a column's scale.
    assert path.answer == pytest.approx(best, abs=2e-2)
    assert path.answer[:2] * [1, 256] == pytest.approx(best[:2] * [1, 256], abs=1e-2)
    assert grant.events == (Event("pure", 1e7),)


def test_the_intercept_is_left_out_where_a_group_adds_up_to_it(rng):
    schema = Schema({"a": Categorical("xy"), "b": Numeric(0, 1)})
    table = {"a": rng.choice(["x", "y"], 5000), "b": rng.random(5000)}
    y = rng.random(5000) < 0.2 + 0.4 * (table["a"] == "x") + 0.2 * table["b"]
    objective = LinearObjective(table, y, domain=schema)
    plan = _plan(objective, Functional(), Budget(1.0), REPLACE)
    assert plan.columns.tolist() == [0, 1, 2]
    model = LogisticRegression(1e6, domain=schema, classes=[0, 1], solver="functional",
                               random_state=0).fit(table, y)  # fmt: skip
    p = model.predict_proba(table)[:, 1]
    for level in "xy":
        here = table["a"] == level
        assert p[here].mean() == pytest.approx(y[here].mean(), abs=0.03)


def test_the_repair_makes_any_noise_a_bounded_model(rng):
    """Negative eigenvalues: ours are set to 0, the paper's dropped after the ridge."""
    objective = objective_of("box", rng)
    for settings in (Functional(), Functional(paper=True), Functional(ridge=1e-9)):
        plan = _plan(objective, settings, Budget(1.0), REPLACE)
        d = len(plan.columns)
        wild = rng.integers(-(2**40), 2**40, d * (d + 3) // 2)
        assert np.isfinite(plan.minimiser(wild, settings)).all()
    negative = np.zeros((d, d))
    np.fill_diagonal(negative, -(2**50))
    noisy = np.concatenate([np.full(d, 2**30), negative[plan.upper].astype(np.int64)])
    assert (plan.minimiser(noisy, Functional(paper=True)) == 0).all()
    assert (plan.minimiser(noisy, Functional()) > 0).all()


def test_weights_stay_in_the_space(rng):
    objective = objective_of("box", rng)
    for seed in range(5):
        grant = Ledger(1e-3).reserve(1e-3, 0.0, "test")
        settings = Functional(ridge=1e-9)
        path = settings(Run(objective, Reals(-0.25, 0.25, 6), grant, seed))
        u = path.answer * 2  # a column of [-1, 1] is coded as a half
        assert np.abs(u[:-1]).max() <= 0.25 + 2**-9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_fits_learn_and_tell_the_truth(delta, adjacency, rng):
    X = rng.uniform(-1, 1, (20_000, 3))
    y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    ledger = Ledger(1.0, 1e-5)
    model = LogisticRegression(1.0, delta, domain=(-1, 1), classes=["no", "yes"],
                               solver="functional", calibrate=False, adjacency=adjacency,
                               ledger=ledger, random_state=3).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.95
    assert ledger.spent == Budget(1.0, delta)
    release = Release.from_json(model.release_.to_json())
    assert release.verify()
    assert release.adjacency == adjacency
    assert 0.99 < release.cost() <= 1.0
    assert release.settings["solver"] == "functional"
    assert sum(event.count for event in release.events) == 1


def test_a_seed_fixes_a_fit_and_threads_and_order_do_not_matter(rng):
    X, y = rng.uniform(-1, 1, (3000, 4)), rng.integers(0, 2, 3000)
    fit = {"domain": (-1, 1), "classes": [0, 1], "solver": Functional()}
    one = LogisticRegression(1.0, random_state=5, n_threads=1, **fit).fit(X, y)
    order = rng.permutation(3000)
    two = LogisticRegression(1.0, random_state=5, n_threads=2, **fit).fit(X[order], y[order])
    assert np.array_equal(one.coef_, two.coef_)
    other = LogisticRegression(1.0, random_state=6, **fit).fit(X, y)
    assert not np.array_equal(one.coef_, other.coef_)
    assert one.release_.seeded
    assert not LogisticRegression(1.0, **fit).fit(X, y).release_.seeded


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_several_classes_share_one_budget(delta, rng):
    X = rng.uniform(-1, 1, (6000, 2))
    y = (X[:, 0] > 0.3).astype(int) + 2 * (X[:, 0] < -0.3)
    model = LogisticRegression(5.0, delta, domain=(-1, 1), classes=[0, 1, 2], solver="functional",
                               calibrate=False, random_state=1).fit(X, y)  # fmt: skip
    assert sum(event.count for event in model.release_.events) == 3
    assert model.release_.verify()
    assert 4.9 < model.release_.cost() <= 5.0
    assert model.score(X, y) > 0.6


@pytest.mark.few(5)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("rows", [[[0.5, 0.0]], [[0.5, 1.0]] * 7, [[0.0, 0.0], [1.0, 0.0]]])
def test_little_and_dull_data_are_fitted(rows, delta, adjacency):
    for domain in (Box([0, -1], [1, 1]), Box([0, 0], [1, 0]), L1Ball(1.0), L2Ball(2.0),
                   Schema({"a": Numeric(0, 1), "b": Categorical([0.0, 1.0])})):  # fmt: skip
        model = LogisticRegression(0.5, delta, domain=domain, classes=[0, 1], adjacency=adjacency,
                                   solver="functional", random_state=2)  # fmt: skip
        model.fit(rows, np.ones(len(rows), dtype=int))
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()


def test_more_columns_than_records_are_fitted():
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver="functional",
                               random_state=2)  # fmt: skip
    assert np.isfinite(model.fit(np.eye(5, 120), [0, 1, 0, 1, 1]).coef_).all()


# ------------------------------------------------------------------------ scikit-learn's own checks

CHECKED = [LogisticRegression(epsilon=1000, domain=(-5, 5), solver="functional")]
CHECKS = scikit_learn_checks(CHECKED)


@pytest.mark.few(13)
@pytest.mark.filterwarnings(
    "ignore::privfit.PrivacyLeakWarning", "ignore:invalid value encountered in cast:RuntimeWarning"
)
@CHECKS
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------------------ errors


def test_other_losses_are_refused_before_anything_is_charged(rng):
    ledger = Ledger(1.0)
    model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver="functional", ledger=ledger)
    with pytest.raises(ValueError, match="functional expands only the logistic loss; pass"):
        model.fit(rng.uniform(-1, 1, (10, 2)), [0, 1] * 5)
    assert not ledger.entries
    objective = objective_of("box", rng, loss="hinge")
    with pytest.raises(ValueError, match="functional expands only the logistic loss"):
        Functional().check(Task(objective, Reals(-1, 1, 6), 1.0, 0.0, REPLACE, 40))


@pytest.mark.parametrize("name", ["weight", "ridge"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "1", True])
def test_settings_without_meaning_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name} \(.*\) must be a positive number; leave it out"):
        Functional(**{name: value})


def test_budgets_too_small_for_64_bits_are_refused_before_anything_is_charged(rng):
    ledger = Ledger(1.0)
    model = LogisticRegression(1e-9, domain=(-1, 1), classes=[0, 1], solver="functional",
                               ledger=ledger)  # fmt: skip
    with pytest.raises(ValueError, match="noise this wide does not fit in 64 bits"):
        model.fit(rng.uniform(-1, 1, (10, 2)), [0, 1] * 5)
    assert not ledger.entries


def test_a_callback_hears_of_the_model_alone(rng):
    heard = []
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver="functional",
                               calibrate=False, callback=heard.append, random_state=1)  # fmt: skip
    model.fit(rng.uniform(-1, 1, (50, 2)), [0, 1] * 25)
    assert len(heard) == 1
    assert np.array_equal(heard[0].parameters, np.append(model.coef_, model.intercept_))
    with pytest.raises(TypeError, match=r"callback \(int\) must be a function"):
        LogisticRegression(domain=(-1, 1), classes=[0, 1], solver="functional", callback=3).fit(
            [[0.0]] * 4, [0, 1] * 2
        )


# ------------------------------------------------------------------------------------------ audits

# One column, two records: the first differs, or is there or not.
PAIRS = {
    "replace": (([[1.0], [0.5]], [1, 0]), ([[-1.0], [0.5]], [1, 0])),
    "add_remove": (([[1.0], [0.5]], [1, 0]), ([[0.5]], [0])),
}


def audit(adjacency: str, delta: float, runs: int = 800) -> Any:
    objectives = [LinearObjective(X, y, domain=Box(-1, 1)) for X, y in PAIRS[adjacency]]

    def run(objective: LinearObjective, rng: Any) -> np.ndarray:
        grant = Ledger(1.0, delta).reserve(1.0, delta, "audit")
        settings = Functional(ridge=1e-3)
        return settings(
            Run(objective, Reals(-9, 9, 2), grant, rng, neighbours=Neighbours(adjacency))
        ).answer

    return audit_runs(run, *objectives, runs=runs, confidence=SURE, delta=delta, rng=11)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_fits_stay_within_epsilon(adjacency, delta):
    """False alarms: one in a million."""
    report = audit(adjacency, delta)
    assert report.passes(1.0), report


@pytest.mark.slow
@pytest.mark.statistical
def test_the_black_box_sees_a_sensitivity_that_is_too_small(monkeypatch):
    right = module.sensitivities
    monkeypatch.setattr(module, "sensitivities",
                        lambda *a: (right(*a)[0] // 10, right(*a)[1] / 10))  # fmt: skip
    report = audit("replace", 0.0)
    assert not report.passes(1.0), report


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_densities_of_neighbours_differ_by_no_more_than_promised(adjacency, delta):
    """The largest log ratio of what is released, in closed form: l1 distance times the rate."""
    first, second = (LinearObjective(X, y, domain=Box(-1, 1)) for X, y in PAIRS[adjacency])
    plan = _plan(first, Functional(), Budget(1.0, delta), Neighbours(adjacency))
    values = []
    for objective in (first, second):
        linear, quadratic = plan.coefficients(objective)
        values.append(np.concatenate([linear, quadratic[plan.upper]]) >> plan.cut)
    assert isinstance(plan.noise, DiscreteLaplace)
    gap = int(np.abs(values[0] - values[1]).sum())
    assert 0.5 < gap * plan.noise.epsilon / plan.noise.sensitivity <= 1.0
