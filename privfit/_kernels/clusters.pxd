"""What a tile does once its distances to centres are known: nearest centres, sums of clusters.

Squared l2 distances come without the record's own square: norm2(c) - 2 <x, c> is a margin with
weights -2c, and the squares of the records are one constant for all candidates. Distances of a tile
lie in z[r], an int32 for each record.
"""

from libc.math cimport sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport llabs

from privfit._kernels.grid cimport BLOCK, PANEL, check
from privfit._kernels.lanes cimport (
    LANES, four, four_abs, four_add, four_add_whole, four_all, four_mul, four_of_lanes, four_sum,
    four_zero, lanes, lanes_add, lanes_all, lanes_and, lanes_left, lanes_load, lanes_pairs,
    lanes_right, lanes_store, lanes_sub, pair_first, pair_second, transpose_lanes,
)

cdef enum:
    MASKED = 5          # clusters up to which masks beat adding records one by one
    TURNED = 64         # clusters whose sums of sixteen columns share L1 with the records
    TURNED_SUMS = 1024
    TURNED_ROWS = 4096  # BLOCK rows of sixteen columns


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


cdef inline int64_t length_of(const int16_t *x, const int32_t *c, ptrdiff_t pairs,
                              int norm) noexcept nogil:
    """The l1 norm of a record's difference to a centre, or the square of its l2 norm."""
    cdef int64_t length = 0, even, odd
    cdef ptrdiff_t j
    for j in range(pairs):
        even = x[j * PANEL * 2] - c[2 * j]
        odd = x[j * PANEL * 2 + 1] - c[2 * j + 1]
        length += even * even + odd * odd if norm == 2 else llabs(even) + llabs(odd)
    return length


cdef inline int64_t factor_of(int64_t length, int64_t radius, int norm) noexcept nogil:
    """f = floor(2^32 radius / L), L the norm rounded up, and at least the radius.

    The norm of f v / 2^32, rounded towards zero, is then at most radius norm(v) / L <= radius. A
    quotient of doubles may be rounded up to a whole number, so that its floor is one too large, and
    never too small. No branch: whether a record is clipped cannot be foretold.
    """
    cdef int64_t L = max(root_up(length) if norm == 2 else length, radius)
    cdef int64_t f = <int64_t>(<double>radius * 4294967296.0 / <double>L)
    return f - (<uint64_t>f * <uint64_t>L > <uint64_t>radius << 32)


cdef inline void lengths_of(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                            const int32_t *which, const int32_t *centers, int norm,
                            int64_t *lengths) noexcept nogil:
    """The length of each record's difference to its centre."""
    cdef ptrdiff_t r
    for r in range(rows):
        lengths[r] = length_of(panels + (r // PANEL) * pairs * PANEL * 2 + (r % PANEL) * 2,
                               centers + which[r] * 2 * pairs, pairs, norm)


cdef inline void residual_sums_of(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                                  const int32_t *which, const int32_t *centers, int64_t radius,
                                  int norm, int64_t *sums) noexcept nogil:
    """Add each record's difference to its centre, shrunk to a norm (1 or 2) of at most `radius`."""
    cdef const int16_t *x
    cdef const int32_t *c
    cdef int64_t *total
    cdef int64_t f
    cdef ptrdiff_t r, j
    for r in range(rows):
        x = panels + (r // PANEL) * pairs * PANEL * 2 + (r % PANEL) * 2
        c = centers + which[r] * 2 * pairs
        total = sums + which[r] * 2 * pairs
        f = factor_of(length_of(x, c, pairs, norm), radius, norm)
        for j in range(pairs):
            total[2 * j] += shrunk(x[j * PANEL * 2] - c[2 * j], f)
            total[2 * j + 1] += shrunk(x[j * PANEL * 2 + 1] - c[2 * j + 1], f)


# The same by lanes, sixteen columns of a tile at a time: first those of even places, then of odd
# ones, in fours. Differences of at most 17 bits times factors of 33 are exact in double. At most
# BLOCK rows, so that int32 lanes hold, and at most TURNED clusters.


cdef inline void turned_differences(const int32_t *panels, ptrdiff_t pairs, ptrdiff_t b,
                                    ptrdiff_t rows, const int32_t *which, ptrdiff_t k,
                                    const int32_t *centers, int32_t *v) noexcept nogil:
    """v[r] (16,): eight pairs of columns, from pair b on, of each record less its centre.

    What the first store of a row writes too much, the second one replaces.
    """
    cdef int32_t[TURNED_SUMS] middle
    cdef int32_t[64] turned
    cdef const int32_t *c
    cdef ptrdiff_t i, j, r, many = min(<ptrdiff_t>8, pairs - b)
    cdef lanes x
    for i in range(16 * k):
        middle[i] = 0
    for i in range(k):
        for j in range(many):
            middle[16 * i + j] = centers[2 * (i * pairs + b + j)]
            middle[16 * i + many + j] = centers[2 * (i * pairs + b + j) + 1]
    for i in range(0, rows, 8):
        transpose_lanes(panels + ((i // PANEL) * pairs + b) * PANEL + i % PANEL, PANEL, many,
                        turned)
        for r in range(min(8, rows - i)):
            x = lanes_load(turned + r * LANES)
            c = middle + 16 * which[i + r]
            v[15] = 0
            lanes_store(v, lanes_sub(lanes_right(lanes_left(x, 16), 16), lanes_load(c)))
            lanes_store(v + many, lanes_sub(lanes_right(x, 16), lanes_load(c + many)))
            v += 16


cdef inline void add_lengths(const int32_t *v, ptrdiff_t rows, int fours, int norm,
                             int64_t *lengths) noexcept nogil:
    """Add the l1 norm of each row, or the square of its l2 norm; exact."""
    cdef four x, sum
    cdef ptrdiff_t r
    cdef int i
    for r in range(rows):
        sum = four_zero()
        for i in range(fours):
            x = four_of_lanes(v + 16 * r + 4 * i)
            sum = four_add(sum, four_mul(x, x) if norm == 2 else four_abs(x))
        lengths[r] += <int64_t>four_sum(sum)


cdef inline void add_products(const int32_t *v, ptrdiff_t rows, int fours, const int32_t *which,
                              const double *factors, int32_t *own) noexcept nogil:
    """Add each row times its factor, rounded towards zero, to that of its cluster."""
    cdef four f
    cdef ptrdiff_t r
    cdef int i
    for r in range(rows):
        f = four_all(factors[r])
        for i in range(fours):
            four_add_whole(own + 16 * which[r] + 4 * i,
                           four_mul(f, four_of_lanes(v + 16 * r + 4 * i)))


cdef inline void turned_lengths(const int32_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                                const int32_t *which, ptrdiff_t k, const int32_t *centers, int norm,
                                int32_t *v, int64_t *lengths) noexcept nogil:
    """As `lengths_of`; v keeps the differences of the last columns."""
    cdef ptrdiff_t b, r, fours
    check(rows <= BLOCK and k <= TURNED)
    for r in range(rows):
        lengths[r] = 0
    for b in range(0, pairs, 8):
        turned_differences(panels, pairs, b, rows, which, k, centers, v)
        fours = (min(<ptrdiff_t>8, pairs - b) + 1) // 2
        if norm == 2:  # loops of known length are unrolled
            if fours == 1:
                add_lengths(v, rows, 1, 2, lengths)
            elif fours == 2:
                add_lengths(v, rows, 2, 2, lengths)
            elif fours == 3:
                add_lengths(v, rows, 3, 2, lengths)
            else:
                add_lengths(v, rows, 4, 2, lengths)
        elif fours == 1:
            add_lengths(v, rows, 1, 1, lengths)
        elif fours == 2:
            add_lengths(v, rows, 2, 1, lengths)
        elif fours == 3:
            add_lengths(v, rows, 3, 1, lengths)
        else:
            add_lengths(v, rows, 4, 1, lengths)


cdef inline void turned_residual_sums(const int32_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                                      const int32_t *which, ptrdiff_t k, const int32_t *centers,
                                      int64_t radius, int norm, int64_t *sums) noexcept nogil:
    """As `residual_sums_of`."""
    cdef int32_t[TURNED_ROWS] v
    cdef int32_t[TURNED_SUMS] own
    cdef int64_t[BLOCK] lengths
    cdef double[BLOCK] factors
    cdef ptrdiff_t b, c, i, j, r, many
    turned_lengths(panels, pairs, rows, which, k, centers, norm, v, lengths)
    for r in range(rows):
        factors[r] = <double>factor_of(lengths[r], radius, norm) / 4294967296.0
    for b in range(0, pairs, 8):
        if pairs > 8:
            turned_differences(panels, pairs, b, rows, which, k, centers, v)
        many = min(<ptrdiff_t>8, pairs - b)
        for i in range(16 * k):
            own[i] = 0
        if many <= 2:
            add_products(v, rows, 1, which, factors, own)
        elif many <= 4:
            add_products(v, rows, 2, which, factors, own)
        elif many <= 6:
            add_products(v, rows, 3, which, factors, own)
        else:
            add_products(v, rows, 4, which, factors, own)
        for c in range(k):
            for j in range(many):
                sums[(c * pairs + b + j) * 2] += own[16 * c + j]
                sums[(c * pairs + b + j) * 2 + 1] += own[16 * c + many + j]


cdef inline void residual_sums(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                               const int32_t *which, ptrdiff_t k, const int32_t *centers,
                               int64_t radius, int norm, bint wide, int64_t *counts,
                               int64_t *sums) noexcept nogil:
    """By lanes, unless centres are many or `wide`: too far from records for 17 bits."""
    cdef ptrdiff_t r
    for r in range(rows):
        counts[which[r]] += 1
    if wide or k > TURNED or rows > BLOCK:
        residual_sums_of(panels, pairs, rows, which, centers, radius, norm, sums)
    else:
        turned_residual_sums(<const int32_t *>panels, pairs, rows, which, k, centers, radius, norm,
                             sums)


cdef inline void count_norms(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                             const int32_t *which, ptrdiff_t k, const int32_t *centers,
                             const int64_t *limits, ptrdiff_t m, int norm, bint wide,
                             int64_t *counts) noexcept nogil:
    """Count each record by how many of m limits the length of its difference exceeds.

    Without a branch: how long a record takes does not depend on its length.
    """
    cdef int32_t[TURNED_ROWS] v
    cdef int64_t[BLOCK] lengths, over
    cdef ptrdiff_t first, i, r, n
    for first in range(0, rows, 256):
        n = min(<ptrdiff_t>BLOCK, rows - first)
        if wide or k > TURNED:
            lengths_of(panels + first * pairs * 2, pairs, n, which + first, centers, norm, lengths)
        else:
            turned_lengths(<const int32_t *>panels + first * pairs, pairs, n, which + first, k,
                           centers, norm, v, lengths)
        for r in range(n):
            over[r] = 0
        for i in range(m):
            for r in range(n):
                over[r] += lengths[r] > limits[i]
        for r in range(n):
            counts[over[r]] += 1
