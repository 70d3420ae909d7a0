"""The default beside every solver and pipeline of the library: one fit of any of them.

Rivals run with their default settings on the declared schema, or on a blank one, as it is, but for
weights of evidence, which need levels and code columns as they do by default. Naive
Bayes takes one-hot levels, of numbers eight equal bins. Seeds and splits are those of whole tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from bench.accuracy import columns
from bench.accuracy.columns import DECLARED, measures, told
from bench.accuracy.linear import SOLVERS
from bench.accuracy.tasks import Cell
from privfit import BernoulliNB, Ledger, LogisticRegression, Numeric, Schema, SelectFeatures
from privfit.datasets import Dataset

AUTO = "auto"
CODED = (AUTO, "Evidence")
BAYES, SELECTED = "Bayes", "Select, Bayes"
BINS = 8  # of a number, for naive Bayes
SHARE, KEPT = 0.75, 8  # of epsilon for the selection of so many levels

# Searches that are slow, or never near the best, are left out of coarse grids.
RIVALS = tuple(name for name in SOLVERS if "paper" not in name and name != AUTO)
STRONG = ("Local", "SelectRefine", "Gradient", "Objective", "Functional", "Majority", "Evidence")
NEED_DELTA = ("SelectRefine", "Gradient, not whitened")  # without one the latter is as whitened


def rivals(known: str, delta: float, every: bool) -> list[str]:
    """Whom the default meets, by name."""
    names = [*(RIVALS if every else STRONG), *((BAYES, SELECTED) if known == DECLARED else ())]
    return [name for name in names if delta or name not in NEED_DELTA]


def fit(cell: Cell, seed: int) -> tuple[dict[str, float], float]:
    """Accuracy, area and log loss of a cell whose solver is named with what it is told."""
    solver, _, known = cell.solver.rpartition(" / ")
    train, test = columns.split(cell.data, seed)
    make = _bayes if solver in (BAYES, SELECTED) else _logistic
    start = time.perf_counter()
    probabilities = make(solver, told(train, known), train, cell, seed)
    seconds = time.perf_counter() - start
    found = measures(test.labels, probabilities(test.table))
    del found["slope"]
    return found, seconds


def _logistic(
    solver: str, schema: Schema, train: Dataset, cell: Cell, seed: int
) -> Callable[[Any], Any]:
    coding = "auto" if solver in CODED else "declared"
    model = LogisticRegression(
        cell.epsilon, cell.delta, domain=schema, classes=[0, 1],
        solver=SOLVERS[solver], coding=coding,
        adjacency=cell.adjacency, n_public=len(train), n_threads=1, random_state=seed,
    ).fit(train.table, train.labels)  # fmt: skip
    return lambda table: model.predict_proba(table)[:, 1]


def _bayes(
    solver: str, schema: Schema, train: Dataset, cell: Cell, seed: int
) -> Callable[[Any], Any]:
    levels = Schema({name: Numeric(one.low, one.high, BINS, fill=one.fill) if one.holds_numbers
                     else one for name, one in schema.columns.items()})  # fmt: skip
    common = {"classes": [0, 1], "adjacency": cell.adjacency, "random_state": seed,
              "ledger": Ledger(cell.epsilon, cell.delta)}  # fmt: skip
    ones, spent = len(levels.columns), (cell.epsilon, cell.delta)
    model: Any = BernoulliNB(*spent, max_ones=ones, **common)
    if solver == SELECTED:
        first = tuple(SHARE * one for one in spent)
        rest = tuple(one - part for one, part in zip(spent, first, strict=True))
        model = Pipeline([
            ("select", SelectFeatures(*first, k=KEPT, max_ones=ones, **common)),
            ("bayes", BernoulliNB(*rest, max_ones=KEPT, **common)),
        ])  # fmt: skip
    model.fit(levels.encode(train.table), train.labels)
    return lambda table: np.asarray(model.predict_proba(levels.encode(table)))[:, 1]
