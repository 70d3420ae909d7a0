"""Columns that code themselves: the coded schema, what is bought of it, and at which price."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.raises import assert_reached, messages_of
from reference import cut_ranks, number_place, quantile_score

from privfit import Budget, Categorical, Coding, Domain, Ledger, Numeric, Release, Schema, Stream
from privfit.audit import paired
from privfit.domains.scales import CUTS
from privfit.linear import auto
from privfit.linear import coding as module
from privfit.linear.coding import coded, purchase_of
from privfit.linear.recipe import Recipe
from privfit.privacy.accounting import Event, compose
from privfit.privacy.neighbours import ADD_REMOVE, ADJACENCIES, REPLACE, Neighbours
from privfit.privacy.quantiles import Segment, SegmentQuantiles
from privfit.privacy.remainder import gaussian_left
from privfit.records.blanks import BlankRows
from privfit.runs.blanks import Cutting, _is_short
from privfit.runs.payment import Terms

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

N = 4000
BLANK = Schema.blank({"age": "number", "gain": "number", "job": "category", "city": "category"})
MIXED = Schema({
    "age": Numeric(17, 90, fill=40), "gain": Numeric(), "hours": Numeric(1, 99, bins=[20, 40]),
    "years": Numeric(0, 60), "job": Categorical(["clerk", "nurse"], other=True),
    "city": Categorical(),
})  # fmt: skip
HIGH = Recipe.of(10**6, 0.25, ADD_REMOVE, 6, 4)
LOW = Recipe.of(100, 0.25, ADD_REMOVE, 6, 4)
SPANNED = Recipe.of(1200, 0.25, ADD_REMOVE, 6, 4)


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, n).astype(float),
        "gain": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "hours": rng.integers(1, 99, n).astype(float),
        "years": rng.uniform(0, 60, n),
        "job": rng.choice(["clerk", "nurse", "driver"], n),
        "city": rng.choice(["a", "b", "c"], n),
    }


def terms(epsilon=1.0, delta=1e-6, adjacency="add_remove", n_public=N, **more):
    return Terms("test", epsilon, delta, adjacency, n_public, random_state=1, **more)


def buy(schema, X, terms, coding=None):
    """The schema that is bought, with the release of what it cost."""
    found = purchase_of(schema, X, terms, coding)
    if found.purchase is None:
        return found.schema, None
    paid = terms.charge(found.purchase.sums)
    schema = found.purchase.buy(paid)
    return schema, paid.close(schema, found.purchase.plan.settings)


# ------------------------------------------------------------------------------ the coded schema


def test_numbers_are_cut_by_the_public_scale_alone_below_the_signal():
    schema = coded(MIXED, Coding(), LOW)
    assert LOW.depth == 0
    assert schema.columns == {
        "age": Numeric(17, 90, 32, scale="log", fill=40),
        "gain": Numeric(scale="log", missing=True),
        "hours": MIXED.columns["hours"],
        "years": Numeric(0, 60, 32, scale="log", missing=True),
        "job": MIXED.columns["job"],
        "city": MIXED.columns["city"],
    }
    assert schema.blanks == ["city"]


def test_crowded_tables_have_equal_bins_in_narrow_ranges_alone():
    narrow, wide = Numeric(17, 90, fill=40), Numeric(0, 60)
    crowded = replace(LOW, beside=0)
    schema = coded(Schema({"age": narrow, "years": wide}), Coding(), crowded)
    assert schema.columns["age"] == Numeric(17, 90, 16, scale="log", fill=40)  # six cells are few
    assert schema.columns["years"] == Numeric(0, 60, scale="log", missing=True)


def test_numbers_are_bought_above_it_and_declared_bins_stay():
    schema = coded(MIXED, Coding(), HIGH)
    assert HIGH.depth > 0
    assert schema.columns["age"] == Numeric(17, 90, bins="auto", scale="log", fill=40)
    assert schema.columns["gain"] == Numeric(bins="auto", scale="log")
    assert schema.blanks == ["age", "gain", "years", "city"]
    assert schema.columns["hours"] is MIXED.columns["hours"]
    assert (schema.grid, schema.missing) == (MIXED.grid, MIXED.missing)


@pytest.mark.parametrize(("number", "coded_if_pure"), [
    (Numeric(17, 90, bins=[30, 50]), False), (Numeric(17, 90, bins=8), False),
    (Numeric(17, 90), True), (Numeric(), True), (Numeric(17, 90, bins="auto"), True),
    (Numeric(scale="log"), True), (Numeric(17, 90, bins=8, scale="log"), True),
])  # fmt: skip
def test_a_pure_budget_keeps_tables_whose_numbers_are_all_cut_as_they_are(number, coded_if_pure):
    schema = Schema({"hours": Numeric(1, 99, bins=[20, 40]), "age": number})
    for delta in (0.0, 1e-6):
        found = auto.is_additive(schema, Terms("test", 1.0, delta), "logistic", intercept=True)
        assert found == (coded_if_pure or delta > 0)


def test_families_say_otherwise():
    kept = ["hours", "job", "city"]
    log = coded(MIXED, Coding(family="log"), HIGH)
    assert log == coded(MIXED, Coding(), LOW)
    quantile = coded(MIXED, Coding(family="quantile"), LOW)
    assert quantile.columns["gain"] == Numeric(bins="auto")
    ranged = Schema({name: one for name, one in MIXED.columns.items() if name != "gain"})
    width = coded(ranged, Coding(family="width"), HIGH)
    assert width.columns["years"] == Numeric(0, 60, bins=16, missing=True)
    assert coded(ranged, Coding(8, "width"), LOW).columns["age"] == Numeric(17, 90, 8, fill=40)
    for schema in (log, quantile, width):
        assert all(schema.columns[name] is MIXED.columns[name] for name in kept)


def test_a_declared_scale_stays():
    schema = Schema({"x": Numeric(scale="log", missing=True)})
    for family in ("auto", "log", "quantile", "width"):
        assert coded(schema, Coding(family=family), HIGH) == schema


@pytest.mark.parametrize(("given", "recipe", "found"), [
    (Coding(), HIGH, {}),
    (Coding(), LOW, {}),
    (Coding(cuts=4), LOW, {"depth": 4, "cut_share": 0.1}),
    (Coding(), SPANNED, {}),
    (Coding(cuts=4), SPANNED, {"depth": 4, "cut_share": 0.1, "span_share": 0.0}),
    (Coding(family="log", dimensions=8), SPANNED, {"span_share": 0.0}),
    (Coding(cuts=2), HIGH, {"depth": 2}),
    (Coding(dimensions=20), HIGH, {"dimensions": 20, "public": 8, "learned": 12}),
    (Coding(dimensions=9), HIGH, {"dimensions": 9, "public": 5, "learned": 4}),
    (Coding(family="log"), HIGH, {"depth": 0, "cut_share": 0.0, "dimensions": 24, "public": 24}),
    (Coding(family="log", dimensions=12), LOW, {"dimensions": 12, "public": 12}),
    (Coding(family="quantile"), LOW, {"depth": 3, "cut_share": 0.1, "learned": 8}),
    (Coding(family="width"), HIGH, {"depth": 0, "cut_share": 0.0, "learned": HIGH.dimensions}),
])  # fmt: skip
def test_a_recipe_is_changed_only_in_what_a_coding_says(given, recipe, found):
    assert given.changed(recipe) == replace(recipe, **found)
    assert given.changed(given.changed(recipe)) == given.changed(recipe)


# -------------------------------------------------------------------------------------- ranks


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.0, -3.5, 1.0, 1950.0, 1951.0, 1999.5, 1e30, math.nan, 7.25,
                                 7.2500005]), max_size=30))  # fmt: skip
def test_ranks_are_those_of_the_definition(numbers):
    mechanism = SegmentQuantiles(1.0, REPLACE)

    def choose(candidates, values, coarse):
        at = {0, len(candidates) - 1}
        for value in set(values):
            i = candidates.index(value)
            at |= {max(i - 1, 0), i, min(i + 1, len(candidates) - 1)}
        scores = {i: quantile_score(values, candidates[i], 1, 2) for i in sorted(at)}
        return max(scores, key=lambda i: (scores[i], -i))

    column = Numeric(bins="auto")
    rows = BlankRows.pack({"x": numbers}, schema=Schema({"x": column}))
    cutting = Cutting(column, rows.key_counts("x"), partial(rows.inside_counts, "x"))
    for _ in range(3):
        plain = [Segment(one.counts) for one in cutting.segments()]
        cutting.cut([int(np.argmax(mechanism.scores(one))) for one in plain])
    cuts, ranks = cutting.ranked
    expected = cut_ranks(numbers, 3, choose, _is_short)
    found = {number_place(cut): rank for cut, rank in zip(cuts, ranks, strict=True)}
    assert found.keys() == {place for place in expected if abs(place - 0.5) < 0x7F7FFFFF}
    for place, rank in found.items():
        assert rank == pytest.approx(float(expected[place]), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2**20), min_size=40, max_size=400), st.integers(1, 6),
    st.sampled_from([(None, None), (0.0, 100.0), (-0.123456789, 1e-3), (1000.0, 1001.0)]),
)  # fmt: skip
def test_ranks_increase_between_0_and_1_wherever_segments_are_cut(choices, levels, ends):
    """Any candidates at all, in place of those that are drawn."""
    column, turns = Numeric(*ends, bins="auto"), iter(choices * 10)
    rows = BlankRows.pack({"x": [1.0]}, schema=Schema({"x": column}))
    cutting = Cutting(column, rows.key_counts("x"), partial(rows.inside_counts, "x"))
    for _ in range(levels):
        segments = cutting.segments()
        cutting.cut([next(turns, 0) % (len(one.counts) + 1) for one in segments])
    cuts, ranks = cutting.ranked
    assert set(cuts) <= set(cutting.cuts)
    if cuts:
        Numeric(*ends, bins=cuts, ranks=ranks)  # which refuses what does not increase


def test_a_bought_number_has_the_scale_its_cuts_and_their_ranks():
    schema, _ = buy(BLANK, people(40_000), terms(3.0, n_public=40_000))
    age, gain = schema.columns["age"], schema.columns["gain"]
    assert age.scale == "log"
    assert age.missing
    assert len(age.ranks) == len(age.bins) > 8
    assert set(age.cuts) == {*age.bins, *CUTS}
    assert 0.0 in gain.bins
    x = people(40_000)["age"]
    true = [(x < cut).mean() for cut in age.bins]
    assert np.abs(np.subtract(true, age.ranks)).mean() < 0.1
    assert Domain.from_dict(schema.to_dict()) == schema


# ------------------------------------------------------------------------------------ the plan


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("budget", [(1.0, 1e-6), (0.3, 1e-9), (8.0, 1e-3)])
def test_shares_are_those_of_the_recipe(budget, adjacency):
    """Three numbers are cut and one category is bought, of six columns."""
    n = 200_000
    found = purchase_of(MIXED, people(10), terms(*budget, adjacency, n_public=n))
    plan, recipe, mu = found.purchase.plan, found.recipe, gaussian_left(Budget(*budget))
    assert recipe == Recipe.of(n, mu, Neighbours(adjacency), 6, 4)
    assert plan.blanks.cuts == ("age", "gain", "years")
    selections, counts = plan.events
    assert (selections.kind, selections.count) == ("selection", 3 * recipe.depth)
    spent = selections.count * (selections.parameter / 2) ** 2
    assert spent == pytest.approx(recipe.cut_share * 3 / 6 * mu**2)
    assert counts.kind == "gaussian"
    assert counts.parameter**2 == pytest.approx(0.1 * 1 / 6 * mu**2, rel=1e-6)
    later = Event("gaussian", plan.mu_left(Budget(*budget)))
    assert Release("", *budget, adjacency, (*plan.events, later)).verify()
    assert compose([*plan.events, later], budget[1]) > 0.999 * budget[0]


def test_nothing_is_bought_of_numbers_below_the_signal():
    found = purchase_of(BLANK, people(10), terms(0.1, n_public=500))
    assert found.recipe.signal < 80
    assert [event.kind for event in found.purchase.plan.events] == ["gaussian"]
    assert found.schema.blanks == ["job", "city"]
    numbers = Schema.blank({"age": "number", "gain": "number"})
    assert purchase_of(numbers, people(10), terms(0.1, n_public=500)).purchase is None


def test_a_schema_without_blanks_is_simply_coded():
    declared = Schema({"years": Numeric(0, 60), "job": MIXED.columns["job"]})
    found = purchase_of(declared, people(10), terms(), Coding(family="log"))
    assert found.purchase is None
    assert found.schema.columns["years"] == Numeric(0, 60, 32, scale="log", missing=True)
    assert not found.schema.has_blanks


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("given", [Coding(cuts=2), Coding(family="quantile"), Coding()], ids=repr)
def test_what_is_bought_is_charged_and_fits_beside_the_rest(given, delta, adjacency):
    ledger = Ledger(2.0, 1e-5)
    schema, release = buy(MIXED, people(), terms(1.0, delta, adjacency, ledger=ledger), given)
    assert release.verify()
    assert ledger.spent == Budget(1.0, delta)
    assert not schema.has_blanks
    assert list(schema.columns) == list(MIXED.columns)
    assert schema.columns["hours"] == MIXED.columns["hours"]
    odd = {name: [None, "x", math.inf, -1e300] for name in MIXED.columns}
    odd["hours"] = [1, 2, 3, 4]
    assert schema.read(odd).shape[0] == 4  # nothing is refused


def test_several_models_have_less_signal_each():
    one, four = (purchase_of(BLANK, people(10), terms(n_public=10**5), models=m).recipe
                 for m in (1, 4))  # fmt: skip
    assert four.signal == pytest.approx(one.signal / 2)


def test_a_range_that_is_bought_beside_equal_bins_has_a_share_below_the_signal():
    blank = Schema({"x": Numeric(bins=8), "y": Numeric()})
    table = {"x": np.arange(1000.0), "y": np.arange(1000.0)}
    schema, release = buy(blank, table, terms(0.1, n_public=100))
    assert release.verify()
    assert schema.columns["x"].bins == 8
    assert schema.columns["y"] == Numeric(scale="log", missing=True)


def test_few_records_are_no_reason_to_fail():
    for n in (0, 1, 2):
        table = {name: column[:n] for name, column in people().items()}
        schema, _ = buy(MIXED, table, terms(n_public=10**6))
        assert not schema.has_blanks


# ---------------------------------------------------------------------------------- everywhere


def test_a_stream_and_memory_give_the_same_bits(tmp_path):
    table = pd.DataFrame(people())
    table.loc[5, "age"] = None
    table.to_csv(tmp_path / "people.csv", index=False)
    table.to_parquet(tmp_path / "people.parquet")
    for delta in (0.0, 1e-6):
        bought = [buy(MIXED, X, terms(2.0, delta, n_public=50_000))[0] for X in (
            table, table.to_dict("records"), Stream(tmp_path / "people.csv"),
            Stream(tmp_path / "people.parquet"),
        )]  # fmt: skip
        assert all(one == bought[0] for one in bought)


@pytest.mark.usefixtures("cluster")
def test_a_cluster_gives_the_same_bits():
    dd = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(people())
    here, there = (buy(MIXED, X, terms(2.0, n_public=50_000))[0]
                   for X in (table, dd.from_pandas(table, npartitions=3)))  # fmt: skip
    assert here == there


# ------------------------------------------------------------------------------------------ audits

MINE = {"age": 30.0, "gain": 0.0, "years": 7.0, "job": "nurse", "city": "only me"}
ODD = [{"age": None, "gain": math.nan, "years": "x", "job": None, "city": ""},
       {"age": 89.0, "gain": -5.0, "years": 59.0, "job": "clerk", "city": "b"},
       {"age": "x", "gain": 1e300, "years": -1e300, "job": ["x"], "city": math.nan}]  # fmt: skip


def audited(adjacency, delta, record, given=None):
    table = people(300)
    first = {name: np.array([MINE.get(name, 20.0), *column], dtype=object)
             for name, column in table.items()}  # fmt: skip
    second = {name: column.copy() for name, column in first.items()}
    if adjacency == "add_remove":
        second = {name: column[1:] for name, column in first.items()}
    else:
        for name, value in record.items():
            second[name][0] = value

    def run(X, ledger, random_state):
        own = Terms("test", 1.0, delta, adjacency, 30_000, ledger, random_state)
        return buy(MIXED, X, own, given or Coding(cuts=3))[0].to_dict()

    return paired(run, first, second, seed=1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("record", range(len(ODD)))
def test_one_record_changes_each_draw_by_no_more_than_it_was_charged_for(record, delta, adjacency):
    found = audited(adjacency, delta, ODD[record])
    assert len({step.place for step in found.steps}) >= 2  # cuts, and buckets
    assert not found.differences
    assert max(step.strain for step in found.steps) <= 1 + 1e-9


def test_faults_that_are_planted_are_found(monkeypatch):
    """A range that is too small, a replacement that counts as one change, a size that is read."""
    with monkeypatch.context() as patch:
        patch.setattr(SegmentQuantiles, "range", 2)
        assert max(step.strain for step in audited("replace", 1e-6, ODD[1]).steps) > 1.2
    with monkeypatch.context() as patch:
        patch.setattr(Neighbours, "changes", 1)
        assert max(step.strain for step in audited("replace", 1e-6, ODD[1]).steps) > 1.2
    with monkeypatch.context() as patch:
        honest = module._recipe

        def counted(schema, size, terms, models):
            """The depth of cuts by the actual number of records."""
            return replace(honest(schema, size, terms, models), depth=2 + counted.n % 2)

        sums = BlankRows.sums

        def seen(X, schema, n_threads=None):
            found = sums(X, schema, n_threads)
            counted.n = found.n_records
            return found

        counted.n = 0
        patch.setattr(module, "_recipe", counted)
        patch.setattr(BlankRows, "sums", seen)
        found = audited("add_remove", 1e-6, ODD[1], Coding())
        assert found.differences or max(step.strain for step in found.steps) > 1.2


# ---------------------------------------------------------------------------------------- refusals

REFUSED = [
    (lambda: Coding(family="even"), r"family \('even'\) must be 'auto', 'log', 'quantile', "),
    (lambda: Coding(3, "log"), r"cuts \(3\) must be left out for family 'log'"),
    (lambda: Coding(0), r"cuts \(0\) must be a whole number from 1 to 8 for family 'auto'; pass"),
    (lambda: Coding(9, "quantile"), r"cuts \(9\) must be a whole number from 1 to 8 for family"),
    (lambda: Coding(1, "width"), r"cuts \(1\) must be a whole number from 2 to 1024 for family"),
    (lambda: Coding(2.5), r"cuts \(2.5\) must be a whole number from 1 to 8"),
    (lambda: Coding(dimensions=81), r"dimensions \(81\) must be a whole number from 2 to 80 for"),
    (lambda: Coding(family="log", dimensions=25), r"dimensions \(25\) must be .* from 2 to 24 for"),
    (lambda: coded(BLANK, Coding(family="width"), HIGH),
     r"column 'age' must have a declared range for equal bins; pass Numeric\(low, high\), or Cod"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_has_no_meaning_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_infinite_budget_and_names_without_delta_are_refused_before_the_charge():
    ledger = Ledger(5.0, 1e-5)
    with pytest.raises(ValueError, match=r"epsilon \(inf\) is for the plain genetic algorithm"):
        purchase_of(BLANK, people(10), terms(math.inf))
    named = Schema({"job": Categorical(names="bought")})
    with pytest.raises(ValueError, match=r"delta \(0.0\) must be positive for names of categories"):
        purchase_of(named, people(10), terms(1.0, 0.0, ledger=ledger))
    assert ledger.spent == Budget(0.0)


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(make) for make, _ in REFUSED)
    assert_reached([Path(module.__file__)], seen)
