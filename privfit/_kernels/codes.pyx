"""Losses, gradients and moments of linear models over rows of codes.

As in `linear`, every function is one step on memory it is handed, tiles are shared out among
threads, and each thread has its own sums. `parts` describes the joint columns: a row (base, bins,
start, width) for each group, in order. The bins of its joint column begin at `base`; those that the
groups before it span are `bins`; its levels are the encoded columns from `start` on.
"""

from cython.parallel cimport prange, threadid
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t
from libc.string cimport memset

from privfit._kernels.codes cimport (
    add_by_level, add_code_gradient, code_image, code_length, code_margin, code_margins,
    code_margins_few, code_margins_paired, count_by, count_each, count_pairs, count_two_pairs,
    fold, levels_of, product, shift_margin, spread, total, whole,
)
from privfit._kernels.grid cimport BLOCK, WIDTH, loss_args
from privfit._kernels.losses cimport (
    cap_each, loss_each, loss_lanes, loss_sum, loss_wide, residuals, residuals_wide,
)
from privfit._kernels.records cimport CodeRows, Loss, code_rows

cdef enum:
    STRIP = 32        # rows whose margins of WIDTH candidates share L1 with the tables
    MOST = 1 << 18    # records whose residuals, of 13 bits, fit in the 32 bits of a bin


# ------------------------------------------------------------------------------- levels and bins


cdef void fill_tables(const int64_t[:, ::1] parts, const whole *w, ptrdiff_t v,
                      whole *out) noexcept nogil:
    """The weights (v,) of each bin: the sum over the levels that it stands for."""
    cdef ptrdiff_t g, j
    cdef whole *table
    for g in range(parts.shape[0]):
        table = out + parts[g, 0] * v
        if g == 0 or parts[g, 0] != parts[g - 1, 0]:  # another joint column
            for j in range(v):
                table[j] = 0
        spread(table, parts[g, 1], w + parts[g, 2] * v, parts[g, 3], v)


def tables(
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const int32_t[:, :, ::1] w,        # IN   (m, d + 1, v) weights of encoded columns
    int32_t[:, :, ::1] out,            # OUT  (m, bins, v)
):
    """The weight of each bin: the sum over the levels that it stands for."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(w.shape[0]):
            fill_tables(parts, &w[i, 0, 0], w.shape[2], &out[i, 0, 0])


def tables_long(
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const int64_t[:, :, ::1] w,        # IN   (m, d + 1, v) weights of encoded columns
    int64_t[:, :, ::1] out,            # OUT  (m, bins, v)
):
    """The same in 64 bits."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(w.shape[0]):
            fill_tables(parts, &w[i, 0, 0], w.shape[2], &out[i, 0, 0])


def tables_wide(
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const double[:, :, ::1] w,         # IN   (m, d + 1, v) integers
    double[:, :, ::1] out,             # OUT  (m, bins, v)
):
    """The same for weights that may not fit."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(w.shape[0]):
            fill_tables(parts, &w[i, 0, 0], w.shape[2], &out[i, 0, 0])


cdef void fold_bins(const int64_t[:, ::1] parts, int64_t *sums, int64_t *out) noexcept nogil:
    """Add sums (bins,) to the levels (d + 1,) that they stand for; sums are used up."""
    cdef ptrdiff_t g
    for g in range(parts.shape[0] - 1, -1, -1):
        fold(sums + parts[g, 0], parts[g, 1], out + parts[g, 2], parts[g, 3], 1)


def folded(
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const int64_t[::1] ends,           # IN   (numbers + 1,) the columns of numbers, the intercept's
    int64_t[:, ::1] sums,              # IN   (m, bins + numbers + 1); used up
    int64_t[:, ::1] out,               # OUT  (m, d + 1) zeros before
):
    """Add sums over bins up to those of levels, and put the others into their places."""
    cdef ptrdiff_t i, j, bins = sums.shape[1] - ends.shape[0]
    with nogil:
        for i in range(sums.shape[0]):
            fold_bins(parts, &sums[i, 0], &out[i, 0])
            for j in range(ends.shape[0]):
                out[i, ends[j]] = sums[i, bins + j]


# ---------------------------------------------------------------------- a population of candidates


cdef inline void paired_by(const code_rows *rows, ptrdiff_t k, bint few, ptrdiff_t first,
                           ptrdiff_t last, const int32_t *table, const int32_t *start,
                           const int32_t *w, int a, int32_t *z) noexcept nogil:
    if few:
        code_margins_few(rows, k, first, last, table, start, w, a, z)
    else:
        code_margins_paired(rows, k, first, last, table, start, w, a, z)


cdef inline void paired_margins(const code_rows *rows, bint few, ptrdiff_t first, ptrdiff_t last,
                                const int32_t *table, const int32_t *start, const int32_t *w,
                                int a, int32_t *z) noexcept nogil:
    """A loop over few codes has a known length."""
    if rows.joints == 3:
        paired_by(rows, 3, few, first, last, table, start, w, a, z)
    elif rows.joints == 4:
        paired_by(rows, 4, few, first, last, table, start, w, a, z)
    elif rows.joints == 5:
        paired_by(rows, 5, few, first, last, table, start, w, a, z)
    else:
        paired_by(rows, rows.joints, few, first, last, table, start, w, a, z)


def losses(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[:, :, ::1] table,    # IN   (groups, bins, lanes): see margins
    const int32_t[:, :, ::1] start,    # IN   (groups, 1, lanes) intercepts
    const int32_t[:, :, ::1] w,        # IN   (groups, numbers, candidates), or pairs of numbers
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int32_t[:, :, ::1] work,           # WORK (threads, 32, WIDTH)
    int64_t[:, ::1] out,               # OUT  (threads, groups * candidates)
):
    """Add the loss of every candidate over the records of these tiles.

    A group has WIDTH candidates, each in a lane or two to a lane; or WIDTH/2, two to a lane.
    """
    cdef ptrdiff_t t, g, s, first, last, stop, lanes = table.shape[2]
    cdef ptrdiff_t width = WIDTH if lanes == WIDTH else 2 * lanes
    cdef int n_threads = work.shape[0], me
    cdef const int32_t *numbers = NULL
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        stop = tile_rows[t, 0] + tile_rows[t, 1]
        for g in range(table.shape[0]):
            numbers = &w[g, 0, 0] if w.shape[1] else NULL
            for s in range((tile_rows[t, 1] + STRIP - 1) // STRIP):
                first = tile_rows[t, 0] + s * STRIP
                last = min(first + STRIP, stop)
                if lanes == WIDTH:
                    code_margins(&records.view, first, last, &table[g, 0, 0], &start[g, 0, 0],
                                 numbers, a, &work[me, 0, 0])
                else:
                    paired_margins(&records.view, width < WIDTH, first, last, &table[g, 0, 0],
                                   &start[g, 0, 0], numbers, a, &work[me, 0, 0])
                if width == WIDTH:
                    loss_lanes(loss.kind, &work[me, 0, 0], WIDTH, last - first,
                               loss.of(tile_rows[t, 2]), &out[me, g * WIDTH])
                else:
                    loss_lanes(loss.kind, &work[me, 0, 0], WIDTH // 2, last - first,
                               loss.of(tile_rows[t, 2]), &out[me, g * (WIDTH // 2)])


def losses_wide(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[:, ::1] table,        # IN   (m, bins) integers
    const double[:, ::1] w,            # IN   (m, numbers + 1) weights of numbers; intercepts last
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    double[:, ::1] work,               # WORK (threads, rows of the largest tile)
    int64_t[:, ::1] out,               # OUT  (threads, m)
):
    """As `losses`, for margins that may not fit in 32 bits."""
    cdef ptrdiff_t t, i, rows, last = w.shape[1] - 1
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        rows = tile_rows[t, 1]
        for i in range(w.shape[0]):
            code_margin[double](&records.view, tile_rows[t, 0], rows, &table[i, 0], &w[i, 0],
                                w[i, last], <double>(1 << a), &work[me, 0])
            out[me, i] += loss_wide(loss.kind, &work[me, 0], rows, loss.of(tile_rows[t, 2]))


# ---------------------------------------------------------------------------------- one candidate


def margins(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] table,          # IN   (bins,)
    const int32_t[::1] w,              # IN   (numbers + 1,) weights of numbers; the intercept last
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int32_t[:, ::1] state,             # OUT  (n, 2): each record's margin and loss
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
):
    """The margins and losses of one candidate, record by record."""
    cdef ptrdiff_t t, b, i, first, block
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, tile_rows[t, 1] - b * BLOCK)
            code_margin[int32_t](&records.view, first, block, &table[0], &w[0],
                                 w[w.shape[0] - 1], 1 << a, &work[me, 0, 0])
            loss_each(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]),
                      &work[me, 1, 0])
            for i in range(block):
                state[first + i, 0] = work[me, 0, i]
                state[first + i, 1] = work[me, 1, i]


cdef inline void make_room(int64_t *counted, ptrdiff_t n, int64_t most, ptrdiff_t bins,
                           int32_t *sums, int64_t *out) noexcept nogil:
    """Move sums (bins,) to wider ones where n more records would be more than `most`."""
    cdef ptrdiff_t i
    counted[0] += n
    if counted[0] <= most:
        return
    counted[0] = n
    for i in range(bins):
        out[i] += sums[i]
        sums[i] = 0


def gradient(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] table,          # IN   (bins,), or empty for wide margins
    const int32_t[::1] w,              # IN   (numbers + 1,) weights of numbers; the intercept last
    const double[::1] wide_table,      # IN   the same in double, or empty
    const double[::1] wide_w,          # IN   the same in double
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int32_t cap,                       # IN   in units of 2^-RESIDUAL_BITS
    const int16_t[::1] caps,           # IN   the same of each packed row, or empty
    double[:, ::1] wide_z,             # WORK (threads, BLOCK), or (threads, 0)
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
    int64_t[::1] counted,              # IN/OUT (threads,) records since sums were moved
    int32_t[:, ::1] sums,              # IN/OUT (threads, bins)
    int64_t[:, ::1] out,               # OUT  (threads, bins + numbers + 1)
):
    """Add sums of y x_j min(r(m), cap), without the factor 2^a of levels and of the intercept."""
    cdef ptrdiff_t t, b, first, block, last = records.view.numbers, bins = sums.shape[1]
    cdef int n_threads = work.shape[0], me
    cdef bint wide = table.shape[0] == 0
    cdef const code_rows *rows = &records.view
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        make_room(&counted[me], tile_rows[t, 1], MOST, bins, &sums[me, 0], &out[me, 0])
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, tile_rows[t, 1] - b * BLOCK)
            if wide:
                code_margin[double](rows, first, block, &wide_table[0], &wide_w[0], wide_w[last],
                                    <double>(1 << a), &wide_z[me, 0])
                residuals_wide(loss.kind, &wide_z[me, 0], block, loss.of(tile_rows[t, 2]), cap,
                               &work[me, 1, 0])
            else:
                code_margin[int32_t](rows, first, block, &table[0], &w[0], w[last], 1 << a,
                                     &work[me, 0, 0])
                residuals(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]), cap,
                          &work[me, 1, 0])
            if caps.shape[0]:
                cap_each(&work[me, 1, 0], block, &caps[first])
            add_code_gradient(rows, first, block, &work[me, 1, 0], &sums[me, 0], &out[me, bins])


def follow(
    CodeRows records,                  # IN
    ptrdiff_t joint,                   # IN   the joint column whose weights changed, or -1
    const int32_t[::1] table,          # IN   (bins,) weights; or by how much they changed
    const int32_t[::1] w,              # IN   (numbers + 1,) weights of numbers
    int a,                             # IN   bits of records
    int32_t[::1] z,                    # IN/OUT (n,) margins, less the intercept
    int n_threads,
):
    """The margins of one candidate, or of one that differs in a joint column from the last."""
    cdef ptrdiff_t b, first, block, n = z.shape[0]
    cdef const code_rows *rows = &records.view
    for b in prange((n + BLOCK - 1) // BLOCK, nogil=True, schedule="static",
                    num_threads=n_threads):
        first = b * BLOCK
        block = min(<ptrdiff_t>BLOCK, n - first)
        if joint < 0:
            code_margin[int32_t](rows, first, block, &table[0], &w[0], 0, 1 << a, &z[first])
        else:
            shift_margin(rows, first, block, joint, &table[0], 1 << a, &z[first])


def gradient_at(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] z,              # IN   (n,) margins, less the intercept
    int32_t start,                     # IN   intercept in margin units
    Loss loss,                         # IN
    int32_t cap,                       # IN   in units of 2^-RESIDUAL_BITS
    int32_t[:, :, ::1] work,           # WORK (threads, 2, BLOCK)
    int64_t[::1] counted,              # IN/OUT (threads,) records since sums were moved
    int32_t[:, ::1] sums,              # IN/OUT (threads, bins)
    int64_t[:, ::1] out,               # OUT  (threads, bins + numbers + 1)
):
    """`gradient` where the margins are known."""
    cdef ptrdiff_t t, b, i, first, block, bins = sums.shape[1]
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        make_room(&counted[me], tile_rows[t, 1], MOST, bins, &sums[me, 0], &out[me, 0])
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, tile_rows[t, 1] - b * BLOCK)
            for i in range(block):
                work[me, 0, i] = z[first + i] + start
            residuals(loss.kind, &work[me, 0, 0], block, loss.of(tile_rows[t, 2]), cap,
                      &work[me, 1, 0])
            add_code_gradient(&records.view, first, block, &work[me, 1, 0], &sums[me, 0],
                              &out[me, bins])


def finished(
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const int64_t[::1] ends,           # IN   (numbers + 1,) the columns of numbers, the intercept's
    int a,                             # IN   bits of records
    const int32_t[:, ::1] sums,        # IN   (threads, bins)
    int64_t[:, ::1] wide,              # IN   (threads, bins + numbers + 1); used up
    int64_t[::1] out,                  # OUT  (d + 1,) zeros before
):
    """The gradient from the sums of all threads."""
    cdef ptrdiff_t t, i, j, bins = sums.shape[1], last = ends.shape[0] - 1, d = out.shape[0] - 1
    with nogil:
        for i in range(bins):
            wide[0, i] += sums[0, i]
        for t in range(1, sums.shape[0]):
            for i in range(bins):
                wide[0, i] += wide[t, i] + sums[t, i]
            for i in range(bins, wide.shape[1]):
                wide[0, i] += wide[t, i]
        fold_bins(parts, &wide[0, 0], &out[0])
        out[d] = wide[0, bins + last]
        for i in range(d + 1):
            out[i] = out[i] << a
        for j in range(last):
            out[ends[j]] = wide[0, bins + j]


# --------------------------------------------------------------------------- moves of one candidate


cdef inline void add_changes(const code_rows *rows, ptrdiff_t first, ptrdiff_t n,
                             const int32_t *before, int32_t *after, int32_t *sums,
                             int64_t *all_of_them) noexcept nogil:
    """Add what a step changes of each record's loss to its bins, and to all that it changes."""
    cdef ptrdiff_t i
    for i in range(n):
        after[i] -= before[i]
    all_of_them[0] += total(after, n)
    count_by(rows.code + first * rows.joints, rows.joints, n, after, sums)


def moves(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int32_t[::1] table,          # IN   (bins,)
    const int32_t[::1] w,              # IN   (numbers + 1,) weights of numbers; the intercept last
    const int32_t[::1] steps,          # IN   (u,) of levels and the intercept, in candidate units
    const int64_t[::1] columns,        # IN   (q,) numbers that move
    const int32_t[::1] number_steps,   # IN   (q,) by how much
    int a,                             # IN   bits of records
    Loss loss,                         # IN
    int64_t most,                      # IN   records whose changes fit in the 32 bits of a bin
    int32_t[:, :, ::1] work,           # WORK (threads, 3, BLOCK)
    int64_t[:, ::1] counted,           # IN/OUT (threads, u) records since sums were moved
    int32_t[:, :, ::1] sums,           # IN/OUT (threads, u, bins)
    int64_t[:, :, ::1] out,            # OUT  (threads, u, bins + 1)
    int64_t[:, ::1] losses,            # OUT  (threads, q + 1) of each number's move; of no move
):
    """Add the changes of the loss by steps of all levels at once, and of the intercept.

    A step of a level changes the records that have it, each by what the same step of any of its
    other levels would change: so there is a loss for each step, not for each move.
    """
    cdef ptrdiff_t t, b, i, s, first, block, bins = sums.shape[2], q = columns.shape[0]
    cdef int n_threads = work.shape[0], me
    cdef int32_t *z
    cdef int32_t *before
    cdef int32_t *after
    cdef const int16_t *x
    cdef loss_args args
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        args = loss.of(tile_rows[t, 2])
        z, before, after = &work[me, 0, 0], &work[me, 1, 0], &work[me, 2, 0]
        for s in range(steps.shape[0]):
            make_room(&counted[me, s], tile_rows[t, 1], most, bins, &sums[me, s, 0],
                      &out[me, s, 0])
        for b in range((tile_rows[t, 1] + BLOCK - 1) // BLOCK):
            first = tile_rows[t, 0] + b * BLOCK
            block = min(<ptrdiff_t>BLOCK, tile_rows[t, 1] - b * BLOCK)
            code_margin[int32_t](&records.view, first, block, &table[0], &w[0],
                                 w[w.shape[0] - 1], 1 << a, z)
            loss_each(loss.kind, z, block, args, before)
            losses[me, q] += total(before, block)
            for s in range(steps.shape[0]):
                for i in range(block):
                    after[i] = z[i] + (steps[s] << a)
                loss_each(loss.kind, after, block, args, after)
                add_changes(&records.view, first, block, before, after, &sums[me, s, 0],
                            &out[me, s, bins])
            for s in range(q):
                x = records.view.number + columns[s] * records.view.rows + first
                for i in range(block):
                    after[i] = z[i] + number_steps[s] * x[i]
                losses[me, s] += loss_sum(loss.kind, after, block, args)


# --------------------------------------------------------------------------- lengths of records


def add_lengths(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[:, ::1] table,        # IN   (bins, width): where a bin goes
    const double[::1] start,           # IN   (width,) where all records start
    const double[:, ::1] numbers,      # IN   (numbers, width): where a unit of each number goes
    int a,                             # IN   bits of records
    int shift,                         # IN   bits of a coordinate that are dropped, upwards
    bint squared,                      # IN   whether coordinates are squared before they are added
    double[:, ::1] work,               # WORK (threads, width)
    int64_t[::1] out,                  # OUT  (n,)
):
    """Add what some coordinates of each record's image add to its length: see `sparse_lengths`."""
    cdef ptrdiff_t t, r, width = table.shape[1]
    cdef int n_threads = work.shape[0], me
    cdef const double *rest = &numbers[0, 0] if numbers.shape[0] else NULL
    for t in prange(tile_rows.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        for r in range(tile_rows[t, 0], tile_rows[t, 0] + tile_rows[t, 1]):
            code_image(&records.view, r, &table[0, 0], &start[0], rest, width, <double>(1 << a),
                       &work[me, 0])
            out[r] += code_length(&work[me, 0], width, shift, squared)


# --------------------------------------------------------------------------------- second moments
# A *piece* is one or more groups of a joint column, with so few levels together that the counts of
# two pieces' levels stay in L1. Its row is (joint column, levels, first part, last part), and its
# parts are rows (piece, bins, start, width) as above.


def add_counts(
    CodeRows records,                  # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[:, ::1] pieces,      # IN   (pieces, 4)
    const uint16_t[:, ::1] lookup,     # IN   (pieces, bins): the level of each code
    uint16_t[:, :, ::1] levels,        # WORK (threads, pieces, rows of the largest tile)
    int32_t[:, ::1] counts,            # OUT  (threads, all pairs j < i of pieces; each piece)
    int64_t[:, ::1] sums,              # OUT  (threads, levels of each number; products)
):
    """Count records by the levels of every two pieces, and add up numbers by levels."""
    cdef ptrdiff_t t, i, j, first, rows, n = records.view.rows, numbers = records.view.numbers
    cdef int n_threads = levels.shape[0], me
    cdef int32_t *table = NULL
    cdef int64_t *sum = NULL
    cdef const int16_t *x = records.view.number
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        rows = tile_rows[t, 1]
        table = &counts[me, 0]
        sum = &sums[me, 0]
        for i in range(pieces.shape[0]):
            levels_of(&records.view, first, rows, pieces[i, 0], &lookup[i, 0], &levels[me, i, 0])
            for j in range(0, i - 1, 2):
                count_two_pairs(&levels[me, j, 0], &levels[me, j + 1, 0], &levels[me, i, 0], rows,
                                pieces[i, 1], table, table + pieces[j, 1] * pieces[i, 1])
                table = table + (pieces[j, 1] + pieces[j + 1, 1]) * pieces[i, 1]
            if i % 2:
                count_pairs(&levels[me, i - 1, 0], &levels[me, i, 0], rows, pieces[i, 1], table)
                table = table + pieces[i - 1, 1] * pieces[i, 1]
            count_each(&levels[me, i, 0], rows, table)
            table = table + pieces[i, 1]
            for j in range(numbers):
                add_by_level(&levels[me, i, 0], x + j * n + first, rows, sum)
                sum = sum + pieces[i, 1]
        for i in range(numbers):
            for j in range(i + 1):
                sum[0] += product(x + i * n + first, x + j * n + first, rows)
                sum = sum + 1


cdef void pair_moments(const int64_t[:, ::1] pieces, const int64_t[:, ::1] parts, ptrdiff_t left,
                       ptrdiff_t right, int64_t *counts, int64_t *work,
                       int64_t[:, ::1] out) noexcept nogil:
    """Add the counts of two pieces' levels to those of two groups' levels; counts are used up."""
    cdef ptrdiff_t g, h, c, width = pieces[right, 1]
    for g in range(pieces[left, 3] - 1, pieces[left, 2] - 1, -1):
        memset(work, 0, parts[g, 3] * width * sizeof(int64_t))
        fold(counts, parts[g, 1], work, parts[g, 3], width)
        for c in range(parts[g, 3]):
            for h in range(pieces[right, 3] - 1, pieces[right, 2] - 1, -1):
                fold(work + c * width, parts[h, 1], &out[parts[g, 2] + c, parts[h, 2]],
                     parts[h, 3], 1)


cdef void own_moments(const int64_t[:, ::1] pieces, const int64_t[:, ::1] parts, ptrdiff_t i,
                      const int64_t *counts, int64_t[:, ::1] out) noexcept nogil:
    """Add the counts of a piece's levels to those of its groups, and to the intercept's."""
    cdef ptrdiff_t level, g, h, x, y, size = pieces[i, 1], d = out.shape[0] - 1
    for level in range(size):
        for g in range(pieces[i, 2], pieces[i, 3]):
            x = parts[g, 2] + level // (size // (parts[g, 1] * parts[g, 3])) % parts[g, 3]
            out[x, d] += counts[level]
            for h in range(g, pieces[i, 3]):
                y = parts[h, 2] + level // (size // (parts[h, 1] * parts[h, 3])) % parts[h, 3]
                out[x, y] += counts[level]


def moments(
    const int64_t[:, ::1] pieces,      # IN   (pieces, 4)
    const int64_t[:, ::1] parts,       # IN   (groups, 4)
    const int64_t[::1] ends,           # IN   (numbers + 1,) the columns of numbers, the intercept's
    int a,                             # IN   bits of records
    int64_t[::1] counts,               # IN   of `add_counts`, times 4^a; used up
    int64_t[::1] sums,                 # IN   of `add_counts`; used up
    int64_t[::1] work,                 # WORK the most levels of a group times those of a piece
    int64_t[:, ::1] out,               # OUT  (d + 1, d + 1) zeros before
):
    """The sum of x~ x~', the intercept last, in units of 4^-a; but not that of the intercept."""
    cdef ptrdiff_t i, j, g, c, at = 0, sum = 0, numbers = ends.shape[0] - 1
    cdef int64_t x
    with nogil:
        for i in range(pieces.shape[0]):
            for j in range(i):
                pair_moments(pieces, parts, j, i, &counts[at], &work[0], out)
                at += pieces[j, 1] * pieces[i, 1]
            own_moments(pieces, parts, i, &counts[at], out)
            at += pieces[i, 1]
            for j in range(numbers):
                for c in range(pieces[i, 1]):
                    sums[sum + c] = sums[sum + c] << a
                for g in range(pieces[i, 3] - 1, pieces[i, 2] - 1, -1):
                    fold(&sums[sum], parts[g, 1], &out[ends[j], parts[g, 2]], parts[g, 3], 1)
                if i == 0:
                    out[ends[j], ends[numbers]] = sums[sum]
                sum += pieces[i, 1]
        for i in range(numbers):
            for j in range(i + 1):
                out[ends[i], ends[j]] = sums[sum]
                sum += 1
        for i in range(out.shape[0]):
            for j in range(i):
                x = out[i, j] + out[j, i]
                out[i, j] = out[j, i] = x
