"""Columns of numbers, and columns of a schema made from plain values.

A column knows how its cells are coded (`width`, `level_names`, `code`) and what 0 and 1 stand for
if numbers are coded as a fraction of the range. It can be written as a table of plain values. A
column `is_blank` if something is left to be bought from a budget; it codes nothing until then.
"""

from __future__ import annotations

import math
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
from privfit.domains.categories import Categorical, check_levels
from privfit.domains.cells import Cut, least_numbers
from privfit.domains.codes import level_type
from privfit.domains.grid import has_ordinary_size
from privfit.domains.keys import number_at
from privfit.domains.kinds import check_numbers
from privfit.domains.plain import plain_number
from privfit.domains.reading import NumberReader, Steps, padded, through_float32
from privfit.domains.scales import CUTS

__all__ = ["Categorical", "Column", "Numeric", "columns_from"]

LARGEST = 0x7F800000  # bits of infinity in float32
MOST_BINS = 1 << 16  # of a column: each is a weight, and a level of two bytes
MANY = 32  # cuts that are searched by halves


@dataclass(frozen=True)
class Numeric:
    """A numeric column, coded as a fraction of its range or one-hot over bins.

    Numbers are rounded to float32, so that they are the same in every kind of table, and clipped to
    the range.

    Parameters
    ----------
    low, high : float or None, default=None
        Declared range, from documentation and never from the data. Without a range the column is
        cut at the declared `bins`; without those it is a blank, whose range is bought.
    bins : int, sequence of float or 'auto', default=0
        Number of equal bins, or declared cut points: ``bins=[25, 35, 50]`` makes four bins. With
        bins, a linear model can be non-linear in the column, and long tails do less harm. By
        default the column is a single number in [0, 1]. 'auto' is a blank: cuts are bought.
    fill : float or None, default=None
        Declared replacement for missing values and for cells that are not numbers. If None, a table
        that has such cells is refused.
    missing : bool, default=False
        Whether missing values, and cells that are not numbers, are a last level beside the bins.
    scale : 'log' or None, default=None
        'log' cuts the column at a public scale of all numbers, too, eight cells to a decade
        (`privfit.domains.scales`). No range is needed.
    ranks : sequence of float or None, default=None
        The part of all records that is assumed to be below each of the cut points `bins`; by
        default bins are assumed to be equally full. Codings use it (docs/coding.md).

    See Also
    --------
    Categorical : A column of declared values.
    Schema : The domain that columns make up.
    learn_schema : Buys blanks.

    Examples
    --------
    >>> from privfit import Numeric, Schema
    >>> Schema({"age": Numeric(17, 90), "gain": Numeric(0, 99_999, bins=[1, 1000])}).width
    4
    >>> Numeric().is_blank, Numeric(17, 90, bins="auto").is_blank, Numeric(17, 90).is_blank
    (True, True, False)
    """

    low: float | None = None
    high: float | None = None
    bins: int | Sequence[float] | Literal["auto"] = 0
    fill: float | None = None
    missing: bool = False
    scale: Literal["log"] | None = None
    ranks: Sequence[float] | None = None

    holds_numbers: ClassVar[Literal[True]] = True  # cells are numbers in a range
    choices: ClassVar[None] = None  # any number of the range

    def __post_init__(self) -> None:
        if self.has_range:
            self._check_range()
        if isinstance(self.bins, np.ndarray):
            object.__setattr__(self, "bins", self.bins.tolist())
        if isinstance(self.bins, Sequence) and not isinstance(self.bins, str):
            ends = ((self.low,), (self.high,)) if self.has_range else ((), ())
            cuts = (*ends[0], *self.bins, *ends[1])
            if not cuts or not _are_cuts(cuts):
                raise DeclarationError(
                    f"bins ({self.bins!r}) must increase between low and high; pass cut points "
                    "such as bins=[25, 35, 50]"
                )
            object.__setattr__(self, "bins", tuple(float(cut) for cut in self.bins))
        elif self.bins != "auto" and (not is_whole(self.bins) or not 0 <= self.bins <= MOST_BINS):
            raise DeclarationError(
                f"bins ({self.bins!r}) must be 0 or a positive number up to {MOST_BINS}; pass "
                "bins=8"
            )
        if self.scale not in (None, "log"):
            raise DeclarationError(f"scale ({self.scale!r}) must be 'log'; pass it or leave it out")
        self._check_ranks()
        self._check_missing()

    def _check_ranks(self) -> None:
        if self.ranks is None:
            return
        ranks = self.ranks.tolist() if isinstance(self.ranks, np.ndarray) else self.ranks
        if (
            not isinstance(self.bins, tuple)
            or not _are_cuts(ranks)
            or len(ranks) != len(self.bins)
            or not 0 < min(ranks) <= max(ranks) < 1
        ):
            raise DeclarationError(
                f"ranks ({self.ranks!r}) must increase between 0 and 1, one for each cut point; "
                "pass bins=[25, 50] and ranks=[0.3, 0.8]"
            )
        object.__setattr__(self, "ranks", tuple(float(rank) for rank in ranks))

    def _check_missing(self) -> None:
        if self.fill is not None and not is_finite(self.fill):
            raise DeclarationError(
                "fill must be a finite number; pass a declared value such as the middle"
            )
        if not isinstance(self.missing, bool | np.bool_):
            raise DeclarationError(f"missing ({self.missing!r}) must be a bool; pass missing=True")
        if self.missing and (self.fill is not None or not self.has_levels):
            raise DeclarationError(
                "missing (True) must stand beside bins or a scale and without fill, since missing "
                "values are then a level of their own; pass bins=..., or fill=... alone"
            )

    def _check_range(self) -> None:
        low, high = self.low, self.high
        if not (
            is_finite(low)
            and is_finite(high)
            and low < high
            and all(map(has_ordinary_size, (low, high, high - low)))
        ):
            raise DeclarationError(
                f"Numeric range ({low!r}, {high!r}) must be finite and increasing; pass "
                "the documented Numeric(low, high)"
            )
        if not _float32_is_fine(low, high):
            raise DeclarationError(
                f"Numeric range ({low!r}, {high!r}) must be at least 4096 steps of "
                "float32 wide, to which numbers are rounded; subtract an offset first, or pass the "
                "column in units of ordinary size"
            )

    @property
    def has_range(self) -> bool:
        """Whether a range is declared."""
        return self.low is not None or self.high is not None

    @property
    def is_blank(self) -> bool:
        """Whether the range or the cuts are to be bought."""
        needs_range = not (isinstance(self.bins, tuple) or (self.scale and not self.bins))
        return self.bins == "auto" or (needs_range and not self.has_range)

    def becomes(self, other: Column) -> bool:
        """Whether another column is this one, with what was left out filled in.

        Parameters
        ----------
        other : Numeric or Categorical
            A column without blanks.

        Returns
        -------
        bool
            Whether it may stand for this column: a blank takes any number, and a number without
            bins may be cut within its range.
        """
        if self.is_blank or not other.holds_numbers:
            return self.is_blank and other.holds_numbers
        uncut = (self.low, self.high, self.fill) == (other.low, other.high, other.fill)
        return self == other or (uncut and not self.has_levels)

    def filled(self) -> Numeric:
        """The column with a fill, so that it refuses no cell.

        Returns
        -------
        Numeric
            Missing values count as the middle of the range, or as the middle cut. A column that has
            a fill, or a level for missing values, stays as it is.
        """
        if self.fill is not None or self.missing:
            return self
        if self.low is not None and self.high is not None:
            return replace(self, fill=(self.low + self.high) / 2)
        middle = self.bins[len(self.bins) // 2] if isinstance(self.bins, tuple) else 0.0
        return replace(self, fill=middle)

    @property
    def has_levels(self) -> bool:
        """Whether cells are coded as levels, and not as fractions of the range."""
        return bool(self.bins) or self.scale is not None

    @cached_property
    def cuts(self) -> tuple[float, ...] | None:
        """All cut points: those of the bins and of the scale; None if bins are equally wide."""
        if self.scale is None:
            return self.bins if isinstance(self.bins, tuple) else None
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        bins: Any = () if self.is_blank else self.bins
        if not isinstance(bins, tuple):
            bins = np.linspace(low, high, bins + 1)[1:-1].tolist() if bins else ()
        return tuple(sorted({*bins, *(cut for cut in CUTS if low < cut < high)}))

    @property
    def _n_bins(self) -> int:
        """The number of levels of numbers; 0 if there are none, or if they are to be bought."""
        if self.cuts is not None:
            return len(self.cuts) + 1
        return self.bins if isinstance(self.bins, int | np.integer) else 0

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return max(self._n_bins, 1) + bool(self.missing)

    @property
    def coded_range(self) -> tuple[float, float] | None:
        """What 0 and 1 stand for if numbers are coded as fractions; None with bins."""
        if self.has_levels or self.low is None or self.high is None:
            return None
        return self.low, self.high

    def level_names(self, name: str) -> list[str]:
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
        if not self.has_levels:
            return [name]
        lost = [f"{name}=<missing>"] * bool(self.missing)
        return [f"{name}[{i}]" for i in range(self._n_bins)] + lost

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
        check_numbers(name, cells)
        out = np.empty(n, dtype=level_type(self.width) if self.has_levels else np.int16)
        self.check_found(name, reader.write(cells, self.steps(one), out))
        return out

    def check_found(self, name: str, lost: bool) -> None:
        """Refuse cells that are missing or no numbers, unless it is declared what they stand for.

        Parameters
        ----------
        name : str
            Name of the column, for messages.
        lost : bool
            Whether there are any.
        """
        if lost and self.fill is None and not self.missing:
            raise InputError(
                f"column {name!r} has missing values or cells that are not numbers; declare "
                "Numeric(low, high, fill=...), or fill them in first"
            )

    def steps(self, one: int) -> Steps:
        """How numbers are encoded; missing ones are 0 if there is no fill and no level for them.

        Parameters
        ----------
        one : int
            Number of units of 1.

        Returns
        -------
        Steps
            The bins, or the steps of the range.
        """
        steps = Steps(self._cuts, *self._ends, one, self._n_bins if self.missing else 0)
        if self.fill is None:
            return steps
        return replace(steps, fill=int(steps.entries(np.array([float(self.fill)]))[0]))

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The range in float32."""
        if not self.has_range:
            return 0.0, 1.0  # nothing is clipped to it: there are cuts
        low, high = through_float32([self.low, self.high]).tolist()
        return low, high

    @cached_property
    def _cuts(self) -> NDArray[np.float32]:
        """The least float32 of each bin but the first; NaN if no number is in it or above it.

        Without bins there are none; one that is NaN cuts nothing off.

        Bins never descend as numbers ascend, in floating point, too. So the bits of float32, in
        an order that is that of the numbers, are halved until two neighbours are left.
        """
        if not self.has_levels:
            return np.empty(0, dtype=np.float32)
        if not self.has_range:
            given = through_float32(self.cuts).astype(np.float32)
            return padded(given) if len(given) >= MANY else given
        bins = np.arange(1, self._n_bins)
        below, least = np.full((2, len(bins)), [[-LARGEST - 1], [LARGEST]], dtype=np.int64)
        while (least - below > 1).any():
            middle = (below + least) >> 1
            inside = self.place(self.share(number_at(middle))) >= bins
            below, least = np.where(inside, below, middle), np.where(inside, middle, least)
        reached = self.place(self.share(number_at(least))) >= bins
        cuts = np.where(reached, number_at(least), np.nan).astype(np.float32)
        if not len(cuts):
            return np.array([np.nan], dtype=np.float32)
        return padded(cuts) if len(cuts) >= MANY else cuts

    def cell(self, name: str, reader: NumberReader, one: int, level: float) -> Cut:
        """How cells are coded, as plain values.

        Parameters
        ----------
        name : str
            Name of the column, for messages.
        reader : NumberReader
            Reader that knows the texts for missing values.
        one : int
            Number of units of 1.
        level : float
            What a level is coded as.

        Returns
        -------
        Cut
            The least number of each step.
        """
        if reader.takes_numbers_for_missing:
            raise DeclarationError(
                f"column {name!r} counts a number as missing ({', '.join(reader.tokens)}), which "
                "no transformer of scikit-learn does exactly; replace it by NaN in the table and "
                "fit without it in missing, or serve the model with privfit.load"
            )
        steps = self.steps(one).entries
        if self.has_levels:
            edges = least_numbers(steps, 0, self._n_bins - 1)
            return Cut(edges, fill=self.fill, missing=bool(self.missing), level=level)
        return Cut(least_numbers(steps, 0, one), step=1.0 / one, fill=self.fill)

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
        if self.cuts is not None:
            cuts = self.share(through_float32(self.cuts))
            return np.searchsorted(cuts, share, side="right")
        return np.minimum(share * self._n_bins, self._n_bins - 1).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for JSON and TOML.

        Returns
        -------
        dict
            The arguments that differ from their defaults.
        """
        bins = self.bins
        declared: dict[str, Any] = {}
        if self.has_range:
            declared |= {"low": plain_number(self.low), "high": plain_number(self.high)}
        elif self.is_blank:
            declared["kind"] = "number"
        if bins:
            declared["bins"] = bins if bins == "auto" else as_list(bins)
        if self.fill is not None:
            declared["fill"] = plain_number(self.fill)
        if self.scale is not None:
            declared["scale"] = self.scale
        if self.ranks is not None:
            declared["ranks"] = list(self.ranks)
        return {**declared, **({"missing": True} if self.missing else {})}


def as_list(bins: Any) -> int | list[float]:
    """Bins as TOML and JSON hold them."""
    return list(bins) if isinstance(bins, Sequence) else int(bins)


def _are_cuts(bins: Any) -> bool:
    """Whether this is a list of finite numbers that increase."""
    if not isinstance(bins, Sequence) or isinstance(bins, str) or not bins:
        return False
    return all(map(is_finite, bins)) and all(a < b for a, b in pairwise(bins))


def _float32_is_fine(low: float, high: float) -> bool:
    """Whether steps of float32 are at most 1/4096 of the range; the grid's steps are no finer."""
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(np.float32(max(abs(low), abs(high))))
    return bool(4096 * float(step) <= high - low)  # false of infinity, too


Column: TypeAlias = Numeric | Categorical


# ------------------------------------------------------------------------------------ plain values


def columns_from(tables: Any) -> dict[str, Column]:
    """The columns declared by a table of tables, in the format of `to_dict` and of TOML files."""
    if not isinstance(tables, dict):
        raise DeclarationError(
            f"columns ({tables!r}) must be a table of declared columns; pass [columns] and "
            "below it a line such as age = {low = 17, high = 90}"
        )
    return {name: _column_from(name, entry) for name, entry in tables.items()}


NUMBER = {"kind", "low", "high", "bins", "fill", "missing", "scale", "ranks"}
CATEGORY = {"kind", "values", "other", "names", "buckets", "shares", "hashes"}


def _column_from(name: str, entry: Any) -> Column:
    given: dict[str, Any] = entry if isinstance(entry, dict) else {"": None}
    keys, kind = given.keys(), given.get("kind")
    ranged = {"low", "high"} <= keys or "scale" in keys or _are_cuts(given.get("bins"))
    numeric = keys <= NUMBER and (ranged or kind == "number")
    listed = bool({"values", "buckets"} & keys)
    if not numeric and not (keys <= CATEGORY and (listed or kind == "category")):
        raise DeclarationError(
            f"column {name!r} ({entry!r}) must have low and high, or values; pass {{low = 17, "
            'high = 90}, optionally with bins and fill, or {values = ["a", "b"]}, optionally with '
            'other, or a blank: {kind = "number"} or {kind = "category"}'
        )
    declared = {key: value for key, value in given.items() if key != "kind"}
    try:
        if numeric:
            return Numeric(**declared)
        check_levels(**declared)
        return Categorical(**declared)
    except ValueError as error:
        raise DeclarationError(f"column {name!r}: {error}") from None
