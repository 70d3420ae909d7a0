"""What a schema declares of each column, in a few words for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privfit.domains.columns import Column

__all__ = ["described", "kind_of"]

MOST_VALUES = 8  # that are listed of a column


def kind_of(column: Column) -> str:
    """What the cells of a column are."""
    return "number" if column.holds_numbers else "category"


def described(column: Column) -> str:
    """What the cells of a column may be.

    >>> from privfit import Categorical, Numeric
    >>> from privfit.domains.described import described
    >>> described(Numeric(17, 90)), described(Categorical(["f", "m"], other=True))
    ('17 to 90', 'f, m, other')
    >>> described(Numeric(0, 9, bins=[2, 5])), described(Numeric()), described(Categorical())
    ('0 to 9, cut at 2, 5', 'any number, to be bought', 'to be bought')
    """
    return _number(column) if column.holds_numbers else _category(column)


def _number(column: Any) -> str:
    parts = [f"{column.low:g} to {column.high:g}" if column.has_range else "any number"]
    if column.is_blank:
        parts.append("cuts to be bought" if column.has_range else "to be bought")
    elif isinstance(column.bins, tuple):
        parts.append(f"cut at {_listed([f'{cut:.6g}' for cut in column.bins])}")
    elif column.bins:
        parts.append(f"{column.bins} equal bins")
    if column.scale:
        parts.append("cut at a public scale")
    if column.missing:
        parts.append("missing values are a level")
    elif column.fill is not None:
        parts.append(f"missing values are {column.fill:g}")
    return ", ".join(parts)


def _category(column: Any) -> str:
    if column.is_blank:
        return "names to be bought" if column.names else "to be bought"
    if column.values is not None:
        return _listed([*map(str, column.values), *["other"] * column.other])
    return f"{len(column.buckets)} buckets of hashed values, other"


def _listed(values: Sequence[str]) -> str:
    """Values with commas, the first few of many."""
    if len(values) <= MOST_VALUES:
        return ", ".join(values)
    return f"{', '.join(values[: MOST_VALUES - 1])} and {len(values) - MOST_VALUES + 1} more"
