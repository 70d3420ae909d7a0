/* Facilities: clipped distances in one or two bytes, a row for each facility, minima over a set. */

#define widen16 lanes_words
#define widen8 lanes_bytes

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
    /* The same for the root of z, a whole number below 2^53: the root is correctly rounded. */ \
    static void root_store##BITS(const double *z, ptrdiff_t n, double low, double high,         \
                                 double unit, uint##BITS##_t *out)                              \
    {                                                                                           \
        const double rate = 1 / unit; /* a power of two */                                      \
        for (ptrdiff_t i = 0; i < n; i++) {                                                     \
            double v = sqrt(z[i]);                                                              \
            v = v > low ? v : low;                                                              \
            v = (v < high ? v : high) - low;                                                    \
            out[i] = (uint##BITS##_t)(int32_t)(v * rate + 0.5);                                 \
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
    }                                                                                           \
    /* The sum over n records of the lesser of two distances. */                                \
    static int64_t lesser##BITS(const uint##BITS##_t *a, const uint##BITS##_t *b, ptrdiff_t n)  \
    {                                                                                           \
        int64_t total = 0;                                                                      \
        while (n > 0) {                                                                         \
            ptrdiff_t part = n < PART ? n : PART;                                               \
            uint32_t sum = 0;                                                                   \
            for (ptrdiff_t i = 0; i < part; i++)                                                \
                sum += a[i] < b[i] ? a[i] : b[i];                                               \
            total += sum, a += part, b += part, n -= part;                                      \
        }                                                                                       \
        return total;                                                                           \
    }                                                                                           \
    /* With one of up to eight facilities added, the costs of n records, and for each member what \
     * its records would pay on top if it went: see facility.pyx. Eight records at a time are    \
     * turned so that their facilities lie side by side, and a record's eight numbers go to its  \
     * nearest member's. At most PART records, so that 32 bits hold. */                          \
    static void swaps##BITS(const uint##BITS##_t *rows, ptrdiff_t stride, ptrdiff_t count,      \
                            const uint##BITS##_t *first, const uint##BITS##_t *second,          \
                            const int32_t *which, ptrdiff_t n, int32_t *added, int32_t *gone)   \
    {                                                                                           \
        uint##BITS##_t turned[LANES * LANES] = {0};                                             \
        lanes sum = lanes_all(0);                                                               \
        CHECK(n <= PART);                                                                       \
        for (ptrdiff_t i = 0; i < n; i += LANES) {                                              \
            ptrdiff_t some = n - i < LANES ? n - i : LANES;                                     \
            if (count == LANES && some == LANES)                                                \
                turn##BITS(rows + i, stride, turned);                                           \
            else                                                                                \
                for (ptrdiff_t r = 0; r < some; r++)                                            \
                    for (ptrdiff_t c = 0; c < count; c++)                                       \
                        turned[r * LANES + c] = rows[c * stride + i + r];                       \
            for (ptrdiff_t r = 0; r < some; r++) {                                              \
                int32_t *own = gone + which[i + r] * LANES;                                     \
                lanes v = widen##BITS(turned + r * LANES);                                      \
                lanes kept = lanes_min(v, lanes_all(first[i + r]));                             \
                lanes more = lanes_sub(lanes_min(v, lanes_all(second[i + r])), kept);           \
                sum = lanes_add(sum, kept);                                                     \
                lanes_store(own, lanes_add(lanes_load(own), more));                             \
            }                                                                                   \
        }                                                                                       \
        lanes_store(added, sum);                                                                \
    }

enum { STRIP = 128 };  /* bytes or words of a row that stay in registers over a set */
enum { PART = 32767 }; /* words whose sum fits in 32 bits with a sign */

static inline void turn16(const uint16_t *rows, ptrdiff_t stride, uint16_t *out)
{
    transpose_words(rows, stride, out, LANES);
}

static inline void turn8(const uint8_t *rows, ptrdiff_t stride, uint8_t *out)
{
    for (int c = 0; c < LANES; c++)
        for (int r = 0; r < LANES; r++)
            out[r * LANES + c] = rows[c * stride + r];
}

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
