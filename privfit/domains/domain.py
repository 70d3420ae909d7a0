"""What all domains share: a public declaration of what a record may be.

A domain clips or projects each record by itself, rounds it towards zero onto its grid, and knows
its support norm N(v) = sup of abs(<x~, v>) over its records, where x~ = (x, 1). Privacy depends on
the declared bounds alone: a bound computed from the data would itself be a release.

A domain also reads tables, names coded columns and answers questions about its geometry
(`Geometry`), so that no other code depends on the kind of domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Floats
from privfit.base.validation import is_sparse
from privfit.domains.cells import Cut, Listed
from privfit.domains.frames import numbers_of
from privfit.domains.geometry import Geometry
from privfit.domains.grid import Grid, covering_exponents, frozen
from privfit.domains.parts import Part
from privfit.domains.plain import arguments, as_plain, domain_from, hashable
from privfit.domains.products import check_finite, not_finite, products_of_rows

__all__ = ["Domain", "Quantised", "check_width", "not_finite"]

Quantised: TypeAlias = "NDArray[np.int16] | scipy.sparse.csr_array"


class Domain(Geometry):
    """Base class of all domains: a grid, scaled columns, snapping and sampling.

    See Also
    --------
    Box : A range for each column.
    L1Ball, L2Ball : Bounds on the norm of a record.
    Schema : Named columns of numbers and categories.

    Examples
    --------
    >>> from privfit import Box, Domain
    >>> isinstance(Box(0, 1), Domain)
    True
    """

    grid: Grid
    n_features: int | None

    # ------------------------------------------------------------------------ what is declared

    def __eq__(self, other: object) -> bool:
        """Whether both domains declare the same."""
        return self._key == other._key if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """The declaration in a fixed order, for comparing and hashing."""
        return tuple(hashable(value) for value in self._declared().values())

    def _declared(self) -> dict[str, Any]:
        """The arguments that make this domain."""
        return {one.name: getattr(self, one.name) for one in arguments(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for JSON.

        Returns
        -------
        dict
            The kind of domain and its arguments; `Domain.from_dict` reads them back.
        """
        declared = {name: as_plain(value) for name, value in self._declared().items()}
        return {"domain": type(self).__name__, **declared}

    @staticmethod
    def from_dict(declared: Mapping[str, Any]) -> Domain:
        """Make a domain from what `to_dict` returned.

        Parameters
        ----------
        declared : dict
            The kind of domain and its arguments.

        Returns
        -------
        Domain
            A domain equal to the one that was written.

        Examples
        --------
        >>> from privfit import Box, Domain
        >>> Box(0, 1, 3).to_dict()["upper"]
        1.0
        >>> Domain.from_dict(Box(0, 1, 3).to_dict()) == Box(0, 1, 3)
        True
        """
        return domain_from(declared)

    def bind(self, n_features: int) -> Domain:
        """Fix the number of columns.

        Parameters
        ----------
        n_features : int
            Number of columns of the records.

        Returns
        -------
        Domain
            This domain for records with that many columns.

        Raises
        ------
        DeclarationError
            If the domain declares another number of columns.
        """
        raise NotImplementedError

    def repeated(self, k: int, grid: Grid) -> Domain:
        """The domain of k records side by side, as one row.

        Parameters
        ----------
        k : int
            Number of records in a row.
        grid : Grid
            Grid of the new domain.

        Returns
        -------
        Domain
            A domain with k times as many columns.
        """
        raise NotImplementedError

    # ----------------------------------------------------------------------------------- columns

    @property
    def width(self) -> int:
        """The number of columns of an encoded record."""
        if self.n_features is None:
            raise DeclarationError(
                f"{self!r} does not know its number of columns; pass n_features, or bounds per "
                "column"
            )
        return self.n_features

    @property
    def has_blanks(self) -> bool:
        """Whether something is to be bought before records can be coded."""
        return False

    def with_blanks_filled(self, columns: Any) -> Domain:
        """The domain with its blanks filled in; by default it has none.

        Parameters
        ----------
        columns : dict
            Columns as plain values, as a release shows them.

        Returns
        -------
        Domain
            A domain without blanks.
        """
        return self

    @property
    def n_columns(self) -> int:
        """The number of columns of a table of records, before encoding."""
        return self.width

    @property
    def declared_columns(self) -> Mapping[str, Any]:
        """The columns of a table by name, if they are declared; otherwise none."""
        return {}

    @property
    def column_names(self) -> list[str] | None:
        """The names of a table's columns, if they are declared."""
        return None

    @property
    def parts(self) -> Mapping[str, Part]:
        """The declared columns with their places among the encoded ones; none without names."""
        return {}

    def coded_names(self, names: Sequence[str] | None = None) -> list[str]:
        """Names of the encoded columns.

        Parameters
        ----------
        names : sequence of str or None, default=None
            Names of the table's columns; by default x0, x1, ...

        Returns
        -------
        list of str
            One name for each encoded column.
        """
        return [f"x{j}" for j in range(self.width)] if names is None else list(names)

    @property
    def shares(self) -> dict[int, tuple[float, float]]:
        """Encoded columns that are fractions of a declared range, and what 0 and 1 stand for."""
        return {}

    # ---------------------------------------------------------------------------------- reading

    def read(self, X: Any) -> Any:
        """Read a table in memory, each cell by itself.

        Parameters
        ----------
        X : DataFrame, Arrow table, array, sparse matrix, dict of columns or list of records
            The records.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            The encoded records.
        """
        X = numbers_of(X)
        X = X if isinstance(X, np.ndarray) or is_sparse(X) else np.asarray(X)
        _check_table(X)
        if not is_sparse(X):
            return X
        X = scipy.sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()  # the caller's arrays are left alone
            X.sum_duplicates()
        return X

    def blocks(self, X: Any, uniform: bool, size: int) -> Iterator[tuple[int, Any]]:
        """Clip and round the records in blocks of rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Records as `read` returned them.
        uniform : bool
            Whether all columns have the unit of the widest one.
        size : int
            Size of a block in bytes.

        Yields
        ------
        tuple of int and array
            The first row of a block, and its rows in whole units of the grid.
        """
        rows = max(1, size // (8 * self.width))
        for first in range(0, X.shape[0], rows):
            yield first, self._quantise_rows(X[first : first + rows], uniform)

    def dense_blocks(self, X: Any, uniform: bool, size: int) -> Iterator[tuple[int, Any]]:
        """The same blocks as arrays.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Records as `read` returned them.
        uniform : bool
            Whether all columns have the unit of the widest one.
        size : int
            Size of a block in bytes.

        Yields
        ------
        tuple of int and array
            The first row of a block, and its rows in whole units of the grid.
        """
        for first, block in self.blocks(X, uniform, size):
            yield first, block.toarray() if is_sparse(block) else block

    def _quantise_rows(self, rows: Any, uniform: bool) -> Quantised:
        with np.errstate(over="ignore"):  # a warning would tell that some record is huge
            if is_sparse(rows):
                entries = rows.data.astype(np.float64)
                rows = scipy.sparse.csr_array(
                    (entries, rows.indices, rows.indptr), shape=rows.shape
                )
            else:
                entries = rows = np.ascontiguousarray(rows, dtype=np.float64)
        if not np.isfinite(entries).all():
            raise not_finite()
        return self.quantise(rows, uniform)

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        """Clip or project records, each by itself, and round them towards zero.

        Parameters
        ----------
        block : array or CSR matrix of shape (n, d)
            Some records.
        uniform : bool, default=False
            Whether all columns have the unit of the widest one, as distances need.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            The records in whole units of the grid.
        """
        raise NotImplementedError

    def clipping(self, uniform: bool = False) -> Floats | None:
        """How each column is clipped and rounded, if it is by itself: what `quantise` does.

        Parameters
        ----------
        uniform : bool, default=False
            Whether all columns have the unit of the widest one.

        Returns
        -------
        array of shape (4, d) or None
            Origins, inverse units, and whole bounds in units; None if columns depend on each other.
        """
        return None

    def rounded(self, X: Any, uniform: bool = False) -> Any:
        """The records as a model sees them: encoded, clipped and rounded as in fitting.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records.
        uniform : bool, default=False
            Whether all columns have the unit of the widest one, as distances need.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            The rounded records.
        """
        domain, table = self.bind(X.shape[1]), X.astype(np.float64)
        if is_sparse(table):
            table.sum_duplicates()
        whole: Any = domain.quantise(table, uniform)
        units = domain.record_units(uniform)
        return whole.multiply(units).tocsr() if is_sparse(whole) else whole * units + domain.origin

    def products(self, X: Any, W: Floats) -> Floats:
        """The inner products of records, as a model sees them, with weights.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            The records.
        W : array of shape (m, d)
            The weights of each model.

        Returns
        -------
        array of shape (n, m)
            The inner products.
        """
        numbers = X.data if is_sparse(X) else np.ravel(X)
        check_finite(numbers, numbers)
        rounded = self.rounded(X)
        return np.asarray(rounded @ W.T) if is_sparse(rounded) else products_of_rows(rounded, W.T)

    def table_cells(self, uniform: bool = False) -> list[Cut | Listed]:
        """How each column of a table is coded, as plain values; for programs without privfit.

        Parameters
        ----------
        uniform : bool, default=False
            Whether all columns have the unit of the widest one, as distances need.

        Returns
        -------
        list of Cut or Listed
            Edges of numbers and values of categories, column by column.
        """
        raise DeclarationError(
            f"domain ({self!r}) projects whole records, which no transformer of scikit-learn does; "
            "fit with a Box or a Schema, or serve the model with privfit.load"
        )

    def coordinates(self, points: Any, columns: Sequence[int]) -> Floats:
        """Some encoded columns of points, which may be outside the domain.

        Parameters
        ----------
        points : array-like of shape (n, n_columns)
            The points.
        columns : sequence of int
            The encoded columns.

        Returns
        -------
        array of shape (n, len(columns))
            The coordinates.
        """
        return np.asarray(points, dtype=np.float64)[:, list(columns)]

    # ------------------------------------------------------------------------------------- grid

    @property
    def origin(self) -> Floats:
        """(d,) the point subtracted from a record before rounding: see `Box.centred`."""
        return np.zeros(self.width)

    def centred(self) -> Domain:
        """The domain on a finer grid if its own is far from its records; by default itself.

        Returns
        -------
        Domain
            The domain whose grid to use.
        """
        return self

    def for_distances(self, level: float) -> Domain:
        """The domain as distances take it; by default itself.

        Parameters
        ----------
        level : float
            What a level of a category is coded as, from 0.1 to 1, where a schema has 1.

        Returns
        -------
        Domain
            For a schema, one that refuses no number and codes levels so.
        """
        return self

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """(d,) e_j: the power of two that covers column j."""
        bounds = np.maximum(np.abs(self._declared_low), np.abs(self._declared_high))
        return frozen(covering_exponents(bounds))

    @property
    def _declared_low(self) -> Floats:
        raise NotImplementedError

    @property
    def _declared_high(self) -> Floats:
        raise NotImplementedError

    def record_units(self, uniform: bool = False) -> Floats:
        """The value of one unit of the record grid in each column.

        Parameters
        ----------
        uniform : bool, default=False
            Whether all columns have the unit of the widest one.

        Returns
        -------
        array of shape (d,)
            Powers of two.
        """
        e = self.exponents
        return np.ldexp(1.0, (np.full_like(e, e.max()) if uniform else e) - self.grid.a)

    def weight_units(self) -> Floats:
        """The value of one unit of the candidate grid in each coordinate.

        Returns
        -------
        array of shape (d + 1,)
            Powers of two, the intercept's last.
        """
        return self._weight_units

    @cached_property
    def _weight_units(self) -> Floats:
        return frozen(np.ldexp(1.0, -np.append(self.exponents, 0) - self.grid.b))

    def snap(self, P: ArrayLike) -> Floats:
        """Round candidates of a linear model to the nearest point of the grid.

        Parameters
        ----------
        P : array-like of shape (m, d + 1)
            Candidates, the intercept last.

        Returns
        -------
        array of shape (m, d + 1)
            The rounded candidates.
        """
        P = np.asarray(P, dtype=np.float64)
        if P.ndim == 0 or P.shape[-1] != self.width + 1:
            raise DeclarationError(
                f"P (shape {P.shape}) must have {self.width + 1} columns, the intercept last; pass "
                "an array (m, d + 1)"
            )
        if not np.isfinite(P).all():
            raise DeclarationError("P must be finite; pass candidates without NaN or infinity")
        units = self.weight_units()
        return np.rint(P / units) * units

    def candidates(self, m: int, rng: np.random.Generator, radius: float = 1.0) -> Floats:
        """Draw candidates of a linear model on the grid.

        Parameters
        ----------
        m : int
            Number of candidates.
        rng : numpy.random.Generator
            Source of randomness.
        radius : float, default=1.0
            How much each weight may change the margin of a record.

        Returns
        -------
        array of shape (m, d + 1)
            The candidates, the intercept last.
        """
        scale = np.append(np.ldexp(1.0, -self.exponents), 1.0)
        return self.snap(rng.uniform(-radius, radius, (m, self.width + 1)) * scale)

    def points(self, m: int, rng: np.random.Generator) -> Floats:
        """Draw points on the record grid: from the domain's box, projected to the domain.

        Parameters
        ----------
        m : int
            Number of points.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, d)
            The points.
        """
        raw = rng.uniform(self.low, self.high, (m, self.width))
        quantised = self.quantise(raw, uniform=True)
        return np.asarray(quantised, dtype=np.float64) * self.record_units(uniform=True)


def check_width(domain: Domain, n_features: int) -> None:
    """Refuse a table whose number of columns is not the declared one."""
    if domain.n_features is not None and domain.n_features != n_features:
        raise InputError(
            f"X has {n_features} columns but {type(domain).__name__} declares "
            f"{domain.n_features}; pass a domain for the columns of X"
        )


def _check_table(X: Any) -> None:
    if X.ndim != 2:
        raise InputError(f"X ({X.ndim} dimensions) must have two dimensions; pass records as rows")
    if X.dtype.kind not in "fiub":
        raise InputError(
            f"X (dtype {X.dtype}) must hold real numbers; pass numbers, or declare a Schema for "
            "columns of text"
        )
    if X.shape[1] == 0:
        raise InputError("X must have at least one column; pass a non-empty table")
