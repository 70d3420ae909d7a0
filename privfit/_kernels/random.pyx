"""Random bits, and exact draws from them.

Every draw compares a uniform number, whose bits are revealed as needed, with a probability that is
known to some precision; where the bits known so far do not decide, both are refined. Probabilities
are integers in fixed point with a proved error, and the refinement is exact rational arithmetic: no
floating point takes part, and no probability is rounded.

Bits come from the operating system, in blocks. A seed gives a reproducible stream for tests:
**a known seed voids privacy**, since whoever knows it can subtract the noise.
"""

import os
from decimal import Context, Decimal, ROUND_HALF_EVEN
from fractions import Fraction
from math import floor, isqrt
from numbers import Integral

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef exp_tables _tables


cdef const exp_tables *tables() noexcept nogil:
    return &_tables


# ------------------------------------------------------------------------------------ exact numbers


def exp_interval(g: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits exp(-g) <= high for a rational g >= 0, at most a few apart."""
    if g * 3 > bits * 4 + 64:  # exp(-g) < 2^(-1.4 g): far below one unit
        return 0, 1
    # Decimal.exp is correctly rounded; the argument is off by half a unit in the last place.
    digits = int(bits * 0.302) + len(str(floor(g))) + 12
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-10**9, Emax=10**9)
    argument = context.divide(Decimal(g.numerator), Decimal(g.denominator))
    value = Fraction(context.exp(argument.copy_negate())) * 2**bits
    slack = value / 10 ** (digits - len(str(floor(g))) - 3)
    return floor(value - slack), floor(value + slack) + 1


def _fill_tables():
    """Powers of exp(-1), exp(-2^-8), ... with 128 bits, so that errors do not reach the 64th."""
    def powers(g, count):
        factor, power = exp_interval(g, 128)[0], 1 << 128
        for _ in range(count):
            yield min(power >> 64, 2**64 - 1)
            power = power * factor >> 128

    for i, value in enumerate(powers(Fraction(1), 64)):
        _tables.whole[i] = value
    for level in range(3):
        for i, value in enumerate(powers(Fraction(1, 256 ** (level + 1)), 256)):
            _tables.byte[level][i] = value


_fill_tables()


# ------------------------------------------------------------------------------------- random bits

cdef long _generation = 0


def _after_fork() -> None:
    # A child must not use up the bits that its parent has fetched: they would be the parent's too.
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


cdef class BitSource:
    """A buffered stream of random bits: the operating system's, or a seed's for tests.

    Safe among threads (a draw holds the interpreter lock) and after a fork (a child starts with a
    fresh buffer). `random_state` is None, an int, a `numpy.random.Generator` or `RandomState`; a
    seed makes draws reproducible and voids privacy.
    """

    def __init__(self, random_state=None):
        self._next = 1024
        self._bytes_left = 0
        self._generation = _generation
        if random_state is None:
            self._fill = os.urandom
        elif isinstance(random_state, Integral) and not isinstance(random_state, bool):
            if random_state < 0:
                raise DeclarationError(
                    f"random_state ({random_state}) must not be negative; pass a seed from 0 on"
                )
            self._fill = np.random.default_rng(int(random_state)).bytes
        elif isinstance(random_state, np.random.Generator | np.random.RandomState):
            self._fill = random_state.bytes
        else:
            raise DeclarationTypeError(
                f"random_state ({type(random_state).__name__}) must be None, an int, a Generator "
                "or a RandomState; pass None for private draws"
            )

    @staticmethod
    def of(rng):
        """`rng` itself if it is a source of bits, else a source made from it; None shares one."""
        if rng is None:
            return _shared
        return rng if isinstance(rng, BitSource) else BitSource(rng)

    @property
    def seeded(self) -> bool:
        """Whether the bits come from a seed, and so are not private."""
        return self._fill is not os.urandom

    def __repr__(self) -> str:
        return f"BitSource({'seeded' if self.seeded else 'operating system'})"

    def __reduce__(self):
        raise TypeError("a BitSource cannot be copied or pickled: its bits would be used twice")

    cdef int _refill(self) except -1:
        cdef bytes block = self._fill(8192)
        memcpy(self._words, PyBytes_AS_STRING(block), 8192)
        self._next = 0
        self._bytes_left = 0
        self._generation = _generation
        return 0

    cdef bint _is_stale(self) except -1:
        """Whether the buffer was fetched before a fork, and not from a seed."""
        if self._generation != _generation and self.seeded:
            self._generation = _generation
        return self._generation != _generation

    cdef uint64_t word(self) except? 0xFFFFFFFFFFFFFFFF:
        """64 fresh bits."""
        if self._next >= 1024 or (self._generation != _generation and self._is_stale()):
            self._refill()
        self._next += 1
        return self._words[self._next - 1]

    cdef uint64_t below(self, uint64_t n) except? 0xFFFFFFFFFFFFFFFF:
        """A uniform whole number below n > 0 (Lemire 2019: multiply, reject the uneven part)."""
        cdef uint64_t uneven = (0 - n) % n
        cdef uint64_t x = self.word()
        while x * n < uneven:
            x = self.word()
        return mul_high(x, n)

    def bits(self, int count) -> int:
        """A uniform whole number of `count` bits."""
        cdef int left = count
        result = 0
        while left > 0:
            result = result << 64 | self.word()
            left -= 64
        return result >> -left

    def draw_below(self, uint64_t n) -> int:
        """A uniform whole number below n."""
        if n == 0:
            raise DeclarationError("n (0) must be positive; pass a number of choices")
        return self.below(n)


cdef inline int next_byte(BitSource source) except -1:
    """8 fresh bits."""
    cdef int result
    if source._bytes_left == 0 or (source._generation != _generation and source._is_stale()):
        source._bytes = source.word()
        source._bytes_left = 8
    result = source._bytes & 255
    source._bytes >>= 8
    source._bytes_left -= 1
    return result


_shared = BitSource()  # so that a draw does not throw away a block of entropy


# ----------------------------------------------------------------------------------- exact compare


def is_below(BitSource source, prefix: int, bits: int, interval) -> bool:
    """Whether a uniform number is below a probability.

    The number's first `bits` bits are `prefix`; further ones are drawn as needed. `interval(bits)`
    gives integers low <= 2^bits p <= high.
    """
    while True:
        low, high = interval(bits)
        if prefix < low:          # prefix + 1 <= low: the whole cell lies below p
            return True
        if prefix >= high:
            return False
        prefix = prefix << 64 | source.bits(64)
        bits += 64


def first_bits(interval) -> int:
    """The first 64 bits of an irrational probability, exactly."""
    bits = 128
    while True:
        low, high = (bound >> (bits - 64) for bound in interval(bits))
        if low == high:
            return low
        bits += 64


def bernoulli(source: BitSource, interval) -> bool:
    """True with probability p, where `interval(bits)` gives integers low <= 2^bits p <= high."""
    return is_below(source, source.bits(64), 64, interval)


def bernoulli_exp(source: BitSource, g: Fraction) -> bool:
    """True with probability exp(-g), for a rational g >= 0."""
    if g < 0:
        raise DeclarationError(f"g ({g}) must not be negative; pass a rational g >= 0")
    return bernoulli(source, lambda bits: exp_interval(g, bits))


# ------------------------------------------------------------------------------------------- noise


def _logistic_interval(g: Fraction, bits: int) -> tuple[int, int]:
    """Integers around 2^bits / (1 + exp(g))."""
    low, high = exp_interval(g, bits + 8)
    one = 1 << (bits + 8)
    return (low << bits) // (one + low), -(-(high << bits) // (one + high))


cdef class DiscreteLaplaceSampler:
    """Exact draws of x with probability proportional to exp(-abs(x) rate), rate = k / 2^scale.

    A geometric number has independent binary digits: digit i is 1 with probability
    1 / (1 + exp(rate 2^i)). Low digits are drawn one by one, the part above them as a geometric
    number of ratio exp(-rate 2^digits) < 1/e. Each of these probabilities is tabulated to 64 bits,
    and a draw reads little more than one byte of it; a tie after 64 bits is refined exactly.
    """

    cdef uint64_t _prefix[64]
    cdef int _digits
    cdef object _rate

    def __init__(self, k: int, scale: int):
        self._rate = Fraction(k) / Fraction(2) ** scale
        if not Fraction(1, 2**50) <= self._rate:
            raise DeclarationError("noise this wide does not fit in 64 bits; pass a larger epsilon")
        digits = 0
        while self._rate * 2**digits < 1:
            digits += 1
        self._digits = digits
        for i in range(digits + 1):
            self._prefix[i] = first_bits(lambda bits, i=i: self._interval(i, bits))

    def _interval(self, which, bits):
        g = self._rate * 2**which
        return exp_interval(g, bits) if which == self._digits else _logistic_interval(g, bits)

    cdef inline int _flip(self, BitSource source, int which) except -1:
        """1 with the probability of table entry `which`, otherwise 0: compare byte by byte."""
        cdef int byte = next_byte(source), digit = self._prefix[which] >> 56
        return self._after_tie(source, which) if byte == digit else byte < digit

    cdef int _after_tie(self, BitSource source, int which) except -1:
        """`_flip` by the bytes that follow an equal first one."""
        cdef uint64_t expected = self._prefix[which]
        cdef int i, byte, digit
        for i in range(1, 8):
            byte, digit = next_byte(source), (expected >> (56 - 8 * i)) & 255
            if byte != digit:
                return byte < digit
        return is_below(source, expected, 64, lambda bits: self._interval(which, bits))

    cdef int64_t draw(self, BitSource source) except? -1:
        cdef int64_t value, low
        cdef int i
        cdef bint negative
        while True:
            low = 0
            for i in range(self._digits):
                low |= <int64_t>self._flip(source, i) << i
            value = 0
            while self._flip(source, self._digits):
                value += 1
                if value >> (62 - self._digits):
                    raise OverflowError("noise this wide does not fit in 64 bits")
            value = value << self._digits | low
            negative = next_byte(source) & 1
            if not (negative and value == 0):  # zero would count twice
                return -value if negative else value

    def fill(self, BitSource source, int64_t[::1] out) -> None:
        """Fill `out` with draws."""
        cdef Py_ssize_t i
        for i in range(out.shape[0]):
            out[i] = self.draw(source)


cdef class DiscreteGaussianSampler:
    """Exact draws of x with probability proportional to exp(-x^2 / (2 variance)).

    Canonne, Kamath and Steinke (2020): propose y from a discrete Laplace of rate about 1 / sigma,
    accept with probability exp(-(abs(y) - rate variance)^2 / (2 variance)).
    """

    cdef DiscreteLaplaceSampler _proposal
    cdef object _offset      # rate * variance
    cdef object _variance
    cdef double _near_offset, _near_rate  # offset and 1 / (2 variance), rounded

    def __init__(self, variance: Fraction):
        if not variance > 0:
            raise DeclarationError(
                f"variance ({variance}) must be positive; pass a rational number"
            )
        k, scale = binary_rate(Fraction(1, isqrt(floor(variance)) + 1))
        self._proposal = DiscreteLaplaceSampler(k, scale)
        self._variance = Fraction(variance)
        self._offset = self._variance * k / Fraction(2) ** scale
        self._near_offset = float(self._offset)
        self._near_rate = float(1 / (2 * self._variance))

    cdef int _quick_verdict(self, int64_t y, uint64_t u) noexcept:
        """1 to accept, -1 to reject, 0 where float64 cannot tell.

        With t = abs(y) - offset and g = t^2 / (2 variance), t is off by at most
        2^-52 (sigma + abs(t)), as the offset is at most sigma, and so g by
        2^-52 (sqrt(2 g) + 2 g) and three roundings: less than 2^-44 for g < 40, hence 2^20 units of
        v. What lies nearer than 2^21 is left to exact numbers.
        """
        cdef double t = <double>(y if y > 0 else -y) - self._near_offset
        cdef double g = t * t * self._near_rate
        cdef uint64_t v, doubt = <uint64_t>1 << 21
        if not g < 40:
            return 0
        v = exp_fixed(&_tables, <uint64_t>(g * <double>(<uint64_t>1 << GAMMA_BITS)))
        if v > doubt and u < v - doubt:
            return 1
        return -1 if u > v and u - v > doubt else 0

    cdef int64_t draw(self, BitSource source) except? -1:
        cdef int64_t y
        cdef uint64_t u
        cdef int verdict
        while True:
            y = self._proposal.draw(source)
            u = source.word()
            verdict = self._quick_verdict(y, u)
            if verdict == 0:
                g = (abs(int(y)) - self._offset) ** 2 / (2 * self._variance)
                if is_below(source, int(u), 64, lambda bits, g=g: exp_interval(g, bits)):
                    verdict = 1
            if verdict == 1:
                return y

    def fill(self, BitSource source, int64_t[::1] out) -> None:
        """Fill `out` with draws."""
        cdef Py_ssize_t i
        for i in range(out.shape[0]):
            out[i] = self.draw(source)


def binary_rate(rate: Fraction) -> tuple[int, int]:
    """The largest k / 2^scale <= rate with 2^31 <= k < 2^32: rounding down spends less."""
    scale = 32 - (rate.numerator.bit_length() - rate.denominator.bit_length())
    k = floor(rate * Fraction(2) ** scale)
    while k >= 2**32:
        scale -= 1
        k = floor(rate * Fraction(2) ** scale)
    return k, scale
