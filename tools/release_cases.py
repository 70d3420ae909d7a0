"""The cases of `releases.py`: fits, searches and draws on records that are made here.

Records come from whole-number arithmetic, so that they are the same on every machine. Cases use
names that `import privfit` has. The few that are elsewhere, or had another name, are looked up in
`PLACES` and `RENAMED`, so that the same cases run before and after a move.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import privfit
from privfit.searches import operators

# -------------------------------------------------------------------------------------------- names

# Where a name is if not at the top level: its room, then where it was before there were rooms.
PLACES = {
    "LloydTrace": ("privfit.clustering", "privfit.postprocess"),
    "PriROC": ("privfit.evaluation", "privfit.priroc"),
    "Tree": ("privfit.clustering", "privfit.kmeans"),
    "aggregate": ("privfit.searches", "privfit.aggregate"),
    "consistent": ("privfit.clustering.consistency", "privfit.postprocess"),
    "mcmc": ("privfit.clustering", "privfit.postprocess"),
}
RENAMED = {"SelectRefine": "LinearHybrid", "Swaps": "Gupta"}


def public(name: str) -> Any:
    """A public name of privfit, wherever it is; a module of that name is not meant."""
    for module in (*PLACES.get(name, ()), "privfit"):
        with suppress(ModuleNotFoundError):
            found = getattr(importlib.import_module(module), name, None)
            if callable(found):
                return found
    if name in RENAMED:
        return public(RENAMED[name])
    raise AttributeError(f"privfit has no {name}; say in PLACES or RENAMED where it went")


# Names of solvers and of a parameter, which changed together with those of classes.
SELECT_REFINE = "select_refine" if hasattr(privfit, "SelectRefine") else "hybrid"
SWAPS = "swaps" if hasattr(privfit, "Swaps") else "local"
SELECTS_BY = "solver" if "solver" in privfit.SelectFeatures().get_params() else "method"


# -------------------------------------------------------------------------------- what was released


@dataclass(frozen=True)
class Released:
    """The numbers that a case released, and what else is said about them."""

    numbers: Mapping[str, Any]
    settings: Mapping[str, Any]


Case = Callable[[], Released]


def of_release(release: Any, **more: Any) -> Released:
    """A release, with more numbers that go with it."""
    if release is None:  # of an infinite epsilon
        return Released(more, {})
    fields = json.loads(release.to_json())
    # Those follow from the others, by linear algebra in floats, or from the same draws; the cases
    # `traces` have parts.
    for name in ("noise", "shares", "sizes", "size_noise", "parts"):
        fields["parameters"].pop(name, None)
    names = ("epsilon", "delta", "events", "parameters")
    return Released({"released": {name: fields.pop(name) for name in names}, **more}, fields)


def together(**parts: Released) -> Released:
    """Several releases as one."""
    return Released(
        {name: part.numbers for name, part in parts.items()},
        {name: part.settings for name, part in parts.items()},
    )


FITTED = ("coef_", "intercept_", "coef_names_", "classes_", "cluster_centers_", "facilities_",
          "class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "ranking_",
          "n_features_in_", "feature_names_in_")  # fmt: skip
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")


def of_model(model: Any, points: Any, **more: Any) -> Released:
    """A fitted model: its release, its attributes, and what it answers about public points."""
    fitted = {name: getattr(model, name) for name in FITTED if hasattr(model, name)}
    answers = {name: getattr(model, name)(points) for name in ANSWERS if hasattr(model, name)}
    return of_release(model.release_, fitted=fitted, answers=answers, **more)


@dataclass(frozen=True)
class Fit:
    """A model that is to be fitted, to what, and public points to ask it about."""

    model: Any
    X: Any
    y: Any
    points: Any

    def fitted(self) -> Any:
        return self.model.fit(self.X, self.y)

    def released(self) -> Released:
        """The model after its fit, and what a callback heard of each generation."""
        heard: list[Any] = []
        if "callback" in self.model.get_params(deep=False):
            self.model.set_params(callback=lambda now: heard.append(news(now)))
        return of_model(self.fitted(), self.points, generations=heard)


def news(generation: Any) -> tuple[int, int, Any]:
    return generation.index, generation.total, generation.parameters


def fit_case(make: Callable[..., Fit], *arguments: Any, **settings: Any) -> Case:
    return lambda: make(*arguments, **settings).released()


# ------------------------------------------------------------------------------------------ records

SEED = 7
SIZE = 1000


def numbers(n: int, d: int, seed: int) -> np.ndarray:
    """(n, d) in [-1, 1), multiples of 2^-15: splitmix64 of the position."""
    z = np.arange(1, n * d + 1, dtype=np.uint64) + np.uint64(seed << 32)
    z *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return ((z >> np.uint64(48)).astype(np.float64) - 32768).reshape(n, d) / 32768


def pairs(n: int, d: int) -> np.ndarray:
    """(n, d) points of at most two powers of two: a product with them is the same in any order."""
    points, rows = np.zeros((n, d)), np.arange(n)
    points[rows, rows % d] = np.ldexp(1.0, -(rows % 3))
    points[rows[1:], (2 * rows[1:] + 1) % d] = -0.5
    return points


def scattered(raw: np.ndarray) -> Any:
    return scipy.sparse.csr_matrix(np.where(np.abs(raw) > 0.75, raw, 0.0))


@dataclass(frozen=True)
class Table:
    """Records, public points, and labels by the number of classes, as a domain has them."""

    domain: Any
    records: Any
    points: Any
    labels: Mapping[int, np.ndarray]


def labels(raw: np.ndarray) -> dict[int, np.ndarray]:
    """Two and three classes that follow the first two columns, with noise by the last."""
    slope = raw[:, 0] - raw[:, 1] + raw[:, -1] / 2
    return {2: (slope > 0).astype(int), 3: np.digitize(slope, [-0.5, 0.5])}


JOBS = ["none", "clerk", "nurse", "smith"]
TOWNS = [f"town {j}" for j in range(8)]
SCHEMA = {
    "job": privfit.Categorical(JOBS),
    "town": privfit.Categorical(TOWNS[:5], other=True),
    "age": privfit.Numeric(17, 90),
    "income": privfit.Numeric(0, 1024, bins=4),
}


def people(raw: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of texts and numbers, some of them unknown or out of bounds."""
    codes = ((raw[:, :2] + 1) * 4).astype(int)  # 0 to 7
    return {
        "job": np.array(JOBS)[codes[:, 0] // 2],
        "town": np.array(TOWNS)[codes[:, 1]],
        "age": 53 + 45 * raw[:, 2],
        "income": 512 + 600 * raw[:, 3],
    }


@cache
def table(name: str) -> Table:
    """The records of linear models."""
    if name == "schema":
        raw = numbers(SIZE, 4, 1)
        schema = privfit.Schema(SCHEMA)
        return Table(schema, people(raw), people(numbers(9, 4, 3)), labels(raw[:, ::-1]))
    width = 30 if name == "sparse" else 5
    raw, points = numbers(SIZE, width, 4), pairs(9, width)
    box, known = privfit.Box(-1, 1, width), labels(raw)
    return {
        "box": Table(box, raw, points, known),
        "ball": Table(privfit.L2Ball(1.0, width), raw * 0.75, points, known),
        "diamond": Table(privfit.L1Ball(1.5, width), raw, points, known),
        "sparse": Table(box, scattered(raw), scipy.sparse.csr_matrix(points), known),
    }[name]


@cache
def clouds(name: str) -> Table:
    """The records of clusters: three clouds, in three columns unless the name says otherwise."""
    if name == "schema":
        return table("schema")
    width = {"line": 1, "plane": 2, "sparse": 6}.get(name, 3)
    middles = np.array([[-0.5], [0.0], [0.5]]) * np.where(np.arange(width) % 2, -1, 1)
    raw = middles[np.arange(SIZE) % 3] + numbers(SIZE, width, 6) / 8
    points = numbers(9, width, 7)
    if name == "sparse":
        raw, points = scattered(2 * raw), scattered(points)
    domain = privfit.L2Ball(1.0, width) if name == "ball" else privfit.Box(-1, 1, width)
    return Table(domain, raw, points, {})


@cache
def binary() -> Table:
    """Records of 24 zeros and ones, of which the first three columns know the class."""
    raw, side = numbers(SIZE, 24, 8), (numbers(SIZE, 1, 9)[:, 0] > 0).astype(int)
    likely = np.where(np.arange(24) < 3, 0.7 * side[:, None], 0.0) - 0.5
    points = (pairs(9, 24) != 0).astype(np.int8)
    return Table(None, (raw < likely).astype(np.int8), points, {2: side, 3: np.arange(SIZE) % 3})


# ------------------------------------------------------------------------------ budgets and solvers

BUDGETS = {"pure": (1.0, 0.0), "delta": (1.0, 1e-6), "infinite": (math.inf, 0.0)}
RELATIONS: dict[str, dict[str, Any]] = {
    "replace": {"adjacency": "replace"},
    "add_remove": {"adjacency": "add_remove", "n_public": SIZE},
}
EVERY = [(budget, relation) for budget in ("pure", "delta") for relation in RELATIONS]
SOME = [("pure", "add_remove"), ("delta", "replace")]
LONG = ("dpsga", "dpsga as published", "eem")  # for which one table must do


def is_varied(name: str) -> bool:
    """Whether a solver has settings of its own: it is neither by name nor as published."""
    return ", " in name


def budgets_of(name: str) -> list[tuple[str, str]]:
    return SOME if is_varied(name) else EVERY


def by_name(*names: str) -> dict[str, Any]:
    return {name: name for name in names}


SEARCHES: dict[str, Any] = {
    **by_name("local", "eem", "privgene", "dpsga"),
    "local as published": privfit.Local(paper=True),
    "eem as published": privfit.EEM(paper=True),
    "privgene as published": privfit.PrivGene(paper=True),
    "dpsga as published": privfit.DPSGA(paper=True),
    "local, by loss": privfit.Local(scoring="loss", generations=8),
    "local, long": privfit.Local(generations=30, step=0.5, last_step=0.01, average=0.5),
    "local as published, 3": privfit.Local(paper=True, generations=3),
    "eem, short": privfit.EEM(generations=6, population=25, average=0.5),
    "eem as published, 3": privfit.EEM(paper=True, generations=3),
    "privgene, short": privfit.PrivGene(generations=3, population=30, survivors=4),
    "privgene as published, 3": privfit.PrivGene(paper=True, generations=3),
    "dpsga, short": privfit.DPSGA(generations=4, population=30, survivors=4),
    "dpsga, noisy max": privfit.DPSGA(generations=3, population=20, selection="noisy_max"),
    "dpsga, permute and flip": privfit.DPSGA(
        generations=3, population=20, selection="permute_and_flip", composition="kov"
    ),
    "subsample, short": privfit.Subsample(candidates=200),
    "subsample as published": privfit.Subsample(paper=True),
}
GUPT = {
    "gupt": "gupt",
    "gupt as published": privfit.Gupt(paper=True),
    "gupt, 12 blocks": privfit.Gupt(blocks=12),
}

# ----------------------------------------------------------------------------------- linear models

SMOOTH = privfit.SmoothLoss(  # the logistic loss, as one's own
    lambda m: np.logaddexp(0, -m), lambda m: -1 / (1 + np.exp(m)), slope=1.0, curvature=0.25
)
LINEAR: dict[str, Any] = {
    **SEARCHES,
    **GUPT,
    **by_name("auto", "gradient", "frank_wolfe", "sgd", "output", "objective", "majority"),
    "select_refine": SELECT_REFINE,
    "sgd as published": privfit.PermutedSGD(paper=True),
    "output as published": privfit.OutputPerturbation(paper=True),
    "objective as published": privfit.ObjectivePerturbation(paper=True),
    "select_refine, short": public("SelectRefine")(
        0.5, privfit.Local(generations=4), privfit.Gradient(steps=4, whiten=True, average=0.0)
    ),
    "gradient, plain": privfit.Gradient(steps=6, whiten=False, clip=0.5),
    "gradient, whitened": privfit.Gradient(steps=6, whiten=True, momentum=0.5),
    "frank_wolfe, short": privfit.FrankWolfe(steps=7, radius=5.0, average=0.5),
    "sgd, ridge": privfit.PermutedSGD(passes=2, batch=10, ridge=0.01),
    "output, ridge": privfit.OutputPerturbation(regularisation=30.0),
    "objective, l2": privfit.ObjectivePerturbation(shaped=False),
    "objective, look": privfit.ObjectivePerturbation(look=0.1),
    "majority, settings": privfit.Majority(),
}
ONE_KIND: dict[str, dict[str, Any]] = {
    "LogisticRegression": {
        "functional": "functional",
        "functional as published": privfit.Functional(paper=True),
        "functional, ridge": privfit.Functional(ridge=20.0),
        "objective, own loss": privfit.ObjectivePerturbation(loss=SMOOTH),
    },
    "LinearSVC": {
        "privatesvm": "privatesvm",
        "privatesvm as published": privfit.PrivateSVM(paper=True),
        "auto, C": "auto",
        "eem, C": privfit.EEM(generations=5, population=20),
        "privgene, C": privfit.PrivGene(generations=2, population=20),
    },
}
# Perturbations as printed have no intercept; "C" is the weight of the hinge loss.
PARAMETERS: dict[str, dict[str, Any]] = {
    "output as published": {"fit_intercept": False},
    "objective as published": {"fit_intercept": False},
    "auto, C": {"C": 0.25},
    "eem, C": {"C": 0.25},
    "privgene, C": {"C": 10.0},
}


# Unless it is asked for, whatever the default.
UNCALIBRATED = {"calibrate": False, "coding": "declared"}


def linear(kind: str, solver: Any, where: str, budget: str, relation: str, *, classes: int = 2,
           **more: Any) -> Fit:  # fmt: skip
    made = table(where)
    model = getattr(privfit, kind)(
        *BUDGETS[budget], domain=made.domain, classes=range(classes), solver=solver,
        random_state=SEED, **RELATIONS[relation], **UNCALIBRATED | more,
    )  # fmt: skip
    return Fit(model, made.records, made.labels[classes], made.points)


BOUGHT: dict[str, dict[str, Any]] = {
    "calibrated": {"calibrate": True},
    "weighed": {"class_weight": {0: 1.0, 1: 3.0}},
    "balanced and calibrated": {"class_weight": "balanced", "calibrate": True},
}


def linear_cases() -> Iterator[tuple[str, Case]]:
    for kind, own in ONE_KIND.items():
        for name, solver in (LINEAR | own).items():
            make, more = partial(fit_case, linear, kind, solver), PARAMETERS.get(name, {})
            for budget, relation in budgets_of(name):
                end = f"{budget}/{relation}"
                for where in ("box",) if name in LONG else ("box", "ball", "schema", "sparse"):
                    yield f"{kind}/{name}/{where}/{end}", make(where, budget, relation, **more)
            for budget, relation in SOME:
                end, bare = f"{budget}/{relation}", {**more, "fit_intercept": False}
                yield f"{kind}/{name}/diamond/{end}", make("diamond", budget, relation, **more)
                for where in ("box",) if is_varied(name) or name in LONG else ("box", "schema"):
                    three = make(where, budget, relation, classes=3, **more)
                    yield f"{kind}/{name}/{where}, three classes/{end}", three
                    yield (f"{kind}/{name}/{where}, no intercept/{end}",
                           make(where, budget, relation, **bare))  # fmt: skip
        for bought, more in BOUGHT.items():
            for (budget, relation), where in itertools.product(EVERY, ("box", "schema")):
                solver = LINEAR["gradient, plain" if budget == "pure" else "gradient, whitened"]
                yield (f"{kind}/gradient, {bought}/{where}/{budget}/{relation}",
                       fit_case(linear, kind, solver, where, budget, relation, **more))  # fmt: skip
        for solver, (budget, relation) in itertools.product(("local", "objective"), SOME):
            more = {"classes": 3, "calibrate": True}
            yield (f"{kind}/{solver}, calibrated/box, three classes/{budget}/{relation}",
                   fit_case(linear, kind, solver, "box", budget, relation, **more))  # fmt: skip
        for name, budget in (("subsample", "delta"), ("dpsga", "infinite")):
            case = fit_case(linear, kind, name, "box", budget, "replace")
            yield f"{kind}/{name}/box, by name/{budget}/replace", case


# ---------------------------------------------------------------------------------------- clusters

KMEANS: dict[str, Any] = {
    **{name: SEARCHES[name] for name in SEARCHES if "subsample" not in name},
    **GUPT,
    **by_name("auto", "lloyd", "grid", "tree", "hybrid", "over_seeded", "mean"),
    "lloyd as published": privfit.Lloyd(paper=True),
    "grid as published": privfit.UniformGrid(paper=True),
    "hybrid as published": privfit.Hybrid(paper=True),
    "lloyd, residuals": privfit.Lloyd(steps=3, residual=True),
    "lloyd, average": privfit.Lloyd(steps=4, average=0.5, count_share=0.3),
    "grid, 64 cells": privfit.UniformGrid(cells=64, restarts=2),
    "tree, shallow": public("Tree")(shape_share=0.5, depth=5, restarts=3),
    "hybrid, short": privfit.Hybrid(
        0.4, public("Tree")(restarts=2), privfit.Lloyd(steps=2, residual=True)
    ),
}
KMEDIAN: dict[str, Any] = {
    **{name: SEARCHES[name] for name in SEARCHES if "local" not in name},
    "local, by loss": SEARCHES["local, by loss"],
    **by_name("auto", "synopsis", "greedy", "coreset"),
    "swaps": SWAPS,
    "swaps as published": public("Swaps")(paper=True),
    "coreset as published": privfit.Coreset(paper=True),
    "swaps, 3": public("Swaps")(steps=3),
    "greedy, swaps": privfit.Greedy(focus=0.2, swaps=2),
    "greedy, over-seeded": privfit.Greedy(seeds=2, swaps=1),
    "coreset, 2 radii": privfit.Coreset(radii=2, share=0.4),
    "synopsis, shallow": privfit.Synopsis(shape_share=0.5, depth=6),
}


def largest_gap(records: Any, places: Any) -> Any:
    """A metric of one's own."""
    return np.abs(np.asarray(records)[:, None] - np.asarray(places)).max(axis=2)


METRICS: dict[str, dict[str, Any]] = {
    "l1": {},
    "l2": {"metric": "l2"},
    "clipped": {"clip": (0.1, 0.9)},
    "own metric": {"metric": largest_gap, "clip": (0.0, 1.0)},
}
MEASURED = [("plane", "l1"), ("box", "l2"), ("ball", "clipped"), ("schema", "l1"),
            ("sparse", "l1"), ("plane", "own metric")]  # fmt: skip


NARROW = ("line", "plane")  # where 'auto' is a tree, as ever; elsewhere cases name what it was


def kmeans(solver: Any, where: str, budget: str, relation: str, **more: Any) -> Fit:
    made = clouds(where)
    if isinstance(solver, str) and solver == "auto" and where not in NARROW and not more:
        solver = "hybrid"
    more.setdefault("postprocess", None)  # which 'auto' had not in the beginning
    model = privfit.KMeans(3, *BUDGETS[budget], domain=made.domain, solver=solver,
                           random_state=SEED, **RELATIONS[relation], **more)  # fmt: skip
    return Fit(model, made.records, None, made.points)


def kmedian(solver: Any, where: str, metric: str, budget: str, relation: str) -> Fit:
    made, more = clouds(where), METRICS[metric]
    model = privfit.KMedian(
        3, *BUDGETS[budget], facilities=numbers(25, made.domain.width, 10), solver=solver,
        domain=None if metric == "own metric" else made.domain, random_state=SEED,
        **RELATIONS[relation], **more,
    )  # fmt: skip
    return Fit(model, made.records, None, made.points)


TRACED = ("grid, 64 cells", "tree, shallow", "hybrid, short", "over_seeded", "mean",
          "lloyd, residuals")  # fmt: skip


def traced(solver: Any, where: str, budget: str, relation: str) -> Released:
    """What the parts of a fit released."""
    release = kmeans(solver, where, budget, relation).fitted().release_
    return Released({"parts": json.loads(release.to_json())["parameters"]["parts"]}, {})


ANYWHERE = by_name("medians", "cell_medians")  # without facilities


def anywhere(solver: Any, where: str, budget: str, relation: str) -> Fit:
    made = clouds(where)
    model = privfit.KMedian(3, *BUDGETS[budget], domain=made.domain, solver=solver, metric="l2",
                            random_state=SEED, **RELATIONS[relation])  # fmt: skip
    return Fit(model, made.records, None, made.points)


def inertia(where: str, relation: str) -> Released:
    fit = kmeans("tree", where, "pure", relation)
    cost = fit.fitted().private_inertia(fit.X, 0.5)
    return of_release(cost.release, inertia=cost)


def chosen(budget: str, relation: str) -> Released:
    made = clouds("box")
    found = privfit.choose_k(made.records, range(2, 7), *BUDGETS[budget], domain=made.domain,
                             random_state=SEED, **RELATIONS[relation])  # fmt: skip
    return of_release(found.release, k=found.k)


def cost(metric: str, relation: str) -> Released:
    fit = kmedian("greedy", "plane", metric, "pure", relation)
    found = fit.fitted().private_cost(fit.X, 0.5)
    return of_release(found.release, cost=found)


def kmeans_cases() -> Iterator[tuple[str, Case]]:
    for name, solver in KMEANS.items():
        for where in ("box",) if name in LONG else ("box", "ball", "schema", "sparse"):
            for budget, relation in budgets_of(name):
                case = fit_case(kmeans, solver, where, budget, relation)
                yield f"KMeans/{name}/{where}/{budget}/{relation}", case
    for where in ("line", "plane"):
        for budget, relation in EVERY:
            case = fit_case(kmeans, "auto", where, budget, relation)
            yield f"KMeans/auto/{where}/{budget}/{relation}", case
    for chain in ("mcmc", "anneal"):
        for name in ("auto", "lloyd as published"):
            for where, (budget, relation) in zip(("plane", "box"), SOME, strict=True):
                case = fit_case(kmeans, KMEANS[name], where, budget, relation, postprocess=chain)
                yield f"KMeans/{chain}/{name}/{where}/{budget}/{relation}", case
    for name in TRACED:
        for budget, relation in SOME:
            case = partial(traced, KMEANS[name], "box", budget, relation)
            yield f"KMeans/traces/{name}/box/{budget}/{relation}", case
    for where in ("box", "ball", "schema", "sparse"):
        for relation in RELATIONS:
            yield f"KMeans/inertia/{where}/{relation}", partial(inertia, where, relation)
    for budget, relation in SOME:
        yield f"choose_k/box/{budget}/{relation}", partial(chosen, budget, relation)


def kmedian_cases() -> Iterator[tuple[str, Case]]:
    for name, solver in KMEDIAN.items():
        for where, metric in MEASURED[:1] if name in LONG else MEASURED:
            for budget, relation in budgets_of(name):
                case = fit_case(kmedian, solver, where, metric, budget, relation)
                yield f"KMedian/{name}/{where}, {metric}/{budget}/{relation}", case
    for name, solver in ANYWHERE.items():
        for where in ("plane", "box"):
            for budget, relation in budgets_of(name):
                case = fit_case(anywhere, solver, where, budget, relation)
                yield f"KMedian/{name}/{where}, anywhere/{budget}/{relation}", case
    by_default = fit_case(kmedian, "subsample", "plane", "l1", "pure", "replace")
    yield "KMedian/subsample/plane, l1/pure/replace", by_default
    for metric in METRICS:
        for relation in RELATIONS:
            yield f"KMedian/cost/{metric}/{relation}", partial(cost, metric, relation)


# ------------------------------------------------------------------------ binary features and words

CRITERIA = ("purity_index", "total_count", "difference_count", "information_gain")
SELECTIONS: dict[str, Any] = {
    **by_name("auto", "noisy", "peeling", "clusters"),
    "sparse_vector": privfit.SparseVector(k=4, threshold=100),
    "noisy as published": privfit.NoisyScores(k=4, paper=True),
    "noisy as published, threshold": privfit.NoisyScores(threshold=100, paper=True),
    "noisy, threshold": privfit.NoisyScores(threshold=100),
    "peeling, 3": privfit.Peeling(3),
    "clusters, 5": privfit.ClusteredCounts(k=5, n_clusters=4),
    "clusters, threshold": privfit.ClusteredCounts(threshold=150),
}
TEXTS = ["Win £500 now, FREE!", "the cat sat on the mat", "meet me at 10:30", "", "naïve café 2024"]
WORDS: dict[str, dict[str, Any]] = {
    "hashed": {},
    "16 columns": {"n_features": 16},
    "digits": {"n_features": 64, "fold_digits": False},
    "vocabulary": {"vocabulary": ["free", "£", "000", "cat"]},
}


def bayes(budget: str, relation: str, classes: int = 2, **more: Any) -> Fit:
    made = binary()
    model = privfit.BernoulliNB(*BUDGETS[budget], classes=range(classes), adjacency=relation,
                                random_state=SEED, **more)  # fmt: skip
    return Fit(model, made.records, made.labels[classes], made.points)


def sparse_bayes(*arguments: Any, **more: Any) -> Fit:
    fit = bayes(*arguments, **more)
    return Fit(fit.model, scipy.sparse.csr_matrix(fit.X), fit.y, fit.points)


def selection(solver: Any, criterion: str, budget: str, relation: str, **more: Any) -> Fit:
    made = binary()
    model = privfit.SelectFeatures(
        *BUDGETS[budget], k=4, criterion=criterion, classes=[0, 1], random_state=SEED,
        **{SELECTS_BY: solver}, **RELATIONS[relation], **more,
    )  # fmt: skip
    return Fit(model, made.records, made.labels[2], made.points)


def words(**settings: Any) -> Released:
    return Released({"words": privfit.HashWords(**settings).fit().transform(TEXTS)}, {})


def feature_cases() -> Iterator[tuple[str, Case]]:
    for form, make in (("dense", bayes), ("sparse", sparse_bayes)):
        for classes in (2, 3):
            for name, more in (("all", {}), ("few", {"max_ones": 5, "alpha": 0.5})):
                for budget, relation in EVERY:
                    case = fit_case(make, budget, relation, classes, **more)
                    yield f"BernoulliNB/{name}/{form}/{classes} classes/{budget}/{relation}", case
    for name, solver in SELECTIONS.items():
        for criterion in CRITERIA:
            for budget, relation in budgets_of(name):
                make_one = partial(fit_case, selection, solver, criterion, budget, relation)
                end = f"{criterion}/{budget}/{relation}"
                yield f"SelectFeatures/{name}/all/{end}", make_one()
                yield f"SelectFeatures/{name}/few/{end}", make_one(max_ones=3)
    for name, settings in WORDS.items():
        yield f"HashWords/{name}", partial(words, **settings)


# ---------------------------------------------------------------------------------------- searches

ITEMS = ((numbers(SIZE, 1, 11)[:, 0] + 1) ** 2 * 3).astype(int)  # 0 to 11, low ones often
PROBLEMS = ("logistic box", "logistic schema", "hinge ball", "zero_one sparse", "centres",
            "facilities", "own reals", "own subsets", "own bits")  # fmt: skip


def nearness(records: Any, P: Any) -> Any:
    """A score of one's own for reals: how near a record is to a candidate."""
    return -np.abs(np.asarray(records)[:, None, :] - P[None]).mean(axis=2)


def membership(records: Any, P: Any) -> Any:
    """For subsets: whether a candidate has the record's item."""
    return (P[None] == np.asarray(records)[:, None, None]).any(axis=2).astype(float)


def cover(records: Any, P: Any) -> Any:
    """For bits: whether the record's bit is set, less a little for each that is."""
    return P.T[np.asarray(records)] - P.mean(axis=1) / 2


@cache
def problem(name: str) -> tuple[Any, Any]:
    """An objective and a space."""
    plane = clouds("plane")
    if name == "centres":
        space = privfit.Reals(-np.ones((3, 2)), np.ones((3, 2)), (3, 2))
        return privfit.CentersObjective(plane.records, 3, plane.domain), space
    if name == "facilities":
        places = numbers(25, 2, 10)
        objective = privfit.FacilityObjective(plane.records, places, (0.1, 1.5), plane.domain)
        return objective, privfit.Subsets(25, 3)
    if name == "own reals":
        objective = privfit.RecordObjective(plane.records, nearness, -2.0, 0.0)
        return objective, privfit.Reals(-1, 1, 2)
    if name == "own subsets":
        return privfit.RecordObjective(ITEMS, membership, 0.0, 1.0), privfit.Subsets(12, 3)
    if name == "own bits":
        return privfit.RecordObjective(ITEMS, cover, -0.5, 1.0), privfit.Bits(12)
    if name in SPACES:
        score, space = SPACES[name]
        return privfit.RecordObjective(ITEMS, score, -1.0, 1.0), space
    loss, where = name.split()
    made = table(where)
    weighed = privfit.LinearObjective(made.records, made.labels[2], loss, made.domain)
    return weighed, privfit.Reals(-2, 2, weighed.n_weights)


def order(records: Any, P: Any) -> Any:
    """For permutations: how far to the front a candidate has the record's item."""
    return -np.argsort(P, axis=1).T[np.asarray(records)] / P.shape[1]


def thresholds(records: Any, P: Any) -> Any:
    """For integers: whether a record lies between two of them, less the distance of the two."""
    low, high = P.min(axis=1), P.max(axis=1)
    x = np.asarray(records)[:, None]
    return ((low <= x) & (x <= high)) - (high - low) / 12


MIXED = privfit.Mixed(privfit.Bits(12), privfit.Integers(0, 12, 1), privfit.Reals(0, 1, 1))


def mixture(records: Any, P: Any) -> Any:
    """For several spaces side by side: the record's bit or integer, less a real each has."""
    bits, whole, real = MIXED.split(P)
    x = np.asarray(records)
    return (bits.T[x] | (whole[:, 0] == x[:, None])) - bits.mean(axis=1) * real[:, 0] / 2


SPACES = {
    "own order": (order, privfit.Permutations(12)),
    "own integers": (thresholds, privfit.Integers(0, 12, 2)),
    "own mixture": (mixture, MIXED),
}


IN_SPACES = ("local, by loss", "eem, short", "privgene, short", "privgene as published, 3",
             "dpsga, short")  # fmt: skip


OPERATED = {
    "privgene, operators": privfit.PrivGene(
        generations=3, population=30, survivors=4, crossover=operators.Uniform(0.7),
        mutation=operators.Gaussian(0.1), schedule=operators.Geometric(0.2),
        starts=operators.MiddleStarts(0.1),
    ),
    "dpsga, operators": privfit.DPSGA(
        generations=3, population=30, survivors=4, crossover=operators.OnePoint(),
        mutation=operators.Redraw(), schedule=operators.Decay(0.5),
    ),
    "dpsga as published, steps": privfit.DPSGA(
        generations=3, population=30, survivors=4, paper=True, mutation=operators.Step(0.2)
    ),
}  # fmt: skip


def searched(name: str, solver: Any, budget: str, relation: str) -> Released:
    heard: list[Any] = []
    found = privfit.search(
        *problem(name), *BUDGETS[budget], solver=solver, random_state=SEED, **RELATIONS[relation],
        callback=lambda now: heard.append(news(now)),
    )  # fmt: skip
    path = list(found.path.generations)
    return of_release(found.release, answer=found.answer, path=path, generations=heard)


def search_cases() -> Iterator[tuple[str, Case]]:
    for name, solver in SEARCHES.items():
        for what in ("own bits",) if name in LONG else PROBLEMS:
            for budget, relation in budgets_of(name):
                case = partial(searched, what, solver, budget, relation)
                yield f"search/{name}/{what}/{budget}/{relation}", case
    for name, solver in {**{name: SEARCHES[name] for name in IN_SPACES}, **OPERATED}.items():
        others = ("own reals", "own subsets", "own bits") if name in OPERATED else ()
        for what in (*SPACES, *others):
            case = partial(searched, what, solver, "delta", "replace")
            yield f"search/{name}/{what}/delta/replace", case


def best_of_some(run: Any) -> Any:
    """A solver of one's own, without facts."""
    run.plan("selection", 6, generations=2)
    for _ in range(2):
        P = run.space.sample(20, run.coins)
        run.report(P[run.select(P, 3)])
    return run.path()


def asked(name: str, budget: str, relation: str) -> Released:
    """A loop outside, whose proposals follow from what was selected before."""
    objective, space = problem(name)
    coins = np.random.Generator(np.random.SFC64(SEED))
    P = space.sample(20, coins)
    with privfit.AskTell(
        objective, space, *BUDGETS[budget], generations=3, population=20, parents=4,
        random_state=SEED, **RELATIONS[relation],
    ) as door:  # fmt: skip
        chosen = []
        for _ in door:
            chosen.append(door.select(P))
            P = space.nudge(P[np.repeat(chosen[-1], 5)], 0.1, coins)
        best = door.best(P)
    return of_release(door.release, chosen=chosen, best=best, path=list(door.path.generations))


def door_cases() -> Iterator[tuple[str, Case]]:
    for what in ("own bits", "own subsets", "facilities"):
        for budget in ("pure", "delta"):
            for relation in ("replace", "add_remove"):
                own = partial(searched, what, best_of_some, budget, relation)
                yield f"search/own solver/{what}/{budget}/{relation}", own
                yield f"AskTell/{what}/{budget}/{relation}", partial(asked, what, budget, relation)


# --------------------------------------------------------------- evaluation, aggregates, chains

CURVES: dict[str, dict[str, Any]] = {
    "auto": {},
    "rough": {"smooth": False},
    "medians": {"thresholds": "medians", "levels": 4},
    "grid": {"thresholds": "grid", "levels": 5, "share": 0.5},
    "given": {"thresholds": [0.25, 0.5, 0.75]},
    "bounds": {"bounds": (0.2, 0.9)},
    **{f"{noise} noise": {"noise": noise} for noise in ("flat", "wavelet", "gaussian")},
    "hierarchy": {"noise": "hierarchy", "levels": 6},
    "as published": {"paper": True},
    "medians as published": {"paper": public("PriROC")("medians", k=3)},
    "grid as published": {"paper": public("PriROC")("grid", alpha=0.125)},
    "laplace as published": {"paper": public("PriROC")("laplace", t=8)},
}


@cache
def scored() -> tuple[np.ndarray, np.ndarray]:
    """Labels, and scores in [0, 1) that know something about them."""
    raw = numbers(SIZE, 2, 12)
    return (raw[:, 0] + raw[:, 1] / 2 > 0).astype(int), (raw[:, 0] + 1) / 2


def curve(labels: Any, scores: Any, budget: str, relation: str, **options: Any) -> Released:
    settings = {"random_state": SEED, **RELATIONS[relation], **options}
    found = privfit.roc_curve(labels, scores, *BUDGETS[budget], **settings)
    area = privfit.roc_auc_score(labels, scores, *BUDGETS[budget], **settings)
    drawn = {name: getattr(found, name) for name in ("fpr", "tpr", "thresholds", "auc")}
    return together(
        curve=of_release(found.release, **drawn), area=of_release(area.release, auc=area)
    )


def rates(labels: Any, scores: Any, relation: str, threshold: float = 0.5) -> Released:
    settings = {"threshold": threshold, "adjacency": relation, "random_state": SEED}
    matrix = privfit.confusion_matrix(labels, scores, 1.0, **settings)
    accuracy = privfit.accuracy_score(labels, scores, 1.0, **settings)
    return together(
        matrix=of_release(matrix.release, counts=matrix.counts, accuracy=matrix.accuracy),
        accuracy=of_release(accuracy.release, accuracy=accuracy),
    )


def predicted(relation: str) -> Released:
    """Predictions of three classes, two of which are often taken for each other."""
    raw = numbers(SIZE, 2, 12)
    labels = np.digitize(raw[:, 0], [-0.3, 0.3])
    found = np.digitize(raw[:, 0] + raw[:, 1] / 4, [-0.3, 0.4])
    settings = {"classes": [2, 0, 1], "adjacency": relation, "random_state": SEED}
    matrix = privfit.confusion_matrix(labels, found, 1.0, **settings)
    accuracy = privfit.accuracy_score(labels, found, 1.0, **settings)
    return together(
        matrix=of_release(matrix.release, counts=matrix.counts, accuracy=matrix.accuracy),
        accuracy=of_release(accuracy.release, accuracy=accuracy),
    )


class Line:
    """A public model: which side of a line a record is on, and how sure that is."""

    classes_ = np.array([0, 1])

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def predict_proba(self, X: Any) -> np.ndarray:
        margin = np.asarray(X)[:, 0] + self.weight * np.asarray(X)[:, 1]
        return np.where(margin > 0, 0.75, 0.25)[:, None] * [-1, 1] + [1, 0]

    def predict(self, X: Any) -> np.ndarray:
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def best_model(measure: str, relation: str) -> Released:
    made = table("box")
    models = {f"line {weight}": Line(weight) for weight in (-1.0, -0.1, 0.0, 0.1, 1.0)}
    found = privfit.choose(models, made.records, made.labels[2], 0.05, measure=measure,
                           adjacency=relation, random_state=SEED)  # fmt: skip
    return of_release(found.release, name=found.name)


def evaluation_cases() -> Iterator[tuple[str, Case]]:
    for name, options in CURVES.items():
        for budget, relation in EVERY:
            case = partial(curve, *scored(), budget, relation, **options)
            yield f"roc_curve/{name}/{budget}/{relation}", case
    for threshold in (0.25, 0.5):
        for relation in RELATIONS:
            case = partial(rates, *scored(), relation, threshold)
            yield f"accuracy_score/{threshold}/{relation}", case
    for relation in RELATIONS:
        yield f"accuracy_score/predictions/{relation}", partial(predicted, relation)
        for measure in ("errors", "log_loss"):
            yield f"choose/{measure}/{relation}", partial(best_model, measure, relation)


BLANKS: dict[str, Any] = {
    "cuts": {"x": "number", "y": privfit.Numeric(-1, 1, bins="auto")},
    "ranges": {"x": privfit.Numeric()},
    "buckets": {"x": privfit.Categorical(), "y": privfit.Categorical()},
    "names": {"x": "category", "y": "number"},
    "many names": dict.fromkeys("xyzu", "category"),
}


def bought(name: str, budget: str, relation: str) -> Released:
    """A schema of numbers that are names as well: whole tenths."""
    raw = numbers(SIZE, 4, 13)
    table = {column: np.round(10 * raw[:, i]) for i, column in enumerate("xyzu")}
    schema = privfit.learn_schema(
        table, *BUDGETS[budget], columns=BLANKS[name], random_state=SEED, **RELATIONS[relation]
    )
    return of_release(schema.release, width=schema.width)


def buying(kind: str, budget: str, relation: str) -> Released:
    """A fit that buys the blanks of its schema."""
    raw = numbers(SIZE, 2, 13)
    table = {"x": np.round(10 * raw[:, 0]), "y": np.round(raw[:, 1])}
    blank = privfit.Schema.blank({"x": "number", "y": "category"})
    model = getattr(privfit, kind)(
        *BUDGETS[budget], domain=blank, classes=[0, 1], random_state=SEED, **RELATIONS[relation],
        **UNCALIBRATED,
    )  # fmt: skip
    model.fit(table, (raw[:, 0] > 0).astype(int))
    return of_release(model.release_, width=model.domain_.width)


CODINGS: dict[str, Any] = {
    "auto": "auto",
    "log": privfit.Coding(family="log", dimensions=6),
    "quantile": privfit.Coding(cuts=2, family="quantile"),
    "width": privfit.Coding(cuts=5, family="width"),
}
ADDITIVE: dict[str, Any] = {
    "block": privfit.Additive(steps=6, metric="block"),
    "full": privfit.Additive(steps=6, metric="full", shrink=False),
}


def coding(metric: str, family: str, relation: str) -> Released:
    """An additive fit that codes its numbers, and buys what it needs for that."""
    raw = numbers(SIZE, 2, 13)
    table = {"x": np.round(10 * raw[:, 0]), "y": np.round(raw[:, 1])}
    columns = {"x": privfit.Numeric(-50, 50), "y": privfit.Categorical()}
    model = privfit.LogisticRegression(
        2.0, 1e-6, domain=privfit.Schema(columns), classes=[0, 1], random_state=SEED,
        solver=ADDITIVE[metric], coding=CODINGS[family], **RELATIONS[relation],
    )  # fmt: skip
    model.fit(table, (raw[:, 0] > 0).astype(int))
    return of_release(model.release_, width=model.domain_.width)


def levelled(level: float, relation: str) -> Released:
    """A pure fit of functions of numbers that buys its intercept by itself."""
    raw = numbers(SIZE, 2, 13)
    columns = {"x": privfit.Numeric(-50, 50), "y": privfit.Numeric(-5, 5)}
    settings = privfit.ObjectivePerturbation(functions=3, level=level)
    model = privfit.LogisticRegression(
        2.0, domain=privfit.Schema(columns), classes=[0, 1], random_state=SEED, solver=settings,
        coding=CODINGS["log"], **RELATIONS[relation],
    )  # fmt: skip
    model.fit({"x": 10 * raw[:, 0], "y": raw[:, 1]}, (raw[:, 0] > 0.5).astype(int))
    return of_release(model.release_, width=model.domain_.width)


def counted(solver: Any, relation: str) -> Released:
    """A pure fit that counts levels by class, by name or by the rule."""
    raw = numbers(SIZE, 2, 14)
    columns = {"x": privfit.Numeric(-50, 50), "y": privfit.Categorical(), "z": privfit.Numeric()}
    model = privfit.LogisticRegression(
        0.5, domain=privfit.Schema(columns), classes=[0, 1], random_state=SEED, solver=solver,
        **RELATIONS[relation],
    )  # fmt: skip
    table = {"x": 10 * raw[:, 0], "y": np.round(raw[:, 1]), "z": 10 * raw[:, 1]}
    model.fit(table, (raw[:, 0] > 0.5).astype(int))
    return of_release(model.release_, width=model.domain_.width)


def schema_cases() -> Iterator[tuple[str, Case]]:
    for metric, family, relation in itertools.product(ADDITIVE, CODINGS, RELATIONS):
        name = f"LogisticRegression/additive, {metric}/{family}/{relation}"
        yield name, partial(coding, metric, family, relation)
    for level, relation in itertools.product((0.3, 1.0), RELATIONS):
        name = f"LogisticRegression/objective, level {level:g}/{relation}"
        yield name, partial(levelled, level, relation)
    for relation in RELATIONS:
        yield f"LogisticRegression/auto, counts/{relation}", partial(counted, "auto", relation)
        named = partial(counted, privfit.Evidence(), relation)
        yield f"LogisticRegression/evidence, counts/{relation}", named
    for kind in ("LogisticRegression", "LinearSVC"):
        for budget, relation in EVERY:
            yield f"{kind}/blanks/{budget}/{relation}", partial(buying, kind, budget, relation)
    for name in BLANKS:
        for budget, relation in EVERY:
            if "names" not in name or BUDGETS[budget][1]:
                case = partial(bought, name, budget, relation)
                yield f"learn_schema/{name}/{budget}/{relation}", case


def means(rows: Any) -> Any:
    return np.asarray(rows).sum(axis=0) / len(rows)


STATISTICS: dict[str, tuple[Any, Any]] = {
    "median": (np.median, (-1, 1)),
    "means in a box": (means, privfit.Box(-1, 1, 2)),
    "means in a ball": (means, privfit.L2Ball(1.0, 2)),
    "means in a diamond": (means, privfit.L1Ball(1.5, 2)),
    "failing": (lambda rows: rows["none"], (0, 1)),
}


def aggregated(name: str, budget: str, relation: str, blocks: int | None) -> Released:
    found = public("aggregate")(
        clouds("plane").records, *STATISTICS[name], *BUDGETS[budget], blocks=blocks,
        random_state=SEED, **RELATIONS[relation],
    )  # fmt: skip
    return of_release(found.release, answer=found.answer)


def aggregate_cases() -> Iterator[tuple[str, Case]]:
    for name in STATISTICS:
        for blocks in (None, 9):
            for budget, relation in EVERY:
                case = partial(aggregated, name, budget, relation, blocks)
                yield f"aggregate/{name}/{blocks or 'usual'} blocks/{budget}/{relation}", case


CHAINS: dict[str, dict[str, Any]] = {
    "mcmc": {"n_records": 400},
    "mcmc as published": {"steps": 5000, "paper": True},
    "mcmc, short": {"steps": 500},
    "anneal": {"steps": 20_000, "anneal": True, "n_records": 300},
}


@cache
def trace(where: str, budget: str) -> Any:
    model = kmeans(privfit.Lloyd(steps=3), where, budget, "replace").fitted()
    return public("LloydTrace").from_release(model.release_)


def consistent(where: str, budget: str) -> Released:
    found = public("consistent")(trace(where, budget))
    return Released({"counts": found.counts, "sums": found.sums}, {})


def chained(where: str, budget: str, **settings: Any) -> Released:
    heard: list[Any] = []
    found = public("mcmc")(
        trace(where, budget), 3, rng=SEED, n_init=3, **settings,
        callback=lambda now: heard.append((now.step, now.steps, now.log_likelihood)),
    )  # fmt: skip
    names = ("points", "centers", "accepted", "steps", "log_likelihood")
    return Released({"heard": heard, **{name: getattr(found, name) for name in names}}, {})


def postprocess_cases() -> Iterator[tuple[str, Case]]:
    for where in ("line", "plane", "box", "ball"):
        for budget in ("pure", "delta"):
            end = f"{where}/{budget}"
            yield f"postprocess/linear program/{end}", partial(consistent, where, budget)
            for name, settings in CHAINS.items():
                yield f"postprocess/{name}/{end}", partial(chained, where, budget, **settings)


# ----------------------------------------------------------------------------------------- privacy

SCORES = (numbers(1, 40, 13)[0] * 300).astype(np.int64)
MECHANISMS: dict[str, tuple[Any, Any]] = {
    "Exponential": (privfit.Exponential(1.0, 50), SCORES),
    "Exponential, range 0": (privfit.Exponential(1.0, 0), SCORES),
    "PermuteAndFlip": (privfit.PermuteAndFlip(1.0, 50), SCORES),
    "NoisyMax": (privfit.NoisyMax(1.0, 50), SCORES),
    "TopK": (privfit.TopK(5, 0.2, 50), SCORES),
    "AboveThreshold": (privfit.AboveThreshold(1.0, 3, 100, 1, 2, 0.5), SCORES),
    "DiscreteLaplace": (privfit.DiscreteLaplace(1.0, 50), SCORES),
    "DiscreteGaussian": (privfit.DiscreteGaussian(0.2, 50.0), SCORES),
    "GammaVector": (privfit.GammaVector(1.0, 0.25), SCORES / 256),
}
FILTERED: dict[str, list[Any]] = {  # mechanisms whose sizes are not planned
    "basic": [privfit.DiscreteLaplace(0.1, 1), privfit.DiscreteLaplace(0.2, 1)],
    "gdp": [privfit.DiscreteGaussian(0.05, 1.0), privfit.DiscreteGaussian(0.1, 1.0)],
    "zcdp": [privfit.DiscreteGaussian(0.05, 1.0), privfit.DiscreteLaplace(0.1, 1)],
}
COMPOSITIONS = ("naive", "advanced", "kov", "kov_exact", "rdp", "bounded_range", "zcdp", "tight")


def drawn(mechanisms: Iterable[Any], value: Any, by: str = "") -> Released:
    """Draws by a grant, with a filter if it has a name."""
    grant = privfit.Ledger(2.0, 1e-5).reserve(2.0, 1e-5, adjacency="replace")
    if by:
        grant.filter(by)
    values = [grant.release(mechanism, value, SEED) for mechanism in mechanisms]
    return of_release(grant.close(parameters={"drawn": values}), spent=grant.spent)


def calibrated(method: str) -> Released:
    how: Any = {"delta": 1e-6, "method": method}
    sizes = [privfit.calibrate(n, epsilon=e, **how) for n in (1, 10, 101) for e in (0.1, 1.0)]
    costs = [privfit.total(n, eps_s=0.05, **how) for n in (1, 10, 101)]
    return Released({"sizes": sizes, "costs": costs}, {})


def composed() -> Released:
    kinds = [("selection", 0.1, 20), ("pure", 0.2, 3), ("gaussian", 0.15, 5)]
    events = [*(privfit.Event(*kind) for kind in kinds), privfit.Event("approximate", 0.1, 2, 1e-8)]
    costs = [privfit.compose(events[:n], 1e-6) for n in range(1, 5)]
    return Released({"costs": costs, "pure": privfit.compose(events[:2], 0.0)}, {})


def spending(ledger: Any) -> Released:
    """Where a ledger stands."""
    entries = [(group, budget.epsilon, budget.delta) for group, _, budget in ledger.entries]
    ends = [(budget.epsilon, budget.delta) for budget in (ledger.spent, ledger.remaining)]
    names = [name for _, name, _ in ledger.entries]
    return Released(
        {"entries": entries, "ends": ends}, {"names": names, "adjacency": ledger.adjacency}
    )


def on_ledger(ledger: Any, coins: Any = SEED, callback: Any = None) -> Released:
    """Two fits and a curve that one ledger pays."""
    with ledger.scope("models"), ledger.group("train"):
        fit = linear("LogisticRegression", SEARCHES["eem, short"], "box", "delta", "replace")
        fit.model.set_params(ledger=ledger, random_state=coins, callback=callback)
        model = of_model(fit.fitted(), fit.points)
    with ledger.group("test"):
        measured = privfit.roc_curve(*scored(), 0.5, noise="wavelet", ledger=ledger,
                                     random_state=coins)  # fmt: skip
    fit = kmeans("tree", "plane", "pure", "replace")
    fit.model.set_params(ledger=ledger, random_state=coins)
    return together(model=model, curve=of_release(measured.release), clusters=fit.released(),
                    ledger=spending(ledger))  # fmt: skip


def shared_ledger() -> Released:
    ledger = privfit.Ledger(5.0, 1e-5, adjacency="replace")
    paid, nested = on_ledger(ledger), on_ledger(ledger.nested(2.5, 1e-6, name="part"))
    again = privfit.Ledger.from_json(ledger.to_json())
    return together(paid=paid, nested=nested, ledger=spending(ledger), again=spending(again))


def budget_file() -> Released:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.json"
        paid = on_ledger(privfit.open_ledger(path, 5.0, 1e-5, adjacency="replace"))
        return together(paid=paid, again=spending(privfit.open_ledger(path)))


class PowerFailure(Exception):  # noqa: N818, it is one
    """The machine stops in the fourth generation."""


def fail(generation: Any) -> None:
    if generation.index == 4:
        raise PowerFailure


def journalled(path: Path, callback: Any = None) -> Released:
    with privfit.Checkpoint(path, 5.0, 1e-5, random_state=SEED) as journal:
        return on_ledger(journal.ledger, journal.coins, callback)


def as_first_version(steps: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps of a journal without what later versions added: the run, its id, declarations."""
    for step in steps:
        if step["kind"] == "run":
            terms = {name: step["what"][name] for name in ("epsilon", "delta")}
            yield {**step, "what": {"privfit": 1, **terms}, "value": True}
        elif step["kind"] == "grant":
            yield {**step, "what": step["what"][:4]}
        elif step["kind"] != "declared":
            yield step


def checkpoint(fails: bool) -> Released:
    """A run by a journal, begun again if it fails, and what the journal has in the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        if fails:
            with suppress(PowerFailure):
                journalled(path, fail)
        found = journalled(path)
        steps = list(as_first_version(map(json.loads, path.read_text().splitlines())))
    values, asked = [(s["kind"], s["value"]) for s in steps], [s["what"] for s in steps]
    return together(run=found, journal=Released({"values": values}, {"asked": asked}))


def privacy_cases() -> Iterator[tuple[str, Case]]:
    for name, (mechanism, value) in MECHANISMS.items():
        yield f"mechanism/{name}", partial(drawn, [mechanism], value)
    for by, mechanisms in FILTERED.items():
        yield f"filter/{by}", partial(drawn, mechanisms, SCORES, by)
    for method in COMPOSITIONS:
        yield f"accounting/{method}", partial(calibrated, method)
    yield "accounting/mixed", composed
    yield "ledger/shared", shared_ledger
    yield "ledger/file", budget_file
    yield "checkpoint/whole", partial(checkpoint, False)
    yield "checkpoint/failed", partial(checkpoint, True)


# ----------------------------------------------------------- files, clusters, model files, sweeps


def whole(where: str) -> tuple[np.ndarray, np.ndarray]:
    """Records, or scores, and their labels in memory."""
    return scored()[::-1] if where == "scores" else (table(where).records, table(where).labels[2])


@contextmanager
def streamed(where: str) -> Iterator[tuple[Any, Any]]:
    """The same as a stream, and what has its labels."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if where == "schema":
            yield privfit.Stream(write_csv(folder), columns=list(SCHEMA)), "label"
        else:
            for name, values in zip("Xy", whole(where), strict=True):
                np.save(folder / f"{name}.npy", values)
            yield privfit.Stream(folder / "X.npy"), folder / "y.npy"


def write_csv(folder: Path) -> list[Path]:
    """The people of the schema and their labels in two files."""
    columns = {**table("schema").records, "label": table("schema").labels[2]}
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    paths = [folder / "first.csv", folder / "second.csv"]
    for path, part in zip(paths, (rows[:600], rows[600:]), strict=True):
        lines = [",".join(columns), *(",".join(map(str, row)) for row in part)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


@contextmanager
def on_workers(where: str) -> Iterator[tuple[Any, Any]]:
    """The same as Dask arrays on two workers of this process."""
    import dask
    import dask.array
    import distributed

    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                 dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster),
    ):  # fmt: skip
        X, y = (dask.array.from_array(values).rechunk({0: 300}) for values in whole(where))
        yield X, y


Place = Callable[[str], Any]
IN_PARTS = {
    "LogisticRegression": ("auto", "local", "local, by loss", "eem, short", "privgene, short",
                           "dpsga, short", "subsample, short", "gradient, plain",
                           "gradient, whitened", "frank_wolfe, short", "select_refine, short",
                           "objective", "output", "majority", "functional"),
    "LinearSVC": ("local", "objective", "privatesvm"),
    "KMeans": ("auto", "lloyd", "lloyd, residuals", "grid, 64 cells", "tree, shallow",
               "hybrid, short", "eem, short", "local, by loss", "dpsga, short"),
    "KMedian": ("greedy, swaps", "swaps, 3", "coreset, 2 radii", "eem, short"),
}  # fmt: skip
ON_WORKERS = {
    "LogisticRegression": ("local", "gradient, whitened", "objective"),
    "KMeans": ("tree, shallow", "lloyd, residuals"),
    "KMedian": ("greedy, swaps",),
}


def in_parts(place: Place, where: str, kind: str, name: str, **more: Any) -> Released:
    """A fit to records that are elsewhere."""
    made = table(where)
    settings = {"domain": made.domain, "random_state": SEED}
    if kind == "KMeans":
        solver = KMEANS["hybrid" if name == "auto" else name]
        model = privfit.KMeans(3, 1.0, 1e-6, solver=solver, **settings)
    elif kind == "KMedian":
        settings["facilities"] = numbers(25, made.domain.width, 10)
        model = privfit.KMedian(3, 1.0, solver=KMEDIAN[name], **settings)
    else:
        solver = (LINEAR | ONE_KIND[kind])[name]
        settings |= UNCALIBRATED | more
        model = getattr(privfit, kind)(1.0, 1e-6, classes=[0, 1], solver=solver, **settings)
    with place(where) as (X, y):
        return Fit(model, X, y if hasattr(model, "classes") else None, made.points).released()


def features_in_parts(place: Place) -> Released:
    models = {
        "bayes": privfit.BernoulliNB(1.0, classes=[0, 1], random_state=SEED),
        "selection": privfit.SelectFeatures(1.0, k=2, classes=[0, 1], random_state=SEED),
    }
    with place("box") as (X, y):
        made = {name: Fit(model, X, y, table("box").points) for name, model in models.items()}
        return together(**{name: fit.released() for name, fit in made.items()})


def curve_in_parts(place: Place) -> Released:
    with place("scores") as (scores, y):
        y = np.load(y) if isinstance(y, Path) else y
        drawn = curve(y, scores, "pure", "replace")
        return together(curve=drawn, rates=rates(y, scores, "replace"))


def parted_cases() -> Iterator[tuple[str, Case]]:
    places: list[tuple[str, Place, Any, tuple[str, ...]]] = [
        ("Stream", streamed, IN_PARTS, ("schema", "box"))
    ]
    if importlib.util.find_spec("distributed"):
        places.append(("Dask", on_workers, ON_WORKERS, ("box",)))
    for title, place, kinds, tables in places:
        for where in tables:
            for kind, names in kinds.items():
                for name in names:
                    case = partial(in_parts, place, where, kind, name)
                    yield f"{title}/{kind}/{name}/{where}", case
            case = partial(in_parts, place, where, "LogisticRegression", "gradient, whitened",
                           **BOUGHT["balanced and calibrated"])  # fmt: skip
            yield f"{title}/LogisticRegression/balanced and calibrated/{where}", case
        yield f"{title}/features", partial(features_in_parts, place)
        yield f"{title}/curve", partial(curve_in_parts, place)


def saved(make: Callable[..., Fit], *arguments: Any, **more: Any) -> Released:
    """A model as it is read back from its file."""
    fit = make(*arguments, **more)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        privfit.save(fit.fitted(), path)
        return of_model(privfit.load(path), fit.points)


def swept(model: Any, X: Any, y: Any = None) -> Released:
    found = privfit.sweep(model, X, y, [0.1, 1.0], public=True, seeds=2)
    fields = json.loads(found.to_json())
    return Released({"trials": fields.pop("trials")}, fields)


def intervals() -> Released:
    ones = binary()
    found = privfit.sweep(privfit.BernoulliNB(), ones.records, ones.labels[2], [0.1, 1.0],
                          public=True, seeds=3)  # fmt: skip
    rows = [(row.setting, row.mean, row.half_width) for row in (*found.rows, *found.reference_rows)]
    return Released({"rows": rows}, {})


def other_cases() -> Iterator[tuple[str, Case]]:
    for name, arguments in {
        "LogisticRegression": (linear, "LogisticRegression", "auto", "schema", *SOME[1]),
        "LinearSVC": (linear, "LinearSVC", "objective", "box", *SOME[0]),
        "KMeans": (kmeans, "auto", "ball", *SOME[1]),
        "KMedian": (kmedian, "auto", "plane", "l1", *SOME[0]),
        "BernoulliNB": (bayes, *SOME[1]),
        "SelectFeatures": (selection, "auto", "purity_index", *SOME[0]),
    }.items():
        yield f"saved/{name}", partial(saved, *arguments)
    box, schema, plane, ones = table("box"), table("schema"), clouds("plane"), binary()
    for name, arguments in {
        "LogisticRegression": (privfit.LogisticRegression(delta=1e-6, domain=box.domain,
                                                          **UNCALIBRATED),
                               box.records, box.labels[2]),
        "LinearSVC": (privfit.LinearSVC(domain=schema.domain), schema.records, schema.labels[2]),
        "KMeans": (privfit.KMeans(3, domain=plane.domain, postprocess=None), plane.records),
        "BernoulliNB": (privfit.BernoulliNB(), ones.records, ones.labels[2]),
    }.items():  # fmt: skip
        yield f"sweep/{name}", partial(swept, *arguments)
    yield "sweep/intervals", intervals


# ---------------------------------------------------------------------------------------- all of it


def every_case() -> Iterator[tuple[str, Case]]:
    """Every case by name: what is fitted or drawn, how, on what, under which promise."""
    for some in (
        linear_cases, kmeans_cases, kmedian_cases, feature_cases, search_cases, door_cases,
        evaluation_cases, schema_cases, aggregate_cases, postprocess_cases, privacy_cases,
        parted_cases, other_cases,
    ):  # fmt: skip
        yield from some()
