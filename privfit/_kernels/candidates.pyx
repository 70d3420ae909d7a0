"""Loops over public numbers: candidates and moves in whole units, curves.

Candidates are checked while they are put in whole units of their grid: that decides errors, never
a score.
"""

from libc.math cimport INFINITY, copysign, fabs
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t

from privfit._kernels.double_bits cimport bits_of

cdef enum:
    IS_FINE = 0
    IS_ELSEWHERE = 1
    IS_NOT_FINITE = 2
    IS_OFF_GRID = 3

FINE, ELSEWHERE, NOT_FINITE, OFF_GRID = IS_FINE, IS_ELSEWHERE, IS_NOT_FINITE, IS_OFF_GRID


cdef inline uint64_t infinite(double x) noexcept nogil:
    """A number whose highest bit tells whether x is infinite or NaN: all ones in its exponent."""
    return (bits_of(x) & 0x7FFFFFFFFFFFFFFFu) + 0x0010000000000000u


cdef inline uint64_t off_grid(double x) noexcept nogil:
    """Not 0 if x is no whole number."""
    return bits_of(nearest(x)) ^ bits_of(x)


cdef inline double nearest(double x) noexcept nogil:
    """The nearest whole number, ties to even, as C's rint; its sign is that of x, of 0 too."""
    cdef double far = 4503599627370496.0  # 2^52: what is added to it loses its fraction
    return copysign((fabs(x) + far) - far, x) if fabs(x) < far else x


cdef inline double reach_of(const double *w, const double *largest, ptrdiff_t d) noexcept nogil:
    """The sum of abs(w_j) largest_j; four sums side by side, since each waits for its last term."""
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef ptrdiff_t j = 0
    while j + 4 <= d:
        s0 += fabs(w[j]) * largest[j]
        s1 += fabs(w[j + 1]) * largest[j + 1]
        s2 += fabs(w[j + 2]) * largest[j + 2]
        s3 += fabs(w[j + 3]) * largest[j + 3]
        j += 4
    while j < d:
        s0 += fabs(w[j]) * largest[j]
        j += 1
    return (s0 + s1) + (s2 + s3)


def whole_units(
    const double[:, ::1] P,       # IN   (m, d) candidates
    const double[::1] units,      # IN   (d,) powers of two
    const double[::1] largest,    # IN   (d,) largest sizes of a record's entries
    double[:, ::1] whole,         # OUT  (m, d) P / units
):
    """Whether all candidates are finite and on the grid, and a bound on the sizes of margins."""
    cdef ptrdiff_t i, j
    cdef double size, margin = 0, x
    cdef uint64_t beyond = 0, off = 0
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            x = P[i, j] / units[j]
            whole[i, j] = x
            beyond |= infinite(P[i, j])
            off |= off_grid(x)
        size = reach_of(&P[i, 0], &largest[0], P.shape[1])
        margin = size if size > margin else margin
    if beyond >> 63:
        return IS_NOT_FINITE, margin
    return IS_OFF_GRID if off else IS_FINE, margin


def whole_moves(
    const int64_t[::1] coords,    # IN   (m,) coordinates
    const double[::1] steps,      # IN   (m,) how far each move goes along its coordinate
    ptrdiff_t n_weights,          # IN   coordinates that there are
    const double[::1] units,      # IN   (n_weights or more,) powers of two
    const double[::1] largest,    # IN   (n_weights or more,) largest sizes of a record's entries
    double[::1] whole,            # OUT  (m,) steps / units
    double[::1] reach,            # OUT  (m,) by how much a move can change a margin
):
    """Whether all moves are along coordinates, finite and on the grid."""
    cdef ptrdiff_t i, j
    cdef double x
    cdef uint64_t beyond = 0, off = 0
    for i in range(coords.shape[0]):
        j = coords[i]
        if not 0 <= j < n_weights:
            return IS_ELSEWHERE
        x = steps[i] / units[j]
        whole[i] = x
        beyond |= infinite(steps[i])
        off |= off_grid(x)
        reach[i] = fabs(steps[i]) * largest[j]
    if beyond >> 63:
        return IS_NOT_FINITE
    return IS_OFF_GRID if off else IS_FINE


def snap(
    double[:, ::1] P,             # IN, OUT (m, d) candidates
    const double[::1] units,      # IN   (d,) powers of two; none for no grid
    const double[::1] low,        # IN   (d,) the lowest point
    const double[::1] high,       # IN   (d,) the highest point
):
    """Round candidates to their grid and clip them to a box, in place; NaN stays NaN."""
    cdef ptrdiff_t i, j
    cdef bint gridded = units.shape[0] > 0
    cdef double x
    for i in range(P.shape[0]):
        if gridded:
            for j in range(P.shape[1]):
                P[i, j] = nearest(P[i, j] / units[j]) * units[j]
        for j in range(P.shape[1]):
            x = P[i, j]
            x = low[j] if x < low[j] else x
            P[i, j] = high[j] if x > high[j] else x


def both_ways(
    const double[::1] here,       # IN   (d,) a candidate
    double share,                 # IN   length of a step, as a share of a coordinate's width
    const double[::1] width,      # IN   (d,) widths
    const double[::1] units,      # IN   (d,) units of the grid; none for no grid
    const double[::1] low,        # IN   (d,) the lowest point
    const double[::1] high,       # IN   (d,) the highest point
    double[:, ::1] out,           # OUT  (2, d) a step up and one down each coordinate
):
    """Steps on the grid, shortened where they would leave the box."""
    cdef ptrdiff_t i, j
    cdef double x
    for i in range(2):
        for j in range(here.shape[0]):
            x = (share if i == 0 else -share) * width[j]
            if units.shape[0]:
                x = nearest(x / units[j]) * units[j]
            x = x + here[j]
            x = x if x > low[j] else low[j]
            x = x if x < high[j] else high[j]
            out[i, j] = x - here[j]


cdef inline double larger(double x, double y) noexcept nogil:
    """The larger one; NaN if one of them is."""
    return y if y > x or y != y else x


def group_norms(
    const double[:, ::1] V,       # IN   (m, d + 1) candidates, the intercept last
    const int64_t[::1] starts,    # IN   (groups,) the first column of each group, from 0 on
    const double[::1] least,      # IN   (groups,) the least a group adds
    double[::1] out,              # OUT  (m,)
):
    """N(v) over a schema: max of S(v), S(-v); S(v) = v_b + sum of max(top of group, least)."""
    cdef ptrdiff_t i, g, j, last, groups = starts.shape[0], d = V.shape[1] - 1
    cdef double up, down, top, bottom
    for i in range(V.shape[0]):
        up = down = 0
        for g in range(groups):
            last = starts[g + 1] if g + 1 < groups else d
            top = bottom = least[g]
            for j in range(starts[g], last):
                top, bottom = larger(top, V[i, j]), larger(bottom, -V[i, j])
            up += top
            down += bottom
        out[i] = larger(up + V[i, d], down - V[i, d])


cdef enum:
    STRETCH = 256  # numbers of a curve that are computed side by side


cdef void curve_node(
    const double *down, const double *up, ptrdiff_t n, double p, double ratio, double *f, double *z
) noexcept nogil:
    """F and Z at one node: see `privacy_curves._Step`."""
    cdef ptrdiff_t j
    for j in range(n):
        f[j] = (down[j] - up[j]) * p + up[j]
        z[j] = down[j] - up[j] * ratio


cdef void curve_chord(
    const double *f, const double *z, const double *f_next, const double *z_next, ptrdiff_t n,
    double slope, double low, double high, double least, double *best
) noexcept nogil:
    """The largest values between two nodes."""
    cdef ptrdiff_t j
    cdef double bend, u
    for j in range(n):
        bend = (z_next[j] - z[j]) + least
        u = (f_next[j] - f[j]) / bend * slope + low
        u = 0 if u < 0 else u
        u = high if u > high else u
        best[j] = larger(best[j], u * u * bend + f[j])


def curve_step(
    const double[::1] full,       # IN   (2 width + size or more,) V, from `width` below its first
    const int64_t[::1] nodes,     # IN   (k,) grid steps, rising from 0 to width
    const double[::1] p,          # IN   (k,) weights of the nodes
    const double[:, ::1] chords,  # IN   (3, k - 1) between nodes: slope, low, high
    double ratio,                 # IN   of the two ends of a range
    double margin,                # IN   above the rounding of a step
    double least,                 # IN   added to a bend, so that nothing is 0 / 0
    double[::1] out,              # OUT  (size,) V after a step
):
    """One step of the recursion of `privacy_curves`."""
    cdef double[2][STRETCH] f, z
    cdef double[STRETCH] best
    cdef ptrdiff_t first, i, j, n, k = nodes.shape[0], width = nodes[k - 1]
    cdef const double *v
    for first in range(0, out.shape[0], 256):
        n = min(<ptrdiff_t>STRETCH, out.shape[0] - first)
        for j in range(n):
            best[j] = -INFINITY
        for i in range(k):
            v = &full[first + width - nodes[i]]
            curve_node(v, v + width, n, p[i], ratio, f[i % 2], z[i % 2])
            for j in range(n):
                best[j] = larger(best[j], f[i % 2][j])
            if i:
                curve_chord(f[(i - 1) % 2], z[(i - 1) % 2], f[i % 2], z[i % 2], n, chords[0, i - 1],
                            chords[1, i - 1], chords[2, i - 1], least, best)
        for j in range(n):
            out[first + j] = best[j] + margin * full[first + j]
