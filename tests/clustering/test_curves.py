"""The number of clusters from a bought curve: exact sums, sensitivities, budgets, the choice."""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DISTANCE_DOMAINS, distance_rows
from makers.points import COARSE, RECORDS, tables
from makers.raises import assert_reached, messages_of

import privfit
from privfit import Box, CentersObjective, KMeans, Ledger, Numeric, Schema, Stream, choose_k
from privfit.clustering.curves import CurvePlan, bend
from privfit.domains import Grid
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.report.plotting import draw_choice

PLACES = np.array([[-0.5, -0.5], [0.0, 0.5], [0.5, -0.5]])


def blobs(n=6000, places=PLACES, seed=0):
    coins = np.random.default_rng(seed)
    return places[np.arange(n) % len(places)] + coins.normal(0, 0.05, (n, places.shape[1]))


# ------------------------------------------------------------------------------------- exact sums


@pytest.mark.few(4)
@pytest.mark.parametrize("name", DISTANCE_DOMAINS)
def test_steps_of_costs_equal_the_twin(name, rng):
    X = distance_rows(name, rng, 60)
    rows = reference.records(X, DISTANCE_DOMAINS[name], uniform=True)
    for power, (most, shift) in itertools.product((1, 2), ((1, 0), (5000, 0), (10**6, 3))):
        objective = CentersObjective(X, 1, DISTANCE_DOMAINS[name], power=power)
        low, high = objective.domain.low, objective.domain.high
        sets = [objective.snap(rng.uniform(low, high, (k, len(low)))) for k in (1, 4, 2)]
        whole = [np.rint(C / objective.candidate_units).astype(int).tolist() for C in sets]
        found = objective.cost_steps(sets, most, shift)
        assert found.tolist() == reference.cost_steps(rows, whole, most, shift, power)


def test_steps_of_costs_do_not_depend_on_where_records_are(rng):
    X = rng.uniform(-1, 1, (40_000, 3))
    sets = [np.round(rng.uniform(-1, 1, (k, 3)) * 512) / 512 for k in (1, 2, 3, 4)]
    expected = CentersObjective(X, 1, Box(-1, 1)).cost_steps(sets, 10**7)
    streamed = CentersObjective(Stream(X), 1, Box(-1, 1))
    assert streamed.cost_steps(sets, 10**7).tolist() == expected.tolist()
    mixed = CentersObjective(X[rng.permutation(len(X))], 1, Box(-1, 1))
    assert mixed.cost_steps(sets, 10**7).tolist() == expected.tolist()


def test_costs_below_the_bound_are_the_exact_costs():
    X, sets = blobs(300), [np.zeros((1, 2)), np.array([[0.5, -0.5], [-0.25, 0.0]])]
    objective = CentersObjective(X, 1, Box(-1, 1))
    most = (1 << 30) - 1
    last, more = objective.cost_steps([sets[0], np.concatenate(sets)], most).tolist()
    exact = [-int(objective.with_clusters(len(C)).scores(C[None])[0])
             for C in (sets[0], np.concatenate(sets))]  # fmt: skip
    assert [last + more, last] == exact


# ------------------------------------------------------------------ sensitivity, for all neighbours


SETS = {
    "nested": [[(0, 0)], [(0, 0), (1, 1)], [(0, 0), (1, 1), (-1, 1)]],
    "others": [[(1, 1)], [(-1, -1), (-1, 1)], [(1, -1), (0.5, 0.5), (0, -1)], [(-1, 0)] * 4],
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("most", [1, 3, 8, 40])
@pytest.mark.parametrize("name", SETS)
def test_a_record_changes_the_curve_by_at_most_its_sensitivity(name, most, adjacency):
    sets, worst = [np.array(one, dtype=float) for one in SETS[name]], 0
    for pair in tables(adjacency):
        first, second = (CentersObjective(X, 1, COARSE, adjacency=adjacency).cost_steps(sets, most)
                         for X in pair)  # fmt: skip
        worst = max(worst, int(np.abs(first - second).sum()))
    bound = Neighbours(adjacency).changes * most
    assert worst <= bound
    if name == "others" and most <= 3:
        assert worst == bound  # no smaller bound holds


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_of_a_curve_is_that_of_its_sensitivity(adjacency):
    objective = CentersObjective(RECORDS, 4, Box(-1, 1), adjacency=adjacency)
    plan = CurvePlan.of(objective, (1, 2, 3, 4), 1.0, Neighbours(adjacency))
    assert plan.mechanism.sensitivity == Neighbours(adjacency).changes * plan.most
    assert plan.mechanism.epsilon == 0.2
    rest = plan.rest(Budget(1.0, 1e-6))
    assert rest.epsilon + plan.mechanism.epsilon < 1.0


def test_a_bound_of_many_digits_leaves_some_out():
    wide = CentersObjective(np.zeros((3, 200)), 3, Box(-1, 1, 200, grid=Grid(a=14, b=8, c=0)))
    plan = CurvePlan.of(wide, (1, 2, 3), 1.0, Neighbours("replace"))
    assert plan.most < 1 << 30
    assert plan.shift > 0
    assert plan.unit == wide.unit * 2**plan.shift


def test_a_curve_is_read_back_from_its_steps():
    objective = CentersObjective(RECORDS, 4, Box(-1, 1))
    plan = CurvePlan.of(objective, (1, 2, 3, 4), 1.0, Neighbours("replace"))
    curve = plan.read(np.array([10, 40, 20, 5]))
    assert np.allclose(curve.costs / plan.unit, [75, 35, 15, 10])
    assert np.allclose(curve.errors / curve.errors[-1], [2, math.sqrt(3), math.sqrt(2), 1])
    assert curve.k == 3 - int(curve.bends[0] > curve.bends[1])


def test_the_sharpest_bend_is_where_costs_stop_falling_and_never_below_the_noise():
    costs = np.array([100.0, 60.0, 10.0, 9.0, 8.5, 0.001])
    assert np.argmax(bend(costs, 1.0)) == 1
    assert np.argmax(bend(costs, 0.0)) == 1
    assert np.isfinite(bend(np.array([-5.0, 0.0, 3.0]), 0.0)).all()


# --------------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [2, 4])
def test_three_clusters_are_found_and_paid_for_once(d, delta, adjacency):
    places = np.concatenate([PLACES, PLACES[::-1]], axis=1)[:, :d]
    ledger = Ledger(1.5, 1e-5)
    chosen = choose_k(blobs(9000, places), range(2, 9), 1.0, delta, domain=(-1, 1), ledger=ledger,
                      adjacency=adjacency, n_public=9000, random_state=1)  # fmt: skip
    assert chosen.k == 3
    assert chosen.ks.tolist() == list(range(1, 10))
    assert chosen.centers.shape == (3, d)
    ((_, name, paid),) = ledger.entries
    assert (name, paid.epsilon, paid.delta) == ("choose_k", 1.0, delta)
    assert chosen.release.verify()
    assert chosen.release.cost() <= 1.0
    assert chosen.release.parameters["k"] == 3


@pytest.mark.few(9)
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 7.0, 60.0])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_plan_fits_every_budget(d, epsilon, delta):
    """What the fit plans beside the curve is never refused after the charge."""
    X = np.random.default_rng(0).uniform(-1, 1, (4000, d))
    chosen = choose_k(X, [2, 3], epsilon, delta, domain=(-1, 1), random_state=0)
    assert chosen.release.cost() <= epsilon


def test_a_choice_is_the_same_for_a_stream():
    X = blobs(5000)
    ask = partial(choose_k, ks=range(2, 7), epsilon=1.0, domain=(-1, 1), random_state=5)
    whole, parts = ask(X), ask(Stream(X))
    assert whole.costs.tolist() == parts.costs.tolist()
    assert whole.centers.tolist() == parts.centers.tolist()


def test_a_schema_is_clustered_as_its_columns_are_coded():
    X = blobs(6000)
    table = {"x": X[:, 0], "y": X[:, 1]}
    schema = Schema({"x": Numeric(-1, 1), "y": Numeric(-1, 1)})
    assert choose_k(table, range(2, 8), 1.0, domain=schema, random_state=0).k == 3


def test_the_curve_is_a_table_and_a_picture():
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    chosen = choose_k(blobs(), range(2, 6), 1.0, domain=(-1, 1), random_state=0)
    assert chosen.to_frame().loc[3, "cost"] == chosen.costs[2]
    assert repr(chosen) == f"ChosenK(k={chosen.k})"
    ax = draw_choice(chosen)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"chosen: {chosen.k}" in texts
    assert "noisy cost, epsilon 1" in texts
    line = next(one for one in ax.get_lines() if len(one.get_xdata()) == len(chosen.ks))
    assert line.get_ydata().tolist() == chosen.costs.tolist()


def test_only_a_choice_is_drawn():
    with pytest.raises(TypeError, match=r"chosen \(KMeans\) must be a ChosenK; pass what priv"):
        draw_choice(KMeans())


BAD_KS = [[], [2], [1, 2, 3], [2, 4], [3, 2], [2.0, 3.0], ["2", "3"], range(2, 1002), [True, 2]]
WIDE = np.random.default_rng(0).uniform(-1, 1, (50, 9))


def test_what_cannot_be_chosen_from_is_refused_before_the_charge():
    calls = []
    for ks in BAD_KS:
        ledger = Ledger(5.0)
        with pytest.raises(ValueError, match="ks must be two or more consecutive whole numbers fr"):
            choose_k(blobs(), ks, 1.0, domain=(-1, 1), ledger=ledger)
        assert not ledger.entries
        calls.append(partial(choose_k, blobs(), ks, 1.0, domain=(-1, 1)))
    ledger = Ledger(5.0)
    with pytest.raises(TypeError, match=r"ks \(int\) must be numbers of clusters; pass range"):
        choose_k(blobs(), 5, 1.0, domain=(-1, 1), ledger=ledger)
    with pytest.raises(ValueError, match=r"epsilon \(0.1\) must be larger to tell 21 clusters"):
        choose_k(WIDE, range(2, 21), 0.1, domain=(-1, 1), ledger=ledger)
    with pytest.raises(ValueError, match=r"epsilon \(inf\) .*; pass a finite epsilon"):
        choose_k(blobs(), [2, 3], math.inf, domain=(-1, 1), ledger=ledger)
    with pytest.raises(TypeError, match=r"domain \(NoneType\) must be the declared domain of a re"):
        choose_k(blobs(), [2, 3], 1.0, ledger=ledger)
    with pytest.raises(ValueError, match="must declare what its columns may hold; pass learn_sche"):
        choose_k({"x": [1, 2]}, [2, 3], 1.0, domain=Schema.blank({"x": "number"}), ledger=ledger)
    assert not ledger.entries
    calls += [
        partial(choose_k, blobs(), 5, 1.0, domain=(-1, 1)),
        partial(choose_k, WIDE, range(2, 21), 0.1, domain=(-1, 1)),
    ]
    calls += [partial(choose_k, blobs(), [2, 3], 1.0, domain=domain) for domain in (None, "box")]
    source = Path(privfit.__file__).parent / "clustering" / "choosing.py"
    assert_reached([source], "\n".join(messages_of(call) for call in calls))


@pytest.mark.parametrize("most", [0, 1 << 30, 2.5, None])
def test_bounds_that_leave_no_room_are_refused(most):
    objective = CentersObjective(RECORDS, 1, COARSE)
    with pytest.raises(ValueError, match=r"most \(.*\) must be a whole number from 1 to 2\^30 - 1"):
        objective.cost_steps([np.zeros((1, 2))], most)


@pytest.mark.parametrize("shift", [-1, 41, 0.5])
def test_other_shifts_are_refused(shift):
    objective = CentersObjective(RECORDS, 1, COARSE)
    with pytest.raises(ValueError, match=r"shift \(.*\) must be a whole number from 0 to 40; pass"):
        objective.cost_steps([np.zeros((1, 2))], 5, shift)


@pytest.mark.parametrize("sets", [[], [np.zeros(2)], [np.zeros((1, 1, 2))]])
def test_other_sets_are_refused(sets):
    objective = CentersObjective(RECORDS, 1, COARSE)
    with pytest.raises(ValueError, match=r"sets must be one or more sets of centres; pass arrays"):
        objective.cost_steps(sets, 5)


def test_a_curve_that_fails_leaves_a_release_of_what_was_drawn(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(CentersObjective, "cost_steps", fail)
    ledger = Ledger(1.0)
    X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    with pytest.raises(
        privfit.SolverError, match=r"failed \(MemoryError.*after epsilon 1, delta 0 were"
    ):
        choose_k(X, range(2, 5), 1.0, domain=(-1, 1), ledger=ledger, random_state=0)
    [release] = ledger.releases
    assert release.events
    assert release.settings["failed"] == "MemoryError"
