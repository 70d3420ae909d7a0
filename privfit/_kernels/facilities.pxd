"""Clipped distances in one or two bytes, a row for each facility, and minima over sets of them."""

from libc.math cimport sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from privfit._kernels.grid cimport PANEL, WIDTH, check
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_bytes, lanes_load, lanes_min, lanes_min8, lanes_min16,
    lanes_store, lanes_sub, lanes_words, transpose_words,
)

cdef enum:
    STRIP = 128   # records whose distances to a set are compared before they are summed
    PART = 32767  # words whose sum fits in 32 bits with a sign

ctypedef fused small:
    uint8_t
    uint16_t


# ------------------------------------------------------------------------------ storing distances


cdef inline void clip_store(const int32_t *z, ptrdiff_t n, int32_t low, int32_t high, int shift,
                            small *out) noexcept nogil:
    """out[i] = round((clip(z[i], low, high) - low) / 2^shift), halves upwards."""
    cdef uint32_t half = <uint32_t>1 << shift >> 1
    cdef int32_t v
    cdef ptrdiff_t i
    for i in range(n):
        v = z[i] if z[i] > low else low
        v = (v if v < high else high) - low
        out[i] = <small>((<uint32_t>v + half) >> shift)


cdef inline void root_store(const double *z, ptrdiff_t n, double low, double high, double unit,
                            small *out) noexcept nogil:
    """The same for the root of z, a whole number below 2^53: the root is correctly rounded."""
    cdef double v, rate = 1.0 / unit  # a power of two
    cdef ptrdiff_t i
    for i in range(n):
        v = sqrt(z[i])
        v = v if v > low else low
        v = (v if v < high else high) - low
        out[i] = <small><int32_t>(v * rate + 0.5)


cdef inline void clip_transpose(const int32_t *z, ptrdiff_t rows, ptrdiff_t facilities, int32_t low,
                                int32_t high, int shift, small *out,
                                ptrdiff_t stride) noexcept nogil:
    """`clip_store` for z (rows, WIDTH) of up to PANEL rows, turned to (facilities, stride)."""
    cdef small[PANEL * WIDTH] clipped
    cdef ptrdiff_t r, c
    clip_store(z, rows * WIDTH, low, high, shift, &clipped[0])
    if small is uint16_t:
        if rows == PANEL and facilities == WIDTH:
            for r in range(0, PANEL, 8):
                for c in range(0, WIDTH, 8):
                    transpose_words(&clipped[r * WIDTH + c], WIDTH, out + c * stride + r, stride)
            return
    for c in range(facilities):
        for r in range(rows):
            out[c * stride + r] = clipped[r * WIDTH + c]


# -------------------------------------------------------------------------------- sums of minima


cdef inline lanes lesser(lanes best, const small *row) noexcept nogil:
    """The lesser of the distances in `best` and as many of a row."""
    if small is uint8_t:
        return lanes_min8(best, lanes_load(row))
    else:
        return lanes_min16(best, lanes_load(row))


cdef inline void least_strip(const small *rows, ptrdiff_t stride, const int64_t *members,
                             ptrdiff_t k, small *best) noexcept nogil:
    """The least distance of STRIP records to the k facilities of a set: four registers of them."""
    cdef ptrdiff_t i, _part, step = 4 * LANES // sizeof(small)  # distances in a register
    cdef const small *row
    cdef lanes a, b, c, d
    for _part in range(STRIP // (4 * step)):
        row = rows + members[0] * stride
        a, b = lanes_load(row), lanes_load(row + step)
        c, d = lanes_load(row + 2 * step), lanes_load(row + 3 * step)
        for i in range(1, k):
            row = rows + members[i] * stride
            a, b = lesser(a, row), lesser(b, row + step)
            c, d = lesser(c, row + 2 * step), lesser(d, row + 3 * step)
        lanes_store(best, a)
        lanes_store(best + step, b)
        lanes_store(best + 2 * step, c)
        lanes_store(best + 3 * step, d)
        rows += 4 * step
        best += 4 * step


cdef inline int64_t least_sum(const small *rows, ptrdiff_t stride, const int64_t *members,
                              ptrdiff_t k, ptrdiff_t n) noexcept nogil:
    """The sum over n records of the least distance to the k facilities of a set."""
    cdef small[STRIP] best
    cdef uint32_t sum
    cdef int64_t total = 0
    cdef ptrdiff_t i, s
    for s in range((n + STRIP - 1) // STRIP):
        least_strip(rows + s * STRIP, stride, members, k, &best[0])
        sum = 0
        for i in range(min(<ptrdiff_t>STRIP, n - s * STRIP)):
            sum += best[i]
        total += sum
    return total


cdef inline int64_t lesser_sum(const small *a, const small *b, ptrdiff_t n) noexcept nogil:
    """The sum over n records of the lesser of two distances."""
    cdef uint32_t sum
    cdef int64_t total = 0
    cdef ptrdiff_t i, part
    while n > 0:
        part = min(<ptrdiff_t>PART, n)
        sum = 0
        for i in range(part):
            sum += a[i] if a[i] < b[i] else b[i]
        total += sum
        a += part
        b += part
        n -= part
    return total


# ----------------------------------------------------------------------------------- replacements


cdef inline lanes widened(const small *p) noexcept nogil:
    """Eight distances as eight lanes."""
    if small is uint8_t:
        return lanes_bytes(p)
    else:
        return lanes_words(p)


cdef inline void turn(const small *rows, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t n,
                      small *out) noexcept nogil:
    """out[r][c] = rows[c][r] of `count` facilities and n records, at most LANES of each."""
    cdef ptrdiff_t r, c
    if count == LANES and n == LANES:
        if small is uint16_t:
            transpose_words(rows, stride, out, LANES)
        else:
            for c in range(LANES):
                for r in range(LANES):
                    out[r * LANES + c] = rows[c * stride + r]
    else:
        for r in range(n):
            for c in range(count):
                out[r * LANES + c] = rows[c * stride + r]


cdef inline lanes swap_records(const small *turned, const small *first, const small *second,
                               const int32_t *which, ptrdiff_t n, int32_t *gone,
                               lanes sum) noexcept nogil:
    """The sum and what n records add to it, at most LANES of them; see `swaps`."""
    cdef lanes v, kept, more
    cdef int32_t *own
    cdef ptrdiff_t r
    for r in range(n):
        own = gone + which[r] * LANES
        v = widened(turned + r * LANES)
        kept = lanes_min(v, lanes_all(first[r]))
        more = lanes_sub(lanes_min(v, lanes_all(second[r])), kept)
        sum = lanes_add(sum, kept)
        lanes_store(own, lanes_add(lanes_load(own), more))
    return sum


cdef inline void swaps(const small *rows, ptrdiff_t stride, ptrdiff_t count, const small *first,
                       const small *second, const int32_t *which, ptrdiff_t n, int32_t *added,
                       int32_t *gone) noexcept nogil:
    """The costs of n records with one of `count` facilities added, and what members add by going.

    added[c] is the cost with facility c, gone[i][c] grows by what the records of member i pay on
    top if it goes: see `all_swap_sums`. Eight records at a time are turned so that their facilities
    lie side by side, and a record's eight numbers go to its nearest member's. At most PART records,
    so that 32 bits hold.
    """
    cdef small[64] turned
    cdef lanes sum = lanes_all(0)
    cdef ptrdiff_t i, whole = n // 8 * 8
    check(n <= PART)
    for i in range(64):
        turned[i] = 0
    for i in range(0, whole, 8):
        turn(rows + i, stride, count, 8, &turned[0])
        sum = swap_records(&turned[0], first + i, second + i, which + i, 8, gone, sum)
    if whole < n:
        turn(rows + whole, stride, count, n - whole, &turned[0])
        sum = swap_records(&turned[0], first + whole, second + whole, which + whole, n - whole,
                           gone, sum)
    lanes_store(added, sum)
