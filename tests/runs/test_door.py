"""One door for all solvers: what a user writes works everywhere, or is refused in a sentence."""

from __future__ import annotations

import importlib
import math
import pickle
import re
import sys
import textwrap
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from makers.own_solvers import ES, FAILING, Holds, Remembers, RemembersToo, best_of_some, broken
from makers.raises import assert_reached, messages_of
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import privfit
from privfit import (
    EEM,
    Bits,
    Box,
    Budget,
    CentersObjective,
    Checkpoint,
    Event,
    FacilityObjective,
    Gradient,
    Greedy,
    Hybrid,
    KMeans,
    KMedian,
    Ledger,
    LinearObjective,
    LinearSVC,
    Lloyd,
    Local,
    LogisticRegression,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivGene,
    Reals,
    RecordObjective,
    SelectFeatures,
    SolverError,
    Stream,
    Subsets,
    TopK,
    UniformGrid,
    search,
    sweep,
)
from privfit._kernels.random import BitSource
from privfit.clustering import kmeans, kmedian, medians
from privfit.features import selection
from privfit.linear import methods as linear
from privfit.privacy.neighbours import Neighbours
from privfit.records import sums
from privfit.runs import Draws, Path, Run, candidates, door
from privfit.runs.door import FACTS, GROUP, OURS, Guest, settings_of
from privfit.runs.settings import Settings
from privfit.searches.solvers import SOLVERS

X = np.random.default_rng(3).uniform(-1, 1, (400, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
DECLARED = {"domain": (-1, 1), "classes": [0, 1], "random_state": 1}
BOX = Reals(-1, 1, 1)


def nearness(x: Any, P: Any) -> Any:
    return -np.abs(x[:, :1] - P[:, 0]) / 2


OWN = RecordObjective(X, nearness, -1.0, 0.0)


# ------------------------------------------------------------------------------------- everywhere


@pytest.mark.parametrize("solver", [ES(), best_of_some])
def test_a_solver_without_facts_works_in_every_estimator_and_search(solver):
    name = getattr(solver, "__name__", "ES")
    found = search(OWN, BOX, 1.0, solver=solver, random_state=1)
    releases = [found.release]
    for kind in (LogisticRegression, LinearSVC):
        releases.append(kind(1.0, 1e-6, solver=solver, **DECLARED).fit(X, Y).release_)
    means = KMeans(2, 1.0, domain=(-1, 1), solver=solver, random_state=1)
    releases.append(means.fit(X).release_)
    places = KMedian(2, 1.0, facilities=X[:9], domain=(-1, 1), random_state=1)
    if solver is best_of_some:  # a set has no mean
        releases.append(places.set_params(solver=solver).fit(X).release_)
        select = SelectFeatures(1.0, classes=[0, 1], k=1, solver=solver, random_state=1)
        releases.append(select.fit(X > 0, Y).release_)
    for release in releases:
        assert release.verify()
        assert release.settings["solver"] == name


def test_its_fields_stand_in_the_release():
    settings = search(OWN, BOX, 1.0, solver=ES(step=0.25), random_state=1).release.settings
    assert settings["step"] == 0.25
    assert next(iter(settings)) == "solver"


@pytest.mark.parametrize("kind", [Remembers, RemembersToo])
def test_what_it_writes_into_its_fields_while_it_runs_is_not_released(kind):
    """They may be exact scores; so the fields are read before the charge, and never again."""
    releases = [
        search(OWN, BOX, 1.0, solver=kind(), random_state=1).release,
        LogisticRegression(1.0, 1e-6, solver=kind(), **DECLARED).fit(X, Y).release_,
        KMeans(2, 1.0, domain=(-1, 1), solver=kind(), random_state=1).fit(X).release_,
        KMedian(2, 1.0, facilities=X[:9], solver=kind(), domain=(-1, 1)).fit(X).release_,
    ]
    for release in releases:
        assert release.settings["history"] == []
        if kind is Remembers:
            assert (release.settings["size"], release.settings["inner"]) == (5, {"step": 0.3})


@pytest.mark.parametrize("kind", [Remembers, RemembersToo])
def test_what_it_keeps_of_one_run_is_not_in_the_release_of_the_next(kind):
    """What runs is a copy, which is lost with all that it kept."""
    ones = {"domain": (-1, 1), "random_state": 1}
    runs = [
        lambda solver: search(OWN, BOX, 1.0, solver=solver, random_state=1).release,
        lambda solver: LogisticRegression(1.0, 1e-6, solver=solver, **DECLARED).fit(X, Y).release_,
        lambda solver: KMeans(2, 1.0, solver=solver, **ones).fit(X).release_,
        lambda solver: KMedian(2, 1.0, facilities=X[:9], solver=solver, **ones).fit(X).release_,
    ]
    for run in runs:
        solver = kind()
        first, second = run(solver), run(solver)
        assert first.settings == second.settings
        assert solver.history == []


def test_a_method_of_features_keeps_nothing_either():
    @dataclass(frozen=True, repr=False)
    class Keeps(OwnMethod):
        seen: list[Any] = field(default_factory=list)

        def __call__(self, problem: Any, paid: Any) -> Any:
            self.seen.append(problem.scores(paid.source).tolist())
            return selection.Selected(super().__call__(problem, paid).features, None, {"a": 1})

    ones, method = (X > 0).astype(int), Keeps()
    for _ in range(2):
        fitted = SelectFeatures(1.0, classes=[0, 1], solver=method).fit(ones, Y)
        assert fitted.release_.settings["seen"] == []
        assert "a" not in fitted.release_.settings  # a note that was made after it looked


@dataclass
class SharesALock(Remembers):
    """A solver that cannot be copied as a whole, and remembers all the same."""

    lock: Any = field(default_factory=threading.Lock)
    both: Any = field(default_factory=lambda: ({"of": threading.Lock()},))


def test_a_part_that_cannot_be_copied_is_shared_and_all_others_are_not():
    solver = SharesALock()
    for _ in range(2):
        settings = search(OWN, BOX, 1.0, solver=solver, random_state=1).release.settings
        assert (settings["size"], settings["history"]) == (5, [])
        assert settings["both"] == ({"of": "_thread.lock"},)
    assert (solver.size, solver.history, solver.inner.step) == (5, [], 0.3)


@dataclass
class CopiesItselfInPart(Remembers):
    """A solver with a rule of its own for copies, which shares what it remembers."""

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class RemembersInItsClass(RemembersToo):
    """A solver that remembers in a field of its class, which copies of it share."""

    history: Any = []  # noqa: RUF012

    def __init__(self) -> None:
        """It has nothing of its own."""


@pytest.mark.parametrize("kind", [CopiesItselfInPart, RemembersInItsClass])
def test_what_a_copy_would_share_is_copied_too(kind):
    solver = kind()
    for _ in range(2):
        settings = search(OWN, BOX, 1.0, solver=solver, random_state=1).release.settings
        assert settings["history"] == []
    assert solver.history == []


@dataclass
class OneOfAKind(CopiesItselfInPart):
    """A solver of which there is only one."""

    def __copy__(self) -> Any:
        return self


@dataclass
class CannotBeCopied(Remembers):
    """A solver that refuses to be copied."""

    def __reduce_ex__(self, version: Any) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", [CannotBeCopied, OneOfAKind])
def test_a_solver_that_cannot_be_copied_is_refused_before_the_charge(kind):
    ledger, message = Ledger(1.0), rf"solver \({kind.__name__}\) must be copied before it runs"
    with pytest.raises(TypeError, match=message):
        search(OWN, BOX, 1.0, solver=kind(), ledger=ledger)
    assert ledger.entries == ()


def test_a_field_without_a_plain_value_is_shown_by_its_type():
    parts = {"_thread.lock": threading.Lock(), "makers.own_solvers.best_of_some": best_of_some}
    for name, part in parts.items():
        ledger = Ledger(1.0)
        found = search(OWN, BOX, 1.0, solver=Holds([part, {1: part}]), ledger=ledger)
        assert found.release.settings["part"] == [name, {"1": name}]
        assert found.release.to_json() == ledger.releases[0].to_json()


def endless() -> list[Any]:
    """A list that contains itself."""
    found: list[Any] = []
    found.append(found)
    return found


def test_fields_that_cannot_be_read_are_refused_before_the_charge():
    ledger = Ledger(1.0)
    with pytest.raises(TypeError, match=r"solver \(Holds\) must have fields that can be read, but"):
        search(OWN, BOX, 1.0, solver=Holds(endless()), ledger=ledger)
    assert ledger.remaining.epsilon == 1.0


# ------------------------------------------------------------------------------------------- notes


def notes_late(run: Run[Any, Any]) -> Any:
    path = best_of_some(run)
    run.note(best=int(run.objective.scores(path.generations[0])[0]))
    return run.path()


def notes_after_a_view(run: Run[Any, Any]) -> Any:
    view = run.around(run.space.middle)
    run.note(best=int(view.scores(*run.space.all_moves(view.w, 0.1))[0]))
    return best_of_some(run)


@pytest.mark.parametrize("solver", [notes_late, notes_after_a_view])
def test_nothing_is_noted_after_a_look_at_records(solver):
    ledger = Ledger(1.0)
    with pytest.raises(SolverError, match=r"run\.note takes settings before run\.objective or"):
        search(OWN, BOX, 1.0, solver=solver, ledger=ledger)
    assert "best" not in ledger.releases[0].settings
    with pytest.raises(ValueError, match=r"must be noted before run\.objective .*; call run\.no"):
        solver(bare_run())


def test_what_is_noted_before_a_look_is_released_as_it_was_then():
    def notes(run: Run[Any, Any]) -> Any:
        first: list[Any] = [1]
        run.note(first=first)
        path = best_of_some(run)
        run.note(second=2)  # of what was selected, which is public
        best = int(run.objective.scores(path.generations[0])[0])
        for noted in (first, path.notes["first"], run.notes["first"]):
            noted.append(best)
        return run.path()

    settings = search(OWN, BOX, 1.0, solver=notes).release.settings
    assert (settings["first"], settings["second"]) == ([1], 2)


def test_a_path_that_is_made_by_hand_has_the_notes_of_its_run_alone():
    def by_hand(run: Run[Any, Any]) -> Any:
        run.note(known=1)
        path = best_of_some(run)
        best = int(run.objective.scores(path.generations[0])[0])
        return Path(path.generations, notes={"best": best, "known": best})

    found = search(OWN, BOX, 1.0, solver=by_hand)
    assert found.path.notes == {"known": 1}
    assert found.release.settings["known"] == 1
    assert "best" not in found.release.settings


def test_a_path_that_is_made_by_hand_has_the_steps_and_the_budget_of_its_run_alone():
    def by_hand(run: Run[Any, Any]) -> Any:
        path = best_of_some(run)
        best = abs(int(run.objective.scores(path.generations[0])[0]))
        own = {"steps": (Draws((), best),), "before": (Event("pure", 1.0, best),)}
        return Path(path.generations, budget=Budget(float(best)), **own)

    path = search(OWN, BOX, 1.0, solver=by_hand).path
    usual = search(OWN, BOX, 1.0, solver=best_of_some).path
    assert (path.steps, path.before, path.budget) == (usual.steps, usual.before, usual.budget)
    assert path.to_dict()["generations"][0]["range"] == usual.steps[0].range


def test_a_path_of_other_generations_than_were_reported_has_no_steps():
    def twice(run: Run[Any, Any]) -> Any:
        return Path(2 * best_of_some(run).generations)

    path = search(OWN, BOX, 1.0, solver=twice).path
    assert (len(path.generations), path.steps) == (2, ())
    assert len(path.to_frame()) == 2


class ChangesItsAverage:
    """A solver that takes its average from scores while it runs."""

    average = 0.25

    def __call__(self, run: Run[Any, Any]) -> Any:
        self.average = 1 / abs(int(run.objective.scores(run.space.middle[None])[0]))
        return ES()(run)


def test_the_average_of_an_ended_run_is_that_before_it_began():
    ends = {"callback": lambda generation: generation.index == 2}
    assert search(OWN, BOX, 1.0, solver=ChangesItsAverage(), **ends).path.average == 0.25


@pytest.mark.parametrize("kind", [OutputPerturbation, ObjectivePerturbation])
def test_a_class_that_inherits_notes_all_that_ours_does(kind):
    """Ours may note what they drew; predictions need some of it."""
    mine = type("Mine", (kind,), {"__module__": __name__})
    X = np.random.default_rng(3).uniform(2, 3, (300, 2))  # away from 0, so that they are centred
    settings = [
        LogisticRegression(
            1.0, 1e-6, domain=(2, 3), classes=[0, 1], solver=solver, random_state=1
        ).fit(X, X[:, 0] > 2.5).release_.settings
        for solver in (kind(), mine())
    ]  # fmt: skip
    assert settings[0].keys() == settings[1].keys()
    assert "origin" in settings[1]


def test_its_models_of_several_classes_share_the_budget():
    model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1, 2], solver=ES(),
                               calibrate=False)  # fmt: skip
    model.fit(X, Y + (X[:, 1] > 0.5))
    assert model.coef_.shape == (3, 2)
    assert sum(event.count for event in model.release_.events) == 3 * 12
    assert model.release_.verify()


def test_it_takes_streams_with_the_same_result():
    whole = LogisticRegression(1.0, 1e-6, solver=ES(), **DECLARED).fit(X, Y)
    parts = LogisticRegression(1.0, 1e-6, solver=ES(), **DECLARED).fit(Stream(X), Y)
    assert np.array_equal(whole.coef_, parts.coef_)


def test_it_is_replayed_from_a_checkpoint(tmp_path):
    def run() -> Any:
        with Checkpoint(tmp_path / "journal", 1.0) as journal:
            return search(OWN, BOX, 1.0, solver=ES(), ledger=journal.ledger,
                          random_state=journal.coins)  # fmt: skip

    first, again = run(), run()
    assert np.array_equal(first.answer, again.answer)
    assert again.release.epsilon == 1.0


def test_it_is_a_parameter_that_can_be_cloned_and_searched():
    model = LogisticRegression(1.0, 1e-6, solver=ES(step=0.5), **DECLARED)
    assert model.get_params()["solver__step"] == 0.5
    assert "solver__step" not in model.get_params(deep=False)
    assert clone(model).solver == ES(step=0.5)
    changed = clone(model).set_params(solver__step=0.25)
    assert (changed.solver, model.solver) == (ES(step=0.25), ES(step=0.5))
    with pytest.raises(
        ValueError, match="stepz must be a parameter of ES; pass one of generations"
    ):
        model.set_params(solver__stepz=1)
    grid = GridSearchCV(model, {"solver__step": [0.1, 0.5], "solver__parents": [2]}, cv=2)
    assert grid.fit(X, Y).best_estimator_.solver.parents == 2
    assert pickle.loads(pickle.dumps(model.fit(X, Y))).solver == model.solver
    assert clone(LogisticRegression(solver=best_of_some)).solver is best_of_some


def test_sweeps_take_it():
    template = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=ES())
    found = sweep(template, X, Y, [0.5, 1.0], public=True, seeds=2)
    assert "ES(" in found.settings


@dataclass(frozen=True, repr=False)
class OwnMethod(selection.SelectionMethod):
    """Peels one feature; or returns what it likes."""

    answer: Any = None

    def check(self, problem: Any, budget: Any) -> None:
        """Refuse nothing."""

    def __call__(self, problem: Any, paid: Any) -> Any:
        noise = TopK(1, paid.budget.epsilon, problem.range)
        paid.plan(noise.event)
        chosen = paid.release(noise, problem.scores(paid.source))
        return selection.Selected(chosen) if self.answer is None else self.answer


ASKED = [
    lambda problem: problem.scores(BitSource(0)),
    lambda problem: problem.counts(BitSource(0)),
    lambda problem: problem.records.counts(),
    lambda problem: problem.records.n_records,
    lambda problem: problem.records.sums.records,
]


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("base", [OwnMethod, selection.Peeling])
def test_a_check_of_a_method_of_ones_own_sees_no_records(base, ask):
    class Checks(base):
        def check(self, problem: Any, budget: Any) -> None:
            raise ZeroDivisionError(f"told: {ask(problem)}")

    ledger = Ledger(1.0)
    method = Checks(**({"k": 1} if base is selection.Peeling else {}))
    with pytest.raises(ValueError, match="must not be asked about records before the charge"):
        SelectFeatures(1.0, classes=[0, 1], solver=method, ledger=ledger).fit(X > 0, Y)
    assert ledger.entries == ()


def test_a_check_of_a_method_of_ones_own_knows_what_is_public():
    class Checks(selection.Peeling):
        def check(self, problem: Any, budget: Any) -> None:
            super().check(problem, budget)
            raise ZeroDivisionError(f"{problem.d} {problem.bound} {problem.records.n_classes}")

    with pytest.raises(ZeroDivisionError, match=f"{X.shape[1]} {len(X)} 2"):
        SelectFeatures(1.0, classes=[0, 1], solver=Checks(1)).fit(X > 0, Y)


def test_a_method_that_inherits_from_ours_is_not_ours():
    class Mine(selection.Peeling):
        pass

    fitted = SelectFeatures(1.0, classes=[0, 1], solver=Mine(1)).fit(X > 0, Y)
    assert fitted.release_.settings["solver"] == "Mine"


def test_features_are_selected_by_a_method_of_ones_own(tmp_path):
    ones = (X > 0).astype(int)
    select = SelectFeatures(1.0, classes=[0, 1], solver=OwnMethod(), random_state=1).fit(ones, Y)
    assert select.release_.verify()
    assert select.release_.settings["solver"] == "OwnMethod"
    ledger = Ledger(1.0)
    for wrong in (3, selection.Selected(np.array([0, 0])), selection.Selected(np.array([9]))):
        ledger = Ledger(1.0)
        broken = SelectFeatures(1.0, classes=[0, 1], solver=OwnMethod(wrong), ledger=ledger)
        with pytest.raises(SolverError, match="must be a Selected with different features below 2"):
            broken.fit(ones, Y)
        assert len(ledger.releases) == 1


# ------------------------------------------------------------------------------------------- facts


def test_facts_that_are_not_stated_have_the_defaults_of_settings():
    guest, usual = Guest(best_of_some), Settings()
    for name in FACTS:
        if name not in ("space_needs", "bounds_codes", "rows_held"):
            assert getattr(guest, name) == getattr(usual, name)
    assert guest.bounds_codes(None) is False
    assert guest.rows_held(5, 1) == 0
    assert guest.space_needs == ("sample",)
    assert set(FACTS) == {
        name for name in vars(Settings) if name[0] != "_" and name not in ("size", "check")
    }


def test_a_stream_leaves_memory_to_the_rows_that_a_solver_holds():
    class Wide(ES):
        def rows_held(self, width, n_threads):
            return 1e9

    model = LogisticRegression(1.0, 1e-6, solver=Wide(), **{**DECLARED, "domain": Box(-1, 1, 2)})
    with pytest.raises(ValueError, match="and for a model of up to 24000 MB"):
        model.fit(Stream(X, memory_limit="9GB"), Y)


@pytest.mark.parametrize("rows", [
    math.nan, math.inf, -1, None, "many", True, 10**400, np.float64(1e308),
], ids=lambda rows: type(rows).__name__)  # fmt: skip
@pytest.mark.parametrize("where", [np.asarray, Stream])
def test_rows_held_must_be_a_number(rows, where):
    class Odd(ES):
        def rows_held(self, width, n_threads):
            return rows

    ledger = Ledger(1.0, 1e-6)
    model = LogisticRegression(1.0, 1e-6, solver=Odd(), ledger=ledger, **DECLARED)
    message = (
        rf"rows_held \({re.escape(repr(rows))}\) of the solver must return a number of rows, 0 or "
        "more; leave it out, or correct it"
    )
    with pytest.raises(TypeError, match=message) as refused:
        model.fit(where(X), Y)
    assert isinstance(refused.value, privfit.PrivfitError)
    assert ledger.spent.epsilon == 0


def test_facts_that_are_stated_count():
    class Narrow(ES):
        largest_weight = 0.5
        counts_errors = True
        name = "narrow"

    model = LogisticRegression(1.0, 1e-6, solver=Narrow(), **DECLARED).fit(X, Y)
    assert np.abs(model.path_.answer).max() <= 0.5
    assert model.release_.settings["solver"] == "narrow"

    class Ordered(ES):
        needs_order = True

    with pytest.raises(ValueError, match=r"solver \('Ordered'\) needs all records at once"):
        LogisticRegression(1.0, solver=Ordered(), **DECLARED).fit(Stream(X), Y)

    class Sized(ES):
        needs_size, without_size = True, "Sized(steps=...)"

    with pytest.raises(ValueError, match=r"n_public must be given .* or Sized\(steps=\.\.\.\)"):
        search(OWN, BOX, 1.0, solver=Sized(), adjacency="add_remove")


def test_a_solver_that_leaves_the_delta_leaves_its_fit_a_pure_budget():
    class Pure(ES):
        leaves_delta = True

    fits = [LogisticRegression(1.0, delta, solver=Pure(), **DECLARED).fit(X, Y)
            for delta in (1e-6, 0.0)]  # fmt: skip
    assert fits[0].release_.events == fits[1].release_.events
    assert fits[0].release_.delta == 1e-6
    assert np.array_equal(fits[0].coef_, fits[1].coef_)

    class Wrong(ES):
        leaves_delta = 1

    with pytest.raises(TypeError, match=r"leaves_delta \(1\) of solver 'Wrong' must be True or Fa"):
        LogisticRegression(1.0, solver=Wrong(), **DECLARED).fit(X, Y)


def test_settings_that_inherit_from_ours_are_not_ours():
    class Mine(EEM):
        def __call__(self, run: Run[Any, Any]) -> Any:
            return best_of_some(run)

    assert search(OWN, BOX, 1.0, solver=Mine(), random_state=1).release.settings["solver"] == "Mine"


def test_the_names_of_all_our_solvers_are_kept_for_them():
    tables = (SOLVERS, linear.METHODS, linear.RENAMED, kmeans.METHODS, kmedian.METHODS,
              medians.METHODS, selection.METHODS)  # fmt: skip
    assert OURS == {"auto", *(name for table in tables for name in table)}


# ------------------------------------------------------------------------------------- entry points


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Distributions that are installed on a path of their own, with solvers by name."""

    def install(package: str, points: dict[str, str], code: str) -> None:
        (tmp_path / f"{package}.py").write_text(textwrap.dedent(code))
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {value}" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    for name in [name for name in sys.modules if name.startswith("door_test_")]:
        del sys.modules[name]


CODE = """
    from dataclasses import dataclass
    from makers.own_solvers import best_of_some

    @dataclass
    class Some:
        steps: int = 1

        def __call__(self, run):
            return best_of_some(run)
"""


def test_a_package_offers_solvers_by_name(installed):
    points = {"some": "door_test_a:Some", "one": "door_test_a:best_of_some", "eem": "door_test_a:S"}
    installed("door_test_a", points, CODE)
    assert search(OWN, BOX, 1.0, solver="eem", random_state=1).release.settings["solver"] == "eem"
    with pytest.raises(ValueError, match=r"must be one of local, .*, one, some, settings such as"):
        search(OWN, BOX, 1.0, solver="other")
    assert "door_test_a" not in sys.modules  # nothing is imported that nobody named
    for name in ("some", "one"):
        settings = search(OWN, BOX, 1.0, solver=name, random_state=1).release.settings
        assert settings["solver"] == name
    assert settings_of("some", SOLVERS)[1].solver.steps == 1
    model = LogisticRegression(1.0, 1e-6, solver="some", **DECLARED).fit(X, Y)
    assert model.release_.settings["steps"] == 1


def test_no_package_takes_a_name_of_ours_where_ours_does_not_apply(installed):
    installed("door_test_b", {"lloyd": "door_test_b:Some", "auto": "door_test_b:Some"}, CODE)
    for name in ("lloyd", "auto"):
        with pytest.raises(ValueError, match=r"must be one of local, eem, privgene, dpsga, subs"):
            search(OWN, BOX, 1.0, solver=name)
    assert "door_test_b" not in sys.modules


def offers_twice(installed: Any) -> Any:
    for package in ("door_test_c", "door_test_d"):
        installed(package, {"twice": f"{package}:Some"}, CODE)
    return search(OWN, BOX, 1.0, solver="twice")


def offers_nothing(installed: Any) -> Any:
    installed("door_test_e", {"absent": "door_test_e:Other"}, CODE)
    return search(OWN, BOX, 1.0, solver="absent")


def test_a_package_that_cannot_be_used_is_named(installed):
    with pytest.raises(ValueError, match="must be offered by one package, but door_test_c, door_t"):
        offers_twice(installed)
    assert "door_test_c" not in sys.modules
    message = "of package 'door_test_e' must be importable as 'door_test_e:Other', but that raised"
    with pytest.raises(ValueError, match=message):
        offers_nothing(installed)


# --------------------------------------------------------------------------- objectives and spaces


class Mine:
    """The median of private numbers in [0, 1], with the least that an objective needs."""

    def __init__(self, records: Any) -> None:
        self._records, self.n_records, self.views = records, len(records), 0

    def scores(self, P: Any) -> Any:
        return -np.rint(1000 * np.abs(self._records[:, None] - P[:, 0])).astype(int).sum(axis=0)

    def prior(self, P: Any) -> Any:
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Any, neighbours: Neighbours, /) -> int:
        return 1001 * neighbours.changes


class Seen(Mine):
    """The same with a view of its own."""

    def at(self, w: Any) -> Any:
        from privfit.objectives.moves import Moves

        self.views += 1
        return Moves(self, w, Reals(0, 1, 1))


class SeenAround(Seen):
    """The same by a method that is told the space."""

    def at(self, w: Any) -> Any:
        raise AssertionError

    def around(self, w: Any, space: Any) -> Any:
        from privfit.objectives.moves import Moves

        self.views += 1
        return Moves(self, w, space)


class Line:
    """A space with the least that a search needs."""

    shape = (1,)

    def sample(self, m: int, coins: Any) -> Any:
        return coins.random((m, 1))


RECORDS = np.random.default_rng(0).random(500)


@pytest.mark.parametrize("solver", ["dpsga", "eem", "local", PrivGene(paper=True, generations=2)])
def test_an_objective_needs_four_things(solver):
    found = search(Mine(RECORDS), Reals(0, 1, 1), 1.0, solver=solver, random_state=1)
    assert found.release.verify()
    assert 0 <= found.answer[0] <= 1
    assert found.release.domain == ""


@pytest.mark.parametrize("kind", [Seen, SeenAround])
def test_a_view_of_ones_own_is_asked_for(kind):
    objective = kind(RECORDS)
    found = search(objective, Reals(0, 1, 1), 1.0, solver="local", random_state=1)
    same = search(Mine(RECORDS), Reals(0, 1, 1), 1.0, solver="local", random_state=1)
    assert objective.views == 1
    assert np.array_equal(found.answer, same.answer)


def test_a_space_needs_what_its_search_calls():
    found = search(Mine(RECORDS), Line(), 1.0, solver=best_of_some, random_state=1)
    assert found.answer.shape == (1,)
    assert found.path.average == 0.0
    ledger = Ledger(1.0)
    for solver, part in (("eem", "middle"), ("local", "middle"), ("privgene", "splice"),
                         ("dpsga", "size")):  # fmt: skip
        message = rf"space \(Line\) must have '{part}' for solver '{solver}'"
        with pytest.raises(TypeError, match=message):
            search(Mine(RECORDS), Line(), 1.0, solver=solver, ledger=ledger)
    assert ledger.entries == ()


CENTRES = CentersObjective(X, 3, Box(-1, 1, 2))
LINEAR = LinearObjective(X, Y, "logistic", Box(-1, 1, 2))


@pytest.mark.parametrize(
    ("objective", "space", "solver"),
    [
        (CENTRES, Reals(-1, 1, (3, 2)), Lloyd()),
        (LINEAR, Reals(-50, 50, 3), Gradient()),
        (FacilityObjective(X, X[:9], (0, 2), Box(-1, 1, 2)), Subsets(9, 2), Greedy()),
    ],
)
def test_a_fit_is_a_solver_like_any_other(objective, space, solver):
    found = search(objective, space, 1.0, 1e-6, solver, random_state=1)
    assert found.answer.shape == space.shape
    assert found.release.verify()


@pytest.mark.parametrize(
    ("objective", "space", "solver", "message"),
    [
        (CENTRES, Reals(-1, 1, (2, 2)), Lloyd(), "must be sets of 3 centres with 2 columns"),
        (CENTRES, Bits(3), UniformGrid(), "must have 3 dimensions; pass sets of centres"),
        (CENTRES, Subsets(3, 2), Hybrid(), "must have 3 dimensions; pass sets of centres"),
        (
            LINEAR,
            Reals(-1, 1, 2),
            Gradient(),
            r"candidates \(shape \(2,\)\) must have the",
        ),
        (LINEAR, Reals(-1, 1, 2), best_of_some, r"candidates \(shape \(2,\)\) must have the"),
        (LINEAR, Bits(3), Gradient(), "must be a box of weights for a LinearObjective"),
    ],
)
def test_a_fit_refuses_a_space_of_other_candidates_before_the_charge(
    objective, space, solver, message
):
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        search(objective, space, 1.0, 1e-6, solver, ledger=ledger)
    assert ledger.entries == ()


# ---------------------------------------------------------------------------------------- refusals


@dataclass
class Named:
    name: str = "eem"

    def __call__(self, run: Run[Any, Any]) -> Any:
        return best_of_some(run)


@dataclass
class Odd:
    largest_weight: Any = 1.0
    needs_order: Any = False
    space_needs: Any = ("sample",)
    takes: Any = object
    without_size: Any = ""
    bounds_codes: Any = len

    def __call__(self, run: Run[Any, Any]) -> Any:
        return best_of_some(run)


class Unscored:
    n_records = 3


class Uncounted:
    scores = range = prior = len


REFUSED = [
    (partial(search, OWN, BOX, 1.0, solver=ES), r"instead of their class; pass ES\(\)"),
    (partial(search, OWN, BOX, 1.0, solver=3), r"or an object that is called with a Run and retu"),
    (partial(search, OWN, BOX, 1.0, solver="es"), r"solver \('es'\) must be one of local"),
    (partial(search, OWN, BOX, 1.0, solver=Named()), r"name \('eem'\) of a solver must not be"),
    *((partial(search, OWN, BOX, 1.0, solver=Odd(**{fact: value})),
       rf"{fact} \(.*\) of solver 'Odd' must be {kind}; leave it out, or correct it")
      for fact, value, kind in [("largest_weight", -1.0, "a positive number"),
                                ("largest_weight", "1", "a positive number"),
                                ("needs_order", 1, "True or False"),
                                ("space_needs", "sample", "a tuple of names of methods"),
                                ("takes", "object", "a class or a tuple of classes"),
                                ("without_size", 1, "a text"),
                                ("bounds_codes", True, r"a method bounds_codes\(objective\)")]),
    (partial(search, Unscored(), BOX, 1.0), r"objective \(Unscored\) must have a method scores"),
    (partial(search, Uncounted(), BOX, 1.0), r"objective \(Uncounted\) must have n_records, the n"),
    (partial(search, OWN, BOX, 1.0, solver=Lloyd()), r"must be a CentersObjective for solver 'Ll"),
    (partial(search, OWN, object(), 1.0), r"space \(object\) must have 'shape' for solver 'dpsga'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_run_is_refused_before_the_charge(call, message):
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=message):
        call(ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("solver", FAILING, ids=lambda solver: solver.__name__)
def test_a_solver_that_fails_ends_with_a_closed_grant_and_says_what_was_charged(solver):
    ledger = Ledger(2.0)
    with pytest.raises(SolverError, match=FAILING[solver]) as caught:
        search(OWN, BOX, 0.5, solver=solver, ledger=ledger, random_state=1)
    text = str(caught.value)
    assert f"solver '{solver.__name__}' failed" in text
    assert "after epsilon 0.5, delta 0 were charged; the grant is closed" in text
    assert ledger.spent.epsilon == 0.5
    [release] = ledger.releases
    assert release.verify()
    assert release.settings["solver"] == solver.__name__
    assert release.parameters == {}
    later = search(OWN, BOX, 0.5, solver=best_of_some, ledger=ledger, random_state=1)
    assert later.release.verify()  # the rest of the budget is as it was


def test_what_a_broken_solver_says_is_not_shown():
    ledger = Ledger(1.0)
    with pytest.raises(SolverError) as caught:
        search(OWN, BOX, 1.0, solver=broken, ledger=ledger)
    assert "scores are" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert sum(event.count for event in ledger.releases[0].events) == 1


def bare_run() -> Run[Any, Any]:
    """A run without the door, where errors are as they were raised: for authors of solvers."""
    return Run(OWN, BOX, Ledger(1.0).reserve(1.0))


def empty_report(run: Run[Any, Any]) -> Any:
    run.report(np.empty((0, 1)))


def secret(run: Run[Any, Any]) -> int:
    """A score, as a text that no other number in a message has."""
    return int(run.objective.scores(np.zeros((1, 1)))[0])


SECRET = secret(bare_run())


def raises(kind: type[BaseException]) -> Any:
    def solver(run: Run[Any, Any]) -> Any:
        run.plan("selection")
        raise kind(f"secret {secret(run)}")

    return solver


def in_a_text(run: Run[Any, Any]) -> None:
    exec(compile(f"raise OSError('secret {secret(run)}')", "<string>", "exec"))


class Sly:
    """A candidate that raises where it is read, within privfit."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __len__(self) -> int:
        return 1

    def __deepcopy__(self, memo: Any) -> Any:
        raise OSError(f"secret {self.value}")


QUOTING = [
    *map(raises, (OSError, MemoryError, privfit.InputError, privfit.FileError, privfit.ClusterError,
                  privfit.PrivfitError, ValueError)),
    lambda run: run.select(run.space.sample(5, run.coins), size=1.0, k=secret(run)),
    lambda run: run.select(run.space.sample(5, run.coins), size=-secret(run)),
    lambda run: run.select(np.zeros((secret(run), 2)), size=1.0),
    lambda run: run.report(np.zeros((secret(run), 2))),
    lambda run: run.plan(f"secret {secret(run)}"),
    lambda run: run.plan("selection", -secret(run)),
    lambda run: run.release(privfit.DiscreteLaplace(1.0, 1), secret(run) + 0.5),
    lambda run: run.objective.scores(Sly(secret(run))),
    lambda run: Reals(secret(run), 0, 1),
    lambda run: np.zeros(secret(run)),
    lambda run: np.empty((secret(run) << 40,)),
    in_a_text,
]  # fmt: skip


@pytest.mark.parametrize("solver", QUOTING)
def test_no_error_of_a_run_quotes_a_value(solver):
    ledger = Ledger(1.0)
    with pytest.raises(SolverError) as caught:
        search(OWN, BOX, 1.0, solver=solver, ledger=ledger)
    assert str(SECRET) not in str(caught.value)
    assert "<string>" not in str(caught.value)
    assert "test_door.py line" in str(caught.value) or "must be a Path" in str(caught.value)
    assert caught.value.__context__ is None
    assert len(ledger.releases) == 1


@pytest.mark.parametrize("kind", ["ClusterError", "FileError"])
def test_an_error_of_the_place_of_records_is_the_callers_own(kind, monkeypatch):
    """As if workers of a cluster, or a disk, were lost in the middle of a run."""
    lost: dict[str, Any] = {"kind": getattr(privfit, kind)}
    text = "def sum(self, *question): raise kind('it has gone; look for it')"
    exec(compile(text, str(File(sums.__file__)), "exec"), lost)

    def goes_on(run: Run[Any, Any]) -> Any:
        monkeypatch.setattr(sums.Held, "sum", lost["sum"])
        try:
            raise KeyError(f"secret {SECRET}")
        except KeyError:
            return best_of_some(run)

    ledger = Ledger(2.0)
    with pytest.raises(getattr(privfit, kind), match="it has gone; look for it") as caught:
        search(OWN, BOX, 1.0, solver=goes_on, ledger=ledger)
    assert caught.value.__context__ is None
    assert len(ledger.releases) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_solver_leaves_a_closed_grant(kind):
    ledger = Ledger(1.0)
    with pytest.raises(kind):
        search(OWN, BOX, 1.0, solver=raises(kind), ledger=ledger)
    [release] = ledger.releases
    assert release.settings["failed"] == kind.__name__
    assert release.verify()


class Asks:
    """A solver whose check asks for something, and tells it to the caller, who has not paid."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    def check(self, task: Any) -> None:
        raise ZeroDivisionError(f"told: {self.ask(task.objective)}")

    def __call__(self, run: Run[Any, Any]) -> Any:
        return best_of_some(run)


class AsksOurs(EEM):
    """The same as a class that inherits from ours."""

    def check(self, task: Any) -> None:
        super().check(task)
        raise ZeroDivisionError(f"told: {task.objective.scores(np.zeros((1, 1)))}")


class LocalOfMine(Local):
    """Weights of coded columns, which become larger where the columns are narrow."""


def test_a_class_that_inherits_may_answer_in_the_coding_of_ours():
    narrow = LogisticRegression(1e3, 1e-6, domain=(0.9, 1), classes=[0, 1], solver=LocalOfMine())
    assert np.abs(narrow.fit(1 - (X + 1) / 20, Y).coef_).max() > 10


class AsksForCodes(ES):
    """The same by a fact that is a method."""

    def bounds_codes(self, objective: Any) -> bool:
        raise ZeroDivisionError(f"told: {objective.scores(np.zeros((1, 3)))}")


ZERO = np.zeros((1, 1))
PRIVATE_ASKS = [
    lambda o: o.scores(ZERO),
    lambda o: o.at(ZERO[0]).scores([0], [0.1]),
    lambda o: o.around(ZERO[0], BOX).scores([0], [0.1]),
    lambda o: o.gradient(ZERO[0]),
    lambda o: o._objective.scores(ZERO),
    lambda o: o._sums.sum(len),
    lambda o: o._records[0],
]


def of_two_kinds() -> list[Any]:
    return [OWN, Mine(X[:, 0])]


@pytest.mark.parametrize("ask", PRIVATE_ASKS)
@pytest.mark.parametrize("objective", [0, 1])
def test_a_check_of_a_user_cannot_ask_about_records(objective, ask):
    ledger = Ledger(1.0)
    with pytest.raises((privfit.DeclarationError, AttributeError, TypeError)) as caught:
        search(of_two_kinds()[objective], BOX, 1.0, solver=Asks(ask), ledger=ledger)
    assert "told" not in str(caught.value)
    assert ledger.entries == ()


def test_nor_can_a_check_that_inherits_or_a_fact():
    message = "an objective must not be asked about records before the charge; ask for its range"
    with pytest.raises(ValueError, match=message):
        search(OWN, BOX, 1.0, solver=AsksOurs())
    with pytest.raises(ValueError, match=message):
        search(Mine(X[:, 0]), BOX, 1.0, solver=AsksOurs())
    with pytest.raises(ValueError, match=message):
        LogisticRegression(1.0, solver=AsksForCodes(), **DECLARED).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        search(Mine(X[:, 0]), BOX, 1.0, solver=Asks(lambda o: o.n_records), adjacency="add_remove")


@pytest.mark.parametrize("objective", [0, 1])
def test_a_check_of_a_user_may_ask_for_what_is_public(objective):
    own = of_two_kinds()[objective]

    def public(asked: Any) -> Any:
        two = np.zeros((2, 1))
        return (asked.n_records, asked.range(two, Neighbours.of("replace")),
                asked.spread(two, Neighbours.of("replace")), asked.prior(two).tolist())  # fmt: skip

    with pytest.raises(ZeroDivisionError, match=r"told: \(400, [1-9]\d+, [1-9]\d+, \[0, 0\]\)"):
        search(own, BOX, 1.0, solver=Asks(public))

    class Mixing(EEM):
        def check(self, task: Any) -> None:
            super().check(task)

    mixes = RecordObjective(X, lambda x, P: x.mean() + np.zeros((len(x), len(P))), -1.0, 0.0)
    with pytest.raises(ValueError, match="score must treat each record by itself"):
        search(mixes, BOX, 1.0, solver=Mixing())


def test_an_error_of_ours_that_a_solver_raises_is_not_shown_either():
    def tells(run: Run[Any, Any]) -> Any:
        path = best_of_some(run)
        raise privfit.DeclarationError(f"secret {run.objective.scores(path.answer[None])}")

    with pytest.raises(
        SolverError, match=r"failed \(DeclarationError, .* line \d+\) after"
    ) as caught:
        search(OWN, BOX, 1.0, solver=tells)
    assert "secret" not in str(caught.value)


def test_sets_must_be_sets():
    def half(run: Run[Any, Any]) -> Any:
        path = best_of_some(run)
        return type(path)((path.generations[0] / 2,))

    with pytest.raises(SolverError, match="its answer must be a candidate of the space"):
        KMedian(2, 1.0, facilities=X[:9], domain=(-1, 1), solver=half).fit(X)


def test_an_error_of_the_callback_is_the_callers_own():
    def stop(generation: Any) -> None:
        raise ZeroDivisionError

    ledger = Ledger(1.0)
    with pytest.raises(ZeroDivisionError):
        search(OWN, BOX, 1.0, solver=ES(), callback=stop, ledger=ledger)
    assert len(ledger.releases) == 1


def test_an_unpaid_solver_that_fails_was_not_charged():
    class Free:
        runs_unpaid = True

        def __call__(self, run: Run[Any, Any]) -> Any:
            return None

    with (
        pytest.warns(privfit.PrivacyLeakWarning),
        pytest.raises(SolverError, match="nothing was charged; repair the solver"),
    ):
        search(OWN, BOX, float("inf"), solver=Free())


def test_an_unpaid_solver_selects_the_best():
    class Free(ES):
        runs_unpaid = True

    with pytest.warns(privfit.PrivacyLeakWarning):
        found = search(OWN, BOX, float("inf"), solver=Free(), random_state=1)
    assert found.release is None
    run = Run(OWN, BOX, None, 1)
    assert run.plan("selection", 3) == float("inf")
    P = BOX.sample(20, run.coins)
    assert np.array_equal(run.select(P, 3), np.argsort(-OWN.scores(P), kind="stable")[:3])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_pure_releases_are_planned_by_a_composition_that_is_proved_for_them(delta):
    def adds_noise(run: Run[Any, Any]) -> Any:
        noise = privfit.DiscreteLaplace(run.plan("pure", 20), 1)
        for _ in range(20):
            run.release(noise, np.array([1]))
        run.report(run.space.middle[None])
        return run.path()

    release = search(OWN, BOX, 1.0, delta, solver=adds_noise, random_state=1).release
    assert release.verify()
    assert 0.99 < release.cost() <= 1
    assert release.events[0].parameter > (1 / 20 if delta else 0.9999 / 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("select",),
            r"kind \('select'\) must be one of selection, pure, gaussian; pass 'selection",
        ),
        (("approximate", 2), r"kind \('approximate'\) must be one of selection, pure, gaussian"),
        (([],), r"kind \(\[\]\) must be one of selection, pure, gaussian"),
        (("selection", 0), r"count \(0\) must be a positive whole number; pass the number of dra"),
        (("pure", 2.0), r"count \(2.0\) must be a positive whole number"),
    ],
)
def test_plans_are_refused_by_the_names_of_their_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        bare_run().plan(*arguments)
    with pytest.raises(ValueError, match=message):
        bare_run().size_of(*arguments, *(1,)[len(arguments) - 1 :])
    with pytest.raises(SolverError, match=r"run\.plan takes a kind"):
        search(OWN, BOX, 1.0, solver=lambda run: run.plan(*arguments))


@pytest.mark.parametrize(
    ("average", "used"),
    [(0.5, 0.5), (1, 1), ("mean", 0), (lambda: 1, 0), (np.nan, 0), (2.0, 0), (-1, 0), (True, 0)],
)
def test_only_a_share_is_an_average_of_an_ended_run(average, used):
    @dataclass(frozen=True)
    class Averages(ES):
        average: Any = 0.0

    found = search(OWN, BOX, 1.0, solver=Averages(average=average), random_state=1,
                   callback=lambda now: now.index == 2)  # fmt: skip
    assert found.path.stopped
    assert found.path.average == used


def test_every_raise_of_the_door_is_reached(installed):
    seen = [messages_of(call) for call, _ in REFUSED]
    seen += [messages_of(partial(search, OWN, BOX, 1.0, solver=one)) for one in FAILING]
    unfit = (Holds(endless()), CannotBeCopied())
    seen += [messages_of(partial(search, OWN, BOX, 1.0, solver=one)) for one in unfit]
    seen += [messages_of(partial(one, bare_run())) for one in (*FAILING, empty_report)]
    seen += [messages_of(partial(candidates.rows, [[1], [2, 3]]))]
    seen += [messages_of(partial(call, installed)) for call in (offers_twice, offers_nothing)]
    folder = File(door.__file__).parent
    sources = [folder / f"{name}.py" for name in ("door", "candidates", "fields")]
    assert_reached(sources, "\n".join(seen))


# ------------------------------------------------------------------------------------------ spaces


@pytest.mark.parametrize(
    ("space", "inside", "outside"),
    [
        (Reals(-1, 1, 2), [[0.5, -1.0]], [[0.5, 1.1], [np.nan, 0.0]]),
        (Reals(-1, 1, 1, units=0.25), [[0.5], [-1.0]], [[0.3]]),
        (Subsets(4, 2), [[0, 3], [2, 1]], [[1, 1], [0, 4], [-1, 0]]),
        (Bits(2), [[True, False]], []),
    ],
)
def test_a_space_knows_its_candidates(space, inside, outside):
    assert space.contains(np.array(inside)).all()
    for row in outside:
        assert not space.contains(np.array([row])).any()
    assert not space.contains(np.array([["a", "b"]])).any()
    assert space.contains(space.sample(20, np.random.default_rng(0))).all()
