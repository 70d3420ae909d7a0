"""Buying the blanks of a schema: a public plan, its price, and the columns that come of it.

A plan depends on the declared columns, the budget, the relation and the public number of records
alone. What is bought:

- **cuts**, by recursive private medians. All segments of a level are one selection
  (`privacy.quantiles`). A segment of keys is cut at a key c into three: the keys below c, the
  places inside c, and the keys above. The inside is cut further by places, so that ties, and
  columns whose numbers differ little, can be cut as well. A cut at a key has two sides, so that a
  value that many records share becomes a bin of its own; so has one inside a key if it is a number
  of few digits, as shared values are. Segments with few records are left without a cut, and equal
  cuts are dropped. A column without any is one bin, or two that meet at 0 if it has no range;
- **ranges**, by two quantiles, 1/100 and 99/100, of all keys;
- **spans** of numbers that have a scale and a number of bins: noisy counts of coarse cells
  (`runs.spans`). One record counts in one cell of each of d such columns: l1 d and l2 sqrt(d) if it
  is added or removed, 2 d and sqrt(2 d) if it is replaced;
- **buckets** of hashed categories: noisy counts of all 1,024 of each column, also the empty ones; a
  bucket of at least 2.5 standard deviations of the noise is kept. One record counts in d buckets, d
  columns: l1 d and l2 sqrt(d) if it is added or removed, 2 d and sqrt(2 d) if it is replaced;
- **names** of categories, by `privacy.names`.

A solver may have *room* for so many levels alone, a public number. Then buckets with the largest
noisy counts are kept, and of the names of each column the first ones: post-processing.

**Shares.** With delta > 0, each blank column gets an equal share of the cost as Gaussian noise has
it (mu^2): a selection of epsilon_s counts as mu = epsilon_s / 2, a release of a pure epsilon as
mu = epsilon, and all of them are scaled until the accountant, which composes them tightly, sees
that they fit. Half of delta pays for names, if there are any. With delta = 0, epsilon is shared
equally by the columns. Within a column's share, its selections are equal.

**Shares of a coding** (`BlankPlan.shared`): numbers that are cut get a part of mu^2 of the whole
budget, blank categories another, and spans a third, each times the part of all columns that they
are. With delta = 0, they are parts of epsilon.

**Ranks** of cuts are assumed, and public: nothing is counted. A segment of mass m that is cut at a
key leaves (1 - p) / 2 of it below, p inside and the rest above, p = 0.1; so does a cut of two sides
inside a key. One of a single side leaves half on either side, and a segment that is not cut keeps
its mass. The rank of a cut is the mass below it, as a part of the mass of all bins that there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE, BELOW, rounded_down
from privfit.base.typing import Flags, Integers
from privfit.base.validation import is_whole
from privfit.domains.columns import Categorical, Column, Numeric
from privfit.domains.keys import (
    KEYS,
    ZERO,
    favoured,
    first_place,
    key_of,
    number_at,
    places,
    written,
)
from privfit.domains.reading import NumberReader
from privfit.domains.schema import Schema
from privfit.privacy.accounting import Event, compose, gaussian_total
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Releasing
from privfit.privacy.names import NameSet, NoisyNames, Unlikely
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.quantiles import Segment, SegmentQuantiles
from privfit.privacy.remainder import epsilon_left, gaussian_left
from privfit.records.blanks import BlankRows, Blanks
from privfit.records.sums import Sums
from privfit.runs.spans import cell_counts, span_of, spanned

__all__ = ["BlankPlan"]

MOST_LEVELS = 8
USUAL_LEVELS = 3  # at most, by rule: 25 bins
FEW = 3  # named columns up to which the optimal rule for sets is better than Gaussian counts
NAMES_DELTA = 0.5  # share of delta for names
SHARE = 0.1  # of mu^2 for the blanks of a fit, if all its columns have some
PURE_SHARE = 0.2  # the same of epsilon, if delta = 0
BAR = 2.5  # standard deviations of noise from which a bucket is kept
PURE_BAR = 4.0  # the same in a coding, if delta = 0: Laplace noise has longer tails
OUTER = 100  # ranges are from the quantile 1 / OUTER to (OUTER - 1) / OUTER
STAND_IN = 32  # buckets of a column before they are bought
SHARES = 10_000  # to which parts of all records are rounded down
DIGITS = 5  # of a number that many records may share; one at random has eight or nine
INSIDE_MASS = 0.1  # part of a segment's mass that is assumed inside the key that cuts it
FARTHEST = 2.0**127  # end of a range: beyond, the last steps of float32 are not finite
RANK_DIGITS = 6  # a bin is assumed to have a ten-thousandth at least
STEPS = 700  # sizes of a plan from one power of two to the next
SMALLEST = -40 * STEPS


@dataclass(frozen=True)
class BlankPlan:
    """What is bought of a schema, and with which mechanisms; all of it is public.

    Parameters
    ----------
    blanks : Blanks
        The blank columns.
    neighbours : Neighbours
        The neighbour relation.
    levels : int
        The number of levels of medians.
    selection : float
        The epsilon of each selection; 0 if there is none.
    counts : Counts or None
        How the counts of the buckets of all hashed columns are bought.
    names : NameSet, NoisyNames or None
        How names are bought: column by column, or all at once.
    ranked : bool, default=False
        Whether cuts come with their assumed ranks, for a coding.
    room : int or None, default=None
        The most buckets and names of all columns together that are kept; None for all.
    bar : float, default=2.5
        Standard deviations of noise from which a bucket is kept.
    spans : Counts or None, default=None
        How the counts of the cells of all spans are bought.
    """

    blanks: Blanks
    neighbours: Neighbours
    levels: int
    selection: float
    counts: Counts | None
    names: NameSet | NoisyNames | None
    ranked: bool = False
    room: int | None = None
    bar: float = BAR
    spans: Counts | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        budget: Budget,
        neighbours: Neighbours,
        size: int | None = None,
        levels: int | None = None,
    ) -> BlankPlan:
        """The plan that spends the whole budget on the blanks of a schema."""
        blanks = Blanks.of(schema)
        _check(blanks, budget, levels)
        shares = _Shares.equal(blanks, budget, neighbours)
        depth = shares.usual_levels(size, shares.whole) if levels is None else int(levels)
        if not budget.delta:
            return shares.sized(shares.whole * BELOW, depth)
        return _largest(lambda t: shares.sized(t, depth), budget)

    @classmethod
    def within(
        cls, schema: Schema, budget: Budget, neighbours: Neighbours, size: int | None
    ) -> BlankPlan:
        """The plan of a fit that buys the blanks of its schema from its own budget."""
        blanks = Blanks.of(schema)
        _check(blanks, budget, None)
        shares = _Shares.equal(blanks, budget, neighbours)
        part = shares.columns / len(schema.columns)
        part = math.sqrt(SHARE * part) if budget.delta else PURE_SHARE * part
        t = shares.whole * part
        return shares.sized(t, shares.usual_levels(size, t))

    @classmethod
    def shared(
        cls,
        schema: Schema,
        budget: Budget,
        neighbours: Neighbours,
        levels: int,
        of_cuts: float,
        of_categories: float,
        of_spans: float = SHARE,
    ) -> BlankPlan:
        """The plan of a fit whose coding says how deep numbers are cut, and for how much.

        `of_cuts`, `of_categories` and `of_spans` are parts of mu^2, were all columns bought; a pure
        budget has a part of its own.
        """
        blanks = Blanks.of(schema)
        _check(blanks, budget, None)
        parts = (of_cuts, of_categories, of_spans) if budget.delta else 3 * (PURE_SHARE,)
        shares = _Shares(blanks, budget, neighbours, len(schema.columns), *parts, ranked=True)
        return replace(shares.sized(shares.whole, levels), bar=BAR if budget.delta else PURE_BAR)

    @property
    def events(self) -> tuple[Event, ...]:
        """What everything costs."""
        found = []
        if self.selection:
            found.append(Event("selection", self.selection, self._selections))
        found += [one.noise.event for one in (self.spans, self.counts) if one is not None]
        if isinstance(self.names, NameSet):
            one = self.names.event
            found.append(Event(one.kind, one.parameter, len(self.blanks.named), one.delta))
        elif self.names is not None:
            found += [Unlikely(self.names).event, self.names.event]
        return tuple(found)

    def rest(self, budget: Budget) -> Budget:
        """What this plan leaves of a budget, for draws that are Gaussian if delta > 0."""
        if not budget.delta:
            return Budget(epsilon_left(budget.epsilon, *self.events))
        spent = sum((event.count * Fraction(event.delta) for event in self.events), Fraction(0))
        delta = rounded_down(Fraction(budget.delta) - spent)
        mu = self.mu_left(budget)
        epsilon = gaussian_total(mu, delta)
        while gaussian_left(Budget(epsilon, delta)) > mu:  # the accountant rounds up
            epsilon *= 1 - 2.0**-26
        return Budget(epsilon, delta)

    def enclosed(self, budget: Budget, leaves_delta: bool = False) -> Budget:
        """What this plan leaves of a budget with delta > 0, for draws of any kind.

        They are one (epsilon, delta) release to the plan, with half of the delta that is left, or
        without any, and with the largest epsilon, to one part in 1000, that the accountant sees
        fit. It is 0 if none is found.
        """
        spent = sum((event.count * Fraction(event.delta) for event in self.events), Fraction(0))
        delta = 0.0 if leaves_delta else rounded_down((Fraction(budget.delta) - spent) / 2)

        def fits(epsilon: float) -> bool:
            later = Event("approximate", epsilon, 1, delta)
            return compose([*self.events, later], budget.delta) <= budget.epsilon

        low, high = budget.epsilon / 2, budget.epsilon
        while not fits(low):
            low, high = low / 2, low
            if low < budget.epsilon / 1000:
                return Budget(0.0, delta)
        while high > 1.001 * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return Budget(low, delta)

    def mu_left(self, budget: Budget) -> float:
        """The mu of Gaussian draws that fit beside this plan."""
        return gaussian_left(budget, *self.events)

    @property
    def _selections(self) -> int:
        return selections(self.blanks, self.levels)

    @property
    def settings(self) -> dict[str, Any]:
        """What a release records of this plan."""
        said: dict[str, Any] = {}
        if self.blanks.cuts:
            said["levels"] = self.levels
        if self.selection:
            said["selection"] = self.selection
        if self.spans is not None:
            said["spans"] = repr(self.spans)
        if self.counts is not None:
            said |= {"counts": repr(self.counts.noise), "factor": self.counts.factor}
        if self.names is not None:
            said["names"] = repr(self.names)
        return said

    # ------------------------------------------------------------------------------- buying

    def stand_in(self, schema: Schema) -> Schema:
        """A schema without blanks that depends on no record, to check what a fit would refuse."""
        room = STAND_IN if self.room is None else self.room // max(1, len(self.blanks.categories))
        few = Categorical(buckets=range(min(STAND_IN, room)))
        some: dict[str, Column] = {
            **{name: _cut_at(schema.columns[name], []) for name in self.blanks.cuts},
            **{name: spanned(_number(schema, name), (-1.0, 1.0)) for name in self.blanks.spans},
            **{name: _within(_number(schema, name), -1.0, 1.0) for name in self.blanks.ranges},
            **dict.fromkeys(self.blanks.categories, few),
        }
        columns = {name: some.get(name, column) for name, column in schema.columns.items()}
        return Schema(columns, schema.grid, schema.missing)

    def buy(self, schema: Schema, sums: Sums[BlankRows], release: Releasing) -> Schema:
        """The schema with its blanks filled in; `release` was charged for the plan's events."""
        found: dict[str, Column] = dict(self._spanned(schema, sums, release))
        for name in self.blanks.cuts + self.blanks.ranges:
            column = _number(schema, name)
            counts = sums.sum(BlankRows.key_counts, name)
            if name in self.blanks.cuts:
                found[name] = self._cut(name, column, counts, sums, release)
            else:
                found[name] = self._ranged(column, counts, release)
        found |= self._buckets(sums, release) | self._names(sums, release)
        columns = {name: found.get(name, column) for name, column in schema.columns.items()}
        return Schema(columns, schema.grid, schema.missing)

    def _cut(
        self,
        name: str,
        column: Numeric,
        counts: Integers,
        sums: Sums[BlankRows],
        release: Releasing,
    ) -> Numeric:
        """A number with cuts; missing values are a level of their own, unless there is a fill."""
        cutting = Cutting(column, counts, lambda keys: sums.sum(
            BlankRows.inside_counts, name, keys))  # fmt: skip
        medians = SegmentQuantiles(self.selection, self.neighbours, skips=True)
        for _ in range(self.levels):
            segments = cutting.segments()
            if segments:
                cutting.cut(release(medians, segments))
        return _cut_at(column, *(cutting.ranked if self.ranked else (cutting.cuts,)))

    def _ranged(self, column: Numeric, counts: Integers, release: Releasing) -> Numeric:
        """A number with a range."""
        segment, ends = Segment(counts, favoured), []
        for above in (1, OUTER - 1):
            quantile = SegmentQuantiles(
                self.selection, self.neighbours, above, OUTER, several=False
            )
            ends += release(quantile, [segment])
        return _within(
            column, *_wide_enough(first_place(min(ends)), first_place(max(ends) + 1) - 1)
        )

    def _spanned(
        self, schema: Schema, sums: Sums[BlankRows], release: Releasing
    ) -> dict[str, Numeric]:
        """Numbers cut equally where they lie."""
        if self.spans is None:
            return {}
        names = self.blanks.spans
        cells = [cell_counts(sums.sum(BlankRows.key_counts, name)) for name in names]
        noisy = release(self.spans.noise, self.spans.factor * np.array(cells))
        found = [span_of(row, deviation(self.spans.noise)) for row in noisy]
        return {name: spanned(_number(schema, name), span)
                for name, span in zip(names, found, strict=True)}  # fmt: skip

    def _buckets(self, sums: Sums[BlankRows], release: Releasing) -> dict[str, Column]:
        """Hashed categories with the buckets that stand out of the noise."""
        if self.counts is None:
            return {}
        noisy = release(self.counts.noise, self.counts.factor * sums.sum(BlankRows.bucket_counts))
        kept = noisy >= self.bar * deviation(self.counts.noise)
        if self.room is not None:
            kept &= _largest_of(noisy, self.room - self._room_of_names * len(self.blanks.named))
        of_columns = zip(self.blanks.hashed, kept, noisy, strict=True)
        return {name: _hashed(row, counts) for name, row, counts in of_columns}

    def _names(self, sums: Sums[BlankRows], release: Releasing) -> dict[str, Column]:
        """Categories with the names that may be published."""
        if self.names is None:
            return {}
        tallies = sums.sum(BlankRows.name_counts).tolist()
        if isinstance(self.names, NameSet):
            found = [release(self.names, tally) for tally in tallies]
        else:
            release(Unlikely(self.names), tallies)
            found = release(self.names, tallies)
        most = None if self.room is None else self._room_of_names
        return {name: Categorical(_by_value(names)[:most], other=True)
                for name, names in zip(self.blanks.named, found, strict=True)}  # fmt: skip

    @property
    def _room_of_names(self) -> int:
        """How many names of a column are kept: an equal part of the room."""
        return (self.room or 0) // max(1, len(self.blanks.categories))


def _cut_at(column: Any, cuts: list[float], ranks: list[float] | None = None) -> Numeric:
    """The column with these cuts; without any it is one bin, two that meet at 0, or its scale."""
    some: Any = cuts or (0 if column.scale else 1 if column.has_range else [0.0])
    return Numeric(
        column.low, column.high, some, column.fill, missing=column.fill is None,
        scale=column.scale, ranks=ranks or None,
    )  # fmt: skip


def _number(schema: Schema, name: str) -> Numeric:
    column = schema.columns[name]
    assert column.holds_numbers
    return column


def _within(column: Numeric, low: float, high: float) -> Numeric:
    """The column with a range; without bins, missing values are its low end, or the fill."""
    if column.bins:
        return Numeric(low, high, column.bins, column.fill, missing=column.fill is None)
    return Numeric(low, high, fill=low if column.fill is None else column.fill)


def _hashed(kept: Flags, noisy: Integers) -> Categorical:
    """A column of these buckets, with the parts of all records that noisy counts say."""
    counts = np.maximum(noisy[kept], 0).tolist()
    total = max(sum(counts), int(noisy.sum()), 1)
    shares = [count * SHARES // total / SHARES for count in counts]
    return Categorical(buckets=np.flatnonzero(kept).tolist(), shares=shares)


@dataclass(frozen=True)
class Counts:
    """Noise for counts, and the units of 1 on whose grid it is drawn."""

    noise: DiscreteGaussian | DiscreteLaplace
    factor: int = 1


def deviation(noise: DiscreteGaussian | DiscreteLaplace) -> float:
    """The standard deviation of the noise."""
    if isinstance(noise, DiscreteLaplace):
        return math.sqrt(2) * noise.scale
    return math.sqrt(noise.variance)


def _largest_of(noisy: Integers, count: int) -> NDArray[np.bool_]:
    """Which are the largest of all columns; of equal ones the first."""
    order = np.argsort(-noisy, axis=None, kind="stable")[:count]
    largest = np.zeros(noisy.size, dtype=np.bool_)
    largest[order] = True
    return largest.reshape(noisy.shape)


def _by_value(names: list[str]) -> list[str]:
    """Numbers by size, if all are numbers; else texts in their order."""
    numbers = [NumberReader().number(name) for name in names]
    if any(map(math.isnan, numbers)):
        return sorted(names)
    return [name for _, name in sorted(zip(numbers, names, strict=True))]


def _wide_enough(first: int, last: int) -> tuple[float, float]:
    """The numbers at two places; around 0, or around both, where they are no range."""
    low, high = np.clip(number_at(np.array([first, last])), -FARTHEST, FARTHEST).tolist()
    try:
        Numeric(low, high)
    except DeclarationError:
        size = max(abs(low), abs(high), 1.0)
        return -size, size
    return low, high


# ------------------------------------------------------------------------------------- the plan


def selections(blanks: Blanks, levels: int) -> int:
    """How many selections cuts and ranges take."""
    return levels * len(blanks.cuts) + 2 * len(blanks.ranges)


def most_bins(levels: int) -> int:
    """The most bins of so many levels of cuts.

    A segment of keys is cut into two like it and one inside a key, and that into two like it and
    one of a single number.

    >>> [most_bins(levels) for levels in range(4)]
    [1, 3, 9, 25]
    """
    bins = inside = 1
    for _ in range(levels):
        bins, inside = 2 * bins + inside, 2 * inside + 1
    return bins


def _check(blanks: Blanks, budget: Budget, levels: int | None) -> None:
    if not blanks.numbers and not blanks.categories:
        raise DeclarationError(
            "columns must have blanks, or there is nothing to buy; pass kinds such as {'age': "
            "'number', 'job': 'category'}, or blanks such as Numeric() and Categorical()"
        )
    if levels is not None and (not is_whole(levels) or not 1 <= levels <= MOST_LEVELS):
        raise DeclarationError(
            f"levels ({levels!r}) must be a whole number from 1 to {MOST_LEVELS}; leave it out"
        )
    if blanks.named and not budget.delta:
        raise DeclarationError(
            f"delta (0.0) must be positive for names of categories ({', '.join(blanks.named)}) to "
            "be bought; pass delta=1e-6, or Categorical(), whose values are hashed without names"
        )


@dataclass(frozen=True)
class _Shares:
    """How the size t of a plan is shared: a mu with delta > 0, else an epsilon.

    Of `columns` that could share it, each number gets a part `of_numbers`, each category another.
    """

    blanks: Blanks
    budget: Budget
    neighbours: Neighbours
    columns: int
    of_numbers: float = 1.0
    of_categories: float = 1.0
    of_spans: float = 1.0
    ranked: bool = False

    @classmethod
    def equal(cls, blanks: Blanks, budget: Budget, neighbours: Neighbours) -> _Shares:
        """Equal shares of all blank columns, which spend everything."""
        columns = len(blanks.numbers) + len(blanks.categories)
        return cls(blanks, budget, neighbours, columns)

    @cached_property
    def whole(self) -> float:
        """The size of a plan that spends the whole budget, as a rule sees it."""
        if not self.budget.delta:
            return self.budget.epsilon
        return gaussian_left(self.budget)

    def usual_levels(self, size: int | None, t: float) -> int:
        """As many levels as leave segments four times as large as the error of a cut's rank.

        That is some 13 range / 2 epsilon_s records. Three levels if the number of records is not
        public.
        """
        if size is None:
            return USUAL_LEVELS
        for levels in range(USUAL_LEVELS, 1, -1):
            error = 13 * self.neighbours.changes / max(self._selection(t, levels), 1e-300)
            if size / 2**levels >= 4 * error:
                return levels
        return 1

    def _selection(self, t: float, levels: int) -> float:
        """The epsilon of one selection."""
        share = self.of_numbers * len(self.blanks.cuts + self.blanks.ranges) / self.columns
        count = selections(self.blanks, levels)
        if not count:
            return 0.0
        return 2 * t * math.sqrt(share / count) if self.budget.delta else t * share / count

    def sized(self, t: float, levels: int) -> BlankPlan:
        """The plan of this size."""
        return BlankPlan(
            self.blanks, self.neighbours, levels, self._selection(t, levels),
            self._counts(t, self.of_categories, len(self.blanks.hashed)), self._names(t),
            self.ranked, spans=self._counts(t, self.of_spans, len(self.blanks.spans)),
        )  # fmt: skip

    def _counts(self, t: float, part: float, d: int) -> Counts | None:
        """The noise for counts of d columns, in each of which a record counts once."""
        if not d:
            return None
        changed = d * self.neighbours.changes  # l1, and squared l2
        if not self.budget.delta:
            return Counts(DiscreteLaplace(t * (part * d) / self.columns, changed))
        mu = t * math.sqrt(part * d / self.columns)
        l2 = math.sqrt(changed) * ABOVE
        factor = max(1, math.ceil(4 * mu / l2))  # so that noise covers the grid
        return Counts(DiscreteGaussian(mu, factor * l2), factor)

    def _names(self, t: float) -> NameSet | NoisyNames | None:
        d, delta = len(self.blanks.named), NAMES_DELTA * self.budget.delta
        if not d:
            return None
        if d > FEW:
            return NoisyNames(
                t * math.sqrt(self.of_categories * d / self.columns), delta, d, self.neighbours
            )
        each = t * math.sqrt(self.of_categories) / math.sqrt(self.columns)
        return NameSet(each, delta / d * BELOW, self.neighbours)


def _largest(plan: Callable[[float], BlankPlan], budget: Budget) -> BlankPlan:
    """The largest plan that the accountant sees fit, of sizes one part in 1000 apart."""

    def sized(k: int) -> BlankPlan:
        return plan(2.0 ** (k / STEPS))

    def fits(k: int) -> bool:
        return compose(sized(k).events, budget.delta) <= budget.epsilon

    left = gaussian_left(budget)
    low = high = round(STEPS * math.log2(left)) if left else SMALLEST  # a budget may leave nothing
    step = STEPS // 16
    while not fits(low):
        low, high, step = low - step, low, 2 * step
        if low < SMALLEST:
            raise DeclarationError(
                f"epsilon ({budget.epsilon!r}) must leave enough for blanks; pass a larger one"
            )
    while high == low or fits(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return sized(low)


# -------------------------------------------------------------------------------------- cutting


@dataclass(frozen=True)
class _Piece:
    """Keys from first to last, both included, or places of one key."""

    first: int
    last: int
    key: int | None = None  # that of places
    start: int = 0  # the place where its bin begins
    mass: float = 1.0  # that its bin is assumed to have


class Cutting:
    """A column that is cut again and again: its pieces, and private counts of them.

    `counts` (KEYS,) are those of keys, ``inside(keys)`` (m, INSIDE) those of the places of keys.
    """

    def __init__(
        self, column: Numeric, counts: Integers, inside: Callable[[tuple[int, ...]], Integers]
    ) -> None:
        self._ends = -np.inf, np.inf
        first, last = 0, KEYS - 1
        self._low, self._high = first_place(0), first_place(KEYS) - 1  # places
        if column.low is not None and column.high is not None:
            self._ends = column.low, column.high
            self._low, self._high = places(np.array(self._ends)).tolist()
            first, last = key_of(np.array([self._low, self._high])).tolist()
        self._counts, self._ask = counts, inside
        self._inside: dict[int, Integers] = {}
        self._pieces = [_Piece(first, last, start=self._low)]
        self._cuts: set[int] = set()  # places
        self._masses = {self._low: 1.0}  # of bins, by the places where they begin

    def segments(self) -> list[Segment]:
        """Those that can be cut; a key by itself is cut by its places."""
        whole = [self._fine(one.first, one) if one.key is None and one.first == one.last else one
                 for one in self._pieces]  # fmt: skip
        self._pieces = [one for one in whole if one.first < one.last]
        needed = {one.key for one in self._pieces if one.key is not None} - self._inside.keys()
        if needed:
            asked = tuple(sorted(needed))
            self._inside |= dict(zip(asked, self._ask(asked), strict=True))
        return [self._segment(one) for one in self._pieces]

    def _fine(self, key: int, of: _Piece) -> _Piece:
        """The places of a key, in the bin of a piece."""
        first = first_place(key)
        last = first if key == ZERO else first_place(key + 1) - 1
        return replace(of, first=max(first, self._low), last=min(last, self._high), key=key)

    def _segment(self, piece: _Piece) -> Segment:
        if piece.key is None:
            part = slice(piece.first, piece.last + 1)
            return Segment(self._counts[part], favoured[part])
        start = first_place(piece.key)
        return Segment(self._inside[piece.key][piece.first - start : piece.last + 1 - start])

    def cut(self, chosen: list[int]) -> None:
        """Cut each segment at the candidate that was released."""
        parts: list[_Piece] = []
        for piece, index in zip(self._pieces, chosen, strict=True):
            at = piece.first + index
            if at > piece.last:  # it is not cut
                continue
            if piece.key is None:
                ends = first_place(at), first_place(at + 1)
            else:
                ends = at, at + 1 if _is_short(at) else at
            self._cuts |= {*ends}
            below, inside, above = self._divided(piece, *ends)
            parts.append(replace(below, last=at - 1))
            if piece.key is None:
                parts.append(self._fine(at, inside))
            parts.append(replace(above, first=at + 1))
        self._pieces = [one for one in parts if one.first <= one.last]

    def _divided(self, piece: _Piece, first: int, last: int) -> list[_Piece]:
        """The piece in the bins below, from `first` on and from `last` on; some may be empty."""
        inside = INSIDE_MASS if first < last else 0.0
        starts = piece.start, max(first, piece.start), max(last, piece.start)
        masses = (1 - inside) / 2, inside, (1 - inside) / 2
        if not inside and first == piece.start:  # nothing is cut off
            masses = 0.0, 0.0, 1.0
        bins = [replace(piece, start=start, mass=mass * piece.mass)
                for start, mass in zip(starts, masses, strict=True)]  # fmt: skip
        ends = starts[1], starts[2], self._end_of(piece)
        kept = {one.start: one.mass for one, end in zip(bins, ends, strict=True) if one.start < end}
        del self._masses[piece.start]
        self._masses |= kept
        return bins

    def _end_of(self, piece: _Piece) -> int:
        """The place behind the bin of a piece."""
        return first_place(piece.last + 1) if piece.key is None else piece.last + 1

    @property
    def cuts(self) -> list[float]:
        """The numbers at which bins begin, in order, all different and within the range."""
        return list(self._numbers(sorted(self._cuts)))

    @property
    def ranked(self) -> tuple[list[float], list[float]]:
        """The same cuts, as far as bins of some mass end there, and their assumed ranks."""
        starts = sorted(self._masses)
        below = np.cumsum([self._masses[start] for start in starts])
        ranks = dict(zip(starts[1:], (below / below[-1]).tolist(), strict=False))
        kept = self._numbers(starts[1:])
        return list(kept), [round(ranks[place], RANK_DIGITS) for place in kept.values()]

    def _numbers(self, cuts: list[int]) -> dict[float, int]:
        """The places of cuts within the range, by the numbers there."""
        inside = [place for place in cuts if first_place(0) < place < first_place(KEYS)]
        numbers = map(written, number_at(np.array(inside, dtype=np.int64)))
        return {number: place for number, place in zip(numbers, inside, strict=True)
                if self._ends[0] < number < self._ends[1]}  # fmt: skip


def _is_short(place: int) -> bool:
    """Whether the number at a place has few digits."""
    text = f"{written(number_at(np.array([place]))[0]):e}"
    return len(text.partition("e")[0].replace("-", "").replace(".", "").rstrip("0")) <= DIGITS
