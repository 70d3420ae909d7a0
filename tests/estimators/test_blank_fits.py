"""Fits whose schema has blanks: bought from the fit's own budget, shown, and refused in time."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from privfit import (
    Budget,
    BudgetError,
    Categorical,
    Checkpoint,
    DiscreteLaplace,
    Event,
    Gradient,
    Ledger,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    OutputPerturbation,
    Schema,
    Stream,
    learn_schema,
    load,
    save,
)
from privfit.audit import paired
from privfit.privacy.grants import Part
from privfit.privacy.neighbours import ADJACENCIES
from privfit.privacy.quantiles import SegmentQuantiles

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

N = 3000
BLANK = Schema.blank({"age": "number", "gain": "number", "job": "category"})
MIXED = Schema({"age": Numeric(0, 100), "gain": Numeric(), "job": Categorical(names="bought")})
BUDGETS = [(1.0, 1e-6), (1.0, 0.0), (0.02, 1e-9), (8.0, 1e-3)]


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "age": rng.integers(18, 90, n).astype(float),
        "gain": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "job": rng.choice(["clerk", "nurse", "driver"], n),
    }
    y = (table["age"] + 20 * (table["job"] == "nurse") + rng.normal(0, 5, n) > 60).astype(int)
    return table, y


def model(kind=LogisticRegression, epsilon=1.0, delta=1e-6, domain=BLANK, **settings):
    classes = settings.pop("classes", [0, 1])
    return kind(epsilon, delta, domain=domain, classes=classes, random_state=1, **settings)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("budget", BUDGETS)
def test_blanks_are_bought_from_the_budget_of_the_fit(kind, budget, adjacency):
    X, y = people()
    ledger = Ledger(10.0, 1e-2)
    fitted = model(kind, *budget, adjacency=adjacency, n_public=N, ledger=ledger).fit(X, y)
    release = fitted.release_
    assert release.verify()
    assert (release.epsilon, release.delta) == budget
    assert ledger.spent == Budget(*budget)
    assert ledger.releases == (release,)
    assert release.cost() > 0.97 * budget[0]
    assert release.settings["blanks"]["levels"] >= 1
    assert release.parameters["columns"] == fitted.domain_.to_dict()["columns"]
    assert not fitted.domain_.has_blanks
    assert fitted.domain == BLANK  # a parameter stays as it was passed
    assert fitted.coef_.shape == (1, fitted.domain_.width)
    if budget[0] >= 1:
        assert (fitted.predict(X) == y).mean() > 0.8
    odd = {"age": [None, "x"], "gain": [math.inf, -1], "job": [None, "pilot"]}
    assert len(fitted.predict(odd)) == 2


@pytest.mark.parametrize("solver", [Gradient(steps=5), Gradient(whiten=False), "gradient"])
def test_descents_share_a_budget_with_blanks(solver):
    X, y = people()
    assert model(solver=solver, domain=MIXED).fit(X, y).release_.verify()


@pytest.mark.parametrize("solver", ["local", "objective", "output", "majority"])
def test_a_pure_budget_serves_every_solver(solver):
    X, y = people(500)
    fitted = model(delta=0.0, solver=solver).fit(X, y)
    assert fitted.release_.verify()
    assert fitted.release_.settings["solver"] == solver


def test_several_classes_share_what_is_left():
    X, _ = people()
    y = np.digitize(X["age"], [40, 60])
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    assert fitted.release_.verify()
    assert fitted.coef_.shape[0] == 3
    assert (fitted.predict(X) == y).mean() > 0.7


def test_a_stream_gives_the_same_model(tmp_path):
    X, y = people()
    pd.DataFrame({**X, "late": y}).to_csv(tmp_path / "people.csv", index=False)
    for domain, delta in ((BLANK, 1e-6), (BLANK, 0.0), (MIXED, 1e-6)):
        here = model(domain=domain, delta=delta, solver="gradient").fit(X, y)
        there = model(domain=domain, delta=delta, solver="gradient").fit(
            Stream(tmp_path / "people.csv"), "late"
        )
        assert here.domain_ == there.domain_
        assert np.array_equal(here.coef_, there.coef_)


def test_a_model_with_bought_columns_is_saved_and_read(tmp_path):
    X, y = people()
    for domain in (BLANK, MIXED):
        fitted = model(domain=domain).fit(X, y)
        save(fitted, tmp_path / "model.json")
        again = load(tmp_path / "model.json")
        assert again.domain_ == fitted.domain_
        assert np.array_equal(again.predict(X), fitted.predict(X))
        assert again.release_.verify()


def test_a_model_whose_columns_were_changed_is_refused(tmp_path):
    X, y = people()
    path = tmp_path / "model.json"
    save(model(domain=MIXED).fit(X, y), path)
    whole = json.loads(path.read_text())
    columns = whole["release"]["parameters"]["columns"]
    for wrong in (None, {**columns, "age": {"low": 0, "high": 50}}, {"age": columns["age"]},
                  {**columns, "gain": {"kind": "number"}}):  # fmt: skip
        whole["release"]["parameters"]["columns"] = wrong
        path.write_text(json.dumps(whole))
        with pytest.raises(ValueError, match=r"columns|blanks"):
            load(path)


@pytest.mark.parametrize(("changes", "message"), [
    ({"solver": "local"}, r"solver \('local'\) must draw Gaussian noise alone to share a budget"),
    ({"solver": Local(), "classes": [0, 1]}, r"must draw Gaussian noise alone"),
    ({"solver": ObjectivePerturbation()}, r"must draw Gaussian noise alone to share a budget"),
    ({"delta": 0.0, "solver": OutputPerturbation(paper=True)}, r"must not have paper=True with bl"),
    ({"epsilon": math.inf}, r"epsilon \(inf\) is for the plain genetic algorithm"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"delta": 0.0, "domain": MIXED}, r"delta \(0.0\) must be positive for names of categories"),
    ({"classes": [1, 2]}, "label|class"),
    ({"domain": Schema.blank({"size": "number"})}, r"X lacks the declared columns \['size'\]"),
    ({"domain": Schema({**BLANK.columns, "age": Numeric(0, 1)}), "age": None},
     r"column 'age' has missing values or cells that are not numbers"),
])  # fmt: skip
def test_bad_input_is_refused_before_the_charge(changes, message):
    X, y = people(50)
    if "age" in changes:
        X["age"] = [changes.pop("age"), *X["age"][1:]]
    ledger = Ledger(10.0, 1e-2)
    with pytest.raises(ValueError, match=message):
        model(**{"ledger": ledger, **changes}).fit(X, y)
    assert ledger.spent == Budget(0.0)


# ------------------------------------------------------------------------------------------ audits


def audited(adjacency, delta, domain=BLANK):
    X, y = people(200)
    mine = {"age": 89.0, "gain": -3.0, "job": "only me"}
    first = {name: np.array([value, *X[name]], dtype=object) for name, value in mine.items()}
    second = {name: column.copy() for name, column in first.items()}
    labels = np.array([1, *y]), np.array([0, *y])
    if adjacency == "add_remove":
        second, labels = {name: column[1:] for name, column in first.items()}, (labels[0], y)
    else:
        for name, value in {"age": 18.0, "gain": 1e4, "job": "clerk"}.items():
            second[name][0] = value

    def run(table, ledger, random_state):
        return model(delta=delta, domain=domain, adjacency=adjacency, n_public=200, ledger=ledger,
                     n_threads=1).set_params(random_state=random_state).fit(*table)  # fmt: skip

    return paired(run, (first, labels[0]), (second, labels[1]), seed=1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("delta", "domain"), [(0.0, BLANK), (1e-6, BLANK), (1e-6, MIXED)])
def test_one_record_changes_each_draw_by_no_more_than_it_was_charged_for(adjacency, delta, domain):
    found = audited(adjacency, delta, domain)
    assert len({step.place for step in found.steps}) >= 3  # what is bought, and the solver's draws
    assert not found.differences
    assert max(step.strain for step in found.steps) <= 1 + 1e-9


def test_a_range_that_is_too_small_is_found(monkeypatch):
    monkeypatch.setattr(SegmentQuantiles, "range", 2)
    found = audited("replace", 1e-6)
    assert max(step.strain for step in found.steps) > 1.2


def test_a_fit_that_crashed_goes_on_with_the_schema_that_it_bought(tmp_path):
    X, y = people(500)

    def fit(callback=None, domain=MIXED):
        with Checkpoint(tmp_path / "journal", 1.0, 1e-6) as journal:
            fitted = model(
                domain=domain, ledger=journal.ledger, callback=callback, solver=Gradient(steps=4)
            ).set_params(random_state=journal.coins)
            return fitted.fit(X, y), journal

    seen = []

    def crash(generation):
        seen.append(generation.parameters.tolist())
        if generation.index == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(crash)
    fitted, journal = fit(lambda generation: seen.append(generation.parameters.tolist()))
    assert seen[:2] == seen[2:4]  # the same draws
    assert journal.ledger.spent == Budget(1.0, 1e-6)
    assert fitted.release_.verify()


def test_a_part_of_a_grant_draws_by_it_and_makes_no_release_of_its_own():
    grant = Ledger(1.0).reserve(1.0)
    part = Part(grant, Budget(0.5))
    part.plan(Event("pure", 0.5))
    part.release(DiscreteLaplace(0.5, 1), [1], 1)
    assert part.events == grant.events == (Event("pure", 0.5),)
    assert part.budget == Budget(0.5)
    with pytest.raises(BudgetError, match="is closed: it is a part of another; close that one"):
        part.close()
    with pytest.raises(BudgetError, match=r"costs epsilon 1\.5"):
        part.release(DiscreteLaplace(1.0, 1), [1], 1)
    assert grant.close().epsilon == 1.0


def test_names_and_their_chance_of_failure_are_kept_in_a_journal(tmp_path):
    table = {name: people(500)[0]["job"] for name in "abcd"}
    found = []
    for _ in range(2):
        with Checkpoint(tmp_path / "journal", 1.0, 1e-6) as journal:
            found.append(learn_schema(
                table, 1.0, 1e-6, columns=dict.fromkeys(table, "category"), ledger=journal.ledger,
                random_state=journal.coins,
            ))  # fmt: skip
    assert found[0] == found[1]
