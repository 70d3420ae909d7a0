"""Records of a test set, scored by a model: a score or a prediction, a label, and their counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_whole
from privfit.domains.frames import length
from privfit.domains.reading import LevelReader, positions, raw_numbers, two_classes
from privfit.records.packing import Run
from privfit.records.rows import Rows

GRID = 2**12  # places of a score


class GradedRows(Rows):
    """A score for each record, and whether it is positive."""

    def __init__(self, score: Floats, positive: NDArray[np.bool_]) -> None:
        super().__init__((Run(0, len(score), 0),), 1)
        self.score, self.positive = score, positive

    @classmethod
    def pack(cls, y_score: Any, y_true: Any, *, pos_label: Any = 1) -> GradedRows:
        """Check scores and labels, each record by itself."""
        if isinstance(y_score, Mapping) and len(y_score) == 1:
            [column] = y_score.values()
            y_score = raw_numbers(column)
        score = raw_numbers(y_score) if isinstance(y_score, list) else np.asarray(y_score)
        y = y_true if isinstance(y_true, list) else np.asarray(y_true)
        if score.ndim != 1 or score.dtype.kind not in "fiub":
            raise InputError(
                f"y_score ({score.ndim} dimensions, dtype {score.dtype}) must be a vector of "
                "numbers; pass one score for each record"
            )
        if length(y) != score.size:
            raise InputError(
                "y_true must have one label for each score; pass vectors of one length"
            )
        if score.size == 0:
            raise InputError("y_score must have at least one record; pass a non-empty test set")
        with np.errstate(over="ignore"):  # what is huge is clipped, and nothing tells of it
            score = score.astype(np.float64, copy=False)
        if np.isnan(score).any():
            raise InputError("y_score must not contain NaN; replace it by a public value first")
        return cls(score, _positive(y, pos_label))

    def histogram(self, low: float, high: float) -> Integers:
        """int64 (2, G): negatives and positives in each cell of a grid of scores low..high."""
        inside = np.clip(self.score, low, high) - low  # first: nothing then overflows, or warns
        place = np.minimum(inside * (GRID / (high - low)), GRID - 1).astype(np.intp)
        return np.bincount(place + GRID * self.positive, minlength=2 * GRID).reshape(2, GRID)

    def between(self, cuts: Floats) -> Integers:
        """int64 (2, m): negatives and positives between increasing thresholds."""
        m = len(cuts) + 1
        place = np.searchsorted(cuts, self.score, side="right")
        return np.bincount(place + m * self.positive, minlength=2 * m).reshape(2, m)


class PredictedRows(Rows):
    """The class of each record, and the class that a model predicts, as codes of declared ones."""

    def __init__(self, label: Integers, predicted: Integers) -> None:
        super().__init__((Run(0, len(label), 0),), 1)
        self.label, self.predicted = label, predicted

    @classmethod
    def pack(cls, y_pred: Any, y_true: Any, *, known: Mapping[str, int]) -> PredictedRows:
        """Look up both among the declared classes, `positions` of them, each record by itself."""
        if isinstance(y_pred, Mapping) and len(y_pred) == 1:
            [y_pred] = y_pred.values()
        columns = y_true, y_pred
        sizes = [length(column) for column in columns]
        if -1 in sizes or sizes[0] != sizes[1]:
            raise InputError(
                "y_true must have one label for each prediction; pass vectors of one length"
            )
        if sizes[0] == 0:
            raise InputError("y_true must have at least one record; pass a non-empty test set")
        codes = [LevelReader(known).codes(column) for column in columns]
        for name, found in zip(("y_true", "y_score"), codes, strict=True):
            if (found < 0).any():
                raise InputError(
                    f"{name} must hold declared classes alone; pass classes=[...] with all of them"
                )
        return cls(*codes)

    def confusion(self, n_classes: int) -> Integers:
        """int64 (K, K): how many records of each class are predicted to be of each."""
        cells = np.bincount(n_classes * self.label + self.predicted, minlength=n_classes**2)
        return cells.reshape(n_classes, n_classes)

    def right(self) -> Integers:
        """int64 (1,): how many records are predicted to be what they are."""
        return np.array([np.count_nonzero(self.label == self.predicted)])


def _positive(y: Any, pos_label: Any) -> NDArray[np.bool_]:
    """Which labels are the positive one, each read by itself."""
    if not (is_whole(pos_label) and pos_label == 1):
        kind = getattr(y, "dtype", np.dtype(object)).kind
        if kind != "O" and isinstance(pos_label, str) != (kind in "US"):
            raise DeclarationError(
                f"pos_label ({pos_label!r}) must have the type of y_true's labels; pass one of "
                f"its labels"
            )
        return LevelReader(positions([pos_label], "pos_label")).codes(y) == 0
    groups = two_classes(y)
    if groups is None:
        raise InputError(
            "y_true must hold 0 and 1, or -1 and +1; pass pos_label=... to name the positive class"
        )
    return np.asarray(groups == 0)
