from privfit._kernels.simd cimport sparse_rows


cdef class SparseRows:
    cdef sparse_rows view
    cdef tuple _arrays
