"""Figures of docs/: scaling from asv's results, accuracy and speed from bench/results, plots.

Scaling needs a run of asv before (`asv run --python=same`); its pictures are skipped without one.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privfit
from bench import accuracy, command, pages, speed
from bench.accuracy.linear import PLAIN
from bench.accuracy.tasks import TASKS, Cell
from bench.measure import ROOT
from bench.results import FOLDER
from privfit import datasets
from privfit.report import plotting

FIGURES = ROOT / "docs" / "figures"
DELTA = 1e-6


# ----------------------------------------------------------------------------------------- scaling

Times = dict[tuple[str, ...], float]


def asv_results(folder: Path = ROOT / ".asv" / "results") -> dict[str, tuple[list[str], Times]]:
    """By benchmark, the names of its parameters and seconds by their values, of the last run.

    The best sample counts where samples were kept (`--record-samples`), else asv's median.
    """
    names = {name: each["param_names"] for name, each in _read(folder / "benchmarks.json").items()
             if isinstance(each, dict) and each["type"] == "time"}  # fmt: skip
    runs = sorted(folder.glob("*/*-*.json"), key=lambda path: path.stat().st_mtime)
    found: dict[str, tuple[list[str], Times]] = {}
    for run in map(_read, runs):
        for name, row in run["results"].items():
            filled = dict(zip(run["result_columns"], row, strict=False))
            points = list(itertools.product(*filled["params"]))
            medians = filled["result"] or [None] * len(points)
            samples = filled.get("samples") or [None] * len(points)
            times = {point: float(min(own) if own else median)
                     for point, median, own in zip(points, medians, samples, strict=False)
                     if median is not None and median == median}  # fmt: skip
            if times and name in names:
                found[name] = names[name], times
    return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def scaling(along: str) -> Callable[[], Any]:
    """Time along one parameter; the others at their first value, a line for each of the rest."""

    def draw() -> Any:
        from matplotlib.ticker import LogLocator

        drawn = {name: lines for name, found in asv_results().items()
                 if (lines := list(lines_along(along, *found)))}  # fmt: skip
        if not drawn:
            return None
        figure, grid = pages.axes(len(drawn))
        for axis, (name, lines) in zip(grid, drawn.items(), strict=True):
            for label, x, y in lines:
                axis.loglog(x, [1e3 * value for value in y], "o-", ms=3, lw=1, label=label)
            first = lines[0]
            ideal = [1e3 * first[2][0] * (x / first[1][0]) ** (-1 if along == "threads" else 1)
                     for x in first[1]]  # fmt: skip
            axis.loglog(first[1], ideal, ":", color="gray", lw=1, label="in proportion")
            axis.set_xticks(first[1], [f"{x:,.0f}" for x in first[1]])
            axis.xaxis.minorticks_off()
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.tick_params(which="minor", labelsize=6)
            axis.set_title(name.partition(".")[2], fontsize=9)
            axis.set_xlabel(along, fontsize=8)
            axis.set_ylabel("ms", fontsize=8)
            axis.legend(fontsize=6, frameon=False)
        return figure

    return draw


def lines_along(
    along: str, names: list[str], times: Times
) -> Iterator[tuple[str, list[float], list[float]]]:
    """For each kind (parameters of words), the times along a parameter of numbers."""
    if along not in names:
        return
    at = names.index(along)
    numeric = [i for i, name in enumerate(names)
               if i != at and all(_is_number(point[i]) for point in times)]  # fmt: skip
    least = {i: min(float(point[i]) for point in times) for i in numeric}
    lines: dict[str, list[tuple[float, float]]] = {}
    for point, seconds in times.items():
        if all(float(point[i]) == least[i] for i in numeric):
            kind = ", ".join(value.strip("'") for i, value in enumerate(point)
                             if i != at and i not in numeric)  # fmt: skip
            lines.setdefault(kind, []).append((float(point[at]), seconds))
    for kind, pairs in lines.items():
        if len(pairs) > 1:
            x, y = zip(*sorted(pairs), strict=True)
            yield kind, list(x), list(y)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


# ------------------------------------------------------------------------------------ from results


def ratios() -> Any:
    """How many times faster than the fastest rival: a bar a kernel, with target and goal."""
    rows = [row for row in speed.open_results(FOLDER) if row["group"] == "kernels" and row["ratio"]]
    figure, (axis,) = pages.axes(1, 9.0, 0.22 * len(rows) + 1)
    places = np.arange(len(rows))[::-1]
    axis.barh(places, [float(row["ratio"]) for row in rows], height=0.7, color="tab:blue",
              label="measured")  # fmt: skip
    for name, mark in (("target", "|"), ("goal", "d")):
        known = [(float(row[name]), place) for row, place in zip(rows, places, strict=True)
                 if row[name]]  # fmt: skip
        axis.plot(*zip(*known, strict=True), mark, color="black", ms=7 if mark == "|" else 3,
                  label=name)  # fmt: skip
    axis.set_yticks(places, [row["name"] for row in rows], fontsize=7)
    axis.set_xscale("log")
    axis.set_xlabel("times faster than the fastest rival", fontsize=8)
    axis.legend(fontsize=7)
    return figure


def by_epsilon(task: str, adjacency: str, delta: float, solvers: tuple[str, ...]) -> Any:
    """Means over seeds by epsilon: a panel a data set, a line a solver."""
    found = accuracy.Found(accuracy.open_results(FOLDER))
    data = [name for name in TASKS[task].data if "no bins" not in name]
    figure, grid = pages.axes(len(data))
    for axis, name in zip(grid, data, strict=True):
        for solver in solvers:
            points = [(e, found.mean(Cell(task, name, solver, e, delta, adjacency)))
                      for e in (0.05, 0.1, 0.3162, 1.0, 3.162, 10.0)]  # fmt: skip
            known = [(e, mean) for e, mean in points if np.isfinite(mean)]
            if known:
                axis.plot(*zip(*known, strict=True), "o-", ms=3, lw=1, label=solver)
        plain = found.mean(Cell(task, name, PLAIN))
        if np.isfinite(plain):
            axis.axhline(plain, ls=":", color="gray", label=PLAIN)
        axis.set_xscale("log")
        if not TASKS[task].higher:
            axis.set_yscale("log")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("epsilon", fontsize=8)
        axis.set_ylabel(TASKS[task].measure, fontsize=8)
        axis.legend(fontsize=6, frameon=False)
    return figure


# --------------------------------------------------- figures of docs/plotting.md and docs/shapes.md


def labelled(n: int, seed: int) -> tuple[Any, Any]:
    """Records (n, 5) in [-1, 1], and noisy labels of a linear rule."""
    coins = np.random.default_rng(seed)
    X = coins.uniform(-1, 1, (n, 5))
    y = X @ [1.0, -1.0, 0.5, 0.25, 0.0] + coins.normal(0, 0.4, n) > 0.5
    return X, y.astype(int)


def model(epsilon: float = 1.0, **options: Any) -> Any:
    return privfit.LogisticRegression(
        epsilon, DELTA, domain=(-1, 1), classes=[0, 1], calibrate=False, **options
    )


def sweep_of_solvers() -> Any:
    X, y = labelled(4000, 0)
    epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
    return plotting.draw_sweep({
        solver: privfit.sweep(model(solver=solver), X, y, epsilons, public=True, seeds=8)
        for solver in ("local", "gradient", "objective")
    })  # fmt: skip


def roc() -> Any:
    X, y = labelled(6000, 1)
    score = model(random_state=0).fit(X[:5000], y[:5000]).predict_proba(X[5000:])[:, 1]
    return plotting.draw_roc(
        {
            f"epsilon {e:g}": privfit.roc_curve(y[5000:], score, e, random_state=0)
            for e in (1.0, 0.1)
        }
    )


def seven_blobs(width: float) -> Any:
    coins = np.random.default_rng(2)
    middles = coins.uniform(-0.85, 0.85, (7, 2))
    return np.clip(middles[coins.integers(7, size=8000)] + coins.normal(0, width, (8000, 2)), -1, 1)


def clusters() -> Any:
    X = seven_blobs(0.07)
    fitted = privfit.KMeans(7, 1.0, domain=(-1, 1), random_state=0).fit(X)
    return plotting.draw_clusters(fitted, public_points=X[:400])


def centers() -> Any:
    """Of a table of mixed columns."""
    census = datasets.make_census()
    names = ("age", "years", "hours", "sex", "marital")
    schema = privfit.Schema({name: census.schema.columns[name] for name in names})
    return plotting.draw_centers(
        privfit.KMeans(6, 2.0, domain=schema, random_state=0).fit(census.table)
    )


def choice() -> Any:
    """Of seven clusters, for docs/kmeans.md."""
    chosen = privfit.choose_k(seven_blobs(0.05), range(2, 16), 1.0, domain=(-1, 1), random_state=0)
    return plotting.draw_choice(chosen)


def budget_of_a_run() -> Any:
    X, y = labelled(4000, 3)
    return plotting.draw_budget(model(random_state=0).fit(X, y))


def budget_of_a_ledger() -> Any:
    X, y = labelled(6000, 4)
    book = privfit.Ledger(2.0, 2e-6)
    privfit.KMeans(3, 0.25, domain=(-1, 1), ledger=book).fit(X)
    with book.group("train"):
        fitted = model(1.0, ledger=book).fit(X[:5000], y[:5000])
    with book.group("test"):
        privfit.roc_curve(y[5000:], fitted.predict_proba(X[5000:])[:, 1], 0.5, ledger=book)
    return plotting.draw_budget(book)


def composition() -> Any:
    return plotting.draw_composition(
        privfit.Event("selection", 0.0625, 150), privfit.Budget(1.0, DELTA)
    )


def shapes() -> Any:
    census = datasets.make_census()
    cut = {"age": privfit.Numeric(17, 90, bins=12), "hours": privfit.Numeric(1, 99, bins=10)}
    schema = privfit.Schema({**census.schema.columns, **cut})
    fitted = privfit.LogisticRegression(1.0, DELTA, domain=schema, classes=[0, 1], random_state=0)
    fitted.fit(census.table, census.target)
    return plotting.draw_shapes(fitted, columns=list(fitted.importances())[:6])


# -------------------------------------------------------------------------------------- the command

PICTURES: dict[str, Callable[[], Any]] = {
    "accuracy": sweep_of_solvers,
    "roc": roc,
    "clusters": clusters,
    "centers": centers,
    "choice": choice,
    "run": budget_of_a_run,
    "ledger": budget_of_a_ledger,
    "composition": composition,
    "shapes": shapes,
    **{f"scaling_{along}": scaling(along) for along in ("n", "d", "m", "k", "threads")},
    "speed_ratios": ratios,
    "accuracy_linear": lambda: by_epsilon(
        "linear", "replace", DELTA, ("auto", "Objective", "DPSGA, paper", "PrivGene, paper")),
    "accuracy_kmeans": lambda: by_epsilon(
        "kmeans", "add_remove", 0.0, ("auto", "lloyd", "grid", "tree", "privgene", "eem")),
    "accuracy_kmedian": lambda: by_epsilon(
        "kmedian", "replace", DELTA, ("auto", "greedy", "swaps, paper", "coreset", "dpsga")),
}  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Draw the chosen pictures into docs/figures, or into the folder of --out."""
    chosen = command.chosen(options, PICTURES, str)
    if not chosen:
        return
    folder = FIGURES if options.write else options.out
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen[:1] if options.quick else chosen:
        figure = PICTURES[name]()
        if figure is None:
            print(f"{name}: no results of asv; run asv run --python=same")
            continue
        path = folder / f"{name}.png"
        plotting.save_figure(figure, path, dpi=90)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
