"""Hinge and zero-one losses of sparse records in words of 16 bits, two candidates to a lane.

Where the sum of weights over a record's ones is sure to fit in 16 bits, and the record has no other
values, neither its margin nor its loss has to leave them: sums start at 2^15, and what is above or
below a bound is one subtraction that stops at 0.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from privfit._kernels.grid cimport HINGE, WIDTH, ZERO_ONE, check, loss_args
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_above16, lanes_add, lanes_add16, lanes_all, lanes_and, lanes_load,
    lanes_min16, lanes_right16, lanes_upper,
)
from privfit._kernels.margins cimport group, put_group
from privfit._kernels.records cimport sparse_rows

cdef enum:
    MIDDLE = 32768  # stands for a margin of 0
    TWO_WIDTHS = 64


cdef inline bint has_short_losses(int kind, const sparse_rows *rows, ptrdiff_t first,
                                  ptrdiff_t last, loss_args p, int a) noexcept nogil:
    """Whether `short_losses` can take these rows: a hinge, and what rounds it, have to fit too."""
    cdef int32_t one = p.one >> a
    if rows.value_start[first] != rows.value_start[last]:
        return False
    if kind == HINGE:
        return one + (1 << max(p.shift - a, 0) >> 1) <= MIDDLE and a - p.shift < 24
    return kind == ZERO_ONE


cdef inline lanes short_hinges(lanes z, loss_args p, lanes bound, lanes half,
                               int shift) noexcept nogil:
    """max(1 - m, 0) of 16 candidates in units of a weight, or of 2^shift of them, rounded."""
    z = lanes_above16(z, bound) if p.flip else lanes_above16(bound, z)
    return lanes_right16(lanes_add16(z, half), shift) if shift > 0 else z


cdef struct words:  # of WIDTH candidates, two to a lane
    lanes left, right


cdef inline words words_of(const int32_t *v) noexcept nogil:
    cdef words z
    z.left, z.right = lanes_load(v), lanes_load(v + LANES)
    return z


cdef inline words words_added(words z, words more) noexcept nogil:
    z.left, z.right = lanes_add(z.left, more.left), lanes_add(z.right, more.right)
    return z


cdef inline words short_of(int kind, words z, loss_args p, lanes bound, lanes half,
                           int shift) noexcept nogil:
    """The losses of a record; of zero-one losses, 1 for a margin above 0."""
    cdef lanes ones = lanes_all(0x10001)
    if kind == HINGE:
        z.left = short_hinges(z.left, p, bound, half, shift)
        z.right = short_hinges(z.right, p, bound, half, shift)
    else:
        z.left = lanes_min16(lanes_above16(z.left, bound), ones)
        z.right = lanes_min16(lanes_above16(z.right, bound), ones)
    return z


cdef inline group widened(group sum, words z) noexcept nogil:
    """A sum of 32 bits for each candidate, and what a record adds."""
    cdef lanes lower = lanes_all(0xffff)
    sum.a = lanes_add(sum.a, lanes_and(z.left, lower))
    sum.b = lanes_add(sum.b, lanes_and(z.right, lower))
    sum.c, sum.d = lanes_add(sum.c, lanes_upper(z.left)), lanes_add(sum.d, lanes_upper(z.right))
    return sum


cdef inline void short_rows(int kind, const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                            const int32_t *pairs, const int32_t *others, ptrdiff_t d, int shift,
                            loss_args p, int32_t edge, int32_t *sums) noexcept nogil:
    """Sums (2, WIDTH) over rows, for two groups of candidates that share a look at the columns."""
    cdef lanes half = lanes_all(0x10001 * (1 << shift >> 1))
    cdef lanes bound = lanes_all(<int32_t>(0x10001u * <uint32_t>edge))
    cdef bint two = pairs != others
    cdef words y, z, middle
    cdef group sum, other
    cdef ptrdiff_t r, at
    cdef int64_t i
    middle.left = middle.right = lanes_all(<int32_t>0x80008000u)
    sum.a = sum.b = sum.c = sum.d = other.a = other.b = other.c = other.d = lanes_all(0)
    for r in range(first, last):
        y = words_added(words_of(pairs + d * (WIDTH // 2)), middle)
        z = words_added(words_of(others + d * (WIDTH // 2)), middle)
        for i in range(rows.one_start[r], rows.one_start[r + 1]):
            check(0 <= rows.one_column[i] < d)
            at = <ptrdiff_t>rows.one_column[i] * (WIDTH // 2)
            y = words_added(y, words_of(pairs + at))
            if two:
                z = words_added(z, words_of(others + at))
        sum = widened(sum, short_of(kind, y, p, bound, half, shift))
        if two:
            other = widened(other, short_of(kind, z, p, bound, half, shift))
    put_group(sums, sum)
    put_group(sums + WIDTH, other)


cdef inline void short_block(int kind, const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                             const int32_t *pairs, const int32_t *others, ptrdiff_t d, int a,
                             loss_args p, int32_t *sums) noexcept nogil:
    """`short_rows` by a kind and a shift that its loops know; no shift if nothing is rounded."""
    cdef int32_t one = p.one >> a
    cdef int32_t edge = MIDDLE - one if p.flip else MIDDLE + one
    if kind == ZERO_ONE:
        short_rows(ZERO_ONE, rows, first, last, pairs, others, d, 0, p, MIDDLE, sums)
    elif p.shift > a:
        short_rows(HINGE, rows, first, last, pairs, others, d, p.shift - a, p, edge, sums)
    else:
        short_rows(HINGE, rows, first, last, pairs, others, d, 0, p, edge, sums)


cdef inline void short_losses(int kind, const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                              const int32_t *pairs, ptrdiff_t groups, ptrdiff_t d, int a,
                              loss_args p, int64_t *out) noexcept nogil:
    """Add the losses of all candidates; pairs is (groups, d+1, WIDTH/2): `sparse_margins_paired`.

    A hinge that needs no rounding is summed in units of a weight.
    """
    cdef int32_t[TWO_WIDTHS] sums
    cdef ptrdiff_t b, c, g, many, end, step = (d + 1) * (WIDTH // 2)
    for b in range(first, last, 256):
        end = min(b + 256, last)
        for g in range(0, groups, 2):
            many = min(2, groups - g)
            short_block(kind, rows, b, end, pairs + g * step, pairs + (g + many - 1) * step, d, a,
                        p, sums)
            for c in range(many * WIDTH):
                if kind == HINGE:
                    out[g * WIDTH + c] += <int64_t>sums[c] << max(a - p.shift, 0)
                else:
                    out[g * WIDTH + c] += sums[c] if p.flip else end - b - sums[c]
