"""Margins z = <x~, w> of dense panels and of sparse rows, and distances to centres alike.

A margin is an integer in units of 2^-(a+b), a and b the bits of records and candidates. Sums wrap
in 32 bits: the caller knows from public bounds that the final one fits. Where it might not, the
`wide` functions add the same integers in double; every partial sum is below 2^53, hence exact.
"""

from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t

from privfit._kernels.grid cimport PANEL, QUAD, WIDTH, check
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_add16, lanes_all, lanes_gaps, lanes_left, lanes_less,
    lanes_load, lanes_max16, lanes_min, lanes_mul, lanes_pairs, lanes_pick, lanes_right,
    lanes_store, lanes_sub, pair_of,
)
from privfit._kernels.records cimport sparse_rows

cdef enum:
    L1 = 1
    L2 = 2
    GREATER = 3


# ------------------------------------------------------------------------------- the microkernel
# QUAD candidates, or centres, by a panel of records: eight sums that stay in registers.

cdef struct two:   # the lanes of a panel
    lanes left, right

cdef struct sums:  # of a panel, for each of four candidates
    two a, b, c, d


cdef inline two both(int32_t v) noexcept nogil:
    cdef two z
    z.left = z.right = lanes_all(v)
    return z


cdef inline lanes plus(int power, lanes z, lanes x, lanes w) noexcept nogil:
    """z and what a pair of columns adds: a product (L2, and linear models), or a distance (L1).

    GREATER adds the greater ones, each to a sum of 16 bits.
    """
    if power == GREATER:
        return lanes_add16(z, lanes_max16(x, w))
    return lanes_add(z, lanes_pairs(x, w) if power == L2 else lanes_gaps(x, w))


cdef inline sums panel_sums(int power, const int32_t *x, ptrdiff_t pairs, const int32_t *w,
                            const int32_t *start) noexcept nogil:
    """start[c] and the sum over pairs of columns, of one panel x (pairs, PANEL); w (pairs, QUAD).

    Over the loop each sum has a name of its own: members of a struct were kept in memory by gcc
    where a register holds only half of the lanes, and nearest centres took 1.5 times as long.
    """
    cdef sums z
    cdef lanes a0, a1, b0, b1, c0, c1, d0, d1, x0, x1, v
    cdef ptrdiff_t j
    a0 = a1 = lanes_all(start[0])
    b0 = b1 = lanes_all(start[1])
    c0 = c1 = lanes_all(start[2])
    d0 = d1 = lanes_all(start[3])
    for j in range(pairs):
        x0, x1 = lanes_load(x + j * PANEL), lanes_load(x + j * PANEL + LANES)
        v = lanes_all(w[j * QUAD])
        a0, a1 = plus(power, a0, x0, v), plus(power, a1, x1, v)
        v = lanes_all(w[j * QUAD + 1])
        b0, b1 = plus(power, b0, x0, v), plus(power, b1, x1, v)
        v = lanes_all(w[j * QUAD + 2])
        c0, c1 = plus(power, c0, x0, v), plus(power, c1, x1, v)
        v = lanes_all(w[j * QUAD + 3])
        d0, d1 = plus(power, d0, x0, v), plus(power, d1, x1, v)
    z.a.left, z.a.right, z.b.left, z.b.right = a0, a1, b0, b1
    z.c.left, z.c.right, z.d.left, z.d.right = c0, c1, d0, d1
    return z


cdef inline void put(int32_t *z, two v) noexcept nogil:
    lanes_store(z, v.left)
    lanes_store(z + LANES, v.right)


# -------------------------------------------------------------------------------- dense records


cdef inline void margins(int power, const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                         const int32_t *w, const int32_t *start, int32_t *z,
                         ptrdiff_t stride) noexcept nogil:
    """z[c][r] of QUAD candidates; panels are (n_panels, pairs, PANEL), w is (pairs, QUAD)."""
    cdef ptrdiff_t p
    cdef sums s
    for p in range(n_panels):
        s = panel_sums(power, panels + p * pairs * PANEL, pairs, w, start)
        put(z + p * PANEL, s.a)
        put(z + p * PANEL + stride, s.b)
        put(z + p * PANEL + 2 * stride, s.c)
        put(z + p * PANEL + 3 * stride, s.d)


cdef inline void margin(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const int32_t *w, int32_t start, int32_t *z) noexcept nogil:
    """z[r] of one candidate; w is (pairs,)."""
    cdef ptrdiff_t p, j
    cdef lanes v
    cdef two s
    for p in range(n_panels):
        s = both(start)
        for j in range(pairs):
            v = lanes_all(w[j])
            s.left = plus(L2, s.left, lanes_load(panels), v)
            s.right = plus(L2, s.right, lanes_load(panels + LANES), v)
            panels += PANEL
        put(z + p * PANEL, s)


cdef inline void margin_wide(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                             const double *w, double start, double *z) noexcept nogil:
    """z[r] of one candidate; panels are (n_panels, pairs, PANEL, 2), w is (2 pairs,)."""
    cdef ptrdiff_t _p, j, r
    for _p in range(n_panels):
        for r in range(PANEL):
            z[r] = start
        for j in range(pairs):
            for r in range(PANEL):
                z[r] += w[2 * j] * panels[2 * r] + w[2 * j + 1] * panels[2 * r + 1]
            panels += 2 * PANEL
        z += PANEL


# ------------------------------------------------------------------------------- sparse records


cdef struct group:  # the margins of a record, for each of WIDTH candidates
    lanes a, b, c, d


cdef inline group values_added(group z, const sparse_rows *rows, ptrdiff_t r, const int32_t *w,
                               ptrdiff_t d) noexcept nogil:
    """z and the products of a record's values with the weights of their columns."""
    cdef const int32_t *v
    cdef lanes x
    cdef int64_t i
    for i in range(rows.value_start[r], rows.value_start[r + 1]):
        check(0 <= rows.value_column[i] < d)
        x = lanes_all(rows.value[i])
        v = w + <ptrdiff_t>rows.value_column[i] * WIDTH
        z.a = lanes_add(z.a, lanes_mul(x, lanes_load(v)))
        z.b = lanes_add(z.b, lanes_mul(x, lanes_load(v + LANES)))
        z.c = lanes_add(z.c, lanes_mul(x, lanes_load(v + 2 * LANES)))
        z.d = lanes_add(z.d, lanes_mul(x, lanes_load(v + 3 * LANES)))
    return z


cdef inline void put_group(int32_t *z, group v) noexcept nogil:
    lanes_store(z, v.a)
    lanes_store(z + LANES, v.b)
    lanes_store(z + 2 * LANES, v.c)
    lanes_store(z + 3 * LANES, v.d)


cdef inline void sparse_margins(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                const int32_t *w, ptrdiff_t d, int a, int32_t *z) noexcept nogil:
    """z[r][c] of WIDTH candidates; w is (d+1, WIDTH), the intercept last. A one is an addition."""
    cdef const int32_t *v
    cdef group s
    cdef ptrdiff_t r
    cdef int64_t i
    for r in range(first, last):
        v = w + d * WIDTH
        s.a, s.b = lanes_load(v), lanes_load(v + LANES)
        s.c, s.d = lanes_load(v + 2 * LANES), lanes_load(v + 3 * LANES)
        for i in range(rows.one_start[r], rows.one_start[r + 1]):
            check(0 <= rows.one_column[i] < d)
            v = w + <ptrdiff_t>rows.one_column[i] * WIDTH
            s.a = lanes_add(s.a, lanes_load(v))
            s.b = lanes_add(s.b, lanes_load(v + LANES))
            s.c = lanes_add(s.c, lanes_load(v + 2 * LANES))
            s.d = lanes_add(s.d, lanes_load(v + 3 * LANES))
        s.a, s.b = lanes_left(s.a, a), lanes_left(s.b, a)
        s.c, s.d = lanes_left(s.c, a), lanes_left(s.d, a)
        put_group(z, values_added(s, rows, r, w, d))
        z += WIDTH


cdef inline void sparse_margins_paired(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                       const int32_t *w, const int32_t *pairs, ptrdiff_t d, int a,
                                       int32_t *z) noexcept nogil:
    """The same where the sum over a record's ones is sure to fit in 16 bits: half the loads.

    Two candidates share a lane: pairs is (d+1, WIDTH/2), w[c] + 2^16 w[c + WIDTH/2], whose sums
    part again.
    """
    cdef lanes left, right, low, low2
    cdef const int32_t *v
    cdef group s
    cdef ptrdiff_t r
    cdef int64_t i
    for r in range(first, last):
        v = pairs + d * (WIDTH // 2)
        left, right = lanes_load(v), lanes_load(v + LANES)
        for i in range(rows.one_start[r], rows.one_start[r + 1]):
            check(0 <= rows.one_column[i] < d)
            v = pairs + <ptrdiff_t>rows.one_column[i] * (WIDTH // 2)
            left = lanes_add(left, lanes_load(v))
            right = lanes_add(right, lanes_load(v + LANES))
        low = lanes_right(lanes_left(left, 16), 16)
        low2 = lanes_right(lanes_left(right, 16), 16)
        s.a, s.b = lanes_left(low, a), lanes_left(low2, a)
        s.c = lanes_right(lanes_sub(left, low), 16 - a)
        s.d = lanes_right(lanes_sub(right, low2), 16 - a)
        put_group(z, values_added(s, rows, r, w, d))
        z += WIDTH


cdef inline void sparse_margin(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                               const int32_t *w, ptrdiff_t d, int a, int32_t *z) noexcept nogil:
    """z[r] of one candidate; w is (d+1,). Two sums over ones, since latency binds the loop."""
    cdef const int64_t *one_start = rows.one_start
    cdef const int64_t *value_start = rows.value_start
    cdef const int32_t *one_column = rows.one_column
    cdef const int32_t *value_column = rows.value_column
    cdef const int16_t *value = rows.value
    cdef int32_t even, odd, values
    cdef ptrdiff_t r
    cdef int64_t i, end
    for r in range(first, last):
        even, odd, values = w[d], 0, 0
        i, end = one_start[r], one_start[r + 1]
        while i + 1 < end:
            check(0 <= one_column[i] < d)
            even += w[one_column[i]]
            odd += w[one_column[i + 1]]
            i += 2
        if i < end:
            even += w[one_column[i]]
        for i in range(value_start[r], value_start[r + 1]):
            values += w[value_column[i]] * value[i]
        z[r - first] = ((even + odd) << a) + values


cdef inline void sparse_margin_wide(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                    const double *w, ptrdiff_t d, double one,
                                    double *z) noexcept nogil:
    """z[r] of one candidate; a column that is one adds `one` times its weight."""
    cdef ptrdiff_t r
    cdef int64_t i
    cdef double ones, values
    for r in range(first, last):
        ones = w[d]
        values = 0.0
        for i in range(rows.one_start[r], rows.one_start[r + 1]):
            ones = ones + w[rows.one_column[i]]
        for i in range(rows.value_start[r], rows.value_start[r + 1]):
            values = values + w[rows.value_column[i]] * rows.value[i]
        z[r - first] = ones * one + values


# -------------------------------------------------------------------------------------- centres


cdef inline void nearest_in(int power, const int32_t *panel, ptrdiff_t pairs, const int32_t *w,
                            const int32_t *start, ptrdiff_t quads, int32_t *best) noexcept nogil:
    """The least distance of a panel's records to 4 quads centres; w is (quads, pairs, QUAD).

    The best so far is kept in memory: eight sums, two records and a weight leave no register.
    """
    cdef ptrdiff_t q
    cdef lanes left, right
    cdef sums s
    for q in range(quads):
        s = panel_sums(power, panel, pairs, w + q * pairs * QUAD, start + q * QUAD)
        left = lanes_min(lanes_min(s.a.left, s.b.left), lanes_min(s.c.left, s.d.left))
        right = lanes_min(lanes_min(s.a.right, s.b.right), lanes_min(s.c.right, s.d.right))
        if q > 0:
            left = lanes_min(left, lanes_load(best))
            right = lanes_min(right, lanes_load(best + LANES))
        lanes_store(best, left)
        lanes_store(best + LANES, right)


cdef inline void keep_quad(lanes a, lanes b, lanes c, lanes d, ptrdiff_t index, int32_t *best,
                           int32_t *which) noexcept nogil:
    """The least of four distances and of the best so far; ties go to the lowest index."""
    cdef lanes low = lanes_sub(lanes_all(<int32_t>index), lanes_less(b, a))
    cdef lanes high = lanes_sub(lanes_all(<int32_t>index + 2), lanes_less(d, c))
    a, c = lanes_min(a, b), lanes_min(c, d)
    low = lanes_pick(lanes_less(c, a), high, low)
    a = lanes_min(a, c)
    if index > 0:
        low = lanes_pick(lanes_less(a, lanes_load(best)), low, lanes_load(which))
        a = lanes_min(a, lanes_load(best))
    lanes_store(best, a)
    lanes_store(which, low)


cdef inline void which_in(int power, const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                          const int32_t *w, const int32_t *start, ptrdiff_t quads, int32_t *best,
                          int32_t *which) noexcept nogil:
    cdef ptrdiff_t _p, q
    cdef sums s
    for _p in range(n_panels):
        for q in range(quads):
            s = panel_sums(power, panels, pairs, w + q * pairs * QUAD, start + q * QUAD)
            keep_quad(s.a.left, s.b.left, s.c.left, s.d.left, q * QUAD, best, which)
            keep_quad(s.a.right, s.b.right, s.c.right, s.d.right, q * QUAD, best + LANES,
                      which + LANES)
        panels += pairs * PANEL
        best += PANEL
        which += PANEL


cdef inline void which_nearest(int power, const int32_t *panels, ptrdiff_t n_panels,
                               ptrdiff_t pairs, const int32_t *w, const int32_t *start,
                               ptrdiff_t quads, int32_t *best, int32_t *which) noexcept nogil:
    """Each record's least distance and the index of its centre; w is (quads, pairs, QUAD).

    What pads the last quad repeats its last centre, so that it is never nearer. Few columns: loops
    of known length are unrolled.
    """
    if pairs == 1:
        which_in(power, panels, n_panels, 1, w, start, quads, best, which)
    elif pairs == 2:
        which_in(power, panels, n_panels, 2, w, start, quads, best, which)
    elif pairs == 3:
        which_in(power, panels, n_panels, 3, w, start, quads, best, which)
    elif pairs == 4:
        which_in(power, panels, n_panels, 4, w, start, quads, best, which)
    elif pairs == 5:
        which_in(power, panels, n_panels, 5, w, start, quads, best, which)
    else:
        which_in(power, panels, n_panels, pairs, w, start, quads, best, which)


cdef inline void nearest_by(int power, const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                            const int32_t *w, const int32_t *start, ptrdiff_t quads,
                            int32_t *best) noexcept nogil:
    """Few columns: a loop of known length is unrolled, and 1.5 times as fast."""
    cdef ptrdiff_t p
    if pairs == 1:
        for p in range(n_panels):
            nearest_in(power, panels + p * PANEL, 1, w, start, quads, best + p * PANEL)
    elif pairs == 2:
        for p in range(n_panels):
            nearest_in(power, panels + p * 2 * PANEL, 2, w, start, quads, best + p * PANEL)
    elif pairs == 3:
        for p in range(n_panels):
            nearest_in(power, panels + p * 3 * PANEL, 3, w, start, quads, best + p * PANEL)
    elif pairs == 4:
        for p in range(n_panels):
            nearest_in(power, panels + p * 4 * PANEL, 4, w, start, quads, best + p * PANEL)
    else:
        for p in range(n_panels):
            nearest_in(power, panels + p * pairs * PANEL, pairs, w, start, quads, best + p * PANEL)


cdef inline void nearest_l1(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                            const int32_t *w, const int32_t *start, ptrdiff_t quads,
                            int32_t *best) noexcept nogil:
    nearest_by(L1, panels, n_panels, pairs, w, start, quads, best)


cdef inline void nearest_l2(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                            const int32_t *w, const int32_t *start, ptrdiff_t quads,
                            int32_t *best) noexcept nogil:
    nearest_by(L2, panels, n_panels, pairs, w, start, quads, best)


# One of these by its power, called once a tile: where the compiler inlines all ten loops into the
# caller, sums lose their registers (up to 1.7 times as long).
ctypedef void (*nearest_function)(
    const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs, const int32_t *w,
    const int32_t *start, ptrdiff_t quads, int32_t *best,
) noexcept nogil


cdef inline void distances(int power, const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                           const int32_t *w, const int32_t *start, int32_t *z,
                           ptrdiff_t stride) noexcept nogil:
    """z[c][r] of QUAD centres, by a power that each of the loops knows."""
    if power == L1:
        margins(L1, panels, n_panels, pairs, w, start, z, stride)
    else:
        margins(L2, panels, n_panels, pairs, w, start, z, stride)


cdef inline void own_sums(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                          int32_t *own) noexcept nogil:
    """The sum of each record's own columns."""
    cdef lanes ones = lanes_all(pair_of(1, 1))
    cdef ptrdiff_t p, _j
    cdef two s
    for p in range(n_panels):
        s = both(0)
        for _j in range(pairs):
            s.left = plus(L2, s.left, lanes_load(panels), ones)
            s.right = plus(L2, s.right, lanes_load(panels + LANES), ones)
            panels += PANEL
        put(own + p * PANEL, s)


cdef inline void distance_wide(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                               const double *center, int power, double *z) noexcept nogil:
    """The full distance to one centre where 32 bits may not do; the record's square is included."""
    cdef ptrdiff_t _p, j, r
    cdef double even, odd
    for _p in range(n_panels):
        for r in range(PANEL):
            z[r] = 0
        for j in range(pairs):
            for r in range(PANEL):
                even = panels[2 * r] - center[2 * j]
                odd = panels[2 * r + 1] - center[2 * j + 1]
                z[r] += even * even + odd * odd if power == L2 else fabs(even) + fabs(odd)
            panels += 2 * PANEL
        z += PANEL
