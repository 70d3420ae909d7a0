"""Model files with solvers of users: they hold what it was, and never decide what is imported."""

from __future__ import annotations

import json
import math
import sys
import threading
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers.own_solvers import (
    ES,
    Hidden,
    Holds,
    MadeOtherwise,
    Nested,
    Plain,
    Remembers,
    RemembersToo,
    SaysMore,
    Schedule,
    best_of_some,
)
from makers.raises import assert_reached, messages_of
from sklearn.base import clone

from privfit import EEM, DeclarationError, FileError, KMeans, LogisticRegression, load, save
from privfit.models import own
from privfit.models.model import check, dumps, loads
from privfit.models.own import SavedSolver

X = np.random.default_rng(3).uniform(-1, 1, (300, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)


def fitted(solver: Any) -> LogisticRegression:
    declared = {"domain": (-1, 1), "classes": [0, 1], "random_state": 1}
    return LogisticRegression(1.0, 1e-6, solver=solver, **declared).fit(X, Y)


MODEL = fitted(ES(step=0.5))
TEXT = dumps(MODEL)
SOLVERS = [ES(step=0.5), best_of_some, Plain(), Nested(Schedule(0.1))]


@pytest.mark.parametrize(
    "solver", SOLVERS, ids=lambda solver: getattr(solver, "__name__", str(solver))
)
def test_a_model_comes_back_with_its_solver_if_that_is_allowed(solver, tmp_path):
    model = fitted(solver)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json", solvers=[ES, best_of_some, Plain, Nested, Schedule])
    assert type(again.solver) is type(solver)
    if not isinstance(solver, Plain):
        assert again.solver == solver
    assert (again.predict(X) == model.predict(X)).all()
    assert again.release_.to_json() == model.release_.to_json()
    assert again.fit(X, Y).release_.verify()
    assert dumps(load(tmp_path / "model.json")) == dumps(model)


def test_without_leave_a_model_predicts_and_says_what_its_solver_was():
    again = loads(TEXT)
    assert (again.predict(X) == MODEL.predict(X)).all()
    assert repr(again.solver) == (
        "<saved solver makers.own_solvers:ES(generations=4, population=20, parents=3, step=0.5)>"
    )
    message = r"solver \(<saved solver .*ES.*\) must be loaded to fit again, .*solvers=\[ES\]"
    for model in (again, clone(again)):
        with pytest.raises(DeclarationError, match=message):
            model.fit(X, Y)
    assert dumps(again) == TEXT
    assert again.set_params(solver=ES()).fit(X, Y).release_.verify()


def test_a_class_that_moved_is_allowed_by_the_name_in_the_file():
    moved = TEXT.replace("makers.own_solvers:ES", "old.place:ES")
    assert isinstance(loads(moved, solvers=[ES]).solver, SavedSolver)
    assert loads(moved, solvers={"old.place:ES": ES}).solver == ES(step=0.5)
    assert loads(fields_within(), solvers=[Nested]).solver.fields["schedule"].path.endswith("dule")


def fields_within() -> str:
    return dumps(fitted(Nested(Schedule(0.1))))


def test_no_file_imports_anything(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for path in ("trap:ES", "os:system", "builtins:eval"):
        text = TEXT.replace("makers.own_solvers:ES", path)
        for solvers in (None, [], [ES], {"makers.own_solvers:ES": ES}):
            model = loads(text, solvers)
            assert isinstance(model.solver, SavedSolver)
            with pytest.raises(DeclarationError, match="must be loaded to fit again"):
                model.fit(X, Y)
    assert "trap" not in sys.modules


def test_the_name_of_an_installed_solver_in_a_file_loads_nothing(monkeypatch):
    """A file must not choose among the packages that happen to be installed."""

    def refuse(**asked: Any) -> Any:
        raise AssertionError("looked for packages")

    held = json.loads(TEXT)
    held["parameters"]["solver"] = held["release"]["settings"]["solver"] = "theirs"
    held["privfit-model"] = 3
    monkeypatch.setattr("privfit.runs.door._entries", refuse)
    model = loads(json.dumps(held))
    assert isinstance(model.solver, SavedSolver)
    with pytest.raises(DeclarationError, match="must be loaded to fit again"):
        model.fit(X, Y)
    assert json.loads(dumps(model))["parameters"]["solver"] == "theirs"
    assert loads(json.dumps(held), {"theirs": ES}).solver == ES()


def test_files_without_such_solvers_have_the_number_they_had():
    means = KMeans(2, 1.0, domain=(-1, 1), solver="local", random_state=1).fit(X)
    assert (check(dumps(means)).version, check(TEXT).version) == (3, 4)


@pytest.mark.parametrize("kind", [Remembers, RemembersToo])
def test_a_file_holds_a_solver_as_it_was_before_the_run(kind):
    model = fitted(kind())
    assert model.solver.history == []  # what ran, and remembers exact scores, was a copy
    model.solver.history.append(1)
    held = json.loads(dumps(model))
    assert held["release"]["settings"]["history"] == []
    again = loads(dumps(model), [kind, Schedule]).solver
    assert again.history == []
    if kind is Remembers:
        assert again == Remembers()
        settings = held["release"]["settings"]
        assert (settings["size"], settings["inner"]) == (5, {"step": 0.3})
    model.set_params(solver=ES()).fit(X, Y)
    assert json.loads(dumps(model))["parameters"]["solver"]["own"] == "makers.own_solvers:ES"
    assert json.loads(dumps(model.set_params(solver=EEM(3)).fit(X, Y)))["privfit-model"] == 3


def test_a_fit_that_fails_leaves_the_solver_of_the_model_that_is_kept():
    model = fitted(ES(step=0.5))
    with pytest.raises(ValueError, match="domain"):
        model.set_params(solver=ES(step=0.1), domain=None).fit(X, Y)
    model.set_params(domain=(-1, 1))
    assert json.loads(dumps(model))["parameters"]["solver"]["fields"]["step"] == 0.5


def test_release_file_and_parameters_say_the_same_fields():
    model = fitted(SaysMore(7))
    assert model.release_.settings["size"] == 7
    assert "other" not in model.release_.settings
    assert json.loads(dumps(model))["parameters"]["solver"]["fields"] == {"size": 7}
    assert [name for name in model.get_params() if name.startswith("solver__")] == ["solver__size"]
    assert model.set_params(solver__size=8).solver == SaysMore(8)
    assert loads(dumps(model), [SaysMore]).solver == SaysMore(7)


def test_parts_of_a_solver_come_back():
    parts = [(1, 2.5, None), ["a", [True]], EEM(generations=7), Schedule(0.2), best_of_some]
    for part in parts:
        again = loads(dumps(fitted(Holds(part))), [Holds, Schedule, best_of_some])
        assert again.solver == Holds(part)
    grid = np.arange(3.0)
    again = loads(dumps(fitted(Holds(grid))), [Holds]).solver
    assert again.part.tolist() == grid.tolist()


# ---------------------------------------------------------------------------------------- refusals


def called(**fields: Any) -> Any:
    raise AssertionError("a file called a function")


def with_function() -> str:
    return other(own=f"{__name__}:called", fields={"a": 1})


def set_afterwards() -> Any:
    solver: Any = Plain()
    solver.step = 3
    return solver


def other(**changes: Any) -> str:
    held = json.loads(TEXT)
    held["parameters"]["solver"] |= changes
    return json.dumps(held)


def local() -> Any:
    class Local(ES):
        pass

    return Local()


REFUSED = [
    *((partial(loads, other(**changes)), "solver must be an import path, a name that is none of p")
      for changes in ({"own": "no path"}, {"own": 3}, {"own": "a:b()"}, {"name": "eem"},
                      {"name": ""}, {"fields": []})),
    (partial(loads, other(more=1)), r"solver \(an object with own, name, fields, more\) must be"),
    (partial(loads, other(name="Other")), r"solver \('Other'\) must be what the release says"),
    (partial(loads, other(fields={"a": 1}), [ES]), "solver must have the fields of makers.own_sol"),
    (partial(loads, TEXT, ["makers.own_solvers:ES"]), r"solvers \('makers.*'\) must be classes"),
    (partial(loads, TEXT, 3), r"solvers \(3\) must be classes or functions"),
    (lambda: dumps(fitted(local())), r"solver \(.*Local\) cannot be written .*cannot be imp"),
    (lambda: dumps(fitted(lambda run: best_of_some(run))), r"solver \(.*<lambda>\) cannot be writ"),
    (lambda: dumps(fitted(Plain().__call__)), r"solver \(method\) cannot be written"),
    (lambda: dumps(fitted(Hidden(1.0))), r"solver \(Hidden\) cannot be written .*settings are"),
    *((partial(lambda solver: dumps(fitted(solver)), solver), r"cannot be written to a model file")
      for solver in (partial(best_of_some), Holds(np.sin), Holds(itemgetter(1)), Holds(len),
                     Holds(threading.Lock()), Holds(partial(max, 3)), MadeOtherwise(1.0),
                     Holds({"a": 1}), Holds(ES), Holds(np.random.default_rng(1)),
                     Holds(math.inf), set_afterwards())),
    (lambda: loads(with_function(), [called]), "solver must have no fields, since .* is a func"),
    (lambda: loads(TEXT).fit(X, Y), "must be loaded to fit again, since a model file imports noth"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_a_file_cannot_hold_is_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert isinstance(caught.value, FileError | DeclarationError)


def test_every_refusal_is_reached():
    assert_reached([Path(own.__file__)], "\n".join(messages_of(call) for call, _ in REFUSED))
