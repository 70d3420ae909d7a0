"""The experiments of a paper, measured anew: figures of panels of curves, and what they claim.

A script of a paper (`bench/privgene_2013.py`) declares its figures and calls `main`:

    FIGURES = {"3": figure_3}                       # each returns a Figure
    if __name__ == "__main__":
        sys.exit(main("privgene_2013", __doc__))

python bench/privgene_2013.py --list                # figures, fits, and how long they took before
python bench/privgene_2013.py --figure 3 --seeds 10 --out found
python bench/privgene_2013.py --out bench/papers --keep --page      # refresh docs/papers/

All that is asked is measured anew; `--keep` adds to what the folder holds. A curve's seed is the
same for all curves of a panel, so that they are compared seed by seed: a claim holds at a point
where the 95 % interval of the difference (Student's t) is on its side of zero, is contradicted
where it is on the other, and undecided else. Seeded fits are for benchmarks: they are not private.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

import privfit
from bench.fits import table_lines
from bench.results import refresh, replace_text
from bench.store import mapped, progress

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGES, PICTURES = (
    ROOT / "bench" / "papers",
    ROOT / "docs" / "papers",
    ROOT / "docs" / "figures",
)

Job = tuple[str, int, str, int, int]  # figure, panel, curve, point (-1 for all), seed
Values = dict[int, list[float]]  # of a curve: at all points of the axis, by seed


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


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half its 95 % interval by Student's t."""
    found = np.asarray(values, dtype=np.float64)
    if len(found) < 2:
        return float(found.mean()) if len(found) else math.nan, math.nan
    spread = found.std(ddof=1) if np.ptp(found) else 0.0  # of equal numbers not a rounding error
    error = spread / math.sqrt(len(found))
    return float(found.mean()), float(scipy.stats.t.ppf(0.975, len(found) - 1) * error)


def verdict(gaps: Sequence[float]) -> str:
    """What the gaps (higher less lower, seed by seed) say of a claim."""
    mean, half = interval(gaps)
    if math.isnan(half):
        return "undecided"
    return "holds" if mean - half > 0 else "contradicted" if mean + half < 0 else "undecided"


# ------------------------------------------------------------------------------------------ found


class Found:
    """What was measured of a paper, kept in one JSON file after every fit that matters."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
        self.figures: dict[str, Any] = json.loads(text).get("figures", {})

    def begin(self, name: str, figure: Figure, anew: bool) -> None:
        """Forget a figure's numbers; or only those of curves whose settings have changed."""
        old = {} if anew else self.figures.get(name, {}).get("panels", {})
        panels = {}
        for panel in figure.panels:
            kept = old.get(panel.title, {"points": [], "curves": {}})
            same = kept["points"] == list(panel.points)
            panels[panel.title] = {"points": list(panel.points), "curves": {
                label: kept["curves"][label]
                if same and kept["curves"].get(label, {}).get("settings") == curve.settings
                else {"settings": curve.settings, "values": {}}
                for label, curve in panel.curves.items()}}  # fmt: skip
        seconds = 0.0 if anew else self.figures.get(name, {}).get("seconds", 0.0)
        today = datetime.date.today().isoformat()
        self.figures[name] = {
            "privfit": privfit.__version__, "date": today, "seconds": seconds, "panels": panels
        }  # fmt: skip

    def values(self, name: str, panel: Panel, label: str) -> Values:
        """By seed, the numbers at all points; NaN where not measured."""
        kept = self.figures.get(name, {}).get("panels", {}).get(panel.title, {}).get("curves", {})
        return {int(s): v for s, v in kept.get(label, {"values": {}})["values"].items()}

    def add(self, name: str, panel: Panel, label: str, at: int, seed: int, value: Any) -> None:
        """Keep the number of one point, or of all."""
        kept = self.figures[name]["panels"][panel.title]["curves"][label]["values"]
        row = kept.setdefault(str(seed), [math.nan] * len(panel.points))
        for i, number in enumerate(value) if at < 0 else [(at, value)]:
            row[i] = float(f"{number:.6g}")

    def write(self) -> None:
        """Write the file whole, a line for each curve."""
        text = json.dumps({"figures": self.figures}, indent=1)
        replace_text(self.path, _one_line_a_seed(text) + "\n")

    def at(self, name: str, panel: Panel, label: str, point: float) -> dict[int, float]:
        """By seed, the number at one point, where measured."""
        i = list(panel.points).index(point)
        rows = self.values(name, panel, label).items()
        return {seed: row[i] for seed, row in rows if not math.isnan(row[i])}


def _one_line_a_seed(text: str) -> str:
    """JSON's innermost lists on one line each."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if inside:
            lines[-1] += line.strip() + (" " if line.endswith(",") else "")
            inside = not line.strip().startswith("]")
        else:
            lines.append(line)
            inside = line.rstrip().endswith("[")
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------- runs


def jobs_of(name: str, figure: Figure, seeds: int, found: Found) -> Iterator[Job]:
    """What is still to be measured, all curves of a seed before the next seed."""
    for seed in range(seeds):
        for i, panel in enumerate(figure.panels):
            for label, curve in panel.curves.items():
                row = found.values(name, panel, label).get(seed, [math.nan] * len(panel.points))
                missing = [at for at, value in enumerate(row) if math.isnan(value)]
                places = [-1] if curve.whole and missing else missing
                yield from ((name, i, label, at, seed) for at in places)


@functools.cache
def figure_of(paper: str, name: str) -> Figure:
    """A figure as the paper's script declares it."""
    figure: Figure = importlib.import_module(f"bench.{paper}").FIGURES[name]()
    return figure


@dataclass(frozen=True)
class Fit:
    """Fits a job of one paper; a process is sent names, and imports the script."""

    paper: str

    def __call__(self, job: Job) -> tuple[Job, Any]:
        name, i, label, at, seed = job
        panel = figure_of(self.paper, name).panels[i]
        point = tuple(panel.points) if at < 0 else panel.points[at]
        return job, panel.curves[label].fit(point, seed)


def measure(
    paper: str, name: str, figure: Figure, seeds: int, found: Found, processes: int
) -> float:
    """Measure what is missing of a figure; the seconds it took."""
    jobs = list(jobs_of(name, figure, seeds, found))
    start = last = time.perf_counter()
    show = progress(len(jobs))
    for done, (job, value) in enumerate(mapped(Fit(paper), jobs, processes), 1):
        _, i, label, at, seed = job
        found.add(name, figure.panels[i], label, at, seed, value)
        show(done, f"figure {name}, {figure.panels[i].title}, {label}")
        if time.perf_counter() - last > 20:
            found.write()
            last = time.perf_counter()
    seconds = time.perf_counter() - start
    found.figures[name]["seconds"] = round(found.figures[name]["seconds"] + seconds, 1)
    found.write()
    return seconds


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
    yield from table_lines([panel.axis, *(f"{point:g}" for point in panel.points)], rows)


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
    kept = found.figures[name]
    yield ""
    yield f"Measured on {kept['date']} in {kept['seconds']:.0f} s."


# ---------------------------------------------------------------------------------------- pictures


def draw(name: str, figure: Figure, found: Found, path: Path) -> None:
    """A picture with an axis for each panel; bars are 95 % intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    across = min(figure.across, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    picture, axes = pyplot.subplots(
        down, across, figsize=(4.2 * across, 3.9 * down), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes.flat, figure.panels, strict=False):
        draw_panel(axis, name, panel, found)
    for axis in axes.flat[len(figure.panels) :]:
        axis.axis("off")
    picture.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(picture)


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
    axis.tick_params(labelsize=7)
    axis.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2,
                frameon=False, columnspacing=1.0, handlelength=1.6)  # fmt: skip


# ------------------------------------------------------------------------------------ command line


def main(paper: str, about: str, arguments: Sequence[str] | None = None) -> int:
    """The command of one paper."""
    figures: list[str] = list(importlib.import_module(f"bench.{paper}").FIGURES)
    options = _options(about, figures, arguments)
    if options.list:
        print("\n".join(listed(paper, figures)))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    found = Found(options.out / f"{paper}.json")
    for name in options.figure or figures:
        figure = figure_of(paper, name)
        found.begin(name, figure, anew=not options.keep)
        seeds = options.seeds or figure.seeds
        seconds = measure(paper, name, figure, seeds, found, options.jobs)
        pictures = PICTURES if options.page else options.out
        picture = pictures / f"{paper}_{name}.png".replace(" ", "_")
        draw(name, figure, found, picture)
        where = os.path.relpath(picture, PAGES) if options.page else picture.name
        text = "\n".join(section(name, figure, found, where)) + "\n"
        print(f"\nFigure {name}: {figure.subject} ({seconds:.0f} s)\n\n{text}", flush=True)
        if options.page:
            refresh(PAGES / f"{paper}.md", text, f"figure {name}")
    return 0


def _options(about: str, figures: Iterable[str], given: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--figure", action="append", choices=list(figures), help="which; all by default")
    add("--seeds", type=int, help="repetitions of each fit; each figure has its own default")
    add("--out", type=Path, default=Path("found"), help="folder for numbers and pictures")
    add("--keep", action="store_true", help="measure only what the folder does not hold")
    add("--jobs", type=int, default=os.cpu_count(), help="processes, one thread each")
    add("--page", action="store_true", help="write docs/papers/ and docs/figures/ too")
    add("--list", action="store_true", help="the figures, and how long they took")
    return parser.parse_args(given)


def listed(paper: str, figures: Iterable[str]) -> Iterator[str]:
    """The figures of a paper, their fits, and the seconds of the last committed run."""
    kept = Found(KEPT / f"{paper}.json").figures
    for name in figures:
        figure = figure_of(paper, name)
        fits = sum(1 if curve.whole else len(panel.points)
                   for panel in figure.panels for curve in panel.curves.values())  # fmt: skip
        took = f"{kept[name]['seconds']:.0f} s" if name in kept else "not yet measured"
        yield f"{name}: {figure.subject}; {figure.seeds} x {fits} fits, {took}"
