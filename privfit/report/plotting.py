"""Plots of released values: accuracy by privacy, ROC curves, clusters, shapes, and budgets.

Every function takes matplotlib axes, or makes a new figure, and returns the axes. Figures are not
pyplot's: none is kept open, none pops up, and no setting of matplotlib is changed. `save_figure`
writes a file; in a notebook ``ax.figure`` shows the plot. Matplotlib is loaded on first use.

Curves differ by marker and line style as well as by colour, so that they can be distinguished in
grey.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError, FileError
from privfit.base.files import write_atomically
from privfit.base.typing import Floats
from privfit.base.validation import is_whole
from privfit.domains import Domain
from privfit.privacy.accounting import METHODS, Event, applies, compose, gaussian_total
from privfit.privacy.ledger import Budget, Ledger, Release
from privfit.report.axes import (
    BEHIND,
    COLOURS,
    HATCHES,
    LONGEST_TICK,
    axes,
    finish,
    joined,
    named,
    short,
    style,
)
from privfit.report.center_panels import PLANE, draw_centers
from privfit.report.choices import draw_choice
from privfit.report.reliability import draw_calibration
from privfit.report.shape_panels import draw_shapes

__all__ = [
    "PLANE",
    "draw_budget",
    "draw_calibration",
    "draw_centers",
    "draw_choice",
    "draw_clusters",
    "draw_composition",
    "draw_roc",
    "draw_shapes",
    "draw_sweep",
    "rendered",
    "save_figure",
]


LONG_DASHES, DOTS = (0, (6, 2)), (0, (1, 2))
QUIET: dict[str, Any] = {"color": "0.45", "linewidth": 1.2, "zorder": BEHIND}
UNITS = {
    "accuracy": "accuracy (share of held-out records)",
    "mean distance": "mean distance to the nearest centre",
    "mean squared distance": "mean squared distance to the nearest centre",
}  # what a sweep measures, on its axis
DRAWN_TOTALS = 17  # points of a curve of costs: each is composed by itself, in up to 0.1 s
# What matplotlib would write into a file besides the picture.
TRACES = {"png": ("Software",), "svg": ("Date", "Creator"),
          "pdf": ("CreationDate", "Creator", "Producer")}  # fmt: skip
LATTICE = 301  # points a side on which nearest centres are compared


def save_figure(ax: Any, path: str | os.PathLike[str], dpi: float = 100) -> None:
    """Write the figure of these axes to a file; its extension is the format, such as .png or .svg.

    The file is written completely or not at all, and contains neither dates nor versions.

    Parameters
    ----------
    ax : matplotlib axes
        The axes that a function of this module returned.
    path : str or path-like
        The file; an existing one is replaced.
    dpi : float, default=100
        The resolution of a format with pixels, in dots per inch.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privfit import Budget, Event
    >>> from privfit.report.plotting import draw_composition, save_figure
    >>> ax = draw_composition(Event("selection", 0.1, 20), Budget(1.0, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(ax, Path(folder, "cost.svg"))
    ...     Path(folder, "cost.svg").exists()
    True
    """
    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in ax.figure.canvas.get_supported_filetypes():
        raise FileError(
            f"path ({os.fspath(path)!r}) must end in a known format; pass a name such as plot.png"
        )
    write_atomically(path, rendered(ax.figure, kind, dpi))


def rendered(figure: Any, kind: str, dpi: float) -> bytes:
    """A figure as the bytes of a file of this format."""
    drawn = io.BytesIO()
    unsaid = dict.fromkeys(TRACES[kind]) if kind in TRACES else None
    figure.savefig(drawn, format=kind, dpi=dpi, metadata=unsaid)
    return drawn.getvalue()


# ---------------------------------------------------------------------------------- accuracy curves


def draw_sweep(sweeps: Any, ax: Any = None) -> Any:
    """Draw what was measured against epsilon, with 95 % intervals and the references.

    Parameters
    ----------
    sweeps : Sweep, Sweeps or dict of str to Sweep
        One curve each. They must have measured the same thing.
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, sweep
    >>> from privfit.report.plotting import draw_sweep
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = sweep(KMeans(2, domain=(-1, 1)), X, None, [0.1, 1.0], public=True, seeds=2)
    >>> draw_sweep(found).get_xlabel()
    'epsilon'
    """
    curves = named(sweeps, lambda sweep: sweep.name)
    measures = {sweep.measure for sweep in curves.values()}
    if len(measures) > 1:
        raise DeclarationError(
            f"sweeps (of {', '.join(sorted(measures))}) must measure the same thing; draw others "
            f"on their own axes"
        )
    ax = axes(ax)
    for i, (name, sweep) in enumerate(curves.items()):
        rows = sweep.rows
        spread = [row.half_width for row in rows]
        ax.errorbar(
            [row.setting for row in rows],
            [row.mean for row in rows],
            yerr=None if np.isnan(spread).all() else spread,
            label=short(name),
            capsize=3,
            elinewidth=1,
            **style(i),
        )
    _draw_references(ax, curves)
    _set_epsilon_axis(ax, {row.setting for sweep in curves.values() for row in sweep.rows})
    deltas = {sweep.delta for sweep in curves.values()} - {0.0}
    at = f", at delta {joined(deltas)}" if deltas else ""
    measure = measures.pop()
    ax.set_xlabel(f"epsilon{at}")
    ax.set_ylabel(UNITS.get(measure, measure))
    finish(ax)
    return ax


def _draw_references(ax: Any, curves: Mapping[str, Any]) -> None:
    """Level lines; those that several curves share are drawn once."""
    owners: dict[tuple[str, float], list[int]] = {}
    for i, sweep in enumerate(curves.values()):
        for row in sweep.reference_rows:
            owners.setdefault((row.setting, row.mean), []).append(i)
    names, kinds = list(curves), list(dict.fromkeys(kind for kind, _ in owners))
    for (kind, level), own in owners.items():
        shared = len(own) == len(curves)
        whose = "" if shared else f": {', '.join(short(names[i], LONGEST_TICK) for i in own)}"
        ax.axhline(
            level,
            **QUIET if shared else {**QUIET, "color": COLOURS[own[0] % len(COLOURS)]},
            linestyle=(LONG_DASHES, DOTS)[kinds.index(kind) % 2],
            label=f"{kind}{whose}",
        )


def _set_epsilon_axis(ax: Any, epsilons: set[float]) -> None:
    """A logarithmic axis, labelled at the epsilons tried as far as there is room."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    places = sorted(epsilons)
    if not places:
        return
    room = math.log(places[-1] / places[0]) / 11
    shown = places[:1]
    for place in places[1:]:
        if math.log(place / shown[-1]) >= room:
            shown.append(place)
    ax.set_xticks(shown, [f"{place:g}" for place in shown])
    ax.xaxis.set_minor_locator(NullLocator())


# --------------------------------------------------------------------------------------- ROC curves


def draw_roc(curves: Any, ax: Any = None, *, exact: tuple[Floats, Floats] | None = None) -> Any:
    """Draw one or more released ROC curves, with the diagonal of chance and areas in the legend.

    Parameters
    ----------
    curves : RocCurve or dict of str to RocCurve
        What `roc_curve` released.
    ax : matplotlib axes, optional
        By default those of a new figure.
    exact : (false positive rates, true positive rates), optional
        A curve for comparison that is **not private**; `RocCurve.plot` makes it, with a warning.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> from privfit.report.plotting import draw_roc
    >>> curve = roc_curve(np.repeat([0, 1], 2000), np.linspace(0, 1, 4000), epsilon=1.0)
    >>> draw_roc(curve).get_xlabel()
    'false positive rate'
    """
    by_name = named(curves, lambda curve: f"private, epsilon {curve.release.epsilon:g}")
    ax = axes(ax, (4.8, 5.2))
    ax.plot([0, 1], [0, 1], linestyle=DOTS, label="chance", **QUIET)
    if exact is not None:
        ax.plot(*exact, label="true (not private)", **QUIET)
    for i, (name, curve) in enumerate(by_name.items()):
        # Markers in between would hide the steps of a curve.
        look = {**style(i), "marker": None}
        ax.plot(curve.fpr, curve.tpr, label=f"{short(name)} (area {curve.auc:.3f})", **look)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    finish(ax, columns=1)
    return ax


# ----------------------------------------------------------------------------------------- clusters


def draw_clusters(
    model: Any, ax: Any = None, columns: Sequence[Any] | None = None, public_points: Any = None
) -> Any:
    """Draw released centres, and the part of the declared domain that is nearest to each.

    Parameters
    ----------
    model : fitted KMeans or KMedian
        Centres are numbered as in `predict`. If the release has noisy sizes of the clusters, as
        that of noisy Lloyd does, the area of a centre's mark is proportional to its size.
    ax : matplotlib axes, optional
        By default those of a new figure.
    columns : two names or positions, optional
        By default the first two columns that are numbers. With more than two columns, the regions
        are those of these two alone.
    public_points : records, optional
        Drawn as dots. They must be *public*: everybody who sees the plot sees them.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.report.plotting import draw_clusters
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> ax = draw_clusters(KMeans(2, 1.0, domain=(-1, 1)).fit(X))
    >>> bool(ax.get_xlim()[0] <= -1)
    True
    """
    view = _View.of(model, columns)
    ax = axes(ax, (5.6, 5.2))
    outline = ax.fill(*view.shown(view.outline()).T, facecolor="none", edgecolor="0.2")[0]
    if public_points is not None:
        points = view.shown(view.coded(public_points))
        ax.plot(*points.T, ".", color="0.7", markersize=3, label="public points", zorder=BEHIND)
    _draw_borders(ax, view, outline)
    _draw_centers(ax, view.shown(view.centers), _released_sizes(getattr(model, "release_", None)))
    _frame(ax, view)
    finish(ax)
    return ax


def _draw_centers(ax: Any, places: Floats, sizes: Floats | None) -> None:
    """Marks with their numbers; areas are in points squared."""
    from matplotlib.patheffects import withStroke

    label, areas = "released centre", np.full(len(places), 45.0)
    if sizes is not None:
        label, areas = f"{label}, its area by noisy size", 300 * sizes / max(sizes.max(), 1.0)
    ax.scatter(*places.T, areas, color=COLOURS[0], label=label, zorder=3)
    halo = withStroke(linewidth=2, foreground="white")
    for j, (place, radius) in enumerate(zip(places, np.sqrt(areas / math.pi), strict=True)):
        ax.annotate(
            str(j), place, (radius, radius), textcoords="offset points", fontsize=9, zorder=4,
            path_effects=[halo],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _View:
    """Two columns of a clustering: coded centres, and how they are shown."""

    domain: Domain
    pair: tuple[int, int]
    names: tuple[str, str]
    metric: str
    centers: Floats  # (k, 2)
    offset: Floats  # (2,): shown = offset + scale * coded
    scale: Floats

    @classmethod
    def of(cls, model: Any, columns: Sequence[Any] | None) -> _View:
        centers, domain = getattr(model, "cluster_centers_", None), getattr(model, "domain_", None)
        if centers is None or not isinstance(domain, Domain):
            raise DeclarationTypeError(
                f"model ({type(model).__name__}) must be a fitted KMeans or KMedian with a "
                "domain; fit it first"
            )
        names = domain.coded_names(getattr(model, "feature_names_in_", None))
        if len(names) < 2:
            raise DeclarationError("model must have two columns or more; there is no plane to draw")
        i, j = _two_columns(columns, names, domain)
        # A number of a schema is coded as [0, 1]; levels and other columns are shown as they are.
        ends = np.array([domain.shares.get(axis, (0.0, 1.0)) for axis in (i, j)], dtype=np.float64)
        offset, scale = ends[:, 0], ends[:, 1] - ends[:, 0]
        metric = getattr(model, "metric_", "l2")
        shown = np.asarray(centers, dtype=np.float64)[:, [i, j]]
        return cls(domain, (i, j), (names[i], names[j]), metric, shown, offset, scale)

    def shown(self, coded: Floats) -> Floats:
        """(n, 2): points in the units of the columns."""
        return self.offset + self.scale * coded

    def coded(self, points: Any) -> Floats:
        """(n, 2): these columns of records, in the coding of the domain."""
        return self.domain.coordinates(points, self.pair)

    @property
    def whole(self) -> bool:
        """Whether there are no other columns."""
        return self.domain.width == 2

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Low and high ends of both columns."""
        return self.domain.low[list(self.pair)], self.domain.high[list(self.pair)]

    def outline(self) -> Floats:
        """(m, 2): corners of the region that the domain allows for the two columns."""
        return self.domain.outline(*self.pair)

    def distances(self, x: Floats, y: Floats) -> Floats:
        """(k, m, m): distances of a lattice to each centre, by the two columns; squared for l2."""
        across, up = (
            np.abs(axis - center[:, None])
            for axis, center in ((x, self.centers[:, 0]), (y, self.centers[:, 1]))
        )
        power = 1 if self.metric == "l1" else 2
        return across[:, None, :] ** power + up[:, :, None] ** power


def _two_columns(columns: Any, names: list[str], domain: Domain) -> tuple[int, int]:
    """Positions of the two requested columns."""
    if columns is None:
        numbers = list(domain.shares)
        first, second = numbers[:2] if len(numbers) > 1 else (0, 1)
        return first, second
    found = [
        names.index(column) if column in names else column
        for column in ([] if isinstance(columns, str) else columns)
    ]
    inside = all(is_whole(j) and 0 <= j < len(names) for j in found)
    if len(found) != 2 or not inside or found[0] == found[1]:
        raise DeclarationError(
            f"columns ({columns!r}) must be two different columns; pass two of {names[:12]}, or "
            f"positions below {len(names)}"
        )
    return int(found[0]), int(found[1])


def _draw_borders(ax: Any, view: _View, outline: Any) -> None:
    """The lines on which two centres are equally near, within the domain."""
    from contourpy import contour_generator
    from matplotlib.collections import LineCollection

    (left, bottom), (right, top) = view.bounds
    x, y = np.linspace(left, right, LATTICE), np.linspace(bottom, top, LATTICE)
    apart = view.distances(x, y)
    lines: list[Floats] = []
    if len(apart) > 1:
        nearest, second = np.partition(apart, 1, axis=0)[:2]
        for own in apart:
            # How much nearer than all others: zero on the border. Differences of squared distances
            # are linear, so that borders are exact between the points of the lattice.
            lead = np.where(own == nearest, second - own, nearest - own)
            found: Any = contour_generator(x, y, lead).lines(0.0)
            lines += found
    how = "equally near" if view.whole else "equally near, by these two columns"
    borders = LineCollection(
        [view.shown(line) for line in lines], colors="0.6", linewidths=1, label=how
    )
    borders.set_clip_path(outline)
    ax.add_collection(borders, autolim=False)


def _released_sizes(release: Release | None) -> Floats | None:
    """Noisy sizes of the clusters, if they were released for exactly these centres."""
    parameters: Mapping[str, Any] = {} if release is None else release.parameters
    if "trace" not in parameters or "postprocessed" in parameters:
        return None
    return np.maximum(np.asarray(parameters["trace"]["counts"], dtype=np.float64)[-1], 0.0)


def _frame(ax: Any, view: _View) -> None:
    """Limits slightly beyond the domain, with equal scales on both axes."""
    low, high = (view.shown(end) for end in view.bounds)
    margin = 0.02 * (high - low)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])
    wide, tall = np.subtract(*view.bounds[::-1])
    if 1 / 3 <= wide / tall <= 3:
        ax.set_aspect(view.scale[0] / view.scale[1])
    for axis, name in ((ax.xaxis, view.names[0]), (ax.yaxis, view.names[1])):
        axis.set_label_text(short(name))
        axis.set_major_formatter("{x:g}")  # no power of ten in a corner
    for spine in ax.spines.values():  # the domain has an outline of its own
        spine.set_visible(False)


# ------------------------------------------------------------------------------------------- budget


def draw_budget(spent: Any, ax: Any = None) -> Any:
    """Draw how a budget was spent.

    Parameters
    ----------
    spent : Ledger, Release, or an object with a release
        For a ledger: the cost of each entry, and what is left. Grants for disjoint groups of
        records start at the same place, since they do not add up. For a `Release`, the `Found` of a
        search or a fitted estimator: the cost of its draws so far, composed tightly, next to their
        plain sum.
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> from privfit import Ledger
    >>> from privfit.report.plotting import draw_budget
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> grant = ledger.reserve(0.4, name="first fit")
    >>> ax = draw_budget(ledger)
    >>> len(ax.figure.axes) > 0
    True
    """
    if isinstance(spent, Ledger):
        return _draw_ledger(spent, ax)
    release = spent
    for name in ("release_", "release"):  # a fitted estimator's; that of `Found` or `RocCurve`
        release = getattr(release, name, release)
    if not isinstance(release, Release):
        raise DeclarationTypeError(
            f"spent ({type(spent).__name__}) must be a Ledger or have a release; pass "
            "model.release_, as a path or its generations do not say what a draw costs"
        )
    path = getattr(spent, "path", None)
    return _draw_run(release, len(path.generations) if path is not None else 0, ax)


def _draw_run(release: Release, generations: int, ax: Any) -> Any:
    ax = axes(ax)
    total = sum(event.count for event in release.events)
    draws = sorted({round(share * total) for share in np.linspace(0, 1, DRAWN_TOTALS)})
    runs = [list(_first(release.events, count)) for count in draws]
    tight = [compose(run, release.delta) if run else 0.0 for run in runs]
    plain = [sum(event.count * _alone(event, release) for event in run) for run in runs]
    promise = f"promised: epsilon {release.epsilon:.4g}"
    ax.axhline(release.epsilon, linestyle=LONG_DASHES, label=promise, **QUIET)
    kind = "plain sum, with nothing to save"
    if not np.allclose(plain, tight, rtol=1e-3):
        kind = "tight composition"
        ax.plot(draws, plain, label=f"plain sum: {plain[-1]:.4g} in the end", **style(1))
    ax.plot(draws, tight, label=f"{kind}: {tight[-1]:.4g} in the end", **style(0))
    one_each = generations == total
    many = f", in {generations} generations" if generations else ""
    ax.set_xlabel("generation" if one_each else f"draws from the records{many}")
    ax.set_ylabel(f"epsilon spent, at delta {release.delta:g}")
    ax.set(xlim=(0, 1.02 * max(total, 1)), ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    finish(ax)
    return ax


def _alone(event: Event, release: Release) -> float:
    """Epsilon of one draw by itself; Gaussian ones get equal shares of the delta that is left."""
    if event.kind != "gaussian":
        return event.parameter
    left = release.delta - sum(other.count * other.delta for other in release.events)
    sharers = sum(other.count for other in release.events if other.kind == "gaussian")
    return gaussian_total(event.parameter, left / sharers)


def _first(events: Iterable[Event], draws: int) -> Iterable[Event]:
    """The events of the first draws."""
    for event in events:
        count = min(event.count, draws)
        if count:
            yield replace(event, count=count)
        draws -= count


@dataclass(frozen=True)
class _Bar:
    """A ledger's entry: where it starts in the budget, and its cost."""

    group: str
    name: str
    start: float
    budget: Budget


def _bars(ledger: Ledger) -> list[_Bar]:
    """Entries for all records first; each group starts where those end."""
    groups = dict.fromkeys(["", *(group for group, _, _ in ledger.entries)])
    bars, common = [], 0.0
    for group in groups:
        start = common
        for own, name, budget in ledger.entries:
            if own == group:
                bars.append(_Bar(group, name, start, budget))
                start += budget.epsilon
        common = common if group else start
    return bars


def _draw_ledger(ledger: Ledger, ax: Any) -> Any:
    bars = _bars(ledger)
    ax = axes(ax, (6.4, 1.6 + 0.28 * len(bars)))
    groups = list(dict.fromkeys(bar.group for bar in bars))
    whole, spent, left = ledger.budget, ledger.spent, ledger.remaining
    for i, group in enumerate(groups):
        rows = [row for row, bar in enumerate(bars) if bar.group == group]
        ax.barh(
            rows,
            [bars[row].budget.epsilon for row in rows],
            left=[bars[row].start for row in rows],
            label=short(group) if group else "all records",
            color=COLOURS[(0, 1, 6, 3, 4, 5)[i % 6]],
            hatch=HATCHES[i % len(HATCHES)],
            edgecolor="white",
            height=0.7,
        )
    ax.barh(len(bars), left.epsilon, left=spent.epsilon, height=0.7, facecolor="none",
            edgecolor="0.3", linestyle="--")  # fmt: skip
    sizes = [bar.budget.epsilon for bar in bars] + [left.epsilon]
    ends = [bar.start + bar.budget.epsilon for bar in bars] + [whole.epsilon]
    for row, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        ax.annotate(f"{size:.3g}", (end, row), (4, 0), textcoords="offset points", va="center",
                    fontsize=9)  # fmt: skip
    ax.axvline(whole.epsilon, color="0.3", linewidth=1)
    ax.set_yticks(range(len(bars) + 1), [*(short(bar.name, LONGEST_TICK) for bar in bars), "left"])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, whole.epsilon * 1.1 or 1.0)
    ax.set_xlabel(
        f"epsilon, of {whole.epsilon:g} (delta: {spent.delta:g} of {whole.delta:g} spent)"
    )
    finish(ax, legend=any(groups))
    return ax


# -------------------------------------------------------------------------------------- composition


def draw_composition(
    event: Event, budget: Budget, ax: Any = None, methods: Sequence[str] | None = None
) -> Any:
    """Draw what more and more equal releases cost, by each method of composition.

    Parameters
    ----------
    event : Event
        The release, and up to which number it is made (its count).
    budget : Budget
        Its delta is that of all costs, and its epsilon a line; the legend says how many releases
        each method allows below it.
    ax : matplotlib axes, optional
        By default those of a new figure.
    methods : sequence of str, optional
        Methods of `compose`; by default all that apply to the event. With delta = 0 all of them
        mean 'naive'.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> from privfit import Budget, Event
    >>> from privfit.report.plotting import draw_composition
    >>> ax = draw_composition(Event("selection", 0.1, 20), Budget(1.0, 1e-6))
    >>> len(ax.lines) > 1
    True
    """
    if not isinstance(event, Event) or not isinstance(budget, Budget):
        raise DeclarationTypeError(
            f"event ({type(event).__name__}) must be an Event, and budget "
            f"({type(budget).__name__}) a Budget; pass Event('selection', 0.05, 100) and "
            "Budget(1.0, 1e-6)"
        )
    if methods is None:
        known = [method for method in reversed(METHODS) if applies(method, event.kind)]
        methods = known if budget.delta else ["naive"]
    costs = {method: partial(_cost_of_first, event, budget.delta, method) for method in methods}
    counts = sorted({round(share * event.count) for share in np.linspace(0, 1, DRAWN_TOTALS)})
    ax = axes(ax)
    ax.axhline(
        budget.epsilon, linestyle=LONG_DASHES, label=f"budget: epsilon {budget.epsilon:.4g}",
        **QUIET,
    )  # fmt: skip
    ends = [2 * budget.epsilon]
    for i, (method, cost) in enumerate(costs.items()):
        within = _most_within(cost, budget.epsilon, event.count)
        shown = [cost(n) for n in counts]
        behind = method == "naive" and len(costs) > 1
        look = {**QUIET, "linestyle": DOTS} if behind else style(i)
        ax.plot(counts, shown, label=f"{method}: {within:,} fit", **look)
        ends.append(shown[-1] if math.isfinite(shown[-1]) else 0.0)
    released = "selections" if event.kind == "selection" else f"{event.kind} releases"
    ax.set_xlabel(f"number of {released} of size {event.parameter:g}")
    ax.set_ylabel(f"epsilon of all of them, at delta {budget.delta:g}")
    # up to where the best of them ends: others leave the picture at its upper edge
    ax.set(xlim=(0, 1.02 * event.count), ylim=(0, max(ends[0], 1.5 * min(ends[1:], default=0.0))))
    ax.xaxis.get_major_locator().set_params(integer=True)
    finish(ax)
    return ax


def _cost_of_first(event: Event, delta: float, method: str, count: int) -> float:
    return compose([replace(event, count=count)], delta, method) if count else 0.0


def _most_within(cost: Callable[[int], float], epsilon: float, most: int) -> int:
    """The largest number up to `most` whose cost, an increasing function, is at most epsilon."""
    if cost(most) <= epsilon:
        return most
    fits, fails = 0, most
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle) <= epsilon else (fits, middle)
    return fits
