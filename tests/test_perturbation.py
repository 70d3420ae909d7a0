"""Output and objective perturbation and the private SVM: codings, solver, proofs, audits.

Densities of one- and two-dimensional minimisers are computed from their definition, apart from the
code under test. Statistical tests use fixed seeds; on fresh ones each raises a false alarm at most
once in 1e6 runs.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from cases import scikit_learn_checks
from conftest import ROOT
from reference import loss_curvatures, loss_slopes, loss_values

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
    ObjectivePerturbation,
    OutputPerturbation,
    PrivateSVM,
    Release,
    Schema,
    convex,
    perturbation,
)
from privfit.accounting import Event, gaussian_total
from privfit.audit import audit_runs
from privfit.convex import HuberHinge, Logistic, Problem, coding_of
from privfit.ledger import Budget
from privfit.perturbation import (
    METHODS,
    PerturbedMinimiser,
    privatesvm,
    tilt_deviation,
    tilt_rate,
)
from privfit.shapes import Ball, Cube, Product, contrasts
from privfit.spaces import Reals

ADJACENCIES = ("replace", "add_remove")
SURE = 1 - 1e-6
LOSSES = [Logistic(), HuberHinge(0.5), HuberHinge(0.1)]
SCHEMA = Schema(
    {
        "age": Numeric(17, 90),
        "sex": Categorical(["f", "m"]),
        "hours": Numeric(0, 99, bins=[20, 40]),
        "only": Categorical(["one"]),
        "work": Categorical(list("abcde"), other=True),
    }
)
DOMAINS = {
    "box": Box([-3.0, 0.0, 1e-3, -7e5], [1.0, 1.0, 2e-3, 1e6]),
    "box with a constant": Box([-1.0, 2.0, 0.0, 0.0], [1.0, 2.0, 1.0, 1.0]),
    "l1": L1Ball(2.5, 4),
    "l2": L2Ball(0.3, 4),
    "schema": SCHEMA,
}

both = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def table(rng, n=300, d=4):
    X = rng.uniform(-1, 1, (n, d))
    return X, (X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) > 0.2).astype(int)


# ------------------------------------------------------------------------------------------ coding


def records_of(domain, rng):
    """Records of a domain, encoded: its corners, if there are few, and random ones."""
    if isinstance(domain, Schema):
        points = [domain.points(500, rng)]
        groups = [range(part.start, part.stop) for part in domain.groups]
        for hot, age in itertools.product(itertools.product(*groups), (0.0, 1.0)):
            corner = np.zeros(domain.width)
            corner[list(hot)], corner[0] = 1.0, age
            points.append(corner[None])
        return np.vstack(points)
    raw = rng.uniform(domain.low, domain.high, (500, domain.width))
    points = [domain.quantise(raw) * domain.record_units()]
    if isinstance(domain, Box):
        points.append(np.array(list(itertools.product(*zip(domain.low, domain.high, strict=True)))))
    else:
        points += [np.diag(domain.high), np.diag(domain.low)]
    return np.vstack(points)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_coded_records_fill_the_unit_ball_and_never_leave_it(domain, rng):
    A = coding_of(domain).matrix.toarray()
    x = records_of(domain, rng)
    norms = np.linalg.norm(np.column_stack([x, np.ones(len(x))]) @ A.T, axis=1)
    assert norms.max() <= 1
    assert norms.max() > 1 - 1e-9
    assert A[-1, -1] > 0  # the intercept
    assert np.count_nonzero(A[-1]) == 1


def test_a_group_is_coded_by_orthonormal_contrasts():
    for levels in (1, 2, 3, 17):
        rows = contrasts(levels)
        assert rows.shape == (levels - 1, levels)
        assert np.allclose(rows @ rows.T, np.eye(levels - 1), atol=1e-14)
        assert np.allclose(rows.sum(axis=1), 0, atol=1e-14)
    # age, 2 - 1 + 3 - 1 + 1 - 1 + 6 - 1 contrasts, the intercept
    assert coding_of(SCHEMA).matrix.shape == (10, SCHEMA.width + 1)


def test_a_constant_column_of_a_box_gets_no_weight(rng):
    X, y = table(rng)
    X[:, 1] = 2.0
    model = LogisticRegression(1.0, domain=DOMAINS["box with a constant"], classes=[0, 1],
                               solver="output", random_state=1).fit(X, y)  # fmt: skip
    assert model.coef_[0, 1] == 0
    assert np.count_nonzero(model.coef_) == 3


# ------------------------------------------------------------------------------------------ solver


def coded_by_hand(objective):
    """Dense coded records with the sign of their labels: the naive twin of a problem's records."""
    blocks = [sign * np.column_stack([X.toarray() if sp.issparse(X) else X, np.ones(X.shape[0])])
              for X, sign in objective.labelled_blocks(64)]  # fmt: skip
    return np.vstack(blocks) @ coding_of(objective.domain).matrix.toarray().T


def gradient_by_hand(S, loss, ridge, tilt, u):
    """In long double, where the errors of float64 show."""
    S, u = S.astype(np.longdouble), u.astype(np.longdouble)
    m = S @ u
    s = 1 / (1 + np.exp(m)) if isinstance(loss, Logistic) else loss_slopes(loss.smoothing, m)
    return np.asarray(ridge * u + tilt - s @ S)


def value_by_hand(S, loss, ridge, tilt, u):
    return loss_values(loss.smoothing, S @ u).sum() + ridge / 2 * u @ u + tilt @ u


@every_loss
def test_slopes_and_curvatures_by_hand_are_derivatives(loss):
    m, h, width = np.linspace(-3, 3, 601) + 1e-4, 1e-6, loss.smoothing
    slope = (loss_values(width, m + h) - loss_values(width, m - h)) / (2 * h)
    s = loss_slopes(width, m)
    bend = (loss_slopes(width, m - h) - loss_slopes(width, m + h)) / (2 * h)
    assert np.allclose(-s, slope, atol=1e-6)
    assert np.allclose(loss_curvatures(width, s), bend, atol=1e-5)
    assert math.isclose(loss_curvatures(width, s).max(), loss.curvature, rel_tol=1e-4)


@every_loss
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_solver_stops_where_the_gradient_is_short(name, loss, layout, rng):
    domain = DOMAINS[name]
    if name == "schema":
        n = 300
        X = {"age": rng.uniform(17, 90, n), "sex": rng.choice(["f", "m"], n),
             "hours": rng.uniform(0, 99, n), "only": ["one"] * n,
             "work": rng.choice(list("abcdef"), n)}  # fmt: skip
        y = (X["age"] > 40) ^ (rng.random(n) < 0.2)
    else:
        X, y = table(rng)
        X = domain.low + (X + 1) / 2 * (domain.high - domain.low)
    objective = LinearObjective(X, y, "logistic", domain, layout=layout)
    ridge, tolerance = 0.7, 1e-7
    problem = Problem(objective, loss, ridge)
    tilt = rng.standard_normal(problem.size)
    u, S = problem.minimise(tilt, tolerance), coded_by_hand(objective)
    exact = gradient_by_hand(S, loss, ridge, tilt, u)
    assert np.linalg.norm(exact) <= tolerance
    there = problem._at(u, tilt)
    assert np.linalg.norm(there.gradient - exact) <= there.gradient_error < 1e-8
    assert abs(there.value - value_by_hand(S, loss, ridge, tilt, u)) <= there.value_error < 1e-7
    twin = scipy.optimize.minimize(
        lambda v: value_by_hand(S, loss, ridge, tilt, v), np.zeros(len(u)),
        jac=lambda v: gradient_by_hand(S, loss, ridge, tilt, v).astype(float), method="BFGS",
    )  # fmt: skip
    assert np.allclose(u, twin.x, atol=1e-3)
    w = problem.linear(u)
    assert np.allclose(S @ u, np.concatenate(
        [sign * (X @ w[:-1] + w[-1]) for X, sign in objective.labelled_blocks(50)]), atol=1e-9
    )  # fmt: skip
    assert repr(problem) == "<Problem of private records>"


def test_layouts_and_the_order_of_records_do_not_matter(rng):
    X, y = table(rng, 500, 20)
    X[np.abs(X) < 0.8] = 0
    order = rng.permutation(500)
    tables = [(X, y, "dense"), (X, y, "sparse"), (X[order], y[order], "sparse"),
              (sp.csr_array(X), y, "auto")]  # fmt: skip
    objectives = [LinearObjective(rows, labels, "logistic", Box(-1, 1), layout=layout)
                  for rows, labels, layout in tables]  # fmt: skip
    fits = [Problem(objective, Logistic(), 2.0).minimise(np.zeros(21), 1e-8)
            for objective in objectives]  # fmt: skip
    for other in fits[1:]:
        assert np.array_equal(other, fits[0])


def test_a_solver_that_does_not_converge_answers_zero(rng, monkeypatch):
    """Free of data, and without a word: an abort that depends on records would be seen."""
    monkeypatch.setattr(convex, "MOST_STEPS", 1)
    objective = LinearObjective(*table(rng), "logistic", Box(-1, 1))
    assert not Problem(objective, Logistic(), 1e-3).minimise(np.zeros(5), 1e-9).any()


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0], [1, 0, 1]])
def test_awkward_tables_are_fitted(labels):
    for X in (np.zeros((3, 2)), np.full((3, 2), 1e9), np.array([[1.0, -1.0]] * 3)):
        for solver in ("output", "objective", "privatesvm"):
            model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=solver, random_state=0)
            assert np.isfinite(model.fit(X, labels).coef_).all()


# ----------------------------------------------------------- how far neighbours' minimisers lie


@every_loss
@both
def test_minimisers_of_neighbours_are_as_near_as_is_said(loss, adjacency, rng):
    """Every pair of neighbours among 2 records out of 6, opposite ones included."""
    ridge, gamma, domain = 0.3, 1e-9, L2Ball(1.0, 2)
    pool = [(x, y) for x in ([1, 0], [0.6, -0.8], [0, 0]) for y in (0, 1)]

    def fit(rows):
        objective = LinearObjective(np.array([pool[i][0] for i in rows], float),
                                    [pool[i][1] for i in rows], "logistic", domain)  # fmt: skip
        return Problem(objective, loss, ridge).minimise(np.zeros(3), gamma)

    pairs = itertools.combinations_with_replacement(range(6), 2)
    two, one = {rows: fit(rows) for rows in pairs}, {(i,): fit((i,)) for i in range(6)}
    reach = perturbation._reach(gamma, ridge, adjacency)
    worst = 0.0
    for rows, u in two.items():
        others = one if adjacency == "add_remove" else two
        for kept, (other, v) in itertools.product(rows, others.items()):
            if kept in other:
                worst = max(worst, float(np.linalg.norm(u - v)))
    assert 0.25 * reach < worst <= reach


# ---------------------------------------------------------------------- beta and sigma of the tilts


def cost_by_grid(beta, ridge, adjacency):
    s = np.linspace(0, 1, 200_001)
    cost = (beta * s + np.log1p(s * (1 - s) / ridge)).max()
    return cost + (beta if adjacency == "replace" else 0)


@pytest.mark.parametrize(
    ("epsilon", "ridge", "replaced", "added"),
    [(1.0, 1.0, 0.4728, 1.0), (0.5, 0.5, 0.0625, 0.1773), (0.1, 10.0, 0.0465, 0.1)],
)
def test_rates_of_the_issue(epsilon, ridge, replaced, added):
    assert round(tilt_rate(epsilon, ridge, Logistic(), "replace"), 4) == replaced
    assert round(tilt_rate(epsilon, ridge, Logistic(), "add_remove"), 4) == added


@both
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_the_rate_costs_epsilon_by_a_fine_grid(epsilon, adjacency):
    least = 1 / (4 * math.expm1(epsilon))
    for ridge in least * np.geomspace(1.001, 1e5, 40):
        beta = tilt_rate(epsilon, ridge, Logistic(), adjacency)
        assert beta > 0
        cost = cost_by_grid(beta, ridge, adjacency)
        assert cost <= epsilon
        assert cost > epsilon * (1 - 1e-6)


@both
def test_the_simple_rate_is_right_from_the_stated_ridge_on(adjacency):
    """epsilon / 2 under replace iff Lambda >= 2 / epsilon; add_remove: epsilon, 1 / epsilon."""
    changes = perturbation.CHANGES[adjacency]
    for epsilon in (0.1, 1.0, 4.0):
        full, edge = epsilon / changes, changes / epsilon
        assert math.isclose(tilt_rate(epsilon, edge, Logistic(), adjacency), full, rel_tol=1e-11)
        assert tilt_rate(epsilon, 0.9 * edge, Logistic(), adjacency) < full * (1 - 1e-4)


@every_loss
@both
def test_there_is_no_rate_below_the_feasible_ridge(loss, adjacency):
    for epsilon in (0.1, 1.0, 10.0):
        edge = loss.curvature / math.expm1(epsilon)
        assert tilt_rate(epsilon, edge, loss, adjacency) == 0
        assert tilt_deviation(epsilon, 1e-6, edge, loss, adjacency) == math.inf
        assert tilt_rate(epsilon, 1.01 * edge, loss, adjacency) > 0
        assert tilt_deviation(epsilon, 1e-6, 1.01 * edge, loss, adjacency) < math.inf
    assert tilt_rate(1e4, 1.0, loss, adjacency) > 4000  # and no overflow


def gaussian_delta(mu, epsilon):
    cdf = scipy.stats.norm.cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


@both
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01, 0.4])
def test_the_deviation_costs_epsilon_and_delta(delta, adjacency):
    for epsilon, ridge in itertools.product((0.1, 1.0, 6.0), (4.0, 100.0)):
        sigma = tilt_deviation(epsilon, delta, ridge, Logistic(), adjacency)
        left = epsilon - math.log1p(0.25 / ridge)
        spent = gaussian_delta(1 / sigma, left)
        if adjacency == "replace":
            spent = gaussian_delta(2 / sigma, left) + 2 * spent
        assert spent <= delta * (1 + 1e-9)
        assert spent > 0.3 * delta


# --------------------------------------------------------- exact densities of the tilted minimisers

U = np.linspace(-60, 60, 12_001)  # models of one dimension


def log_density(records, loss, ridge, log_noise, u=U):
    """ln of the density at u of the minimiser: that of b = -F'(u), times the Jacobian F''(u)."""
    a = np.array([abs(r) for r in records])[:, None]
    signs = np.sign(np.array(records))[:, None]
    s = loss_slopes(loss.smoothing, signs * a * u)
    gradient = ridge * u - (signs * a * s).sum(axis=0)
    bend = ridge + (a**2 * loss_curvatures(loss.smoothing, s)).sum(axis=0)
    return log_noise(-gradient) + np.log(bend)


def neighbouring(adjacency):
    """Pairs of tables of coded records of one dimension, in both directions."""
    values = (-1.0, -0.6, 0.0, 0.6, 1.0)
    for kept in ((), (1.0,), (-1.0, 0.6)):
        for t in values:
            if adjacency == "add_remove":
                yield (*kept, t), kept
                yield kept, (*kept, t)
            else:
                yield from (((*kept, t), (*kept, other)) for other in values)


def worst_ratio(loss, ridge, beta, adjacency):
    def log_noise(b):
        return -beta * np.abs(b)

    def ratios(D, E):
        return log_density(D, loss, ridge, log_noise) - log_density(E, loss, ridge, log_noise)

    return max(float(ratios(D, E).max()) for D, E in neighbouring(adjacency))


@every_loss
@both
@pytest.mark.parametrize(("epsilon", "ridge"), [(1.0, 1.0), (0.5, 3.0), (2.0, 40.0)])
def test_densities_of_neighbours_differ_by_epsilon_and_no_more(epsilon, ridge, loss, adjacency):
    beta = tilt_rate(epsilon, ridge, loss, adjacency)
    if ridge <= loss.curvature / math.expm1(epsilon):
        assert beta == 0  # no noise is enough
        return
    worst = worst_ratio(loss, ridge, beta, adjacency)
    assert worst <= epsilon * (1 + 1e-9)
    if adjacency == "add_remove":
        assert worst > 0.8 * epsilon  # the rate is not wasteful either


@every_loss
def test_replaced_records_of_a_plane_reach_epsilon(loss):
    """Two records, nearly opposite, and both on the wrong side of a model u = (0, -length).

    One dimension has no room for that. Many others, given by their numbers, hold u where it is, and
    leave a slope of 3 along the two.
    """
    epsilon, ridge, length = 1.0, 20.0, 1000.0
    beta, u = tilt_rate(epsilon, ridge, loss, "replace"), np.array([0.0, -length])

    def on_the_circle(angle):
        return np.array([math.cos(angle), math.sin(angle)])

    others = [on_the_circle(-1e-3), on_the_circle(math.pi + 1e-3)]
    s = float(loss_slopes(loss.smoothing, others[0] @ u))
    both_sides, one_side = ridge * length / (s * math.sin(1e-3)), -3 / (s * math.cos(1e-3))
    numbers = [(both_sides + one_side) / 2, (both_sides - one_side) / 2]

    def log_density_at(record):
        b, hessian = -ridge * u, ridge * np.eye(2)
        for phi, number in zip([*others, record], [*numbers, 1.0], strict=True):
            s = loss_slopes(loss.smoothing, phi @ u)
            b = b + number * s * phi
            hessian += number * loss_curvatures(loss.smoothing, s) * np.outer(phi, phi)
        return np.linalg.slogdet(hessian)[1] - beta * np.linalg.norm(b)

    ratio = log_density_at(on_the_circle(0.01)) - log_density_at(on_the_circle(math.pi - 0.01))
    assert 0.95 * 2 * beta < abs(ratio) <= epsilon
    assert 2 * beta > 0.75 * epsilon


def test_the_theorem_of_2008_is_wrong_and_ours_is_not():
    """d = n = 1, lambda = 1e-3, epsilon = 0.1, records a = 1 and a = 0: a ratio of 5.50."""
    epsilon, ridge = 0.1, 1e-3
    published = epsilon / 2

    def ratio(beta, ridge):
        def log_noise(b):
            return -beta * np.abs(b)

        one, other = (log_density([a], Logistic(), ridge, log_noise) for a in (1.0, 0.0))
        return float(np.abs(one - other).max())

    assert round(ratio(published, ridge), 2) == 5.50
    assert tilt_rate(epsilon, ridge, Logistic(), "replace") == 0  # refused, hence raised
    enough = perturbation._roomy_ridge(Logistic(), Budget(epsilon))
    assert ratio(tilt_rate(epsilon, enough, Logistic(), "replace"), enough) <= epsilon
    # From Lambda = 2 / epsilon on the published formula is right, too.
    assert ratio(published, 2 / epsilon) <= epsilon


def normal_log_density(b, sigma):
    return -(b**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))


@every_loss
@both
def test_gaussian_tilts_of_one_dimension_keep_their_delta(loss, adjacency):
    """delta(epsilon) is the integral of (p - e^epsilon p')_+, by a fine grid."""
    epsilon, delta, ridge = 1.0, 1e-2, 8.0
    sigma = tilt_deviation(epsilon, delta, ridge, loss, adjacency)
    u = np.linspace(-12, 12, 8001)
    for D, E in neighbouring(adjacency):
        p, q = (np.exp(log_density(rows, loss, ridge, lambda b: normal_log_density(b, sigma), u))
                for rows in (D, E))  # fmt: skip
        assert math.isclose(p.sum() * (u[1] - u[0]), 1, rel_tol=1e-2)  # a kink of the hinge costs
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() * (u[1] - u[0]) <= delta


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.pi])
def test_gaussian_tilts_of_two_dimensions_keep_their_delta(angle):
    """One record replaced by another at an angle: the case that needs all corners of (s, s')."""
    epsilon, delta, ridge, loss = 0.7, 0.02, 2.0, Logistic()
    sigma = tilt_deviation(epsilon, delta, ridge, loss, "replace")
    axis = np.linspace(-14, 14, 701)
    u = np.stack(np.meshgrid(axis, axis, indexing="ij"))

    def density(phi):
        s = loss_slopes(loss.smoothing, np.tensordot(phi, u, 1))
        b = -(ridge * u - s * phi[:, None, None])
        bend = ridge * (ridge + loss_curvatures(loss.smoothing, s))
        return np.exp(normal_log_density(b, sigma).sum(axis=0)) * bend

    p, q = density(np.array([1.0, 0.0])), density(np.array([math.cos(angle), math.sin(angle)]))
    cell = (axis[1] - axis[0]) ** 2
    assert math.isclose(p.sum() * cell, 1, rel_tol=1e-3)
    assert np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell <= delta


def intercept_problem(labels, loss, ridge):
    """Coded records of one dimension, +1 or -1: a column that does not vary, and the intercept."""
    objective = LinearObjective(np.zeros((len(labels), 1)), labels, "logistic", Box([0.0], [0.0]))
    return Problem(objective, loss, ridge)


@pytest.mark.parametrize(
    ("loss", "delta"), [(Logistic(), 0.0), (Logistic(), 1e-3), (HuberHinge(0.5), 0.0)], ids=str
)
def test_the_code_draws_from_the_density_of_the_proof(loss, delta):
    """Kolmogorov-Smirnov on 500 draws, false alarm 1e-6; the repair's noise is far below it."""
    ridge, labels = 20.0, [1, 1, 0]
    mechanism = PerturbedMinimiser(2.0, delta, ridge, loss, "replace", 2.0**-20, 0.01)
    problem, source = intercept_problem(labels, loss, ridge), np.random.default_rng(5)
    draws = [float(mechanism(problem, source)[0]) for _ in range(500)]

    def log_noise(b):
        if delta:
            return normal_log_density(b, mechanism.scale)
        return -np.abs(b) / mechanism.scale - math.log(2 * mechanism.scale)

    u = np.linspace(-10, 10, 100_001)
    signs = [1.0 if label else -1.0 for label in labels]
    cdf = np.cumsum(np.exp(log_density(signs, loss, ridge, log_noise, u))) * (u[1] - u[0])
    assert math.isclose(cdf[-1], 1, rel_tol=1e-3)
    assert scipy.stats.kstest(draws, lambda x: np.interp(x, u, cdf)).pvalue > 1e-6


# ------------------------------------------------------------------------------------------- audits


CANARIES = {
    "one dimension": (Box([0.0], [0.0]), [[0.0]], [[0.0]]),
    "two dimensions": (L2Ball(1.0), [[1.0]], [[-1.0]]),
}
every_canary = pytest.mark.parametrize("canary", CANARIES.values(), ids=CANARIES)


def neighbours_of(canary, loss, ridge):
    """Problems with one record each: a record, and another of the other class in its place."""
    domain, first, second = canary
    return [Problem(LinearObjective(np.array(X), y, "logistic", domain), loss, ridge)
            for X, y in ((first, [1]), (second, [0]))]  # fmt: skip


@every_canary
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_audits_of_tilted_minimisers_find_nothing(delta, canary):
    first, second = neighbours_of(canary, Logistic(), 2.0)
    mechanism = PerturbedMinimiser(1.0, delta, 2.0, Logistic(), "replace", 2.0**-16, 0.01)
    found = audit_runs(mechanism, first, second, runs=300, confidence=SURE, delta=delta, rng=3)
    assert found.passes(1.0)


@every_canary
def test_an_audit_finds_a_tilt_that_is_too_short(canary):
    first, second = neighbours_of(canary, Logistic(), 2.0)
    mechanism = PerturbedMinimiser(12.0, 0.0, 2.0, Logistic(), "replace", 2.0**-16, 0.01)
    assert not audit_runs(mechanism, first, second, runs=300, confidence=SURE, rng=3).passes(1.0)


@every_canary
@pytest.mark.parametrize(
    ("method", "loss", "delta"),
    [("output", "logistic", 0.0), ("output", "logistic", 1e-3), ("objective", "hinge", 0.0),
     ("privatesvm", "hinge", 0.0)],
)  # fmt: skip
def test_audits_of_whole_fits_find_nothing(method, loss, delta, canary):
    domain, first, second = canary
    settings, function = METHODS[method]

    def run(objective, source):
        grant = Ledger(1.0, delta).reserve(1.0, delta)
        return function(objective, Reals(-1, 1, 2), settings(), grant, source).answer

    one, other = (LinearObjective(np.array(X), y, loss, domain)
                  for X, y in ((first, [1]), (second, [0])))  # fmt: skip
    assert audit_runs(run, one, other, runs=80, confidence=SURE, delta=delta, rng=3).passes(1.0)


# ---------------------------------------------------------------------------- fits and their ledger


@both
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("kind", "solver"),
    [(LogisticRegression, "output"), (LogisticRegression, "objective"), (LinearSVC, "output"),
     (LinearSVC, "objective"), (LinearSVC, "privatesvm")],
)  # fmt: skip
def test_a_fit_learns_and_its_release_verifies(kind, solver, delta, adjacency, rng):
    X = rng.uniform(-1, 1, (4000, 3))
    y = (X[:, 0] + 0.2 > X[:, 2]).astype(int)
    ledger, told = Ledger(3.0, 1e-5), []
    model = kind(1.0, delta, domain=(-1, 1), classes=[0, 1], solver=solver, adjacency=adjacency,
                 ledger=ledger, random_state=2, callback=told.append).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.9
    release = model.release_
    assert release.verify()
    assert Release.from_json(release.to_json()).events == release.events
    assert (release.epsilon, release.delta, ledger.spent.epsilon) == (1.0, delta, 1.0)
    (event,) = release.events
    gaussian = delta and solver == "output"
    approximate = delta and solver == "objective"
    kind_of = "gaussian" if gaussian else "approximate" if approximate else "pure"
    assert (event.kind, event.count, event.delta) == (kind_of, 1, delta if approximate else 0.0)
    if not gaussian:
        assert event.parameter == 1.0
    assert release.settings["regularisation"] > 0
    assert len(told) == 1
    assert np.array_equal(told[0].parameters, np.append(model.coef_, model.intercept_))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("solver", ["output", "objective", "privatesvm"])
def test_several_classes_share_one_budget(solver, delta, rng):
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.where(X[:, 0] > 0.3, 2, (X[:, 1] > 0).astype(int))
    model = LinearSVC(3.0, delta, domain=(-1, 1), classes=[0, 1, 2], solver=solver, random_state=1)
    model.fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.release_.verify()
    (event,) = model.release_.events
    assert event.count == 3
    if delta and solver == "output":
        assert math.isclose(
            gaussian_total(event.parameter * math.sqrt(3), delta), 3.0, rel_tol=1e-6
        )
    elif delta and solver == "objective":
        assert event.parameter > 1.0  # more than a third: composed by the optimum for pure releases
        assert 3 * event.delta < delta
    else:
        assert math.isclose(event.parameter, 1.0, rel_tol=1e-12)


def test_coefficients_are_those_of_the_original_coding(rng):
    """With next to no noise a private fit predicts as the model that it hides."""
    X = rng.uniform([100, -2], [300, 5], (3000, 2))
    y = (X[:, 0] - 40 * X[:, 1] > 150).astype(int)
    domain = Box([100.0, -2.0], [300.0, 5.0])
    for solver in (OutputPerturbation(1e-3), ObjectivePerturbation(1e-3)):
        model = LogisticRegression(
            1e6, domain=domain, classes=[0, 1], solver=solver, random_state=0
        )
        model.fit(X, y)
        assert model.score(X, y) > 0.98
        ratio = model.coef_[0, 1] / model.coef_[0, 0]
        assert abs(ratio + 40) < 2
        assert abs(-model.intercept_[0] / model.coef_[0, 0] - 150) < 5


@both
def test_an_infeasible_regularisation_is_raised_and_said(adjacency, rng):
    X, y = table(rng)
    model = LogisticRegression(0.1, domain=(-1, 1), classes=[0, 1], random_state=1,
                               solver=ObjectivePerturbation(1e-3), adjacency=adjacency)  # fmt: skip
    with pytest.warns(
        UserWarning, match=r"regularisation \(0.001\) is too small .* raised to 20.2"
    ):
        model.fit(X, y)
    assert math.isclose(model.release_.settings["regularisation"], 2 / 0.099, rel_tol=1e-9)
    assert model.release_.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(solver=ObjectivePerturbation()).fit(X, y)  # our rule is never infeasible


def rule_of(settings, p=50, budget=None, adjacency="replace", size=None):
    return settings.ridge(
        Product((Ball(p - 1), Cube(1))), Logistic(), budget or Budget(1.0), adjacency, size
    )


def test_rules_are_public_and_monotone():
    for settings in (OutputPerturbation(), ObjectivePerturbation(), PrivateSVM()):
        assert rule_of(settings) >= rule_of(settings, size=10**6)
        assert rule_of(settings, budget=Budget(0.1)) > rule_of(settings)
        assert rule_of(settings, p=100) > rule_of(settings)
        assert rule_of(settings, adjacency="add_remove") < rule_of(settings)
        assert rule_of(settings, budget=Budget(1.0, 1e-6)) <= rule_of(settings)
    assert rule_of(OutputPerturbation(7.0)) == 7.0
    assert rule_of(OutputPerturbation(paper=True), size=17_500) == 175.0
    assert OutputPerturbation().stops_at(None) == OutputPerturbation().stops_at(10**5) == 2.0**-16
    assert OutputPerturbation().stops_at(2**24) == 2.0**-12
    assert PrivateSVM(smoothing=0.1).stops_at(2**24) == 5 * 2.0**-12
    assert OutputPerturbation(tolerance=1e-3).stops_at(2**30) == 1e-3


def test_the_published_private_svm_draws_twice_the_noise(rng):
    objective = LinearObjective(*table(rng), "hinge", Box(-1, 1))
    spread = {}
    for paper in (False, True):
        settings, found = PrivateSVM(3.0, paper=paper), []
        for seed in range(40):
            grant = Ledger(1.0).reserve(1.0)
            found.append(privatesvm(objective, Reals(-1, 1, 5), settings, grant, seed).answer)
        spread[paper] = np.array(found).std()
    # 200 Laplace draws each: a deviation of the ratio's logarithm of 0.11, so 5 of them.
    assert 1.15 < spread[True] / spread[False] < 3.5


# ------------------------------------------------------------------------------------ (eps, delta)


def test_approximate_releases_compose():
    from privfit.accounting import compose, compose_ordered

    one = Event("approximate", 0.5, delta=1e-6)
    assert compose([one], 1e-6) == 0.5
    assert 0.4999 < compose([one], 1e-5) < 0.5  # the rest of delta buys a little
    assert compose([one], 0.99e-6) == math.inf
    assert compose([one, one], 2e-6) == compose([Event("approximate", 0.5, 2, 1e-6)], 2e-6) == 1.0
    many = Event("approximate", 0.1, 50, 1e-8)
    pure = Event("pure", 0.1, 50)
    assert compose([many], 1e-6) == compose([pure], 5e-7)
    assert compose([many], 1e-6) < 50 * 0.1
    mixed = [one, Event("selection", 0.1, 20), Event("gaussian", 0.2)]
    left = math.nextafter(2e-6 - 1e-6, 0)
    assert compose(mixed, 2e-6) == pytest.approx(
        compose([Event("pure", 0.5), *mixed[1:]], left), rel=1e-6
    )
    assert compose_ordered(mixed, 2e-6) <= compose(mixed, 2e-6)
    assert compose(mixed, 1e-6) == math.inf  # nothing is left for the Gaussian one
    assert compose([Event("approximate", 0.0, delta=1e-6)], 1e-7) == math.inf
    with pytest.raises(
        ValueError, match=r"delta \(1e-06\) belongs to an approximate release; leave"
    ):
        Event("pure", 0.1, delta=1e-6)
    with pytest.raises(ValueError, match=r"delta \(1\) must be a number in \[0, 1\)"):
        Event("approximate", 0.1, delta=1)


def test_a_grant_tells_approximate_releases_apart_by_their_delta():
    grant = Ledger(1.0, 3e-6).reserve(1.0, 3e-6)
    grant.plan(Event("approximate", 0.5, delta=1e-6))
    grant.plan(Event("approximate", 0.5, delta=2e-6))
    with pytest.raises(RuntimeError, match=r"costs epsilon inf; reserve more"):
        grant.plan(Event("approximate", 1e-3, delta=1e-9))


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", [OutputPerturbation, ObjectivePerturbation, PrivateSVM])
def test_settings_are_checked(kind):
    for bad in (0, -1.0, math.nan, math.inf, "1", True):
        with pytest.raises(ValueError, match=r"regularisation \(.*\) must be a positive number"):
            kind(regularisation=bad)
    for name in ("smoothing", "tolerance"):
        with pytest.raises(ValueError, match=rf"{name} \(2\) must lie in \[0, 1\]; leave it out"):
            kind(**{name: 2})
        with pytest.raises(ValueError, match=rf"{name} \(0\) must be above 0"):
            kind(**{name: 0})


def test_the_repair_leaves_a_budget_for_the_tilt():
    with pytest.raises(ValueError, match=r"repair \(1\) must be below 1: the tilt needs a budget"):
        ObjectivePerturbation(repair=1)
    with pytest.raises(ValueError, match=r"repair \(0\) must be above 0"):
        ObjectivePerturbation(repair=0)


@pytest.mark.parametrize(
    ("objective", "settings", "size", "message"),
    [
        ({"loss": "zero_one"}, OutputPerturbation(), 300, "OutputPerturbation needs a convex loss"),
        ({"loss": "hinge", "C": 2.0}, OutputPerturbation(), 300, r"C \(2.0\) must be 1 for Output"),
        ({}, PrivateSVM(), 300, "privatesvm is a support vector machine, not a logistic"),
        ({}, OutputPerturbation(paper=True), None, "n_public must be given under adjacency"),
        ({}, ObjectivePerturbation(tolerance=1e-12), 300, r"tolerance \(1e-12\) must be at least"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused_before_it_is_charged(
    objective, settings, size, message, rng
):
    records = LinearObjective(*table(rng), domain=Box(-1, 1), **objective)
    with pytest.raises(ValueError, match=message):
        settings.check(records, Budget(1.0), "replace", size)
    function = dict(METHODS.values())[type(settings)]
    ledger = Ledger(1.0)
    adjacency = "replace" if size else "add_remove"
    grant = ledger.reserve(1.0)
    with pytest.raises(ValueError, match=message):
        function(records, Reals(-1, 1, 5), settings, grant, adjacency=adjacency)
    assert grant.events == ()


def test_estimators_refuse_before_they_charge(rng):
    X, y = table(rng)
    ledger = Ledger(1.0)
    declared = {"domain": (-1, 1), "classes": [0, 1], "ledger": ledger}
    with pytest.raises(ValueError, match="privatesvm is a support vector machine"):
        LogisticRegression(solver="privatesvm", **declared).fit(X, y)
    with pytest.raises(TypeError, match=r"callback \(int\) must be a function"):
        LogisticRegression(solver="objective", callback=3, **declared).fit(X, y)
    with pytest.raises(ValueError, match="n_public must be given"):
        LogisticRegression(solver=ObjectivePerturbation(paper=True), adjacency="add_remove",
                           **declared).fit(X, y)  # fmt: skip
    with pytest.raises(ValueError, match="adjacency"):
        LogisticRegression(solver="output", adjacency="other", **declared).fit(X, y)
    with pytest.raises(ValueError, match=r"contains NaN"):
        LogisticRegression(solver="output", **declared).fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match=r"epsilon \(inf\)"):
        LogisticRegression(math.inf, solver="output", **declared | {"ledger": None}).fit(X, y)
    assert ledger.spent.epsilon == 0


def test_a_tilt_is_for_one_problem():
    mechanism = PerturbedMinimiser(1.0, 0.0, 2.0, Logistic(), "replace", 2.0**-16, 0.01)
    for loss, ridge in ((Logistic(), 1.0), (HuberHinge(0.5), 2.0)):
        with pytest.raises(ValueError, match="value must be a problem with the loss and the ridge"):
            mechanism(intercept_problem([1], loss, ridge), 0)


def test_settings_refuse_other_objectives():
    with pytest.raises(
        ValueError, match="PrivateSVM needs a convex loss of a linear model; pass a"
    ):
        PrivateSVM().check(object(), Budget(1.0), "replace", 3)


@pytest.mark.skipif(not (ROOT / "bench" / "schemas").exists(), reason="no benchmarks beside these")
def test_objective_perturbation_is_accurate_on_adult(data_folder):
    """Asked: 0.838 at a pure epsilon of 1, replace; found: 0.8482 over 10 splits, each +- 0.003."""
    sys.path.append(str(ROOT))  # last, so that an installed privfit stays the one under test
    from bench import datasets

    adult, found = datasets.load("adult"), []
    for seed in range(2):
        train, test = adult.split(seed)
        model = LogisticRegression(1.0, domain=adult.schema, classes=[0, 1], solver="objective",
                                   random_state=seed).fit(train.columns, train.y)  # fmt: skip
        found.append(model.score(test.columns, test.y))
    assert np.mean(found) >= 0.838


@pytest.mark.filterwarnings("ignore::privfit.PrivacyLeakWarning",
                            "ignore:invalid value encountered in cast:RuntimeWarning")  # fmt: skip
@scikit_learn_checks([LogisticRegression(1000, domain=(-5, 5), solver="objective")])
def test_scikit_learn_is_content(estimator, check):
    check(estimator)
