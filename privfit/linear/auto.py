"""How `solver="auto"` chooses for a linear model: by a rule in public facts, and nothing else.

The facts are the declared number of records, the domain, the budget, the adjacency and the number
of models that share it, one for each of several classes. Records are never looked at.

**delta > 0.** With mu the Gaussian parameter of the budget of one model, doubled under
'add_remove', *signal* = n mu / columns says how far a coded column stands above the noise
(`descent.signal_of`).

==========================  =======================  ============================================
where                       solver                   because
==========================  =======================  ============================================
4096 columns and more       `Local`                  second moments would not fit in memory
signal < 3                  `SelectRefine`           noise on all columns would drown them
1025 to 4095 columns        `SelectRefine`           it whitens the columns it chose, not all
otherwise                   `Gradient`               steps, clip and floor by `Gradient.filled`
==========================  =======================  ============================================

**delta = 0.** *Signal* = n epsilon / p for p coded columns, doubled under 'add_remove'.

==========================  =======================  ============================================
signal < 20                 `Local`                  noise on all columns would drown them
signal < 5, many numbers    `Local`                  the same; yet a walk along single numbers
                                                     learns little, and a look at them helps
otherwise                   `ObjectivePerturbation`  noise in the shape of the domain
==========================  =======================  ============================================

Evidence: docs/linear.md for delta 1e-6, where Mushroom prefers the hybrid up to a signal of 3, by 3
points at 0.7 and by 1 at 2.8, Credit Default the gradient from 5 on, and Adult from 1 on;
docs/perturbation.md for pure budgets.
"""

from __future__ import annotations

import math

from privfit.domains import Domain
from privfit.linear.descent import WIDEST, WIDEST_WHITENED, Gradient, signal_of
from privfit.linear.newton import coding_of
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.select_refine import SelectRefine
from privfit.objectives import LinearObjective
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import gaussian_left
from privfit.runs.payment import Terms
from privfit.runs.sizes import PRIVATE, known_size
from privfit.searches.privgene import Local

__all__ = ["choose", "signal"]

DROWNED = 3.0  # the signal below which columns are selected first
DROWNED_PURE, DROWNED_PURE_NUMBERS = 20.0, 5.0  # the same of a pure budget; with a look at numbers


def choose(
    size: int | None,
    domain: Domain,
    budget: Budget,
    neighbours: Neighbours,
    models: int,
    intercept: bool = True,
    weighs_classes: bool = False,
) -> Gradient | SelectRefine | Local | ObjectivePerturbation:
    """The settings of `auto` for this number of records, and of models that share one budget.

    Class weights are for solvers that follow slopes: `Gradient`, or `Local` for a pure budget.
    """
    if weighs_classes:
        return Gradient() if budget.delta else Local()
    if not budget.delta:
        return _choose_pure(size, domain, Budget(budget.epsilon / models), neighbours, intercept)
    size = known_size(size, f"{PRIVATE} and solver='auto' depends on it")
    columns = domain.width
    if columns >= WIDEST:
        return Local()
    mu = gaussian_left(budget) / math.sqrt(models)
    found = signal_of(size, mu, neighbours, columns)
    drowned = found is None or found < DROWNED  # None of no mu at all
    if drowned or columns > WIDEST_WHITENED:
        return SelectRefine()
    return Gradient()


def signal(objective: LinearObjective, terms: Terms, models: int) -> float | None:
    """How far a column of one of these models stands above the noise; None if n is not public."""
    size, budget = terms.size(objective), terms.budget
    mu = gaussian_left(budget) / math.sqrt(models) if budget.delta else budget.epsilon / models
    return signal_of(size, mu, terms.neighbours, objective.domain.width)


def _choose_pure(
    size: int | None, domain: Domain, budget: Budget, neighbours: Neighbours, intercept: bool
) -> Local | ObjectivePerturbation:
    settings = ObjectivePerturbation()
    drowned = DROWNED_PURE_NUMBERS if settings.looks(domain, budget) else DROWNED_PURE
    columns = coding_of(domain, intercept=intercept).shape.size
    found = signal_of(size, budget.epsilon, neighbours, columns)
    few = found is not None and found < drowned  # objective perturbation works without a size
    return Local() if few else settings
