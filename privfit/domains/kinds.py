"""The kinds of a table's columns, from the types that its container declares and never from cells.

Whole numbers and floats are numbers; booleans are categories with the names False and True; texts,
categories and objects are categories. Cells are not looked at, so a column of objects is a category
even if each of them is a number. A column whose type is none of these, such as a date, is refused,
and so is a container without types.

A column of dates or durations is no column of numbers either where a `Numeric` declares it: its
cells have no unit, and all of them would count as missing. It is refused by its type alone. A list,
or a column of objects, declares no type: whatever one of its cells is, it is read by itself.

What a container declares is what its maker made of it. A reader of CSV files that infers types has
looked at every record: one odd cell makes a column of texts of it. Declare types where you read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privfit.base.errors import InputTypeError
from privfit.base.validation import is_sparse
from privfit.domains.frames import column_names

__all__ = ["check_numbers", "kinds_of", "kinds_of_types"]

UNTYPED = (
    "must declare the types of its columns for domain='learn'; pass a DataFrame, an Arrow table or "
    "an array of numbers, or domain=Schema.blank({'age': 'number', 'job': 'category'})"
)


KINDS_OF_NUMPY = {
    "b": "boolean", **dict.fromkeys("iuf", "number"), **dict.fromkeys("OUST", "category")
}  # fmt: skip


def kinds_of(X: Any) -> dict[str, str]:
    """The kind of each column, 'number', 'boolean' or 'category', by its name.

    Parameters
    ----------
    X : DataFrame, Arrow table, dict of typed columns, array, or Dask frame or array
        The records, of which no cell is looked at. Columns of an array are called x0, x1, ...

    Returns
    -------
    dict of str to str
        The kinds, for `Schema.blank`.
    """
    names = column_names(X)
    if names is None:
        return _kinds_of_array(X)
    if isinstance(X, Mapping):
        types = [_type(column) for column in X.values()]
    elif isinstance(X, np.ndarray):
        types = [X.dtype[name] for name in names]
    elif type(X).__module__.partition(".")[0] == "pyarrow":
        types = list(X.schema.types)
    else:
        types = list(getattr(X, "dtypes", ()))
    if len(types) != len(names) or not names:
        raise InputTypeError(f"X ({type(X).__name__}) {UNTYPED}")
    return kinds_of_types(names, types)


def kinds_of_types(names: list[Any], types: list[Any]) -> dict[str, str]:
    """The kinds of columns with these names and declared types.

    Parameters
    ----------
    names : list
        Their names, which must be different texts.
    types : list
        Their types, of numpy, pandas, Polars or Arrow; None for a column without one.

    Returns
    -------
    dict of str to str
        The kinds.
    """
    if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise InputTypeError(
            "X must have columns with different names that are texts, for domain='learn'; rename "
            "its columns"
        )
    found = {}
    for name, declared in zip(names, types, strict=True):
        kind = None if declared is None else _kind(declared)
        if kind is None:
            what = "no declared type" if declared is None else f"the type {declared}"
            raise InputTypeError(
                f"column {name!r} (of {what}) must be of numbers, texts or categories for "
                "domain='learn'; pass numbers, such as days since a public date, or leave it out"
            )
        found[name] = kind
    return found


def check_numbers(name: str, cells: Any) -> None:
    """Refuse a column that declares to hold dates or durations where numbers are declared.

    Parameters
    ----------
    name : str
        The name of the column.
    cells : array-like
        The column, of which no cell is looked at.
    """
    declared = _type(cells)
    if declared is not None and _is_moment(declared):
        raise InputTypeError(
            f"column {name!r} (of the type {declared}) must be of numbers, and a date or a "
            "duration has no unit; pass a number in a unit that you name, such as days since a "
            "public date, or declare Categorical()"
        )


def _kinds_of_array(X: Any) -> dict[str, str]:
    """Those of an array of numbers, whose columns have no names."""
    declared: Any = getattr(X, "dtype", None)
    shape: Any = getattr(X, "shape", ())
    numbers = isinstance(declared, np.dtype) and declared.kind in "biuf"
    if is_sparse(X) or not numbers or len(shape) != 2 or not isinstance(shape[1], int):
        raise InputTypeError(f"X ({type(X).__name__}) {UNTYPED}")
    kind = "boolean" if declared.kind == "b" else "number"
    return {f"x{i}": kind for i in range(shape[1])}


def _type(column: Any) -> Any:
    """The type that a column declares; None if it is a list or the like."""
    found = getattr(column, "dtype", None)
    return getattr(column, "type", None) if found is None else found


def _kind(declared: Any) -> str | None:
    library = type(declared).__module__.partition(".")[0]
    if library == "polars" or getattr(declared, "__module__", "").startswith("polars"):
        return _kind_in_polars(declared)
    if library == "pyarrow":
        return _kind_in_arrow(declared)
    if isinstance(declared, np.dtype):
        return KINDS_OF_NUMPY.get(declared.kind)
    if hasattr(declared, "pyarrow_dtype"):
        return _kind_in_arrow(declared.pyarrow_dtype)
    return _kind_in_pandas(declared)


def _kind_in_pandas(declared: Any) -> str | None:
    if type(declared).__name__ in ("CategoricalDtype", "StringDtype"):
        return "category"
    if type(declared).__name__ == "SparseDtype":
        return _kind(declared.subtype)
    kind = KINDS_OF_NUMPY.get(getattr(declared, "kind", ""))
    return None if kind == "category" else kind


def _kind_in_polars(declared: Any) -> str | None:
    name = str(declared).partition("(")[0]
    if name == "Boolean":
        return "boolean"
    if declared.is_numeric():
        return "number"
    return "category" if name in ("String", "Utf8", "Categorical", "Enum", "Object") else None


def _kind_in_arrow(declared: Any) -> str | None:
    from pyarrow import types

    if types.is_boolean(declared):
        return "boolean"
    numbers = types.is_integer, types.is_floating, types.is_decimal
    if any(is_one(declared) for is_one in numbers):
        return "number"
    texts = types.is_string(declared) or types.is_large_string(declared)
    return "category" if texts or types.is_dictionary(declared) else None


def _is_moment(declared: Any) -> bool:
    """Whether a declared type is of dates, times or durations."""
    if type(declared).__module__.partition(".")[0] == "polars" or getattr(
        declared, "__module__", ""
    ).startswith("polars"):
        return bool(declared.is_temporal())
    declared = getattr(declared, "pyarrow_dtype", declared)
    if type(declared).__module__.partition(".")[0] == "pyarrow":
        from pyarrow import types

        return bool(types.is_temporal(declared))
    return getattr(declared, "kind", "") in ("M", "m") or type(declared).__name__ == "PeriodDtype"
