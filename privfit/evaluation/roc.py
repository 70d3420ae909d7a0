"""Private evaluation: ROC curve and its area, confusion matrix and accuracy of public scores.

After Stoddard, Chen and Machanavajjhala, *Differentially private algorithms for empirical machine
learning*, 2014. A record is a pair (score, label) of somebody in the test set. The scores come from
a model that is public, or was released from *other* records: the model may not have seen this test
set except through releases of its own.

`roc_curve` makes two releases. Scores lie on a public grid of whole numbers 0 ... G - 1.

1. *Thresholds*: private medians, whose sensitivity `roc_plan.py` derives; or a fixed public grid,
   which costs nothing.
2. *Counts* of negatives and positives between thresholds, from the whole rest of the budget.

What follows (`binormal.py`) is post-processing. A score of at least the threshold predicts the
positive class, so rates fall as the threshold rises. Under 'replace' the number of records is
public and the counts are made to add up to it.

**Confusion matrix.** K declared classes make a histogram of K x K cells: what a record is, and what
it is predicted to be. A record counts in one cell. Added or removed, it changes that cell by 1: the
l1 and l2 sensitivities are 1. Replaced, it leaves one cell for another: l1 is 2, l2 is sqrt(2). The
noise is discrete Laplace noise for the l1 sensitivity, independent in all cells. A threshold on
scores predicts one of two classes, K = 2.

**Accuracy.** Under 'replace' the number of correct predictions changes by at most 1 and is divided
by the public n. Under 'add_remove' the correct and the wrong ones are two cells of sensitivity 1.

Whether the second argument holds scores or predictions follows from `classes`, which is public:
with it predictions, without it scores. The values never decide it, since one record would then
change how all others are read. A label or a prediction that is not declared is refused before the
charge, by a message without values, as it is where models are fitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.cautions import PrivacyLeakWarning
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.domains.reading import positions
from privfit.evaluation.binormal import simplex
from privfit.evaluation.priroc import PriROC
from privfit.evaluation.roc_plan import Counts, Thresholds, published
from privfit.privacy.ledger import Ledger, Release
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Adjacency
from privfit.privacy.released import ReleasedFloat
from privfit.records import Sums, sums_of
from privfit.records.graded import GradedRows, PredictedRows
from privfit.runs.payment import Terms

__all__ = [
    "ConfusionMatrix",
    "RocCurve",
    "accuracy_score",
    "confusion_matrix",
    "roc_auc_score",
    "roc_curve",
]

MOST_CLASSES = 1024  # of a confusion matrix: a million cells
OPTIONS = ("auto", None, 0.3, "auto", True)  # of `roc_curve`: thresholds ... smooth, if left out


# ------------------------------------------------------------------------------------------ results


@dataclass(frozen=True, eq=False, repr=False)
class RocCurve:
    """A released ROC curve: rates from (0, 0) to (1, 1), with the threshold of each.

    Parameters
    ----------
    fpr, tpr : array of shape (q,)
        False and true positive rates.
    thresholds : array of shape (q,)
        The threshold of each point, the first of which is infinite. Between those that were drawn,
        others are interpolated.
    release : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    roc_curve : Returns it.
    privfit.report.plotting.draw_roc : Plots several.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> y = np.repeat([0, 1], 5000)
    >>> scores = np.linspace(0, 1, 10_000)
    >>> curve = roc_curve(y, scores, epsilon=1.0)
    >>> bool(curve.auc > 0.9)
    True
    """

    fpr: Floats
    tpr: Floats
    thresholds: Floats
    release: Release

    def __repr__(self) -> str:
        return f"RocCurve(<{len(self.fpr)} points>, auc {self.auc:.3f})"

    @property
    def auc(self) -> float:
        """The area under the curve."""
        return float(np.sum(np.diff(self.fpr) * (self.tpr[1:] + self.tpr[:-1]) / 2))

    def plot(self, ax: Any = None, *, true: tuple[ArrayLike, ArrayLike] | None = None) -> Any:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            The axes; by default those of a new figure.
        true : pair (y_true, y_score) or None, default=None
            Draws the exact curve as well, which is **not private**: only if everybody who sees the
            plot may see the records.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        exact = None
        if true is not None:
            warnings.warn(
                "plot(true=...) draws the exact curve of private records: show it only to people "
                "who may see them",
                PrivacyLeakWarning,
                stacklevel=2,
            )
            exact = exact_roc(*true)
        from privfit.report import plotting  # pictures load when they are asked for

        return plotting.draw_roc(self, ax, exact=exact)


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Released counts (K, K): a row for each class, a column for each predicted class.

    Of scores these are [[true negatives, false positives], [false negatives, true positives]].

    Parameters
    ----------
    counts : array of shape (K, K)
        The noisy counts.
    release : Release
        What was released, its cost and the declarations it depends on.

    See Also
    --------
    confusion_matrix : Returns it.

    Examples
    --------
    >>> from privfit import confusion_matrix
    >>> found = confusion_matrix([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> found.counts.shape
    (2, 2)
    """

    counts: Floats
    release: Release

    @property
    def accuracy(self) -> float:
        """The fraction of correct predictions, after noise."""
        return float(np.trace(self.counts) / max(self.counts.sum(), 1.0))


# --------------------------------------------------------------------------------- public functions


def roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    epsilon: float,
    delta: float = 0.0,
    *,
    thresholds: str | ArrayLike = "auto",
    bounds: tuple[float, float] = (0.0, 1.0),
    levels: int | None = None,
    share: float = 0.3,
    noise: str = "auto",
    smooth: bool = True,
    paper: bool | PriROC = False,
    pos_label: Any = 1,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> RocCurve:
    """The ROC curve of public scores on private records.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Dask collection
        Private labels.
    y_score : array-like of shape (n,), Stream or Dask collection
        Scores of a public model, higher for the positive class.
    epsilon : float
        The budget of the curve.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    thresholds : {'auto', 'medians', 'grid'} or array-like, default='auto'
        Where rates are counted: at private medians, on an even grid within the bounds, or at public
        thresholds. 'auto' takes medians unless there are too few records for them.
    bounds : pair of float, default=(0.0, 1.0)
        The public range of scores; others are clipped to it.
    levels : int or None, default=None
        2^levels cells, of medians or of the grid; by default a public rule, from 3 to 8.
    share : float, default=0.3
        Fraction of epsilon for the medians.
    noise : {'auto', 'flat', 'hierarchy', 'wavelet', 'gaussian'}, default='auto'
        How cells are measured. 'auto' has the smallest expected error. 'gaussian' is the wavelet
        with Gaussian noise, and needs delta > 0.
    smooth : bool, default=True
        Whether to shrink a flat measurement towards binormal curves, as far as it looks like one.
    paper : bool or PriROC, default=False
        True draws the curve of 2014, with what breaks privacy repaired: ceil(log2 n) levels of
        medians from a fifth of epsilon, Privelet, isotonic regression. `PriROC` has the paper's
        other two curves. Thresholds, levels, share, noise and smooth are then the paper's.
    pos_label : label, default=1
        The positive class. With the default, labels must be 0 and 1, or -1 and +1.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records, for the rules under 'add_remove'.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    RocCurve
        The released curve.

    See Also
    --------
    roc_auc_score : The area.
    confusion_matrix, accuracy_score : At one threshold.

    Notes
    -----
    Released: thresholds, if they are medians, and noisy counts of both classes between them. Cost:
    the whole budget. The model must be public, or released from *other* records.

    References
    ----------
    B. Stoddard, Y. Chen, A. Machanavajjhala, "Differentially private algorithms for empirical
    machine learning", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=5000)
    >>> score = np.clip(rng.normal(0.4 + 0.2 * y, 0.15), 0, 1)
    >>> curve = roc_curve(y, score, 1.0)
    >>> bool(0.77 < curve.auc < 0.88)
    True
    """
    table = _Table.of(y_true, y_score, pos_label, bounds)
    terms = Terms("roc_curve", epsilon, delta, adjacency, n_public, ledger, random_state)
    budget, size = terms.budget, terms.size(table)
    if paper is False:
        where = Thresholds.plan(
            thresholds, table.bounds, levels, share, budget, terms.neighbours, size
        )
        counts = Counts.plan(noise, where.bits, budget, where.events, terms.neighbours)
    else:
        _check_published(paper, thresholds, levels, share, noise, smooth)
        drawn = PriROC() if paper is True else paper
        where, counts = published(drawn, table.bounds, budget, terms.neighbours, size)
        smooth = False
    paid = terms.charge(table)
    paid.plan(*where.events, counts.noise.event)

    cuts, cells = where.cells(table, paid)
    noisy = paid.release(counts.noise, counts.integers(cells))
    known = table.n_records if terms.neighbours.size_is_public and paper is False else None
    points = counts.points(noisy, len(cuts) + 1, known, smooth)

    released = {"cuts": cuts, "noisy": noisy, "fpr": points.fpr, "tpr": points.tpr}
    is_smooth = counts.is_smoothed(len(cuts) + 1, smooth)
    settings = {**where.settings, **counts.settings, "smooth": is_smooth}
    if type(pos_label) is not int or pos_label != 1:  # the default, which is no name of a class
        settings["positive"] = shown_labels([pos_label])[0]
    release = paid.close(f"scores in {table.bounds}", settings, released)
    places = np.concatenate([[table.bounds[1]], cuts[::-1], [table.bounds[0]]])
    found = np.interp(points.place, np.arange(len(places)), places)
    found[0] = np.inf
    return RocCurve(points.fpr, points.tpr, found, release)


def roc_auc_score(
    y_true: ArrayLike, y_score: ArrayLike, epsilon: float, delta: float = 0.0, **options: Any
) -> ReleasedFloat:
    """The area under the private ROC curve.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Dask collection
        Private labels.
    y_score : array-like of shape (n,), Stream or Dask collection
        Scores of a public model, higher for the positive class.
    epsilon : float
        The budget of the curve.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    **options : object
        Other parameters of `roc_curve`.

    Returns
    -------
    ReleasedFloat
        The area, a float with an attribute `release`.

    See Also
    --------
    roc_curve : The curve.

    Notes
    -----
    Released: the curve. Cost: the whole budget.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_auc_score
    >>> y = np.repeat([0, 1], 5000)
    >>> bool(roc_auc_score(y, np.linspace(0, 1, 10_000), epsilon=1.0) > 0.9)
    True
    """
    curve = roc_curve(y_true, y_score, epsilon, delta, **options)
    return ReleasedFloat(curve.auc, curve.release)


def confusion_matrix(
    y_true: ArrayLike,
    y_score: ArrayLike,
    epsilon: float,
    *,
    classes: Sequence[Any] | None = None,
    threshold: float = 0.5,
    pos_label: Any = 1,
    adjacency: Adjacency = "replace",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> ConfusionMatrix:
    """Noisy counts of the records of each class by the class that is predicted.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Labels, and predicted labels if `classes` is given, otherwise scores that are higher for the
        positive class. They may be Dask arrays or Series, or a `Stream` of scores or predictions.
    epsilon : float
        The budget.
    classes : sequence or None, default=None
        The declared labels, in the order of rows and columns, at most 1,024. Every label and every
        prediction must be one of them.
    threshold : float, default=0.5
        For scores: a score of at least this predicts the positive class.
    pos_label : label, default=1
        For scores: the positive class. With the default, labels must be 0 and 1, or -1 and +1.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    ConfusionMatrix
        Counts that are not negative and, if the number of records is public, add up to it.

    See Also
    --------
    accuracy_score : A single number, with less noise.

    Notes
    -----
    Released: noisy counts of all cells, four for scores. Cost: one pure release of epsilon.

    Examples
    --------
    >>> from privfit import confusion_matrix
    >>> found = confusion_matrix([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> bool(abs(found.counts - [[1000, 1000], [0, 2000]]).max() < 100)
    True
    >>> y_true, y_pred = ["a", "b", "c", "c"] * 1000, ["a", "b", "c", "b"] * 1000
    >>> found = confusion_matrix(y_true, y_pred, epsilon=1.0, classes=["a", "b", "c"])
    >>> bool(abs(found.counts - [[1000, 0, 0], [0, 1000, 0], [0, 1000, 1000]]).max() < 100)
    True
    """
    table = _graded(y_true, y_score, classes, threshold, pos_label)
    if table.n_classes > MOST_CLASSES:
        raise DeclarationError(
            f"classes ({table.n_classes} of them) must be at most {MOST_CLASSES} for a confusion "
            "matrix; pass fewer, or ask for accuracy_score"
        )
    terms = Terms("confusion_matrix", epsilon, 0.0, adjacency, None, ledger, random_state)
    n = terms.size(table)
    mechanism = DiscreteLaplace(epsilon, terms.neighbours.changes)
    paid = terms.charge(table)
    noisy = paid.release(mechanism, table.confusion().ravel())
    total = max(float(noisy.sum()), 1.0) if n is None else n
    counts = simplex(noisy.astype(np.float64), total).reshape(table.n_classes, -1)
    release = paid.close(settings=table.settings, parameters={"noisy": noisy, "counts": counts})
    return ConfusionMatrix(counts, release)


def accuracy_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    epsilon: float,
    *,
    classes: Sequence[Any] | None = None,
    threshold: float = 0.5,
    pos_label: Any = 1,
    adjacency: Adjacency = "replace",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> ReleasedFloat:
    """The noisy fraction of records that are predicted correctly.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Labels, and predicted labels if `classes` is given, otherwise scores that are higher for the
        positive class. They may be Dask arrays or Series, or a `Stream` of scores or predictions.
    epsilon : float
        The budget.
    classes : sequence or None, default=None
        The declared labels. Every label and every
        prediction must be one of them.
    threshold : float, default=0.5
        For scores: a score of at least this predicts the positive class.
    pos_label : label, default=1
        For scores: the positive class. With the default, labels must be 0 and 1, or -1 and +1.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    ReleasedFloat
        The accuracy, a float with an attribute `release`.

    See Also
    --------
    confusion_matrix : The counts of all cells.

    Notes
    -----
    Released: one noisy count, or two under 'add_remove'. Cost: one pure release of epsilon.

    Examples
    --------
    >>> from privfit import accuracy_score
    >>> accuracy = accuracy_score([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> bool(abs(accuracy - 0.75) < 0.05)
    True
    >>> y_true, y_pred = ["a", "b", "c", "c"] * 1000, ["a", "b", "c", "b"] * 1000
    >>> accuracy = accuracy_score(y_true, y_pred, epsilon=1.0, classes=["a", "b", "c"])
    >>> bool(abs(accuracy - 0.75) < 0.05)
    True
    """
    table = _graded(y_true, y_score, classes, threshold, pos_label)
    terms = Terms("accuracy_score", epsilon, 0.0, adjacency, None, ledger, random_state)
    n = terms.size(table)
    mechanism = DiscreteLaplace(epsilon, 1)
    paid = terms.charge(table)
    correct = table.right()
    if n is not None:
        noisy = paid.release(mechanism, [correct])
        share = float(noisy[0]) / n
    else:
        noisy = paid.release(mechanism, [correct, table.n_records - correct])
        right, wrong = np.maximum(noisy, 0).tolist()
        share = right / max(right + wrong, 1)
    answer = min(max(share, 0.0), 1.0)
    release = paid.close(settings=table.settings, parameters={"noisy": noisy, "accuracy": answer})
    return ReleasedFloat(answer, release)


def exact_roc(y_true: ArrayLike, y_score: ArrayLike, pos_label: Any = 1) -> tuple[Floats, Floats]:
    """False and true positive rates at every score; **not private**."""
    table = GradedRows.pack(y_score, y_true, pos_label=pos_label)
    order = np.argsort(-table.score, kind="stable")
    down = table.score[order]
    ties_end = np.flatnonzero(np.append(down[1:] != down[:-1], True))
    above = np.stack([np.cumsum(table.positive[order] == side)[ties_end] for side in (False, True)])
    rates = above / np.maximum(above[:, -1:], 1)
    fpr, tpr = np.concatenate([np.zeros((2, 1)), rates], axis=1)
    return fpr, tpr


# ------------------------------------------------------------------------------------------ records


@dataclass(frozen=True, eq=False, repr=False)
class _Table:
    """Private scores and labels, wherever they are."""

    sums: Sums[GradedRows]
    bounds: tuple[float, float]

    @classmethod
    def of(cls, y_true: Any, y_score: Any, pos_label: Any, bounds: Any = (0.0, 1.0)) -> _Table:
        inside, pack = _check_bounds(bounds), partial(GradedRows.pack, pos_label=pos_label)
        return cls(sums_of(y_score, y_true, pack), inside)

    @property
    def n_records(self) -> int:
        return self.sums.n_records

    def histogram(self) -> Integers:
        """int64 (2, G): negatives and positives in each place of the grid of scores."""
        return self.sums.sum(GradedRows.histogram, *self.bounds)

    def between(self, cuts: ArrayLike) -> Integers:
        """int64 (2, m): negatives and positives between rising thresholds."""
        return self.sums.sum(GradedRows.between, np.asarray(cuts, dtype=np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class _Scored:
    """Private labels, and what a public threshold on scores predicts."""

    table: _Table
    threshold: float
    n_classes: int = 2

    @property
    def n_records(self) -> int:
        return self.table.n_records

    @property
    def settings(self) -> dict[str, Any]:
        """What a `Release` says of it."""
        return {"threshold": self.threshold}

    def confusion(self) -> Integers:
        """int64 (2, 2): how many records of each class are predicted to be of each."""
        return self.table.between([self.threshold])

    def right(self) -> int:
        """How many records are predicted to be what they are."""
        return int(np.trace(self.confusion()))


@dataclass(frozen=True, eq=False, repr=False)
class _Predicted:
    """Private labels and predictions of declared classes, wherever they are."""

    sums: Sums[PredictedRows]
    classes: list[Any]

    @property
    def n_records(self) -> int:
        return self.sums.n_records

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def settings(self) -> dict[str, Any]:
        """What a `Release` says of it."""
        return {"classes": shown_labels(self.classes)}

    def confusion(self) -> Integers:
        """int64 (K, K): how many records of each class are predicted to be of each."""
        return self.sums.sum(PredictedRows.confusion, self.n_classes)

    def right(self) -> int:
        """How many records are predicted to be what they are."""
        return int(self.sums.sum(PredictedRows.right)[0])


def _graded(
    y_true: Any, y_score: Any, classes: Any, threshold: Any, pos_label: Any
) -> _Scored | _Predicted:
    """Predictions if classes are declared, else scores: a public rule."""
    if classes is None:
        _check_number("threshold", threshold)
        return _Scored(_Table.of(y_true, y_score, pos_label), threshold)
    listed = _check_classes(classes)
    for name, value, default in (("threshold", threshold, 0.5), ("pos_label", pos_label, 1)):
        if not isinstance(value, type(default)) or value != default:
            raise DeclarationError(
                f"{name} ({value!r}) must be left out with classes, which stand for predictions; "
                "pass scores without classes, or predictions with them"
            )
    pack = partial(PredictedRows.pack, known=positions(listed, "classes"))
    return _Predicted(sums_of(y_score, y_true, pack), listed)


# ------------------------------------------------------------------------------------------- checks


def _check_published(paper: Any, *options: Any) -> None:
    """Refuse settings beside those of the paper."""
    if paper is not True and not isinstance(paper, PriROC):
        raise DeclarationError(
            f"paper ({paper!r}) must be True, False or a PriROC; pass one of them"
        )
    names = ("thresholds", "levels", "share", "noise", "smooth")
    for name, value, default in zip(names, options, OPTIONS, strict=True):
        if not isinstance(value, type(default)) or value != default:
            raise DeclarationError(
                f"{name} must be left out with paper={paper!r}, which has its own settings; "
                "pass paper=PriROC(...)"
            )


def _check_number(name: str, value: Any) -> None:
    if not is_finite(value):
        raise DeclarationError(f"{name} ({value!r}) must be a finite number; pass a public one")


def _check_bounds(bounds: Any) -> tuple[float, float]:
    pair = isinstance(bounds, Sequence | np.ndarray) and len(bounds) == 2
    if not pair or not all(map(is_finite, bounds)) or not 1e-100 < bounds[1] - bounds[0] < 1e100:
        raise DeclarationError(
            f"bounds ({bounds!r}) must be two increasing numbers, 1e-100 to 1e100 apart; pass the "
            "public range of scores"
        )
    return float(bounds[0]), float(bounds[1])


def shown_labels(classes: Sequence[Any]) -> list[Any]:
    """Labels as a `Release` shows them: plain values, others by their texts."""
    return [x if isinstance(x, bool | int | float | str) else str(x) for x in classes]


def _check_classes(classes: Any) -> list[Any]:
    """The declared classes as Python's own values, at least two."""
    if isinstance(classes, str | bytes) or not isinstance(classes, Sequence | np.ndarray):
        raise DeclarationTypeError(
            f"classes ({type(classes).__name__}) must be a sequence of labels; pass classes=[...]"
        )
    listed = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    if len(listed) < 2:
        raise DeclarationError("classes must be at least two labels; pass classes=[...]")
    return [x.item() if isinstance(x, np.generic) else x for x in listed]
