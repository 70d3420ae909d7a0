"""Weighted k-means of public points: a step of Lloyd's iteration, and a choice of k-means++.

Everything here is public: floats may be summed, and a loop may skip what cannot change its answer.
A squared distance is -2 <p, c>, added up column by column, plus the squares of p and of c, and at
least 0. It is the same bits for every instruction set, alone or beside others.

**Which points are skipped.** Hamerly (2010): the nearest centre of a point stays the nearest if it
is nearer than a lower bound on the distances to all others, or than half the way from it to the
next centre. After each step a lower bound falls by how far any other centre has moved. SLACK is a
thousand times what rounding can do to a squared distance, so that points near a tie are looked at,
and the answer is that of looking at all of them.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t

from privfit._kernels.lanes cimport (
    four, four_add, four_all, four_load, four_max, four_min, four_mul, four_store, four_sum,
    four_where_less, four_zero,
)

cdef double SLACK = 1e-12  # of the largest squares of points and centres

cdef enum:
    TILE = 256  # points whose distances stay in cache

cdef struct nearest_two:
    double first, second
    int32_t which


cdef inline double square(const double *x, ptrdiff_t d) noexcept nogil:
    cdef double total = 0
    cdef ptrdiff_t e
    for e in range(d):
        total += x[e] * x[e]
    return total


cdef inline double distance(const double *p, double own, const double *c, double level,
                            ptrdiff_t d) noexcept nogil:
    """The squared distance of a point and a centre, whose squares are `own` and `level`."""
    cdef double total = 0
    cdef ptrdiff_t e
    for e in range(d):
        total += p[e] * (-2 * c[e])
    total = (total + own) + level
    return total if total > 0 else 0


cdef inline nearest_two scan(const double *p, double own, const double *turned,
                             const double *levels, ptrdiff_t d, ptrdiff_t padded) noexcept nogil:
    """The two least squared distances of a point, and the first centre of the least.

    turned is (d, padded), the centres times -2; levels are their squares, infinite for padding.
    """
    cdef nearest_two found
    cdef four first = four_all(INFINITY), second = first, which = four_zero()
    cdef four low, high, x, mine = four_all(own), zero = four_zero()
    cdef four index = four_zero(), step = four_all(4.0)
    cdef double[4] firsts, seconds, indices
    cdef double[4] places = [0.0, 1.0, 2.0, 3.0]
    cdef ptrdiff_t e, i, j
    index = four_load(places)
    for j in range(0, padded, 8):
        low = high = zero
        for e in range(d):
            x = four_all(p[e])
            low = four_add(low, four_mul(x, four_load(turned + e * padded + j)))
            high = four_add(high, four_mul(x, four_load(turned + e * padded + j + 4)))
        low = four_max(four_add(four_add(low, mine), four_load(levels + j)), zero)
        high = four_max(four_add(four_add(high, mine), four_load(levels + j + 4)), zero)
        second = four_min(second, four_max(low, first))
        which = four_where_less(low, first, index, which)
        first = four_min(low, first)
        index = four_add(index, step)
        second = four_min(second, four_max(high, first))
        which = four_where_less(high, first, index, which)
        first = four_min(high, first)
        index = four_add(index, step)
    four_store(firsts, first)
    four_store(seconds, second)
    four_store(indices, which)
    e = 0
    for i in range(1, 4):
        if firsts[i] < firsts[e] or (firsts[i] == firsts[e] and indices[i] < indices[e]):
            e = i
    found.first, found.second, found.which = firsts[e], seconds[e], <int32_t>indices[e]
    for i in range(4):
        if i != e and firsts[i] < found.second:
            found.second = firsts[i]
    return found


cdef double lay_out(const double *centers, ptrdiff_t k, ptrdiff_t d, ptrdiff_t padded,
                    double *turned, double *levels, double *halves) noexcept nogil:
    """Centres as `scan` reads them, and half the way from each to the next; the largest square."""
    cdef ptrdiff_t e, i, j
    cdef double x, gap, largest = 0
    for j in range(padded):
        levels[j] = square(centers + j * d, d) if j < k else INFINITY
        for e in range(d):
            turned[e * padded + j] = -2 * centers[j * d + e] if j < k else 0
        if j < k and levels[j] > largest:
            largest = levels[j]
    for j in range(k):
        gap = INFINITY
        for i in range(k):
            x = distance(centers + i * d, levels[i], centers + j * d, levels[j], d)
            if i != j and x < gap:
                gap = x
        halves[j] = sqrt(gap) / 2
    return largest


cdef void farthest(const double *shifts, ptrdiff_t k, double *most, double *next,
                   ptrdiff_t *which) noexcept nogil:
    """The largest of k shifts and which it is, and the next one."""
    cdef ptrdiff_t j
    most[0], next[0], which[0] = 0, 0, 0
    for j in range(k):
        if shifts[j] > most[0]:
            next[0] = most[0]
            most[0] = shifts[j]
            which[0] = j
        elif shifts[j] > next[0]:
            next[0] = shifts[j]


cdef double assign(const double *points, const double *own, const double *weights, ptrdiff_t m,
                   ptrdiff_t d, const double *centers, ptrdiff_t k, const double *shifts,
                   double reach, double *work, int32_t *nearest, double *lower) noexcept nogil:
    """Find the nearest centre of each point; return the cost."""
    cdef ptrdiff_t padded = (k + 7) // 8 * 8
    cdef double *levels = work
    cdef double *halves = work + padded
    cdef double *turned = work + 2 * padded
    cdef double slack = SLACK * (reach + lay_out(centers, k, d, padded, turned, levels, halves))
    cdef double most, next, bound, x, cost = 0
    cdef ptrdiff_t i, a, which
    cdef nearest_two found
    farthest(shifts, k, &most, &next, &which)
    for i in range(m):
        a = nearest[i]
        lower[i] -= next if a == which else most
        bound = lower[i] if lower[i] > halves[a] else halves[a]
        x = distance(points + i * d, own[i], centers + a * d, levels[a], d)
        if not x + slack < bound * bound:
            found = scan(points + i * d, own[i], turned, levels, d, padded)
            x = found.first
            nearest[i], lower[i] = found.which, sqrt(found.second)
        cost += weights[i] * x
    return cost


cdef double pairwise(const double *x, ptrdiff_t n) noexcept nogil:
    """The sum of n numbers as numpy adds them: halves apart, and eight sums side by side."""
    cdef double[8] s
    cdef double total = 0
    cdef ptrdiff_t i, j, half = n // 2 - n // 2 % 8
    if n > 128:
        return pairwise(x, half) + pairwise(x + half, n - half)
    if n >= 8:
        for j in range(8):
            s[j] = x[j]
        for i in range(8, n - n % 8, 8):
            for j in range(8):
                s[j] += x[i + j]
        total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    for i in range(n - n % 8 if n >= 8 else 0, n):
        total += x[i]
    return total


cdef void order(const int32_t *nearest, ptrdiff_t m, ptrdiff_t k, int32_t *places,
                int32_t *ends) noexcept nogil:
    """places[i] of point i where points are in the order of their centres; j's end at ends[j]."""
    cdef ptrdiff_t i, j
    cdef int32_t first = 0, count
    for j in range(k):
        ends[j] = 0
    for i in range(m):
        ends[nearest[i]] += 1
    for j in range(k):
        count = ends[j]
        ends[j] = first
        first += count
    for i in range(m):
        places[i] = ends[nearest[i]]
        ends[nearest[i]] += 1


cdef void sum_up(const double *x, const int32_t *places, ptrdiff_t m, const int32_t *ends,
                 ptrdiff_t k, double *grouped, double *sums) noexcept nogil:
    """The sum of the numbers of each centre's points: the first one, and the rest pairwise."""
    cdef ptrdiff_t i, j, first = 0
    for i in range(m):
        grouped[places[i]] = x[i]
    for j in range(k):
        sums[j] = 0
        if ends[j] > first:
            sums[j] = grouped[first] + pairwise(grouped + first + 1, ends[j] - first - 1)
        first = ends[j]


cdef void move(const double *weighed, const int32_t *nearest, ptrdiff_t m, ptrdiff_t d,
               ptrdiff_t k, const double *centers, int32_t *places, double *grouped, double *sums,
               double *moved, double *shifts) noexcept nogil:
    """Means of the points of each centre, and how far they are; centres without weight stay.

    weighed (1 + d, m) are the weights, and the columns times the weights; sums WORK (2, k).
    """
    cdef int32_t *ends = places + m
    cdef ptrdiff_t e, j
    cdef double x
    order(nearest, m, k, places, ends)
    sum_up(weighed, places, m, ends, k, grouped, sums)
    for j in range(k):
        shifts[j] = 0
    for e in range(d):
        sum_up(weighed + (1 + e) * m, places, m, ends, k, grouped, sums + k)
        for j in range(k):
            x = sums[k + j] / sums[j] if sums[j] > 0 else centers[j * d + e]
            moved[j * d + e] = x
            shifts[j] += (x - centers[j * d + e]) * (x - centers[j * d + e])
    for j in range(k):
        shifts[j] = sqrt(shifts[j])


def lloyd_steps(
    const double[:, ::1] points,       # IN   (m, d)
    const double[::1] own,             # IN   (m,) squares of the points
    const double[:, ::1] weighed,      # IN   (1 + d, m) weights, and columns times the weights
    const int32_t[::1] live,           # IN   which of the runs take a step
    double reach,                      # IN   the largest of the squares
    double[:, ::1] work,               # WORK (threads, (k + 7) (2 + d) or m + 2 k, the larger)
    int32_t[:, ::1] places,            # WORK (threads, m + k)
    const double[:, :, ::1] centers,   # IN   (runs, k, d)
    double[:, ::1] shifts,             # IN, OUT (runs, k) how far the last step moved centres
    int32_t[:, ::1] nearest,           # IN, OUT (runs, m) zeros before the first step
    double[:, ::1] lower,              # IN, OUT (runs, m) less than 0 before the first step
    double[:, :, ::1] moved,           # OUT  (runs, k, d) the means of the points of each centre
    double[::1] costs,                 # OUT  (runs,) of the centres
):
    """A step of each run: the nearest centre of each point, their cost, and where centres move."""
    cdef ptrdiff_t i, run, m = points.shape[0], d = points.shape[1], k = centers.shape[1]
    cdef int n_threads = work.shape[0], me
    for i in prange(live.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads):
        me = threadid()
        run = live[i]
        costs[run] = assign(&points[0, 0], &own[0], &weighed[0, 0], m, d, &centers[run, 0, 0], k,
                            &shifts[run, 0], reach, &work[me, 0], &nearest[run, 0], &lower[run, 0])
        move(&weighed[0, 0], &nearest[run, 0], m, d, k, &centers[run, 0, 0], &places[me, 0],
             &work[me, 0], &work[me, m], &moved[run, 0, 0], &shifts[run, 0])


def closer(
    const double[:, ::1] turned,       # IN   (d, m) points, column by column
    const double[::1] own,             # IN   (m,) squares of the points
    const double[::1] weights,         # IN   (m,)
    const double[:, ::1] some,         # IN   (c, d) new centres, one of which is to be chosen
    const double[::1] far,             # IN   (m,) squared distances to the centres so far
    double[:, ::1] fars,               # OUT  (c, m) squared distances if one of them is chosen
    double[::1] costs,                 # OUT  (c,) weighted sums of these
):
    """The squared distance of each point to the centres so far and to one more, for each one."""
    cdef ptrdiff_t a, first, m = turned.shape[1], d = turned.shape[0]
    for a in range(some.shape[0]):
        costs[a] = 0
    for first in range(0, m, 256):
        for a in range(some.shape[0]):
            costs[a] += closer_of_tile(&turned[0, first], m, min(<ptrdiff_t>TILE, m - first), d,
                                       &own[first], &weights[first], &some[a, 0], &far[first],
                                       &fars[a, first])


cdef double closer_of_tile(const double *turned, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t d,
                           const double *own, const double *weights, const double *center,
                           const double *far, double *out) noexcept nogil:
    """The least squared distances of n points with one more centre, and their weighted sum."""
    cdef double[TILE] z
    cdef double c, x, cost, level = square(center, d)
    cdef four sum = four_zero()
    cdef ptrdiff_t e, i
    for i in range(n):
        z[i] = 0
    for e in range(d):
        c = -2 * center[e]
        for i in range(n):
            z[i] += turned[e * stride + i] * c
    for i in range(n):
        x = (z[i] + own[i]) + level
        x = x if x > 0 else 0
        out[i] = x if x < far[i] else far[i]
    for i in range(0, n - n % 4, 4):
        sum = four_add(sum, four_mul(four_load(weights + i), four_load(out + i)))
    cost = four_sum(sum)
    for i in range(n - n % 4, n):
        cost += weights[i] * out[i]
    return cost
