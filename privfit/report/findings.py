"""What a model tells: weights and shapes, centres and sizes, probabilities, selected columns.

Everything is computed from released values. Pictures need matplotlib; where it is not installed,
tables stand for them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from privfit.base.errors import MissingExtraError
from privfit.base.markup import Markup, element, table
from privfit.clustering.units import in_units
from privfit.domains import Domain
from privfit.evaluation.roc import ConfusionMatrix, RocCurve
from privfit.report import plotting
from privfit.report.center_panels import PLANE
from privfit.report.reliability import CalibrationCurve

__all__ = ["calibration_parts", "findings_of", "kind_of", "picture", "roc_parts"]

MOST_ROWS = 20  # of a table of columns
MOST_COLUMNS = 60  # of a table of centres
MOST_SHAPES = 12
DPI = 110

KINDS = {
    "LogisticRegression": "a classifier with probabilities",
    "LinearSVC": "a linear classifier",
    "KMeans": "centres of clusters",
    "KMedian": "centres of clusters",
    "BernoulliNB": "a naive Bayes classifier of binary columns",
    "SelectFeatures": "a selection of binary columns",
    "RocCurve": "an ROC curve",
    "ConfusionMatrix": "a confusion matrix",
}


def kind_of(model: Any) -> str:
    """What a model is, in words."""
    return KINDS.get(type(model).__name__, "a model")


def findings_of(model: Any) -> list[Markup]:
    """The parts of the section on the model itself."""
    for attribute, parts in PARTS.items():
        if hasattr(model, attribute):
            return parts(model)
    return []


def picture(draw: Callable[[], Any], caption: str, narrow: Callable[[], Any] | None = None) -> Any:
    """A figure of what is drawn, and another for narrow screens; None without matplotlib."""
    try:
        wide = _image(draw())
    except MissingExtraError:
        return None
    sources = []
    if narrow is not None:
        sources = [element("source", media="screen and (max-width: 40rem)",
                           srcset=_image(narrow()))]  # fmt: skip
    shown = element("picture", *sources, element("img", src=wide, alt=caption))
    return element("figure", shown, element("figcaption", caption))


def _image(ax: Any) -> str:
    """A figure as an address that holds the picture itself."""
    content = plotting.rendered(ax.figure, "png", DPI)
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


# -------------------------------------------------------------------------------- linear models


def _linear(model: Any) -> list[Markup]:
    parts = []
    if model.domain_.column_names is not None:
        parts += _shapes(model)
    summary = model.summary()
    level = f"{100 * summary.level:g} %"
    parts.append(element("p", f"Weights, the largest first. Intervals are {level} intervals of the "
                              "noise alone; other records of the same population would give other "
                              "weights, too." if summary.has_errors else
                              "Weights, the largest first. The errors of this solver's weights "
                              "are not known."))  # fmt: skip
    for head, rows, note in summary.tables():
        parts.append(table(head, rows, stacked=True))
        if note:
            parts.append(element("p", note))
    return parts + _calibration(model)


def _shapes(model: Any) -> list[Markup]:
    """What the most important columns add to the score: curves with bands, or a table."""
    names = list(model.importances())[:MOST_SHAPES]
    level = 90
    caption = (
        f"What each value of a column adds to the score, for the {len(names)} most important "
        f"columns. Where errors are known, bands hold {level} % of the noise."
    )
    drawn = picture(
        lambda: plotting.draw_shapes(model, columns=names),
        caption,
        lambda: plotting.draw_shapes(model, columns=names, across=1),
    )
    if drawn is not None:
        return [drawn]
    rows = []
    for name in names:
        for label in model.classes_[-len(model.coef_) :].tolist():
            rows += _shape_rows(model.shape(name, label, level=level / 100))
    head = ("column", "class", "value", "adds", f"{level} % interval")
    return [element("p", caption), table(head, rows, texts=3, stacked=True)]


def _shape_rows(shape: Any) -> list[tuple[str, ...]]:
    """The largest and the smallest steps or levels of a column."""
    if shape.kind == "category":
        places = list(shape.levels)
    elif shape.kind == "line":
        places = [f"{edge:.6g}" for edge in shape.edges]
    else:
        places = [f"{low:.6g} to {high:.6g}"
                  for low, high in zip(shape.edges[:-1], shape.edges[1:], strict=True)]  # fmt: skip
    bands = [""] * len(places)
    if shape.lower is not None:
        bands = [f"{low:+.3f} to {high:+.3f}"
                 for low, high in zip(shape.lower, shape.upper, strict=True)]  # fmt: skip
    kept = np.sort(np.argsort(-np.abs(shape.values), kind="stable")[:MOST_ROWS])
    return [(shape.name, str(shape.label), places[j], f"{shape.values[j]:+.3f}", bands[j])
            for j in kept]  # fmt: skip


def _calibration(model: Any) -> list[Markup]:
    """The slope and intercept that were bought for the scores, if they were."""
    bought = model.release_.settings.get("calibration")
    if not isinstance(bought, dict):
        return []
    labels = model.classes_[-len(model.coef_) :].tolist()
    rows = [(str(label), f"{slope:.4f}", f"{intercept:+.4f}") for label, slope, intercept
            in zip(labels, bought["slope"], bought["intercept"], strict=True)]  # fmt: skip
    words = (
        f"Calibration: {100 * bought['share']:.3g} % of the budget bought a slope and an intercept "
        "for the scores of each class, so that probabilities are honest. Slope 1 and intercept 0 "
        "would have left the scores as they were."
    )
    return [element("p", words), table(("class", "slope", "intercept"), rows)]


# ------------------------------------------------------------------------------------- clusters


def _clusters(model: Any) -> list[Markup]:
    centers, domain = np.asarray(model.cluster_centers_), model.domain_
    parts: list[Markup] = []
    if isinstance(domain, Domain) and centers.shape[1] > 1:
        draw = plotting.draw_clusters if centers.shape[1] <= PLANE else plotting.draw_centers
        caption = (
            "Released centres, and the part of the declared domain that is nearest to each."
            if centers.shape[1] <= PLANE
            else "Released centres: each column by its place in its declared range."
        )
        drawn = picture(lambda: draw(model), caption)
        parts += [] if drawn is None else [drawn]
    if not isinstance(domain, Domain):
        columns = {f"place {j}": column for j, column in enumerate(centers.T)}
    else:
        columns = in_units(domain, centers, getattr(model, "feature_names_in_", None))
    names = list(columns)[:MOST_COLUMNS]
    rows = [(name, *(f"{value:.6g}" for value in columns[name])) for name in names]
    parts.append(element("p", "Centres in the units of the table; levels of a category have "
                              "shares."))  # fmt: skip
    parts.append(table(("column", *(f"centre {i}" for i in range(len(centers)))), rows))
    if len(names) < len(columns):
        parts.append(element("p", f"{len(columns) - len(names)} more columns are in the model."))
    return parts + _sizes(model)


def _sizes(model: Any) -> list[Markup]:
    sizes = getattr(model, "cluster_sizes_", None)
    if sizes is None:
        return []
    ends = model.cluster_size_intervals(0.9)
    rows = [(f"centre {i}", f"{size:,.0f}", f"{low:,.0f} to {high:,.0f}")
            for i, (size, (low, high)) in enumerate(zip(sizes, ends, strict=True))]  # fmt: skip
    return [element("p", "Noisy sizes of the clusters, with 90 % intervals of the noise."),
            table(("cluster", "records", "90 % interval"), rows)]  # fmt: skip


# ------------------------------------------------------------------------------- binary columns


def _bayes(model: Any) -> list[Markup]:
    """The columns whose probabilities differ most between the last class and the first."""
    first, last = model.feature_log_prob_[0], model.feature_log_prob_[-1]
    order = np.argsort(-np.abs(last - first), kind="stable")[:MOST_ROWS]
    names = _names(model)
    labels = model.classes_[[0, -1]].tolist()
    rows = [(names[j], f"{np.exp(first[j]):.4f}", f"{np.exp(last[j]):.4f}") for j in order]
    head = ("column", f"probability if {labels[0]}", f"probability if {labels[1]}")
    shares = np.exp(model.class_log_prior_)
    return [
        element("p", "Shares of the classes, after noise."),
        table(("class", "share"), [(str(label), f"{share:.4f}") for label, share
                                   in zip(model.classes_.tolist(), shares, strict=True)]),
        element("p", f"The {len(rows)} of {len(first)} columns whose probabilities differ most "
                     f"between {labels[0]} and {labels[1]}."),
        table(head, rows),
    ]  # fmt: skip


def _selection(model: Any) -> list[Markup]:
    names = _names(model)
    rows = [(f"{place + 1}", names[j]) for place, j in enumerate(model.ranking_.tolist())]
    return [element("p", f"{len(rows)} of {len(names)} columns were selected."),
            table(("place", "column"), rows, texts=2)]  # fmt: skip


def _names(model: Any) -> list[str]:
    """The names of the columns of a table of ones and zeros."""
    named = getattr(model, "feature_names_in_", None)
    if named is not None:
        return [str(name) for name in named]
    return [f"column {j}" for j in range(model.n_features_in_)]


# ----------------------------------------------------------------------------------- evaluation


def roc_parts(curves: dict[str, RocCurve]) -> list[Markup]:
    """Released curves: a picture or a table, and their areas."""
    named = {str(one.release.settings["positive"]) for one in curves.values()
             if "positive" in one.release.settings}  # fmt: skip
    caption = f"Released ROC curves{f', positive class {named.pop()}' if len(named) == 1 else ''}."
    drawn = picture(lambda: plotting.draw_roc(curves), caption)
    areas = table(("curve", "area", "epsilon", "delta"),
                  [(name, f"{one.auc:.4f}", f"{one.release.epsilon:.6g}",
                    f"{one.release.delta:.3g}") for name, one in curves.items()])  # fmt: skip
    if drawn is not None:
        return [drawn, areas]
    tables = []
    for name, one in curves.items():
        kept = range(0, len(one.fpr), max(1, len(one.fpr) // MOST_ROWS))
        rows = [(f"{one.thresholds[i]:.4f}", f"{one.fpr[i]:.4f}", f"{one.tpr[i]:.4f}")
                for i in kept]  # fmt: skip
        tables += [element("p", name),
                   table(("threshold", "false positives", "true positives"), rows)]  # fmt: skip
    return [areas, *tables]


def calibration_parts(curves: dict[str, RocCurve]) -> list[Markup]:
    """How often probabilities come true, by each released curve of probabilities."""
    parts: list[Markup] = []
    for name, curve in curves.items():
        found = CalibrationCurve.of(curve)
        if found is None:
            continue
        of = "" if len(curves) == 1 else f" of {name}"
        positive = curve.release.settings.get("positive")
        named = "" if positive is None else f" ({positive})"
        caption = (
            f"Calibration{of}: the share of positives among records with similar predicted "
            "probabilities. Boxes span the predictions and the 95 % intervals; probabilities are "
            "honest where boxes meet the dotted line. Computed from the counts of the ROC curve, "
            "at no cost."
        )
        drawn = picture(partial(plotting.draw_calibration, found), caption)
        larger = 100 * max(found.positives, 1 - found.positives)
        words = (
            f"{100 * found.positives:.1f} % of the test records{of} are positive{named}, after "
            f"noise; always predicting the larger class would be right for {larger:.1f} %."
        )
        parts.append(element("p", words))
        head = ("predicted probability", "share of positives", "95 % interval")
        parts += [element("p", caption)] if drawn is None else [drawn]
        parts.append(table(head, found.rows()))
    return parts


def _curve(curve: RocCurve) -> list[Markup]:
    return roc_parts({"the released curve": curve})


def _matrix(matrix: ConfusionMatrix) -> list[Markup]:
    """Noisy counts by class and predicted class."""
    listed = matrix.release.settings.get("classes", ("negative", "positive"))
    labels = [str(label) for label in listed]  # type: ignore[attr-defined]
    rows = [(label, *(f"{count:,.0f}" for count in row))
            for label, row in zip(labels, matrix.counts, strict=True)]  # fmt: skip
    return [element("p", "Noisy counts: a row for each class, a column for each predicted class."),
            table(("class", *(f"predicted {label}" for label in labels)), rows)]  # fmt: skip


PARTS: dict[str, Callable[[Any], list[Markup]]] = {
    "coef_": _linear,
    "cluster_centers_": _clusters,
    "feature_log_prob_": _bayes,
    "ranking_": _selection,
    "auc": _curve,
    "counts": _matrix,
}
