"""Distances of records to centres: costs of many sets, one-centre changes, a Lloyd step, cells.

Records lie in panels as for dense linear models, without an intercept. Centres are integers on the
same grid. Squared l2 distances come without the record's own square and less a shift that is the
same for all centres, so that they fit in 32 bits; `CentersObjective` adds both back. Tiles are rows
(first, count, 0) of an int64 array; each thread owns a row of OUT.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t

from privfit._kernels.clusters cimport (
    add_members, count_norms, keep_less, keep_two, residual_sums, sum, sum_smaller, sum_wide,
    without,
)
from privfit._kernels.grid cimport PANEL, QUAD
from privfit._kernels.margins cimport (
    L1, L2, distance_wide, distances, nearest_function, nearest_l1, nearest_l2, which_nearest,
)


def costs(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, :, ::1] w,     # IN   (m, quads, pairs, QUAD) int16 pairs
    const int32_t[:, :, ::1] start,    # IN   (m, quads, QUAD)
    int power,                         # IN   1 or 2
    int32_t[:, ::1] work,              # WORK (threads, rows of the largest tile, padded)
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """Add the distance to the nearest centre, for each of m sets of centres."""
    cdef ptrdiff_t t, i, rows
    cdef int n_threads = work.shape[0], me
    cdef nearest_function nearest = nearest_l1 if power == L1 else nearest_l2
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        for i in range(w.shape[0]):
            nearest(&panels[tile_rows[t, 0] // PANEL, 0, 0], (rows + PANEL - 1) // PANEL,
                    panels.shape[1], &w[i, 0, 0, 0], &start[i, 0, 0], w.shape[1], &work[me, 0])
            out[me, i] += sum(&work[me, 0], rows)


def costs_wide(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[:, :, ::1] centers,     # IN   (m, k, 2 * pairs) integers
    int power,                           # IN   1 or 2
    double[:, :, ::1] work,              # WORK (threads, 2, rows of the largest tile, padded)
    int64_t[:, ::1] out,                 # OUT  (threads, m)
):
    """As `costs`, with full distances that may not fit in 32 bits."""
    cdef ptrdiff_t t, i, j, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        for i in range(centers.shape[0]):
            for j in range(centers.shape[1]):
                distance_wide(&panels[tile_rows[t, 0] // PANEL, 0, 0, 0],
                              (rows + PANEL - 1) // PANEL, panels.shape[1], &centers[i, j, 0],
                              power, &work[me, min(j, 1), 0])
                if j > 0:
                    keep_less(&work[me, 1, 0], rows, &work[me, 0, 0])
            out[me, i] += sum_wide(&work[me, 0, 0], rows)


def nearest_two(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (quads, pairs, QUAD) int16 pairs
    const int32_t[:, ::1] start,       # IN   (quads, QUAD)
    int k,                             # IN   centres, at most quads * QUAD
    int power,                         # IN   1 or 2
    int32_t[:, :, ::1] work,           # WORK (threads, QUAD, rows of the largest tile, padded)
    int32_t[:, ::1] state,             # OUT  (3, n padded): nearest, its index, second nearest
    int n_threads,
):
    """Each record's two nearest centres; with one centre the second is INT32_MAX."""
    cdef ptrdiff_t t, q, c, r, first, rows
    cdef int me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for r in range(first, first + rows):
            state[0, r] = INT32_MAX
            state[1, r] = 0
            state[2, r] = INT32_MAX
        for q in range(w.shape[0]):
            distances(power, &panels[first // PANEL, 0, 0], (rows + PANEL - 1) // PANEL,
                      panels.shape[1], &w[q, 0, 0], &start[q, 0], &work[me, 0, 0], work.shape[2])
            for c in range(min(<ptrdiff_t>QUAD, k - q * QUAD)):
                keep_two(&work[me, c, 0], rows, <int32_t>(q * QUAD + c), &state[0, first],
                         &state[1, first], &state[2, first])


def swaps(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, ::1] state,       # IN   (3, n padded) from `nearest_two`
    const int32_t[:, :, ::1] w,        # IN   (quads, pairs, QUAD): the new centres
    const int32_t[:, ::1] start,       # IN   (quads, QUAD)
    const int32_t[::1] replaced,       # IN   (quads,): the centre that a quad's centres replace
    int power,                         # IN   1 or 2
    int32_t[:, :, ::1] work,           # WORK (threads, QUAD + 1, rows of the largest tile, padded)
    int64_t[:, ::1] out,               # OUT  (threads, quads * QUAD)
):
    """Add the cost of the set with one centre replaced, for each new centre."""
    cdef ptrdiff_t t, q, c, first, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for q in range(w.shape[0]):
            if q == 0 or replaced[q] != replaced[q - 1]:
                without(&state[0, first], &state[1, first], &state[2, first], rows, replaced[q],
                        &work[me, QUAD, 0])
            distances(power, &panels[first // PANEL, 0, 0], (rows + PANEL - 1) // PANEL,
                      panels.shape[1], &w[q, 0, 0], &start[q, 0], &work[me, 0, 0], work.shape[2])
            for c in range(QUAD):
                out[me, q * QUAD + c] += sum_smaller(&work[me, QUAD, 0], &work[me, c, 0], rows)


cdef void which_of_tile(const int16_t *tile, ptrdiff_t rows, ptrdiff_t pairs, const int32_t *w,
                        const int32_t *start, ptrdiff_t quads, int power, int32_t *best,
                        int32_t *which) noexcept nogil:
    """Each record's nearest centre; ties go to the lowest index."""
    cdef ptrdiff_t n_panels = (rows + PANEL - 1) // PANEL
    cdef const int32_t *panels = <const int32_t *>tile
    if power == L1:
        which_nearest(L1, panels, n_panels, pairs, w, start, quads, best, which)
    else:
        which_nearest(L2, panels, n_panels, pairs, w, start, quads, best, which)


cdef void which_of_tile_wide(const int16_t *tile, ptrdiff_t rows, ptrdiff_t pairs,
                             const double *points, ptrdiff_t k, int power, double *best,
                             double *next, int32_t *which) noexcept nogil:
    """The same, with distances that may not fit in 32 bits."""
    cdef ptrdiff_t j, r
    for j in range(k):
        distance_wide(tile, (rows + PANEL - 1) // PANEL, pairs, points + j * 2 * pairs, power, next)
        for r in range(rows):
            if j == 0 or next[r] < best[r]:
                best[r] = next[r]
                which[r] = <int32_t>j


def lloyd(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,          # IN   (quads, pairs, QUAD) int16 pairs
    const int32_t[:, ::1] start,         # IN   (quads, QUAD)
    int power,                           # IN   1 or 2
    const int32_t[:, ::1] centers,       # IN   (k, 2 * pairs) integers, k at most quads * QUAD
    int64_t radius,                      # IN   of residuals, below 2^31
    int norm,                            # IN   0: sums of records; 1, 2: of clipped residuals
    int32_t[:, :, ::1] work,             # WORK (threads, 2, rows of the largest tile, padded)
    int64_t[:, ::1] counts,              # OUT  (threads, k)
    int64_t[:, :, ::1] sums,             # OUT  (threads, k, 2 * pairs)
):
    """Assign each record to its nearest centre (ties to the lowest index); add counts and sums."""
    cdef ptrdiff_t t, rows
    cdef ptrdiff_t pairs = panels.shape[1], k = centers.shape[0]
    cdef int n_threads = work.shape[0], me
    cdef const int16_t *tile
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        tile = &panels[tile_rows[t, 0] // PANEL, 0, 0, 0]
        which_of_tile(tile, rows, pairs, &w[0, 0, 0], &start[0, 0], w.shape[0], power,
                      &work[me, 0, 0], &work[me, 1, 0])
        add_to_clusters(tile, pairs, rows, &work[me, 1, 0], k, &centers[0, 0], radius, norm, False,
                        &counts[me, 0], &sums[me, 0, 0])


def lloyd_wide(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[:, ::1] points,         # IN   (k, 2 * pairs) integers: the centres
    int power,                           # IN   1 or 2
    const int32_t[:, ::1] centers,       # IN   (k, 2 * pairs) the same, where they fit
    int64_t radius,                      # IN   of residuals, below 2^31
    int norm,                            # IN   0: sums of records; 1, 2: of clipped residuals
    double[:, :, ::1] work,              # WORK (threads, 2, rows of the largest tile, padded)
    int32_t[:, ::1] which,               # WORK (threads, rows of the largest tile, padded)
    int64_t[:, ::1] counts,              # OUT  (threads, k)
    int64_t[:, :, ::1] sums,             # OUT  (threads, k, 2 * pairs)
):
    """As `lloyd`, with distances that may not fit in 32 bits."""
    cdef ptrdiff_t t, rows
    cdef ptrdiff_t pairs = panels.shape[1], k = points.shape[0]
    cdef int n_threads = work.shape[0], me
    cdef const int16_t *tile
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        tile = &panels[tile_rows[t, 0] // PANEL, 0, 0, 0]
        which_of_tile_wide(tile, rows, pairs, &points[0, 0], k, power, &work[me, 0, 0],
                           &work[me, 1, 0], &which[me, 0])
        add_to_clusters(tile, pairs, rows, &which[me, 0], k, &centers[0, 0], radius, norm, True,
                        &counts[me, 0], &sums[me, 0, 0])


cdef void add_to_clusters(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows, int32_t *which,
                          ptrdiff_t k, const int32_t *centers, int64_t radius, int norm, bint wide,
                          int64_t *counts, int64_t *sums) noexcept nogil:
    if norm == 0:
        add_members(panels, pairs, rows, which, k, counts, sums)
    else:
        residual_sums(panels, pairs, rows, which, k, centers, radius, norm, wide, counts, sums)


def norms(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,          # IN   (quads, pairs, QUAD) int16 pairs
    const int32_t[:, ::1] start,         # IN   (quads, QUAD)
    int power,                           # IN   1 or 2
    const int32_t[:, ::1] centers,       # IN   (k, 2 * pairs) integers, k at most quads * QUAD
    const int64_t[::1] limits,           # IN   (m,) ascending l1 norms, or squares of l2 norms
    int norm,                            # IN   1 or 2
    int32_t[:, :, ::1] work,             # WORK (threads, 2, rows of the largest tile, padded)
    int64_t[:, ::1] counts,              # OUT  (threads, m + 1)
):
    """Count each record by the first limit that holds its difference to its nearest centre."""
    cdef ptrdiff_t t, rows
    cdef ptrdiff_t pairs = panels.shape[1], k = centers.shape[0]
    cdef int n_threads = work.shape[0], me
    cdef const int16_t *tile
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        tile = &panels[tile_rows[t, 0] // PANEL, 0, 0, 0]
        which_of_tile(tile, rows, pairs, &w[0, 0, 0], &start[0, 0], w.shape[0], power,
                      &work[me, 0, 0], &work[me, 1, 0])
        count_norms(tile, pairs, rows, &work[me, 1, 0], k, &centers[0, 0], &limits[0],
                    limits.shape[0], norm, False, &counts[me, 0])


def norms_wide(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[:, ::1] points,         # IN   (k, 2 * pairs) integers: the centres
    int power,                           # IN   1 or 2
    const int32_t[:, ::1] centers,       # IN   (k, 2 * pairs) the same, where they fit
    const int64_t[::1] limits,           # IN   (m,) ascending l1 norms, or squares of l2 norms
    int norm,                            # IN   1 or 2
    double[:, :, ::1] work,              # WORK (threads, 2, rows of the largest tile, padded)
    int32_t[:, ::1] which,               # WORK (threads, rows of the largest tile, padded)
    int64_t[:, ::1] counts,              # OUT  (threads, m + 1)
):
    """As `norms`, with distances that may not fit in 32 bits."""
    cdef ptrdiff_t t, rows
    cdef ptrdiff_t pairs = panels.shape[1], k = points.shape[0]
    cdef int n_threads = work.shape[0], me
    cdef const int16_t *tile
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        tile = &panels[tile_rows[t, 0] // PANEL, 0, 0, 0]
        which_of_tile_wide(tile, rows, pairs, &points[0, 0], k, power, &work[me, 0, 0],
                           &work[me, 1, 0], &which[me, 0])
        count_norms(tile, pairs, rows, &which[me, 0], k, &centers[0, 0], &limits[0],
                    limits.shape[0], norm, True, &counts[me, 0])


def set_gaps(
    const double[:, :, ::1] rows,      # IN   (r, d, k): the sets C, scaled by their domain
    const double[:, ::1] row_level,    # IN   (r, k)
    const double[:, :, ::1] centers,   # IN   (m, d, k): the sets C'
    const double[:, ::1] level,        # IN   (m, k)
    int metric,                        # IN   0: l1, 1: l2, 2: linf
    double[:, ::1] work,               # WORK (threads, k)
    double[:, ::1] out,                # OUT  (r, m): rho(C, C') of THEORY section 1
):
    """out[C, C'] = max over c' of min over c of level(c) - level(c') + distance(c, c').

    That is rho of THEORY section 1, a bound on cost(t, C) - cost(t, C') over all records t. In l1
    and linf it is exact, being made of integers below 2^53.
    """
    cdef ptrdiff_t i, j, a, b, e
    cdef ptrdiff_t d = centers.shape[1], k = centers.shape[2]
    cdef int n_threads = work.shape[0], me
    cdef double least, worst, coordinate
    cdef double *row
    for i in prange(rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        row = &work[me, 0]
        for j in range(centers.shape[0]):
            worst = 0.0
            for b in range(k):
                for a in range(k):
                    row[a] = 0.0
                for e in range(d):
                    coordinate = centers[j, e, b]
                    if metric == 0:
                        for a in range(k):
                            row[a] += fabs(rows[i, e, a] - coordinate)
                    elif metric == 1:
                        for a in range(k):
                            row[a] += (rows[i, e, a] - coordinate) * (rows[i, e, a] - coordinate)
                    else:
                        for a in range(k):
                            row[a] = max(row[a], fabs(rows[i, e, a] - coordinate))
                least = INFINITY
                for a in range(k):
                    if metric == 1:
                        row[a] = sqrt(row[a])
                    least = min(least, row[a] + row_level[i, a])
                worst = max(worst, least - level[j, b])
            out[i, j] = worst
