"""Neighbours as a value: its answers are those of enumerated data sets, and words enter once."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit import (
    Box,
    CentersObjective,
    FacilityObjective,
    KMeans,
    Ledger,
    LinearObjective,
    LogisticRegression,
    Neighbours,
    RecordObjective,
    accuracy_score,
    load,
    save,
    search,
)
from privfit.audit import neighbours as all_neighbours
from privfit.evaluation.roc_plan import Medians
from privfit.linear.newton import Logistic
from privfit.linear.tilts import PerturbedMinimiser
from privfit.privacy.neighbours import ADD_REMOVE, ADJACENCIES, REPLACE
from privfit.privacy.privtree import SplitTree
from privfit.privacy.smooth_medians import SmoothMedians
from privfit.runs.spaces import Reals

BOTH = (REPLACE, ADD_REMOVE)
both = pytest.mark.parametrize("neighbours", BOTH, ids=lambda one: one.relation)

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = (X[:, 0] > 0).astype(int)


# ----------------------------------------------------------------------------------------- answers


def moves(values, neighbours):
    """How far sums over records with these values are apart, for all pairs of neighbours."""
    found = all_neighbours(len(values), 2, neighbours)
    sums = [sum(values[i] for i in data_set) for data_set in found.data_sets]
    return [abs(sums[i] - sums[j]) for i, j in found.pairs]


@both
@given(ends=st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(sorted))
def test_a_span_is_the_farthest_that_a_sum_moves(neighbours, ends):
    low, high = ends
    assert neighbours.span(low, high) == max(moves(range(low, high + 1), neighbours), default=0)


@both
def test_spans_of_arrays_are_those_of_their_numbers(neighbours):
    low, high = np.array([-3.0, 1.0, -5.0]), np.array([2.0, 4.0, -1.0])
    spans = [neighbours.span(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
    assert neighbours.span(low, high).tolist() == spans
    assert isinstance(neighbours.span(1, 2), int)


@both
def test_a_sum_moves_by_as_many_contributions_as_records_change(neighbours):
    corners = np.array(list(itertools.product((-1, 1), repeat=2)))
    found = all_neighbours(len(corners), 2, neighbours)
    sums = np.array([corners[list(data_set)].sum(axis=0) for data_set in found.data_sets])
    most = max(np.linalg.norm(sums[i] - sums[j]) for i, j in found.pairs)
    assert most == pytest.approx(neighbours.changes * np.linalg.norm(corners[0]))


@both
def test_a_size_is_public_where_neighbours_have_the_same(neighbours):
    found = all_neighbours(3, 2, neighbours)
    sizes = {(len(found.data_sets[i]), len(found.data_sets[j])) for i, j in found.pairs}
    assert neighbours.size_is_public == all(one == other for one, other in sizes)
    assert neighbours.replaces == neighbours.size_is_public


# --------------------------------------------------------------------------------------- entrances


def test_a_word_becomes_a_value_and_a_value_stays_one():
    for word, value in zip(ADJACENCIES, BOTH, strict=True):
        assert Neighbours.of(word) == value == Neighbours(word)
        assert Neighbours.of(value) is value
        assert pickle.loads(pickle.dumps(value)) == value
    assert REPLACE != ADD_REMOVE
    assert (REPLACE == None, REPLACE == 1) == (False, False)  # noqa: E711


@pytest.mark.parametrize("word", ["swap", "", None, 3, ["replace"]])
def test_other_words_are_refused(word):
    with pytest.raises(ValueError, match=r"^adjacency \(.*\) must be 'replace' or 'add_remove'"):
        Neighbours.of(word)
    with pytest.raises(ValueError, match=r"^relation \(.*\) must be 'replace' or 'add_remove'; pa"):
        Neighbours.of(word, "relation")


@both
def test_a_value_is_not_compared_with_a_word(neighbours):
    """It would never be equal: what was written for words would halve its noise in silence."""
    for compare in (
        lambda: neighbours == "replace",
        lambda: "replace" == neighbours,
        lambda: neighbours != "add_remove",
        lambda: neighbours in ("replace", "x"),
        lambda: neighbours in {neighbours.relation},
        lambda: {neighbours.relation: 2}.get(neighbours, 1),
    ):
        with pytest.raises(TypeError, match=r"^Neighbours\(.*\) must not be compared with a text"):
            compare()  # fmt: skip


@both
def test_estimators_are_displayed_whichever_was_passed(neighbours):
    """scikit-learn's displays compare parameters with their defaults, which are words."""
    for adjacency in (neighbours, neighbours.relation):
        model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), adjacency=adjacency)
        assert "LogisticRegression" in model._repr_html_()
        assert "LogisticRegression" in repr(model)
    assert np.array_equal(neighbours, neighbours.relation)


def test_an_objective_that_compares_words_is_refused_before_anything_is_charged():
    class Own:
        n_records = 3

        def scores(self, P):
            return np.zeros(len(P), dtype=np.int64)

        prior = scores

        def range(self, P, adjacency):
            return 2 if adjacency == "replace" else 1

        spread = range

    ledger = Ledger(1.0)
    with pytest.raises(TypeError, match=r"must not be compared with a text \('replace'\); ask for"):
        search(Own(), Reals(-1, 1, 1), 1.0, ledger=ledger)
    assert ledger.entries == ()
    Own.range = Own.spread = lambda self, P, neighbours: neighbours.changes
    assert search(Own(), Reals(-1, 1, 1), 1.0, ledger=ledger).release.epsilon == 1.0


ASKED = [
    lambda many: LinearObjective(X, Y, domain=Box(-1, 1), adjacency=many),
    lambda many: LinearObjective(X, Y, domain=Box(-1, 1)).range(np.zeros((1, 3)), many),
    lambda many: CentersObjective(X, 2, Box(-1, 1)).spread(np.zeros((1, 2, 2)), many),
    lambda many: FacilityObjective(X, X[:3], (0, 1)).range([[0], [1]], many),
    lambda many: RecordObjective(X, lambda x, P: x[:, :1] - P, -1, 1).range([0, 1], many),
    lambda many: Ledger(1.0, adjacency=many),
    lambda many: Ledger(1.0).reserve(0.5, adjacency=many),
    lambda many: Ledger(1.0).reserve(0.5).close(many),
    lambda many: LogisticRegression(domain=(-1, 1), classes=[0, 1], adjacency=many).fit(X, Y),
    lambda many: KMeans(2, domain=(-1, 1), adjacency=many).fit(X),
    lambda many: accuracy_score(Y, X[:, 0], 1.0, adjacency=many),
    lambda many: all_neighbours(3, 2, many),
    lambda many: many.changes,
    lambda many: many.replaces,
    lambda many: many.size_is_public,
    lambda many: many.span(0, 1),
]


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("relation", ADJACENCIES)
def test_persons_with_several_rows_are_refused_everywhere_alike(ask, relation):
    with pytest.raises(ValueError, match=r"^rows \(3\) must be 1, since fits bound what a row can"):
        ask(Neighbours(relation, 3))


@both
def test_users_may_pass_either(neighbours):
    P, word = np.array([[1.0, 0.0, 0.5], [0.0, 0.25, -1.0]]), neighbours.relation
    one, other = (LinearObjective(X, Y, domain=Box(-1, 1), adjacency=a) for a in (word, neighbours))
    assert one.range(P, word) == other.range(P, neighbours)
    assert one.unit == other.unit
    first, second = (
        LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], adjacency=a, n_public=300,
                           random_state=1).fit(X, Y)
        for a in (word, neighbours)
    )  # fmt: skip
    assert first.release_.to_json() == second.release_.to_json()
    assert first.release_.adjacency == word
    ledger = Ledger(1.0, adjacency=neighbours)
    assert (ledger.adjacency, ledger.neighbours) == (word, neighbours)
    assert ledger.reserve(0.5, adjacency=neighbours).close(neighbours).adjacency == word


def test_a_model_file_has_the_word(tmp_path):
    model = KMeans(2, 1.0, domain=(-1, 1), adjacency=ADD_REMOVE, n_public=300, random_state=1)
    save(model.fit(X), tmp_path / "model.json")
    assert load(tmp_path / "model.json").adjacency == "add_remove"


# ------------------------------------------------------------------------------------------- files


def test_journals_name_mechanisms_as_they_did():
    """A checkpoint of an earlier version goes on only if a draw is described in the same words."""
    assert repr(SplitTree(0.5, REPLACE, 2, 8)) == (
        "SplitTree(epsilon=0.5, adjacency='replace', roots=2, depth=8)"
    )
    assert repr(Medians(0.5, ADD_REMOVE, 2)) == (
        "Medians(epsilon_each=0.5, adjacency='add_remove', levels=2)"
    )
    assert repr(SmoothMedians(0.5, REPLACE, 2)) == (
        "SmoothMedians(epsilon_each=0.5, adjacency='replace', levels=2)"
    )
    assert repr(PerturbedMinimiser(1.0, 0.0, 4.0, Logistic(), ADD_REMOVE, 0.5, 0.01)) == (
        f"PerturbedMinimiser(epsilon=1.0, delta=0.0, ridge=4.0, loss={Logistic()!r}, "
        "adjacency='add_remove', tolerance=0.5, repair=0.01, shape=None)"
    )
