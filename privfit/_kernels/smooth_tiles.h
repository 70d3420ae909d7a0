/* Smooth losses of linear models in double, the same bits on every machine: no libm, nothing fused.
 *
 * A margin z = <x~, w> is an integer of 64 bits in units of the caller's choice; sums wrap, and only
 * the final one has to fit. A real number leaves a record once, rounded to a whole one. */

#define TO_WHOLE 6755399441055744.0 /* 1.5 2^52: adding it rounds to a whole number, half to even */

static ALWAYS_INLINE uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* The whole number next to v, of at most 2^51. */
static ALWAYS_INLINE int64_t whole_of(double v)
{
    return (int64_t)(bits_of(v + TO_WHOLE) - bits_of(TO_WHOLE));
}

/* The two columns of a pair of int16. */
#define FIRST_OF(PAIR) ((int32_t)((uint32_t)(PAIR) << (16 - 16 * FIRST_OF_PAIR_IS_HIGH)) >> 16)
#define SECOND_OF(PAIR) ((int32_t)((uint32_t)(PAIR) << (16 * FIRST_OF_PAIR_IS_HIGH)) >> 16)

/* z[r] of one candidate; w is (2 pairs,). Products of the upper and of the lower bits of a weight are
 * whole numbers in double, twice as fast as 64-bit integers: their sums stay below 2^53, since abs(x~)
 * is at most 2^14 and the caller sees to it that the sum of abs(w x~) stays below 2^71. */
static void margin_long(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const int64_t *w, int64_t start, int64_t *z)
{
    enum { LOW = 19, MOST = 1 << 18 }; /* bits, and pairs of columns that are summed at a time */
    for (ptrdiff_t p = 0; p < n_panels; p++, z += PANEL) {
        for (int r = 0; r < PANEL; r++)
            z[r] = start;
        for (ptrdiff_t j = 0; j < pairs;) {
            const ptrdiff_t last = pairs - j < MOST ? pairs : j + MOST;
            double low[PANEL] = {0}, high[PANEL] = {0};
            for (; j < last; j++, panels += PANEL) {
                const double low0 = (double)(w[2 * j] & ((1 << LOW) - 1));
                const double low1 = (double)(w[2 * j + 1] & ((1 << LOW) - 1));
                const double high0 = (double)(w[2 * j] >> LOW), high1 = (double)(w[2 * j + 1] >> LOW);
                for (int r = 0; r < PANEL; r++) {
                    const double x0 = FIRST_OF(panels[r]), x1 = SECOND_OF(panels[r]);
                    low[r] += x0 * low0 + x1 * low1;
                    high[r] += x0 * high0 + x1 * high1;
                }
            }
            for (int r = 0; r < PANEL; r++)
                z[r] = (int64_t)((uint64_t)z[r] + (uint64_t)(int64_t)low[r]
                                 + ((uint64_t)(int64_t)high[r] << LOW));
        }
    }
}

/* The same of sparse records; w is (d+1,), the last one as it is, not times 2^a. */
static void sparse_margin_long(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                               const int64_t *w, ptrdiff_t d, int a, int64_t *__restrict z)
{
    const int64_t *one_start = rows->one_start, *value_start = rows->value_start;
    const int32_t *one_column = rows->one_column, *value_column = rows->value_column;
    const int16_t *value = rows->value;
    for (ptrdiff_t r = first; r < last; r++) {
        uint64_t even = 0, odd = 0, values = (uint64_t)w[d];
        int64_t i = one_start[r], end = one_start[r + 1];
        for (; i + 1 < end; i += 2) {
            CHECK(one_column[i] >= 0 && one_column[i] < d);
            even += (uint64_t)w[one_column[i]];
            odd += (uint64_t)w[one_column[i + 1]];
        }
        if (i < end)
            even += (uint64_t)w[one_column[i]];
        for (i = value_start[r]; i < value_start[r + 1]; i++) {
            CHECK(value_column[i] >= 0 && value_column[i] < d);
            values += (uint64_t)w[value_column[i]] * (uint64_t)(int64_t)value[i];
        }
        z[r - first] = (int64_t)(((even + odd) << a) + values);
    }
}

/* exp(-t) for 0 <= t <= 64, relative error below 2^-50: t = k ln 2 + f with abs(f) <= 0.35, the series
 * of exp(-f) up to f^13 (the next term is below 2^-57), then the exponent. k times the upper part of
 * ln 2 is exact. */
static ALWAYS_INLINE double exp_minus_long(double t)
{
    const double shifted = t * 1.4426950408889634 + TO_WHOLE, k = shifted - TO_WHOLE;
    const double f = k * 0.6931471805582987 - t + k * 1.6465949582897082e-12; /* minus f */
    const double f2 = f * f, f4 = f2 * f2, f8 = f4 * f4;
    double u = (1.0 + f) + f2 * (1.0 / 2 + f * (1.0 / 6))
        + f4 * ((1.0 / 24 + f * (1.0 / 120)) + f2 * (1.0 / 720 + f * (1.0 / 5040)))
        + f8 * ((1.0 / 40320 + f * (1.0 / 362880)) + f2 * (1.0 / 3628800 + f * (1.0 / 39916800))
                + f4 * (1.0 / 479001600 + f * (1.0 / 6227020800)));
    const uint64_t bits = bits_of(u) - (bits_of(shifted) << 52);
    memcpy(&u, &bits, sizeof u);
    return u;
}

/* Of each margin z: minus the slope of its loss, with the sign of the class; and the curvature, relative
 * to the largest. */
static void logistic_smooth(const double *__restrict z, ptrdiff_t n, double sign, double width,
                            double *__restrict slope, double *__restrict bend)
{
    (void)width;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double m = sign * z[i], t = m < 0 ? -m : m;
        const double u = exp_minus_long(t < 64.0 ? t : 64.0), part = 1.0 / (1.0 + u);
        slope[i] = sign * (m < 0 ? part : u * part);
        bend[i] = 4.0 * u * part * part;
    }
}

/* The hinge max(1 - m, 0), rounded by a parabola within `width` of 1. */
static void hinge_smooth(const double *__restrict z, ptrdiff_t n, double sign, double width,
                         double *__restrict slope, double *__restrict bend)
{
    const double largest = 1.0 / (2.0 * width);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double m = sign * z[i], inside = ((1.0 + width) - m) * largest;
        const double s = inside < 0.0 ? 0.0 : inside > 1.0 ? 1.0 : inside;
        slope[i] = sign * s;
        bend[i] = inside > 0.0 && inside < 1.0 ? 1.0 : 0.0;
    }
}

/* A loss by its slopes at equidistant margins, a straight line in between, and constant beyond. Rows of
 * the table are cells (minus the slope at the left end, what it falls by, the curvature relative to the
 * largest), `per_unit` of them to a margin of 1, 0 in the middle; the first and the last are those
 * beyond. per_unit is a power of two, so that f is off by 2^-53 at most. */
static void table_smooth(const double *__restrict z, ptrdiff_t n, double sign, const double *table,
                         ptrdiff_t cells, double per_unit, double *__restrict slope,
                         double *__restrict bend)
{
    const ptrdiff_t half = cells / 2;
    const double last = (double)(half - 1);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double scaled = sign * z[i] * per_unit, below = scaled < -half ? -(double)half : scaled;
        const double m = below > last ? last : below;
        ptrdiff_t cell = (ptrdiff_t)m;
        cell -= m < (double)cell;
        const double f = m - (double)cell;
        const double *row = table + 3 * (cell + half);
        slope[i] = sign * (row[0] - f * row[1]);
        bend[i] = row[2];
    }
}

/* out[j] += sum over records of residual x_j, each product rounded to a whole number. */
static void pull(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                 const double *residual, int64_t *out)
{
    const uint64_t surplus = (uint64_t)(n_panels * PANEL) * bits_of(TO_WHOLE);
    for (ptrdiff_t j = 0; j < pairs; j++) {
        uint64_t evens[PANEL] = {0}, odds[PANEL] = {0}, even = 0, odd = 0;
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            const int32_t *x = panels + (p * pairs + j) * PANEL;
            const double *v = residual + p * PANEL;
            for (int r = 0; r < PANEL; r++) {
                evens[r] += bits_of(v[r] * FIRST_OF(x[r]) + TO_WHOLE);
                odds[r] += bits_of(v[r] * SECOND_OF(x[r]) + TO_WHOLE);
            }
        }
        for (int r = 0; r < PANEL; r++)
            even += evens[r], odd += odds[r];
        out[2 * j] += (int64_t)(even - surplus);
        out[2 * j + 1] += (int64_t)(odd - surplus);
    }
}

/* The same of sparse records, whose ones are 2^a. */
static void sparse_pull(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last, ptrdiff_t d, int a,
                        const double *__restrict residual, int64_t *__restrict out)
{
    const int64_t *one_start = rows->one_start, *value_start = rows->value_start;
    const int32_t *one_column = rows->one_column, *value_column = rows->value_column;
    const int16_t *value = rows->value;
    for (ptrdiff_t r = first; r < last; r++) {
        const double v = residual[r - first];
        const int64_t one = whole_of(v * (double)(1 << a));
        for (int64_t i = one_start[r]; i < one_start[r + 1]; i++) {
            CHECK(one_column[i] >= 0 && one_column[i] < d);
            out[one_column[i]] += one;
        }
        for (int64_t i = value_start[r]; i < value_start[r + 1]; i++) {
            CHECK(value_column[i] >= 0 && value_column[i] < d);
            out[value_column[i]] += whole_of(v * value[i]);
        }
        out[d] += one; /* the intercept */
    }
}

/* Split numbers v into whole ones and `fine` times what is left of each, rounded to a whole one. A slope
 * times 2^(45 - a) is below 2^45, so that nothing but that last rounding is lost. */
static void split(double *__restrict v, ptrdiff_t n, double fine, double *__restrict rest)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double whole = (v[i] + TO_WHOLE) - TO_WHOLE;
        rest[i] = ((v[i] - whole) * fine + TO_WHOLE) - TO_WHOLE;
        v[i] = whole;
    }
}

/* The sum of v times a power of two, each rounded to a whole number. */
static int64_t whole_sum(const double *v, ptrdiff_t n, double unit)
{
    uint64_t total = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        total += (uint64_t)whole_of(v[i] * unit);
    return (int64_t)total;
}
