"""Smooth losses of linear models: margins, slopes and curvatures, and sums of rounded products.

Every function is one step on memory it is handed, for a *chunk* of records: tiles (see `linear`)
whose first packed row is `base`. Arrays with an entry for each record begin there. Sums are those of
whole numbers, one for each record and column, so they do not depend on tiles and threads.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stddef cimport ptrdiff_t

from privfit._kernels.linear cimport SparseRows
from privfit._kernels.simd cimport HINGE, LOGISTIC, PANEL, tile_table, tiles


def dense_margins(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[::1] w,              # IN   (2 * pairs,)
    int64_t start,                     # IN   the intercept
    int64_t[::1] z,                    # OUT  (rows of the chunk, padded)
    int n_threads,
):
    """The margins of one candidate."""
    cdef ptrdiff_t t, first, base = tile_rows[0, 0]
    cdef const tile_table *table = tiles()
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        first = tile_rows[t, 0]
        table.margin_long(&panels[first // PANEL, 0, 0], (tile_rows[t, 1] + PANEL - 1) // PANEL,
                          panels.shape[1], &w[0], start, &z[first - base])


def sparse_margins(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const int64_t[::1] w,              # IN   (d + 1,), the intercept last
    int a,                             # IN   bits of records
    int64_t[::1] z,                    # OUT  (rows of the chunk,)
    int n_threads,
):
    """The margins of one candidate."""
    cdef ptrdiff_t t, first, base = tile_rows[0, 0]
    cdef const tile_table *table = tiles()
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        first = tile_rows[t, 0]
        table.sparse_margin_long(&records.view, first, first + tile_rows[t, 1], &w[0],
                                 w.shape[0] - 1, a, &z[first - base])


def slopes(
    const double[::1] z,               # IN   (rows of the chunk,) margins, without the class
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    double width,                      # IN   of the rounding of a hinge; 0 for the logistic loss
    double[::1] slope,                 # OUT  (rows,) minus the slope, with the sign of the class
    double[::1] bend,                  # OUT  (rows,) curvatures, relative to the largest
    double[::1] loss,                  # OUT  (rows,)
    int n_threads,
):
    """What a loss and its derivatives are at each margin."""
    cdef ptrdiff_t t, first, base = tile_rows[0, 0]
    cdef int kind = HINGE if width > 0 else LOGISTIC
    cdef const tile_table *table = tiles()
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        first = tile_rows[t, 0] - base
        table.smooth[kind](&z[first], tile_rows[t, 1], 1.0 + 2 * tile_rows[t, 2], width,
                           &slope[first], &bend[first], &loss[first])


def dense_pull(
    const int32_t[:, :, ::1] panels,   # IN   (n_panels, pairs, PANEL) int16 pairs
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[::1] residual,        # IN   (rows of the chunk, padded by zeros), times 2^-a
    int a,                             # IN   bits of records
    int64_t[:, ::1] out,               # OUT  (threads, 2 * pairs + 1): the intercept last
):
    """Add sum of residual x_j, each product rounded to a whole number."""
    cdef ptrdiff_t t, first, base = tile_rows[0, 0], last = out.shape[1] - 1
    cdef int n_threads = out.shape[0], me
    cdef double one = 1 << a
    cdef const tile_table *table = tiles()
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        table.pull(&panels[first // PANEL, 0, 0], (tile_rows[t, 1] + PANEL - 1) // PANEL,
                   panels.shape[1], &residual[first - base], &out[me, 0])
        out[me, last] += table.whole_sum(&residual[first - base], tile_rows[t, 1], one)


def sparse_pull(
    SparseRows records,                # IN
    const int64_t[:, ::1] tile_rows,   # IN   (tiles, 3)
    const double[::1] residual,        # IN   (rows of the chunk,), times 2^-a
    int a,                             # IN   bits of records
    int64_t[:, ::1] out,               # OUT  (threads, d + 1): the intercept last
):
    """Add sum of residual x_j, each product rounded to a whole number."""
    cdef ptrdiff_t t, first, base = tile_rows[0, 0], d = out.shape[1] - 1
    cdef int n_threads = out.shape[0], me
    cdef const tile_table *table = tiles()
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = tile_rows[t, 0]
        table.sparse_pull(&records.view, first, first + tile_rows[t, 1], d, a,
                          &residual[first - base], &out[me, 0])


def whole_sum(const double[::1] values, double unit):
    """The sum of values times a power of two, each rounded to a whole number."""
    return tiles().whole_sum(&values[0], values.shape[0], unit)
