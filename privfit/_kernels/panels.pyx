"""Records of a box, put into panels: checked, clipped, rounded and transposed in one pass."""

from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MAX
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t

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
