"""How many records of each class have each feature: one pass over lists of ones.

Each thread takes a run of records and owns a table of its own. A count is at most the number of
records, which is below 2^31, so that 32 bits hold it and the tables stay in the cache.
"""

from cython.parallel cimport prange
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef void add_rows(const int64_t *start, const int32_t *column, const int32_t *label,
                   ptrdiff_t first, ptrdiff_t last, ptrdiff_t features,
                   int32_t *out) noexcept nogil:
    cdef ptrdiff_t row, i, end
    cdef uint64_t two
    cdef int32_t *mine
    for row in range(first, last):
        mine = out + features * label[row]
        i = start[row]
        end = start[row + 1]
        # Two features to a load: loads, not additions, bound the loop (0.69 to 0.51 ns a feature).
        while i + 2 <= end:
            memcpy(&two, column + i, sizeof(two))
            mine[<uint32_t>two] += 1
            mine[two >> 32] += 1
            i += 2
        if i < end:
            mine[column[i]] += 1


def count_ones(
    const int64_t[::1] start,    # IN   (n + 1,) where the ones of each record begin
    const int32_t[::1] column,   # IN   (ones,) features, each at most once a record
    const int32_t[::1] label,    # IN   (n,) classes, from 0 on
    int32_t[:, :, ::1] out,      # OUT  (threads, classes, features), zeros at first
):
    """out[t, c, j] = how many of a thread's records have feature j and class c."""
    cdef ptrdiff_t t, n = label.shape[0], n_threads = out.shape[0]
    if n == 0 or column.shape[0] == 0:
        return
    for t in prange(n_threads, nogil=True, schedule="static", chunksize=1,
                    num_threads=<int>n_threads):
        add_rows(&start[0], &column[0], &label[0], n * t // n_threads,
                 n * (t + 1) // n_threads, out.shape[2], &out[t, 0, 0])
