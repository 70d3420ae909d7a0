"""The experiments of papers, measured anew: figures of panels of curves, and what they claim.

A module of a paper declares its figures: `FIGURES = {"3": figure_3}`, each of which returns a
`Figure`. A curve's seed is the same for all curves of a panel, so that they are compared seed by
seed: a claim holds at a point where the 95 % interval of the difference (Student's t) is on its
side of zero, is contradicted where it is on the other, and undecided else. Seeded fits are for
benchmarks: they are not private.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench import command, pages
from bench.accuracy import mapped
from bench.measure import ROOT
from bench.pages import interval, refresh, table, verdict
from bench.results import FOLDER, Results, by_seed, joined

PAPERS = ("humphries_2021", "lee_kifer", "perturbation_2008", "privgene_2013", "stoddard_2014")
PAGES, PICTURES = ROOT / "docs" / "papers", ROOT / "docs" / "figures"
KEY = ("figure", "panel", "curve", "point")
VALUES = ("settings", "values", "seconds")

Job = tuple[str, int, str, int, int]  # figure, panel, curve, point (-1 for all), seed


@dataclass(frozen=True)
class Curve:
    """What is measured along an axis.

    fit         (point, seed) -> a number; with `whole`, (points, seed) -> a number for each
    settings    what a reader types to have the same: estimator, solver, budget, coding
    published   the paper's own numbers by point, where its text gives them
    """

    fit: Callable[..., Any]
    settings: str
    whole: bool = False
    published: Mapping[float, float] = field(default_factory=dict)


def level(measure: Callable[[int], float], settings: str) -> Curve:
    """What is the same at every point: (seed) -> a number."""
    return Curve(lambda points, seed: [measure(seed)] * len(points), settings, whole=True)


@dataclass(frozen=True)
class Claim:
    """One curve of a panel lies below another, at all points or at some."""

    text: str
    lower: str
    higher: str
    points: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves by label over one axis; lower is better in what they measure."""

    title: str
    measure: str
    axis: str
    points: Sequence[float]
    curves: Mapping[str, Curve]
    claims: Sequence[Claim] = ()
    log: str = "x"  # "x", "y", "xy" or ""


@dataclass(frozen=True)
class Figure:
    """Panels in one picture. `subject` says what the paper's figure shows, in our words."""

    subject: str
    panels: Sequence[Panel]
    seeds: int = 10
    across: int = 3


# ------------------------------------------------------------------------------------------ found


class Found:
    """What was measured of a paper: a line for each point of each curve, with all its seeds."""

    def __init__(self, path: Path) -> None:
        self.results = Results(path, KEY, VALUES)

    def begin(self, name: str, figure: Figure, anew: bool) -> None:
        """Forget a figure's numbers; or only those of curves whose settings have changed."""
        kept = {
            (name, panel.title, label, f"{point:g}"): curve.settings
            for panel in figure.panels for label, curve in panel.curves.items()
            for point in panel.points
        }  # fmt: skip
        self.results.rows = {
            key: row for key, row in self.results.rows.items()
            if key[0] != name or (not anew and kept.get(key) == row["settings"])
        }  # fmt: skip

    def at(self, name: str, panel: Panel, label: str, point: float) -> dict[int, float]:
        """By seed, the number at one point, where measured."""
        return by_seed(self.results.get(name, panel.title, label, f"{point:g}"))

    def add(self, job: Job, figure: Figure, found: Any, seconds: float) -> None:
        """Keep the number of one point, or of all."""
        name, i, label, at, seed = job
        panel = figure.panels[i]
        points = panel.points if at < 0 else [panel.points[at]]
        for point, value in zip(points, found if at < 0 else [found], strict=True):
            row = self.results.get(name, panel.title, label, f"{point:g}")
            values = self.at(name, panel, label, point) | {seed: float(value)}
            self.results.add({
                "figure": name, "panel": panel.title, "curve": label, "point": f"{point:g}",
                "settings": panel.curves[label].settings,
                "values": joined(values.get(s) for s in range(max(values) + 1)),
                "seconds": seconds / len(points) + (float(row["seconds"]) if row else 0.0),
            }, write=False)  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether something of a figure was measured."""
        return any(row["figure"] == name for row in self.results)

    def seconds(self, name: str) -> float:
        """How long the fits of a figure took."""
        return sum(float(row["seconds"]) for row in self.results if row["figure"] == name)

    def date(self, name: str) -> str:
        """When the last of them was made."""
        return max(row["date"] for row in self.results if row["figure"] == name)


# ------------------------------------------------------------------------------------------- runs


def jobs_of(name: str, figure: Figure, seeds: int, found: Found) -> Iterator[Job]:
    """What is still to be measured, all curves of a seed before the next seed."""
    for seed in range(seeds):
        for i, panel in enumerate(figure.panels):
            for label, curve in panel.curves.items():
                missing = [at for at, point in enumerate(panel.points)
                           if seed not in found.at(name, panel, label, point)]  # fmt: skip
                places = [-1] if curve.whole and missing else missing
                yield from ((name, i, label, at, seed) for at in places)


@functools.cache
def figure_of(paper: str, name: str) -> Figure:
    """A figure as the paper's module declares it."""
    figure: Figure = importlib.import_module(f"bench.papers.{paper}").FIGURES[name]()
    return figure


@dataclass(frozen=True)
class Fit:
    """Fits a job of one paper; a process is sent names, and imports the module."""

    paper: str

    def __call__(self, job: Job) -> tuple[Job, Any, float]:
        name, i, label, at, seed = job
        panel = figure_of(self.paper, name).panels[i]
        point = tuple(panel.points) if at < 0 else panel.points[at]
        start = time.perf_counter()
        return job, panel.curves[label].fit(point, seed), time.perf_counter() - start


def measure(
    paper: str, name: str, figure: Figure, seeds: int, found: Found, processes: int
) -> None:
    """Measure what is missing of a figure; what is found is on disk every 20 seconds."""
    jobs = list(jobs_of(name, figure, seeds, found))
    last = time.perf_counter()
    for done, (job, value, seconds) in enumerate(mapped(Fit(paper), jobs, processes), 1):
        found.add(job, figure, value, seconds)
        if time.perf_counter() - last > 20:
            found.results.write()
            last = time.perf_counter()
            print(f"figure {name}: {done} of {len(jobs)} fits", file=sys.stderr)
    found.results.write()


# ------------------------------------------------------------------------------------------ words


def told(name: str, panel: Panel, claim: Claim, found: Found) -> str:
    """Where a claim holds, where it is contradicted, and where the seeds do not decide."""
    where: dict[str, list[str]] = {"holds": [], "undecided": [], "contradicted": []}
    counts = set()
    for point in panel.points if claim.points is None else claim.points:
        lower = found.at(name, panel, claim.lower, point)
        higher = found.at(name, panel, claim.higher, point)
        both = sorted(lower.keys() & higher.keys())
        where[verdict([higher[seed] - lower[seed] for seed in both])].append(f"{point:g}")
        counts.add(len(both))
    seen = [word for word, points in where.items() if points]
    opening = {("holds",): "Same", ("undecided",): "Undecided", ("contradicted",): "Contradicted"}
    first = opening.get(tuple(seen), "Same in part" if where["holds"] else "Not the same")
    parts = [f"{word} at {', '.join(where[word])}" for word in seen]
    seeds = " to ".join(map(str, sorted({min(counts), max(counts)})))
    return f"- {first}: {claim.text} ({panel.axis}: {'; '.join(parts)}; {seeds} seeds)."


def numbers(name: str, panel: Panel, found: Found) -> Iterator[str]:
    """A table: a row for each curve, mean and half interval at each point."""
    rows = []
    for label, curve in panel.curves.items():
        cells = []
        for point in panel.points:
            mean, half = interval(list(found.at(name, panel, label, point).values()))
            cells.append("-" if math.isnan(mean) else _short(mean, half))
        rows.append([label, *cells])
        if curve.published:
            known = (curve.published.get(point) for point in panel.points)
            rows.append([f"{label}, published", *("" if v is None else f"{v:g}" for v in known)])
    yield from table([panel.axis, *(f"{point:g}" for point in panel.points)], rows)


def _short(mean: float, half: float) -> str:
    if math.isnan(half):
        return f"{mean:.3g}"
    digits = max(0, 3 - 1 - math.floor(math.log10(abs(mean)))) if mean else 2
    return f"{mean:.{digits}f} ± {half:.1g}" if half else f"{mean:.{digits}f}"


def section(name: str, figure: Figure, found: Found, picture: str) -> Iterator[str]:
    """What a page says of a figure: the picture, the claims, the numbers, the settings."""
    yield f"![{figure.subject}]({picture})"
    yield ""
    claims = [(panel, claim) for panel in figure.panels for claim in panel.claims]
    yield from (told(name, panel, claim, found) for panel, claim in claims)
    yield from [""] if claims else []
    for panel in figure.panels:
        yield f"**{panel.title}** ({panel.measure})"
        yield ""
        yield from numbers(name, panel, found)
        yield ""
    yield "Settings:"
    yield ""
    settings: dict[tuple[str, str], list[str]] = {}
    for panel in figure.panels:
        for label, curve in panel.curves.items():
            settings.setdefault((label, curve.settings), []).append(panel.title)
    several = {label for label, _ in settings if sum(label == other for other, _ in settings) > 1}
    for (label, text), titles in settings.items():
        panels = f" ({'; '.join(titles)})" if label in several else ""
        yield f"- *{label}*{panels}: {text}"
    yield ""
    yield f"Measured on {found.date(name)} in {found.seconds(name):.0f} s."


# ---------------------------------------------------------------------------------------- pictures


def draw(name: str, figure: Figure, found: Found, path: Path) -> None:
    """A picture with an axis for each panel; bars are 95 % intervals."""
    picture, grid = pages.axes(len(figure.panels), high=3.9, across=figure.across)
    for axis, panel in zip(grid, figure.panels, strict=True):
        draw_panel(axis, name, panel, found)
    picture.savefig(path, dpi=110, metadata={"Software": None})


def draw_panel(axis: Any, name: str, panel: Panel, found: Found) -> None:
    for label, curve in panel.curves.items():
        spread = [interval(list(found.at(name, panel, label, x).values())) for x in panel.points]
        mean, half = np.array(spread).T
        line = axis.errorbar(panel.points, mean, np.nan_to_num(half), marker="o", markersize=3,
                             capsize=2, lw=1.2, label=label)  # fmt: skip
        if curve.published:
            x, y = zip(*curve.published.items(), strict=True)
            axis.plot(x, y, "x", color=line[0].get_color(), label=f"{label}, published")
    axis.set_xscale("log" if "x" in panel.log else "linear")
    axis.set_yscale("log" if "y" in panel.log else "linear")
    if len(panel.points) <= 8:
        axis.set_xticks(list(panel.points), [f"{x:g}" for x in panel.points])
        axis.xaxis.minorticks_off()
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.axis, fontsize=8)
    axis.set_ylabel(panel.measure, fontsize=8)
    axis.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2,
                frameon=False, columnspacing=1.0, handlelength=1.6)  # fmt: skip


# -------------------------------------------------------------------------------------- the command


def run(options: argparse.Namespace) -> None:
    """Measure, draw and tell the chosen figures."""
    every = [(paper, name) for paper in PAPERS
             for name in importlib.import_module(f"bench.papers.{paper}").FIGURES]  # fmt: skip
    chosen = command.chosen(options, every, " / ".join, listed)
    for paper, name in chosen[:1] if options.quick else chosen:
        figure = figure_of(paper, name)
        found = Found(options.out / "papers" / f"{paper}.csv")
        if command.is_time_left(options):
            found.begin(name, figure, anew=not options.keep)
            seeds = 1 if options.quick else options.seeds or figure.seeds
            measure(paper, name, figure, seeds, found, options.jobs)
        if found.has(name):
            publish(paper, name, figure, found, options)


def publish(
    paper: str, name: str, figure: Figure, found: Found, options: argparse.Namespace
) -> None:
    """Draw a figure and print what its page says of it; with --write, refresh the page."""
    pictures = PICTURES if options.write else options.out / "papers"
    picture = pictures / f"{paper}_{name}.png".replace(" ", "_")
    draw(name, figure, found, picture)
    where = os.path.relpath(picture, PAGES) if options.write else picture.name
    text = "\n".join(section(name, figure, found, where)) + "\n"
    print(f"\n{paper}, figure {name}: {figure.subject}\n\n{text}", flush=True)
    if options.write:
        refresh(PAGES / f"{paper}.md", text, f"figure {name}")


def listed(each: tuple[str, str]) -> str:
    """A figure of a paper, its fits, and the seconds of the last committed run."""
    paper, name = each
    figure, found = figure_of(paper, name), Found(FOLDER / "papers" / f"{paper}.csv")
    fits = sum(1 if curve.whole else len(panel.points)
               for panel in figure.panels for curve in panel.curves.values())  # fmt: skip
    took = f"{found.seconds(name):.0f} s" if found.has(name) else "not yet measured"
    return f"{paper} / {name}: {figure.subject}; {figure.seeds} x {fits} fits, {took}"
