"""Released evaluations of a classifier, kept in its file: each as it would stand in its own.

    "evaluations": {"accuracy": {"privfit-model": 6, "class": "ReleasedFloat", ...},
                    "curve": {"privfit-model": 3, "class": "RocCurve", ...}}

They are releases of their own, of other records or of the same, and are checked as such. That they
are of this model is for its author to say: no number in them could show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privfit.base.errors import DeclarationTypeError, FileError
from privfit.base.json import parse, write
from privfit.evaluation.roc import ConfusionMatrix, RocCurve
from privfit.models.kinds import ESTIMATORS
from privfit.privacy.released import ReleasedFloat

__all__ = ["FIELD", "VERSION", "checked", "read", "written"]

CLASSIFIERS = [name for name, kind in ESTIMATORS.items() if "labels" in kind.parts]
FIELD = "evaluations"
VERSION = 6
KINDS: dict[str, tuple[type[Any], ...]] = {
    "accuracy": (ReleasedFloat, ConfusionMatrix), "curve": (RocCurve,),
}  # fmt: skip
SOURCES = {
    "accuracy": "privfit.accuracy_score or privfit.confusion_matrix",
    "curve": "privfit.roc_curve",
}


def checked(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluations that were given, and those that the model keeps; others are refused."""
    named = {name: one for name, one in given.items() if one is not None}
    found = {**getattr(model, "evaluations_", {}), **named}
    if found and type(model).__name__ not in CLASSIFIERS:
        raise DeclarationTypeError(
            f"estimator ({type(model).__name__}) must be one of {', '.join(CLASSIFIERS)} to be "
            f"saved with an accuracy or a curve; leave {next(iter(found))} out, or save it alone"
        )
    for name, one in found.items():
        if not isinstance(one, KINDS[name]):
            raise DeclarationTypeError(
                f"{name} ({type(one).__name__}) must be one that was released; pass what "
                f"{SOURCES[name]} returns"
            )
    return found


def written(found: Mapping[str, Any], dumps: Callable[[Any], str]) -> dict[str, Any]:
    """The field of a model file; none without evaluations."""
    return {FIELD: {name: parse(dumps(one)) for name, one in found.items()}} if found else {}


def read(held: Any, loads: Callable[[str], Any]) -> dict[str, Any]:
    """What `written` wrote; each part is read as a file of its own."""
    if not isinstance(held, dict) or not held or not held.keys() <= KINDS.keys():
        raise FileError(
            f"{FIELD} must be {' or '.join(KINDS)}, or both; pass a file as it was written"
        )
    found = {}
    for name, part in held.items():
        kinds = [kind.__name__ for kind in KINDS[name]]
        if not isinstance(part, dict) or part.get("class") not in kinds:
            raise FileError(f"{name} must be a {' or '.join(kinds)}; pass a file as it was written")
        found[name] = loads(write(part))
    return found
