"""Numbers rounded to the safe side.

`rounded_down` and `rounded_up` make floats of exact fractions. Results of a few float64 operations
are multiplied by `ABOVE` or `BELOW` to be on the safe side of the real number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["ABOVE", "BELOW", "exact", "rounded_down", "rounded_up"]

ABOVE = 1 + 1e-12  # above the rounding of a few float64 operations
BELOW = 1 - 1e-12  # below it


def exact(typed: float) -> Fraction:
    """The number that a float's shortest decimal text says."""
    return Fraction(repr(float(typed)))


def rounded_up(wanted: Fraction, read: Callable[[float], Fraction] = Fraction) -> float:
    """The least float that is at least this number, itself or as its text is read."""
    nearest = float(wanted)
    while read(nearest) < wanted:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def rounded_down(wanted: Fraction, read: Callable[[float], Fraction] = Fraction) -> float:
    """The largest float that is at most this number, itself or as its text is read."""
    nearest = float(wanted)
    while read(nearest) > wanted:
        nearest = math.nextafter(nearest, -math.inf)
    return nearest
