"""Results that survive: a committed file, a journal of what came since, and runs that add to it.

Every finished fit is one line of the journal, so that a run that is stopped loses at most the fits
under way, and the next run does the rest. `Store.write` folds the journal into the committed file:
a line for each solver, data set, delta and adjacency, with the numbers of each epsilon by seed.
"""

from __future__ import annotations

import datetime
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import privfit
from bench.cells import Cell, fingerprint
from bench.cells import fit as fit_cell
from bench.results import replace_text

CACHE = Path(os.environ.get("PRIVFIT_BENCH", Path(__file__).resolve().parent / ".cache"))
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Job = tuple[Cell, int]
Fit = Callable[[Cell, int], tuple[float, float]]
Print = Callable[[Cell], str]


@dataclass(frozen=True)
class Result:
    """One fit: the number measured (None where privfit refused), its time, and by which code."""

    value: float | None
    seconds: float
    print: str
    date: str


class Store:
    """Results by cell and seed; those of another fingerprint are there, and known as stale."""

    def __init__(self, path: Path, journal: Path, fingerprint: Print = fingerprint) -> None:
        self.path, self.journal, self.fingerprint = path, journal, fingerprint
        self.results: dict[Job, Result] = {}
        self._read_committed()
        self._read_journal()

    def fresh(self, job: Job) -> bool:
        found = self.results.get(job)
        return found is not None and found.print == self.fingerprint(job[0])

    def values(self, cell: Cell, stale: bool = True) -> dict[int, float]:
        """The numbers of a cell by seed, in order."""
        return {
            seed: found.value
            for (other, seed), found in self._of(cell)
            if found.value is not None and (stale or self.fresh((other, seed)))
        }

    def seconds(self, cell: Cell) -> list[float]:
        return sorted(found.seconds for _, found in self._of(cell))

    def _of(self, cell: Cell) -> Iterator[tuple[Job, Result]]:
        seeds = self._seeds.get(cell, set())
        yield from (((cell, seed), self.results[cell, seed]) for seed in sorted(seeds))

    def missing(self, cells: Iterable[Cell], seeds: int, keep_stale: bool = False) -> list[Job]:
        """What is still to be fitted: a seed at a time, so that a part of a run is of use."""
        known = self.results.__contains__ if keep_stale else self.fresh
        jobs = ((cell, seed) for cell in dict.fromkeys(cells) for seed in range(seeds))
        rest = [job for job in jobs if not known(job)]
        return sorted(rest, key=lambda job: (job[1], job[0]))

    def add(self, job: Job, value: float | None, seconds: float) -> None:
        """Keep a result, in memory and in the journal."""
        today = datetime.date.today().isoformat()
        result = Result(value, seconds, self.fingerprint(job[0]), today)
        line = {**asdict(job[0]), "seed": job[1], **asdict(result)}
        line["epsilon"] = _text(job[0].epsilon)
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        with self.journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._keep(job, result)

    def write(self) -> None:
        """Fold all results into the committed file, and empty the journal."""
        self._read_journal()  # another run may have added to it
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for (cell, seed), found in sorted(self.results.items()):
            key = (cell.task, cell.data, cell.solver, cell.delta, cell.adjacency, found.print,
                   found.date)  # fmt: skip
            row = rows.setdefault(key, {"values": {}, "seconds": {}})
            row["values"].setdefault(_text(cell.epsilon), {})[seed] = _short(found.value)
            row["seconds"].setdefault(_text(cell.epsilon), []).append(found.seconds)
        replace_text(self.path, "\n".join(_lines(rows)) + "\n")
        self.journal.unlink(missing_ok=True)

    def _keep(self, job: Job, result: Result) -> None:
        self.results[job] = result
        self._seeds.setdefault(job[0], set()).add(job[1])

    def _read_committed(self) -> None:
        self._seeds: dict[Cell, set[int]] = {}
        if not self.path.exists():
            return
        for row in json.loads(self.path.read_text(encoding="utf-8"))["rows"]:
            task, data, solver, delta, adjacency = row["cell"]
            for epsilon, values in row["values"].items():
                cell = Cell(task, data, solver, float(epsilon), delta, adjacency)
                for seed, value in values.items():
                    seconds = row["seconds"][epsilon]
                    self._keep((cell, int(seed)), Result(value, seconds, row["print"], row["date"]))

    def _read_journal(self) -> None:
        if not self.journal.exists():
            return
        text = self.journal.read_text(encoding="utf-8")
        if not text.endswith("\n"):  # stopped while it wrote: that fit is lost
            text = text[: text.rfind("\n") + 1]
            self.journal.write_text(text, encoding="utf-8")
        for line in map(json.loads, text.splitlines()):
            names = ("task", "data", "solver", "epsilon", "delta", "adjacency")
            cell = Cell(
                **{name: line[name] for name in names} | {"epsilon": float(line["epsilon"])}
            )
            result = Result(line["value"], line["seconds"], line["print"], line["date"])
            self._keep((cell, line["seed"]), result)


def _text(epsilon: float) -> str:
    return f"{epsilon:g}"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _lines(rows: dict[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    """JSON with a line for each row, so that a change is a line too."""
    today = datetime.date.today().isoformat()
    yield f'{{"date": "{today}", "privfit": "{privfit.__version__}", "rows": ['
    whole = len(rows)
    for i, ((*cell, mark, date), row) in enumerate(rows.items(), 1):
        seconds = {e: _short(sum(each) / len(each)) for e, each in row["seconds"].items()}
        entry = {"cell": cell, "print": mark, "date": date, "values": row["values"],
                 "seconds": seconds}  # fmt: skip
        yield json.dumps(entry, separators=(",", ":")) + ("," if i < whole else "")
    yield "]}"


# -------------------------------------------------------------------------------------------- runs


def run(
    store: Store,
    jobs: list[Job],
    processes: int = 1,
    fit: Fit = fit_cell,
    limit: float = math.inf,
) -> int:
    """Fit what is asked, each process on one thread, and keep each result; how many were fitted.

    After `limit` seconds no further fit is begun.
    """
    start, show = time.perf_counter(), progress(len(jobs))
    done = 0
    for job, value, seconds, refusal in mapped(_One(fit), jobs, processes):
        store.add(job, value, seconds)
        done += 1
        show(done, f"{job[0].data}, {job[0].solver}")
        if refusal:
            print(f"\nrefused: {job[0]}: {refusal}", file=sys.stderr)
        if time.perf_counter() - start > limit:
            break
    return done


def mapped(work: Callable[[Any], Any], jobs: list[Any], processes: int) -> Iterator[Any]:
    """The results of `work`, as they come, each process on one thread."""
    if processes == 1:
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


@dataclass(frozen=True)
class _One:
    fit: Fit

    def __call__(self, job: Job) -> tuple[Any, ...]:
        return _one(self.fit, job)


def _one(fit: Fit, job: Job) -> tuple[Job, float | None, float, str]:
    """One fit; a refusal is a result too, and must not end a run of hours."""
    try:
        return job, *fit(*job), ""
    except ValueError as refusal:
        return job, None, 0.0, str(refusal)


def progress(total: int) -> Callable[[int, str], object]:
    """A bar of tqdm's where it is installed, else a line every hundred fits."""
    try:
        from tqdm import tqdm
    except ImportError:
        start = time.perf_counter()

        def line(done: int, what: str) -> None:
            if done % 100 == 0 or done == total:
                print(
                    f"{done} of {total} fits, {time.perf_counter() - start:.0f} s", file=sys.stderr
                )

        return line
    bar = tqdm(total=total, unit="fit", mininterval=5.0, disable=total == 0)

    def show(done: int, what: str) -> None:
        bar.set_postfix_str(what, refresh=False)
        bar.update()
        if done == total:
            bar.close()

    return show
