"""Cells of dense records in a box that is halved again and again: a bit for each halving.

A cell [a, b) of a column is cut at floor((a + b) / 2), and the upper half has the bit 1. Halvings
of different columns do not depend on each other, so a column's number alone decides its bits: they
are looked up, and those of all columns put together.
"""

from cython.parallel cimport prange
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t

from privfit._kernels.grid cimport PANEL


def cells(
    const int16_t[:, :, :, ::1] panels,  # IN   (n_panels, pairs, PANEL, 2)
    const int64_t[:, ::1] tile_rows,     # IN   (tiles, 3)
    const int64_t[:, ::1] columns,       # IN   (c, 4) columns that are halved: which one, its least
                                         #      and its largest number, where its bits begin
    const uint64_t[::1] bits,            # IN   the bits of all numbers of these columns
    uint64_t[::1] out,                   # OUT  (n padded,)
    int n_threads,
):
    """The cell of each record; numbers beyond the least and the largest count as these."""
    cdef ptrdiff_t t
    cdef const int64_t *column = &columns[0, 0] if columns.shape[0] else NULL
    cdef const uint64_t *table = &bits[0] if bits.shape[0] else NULL
    for t in prange(tile_rows.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        cells_of_tile(&panels[0, 0, 0, 0], panels.shape[1], tile_rows[t, 0], tile_rows[t, 1],
                      column, columns.shape[0], table, &out[0])


cdef void cells_of_tile(
    const int16_t *panels, ptrdiff_t pairs, ptrdiff_t first, ptrdiff_t rows, const int64_t *columns,
    ptrdiff_t count, const uint64_t *bits, uint64_t *out
) noexcept nogil:
    cdef ptrdiff_t done = 0, row, here, r, c, j
    cdef const int16_t *x
    cdef const uint64_t *table
    cdef int32_t low, high, v
    while done < rows:
        row = first + done
        here = min(PANEL - row % PANEL, rows - done)  # of one panel
        for r in range(here):
            out[row + r] = 0
        for c in range(count):
            j = columns[4 * c]
            low, high = <int32_t>columns[4 * c + 1], <int32_t>columns[4 * c + 2]
            table = bits + columns[4 * c + 3]
            x = panels + ((row // PANEL * pairs + j // 2) * PANEL + row % PANEL) * 2 + j % 2
            for r in range(here):
                v = x[2 * r]
                v = low if v < low else v
                v = high if v > high else v
                out[row + r] |= table[v - low]
        done += here
