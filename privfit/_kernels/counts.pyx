"""Records that list their ones: how many of each class have each feature, and samples of ones.

Each thread takes a run of records and, to count, owns a table. A count is at most the number of
records, which is below 2^31, so that 32 bits hold it and the tables stay in the cache.
"""

from cython.parallel cimport prange, threadid
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef void add_rows(const int64_t *start, const int32_t *column, const int32_t *label,
                   ptrdiff_t first, ptrdiff_t last, ptrdiff_t width,
                   int32_t *out) noexcept nogil:
    cdef ptrdiff_t row, i, end
    cdef uint64_t two, more
    cdef int32_t *mine
    for row in range(first, last):
        mine = out + width * label[row]
        mine[width - 1] += 1
        i = start[row]
        end = start[row + 1]
        # Two features to a load: loads, not additions, bound the loop (0.69 to 0.47 ns a feature).
        while i + 4 <= end:
            memcpy(&two, column + i, sizeof(two))
            memcpy(&more, column + i + 2, sizeof(more))
            mine[<uint32_t>two] += 1
            mine[two >> 32] += 1
            mine[<uint32_t>more] += 1
            mine[more >> 32] += 1
            i += 4
        while i < end:
            mine[column[i]] += 1
            i += 1


def count_ones(
    const int64_t[::1] start,    # IN   (n + 1,) where the ones of each record begin
    const int32_t[::1] column,   # IN   (ones,) features, each at most once a record
    const int32_t[::1] label,    # IN   (n,) classes, from 0 on
    int32_t[:, :, ::1] work,     # WORK (threads, classes, features + 1), zeros at first
    int64_t[:, ::1] out,         # OUT  (classes, features + 1)
):
    """out[c, j] = how many records of class c have feature j; the last column counts them all."""
    cdef ptrdiff_t t, c, j, n = label.shape[0], n_threads = work.shape[0]
    cdef const int32_t *columns = &column[0] if column.shape[0] else NULL
    if n > 0:
        for t in prange(n_threads, nogil=True, schedule="static", chunksize=1,
                        num_threads=<int>n_threads):
            add_rows(&start[0], columns, &label[0], n * t // n_threads, n * (t + 1) // n_threads,
                     work.shape[2], &work[t, 0, 0])
    for c in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[c, j] = work[0, c, j]
        for t in range(1, n_threads):
            for j in range(out.shape[1]):
                out[c, j] += work[t, c, j]


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    """SplitMix64's finalizer (Steele, Lea, Flood 2014): one to one, each bit moves every other."""
    word += 0x9E3779B97F4A7C15U
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9U
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBU
    return word ^ (word >> 31)


cdef uint64_t smallest(uint64_t *words, ptrdiff_t n, ptrdiff_t k) noexcept nogil:
    """The k-th smallest of n words, from 0 on, by Hoare's selection; they change places."""
    cdef ptrdiff_t low = 0, high = n - 1, i, j
    cdef uint64_t pivot
    while low < high:
        pivot = words[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while words[i] < pivot:
                i += 1
            while words[j] > pivot:
                j -= 1
            if i <= j:
                words[i], words[j] = words[j], words[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return words[k]


cdef void sample_row(const int32_t *column, ptrdiff_t length, ptrdiff_t most, uint64_t key,
                     uint64_t *coins, uint64_t *sorted_coins, int32_t *out) noexcept nogil:
    cdef ptrdiff_t i, kept = 0
    cdef uint64_t own = 0, last
    for i in range(length):
        coins[i] = mixed(<uint64_t>column[i] ^ key)
        own += coins[i]  # depends on which features, not on their order
    own = mixed(own)
    for i in range(length):
        coins[i] = mixed(coins[i] ^ own)
        sorted_coins[i] = coins[i]
    last = smallest(sorted_coins, length, most - 1)
    for i in range(length):
        if coins[i] <= last:  # `most` times: different features have different coins
            out[kept] = column[i]
            kept += 1


def sample_ones(
    const int64_t[::1] start,      # IN   (n + 1,) where the ones of each record begin
    const int32_t[::1] column,     # IN   (ones,) features, each at most once a record
    ptrdiff_t most,                # IN   ones that a record keeps, at least 1
    uint64_t key,                  # IN   of the hash
    const int64_t[::1] out_start,  # IN   (n + 1,) where the ones that are kept begin
    uint64_t[:, :, ::1] work,      # WORK (threads, 2, ones of the longest record)
    int32_t[::1] out,              # OUT  (ones that are kept,)
):
    """Of each record the `most` ones whose hash of key, record and feature is least."""
    cdef ptrdiff_t row, i, length, n = start.shape[0] - 1
    cdef int n_threads = work.shape[0], me
    cdef uint64_t hashed_key = mixed(key)
    for row in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        length = start[row + 1] - start[row]
        if length > most:
            sample_row(&column[start[row]], length, most, hashed_key, &work[me, 0, 0],
                       &work[me, 1, 0], &out[out_start[row]])
        else:
            for i in range(length):
                out[out_start[row] + i] = column[start[row] + i]
