"""Losses of linear models: a population at once, one-coordinate moves, clipped gradients.

Every function is one step on memory it is handed. A *tile* is a row (first, count, flip) of an
int64 array: `count` records of one class from packed row `first` on, flip 0 for class 1 and -1 for
class 0. Tiles are shared out among threads; each thread adds its int64 sums to its own row of OUT,
so the result does not depend on who did what.

Losses are returned, not scores: OUT grows by the sum of per-record loss integers.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stddef cimport ptrdiff_t

from privfit._kernels.gradients cimport add_sparse_gradient, gradient, image_length
from privfit._kernels.grid cimport BLOCK, PANEL, QUAD, WIDTH, loss_args
from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_load, lanes_mul, lanes_pairs, lanes_store, pair_of,
)
from privfit._kernels.losses cimport (
    cap_each, loss_each, loss_lanes, loss_sum, loss_wide, residuals, residuals_wide,
)
from privfit._kernels.margins cimport (
    L2, margin, margin_wide, margins, sparse_margin, sparse_margin_wide,
    sparse_margins as margins_of_rows, sparse_margins_paired,
)
from privfit._kernels.records cimport Loss, SparseRows, sparse_rows
from privfit._kernels.shorts cimport has_short_losses, short_losses

cdef enum:
    STRIP = 32  # sparse rows whose margins of WIDTH candidates share L1 with the weights
    HALF = 31   # bits of the lower half of a sum

HALF_BITS = HALF


# ---------------------------------------------------------------------- a population of candidates


def dense_losses(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (quads, pairs, QUAD) int16 pairs
    const int32_t[:, ::1] start,       # IN   (quads, QUAD) intercepts in margin units
    Loss loss,                         # IN
    int32_t[:, :, ::1] work,           # WORK (threads, QUAD, rows of the largest tile, padded)
    int64_t[:, ::1] out,               # OUT  (threads, quads * QUAD)
):
    """Add the loss of every candidate over the records of these tiles."""
    cdef ptrdiff_t t, q, c, rows
    cdef int n_threads = work.shape[0], me
    cdef ptrdiff_t pairs = panels.shape[1], stride = work.shape[2]
    cdef loss_args args
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        args = loss.of(tile_rows[t, 2])
        for q in range(w.shape[0]):
            margins(L2, &panels[tile_rows[t, 0] // PANEL, 0, 0], (rows + PANEL - 1) // PANEL,
                    pairs, &w[q, 0, 0], &start[q, 0], &work[me, 0, 0], stride)
            for c in range(QUAD):
                out[me, q * QUAD + c] += loss_sum(loss.kind, &work[me, c, 0], rows, args)


def dense_losses_wide(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[:, ::1] w,              # IN   (m, 2 * pairs) integers
    const double[::1] start,             # IN   (m,) intercepts in margin units
    Loss loss,                           # IN
    double[:, ::1] work,                 # WORK (threads, rows of the largest tile, padded)
    int64_t[:, ::1] out,                 # OUT  (threads, m)
):
    """As `dense_losses`, for margins that may not fit in 32 bits."""
    cdef ptrdiff_t t, i, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        for i in range(w.shape[0]):
            margin_wide(&panels[tile_rows[t, 0] // PANEL, 0, 0, 0],
                        (rows + PANEL - 1) // PANEL, panels.shape[1], &w[i, 0], start[i],
                        &work[me, 0])
            out[me, i] += loss_wide(loss.kind, &work[me, 0], rows, loss.of(tile_rows[t, 2]))


def sparse_losses(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] w,        # IN   (groups, d + 1, WIDTH)
    const int32_t[:, :, ::1] pairs,    # IN   (groups, d + 1, WIDTH / 2), or none: see margins
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int32_t[:, :, ::1] work,           # WORK (threads, 32, WIDTH)
    int64_t[:, ::1] out,               # OUT  (threads, groups * WIDTH)
):
    """Add the loss of every candidate over the records of these tiles."""
    cdef ptrdiff_t t, g, s, first, last, stop
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        if pairs.shape[0] and has_short_losses(loss.kind, &records.view, tile_rows[t, 0], stop,
                                               loss.of(tile_rows[t, 2]), a):
            short_losses(loss.kind, &records.view, tile_rows[t, 0], stop, &pairs[0, 0, 0],
                         pairs.shape[0], w.shape[1] - 1, a, loss.of(tile_rows[t, 2]), &out[me, 0])
            continue
        for g in range(w.shape[0]):
            for s in range((tile_rows[t, 1] + STRIP - 1) // STRIP):
                first = tile_rows[t, 0] + s * STRIP
                last = min(first + STRIP, stop)
                if pairs.shape[0]:
                    sparse_margins_paired(&records.view, first, last, &w[g, 0, 0],
                                          &pairs[g, 0, 0], w.shape[1] - 1, a,
                                          &work[me, 0, 0])
                else:
                    margins_of_rows(&records.view, first, last, &w[g, 0, 0], w.shape[1] - 1,
                                    a, &work[me, 0, 0])
                loss_lanes(loss.kind, &work[me, 0, 0], WIDTH, last - first,
                           loss.of(tile_rows[t, 2]), &out[me, g * WIDTH])


def sparse_losses_wide(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[:, ::1] w,            # IN   (m, d + 1) integers
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    double[:, ::1] work,               # WORK (threads, rows of the largest tile)
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """As `sparse_losses`, for margins that may not fit in 32 bits."""
    cdef ptrdiff_t t, i, first, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for i in range(w.shape[0]):
            sparse_margin_wide(&records.view, first, first + rows, &w[i, 0], w.shape[1] - 1,
                               <double>(1 << a), &work[me, 0])
            out[me, i] += loss_wide(loss.kind, &work[me, 0], rows, loss.of(tile_rows[t, 2]))


# ---------------------------------------------------------------------------- moves of one parent


cdef inline void shift_column(const int32_t *panels, ptrdiff_t n, ptrdiff_t pairs, ptrdiff_t column,
                              int32_t step, const int32_t *z, int32_t *out) noexcept nogil:
    """out = z + step x_column: the margins of a one-coordinate move; whole panels of them."""
    cdef lanes x, steps = lanes_all(step)
    cdef lanes chosen = lanes_all(pair_of(1 - column % 2, column % 2))
    cdef ptrdiff_t i, p, half
    panels += column // 2 * PANEL
    for p in range((n + PANEL - 1) // PANEL):
        for half in range(2):
            i = p * PANEL + half * LANES
            x = lanes_pairs(lanes_load(panels + p * pairs * PANEL + half * LANES), chosen)
            lanes_store(out + i, lanes_add(lanes_load(z + i), lanes_mul(x, steps)))


cdef inline void shift_entries(const int32_t *z, const int16_t *value, ptrdiff_t n, int32_t step,
                               int32_t *out) noexcept nogil:
    """The same for the entries of a sparse column, whose margins were gathered."""
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = z[i] + step * value[i]


def dense_margin(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int32_t[::1] w,              # IN   (pairs,) int16 pairs
    int32_t start,                     # IN   intercept in margin units
    int32_t[::1] z,                    # OUT  (n_panels * PANEL,)
    int n_threads,
):
    """The margins of one candidate."""
    cdef ptrdiff_t p
    for p in prange(panels.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        margin(&panels[p, 0, 0], 1, panels.shape[1], &w[0], start, &z[p * PANEL])


def sparse_margins(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] w,              # IN   (d + 1,)
    int a,                             # IN   bits of records
    int32_t[::1] z,                    # OUT  (n,)
    int n_threads,
):
    """The margins of one candidate."""
    cdef ptrdiff_t t
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        sparse_margin(&records.view, tile_rows[t, 0], tile_rows[t, 0] + tile_rows[t, 1],
                      &w[0], w.shape[0] - 1, a, &z[tile_rows[t, 0]])


def losses_each(
    const int32_t[::1] z,              # IN   (n,) margins
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    Loss loss,                         # IN
    int32_t[::1] out,                  # OUT  (n,)
    int n_threads,
):
    """The loss integer of each record."""
    cdef ptrdiff_t t, first
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        first = tile_rows[t, 0]
        loss_each(loss.kind, &z[first], tile_rows[t, 1], loss.of(tile_rows[t, 2]),
                  &out[first])


def dense_moves(
    const int32_t[:, :, ::1] panels,     # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const int32_t[::1] z,                # IN   (n_panels * PANEL,) the parent's margins
    const int64_t[::1] columns,          # IN   (m,); the number of columns stands for the intercept
    const int32_t[::1] steps,            # IN   (m,) candidate units, times 2^a for the intercept
    ptrdiff_t intercept,                 # IN   which column is the intercept
    Loss loss,                           # IN
    int32_t[:, ::1] work,                # WORK (threads, rows of the largest tile, padded)
    int64_t[:, ::1] out,                 # OUT  (threads, m)
):
    """Add the loss of every one-coordinate move of the parent."""
    cdef ptrdiff_t t, i, r, first, rows
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        for i in range(columns.shape[0]):
            if columns[i] == intercept:
                for r in range(rows):
                    work[me, r] = z[first + r] + steps[i]
            else:
                shift_column(&panels[first // PANEL, 0, 0], rows, panels.shape[1],
                             columns[i], steps[i], &z[first], &work[me, 0])
            out[me, i] += loss_sum(loss.kind, &work[me, 0], rows, loss.of(tile_rows[t, 2]))


def sparse_moves(
    const int32_t[:, ::1] state,       # IN   (n, 2): each record's margin and loss
    const int64_t[:, ::1] segments,    # IN   (segments, 4): first, last entry; group; flip
    const int64_t[:, ::1] groups,      # IN   (groups, 2): the moves [from, to) of one column
    const int32_t[::1] rows,           # IN   (entries,) row of an entry, column by column
    const int16_t[::1] values,         # IN   (entries,)
    const int32_t[::1] steps,          # IN   (m,) in candidate units
    Loss loss,                         # IN
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """Add the change of the loss for moves of columns, touching only a column's non-zeros."""
    cdef ptrdiff_t s, b, i, k, block, first
    cdef int64_t before
    cdef int n_threads = work.shape[0], me
    cdef loss_args args
    cdef const int64_t *group
    for s in prange(segments.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        args = loss.of(segments[s, 3])
        group = &groups[segments[s, 2], 0]
        for b in range((segments[s, 1] - segments[s, 0] + BLOCK - 1) // BLOCK):
            first = segments[s, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, segments[s, 1] - first)
            before = 0
            for k in range(block):
                work[me, 0, k] = state[rows[first + k], 0]
                before = before + state[rows[first + k], 1]
            for i in range(group[0], group[1]):
                shift_entries(&work[me, 0, 0], &values[first], block, steps[i],
                              &work[me, 1, 0])
                out[me, i] += loss_sum(loss.kind, &work[me, 1, 0], block, args) - before


def sparse_step(
    int32_t[:, ::1] state,             # IN/OUT (n, 2): each record's margin and loss
    const int64_t[:, ::1] segments,    # IN   (segments, 4): first, last entry; group; flip
    const int32_t[::1] rows,           # IN   (entries,) row of an entry, column by column
    const int16_t[::1] values,         # IN   (entries,)
    int32_t step,                      # IN   in candidate units
    Loss loss,                         # IN
    int32_t[:, ::1] work,              # WORK (2, BLOCK)
):
    """Move one column's weight; return the change of the total loss."""
    cdef ptrdiff_t s, b, k, block, first
    cdef int64_t change = 0
    with nogil:
        for s in range(segments.shape[0]):
            for b in range((segments[s, 1] - segments[s, 0] + BLOCK - 1) // BLOCK):
                first = segments[s, 0] + b * BLOCK
                block = min(<ptrdiff_t>BLOCK, segments[s, 1] - first)
                for k in range(block):
                    work[0, k] = state[rows[first + k], 0]
                shift_entries(&work[0, 0], &values[first], block, step, &work[0, 0])
                loss_each(loss.kind, &work[0, 0], block, loss.of(segments[s, 3]),
                          &work[1, 0])
                for k in range(block):
                    change += work[1, k] - state[rows[first + k], 1]
                    state[rows[first + k], 0] = work[0, k]
                    state[rows[first + k], 1] = work[1, k]
    return change


# ------------------------------------------------------------------------------ clipped gradients


def dense_gradient(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] w,              # IN   (pairs,) int16 pairs
    int32_t start,                     # IN   intercept in margin units
    Loss loss,                         # IN
    int32_t cap,                       # IN   in units of 2^-RESIDUAL_BITS
    const int16_t[::1] caps,           # IN   the same of each packed row, or empty
    int32_t[:, :, ::1] work,           # WORK (threads, 3, BLOCK / 2)
    int64_t[:, ::1] out,               # OUT  (threads, 2 * pairs + 1): the intercept last
):
    """Add sum of y x_j min(r(m), cap), in units of record units times residual units."""
    cdef ptrdiff_t t, b, i, first, block, n_panels, stop
    cdef ptrdiff_t pairs = panels.shape[1]
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for b in range((tile_rows[t, 1] + BLOCK // 2 - 1) // (BLOCK // 2)):
            first = tile_rows[t, 0] + b * (BLOCK // 2)
            block = min(<ptrdiff_t>(BLOCK // 2), stop - first)
            n_panels = (block + PANEL - 1) // PANEL
            margin(&panels[first // PANEL, 0, 0], n_panels, pairs, &w[0], start,
                   &work[me, 0, 0])
            residuals(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]), cap,
                      &work[me, 0, 0])
            if caps.shape[0]:
                cap_each(&work[me, 0, 0], block, &caps[first])
            for i in range(block):
                out[me, 2 * pairs] += work[me, 0, i]
            for i in range(block, n_panels * PANEL):
                work[me, 0, i] = 0
            gradient(&panels[first // PANEL, 0, 0], n_panels, pairs, &work[me, 0, 0],
                     &work[me, 1, 0], &out[me, 0])


def dense_gradient_wide(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const double[::1] w,                 # IN   (2 * pairs,) integers
    double start,                        # IN   intercept in margin units
    Loss loss,                           # IN
    int32_t cap,                         # IN   in units of 2^-RESIDUAL_BITS
    const int16_t[::1] caps,             # IN   the same of each packed row, or empty
    double[:, ::1] wide_z,                # WORK (threads, BLOCK / 2)
    int32_t[:, :, ::1] work,             # WORK (threads, 3, BLOCK / 2)
    int64_t[:, ::1] out,                 # OUT  (threads, 2 * pairs + 1)
):
    """As `dense_gradient`, for margins that may not fit in 32 bits."""
    cdef ptrdiff_t t, b, i, first, block, n_panels, stop
    cdef ptrdiff_t pairs = panels.shape[1]
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for b in range((tile_rows[t, 1] + BLOCK // 2 - 1) // (BLOCK // 2)):
            first = tile_rows[t, 0] + b * (BLOCK // 2)
            block = min(<ptrdiff_t>(BLOCK // 2), stop - first)
            n_panels = (block + PANEL - 1) // PANEL
            margin_wide(&panels[first // PANEL, 0, 0, 0], n_panels, pairs, &w[0], start,
                        &wide_z[me, 0])
            residuals_wide(loss.kind, &wide_z[me, 0], block, loss.of(tile_rows[t, 2]), cap,
                           &work[me, 0, 0])
            if caps.shape[0]:
                cap_each(&work[me, 0, 0], block, &caps[first])
            for i in range(block):
                out[me, 2 * pairs] += work[me, 0, i]
            for i in range(block, n_panels * PANEL):
                work[me, 0, i] = 0
            gradient(<const int32_t *>&panels[first // PANEL, 0, 0, 0], n_panels, pairs,
                     &work[me, 0, 0], &work[me, 1, 0], &out[me, 0])


def sparse_gradient(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[::1] w,               # IN   (d + 1,) integers
    const int32_t[::1] narrow_w,       # IN   (d + 1,) the same, or empty: margins may be wide
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int32_t cap,                       # IN   in units of 2^-RESIDUAL_BITS
    const int16_t[::1] caps,           # IN   the same of each packed row, or empty
    double[:, ::1] wide_z,              # WORK (threads, BLOCK), or empty if margins are narrow
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
    int64_t[:, :, ::1] out,            # OUT  (threads, 2, d + 1): from ones, from values
):
    """Add sum of y x_j min(r(m), cap); sums over ones still lack the factor 2^a."""
    cdef ptrdiff_t t, b, first, block, stop
    cdef ptrdiff_t d = w.shape[0] - 1
    cdef int n_threads = work.shape[0], me
    cdef bint wide = narrow_w.shape[0] == 0
    cdef const sparse_rows *rows = &records.view
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, stop - first)
            if wide:
                sparse_margin_wide(rows, first, first + block, &w[0], d, <double>(1 << a),
                                   &wide_z[me, 0])
                residuals_wide(loss.kind, &wide_z[me, 0], block, loss.of(tile_rows[t, 2]),
                               cap, &work[me, 1, 0])
            else:
                sparse_margin(rows, first, first + block, &narrow_w[0], d, a,
                              &work[me, 0, 0])
                residuals(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]), cap,
                          &work[me, 1, 0])
            if caps.shape[0]:
                cap_each(&work[me, 1, 0], block, &caps[first])
            add_sparse_gradient(rows, first, first + block, d, &work[me, 1, 0], &out[me, 0, 0],
                                &out[me, 1, 0])


def sparse_gradient_at(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] z,              # IN   (n,) margins without the intercept
    int32_t start,                     # IN   intercept in margin units
    Loss loss,                         # IN
    int32_t cap,                       # IN   in units of 2^-RESIDUAL_BITS
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
    int64_t[:, :, ::1] out,            # OUT  (threads, 2, d + 1): from ones, from values
):
    """As `sparse_gradient`, where the margins are known."""
    cdef ptrdiff_t t, b, i, first, block, stop
    cdef ptrdiff_t d = out.shape[2] - 1
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, stop - first)
            for i in range(block):
                work[me, 0, i] = z[first + i] + start
            residuals(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]), cap,
                      &work[me, 1, 0])
            add_sparse_gradient(&records.view, first, first + block, d, &work[me, 1, 0],
                                &out[me, 0, 0], &out[me, 1, 0])


def sparse_shift(
    const int32_t[::1] rows,           # IN   (entries,) of one column
    const int16_t[::1] values,         # IN   (entries,)
    int32_t step,                      # IN   in candidate units
    int32_t[::1] z,                    # IN/OUT (n,) margins
):
    """Move one column's weight."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(rows.shape[0]):
            z[rows[i]] += step * values[i]


# --------------------------------------------------------------------------- lengths of records


def sparse_lengths(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[:, ::1] columns,     # IN   (d + 1, k): where a unit of each column goes
    int a,                             # IN   bits of records
    int shift,                         # IN   bits of a coordinate that are dropped, upwards
    bint squared,                      # IN   whether coordinates are squared before they are added
    int64_t[::1] out,                  # OUT  (n,)
    int n_threads,
):
    """The l1 norm, or the square of the l2 norm, of each record's image under a linear map."""
    cdef ptrdiff_t t, r, first
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        first = tile_rows[t, 0]
        for r in range(first, first + tile_rows[t, 1]):
            out[r] = image_length(&records.view, r, &columns[0, 0], columns.shape[0] - 1,
                                  columns.shape[1], a, shift, squared)


# --------------------------------------------------------------------------------- second moments


def sparse_moments(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    int a,                             # IN   bits of records
    int64_t[:, :, ::1] out,            # OUT  (threads, d + 1, d + 1): the upper triangle
):
    """Add sum of x~ x~', the intercept last, in units of 2^-2a; only entries j <= l by column."""
    cdef ptrdiff_t t, r, j, other
    cdef int64_t e, f
    cdef ptrdiff_t d = out.shape[1] - 1
    cdef int64_t one = 1 << a, x
    cdef int n_threads = out.shape[0], me
    cdef const sparse_rows *rows = &records.view
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        for r in range(tile_rows[t, 0], tile_rows[t, 0] + tile_rows[t, 1]):
            out[me, d, d] += one * one
            for e in range(rows.one_start[r], rows.one_start[r + 1]):
                j = rows.one_column[e]
                out[me, j, d] += one * one
                for f in range(e, rows.one_start[r + 1]):
                    out[me, j, rows.one_column[f]] += one * one
                for f in range(rows.value_start[r], rows.value_start[r + 1]):
                    other = rows.value_column[f]
                    out[me, min(j, other), max(j, other)] += one * rows.value[f]
            for e in range(rows.value_start[r], rows.value_start[r + 1]):
                j = rows.value_column[e]
                x = rows.value[e]
                out[me, j, d] += one * x
                for f in range(e, rows.value_start[r + 1]):
                    out[me, j, rows.value_column[f]] += x * rows.value[f]


# -------------------------------------------------------------------------------- mapped gradients


def mapped(
    const int32_t[:, ::1] matrix,      # IN   (k, d): rows of at most 2^30 in l1
    const int64_t[::1] sums,           # IN   (d,) of at most 2^60 in size
    int drop,                          # IN   bits that are dropped, at least HALF
    int32_t[:, ::1] work,              # WORK (2, d)
    int64_t[::1] out,                  # OUT  (k,)
):
    """The matrix times the sums, divided by 2^drop and rounded down, exactly.

    Both halves of a sum fit in 32 bits, and the matrix times each of them in 62.
    """
    cdef ptrdiff_t i, j
    cdef int64_t high, low
    with nogil:
        for j in range(sums.shape[0]):
            work[0, j] = <int32_t>(sums[j] >> HALF)
            work[1, j] = <int32_t>(sums[j] & ((<int64_t>1 << HALF) - 1))
        for i in range(matrix.shape[0]):
            high = low = 0
            for j in range(matrix.shape[1]):
                high += <int64_t>matrix[i, j] * work[0, j]
                low += <int64_t>matrix[i, j] * work[1, j]
            out[i] = (high + (low >> HALF)) >> (drop - HALF)


# ---------------------------------------------------------------------------------------- norms


def group_pair_norms(
    const double[:, ::1] columns,      # IN   (d + 1, m): candidates side by side, intercept last
    const int64_t[::1] starts,         # IN   (groups + 1,): the first column of each group, then d
    const double[::1] least,           # IN   (groups,): the least a group adds
    double[:, :, ::1] work,            # WORK (threads, 4, m)
    double[:, ::1] out,                # OUT  (m, m)
):
    """N(w - w') over a schema: max of S(v), S(-v); S(v) = v_b + sum of max(top of group, least)."""
    cdef ptrdiff_t i, g, j, c
    cdef ptrdiff_t m = columns.shape[1], d = columns.shape[0] - 1
    cdef int n_threads = work.shape[0], me
    cdef double *up
    cdef double *down
    cdef double *top
    cdef double *bottom
    cdef double v, w
    for i in prange(m, nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        up, down = &work[me, 0, 0], &work[me, 1, 0]
        top, bottom = &work[me, 2, 0], &work[me, 3, 0]
        for j in range(m):
            up[j] = columns[d, i] - columns[d, j]
            down[j] = -up[j]
        for g in range(least.shape[0]):
            w = columns[starts[g], i]
            for j in range(m):
                top[j] = bottom[j] = w - columns[starts[g], j]
            for c in range(starts[g] + 1, starts[g + 1]):
                w = columns[c, i]
                for j in range(m):
                    v = w - columns[c, j]
                    top[j] = v if v > top[j] else top[j]
                    bottom[j] = v if v < bottom[j] else bottom[j]
            w = least[g]
            for j in range(m):
                up[j] += top[j] if top[j] > w else w
                down[j] += -bottom[j] if -bottom[j] > w else w
        for j in range(m):
            out[i, j] = up[j] if up[j] > down[j] else down[j]
