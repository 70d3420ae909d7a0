# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Two kernels of one's own on privfit's packed records."""

from cython.parallel cimport prange, threadid
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

from privfit._kernels.lanes cimport (
    LANES, lanes, lanes_add, lanes_all, lanes_gaps, lanes_load, lanes_store,
)
from privfit._kernels.records cimport SparseRows, sparse_rows


cdef inline bint has(const sparse_rows *rows, ptrdiff_t r, int32_t column) noexcept nogil:
    """Whether this column of a record is exactly 1."""
    cdef int64_t i
    for i in range(rows.one_start[r], rows.one_start[r + 1]):
        if rows.one_column[i] == column:
            return True
    return False


def count_both(
    SparseRows records,             # IN   packed one-hot records
    ptrdiff_t n,                    # IN   how many
    const int32_t[:, ::1] pairs,    # IN   (m, 2) candidates: two columns
    int64_t[:, ::1] out,            # OUT  (threads, m), zeros at first
):
    """Add the number of records that have both columns, for each candidate.

    A record adds 0 or 1: with one record more or less, no count changes by more than 1.
    """
    cdef ptrdiff_t r, c
    cdef int me
    for r in prange(n, nogil=True, schedule="static", num_threads=out.shape[0]):
        me = threadid()
        for c in range(pairs.shape[0]):
            out[me, c] += has(&records.view, r, pairs[c, 0]) & has(&records.view, r, pairs[c, 1])


def l1_sum(
    const int32_t[:, :, ::1] panels,  # IN   (n_panels, pairs, 16) int16 pairs
    const int32_t[::1] center,        # IN   (pairs,) int16 pairs
    int32_t[::1] z,                   # OUT  (n_panels * 16,) l1 distances in grid units
):
    """The l1 distance of each record to a centre, eight records to a lane."""
    cdef ptrdiff_t p, j, half
    cdef lanes total
    with nogil:
        for p in range(panels.shape[0]):
            for half in range(2):
                total = lanes_all(0)
                for j in range(panels.shape[1]):
                    total = lanes_add(total, lanes_gaps(lanes_load(&panels[p, j, half * LANES]),
                                                        lanes_all(center[j])))
                lanes_store(&z[p * 16 + half * LANES], total)
