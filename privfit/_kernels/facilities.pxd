"""Clipped distances in one or two bytes, a row for each facility, and minima over sets of them."""

from libc.math cimport sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from privfit._kernels.grid cimport PANEL, QUAD, WIDTH, check
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_add8, lanes_all, lanes_bytes, lanes_above8, lanes_load,
    lanes_look, lanes_look_in, lanes_min, lanes_min8, lanes_min16, lanes_right, lanes_sixteen,
    lanes_store, lanes_store8, lanes_store16, lanes_store_words, lanes_sub, lanes_words, pair_of,
    transpose_words,
)
from privfit._kernels.margins cimport GREATER, L2, both, panel_sums, plus, sums, two

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


cdef inline two twice(two z, two s) noexcept nogil:
    """z and twice the sums of 16 bits in s."""
    cdef lanes twos = lanes_all(pair_of(2, 2))
    z.left, z.right = plus(L2, z.left, s.left, twos), plus(L2, z.right, s.right, twos)
    return z


cdef inline two above(int32_t level, const int32_t *own) noexcept nogil:
    cdef two z = both(level)
    z.left = lanes_sub(z.left, lanes_load(own))
    z.right = lanes_sub(z.right, lanes_load(own + LANES))
    return z


cdef inline void store_two(two z, int shift, int top, small *out) noexcept nogil:
    """The distances of a panel, in units of 2^shift, between 0 and top."""
    if small is uint16_t:
        lanes_store16(out, lanes_right(z.left, shift), lanes_right(z.right, shift), top)
    else:
        lanes_store8(out, lanes_right(z.left, shift), lanes_right(z.right, shift), top)


cdef inline void short_panel(const int32_t *panel, ptrdiff_t pairs, const int32_t *w,
                             const int32_t *start, ptrdiff_t chunk, const int32_t *level,
                             const int32_t *own, int shift, int top, ptrdiff_t facilities,
                             small *out, ptrdiff_t stride) noexcept nogil:
    """The l1 distances of up to QUAD facilities, from sums of 16 bits over `chunk` pairs at a time.

    abs(x - f) = 2 max(x - f, 0) + f - x, so that l1(x - f) = level - own + 2 sum of max(x - f, 0),
    with the sum of f in `level` and that of x in `own`. Sums of max(x, f) that start with minus the
    sum of f and 2^15, start (chunks, QUAD), wrap and yet end within 16 bits: the caller knows how
    many columns that takes, and what `level` makes up for.
    """
    cdef two a = above(level[0], own), b = above(level[1], own)
    cdef two c = above(level[2], own), d = above(level[3], own)
    cdef ptrdiff_t j, g
    cdef sums s
    for g in range((pairs + chunk - 1) // chunk):
        j = g * chunk
        s = panel_sums(GREATER, panel + j * PANEL, min(chunk, pairs - j), w + j * QUAD,
                       start + g * QUAD)
        a, b, c, d = twice(a, s.a), twice(b, s.b), twice(c, s.c), twice(d, s.d)
    store_two(a, shift, top, out)
    if facilities > 1:
        store_two(b, shift, top, out + stride)
    if facilities > 2:
        store_two(c, shift, top, out + 2 * stride)
    if facilities > 3:
        store_two(d, shift, top, out + 3 * stride)


cdef inline void code_strip(const uint8_t *codes, ptrdiff_t stride, const uint8_t *looks,
                            const uint8_t *place, ptrdiff_t fours, uint8_t *count) noexcept nogil:
    """The sum over `fours` codes of looks[place[j]][codes[j][r]], of STRIP records, in bytes."""
    cdef lanes a, b, c, d, table
    cdef const uint8_t *row
    cdef ptrdiff_t j
    a = b = c = d = lanes_all(0)
    for j in range(fours):
        check(place[j] < 16)
        table = lanes_sixteen(looks + 16 * place[j])
        row = codes + j * stride
        a = lanes_add8(a, lanes_look(table, lanes_load(row)))
        b = lanes_add8(b, lanes_look(table, lanes_load(row + 4 * LANES)))
        c = lanes_add8(c, lanes_look(table, lanes_load(row + 8 * LANES)))
        d = lanes_add8(d, lanes_look(table, lanes_load(row + 12 * LANES)))
    lanes_store(count, a)
    lanes_store(count + 4 * LANES, b)
    lanes_store(count + 8 * LANES, c)
    lanes_store(count + 12 * LANES, d)


cdef inline lanes bytes_all(int32_t v) noexcept nogil:
    return lanes_all(<int32_t>(<uint32_t>v * 0x01010101))


cdef inline void code_store(const uint8_t *count, const uint8_t *stored, int32_t least,
                            ptrdiff_t sixteens, small *out) noexcept nogil:
    """out[i] = stored[count[i] - least] of STRIP counts, those outside at the ends of the table.

    stored is (2, sixteens, 16): the low bytes, then the high ones.
    """
    cdef lanes i, low, high, begin = bytes_all(least), end = bytes_all(<int32_t>(16 * sixteens - 1))
    cdef lanes back = bytes_all(256 - 16)
    cdef ptrdiff_t part, q
    for part in range(STRIP // (4 * LANES)):
        i = lanes_min8(lanes_above8(lanes_load(count + part * 4 * LANES), begin), end)
        low = high = lanes_all(0)
        for q in range(sixteens):
            low = lanes_add8(low, lanes_look_in(lanes_sixteen(stored + 16 * q), i))
            if small is uint16_t:
                high = lanes_add8(
                    high, lanes_look_in(lanes_sixteen(stored + 16 * (sixteens + q)), i))
            i = lanes_add8(i, back)
        if small is uint16_t:
            lanes_store_words(out + part * 4 * LANES, low, high)
        else:
            lanes_store(out + part * 4 * LANES, low)


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
