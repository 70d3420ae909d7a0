"""Honest probabilities: a slope and an intercept for the scores of a released linear model.

Clipped gradients, ridges and searches leave scores z = <x, w> + b whose order is right and whose
size is not. A part of the fit's budget buys a slope s and an intercept c, and the model becomes
(s w, s b + c): post-processing of what was released, like everything below but the sums.

**Neighbours.** Data sets differ by one record, replaced or added/removed. The model is public when
records are counted by their label y and by the cell of their score: cells are 1/64 wide and end at
-6 and 6, so that a record adds 1 to one of 2 x 769 counts (`LinearObjective.margin_counts`).

**delta > 0.** Two Newton steps, each from six noisy sums. At (s, c) a record with the score z has
the log odds v = s z + c, r = y - sigma(v), h = abs(r) (1 - abs(r)), and a direction u of length 1
that turns from (1, 0) to (0, 1) while z goes from -2 to 2. It adds

    (r u, 2 h u, 2 h v u)

times 2^16, each number truncated towards zero: a row of a *public table*, computed before any
record is asked for. Its squared length is at most r^2 + 4 h^2 (1 + v^2) <= 1, whatever v, and
truncation shortens it; so curvatures cost nothing beside the residuals, and the l2 sensitivity is
at most 1 (add or remove) and 2 (replace). What is charged is what the table says: its longest row,
or its two rows that are farthest apart, in whole numbers. All sums get discrete Gaussian noise.

**Why u.** Where (s, c) is right, r has the mean 0 given z, so that sum r u(z) is 0 for any u: u is
free to make little noise. Of the likelihood's own u = (z, 1) the bound is large and the curvature
that tells slopes is small, since records have most of it near 0. With two directions at a right
angle low scores are weighed in one sum and high ones in the other, and a record that is all in one
sum costs no more than one residual.

**delta = 0.** One histogram of 12 cells by label with discrete Laplace noise: a record adds 1 to
one count, so that the l1 sensitivity is 1 (add or remove) or 2 (replace).

**Several classes.** Each class versus the rest is calibrated for itself. A record is in the sums of
every class, so the parts add up: their squared Gaussian parameters, or their epsilons.

**Class weights** multiply what a record of a class adds (weights are at most 1), so that scores are
calibrated for the weighted classes.

**Prior.** Where noise drowns the sums, a normal prior decides (docs/calibration.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import BudgetError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.linear.descent import signal_of
from privfit.objectives import LinearObjective
from privfit.privacy.accounting import Event, gaussian_total
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import gaussian_left
from privfit.runs.door import is_users
from privfit.runs.payment import Account, Paid, Terms
from privfit.runs.run import Run
from privfit.runs.settings import Settings
from privfit.runs.spaces import Reals

__all__ = ["CALIBRATION", "Facts", "Parts", "Prior", "Scale", "prior_of", "share_of"]

CALIBRATION = 0.04  # of mu^2, or of epsilon
FINE, FAR = 6, 6  # cells of 2^-FINE, up to scores of FAR
PAIRED = 128  # rows of a table that are compared with all others at a time
REACH = FAR << FINE
CURVED = 2.0  # the largest factor of a curvature at which its sums cost nothing, almost
TURNED = 2.0  # the size of a score beyond which directions turn no further
FIRST = 0.5  # what the first step counts beside the second, since it started farther away
UNITS = 2.0**16  # of a sum
STEPS = (0.4, 0.6)  # of the calibration's squared Gaussian parameter
LEAST = 2.0**-20  # of a Gaussian parameter: below, noise may not fit in 64 bits
COUNT_UNITS = 1 << 10  # of a count, so that the least noise covers its grid
WIDE = 1 << FINE  # cells of a score that a cell of the histogram holds
ALMOST = 1 - 2.0**-20  # of a squared parameter: its parts then cost no more than the whole
INTERCEPT_ERROR, WEIGHTED_ERROR = 0.2, 0.3  # standard deviations of a prior
ROUNDED = 20  # bits of a slope and of an intercept
STEEPEST, FARTHEST = 20.0, 10.0  # no slope is above, nor below its inverse; no intercept beyond

Pair: TypeAlias = tuple[float, float]  # of class 0 and class 1
NO_WEIGHTS: Pair = (1.0, 1.0)


# ------------------------------------------------------------------------------------------- parts


class Parts:
    """How the budget of a fit is divided: `terms` for the solver, calibration, counts of classes.

    With delta > 0 parts are of the squared Gaussian parameter: a solver that draws Gaussian noise
    spends the rest of it exactly. What other solvers leave beside their draws is known once they
    planned them, and the calibration is then made smaller until it fits. A solver that
    spends a delta of its own leaves its part of that, too.
    """

    def __init__(self, terms: Terms, calibration: float, counts: float, models: int) -> None:
        self.share, self.counts_share, self.models = calibration, counts, models
        self.mu = self.epsilon = 0.0
        self.terms, self._whole = terms, terms
        rest = 1 - calibration - counts
        if rest == 1:
            return
        budget = terms.budget
        if not budget.delta:
            self.epsilon = calibration * budget.epsilon / models * ALMOST
            self.terms = replace(terms, epsilon=rest * budget.epsilon)
            return
        mu, delta = gaussian_left(budget), rest * budget.delta
        self.mu = mu * math.sqrt(calibration * ALMOST)
        epsilon = gaussian_total(mu * math.sqrt(rest * ALMOST), delta)
        self.terms = replace(terms, epsilon=min(epsilon, budget.epsilon), delta=delta)

    def buy_counts(self, account: Paid, counts: Integers) -> Floats:
        """Noisy counts (n_classes,), before a solver that draws Gaussian noise, or none.

        One record is in one count.
        """
        budget, changes = account.budget, account.terms.neighbours.changes
        if not budget.delta:
            noise = DiscreteLaplace(self.counts_share * budget.epsilon * ALMOST, changes)
            return account.release(noise, counts).astype(np.float64)
        mu = gaussian_left(budget)
        account.plan(Event("gaussian", mu * math.sqrt(ALMOST)))  # of everything
        part = mu * math.sqrt(self.counts_share * ALMOST) * ALMOST
        noisy = account.release(
            DiscreteGaussian(part, COUNT_UNITS * math.sqrt(changes)), COUNT_UNITS * counts
        )
        return noisy / COUNT_UNITS

    def run(
        self, account: Account, objective: LinearObjective, space: Reals, label: object
    ) -> Run[LinearObjective, Reals]:
        """The run of one class's model, on the solver's part of the account."""
        name = f"{self._whole.name} {label}"
        if not isinstance(account, Paid) or self._is_everything(account):
            return account.run(objective, space, name, self.models)
        reserve = None if account.grant.events else partial(self._reserve, account)
        return account.run(objective, space, name, self.models, self.terms.budget, reserve)

    def _is_everything(self, account: Paid) -> bool:
        """Whether the solver spends all that is left; a delta may be left unused."""
        return self.terms is self._whole and self.terms.delta == account.budget.delta

    def _reserve(self, account: Paid) -> None:
        """Plan the draws of the calibration beside those of the solver, before the first."""
        if self.epsilon:
            account.plan(Event("pure", self.epsilon, self.models))
        if not self.mu:
            return
        for mu in self._sizes(account):
            self.mu = mu if mu >= LEAST * math.sqrt(self.models) else 0.0
            with suppress(BudgetError):
                if self.mu:
                    account.plan(Event("gaussian", self.mu))
                return
        self.mu = 0.0

    def _sizes(self, account: Paid) -> Iterator[float]:
        """The part that was meant, and what the solver's draws leave, which takes a while."""
        yield self.mu
        yield gaussian_left(account.budget, *account.grant.planned) * ALMOST

    def calibrate(
        self,
        account: Paid,
        objective: LinearObjective,
        model: Floats,
        prior: Prior,
        weights: Pair = NO_WEIGHTS,
    ) -> Scale:
        """The slope and intercept of a released model's scores; its part is spent.

        A model without an intercept gets none. If nothing is left to spend, the slope is 1.
        """
        if not account.grant.events:  # the solver drew nothing
            self._reserve(account)
        if not (self.mu or self.epsilon):
            return Scale()
        if not objective.fit_intercept:
            prior = replace(prior, intercept_error=1e-6)
        counts = objective.margin_counts(model, FINE, REACH)
        neighbours = account.terms.neighbours
        if self.epsilon:
            found = _by_histogram(account, counts, self.epsilon, prior, neighbours, weights)
        else:
            mu = self.mu / math.sqrt(self.models) * ALMOST
            found = _by_steps(account, counts, mu, prior, neighbours, weights)
        slope, intercept = found.tolist()
        return Scale(slope, intercept if objective.fit_intercept else 0.0)

    def described(self, scales: list[Scale]) -> dict[str, Any]:
        """What was bought and for how much, for a `Release`."""
        return {
            "share": self.share,
            "slope": [one.slope for one in scales],
            "intercept": [one.intercept for one in scales],
        }


# --------------------------------------------------------------------------------- what is fitted


@dataclass(frozen=True)
class Scale:
    """A slope and an intercept of scores."""

    slope: float = 1.0
    intercept: float = 0.0

    def of(self, model: Floats, has_intercept: bool) -> Floats:
        """The model (n_weights,) whose scores are these ones' slope and intercept."""
        scaled = self.slope * model
        if has_intercept:
            scaled[-1] += self.intercept
        return scaled


@dataclass(frozen=True)
class Prior:
    """What is expected of a slope and an intercept, with standard deviations."""

    slope: float
    slope_error: float
    intercept_error: float

    @property
    def information(self) -> Floats:
        """(2, 2): its inverse variances."""
        return np.diag([self.slope_error**-2.0, self.intercept_error**-2.0])


@dataclass(frozen=True)
class Facts:
    """What is public of scores before they are calibrated, for a prior.

    `mu` is the Gaussian parameter of one model, or its epsilon if delta is 0. A table has
    `table_columns`, `numbers` of them numbers, `ranged` of these with a declared range, coded as
    `columns`.
    """

    loss: str
    size: int | None
    mu: float
    neighbours: Neighbours
    columns: int
    table_columns: int
    numbers: int = 0
    weighted: bool = False  # whether some class is weighted more than others
    ranged: int = 0

    @property
    def signal(self) -> float | None:
        """How far a coded column stands above the noise: see `descent.signal_of`."""
        return signal_of(self.size, self.mu, self.neighbours, self.columns)

    @property
    def intercept_error(self) -> float:
        """The standard deviation of an intercept of log odds."""
        return WEIGHTED_ERROR if self.weighted else INTERCEPT_ERROR


def prior_of(settings: Settings, facts: Facts) -> Prior:
    """The prior for a solver: its own, if it has a method ``score_prior(facts)``, or the usual one.

    Clipped slopes make weights too large, the more so the more noise there is, and hold back a
    class that is weighted more than others; a hinge knows nothing of probabilities, and errors
    nothing of the size of weights.
    """
    if facts.loss != "logistic":
        return Prior(1.5, 1.0, 0.5)
    own = None if is_users(settings) else getattr(settings, "score_prior", None)
    if own is not None:
        prior: Prior = own(facts)
        return prior
    if not getattr(settings, "clips_slopes", False):
        return Prior(1.0, 0.25, facts.intercept_error)
    signal = facts.signal
    slope = 0.75 if signal is None or signal < 150 else 0.85 if signal < 500 else 0.95
    return Prior(slope, 0.25, facts.intercept_error)


def share_of(settings: Settings) -> float:
    """The part of the budget that a calibration gets: a solver of ours may have its own."""
    own = None if is_users(settings) else getattr(settings, "calibration_share", None)
    return CALIBRATION if own is None else float(own)


@dataclass(frozen=True, eq=False)
class _Measured:
    """What one step says of (slope, intercept): its information, and that times the place."""

    information: Floats
    vector: Floats

    @classmethod
    def of_sums(cls, start: Floats, sums: Floats, error: float) -> _Measured:
        """From sums (3, 2) of a table's rows, in units of 1, with noise of this deviation.

        Residuals fall by sum h z u for each unit of the slope, and by sum h u for each of the
        intercept. By sampling they vary by about sum h u.
        """
        residuals, of_intercept, of_odds = sums / np.array([[1.0], [CURVED], [CURVED]])
        of_slope = (of_odds - start[1] * of_intercept) / start[0]
        falls = np.stack([of_slope, of_intercept], axis=1)
        weighed = falls.T / (error**2 + np.maximum(of_intercept, 0.0))
        return cls(weighed @ falls, weighed @ (residuals + falls @ start))


def _combined(prior: Prior, *measured: tuple[float, _Measured]) -> Floats:
    """(2,): the prior and estimates, each with a weight, by their information.

    Rounded, so that the last bits, in which libraries of linear algebra differ, do not matter.
    """
    information = prior.information
    vector = information @ np.array([prior.slope, 0.0])
    for weight, one in measured:
        information = information + weight * one.information
        vector = vector + weight * one.vector
    found = np.linalg.solve(information, vector)
    found = np.clip(found, [1 / STEEPEST, -FARTHEST], [STEEPEST, FARTHEST])
    return np.ldexp(np.rint(np.ldexp(found, ROUNDED)), -ROUNDED)


# ---------------------------------------------------------------------------------------- the sums


def table_of(at: Floats, weights: Pair = NO_WEIGHTS) -> Integers:
    """int64 (2, cells, 6): what a record of each label and cell adds to the sums, in units."""
    z = FAR * np.arange(-REACH, REACH + 1) / REACH
    v = at[0] * z + at[1]
    p = scipy.special.expit(v)
    r = np.stack([-weights[0] * p, weights[1] * (1 - p)])
    h = CURVED * np.array(weights)[:, None] * (p * (1 - p))
    turn = np.clip(0.5 + z / (2 * TURNED), 0.0, 1.0)
    u = np.stack([1 - turn, turn], axis=1) / np.sqrt(np.square(1 - turn) + np.square(turn))[:, None]
    rows = np.stack([r, h, h * v], axis=-1)[..., None] * u[:, None, :]
    return np.trunc(rows.reshape(2, len(z), 6) * UNITS).astype(np.int64)


def table_sensitivity(table: Integers, neighbours: Neighbours) -> float:
    """The l2 sensitivity of sums of a table's rows, one row a record.

    Numbers below 2^17 and their products are exact in float64.
    """
    rows = table.reshape(-1, table.shape[-1]).astype(np.float64)
    squares = np.square(rows).sum(axis=1)
    if not neighbours.replaces:
        return math.sqrt(squares.max()) * ABOVE
    farthest = 0.0
    for first in range(0, len(rows), PAIRED):  # all pairs at once would take 40 MB
        part = slice(first, first + PAIRED)
        apart = squares[part, None] + squares - 2 * (rows[part] @ rows.T)
        farthest = max(farthest, float(apart.max()))
    return math.sqrt(farthest) * ABOVE


def _by_steps(
    account: Paid,
    counts: Integers,
    mu: float,
    prior: Prior,
    neighbours: Neighbours,
    weights: Pair,
) -> Floats:
    """(2,): the slope and intercept after two noisy Newton steps."""
    at, measured = np.array([prior.slope, 0.0]), list[tuple[float, _Measured]]()
    for share in STEPS:
        at[0] = max(at[0], prior.slope / 2)  # sums are divided by it, and their noise
        table = table_of(at, weights)
        mechanism = DiscreteGaussian(mu * math.sqrt(share), table_sensitivity(table, neighbours))
        sums = np.tensordot(counts, table, 2)
        noisy = np.asarray(account.release(mechanism, sums)).reshape(3, 2) / UNITS
        one = _Measured.of_sums(at, noisy, math.sqrt(mechanism.variance) / UNITS)
        measured = [(FIRST, before) for _, before in measured] + [(1.0, one)]
        at = _combined(prior, *measured)
    return at


def histogram_of(counts: Integers) -> Integers:
    """int64 (2, 2 FAR): the counts by label in cells of width 1; the middle one goes up."""
    cells = counts[:, :-1].reshape(2, 2 * FAR, WIDE).sum(axis=2)
    cells[:, -1] += counts[:, -1]
    return np.asarray(cells)


def _by_histogram(
    account: Paid,
    counts: Integers,
    epsilon: float,
    prior: Prior,
    neighbours: Neighbours,
    weights: Pair,
) -> Floats:
    """(2,): the slope and intercept that fit a noisy histogram."""
    mechanism = DiscreteLaplace(epsilon, neighbours.changes)
    noisy = account.release(mechanism, histogram_of(counts)) * np.array(weights)[:, None]
    variance = 2 * mechanism.scale**2
    centres = np.arange(2 * FAR) - FAR + 0.5
    points = np.stack([centres, np.ones_like(centres)])
    at = np.array([prior.slope, 0.0])
    for _ in range(20):
        p = scipy.special.expit(at @ points)
        residuals = noisy[1] * (1 - p) - noisy[0] * p
        curved = np.maximum(noisy.sum(axis=0), 0.0) * p * (1 - p)
        spread = variance * (np.square(weights[1] * (1 - p)) + np.square(weights[0] * p)) + curved
        falls = (points * curved).T
        weighed = falls.T / spread
        one = _Measured(weighed @ falls, weighed @ (residuals + falls @ at))
        at = _combined(prior, (1.0, one))
    return at
