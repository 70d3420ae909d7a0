"""Noisy gradient descent for linear models, and what other descents share with it.

`Gradient` is full-batch descent on sums of clipped gradients with discrete noise; by default it is
whitened: a tenth of the budget buys the records' second moments, whose inverse root gives the
coordinates in which gradients are clipped and noised.

**Neighbours.** Data sets differ by one record, replaced ('replace', the size n is public) or added
or removed ('add_remove', n is private). An integer vector plus discrete noise is released; its
sensitivity for either relation is derived in `objectives/clipping.py` (gradients, second moments).
Everything else is a function of what was released: the coordinates, the clip, the steps, the path.
Under 'add_remove' the size is `n_public`, or is taken from the noisy second moments.

**Cost.** T draws of discrete Gaussian noise with parameter mu_t and one with mu_0 are one Gaussian
draw with mu^2 = mu_0^2 + T mu_t^2, exactly. A pure budget allows no Gaussian noise: gradients are
then clipped in the l1 norm and get discrete Laplace noise of epsilon / T each.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privfit.base import blas
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.linear.uncertainty import Records, Walk, estimated, noise_of
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import ClippedGradient, SecondMoments
from privfit.objectives.coding import Broad, Centred, Coding
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import gaussian_left, gaussian_part
from privfit.runs.noise import Spread
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import (
    Settings,
    check_counts,
    check_positive,
    check_positive_shares,
    check_shares,
)
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["Descending", "Descent", "Gradient"]

WIDEST_WHITENED = 1024  # columns up to which second moments are bought unasked
WIDEST = 4096  # columns up to which they fit the integers of `ClippedGradient`
LEAST = 2.0**-20  # of a Gaussian parameter or an epsilon: below, noise may not fit in 64 bits
BOUND = 50.0  # on coded weights: no fit that we saw came near
SLOPE = {"logistic": 0.5, "hinge": 1.0}  # of the loss at a margin of 0
CURVATURE = {"logistic": 0.25, "hinge": 1.0}  # of the loss, at most
USUAL_SIGNAL = 10.0  # where the number of records is not public
ALMOST = 1 - 2.0**-26  # of a budget: its parts then cost no more than the whole in float64


class Descending(Settings):
    """The facts of descents: they bound coded weights."""

    @property
    def largest_weight(self) -> float:
        return BOUND

    def bounds_codes(self, objective: Objective) -> bool:
        return True


def check_slopes(objective: Objective, name: str) -> None:
    """Refuse an objective that has no gradient."""
    if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
        raise DeclarationError(
            f"solver {name!r} needs a linear model with a slope; pass a LinearObjective with "
            "loss='logistic' or 'hinge'"
        )


def check_reach(objective: LinearObjective, coding: Centred, bound: float = BOUND) -> None:
    """Refuse a domain whose records have no exact margins with the largest coded weights."""
    corners = np.full((2, coding.width), bound) * np.array([[1.0], [-1.0]])
    objective.check_margins(coding.weights(corners))


# ---------------------------------------------------------------------------------------- gradient


@dataclass(frozen=True)
class Descent:
    """The settings of a descent with all defaults filled in; see `Gradient`."""

    steps: int
    whiten: bool
    moments: float
    floor: float
    clip: float
    momentum: float
    ridge: float
    average: float

    @property
    def noted(self) -> dict[str, Any]:
        """The settings as they are used; None for those that need second moments, without these."""
        whole = asdict(self)
        return whole if self.whiten else {**whole, "moments": None, "floor": None}

    def coding(self, objective: LinearObjective) -> Coding:
        """Coded records: broad if they are whitened, otherwise short."""
        return (Broad if self.whiten else Coding)(objective.domain, objective.fit_intercept)


@dataclass(frozen=True, repr=False)
class Gradient(Descending):
    """Settings of noisy gradient descent, for the parameter `solver`.

    Parameters that are left out follow the public rules of `filled`.

    Parameters
    ----------
    steps : int, optional
        Number of steps T.
    whiten : bool, optional
        Whether to buy second moments and descend in their coordinates; by default if delta > 0 and
        there are at most 1024 columns.
    moments : float, optional
        Fraction of the squared Gaussian parameter that buys the second moments.
    floor : float, optional
        What is added to the eigenvalues of the second moments, in units of their noise.
    clip : float, optional
        Bound on the length of gradients, as a fraction of their expected length at the start: for a
        record of typical length (whitened) or for the longest one.
    momentum : float, optional
        Momentum; by default 0 if whitened, otherwise 0.9.
    ridge : float, optional
        Weight of an l2 regulariser, in units of the noise of a gradient.
    average : float, optional
        Fraction of the path whose mean is the answer; 0 for the last step.

    See Also
    --------
    SelectRefine : Selects columns first.
    PermutedSGD, FrankWolfe : Other descents.

    Notes
    -----
    Released: the noisy second moments (if whitened), and T noisy sums of clipped gradients; the
    weights are a function of these. Cost: the budget of the fit, by discrete Gaussian noise, or
    discrete Laplace noise if delta is 0.

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

    is_gaussian = True

    steps: int | None = None
    whiten: bool | None = None
    moments: float = 0.1
    floor: float | None = None
    clip: float | None = None
    momentum: float | None = None
    ridge: float = 0.1
    average: float = 0.75

    clips_slopes: ClassVar[bool] = True
    weighs_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        check_shares(self, "momentum", "average")
        check_positive_shares(self, "moments")
        if self.whiten not in (None, True, False):
            raise DeclarationError(f"whiten ({self.whiten!r}) must be True or False; leave it out")
        if self.moments == 1 or self.momentum == 1:
            raise DeclarationError("moments and momentum must be below 1; leave them out")
        check_positive(self, "clip", "floor")
        if not is_finite(self.ridge) or self.ridge < 0:
            raise DeclarationError(f"ridge ({self.ridge!r}) must be 0 or positive; leave it out")

    def filled(self, budget: Budget, width: int, signal: float | None = None) -> Descent:
        """These settings with the defaults for a budget, a number of columns and their `signal`.

        The rules for whitened descents were chosen on Adult (with bins and without), Credit Default
        and Mushroom, at delta 1e-6 from epsilon 0.05 to 3 (docs/descent.md).

        Parameters
        ----------
        budget : Budget
            The budget of the fit.
        width : int
            Number of coded columns.
        signal : float or None, default=None
            How far a column stands above the noise; None if the number of records is not public.

        Returns
        -------
        Descent
            The settings to use.
        """
        whiten = self.whiten
        if whiten is None:
            whiten = budget.delta > 0 and width <= WIDEST_WHITENED
        signal = USUAL_SIGNAL if signal is None else signal
        steps = (64 if whiten and signal >= 40 else 32) if budget.delta else 16
        return Descent(
            steps=self.steps or steps,
            whiten=whiten,
            moments=self.moments,
            floor=self.floor or min(1.0, max(0.3, 4 / signal)),
            clip=self.clip or (min(0.7, max(0.4, 0.4 * math.sqrt(signal / 10))) if whiten else 1.0),
            momentum=(0.0 if whiten else 0.9) if self.momentum is None else self.momentum,
            ridge=self.ridge,
            average=self.average,
        )

    def check(self, task: Task[LinearObjective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective, budget = task.objective, task.budget
        check_slopes(objective, "gradient")
        filled = self.filled(budget, objective.domain.width, math.inf)
        if filled.whiten and not budget.delta:
            raise DeclarationError(
                "whiten (True) needs Gaussian noise, and so delta > 0; pass delta=1e-6, or leave "
                "whiten out"
            )
        if filled.whiten and objective.domain.width >= WIDEST:
            raise DeclarationError(
                f"whiten (True) takes fewer than {WIDEST} columns; pass Gradient(whiten=False)"
            )
        if not (filled.whiten and objective.fit_intercept):
            _size_without_moments(task.n_public)
        if Noise.of_budget(filled, budget, 1).least < LEAST:
            raise DeclarationError(
                f"epsilon ({budget.epsilon!r}) is too small for this number of steps; pass fewer "
                f"steps or "
                "a larger epsilon"
            )
        coding = filled.coding(objective)
        check_reach(objective, coding)
        if filled.whiten:
            SecondMoments(objective, coding).sensitivity(task.neighbours)

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Descend along noisy sums of clipped gradients; the space bounds coded weights (`Coding`).

        Released: the noisy second moments (if whitened), and T noisy gradients. The weights after
        each step, a function of these, are reported. Cost: the grant's budget.
        """
        width = run.objective.domain.width
        s = self.filled(run.whole, width, signal_of(run.n_public, run.mu, run.neighbours, width))
        noise = Noise.of_budget(s, run.whole, run.share)
        run.set_aside(*noise.events, generations=s.steps)
        run.note(**s.noted)
        coding = s.coding(run.objective)
        if s.whiten:
            frame = buy_frame(run, coding, s, noise)
        else:
            frame = _as_coded(coding, noise.order, float(_size_without_moments(run.n_public)))
        frame = replace(frame, size=frame.size * run.objective.mean_weight)
        pace = descend(run, coding, frame, s, noise, np.zeros(coding.width))
        return with_noise(run.path(s.average), coding, frame, pace, run.reported)


def _size_without_moments(size: int | None) -> int:
    """The public number of records, if no second moments reveal it."""
    where = " unless the descent is whitened and fits an intercept"
    return known_size(size, where, "a public estimate of the number of records")


def signal_of(size: int | None, mu: float, neighbours: Neighbours, columns: int) -> float | None:
    """How far a column stands above the noise: n mu / columns, or None if n is not public.

    Replacing a record changes a sum of gradients twice as much as adding one, so under 'add_remove'
    the same mu counts twice.
    """
    if size is None or not mu:
        return None
    return size * mu * (2 / neighbours.changes) / columns


class Noise:
    """How a descent's budget is divided: one draw for second moments, if whitened, and equal draws.

    Either a Gaussian parameter mu, or an epsilon for discrete Laplace noise.
    """

    def __init__(self, settings: Descent, mu: float = 0.0, epsilon: float = 0.0) -> None:
        s = settings
        part = s.moments if s.whiten else 0.0
        self.mu_moments = mu * math.sqrt(part)
        self.mu = mu * math.sqrt((1 - part) / s.steps)
        self.epsilon = epsilon / s.steps
        self.event = (
            Event("gaussian", self.mu, s.steps) if mu else Event("pure", self.epsilon, s.steps)
        )

    @classmethod
    def of_budget(cls, settings: Descent, budget: Budget, share: int) -> Noise:
        """One of several equal descents: each has mu / sqrt(share), or epsilon / share."""
        if not budget.delta:
            return cls(settings, epsilon=budget.epsilon / share * ALMOST)
        return cls(settings, gaussian_part(gaussian_left(budget), share, ALMOST))

    @property
    def least(self) -> float:
        """The smallest parameter of any draw."""
        return min((x for x in (self.mu, self.mu_moments, self.epsilon) if x > 0), default=0.0)

    @property
    def order(self) -> int:
        """The order of the norm in which sensitivities are measured."""
        return 2 if self.mu else 1

    @property
    def events(self) -> tuple[Event, ...]:
        """All draws of one fit."""
        return (*([Event("gaussian", self.mu_moments)] if self.mu_moments else []), self.event)

    def of_moments(self, sensitivity: float) -> DiscreteGaussian:
        """The noise of the second moments."""
        return gaussian_noise(self.mu_moments, sensitivity)

    def of_gradient(self, sensitivity: float) -> DiscreteGaussian | DiscreteLaplace:
        """The noise of one gradient."""
        if self.mu:
            return gaussian_noise(self.mu, sensitivity)
        return DiscreteLaplace(self.epsilon, math.ceil(sensitivity))

    def deviation(self, sensitivity: float) -> float:
        """The standard deviation of a gradient's noise."""
        return sensitivity / self.mu if self.mu else math.sqrt(2) * sensitivity / self.epsilon


def gaussian_noise(mu: float, sensitivity: float) -> DiscreteGaussian:
    """Discrete Gaussian noise; more than needed if it would not cover the grid."""
    return DiscreteGaussian(mu, max(sensitivity, 4 * mu))


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates in which gradients are clipped: their number k, a typical length, a size.

    `basis` (k, width) maps coded records to coordinates in which steps are equally long in each
    direction. A step goes 1 / sqrt(noise to signal) times as far as the curvature of a whitened
    loss allows, at most `fastest` times (chosen like the rules of `Gradient.filled`). If
    second moments were bought, `records` is what they say of the coded columns `kept`.
    """

    basis: Floats
    length: float
    size: float
    fastest: float
    kept: Integers | None = None
    records: Records | None = None

    def of_codes(self) -> Floats:
        """(k, width): the coordinates of coded records."""
        return self.basis

    def coded(self, weights: Floats) -> Floats:
        """(width,): the weights of coded columns."""
        return weights

    def placed(self, weights: Floats, space: Reals) -> tuple[Floats, Floats]:
        """The weights where the next step starts, and those of coded columns, within a space."""
        inside = np.clip(weights, space.low, space.high)
        return inside, inside


def whitened(moments: Floats, rise: float, size: float) -> tuple[Floats, float]:
    """(k, k) coordinates in which typical records are round, (M / n)^(-1/2), and their length.

    Eigenvalues below 0 are noise; all are raised by about the level of the noise, so that
    directions dominated by noise are not amplified.
    """
    with blas.one_thread():
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


def buy_frame(
    run: Run[LinearObjective, Reals],
    coding: Coding,
    settings: Descent,
    noise: Noise,
    columns: Integers | None = None,
) -> Frame:
    """Release the second moments of these columns (all) and whiten by them.

    If no size is public, they contain a noisy one: the square of the intercept. Records that are
    clipped have no curvature, so the more of them are, the longer steps may be.
    """
    moments = SecondMoments(run.objective, coding, columns)
    mechanism = noise.of_moments(moments.sensitivity(run.neighbours))
    matrix = moments.matrix(run.release(mechanism, moments.triangle()))
    size = run.n_public or max(1.0, 4 * float(matrix[-1, -1]))  # the intercept is coded as 1/2
    deviation = math.sqrt(mechanism.variance) * moments.unit
    rise = settings.floor * deviation * math.sqrt(len(matrix))
    transform, length = whitened(matrix, rise, size)
    basis = np.zeros((len(matrix), coding.width))
    basis[:, moments.kept] = transform
    likely = estimated(matrix, deviation, coding.empty(moments.kept)) / size
    records = Records(likely, transform, coding.constant * coding.unit)
    fastest = max(1.5, 2.4 / settings.clip)
    return Frame(basis, length, size, fastest, moments.kept, records)


@dataclass(frozen=True, eq=False)
class Pace:
    """The public numbers of a descent: its steps, how long a gradient may be, and its noise.

    `deviation` is that of a mean gradient, and `weights` are those after each step.
    """

    loss: str
    step: float
    shrink: float
    momentum: float
    average: float
    clip: float
    deviation: float
    weights: list[Floats]

    def walk(self, steps: int) -> Walk:
        """So many steps, of which the last ones are averaged as a `Path` does."""
        averaged = max(1, round(self.average * steps))
        return Walk(self.step, self.shrink, self.momentum, self.deviation, steps, averaged)


def descend(
    run: Run[LinearObjective, Reals],
    coding: Coding,
    frame: Frame,
    settings: Descent,
    noise: Noise,
    start: Floats,
) -> Pace:
    """Take steps along noisy gradients from weights of the frame, within the space; report each.

    If a callback ends the run, the descent ends.
    """
    objective, space, s = run.objective, run.space, settings
    clip = s.clip * SLOPE[objective.loss] * frame.length
    clipped = ClippedGradient(objective, coding, frame.of_codes(), clip, noise.order)
    sensitivity = clipped.sensitivity(run.neighbours)
    draw, deviation = noise.of_gradient(sensitivity), noise.deviation(sensitivity) * clipped.unit

    drowned = math.sqrt(len(frame.basis)) * deviation / (frame.size * clipped.clip)
    step = min(frame.fastest, 1 / math.sqrt(drowned)) / CURVATURE[objective.loss]
    shrink = 1 / (1 + step * s.ridge * deviation / frame.size)
    walk: list[Floats] = []
    velocity = np.zeros(len(start))
    weights, model = start, coding.weights(frame.coded(start))
    with suppress(RunEnded):
        for _ in range(s.steps):
            sums = clipped.sums(model)
            noisy = run.release(draw, sums) * clipped.unit / frame.size
            velocity = s.momentum * velocity + frame.basis.T @ noisy
            moved = shrink * (weights + step * velocity)
            weights, coded = frame.placed(moved, space)
            model = coding.weights(coded)
            walk.append(weights)
            run.report(model[None])
    return Pace(
        objective.loss, step, shrink, s.momentum, s.average, clipped.clip, deviation / frame.size,
        walk,
    )  # fmt: skip


def with_noise(path: Path, coding: Coding, frame: Frame, pace: Pace, steps: int) -> Path:
    """A path whose answer is the mean of the last of so many steps, with the noise of it.

    The path is returned as it is if nothing is known of the records' second moments, or if steps
    are so long that noise grows (`Walk.settles`). The fit is paid for by now, so nothing here may
    fail: what cannot be computed is not known.
    """
    if frame.records is None:
        return path
    weights, walk = coding.positions(path.answer)[frame.kept], pace.walk(steps)
    with np.errstate(all="ignore"):
        curvature = frame.records.curvature(pace.loss, weights, pace.clip)
        if not np.isfinite(curvature).all() or not walk.settles(curvature):
            return path
        rows = noise_of(walk, curvature, frame.basis)
    return replace(path, noise=Spread.of(coding.linear(rows)))
