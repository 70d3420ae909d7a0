"""Model files: a fitted model as JSON that holds declarations and released values, and no more.

    {
      "privfit-model": 2,                  the number of this layout
      "written-by": "privfit 0.1.0",
      "class": "LogisticRegression",
      "parameters": {...},                 of the constructor; `declared.py` says how they look
      "columns": ["age", "hours"],         of a record: their names, or how many there are
      "labels": "bool",                    the dtype of the classes, where there are any
      "release": {...}                     what `Release.to_json` writes
    }

Released values stand in the release, once; reading makes the fitted attributes of them, so that a
file cannot say two things. What belongs to a run and not to a model is left out: ledger, callback,
seed, threads and progress bar. `check` is all that reading trusts: every field is there and no
other, shapes fit, no number is NaN, the events of the release cost what it promises, and the
parameters are those of the release. `dumps` checks its own text and compares it with the model.

A number of the layout is never given two meanings. A change of any field raises it, and files of
every earlier number are read (`docs/models.md`).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from privfit.base.errors import BudgetError, DeclarationTypeError, FileError
from privfit.base.files import write_atomically
from privfit.base.json import layout, parse
from privfit.base.typing import Array
from privfit.base.validation import is_whole
from privfit.base.version import __version__
from privfit.domains import Box, Domain
from privfit.evaluation.roc import ConfusionMatrix, RocCurve
from privfit.features.bayes import NaiveBayes, NoisyCounts
from privfit.features.text import hashed, listed
from privfit.models.declared import as_array, dtype_name, from_plain, method_name, to_plain
from privfit.objectives.facility import spanned_box
from privfit.privacy.ledger import ADJACENCIES, Budget, Release
from privfit.records.binary import bound_ones

__all__ = ["Contents", "check", "dumps", "load", "loads", "save"]


VERSION = 2
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
OF_A_RUN = {"ledger", "callback", "random_state", "n_threads", "verbose"}  # not saved
# Settings that a fit may change by a public rule, so that a release, which says what was used,
# tells otherwise: raised, cut to what the domain has, or of no use to the task.
ADJUSTED = {
    "regularisation", "smoothing", "depth", "average", "scoring", "cap", "shaped", "look", "bounds",
    "cells", "roots", "radius", "count_share", "moments", "floor", "step", "weight", "places",
    "focus", "n_clusters",
}  # fmt: skip
UNCHANGED = "pass a model as it was fitted, or a file as it was written"


# --------------------------------------------------------------------------------- public functions


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file: completely, or not at all.

    Parameters
    ----------
    estimator : fitted estimator, RocCurve or ConfusionMatrix
        A fitted estimator of privfit, or a released curve or matrix.
    path : str or path-like
        The file; an existing one is replaced.

    See Also
    --------
    load : Reads it back.

    Notes
    -----
    The file contains declarations and released values only: it is as public as the model.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import privfit
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> model = privfit.KMeans(2, 1.0, domain=(-1, 1)).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     privfit.save(model, f"{folder}/model.json")
    ...     again = privfit.load(f"{folder}/model.json")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    write_atomically(path, dumps(estimator))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model from a file that `save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    fitted estimator, RocCurve or ConfusionMatrix
        The model.

    Raises
    ------
    FileError
        If the file is not a model file, or not as it was written.

    See Also
    --------
    save : Writes it.

    Examples
    --------
    >>> import tempfile
    >>> import privfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     privfit.save(privfit.HashWords(64), f"{folder}/words.json")
    ...     privfit.load(f"{folder}/words.json")
    HashWords(n_features=64)
    """
    content = Path(path).read_bytes()
    try:
        return loads(content)
    except (ValueError, BudgetError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def dumps(estimator: Any) -> str:
    """A fitted model as the text of a model file."""
    name = type(estimator).__name__
    if name not in KINDS or type(estimator) is not _class(name):
        raise DeclarationTypeError(
            f"estimator ({name}) must be a model of privfit itself; pass one of "
            f"{', '.join(KINDS)}, or pickle yours"
        )
    _check_released(estimator)
    head = {"privfit-model": VERSION, "written-by": f"privfit {__version__}", "class": name}
    text = layout(head | {part: PARTS[part](estimator) for part in KINDS[name].parts})
    for attribute, value in check(text).fitted.items():
        if not _same(getattr(estimator, attribute, None), value):
            raise FileError(
                f"{attribute} must be what was released, since a model file contains nothing else; "
                "fit again, or pickle a model that you made yourself"
            )
    return text


def loads(text: str | bytes) -> Any:
    """The fitted model of a text that `dumps` wrote.

    >>> from privfit import HashWords
    >>> from privfit.models.model import dumps, loads
    >>> loads(dumps(HashWords(64)))
    HashWords(n_features=64)
    """
    contents = check(text)
    made = _class(contents.kind)
    if contents.kind not in ESTIMATORS:
        return made(**contents.fitted)
    estimator = made(**contents.parameters)
    vars(estimator).update(contents.fitted)
    return estimator


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model file holds, checked: `fitted` are the attributes that follow from the rest."""

    kind: str
    version: int
    written_by: str
    parameters: Mapping[str, Any]
    release: Release | None
    fitted: Mapping[str, Any] = field(repr=False)


def check(text: str | bytes) -> Contents:
    """Read a model file and refuse it if anything in it is wrong; scikit-learn is not needed.

    >>> from privfit import HashWords
    >>> from privfit.models.model import check, dumps
    >>> check(dumps(HashWords(64))).parameters
    {'n_features': 64, 'vocabulary': None, 'fold_digits': True}
    """
    parts = _parts_of(text)
    name, version, writer = (parts[key] for key in ("class", "privfit-model", "written-by"))
    file = _File(name, _parameters(parts), parts, _release(parts))
    fitted = _fitted(file)
    release = None
    if file.proof is not None:
        released = {key: array.copy() for key, array in file.arrays.items()}
        release = replace(file.proof, parameters={**file.proof.parameters, **released})
        fitted["release_" if name in ESTIMATORS else "release"] = release
    return Contents(name, version, writer, file.parameters, release, fitted)


def _class(name: str) -> type[Any]:
    """The class of this name; estimators load scikit-learn, so they load now."""
    if name in RESULTS:
        return RESULTS[name]
    from privfit import estimators

    return getattr(estimators, name)


# ------------------------------------------------------------------------------------------ writing


def _written_parameters(estimator: Any) -> dict[str, Any]:
    names = KINDS[type(estimator).__name__].parameters
    return {name: to_plain(getattr(estimator, name), name) for name in names}


def _written_columns(estimator: Any) -> int | list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return int(estimator.n_features_in_) if names is None else list(names)


def _check_released(estimator: Any) -> None:
    """Refuse a model that is not fitted, or that has nothing to show for its privacy."""
    what = type(estimator).__name__
    if "columns" not in KINDS[what].parts:
        return
    if not hasattr(estimator, "release_"):
        raise FileError(f"{what} must be fitted to be written; call fit first")
    if estimator.release_ is None:
        raise FileError(
            f"{what} was fitted with an infinite epsilon, so nothing was released; fit it with a "
            f"finite one, or pickle it if everybody may see the records"
        )


def _written_release(estimator: Any) -> dict[str, Any]:
    release = estimator.release if type(estimator).__name__ in RESULTS else estimator.release_
    return parse(release.to_json())


PARTS: dict[str, Callable[[Any], Any]] = {
    "parameters": _written_parameters,
    "release": _written_release,
    "columns": _written_columns,
    "labels": lambda estimator: dtype_name(estimator.classes_.dtype),
    "thresholds": lambda curve: curve.thresholds[1:].tolist(),  # the first is infinite
}


def _same(ours: Any, read: Any) -> bool:
    """Whether a file returns a model's value.

    Logarithms of released counts may come from another machine, with another rounding in the last
    place.
    """
    if isinstance(read, Release):
        return isinstance(ours, Release) and ours.to_json() == read.to_json()
    if not isinstance(read, np.ndarray):
        return type(ours) is type(read) and bool(ours == read)
    if not isinstance(ours, np.ndarray) or ours.dtype.newbyteorder("=") != read.dtype:
        return False
    if ours.shape == read.shape and read.dtype.kind == "f":
        return np.allclose(ours, read, rtol=1e-12, atol=1e-12)
    return bool(ours.tolist() == read.tolist())


# ------------------------------------------------------------------------------------------ reading


def _parts_of(text: str | bytes) -> dict[str, Any]:
    """The fields of a file of a version and a class that are known."""
    try:
        parts = parse(text)
    except ValueError as error:
        raise FileError(
            f"text must be JSON as privfit writes it; pass a model file: {error}"
        ) from None
    version, name = parts.get("privfit-model"), parts.get("class")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FileError(
            "text must be a model file, which begins with 'privfit-model'; pass what privfit.save "
            "wrote"
        )
    if version > VERSION:
        raise FileError(
            f"version ({version}) must be at most {VERSION} for this privfit to read it; install "
            "a newer privfit"
        )
    if not isinstance(name, str) or name not in KINDS:
        raise FileError(f"class ({name!r}) must be one of {', '.join(KINDS)}; {UNCHANGED}")
    wanted = {"privfit-model", "written-by", "class", *KINDS[name].parts}
    if parts.keys() != wanted:
        raise FileError(
            f"a model file of {name} must have the fields {', '.join(sorted(wanted))}, but "
            f"{', '.join(sorted(parts.keys() ^ wanted))} is missing or unknown; {UNCHANGED}"
        )
    if not isinstance(parts["written-by"], str):
        raise FileError(f"written-by must be a text; {UNCHANGED}")
    return _upgraded(parts) if version == 1 else parts


def _upgraded(parts: dict[str, Any]) -> dict[str, Any]:
    """A file of version 1 as version 2 would have written it."""
    parameters, release = parts.get("parameters"), parts.get("release")
    said = release.get("settings") if isinstance(release, dict) else None
    if not isinstance(parameters, dict):
        return parts
    added = dict(SINCE_2.get(parts["class"], {}))
    parameters = {**added, **parameters}
    for name, value in parameters.items():
        if isinstance(value, dict) and isinstance(value.get("settings"), str):
            more = SINCE_2.get(value["settings"], {})
            parameters[name] = {**more, **value}
            added |= more
    if isinstance(release, dict) and isinstance(said, dict):
        release = {**release, "settings": {**added, **said}}
        return {**parts, "parameters": parameters, "release": release}
    return {**parts, "parameters": parameters}


def _parameters(parts: dict[str, Any]) -> dict[str, Any]:
    """The constructor's parameters."""
    name, read = parts["class"], parts.get("parameters", {})
    wanted = KINDS[name].parameters
    if not isinstance(read, dict) or read.keys() != set(wanted):
        raise FileError(f"parameters of {name} must be {', '.join(wanted)}; {UNCHANGED}")
    return {key: from_plain(read[key], key) for key in wanted}


def _release(parts: dict[str, Any]) -> Release | None:
    """The release, with fields of the right kinds and events that cost what it promises."""
    if "release" not in parts:
        return None
    said = parts["release"]
    wanted = {"privfit", *(one.name for one in dataclasses.fields(Release))} - {"filter"}
    if not isinstance(said, dict) or said.keys() != wanted:
        raise FileError(f"release must have the fields {', '.join(sorted(wanted))}; {UNCHANGED}")
    kinds = {"name": str, "domain": str, "settings": dict, "parameters": dict, "seeded": bool}
    for key, kind in kinds.items():
        if not isinstance(said[key], kind):
            raise FileError(f"{key} of the release must be a {kind.__name__}; {UNCHANGED}")
    if not said["events"] or said["adjacency"] not in ADJACENCIES:
        raise FileError(f"release must have events and a known adjacency; {UNCHANGED}")
    try:
        release = Release.from_json(json.dumps(said))
        Budget(release.epsilon, release.delta)
        release.verify()
    except BudgetError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise FileError(f"release must be as it was written; {UNCHANGED}: {error}") from None
    return release


@dataclass
class _File:
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


def _fitted(file: _File) -> dict[str, Any]:
    """The attributes of a model whose parameters and values fit together."""
    if file.proof is not None:
        file.agree("class", file.name, CALLS.get(file.proof.name.rpartition("/")[2]))
        for name in ("epsilon", "delta", "adjacency"):
            if name in file.parameters:
                file.agree(name, file.parameters[name], getattr(file.proof, name))
    try:
        return KINDS[file.name].fitted(file)
    except TypeError as error:  # a text where a number should be, or the like
        raise FileError(f"a value is of the wrong kind; {UNCHANGED}: {error}") from None


def _columns(file: _File) -> dict[str, Any]:
    """The number of columns of a record, and their names if they have any."""
    columns = file.parts["columns"]
    if is_whole(columns) and columns >= 1:
        return {"n_features_in_": columns}
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) for c in columns):
        raise FileError(f"columns must be names, or their number; {UNCHANGED}")
    return {
        "n_features_in_": len(columns),
        "feature_names_in_": np.array(columns, dtype=object),
    }


def _domain(file: _File, declared: Any) -> tuple[Domain, dict[str, Any]]:
    """The domain of a record with these columns, and the attributes that tell of both."""
    found = _columns(file)
    if isinstance(declared, tuple | list) and len(declared) == 2:
        declared = Box(*declared)
    if not isinstance(declared, Domain):
        raise FileError(f"domain must be two bounds or a declared domain; {UNCHANGED}")
    domain: Domain = declared
    if domain.column_names is None:
        domain = domain.bind(found["n_features_in_"])
    else:
        file.agree("columns", file.parts["columns"], domain.column_names)
    file.agree("domain", str(domain), file.release.domain)
    return domain, {"domain_": domain, **found}


def _classes(file: _File) -> Array:
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


def _check_method(file: _File, name: str) -> None:
    """The method is the release's, and so are its settings, but for those left to a rule."""
    method = file.parameters[name]
    if isinstance(method, str) and method == "auto":
        return
    file.agree(name, method_name(method), file.settings.get(name))
    if dataclasses.is_dataclass(method):
        own = Release("", 0.0, 0.0, "", (), settings=dataclasses.asdict(method))  # type: ignore[arg-type]
        _check_settings(file, name, parse(own.to_json())["settings"], file.settings)


def _check_settings(file: _File, name: str, given: dict[str, Any], used: Any) -> None:
    """Each setting that was given is the one that was used; those of parts likewise."""
    for key, value in given.items():
        said = used.get(key) if isinstance(used, Mapping) else None
        if isinstance(value, dict):
            _check_settings(file, f"{name}'s {key}", value, said)
        elif value is not None and key not in ADJUSTED:
            file.agree(f"{name}'s {key}", value, said)


def _check_ones(file: _File, n_features: int) -> None:
    """How binary records were bounded is what the release says."""
    ones = bound_ones(file.parameters["max_ones"], n_features)
    said = f"binary features, at most {ones} ones a record"
    file.agree("max_ones", said, file.release.domain)


def _indices(file: _File, name: str, size: int) -> Array:
    """Different positions among so many things, as the release has them."""
    indices = file.integers(name, None)
    inside = (0 <= indices) & (indices < size)
    if not inside.all() or len(np.unique(indices)) < len(indices):
        raise FileError(f"{name} must be different numbers from 0 to {size - 1}; {UNCHANGED}")
    return indices


# -------------------------------------------------------------- the fitted attributes of each class


def _linear(file: _File) -> dict[str, Any]:
    _check_method(file, "solver")
    for name in ("C", "fit_intercept"):
        if name in file.parameters:
            file.agree(name, file.parameters[name], file.settings.get(name))
    domain, found = _domain(file, file.parameters["domain"])
    classes = _classes(file)
    rows = 1 if len(classes) == 2 else len(classes)
    coef, intercept = file.floats("coef", rows, domain.width), file.floats("intercept", rows)
    if intercept.any() and not file.parameters["fit_intercept"]:
        raise FileError(f"intercept must be 0 if none was fitted; {UNCHANGED}")
    return {**found, "classes_": classes, "coef_": coef, "intercept_": intercept}


def _kmeans(file: _File) -> dict[str, Any]:
    _check_method(file, "solver")
    file.agree("postprocess", file.parameters["postprocess"], file.settings.get("postprocess"))
    domain, found = _domain(file, file.parameters["domain"])
    centers = file.floats("centers", None, domain.width)
    file.agree("n_clusters", file.parameters["n_clusters"], len(centers))
    if file.parameters["postprocess"] is not None:
        centers = file.floats("postprocessed", *centers.shape)
    return {**found, "cluster_centers_": centers}


def _kmedian(file: _File) -> dict[str, Any]:
    _check_method(file, "solver")
    given, metric, clip = (file.parameters[name] for name in ("facilities", "metric", "clip"))
    places = np.asarray(given)
    if places.ndim != 2 or places.size == 0 or places.dtype.kind not in "fiu":
        raise FileError(f"facilities must be places (f, d); {UNCHANGED}")
    if not isinstance(metric, str) or metric not in ("l1", "l2"):
        raise FileError(f"metric must be 'l1' or 'l2'; {UNCHANGED}")
    said = tuple(file.settings.get("clip", ()))
    if clip is not None:
        file.agree("clip", tuple(clip), said)
    declared = file.parameters["domain"]
    domain, found = _domain(
        file, spanned_box(places.astype(np.float64)) if declared is None else declared
    )
    chosen = _indices(file, "facilities", len(places))
    file.agree("n_clusters", file.parameters["n_clusters"], len(chosen))
    centers = file.floats("centers", len(chosen), places.shape[1])
    unit = domain.record_units(uniform=True)[0]
    if not np.array_equal(np.rint(places[chosen] / unit) * unit, centers):
        raise FileError(f"centers must be the chosen facilities; {UNCHANGED}")
    return {**found, "facilities_": chosen, "cluster_centers_": centers, "metric_": metric,
            "clip_": said}  # fmt: skip


def _bayes(file: _File) -> dict[str, Any]:
    found, alpha = _columns(file), file.parameters["alpha"]
    file.agree("alpha", NaiveBayes(alpha).alpha, file.settings.get("alpha"))
    d, classes = found["n_features_in_"], _classes(file)
    _check_ones(file, d)
    sizes = file.floats("class_count", len(classes))
    ones = file.floats("feature_count", len(classes), d)
    if (sizes < 1).any() or (ones < 0).any() or (ones > sizes[:, None]).any():
        raise FileError(f"counts must lie between 0 and their class's, at least 1; {UNCHANGED}")
    return {**found, "classes_": classes, **NoisyCounts(sizes, ones).fitted(alpha)}


def _select(file: _File) -> dict[str, Any]:
    _check_method(file, "method")
    file.agree("criterion", file.parameters["criterion"], file.settings.get("criterion"))
    found = _columns(file)
    d = found["n_features_in_"]
    _check_ones(file, d)
    chosen = _indices(file, "features", d)
    if "noisy_scores" in file.release.parameters:
        file.floats("noisy_scores", d)
    return {**found, "ranking_": chosen}


def _hash_words(file: _File) -> dict[str, Any]:
    vocabulary = file.parameters["vocabulary"]
    if vocabulary is None:
        hashed(file.parameters["n_features"])  # refuses what cannot be one
    else:
        listed(vocabulary)
    return {}


def _roc_curve(file: _File) -> dict[str, Any]:
    fpr = file.floats("fpr", None)
    tpr = file.floats("tpr", len(fpr))
    below = as_array(file.parts["thresholds"], "float64", "thresholds")
    thresholds = np.append(np.inf, below)
    rates = np.array([fpr, tpr])
    if (
        rates.shape != (2, thresholds.size)
        or (np.diff(rates) < 0).any()
        or ((rates[:, [0, -1]] != [0, 1]).any() or (np.diff(thresholds) > 0).any())
    ):
        raise FileError(f"a curve must rise from 0 to 1 as thresholds fall; {UNCHANGED}")
    return {"fpr": fpr, "tpr": tpr, "thresholds": thresholds}


def _confusion(file: _File) -> dict[str, Any]:
    return {"counts": file.floats("counts", 2, 2)}


@dataclass(frozen=True)
class _Kind:
    """A class that can be saved: its parameters, the parts of its file, and how it is read."""

    parameters: tuple[str, ...]
    parts: tuple[str, ...]
    fitted: Callable[[_File], dict[str, Any]]


_CLASSIFIER = ("parameters", "columns", "labels", "release")
_OTHER = ("parameters", "columns", "release")
_LINEAR = _Kind(
    ("epsilon", "delta", "domain", "classes", "solver", "fit_intercept", "adjacency", "n_public"),
    _CLASSIFIER, _linear,
)  # fmt: skip
ESTIMATORS: dict[str, _Kind] = {
    "LogisticRegression": _LINEAR,
    "LinearSVC": _Kind(
        ("epsilon", "delta", "domain", "classes", "solver", "C", "fit_intercept", "adjacency",
         "n_public"),
        _CLASSIFIER, _linear,
    ),
    "KMeans": _Kind(
        ("n_clusters", "epsilon", "delta", "domain", "solver", "postprocess", "adjacency",
         "n_public"), _OTHER, _kmeans,
    ),
    "KMedian": _Kind(
        ("n_clusters", "epsilon", "delta", "facilities", "clip", "metric", "domain", "solver",
         "adjacency", "n_public"), _OTHER, _kmedian,
    ),
    "BernoulliNB": _Kind(
        ("epsilon", "delta", "max_ones", "alpha", "classes", "adjacency"), _CLASSIFIER, _bayes
    ),
    "SelectFeatures": _Kind(
        ("epsilon", "delta", "k", "criterion", "method", "max_ones", "classes", "adjacency",
         "n_public"), _OTHER, _select,
    ),
    "HashWords": _Kind(("n_features", "vocabulary", "fold_digits"), ("parameters",), _hash_words),
}  # fmt: skip
KINDS: dict[str, _Kind] = {
    **ESTIMATORS,
    "RocCurve": _Kind((), ("thresholds", "release"), _roc_curve),
    "ConfusionMatrix": _Kind((), ("release",), _confusion),
}
RESULTS: dict[str, type[Any]] = {"RocCurve": RocCurve, "ConfusionMatrix": ConfusionMatrix}
# What the grant of each is named after.
CALLS = {**{name: name for name in ESTIMATORS}, "roc_curve": "RocCurve",
          "confusion_matrix": "ConfusionMatrix"}  # fmt: skip
