"""Random numbers of the chain in blocks: words, ln of uniform numbers, normal numbers.

No fused multiply-add, no libm: the same seed takes the same path on every machine.
"""

from libc.math cimport sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint64_t

from privfit._kernels.double_bits cimport bits_of, double_of, small_double, to_whole
from privfit._kernels.grid cimport check

cdef enum:
    STREAMS = 8  # random generators side by side
    TURNS = 4    # of all generators that are taken together


# ----------------------------------------------------------------------------------------- words


cdef struct generator:
    uint64_t a, b, c, d


cdef inline uint64_t turn_left(uint64_t x, int bits) noexcept nogil:
    return x << bits | x >> (64 - bits)


cdef inline uint64_t word_of(generator g) noexcept nogil:
    """A word of xoshiro256++ (Blackman and Vigna 2021)."""
    return turn_left(g.a + g.d, 23) + g.a


cdef inline generator after(generator g) noexcept nogil:
    """The generator as it is after that word."""
    cdef generator h
    g.c ^= g.a
    g.d ^= g.b
    h.a, h.b, h.c, h.d = g.a ^ g.d, g.b ^ g.c, g.c ^ (g.b << 17), turn_left(g.d, 45)
    return h


cdef inline void stream_words(uint64_t *state, ptrdiff_t n, uint64_t *out) noexcept nogil:
    """n words of STREAMS generators in turns; n is a multiple of STREAMS TURNS.

    With TURNS of them the body of the inner loop is too long to be unrolled, so that compilers
    make lanes of the generators and keep their states in registers: 2 to 5 times as fast as turn by
    turn.
    """
    cdef uint64_t[4][STREAMS] s
    cdef generator g
    cdef ptrdiff_t i, j
    check(n % (STREAMS * TURNS) == 0)
    for i in range(4):
        for j in range(STREAMS):
            s[i][j] = state[i * STREAMS + j]
    while n > 0:
        for j in range(STREAMS):
            g.a, g.b, g.c, g.d = s[0][j], s[1][j], s[2][j], s[3][j]
            out[j] = word_of(g)
            g = after(g)
            out[j + STREAMS] = word_of(g)
            g = after(g)
            out[j + 2 * STREAMS] = word_of(g)
            g = after(g)
            out[j + 3 * STREAMS] = word_of(g)
            g = after(g)
            s[0][j], s[1][j], s[2][j], s[3][j] = g.a, g.b, g.c, g.d
        out += STREAMS * TURNS
        n -= STREAMS * TURNS
    for i in range(4):
        for j in range(STREAMS):
            state[i * STREAMS + j] = s[i][j]


# --------------------------------------------------------------------------------- distributions


cdef inline double natural_log(double u) noexcept nogil:
    """ln u for a normal u > 0, absolute error below 1e-14.

    u = 2^e m with m in [sqrt 1/2, sqrt 2), and ln m = 2 atanh((m - 1) / (m + 1)).
    """
    cdef uint64_t bits = bits_of(u) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)
    cdef double e = small_double(bits >> 52) - 1023.0
    cdef double m = double_of((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu)
    cdef double s = (m - 1.0) / (m + 1.0)
    cdef double z = s * s
    cdef double z2 = z * z
    cdef double z4 = z2 * z2
    cdef double low = (1.0 + z * (1.0 / 3)) + z2 * (1.0 / 5 + z * (1.0 / 7))
    cdef double high = (1.0 / 9 + z * (1.0 / 11)) + z2 * (1.0 / 13 + z * (1.0 / 15))
    return e * 0.693147180559945309 + 2.0 * s * (low + z4 * high)


cdef inline void log_uniforms(const uint64_t *words, ptrdiff_t n, double *out) noexcept nogil:
    """ln of a uniform number in (0, 1), from 52 bits."""
    cdef double unit = 1.0 / 4503599627370496.0  # 2^-52
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = natural_log((small_double(words[i] >> 12) + 0.5) * unit)


cdef inline double sine(double x, double z) noexcept nogil:
    """sin x for abs(x) <= pi/4, by its series; z is x^2."""
    cdef double z2 = z * z
    cdef double z4 = z2 * z2
    return x * ((1.0 - z * (1.0 / 6)) + z2 * (1.0 / 120 - z * (1.0 / 5040))
                + z4 * ((1.0 / 362880 - z * (1.0 / 39916800)) + z2 * (1.0 / 6227020800.0)))


cdef inline double cosine(double z) noexcept nogil:
    """cos x by its series; z is x^2."""
    cdef double z2 = z * z
    cdef double z4 = z2 * z2
    return ((1.0 - z * 0.5) + z2 * (1.0 / 24 - z * (1.0 / 720))
            + z4 * ((1.0 / 40320 - z * (1.0 / 3628800))
                    + z2 * (1.0 / 479001600.0 - z * (1.0 / 87178291200.0))))


cdef inline void normals(const uint64_t *words, ptrdiff_t n, double *even,
                         double *odd) noexcept nogil:
    """Two normal numbers a word (Box and Muller): a radius by its upper half, then an angle."""
    cdef double radius, quarters, nearest, x, s, c, a, b
    cdef uint64_t quadrant
    cdef ptrdiff_t i
    for i in range(n):
        radius = (small_double(words[i] >> 32) + 0.5) * (1.0 / 4294967296.0)
        radius = sqrt(-2.0 * natural_log(radius))
        quarters = small_double(words[i] & 0xffffffffu) * (1.0 / 1073741824.0)
        nearest = quarters + to_whole()
        quadrant = bits_of(nearest)
        x = (quarters - (nearest - to_whole())) * 1.57079632679489662
        s, c = sine(x, x * x), cosine(x * x)
        a = c if quadrant & 1 else s
        b = s if quadrant & 1 else c
        odd[i] = radius * (-a if quadrant & 2 else a)
        even[i] = radius * (-b if (quadrant + 1) & 2 else b)
