"""How much memory linear models take at most, beside their records: a public bound.

The public rule says how many functions a number gets, and how often it is cut; so the bound of an
additive model follows from the declared columns, the budget and the public number of records. Where
that number is public but not known before records are read, the least bound over all numbers is
asked for first, the largest is kept free of blocks, and the bound itself is asked for when records
are counted.

Matrices are those of one model at a time. What is released of each model is kept until the fit
ends, so that it counts once for each class.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from privfit._kernels import threads
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.validation import is_finite, is_whole
from privfit.domains import Domain, Numeric, Schema
from privfit.domains.columns import Column
from privfit.domains.hashing import BUCKETS
from privfit.domains.scales import CUTS, MOST_DIMENSIONS
from privfit.linear.additive import KEPT_NUMBERS
from privfit.linear.coding import Coding, coded, ruled
from privfit.linear.descent import WIDEST_WHITENED, Gradient
from privfit.linear.evidence import Evidence
from privfit.linear.recipe import Recipe
from privfit.linear.select_refine import SelectRefine
from privfit.objectives.clipping import OF_THREAD
from privfit.objectives.features import BESIDE_LINE, WIDEST, most_bytes
from privfit.privacy.ledger import Ledger
from privfit.records.packing import MAX_RECORDS
from privfit.runs.blanks import USUAL_LEVELS, most_bins
from privfit.runs.noise import MOST as MOST_NUMBERS
from privfit.runs.payment import Terms

__all__ = ["most_room", "most_shape", "room_of", "solver_room"]

STEP = 1.1  # between numbers of records that are tried
# Matrices (columns, columns) that a descent holds at a time: where it whitens by second moments,
# and where it does not.
MOMENTS, PLAIN = 14, 5
# What is kept of a model: the weights after each step, of which no rule of a descent makes more
# than `LONGEST`, and a few rows beside them; and what its release lists, its weights, their errors
# and directions of noise. Bytes of such a number, in an array and as an object in a list; and those
# of the texts and lists that a budget file makes of it.
LONGEST, BESIDE = 64, 4
LISTED, FILED = 40, 120


def room_of(
    schema: Schema,
    terms: Terms,
    solver_of: Callable[[Recipe, float, int | None], tuple[str, Any, bool]],
    coding: Coding,
    models: int,
    is_pure: Callable[[Recipe], bool] | None = None,
    n_threads: int | None = None,
) -> tuple[int, int]:
    """The least and the most bytes that a model may take, as far as they are known unread.

    Parameters
    ----------
    schema : Schema
        The declared columns, which may have blanks.
    terms : Terms
        The budget, the neighbour relation and the public number of records, if it is declared.
    solver_of : callable (Recipe, float, int or None) -> (str, settings, bool)
        The solver by the recipe, the delta that is used and the number of records, and whether its
        columns are coded.
    coding : Coding
        How numbers are cut.
    models : int
        How many models share the budget.
    is_pure : callable (Recipe) -> bool or None, default=None
        Whether a delta is left unused, by the recipe with it; by default it is not.
    n_threads : int or None, default=None
        Number of threads.

    Returns
    -------
    least, most : int
        The same if the number of records does not matter, or is declared.
    """
    sizes: list[int | None] = [terms.n_public]
    if terms.n_public is None and terms.neighbours.replaces:
        count = math.ceil(math.log(MAX_RECORDS) / math.log(STEP))
        sizes = [math.ceil(STEP**i) for i in range(count + 1)]
    found: dict[Any, int] = {}
    for size in sizes:
        recipe, used = ruled(schema, size, terms, models, is_pure)
        recipe = coding.changed(recipe)
        _, settings, codes = solver_of(recipe, used.delta, size)
        if not codes:  # columns stay as they are declared
            found[type(settings)] = solver_room(schema, settings, used, models, n_threads)
            continue
        followed = settings.following(recipe)
        counts = recipe.depth, recipe.beside, recipe.hashes, recipe.public, recipe.learned
        others = recipe.straight, recipe.span_share > 0, recipe.coarse, recipe.steps
        key = *counts, *others, type(followed)
        if key not in found:
            whole = coded(schema, coding, recipe)
            found[key] = most_room(whole, followed, recipe, terms, models)
    return min(found.values()), max(found.values())


def most_room(schema: Schema, settings: Any, recipe: Recipe, terms: Terms, models: int) -> int:
    """The bytes that the models of a coded schema take at most.

    Parameters
    ----------
    schema : Schema
        The coded columns, of which some are to be bought.
    settings : Additive, Evidence or ObjectivePerturbation
        The solver, which follows the recipe.
    recipe : Recipe
        The public rule.
    terms : Terms
        What is declared of the budget: a budget file holds the release, too.
    models : int
        How many models share the budget.

    Returns
    -------
    int
        An upper bound.
    """
    if isinstance(settings, Evidence):  # a few numbers of each level
        levels = sum(_levels_of(one, recipe) if one.holds_numbers else _of_category(one)
                     for one in schema.columns.values())  # fmt: skip
        return models * _kept(levels, settings, 0, terms)
    coordinates, levels = most_shape(schema, settings, recipe)
    kept = _kept(levels, settings, KEPT_NUMBERS, terms)
    return most_bytes(coordinates, levels) + models * kept


def _kept(width: int, settings: Any, directions: int, terms: Terms) -> int:
    """The bytes that are kept of a model until the fit ends; of its noise, so many numbers."""
    rows = _path_rows(settings) + BESIDE
    listed = 2 * (width + 1) + min(width * (width + 1) // 2, directions)
    is_filed = terms.ledger is not None and type(terms.ledger) is not Ledger
    each = LISTED + (FILED if is_filed else 0)
    return 8 * (width + 1) * rows + listed * each


def _path_rows(settings: Any) -> int:
    """How many rows of one number a weight a path has, as far as they are declared."""
    if isinstance(settings, SelectRefine):
        return _path_rows(settings.select) + _path_rows(settings.refine)
    names = ("steps", "generations", "survivors")
    found = [getattr(settings, name) for name in names if hasattr(settings, name)]
    return math.prod(max(one, 1) if is_whole(one) else LONGEST for one in found)


def most_shape(schema: Schema, settings: Any, recipe: Recipe) -> tuple[int, int]:
    """The most coordinates of records, and the most levels of all columns.

    Parameters
    ----------
    schema : Schema
        The coded columns, of which some are to be bought.
    settings : Additive or ObjectivePerturbation
        The solver, which follows the recipe.
    recipe : Recipe
        The public rule.

    Returns
    -------
    coordinates, levels : int
        The intercept's coordinate is the last.
    """
    columns = schema.columns.values()
    shapes = [_of_number(one, settings, recipe) for one in columns if one.holds_numbers]
    coordinates, levels = (sum(some) for some in zip((0, 0), *shapes, strict=True))
    listed = sum(_of_category(one) for one in columns if not one.holds_numbers)
    listed = min(listed, WIDEST)  # of bought ones no more are kept than fit beside the others
    return min(coordinates + listed, WIDEST) + 1, levels + listed


def _of_category(column: Column) -> int:
    return BUCKETS + 1 if column.is_blank else column.width


def _levels_of(column: Numeric, recipe: Recipe) -> int:
    """The most levels of a number; one that is bought has one more for missing values."""
    if not column.is_blank:
        return column.width
    of_scale = len(CUTS) if column.scale is not None else 0
    return _most_bins(column, recipe.depth) + 1 + of_scale


def _of_number(column: Numeric, settings: Any, recipe: Recipe) -> tuple[int, int]:
    """The most coordinates and levels of a number: functions of the scale, of bins, and a line."""
    levels = _levels_of(column, recipe)
    public, learned = _functions(settings, recipe)
    most = 1 if column.is_blank else column.missing
    if column.has_range and getattr(settings, "straight", None):
        public, learned = min(public, BESIDE_LINE), min(learned, BESIDE_LINE)
        most += 1
    if column.scale is not None:
        most += min(public, MOST_DIMENSIONS)
    if column.bins:
        most += learned
    return min(most, levels), levels


def _functions(settings: Any, recipe: Recipe) -> tuple[int, int]:
    """The most functions of the scale and of bins."""
    functions = getattr(settings, "functions", None)
    if functions is not None:
        return functions, functions
    return settings.public or recipe.public, settings.learned or recipe.learned


def solver_room(
    domain: Domain, settings: Any, terms: Terms, models: int, n_threads: int | None
) -> int:
    """The bytes that a solver takes at most for models of all coded columns, beside records.

    Parameters
    ----------
    domain : Domain
        The declared columns, which may have blanks.
    settings : object
        The solver.
    terms : Terms
        The budget of the fit.
    models : int
        How many models share the budget.
    n_threads : int or None
        Number of threads, each of which adds up second moments of its own.

    Returns
    -------
    int
        An upper bound, but for long paths whose lengths follow from the number of records.
    """
    columns = domain.declared_columns.values()
    width = sum(_most_width(column) for column in columns)
    if not columns:
        with suppress(DeclarationError):  # a box may not know its columns before it sees records
            width = domain.width
    kept = models * _kept(width, settings, MOST_NUMBERS, terms)
    return kept + _matrices(domain, settings, terms.delta, width, n_threads)


def _matrices(
    domain: Domain, settings: Any, delta: float, width: int, n_threads: int | None
) -> int:
    """The bytes that a solver takes while it fits one model of so many coded columns."""
    at_once = threads.resolve(n_threads)
    if not isinstance(settings, Gradient):
        return _held(settings.rows_held(width + 1, at_once), width)
    sure = not any(column.is_blank for column in domain.declared_columns.values())
    most = {None: WIDEST_WHITENED if delta else 0, True: WIDEST, False: 0}[settings.whiten]
    copies = MOMENTS + OF_THREAD * (at_once - 1)
    whitened = 0 if sure and width > most else copies * (min(width, most) + 1) ** 2
    plain = 0 if settings.whiten or (sure and width <= most) else PLAIN * (width + 1) ** 2
    return int(8 * max(whitened, plain))


def _held(rows: Any, width: int) -> int:
    """The bytes of the rows that a solver, which may be a user's, says that it holds."""
    if is_finite(rows) and 0 <= (size := 8 * (width + 1) * float(rows)) < math.inf:
        return math.ceil(size)
    raise DeclarationTypeError(
        f"rows_held ({rows!r}) of the solver must return a number of rows, 0 or more; leave it "
        "out, or correct it"
    )


def _most_width(column: Any) -> int:
    """The most coded columns of a column, in a fit without a coding."""
    if not column.is_blank:
        return column.width
    if not column.holds_numbers:
        return BUCKETS + 1
    return _most_bins(column, USUAL_LEVELS) + 1


def _most_bins(column: Any, depth: int) -> int:
    """The most bins that a blank number gets, by bought cuts or within a bought range."""
    return most_bins(depth) if column.bins == "auto" else int(column.bins or 1)
