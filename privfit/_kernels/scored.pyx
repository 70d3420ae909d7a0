"""Scores of one's own: clipped, rounded to whole units above the lowest, and added up.

A value v becomes rint((clip(v) - low) / unit), NaN becomes 0. The unit is a power of two, so that
its reciprocal is exact and the product has the bits of the quotient. Subtracting, scaling and
rounding are monotone: a clipped value lies in 0..top, the integer of `high`, whatever v is. This is
all that sensitivity needs, and does not depend on who computed v, or how.

Each thread adds integers to a row of its own. Compiled functions are called with copies of a record
and an output that no earlier record has left traces in, at addresses that differ by multiples of 64
bytes alone, so that no loop of theirs is cut otherwise for another record.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer
from cython.parallel cimport prange, threadid
from libc.math cimport NAN
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, intptr_t, uintptr_t

from privfit._kernels.double_bits cimport whole_of
from privfit._kernels.fitness cimport (
    add_products, log_sigmoid, moves_function, score_function,
)
from privfit._kernels.lanes cimport fetch

cdef enum:
    TILE = 32  # records that a thread takes at a time
    FETCHED = 512  # columns of the next record that are fetched ahead

ctypedef fused real:
    float
    double

ctypedef struct bounds:
    double low
    double high
    double per_unit  # 1 / unit, a power of two

# Functions that take no user data.
ctypedef void (*plain_score)(const double *, intptr_t, const double *, intptr_t, intptr_t,
                             double *) noexcept nogil
ctypedef void (*plain_moves)(const double *, intptr_t, const double *, intptr_t, const intptr_t *,
                             const double *, intptr_t, double *) noexcept nogil

# A compiled function, and all that it is asked about a record.
ctypedef struct question:
    void *function
    void *user_data
    bint takes_data
    const double *candidates  # (n_coordinates, m), or (n_coordinates,) if there are moves
    intptr_t n_coordinates
    const intptr_t *where     # (m,), or NULL if there are no moves
    const double *what
    intptr_t m


cdef inline void add_units(const real *values, ptrdiff_t m, const bounds *limits,
                           int64_t *total) noexcept nogil:
    """Add the integers of one record's m values. A comparison with NaN is false."""
    cdef double low = limits.low, high = limits.high, per_unit = limits.per_unit, v
    cdef ptrdiff_t c
    for c in range(m):
        v = values[c]
        v = v if v > low else low
        v = v if v < high else high
        total[c] += whole_of((v - low) * per_unit)


def sum_values(
    const real[:, ::1] values,  # IN   (n, m) scores, as they are
    double low,                 # IN   their bounds
    double high,
    double unit,                # IN   a power of two
    int64_t[::1] out,           # OUT  (m,) is added to
):
    """Add the integers of all records."""
    cdef bounds limits = bounds(low, high, 1.0 / unit)
    cdef ptrdiff_t r, m = values.shape[1]
    if values.shape[0] == 0 or m == 0:
        return
    with nogil:
        for r in range(values.shape[0]):
            add_units(&values[r, 0], m, &limits, &out[0])


# ------------------------------------------------------------------------------ compiled functions


cdef inline void call(const question *asked, const double *record, intptr_t n_columns,
                      double *out) noexcept nogil:
    """Call the function as it was declared."""
    if asked.where != NULL and asked.takes_data:
        (<moves_function>asked.function)(
            record, n_columns, asked.candidates, asked.n_coordinates, asked.where, asked.what,
            asked.m, out, asked.user_data)
    elif asked.where != NULL:
        (<plain_moves>asked.function)(
            record, n_columns, asked.candidates, asked.n_coordinates, asked.where, asked.what,
            asked.m, out)
    elif asked.takes_data:
        (<score_function>asked.function)(
            record, n_columns, asked.candidates, asked.n_coordinates, asked.m, out,
            asked.user_data)
    else:
        (<plain_score>asked.function)(
            record, n_columns, asked.candidates, asked.n_coordinates, asked.m, out)


cdef void score_rows(const question *asked, const real *records, ptrdiff_t n,
                     ptrdiff_t n_columns, const bounds *limits, double *record, double *out,
                     int64_t *total) noexcept nogil:
    """Add the integers of n records."""
    cdef ptrdiff_t r, j, c
    for r in range(n):
        for j in range(n_columns):
            record[j] = records[r * n_columns + j]
        if r + 1 < n:  # the next record comes from memory while the function computes
            for j in range(0, min(n_columns, <ptrdiff_t>FETCHED), 8):
                fetch(&records[(r + 1) * n_columns + j])
        for c in range(asked.m):
            out[c] = NAN
        call(asked, record, n_columns, out)
        add_units[double](out, asked.m, limits, total)


def sum_compiled(
    object function,               # IN   a capsule: address, and user data as its context
    bint takes_data,               # IN   whether the function takes user data
    const real[:, ::1] records,    # IN   (n, n_columns)
    const double[:, ::1] candidates,  # IN   (n_coordinates, m), or (n_coordinates, 1) with moves
    const intptr_t[::1] where,     # IN   (m,) moves away from the one candidate, or None
    const double[::1] what,
    double low,                    # IN   bounds of scores
    double high,
    double unit,                   # IN   a power of two
    double[:, ::1] record,         # WORK (threads, at least n_columns) in whole cache lines
    double[:, ::1] values,         # WORK (threads, at least m) in whole cache lines
    int64_t[:, ::1] out,           # OUT  (threads, m), each row is added to by its thread
):
    """Add the integers of what a compiled function says of each record."""
    cdef question asked
    cdef bounds limits = bounds(low, high, 1.0 / unit)
    cdef ptrdiff_t t, first, n = records.shape[0], n_columns = records.shape[1]
    cdef ptrdiff_t tiles = (n + TILE - 1) // TILE
    cdef int me, n_threads = <int>out.shape[0]
    asked.function = PyCapsule_GetPointer(function, PyCapsule_GetName(function))
    asked.user_data = PyCapsule_GetContext(function)
    asked.takes_data = takes_data
    asked.candidates = &candidates[0, 0]
    asked.n_coordinates = candidates.shape[0]
    asked.m = out.shape[1]
    asked.where = NULL
    asked.what = NULL
    if where is not None:
        asked.where = &where[0]
        asked.what = &what[0]
    for t in prange(tiles, nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        first = t * TILE
        score_rows(&asked, &records[first, 0], min(<ptrdiff_t>TILE, n - first), n_columns, &limits,
                   &record[me, 0], &values[me, 0], &out[me, 0])


# ------------------------------------------------------------------------ loops for other compilers


cdef void products_of(const double *record, intptr_t n, const double *candidates, intptr_t m,
                      double *out) noexcept nogil:
    add_products(record, n, candidates, m, out)


cdef void log_sigmoid_of(double *z, double y, intptr_t m) noexcept nogil:
    log_sigmoid(z, y, m)


def addresses():
    """The addresses of `add_products` and `log_sigmoid`, built for this CPU."""
    return <uintptr_t>&products_of, <uintptr_t>&log_sigmoid_of
