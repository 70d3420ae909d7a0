"""Declarations as plain values of JSON, and back: parameters of estimators, labels, settings.

They are encoded as `base.json` says, with four objects of our own:

    {"domain": "Box", "lower": 0.0, ...}            what `Domain.to_dict` gives
    {"settings": "Local", "generations": 100, ...}  settings of a method, or an operator among them
    {"own": "mypackage.es:ES", ...}                 a solver of a user: see `own`
    {"labels": [0, 1], "weights": [1.0, 5.0]}       weights of classes

Reading makes these and nothing else; no name in a text is ever looked up elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from privfit.base.errors import DeclarationTypeError, FileError
from privfit.base.json import decoded, encoded
from privfit.clustering import kmeans, kmedian, medians
from privfit.domains import Domain
from privfit.features import selection
from privfit.linear import methods as linear
from privfit.linear.coding import Coding
from privfit.models import own
from privfit.privacy.neighbours import Neighbours
from privfit.runs.door import OURS
from privfit.runs.fields import Taken, taken
from privfit.runs.settings import listed
from privfit.searches import operators

__all__ = ["SETTINGS", "from_plain", "method_name", "to_plain"]


_NAMES: dict[type[Any], str] = {
    kind: name
    for room in (linear, kmeans, kmedian, medians, selection)
    for name, kind in room.METHODS.items()
}
_OPERATORS = [getattr(operators, name) for name in operators.__all__]
SETTINGS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*_NAMES, *_OPERATORS, Coding)}


def method_name(method: Any) -> Any:
    """The name of a method that is given by its name or its settings."""
    if isinstance(method, own.SavedSolver):
        return method.name
    return _NAMES.get(type(method), method)


def to_plain(value: Any, what: str) -> Any:
    """A declaration as JSON has it; `what` names it in errors."""

    def other(value: Any, users: bool = False) -> dict[str, Any] | str:
        if isinstance(value, Domain):
            return value.to_dict()
        if isinstance(value, Neighbours):
            return value.relation
        if isinstance(value, Mapping) and what == "class_weight":
            labels, weights = ([encoded(one, other) for one in part]
                               for part in (value.keys(), value.values()))  # fmt: skip
            return {"labels": labels, "weights": weights}
        if _is_ours(value):
            value = taken(value)
        if isinstance(value, Taken) and value.kind in SETTINGS.values():
            params = listed(value.kind, value.fields or {}).items()
            plain = {name: encoded(item, other) for name, item in params}
            return {"settings": value.kind.__name__, **plain}
        if users and isinstance(value, own.SavedSolver | Taken):
            return own.written(value, lambda item: encoded(item, partial(other, users=True)))
        raise DeclarationTypeError(
            f"{what} ({_kind_of(value)}) cannot be written to a model file; give it a name or "
            f"plain numbers by set_params({what}=...), or pickle the model"
        )

    users = what == "solver"
    if users and not isinstance(value, str | own.SavedSolver | Taken):
        value = taken(value)  # now, if it was not before a fit
    return encoded(value, partial(other, users=users))


def _is_ours(value: Any) -> bool:
    """Whether these are settings of privfit itself, or one of its operators."""
    return type(value) in SETTINGS.values()


def _kind_of(value: Any) -> str:
    return str((value.kind if isinstance(value, Taken) else type(value)).__name__)


def from_plain(value: Any, what: str) -> Any:
    """The declaration that `to_plain` wrote."""

    def other(value: dict[str, Any]) -> Any:
        if "domain" in value:
            return Domain.from_dict(value)
        if value.keys() == {"labels", "weights"}:
            labels, weights = (from_plain(value[one], what) for one in ("labels", "weights"))
            if isinstance(labels, list) and isinstance(weights, list):
                return dict(zip(labels, weights, strict=False))
        if isinstance(value.get("settings"), str) and value["settings"] in SETTINGS:
            return _settings(value, what)
        if what == "solver" and value.keys() == own.KEYS:
            return own.read(value, lambda item: decoded(item, other, what))
        raise FileError(
            f"{what} (an object with {', '.join(value)}) must be a tuple, an array, a domain or "
            "settings; pass the text unchanged"
        )

    if what == "solver" and isinstance(value, str) and value not in OURS:
        return own.SavedSolver(value, value)  # a package may offer it, but a file names no package
    return decoded(value, other, what)


def _settings(value: dict[str, Any], what: str) -> Any:
    kind = SETTINGS[value["settings"]]
    held = {name: from_plain(item, f"{what}'s {name}")
            for name, item in value.items() if name != "settings"}  # fmt: skip
    if held.keys() | set(kind.unlisted) != {one.name for one in fields(kind)}:
        raise FileError(
            f"{what} must have the settings of {kind.__name__} and no others; pass the text "
            "unchanged"
        )
    try:
        return kind(**held)
    except TypeError as error:  # of a value that cannot be compared or counted
        raise FileError(
            f"{what} must be settings as they were written; pass the text unchanged: {error}"
        ) from None
