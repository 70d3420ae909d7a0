"""What a record may be, declared in public before any record is read: what all domains share.

A domain clips or projects each record by itself, rounds it towards zero onto its grid, and knows
its support norm N(v) = sup of abs(<x~, v>) over its records, where x~ = (x, 1). Privacy rests on
the declared bounds alone: a bound read off the data would itself be a release.

A domain also reads tables, names coded columns and answers for its geometry (`Geometry`), so that
nobody else needs to know which kind of domain it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit.base.typing import Floats
from privfit.base.validation import is_sparse
from privfit.domains.frames import numbers_of
from privfit.domains.geometry import Geometry
from privfit.domains.grid import Grid, covering_exponents, frozen
from privfit.domains.plain import arguments, as_plain, domain_from, hashable

__all__ = ["Domain", "Quantised", "check_width"]

Quantised: TypeAlias = "NDArray[np.int16] | scipy.sparse.csr_array"


class Domain(Geometry):
    """What all domains share: a grid, columns with a scale, snapping and sampling.

    >>> from privfit import Box, Domain
    >>> isinstance(Box(0, 1), Domain)
    True
    """

    grid: Grid
    n_features: int | None

    # ------------------------------------------------------------------------ what is declared

    def __eq__(self, other: object) -> bool:
        """Whether both declare the same."""
        return self._key == other._key if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """What is declared, in order, so that it can be compared and hashed."""
        return tuple(hashable(value) for value in self._declared().values())

    def _declared(self) -> dict[str, Any]:
        """The arguments that make this domain."""
        return {one.name: getattr(self, one.name) for one in arguments(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """What is declared, as JSON has it; `Domain.from_dict` reads it back."""
        declared = {name: as_plain(value) for name, value in self._declared().items()}
        return {"domain": type(self).__name__, **declared}

    @staticmethod
    def from_dict(declared: Mapping[str, Any]) -> Domain:
        """The domain that `to_dict` told of.

        >>> from privfit import Box, Domain
        >>> Box(0, 1, 3).to_dict()["upper"]
        1.0
        >>> Domain.from_dict(Box(0, 1, 3).to_dict()) == Box(0, 1, 3)
        True
        """
        return domain_from(declared)

    def bind(self, n_features: int) -> Domain:
        """This domain for records of `n_features` columns; an error if it has another number."""
        raise NotImplementedError

    def repeated(self, k: int, grid: Grid) -> Domain:
        """The domain of k records side by side, as one row, on this grid."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------------- columns

    @property
    def width(self) -> int:
        """The number of columns of an encoded record."""
        if self.n_features is None:
            raise ValueError(
                f"{self!r} does not know its number of columns; pass n_features, or bounds per "
                "column"
            )
        return self.n_features

    @property
    def n_columns(self) -> int:
        """The number of columns of a table of records, before they are coded."""
        return self.width

    @property
    def column_names(self) -> list[str] | None:
        """The names of a table's columns, where they are declared."""
        return None

    def coded_names(self, names: Sequence[str] | None = None) -> list[str]:
        """Names of the encoded columns of a table with these names; by default x0, x1, ..."""
        return [f"x{j}" for j in range(self.width)] if names is None else list(names)

    @property
    def shares(self) -> dict[int, tuple[float, float]]:
        """Encoded columns that are shares of a declared range, and what 0 and 1 of them mean."""
        return {}

    # ---------------------------------------------------------------------------------- reading

    def read(self, X: Any) -> Any:
        """A table in memory as an array or a CSR matrix (n, d), each cell read by itself."""
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
        """(first row, rows in whole units) of what `read` returned, so many bytes at a time."""
        rows = max(1, size // (8 * self.width))
        for first in range(0, X.shape[0], rows):
            yield first, self._quantise_rows(X[first : first + rows], uniform)

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
            raise ValueError(
                "X must be finite; fill NaN and infinity before, or declare a Schema with fill="
            )
        return self.quantise(rows, uniform)

    def quantise(self, block: Any, uniform: bool = False) -> Quantised:
        """Clip or project records, each by itself, and round them towards zero: whole units.

        `uniform` gives every column the unit of the widest, as distances need.
        """
        raise NotImplementedError

    def rounded(self, X: Any, uniform: bool = False) -> Any:
        """Records (n, d) as a model sees them: coded, clipped and rounded as in fitting.

        `uniform` has one unit for all columns, as distances do.
        """
        domain, table = self.bind(X.shape[1]), X.astype(np.float64)
        if is_sparse(table):
            table.sum_duplicates()
        whole: Any = domain.quantise(table, uniform)
        units = domain.record_units(uniform)
        return whole.multiply(units).tocsr() if is_sparse(whole) else whole * units + domain.origin

    def coordinates(self, points: Any, columns: Sequence[int]) -> Floats:
        """(n, len(columns)) these encoded columns of points, which may lie outside the domain."""
        return np.asarray(points, dtype=np.float64)[:, list(columns)]

    # ------------------------------------------------------------------------------------- grid

    @property
    def origin(self) -> Floats:
        """(d,) what is subtracted from a record before it is put on the grid: see `Box.centred`."""
        return np.zeros(self.width)

    def centred(self) -> Domain:
        """The domain on a finer grid where its own is far from its records; here, itself."""
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
        """(d,) what one record integer is worth in each column."""
        e = self.exponents
        return np.ldexp(1.0, (np.full_like(e, e.max()) if uniform else e) - self.grid.a)

    def weight_units(self) -> Floats:
        """(d + 1,) what one candidate integer is worth in each coordinate, the intercept last."""
        return self._weight_units

    @cached_property
    def _weight_units(self) -> Floats:
        return frozen(np.ldexp(1.0, -np.append(self.exponents, 0) - self.grid.b))

    def snap(self, P: ArrayLike) -> Floats:
        """Candidates of a linear model (m, d + 1), rounded to the nearest point of the grid."""
        P = np.asarray(P, dtype=np.float64)
        if P.ndim == 0 or P.shape[-1] != self.width + 1:
            raise ValueError(
                f"P (shape {P.shape}) must have {self.width + 1} columns, the intercept last; pass "
                "an array (m, d + 1)"
            )
        if not np.isfinite(P).all():
            raise ValueError("P must be finite; pass candidates without NaN or infinity")
        units = self.weight_units()
        return np.rint(P / units) * units

    def candidates(self, m: int, rng: np.random.Generator, radius: float = 1.0) -> Floats:
        """(m, d + 1) linear candidates on the grid; each weight moves z by up to `radius`."""
        scale = np.append(np.ldexp(1.0, -self.exponents), 1.0)
        return self.snap(rng.uniform(-radius, radius, (m, self.width + 1)) * scale)

    def points(self, m: int, rng: np.random.Generator) -> Floats:
        """(m, d) points on the record grid, drawn from the domain's box and projected to it."""
        raw = rng.uniform(self.low, self.high, (m, self.width))
        quantised = self.quantise(raw, uniform=True)
        return np.asarray(quantised, dtype=np.float64) * self.record_units(uniform=True)


def check_width(domain: Domain, n_features: int) -> None:
    """Refuse a table with another number of columns than is declared."""
    if domain.n_features is not None and domain.n_features != n_features:
        raise ValueError(
            f"X has {n_features} columns but {type(domain).__name__} declares "
            f"{domain.n_features}; pass a domain for the columns of X"
        )


def _check_table(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"X ({X.ndim} dimensions) must have two dimensions; pass records as rows")
    if X.dtype.kind not in "fiub":
        raise ValueError(
            f"X (dtype {X.dtype}) must hold real numbers; pass numbers, or declare a Schema for "
            "columns of text"
        )
    if X.shape[1] == 0:
        raise ValueError("X must have at least one column; pass a non-empty table")
