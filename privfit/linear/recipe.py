"""The public rule of additive models: every number that a fit needs, chosen by its signal.

**Signal.** s = n mu / (columns changes): the number of records, times the Gaussian parameter of the
whole budget, for each column of the *table* (not for each coded one), and halved under 'replace',
where neighbours differ in two records. It says how far one column's curve stands above the noise.
mu counts for at most .9: from there on records differ by chance more than noise hides them, so that
more budget bears no finer curves. Records are never looked at. Where their number is not public, s
is taken to be 100.

==================  ===========  =========  =========  =============  ==============================
rule                s < 50       s < 150    s < 500    more           because
==================  ===========  =========  =========  =============  ==============================
cuts are bought     no           from 80    yes        yes            below they cost more than they
                                                                      show; spans may do
share of cuts       0            .1         .1         .3             a high signal leaves budget
                                                                      for finer cuts
metric              block        block      full       full           at a low signal noise drowns
                                                                      products of columns
share of moments    .05          .05        .1         .1             anything from .05 to .3 does
floor               16           8          .6         .3             in units of the noise of
                                                                      gradients (block), of moments
steps               24           48         32         32; from 1000  more signal bears more steps,
                                                       on 48          each with more noise
clip                .4           .4         .7 sqrt(s / 250), from    clipping biases probabilities:
                                            .7 to 1.5                 less where there is less noise
fastest step        1.5          1.5        max(1.5, 2.4 / clip)      longer steps oscillate under
                                                                      the block metric
mean of the last    3/4          3/4        3/4        3/4; from      a path that is near its end
                                                       1000 on 1/2    needs no early steps
caution             4            4          4          4; from        weights are shrunk for so many
                                                       1000 on 1      times their variance
weak labels         0            0          .2         .2             R^2 below which the floor is
                                                                      raised
calibration slope   .75          .75        .85        .95            what clipping leaves of slopes
==================  ===========  =========  =========  =============  ==============================

*Wide tables of numbers*, at least 15 and more than half of all columns, have rules of their own
below s = 12, where the curves of so many columns cannot each be told from noise: 5 functions of the
smoother public scale, block moments that are pooled over numbers, steps of at most .7, the mean of
the last half, and a calibration that expects a slope of .85 and an intercept of 0 +- .3. With 30
numbers or more it expects a slope of 1.1 +- .5, as it was in generated tables: paths end before
scores of classes that are far apart are large enough, and noise makes those of others too large.
Unless they are crowded, their caution is 1.

*The slope* of a calibration is expected with an error of s / 50, at least .25 (.3 in wide tables)
and at most 1: the higher the signal, the more precise are the sums that a calibration buys.

*Crowded tables* are wide ones where at least 30 numbers, more than half of all columns, have a
declared range. These have even fewer functions: a straight line over the range, which has .6 of the
squared length of a row, and one function of the scale beside it, which tells 0 from the rest. Their
floor is 10, and their clip .6 from s = 3 on.

*Spans*: where no cuts are bought, numbers without a range are cut equally where they lie, for as
much of mu^2 as counts their cells (`privfit.runs.spans`) with a standard deviation of a hundredth
of all records, but no more than .1. Nothing is bought if that leaves more than three hundredths, in
wide tables, or with 30 numbers.

*Bins beside the scale*: where no cuts are bought, a declared range has 32 equal bins as well, which
tell apart what is in one cell of the scale; a span has as many. With as many ranges as crowded
tables have, whatever the signal, and under a pure budget, only ranges of fewer than 8 cells have
bins, 16 of them.

*Dimensions* of a number: D = 2.5 sqrt(n mu / changes) / numbers, within [8, 48], or up to 80 from
s = 2000 on, but never so many that numbers have more than 2,048 functions together. Of them 8 are
functions of the public scale, or half of them below 16, and the others functions of its own cuts.
Where nothing is bought (s < 80) either kind has 8. *Depth* and *mixing*, the part of the kernel of
cuts that is smooth, follow from D: 3 and .6 below 14, 4 and .5 up to 28, 5 and .3 up to 48, 6 and
.3 above. More cuts are finer than the kernel should be smooth.

*Counts*: at a pure signal from 12 to 200, or to 300 if the range of every number is declared, a
table of fewer than 30 numbers is counted, level by level and class by class
(`privfit.linear.evidence`), and its numbers are cut at powers of ten, with fewer than 15 numbers
also at three times these, and at quarters of their ranges: each count has the noise of a record, so
that few cells are best.

*The level*: a table with numbers that is not counted buys its intercept by itself below a pure
signal of 25, for an epsilon of 80 changes / n. Where that is more than half of the budget, or below
2^-20, it buys nothing else, and counts nothing.

*Categories* that are to be bought get a share of .1. As shares of cuts, it is multiplied by the
part of all columns that it is for.

The rules were chosen on Adult, Credit Default, Mushroom and generated tables at delta 1e-6, from
epsilon .1 to 10 (docs/additive.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypedDict, TypeVar

from privfit.domains.scales import SMOOTH, SMOOTHEST
from privfit.privacy.neighbours import Neighbours

__all__ = ["Metric", "Recipe"]

Metric: TypeAlias = Literal["block", "full"]

USUAL_SIGNAL = 100.0  # where the number of records is not public
MOST_MU = 0.9  # that counts in a signal: beyond, sampling is what limits a fit
LEAST_CUT = 80.0  # the signal from which cuts are bought
SPAN_SHARE = 0.1  # of mu^2, at most
SPAN_ERROR, MOST_SPAN_ERROR = 0.01, 0.03  # of a cell's count, as a part of all records
LEAST_FULL = 150.0  # from which all products of columns are bought
HIGH, HIGHER, HIGHEST = 500.0, 1000.0, 2000.0
FEWEST, MANY, MOST = 8, 48, 80  # dimensions of a number; the most from the highest signal on
ROOM = 2048  # for the dimensions of all numbers
PUBLIC = 8  # of them, functions of the public scale
LEAST_APART = 12.0  # the signal below which wide tables have rules of their own
CROWDED = 30  # numbers with a declared range of a crowded table, or numbers of a very wide one
CROWDED_FLOOR, CROWDED_CLIP, LEAST_CROWDED_CLIP = 10.0, 0.6, 3.0  # the last is a signal
STRAIGHT = 0.6  # of the squared length of a row, for a straight line
BINS_BESIDE = 32  # of equal width, beside the scale within a declared range
LET_GO, LOOSEST = 50.0, 1.0  # the signal at which a prior on a slope is as wide as it gets
WIDE, WIDE_PUBLIC = 15, 5  # numbers of a wide table, and functions of each
WIDE_SLOPE, WIDEST_SLOPE = 0.85, 1.1
USUAL_ERROR, WIDE_ERROR, WIDEST_ERROR = 0.25, 0.3, 0.5  # of a slope that is expected
BLOCK_FLOOR = 8.0
FASTEST, FASTEST_WIDE = 1.5, 0.7  # steps under the block metric
WEAK = 0.2
PURE_LOW = 200.0  # the signal of a pure budget below which nothing is bought
PURE_RANGED = 300.0  # the same where ranges are known, below which levels are counted
PURE_CUT, PURE_DEPTH = 500.0, 2  # n epsilon / numbers^2 from which numbers are cut, and how deep
PURE_HASHES = 16
PURE_LEAST, PURE_FEWEST = 20.0, 4  # the signal below which the intercept is all there is
LEAST_SHARED = 25.0  # the signal of a pure budget below which the intercept is bought by itself
LEVELLED, LEVELLED_MOST = 80.0, 0.5  # for n epsilon / changes of so much; no larger share
LEAST_EPSILON = 2.0**-20  # of levels and counts: for less there may be no noise of 64 bits

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Recipe:
    """The settings of an additive fit, all of them functions of public numbers.

    Parameters
    ----------
    signal : float
        How far a column stands above the noise.
    dimensions : int
        Functions of a number, public and learned.
    public, learned : int
        The most functions of a number's public scale, and of its own cuts.
    depth : int
        Levels of medians that cut a number; 0 if no cuts are bought.
    mixing : float
        The part of the kernel of cuts that is smooth; the rest tells single bins apart.
    cut_share, span_share, category_share : float
        Fractions of mu^2 that buy cuts, spans and categories, were all columns bought.
    metric : {'block', 'full'}
        Whether second moments are bought of each column by itself, or of all together.
    moments : float
        Fraction of mu^2 that buys them.
    floor : float
        What is added to their eigenvalues, in units of noise.
    steps : int
        Number of steps.
    clip : float
        Bound on gradients, as a fraction of their expected length at the start.
    fastest : float
        The longest step, in units of what the curvature of a whitened loss allows.
    smooth : float
        Decades over which functions of the public scale are smooth.
    straight : float
        The part of a row's squared length for a straight line, in columns with a declared range.
    beside : int
        Equal bins beside the public scale of a declared range; 0 for narrow ranges alone.
    pool : bool
        Whether block moments are pooled over numbers with the same table: the rule of wide tables.
    average : float
        The part of the path whose mean is taken.
    caution : float
        How many times their variance weights are shrunk for.
    weak : float
        The strength of labels (R^2) below which the floor is raised; 0 for never.
    slope, slope_error, intercept_error : float
        The slope that a calibration expects, and how far it and the intercept may be off.
    hashes : int, default=0
        Public buckets that blank categories are hashed into for nothing; 0 if they are bought.
    level : float, default=0
        Fraction of a pure budget that buys the intercept by itself; at 1 nothing else is fitted.
    coarse : bool, default=False
        Whether levels are counted and numbers cut coarsely, under a pure budget.
    per_decade : int, default=1
        Cuts of a decade, where numbers are cut coarsely: 1 or 2.
    """

    signal: float
    dimensions: int
    public: int
    learned: int
    depth: int
    mixing: float
    cut_share: float
    span_share: float
    category_share: float
    metric: Metric
    moments: float
    floor: float
    steps: int
    clip: float
    fastest: float
    smooth: float
    straight: float
    beside: int
    pool: bool
    average: float
    caution: float
    weak: float
    slope: float
    slope_error: float
    intercept_error: float
    hashes: int = 0
    level: float = 0.0
    coarse: bool = False
    per_decade: int = 1

    @classmethod
    def of(
        cls,
        size: int | None,
        mu: float,
        neighbours: Neighbours,
        columns: int,
        numbers: int,
        metric: Metric | None = None,
        pool: bool | None = None,
        ranged: int = 0,
    ) -> Recipe:
        """The recipe of a table.

        Parameters
        ----------
        size : int or None
            The public number of records; None if there is none.
        mu : float
            The Gaussian parameter of the whole budget of one model.
        neighbours : Neighbours
            The neighbour relation.
        columns : int
            The number of columns of the table.
        numbers : int
            How many of them are numbers.
        metric : {'block', 'full'} or None, default=None
            The metric, if another rule chose it; what it needs follows.
        pool : bool or None, default=None
            Whether the table counts as a wide one, if another rule chose it.
        ranged : int, default=0
            How many of the numbers have a declared range.

        Returns
        -------
        Recipe
            The settings.

        Examples
        --------
        >>> from privfit.linear.recipe import Recipe
        >>> from privfit.privacy.neighbours import ADD_REMOVE
        >>> recipe = Recipe.of(39_000, 0.25, ADD_REMOVE, columns=14, numbers=6)
        >>> round(recipe.signal), recipe.depth, recipe.metric, recipe.steps
        (696, 5, 'full', 32)
        """
        signal = _signal(size, min(mu, MOST_MU), columns, neighbours)
        return cls._by_signal(signal, neighbours, columns, numbers, metric, pool, ranged)

    @classmethod
    def _by_signal(
        cls,
        signal: float,
        neighbours: Neighbours,
        columns: int,
        numbers: int,
        metric: Metric | None,
        pool: bool | None,
        ranged: int,
    ) -> Recipe:
        """The recipe of a table with this signal."""
        full = signal >= LEAST_FULL if metric is None else metric == "full"
        crowd = ranged >= CROWDED and 2 * ranged > columns
        wide = not full and signal < LEAST_APART and numbers >= WIDE and 2 * numbers > columns
        wide = wide if pool is None else pool
        crowded = wide and crowd
        widest = wide and numbers >= CROWDED
        clip = _clip(signal, crowded)
        return cls(
            signal=signal,
            **_sizes(signal, columns, numbers, wide),
            cut_share=_by(signal, (LEAST_CUT, 0.0), (HIGH, 0.1), (math.inf, 0.3)),
            span_share=0.0 if wide else _span_share(signal, neighbours, columns, numbers, ranged),
            category_share=0.1,
            metric="full" if full else "block",
            moments=0.1 if full else 0.05,
            floor=CROWDED_FLOOR if crowded else _floor(signal, full),
            steps=_by(signal, (50, 24), (LEAST_FULL, 48), (HIGHER, 32), (math.inf, 48)),
            clip=clip,
            fastest=fastest(clip, full, wide),
            smooth=SMOOTHEST if wide else SMOOTH,
            straight=STRAIGHT if crowded else 0.0,
            beside=0 if crowd else BINS_BESIDE,
            pool=wide,
            average=0.5 if wide or signal >= HIGHER else 0.75,
            caution=1.0 if (widest and not crowd) or signal >= HIGHER else 4.0,
            weak=WEAK if full else 0.0,
            slope=_slope(signal, wide, widest),
            slope_error=_slope_error(signal, wide, widest),
            intercept_error=0.3 if wide else 0.1,
        )

    @classmethod
    def pure(
        cls,
        size: int | None,
        epsilon: float,
        neighbours: Neighbours,
        columns: int,
        numbers: int,
        ranged: int = 0,
    ) -> Recipe:
        """The recipe of a table and a pure budget, for objective perturbation.

        Parameters
        ----------
        size : int or None
            The public number of records; None if there is none.
        epsilon : float
            The whole budget of one model.
        neighbours : Neighbours
            The neighbour relation.
        columns : int
            The number of columns of the table.
        numbers : int
            How many of them are numbers.
        ranged : int, default=0
            How many of the numbers have a declared range.

        Returns
        -------
        Recipe
            The settings; those of a descent mean nothing here.

        Examples
        --------
        >>> from privfit.linear.recipe import Recipe
        >>> from privfit.privacy.neighbours import ADD_REMOVE
        >>> recipe = Recipe.pure(39_000, 1.0, ADD_REMOVE, columns=14, numbers=6)
        >>> recipe.public, recipe.depth, recipe.hashes
        (8, 2, 0)
        """
        signal = _signal(size, epsilon, columns, neighbours)
        usual = cls._by_signal(signal, neighbours, columns, numbers, None, None, 0)
        low = usual.signal < PURE_LOW
        wide = low and numbers >= WIDE and 2 * numbers > columns
        of_numbers = usual.signal * columns / max(1, numbers) ** 2
        depth = 0 if low or of_numbers < PURE_CUT else PURE_DEPTH
        public = WIDE_PUBLIC if wide else PUBLIC
        hashes = PURE_HASHES if low else 0
        level = _level(usual.signal, columns, epsilon) if numbers else 0.0
        counts = LEAST_APART <= usual.signal < (PURE_RANGED if ranged == numbers else PURE_LOW)
        counted = size is not None and counts and level < 1
        coarse = counted and epsilon >= LEAST_EPSILON and 0 < numbers < CROWDED
        if usual.signal < PURE_LEAST:
            public, hashes, wide = PURE_FEWEST, PURE_FEWEST, True
        return replace(
            usual,
            dimensions=public + (PUBLIC if depth else 0),
            public=public,
            learned=PUBLIC,
            depth=depth,
            mixing=0.6,
            cut_share=0.1 if depth else 0.0,
            span_share=0.0,
            smooth=SMOOTHEST if wide else SMOOTH,
            beside=0,
            hashes=hashes,
            level=level,
            coarse=coarse,
            per_decade=1 if numbers >= WIDE else 2,
        )


def _signal(size: int | None, mu: float, columns: int, neighbours: Neighbours) -> float:
    """How far a column stands above noise of this mu, or of this epsilon."""
    return USUAL_SIGNAL if size is None else size * mu / (columns * neighbours.changes)


def fastest(clip: float, full: bool, pool: bool) -> float:
    """The longest step, in units of what the curvature of a whitened loss allows."""
    if full:
        return max(FASTEST, 2.4 / clip)
    return FASTEST_WIDE if pool else FASTEST


def most_functions(numbers: int) -> int:
    """The most functions of either kind that a number may get, at any signal."""
    return max(PUBLIC, min(MOST, ROOM // max(numbers, 1)))


def _clip(signal: float, crowded: bool) -> float:
    if crowded and signal >= LEAST_CROWDED_CLIP:
        return CROWDED_CLIP
    return 0.4 if signal < LEAST_FULL else min(1.5, max(0.7, 0.7 * math.sqrt(signal / 250)))


def _span_share(
    signal: float, neighbours: Neighbours, columns: int, numbers: int, ranged: int
) -> float:
    """What spans of the numbers without a range cost; 0 if none are bought."""
    unknown, changes = numbers - ranged, neighbours.changes
    if not signal or signal >= LEAST_CUT or numbers >= CROWDED or unknown < 1:
        return 0.0
    of_one = math.sqrt(unknown * changes) / (signal * columns * changes)  # error at a share of 1
    if of_one > MOST_SPAN_ERROR * math.sqrt(SPAN_SHARE):
        return 0.0
    return min(SPAN_SHARE, (of_one / SPAN_ERROR) ** 2) * columns / unknown


def _slope(signal: float, wide: bool, widest: bool) -> float:
    if wide:
        return WIDEST_SLOPE if widest else WIDE_SLOPE
    return _by(signal, (LEAST_FULL, 0.75), (HIGH, 0.85), (math.inf, 0.95))


def _slope_error(signal: float, wide: bool, widest: bool) -> float:
    least = WIDEST_ERROR if widest else WIDE_ERROR if wide else USUAL_ERROR
    return min(LOOSEST, max(least, signal / LET_GO))


def _level(signal: float, columns: int, epsilon: float) -> float:
    """The part of a pure budget that buys an intercept; all of it if little would be left."""
    if not signal or signal >= LEAST_SHARED:  # a fit of nothing is refused later
        return 0.0
    share = LEVELLED / (signal * columns)
    return share if share <= LEVELLED_MOST and share * epsilon >= LEAST_EPSILON else 1.0


def _floor(signal: float, full: bool) -> float:
    if full:
        return 0.6 if signal < HIGH else 0.3
    return 16.0 if signal < 50 else BLOCK_FLOOR


class _Sizes(TypedDict):
    dimensions: int
    public: int
    learned: int
    depth: int
    mixing: float


def _sizes(signal: float, columns: int, numbers: int, wide: bool) -> _Sizes:
    """How many functions a number has, and how it is cut."""
    if signal < LEAST_CUT:
        public = WIDE_PUBLIC if wide else PUBLIC
        return _Sizes(dimensions=public, public=public, learned=PUBLIC, depth=0, mixing=0.6)
    numbers = max(numbers, 1)
    most = min(MOST if signal >= HIGHEST else MANY, most_functions(numbers))
    dimensions = min(most, max(FEWEST, round(2.5 * math.sqrt(signal * columns) / numbers)))
    public = PUBLIC if dimensions >= 2 * PUBLIC else dimensions - dimensions // 2
    return _Sizes(
        dimensions=dimensions,
        public=public,
        learned=dimensions - public,
        depth=_by(dimensions, (14, 3), (29, 4), (MANY + 1, 5), (math.inf, 6)),
        mixing=_by(dimensions, (14, 0.6), (29, 0.5), (math.inf, 0.3)),
    )


def _by(value: float, *steps: tuple[float, N]) -> N:
    """The number of the first step that the value is below, or of the last one."""
    return next((number for end, number in steps if value < end), steps[-1][1])
