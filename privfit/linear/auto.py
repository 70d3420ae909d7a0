"""How `solver="auto"` chooses for a linear model: by a rule in public facts, and nothing else.

The facts are the declared number of records, the domain, the budget, the adjacency and the number
of models that share it, one for each of several classes. Records are never looked at.

**Under a schema** of fewer than some 4,000 levels, with an intercept, a logistic model is additive:
its columns are coded by the rules of `privfit.linear.recipe`. With delta > 0 the solver is
`Additive`. With delta = 0, without class weights, and if there are numbers without declared cuts,
or blanks, it is `Evidence` at a signal from 12 to some 200, and otherwise `ObjectivePerturbation`
on a few public functions of each number. With
``coding="declared"``, and everywhere else, the following rules hold. They also hold where the
recipe's signal, of a column of the *table*, is so low that functions of numbers are not worth their
noise (`choose_declared`); and where it is lower still, a delta is not used (`leaves_delta`).

**delta > 0.** With mu the Gaussian parameter of the budget of one model, doubled under
'add_remove', *signal* = n mu / columns says how far a coded column stands above the noise
(`descent.signal_of`).

==========================  =======================  ============================================
where                       solver                   because
==========================  =======================  ============================================
4096 columns and more       `Local`, long steps      second moments would not fit in memory
signal < 3                  `SelectRefine`           noise on all columns would drown them
1025 to 4095 columns        `SelectRefine`           it whitens the columns it chose, not all
otherwise                   `Gradient`               steps, clip and floor by `Gradient.filled`
==========================  =======================  ============================================

**delta = 0.** *Signal* = n epsilon / p for p coded columns, doubled under 'add_remove'.

==========================  =======================  ============================================
more than 1024 columns      `Local`, long steps      texts: a few words tell most
signal < 20                 `Local`                  noise on all columns would drown them
signal < 5, many numbers    `Local`                  the same; yet a walk along single numbers
                                                     learns little, and a look at them helps
otherwise                   `ObjectivePerturbation`  noise in the shape of the domain
==========================  =======================  ============================================

*Long steps*: few selections, as a pipeline that selects words makes, where the usual walk makes
hundreds of small ones. T = sqrt(n mu / changes) steps of min(.4, 2 / T) of a weight's width; if
delta is 0, T = .047 (n epsilon / changes)^.62 steps of min(.4, 50 / T^2). Below 12 of them, or 4 if
delta is 0, one wrong step costs more than the others gain, and the walk is the usual one. The rule
was tuned on the one text table there is, sms_spam.

Evidence: docs/linear.md for delta 1e-6, where Mushroom prefers the hybrid up to a signal of 3, by 3
points at 0.7 and by 1 at 2.8, Credit Default the gradient from 5 on, and Adult from 1 on;
docs/perturbation.md for pure budgets.
"""

from __future__ import annotations

import math
from typing import Any

from privfit.domains import Domain
from privfit.linear.additive import Additive
from privfit.linear.calibration import Facts
from privfit.linear.descent import WIDEST, WIDEST_WHITENED, Gradient, signal_of
from privfit.linear.evidence import Evidence
from privfit.linear.newton import coding_of
from privfit.linear.objective_perturbation import ObjectivePerturbation
from privfit.linear.recipe import CROWDED, LEAST_APART, PUBLIC, Recipe, most_functions
from privfit.linear.select_refine import SelectRefine
from privfit.objectives import LinearObjective
from privfit.objectives.features import most_coordinates
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.remainder import gaussian_left
from privfit.runs.payment import Terms
from privfit.runs.sizes import PRIVATE, known_size
from privfit.searches.privgene import Local

__all__ = [
    "WEIGHS_LOSS", "choose", "choose_additive", "choose_beside_blanks", "choose_declared", "facts",
    "is_additive", "is_cut", "leaves_delta",
]  # fmt: skip

LONGEST_STEP, FEWEST_STEPS, FEWEST_PURE_STEPS = 0.4, 12, 4  # of walks over the words of texts
DROWNED = 3.0  # the signal below which columns are selected first
DROWNED_PURE, DROWNED_PURE_NUMBERS = 20.0, 5.0  # the same of a pure budget; with a look at numbers

DROWNED_SUMS = 1.5  # the recipe's signal below which Gaussian noise drowns sums over columns
DROWNED_LEVELS = 3.0  # the same below which tables without numbers select levels first
CROWDED_PURE = 150.0  # the same of a pure budget below which many numbers get no functions

WEIGHS_LOSS = Local(scoring="loss")  # where the loss has a weight


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
    mu = gaussian_left(budget) / math.sqrt(models)
    if columns >= WIDEST:
        count = math.sqrt(size * mu / neighbours.changes)
        return _walk(count, FEWEST_STEPS, 2 / count)
    found = signal_of(size, mu, neighbours, columns)
    drowned = found is None or found < DROWNED  # None of no mu at all
    if drowned or columns > WIDEST_WHITENED:
        return SelectRefine()
    return Gradient()


def choose_beside_blanks(
    delta: float, weighs_classes: bool = False
) -> Gradient | Local | ObjectivePerturbation:
    """The settings of `auto` if the schema has blanks, so that its width is not known yet."""
    if delta:
        return Gradient()
    return Local() if weighs_classes else ObjectivePerturbation()


def is_additive(domain: Domain, terms: Terms, loss: str, intercept: bool) -> bool:
    """Whether `auto` fits an additive model, which codes columns: for log odds under a schema."""
    columns = domain.declared_columns
    if not columns or loss != "logistic" or not intercept:
        return False
    numbers = sum(column.holds_numbers for column in columns.values())
    if not terms.delta and is_cut(domain):  # functions would add noise
        return False
    of_number = max(2 * PUBLIC, most_functions(numbers)) + 1  # and one of missing values
    has_room = most_coordinates(columns, of_number) < WIDEST
    return has_room and not terms.is_infinite


def is_cut(domain: Domain) -> bool:
    """Whether all numbers of a schema have declared bins and nothing else, and nothing is blank."""
    numbers: list[Any] = [one for one in domain.declared_columns.values() if one.holds_numbers]
    return not domain.has_blanks and all(one.bins and one.scale is None for one in numbers)


def choose_additive(
    delta: float, coarse: bool = False
) -> Additive | Evidence | ObjectivePerturbation:
    """The settings of `auto` for an additive model; the recipe says the rest."""
    if coarse:
        return Evidence()
    return Additive() if delta else ObjectivePerturbation()


def leaves_delta(recipe: Recipe, numbers: int) -> bool:
    """Whether a coded table is fitted under epsilon alone, though a delta is allowed.

    Gaussian noise that hides a record at delta 1e-6 has four times the deviation of Laplace noise,
    which only many sums make up for; at such a signal few can be learned. Of so many numbers as
    crowded tables have, more can.
    """
    return numbers < CROWDED and recipe.signal < DROWNED_SUMS


def choose_declared(
    recipe: Recipe, columns: int, numbers: int, delta: float
) -> SelectRefine | Local | ObjectivePerturbation | None:
    """What fits a table better with its columns as they are declared, if its signal is so low.

    `recipe` is the one for epsilon and this delta. Tables without numbers select levels first. With
    a pure budget tables of mostly categories walk along columns where they are not counted, unless
    an intercept is all there is; tables of many numbers do, too, or are fitted without functions.
    """
    if delta:
        if numbers or recipe.signal >= DROWNED_LEVELS:
            return None
        return Local() if recipe.signal < DROWNED_SUMS else SelectRefine()
    many = numbers >= CROWDED
    if recipe.signal < LEAST_APART:
        few = 2 * numbers < columns and recipe.level < 1
        return Local() if few or many else None
    return ObjectivePerturbation() if many and recipe.signal < CROWDED_PURE else None


def facts(objective: LinearObjective, terms: Terms, models: int, weighted: bool) -> Facts:
    """What is public of the scores of one of these models, which share a budget."""
    budget, domain = terms.budget, objective.domain
    mu = gaussian_left(budget) / math.sqrt(models) if budget.delta else budget.epsilon / models
    numbers = [one for one in domain.declared_columns.values() if one.holds_numbers]
    return Facts(
        objective.loss, terms.size(objective), mu, terms.neighbours, domain.width,
        domain.n_columns, len(numbers), weighted, sum(one.has_range for one in numbers),
    )  # fmt: skip


def _walk(count: float, least: int, step: float) -> Local:
    """A walk of so many steps, all of one length; the usual one if they are too few."""
    if count < least:
        return Local()
    step = min(LONGEST_STEP, step)
    return Local(generations=round(count), step=step, last_step=step)


def _choose_pure(
    size: int | None, domain: Domain, budget: Budget, neighbours: Neighbours, intercept: bool
) -> Local | ObjectivePerturbation:
    if size is not None and domain.width > WIDEST_WHITENED:
        count = 0.047 * (size * budget.epsilon / neighbours.changes) ** 0.62
        return _walk(count, FEWEST_PURE_STEPS, 50 / count**2)
    settings = ObjectivePerturbation()
    drowned = DROWNED_PURE_NUMBERS if settings.looks(domain, budget) else DROWNED_PURE
    columns = coding_of(domain, intercept=intercept).shape.size
    found = signal_of(size, budget.epsilon, neighbours, columns)
    few = found is not None and found < drowned  # objective perturbation works without a size
    return Local() if few else settings
