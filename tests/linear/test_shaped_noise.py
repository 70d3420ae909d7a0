"""Noise of the shape of a schema: its law, its proof on tiny problems, the look, the pure `auto`.

Norms and densities are computed from their definitions, apart from the code under test. Statistical
tests use fixed seeds; on fresh ones each raises a false alarm at most once in 1e6 runs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from reference import clipped_numbers

from privfit import (
    Box,
    Categorical,
    GammaVector,
    L1Ball,
    L2Ball,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    Schema,
)
from privfit._kernels.random import BitSource
from privfit.audit import audit_runs
from privfit.base.dyadic import Dyadic
from privfit.linear import auto, objective_perturbation
from privfit.linear.newton import Logistic, Problem, coding_of
from privfit.linear.tilts import PerturbedMinimiser, tilt_rate
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.noise_bodies import (
    Ball,
    Contrasts,
    Cross,
    Cube,
    Product,
    Shape,
    contrasts,
    noise,
)
from privfit.runs.run import Run
from privfit.runs.spaces import Reals

ADJACENCIES = ("replace", "add_remove")
RARE = 1e-8  # the p-value of a single test below which it alarms: some twenty are in a run
SURE = 1 - 1e-6

SHAPES = [Cube(3, 0.5), Ball(4, 2.0), Cross(5, 0.7), Contrasts(2), Contrasts(3, 2.0), Contrasts(6),
          Product((Cross(2), Contrasts(1), Contrasts(4, 0.3), Cube(1, 0.1)))]  # fmt: skip
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=repr)
both = pytest.mark.parametrize("adjacency", ADJACENCIES)

MIXED = Schema(
    {
        "age": Numeric(17, 90),
        "sex": Categorical(["f", "m"]),
        "hours": Numeric(0, 99, bins=[20, 40]),
        "only": Categorical(["one"]),
        "pay": Numeric(0, 1),
        "work": Categorical(list("abcde"), other=True),
    }
)
MANY = Schema({f"x{j}": Numeric(0, 10) for j in range(16)} | {"c": Categorical(list("abc"))})


# ------------------------------------------------------------------------ shapes and their samplers


def norm_by_hand(shape, b):
    """The gauge of a body from its definition; of contrasts, as the hull of their corners."""
    if isinstance(shape, Product):
        ends = np.cumsum([factor.size for factor in shape.factors])[:-1]
        pairs = zip(shape.factors, np.split(b, ends), strict=True)
        return max(norm_by_hand(factor, part) for factor, part in pairs if factor.size)
    if isinstance(shape, Contrasts):
        # b = sum of weights t_j times corners, sum of abs(t_j) as small as it can be.
        corners = shape.radius * contrasts(shape.levels)
        found = scipy.optimize.linprog(
            np.ones(2 * shape.levels), A_eq=np.hstack([corners, -corners]), b_eq=b, bounds=(0, None)
        )
        return found.fun
    order = {Cube: math.inf, Ball: 2, Cross: 1}[type(shape)]
    return np.linalg.norm(b, order) / shape.radius


@pytest.mark.few(5)
@every_shape
def test_norms_are_those_of_the_definition(shape, rng):
    for b in rng.standard_normal((20, shape.size)):
        assert math.isclose(shape.norm(b), norm_by_hand(shape, b), rel_tol=1e-7)
        assert math.isclose(shape.norm(-3 * b), 3 * shape.norm(b), rel_tol=1e-12)


def points_of(shape, count, seed):
    """(count, p): uniform points, to 60 bits."""
    source = BitSource(seed)
    return np.array([shape.point(source)(60)[0].floats() for _ in range(count)])


@pytest.mark.few(3)
@every_shape
@pytest.mark.parametrize("what", ["point", "noise"])
def test_more_bits_refine_a_draw_within_the_error_it_told(shape, what):
    source = BitSource(4)
    for _ in range(60):
        draw = shape.point(source) if what == "point" else noise(shape, 6.0, source)
        exact, _ = draw(300)
        for bits in (1, 8, 48, 60, 130):
            near, error = draw(bits)
            distance = np.linalg.norm((near - exact).floats())
            assert distance <= error
            assert error < 300 * 2.0**-bits
        if what == "point":
            assert np.linalg.norm(exact.floats()) <= shape.longest


@pytest.mark.few(1)
@pytest.mark.statistical
@every_shape
def test_points_are_uniform_in_their_body(shape):
    """The norm of a uniform point has the distribution function x^p; its square's mean is known."""
    points = points_of(shape, 2000, 7)
    norms = np.array([shape.norm(point) for point in points])
    assert norms.max() <= 1 + 1e-12
    assert scipy.stats.kstest(norms**shape.size, "uniform").pvalue > RARE
    squares = (points**2).sum(axis=1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - shape.mean_square) < 6 * error


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("levels", [2, 3, 4, 5])
def test_points_of_contrasts_have_the_law_of_rejected_ones(levels):
    """Beside points of a cube that fall into the hull, by each coordinate and by each level."""
    shape, generator = Contrasts(levels), np.random.default_rng(3)
    points = points_of(shape, 1500, 3)
    cube = generator.uniform(-1, 1, (40_000, levels - 1))
    v = cube @ contrasts(levels)
    inside = np.abs(v - np.median(v, axis=1, keepdims=True)).sum(axis=1) <= 1
    kept = cube[inside]
    assert len(kept) > 500
    for one, other in zip(
        (points @ contrasts(levels)).T, (kept @ contrasts(levels)).T, strict=True
    ):
        assert scipy.stats.ks_2samp(one, other).pvalue > RARE


@pytest.mark.slow
@pytest.mark.statistical
def test_marginals_have_their_closed_forms():
    cross = points_of(Cross(6, 2.0), 3000, 11)[:, 1]
    assert scipy.stats.kstest(1 - (1 - np.abs(cross) / 2) ** 6, "uniform").pvalue > RARE
    assert abs(np.sign(cross).mean()) < 6 / math.sqrt(3000)
    cube = points_of(Cube(3, 0.5), 3000, 12)[:, 2]
    assert scipy.stats.kstest(cube + 0.5, "uniform").pvalue > RARE
    ball = points_of(Ball(3), 3000, 13)[:, 0]  # density 3/4 (1 - x^2)
    assert scipy.stats.kstest((2 + 3 * ball - ball**3) / 4, "uniform").pvalue > RARE


@pytest.mark.few(1)
@pytest.mark.statistical
@every_shape
def test_the_norm_of_gamma_noise_is_a_gamma_variable(shape):
    """Density exp(-K(b) / scale): K(b) is Gamma(p, scale), whatever the shape."""
    mechanism, value, source = GammaVector(0.5, 3.0, shape=shape), np.ones(shape.size), BitSource(2)
    norms = [shape.norm(mechanism(value, source) - value) for _ in range(1000)]
    law = scipy.stats.gamma(shape.size, scale=6.0)
    assert scipy.stats.kstest(norms, law.cdf).pvalue > RARE


def test_a_shape_of_another_dimension_is_refused():
    with pytest.raises(
        ValueError, match=r"value \(2 entries\) must have the dimension of the shape"
    ):
        GammaVector(1.0, 1.0, shape=Cube(3))(np.zeros(2), 0)


def test_the_base_class_draws_nothing():
    for ask in (lambda s: s.size, lambda s: s.mean_square, lambda s: s.norm(np.zeros(1)),
                lambda s: s.longest, lambda s: s.point(BitSource(0))):  # fmt: skip
        with pytest.raises(NotImplementedError):
            ask(Shape())


# ------------------------------------------------------------------------------ records in the body


def records_of(domain, rng):
    """Coded by the domain: random records and, of a schema, every corner of its groups."""
    if not isinstance(domain, Schema):
        raw = rng.uniform(2 * domain.low, 2 * domain.high, (300, domain.width))
        return domain.quantise(raw) * domain.record_units()
    points = [domain.points(300, rng)]
    groups = [range(part.start, part.stop) for part in domain.groups]
    numbers = domain.numbers
    for hot in itertools.product(*groups):
        for low in (0.0, 1.0):
            corner = np.zeros((1, domain.width))
            corner[0, list(hot)], corner[0, numbers] = 1.0, low
            points.append(corner)
    return np.vstack(points)


def clipped(X, numbers, radius):
    """Records whose numbers are scaled down, where need be, to an l1 norm of the radius."""
    whole = np.rint(X * 4096).astype(int).tolist()
    limit = math.floor(radius * 4096)
    return np.array([clipped_numbers(x, numbers.tolist(), limit) for x in whole]) / 4096


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("domain", "radius"),
    [(MIXED, None), (MIXED, 0.5), (MIXED, 1.5), (MANY, 1.0), (MANY, None),
     (Box([-3.0, 0.0, 1.0], [1.0, 1e-3, 1.0]), None), (L1Ball(2.5, 4), None),
     (L2Ball(0.3, 4), None)],
)  # fmt: skip
@pytest.mark.parametrize("intercept", [True, False])
def test_the_shape_holds_every_record_and_no_more_than_it_must(domain, radius, intercept, rng):
    coding, X = coding_of(domain, radius, intercept), records_of(domain, rng)
    if radius is not None:
        X = clipped(X, domain.numbers, radius)
    coded = np.column_stack([X, np.ones(len(X))]) @ coding.matrix.toarray().T
    assert coding.shape.size == coded.shape[1]
    assert max(coding.shape.norm(phi) for phi in coded) <= 1
    assert np.linalg.norm(coded, axis=1).max() <= 1
    ends = np.cumsum([factor.size for factor in coding.shape.factors])[:-1]
    for factor, part in zip(coding.shape.factors, np.split(coded, ends, axis=1), strict=True):
        largest = max(factor.norm(phi) for phi in part)
        # Random records reach no corner of a ball or a box.
        assert largest >= (0.99 if isinstance(domain, Schema) else 0.6) or not factor.size


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_clipping_scales_the_numbers_of_a_record_alone(layout, rng):
    """By the gradient of clipped records, which is that of the same records clipped by hand."""
    X, y = random_table(MIXED, 60, rng), rng.integers(2, size=60)
    objective = LinearObjective(X, y, "logistic", MIXED, layout=layout)
    rows, labels = objective.decoded()
    rows = clipped(rows.toarray() if sp.issparse(rows) else rows, MIXED.numbers, 0.8)
    problem = Problem(objective, Logistic(), 1.5, 0.8)
    S = np.column_stack([rows, np.ones(60)]) @ problem.coding.matrix.toarray().T
    S *= np.where(labels, 1.0, -1.0)[:, None]
    u, tilt = rng.standard_normal((2, problem.size))
    there = problem._at(Dyadic.of(u), Dyadic.of(tilt), 1.0)
    by_hand = 1.5 * u + tilt - (1 / (1 + np.exp(S @ u))) @ S
    assert np.linalg.norm(there.gradient - by_hand) <= there.error + 1e-13
    bend = np.exp(S @ u) / (1 + np.exp(S @ u)) ** 2
    assert np.allclose(
        problem._bent(there, tilt), 1.5 * tilt + S.T @ (bend * (S @ tilt)), rtol=1e-9
    )


# ----------------------------------------------------------------- exact densities on tiny problems

TINY = {
    "three levels": Schema({"c": Categorical(list("abc"))}),
    "number and two levels": Schema({"x": Numeric(0, 1), "c": Categorical(["a", "b"])}),
    "clipped numbers": Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)}),
}


def signed_records(name, intercept=True):
    """All corners of a tiny domain with both labels, coded; and the coding."""
    domain, radius = TINY[name], 0.5 if name == "clipped numbers" else None
    corners = np.array(
        list(itertools.product((0.0, 1.0), repeat=domain.width)) if radius is not None
        else [row for row in itertools.product((0.0, 1.0), repeat=domain.width)
              if all(sum(row[part]) == 1 for part in domain.groups)]
    )  # fmt: skip
    if radius is not None:
        corners = clipped(corners, domain.numbers, radius)
    coding = coding_of(domain, radius, intercept)
    coded = np.column_stack([corners, np.ones(len(corners))]) @ coding.matrix.toarray().T
    return np.vstack([coded, -coded]), coding


def log_densities(tables, records, ridge, beta, shape, U):
    """(tables, models): ln of the density of each minimiser at each u, up to one constant.

    That of b = -grad F(u), times the determinant of the Hessian.
    """
    s = 1 / (1 + np.exp(U @ records.T))
    out = []
    for rows in tables:
        b = -ridge * U + s[:, rows] @ records[list(rows)]
        bends = np.einsum("ur,ri,rj->uij", (s * (1 - s))[:, rows], records[list(rows)],
                          records[list(rows)])  # fmt: skip
        hessians = ridge * np.eye(records.shape[1]) + bends
        norms = np.array([norm_of_rows(shape, b)]).ravel()
        out.append(np.linalg.slogdet(hessians)[1] - beta * norms)
    return np.array(out)


def norm_of_rows(shape, B):
    """The norm of each row, by hand: of contrasts, the least l1 distance to a constant."""
    found, start = np.zeros(len(B)), 0
    for factor in shape.factors:
        part = B[:, start : start + factor.size]
        start += factor.size
        if isinstance(factor, Contrasts):
            v = part @ contrasts(factor.levels)
            norms = np.min(
                [np.abs(v - v[:, [j]]).sum(axis=1) for j in range(factor.levels)], axis=0
            )
        else:
            norms = np.linalg.norm(part, 1 if isinstance(factor, Cross) else math.inf, axis=1)
        found = np.maximum(found, norms / factor.radius)
    return found


def worst_loss(name, ridge, beta, adjacency, intercept=True):
    """The largest log ratio over all neighbours of at most two records, at many models."""
    records, coding = signed_records(name, intercept)
    r = range(len(records))
    tables = [(), *((i,) for i in r), *itertools.combinations_with_replacement(r, 2)]
    generator = np.random.default_rng(0)
    U = np.vstack([generator.standard_normal((400, records.shape[1])) * size
                   for size in (0.3, 1, 3, 10, 30)])  # fmt: skip
    logs = dict(zip(tables, log_densities(tables, records, ridge, beta, coding.shape, U),
                    strict=True))  # fmt: skip
    worst = 0.0
    for one, other in itertools.permutations(tables, 2):
        shorter, longer = sorted((one, other), key=len)
        if len(longer) - len(shorter) == 1:
            near = adjacency == "add_remove" and _within(shorter, longer)
        else:
            near = (
                adjacency == "replace" and len(one) == len(other) and _share_all_but_one(one, other)
            )
        if near:
            worst = max(worst, float((logs[one] - logs[other]).max()))
    return worst


def _within(shorter, longer):
    return any(tuple(sorted((*shorter, i))) == longer for i in set(longer))


def _share_all_but_one(one, other):
    return len(one) == 1 or bool(set(one) & set(other))


@pytest.mark.few(2)
@both
@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize(
    ("epsilon", "ridge", "intercept"),
    [(1.0, 0.5, True), (0.5, 3.0, True), (2.0, 40.0, True), (1.0, 0.5, False), (2.0, 40.0, False)],
)
def test_neighbours_differ_by_epsilon_and_no_more(epsilon, ridge, intercept, name, adjacency):
    """Every pair of neighbours in the domain; twice the rate is caught."""
    beta = tilt_rate(epsilon, ridge, Logistic(), Neighbours(adjacency))
    assert beta > 0
    worst = worst_loss(name, ridge, beta, adjacency, intercept)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst > 0.5 * epsilon  # and the rate is not wasteful
    if ridge >= 3:
        assert worst_loss(name, ridge, 2 * beta, adjacency, intercept) > epsilon


def tiny_problem(rows, ridge):
    """A problem of the tiny schema of three levels, from (level, label)."""
    objective = LinearObjective({"c": [level for level, _ in rows]}, [y for _, y in rows],
                                "logistic", TINY["three levels"])  # fmt: skip
    return Problem(objective, Logistic(), ridge)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_code_draws_from_the_density_of_the_proof():
    """The gradient at a released model is the tilt, whose norm is Gamma(p, 1 / beta)."""
    ridge, shape = 20.0, coding_of(TINY["three levels"]).shape
    rows = [("a", 1), ("a", 1), ("b", 0), ("c", 1)]
    problem, source = tiny_problem(rows, ridge), BitSource(5)
    mechanism = PerturbedMinimiser(2.0, 0.0, ridge, Logistic(), REPLACE, 2.0**-20, 0.01, shape)
    draws = np.array([mechanism(problem, source) for _ in range(400)])
    A = coding_of(TINY["three levels"]).matrix.toarray()
    one_hot = {"a": [1, 0, 0, 1], "b": [0, 1, 0, 1], "c": [0, 0, 1, 1]}
    signed = np.array([(1 if y else -1) * (A @ one_hot[level]) for level, y in rows])
    tilts = -(ridge * draws - (1 / (1 + np.exp(draws @ signed.T))) @ signed)
    norms = norm_of_rows(shape, tilts)
    assert scipy.stats.kstest(norms, scipy.stats.gamma(3, scale=mechanism.scale).cdf).pvalue > RARE
    share = norm_of_rows(shape, np.column_stack([np.zeros((400, 2)), tilts[:, 2]])) / norms
    # The intercept has the largest part of K with probability 1/3: the cone over a face of a cube.
    assert abs((share > 1 - 1e-6).mean() - 1 / 3) < 6 * math.sqrt(2 / 9 / 400)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "finds"), [(1.0, False), (12.0, True)])
def test_audits_find_a_tilt_that_is_too_short_and_no_other(epsilon, finds):
    one, other = tiny_problem([("a", 1)], 4.0), tiny_problem([("b", 0)], 4.0)
    shape = coding_of(TINY["three levels"]).shape
    mechanism = PerturbedMinimiser(epsilon, 0.0, 4.0, Logistic(), REPLACE, 2.0**-16, 0.01, shape)
    found = audit_runs(mechanism, one, other, runs=300, confidence=SURE, rng=3)
    assert found.passes(1.0) is not finds


# -------------------------------------------------------------------------------- fits and the look


def random_table(domain, n, rng):
    return {
        name: rng.choice(column.values, n)
        if isinstance(column, Categorical)
        else rng.uniform(column.low, column.high, n)
        for name, column in domain.columns.items()
    }


def sparse_table(rng, n=4000):
    """Records of many numbers, most of them near zero; the label is one of their sums."""
    X = rng.exponential(0.5, (n, 16)) * (rng.random((n, 16)) < 0.15)
    y = (X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3]).astype(int)
    return {f"x{j}": X[:, j] for j in range(16)} | {"c": rng.choice(list("abc"), n)}, y


@both
def test_a_look_clips_sparse_numbers_and_leaves_others(adjacency, rng):
    """Two pure releases that add up to the budget."""
    X, y = sparse_table(rng)
    dense = {name: 10 - x if name != "c" else x for name, x in X.items()}
    radii = []
    for table in (X, dense):
        ledger = Ledger(1.0)
        model = LogisticRegression(1.0, domain=MANY, classes=[0, 1], solver="objective",
                                   adjacency=adjacency, n_public=4000, ledger=ledger,
                                   random_state=4).fit(table, y)  # fmt: skip
        radii.append(model.release_.settings["radius"])
        assert model.release_.verify()
        assert [event.kind for event in model.release_.events] == ["pure", "pure"]
        assert [event.parameter for event in model.release_.events] == pytest.approx([0.05, 0.95])
        assert sum(event.parameter for event in model.release_.events) <= 1.0
        if radii[-1] is not None:
            assert model.score(table, y) > 0.7  # 1 in 4 has the label 1, 1 in 2 a number at all
    assert radii == [0.25, None]  # of 1/4, 1/2 and 1: the mean l1 norm of a record is 0.12


def test_counts_of_the_look_change_by_one_record(rng):
    X, y = sparse_table(rng, 40)
    objective = LinearObjective(X, y, "logistic", MANY)
    sizes = np.asarray(objective.decoded()[0][:, :16].sum(axis=1)).ravel()
    radii = np.array([sizes.min(), np.median(sizes), 15.0])
    by_hand = [(sizes <= radii[0]).sum(), (sizes <= radii[1]).sum(), 40]
    assert np.cumsum(objective.size_counts(MANY.numbers, radii)).tolist() == [*by_hand, 40]
    seen = []

    class Spy:
        events = ()

        def release(self, mechanism, value, source):
            seen.append(np.array(value))
            return value

    fewer = LinearObjective({k: v[1:] for k, v in X.items()}, y[1:], "logistic", MANY)
    swapped = LinearObjective(
        {k: np.append(v[1:], ["a"] if k == "c" else [10.0]) for k, v in X.items()},
        np.append(y[1:], 1), "logistic", MANY,
    )  # fmt: skip
    for table in (objective, fewer, swapped):
        run = Run(table, Reals(-1, 1, table.n_weights), Spy(), 1)
        objective_perturbation._chosen_radius(run, None)
    assert [counts.sum() for counts in seen] == [40, 39, 40]
    assert np.abs(seen[0] - seen[1]).sum() == ADD_REMOVE.changes
    assert np.abs(seen[0] - seen[2]).sum() == REPLACE.changes


@pytest.mark.parametrize("domain", [MANY, MIXED])
def test_several_classes_share_one_budget(domain, rng):
    n = 600
    X = random_table(domain, n, rng)
    model = LogisticRegression(3.0, domain=domain, classes=[0, 1, 2], solver="objective",
                               random_state=1).fit(X, rng.integers(3, size=n))  # fmt: skip
    assert model.release_.verify()
    spent = {event.parameter: event.count for event in model.release_.events}
    assert set(spent.values()) == {3}
    assert math.isclose(3 * sum(spent), 3.0, rel_tol=1e-9)
    assert len(spent) == (2 if domain is MANY else 1)


def test_a_delta_the_paper_or_a_choice_leave_the_shape_out(rng):
    objective = LinearObjective(*sparse_table(rng, 200), "logistic", MANY, fit_intercept=False)
    cases = [(ObjectivePerturbation(), 1e-6), (ObjectivePerturbation(shaped=False), 0.0),
             (ObjectivePerturbation(paper=True), 0.0)]  # fmt: skip
    for settings, delta in cases:
        assert not settings.fits(Budget(1.0, delta))
        assert not settings.looks(MANY, Budget(1.0, delta))
        grant = Ledger(1.0, delta).reserve(1.0, delta)
        path = settings(Run(objective, Reals(-1, 1, objective.n_weights), grant, 1))
        assert path.notes["radius"] is None
        assert (path.notes["shaped"], path.notes["look"]) == (False, 0.0)  # as it was, not as asked
        assert len(grant.events) == 1
    assert ObjectivePerturbation().looks(MANY, Budget(1.0))
    assert not ObjectivePerturbation(look=0).looks(MANY, Budget(1.0))
    assert ObjectivePerturbation().looks(MANY, Budget(1.0)) == 0.05
    assert not ObjectivePerturbation().looks(MIXED, Budget(1.0))


# ---------------------------------------------------------------------------------- the pure `auto`


def choice(n, epsilon, adjacency="replace", domain=MIXED, declared=True):
    return type(
        auto.choose(n if declared else None, domain, Budget(epsilon), Neighbours(adjacency), 1)
    )


def test_auto_walks_where_records_are_few():
    edge = 20 * coding_of(MIXED).shape.size
    assert choice(edge - 1, 1.0) is Local
    assert choice(edge + 1, 1.0) is ObjectivePerturbation
    assert choice(edge - 1, 1.0, "add_remove") is ObjectivePerturbation
    assert choice(edge // 2 - 1, 1.0, "add_remove") is Local
    assert choice(10 * edge - 10, 0.1) is Local
    assert choice(1, 0.01, declared=False) is ObjectivePerturbation
    assert choice(5 * coding_of(MANY).shape.size + 1, 1.0, domain=MANY) is ObjectivePerturbation


@both
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_auto_says_in_its_release_what_it_took(kind, adjacency, rng):
    X, y = sparse_table(rng, 400)
    plain = {"coding": "declared"} if kind is LogisticRegression else {}
    for epsilon, solver in ((1.0, "objective"), (0.01, "local")):
        model = kind(epsilon, domain=MANY, classes=[0, 1], adjacency=adjacency, n_public=400,
                     random_state=0, **plain).fit(X, y)  # fmt: skip
        assert model.release_.settings["solver"] == solver
        assert model.release_.verify()
        assert model.release_.epsilon == epsilon
    shared = kind(1.0, domain=MANY, classes=[0, 1, 2], n_public=100, random_state=0, **plain)
    shared.fit(X, y)
    assert shared.release_.settings["solver"] == "local"  # 100 / 3 records at the budget of each


# ----------------------------------------------------------------------------------------- refusals


def test_a_look_leaves_a_budget_for_the_fit():
    with pytest.raises(ValueError, match=r"look \(1\) must be below 1: the fit needs a budget"):
        ObjectivePerturbation(look=1)
    with pytest.raises(ValueError, match=r"look \(-0.1\) must lie in \[0, 1\]; leave it out"):
        ObjectivePerturbation(look=-0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"epsilon": math.inf}, r"epsilon \(inf\) is for the plain"),
     ({"epsilon": -1.0}, "epsilon"), ({"epsilon": "1"}, "epsilon"),
     ({"n_public": 0}, r"n_public \(0\) must be a positive whole number"),
     ({"adjacency": "swap"}, r"adjacency \('swap'\) must be 'replace'")],
)  # fmt: skip
def test_auto_refuses_before_it_charges(wrong, message, rng):
    X, y = sparse_table(rng, 60)
    ledger = Ledger(5.0)
    model = LogisticRegression(**{"epsilon": 1.0, "domain": MANY, "classes": [0, 1],
                                  "ledger": ledger, **wrong})  # fmt: skip
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert ledger.entries == ()
