"""Files of earlier layouts, as the present one would have written them.

Version 2 added fields: they become what version 1 did without them. Version 3 renamed two solvers,
their settings, and a parameter of `SelectFeatures`. Parameters of `LATER` may be missing in files
of any version. A file is rewritten as it is read, release and all, so that whoever checks and reads
it knows the present names alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["SINCE_2", "upgraded"]

# Fields that came with version 2, of estimators and of settings, and what version 1 did.
SINCE_2: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"fit_intercept": True},
    "LinearSVC": {"C": 1.0, "fit_intercept": True},
    "ObjectivePerturbation": {"loss": None},
    "DPSGA": {"selection": "exponential", "composition": "tight"},
    "Hybrid": {"paper": False},
    "Coreset": {"alpha": None, "paper": False},
    "NoisyScores": {"paper": False},
    "ClusteredCounts": {"threshold": None},
}
# Parameters that any file may lack, and what was done without them.
LATER: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"coding": "declared", "class_weight": None, "calibrate": False},
    "LinearSVC": {"coding": "declared", "class_weight": None, "calibrate": False},
    "KMeans": {"scale": 1.0},
}
# Names that version 3 changed: solvers by the class of the model, settings, and parameters.
SOLVERS_3 = {
    "LogisticRegression": {"hybrid": "select_refine"},
    "LinearSVC": {"hybrid": "select_refine"},
    "KMedian": {"local": "swaps"},
}
SETTINGS_3 = {"LinearHybrid": "SelectRefine", "Gupta": "Swaps"}
PARAMETERS_3 = {"SelectFeatures": {"method": "solver"}}


def upgraded(parts: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file of any version as the present one names them."""
    for version, upgrade in ((2, _with_later_fields), (3, _with_new_names)):
        if parts["privfit-model"] < version and isinstance(parts.get("parameters"), dict):
            parts = upgrade(parts)
    later = LATER.get(parts.get("class", ""), {})
    if later and isinstance(parts.get("parameters"), dict):
        parts = {**parts, "parameters": {**later, **parts["parameters"]}}
    return parts


def _with_later_fields(parts: dict[str, Any]) -> dict[str, Any]:
    """A file of version 1 as version 2 would have written it."""
    added = dict(SINCE_2.get(parts["class"], {}))
    parameters = {**added, **parts["parameters"]}
    for name, value in parameters.items():
        if _is_settings(value):
            more = SINCE_2.get(value["settings"], {})
            parameters[name] = {**more, **value}
            added |= more
    return _with(parts, parameters, {**added, **_said(parts)})


def _with_new_names(parts: dict[str, Any]) -> dict[str, Any]:
    """A file of version 2 as version 3 would have written it."""
    names = PARAMETERS_3.get(parts["class"], {})
    parameters, said = (_renamed(part, names) for part in (parts["parameters"], _said(parts)))
    solvers = SOLVERS_3.get(parts["class"], {})
    for part in (parameters, said):
        if isinstance(part.get("solver"), str):
            part["solver"] = solvers.get(part["solver"], part["solver"])
    for name, value in parameters.items():
        if _is_settings(value):
            kind = value["settings"]
            parameters[name] = {**value, "settings": SETTINGS_3.get(kind, kind)}
    return _with(parts, parameters, said)


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("settings"), str)


def _said(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What the release says of the method; nothing if it has another form, which is refused."""
    release = parts.get("release")
    said = release.get("settings") if isinstance(release, dict) else None
    return said if isinstance(said, dict) else {}


def _renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The same fields under new names; a file that has both names of one keeps both."""
    return {key if names.get(key, key) in fields else names[key]: value
            for key, value in fields.items()}  # fmt: skip


def _with(parts: dict[str, Any], parameters: Any, said: dict[str, Any]) -> dict[str, Any]:
    """The file with other parameters, and with other settings in its release if it has any."""
    release = parts.get("release")
    if isinstance(release, dict) and isinstance(release.get("settings"), dict):
        release = {**release, "settings": said}
        return {**parts, "parameters": parameters, "release": release}
    return {**parts, "parameters": parameters}
