"""Private evaluation: ROC curve, area under it, confusion matrix and accuracy of public scores.

After Stoddard, Chen and Machanavajjhala, *Differentially private algorithms for empirical machine
learning*, 2014. A record is a pair (score, label) of somebody in the test set. The scores come from
a model that is public, or was released from *other* records: the model may not have seen this test
set except through releases of its own.

`roc_curve` makes two releases. Scores lie on a public grid of whole numbers 0 ... G - 1.

**1. Thresholds: `Medians`.** The grid is halved k times. In a cell [a, b) the candidate t,
a < t < b, scores -abs(#{x < t} - #{x >= t}) over the records x of the cell, and one is drawn by the
exponential mechanism (Smith 2011; recursion: Kaplan, Schnapp, Stemmer 2022). There are at most
2^k - 1 thresholds. The *range* is what one record changes at t less what it changes at t':

- A record added or removed moves the difference at every t by 1 up or down, so each score by at
  most 1 and the range is at most 2. Only the cell that has the record changes: a level costs the
  parameter of one selection, at rate parameter / 2.
- A record replaced within a cell moves the difference by 0 or 2, so the range is at most 4. One
  that goes from one cell to another is removed here and added there: two selections change, each
  with range 2. At rate parameter / 4 both together cost at most the parameter.

So the range is 2 (add_remove) or 4 (replace) on every level, each level is a bounded-range release
of its parameter, and k levels of epsilon_1 / k cost epsilon_1. A fixed public grid costs nothing.

**2. Counts.** Negatives and positives are two histograms over the same cells, and one record counts
in one cell of one of them: joint sensitivity 1 if added or removed, 2 if replaced. So either class
has the whole rest of the budget. `cumulative.py` has the measurements and their sensitivities.

What follows (`binormal.py`) is post-processing. A score of at least the threshold predicts the
positive class, so rates fall as the threshold rises. Under 'replace' the number of records is
public and the counts are made to add up to it.

**No sum wraps.** A count, and any sum of counts that is measured, is at most 2^32, or 2^48 in units
of 2^-16, the finest; a score of `Medians` is at most 2^32 in size.

**Confusion matrix.** Each record counts in one of four cells: l1 sensitivity 1, or 2 if replaced.
**Accuracy.** Under 'replace' the number of correct predictions changes by at most 1 and is divided
by the public n. Under 'add_remove' the correct and the wrong ones are two cells of sensitivity 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.random import BitSource
from privfit.base.cautions import PrivacyLeakWarning, caution
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.evaluation.binormal import Points, monotone, simplex, smoothed
from privfit.evaluation.cumulative import Flat, Haar, Measurement, best_hierarchy, padded_bits
from privfit.evaluation.priroc import MEDIANS_SHARE, Counted, PriROC
from privfit.privacy.accounting import Event, compose, gaussian_calibrate
from privfit.privacy.ledger import Budget, Grant, Ledger, Release, reserve_from
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from privfit.privacy.medians import MOST_LEVELS, RecursiveMedians
from privfit.privacy.privtree import rounded_down
from privfit.privacy.released import ReleasedFloat
from privfit.privacy.smooth_medians import SmoothMedians
from privfit.records import Sums, sums_of
from privfit.records.graded import GRID, GradedRows
from privfit.runs.paths import public_size

__all__ = [
    "ConfusionMatrix",
    "Medians",
    "RocCurve",
    "accuracy_score",
    "confusion_matrix",
    "roc_auc_score",
    "roc_curve",
]


RANGES = {"add_remove": 2, "replace": 4}  # of the scores of `Medians`
NOISES = ("auto", "flat", "hierarchy", "wavelet", "gaussian")
OPTIONS = ("auto", None, 0.3, "auto", True)  # of `roc_curve`: thresholds ... smooth, if left out
MOST_FACTOR = 1 << 16  # units to a count: those of 2^32 records stay below 2^62
MOST_SMOOTHED = 64  # cells: the posterior takes 60 ms for so many


# ---------------------------------------------------------------------------------------- mechanism


@dataclass(frozen=True)
class Medians(RecursiveMedians):
    """Thresholds that halve the records again and again; see the module's proof.

    Its parameters are those of `RecursiveMedians`.
    """

    kind = "selection"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_finite(self.epsilon_each) or self.epsilon_each <= 0:
            raise ValueError(
                f"epsilon_each ({self.epsilon_each!r}) must be a positive number; pass a budget "
                "such as 0.1"
            )

    def cut(self, counts: Integers, source: BitSource) -> int:
        """A place that halves the records of a cell, by the exponential mechanism."""
        below = np.cumsum(counts)
        scores = -np.abs(2 * below[:-1] - below[-1])
        return 1 + int(Exponential(self.epsilon_each, RANGES[self.adjacency])(scores, source))


# ------------------------------------------------------------------------------------------ results


@dataclass(frozen=True, eq=False, repr=False)
class RocCurve:
    """A released ROC curve: rates (q,) from (0, 0) to (1, 1), with the threshold of each.

    The first threshold is infinite. Between those that were drawn, others are interpolated.

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
        """Draw the curve on matplotlib's axes and return them.

        `true` is (y_true, y_score) and draws the exact curve beside it: only where everybody who
        sees the picture may see the records.
        """
        exact = None
        if true is not None:
            warnings.warn(
                "plot(true=...) draws the exact curve of private records: show it to nobody who "
                "may not see them",
                PrivacyLeakWarning,
                stacklevel=2,
            )
            exact = exact_roc(*true)
        from privfit.report import plotting  # pictures load when they are asked for

        return plotting.draw_roc(self, ax, exact=exact)


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Released counts [[true negatives, false positives], [false negatives, true positives]].

    >>> from privfit import confusion_matrix
    >>> found = confusion_matrix([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> found.counts.shape
    (2, 2)
    """

    counts: Floats
    release: Release

    @property
    def accuracy(self) -> float:
        """The share of predictions that were right, after noise."""
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
    adjacency: str = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> RocCurve:
    """The ROC curve of public scores on private records.

    Parameters
    ----------
    y_true, y_score : (n,)
        Labels, and scores that are higher for the positive class. They may lie in parts: Dask
        arrays or Series, or a `Stream` of scores.
    epsilon, delta : float
        The budget of the curve.
    thresholds : 'auto', 'medians', 'grid' or an array
        Where rates are counted: at private medians, on an even grid within the bounds, or at public
        thresholds. 'auto' takes medians unless records are too few for them.
    bounds : pair of floats
        The public range of scores; others are clipped to it.
    levels : int, optional
        2^levels cells, of medians or of the grid; by default a public rule, from 3 to 8.
    share : float
        The part of epsilon that medians take.
    noise : 'auto', 'flat', 'hierarchy', 'wavelet' or 'gaussian'
        How cells are measured. 'auto' takes what has the least expected error. 'gaussian' is the
        wavelet with Gaussian noise, and needs delta > 0.
    smooth : bool
        Draw a flat measurement towards binormal curves, as far as it looks like one.
    paper : bool or PriROC
        True draws the curve of 2014, with what breaks privacy repaired: ceil(log2 n) levels of
        medians from a fifth of epsilon, Privelet, isotonic regression. `PriROC` has the paper's
        other two curves. Thresholds, levels, share, noise and smooth are then the paper's.
    pos_label : label
        The positive class. With the default, 1, labels must be 0 and 1, or -1 and +1.
    adjacency : 'replace' or 'add_remove'
        The neighbour relation of the guarantee.
    n_public : int, optional
        A public, possibly rough number of records, for the rules under 'add_remove'.
    ledger : Ledger, optional
        Where the budget is charged, before anything is drawn.
    random_state : optional
        None draws from the operating system. A seed voids privacy: it is for tests.

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
    budget = Budget(epsilon, delta)
    size = public_size(table, adjacency, n_public)
    if paper is False:
        strength = _strength(budget, adjacency, size)
        where = _Where.plan(thresholds, table.bounds, levels, share, budget, adjacency, strength)
        counts = _Counts.plan(noise, where.bits, budget, where.events, adjacency)
    else:
        _check_published(paper, thresholds, levels, share, noise, smooth)
        published = PriROC() if paper is True else paper
        where, counts = _published(published, table.bounds, budget, adjacency, size)
        smooth = False
    source = BitSource.of(random_state)
    caution(epsilon, delta, source, table, adjacency, n_public)
    grant = reserve_from(ledger, epsilon, delta, "roc_curve", adjacency)
    grant.plan(*where.events, counts.noise.event)

    cuts, cells = where.cells(table, grant, source)
    noisy = grant.release(counts.noise, counts.integers(cells), source)
    known = table.n_records if adjacency == "replace" and paper is False else None
    points = counts.points(noisy, len(cuts) + 1, known, smooth)

    released = {"cuts": cuts, "noisy": noisy, "fpr": points.fpr, "tpr": points.tpr}
    drawn = counts.is_smoothed(len(cuts) + 1, smooth)
    settings = {**where.settings, **counts.settings, "smooth": drawn}
    release = grant.close(adjacency, f"scores in {table.bounds}", settings, released)
    places = np.concatenate([[table.bounds[1]], cuts[::-1], [table.bounds[0]]])
    found = np.interp(points.place, np.arange(len(places)), places)
    found[0] = np.inf
    return RocCurve(points.fpr, points.tpr, found, release)


def roc_auc_score(
    y_true: ArrayLike, y_score: ArrayLike, epsilon: float, delta: float = 0.0, **options: Any
) -> ReleasedFloat:
    """The area under the private ROC curve, with its `release`; options as for `roc_curve`.

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
    threshold: float = 0.5,
    pos_label: Any = 1,
    adjacency: str = "replace",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> ConfusionMatrix:
    """Noisy counts of both classes by what a public threshold predicts; a pure release.

    Counts are not negative and, where the number of records is public, add up to it.

    >>> from privfit import confusion_matrix
    >>> found = confusion_matrix([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> bool(abs(found.counts - [[1000, 1000], [0, 2000]]).max() < 100)
    True
    """
    table = _Table.of(y_true, y_score, pos_label)
    n = public_size(table, adjacency, None)
    mechanism = DiscreteLaplace(epsilon, 2 if adjacency == "replace" else 1)
    _check_number("threshold", threshold)
    source = BitSource.of(random_state)
    caution(epsilon, 0.0, source)
    grant = reserve_from(ledger, epsilon, 0.0, "confusion_matrix", adjacency)
    noisy = grant.release(mechanism, table.between([threshold]).ravel(), source)
    total = max(float(noisy.sum()), 1.0) if n is None else n
    counts = simplex(noisy.astype(np.float64), total).reshape(2, 2)
    release = grant.close(
        adjacency, settings={"threshold": threshold}, parameters={"noisy": noisy, "counts": counts}
    )
    return ConfusionMatrix(counts, release)


def accuracy_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    epsilon: float,
    *,
    threshold: float = 0.5,
    pos_label: Any = 1,
    adjacency: str = "replace",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> ReleasedFloat:
    """The share of records that a public threshold predicts right, with noise; a pure release.

    A float that carries its `release`.

    >>> from privfit import accuracy_score
    >>> accuracy = accuracy_score([0, 0, 1, 1] * 1000, [0.1, 0.9, 0.8, 0.7] * 1000, epsilon=1.0)
    >>> bool(abs(accuracy - 0.75) < 0.05)
    True
    """
    table = _Table.of(y_true, y_score, pos_label)
    n = public_size(table, adjacency, None)
    mechanism = DiscreteLaplace(epsilon, 1)
    _check_number("threshold", threshold)
    source = BitSource.of(random_state)
    caution(epsilon, 0.0, source)
    grant = reserve_from(ledger, epsilon, 0.0, "accuracy_score", adjacency)
    correct = int(np.trace(table.between([threshold])))
    if n is not None:
        noisy = grant.release(mechanism, [correct], source)
        share = float(noisy[0]) / n
    else:
        noisy = grant.release(mechanism, [correct, table.n_records - correct], source)
        right, wrong = np.maximum(noisy, 0).tolist()
        share = right / max(right + wrong, 1)
    answer = min(max(share, 0.0), 1.0)
    release = grant.close(
        adjacency,
        settings={"threshold": threshold},
        parameters={"noisy": noisy, "accuracy": answer},
    )
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


# -------------------------------------------------------------------------------------- public plan


@dataclass(frozen=True, eq=False)
class _Where:
    """How thresholds are found: by medians, on an even grid of 2^bits cells, or as given."""

    kind: str
    bits: int
    medians: Medians | SmoothMedians | None = None
    given: Floats | None = None

    @classmethod
    def plan(
        cls, thresholds: Any, bounds: tuple[float, float], levels: int | None, share: float,
        budget: Budget, adjacency: str, strength: float | None,
    ) -> _Where:  # fmt: skip
        if not isinstance(thresholds, str):
            given = _check_thresholds(thresholds, bounds)
            return cls("given", padded_bits(len(given) + 1), given=given)
        if thresholds not in ("auto", "medians", "grid"):
            raise ValueError(
                f"thresholds ({thresholds!r}) must be 'auto', 'medians', 'grid' or an array; pass "
                "one of them"
            )
        bits = _levels_by_rule(strength) if levels is None else levels
        if not is_whole(bits) or not 1 <= bits <= MOST_LEVELS:
            raise ValueError(
                f"levels ({levels!r}) must be a whole number from 1 to {MOST_LEVELS}; leave it out"
            )
        kind = _kind_by_rule(strength) if thresholds == "auto" else thresholds
        if kind == "grid":
            return cls(kind, bits)
        if not is_finite(share) or not 0 < share < 1:
            raise ValueError(f"share ({share!r}) must lie between 0 and 1; leave it out")
        return cls(kind, bits, Medians(share * budget.epsilon / bits, adjacency, bits))

    @property
    def events(self) -> tuple[Event, ...]:
        return () if self.medians is None else (self.medians.event,)

    @property
    def settings(self) -> dict[str, Any]:
        """What a release tells of this plan."""
        return {"thresholds": self.kind, "bits": self.bits}

    def cells(self, table: _Table, grant: Grant, source: BitSource) -> tuple[Floats, Integers]:
        """Rising public thresholds (m - 1,), and private counts (2, m) between them."""
        if self.given is not None:
            return self.given, table.between(self.given)
        places = table.histogram()
        if self.medians is None:
            ends = np.arange(2**self.bits + 1) * (GRID >> self.bits)
        else:
            ends = grant.release(self.medians, places.sum(axis=0), source)
        low, high = table.bounds
        cells = np.add.reduceat(places, ends[:-1], axis=1)
        return low + (high - low) * (ends[1:-1] / GRID), cells


@dataclass(frozen=True, eq=False)
class _Counts:
    """How cells are counted: which integers, in units of 1 / factor, with which noise."""

    measurement: Measurement
    noise: DiscreteLaplace | DiscreteGaussian
    factor: int = 1

    @classmethod
    def plan(
        cls, noise: Any, bits: int, budget: Budget, spent: tuple[Event, ...], adjacency: str
    ) -> _Counts:
        """As named, or what has the least expected error of cumulative counts."""
        if noise not in NOISES:
            raise ValueError(f"noise ({noise!r}) must be one of {', '.join(NOISES)}; pass one")
        left = _left(budget, spent)
        plans = {
            name: cls(kind, DiscreteLaplace(left, kind.sensitivity(adjacency)))
            for name, kind in (
                ("flat", Flat(bits)), ("hierarchy", best_hierarchy(bits)), ("wavelet", Haar(bits))
            )
        }  # fmt: skip
        gaussian = cls._gaussian(bits, budget, spent, adjacency)
        if gaussian is not None:
            plans["gaussian"] = gaussian
        elif noise == "gaussian":
            raise ValueError(
                "noise ('gaussian') needs delta > 0, and epsilon below a hundred beside medians; "
                "pass such a budget, or another noise"
            )
        return min(plans.values(), key=cls._error) if noise == "auto" else plans[noise]

    @classmethod
    def _gaussian(
        cls, bits: int, budget: Budget, spent: tuple[Event, ...], adjacency: str
    ) -> _Counts | None:
        """Gaussian noise where it is allowed and the accountant can see that it fits.

        By simple composition it does; the accountant's rounding, which grows with epsilon, may
        hide that where epsilon is in the hundreds.
        """
        if budget.delta == 0:
            return None
        kind, mu = Haar(bits), gaussian_calibrate(_left(budget, spent), budget.delta)
        if compose([*spent, Event("gaussian", mu)], budget.delta) > budget.epsilon:
            return None
        l2 = math.sqrt(kind.sensitivity(adjacency)) * (1 + 1e-12)
        factor = min(math.ceil(4 * mu / l2), MOST_FACTOR)  # so that noise covers the grid
        return cls(kind, DiscreteGaussian(mu, factor * l2), factor)

    def _error(self) -> float:
        """About the mean variance of cumulative counts."""
        if isinstance(self.noise, DiscreteLaplace):
            variance = 2 * self.scale**2
        else:
            variance = float(self.noise.variance) / self.factor**2
        return variance * self.measurement.spread

    @property
    def scale(self) -> float:
        """Of Laplace noise."""
        assert isinstance(self.noise, DiscreteLaplace)
        return self.noise.sensitivity / self.noise.epsilon

    @property
    def settings(self) -> dict[str, Any]:
        """What a release tells of this plan."""
        return {"measurement": repr(self.measurement), "noise": repr(self.noise),
                "factor": self.factor}  # fmt: skip

    def integers(self, cells: Integers) -> Integers:
        """What gets noise; cells are filled up with empty ones."""
        empty = 2**self.measurement.bits - cells.shape[1]
        return self.factor * self.measurement.measure(np.pad(cells, ((0, 0), (0, empty))))

    def points(self, noisy: Integers, m: int, n: int | None, smooth: bool) -> Points:
        """The curve of m cells, from released integers; n is the number of records if public."""
        cells = self.measurement.estimate(noisy / self.factor)[:, m - 1 :: -1]
        if n is not None:
            cells = cells - (cells.sum() - n) / cells.size
        if self.is_smoothed(m, smooth):
            return smoothed(cells, self.scale)
        return monotone(cells, isinstance(self.measurement, Flat))

    def is_smoothed(self, m: int, smooth: bool) -> bool:
        """Whether a curve of m cells is drawn towards binormal ones."""
        return smooth and isinstance(self.measurement, Flat) and m <= MOST_SMOOTHED


def _published(
    paper: PriROC, bounds: tuple[float, float], budget: Budget, adjacency: str, size: int | None
) -> tuple[_Where, _Counts]:
    """Thresholds and counts of the curves of 2014; `priroc.py` says what was repaired."""
    if paper.thresholds == "medians":
        k = paper.levels(size)
        medians = SmoothMedians(MEDIANS_SHARE * budget.epsilon / k, adjacency, k)
        where = _Where("medians", k, medians)
    else:
        cuts = paper.cuts(bounds, size)
        where = _Where("given", padded_bits(len(cuts) + 1), given=cuts)
    left = _left(budget, where.events)
    if paper.thresholds == "laplace":
        measurement: Measurement = Counted(where.bits, paper.t)
    else:
        measurement, left = Haar(where.bits), left / 2  # half for each class
    return where, _Counts(measurement, DiscreteLaplace(left, measurement.sensitivity(adjacency)))


def _left(budget: Budget, spent: tuple[Event, ...]) -> float:
    """Epsilon after these events, rounded down."""
    return rounded_down(
        Fraction(budget.epsilon) - sum(event.count * Fraction(event.parameter) for event in spent)
    )


# Rules from 558 test messages of sms_spam, classifiers of area 0.73 to 0.99, epsilon 0.1 to 1.


def _strength(budget: Budget, adjacency: str, size: int | None) -> float | None:
    """Records in units of the noise on one of them; None where their number is private."""
    return None if size is None else size * budget.epsilon / (2 if adjacency == "replace" else 1)


def _levels_by_rule(strength: float | None) -> int:
    """About 32 units of noise a cell, from 8 to 256 cells: 16 were best at 558 units, 8 below."""
    if not strength:
        return 3
    return min(max(round(math.log2(strength / 32)), 3), 8)


def _kind_by_rule(strength: float | None) -> str:
    """Below 128 units medians are hardly better than chance: error 0.10, an even grid's 0.02."""
    return "grid" if strength is not None and strength < 128 else "medians"


# ------------------------------------------------------------------------------------------- checks


def _check_published(paper: Any, *options: Any) -> None:
    """Refuse settings beside those of the paper."""
    if paper is not True and not isinstance(paper, PriROC):
        raise ValueError(f"paper ({paper!r}) must be True, False or a PriROC; pass one of them")
    names = ("thresholds", "levels", "share", "noise", "smooth")
    for name, value, default in zip(names, options, OPTIONS, strict=True):
        if not isinstance(value, type(default)) or value != default:
            raise ValueError(
                f"{name} must be left out with paper={paper!r}, which has settings of its own; "
                "pass paper=PriROC(...)"
            )


def _check_number(name: str, value: Any) -> None:
    if not is_finite(value):
        raise ValueError(f"{name} ({value!r}) must be a finite number; pass a public one")


def _check_bounds(bounds: Any) -> tuple[float, float]:
    pair = isinstance(bounds, Sequence | np.ndarray) and len(bounds) == 2
    if not pair or not all(map(is_finite, bounds)) or not 1e-100 < bounds[1] - bounds[0] < 1e100:
        raise ValueError(
            f"bounds ({bounds!r}) must be two rising numbers, 1e-100 to 1e100 apart; pass the "
            "public range of scores"
        )
    return float(bounds[0]), float(bounds[1])


def _check_thresholds(thresholds: Any, bounds: tuple[float, float]) -> Floats:
    given = np.asarray(thresholds)
    if given.ndim != 1 or given.dtype.kind not in "fiu" or not 1 <= given.size < 2**MOST_LEVELS:
        raise ValueError(
            f"thresholds (shape {given.shape}, dtype {given.dtype}) must be a vector of 1 to "
            f"{2**MOST_LEVELS - 1} numbers; pass public thresholds"
        )
    given = given.astype(np.float64)
    inside = np.concatenate([[bounds[0]], given, [bounds[1]]])
    if not (np.diff(inside) > 0).all():
        raise ValueError(
            "thresholds must rise within the bounds; pass them sorted, or other bounds"
        )
    return given
