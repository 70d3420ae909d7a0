"""Cells that are Python objects, looked up one by one."""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t


def look_up(
    list cells,           # IN   objects of any kind
    ptrdiff_t first,      # IN   where to begin
    dict seen,            # IN   codes of values of the exact types below
    int64_t unseen,       # IN   stands for what was not found
    int64_t[::1] out,     # OUT  the codes of cells first, first + 1, ...
):
    """The code of each cell that was seen before.

    Of other types than Python's own no method is called: whatever an object says of its hash, it
    is not found.
    """
    cdef ptrdiff_t i
    cdef PyObject *found
    cdef object cell, kind
    for i in range(min(out.shape[0], len(cells) - first)):
        cell = cells[first + i]
        kind = type(cell)
        out[i] = unseen
        if kind is str or kind is int or kind is float or cell is None or kind is bool \
                or kind is bytes:
            found = PyDict_GetItem(seen, cell)
            if found != NULL:
                out[i] = <object>found
