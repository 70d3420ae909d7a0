"""JSON for people and for machines: strict reading, and a readable layout.

`parse` takes objects only and refuses what JSON readers disagree on and what is not a number: a
field given twice, NaN, infinity, a number beyond float64. `layout` keeps the order of fields,
writes floats so that they read back as the same bits, and puts short values on one line.
"""

from __future__ import annotations

import json
import math
from typing import Any

from privfit.base.errors import FileError

__all__ = ["layout", "parse"]

WIDTH = 100


def parse(text: str | bytes) -> dict[str, Any]:
    """The fields of a JSON object; a `ValueError` says what is wrong with any other text."""
    try:
        fields = json.loads(
            text, object_pairs_hook=_fields, parse_float=_number, parse_constant=_number
        )
    except RecursionError:
        raise FileError("it is nested too deeply") from None
    if not isinstance(fields, dict):
        raise FileError("it is not an object")
    return fields


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise FileError("a field is given twice")
    return fields


def _number(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise FileError(f"{written[:20]} is not a finite number")
    return number


def layout(fields: dict[str, Any]) -> str:
    """A JSON object as text, its fields on lines of their own.

    >>> from privfit.base.json import layout
    >>> print(layout({"name": "x", "pairs": [[1, 0.5], [2, 0.25]]}), end="")
    {
      "name": "x",
      "pairs": [[1, 0.5], [2, 0.25]]
    }
    """
    return _table(fields, 0) + "\n"


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


def _table(fields: dict[str, Any], indent: int) -> str:
    keys = [f"{' ' * (indent + 2)}{_line(name)}: " for name in fields]
    lines = [
        f"{key}{_value(value, indent + 2, len(key))}"
        for key, value in zip(keys, fields.values(), strict=True)
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
        return f"[{', '.join(map(_line, value))}]"
    return json.dumps(value, allow_nan=False)
