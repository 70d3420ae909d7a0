"""The intercept of a fit by itself, where noise on all weights would drown it.

Noise of objective perturbation has the size of a whole record in every coordinate, so at a low
signal scores are off by more than the log odds of the classes, and a fit does worse than the most
frequent class. Part of a pure budget then buys the intercept alone, by one or two numbers:

- the *balance*, the records of class 1 minus those of class 0, which with a public number of
  records gives the log odds c of the classes;
- the *residual* of scores z that were released, sum of y - sigma(SLOPE z + c) over records, which
  says how far the intercept is from c. Scores are multiplied by SLOPE < 1, since most of them is
  noise.

**Privacy.** A record adds 1 or -1 to the balance, which changes it by 1 (add or remove) or by 2
(replace). The residual is a sum of a public table's numbers, one a record, by its label and the
cell of its released score: whole units, computed before any record is asked for. It changes by the
largest of them, or by the largest difference of two. Both get discrete Laplace noise, and are pure
releases; c, the table and all that follows are functions of them and of public numbers.

Both estimates are shrunk by the known variance of their noise: c towards 0 and the shift towards 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.rounding import BELOW
from privfit.base.typing import Floats, Integers
from privfit.objectives import LinearObjective
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.runs.protocols import Space
from privfit.runs.run import Run

__all__ = ["LEAST_PART", "Level", "log_odds"]

SLOPE = 0.6  # what scores at a low signal are multiplied by
FINE, REACH = 6, 6 << 6  # cells of a score are 2^-FINE wide, up to scores of 6
UNITS = 1 << 16  # of a residual
USUAL_ODDS, USUAL_SHIFT = 1.5, 1.0  # deviations of log odds and of shifts before anything is known
RAREST = 0.02  # the least share of a class that is believed
FARTHEST = 3.0  # no shift is larger
LEAST_PART = 2.0**-24  # of the epsilon of all models: for less, noise may not fit in 64 bits


@dataclass(frozen=True)
class Level:
    """What buys an intercept: an epsilon, for the balance alone or in halves for a residual too."""

    epsilon: float
    alone: bool

    @property
    def part(self) -> float:
        """The epsilon of one release."""
        return self.epsilon if self.alone else self.epsilon / 2 * BELOW

    @property
    def events(self) -> tuple[Event, ...]:
        """What it costs."""
        return (Event("pure", self.part),) * (1 if self.alone else 2)

    def applied(self, run: Run[LinearObjective, Space], model: Floats, size: int) -> Floats:
        """(n_weights,): a released model of the records with an intercept of its own.

        Released: the balance, and the residual unless it is `alone`.
        """
        changes = run.neighbours.changes
        lower, upper = run.objective.label_counts().tolist()
        noisy = run.release(DiscreteLaplace(self.part, changes), np.array([upper - lower]))
        odds = log_odds(float(noisy[0]), math.sqrt(2) * changes / self.part, size)
        if self.alone:
            return _shifted(model, 0.0, odds)
        return _shifted(model, SLOPE, odds + self._shift(run, model, odds, size))

    def _shift(
        self, run: Run[LinearObjective, Space], model: Floats, odds: float, size: int
    ) -> float:
        """How far the intercept of scores is from the log odds, by their noisy residual."""
        table = residuals(odds)
        largest = table.max() - table.min() if run.neighbours.replaces else np.abs(table).max()
        mechanism = DiscreteLaplace(self.part, int(largest))
        counts = run.objective.margin_counts(model, FINE, REACH)
        noisy = run.release(mechanism, np.array([int((counts * table).sum())]))
        share = float(scipy.special.expit(odds))
        information = size * share * (1 - share) * UNITS
        error = math.sqrt(2) * mechanism.scale / information
        kept = USUAL_SHIFT**2 / (USUAL_SHIFT**2 + error**2)
        return min(max(kept * float(noisy[0]) / information, -FARTHEST), FARTHEST)


def log_odds(balance: float, deviation: float, size: int) -> float:
    """The log odds of class 1 by a noisy balance of so many records, shrunk towards 0."""
    share = min(max(0.5 + balance / (2 * size), RAREST), 1 - RAREST)
    error = deviation / 2 / (size * share * (1 - share))
    return math.log(share / (1 - share)) * USUAL_ODDS**2 / (USUAL_ODDS**2 + error**2)


def residuals(odds: float) -> Integers:
    """int64 (2, cells): what a record of each label and cell of its score adds, in units."""
    z = np.arange(-REACH, REACH + 1) / 2.0**FINE
    p = scipy.special.expit(SLOPE * z + odds)
    return np.trunc(np.stack([-p, 1 - p]) * UNITS).astype(np.int64)


def _shifted(model: Floats, slope: float, shift: float) -> Floats:
    found = slope * model
    found[-1] += shift
    return found
