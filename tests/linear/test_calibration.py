"""Calibrated probabilities: the sums, what they cost, and what they are good for."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
import reference
import scipy
from makers.cases import ADJACENCIES, DOMAINS, case, labels

from privfit import (
    DPSGA,
    Box,
    Budget,
    Gradient,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivGene,
    SelectRefine,
    Stream,
)
from privfit.audit import paired
from privfit.linear import calibration
from privfit.linear.calibration import (
    FAR,
    FINE,
    REACH,
    UNITS,
    Facts,
    Prior,
    histogram_of,
    prior_of,
    table_of,
)
from privfit.models.model import dumps, loads
from privfit.privacy.accounting import compose
from privfit.privacy.neighbours import Neighbours
from privfit.records import memory

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

PLACES = (((0.75, 0.0), (1.0, 1.0)), ((3.0, -2.0), (1.0, 0.25)), ((20.0, 10.0), (0.5, 1.0)))


def odds(n: int = 4000, seed: int = 0, steep: float = 4.0) -> tuple[Any, Any]:
    """Records in a box, and labels whose log odds are linear."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    chance = 1 / (1 + np.exp(-steep * (X[:, 0] - X[:, 1] + 0.2)))
    return X, (rng.random(n) < chance).astype(int)


def log_loss(model: Any, X: Any, y: Any) -> float:
    return float(-np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())


def model(kind: Any = LogisticRegression, epsilon: float = 1.0, delta: float = 1e-6, **more: Any):
    return kind(epsilon, delta, **{
        "domain": (-1, 1), "classes": [0, 1], "calibrate": True, "random_state": 3, **more,
    })  # fmt: skip


# ---------------------------------------------------------------------------------------- the sums


@pytest.mark.parametrize("layout", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("name", DOMAINS)
def test_margins_are_counted_like_the_naive_twin(name, layout, rng):
    one = case(name)
    X, y = one.rows(rng, 60), labels(rng, 60)
    objective = LinearObjective(X, y, domain=one.domain, layout=layout)
    w = rng.normal(size=objective.n_weights) / np.append(objective._largest_record[:-1], 1.0)
    units = [Fraction(float(unit)) for unit in objective.domain.record_units()]
    counts = np.zeros((2, 2 * REACH + 1), dtype=np.int64)
    for x, label in zip(reference.records(X, one.domain), y, strict=True):
        real = [xj * unit for xj, unit in zip(x, units, strict=True)]
        counts[label, REACH + reference.margin_cell(real, w.tolist(), FINE, REACH)] += 1
    np.testing.assert_array_equal(objective.margin_counts(w, FINE, REACH), counts)


@pytest.mark.parametrize("low", [0.0, 1000.0, -2025.0])
def test_margins_of_centred_records_are_those_of_the_records_themselves(low, rng):
    X, y = rng.uniform(low, low + 1, (300, 2)), labels(rng, 300)
    w = np.array([3.0, -2.0, 0.0])
    w[-1] = -w[:-1] @ [low + 0.5, low + 0.5]
    domain = Box(low, low + 1, 2).centred()
    counts = LinearObjective(X, y, domain=domain).margin_counts(w, FINE, REACH)
    cells = np.rint((domain.rounded(X) @ w[:-1] + w[-1]) * 2.0**FINE).astype(int)
    meant = np.zeros_like(counts)
    np.add.at(meant, (y, REACH + cells), 1)
    moved = np.abs(np.cumsum(counts - meant, axis=1)).max()
    assert moved <= 3  # of 300 records, those whose margin is half way between two cells


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_boxes_far_from_zero_stay_as_accurate(delta):
    rng = np.random.default_rng(0)
    X = rng.uniform(1000, 1001, (20_000, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    fitted = model(delta=delta, domain=Box(1000, 1001, 2), solver=OutputPerturbation(100)).fit(X, y)
    before = X @ fitted.path_.answer[:-1] + fitted.path_.answer[-1] > 0
    assert (fitted.predict(X) == y).mean() > (before == y).mean() - 0.02


def test_weights_beyond_every_margin_count_at_the_ends():
    X, y = odds(50)
    objective = LinearObjective(X, y, domain=Box(-1, 1))
    counts = objective.margin_counts(np.array([1e200, 0.0, 0.0, 0.0]), FINE, REACH)
    assert counts[:, [0, -1]].sum() == 50


@pytest.mark.parametrize(("at", "weights"), PLACES)
def test_the_table_is_the_naive_twin_truncated(at, weights):
    table = table_of(np.array(at), weights)
    for label, cell in itertools.product((0, 1), range(-REACH, REACH + 1, 29)):
        row = reference.calibration_row(cell, label, *at, weights[label], FINE)
        for got, meant in zip(table[label, REACH + cell].tolist(), row, strict=True):
            assert abs(got) <= abs(meant) + 1e-6
            assert abs(got - meant) < 1 + 1e-6


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("at", "weights"), PLACES)
def test_sensitivities_are_those_of_all_pairs_of_rows(at, weights, adjacency):
    table, neighbours = table_of(np.array(at), weights), Neighbours(adjacency)
    claimed = calibration.table_sensitivity(table, neighbours)
    assert claimed <= neighbours.changes * UNITS * (1 + 1e-9)
    rows = [*table.reshape(-1, 6).tolist()[::37], table[0, -1].tolist(), table[1, 0].tolist()]
    empty = [[0] * 6] if adjacency == "add_remove" else rows
    longest = max(math.dist(one, other) for one in rows for other in empty)
    assert longest <= claimed
    assert adjacency == "replace" or longest > 0.99 * claimed


def test_curvatures_cost_nothing_beside_residuals():
    """r^2 + 4 h^2 (1 + v^2) <= 1 with r = sigma(v), h = r (1 - r), for all v.

    Up to v = 4 by intervals. Beyond, 1 - r^2 >= q (2 - q) and 4 h^2 (1 + v^2) <= 4 q^2 (1 + v^2)
    with q = 1 - r < e^-v, and 4 e^-v (1 + v^2) < 2 - e^-v at 4, from where on it falls.
    For -v instead of v the residual is smaller and h the same.
    """
    v = np.arange(400_001) / 100_000
    r = 1 / (1 + np.exp(-v))
    squared = r**2 + 4 * (r * (1 - r)) ** 2 * (1 + v**2)
    assert squared.max() < 0.999  # its slope is below 10: between steps it gains 1e-4
    assert np.abs(np.diff(squared)).max() < 1e-4
    q = math.exp(-4)
    assert 4 * q * (1 + 4**2) < 2 - q
    falls = 4 * np.exp(-v) * (2 * v - 1 - v**2)  # the slope of 4 e^-v (1 + v^2)
    assert falls.max() <= 0


def test_the_histogram_has_every_record_once(rng):
    counts = rng.integers(0, 9, (2, 2 * REACH + 1))
    cells = histogram_of(counts)
    assert cells.shape == (2, 2 * FAR)
    np.testing.assert_array_equal(cells.sum(axis=1), counts.sum(axis=1))
    assert cells[0, FAR - 1] == counts[0, REACH - (1 << FINE) : REACH].sum()


# ----------------------------------------------------------------------------------- what it costs

SOLVERS = ("auto", Gradient(steps=4), Local(generations=6), PrivGene(generations=3, population=20),
           DPSGA(generations=3, population=20), ObjectivePerturbation(),
           SelectRefine(select=Local(generations=4), refine=Gradient(steps=4, whiten=True)),
           )  # fmt: skip


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solver_and_calibration_cost_the_budget_together(solver, delta, adjacency):
    if isinstance(solver, SelectRefine) and not delta:
        solver = Local(scoring="loss", generations=4)
    X, y = odds(500)
    ledger = Ledger(1.0, delta)
    fitted = model(delta=delta, solver=solver, adjacency=adjacency, n_public=500, ledger=ledger)
    release = fitted.fit(X, y).release_
    assert (release.epsilon, release.delta) == (1.0, delta) == (
        ledger.spent.epsilon, ledger.spent.delta)  # fmt: skip
    assert compose(release.events, delta) <= 1.0
    bought = release.settings["calibration"]
    assert bought["share"] == 0.04
    path = fitted.path_.answer
    np.testing.assert_allclose(fitted.coef_[0], bought["slope"][0] * path[:-1], rtol=1e-12)
    np.testing.assert_allclose(
        fitted.intercept_[0], bought["slope"][0] * path[-1] + bought["intercept"][0], rtol=1e-9
    )


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e5])
@pytest.mark.parametrize("delta", [0.0, 1e-12])
@pytest.mark.parametrize("solver", [Local(generations=4), ObjectivePerturbation()], ids=str)
def test_no_budget_ends_a_fit_that_was_charged(solver, delta, epsilon):
    X, y = odds(100)
    fitted = model(epsilon=epsilon, delta=delta, solver=solver, classes=[0, 1, 2]).fit(X, y)
    assert compose(fitted.release_.events, delta) <= epsilon
    if delta and epsilon < 1e-7:  # nothing is left to spend
        assert fitted.release_.settings["calibration"]["slope"] == [1.0] * 3


def fits(adjacency: str, delta: float, classes: int = 2) -> Any:
    def run(table: Any, ledger: Any, random_state: Any) -> Any:
        return model(
            delta=delta, adjacency=adjacency, solver=Local(generations=4), n_public=41,
            ledger=ledger, random_state=random_state, classes=[*range(classes)], n_threads=1,
        ).fit(*table)  # fmt: skip

    return run


def neighbours(adjacency: str, classes: int = 2) -> list[tuple[Any, Any]]:
    """A table with one record more, or with another record, at the corners of the box."""
    X, y = odds(40, 1, steep=40.0)
    y = (y + np.arange(40) % (classes - 1)) if classes > 2 else y
    corners = [np.array([a, b, 0.0]) for a, b in ((1, -1), (-1, 1), (1, 1))]
    extremes = list(itertools.product(corners, range(classes)))
    whole = [(np.vstack([X, x]), np.append(y, label)) for x, label in extremes]
    if adjacency == "add_remove":
        return [((X, y), one) for one in whole]
    return list(itertools.combinations(whole, 2))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_an_audit_of_neighbours_finds_nothing(adjacency, delta, classes):
    for first, second in neighbours(adjacency, classes)[:8]:
        assert paired(fits(adjacency, delta, classes), first, second).passes()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_audit_finds_noise_that_is_too_small(adjacency, delta):
    """Sums that move twice as far as is claimed: a model that is sure, and a record against it."""
    honest = calibration.table_sensitivity
    faults: dict[str, Any] = {
        "table_sensitivity": lambda *given: honest(*given) / 2,
        "histogram_of": lambda counts: 2 * histogram_of(counts),
    }
    prior = calibration.Prior(5.0, 0.1, 0.1)  # steep scores: slopes of almost 1
    with (
        mock.patch.multiple(calibration, **faults),
        mock.patch("privfit.linear.fitting.prior_of", return_value=prior),
    ):
        found = [paired(fits(adjacency, delta), *pair) for pair in neighbours(adjacency)]
    assert not all(one.passes() for one in found)
    assert max(one.strain for one in found) > 1.2


# ----------------------------------------------------------------------------------- what it is for


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_probabilities_become_honest(delta):
    (X, y), (fresh, truth) = odds(20_000), odds(20_000, seed=1)
    given = {"delta": delta, "epsilon": 2.0, "solver": Gradient(steps=20), "n_public": 20_000}
    before = log_loss(model(calibrate=False, **given).fit(X, y), fresh, truth)
    after = log_loss(model(**given).fit(X, y), fresh, truth)
    best = log_loss(model(epsilon=1e4, solver=ObjectivePerturbation(), calibrate=False).fit(X, y),
                    fresh, truth)  # fmt: skip
    assert after - best < 0.2 * (before - best)


def test_without_privacy_to_speak_of_low_and_high_scores_have_residuals_of_zero():
    """The slope and the intercept solve sum r u = 0, which is not the likelihood's equation."""
    X, y = odds(20_000)
    fitted = model(epsilon=500.0, solver=Gradient(steps=10)).fit(X, y)
    z = np.clip(X @ fitted.path_.answer[:-1] + fitted.path_.answer[-1], -6, 6)
    turned = np.clip((z + 2) / 4, 0, 1)
    u = np.stack([1 - turned, turned]) / np.hypot(1 - turned, turned)
    exact = scipy.optimize.root(
        lambda at: u @ (y - scipy.special.expit(at[0] * z + at[1])), [1.0, 0.0]
    ).x
    bought = fitted.release_.settings["calibration"]
    assert abs(bought["slope"][0] - exact[0]) < 0.02
    assert abs(bought["intercept"][0] - exact[1]) < 0.03


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("prior", [Prior(0.75, 0.25, 0.2), Prior(1.1, 0.5, 0.3)], ids=str)
def test_sums_that_are_noise_leave_the_prior(prior, adjacency):
    """Of 50 records at a hundredth of a budget; noise that were taken for curvature would show."""
    z = np.random.default_rng(2).normal(0, 100, 50).astype(int)
    counts = np.zeros((2, 2 * REACH + 1), dtype=np.int64)
    np.add.at(counts, (np.arange(50) % 2, REACH + z), 1)
    rng = np.random.default_rng(3)
    account = mock.Mock()
    account.release = lambda noise, sums: sums + rng.normal(0, math.sqrt(noise.variance), 6)
    given = (account, counts, 1e-3, prior, Neighbours(adjacency), calibration.NO_WEIGHTS)
    found = np.array([calibration._by_steps(*given) for _ in range(200)])
    spread = np.sqrt(np.square(found - [prior.slope, 0.0]).mean(axis=0))
    assert (spread < [prior.slope_error / 2, prior.intercept_error / 2]).all()
    assert found[:, 0].min() > prior.slope / 4


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_stream_gives_the_same_bits(delta, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(memory, "PACKED_BLOCK", 1)
    X, y = odds(700)
    for kind in (LogisticRegression, LinearSVC):
        given = {"kind": kind, "delta": delta, "solver": Local(generations=5)}
        one, other = model(**given).fit(X, y), model(**given).fit(Stream(X), y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.release_.settings["calibration"] == other.release_.settings["calibration"]


def test_several_classes_are_calibrated_one_by_one():
    X, y = odds(3000)
    y = y + (X[:, 2] > 0.5) * (1 - y) * 2
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    bought = fitted.release_.settings["calibration"]
    assert len(bought["slope"]) == len(bought["intercept"]) == 3
    assert compose(fitted.release_.events, 1e-6) <= 1.0
    np.testing.assert_allclose(fitted.predict_proba(X[:9]).sum(axis=1), 1.0)


def test_a_model_without_an_intercept_keeps_none():
    X, y = odds(3000)
    fitted = model(fit_intercept=False).fit(X, y)
    assert fitted.intercept_.tolist() == [0.0]
    assert fitted.release_.settings["calibration"]["intercept"] == [0.0]


def test_a_support_vector_machine_gets_probabilities():
    (X, y), (fresh, truth) = odds(20_000), odds(20_000, seed=1)
    plain = model(LinearSVC, calibrate=False).fit(X, y)
    with pytest.raises(AttributeError) as caught:
        plain.predict_proba(fresh)
    assert "needs calibrated scores; pass calibrate=True, and fit again" in str(
        caught.value.__cause__
    )
    with pytest.raises(ValueError, match="predict_proba needs calibrated scores; pass calibrate"):
        plain.set_params(calibrate=True).predict_proba(fresh)
    fitted = model(LinearSVC).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_[0], fitted.path_.answer[:-1])
    assert log_loss(fitted, fresh, truth) < 0.40
    again = loads(dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(fresh), fitted.predict_proba(fresh))


# ------------------------------------------------------------------------------------ declarations


def test_a_publication_is_never_calibrated():
    X, y = odds(300)
    solver = PrivGene(generations=2, population=20, paper=True)
    with pytest.raises(ValueError, match=r"calibrate \(True\) must be False for a solver"):
        model(solver=solver).fit(X, y)
    one, other = (model(solver=solver, calibrate=how).fit(X, y) for how in ("auto", False))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert "calibration" not in one.release_.settings


def test_by_default_a_logistic_regression_is_calibrated_and_a_machine_is_not():
    X, y = odds(300)
    given = {"domain": (-1, 1), "classes": [0, 1], "random_state": 3}
    logistic, machine = (kind(1.0, 1e-6, **given).fit(X, y)
                         for kind in (LogisticRegression, LinearSVC))  # fmt: skip
    assert (logistic.calibrate, machine.calibrate) == ("auto", False)
    assert "calibration" in logistic.release_.settings
    assert "calibration" not in machine.release_.settings
    assert loads(dumps(logistic)).calibrate == "auto"


def steep(run: Any) -> Any:
    """A solver that draws nothing."""
    model = np.zeros(run.space.shape)
    model[:2] = 4.0, -4.0
    run.report(model[None])
    return run.path()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_model_that_cost_nothing_is_calibrated(delta, classes):
    X, y = odds(2000)
    fitted = model(delta=delta, solver=steep, classes=[*range(classes)]).fit(X, y)
    assert fitted.release_.verify()
    assert fitted.release_.events
    assert abs(fitted.release_.settings["calibration"]["slope"][classes == 3] - 1.0) < 0.3


def test_a_callback_is_told_what_was_charged_in_all():
    X, y = odds(300)
    heard: list[Any] = []
    model(solver=Local(generations=3), callback=heard.append).fit(X, y)
    assert {one.spent for one in heard} == {Budget(1.0, 1e-6)}
    assert heard[-1].spent_so_far.epsilon < 1.0


FACTS = Facts("logistic", 1000, 0.1, Neighbours("replace"), 20, 4)


def test_a_solver_may_have_a_prior_of_its_own():
    """Such as one by the columns of the table, rather than by those that they are coded as."""

    class Own(Gradient):
        def score_prior(self, facts: Facts) -> Prior:
            return Prior(0.5 + facts.table_columns / 8, 0.2, 0.1)

    with mock.patch("privfit.linear.calibration.is_users", return_value=False):
        assert prior_of(Own(), FACTS) == Prior(1.0, 0.2, 0.1)
    assert prior_of(Own(), FACTS) == prior_of(Gradient(), FACTS)  # of a user: nothing is called


@pytest.mark.parametrize("wrong", [1.5, -1, -0.5, "x", None])
@pytest.mark.parametrize("base", [object, Gradient])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_share_of_a_calibration_is_the_usual_one_for_solvers_of_users(delta, base, wrong):
    """Whatever they say: what is not checked must not decide how a budget is divided."""

    class Own(base):  # type: ignore[misc]
        calibration_share = wrong

        def __call__(self, run: Any) -> Any:
            return steep(run)

    X, y = odds(300)
    fitted = model(delta=delta, solver=Own()).fit(X, y)
    assert fitted.release_.verify()
    assert fitted.release_.settings["calibration"]["share"] == 0.04


@pytest.mark.parametrize(("size", "slope"), [(None, 0.75), (1000, 0.75), (100_000, 0.85),
                                             (10**6, 0.95)])  # fmt: skip
def test_the_usual_prior_follows_the_signal(size, slope):
    facts = replace(FACTS, size=size, columns=40)
    assert prior_of(Gradient(), facts) == Prior(slope, 0.25, 0.2)
    assert prior_of(Gradient(), replace(facts, weighted=True)) == Prior(slope, 0.25, 0.3)
    assert prior_of(Local(), facts) == Prior(1.0, 0.25, 0.2)
    assert prior_of(Gradient(), replace(facts, loss="hinge")) == Prior(1.5, 1.0, 0.5)


def test_a_fit_of_the_loss_itself_is_calibrated_only_if_asked_for():
    X, y = odds(300)
    solver = ObjectivePerturbation()
    assert "calibration" not in model(solver=solver, calibrate="auto").fit(X, y).release_.settings
    assert "calibration" in model(solver=solver).fit(X, y).release_.settings
    machine = model(LinearSVC, solver=solver, calibrate="auto").fit(X, y)
    assert "calibration" in machine.release_.settings


@pytest.mark.filterwarnings("ignore::privfit.base.cautions.PrivacyLeakWarning")
def test_without_privacy_nothing_is_bought():
    X, y = odds(300)
    solver = DPSGA(generations=2, population=20)
    with pytest.raises(ValueError, match="and for an infinite epsilon; pass calibrate=False"):
        model(epsilon=math.inf, delta=0.0, solver=solver).fit(X, y)
    assert model(epsilon=math.inf, delta=0.0, solver=solver, calibrate="auto").fit(X, y)


@pytest.mark.parametrize("wrong", ["yes", None, 0.04, 1])
def test_other_words_are_refused_before_the_charge(wrong):
    X, y = odds(100)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(ValueError, match=r"calibrate \(.*\) must be True, False or 'auto'"):
        model(calibrate=wrong, ledger=ledger).fit(X, y)
    assert ledger.spent.epsilon == 0
