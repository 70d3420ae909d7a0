"""Objectives and scores of users see records; what is reported is what was proposed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from privfit import (
    AskTell,
    Box,
    DeclarationError,
    Gradient,
    Ledger,
    LinearObjective,
    Local,
    Mixed,
    Reals,
    RecordObjective,
    SolverError,
    search,
)
from privfit.base.frozen import frozen
from privfit.privacy.neighbours import Neighbours
from privfit.runs import Run

RECORDS = np.random.default_rng(0).uniform(0.4, 0.6, 50)
LINE = Reals(0, 1, 1)
MARK = 0.123456789  # a record, which no grid has


def write(P: Any) -> None:
    """Write a record into candidates by all means."""
    for array in (P, getattr(P, "base", None)):
        with suppress(AttributeError, ValueError):
            array.setflags(write=True)
        with suppress(TypeError, ValueError):
            array[...] = MARK


def nearness(x: Any, P: Any) -> Any:
    return -np.abs(x[:, None] - P[:, 0])


def writes(x: Any, P: Any) -> Any:
    values = -np.abs(x[:, None] - P[:, 0])
    write(P)
    return values


def writes_moves(x: Any, w: Any, where: Any, what: Any) -> Any:
    values = -np.abs(x[:, None] - (w[0] + what))
    for one in (w, where, what):
        write(one)
    return values


class Writer:
    """A user's objective that writes into whatever it is handed."""

    n_records = len(RECORDS)

    def scores(self, P: Any) -> Any:
        values = -np.rint(1000 * np.abs(RECORDS[:, None] - P[:, 0])).astype(int).sum(axis=0)
        write(P)
        return values

    def prior(self, P: Any) -> Any:
        write(P)
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Any, neighbours: Neighbours, /) -> int:
        write(P)
        return 1001 * neighbours.changes


class Inherits(RecordObjective):
    """A class that inherits from ours, and writes into candidates before it scores them."""

    def scores(self, P: Any) -> Any:
        found = super().scores(P)
        write(P)
        return found

    def prior(self, P: Any) -> Any:
        write(P)
        return super().prior(P)

    def range(self, P: Any, adjacency: Any) -> int:
        write(P)
        return super().range(P, adjacency)

    spread = range

    def moved_by(self, w: Any, *, by: Any) -> Inherits:
        """A method of its own, which returns an objective."""
        for one in (w, by):
            write(one)
        return self


class InheritsLinear(LinearObjective):
    """The same for a fit, which asks for slopes."""

    def scores(self, P: Any) -> Any:
        found = super().scores(P)
        write(P)
        return found

    def slopes(self, w: Any, cap: float) -> Any:
        found = super().slopes(w.copy(), cap)
        write(w)
        return found


class Viewed(Writer):
    """The same with a view that says that it is at a record."""

    def at(self, w: Any) -> Any:
        write(w)
        return _View()


class _View(Writer):
    w = model = np.array([MARK])

    def scores(self, where: Any, what: Any) -> Any:
        for one in (where, what):
            write(one)
        return np.zeros(len(where), dtype=np.int64)

    def prior(self, where: Any, what: Any) -> Any:
        return self.scores(where, what)

    def range(self, where: Any, what: Any, neighbours: Neighbours, /) -> int:  # type: ignore[override]
        self.scores(where, what)
        return 1

    def step(self, where: Any, what: Any) -> None:
        write(what)


OBJECTIVES = [
    RecordObjective(RECORDS, writes, -1.0, 0.0, block=1, n_threads=1),
    RecordObjective(RECORDS, writes, -1.0, 0.0, moves=writes_moves, block=1, n_threads=1),
    Inherits(RECORDS, nearness, -1.0, 0.0, n_threads=1),
    Writer(),
    Viewed(),
]


@pytest.mark.parametrize("solver", ["dpsga", "privgene", "eem", "local", "subsample"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_search_reports_what_it_proposed(objective, solver):
    found = search(objective, LINE, 1.0, solver=solver, random_state=1)
    assert all((one != MARK).all() for one in found.path.generations)
    assert found.release.verify()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_loop_and_a_run_report_what_they_proposed(objective):
    P = np.linspace(0, 1, 9)[:, None]
    with AskTell(objective, LINE, 1.0, generations=1, population=9, parents=2) as door:
        chosen = door.select(P)
        assert np.array_equal(door.path.generations[0], P[chosen])
        assert door.best(P) in P
    run = Run(objective, LINE, Ledger(1.0).reserve(1.0))
    run.plan("selection")
    run.select(P)
    assert np.array_equal(P, np.linspace(0, 1, 9)[:, None])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_objective_of_a_user_cannot_write_into_candidates_of_a_bare_run(objective):
    run = Run(objective, LINE, Ledger(1.0).reserve(1.0))
    P, w = np.linspace(0, 1, 9)[:, None], np.array([0.5])
    for asked in (run.objective.scores, run.objective.prior):
        asked(P)
    run.objective.range(P, run.neighbours)
    view = run.around(w)
    where, what = LINE.all_moves(w, 0.1)
    moves = where.copy(), what.copy()
    view.scores(where, what)
    view.prior(where, what)
    assert np.array_equal(P, np.linspace(0, 1, 9)[:, None])
    assert w == view.w == 0.5
    assert np.array_equal(where, moves[0])
    assert np.array_equal(what, moves[1])


def test_other_methods_of_a_users_objective_get_copies_and_so_does_what_they_make():
    run = Run(OBJECTIVES[2], LINE, Ledger(1.0).reserve(1.0))
    w, by, P = np.array([0.5]), np.array([0.25]), np.array([[0.5], [0.75]])
    made = run.objective.moved_by(w, by=by)
    made.scores(P)
    assert (w, by, P.tolist()) == (0.5, 0.25, [[0.5], [0.75]])
    assert isinstance(run.objective, Inherits)  # as solvers ask
    assert isinstance(made, RecordObjective)


@pytest.mark.parametrize("solver", [Local(scoring="gradient"), Local(scoring="loss"), "gradient"])
def test_a_class_that_inherits_from_ours_is_fitted_as_ours_is(solver):
    """The wrapper does not hide what fits ask for; the answers are the same bits."""
    X = np.random.default_rng(1).uniform(-1, 1, (300, 2))
    solver = Gradient() if solver == "gradient" else solver
    answers = [
        search(
            kind(X, X[:, 0] > 0, "logistic", Box(-1, 1, 2)), Reals(-10, 10, 3), 1.0, 1e-6,
            solver=solver, random_state=1,
        ).answer
        for kind in (LinearObjective, InheritsLinear)
    ]  # fmt: skip
    assert np.array_equal(*answers)


@pytest.mark.parametrize("solver", ["dpsga", "eem"])
@pytest.mark.parametrize(
    ("part", "returns", "message"),
    [
        ("scores", lambda P: np.arange(3), "must be integers, one for each candidate"),
        ("scores", lambda P: np.ones(len(P)), "must be integers, one for each candidate"),
        ("prior", lambda P: np.ones((len(P), 1), int), "must be integers, one for each candidate"),
        ("range", lambda P, n: MARK, "range of an objective must be a whole number of at least 0"),
        ("range", lambda P, n: None, "range of an objective must be a whole number of at least 0"),
    ],
)
def test_what_an_objective_returns_is_checked_in_a_sentence(part, returns, message, solver):
    objective = Writer()
    setattr(objective, part, returns)
    with pytest.raises((SolverError, DeclarationError), match=message) as caught:
        search(objective, LINE, 1.0, solver=solver)
    assert str(MARK) not in str(caught.value)


@pytest.mark.parametrize("kind", [np.float64, np.int32, bool, "U3", object])
def test_a_frozen_copy_cannot_be_written_through(kind):
    values = np.ones((3, 2), kind)[::2].T
    copy = frozen(values)
    write(copy)
    assert np.array_equal(values, np.ones((2, 2), kind))
    if kind is not object:
        assert np.array_equal(copy, values)
    assert frozen([1, 2]) == [1, 2]
    assert frozen(np.empty((0, 3))).shape == (0, 3)


class Renames(Writer):
    """A user's objective that writes a record into what its release would show of it."""

    domain = "public"

    def scores(self, P: Any) -> Any:
        self.domain = f"a record is {MARK}"
        return super().scores(P)


def test_the_domain_of_a_users_objective_is_that_before_the_charge():
    assert search(Renames(), LINE, 1.0, solver="subsample").release.domain == "public"
    ledger = Ledger(1.0)
    with AskTell(
        Renames(), LINE, 1.0, generations=1, population=2, parents=1, ledger=ledger
    ) as door:
        door.select(np.array([[0.0], [1.0]]))
    assert ledger.releases[0].domain == "public"


class Looks(Reals):
    """A user's space, which is asked for its grid before the charge, and asks about records."""

    def on_grid_of(self, objective: Any) -> Any:
        raise ZeroDivisionError(f"told: {objective.scores(np.array([[0.5]]))}")


@pytest.mark.parametrize("space", [Looks(0, 1, 1), Mixed(Looks(0, 1, 1))])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_space_of_a_user_sees_no_records(objective, space):
    ledger, message = Ledger(1.0), "must not be asked about records before the charge"
    with pytest.raises(DeclarationError, match=message):
        search(objective, space, 1.0, solver="subsample", ledger=ledger)
    with pytest.raises(DeclarationError, match=message):
        Run(objective, space, None)
    assert ledger.entries == ()


def test_a_space_of_a_user_is_put_on_the_grid_of_its_objective():
    class Mine(Reals):
        """A class that inherits from ours."""

    X = np.random.default_rng(1).uniform(-1, 1, (30, 2))
    objective = LinearObjective(X, X[:, 0] > 0, "logistic", Box(-1, 1, 2))
    spaces = [Run(objective, kind(-1, 1, 3), None).space for kind in (Reals, Mine)]
    assert spaces[0].units is not None
    assert np.array_equal(spaces[0].units, spaces[1].units)
