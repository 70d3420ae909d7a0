"""Proposals of the chain, CROWD at a time: where they lie, their clusters, their density.

Columns of a block lie side by side, (d, CROWD), so that each loop is over proposals.
"""

from libc.math cimport INFINITY, fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, uint16_t, uint64_t

from privfit._kernels.clusters cimport keep_nearest
from privfit._kernels.double_bits cimport rounded
from privfit._kernels.draws cimport natural_log
from privfit._kernels.grid cimport PANEL
from privfit._kernels.losses cimport exp_minus
from privfit._kernels.margins cimport L2

cdef enum:
    CROWD = 64  # proposals that are drawn, assigned and walked together

# Where proposals come from: centre + spread * noise, refused outside the domain.
ctypedef struct chain_source:
    ptrdiff_t d
    const double *centers  # (components, d)
    const uint16_t *slots  # components; a word's bits above slot_shift choose a slot
    int slot_shift
    int norm               # 0: a box; L1, L2: a ball as well
    const double *spread   # (d,)
    const double *bounds   # (2, d) least and largest coordinate
    double limit           # of the norm; of its square for L2


# -------------------------------------------------------------------------------------- places


cdef inline void place_column(const double **origin, ptrdiff_t j, double spread, double low,
                              double high, bint squared, const double *noise, double *size,
                              double *outside, int32_t *whole) noexcept nogil:
    """Column j of a block; what lies outside [low, high] is marked, and sizes grow."""
    cdef ptrdiff_t i
    cdef double v
    for i in range(CROWD):
        v = origin[i][j] + spread * noise[i]
        v = low - 1.0 if v < low - 1.0 else high + 1.0 if v > high + 1.0 else v
        v = rounded(v)
        outside[i] = 1.0 if v < low or v > high else outside[i]
        size[i] += v * v if squared else fabs(v)
        whole[i] = <int32_t>v


cdef inline void place(const chain_source *source, const uint64_t *words, uint64_t n,
                       const double *noise, int32_t *whole, int32_t *component, int32_t *index,
                       double *log_u) noexcept nogil:
    """A block of proposals: component and index from `words`, columns from `noise` (d, CROWD).

    Coordinates go to `whole` (d, CROWD). What is outside becomes zero, and its log_u infinite, so
    that it is refused.
    """
    cdef const double *origin[CROWD]
    cdef double[CROWD] size
    cdef double[CROWD] outside
    cdef ptrdiff_t i, j, d = source.d
    for i in range(CROWD):
        index[i] = <int32_t>((words[i] & 0xffffffffu) * n >> 32)
        component[i] = source.slots[words[i] >> source.slot_shift]
        origin[i] = source.centers + d * component[i]
        size[i] = outside[i] = 0.0
    for j in range(d):
        place_column(origin, j, source.spread[j], source.bounds[j], source.bounds[d + j],
                     source.norm == L2, noise + j * CROWD, size, outside, whole + j * CROWD)
    for i in range(CROWD):
        if outside[i] > 0.0 or (source.norm and size[i] > source.limit):
            log_u[i] = INFINITY
            for j in range(d):
                whole[j * CROWD + i] = 0


cdef inline void lay_out(const int32_t *whole, ptrdiff_t d, ptrdiff_t width, int16_t *points,
                         int16_t *panels, double *square) noexcept nogil:
    """CROWD records (d, CROWD) as rows of the chain, as panels, and their squares."""
    cdef ptrdiff_t i, j, p, r, pairs = (d + 1) // 2
    cdef int16_t *column
    for i in range(CROWD):
        square[i] = 0.0
    for j in range(d):
        column = panels + j // 2 * 2 * PANEL + j % 2
        for i in range(CROWD):
            square[i] += <double>whole[i] * <double>whole[i]
        for i in range(CROWD):
            points[i * width + j] = <int16_t>whole[i]
        for p in range(CROWD // PANEL):
            for r in range(PANEL):
                column[p * pairs * 2 * PANEL + 2 * r] = <int16_t>whole[p * PANEL + r]
        whole += CROWD


# ------------------------------------------------------------------------ clusters and density


cdef inline void nearest_centers(const int32_t *z, ptrdiff_t k, int32_t first, int32_t *which,
                                 int32_t *least) noexcept nogil:
    """The nearest of k centres for CROWD records, and z of it; z is (k, CROWD).

    Ties go to the lowest index, and indices count from `first`.
    """
    cdef ptrdiff_t i, c
    for i in range(CROWD):
        least[i], which[i] = z[i], first
    for c in range(1, k):
        keep_nearest(z + c * CROWD, CROWD, first + <int32_t>c, least, which)


cdef inline void add_terms(const int32_t *which, const int32_t *least, const int32_t *nearest,
                           const int32_t *reach, const float *weight, float scale,
                           float *total) noexcept nogil:
    """Add weight exp(-precision (distance - the nearest one)) of the nearest centre of one set."""
    cdef float[CROWD] share
    cdef ptrdiff_t i
    cdef int32_t near
    for i in range(CROWD):
        share[i] = weight[which[i]]
    for i in range(CROWD):
        near = least[i] if least[i] < reach[i] else reach[i]
        total[i] += share[i] * exp_minus(<float>(near - nearest[i]) * scale)


cdef inline void density(const int32_t *which, const int32_t *least, ptrdiff_t sets,
                         const float *weight, double precision, const double *square,
                         double *out) noexcept nogil:
    """ln sum over sets of weight exp(-precision distance) of the nearest centre, for CROWD records.

    which and least are (sets, CROWD), and a distance is `least` plus the record's own square. The
    nearest of all is taken out of the sum, so that nothing vanishes. Terms below 2^-60 cannot be
    seen; at most 2^-120 keeps exp_minus within a float's exponents.
    """
    cdef float to_log2 = <float>(precision / 0.693147180559945309), most = 60.0
    cdef float limit = most / to_log2, edge = 2147483000.0
    cdef float scale = to_log2 if to_log2 < most else most
    cdef int32_t far = 2147483000
    cdef int32_t[CROWD] nearest
    cdef int32_t[CROWD] reach
    cdef float[CROWD] total
    cdef ptrdiff_t i, s
    if limit < edge:
        far = <int32_t>limit + 1
    for i in range(CROWD):
        nearest[i] = least[i]
        total[i] = 0.0
    for s in range(1, sets):
        for i in range(CROWD):
            nearest[i] = least[s * CROWD + i] if least[s * CROWD + i] < nearest[i] else nearest[i]
    for i in range(CROWD):
        reach[i] = nearest[i] + far if nearest[i] < 2147483647 - far else 2147483647
    for s in range(sets):
        add_terms(which + s * CROWD, least + s * CROWD, nearest, reach, weight, scale, total)
    for i in range(CROWD):
        out[i] = natural_log(<double>total[i]) - precision * (<double>nearest[i] + square[i])


cdef inline void refuse_strays(const int32_t *component, const int32_t *which, ptrdiff_t sets,
                               double *log_u) noexcept nogil:
    """Proposals of a component that is not the nearest of its set: their log_u becomes infinite."""
    cdef int32_t[CROWD] at_home
    cdef ptrdiff_t i, s
    for i in range(CROWD):
        at_home[i] = 0
    for s in range(sets):
        for i in range(CROWD):
            at_home[i] |= which[s * CROWD + i] == component[i]
    for i in range(CROWD):
        log_u[i] = log_u[i] if at_home[i] else INFINITY
