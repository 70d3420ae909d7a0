"""k-median over public facilities: cost of every solver on real data, and speed of swaps.

python bench/medians.py --quick                  # three seeds, mushroom and s1
python bench/medians.py --sections speed
python bench/medians.py --write                  # refresh bench/README.md and medians.json

Accuracy is the mean clipped distance of a record to the nearest chosen facility, as a mean over
seeds; a seed sets the random facilities and the fit. `mushroom` and `spambase` follow the thesis:
a quarter as many facilities as records, uniform in [0, 1]^d, distances clipped to [d/4, d/2]. `s1`
and `gowalla_pois` choose from a grid over the declared range, scaled to [-1, 1]. Seeded fits are
for benchmarks: they are not private.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import datasets, machine, tables  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import keep, refresh  # noqa: E402
from bench.trials import interval  # noqa: E402
from privfit import (  # noqa: E402
    DPSGA,
    EEM,
    Box,
    Coreset,
    FacilityObjective,
    Greedy,
    Gupta,
    Ledger,
    PrivGene,
    Subsample,
    Subsets,
    Synopsis,
)
from privfit.clustering.kmedian import METHODS as KNOWN  # noqa: E402
from privfit.clustering.kmedian import automatic  # noqa: E402
from privfit.privacy.neighbours import Neighbours  # noqa: E402
from privfit.runs import Run  # noqa: E402

EPSILONS = (0.1, 0.3162, 1.0)
CASES = (("mushroom", 4), ("mushroom", 16), ("spambase", 4), ("spambase", 16), ("s1", 15),
         ("gowalla_pois", 5), ("gowalla_pois", 20))  # fmt: skip
METHODS: dict[str, Any] = {
    "auto": None,
    "synopsis": Synopsis(),
    "greedy": Greedy(),
    "greedy, all distances": Greedy(focus=0),
    "local": Gupta(),
    "local, paper": Gupta(paper=True),
    "coreset": Coreset(),
    "privgene": PrivGene(),
    "eem": EEM(),
    "dpsga": DPSGA(),
    "dpsga, paper": DPSGA(paper=True),
    "subsample": Subsample(),
}
# What was asked of auto on mushroom with four medians, above a cost of 45.46 without privacy.
TARGETS = {("mushroom", 4): {0.1: 46.1 - 45.46, 0.3162: 45.8 - 45.46, 1.0: 45.6 - 45.46}}
SIDE = 32  # facilities along an axis of a grid
RANDOM_SETS = 1000  # whose mean cost is what a method has to beat


@dataclass(frozen=True)
class Problem:
    """An objective, and what a record costs for a set of facilities."""

    objective: FacilityObjective
    n: int

    def cost(self, members: Any) -> float:
        return float(self.costs(np.asarray(members)[None])[0])

    def costs(self, sets: Any) -> Any:
        """(m,): of m sets of facilities, by one call of the kernel."""
        return self.objective.clip[0] - self.objective.scores(sets) * self.objective.unit / self.n

    def random_cost(self, k: int, seed: int) -> float:
        """The mean cost of random sets, the thesis's baseline."""
        space = Subsets(self.objective.n_facilities, k)
        return float(self.costs(space.sample(RANDOM_SETS, np.random.default_rng(seed))).mean())


@lru_cache(maxsize=1)
def problem(name: str, seed: int) -> Problem:
    rng = np.random.default_rng(1000 + seed)
    if name in ("s1", "gowalla_pois"):
        X = _plane(name)
        middles = (np.arange(SIDE) + 0.5) * 2 / SIDE - 1
        places = np.array(np.meshgrid(middles, middles)).reshape(2, -1).T
        clip, domain = (0.0, 4.0), Box(-1, 1, 2)
    else:
        X = _mushrooms() if name == "mushroom" else _spam()
        d = X.shape[1]
        places, clip, domain = rng.uniform(0, 1, (len(X) // 4, d)), (d / 4, d / 2), Box(0, 1)
    return Problem(FacilityObjective(X, places, clip, domain, n_threads=1), len(X))


@lru_cache(maxsize=1)
def _mushrooms() -> Any:
    """One-hot, 111 columns: levels that occur, without stalk-root (missing) and veil-type."""
    columns = datasets.load("mushroom").columns
    kept = [values for name, values in columns.items() if name not in ("stalk-root", "veil-type")]
    return np.hstack([(values[:, None] == np.unique(values)) * 1.0 for values in kept])


@lru_cache(maxsize=1)
def _spam() -> Any:
    data = datasets.load("spambase")
    return data.schema.encode(data.columns).toarray() * float(data.schema.record_units()[0])


@lru_cache(maxsize=2)
def _plane(name: str) -> Any:
    """Declared ranges scaled to [-1, 1]: [0, 10^6] squared, and the globe."""
    table = datasets._read(name)
    if name == "s1":
        return np.column_stack([np.array(table[axis], dtype=float) for axis in "xy"]) / 5e5 - 1
    axes = {"latitude": 90, "longitude": 180}
    return np.column_stack([np.array(table[axis], dtype=float) / top for axis, top in axes.items()])


# ----------------------------------------------------------------------------------------- accuracy


def without_privacy(objective: FacilityObjective, k: int) -> Any:
    """Greedy additions, then the best swap while one helps, as PAM does."""
    growth = objective.growth()
    for _ in range(k):
        growth.add(int(np.argmax(growth.scores())))
    view, best = objective.at(growth.members), int(objective.scores(growth.members[None])[0])
    while True:
        swaps = view.all_scores()
        i, j = np.unravel_index(np.argmax(swaps), swaps.shape)
        if swaps[i, j] <= best:
            return view.members
        best = int(swaps[i, j])
        view.step(int(i), int(j))


def private(task: Problem, *fit: Any) -> float:
    """The cost of what `members` finds."""
    return task.cost(members(task, *fit))


def members(
    task: Problem, settings: Any, k: int, epsilon: float, delta: float, adjacency: str, seed: int
) -> Any:
    """The facilities that a solver selects; without settings, that of 'auto'."""
    objective = task.objective
    if settings is None:
        settings = KNOWN[automatic(objective)]()
    grant = Ledger(epsilon, delta).reserve(epsilon, delta)
    space = Subsets(objective.n_facilities, k)
    run = Run(objective, space, grant, seed, neighbours=Neighbours(adjacency), n_public=task.n)
    return settings(run).answer


def costs(options: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    """For each case its rows, one for each method and epsilon, with the costs of all seeds."""
    for name, k in options.cases:
        found: dict[tuple[str, float], list[float]] = {}
        for seed in range(options.seeds):
            task = problem(name, seed)
            found.setdefault(("random", 0.0), []).append(task.random_cost(k, seed))
            plain = task.cost(without_privacy(task.objective, k))
            found.setdefault(("not private", 0.0), []).append(plain)
            for method in options.methods:
                if method == "synopsis" and not task.objective.has_cells:
                    continue
                for epsilon in EPSILONS:
                    value = private(
                        task, METHODS[method], k, epsilon, options.delta, options.adjacency, seed
                    )
                    found.setdefault((method, epsilon), []).append(value)
            print(f"{name}, k={k}: seed {seed + 1} of {options.seeds}", file=sys.stderr)
        yield [
            {"data": name, "k": k, "method": method, "epsilon": epsilon, "delta": options.delta,
             "adjacency": options.adjacency, "costs": values}
            for (method, epsilon), values in found.items()
        ]  # fmt: skip


def cost_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for case in dict.fromkeys((row["data"], row["k"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["k"]) == case]
        digits = 2 if mine[0]["costs"][0] > 1 else 4
        shown = {(row["method"], row["epsilon"]): _shown(row["costs"], digits) for row in mine}
        plain = next(row["costs"] for row in mine if row["method"] == "not private")
        yield (
            f"{case[0]}, k = {case[1]}, {mine[0]['adjacency']}, delta {mine[0]['delta']:g}, "
            f"{len(plain)} seeds; not private {shown['not private', 0.0]}, random "
            f"{shown['random', 0.0]}"
        )
        yield ""
        methods = [m for m in dict.fromkeys(row["method"] for row in mine) if (m, 1.0) in shown]
        table = [[m, *(shown[m, epsilon] for epsilon in EPSILONS)] for m in methods]
        yield from table_lines(["solver", *(f"epsilon {e:g}" for e in EPSILONS)], table)
        for epsilon, above in TARGETS.get(case, {}).items() if "auto" in methods else ():
            auto = next(row["costs"] for row in mine
                        if (row["method"], row["epsilon"]) == ("auto", epsilon))  # fmt: skip
            excess = float(np.mean(auto) - np.mean(plain))
            verdict = "reached" if excess <= above else "short"
            yield f"- auto at epsilon {epsilon:g}: {excess:.2f} above, asked {above:.2f}: {verdict}"
        yield ""


def _shown(values: list[float], digits: int) -> str:
    mean, half = interval(values)
    return f"{mean:.{digits}f} +- {half:.{digits}f}"


# -------------------------------------------------------------------------------------------- speed


def swap_rows(n: int, f: int, repeat: int, threads: int | None) -> Iterator[list[str]]:
    """Ours against numpy, whose time is that of some facilities, in proportion."""
    X, _ = tables.one_hot(n)
    d, some = X.shape[1], 100
    places = np.random.default_rng(6).uniform(0, 1, (f, d))
    start = time.perf_counter()
    objective = FacilityObjective(X, places, (d / 4, d / 2), Box(0, 1), threads)
    built = time.perf_counter() - start
    distances = objective._sums.whole("this bench").distances()
    small = distances.matrix[:some, :n].copy()
    table = small.T.astype(np.float64)  # as numpy would hold it: records by facilities
    rows = np.ascontiguousarray(table.T)
    yield ["distance matrix", f"{n:,} x {f:,}, d={d}", "-", "-", f"{built * 1e3:,.0f}", "-"]
    for k in (4, 16, 64):
        members = np.random.default_rng(k).choice(f, k, replace=False)
        view = objective.at(members)
        ours = machine.best_of(view.all_scores, repeat)
        two, which = distances.nearest_two(members)
        first, second = two.astype(np.float64)
        own = distances.matrix[members, :n].T.astype(np.float64)

        def scratch(k: int = k, own: Any = own) -> Any:
            """Every swap from nothing: the minimum over the k columns of the new set, of a few."""
            sums = np.empty((1, 4))
            for j in range(4):
                swapped = own.copy()
                swapped[:, 0] = table[:, j]
                sums[0, j] = swapped.min(axis=1).sum()
            return sums

        def increments(k: int = k, which: Any = which, d: Any = first, e: Any = second) -> Any:
            """Every swap from each record's two nearest members."""
            sums = np.empty((k, some))
            for i in range(k):
                kept = np.where(which == i, e, d)
                for j in range(some):
                    sums[i, j] = np.minimum(rows[j], kept).sum()
            return sums

        def grouped(k: int = k, which: Any = which, d: Any = first, e: Any = second) -> Any:
            """All swaps of a facility at once, summed by the nearest member."""
            sums = np.empty((k, some))
            for j in range(some):
                kept = np.minimum(rows[j], d)
                sums[:, j] = kept.sum() + np.bincount(which, np.minimum(rows[j], e) - kept, k)
            return sums

        alternatives: tuple[tuple[str, Callable[[], Any], float], ...] = (
            ("numpy, from scratch", scratch, k * f / 4),
            ("numpy, two nearest", increments, f / some),
            ("numpy, two nearest, bincount", grouped, f / some),
        )
        for name, run, times in alternatives:
            expected = run()
            got = -view.all_scores()[: len(expected), : expected.shape[1]]
            assert np.array_equal(got, expected), name
            theirs = machine.best_of(run, 2) * times
            yield [f"all {k * (f - k):,} swaps", f"k={k}", name, f"{theirs * 1e3:,.0f}",
                   f"{ours * 1e3:,.0f}", f"{theirs / ours:,.0f}x"]  # fmt: skip
    growth = objective.growth()
    growth.add(3)
    ours = machine.best_of(growth.scores, repeat)
    near = distances.matrix[3, :n].astype(np.float64)

    def whole() -> Any:
        return np.minimum(table, near[:, None]).sum(axis=0)

    def by_row() -> Any:
        return np.array([np.minimum(row, near).sum() for row in rows])

    for name, run in (("numpy, whole table", whole), ("numpy, row by row", by_row)):
        assert np.array_equal(-growth.scores()[:some], run()), name
        theirs = machine.best_of(run, 2) * f / some
        yield [f"all {f:,} additions", "any k", name, f"{theirs * 1e3:,.0f}", f"{ours * 1e3:,.0f}",
               f"{theirs / ours:,.0f}x"]  # fmt: skip


def speed_lines(options: argparse.Namespace) -> Iterator[str]:
    n, f = (int(size * options.scale) for size in (48_842, 12_210))
    memory = 2 * n * f / 1e9
    with machine.Others() as others:
        rows = list(swap_rows(n, f, options.repeat, options.threads))
    yield (
        f"{n:,} records, {f:,} facilities, the matrix in two bytes ({memory:.2f} GB), "
        f"{options.threads or 'all'} threads; others took {100 * (others.share or 0):.0f} %"
        " of the cores. numpy in float64, one thread, by a part of the work."
    )
    yield ""
    header = ["work", "size", "alternative", "its ms", "privfit ms", "ratio"]
    yield from table_lines(header, rows)


# ------------------------------------------------------------------------------------- command line


def markdown(report: dict[str, Any]) -> Iterator[str]:
    """The generated part of README.md."""
    yield f"Measured on {report['date']}, privfit {report['privfit']}; mean cost a record."
    if "costs" in report:
        yield ""
        yield from cost_lines(report["costs"])
    yield from report.get("speed", ())


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sections", type=lambda text: text.split(","), default=["accuracy", "speed"])
    add("--data", type=lambda text: text.split(","), default=None, metavar="NAMES")
    add("--methods", type=lambda text: text.split(";"), default=list(METHODS), metavar="A;B")
    add("--adjacency", default="replace", choices=["replace", "add_remove"])
    add("--delta", type=float, default=1e-6)
    add("--seeds", type=int, default=10)
    add("--scale", type=float, default=1.0, help="of the sizes of the speed rows")
    add("--repeat", type=int, default=5)
    add("--threads", type=int, default=None)
    add("--quick", action="store_true", help="three seeds, mushroom and s1, small sizes")
    add("--json", type=Path, metavar="PATH", help="write the numbers here, case by case")
    add("--write", action="store_true", help="refresh bench/medians.json and bench/README.md")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.scale = 3, 0.1
        options.data = options.data or ["mushroom", "s1"]
    options.cases = [case for case in CASES if options.data is None or case[0] in options.data]
    return options


def main(arguments: list[str] | None = None) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count() or 1))
    options = parse(arguments)
    path = options.json or HERE / "medians.json"
    wanted = path if options.json or options.write else None
    report: dict[str, Any] = {
        **(json.loads(path.read_text()) if path.exists() else {}),
        "date": datetime.date.today().isoformat(),
        "privfit": privfit.__version__,
        "machine": machine.describe(),
    }
    if "accuracy" in options.sections:
        report["costs"] = []
        for rows in costs(options):
            report["costs"] += rows
            keep(wanted, report)
    if "speed" in options.sections:
        report["speed"] = list(speed_lines(options))
        keep(wanted, report)
    text = "\n".join(markdown(report)) + "\n"
    print(text)
    if options.write:
        refresh(HERE / "README.md", text, "medians")
    return 0


if __name__ == "__main__":
    sys.exit(main())
