"""A release says what was done: its settings, used again, give the same draws and the same answer.

What a public rule chose stands in the settings as a number; what had no use is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import privfit
from privfit.clustering import kmeans, kmedian
from privfit.estimators.linear import METHODS as LINEAR
from privfit.evaluation.roc import accuracy_score, confusion_matrix, roc_curve
from privfit.models.model import dumps, loads
from privfit.searches import (
    Decay,
    Gaussian,
    Geometric,
    InterceptStarts,
    MiddleStarts,
    OnePoint,
    Redraw,
    Step,
    Uniform,
    Union,
)

N = 1200
COINS = np.random.default_rng(5)
X = COINS.uniform(-1, 1, (N, 3))
Y = (X[:, 0] - 0.5 * X[:, 1] + COINS.normal(0, 0.2, N) > 0).astype(int)
THREE = Y + (X[:, 2] > 0.5)
PLACES = COINS.uniform(-1, 1, (25, 3))
PERTURBED = {"output", "objective", "privatesvm"}  # tests/linear/test_perturbation.py has these

Plain = dict[str, Any]


def linear(solver: Any, epsilon: float = 1.0, delta: float = 1e-6, y: Any = Y, **more: Any) -> Any:
    named = solver in ("additive", "evidence")
    of_levels = named or isinstance(solver, privfit.Additive | privfit.Evidence)
    domain = privfit.Schema({name: privfit.Numeric(-1, 1, bins=6) for name in "abc"})
    return privfit.LogisticRegression(
        epsilon, delta, domain=domain if of_levels else (-1, 1),
        classes=sorted(set(y.tolist())), solver=solver, random_state=3,
        **{"calibrate": False, **more},
    ).fit(X, y)  # fmt: skip


def centres(solver: Any, epsilon: float = 1.0, delta: float = 1e-6, **more: Any) -> Any:
    declared = {"domain": (-1, 1), "random_state": 3, "postprocess": None}
    return privfit.KMeans(3, epsilon, delta, solver=solver, **(declared | more)).fit(X)


def places(solver: Any, epsilon: float = 1.0, delta: float = 1e-6, **more: Any) -> Any:
    model = privfit.KMedian(
        3, epsilon, delta, facilities=PLACES, clip=(0, 6), solver=solver, random_state=3, **more
    )
    return model.fit(X)


def found(solver: Any, epsilon: float = 1.0, delta: float = 1e-6, **more: Any) -> Any:
    def near(x: Any, P: Any) -> Any:
        return -np.abs(x[:, :1] - P[:, 0]) / 2

    objective = privfit.RecordObjective(X, near, -1.0, 0.0)
    space = privfit.Reals(-1, 1, 1)
    return privfit.search(objective, space, epsilon, delta, solver, random_state=3, **more)


def answer(model: Any) -> Any:
    """All that a fit released, as bytes."""
    release = getattr(model, "release_", None) or model.release
    return release.events, [np.asarray(v).tobytes() for v in _leaves(release.parameters)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name])]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def settings_again(kind: type, shown: Plain) -> Any:
    """The settings class of a solver, made of what a release shows."""
    if not is_dataclass(kind):
        raise TypeError(kind)
    made = {}
    defaults = kind()
    for one in fields(kind):
        if one.name in kind.unlisted and one.name not in shown:
            continue
        value = shown[one.name]
        if isinstance(value, dict) and "operator" in value:
            own = {name: value[name] for name in value if name != "operator"}
            made[one.name] = getattr(privfit.searches, value["operator"])(**own)
            continue
        part = getattr(defaults, one.name)
        made[one.name] = settings_again(type(part), value) if is_dataclass(part) else value
    return kind(**made)


# By name: how it is fitted, the solver, and which settings have no use (their value is None).
FITS: dict[str, tuple[Callable[..., Any], Any, set[str]]] = {
    "local": (linear, "local", {"decay"}),
    "local, loss": (linear, privfit.Local(scoring="loss"), {"decay", "cap"}),
    "local, paper": (linear, privfit.Local(paper=True), {"last_step", "cap"}),
    "eem": (linear, "eem", {"decay"}),
    "eem, paper": (linear, privfit.EEM(paper=True), {"last_step"}),
    "privgene": (linear, "privgene", set()),
    "privgene, paper": (linear, privfit.PrivGene(paper=True), {"eps_s"}),  # of one generation
    "privgene, published": (linear, privfit.PrivGene(paper=True, generations=3), set()),
    "dpsga": (linear, "dpsga", set()),
    "dpsga, paper": (linear, privfit.DPSGA(paper=True, generations=5), set()),
    "subsample": (linear, privfit.Subsample(candidates=500), set()),
    "gradient": (linear, "gradient", set()),
    "gradient, plain": (linear, privfit.Gradient(whiten=False), {"moments", "floor"}),
    "additive": (linear, "additive", set()),
    "frank_wolfe": (linear, "frank_wolfe", set()),
    "sgd": (linear, "sgd", set()),
    "sgd, ridge": (linear, privfit.PermutedSGD(ridge=0.1), {"step"}),
    "functional": (linear, "functional", set()),
    "functional, paper": (linear, privfit.Functional(paper=True), set()),
    "select_refine": (linear, "select_refine", {"select.decay"}),
    "gupt": (linear, "gupt", set()),
    "gupt, paper": (linear, privfit.Gupt(paper=True), set()),
    "majority": (linear, "majority", set()),
    "evidence": (linear, "evidence", set()),
    "auto": (linear, "auto", None),  # whichever it was
    "k-means lloyd": (centres, "lloyd", {"radius"}),
    "k-means lloyd, residual": (centres, privfit.Lloyd(residual=True), set()),
    "k-means lloyd, paper": (centres, privfit.Lloyd(paper=True), {"radius"}),
    "k-means grid": (centres, "grid", set()),
    "k-means tree": (centres, "tree", set()),
    "k-means hybrid": (centres, "hybrid", set()),
    "k-means over_seeded": (centres, "over_seeded", set()),
    "k-means mean": (centres, "mean", set()),
    "k-means privgene": (centres, "privgene", set()),
    "k-means eem": (centres, "eem", {"decay"}),
    "k-means local": (centres, privfit.Local(generations=10), {"decay", "cap"}),
    "k-means dpsga": (centres, privfit.DPSGA(generations=5), set()),
    "k-means gupt": (centres, "gupt", None),
    "k-means auto": (centres, "auto", None),
    "k-median synopsis": (places, "synopsis", set()),
    "k-median greedy": (places, privfit.Greedy(swaps=2), set()),
    "k-median swaps": (places, "swaps", set()),
    "k-median local": (places, privfit.Local(), {"decay", "cap"}),
    "k-median coreset": (places, "coreset", {"alpha"}),
    "k-median coreset, paper": (places, privfit.Coreset(paper=True), {"radii", "places"}),
    "k-median privgene": (places, privfit.PrivGene(generations=3), set()),
    "k-median eem": (places, privfit.EEM(generations=10), {"decay"}),
    "k-median dpsga": (places, privfit.DPSGA(generations=3), set()),
    "k-median subsample": (places, privfit.Subsample(candidates=200), set()),
    "k-median auto": (places, "auto", None),
    "privgene, operators": (
        linear,
        privfit.PrivGene(generations=4, crossover=Uniform(), mutation=Gaussian(0.1),
                         schedule=Geometric(), starts=MiddleStarts()),
        {"decay", "crossover.rate"},  # all children are crossed
    ),
    "dpsga, operators": (
        linear,
        privfit.DPSGA(generations=4, crossover=OnePoint(), mutation=Redraw(),
                      schedule=Decay(0.5), starts=InterceptStarts()),
        {"step"},
    ),
    "k-median dpsga, operators": (
        places, privfit.DPSGA(generations=3, crossover=Union(), mutation=Step()), set(),
    ),
    "search dpsga": (found, privfit.DPSGA(generations=4), set()),
    "search local": (found, "local", {"decay", "cap"}),
    "search eem": (found, "eem", {"decay"}),
}  # fmt: skip
METHODS = {linear: LINEAR, centres: kmeans.METHODS, places: kmedian.METHODS,
           found: privfit.searches.solvers.SOLVERS}  # fmt: skip


def fitted(name: str, **more: Any) -> tuple[Any, Any, type]:
    fit, solver, _ = FITS[name]
    model = fit(solver, **more)
    release = getattr(model, "release_", None) or model.release
    return model, release, METHODS[fit][release.settings["solver"]]


def flat(shown: Plain, stem: str = "") -> Plain:
    """Settings by dotted names."""
    parts: Plain = {}
    for name, value in shown.items():
        parts |= flat(value, f"{stem}{name}.") if isinstance(value, dict) else {stem + name: value}
    return parts


def test_every_solver_but_the_perturbed_ones_is_here():
    tried = {(fit, fit(solver).release_.settings["solver"])
             for fit, solver, _ in FITS.values() if fit is not found}  # fmt: skip
    for fit in (linear, centres, places):
        assert {name for which, name in tried if which is fit} == set(METHODS[fit]) - PERTURBED


@pytest.mark.few(2)
@pytest.mark.parametrize("name", FITS)
def test_settings_that_are_used_again_release_the_same(name):
    model, release, kind = fitted(name)
    again = FITS[name][0](settings_again(kind, _given(release.settings, model)))
    assert answer(again) == answer(model)
    shown = (getattr(again, "release_", None) or again.release).settings
    assert repr(shown) == repr(release.settings)


def _given(shown: Plain, model: Any) -> Plain:
    """Lloyd's own steps of a block have no estimator that could be passed."""
    return {**shown, "estimator": None} if isinstance(shown.get("estimator"), str) else shown


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "name", [name for name, (_, _, unused) in FITS.items() if unused is not None]
)
def test_what_rules_chose_is_shown_and_what_had_no_use_is_none(name):
    _, release, kind = fitted(name)
    empty = {key for key, value in flat(release.settings).items() if value is None}
    assert empty - {"postprocess"} == FITS[name][2]
    assert {one.name for one in fields(kind)} - set(kind.unlisted) <= set(release.settings)


def drawn(release: Any, kind: str | None = None) -> int:
    return sum(event.count for event in release.events if kind in (None, event.kind))


# How many draws follow from the settings that a release shows; heads are models of one fit.
DRAWS: dict[str, Callable[[Plain], int]] = {
    "local": lambda s: s["generations"],
    "eem": lambda s: s["generations"],
    "privgene": lambda s: (s["generations"] - s["paper"]) * s["survivors"] + 1,
    "dpsga": lambda s: s["generations"] * s["survivors"] + 1,
    "subsample": lambda s: 1,
    "gradient": lambda s: s["steps"] + bool(s["whiten"]),
    "additive": lambda s: s["steps"] + 1,
    "frank_wolfe": lambda s: s["steps"],
    "sgd": lambda s: 1,
    "functional": lambda s: 1,
    "gupt": lambda s: 1,
    "majority": lambda s: 1,
    "evidence": lambda s: 2,
    "lloyd": lambda s: s["steps"],
    "grid": lambda s: 1,
    "tree": lambda s: 2,
    "over_seeded": lambda s: s["steps"] + 5 + 3 * s["mean"] + 2 * s.get("frame", 0),
    "mean": lambda s: s["steps"] + s["bought"],
    "synopsis": lambda s: 2,
    "greedy": lambda s: s["n_clusters"] + s["swaps"] + 2 * bool(s["focus"]),
    "coreset": lambda s: (s["selections"] if s["alpha"] else s["radii"] * s["places"]) + 1,
}
HYBRIDS = {
    linear: lambda s: s["select"]["generations"] + s["refine"]["steps"] + 1,
    centres: lambda s: s["lloyd"]["steps"] + 2,
}


def sizes_of(shown: Plain) -> set[tuple[float, int]]:
    """Sizes and numbers of the selections; as published, PrivGene's last one has its own."""
    if "eps_last" not in shown:
        return {(shown["eps_s"], shown["selections"])}
    first = {(shown["eps_s"], shown["selections"] - 1)} if shown["selections"] > 1 else set()
    return first | {(shown["eps_last"], 1)}


def draws_of(fit: Any, shown: Plain) -> int:
    if shown["solver"] in ("select_refine", "hybrid"):
        return HYBRIDS[fit](shown)
    if fit is places and shown["solver"] == "swaps":
        return int(shown["steps"]) + 1
    return DRAWS[shown["solver"]](shown)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "delta"),
    [
        *((name, 1e-6) for name in FITS),
        *((name, 0.0) for name in FITS if name not in ("select_refine", "additive", "auto")),
    ],  # need delta; is perturbed
)
def test_draws_follow_from_the_settings(name, delta):
    fit, solver, _ = FITS[name]
    model = fit(solver, delta=delta)
    release = getattr(model, "release_", None) or model.release
    assert drawn(release) == draws_of(fit, release.settings)
    if "selections" in release.settings:
        sizes = {(e.parameter, e.count) for e in release.events if e.kind == "selection"}
        assert sizes_of(release.settings) <= sizes
    assert release.verify()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["local", "eem", "gradient", "dpsga", "majority"])
def test_draws_of_several_classes_are_those_of_each(solver):
    release = linear(solver, y=THREE).release_
    assert drawn(release) == 3 * draws_of(linear, release.settings)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["local", "eem", "dpsga", "gradient", "frank_wolfe"])
def test_generations_that_were_told_are_those_of_the_release(name):
    told: list[Any] = []
    release = linear(name, callback=told.append).release_
    shown = release.settings
    steps = shown.get("generations") or shown["steps"]
    assert len(told) == told[-1].total == steps + (name == "dpsga")


def test_a_walk_of_one_number_of_steps_shows_both_ends_of_its_schedule():
    release = linear(privfit.Local(generations=50)).release_
    assert math.isclose(release.settings["last_step"], 0.3 * release.settings["step"])
    assert release.settings["cap"] == 0.5


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_private_numbers_of_records_are_in_no_settings(adjacency):
    """A rule that needs the number of records has the public one under add_remove."""
    for solver in ("local", "gradient", "gupt"):
        shown = linear(solver, adjacency=adjacency, n_public=1000).release_.settings
        again = linear(solver, adjacency=adjacency, n_public=1000).release_.settings
        assert repr(shown) == repr(again)
        assert N not in flat(shown).values()


def test_metrics_say_how_they_were_measured():
    score = np.clip(X[:, 0] / 2 + 0.5, 0, 1)
    flat_curve = roc_curve(Y, score, 1.0, noise="flat", levels=3, random_state=0)
    tree_curve = roc_curve(Y, score, 1.0, noise="hierarchy", levels=3, random_state=0)
    assert flat_curve.release.settings["smooth"] is True
    assert tree_curve.release.settings["smooth"] is False  # asked for, and not done
    assert confusion_matrix(Y, score, 1.0, threshold=0.4).release.settings == {"threshold": 0.4}
    ledger = privfit.Ledger(1.0)
    accuracy_score(Y, score, 1.0, threshold=0.4, ledger=ledger)
    assert ledger.releases[0].settings == {"threshold": 0.4}


def test_features_and_bayes_show_the_ones_that_counted():
    binary = X > 0
    select = privfit.SelectFeatures(
        1.0, classes=[0, 1], solver=privfit.ClusteredCounts(k=2, n_clusters=8)
    ).fit(binary, Y)
    assert select.release_.settings["max_ones"] == 3
    assert select.release_.settings["n_clusters"] == 3  # there are three features to cluster
    bayes = privfit.BernoulliNB(1.0, classes=[0, 1], max_ones=2).fit(binary, Y)
    assert bayes.release_.settings == {"alpha": 1.0, "max_ones": 2}


ADJUSTED = {
    "fewer cells": (centres, privfit.UniformGrid(cells=9)),
    "a radius on the grid": (centres, privfit.Lloyd(residual=True, radius=0.3001)),
    "a whole weight of counts": (centres, privfit.Lloyd(count_share=0.123)),
    "roots within the depth": (centres, privfit.clustering.Tree(roots=40, depth=3)),
    "a part's roots": (centres, privfit.Hybrid(tree=privfit.clustering.Tree(roots=40, depth=3))),
    "no gradient of centres": (centres, privfit.Local(generations=5, cap=0.5)),
    "no moments": (linear, privfit.Gradient(whiten=False, floor=0.5)),
    "no gradient by loss": (linear, privfit.Local(scoring="loss", generations=5, cap=0.25)),
    "a shorter step": (linear, privfit.PermutedSGD(step=1000.0)),
    "a whole factor": (linear, privfit.Functional(weight=1e-9)),
    "places that there are": (places, privfit.Coreset(places=100)),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("name", ADJUSTED)
def test_a_model_whose_settings_were_adjusted_is_saved_and_loaded(name):
    fit, settings = ADJUSTED[name]
    model = fit(settings)
    loaded = loads(dumps(model))
    assert loaded.release_.to_json() == model.release_.to_json()
    used, given = flat(loaded.release_.settings), flat(asdict(settings))
    assert any(used[key] != value for key, value in given.items() if value is not None)


def test_clusters_of_few_features_are_saved_and_loaded():
    settings = privfit.ClusteredCounts(k=2, n_clusters=8)
    model = privfit.SelectFeatures(1.0, classes=[0, 1], solver=settings).fit(X > 0, Y)
    assert loads(dumps(model)).release_.settings["n_clusters"] == 3
