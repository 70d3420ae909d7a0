"""Whole fits beside the same searches in numpy, and beside scikit-learn's fits without privacy."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from bench import tables
from bench.speed.cases import Ready, case, scaled
from bench.speed.numpy_fits import FITS, Plan, Search, coded
from privfit import DPSGA, Gradient, KMeans, LogisticRegression, ObjectivePerturbation

EPSILON, DELTA = 1.0, 1e-6
CLOSE = 0.03  # of accuracy: both sides search alike, with coins of their own


def records(scale: float) -> tuple[Any, Any, Any]:
    """Columns, labels and schema of Adult, or of a table like it."""
    if scale == 1.0:
        try:
            adult = tables.real("adult")
        except FileNotFoundError:
            pass
        else:
            return adult.table, adult.labels, adult.schema
    return tables.census(scaled(48_842, scale))


def estimator(solver: Any, schema: Any, threads: int, **options: Any) -> LogisticRegression:
    """A logistic regression by this solver; seeded, so that every round does the same work."""
    return LogisticRegression(
        EPSILON, DELTA, domain=schema, classes=[0, 1], solver=solver, n_threads=threads,
        calibrate=False, random_state=1, **options,
    )  # fmt: skip


def plan_of(search: Search, model: Any) -> Plan:
    """What numpy needs to do the same: read off the release of our fit."""
    event = model.release_.events[-1]  # second moments, if any, come first
    if isinstance(search.solver, Gradient):
        return Plan(np.empty(0), event.parameter, math.inf, event.count)
    errors = isinstance(search.solver, DPSGA)
    r = search.solver.generations or event.count
    bound = 1.0 if errors else 10.0
    steps = np.empty(0) if errors else 2 * bound * search.solver.schedule(r)
    return Plan(steps, event.parameter, bound, r)


def search_fit(threads: int, scale: float, search: Search, variants: dict[str, Any]) -> Ready:
    columns, y, schema = records(scale)
    model = estimator(search.solver, schema, threads).fit(columns, y)  # the accounting is cached
    plan, errors = plan_of(search, model), isinstance(search.solver, DPSGA)
    X1 = coded(columns, y, schema, "float64", signed=False)
    ours = model.score(columns, y)

    def rival(kind: str, loop: Any) -> Any:
        S = coded(columns, y, schema, kind, signed=not errors)
        return loop(S, plan, y > 0) if errors else loop(S, plan)

    def agree(_: Any, name: str, w: Any) -> None:
        gap = abs(ours - np.mean((X1 @ w > 0) == (y > 0)))
        assert scale < 1.0 or gap < CLOSE, f"{name}: accuracy differs by {gap:.3f}"

    return Ready(
        size=f"{len(y):,} x {X1.shape[1] - 1}, {plan.generations} generations",
        ours=lambda: model.fit(columns, y),
        rivals={name: partial(rival, *variant) for name, variant in variants.items()},
        agree=agree,
    )


for _search in FITS:
    case("fits", _search.name, _search.target, _search.goal, search=_search,
         variants=_search.variants)(search_fit)  # fmt: skip
    if _search.hard:
        case("fits", f"{_search.name}, expert numpy", note="no target: chunks in cache, increments "
             "or CSR", search=_search, variants=_search.hard)(search_fit)  # fmt: skip


@case("fits", "Objective, lbfgs", 15.0, 30.0, note="lbfgs has the same regularisation and "
      "tolerance, and starts from coded records", tolerance=None)  # fmt: skip
@case("fits", "Objective, lbfgs 1e-4", note="lbfgs by its default tolerance", tolerance=1e-4)
def convex(threads: int, scale: float, tolerance: float | None) -> Ready:
    from sklearn.linear_model import LogisticRegression as Plain

    columns, y, schema = records(scale)
    X = schema.encode(columns) * float(schema.record_units()[0])
    model = estimator(ObjectivePerturbation(), schema, threads).fit(columns, y)
    ridge = model.release_.settings["regularisation"]
    plain = Plain(C=1 / ridge, tol=tolerance or 2.0**-16 / len(y), max_iter=5000)

    def agree(ours: Any, name: str, theirs: Any) -> None:
        gap = abs(ours.score(columns, y) - theirs.score(X, y))
        assert scale < 1.0 or gap < CLOSE, f"{name}: accuracy differs by {gap:.3f}"

    return Ready(f"{X.shape[0]:,} x {X.shape[1]}", lambda: model.fit(columns, y),
                 {"scikit-learn": lambda: plain.fit(X, y)}, agree)  # fmt: skip


@case("fits", "KMeans, auto", 1.2, 5.0, note="scikit-learn without privacy, one start",
      solver="auto")  # fmt: skip
@case("fits", "KMeans, hybrid", note="scikit-learn without privacy, one start", solver="hybrid")
def clusters(
    threads: int, scale: float, solver: str, n: int = 1_000_000, d: int = 10, k: int = 16
) -> Ready:
    from sklearn.cluster import KMeans as Plain

    X = tables.blobs(scaled(n, scale), d, k)
    ours = KMeans(
        k, EPSILON, DELTA, domain=(0, 1), solver=solver, n_threads=threads, random_state=1
    )
    plain = Plain(k, n_init=1, random_state=1)

    def agree(mine: Any, name: str, theirs: Any) -> None:
        more = inertia(X, mine.cluster_centers_) / theirs.inertia_
        assert scale < 1.0 or more < 1.5, f"inertia is {more:.2f} times that of {name}"

    return Ready(f"{len(X):,} x {d}, k={k}", lambda: ours.fit(X),
                 {"scikit-learn": lambda: plain.fit(X)}, agree)  # fmt: skip


def inertia(X: Any, centers: Any) -> float:
    """The sum of squared distances to the nearest centre, in blocks of records."""
    squares = np.square(centers).sum(axis=1)
    blocks = (X[i : i + 8192] for i in range(0, len(X), 8192))
    return float(sum((np.square(x).sum(axis=1) + (squares - 2 * x @ centers.T).min(axis=1)).sum()
                     for x in blocks))  # fmt: skip
