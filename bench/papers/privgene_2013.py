"""The experiments of PrivGene (Zhang, Xiao, Yang, Zhang, Winslett, SIGMOD 2013), Section 6.

python -m bench papers --filter privgene_2013 --list

Records are coded as published: a category of l values by l columns, all columns in [-1, 1], which
is declared as a box. A seed is one fold of 5-fold cross-validation: fold `seed % 5` of repetition
`seed // 5`. One record is replaced between neighbours; budgets are pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import cache, lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray

from bench import tables
from bench.accuracy import clusters
from bench.measure import quiet
from bench.papers import Claim, Curve, Figure, Panel, level
from privfit import (
    EEM,
    Functional,
    Gupt,
    KMeans,
    LinearSVC,
    LogisticRegression,
    Majority,
    Numeric,
    ObjectivePerturbation,
    PrivateSVM,
    PrivGene,
    Schema,
)
from privfit.linear.newton import HuberHinge, Logistic, Loss
from privfit.linear.tilts import tilt_rate
from privfit.privacy.neighbours import REPLACE
from privfit.searches.sample_aggregate import lloyd_steps

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int64]

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
FEWER = (0.05, 0.2, 1.0)
RATES = (0.125e-3, 0.25e-3, 0.5e-3, 1.25e-3, 2.5e-3, 5e-3)  # c of r = c n epsilon
REFERENCE, CHOSEN = 0.5e-3, 1.25e-3
FOLDS = 5
C = 10.0  # of the support vector machine
LOSSES: dict[str, Loss] = {"logistic": Logistic(), "svm": HuberHinge(0.5)}
TASKS = {"logistic": "logistic regression", "svm": "support vector machine"}
SIZES = {"adult": 48_842, "bank_full": 45_211}
NAMES = {"adult": "Adult", "bank_full": "Banking", "adult, LIBSVM": "Adult as LIBSVM codes it"}

# LIBSVM cuts Adult's numbers at quintiles, and capital gains and losses at 0; declared here as if
# documented, like the ranges of `schemas/adult.toml`.
CUTS = {
    "age": (26, 33, 41, 50), "fnlwgt": (105_000, 159_000, 196_000, 260_000),
    "education-num": (9, 10, 11, 13), "capital-gain": (1,), "capital-loss": (1,),
    "hours-per-week": (35, 40, 41, 50),
}  # fmt: skip


# ---------------------------------------------------------------------------------------- records


@cache
def records(name: str) -> tuple[Floats, Labels]:
    """(n, d) in [-1, 1], and labels 0 and 1."""
    data = tables.real(name.partition(",")[0] + ", no bins")
    schema, unknown = data.schema, []
    if "LIBSVM" in name:  # which also has no column for what is missing
        columns = schema.columns | {
            key: Numeric(data.table[key].min(), data.table[key].max(), bins=cuts)
            for key, cuts in CUTS.items()
        }
        schema = Schema(columns)
        unknown = [j for j, label in enumerate(schema.feature_names) if label.endswith("=<other>")]
    coded = schema.encode(data.table)
    X = (coded.toarray() if scipy.sparse.issparse(coded) else coded) * schema.record_units()
    return np.delete(
        2 * (X - schema.low) / (schema.high - schema.low) - 1, unknown, axis=1
    ), data.labels


@lru_cache(maxsize=2)
def fold(name: str, seed: int) -> tuple[Floats, Labels, Floats, Labels]:
    """Records and labels to train on, and a fifth of all to test on."""
    X, y = records(name)
    order = np.random.default_rng(seed // FOLDS).permutation(len(y))
    test = np.array_split(order, FOLDS)[seed % FOLDS]
    train = np.setdiff1d(order, test)
    return X[train], y[train], X[test], y[test]


def wrong(weights: Floats, X: Floats, y: Labels) -> float:
    """The misclassification rate of weights, the intercept last."""
    return float(np.mean((X @ weights[:-1] + weights[-1] > 0) != y))


# ------------------------------------------------------------------------------------------- fits


def fitted(
    task: str, epsilon: float, solver: Any, X: Floats, y: Labels, seed: int, **more: Any
) -> Floats:
    """The weights that one private fit released; C = 10 where a solver heeds it."""
    kind: Any = LogisticRegression if task == "logistic" else LinearSVC
    if task == "svm" and isinstance(solver, EEM | PrivGene):
        more["C"] = C
    with quiet():  # of seeds
        model = kind(epsilon, domain=(-1, 1), classes=[0, 1], solver=solver, calibrate=False,
                     n_threads=1, random_state=seed, **more).fit(X, y)  # fmt: skip
    return np.append(model.coef_, model.intercept_)


def error(name: str, task: str, solver: Any, epsilon: float, seed: int) -> float:
    """Of one fold; `solver` is settings, or what makes (budget, settings) of epsilon and n."""
    X, y, X_test, y_test = fold(name, seed)
    budget, settings = (epsilon, solver) if is_dataclass(solver) else solver(epsilon, len(y))
    return wrong(fitted(task, budget, settings, X, y, seed), X_test, y_test)


def least_ridge(loss: Loss, epsilon: float) -> float:
    """Lambda beside the sum of losses that PrivateERM is raised to, however small it was.

    Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2: where epsilon does not cover the
    Jacobian, a regularisation of c / (n (e^(epsilon / 4) - 1)) in all, and half of epsilon.
    """
    return loss.curvature / math.expm1(epsilon / 4)


def printed_noise(task: str, epsilon: float, n: int) -> tuple[float, ObjectivePerturbation]:
    """PrivateERM with the printed noise, of rate epsilon / 4; our proof charges it less."""
    loss, ridge = LOSSES[task], least_ridge(LOSSES[task], epsilon)
    settings = ObjectivePerturbation(ridge, shaped=False)
    share = 1 - settings.repair

    def gap(budget: float) -> float:
        return tilt_rate(share * budget, ridge, loss, REPLACE) - epsilon / 4

    return float(scipy.optimize.brentq(gap, epsilon / 4, 2 * epsilon, xtol=1e-12)), settings


def our_noise(task: str, epsilon: float, n: int) -> tuple[float, ObjectivePerturbation]:
    """The same regularisation, and as little noise as our proof allows at epsilon."""
    return epsilon, ObjectivePerturbation(least_ridge(LOSSES[task], epsilon), shaped=False)


def by_mean_loss(epsilon: float, n: int) -> tuple[float, PrivateSVM]:
    """PrivateSVM as its own paper writes C: beside the mean of losses."""
    return epsilon, PrivateSVM(n / C, paper=True)


def not_private(name: str, task: str, seed: int) -> float:
    """scikit-learn's fits; of the support vector machine the best C of three."""
    from sklearn.linear_model import LogisticRegression as Logit
    from sklearn.svm import LinearSVC as Hinge

    X, y, X_test, y_test = fold(name, seed)
    models = (
        [Logit(C=100, solver="newton-cholesky")]
        if task == "logistic"
        else [Hinge(loss="hinge", C=c, max_iter=1000) for c in (1e-3, 1e-2, 1e-1)]
    )
    with quiet():  # of convergence: errors have settled
        return min(1 - float(model.fit(X, y).score(X_test, y_test)) for model in models)


# --------------------------------------------------------------------------------------- figure 2


@cache
def at_rate(name: str, task: str, epsilon: float, c: float, seed: int) -> float:
    n = len(fold(name, seed)[1])
    rounds = max(1, round(c * n * epsilon))
    return error(name, task, EEM(rounds, paper=True), epsilon, seed)


def ratios(
    name: str, task: str, epsilon: float, chosen: bool, rates: Sequence[float], seed: int
) -> list[float]:
    """Errors by c over that of c = 0.5e-3; or that of the chosen c at all of them."""
    base = at_rate(name, task, epsilon, REFERENCE, seed)
    return [at_rate(name, task, epsilon, CHOSEN if chosen else c, seed) / base for c in rates]


def figure_2() -> Figure:
    panels = []
    for task, what in TASKS.items():
        for name in ("adult", "bank_full"):
            curves, claims = {}, []
            for epsilon in (0.1, 1.0):
                label = f"epsilon {epsilon:g}"
                level = f"c = 1.25e-3, {label}"
                settings = (
                    f"`{estimator(task, ', C=10')}` with epsilon {epsilon:g} and "
                    "`EEM(generations=round(c * n * epsilon), paper=True)`"
                )
                for title, chosen in ((label, False), (level, True)):
                    fit = partial(ratios, name, task, epsilon, chosen)
                    curves[title] = Curve(fit, settings, whole=True)
                where = f"{NAMES[name]}, {what}, {label}"
                claims += [
                    Claim(f"a much smaller c errs more than the chosen one ({where})",
                          level, label, RATES[:2]),
                    Claim(f"a much larger c errs more than the chosen one ({where})",
                          level, label, RATES[-1:]),
                ]  # fmt: skip
            panels.append(Panel(f"{what}, {NAMES[name]}", "misclassification over that of 0.5e-3",
                                "c", RATES, curves, claims))  # fmt: skip
    return Figure("Misclassification of PrivGene by the constant c of its number of iterations",
                  panels, across=2)  # fmt: skip


# ---------------------------------------------------------------------------------- figures 3, 4


def estimator(task: str, more: str = "") -> str:
    head = "LogisticRegression(epsilon" if task == "logistic" else f"LinearSVC(epsilon{more}"
    return f"{head}, domain=(-1, 1), classes=[0, 1], solver=...)"


def curve(name: str, task: str, solver: Any, settings: str, note: str = "") -> Curve:
    """A classifier by epsilon."""
    heeds = isinstance(solver, EEM | PrivGene) and task == "svm"
    text = f"`{estimator(task, ', C=10' if heeds else '')}` with `{settings}`{note}"
    return Curve(partial(error, name, task, solver), text)


def common_curves(name: str, task: str) -> dict[str, Curve]:
    """What is drawn of both tasks."""
    c = f"{LOSSES[task].curvature:g}"
    ridge = f"ObjectivePerturbation({c} / expm1(epsilon / 4), shaped=False)"
    many = "scikit-learn's logistic regression, C = 100" if task == "logistic" else (
        "scikit-learn's `LinearSVC(loss='hinge')`, the least test error of C = 0.001, 0.01, 0.1"
    )  # fmt: skip
    return {
        "PrivGene": curve(name, task, EEM(paper=True), "EEM(paper=True)"),
        "PrivateERM": curve(name, task, partial(printed_noise, task), ridge,
                            " at the smaller epsilon that our proof charges the printed noise"),
        "GUPT": curve(name, task, Gupt(paper=True), "Gupt(paper=True)",
                      ", weights in [-5, 5]"),
        "Majority": curve(name, task, Majority(), "Majority()"),
        "not private": level(partial(not_private, name, task), many),
        "extra: PrivGene, EM, ten survivors": curve(name, task, PrivGene(paper=True),
                                                    "PrivGene(paper=True)"),
        "extra: PrivateERM, our noise": curve(name, task, partial(our_noise, task), ridge),
    }  # fmt: skip


def logistic_panel(name: str, points: Sequence[float]) -> Panel:
    curves = common_curves(name, "logistic") | {
        "functional": curve(name, "logistic", Functional(paper=True), "Functional(paper=True)")
    }
    where, later = NAMES[name], [point for point in points if point > 0.05]
    claims = [
        Claim(f"{low} errs less than {high} ({where})", low, high)
        for low in ("PrivGene", "PrivateERM")
        for high in ("functional", "GUPT")
    ]
    claims.append(Claim(f"PrivGene errs less than PrivateERM from epsilon 0.1 on ({where})",
                        "PrivGene", "PrivateERM", later))  # fmt: skip
    if name != "bank_full":
        claims.append(Claim(f"PrivGene errs less than Majority ({where})", "PrivGene", "Majority"))
    return Panel(f"logistic regression, {where}", "misclassification", "epsilon", points, curves,
                 claims)  # fmt: skip


def figure_3() -> Figure:
    return Figure(
        "Misclassification of private logistic regression by epsilon",
        [
            logistic_panel("adult", EPSILONS),
            logistic_panel("bank_full", EPSILONS),
            logistic_panel("adult, LIBSVM", FEWER),
        ],
        seeds=20,
    )


def svm_panel(name: str) -> Panel:
    curves = common_curves(name, "svm") | {
        "PrivateSVM": curve(name, "svm", PrivateSVM(1 / C, paper=True),
                            "PrivateSVM(0.1, paper=True)", ": C = 10 beside the sum of losses"),
        "extra: PrivateSVM, C by the mean": curve(name, "svm", by_mean_loss,
                                                  "PrivateSVM(n / 10, paper=True)"),
    }  # fmt: skip
    where = NAMES[name]
    claims = [
        Claim(f"{low} errs less than {high} ({where})", low, high)
        for low in ("PrivGene", "PrivateERM")
        for high in ("GUPT", "PrivateSVM", "Majority")
        if (name, high) != ("bank_full", "Majority")
    ]
    if name != "bank_full":
        claims.append(
            Claim(f"PrivGene errs a little less than PrivateERM ({where})",
                  "PrivGene", "PrivateERM")
        )  # fmt: skip
    return Panel(f"support vector machine, {where}", "misclassification", "epsilon", FEWER,
                 curves, claims)  # fmt: skip


def figure_4() -> Figure:
    panels = [svm_panel(name) for name in ("adult", "bank_full")]
    return Figure("Misclassification of private support vector machines by epsilon", panels)


# --------------------------------------------------------------------------------------- figure 5


@cache
def variance(name: str, k: int, solver: Any, epsilon: float, seed: int) -> float:
    """The mean squared distance of a record to its nearest centre."""
    X = clusters.records(name)
    with quiet():  # of seeds
        model = KMeans(k, epsilon, domain=(-1, 1), solver=solver, n_threads=1, random_state=seed)
        return clusters.nicv(X, model.fit(X).cluster_centers_)


def hundredfold(name: str, k: int, epsilon: float, seed: int) -> float:
    return 100 * variance(name, k, EEM(paper=True), epsilon, seed)


def unclipped_gupt(name: str, k: int, epsilon: float, seed: int) -> float:
    """GUPT without what our release does last: noisy centres are not brought back to the domain."""
    X, rng = clusters.records(name), np.random.default_rng(seed)
    d, blocks = X.shape[1], round(len(X) ** 0.4)
    starts = lloyd_steps(rng.uniform(-1, 1, (max(500, 20 * k), d)), rng.uniform(-1, 1, (k, d)))
    own = rng.integers(blocks, size=len(X))
    mean = np.mean([lloyd_steps(X[own == b], starts) for b in range(blocks)], axis=0)
    return clusters.nicv(X, mean + rng.laplace(0, 2 * k * d / (blocks * epsilon), (k, d)))


def plain_means(name: str, k: int, seed: int) -> float:
    from sklearn.cluster import KMeans as Plain

    X = clusters.records(name)
    return float(Plain(k, n_init=2, random_state=seed).fit(X).inertia_ / len(X))


def clusters_panel(name: str, k: int) -> Panel:
    where = f"{'Lifesci' if name == 'lifesci' else 'Image'}, k = {k}"
    head = "`KMeans(k, epsilon, domain=(-1, 1), solver=...)` with "
    fit = partial(variance, name, k)
    curves = {
        "PrivGene": Curve(partial(fit, EEM(paper=True)), f"{head}`EEM(paper=True)`"),
        "PrivGene, EM, ten survivors": Curve(partial(fit, PrivGene(paper=True)),
                                             f"{head}`PrivGene(paper=True)`"),
        "GUPT": Curve(partial(fit, Gupt(paper=True)), f"{head}`Gupt(paper=True)`"),
        "GUPT, not clipped": Curve(partial(unclipped_gupt, name, k),
                                   "the same without the last clip to the domain, in numpy"),
        "not private": level(partial(plain_means, name, k), "scikit-learn's `KMeans(n_init=2)`"),
        "PrivGene, a hundredfold": Curve(partial(hundredfold, name, k),
                                         "as PrivGene, times 100"),
    }  # fmt: skip
    claims = [
        Claim(f"{low} has less variance than {high} ({where})", low, high)
        for low in ("PrivGene", "PrivGene, EM, ten survivors")
        for high in ("GUPT", "GUPT, not clipped")
    ]
    claims += [
        Claim(f"PrivGene has a hundredth of the variance of {high} at epsilon 0.1 ({where})",
              "PrivGene, a hundredfold", high, (0.1,))
        for high in ("GUPT", "GUPT, not clipped")
    ]  # fmt: skip
    return Panel(f"k-means, {where}", "mean squared distance", "epsilon", EPSILONS, curves, claims,
                 log="xy")  # fmt: skip


def figure_5() -> Figure:
    sizes = (("lifesci", 3), ("lifesci", 5), ("image_house_rgb", 10), ("image_house_rgb", 15))
    panels = [clusters_panel(name, k) for name, k in sizes]
    return Figure("Variance of private k-means by epsilon", panels, across=2)


# ---------------------------------------------------------------------------------- figures 6, 7

EARLY = 5  # the iteration whose gap later ones are compared with


@lru_cache(maxsize=4)
def errors_on_the_way(name: str, task: str, solver: Any, seed: int) -> tuple[float, ...]:
    """The error of what each iteration of a fit at epsilon 1 released."""
    X, y, X_test, y_test = fold(name, seed)
    path: list[Floats] = []
    fitted(task, 1.0, solver, X, y, seed, callback=lambda now: path.append(now.parameters))
    return tuple(wrong(weights, X_test, y_test) for weights in path)


def by_iteration(
    name: str, task: str, solver: Any, points: Sequence[float], seed: int
) -> list[float]:
    path = errors_on_the_way(name, task, solver, seed)
    return [path[int(point) - 1] for point in points]


def with_early_gap(name: str, task: str, points: Sequence[float], seed: int) -> list[float]:
    """EEM's errors, and on top what it is ahead by at an early iteration."""
    ours = errors_on_the_way(name, task, EEM(paper=True), seed)
    theirs = errors_on_the_way(name, task, PrivGene(survivors=1, paper=True), seed)
    gap = theirs[EARLY - 1] - ours[EARLY - 1]
    return [ours[int(point) - 1] + gap for point in points]


def iterations_panel(name: str, task: str) -> Panel:
    last = round(CHOSEN * SIZES[name] * (FOLDS - 1) / FOLDS)
    points = (1, EARLY, 10, 20, 30, 40, last)
    where = f"{NAMES[name]}, {TASKS[task]}"
    fit = f"`{estimator(task, ', C=10')}` with epsilon 1 and "
    curves = {
        "EEM": Curve(partial(by_iteration, name, task, EEM(paper=True)),
                     f"{fit}`EEM(paper=True)`", whole=True),
        "EM, one survivor": Curve(
            partial(by_iteration, name, task, PrivGene(survivors=1, paper=True)),
            f"{fit}`PrivGene(survivors=1, paper=True)`", whole=True),
        f"EEM, and the gap of iteration {EARLY}": Curve(
            partial(with_early_gap, name, task), "made of the two above", whole=True),
    }  # fmt: skip
    claims = [
        Claim(f"EEM errs less than EM ({where})", "EEM", "EM, one survivor"),
        Claim(f"the gap of EEM and EM grows beyond that of iteration {EARLY} ({where})",
              f"EEM, and the gap of iteration {EARLY}", "EM, one survivor", points[2:]),
    ]  # fmt: skip
    return Panel(where, "misclassification", "iteration", points, curves, claims, log="")


def iterations_figure(name: str) -> Figure:
    return Figure(
        f"Misclassification of PrivGene by iteration on {NAMES[name]}, EM and EEM",
        [iterations_panel(name, task) for task in TASKS],
        seeds=20,
        across=2,
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
    "6": partial(iterations_figure, "adult"),
    "7": partial(iterations_figure, "bank_full"),
}
