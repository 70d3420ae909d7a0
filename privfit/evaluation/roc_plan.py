"""The two releases of a private ROC curve: where its thresholds lie, and what is counted between.

Scores lie on a public grid of whole numbers 0 ... G - 1.

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

**No sum wraps.** A count, and any sum of counts that is measured, is at most 2^32, or 2^48 in units
of 2^-16, the finest; a score of `Medians` is at most 2^32 in size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.evaluation.binormal import Points, monotone, smoothed
from privfit.evaluation.cumulative import Flat, Haar, Measurement, best_hierarchy, padded_bits
from privfit.evaluation.priroc import MEDIANS_SHARE, Counted, PriROC
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from privfit.privacy.medians import MOST_LEVELS, RecursiveMedians
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import epsilon_left, gaussian_left
from privfit.privacy.smooth_medians import SmoothMedians
from privfit.records.graded import GRID
from privfit.runs.payment import Paid

__all__ = ["Counts", "Medians", "Scored", "Thresholds", "published"]


NOISES = ("auto", "flat", "hierarchy", "wavelet", "gaussian")
MOST_FACTOR = 1 << 16  # units to a count: those of 2^32 records stay below 2^62
MOST_SMOOTHED = 64  # cells: the posterior takes 60 ms for so many


class Scored(Protocol):
    """Private scores and labels, wherever they are."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The public range of scores."""

    def histogram(self) -> Integers:
        """int64 (2, G): negatives and positives in each place of the grid of scores."""

    def between(self, cuts: Any) -> Integers:
        """int64 (2, m): negatives and positives between rising thresholds."""


@dataclass(frozen=True, repr=False)
class Medians(RecursiveMedians):
    """Thresholds that halve the records again and again; see the module's proof.

    Its parameters are those of `RecursiveMedians`.
    """

    kind = "selection"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_finite(self.epsilon_each) or self.epsilon_each <= 0:
            raise DeclarationError(
                f"epsilon_each ({self.epsilon_each!r}) must be a positive number; pass a budget "
                "such as 0.1"
            )

    @property
    def range(self) -> int:
        """Of the scores of a level: one record moves the difference of two by 2 at most."""
        return 2 * self.neighbours.changes

    def cut(self, counts: Integers, source: BitSource) -> int:
        """A place that halves the records of a cell, by the exponential mechanism."""
        below = np.cumsum(counts)
        scores = -np.abs(2 * below[:-1] - below[-1])
        return 1 + int(Exponential(self.epsilon_each, self.range)(scores, source))


@dataclass(frozen=True, eq=False)
class Thresholds:
    """How thresholds are found: by medians, on an even grid of 2^bits cells, or as given."""

    kind: str
    bits: int
    medians: Medians | SmoothMedians | None = None
    given: Floats | None = None

    @classmethod
    def plan(
        cls, thresholds: Any, bounds: tuple[float, float], levels: int | None, share: float,
        budget: Budget, neighbours: Neighbours, size: int | None,
    ) -> Thresholds:  # fmt: skip
        """As given, or by a public rule in the budget and the number of records."""
        if not isinstance(thresholds, str):
            given = _check_thresholds(thresholds, bounds)
            return cls("given", padded_bits(len(given) + 1), given=given)
        if thresholds not in ("auto", "medians", "grid"):
            raise DeclarationError(
                f"thresholds ({thresholds!r}) must be 'auto', 'medians', 'grid' or an array; pass "
                "one of them"
            )
        strength = _strength(budget, neighbours, size)
        bits = _levels_by_rule(strength) if levels is None else levels
        if not is_whole(bits) or not 1 <= bits <= MOST_LEVELS:
            raise DeclarationError(
                f"levels ({levels!r}) must be a whole number from 1 to {MOST_LEVELS}; leave it out"
            )
        kind = _kind_by_rule(strength) if thresholds == "auto" else thresholds
        if kind == "grid":
            return cls(kind, bits)
        if not is_finite(share) or not 0 < share < 1:
            raise DeclarationError(f"share ({share!r}) must lie between 0 and 1; leave it out")
        return cls(kind, bits, Medians(share * budget.epsilon / bits, neighbours, bits))

    @property
    def events(self) -> tuple[Event, ...]:
        return () if self.medians is None else (self.medians.event,)

    @property
    def settings(self) -> dict[str, Any]:
        """What a release records of this plan."""
        return {"thresholds": self.kind, "bits": self.bits}

    def cells(self, table: Scored, paid: Paid) -> tuple[Floats, Integers]:
        """Rising public thresholds (m - 1,), and private counts (2, m) between them."""
        if self.given is not None:
            return self.given, table.between(self.given)
        places = table.histogram()
        if self.medians is None:
            ends = np.arange(2**self.bits + 1) * (GRID >> self.bits)
        else:
            ends = paid.release(self.medians, places.sum(axis=0))
        low, high = table.bounds
        cells = np.add.reduceat(places, ends[:-1], axis=1)
        return low + (high - low) * (ends[1:-1] / GRID), cells


@dataclass(frozen=True, eq=False)
class Counts:
    """How cells are counted: which integers, in units of 1 / factor, with which noise."""

    measurement: Measurement
    noise: DiscreteLaplace | DiscreteGaussian
    factor: int = 1

    @classmethod
    def plan(
        cls, noise: Any, bits: int, budget: Budget, spent: tuple[Event, ...], neighbours: Neighbours
    ) -> Counts:
        """As named, or what has the least expected error of cumulative counts."""
        if noise not in NOISES:
            raise DeclarationError(
                f"noise ({noise!r}) must be one of {', '.join(NOISES)}; pass one"
            )
        left = epsilon_left(budget.epsilon, *spent)
        plans = {
            name: cls(kind, DiscreteLaplace(left, kind.sensitivity(neighbours)))
            for name, kind in (
                ("flat", Flat(bits)), ("hierarchy", best_hierarchy(bits)), ("wavelet", Haar(bits))
            )
        }  # fmt: skip
        gaussian = cls._gaussian(bits, budget, spent, neighbours)
        if gaussian is not None:
            plans["gaussian"] = gaussian
        elif noise == "gaussian":
            raise DeclarationError(
                "noise ('gaussian') needs delta > 0, and epsilon below a hundred beside medians; "
                "pass such a budget, or another noise"
            )
        return min(plans.values(), key=cls._error) if noise == "auto" else plans[noise]

    @classmethod
    def _gaussian(
        cls, bits: int, budget: Budget, spent: tuple[Event, ...], neighbours: Neighbours
    ) -> Counts | None:
        """Gaussian noise where it is allowed and the accountant can see that it fits."""
        if budget.delta == 0:
            return None
        kind, mu = Haar(bits), gaussian_left(budget, *spent, rule="simple")
        if not mu:
            return None
        l2 = math.sqrt(kind.sensitivity(neighbours)) * ABOVE
        factor = min(math.ceil(4 * mu / l2), MOST_FACTOR)  # so that noise covers the grid
        return cls(kind, DiscreteGaussian(mu, factor * l2), factor)

    def _error(self) -> float:
        """About the mean variance of cumulative counts."""
        if isinstance(self.noise, DiscreteLaplace):
            variance = 2 * self.noise.scale**2
        else:
            variance = float(self.noise.variance) / self.factor**2
        return variance * self.measurement.spread

    @property
    def settings(self) -> dict[str, Any]:
        """What a release records of this plan."""
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
        if isinstance(self.noise, DiscreteLaplace) and self.is_smoothed(m, smooth):
            return smoothed(cells, self.noise.scale)
        return monotone(cells, isinstance(self.measurement, Flat))

    def is_smoothed(self, m: int, smooth: bool) -> bool:
        """Whether a curve of m cells is drawn towards binormal ones."""
        return smooth and isinstance(self.measurement, Flat) and m <= MOST_SMOOTHED


def published(
    paper: PriROC,
    bounds: tuple[float, float],
    budget: Budget,
    neighbours: Neighbours,
    size: int | None,
) -> tuple[Thresholds, Counts]:
    """Thresholds and counts of the curves of 2014; `priroc.py` says what was repaired."""
    if paper.thresholds == "medians":
        k = paper.levels(size)
        medians = SmoothMedians(MEDIANS_SHARE * budget.epsilon / k, neighbours, k)
        where = Thresholds("medians", k, medians)
    else:
        cuts = paper.cuts(bounds, size)
        where = Thresholds("given", padded_bits(len(cuts) + 1), given=cuts)
    left = epsilon_left(budget.epsilon, *where.events)
    if paper.thresholds == "laplace":
        measurement: Measurement = Counted(where.bits, paper.t)
    else:
        measurement, left = Haar(where.bits), left / 2  # half for each class
    return where, Counts(measurement, DiscreteLaplace(left, measurement.sensitivity(neighbours)))


# Rules from 558 test messages of sms_spam, classifiers of area 0.73 to 0.99, epsilon 0.1 to 1.


def _strength(budget: Budget, neighbours: Neighbours, size: int | None) -> float | None:
    """Records in units of the noise on one of them; None where their number is private."""
    return None if size is None else size * budget.epsilon / neighbours.changes


def _levels_by_rule(strength: float | None) -> int:
    """About 32 units of noise a cell, from 8 to 256 cells: 16 were best at 558 units, 8 below."""
    if not strength:
        return 3
    return min(max(round(math.log2(strength / 32)), 3), 8)


def _kind_by_rule(strength: float | None) -> str:
    """Below 128 units medians are hardly better than chance: error 0.10, an even grid's 0.02."""
    return "grid" if strength is not None and strength < 128 else "medians"


def _check_thresholds(thresholds: Any, bounds: tuple[float, float]) -> Floats:
    given = np.asarray(thresholds)
    if given.ndim != 1 or given.dtype.kind not in "fiu" or not 1 <= given.size < 2**MOST_LEVELS:
        raise DeclarationError(
            f"thresholds (shape {given.shape}, dtype {given.dtype}) must be a vector of 1 to "
            f"{2**MOST_LEVELS - 1} numbers; pass public thresholds"
        )
    given = given.astype(np.float64)
    inside = np.concatenate([[bounds[0]], given, [bounds[1]]])
    if not (np.diff(inside) > 0).all():
        raise DeclarationError(
            "thresholds must increase within the bounds; pass them sorted, or other bounds"
        )
    return given
