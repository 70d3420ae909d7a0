"""Settings and runs: blanks, parameters, facts, and solvers of one's own behind the same door."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path as File
from typing import Any, ClassVar

import numpy as np
import pytest
from makers.raises import assert_reached, messages_of
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import GridSearchCV

from privfit import (
    DPSGA,
    EEM,
    Bits,
    Box,
    CentersObjective,
    Coreset,
    FrankWolfe,
    Gradient,
    Greedy,
    Gupt,
    Hybrid,
    KMeans,
    KMedian,
    Ledger,
    LinearSVC,
    Lloyd,
    Local,
    LogisticRegression,
    Peeling,
    PermutedSGD,
    PrivGene,
    Reals,
    RecordObjective,
    SelectFeatures,
    SelectRefine,
    SparseVector,
    UniformGrid,
    search,
)
from privfit.clustering import Tree, kmeans, kmedian
from privfit.features import selection
from privfit.linear.methods import METHODS as LINEAR
from privfit.privacy.accounting import compose
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE
from privfit.runs import Path, Run, settings
from privfit.runs.door import settings_of
from privfit.runs.payment import Terms
from privfit.runs.run import Task
from privfit.runs.settings import Search
from privfit.searches.solvers import SOLVERS

COINS = np.random.default_rng(3)
X = COINS.uniform(-1, 1, (400, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
DECLARED = {"domain": (-1, 1), "classes": [0, 1], "random_state": 1}
EVERY = sorted(
    {kind for methods in (LINEAR, kmeans.METHODS, kmedian.METHODS) for kind in methods.values()},
    key=lambda kind: kind.__name__,
)


def nearness(x: Any, P: Any) -> Any:
    return -np.abs(x[:, :1] - P[:, 0]) / 2


OWN = RecordObjective(X, nearness, -1.0, 0.0)
BOX = Reals(-1, 1, 1)

# ------------------------------------------------------------------------------------------ blanks


@pytest.mark.parametrize("kind", EVERY)
def test_what_is_left_out_has_a_default_and_stays_left_out(kind):
    for paper in (False, True):
        if paper and "paper" not in {one.name for one in fields(kind)}:
            continue
        made = kind(paper=True) if paper else kind()
        assert repr(made) == f"{kind.__name__}({'paper=True' if paper else ''})"
        assert made == kind(**asdict_flat(made))  # what is used, written out, is the same
        assert made.get_params(deep=False) == {
            one.name: paper if one.name == "paper" else one.default for one in fields(kind)
        }


def asdict_flat(made: Any) -> dict[str, Any]:
    return {one.name: getattr(made, one.name) for one in fields(made)}


@pytest.mark.parametrize(
    ("ours", "paper", "names"),
    [
        (PrivGene(), PrivGene(paper=True), {"decay": (0.98, 0.95), "average": (0.25, 0.0)}),
        (EEM(), EEM(paper=True), {"step": (None, 0.05), "decay": (None, 0.95)}),
        (EEM(last_step=0.1), EEM(last_step=0.1, paper=True), {"decay": (None, None)}),
        (Local(), Local(paper=True), {"scoring": ("gradient", "loss")}),
        (DPSGA(), DPSGA(paper=True), {"composition": ("tight", "bounded_range")}),
        (DPSGA(selection="noisy_max"), DPSGA(selection="noisy_max", paper=True),
         {"composition": ("kov_exact", "kov")}),
        (PermutedSGD(), PermutedSGD(paper=True), {"passes": (5, 10), "batch": (50, 50)}),
        (Lloyd(residual=True), Lloyd(residual=True, paper=True),
         {"average": (0.5, 0.0), "steps": (None, 5)}),
        (UniformGrid(), UniformGrid(paper=True), {"restarts": (20, 1)}),
        (Hybrid(), Hybrid(paper=True), {"tree": (Tree(), UniformGrid(paper=True))}),
        (Coreset(), Coreset(paper=True), {"alpha": (None, 0.2), "radii": (3, None)}),
        (Coreset(places=2), Coreset(places=2, paper=True), {"alpha": (None, None)}),
    ],
    ids=repr,
)  # fmt: skip
def test_a_blank_is_ours_or_the_papers(ours, paper, names):
    for name, (mine, theirs) in names.items():
        assert (getattr(ours, name), getattr(paper, name)) == (mine, theirs)


def test_settings_are_values():
    given = DPSGA(population=30, survivors=4)
    for same in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given), clone(given)):
        assert (same, repr(same), hash(same)) == (given, repr(given), hash(given))
        assert asdict(same) == asdict(given)
    assert repr(given) == "DPSGA(population=30, survivors=4)"
    assert repr(SelectRefine(select=Local(generations=3))).endswith("(select=Local(generations=3))")
    with pytest.raises(AttributeError):
        given.population = 3


# -------------------------------------------------------------------------------------- parameters


def test_parameters_of_settings_are_those_of_the_estimator():
    model = LogisticRegression(solver=Gradient(steps=20))
    found = model.get_params(deep=True)
    assert (found["solver__steps"], found["solver__whiten"]) == (20, None)
    assert "solver__steps" not in model.get_params(deep=False)
    hybrid = LogisticRegression(solver=SelectRefine(select=Local(generations=9)))
    assert hybrid.get_params()["solver__select__generations"] == 9
    assert "solver__generations" not in LogisticRegression(solver="local").get_params()
    own = LogisticRegression(solver=Gupt(Plain(C=3.0))).get_params()
    assert own["solver__estimator__C"] == 3.0


def test_setting_a_parameter_of_settings_leaves_the_old_ones_alone():
    given = Gradient(steps=20)
    model = LogisticRegression(solver=given)
    assert model.set_params(solver__steps=30, epsilon=2.0) is model
    assert (model.solver, model.epsilon, given) == (Gradient(steps=30), 2.0, Gradient(steps=20))
    model.set_params(solver=Local(), solver__generations=5)
    assert model.solver == Local(generations=5)
    model.set_params(solver=SelectRefine(select=Local(generations=9)))
    model.set_params(solver__select__generations=7, solver__share=0.5)
    assert model.solver == SelectRefine(0.5, Local(generations=7))
    # Both at once: neither is right beside what the other was.
    model.set_params(solver=PrivGene(population=5, survivors=5))
    model.set_params(solver__population=50, solver__survivors=20)
    assert model.solver == PrivGene(population=50, survivors=20)


@pytest.mark.parametrize(
    ("model", "change", "after"),
    [
        (KMeans(solver=Lloyd(steps=3)), {"solver__steps": 4}, Lloyd(steps=4)),
        (KMedian(solver=Greedy()), {"solver__swaps": 2}, Greedy(swaps=2)),
        (LinearSVC(solver=FrankWolfe()), {"solver__radius": 5.0}, FrankWolfe(radius=5.0)),
    ],
    ids=repr,
)
def test_every_estimator_with_a_solver_takes_its_parameters(model, change, after):
    assert clone(model).set_params(**change).solver == after


def test_a_selection_takes_the_parameters_of_its_method():
    model = SelectFeatures(solver=Peeling(k=2)).set_params(solver__k=3)
    assert model.solver == Peeling(k=3)
    assert repr(SparseVector(k=2, threshold=5)) == "SparseVector(k=2, threshold=5)"


def test_a_grid_search_tries_the_parameters_of_settings():
    model = LogisticRegression(2.0, 1e-6, solver=Gradient(steps=4), **DECLARED)
    search = GridSearchCV(model, {"solver__steps": [2, 6], "solver__whiten": [False]}, cv=2)
    search.fit(X, Y)
    tried = [found["solver__steps"] for found in search.cv_results_["params"]]
    assert tried == [2, 6]
    best = search.best_estimator_
    assert best.solver == Gradient(steps=search.best_params_["solver__steps"], whiten=False)
    assert best.release_.settings["steps"] == search.best_params_["solver__steps"]
    assert model.solver == Gradient(steps=4)


def test_clones_of_estimators_have_settings_as_they_were_written():
    for solver in (DPSGA(), Hybrid(), SelectRefine(), Gupt(Plain())):
        assert repr(clone(LogisticRegression(solver=solver)).solver) == repr(solver)


# ------------------------------------------------------------------------------------------- facts


def test_facts_follow_from_the_settings():
    facts = {
        "needs_order": {"sgd", "gupt"},
        "counts_errors": {"dpsga", "subsample"},
        "centres_columns": {"output", "objective", "privatesvm"},
        "runs_unpaid": {"dpsga"},
    }
    for fact, names in facts.items():
        assert {name for name, kind in LINEAR.items() if getattr(kind(), fact)} == names
    bounds = {name: kind().largest_weight for name, kind in LINEAR.items()}
    wide = dict.fromkeys(("gradient", "additive", "frank_wolfe", "sgd", "select_refine"), 50.0)
    narrow = {"dpsga": 1.0, "subsample": 1.0, "privgene": 5.0}
    assert bounds == {**dict.fromkeys(LINEAR, 10.0), **wide, **narrow}
    assert {kind(paper=True).largest_weight for kind in (EEM, Local, Gupt)} == {5.0}
    weighed = {name for name, kind in LINEAR.items() if kind().weighs_loss}
    assert weighed == {"eem", "privgene"}
    assert Local(scoring="loss").weighs_loss


def test_no_estimator_has_a_list_of_solvers():
    for module in ("linear", "kmeans", "kmedian", "clusterer", "common", "select", "bayes"):
        source = (File(settings.__file__).parents[1] / f"estimators/{module}.py").read_text()
        code = source.split('"""')[::2]  # what is not in a docstring
        for name in ("dpsga", "subsample", "frank_wolfe", "sgd", "functional", "gupt"):
            assert not any(f'"{name}"' in part for part in code), (module, name)


# ------------------------------------------------------------------------------ one's own solvers


@dataclass(frozen=True)
class Climb(Search):
    """So many selections among random candidates, the best of which is the answer."""

    name: ClassVar[str] = "climb"

    steps: int = 3

    def __call__(self, run: Run[Any, Any]) -> Path:
        eps_s = run.plan("selection", self.steps)
        for _ in range(self.steps):
            P = run.space.sample(20, run.coins)
            run.report(P[run.select(P)])
        run.note(eps_s=eps_s)
        return run.path(average=0.5)


class Facts:
    """The same without a base class: all that the door asks for."""

    name = "facts"
    needs_order = counts_errors = centres_columns = runs_unpaid = weighs_loss = False
    largest_weight = 2.0

    def __init__(self, check: Any = None) -> None:
        self._check = check

    def bounds_codes(self, objective: Any) -> bool:
        return False

    def check(self, task: Task[Any, Any]) -> None:
        if self._check is not None:
            self._check(task)

    def __call__(self, run: Run[Any, Any]) -> Path:
        return Climb(steps=2)(run)


def test_a_solver_of_ones_own_goes_through_the_same_door():
    heard: list[Any] = []
    found = search(OWN, BOX, 1.0, solver=Climb(), random_state=1, callback=heard.append)
    assert found.release.verify()
    assert found.release.settings["solver"] == "climb"
    assert found.release.settings["steps"] == 3
    assert sum(event.count for event in found.release.events) == 3
    assert [now.index for now in heard] == [1, 2, 3]
    assert found.path.average == 0.5
    sets = search(RecordObjective(X, lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0), Bits(4),
                  1.0, solver=Climb(), random_state=1)  # fmt: skip
    assert (sets.path.average, sets.release.settings["average"]) == (0.0, 0.0)  # bits have no mean


def test_estimators_take_a_solver_of_ones_own():
    seen: list[Any] = []

    def check(task: Task[Any, Any]) -> None:
        seen.append(task)

    ledger = Ledger(2.0)
    model = LogisticRegression(
        1.0, solver=Facts(check), calibrate=False, ledger=ledger, **DECLARED
    ).fit(X, Y)
    assert model.release_.settings["solver"] == "facts"
    assert np.abs(model.coef_).max() <= 2.0
    [task] = seen
    assert (task.budget.epsilon, task.neighbours, task.n_public) == (1.0, REPLACE, 400)
    assert [release.name for release in ledger.releases] == ["LogisticRegression"]
    means = KMeans(2, 1.0, domain=(-1, 1), solver=Climb(steps=2), random_state=1).fit(X)
    assert means.release_.settings["steps"] == 2
    places = KMedian(1, 1.0, facilities=X[:9], domain=(-1, 1), solver=Climb(), random_state=1)
    assert len(places.fit(X).facilities_) == 1


def test_a_solver_of_ones_own_refuses_before_the_charge():
    class Picky(Facts):
        def check(self, task: Task[Any, Any]) -> None:
            raise ValueError("no")

    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match="no"):
        search(OWN, BOX, 1.0, solver=Picky(), ledger=ledger)
    assert ledger.entries == ()


def test_what_cannot_be_called_is_no_solver():
    for other in (Climb, object(), 3):
        with pytest.raises(ValueError, match=r"solver \(.*\) must be one of local, eem"):
            search(OWN, BOX, 1.0, solver=other)
    assert settings_of(Local(), SOLVERS) == ("local", Local())
    assert settings_of("local", SOLVERS) == ("local", Local())


def test_solvers_of_other_objectives_say_so_before_the_charge():
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=r"objective \(RecordO.*\) must be a CentersObjective for"):
        search(OWN, BOX, 1.0, solver=Lloyd(), ledger=ledger)
    with pytest.raises(ValueError, match="needs a linear model with a slope"):
        search(OWN, BOX, 1.0, solver=Gradient(), ledger=ledger)
    assert ledger.entries == ()


# -------------------------------------------------------------------------------------------- runs


def run_of(epsilon: float = 1.0, delta: float = 1e-6, **more: Any) -> tuple[Run[Any, Any], Any]:
    grant = Ledger(epsilon, delta).reserve(epsilon, delta)
    return Run(OWN, BOX, grant, 1, **more), grant


@pytest.mark.parametrize("share", [1, 3])
@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize(
    ("kind", "composition", "mechanism"),
    [
        ("gaussian", "tight", lambda size: DiscreteGaussian(size, 100.0)),
        ("pure", "naive", lambda size: DiscreteLaplace(size, 100)),
        ("selection", "tight", lambda size: Exponential(size, 100)),
    ],
)
def test_equal_releases_cost_the_budget_together(kind, composition, mechanism, count, share):
    sizes, grant = [], Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
    for _ in range(share):
        run: Run[Any, Any] = Run(OWN, BOX, grant, 1, share=share)
        sizes.append(run.plan(kind, count, composition))
        for _ in range(count):
            run.release(mechanism(sizes[-1]), np.array([0, 1]))
    assert len(set(sizes)) == 1
    assert 0.99 < compose(grant.events, 0.0 if kind == "pure" else 1e-6) <= 1.0


def test_a_run_knows_its_part_of_the_budget():
    run, _ = run_of(share=4)
    assert (run.whole.epsilon, run.budget.epsilon, run.pure_epsilon) == (1.0, 0.5, 0.25)
    assert run.mu > 0
    pure, _ = run_of(delta=0.0, share=4)
    assert (pure.budget.epsilon, pure.mu) == (0.25, 0.0)
    assert (run.n_public, run.neighbours, run.is_private) == (400, REPLACE, True)


def test_a_run_without_a_grant_plans_nothing():
    run: Run[Any, Any] = Run(OWN, BOX, None, 1)
    assert run.plan("selection", 5) == math.inf
    assert not run.is_private


def test_a_selection_is_by_scores_and_the_range():
    run, grant = run_of(1e6, 0.0)
    P = np.array([[-0.9], [float(np.median(X[:, 0]))], [0.9]])
    size = run.plan("selection", 2)
    assert run.select(P).tolist() == [1]
    assert [event.parameter for event in grant.events] == [size]
    seen: list[Any] = []
    run.select(P, size=size, range=lambda P, neighbours: seen.append(neighbours) or 1)
    assert seen == [REPLACE]


def test_terms_are_those_of_the_estimator():
    model = KMeans(2, 3.0, 1e-6, adjacency="add_remove", n_public=9, random_state=5)
    terms = Terms.of(model)
    assert (terms.name, terms.epsilon, terms.delta) == ("KMeans", 3.0, 1e-6)
    assert (terms.neighbours, terms.n_public, terms.random_state) == (ADD_REMOVE, 9, 5)
    other = Terms.of(model, "KMeans inertia", epsilon=1.0, delta=0.0)
    assert (other.name, other.budget.epsilon, other.budget.delta) == ("KMeans inertia", 1.0, 0.0)
    assert Terms.of(SelectFeatures()).callback is None


def test_a_paid_account_ends_in_a_release():
    paid = Terms("count", 1.0, adjacency="add_remove", random_state=1).charge()
    noise = DiscreteLaplace(1.0, 1)
    paid.plan(noise.event)
    assert isinstance(int(paid.release(noise, [5])[0]), int)
    release = paid.close("counts", {"a": 1}, {"count": 5})
    assert (release.name, release.domain, release.adjacency) == ("count", "counts", "add_remove")
    assert release.verify()


# ---------------------------------------------------------------------------------------- refusals

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Gradient().set_params(stepz=3),
     r"stepz must be a parameter of Gradient; pass one of steps, whiten"),
    (lambda: Gradient().set_params(stepz__a=3), r"stepz must be a parameter of Gradient; pass one"),
    (lambda: SelectRefine().set_params(share__steps=3),
     r"share \(0.7\) must be settings for share__steps to be set; pass settings such as Gradient"),
    (lambda: LogisticRegression(solver="gradient").set_params(solver__steps=3),
     r"solver \('gradient'\) must be settings for solver__steps to be set; pass settings such as"),
    (lambda: LogisticRegression(solver=Gradient()).set_params(solver__stepz=3),
     r"stepz must be a parameter of Gradient; pass one of steps, whiten"),
    (partial(Gradient, clip=0.0), r"clip \(0.0\) must be a positive number; leave it out"),
    (partial(Gradient, steps=0), r"steps \(0\) must be a positive whole number; leave it out"),
    (partial(Gradient, average=2), r"average \(2\) must lie in \[0, 1\]; leave it out"),
    (partial(Gradient, moments=0), r"moments \(0\) must be above 0 and at most 1; leave it out"),
    (partial(Tree, shape_share=0), r"shape_share \(0\) must lie between 0 and 1; leave it out"),
    (partial(search, OWN, BOX, 1.0, solver="none"), r"solver \('none'\) must be one of local, eem"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_wrong_parameters_are_refused_with_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unknown_parameter_is_refused_as_scikit_learn_does():
    for name in ("sover", "sover__steps"):
        with pytest.raises(ValueError, match=r"Invalid parameter 'sover' for estimator Logistic"):
            LogisticRegression().set_params(**{name: 3})


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    assert_reached([File(settings.__file__)], seen)


def test_every_method_of_selection_has_parameters():
    for kind in selection.METHODS.values():
        made = kind(k=2, threshold=3) if kind is SparseVector else kind(k=2)
        assert made.get_params()["k"] == 2
        assert made.set_params(k=3).k == 3


def test_centres_bring_their_space():
    objective = CentersObjective(X, 2, Box(-1, 1))
    task = Task(objective, Reals(-1, 1, (2, 2)), 1.0, 0.0, REPLACE, 400)
    for kind in (Lloyd, Tree, Hybrid, UniformGrid):
        kind().check(task)
