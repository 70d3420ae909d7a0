"""Marks of schemas: plain values that say which columns a release bought, carried along unread.

A domain never sees a budget, so a mark is opaque here but for the names of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite

__all__ = ["mark_for", "read_mark"]


def read_mark(said: Any, names: Iterable[str]) -> dict[str, Any]:
    """A mark as a file has it; without a list of columns it is of all `names`."""
    mark = {"columns": list(names), **said} if isinstance(said, Mapping) else {}
    columns = mark.pop("columns", None)
    plain = all(isinstance(one, str) or is_finite(one) for one in mark.values())
    if not isinstance(columns, list) or not all(isinstance(one, str) for one in columns):
        plain = False
    if not plain or not mark:
        raise DeclarationError(
            "bought must be a table of numbers, texts and a list of columns; pass it as "
            "learn_schema wrote it, or leave it out"
        )
    return {**mark, "columns": columns}


def mark_for(mark: Mapping[str, Any] | None, names: Iterable[str]) -> dict[str, Any] | None:
    """The same mark for a schema of these columns; None if it is of none of them."""
    if mark is None:
        return None
    known = set(names)
    kept = [name for name in mark["columns"] if name in known]
    return {**mark, "columns": kept} if kept else None
