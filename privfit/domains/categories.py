"""Columns of categories: values from a declared list, or hashed into public buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array
from privfit.base.validation import is_finite, is_whole
from privfit.domains.cells import Listed
from privfit.domains.codes import level_type
from privfit.domains.hashing import BUCKETS, BucketReader, bucket_of
from privfit.domains.reading import Known, LevelReader, NumberReader, Odd, canonical, positions

__all__ = ["Categorical", "check_levels"]

SLACK = 1e-9  # of a sum of rounded shares


@dataclass(frozen=True)
class Categorical:
    """A categorical column, coded one-hot.

    A value matches whatever type it has in the table: 1, 1.0, True, "1" and "1.0" are one category,
    and so are a date and its ISO text (which is how it is stored).

    Parameters
    ----------
    values : sequence or None, default=None
        The documented values. Without them and without `buckets` the column is a blank, whose
        categories are bought.
    other : bool, default=False
        Whether to add a last level for unknown and missing values. If False, a table that has such
        values is refused. A column that is bought always has it.
    names : {'bought'} or None, default=None
        What is bought of a blank: by default noisy counts of values hashed into 1,024 public
        buckets, so that no value is published; 'bought' buys the names of frequent values instead,
        which takes a budget with delta > 0.
    buckets : sequence of int or None, default=None
        The buckets that were bought, each a level. `values` are then names for them.
    shares : sequence of float or None, default=None
        The part of all records that is assumed to be in each of the buckets, as noisy counts say;
        the rest is in none. By default all levels are assumed to be equally full. Shapes and
        summaries use it.
    hashes : int or None, default=None
        Number of public buckets that values are hashed into, a power of two up to 1,024; by default
        1,024. Few buckets need not be bought: ``Categorical(buckets=range(16), hashes=16)`` has all
        of them, and values that share one are one level.

    See Also
    --------
    Numeric : A column of numbers.
    Schema : The domain that columns make up.
    learn_schema : Buys blanks.

    Examples
    --------
    >>> from privfit import Categorical, Schema
    >>> Schema({"sex": Categorical(["Female", "Male"], other=True)}).width
    3
    >>> Categorical().is_blank
    True
    """

    values: Sequence[Any] | None = None
    other: bool = False
    names: str | None = None
    buckets: Sequence[int] | None = None
    shares: Sequence[float] | None = None
    hashes: int | None = None

    holds_numbers: ClassVar[Literal[False]] = False  # cells are values from a list
    coded_range: ClassVar[None] = None  # levels are no shares of anything

    def __post_init__(self) -> None:
        declared = self.values is not None or self.buckets is not None
        if self.names is not None and (self.names != "bought" or declared):
            raise DeclarationError(
                f"names ({self.names!r}) must be 'bought', and only where nothing is declared; "
                "pass Categorical(names='bought')"
            )
        if self.values is not None:
            object.__setattr__(self, "values", tuple(map(_as_level, self.values)))
        _check_hashes(self.hashes, self.buckets)
        if self.buckets is not None:
            _check_buckets(self.buckets, self.hashes or BUCKETS)
            object.__setattr__(self, "buckets", tuple(int(one) for one in self.buckets))
        if self.shares is not None:
            self._check_shares()
            object.__setattr__(self, "shares", tuple(float(one) for one in self.shares))
        if self.values == () and not self.other and self.buckets is None:
            raise DeclarationError(
                "Categorical needs at least one value; pass the documented values"
            )
        assert len(self.positions) == len(self.values or ())

    def _check_shares(self) -> None:
        shares = self.shares
        if (
            not isinstance(shares, Sequence)
            or len(shares) != len(self.buckets or ())
            or not all(is_finite(one) and one >= 0 for one in shares)
            or sum(shares) > 1 + SLACK
        ):
            raise DeclarationError(
                f"shares ({shares!r}) must be parts of 1, one for each bucket; pass what a release "
                "shows, or leave them out"
            )

    @property
    def assumed(self) -> list[float] | None:
        """The assumed part of each level, the last that of other values; None if none is known."""
        if self.shares is None:
            return None
        return [*self.shares, max(0.0, 1.0 - sum(self.shares))]

    def becomes(self, other: Any) -> bool:
        """Whether another column is this one, with what was left out filled in.

        Parameters
        ----------
        other : Numeric or Categorical
            A column without blanks.

        Returns
        -------
        bool
            Whether it may stand for this column: a blank takes any category.
        """
        return self == other or (self.is_blank and not other.holds_numbers)

    @property
    def is_blank(self) -> bool:
        """Whether the categories are to be bought."""
        return self.values is None and self.buckets is None

    @cached_property
    def positions(self) -> dict[str, int]:
        """The level of each value, by its canonical text; of names for buckets, their order."""
        return positions(self.values or (), "Categorical values")

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        if self.buckets is not None:
            return len(self.buckets) + 1
        return len(self.values or ()) + self.other

    @property
    def choices(self) -> Sequence[Any] | None:
        """All values that a cell may have; None if unknown values are accepted."""
        return None if self.other or self.buckets is not None else self.values

    def level_names(self, name: str) -> list[str]:
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
        other = f"{name}=<other>"
        if self.buckets is None:
            return [f"{name}={value}" for value in self.values or ()] + [other] * self.other
        known: dict[int, list[str]] = {}
        count = self.hashes or BUCKETS
        for text, value in zip(self.positions, self.values or (), strict=True):
            known.setdefault(bucket_of(name, text) % count, []).append(str(value))
        levels = ["|".join(known[one]) if one in known else f"#{one}" for one in self.buckets]
        return [f"{name}={level}" for level in levels] + [other]

    def code(self, cells: Any, n: int, name: str, reader: NumberReader, one: int) -> Array:
        """Encode the cells of a column; unknown values get the level `other`.

        Parameters
        ----------
        cells : array-like
            The column, of any type that a table may hold.
        n : int
            Number of cells.
        name : str
            Name of the column, for messages and for the public hash.
        reader : NumberReader
            Reader that knows the texts for missing values.
        one : int
            Number of units of 1.

        Returns
        -------
        array of shape (n,)
            The level of each cell.
        """
        if self.buckets is not None:
            few = np.full(self.hashes or BUCKETS, len(self.buckets), dtype=level_type(self.width))
            few[list(self.buckets)] = np.arange(len(self.buckets))
            levels = np.append(np.tile(few, BUCKETS // len(few)), few.dtype.type(len(self.buckets)))
            return levels[BucketReader(name, reader.tokens).codes(cells)]  # -1 is the last
        out = np.empty(n, dtype=level_type(self.width))
        odd = len(self.values or ()) if self.other else 0
        if LevelReader(self._known).write(cells, out, odd) and not self.other:
            raise InputError(
                f"column {name!r} has values that are not declared; declare them, or pass "
                "Categorical(values, other=True)"
            )
        return out

    def cell(self, name: str, reader: NumberReader, one: int, level: float) -> Listed:
        """How cells are coded, as plain values.

        Parameters
        ----------
        name : str
            Name of the column, for messages.
        reader : NumberReader
            Ignored: a declared value is never missing.
        one : int
            Ignored.
        level : float
            What a level is coded as.

        Returns
        -------
        Listed
            The declared values.
        """
        if self.buckets is not None:
            raise DeclarationError(
                f"column {name!r} hashes values into buckets, which no transformer of scikit-learn "
                "does; fit with Categorical([...], other=True), or with Categorical(names='bought')"
                ", which buys names, or serve the model with privfit.load"
            )
        return Listed(tuple(self.values or ()), self.other, level)

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
        declared: dict[str, Any] = {"kind": "category"} if self.is_blank else {}
        if self.values is not None:
            declared["values"] = list(self.values)
            check_levels(declared["values"])
        if self.other:
            declared["other"] = True
        if self.names is not None:
            declared["names"] = self.names
        if self.buckets is not None:
            declared["buckets"] = list(self.buckets)
        if self.shares is not None:
            declared["shares"] = list(self.shares)
        if self.hashes is not None:
            declared["hashes"] = self.hashes
        return declared


def _check_hashes(hashes: Any, buckets: Any) -> None:
    if hashes is None:
        return
    if buckets is None or not is_whole(hashes) or not 1 <= hashes <= BUCKETS or BUCKETS % hashes:
        raise DeclarationError(
            f"hashes ({hashes!r}) must be a power of two up to {BUCKETS}, and needs buckets; pass "
            "Categorical(buckets=range(16), hashes=16)"
        )


def _check_buckets(buckets: Any, most: int) -> None:
    listed = isinstance(buckets, Sequence | np.ndarray) and not isinstance(buckets, str)
    if not (
        listed
        and all(is_whole(one) and 0 <= one < most for one in buckets)
        and all(a < b for a, b in pairwise(buckets))
    ):
        raise DeclarationError(
            f"buckets ({buckets!r}) must be whole numbers from 0 to {most - 1} that increase; "
            "pass those that learn_schema found"
        )


def _as_level(value: Any) -> Any:
    """A declared value; one that JSON cannot hold, such as a date, becomes its canonical text."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    text = canonical(value) if not isinstance(value, str | bool | int | float) else value
    return value if isinstance(text, Odd) else text


def check_levels(values: Any = None, other: Any = False, **_: Any) -> None:
    """Refuse values that TOML can hold but that cannot be levels: a list, a date, NaN."""
    if values is not None and (
        not isinstance(values, list)
        or not all(isinstance(value, str | bool) or is_finite(value) for value in values)
    ):
        raise DeclarationError(
            f'values ({values!r}) must be a list of texts or numbers; pass values = ["a", "b"]'
        )
    if not isinstance(other, bool):
        raise DeclarationError(f"other ({other!r}) must be true or false; pass other = true")
