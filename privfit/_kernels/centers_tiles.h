/* Centres: squared l2 or l1 distances of records to centres, as exact integers of the grid.
 *
 * For l2 the record's own square is left out: norm2(c) - 2 <x, c> is a margin with weights -2c, and
 * the squares of the records are one constant for all candidates.
 */

/* The least distance of each record to 4 * quads centres; w is (quads, pairs, QUAD). The best so far
 * is kept in memory: eight sums, two records and a weight leave no register for it. */
#define NEAREST(NAME, TERM)                                                                     \
    static ALWAYS_INLINE void NAME##_of(                                                        \
        const int32_t *panels, ptrdiff_t n_panels, const ptrdiff_t pairs, const int32_t *w,     \
        const int32_t *start, ptrdiff_t quads, int32_t *best)                                   \
    {                                                                                           \
        for (ptrdiff_t p = 0; p < n_panels; p++, panels += pairs * PANEL, best += PANEL) {      \
            const int32_t *v = w, *s = start;                                                   \
            for (ptrdiff_t q = 0; q < quads; q++, s += QUAD) {                                  \
                QUAD_START(s);                                                                  \
                const int32_t *x = panels;                                                      \
                for (ptrdiff_t j = 0; j < pairs; j++, x += PANEL, v += QUAD)                    \
                    QUAD_STEP(TERM, x, v);                                                      \
                z00 = lanes_min(lanes_min(z00, z10), lanes_min(z20, z30));                      \
                z01 = lanes_min(lanes_min(z01, z11), lanes_min(z21, z31));                      \
                if (q > 0) {                                                                    \
                    z00 = lanes_min(z00, lanes_load(best));                                     \
                    z01 = lanes_min(z01, lanes_load(best + LANES));                             \
                }                                                                               \
                lanes_store(best, z00), lanes_store(best + LANES, z01);                         \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    /* Few columns: a loop of known length is unrolled, and 1.5 times as fast. */               \
    static void NAME(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,                \
                     const int32_t *w, const int32_t *start, ptrdiff_t quads, int32_t *best)    \
    {                                                                                           \
        switch (pairs) {                                                                        \
        case 1: NAME##_of(panels, n_panels, 1, w, start, quads, best); break;                   \
        case 2: NAME##_of(panels, n_panels, 2, w, start, quads, best); break;                   \
        case 3: NAME##_of(panels, n_panels, 3, w, start, quads, best); break;                   \
        case 4: NAME##_of(panels, n_panels, 4, w, start, quads, best); break;                   \
        default: NAME##_of(panels, n_panels, pairs, w, start, quads, best);                     \
        }                                                                                       \
    }

NEAREST(nearest_l1, lanes_gaps)
NEAREST(nearest_l2, lanes_pairs)

/* The full distance to one centre where 32 bits may not do; the record's square is included. */
static void distance_wide(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                          const double *centre, int power, double *z)
{
    for (ptrdiff_t p = 0; p < n_panels; p++, z += PANEL) {
        for (int r = 0; r < PANEL; r++)
            z[r] = 0;
        for (ptrdiff_t j = 0; j < pairs; j++, panels += 2 * PANEL)
            for (int r = 0; r < PANEL; r++) {
                double even = panels[2 * r] - centre[2 * j], odd = panels[2 * r + 1] - centre[2 * j + 1];
                z[r] += power == L2 ? even * even + odd * odd : fabs(even) + fabs(odd);
            }
    }
}

static int64_t sum(const int32_t *v, ptrdiff_t n)
{
    int64_t total = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        total += v[i];
    return total;
}

static int64_t sum_smaller(const int32_t *v, const int32_t *w, ptrdiff_t n)
{
    int64_t total = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        total += v[i] < w[i] ? v[i] : w[i];
    return total;
}

/* Ties go to the centre that was seen first, that is, to the lowest index. */
static void keep_nearest(const int32_t *z, ptrdiff_t n, int32_t index, int32_t *first, int32_t *which)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        which[i] = z[i] < first[i] ? index : which[i];
        first[i] = z[i] < first[i] ? z[i] : first[i];
    }
}

static void keep_two(const int32_t *z, ptrdiff_t n, int32_t index,
                     int32_t *first, int32_t *which, int32_t *second)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t v = z[i], f = first[i], s = second[i], loser = v < f ? f : v;
        which[i] = v < f ? index : which[i];
        first[i] = v < f ? v : f;
        second[i] = loser < s ? loser : s;
    }
}

/* The distance to the nearest centre if centre `index` were taken away. */
static void without(const int32_t *first, const int32_t *which, const int32_t *second, ptrdiff_t n,
                    int32_t index, int32_t *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = which[i] == index ? second[i] : first[i];
}

/* Add the records of each cluster: counts (k,), sums (k, 2 pairs). which is -1 for rows of padding.
 * Mask the records of one cluster, then take the columns of a pair apart by products with (1, 0)
 * and (0, 1). At most BLOCK rows, so that int32 lanes hold. */
static void member_sums(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const int32_t *which, ptrdiff_t k, int64_t *counts, int64_t *sums)
{
    const int16_t first[2] = {1, 0}, second[2] = {0, 1};
    int32_t even_one, odd_one, mask[BLOCK], total[2][LANES];
    memcpy(&even_one, first, sizeof even_one);
    memcpy(&odd_one, second, sizeof odd_one);
    CHECK(n_panels * PANEL <= BLOCK);
    for (ptrdiff_t c = 0; c < k; c++, sums += 2 * pairs) {
        int32_t members = 0;
        for (ptrdiff_t i = 0; i < n_panels * PANEL; i++) {
            mask[i] = -(which[i] == (int32_t)c);
            members -= mask[i];
        }
        counts[c] += members;
        for (ptrdiff_t j = 0; members && j < pairs; j++) {
            lanes even = lanes_all(0), odd = even;
            for (ptrdiff_t p = 0; p < n_panels; p++)
                for (int half = 0; half < PANEL; half += LANES) {
                    lanes x = lanes_and(lanes_load(panels + (p * pairs + j) * PANEL + half),
                                        lanes_load(mask + p * PANEL + half));
                    even = lanes_add(even, lanes_pairs(x, lanes_all(even_one)));
                    odd = lanes_add(odd, lanes_pairs(x, lanes_all(odd_one)));
                }
            lanes_store(total[0], even), lanes_store(total[1], odd);
            for (int i = 0; i < LANES; i++)
                sums[2 * j] += total[0][i], sums[2 * j + 1] += total[1][i];
        }
    }
}

/* The least integer whose square is at least `square`; sqrt of a double may be one off. */
static inline int64_t root_up(int64_t square)
{
    int64_t root = (int64_t)sqrt((double)square);
    while (root * root < square)
        root++;
    while (root > 0 && (root - 1) * (root - 1) >= square)
        root--;
    return root;
}

/* v f / 2^32, rounded towards zero */
static inline int64_t shrunk(int64_t v, int64_t f)
{
    int64_t product = v * f;
    return (product + ((product >> 63) & 0xffffffff)) >> 32;
}

/* Add each record's difference v to its centre, shrunk to a norm (1 or 2) of at most `radius`:
 * multiplied by f = floor(2^32 radius / L) / 2^32 if L, its norm rounded up, is larger, and rounded
 * towards zero. Its norm is then at most radius norm(v) / L <= radius. No branch but one a record:
 * the signs of differences cannot be foretold. */
static ALWAYS_INLINE void residual_sums_of(
    const int16_t *panels, const ptrdiff_t pairs, ptrdiff_t rows, const int32_t *which,
    const int32_t *centers, int64_t radius, int norm, int64_t *counts, int64_t *sums)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        const int16_t *x = panels + (r / PANEL) * pairs * PANEL * 2 + (r % PANEL) * 2;
        const int32_t *c = centers + which[r] * 2 * pairs;
        int64_t *total = sums + which[r] * 2 * pairs;
        int64_t length = 0, f = (int64_t)1 << 32;
        counts[which[r]]++;
        for (ptrdiff_t j = 0; j < pairs; j++) {
            int64_t even = x[j * PANEL * 2] - c[2 * j], odd = x[j * PANEL * 2 + 1] - c[2 * j + 1];
            length += norm == 2 ? even * even + odd * odd : llabs(even) + llabs(odd);
        }
        if (length > (norm == 2 ? radius * radius : radius))
            f = (radius << 32) / (norm == 2 ? root_up(length) : length);
        for (ptrdiff_t j = 0; j < pairs; j++) {
            total[2 * j] += shrunk(x[j * PANEL * 2] - c[2 * j], f);
            total[2 * j + 1] += shrunk(x[j * PANEL * 2 + 1] - c[2 * j + 1], f);
        }
    }
}

static void residual_sums(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                          const int32_t *which, const int32_t *centers, int64_t radius, int norm,
                          int64_t *counts, int64_t *sums)
{
#define FOR_PAIRS(N) \
    case N: residual_sums_of(panels, N, rows, which, centers, radius, norm, counts, sums); break
    switch (pairs) {
    FOR_PAIRS(1);
    FOR_PAIRS(2);
    FOR_PAIRS(3);
    FOR_PAIRS(4);
    FOR_PAIRS(5);
    default: residual_sums_of(panels, pairs, rows, which, centers, radius, norm, counts, sums);
    }
#undef FOR_PAIRS
}
