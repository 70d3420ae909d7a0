"""Columns of a schema: numbers in a declared range, and values from a declared list.

A column knows how its cells are coded (`width`, `names`, `code`) and what 0 and 1 stand for if
numbers are coded as a fraction of the range. It can be written as a table of plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array, Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.domains.codes import level_type
from privfit.domains.grid import has_ordinary_size
from privfit.domains.plain import plain_number
from privfit.domains.reading import (
    Known,
    LevelReader,
    NumberReader,
    Steps,
    canonical,
    padded,
    positions,
    through_float32,
)

__all__ = ["Categorical", "Column", "Numeric", "columns_from"]

LARGEST = 0x7F800000  # bits of infinity in float32
MANY = 32  # cuts that are searched by halves


@dataclass(frozen=True)
class Numeric:
    """A numeric column with a declared range, coded as [0, 1] or one-hot over bins.

    Numbers are rounded to float32, so that they are the same in every kind of table, and clipped to
    the range.

    Parameters
    ----------
    low, high : float
        Declared range, from documentation and never from the data.
    bins : int or sequence of float, default=0
        Number of equal bins, or declared cut points: ``bins=[25, 35, 50]`` makes four bins. With
        bins, a linear model can be non-linear in the column, and long tails do less harm. By
        default the column is a single number in [0, 1].
    fill : float or None, default=None
        Declared replacement for missing values and for cells that are not numbers. If None, a table
        that has such cells is refused.

    See Also
    --------
    Categorical : A column of declared values.
    Schema : The domain that columns make up.

    Examples
    --------
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
                    f"bins ({self.bins!r}) must increase between low and high; pass cut points "
                    "such as bins=[25, 35, 50]"
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
                f"Numeric range ({self.low!r}, {self.high!r}) must be finite and increasing; pass "
                "the documented Numeric(low, high)"
            )
        if not _float32_is_fine(self.low, self.high):
            raise DeclarationError(
                f"Numeric range ({self.low!r}, {self.high!r}) must be at least 4096 steps of "
                "float32 wide, to which numbers are rounded; subtract an offset first, or pass the "
                "column in units of ordinary size"
            )

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return len(self.bins) + 1 if isinstance(self.bins, Sequence) else max(self.bins, 1)

    @property
    def coded_range(self) -> tuple[float, float] | None:
        """What 0 and 1 stand for if numbers are coded as fractions; None with bins."""
        return None if self.bins else (self.low, self.high)

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns.

        Parameters
        ----------
        name : str
            Name of the column in the table.

        Returns
        -------
        list of str
            One name for each encoded column.
        """
        return [f"{name}[{i}]" for i in range(self.width)] if self.bins else [name]

    def code(self, cells: Any, n: int, name: str, reader: NumberReader, one: int) -> Array:
        """Encode the cells of a column.

        Parameters
        ----------
        cells : array-like
            The column, of any type that a table may hold.
        n : int
            Number of cells.
        name : str
            Name of the column, for messages.
        reader : NumberReader
            Reader that knows the texts for missing values.
        one : int
            Number of units of 1.

        Returns
        -------
        array of shape (n,)
            The bin of each cell; without bins, its fraction of the range in units.
        """
        out = np.empty(n, dtype=level_type(self.width) if self.bins else np.int16)
        if reader.write(cells, self._steps(one), out) and self.fill is None:
            raise InputError(
                f"column {name!r} has missing values or cells that are not numbers; declare "
                "Numeric(low, high, fill=...), or fill them in first"
            )
        return out

    def _steps(self, one: int) -> Steps:
        """How numbers are encoded; missing ones are 0 if there is no fill."""
        steps = Steps(self._cuts, *self._ends, one, 0)
        if self.fill is None:
            return steps
        return replace(steps, fill=int(steps.entries(np.array([float(self.fill)]))[0]))

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The range in float32."""
        low, high = through_float32([self.low, self.high]).tolist()
        return low, high

    @cached_property
    def _cuts(self) -> NDArray[np.float32]:
        """The least float32 of each bin but the first; NaN if no number is in it or above it.

        Without bins there are none; one that is NaN cuts nothing off.

        Bins never descend as numbers ascend, in floating point, too. So the bits of float32, in
        an order that is that of the numbers, are halved until two neighbours are left.
        """
        if not self.bins:
            return np.empty(0, dtype=np.float32)
        bins = np.arange(1, self.width)
        below, least = np.full((2, len(bins)), [[-LARGEST - 1], [LARGEST]], dtype=np.int64)
        while (least - below > 1).any():
            middle = (below + least) >> 1
            inside = self.place(self.share(_ordered(middle))) >= bins
            below, least = np.where(inside, below, middle), np.where(inside, middle, least)
        reached = self.place(self.share(_ordered(least))) >= bins
        cuts = np.where(reached, _ordered(least), np.nan).astype(np.float32)
        if not len(cuts):
            return np.array([np.nan], dtype=np.float32)
        return padded(cuts) if len(cuts) >= MANY else cuts

    def share(self, numbers: Floats) -> Floats:
        """Rescale numbers to fractions of the range.

        Parameters
        ----------
        numbers : array-like of float
            Numbers that are exact in float32.

        Returns
        -------
        array of float
            ``(x - low) / (high - low)``, clipped to [0, 1].
        """
        low, high = self._ends
        return (np.clip(numbers, low, high) - low) / (high - low)

    def place(self, share: Floats) -> Integers:
        """Find the bin of each fraction of the range.

        Parameters
        ----------
        share : array-like of float
            Fractions in [0, 1], as `share` returns them.

        Returns
        -------
        array of int
            Bin numbers from 0.
        """
        if isinstance(self.bins, Sequence):
            cuts = self.share(through_float32(self.bins))
            return np.searchsorted(cuts, share, side="right")
        return np.minimum(share * self.bins, self.bins - 1).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for JSON and TOML.

        Returns
        -------
        dict
            The arguments that differ from their defaults.
        """
        bins = self.bins
        declared: dict[str, Any] = {"low": plain_number(self.low), "high": plain_number(self.high)}
        if bins:
            declared["bins"] = list(bins) if isinstance(bins, Sequence) else int(bins)
        if self.fill is not None:
            declared["fill"] = plain_number(self.fill)
        return declared


def _ordered(places: Integers) -> Floats:
    """The float32 at places of their order: 0 at 0, infinity at `LARGEST`."""
    bits = np.where(places < 0, np.abs(places) | 1 << 31, places).astype(np.uint32)
    return bits.view(np.float32).astype(np.float64)


def _float32_is_fine(low: float, high: float) -> bool:
    """Whether steps of float32 are at most 1/4096 of the range; the grid's steps are no finer."""
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(np.float32(max(abs(low), abs(high))))
    return bool(4096 * float(step) <= high - low)  # false of infinity, too


@dataclass(frozen=True)
class Categorical:
    """A categorical column with declared values, coded one-hot.

    A value matches whatever type it has in the table: 1, 1.0, True, "1" and "1.0" are one category,
    and so are a date and its ISO text (which is how it is stored).

    Parameters
    ----------
    values : sequence
        The documented values.
    other : bool, default=False
        Whether to add a last level for unknown and missing values. If False, a table that has such
        values is refused.

    See Also
    --------
    Numeric : A column of numbers.
    Schema : The domain that columns make up.

    Examples
    --------
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
        """The level of each value, by its canonical text."""
        return positions(self.values, "Categorical values")

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return len(self.values) + self.other

    @property
    def choices(self) -> Sequence[Any] | None:
        """All values that a cell may have; None if unknown values are accepted."""
        return None if self.other else self.values

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns.

        Parameters
        ----------
        name : str
            Name of the column in the table.

        Returns
        -------
        list of str
            One name for each level.
        """
        return [f"{name}={value}" for value in self.values] + [f"{name}=<other>"] * self.other

    def code(self, cells: Any, n: int, name: str, reader: NumberReader, one: int) -> Array:
        """Encode the cells of a column; unknown values get the level `other`.

        Parameters
        ----------
        cells : array-like
            The column, of any type that a table may hold.
        n : int
            Number of cells.
        name : str
            Name of the column, for messages.
        reader : NumberReader
            Reader that knows the texts for missing values.
        one : int
            Number of units of 1.

        Returns
        -------
        array of shape (n,)
            The level of each cell.
        """
        out = np.empty(n, dtype=level_type(self.width))
        odd = len(self.values) if self.other else 0
        if LevelReader(self._known).write(cells, out, odd) and not self.other:
            raise InputError(
                f"column {name!r} has values that are not declared; declare them, or pass "
                "Categorical(values, other=True)"
            )
        return out

    @cached_property
    def _known(self) -> Known:
        """The values, in the forms that cells are compared with."""
        return Known.of(self.positions)

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for JSON and TOML.

        Returns
        -------
        dict
            The arguments that differ from their defaults.
        """
        levels = list(self.values)
        _check_levels(levels)
        return {"values": levels, **({"other": True} if self.other else {})}


Column: TypeAlias = Numeric | Categorical


def _as_level(value: Any) -> Any:
    """A declared value; one that JSON cannot hold, such as a date, becomes its canonical text."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    text = canonical(value) if not isinstance(value, str | bool | int | float) else value
    return text if isinstance(text, str) else value


# ------------------------------------------------------------------------------------ plain values


def columns_from(tables: Any) -> dict[str, Column]:
    """The columns declared by a table of tables, in the format of `to_dict` and of TOML files."""
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
            'high = 90}, optionally with bins and fill, or {values = ["a", "b"]}, optionally with '
            "other"
        )
    try:
        if numeric:
            return Numeric(**entry)
        _check_levels(**entry)
        return Categorical(**entry)
    except ValueError as error:
        raise DeclarationError(f"column {name!r}: {error}") from None


def _check_levels(values: Any, other: Any = False) -> None:
    """Refuse values that TOML can hold but that cannot be levels: a list, a date, NaN."""
    if not isinstance(values, list) or not all(
        isinstance(value, str | bool) or is_finite(value) for value in values
    ):
        raise DeclarationError(
            f'values ({values!r}) must be a list of texts or numbers; pass values = ["a", "b"]'
        )
    if not isinstance(other, bool):
        raise DeclarationError(f"other ({other!r}) must be true or false; pass other = true")
