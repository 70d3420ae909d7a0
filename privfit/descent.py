"""Noisy gradient descent, Frank-Wolfe and permuted SGD for linear models.

==============  ================================================================================
`Gradient`      full-batch descent on sums of clipped gradients with discrete noise; by default
                whitened: a tenth of the budget buys the records' second moments, whose inverse
                root gives the coordinates in which gradients are clipped and noised
`FrankWolfe`    descent over an l1 ball; every step selects one of its corners
==============  ================================================================================

**Neighbours.** Data sets differ by one record, replaced ('replace', the size n is public) or added
or removed ('add_remove', n is private). What is released is an integer vector plus discrete noise;
its sensitivity for either relation is derived in `objectives/clipping.py` (gradients, second
moments) and in `objectives/linear.py` (scores of corners). Everything else is a function of what
was released: the coordinates, the clip, the steps, the path. Under 'add_remove' the size is taken
from the noisy second moments, or from `n_public`.

**Cost.** T draws of discrete Gaussian noise with parameter mu_t and one with mu_0 are one Gaussian
draw with mu^2 = mu_0^2 + T mu_t^2, exactly. A pure budget allows no Gaussian noise: gradients are
then clipped in the l1 norm and take discrete Laplace noise of epsilon / T each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privfit.accounting import Event, gaussian_calibrate
from privfit.checks import is_finite
from privfit.ledger import Budget, Grant
from privfit.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import ClippedGradient, Coding, SecondMoments
from privfit.objectives.common import Floats
from privfit.paths import (
    Conduct,
    Generation,
    Path,
    check_counts,
    check_positive_shares,
    check_shares,
)
from privfit.spaces import Reals

__all__ = ["METHODS", "FrankWolfe", "Gradient", "frank_wolfe", "gradient"]

Callback = Callable[[Generation], object] | None

WIDEST_WHITENED = 1024  # columns up to which second moments are bought unasked
WIDEST = 4096  # columns up to which they fit the integers of `ClippedGradient`
LEAST = 2.0**-20  # of a Gaussian parameter or an epsilon: below, noise may not fit in 64 bits
BOUND = 50.0  # on coded weights: no fit that we saw came near
SLOPE = {"logistic": 0.5, "hinge": 1.0}  # of the loss at a margin of 0
CURVATURE = {"logistic": 0.25, "hinge": 1.0}  # of the loss, at most


# ---------------------------------------------------------------------------------------- gradient


@dataclass(frozen=True)
class Gradient:
    """Settings of `gradient`.

    Parameters
    ----------
    steps : int, optional
        T; by default 32, or 16 for a pure budget.
    whiten : bool, optional
        Whether to buy second moments and descend in their coordinates; by default wherever
        delta > 0 and there are at most 1024 columns.
    moments : float
        The share of the squared Gaussian parameter that buys the second moments.
    clip : float, optional
        Where gradients are clipped, as a share of their expected length at the start: of a record
        of typical length (whitened, by default 0.4) or of the longest one (by default 1).
    momentum : float, optional
        By default 0 if whitened, else 0.8.
    ridge : float
        Weight of an l2 regulariser, in units of the noise of a gradient.
    average : float
        The share of the path whose mean is the answer; 0 for the last step.
    """

    steps: int | None = None
    whiten: bool | None = None
    moments: float = 0.1
    clip: float | None = None
    momentum: float | None = None
    ridge: float = 0.1
    average: float = 0.75

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        check_shares(self, "momentum", "average")
        check_positive_shares(self, "moments")
        if self.whiten not in (None, True, False):
            raise ValueError(f"whiten ({self.whiten!r}) must be True or False; leave it out")
        if self.moments == 1 or self.momentum == 1:
            raise ValueError("moments and momentum must be below 1; leave them out")
        if self.clip is not None and not (is_finite(self.clip) and self.clip > 0):
            raise ValueError(f"clip ({self.clip!r}) must be a positive number; leave it out")
        if not is_finite(self.ridge) or self.ridge < 0:
            raise ValueError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")

    def filled(self, budget: Budget, width: int) -> Gradient:
        """These settings with the defaults for a budget and so many columns."""
        whiten = self.whiten
        if whiten is None:
            whiten = budget.delta > 0 and width <= WIDEST_WHITENED
        return replace(
            self,
            steps=self.steps or (32 if budget.delta else 16),
            whiten=whiten,
            clip=self.clip or (0.4 if whiten else 1.0),
            momentum=(0.0 if whiten else 0.8) if self.momentum is None else self.momentum,
        )

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `gradient` would refuse; draws nothing."""
        _check_slopes(objective, "gradient")
        whiten = self.filled(budget, objective.domain.width).whiten
        if whiten and not budget.delta:
            raise ValueError(
                "whiten (True) needs Gaussian noise, and so delta > 0; pass delta=1e-6, or leave "
                "whiten out"
            )
        if whiten and objective.domain.width >= WIDEST:
            raise ValueError(
                f"whiten (True) takes fewer than {WIDEST} columns; pass Gradient(whiten=False)"
            )
        if not whiten and size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove' unless the descent is "
                "whitened; pass a public estimate of the number of records"
            )
        if _Noise(self.filled(budget, objective.domain.width), budget, 1).least < LEAST:
            raise ValueError(
                f"epsilon ({budget.epsilon!r}) is too small for so many steps; pass fewer steps or "
                "a larger epsilon"
            )
        corners = np.full((2, objective.domain.width + 1), BOUND) * np.array([[1.0], [-1.0]])
        objective.prior(Coding(objective.domain).weights(corners))  # are they in reach?


class _Noise:
    """How a budget is shared out: one draw of moments, if whitened, and equal draws of gradients.

    With several equal fits on one grant each has mu / sqrt(share), or epsilon / share.
    """

    def __init__(self, settings: Gradient, budget: Budget, share: int) -> None:
        s = settings
        assert s.steps is not None
        self.mu = self.mu_moments = self.epsilon = 0.0
        if budget.delta:
            # A little less than the whole, so that squares add up to no more in float64.
            whole = gaussian_calibrate(budget.epsilon, budget.delta) * (1 - 2.0**-40)
            part = s.moments if s.whiten else 0.0
            self.mu_moments = whole * math.sqrt(part / share)
            self.mu = whole * math.sqrt((1 - part) / (share * s.steps))
            self.event = Event("gaussian", self.mu, s.steps)
        else:
            self.epsilon = budget.epsilon / (share * s.steps) * (1 - 2.0**-40)
            self.event = Event("pure", self.epsilon, s.steps)

    @property
    def least(self) -> float:
        """The smallest parameter of any draw."""
        return min(x for x in (self.mu, self.mu_moments, self.epsilon) if x > 0)

    @property
    def order(self) -> int:
        """Of the norm that sensitivities are measured in."""
        return 2 if self.mu else 1

    @property
    def events(self) -> tuple[Event, ...]:
        """All draws of one fit."""
        return (*([Event("gaussian", self.mu_moments)] if self.mu_moments else []), self.event)

    def of_moments(self, sensitivity: float) -> DiscreteGaussian:
        """The noise of the second moments."""
        return _gaussian(self.mu_moments, sensitivity)

    def of_gradient(self, sensitivity: float) -> DiscreteGaussian | DiscreteLaplace:
        """The noise of one gradient."""
        if self.mu:
            return _gaussian(self.mu, sensitivity)
        return DiscreteLaplace(self.epsilon, math.ceil(sensitivity))

    def deviation(self, sensitivity: float) -> float:
        """The standard deviation of a gradient's noise."""
        return sensitivity / self.mu if self.mu else math.sqrt(2) * sensitivity / self.epsilon


def _gaussian(mu: float, sensitivity: float) -> DiscreteGaussian:
    """Discrete Gaussian noise; where it would not cover the grid, with more of it than needed."""
    return DiscreteGaussian(mu, max(sensitivity, 4 * mu))


@dataclass(frozen=True, eq=False)
class _Frame:
    """Where gradients are clipped: coordinates, the typical length of a record there, a size.

    `pace` and `fastest` say how far a step goes, in units of the steps that the curvature allows:
    pace / sqrt(noise to signal), at most `fastest`. Chosen on Adult, Credit Default and Mushroom
    from epsilon 0.03 to 3 (docs/descent.md).
    """

    transform: Floats
    length: float
    size: float
    pace: float
    fastest: float


def _whitened(moments: Floats, deviation: float, size: float) -> _Frame:
    """Coordinates in which typical records are round: (M / n)^(-1/2), regularised.

    Eigenvalues below 0 are noise; all are raised by the noise's level, its deviation times the
    root of the dimension, so that directions which the noise drowns are not blown up.
    """
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 0.0)
    raised = values + deviation * math.sqrt(len(values))
    transform = (vectors / np.sqrt(raised / size)) @ vectors.T
    return _Frame(transform, math.sqrt((values / raised).sum()), size, pace=1.0, fastest=6.0)


def _as_coded(coding: Coding, order: int, size: float) -> _Frame:
    """The coded records' own coordinates, scaled to a length of at most one."""
    scale = coding.longest(2)
    transform = np.eye(coding.width) / scale
    return _Frame(transform, coding.longest(order) / scale, size, pace=2.0, fastest=10.0)


def gradient(
    objective: LinearObjective,
    space: Reals,
    settings: Gradient,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Descend along noisy sums of clipped gradients; the space bounds coded weights (`Coding`).

    Released: the second moments with noise (if whitened), and T noisy gradients; told are the
    weights after each step, a function of these. Cost: the grant's budget.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    s = settings.filled(grant.budget, objective.domain.width)
    noise = _Noise(s, grant.budget, conduct.share)
    assert s.steps is not None and s.clip is not None and s.momentum is not None
    size = None if s.whiten and conduct.adjacency == "add_remove" else float(conduct.n)
    conduct.plan_draws(s.steps, *noise.events)

    coding = Coding(objective.domain)
    if s.whiten:
        frame = _buy_frame(objective, coding, noise, size, grant, conduct)
    else:
        assert size is not None
        frame = _as_coded(coding, noise.order, size)
    clip = s.clip * SLOPE[objective.loss] * frame.length
    clipped = ClippedGradient(objective, coding, frame.transform, clip, noise.order)
    sensitivity = clipped.sensitivity(conduct.adjacency)
    draw, deviation = noise.of_gradient(sensitivity), noise.deviation(sensitivity) * clipped.unit

    drowned = math.sqrt(coding.width) * deviation / (frame.size * clipped.clip)
    step = min(frame.fastest, frame.pace / math.sqrt(drowned)) / CURVATURE[objective.loss]
    shrink = 1 / (1 + step * s.ridge * deviation / frame.size)
    weights, velocity = np.zeros(coding.width), np.zeros(coding.width)
    for _ in range(s.steps):
        sums = clipped.sums(coding.weights(weights))
        noisy = grant.release(draw, sums, conduct.source) * clipped.unit / frame.size
        velocity = s.momentum * velocity + frame.transform.T @ noisy
        weights = np.clip(shrink * (weights + step * velocity), space.low, space.high)
        conduct.tell(coding.weights(weights)[None])
    return conduct.path(s.average)


def _buy_frame(
    objective: LinearObjective,
    coding: Coding,
    noise: _Noise,
    size: float | None,
    grant: Grant,
    conduct: Conduct,
) -> _Frame:
    """Release the second moments and whiten by them; they also hold a noisy size."""
    moments = SecondMoments(objective, coding)
    sensitivity = moments.sensitivity(conduct.adjacency)
    mechanism = noise.of_moments(sensitivity)
    matrix = moments.matrix(grant.release(mechanism, moments.triangle(), conduct.source))
    if size is None:  # the intercept is coded as 1/2
        size = max(1.0, 4 * float(matrix[-1, -1]))
    return _whitened(matrix, math.sqrt(mechanism.variance) * moments.unit, size)


def _check_slopes(objective: Any, name: str) -> None:
    """Refuse an objective that has no gradient."""
    if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
        raise ValueError(
            f"solver {name!r} needs a linear model with a slope; pass a LinearObjective with "
            "loss='logistic' or 'hinge'"
        )


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {"gradient": (Gradient, gradient)}
