"""Steps of the chain over synthetic records: what a proposal gains, and what accepting it changes.

Records are int16 rows of `width` entries: d coordinates, a one for the count, zeros up to a
multiple of four. So counts and sums of a cluster are one row of doubles, which hold whole numbers
below 2^53: adding and taking away records is exact. A row is taken four entries at a time, and
gains are always added in the same order.
"""

from libc.math cimport INFINITY
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memcpy

from privfit._kernels.lanes cimport (
    fetch, four, four_abs, four_add, four_load, four_mul, four_of_words, four_store, four_sub,
    four_sum, four_zero,
)

cdef enum:
    AHEAD = 8  # steps for which a record is brought into cache before its turn

# The state. A row of `points` has `width` int16: the record, a one, zeros.
ctypedef struct chain_state:
    ptrdiff_t sets
    ptrdiff_t width
    int16_t *points       # (n, width)
    uint16_t *ids         # (n, sets): which row of `rows` a record belongs to in each set
    double *log_q         # (n,): ln of the density with which it would be proposed
    double *rows          # (sets k, width): noisy sums and counts less those of the points
    const double *weight  # (width,): 1 / scale or 1 / (2 scale^2); 0 for padding
    int16_t *best         # (n, width): the points of the best state, but for the stale ones
    int64_t *stale        # (n,): indices of points that changed since, each once
    uint8_t *is_stale     # (n,)
    int64_t n_stale
    int64_t accepted
    double value          # log likelihood
    double best_value
    int at_best           # whether the points are the best state

# Proposals: point `index` is to be replaced by a row of `points`.
ctypedef struct chain_block:
    ptrdiff_t n
    const int32_t *index
    const int16_t *points  # (n, width)
    const uint16_t *ids    # (n, sets)
    const double *log_q
    const double *log_u
    double beta            # accept if log_u < beta gain + tilt (log_q of the old - of the new)
    double tilt


cdef inline four misfit(four row, bint quadratic) noexcept nogil:
    return four_mul(row, row) if quadratic else four_abs(row)


cdef inline double log_likelihood(const chain_state *s, ptrdiff_t n_rows,
                                  bint quadratic) noexcept nogil:
    """The log likelihood of the rows, from scratch."""
    cdef four total = four_zero(), row
    cdef ptrdiff_t r, f
    for r in range(n_rows):
        for f in range(s.width // 4):
            row = misfit(four_load(s.rows + r * s.width + 4 * f), quadratic)
            total = four_add(total, four_mul(four_load(s.weight + 4 * f), row))
    return -four_sum(total)


cdef inline void save_best(chain_state *s) noexcept nogil:
    """Make `best` whole, when the chain leaves the best state, or ends there.

    The best state is the points as they were when it was reached: `best` lacks the points in the
    list `stale`, which are copied now. A copy of known size is a move, not a call.
    """
    cdef ptrdiff_t i, j, f
    for i in range(s.n_stale):
        j = s.stale[i]
        for f in range(s.width // 4):
            memcpy(s.best + j * s.width + 4 * f, s.points + j * s.width + 4 * f,
                   4 * sizeof(int16_t))
        s.is_stale[j] = 0
    s.n_stale = 0


cdef inline double gain_of(const double *rows, const double *weight, ptrdiff_t sets,
                           ptrdiff_t fours, bint quadratic, const int16_t *y, const int16_t *x,
                           const uint16_t *old, const uint16_t *new) noexcept nogil:
    """The change of the log likelihood when point y, of clusters `old`, becomes x, of `new`.

    Without y a cluster's residual grows by y, with x it shrinks by x; where both are one cluster,
    it changes once. Branches beat masks: sets agree on what is one cluster. Lefts and rights are
    two short chains of additions.
    """
    cdef four change = four_zero(), less, more, lefts, rights, left, right, grown
    cdef ptrdiff_t f, t, width = 4 * fours
    for f in range(fours):
        less, more = four_of_words(y + 4 * f), four_of_words(x + 4 * f)
        lefts = rights = four_zero()
        for t in range(sets):
            left = four_load(rows + old[t] * width + 4 * f)
            grown = four_add(left, less)
            if old[t] == new[t]:
                grown = four_sub(grown, more)
            else:
                right = four_load(rows + new[t] * width + 4 * f)
                rights = four_add(rights, four_sub(misfit(right, quadratic),
                                                   misfit(four_sub(right, more), quadratic)))
            lefts = four_add(lefts, four_sub(misfit(left, quadratic), misfit(grown, quadratic)))
        change = four_add(change, four_mul(four_load(weight + 4 * f), four_add(lefts, rights)))
    return four_sum(change)


cdef inline void replace(double *rows, ptrdiff_t sets, ptrdiff_t fours, int16_t *y,
                         const int16_t *x, uint16_t *old, const uint16_t *new) noexcept nogil:
    """Put x, of clusters `new`, in the place of y."""
    cdef four less, more
    cdef double *left
    cdef double *right
    cdef ptrdiff_t f, t, width = 4 * fours
    for f in range(fours):
        less, more = four_of_words(y + 4 * f), four_of_words(x + 4 * f)
        for t in range(sets):
            left, right = rows + old[t] * width + 4 * f, rows + new[t] * width + 4 * f
            four_store(left, four_add(four_load(left), less))
            four_store(right, four_sub(four_load(right), more))
        memcpy(y + 4 * f, x + 4 * f, 4 * sizeof(int16_t))
    for t in range(sets):
        old[t] = new[t]


cdef inline void accept(chain_state *s, ptrdiff_t j, double log_q, double gain) noexcept nogil:
    """Count a step that replaced point j, and remember whether it led to the best state."""
    s.log_q[j] = log_q
    if not s.is_stale[j]:
        s.is_stale[j] = 1
        s.stale[s.n_stale] = j
        s.n_stale += 1
    s.accepted += 1
    s.value += gain
    if s.value > s.best_value:
        s.best_value = s.value
        s.at_best = 1


cdef inline void walk_of(chain_state *s, const chain_block *b, ptrdiff_t fours,
                         bint quadratic) noexcept nogil:
    """One block of proposals in their order; rows have 4 `fours` entries."""
    cdef ptrdiff_t i, j, sets = s.sets, width = 4 * fours
    cdef const int16_t *x
    cdef const uint16_t *new
    cdef uint16_t *old
    cdef int16_t *y
    cdef double gain
    for i in range(b.n):
        if i + AHEAD < b.n:
            j = b.index[i + AHEAD]
            fetch(s.points + j * width)
            fetch(s.ids + j * sets)
            fetch(s.log_q + j)
        if b.log_u[i] == INFINITY:
            continue
        j = b.index[i]
        x, new = b.points + i * width, b.ids + i * sets
        y, old = s.points + j * width, s.ids + j * sets
        gain = gain_of(s.rows, s.weight, sets, fours, quadratic, y, x, old, new)
        if not b.log_u[i] < b.beta * gain + b.tilt * (s.log_q[j] - b.log_q[i]):
            continue
        if s.at_best and gain < 0.0:
            save_best(s)
            s.at_best = 0
        replace(s.rows, sets, fours, y, x, old, new)
        accept(s, j, b.log_q[i], gain)


cdef inline void walk_by(chain_state *s, const chain_block *b, bint quadratic) noexcept nogil:
    """Few columns: a loop of known length is unrolled."""
    if s.width == 4:
        walk_of(s, b, 1, quadratic)
    elif s.width == 8:
        walk_of(s, b, 2, quadratic)
    elif s.width == 12:
        walk_of(s, b, 3, quadratic)
    else:
        walk_of(s, b, s.width // 4, quadratic)


cdef inline void walk_block(chain_state *s, const chain_block *b, bint quadratic) noexcept nogil:
    """One block of proposals, by a misfit that each of the loops knows."""
    if quadratic:
        walk_by(s, b, True)
    else:
        walk_by(s, b, False)
