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
was released: the coordinates, the clip, the steps, the path. Under 'add_remove' the size is
`n_public`, or is taken from the noisy second moments.

**Cost.** T draws of discrete Gaussian noise with parameter mu_t and one with mu_0 are one Gaussian
draw with mu^2 = mu_0^2 + T mu_t^2, exactly. A pure budget allows no Gaussian noise: gradients are
then clipped in the l1 norm and take discrete Laplace noise of epsilon / T each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from privfit._kernels.select import uniform_distinct
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import ClippedGradient, SecondMoments, permuted_descent
from privfit.objectives.coding import Broad, Centred, Coding
from privfit.privacy.accounting import Event, gaussian_calibrate
from privfit.privacy.ledger import Budget, Grant
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, GammaVector
from privfit.runs.paths import (
    OPEN,
    Conduct,
    Generation,
    Path,
    check_counts,
    check_positive_shares,
    check_shares,
    fill,
)
from privfit.runs.spaces import Reals

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
USUAL_SIGNAL = 10.0  # where the number of records is not public
ALMOST = 1 - 2.0**-26  # of a budget: its parts then cost no more than the whole in float64
ROUNDING = 2.0**-53  # of one operation in float64, relative
SGD_BITS = 20  # of the sensitivity of SGD's weights, on the grid that they are noised on


# ---------------------------------------------------------------------------------------- gradient


@dataclass(frozen=True)
class Gradient:
    """Settings of `gradient`; what is left out follows the public rules of `filled`.

    Parameters
    ----------
    steps : int, optional
        T.
    whiten : bool, optional
        Whether to buy second moments and descend in their coordinates; by default wherever
        delta > 0 and there are at most 1024 columns.
    moments : float
        The share of the squared Gaussian parameter that buys the second moments.
    floor : float, optional
        What eigenvalues of the second moments are raised by, in units of their noise.
    clip : float, optional
        Where gradients are clipped, as a share of their expected length at the start: of a record
        of typical length (whitened) or of the longest one.
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
    floor: float | None = None
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
        for name in ("clip", "floor"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise ValueError(f"{name} ({value!r}) must be a positive number; leave it out")
        if not is_finite(self.ridge) or self.ridge < 0:
            raise ValueError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")

    def filled(self, budget: Budget, width: int, signal: float | None = None) -> Gradient:
        """These settings with the defaults for a budget, so many columns and their `signal`.

        The rules for whitened descents were chosen on Adult (with bins and without), Credit
        Default and Mushroom, at delta 1e-6 from epsilon 0.05 to 3 (docs/descent.md).
        """
        whiten = self.whiten
        if whiten is None:
            whiten = budget.delta > 0 and width <= WIDEST_WHITENED
        signal = USUAL_SIGNAL if signal is None else signal
        steps = (64 if whiten and signal >= 40 else 32) if budget.delta else 16
        return replace(
            self,
            steps=self.steps or steps,
            whiten=whiten,
            floor=self.floor or min(1.0, max(0.3, 4 / signal)),
            clip=self.clip or (min(0.7, max(0.4, 0.4 * math.sqrt(signal / 10))) if whiten else 1.0),
            momentum=(0.0 if whiten else 0.9) if self.momentum is None else self.momentum,
        )

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `gradient` would refuse; draws nothing."""
        check_slopes(objective, "gradient")
        filled = self.filled(budget, objective.domain.width, math.inf)
        if filled.whiten and not budget.delta:
            raise ValueError(
                "whiten (True) needs Gaussian noise, and so delta > 0; pass delta=1e-6, or leave "
                "whiten out"
            )
        if filled.whiten and objective.domain.width >= WIDEST:
            raise ValueError(
                f"whiten (True) takes fewer than {WIDEST} columns; pass Gradient(whiten=False)"
            )
        if size is None and not (filled.whiten and objective.fit_intercept):
            raise ValueError(
                "n_public must be given under adjacency='add_remove' unless the descent is "
                "whitened and fits an intercept; pass a public estimate of the number of records"
            )
        if Noise.of_budget(filled, budget, 1).least < LEAST:
            raise ValueError(
                f"epsilon ({budget.epsilon!r}) is too small for so many steps; pass fewer steps or "
                "a larger epsilon"
            )
        check_reach(objective, coding_of(filled, objective))
        if filled.whiten:
            SecondMoments(objective, coding_of(filled, objective)).sensitivity(adjacency)


def noted(filled: Gradient) -> dict[str, Any]:
    """The settings of a descent as they are used: without moments, none of what they need."""
    whole = asdict(filled)
    return whole if filled.whiten else {**whole, "moments": None, "floor": None}


def signal_of(size: int | None, mu: float, adjacency: str, columns: int) -> float | None:
    """How far a column stands above the noise: n mu / columns, or None where n is not public.

    A replaced record changes a sum of gradients twice as much as one that is added, so under
    'add_remove' the same mu counts twice.
    """
    if size is None or not mu:
        return None
    return size * mu * (2 if adjacency == "add_remove" else 1) / columns


class Noise:
    """How a descent's budget is shared out: one draw of moments, if whitened, and equal draws.

    Either a Gaussian parameter mu, or an epsilon where noise is discrete Laplace.
    """

    def __init__(self, settings: Gradient, mu: float = 0.0, epsilon: float = 0.0) -> None:
        s = settings
        assert s.steps is not None
        part = s.moments if s.whiten else 0.0
        self.mu_moments = mu * math.sqrt(part)
        self.mu = mu * math.sqrt((1 - part) / s.steps)
        self.epsilon = epsilon / s.steps
        self.event = (
            Event("gaussian", self.mu, s.steps) if mu else Event("pure", self.epsilon, s.steps)
        )

    @classmethod
    def of_budget(cls, settings: Gradient, budget: Budget, share: int) -> Noise:
        """One of several equal descents: each has mu / sqrt(share), or epsilon / share."""
        if not budget.delta:
            return cls(settings, epsilon=budget.epsilon / share * ALMOST)
        whole = gaussian_calibrate(budget.epsilon, budget.delta)
        return cls(settings, whole / math.sqrt(share) * ALMOST)

    @property
    def least(self) -> float:
        """The smallest parameter of any draw."""
        return min((x for x in (self.mu, self.mu_moments, self.epsilon) if x > 0), default=0.0)

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
class Frame:
    """Where gradients are clipped: k coordinates, the typical length of a record there, a size.

    `basis` (k, width) takes coded records to coordinates in which steps are as long in each
    direction. A step goes 1 / sqrt(noise to signal) times as far as the curvature of a whitened
    loss allows, at most `fastest` times (chosen like the rules of `Gradient.filled`).
    """

    basis: Floats
    length: float
    size: float
    fastest: float


def _whitened(moments: Floats, rise: float, size: float) -> tuple[Floats, float]:
    """(k, k) coordinates in which typical records are round, (M / n)^(-1/2), and their length.

    Eigenvalues below 0 are noise; all are raised by about the noise's level, so that directions
    which the noise drowns are not blown up.
    """
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 0.0)
    raised = values + rise
    transform = (vectors / np.sqrt(raised / size)) @ vectors.T
    return transform, math.sqrt(max(1.0, (values / raised).sum()))


def _as_coded(coding: Coding, order: int, size: float) -> Frame:
    """The coded records' own coordinates, scaled to a length of at most one."""
    scale = coding.longest(2)
    transform = np.eye(coding.width) / scale
    # With momentum 0.9, steps below 3.8 converge whatever the records.
    return Frame(transform, coding.longest(order) / scale, size, fastest=3.8)


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
    width = objective.domain.width
    signal = signal_of(conduct.size, conduct.mu, conduct.adjacency, width)
    s = settings.filled(grant.budget, width, signal)
    noise = Noise.of_budget(s, grant.budget, conduct.share)
    assert s.steps
    conduct.set_aside(s.steps, *noise.events)
    conduct.note(**noted(s))
    coding = coding_of(s, objective)
    if s.whiten:
        frame = buy_frame(conduct, coding, s, noise)
    else:
        frame = _as_coded(coding, noise.order, float(conduct.n))
    descend(conduct, coding, frame, s, noise, np.zeros(coding.width))
    return conduct.path(s.average)


def buy_frame(
    conduct: Conduct,
    coding: Coding,
    settings: Gradient,
    noise: Noise,
    columns: Integers | None = None,
) -> Frame:
    """Release the second moments of these columns (all) and whiten by them.

    Where no size is public, they hold a noisy one: the square of the intercept. Records that are
    clipped have no curvature, so the more of them are, the longer steps may be.
    """
    assert settings.clip
    assert settings.floor
    moments = SecondMoments(conduct.objective, coding, columns)
    mechanism = noise.of_moments(moments.sensitivity(conduct.adjacency))
    matrix = moments.matrix(conduct.release(mechanism, moments.triangle()))
    size = conduct.size or max(1.0, 4 * float(matrix[-1, -1]))  # the intercept is coded as 1/2
    deviation = math.sqrt(mechanism.variance) * moments.unit
    rise = settings.floor * deviation * math.sqrt(len(matrix))
    transform, length = _whitened(matrix, rise, size)
    basis = np.zeros((len(matrix), coding.width))
    basis[:, moments.kept] = transform
    return Frame(basis, length, size, fastest=max(1.5, 2.4 / settings.clip))


def descend(
    conduct: Conduct,
    coding: Coding,
    frame: Frame,
    settings: Gradient,
    noise: Noise,
    start: Floats,
) -> None:
    """Steps along noisy gradients from coded weights, each told; weights stay in the space."""
    objective, space, s = conduct.objective, conduct.space, settings
    assert isinstance(space, Reals)
    assert s.steps
    assert s.clip
    assert s.momentum is not None
    clip = s.clip * SLOPE[objective.loss] * frame.length
    clipped = ClippedGradient(objective, coding, frame.basis, clip, noise.order)
    sensitivity = clipped.sensitivity(conduct.adjacency)
    draw, deviation = noise.of_gradient(sensitivity), noise.deviation(sensitivity) * clipped.unit

    drowned = math.sqrt(len(frame.basis)) * deviation / (frame.size * clipped.clip)
    step = min(frame.fastest, 1 / math.sqrt(drowned)) / CURVATURE[objective.loss]
    shrink = 1 / (1 + step * s.ridge * deviation / frame.size)
    weights, velocity = start, np.zeros(coding.width)
    for _ in range(s.steps):
        sums = clipped.sums(coding.weights(weights))
        noisy = conduct.release(draw, sums) * clipped.unit / frame.size
        velocity = s.momentum * velocity + frame.basis.T @ noisy
        moved = shrink * (weights + step * velocity)
        weights = np.clip(moved, space.low, space.high)
        conduct.tell(coding.weights(weights)[None])


def coding_of(settings: Gradient, objective: LinearObjective) -> Coding:
    """Coded records of a descent: broad where they are whitened, else short."""
    return (Broad if settings.whiten else Coding)(objective.domain, objective.fit_intercept)


def check_slopes(objective: Any, name: str) -> None:
    """Refuse an objective that has no gradient."""
    if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
        raise ValueError(
            f"solver {name!r} needs a linear model with a slope; pass a LinearObjective with "
            "loss='logistic' or 'hinge'"
        )


def check_reach(objective: LinearObjective, coding: Centred, bound: float = BOUND) -> None:
    """Refuse a domain whose records have no exact margins with the largest coded weights."""
    corners = np.full((2, coding.width), bound) * np.array([[1.0], [-1.0]])
    objective.check_margins(coding.weights(corners))


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
        check_slopes(objective, "frank_wolfe")
        if self.steps is None and size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or FrankWolfe(steps=...)"
            )
        objective.check_margins(objective.centred.weights(_corners(objective, self.radius)))


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
    cap = s.cap or SLOPE[objective.loss]
    conduct.note(steps=steps, cap=cap)
    corners = _corners(objective, s.radius)
    moves = np.nonzero(corners)[1], corners[np.nonzero(corners)]
    view = objective.slopes(np.zeros(corners.shape[1]), cap)
    choose = Exponential(eps_s, view.range(*moves, conduct.adjacency))
    for t in range(steps):
        chosen = grant.release(choose, view.scores(*moves), conduct.source)
        share = 2 / (t + 2)
        view.w = (1 - share) * view.w + share * corners[chosen]
        conduct.tell(view.model[None])
    return conduct.path(s.average)


def _corners(objective: LinearObjective, radius: float) -> Floats:
    """(2 n_weights, n_weights): the corners of the ball."""
    ahead = np.eye(objective.n_weights) * radius
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
        check_slopes(objective, "sgd")
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

    Released: the weights. Cost: the grant's budget. The descent is in float64: its rounding errors,
    by a public bound (`_sgd_error`), are part of the sensitivity.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    s, slots = settings, conduct.n
    coding = Coding(objective.domain, objective.fit_intercept)
    step, sensitivity = _sgd_sensitivity(s, objective.loss, slots)
    error = _sgd_error(s, coding, objective.loss, slots, step)
    sensitivity = (sensitivity + 2 * error) * (1 + 1e-9)
    event = _sgd_event(grant.budget, conduct.share, coding.width)
    conduct.set_aside(1, event)
    conduct.note(
        step=None if s.ridge else step, largest_step=step, slots=slots, sensitivity=sensitivity
    )

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


def _sgd_error(settings: PermutedSGD, coding: Coding, loss: str, slots: int, step: float) -> float:
    """How far float64 may lead the weights from those of real arithmetic, in l2 norm; public.

    A step does not expand distances, so the errors of single ones add up. With r = 2^-53 the
    rounding of an operation, k weights of length at most W, and records x = offset + value, where
    o = l2(offset) and l2(value) <= 1 + o:

    - a margin has at most 2 k + 2 terms: it is off by 4 (k + 1) r (1 + 2 o) W, and a slope by c
      times that and its own 2^-49 (see `convex`);
    - a batch adds up b slopes times columns: off by 2 (b + 8) r (1 + 2 o), times the step;
    - shrinking, adding and projecting: 2 (k + 8) r W.

    The loss of a record at 0 is at most 0.7 and convex, so a step lengthens l2(w)^2 by at most
    1.4 step + step^2: W <= sqrt(T (1.4 step + step^2)) after T of them. With a ridge, gradients are
    at most 2 long and a step shrinks l2(w)^2 by 2 step ridge first: W <= sqrt((1.4 + 4 step) /
    ridge).
    """
    s, k, smooth = settings, coding.width, CURVATURE[loss]
    steps = s.passes * -(-slots // s.batch)
    squared = (1.4 + 4 * step) / s.ridge if s.ridge else steps * step * (1.4 + step)
    W = 1 + math.sqrt(squared)
    far = float(np.linalg.norm(coding.columns[1].astype(np.float64))) * coding.unit
    spread = 1 + 2 * far / coding.longest(2)
    slope = smooth * 4 * (k + 1) * ROUNDING * spread * W + 2.0**-49
    batch = 2 * (s.batch + 8) * ROUNDING * spread
    return 1.1 * steps * (step * (slope + batch) + 2 * (k + 8) * ROUNDING * W)


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "gradient": (Gradient, gradient),
    "frank_wolfe": (FrankWolfe, frank_wolfe),
    "sgd": (PermutedSGD, permuted_sgd),
}
