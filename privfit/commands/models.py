"""Model files, as the commands read them."""

from __future__ import annotations

from typing import Any

from privfit.base.errors import BudgetError, InputError
from privfit.domains import Schema

__all__ = ["load_model", "schema_of"]


def load_model(path: str) -> Any:
    """The model of a file, verified."""
    from privfit.models.model import load

    try:
        return load(path)
    except BudgetError as error:  # the file is wrong; nobody's budget is too small
        raise InputError(str(error)) from None


def schema_of(model: Any, path: str) -> Schema:
    """The columns that a model was fitted to, by name."""
    domain: Schema | None = getattr(model, "domain_", None)
    if domain is None or domain.column_names is None:
        raise InputError(
            f"{path!r} must be a model of named columns; fit it with a Schema, as privfit fit does"
        )
    return domain
