"""Model files: a fitted model as JSON that holds declarations and released values, and no more.

    {
      "privfit-model": 3,                  the number of this layout; 4 with a solver of a user,
                                           6 with evaluations or a schema that was bought
      "written-by": "privfit 0.1.0",
      "class": "LogisticRegression",
      "parameters": {...},                 of the constructor; `declared.py` says how they look
      "columns": ["age", "hours"],         of a record: their names, or how many there are
      "labels": "bool",                    the dtype of the classes, where there are any
      "release": {...},                    what `Release.to_json` writes
      "evaluations": {...}                 of number 6: accuracy and curve, if they were released
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
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from privfit.base.errors import BudgetError, DeclarationTypeError, FileError, PrivfitError
from privfit.base.files import write_atomically
from privfit.base.json import dtype_name, layout, parse, write
from privfit.base.version import __version__
from privfit.models import evaluations, pipelines
from privfit.models.declared import from_plain, to_plain
from privfit.models.held import UNCHANGED, File
from privfit.models.kinds import CALLS, ESTIMATORS, KINDS, RESULTS
from privfit.models.limits import check_file, check_values
from privfit.models.own import SavedSolver, allowed, made
from privfit.models.pipelines import PIPELINE
from privfit.models.upgrades import upgraded
from privfit.privacy.ledger import ADJACENCIES, Budget, Release
from privfit.runs.settings import DEPRECATED

__all__ = ["Contents", "check", "dumps", "load", "loads", "save"]


VERSION, WITH_OWN, PLAIN = 6, 4, 3  # a file has the lowest number that can hold it
LONGEST = 800  # characters of a message
# What values of other kinds and sizes make the constructors of domains and settings raise.
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
          ValueError)  # fmt: skip


# --------------------------------------------------------------------------------- public functions


def save(
    estimator: Any, path: str | os.PathLike[str], *, accuracy: Any = None, curve: Any = None
) -> None:
    """Write a fitted model to a file: completely, or not at all.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline, RocCurve, ConfusionMatrix or ReleasedFloat
        A fitted estimator of privfit, a scikit-learn ``Pipeline`` of such estimators alone, or a
        released curve, matrix or accuracy.
    path : str or path-like
        The file; an existing one is replaced.
    accuracy : ReleasedFloat, ConfusionMatrix or None, default=None
        What `accuracy_score` or `confusion_matrix` released of a classifier, to be kept in its
        file. `load` returns it as ``evaluations_["accuracy"]``, and reports show it.
    curve : RocCurve or None, default=None
        What `roc_curve` released of it, likewise.

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
    write_atomically(path, dumps(estimator, accuracy=accuracy, curve=curve))


def load(path: str | os.PathLike[str], *, solvers: Any = None) -> Any:
    """Read a fitted model from a file that `save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or path-like
        The file.
    solvers : sequence of classes or functions, dict of them, or None, default=None
        Solvers of your own that the file may make again: ``[ES]``, or ``{"mypackage.es:ES": ES}``
        if the class has moved. A model with any other solver predicts all the same, but refuses to
        be fitted again.

    Returns
    -------
    fitted estimator, Pipeline, RocCurve, ConfusionMatrix or ReleasedFloat
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
    check_file(path)
    content = Path(path).read_bytes()
    try:
        return loads(content, solvers)
    except (ValueError, BudgetError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def dumps(estimator: Any, *, accuracy: Any = None, curve: Any = None) -> str:
    """A fitted model as the text of a model file; evaluations as for `save`."""
    name = type(estimator).__name__
    found = evaluations.checked(estimator, {"accuracy": accuracy, "curve": curve})
    if name == PIPELINE and type(estimator).__module__.partition(".")[0] == "sklearn":
        return layout(pipelines.written(estimator, dumps))
    if name not in KINDS or type(estimator) is not _class(name):
        raise DeclarationTypeError(
            f"estimator ({name}) must be a model of privfit itself; pass one of "
            f"{', '.join(KINDS)}, or a Pipeline of them, or pickle yours"
        )
    _check_released(estimator)
    parts = {part: PARTS[part](estimator) for part in KINDS[name].parts}
    parts |= evaluations.written(found, dumps)
    head = {
        "privfit-model": _version(name, parts),
        "written-by": f"privfit {__version__}",
        "class": name,
    }
    text = layout(head | parts)
    for attribute, value in check(text).fitted.items():
        if not _same(getattr(estimator, attribute, None), value):
            raise FileError(
                f"{attribute} must be what was released, since a model file contains nothing else; "
                "fit again, or pickle a model that you made yourself"
            )
    return text


def _version(name: str, parts: dict[str, Any]) -> int:
    """The number of the layout that these parts need."""
    domain, solver = (parts.get("parameters", {}).get(name) for name in ("domain", "solver"))
    bought = isinstance(domain, dict) and "bought" in domain
    if name == "ReleasedFloat" or evaluations.FIELD in parts or bought:
        return VERSION
    return WITH_OWN if isinstance(solver, dict) and "own" in solver else PLAIN


def loads(text: str | bytes, solvers: Any = None) -> Any:
    """The fitted model of a text that `dumps` wrote; `solvers` as for `load`.

    >>> from privfit import HashWords
    >>> from privfit.models.model import dumps, loads
    >>> loads(dumps(HashWords(64)))
    HashWords(n_features=64)
    """
    kinds = allowed(solvers)
    held = _parsed(text)
    if held.get("class") == PIPELINE:
        return pipelines.read(held, lambda part: loads(part, solvers))
    contents = check(text)
    kind = _class(contents.kind)
    if contents.kind not in ESTIMATORS:
        return kind(**contents.fitted)
    estimator = kind(**{key: made(value, kinds) for key, value in contents.parameters.items()})
    vars(estimator).update(contents.fitted)
    if contents.evaluations:
        estimator.evaluations_ = dict(contents.evaluations)
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
    evaluations: Mapping[str, Any] = field(default_factory=dict, repr=False)


def check(text: str | bytes) -> Contents:
    """Read a model file and refuse it if anything in it is wrong; scikit-learn is not needed.

    >>> from privfit import HashWords
    >>> from privfit.models.model import check, dumps
    >>> check(dumps(HashWords(64))).parameters
    {'n_features': 64, 'vocabulary': None, 'fold_digits': True}
    """
    try:
        return _contents(_parts_of(text))
    except PrivfitError as error:
        if len(str(error)) <= LONGEST:
            raise
        text = str(error)  # which quotes a value of the file
        shorter = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"
        raise type(error)(shorter) from None
    except FAULTS as error:  # a text where a number should be, a list without its end, or the like
        raise FileError(
            f"a value is of the wrong kind; {UNCHANGED}: {type(error).__name__}"
        ) from None


def _contents(parts: dict[str, Any]) -> Contents:
    """What the fields of a file make, checked."""
    name, version, writer = (parts[key] for key in ("class", "privfit-model", "written-by"))
    file = File(name, _parameters(parts), parts, _release(parts))
    fitted = _fitted(file)
    release = None
    if file.proof is not None:
        released = {key: array.copy() for key, array in file.arrays.items()}
        release = replace(file.proof, parameters={**file.proof.parameters, **released})
        fitted["release_" if name in ESTIMATORS else "release"] = release
    found = parts.get(evaluations.FIELD)
    held = {} if found is None else evaluations.read(found, loads)
    return Contents(name, version, writer, file.parameters, release, fitted, held)


def _class(name: str) -> type[Any]:
    """The class of this name; estimators load scikit-learn, so they load now."""
    if name in RESULTS:
        return RESULTS[name]
    from privfit import estimators

    return getattr(estimators, name)


# ------------------------------------------------------------------------------------------ writing


def _written_parameters(estimator: Any) -> dict[str, Any]:
    """The constructor's parameters; a solver that was passed under an old name has its new one."""
    kind = KINDS[type(estimator).__name__]
    given = {name: getattr(estimator, name) for name in kind.parameters}
    if getattr(estimator, "method", DEPRECATED) != DEPRECATED:  # what solver was
        given["solver"] = estimator.method
    elif "solver" in given and not isinstance(given["solver"], str | SavedSolver):
        given["solver"] = getattr(estimator, "_solver_as_fitted", given["solver"])
    if isinstance(given.get("solver"), str):
        given["solver"] = kind.renamed.get(given["solver"], given["solver"])
    return {name: to_plain(value, name) for name, value in given.items()}


def _written_columns(estimator: Any) -> int | list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return int(estimator.n_features_in_) if names is None else list(names)


def _check_released(estimator: Any) -> None:
    """Refuse a model that is not fitted, or that has nothing to show for its privacy."""
    what = type(estimator).__name__
    if what == "ReleasedFloat" and "accuracy" not in estimator.release.parameters:
        raise FileError(
            "ReleasedFloat must be an accuracy to be written; save the curve that an area is of"
        )
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


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        held = parse(text)
    except ValueError as error:
        raise FileError(
            f"text must be JSON as privfit writes it; pass a model file: {error}"
        ) from None
    check_values(held)
    return held


def _parts_of(text: str | bytes) -> dict[str, Any]:
    """The fields of a file of a version and a class that are known."""
    parts = _parsed(text)
    version, name = parts.get("privfit-model"), parts.get("class")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FileError(
            "text must be a model file, which begins with 'privfit-model'; pass what privfit.save "
            "wrote"
        )
    if name == PIPELINE:
        raise FileError(
            "class ('Pipeline') must be one model here; pass the file of a single model, or read "
            "it by privfit.load"
        )
    if version > VERSION:
        raise FileError(
            f"version ({version}) must be at most {VERSION} for this privfit to read it; install "
            "a newer privfit"
        )
    if not isinstance(name, str) or name not in KINDS:
        raise FileError(f"class ({name!r}) must be one of {', '.join(KINDS)}; {UNCHANGED}")
    wanted = {"privfit-model", "written-by", "class", *KINDS[name].parts}
    if version >= evaluations.VERSION and "labels" in wanted:  # a classifier may have them
        wanted |= parts.keys() & {evaluations.FIELD}
    if parts.keys() != wanted:
        raise FileError(
            f"a model file of {name} must have the fields {', '.join(sorted(wanted))}, but "
            f"{', '.join(sorted(parts.keys() ^ wanted))} is missing or unknown; {UNCHANGED}"
        )
    if not isinstance(parts["written-by"], str):
        raise FileError(f"written-by must be a text; {UNCHANGED}")
    return upgraded(parts)


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
        release = Release.from_json(write(said))
        Budget(release.epsilon, release.delta)
        release.verify()
    except BudgetError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise FileError(f"release must be as it was written; {UNCHANGED}: {error}") from None
    return release


def _fitted(file: File) -> dict[str, Any]:
    """The attributes of a model whose parameters and values fit together."""
    if file.proof is not None:
        file.agree("class", file.name, CALLS.get(file.proof.name.rpartition("/")[2]))
        for name in ("epsilon", "delta", "adjacency"):
            if name in file.parameters:
                file.agree(name, file.parameters[name], getattr(file.proof, name))
    return KINDS[file.name].fitted(file)
