"""Intercepts that are bought by themselves: sensitivities, what is released, the public rule."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from makers.cases import ADJACENCIES
from scipy.special import expit, logit

from privfit import (
    Categorical,
    Coding,
    DeclarationError,
    Ledger,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    Reals,
    Schema,
    SmoothLoss,
)
from privfit.audit import audit_solver
from privfit.linear import auto, levels
from privfit.linear.levels import REACH, SLOPE, UNITS, residuals
from privfit.linear.recipe import Recipe
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours

both = pytest.mark.parametrize("adjacency", ADJACENCIES)

NUMBERS = Schema({"x": Numeric(0, 10), "y": Numeric(0, 1), "z": Categorical(["a", "b", "c"])})
WORDS = Schema({name: Categorical(["a", "b"]) for name in "uvw"})
KINDS = Schema.blank({"x": "number", "y": "number", "z": "category"})


def people(n: int, rare: float = 0.2, seed: int = 0) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    table = {"x": rng.uniform(0, 10, n), "y": rng.uniform(0, 1, n), "z": rng.choice(list("abc"), n)}
    return table, (rng.random(n) < rare).astype(int)


def model(epsilon: float, delta: float = 0.0, domain: Any = NUMBERS, **more: Any) -> Any:
    given = {"classes": [0, 1], "random_state": 0, "n_public": 1000} | more
    return LogisticRegression(epsilon, delta, domain=domain, **given)


def levelled(level: float, **more: Any) -> Any:
    settings = ObjectivePerturbation(functions=2, level=level)
    return model(4.0, solver=settings, coding=Coding(family="log"), **more)


# ---------------------------------------------------------------------------------------- the proof


@pytest.mark.parametrize("odds", [-4.0, -1.2, 0.0, 3.0])
def test_a_residual_is_that_of_the_label_and_the_score(odds):
    table = residuals(odds)
    for label, cell in itertools.product((0, 1), (-REACH, -70, 0, 1, REACH)):
        expected = label - expit(SLOPE * cell / 64 + odds)
        assert abs(table[label, cell + REACH] / UNITS - expected) < 1 / UNITS
    assert np.abs(table).max() <= UNITS


@both
def test_noise_hides_the_largest_change_of_each_sum(adjacency, monkeypatch):
    """Against all changes of one record, by label and cell."""
    drawn: list[tuple[int, int]] = []
    tables: list[Any] = []
    right = levels.residuals

    class Spy(levels.DiscreteLaplace):  # type: ignore[misc]
        def __call__(self, value: Any, rng: Any = None) -> Any:
            drawn.append((self.sensitivity, int(value[0])))
            return super().__call__(value, rng)

    def noted(odds: float) -> Any:
        tables.append(right(odds))
        return tables[-1]

    monkeypatch.setattr(levels, "DiscreteLaplace", Spy)
    monkeypatch.setattr(levels, "residuals", noted)
    table, y = people(1000)
    levelled(0.4, adjacency=adjacency).fit(table, y)
    (balance, difference), (residual, _) = drawn
    lower, upper = np.bincount(y)
    rows, signs = tables[0].ravel(), np.array([-1, 1])
    assert difference == upper - lower
    if adjacency == "replace":
        assert balance == np.abs(np.subtract.outer(signs, signs)).max()
        assert residual == np.abs(np.subtract.outer(rows, rows)).max()
    else:
        assert (balance, residual) == (np.abs(signs).max(), np.abs(rows).max())


@pytest.mark.slow
@both
def test_the_audit_passes_and_finds_a_planted_fault(adjacency, monkeypatch):
    few = Schema({"x": Numeric(bins=[1, 2]), "z": Categorical(["a", "b"])})

    def made(records: Any) -> LinearObjective:
        rows, labels = zip(*records, strict=True)
        table = dict(zip("xz", map(list, zip(*rows, strict=True)), strict=True))
        return LinearObjective(table, list(labels), "logistic", few)

    records = [((0.0, "a"), 0), ((3.0, "b"), 1), ((1.5, "a"), 0)]
    settings = ObjectivePerturbation(functions=2, level=0.5)
    audit = partial(audit_solver, settings, made, Reals(-1e6, 1e6, few.width + 1), 1.0, 0.0,
                    records=records, n=2, adjacency=adjacency, seeds=range(1))  # fmt: skip
    assert audit().passes()
    right = levels.DiscreteLaplace
    monkeypatch.setattr(levels, "DiscreteLaplace", lambda e, most: right(e, -(-most // 4)))
    assert not audit().passes()  # noise that is too small for what was charged


# ------------------------------------------------------------------------------------------- fits


@both
def test_an_intercept_alone_is_the_log_odds_and_spends_the_budget(adjacency):
    ledger = Ledger(4.0)
    table, y = people(1000)
    found = levelled(1.0, adjacency=adjacency, ledger=ledger).fit(table, y)
    assert not found.coef_.any()
    assert found.intercept_[0] == pytest.approx(logit(y.mean()), abs=0.1)
    assert [(event.kind, event.count) for event in found.release_.events] == [("pure", 1)]
    assert found.release_.verify()
    assert ledger.remaining.epsilon == 0


@both
def test_an_intercept_beside_a_model_is_right_on_average(adjacency):
    table, y = people(1000)
    found = levelled(0.5, adjacency=adjacency).fit(table, y)
    assert found.coef_.any()
    assert found.predict_proba(table)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)
    kinds = [(event.kind, event.count) for event in found.release_.events]
    assert kinds == [("pure", 1), ("pure", 2)]
    assert found.release_.epsilon <= 4.0
    assert found.release_.verify()
    assert found.release_.settings["level"] == 0.5


def test_the_rarest_class_and_the_least_budget_have_finite_odds():
    table, _ = people(1000)
    for epsilon in (1e-4, 4.0):
        settings = ObjectivePerturbation(functions=2, level=1.0)
        found = model(epsilon, solver=settings, coding=Coding(family="log")).fit(
            table, np.zeros(1000, dtype=int)
        )
        assert abs(found.intercept_[0]) <= abs(logit(levels.RAREST)) + 1e-9


def test_several_classes_share_the_budget():
    table, _ = people(1000)
    found = levelled(0.5, classes=[0, 1, 2]).fit(table, np.arange(1000) % 3)
    assert found.release_.verify()
    assert found.release_.epsilon <= 4.0


def test_a_level_without_functions_or_a_size_is_refused():
    with pytest.raises(DeclarationError, match=r"level .* functions; pass functions=8"):
        ObjectivePerturbation(level=0.5)
    with pytest.raises(DeclarationError, match=r"n_public must be given .* or level=0"):
        levelled(0.5, adjacency="add_remove", n_public=None).fit(*people(100))


def test_a_level_of_scores_that_are_no_log_odds_is_refused():
    own = SmoothLoss(lambda t: np.log1p(np.exp(-t)), lambda t: -1 / (1 + np.exp(t)), slope=1.0,
                     curvature=0.25)  # fmt: skip
    given = {"domain": NUMBERS, "classes": [0, 1], "n_public": 100, "coding": Coding(family="log")}
    settings = ObjectivePerturbation(functions=2, level=0.5)
    with pytest.raises(DeclarationError, match=r"level \(0.5\) is for log odds.*; pass level=0"):
        LinearSVC(4.0, solver=settings, **given).fit(*people(100))
    with pytest.raises(DeclarationError, match=r"level \(0.5\) is for log odds.*; pass level=0"):
        LogisticRegression(4.0, solver=replace(settings, loss=own), **given).fit(*people(100))


@pytest.mark.parametrize(
    ("epsilon", "level"), [(1e-9, 0.3), (1.0, 1e-12), (1e4, 1e-300), (1e-6, 0.999), (1.0, 1 - 1e-9)]
)
def test_a_level_without_noise_for_its_parts_is_refused_before_the_charge(epsilon, level):
    ledger = Ledger(epsilon)
    settings = ObjectivePerturbation(functions=2, level=level)
    unfitted = model(epsilon, solver=settings, coding=Coding(family="log"), ledger=ledger)
    with pytest.raises(DeclarationError, match=r"level .* must be 1, or leave .*; pass level=1"):
        unfitted.fit(*people(100))
    assert ledger.remaining.epsilon == epsilon


@pytest.mark.parametrize(("epsilon", "level"), [(2.0**-22, 0.5), (2.0**-20, 15 / 16)])
def test_the_least_parts_that_are_accepted_have_noise_for_many_classes(epsilon, level):
    settings = ObjectivePerturbation(functions=2, level=level)
    unfitted = model(epsilon, solver=settings, coding=Coding(family="log"), classes=range(20))
    assert unfitted.fit(*people(100)).release_.verify()


# --------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("per_change", "columns", "numbers", "expected"),
    [
        (159, 20, 10, 1.0),  # 80 / 159 is more than a half
        (161, 20, 10, 80 / 161),
        (499, 20, 10, 80 / 499),
        (501, 20, 10, 0.0),  # a signal above 25
        (161, 20, 0, 0.0),
        (120, 4, 2, 0.0),
    ],
)
def test_the_level_follows_from_public_numbers(per_change, columns, numbers, expected):
    for neighbours in (ADD_REMOVE, REPLACE):
        size = 100 * neighbours.changes
        recipe = Recipe.pure(size, per_change / 100, neighbours, columns, numbers)
        assert recipe.level == pytest.approx(expected)
    assert Recipe.pure(None, 1.0, ADD_REMOVE, columns, numbers).level == 0


@both
def test_the_rule_buys_nothing_else_of_a_budget_too_small_for_parts(adjacency):
    """Where 80 changes / n is an epsilon for which there is no noise."""
    table, y = people(100)
    domain = Schema({f"x{i}": Numeric(0, 10) for i in range(9)})
    ledger = Ledger(1e-9)
    columns = dict.fromkeys(domain.columns, table["x"])
    size = 200 * 10**9 * Neighbours(adjacency).changes
    found = model(1e-9, domain=domain, n_public=size, adjacency=adjacency, ledger=ledger)
    assert found.fit(columns, y).release_.settings["level"] == 1.0
    assert ledger.remaining.epsilon == 0


def test_functions_that_are_passed_get_no_level():
    recipe = Recipe.pure(1000, 0.1, ADD_REMOVE, 10, 5)
    assert recipe.level == 1
    assert ObjectivePerturbation(functions=4).following(recipe).level == 0
    assert ObjectivePerturbation().following(recipe).level == 1


def at(signal: float, columns: int = 10, numbers: int = 0) -> Recipe:
    return Recipe.of(1000, signal * columns / 1000, ADD_REMOVE, columns, numbers)


def test_tables_without_numbers_walk_or_select_where_sums_drown():
    found = [type(auto.choose_declared(at(s), 10, 0, 1e-6)).__name__ for s in (1.4, 1.6, 2.9, 3.1)]
    assert found == ["Local", "SelectRefine", "SelectRefine", "NoneType"]
    assert auto.choose_declared(at(1.4, numbers=1), 10, 1, 1e-6) is None


def test_tables_of_many_numbers_have_functions_only_at_a_high_pure_signal():
    def chosen(signal: float, numbers: int) -> Any:
        recipe = Recipe.pure(1000, signal * 70 / 1000, ADD_REMOVE, 70, numbers)
        return type(auto.choose_declared(recipe, 70, numbers, 0.0)).__name__

    found = [chosen(signal, 36) for signal in (1, 11, 13, 149, 151)]
    assert found == ["Local", "Local", "ObjectivePerturbation", "ObjectivePerturbation", "NoneType"]
    assert {chosen(signal, 29) for signal in (1, 13, 151)} == {"NoneType"}
    assert [chosen(signal, 17) for signal in (2, 3, 11, 13)] == [
        "NoneType",  # n epsilon of 140 changes buys an intercept alone
        "Local",
        "Local",
        "NoneType",
    ]
    assert not auto.leaves_delta(at(1.0, 70, 30), 30)
    assert auto.leaves_delta(at(1.0, 70, 29), 29)
    assert not auto.leaves_delta(at(1.6, 70, 29), 29)


def test_many_numbers_with_ranges_are_fitted_as_they_are_declared():
    domain = Schema({f"x{i}": Numeric(0, 10) for i in range(30)})
    table, y = people(1000)
    found = model(1.0, domain=domain).fit(dict.fromkeys(domain.columns, table["x"]), y)
    assert found.release_.settings["solver"] == "objective"
    assert found.domain_ == domain
    assert "functions" not in found.release_.settings


@pytest.mark.parametrize("domain", [NUMBERS, KINDS])
def test_a_delta_is_left_unused_where_sums_drown(domain):
    ledger = Ledger(0.02, 1e-6)
    found = model(0.02, 1e-6, domain, ledger=ledger).fit(*people(1000))
    said = found.release_.settings
    assert (said["solver"], said["level"]) == ("objective", 1.0)
    assert {event.kind for event in found.release_.events} == {"pure"}
    assert (found.release_.epsilon, found.release_.delta) == (0.02, 1e-6)  # what was charged
    assert (ledger.remaining.epsilon, ledger.remaining.delta) == (0, 0)
    assert found.release_.verify()
    assert math.isfinite(found.intercept_[0])


def test_the_same_budget_with_more_records_is_additive():
    assert solver_of(model(0.02, 1e-6, n_public=100_000)) == "additive"
    assert solver_of(model(0.02, 1e-6, solver="additive")) == "additive"  # as it was passed
    assert solver_of(model(0.02, 1e-6, class_weight="balanced")) == "additive"
    assert solver_of(model(0.02, 1e-6, WORDS)) == "local"


def solver_of(unfitted: Any) -> str:
    table, y = people(1000)
    rng = np.random.default_rng(1)
    words = {name: rng.choice(["a", "b"], 1000) for name in "uvw"}
    return str(unfitted.fit({**table, **words}, y).release_.settings["solver"])
