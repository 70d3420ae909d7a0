"""Read and write TOML: the tables of a file, and tables as text."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privfit.base.errors import DeclarationError, FileError, MissingExtraError

__all__ = ["read_toml", "toml_text"]


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise MissingExtraError(
                "Schema.from_toml needs tomli before Python 3.11; run pip install tomli"
            ) from None
    with Path(path).open("rb") as file:
        try:
            return tomllib.load(file)
        except ValueError as error:  # not TOML, or not UTF-8
            raise FileError(
                f"path ({os.fspath(path)!r}) must be a TOML file; pass one that parses: {error}"
            ) from None


def toml_text(pairs: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a TOML file: pairs outside tables first, then each table, one entry per line."""
    parts = [_lines(pairs)] if pairs else []
    return "\n".join(parts + [f"[{name}]\n{_lines(table)}" for name, table in tables.items()])


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_pair(*entry)}\n" for entry in table.items())


def _pair(name: str, value: Any) -> str:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    """A plain value as one line of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(_pair(*entry) for entry in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{"".join(map(_character, value))}"' if isinstance(value, str) else repr(value)


def _character(character: str) -> str:
    """A character for a quoted text; an invisible one is written as a number."""
    if character in '"\\':
        return f"\\{character}"
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise DeclarationError(
            "texts must be valid Unicode for TOML to hold them; pass decoded names"
        )
    return character if character.isprintable() else f"\\U{code:08x}"
