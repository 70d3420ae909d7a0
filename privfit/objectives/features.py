"""Features of records whose columns are all levels: public integer maps of the levels of a column.

Level l of column c goes to the row T_c[l] of a table of whole numbers, in units of 2^-MAP_BITS, and
a record to phi = (T_1[l_1], ..., T_d[l_d], ONE), the last for the intercept. So a linear model of
phi is an additive model of the columns, and a smooth one of numbers:

- a category is one coordinate for each level: the identity, of length 1;
- a number with ``scale="log"`` has a *public half*: its cells' rows of `scales.cell_map`;
- a number with bins has a *learned half*: the leading eigenfunctions of the kernel
  w exp(-abs(rank - rank') / 0.3) + (1 - w) I over its bins, by the ranks that are assumed of them.
  More than 256 bins are taken together by rank;
- where a number has both halves, each is multiplied by sqrt(1/2);
- a number with a declared range may have a *straight line* instead, from 0 at its low end to 1 at
  the high one, times sqrt(q), and beside it one function of each half, times sqrt(1 - q);
- a missing value has a coordinate of its own, of length 1, and is 0 in all others.

Whole numbers are rounded towards zero, so **a row is no longer than 1, however many levels there
are**: more cuts cost no sensitivity. Coordinates that are 0 at every level are left out. Nothing
here depends on records. Eigenvectors may differ in their last bits between machines, so that tables
are made once, by who asks for sums over records, and sent along with the question.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfit.base import blas
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain, scales
from privfit.domains.columns import Column, Numeric
from privfit.domains.scales import MAP_BITS, MOST_DIMENSIONS, cell_map, cells_of, leading

__all__ = ["ONE", "Curve", "Features", "Levels", "Table", "room_for_levels"]

ONE = 1 << MAP_BITS
SMOOTH = 0.3  # the difference of ranks over which a kernel falls to 1/e
# Matrices that a descent holds at a time. Of maps of all levels six: the map in whole numbers and
# in codes; the map into the frame, its sizes or what is asked of records, half of one in 32 bits,
# and the last question, which records remember; at the end noise and its squares in place of
# these. Those below 32 MB the C library takes from its heap, where freed ones may stay. Of moments
# eight: those released, what is likely of them, the last transform, and in an eigendecomposition a
# copy, its vectors, and two of work.
COPIES, KEPT, LARGEST_KEPT, SQUARES = 6.5, 4.0, 32 << 20, 8.0
WIDEST = 4096  # coordinates of records, whose products are to fit in memory
FINEST = 256  # groups of bins that a kernel tells apart
BESIDE_LINE = 1  # the most functions of each kind beside a straight line
BANDS = ((6, (0,)), (16, (0, 4)), (math.inf, (0, 4, 12)))  # where coarse, middle, fine ones begin


@dataclass(frozen=True, eq=False, repr=False)
class Table(ABC):
    """The map of one column's levels.

    Parameters
    ----------
    rows : int64 (levels, dimensions)
        The row of each level.
    bands : tuple of int
        Where groups of coordinates of one size begin, coarse ones first.
    """

    rows: Integers
    bands: tuple[int, ...]

    @property
    def dimensions(self) -> int:
        """Coordinates of the column."""
        return self.rows.shape[1]

    @property
    @abstractmethod
    def square(self) -> int:
        """The largest sum of squares of a row."""

    @property
    @abstractmethod
    def fourth(self) -> int:
        """The largest sum of fourth powers of a row."""

    @property
    @abstractmethod
    def square_change(self) -> int:
        """The largest sum of (r_j^2 - s_j^2)^2 over two rows r and s."""

    @property
    @abstractmethod
    def constants(self) -> Floats:
        """(g, dimensions): directions of length 1 along which all rows are the same."""

    @property
    @abstractmethod
    def filled(self) -> NDArray[np.bool_]:
        """(dimensions, dimensions): the pairs of coordinates that some level fills."""


class Levels(Table):
    """The map of a category: each level is a coordinate."""

    @classmethod
    def of(cls, width: int) -> Levels:
        """That of so many levels."""
        return cls(ONE * np.eye(width, dtype=np.int64), (0,))

    @property
    def square(self) -> int:
        return ONE**2

    @property
    def fourth(self) -> int:
        return ONE**4

    @property
    def square_change(self) -> int:
        return 2 * ONE**4 if self.dimensions > 1 else 0

    @property
    def constants(self) -> Floats:
        return np.full((1, self.dimensions), 1 / math.sqrt(self.dimensions))

    @property
    def filled(self) -> NDArray[np.bool_]:
        return np.eye(self.dimensions, dtype=np.bool_)


class Curve(Table):
    """The map of a number: smooth functions of it."""

    @cached_property
    def distinct(self) -> Integers:
        """The rows, each once."""
        return np.unique(self.rows, axis=0)

    @property
    def square(self) -> int:
        return int((self.rows**2).sum(axis=1).max())

    @property
    def fourth(self) -> int:
        return int((self.rows**4).sum(axis=1).max())

    @property
    def square_change(self) -> int:
        squares = self.distinct**2
        own = (squares**2).sum(axis=1)
        return int((own[:, None] + own - 2 * gram(squares)).max())

    @property
    def constants(self) -> Floats:
        rows = self.distinct.astype(np.float64)
        with blas.one_thread():
            _, lengths, directions = np.linalg.svd(rows - rows[0])
        return np.asarray(directions[np.count_nonzero(lengths > 1.0) :])

    @property
    def filled(self) -> NDArray[np.bool_]:
        some = (self.distinct != 0).astype(np.float64)
        return np.asarray(some.T @ some > 0)


def gram(rows: Integers) -> Integers:
    """(n, n): products of rows of whole numbers whose sums of squares are below 2^53: exact."""
    with blas.one_thread():
        real = rows.astype(np.float64)
        return np.asarray(real @ real.T).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Public maps of the levels of all columns, and a constant for the intercept.

    Parameters
    ----------
    tables : tuple of Table
        The map of each column.
    """

    tables: tuple[Table, ...]

    @classmethod
    def of(
        cls,
        domain: Domain,
        learned: int,
        public: int,
        mixing: float,
        smooth: float = scales.SMOOTH,
        straight: float = 0.0,
    ) -> Features:
        """The maps of a schema.

        Parameters
        ----------
        domain : Schema
            Its columns are categories, and numbers with bins or a scale.
        learned : int
            The most functions of a number's bins.
        public : int
            The most functions of a number's public scale.
        mixing : float
            The smooth part of the kernel of bins; the rest tells single bins apart.
        smooth : float, default=0.7
            Decades over which functions of the public scale are smooth: 0.7 or 2.
        straight : float, default=0
            The part of the squared length of a row that a straight line has, in columns with a
            declared range; 0 for none.

        Returns
        -------
        Features
            The maps.

        Examples
        --------
        >>> from privfit import Categorical, Numeric, Schema
        >>> from privfit.objectives.features import Features
        >>> schema = Schema({"age": Numeric(scale="log"), "sex": Categorical(["f", "m"])})
        >>> Features.of(schema, learned=8, public=8, mixing=0.5).dimensions
        11
        """
        columns = domain.declared_columns
        if not columns:
            raise DeclarationError(
                f"domain ({type(domain).__name__}) must be a Schema for an additive model; pass "
                "Schema({'age': Numeric(scale='log'), 'sex': Categorical(['f', 'm'])})"
            )
        _check_dimensions(domain, learned + public + 1)
        plain = [name for name, column in columns.items() if column.coded_range is not None]
        if plain:
            raise DeclarationError(
                f"column {plain[0]!r} must have levels for an additive model; pass "
                "Numeric(scale='log') or Numeric(low, high, bins=...)"
            )
        return cls(
            tuple(
                _curve(column, learned, public, mixing, smooth, straight)
                if column.holds_numbers
                else Levels.of(column.width)
                for column in columns.values()
            )
        )

    @property
    def dimensions(self) -> int:
        """Coordinates of phi, the intercept's last."""
        return sum(table.dimensions for table in self.tables) + 1

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The coordinates of each column."""
        ends = np.cumsum([0, *(table.dimensions for table in self.tables)]).tolist()
        return tuple(map(slice, ends[:-1], ends[1:]))

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """The levels of each column."""
        ends = np.cumsum([0, *(len(table.rows) for table in self.tables)]).tolist()
        return tuple(map(slice, ends[:-1], ends[1:]))

    @property
    def bands(self) -> Iterator[slice]:
        """Coordinates of one column and of one size; the intercept is in none."""
        for part, table in zip(self.parts, self.tables, strict=True):
            ends = (*table.bands, table.dimensions)
            for first, last in pairwise(ends):
                if first < last:
                    yield slice(part.start + first, part.start + last)

    @property
    def empty(self) -> Floats:
        """(g, dimensions): directions that no record has any part of, by these tables.

        A direction along which all rows of a column are the same is one, with the intercept.
        """
        found = []
        for part, table in zip(self.parts, self.tables, strict=True):
            for same in table.constants:
                direction = np.zeros(self.dimensions)
                direction[part] = same
                direction[-1] = -(table.rows[0] @ same) / ONE
                found.append(direction)
        return np.array(found).reshape(-1, self.dimensions)

    @cached_property
    def matrix(self) -> Integers:
        """int64 (dimensions, levels + 1): what a level adds to phi, and last the constant."""
        matrix = np.zeros((self.dimensions, self.groups[-1].stop + 1), dtype=np.int64)
        for part, group, table in zip(self.parts, self.groups, self.tables, strict=True):
            matrix[part, group] = table.rows.T
        matrix[-1, -1] = ONE
        return matrix

    @cached_property
    def of_codes(self) -> Floats:
        """(dimensions, levels + 1): the map from `Coding`, where levels are 1 and a constant 1/2.

        Feature weights w are weights w @ of_codes of coded columns.
        """
        coded = np.ldexp(self.matrix.astype(np.float64), -MAP_BITS)
        coded[-1, -1] = 2.0
        return coded


def _check_dimensions(domain: Domain, of_number: int) -> None:
    """Refuse more coordinates than a matrix of their products has room for."""
    columns = domain.declared_columns if domain.width else {}  # blanks have no width
    room_for_levels(columns, of_number)


def most_coordinates(columns: Mapping[str, Column], of_number: int) -> int:
    """How many coordinates these columns have at most, without levels that are to be bought.

    A number has at most `of_number` coordinates, and a blank category one for other values.
    """
    most = 0
    for column in columns.values():
        width = None if column.is_blank else column.width
        if column.holds_numbers:
            most += of_number if width is None else min(width, of_number)
        else:
            most += 1 if width is None else width
    return most


def most_bytes(coordinates: int, levels: int) -> int:
    """Bytes that a descent takes for the matrices of an additive model, beside its records.

    Parameters
    ----------
    coordinates, levels : int
        How many there are at most; both are public.

    Returns
    -------
    int
        An upper bound.
    """
    maps = 8 * coordinates * (levels + 1)
    return math.ceil(COPIES * maps + KEPT * min(maps, LARGEST_KEPT) + SQUARES * 8 * coordinates**2)


def room_for_levels(columns: Mapping[str, Column], of_number: int) -> int:
    """How many levels of blank categories fit beside these columns; refuse if none do."""
    most = most_coordinates(columns, of_number)
    if most >= WIDEST:
        raise DeclarationError(
            f"domain (up to {most} coordinates) must have fewer than {WIDEST} for an additive "
            "model; declare fewer columns or categories, such as Categorical(frequent, other=True)"
        )
    return WIDEST - 1 - most


# ----------------------------------------------------------------------------------------- numbers


def _curve(
    column: Numeric, learned: int, public: int, mixing: float, smooth: float, straight: float
) -> Curve:
    """The map of a number's levels: its parts, and a coordinate for missing values."""
    parts = []
    straight = straight if column.has_range else 0.0
    if straight:
        parts.append(_line(column) * math.sqrt(straight))
        public, learned = min(public, BESIDE_LINE), min(learned, BESIDE_LINE)
    share = math.sqrt((1 - straight) / (2 if column.scale is not None and column.bins else 1))
    if column.scale is not None:
        parts.append(_public_half(column, public, smooth) * share)
    if column.bins:
        parts.append(_learned_half(column, learned, mixing) * share)
    bands: list[int] = []
    tables: list[Integers] = []
    for part in parts:
        rows = np.trunc(part).astype(np.int64)
        rows = rows[:, rows.any(axis=0)]
        first = sum(table.shape[1] for table in tables)
        bands += [first + start for start in _bands(rows.shape[1])]
        tables.append(rows)
    whole = np.concatenate(tables, axis=1)
    if column.missing:
        whole = np.pad(whole, ((0, 1), (0, 1)))
        whole[-1, -1] = ONE
    return Curve(whole, tuple(bands))


def _line(column: Numeric) -> Floats:
    """(levels, 1): how far the middles of levels are from the low end of the range, in units."""
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    if column.cuts is None:  # equal bins
        ends = np.linspace(low, high, column.width + 1 - column.missing)
    else:
        ends = np.append(_starts(column), high)
    return np.asarray(((ends[:-1] + ends[1:]) / 2 - low)[:, None] / (high - low) * ONE)


def _bands(dimensions: int) -> tuple[int, ...]:
    return next(starts for most, starts in BANDS if dimensions <= most)


def _starts(column: Numeric) -> Floats:
    """(levels,): a number of each level that has no smaller one, but for the first."""
    low = -math.inf if column.low is None else column.low
    return np.array([low, *(column.cuts or ())])


def _public_half(column: Numeric, dimensions: int, smooth: float) -> Floats:
    """(levels, dimensions): the rows of the cells that levels are in, in units."""
    rows = cell_map(smooth)[cells_of(_starts(column))]
    return rows[:, : min(dimensions, MOST_DIMENSIONS)].astype(float)


def _learned_half(column: Numeric, dimensions: int, mixing: float) -> Floats:
    """(levels, dimensions): the leading functions of the kernel over bins, in units."""
    bins, masses = _bins(column)
    middles = np.cumsum(masses) - masses / 2
    if len(masses) > FINEST:  # neighbours in rank are taken together
        groups = np.unique((middles * FINEST).astype(np.int64), return_inverse=True)[1]
        bins, masses = groups[bins], np.bincount(groups, masses).astype(np.float64)
        middles = np.cumsum(masses) - masses / 2
    apart = np.abs(middles[:, None] - middles)
    kernel = mixing * np.exp(-apart / SMOOTH) + (1 - mixing) * np.eye(len(masses))
    with blas.one_thread():
        return leading(kernel, masses, dimensions)[bins] * ONE


def _bins(column: Numeric) -> tuple[Integers, Floats]:
    """The bin of each level, and the part of all records that is assumed to be in each bin."""
    if isinstance(column.bins, Sequence):
        edges, ranks = np.asarray(column.bins, dtype=np.float64), column.ranks
        count = len(edges) + 1
        masses = np.full(count, 1 / count) if ranks is None else np.diff([0.0, *ranks, 1.0])
        return np.searchsorted(edges, _starts(column), side="right"), masses
    masses = np.full(int(column.bins), 1 / column.bins)
    if column.scale is None:
        return np.arange(column.bins), masses
    low, high = float(column.low or 0.0), float(column.high or 0.0)  # equal bins have a range
    edges = np.linspace(low, high, column.bins + 1)[1:-1]
    return np.searchsorted(edges, _starts(column), side="right"), masses
