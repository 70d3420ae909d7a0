"""Cells that are Python objects, looked up one by one.

A cell that is the same object as one before is found by its address: this is true of most texts
that a table repeats. The interpreter's lock is held and no code of Python runs while a call lasts,
so that an address means one object.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from privfit._kernels.lanes cimport fetch
from privfit._kernels.texts cimport UNSEEN, Table, entry_of, table_of

cdef extern from "Python.h":
    bint PyUnicode_CheckExact(PyObject *cell)
    bint PyUnicode_IS_COMPACT_ASCII(PyObject *text)
    ptrdiff_t PyUnicode_GET_LENGTH(PyObject *text)
    const uint8_t *PyUnicode_1BYTE_DATA(PyObject *text)
    PyObject **PySequence_Fast_ITEMS(PyObject *cells)
    ptrdiff_t PySequence_Fast_GET_SIZE(PyObject *cells)

cdef enum:
    PLACES = 512  # of addresses that are remembered
    AHEAD = 12    # cells whose memory is asked for before they are looked at

cdef struct Seen:
    PyObject *cell
    int64_t entry


cdef inline int64_t slow_entry(PyObject *cell, dict seen, const Table *table):
    """Of other types than Python's own no method is called: whatever an object says of its hash,
    it is not found."""
    cdef PyObject *found
    cdef object kind
    if PyUnicode_CheckExact(cell) and PyUnicode_IS_COMPACT_ASCII(cell):
        return entry_of(table, PyUnicode_1BYTE_DATA(cell), PyUnicode_GET_LENGTH(cell))
    kind = type(<object>cell)
    if kind is str or kind is int or kind is float or <object>cell is None or kind is bool \
            or kind is bytes:
        found = PyDict_GetItem(seen, <object>cell)
        if found != NULL:
            return <object>found
    return UNSEEN


cdef ptrdiff_t find_all(const char *at, ptrdiff_t step, ptrdiff_t n, dict seen, const Table *table,
                        int64_t *out):
    cdef Seen[PLACES] recent
    cdef Seen *place
    cdef PyObject *cell
    cdef ptrdiff_t i, unseen = 0
    memset(recent, 0, sizeof(recent))
    for i in range(n):
        if i + AHEAD < n:  # texts of a table lie far apart; these two lines hold a short one
            cell = (<PyObject **>(at + (i + AHEAD) * step))[0]
            fetch(cell)
            fetch(<const char *>cell + 56)
        cell = (<PyObject **>(at + i * step))[0]
        if cell == NULL:  # which numpy takes for None
            cell = <PyObject *>None
        place = &recent[((<uint64_t>cell >> 4) * 0x9E3779B97F4A7C15ULL) >> 55]
        if place.cell != cell:
            place.cell = cell
            place.entry = slow_entry(cell, seen, table)
        out[i] = place.entry
        unseen += place.entry == UNSEEN
    return unseen


def find_objects(
    object cells,                 # IN   objects of any kind: a list, a tuple or an array of objects
    ptrdiff_t first,              # IN   where to begin
    dict seen,                    # IN   entries of values of the exact types above
    const int64_t[:, ::1] slots,  # IN   entries of ASCII texts; see texts.pxd
    const uint8_t[::1] kept,      # IN
    int64_t[::1] out,             # OUT  entries of cells first, first + 1, ...; -2 if not found
):
    """How many cells are not found."""
    cdef Table table = table_of(slots, kept)
    cdef PyObject *listed = <PyObject *>cells
    cdef Py_buffer view
    cdef ptrdiff_t n = out.shape[0]
    if n == 0:
        return 0
    if type(cells) is list or type(cells) is tuple:
        if PySequence_Fast_GET_SIZE(listed) - first < n:  # it has become shorter
            out[:] = UNSEEN
            return n
        return find_all(<const char *>(PySequence_Fast_ITEMS(listed) + first), sizeof(PyObject *),
                        n, seen, &table, &out[0])
    PyObject_GetBuffer(cells, &view, PyBUF_STRIDED_RO)
    try:
        return find_all(<const char *>view.buf + first * view.strides[0], view.strides[0],
                        n, seen, &table, &out[0])
    finally:
        PyBuffer_Release(&view)
