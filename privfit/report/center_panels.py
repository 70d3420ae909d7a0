"""A heat map of released centres, for clusters of many columns: rows are columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.base.validation import is_whole
from privfit.clustering.units import in_units
from privfit.domains import Domain
from privfit.report.axes import COLOURS, LONGEST_TICK, axes, short

__all__ = ["PLANE", "draw_centers"]

PLANE = 3  # encoded columns up to which a plane with regions shows more than a heat map
MOST_ROWS = 40  # columns that are drawn unless some are asked for
MOST_CELLS = 16  # centres whose values are written into the cells
ROW, CENTRE = 0.26, 0.62  # inches
ABOVE, GAP = 3.0, 0.25  # rows that bars of sizes take above the map, and between the two
LEVEL = 0.9  # of the intervals of sizes
WHISKERS = {"elinewidth": 1, "capsize": 2, "ecolor": "0.3"}


def draw_centers(model: Any, ax: Any = None, columns: Sequence[Any] | None = None) -> Any:
    """Draw released centres as a heat map: a row for each column, a column for each centre.

    Parameters
    ----------
    model : fitted KMeans or KMedian
        Centres are numbered as in `predict`. Colours show where in the declared range of its column
        a centre is, and the share of a category's level; numbers are in the units of the table. If
        the release has noisy sizes of the clusters, bars above show them with 90 % intervals of
        their noise.
    ax : matplotlib axes, optional
        By default those of a new figure.
    columns : sequence of names or positions, optional
        The encoded columns to draw; by default all, and of more than 40 those in which the centres
        differ most.

    Returns
    -------
    matplotlib axes
        The axes of the heat map.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.report.plotting import draw_centers
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> ax = draw_centers(KMeans(3, 1.0, domain=(-1, 1)).fit(X))
    >>> len(ax.images)
    1
    """
    values, heights, names = _values_of(model)
    rows = _rows_of(columns, names, heights)
    k, left_out = heights.shape[1], len(names) - len(rows)
    ax = axes(ax, (2.6 + CENTRE * max(k, 3), 1.8 + ROW * (len(rows) + ABOVE)))
    shown = ax.imshow(heights[rows], cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    if k <= MOST_CELLS:
        _write_values(ax, values[rows], heights[rows])
    more = f"; {left_out} columns that differ less are left out" if left_out else ""
    ticks, labels = [*range(len(rows))], [short(names[row], LONGEST_TICK) for row in rows]
    ax.set_xticks(range(k), [str(i) for i in range(k)], fontsize=8)
    ax.set_xlabel(f"centre{more if columns is None else ''}", fontsize=9)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = ax.figure.colorbar(shown, ax=ax, shrink=min(0.8, 6 / len(rows)), pad=0.02)
    bar.set_label("place in the declared range, or share", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    if _draw_sizes(ax, model):
        ax.set_ylim(len(rows) - 0.5, -0.5 - ABOVE)
        ticks, labels = [-0.5 - ABOVE / 2, *range(len(rows))], ["noisy size", *labels]
    ax.set_yticks(ticks, labels, fontsize=8)
    return ax


def _values_of(model: Any) -> tuple[Floats, Floats, list[str]]:
    """(d, k) values in the units of the table, the same as shares of their range, and names."""
    centers, domain = getattr(model, "cluster_centers_", None), getattr(model, "domain_", None)
    if centers is None or not isinstance(domain, Domain):
        raise DeclarationTypeError(
            f"model ({type(model).__name__}) must be a fitted KMeans or KMedian with a domain; fit "
            "it first"
        )
    units = in_units(domain, centers, getattr(model, "feature_names_in_", None))
    values = np.array([*units.values()])
    low, high = (np.array(end, dtype=np.float64) for end in (domain.low, domain.high))
    for row, (first, last) in domain.shares.items():
        low[row], high[row] = first, last
    for group in domain.groups:
        low[group], high[group] = 0.0, 1.0
    wide = np.where(high > low, high - low, 1.0)
    return values, np.clip((values - low[:, None]) / wide[:, None], 0.0, 1.0), list(units)


def _rows_of(columns: Any, names: list[str], heights: Floats) -> list[int]:
    """The positions of the rows that are drawn, in order."""
    if columns is None:
        apart = heights.max(axis=1) - heights.min(axis=1)
        return sorted(np.argsort(-apart, kind="stable")[:MOST_ROWS].tolist())
    listed = [] if isinstance(columns, str) else list(columns)
    found = [names.index(one) if one in names else one for one in listed]
    if not found or not all(is_whole(row) and 0 <= row < len(names) for row in found):
        raise DeclarationError(
            f"columns ({columns!r}) must be a list of encoded columns; pass some of {names[:12]}, "
            f"or positions below {len(names)}"
        )
    return [int(row) for row in found]


def _write_values(ax: Any, values: Floats, heights: Floats) -> None:
    for (row, centre), value in np.ndenumerate(values):
        dark = heights[row, centre] > 0.6
        ax.text(centre, row, f"{value:.3g}", ha="center", va="center", fontsize=7,
                color="white" if dark else "0.1")  # fmt: skip


def _draw_sizes(ax: Any, model: Any) -> bool:
    """Bars of noisy sizes above the map, if sizes were released, with their whiskers."""
    sizes = getattr(model, "cluster_sizes_", None)
    if sizes is None:
        return False
    ends = np.maximum(model.cluster_size_intervals(LEVEL), 0.0)
    unit = (ABOVE - 2 * GAP) / max(float(ends.max()), 1.0)  # rows of the map for one record
    tall = np.maximum(np.asarray(sizes, dtype=np.float64), 0.0)
    spread = np.abs(ends.T - tall) * unit
    foot = -0.5 - GAP  # rows are counted downwards
    ax.bar(range(len(tall)), -tall * unit, 0.7, bottom=foot, color=COLOURS[0],
           yerr=spread[::-1], error_kw=WHISKERS)  # fmt: skip
    if len(tall) <= MOST_CELLS:
        for centre, size in enumerate(sizes):
            ax.text(centre, foot - 0.1, f"{size:.0f}", ha="center", va="bottom", fontsize=7,
                    color="white" if tall[centre] * unit > 0.8 else "0.1")  # fmt: skip
    return True
