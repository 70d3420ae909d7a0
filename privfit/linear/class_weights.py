"""Class weights: how much the slope of a record's loss counts, by the class of the record.

**Sensitivity.** Weights are divided by the largest, so that none is above 1, and multiply a
record's residual before it is capped (`_kernels/losses.pxd`). A weighted residual is at most what a
residual may be, so every bound on clipped gradients holds as it stands, for both relations: the
length K of a clipped gradient, and the range 2 x_max cap of moves scored by slopes. Solvers whose
scores are losses, or that minimise a loss, have no such proof here and refuse weights before
anything is charged.

**Several classes.** Each model is for one class versus the rest. A dict weighs that class by its
own weight and the rest by 1, whatever their classes, as liblinear does.

**Counts.** 'balanced' weighs classes by the inverse of their counts, and a descent needs the sum of
all weights for its steps. Both come from noisy counts of the classes, for 1 % of the squared
Gaussian parameter, or for 5 % of epsilon if delta is 0. One record adds 1 to one count, so that
their l2 sensitivity is 1 (add or remove) or sqrt 2 (replace) for discrete Gaussian noise, and their
l1 sensitivity 1 or 2 for discrete Laplace noise. Weights are functions of the noisy counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.base.validation import is_finite
from privfit.runs.settings import Settings

__all__ = ["COUNTS", "PURE_COUNTS", "ClassWeights", "Weighing"]

COUNTS, PURE_COUNTS = 0.01, 0.05  # of mu^2, and of epsilon if delta is 0
LEAST = 2.0**-8  # of a weight relative to the largest: residuals have 12 bits


@dataclass(frozen=True)
class Weighing:
    """The weights of class 0 and class 1 of one model, and their mean over records, if bought."""

    of_rest: float = 1.0
    of_head: float = 1.0
    mean: float = 1.0

    @property
    def pair(self) -> tuple[float, float]:
        """Both weights."""
        return self.of_rest, self.of_head


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Declared weights of these classes: None, 'balanced', or a dict by label."""

    declared: Any
    classes: Array

    def __post_init__(self) -> None:
        declared, labels = self.declared, self.classes.tolist()
        if declared is None or (isinstance(declared, str) and declared == "balanced"):
            return
        if not isinstance(declared, Mapping) or not all(
            is_finite(weight) and weight > 0 for weight in declared.values()
        ):
            raise DeclarationError(
                f"class_weight ({declared!r}) must be 'balanced' or a dict of positive numbers by "
                "label; pass one of them"
            )
        if not set(declared) <= set(labels):
            raise DeclarationError(
                f"class_weight ({declared!r}) must have labels of the declared classes alone; pass "
                f"weights of {labels}"
            )

    @property
    def is_balanced(self) -> bool:
        """Whether weights are the inverse of bought counts."""
        return isinstance(self.declared, str)

    def share(self, settings: Settings, delta: float) -> float:
        """The part of the budget that buys counts."""
        if self.declared is None or not (self.is_balanced or settings.is_gaussian):
            return 0.0
        return COUNTS if delta else PURE_COUNTS

    def check(self, name: str, settings: Settings, delta: float) -> None:
        """Refuse a solver that does not take these weights."""
        if self.declared is None:
            return
        if not getattr(settings, "weighs_classes", False):
            raise DeclarationError(
                f"class_weight ({self.declared!r}) must be None for solver {name!r}, which does "
                "not weigh slopes; pass solver='gradient', or leave class_weight out"
            )
        if self.is_balanced and delta and not settings.is_gaussian:
            raise DeclarationError(
                f"class_weight ('balanced') must be a dict for solver {name!r}, since its draws "
                "must be planned before counts are bought; pass solver='gradient'"
            )

    def weighings(self, heads: range, counts: Floats | None) -> list[Weighing]:
        """The weights of each model, from noisy counts (n_classes,) of the classes, if bought."""
        if self.declared is None:
            return [Weighing() for _ in heads]
        return [self._weighing(head, counts) for head in heads]

    def _weighing(self, head: int, counts: Floats | None) -> Weighing:
        sizes = None
        if counts is not None:
            positive = np.maximum(counts, 1.0)
            sizes = np.array([positive.sum() - positive[head], positive[head]])
        if self.is_balanced:
            assert sizes is not None, "balanced weights come from counts"
            weights = 1 / sizes
        else:
            weights = self._declared_pair(head)
        weights = np.maximum(weights / weights.max(), LEAST)
        mean = 1.0 if sizes is None else float(weights @ sizes / sizes.sum())
        return Weighing(float(weights[0]), float(weights[1]), mean)

    def _declared_pair(self, head: int) -> Floats:
        """(2,): the declared weights of the rest and of a class; several classes have rest 1."""
        labels = self.classes.tolist()
        rest = self.declared.get(labels[1 - head], 1.0) if len(labels) == 2 else 1.0
        return np.array([float(rest), float(self.declared.get(labels[head], 1.0))])
