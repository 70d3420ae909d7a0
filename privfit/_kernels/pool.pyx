"""A chain over data sets whose records come from a pool of public points.

The state is n members of the pool, one for each synthetic record; every point of the pool was
looked at beforehand: in each part of what was released it belongs to one row, and in the first
parts it adds a vector to the sums of that row. A step draws a record j and a member x, and puts x
in the place of record j, or leaves the state alone: it is accepted if ln u < beta gain, where gain
is the change of the log likelihood of everything released.

Detailed balance. j and x are drawn uniformly and do not depend on the state, so the flow from D to
D' is pi(D) min(1, (L' / L)^beta) / (n m), which is the flow back for pi proportional to L^beta. The
prior is therefore that of records drawn from the pool, each by itself.

Rows hold released values less those of the synthetic records. Released values are whole multiples
of 2^-10 units, vectors whole numbers of units, and a record stands for a power of two of records:
sums of doubles are exact, however long the chain.
"""

from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np


cdef inline double misfit(double row, bint quadratic) noexcept nogil:
    return row * row if quadratic else fabs(row)


cdef inline double sums_gain(const double *row, const int32_t *less, const int32_t *more,
                             ptrdiff_t d, double each, bint quadratic) noexcept nogil:
    """The fall of a row's misfit when `less` leaves and `more` comes; either may be missing."""
    cdef double change = 0.0, now
    cdef ptrdiff_t f
    for f in range(d):
        now = row[f]
        if less != NULL:
            now = now + each * less[f]
        if more != NULL:
            now = now - each * more[f]
        change += misfit(row[f], quadratic) - misfit(now, quadratic)
    return change


cdef inline void add_to(double *row, const int32_t *vector, ptrdiff_t d,
                        double each) noexcept nogil:
    cdef ptrdiff_t f
    for f in range(d):
        row[f] += each * vector[f]


cdef class Parts:
    """What was released, less what the synthetic records have, and how it is weighed."""

    cdef const int32_t[:, ::1] _ids
    cdef const int32_t[:, :, ::1] _vectors
    cdef double[::1] _counts
    cdef double[:, ::1] _sums
    cdef const double[::1] _count_weights
    cdef const double[::1] _sum_weights
    cdef const uint8_t[::1] _quadratic
    cdef double _each

    def __init__(
        self,
        const int32_t[:, ::1] ids,           # IN (m, parts): the row of each point of the pool
        const int32_t[:, :, ::1] vectors,    # IN (m, s, d): what it adds to sums of the first parts
        double[::1] counts,                  # IN OUT (rows,): released less synthetic counts
        double[:, ::1] sums,                 # IN OUT (rows of these, d): the same of sums
        const double[::1] count_weights,     # IN (rows,): 1 / scale, 1 / (2 scale^2), or 0
        const double[::1] sum_weights,       # IN (s,)
        const uint8_t[::1] quadratic,        # IN (parts,): Gaussian noise
        double each,                         # IN records that a synthetic one stands for
    ):
        self._ids = ids
        self._vectors = vectors
        self._counts = counts
        self._sums = sums
        self._count_weights = count_weights
        self._sum_weights = sum_weights
        self._quadratic = quadratic
        self._each = each

    cdef double _gain(self, ptrdiff_t old, ptrdiff_t new) noexcept nogil:
        """The change of the log likelihood when a record that is `old` becomes `new`."""
        cdef ptrdiff_t t, d = self._vectors.shape[2], parts = self._ids.shape[1]
        cdef ptrdiff_t s = self._vectors.shape[1], left, right
        cdef double total = 0.0, each = self._each
        cdef bint quadratic
        for t in range(parts):
            left, right, quadratic = self._ids[old, t], self._ids[new, t], self._quadratic[t]
            if t < s and left == right:
                total += self._sum_weights[t] * sums_gain(
                    &self._sums[left, 0], &self._vectors[old, t, 0], &self._vectors[new, t, 0], d,
                    each, quadratic)
            if left == right:
                continue
            total += self._count_weights[left] * (
                misfit(self._counts[left], quadratic)
                - misfit(self._counts[left] + each, quadratic))
            total += self._count_weights[right] * (
                misfit(self._counts[right], quadratic)
                - misfit(self._counts[right] - each, quadratic))
            if t < s:
                total += self._sum_weights[t] * (
                    sums_gain(&self._sums[left, 0], &self._vectors[old, t, 0], NULL, d, each,
                              quadratic)
                    + sums_gain(&self._sums[right, 0], NULL, &self._vectors[new, t, 0], d, each,
                                quadratic))
        return total

    cdef void _add(self, ptrdiff_t point, double sign) noexcept nogil:
        """Take a point out of the rows (sign -1 of a record that comes), or give it back."""
        cdef ptrdiff_t t, row
        for t in range(self._ids.shape[1]):
            row = self._ids[point, t]
            self._counts[row] += sign * self._each
            if t < self._vectors.shape[1]:
                add_to(&self._sums[row, 0], &self._vectors[point, t, 0], self._vectors.shape[2],
                       sign * self._each)


def put_in(Parts parts, const int32_t[::1] chosen):
    """Let these points of the pool be the synthetic records."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(chosen.shape[0]):
            parts._add(chosen[i], -1.0)


def log_likelihood(Parts parts, const int32_t[::1] part_of):
    """The log likelihood of the rows, from scratch; `part_of` (rows,) says whose each is."""
    cdef ptrdiff_t row, t, f
    cdef double total = 0.0
    with nogil:
        for row in range(parts._counts.shape[0]):
            t = part_of[row]
            total += parts._count_weights[row] * misfit(parts._counts[row], parts._quadratic[t])
            if row < parts._sums.shape[0]:
                for f in range(parts._sums.shape[1]):
                    total += parts._sum_weights[t] * misfit(
                        parts._sums[row, f], parts._quadratic[t])
    return -total


def walk(
    Parts parts,                   # IN OUT
    int32_t[::1] chosen,           # IN OUT (n,): the point of the pool that each record is
    const int64_t[::1] index,      # IN  (steps,): records to replace
    const int64_t[::1] offered,    # IN  (steps,): by which points
    const double[::1] log_u,       # IN  (steps,)
    const double[::1] betas,       # IN  (steps,): inverse temperatures
    double[::1] values,            # IN OUT (2,): log likelihood now, and of the best state
    int32_t[::1] best,             # IN OUT (n,): the best state
):
    """Walk these steps; returns how many were accepted. Whoever calls keeps `best` up to date.

    `best` is written only here: when the chain leaves a state that is better than all before, and
    at the end.
    """
    cdef ptrdiff_t i, j, accepted = 0, n = chosen.shape[0]
    cdef ptrdiff_t n_stale = 0
    cdef int64_t[::1] stale = np.empty(n, dtype=np.int64)
    cdef uint8_t[::1] is_stale = np.zeros(n, dtype=np.uint8)
    cdef bint at_best = values[0] >= values[1]
    cdef double gain
    with nogil:
        for j in range(n):  # what differs from the best state of earlier walks
            if best[j] != chosen[j]:
                is_stale[j] = 1
                stale[n_stale] = j
                n_stale += 1
        for i in range(index.shape[0]):
            j = index[i]
            if chosen[j] == offered[i]:
                continue
            gain = parts._gain(chosen[j], offered[i])
            if not log_u[i] < betas[i] * gain:
                continue
            if at_best and gain < 0.0:
                n_stale = saved(best, chosen, stale, is_stale, n_stale)
                at_best = False
            parts._add(chosen[j], 1.0)
            parts._add(offered[i], -1.0)
            chosen[j] = <int32_t>offered[i]
            values[0] += gain
            accepted += 1
            if not is_stale[j]:
                is_stale[j] = 1
                stale[n_stale] = j
                n_stale += 1
            if values[0] > values[1]:
                values[1] = values[0]
                at_best = True
        if at_best:
            saved(best, chosen, stale, is_stale, n_stale)
    return accepted


cdef ptrdiff_t saved(int32_t[::1] best, int32_t[::1] chosen, int64_t[::1] stale,
                     uint8_t[::1] is_stale, ptrdiff_t n_stale) noexcept nogil:
    """Make the best state the present one; how many records differ from it then: none."""
    cdef ptrdiff_t i, j
    for i in range(n_stale):
        j = stale[i]
        best[j] = chosen[j]
        is_stale[j] = 0
    return 0


def locate(
    const double[:, ::1] points,   # IN  (m, d)
    const double[:, ::1] low,      # IN  (cells, d)
    const double[:, ::1] high,     # IN  (cells, d): a cell is [low, high)
    int32_t[::1] out,              # OUT (m,): the first cell that holds each point; -1 if none does
):
    """Which cell each point is in; the cell of the point before is tried first."""
    cdef ptrdiff_t i, c, f, d = points.shape[1], last = 0
    cdef bint inside
    with nogil:
        for i in range(points.shape[0]):
            out[i] = -1
            for c in range(-1, low.shape[0]):
                inside = True
                for f in range(d):
                    if not low[c if c >= 0 else last, f] <= points[i, f] < high[
                            c if c >= 0 else last, f]:
                        inside = False
                        break
                if inside:
                    out[i] = <int32_t>(c if c >= 0 else last)
                    last = out[i]
                    break
