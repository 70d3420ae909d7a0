"""Rows of codes: margins by look-ups in a table, gradients as histograms.

A code is a place in one table with the bins of all joint columns, one after the other: the margin
of a record is a few look-ups, and what it adds to a gradient a few additions. A bin of a joint
column stands for a combination of levels of its groups. So a table is made from the weights of
levels (`spread`), and sums over bins are added up to sums over levels (`fold`).
"""

from libc.math cimport fabs, ldexp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t

from privfit._kernels.double_bits cimport bits_of, to_whole
from privfit._kernels.grid cimport WIDTH
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_left, lanes_load, lanes_mul, lanes_pairs, lanes_right,
    lanes_store, lanes_sub, pair_of,
)
from privfit._kernels.margins cimport group, put_group
from privfit._kernels.records cimport code_rows

ctypedef fused whole:  # whole numbers, in a double too
    int32_t
    int64_t
    double


# ------------------------------------------------------------------------------- levels and bins


cdef inline void spread(whole *table, ptrdiff_t bins, const whole *w, ptrdiff_t width,
                        ptrdiff_t v) noexcept nogil:
    """Add one more group to a joint column, in place: table (bins, v) becomes (bins width, v).

    A bin becomes `width` of them, each with the weights (v,) of a level. The last comes first, so
    that none is overwritten before it is read.
    """
    cdef ptrdiff_t i, c, j
    cdef whole x
    if v == 1:
        for i in range(bins - 1, -1, -1):
            x = table[i]
            for c in range(width):
                table[i * width + c] = x + w[c]
    else:
        for i in range(bins - 1, -1, -1):
            for c in range(width - 1, -1, -1):
                for j in range(v):
                    table[(i * width + c) * v + j] = table[i * v + j] + w[c * v + j]


cdef inline void fold(whole *sums, ptrdiff_t bins, whole *out, ptrdiff_t width,
                      ptrdiff_t v) noexcept nogil:
    """Undo it for sums (bins width, v): add those of the levels to out (width, v)."""
    cdef ptrdiff_t i, c, j
    cdef whole x, total
    if v == 1:
        for i in range(bins):
            total = 0
            for c in range(width):
                x = sums[i * width + c]
                out[c] += x
                total += x
            sums[i] = total
    else:
        for i in range(bins):
            for c in range(width):
                for j in range(v):
                    x = sums[(i * width + c) * v + j]
                    out[c * v + j] += x
                    sums[i * v + j] = x if c == 0 else sums[i * v + j] + x


# ------------------------------------------------------------------------------------ one model


cdef inline void look_up(const uint16_t *code, ptrdiff_t k, ptrdiff_t n, const whole *table,
                         whole start, whole *z) noexcept nogil:
    """z[r] = start + the sum of the table at the k codes of a record."""
    cdef ptrdiff_t r, j
    cdef whole s
    for r in range(n):
        s = start
        for j in range(k):
            s += table[code[r * k + j]]
        z[r] = s


cdef inline void look_up_by(const uint16_t *code, ptrdiff_t k, ptrdiff_t n, const whole *table,
                            whole start, whole *z) noexcept nogil:
    """Few columns: a loop of known length is unrolled."""
    if k == 1:
        look_up(code, 1, n, table, start, z)
    elif k == 2:
        look_up(code, 2, n, table, start, z)
    elif k == 3:
        look_up(code, 3, n, table, start, z)
    elif k == 4:
        look_up(code, 4, n, table, start, z)
    elif k == 5:
        look_up(code, 5, n, table, start, z)
    elif k == 6:
        look_up(code, 6, n, table, start, z)
    else:
        look_up(code, k, n, table, start, z)


cdef inline void code_margin(const code_rows *rows, ptrdiff_t first, ptrdiff_t n,
                             const whole *table, const whole *w, whole start, whole one,
                             whole *z) noexcept nogil:
    """z[r] of one candidate; w are the weights of numbers, a level is `one`."""
    cdef const int16_t *x
    cdef ptrdiff_t r, j
    look_up_by(rows.code + first * rows.joints, rows.joints, n, table, start, z)
    for r in range(n):
        z[r] *= one
    for j in range(rows.numbers):
        x = rows.number + j * rows.rows + first
        for r in range(n):
            z[r] += w[j] * x[r]


cdef inline void shift_margin(const code_rows *rows, ptrdiff_t first, ptrdiff_t n, ptrdiff_t joint,
                              const int32_t *table, int32_t one, int32_t *z) noexcept nogil:
    """Add to z[r] what the weights of one joint column changed by."""
    cdef const uint16_t *code = rows.code + first * rows.joints + joint
    cdef ptrdiff_t r
    for r in range(n):
        z[r] += table[code[r * rows.joints]] * one


cdef inline void count(const uint16_t *code, ptrdiff_t k, ptrdiff_t n, const int32_t *residual,
                       int32_t *sums) noexcept nogil:
    """sums[code] += residual of its record."""
    cdef ptrdiff_t r, j
    cdef int32_t v
    for r in range(n):
        v = residual[r]
        for j in range(k):
            sums[code[r * k + j]] += v


cdef inline void count_by(const uint16_t *code, ptrdiff_t k, ptrdiff_t n, const int32_t *residual,
                          int32_t *sums) noexcept nogil:
    """Few columns: a loop of known length is unrolled."""
    if k == 1:
        count(code, 1, n, residual, sums)
    elif k == 2:
        count(code, 2, n, residual, sums)
    elif k == 3:
        count(code, 3, n, residual, sums)
    elif k == 4:
        count(code, 4, n, residual, sums)
    elif k == 5:
        count(code, 5, n, residual, sums)
    elif k == 6:
        count(code, 6, n, residual, sums)
    else:
        count(code, k, n, residual, sums)


cdef inline int64_t total(const int32_t *v, ptrdiff_t n) noexcept nogil:
    cdef int64_t sum = 0
    cdef ptrdiff_t i
    for i in range(n):
        sum += v[i]
    return sum


cdef inline void add_code_gradient(const code_rows *rows, ptrdiff_t first, ptrdiff_t n,
                                   const int32_t *residual, int32_t *sums,
                                   int64_t *numbers) noexcept nogil:
    """Add residuals to the bins (bins,) of their records, and times numbers to (numbers + 1,).

    What comes last are residuals by themselves: the intercept's.
    """
    cdef const int16_t *x
    cdef ptrdiff_t r, j
    cdef int64_t sum
    count_by(rows.code + first * rows.joints, rows.joints, n, residual, sums)
    for j in range(rows.numbers):
        x = rows.number + j * rows.rows + first
        sum = 0
        for r in range(n):
            sum += <int64_t>(residual[r] * x[r])  # 13 and 15 bits
        numbers[j] += sum
    numbers[rows.numbers] += total(residual, n)


# ------------------------------------------------------------------------------- many candidates


cdef inline void code_margins(const code_rows *rows, ptrdiff_t first, ptrdiff_t last,
                              const int32_t *table, const int32_t *start, const int32_t *w, int a,
                              int32_t *z) noexcept nogil:
    """z[r][c] of WIDTH candidates; table is (bins, WIDTH), start (WIDTH,), w (numbers, WIDTH)."""
    cdef const int32_t *v
    cdef group s
    cdef lanes x
    cdef ptrdiff_t r, j
    for r in range(first, last):
        s.a, s.b = lanes_load(start), lanes_load(start + LANES)
        s.c, s.d = lanes_load(start + 2 * LANES), lanes_load(start + 3 * LANES)
        for j in range(rows.joints):
            v = table + <ptrdiff_t>rows.code[r * rows.joints + j] * WIDTH
            s.a = lanes_add(s.a, lanes_load(v))
            s.b = lanes_add(s.b, lanes_load(v + LANES))
            s.c = lanes_add(s.c, lanes_load(v + 2 * LANES))
            s.d = lanes_add(s.d, lanes_load(v + 3 * LANES))
        s.a, s.b = lanes_left(s.a, a), lanes_left(s.b, a)
        s.c, s.d = lanes_left(s.c, a), lanes_left(s.d, a)
        for j in range(rows.numbers):
            x = lanes_all(rows.number[j * rows.rows + r])
            v = w + j * WIDTH
            s.a = lanes_add(s.a, lanes_mul(x, lanes_load(v)))
            s.b = lanes_add(s.b, lanes_mul(x, lanes_load(v + LANES)))
            s.c = lanes_add(s.c, lanes_mul(x, lanes_load(v + 2 * LANES)))
            s.d = lanes_add(s.d, lanes_mul(x, lanes_load(v + 3 * LANES)))
        put_group(z, s)
        z += WIDTH


cdef inline lanes two_numbers(const code_rows *rows, ptrdiff_t r, ptrdiff_t j) noexcept nogil:
    """Two numbers of a record in every lane; 0 where the second is missing."""
    cdef const int16_t *x = rows.number + 2 * j * rows.rows + r
    return lanes_all(pair_of(x[0], x[rows.rows] if 2 * j + 1 < rows.numbers else 0))


cdef inline void code_margins_paired(const code_rows *rows, ptrdiff_t k, ptrdiff_t first,
                                     ptrdiff_t last, const int32_t *table, const int32_t *start,
                                     const int32_t *w, int a, int32_t *z) noexcept nogil:
    """The same where sums over levels, and weights of numbers, are sure to fit in 16 bits.

    Two candidates share a lane as in `sparse_margins_paired`: table is (bins, WIDTH/2), start
    (WIDTH/2,). And so do the weights of two numbers: w is (pairs of numbers, WIDTH).
    """
    cdef lanes left, right, low, low2, x
    cdef const int32_t *v
    cdef group s
    cdef ptrdiff_t r, j
    for r in range(first, last):
        left, right = lanes_load(start), lanes_load(start + LANES)
        for j in range(k):
            v = table + <ptrdiff_t>rows.code[r * k + j] * (WIDTH // 2)
            left = lanes_add(left, lanes_load(v))
            right = lanes_add(right, lanes_load(v + LANES))
        low = lanes_right(lanes_left(left, 16), 16)
        low2 = lanes_right(lanes_left(right, 16), 16)
        s.a, s.b = lanes_left(low, a), lanes_left(low2, a)
        s.c = lanes_right(lanes_sub(left, low), 16 - a)
        s.d = lanes_right(lanes_sub(right, low2), 16 - a)
        for j in range((rows.numbers + 1) // 2):
            x = two_numbers(rows, r, j)
            v = w + j * WIDTH
            s.a = lanes_add(s.a, lanes_pairs(x, lanes_load(v)))
            s.b = lanes_add(s.b, lanes_pairs(x, lanes_load(v + LANES)))
            s.c = lanes_add(s.c, lanes_pairs(x, lanes_load(v + 2 * LANES)))
            s.d = lanes_add(s.d, lanes_pairs(x, lanes_load(v + 3 * LANES)))
        put_group(z, s)
        z += WIDTH


cdef inline void code_margins_few(const code_rows *rows, ptrdiff_t k, ptrdiff_t first,
                                  ptrdiff_t last, const int32_t *table, const int32_t *start,
                                  const int32_t *w, int a, int32_t *z) noexcept nogil:
    """The same of WIDTH/2 candidates: table is (bins, WIDTH/4), w (pairs of numbers, WIDTH/2)."""
    cdef lanes both, low, x, left, right
    cdef const int32_t *v
    cdef ptrdiff_t r, j
    for r in range(first, last):
        both = lanes_load(start)
        for j in range(k):
            both = lanes_add(both, lanes_load(table + <ptrdiff_t>rows.code[r * k + j] * LANES))
        low = lanes_right(lanes_left(both, 16), 16)
        left, right = lanes_left(low, a), lanes_right(lanes_sub(both, low), 16 - a)
        for j in range((rows.numbers + 1) // 2):
            x = two_numbers(rows, r, j)
            v = w + j * (WIDTH // 2)
            left = lanes_add(left, lanes_pairs(x, lanes_load(v)))
            right = lanes_add(right, lanes_pairs(x, lanes_load(v + LANES)))
        lanes_store(z, left)
        lanes_store(z + LANES, right)
        z += WIDTH // 2


# ----------------------------------------------------------------------- lengths and second moments


cdef inline void code_image(const code_rows *rows, ptrdiff_t r, const double *table,
                            const double *start, const double *numbers, ptrdiff_t width,
                            double one, double *z) noexcept nogil:
    """`width` coordinates of a record's image: whole numbers below 2^50, exact in double.

    Two codes at a time, so that the sums are loaded and stored half as often.
    """
    cdef const uint16_t *code = rows.code + r * rows.joints
    cdef const double *even
    cdef const double *odd
    cdef ptrdiff_t c, j
    cdef double x
    for c in range(width):
        z[c] = start[c]
    for j in range(rows.joints // 2):
        even = table + code[2 * j] * width
        odd = table + code[2 * j + 1] * width
        for c in range(width):
            z[c] += (even[c] + odd[c]) * one
    if rows.joints % 2:
        even = table + code[rows.joints - 1] * width
        for c in range(width):
            z[c] += even[c] * one
    for j in range(rows.numbers):
        x = rows.number[j * rows.rows + r]
        for c in range(width):
            z[c] += x * numbers[j * width + c]


cdef inline int64_t code_length(const double *z, ptrdiff_t width, int shift,
                                bint squared) noexcept nogil:
    """What these coordinates add to the length of a record; see `image_length`.

    A size is rounded up to a multiple of 2^shift: it has no more than `shift` bits after the point,
    so that half a unit less half of the last bit, and then the nearest, is the next whole number.
    """
    cdef double scale = ldexp(1.0, -shift)
    cdef double up = 0.5 - 0.5 * scale
    cdef uint64_t total = 0
    cdef uint32_t size
    cdef ptrdiff_t c
    if squared:
        for c in range(width):
            size = <uint32_t>bits_of(fabs(z[c]) * scale + up + to_whole())
            total += <uint64_t>size * size
    else:
        for c in range(width):
            total += <uint32_t>bits_of(fabs(z[c]) * scale + up + to_whole())
    return <int64_t>total


cdef inline void levels_of(const code_rows *rows, ptrdiff_t first, ptrdiff_t n, ptrdiff_t joint,
                           const uint16_t *lookup, uint16_t *out) noexcept nogil:
    """The level of each record in a piece; lookup is the level of each code."""
    cdef const uint16_t *code = rows.code + first * rows.joints + joint
    cdef ptrdiff_t r
    for r in range(n):
        out[r] = lookup[code[r * rows.joints]]


cdef inline void count_pairs(const uint16_t *left, const uint16_t *right, ptrdiff_t n,
                             ptrdiff_t width, int32_t *counts) noexcept nogil:
    """counts[left][right] += 1."""
    cdef ptrdiff_t r
    for r in range(n):
        counts[left[r] * width + right[r]] += 1


cdef inline void count_two_pairs(const uint16_t *left, const uint16_t *other,
                                 const uint16_t *right, ptrdiff_t n, ptrdiff_t width,
                                 int32_t *counts, int32_t *others) noexcept nogil:
    """The same of two pieces on the left: neighbours that meet in one bin wait for each other."""
    cdef ptrdiff_t r
    for r in range(n):
        counts[left[r] * width + right[r]] += 1
        others[other[r] * width + right[r]] += 1


cdef inline void count_each(const uint16_t *level, ptrdiff_t n, int32_t *counts) noexcept nogil:
    """counts[level] += 1."""
    cdef ptrdiff_t r
    for r in range(n):
        counts[level[r]] += 1


cdef inline void add_by_level(const uint16_t *level, const int16_t *x, ptrdiff_t n,
                              int64_t *sums) noexcept nogil:
    """sums[level] += x."""
    cdef ptrdiff_t r
    for r in range(n):
        sums[level[r]] += x[r]


cdef inline int64_t product(const int16_t *x, const int16_t *y, ptrdiff_t n) noexcept nogil:
    cdef int64_t total = 0
    cdef ptrdiff_t r
    for r in range(n):
        total += x[r] * y[r]
    return total
