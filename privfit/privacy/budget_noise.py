"""Noise for integers, from a budget: discrete Laplace if it is pure, else discrete Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privfit.base.typing import Floats, Integers
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Releasing
from privfit.privacy.remainder import gaussian_left, gaussian_part

__all__ = ["CountNoise", "deviation", "noise_for"]


FINE = 16  # the least standard deviation in steps of the grid: the grid's 4 then adds 2 %
MOST_UNITS = 1 << 29  # steps to a count: those of 2^32 records then stay below 2^62


def noise_for(
    budget: Budget, l1: int, l2: float, share: int = 1
) -> DiscreteLaplace | DiscreteGaussian:
    """The noise of one release of integers of these sensitivities, one of `share` equal ones.

    Discrete Laplace, in l1, for a pure budget; otherwise that or discrete Gaussian, in l2,
    whichever has the smaller variance. Public numbers decide.
    """
    laplace = DiscreteLaplace(calibrate(share, epsilon=budget.epsilon, delta=0.0), l1)
    if not budget.delta:
        return laplace
    gaussian = DiscreteGaussian(gaussian_part(gaussian_left(budget), share), l2)
    return laplace if deviation(laplace) < deviation(gaussian) else gaussian


def deviation(noise: DiscreteLaplace | DiscreteGaussian) -> float:
    """The standard deviation of a mechanism's noise."""
    if isinstance(noise, DiscreteGaussian):
        return math.sqrt(noise.variance)
    rate = noise.epsilon / noise.sensitivity
    return 1 / (math.sqrt(2) * math.sinh(rate / 2)) if rate < 1000 else 0.0


@dataclass(frozen=True)
class CountNoise:
    """A planned release of counts: `units` steps of the grid per count, and the noise on it."""

    mechanism: DiscreteLaplace | DiscreteGaussian
    units: int

    @classmethod
    def of(cls, budget: Budget, l1: int, l2_squared: int) -> CountNoise:
        """All of the budget on one release of counts with these sensitivities."""
        if not budget.delta:
            return cls(DiscreteLaplace(budget.epsilon, l1), 1)
        mu = gaussian_left(budget)
        l2 = math.nextafter(math.sqrt(l2_squared), math.inf)
        units = min(max(1, math.ceil(FINE * mu / l2)), MOST_UNITS)
        return cls(DiscreteGaussian(mu, math.nextafter(units * l2, math.inf)), units)

    @property
    def event(self) -> Event:
        """The cost of the release."""
        return self.mechanism.event

    @property
    def scale(self) -> float:
        """b of Laplace noise, or the standard deviation of Gaussian noise, in counts."""
        if isinstance(self.mechanism, DiscreteLaplace):
            return self.mechanism.scale
        return math.sqrt(self.mechanism.variance) / self.units

    def add(self, counts: Integers, release: Releasing) -> Floats:
        """The counts with noise, drawn by `release`."""
        return np.asarray(release(self.mechanism, self.units * counts) / self.units)
