# cython: cdivision=True
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

from libc.math cimport fabs
from libc.stdint cimport intptr_t

from privfit._kernels.double_bits cimport bits_of, double_of, to_whole

cdef enum:
    COLUMNS = 256  # columns that are listed at a time

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


cdef inline void add_columns(const double *record, const intptr_t *column, intptr_t count,
                             const double *candidates, intptr_t m, double *out) noexcept nogil:
    """Add the products of some columns, four at a time: `out` is read a quarter as often."""
    cdef const double *r0
    cdef const double *r1
    cdef const double *r2
    cdef const double *r3
    cdef double x0, x1, x2, x3
    cdef intptr_t i = 0, c
    while i + 2 <= count:
        r0, x0 = candidates + column[i] * m, record[column[i]]
        r1, x1 = candidates + column[i + 1] * m, record[column[i + 1]]
        if i + 4 <= count:
            r2, x2 = candidates + column[i + 2] * m, record[column[i + 2]]
            r3, x3 = candidates + column[i + 3] * m, record[column[i + 3]]
            for c in range(m):
                out[c] += (x0 * r0[c] + x1 * r1[c]) + (x2 * r2[c] + x3 * r3[c])
            i += 4
        else:
            for c in range(m):
                out[c] += x0 * r0[c] + x1 * r1[c]
            i += 2
    if i < count:
        r0, x0 = candidates + column[i] * m, record[column[i]]
        for c in range(m):
            out[c] += x0 * r0[c]


cdef inline void add_products(const double *record, intptr_t n, const double *candidates,
                              intptr_t m, double *out) noexcept nogil:
    """out[c] += sum over j < n of record[j] candidates[j, c]; zeros of the record are skipped.

    Columns that are not zero are listed first, without a branch for each, which nobody can predict.
    """
    cdef intptr_t[COLUMNS] column
    cdef intptr_t first, j, found
    for first in range(0, n, 256):
        found = 0
        for j in range(first, min(n, first + COLUMNS)):
            column[found] = j
            found += (bits_of(record[j]) << 1) != 0  # its sign aside; a double would be compared
        add_columns(record, column, found, candidates, m, out)


cdef inline double exp_below(double t) noexcept nogil:
    """exp(-t) for 0 <= t <= 64, relative error below 5e-11: no libm, so that loops are vectorised.

    t / ln 2 = k - f with abs(f) <= 1/2, a polynomial for 2^f, then the exponent. The rounding of
    t / ln 2, which is at most 93, is 1e-14 of it.
    """
    cdef double scaled = t * 1.4426950408889634
    cdef double shifted = scaled + to_whole()
    cdef double f = (shifted - to_whole()) - scaled
    cdef double f2 = f * f
    cdef double u = (
        (0.9999999999616819 + f * 0.693147180728447)
        + f2 * (0.24022651198157585 + f * 0.055504103534479786)
        + (f2 * f2) * ((0.009618027253668457 + f * 0.001333392256353985)
                       + f2 * (0.00015469291141686958 + f * 0.000015201921594334923))
    )
    return double_of(bits_of(u) - (bits_of(shifted) << 52))


cdef inline void log_sigmoid(double *z, double y, intptr_t m) noexcept nogil:
    """z[c] becomes -ln(1 + exp(-y z[c])), absolute error below 2e-10; NaN stays NaN.

    With v = y z[c] this is min(v, 0) - ln(1 + u), u = exp(-abs v), and ln(1 + u) = 2 artanh(s) with
    s = u / (2 + u). Two short loops over a buffer are faster than one long one: their chains of
    operations overlap.
    """
    cdef double[COLUMNS] u
    cdef double v, t, s, q
    cdef intptr_t first, c, count
    for first in range(0, m, 256):
        count = min(m - first, <intptr_t>COLUMNS)
        for c in range(count):
            t = fabs(y * z[c])
            u[c] = exp_below(t if t < 64.0 else 64.0)
        for c in range(count):
            v = y * z[c]
            s = u[c] / (2.0 + u[c])
            q = s * s
            z[c] = (0.0 if v > 0.0 else v) - s * (
                (1.999999999809006 + q * 0.6666667902643397)
                + (q * q) * ((0.39998711246862332 + q * 0.28620207408437238)
                             + (q * q) * (0.21398560506678543 + q * 0.24393908084023025))
            )
        z += count
