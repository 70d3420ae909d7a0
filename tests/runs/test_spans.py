"""Where numbers lie, by noisy counts of coarse cells: the definition, edges, and what is bought."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import span_cell, span_ends, span_sizes

from privfit import Categorical, Coding, KMeans, Numeric, Release, Schema, Stream, learn_schema
from privfit.audit import paired
from privfit.domains.keys import KEYS
from privfit.domains.scales import CUTS
from privfit.linear.coding import coded, purchase_of
from privfit.linear.recipe import Recipe
from privfit.privacy.ledger import Budget, Ledger
from privfit.privacy.neighbours import ADJACENCIES, Neighbours
from privfit.privacy.remainder import gaussian_left
from privfit.records.blanks import BlankRows
from privfit.runs import blanks, spans
from privfit.runs.payment import Terms

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

SPANNED = Numeric(bins=32, scale="log")
EDGES = [0.0, -0.0, 1e-6, -1e-6, math.nextafter(1e-6, 0), 1e-300, math.inf, -math.inf, math.nan,
         1e9, -1e9, 1.0, 10.0, -1.0, 3.0]  # fmt: skip


# ------------------------------------------------------------------------------- the definition


def cells(numbers):
    rows = BlankRows.pack({"x": numbers}, schema=Schema({"x": SPANNED}))
    return spans.cell_counts(rows.key_counts("x")).tolist()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(
    st.sampled_from([*EDGES, *span_sizes(), *(-size for size in span_sizes())]),
    st.floats(-1e10, 1e10), st.floats(-2, 2), st.integers(-100, 100).map(float),
), max_size=20))  # fmt: skip
@example([*EDGES, *span_sizes()])
def test_a_number_is_in_the_cell_of_the_definition(numbers):
    expected = [0] * spans.CELLS
    for cell in map(span_cell, numbers):
        if cell is not None:
            expected[cell] += 1
    assert cells(numbers) == expected


def test_every_number_is_in_one_cell():
    assert spans.cell_counts(np.ones(KEYS, dtype=np.int64)).sum() == KEYS
    assert all(spans.cell_counts(np.ones(KEYS, dtype=np.int64)) > 0)
    assert sum(cells(EDGES)) == len(EDGES) - 1  # nan is in none


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-3, 6), min_size=spans.CELLS, max_size=spans.CELLS),
    st.sampled_from([1.0, 2.5]),
)
def test_a_span_is_that_of_the_definition(noisy, deviation):
    assert spans.span_of(np.array(noisy), deviation) == span_ends(noisy, deviation)


@pytest.mark.parametrize(("counts", "expected"), [
    ({}, None),
    ({27: 99}, None),  # 0 alone
    ({27: 99, 36: 2}, None),  # and a few ones
    ({27: 99, 36: 4}, (0.0, 1.155)),
    ({27: 99, 34: 2, 35: 1, 36: 4}, (0.0, 1.155)),
    ({36: 4, 37: 2, 38: 2, 39: 1.5, 40: 2}, (0.3652, 11.55)),
    ({18: 4, 36: 4}, (-1.155, 1.155)),
    ({0: 4, 54: 4}, (-1e9, 1e9)),
    ({53: 4, 54: 2}, (1.155e8, 1e9)),
    ({0: 2, 1: 4}, (-1e9, -1.155e8)),
])  # fmt: skip
def test_spans_that_are_known(counts, expected):
    noisy = np.zeros(spans.CELLS)
    noisy[list(counts)] = list(counts.values())
    found = spans.span_of(noisy, 1.0)
    assert found == (None if expected is None else pytest.approx(expected, rel=3e-3))


def test_a_span_is_cut_equally_beside_the_scale():
    found = spans.spanned(SPANNED, (0.0, 32.0))
    assert found == Numeric(bins=list(range(1, 32)), scale="log", missing=True)
    assert set(found.cuts) == {*found.bins, *CUTS}
    assert spans.spanned(SPANNED, None) == Numeric(scale="log", missing=True)
    assert spans.spanned(replace(SPANNED, bins=1), (0.0, 1.0)).bins == 0
    assert spans.spanned(replace(SPANNED, bins=np.int64(2)), (0.0, 1.0)).bins == (0.5,)
    filled = spans.spanned(replace(SPANNED, fill=4.0), (-1.0, 1.0))
    assert (filled.fill, filled.missing, len(filled.bins)) == (4.0, False, 31)


@pytest.mark.parametrize("low", range(spans.CELLS))
def test_any_span_can_be_cut(low):
    for high in range(low, spans.CELLS):
        noisy = np.zeros(spans.CELLS)
        noisy[[low, high]] = 9.0
        column = spans.spanned(SPANNED, spans.span_of(noisy, 1.0))
        assert column.bins == 0 or len(column.bins) == 31  # which increase, or are refused


# -------------------------------------------------------------------------------------- buying

N = 4000
MIXED = Schema({
    "age": Numeric(), "gain": Numeric(fill=0), "years": Numeric(0, 60),
    "hours": Numeric(1, 99, bins=[20, 40]), "job": Categorical(),
})  # fmt: skip


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, n).astype(float),
        "gain": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "years": rng.uniform(0, 60, n),
        "hours": rng.integers(1, 99, n).astype(float),
        "job": rng.choice(["a", "b", "c"], n),
    }


def terms(epsilon=0.3, delta=1e-6, adjacency="add_remove", n_public=N, **more):
    return Terms("test", epsilon, delta, adjacency, n_public, random_state=1, **more)


def buy(schema, X, terms):
    found = purchase_of(schema, X, terms)
    paid = terms.charge(found.purchase.sums)
    schema = found.purchase.buy(paid)
    return schema, paid.close(schema, found.purchase.plan.settings)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_numbers_without_a_range_are_cut_where_they_lie_below_the_signal(adjacency):
    own = terms(0.15, adjacency=adjacency, n_public=2 * N)
    recipe = purchase_of(MIXED, people(), own).recipe
    assert recipe.signal < 80
    assert recipe.span_share > 0
    wanted = coded(MIXED, Coding(), recipe).columns
    assert wanted["age"] == SPANNED
    assert wanted["gain"] == replace(SPANNED, fill=0)
    assert wanted["years"] == Numeric(0, 60, 32, scale="log", missing=True)
    schema, release = buy(MIXED, people(2 * N), own)
    assert release.verify()
    age = schema.columns["age"]
    assert 3 < min(age.bins) < 20
    assert 80 < max(age.bins) < 130
    assert schema.columns["hours"] == MIXED.columns["hours"]
    assert "spans" in release.settings


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("n", "more"), [(3000, 0), (8000, 10)])
def test_shares_are_those_of_the_recipe(n, more, adjacency):
    """Two numbers without a range and one category are bought."""
    schema = Schema({**MIXED.columns, **{f"x{i}": Categorical(["a", "b"]) for i in range(more)}})
    table = people(10) | {f"x{i}": ["a"] * 10 for i in range(more)}
    found = purchase_of(schema, table, terms(adjacency=adjacency, n_public=n))
    plan, mu = found.purchase.plan, gaussian_left(Budget(0.3, 1e-6))
    assert found.recipe == Recipe.of(n, mu, Neighbours(adjacency), 5 + more, 4, ranged=2)
    assert plan.blanks.spans == ("age", "gain")
    where, counts = plan.events
    part = (where.parameter / mu) ** 2
    assert part == pytest.approx(found.recipe.span_share * 2 / (5 + more), rel=1e-6)
    changes = Neighbours(adjacency).changes
    error = math.sqrt(2 * changes / part) / (n * mu)
    target = (part, 0.1) if n == 3000 or adjacency == "replace" else (error, 0.01)
    assert target[0] == pytest.approx(target[1], rel=1e-6)
    noise = plan.spans.noise
    assert noise.sensitivity == pytest.approx(plan.spans.factor * math.sqrt(2 * changes))
    assert blanks.deviation(noise) / plan.spans.factor == pytest.approx(error * n, rel=1e-3)
    assert Release("", 0.3, 1e-6, adjacency, (where, counts)).verify()


def test_what_learn_schema_buys_of_such_a_column():
    for delta in (0.0, 1e-6):
        ledger = Ledger(1.0, 1e-5)
        columns = {"age": SPANNED, "gain": Numeric(), "job": Categorical(names=None)}
        schema = learn_schema(people(), 1.0, delta, columns=columns, ledger=ledger, random_state=1)
        assert schema.release.verify()
        assert ledger.spent == Budget(1.0, delta)
        assert len(schema.columns["age"].bins) == 31
        assert not schema.has_blanks


def test_a_stream_and_memory_give_the_same_bits(tmp_path):
    table = pd.DataFrame(people())
    table.loc[5, "age"] = None
    table.to_parquet(tmp_path / "people.parquet")
    some = [table, table.to_dict("records"), Stream(tmp_path / "people.parquet")]
    bought = [buy(MIXED, X, terms())[0] for X in some]
    assert all(one == bought[0] for one in bought)
    assert isinstance(bought[0].columns["age"].bins, tuple)


def test_clusters_take_no_notice_of_a_scale():
    schema = Schema({"age": SPANNED, "years": Numeric(0, 60)})
    model = KMeans(3, 2.0, 1e-6, domain=schema, random_state=1).fit(
        {name: people()[name] for name in schema.columns}
    )
    assert model.release_.verify()


# ------------------------------------------------------------------------------------------ audits

MINE = {"age": 30.0, "gain": 0.0, "years": 7.0, "hours": 9.0, "job": "only me"}
ODD = [{"age": None, "gain": math.nan}, {"age": 1e300, "gain": -5.0}, {"age": "x", "gain": -0.0}]


def audited(adjacency, delta, record, run=buy):
    first = {name: np.array([MINE[name], *column], dtype=object)
             for name, column in people(300).items()}  # fmt: skip
    second = {name: column.copy() for name, column in first.items()}
    if adjacency == "add_remove":
        second = {name: column[1:] for name, column in first.items()}
    else:
        for name, value in record.items():
            second[name][0] = value
    schema = Schema({**MIXED.columns, "age": SPANNED})

    def bought(X, ledger, random_state):
        own = Terms("test", 0.3, delta, adjacency, N, ledger, random_state)
        return run(schema, X, own)[0].to_dict()

    return paired(bought, first, second, seed=1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("record", range(len(ODD)))
def test_one_record_changes_each_draw_by_no_more_than_it_was_charged_for(record, delta, adjacency):
    found = audited(adjacency, delta, ODD[record])
    assert "privfit.runs.blanks._spanned" in {step.place for step in found.steps}
    assert not found.differences
    assert max(step.strain for step in found.steps) <= 1 + 1e-9


def test_faults_that_are_planted_are_found(monkeypatch):
    """A replacement that counts as one change, a number in two cells, a span by actual records."""
    with monkeypatch.context() as patch:
        patch.setattr(Neighbours, "changes", 1)
        assert max(step.strain for step in audited("replace", 1e-6, ODD[1]).steps) > 1.2
    honest = spans.cell_counts
    with monkeypatch.context() as patch:
        patch.setattr(blanks, "cell_counts", lambda counts: np.cumsum(honest(counts)))
        assert max(step.strain for step in audited("add_remove", 1e-6, ODD[1]).steps) > 1.2
    with monkeypatch.context() as patch:
        patch.setattr(blanks, "span_of", lambda noisy, deviation: (0.0, float(1 + seen[-1])))
        seen = []

        def exact(counts):
            seen.append(int(counts.sum()))
            return honest(counts)

        patch.setattr(blanks, "cell_counts", exact)
        assert audited("add_remove", 1e-6, ODD[1]).differences
