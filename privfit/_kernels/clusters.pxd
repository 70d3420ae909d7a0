"""What a tile does once its distances to centres are known: nearest centres, sums of clusters.

Squared l2 distances come without the record's own square: norm2(c) - 2 <x, c> is a margin with
weights -2c, and the squares of the records are one constant for all candidates. Distances of a tile
lie in z[r], an int32 for each record.
"""

from libc.math cimport sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport llabs

from privfit._kernels.grid cimport BLOCK, PANEL, check
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_and, lanes_left, lanes_load, lanes_pairs, lanes_right,
    lanes_store, pair_first, pair_second, transpose_lanes,
)

cdef enum:
    MASKED = 5          # clusters up to which masks beat adding records one by one
    TURNED = 64         # clusters whose sums of sixteen columns share L1 with the records
    TURNED_SUMS = 1024


# ------------------------------------------------------------------------------- nearest centres


cdef inline int64_t sum(const int32_t *z, ptrdiff_t n) noexcept nogil:
    cdef int64_t total = 0
    cdef ptrdiff_t i
    for i in range(n):
        total += z[i]
    return total


cdef inline int64_t sum_smaller(const int32_t *y, const int32_t *z, ptrdiff_t n) noexcept nogil:
    cdef int64_t total = 0
    cdef ptrdiff_t i
    for i in range(n):
        total += y[i] if y[i] < z[i] else z[i]
    return total


cdef inline void keep_nearest(const int32_t *z, ptrdiff_t n, int32_t index, int32_t *first,
                              int32_t *which) noexcept nogil:
    """Ties go to the centre that was seen first, that is, to the lowest index."""
    cdef ptrdiff_t i
    for i in range(n):
        which[i] = index if z[i] < first[i] else which[i]
        first[i] = z[i] if z[i] < first[i] else first[i]


cdef inline void keep_two(const int32_t *z, ptrdiff_t n, int32_t index, int32_t *first,
                          int32_t *which, int32_t *second) noexcept nogil:
    """The same, and the distance to the second nearest."""
    cdef int32_t v, f, s, loser
    cdef ptrdiff_t i
    for i in range(n):
        v, f, s = z[i], first[i], second[i]
        loser = f if v < f else v
        which[i] = index if v < f else which[i]
        first[i] = v if v < f else f
        second[i] = loser if loser < s else s


cdef inline void without(const int32_t *first, const int32_t *which, const int32_t *second,
                         ptrdiff_t n, int32_t index, int32_t *out) noexcept nogil:
    """The distance to the nearest centre if centre `index` were taken away."""
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = second[i] if which[i] == index else first[i]


cdef inline void keep_less(const double *z, ptrdiff_t n, double *first) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        first[i] = z[i] if z[i] < first[i] else first[i]


cdef inline int64_t sum_wide(const double *z, ptrdiff_t n) noexcept nogil:
    """The sum of whole numbers in double."""
    cdef int64_t total = 0
    cdef ptrdiff_t i
    for i in range(n):
        total += <int64_t>z[i]
    return total


# ------------------------------------------------------------------------------ sums of clusters
# counts are (k,), sums (k, 2 pairs); both grow.


cdef inline void member_sums(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                             const int32_t *which, ptrdiff_t k, int64_t *counts,
                             int64_t *sums) noexcept nogil:
    """Add each record to the sums of its cluster; `which` is -1 for rows of padding.

    Mask the records of one cluster, then take the columns of a pair apart by products with (1, 0)
    and (0, 1). At most BLOCK rows, so that int32 lanes hold.
    """
    cdef int16_t[16] firsts = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    cdef int16_t[16] seconds = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    cdef lanes even, odd, x, first = lanes_load(firsts), second = lanes_load(seconds)
    cdef int32_t[BLOCK] mask
    cdef int32_t[16] ends
    cdef int32_t members
    cdef ptrdiff_t c, i, j, p, half
    check(n_panels * PANEL <= BLOCK)
    for c in range(k):
        members = 0
        for i in range(n_panels * PANEL):
            mask[i] = -1 if which[i] == <int32_t>c else 0
            members -= mask[i]
        counts[c] += members
        for j in range(pairs if members else 0):
            even = odd = lanes_all(0)
            for p in range(n_panels):
                for half in range(2):
                    x = lanes_and(lanes_load(panels + (p * pairs + j) * PANEL + half * LANES),
                                  lanes_load(mask + p * PANEL + half * LANES))
                    even = lanes_add(even, lanes_pairs(x, first))
                    odd = lanes_add(odd, lanes_pairs(x, second))
            lanes_store(ends, even)
            lanes_store(ends + LANES, odd)
            for i in range(LANES):
                sums[2 * j] += ends[i]
                sums[2 * j + 1] += ends[LANES + i]
        sums += 2 * pairs


cdef inline void add_rows(const int32_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                          const int32_t *which, ptrdiff_t k, int64_t *sums) noexcept nogil:
    """Add each record to the sums of its cluster, sixteen columns at a time.

    Eight records are turned so that their columns lie side by side; the two of a pair part by
    shifts. At most BLOCK rows, so that int32 lanes hold, and at most TURNED clusters.
    """
    cdef int32_t[TURNED_SUMS] own
    cdef int32_t[64] turned
    cdef int32_t *mine
    cdef ptrdiff_t b, c, i, j, r, many
    cdef lanes x
    check(rows <= BLOCK and k <= TURNED)
    for b in range(0, pairs, 8):
        many = min(8, pairs - b)
        for i in range(16 * k):
            own[i] = 0
        for i in range(0, rows, 8):
            transpose_lanes(panels + ((i // PANEL) * pairs + b) * PANEL + i % PANEL, PANEL, many,
                            turned)
            for r in range(min(8, rows - i)):
                x = lanes_load(turned + r * LANES)
                mine = own + 16 * which[i + r]
                lanes_store(mine, lanes_add(lanes_load(mine), lanes_right(lanes_left(x, 16), 16)))
                mine += LANES
                lanes_store(mine, lanes_add(lanes_load(mine), lanes_right(x, 16)))
        for c in range(k):
            for j in range(many):
                sums[(c * pairs + b + j) * 2] += own[16 * c + j]
                sums[(c * pairs + b + j) * 2 + 1] += own[16 * c + LANES + j]


cdef inline void add_members(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows, int32_t *which,
                             ptrdiff_t k, int64_t *counts, int64_t *sums) noexcept nogil:
    """Add each record to the sums of its cluster: by masks if clusters are few, else one by one."""
    cdef ptrdiff_t r, _j, n_panels = (rows + PANEL - 1) // PANEL
    cdef const int32_t *pair = <const int32_t *>panels
    cdef const int32_t *x
    cdef int64_t *total
    if k <= MASKED and n_panels * PANEL <= BLOCK:
        for r in range(rows, n_panels * PANEL):
            which[r] = -1
        member_sums(pair, n_panels, pairs, which, k, counts, sums)
        return
    if k <= TURNED and rows <= BLOCK:
        for r in range(rows):
            counts[which[r]] += 1
        add_rows(pair, pairs, rows, which, k, sums)
        return
    for r in range(rows):
        counts[which[r]] += 1
        x = pair + (r // PANEL) * pairs * PANEL + r % PANEL
        total = sums + which[r] * pairs * 2
        for _j in range(pairs):
            total[0] += pair_first(x[0])
            total[1] += pair_second(x[0])
            x += PANEL
            total += 2


# ------------------------------------------------------------------- sums of clipped differences


cdef inline int64_t root_up(int64_t square) noexcept nogil:
    """The least integer whose square is at least `square`; sqrt of a double may be one off."""
    cdef int64_t root = <int64_t>sqrt(<double>square)
    while root * root < square:
        root += 1
    while root > 0 and (root - 1) * (root - 1) >= square:
        root -= 1
    return root


cdef inline int64_t shrunk(int64_t v, int64_t f) noexcept nogil:
    """v f / 2^32, rounded towards zero."""
    cdef int64_t product = v * f, below_one = 0xffffffff
    return (product + ((product >> 63) & below_one)) >> 32


cdef inline void residual_sums_of(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                                  const int32_t *which, const int32_t *centers, int64_t radius,
                                  int norm, int64_t *counts, int64_t *sums) noexcept nogil:
    """Add each record's difference v to its centre, shrunk to a norm (1 or 2) of at most `radius`.

    It is multiplied by f = floor(2^32 radius / L) / 2^32 if L, its norm rounded up, is larger, and
    rounded towards zero. Its norm is then at most radius norm(v) / L <= radius. No branch but one a
    record: the signs of differences cannot be foretold.
    """
    cdef const int16_t *x
    cdef const int32_t *c
    cdef int64_t *total
    cdef int64_t length, even, odd, f
    cdef ptrdiff_t r, j
    for r in range(rows):
        x = panels + (r // PANEL) * pairs * PANEL * 2 + (r % PANEL) * 2
        c = centers + which[r] * 2 * pairs
        total = sums + which[r] * 2 * pairs
        counts[which[r]] += 1
        length, f = 0, <int64_t>1 << 32
        for j in range(pairs):
            even = x[j * PANEL * 2] - c[2 * j]
            odd = x[j * PANEL * 2 + 1] - c[2 * j + 1]
            length += even * even + odd * odd if norm == 2 else llabs(even) + llabs(odd)
        if length > (radius * radius if norm == 2 else radius):
            f = (radius << 32) // (root_up(length) if norm == 2 else length)
        for j in range(pairs):
            total[2 * j] += shrunk(x[j * PANEL * 2] - c[2 * j], f)
            total[2 * j + 1] += shrunk(x[j * PANEL * 2 + 1] - c[2 * j + 1], f)


cdef inline void residual_sums(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                               const int32_t *which, const int32_t *centers, int64_t radius,
                               int norm, int64_t *counts, int64_t *sums) noexcept nogil:
    """Few columns: loops of known length are unrolled."""
    if pairs == 1:
        residual_sums_of(panels, 1, rows, which, centers, radius, norm, counts, sums)
    elif pairs == 2:
        residual_sums_of(panels, 2, rows, which, centers, radius, norm, counts, sums)
    elif pairs == 3:
        residual_sums_of(panels, 3, rows, which, centers, radius, norm, counts, sums)
    elif pairs == 4:
        residual_sums_of(panels, 4, rows, which, centers, radius, norm, counts, sums)
    elif pairs == 5:
        residual_sums_of(panels, 5, rows, which, centers, radius, norm, counts, sums)
    else:
        residual_sums_of(panels, pairs, rows, which, centers, radius, norm, counts, sums)
