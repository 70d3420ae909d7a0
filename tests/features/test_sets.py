"""Any solver selects features, by searching sets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from makers.own_solvers import Remembers, Schedule, best_of_some, no_plan, outside

from privfit import DPSGA, EEM, Ledger, Local, SelectFeatures, SolverError, Subsets, load, save
from privfit._kernels.random import BitSource
from privfit.audit import audit_solver
from privfit.features.scores import SCORES
from privfit.features.selection import FeatureScores
from privfit.features.sets import MOST, FeatureSets
from privfit.privacy.neighbours import Neighbours
from privfit.records.binary import BinaryRecords
from privfit.searches.solvers import SOLVERS

RELATIONS = {name: Neighbours.of(name) for name in ("replace", "add_remove")}
COINS = np.random.default_rng(0)
Y = COINS.integers(0, 2, 2000)
X = COINS.random((2000, 30)) < 0.05
GOOD = [3, 14, 25]
X[:, GOOD] |= (COINS.random((2000, 3)) < 0.5) & (Y == 1)[:, None]


def objective_of(X: Any, y: Any, k: int, criterion: str, relation: str, bound: int) -> FeatureSets:
    records = BinaryRecords.of(np.asarray(X), np.asarray(y), 2)
    problem = FeatureScores(records, criterion, X.shape[1], RELATIONS[relation], bound)
    return FeatureSets(problem, k, BitSource(0))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("criterion", SCORES)
def test_one_record_changes_differences_of_sets_by_at_most_the_range(criterion, relation):
    """On drawn small tables, of which some reach the bound where it is that of counts."""
    coins, reached, d = np.random.default_rng(1), 0.0, 6
    for _ in range(150):
        n, k, m = int(coins.integers(2, 8)), int(coins.integers(1, 5)), int(coins.integers(2, 9))
        table, labels = coins.integers(0, 2, (n, d)), coins.integers(0, 2, n)
        if relation == "replace":
            other, other_labels = table.copy(), labels.copy()
            other[0], other_labels[0] = 1 - table[0], coins.integers(0, 2)
        else:
            other, other_labels = table[1:], labels[1:]
        P = Subsets(d, k).sample(m, coins)
        both = [
            objective_of(*one, k, criterion, relation, bound=n)
            for one in ((table, labels), (other, other_labels))
        ]
        change = np.subtract(*(one.scores(P) for one in both))
        bound = both[0].range(P, RELATIONS[relation])
        assert bound == both[1].range(P, RELATIONS[relation])  # it is public
        assert np.ptp(change) <= bound <= both[0].spread(P, RELATIONS[relation])
        reached = max(reached, np.ptp(change) / bound if bound else 0.0)
    assert criterion != "total_count" or reached == 1.0


def test_the_score_of_a_set_is_the_sum_of_its_features():
    objective = objective_of(X, Y, 1, "purity_index", "replace", len(X))
    each = objective.scores(np.arange(30)[:, None])
    P = Subsets(30, 4).sample(20, np.random.default_rng(2))
    four = objective_of(X, Y, 4, "purity_index", "replace", len(X))
    assert np.array_equal(four.scores(P), each[P].sum(axis=1))


@pytest.mark.parametrize("k", [2, 5, 15])
def test_swaps_of_one_set_have_twice_the_range_of_a_feature(k):
    objective = objective_of(X, Y, k, "purity_index", "replace", len(X))
    space = Subsets(30, k)
    w = space.sample(1, np.random.default_rng(k))[0]
    swaps = space.moved(w, *space.all_moves(w, 0.1))
    relation = RELATIONS["replace"]
    assert objective.range(swaps, relation) == 2 * SCORES["purity_index"].range(relation, None)
    assert objective.range(w[None], relation) == 0


def test_all_features_are_one_set():
    found = SelectFeatures(1.0, classes=[0, 1], k=99, solver="subsample").fit(X[:, :3], Y)
    assert sorted(found.ranking_) == [0, 1, 2]
    assert found.release_.settings["k"] == 99


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("solver", [*SOLVERS, best_of_some])
def test_every_search_selects_features(solver, relation, delta):
    declared = {"classes": [0, 1], "adjacency": relation, "n_public": 2000, "random_state": 1}
    found = SelectFeatures(2.0, delta, k=3, max_ones=10, solver=solver, **declared).fit(X, Y)
    assert len(np.unique(found.ranking_)) == 3
    assert found.release_.verify()
    assert np.array_equal(found.release_.parameters["features"], found.ranking_)
    if solver == "dpsga" and delta:
        assert sorted(found.ranking_) == GOOD


def test_settings_of_a_search_are_used_and_shown():
    found = SelectFeatures(1.0, classes=[0, 1], k=2, solver=DPSGA(generations=3)).fit(X, Y)
    assert found.release_.settings["solver"] == "dpsga"
    assert (found.release_.settings["generations"], found.release_.settings["k"]) == (3, 2)


def test_a_solver_of_ones_own_stands_in_the_model_file_and_keeps_nothing(tmp_path):
    select = SelectFeatures(1.0, classes=[0, 1], k=2, solver=Remembers(), random_state=1)
    for _ in range(2):
        assert select.fit(X, Y).release_.settings["history"] == []
    save(select, tmp_path / "select.json")
    read = load(tmp_path / "select.json")
    assert np.array_equal(read.ranking_, select.ranking_)
    with pytest.raises(ValueError, match="must be loaded to fit again"):
        read.fit(X, Y)
    again = load(tmp_path / "select.json", solvers=[Remembers, Schedule])
    assert len(again.set_params(random_state=1).fit(X, Y).ranking_) == 2


@pytest.mark.parametrize(
    ("solver", "message"),
    [(no_plan, r"a selection must be planned before it is drawn"),
     (outside, r"run\.select takes candidates of the space as rows")],
)  # fmt: skip
def test_a_solver_that_fails_says_so_once_and_leaves_a_closed_grant(solver, message):
    ledger = Ledger(1.0)
    with pytest.raises(SolverError, match=rf"failed \(\w+, own_solvers\.py line \d+: {message}"):
        SelectFeatures(1.0, classes=[0, 1], k=2, solver=solver, ledger=ledger).fit(X, Y)
    assert len(ledger.releases) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [({"solver": 3}, r"solver \(3\) must be one of auto, noisy, .*, local, eem"),
     ({"solver": EEM, "k": 2}, r"pass EEM\(\)"),
     ({"solver": Local(), "k": MOST + 1}, r"k \(1048577\) must be at most 1048576 for a solver "),
     ({"solver": "local", "k": 0}, r"k \(0\) must be a positive whole number")],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused_before_the_charge(change, message):
    ledger = Ledger(1.0)
    with pytest.raises((TypeError, ValueError), match=message):
        SelectFeatures(1.0, classes=[0, 1], ledger=ledger, **change).fit(X, Y)
    assert ledger.entries == ()


def test_searches_of_sets_pass_the_audit_of_solvers():
    """The pairs of tables differ in one record, a corner of the domain."""

    def make(rows: Any) -> FeatureSets:
        table = np.array([one for one, _ in rows]).reshape(len(rows), 5)
        return objective_of(table, [label for _, label in rows], 2, "total_count", "replace", 99)

    corners = [(one, label) for one in ((0,) * 5, (1,) * 5, (1, 1, 0, 0, 0)) for label in (0, 1)]
    found = audit_solver(EEM(generations=3), make, Subsets(5, 2), records=corners)
    assert found.passes()
