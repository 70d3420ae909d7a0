"""Private naive Bayes for binary features: noisy counts, then ordinary arithmetic.

Released once: the size n_L of each class and, for each feature, the number n_{F=1,L} of records of
the class that have it, with discrete Laplace noise (discrete Gaussian if delta > 0). With at most s
ones a record, one record changes these integers by s + 1 in l1 (added or removed) or 2 (s + 1)
(replaced), by the square roots of the same numbers in l2; `binary.py` derives it. So all classes
and all features share one release, and a record pays for its own s features alone.

All the rest is post-processing. Sizes are raised to at least 1, counts clamped to [0, n_L], and
p_{F,L} = (n_{F=1,L} + alpha) / (n_L + 2 alpha). A record x then has the log odds of Bayes' rule,
ln n_L + sum over its ones of ln(p / (1-p)) + sum over all features of ln(1-p), up to a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.privacy.budget_noise import CountNoise
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.records.binary import BinaryRecords, count_sensitivity
from privfit.runs.payment import Paid
from privfit.runs.settings import Parameters

__all__ = ["NaiveBayes", "NoisyCounts"]


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Released, then clamped: `sizes` (classes,) at least 1, `ones` (classes, d) in [0, size]."""

    sizes: Floats
    ones: Floats

    def fitted(self, alpha: float) -> dict[str, Floats]:
        """What a classifier keeps, under scikit-learn's names, and what it predicts with."""
        weights, offsets = self.log_odds(alpha)
        return {
            "class_count_": self.sizes,
            "feature_count_": self.ones,
            "class_log_prior_": np.log(self.sizes / self.sizes.sum()),
            "feature_log_prob_": self.log_probabilities(alpha),
            "_weights": weights,
            "_offsets": offsets,
        }

    def log_odds(self, alpha: float) -> tuple[Floats, Floats]:
        """Weights (classes, d) and offsets (classes,): x @ weights.T + offsets ranks classes."""
        present = self.log_probabilities(alpha)
        absent = np.log1p(-np.exp(present))
        return present - absent, np.log(self.sizes / self.sizes.sum()) + absent.sum(axis=1)

    def log_probabilities(self, alpha: float) -> Floats:
        """(classes, d): ln p_{F,L}, smoothed."""
        return np.log((self.ones + alpha) / (self.sizes[:, None] + 2 * alpha))


@dataclass(frozen=True, repr=False)
class NaiveBayes(Parameters):
    """Noisy counts; `alpha` pseudo-records with, and as many without, each feature."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        # Below this, 1 - p of a feature that all records have is not a number any more.
        if not is_finite(self.alpha) or self.alpha < 1e-6:
            raise DeclarationError(
                f"alpha ({self.alpha!r}) must be a number of at least 1e-6; pass alpha=1.0"
            )

    def noise(self, max_ones: int, budget: Budget, neighbours: Neighbours) -> CountNoise:
        """Of the one release."""
        changed = count_sensitivity(max_ones, neighbours)
        return CountNoise.of(budget, changed, changed)

    def __call__(self, records: BinaryRecords, max_ones: int, paid: Paid) -> NoisyCounts:
        """Release noisy counts of records that keep at most `max_ones` features each.

        Cost: one pure release, or one Gaussian one: the whole budget.
        """
        noise = self.noise(max_ones, paid.budget, paid.terms.neighbours)
        paid.plan(noise.event)
        counts = records.at_most(max_ones, paid.source.bits(64)).counts()
        noisy = noise.add(np.concatenate([counts.sizes, counts.ones.ravel()]), paid.release)
        sizes = np.maximum(noisy[: records.n_classes], 1.0)
        ones = noisy[records.n_classes :].reshape(counts.ones.shape)
        return NoisyCounts(sizes, np.clip(ones, 0.0, sizes[:, None]))
