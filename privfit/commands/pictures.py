"""Pictures of released values, in files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from privfit.commands.console import InputError
from privfit.commands.outputs import claim

__all__ = ["claim_picture"]

Draw: TypeAlias = Callable[[Any], object]  # on matplotlib's axes

FORMATS = ("png", "svg", "pdf")


@contextmanager
def claim_picture(path: str | None) -> Iterator[Callable[[Draw], None] | None]:
    """Make sure that a picture can be drawn and written; what is given writes what it is told."""
    if path is None:
        yield None
        return
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InputError(f"--plot ({path!r}) must end in .png, .svg or .pdf; pass such a name")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "privfit[plot]"') from None
    with claim(path) as file:

        def write(draw: Draw) -> None:
            figure, content = Figure(figsize=(6.4, 4.8), layout="constrained"), io.BytesIO()
            draw(figure.subplots())
            figure.savefig(content, format=kind, dpi=150)
            file.write(content.getvalue())

        yield write
