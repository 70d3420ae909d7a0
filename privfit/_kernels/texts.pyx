"""Texts that are looked up in a table; see texts.pxd.

A cell is one int64, as of cells.pyx: where its text begins, its length, and whether quotes are to
be taken out of it, ``begin << 32 | length << 1 | odd``; -1 stands for a missing cell.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from privfit._kernels.texts cimport UNSEEN, Key, Table, entry_of, key_of, slot_of, table_of

ctypedef fused offset_t:
    int32_t
    int64_t


def add_texts(
    const int64_t[::1] cells,     # IN   (m,) texts, none missing
    const uint8_t[::1] kept,      # IN   their bytes, and those of the texts before
    const int64_t[::1] entries,   # IN   (m,)
    int64_t[:, ::1] slots,        # IN, OUT  (size, 4); size is a power of two
):
    """Put texts into the table, except for those whose neighbourhood is full."""
    cdef Table table = table_of(slots, kept)
    cdef const uint8_t *at
    cdef ptrdiff_t i, slot, length
    cdef bint known = False
    cdef Key key
    for i in range(cells.shape[0]):
        at = table.kept + (cells[i] >> 32)
        length = <uint32_t>cells[i] >> 1
        key = key_of(at, length)
        slot = slot_of(&table, at, length, key, &known)
        if slot >= 0:
            slots[slot, 0] = <int64_t>key.first
            slots[slot, 1] = <int64_t>key.last
            slots[slot, 2] = cells[i]
            slots[slot, 3] = entries[i]


def find_texts(
    const uint8_t[::1] text,       # IN
    const int64_t[::1] cells,      # IN   (n,)
    const int64_t[:, ::1] slots,   # IN
    const uint8_t[::1] kept,       # IN
    int64_t absent,                # IN   the entry of a missing cell
    int64_t[::1] out,              # OUT  (n,) entries; -2 where the table does not know a text
):
    """How many texts the table does not know."""
    cdef Table table = table_of(slots, kept)
    cdef const uint8_t *bytes_of = &text[0] if text.shape[0] else NULL
    cdef ptrdiff_t i, unseen = 0
    cdef int64_t cell
    with nogil:
        for i in range(cells.shape[0]):
            cell = cells[i]
            if cell < 0:
                out[i] = absent
            elif cell & 1:
                out[i] = UNSEEN
            else:
                out[i] = entry_of(&table, bytes_of + (cell >> 32), <uint32_t>cell >> 1)
            unseen += out[i] == UNSEEN
    return unseen


def cells_between(
    const offset_t[::1] offsets,   # IN   (n + 1,) where texts begin and end
    const uint8_t[::1] valid,      # IN   bits, the first of a byte last; none if all are there
    ptrdiff_t first,               # IN   the bit of the first cell
    int64_t[::1] out,              # OUT  (n,) cells that begin where the first text does
):
    """The cells of an Arrow array of texts; offsets span less than 2^31 bytes."""
    cdef ptrdiff_t i, bit
    cdef bint all_there = valid.shape[0] == 0
    with nogil:
        for i in range(out.shape[0]):
            bit = first + i
            if all_there or valid[bit >> 3] >> (bit & 7) & 1:
                out[i] = <int64_t>(offsets[i] - offsets[0]) << 32 \
                    | <int64_t>(offsets[i + 1] - offsets[i]) << 1
            else:
                out[i] = -1


def cells_of_points(
    const uint32_t[:, ::1] points,  # IN   (n, width) Unicode, with zeros at the end
    uint8_t[:, ::1] text,           # OUT  (n, width)
    int64_t[::1] out,               # OUT  (n,) cells of `text`, odd where a text is not ASCII
):
    """The cells of a numpy array of texts."""
    cdef ptrdiff_t i, j, length, width = points.shape[1]
    cdef uint32_t every
    with nogil:
        for i in range(points.shape[0]):
            length = width
            while length > 0 and points[i, length - 1] == 0:
                length -= 1
            every = 0
            for j in range(length):
                every |= points[i, j]
                text[i, j] = <uint8_t>points[i, j]
            out[i] = <int64_t>(i * width) << 32 | <int64_t>length << 1 | (every >= 128)
