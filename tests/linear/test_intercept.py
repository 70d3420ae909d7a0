"""Linear models without an intercept: records are x, not (x, 1), in every solver and everywhere."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DOMAINS, LOSSES, case, encoded, extreme_rows, labels, packed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PlainLogistic

import privfit
from privfit import (
    DPSGA,
    EEM,
    Box,
    Categorical,
    FrankWolfe,
    Gradient,
    Gupt,
    L1Ball,
    L2Ball,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    PermutedSGD,
    PrivGene,
    Reals,
    Schema,
    SelectRefine,
    Stream,
    Subsample,
)
from privfit.audit import paired
from privfit.domains import Grid
from privfit.estimators import linear
from privfit.linear.functional import sensitivities
from privfit.models.model import dumps, loads
from privfit.objectives.clipping import ClippedGradient, SecondMoments
from privfit.objectives.coding import Broad, Centred, Coding, Compact
from privfit.privacy.neighbours import Neighbours

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

SHORT: dict[str, Any] = {
    "auto": "auto",
    "local": Local(generations=6),
    "local, by loss": Local(scoring="loss", generations=6),
    "eem": EEM(generations=6, population=30),
    "privgene": PrivGene(generations=3, population=30, survivors=5),
    "dpsga": DPSGA(generations=3, population=30, survivors=5),
    "subsample": Subsample(candidates=100),
    "gradient": Gradient(steps=4),
    "frank_wolfe": FrankWolfe(steps=8),
    "sgd": PermutedSGD(passes=2),
    "select_refine": SelectRefine(select=Local(generations=4)),
    "output": "output",
    "objective": "objective",
    "privatesvm": "privatesvm",
    "functional": "functional",
    "gupt": Gupt(blocks=5),
}
TINY = Grid(a=2, b=8, c=0)
SMALL = {
    "box": Box([-1, 0], [1, 3], grid=TINY),
    "far box": Box([6], [7], grid=Grid(a=4, b=8, c=0)),
    "l1": L1Ball(1.0, 2, grid=TINY),
    "l2": L2Ball(1.0, 2, grid=TINY),
    "schema": Schema(
        {"sex": Categorical(["f", "m"]), "age": Numeric(0, 1), "job": Categorical("abc")}, grid=TINY
    ),
    "numbers": Schema({"a": Numeric(0, 1), "b": Numeric(0, 4)}, grid=TINY),
}
FAR = ("far box", "replace")  # whose records are all alike, which bounds by size do not see
CODINGS = (Centred, Coding, Compact, Broad)


def every_record(domain: Any) -> tuple[np.ndarray, Any]:
    """All records of a small domain: their integers, and what one passes."""
    whole = np.array(reference.every_record(domain))
    if not isinstance(domain, Schema):
        return whole, whole * domain.record_units()
    names = ["fm", None, "abc"] if len(domain.columns) == 3 else [None, None]
    rows = []
    for x in whole:
        row: list[Any] = []
        at = iter(x)
        for levels, column in zip(names, domain.columns.values(), strict=True):
            if levels is None:
                row.append(next(at) / 4 * column.high)
            else:
                row.append(levels[[next(at) for _ in levels].index(4)])
        rows.append(row)
    return whole, np.array(rows, dtype=object)


def coded(kind: type[Any], domain: Any, whole: np.ndarray) -> np.ndarray:
    """The twin: coded records without an intercept, in units of 2^-(a + 2).

    An integer x stands for x 2^(e - a), so that x / 2^(e + 1) is 2 x units.
    """
    factor = np.full(domain.width, 4 if kind is Broad else 2)
    for group in getattr(domain, "groups", []):
        factor[group] = 4 if kind is Coding else 2
    return whole * factor


# ---------------------------------------------------------------------------------------- objective


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("name", "layout"),  # zero is no record of the box per column: it has no sparse layout
    [(name, layout) for name in DOMAINS for layout in ("dense", "sparse")
     if (name, layout) != ("box per column", "sparse")],
)  # fmt: skip
@pytest.mark.parametrize("loss", LOSSES)
def test_no_intercept_scores_as_an_intercept_of_0(name, loss, layout, rng):
    made = case(name)
    rows, y = made.rows(rng, 70), labels(rng, 70)
    declared = {"loss": loss, "domain": made.domain, "layout": layout}
    without = LinearObjective(rows, y, fit_intercept=False, **declared)
    with_one = LinearObjective(rows, y, **declared)
    d = made.domain.width
    Q = made.domain.candidates(12, rng, 2.0)
    Q[:, -1] = 0.0
    P = Q[:, :d]
    assert without.n_weights == d == with_one.n_weights - 1
    assert np.array_equal(without.candidate_units, with_one.candidate_units[:d])
    assert np.array_equal(without.scores(P), with_one.scores(Q))
    assert np.array_equal(without.prior(P), with_one.prior(Q))
    coords, steps = np.arange(d), without.candidate_units * 3
    view, other = without.at(P[0]), with_one.at(Q[0])
    for _ in range(2):
        assert np.array_equal(view.scores(coords, steps), other.scores(coords, steps))
        assert np.array_equal(view.prior(coords, steps), other.prior(coords, steps))
        assert np.array_equal(view.candidates(coords, steps),
                              other.candidates(coords, steps)[:, :d])  # fmt: skip
        view.step(d - 1, steps[-1])
        other.step(d - 1, steps[-1])
        assert np.array_equal(view.w, other.w[:d])
    for adjacency in ADJACENCIES:
        assert without.range(P, adjacency) == with_one.range(Q, adjacency)
        assert without.spread(P, adjacency) == with_one.spread(Q, adjacency)
        assert view.range(coords, steps, adjacency) == other.range(coords, steps, adjacency)
    if loss != "zero_one":
        assert np.array_equal(without.gradient(P[1], 0.5), with_one.gradient(Q[1], 0.5)[:d])
        follow, after = without.followed_gradient, with_one.followed_gradient
        for w, v in zip(P, Q, strict=True):
            assert np.array_equal(follow(w, 100), after(v, 100)[:d])


@pytest.mark.few(2)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", SMALL)
def test_no_record_changes_scores_of_two_candidates_by_more_than_the_range(name, loss, rng):
    domain = SMALL[name]
    _, rows = every_record(domain)
    P = np.vstack([domain.candidates(3, rng, 2.0)[:, :-1], np.zeros((1, domain.width))])
    one = np.array([
        LinearObjective(rows[[i]], [y], loss, domain, fit_intercept=False).scores(P)
        for i in range(len(rows)) for y in (0, 1)
    ])  # fmt: skip
    gaps = one[:, :, None] - one[:, None]  # (records, candidates, candidates)
    objective = LinearObjective(rows[:2], [0, 1], loss, domain, fit_intercept=False)
    assert np.abs(gaps).max() <= objective.range(P, "add_remove")
    assert (gaps.max(axis=0) - gaps.min(axis=0)).max() <= objective.range(P, "replace")
    ends = objective.gradient_range(0.5, "add_remove") / 2
    found = [
        np.abs(LinearObjective(rows[[i]], [1], loss, domain, fit_intercept=False)
               .gradient(P[-1], 0.5)).max()
        for i in range(len(rows))
    ]  # fmt: skip
    assert 0 < max(found) <= ends


# ------------------------------------------------------------------------------------------ codings


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", CODINGS)
@pytest.mark.parametrize("name", DOMAINS)
def test_codings_keep_zero_and_their_sums_are_exact(name, kind, rng):
    made = case(name)
    coding, d = kind(made.domain, intercept=False), made.domain.width
    for rows in (made.rows(rng, 40), extreme_rows(name)):
        objective = LinearObjective(rows, y := labels(rng, len(rows)), domain=made.domain,
                                    fit_intercept=False)  # fmt: skip
        U = coded(kind, made.domain, encoded(made.domain, rows))
        sign = np.where(y > 0, 1, -1)
        first = objective.gradient(np.zeros(d), 2.0**-12)  # every slope is cut to one unit
        assert np.array_equal(coding.gradient(first), sign @ U)
        if kind is Centred:
            assert np.abs(U).max() <= coding.largest
            continue
        assert coding.width == d
        assert not coding.columns[1].any()
        assert np.array_equal(coding.moments(objective.second_moments()), U.T @ U)
        assert (np.abs(U).max(axis=0) <= coding.reach).all()
        for order in (1, 2):
            assert np.linalg.norm(U * coding.unit, order, axis=1).max() <= coding.longest(order)
    assert kind is Centred or np.array_equal(np.abs(U).max(axis=0), coding.reach)
    u = rng.uniform(-3, 3, (5, d))
    w = coding.weights(u)
    assert np.abs(coding.positions(w) - u).max() < 0.01
    margins = encoded(made.domain, rows) * made.domain.record_units() @ w.T
    by_hand = U * 2.0 ** -(made.domain.grid.a + 2) @ coding.positions(w).T
    assert np.allclose(margins, by_hand, atol=1e-9 * np.abs(margins).max())


def largest_changes(table: np.ndarray, order: int) -> dict[str, float]:
    gaps = table[:, None] - table
    return {
        "replace": float(np.linalg.norm(gaps, order, axis=2).max()),
        "add_remove": float(np.linalg.norm(table, order, axis=1).max()),
    }


@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_second_moments_further_than_the_sensitivity(name):
    domain = SMALL[name]
    whole, rows = every_record(domain)
    objective = LinearObjective(rows[:1], [1], domain=domain, fit_intercept=False)
    for kind in (Coding, Broad):
        U = coded(kind, domain, whole).astype(float)
        places = np.triu_indices(domain.width)
        found = largest_changes(np.einsum("ni,nj->nij", U, U)[:, places[0], places[1]], 2)
        moments = SecondMoments(objective, kind(domain, intercept=False))
        for adjacency in ADJACENCIES:
            bound = moments.sensitivity(Neighbours(adjacency))
            assert found[adjacency] <= bound
            assert found[adjacency] >= 0.7 * bound or (name, adjacency) == FAR


@pytest.mark.few(1)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_a_gradient_further_than_the_sensitivity(name, order, rng):
    domain = SMALL[name]
    _, rows = every_record(domain)
    coding, k = Coding(domain, intercept=False), domain.width
    tight = 0.0
    for clip, trial in ((0.05, 0), (0.4, 1), (1e9, 2)):
        R = rng.normal(size=(k, k)) * rng.lognormal(size=k) if trial else np.eye(k)
        w = coding.weights(rng.normal(size=k))

        def sums(numbers: Any, y: Any, R: Any = R, clip: float = clip, w: Any = w) -> Any:
            objective = LinearObjective(rows[numbers], y, domain=domain, fit_intercept=False)
            clipped = ClippedGradient(objective, coding, R, clip, order)
            return clipped.sums(w), clipped

        others, clipped = sums([0], [1])
        moved = [sums([0, i], [1, y])[0] - others for i in range(len(rows)) for y in (0, 1)]
        for adjacency, found in largest_changes(np.array(moved, dtype=float), order).items():
            assert found <= clipped.sensitivity(Neighbours(adjacency))
            tight = max(tight, found / clipped.sensitivity(Neighbours(adjacency)))
    assert tight > 0.6


@pytest.mark.parametrize("A", [1, 3, 20])
@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_functional_coefficients_further_than_the_sensitivity(name, A):
    domain = SMALL[name]
    U = coded(Compact, domain, every_record(domain)[0]).astype(float)
    places = np.triu_indices(domain.width)
    quadratic = np.einsum("ni,nj->nij", U, U)[:, places[0], places[1]]
    rows = np.vstack([np.column_stack([s * A * U, quadratic]) for s in (1, -1)])
    for adjacency in ADJACENCIES:
        l1, l2 = sensitivities(domain, Compact(domain, intercept=False), A, Neighbours(adjacency))
        for order, bound in ((1, l1), (2, l2)):
            found = largest_changes(rows, order)[adjacency]
            assert found <= bound
            assert found >= 0.5 * bound or (name, adjacency) == FAR


# --------------------------------------------------------------------------------------- estimators

PLACES = {
    "box": (-1, 1),
    "ball": L2Ball(2.0),
    "far": Box([2020.0, -1.0, -1.0], [2025.0, 1.0, 1.0]),
    "schema": Schema({"a": Numeric(-1, 1), "b": Categorical("xyz"), "c": Numeric(0, 5)}),
}


def people(name: str, n: int = 400) -> tuple[Any, Any]:
    coins = np.random.default_rng(3)
    X = coins.uniform(-1, 1, (n, 3))
    y = (X[:, 1] > X[:, 2]).astype(int)
    if name == "far":
        X[:, 0] += 2022
    if name == "schema":
        kinds = np.array(list("xyz"))[np.digitize(X[:, 1], [-0.3, 0.3])]
        return {"a": X[:, 0], "b": kinds, "c": X[:, 2] + 1}, y
    return X, y


def kinds_for(solver: str) -> list[Any]:
    return [kind for kind, unfit in ((LogisticRegression, "privatesvm"), (LinearSVC, "functional"))
            if solver != unfit]  # fmt: skip


def model_of(kind: Any, solver: str, domain: Any, **more: Any) -> Any:
    return kind(
        1.0, 1e-6, domain=domain, classes=[0, 1], solver=SHORT[solver], fit_intercept=False,
        random_state=5, **more,
    )  # fmt: skip


def test_every_solver_is_tried():
    refused = {"majority", "additive", "evidence"}  # without an intercept
    assert set(linear.METHODS) - refused <= set(SHORT)


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", SHORT)
def test_every_solver_fits_weights_alone(solver):
    for kind, (name, domain), adjacency in itertools.product(
        kinds_for(solver), PLACES.items(), ADJACENCIES
    ):
        X, y = people(name)
        model = model_of(kind, solver, domain, adjacency=adjacency, n_public=400).fit(X, y)
        assert model.intercept_.tolist() == [0.0]
        assert model.coef_.any()
        assert model.release_.settings["fit_intercept"] is False
        assert model.release_.verify()
        assert "origin" not in model.release_.settings  # nothing would make up for it
        if not isinstance(domain, Schema):
            assert model.predict(np.zeros((1, 3))).tolist() in ([0], [1])
        again = loads(dumps(model))
        assert again.fit_intercept is False
        assert np.array_equal(again.decision_function(X), model.decision_function(X))


ORDERED = {name for name, kind in linear.METHODS.items() if kind.needs_order}


@pytest.mark.few(2)
@pytest.mark.parametrize("solver", sorted(set(SHORT) - ORDERED))
@pytest.mark.parametrize("name", ["ball", "schema"])
def test_streams_release_what_memory_does(name, solver, tmp_path):
    X, y = people(name)
    stream, label = Stream(X) if name == "ball" else None, y
    if stream is None:
        rows = zip(*X.values(), y.tolist(), strict=True)
        lines = [",".join([*X, "y"]), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
        stream, label = Stream(tmp_path / "people.csv"), "y"
    for kind in kinds_for(solver):
        model = model_of(kind, solver, PLACES[name])
        once = model.fit(X, y).release_.to_json()
        assert model.fit(stream, label).release_.to_json() == once


def test_several_classes_have_no_intercept():
    X, _ = people("box")
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1, 2], fit_intercept=False)
    model.fit(X, y)
    assert model.intercept_.tolist() == [0.0] * 3
    assert model.coef_.shape == (3, 3)


def test_the_parameter_is_scikit_learns():
    for kind in (LogisticRegression, LinearSVC):
        assert kind().get_params()["fit_intercept"] is True
        assert clone(kind(fit_intercept=False)).fit_intercept is False
        assert kind().set_params(fit_intercept=False).fit_intercept is False


def test_fits_through_the_origin_are_those_of_scikit_learn():
    """With a budget that leaves no noise: the same minimiser of the same sum of losses."""
    X, y = people("ball", 3000)
    X /= 2 * np.linalg.norm(X, axis=1).max()
    y = y ^ (np.random.default_rng(1).random(3000) < 0.2)
    model = LogisticRegression(
        1e6, domain=L2Ball(0.5), classes=[0, 1], fit_intercept=False, random_state=1,
        solver=ObjectivePerturbation(regularisation=2.0),
    ).fit(X, y)  # fmt: skip
    # The coded record is x / radius, so that coded weights are w radius.
    plain = PlainLogistic(C=1 / (2.0 * 0.5**2), fit_intercept=False, tol=1e-10).fit(X, y)
    assert np.abs(model.coef_ - plain.coef_).max() < 0.01 * np.abs(plain.coef_).max()


def test_a_model_file_with_another_intercept_is_refused():
    X, y = people("box")
    held = json.loads(dumps(model_of(LogisticRegression, "local", (-1, 1)).fit(X, y)))
    held["release"]["parameters"]["intercept"] = [0.5]
    with pytest.raises(ValueError, match="intercept must be 0 if none was fitted"):
        loads(json.dumps(held))
    held["release"]["parameters"]["intercept"] = [0.0]
    held["parameters"]["fit_intercept"] = True
    with pytest.raises(ValueError, match=r"fit_intercept \(True\) must be what the release says"):
        loads(json.dumps(held))


def test_searches_take_as_many_weights_as_columns():
    X, y = people("box")
    objective = LinearObjective(X, y, "zero_one", Box(-1, 1), fit_intercept=False)
    found = privfit.search(objective, Reals(-1, 1, 3), 1.0, solver=DPSGA(3), random_state=1)
    assert found.answer.shape == (3,)
    with pytest.raises(ValueError, match=r"candidates \(shape \(4,\)\) must have the shape"):
        privfit.search(objective, Reals(-1, 1, 4), 1.0, solver=DPSGA(3), random_state=1)


REFUSED = {
    "majority": ({"solver": "majority"}, "majority releases only an intercept; pass fit"),
    "gupt": ({"solver": Gupt(estimator=PlainLogistic(), blocks=5)},
             "estimator must not fit an intercept, which the model does not have; pass one with"),
    "gradient": ({"solver": "gradient", "delta": 1e-6, "adjacency": "add_remove"},
                 "unless the descent is whitened and fits an intercept; pass a public estimate"),
    "select_refine": ({"solver": SHORT["select_refine"], "delta": 1e-6, "adjacency": "add_remove"},
               "if no intercept is fitted, whose moments would reveal the number of records"),
    "zeros": ({"solver": "output", "domain": (0, 0)},
              "domain must have a column that is not 0 for all records if no intercept is"),
    "neither": ({"fit_intercept": "no"}, r"fit_intercept \('no'\) must be True or False; pass one"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_intercept_is_refused_before_the_charge(name):
    settings, message = REFUSED[name]
    ledger, (X, y) = Ledger(1.0, 1e-6), people("box")
    declared = {"domain": (-1, 1), "classes": [0, 1], "fit_intercept": False, **settings}
    with pytest.raises(ValueError, match=message):
        LogisticRegression(1.0, ledger=ledger, **declared).fit(X, y)
    assert not ledger.entries


def test_wrong_candidates_are_refused(rng):
    objective = LinearObjective(*people("box"), domain=Box(-1, 1), fit_intercept=False)
    with pytest.raises(
        ValueError, match=r"must have 3 columns; pass candidates \(m, d\), no inter"
    ):
        objective.scores(np.zeros((1, 4)))
    with pytest.raises(ValueError, match=r"coords must lie in 0..2, an intercept last; pass"):
        objective.at(np.zeros(3)).scores([3], [0.0])


# ------------------------------------------------------------------------------------------- audits


def run_with(intercept: bool, solver: str) -> Any:
    def run(table: Any, ledger: Any, random_state: Any) -> Any:
        model = LogisticRegression(
            1.0, 0.0, domain=L2Ball(1.0), classes=[0, 1], solver=SHORT[solver], ledger=ledger,
            fit_intercept=intercept, random_state=random_state, n_threads=1,
        )  # fmt: skip
        return model.fit(*table)

    return run


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", ["objective", "local", "functional"])
def test_an_audit_finds_records_beyond_what_ranges_were_derived_for(solver, monkeypatch):
    """Planted: records three times as long. Right code passes on the same pair."""
    base = [[0.0, 0.0]] * 12
    first = np.array([*base, [1.0, 0.0]]), np.array([0, 1] * 6 + [1])
    second = np.array([*base, [-1.0, 0.0]]), np.array([0, 1] * 6 + [1])
    assert paired(run_with(False, solver), first, second).passes()
    assert paired(run_with(True, solver), first, second).passes()
    right = LinearObjective.__init__

    def wider(self: Any, X: Any, *rest: Any, **more: Any) -> None:
        right(self, X, *rest, **more)
        packed(self).records.panels[:] *= 3

    monkeypatch.setattr(LinearObjective, "__init__", wider)
    assert not paired(run_with(False, solver), first, second).passes()
