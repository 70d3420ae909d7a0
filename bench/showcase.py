"""The README's table and picture, from bench/results/columns.csv: ours beside peers.

Of each peer's settings, and of the references without privacy, the best on the test parts is shown,
for each measure by itself. All numbers of a line are means over the splits that all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import pages
from bench.accuracy import Found
from bench.accuracy.columns import DECLARED, KINDS
from bench.measure import ROOT
from bench.results import Results

README = ROOT / "README.md"
FIGURE = ROOT / "docs" / "figures" / "columns.svg"
NAME = "peers"  # of the markers
DATA = ("adult", "bank_full", "credit_default", "spambase")  # which all peers were measured on
DRAWN = ("adult", "spambase")
EPSILONS = (0.1, 1.0)
MEASURES = ("accuracy", "log loss")
PLAIN = "not private"
# What a column of the table is called, and how the names of its cells begin.
COLUMNS = {
    "privfit, kinds alone": f"privfit, {KINDS}", "privfit, ranges declared": f"privfit, {DECLARED}",
    "DP-EBM": "DP-EBM", "noisy Adam": f"noisy Adam, {DECLARED}", "diffprivlib": "diffprivlib",
    PLAIN: PLAIN,
}  # fmt: skip

OURS = [name for name in COLUMNS if name.startswith("privfit")]


def shared(found: Found, data: str, epsilon: float, measure: str) -> dict[str, list[float]]:
    """The numbers of each column, on the splits that all columns with numbers have."""
    from bench.columns import best_of  # which shows this table itself

    cells = {name: best_of(found, data, start, measure, math.inf if name == PLAIN else epsilon)
             for name, start in COLUMNS.items()}  # fmt: skip
    values = {name: found.values(cell) for name, cell in cells.items() if cell is not None}
    seeds = set.intersection(*map(set, values.values())) if values else set()
    return {name: [one[seed] for seed in sorted(seeds)] for name, one in values.items() if seeds}


def means(found: Found, data: str, epsilon: float, measure: str) -> dict[str, float]:
    """The mean of each column that has numbers."""
    return {name: math.fsum(values) / len(values)
            for name, values in shared(found, data, epsilon, measure).items()}  # fmt: skip


def lines(results: Results) -> Iterator[str]:
    """The table: a line for each table of records and epsilon, the best private number in bold."""
    found, rows, splits = Found(results), [], set()
    for data in DATA:
        for epsilon in EPSILONS:
            both = [means(found, data, epsilon, measure) for measure in MEASURES]
            if all(name in one for one in both for name in OURS):
                known = (shared(found, data, epsilon, measure) for measure in MEASURES)
                splits |= {len(values) for one in known for values in one.values()}
                rows.append([f"{data}, {epsilon:g}", *(_cell(both, name) for name in COLUMNS)])
    yield from pages.table(["data, epsilon", *COLUMNS], rows)
    counts = " or ".join(map(str, sorted(splits)))
    yield from ("", f"Means over the {counts} splits that all columns have; bold: the best private "
                    "number.")  # fmt: skip


def _cell(both: list[dict[str, float]], name: str) -> str:
    """Accuracy and log loss; a dash if the peer was not measured."""
    if not all(name in one for one in both):
        return "-"
    shown = []
    for sign, one in zip((1, -1), both, strict=True):
        best = max(round(sign * mean, 3) for other, mean in one.items() if other != PLAIN)
        is_best = name != PLAIN and round(sign * one[name], 3) == best
        shown.append(f"**{one[name]:.3f}**" if is_best else f"{one[name]:.3f}")
    return ", ".join(shown)


def refresh(results: Results, readme: Path = README, figure: Path = FIGURE) -> None:
    """Write the table into the README, and draw the picture."""
    pages.refresh(readme, "\n".join(lines(results)), NAME)
    from privfit.report.plotting import save_figure

    save_figure(picture(results), figure)


def picture(results: Results) -> Any:
    """Accuracy and log loss against epsilon on two tables: axes of a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bench.columns import CONTESTED
    from privfit.report.axes import finish, style

    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(1, len(DRAWN))
    for axis, data in zip(grid, DRAWN, strict=True):
        known = {e: means(Found(results), data, e, MEASURES[0]) for e in CONTESTED}
        known = {e: one for e, one in known.items() if len(one) == len(COLUMNS)}
        for i, name in enumerate(COLUMNS):
            if name == PLAIN:
                level = [math.fsum(one[PLAIN] for one in known.values()) / max(len(known), 1)]
                axis.axhline(*level, color="0.45", linestyle=":", linewidth=1.2, label=PLAIN)
                continue
            axis.plot([*known], [one[name] for one in known.values()], label=name, **style(i))
        axis.set_xscale("log")
        axis.set_xticks(CONTESTED, [f"{e:.1g}" for e in CONTESTED])
        axis.xaxis.minorticks_off()
        axis.set(title=data, xlabel="epsilon", ylabel="test accuracy")
        finish(axis, legend=False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return grid[0]
