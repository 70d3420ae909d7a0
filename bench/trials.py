"""Fits repeated over seeds: the solvers by name, one fit, many of them, and their mean.

A seed sets the 80/20 split and the fit. Seeded fits are for benchmarks: they are not private.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.stats

from bench import datasets
from privfit import (
    DPSGA,
    EEM,
    FrankWolfe,
    Functional,
    Gradient,
    Gupt,
    Local,
    LogisticRegression,
    Majority,
    ObjectivePerturbation,
    OutputPerturbation,
    PermutedSGD,
    PrivGene,
    Subsample,
)

DELTA = 1e-6
PLAIN, CONSTANT = "not private", "most frequent class"

SOLVERS: dict[str, Any] = {
    "Auto": "auto",
    "Local": Local(),
    "Local, paper": Local(paper=True),
    "EEM": EEM(),
    "EEM, paper": EEM(paper=True),
    "PrivGene": PrivGene(),
    "PrivGene, paper": PrivGene(paper=True),
    "PrivGene, paper, one survivor": PrivGene(survivors=1, paper=True),
    "DPSGA": DPSGA(),
    "DPSGA, paper": DPSGA(paper=True),
    "Subsample": Subsample(),
    "Subsample, paper": Subsample(paper=True),
    "Functional": Functional(),
    "Functional, paper": Functional(paper=True),
    "Gupt": Gupt(),
    "Gupt, paper": Gupt(paper=True),
    "Majority": Majority(),
    "Gradient": Gradient(),
    "Gradient, not whitened": Gradient(whiten=False),
    "Frank-Wolfe": FrankWolfe(),
    "SGD": PermutedSGD(),
    "SGD, paper": PermutedSGD(paper=True),
    "Objective": ObjectivePerturbation(),
    "Output": OutputPerturbation(),
}
COUNTS = {"DPSGA": (10, 20, 50, 75, 100, 120), "Local": (25, 50, 100, 200, 400, 800)}
SOLVERS |= {f"DPSGA {r}": DPSGA(generations=r) for r in COUNTS["DPSGA"]}
SOLVERS |= {f"Local {r}": Local(generations=r) for r in COUNTS["Local"]}


@dataclass(frozen=True, order=True)
class Setting:
    """What is repeated over seeds; epsilon is infinite for the two references."""

    data: str
    solver: str
    epsilon: float = math.inf
    delta: float = DELTA
    adjacency: str = "replace"


@lru_cache(maxsize=1)
def _load(name: str) -> datasets.Dataset:
    return datasets.load(name)


@lru_cache(maxsize=1)
def _split(name: str, seed: int) -> tuple[datasets.Dataset, datasets.Dataset]:
    return _load(name).split(seed)


def accuracy(job: tuple[Setting, int]) -> float:
    """Test accuracy of one fit."""
    setting, seed = job
    train, test = _split(setting.data, seed)
    if setting.solver == CONSTANT:
        return float(np.mean(test.y == (train.y.mean() > 0.5)))
    if setting.solver == PLAIN:
        return _nonprivate(train, test)
    model = LogisticRegression(
        setting.epsilon,
        setting.delta,
        domain=train.schema,
        classes=[0, 1],
        solver=SOLVERS[setting.solver],
        adjacency=setting.adjacency,
        n_public=len(train),
        n_threads=1,
        random_state=seed,
    )
    return float(model.fit(train.columns, train.y).score(test.columns, test.y))


def _nonprivate(train: datasets.Dataset, test: datasets.Dataset) -> float:
    """scikit-learn's logistic regression on the same coding."""
    from sklearn.linear_model import LogisticRegression as Plain

    unit = float(train.schema.record_units()[0])
    X, X_test = (train.schema.encode(part.columns) * unit for part in (train, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: the accuracy has long settled
        return float(Plain(max_iter=1000).fit(X, train.y).score(X_test, test.y))


def run_all(settings: Iterable[Setting], seeds: int, jobs: int) -> dict[Setting, list[float]]:
    """Accuracies of every setting, a number for each seed; those of one split run together."""
    todo = [(s, seed) for s in sorted(set(settings)) for seed in range(seeds)]
    todo.sort(key=lambda job: (job[0].data, job[1]))
    found: dict[Setting, list[float]] = {s: [] for s, _ in todo}
    start = time.perf_counter()
    for i, ((setting, _), value) in enumerate(zip(todo, _map(todo, jobs), strict=True), 1):
        found[setting].append(value)
        if i % 100 == 0:
            print(f"{i} of {len(todo)} fits, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return found


def _map(todo: list[tuple[Setting, int]], jobs: int) -> Iterator[float]:
    if jobs == 1:
        yield from map(accuracy, todo)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(accuracy, todo, chunksize=4)


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval by Student's t."""
    v = np.array(list(values))
    if len(v) < 2:
        return float(v.mean()), math.nan
    half = scipy.stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / math.sqrt(len(v))
    return float(v.mean()), float(half)
