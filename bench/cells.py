"""What the accuracy benchmarks repeat over seeds: a cell, the tasks it may name, and one fit.

A cell is a task, its data, a solver by name, a budget and a neighbour relation. `fit(cell, seed)`
gives one number: test accuracy, or a cost. `fingerprint(cell)` changes with the version of privfit,
with the declared schema, with the solver's settings and defaults, and with the code that the task
reaches (`stamps.py`), so that a number from another state of the code is known as stale. Seeded
fits are for benchmarks: they are not private.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import privfit
from bench import clusters, datasets, medians, stamps, trials
from bench.trials import CONSTANT, DELTA, PLAIN
from privfit import (
    EEM,
    BernoulliNB,
    HashWords,
    KMeans,
    KMedian,
    LinearSVC,
    Lloyd,
    LogisticRegression,
    PrivGene,
    SelectFeatures,
    roc_curve,
)
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


@dataclass(frozen=True)
class Task:
    """A kind of fit: its data sets, its solvers by name, and how one is measured.

    fit         (data, settings, epsilon, delta, adjacency, seed) -> the number measured
    entrances   the classes and functions of privfit that it calls, whatever the solver
    """

    measure: str
    data: tuple[str, ...]
    solvers: dict[str, Any]
    fit: Callable[..., float]
    entrances: tuple[Any, ...]
    references: tuple[str, ...] = (PLAIN,)
    higher: bool = False
    deltas: tuple[float, ...] = DELTAS  # that change anything


# ------------------------------------------------------------------------------------------- fits


def _kmeans(data: str, model: Any, *budget: Any) -> float:
    if model == PLAIN:
        return clusters.not_private(clusters.records(data), clusters.TASKS[data].k)
    solver, postprocess = model if isinstance(model, tuple) else (model, None)
    return clusters.fitted(data, solver, *budget, n_threads=1, postprocess=postprocess)


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
    from bench import workflow

    if model in (PLAIN, CONSTANT):
        known = {PLAIN: "not private, all features", CONSTANT: "most frequent class"}
        return workflow.fold_accuracy(workflow.MODELS[known[model]], seed)
    budget = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    make = workflow.everything if model is None else workflow.selected
    return workflow.fold_accuracy(lambda s: make(s, **(model or {}), **budget), seed)


def _roc(data: str, model: Any, *budget: Any) -> float:
    from bench import roc

    name = data.removeprefix("sms_spam, ")
    if model == CONSTANT:  # a perfect classifier's curve, drawn without a look at any record
        return float(1 - roc.tested(name, budget[-1])[2].mean())
    return roc.distance(name, model, *budget)


TASKS: dict[str, Task] = {
    "linear": Task(
        "test accuracy",
        ("adult", "bank_full", "credit_default", "spambase", "mushroom",
         "adult, no bins", "bank_full, no bins", "credit_default, no bins"),
        trials.SOLVERS, trials.accuracy, (LogisticRegression,), (PLAIN, CONSTANT), higher=True,
    ),
    "svm": Task(
        "test accuracy", ("adult", "bank_full"), trials.VECTORS, trials.accuracy, (LinearSVC,),
        (PLAIN, CONSTANT), higher=True,
    ),
    "generations": Task(
        "test accuracy", ("adult",), trials.BY_COUNT, trials.accuracy, (LogisticRegression,),
        (PLAIN, CONSTANT), higher=True,
    ),
    "kmeans": Task(
        "NICV",
        tuple(clusters.TASKS),
        {"auto": "auto"}
        | {name: kind() for name, kind in KMEANS.items()}
        | {"lloyd, paper": Lloyd(paper=True), "lloyd, mcmc": ("lloyd", "mcmc"),
           "lloyd, anneal": ("lloyd", "anneal"), "privgene, paper": PrivGene(paper=True),
           "eem, paper": EEM(paper=True)},
        _kmeans, (KMeans,),
    ),
    "kmedian": Task(
        "cost a record",
        ("mushroom, k = 4", "mushroom, k = 16", "spambase, k = 4", "spambase, k = 16",
         "s1, k = 15", "gowalla_pois, k = 5"),
        medians.METHODS, _kmedian, (KMedian,), (PLAIN, RANDOM),
    ),
    "features": Task(
        "test accuracy",
        ("sms_spam",),
        {"auto": {}, "no selection": None, "k = 4": {"k": 4}, "k = 12": {"k": 12},
         "half of epsilon each": {"share": 0.5}, "difference count": {"criterion":
         "difference_count"}, "information gain": {"criterion": "information_gain",
         "n_public": 5000}, "total count": {"criterion": "total_count"}, "clusters of counts":
         {"solver": "clusters"}, "noise on all scores": {"solver": "noisy"}},
        _features, (HashWords, SelectFeatures, BernoulliNB), (PLAIN, CONSTANT), higher=True,
    ),
    "roc": Task(
        "area between curves",
        tuple(f"sms_spam, {model}" for model in ("BernoulliNB", "LogisticRegression",
              "LogisticRegression, 60 messages", "BernoulliNB, 400 words")),
        {way: way for way in ("default", "no smoothing", "medians, wavelet")},
        _roc, (roc_curve,), (CONSTANT,), deltas=(0.0,),
    ),
}  # fmt: skip


def model_of(cell: Cell) -> Any:
    """What a task's `fit` is given for the solver of this cell."""
    return cell.solver if cell.solver in REFERENCES else TASKS[cell.task].solvers[cell.solver]


def fit(cell: Cell, seed: int) -> tuple[float, float]:
    """The number measured, and the seconds it took to read (once), fit and measure."""
    start = time.perf_counter()
    value = TASKS[cell.task].fit(
        cell.data, model_of(cell), cell.epsilon, cell.delta, cell.adjacency, seed
    )
    return float(value), time.perf_counter() - start


def offered(cell: Cell) -> bool:
    """Whether there is such a fit: a synopsis of medians needs a plane."""
    return not (cell.solver == "synopsis" and cell.data.startswith(("mushroom", "spambase")))


def product(
    task: str,
    data: Any = None,
    solvers: Any = None,
    epsilons: Any = EPSILONS,
    deltas: Any = DELTAS,
    adjacencies: Any = ADJACENCIES,
) -> Iterator[Cell]:
    """Every cell of a task, or of some of its data, solvers and budgets; its references first."""
    kind = TASKS[task]
    for name in kind.data if data is None else [n for n in data if n in kind.data]:
        yield from (Cell(task, name, solver) for solver in kind.references)
        for solver in (
            kind.solvers if solvers is None else [s for s in solvers if s in kind.solvers]
        ):
            for adjacency in adjacencies:
                for delta in [d for d in deltas if d in kind.deltas]:
                    cells = (Cell(task, name, solver, e, delta, adjacency) for e in epsilons)
                    yield from filter(offered, cells)


# ------------------------------------------------------------------------------------ fingerprints


def fingerprint(cell: Cell) -> str:
    """Eight digits that change with what the number of a cell depends on; see the module."""
    return _fingerprint(cell.task, cell.solver, declared(cell.data))


@functools.cache
def declared(data: str) -> str:
    """The declaration of a table, without comments; other data declare nothing."""
    return datasets.declared(data.partition(", ")[0])


@functools.cache
def _fingerprint(task: str, solver: str, declared: str) -> str:
    if solver in REFERENCES:
        sets = f"{medians.RANDOM_SETS} sets" if solver == RANDOM else ""
        return hashlib.sha256((declared + sets).encode()).hexdigest()[:8]
    kind = TASKS[task]
    code = stamps.stamp(*kind.entrances)
    parts = [privfit.__version__, declared, repr(kind.solvers[solver]), code]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
