from libc.stdint cimport uint8_t, uint64_t

cdef extern from "fixed.h" nogil:
    enum:
        GAMMA_BITS
        EXP_ERROR

    ctypedef struct exp_tables:
        uint64_t whole[64]
        uint64_t byte[3][256]

    uint64_t mul_high(uint64_t a, uint64_t b)
    uint64_t exp_fixed(const exp_tables *tables, uint64_t g)
    uint64_t gamma_fixed(uint64_t difference, uint64_t rate, int scale)

cdef const exp_tables *tables() noexcept nogil


cdef class BitSource:
    cdef uint64_t _words[1024]
    cdef Py_ssize_t _next
    cdef uint64_t _bytes
    cdef int _bytes_left
    cdef object _fill
    cdef long _generation

    cdef int _refill(self) except -1
    cdef bint _is_stale(self) except -1
    cdef uint64_t word(self) except? 0xFFFFFFFFFFFFFFFF
    cdef uint64_t below(self, uint64_t n) except? 0xFFFFFFFFFFFFFFFF
