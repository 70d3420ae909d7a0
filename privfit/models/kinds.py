"""The classes that a model file may hold: parameters, parts, and fitted attributes of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from privfit.base.errors import FileError
from privfit.base.json import as_array
from privfit.base.validation import is_finite, is_whole
from privfit.clustering.mixed import clustered
from privfit.clustering.sizes import Sizes
from privfit.evaluation.roc import ConfusionMatrix, RocCurve
from privfit.features.bayes import NaiveBayes, NoisyCounts
from privfit.features.text import hashed, listed
from privfit.linear.methods import RENAMED
from privfit.models.held import (
    UNCHANGED,
    File,
    check_method,
    check_noise,
    check_ones,
    check_shares,
    classes_of,
    columns_of,
    domain_of,
    indices_of,
    learned_domain,
)
from privfit.objectives.facility import spanned_box
from privfit.privacy.released import ReleasedFloat

__all__ = ["CALLS", "ESTIMATORS", "KINDS", "RESULTS", "Kind"]


def _linear(file: File) -> dict[str, Any]:
    check_method(file, "solver")
    for name in ("C", "fit_intercept"):
        if name in file.parameters:
            file.agree(name, file.parameters[name], file.settings.get(name))
    domain, found = domain_of(file, learned_domain(file))
    classes = classes_of(file)
    rows = 1 if len(classes) == 2 else len(classes)
    coef, intercept = file.floats("coef", rows, domain.width), file.floats("intercept", rows)
    if intercept.any() and not file.parameters["fit_intercept"]:
        raise FileError(f"intercept must be 0 if none was fitted; {UNCHANGED}")
    check_noise(file, rows, domain.width + bool(file.parameters["fit_intercept"]))
    check_shares(file, domain)
    return {**found, "classes_": classes, "coef_": coef, "intercept_": intercept}


def _kmeans(file: File) -> dict[str, Any]:
    check_method(file, "solver")
    if file.parameters["postprocess"] != "auto":
        file.agree("postprocess", file.parameters["postprocess"], file.settings.get("postprocess"))
    if file.parameters["scale"] != 1.0:
        file.agree("scale", file.parameters["scale"], file.settings.get("scale"))
    coded = partial(clustered, scale=file.parameters["scale"])
    domain, found = domain_of(file, learned_domain(file), coded)
    centers = file.floats("centers", None, domain.width)
    file.agree("n_clusters", file.parameters["n_clusters"], len(centers))
    if file.settings.get("postprocess") is not None:
        centers = file.floats("postprocessed", *centers.shape)
    return {**found, "cluster_centers_": centers, **_sizes(file, len(centers))}


def _sizes(file: File, k: int) -> dict[str, Any]:
    """The sizes of clusters; none in older files, and if the solver released none."""
    noise: Any = file.release.parameters.get("size_noise")
    if noise is None:
        return {"cluster_sizes_": None, "cluster_size_errors_": None}
    if not _is_size_noise(noise, k):
        raise FileError(f"size_noise must be the noise of {k} sizes; {UNCHANGED}")
    counts = file.floats("sizes", k)
    errors = Sizes.from_noise(counts, noise).errors
    return {"cluster_sizes_": counts, "cluster_size_errors_": errors}


def _is_size_noise(noise: Any, k: int) -> bool:
    """Whether this is what `Sizes.noise` writes of so many sizes."""
    if not isinstance(noise, dict) or noise.keys() != {"kind", "scale", "draws"}:
        return False
    kind, scale, draws = noise["kind"], noise["scale"], noise["draws"]
    known = kind in ("laplace", "gaussian") and is_finite(scale) and scale >= 0
    counted = isinstance(draws, list) and all(is_whole(m) and 0 <= m < 1 << 31 for m in draws)
    return known and counted and len(draws) == k


def _kmedian(file: File) -> dict[str, Any]:
    check_method(file, "solver")
    given, metric, clip = (file.parameters[name] for name in ("facilities", "metric", "clip"))
    if given is None:
        return _kmedian_anywhere(file)
    places = np.asarray(given)
    if places.ndim != 2 or places.size == 0 or places.dtype.kind not in "fiu":
        raise FileError(f"facilities must be places (f, d); {UNCHANGED}")
    if not isinstance(metric, str) or metric not in ("l1", "l2"):
        raise FileError(f"metric must be 'l1' or 'l2'; {UNCHANGED}")
    said = tuple(file.settings.get("clip", ()))
    if clip is not None:
        file.agree("clip", tuple(clip), said)
    declared = file.parameters["domain"]
    domain, found = domain_of(
        file, spanned_box(places.astype(np.float64)) if declared is None else declared
    )
    chosen = indices_of(file, "facilities", len(places))
    file.agree("n_clusters", file.parameters["n_clusters"], len(chosen))
    centers = file.floats("centers", len(chosen), places.shape[1])
    unit = domain.record_units(uniform=True)[0]
    if not np.array_equal(np.rint(places[chosen] / unit) * unit, centers):
        raise FileError(f"centers must be the chosen facilities; {UNCHANGED}")
    return {**found, "facilities_": chosen, "cluster_centers_": centers, "metric_": metric,
            "clip_": said}  # fmt: skip


def _kmedian_anywhere(file: File) -> dict[str, Any]:
    """k-median without facilities."""
    file.agree("metric", file.parameters["metric"], "l2")
    said, clip = tuple(file.settings.get("clip", ())), file.parameters["clip"]
    if clip is not None:
        file.agree("clip", tuple(clip), said)
    domain, found = domain_of(file, file.parameters["domain"])
    centers = file.floats("centers", None, domain.width)
    file.agree("n_clusters", file.parameters["n_clusters"], len(centers))
    return {**found, "cluster_centers_": centers, "metric_": "l2", "clip_": said}


def _bayes(file: File) -> dict[str, Any]:
    found, alpha = columns_of(file), file.parameters["alpha"]
    file.agree("alpha", NaiveBayes(alpha).alpha, file.settings.get("alpha"))
    d, classes = found["n_features_in_"], classes_of(file)
    check_ones(file, d)
    sizes = file.floats("class_count", len(classes))
    ones = file.floats("feature_count", len(classes), d)
    if (sizes < 1).any() or (ones < 0).any() or (ones > sizes[:, None]).any():
        raise FileError(f"counts must lie between 0 and their class's, at least 1; {UNCHANGED}")
    return {**found, "classes_": classes, **NoisyCounts(sizes, ones).fitted(alpha)}


def _select(file: File) -> dict[str, Any]:
    check_method(file, "solver")
    file.agree("criterion", file.parameters["criterion"], file.settings.get("criterion"))
    found = columns_of(file)
    d = found["n_features_in_"]
    check_ones(file, d)
    chosen = indices_of(file, "features", d)
    most = getattr(file.parameters["solver"], "k", file.parameters["k"])
    if most is not None and (not is_whole(most) or not 1 <= most or len(chosen) > most):
        raise FileError(f"k ({most!r}) must be at least the {len(chosen)} features; {UNCHANGED}")
    if "noisy_scores" in file.release.parameters:
        file.floats("noisy_scores", d)
    return {**found, "ranking_": chosen}


def _hash_words(file: File) -> dict[str, Any]:
    vocabulary = file.parameters["vocabulary"]
    if vocabulary is None:
        hashed(file.parameters["n_features"])  # refuses what cannot be one
    else:
        listed(vocabulary)
    return {}


def _roc_curve(file: File) -> dict[str, Any]:
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
    if "noisy" in file.release.parameters:  # from which calibration follows
        file.integers("noisy", 2, None)
        file.floats("cuts", None)
    return {"fpr": fpr, "tpr": tpr, "thresholds": thresholds}


def _confusion(file: File) -> dict[str, Any]:
    classes = file.settings.get("classes", [0, 1])  # of scores there are two
    if not isinstance(classes, list) or len(classes) < 2:
        raise FileError(f"classes of a confusion matrix must be at least two; {UNCHANGED}")
    return {"counts": file.floats("counts", len(classes), len(classes))}


def _accuracy(file: File) -> dict[str, Any]:
    share = file.release.parameters.get("accuracy")
    counts = file.release.parameters.get("noisy")
    counted = isinstance(counts, list) and all(map(is_whole, counts)) and len(counts) in (1, 2)
    if not is_finite(share) or not 0 <= share <= 1 or not counted:
        raise FileError(f"an accuracy must be a share with its noisy counts; {UNCHANGED}")
    return {"value": share}


@dataclass(frozen=True)
class Kind:
    """A class that can be saved: its parameters, the parts of its file, and how it is read."""

    parameters: tuple[str, ...]
    parts: tuple[str, ...]
    fitted: Callable[[File], dict[str, Any]]
    renamed: Mapping[str, str] = field(default_factory=dict)  # solvers by old names


_CLASSIFIER = ("parameters", "columns", "labels", "release")
_OTHER = ("parameters", "columns", "release")
_LINEAR = Kind(
    ("epsilon", "delta", "domain", "classes", "solver", "fit_intercept", "coding",
     "class_weight", "calibrate", "adjacency", "n_public"),
    _CLASSIFIER, _linear, RENAMED,
)  # fmt: skip
ESTIMATORS: dict[str, Kind] = {
    "LogisticRegression": _LINEAR,
    "LinearSVC": Kind(
        ("epsilon", "delta", "domain", "classes", "solver", "C", "fit_intercept",
         "coding", "class_weight", "calibrate", "adjacency", "n_public"),
        _CLASSIFIER, _linear, RENAMED,
    ),
    "KMeans": Kind(
        ("n_clusters", "epsilon", "delta", "domain", "solver", "postprocess", "scale", "adjacency",
         "n_public"), _OTHER, _kmeans,
    ),
    "KMedian": Kind(
        ("n_clusters", "epsilon", "delta", "domain", "facilities", "clip", "metric", "solver",
         "adjacency", "n_public"), _OTHER, _kmedian,
    ),
    "BernoulliNB": Kind(
        ("epsilon", "delta", "classes", "max_ones", "alpha", "adjacency"), _CLASSIFIER, _bayes
    ),
    "SelectFeatures": Kind(
        ("epsilon", "delta", "classes", "solver", "k", "criterion", "max_ones", "adjacency",
         "n_public"), _OTHER, _select,
    ),
    "HashWords": Kind(("n_features", "vocabulary", "fold_digits"), ("parameters",), _hash_words),
}  # fmt: skip
KINDS: dict[str, Kind] = {
    **ESTIMATORS,
    "RocCurve": Kind((), ("thresholds", "release"), _roc_curve),
    "ConfusionMatrix": Kind((), ("release",), _confusion),
    "ReleasedFloat": Kind((), ("release",), _accuracy),
}
RESULTS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (RocCurve, ConfusionMatrix, ReleasedFloat)
}
# What the grant of each is named after.
CALLS = {**{name: name for name in ESTIMATORS}, "roc_curve": "RocCurve",
          "confusion_matrix": "ConfusionMatrix", "accuracy_score": "ReleasedFloat"}  # fmt: skip
