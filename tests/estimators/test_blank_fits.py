"""Fits whose schema has blanks: bought from the fit's own budget, shown, and refused in time."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

from privfit import (
    DPSGA,
    EEM,
    Budget,
    BudgetError,
    Categorical,
    Checkpoint,
    DiscreteLaplace,
    Event,
    FrankWolfe,
    Functional,
    Gradient,
    Gupt,
    Ledger,
    LinearSVC,
    Local,
    LogisticRegression,
    Majority,
    Numeric,
    ObjectivePerturbation,
    OutputPerturbation,
    PermutedSGD,
    PrivGene,
    Schema,
    SelectRefine,
    Stream,
    Subsample,
    compose,
    learn_schema,
    load,
    save,
)
from privfit.audit import paired
from privfit.domains.hashing import BucketReader
from privfit.privacy.grants import Part
from privfit.privacy.neighbours import ADJACENCIES
from privfit.privacy.quantiles import SegmentQuantiles
from privfit.records.sources import TableSource

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
    """A model whose columns are bought as they are declared: codings are tested elsewhere."""
    settings = {"classes": [0, 1], "coding": "declared", **settings}
    return kind(epsilon, delta, domain=domain, random_state=1, **settings)


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


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_a_range_with_infinite_ends_is_bought_and_fitted(kind):
    X, y = people()
    X["gain"] = np.where(np.arange(N) < N // 10, math.inf, X["gain"])
    fitted = model(kind, 10.0, domain=Schema({"gain": Numeric(), "age": Numeric()})).fit(X, y)
    assert fitted.domain_.columns["gain"].high == 2.0**127
    assert fitted.release_.verify()
    assert np.isfinite(fitted.decision_function(X)).all()


OTHERS = (
    Local(generations=5), EEM(generations=4, population=20), FrankWolfe(steps=4),
    PrivGene(generations=2, population=20), DPSGA(generations=2, population=20),
    Subsample(candidates=50), PermutedSGD(passes=1), OutputPerturbation(), Functional(), Majority(),
    ObjectivePerturbation(), Gupt(blocks=10),
    SelectRefine(select=Local(generations=4), refine=Gradient(steps=4, whiten=True)),
)  # fmt: skip


def is_covered(release, budget):
    """Whether one plan covers everything: an enclosed part fits by itself, and in the whole."""
    rest = release.settings["blanks"].get("rest")
    if rest is not None:
        inside = [Event(**event) for event in rest["events"]]
        assert compose(inside, rest["delta"]) <= rest["epsilon"]
        assert Event("approximate", rest["epsilon"], 1, rest["delta"]) in release.events
    return release.verify() and (release.epsilon, release.delta) == budget


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("weights", ["balanced", {1: 3.0}])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("budget", "domain"), [(BUDGETS[0], MIXED), (BUDGETS[1], BLANK),
                                                (BUDGETS[2], BLANK)])  # fmt: skip
def test_blanks_counts_solver_and_calibration_share_one_budget(
    budget, domain, classes, weights, calibrate
):
    X, y = people(600)
    y = y if classes == 2 else np.digitize(X["age"], [40, 60])
    ledger = Ledger(10.0, 1e-2)
    fitted = model(
        LogisticRegression, *budget, domain=domain, class_weight=weights, calibrate=calibrate,
        classes=[*range(classes)], ledger=ledger,
    ).fit(X, y)  # fmt: skip
    release = fitted.release_
    assert is_covered(release, budget)
    assert ledger.spent == Budget(*budget)
    assert release.cost() > 0.97 * budget[0]
    assert ("calibration" in release.settings) == calibrate
    assert len(release.settings["class_weight"]["weights"]) == (1 if classes == 2 else 3)
    assert "rest" not in release.settings["blanks"]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver", OTHERS, ids=str)
def test_solvers_without_gaussian_noise_have_a_part_of_their_own(solver, adjacency):
    X, y = people(500)
    ledger = Ledger(10.0, 1e-2)
    fitted = model(solver=solver, calibrate=True, adjacency=adjacency, n_public=500, ledger=ledger)
    release = fitted.fit(X, y).release_
    assert is_covered(release, BUDGETS[0])
    assert ledger.spent == Budget(*BUDGETS[0])
    rest = release.settings["blanks"]["rest"]
    assert 0.7 < rest["epsilon"] < 1.0
    assert rest["delta"] == 5e-7
    assert release.cost() > 0.97
    assert "calibration" in release.settings


def test_other_solvers_serve_several_classes_and_budgets():
    X, _ = people(500)
    y = np.digitize(X["age"], [40, 60])
    for budget, domain in itertools.product(((1.0, 1e-6), (1e-6, 1e-12), (300.0, 1e-6)),
                                            (BLANK, MIXED)):  # fmt: skip
        fitted = model(
            LogisticRegression, *budget, domain=domain, solver=Local(generations=4),
            classes=[0, 1, 2], class_weight={2: 3.0},
        ).fit(X, y)  # fmt: skip
        assert is_covered(fitted.release_, budget)


def test_a_weight_of_the_loss_has_its_solver_beside_blanks():
    X, y = people(500)
    fitted = model(LinearSVC, C=10.0).fit(X, y)
    assert fitted.release_.settings["solver"] == "local"
    assert is_covered(fitted.release_, BUDGETS[0])


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
    ({"solver": "local", "epsilon": 1e8, "delta": 1e-12},
     r"solver \('local'\) must draw Gaussian noise alone to share so small or so large a budget"),
    ({"solver": "local", "class_weight": "balanced"}, r"must be a dict for solver 'local', since"),
    ({"solver": "objective", "class_weight": {1: 2.0}}, r"must be None for solver 'objective'"),
    ({"calibrate": "yes"}, r"calibrate \('yes'\) must be True, False or 'auto'"),
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


# ------------------------------------------------------------------------------- domain="learn"


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_learn_is_the_blank_schema_of_the_types_that_a_table_declares(kind, tmp_path):
    X, y = people()
    frame = pd.DataFrame(X)
    declared = model(kind).fit(X, y)
    for table in (frame, X, frame.astype({"job": "category"}), frame.convert_dtypes()):
        learned = model(kind, domain="learn").fit(table, y)
        assert learned.domain == "learn"  # a parameter stays as it was passed
        assert learned.domain_ == declared.domain_
        assert np.array_equal(learned.coef_, declared.coef_)
        assert learned.release_.to_json() == declared.release_.to_json()
    frame.assign(late=y).to_parquet(tmp_path / "people.parquet")
    stream = Stream(tmp_path / "people.parquet")
    assert np.array_equal(model(kind, domain="learn").fit(stream, "late").coef_, declared.coef_)
    save(learned, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.domain, again.domain_) == ("learn", learned.domain_)
    assert np.array_equal(again.predict(X), learned.predict(X))


@pytest.mark.usefixtures("cluster")
def test_learn_on_a_cluster_gives_the_same_bits():
    dd = pytest.importorskip("dask.dataframe")
    X, y = people()
    frame = pd.DataFrame({**X, "late": y}).astype({"job": "category"})
    there = dd.from_pandas(frame, npartitions=3)
    fits = [model(domain="learn").fit(table[list(X)], table["late"]) for table in (frame, there)]
    assert fits[0].domain_ == fits[1].domain_
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_columns_of_an_array_are_numbers_with_numbered_names():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    fitted = model(domain="learn").fit(X, (X[:, 0] > 0).astype(int))
    assert list(fitted.feature_names_in_) == ["x0", "x1", "x2"]
    assert all(column.bins for column in fitted.domain_.columns.values())
    assert (fitted.predict(X) == (X[:, 0] > 0)).mean() > 0.9


def test_one_odd_cell_changes_no_kind_unless_it_changes_the_declared_type():
    """A column of objects is a category, with or without it; a reader's float column is lost."""
    X, y = people(400)
    objects = pd.DataFrame(X).astype({"age": object})
    odd = objects.copy()
    odd.loc[3, "age"] = "x"
    fits = [model(domain="learn").fit(table, y).domain_ for table in (objects, odd)]
    assert [list(one.columns) for one in fits] == [list(X)] * 2
    assert not any(one.columns["age"].holds_numbers for one in fits)
    inferred = pd.DataFrame({**X, "age": odd["age"].tolist()})
    assert not model(domain="learn").fit(inferred, y).domain_.columns["age"].holds_numbers
    assert model(domain="learn").fit(pd.DataFrame(X), y).domain_.columns["age"].holds_numbers


@pytest.mark.parametrize("X", [people(50)[0] | {"age": [1.0] * 50}, [[1.0]] * 50])
def test_a_table_without_types_is_refused_before_the_charge(X):
    ledger = Ledger(10.0, 1e-2)
    with pytest.raises(TypeError, match="domain='learn'"):
        model(domain="learn", ledger=ledger).fit(X, people(50)[1])
    assert ledger.spent == Budget(0.0)


def test_a_learned_model_whose_columns_were_changed_is_refused(tmp_path):
    X, y = people(500)
    path = tmp_path / "model.json"
    save(model(domain="learn").fit(pd.DataFrame(X), y), path)
    whole = json.loads(path.read_text())
    columns = whole["release"]["parameters"]["columns"]
    for wrong in (None, {"age": columns["age"]}, {**columns, "gain": {"kind": "number"}}):
        whole["release"]["parameters"]["columns"] = wrong
        path.write_text(json.dumps(whole))
        with pytest.raises(ValueError, match=r"columns|blanks"):
            load(path)


def test_records_in_memory_are_read_once(monkeypatch):
    """Texts are hashed the first time only, whatever is coded later."""
    seen = []
    honest = BucketReader.place

    def counted(self, text):
        seen.append(text)
        return honest(self, text)

    monkeypatch.setattr(BucketReader, "place", counted)
    X, y = people()
    model().fit(X, y)
    first = len(seen)
    seen.clear()
    BucketReader("job", ("",)).codes(X["job"])
    assert 0 < first == len(seen)


def test_a_stream_is_read_once(tmp_path, monkeypatch):
    """Its source is asked for its blocks a single time, and the model is that of memory."""
    X, y = people()
    pd.DataFrame({**X, "late": np.where(y, "yes", "no")}).to_csv(tmp_path / "x.csv", index=False)
    passes, honest = [], TableSource.blocks

    def counted(self, *asked):
        passes.append(asked[0])
        return honest(self, *asked)

    monkeypatch.setattr(TableSource, "blocks", counted)
    labels = np.where(y, "yes", "no")
    for domain in (BLANK, MIXED):
        passes.clear()
        there = model(domain=domain, classes=["no", "yes"]).fit(Stream(tmp_path / "x.csv"), "late")
        here = model(domain=domain, classes=["no", "yes"]).fit(X, labels)
        assert passes == ["late"]
        assert here.release_.to_json() == there.release_.to_json()


@pytest.mark.parametrize(("change", "message"), [
    ({"late": 2}, "y has labels outside the declared classes; pass classes="),
    ({"age": None}, "column 'age' has missing values or cells that are not numbers"),
])  # fmt: skip
def test_a_bad_cell_of_a_stream_is_refused_before_the_charge(tmp_path, change, message):
    X, y = people(50)
    frame = pd.DataFrame({**X, "late": y})
    for name, value in change.items():
        frame.loc[7, name] = value
    frame.to_parquet(tmp_path / "x.parquet")
    ledger = Ledger(10.0, 1e-2)
    with pytest.raises(ValueError, match=message):
        model(domain=MIXED, ledger=ledger).fit(Stream(tmp_path / "x.parquet"), "late")
    assert ledger.spent == Budget(0.0)


# ------------------------------------------------------------------------------------------ audits


def audited(adjacency, delta, domain=BLANK, **settings):
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
        given = {"domain": domain, "adjacency": adjacency, "n_public": 200, "n_threads": 1}
        fitted = model(delta=delta, ledger=ledger, **given, **settings)
        return fitted.set_params(random_state=random_state).fit(*table)

    return paired(run, (first, labels[0]), (second, labels[1]), seed=1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("delta", "domain"), [(0.0, BLANK), (1e-6, BLANK), (1e-6, MIXED)])
def test_one_record_changes_each_draw_by_no_more_than_it_was_charged_for(adjacency, delta, domain):
    found = audited(adjacency, delta, domain)
    assert len({step.place for step in found.steps}) >= 3  # what is bought, and the solver's draws
    assert not found.differences
    assert max(step.strain for step in found.steps) <= 1 + 1e-9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bought", [
    {"calibrate": True, "class_weight": "balanced"},
    {"calibrate": True, "solver": Local(generations=4)},
    {"delta": 0.0, "calibrate": True, "class_weight": "balanced"},
])  # fmt: skip
def test_no_draw_of_all_that_is_bought_moves_farther_than_charged(adjacency, bought):
    found = audited(adjacency, **{"delta": 1e-6, **bought})
    assert len({step.place for step in found.steps}) >= 4
    assert found.passes()


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
