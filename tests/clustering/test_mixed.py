"""Tables of numbers and categories: what levels weigh, fills, and blanks that a fit buys."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES
from makers.raises import messages_of

from privfit import (
    Box,
    Categorical,
    CentersObjective,
    DeclarationError,
    Hybrid,
    KMeans,
    Ledger,
    Lloyd,
    Numeric,
    Schema,
    Stream,
    load,
    save,
)
from privfit.clustering.averages import Mean
from privfit.clustering.mixed import Mixed, clustered, level_of
from privfit.domains import Grid
from privfit.domains.domain import Domain
from privfit.domains.scaled import ScaledSchema
from privfit.privacy.neighbours import Neighbours
from privfit.runs.payment import Terms

JOBS = ["clerk", "nurse", "none"]
DECLARED = Schema({"age": Numeric(17, 90), "pay": Numeric(0, 100_000),
                   "job": Categorical(JOBS, other=True)})  # fmt: skip
BLANK = Schema.blank({"age": "number", "pay": "number", "job": "category"})


def people(n=6000, seed=0):
    """Three groups that differ in every column; some cells are missing."""
    coins = np.random.default_rng(seed)
    group = np.arange(n) % 3
    table = {
        "age": np.array([25.0, 45.0, 70.0])[group] + coins.normal(0, 4, n),
        "pay": np.array([10e3, 50e3, 20e3])[group] + coins.normal(0, 3000, n),
        "job": np.array(JOBS, dtype=object)[group],
    }
    table["age"][:40], table["job"][:20] = np.nan, None
    return table, group


def agreement(model, table, group):
    labels = model.predict(table)
    orders = itertools.permutations(range(3))
    return max(float(np.mean(np.array(order)[labels] == group)) for order in orders)


# ------------------------------------------------------------------------------- a scale of levels


def test_equal_levels_are_as_far_apart_as_the_ends_of_a_range():
    schema = clustered(Schema({"x": Numeric(0, 1), "c": Categorical(["a", "b"])}), "equal")
    low, high, other = schema.rounded({"x": [0, 1, 0], "c": ["a", "a", "b"]}).toarray()
    assert np.square(low - high).sum() == 1.0
    assert np.square(low - other).sum() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("level", [0.1, 0.3, math.sqrt(0.5), 1.0])
def test_the_geometry_of_scaled_levels_bounds_every_record(level):
    columns = {"x": Numeric(0, 1), "c": Categorical(["a", "b", "c"]), "y": Numeric(0, 1, bins=2)}
    schema = ScaledSchema(columns, Grid(a=4, b=8, c=0), level=level)
    table = [*itertools.product((0, 0.5, 1), "abc", (0, 1))]
    rows = schema.rounded({name: [row[i] for row in table] for i, name in enumerate(columns)})
    rows = rows.toarray()
    assert (rows >= schema.low).all()
    assert (rows <= schema.high).all()
    coins = np.random.default_rng(0)
    P = np.round(coins.uniform(-1, 1, (20, schema.width)) * 16) / 16
    apart = np.square(rows[:, None] - P).sum(axis=2).max(axis=0)
    assert (apart <= schema.farthest(P, 2) + 1e-12).all()
    V = np.concatenate([P, coins.uniform(-1, 1, (20, 1))], axis=1)
    margins = np.abs(rows @ V[:, :-1].T + V[:, -1]).max(axis=0)
    assert np.allclose(margins, schema.norm(V))
    assert np.allclose(schema.pair_norms(V)[0, 1], schema.norm(V[:1] - V[1:2])[0])
    middle, unit = schema.whole_middle, schema.record_units(uniform=True)[0]
    whole = np.rint(rows / unit) - middle
    for norm in (1, 2):
        reached = np.linalg.norm(whole, ord=norm, axis=1).max()
        assert reached <= schema.whole_reach(norm)
    points = schema.points(200, coins)
    assert (points <= schema.high).all()


def test_scaled_levels_are_packed_as_the_twin_codes_them():
    schema = clustered(DECLARED, "equal")
    table, _ = people(200)
    objective = CentersObjective(table, 2, schema)
    rows = np.rint(schema.rounded(table).toarray() / objective.candidate_units).astype(int).tolist()
    C = objective.snap(np.random.default_rng(0).uniform(0, 0.7, (1, 2, schema.width)))
    whole = np.rint(C[0] / objective.candidate_units).astype(int).tolist()
    cost = sum(min(reference.distance(x, c, 2) for c in whole) for x in rows)
    assert objective.scores(C).tolist() == [-cost]


def test_a_scale_of_one_codes_as_before():
    schema = clustered(DECLARED, 1.0)
    assert type(schema) is Schema
    table, _ = people(50)
    table["age"][:40] = 30.0
    assert (schema.encode(table) != DECLARED.encode(table)).nnz == 0


def test_scaled_schemas_are_told_apart_and_written():
    one, other = (clustered(DECLARED, scale) for scale in ("equal", 0.5))
    assert one != other
    assert one == clustered(DECLARED, "equal")
    assert "levels 0.7071" in repr(one)
    assert Domain.from_dict(one.to_dict()) == one


@pytest.mark.parametrize("scale", ["variance", 0.01, 2, math.nan, None, True, [1.0]])
def test_other_scales_are_refused(scale):
    with pytest.raises(ValueError, match=r"scale \(.*\) must be 'equal' or a number from 0.1 to 1"):
        level_of(scale)


@pytest.mark.parametrize("level", [0, 0.05, 1.5, math.inf, "1", None])
def test_a_schema_of_other_levels_is_refused(level):
    with pytest.raises(ValueError, match=r"level \(.*\) must be a number from 0.1 to 1; pass leve"):
        ScaledSchema(DECLARED.columns, level=level)


def test_a_box_has_no_levels_to_scale():
    with pytest.raises(ValueError, match=r"scale \(0.5\) is for the categories of a Schema; leave"):
        clustered(Box(0, 1), 0.5)


# ----------------------------------------------------------------------------------- missing values


@pytest.mark.parametrize(("column", "fill"), [
    (Numeric(0, 10), 5.0),
    (Numeric(0, 10, fill=2), 2),
    (Numeric(0, 10, bins=4), 5.0),
    (Numeric(bins=[1, 2, 3]), 2.0),
    (Numeric(scale="log"), 0.0),
    (Numeric(0, 10, bins=4, missing=True), None),
])  # fmt: skip
def test_numbers_are_filled_in_at_their_middle_or_as_declared(column, fill):
    filled = clustered(Schema({"x": column}), 1.0)
    assert filled.columns["x"].fill == fill
    assert filled.encode({"x": [None, "?", math.nan]}).shape[0] == 3


def test_undeclared_categories_are_refused_before_the_charge():
    schema = Schema({"age": Numeric(17, 90), "job": Categorical(JOBS[:2])})
    blank = Schema({"age": Numeric(), "job": Categorical(JOBS[:2])})
    table, _ = people(300)
    table = {name: table[name] for name in ("age", "job")}
    for domain in (schema, blank):
        ledger = Ledger(1.0)
        with pytest.raises(ValueError, match="job"):
            KMeans(2, 1.0, domain=domain, ledger=ledger).fit(table)
        assert not ledger.entries


# --------------------------------------------------------------------------------- blanks of a fit


@pytest.mark.parametrize("scale", [1.0, "equal"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_blanks_are_bought_with_the_fit_and_the_model_is_saved(delta, adjacency, scale, tmp_path):
    table, group = people(12_000)
    ledger = Ledger(2.0, 1e-5)
    model = KMeans(3, 2.0, delta, domain=BLANK, scale=scale, adjacency=adjacency, n_public=12_000,
                   ledger=ledger, random_state=2).fit(table)  # fmt: skip
    assert len(ledger.entries) == 1
    assert model.release_.verify()
    assert agreement(model, table, group) > 0.9
    assert model.release_.settings["blanks"]["levels"] == 3
    ages = model.domain_.columns["age"]
    assert ages.low < 25 < 70 < ages.high < 400
    assert ages.fill == (ages.low + ages.high) / 2
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.domain_ == model.domain_
    assert again.predict(table).tolist() == model.predict(table).tolist()
    assert again.release_.parameters["columns"].keys() == BLANK.columns.keys()


def test_a_table_a_stream_and_kinds_that_are_learned_give_the_same_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    table, _ = people(3000)
    frame = pandas.DataFrame(table)
    frame.to_csv(tmp_path / "people.csv", index=False)
    ask = {"epsilon": 1.0, "random_state": 4}
    whole = KMeans(3, domain=BLANK, **ask).fit(frame)
    stream = KMeans(3, domain=BLANK, **ask).fit(Stream(str(tmp_path / "people.csv")))
    learned = KMeans(3, domain="learn", **ask).fit(frame)
    for other in (stream, learned):
        assert other.domain_ == whole.domain_
        assert other.cluster_centers_.tolist() == whole.cluster_centers_.tolist()
    save(learned, tmp_path / "model.json")
    assert load(tmp_path / "model.json").domain_ == learned.domain_


def test_the_rest_is_what_the_release_says():
    table, _ = people(3000)
    pure = KMeans(2, 1.0, domain=BLANK, random_state=0).fit(table).release_
    assert "rest" not in pure.settings["blanks"]
    assert sum(event.count * event.parameter for event in pure.events) == pytest.approx(1.0)
    enclosed = KMeans(2, 1.0, 1e-6, domain=BLANK, random_state=0).fit(table).release_
    assert 0.5 < enclosed.settings["blanks"]["rest"]["epsilon"] < 1.0
    assert [event.kind for event in enclosed.events].count("approximate") == 1


SOLVERS = ["auto", "lloyd", "tree", "hybrid", "over_seeded", "mean", "grid", "local",
           Lloyd(steps=2)]  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("rows", [3, 400])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_table_is_refused_after_the_charge(adjacency, solver, rows):
    """Nothing but missing cells, one value, huge values, as many categories as records."""
    odd = [
        {"age": [None] * rows, "pay": ["?"] * rows, "job": [None] * rows},
        {"age": [3.0] * rows, "pay": [0] * rows, "job": ["a"] * rows},
        {"age": [1e38] * rows, "pay": [-1e300] * rows, "job": [f"j{i}" for i in range(rows)]},
        {"age": [math.inf] * rows, "pay": [1e-40] * rows, "job": list(range(rows))},
    ]
    for table in odd:
        model = KMeans(2, 1.0, 1e-6, domain=BLANK, solver=solver, adjacency=adjacency,
                       n_public=400, random_state=1).fit(table)  # fmt: skip
        assert np.isfinite(model.cluster_centers_).all()
        assert model.release_.verify()


def test_a_choice_that_is_refused_under_bought_columns_does_not_end_the_fit(monkeypatch):
    """`auto` chooses again after the purchase; what was checked before is the way out."""
    table, _ = people()
    ledger = Ledger(1.0, 1e-6)
    model = KMeans(3, 1.0, 1e-6, domain=BLANK, n_public=6000, ledger=ledger, random_state=0)
    first, calls = [Hybrid(), Mean()], []

    def chosen(objective, *_):
        calls.append(objective.n_features)
        return first[len(calls) - 1]

    def refuses(self, task):
        raise DeclarationError("epsilon (1.0) must be larger; pass 2.0")

    monkeypatch.setattr("privfit.clustering.kmeans.best_of", chosen)
    monkeypatch.setattr(Mean, "check", refuses)
    model.fit(table)
    assert len(calls) == 2
    assert model.release_.settings["solver"] == "hybrid"
    assert model.release_.verify()
    assert ledger.spent.epsilon == 1.0


def test_declared_ranges_cost_nothing():
    schema = Schema({"x": Numeric(0, 1, bins="auto"), "y": Numeric(0, 2)})
    table = {"x": np.linspace(0, 1, 500), "y": np.linspace(2, 0, 500)}
    model = KMeans(2, 1.0, domain=schema, random_state=0).fit(table)
    assert "blanks" not in model.release_.settings
    assert model.domain_.columns["x"] == Numeric(0, 1, fill=0.5)


def test_declared_bins_and_fills_stay():
    schema = Schema({"x": Numeric(bins=4), "y": Numeric(fill=7.0)})
    mixed = Mixed(schema, 1.0)
    assert mixed.wanted.columns["x"] == Numeric(bins=4)
    table = {"x": np.arange(900.0), "y": np.arange(900.0)}
    model = KMeans(2, 5.0, domain=schema, random_state=0).fit(table)
    assert model.domain_.columns["y"].fill == 7.0
    assert model.domain_.columns["x"].bins == 4


# ----------------------------------------------------------------------------------------- refusals


def test_papers_and_budgets_without_a_rest_are_refused_before_the_charge():
    table, _ = people(300)
    ledger = Ledger(1e5, 1e-3)
    with pytest.raises(ValueError, match=r"solver \('lloyd'\) must not have paper=True with blank"):
        KMeans(2, 1.0, domain=BLANK, solver=Lloyd(paper=True), ledger=ledger).fit(table)
    with pytest.raises(ValueError, match=r"epsilon \(inf\)"):
        KMeans(2, math.inf, domain=BLANK, solver="dpsga").fit(table)
    assert not ledger.entries


def test_a_plan_that_leaves_nothing_is_refused(monkeypatch):
    from privfit.privacy.ledger import Budget
    from privfit.runs.blanks import BlankPlan

    monkeypatch.setattr(BlankPlan, "enclosed", lambda self, budget: Budget(0.0, 1e-7))
    table, ledger = people(300)[0], Ledger(1.0, 1e-6)
    with pytest.raises(DeclarationError, match=r"epsilon \(1.0\) must leave something beside"):
        KMeans(2, 1.0, 1e-6, domain=BLANK, ledger=ledger).fit(table)
    assert not ledger.entries


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_is_bought_follows_from_public_facts(adjacency):
    """The plan is the same for any two tables of the same size."""
    plans = []
    for seed in (0, 1):
        terms = Terms("KMeans", 1.0, 1e-6, adjacency, 500)
        mixed = Mixed(BLANK, 1.0)
        purchase = mixed.purchase(people(500, seed)[0], terms, 1, "auto", Lloyd())
        plans.append((purchase.plan, purchase.rest))
    assert plans[0] == plans[1]
    assert plans[0][0].neighbours == Neighbours(adjacency)
    assert messages_of(partial(level_of, 0.2)) == ""
