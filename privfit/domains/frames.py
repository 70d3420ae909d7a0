"""Tables of any kind: their columns by name or by position, and their numbers.

A dict of columns, a pandas or Polars DataFrame, an Arrow table and a structured array have named
columns. A list of records and an array have positions; a record in a list may also be a dict. A
record that is too short has missing cells at its end, and cells beyond the declared columns are
dropped: neither affects another record. No message reveals the number of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from privfit.base.errors import InputError, InputTypeError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_sparse
from privfit.domains.reading import raw_numbers

__all__ = [
    "NotNumbersError",
    "apart",
    "chosen",
    "column_names",
    "columns_of",
    "indexable",
    "length",
    "numbers_of",
    "records_of",
    "rows_of",
]


class NotNumbersError(ValueError, TypeError):
    """Cells that are not numbers: both a wrong value and a wrong type. No cell is shown."""

    def __init__(self) -> None:
        super().__init__(
            "X must hold numbers; pass numbers, or declare a Schema: each cell of this argument "
            "must be a number or the string of a number"
        )


def column_names(X: Any) -> list[Any] | None:
    """The names of the columns, if they have any."""
    if is_sparse(X):  # a dictionary of keys is a mapping, too
        return None
    if isinstance(X, Mapping):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X.dtype.names) if X.dtype.names else None
    names = getattr(X, "column_names" if _library(X) == "pyarrow" else "columns", None)
    return None if names is None else list(names)


def columns_of(X: Any, names: list[str]) -> tuple[int, list[Any]]:
    """The number of records, and the columns with these names or at the same positions."""
    _refuse_lazy(X)
    found = column_names(X)
    columns = _by_place(X, names) if found is None else _by_name(X, names, found)
    lengths = {length(column) for column in columns}
    if isinstance(X, Mapping) and lengths == {-1} and all(map(_is_cell, columns)):
        raise InputError(
            "X (a dict of single values) must have columns; pass one record as a list: [record]"
        )
    if len(lengths) != 1 or -1 in lengths:
        raise InputError("X must have columns of one equal length; pass one value per record")
    return lengths.pop(), columns


def chosen(X: Any, names: Iterable[Any]) -> Any:
    """These columns of a table that has names, in this order."""
    wanted = list(names)
    if isinstance(X, Mapping):
        return {name: X[name] for name in wanted}
    return X[wanted] if hasattr(X, "iloc") or isinstance(X, np.ndarray) else X.select(wanted)


def apart(X: Any, label: str) -> tuple[Any, Any]:
    """The other columns of a table in memory, and the one with this name: its labels.

    Of a list of dicts, a record without the label has None in its place.
    """
    _refuse_lazy(X)
    if isinstance(X, list | tuple) and any(isinstance(row, Mapping) for row in X):
        return _without(X, label), [row.get(label) if isinstance(row, Mapping) else None
                                    for row in X]  # fmt: skip
    names = column_names(X) or []
    if names.count(label) != 1:
        raise InputError(
            f"y ({label!r}) must name one column of X, which contains the labels; pass its name, "
            "or the labels themselves"
        )
    if _library(X) == "pandas":
        return X.drop(columns=[label]), X[label]
    if _library(X) == "pyarrow":
        return X.select([i for i, name in enumerate(names) if name != label]), X.column(label)
    return chosen(X, (name for name in names if name != label)), X[label]


def _without(X: Sequence[Any], label: str) -> list[Any]:
    """Records without a label, if they are dicts."""
    return [
        {name: cell for name, cell in row.items() if name != label}
        if isinstance(row, Mapping)
        else row
        for row in X
    ]


def _refuse_lazy(X: Any) -> None:
    if type(X).__name__ == "LazyFrame":
        raise InputTypeError("X (LazyFrame) must be in memory; pass X.collect()")


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _is_cell(value: Any) -> bool:
    return value is None or bool(np.isscalar(value))


def _by_name(X: Any, names: list[str], found: list[Any]) -> list[Any]:
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(
            f"X lacks the declared columns {missing}; pass them or remove them from the Schema"
        )
    twice = [name for name in names if found.count(name) > 1]
    if twice:
        raise InputError(f"X has the columns {twice} more than once; rename or remove the others")
    return [X[name] for name in names]


def _by_place(X: Any, names: list[str]) -> list[Any]:
    if isinstance(X, list | tuple):
        rows = [_cells(row, names) for row in X]
        if any(rows) or not rows:
            return [[row[i] if i < len(row) else None for row in rows] for i in range(len(names))]
    elif not is_sparse(X):
        table = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if table.ndim == 2 and table.shape[1] == len(names):
            return [table[:, i] for i in range(len(names))]
    raise InputError(
        f"X ({type(X).__name__}) must have the {len(names)} declared columns; pass a DataFrame, a "
        "dict of columns, an array (n, columns) or a list of records"
    )


def _cells(row: Any, names: list[str]) -> Sequence[Any]:
    """The cells of a record, in order; no cells if the value is not a record."""
    if isinstance(row, list | tuple):
        return row
    if isinstance(row, Mapping):
        return [row.get(name) for name in names]
    if isinstance(row, np.void) and row.dtype.names:
        return [row[name] if name in row.dtype.names else None for name in names]
    if isinstance(row, np.ndarray) and row.ndim == 1:
        return list(row)
    return row.tolist() if _library(row) == "pandas" and getattr(row, "ndim", 0) == 1 else ()


def length(column: Any) -> int:
    """The number of cells of a column; -1 if it is not a column."""
    if isinstance(column, str | bytes | Mapping | set) or getattr(column, "ndim", 1) != 1:
        return -1
    return len(column) if hasattr(column, "__len__") else -1


def records_of(X: Any) -> int:
    """The number of records of a table in memory; -1 for what is no table of so many records."""
    if isinstance(X, Mapping) and not is_sparse(X):
        lengths = {length(column) for column in X.values()}
        return lengths.pop() if len(lengths) == 1 else -1
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else -1
    is_text = isinstance(X, str | bytes)
    return len(X) if hasattr(X, "__len__") and not is_text else -1


def indexable(X: Any) -> Any:
    """The table, with columns that `rows_of` can take cells of: those of CSV files become texts."""
    if not isinstance(X, Mapping) or is_sparse(X):
        return X
    return {name: column if hasattr(column, "__getitem__") else np.asarray(column)
            for name, column in X.items()}  # fmt: skip


def rows_of(X: Any, places: Integers) -> Any:
    """The records at these places, in a table of the same kind."""
    if isinstance(X, Mapping) and not is_sparse(X):
        return {name: rows_of(column, places) for name, column in X.items()}
    if isinstance(X, list | tuple):
        return [X[place] for place in places.tolist()]
    if _library(X) == "pandas":
        return X.iloc[places]
    if _library(X) == "pyarrow":
        return X.take(places)
    return X.tocsr()[places] if is_sparse(X) else X[places]


# ------------------------------------------------------------------------------------------ numbers


def numbers_of(X: Any) -> Any:
    """X as an array of numbers if its cells have to be read one by one; otherwise X itself.

    Arrays of numbers and sparse matrices are returned unchanged, like anything that is not a table.
    """
    if isinstance(X, np.ndarray):
        return _of_array(X)
    if isinstance(X, list | tuple):
        return _of_rows(X)
    if isinstance(X, Mapping) and not is_sparse(X):
        return _side_by_side(columns_of(X, list(X))[1]) if X else X
    library = _library(X)
    if library == "pandas" and getattr(X, "ndim", 0) == 2 and not all(map(_is_plain, X.dtypes)):
        return _side_by_side([X.iloc[:, i] for i in range(X.shape[1])])
    if library in ("polars", "pyarrow") and column_names(X):
        return _side_by_side(columns_of(X, column_names(X) or [])[1])
    return X


def _is_plain(dtype: Any) -> bool:
    """Whether scikit-learn converts a pandas column to numbers without looking at its cells."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return type(dtype).__name__ == "SparseDtype"


def _of_array(X: Array) -> Any:
    if X.dtype.names is not None:
        return _side_by_side([X[name] for name in X.dtype.names])
    if X.dtype.kind in "OSU" or isinstance(X, np.ma.MaskedArray):
        if X.ndim == 2:
            return _side_by_side([X[:, i] for i in range(X.shape[1])])
        return _of_rows(X.tolist()) if X.ndim == 1 else X
    return X


def _of_rows(X: Sequence[Any]) -> Any:
    rows = [_cells(row, []) for row in X]
    if not any(rows):
        return raw_numbers(X)
    if len({len(row) for row in rows}) != 1:
        raise NotNumbersError
    return _side_by_side([[row[i] for row in rows] for i in range(len(rows[0]))])


def _side_by_side(columns: Sequence[Any]) -> Array:
    if all(isinstance(one, np.ndarray) and one.dtype.kind in "biuf" for one in columns):
        return np.column_stack(columns) if columns else np.empty(0)
    table = np.column_stack([raw_numbers(column) for column in columns])
    if np.isnan(table).any():
        raise NotNumbersError
    return table
