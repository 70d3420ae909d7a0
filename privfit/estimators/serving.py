"""Fitted models as pipelines of scikit-learn alone, to serve them where privfit is not installed.

A pipeline cuts numbers at the edges where privfit's rounding steps, lists the declared values of
categories, and ends in scikit-learn's own model with the released weights. Its parts are fitted to
made-up rows and then given their numbers: no record is involved, and nothing is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    LabelBinarizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
)
from sklearn.svm import LinearSVC

from privfit.base.errors import MissingExtraError
from privfit.base.tables import as_frame
from privfit.base.typing import Array, Floats
from privfit.domains import Domain
from privfit.domains.cells import Cut, Listed

__all__ = [
    "Coder",
    "Pipeline",
    "bayes_model",
    "logistic_model",
    "nearest_model",
    "support_model",
    "with_threshold",
]

NOWHERE = -1  # the place of an output that is 0 for every record
MISSING = float(np.finfo(np.float32).max)  # stands for a missing number that has its own level


# ------------------------------------------------------------------------------------------ records


@dataclass(frozen=True, eq=False)
class Coder:
    """Steps that code records, and the domain's encoded column behind each of their outputs."""

    steps: tuple[tuple[str, Any], ...]
    places: Array

    @classmethod
    def of(
        cls, domain: Domain, names: Array | None, *, uniform: bool = False, dense: bool = False
    ) -> Coder:
        """The coder of a domain, whose columns may have names.

        `uniform` and `dense` are for distances: one unit for all columns, no sparse matrices.
        """
        cells = domain.table_cells(uniform)
        if domain.column_names is None:
            return cls(tuple(_numbers(cells, names)), np.arange(domain.width))
        columns = [_cut(one, dense) if isinstance(one, Cut) else _listed(one, dense)
                   for one in cells]  # fmt: skip
        fitted = [(name, one.coder, [name])
                  for name, one in zip(domain.column_names, columns, strict=True)]  # fmt: skip
        for name, one, _ in fitted:
            one[0].feature_names_in_ = np.array([name], dtype=object)
        coder = ColumnTransformer(fitted, sparse_threshold=1.0)
        made_up = {name: one.made_up
                   for name, one in zip(domain.column_names, columns, strict=True)}  # fmt: skip
        coder.fit(as_frame(made_up, what="to_sklearn of a schema", instead="use privfit.save"))
        coder.transformers_ = fitted  # which it has cloned, and fitted to made-up rows
        starts = np.cumsum([0, *(one.width for one in cells)])
        places = [np.where(one.places == NOWHERE, NOWHERE, start + one.places)
                  for start, one in zip(starts, columns, strict=False)]  # fmt: skip
        return cls((("columns", coder),), np.concatenate(places))

    def weights(self, W: Floats) -> Floats:
        """(m, outputs): weights (m, d) of encoded columns as those of the outputs."""
        return np.where(self.places == NOWHERE, 0.0, W[:, self.places])

    def ending_in(self, model: Any) -> Pipeline:
        """The pipeline of these steps and a model of coded records."""
        return Pipeline([*self.steps, ("model", model)])


@dataclass(frozen=True, eq=False)
class _Column:
    """A fitted transformer of one column, two made-up cells, and the levels that it puts out."""

    coder: Pipeline
    made_up: Array
    places: Array


def _numbers(cells: Sequence[Any], names: Array | None) -> list[tuple[str, Any]]:
    """Steps for a table of numbers: each is cut, then scaled to the value of its step."""
    bins = _bins([one.edges for one in cells])
    if names is not None:
        bins.feature_names_in_ = names
    return [("bins", bins), ("values", _scaler(*np.array([(c.step, c.first) for c in cells]).T))]


def _cut(cell: Cut, dense: bool) -> _Column:
    """A column of numbers: filled, cut, and coded as a value or one-hot."""
    steps: list[Any] = []
    edges, fill = cell.edges, cell.fill
    if cell.missing:
        edges, fill = np.append(np.minimum(edges, MISSING), MISSING), MISSING
    made_up = np.array([[0.0], [max(2.0, len(edges) + 1.0)]])
    if fill is not None:
        # The imputer takes floats alone: times 1.0, whole numbers and booleans are floats, too.
        filled = SimpleImputer(strategy="constant", fill_value=fill).fit(made_up)
        steps += [_scaler([1.0], [0.0]), filled]
    if cell.step is not None:
        steps += [_bins([edges]), _scaler([cell.step], [cell.first])]
        return _Column(make_pipeline(*steps), made_up[:, 0], np.zeros(1, dtype=np.int64))
    places = np.arange(cell.width) if cell.width > 1 else np.array([0, NOWHERE])
    steps += [_bins([edges]), _hot(len(places), dense)]
    return _Column(_scaled(steps, cell.level, len(places)), made_up[:, 0], places)


def _listed(cell: Listed, dense: bool) -> _Column:
    """A column of categories: one-hot, unknown and missing values last."""
    declared = cell.values or ("\0",)  # where all values are other, one that no cell has
    numeric = not any(isinstance(value, str) for value in declared)
    values = np.array(declared, dtype=np.float64 if numeric else object)
    order = np.argsort(values) if numeric else np.arange(len(values))  # encoders want it so
    categories, made_up = values[order], values[order][[0, -1]]
    if not cell.other:
        hot = OneHotEncoder(categories=[categories], sparse_output=not dense)
        steps: list[Any] = [hot.fit(made_up[:, None])]
        return _Column(_scaled(steps, cell.level, len(order)), made_up, order)
    ranks = OrdinalEncoder(
        categories=[categories], handle_unknown="use_encoded_value", unknown_value=len(values)
    )
    places = np.append(order if cell.values else [NOWHERE], len(cell.values))
    steps = [ranks.fit(made_up[:, None]), _hot(len(places), dense)]
    return _Column(_scaled(steps, cell.level, len(places)), made_up, places)


def _scaled(steps: list[Any], level: float, width: int) -> Pipeline:
    """One-hot columns whose ones are `level`."""
    scaler = [] if level == 1.0 else [_scaler(np.full(width, level), np.zeros(width))]
    return make_pipeline(*steps, *scaler)


def _hot(levels: int, dense: bool) -> OneHotEncoder:
    """A column for each of 0, ..., levels - 1; bins that do so themselves have no form in ONNX."""
    hot = OneHotEncoder(categories=[np.arange(float(levels))], sparse_output=not dense)
    return hot.fit([[0.0]])


def _bins(edges: Sequence[Floats]) -> KBinsDiscretizer:
    """Bins between these edges of each column: at least two, where the last may be empty."""
    inner = [one if len(one) else np.array([np.inf]) for one in edges]
    counts = np.array([len(one) + 1 for one in inner])
    bins = KBinsDiscretizer(counts, encode="ordinal", strategy="uniform", subsample=None)
    bins.fit(np.stack([np.zeros(len(counts)), counts.astype(np.float64)]))
    for j, one in enumerate(inner):
        bins.bin_edges_[j] = np.concatenate([[-np.inf], one, [np.inf]])
    return bins


def _scaler(steps: Any, first: Any) -> MinMaxScaler:
    """Columns times `steps` plus `first`."""
    scaler = MinMaxScaler().fit(np.stack([np.zeros(len(steps)), np.ones(len(steps))]))
    scaler.scale_, scaler.min_ = np.array(steps, np.float64), np.array(first, np.float64)
    return scaler


# ------------------------------------------------------------------------------------------- models


def logistic_model(coef: Floats, intercept: Floats, classes: Array) -> Any:
    """Logistic regression with these weights; with several classes, one versus the rest."""
    if len(classes) == 2:
        return _linear(LogisticRegression(), coef, intercept, classes)
    model = OneVsRestClassifier(LogisticRegression())
    model.estimators_ = [_linear(LogisticRegression(), coef[[i]], intercept[[i]], np.array([0, 1]))
                         for i in range(len(classes))]  # fmt: skip
    model.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    model.classes_, model.n_features_in_ = classes.copy(), coef.shape[1]
    return model


def support_model(coef: Floats, intercept: Floats, classes: Array) -> Any:
    """The linear support vector machine with these weights."""
    return _linear(LinearSVC(), coef, intercept, classes)


def _linear(model: Any, coef: Floats, intercept: Floats, classes: Array) -> Any:
    model.coef_, model.intercept_, model.classes_ = coef.copy(), intercept.copy(), classes.copy()
    model.n_features_in_, model.n_iter_ = coef.shape[1], np.zeros(1, dtype=np.int32)
    return model


def bayes_model(fitted: Any) -> Pipeline:
    """scikit-learn's naive Bayes with the counts of a fitted one."""
    model = BernoulliNB(alpha=fitted.alpha, binarize=0.0)
    for name in ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_",
                 "classes_", "n_features_in_", "feature_names_in_"):  # fmt: skip
        if hasattr(fitted, name):
            setattr(model, name, copy(getattr(fitted, name)))
    return Pipeline([("model", model)])


def nearest_model(centers: Floats, metric: str) -> Any:
    """The nearest of these centres: k-means, or one neighbour in l1."""
    labels = np.arange(len(centers), dtype=np.int32)
    if metric == "l1":
        return KNeighborsClassifier(1, metric="manhattan", algorithm="brute").fit(centers, labels)
    model = KMeans(len(centers), n_init=1)
    model.cluster_centers_, model.labels_ = centers.copy(), labels
    model.n_features_in_, model._n_features_out = centers.shape[1], len(centers)
    model.inertia_, model.n_iter_, model._n_threads = 0.0, 0, 1
    return model


def with_threshold(pipeline: Pipeline, threshold: float, response: str) -> Any:
    """The classifier that predicts the second class where a score is at least the threshold."""
    try:
        from sklearn.model_selection import FixedThresholdClassifier
    except ImportError:
        raise MissingExtraError(
            "a threshold in scikit-learn needs its version 1.5 or later; run pip install -U "
            "scikit-learn, or compare the scores of to_sklearn() with it yourself"
        ) from None
    model = FixedThresholdClassifier(pipeline, threshold=threshold, response_method=response)
    model.estimator_ = pipeline
    return model
