"""What the accuracy benches repeat over seeds: a cell, the tasks it may name, and one fit.

A cell is a task, its data, a solver by name, a budget and a neighbour relation. `fit(cell, seed)`
gives one number: test accuracy, or a cost. Seeded fits are for benchmarks: they are not private.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.accuracy import anywhere, clusters, linear, medians, messages, optimum
from bench.accuracy.linear import CONSTANT, DELTA, PLAIN
from privfit import EEM, Lloyd, PrivGene
from privfit.clustering.kmeans import METHODS as KMEANS

ADJACENCIES = ("replace", "add_remove")
EPSILONS = (0.05, 0.1, 0.3162, 1.0, 3.162, 10.0)
DELTAS = (0.0, DELTA)
RANDOM = "random"
REFERENCES = (PLAIN, CONSTANT, RANDOM)  # they know no epsilon


@dataclass(frozen=True, order=True)
class Cell:
    """What is repeated over seeds; epsilon is infinite for references."""

    task: str
    data: str
    solver: str
    epsilon: float = math.inf
    delta: float = DELTA
    adjacency: str = "replace"

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as a line of results names it."""
        return (self.task, self.data, self.solver, f"{self.epsilon:g}", f"{self.delta:g}",
                self.adjacency)  # fmt: skip

    @property
    def label(self) -> str:
        return " / ".join(self.key)


@dataclass(frozen=True)
class Task:
    """A kind of fit: its data sets, its solvers by name, and how one is measured.

    fit     (data, settings, epsilon, delta, adjacency, seed) -> the number measured
    """

    measure: str
    data: tuple[str, ...]
    solvers: dict[str, Any]
    fit: Callable[..., float]
    references: tuple[str, ...] = (PLAIN,)
    higher: bool = False
    deltas: tuple[float, ...] = DELTAS  # that change anything
    adjacencies: tuple[str, ...] = ADJACENCIES


# ------------------------------------------------------------------------------------------- fits


def _kmeans(data: str, model: Any, *budget: Any) -> float:
    if model == PLAIN:
        return clusters.not_private(clusters.records(data), clusters.CLUSTERS[data])
    solver, postprocess = model if isinstance(model, tuple) else (model, "auto")
    return clusters.fitted(data, solver, *budget, n_threads=1, postprocess=postprocess)


def _optimum(data: str, model: Any, *budget: Any) -> float:
    return 1.0 if model == PLAIN else optimum.fitted(data, model, *budget)


def _kmedian(
    data: str, model: Any, epsilon: float, delta: float, adjacency: str, seed: int
) -> float:
    name, _, k = data.partition(", k = ")
    task = medians.problem(name, seed)
    if model == PLAIN:
        return task.cost(medians.without_privacy(task.objective, int(k)))
    if model == RANDOM:
        return task.random_cost(int(k), seed)
    return medians.private(task, model, int(k), epsilon, delta, adjacency, seed)


def _features(
    data: str, model: Any, epsilon: float, delta: float, adjacency: str, seed: int
) -> float:
    if model == PLAIN:
        return messages.plain_accuracy(seed)
    if model == CONSTANT:
        return messages.constant_accuracy(seed)
    budget = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    if model is None:
        return messages.fold_accuracy(lambda s: messages.everything(s, **budget), seed)
    return messages.fold_accuracy(lambda s: messages.selected(s, **model, **budget), seed)


def _roc(data: str, model: Any, *budget: Any) -> float:
    name = data.removeprefix("sms_spam, ")
    if model == CONSTANT:  # a perfect classifier's curve, drawn without a look at any record
        return float(1 - messages.tested(name, budget[-1])[2].mean())
    return messages.distance(name, model, *budget)


def _postprocess(
    data: str, model: Any, epsilon: float, delta: float, adjacency: str, seed: int
) -> float:
    """The sum of squares of what is made of one release of noisy Lloyd."""
    from bench.papers import lee_kifer
    from privfit.clustering.postprocess import LloydTrace, consistent, kmeans, mcmc

    k, fitted = lee_kifer.CLUSTERS[data], lee_kifer.fitted(data, Lloyd(paper=True), None, epsilon,
                                                           seed)  # fmt: skip
    last, trace = fitted.cluster_centers_, LloydTrace.from_release(fitted.release_)
    if model == "released centres":  # ordinary k-means on every centre after the first
        points = np.rint(np.concatenate([*trace.centroids[1:], last]) * 2**13).astype(np.int16)
        last = kmeans(points, k, 20, np.random.default_rng(seed)) / 2**13
    elif model == "consistent":  # the last means after the linear program
        near = consistent(trace)
        last = near.sums[-1] / np.maximum(near.counts[-1], 1.0)[:, None]
        last /= np.maximum(np.abs(last).sum(axis=1, keepdims=True), 1.0)
    elif model is not None:
        last = mcmc(trace, k, rng=seed, **model).centers
    return lee_kifer.squares(data, last)


# ------------------------------------------------------------------------------------------ tasks

TASKS: dict[str, Task] = {
    "linear": Task(
        "test accuracy",
        ("adult", "bank_full", "credit_default", "spambase", "mushroom",
         "adult, no bins", "bank_full, no bins", "credit_default, no bins"),
        linear.SOLVERS, linear.accuracy, (PLAIN, CONSTANT), higher=True,
    ),
    "svm": Task(
        "test accuracy", ("adult", "bank_full"), linear.VECTORS, linear.accuracy,
        (PLAIN, CONSTANT), higher=True,
    ),
    "kmeans": Task(
        "NICV",
        tuple(clusters.CLUSTERS),
        {"auto": "auto"}
        | {name: kind() for name, kind in KMEANS.items()}
        | {"lloyd, paper": Lloyd(paper=True), "lloyd, mcmc": ("lloyd", "mcmc"),
           "lloyd, anneal": ("lloyd", "anneal"), "privgene, paper": PrivGene(paper=True),
           "eem, paper": EEM(paper=True)},
        _kmeans,
    ),
    "optimum": Task(
        "cost over scikit-learn's best of 10",
        (*optimum.REAL, *optimum.MIXTURES), {"auto": "auto"}, _optimum, (),
    ),
    "postprocess": Task(
        "within-cluster sum of squares",
        ("s1", "gowalla_pois", "adult", "image_house_rgb", "lifesci"),
        {"noisy Lloyd": None, "mcmc": {"steps": 30_000}, "anneal": {"anneal": True},
         "anneal, short": {"steps": 30_000, "anneal": True},
         "released centres": "released centres", "consistent": "consistent"},
        _postprocess, (), deltas=(0.0,), adjacencies=("add_remove",),
    ),
    "kmedian": Task(
        "cost a record",
        ("mushroom, k = 4", "mushroom, k = 16", "spambase, k = 4", "spambase, k = 16",
         "s1, k = 15", "gowalla_pois, k = 5", "gowalla_pois, k = 20"),
        medians.METHODS, _kmedian, (PLAIN, RANDOM),
    ),
    "anywhere": Task(
        "l2 cost over the best of 10 without privacy", tuple(anywhere.CLUSTERS), anywhere.METHODS,
        anywhere.fitted, (),
    ),
    "features": Task(
        "test accuracy",
        ("sms_spam",),
        {"auto": {}, "no selection": None, "k = 4": {"k": 4}, "k = 12": {"k": 12},
         "half of epsilon each": {"share": 0.5}, "difference count": {"criterion":
         "difference_count"}, "information gain": {"criterion": "information_gain",
         "n_public": 5000}, "total count": {"criterion": "total_count"}, "clusters of counts":
         {"solver": "clusters"}, "noise on all scores": {"solver": "noisy"}},
        _features, (PLAIN, CONSTANT), higher=True,
    ),
    "roc": Task(
        "area between curves", tuple(f"sms_spam, {model}" for model in messages.MODELS),
        {way: way for way in messages.WAYS}, _roc, (CONSTANT,), deltas=(0.0,),
    ),
}  # fmt: skip
# A few solvers of every task, which take minutes.
QUICK = {
    "linear": (("spambase", "mushroom"), ("auto", "Local", "Gradient", "Objective", "DPSGA")),
    "svm": (("adult",), ("PrivateSVM",)),
    "kmeans": (("s1",), ("auto", "lloyd", "grid")),
    "optimum": (("lifesci",), ("auto",)),
    "postprocess": (("s1",), ("noisy Lloyd", "mcmc")),
    "kmedian": (("mushroom, k = 4",), ("auto",)),
    "anywhere": (("lifesci",), ("auto",)),
    "features": (("sms_spam",), ("auto", "no selection")),
    "roc": (("sms_spam, BernoulliNB",), ("default",)),
}


def fit(cell: Cell, seed: int) -> tuple[float, float]:
    """The number measured, and the seconds it took to read (once), fit and measure."""
    task = TASKS[cell.task]
    model = cell.solver if cell.solver in REFERENCES else task.solvers[cell.solver]
    start = time.perf_counter()
    value = task.fit(cell.data, model, cell.epsilon, cell.delta, cell.adjacency, seed)
    return float(value), time.perf_counter() - start


def offered(cell: Cell) -> bool:
    """Whether there is such a fit: a synopsis of medians needs a plane."""
    return not (cell.solver == "synopsis" and cell.data.startswith(("mushroom", "spambase")))


def product(task: str, epsilons: tuple[float, ...] = EPSILONS) -> Iterator[Cell]:
    """Every cell of a task; its references first."""
    kind = TASKS[task]
    for data in kind.data:
        yield from (Cell(task, data, solver) for solver in kind.references)
        for solver in kind.solvers:
            for adjacency in kind.adjacencies:
                for delta in kind.deltas:
                    cells = (Cell(task, data, solver, e, delta, adjacency) for e in epsilons)
                    yield from filter(offered, cells)


def all_cells() -> Iterator[Cell]:
    for task in TASKS:
        yield from product(task)


def quick_cells() -> Iterator[Cell]:
    for task, (data, solvers) in QUICK.items():
        for cell in product(task, (1.0,)):
            if cell.data in data and cell.solver in (*solvers, *REFERENCES):
                yield cell
