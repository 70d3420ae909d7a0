"""Private quantiles of disjoint segments: one selection for all of them.

A segment is a run of candidates c in order, with the number of records at each. For q = a / b the
candidate c scores

    u(c) = -abs((b - a) L - a R),    L records of the segment below c, R above it,

and one is drawn by the exponential mechanism in each segment. Records at c itself count on neither
side, so a value that many records share is a good cut.

**The range of u**, the most that one record changes u at c less what it changes at c':

- A record that is added or removed moves (b - a) L - a R by b - a, by -a, or not at all, so u by at
  most m = max(a, b - a) up or down: the range is 2 m. Only its own segment changes. All segments
  together are one selection of that range.
- A record replaced by another of the same segment moves it by the difference of two of these three
  numbers, at most b in size: the range is 2 b.
- One that goes to another segment is removed here and added there: two draws change, each with
  range 2 m. At the rate epsilon / r of both draws the log ratios add up to 4 m epsilon / r.

So the range is r = 2 m for add_remove; r = 2 b for replace in a single segment, and the larger of
2 b and 4 m in several. For medians, a / b = 1 / 2, that is 2 and 4, whatever the number of segments
(counting two selections instead would be right at r = 2 for replace, and costs more).

**Bonuses.** A favoured candidate weighs e^2 more: a whole number, which depends on epsilon and r
alone, is added to its score. With `skips`, a segment has one candidate more, behind all others: its
score is that of L = all records and R = 0, to which all of the above applies. It means that the
segment is not cut, and weighs e^3 as much as all others together, so that a segment without records
is left alone 95 times of 100. Bonuses are the same for all data, so they change no range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Integers
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.accounting import Event, event_of
from privfit.privacy.mechanisms import Exponential, RelatedMechanism
from privfit.privacy.neighbours import Neighbours

__all__ = ["Segment", "SegmentQuantiles"]

WEIGHT = 2.0  # ln of how much more a favoured candidate weighs
SKIP = 3.0  # ln of how much more not cutting weighs than all cuts together
MOST = 2**40  # of a bonus: scores stay far below 2^62


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Private counts (m,) of candidates in order, and which of them are favoured (m,), publicly."""

    counts: Integers
    favoured: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        return f"Segment(<{len(self.counts)} candidates>)"


@dataclass(frozen=True, repr=False)
class SegmentQuantiles(RelatedMechanism[Sequence[Segment], list[int]]):
    """A candidate of each segment near its quantile above / of; see the module's proof.

    Parameters
    ----------
    epsilon : float
        What all segments cost together.
    neighbours : Neighbours
        The neighbour relation.
    above, of : int, default=1, 2
        The quantile a / b, by default the median.
    several : bool, default=True
        Whether there may be more than one segment.
    skips : bool, default=False
        Whether a segment may be left without a cut.
    """

    epsilon: float
    neighbours: Neighbours
    above: int = 1
    of: int = 2
    several: bool = True
    skips: bool = False

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon <= 0:
            raise DeclarationError(
                f"epsilon ({self.epsilon!r}) must be a positive number; pass a budget such as 1.0"
            )
        if not (is_whole(self.above) and is_whole(self.of) and 0 < self.above < self.of <= 1000):
            raise DeclarationError(
                f"above / of ({self.above!r} / {self.of!r}) must be a fraction between 0 and 1, of "
                "whole numbers up to 1000; pass such as 1 / 2"
            )

    @property
    def range(self) -> int:
        """Of the scores of all segments; see the proof."""
        most = 2 * max(self.above, self.of - self.above)
        if not self.neighbours.replaces:
            return most
        return max(2 * self.of, 2 * most) if self.several else 2 * self.of

    @property
    def event(self) -> Event:
        return event_of("selection", self.epsilon)

    def _bonus(self, weight: float) -> int:
        """What is added to the score of a candidate that weighs e^weight more."""
        return int(min(weight * self.range / self.epsilon, MOST))

    def scores(self, segment: Segment) -> Integers:
        """int64 (m,), or (m + 1,) with `skips`: the scores of candidates. They are private."""
        counts = np.asarray(segment.counts, dtype=np.int64)
        m, part = len(counts), self.of - self.above
        found = np.empty(m + self.skips, dtype=np.int64)
        scores = np.cumsum(counts, out=found[:m])
        all_records = int(scores[-1])
        # With U = L + c, where c records are at the candidate and n in all:
        # (b - a) L - a R = b U - (b - a) c - a n.
        scores *= self.of
        scores -= counts if part == 1 else part * counts
        scores -= self.above * all_records
        np.negative(np.abs(scores, out=scores), out=scores)
        total = float(m)  # of weights
        if segment.favoured is not None:
            scores += self._bonus(WEIGHT) * segment.favoured
            total += math.expm1(WEIGHT) * int(segment.favoured.sum())
        if self.skips:
            found[m] = -part * all_records + self._bonus(math.log(total) + SKIP)
        return found

    def __call__(self, value: Sequence[Segment], rng: object = None) -> list[int]:
        """The index of a candidate in each segment; m if it is left without a cut."""
        if len(value) > 1 and not self.several:
            raise DeclarationError(
                f"segments ({len(value)}) must be a single one; pass several=True for more"
            )
        source, draw = BitSource.of(rng), Exponential(self.epsilon, self.range)
        return [draw(self.scores(segment), source) for segment in value]
