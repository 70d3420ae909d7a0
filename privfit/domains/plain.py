"""Declarations as plain values, which JSON and TOML can hold, and domains made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite, is_whole
from privfit.domains.grid import Grid
from privfit.domains.marks import read_mark

if TYPE_CHECKING:
    from privfit.domains.domain import Domain

__all__ = ["arguments", "as_plain", "domain_from", "hashable", "plain_number"]


def arguments(kind: type[Any]) -> list[Field[Any]]:
    """The fields of a declaration that its constructor takes."""
    return [one for one in fields(kind) if one.init]


def hashable(value: Any) -> Any:
    """A hashable value, the same for equal declarations; the order of columns counts."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    if isinstance(value, np.ndarray):
        return tuple(value.tolist()) if value.ndim else float(value)
    return value


def as_plain(declared: Any) -> Any:
    """An argument of a domain as a plain value: numbers, texts, lists and tables."""
    if isinstance(declared, np.ndarray):
        return declared.tolist()
    if isinstance(declared, tuple):  # the missing texts of a schema
        return list(declared)
    if isinstance(declared, Mapping):
        return {_checked_name(name): column.to_dict() for name, column in declared.items()}
    if isinstance(declared, Grid):
        return declared.to_dict()
    return None if declared is None else plain_number(declared)


def plain_number(value: Any) -> int | float:
    """A number of any type as a Python int or float."""
    return int(value) if is_whole(value) else float(value)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise DeclarationError(
            f"column {name!r} must have a str as its name to be written; pass a Schema with texts "
            "as names"
        )
    return name


def domain_from(declared: Any) -> Domain:
    """The domain described by a table that `Domain.to_dict` made."""
    from privfit.domains import Box, L1Ball, L2Ball, Schema  # which need this module themselves
    from privfit.domains.columns import columns_from
    from privfit.domains.scaled import ScaledSchema

    every = (Box, L1Ball, L2Ball, Schema, ScaledSchema)
    kinds: dict[Any, type[Any]] = {kind.__name__: kind for kind in every}
    kind = declared.get("domain") if isinstance(declared, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise DeclarationError(
            f"domain ({kind!r}) must be one of {', '.join(kinds)}; pass what to_dict returned"
        )
    names = {one.name for one in arguments(kinds[kind])}
    older = names - {"missing"}  # before texts for missing values were declared
    bought = declared.get("bought") if "columns" in names else None
    if declared.keys() - {"domain"} - ({"bought"} if bought else set()) not in (names, older):
        raise DeclarationError(
            f"domain ({kind!r}) must have the fields {', '.join(sorted(names))}; pass what to_dict "
            "gave"
        )
    values = {name: declared[name] for name in older - {"grid", "columns"}}
    _check_numbers(values)
    if "columns" in names:
        values["columns"] = columns_from(declared["columns"])
        values["missing"] = declared.get("missing", ("",))
    domain = kinds[kind](**values, grid=Grid.from_dict(declared["grid"]))
    return domain.marked(read_mark(bought, domain.columns)) if bought else domain


def _check_numbers(values: Mapping[str, Any]) -> None:
    """Refuse bounds, radii and widths that are not numbers."""
    for name, value in values.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(map(is_finite, numbers)) and (name, value) != ("n_features", None):
            raise DeclarationError(
                f"{name} must be one or more finite numbers; pass what to_dict returned"
            )
    if not (values.get("n_features") is None or is_whole(values["n_features"])):
        raise DeclarationError(
            f"n_features ({values['n_features']!r}) must be a whole number; pass what to_dict "
            "returned"
        )
