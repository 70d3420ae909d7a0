"""Noisy gradient descent, Frank-Wolfe and permuted SGD for linear models.

==============  ================================================================================
`Gradient`      full-batch descent on sums of clipped gradients with discrete noise; by default
                whitened: a tenth of the budget buys the records' second moments, whose inverse
                root gives the coordinates in which gradients are clipped and noised
`FrankWolfe`    descent over an l1 ball; every step selects one of its corners
`PermutedSGD`   SGD over records in a random order, with noise on the weights alone (Wu et al. 2017)
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

from privfit._kernels.select import uniform_distinct
from privfit.accounting import Event, gaussian_calibrate
from privfit.checks import is_finite
from privfit.ledger import Budget, Grant
from privfit.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, GammaVector
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import ClippedGradient, SecondMoments, permuted_descent
from privfit.objectives.coding import Coding
from privfit.objectives.common import Floats
from privfit.paths import (
    OPEN,
    Conduct,
    Generation,
    Path,
    check_counts,
    check_positive_shares,
    check_shares,
    fill,
)
from privfit.spaces import Reals

__all__ = [
    "METHODS",
    "FrankWolfe",
    "Gradient",
    "PermutedSGD",
    "frank_wolfe",
    "gradient",
    "permuted_sgd",
]

Callback = Callable[[Generation], object] | None

WIDEST_WHITENED = 1024  # columns up to which second moments are bought unasked
WIDEST = 4096  # columns up to which they fit the integers of `ClippedGradient`
LEAST = 2.0**-20  # of a Gaussian parameter or an epsilon: below, noise may not fit in 64 bits
BOUND = 50.0  # on coded weights: no fit that we saw came near
SLOPE = {"logistic": 0.5, "hinge": 1.0}  # of the loss at a margin of 0
CURVATURE = {"logistic": 0.25, "hinge": 1.0}  # of the loss, at most
ALMOST = 1 - 2.0**-26  # of a budget: its parts then cost no more than the whole in float64
SGD_BITS = 20  # of the sensitivity of SGD's weights, on the grid that they are noised on


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
        By default 0 if whitened, else 0.9.
    ridge : float
        Weight of an l2 regulariser, in units of the noise of a gradient.
    average : float
        The share of the path whose mean is the answer; 0 for the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Gradient, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = Gradient(steps=20)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
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
            momentum=(0.0 if whiten else 0.9) if self.momentum is None else self.momentum,
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
            whole = gaussian_calibrate(budget.epsilon, budget.delta) * ALMOST
            part = s.moments if s.whiten else 0.0
            self.mu_moments = whole * math.sqrt(part / share)
            self.mu = whole * math.sqrt((1 - part) / (share * s.steps))
            self.event = Event("gaussian", self.mu, s.steps)
        else:
            self.epsilon = budget.epsilon / (share * s.steps) * ALMOST
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

    A step goes 1 / sqrt(noise to signal) times as far as the curvature of a whitened loss allows,
    at most `fastest` times. Both rules were chosen on Adult, Credit Default and Mushroom from
    epsilon 0.03 to 3 (docs/descent.md).
    """

    transform: Floats
    length: float
    size: float
    fastest: float


def _whitened(moments: Floats, deviation: float, size: float, clip: float) -> _Frame:
    """Coordinates in which typical records are round: (M / n)^(-1/2), regularised.

    Eigenvalues below 0 are noise; all are raised by the noise's level, its deviation times the
    root of the dimension, so that directions which the noise drowns are not blown up. Records
    that are clipped have no curvature, so the more of them are, the longer steps may be.
    """
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 0.0)
    raised = values + deviation * math.sqrt(len(values))
    transform = (vectors / np.sqrt(raised / size)) @ vectors.T
    length = math.sqrt(max(1.0, (values / raised).sum()))
    return _Frame(transform, length, size, fastest=max(1.5, 2.4 / clip))


def _as_coded(coding: Coding, order: int, size: float) -> _Frame:
    """The coded records' own coordinates, scaled to a length of at most one."""
    scale = coding.longest(2)
    transform = np.eye(coding.width) / scale
    # With momentum 0.9, steps below 3.8 converge whatever the records.
    return _Frame(transform, coding.longest(order) / scale, size, fastest=3.8)


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
    assert s.steps
    assert s.clip
    assert s.momentum is not None
    size = None if s.whiten and conduct.adjacency == "add_remove" else float(conduct.n)
    conduct.set_aside(s.steps, *noise.events)

    coding = Coding(objective.domain)
    if s.whiten:
        frame = _buy_frame(objective, coding, noise, size, s.clip, grant, conduct)
    else:
        assert size is not None
        frame = _as_coded(coding, noise.order, size)
    clip = s.clip * SLOPE[objective.loss] * frame.length
    clipped = ClippedGradient(objective, coding, frame.transform, clip, noise.order)
    sensitivity = clipped.sensitivity(conduct.adjacency)
    draw, deviation = noise.of_gradient(sensitivity), noise.deviation(sensitivity) * clipped.unit

    drowned = math.sqrt(coding.width) * deviation / (frame.size * clipped.clip)
    step = min(frame.fastest, 1 / math.sqrt(drowned)) / CURVATURE[objective.loss]
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
    clip: float,
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
    return _whitened(matrix, math.sqrt(mechanism.variance) * moments.unit, size, clip)


def _check_slopes(objective: Any, name: str) -> None:
    """Refuse an objective that has no gradient."""
    if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
        raise ValueError(
            f"solver {name!r} needs a linear model with a slope; pass a LinearObjective with "
            "loss='logistic' or 'hinge'"
        )


# ------------------------------------------------------------------------------------- Frank-Wolfe


@dataclass(frozen=True)
class FrankWolfe:
    """Settings of `frank_wolfe`.

    Parameters
    ----------
    steps : int, optional
        T; by default a public rule in (n, epsilon, delta): see `_corners_by_rule`.
    radius : float
        Of the l1 ball that holds the centred weights (`objective.centred`).
    cap : float, optional
        Clip of a record's residual; by default 0.5 for the logistic loss and 1 for the hinge, the
        slopes at a margin of 0. 1 is no clip at all.
    average : float
        The share of the path whose mean is the answer; 0 for the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import FrankWolfe, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = FrankWolfe(radius=10)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    steps: int | None = None
    radius: float = 20.0
    cap: float | None = None
    average: float = 0.0

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        check_shares(self, "average")
        check_positive_shares(self, "cap")
        if not is_finite(self.radius) or self.radius <= 0:
            raise ValueError(f"radius ({self.radius!r}) must be a positive number; leave it out")

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `frank_wolfe` would refuse; draws nothing."""
        _check_slopes(objective, "frank_wolfe")
        if self.steps is None and size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or FrankWolfe(steps=...)"
            )
        objective.prior(objective.centred.weights(_corners(objective, self.radius)))


def frank_wolfe(
    objective: LinearObjective,
    space: Reals,
    settings: FrankWolfe,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Go from corner to corner of an l1 ball: w = (1 - g) w + g corner, g = 2 / (t + 2).

    A corner +-radius e_j scores the clipped gradient along it; the range of these scores is
    4 x_max cap under replace and 2 x_max cap under add_remove, x_max = 1/2 in the centred coding,
    whatever the radius. Released: the corners. Cost: T selections, in all the grant's budget.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    s = settings
    steps = s.steps or _corners_by_rule(conduct)
    eps_s = conduct.plan(steps, steps)
    corners = _corners(objective, s.radius)
    moves = np.nonzero(corners)[1], corners[np.nonzero(corners)]
    view = objective.slopes(np.zeros(corners.shape[1]), s.cap or SLOPE[objective.loss])
    choose = Exponential(eps_s, view.range(*moves, conduct.adjacency))
    for t in range(steps):
        chosen = grant.release(choose, view.scores(*moves), conduct.source)
        share = 2 / (t + 2)
        view.w = (1 - share) * view.w + share * corners[chosen]
        conduct.tell(view.model[None])
    return conduct.path(s.average)


def _corners(objective: LinearObjective, radius: float) -> Floats:
    """(2 d + 2, d + 1): the corners of the ball."""
    ahead = np.eye(objective.domain.width + 1) * radius
    return np.vstack([ahead, -ahead])


def _corners_by_rule(conduct: Conduct) -> int:
    """How many corners: (n mu)^(2/3) / 4, or sqrt(n epsilon) / 3 for a pure budget; at least 8."""
    if conduct.mu:
        return max(8, round((conduct.n * conduct.mu) ** (2 / 3) / 4))
    return max(8, round(math.sqrt(conduct.n * conduct.budget.epsilon) / 3))


# ------------------------------------------------------------------------------------ permuted SGD


@dataclass(frozen=True)
class PermutedSGD:
    """Settings of `permuted_sgd`.

    Parameters
    ----------
    passes, batch : int
        k and b of the paper.
    step : float, optional
        The step of a convex loss, at most 2 / smoothness; by default batch / sqrt(n), or the
        paper's 1 / sqrt(n).
    ridge : float
        gamma, the weight of (gamma / 2) l2(w)^2 beside the mean loss; 0 for a convex loss.
    paper : bool
        The publication's own passes and step.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, PermutedSGD
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = PermutedSGD(passes=5)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    passes: int = OPEN
    batch: int = OPEN
    step: float | None = None
    ridge: float = 0.0
    paper: bool = False

    def __post_init__(self) -> None:
        fill(self, ours={"passes": 5, "batch": 50}, paper={"passes": 10, "batch": 50})
        check_counts(self, "passes", "batch")
        if self.step is not None and not (is_finite(self.step) and self.step > 0):
            raise ValueError(f"step ({self.step!r}) must be a positive number; leave it out")
        if not is_finite(self.ridge) or self.ridge < 0:
            raise ValueError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")
        if self.ridge and self.step is not None:
            raise ValueError("step must be left out where ridge > 0, which sets the steps")

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `permuted_sgd` would refuse; draws nothing."""
        _check_slopes(objective, "sgd")
        if size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where it is the number of "
                "slots that records are put in; pass a public number of records"
            )


def permuted_sgd(
    objective: LinearObjective,
    space: Reals,
    settings: PermutedSGD,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Passes of SGD over records in one random order; then noise on the weights, once.

    Released: the weights. Cost: the grant's budget. **The guarantee is for real arithmetic**: the
    descent is in float64, whose rounding is some 1e-10 of the sensitivity.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    s, coding, slots = settings, Coding(objective.domain), conduct.n
    step, sensitivity = _sgd_sensitivity(s, objective.loss, slots)
    event = _sgd_event(grant.budget, conduct.share, coding.width)
    conduct.set_aside(1, event)

    # Slots hold a uniform arrangement of the records and of empty ones, which stays secret.
    order = uniform_distinct(max(objective.n_records, slots), slots, conduct.source)
    weights = permuted_descent(
        objective, coding, order, batch=s.batch, passes=s.passes, step=step, ridge=s.ridge
    )
    if event.kind == "gaussian":
        unit = 2.0 ** (math.frexp(sensitivity)[1] - SGD_BITS)
        moved = sensitivity / unit + math.sqrt(coding.width)  # rounding moves each by half a unit
        whole = np.rint(weights / unit).astype(np.int64)
        noisy = unit * grant.release(_gaussian(event.parameter, moved), whole, conduct.source)
    else:
        noisy = grant.release(GammaVector(event.parameter, sensitivity), weights, conduct.source)
    bounded = np.clip(noisy / coding.longest(2), space.low, space.high)
    conduct.tell(coding.weights(bounded)[None])
    return conduct.path()


def _sgd_event(budget: Budget, share: int, width: int) -> Event:
    """The draw that costs the budget with the shorter noise: of a Gaussian, or of density exp(-l2).

    In few dimensions the latter is shorter even where delta > 0. Its root mean square is
    sqrt(k (k + 1)) / epsilon, a Gaussian's sqrt(k) / mu, times the sensitivity.
    """
    epsilon = budget.epsilon / share * ALMOST
    if budget.delta:
        mu = gaussian_calibrate(budget.epsilon, budget.delta) / math.sqrt(share) * ALMOST
        if mu * math.sqrt(width + 1) > epsilon:
            return Event("gaussian", mu)
    return Event("pure", epsilon)


def _sgd_sensitivity(settings: PermutedSGD, loss: str, slots: int) -> tuple[float, float]:
    """The (largest) step, and how far one slot's record can move the weights.

    Records are scaled to length 1, so gradients are at most 1 long and `smooth`-Lipschitz. Between
    neighbours one slot differs, in one step of each pass: there it adds at most 2 eta / b. A step
    of a convex loss is no expansion if eta <= 2 / smooth; one of a gamma-strongly convex loss
    contracts by 1 - eta gamma if eta <= 1 / (smooth + gamma). So the weights end at most
    (2 / b) max over slots of sum over passes of eta_t prod_{s > t} (1 - eta_s gamma) apart: 2 k eta
    / b (convex), at most 2 / (gamma n) for eta_t = min(1 / (smooth + gamma), 1 / (gamma t)).
    """
    s, smooth = settings, CURVATURE[loss]
    if not s.ridge:
        step = min(s.step or (1 if s.paper else s.batch) / math.sqrt(slots), 2 / smooth)
        return step, 2 * s.passes * step / s.batch
    step, steps_a_pass = 1 / (smooth + s.ridge), -(-slots // s.batch)
    eta = np.minimum(step, 1 / (s.ridge * np.arange(1, s.passes * steps_a_pass + 1)))
    kept = np.cumsum(np.log1p(-eta * s.ridge)[::-1])[::-1]  # of what stands before each step
    left = eta * np.exp(np.append(kept[1:], 0.0))
    furthest = float(left.reshape(s.passes, steps_a_pass).sum(axis=0).max())
    return step, 2 * furthest / s.batch * (1 + 1e-9)


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "gradient": (Gradient, gradient),
    "frank_wolfe": (FrankWolfe, frank_wolfe),
    "sgd": (PermutedSGD, permuted_sgd),
}
