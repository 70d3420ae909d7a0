"""Smooth losses of linear models: sums of slopes and of curvatures times records.

Every function is one pass over tiles (see `linear`) on memory it is handed. Margins are exact
integers, and sums are those of whole numbers, one for each record and column, so that nothing
depends on tiles, threads and layouts. A thread has `sums` of its own, and moves them to its
`halves` before they could overflow.

Weights have one or more *limbs*, each finer than the one before: a margin is the sum of theirs.
Slopes are pulled as they are, each product with a column rounded to a whole number; or in two
*parts*, both of them whole numbers, so that no product is rounded.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stddef cimport ptrdiff_t

from privfit._kernels.grid cimport PANEL
from privfit._kernels.records cimport CodeRows, SparseRows, code_rows, sparse_rows
from privfit._kernels.slopes cimport (
    code_margin_long, code_pull, hinge_slopes, logistic_at, logistic_slopes, margin_long, pull,
    sparse_margin_long, sparse_pull, split, table_slopes, whole_sum,
)

cdef enum:
    HALF = 32     # bits of the lower half of a sum
    MOST = 65536  # records whose sums fit in 64 bits

HALF_BITS = HALF
MOST_SUMMED = MOST


cdef class Packed:
    """Packed records of any layout; holds the arrays that the kernels read."""

    cdef const int32_t *panels      # (n_panels, pairs, PANEL) int16 pairs, or NULL
    cdef const sparse_rows *rows    # or NULL
    cdef const code_rows *codes     # or NULL
    cdef object _arrays
    cdef readonly ptrdiff_t columns  # of the layout, and the intercept's
    cdef int a

    @staticmethod
    def dense(const int32_t[:, :, ::1] panels, int a):
        """Records in panels; columns are padded to pairs."""
        cdef Packed self = Packed()
        self._arrays, self.a, self.columns = panels, a, 2 * panels.shape[1] + 1
        self.panels, self.rows, self.codes = &panels[0, 0, 0], NULL, NULL
        return self

    @staticmethod
    def sparse(SparseRows records, ptrdiff_t d, int a):
        """Records as lists of ones and values."""
        cdef Packed self = Packed()
        self._arrays, self.a, self.columns = records, a, d + 1
        self.panels, self.rows, self.codes = NULL, &records.view, NULL
        return self

    @staticmethod
    def coded(CodeRows records, ptrdiff_t bins, int a):
        """Records as rows of codes; columns are bins, and then numbers."""
        cdef Packed self = Packed()
        self._arrays, self.a, self.columns = records, a, bins + records.view.numbers + 1
        self.panels, self.rows, self.codes = NULL, NULL, &records.view
        return self

    cdef void margins(self, ptrdiff_t first, ptrdiff_t count, const int64_t *w,
                      int64_t *z) noexcept nogil:
        """z[r] = <x~, w> of `count` records; whole panels of them."""
        cdef ptrdiff_t d = self.columns - 1
        if self.codes != NULL:
            code_margin_long(self.codes, first, count, w, d, self.a, z)
        elif self.rows != NULL:
            sparse_margin_long(self.rows, first, first + count, w, d, self.a, z)
        else:
            margin_long(self.panels + first * (d // 2), (count + PANEL - 1) // PANEL, d // 2, w,
                        w[d], z)

    cdef void add_pulled(self, ptrdiff_t first, ptrdiff_t count, const double *residual,
                         int64_t *out) noexcept nogil:
        """out[j] += sum of rounded residual x_j; residuals beyond `count` are 0."""
        cdef ptrdiff_t d = self.columns - 1
        if self.codes != NULL:
            code_pull(self.codes, first, count, d, self.a, residual, out)
        elif self.rows != NULL:
            sparse_pull(self.rows, first, first + count, d, self.a, residual, out)
        else:
            pull(self.panels + first * (d // 2), (count + PANEL - 1) // PANEL, d // 2, residual,
                 out)
            out[d] += whole_sum(residual, count, <double>(1 << self.a))


cdef void tile_margins(
    Packed records, ptrdiff_t first, ptrdiff_t count, const int64_t[:, ::1] w,
    const double[::1] units, int64_t *z, double *m,
) noexcept nogil:
    """m[r]: margins in float64, the finest limb first."""
    cdef ptrdiff_t i, limb, last = w.shape[0] - 1
    records.margins(first, count, &w[last, 0], z)
    for i in range(count):
        m[i] = z[i] * units[last]
    for limb in range(last - 1, -1, -1):
        records.margins(first, count, &w[limb, 0], z)
        for i in range(count):
            m[i] = m[i] + z[i] * units[limb]


cdef void tile_pull(Packed records, ptrdiff_t first, ptrdiff_t count, double *residual,
                    int64_t *sums) noexcept nogil:
    """Add what the residuals pull to sums (columns,)."""
    cdef ptrdiff_t i
    for i in range(count, (count + PANEL - 1) // PANEL * PANEL):
        residual[i] = 0
    records.add_pulled(first, count, residual, sums)


cdef void make_room(int64_t *summed, ptrdiff_t count, ptrdiff_t size, int64_t *sums,
                    int64_t *halves) noexcept nogil:
    """Move sums (size,) to halves (2, size) where `count` more records might overflow."""
    cdef ptrdiff_t i
    summed[0] += count
    if summed[0] <= MOST:
        return
    summed[0] = count
    for i in range(size):
        halves[i] += sums[i] >> HALF
        halves[size + i] += sums[i] & ((<int64_t>1 << HALF) - 1)
        sums[i] = 0


def margins(
    Packed records,                    # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[::1] w,              # IN   (columns,)
    int64_t[::1] z,                    # OUT  (packed rows,)
    int n_threads,
):
    """The exact margins of one candidate."""
    cdef ptrdiff_t t, first
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        first = tile_rows[t, 0]
        records.margins(first, tile_rows[t, 1], &w[0], &z[first])


def slopes(
    Packed records,                    # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[:, ::1] w,           # IN   (limbs, columns)
    const double[::1] units,           # IN   (limbs,) of a margin
    double width,                      # IN   of the rounding of a hinge; 0 for the logistic loss
    const double[:, ::1] table,        # IN   (cells, 3) of another loss; no cells for these two
    double per_unit,                   # IN   cells to a margin of 1
    double scale,                      # IN   of a slope
    double[::1] bend,                  # OUT  (packed rows,) curvatures, relative to the largest
    int64_t[:, ::1] z,                 # WORK (threads, rows of the largest tile, padded)
    double[:, :, ::1] work,            # WORK (threads, 3, the same)
    int64_t[::1] summed,               # IN/OUT (threads,) records since sums were moved
    int64_t[:, :, ::1] sums,           # IN/OUT (threads, parts, columns)
    int64_t[:, :, :, ::1] halves,      # OUT  (threads, 2, parts, columns)
):
    """Add sums of y x_j times minus the slope, and the intercept's, in one part or two."""
    cdef ptrdiff_t t, i, first, count, columns = records.columns, parts = sums.shape[1]
    cdef int n_threads = work.shape[0], me
    cdef double sign
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        count = tile_rows[t, 1]
        sign = 1.0 + 2 * tile_rows[t, 2]
        make_room(&summed[me], count, parts * columns, &sums[me, 0, 0], &halves[me, 0, 0, 0])
        tile_margins(records, first, count, w, units, &z[me, 0], &work[me, 0, 0])
        if table.shape[0] > 0:
            table_slopes(&work[me, 0, 0], count, sign, &table[0, 0], table.shape[0], per_unit,
                         &work[me, 1, 0], &bend[first])
        elif width > 0:
            hinge_slopes(&work[me, 0, 0], count, sign, width, &work[me, 1, 0], &bend[first])
        else:
            logistic_slopes(&work[me, 0, 0], count, sign, &work[me, 1, 0], &bend[first])
        for i in range(count):
            work[me, 1, i] = work[me, 1, i] * scale
        if parts == 2:
            split(&work[me, 1, 0], count, scale, &work[me, 2, 0])
            tile_pull(records, first, count, &work[me, 2, 0], &sums[me, 1, 0])
        tile_pull(records, first, count, &work[me, 1, 0], &sums[me, 0, 0])


def bends(
    Packed records,                    # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[:, ::1] v,           # IN   (1, columns)
    const double[::1] units,           # IN   (1,) of a margin of v, divided by 2^a
    const double[::1] bend,            # IN   (packed rows,) curvatures
    int64_t[:, ::1] z,                 # WORK (threads, rows of the largest tile, padded)
    double[:, :, ::1] work,            # WORK (threads, 3, the same)
    int64_t[::1] summed,               # IN/OUT (threads,) records since sums were moved
    int64_t[:, :, ::1] sums,           # IN/OUT (threads, 1, columns)
    int64_t[:, :, :, ::1] halves,      # OUT  (threads, 2, 1, columns)
):
    """Add sums of x_j times the curvature times the margin of v."""
    cdef ptrdiff_t t, i, first, count, columns = records.columns
    cdef int n_threads = work.shape[0], me
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        count = tile_rows[t, 1]
        make_room(&summed[me], count, columns, &sums[me, 0, 0], &halves[me, 0, 0, 0])
        tile_margins(records, first, count, v, units, &z[me, 0], &work[me, 0, 0])
        for i in range(count):
            work[me, 0, i] = work[me, 0, i] * bend[first + i]
        tile_pull(records, first, count, &work[me, 0, 0], &sums[me, 0, 0])


# -------------------------------------------------------------------------- one record at a time


def permuted_descent(
    const int64_t[::1] start,          # IN   (n + 1,)
    const int32_t[::1] column,         # IN   (entries,)
    const double[::1] value,           # IN   (entries,) of coded records, less the offset
    const double[::1] offset,          # IN   (k,) that all coded records share
    const double[::1] sign,            # IN   (n,) +1 or -1
    const int64_t[::1] order,          # IN   (slots,) the record in each slot, or -1
    bint hinge,                        # IN   whether slopes are Huber's hinge's
    int64_t batch,                     # IN   slots to a step
    int64_t passes,                    # IN
    double step,                       # IN   the largest step
    double ridge,                      # IN   gamma of strong convexity, or 0: steps are constant
    double radius,                     # IN   of the ball that weights are kept in, or 0
    double[::1] gradient,              # WORK (k,)
    double[::1] w,                     # IN/OUT (k,)
):
    """Passes of stochastic gradient descent over slots in a fixed order."""
    cdef int64_t i, slot, last, r, e, t = 0
    cdef int64_t slots = order.shape[0], batches = (order.shape[0] + batch - 1) // batch
    cdef ptrdiff_t j, k = w.shape[0]
    cdef double m, slope, eta, norm, total, shared
    with nogil:
        for i in range(passes * batches):
            t = i + 1
            last = min((i % batches + 1) * batch, slots)
            gradient[:] = 0
            total = 0
            shared = 0
            for j in range(k):
                shared += offset[j] * w[j]
            for slot in range(i % batches * batch, last):
                r = order[slot]
                if r < 0:
                    continue
                m = shared
                for e in range(start[r], start[r + 1]):
                    m += value[e] * w[column[e]]
                m *= sign[r]
                if hinge:
                    slope = min(max(1 - m, 0.0), 1.0)
                else:
                    slope = logistic_at(m).slope
                slope *= sign[r]
                total += slope
                for e in range(start[r], start[r + 1]):
                    gradient[column[e]] += slope * value[e]
            eta = min(step, 1 / (ridge * t)) if ridge > 0 else step
            norm = 0
            for j in range(k):
                w[j] = (1 - eta * ridge) * w[j] + eta / batch * (gradient[j] + total * offset[j])
                norm += w[j] * w[j]
            if radius > 0 and norm > radius * radius:
                norm = radius / sqrt(norm)
                for j in range(k):
                    w[j] *= norm
