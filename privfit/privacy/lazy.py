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
from typing import TypeAlias, TypeVar

import numpy as np

from privfit._kernels.random import (
    BitSource,
    DiscreteLaplaceSampler,
    exp_interval,
    is_below,
)
from privfit.base.dyadic import Whole, integers

Interval: TypeAlias = Callable[[int], tuple[int, int]]
Exponent: TypeAlias = Callable[[Fraction], Fraction]
N = TypeVar("N", float, Fraction)

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

    def passes(self, near: Callable[[float], float], exponent: Exponent) -> bool:
        """True with probability exp(-exponent(x)) of this number x; the exponent must rise.

        `near` is the exponent in float64: it decides all but the closest cases.
        """

        def interval(bits: int) -> tuple[int, int]:
            x = self.upto(bits)
            low = exp_interval(exponent(Fraction(x + 1, 2**bits)), bits)[0]
            return low, exp_interval(exponent(Fraction(x, 2**bits)), bits)[1]

        likely = math.exp(-near(math.ldexp(self.upto(64), -64)))
        return _passes(self._source, likely, interval)


def _passes(source: BitSource, likely: float, interval: Interval) -> bool:
    """True with a probability of about `likely`, which `interval` tells exactly."""
    trial = source.bits(64)
    drawn = math.ldexp(trial, -64)
    if abs(drawn - likely) > DOUBT:
        return drawn < likely
    return is_below(source, trial, 64, interval)


@cache
def _law(g: Fraction) -> tuple[float, Interval]:
    """exp(-g), in float64 and exactly."""
    return math.exp(-float(g)), partial(exp_interval, g)


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
            if rest.passes(_small_share, _small_share):
                return rest


def _small_share(x: N) -> N:
    """What is left of an exponential number below its last whole unit."""
    return x / 2**GEOMETRIC_BITS


def _half_square_beyond(k: int, x: N) -> N:
    """((k + x)^2 - k^2) / 2."""
    return x * (2 * k + x) / 2


HALF = Fraction(1, 2)


class Normals:
    """`count` numbers of the standard normal law."""

    def __init__(self, source: BitSource, count: int) -> None:
        self._each = [self._draw(source) for _ in range(count)]

    @staticmethod
    def _draw(source: BitSource) -> tuple[int, _Fraction, int]:
        """k, x and a sign of the number sign (k + x)."""
        while True:
            k = 0
            while _passes(source, *_law(HALF)):
                k += 1
            if k > 1 and not _passes(source, *_law(HALF * (k * (k - 1)))):
                continue
            x, beyond = _Fraction(source), partial(_half_square_beyond, k)
            if x.passes(beyond, beyond):
                return k, x, 1 - 2 * source.bits(1)

    def upto(self, bits: int) -> Whole:
        """The numbers, rounded towards zero to multiples of 2^-bits."""
        return integers([sign * ((k << bits) + x.upto(bits)) for k, x, sign in self._each])
