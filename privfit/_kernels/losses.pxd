"""Losses and slopes of margins: integers in, integers out, the same bits on every machine.

The polynomials of the logistic loss are evaluated in float32 on an exact margin, without fused
operations, and summed in pairs, since latency is what binds their loops. Each loss stands in one
loop for each use, chosen by its kind outside the loop.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from privfit._kernels.grid cimport (
    BLOCK, HINGE, HINGE_SCALED, LOGISTIC, WIDTH, check, loss_args,
)
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_less, lanes_load, lanes_store, lanes_sub,
)


# ---------------------------------------------------------------------------- two polynomials


cdef inline float exp_minus(float y) noexcept nogil:
    """exp(-t) for t >= 0, given y = t / ln 2: 2^-f by a polynomial, then the exponent.

    The relative error is 2.6e-6.
    """
    cdef float c0 = 0.99999741, c1 = 0.6930302, c2 = 0.23934107, c3 = 0.05307406, c4 = 0.00676708
    cdef int32_t k = <int32_t>y, bits
    cdef float f = y - <float>k
    cdef float f2 = f * f
    cdef float u = (c0 - c1 * f) + f2 * ((c2 - c3 * f) + f2 * c4)
    memcpy(&bits, &u, sizeof(bits))
    bits -= k * (1 << 23)
    memcpy(&u, &bits, sizeof(u))
    return u


cdef inline float log_one_plus(float u) noexcept nogil:
    """ln(1 + u) for u in [0, 1], absolute error 1.5e-6."""
    cdef float c1 = 0.99990164, c2 = 0.49787498, c3 = 0.31764862, c4 = 0.19376005
    cdef float c5 = 0.08556911, c6 = 0.01833858, u2 = u * u
    return u * ((c1 - c2 * u) + u2 * ((c3 - c4 * u) + u2 * (c5 - c6 * u)))


cdef inline void tails(const int32_t *z, ptrdiff_t n, loss_args p, int32_t *out) noexcept nogil:
    """ln(1 + exp(-abs z)) in margin units.

    Two short loops over a buffer in L1 run 1.4 times faster than one long one: their chains of
    dependent operations overlap.
    """
    cdef float[BLOCK] u
    cdef ptrdiff_t i
    cdef int32_t t
    for i in range(n):
        t = -z[i] if z[i] < 0 else z[i]
        t = t if t < p.far else p.far
        u[i] = exp_minus(<float>t * p.to_log2)
    for i in range(n):
        out[i] = <int32_t>(log_one_plus(u[i]) * <float>p.one)


# ---------------------------------------------------------------------- the loss of one record


cdef inline uint32_t logistic_of(int32_t z, int32_t tail, loss_args p) noexcept nogil:
    """ln(1 + exp(-m)) = max(-m, 0) + ln(1 + exp(-abs m)), rounded once to the nearest unit."""
    cdef int32_t m = (z ^ p.flip) - p.flip
    return (<uint32_t>(-m & (m >> 31)) + <uint32_t>tail + (<uint32_t>1 << p.shift >> 1)) >> p.shift


cdef inline uint32_t hinge_of(int32_t z, loss_args p) noexcept nogil:
    cdef int32_t h = p.one - ((z ^ p.flip) - p.flip)
    return (<uint32_t>(h & ~(h >> 31)) + (<uint32_t>1 << p.shift >> 1)) >> p.shift


cdef inline uint32_t hinge_scaled_of(int32_t z, loss_args p) noexcept nogil:
    cdef int32_t h = p.one - ((z ^ p.flip) - p.flip)
    return <uint32_t><int32_t>(<double>(h & ~(h >> 31)) * p.factor + 0.5)


cdef inline uint32_t zero_one_of(int32_t z, loss_args p) noexcept nogil:
    """Predict 1 iff z > 0."""
    return <uint32_t>((z > 0) ^ (p.flip + 1))


# ------------------------------------------------------------------------- losses of many records


cdef inline int64_t loss_sum(int kind, const int32_t *z, ptrdiff_t n, loss_args p) noexcept nogil:
    """The sum over records; int32 lanes hold BLOCK of them."""
    cdef int32_t[BLOCK] tail
    cdef int64_t total = 0
    cdef uint32_t sum
    cdef ptrdiff_t i, block
    while n > 0:
        block = min(<ptrdiff_t>BLOCK, n)
        sum = 0
        if kind == LOGISTIC:
            tails(z, block, p, tail)
            for i in range(block):
                sum += logistic_of(z[i], tail[i], p)
        elif kind == HINGE:
            for i in range(block):
                sum += hinge_of(z[i], p)
        elif kind == HINGE_SCALED:
            for i in range(block):
                sum += hinge_scaled_of(z[i], p)
        else:
            for i in range(block):
                sum += zero_one_of(z[i], p)
        total += sum
        z += block
        n -= block
    return total


cdef inline void loss_each(int kind, const int32_t *z, ptrdiff_t n, loss_args p,
                           int32_t *out) noexcept nogil:
    """The integer of each record."""
    cdef int32_t[BLOCK] tail
    cdef ptrdiff_t i, block
    if kind == HINGE:
        for i in range(n):
            out[i] = <int32_t>hinge_of(z[i], p)
    elif kind == HINGE_SCALED:
        for i in range(n):
            out[i] = <int32_t>hinge_scaled_of(z[i], p)
    elif kind != LOGISTIC:
        for i in range(n):
            out[i] = <int32_t>zero_one_of(z[i], p)
    else:
        while n > 0:
            block = min(<ptrdiff_t>BLOCK, n)
            tails(z, block, p, tail)
            for i in range(block):
                out[i] = <int32_t>logistic_of(z[i], tail[i], p)
            z += block
            out += block
            n -= block


cdef inline lanes zero_one_lanes(const int32_t *z, ptrdiff_t width, ptrdiff_t rows,
                                 loss_args p) noexcept nogil:
    """The zero-one losses of LANES candidates, in registers; a row is `width` after the last."""
    cdef lanes above = lanes_all(0), zero = lanes_all(0)
    cdef ptrdiff_t r
    for r in range(rows):
        above = lanes_sub(above, lanes_less(zero, lanes_load(z + r * width)))
    return above if p.flip else lanes_sub(lanes_all(<int32_t>rows), above)


cdef inline void loss_lanes(int kind, const int32_t *z, ptrdiff_t width, ptrdiff_t rows,
                            loss_args p, int64_t *out) noexcept nogil:
    """Add the sums of `width` candidates over at most BLOCK rows; z is (rows, width).

    At most WIDTH candidates; in each call a constant, which the loops are compiled for.
    """
    cdef int32_t[BLOCK] tail
    cdef uint32_t[WIDTH] sum
    cdef ptrdiff_t r, c, some
    check(rows <= BLOCK)
    for c in range(width):
        sum[c] = 0
    while rows > 0:
        some = min(BLOCK // width, rows)
        if kind == LOGISTIC:
            tails(z, some * width, p, tail)
            for r in range(some):
                for c in range(width):
                    sum[c] += logistic_of(z[r * width + c], tail[r * width + c], p)
        elif kind == HINGE:
            for r in range(some):
                for c in range(width):
                    sum[c] += hinge_of(z[r * width + c], p)
        elif kind == HINGE_SCALED:
            for r in range(some):
                for c in range(width):
                    sum[c] += hinge_scaled_of(z[r * width + c], p)
        else:
            for c in range(width // LANES):
                lanes_store(sum + c * LANES, lanes_add(lanes_load(sum + c * LANES),
                            zero_one_lanes(z + c * LANES, width, some, p)))
        z += some * width
        rows -= some
    for c in range(width):
        out[c] += sum[c]


# --------------------------------------------------------------------- margins beyond 32 bits


cdef inline int32_t tail_wide(double z, loss_args p) noexcept nogil:
    cdef double t = -z if z < 0 else z
    cdef float near = <float>(t if t < p.far_wide else p.far_wide)
    return <int32_t>(log_one_plus(exp_minus(near * p.to_log2)) * <float>p.one)


cdef inline int64_t rounded_shift(double v, int32_t shift) noexcept nogil:
    return <int64_t>((v + <double>(<uint32_t>1 << shift >> 1)) / <double>(<uint32_t>1 << shift))


cdef inline int64_t loss_wide(int kind, const double *z, ptrdiff_t n, loss_args p) noexcept nogil:
    """The sum over records of the same integers."""
    cdef double m, sign = -1.0 if p.flip else 1.0
    cdef int64_t total = 0
    cdef ptrdiff_t i
    for i in range(n):
        m = sign * z[i]
        if kind == LOGISTIC:
            total += rounded_shift((-m if m < 0 else 0.0) + tail_wide(m, p), p.shift)
        elif kind == HINGE:
            total += rounded_shift(p.one - m if m < p.one else 0.0, p.shift)
        elif kind == HINGE_SCALED:
            total += <int64_t>((p.one - m if m < p.one else 0.0) * p.factor + 0.5)
        else:
            total += (z[i] > 0) ^ (p.flip + 1)
    return total


# ----------------------------------------------------------------------------------- slopes
# min(r(m), cap) times the class sign, in units of 2^-RESIDUAL_BITS, where r is minus the slope of
# the loss times the weight of the class: sigma(-m) of a logistic model, and max(1 - m, 0) of the
# hinge, which the cap makes Huber's. Zero-one errors have no slope.


cdef inline int32_t capped(float share, loss_args p, int32_t cap) noexcept nogil:
    cdef float half = 0.5
    cdef int32_t r = <int32_t>(share * p.slope_unit + half)
    r = r if r < cap else cap
    return (r ^ p.flip) - p.flip


cdef inline void residuals(int kind, const int32_t *z, ptrdiff_t n, loss_args p, int32_t cap,
                           int32_t *out) noexcept nogil:
    cdef ptrdiff_t i
    cdef int32_t m, t
    cdef float u, one = 1.0
    if kind == LOGISTIC:
        for i in range(n):
            m = (z[i] ^ p.flip) - p.flip
            t = -m if m < 0 else m
            t = t if t < p.far else p.far
            u = exp_minus(<float>t * p.to_log2)
            out[i] = capped((one if m < 0 else u) / (one + u), p, cap)
    else:
        for i in range(n):
            m = (z[i] ^ p.flip) - p.flip
            m = m if m > 0 else 0
            m = m if m < p.one else p.one
            out[i] = capped(<float>(p.one - m) / <float>p.one, p, cap)


cdef inline void residuals_wide(int kind, const double *z, ptrdiff_t n, loss_args p, int32_t cap,
                                int32_t *out) noexcept nogil:
    """The same from margins beyond 32 bits; no cap exceeds 1."""
    cdef ptrdiff_t i
    cdef double m, t
    cdef float u, one = 1.0
    for i in range(n):
        m = -z[i] if p.flip else z[i]
        if kind == LOGISTIC:
            t = -m if m < 0 else m
            u = exp_minus(<float>(t if t < p.far_wide else p.far_wide) * p.to_log2)
            out[i] = capped((one if m < 0 else u) / (one + u), p, cap)
        else:
            m = (p.one - m if m < p.one else 0.0) if m > 0 else <double>p.one
            out[i] = capped(<float>m / <float>p.one, p, cap)


cdef inline void cap_each(int32_t *residual, ptrdiff_t n, const int16_t *cap) noexcept nogil:
    """Each residual within the cap of its own record, whatever its sign."""
    cdef ptrdiff_t i
    cdef int32_t r, top
    for i in range(n):
        r = residual[i]
        top = cap[i]
        r = r if r < top else top
        residual[i] = r if r > -top else -top
