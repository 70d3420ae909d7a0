"""Whole tables: how well a fit does if kinds of columns are declared, or ranges, or cuts as well.

A seed sets the split and the fit: of `default_rng(100 + seed).permutation(n)` the first four fifths
train. "adult, 1000 rows" trains on the first thousand of them. Seeded fits are not private.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit, logit

from bench.accuracy.tasks import Cell
from privfit import Categorical, LogisticRegression, Numeric, Schema, datasets
from privfit.datasets import Dataset

TUNED = ("adult", "credit_default", "mushroom")  # on which the rules of the library were chosen
DATA = (*TUNED, "bank_full", "spambase", "flights", "health_panel")
MEASURES = ("accuracy", "area", "log loss", "slope")
KINDS, DECLARED, CUT = "kinds alone", "declared", "declared with cuts"
HAS_CUTS = ("adult", "credit_default", "bank_full", "flights")  # in their documented schemas
# Columns of numbers that are codes.
CODES = {
    "credit_default": ("SEX", "EDUCATION", "MARRIAGE"),
    "health_panel": ("edlevel", "outwork", "female", "married", "kids", "self"),
    "flights": ("month", "day"),
}
LATE = 15  # minutes
FEWER = 1000  # rows of small tables
LEAST = 1e-6  # of a probability, in the log loss
# Quantiles and C of references; the best log loss on the test parts is shown.
REFERENCES = {f"not private, {q} quantiles, C = {c:g}": (q, c)
              for q, c in ((16, 0.1), (16, 1.0), (32, 1.0))}  # fmt: skip


# ------------------------------------------------------------------------------------------- tables


@lru_cache(maxsize=1)
def load(name: str) -> Dataset:
    """A table with two classes, 0 and 1, and its documented schema."""
    found = datasets.load(name)
    if name == "flights":
        found = found.take(~np.isnan(found.target))
        calendar = {"month": Categorical(range(1, 13)), "day": Categorical(range(1, 32))}
        late = (found.target > LATE).astype(np.int64)
        return replace(found, schema=Schema({**found.schema.columns, **calendar}), target=late,
                       classes=(0, 1))  # fmt: skip
    if name == "health_panel":
        return replace(found, target=(found.target > 0).astype(np.int64), classes=(0, 1))
    return found


@lru_cache(maxsize=16)
def split(data: str, seed: int) -> tuple[Dataset, Dataset]:
    """The parts to train on and to test on."""
    name, _, fewer = data.partition(", ")
    whole = load(name)
    order = np.random.default_rng(100 + seed).permutation(len(whole))
    cut = int(0.8 * len(whole))
    rows = int(fewer.removesuffix(" rows")) if fewer else cut
    return whole.take(order[:rows]), whole.take(order[cut:])


def kinds(data: Dataset) -> dict[str, str]:
    """Texts and codes are categories, the rest numbers."""
    codes = CODES.get(data.name, ())
    return {name: "number" if cells.dtype.kind == "f" and name not in codes else "category"
            for name, cells in data.table.items()}  # fmt: skip


def told(data: Dataset, known: str) -> Schema:
    """What a fit is told of a table."""
    if known == KINDS:
        return Schema.blank(kinds(data))
    return data.schema if known == CUT else ranged(data)


def ranged(data: Dataset) -> Schema:
    """Ranges and categories as they are documented; cuts are left to the coding."""
    return Schema({name: Numeric(one.low, one.high, fill=one.fill) if one.holds_numbers else one
                   for name, one in data.schema.columns.items()})  # fmt: skip


# --------------------------------------------------------------------------------------------- fits


def ours(cell: Cell, seed: int) -> tuple[dict[str, float], float]:
    """The default of the library."""
    train, test = split(cell.data, seed)
    known = cell.solver.removeprefix("privfit, ")
    model = LogisticRegression(
        cell.epsilon, cell.delta, domain=told(train, known), classes=[0, 1],
        adjacency=cell.adjacency, n_public=len(train), n_threads=1, random_state=seed,
    )  # fmt: skip
    start = time.perf_counter()
    model.fit(train.table, train.labels)
    seconds = time.perf_counter() - start
    return measures(test.labels, model.predict_proba(test.table)[:, 1]), seconds


def not_private(cell: Cell, seed: int) -> tuple[dict[str, float], float]:
    """scikit-learn's logistic regression on exact quantiles and all categories."""
    from sklearn.linear_model import LogisticRegression as Plain

    train, test = split(cell.data, seed)
    quantiles, C = REFERENCES[cell.solver]
    coded = [_levels(train.table[name], test.table[name], kind, quantiles)
             for name, kind in kinds(train).items()]  # fmt: skip
    X, X_test = (scipy.sparse.hstack(part, format="csr") for part in zip(*coded, strict=True))
    start = time.perf_counter()
    model = Plain(C=C, max_iter=300).fit(X, train.labels)
    seconds = time.perf_counter() - start
    return measures(test.labels, model.predict_proba(X_test)[:, 1]), seconds


def _levels(train: Any, test: Any, kind: str, quantiles: int) -> tuple[Any, Any]:
    """Both parts of a column one-hot; a value that the first lacks has no level."""
    if kind == "category":
        values = np.unique(train)
        codes = [np.searchsorted(values, part) for part in (train, test)]
        codes[1][~np.isin(test, values)] = len(values)
    else:  # of all values, and of distinct ones for columns that are mostly zero
        shares = np.arange(1, quantiles) / quantiles
        cuts = np.unique([np.nanquantile(part, shares, method="higher")
                          for part in (train, np.unique(train))])  # fmt: skip
        codes = [np.searchsorted(cuts, part, "right") for part in (train, test)]
    width = max(int(part.max()) for part in codes) + 1
    first, second = (scipy.sparse.csr_array((np.ones(len(part)), part, np.arange(len(part) + 1)),
                                            (len(part), width)) for part in codes)  # fmt: skip
    return first, second


# ----------------------------------------------------------------------------------------- measures


def measures(y: Any, p: Any) -> dict[str, float]:
    """What probabilities of class 1 are worth: accuracy, area, log loss, slope of calibration."""
    from sklearn.metrics import log_loss, roc_auc_score

    p = np.clip(np.asarray(p, dtype=np.float64), LEAST, 1 - LEAST)
    found = (np.mean((p > 0.5) == y), roc_auc_score(y, p), log_loss(y, p), slope(y, logit(p)))
    return dict(zip(MEASURES, map(float, found), strict=True))


def slope(y: Any, z: Any) -> float:
    """The slope of y on scores z by logistic regression: 1 for honest probabilities."""
    line, X = np.array([1.0, 0.0]), np.column_stack([z, np.ones_like(z)])
    for _ in range(30):
        p = expit(X @ line)
        curvature = (X * (p * (1 - p))[:, None]).T @ X + 1e-9 * np.eye(2)
        line += np.clip(np.linalg.solve(curvature, X.T @ (y - p)), -1, 1)
    return float(line[0])
