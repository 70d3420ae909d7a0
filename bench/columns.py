"""Whole tables by the default of the library and by peers: accuracy, area, log loss, calibration.

Nothing is declared but kinds of columns, or ranges and categories, or cuts as well: noisy Adam and
diffprivlib run on cuts, so that ours meets them with the same cuts, too. A line of results is one
measure of a cell with the numbers of all its splits. Peers do not depend on privfit's code but for
the coding: `--keep` leaves them as they are.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from bench import command, pages, showcase
from bench.accuracy import ENOUGH, Found, measure_cells, open_results
from bench.accuracy.columns import (
    CUT,
    DATA,
    DECLARED,
    FEWER,
    HAS_CUTS,
    KINDS,
    MEASURES,
    REFERENCES,
    TUNED,
    not_private,
    ours,
)
from bench.accuracy.linear import DELTA
from bench.accuracy.tasks import Cell
from bench.peers.columns import PEERS
from bench.peers.contestants import PYTHON, Worker
from bench.results import Results

PLAIN = "not private"
OURS = {told: f"privfit, {told}" for told in (KINDS, DECLARED, CUT)}
EPSILONS = (0.1, 0.3162, 1.0, 3.162, 10.0)
CONTESTED = EPSILONS[:4]
RIVALS = {DECLARED: ("DP-EBM", "diffprivlib", f"noisy Adam, {DECLARED}"),
          CUT: ("diffprivlib", f"noisy Adam, {DECLARED}"),
          KINDS: (f"noisy Adam, {KINDS}",)}  # fmt: skip
FEW_SEEDS = {"flights": 3}
SIGN = {"accuracy": 1, "area": 1, "log loss": -1}  # whether more is better
SLOPES = (0.9, 1.1)  # of honest probabilities, from epsilon 0.3 on
NEAR = 0.01  # of the log loss without privacy, at epsilon 10

# What is asked of `kinds alone`, and what is hoped for: accuracy, area, log loss.
Asked = tuple[float | None, ...]
TARGETS: dict[tuple[str, float], tuple[Asked, Asked]] = {
    ("adult", 0.1): ((0.847, 0.897, 0.335), (0.852, 0.905, 0.320)),
    ("adult", 1.0): ((0.860, 0.914, 0.305), (0.865, 0.919, 0.295)),
    ("credit_default", 0.1): ((0.811, 0.742, 0.455), (0.817, 0.752, 0.447)),
    ("credit_default", 1.0): ((0.820, 0.769, 0.438), (0.823, 0.778, 0.431)),
    ("bank_full", 0.1): ((0.898, 0.886, 0.250), (0.901, 0.897, 0.240)),
    ("bank_full", 1.0): ((0.904, 0.911, 0.226), (0.906, 0.916, 0.220)),
    ("spambase", 0.1): ((0.84, 0.915, 0.39), (0.90, 0.958, 0.29)),
    ("spambase", 1.0): ((0.935, 0.978, 0.187), (0.945, 0.984, 0.16)),
    ("flights", 0.1): ((None, 0.668, None), (None, 0.680, None)),
    ("flights", 1.0): ((None, 0.680, None), (None, 0.690, None)),
    ("health_panel", 0.1): ((0.622, 0.619, 0.649), (0.627, 0.628, 0.645)),
    ("health_panel", 1.0): ((0.630, 0.636, 0.640), (0.632, 0.641, 0.637)),
}


# -------------------------------------------------------------------------------------------- cells


def cell_of(data: str, solver: str, epsilon: float = math.inf) -> Cell:
    """A cell by its first measure, whose name stands for all."""
    peer = PEERS.get(solver)
    delta = DELTA if peer is None or peer.delta is None else peer.delta
    return Cell(MEASURES[0], data, solver, epsilon, delta, "add_remove")


def all_cells() -> Iterator[Cell]:
    """Ours and the reference, then the peers."""
    for data in DATA:
        yield from (cell_of(data, name) for name in REFERENCES)
        yield from (cell_of(data, name, e) for name in ours_of(data) for e in EPSILONS)
    small = tuple(f"{data}, {FEWER} rows" for data in DATA)
    for data in small:
        yield from (cell_of(data, name, 1.0) for name in ours_of(data))
    for data, epsilons in ((DATA, CONTESTED), (small, (1.0,))):
        yield from (cell_of(one, name, e) for one in data for e in epsilons for name in PEERS)


def ours_of(data: str) -> list[str]:
    """Ours by what it is told; cuts only where some are declared."""
    has_cuts = data.partition(",")[0] in HAS_CUTS
    return [name for told, name in OURS.items() if told != CUT or has_cuts]


def needs_worker(cell: Cell) -> bool:
    return cell.solver.startswith(("DP-EBM", "diffprivlib"))


def seeds_of(cell: Cell, seeds: int) -> int:
    return min(seeds, FEW_SEEDS.get(cell.data, seeds))


# ------------------------------------------------------------------------------------------ reading


def error_of(values: list[float]) -> float:
    """The standard error of a mean."""
    few = len(values) < 2
    return math.nan if few else float(np.std(values, ddof=1)) / math.sqrt(len(values))


def shown(found: Found, cell: Cell, measure: str) -> str:
    """A mean and its standard error."""
    one = replace(cell, task=measure)
    values = list(found.values(one).values())
    return f"{found.mean(one):.4f} ± {error_of(values):.4f}" if values else "-"


def verdict(found: Found, cell: Cell) -> str:
    """What each measure reaches that is asked for: the goal, the target or neither."""
    asked = TARGETS.get((cell.data, cell.epsilon))
    values = found.values(cell)
    enough = min(ENOUGH, FEW_SEEDS.get(cell.data, ENOUGH))
    if asked is None or not cell.solver.endswith(KINDS) or len(values) < enough:
        return ""
    told = []
    for measure, target, goal in zip(SIGN, *asked, strict=True):
        mean = round(found.mean(replace(cell, task=measure)), 3)
        if target is not None:
            met = pages.met(mean, target, goal, SIGN[measure])
            told.append(f"**{measure} short**" if met == "short" else met)
    return ", ".join(told)


def best_of(
    found: Found, data: str, peer: str, measure: str, epsilon: float = math.inf
) -> Cell | None:
    """The settings of a peer, or reference, with the best mean of this measure."""
    names = (*PEERS, *REFERENCES, *OURS.values())
    cells = [replace(cell_of(data, name, epsilon), task=measure) for name in names
             if f"{name},".startswith(f"{peer},")]  # fmt: skip
    here = [cell for cell in cells if found.values(cell)]
    return max(here, key=lambda cell: SIGN[measure] * found.mean(cell), default=None)


# ----------------------------------------------------------------------------------------- sections


def table_lines(found: Found) -> Iterator[str]:
    """Ours beside what is asked, and the additive model without privacy."""
    header = ("epsilon", "known", *MEASURES, "target", "goal", "verdict")
    for data in DATA:
        cells = [cell_of(data, name, e) for e in EPSILONS for name in OURS.values()]
        plain = best_of(found, data, PLAIN, "log loss")
        rows = []
        for cell in [*cells, *([replace(plain, task=MEASURES[0])] if plain else [])]:
            if found.values(cell):
                asked = TARGETS.get((data, cell.epsilon)) if cell.solver == OURS[KINDS] else None
                bars = [" ".join("-" if x is None else f"{x:g}" for x in b) for b in asked or ()]
                known = cell.solver.removeprefix("privfit, ")
                rows.append([f"{cell.epsilon:g}", known, *(shown(found, cell, m) for m in MEASURES),
                             *(bars or ("", "")), verdict(found, cell)])  # fmt: skip
        if rows:
            told = "rules were chosen on it" if data in TUNED else "rules were not chosen on it"
            splits = max(len(found.values(cell)) for cell in cells)
            yield from (f"**{data}**, {splits} splits; {told}", "", *pages.table(header, rows), "")


def promise_lines(found: Found) -> Iterator[str]:
    """Slopes, log loss by epsilon, and its distance from the model without privacy."""
    rows = []
    for data in DATA:
        for told, name in OURS.items():
            cells = {e: cell_of(data, name, e) for e in EPSILONS}
            losses = [found.mean(replace(cell, task="log loss")) for cell in cells.values()]
            slopes = [found.mean(replace(cells[e], task="slope")) for e in EPSILONS[1:]]
            best = best_of(found, data, PLAIN, "log loss")
            if best is not None and not math.isnan(sum(losses)):
                plain = found.mean(best)
                kept = [SLOPES[0] <= slope <= SLOPES[1] for slope in slopes]
                falls = all(b <= a for a, b in pairwise(losses))
                rows.append([data, told, f"{min(slopes):.2f} to {max(slopes):.2f}",
                             yes(all(kept)), yes(falls), f"{losses[-1] - plain:.4f}",
                             yes(losses[-1] - plain <= NEAR)])  # fmt: skip
    header = ("data", "known", "slopes from epsilon 0.3 on", "0.9 to 1.1", "log loss falls",
              "above no privacy at 10", "within 0.01")  # fmt: skip
    yield from ("### Honest probabilities", "", *pages.table(header, rows), "")


def yes(kept: bool) -> str:
    return "yes" if kept else "**no**"


def contest_lines(found: Found, title: str, held: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Every cell in which ours meets a peer: its best settings, and the paired difference."""
    rows, counts = [], dict.fromkeys(("ahead", "even", "behind"), 0)
    pairs = [(d, e) for d in DATA for e in CONTESTED] + [(f"{d}, {FEWER} rows", 1.0) for d in DATA]
    for data, epsilon in pairs:
        for told, rivals in held.items():
            for peer in rivals:
                row, marks = contested(found, cell_of(data, OURS[told], epsilon), peer)
                for mark in marks:
                    counts[mark] += 1
                if marks:
                    rows.append([data, f"{epsilon:g}", told, peer.partition(",")[0], *row])
    header = ("data", "epsilon", "known", "peer", *(f"{m}: ours, peer, difference" for m in SIGN))
    total = sum(counts.values())
    told = (f"Of {total} comparisons ours is ahead in {counts['ahead']}, behind by at most two "
            f"standard errors in {counts['even']}, and by more in {counts['behind']}.")  # fmt: skip
    yield from (f"### {title}", "", told, "", *pages.table(header, rows), "")


def contested(found: Found, mine: Cell, peer: str) -> tuple[list[str], list[str]]:
    """What is shown of each measure, and who is ahead."""
    row, marks = [], []
    for measure, sign in SIGN.items():
        own = replace(mine, task=measure)
        best = best_of(found, mine.data, peer, measure, mine.epsilon)
        gaps = [sign * gap for gap in found.paired(own, best)] if best else []
        if len(gaps) < 2:
            row.append("-")
            continue
        gap, error = math.fsum(gaps) / len(gaps), error_of(gaps)
        marks.append("ahead" if gap > 0 else "even" if gap >= -2 * error else "behind")
        text = f"{found.mean(own):.4f} {found.mean(best):.4f} {gap:+.4f} ± {error:.4f}"
        row.append(f"**{text}**" if marks[-1] == "behind" else text)
    return row, marks


def sections(results: Results) -> Iterator[str]:
    found = Found(results)
    yield from (pages.origin(results), "", *table_lines(found), *promise_lines(found))
    yield from contest_lines(found, "Declared against kinds alone", {DECLARED: (OURS[KINDS],)})
    yield from contest_lines(found, "Against peers", RIVALS)


# -------------------------------------------------------------------------------------- the command


def run(options: argparse.Namespace) -> None:
    """Measure the chosen cells that are missing, and show them."""
    chosen = command.chosen(options, all_cells(), lambda cell: cell.label)
    if not chosen:
        return
    asked = options.minutes > 0 and any(map(needs_worker, chosen))
    worker = Worker(PYTHON) if asked and PYTHON.exists() else None
    here = [cell for cell in chosen if worker is not None or not needs_worker(cell)]
    if asked and worker is None:
        print("peers: not installed; python -m bench peers --setup", file=sys.stderr)

    def fit(cell: Cell, seed: int) -> tuple[dict[str, float], float]:
        if cell.solver in PEERS:
            return PEERS[cell.solver](worker, cell, seed)
        return (not_private if cell.solver in REFERENCES else ours)(cell, seed)

    options.jobs = 1  # the worker has one process
    results = open_results(options.out, "columns")
    seeds = options.seeds or (1 if options.quick else ENOUGH)
    for count in sorted({seeds_of(cell, seeds) for cell in here}):
        some = [cell for cell in here if seeds_of(cell, seeds) == count]
        measure_cells(results, some[:2] if options.quick else some, count, options, fit)
    if worker is not None:
        worker.close()
    lines = list(sections(results)) if results.rows else []
    print(*lines, sep="\n")
    if options.write:
        pages.refresh(pages.PAGES / "columns.md", "\n".join(lines), "columns")
        showcase.refresh(results)
