"""One budget in named parts: fits with budgets of their own, and draws that are composed tightly.

A part is one of two things.

- *A budget of its own*, for a fit, a metric or a grant: its share of epsilon and of delta. A ledger
  adds these up, so shares of a sum are all that there is to share.
- *Draws from one grant*: so many releases of one kind, all of one size. The grant has the shares of
  all such parts together, and within it a share is one of mu^2: a Gaussian release counts mu^2, a
  pure one epsilon^2, a selection (eps_s/2)^2, which is what each adds to the variance of the
  privacy loss if it is small. So twice the share means half the variance of a part's noise. With
  delta = 0 epsilons add up, and a share is one of epsilon.

Sizes are proportional to what the shares say, and as large as `compose` allows.
`docs/accounting.md` proves that all parts together cost no more than the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.rounding import exact, rounded_down, rounded_up
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.accounting import Event, compose, enlarged, gaussian_calibrate
from privfit.privacy.budgets import Budget
from privfit.privacy.grants import Grant
from privfit.privacy.ledger import LEAST, MOST, Ledger
from privfit.privacy.neighbours import Adjacency

__all__ = ["Plan", "plan"]

ROUNDING = 1e-9  # by so much shares may miss 1: a third is not a decimal
SMALLEST = 1e-12  # of a share: sizes below would be lost in rounding
COUNTS = {"selection": 0.5, "pure": 1.0, "gaussian": 1.0}  # the mu that a size of 1 counts as

Draws: TypeAlias = Mapping[str, tuple[str, int]]


@dataclass(frozen=True)
class Plan:
    """Parts of one budget, made by `plan`.

    Parameters
    ----------
    budget : Budget
        The whole.
    shares : dict of str to float
        The share of each part.
    budgets : dict of str to Budget
        Parts with a budget of their own.
    events : dict of str to Event
        Parts that are drawn from one grant: kind, size and number of their draws.
    drawn : Budget or None
        The budget of that grant; None if no part is drawn.

    See Also
    --------
    privfit.plan : Makes one.

    Examples
    --------
    >>> from privfit import Budget, Exponential, Ledger, plan
    >>> parts = plan(Budget(1.0, 1e-6), shares={"choose": 0.25, "fit": 0.75},
    ...              draws={"choose": ("selection", 3)})
    >>> ledger = Ledger(1.0, 1e-6)
    >>> grant = parts.reserve(ledger, "three choices")
    >>> chosen = grant.release(Exponential(parts.events["choose"].parameter, 1), [3, 700, 5])
    >>> ledger.remaining == parts.budgets["fit"]
    True
    """

    budget: Budget
    shares: Mapping[str, float] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    events: Mapping[str, Event] = field(default_factory=dict)
    drawn: Budget | None = None

    def __str__(self) -> str:
        """One line for each part."""
        lines = [f"{self.budget}"]
        for name, share in self.shares.items():
            size = _shown(self.events[name]) if name in self.events else self.budgets[name]
            lines.append(f"  {name}: {share:.6g}, {size}")
        return "\n".join(lines)

    def cost(self) -> Budget:
        """Add up what all parts cost, by `compose` for draws and by sums for budgets.

        Returns
        -------
        Budget
            Epsilon and delta, rounded up; at most those of the whole.
        """
        epsilon = sum((exact(part.epsilon) for part in self.budgets.values()), Fraction(0))
        delta = sum((exact(part.delta) for part in self.budgets.values()), Fraction(0))
        if self.drawn is not None:
            epsilon += exact(compose(self.events.values(), self.drawn.delta))
            delta += exact(self.drawn.delta)
        return Budget(rounded_up(epsilon, exact), rounded_up(delta, exact), self.budget.adjacency)

    def reserve(
        self, ledger: Ledger, name: str = "plan", adjacency: Adjacency | None = None
    ) -> Grant:
        """Reserve the grant of all parts that are drawn, and plan their draws.

        Parameters
        ----------
        ledger : Ledger
            The ledger to charge.
        name : str, default='plan'
            What the grant is for.
        adjacency : {'replace', 'add_remove'} or None, default=None
            The relation under which the grant is spent; by default that of the budget, and if
            that has none, the ledger's own.

        Returns
        -------
        Grant
            The grant.

        Raises
        ------
        BudgetError
            If the ledger does not cover it.
        """
        if self.drawn is None:
            raise DeclarationError(
                "draws (None) must name the parts that are drawn; pass draws to plan, or each of "
                "plan.budgets to the fit that spends it"
            )
        relation = self.drawn.adjacency if adjacency is None else adjacency
        grant = ledger.reserve(self.drawn.epsilon, self.drawn.delta, name, adjacency=relation)
        grant.plan(*self.events.values())
        return grant


def plan(budget: Budget, shares: Mapping[str, float], draws: Draws | None = None) -> Plan:
    """Turn one budget into named parts that together cost no more than it.

    Parameters
    ----------
    budget : Budget
        What all parts may cost.
    shares : dict of str to float
        The share of each part; they add up to 1. A part with a budget of its own gets its share of
        epsilon and of delta. Among parts that are drawn it is the share of mu^2, where a pure
        release counts epsilon^2 and a selection (eps_s/2)^2: half the share, twice the variance of
        the noise. With delta = 0 it is the share of epsilon.
    draws : dict of str to (str, int) or None, default=None
        The parts that you draw yourself from one grant: the kind of their releases ('selection',
        'pure' or 'gaussian') and their number. All others are budgets, for fits and metrics.

    Returns
    -------
    Plan
        ``plan.budgets`` has a `Budget` for each part of the first kind, ``plan.events`` an `Event`
        for each that is drawn, with the size of its draws; ``plan.reserve(ledger)`` reserves the
        grant for these.

    See Also
    --------
    calibrate : The size of equal selections.
    compose : What events cost.
    Ledger : Where budgets are reserved.

    Notes
    -----
    Draws are composed tightly with each other; budgets add up, as they do in a ledger. Sizes are
    rounded down. This is arithmetic on public parameters and releases nothing.

    Examples
    --------
    Budgets for three fits:

    >>> from privfit import Budget, plan
    >>> parts = plan(Budget(1.0, 1e-6), shares={"select": 0.3, "fit": 0.6, "roc": 0.1})
    >>> print(parts.budgets["fit"])
    epsilon 0.6, delta 6e-07

    Sizes of draws from one grant:

    >>> parts = plan(Budget(1.0, 1e-6), shares={"select": 0.3, "fit": 0.6, "roc": 0.1},
    ...              draws={"select": ("selection", 20), "fit": ("gaussian", 40),
    ...                     "roc": ("pure", 2)})
    >>> print(parts)
    epsilon 1, delta 1e-06
      select: 0.3, 20 selection draws of size 0.0582
      fit: 0.6, 40 gaussian draws of size 0.0291
      roc: 0.1, 2 pure draws of size 0.0531
    """
    _check_budget(budget)
    whole = _checked_shares(shares)
    chosen = _checked_draws(draws or {}, whole, budget.delta)
    total = sum(whole.values())
    budgets = {
        name: _part(budget, share / total) for name, share in whole.items() if name not in chosen
    }
    if not chosen:
        return Plan(budget, dict(shares), budgets)
    drawn = _rest(budget, budgets)
    among = sum(whole[name] for name in chosen)
    events = {name: (*chosen[name], whole[name] / among) for name in whole if name in chosen}
    return Plan(budget, dict(shares), budgets, _sized(drawn, events), drawn)


def _part(budget: Budget, share: Fraction) -> Budget:
    """A share of epsilon and delta, as decimals and rounded down."""
    epsilon, delta = (
        rounded_down(share * exact(one), exact) for one in (budget.epsilon, budget.delta)
    )
    return Budget(epsilon, delta, budget.adjacency)


def _rest(budget: Budget, parts: Mapping[str, Budget]) -> Budget:
    """What parts leave of a budget, as decimals and rounded down."""
    epsilon = exact(budget.epsilon) - sum(exact(part.epsilon) for part in parts.values())
    delta = exact(budget.delta) - sum(exact(part.delta) for part in parts.values())
    return Budget(rounded_down(epsilon, exact), rounded_down(delta, exact), budget.adjacency)


def _sized(budget: Budget, draws: Mapping[str, tuple[str, int, Fraction]]) -> dict[str, Event]:
    """Events whose sizes follow the shares, and which together fit the budget."""
    if budget.delta == 0:
        return {
            name: Event(kind, rounded_down(share * Fraction(budget.epsilon) / count), count)
            for name, (kind, count, share) in draws.items()
        }
    mu = gaussian_calibrate(budget.epsilon, budget.delta)
    limits = tuple(
        Event(kind, mu * math.sqrt(share / count) / COUNTS[kind], count)
        for kind, count, share in draws.values()
    )
    return dict(zip(draws, enlarged(limits, budget.epsilon, budget.delta), strict=True))


def _shown(event: Event) -> str:
    return f"{event.count} {event.kind} draws of size {event.parameter:.3g}"


# ------------------------------------------------------------------------------------------- checks


def _check_budget(budget: Budget) -> None:
    if not isinstance(budget, Budget):
        raise DeclarationTypeError(
            f"budget ({type(budget).__name__}) must be a Budget; pass Budget(1.0, 1e-6)"
        )
    if not LEAST <= budget.epsilon <= MOST:
        raise DeclarationError(
            f"budget (epsilon {budget.epsilon:g}) must have an epsilon between {LEAST:g} and "
            f"{MOST:g}; pass Budget(1.0, 1e-6)"
        )


def _checked_shares(shares: Mapping[str, float]) -> dict[str, Fraction]:
    """Shares as the decimals that were typed."""
    example = 'pass shares={"select": 0.4, "fit": 0.6}'
    if not isinstance(shares, Mapping) or not shares:
        raise DeclarationTypeError(
            f"shares ({type(shares).__name__}) must map the names of parts to numbers; {example}"
        )
    for name, share in shares.items():
        if not is_finite(share) or share < SMALLEST:
            raise DeclarationError(
                f"share ({share!r}) of {name!r} must be a number of at least {SMALLEST}; {example}"
            )
    whole = {name: exact(share) for name, share in shares.items()}
    if abs(float(sum(whole.values())) - 1) > ROUNDING:
        raise DeclarationError(
            f"shares ({float(sum(whole.values())):.6g} together) must add up to 1; {example}"
        )
    return whole


def _checked_draws(
    draws: Draws, shares: Mapping[str, object], delta: float
) -> dict[str, tuple[str, int]]:
    example = 'pass draws={"select": ("selection", 20)}'
    if not isinstance(draws, Mapping):
        raise DeclarationTypeError(
            f"draws ({type(draws).__name__}) must map names of parts to kind and number; {example}"
        )
    for name, drawn in draws.items():
        if name not in shares:
            raise DeclarationError(
                f"draws of {name!r} must belong to a part with a share; pass one of {list(shares)}"
            )
        if not isinstance(drawn, tuple) or len(drawn) != 2 or drawn[0] not in [*COUNTS]:
            raise DeclarationError(
                f"draws ({drawn!r}) of {name!r} must be a kind among {list(COUNTS)} and a number; "
                f"{example}, or leave out a part that has an epsilon and a delta of its own"
            )
        if not is_whole(drawn[1]) or drawn[1] < 1:
            raise DeclarationError(
                f"number of draws ({drawn[1]!r}) of {name!r} must be a whole number >= 1; {example}"
            )
        if drawn[0] == "gaussian" and delta == 0:
            raise DeclarationError(
                f"delta (0) must be above 0 for the gaussian draws of {name!r}; pass "
                "Budget(1.0, 1e-6), or draw 'pure' ones"
            )
    return {name: (kind, int(count)) for name, (kind, count) in draws.items()}
