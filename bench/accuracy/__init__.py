"""Accuracy of every solver on real data, with intervals over seeds.

A seed sets the 80/20 split and the fit, so that solvers are compared over paired seeds. A line of
results is a cell with the numbers of all its seeds; cells that are there, measured with the code at
hand, are not measured again.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bench import command, measure, pages
from bench.accuracy import clusters, medians, optimum
from bench.accuracy.linear import PLAIN
from bench.accuracy.targets import all_targets
from bench.accuracy.tasks import REFERENCES, TASKS, Cell, all_cells, fit, quick_cells
from bench.results import Results, by_seed, joined, parsed

ENOUGH = 10  # seeds before a mean is held against its target
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KEY = ("task", "data", "solver", "epsilon", "delta", "adjacency")
VALUES = ("seeds", "mean", "half", "values", "seconds")

Fit = Callable[[Cell, int], tuple[Any, float]]  # a number, or several by what is measured


def open_results(folder: Path, name: str = "accuracy") -> Results:
    return Results(folder / f"{name}.csv", KEY, VALUES)


# -------------------------------------------------------------------------------------------- runs


class Measured(NamedTuple):
    """The numbers of some seeds by what is measured, and what is known of all of them."""

    cell: Cell
    values: dict[str, list[float | None]]
    seconds: float
    load: float | None
    refusal: str


def measured(job: tuple[Cell, range], fit: Fit = fit) -> Measured:
    """Some seeds of a cell; a refusal is a result too, and must not end a run of hours."""
    cell, seeds = job
    found: list[dict[str, float]] = []
    spent, refusal = 0.0, ""
    with measure.Others() as others:
        for seed in seeds:
            try:
                value, seconds = fit(cell, seed)
            except ValueError as error:
                found.append({})
                refusal = str(error)
            else:
                found.append(value if isinstance(value, dict) else {cell.task: value})
                spent += seconds
    names = dict.fromkeys([cell.task, *(name for one in found for name in one)])
    values = {name: [one.get(name) for one in found] for name in names}
    return Measured(cell, values, spent / max(1, sum(map(bool, found))), others.share, refusal)


def row_of(cell: Cell, values: list[float | None], seconds: float) -> dict[str, Any]:
    """A line of results."""
    found = [value for value in values if value is not None]
    mean, half = pages.interval(found)
    return dict(zip(KEY, cell.key, strict=True)) | {
        "seeds": len(values), "mean": mean if found else None,
        "half": half if len(found) > 1 else None, "values": joined(values), "seconds": seconds,
    }  # fmt: skip


def measure_cells(
    results: Results, cells: Iterable[Cell], seeds: int, options: argparse.Namespace,
    fit: Fit = fit,
) -> int:  # fmt: skip
    """Measure the seeds that are missing and keep each cell as it comes; how many there were."""
    jobs = [(cell, range(known_seeds(results, cell, options.keep), seeds))
            for cell in dict.fromkeys(cells)]  # fmt: skip
    missing = [job for job in jobs if job[1]] if options.minutes > 0 else []
    start, done = time.perf_counter(), 0
    work = functools.partial(measured, fit=fit)
    for cell, values, seconds, load, refusal in mapped(work, missing, options.jobs):
        for name, new in values.items():
            one = replace(cell, task=name)
            before = results.get(*one.key)
            known = [*parsed(before["values"] if before else ""), *[None] * seeds]
            row = row_of(one, known[: seeds - len(new)] + new, seconds)
            alone = load if options.jobs == 1 else None  # else our own processes count
            results.add(row, alone, write=False)
            print(f"{one.label}: {row['mean']}", file=sys.stderr)
        results.write()
        done += 1
        print(f"{done} of {len(missing)}", file=sys.stderr)
        if refusal:
            print(f"refused: {cell.label}: {refusal}", file=sys.stderr)
        if time.perf_counter() - start > 60 * options.minutes:
            break
    return done


def known_seeds(results: Results, cell: Cell, keep: bool) -> int:
    """How many seeds of a cell need no more fits."""
    row = results.get(*cell.key)
    return int(row["seeds"]) if row is not None and (keep or results.fresh(*cell.key)) else 0


def mapped(work: Callable[[Any], Any], jobs: list[Any], processes: int) -> Iterator[Any]:
    """The results of `work`, as they come, each process on one thread."""
    if processes == 1 or len(jobs) < 2:
        yield from map(work, jobs)
        return
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by the processes when they start
    try:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            yield from pool.imap_unordered(work, jobs)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


# ----------------------------------------------------------------------------------------- reading


class Found:
    """The numbers of cells, as texts."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def values(self, cell: Cell) -> dict[int, float]:
        """By seed, where there is a number."""
        return by_seed(self.results.get(*cell.key))

    def paired(self, first: Cell, second: Cell) -> list[float]:
        """The first minus the second, seed by seed."""
        a, b = self.values(first), self.values(second)
        return [a[seed] - b[seed] for seed in a if seed in b]

    def mean(self, cell: Cell) -> float:
        return pages.interval(self.values(cell).values())[0]

    def shown(self, cell: Cell) -> str:
        """The mean, and how many seeds if they are fewer than ten."""
        values = list(self.values(cell).values())
        few = f" ({len(values)})" if 0 < len(values) < ENOUGH else ""
        return pages.mean(values) + few


# ----------------------------------------------------------------------------------------- targets


def target_lines(found: Found) -> Iterator[str]:
    """The default solver against its targets; data that nobody tuned on come first."""
    header = ("data", "adjacency", "delta", "epsilon", "auto", "target", "goal", "verdict", PLAIN)
    rows = []
    for one in all_targets():
        cell = one.cell
        verdict = pages.met(found.mean(cell), one.target, one.goal)
        rows.append([
            cell.data, cell.adjacency, f"{cell.delta:g}", f"{cell.epsilon:g}", found.shown(cell),
            f"{one.target:g}", f"{one.goal or '-'}",
            verdict if len(found.values(cell)) >= ENOUGH else "-",
            found.shown(Cell("linear", cell.data, PLAIN)),
        ])  # fmt: skip
    yield from ("### Targets of the default", "", *pages.table(header, rows), "")


def cluster_verdicts(found: Found) -> Iterator[str]:
    """'auto' of k-means and k-median against its targets."""
    rows = []
    for data, asked in clusters.TARGETS.items():
        for epsilon, target in zip(clusters.EPSILONS, asked, strict=True):
            cell = Cell("kmeans", data, "auto", epsilon, 0.0, "add_remove")
            if found.values(cell):
                rows.append([f"kmeans: {data}", f"{epsilon:g}", found.shown(cell),
                             f"{target:g} and 5 %",
                             pages.met(found.mean(cell), 1.05 * target, sign=-1)])  # fmt: skip
    for epsilon, above in medians.TARGETS.items():
        cell = Cell("kmedian", "mushroom, k = 4", "auto", epsilon)
        plain = Cell("kmedian", "mushroom, k = 4", PLAIN)
        if found.values(cell):
            excess = found.mean(cell) - found.mean(plain)
            rows.append(["kmedian: mushroom, k = 4", f"{epsilon:g}",
                         f"{excess:.2f} above no privacy", f"{above:.2f}",
                         pages.met(excess, above, sign=-1)])  # fmt: skip
    header = ("cell", "epsilon", "auto", "target", "verdict")
    yield from ("### Targets of clustering", "", *pages.table(header, rows), "")


OPTIMUM = (
    "Cost over that of scikit-learn's best of 10; target, goal: `auto`, records added or",
    "removed. The number of seeds is in brackets. Tables with a * were not used to choose anything",
    "after the first recipe, whose own constants were chosen with all of them in sight; but",
    "for mushroom, which led to one exception (radii where seeds are noise).",
)


def optimum_lines(found: Found) -> Iterator[str]:
    """'auto' of k-means beside scikit-learn's best of 10: target, goal, ours."""
    header = ("data", *(f"epsilon {e:g}, delta {d:g}" for e, d in optimum.BUDGETS))
    rows = []
    for data in (*optimum.REAL, *optimum.MIXTURES):
        cells = [Cell("optimum", data, "auto", e, d, "add_remove") for e, d in optimum.BUDGETS]
        if any(map(found.values, cells)):
            asked = optimum.TARGETS.get(data, ((None, None),) * len(cells))
            mark = " *" if data in optimum.UNTUNED else ""
            rows.append(
                [data + mark, *(_beside(found, *one) for one in zip(cells, asked, strict=True))]
            )
    yield from ("### Beside the optimum", "", *OPTIMUM, "", *pages.table(header, rows), "")


def _beside(found: Found, cell: Cell, asked: tuple[float | None, float | None]) -> str:
    """A mean and what was asked of it."""
    target, goal = asked
    if not found.values(cell):
        return "-"
    if target is None:
        return found.shown(cell)
    verdict = pages.met(found.mean(cell), target, goal, sign=-1)
    return f"{target:g}, {goal:g}: {found.shown(cell)} {verdict}"


def solver_lines(found: Found, tasks: Iterable[str]) -> Iterator[str]:
    """Every solver of some tasks, under both adjacencies, pure and approximate."""
    groups: dict[tuple[str, str, str], dict[str, dict[tuple[float, float], Cell]]] = {}
    for cell in all_cells():
        if cell.task in tasks and cell.solver not in REFERENCES and found.values(cell):
            rows = groups.setdefault((cell.task, cell.data, cell.adjacency), {})
            rows.setdefault(cell.solver, {})[cell.delta, cell.epsilon] = cell
    for (task, data, adjacency), by_solver in groups.items():
        known = (f"{name} {found.shown(Cell(task, data, name))}" for name in TASKS[task].references)
        yield "; ".join([f"**{task}: {data}, {adjacency}**", TASKS[task].measure, *known])
        yield ""
        columns = sorted({key for row in by_solver.values() for key in row})
        header = ["solver", *(f"epsilon {e:g}, delta {d:g}" for d, e in columns)]
        yield from pages.table(
            header,
            ([name, *(found.shown(row[key]) if key in row else "-" for key in columns)]
             for name, row in by_solver.items()),
        )  # fmt: skip
        yield ""


CLUSTERINGS = ("kmeans", "optimum", "postprocess", "kmedian", "anywhere")


def write_pages(results: Results) -> None:
    """Refresh docs/benchmarks/accuracy.md and clusters.md."""
    found = Found(results)
    others = [task for task in TASKS if task not in CLUSTERINGS]
    for page, tasks, parts in (
        ("accuracy", others, (target_lines,)),
        ("clusters", CLUSTERINGS, (cluster_verdicts, optimum_lines)),
    ):
        rows = [row for row in results if (row["task"] in CLUSTERINGS) == (page == "clusters")]
        lines = [pages.origin(rows), ""]
        for part in parts:
            lines += part(found)
        shown = [task for task in tasks if task != "optimum"]  # which has a table of its own
        lines += ["### Every solver", "", *solver_lines(found, shown)]
        pages.refresh(pages.PAGES / f"{page}.md", "\n".join(lines), page)


# -------------------------------------------------------------------------------------- the command


def run(options: argparse.Namespace) -> None:
    """Measure the chosen cells that are missing, and show them."""
    cells = quick_cells() if options.quick else all_cells()
    chosen = command.chosen(options, cells, lambda cell: cell.label)
    if not chosen:
        return
    results = open_results(options.out)
    seeds = options.seeds or (1 if options.quick else ENOUGH)
    measure_cells(results, chosen, seeds, options)
    found = Found(results)
    for cell in chosen:
        if found.values(cell):
            print(f"{cell.label}: {found.shown(cell)}")
    if options.write:
        write_pages(results)
