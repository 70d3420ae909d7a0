"""JSON, written and read in one place.

`parse` takes objects only and refuses what JSON readers disagree on: a field given twice, and,
where files hold only finite numbers, NaN, infinity and numbers beyond float64. `write` writes as
Python's `json` does; numpy's values stand for Python's. `layout` is for files that people read too:
it keeps the order of fields, writes floats so that they read back as the same bits, and puts short
values on one line.

`encoded` and `decoded` are for values that must come back as they were. Numbers, texts, None and
lists stand for themselves, numpy's numbers for Python's. The rest is an object that says what it
is; rooms add objects of their own:

    {"tuple": [0, 1]}                               a tuple
    {"array": [[0.0, 0.5]], "dtype": "float64"}     an array
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Set
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationTypeError, FileError
from privfit.base.typing import Array
from privfit.base.validation import is_finite

__all__ = [
    "FieldTwiceError",
    "as_array",
    "decoded",
    "dtype_name",
    "encoded",
    "layout",
    "parse",
    "plain",
    "write",
]

WIDTH = 100
# Texts up to a length that no file can abuse, numbers that Python's hold without loss.
DTYPES = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|U[1-9]\d{0,5}|object")
CODES = re.compile(r"\|[biu]1|[<>]([iu][248]|f[248])")  # the same numbers, with their byte order
MOST_BYTES = 1 << 28  # of an array: a few letters may declare texts of a million
SINGLE = (bool, int, float, str, type(None))


# ------------------------------------------------------------------------------------------ texts


class FieldTwiceError(FileError):
    """A field is given twice."""


def parse(text: str | bytes, finite: bool = True, public: Set[str] = frozenset()) -> dict[str, Any]:
    """The fields of a JSON object; a `ValueError` says what is wrong with any other text.

    NaN and infinity are read unless all numbers must be `finite`. A message names no field but
    those that are `public`: the text may be that of another file.
    """
    numbers = _number if finite else None
    try:
        held = json.loads(
            text, object_pairs_hook=partial(_fields, public), parse_float=numbers,
            parse_constant=numbers,
        )  # fmt: skip
    except RecursionError:
        raise FileError("it is nested too deeply") from None
    if not isinstance(held, dict):
        raise FileError("it is not an object")
    return held


def _fields(public: Set[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        names = [name for name, _ in pairs if name in public]
        twice = [name for name in names if names.count(name) > 1]
        raise FieldTwiceError(
            f"the field {twice[0]!r} is given twice" if twice else "a field is given twice"
        )
    return held


def _number(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise FileError(f"{written[:20]} is not a finite number")
    return number


def write(
    value: Any, *, indent: int | None = None, ascii: bool = True, in_order: bool = False
) -> str:
    """A value as JSON: on one line, or indented; `in_order` sorts fields by their names.

    What JSON has no form for is written as `plain` has it, and does not come back as it was.
    """
    return json.dumps(value, indent=indent, ensure_ascii=ascii, sort_keys=in_order, default=plain)


def plain(value: Any) -> Any:
    """Events, settings and numpy's numbers as JSON's; of others, an estimator, what they print."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    return value.tolist() if hasattr(value, "tolist") else repr(value)


# ----------------------------------------------------------------------------------------- values


def encoded(
    value: Any, other: Callable[[Any], Any], dtype: Callable[[np.dtype[Any]], str] | None = None
) -> Any:
    """A value as JSON has it, so that `decoded` makes the same again.

    `other` makes an object of what is no number, text, list, tuple or array, or refuses it. `dtype`
    names that of an array, by default as `dtype_name` does.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if is_finite(value):
        return float(value)
    if isinstance(value, list | range):
        return [encoded(item, other, dtype) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encoded(item, other, dtype) for item in value]}
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        items = value.tolist()
        if value.dtype.kind not in "biu":  # these stand for themselves
            items = encoded(items, other, dtype)
        return {"array": items, "dtype": (dtype or dtype_name)(value.dtype)}
    return other(value)


def decoded(value: Any, other: Callable[[dict[str, Any]], Any], what: str) -> Any:
    """The value that `encoded` wrote; `other` reads objects that are no tuple and no array."""
    if isinstance(value, list):
        return [decoded(item, other, what) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(decoded(value["tuple"], other, what))
    if value.keys() == {"array", "dtype"}:
        return as_array(value["array"], value["dtype"], what)
    return other(value)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """A dtype by a name that `as_array` knows."""
    name = f"U{dtype.itemsize // 4}" if dtype.kind == "U" else dtype.name
    if not DTYPES.fullmatch(name):
        raise DeclarationTypeError(
            f"an array of dtype {dtype} cannot be written; pass booleans, numbers of up to 64 "
            "bits, or texts"
        )
    return name


def as_array(values: Any, dtype: Any, what: str) -> Array:
    """The array of these values, none of which may change on the way."""
    try:
        if not isinstance(dtype, str) or not (DTYPES.fullmatch(dtype) or CODES.fullmatch(dtype)):
            raise ValueError
        if np.dtype(dtype).itemsize * _size(values) > MOST_BYTES:
            raise ValueError
        whole = np.dtype(dtype) in (np.uint64, object)  # numpy may take large integers for floats
        with np.errstate(all="ignore"):  # what does not fit is compared below
            array = np.array(values, dtype=object if whole else None).astype(dtype)
        single = all(isinstance(item, SINGLE) for item in array.ravel().tolist())
        if not isinstance(values, list) or not single or array.tolist() != values:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise FileError(
            f"{what} must be a list of values of dtype {dtype!r}; pass the text unchanged"
        ) from None
    return array


def _size(values: Any) -> int:
    """How many values a list has, those of lists within it included."""
    return sum(map(_size, values)) if isinstance(values, list) else 1


# ----------------------------------------------------------------------------- files that are read


def layout(held: dict[str, Any]) -> str:
    """A JSON object as text, its fields on lines of their own.

    >>> from privfit.base.json import layout
    >>> print(layout({"name": "x", "pairs": [[1, 0.5], [2, 0.25]]}), end="")
    {
      "name": "x",
      "pairs": [[1, 0.5], [2, 0.25]]
    }
    """
    return _table(held, 0) + "\n"


def _value(value: Any, indent: int, used: int) -> str:
    """A value that begins `used` characters into its line, and ends with a comma."""
    line = _line(value)
    if used + len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    if isinstance(value, dict):
        return _table(value, indent)
    inner = " " * (indent + 2)
    if any(isinstance(item, dict | list) for item in value):
        items = [f"{inner}{_value(item, indent + 2, indent + 2)}" for item in value]
    else:
        items = _filled([_line(item) for item in value], inner)
    return "[\n" + ",\n".join(items) + f"\n{' ' * indent}]"


def _table(held: dict[str, Any], indent: int) -> str:
    keys = [f"{' ' * (indent + 2)}{_line(name)}: " for name in held]
    lines = [
        f"{key}{_value(value, indent + 2, len(key))}"
        for key, value in zip(keys, held.values(), strict=True)
    ]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * indent}}}"


def _filled(items: list[str], indent: str) -> list[str]:
    """Items on as few lines as hold them."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 3 <= WIDTH:
            lines[-1] += f", {item}"
        else:
            lines.append(f"{indent}{item}")
    return lines


def _line(value: Any) -> str:
    """A value on one line; invisible characters are written as numbers."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_line(key)}: {_line(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        if all(type(item) in (int, float) for item in value):  # quickly, as noise has many of them
            return json.dumps(value, allow_nan=False)
        return f"[{', '.join(map(_line, value))}]"
    return json.dumps(value, allow_nan=False)
