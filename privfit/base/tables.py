"""Results as tables: of text, or of pandas, which is imported when a table is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from privfit.base.errors import MissingExtraError

__all__ = ["Frame", "aligned", "as_frame"]

Frame: TypeAlias = Any  # pandas.DataFrame, where pandas is installed


def as_frame(
    columns: Mapping[str, Any],
    index: str | None = None,
    *,
    what: str = "to_frame",
    instead: str = "use to_dict()",
) -> Frame:
    """A pandas DataFrame with these columns, one of which may be its index.

    Without pandas an error says what needs it, and what to do instead.

    >>> from privfit.base.tables import as_frame
    >>> as_frame({"epsilon": [0.5, 1.0]}).shape
    (2, 1)
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingExtraError(
            f"{what} needs pandas; run pip install pandas, or {instead}"
        ) from None
    frame = DataFrame(dict(columns))
    return frame if index is None else frame.set_index(index)


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column left-aligned, the others right-aligned.

    >>> from privfit.base.tables import aligned
    >>> aligned(("draws", "count"), [("gaussian", "32")])
    ['draws     count', 'gaussian     32']
    """
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rest = [[cell.rjust(w) for cell, w in zip(line, widths, strict=True)][1:] for line in lines]
    return [
        "  ".join([line[0].ljust(widths[0]), *cells]).rstrip()
        for line, cells in zip(lines, rest, strict=True)
    ]
