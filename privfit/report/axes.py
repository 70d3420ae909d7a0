"""What plots have in common: axes, colours, marks, names that fit, and legends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from privfit.base import extras
from privfit.base.errors import DeclarationError, MissingExtraError

__all__ = ["axes", "finish", "joined", "named", "short", "style"]

# Okabe and Ito's colours (2008), for the colour-blind, without yellow, which is faint on white;
# neighbours in this list differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#000000", "#CC79A7", "#009E73", "#D55E00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
HATCHES = ("", "//", "..", "\\\\", "xx", "oo")
BEHIND = 1  # where in the depth of a picture lies what is there for comparison
LONGEST_LABEL = 44
LONGEST_TICK = 28
LETTERS = 15.5  # of a legend, an inch


def axes(ax: Any, inches: tuple[float, float] = (6.4, 4.8)) -> Any:
    """These axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib  # noqa: F401
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(f"a plot needs matplotlib; run {extras.install('plot')}") from None
    figure = Figure(figsize=inches, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def named(given: Any, name_of: Any) -> dict[str, Any]:
    """Curves by name; a single one gets its own name."""
    if not isinstance(given, Mapping):
        return {name_of(given): given}
    if not given:
        raise DeclarationError("there must be a curve to draw; pass a mapping of names to curves")
    return {str(name): curve for name, curve in given.items()}


def style(i: int) -> dict[str, Any]:
    """The i-th colour, marker and line style."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
        "markersize": 5,
        "linewidth": 1.6,
    }


def short(text: str, longest: int = LONGEST_LABEL) -> str:
    """A name that fits, with its middle left out; no dollar sign starts a formula."""
    half = (longest - 3) // 2
    fitting = text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"
    return fitting.replace("$", r"\$")


def joined(numbers: Iterable[float]) -> str:
    """Numbers in order, with commas."""
    return ", ".join(f"{number:g}" for number in sorted(numbers))


def finish(ax: Any, legend: bool = True, columns: int | None = None) -> None:
    """A legend above the plot, where it hides nothing, and no more lines than needed."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if not legend:
        return
    shown = sorted(
        zip(*ax.get_legend_handles_labels(), strict=True), key=lambda entry: is_behind(entry[0])
    )
    handles, labels = zip(*shown, strict=True)
    if columns is None:
        widest = max(len(label) for label in labels) + 8
        inches = ax.figure.get_size_inches()[0] * ax.get_position().width
        columns = max(1, min(3, len(labels), int(LETTERS * inches * 1.1 / widest)))
    ax.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False,
        fontsize=9, borderaxespad=0.2,
    )  # fmt: skip


def is_behind(handle: Any) -> bool:
    """Whether an artist is there for comparison: those come last in a legend."""
    return getattr(handle, "zorder", BEHIND + 1) == BEHIND
