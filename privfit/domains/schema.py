"""Schemas: named columns, numbers or categories, coded as [0, 1] and one-hot groups."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels import threads
from privfit._kernels.candidates import group_norms
from privfit._kernels.linear import group_pair_norms
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.markup import element, table
from privfit.base.typing import Array, Floats, Integers
from privfit.domains.box import Box
from privfit.domains.cells import Cut, Listed
from privfit.domains.codes import Codes
from privfit.domains.columns import Categorical, Column, Numeric, columns_from
from privfit.domains.described import described, kind_of
from privfit.domains.domain import Domain, check_width
from privfit.domains.frames import columns_of
from privfit.domains.grid import Grid, frozen
from privfit.domains.marks import mark_for, read_mark
from privfit.domains.parts import Part
from privfit.domains.plain import as_plain
from privfit.domains.reading import NumberReader, can_read_rows, write_rows
from privfit.domains.toml import read_toml, toml_text

__all__ = ["Schema", "as_schema"]

MOST_LINES, LINE = 40, 88  # columns that a text shows, and its width if it is one line
BOOLEAN = Categorical([False, True], other=True)  # missing values are other


@dataclass(frozen=True, eq=False)
class Schema(Domain):
    """Named columns, each with a declared range or values, coded as [0, 1] and one-hot groups.

    ``Schema({"age": Numeric(17, 90), "sex": Categorical(["Female", "Male"], other=True)})`` reads a
    DataFrame, an Arrow table or a dict of columns by name, and an array or a list of records by
    position. Each cell is read by itself (docs/reading.md).

    Parameters
    ----------
    columns : dict of str to Numeric or Categorical
        The declared range or values of each column, by its name. Blanks, such as ``Numeric()`` and
        ``Categorical()``, code nothing until `learn_schema` has bought them.
    grid : Grid, default=Grid()
        Bits of records, candidates and scores.
    missing : sequence of str, default=("",)
        Texts that stand for a missing value, besides None, NaN, NaT and pandas.NA. A declared
        category is never missing.

    Attributes
    ----------
    release : Release or None
        How the schema was bought, if this process bought it.
    bought : dict or None
        What the schema cost, and which of its columns were bought, if any were. Files of schemas
        and of models keep it.

    See Also
    --------
    Numeric : A column of numbers.
    Categorical : A column of declared values.
    learn_schema : Buys blanks.
    Box : Columns without names.

    Examples
    --------
    >>> from privfit import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(17, 90), "sex": Categorical(["Female", "Male"])})
    >>> schema.encode({"age": [17, 90], "sex": ["Male", "Female"]}).shape
    (2, 3)
    """

    columns: Mapping[str, Column]
    grid: Grid = field(default_factory=Grid)
    missing: Sequence[str] = ("",)
    n_features: int | None = field(init=False, default=None)
    release: Any = field(init=False, default=None)
    bought: Mapping[str, Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        columns = dict(self.columns)
        if not columns:
            raise DeclarationError(
                "Schema needs at least one column; pass {'name': Numeric(low, high)}"
            )
        for name, column in columns.items():
            if not isinstance(column, Column):
                raise DeclarationTypeError(
                    f"Schema column {name!r} must be declared; pass Numeric(low, high) or "
                    "Categorical([...])"
                )
        if not _are_texts(self.missing):
            raise DeclarationError(
                f"missing ({self.missing!r}) must be a list of texts; pass those that stand for a "
                'missing value, such as missing=("", "NA", "?")'
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "missing", tuple(self.missing))
        if not self.has_blanks:
            width = sum(column.width for column in columns.values())
            object.__setattr__(self, "n_features", width)

    @classmethod
    def blank(cls, kinds: Mapping[str, str], **settings: Any) -> Schema:
        """A schema that declares nothing but the kind of each column; all else is bought.

        Parameters
        ----------
        kinds : dict of str to {'number', 'category', 'boolean'}
            The kind of each column, by its name. Nothing is bought of a 'boolean': it is a category
            with the values False and True, and other for missing values.
        **settings : object
            Other parameters of `Schema`.

        Returns
        -------
        Schema
            A schema of blanks: cuts of the numbers, hashed categories.

        Examples
        --------
        >>> from privfit import Schema
        >>> Schema.blank({"age": "number", "job": "category"}).blanks
        ['age', 'job']
        """
        columns: dict[Any, Column] = {
            "number": Numeric(bins="auto"), "category": Categorical(), "boolean": BOOLEAN,
        }  # fmt: skip
        unknown = {name: kind for name, kind in dict(kinds).items()
                   if not isinstance(kind, str) or kind not in columns}  # fmt: skip
        if unknown:
            raise DeclarationError(
                f"kinds ({unknown}) must be 'number', 'category' or 'boolean'; pass one of them "
                "for each column"
            )
        return cls({name: columns[kind] for name, kind in dict(kinds).items()}, **settings)

    def marked(self, bought: Mapping[str, Any] | None) -> Schema:
        """This schema, with a mark of what was bought of it; the schema itself if nothing was.

        Parameters
        ----------
        bought : dict or None
            What is known of the purchase, with the names of its columns as `columns`.

        Returns
        -------
        Schema
            An equal schema: what was bought is no part of the declaration.
        """
        kept = mark_for(bought, self.columns)
        if kept is None:
            return self
        schema = copy(self)
        object.__setattr__(schema, "bought", kept)
        return schema

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for JSON, with what was bought of it.

        Returns
        -------
        dict
            The kind of domain, its arguments and, of a bought schema, its price; `Domain.from_dict`
            reads them back.
        """
        plain = super().to_dict()
        return plain if self.bought is None else {**plain, "bought": dict(self.bought)}

    @property
    def blanks(self) -> list[str]:
        """The names of columns of which something is to be bought."""
        return [name for name, column in self.columns.items() if column.is_blank]

    @property
    def has_blanks(self) -> bool:
        """Whether something is to be bought before the schema can code records."""
        return bool(self.blanks)

    def with_blanks_filled(self, columns: Any) -> Schema:
        found = columns_from(columns)
        kept = (name in found and one.becomes(found[name]) for name, one in self.columns.items())
        if list(found) != list(self.columns) or not all(kept):
            raise DeclarationError(
                f"columns ({', '.join(found)}) must be those of the schema, with its blanks filled "
                "in and its numbers cut; pass what a release shows"
            )
        return Schema(found, self.grid, self.missing)

    @property
    def width(self) -> int:
        """The number of columns of an encoded record."""
        if self.n_features is None:
            raise DeclarationError(
                f"domain (a Schema with the blanks {', '.join(map(repr, self.blanks))}) must "
                "declare what its columns may hold; pass learn_schema(X, epsilon, delta, "
                "columns=schema), which buys it, or declare it"
            )
        return self.n_features

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file.

        ::

            missing = ["", "NA", "?"]                         # by default "" alone

            [columns]
            age = {low = 17, high = 90}                       # also bins, fill
            sex = {values = ["Female", "Male"], other = true}
            pay = {kind = "number"}                           # a blank

            [grid]                                            # optional, in whole or in part
            a = 12

            [bought]                                          # written by learn_schema
            epsilon = 0.1

        Parameters
        ----------
        path : str or path-like
            The file. Anything else it holds is ignored.

        Returns
        -------
        Schema
            The declared schema.
        """
        declared = read_toml(path)
        grid = Grid.from_dict(declared.get("grid", {}))
        schema = cls(columns_from(declared.get("columns")), grid, declared.get("missing", ("",)))
        said = declared.get("bought")
        return schema if said is None else schema.marked(read_mark(said, schema.columns))

    def to_toml(self) -> str:
        """The schema as the text of a TOML file, which `from_toml` reads.

        Returns
        -------
        str
            The text of the file.

        Examples
        --------
        >>> from privfit import Categorical, Numeric, Schema
        >>> declared = {"age": Numeric(17, 90), "sex": Categorical(["f", "m"], other=True)}
        >>> print(Schema(declared).to_toml(), end="")
        [columns]
        age = {low = 17, high = 90}
        sex = {values = ["f", "m"], other = true}
        """
        tables = {"columns": as_plain(self.columns)}
        if self.grid != Grid():
            tables["grid"] = self.grid.to_dict()
        if self.bought is not None:
            tables["bought"] = dict(self.bought)
        first = {} if self.missing == ("",) else {"missing": list(self.missing)}
        return toml_text(first, tables)

    def __repr__(self) -> str:
        """The columns and what they may hold: on one line if that is short."""
        lines = [f"{name}: {described(column)}" for name, column in self.columns.items()]
        if len(lines) > MOST_LINES:
            lines[MOST_LINES - 1 :] = [f"... and {len(lines) - MOST_LINES + 1} more columns"]
        short = f"Schema({'; '.join(lines)})"
        return short if len(short) <= LINE else "\n    ".join(["Schema(", *lines]) + "\n)"

    def _repr_html_(self) -> str:
        rows = [(str(name), kind_of(column), described(column))
                for name, column in self.columns.items()]  # fmt: skip
        head = element("p", element("b", str(self)))
        return element("div", head, table(("column", "kind", "what it may hold"), rows, texts=3))

    def __str__(self) -> str:
        """A few words, which releases and model files contain."""
        if self.has_blanks:
            return f"Schema(<{len(self.columns)} columns, {len(self.blanks)} with blanks>)"
        return f"Schema(<{len(self.columns)} columns, {self.n_features} encoded>)"

    def bind(self, n_features: int) -> Schema:
        check_width(self, n_features)
        return self

    def repeated(self, k: int, grid: Grid) -> Box:
        return Box(np.tile(self.low, k), np.tile(self.high, k), grid=grid)

    # ----------------------------------------------------------------------------------- columns

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def declared_columns(self) -> Mapping[str, Column]:
        return self.columns

    @property
    def column_names(self) -> list[str]:
        return list(self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded columns."""
        return [
            coded for name, column in self.columns.items() for coded in column.level_names(name)
        ]

    def coded_names(self, names: Sequence[str] | None = None) -> list[str]:
        return self.feature_names

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        one, missing = 1 << self.grid.a, tuple(self.missing)
        return {
            name: Part(name, column, place, missing, one)
            for name, (place, column) in zip(self.columns, self._parts(), strict=True)
        }

    @property
    def groups(self) -> list[slice]:
        return [part for part, column in self._parts() if column.coded_range is None]

    @property
    def shares(self) -> dict[int, tuple[float, float]]:
        ranges = {part.start: column.coded_range for part, column in self._parts()}
        return {first: declared for first, declared in ranges.items() if declared is not None}

    def _parts(self) -> tuple[tuple[slice, Column], ...]:
        """The encoded columns of each declared one."""
        return self._spans

    @cached_property
    def _spans(self) -> tuple[tuple[slice, Column], ...]:
        ends = np.cumsum([column.width for column in self.columns.values()])
        return tuple(
            (slice(int(end) - column.width, int(end)), column)
            for end, column in zip(ends, self.columns.values(), strict=True)
        )

    def for_distances(self, level: float) -> Schema:
        from privfit.domains.scaled import ScaledSchema  # a kind of schema itself

        columns = {name: column.filled() if column.holds_numbers else column
                   for name, column in self.columns.items()}  # fmt: skip
        if level == 1.0:
            return Schema(columns, self.grid, self.missing)
        return ScaledSchema(columns, self.grid, self.missing, level)

    # ----------------------------------------------------------------------------------- reading

    def encode(self, X: Any) -> scipy.sparse.csr_array:
        """Encode a table of records.

        Parameters
        ----------
        X : DataFrame, Arrow table, dict of columns, array or list of records
            The records.

        Returns
        -------
        CSR array of shape (n, d)
            Records as int16 units of 2^-a: one entry for each declared column of a record.
        """
        return self.read(X).csr(self.level_units)

    @property
    def level_units(self) -> int:
        """What a level is coded as in its column, in units of 2^-a."""
        return 1 << self.grid.a

    def read(self, X: Any) -> Codes:
        """Read and encode a table in memory; the result is on the grid already.

        Parameters
        ----------
        X : DataFrame, Arrow table, dict of columns, array or list of records
            The records.

        Returns
        -------
        Codes
            The encoded records, column by column.
        """
        width = self.width  # refuses blanks before it looks at a cell
        n, cells = columns_of(X, list(self.columns))
        reader = NumberReader(self.missing)
        if self._has_plain_numbers(reader) and can_read_rows(X):
            return self._read_rows(X)
        levels: list[Array] = []
        numbers: list[Array] = []
        for (name, column), some in zip(self.columns.items(), cells, strict=True):
            coded = column.code(some, n, name, reader, 1 << self.grid.a)
            (levels if column.coded_range is None else numbers).append(coded)
        return Codes(self.groups, levels, list(self.shares), numbers, (n, width))

    def _has_plain_numbers(self, reader: NumberReader) -> bool:
        """Whether columns have no levels, and no number stands for a missing one."""
        columns = self.columns.values()
        return not reader.takes_numbers_for_missing and all(
            column.holds_numbers and column.coded_range is not None for column in columns
        )

    def _read_rows(self, X: Array) -> Codes:
        """The same for numbers that are side by side."""
        numbers = np.empty(X.shape[::-1], dtype=np.int16)
        columns: Any = self.columns
        steps = [column.steps(1 << self.grid.a) for column in columns.values()]
        for name, lost in zip(columns, write_rows(X, steps, numbers), strict=True):
            columns[name].check_found(name, lost)
        return Codes([], [], list(self.shares), list(numbers), X.shape)

    def blocks(self, X: Any, uniform: bool, size: int) -> Iterator[tuple[int, Any]]:
        rows = max(1, size // 8)  # on the grid already; blocks only bound the unpacking
        for first in range(0, X.shape[0], rows):
            yield first, X[first : first + rows].csr(self.level_units)

    def dense_blocks(self, X: Any, uniform: bool, size: int) -> Iterator[tuple[int, Any]]:
        rows = max(1, size // (2 * self.width))
        for first in range(0, X.shape[0], rows):
            yield first, X[first : first + rows].dense(self.level_units)

    def rounded(self, X: Any, uniform: bool = False) -> Any:
        return self.encode(X) * float(self.record_units()[0])

    def products(self, X: Any, W: Floats) -> Floats:
        return self.read(X).products(W, self.level_units, float(self.record_units()[0]))

    def table_cells(self, uniform: bool = False) -> list[Cut | Listed]:
        reader, one = NumberReader(self.missing), 1 << self.grid.a
        level = math.ldexp(self.level_units, -self.grid.a)
        return [column.cell(name, reader, one, level) for name, column in self.columns.items()]

    def coordinates(self, points: Any, columns: Sequence[int]) -> Floats:
        coded = self.rounded(points).tocsc()[:, list(columns)]
        return np.asarray(coded.toarray(), dtype=np.float64)

    # ---------------------------------------------------------------------------------- geometry

    @property
    def _declared_low(self) -> Floats:
        return np.zeros(self.width)

    @property
    def _declared_high(self) -> Floats:
        return np.ones(self.width)

    @cached_property
    def low(self) -> Floats:
        return frozen(np.zeros(self.width))

    @cached_property
    def high(self) -> Floats:
        return frozen(np.ones(self.width))

    def points(self, m: int, rng: np.random.Generator) -> Floats:
        """Draw encoded records: numbers uniform in [0, 1], one level of each group.

        Parameters
        ----------
        m : int
            Number of records.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, d)
            The encoded records.
        """
        result = np.trunc(rng.uniform(0, 1, (m, self.width)) * (1 << self.grid.a))
        for group in self.groups:
            hot = rng.integers(group.start, group.stop, m)
            result[:, group] = 0
            result[np.arange(m), hot] = self.level_units
        return result * self.record_units()

    @cached_property
    def _reduction(self) -> tuple[Integers, Floats]:
        """The first encoded column of each declared one, and the least it adds to S(v)."""
        starts = np.array([part.start for part, _ in self._parts()], dtype=np.int64)
        least = [-np.inf if column.coded_range is None else 0.0 for column in self.columns.values()]
        return starts, np.array(least)

    def norm(self, V: ArrayLike) -> Floats:
        V = np.ascontiguousarray(np.atleast_2d(np.asarray(V, dtype=np.float64)))
        norms = np.empty(len(V))
        group_norms(V, *self._reduction, norms)
        return norms

    def pair_norms(self, P: Floats) -> Floats:
        starts, least = self._reduction
        m, n_threads = len(P), threads.resolve() if P.size * len(P) > 1 << 21 else 1
        norms = np.empty((m, m))
        group_pair_norms(
            np.ascontiguousarray(P.T), np.append(starts, self.width), least,
            np.empty((n_threads, 4, m)), norms,
        )  # fmt: skip
        return norms


def as_schema(columns: Any) -> Schema:
    """The schema of declared columns and kinds: cuts of numbers, names of categories."""
    if isinstance(columns, Schema):
        return columns
    if not isinstance(columns, Mapping) or not columns:
        raise DeclarationTypeError(
            f"columns ({type(columns).__name__}) must be a Schema or a dict of kinds; pass "
            "{'age': 'number', 'job': 'category'}"
        )
    kinds: dict[Any, Any] = {
        "number": Numeric(bins="auto"), "category": Categorical(names="bought"),
        "boolean": BOOLEAN,
    }  # fmt: skip
    return Schema({name: kinds.get(one, one) if isinstance(one, str) else one
                   for name, one in columns.items()})  # fmt: skip


def _are_texts(values: Any) -> bool:
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    return listed and all(isinstance(value, str) for value in values)
