"""Tables of numbers and categories for distances: weights of categories, fills, bought columns.

**Scale.** A schema codes a number as its fraction of the range, and a category as a one-hot group.
Two numbers are at most 1 apart and two categories sqrt(2), so a category would weigh twice as much
as a number in a squared distance. With ``scale="equal"`` a level is coded as sqrt(1/2): any two
different levels are then as far apart as the two ends of a range.

**Missing values.** A number without a declared `fill` is filled in at the middle of its range, or
at its middle cut: no number is refused. A category needs ``other=True`` for undeclared values, or
is refused when the table is read, before the charge.

**Blanks.** They are bought by `privfit.runs.blanks` from the fit's own budget, for a public share
of it: hashed buckets or names of categories, and three levels of private medians of each number
without a range, ``Numeric()`` and ``Numeric(bins="auto")`` alike, since distances between bins mean
little. The range of a number then reaches beyond its first and last cut by as much as these are
from its middle one: post-processing. (The quantiles 1/100 and 99/100 have scores of a hundred times
the range of those of medians.) No more levels are kept than there is room for, a public number, so
that nothing is refused after the charge. The rest is the fit's (`privfit.runs.purchases`): of a
pure budget what is left, otherwise an enclosed part with an epsilon and a delta of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite, is_whole
from privfit.domains import Domain, Numeric, Schema
from privfit.domains.scaled import LEAST_LEVEL
from privfit.records.blanks import BlankRows
from privfit.runs.blanks import SHARE, BlankPlan
from privfit.runs.payment import Terms
from privfit.runs.purchases import Purchase
from privfit.runs.settings import Settings

__all__ = ["Mixed", "clustered", "level_of"]

EQUAL = math.sqrt(0.5)
LEVELS = 3  # of medians: up to 25 bins
LARGEST = 1e30  # end of a range
MOST_LEVELS = 512  # of bought categories, all columns together


def level_of(scale: Any) -> float:
    """What a level is coded as: 'equal' is sqrt(1/2)."""
    if isinstance(scale, str) and scale == "equal":
        return EQUAL
    if not is_finite(scale) or not LEAST_LEVEL <= scale <= 1:
        raise DeclarationError(
            f"scale ({scale!r}) must be 'equal' or a number from {LEAST_LEVEL} to 1; pass "
            "scale='equal'"
        )
    return float(scale)


def clustered(domain: Domain, scale: Any) -> Domain:
    """The domain as distances take it: fills of numbers, and the scale of levels."""
    level = level_of(scale)
    if level != 1.0 and domain.column_names is None:
        raise DeclarationError(
            f"scale ({scale!r}) is for the categories of a Schema; leave it out, or pass a Schema"
        )
    return domain.for_distances(level)


@dataclass(frozen=True, eq=False)
class Mixed:
    """A schema with blanks, and how a fit of clusters buys them."""

    declared: Schema
    scale: Any

    @property
    def wanted(self) -> Schema:
        """The schema of what is bought: cuts of numbers without a range."""
        columns = {name: _wanted(column) for name, column in self.declared.columns.items()}
        return Schema(columns, self.declared.grid, self.declared.missing)

    def purchase(
        self, X: Any, terms: Terms, n_threads: int | None, name: str, settings: Settings
    ) -> Purchase | None:
        """Plan what is bought beside a solver; None if all ranges and categories are declared."""
        wanted, budget = self.wanted, terms.budget
        if not wanted.has_blanks:
            return None
        if getattr(settings, "paper", False):
            raise DeclarationError(
                f"solver ({name!r}) must not have paper=True with blanks, which no paper has; "
                "pass domain=learn_schema(X, epsilon, delta, columns=schema)"
            )
        plan = BlankPlan.shared(wanted, budget, terms.neighbours, LEVELS, SHARE, SHARE)
        plan = replace(plan, room=max(MOST_LEVELS, len(plan.blanks.categories)))
        encloses = bool(budget.delta) and not settings.is_gaussian
        rest = plan.enclosed(budget) if encloses else plan.rest(budget)
        if not rest.epsilon:
            raise DeclarationError(
                f"epsilon ({terms.epsilon!r}) must leave something beside blanks; pass delta=0.0, "
                "or domain=learn_schema(X, epsilon, delta, columns=schema)"
            )
        sums = BlankRows.sums(X, wanted, n_threads)
        return Purchase(wanted, sums, plan, rest, encloses)

    def filled(self, bought: Schema) -> Schema:
        """The bought schema, with ranges and fills of numbers instead of cuts."""
        wanted = self.wanted.columns
        columns = {name: _ranged(wanted[name], column) for name, column in bought.columns.items()}
        return Schema(columns, bought.grid, bought.missing)

    def coded(self, bought: Schema) -> Domain:
        """The domain of a fit."""
        return clustered(self.filled(bought), self.scale)


def _wanted(column: Any) -> Any:
    """A number with a range has no cuts, and one without buys some; its bins stay, if declared."""
    if not column.holds_numbers or not column.is_blank:
        return column
    if column.has_range:
        return Numeric(column.low, column.high, fill=column.fill)
    return (
        column if is_whole(column.bins) and column.bins else Numeric(bins="auto", fill=column.fill)
    )


def _ranged(wanted: Any, bought: Any) -> Any:
    """A number whose cuts were bought as one with a range; other columns stay as they are."""
    if not wanted.holds_numbers or wanted.bins != "auto":
        return bought
    cuts, ranks = bought.cuts, bought.ranks or (0.5,) * len(bought.cuts)
    middle = cuts[min(range(len(cuts)), key=lambda i: abs(ranks[i] - 0.5))]
    low, high = 2 * cuts[0] - middle, 2 * cuts[-1] - middle
    try:
        return Numeric(low, high, fill=wanted.fill).filled()
    except DeclarationError:  # no range: all cuts are nearly the same, or beyond float32
        size = min(max(abs(cuts[0]), abs(cuts[-1]), 1.0), LARGEST)
        return Numeric(-size, size, fill=wanted.fill).filled()
