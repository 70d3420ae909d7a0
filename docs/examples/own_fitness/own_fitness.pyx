# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Scores of one's own in Cython: the log-likelihood of a logistic model, and of moves away from it.

A record is its features, then its label, -1 or 1. A candidate is its weights, then its intercept.
Functions are exported by `cdef api`; both treat one record and keep nothing between calls.
"""

from libc.stdint cimport intptr_t

from privfit._kernels.fitness cimport add_products, log_sigmoid


cdef api void logistic(
    const double *record, intptr_t n_columns,
    const double *candidates, intptr_t n_coordinates, intptr_t m,
    double *out,
) noexcept nogil:
    """-ln(1 + exp(-y (<x, w> + b))) for each candidate (w, b)."""
    cdef intptr_t c, d = n_columns - 1
    for c in range(m):
        out[c] = candidates[d * m + c]  # b
    add_products(record, d, candidates, m, out)
    log_sigmoid(out, record[d], m)


cdef api void logistic_moves(
    const double *record, intptr_t n_columns,
    const double *candidate, intptr_t n_coordinates,
    const intptr_t *where, const double *what, intptr_t m,
    double *out,
) noexcept nogil:
    """The same for candidates whose coordinate where[c] is larger by what[c]."""
    cdef intptr_t j, c, d = n_columns - 1
    cdef double margin = candidate[d]
    for j in range(d):
        margin += record[j] * candidate[j]
    for c in range(m):
        out[c] = margin + what[c] * (record[where[c]] if where[c] < d else 1.0)
    log_sigmoid(out, record[d], m)
