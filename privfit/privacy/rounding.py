"""Numbers rounded to the safe side: exact fractions as floats that are not above, or not below."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["exact", "rounded_down", "rounded_up"]


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
