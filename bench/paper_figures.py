"""Figures like those of the papers, and whether their findings hold, from the store's results.

python bench/paper_figures.py --status      # what of their cells is measured
python bench/paper_figures.py --run         # measure what is missing, 10 seeds; stop at will
python bench/paper_figures.py --write       # draw docs/figures/*.png, refresh docs/papers.md

A figure has panels, a panel has curves over epsilon (or another axis), a curve has a cell for each
point. A claim compares two curves seed by seed and says where it holds. The papers' own axes and
comparisons are followed as far as the project knows them; their numbers are not copied.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # after site-packages: an installed privfit comes first

import privfit  # noqa: E402
from bench import simulation_2008  # noqa: E402
from bench.accuracy import Found, opened, status, verdict  # noqa: E402
from bench.cells import TASKS, Cell  # noqa: E402
from bench.kernels import refresh  # noqa: E402
from bench.store import run  # noqa: E402
from bench.trials import CONSTANT, COUNTS, DELTA, PLAIN, interval  # noqa: E402

DOCS = HERE.parent / "docs"
EPSILONS = (0.1, 0.3162, 1.0, 3.162)
SMALL = (0.05, 0.1, 0.3162, 1.0)

Curve = dict[float, Cell]  # a cell for each point of the axis


def curve(
    task: str, data: str, solver: str, delta: float, adjacency: str, at: Any = EPSILONS
) -> Curve:
    return {e: Cell(task, data, solver, e, delta, adjacency) for e in at}


@dataclass(frozen=True)
class Panel:
    """Curves by label; references are drawn as level lines."""

    title: str
    curves: dict[str, Curve]
    references: dict[str, Cell] = field(default_factory=dict)
    axis: str = "epsilon"

    def cells(self) -> Iterator[Cell]:
        yield from (cell for points in self.curves.values() for cell in points.values())
        yield from self.references.values()

    @property
    def measure(self) -> str:
        """What is drawn: for accuracies the error, as the papers do."""
        kind = TASKS[next(self.cells()).task]
        return "test error" if kind.higher else kind.measure


@dataclass(frozen=True)
class Claim:
    """One curve of a panel is better than another."""

    text: str
    panel: Panel
    better: str
    worse: str

    def told(self, found: Found) -> str:
        """Where it holds, by the 95 % interval of the difference over seeds."""
        first, second = self.panel.curves[self.better], self.panel.curves[self.worse]
        sign = 1 if TASKS[next(iter(first.values())).task].higher else -1
        where: dict[str, list[str]] = {}
        seeds = []
        for point in first:
            gaps = [sign * gap for gap in found.paired(first[point], second[point])]
            where.setdefault(verdict(gaps), []).append(f"{point:g}")
            seeds.append(len(gaps))
        if set(where) == {"-"}:
            return f"- Not measured yet: {self.text}."
        whole = set(where) == {"holds"}
        opening = (
            "Reproduced" if whole else "Reproduced in part" if "holds" in where else "Not seen"
        )
        names = {"holds": "holds", "undecided": "undecided", "reversed": "reversed",
                 "-": "not measured"}  # fmt: skip
        parts = [f"{names[each]} at {', '.join(where[each])}" for each in names if each in where]
        least, most = min(seeds), max(seeds)
        count = f"{most}" if least == most else f"{least} to {most}"
        return f"- {opening}: {self.text} ({self.panel.axis}: {'; '.join(parts)}; {count} seeds)."


@dataclass(frozen=True)
class Figure:
    """Panels in one picture, and the claims under it."""

    name: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    across: int = 3


# ----------------------------------------------------------------------------------------- figures


def linear(data: str, names: dict[str, str], delta: float, task: str = "linear") -> Panel:
    budget = "pure" if delta == 0 else f"delta {delta:g}"
    what = "logistic regression" if task == "linear" else "support vector machine"
    return Panel(
        f"{what}, {data}, {budget}",
        {label: curve(task, data, solver, delta, "replace") for label, solver in names.items()},
        {PLAIN: Cell(task, data, PLAIN), CONSTANT: Cell(task, data, CONSTANT)},
    )


def privgene() -> Figure:
    """PrivGene, Figures 3 to 7: against its competitors by task, and EM against EEM."""
    papers = {"PrivGene": "PrivGene, paper", "with EEM": "EEM, paper"}
    others = {"objective": "Objective", "output": "Output", "functional": "Functional, paper",
              "GUPT": "Gupt, paper", "majority": "Majority"}  # fmt: skip
    first = linear("adult", papers | others, 0.0)
    vectors = {"PrivateSVM, published": "PrivateSVM, paper", "PrivateSVM, repaired": "PrivateSVM"}
    second = linear("adult", papers | vectors, 0.0, "svm")
    kmeans = [
        Panel(
            f"k-means, {data}, pure",
            {label: curve("kmeans", data, solver, 0.0, "add_remove", SMALL)
             for label, solver in {"PrivGene": "privgene, paper", "with EEM": "eem, paper",
                                   "noisy Lloyd": "lloyd, paper", "GUPT": "gupt"}.items()},
            {PLAIN: Cell("kmeans", data, PLAIN)},
        )
        for data in ("s1", "gowalla_pois")
    ]  # fmt: skip
    one = {"EM, one survivor": "PrivGene, paper, one survivor", "EEM": "EEM, paper"}
    duels = [linear(data, one, 0.0) for data in ("adult", "mushroom")]
    return Figure(
        "privgene",
        (first, second, *kmeans, *duels),
        (
            Claim("PrivGene has a lower error than objective perturbation (logistic)", first,
                  "PrivGene", "objective"),
            Claim("PrivGene has a lower error than the functional mechanism (logistic)", first,
                  "PrivGene", "functional"),
            Claim("PrivGene has a lower error than GUPT (logistic)", first, "PrivGene", "GUPT"),
            Claim("PrivGene has a lower error than PrivateSVM as published", second, "PrivGene",
                  "PrivateSVM, published"),
            Claim("PrivGene has a lower cost than noisy Lloyd (k-means, s1)", kmeans[0],
                  "PrivGene", "noisy Lloyd"),
            Claim("PrivGene has a lower cost than GUPT (k-means, s1)", kmeans[0], "PrivGene",
                  "GUPT"),
            Claim("EEM has a lower error than EM with one survivor (adult)", duels[0], "EEM",
                  "EM, one survivor"),
            Claim("EEM has a lower error than EM with one survivor (mushroom)", duels[1], "EEM",
                  "EM, one survivor"),
        ),
    )  # fmt: skip


def thesis() -> Figure:
    """The DP simple GA: generations, logistic regression and k-median against competitors."""
    names = {"DP simple GA": "DPSGA, paper", "PrivGene": "PrivGene, paper",
             "sub-sampled EM": "Subsample, paper", "objective": "Objective"}  # fmt: skip
    logistic = [linear(data, names, DELTA) for data in ("adult", "mushroom")]
    counts = Panel(
        "generations of the GA, adult",
        {f"epsilon {e:g}": {r: Cell("generations", "adult", f"DPSGA {r}", e)
                            for r in COUNTS["DPSGA"]} for e in (0.1, 1.0)},
        {PLAIN: Cell("generations", "adult", PLAIN)}, axis="generations",
    )  # fmt: skip
    medians = [
        Panel(
            f"k-median, {data}",
            {label: curve("kmedian", data, solver, DELTA, "replace", EPSILONS[:3])
             for label, solver in {"DP simple GA": "dpsga, paper", "PrivGene": "privgene",
                                   "sub-sampled EM": "subsample", "swaps": "local, paper",
                                   "coreset": "coreset", "greedy": "greedy"}.items()},
            {PLAIN: Cell("kmedian", data, PLAIN), "random": Cell("kmedian", data, "random")},
        )
        for data in ("mushroom, k = 4", "spambase, k = 4")
    ]  # fmt: skip
    claims = [
        Claim(f"the GA has a lower error than {rival} ({data})", panel, "DP simple GA", rival)
        for data, panel in zip(("adult", "mushroom"), logistic, strict=True)
        for rival in ("PrivGene", "sub-sampled EM")
    ]
    claims += [
        Claim(f"the GA has a lower cost than {rival} (k-median, {data})", panel, "DP simple GA",
              rival)
        for data, panel in zip(("mushroom", "spambase"), medians, strict=True)
        for rival in ("PrivGene", "sub-sampled EM", "swaps", "coreset")
    ]  # fmt: skip
    return Figure("thesis", (counts, *logistic, *medians), tuple(claims))


def stoddard() -> Figure:
    """Feature selection before naive Bayes, and private ROC curves, on messages."""
    points = (*SMALL[1:], 3.162)

    def features(names: dict[str, str], title: str) -> Panel:
        return Panel(
            title,
            {label: curve("features", "sms_spam", solver, 0.0, "add_remove", points)
             for label, solver in names.items()},
            {PLAIN: Cell("features", "sms_spam", PLAIN),
             CONSTANT: Cell("features", "sms_spam", CONSTANT)},
        )  # fmt: skip

    chosen = features(
        {"selection": "auto", "no selection": "no selection"}, "naive Bayes, sms_spam"
    )
    scores = features({"purity index": "auto", "total count": "total count",
                       "difference count": "difference count", "information gain":
                       "information gain"}, "by score")  # fmt: skip
    ways = features({"peeling": "auto", "clusters of counts": "clusters of counts",
                     "noise on all scores": "noise on all scores"}, "by method")  # fmt: skip
    curves = [
        Panel(
            f"ROC curve, {model}",
            {label: curve("roc", f"sms_spam, {model}", way, 0.0, "add_remove", SMALL[1:])
             for label, way in {"ours": "default", "ours, not smoothed": "no smoothing",
                                "noisy medians, wavelet": "medians, wavelet"}.items()},
            {"a perfect classifier's": Cell("roc", f"sms_spam, {model}", CONSTANT)},
        )
        for model in ("BernoulliNB", "LogisticRegression, 60 messages")
    ]  # fmt: skip
    return Figure(
        "stoddard",
        (chosen, scores, ways, *curves),
        (
            Claim("selecting features first has a lower error", chosen, "selection",
                  "no selection"),
            Claim("clusters of (now noisy) counts beat no selection",
                  Panel("", chosen.curves | ways.curves), "clusters of counts", "no selection"),
            Claim("our thresholds are nearer to the true ROC curve than noisy medians with "
                  "wavelets", curves[0], "ours", "noisy medians, wavelet"),
        ),
    )  # fmt: skip


def perturbation() -> Figure:
    """The simulations of 2008: test error by epsilon, and by the number of points."""
    kinds = tuple(simulation_2008.PUBLISHED)
    panels = [
        Panel(
            f"{kind}, 17,500 points",
            {solver: curve("simulation", kind, solver, 0.0, "replace", simulation_2008.EPSILONS)
             for solver in simulation_2008.SOLVERS},
            {PLAIN: Cell("simulation", kind, PLAIN)},
        )
        for kind in kinds
    ]  # fmt: skip
    sizes = {2_500: ", n = 2500", 5_000: ", n = 5000", 10_000: ", n = 10000", 17_500: ""}
    learning = Panel(
        "unseparable, epsilon 0.1",
        {solver: {n: Cell("simulation", f"unseparable{size}", solver, 0.1, 0.0)
                  for n, size in sizes.items()} for solver in simulation_2008.SOLVERS},
        axis="points",
    )  # fmt: skip
    every = [*zip(kinds, panels, strict=True), ("unseparable, by points", learning)]
    claims = [
        Claim(f"objective perturbation errs less than output perturbation ({kind})", panel,
              "objective", "output")
        for kind, panel in every
    ]  # fmt: skip
    return Figure("perturbation_2008", (*panels, learning), tuple(claims))


FIGURES = (privgene, thesis, stoddard, perturbation)


# ----------------------------------------------------------------------------------------- drawing


def drawn(found: Found, cell: Cell) -> tuple[float, float]:
    """Mean and half interval of what is drawn: errors where accuracies were measured."""
    values = found.values(cell)
    if not values:
        return math.nan, math.nan
    mean, half = interval(values)
    return (1 - mean if TASKS[cell.task].higher else mean), (0.0 if math.isnan(half) else half)


def draw_panel(axis: Any, panel: Panel, found: Found) -> None:
    levels = []
    for label, points in panel.curves.items():
        numbers = np.array([[x, *drawn(found, cell)] for x, cell in points.items()])
        there = np.isfinite(numbers[:, 1])
        if there.any():
            x, mean, half = numbers[there].T
            axis.errorbar(x, mean, half, marker="o", markersize=3, capsize=2, lw=1.2, label=label)
            levels += list(mean)
    for style, (label, cell) in zip(("--", ":"), panel.references.items(), strict=False):
        level, _ = drawn(found, cell)
        if math.isfinite(level):
            axis.axhline(level, ls=style, color="0.4", lw=1, label=label)
            levels.append(level)
    if levels:  # long bars of few seeds are cut, so that the means stay apart
        margin = 0.15 * (max(levels) - min(levels)) or 0.01
        axis.set_ylim(min(levels) - margin, max(levels) + margin)
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.axis, fontsize=8)
    axis.set_ylabel(panel.measure, fontsize=8)
    axis.set_xscale("log")
    points = sorted({x for points in panel.curves.values() for x in points})
    axis.set_xticks(points, [f"{x:g}" for x in points])
    axis.minorticks_off()
    axis.tick_params(labelsize=7)
    if axis.has_data():
        name_curves(axis)


def name_curves(axis: Any) -> None:
    """A legend below the panel, where it hides no curve."""
    axis.legend(
        fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False,
        columnspacing=1.0, handlelength=1.6,
    )  # fmt: skip


def draw_accounting(axis: Any) -> None:
    """The parameter of each of n selections at epsilon 1, delta 1e-5: by how it is accounted."""
    counts = (1, 3, 10, 31, 101, 316, 1001)
    for method in ("naive", "advanced", "kov", "rdp", "bounded_range", "zcdp", "tight"):
        each = [privfit.calibrate(n, 1.0, 1e-5, method) for n in counts]
        axis.plot(counts, each, marker="o", markersize=3, lw=1.2, label=method)
    axis.set_title("parameter of a selection, epsilon 1, delta 1e-5", fontsize=9)
    axis.set_xlabel("selections", fontsize=8)
    axis.set_ylabel("epsilon of one", fontsize=8)
    axis.loglog()
    axis.tick_params(labelsize=7)
    name_curves(axis)


def draw(figure: Figure, found: Found, path: Path) -> None:
    """A picture of all panels; the thesis' begins with the accounting, which needs no fit."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    extra = [draw_accounting] if figure.name == "thesis" else []
    count = len(figure.panels) + len(extra)
    rows = -(-count // figure.across)
    picture, axes = plt.subplots(rows, figure.across, figsize=(3.5 * figure.across, 3.5 * rows))
    flat = list(np.ravel(axes))
    for paint in extra:
        paint(flat.pop(0))
    for panel in figure.panels:
        draw_panel(flat.pop(0), panel, found)
    for axis in flat:
        axis.axis("off")
    picture.tight_layout()
    picture.savefig(path, dpi=75, metadata={"Software": None})
    plt.close(picture)


# ------------------------------------------------------------------------------------ command line


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--run", action="store_true", help="measure what is missing")
    add("--seeds", type=int, default=10)
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    add("--minutes", type=float, default=math.inf, help="begin no fit after so many")
    add("--keep-stale", action="store_true", help="do not repeat fits of code that has changed")
    add("--status", action="store_true", help="count what is there and end")
    add("--store", type=Path, metavar="FOLDER", help="results from there, not from bench/")
    add("--write", action="store_true", help="refresh docs/figures and docs/papers.md")
    options = parser.parse_args(arguments)
    store, figures = opened(options.store, "accuracy"), [make() for make in FIGURES]
    wanted = [cell for figure in figures for panel in figure.panels for cell in panel.cells()]
    if options.status:
        print(*status(store, wanted, options.seeds), sep="\n")
        return 0
    if options.run:
        jobs = store.missing(wanted, options.seeds, options.keep_stale)
        run(store, jobs, options.jobs, limit=60 * options.minutes)
    found = Found(store, options.seeds)
    for figure in figures:
        text = "\n".join(claim.told(found) for claim in figure.claims) + "\n"
        print(f"{figure.name}\n\n{text}")
        if options.write:
            draw(figure, found, DOCS / "figures" / f"{figure.name}.png")
            refresh(DOCS / "papers.md", text, figure.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
