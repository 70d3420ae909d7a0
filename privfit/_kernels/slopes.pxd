"""Smooth losses of linear models in double, the same bits on every machine: no libm, nothing fused.

A margin z = <x~, w> is an integer of 64 bits in units of the caller's choice; sums wrap, and only
the final one has to fit. A real number leaves a record once, rounded to a whole one.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint64_t

from privfit._kernels.codes cimport code_margin
from privfit._kernels.double_bits cimport bits_of, double_of, rounded, to_whole, whole_of
from privfit._kernels.grid cimport PANEL, check
from privfit._kernels.lanes cimport pair_first, pair_second
from privfit._kernels.records cimport code_rows, sparse_rows

cdef enum:
    LOW = 19              # lower bits of a weight
    MOST_PAIRS = 1 << 18  # of columns that are summed at a time


# -------------------------------------------------------------------------------------- margins


cdef inline void margin_long(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                             const int64_t *w, int64_t start, int64_t *z) noexcept nogil:
    """z[r] of one candidate; panels are (n_panels, pairs, PANEL), w is (2 pairs,).

    Products of the upper and of the lower bits of a weight are whole numbers in double, twice as
    fast as 64-bit integers: their sums stay below 2^53, since abs(x~) is at most 2^14 and the
    caller sees to it that the sum of abs(w x~) stays below 2^71.
    """
    cdef double[PANEL] low
    cdef double[PANEL] high
    cdef double low0, low1, high0, high1, x0, x1
    cdef ptrdiff_t p, b, j, r
    for p in range(n_panels):
        for r in range(PANEL):
            z[p * PANEL + r] = start
        for b in range((pairs + MOST_PAIRS - 1) // MOST_PAIRS):
            for r in range(PANEL):
                low[r] = high[r] = 0.0
            for j in range(b * MOST_PAIRS, min(pairs, (b + 1) * MOST_PAIRS)):
                low0, low1 = w[2 * j] & ((1 << LOW) - 1), w[2 * j + 1] & ((1 << LOW) - 1)
                high0, high1 = w[2 * j] >> LOW, w[2 * j + 1] >> LOW
                for r in range(PANEL):
                    x0, x1 = pair_first(panels[r]), pair_second(panels[r])
                    low[r] += x0 * low0 + x1 * low1
                    high[r] += x0 * high0 + x1 * high1
                panels += PANEL
            for r in range(PANEL):
                z[p * PANEL + r] += <int64_t>(<uint64_t><int64_t>low[r]
                                              + (<uint64_t><int64_t>high[r] << LOW))


cdef inline void sparse_margin_long(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                    const int64_t *w, ptrdiff_t d, int a,
                                    int64_t *z) noexcept nogil:
    """The same of sparse records; w is (d+1,), the last one as it is, not times 2^a."""
    cdef const int64_t *one_start = rows.one_start
    cdef const int64_t *value_start = rows.value_start
    cdef const int32_t *one_column = rows.one_column
    cdef const int32_t *value_column = rows.value_column
    cdef const int16_t *value = rows.value
    cdef uint64_t even, odd, values
    cdef ptrdiff_t r
    cdef int64_t i, end
    for r in range(first, last):
        even, odd, values = 0, 0, <uint64_t>w[d]
        i, end = one_start[r], one_start[r + 1]
        while i + 1 < end:
            check(0 <= one_column[i] < d)
            even += <uint64_t>w[one_column[i]]
            odd += <uint64_t>w[one_column[i + 1]]
            i += 2
        if i < end:
            even += <uint64_t>w[one_column[i]]
        for i in range(value_start[r], value_start[r + 1]):
            check(0 <= value_column[i] < d)
            values += <uint64_t>w[value_column[i]] * <uint64_t><int64_t>value[i]
        z[r - first] = <int64_t>(((even + odd) << a) + values)


cdef inline void code_margin_long(const code_rows *rows, ptrdiff_t first, ptrdiff_t n,
                                  const int64_t *w, ptrdiff_t d, int a,
                                  int64_t *z) noexcept nogil:
    """The same of coded records; w is the bins' weights, those of numbers, and the last one."""
    cdef ptrdiff_t r
    code_margin[int64_t](rows, first, n, w, w + d - rows.numbers, 0, 1 << a, z)
    for r in range(n):
        z[r] += w[d]


# --------------------------------------------------------------------------------- one margin


cdef struct curve:
    double slope  # minus the slope of a loss
    double bend   # its curvature, relative to the largest


cdef inline double exp_minus_long(double t) noexcept nogil:
    """exp(-t) for 0 <= t <= 64, relative error below 2^-50.

    t = k ln 2 + f with abs(f) <= 0.35, the series of exp(-f) up to f^13 (the next term is below
    2^-57), then the exponent. k times the upper part of ln 2 is exact.
    """
    cdef double shifted = t * 1.4426950408889634 + to_whole()
    cdef double k = shifted - to_whole()
    cdef double f = k * 0.6931471805582987 - t + k * 1.6465949582897082e-12  # minus f
    cdef double f2 = f * f
    cdef double f4 = f2 * f2
    cdef double f8 = f4 * f4
    cdef double u = (
        (1.0 + f) + f2 * (1.0 / 2 + f * (1.0 / 6))
        + f4 * ((1.0 / 24 + f * (1.0 / 120)) + f2 * (1.0 / 720 + f * (1.0 / 5040)))
        + f8 * ((1.0 / 40320 + f * (1.0 / 362880)) + f2 * (1.0 / 3628800 + f * (1.0 / 39916800))
                + f4 * (1.0 / 479001600 + f * (1.0 / 6227020800.0)))
    )
    return double_of(bits_of(u) - (bits_of(shifted) << 52))


cdef inline curve logistic_at(double m) noexcept nogil:
    """ln(1 + exp(-m)), whose slope is minus sigma(-m)."""
    cdef curve at
    cdef double t = -m if m < 0 else m
    cdef double u = exp_minus_long(t if t < 64.0 else 64.0)
    cdef double part = 1.0 / (1.0 + u)
    at.slope = part if m < 0 else u * part
    at.bend = 4.0 * u * part * part
    return at


cdef inline curve hinge_at(double m, double width, double largest) noexcept nogil:
    """max(1 - m, 0), rounded by a parabola within `width` of 1; `largest` is 1 / (2 width)."""
    cdef curve at
    cdef double inside = ((1.0 + width) - m) * largest
    at.slope = 0.0 if inside < 0.0 else 1.0 if inside > 1.0 else inside
    at.bend = 1.0 if 0.0 < inside < 1.0 else 0.0
    return at


cdef inline curve table_at(double m, const double *table, ptrdiff_t half) noexcept nogil:
    """A loss by its slopes at equidistant margins, a straight line in between, constant beyond.

    Rows of the table are 2 half cells: minus the slope at the left end, what it falls by, the
    curvature. m is in cells, 0 in the middle; the first and the last cell are those beyond. Cells
    to a margin of 1 are a power of two, so that f is off by 2^-53 at most.
    """
    cdef curve at
    cdef double last = <double>(half - 1), below = -<double>half if m < -half else m, f
    cdef double inside = last if below > last else below
    cdef ptrdiff_t cell = <ptrdiff_t>inside
    cell -= inside < <double>cell
    f = inside - <double>cell
    table += 3 * (cell + half)
    at.slope = table[0] - f * table[1]
    at.bend = table[2]
    return at


# --------------------------------------------------------------------------------- many margins
# Of each margin z: minus the slope of its loss, with the sign of the class; and the curvature.


cdef inline void logistic_slopes(const double *z, ptrdiff_t n, double sign, double *slope,
                                 double *bend) noexcept nogil:
    cdef ptrdiff_t i
    cdef curve at
    for i in range(n):
        at = logistic_at(sign * z[i])
        slope[i], bend[i] = sign * at.slope, at.bend


cdef inline void hinge_slopes(const double *z, ptrdiff_t n, double sign, double width,
                              double *slope, double *bend) noexcept nogil:
    cdef double largest = 1.0 / (2.0 * width)
    cdef ptrdiff_t i
    cdef curve at
    for i in range(n):
        at = hinge_at(sign * z[i], width, largest)
        slope[i], bend[i] = sign * at.slope, at.bend


cdef inline void table_slopes(const double *z, ptrdiff_t n, double sign, const double *table,
                              ptrdiff_t cells, double per_unit, double *slope,
                              double *bend) noexcept nogil:
    cdef ptrdiff_t i
    cdef curve at
    for i in range(n):
        at = table_at(sign * z[i] * per_unit, table, cells // 2)
        slope[i], bend[i] = sign * at.slope, at.bend


cdef inline void split(double *v, ptrdiff_t n, double fine, double *rest) noexcept nogil:
    """Split numbers v into whole ones and `fine` times the rest of each, rounded to a whole one.

    A slope times 2^(45 - a) is below 2^45, so that nothing but that last rounding is lost.
    """
    cdef ptrdiff_t i
    cdef double whole
    for i in range(n):
        whole = rounded(v[i])
        rest[i] = rounded((v[i] - whole) * fine)
        v[i] = whole


# -------------------------------------------------------------------- residuals times records


cdef inline void pull(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                      const double *residual, int64_t *out) noexcept nogil:
    """out[j] += sum over records of residual x_j, each product rounded to a whole number.

    What is added are the bits of 1.5 2^52 and a product; those of 1.5 2^52 are taken away at last.
    """
    cdef uint64_t surplus = <uint64_t>(n_panels * PANEL) * bits_of(to_whole()), even, odd
    cdef uint64_t[PANEL] evens
    cdef uint64_t[PANEL] odds
    cdef const int32_t *x
    cdef const double *v
    cdef ptrdiff_t j, p, r
    for j in range(pairs):
        for r in range(PANEL):
            evens[r] = odds[r] = 0
        for p in range(n_panels):
            x = panels + (p * pairs + j) * PANEL
            v = residual + p * PANEL
            for r in range(PANEL):
                evens[r] += bits_of(v[r] * pair_first(x[r]) + to_whole())
                odds[r] += bits_of(v[r] * pair_second(x[r]) + to_whole())
        even = odd = 0
        for r in range(PANEL):
            even += evens[r]
            odd += odds[r]
        out[2 * j] += <int64_t>(even - surplus)
        out[2 * j + 1] += <int64_t>(odd - surplus)


cdef inline void sparse_pull(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last, ptrdiff_t d,
                             int a, const double *residual, int64_t *out) noexcept nogil:
    """The same of sparse records, whose ones are 2^a; the intercept last."""
    cdef const int64_t *one_start = rows.one_start
    cdef const int64_t *value_start = rows.value_start
    cdef const int32_t *one_column = rows.one_column
    cdef const int32_t *value_column = rows.value_column
    cdef const int16_t *value = rows.value
    cdef ptrdiff_t r
    cdef int64_t i, one
    cdef double v
    for r in range(first, last):
        v = residual[r - first]
        one = whole_of(v * <double>(1 << a))
        for i in range(one_start[r], one_start[r + 1]):
            check(0 <= one_column[i] < d)
            out[one_column[i]] += one
        for i in range(value_start[r], value_start[r + 1]):
            check(0 <= value_column[i] < d)
            out[value_column[i]] += whole_of(v * value[i])
        out[d] += one


cdef inline void code_pull(const code_rows *rows, ptrdiff_t first, ptrdiff_t n, ptrdiff_t d, int a,
                           const double *residual, int64_t *out) noexcept nogil:
    """The same of coded records: sums over bins, those of numbers, and the intercept last."""
    cdef ptrdiff_t k = rows.joints, r, j
    cdef const uint16_t *code = rows.code + first * k
    cdef const int16_t *x
    cdef int64_t one, total = 0
    for r in range(n):
        one = whole_of(residual[r] * <double>(1 << a))
        total += one
        for j in range(k):
            out[code[r * k + j]] += one
    out[d] += total
    for j in range(rows.numbers):
        x = rows.number + j * rows.rows + first
        total = 0
        for r in range(n):
            total += whole_of(residual[r] * x[r])
        out[d - rows.numbers + j] += total


cdef inline int64_t whole_sum(const double *v, ptrdiff_t n, double unit) noexcept nogil:
    """The sum of v times a power of two, each rounded to a whole number."""
    cdef uint64_t total = 0
    cdef ptrdiff_t i
    for i in range(n):
        total += <uint64_t>whole_of(v[i] * unit)
    return <int64_t>total
