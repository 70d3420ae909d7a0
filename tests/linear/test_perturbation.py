"""Output and objective perturbation and the private SVM: codings, solver, proofs, audits.

Densities of one- and two-dimensional minimisers are computed from their definition, apart from the
code under test. Statistical tests use fixed seeds; on fresh ones each raises a false alarm at most
once in 1e6 runs.
"""

from __future__ import annotations

import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from makers.cases import scikit_learn_checks
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
    Stream,
)
from privfit.audit import audit_runs
from privfit.base.dyadic import Dyadic
from privfit.datasets import load_adult
from privfit.linear import objective_perturbation
from privfit.linear.methods import METHODS
from privfit.linear.newton import (
    HuberHinge,
    InverseGuess,
    Logistic,
    Problem,
    coding_of,
    gamma_for,
)
from privfit.linear.tilts import PerturbedMinimiser, tilt_deviation, tilt_rate
from privfit.models import model as model_files
from privfit.privacy.accounting import Event, gaussian_total
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.noise_bodies import contrasts
from privfit.records.packing import MAX_RECORDS
from privfit.runs.payment import Terms
from privfit.runs.run import Run, Task
from privfit.runs.spaces import Reals

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


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_coded_records_fill_the_unit_ball_and_never_leave_it(domain, intercept, rng):
    A = coding_of(domain, intercept=intercept).matrix.toarray()
    x = records_of(domain, rng)
    norms = np.linalg.norm(np.column_stack([x, np.ones(len(x))]) @ A.T, axis=1)
    assert norms.max() <= 1
    assert norms.max() > 1 - 1e-9
    if intercept:
        assert A[-1, -1] > 0
        assert np.count_nonzero(A[-1]) == 1
    else:
        assert not A[:, -1].any()  # the coded record is A x
        assert np.linalg.matrix_rank(A) == len(A)


def test_a_group_is_coded_by_orthonormal_contrasts():
    for levels in (1, 2, 3, 17):
        rows = contrasts(levels)
        assert rows.shape == (levels - 1, levels)
        assert np.allclose(rows @ rows.T, np.eye(levels - 1), atol=1e-12)
        assert not rows.sum(axis=1).any()  # exactly: bodies of noise are made of these rows
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
    coding = coding_of(objective.domain, intercept=objective.fit_intercept)
    return np.vstack(blocks) @ coding.matrix.toarray().T


def gradient_by_hand(S, loss, ridge, tilt, u):
    """In long double, where the errors of float64 show."""
    S, u = S.astype(np.longdouble), u.astype(np.longdouble)
    m = S @ u
    s = 1 / (1 + np.exp(m)) if isinstance(loss, Logistic) else loss_slopes(loss.smoothing, m)
    return np.asarray(ridge * u + tilt - s @ S)


def minimised(problem, tilt, tolerance):
    """What the solver finds, in float64."""
    return problem.minimise(Dyadic.of(tilt), tolerance).floats()


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


@pytest.mark.few(4)
@every_loss
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize(
    ("layout", "intercept"), [("dense", True), ("sparse", True), ("sparse", False)]
)
def test_the_solver_stops_where_the_gradient_is_short(name, loss, layout, intercept, rng):
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
    objective = LinearObjective(X, y, "logistic", domain, layout=layout, fit_intercept=intercept)
    ridge, tolerance = 0.7, 1e-7
    problem = Problem(objective, loss, ridge)
    tilt = rng.standard_normal(problem.size)
    u, S = minimised(problem, tilt, tolerance), coded_by_hand(objective)
    exact = gradient_by_hand(S, loss, ridge, tilt, u)
    assert np.linalg.norm(exact) <= tolerance
    for coarse in (1.0, gamma_for(loss, 300)):  # quickly, and finely
        there = problem._at(Dyadic.of(u), Dyadic.of(tilt), coarse)
        assert np.linalg.norm(there.gradient - exact) <= there.error + 1e-13
        assert there.error <= coarse / 8
    twin = scipy.optimize.minimize(
        lambda v: value_by_hand(S, loss, ridge, tilt, v), np.zeros(len(u)),
        jac=lambda v: gradient_by_hand(S, loss, ridge, tilt, v).astype(float), method="BFGS",
    )  # fmt: skip
    assert np.allclose(u, twin.x, atol=1e-3)
    w = np.append(problem.linear(u), [0.0] * (not intercept))
    assert len(w) == domain.width + 1
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
    fits = [minimised(Problem(objective, Logistic(), 2.0), np.zeros(21), 1e-8)
            for objective in objectives]  # fmt: skip
    for other in fits[1:]:
        assert np.array_equal(other, fits[0])


@pytest.mark.few(6)
@every_loss
@pytest.mark.parametrize("size", [1e3, 1e9, 1e40])
def test_every_tilt_is_answered_to_the_tolerance(loss, size, rng):
    """By the gradient in 400 bits of the exact coding, at models of any size."""
    objective = LinearObjective(*table(rng, 60), "logistic", Box(-1, 1))
    problem, tilt = Problem(objective, loss, 0.5), Dyadic.of(size * rng.standard_normal(5))
    u, tolerance = problem.minimise(tilt, 2.0**-30), 2.0**-30
    with mpmath.workprec(400):
        model, gradient = as_mpf(u), as_mpf(tilt)
        gradient = [g + x / 2 for g, x in zip(gradient, model, strict=True)]
        for phi in exactly_coded(objective):
            m = mpmath.fdot(phi, model)
            if isinstance(loss, Logistic):
                s = 1 / (1 + mpmath.exp(m))
            else:
                s = min(max((1 + loss.smoothing - m) / (2 * mpmath.mpf(loss.smoothing)), 0), 1)
            gradient = [g - s * x for g, x in zip(gradient, phi, strict=True)]
        assert mpmath.norm(gradient) <= tolerance
        assert mpmath.norm(model) > size / 10


def as_mpf(vector):
    return [mpmath.ldexp(int(v), -vector.bits) for v in vector.whole]


def exactly_coded(objective):
    """Coded records with the sign of their labels, in as many bits as mpmath has."""
    coding, units = coding_of(objective.domain), objective.domain.record_units()
    M = coding.columns.matrix.toarray().tolist()
    for X, sign in objective.labelled_blocks(64):
        for x in np.rint(X / units).astype(int).tolist():
            nu = [mpmath.ldexp(2 * k - int(m), -coding.a - 1)
                  for k, m in zip(x, coding.middle, strict=True)]  # fmt: skip
            yield [sign * coding.scale * mpmath.fdot(row, [*nu, 1]) for row in M]


@pytest.mark.few(2)
@every_loss
def test_no_step_of_newton_is_needed(loss, rng, monkeypatch):
    """Where no direction helps, steps downhill lead to the same end: there is no other answer."""
    objective = LinearObjective(*table(rng), "logistic", Box(-1, 1))
    problem, tilt = Problem(objective, loss, 40.0), rng.standard_normal(5)
    found = minimised(problem, tilt, 1e-6)
    monkeypatch.setattr(Problem, "_newton_step", lambda self, here, guess, tolerance: here.gradient)
    slow = minimised(problem, tilt, 1e-6)
    assert np.linalg.norm(slow - found) <= 2e-6 / 40
    assert np.linalg.norm(found) > 1e-3


@pytest.mark.few(6)
@every_loss
@pytest.mark.parametrize("wrong", [np.negative, np.flip, lambda v: v * math.nan])
def test_a_guess_that_misleads_is_forgotten(loss, wrong, rng, monkeypatch):
    """Pairs that are nearly dependent may make any guess: it costs steps, and nothing else."""
    objective = LinearObjective(*table(rng), "logistic", Box(-1, 1))
    problem, tilt = Problem(objective, loss, 40.0), rng.standard_normal(5)
    found, forgotten = minimised(problem, tilt, 1e-6), []
    right, forget = InverseGuess.__call__, InverseGuess.forget

    def misled(guess, vector):
        return wrong(vector) if len(guess._directions) else right(guess, vector)

    monkeypatch.setattr(InverseGuess, "__call__", misled)
    monkeypatch.setattr(InverseGuess, "forget", lambda self: forgotten.append(forget(self)))
    assert np.linalg.norm(minimised(problem, tilt, 1e-6) - found) <= 2e-6 / 40
    assert len(forgotten) > 1  # once at the beginning


def test_a_tolerance_below_the_errors_is_refused(rng):
    problem = Problem(LinearObjective(*table(rng), "logistic", Box(-1, 1)), Logistic(), 1.0)
    with pytest.raises(ValueError, match=r"tolerance \(1e-15\) must be at least gamma_for"):
        problem.minimise(Dyadic.of(np.zeros(5)), 1e-15)


# ------------------------------------------------------------------- fits that were answered by 0


def separable(low, high, n, seed=0):
    X = np.random.default_rng(seed).uniform(low, high, (n, 2))
    return X, (X[:, 0] > X[:, 1]).astype(int)


FAR = {
    "output": (LogisticRegression, OutputPerturbation(regularisation=100), 1000, 1001, 0.0),
    "output, delta": (LogisticRegression, OutputPerturbation(100), 1000, 1001, 1e-6),
    "objective": (LogisticRegression, "objective", 1000, 1001, 0.0),
    "objective, delta": (LogisticRegression, "objective", 2020, 2025, 1e-6),
    "auto": (LogisticRegression, "auto", 1000, 1001, 0.0),
    "auto, around 0": (LogisticRegression, "auto", -1, 1, 0.0),
    "privatesvm": (LinearSVC, "privatesvm", 2020, 2025, 0.0),
}


@pytest.mark.few(4)
@both
@pytest.mark.parametrize("case", FAR.values(), ids=FAR)
def test_boxes_far_from_zero_are_learned(case, adjacency):
    kind, solver, low, high, delta = case
    X, y = separable(low, high, 60_000)
    model = kind(1.0, delta, domain=Box(low, high, 2), classes=[0, 1], solver=solver,
                 adjacency=adjacency, random_state=1, n_public=60_000).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.9
    assert model.domain_ == Box(low, high, 2)
    far = low > 0
    assert ("origin" in model.release_.settings) == far
    again = model_files.loads(model_files.dumps(model))
    assert np.array_equal(again.decision_function(X[:99]), model.decision_function(X[:99]))


@both
def test_a_stream_far_from_zero_gives_the_model_of_memory(adjacency):
    X, y = separable(2020, 2025, 60_000)
    model = LogisticRegression(1.0, domain=Box(2020, 2025, 2), classes=[0, 1], solver="objective",
                               adjacency=adjacency, random_state=1)  # fmt: skip
    weights = model.fit(X, y).coef_
    assert np.array_equal(model.fit(Stream(X), y).coef_, weights)


def test_a_centred_box_is_the_box_around_its_middle(rng):
    """Column by column, only where 0 is outside; records are clipped and rounded from there."""
    box = Box([1000.0, -1.0, -9.0], [1001.0, 3.0, -8.0])
    centred = box.centred()
    assert centred.origin.tolist() == [1000.5, 0.0, -8.5]
    assert Box(-1, 3, 2).centred() == Box(-1, 3, 2)
    X = rng.uniform([999, -2, -10], [1002, 4, -7], (500, 3))
    near = centred.quantise(X) * centred.record_units() + centred.origin
    assert np.abs(near - np.clip(X, box._declared_low, box._declared_high)).max() <= 4 / 4096
    assert np.abs(near - np.clip(X, box._declared_low, box._declared_high))[:, 0].max() <= 1 / 8192
    for domain in (box, centred):
        with pytest.raises(ValueError, match="sparse X must have 0 inside the bounds of every"):
            LinearObjective(sp.csr_array(X), np.ones(500), "logistic", domain)


@pytest.mark.slow
def test_one_label_moves_the_answer_by_no_more_than_the_sensitivity():
    """184,000 records of Box(1000, 1001): it moved from 0 to a vector of length 4.9."""
    X, y = separable(1000, 1001, 184_000)
    answers, gamma = [], 2.0**-16
    for changed in (False, True):
        y[0] ^= changed
        for domain in (Box(1000, 1001, 2), Box(1000, 1001, 2).centred()):
            problem = Problem(LinearObjective(X, y, "logistic", domain), Logistic(), 100.0)
            answers.append(minimised(problem, np.zeros(3), gamma))
    reach = (2 + 2 * gamma) / 100
    for one, other in ((0, 2), (1, 3)):
        assert np.linalg.norm(answers[one]) > 1
        assert 0 < np.linalg.norm(answers[one] - answers[other]) <= reach


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0], [1, 0, 1]])
def test_awkward_tables_are_fitted(labels):
    for X in (np.zeros((3, 2)), np.full((3, 2), 1e9), np.array([[1.0, -1.0]] * 3)):
        for solver in ("output", "objective", "privatesvm"):
            model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=solver, random_state=0)
            assert np.isfinite(model.fit(X, labels).coef_).all()


# ----------------------------------------------------------- how far neighbours' minimisers lie


@pytest.mark.few(1)
@every_loss
@both
def test_minimisers_of_neighbours_are_as_near_as_is_said(loss, adjacency, rng):
    """Every pair of neighbours among 2 records out of 6, opposite ones included."""
    ridge, gamma, domain = 0.3, 1e-9, L2Ball(1.0, 2)
    pool = [(x, y) for x in ([1, 0], [0.6, -0.8], [0, 0]) for y in (0, 1)]

    def fit(rows):
        objective = LinearObjective(np.array([pool[i][0] for i in rows], float),
                                    [pool[i][1] for i in rows], "logistic", domain)  # fmt: skip
        return minimised(Problem(objective, loss, ridge), np.zeros(3), gamma)

    pairs = itertools.combinations_with_replacement(range(6), 2)
    two, one = {rows: fit(rows) for rows in pairs}, {(i,): fit((i,)) for i in range(6)}
    reach = (Neighbours(adjacency).changes + 2 * gamma) / ridge
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
    assert round(tilt_rate(epsilon, ridge, Logistic(), REPLACE), 4) == replaced
    assert round(tilt_rate(epsilon, ridge, Logistic(), ADD_REMOVE), 4) == added


@pytest.mark.few(2)
@both
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_the_rate_costs_epsilon_by_a_fine_grid(epsilon, adjacency):
    least = 1 / (4 * math.expm1(epsilon))
    for ridge in least * np.geomspace(1.001, 1e5, 40):
        beta = tilt_rate(epsilon, ridge, Logistic(), Neighbours(adjacency))
        assert beta > 0
        cost = cost_by_grid(beta, ridge, adjacency)
        assert cost <= epsilon
        assert cost > epsilon * (1 - 1e-6)


@both
def test_the_simple_rate_is_right_from_the_stated_ridge_on(adjacency):
    """epsilon / 2 under replace iff Lambda >= 2 / epsilon; add_remove: epsilon, 1 / epsilon."""
    changes = Neighbours(adjacency).changes
    for epsilon in (0.1, 1.0, 4.0):
        full, edge = epsilon / changes, changes / epsilon
        assert math.isclose(
            tilt_rate(epsilon, edge, Logistic(), Neighbours(adjacency)), full, rel_tol=1e-11
        )
        assert tilt_rate(epsilon, 0.9 * edge, Logistic(), Neighbours(adjacency)) < full * (1 - 1e-4)


@every_loss
@both
def test_there_is_no_rate_below_the_feasible_ridge(loss, adjacency):
    for epsilon in (0.1, 1.0, 10.0):
        edge = loss.curvature / math.expm1(epsilon)
        assert tilt_rate(epsilon, edge, loss, Neighbours(adjacency)) == 0
        assert tilt_deviation(epsilon, 1e-6, edge, loss, Neighbours(adjacency)) == math.inf
        assert tilt_rate(epsilon, 1.01 * edge, loss, Neighbours(adjacency)) > 0
        assert tilt_deviation(epsilon, 1e-6, 1.01 * edge, loss, Neighbours(adjacency)) < math.inf
    assert tilt_rate(1e4, 1.0, loss, Neighbours(adjacency)) > 4000  # and no overflow


def gaussian_delta(mu, epsilon):
    cdf = scipy.stats.norm.cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


@pytest.mark.few(1)
@both
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01, 0.4])
def test_the_deviation_costs_epsilon_and_delta(delta, adjacency):
    for epsilon, ridge in itertools.product((0.1, 1.0, 6.0), (4.0, 100.0)):
        sigma = tilt_deviation(epsilon, delta, ridge, Logistic(), Neighbours(adjacency))
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


@pytest.mark.few(6)
@every_loss
@both
@pytest.mark.parametrize(("epsilon", "ridge"), [(1.0, 1.0), (0.5, 3.0), (2.0, 40.0)])
def test_densities_of_neighbours_differ_by_epsilon_and_no_more(epsilon, ridge, loss, adjacency):
    beta = tilt_rate(epsilon, ridge, loss, Neighbours(adjacency))
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
    beta, u = tilt_rate(epsilon, ridge, loss, REPLACE), np.array([0.0, -length])

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
    assert tilt_rate(epsilon, ridge, Logistic(), REPLACE) == 0  # refused, hence raised
    enough = objective_perturbation._roomy_ridge(Logistic(), Budget(epsilon))
    assert ratio(tilt_rate(epsilon, enough, Logistic(), REPLACE), enough) <= epsilon
    # From Lambda = 2 / epsilon on the published formula is right, too.
    assert ratio(published, 2 / epsilon) <= epsilon


def normal_log_density(b, sigma):
    return -(b**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))


@pytest.mark.few(2)
@every_loss
@both
def test_gaussian_tilts_of_one_dimension_keep_their_delta(loss, adjacency):
    """delta(epsilon) is the integral of (p - e^epsilon p')_+, by a fine grid."""
    epsilon, delta, ridge = 1.0, 1e-2, 8.0
    sigma = tilt_deviation(epsilon, delta, ridge, loss, Neighbours(adjacency))
    u = np.linspace(-12, 12, 8001)
    for D, E in neighbouring(adjacency):
        p, q = (np.exp(log_density(rows, loss, ridge, lambda b: normal_log_density(b, sigma), u))
                for rows in (D, E))  # fmt: skip
        assert math.isclose(p.sum() * (u[1] - u[0]), 1, rel_tol=1e-2)  # a kink of the hinge costs
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() * (u[1] - u[0]) <= delta


@pytest.mark.few(1)
@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.pi])
def test_gaussian_tilts_of_two_dimensions_keep_their_delta(angle):
    """One record replaced by another at an angle: the case that needs all corners of (s, s')."""
    epsilon, delta, ridge, loss = 0.7, 0.02, 2.0, Logistic()
    sigma = tilt_deviation(epsilon, delta, ridge, loss, REPLACE)
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


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("loss", "delta"), [(Logistic(), 0.0), (Logistic(), 1e-3), (HuberHinge(0.5), 0.0)], ids=str
)
def test_the_code_draws_from_the_density_of_the_proof(loss, delta):
    """Kolmogorov-Smirnov on 500 draws, false alarm 1e-6; the repair's noise is far below it."""
    ridge, labels = 20.0, [1, 1, 0]
    mechanism = PerturbedMinimiser(2.0, delta, ridge, loss, REPLACE, 2.0**-20, 0.01)
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


@pytest.mark.parametrize("size", [3, 20, 124])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_cover_hides_where_solver_and_tilt_stopped(size, delta):
    """White box, at the worst pair of answers: 2 e_1 apart, evenly, from just below whole units.

    What is found: a cover without the root of p, without a unit for rounding, or of half the size.
    """
    mechanism = PerturbedMinimiser(1.0, delta, 7.0, Logistic(), REPLACE, 2.0**-16, 0.01)
    cover, unit = mechanism.cover(size)
    e_1 = math.sqrt(size) * (mechanism.tolerance + mechanism.eta(size)) / mechanism.ridge
    x = np.full(size, (1 - 1e-9) * unit)
    other = x + 2 * e_1 / size
    assert math.isclose(np.abs(other - x).sum(), 2 * e_1)
    moved = int(np.abs(np.floor(other / unit) - np.floor(x / unit)).sum())

    def cost(sensitivity):
        return moved * mechanism.epsilon_3 / sensitivity

    assert mechanism.epsilon_1 + mechanism.epsilon_3 <= 1
    assert unit <= e_1 / (4 * size) * (1 + 1e-6)
    assert 0.8 * mechanism.epsilon_3 < cost(cover.sensitivity) <= mechanism.epsilon_3
    for fault in (2 * e_1 / unit / math.sqrt(size) + size, 2 * e_1 / unit, cover.sensitivity / 2):
        assert cost(fault) > mechanism.epsilon_3


@pytest.mark.few(2)
@both
@pytest.mark.parametrize("fault", [False, True])
def test_a_fall_back_to_zero_would_be_found(fault, adjacency, rng):
    """A solver that answers 0 where its certificate fails: here for every other table."""

    def answer(objective):
        if fault and objective.label_counts()[1] % 2:
            return np.zeros(5)
        return minimised(Problem(objective, Logistic(), 2.0), np.zeros(5), 1e-6)

    X, y = table(rng, 400)
    y[:12] = 1
    answers = []
    for i in range(12):
        labels = np.where(np.arange(400) < i, 1 - y, y)
        rows = slice(i if adjacency == "add_remove" else 0, None)
        answers.append(answer(LinearObjective(X[rows], labels[rows], "logistic", Box(-1, 1))))
    gaps = [np.linalg.norm(u - v) for u, v in itertools.pairwise(answers)]
    reach = (Neighbours(adjacency).changes + 2e-6) / 2.0
    assert (max(gaps) > 3 * reach) if fault else (0 < max(gaps) <= reach)


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


@pytest.mark.slow
@pytest.mark.statistical
@every_canary
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_audits_of_tilted_minimisers_find_nothing(delta, canary):
    first, second = neighbours_of(canary, Logistic(), 2.0)
    mechanism = PerturbedMinimiser(1.0, delta, 2.0, Logistic(), REPLACE, 2.0**-16, 0.01)
    found = audit_runs(mechanism, first, second, runs=300, confidence=SURE, delta=delta, rng=3)
    assert found.passes(1.0)


@pytest.mark.slow
@pytest.mark.statistical
@every_canary
def test_an_audit_finds_a_tilt_that_is_too_short(canary):
    first, second = neighbours_of(canary, Logistic(), 2.0)
    mechanism = PerturbedMinimiser(12.0, 0.0, 2.0, Logistic(), REPLACE, 2.0**-16, 0.01)
    assert not audit_runs(mechanism, first, second, runs=900, confidence=SURE, rng=3).passes(1.0)


@pytest.mark.slow
@pytest.mark.statistical
@every_canary
@pytest.mark.parametrize(
    ("method", "loss", "delta"),
    [("output", "logistic", 0.0), ("output", "logistic", 1e-3), ("objective", "hinge", 0.0),
     ("privatesvm", "hinge", 0.0)],
)  # fmt: skip
def test_audits_of_whole_fits_find_nothing(method, loss, delta, canary):
    domain, first, second = canary
    settings = METHODS[method]()

    def run(objective, source):
        grant = Ledger(1.0, delta).reserve(1.0, delta)
        return settings(Run(objective, Reals(-1, 1, 2), grant, source)).answer

    one, other = (LinearObjective(np.array(X), y, loss, domain)
                  for X, y in ((first, [1]), (second, [0])))  # fmt: skip
    assert audit_runs(run, one, other, runs=80, confidence=SURE, delta=delta, rng=3).passes(1.0)


# ---------------------------------------------------------------------------- fits and their ledger


@pytest.mark.few(8)
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
                 calibrate=False, ledger=ledger, random_state=2,
                 callback=told.append).fit(X, y)  # fmt: skip
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


@pytest.mark.few(2)
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
    coding = coding_of(L2Ball(1.0, p - 1))
    return settings.ridge(coding, Logistic(), budget or Budget(1.0), Neighbours(adjacency), size)


def test_rules_are_public_and_monotone():
    for settings in (OutputPerturbation(), ObjectivePerturbation(), PrivateSVM()):
        assert rule_of(settings) >= rule_of(settings, size=10**6)
        assert rule_of(settings, budget=Budget(0.1)) > rule_of(settings)
        assert rule_of(settings, p=100) > rule_of(settings)
        assert rule_of(settings, adjacency="add_remove") < rule_of(settings)
        assert rule_of(settings, budget=Budget(1.0, 1e-6)) <= rule_of(settings)
    assert rule_of(OutputPerturbation(7.0)) == 7.0
    assert rule_of(OutputPerturbation(paper=True), size=17_500) == 175.0
    usual, most = OutputPerturbation(), MAX_RECORDS
    assert usual.stops_at(Logistic(), 10**5) == usual.stops_at(Logistic(), 10**9) == 2.0**-16
    assert 2.0**-14.5 < usual.stops_at(Logistic(), most) < 2.0**-14  # and no larger anywhere
    assert usual.stops_at(HuberHinge(0.1), most) < 2.0**-11
    assert OutputPerturbation(tolerance=1e-3).stops_at(Logistic(), most) == 1e-3


@pytest.mark.slow
def test_the_published_private_svm_draws_twice_the_noise(rng):
    objective = LinearObjective(*table(rng), "hinge", Box(-1, 1))
    spread = {}
    for paper in (False, True):
        settings, found = PrivateSVM(3.0, paper=paper), []
        for seed in range(40):
            grant = Ledger(1.0).reserve(1.0)
            found.append(settings(Run(objective, Reals(-1, 1, 5), grant, seed)).answer)
        spread[paper] = np.array(found).std()
    # 200 Laplace draws each: a deviation of the ratio's logarithm of 0.11, so 5 of them.
    assert 1.15 < spread[True] / spread[False] < 3.5


# ------------------------------------------------------------------------------------ (eps, delta)


def test_approximate_releases_compose():
    from privfit.privacy.accounting import compose

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
    for bad in (0, -1.0, math.nan, math.inf, 1e307, 1e-200, "1", True):
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
        ({"fit_intercept": False}, OutputPerturbation(paper=True), None,
         "n_public must be given under adjacency"),
        ({}, OutputPerturbation(paper=True), 300,
         r"fit_intercept \(True\) must be False for OutputPerturbation\(paper=True\), since the"),
        ({}, ObjectivePerturbation(3.0, paper=True), 300,
         r"for ObjectivePerturbation\(paper=True\).* no intercept; pass fit_intercept=False"),
        ({"domain": Box(0, 0), "fit_intercept": False}, OutputPerturbation(), 300,
         "domain must have a column that is not 0 for all records if no intercept is fitted"),
        ({}, ObjectivePerturbation(tolerance=1e-12), 300, r"tolerance \(1e-12\) must be at least"),
        ({}, OutputPerturbation(tolerance=2.0**-16), None, r"tolerance \(1.5.*\) must be at least"),
        ({"loss": "hinge"}, OutputPerturbation(smoothing=1e-5), None,
         r"smoothing \(1e-05\) makes slopes change too fast .*; pass smoothing=0.1"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused_before_it_is_charged(
    objective, settings, size, message, rng
):
    records = LinearObjective(*table(rng), **{"domain": Box(-1, 1), **objective})
    adjacency = "replace" if size else "add_remove"
    with pytest.raises(ValueError, match=message):
        settings.check(Task(records, None, 1.0, 0.0, Neighbours(adjacency), size))
    ledger = Ledger(1.0)
    terms = Terms("fit", 1.0, 0.0, adjacency, ledger=ledger)
    with pytest.raises(ValueError, match=message):
        terms.check("settings", settings, records, Reals(-1, 1, records.n_weights))
    assert ledger.entries == ()


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
                           fit_intercept=False, **declared).fit(X, y)  # fmt: skip
    with pytest.raises(ValueError, match="adjacency"):
        LogisticRegression(solver="output", adjacency="other", **declared).fit(X, y)
    with pytest.raises(ValueError, match=r"contains NaN"):
        LogisticRegression(solver="output", **declared).fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match=r"epsilon \(inf\)"):
        LogisticRegression(math.inf, solver="output", **declared | {"ledger": None}).fit(X, y)
    assert ledger.spent.epsilon == 0


def test_a_tilt_is_for_one_problem():
    mechanism = PerturbedMinimiser(1.0, 0.0, 2.0, Logistic(), REPLACE, 2.0**-16, 0.01)
    for loss, ridge in ((Logistic(), 1.0), (HuberHinge(0.5), 2.0)):
        with pytest.raises(ValueError, match="value must be a problem with the loss and the ridge"):
            mechanism(intercept_problem([1], loss, ridge), 0)


def test_settings_refuse_other_objectives():
    with pytest.raises(
        ValueError, match="PrivateSVM needs a convex loss of a linear model; pass a"
    ):
        PrivateSVM().check(Task(object(), None, 1.0, 0.0, REPLACE, 3))


@pytest.mark.slow
def test_objective_perturbation_is_accurate_on_adult(data_folder):
    """Asked: 0.838 at a pure epsilon of 1, replace; found: 0.8482 over 10 splits, each +- 0.003."""
    adult, found = load_adult(data_folder, ranges="observed"), []
    for seed in range(2):
        train, test = adult.split(seed)
        model = LogisticRegression(1.0, domain=adult.schema, classes=[0, 1], solver="objective",
                                   random_state=seed).fit(train.table, train.labels)  # fmt: skip
        found.append(model.score(test.table, test.labels))
    assert np.mean(found) >= 0.838


@pytest.mark.few(5)
@pytest.mark.filterwarnings("ignore::privfit.PrivacyLeakWarning",
                            "ignore:invalid value encountered in cast:RuntimeWarning")  # fmt: skip
@scikit_learn_checks([LogisticRegression(1000, domain=(-5, 5), solver="objective")])
def test_scikit_learn_is_content(estimator, check):
    check(estimator)
