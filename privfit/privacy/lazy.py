"""Real random numbers whose bits are revealed when they are requested.

A draw stands for a real number with its exact distribution. `upto(bits)` returns it rounded down to
a multiple of 2^-bits; requesting more bits refines the same number and never contradicts earlier
answers. So whatever is computed with enough of them is what real arithmetic would have computed,
and an error bound on a draw holds for every draw, however far out in a tail.

==============  ================================================================================
`Uniforms`      fresh bits
`Exponentials`  of mean 1: down to 2^-48 a geometric number, which is drawn exactly; what is left
                is uniform, accepted with probability exp(-2^-48 x)
`Normals`       Karney (2016), algorithm N: a whole number k, a uniform fraction x, accepted with
                probability exp(-x (2 k + x) / 2); bits of x that nobody has seen are still uniform
==============  ================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from privfit._kernels.random import (
    BitSource,
    DiscreteLaplaceSampler,
    exp_interval,
    is_below,
)
from privfit.base.dyadic import Whole, integers

Interval: TypeAlias = Callable[[int], tuple[int, int]]

__all__ = ["Exponentials", "Normals", "Uniforms"]

GEOMETRIC_BITS = 48  # of an exponential variable that are drawn as a whole number
# A trial whose 64 bits are further than this from exp(-g) in float64 is decided: no exponential
# function of any system is off by as much.
DOUBT = 2.0**-30


class _Fraction:
    """A uniform number of [0, 1)."""

    def __init__(self, source: BitSource) -> None:
        self._source, self._prefix, self._bits = source, 0, 0

    def upto(self, bits: int) -> int:
        """The first bits, as a whole number."""
        if bits > self._bits:
            more = -(-(bits - self._bits) // 64) * 64
            self._prefix = self._prefix << more | self._source.bits(more)
            self._bits += more
        return self._prefix >> (self._bits - bits)

    def passes(self, exponent: Callable[[Fraction], Fraction]) -> bool:
        """True with probability exp(-exponent(x)) of this number x; the exponent must rise."""

        def interval(bits: int) -> tuple[int, int]:
            x = self.upto(bits)
            low = exp_interval(exponent(Fraction(x + 1, 2**bits)), bits)[0]
            return low, exp_interval(exponent(Fraction(x, 2**bits)), bits)[1]

        return _passes(self._source, float(exponent(Fraction(self.upto(64), 2**64))), interval)


def _passes(source: BitSource, exponent: float, interval: Interval) -> bool:
    """True with probability p about exp(-exponent), which `interval` tells exactly."""
    trial, likely = source.bits(64), math.exp(-exponent)
    if abs(math.ldexp(trial, -64) - likely) > DOUBT:
        return math.ldexp(trial, -64) < likely
    return is_below(source, trial, 64, interval)


def _flips(source: BitSource, g: Fraction) -> bool:
    """True with probability exp(-g)."""
    return _passes(source, float(g), lambda bits: exp_interval(g, bits))


class Uniforms:
    """`count` uniform numbers of [0, 1)."""

    def __init__(self, source: BitSource, count: int) -> None:
        self._each = [_Fraction(source) for _ in range(count)]

    def upto(self, bits: int) -> Whole:
        """The numbers, rounded down to multiples of 2^-bits."""
        return integers([one.upto(bits) for one in self._each])


@cache  # its tables take longer than a draw
def _geometric(bits: int) -> DiscreteLaplaceSampler:
    return DiscreteLaplaceSampler(1, bits)


class Exponentials:
    """`count` exponential numbers of mean 1."""

    def __init__(self, source: BitSource, count: int) -> None:
        drawn = np.empty(count, dtype=np.int64)
        _geometric(GEOMETRIC_BITS).fill(source, drawn)
        # Either half of the law, numbers from 0 on or from -1 downwards, is that of a geometric.
        self._whole = np.where(drawn < 0, -drawn - 1, drawn).tolist()
        self._source = source
        self._rest: list[_Fraction] = []

    def upto(self, bits: int) -> Whole:
        """The numbers, rounded down to multiples of 2^-bits."""
        if bits <= GEOMETRIC_BITS:
            return integers([one >> (GEOMETRIC_BITS - bits) for one in self._whole])
        if not self._rest:
            self._rest = [self._fraction() for _ in self._whole]
        more = bits - GEOMETRIC_BITS
        pairs = zip(self._whole, self._rest, strict=True)
        return integers([(one << more) + rest.upto(more) for one, rest in pairs])

    def _fraction(self) -> _Fraction:
        while True:
            rest = _Fraction(self._source)
            if rest.passes(lambda x: x / 2**GEOMETRIC_BITS):
                return rest


def _half_square_beyond(k: int, x: Fraction) -> Fraction:
    """((k + x)^2 - k^2) / 2."""
    return x * (2 * k + x) / 2


class Normals:
    """`count` numbers of the standard normal law."""

    def __init__(self, source: BitSource, count: int) -> None:
        self._each = [self._draw(source) for _ in range(count)]

    @staticmethod
    def _draw(source: BitSource) -> tuple[int, _Fraction, int]:
        """k, x and a sign of the number sign (k + x)."""
        while True:
            k = 0
            while _flips(source, Fraction(1, 2)):
                k += 1
            if k > 1 and not _flips(source, Fraction(k * (k - 1), 2)):
                continue
            x = _Fraction(source)
            if x.passes(partial(_half_square_beyond, k)):
                return k, x, 1 - 2 * source.bits(1)

    def upto(self, bits: int) -> Whole:
        """The numbers, rounded towards zero to multiples of 2^-bits."""
        return integers([sign * ((k << bits) + x.upto(bits)) for k, x, sign in self._each])
