"""Edges of levels as people read them: with as few digits as tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from privfit.base.typing import Floats

__all__ = ["edge_texts", "range_texts"]

FEW_DIGITS = 3  # of a number that is written in full
NEAR = 0.125  # of the gap to the nearest edge: how far off a text may be
MOST_DIGITS = 17  # which tell any two numbers apart
PLAIN = (1e-4, 1e6)  # sizes of numbers that are written without a power of ten


def edge_texts(edges: Sequence[float] | Floats) -> list[str]:
    """The text of each of these numbers, which increase; infinite ones have an empty text.

    A number of at most three digits is written in full. Any other text is off by less than an
    eighth of the gap to the nearest edge, so different edges have different texts in the same
    order.

    >>> from privfit.domains.edges import edge_texts
    >>> edge_texts([17, 24.96, 30.04, 31, 4999.7])
    ['17', '25', '30', '31', '5000']
    """
    numbers = np.asarray(edges, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    gaps = np.diff(finite, prepend=-math.inf, append=math.inf)
    nearest = iter(np.minimum(gaps[:-1], gaps[1:]).tolist())
    return [_text(x, NEAR * next(nearest)) if math.isfinite(x) else "" for x in numbers.tolist()]


def range_texts(edges: Sequence[float] | Floats) -> list[str]:
    """A text for each range between neighbouring edges, which may begin and end at infinity.

    >>> from privfit.domains.edges import range_texts
    >>> range_texts([float("-inf"), 1, 5000, float("inf")])
    ['below 1', '1 to 5000', '5000 or more']
    """
    texts = edge_texts(edges)
    return [_range(low, high) for low, high in pairwise(texts)]


def _range(low: str, high: str) -> str:
    if low and high:
        return f"{low} to {high}"
    if low:
        return f"{low} or more"
    return f"below {high}" if high else "any number"


def _text(number: float, off: float) -> str:
    """The number with the fewest digits that are no farther off; in full if it has a few."""
    if float(f"{number:.{FEW_DIGITS}g}") == number:
        off = 0.0
    if math.isinf(off):  # the only edge
        off = NEAR * abs(number) / 100
    for digits in range(1, MOST_DIGITS + 1):
        rounded = float(f"{number:.{digits}g}")
        if abs(rounded - number) < off or rounded == number:
            break
    if rounded == 0 or PLAIN[0] <= abs(rounded) < PLAIN[1]:
        return f"{rounded:.{MOST_DIGITS - 2}g}" if digits < MOST_DIGITS - 1 else repr(rounded)
    mantissa, _, power = f"{number:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(power)}"
