"""Packed records and losses as kernels see them; other packages may cimport this."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t

from privfit._kernels.grid cimport loss_args

# Packed sparse records: the columns that are exactly 1, and the (column, value) pairs.
ctypedef struct sparse_rows:
    const int64_t *one_start
    const int32_t *one_column
    const int64_t *value_start
    const int32_t *value_column
    const int16_t *value


cdef class SparseRows:
    cdef sparse_rows view
    cdef tuple _arrays


# Packed records of a schema: rows (rows, joints) of codes, and columns (numbers, rows).
ctypedef struct code_rows:
    const uint16_t *code
    const int16_t *number
    ptrdiff_t rows, joints, numbers


cdef class CodeRows:
    cdef code_rows view
    cdef tuple _arrays


cdef class Loss:
    cdef loss_args of_class[2]  # class 0, class 1
    cdef int kind
    cdef loss_args of(self, int64_t flip) noexcept nogil
