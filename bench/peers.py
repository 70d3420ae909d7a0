"""privfit beside its peers: same splits, same declared ranges, same budgets, in one run.

python bench/peers.py --setup               # make the environment of diffprivlib, once
python bench/peers.py                       # every contest, 10 seeds; stop and repeat at will
python bench/peers.py --contests linear --data adult --epsilons 1 --seeds 3
python bench/peers.py --no-run --write      # refresh bench/README.md and bench/peers.json

Contestants take turns on one thread, seed by seed. Times are of `fit` alone: ours reads the table
as it was loaded, text and all; the peers get ready-made arrays. diffprivlib needs a scikit-learn of
its time, and so has an environment and a process of its own. A peer with delta = 0 also meets
delta = 1e-6, so it is held against both of ours. Seeded fits are for benchmarks: not private.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.metadata
import importlib.util
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import cells, clusters, contestants, noisy_descent  # noqa: E402
from bench.accuracy import Found, floats, names, opened, shown, words  # noqa: E402
from bench.cells import DELTA, Cell  # noqa: E402
from bench.contestants import PYTHON, Worker  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import refresh  # noqa: E402
from bench.store import Fit, Job, Store, run  # noqa: E402
from bench.trials import interval  # noqa: E402

EPSILONS = (0.1, 0.3162, 1.0)
OURS = "auto"
GOOGLE = "Google, LSH"
# With scikit-learn from 1.4 on, diffprivlib 0.6.5 adds its noise to a mean of losses, n times too
# much, and its logistic regression is a coin; 0.6.6 divides the noise by n.
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.6.1")
# Mean NICV of Google's LSH clustering (delta 1e-6) as the plan of this library quotes it, at
# epsilon 0.05, 0.1, 0.3162 and 1. Used where its package cannot be imported.
QUOTED = {
    "s1": (0.278, 0.200, 0.136, 0.076),
    "gowalla_pois": (0.057, 0.025, 0.015, 0.0125),
    "image_house_rgb": (0.225, 0.176, 0.125, 0.111),
    "adult": (0.357, 0.337, 0.267, 0.236),
    "lifesci": (0.795, 0.795, 0.773, 0.746),
}

# ---------------------------------------------------------------------------------------- contests


@dataclass(frozen=True)
class Peer:
    """Somebody else's fit: what it spends, and what identifies its settings at an epsilon."""

    fit: Fit
    delta: float
    settings: Callable[[float], object]


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


def contests(worker: Worker | None) -> dict[str, Contest]:
    """All contests, with the peers that are at hand."""
    linear = {
        "noisy gradient, numpy": Peer(contestants.numpy_descent, DELTA, noisy_descent.settings_for),
    }
    kmeans: dict[str, Peer] = {}
    features: dict[str, Peer] = {}
    if worker is not None:
        known = repr(worker.versions)
        for c in (0.001, 0.01, 1.0):
            fit = functools.partial(contestants.diffprivlib_linear, worker, model="logistic", C=c)
            linear[f"diffprivlib, C = {c:g}"] = Peer(fit, 0.0, lambda _, c=c: f"{known} {c}")
        fit = functools.partial(contestants.diffprivlib_linear, worker, model="bayes")
        linear["diffprivlib, GaussianNB"] = Peer(fit, 0.0, lambda _: known)
        fit = functools.partial(contestants.diffprivlib_kmeans, worker)
        kmeans["diffprivlib"] = Peer(fit, 0.0, lambda _: known)
    if importlib.util.find_spec("clustering") is not None:
        kmeans[GOOGLE] = Peer(contestants.google_kmeans, DELTA, lambda _: GOOGLE)
    if importlib.util.find_spec("opendp") is not None:
        version = importlib.metadata.version("opendp")
        for criterion in ("purity_index", "total_count"):
            fit = functools.partial(contestants.opendp_features, criterion=criterion)
            features[f"OpenDP, {criterion}"] = Peer(fit, 0.0, lambda _: version)
    everywhere = (
        Contest("linear", cells.TASKS["linear"].data, contestants.our_linear, cells.DELTAS,
                "replace", linear),
        Contest("kmeans", tuple(clusters.TASKS), contestants.our_kmeans, (0.0,), "add_remove",
                kmeans),
        Contest("features", ("sms_spam",), contestants.our_features, (0.0,), "add_remove",
                features),
    )  # fmt: skip
    return {contest.task: contest for contest in everywhere}


class Arena:
    """The fits of all contests by cell, and what their results depend on."""

    def __init__(self, held: dict[str, Contest]) -> None:
        self.held = held

    def fit(self, cell: Cell, seed: int) -> tuple[float, float]:
        contest = self.held[cell.task]
        peer = contest.peers.get(cell.solver)
        return (contest.ours if peer is None else peer.fit)(cell, seed)

    def fingerprint(self, cell: Cell) -> str:
        contest = self.held.get(cell.task)
        peer = contest.peers.get(cell.solver) if contest else None
        if peer is not None:
            ranges = cells.declared(cell.data) if cell.task == "linear" else ""
            known = f"{peer.settings(cell.epsilon)}{ranges}"
            return hashlib.sha256(known.encode()).hexdigest()[:8]
        return cells.fingerprint(cell) if cell.solver == OURS else "absent"


# --------------------------------------------------------------------------------------- reporting


def compared(found: Found, contest: Contest, data: str, epsilon: float) -> Iterator[list[str]]:
    """A row for each contestant; peers with their distance from ours, seed by seed."""
    for cell in contest.cells(data, epsilon):
        if found.values(cell):
            seconds = found.store.seconds(cell)
            row = [data, f"{epsilon:g}", cell.solver, f"{cell.delta:g}", found.shown(cell),
                   f"{1e3 * seconds[len(seconds) // 2]:.0f}"]  # fmt: skip
            held = [] if cell.solver == OURS else list(distances(found, contest, cell))
            yield [*row, *(held[0] if held else ("", ""))]
            yield from (["", "", "", "", "", "", *rest] for rest in held[1:])


def distances(found: Found, contest: Contest, peer: Cell) -> Iterator[tuple[str, str]]:
    """How far ours is ahead of a peer, and its mark, for each of our budgets that it meets."""
    better = 1 if cells.TASKS[contest.task].higher else -1
    for delta in contest.deltas:
        ours = replace(peer, solver=OURS, delta=delta)
        gaps = [better * gap for gap in found.paired(ours, peer)]
        if gaps and delta >= peer.delta:
            yield f"{shown(gaps)} (delta {delta:g})", mark(gaps)


def mark(gaps: list[float]) -> str:
    """Who is ahead, by the interval of the mean difference."""
    mean, half = interval(gaps)
    if not math.isfinite(half):
        return "-"
    if mean < 0:
        return "**PEER AHEAD**" if mean + half < 0 else "**peer ahead**, within the interval"
    return "ours" if mean - half > 0 else "ours, within the interval"


def markdown(found: Found, held: dict[str, Contest], options: argparse.Namespace) -> Iterator[str]:
    """The generated part of README.md."""
    header = ["data", "epsilon", "contestant", "delta", "found", "median ms", "ours minus peer",
              "ahead"]  # fmt: skip
    yield (
        f"Up to {options.seeds} seeds, privfit {privfit.__version__}; * marks results of code that "
        "has changed since."
    )
    for contest in held.values():
        rows = []
        for data in contest.data if options.data is None else options.data:
            for epsilon in options.epsilons:
                rows += compared(found, contest, data, epsilon)
        if not rows:
            continue
        yield ""
        yield (
            f"{contest.task}, {cells.TASKS[contest.task].measure}, {contest.adjacency}; a positive "
            f"difference means that ours is better"
        )
        yield ""
        yield from table_lines(header, rows)
    if "kmeans" in held and GOOGLE not in held["kmeans"].peers:
        yield ""
        yield (
            "Google's LSH clustering was not on the path. Its mean NICV as quoted in the plan of "
            "this library (delta 1e-6; not run here), at epsilon 0.05, 0.1, 0.3162, 1: "
            + "; ".join(f"{name} {' '.join(map(str, v))}" for name, v in QUOTED.items()) + "."
        )  # fmt: skip


# ------------------------------------------------------------------------------------ command line


def setup() -> None:
    """An environment for diffprivlib, with the scikit-learn that it still works on."""
    subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parents[1])], check=True)
    subprocess.run([str(PYTHON), "-m", "pip", "install", *PACKAGES], check=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--setup", action="store_true", help="make the environment of diffprivlib and end")
    add("--python", type=Path, default=PYTHON,
        help="an interpreter that has diffprivlib; default that of --setup")  # fmt: skip
    add("--without", choices=("diffprivlib",), help="leave this peer out")
    add("--contests", type=words, default=["linear", "kmeans", "features"])
    add("--data", type=names, metavar="A;B", help="default: all of each contest")
    add("--contestants", type=names, metavar="A;B", help="fit these only; default all")
    add("--epsilons", type=floats, default=list(EPSILONS), metavar="0.1,1")
    add("--seeds", type=int, default=10)
    add("--minutes", type=float, default=math.inf, help="begin no fit after so many")
    add("--keep-stale", action="store_true", help="do not repeat fits of code that has changed")
    add("--no-run", action="store_true", help="show what is there")
    add("--store", type=Path, metavar="FOLDER", help="keep results there, not in bench/")
    add("--write", action="store_true", help="refresh bench/peers.json and bench/README.md")
    return parser.parse_args(arguments)


def jobs(store: Store, held: dict[str, Contest], options: argparse.Namespace) -> list[Job]:
    """What is still to be fitted; contestants of one split and budget follow each other."""
    known = {OURS}.union(*(contest.peers for contest in held.values()))
    unknown = set(options.contestants or ()) - known
    if unknown:
        raise SystemExit(f"--contestants ({unknown}) must be among {'; '.join(sorted(known))}")
    wanted = [
        cell
        for contest in held.values()
        for data in contest.data
        if options.data is None or data in options.data
        for epsilon in options.epsilons
        for cell in contest.cells(data, epsilon)
        if options.contestants is None or cell.solver in options.contestants
    ]
    place = {cell: i for i, cell in enumerate(wanted)}
    rest = store.missing(wanted, options.seeds, options.keep_stale)
    return sorted(rest, key=lambda job: (job[1], place[job[0]]))


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.setup:
        setup()
        return 0
    worker = None if options.without else Worker(options.python)
    held = {name: contest for name, contest in contests(worker).items() if name in options.contests}
    arena = Arena(held)
    store = opened(options.store, "peers", fingerprint=arena.fingerprint)
    if not options.no_run:
        run(store, jobs(store, held, options), fit=arena.fit, limit=60 * options.minutes)
    if worker is not None:
        worker.close()
    text = "\n".join(markdown(Found(store, options.seeds), held, options)) + "\n"
    print(text)
    if options.write:
        store.write()
        if options.store is None:
            refresh(HERE / "README.md", text, "peers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
