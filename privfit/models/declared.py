"""Declarations as plain values of JSON, and back: parameters of estimators, labels, settings.

Numbers, texts, None and lists stand for themselves, numpy's numbers for Python's. The rest is an
object that says what it is:

    {"tuple": [0, 1]}                               a tuple
    {"array": [[0.0, 0.5]], "dtype": "float64"}     an array
    {"domain": "Box", "lower": 0.0, ...}            what `Domain.to_dict` gives
    {"settings": "Local", "generations": 100, ...}  settings of a method

Reading makes these and nothing else; no name in a text is ever looked up elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationTypeError, FileError
from privfit.base.typing import Array
from privfit.base.validation import is_finite
from privfit.clustering import kmeans, kmedian
from privfit.domains import Domain
from privfit.features import selection
from privfit.linear import methods as linear

__all__ = ["SETTINGS", "as_array", "dtype_name", "from_plain", "method_name", "to_plain"]


_NAMES: dict[type[Any], str] = {
    kind: name
    for methods in (linear.METHODS, kmeans.METHODS, kmedian.METHODS, selection.METHODS)
    for name, kind in methods.items()
}
SETTINGS: dict[str, type[Any]] = {kind.__name__: kind for kind in _NAMES}

# Texts up to a length that no file can abuse, numbers that Python's hold without loss.
DTYPES = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|U[1-9]\d{0,5}|object")
SINGLE = (bool, int, float, str, type(None))


def method_name(method: Any) -> Any:
    """The name of a method that is given by its name or its settings."""
    return _NAMES.get(type(method), method)


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
        if not isinstance(dtype, str) or not DTYPES.fullmatch(dtype):
            raise ValueError
        array = np.array(values, dtype=object if dtype == "object" else None).astype(dtype)
        single = all(isinstance(item, SINGLE) for item in array.ravel().tolist())
        if not isinstance(values, list) or not single or array.tolist() != values:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise FileError(
            f"{what} must be a list of values of dtype {dtype!r}; pass the text unchanged"
        ) from None
    return array


def to_plain(value: Any, what: str) -> Any:
    """A declaration as JSON has it; `what` names it in errors."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if is_finite(value):
        return float(value)
    if isinstance(value, list | range):
        return [to_plain(item, what) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item, what) for item in value]}
    if isinstance(value, Domain):
        return value.to_dict()
    if SETTINGS.get(type(value).__name__) is type(value):
        own = value.get_params(deep=False).items()
        return {"settings": type(value).__name__, **{name: to_plain(v, what) for name, v in own}}
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        items = value.tolist()
        return {"array": to_plain(items, what), "dtype": dtype_name(value.dtype)}
    raise DeclarationTypeError(
        f"{what} ({type(value).__name__}) cannot be written to a model file; give it a name or "
        f"plain numbers by set_params({what}=...), or pickle the model"
    )


def from_plain(value: Any, what: str) -> Any:
    """The declaration that `to_plain` wrote."""
    if isinstance(value, list):
        return [from_plain(item, what) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(from_plain(value["tuple"], what))
    if value.keys() == {"array", "dtype"}:
        return as_array(value["array"], value["dtype"], what)
    if "domain" in value:
        return Domain.from_dict(value)
    if isinstance(value.get("settings"), str) and value["settings"] in SETTINGS:
        return _settings(value, what)
    raise FileError(
        f"{what} (an object with {', '.join(value)}) must be a tuple, an array, a domain or "
        "settings; pass the text unchanged"
    )


def _settings(value: dict[str, Any], what: str) -> Any:
    kind = SETTINGS[value["settings"]]
    own = {name: from_plain(item, what) for name, item in value.items() if name != "settings"}
    if own.keys() != {one.name for one in fields(kind)}:
        raise FileError(
            f"{what} must have the settings of {kind.__name__} and no others; pass the text "
            "unchanged"
        )
    try:
        return kind(**own)
    except TypeError as error:  # of a value that cannot be compared or counted
        raise FileError(
            f"{what} must be settings as they were written; pass the text unchanged: {error}"
        ) from None
