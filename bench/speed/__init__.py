"""Speed: calls and fits of ours beside rivals that give the same answer, timed in turns.

Before a cell is timed, both sides must agree. Rounds are interleaved; the best time of each side
makes the ratio, and the median stands beside it. The machine's limits are measured between cells.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from bench import command, measure, pages
from bench.measure import BUSY
from bench.results import Results, Row
from bench.speed import fits, kernels, reading, searches, streams, threads  # they register cases
from bench.speed.cases import CASES, Case, Ready, Work

__all__ = ["CASES", "Case", "Ready", "Work", "fits", "kernels", "measured", "open_results",
           "reading", "run", "searches", "streams", "threads", "verdict"]  # fmt: skip

ENOUGH = 7  # rounds before a ratio is held against its target
QUICK = 0.002  # of the records
GROUPS = ("kernels", "fits", "searches", "reading", "streams", "threads")  # as they are shown
KEY = ("group", "name", "threads")
VALUES = ("size", "rival", "best", "median", "rival_best", "rival_median", "ratio", "median_ratio",
          "cpu_ratio", "target", "goal", "of_limit", "bound", "repeat", "scale")  # fmt: skip


def open_results(folder: Any) -> Results:
    return Results(folder / "speed.csv", KEY, VALUES)


# --------------------------------------------------------------------------------------- measuring


def measured(
    case: Case, threads: int, scale: float, repeat: int, limits: measure.Limits | None = None
) -> tuple[dict[str, Any], float | None]:
    """A line, and the share of the machine that others took: both sides agree, then are timed."""
    ready = case.make(threads, scale)
    try:
        result = ready.ours()
        for name, rival in ready.rivals.items():
            ready.agree(result, name, rival())
        del result
        gc.collect()
        with _limited(threads), ready.around, measure.Others() as others:
            taken = measure.race({**ready.rivals, "ours": ready.ours}, repeat)
    finally:
        ready.close()
    return row_of(case, ready, taken, threads, scale, repeat, limits), others.share


def _limited(threads: int) -> Any:
    """BLAS and OpenMP of the rivals; ours are told directly."""
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(threads)
    return threadpool_limits(threads)


def row_of(
    case: Case, ready: Ready, taken: dict[str, measure.Taken], threads: int, scale: float,
    repeat: int, limits: measure.Limits | None,
) -> dict[str, Any]:  # fmt: skip
    ours = taken.pop("ours")
    row = {
        "group": case.group, "name": case.name, "threads": threads, "size": ready.size,
        "rival": "not installed", "best": ours.best, "median": ours.median, "target": case.target,
        "goal": case.goal, "repeat": repeat, "scale": scale,
    }  # fmt: skip
    if taken:
        rival = min(taken, key=lambda name: taken[name].best)
        theirs = taken[rival]
        row |= {
            "rival": rival, "rival_best": theirs.best, "rival_median": theirs.median,
            "ratio": theirs.best / ours.best, "median_ratio": theirs.median / ours.median,
            "cpu_ratio": theirs.cpu / ours.cpu if ours.cpu else None,
        }  # fmt: skip
    if limits is not None and ready.work is not None:
        least, bound = ready.work.least_time(limits)
        row |= {"of_limit": least / ours.best, "bound": bound}
    return row


# --------------------------------------------------------------------------------------- reporting


def number(row: Row, name: str) -> float | None:
    return float(row[name]) if row[name] else None


def verdict(row: Row) -> str:
    """How the ratio stands to its target; "?" where others took a share of the machine.

    None from few rounds or other sizes: a thread that waits for a busy core once made a rival ten
    times slower, and only more rounds show that.
    """
    ratio, target, goal = (number(row, name) for name in ("ratio", "target", "goal"))
    ratio = ratio or number(row, "median_ratio")
    if ratio is None or target is None or int(row["repeat"]) < ENOUGH or row["scale"] != "1":
        return "-"
    doubt = "?" if (number(row, "load") or 0) > BUSY else ""
    return pages.met(ratio, target, goal) + doubt


HEADER = ("what", "size", "threads", "rival", "its ms (median)", "ours ms (median)", "ratio",
          "by CPU", "target", "goal", "verdict", "of the limit", "load")  # fmt: skip


def shown(row: Row) -> list[str]:
    """A line of the printed table."""
    sides = [
        f"{pages.milliseconds(number(row, best))} ({pages.milliseconds(number(row, middle))})"
        for best, middle in (("rival_best", "rival_median"), ("best", "median"))
    ]
    limit = number(row, "of_limit")
    load = number(row, "load")
    return [
        row["name"], row["size"], row["threads"], row["rival"], *sides,
        pages.times(number(row, "ratio") or number(row, "median_ratio")),
        pages.times(number(row, "cpu_ratio")),
        *(f"{row[name]}x" if row[name] else "-" for name in ("target", "goal")),
        verdict(row), "-" if limit is None else f"{limit:.0%} {row['bound']}",
        "-" if load is None else f"{load:.0%}",
    ]  # fmt: skip


def sections(rows: Iterable[Row]) -> Iterator[str]:
    """A table for each group, and the notes."""
    listed = list(rows)
    for group in GROUPS:
        own = [row for row in listed if row["group"] == group]
        yield from (f"### {group.capitalize()}", "", pages.origin(own), "")
        yield from pages.table(HEADER, map(shown, own))
        noted = dict.fromkeys(row["name"] for row in own)
        notes = [f"- {name}: {CASES[name].note}" for name in noted
                 if name in CASES and CASES[name].note]  # fmt: skip
        yield from ("", *notes, "") if notes else ("",)


# -------------------------------------------------------------------------------------- the command


def run(options: argparse.Namespace) -> None:
    """Measure, print and keep each cell as it comes."""
    warnings.simplefilter("ignore")  # of seeds, and of rivals that do not converge
    ordered = sorted(CASES.values(), key=lambda case: GROUPS.index(case.group))
    chosen = command.chosen(options, ordered, lambda case: case.label)
    if not chosen:
        return
    results = open_results(options.out)
    scale, repeat = (QUICK, 1) if options.quick else (1.0, options.repeat or 9)
    limits: dict[int, measure.Limits] = {}
    print(*HEADER, sep="  ")
    for case, count in command.in_time(options, itertools.product(chosen, options.threads)):
        found = measure.sample(count, 1 if options.quick else 3)
        limits[count] = limits[count].best(found) if count in limits else found
        row, load = measured(case, count, scale, repeat, limits[count])
        print(*shown(results.add(row, load)), sep="  ", flush=True)
        gc.collect()
    for count, best in limits.items():
        print(f"{count} thread(s): {best.flops / 1e9:.1f} GFLOP/s in float64, "
              f"{best.bandwidth / 1e9:.1f} GB/s read")  # fmt: skip
    if options.write:
        pages.refresh(pages.PAGES / "speed.md", "\n".join(sections(results)), "speed")
