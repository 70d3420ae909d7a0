"""What a model file holds, checked as it is read: released values, columns, classes, settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError, FileError
from privfit.base.json import as_array, parse
from privfit.base.typing import Array
from privfit.base.validation import is_finite, is_whole
from privfit.domains import Box, Domain, Schema
from privfit.domains.columns import columns_from
from privfit.models.declared import method_name
from privfit.models.limits import MOST_COLUMNS
from privfit.models.own import SavedSolver
from privfit.privacy.ledger import Release
from privfit.records.binary import bound_ones
from privfit.runs.door import fields_shown
from privfit.runs.fields import taken

__all__ = [
    "UNCHANGED",
    "File",
    "check_method",
    "check_noise",
    "check_ones",
    "check_shares",
    "classes_of",
    "columns_of",
    "domain_of",
    "indices_of",
    "learned_domain",
]

UNCHANGED = "pass a model as it was fitted, or a file as it was written"
SLACK = 0.01  # of a sum of rounded shares
# Settings that a fit may change by a public rule, so that a release, which says what was used,
# tells otherwise: raised, cut to what the domain has, or of no use to the task.
ADJUSTED = {
    "regularisation", "smoothing", "depth", "average", "scoring", "cap", "shaped", "look", "bounds",
    "cells", "roots", "radius", "count_share", "moments", "floor", "step", "weight", "places",
    "focus", "n_clusters",
}  # fmt: skip


@dataclass
class File:
    """The parts of a file; what reads a value of the release checks it and keeps the array."""

    name: str
    parameters: dict[str, Any]
    parts: dict[str, Any]
    proof: Release | None
    arrays: dict[str, Array] = field(default_factory=dict)

    @property
    def release(self) -> Release:
        """The proof, for classes that have one."""
        assert self.proof is not None
        return self.proof

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the release says of the method."""
        return self.release.settings

    def agree(self, name: str, ours: Any, released: Any) -> None:
        """Refuse a parameter that is not the release's."""
        alike = isinstance(ours, bool) == isinstance(released, bool)  # True is not 1 here
        if isinstance(ours, np.ndarray) or not alike or ours != released:
            raise FileError(
                f"{name} ({ours!r}) must be what the release says ({released!r}); {UNCHANGED}"
            )

    def numbers(self, name: str, kinds: str, *shape: int | None) -> Array:
        """A value of the release of these kinds of dtype, and of this shape; None is any size."""
        try:
            array = np.array(self.release.parameters.get(name))
        except ValueError:  # rows of different lengths
            array = np.array(None)
        fits = len(shape) == array.ndim and all(
            size in (None, found) for size, found in zip(shape, array.shape, strict=True)
        )
        if (array.size and array.dtype.kind not in kinds) or not fits:  # none are of no kind
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise FileError(
                f"{name} of the release must be numbers of shape ({wanted}); {UNCHANGED}"
            )
        self.arrays[name] = array.astype(np.float64 if "f" in kinds else np.int64)
        return self.arrays[name].copy()

    def floats(self, name: str, *shape: int | None) -> Array:
        """Real numbers of the release."""
        return self.numbers(name, "fi", *shape)

    def integers(self, name: str, *shape: int | None) -> Array:
        """Whole numbers of the release."""
        return self.numbers(name, "i", *shape)


def columns_of(file: File) -> dict[str, Any]:
    """The number of columns of a record, and their names if they have any."""
    columns = file.parts["columns"]
    if is_whole(columns) and columns >= 1:
        if columns > MOST_COLUMNS:
            raise FileError(f"columns ({columns}) must be at most {MOST_COLUMNS}; {UNCHANGED}")
        return {"n_features_in_": columns}
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) for c in columns):
        raise FileError(f"columns must be names, or their number; {UNCHANGED}")
    return {
        "n_features_in_": len(columns),
        "feature_names_in_": np.array(columns, dtype=object),
    }


def domain_of(
    file: File, declared: Any, coded: Callable[[Domain], Domain] | None = None
) -> tuple[Domain, dict[str, Any]]:
    """The domain of a record with these columns, and the attributes that tell of both.

    `coded` makes the domain of a fit of the declared one, with its blanks filled in.
    """
    found = columns_of(file)
    if isinstance(declared, tuple | list) and len(declared) == 2:
        declared = Box(*declared)
    if not isinstance(declared, Domain):
        raise FileError(f"domain must be two bounds or a declared domain; {UNCHANGED}")
    domain: Domain = declared
    if domain.column_names is None:
        domain = domain.bind(found["n_features_in_"])
    else:
        file.agree("columns", file.parts["columns"], domain.column_names)
    columns = file.release.parameters.get("columns")
    if domain.has_blanks or (columns is not None and domain.column_names is not None):
        try:
            domain = domain.with_blanks_filled(columns)
        except DeclarationError as error:
            raise FileError(f"columns must be as they were fitted; {UNCHANGED}: {error}") from None
    domain = domain if coded is None else coded(domain)
    file.agree("domain", str(domain), file.release.domain)
    return domain, {"domain_": domain, **found}


def learned_domain(file: File) -> Any:
    """The declared domain; 'learn' is the schema that was bought."""
    declared = file.parameters["domain"]
    if not isinstance(declared, str) or declared != "learn":
        return declared
    try:
        return Schema(columns_from(file.release.parameters.get("columns")))
    except DeclarationError as error:
        raise FileError(f"columns must be as they were bought; {UNCHANGED}: {error}") from None


def classes_of(file: File) -> Array:
    """The labels, different and in order."""
    classes = as_array(file.release.parameters.get("classes"), file.parts["labels"], "classes")
    if classes.ndim != 1 or len(classes) < 2 or not _in_order(classes):
        raise FileError(f"classes must be different labels in order; {UNCHANGED}")
    declared = file.parameters["classes"]
    if declared is not None and not np.array_equal(np.unique(np.asarray(declared)), classes):
        raise FileError(f"classes must be those of the release; {UNCHANGED}")
    file.arrays["classes"] = classes
    return classes.copy()


def _in_order(labels: Array) -> bool:
    try:
        return np.unique(labels).tolist() == labels.tolist()
    except TypeError:  # labels that do not compare
        return False


def check_method(file: File, name: str) -> None:
    """The method is the release's, and so are its settings, but for those left to a rule."""
    method = file.parameters[name]
    if isinstance(method, str) and method == "auto":
        return
    file.agree(name, method_name(method), file.settings.get(name))
    if dataclasses.is_dataclass(method) and not isinstance(method, SavedSolver):
        own = Release("", 0.0, 0.0, "", (), settings=fields_shown(taken(method)))
        _check_settings(file, name, parse(own.to_json())["settings"], file.settings)


def _check_settings(file: File, name: str, given: dict[str, Any], used: Any) -> None:
    """Each setting that was given is the one that was used; those of parts likewise."""
    for key, value in given.items():
        said = used.get(key) if isinstance(used, Mapping) else None
        if isinstance(value, dict):
            _check_settings(file, f"{name}'s {key}", value, said)
        elif value is not None and key not in ADJUSTED:
            file.agree(f"{name}'s {key}", value, said)


def check_noise(file: File, models: int, width: int) -> None:
    """The noise of weights, if it is known, is rows of numbers for each model; see `Spread`."""
    known = file.release.parameters.get("noise")
    if known is None:
        return
    if (
        not isinstance(known, list)
        or len(known) != models
        or not all(_is_spread(one, width) for one in known)
    ):
        raise FileError(
            f"noise of the release must be a factor of at most {width} weights a row, and the "
            f"rest, of each model; {UNCHANGED}"
        )


def _is_spread(one: Any, width: int) -> bool:
    """Whether a value is what `Spread.to_dict` writes for so many weights."""
    if not isinstance(one, dict) or one.keys() != {"factor", "rest"}:
        return False
    if not isinstance(one["factor"], list) or len(one["factor"]) > width:
        return False
    rows = [*one["factor"], one["rest"]]
    if not all(isinstance(row, list) and len(row) <= width for row in rows):
        return False
    numbers = [number for row in rows for number in row]
    return len(one["rest"]) in (0, width) and all(map(is_finite, numbers))


def check_shares(file: File, domain: Domain) -> None:
    """The parts of records in levels, if they are known, add up to 1 in each column."""
    known: Any = file.release.parameters.get("shares")
    if known is None:
        return
    if (
        not domain.parts
        or not isinstance(known, list)
        or len(known) != domain.width
        or not all(is_finite(one) and one >= 0 for one in known)
        or any(abs(sum(known[part.place]) - 1) > SLACK for part in domain.parts.values())
    ):
        raise FileError(
            f"shares of the release must be parts of 1 for the {domain.width} levels of all "
            f"columns; {UNCHANGED}"
        )


def check_ones(file: File, n_features: int) -> None:
    """How binary records were bounded is what the release says."""
    ones = bound_ones(file.parameters["max_ones"], n_features)
    said = f"binary features, at most {ones} ones a record"
    file.agree("max_ones", said, file.release.domain)


def indices_of(file: File, name: str, size: int) -> Array:
    """Different positions among so many things, as the release has them."""
    indices = file.integers(name, None)
    inside = (0 <= indices) & (indices < size)
    if not inside.all() or len(np.unique(indices)) < len(indices):
        raise FileError(f"{name} must be different numbers from 0 to {size - 1}; {UNCHANGED}")
    return indices
