"""Panels of a model's shapes: what each column adds to the score, with its band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.base.validation import is_whole
from privfit.report.axes import (
    BEHIND,
    COLOURS,
    HATCHES,
    LONGEST_TICK,
    MARKERS,
    axes,
    finish,
    short,
    style,
)

__all__ = ["draw_shapes"]

PANELS_ACROSS, MOST_PANELS, MOST_BARS = 3, 12, 12
PANEL = (3.2, 2.3)  # inches
MOST_TICKS = 6  # of a logarithmic axis
NARROW = 0.02  # of the axis: about four times the width of a line
SPIKE = 0.04  # of the scale of scores
CLOSE = (
    30.0  # of the first cut of its own: a last one below needs no logarithms, whatever a scale adds
)
NEAR_ZERO = 1e-6  # of the median size of cuts: those below are as good as 0
BAND: dict[str, Any] = {"alpha": 0.25, "linewidth": 0}


def draw_shapes(
    model: Any,
    ax: Any = None,
    columns: Sequence[str] | None = None,
    label: Any = None,
    *,
    level: float = 0.9,
    across: int = PANELS_ACROSS,
) -> Any:
    """Draw what each value of a column adds to the score of a linear model: a panel a column.

    Parameters
    ----------
    model : fitted LogisticRegression or LinearSVC
        It must have been fitted under a `Schema`. Steps of cut numbers and lines of plain ones are
        drawn by value, categories as bars, and missing values as a mark on the right. A
        narrow bin far from both neighbours, as around a frequent value, is a point and no step.
        All panels have the same scale of scores. Where errors are known, a band or whiskers show
        them.
    ax : matplotlib axes, optional
        The place of the panels in a grid of axes; by default a new figure.
    columns : sequence of str, optional
        The columns to draw; by default the twelve most important ones, the most important first.
    label : object, optional
        The class whose score is drawn; by default each class that has a model.
    level : float, default=0.9
        The probability of the bands.
    across : int, default=3
        The largest number of panels side by side.

    Returns
    -------
    matplotlib axes
        The axes, which are empty; those of the panels follow them in ``ax.figure.axes``.

    Examples
    --------
    >>> from privfit import LogisticRegression
    >>> from privfit.datasets import make_census
    >>> from privfit.report.plotting import draw_shapes
    >>> people = make_census(2000)
    >>> model = LogisticRegression(1.0, 1e-6, domain=people.schema, classes=[0, 1])
    >>> ax = draw_shapes(model.fit(people.table, people.target), columns=["age", "sex"])
    >>> [panel.get_title(loc="left") for panel in ax.figure.axes[1:]]
    ['age', 'sex']
    """
    if not is_whole(across) or across < 1:
        raise DeclarationError(f"across ({across!r}) must be a positive number; pass across=3")
    panels = _panels_of(model, columns, label, level)
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    ax = axes(ax, (PANEL[0] * across + 0.4, PANEL[1] * down + 0.5))
    place = ax.get_subplotspec()
    if place is None:
        raise DeclarationError(
            "ax must be in a grid of axes, in which panels find room; pass one of "
            "figure.subplots(), or leave it out"
        )
    ax.set(xticks=[], yticks=[])
    ax.set_axis_off()
    frame = ax.figure.add_subfigure(place)
    grid = frame.subplots(down, across, squeeze=False).ravel()
    limits = _limits_of(panels)
    for panel, shapes in zip(grid, panels, strict=False):
        draw = _draw_bars if shapes[0].kind == "category" else _draw_curves
        draw(panel, shapes, limits)
        panel.set_title(short(shapes[0].name, LONGEST_TICK), loc="left", fontsize=10)
        panel.tick_params(labelsize=8)
        finish(panel, legend=False)
    for panel in grid[len(panels) :]:
        panel.remove()
    first = panels[0]
    of = f" of {short(str(first[0].label), LONGEST_TICK)}" if len(first) == 1 else ""
    frame.supylabel(f"contribution to the {first[0].measure}{of}", fontsize=10)
    _draw_legend(frame, panels, limits, across)
    return ax


def _panels_of(
    model: Any, columns: Sequence[str] | None, label: Any, level: float
) -> list[list[Any]]:
    """The shapes of each panel, one for each class that is drawn."""
    if not all(hasattr(model, name) for name in ("shape", "importances", "classes_")):
        raise DeclarationTypeError(
            f"model ({type(model).__name__}) must be a fitted LogisticRegression or LinearSVC; fit "
            "it first"
        )
    names = list(model.importances(label))[:MOST_PANELS] if columns is None else columns
    if isinstance(names, str) or not len(names):
        raise DeclarationError(
            f"columns ({columns!r}) must be a list of columns; pass names such as ['age']"
        )
    labels = model.classes_[-len(model.coef_) :].tolist() if label is None else [label]
    return [[model.shape(name, one, level=level) for one in labels] for name in names]


def _limits_of(panels: list[list[Any]]) -> tuple[float, float]:
    """The scale of scores that all panels share."""
    ends = ("values", "lower", "upper", "missing", "missing_lower", "missing_upper")
    found = [getattr(shape, end) for shapes in panels for shape in shapes for end in ends]
    every = np.concatenate([np.ravel(part) for part in found if part is not None])
    low, high = min(every.min(), 0.0), max(every.max(), 0.0)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_curves(panel: Any, shapes: list[Any], limits: tuple[float, float]) -> None:
    """Steps or lines of a number; missing values are marked on the right."""
    panel.axhline(0, color="0.8", linewidth=0.8, zorder=BEHIND)
    panel.set_ylim(limits)
    shown = _Scale.of(shapes[0].part)
    shown.apply(panel)
    beside = panel.get_yaxis_transform()
    for i, shape in enumerate(shapes):
        look = {key: style(i)[key] for key in ("color", "linestyle", "linewidth")}
        if shape.kind == "line":
            _draw_line(panel, shape, look)
        else:
            _draw_steps(panel, shape, shown, look)
        if shape.missing is not None:
            at, half = 1.03 + 0.04 * i, _half(shape.missing, shape.missing_upper)
            panel.errorbar(
                at, shape.missing, yerr=half, transform=beside, clip_on=False, capsize=2,
                elinewidth=1, color=look["color"], marker=MARKERS[i % len(MARKERS)], markersize=4,
                linestyle="none",
            )  # fmt: skip


def _draw_steps(panel: Any, shape: Any, shown: _Scale, look: dict[str, Any]) -> None:
    """Steps of a cut number with their band, and points for bins that are too narrow for steps."""
    edges = shown.drawn(shape.edges)
    narrow = _spikes(shape, shown, panel.get_ylim())
    wide, ends = ~narrow, shown.without(edges, narrow)
    if shape.lower is not None:
        panel.stairs(shape.upper[wide], ends, baseline=shape.lower[wide], fill=True,
                     color=look["color"], **BAND)  # fmt: skip
    panel.stairs(shape.values[wide], ends, baseline=None, **look)
    if narrow.any():
        half = None if shape.upper is None else (shape.upper - shape.values)[narrow]
        panel.errorbar(
            shown.middles(edges)[narrow], shape.values[narrow], yerr=half, color=look["color"],
            marker=".", markersize=4, linestyle="none", elinewidth=0.8, alpha=0.8,
        )  # fmt: skip


def _spikes(shape: Any, shown: _Scale, limits: tuple[float, float]) -> Any:
    """bool (bins,): which bins would be drawn as spikes: narrow, and far from both neighbours.

    Cuts that were bought come in pairs around frequent values, so that such a value is a bin of its
    own. A point shows it without hiding what is beside it.
    """
    places, (low, high) = shown.places(shown.drawn(shape.edges)), shown.places(np.array(shown.ends))
    narrow = np.diff(places) < NARROW * (high - low)
    apart = np.diff(shape.values)
    far = (apart[:-1] * apart[1:] < 0) & (
        np.minimum(np.abs(apart[:-1]), np.abs(apart[1:])) > SPIKE * (limits[1] - limits[0])
    )
    return narrow & np.concatenate([[False], far, [False]])[: len(narrow)]


def _draw_line(panel: Any, shape: Any, look: dict[str, Any]) -> None:
    """A straight line; its band is narrow in the middle of the range, where it is centred."""
    places = np.insert(shape.edges, 1, shape.edges.mean())
    if shape.lower is not None:
        lower, upper = (np.insert(end, 1, 0.0) for end in (shape.lower, shape.upper))
        panel.fill_between(places, lower, upper, color=look["color"], **BAND)
    panel.plot(places, np.insert(shape.values, 1, 0.0), **look)


def _draw_bars(panel: Any, shapes: list[Any], limits: tuple[float, float]) -> None:
    """Bars of categories, those farthest from 0 if there are many."""
    size = np.max([np.abs(shape.values) for shape in shapes], axis=0)
    shown = np.sort(np.argsort(-size, kind="stable")[:MOST_BARS])
    height = 0.8 / len(shapes)
    for i, shape in enumerate(shapes):
        rows = np.arange(len(shown)) + height * (i - (len(shapes) - 1) / 2)
        half = None if shape.upper is None else (shape.upper - shape.values)[shown]
        panel.barh(
            rows, shape.values[shown], height, xerr=half, color=COLOURS[i % len(COLOURS)],
            hatch=HATCHES[i % len(HATCHES)], edgecolor="white",
            error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "0.3"},
        )  # fmt: skip
    panel.axvline(0, color="0.8", linewidth=0.8, zorder=BEHIND)
    panel.set_yticks(range(len(shown)), [short(shapes[0].levels[j], 16) for j in shown])
    panel.invert_yaxis()
    panel.set_xlim(limits)
    left_out = len(size) - len(shown)
    more = f"; {left_out} levels nearer to 0 are left out" if left_out else ""
    panel.set_xlabel(f"{shapes[0].measure}{more}", fontsize=8)


@dataclass(frozen=True)
class _Scale:
    """The axis of a number: its ends, and from where on it is logarithmic, if it is."""

    ends: tuple[float, float]
    threshold: float | None

    @classmethod
    def of(cls, part: Any) -> _Scale:
        """The axis of a column, from its declaration."""
        cuts = part.edges[np.isfinite(part.edges)]
        if part.focus is not None:
            cuts = np.unique(np.clip(cuts, *part.focus))
        if not len(cuts):
            return cls((0.0, 1.0), None)
        low, high = float(cuts[0]), float(cuts[-1])
        sizes = np.abs(cuts[cuts != 0])
        bought = part.focus is not None and low > 0 and high < CLOSE * low
        if bought or not part.spans_decades or not len(sizes):
            gap = float(np.median(np.diff(cuts))) if len(cuts) > 1 else max(abs(high), 1.0) / 2
            gap = (high - low) / 10 if bought else gap
            ends = low - gap, high + gap
            threshold = None
        else:
            threshold = float(sizes[sizes >= NEAR_ZERO * np.median(sizes)].min())
            ends = -_outward(-low, threshold), _outward(high, threshold)
            threshold = min(threshold, *map(abs, ends))
        # a declared range ends where it is declared to
        first, last = float(part.edges[0]), float(part.edges[-1])
        return cls((max(ends[0], first), min(ends[1], last)), threshold)

    def drawn(self, edges: Floats) -> Floats:
        """Edges of steps, of which infinite ones are moved to the ends of the axis or beyond."""
        finite = edges[np.isfinite(edges)]
        low, high = min([self.ends[0], *finite[:1]]), max([self.ends[1], *finite[-1:]])
        return np.clip(edges, low, high)

    def places(self, edges: Floats) -> Floats:
        """Where numbers lie on the axis, in any unit: logarithms beyond the threshold."""
        if self.threshold is None:
            return edges
        shares = np.abs(edges) / self.threshold
        return np.sign(edges) * np.where(shares > 1, 1 + np.log10(np.maximum(shares, 1)), shares)

    def at(self, place: float) -> float:
        """The number at a place of the axis."""
        if self.threshold is None:
            return place
        size = abs(place)
        return math.copysign(self.threshold * (10 ** (size - 1) if size > 1 else size), place)

    def without(self, edges: Floats, narrow: Any) -> Floats:
        """The edges of the other bins: those on both sides of narrow ones meet halfway."""
        places, wide = self.places(edges), np.flatnonzero(~narrow)
        inner = [edges[right] if right == left + 1
                 else self.at((places[left + 1] + places[right]) / 2)
                 for left, right in pairwise(wide)]  # fmt: skip
        return np.array([edges[0], *inner, edges[-1]])

    def middles(self, edges: Floats) -> Floats:
        """The numbers in the middle of bins, as the axis has it."""
        places = self.places(edges)
        return np.array([self.at(place) for place in (places[1:] + places[:-1]) / 2])

    def apply(self, panel: Any) -> None:
        """Set the axis of a panel."""
        from matplotlib.ticker import NullLocator

        if self.threshold is not None:
            panel.set_xscale("symlog", linthresh=self.threshold)
            panel.set_xticks(_decades(self.ends, self.threshold))
            panel.xaxis.set_minor_locator(NullLocator())
        else:
            panel.xaxis.set_major_formatter("{x:g}")
        panel.set_xlim(self.ends)


def _decades(ends: tuple[float, float], threshold: float) -> list[float]:
    """Powers of ten to label a logarithmic axis with, few enough not to touch, and 0."""
    least, most = (math.log10(size) for size in (threshold, max(map(abs, ends))))
    sides = 1 if ends[0] >= 0 or ends[1] <= 0 else 2
    stride = max(1, math.ceil(sides * (most - least) / MOST_TICKS))
    powers = [10.0**k for k in range(math.floor(most), math.ceil(least) - 1, -stride)]
    far = [power for power in powers if power >= threshold * 10 ** ((stride - 1) / 2)]
    kept = far if ends[0] <= 0 <= ends[1] else powers
    ticks = [*(-power for power in kept), 0.0, *reversed(kept)]
    return [tick for tick in ticks if ends[0] <= tick <= ends[1]]


def _outward(end: float, threshold: float) -> float:
    """A decade beyond the upper end of a logarithmic scale."""
    if end == 0:
        return threshold
    return 10 * end if end > 0 else end / 10


def _half(value: float, upper: float | None) -> float | None:
    return None if upper is None else upper - value


def _draw_legend(
    frame: Any, panels: list[list[Any]], limits: tuple[float, float], across: int
) -> None:
    """Classes, bands and missing values, as far as there are any, above the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shapes = [shape for group in panels for shape in group]
    handles: list[Any] = []
    if len(panels[0]) > 1:
        handles = [Line2D([], [], label=short(str(shape.label)), **{**style(i), "marker": None})
                   for i, shape in enumerate(panels[0])]  # fmt: skip
    if any(shape.missing is not None for shape in shapes):
        handles.append(Line2D([], [], color=COLOURS[0], marker=MARKERS[0], markersize=4,
                              linestyle="none", label="missing values"))  # fmt: skip
    cut = [shape for shape in shapes if shape.kind == "number"]
    if any(_spikes(shape, _Scale.of(shape.part), limits).any() for shape in cut):
        handles.append(Line2D([], [], color=COLOURS[0], marker=".", markersize=4,
                              linestyle="none", label="single values"))  # fmt: skip
    if shapes[0].lower is not None:
        handles.append(
            Patch(color=COLOURS[0], **BAND, label=f"{100 * shapes[0].level:g} % of the noise")
        )
    if handles:
        frame.legend(handles=handles, loc="outside upper left", ncols=across, frameon=False,
                     fontsize=9)  # fmt: skip
