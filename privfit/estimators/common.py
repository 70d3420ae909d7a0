"""What the estimators share: reading tables and labels like scikit-learn."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from privfit._kernels import threads
from privfit.base import blas
from privfit.base.cautions import PrivacyLeakWarning, call_depth, callers, caution_score
from privfit.base.errors import DeclarationError, DeclarationTypeError, InputError, InputTypeError
from privfit.base.typing import Array
from privfit.base.validation import is_sparse
from privfit.domains import Box, Domain, Schema
from privfit.domains.frames import apart, chosen, column_names, columns_of, numbers_of
from privfit.domains.kinds import kinds_of
from privfit.domains.reading import LevelReader, objects, positions
from privfit.privacy.cards import release_card
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.records import Stream, is_partitioned
from privfit.records.answers import answers_of
from privfit.runs.door import OURS
from privfit.runs.fields import Taken
from privfit.runs.settings import by_depth, changed, fields_of, has_own_fields

LEARN = "learn"  # the domain whose kinds are those of the table
# What estimators of scikit-learn, by their modules, do to a fit within them; none can be seen in
# what they pass.
NOT_PRIVATE = {
    "sklearn.ensemble._bagging": (
        "BaggingClassifier is refused: it gives each model a seed of 32 bits, which can be tried "
        "out, and draws a record several times, which one epsilon does not cover; fit models on "
        "disjoint parts of the records and pass them to VotingClassifier, or pass solver='gupt'"
    ),
    "sklearn.calibration": (
        "CalibratedClassifierCV is refused: it calibrates with exact labels of the private "
        "records, which no budget pays for; pass calibrate=True, or calibrate a fitted model with "
        "public records (cv='prefit', or FrozenEstimator)"
    ),
    "sklearn.model_selection._classification_threshold": (
        "TunedThresholdClassifierCV is refused: it chooses a threshold by exact labels of the "
        "private records, which no budget pays for; release a curve by privfit.roc_curve, choose "
        "from it by privfit.evaluation.best_threshold, and pass that to predict(X, threshold)"
    ),
    "sklearn.ensemble._stacking": (
        "StackingClassifier is refused: its last model learns from exact labels of the private "
        "records, and from models of parts of them; pass released models to VotingClassifier, or "
        "fit a model of privfit to what they predict"
    ),
}
ONE_KIND = "classes must be labels of one kind; pass classes=[...] of numbers or of texts"


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters include the settings of its solver."""

    n_threads: int | None
    _solver_as_fitted: Taken  # a user's, before the last fit: what a model file holds

    @property
    def _repr_html_(self) -> Any:
        """scikit-learn's diagram, and below it the release of a fitted estimator."""
        diagram = super()._repr_html_
        return lambda: f"{diagram()}{self._release_card()}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The same for notebooks; without the diagram if scikit-learn is set to show none."""
        shown: dict[str, Any] = super()._repr_mimebundle_(**options)
        if "text/html" in shown:
            shown["text/html"] = self._repr_html_()
        return shown

    def _release_card(self) -> str:
        release = getattr(self, "release_", None)
        return "" if release is None else release_card(release)

    def _bounded(self) -> AbstractContextManager[None]:
        """While this lasts, BLAS has no more threads than were declared."""
        threads.resolve(self.n_threads)  # is it a number of threads?
        return blas.at_most(self.n_threads)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and the fields of a solver that is a dataclass.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of settings and estimators among them.

        Returns
        -------
        dict
            Values by name.
        """
        found: dict[str, Any] = super().get_params(deep)
        solver = found.get("solver")
        if deep and has_own_fields(solver):
            found = {name: found[name] for name in found if not name.startswith("solver__")}
            found |= {f"solver__{name}": value for name, value in fields_of(solver).items()}
        return found

    def _remember_solver(self, name: str, taken: Taken) -> None:
        """Keep a solver of a user as it was before the charge; privfit's own never change."""
        self.__dict__.pop("_solver_as_fitted", None)
        if name not in OURS:
            self._solver_as_fitted = taken

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``solver__steps`` replaces the solver's settings by a changed copy.

        Parameters
        ----------
        **params : object
            Parameters by name.

        Returns
        -------
        object
            The estimator itself.
        """
        own, inner = by_depth(params)
        super().set_params(**own)
        for name, parts in inner.items():
            if name not in self.get_params(deep=False):
                super().set_params(**{name: parts})  # which says what parameters there are
            setattr(self, name, changed(getattr(self, name), name, parts))
        return self


class ExactAccuracy(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose `score` warns that it is not private."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The exact accuracy on records with labels: **not private**.

        Use it on public records, or on records that you may see; `privfit.accuracy_score` is
        private.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Public records, or records that you may see.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the records.

        Returns
        -------
        float
            The fraction of correct predictions.
        """
        caution_score("privfit.accuracy_score")
        return float(super().score(X, y, sample_weight))


def as_domain(domain: Any, what: str) -> Domain:
    """A declared domain; a pair of bounds is a box."""
    if domain is None:
        raise DeclarationError(
            f"{what} needs the declared domain of a record; pass domain=(low, high), a Box, "
            "L1Ball or L2Ball, or a Schema of named columns, from documentation and never from "
            "the data"
        )
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Sequence) and not isinstance(domain, str) and len(domain) == 2:
        return Box(*domain)
    raise DeclarationTypeError(
        f"domain ({type(domain).__name__}) must be a pair of bounds or a Domain; pass "
        "domain=(low, high) or a Schema"
    )


def as_linear_domain(domain: Any, what: str, X: Any, y: Any) -> Domain:
    """A declared domain; 'learn' is a schema of blanks, of the kinds that X declares."""
    if domain is None:
        raise DeclarationError(
            f"{what} needs the declared domain of a record; pass domain=(low, high), a Box or a "
            "Schema of named columns, from documentation and never from the data, or "
            "domain='learn', which buys it from the budget"
        )
    if not isinstance(domain, str) or domain != LEARN:
        return as_domain(domain, what)
    kinds = X.kinds(y) if isinstance(X, Stream) else kinds_of(X)
    if isinstance(y, str):
        kinds.pop(y, None)
    return Schema.blank(kinds)


def read_table(estimator: Any, X: Any, domain: Domain | None) -> Any:
    """X as scikit-learn reads a table, but each cell by itself; a Schema reads its own tables."""
    if is_partitioned(X):
        raise InputTypeError(
            f"X ({type(X).__name__}) must be in memory here; pass an array, or fit an estimator "
            f"that takes streams and Dask collections (docs/backends.md)"
        )
    if domain is not None and domain.column_names is not None:
        return X
    X = numbers_of(X)
    if is_sparse(X) and X.dtype.kind not in "fiubc":  # old versions of SciPy cannot convert it
        raise DeclarationError(_harmless(""))
    try:
        with np.errstate(all="ignore"):  # a warning that a sum overflows would be one of records
            return check_array(
                X, accept_sparse="csr", dtype="numeric", estimator=estimator, input_name="X"
            )
    except ValueError as error:
        message = _harmless(str(error))
        neighbours = Neighbours.of(getattr(estimator, "adjacency", REPLACE))
        if not neighbours.size_is_public:  # a shape tells how many there are
            message = re.sub(r" \(shape=[^)]*\)+", "", message)
        raise DeclarationError(message) from None


def _harmless(message: str) -> str:
    """scikit-learn's message about a table it refuses, without the values that it quotes."""
    first = message.partition("\n")[0]
    if first.startswith(("Input X contains", "Found array with")):
        return first
    if first.startswith("Expected "):
        return f"{first.rstrip(':')}; Reshape your data: pass records as rows"
    if first.startswith("Complex data not supported"):
        return "Complex data not supported; pass real numbers"
    return "X must hold numbers; pass numbers, or declare a Schema"


def remember_columns(
    estimator: Any, X: Any, domain: Domain, y: Any = None, packed: tuple[Any, ...] = ()
) -> None:
    """Store the number and the names of the columns at the end of a fit; y may be one of X.

    The names of delayed partitions are known when these are packed.
    """
    names = _names(X, domain, packed)
    if names is not None and isinstance(y, str):
        names = names[names != y]
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.n_features_in_ = domain.n_columns
    vars(estimator).pop("evaluations_", None)  # of the model that was fitted before


def reread_table(estimator: Any, X: Any, domain: Domain) -> Any:
    """X, checked against the columns seen during fit; names count, not places.

    A pandas frame whose columns are in another order is refused, as scikit-learn does.
    """
    if domain.column_names is not None:
        return X
    if not hasattr(X, "iloc"):
        X = _in_fitted_order(estimator, X)
    check_names(estimator, X, domain)
    table = read_table(estimator, X, domain)
    if table.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {table.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return table


def _in_fitted_order(estimator: Any, X: Any) -> Any:
    """A table with its columns in the order of fit, if both have the same names."""
    fitted = list(getattr(estimator, "feature_names_in_", ()))
    if isinstance(X, list | tuple) and any(isinstance(row, Mapping) for row in X):
        if not fitted:
            raise InputError(
                f"X (records with names) needs {type(estimator).__name__} to be fitted to columns "
                "with names; pass lists of numbers in the order of fit, or fit a DataFrame"
            )
        return dict(zip(fitted, columns_of(X, fitted)[1], strict=True))
    names = column_names(X)
    if not fitted or names is None or names == fitted or {*names} != {*fitted}:
        return X
    return chosen(X, fitted) if len(names) == len(fitted) else X


Answer = TypeVar("Answer", bound=Callable[..., Any])


def block_by_block(answer: Answer) -> Answer:
    """A method of records that also takes a stream or a Dask collection.

    The class says what the method returns: `_form(name)`.
    """
    name = answer.__name__

    @wraps(answer)
    def found(self: Any, X: Any, *more: Any, **named: Any) -> Any:
        if not is_partitioned(X):
            return answer(self, X, *more, **named)
        check_is_fitted(self)
        said = partial(_of_block, _without_run(self), name, more, named)
        return answers_of(X, said, self._form(name))

    return found  # type: ignore[return-value]


def _without_run(estimator: Any) -> Any:
    """The fitted model without what belongs to its run, which workers have no use for."""
    model = copy(estimator)
    for name in ("ledger", "callback", "random_state"):
        if hasattr(model, name):
            setattr(model, name, None)
    model.__dict__.pop("path_", None)
    return model


def _of_block(model: Any, name: str, more: tuple[Any, ...], named: dict[str, Any], X: Any) -> Any:
    """The answer for one block; its columns are taken by name, in whatever order they are."""
    return getattr(model, name)(_in_fitted_order(model, X), *more, **named)


def _names(X: Any, domain: Domain, packed: tuple[Any, ...] = ()) -> Array | None:
    """Column names: those of a schema, or those of X if all of them are texts."""
    columns = domain.column_names or column_names(X) or packed or None
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(columns, dtype=object)


def check_names(estimator: Any, X: Any, domain: Domain) -> None:
    """Refuse columns of X whose names are not those seen during fit."""
    names = _names(X, domain)
    fitted = getattr(estimator, "feature_names_in_", None)
    kind = type(estimator).__name__
    if fitted is None and names is not None:
        warnings.warn(
            f"X has feature names, but {kind} was fitted without feature names", stacklevel=4
        )
    elif fitted is not None and names is None:
        warnings.warn(
            f"X does not have valid feature names, but {kind} was fitted with feature names",
            stacklevel=4,
        )
    elif fitted is not None and names is not None and list(fitted) != list(names):
        unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
        lines = ["The feature names should match those that were passed during fit."]
        if unseen:
            lines += ["Feature names unseen at fit time:", *(f"- {name}" for name in unseen)]
        if missing:
            lines += ["Feature names seen at fit time, yet now missing:"]
            lines += [f"- {name}" for name in missing]
        if not unseen and not missing:
            lines += ["Feature names must be in the same order as they were in fit."]
        raise DeclarationError("\n".join(lines) + "\n")


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Records and labels, which may be one column of a table in memory, by its name."""
    return apart(X, y) if isinstance(y, str) and not is_partitioned(X) else (X, y)


def read_labels(y: Any, declared: Any, what: str, in_parts: bool = False) -> tuple[Array, Array]:
    """(n,) positions among the classes, and the classes in order.

    Labels of a stream or a Dask collection are not read here, so their classes must be declared.
    """
    if in_parts:
        if declared is None:
            raise DeclarationError(
                f"{what} needs declared classes for a stream or a Dask collection; pass "
                f"classes=[...]"
            )
        y = declared
    y = _as_column(y)
    if declared is None:
        warnings.warn(
            f"{what} reads its classes from the private labels; pass classes=[...] to declare them",
            PrivacyLeakWarning,
            stacklevel=call_depth(),
        )
        declared = _seen(y)
        check_classification_targets(declared if isinstance(y, list | tuple) else y)
    classes = _in_order(declared)
    if classes.ndim != 1 or len(classes) < 2 or len(classes) != len(declared):
        raise DeclarationError(
            f"classes must be at least two different labels, but {what} got {len(classes)} "
            "class(es); pass classes=[...]"
        )
    codes = LevelReader(positions(classes, "classes")).codes(y)
    if (codes < 0).any():
        raise InputError("y has labels outside the declared classes; pass classes=[...] with them")
    return codes, classes


def _as_column(y: Any) -> Any:
    """Labels as one column; an array (n, 1) is flattened, with a warning."""
    if isinstance(y, list | tuple) or (hasattr(y, "__len__") and getattr(y, "ndim", 1) == 1):
        return y
    try:
        return column_or_1d(y, warn=True)
    except ValueError:  # its message shows how many records there are
        raise InputError(
            "y should be a 1d array with one label for each record; pass such a vector"
        ) from None


def _seen(y: Any) -> Array:
    """The different labels of a list, unchanged; those of an array in order."""
    if not isinstance(y, list | tuple):
        return _in_order(y)
    try:
        return _in_order(sorted(set(objects(y))))
    except TypeError:
        raise DeclarationError(ONE_KIND) from None


def _in_order(labels: Any) -> Array:
    """The different labels, sorted."""
    try:
        classes = np.unique(np.asarray(labels))
        hash(tuple(classes.tolist()))
    except (TypeError, ValueError):
        raise DeclarationError(ONE_KIND) from None
    return classes


def refuse(arguments: dict[str, Any]) -> None:
    """Refuse arguments of `fit`, and callers whose use of it is not private, and say why."""
    for module in callers():
        if module in NOT_PRIVATE:
            raise DeclarationError(NOT_PRIVATE[module])
    if arguments.pop("sample_weight", None) is not None:
        raise InputTypeError(
            "sample_weight is refused: a weight multiplies what one record can change, and the "
            "guarantee is for records that count once; leave it out"
        )
    for name in arguments:
        if name != "sample_weight":
            raise TypeError(f"fit() got an unexpected keyword argument {name!r}")
