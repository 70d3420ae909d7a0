"""Budgets as a person types them: decimals that add up exactly, and what another relation costs.

A budget of 0.1 is one tenth, not the binary number next to it. So a float stands here for the
rational of its shortest decimal text, `repr`: three times 0.1 is 0.3. What is shown of a sum is a
float again, rounded to the safe side of the sum *as a decimal*: what is left can be reserved, and
what was spent is not understated. The text of a double differs from the double by half a unit in
its last place at most, 1.1e-16 of it (unless it is below 1e-307), and that is all that adding texts
instead of doubles changes.

**Several steps.** If a release is (epsilon, delta)-DP for one step, then for a chain of k steps
D_0, ..., D_k and every event S

    P_0(S) <= e^epsilon P_1(S) + delta <= ... <= e^(k epsilon) P_k(S) + delta (1 + ... + e^((k-1)
    epsilon)),

so that it is (k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon)))-DP for k steps. A
replacement is two steps of 'add_remove': (2 epsilon, (1 + e^epsilon) delta).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction

from privfit.base.errors import DeclarationError
from privfit.base.rounding import exact, rounded_up
from privfit.base.validation import is_finite

__all__ = ["Budget", "after_steps"]

DIGITS = 60  # of e^epsilon, rounded up: far more than a float has
LARGEST = 1000.0  # above, e^epsilon times any delta that a float can hold is 1 or more


@dataclass(frozen=True, repr=False)
class Budget:
    """An (epsilon, delta) guarantee, and its neighbour relation if that is known.

    Budgets with equal numbers are equal; the relation is shown, but not compared.

    Parameters
    ----------
    epsilon : float
        The epsilon of (epsilon, delta)-differential privacy.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    adjacency : {'replace', 'add_remove'} or None, default=None
        The neighbour relation, if it is known.

    See Also
    --------
    Ledger : Holds a budget.

    Examples
    --------
    >>> from privfit import Budget
    >>> print(Budget(1.0, 1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float = 0.0
    adjacency: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon < 0:
            raise DeclarationError(
                f"epsilon ({self.epsilon!r}) must be a number of at least 0; pass a budget such "
                f"as 1.0"
            )
        if not is_finite(self.delta) or not 0 <= self.delta < 1:
            raise DeclarationError(
                f"delta ({self.delta!r}) must lie in [0, 1); pass one such as 1e-6"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))  # numpy's have another text
        object.__setattr__(self, "delta", float(self.delta))

    def __repr__(self) -> str:
        relation = f", adjacency={self.adjacency!r}" if self.adjacency else ""
        return f"Budget(epsilon={self.epsilon!r}, delta={self.delta!r}{relation})"

    def __str__(self) -> str:
        relation = f", {self.adjacency}" if self.adjacency else ""
        return f"epsilon {self.epsilon:.6g}, delta {self.delta:.6g}{relation}"


def after_steps(budget: Budget, steps: int) -> Budget | None:
    """The guarantee of a release between data sets that are several steps apart, rounded up.

    None if no delta below 1 holds.
    """
    epsilon, delta = exact(budget.epsilon), exact(budget.delta)
    if budget.epsilon > (LARGEST if delta else sys.float_info.max / steps):
        return None
    grown = sum(_exponential(j * epsilon) for j in range(steps)) * delta
    if grown >= 1 or rounded_up(grown, exact) >= 1:
        return None
    return Budget(rounded_up(steps * epsilon, exact), rounded_up(grown, exact))


def _exponential(power: Fraction) -> Fraction:
    """e^power, rounded up; the power has the few digits of a budget's text."""
    context = Context(prec=DIGITS)
    text = context.divide(Decimal(power.numerator), Decimal(power.denominator))
    return Fraction(context.next_plus(context.exp(context.next_plus(text))))
