"""Paired runs find what one record moves too far, and what leaves by another door.

They compare exact numbers: no test here alarms by chance.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from privfit import (
    Box,
    BudgetError,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    Gradient,
    KMeans,
    LinearObjective,
    Lloyd,
    Local,
    LogisticRegression,
    Release,
    TopK,
    accuracy_score,
)
from privfit.audit import audit_scores, paired, strain, worst_pair
from privfit.evaluation.roc_plan import Medians
from privfit.linear.newton import Logistic, Problem, coding_of
from privfit.linear.tilts import PerturbedMinimiser
from privfit.privacy.mechanisms import AboveThreshold, Mechanism, NoisyMax, PermuteAndFlip
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from privfit.privacy.privtree import SplitTree

# ----------------------------------------------------------------------------------------- strains


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, NoisyMax])
def test_the_strain_of_a_selection_is_its_range_of_log_ratios(kind):
    first, second = [3, 0, 1, 5], [4, 0, 0, 5]
    assert strain(kind(0.7, 4), first, second) == 0.5
    exact = audit_scores([first, second], [(0, 1)], Exponential(0.7, 4))
    assert math.isclose(exact.log_range, 0.5 * 0.7)
    assert strain(TopK(2, 0.7, 4), first, second) == 0.5
    assert strain(kind(0.7, 0), first, second) == math.inf
    assert strain(kind(0.7, 0), first, first) == 0


def test_the_strain_of_noise_is_a_distance_in_sensitivities():
    assert strain(DiscreteLaplace(1.0, 4), [0, 5], [1, 3]) == 0.75
    assert math.isclose(strain(DiscreteGaussian(0.5, 10.0), [0, 0], [3, 4]), 0.5)
    assert math.isclose(strain(GammaVector(1.0, 10.0), [0.0, 0.0], [3.0, 4.0]), 0.5)
    huge = [2**62, -(2**62)]
    assert strain(Exponential(1.0, 2**62), huge, huge[::-1]) == 4


def test_the_strain_of_a_sparse_vector_adds_up_threshold_and_scores():
    passing = AboveThreshold(1.0, most=2, threshold=5, sensitivity=2, range=4, share=0.5)
    assert strain(passing, [0, 0, 0], [2, -2, 0]) == 1.0
    assert strain(passing, [0, 0, 0], [2, 2, 2]) == 0.5  # the threshold alone
    assert strain(passing, [0], [2]) == 0.5


class Counted:
    """Cells that can be counted but not seen, as those of records in parts."""

    def __init__(self, cells):
        self._cells = cells

    def count(self, codes, shift):
        return np.array([(self._cells >> s == c).sum() for c, s in zip(codes, shift, strict=True)])


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_the_strain_of_a_tree_is_the_worst_over_all_trees(adjacency):
    """Every tree of three halvings, by its probability."""
    tree = SplitTree(1.0, Neighbours(adjacency), 0, 3)
    first = np.array([0, 0, 0, 0, 0, 0, 1, 2, 5, 7, 7, 7], dtype=np.uint64)
    second = np.sort(np.append(first[1:], np.uint64(6))) if adjacency == "replace" else first[1:]
    rate = 1.0 / (4 if adjacency == "replace" else 3)

    def halve(cells, code, level):
        count = int(((cells >> np.uint64(3 - level)) == code).sum())
        u = max(-tree.decay, count - level * tree.decay)
        q = math.exp(-rate)
        return q ** (1 - u) / (1 + q) if u <= 1 else 1 - q**u / (1 + q)

    def subtrees(code, level):
        """Pairs of probabilities, of every subtree below a cell."""
        if level == 3:
            return [(1.0, 1.0)]
        p, q = (halve(cells, code, level) for cells in (first, second))
        below = itertools.product(subtrees(2 * code, level + 1), subtrees(2 * code + 1, level + 1))
        return [(1 - p, 1 - q), *((p * a * b, q * c * d) for (a, c), (b, d) in below)]

    found = subtrees(0, 0)
    assert math.isclose(math.fsum(p for p, _ in found), 1)
    worst = max(abs(math.log(p / q)) for p, q in found)
    assert math.isclose(strain(tree, first, second), worst, rel_tol=1e-9)
    assert 0.3 < worst <= 1
    assert strain(tree, Counted(first), Counted(second)) == strain(tree, first, second)


def test_the_strain_of_medians_counts_both_cells_that_a_record_moves_between():
    medians = Medians(0.5, REPLACE, 2)
    first, second = np.zeros((2, 8), dtype=np.int64)
    first[[0, 3, 4, 7]] = 1, 2, 2, 1
    second[:] = first
    second[[0, 7]] = 0, 2
    assert strain(medians, first, second) == 1.0
    assert strain(medians, first, second, np.array([0, 2, 4, 6, 8])) == 1.0
    assert strain(Medians(0.5, ADD_REMOVE, 2), first, second) == 2.0


@pytest.mark.slow
def test_the_strain_of_a_tilted_minimiser_is_that_of_its_density():
    """One column: densities by hand, of noise exp(-beta l2(b)) and of the Hessian."""
    domain, ridge = Box(-1, 1, 1), 2.0
    tables = [([[1.0], [0.5]], [1, 0]), ([[-1.0], [0.5]], [1, 0])]
    problems = [Problem(LinearObjective(*t, "logistic", domain), Logistic(), ridge) for t in tables]
    mechanism = PerturbedMinimiser(1.0, 0.0, ridge, Logistic(), REPLACE, 2.0**-16, 0.01)
    A = coding_of(domain).matrix.toarray()

    def log_density(table, u):
        x = np.c_[np.array(table[0]), np.ones(2)] @ A.T * (2 * np.array(table[1])[:, None] - 1)
        s = scipy.special.expit(-x @ u)
        tilt = x.T @ s - ridge * u
        hessian = ridge * np.eye(2) + (x.T * (s * (1 - s))) @ x
        return -np.linalg.norm(tilt) / mechanism.scale + np.linalg.slogdet(hessian)[1]

    points = np.random.default_rng(0).normal(scale=30, size=(2000, 2))
    worst = max(abs(log_density(tables[0], u) - log_density(tables[1], u)) for u in points)
    found = strain(mechanism, *problems)
    assert 0.95 * (worst + 0.01) < found <= 1  # two thousand places at random are no worse
    at = log_density(tables[1], points[0]) - log_density(tables[0], points[0])
    assert strain(mechanism, *problems, points[0]) >= abs(at)


def test_a_mechanism_without_a_rule_is_refused_and_may_get_one():
    class Mine(Mechanism):
        pass

    with pytest.raises(TypeError, match=r"mechanism \(Mine\) must have a rule; pass one by privf"):
        strain(Mine(), 0, 1)
    strain.register(Mine, lambda mechanism, first, second, output=None: 0.25)
    assert strain(Mine(), 0, 1) == 0.25


# ------------------------------------------------------------------------------------- paired runs


def total(noise, ledger, random_state, value):
    return ledger.reserve(1.0).release(noise, [value], random_state)


def test_a_paired_run_shows_who_released_what():
    def run(rows, ledger, random_state):
        return accuracy_score(rows, [0.9] * 4, 1.0, ledger=ledger, random_state=random_state)

    found = paired(run, [0, 1, 1, 1], [1, 1, 1, 1])
    assert found.passes()
    assert found.finds == found.strain == 1.0
    [step] = found.steps
    assert step.place == "privfit.evaluation.roc.accuracy_score"
    assert step.mechanism == "DiscreteLaplace(epsilon=1.0, sensitivity=1)"
    assert (step.event.kind, step.event.parameter) == ("pure", 1.0)


def test_a_charge_that_does_not_cover_the_draw_is_found():
    class Cheap(DiscreteLaplace):
        @property
        def event(self):
            return Exponential(self.epsilon / 2, 1).event

    found = paired(lambda x, *rest: total(Cheap(1.0, 1), *rest, x), 0, 1)
    assert found.strain == 2.0
    assert not found.passes()


LEAKS = {
    "answers of the two runs differ": lambda x, *rest: (total(DiscreteLaplace(1, 1), *rest, x), x),
    "warnings of the two runs differ": lambda x, *rest: warnings.warn(f"{x}", stacklevel=1),
    "errors of the two runs differ": lambda x, *rest: [0][x],
    "the second run releases more than the first":
        lambda x, *rest: [total(DiscreteLaplace(1, 1), *rest, 0) for _ in range(x + 1)],
    "the second run releases less than the first":
        lambda x, *rest: [total(DiscreteLaplace(1, 1), *rest, 0) for _ in range(2 - x)] and None,
    "release 1 is DiscreteLaplace(epsilon=1, sensitivity=1) in one run and":
        lambda x, *rest: total(DiscreteLaplace(1, 1 + x), *rest, 0),
}  # fmt: skip


@pytest.mark.parametrize("text", LEAKS)
def test_what_leaves_by_another_door_is_found(text):
    found = paired(LEAKS[text], 0, 1)
    assert not found.passes()
    assert found.differences[0].startswith(text)
    assert paired(LEAKS[text], 0, 0).passes()
    assert paired(LEAKS[text], 0, 0).finds == math.inf


def test_values_of_another_shape_are_found():
    def run(x, ledger, random_state):
        ledger.reserve(1.0).release(DiscreteLaplace(1, 1), np.zeros(x, dtype=int), random_state)

    found = paired(run, 1, 2)
    assert found.differences == ("the values of release 1 differ in shape",)


def test_a_run_that_fails_on_the_first_table_says_so():
    with pytest.raises(IndexError):
        paired(LEAKS["errors of the two runs differ"], 1, 0)
    with pytest.raises(ValueError, match="pairs must hold at least one pair of tables; pass"):
        worst_pair(total, [])


def test_the_budget_of_a_run_holds_in_its_audit():
    def run(x, ledger, random_state):
        grant = ledger.reserve(1.0)
        return [grant.release(DiscreteLaplace(1.0, 1), [x], random_state) for _ in range(2)]

    with pytest.raises(BudgetError, match="costs epsilon 2"):
        paired(run, 0, 0)


def fit(solver):
    def run(table, ledger, random_state):
        model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=solver,
                                   ledger=ledger, random_state=random_state)  # fmt: skip
        return model.fit(*table)

    return run


RECORD = st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.integers(0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("solver", [Local(generations=4), Gradient(steps=3)], ids=["local", "grad"])
@given(rows=st.lists(RECORD, min_size=1, max_size=12), other=RECORD, seed=st.integers(0, 9))
def test_no_two_neighbours_strain_a_fit_too_much(solver, rows, other, seed):
    tables = [(np.array(t)[:, :2], np.array(t)[:, 2].astype(int))
              for t in (rows, [other, *rows[1:]])]  # fmt: skip
    assert paired(fit(solver), *tables, seed=seed).passes()


def test_a_release_and_its_model_do_not_depend_on_the_taped_ledger():
    X, y = np.array([[0.5, 0.1], [-0.5, 0.3]] * 10), np.array([0, 1] * 10)
    seen = []

    def run(table, ledger, random_state):
        seen.append(fit(Local(generations=3))(table, ledger, random_state))
        return seen[-1]

    assert paired(run, (X, y), (X, y)).passes()
    assert isinstance(seen[0].release_, Release)
    assert seen[0].release_.verify()


# ------------------------------------------------------------------------------ faults as they were


def by_value(column, levels):
    """The place of each value among declared levels, each value by itself."""
    places = {level: place for place, level in enumerate(levels)}
    return [places.get(value, len(levels)) for value in column]


def through_an_array(column, levels):
    """The same, of a column that numpy has made one type of: one text makes texts of all."""
    return by_value(np.asarray(column).tolist(), levels)


def clusters(read, levels):
    def run(table, ledger, random_state):
        X = np.eye(len(levels) + 1)[read(table, levels)]
        return KMeans(2, 0.1, domain=(0, 1), solver=Lloyd(steps=2), ledger=ledger,
                      random_state=random_state).fit(X)  # fmt: skip

    return run


def test_one_record_that_recodes_all_others_is_found():
    first, second = [1] * 50 + [2] * 50, [1] * 50 + [2] * 49 + ["x"]
    assert paired(clusters(by_value, [1, 2]), first, second).passes()
    assert paired(clusters(through_an_array, [1, 2]), first, second).strain > 10


def cells_of(text, levels):
    [column] = zip(*csv.reader(io.StringIO(text)), strict=True)
    return by_value(column, [str(level) for level in levels])


def typed_cells_of(text, levels):
    """A reader that infers: numbers if all cells are, and NA is missing where nothing else is."""
    [column] = zip(*csv.reader(io.StringIO(text)), strict=True)
    if all(cell.isdigit() or cell == "NA" for cell in column):
        column = [None if cell == "NA" else int(cell) for cell in column]
    return by_value(column, levels)


@pytest.mark.parametrize(
    ("levels", "cells", "odd"),
    [([1, 2], ["1"] * 50 + ["2"] * 50, "x"), (["NA", "EU"], ["NA"] * 100, "EU")],
)
def test_types_that_are_inferred_from_a_file_are_found(levels, cells, odd):
    first, second = "\n".join(cells), "\n".join([*cells[:-1], odd])
    assert paired(clusters(cells_of, levels), first, second).passes()
    assert paired(clusters(typed_cells_of, levels), first, second).strain > 10


def minimiser(X, y, ridge):
    """Of the logistic loss with a ridge, by Newton's method."""
    signed = np.c_[X, np.ones(len(X))] * (2 * y[:, None] - 1)
    w = np.zeros(signed.shape[1])
    for _ in range(50):
        s = scipy.special.expit(-signed @ w)
        gradient = ridge * w - signed.T @ s
        w = w - np.linalg.solve(ridge * np.eye(len(w)) + (signed.T * (s * (1 - s))) @ signed,
                                gradient)  # fmt: skip
    return w


def convex_fit(certified):
    """Output perturbation of records in the unit ball, with an answer 0 where it is not certain."""

    def run(table, ledger, random_state):
        w = minimiser(*table, ridge=1.0)
        if not certified(w):
            w = np.zeros(len(w))
        return ledger.reserve(1.0).release(GammaVector(1.0, 2.0), w, random_state)

    return run


def test_an_answer_of_zero_where_a_certificate_fails_is_found():
    """The bound on rounding errors grows with the weights: one label may decide whether it holds"""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.7, 0.7, (2000, 1))
    y = (X[:, 0] + rng.normal(0, 0.2, 2000) > 0).astype(int)
    other = y.copy()
    other[0] = 1 - other[0]
    sizes = sorted(np.linalg.norm(minimiser(X, labels, 1.0)) for labels in (y, other))
    between = (sizes[0] + sizes[1]) / 2
    assert paired(convex_fit(lambda w: True), (X, y), (X, other)).passes()
    found = paired(convex_fit(lambda w: np.linalg.norm(w) < between), (X, y), (X, other))
    assert found.strain > 2
