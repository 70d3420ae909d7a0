/* The chain over synthetic records: random numbers in blocks, the density of proposals, the walk.
 *
 * Records are int16 rows of `width` entries: d coordinates, a one for the count, zeros up to a
 * multiple of four. So counts and sums of a cluster are one row of doubles, which hold whole
 * numbers below 2^53: adding and taking away records is exact. No fused multiply-add, no libm: the
 * same seed walks the same path on every machine.
 */

/* --------------------------------------------------------------------------------- random numbers */

static inline uint64_t turn_left(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* Words of STREAMS generators xoshiro256++ (Blackman and Vigna 2021) in turns; n is a multiple. */
static void stream_words(uint64_t *state, ptrdiff_t n, uint64_t *out)
{
    uint64_t *s0 = state, *s1 = s0 + STREAMS, *s2 = s1 + STREAMS, *s3 = s2 + STREAMS;
    CHECK(n % STREAMS == 0);
    for (ptrdiff_t i = 0; i < n; i += STREAMS)
        for (int l = 0; l < STREAMS; l++) {
            uint64_t a = s0[l], b = s1[l], c = s2[l], d = s3[l];
            out[i + l] = turn_left(a + d, 23) + a;
            c ^= a, d ^= b;
            s0[l] = a ^ d, s1[l] = b ^ c;
            s2[l] = c ^ (b << 17), s3[l] = turn_left(d, 45);
        }
}

/* A whole number below 2^52 as a double. */
static inline double small_double(uint64_t x)
{
    double r;
    x |= 0x4330000000000000u; /* 2^52 + x */
    memcpy(&r, &x, sizeof r);
    return r - 4503599627370496.0;
}

/* ln u for a normal u > 0, absolute error below 1e-14: u = 2^e m with m in [sqrt 1/2, sqrt 2),
 * ln m = 2 atanh((m - 1) / (m + 1)). */
static inline double natural_log(double u)
{
    uint64_t bits;
    double m;
    memcpy(&bits, &u, sizeof bits);
    bits += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu;
    const double e = small_double(bits >> 52) - 1023.0;
    bits = (bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1.0) / (m + 1.0), z = s * s, z2 = z * z, z4 = z2 * z2;
    const double low = (1.0 + z * (1.0 / 3)) + z2 * (1.0 / 5 + z * (1.0 / 7));
    const double high = (1.0 / 9 + z * (1.0 / 11)) + z2 * (1.0 / 13 + z * (1.0 / 15));
    return e * 0.693147180559945309 + 2.0 * s * (low + z4 * high);
}

/* ln of a uniform number in (0, 1), from 52 bits. */
static void log_uniforms(const uint64_t *words, ptrdiff_t n, double *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = natural_log((small_double(words[i] >> 12) + 0.5) * 0x1p-52);
}

/* Two normal numbers a word (Box and Muller): the upper half is a radius, the lower an angle. */
static void normals(const uint64_t *words, ptrdiff_t n, double *even, double *odd)
{
    const double to_nearest = 6755399441055744.0; /* 1.5 2^52 */
    for (ptrdiff_t i = 0; i < n; i++) {
        const double radius = sqrt(-2.0 * natural_log((small_double(words[i] >> 32) + 0.5) * 0x1p-32));
        const double quarters = small_double(words[i] & 0xffffffffu) * 0x1p-30;
        const double nearest = quarters + to_nearest;
        const double x = (quarters - (nearest - to_nearest)) * 1.57079632679489662;
        const double z = x * x, z2 = z * z, z4 = z2 * z2;
        const double s = x * ((1.0 - z * (1.0 / 6)) + z2 * (1.0 / 120 - z * (1.0 / 5040))
                 + z4 * ((1.0 / 362880 - z * (1.0 / 39916800)) + z2 * (1.0 / 6227020800.0)));
        const double c = (1.0 - z * 0.5) + z2 * (1.0 / 24 - z * (1.0 / 720))
                 + z4 * ((1.0 / 40320 - z * (1.0 / 3628800)) + z2 * (1.0 / 479001600.0 - z * (1.0 / 87178291200.0)));
        uint64_t quadrant;
        memcpy(&quadrant, &nearest, sizeof quadrant);
        const double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
        odd[i] = radius * (quadrant & 2 ? -a : a);
        even[i] = radius * ((quadrant + 1) & 2 ? -b : b);
    }
}

/* ------------------------------------------------------------------------------------- proposals */

/* A block of proposals: component and index from `words` (CROWD), columns from `noise`
 * (d, CROWD). Coordinates go to `whole` (d, CROWD). What is outside becomes zero, and its log_u
 * infinite, so that it is refused. */
static void place(const chain_source *source, const uint64_t *words, uint64_t n, const double *noise,
                  int32_t *whole, int32_t *component, int32_t *index, double *log_u)
{
    const double to_nearest = 6755399441055744.0; /* 1.5 2^52 */
    const ptrdiff_t d = source->d;
    const double *from[CROWD];
    double size[CROWD], outside[CROWD];
    for (int i = 0; i < CROWD; i++) {
        index[i] = (int32_t)((words[i] & 0xffffffffu) * n >> 32);
        component[i] = source->slots[words[i] >> source->slot_shift];
        from[i] = source->centers + d * component[i];
        size[i] = outside[i] = 0.0;
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        const double spread = source->spread[j], low = source->bounds[j], high = source->bounds[d + j];
        for (int i = 0; i < CROWD; i++) {
            double v = from[i][j] + spread * noise[j * CROWD + i];
            v = v < low - 1.0 ? low - 1.0 : v > high + 1.0 ? high + 1.0 : v;
            v = (v + to_nearest) - to_nearest;
            outside[i] = v < low || v > high ? 1.0 : outside[i];
            size[i] += source->norm == L2 ? v * v : fabs(v);
            whole[j * CROWD + i] = (int32_t)v;
        }
    }
    for (int i = 0; i < CROWD; i++)
        if (outside[i] > 0.0 || (source->norm && size[i] > source->limit)) {
            log_u[i] = INFINITY;
            for (ptrdiff_t j = 0; j < d; j++)
                whole[j * CROWD + i] = 0;
        }
}

/* CROWD records (d, CROWD) as rows of the chain, as panels, and their squares. */
static void lay_out(const int32_t *whole, ptrdiff_t d, ptrdiff_t width, int16_t *points,
                    int16_t *panels, double *square)
{
    const ptrdiff_t pairs = (d + 1) / 2;
    for (int i = 0; i < CROWD; i++)
        square[i] = 0.0;
    for (ptrdiff_t j = 0; j < d; j++, whole += CROWD) {
        int16_t *column = panels + (j / 2) * 2 * PANEL + j % 2;
        for (int i = 0; i < CROWD; i++)
            square[i] += (double)whole[i] * (double)whole[i];
        for (int i = 0; i < CROWD; i++)
            points[i * width + j] = (int16_t)whole[i];
        for (int p = 0; p < CROWD / PANEL; p++)
            for (int r = 0; r < PANEL; r++)
                column[p * pairs * 2 * PANEL + 2 * r] = (int16_t)whole[p * PANEL + r];
    }
}

/* ---------------------------------------------------------------------- clusters and the density */

/* The nearest of k centres for CROWD records, and z of it; ties go to the lowest index. z is
 * (k, CROWD), and indices count from `first`. */
static void nearest_of(const int32_t *z, ptrdiff_t k, int32_t first, int32_t *which, int32_t *least)
{
    for (int i = 0; i < CROWD; i++)
        least[i] = z[i], which[i] = first;
    for (ptrdiff_t c = 1; c < k; c++)
        keep_nearest(z + c * CROWD, CROWD, first + (int32_t)c, least, which);
}

/* ln sum over sets of weight exp(-precision distance) of the nearest centre, for CROWD records;
 * which and least are (sets, CROWD), and a distance is `least` plus the record's own square. The
 * nearest of all is taken out of the sum, so that nothing vanishes. */
static void density(const int32_t *which, const int32_t *least, ptrdiff_t sets, const float *weight,
                    double precision, const double *square, double *out)
{
    const float to_log2 = (float)(precision / 0.693147180559945309);
    /* Terms below 2^-60 cannot be seen; at most 2^-120 keeps exp_minus within a float's exponents. */
    const float limit = 60.0f / to_log2;
    const int32_t far = limit < 2147483000.0f ? (int32_t)limit + 1 : 2147483000;
    const float scale = to_log2 < 60.0f ? to_log2 : 60.0f;
    int32_t nearest[CROWD], reach[CROWD];
    float share[CROWD], total[CROWD];
    for (int i = 0; i < CROWD; i++)
        nearest[i] = least[i], total[i] = 0.0f;
    for (ptrdiff_t s = 1; s < sets; s++)
        for (int i = 0; i < CROWD; i++)
            nearest[i] = least[s * CROWD + i] < nearest[i] ? least[s * CROWD + i] : nearest[i];
    for (int i = 0; i < CROWD; i++)
        reach[i] = nearest[i] < 2147483647 - far ? nearest[i] + far : 2147483647;
    for (ptrdiff_t s = 0; s < sets; s++) {
        for (int i = 0; i < CROWD; i++)
            share[i] = weight[which[s * CROWD + i]];
        for (int i = 0; i < CROWD; i++) {
            const int32_t v = least[s * CROWD + i], near = v < reach[i] ? v : reach[i];
            total[i] += share[i] * exp_minus((float)(near - nearest[i]) * scale);
        }
    }
    for (int i = 0; i < CROWD; i++)
        out[i] = natural_log((double)total[i]) - precision * ((double)nearest[i] + square[i]);
}

/* Proposals of a component that is not the nearest of its set: their log_u becomes infinite. */
static void refuse_strays(const int32_t *component, const int32_t *which, ptrdiff_t sets, double *log_u)
{
    int32_t at_home[CROWD];
    for (int i = 0; i < CROWD; i++)
        at_home[i] = 0;
    for (ptrdiff_t s = 0; s < sets; s++)
        for (int i = 0; i < CROWD; i++)
            at_home[i] |= which[s * CROWD + i] == component[i];
    for (int i = 0; i < CROWD; i++)
        log_u[i] = at_home[i] ? log_u[i] : INFINITY;
}

/* ----------------------------------------------------------------------------------- the walk */

#define FETCH fetch

static ALWAYS_INLINE four misfit(four row, const int quadratic)
{
    return quadratic ? four_mul(row, row) : four_abs(row);
}

/* The best state is the points as they were when it was reached: `best` lacks the points in the list
 * `stale`, which are copied when the chain leaves the best state, or ends there. */
static void save_best(chain_state *s)
{
    for (ptrdiff_t i = 0; i < s->n_stale; i++) {
        const ptrdiff_t j = s->stale[i];
        for (ptrdiff_t c = 0; c < s->width; c += 4) /* of known size: a move, not a call */
            memcpy(s->best + j * s->width + c, s->points + j * s->width + c, 4 * sizeof *s->best);
        s->is_stale[j] = 0;
    }
    s->n_stale = 0;
}

static ALWAYS_INLINE void walk_of(chain_state *s, const chain_block *b, const ptrdiff_t fours,
                                  const int quadratic)
{
    enum { AHEAD = 8 };
    const ptrdiff_t T = s->sets, width = 4 * fours;
    for (ptrdiff_t i = 0; i < b->n; i++) {
        if (i + AHEAD < b->n) {
            const ptrdiff_t j = b->index[i + AHEAD];
            FETCH(s->points + j * width);
            FETCH(s->ids + j * T);
            FETCH(s->log_q + j);
        }
        const ptrdiff_t j = b->index[i];
        const int16_t *x = b->points + i * width;
        uint16_t *from = s->ids + j * T;
        const uint16_t *to = b->ids + i * T;
        int16_t *y = s->points + j * width;

        /* Without y a cluster's residual grows by y, with x it shrinks by x; where both are one
         * cluster, it changes once. Branches beat masks: sets agree on what is one cluster. */
        if (b->log_u[i] == INFINITY)
            continue;
        four change = four_zero();
        for (ptrdiff_t f = 0; f < fours; f++) {
            const four less = four_of_words(y + 4 * f), more = four_of_words(x + 4 * f);
            four lefts = four_zero(), rights = four_zero(); /* two short chains of additions */
            for (ptrdiff_t t = 0; t < T; t++) {
                const four left = four_load(s->rows + from[t] * width + 4 * f);
                four grown = four_add(left, less);
                if (from[t] == to[t]) {
                    grown = four_sub(grown, more);
                } else {
                    const four right = four_load(s->rows + to[t] * width + 4 * f);
                    rights = four_add(rights, four_sub(misfit(right, quadratic),
                                                       misfit(four_sub(right, more), quadratic)));
                }
                lefts = four_add(lefts, four_sub(misfit(left, quadratic), misfit(grown, quadratic)));
            }
            change = four_add(change, four_mul(four_load(s->weight + 4 * f), four_add(lefts, rights)));
        }
        const double gain = four_sum(change);
        if (!(b->log_u[i] < b->beta * gain + b->tilt * (s->log_q[j] - b->log_q[i])))
            continue;

        if (s->at_best && gain < 0.0)
            save_best(s), s->at_best = 0;
        for (ptrdiff_t f = 0; f < fours; f++) {
            const four less = four_of_words(y + 4 * f), more = four_of_words(x + 4 * f);
            for (ptrdiff_t t = 0; t < T; t++) {
                double *left = s->rows + from[t] * width + 4 * f, *right = s->rows + to[t] * width + 4 * f;
                four_store(left, four_add(four_load(left), less));
                four_store(right, four_sub(four_load(right), more));
            }
            memcpy(y + 4 * f, x + 4 * f, 4 * sizeof *y);
        }
        for (ptrdiff_t t = 0; t < T; t++)
            from[t] = to[t];
        s->log_q[j] = b->log_q[i];
        if (!s->is_stale[j])
            s->is_stale[j] = 1, s->stale[s->n_stale++] = j;
        s->accepted++;
        s->value += gain;
        if (s->value > s->best_value)
            s->best_value = s->value, s->at_best = 1;
    }
}

/* One block of proposals in their order. Few columns: a loop of known length is unrolled. */
static void walk(chain_state *s, const chain_block *b, int quadratic)
{
    if (quadratic)
        switch (s->width / 4) {
        case 1: walk_of(s, b, 1, 1); break;
        case 2: walk_of(s, b, 2, 1); break;
        case 3: walk_of(s, b, 3, 1); break;
        default: walk_of(s, b, s->width / 4, 1);
        }
    else
        switch (s->width / 4) {
        case 1: walk_of(s, b, 1, 0); break;
        case 2: walk_of(s, b, 2, 0); break;
        case 3: walk_of(s, b, 3, 0); break;
        default: walk_of(s, b, s->width / 4, 0);
        }
}

/* The log likelihood of the rows, from scratch. */
static double log_likelihood(const chain_state *s, ptrdiff_t n_rows, int quadratic)
{
    four total = four_zero();
    for (ptrdiff_t r = 0; r < n_rows; r++)
        for (ptrdiff_t j = 0; j < s->width; j += 4)
            total = four_add(total, four_mul(four_load(s->weight + j), misfit(four_load(s->rows + r * s->width + j), quadratic)));
    return -four_sum(total);
}
