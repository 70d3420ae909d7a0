/* Linear models: a margin z = <x~, w> is an integer in units of 2^-(a+b), a loss an integer of it. */

/* The microkernel: eight sums in registers, of QUAD candidates (or centres) by PANEL records. TERM
 * takes a pair of columns of eight records and the same pair of one candidate. */
#define QUAD_START(START)                                                                       \
    lanes z00 = lanes_all((START)[0]), z10 = lanes_all((START)[1]);                             \
    lanes z20 = lanes_all((START)[2]), z30 = lanes_all((START)[3]);                             \
    lanes z01 = z00, z11 = z10, z21 = z20, z31 = z30

#define QUAD_STEP(TERM, X, V)                                                                   \
    do {                                                                                        \
        lanes x0 = lanes_load(X), x1 = lanes_load((X) + LANES), v1;                             \
        v1 = lanes_all((V)[0]);                                                                 \
        z00 = lanes_add(z00, TERM(x0, v1)), z01 = lanes_add(z01, TERM(x1, v1));                 \
        v1 = lanes_all((V)[1]);                                                                 \
        z10 = lanes_add(z10, TERM(x0, v1)), z11 = lanes_add(z11, TERM(x1, v1));                 \
        v1 = lanes_all((V)[2]);                                                                 \
        z20 = lanes_add(z20, TERM(x0, v1)), z21 = lanes_add(z21, TERM(x1, v1));                 \
        v1 = lanes_all((V)[3]);                                                                 \
        z30 = lanes_add(z30, TERM(x0, v1)), z31 = lanes_add(z31, TERM(x1, v1));                 \
    } while (0)

/* z[c][r] = start[c] + sum over pairs of TERM, for QUAD candidates: margins of linear models, or l1
 * distances to centres. panels are (n_panels, pairs, PANEL), w is (pairs, QUAD). */
#define QUAD_SUMS(NAME, TERM)                                                                   \
    static void NAME(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,                \
                     const int32_t *w, const int32_t *start, int32_t *z, ptrdiff_t stride)      \
    {                                                                                           \
        for (ptrdiff_t p = 0; p < n_panels; p++, z += PANEL) {                                  \
            QUAD_START(start);                                                                  \
            const int32_t *v = w;                                                               \
            for (ptrdiff_t j = 0; j < pairs; j++, panels += PANEL, v += QUAD)                   \
                QUAD_STEP(TERM, panels, v);                                                     \
            lanes_store(z, z00), lanes_store(z + LANES, z01);                                   \
            lanes_store(z + stride, z10), lanes_store(z + stride + LANES, z11);                 \
            lanes_store(z + 2 * stride, z20), lanes_store(z + 2 * stride + LANES, z21);         \
            lanes_store(z + 3 * stride, z30), lanes_store(z + 3 * stride + LANES, z31);         \
        }                                                                                       \
    }

QUAD_SUMS(margins, lanes_pairs)
QUAD_SUMS(gaps, lanes_gaps)

/* z[r] of one candidate; w is (pairs,). */
static void margin(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                   const int32_t *w, int32_t start, int32_t *z)
{
    for (ptrdiff_t p = 0; p < n_panels; p++, z += PANEL) {
        lanes z0 = lanes_all(start), z1 = z0;
        for (ptrdiff_t j = 0; j < pairs; j++, panels += PANEL) {
            lanes v = lanes_all(w[j]);
            z0 = lanes_add(z0, lanes_pairs(lanes_load(panels), v));
            z1 = lanes_add(z1, lanes_pairs(lanes_load(panels + LANES), v));
        }
        lanes_store(z, z0), lanes_store(z + LANES, z1);
    }
}

/* The same for margins beyond 32 bits; every partial sum is an integer below 2^53, hence exact. */
static void margin_wide(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const double *w, double start, double *z)
{
    for (ptrdiff_t p = 0; p < n_panels; p++, z += PANEL) {
        for (int r = 0; r < PANEL; r++)
            z[r] = start;
        for (ptrdiff_t j = 0; j < pairs; j++, panels += 2 * PANEL)
            for (int r = 0; r < PANEL; r++)
                z[r] += w[2 * j] * panels[2 * r] + w[2 * j + 1] * panels[2 * r + 1];
    }
}

/* z[r][c] of WIDTH candidates; w is (d+1, WIDTH), the intercept last. A one is a pure addition. */
static void sparse_margins(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                           const int32_t *w, ptrdiff_t d, int a, int32_t *z)
{
    for (ptrdiff_t r = first; r < last; r++, z += WIDTH) {
        const int32_t *v = w + d * WIDTH;
        lanes z0 = lanes_load(v), z1 = lanes_load(v + LANES);
        lanes z2 = lanes_load(v + 2 * LANES), z3 = lanes_load(v + 3 * LANES);
        for (int64_t i = rows->one_start[r]; i < rows->one_start[r + 1]; i++) {
            CHECK(rows->one_column[i] >= 0 && rows->one_column[i] < d);
            v = w + (ptrdiff_t)rows->one_column[i] * WIDTH;
            z0 = lanes_add(z0, lanes_load(v));
            z1 = lanes_add(z1, lanes_load(v + LANES));
            z2 = lanes_add(z2, lanes_load(v + 2 * LANES));
            z3 = lanes_add(z3, lanes_load(v + 3 * LANES));
        }
        z0 = lanes_left(z0, a), z1 = lanes_left(z1, a);
        z2 = lanes_left(z2, a), z3 = lanes_left(z3, a);
        for (int64_t i = rows->value_start[r]; i < rows->value_start[r + 1]; i++) {
            CHECK(rows->value_column[i] >= 0 && rows->value_column[i] < d);
            lanes x = lanes_all(rows->value[i]);
            v = w + (ptrdiff_t)rows->value_column[i] * WIDTH;
            z0 = lanes_add(z0, lanes_mul(x, lanes_load(v)));
            z1 = lanes_add(z1, lanes_mul(x, lanes_load(v + LANES)));
            z2 = lanes_add(z2, lanes_mul(x, lanes_load(v + 2 * LANES)));
            z3 = lanes_add(z3, lanes_mul(x, lanes_load(v + 3 * LANES)));
        }
        lanes_store(z, z0), lanes_store(z + LANES, z1);
        lanes_store(z + 2 * LANES, z2), lanes_store(z + 3 * LANES, z3);
    }
}

/* The same where the sum over a record's ones is sure to fit in 16 bits: two candidates share a lane,
 * half the loads. pairs is (d+1, WIDTH/2): w[c] + 2^16 w[c + WIDTH/2], whose sums part again. */
static void sparse_margins_paired(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                  const int32_t *w, const int32_t *pairs, ptrdiff_t d, int a,
                                  int32_t *z)
{
    for (ptrdiff_t r = first; r < last; r++, z += WIDTH) {
        const int32_t *v = pairs + d * (WIDTH / 2);
        lanes s0 = lanes_load(v), s1 = lanes_load(v + LANES);
        for (int64_t i = rows->one_start[r]; i < rows->one_start[r + 1]; i++) {
            CHECK(rows->one_column[i] >= 0 && rows->one_column[i] < d);
            v = pairs + (ptrdiff_t)rows->one_column[i] * (WIDTH / 2);
            s0 = lanes_add(s0, lanes_load(v));
            s1 = lanes_add(s1, lanes_load(v + LANES));
        }
        lanes low0 = lanes_right(lanes_left(s0, 16), 16), low1 = lanes_right(lanes_left(s1, 16), 16);
        lanes z0 = lanes_left(low0, a), z1 = lanes_left(low1, a);
        lanes z2 = lanes_right(lanes_sub(s0, low0), 16 - a);
        lanes z3 = lanes_right(lanes_sub(s1, low1), 16 - a);
        for (int64_t i = rows->value_start[r]; i < rows->value_start[r + 1]; i++) {
            CHECK(rows->value_column[i] >= 0 && rows->value_column[i] < d);
            lanes x = lanes_all(rows->value[i]);
            v = w + (ptrdiff_t)rows->value_column[i] * WIDTH;
            z0 = lanes_add(z0, lanes_mul(x, lanes_load(v)));
            z1 = lanes_add(z1, lanes_mul(x, lanes_load(v + LANES)));
            z2 = lanes_add(z2, lanes_mul(x, lanes_load(v + 2 * LANES)));
            z3 = lanes_add(z3, lanes_mul(x, lanes_load(v + 3 * LANES)));
        }
        lanes_store(z, z0), lanes_store(z + LANES, z1);
        lanes_store(z + 2 * LANES, z2), lanes_store(z + 3 * LANES, z3);
    }
}

/* z[r] of one candidate; w is (d+1,). */
static void sparse_margin(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                          const int32_t *w, ptrdiff_t d, int a, int32_t *__restrict z)
{
    const int64_t *one_start = rows->one_start, *value_start = rows->value_start;
    const int32_t *one_column = rows->one_column, *value_column = rows->value_column;
    const int16_t *value = rows->value;
    for (ptrdiff_t r = first; r < last; r++) {
        uint32_t even = (uint32_t)w[d], odd = 0, values = 0;
        int64_t i = one_start[r], end = one_start[r + 1];
        for (; i + 1 < end; i += 2) {
            CHECK(one_column[i] >= 0 && one_column[i] < d);
            even += (uint32_t)w[one_column[i]];
            odd += (uint32_t)w[one_column[i + 1]];
        }
        if (i < end)
            even += (uint32_t)w[one_column[i]];
        for (i = value_start[r]; i < value_start[r + 1]; i++)
            values += (uint32_t)w[value_column[i]] * (uint32_t)(int32_t)value[i];
        z[r - first] = (int32_t)(((even + odd) << a) + values);
    }
}

/* exp(-t) for t >= 0, given y = t / ln 2: 2^-f by a polynomial (relative error 2.6e-6), then the
 * exponent. Both polynomials are summed in pairs, since latency is what binds the loop. No fused
 * multiply-add: the bits are the same on every machine. */
static inline float exp_minus(float y)
{
    int32_t k = (int32_t)y, bits;
    float f = y - (float)k, f2 = f * f;
    float u = (0.99999741f - 0.6930302f * f)
            + f2 * ((0.23934107f - 0.05307406f * f) + f2 * 0.00676708f);
    memcpy(&bits, &u, sizeof bits);
    bits -= k * (1 << 23);
    memcpy(&u, &bits, sizeof u);
    return u;
}

/* ln(1 + u) for u in [0, 1], absolute error 1.5e-6. */
static inline float log_one_plus(float u)
{
    float u2 = u * u;
    return u * ((0.99990164f - 0.49787498f * u)
                + u2 * ((0.31764862f - 0.19376005f * u) + u2 * (0.08556911f - 0.01833858f * u)));
}

/* ln(1 + exp(-abs z)) in margin units. Two short loops over a buffer in L1 run 1.4 times faster
 * than one long one: their chains of dependent operations overlap. */
static void tails(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t *out)
{
    const loss_args p = *args;
    float u[BLOCK];
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t t = z[i] < 0 ? -z[i] : z[i];
        t = t < p.far ? t : p.far;
        u[i] = exp_minus((float)t * p.to_log2);
    }
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (int32_t)(log_one_plus(u[i]) * (float)p.one);
}

static void no_tails(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t *out)
{
    (void)z, (void)n, (void)args, (void)out;
}

/* ln(1 + exp(-m)) = max(-m, 0) + ln(1 + exp(-abs m)), rounded once to the nearest score unit. */
static inline uint32_t logistic_of(int32_t z, int32_t tail, loss_args p)
{
    int32_t m = (z ^ p.flip) - p.flip;
    return ((uint32_t)(-m & (m >> 31)) + (uint32_t)tail + (1u << p.shift >> 1)) >> p.shift;
}

static inline uint32_t hinge_of(int32_t z, int32_t tail, loss_args p)
{
    int32_t h = p.one - ((z ^ p.flip) - p.flip);
    (void)tail;
    return ((uint32_t)(h & ~(h >> 31)) + (1u << p.shift >> 1)) >> p.shift;
}

static inline uint32_t hinge_scaled_of(int32_t z, int32_t tail, loss_args p)
{
    int32_t h = p.one - ((z ^ p.flip) - p.flip);
    (void)tail;
    return (uint32_t)(int32_t)((double)(h & ~(h >> 31)) * p.factor + 0.5);
}

/* Predict 1 iff z > 0. */
static inline uint32_t zero_one_of(int32_t z, int32_t tail, loss_args p)
{
    (void)tail;
    return (uint32_t)((z > 0) ^ (p.flip + 1));
}

/* Of each loss: the sum over records, each record's integer, the sums over rows of WIDTH candidates. */
#define LOSS_LOOPS(NAME, TAILS)                                                                 \
    static int64_t NAME##_sum(const int32_t *z, ptrdiff_t n, const loss_args *args)             \
    {                                                                                           \
        const loss_args p = *args;                                                              \
        int32_t tail[BLOCK];                                                                    \
        int64_t total = 0;                                                                      \
        for (; n > 0; z += BLOCK, n -= BLOCK) {                                                 \
            ptrdiff_t block = n < BLOCK ? n : BLOCK;                                            \
            uint32_t sum = 0;                                                                   \
            TAILS(z, block, args, tail);                                                        \
            for (ptrdiff_t i = 0; i < block; i++)                                               \
                sum += NAME##_of(z[i], tail[i], p);                                             \
            total += sum;                                                                       \
        }                                                                                       \
        return total;                                                                           \
    }                                                                                           \
    static void NAME##_each(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t *out) \
    {                                                                                           \
        const loss_args p = *args;                                                              \
        int32_t tail[BLOCK];                                                                    \
        for (; n > 0; z += BLOCK, out += BLOCK, n -= BLOCK) {                                   \
            ptrdiff_t block = n < BLOCK ? n : BLOCK;                                            \
            TAILS(z, block, args, tail);                                                        \
            for (ptrdiff_t i = 0; i < block; i++)                                               \
                out[i] = (int32_t)NAME##_of(z[i], tail[i], p);                                  \
        }                                                                                       \
    }                                                                                           \
    static void NAME##_lanes(const int32_t *z, ptrdiff_t rows, const loss_args *args, int64_t *out) \
    {                                                                                           \
        const loss_args p = *args;                                                              \
        int32_t tail[BLOCK];                                                                    \
        uint32_t sum[WIDTH] = {0};                                                              \
        CHECK(rows <= BLOCK);                                                                   \
        for (; rows > 0; z += BLOCK, rows -= BLOCK / WIDTH) {                                   \
            ptrdiff_t block = rows < BLOCK / WIDTH ? rows : BLOCK / WIDTH;                      \
            TAILS(z, block * WIDTH, args, tail);                                                \
            for (ptrdiff_t r = 0; r < block; r++)                                               \
                for (int c = 0; c < WIDTH; c++)                                                 \
                    sum[c] += NAME##_of(z[r * WIDTH + c], tail[r * WIDTH + c], p);              \
        }                                                                                       \
        for (int c = 0; c < WIDTH; c++)                                                         \
            out[c] += sum[c];                                                                   \
    }

LOSS_LOOPS(logistic, tails)
LOSS_LOOPS(hinge, no_tails)
LOSS_LOOPS(hinge_scaled, no_tails)
LOSS_LOOPS(zero_one, no_tails)

/* The same integers from margins beyond 32 bits. */
static inline int32_t tail_wide(double z, loss_args p)
{
    double t = z < 0 ? -z : z;
    float near = (float)(t < p.far_wide ? t : p.far_wide);
    return (int32_t)(log_one_plus(exp_minus(near * p.to_log2)) * (float)p.one);
}

static inline int64_t rounded_shift(double v, int shift)
{
    return (int64_t)((v + (double)(1u << shift >> 1)) / (double)(1u << shift));
}

#define WIDE_LOSS(NAME, LOSS_OF_MARGIN)                                                         \
    static int64_t NAME##_wide(const double *z, ptrdiff_t n, const loss_args *args)             \
    {                                                                                           \
        const loss_args p = *args;                                                              \
        const double sign = p.flip ? -1.0 : 1.0;                                                \
        int64_t total = 0;                                                                      \
        for (ptrdiff_t i = 0; i < n; i++) {                                                     \
            double m = sign * z[i];                                                             \
            total += (LOSS_OF_MARGIN);                                                          \
        }                                                                                       \
        return total;                                                                           \
    }

WIDE_LOSS(logistic, rounded_shift((m < 0 ? -m : 0.0) + tail_wide(m, p), p.shift))
WIDE_LOSS(hinge, rounded_shift(m < p.one ? p.one - m : 0.0, p.shift))
WIDE_LOSS(hinge_scaled, (int64_t)((m < p.one ? p.one - m : 0.0) * p.factor + 0.5))
WIDE_LOSS(zero_one, (sign * m > 0) ^ (p.flip + 1))

/* out = z + step x_column: the margins of a one-coordinate move. */
static void shift_column(const int32_t *panels, ptrdiff_t n, ptrdiff_t pairs, ptrdiff_t column,
                         int32_t step, const int32_t *z, int32_t *out)
{
    const int up = column % 2 == FIRST_OF_PAIR_IS_HIGH ? 16 : 0; /* bring the int16 to the top */
    panels += column / 2 * PANEL;
    for (; n > 0; n -= PANEL, panels += pairs * PANEL, z += PANEL, out += PANEL)
        for (int r = 0; r < PANEL; r++)
            out[r] = z[r] + step * ((int32_t)((uint32_t)panels[r] << up) >> 16);
}

/* The same for the entries of a sparse column, whose margins were gathered. */
static void shift_entries(const int32_t *z, const int16_t *value, ptrdiff_t n, int32_t step,
                          int32_t *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = z[i] + step * value[i];
}

/* min(r(m), cap) times the class sign, in units of 2^-RESIDUAL_BITS, where r is minus the slope of the
 * loss: sigma(-m) of a logistic model, and max(1 - m, 0) of the hinge, which the cap makes Huber's. */
static inline int32_t capped(float share, loss_args p, int32_t cap)
{
    int32_t r = (int32_t)(share * (float)(1 << RESIDUAL_BITS) + 0.5f);
    r = r < cap ? r : cap;
    return (r ^ p.flip) - p.flip;
}

static inline float logistic_slope(double m, loss_args p)
{
    double t = m < 0 ? -m : m;
    float u = exp_minus((float)(t < p.far_wide ? t : p.far_wide) * p.to_log2); /* exp(-abs m) */
    return (m < 0 ? 1.0f : u) / (1.0f + u);
}

static inline float hinge_slope(double m, loss_args p)
{
    float h = (float)(m > 0 ? (m < p.one ? p.one - m : 0) : p.one); /* no cap exceeds 1 */
    return h / (float)p.one;
}

static void logistic_residuals(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t cap,
                               int32_t *out)
{
    const loss_args p = *args;
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t m = (z[i] ^ p.flip) - p.flip, t = m < 0 ? -m : m;
        t = t < p.far ? t : p.far;
        float u = exp_minus((float)t * p.to_log2);
        out[i] = capped((m < 0 ? 1.0f : u) / (1.0f + u), p, cap);
    }
}

static void hinge_residuals(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t cap,
                            int32_t *out)
{
    const loss_args p = *args;
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t m = (z[i] ^ p.flip) - p.flip;
        m = m > 0 ? m : 0;
        m = m < p.one ? m : p.one;
        out[i] = capped((float)(p.one - m) / (float)p.one, p, cap);
    }
}

#define WIDE_RESIDUALS(NAME)                                                                    \
    static void NAME##_residuals_wide(const double *z, ptrdiff_t n, const loss_args *args,       \
                                      int32_t cap, int32_t *out)                                \
    {                                                                                           \
        const loss_args p = *args;                                                              \
        for (ptrdiff_t i = 0; i < n; i++)                                                       \
            out[i] = capped(NAME##_slope(p.flip ? -z[i] : z[i], p), p, cap);                    \
    }

WIDE_RESIDUALS(logistic)
WIDE_RESIDUALS(hinge)

/* Each residual within the cap of its own record, whatever its sign. */
static void cap_each(int32_t *__restrict residual, ptrdiff_t n, const int16_t *__restrict cap)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t r = residual[i], top = cap[i];
        r = r < top ? r : top;
        residual[i] = r > -top ? r : -top;
    }
}

/* out[j] += sum over records of residual x_j. At most BLOCK/2 records, so that int32 lanes hold:
 * 16 terms of at most 2^14 2^RESIDUAL_BITS. work is (2, n_panels, PANEL): the residual in the
 * lower and in the upper half of a pair, so that one product yields one column. */
static void gradient(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                     const int32_t *residual, int32_t *work, int64_t *out)
{
    const ptrdiff_t n = n_panels * PANEL;
    CHECK(n <= BLOCK / 2);
    for (ptrdiff_t i = 0; i < n; i++) {
        int16_t even[2] = {(int16_t)residual[i], 0}, odd[2] = {0, (int16_t)residual[i]};
        memcpy(work + i, even, sizeof even);
        memcpy(work + n + i, odd, sizeof odd);
    }
    for (ptrdiff_t j = 0; j < pairs; j++) {
        lanes even = lanes_all(0), odd = even;
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            const int32_t *x = panels + (p * pairs + j) * PANEL, *r = work + p * PANEL;
            for (int half = 0; half < PANEL; half += LANES) {
                lanes v = lanes_load(x + half);
                even = lanes_add(even, lanes_pairs(v, lanes_load(r + half)));
                odd = lanes_add(odd, lanes_pairs(v, lanes_load(r + n + half)));
            }
        }
        int32_t sums[2][LANES];
        lanes_store(sums[0], even), lanes_store(sums[1], odd);
        for (int i = 0; i < LANES; i++)
            out[2 * j] += sums[0][i], out[2 * j + 1] += sums[1][i];
    }
}

/* The same for sparse records: ones[j] and values[j] += residual, residual x_j; intercept last. */
static void sparse_gradient(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last, ptrdiff_t d,
                            const int32_t *__restrict residual, int64_t *__restrict ones,
                            int64_t *__restrict values)
{
    const int64_t *one_start = rows->one_start, *value_start = rows->value_start;
    const int32_t *one_column = rows->one_column, *value_column = rows->value_column;
    const int16_t *value = rows->value;
    int64_t total = 0;
    for (ptrdiff_t r = first; r < last; r++) {
        const int64_t v = residual[r - first];
        total += v;
        for (int64_t i = one_start[r]; i < one_start[r + 1]; i++) {
            CHECK(one_column[i] >= 0 && one_column[i] < d);
            ones[one_column[i]] += v;
        }
        for (int64_t i = value_start[r]; i < value_start[r + 1]; i++) {
            CHECK(value_column[i] >= 0 && value_column[i] < d);
            values[value_column[i]] += v * value[i];
        }
    }
    ones[d] += total;
}

/* out[r]: the l1 norm, or the square of the l2 norm, of a record's image under a linear map. columns is
 * (d+1, k): where a unit of each column goes; the last row is added once. Sizes of coordinates lose
 * `shift` low bits, rounded up, and then have at most 30. Two columns are added at a time, so that the
 * sums are loaded and stored half as often. */
static void sparse_lengths(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                           const int64_t *columns, ptrdiff_t d, ptrdiff_t k, int a, int shift,
                           int squared, int64_t *out)
{
    const uint64_t up = ((uint64_t)1 << shift) - 1;
    for (ptrdiff_t r = first; r < last; r++) {
        uint64_t total = 0;
        for (ptrdiff_t j = 0; j < k; j += IMAGE) {
            const ptrdiff_t width = k - j < IMAGE ? k - j : IMAGE;
            const int64_t *start = columns + d * k + j;
            uint64_t z[IMAGE];
            int64_t i = rows->one_start[r];
            const int64_t end = rows->one_start[r + 1];
            for (ptrdiff_t c = 0; c < width; c++)
                z[c] = 0;
            for (; i + 1 < end; i += 2) {
                CHECK(rows->one_column[i] >= 0 && rows->one_column[i] < d);
                const int64_t *even = columns + rows->one_column[i] * k + j;
                const int64_t *odd = columns + rows->one_column[i + 1] * k + j;
                for (ptrdiff_t c = 0; c < width; c++)
                    z[c] += (uint64_t)even[c] + (uint64_t)odd[c];
            }
            if (i < end) {
                const int64_t *column = columns + rows->one_column[i] * k + j;
                for (ptrdiff_t c = 0; c < width; c++)
                    z[c] += (uint64_t)column[c];
            }
            for (ptrdiff_t c = 0; c < width; c++)
                z[c] = (z[c] << a) + (uint64_t)start[c];
            for (i = rows->value_start[r]; i < rows->value_start[r + 1]; i++) {
                const int64_t *column = columns + rows->value_column[i] * k + j;
                const uint64_t value = (uint64_t)(int64_t)rows->value[i];
                for (ptrdiff_t c = 0; c < width; c++)
                    z[c] += (uint64_t)column[c] * value;
            }
            for (ptrdiff_t c = 0; c < width; c++) {
                uint64_t size = (int64_t)z[c] < 0 ? 0 - z[c] : z[c];
                size = (size + up) >> shift;
                total += squared ? (uint64_t)(uint32_t)size * (uint32_t)size : size;
            }
        }
        out[r - first] = (int64_t)total;
    }
}

/* out = z + start: margins from what they are without the intercept. */
static void shift_all(const int32_t *z, ptrdiff_t n, int32_t start, int32_t *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (int32_t)((uint32_t)z[i] + (uint32_t)start);
}

/* z[row] += step value over the entries of one sparse column. */
static void shift_rows(const int32_t *row, const int16_t *value, ptrdiff_t n, int32_t step, int32_t *z)
{
    for (ptrdiff_t i = 0; i < n; i++)
        z[row[i]] = (int32_t)((uint32_t)z[row[i]] + (uint32_t)step * (uint32_t)(int32_t)value[i]);
}
