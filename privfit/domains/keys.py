"""Numbers as whole numbers in the same order: what private quantiles choose among.

The *place* of a number is that of its float32 in the order of all of them: 0 is at 0, the least
positive numbers follow, and negative ones mirror them. NaN has no place. Infinities, and numbers
that float32 cannot hold, are at its ends; those below 2^-133 in size, and -0, are at 0.

The *key* of a place is its upper half, 16 bits with the sign: there are 65,279 of them, each about
0.5 to 0.8 % wide, and they cover all numbers, so that no range has to be declared. The place within
a key is its lower half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Floats, Integers

__all__ = [
    "INSIDE",
    "KEYS",
    "MISSING",
    "ZERO",
    "favoured",
    "first_place",
    "key_of",
    "number_at",
    "places",
    "written",
]

HALF = 16  # bits of a place below its key
INSIDE = 1 << HALF  # places of a key, except that of 0
LAST = 0x7F7FFFFF  # the place of the largest float32
LAST_KEY = LAST >> HALF
KEYS = 2 * LAST_KEY + 1
ZERO = LAST_KEY  # the key of 0, which has one place
MISSING = -(2**31)  # stands for a number without a place


def places(numbers: Floats) -> NDArray[np.int32]:
    """The place of each number; `MISSING` for NaN.

    >>> places(np.array([0.0, -0.0, 1e-42, 1.0, -1.0, np.nan])).tolist()
    [0, 0, 0, 1065353216, -1065353216, -2147483648]
    """
    with np.errstate(all="ignore"):  # what is too large becomes infinite, and is clipped
        short = np.asarray(numbers, dtype=np.float64).astype(np.float32)
    bits = short.view(np.int32)
    size = np.minimum(bits & 0x7FFFFFFF, LAST)
    size[size < INSIDE] = 0
    found = np.where(bits < 0, -size, size)
    found[np.isnan(short)] = MISSING
    return found.astype(np.int32)


def number_at(place: Integers) -> Floats:
    """The number at each place; infinity one place behind the last."""
    place = np.asarray(place, dtype=np.int64)
    bits = np.where(place < 0, np.abs(place) | 1 << 31, place).astype(np.uint32)
    return bits.view(np.float32).astype(np.float64)


def written(number: float) -> float:
    """The double with the fewest digits that rounds to this float32.

    >>> written(float(np.float32(37.1)))
    37.1
    """
    return float(str(np.float32(number)))


def key_of(place: NDArray[np.int32] | Integers) -> Integers:
    """The key of each place, from 0 to `KEYS` - 1."""
    wide = np.asarray(place, dtype=np.int64)
    return np.asarray(np.where(wide < 0, -(-wide >> HALF), wide >> HALF) + LAST_KEY)


def first_place(key: int) -> int:
    """The least place with a key, or the one behind the last.

    >>> [first_place(key) for key in (0, LAST_KEY - 1, LAST_KEY, LAST_KEY + 1, KEYS)]
    [-2139095039, -131071, 0, 65536, 2139095040]
    """
    signed = key - LAST_KEY
    return signed << HALF if signed >= 0 else (signed << HALF) - INSIDE + 1


def _favoured() -> NDArray[np.bool_]:
    low, high = key_of(places(np.array([1e-3, 1e7]))).tolist()
    mask = np.zeros(KEYS, dtype=np.bool_)
    mask[low : high + 1] = mask[ZERO] = True
    mask.setflags(write=False)
    return mask


favoured = _favoured()  # keys of 0 and of 0.001 to 10,000,000, where numbers mostly are
