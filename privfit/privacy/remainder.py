"""What other events leave of a budget, and equal parts of it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

from privfit.base.rounding import BELOW, rounded_down
from privfit.privacy.accounting import Event, calibrate, compose, gaussian_calibrate
from privfit.privacy.budgets import Budget

__all__ = ["beside_selections", "epsilon_left", "gaussian_left", "gaussian_part"]

Rule: TypeAlias = Literal["largest", "near", "simple"]


def epsilon_left(epsilon: float, *spent: Event) -> float:
    """The largest float that the epsilons of these pure releases or selections leave."""
    return rounded_down(
        Fraction(epsilon) - sum(event.count * Fraction(event.parameter) for event in spent)
    )


def gaussian_left(budget: Budget, *spent: Event, rule: Rule = "largest") -> float:
    """The mu of a Gaussian release that fits beside these events, 0 if none is found.

    By simple composition the epsilon that is left fits, except for the accountant's rounding. That
    grows with epsilon: for budgets in the hundreds there may be no such mu. Beside events there are
    three rules, each kept for the releases that were planned by it:

    'largest'   the very largest that fits, as the accountant finds it
    'near'      that to one part in 1000, from below
    'simple'    what simple composition leaves, if the accountant sees that it fits
    """
    if not spent or rule == "largest":
        return gaussian_calibrate(budget.epsilon, budget.delta, spent)

    def fits(mu: float) -> bool:
        return compose([*spent, Event("gaussian", mu)], budget.delta) <= budget.epsilon

    if rule == "simple":
        mu = gaussian_calibrate(epsilon_left(budget.epsilon, *spent), budget.delta)
        return mu if fits(mu) else 0.0
    left = budget.epsilon - math.fsum(event.count * event.parameter for event in spent)
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


def gaussian_part(mu: float, parts: int, almost: float = BELOW) -> float:
    """The mu of each of so many equal releases that together cost what one of mu does."""
    return mu / math.sqrt(parts) * almost


def beside_selections(
    budget: Budget, share: float, selections: int, kind: str, others: int
) -> tuple[Event, Event]:
    """Equal selections at a share of epsilon, and equal other releases of a kind at the rest.

    Both are made smaller, in steps of 1e-4, until the accountant, which rounds up, sees them fit.
    """
    chosen = calibrate(selections, epsilon=share * budget.epsilon, delta=budget.delta)
    other = (1 - share) * budget.epsilon / others
    while True:
        events = Event("selection", chosen, selections), Event(kind, other, others)
        if compose(events, budget.delta) <= budget.epsilon:
            return events
        chosen, other = chosen * (1 - 1e-4), other * (1 - 1e-4)
