"""From results to pages: tables, numbers as they are shown, places on pages, axes of pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from bench.measure import ROOT
from bench.results import Row, replace_text

PAGES = ROOT / "docs" / "benchmarks"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    ms = seconds * 1e3
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.3f}"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval by Student's t."""
    found = np.array(list(values), dtype=np.float64)
    if len(found) < 2:
        return float(found.mean()) if len(found) else math.nan, math.nan
    spread = found.std(ddof=1) if np.ptp(found) else 0.0  # of equal numbers not a rounding error
    half = scipy.stats.t.ppf(0.975, len(found) - 1) * spread / math.sqrt(len(found))
    return float(found.mean()), float(half)


def mean(values: Sequence[float]) -> str:
    """A mean and half its interval, with four digits after the point, or two of large numbers."""
    if not values:
        return "-"
    middle, half = interval(values)
    digits = 2 if abs(middle) >= 10 else 4
    return f"{middle:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def verdict(gaps: Sequence[float], against: str = "contradicted") -> str:
    """What paired differences say of a claim that they are above zero."""
    middle, half = interval(gaps)
    if math.isnan(half):
        return "undecided"
    return "holds" if middle - half > 0 else against if middle + half < 0 else "undecided"


def met(value: float, target: float, goal: float | None = None, sign: int = 1) -> str:
    """What a value reaches of what is asked of it; with sign -1, lower is better."""
    if goal is not None and sign * (value - goal) >= 0:
        return "goal"
    return "target" if sign * (value - target) >= 0 else "short"


def origin(rows: Iterable[Row]) -> str:
    """When, where and with which code lines were measured."""
    listed = list(rows)
    dates = sorted({row["date"] for row in listed if row["date"]})
    commits = list(dict.fromkeys(row["commit"] for row in listed if row["commit"]))
    machines = list(dict.fromkeys(row["machine"] for row in listed if row["machine"]))
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "an unknown day"
    code = f", commits {', '.join(commits[:4])}" + (" and others" if len(commits) > 4 else "")
    return f"Measured {when}{code if commits else ''}; {'; '.join(machines) or 'unknown machine'}."


def refresh(path: Path, text: str, name: str) -> None:
    """Put text between the markers of this name in a file, or make the file."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = path.read_text(encoding="utf-8") if path.exists() else f"{begin}\n{end}\n"
    if begin not in old or end not in old:
        raise SystemExit(f"{path.name} lacks the markers {begin} and {end}; add them")
    head, tail = old.split(begin)[0], old.split(end)[1]
    replace_text(path, f"{head}{begin}\n{text.rstrip()}\n{end}{tail}")


def axes(count: int, wide: float = 4.2, high: float = 3.4, across: int = 3) -> tuple[Any, Any]:
    """A figure with so many axes, at most `across` in a row."""
    from matplotlib.figure import Figure

    across = min(across, count)
    down = math.ceil(count / across)
    figure = Figure(figsize=(wide * across, high * down), layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for axis in grid[count:]:
        axis.axis("off")
    for axis in grid[:count]:
        axis.tick_params(labelsize=7)
    return figure, grid[:count]
