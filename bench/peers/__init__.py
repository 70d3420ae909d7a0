"""privfit beside its peers: same splits, same declared ranges, same budgets, in one run.

Contestants take turns on one thread, cell by cell of a split. Times are of `fit` alone: ours reads
the table as it was loaded, text and all; the peers get ready-made arrays. diffprivlib needs a
scikit-learn of its time, and so has an environment (`--setup`) and a process of its own. A peer
with delta = 0 also meets delta = 1e-6, so it is held against both of ours.
"""

from __future__ import annotations

import argparse
import functools
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench import command, pages
from bench.accuracy import ENOUGH, Fit, Found, clusters, measure_cells, open_results
from bench.accuracy.tasks import DELTA, DELTAS, TASKS, Cell
from bench.measure import has
from bench.peers import contestants
from bench.peers.contestants import PYTHON, Worker
from bench.results import Results

EPSILONS = (0.1, 0.3162, 1.0)
OURS = "auto"
GOOGLE = "Google, LSH"
# With scikit-learn from 1.4 on, diffprivlib 0.6.5 adds its noise to a mean of losses, n times too
# much, and its logistic regression is a coin; 0.6.6 divides the noise by n.
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.6.1", "interpret-core==0.7.8")


@dataclass(frozen=True)
class Peer:
    """Somebody else's fit, and the delta that it spends."""

    fit: Fit
    delta: float


@dataclass(frozen=True)
class Contest:
    """Data of one task, our fit, the deltas that we enter with, and the peers."""

    task: str
    data: tuple[str, ...]
    ours: Fit
    deltas: tuple[float, ...]
    adjacency: str
    peers: dict[str, Peer]

    def cells(self, data: str, epsilon: float) -> Iterator[Cell]:
        for delta in self.deltas:
            yield Cell(self.task, data, OURS, epsilon, delta, self.adjacency)
        for name, peer in self.peers.items():
            yield Cell(self.task, data, name, epsilon, peer.delta, self.adjacency)

    def fit(self, cell: Cell, seed: int) -> tuple[float, float]:
        peer = self.peers.get(cell.solver)
        return (self.ours if peer is None else peer.fit)(cell, seed)


def contests(worker: Worker | None) -> dict[str, Contest]:
    """All contests, with the peers that are at hand; a peer that is not is still listed."""

    def diffprivlib(fit: Fit, **job: object) -> Peer:
        return Peer(functools.partial(fit, worker, **job), 0.0)

    linear, kmeans = contestants.diffprivlib_linear, contestants.diffprivlib_kmeans
    by_task = {
        "linear": {
            "noisy gradient, numpy": Peer(contestants.numpy_descent, DELTA),
            **{f"diffprivlib, C = {c:g}": diffprivlib(linear, model="logistic", C=c)
               for c in (0.001, 0.01, 1.0)},
            "diffprivlib, GaussianNB": diffprivlib(linear, model="bayes"),
        },
        "kmeans": {"diffprivlib": diffprivlib(kmeans),
                   "our FastLloyd": Peer(contestants.fast_lloyd_kmeans, 0.0),
                   GOOGLE: Peer(contestants.google_kmeans, DELTA)},
        "features": {
            f"OpenDP, {criterion}":
            Peer(functools.partial(contestants.opendp_features, criterion=criterion), 0.0)
            for criterion in ("purity_index", "total_count")
        },
    }  # fmt: skip
    everywhere = (
        ("linear", TASKS["linear"].data, contestants.our_linear, DELTAS, "replace"),
        ("kmeans", tuple(clusters.CLUSTERS), contestants.our_kmeans, (0.0,), "add_remove"),
        ("features", ("sms_spam",), contestants.our_features, (0.0,), "add_remove"),
    )
    return {each[0]: Contest(*each, by_task[each[0]]) for each in everywhere}


def at_hand(cell: Cell, worker: Worker | None) -> bool:
    """Whether who fits this cell is installed."""
    if cell.solver.startswith("diffprivlib"):
        return worker is not None
    packages = {"Google": "clustering", "OpenDP": "opendp"}
    name = packages.get(cell.solver.split(",")[0])
    return name is None or has(name)


# --------------------------------------------------------------------------------------- reporting


def compared(found: Found, contest: Contest, data: str, epsilon: float) -> Iterator[list[str]]:
    """A row for each contestant; peers with their distance from ours, seed by seed."""
    for cell in contest.cells(data, epsilon):
        row = found.results.get(*cell.key)
        if row is not None and found.values(cell):
            held = [] if cell.solver == OURS else list(distances(found, contest, cell))
            spent = f"{1e3 * float(row['seconds']):.0f}"
            yield [data, f"{epsilon:g}", cell.solver, f"{cell.delta:g}", found.shown(cell), spent,
                   *(held[0] if held else ("", ""))]  # fmt: skip
            yield from (["", "", "", "", "", "", *rest] for rest in held[1:])


def distances(found: Found, contest: Contest, peer: Cell) -> Iterator[tuple[str, str]]:
    """How far ours is ahead of a peer, and its mark, for each of our budgets that it meets."""
    better = 1 if TASKS[contest.task].higher else -1
    for delta in contest.deltas:
        ours = replace(peer, solver=OURS, delta=delta)
        gaps = [better * gap for gap in found.paired(ours, peer)]
        if gaps and delta >= peer.delta:
            yield f"{pages.mean(gaps)} (delta {delta:g})", mark(gaps)


def mark(gaps: list[float]) -> str:
    """Who is ahead, by the interval of the mean difference."""
    mean, half = pages.interval(gaps)
    if not math.isfinite(half):
        return "-"
    if mean < 0:
        return "**PEER AHEAD**" if mean + half < 0 else "**peer ahead**, within the interval"
    return "ours" if mean - half > 0 else "ours, within the interval"


def sections(results: Results, held: dict[str, Contest]) -> Iterator[str]:
    """A table for each contest."""
    header = ("data", "epsilon", "contestant", "delta", "found", "mean ms", "ours minus peer",
              "ahead")  # fmt: skip
    found = Found(results)
    yield from (pages.origin(results), "")
    for contest in held.values():
        rows = [row for data in contest.data for epsilon in EPSILONS
                for row in compared(found, contest, data, epsilon)]  # fmt: skip
        if rows:
            yield (f"**{contest.task}**, {TASKS[contest.task].measure}, {contest.adjacency}; a "
                   "positive difference means that ours is better")  # fmt: skip
            yield from ("", *pages.table(header, rows), "")


# -------------------------------------------------------------------------------------- the command


def setup() -> None:
    """An environment for peers, with the scikit-learn that diffprivlib still works on."""
    subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parents[1])], check=True)
    subprocess.run([str(PYTHON), "-m", "pip", "install", *PACKAGES], check=True)


def run(options: argparse.Namespace) -> None:
    """Measure what is missing, ours and theirs in turns, and show who is ahead."""
    if options.setup:
        setup()
        return
    worker = Worker(PYTHON) if PYTHON.exists() and not options.list else None
    held = contests(worker)
    cells = [cell for contest in held.values() for data in contest.data for epsilon in EPSILONS
             for cell in contest.cells(data, epsilon)]  # fmt: skip
    chosen = command.chosen(options, cells, lambda cell: cell.label)
    if not chosen:
        return
    here = [cell for cell in chosen if at_hand(cell, worker)]
    for name in dict.fromkeys(cell.solver for cell in chosen if cell not in here):
        print(f"{name}: not installed; python -m bench peers --setup, pip install 'privfit[bench]'",
              file=sys.stderr)  # fmt: skip
    if options.quick:
        here = here[:2]
    options.jobs = 1  # in turns, and the worker has one process
    results = open_results(options.out, "peers")
    measure_cells(results, here, options.seeds or (1 if options.quick else ENOUGH), options,
                  lambda cell, seed: held[cell.task].fit(cell, seed))  # fmt: skip
    if worker is not None:
        worker.close()
    lines = list(sections(results, held)) if results.rows else []
    print(*lines, sep="\n")
    if options.write:
        pages.refresh(pages.PAGES / "peers.md", "\n".join(lines), "peers")
