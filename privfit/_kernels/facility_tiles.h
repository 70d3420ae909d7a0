/* Facilities: clipped distances in one or two bytes, a row for each facility, minima over a set. */

#define FACILITY(BITS)                                                                          \
    static void clip_store##BITS(const int32_t *z, ptrdiff_t n, int32_t low, int32_t high,      \
                                 int shift, uint##BITS##_t *out)                                \
    {                                                                                           \
        const uint32_t half = 1u << shift >> 1;                                                 \
        for (ptrdiff_t i = 0; i < n; i++) {                                                     \
            int32_t v = z[i] > low ? z[i] : low;                                                \
            v = (v < high ? v : high) - low;                                                    \
            out[i] = (uint##BITS##_t)(((uint32_t)v + half) >> shift);                           \
        }                                                                                       \
    }                                                                                           \
    /* The sum over n records of the least distance to the k facilities of a set. */            \
    static int64_t least##BITS(const uint##BITS##_t *rows, ptrdiff_t stride, const int64_t *set, \
                               ptrdiff_t k, ptrdiff_t first, ptrdiff_t n)                       \
    {                                                                                           \
        int64_t total = 0;                                                                      \
        for (rows += first; n > 0; rows += STRIP, n -= STRIP) {                                 \
            ptrdiff_t strip = n < STRIP ? n : STRIP;                                            \
            uint##BITS##_t best[STRIP];                                                         \
            uint32_t sum = 0;                                                                   \
            least_strip##BITS(rows, stride, set, k, best);                                      \
            for (ptrdiff_t i = 0; i < strip; i++)                                               \
                sum += best[i];                                                                 \
            total += sum;                                                                       \
        }                                                                                       \
        return total;                                                                           \
    }

enum { STRIP = 128 }; /* bytes or words of a row that stay in registers over a set */

static void least_strip16(const uint16_t *rows, ptrdiff_t stride, const int64_t *set, ptrdiff_t k,
                          uint16_t *best)
{
    for (int part = 0; part < STRIP; part += 2 * 4 * LANES) {
        const uint16_t *row = rows + part + set[0] * stride;
        lanes b0 = lanes_load(row), b1 = lanes_load(row + 2 * LANES);
        lanes b2 = lanes_load(row + 4 * LANES), b3 = lanes_load(row + 6 * LANES);
        for (ptrdiff_t i = 1; i < k; i++) {
            row = rows + part + set[i] * stride;
            b0 = lanes_min16(b0, lanes_load(row)), b1 = lanes_min16(b1, lanes_load(row + 2 * LANES));
            b2 = lanes_min16(b2, lanes_load(row + 4 * LANES));
            b3 = lanes_min16(b3, lanes_load(row + 6 * LANES));
        }
        lanes_store(best + part, b0), lanes_store(best + part + 2 * LANES, b1);
        lanes_store(best + part + 4 * LANES, b2), lanes_store(best + part + 6 * LANES, b3);
    }
}

static void least_strip8(const uint8_t *rows, ptrdiff_t stride, const int64_t *set, ptrdiff_t k,
                         uint8_t *best)
{
    const uint8_t *row = rows + set[0] * stride;
    lanes b0 = lanes_load(row), b1 = lanes_load(row + 4 * LANES);
    lanes b2 = lanes_load(row + 8 * LANES), b3 = lanes_load(row + 12 * LANES);
    for (ptrdiff_t i = 1; i < k; i++) {
        row = rows + set[i] * stride;
        b0 = lanes_min8(b0, lanes_load(row)), b1 = lanes_min8(b1, lanes_load(row + 4 * LANES));
        b2 = lanes_min8(b2, lanes_load(row + 8 * LANES));
        b3 = lanes_min8(b3, lanes_load(row + 12 * LANES));
    }
    lanes_store(best, b0), lanes_store(best + 4 * LANES, b1);
    lanes_store(best + 8 * LANES, b2), lanes_store(best + 12 * LANES, b3);
}

FACILITY(16)
FACILITY(8)

/* clip_store for z (rows, WIDTH) of up to PANEL rows, transposed on the way to (facilities, stride). */
static void clip_transpose16(const int32_t *z, ptrdiff_t rows, ptrdiff_t facilities, int32_t low,
                             int32_t high, int shift, uint16_t *out, ptrdiff_t stride)
{
    uint16_t clipped[PANEL * WIDTH];
    clip_store16(z, rows * WIDTH, low, high, shift, clipped);
    if (rows == PANEL && facilities == WIDTH)
        for (int r = 0; r < PANEL; r += 8)
            for (int c = 0; c < WIDTH; c += 8)
                transpose_words(clipped + r * WIDTH + c, WIDTH, out + c * stride + r, stride);
    else
        for (ptrdiff_t c = 0; c < facilities; c++)
            for (ptrdiff_t r = 0; r < rows; r++)
                out[c * stride + r] = clipped[r * WIDTH + c];
}

static void clip_transpose8(const int32_t *z, ptrdiff_t rows, ptrdiff_t facilities, int32_t low,
                            int32_t high, int shift, uint8_t *out, ptrdiff_t stride)
{
    uint8_t clipped[PANEL * WIDTH];
    clip_store8(z, rows * WIDTH, low, high, shift, clipped);
    for (ptrdiff_t c = 0; c < facilities; c++)
        for (ptrdiff_t r = 0; r < rows; r++)
            out[c * stride + r] = clipped[r * WIDTH + c];
}
