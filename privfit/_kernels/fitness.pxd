"""What a compiled function that scores records looks like, for Cython of one's own.

`privfit.RecordObjective` calls such a function once for each record, from several threads and
without the interpreter's lock. The function sees one record and fills `out`; privfit clips, rounds
and adds up what it finds there. What is left unwritten, and NaN, counts as the lowest score.

A record is its columns as doubles. Coordinate j of candidate c is `candidates[j * m + c]`: loops
over candidates are contiguous. A function may be declared with or without `user_data`, which is
that of a `scipy.LowLevelCallable`. All arrays begin at multiples of 64 bytes.

`docs/own_fitness.md` has a worked example. These declarations change only with a note in the
changelog.
"""

from libc.stdint cimport intptr_t

# The scores of one record for m candidates.
ctypedef void (*score_function)(
    const double *record,      # IN   (n_columns,)
    intptr_t n_columns,
    const double *candidates,  # IN   (n_coordinates, m)
    intptr_t n_coordinates,
    intptr_t m,
    double *out,               # OUT  (m,) the scores; NaN at first
    void *user_data,
) noexcept nogil

# The scores of one record for m candidates that differ from one candidate by a move each.
ctypedef void (*moves_function)(
    const double *record,      # IN   (n_columns,)
    intptr_t n_columns,
    const double *candidate,   # IN   (n_coordinates,)
    intptr_t n_coordinates,
    const intptr_t *where,     # IN   (m,) what each move changes
    const double *what,        # IN   (m,) and how, as the space says
    intptr_t m,
    double *out,               # OUT  (m,) the scores; NaN at first
    void *user_data,
) noexcept nogil


cdef inline void add_products(const double *record, intptr_t n, const double *candidates,
                              intptr_t m, double *out) noexcept nogil:
    """out[c] += sum over j < n of record[j] candidates[j, c]; zeros of the record take no time."""
    cdef intptr_t j, c
    cdef double x
    cdef const double *row
    for j in range(n):
        x = record[j]
        if x != 0.0:
            row = candidates + j * m
            for c in range(m):
                out[c] += x * row[c]
