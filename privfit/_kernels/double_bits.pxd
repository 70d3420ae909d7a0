"""Doubles as bits, and whole numbers in them: what replaces libm, on every machine alike.

Adding 1.5 2^52 to a double of at most 2^51 rounds it to a whole number, half to even, and leaves
that number in the low bits. No fused operations, no libm.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t bits_of(double v) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &v, sizeof(bits))
    return bits


cdef inline double double_of(uint64_t bits) noexcept nogil:
    cdef double v
    memcpy(&v, &bits, sizeof(v))
    return v


cdef inline double to_whole() noexcept nogil:
    """1.5 2^52."""
    return 6755399441055744.0


cdef inline double rounded(double v) noexcept nogil:
    """The whole number next to v."""
    return (v + to_whole()) - to_whole()


cdef inline int64_t whole_of(double v) noexcept nogil:
    """The same as an integer."""
    return <int64_t>(bits_of(v + to_whole()) - bits_of(to_whole()))


cdef inline double small_double(uint64_t x) noexcept nogil:
    """A whole number below 2^52 as a double: the low bits of 2^52 + x, less 2^52."""
    return double_of(x | 0x4330000000000000u) - 4503599627370496.0
