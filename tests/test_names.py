"""Names that moved or changed: the old ones work for one version, and say what the new ones are."""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import privfit
from privfit import estimators
from privfit.runs import Run

MOVED = {
    "Generation": "privfit.runs",
    "Grid": "privfit.domains",
    "Path": "privfit.runs",
    "Tree": "privfit.clustering",
}
MODULES = {
    "privfit.plotting": "privfit.report.plotting",
    "privfit.postprocess": "privfit.clustering.postprocess",
}


@pytest.mark.parametrize(("name", "room"), MOVED.items())
def test_a_name_that_left_the_top_level_warns_and_is_the_same(name, room):
    with pytest.warns(FutureWarning, match=rf"privfit\.{name} is {room}\.{name} now"):
        old = getattr(privfit, name)
    assert old is getattr(importlib.import_module(room), name)
    assert name not in privfit.__all__


@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_a_module_that_moved_warns_and_has_the_same_names(old, new, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(FutureWarning, match=f"{old} is {new} now; import that"):
        module = importlib.import_module(old)
    monkeypatch.delattr(privfit, old.rpartition(".")[2])
    names = importlib.import_module(new).__all__
    assert all(getattr(module, name) is getattr(sys.modules[new], name) for name in names)


@pytest.mark.parametrize("name", ["Found", "LloydTrace", "aggregate", "mcmc"])
def test_what_people_use_is_at_the_top_level(name):
    assert name in privfit.__all__
    assert callable(getattr(privfit, name))


# ----------------------------------------------------------------------------------------- solvers

RENAMED = {"Gupta": "Swaps", "LinearHybrid": "SelectRefine"}
X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = (X[:, 0] > 0).astype(int)
PLACES = np.random.default_rng(1).uniform(-1, 1, (12, 2))


def linear(kind, solver):
    return kind(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=solver, random_state=1).fit(X, Y)


def medians(solver):
    return privfit.KMedian(3, 1.0, facilities=PLACES, solver=solver, random_state=1).fit(X)


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_class_under_its_old_name_warns_and_is_the_same(old, new):
    with pytest.warns(FutureWarning, match=rf"privfit\.{old} is privfit\.{new} now; import that"):
        assert getattr(privfit, old) is getattr(privfit, new)
    assert old not in privfit.__all__
    assert new in privfit.__all__


@pytest.mark.parametrize("kind", [privfit.LogisticRegression, privfit.LinearSVC])
def test_the_hybrid_of_linear_models_is_select_refine(kind):
    with pytest.warns(
        FutureWarning, match="solver 'hybrid' is 'select_refine' now; pass that"
    ) as w:
        old = linear(kind, "hybrid")
    assert w[0].filename == __file__
    assert old.solver == "hybrid"  # a parameter stays as it was passed
    new = linear(kind, "select_refine")
    assert old.release_.to_json() == new.release_.to_json()
    assert new.release_.settings["solver"] == "select_refine"
    assert linear(kind, privfit.SelectRefine()).release_.to_json() == new.release_.to_json()


def test_the_hybrid_of_kmeans_stays():
    model = privfit.KMeans(2, 1.0, domain=(-1, 1), solver="hybrid").fit(X)
    assert model.release_.settings["solver"] == "hybrid"


def test_local_of_kmedian_is_the_search_now_and_says_so():
    message = (
        "solver 'local' of KMedian is Local now, .* pass solver='swaps' for these, or solver=Lo"
    )
    with pytest.warns(FutureWarning, match=message) as caught:
        named = medians("local")
    assert caught[0].filename == __file__
    assert named.release_.to_json() == medians(privfit.Local()).release_.to_json()
    swaps = medians("swaps")
    assert swaps.release_.to_json() == medians(privfit.Swaps()).release_.to_json()
    assert swaps.release_.settings["solver"] == "swaps"
    assert named.release_.settings["solver"] == "local"


# -------------------------------------------------------------------------- SelectFeatures(method=)

ONES = (np.random.default_rng(2).random((300, 9)) < 0.3).astype(int)


def selected(**changes):
    return privfit.SelectFeatures(1.0, k=3, classes=[0, 1], random_state=1, **changes)


@pytest.mark.parametrize("solver", ["noisy", privfit.Peeling(k=2)], ids=str)
def test_method_of_a_selection_is_solver_now(solver):
    new = selected(solver=solver).fit(ONES, Y)
    with pytest.warns(FutureWarning, match="method of SelectFeatures is solver now; pass sol") as w:
        old = selected(method=solver).fit(ONES, Y)
    assert w[0].filename == __file__
    assert old.release_.to_json() == new.release_.to_json()
    assert old.get_params()["method"] == solver
    assert clone(old).get_params()["method"] == solver
    assert clone(new).get_params()["method"] == "deprecated"
    assert "method" not in repr(new)


def test_selections_by_both_names_can_be_cloned_set_and_searched():
    chain = make_pipeline(selected(), privfit.BernoulliNB(1.0, classes=[0, 1], random_state=1))
    fits = {}
    for name in ("solver", "method"):
        grid = GridSearchCV(chain, {f"selectfeatures__{name}": ["noisy", "peeling"]}, cv=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits[name] = grid.fit(ONES, Y).cv_results_["mean_test_score"].tolist()
    assert fits["solver"] == fits["method"]
    model = selected(solver=privfit.Peeling(k=2)).set_params(solver__k=1)
    assert model.fit(ONES, Y).ranking_.shape == (1,)
    old = selected(method=privfit.Peeling(k=2)).set_params(method__k=1)
    assert old.method == privfit.Peeling(k=1)


# --------------------------------------------------------------------------------------- arguments

ORDER = ["n_clusters", "epsilon", "delta", "domain", "classes", "solver", "C", "fit_intercept",
         "adjacency", "n_public", "ledger", "n_threads", "random_state", "callback",
         "verbose"]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name != "HashWords"])
def test_estimators_have_one_order_of_arguments(name):
    arguments = inspect.signature(getattr(estimators, name)).parameters
    assert [one for one in arguments if one in ORDER] == [one for one in ORDER if one in arguments]
    by_place = [one for one, what in arguments.items() if what.kind is not what.KEYWORD_ONLY]
    assert by_place in (["epsilon", "delta"], ["n_clusters", "epsilon", "delta"])
    first = list(arguments)[len(by_place)]
    assert first == ("domain" if "domain" in arguments else "classes")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [("privfit", "Gupta", "Swaps"), ("privfit.clustering", "Gupta", "Swaps"),
     ("privfit.clustering.kmedian", "Gupta", "Swaps"), ("privfit", "LinearHybrid", "SelectRefine"),
     ("privfit.linear", "LinearHybrid", "SelectRefine"),
     ("privfit.linear.select_refine", "LinearHybrid", "SelectRefine"),
     ("privfit.runs", "Step", "Draws"), ("privfit.runs.paths", "Step", "Draws"),
     ("privfit.audit", "Step", "PairedStep"), ("privfit.audit.pairs", "Step", "PairedStep")],
)  # fmt: skip
def test_old_classes_are_found_where_they_were_so_that_pickles_load(module, old, new):
    found = importlib.import_module(module)
    with pytest.warns(FutureWarning, match=rf"{module}\.{old} is {module}\.{new} now; import that"):
        assert getattr(found, old) is getattr(found, new)
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        found.Nobody  # noqa: B018


@pytest.mark.parametrize(
    "pickled",
    [b"cprivfit.clustering.kmedian\nGupta\n.", b"cprivfit.linear.select_refine\nLinearHybrid\n."],
)
def test_pickles_that_name_old_classes_load(pickled):
    with pytest.warns(FutureWarning, match="now; import that"):
        found = pickle.loads(pickled)
    assert found in (privfit.Swaps, privfit.SelectRefine)


# ------------------------------------------------------------------- the order of arguments changed


def test_calibrate_and_total_take_the_old_order_and_say_so():
    new = {"delta": 1e-6, "method": "kov"}
    eps_s = privfit.calibrate(10, epsilon=1.0, **new)
    cost = privfit.total(10, eps_s=0.1, **new)
    calls = [
        (lambda: privfit.calibrate(10, 1.0, 1e-6, "kov"), eps_s),
        (lambda: privfit.calibrate(10, 1.0, delta=1e-6, method="kov"), eps_s),
        (lambda: privfit.total(0.1, 10, 1e-6, "kov"), cost),
        (lambda: privfit.total(0.1, 10, **new), cost),
        (lambda: privfit.total(0.1, n=10, **new), cost),
    ]
    for call, expected in calls:
        with pytest.warns(FutureWarning, match="takes all but n by name now; call .*, delta=") as w:
            assert call() == expected
        assert w[0].filename == __file__
    assert privfit.calibrate(n=10, epsilon=1.0, **new) == eps_s  # names alone are as they were
    assert privfit.total(eps_s=0.1, n=10, **new) == cost


def test_too_many_or_doubled_arguments_are_an_error_as_ever():
    with pytest.raises(TypeError, match="positional argument"):
        privfit.total(0.1, 10, 1e-6, "kov", 5)
    with pytest.raises(TypeError, match="multiple values"), pytest.warns(FutureWarning):
        privfit.total(0.1, 10, eps_s=0.1, delta=0.0)
    with pytest.raises(TypeError, match="delta"):
        privfit.total(10, eps_s=0.1)


def test_reach_of_a_selection_is_range_now():
    score = privfit.RecordObjective(X, lambda x, P: -np.abs(x[:, :1] - P[:, 0]), -2.0, 0.0)
    drawn = []
    for name in ("range", "reach"):
        run = Run(score, privfit.Reals(-1, 1, 1), privfit.Ledger(2.0).reserve(2.0), 1)
        run.plan("selection")
        given, P = {name: lambda P, neighbours: 12345}, run.space.sample(9, run.coins)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FutureWarning)
            chosen = run.select(P, **given)
        run.report(P[chosen])
        drawn.append((chosen.tolist(), run.path().steps[0].range, len(caught)))
    assert drawn[0] == (*drawn[1][:2], 0)
    assert drawn[1][1:] == (12345, 1)
    assert str(caught[0].message) == "reach of run.select is range now; pass that"
    assert caught[0].filename == __file__
