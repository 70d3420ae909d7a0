"""The promise of `solver="auto"`: never behind a solver or pipeline of ours by two standard errors.

Every cell is a table (or its first rows), a budget, a neighbour relation and what is declared. Four
splits choose the rival of each measure, the one with the best mean. Where it is ahead by more than
one standard error, both are fitted to ten splits more, with other noise, and these alone are held
against the promise: the best of twenty rivals on four splits is ahead by chance.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench import command, pages
from bench.accuracy import ENOUGH, Found, measure_cells, open_results
from bench.accuracy.columns import DATA, DECLARED, KINDS, TUNED
from bench.accuracy.linear import DELTA
from bench.accuracy.rules import AUTO, fit, rivals
from bench.accuracy.tasks import Cell
from bench.columns import SIGN, error_of
from bench.results import Results

EPSILONS = (0.02, 0.1, 0.5, 2.0, 10.0)
COARSE = (0.02, 0.1, 0.5, 2.0)
SIZES = {"adult": (500, 2000, 8000), "credit_default": (500, 2000, 8000), "mushroom": (500, 2000),
         "bank_full": (500, 2000, 8000), "spambase": (500, 2000), "flights": (500, 2000, 8000),
         "health_panel": (500, 2000, 8000)}  # fmt: skip
SCREENED, WHOLE = 4, 14  # splits that choose rivals, and all of them
BAR = 2.0  # standard errors


@dataclass(frozen=True)
class Contest:
    """One measure of one cell: the default, and whom it meets."""

    measure: str
    mine: Cell
    others: tuple[Cell, ...]

    def best(self, found: Found) -> Cell | None:
        """The rival with the best mean of the splits that choose."""
        here = [cell for cell in self.others if first(found, cell)]
        return max(here, key=lambda cell: SIGN[self.measure] * mean(first(found, cell)),
                   default=None)  # fmt: skip

    def gaps(self, found: Found, rival: Cell, fresh: bool) -> list[float]:
        """By how much the default is ahead, by split: of those that choose, or of the others."""
        mine, its = (found.values(cell) for cell in (self.mine, rival))
        return [SIGN[self.measure] * (mine[seed] - its[seed]) for seed in sorted(mine)
                if seed in its and (seed >= SCREENED) == fresh]  # fmt: skip

    def contested(self, found: Found) -> Cell | None:
        """The rival, if it seems ahead by more than one standard error."""
        rival = self.best(found)
        gaps = self.gaps(found, rival, fresh=False) if rival else []
        return rival if len(gaps) > 1 and mean(gaps) < -error_of(gaps) else None


def first(found: Found, cell: Cell) -> list[float]:
    return [value for seed, value in found.values(cell).items() if seed < SCREENED]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


# -------------------------------------------------------------------------------------------- cells


def groups() -> Iterator[tuple[Cell, list[Cell]]]:
    """The default and its rivals, the tables that rules were chosen on first."""
    for data in DATA:
        sizes = [f"{data}, {size} rows" for size in SIZES[data]]
        for delta in (DELTA, 0.0):
            for name in (*sizes, data):
                for epsilon in EPSILONS:
                    yield _group(name, epsilon, delta, "add_remove", DECLARED, every=True)
            for name in (sizes[0], sizes[1], data):
                for epsilon in COARSE:
                    yield _group(name, epsilon, delta, "replace", DECLARED, every=False)
                    yield _group(name, epsilon, delta, "add_remove", KINDS, every=False)


def _group(
    data: str, epsilon: float, delta: float, adjacency: str, known: str, every: bool
) -> tuple[Cell, list[Cell]]:
    cells = [Cell("accuracy", data, f"{name} / {known}", epsilon, delta, adjacency)
             for name in (AUTO, *rivals(known, delta, every))]  # fmt: skip
    return cells[0], cells[1:]


def all_cells() -> Iterator[Cell]:
    for mine, others in groups():
        yield from (mine, *others)


def with_pure(mine: Cell, others: list[Cell]) -> list[Cell]:
    """The rivals, and the default without a delta where one is allowed."""
    return [*others, replace(mine, delta=0.0)] if mine.delta else others


def contests() -> Iterator[Contest]:
    for mine, others in groups():
        for measure in SIGN:
            met = (replace(cell, task=measure) for cell in with_pure(mine, others))
            yield Contest(measure, replace(mine, task=measure), tuple(met))


# ----------------------------------------------------------------------------------------- sections


def sections(results: Results) -> Iterator[str]:
    """How many comparisons are lost, on which tables, and each that is."""
    found, counts, lost = Found(results), dict[tuple[bool, float], list[int]](), list[list[str]]()
    for contest in contests():
        if not first(found, contest.mine):
            continue
        name = contest.mine.data.partition(",")[0]
        count = counts.setdefault((name in TUNED, contest.mine.delta), [0, 0, 0])
        count[0] += 1
        rival = contest.contested(found)
        gaps = contest.gaps(found, rival, fresh=True) if rival else []
        count[1] += len(gaps) > 1
        if len(gaps) > 1 and mean(gaps) < -BAR * error_of(gaps):
            count[2] += 1
            lost.append(_line(found, contest, rival, gaps))
    yield from (pages.origin(results), "")
    header = ("tables", "delta", "comparisons", "rival seems ahead", "behind on fresh splits")
    yield from pages.table(header, (
        ["tuned on" if tuned else "held out", f"{delta:g}", *map(str, count)]
        for (tuned, delta), count in counts.items()))  # fmt: skip
    header = ("data", "epsilon", "delta", "relation", "declared", "measure", "rival", "auto",
              "rival's", "difference")  # fmt: skip
    yield from ("", *pages.table(header, lost))


def _line(found: Found, contest: Contest, rival: Cell | None, gaps: list[float]) -> list[str]:
    assert rival is not None
    mine = contest.mine
    values = [mean([value for seed, value in found.values(cell).items() if seed >= SCREENED])
              for cell in (mine, rival)]  # fmt: skip
    name, _, known = rival.solver.rpartition(" / ")
    return [mine.data, f"{mine.epsilon:g}", f"{mine.delta:g}", mine.adjacency, known,
            contest.measure, name, *(f"{value:.4f}" for value in values),
            f"{SIGN[contest.measure] * mean(gaps):+.4f} ± {error_of(gaps):.4f}"]  # fmt: skip


def keep_best(results: Results) -> None:
    """Leave out the lines of rivals that are not the best: a file of megabytes otherwise."""
    found, kept = Found(results), set[tuple[str, ...]]()
    for contest in contests():
        rival = contest.best(found)
        kept.update(cell.key for cell in (contest.mine, rival) if cell is not None)
    results.rows = {key: row for key, row in results.rows.items() if key in kept}
    results.write()


# -------------------------------------------------------------------------------------- the command


def run(options: argparse.Namespace) -> None:
    """Measure the chosen cells that are missing, then those that are contested, and show them."""
    chosen = command.chosen(options, all_cells(), lambda cell: cell.label)
    if not chosen:
        return
    results = open_results(options.out, "rules")
    few = 1 if options.quick else min(SCREENED, options.seeds or ENOUGH)
    measure_cells(results, chosen[:2] if options.quick else chosen, few, options, fit)
    if command.is_time_left(options) and not options.quick:
        again, found = set(chosen), Found(results)
        met = {contest.mine: contest.contested(found) for contest in contests()}
        pairs = [(replace(mine, task="accuracy"), replace(rival, task="accuracy"))
                 for mine, rival in met.items() if rival is not None]  # fmt: skip
        cells = [cell for pair in pairs if pair[0] in again for cell in pair]
        measure_cells(results, cells, WHOLE, options, fit)
    lines = list(sections(results)) if results.rows else []
    print(*lines, sep="\n")
    if options.write:
        keep_best(results)
        pages.refresh(pages.PAGES / "rules.md", "\n".join(lines), "rules")
