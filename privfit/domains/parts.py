"""The declared columns of a domain, each with its place among the encoded ones.

All of this is public: it follows from the declarations alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from privfit.base.errors import InputError
from privfit.base.typing import Array, Floats
from privfit.domains.columns import Column
from privfit.domains.edges import range_texts
from privfit.domains.frames import length
from privfit.domains.reading import NumberReader

__all__ = ["Part"]

DECADES = 100.0  # widths of levels that differ by more are shown on a logarithmic scale


@dataclass(frozen=True)
class Part:
    """A declared column: its name, its encoded columns, and how its cells are read."""

    name: str
    column: Column
    place: slice
    missing: tuple[str, ...]  # texts that stand for a missing value
    one: int  # units of 1

    @property
    def kind(self) -> Literal["number", "category", "line"]:
        """Whether levels are ranges of numbers or categories; 'line' is a number without levels."""
        if not self.column.holds_numbers:
            return "category"
        return "number" if self.column.coded_range is None else "line"

    @property
    def has_missing(self) -> bool:
        """Whether missing values are a last level beside those of numbers."""
        return self.column.holds_numbers and bool(self.column.missing)

    @property
    def n_levels(self) -> int:
        """The number of levels, without that of missing values."""
        return self.column.width - self.has_missing

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each encoded level is called: a category, a range of numbers, or '<missing>'."""
        if self.kind == "number":
            return (*range_texts(self.edges), *(["<missing>"] * self.has_missing))
        named = self.column.level_names(self.name)
        return tuple(one.removeprefix(f"{self.name}=") for one in named)

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        """The same with the name of the column: 'job=nurse', 'age 25 to 30', 'age=<missing>'."""
        if self.kind != "number":
            return tuple(self.column.level_names(self.name))
        ranges = [f"{self.name} {one}" for one in self.names[: self.n_levels]]
        return (*ranges, *([f"{self.name}=<missing>"] * self.has_missing))

    @cached_property
    def edges(self) -> Floats:
        """The ends of a number's levels, in order: of its range, or infinite, and the cuts."""
        column: Any = self.column
        low, high = (column.low, column.high) if column.has_range else (-math.inf, math.inf)
        if self.kind == "line":
            return np.array([low, high], dtype=np.float64)
        if column.cuts is None:
            return np.linspace(low, high, self.n_levels + 1)
        return np.array([low, *column.cuts, high], dtype=np.float64)

    @cached_property
    def assumed(self) -> Floats:
        """(n_levels,): the part of all records that is assumed to be in each level.

        A number with `ranks` says it for its bins, and cells of a scale within a bin share its part
        equally; a category may say it for its buckets. Otherwise levels are assumed to be equally
        full.
        """
        column: Any = self.column
        equal = np.full(self.n_levels, 1 / self.n_levels)
        if not column.holds_numbers:
            return equal if column.assumed is None else np.array(column.assumed)
        if column.ranks is None:
            return equal
        bins = np.searchsorted(column.bins, self.edges[:-1], side="right")
        parts = np.diff([0.0, *column.ranks, 1.0]) / np.bincount(bins)
        return np.asarray(parts[bins])

    @property
    def focus(self) -> tuple[float, float] | None:
        """The first and the last declared cut of a column that is cut at a scale, too."""
        column: Any = self.column
        is_scaled = column.holds_numbers and column.scale is not None
        if not is_scaled or not isinstance(column.bins, tuple):
            return None
        return column.bins[0], column.bins[-1]

    @property
    def spans_decades(self) -> bool:
        """Whether some levels of a number are far wider than others."""
        widths = np.diff(self.edges[np.isfinite(self.edges)])
        return len(widths) > 1 and bool(widths.max() > DECADES * widths.min())

    def codes(self, cells: Any) -> Array:
        """The level of each cell; of a line, its fraction of the range in units."""
        n = length(cells)
        if n < 0:
            raise InputError(
                f"cells ({type(cells).__name__}) must be the cells of column {self.name!r}; pass "
                "a list or an array, and a single value as [value]"
            )
        return self.column.code(cells, n, self.name, NumberReader(self.missing), self.one)
