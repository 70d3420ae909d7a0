"""Sums over records of a residual times the record, and lengths of records: exact integers."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t

from privfit._kernels.grid cimport BLOCK, PANEL, check
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_load, lanes_pairs, lanes_store,
)
from privfit._kernels.records cimport sparse_rows

cdef enum:
    IMAGE = 256  # coordinates of a record's image that are summed at a time


cdef inline void gradient(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                          const int32_t *residual, int32_t *work, int64_t *out) noexcept nogil:
    """out[j] += sum over records of residual x_j; work is (2, n_panels, PANEL).

    At most BLOCK/2 records, so that int32 lanes hold: 16 terms of at most 2^14 2^RESIDUAL_BITS. The
    residual stands in the first and in the second half of a pair, so that one product yields one
    column.
    """
    cdef int32_t[16] ends
    cdef lanes even, odd, x
    cdef ptrdiff_t i, j, p, half, n = n_panels * PANEL
    cdef const int32_t *panel
    cdef int16_t *words = <int16_t *>work
    check(n <= BLOCK // 2)
    for i in range(n):
        words[2 * i], words[2 * i + 1] = <int16_t>residual[i], 0
        words[2 * (n + i)], words[2 * (n + i) + 1] = 0, <int16_t>residual[i]
    for j in range(pairs):
        even = odd = lanes_all(0)
        for p in range(n_panels):
            panel = panels + (p * pairs + j) * PANEL
            for half in range(2):
                x = lanes_load(panel + half * LANES)
                i = p * PANEL + half * LANES
                even = lanes_add(even, lanes_pairs(x, lanes_load(work + i)))
                odd = lanes_add(odd, lanes_pairs(x, lanes_load(work + n + i)))
        lanes_store(ends, even)
        lanes_store(ends + LANES, odd)
        for i in range(LANES):
            out[2 * j] += ends[i]
            out[2 * j + 1] += ends[LANES + i]


cdef inline void add_sparse_gradient(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                     ptrdiff_t d, const int32_t *residual, int64_t *ones,
                                     int64_t *values) noexcept nogil:
    """ones[j] and values[j] += residual, residual x_j; the intercept last."""
    cdef const int64_t *one_start = rows.one_start
    cdef const int64_t *value_start = rows.value_start
    cdef const int32_t *one_column = rows.one_column
    cdef const int32_t *value_column = rows.value_column
    cdef const int16_t *value = rows.value
    cdef int64_t v, i, total = 0
    cdef ptrdiff_t r
    for r in range(first, last):
        v = residual[r - first]
        total += v
        for i in range(one_start[r], one_start[r + 1]):
            check(0 <= one_column[i] < d)
            ones[one_column[i]] += v
        for i in range(value_start[r], value_start[r + 1]):
            check(0 <= value_column[i] < d)
            values[value_column[i]] += v * value[i]
    ones[d] += total


cdef inline void add_image(const sparse_rows *rows, ptrdiff_t r, const int64_t *columns,
                           ptrdiff_t d, ptrdiff_t k, ptrdiff_t width, int a,
                           uint64_t *z) noexcept nogil:
    """z: `width` coordinates of a record's image; columns is (d+1, k), the last row added once.

    Two columns are added at a time, so that the sums are loaded and stored half as often.
    """
    cdef const int64_t *even
    cdef const int64_t *odd
    cdef const int64_t *start = columns + d * k
    cdef uint64_t value
    cdef int64_t i = rows.one_start[r], end = rows.one_start[r + 1]
    cdef ptrdiff_t c
    for c in range(width):
        z[c] = 0
    while i + 1 < end:
        check(0 <= rows.one_column[i] < d)
        even = columns + rows.one_column[i] * k
        odd = columns + rows.one_column[i + 1] * k
        for c in range(width):
            z[c] += <uint64_t>even[c] + <uint64_t>odd[c]
        i += 2
    if i < end:
        even = columns + rows.one_column[i] * k
        for c in range(width):
            z[c] += <uint64_t>even[c]
    for c in range(width):
        z[c] = (z[c] << a) + <uint64_t>start[c]
    for i in range(rows.value_start[r], rows.value_start[r + 1]):
        even = columns + rows.value_column[i] * k
        value = <uint64_t><int64_t>rows.value[i]
        for c in range(width):
            z[c] += <uint64_t>even[c] * value


cdef inline int64_t image_length(const sparse_rows *rows, ptrdiff_t r, const int64_t *columns,
                                 ptrdiff_t d, ptrdiff_t k, int a, int shift,
                                 bint squared) noexcept nogil:
    """The l1 norm, or the square of the l2 norm, of a record's image under a linear map.

    Sizes of coordinates lose `shift` low bits, rounded up, and then have at most 30.
    """
    cdef uint64_t[IMAGE] z
    cdef uint64_t size, total = 0, up = (<uint64_t>1 << shift) - 1
    cdef ptrdiff_t c, b, width
    for b in range((k + IMAGE - 1) // IMAGE):
        width = min(<ptrdiff_t>IMAGE, k - b * IMAGE)
        add_image(rows, r, columns + b * IMAGE, d, k, width, a, z)
        for c in range(width):
            size = 0 - z[c] if <int64_t>z[c] < 0 else z[c]
            size = (size + up) >> shift
            total += <uint64_t><uint32_t>size * <uint32_t>size if squared else size
    return <int64_t>total
