"""Columns of a schema: numbers in a declared range, and values from a declared list.

A column tells how its cells are coded (`width`, `names`, `code`), what 0 and 1 stand for where a
number is coded as a share of its range, and writes itself as a table of plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.domains.grid import has_ordinary_size
from privfit.domains.plain import plain_number
from privfit.domains.reading import LevelReader, NumberReader, canonical, positions, through_float32

__all__ = ["Categorical", "Column", "Numeric", "columns_from"]


@dataclass(frozen=True)
class Numeric:
    """A numeric column with a declared range; coded as [0, 1], or one-hot over bins.

    `bins` is a number of equal bins, or declared cut points: ``bins=[25, 35, 50]`` makes four. Bins
    let a linear model bend, and tame columns with long tails. `fill` is the declared stand-in for
    missing values and for cells that are no numbers; without it a table that has some is refused.
    Numbers are rounded to float32, so that they are the same in every kind of table.

    >>> from privfit import Numeric, Schema
    >>> Schema({"age": Numeric(17, 90), "gain": Numeric(0, 99_999, bins=[1, 1000])}).width
    4
    """

    low: float
    high: float
    bins: int | Sequence[float] = 0
    fill: float | None = None

    holds_numbers: ClassVar[Literal[True]] = True  # cells are numbers in a range
    choices: ClassVar[None] = None  # any number of the range

    def __post_init__(self) -> None:
        self._check_range()
        if isinstance(self.bins, np.ndarray):
            object.__setattr__(self, "bins", self.bins.tolist())
        if isinstance(self.bins, Sequence) and not isinstance(self.bins, str):
            cuts = (self.low, *self.bins, self.high)
            if not all(map(is_finite, cuts)) or any(a >= b for a, b in pairwise(cuts)):
                raise DeclarationError(
                    f"bins ({self.bins!r}) must rise between low and high; pass cut points such as "
                    "bins=[25, 35, 50]"
                )
            object.__setattr__(self, "bins", tuple(float(cut) for cut in self.bins))
        elif not is_whole(self.bins) or self.bins < 0:
            raise DeclarationError(
                f"bins ({self.bins!r}) must be 0 or a positive number; pass bins=8"
            )
        if self.fill is not None and not is_finite(self.fill):
            raise DeclarationError(
                "fill must be a finite number; pass a declared value such as the middle"
            )

    def _check_range(self) -> None:
        if not (
            is_finite(self.low)
            and is_finite(self.high)
            and self.low < self.high
            and all(map(has_ordinary_size, (self.low, self.high, self.high - self.low)))
        ):
            raise DeclarationError(
                f"Numeric range ({self.low!r}, {self.high!r}) must be finite and rising; pass the "
                "documented Numeric(low, high)"
            )
        if not _float32_is_fine(self.low, self.high):
            raise DeclarationError(
                f"Numeric range ({self.low!r}, {self.high!r}) must be at least 4096 steps of "
                "float32 wide, to which numbers are rounded; subtract an offset first, or pass the "
                "column in units of ordinary size"
            )

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.bins) + 1 if isinstance(self.bins, Sequence) else max(self.bins, 1)

    @property
    def coded_range(self) -> tuple[float, float] | None:
        """What 0 and 1 stand for, where numbers are coded as shares; None where they have bins."""
        return None if self.bins else (self.low, self.high)

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns of a column with this name."""
        return [f"{name}[{i}]" for i in range(self.width)] if self.bins else [name]

    def code(self, cells: Any, name: str, reader: NumberReader) -> tuple[Any, Any]:
        """(n,) the encoded column of each cell, counted from the first, and its value in [0, 1]."""
        share = self.share(self._filled(reader.numbers(cells), name))
        return (self.place(share), 1.0) if self.bins else (0, share)

    def _filled(self, numbers: Floats, name: str) -> Floats:
        """The numbers, and the declared fill where a cell is missing or no number."""
        unknown = np.isnan(numbers)
        if not unknown.any():
            return numbers
        if self.fill is None:
            raise InputError(
                f"column {name!r} has missing values or cells that are no numbers; declare "
                "Numeric(low, high, fill=...), or fill them before"
            )
        return np.where(unknown, through_float32(self.fill), numbers)

    def share(self, numbers: Floats) -> Floats:
        """(x - low) / (high - low) of numbers that are float32, clipped to [0, 1]."""
        low, high = through_float32([self.low, self.high])
        return (np.clip(numbers, low, high) - low) / (high - low)

    def place(self, share: Floats) -> Integers:
        """The bin of each share of the range, in [0, 1]."""
        if isinstance(self.bins, Sequence):
            cuts = self.share(through_float32(self.bins))
            return np.searchsorted(cuts, share, side="right")
        return np.minimum(share * self.bins, self.bins - 1).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """What is declared, as JSON and TOML have it."""
        bins = self.bins
        declared: dict[str, Any] = {"low": plain_number(self.low), "high": plain_number(self.high)}
        if bins:
            declared["bins"] = list(bins) if isinstance(bins, Sequence) else int(bins)
        if self.fill is not None:
            declared["fill"] = plain_number(self.fill)
        return declared


def _float32_is_fine(low: float, high: float) -> bool:
    """Whether steps of float32 are at most 1/4096 of the range: those of the grid are no finer."""
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(np.float32(max(abs(low), abs(high))))
    return bool(4096 * float(step) <= high - low)  # false of infinity, too


@dataclass(frozen=True)
class Categorical:
    """A categorical column with declared values, coded one-hot.

    With `other` a last level takes unknown and missing values; without it a table that has some is
    refused. A value matches in whatever type it arrives: 1, 1.0, True, "1" and "1.0" are one
    category, and so are a date and its ISO text, which is how it is kept.

    >>> from privfit import Categorical, Schema
    >>> Schema({"sex": Categorical(["Female", "Male"], other=True)}).width
    3
    """

    values: Sequence[Any]
    other: bool = False

    holds_numbers: ClassVar[Literal[False]] = False  # cells are values from a list
    coded_range: ClassVar[None] = None  # levels are no shares of anything

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(_as_level, self.values)))
        if not self.values and not self.other:
            raise DeclarationError(
                "Categorical needs at least one value; pass the documented values"
            )
        assert len(self.positions) == len(self.values)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The canonical text of each value, and its level."""
        return positions(self.values, "Categorical values")

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.values) + self.other

    @property
    def choices(self) -> Sequence[Any] | None:
        """All values that a cell may have; None where unknown ones are taken, too."""
        return None if self.other else self.values

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns of a column with this name."""
        return [f"{name}={value}" for value in self.values] + [f"{name}=<other>"] * self.other

    def code(self, cells: Any, name: str, reader: NumberReader) -> tuple[Any, Any]:
        """(n,) the level of each cell, and its value 1; unknown ones go to the other level."""
        codes = LevelReader(self.positions).codes(cells)
        unknown = codes < 0
        if not unknown.any():
            return codes, 1.0
        if not self.other:
            raise InputError(
                f"column {name!r} has values that are not declared; declare them, or pass "
                "Categorical(values, other=True)"
            )
        return np.where(unknown, len(self.values), codes), 1.0

    def to_dict(self) -> dict[str, Any]:
        """What is declared, as JSON and TOML have it."""
        levels = list(self.values)
        _check_levels(levels)
        return {"values": levels, **({"other": True} if self.other else {})}


Column: TypeAlias = Numeric | Categorical


def _as_level(value: Any) -> Any:
    """A declared value; what JSON has no form for, such as a date, is its canonical text."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    text = canonical(value) if not isinstance(value, str | bool | int | float) else value
    return text if isinstance(text, str) else value


# ------------------------------------------------------------------------------------ plain values


def columns_from(tables: Any) -> dict[str, Column]:
    """The columns that a table of tables declares, as `to_dict` and TOML files have them."""
    if not isinstance(tables, dict):
        raise DeclarationError(
            f"columns ({tables!r}) must be a table of declared columns; pass [columns] and "
            "below it a line such as age = {low = 17, high = 90}"
        )
    return {name: _column_from(name, entry) for name, entry in tables.items()}


def _column_from(name: str, entry: Any) -> Column:
    keys = entry.keys() if isinstance(entry, dict) else set()
    numeric = {"low", "high"} <= keys <= {"low", "high", "bins", "fill"}
    if not numeric and not {"values"} <= keys <= {"values", "other"}:
        raise DeclarationError(
            f"column {name!r} ({entry!r}) must have low and high, or values; pass {{low = 17, "
            'high = 90}, perhaps with bins and fill, or {values = ["a", "b"]}, perhaps with other'
        )
    try:
        if numeric:
            return Numeric(**entry)
        _check_levels(**entry)
        return Categorical(**entry)
    except ValueError as error:
        raise DeclarationError(f"column {name!r}: {error}") from None


def _check_levels(values: Any, other: Any = False) -> None:
    """Refuse what TOML can hold but a level cannot be: a list, a date, NaN."""
    if not isinstance(values, list) or not all(
        isinstance(value, str | bool) or is_finite(value) for value in values
    ):
        raise DeclarationError(
            f'values ({values!r}) must be a list of texts or numbers; pass values = ["a", "b"]'
        )
    if not isinstance(other, bool):
        raise DeclarationError(f"other ({other!r}) must be true or false; pass other = true")
