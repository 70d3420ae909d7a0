"""The fields of solvers, taken once: before the charge, as values that no run can change.

A solver of a user may be any object, and may change itself while it runs; what it holds afterwards
may have been computed from records. So its fields are read before anything is charged (`taken`),
and releases and model files have these values. What runs is a copy (`apart`), so that nothing that
it keeps is among the fields of its next run. Whatever has no plain value is shown by the name of
its type, and a model with it cannot be written to a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, is_dataclass
from types import FunctionType
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationTypeError
from privfit.domains import Domain
from privfit.privacy.neighbours import Neighbours
from privfit.runs.settings import Parameters, fields_of

__all__ = ["Taken", "apart", "name_of", "shown", "taken"]

Plain = bool | np.generic | Domain | Neighbours | range | None  # which nothing changes


@dataclass(frozen=True, eq=False)
class Taken:
    """A solver, or a part of one, as it was: its function or class, its name and its fields.

    `fields` make it again, and are None if nobody knows them; `used` are those that releases show.
    """

    kind: Any
    name: str
    fields: Mapping[str, Any] | None
    used: Mapping[str, Any]


def name_of(solver: Any) -> str:
    """The name of a solver in releases: its own, or that of its function or class."""
    name = getattr(solver, "name", None)
    if isinstance(name, str) and name:
        return name
    return str(getattr(solver, "__name__", type(solver).__name__))


def taken(solver: Any) -> Taken:
    """A solver as it is now; what is done to it later changes nothing here."""
    try:
        return _described(solver)
    except Exception as error:  # of code of its own, or of a value that contains itself
        raise DeclarationTypeError(
            f"solver ({type(solver).__name__}) must have fields that can be read, but reading them "
            f"raised {type(error).__name__}; give it plain numbers and texts as fields"
        ) from None


def apart(solver: Any) -> Any:
    """A copy of a solver, to be run once: what it writes into its fields is lost with it.

    A part that cannot be copied, such as a lock, is shared if releases show its type alone.
    """
    try:
        return _apart(solver)
    except Exception as error:
        raise DeclarationTypeError(
            f"solver ({type(solver).__name__}) must be copied before it runs, but copying it "
            f"raised {type(error).__name__}; give it plain numbers and texts as fields"
        ) from None


def _apart(part: Any) -> Any:
    with suppress(Exception):
        made = deepcopy(part)
        if not _shares(made, part):
            return made
    if isinstance(part, list | tuple):
        items = [_apart(item) for item in part]
        return items if isinstance(part, list) else tuple(items)
    if isinstance(part, dict):
        return {key: _apart(item) for key, item in part.items()}
    own = fields_of(part)
    if not own:
        return part
    made = copy(part)
    if made is part:
        raise TypeError  # `apart` says what to do
    for name, value in own.items():
        object.__setattr__(made, name, _apart(value))
    return made


def _shares(made: Any, part: Any) -> bool:
    """Whether a copy has a field, that can be changed, in common with what was copied.

    It is one of the class, or the class has a rule of its own for copies.
    """
    own = fields_of(part)
    if made is part:
        return bool(own)
    copied = fields_of(made)
    same = [one for name, one in own.items() if copied[name] is one]
    return any(deepcopy(one) is not one or fields_of(one) for one in same)


def _described(part: Any) -> Taken:
    if isinstance(part, FunctionType):
        return Taken(part, name_of(part), {}, {})
    passed = {name: _copied(value) for name, value in fields_of(part).items()}
    used = passed
    if isinstance(part, Parameters) and is_dataclass(part):
        used = {name: _copied(getattr(part, name)) for name in passed}
    known = None if not passed and not _is_made_without(part) else passed
    return Taken(type(part), name_of(part), known, used)


def _is_made_without(part: Any) -> bool:
    """Whether its class, called without arguments, makes the same again."""
    kind: Any = type(part)
    if is_dataclass(part) or hasattr(part, "get_params"):
        return not isinstance(part, type)
    made = kind.__init__ is object.__init__ and kind.__new__ is object.__new__
    slots = any(vars(base).get("__slots__") for base in kind.__mro__)
    return made and getattr(part, "__dict__", None) == {} and not slots  # it holds nothing itself


def _copied(value: Any) -> Any:
    """A value that shares nothing with the solver; what has no plain value is only described."""
    if isinstance(value, Plain):
        return value
    if isinstance(value, int | float | str):  # without what a class of a user adds
        exactly: Any = next(kind for kind in (int, float, str) if isinstance(value, kind))
        return exactly.__str__(value) if exactly is str else exactly.__pos__(value)
    if isinstance(value, list | tuple):
        items = [_copied(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {_copied(key) if isinstance(key, str) else str(key): _copied(item)
                for key, item in value.items()}  # fmt: skip
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return np.array(value)
    return _described(value)


def shown(part: Any) -> Any:
    """What a release shows of a solver that was taken, or of a value among its fields."""
    if isinstance(part, Taken):
        if part.fields is None or isinstance(part.kind, FunctionType):
            return f"{part.kind.__module__}.{part.kind.__qualname__}"
        return {name: shown(value) for name, value in part.used.items()}
    if isinstance(part, list | tuple):
        items = [shown(item) for item in part]
        return items if isinstance(part, list) else tuple(items)
    return {k: shown(v) for k, v in part.items()} if isinstance(part, dict) else part
