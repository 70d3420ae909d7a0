"""What other events leave of a budget, rounded to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

from privfit.privacy.accounting import Event, compose, gaussian_calibrate
from privfit.privacy.budgets import Budget

__all__ = ["epsilon_left", "gaussian_left"]


def epsilon_left(epsilon: float, *spent: Event) -> float:
    """The largest float that the epsilons of these pure releases or selections leave."""
    left = Fraction(epsilon) - sum(event.count * Fraction(event.parameter) for event in spent)
    nearest = float(left)
    return nearest if Fraction(nearest) <= left else math.nextafter(nearest, -math.inf)


def gaussian_left(budget: Budget, *spent: Event) -> float:
    """The largest mu that fits; beside pure releases to one part in 1000, from below.

    By simple composition the epsilon that is left fits, except for the accountant's rounding. That
    grows with epsilon: for budgets in the hundreds there may be no such mu, which is 0.
    """
    if not spent:
        return gaussian_calibrate(budget.epsilon, budget.delta)

    def fits(mu: float) -> bool:
        return compose([*spent, Event("gaussian", mu)], budget.delta) <= budget.epsilon

    left = budget.epsilon - math.fsum(event.parameter for event in spent)
    low, high = (gaussian_calibrate(e, budget.delta) for e in (left, budget.epsilon))
    least = low / 1000
    while not fits(low):
        low, high = low / 2, low
        if low < least:
            return 0.0
    while high > 1.001 * low:
        mu = math.sqrt(low * high)
        low, high = (mu, high) if fits(mu) else (low, mu)
    return low
