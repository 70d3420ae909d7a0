/* Selection: upper bounds on exp(-(best - score) rate), as proposals for an exact draw. */

/* out >= 2^30 exp(-difference rate), in float: relative errors of the argument (at most 22) are
 * below 2^-22 in all and that of the polynomial is below 2^-18, so a margin of 2^-14 covers both.
 * The caller draws in proportion to these integers and accepts with the exact remaining
 * probability, so a loose bound costs time and nothing else. to_log2 is rate / ln 2. */
static inline uint32_t weight_above(int32_t difference, int32_t far, float to_log2)
{
    float y = (float)(difference < far ? difference : far) * to_log2;
    return (uint32_t)(int32_t)(exp_minus(y) * 1073807360.0f) + 1; /* 2^30 (1 + 2^-14) */
}

static void extremes(const int64_t *scores, ptrdiff_t n, int64_t *best, int64_t *least)
{
    int64_t most = scores[0], fewest = scores[0];
    for (ptrdiff_t i = 1; i < n; i++) {
        most = scores[i] > most ? scores[i] : most;
        fewest = scores[i] < fewest ? scores[i] : fewest;
    }
    *best = most;
    *least = fewest;
}

static uint64_t weights_above(const int64_t *scores, ptrdiff_t n, int64_t best, int64_t least,
                              float to_log2, uint32_t *out)
{
    /* Dropping low bits of a difference can only raise its weight: do so until 31 bits are left. */
    const uint64_t widest = (uint64_t)best - (uint64_t)least;
    int drop = 0;
    while (widest >> drop > 2147483000u)
        drop++, to_log2 *= 2.0f;
    /* A smaller rate can only raise weights: so y stays below 62, within a float's exponents. */
    to_log2 = to_log2 < 31.0f ? to_log2 : 31.0f;
    /* Beyond 31 / to_log2 the weight is 1 in any case. */
    const float limit = 31.0f / to_log2;
    const int32_t far = limit < 2147483000.0f ? (int32_t)limit + 1 : 2147483000;
    uint64_t total = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = weight_above((int32_t)(((uint64_t)best - (uint64_t)scores[i]) >> drop), far, to_log2);
    for (ptrdiff_t i = 0; i < n; i++)
        total += out[i];
    return total;
}
