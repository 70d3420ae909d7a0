"""Where numbers lie: a span from noisy counts of coarse cells, for very little of a budget.

**Cells.** Half a decade of size each, four cells of the public scale (`privfit.domains.scales`): 27
of positive numbers, of which 1, 10 and 100 are near the upper ends, 27 of negative ones, and one of
numbers near 0. They begin at keys (`privfit.domains.keys`), so that a number is in one cell.

**Spans.** A cell whose noisy count is above 3.5 standard deviations of the noise is part of a
span. So is everything between two such cells, and beside them as long as counts stay above 1.5. A
span is cut into equal bins. Numbers outside count for the bins at its ends, and cells of the scale
go on telling them apart; so nothing is lost where few numbers lie far away. Without a span, or if
it is that of 0 alone, there are no bins. All of it is a function of the noisy counts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from privfit.base.typing import Floats, Integers
from privfit.domains.columns import Numeric
from privfit.domains.keys import key_of, places
from privfit.domains.scales import CUTS, LAST, NEAR

__all__ = ["CELLS", "cell_counts", "span_of", "spanned"]

OF_FINE = 4  # cells of the scale
STRONG, WEAK = 3.5, 1.5  # standard deviations of noise

_sizes = (*CUTS[len(CUTS) // 2 + 1 :: OF_FINE], 10.0**LAST)  # where cells of positive ones end
_mirrored = tuple(-size for size in reversed(_sizes))
ENDS = (*_mirrored, 0.0, 0.0, *_sizes)  # the cell of 0 has no width
CELLS = len(ENDS) - 1


@cache
def _starts() -> Integers:
    """(CELLS,): the keys where cells begin."""
    inner = np.array([*_mirrored[1:], -NEAR, NEAR, *_sizes[:-1]])
    return np.concatenate([[0], key_of(places(inner))])


def cell_counts(counts: Integers) -> Integers:
    """(CELLS,): how many numbers are in each cell, by the counts (KEYS,) of their keys."""
    return np.add.reduceat(counts, _starts())


def span_of(noisy: Integers | Floats, deviation: float) -> tuple[float, float] | None:
    """The ends of a span, by noisy counts (CELLS,) and the standard deviation of their noise.

    >>> import numpy as np
    >>> noisy = np.zeros(CELLS)
    >>> noisy[29:32] = 2.0, 9.0, 1.0
    >>> span_of(noisy, 1.0)
    (0.0001155, 0.001155)
    """
    strong = np.flatnonzero(noisy > STRONG * deviation)
    if not len(strong):
        return None
    first, last = int(strong[0]), int(strong[-1])
    weak = noisy > WEAK * deviation
    while first > 0 and weak[first - 1]:
        first -= 1
    while last < CELLS - 1 and weak[last + 1]:
        last += 1
    low, high = ENDS[first], ENDS[last + 1]
    return (low, high) if low < high else None


def spanned(column: Numeric, span: tuple[float, float] | None) -> Numeric:
    """The column with its bins equally wide within a span, beside the scale; none without one."""
    bins: Any = column.bins
    ends = () if span is None else np.linspace(*span, int(bins) + 1).tolist()
    cuts = [float(f"{end:.6g}") for end in ends[1:-1]]
    return Numeric(
        bins=cuts or 0, fill=column.fill, missing=column.fill is None, scale=column.scale
    )
