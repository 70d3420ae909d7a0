"""How numbers enter an additive model: by a public scale, by bought cuts, or by equal bins.

A *coded schema* says which numbers are cut and how; `coded` makes it from a declared one, by public
facts alone. What it leaves blank is bought by `purchase_of`, from the budget of the fit:

- a number without bins, blank or with a declared range, is cut at the public scale of all numbers,
  and where the signal carries it at private medians as well. Below that signal it has equal bins,
  within its range, or within a span where its numbers lie, which is bought;
- declared bins and declared categories stay exactly as they are, and cost nothing;
- blank categories are bought as without a coding, at the recipe's share.

A coded number refuses no cell: what is missing is a level of its own, or the declared `fill`. That
holds for a declared range, too.

**Privacy.** Which columns are cut, how deep, and for how much follows from the declarations, the
budget and the public number of records. The draws are those of `privfit.runs.blanks`: one selection
for each level and number, of range 2 if a record is added or removed and 4 if it is replaced, and
noisy counts of buckets, and of cells of spans, of l2 sensitivity sqrt(d) or sqrt(2 d), for d
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_whole
from privfit.domains import Categorical, Numeric, Schema
from privfit.domains.scales import CUTS, MOST_DIMENSIONS
from privfit.linear.recipe import MOST, PUBLIC, PURE_HASHES, Recipe
from privfit.privacy.remainder import gaussian_left
from privfit.records.blanks import BlankRows
from privfit.runs.blanks import MOST_LEVELS, SHARE, USUAL_LEVELS, BlankPlan
from privfit.runs.payment import Terms
from privfit.runs.purchases import Purchase
from privfit.runs.settings import Parameters

__all__ = ["Coded", "Coding", "coded", "purchase_of", "ruled"]

FAMILIES = ("auto", "log", "quantile", "width", "decades")
USUAL_BINS = 16  # of equal width
FEW_CELLS = 8  # of the scale within a declared range: below, equal bins always stand beside them
MOST_BINS = 1024
QUARTERS = 4  # of a declared range, beside powers of ten
SMALLEST = 1e-4  # power of ten, of the larger end of a range
LEADING = {1: (1,), 2: (1, 3)}  # digits of cuts, by how many a decade has
POWERS = range(-30, 31)
BLANK_POSITIVE, BLANK_NEGATIVE = (1, 1e6), (1, 1e3)  # sizes of cuts of a number without a range


@dataclass(frozen=True, repr=False)
class Coding(Parameters):
    """How numbers without declared bins enter an additive model.

    Parameters
    ----------
    cuts : int or None, default=None
        Levels of private medians that cut a number, from 1 (3 bins) to 8, for 'auto' and
        'quantile'; the number of bins, from 2 to 1,024, for 'width'. By default the recipe's
        levels, or 16 bins. 'log' takes none.
    family : {'auto', 'log', 'quantile', 'width', 'decades'}, default='auto'
        'log' is the public scale of all numbers alone, for which nothing is bought. 'quantile' is
        bought cuts alone. 'width' is equal bins of declared ranges, for which nothing is bought.
        'decades' is few cells, one or two a decade and quarters of declared ranges, for nothing;
        blank categories are hashed for nothing then, unless their names are to be bought.
        'auto' is the public scale, with bought cuts where the signal carries them, or as many
        levels as `cuts` says.
    dimensions : int or None, default=None
        The most smooth functions of each number, from 2 to 80, or to 24 for 'log'. By default as
        many as the recipe says.

    See Also
    --------
    Numeric : A column of numbers.
    Schema.blank : A schema of nothing but kinds.
    learn_schema : Buys a schema, to be shared by many fits.

    Notes
    -----
    Released: the cuts that are bought, with the model. Cost: a public part of the fit's own budget.
    docs/coding.md has the rule.

    Examples
    --------
    >>> from privfit import Coding
    >>> Coding()
    Coding()
    >>> Coding(cuts=20, family="width").cuts
    20
    """

    cuts: int | None = None
    family: Literal["auto", "log", "quantile", "width", "decades"] = "auto"
    dimensions: int | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise DeclarationError(
                f"family ({self.family!r}) must be 'auto', 'log', 'quantile', 'width' or "
                "'decades'; pass one of them"
            )
        self._check_cuts()
        most = MOST_DIMENSIONS if self.family == "log" else MOST
        if self.dimensions is not None and not _within(self.dimensions, 2, most):
            raise DeclarationError(
                f"dimensions ({self.dimensions!r}) must be a whole number from 2 to {most} for "
                f"family {self.family!r}; pass such a number, or leave it out"
            )

    def _check_cuts(self) -> None:
        if self.cuts is None:
            return
        if self.family in ("log", "decades"):
            raise DeclarationError(
                f"cuts ({self.cuts!r}) must be left out for family {self.family!r}, which is cut "
                "where everybody knows; pass family='auto'"
            )
        least, most = (2, MOST_BINS) if self.family == "width" else (1, MOST_LEVELS)
        if not _within(self.cuts, least, most):
            raise DeclarationError(
                f"cuts ({self.cuts!r}) must be a whole number from {least} to {most} for family "
                f"{self.family!r}; pass such a number, or leave it out"
            )

    def changed(self, recipe: Recipe) -> Recipe:
        """The recipe with what this coding says otherwise: depth, share and dimensions.

        Levels are not counted where that would leave the cuts or dimensions that it asks for out.

        Parameters
        ----------
        recipe : Recipe
            What the public rule says.

        Returns
        -------
        Recipe
            What a fit uses.
        """
        depth = self._depth(recipe)
        spans = recipe.span_share if self.family == "auto" and not depth else 0.0
        share = (recipe.cut_share or SHARE) if depth else 0.0
        is_followed = self.dimensions is None and (self.cuts is None or self.family != "auto")
        return replace(
            recipe, depth=depth, cut_share=share, span_share=spans,
            coarse=recipe.coarse and is_followed, **self._split(recipe, depth),
        )  # fmt: skip

    def _depth(self, recipe: Recipe) -> int:
        if self.family in ("log", "width", "decades"):
            return 0
        least = USUAL_LEVELS if self.family == "quantile" else 0
        return int(self.cuts or recipe.depth or least)

    def _split(self, recipe: Recipe, depth: int) -> dict[str, Any]:
        """How many functions are of the public scale, and how many of cuts."""
        wanted = self.dimensions or recipe.dimensions
        if self.family in ("quantile", "width", "decades"):
            return {"dimensions": wanted, "learned": wanted}
        if not depth:
            public = min(wanted, MOST_DIMENSIONS)
            return {"dimensions": public, "public": public}
        if self.dimensions is None:
            return {}
        public = PUBLIC if wanted >= 2 * PUBLIC else wanted - wanted // 2
        return {"dimensions": wanted, "public": public, "learned": wanted - public}


def _within(value: Any, least: int, most: int) -> bool:
    return is_whole(value) and least <= value <= most


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A coded schema, the recipe of its fit, the purchase of what it leaves blank, and the terms.

    Those are the terms of everything that is drawn: they may leave a delta unused. `size` is the
    public number of records.
    """

    schema: Schema
    recipe: Recipe
    purchase: Purchase | None
    terms: Terms
    size: int | None


def coded(schema: Schema, coding: Coding, recipe: Recipe) -> Schema:
    """The schema in which numbers without bins are cut as a coding says.

    Parameters
    ----------
    schema : Schema
        The declared columns.
    coding : Coding
        How numbers are cut.
    recipe : Recipe
        What the public rule says.

    Returns
    -------
    Schema
        The coded schema; columns that are bought are blanks.
    """
    recipe = coding.changed(recipe)
    columns = {name: _coded(name, column, coding, recipe)
               for name, column in schema.columns.items()}  # fmt: skip
    return Schema(columns, schema.grid, schema.missing)


def _coded(name: str, column: Any, coding: Coding, recipe: Recipe) -> Any:
    """One column; declared bins, a declared scale and categories stay as they are."""
    coarse = coding.family == "decades" or (coding.family == "auto" and recipe.coarse)
    hashes = recipe.hashes or (PURE_HASHES if coarse else 0)
    if hashes and column.is_blank and not column.holds_numbers and column.names is None:
        return Categorical(buckets=range(hashes), hashes=hashes)
    if not column.holds_numbers or (column.has_levels and column.bins != "auto"):
        return column
    ends, lost = (column.low, column.high), column.fill is None
    if coarse:
        cuts = _coarse_cuts(column, recipe.per_decade)
        return Numeric(*ends, bins=cuts, fill=column.fill, missing=lost)
    if coding.family == "width":
        if not column.has_range:
            raise DeclarationError(
                f"column {name!r} must have a declared range for equal bins; pass "
                "Numeric(low, high), or Coding(family='log')"
            )
        return Numeric(*ends, bins=coding.cuts or USUAL_BINS, fill=column.fill, missing=lost)
    scale: Any = None if coding.family == "quantile" else "log"
    if recipe.depth:
        return Numeric(*ends, bins="auto", fill=column.fill, scale=scale)
    if recipe.span_share and not column.has_range:
        return Numeric(bins=recipe.beside, fill=column.fill, scale=scale)
    bins = 0
    if scale is not None and column.has_range:
        bins = recipe.beside or _bins_of_few_cells(column)
    return Numeric(*ends, bins, column.fill, missing=lost, scale=scale)


def _coarse_cuts(column: Numeric, per_decade: int) -> list[float]:
    """Powers of ten, perhaps thrice them, and quarters of a range; ordinary sizes without one."""
    all_sizes = [float(f"{digit}e{power}") for power in POWERS for digit in LEADING[per_decade]]
    if not column.has_range:
        positive, negative = ([one for one in all_sizes if least <= one <= most]
                              for least, most in (BLANK_POSITIVE, BLANK_NEGATIVE))  # fmt: skip
        return sorted([*(-one for one in negative), 0.0, *positive])
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    least = SMALLEST * max(abs(low), abs(high))
    sizes = [one for one in all_sizes if one >= least]
    quarters = [low + (high - low) * i / QUARTERS for i in range(1, QUARTERS)]
    wanted = {np.float32(cut): cut for cut in (*quarters, *sizes, *(-one for one in sizes))}
    first, last = np.float32(low), np.float32(high)  # to which records are rounded, as to cuts
    return sorted(cut for short, cut in wanted.items() if first < short < last)


def _bins_of_few_cells(column: Numeric) -> int:
    """Equal bins of a range that is so narrow that the scale hardly cuts it."""
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    return USUAL_BINS if sum(low < cut < high for cut in CUTS) < FEW_CELLS else 0


def purchase_of(
    schema: Schema,
    X: Any,
    terms: Terms,
    coding: Coding | None = None,
    n_threads: int | None = None,
    models: int = 1,
    is_pure: Callable[[Recipe], bool] | None = None,
) -> Coded:
    """Code a schema for a fit and plan what is bought; nothing is charged.

    Parameters
    ----------
    schema : Schema
        The declared columns, which may have blanks.
    X : DataFrame, Arrow table, dict of columns, array, list of records, Stream or Dask collection
        Private records; the columns that may be bought are read.
    terms : Terms
        The budget, the neighbour relation and the public size.
    coding : Coding or None, default=None
        How numbers are cut; by default ``Coding()``.
    n_threads : int or None, default=None
        Number of threads for streams.
    models : int, default=1
        Number of models that share the budget, one for each of several classes.
    is_pure : callable (Recipe) -> bool or None, default=None
        Whether a delta is left unused, by the recipe with it; by default it is not.

    Returns
    -------
    Coded
        The schema and its purchase; without blanks there is none.
    """
    terms.refuse_infinity()
    coding = coding or Coding()
    unsized = _recipe(schema, None, terms, models)
    widest = coded(schema, coding, replace(unsized, depth=unsized.depth or 1, hashes=0))
    sums = BlankRows.sums(X, widest, n_threads)
    size = terms.size(sums)
    recipe, terms = ruled(schema, size, terms, models, is_pure)
    recipe = coding.changed(recipe)
    chosen = coded(schema, coding, recipe)
    if not chosen.has_blanks:
        return Coded(chosen, recipe, None, terms, size)
    plan = BlankPlan.shared(
        chosen, terms.budget, terms.neighbours, recipe.depth, recipe.cut_share or SHARE,
        recipe.category_share, recipe.span_share or SHARE,
    )  # fmt: skip
    return Coded(chosen, recipe, Purchase(chosen, sums, plan, plan.rest(terms.budget)), terms, size)


def ruled(
    schema: Schema,
    size: int | None,
    terms: Terms,
    models: int,
    is_pure: Callable[[Recipe], bool] | None = None,
) -> tuple[Recipe, Terms]:
    """The public rule for this number of records, and the terms that it is for.

    Numbers are cut coarsely only where the solver is open, and may be one that counts levels.

    Parameters
    ----------
    schema : Schema
        The declared columns.
    size : int or None
        The public number of records.
    terms : Terms
        The budget and the neighbour relation.
    models : int
        How many models share the budget.
    is_pure : callable (Recipe) -> bool or None, default=None
        Whether a delta is left unused, by the recipe with it; by default it is not, and the solver
        is not open.

    Returns
    -------
    recipe : Recipe
        The rule.
    terms : Terms
        The same, without a delta that is left unused.
    """
    recipe = _recipe(schema, size, terms, models)
    if terms.delta and is_pure is not None and is_pure(recipe):
        terms = replace(terms, delta=0.0)
        recipe = _recipe(schema, size, terms, models)
    return replace(recipe, coarse=recipe.coarse and is_pure is not None), terms


def _recipe(schema: Schema, size: int | None, terms: Terms, models: int) -> Recipe:
    """The public rule for these terms."""
    budget = terms.budget
    numbers = [column for column in schema.columns.values() if column.holds_numbers]
    counts = len(schema.columns), len(numbers)
    ranged = sum(column.has_range for column in numbers)
    if not budget.delta:
        return Recipe.pure(size, budget.epsilon / models, terms.neighbours, *counts, ranged)
    mu = gaussian_left(budget) / math.sqrt(models)
    return Recipe.of(size, mu, terms.neighbours, *counts, ranged=ranged)
