"""Accuracy of every solver on real data, with intervals over seeds; see README.md.

python bench/accuracy.py --profile quick        # a few minutes: some cells of every task
python bench/accuracy.py --profile full         # every cell; hours, stop and repeat at will
python bench/accuracy.py --sections table --tasks linear --data adult --solvers 'auto;Local'
python bench/accuracy.py --status               # what is there, what is stale, what is missing
python bench/accuracy.py --no-run --write       # tables of what is there, and no fit

Each finished fit is kept at once (`store.py`), so that the next run does the rest. `--write` folds
them into accuracy.json and refreshes README.md. Numbers are means
over seeds and half the width of their 95 % interval by Student's t; "*" marks those of code that
has changed since. Seeded fits are for benchmarks: they are not private.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import cells as kinds  # noqa: E402
from bench.cells import TASKS, Cell, product  # noqa: E402
from bench.fits import table_lines  # noqa: E402
from bench.results import refresh  # noqa: E402
from bench.store import CACHE, Store, run  # noqa: E402
from bench.targets import targets  # noqa: E402
from bench.trials import CONSTANT, COUNTS, DELTA, PLAIN, interval  # noqa: E402

ENOUGH = 10  # seeds before a mean is held against its target

# What the papers found: the first beats the second, at this delta.
DUELS = (
    ("EEM, paper", "PrivGene, paper, one survivor", 0.0),
    ("DPSGA, paper", "PrivGene, paper", DELTA),
    ("DPSGA, paper", "Subsample, paper", DELTA),
)
# A few solvers of every task, which take minutes.
QUICK = {
    "linear": (("spambase", "mushroom"), ("auto", "Local", "Gradient", "Objective", "DPSGA")),
    "svm": (("adult",), ("PrivateSVM",)),
    "kmeans": (("s1",), ("auto", "lloyd", "grid")),
    "kmedian": (("mushroom, k = 4",), ("auto",)),
    "features": (("sms_spam",), ("auto", "no selection")),
    "roc": (("sms_spam, BernoulliNB",), ("default",)),
}


class Found:
    """Means of the cells in a store, as texts."""

    def __init__(self, store: Store, seeds: int) -> None:
        self.store, self.seeds = store, seeds

    def values(self, cell: Cell) -> list[float]:
        return [v for seed, v in self.store.values(cell).items() if seed < self.seeds]

    def paired(self, first: Cell, second: Cell) -> list[float]:
        """The first minus the second, seed by seed."""
        a, b = self.store.values(first), self.store.values(second)
        return [a[seed] - b[seed] for seed in a if seed in b]

    def mean(self, cell: Cell) -> float:
        values = self.values(cell)
        return float(np.mean(values)) if values else math.nan

    def shown(self, cell: Cell) -> str:
        """The mean; "*" if of other code, and how many seeds if they are fewer than asked for."""
        values = self.values(cell)
        stale = any(not self.store.fresh((cell, seed)) for seed in self.store.values(cell))
        few = f" ({len(values)})" if 0 < len(values) < self.seeds else ""
        return shown(values) + ("*" if stale else "") + few


def shown(values: Sequence[float]) -> str:
    """A mean and half its interval, with four digits after the point, or two of large numbers."""
    if not values:
        return "-"
    mean, half = interval(values)
    digits = 2 if abs(mean) >= 10 else 4
    return f"{mean:.{digits}f}" + (f" +- {half:.{digits}f}" if math.isfinite(half) else "")


# ----------------------------------------------------------------------------------------- sections


class Targets:
    """The default solver against what was asked of it; data that nobody tuned on come first."""

    title = "Targets"

    def __init__(self, options: argparse.Namespace) -> None:
        self.targets = [t for t in targets() if not options.data or t.cell.data in options.data]

    def cells(self) -> Iterator[Cell]:
        for target in self.targets:
            yield target.cell
            yield Cell("linear", target.cell.data, PLAIN)

    def lines(self, found: Found) -> Iterator[str]:
        header = ["data", "adjacency", "delta", "epsilon", "auto", "asked", "verdict", "moonshot",
                  PLAIN]  # fmt: skip
        rows = []
        for target in self.targets:
            cell, values = target.cell, found.values(target.cell)
            mean = found.mean(cell)
            verdict = "pass" if mean >= target.asked else "short"
            if target.moonshot is not None and mean >= target.moonshot:
                verdict = "moonshot"
            rows.append([
                cell.data, cell.adjacency, f"{cell.delta:g}", f"{cell.epsilon:g}",
                found.shown(cell), f"{target.asked:g}",
                verdict if len(values) >= ENOUGH else "-", f"{target.moonshot or '-'}",
                found.shown(Cell("linear", cell.data, PLAIN)),
            ])  # fmt: skip
        yield from table_lines(header, rows)


class Papers:
    """What the papers found, over paired seeds: the difference and its interval."""

    title = "What the papers found"

    def __init__(self, options: argparse.Namespace) -> None:
        data = options.data or ["adult", "mushroom", "bank_full"]
        self.keys = [
            (Cell("linear", name, first, e, delta), Cell("linear", name, second, e, delta))
            for first, second, delta in DUELS
            for name in data
            if name in TASKS["linear"].data
            for e in options.epsilons
            if 0.1 <= e <= 1
        ]

    def cells(self) -> Iterator[Cell]:
        for first, second in self.keys:
            yield from (first, second, Cell("linear", first.data, CONSTANT))

    def lines(self, found: Found) -> Iterator[str]:
        header = ["claim", "data", "epsilon", "delta", "first", "second", "difference", "verdict",
                  CONSTANT]  # fmt: skip
        rows = []
        for first, second in self.keys:
            gaps = found.paired(first, second)
            rows.append([
                f"{first.solver} beats {second.solver}", first.data, f"{first.epsilon:g}",
                f"{first.delta:g}", found.shown(first), found.shown(second), shown(gaps),
                verdict(gaps), found.shown(Cell("linear", first.data, CONSTANT)),
            ])  # fmt: skip
        yield from table_lines(header, rows)


def verdict(gaps: Sequence[float]) -> str:
    """Whether a mean difference above 0 is beyond its interval."""
    if len(gaps) < 2:
        return "-"
    mean, half = interval(gaps)
    return "holds" if mean - half > 0 else "reversed" if mean + half < 0 else "undecided"


class Generations:
    """Accuracy by the number of generations and epsilon."""

    title = "Accuracy by number of generations"

    def __init__(self, options: argparse.Namespace) -> None:
        self.epsilons = options.epsilons

    def cells(self) -> Iterator[Cell]:
        for search, counts in COUNTS.items():
            for e in self.epsilons:
                yield Cell("linear", "adult", search, e)
                yield from (Cell("generations", "adult", f"{search} {r}", e) for r in counts)

    def lines(self, found: Found) -> Iterator[str]:
        yield f'adult, replace, delta {DELTA:g}; "rule" is the default number.'
        for search, counts in COUNTS.items():
            rows = []
            for e in self.epsilons:
                row = [Cell("generations", "adult", f"{search} {r}", e) for r in counts]
                row.append(Cell("linear", "adult", search, e))
                rows.append([f"{e:g}", *map(found.shown, row)])
            yield ""
            yield from table_lines([f"{search}, epsilon", *map(str, counts), "rule"], rows)


class Table:
    """Every solver of every task, under both adjacencies, pure and approximate."""

    title = "Every solver"

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.tasks = [name for name in options.tasks if name != "generations"]

    def cells(self) -> Iterator[Cell]:
        chosen = self.options
        for task in self.tasks:
            data, solvers = chosen.data, chosen.solvers
            if chosen.profile == "quick":
                data, solvers = (a or b for a, b in zip((data, solvers), QUICK[task], strict=True))
            yield from product(
                task, data, solvers, chosen.epsilons, chosen.deltas, chosen.adjacencies
            )

    def lines(self, found: Found) -> Iterator[str]:
        groups: dict[tuple[str, str, str], dict[str, dict[tuple[float, float], Cell]]] = {}
        for cell in self.cells():
            if cell.solver not in kinds.REFERENCES and found.values(cell):
                rows = groups.setdefault((cell.task, cell.data, cell.adjacency), {})
                rows.setdefault(cell.solver, {})[cell.delta, cell.epsilon] = cell
        for (task, data, adjacency), by_solver in groups.items():
            known = (
                f"{name} {found.shown(Cell(task, data, name))}" for name in TASKS[task].references
            )
            yield f"{task}: {data}, {adjacency}; {TASKS[task].measure}; {', '.join(known)}"
            yield ""
            columns = sorted({key for row in by_solver.values() for key in row})
            header = ["solver", *(f"epsilon {e:g}, delta {d:g}" for d, e in columns)]
            yield from table_lines(
                header,
                ([name, *(found.shown(row[key]) if key in row else "-" for key in columns)]
                 for name, row in by_solver.items()),
            )  # fmt: skip
            yield ""


SECTIONS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "targets": Targets,
    "papers": Papers,
    "generations": Generations,
    "table": Table,
}

# ------------------------------------------------------------------------------------- command line


def words(text: str) -> list[str]:
    return text.split(",")


def names(text: str) -> list[str]:
    """Names of data and solvers have commas in them, so semicolons stand between."""
    return text.split(";")


def floats(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--profile", choices=("quick", "full"), default="full")
    add("--sections", type=words, metavar=",".join(SECTIONS))
    add("--tasks", type=words, default=list(TASKS), metavar=",".join(TASKS))
    add("--data", type=names, metavar="A;B", help="default: all of each task")
    add("--solvers", type=names, metavar="A;B", help="of the table; default all")
    add("--epsilons", type=floats, metavar="0.1,1")
    add("--deltas", type=floats, default=list(kinds.DELTAS), metavar="0,1e-6")
    add("--adjacencies", type=words, default=list(kinds.ADJACENCIES))
    add("--seeds", type=int, help="default 10, quick 2")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes; default 2")
    add("--minutes", type=float, default=math.inf, help="begin no fit after so many")
    add("--keep-stale", action="store_true", help="do not repeat fits of code that has changed")
    add("--no-run", action="store_true", help="show what is there")
    add("--status", action="store_true", help="count what is there and end")
    add("--store", type=Path, metavar="FOLDER", help="keep results there, not in bench/")
    add("--write", action="store_true", help="refresh bench/accuracy.json and bench/README.md")
    options = parser.parse_args(arguments)
    quick = options.profile == "quick"
    options.sections = options.sections or (["table"] if quick else list(SECTIONS))
    options.epsilons = options.epsilons or ([0.1, 1.0] if quick else list(kinds.EPSILONS))
    options.seeds = options.seeds or (2 if quick else ENOUGH)
    if quick:
        options.tasks = [name for name in options.tasks if name in QUICK]
    known = {
        "sections": set(SECTIONS),
        "tasks": set(TASKS),
        "data": {name for task in TASKS.values() for name in task.data},
        "solvers": {name for task in TASKS.values() for name in task.solvers},
    }
    for option, those in known.items():
        unknown = [name for name in getattr(options, option) or () if name not in those]
        if unknown:
            parser.error(f"--{option} ({unknown}) must be among {'; '.join(sorted(those))}")
    return options


def opened(folder: Path | None, name: str, **options: Any) -> Store:
    """The committed results of this name with their journal, or those of another folder."""
    committed = (folder or HERE) / f"{name}.json"
    return Store(committed, (folder or CACHE) / f"{name}.jsonl", **options)


def status(store: Store, wanted: Iterable[Cell], seeds: int) -> Iterator[str]:
    """How much of each task is there."""
    jobs = [(cell, seed) for cell in dict.fromkeys(wanted) for seed in range(seeds)]
    for task in dict.fromkeys(cell.task for cell, _ in jobs):
        own = [job for job in jobs if job[0].task == task]
        there = [job for job in own if job in store.results]
        fresh = sum(store.fresh(job) for job in there)
        refused = sum(store.results[job].value is None for job in there)
        yield (
            f"{task}: {fresh} of {len(own)} fits, {len(there) - fresh} stale, "
            f"{len(own) - len(there)} missing, {refused} refused"
        )


def markdown(sections: Iterable[Any], found: Found) -> str:
    """The generated part of README.md."""
    lines = [
        f"Tables of {datetime.date.today().isoformat()}, privfit {privfit.__version__}; up to "
        f"{found.seeds} seeds (in brackets how many, where fewer), mean +- half of its 95 % "
        "interval; * marks results of code that has changed since."
    ]
    for section in sections:
        lines += ["", f"### {section.title}", "", *section.lines(found)]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    sections = [SECTIONS[name](options) for name in options.sections]
    wanted = [cell for section in sections for cell in section.cells()]
    store = opened(options.store, "accuracy")
    if options.status:
        print(*status(store, wanted, options.seeds), sep="\n")
        return 0
    if not options.no_run:
        jobs = store.missing(wanted, options.seeds, options.keep_stale)
        run(store, jobs, options.jobs, limit=60 * options.minutes)
    text = markdown(sections, Found(store, options.seeds))
    print(text)
    if options.write:
        store.write()
        if options.store is None:
            refresh(HERE / "README.md", text, "accuracy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
