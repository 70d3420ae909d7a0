"""Plots of released values, in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from privfit.base import extras
from privfit.base.errors import InputError
from privfit.commands.outputs import claim
from privfit.report.plotting import rendered

__all__ = ["claim_picture", "claim_picture_if"]

Draw: TypeAlias = Callable[[Any], Any]  # on these axes or others of its own, which it returns
Write: TypeAlias = Callable[[Draw], None]

FORMATS = ("png", "svg", "pdf")


@contextmanager
def claim_picture(path: str) -> Iterator[Write]:
    """Check that a plot can be drawn and written; yields the function that draws it."""
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InputError(f"--plot ({path!r}) must end in .png, .svg or .pdf; pass such a path")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"a plot needs matplotlib; run {extras.install('plot')}") from None
    with claim(path) as file:

        def write(draw: Draw) -> None:
            figure = Figure(figsize=(6.4, 4.8), layout="constrained")
            file.write(rendered(draw(figure.subplots()).figure, kind, dpi=150))

        yield write


def claim_picture_if(path: str | None) -> AbstractContextManager[Write | None]:
    """A plot, if a path was given."""
    return nullcontext() if path is None else claim_picture(path)
