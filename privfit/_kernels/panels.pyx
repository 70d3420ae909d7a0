"""Records put into panels: numbers of a box in one pass, and columns that are rounded already."""

from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MAX
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.string cimport memcpy

from privfit._kernels.grid cimport PANEL

ctypedef fused number:
    float
    double


cdef inline bint round_row(const number *x, ptrdiff_t step, ptrdiff_t d, const double *origin,
                           const double *factor, const double *low, const double *high,
                           int16_t *out) noexcept nogil:
    """Write a record in units of the grid; whether a number is infinite or NaN.

    Units are powers of two, so that a product with `factor` is the exact quotient, or infinite and
    then clipped. Bounds are whole, so that clipping before rounding towards zero changes nothing.
    """
    cdef bint odd = False
    cdef ptrdiff_t j
    cdef double v
    for j in range(d):
        v = <double>x[j * step]
        odd |= not (fabs(v) <= DBL_MAX)
        v = (v - origin[j]) * factor[j]
        v = v if v > low[j] else low[j]  # which NaN becomes
        v = v if v < high[j] else high[j]
        out[j] = <int16_t><int32_t>v
    return odd


def pack_rows(
    const number[:, :] X,              # IN   (n, d)
    const double[:, ::1] box,          # IN   (4, d) origins, units to the power of -1, bounds
    const int64_t[::1] places,         # IN   (n,) where each record goes, or empty: one by one
    int64_t first,                     # IN   where the first one goes then
    int16_t[:, ::1] work,              # WORK (threads, 2 pairs) zeros before
    int16_t[:, :, :, ::1] panels,      # OUT  (n_panels, pairs, PANEL, 2)
):
    """Put records into panels; how many have a number that is infinite or NaN."""
    cdef ptrdiff_t r, j, d = X.shape[1], step = X.strides[1] // <ptrdiff_t>sizeof(number)
    cdef int n_threads = work.shape[0], me
    cdef int64_t place, odd = 0
    cdef bint listed = places.shape[0] > 0
    for r in prange(X.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        me = threadid()
        odd += round_row(&X[r, 0], step, d, &box[0, 0], &box[1, 0], &box[2, 0], &box[3, 0],
                         &work[me, 0])
        place = places[r] if listed else first + r
        for j in range(panels.shape[1]):
            panels[place // PANEL, j, place % PANEL, 0] = work[me, 2 * j]
            panels[place // PANEL, j, place % PANEL, 1] = work[me, 2 * j + 1]
    return odd


cdef inline void put_lanes(const int16_t *one, const int16_t *other, const int64_t *rows,
                           ptrdiff_t count, int16_t *out) noexcept nogil:
    """Write `count` records of two columns side by side, and zeros up to a panel."""
    cdef ptrdiff_t r
    cdef int64_t row
    for r in range(count):
        row = rows[r] if rows != NULL else r
        out[2 * r] = one[row]
        out[2 * r + 1] = other[row] if other != NULL else 0
    for r in range(2 * count, 2 * PANEL):
        out[r] = 0


def pack_pair(
    const int16_t[::1] one,           # IN   (n,)
    const int16_t[::1] other,         # IN   (n,) or empty: zeros
    const int64_t[::1] rows,          # IN   (count,) which records, or empty: all
    ptrdiff_t j,                      # IN   the pair
    int16_t[:, :, :, ::1] panels,     # OUT  (n_panels, pairs, PANEL, 2), of these records alone
    int n_threads,
):
    """Put two columns of records into panels; lanes without a record are zero."""
    cdef ptrdiff_t p, first, count = rows.shape[0] if rows.shape[0] else one.shape[0]
    cdef const int16_t *second = &other[0] if other.shape[0] else NULL
    cdef const int64_t *listed = &rows[0] if rows.shape[0] else NULL
    for p in prange(panels.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        first = PANEL * p
        if listed != NULL:
            put_lanes(&one[0], second, listed + first, min(count - first, <ptrdiff_t>PANEL),
                      &panels[p, j, 0, 0])
        else:
            put_lanes(&one[first], second + first if second != NULL else NULL, NULL,
                      min(count - first, <ptrdiff_t>PANEL), &panels[p, j, 0, 0])


def move_rows(
    const int32_t[:, :, ::1] found,  # IN   (n_panels, pairs, PANEL), from its first row on
    ptrdiff_t first,                 # IN   where its first row goes
    int32_t[:, :, ::1] out,          # OUT  (panels, pairs, PANEL)
):
    """Put panels behind rows that are there already; rows beyond the last panel are left out."""
    cdef ptrdiff_t p, j, to, lanes = first % PANEL
    with nogil:
        for p in range(found.shape[0]):
            to = first // PANEL + p
            for j in range(found.shape[1]):
                if to < out.shape[0]:
                    memcpy(&out[to, j, lanes], &found[p, j, 0], (PANEL - lanes) * 4)
                if lanes and to + 1 < out.shape[0]:
                    memcpy(&out[to + 1, j, 0], &found[p, j, PANEL - lanes], lanes * 4)
