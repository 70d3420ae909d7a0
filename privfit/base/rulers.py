"""A scale for each column on which a box is halved: even about a point, coarse far from it.

A number x of column j is at x - origin[j] on the scale, up to reach[j] on both sides; from there on
2^bits[j] numbers are one step. So a box whose records lie close together is not halved again and
again before its cells tell them apart, and those far out still have cells. The scale is whole and
rises with x: a cell of the scale is a cell of the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privfit.base.typing import Floats, Integers

__all__ = ["Ruler"]


@dataclass(frozen=True, eq=False)
class Ruler:
    """Whole numbers of each column: an origin (d,), how far the scale is even (d,), and bits (d,).

    Examples
    --------
    >>> import numpy as np
    >>> ruler = Ruler.about(np.array([10]), np.array([4]), np.array([-100]), np.array([100]))
    >>> ruler.scaled(np.array([[10], [14], [-100]])).ravel().tolist()
    [0, 4, -5]
    """

    origin: Integers
    reach: Integers
    bits: Integers

    @classmethod
    def about(cls, origin: Integers, reach: Integers, low: Integers, high: Integers) -> Ruler:
        """What lies beyond the reach takes at most half as much room on each side as the reach."""
        far = np.maximum(np.maximum(origin - low, high - origin) - reach, 0)
        bits = np.zeros_like(reach)
        while (large := (far >> bits) > (reach + 1) // 2).any():
            bits = bits + large
        return cls(origin, reach, bits)

    def scaled(self, numbers: Integers) -> Integers:
        """(m, d) numbers on the scale."""
        away = numbers - self.origin
        size = np.abs(away)
        beyond = self.reach + ((size - self.reach) >> self.bits)
        return np.asarray(np.sign(away) * np.where(size <= self.reach, size, beyond))

    def tables(self, low: Integers, high: Integers) -> list[Integers]:
        """The numbers of each column, from the least to the largest, on the scale."""
        columns = zip(self.origin, self.reach, self.bits, low, high, strict=True)
        return [Ruler(*one).scaled(np.arange(first, last + 1)) for *one, first, last in columns]

    def numbers(self, places: Floats) -> Floats:
        """(m, d) what stands at places on the scale, between whole ones too."""
        size = np.abs(places)
        beyond = self.reach + np.ldexp(size - self.reach, self.bits)
        return np.asarray(
            self.origin + np.sign(places) * np.where(size <= self.reach, size, beyond)
        )
