/* Eight int32 lanes: one AVX2 register, two SSE2 registers, or a plain array; and four doubles.
 *
 * Only what a compiler does not find by itself is spelled out here: the product of int16 pairs
 * (pmaddwd) and keeping accumulators in registers over a loop of unknown length. Everything else
 * in the kernels is an ordinary loop.
 */
#ifndef PRIVFIT_LANES_H
#define PRIVFIT_LANES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 8

#if defined(__AVX2__)

#include <immintrin.h>
typedef __m256i lanes;

static inline lanes lanes_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void lanes_store(void *p, lanes a) { _mm256_storeu_si256((__m256i *)p, a); }
static inline lanes lanes_all(int32_t v) { return _mm256_set1_epi32(v); }
static inline lanes lanes_add(lanes a, lanes b) { return _mm256_add_epi32(a, b); }
static inline lanes lanes_sub(lanes a, lanes b) { return _mm256_sub_epi32(a, b); }
/* eight words or bytes as eight lanes */
static inline lanes lanes_words(const uint16_t *p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
static inline lanes lanes_bytes(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
static inline lanes lanes_mul(lanes a, lanes b) { return _mm256_mullo_epi32(a, b); }
static inline lanes lanes_min(lanes a, lanes b) { return _mm256_min_epi32(a, b); }
static inline lanes lanes_left(lanes a, int bits) {
    return _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits));
}
/* arithmetic: the sign is kept */
static inline lanes lanes_right(lanes a, int bits) {
    return _mm256_sra_epi32(a, _mm_cvtsi32_si128(bits));
}
static inline lanes lanes_and(lanes a, lanes b) { return _mm256_and_si256(a, b); }
static inline lanes lanes_min16(lanes a, lanes b) { return _mm256_min_epu16(a, b); }
static inline lanes lanes_min8(lanes a, lanes b) { return _mm256_min_epu8(a, b); }
/* x[0] w[0] + x[1] w[1] of the int16 pairs in each lane */
static inline lanes lanes_pairs(lanes x, lanes w) { return _mm256_madd_epi16(x, w); }
/* abs(x[0] - c[0]) + abs(x[1] - c[1]) of the int16 pairs in each lane */
static inline lanes lanes_gaps(lanes x, lanes c) {
    return _mm256_madd_epi16(_mm256_abs_epi16(_mm256_sub_epi16(x, c)), _mm256_set1_epi16(1));
}

#elif defined(__SSE2__) || defined(_M_X64)

#include <emmintrin.h>
typedef struct { __m128i lo, hi; } lanes;

#define LANES_EACH(OP) { lanes r; r.lo = OP(a.lo, b.lo); r.hi = OP(a.hi, b.hi); return r; }

static inline lanes lanes_load(const void *p) {
    lanes r = {_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)p + 1)};
    return r;
}
static inline void lanes_store(void *p, lanes a) {
    _mm_storeu_si128((__m128i *)p, a.lo);
    _mm_storeu_si128((__m128i *)p + 1, a.hi);
}
static inline lanes lanes_all(int32_t v) {
    lanes r = {_mm_set1_epi32(v), _mm_set1_epi32(v)};
    return r;
}
static inline __m128i privfit_mul4(__m128i a, __m128i b) { /* low 32 bits of four products */
    __m128i even = _mm_mul_epu32(a, b);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));
    return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
}
static inline __m128i privfit_min4(__m128i a, __m128i b) {
    __m128i less = _mm_cmplt_epi32(a, b);
    return _mm_or_si128(_mm_and_si128(less, a), _mm_andnot_si128(less, b));
}
static inline __m128i privfit_min_u16(__m128i a, __m128i b) {
    return _mm_sub_epi16(a, _mm_subs_epu16(a, b));
}
static inline __m128i privfit_gaps4(__m128i x, __m128i c) {
    __m128i gap = _mm_sub_epi16(x, c);
    gap = _mm_max_epi16(gap, _mm_sub_epi16(_mm_setzero_si128(), gap));
    return _mm_madd_epi16(gap, _mm_set1_epi16(1));
}
static inline lanes lanes_add(lanes a, lanes b) LANES_EACH(_mm_add_epi32)
static inline lanes lanes_sub(lanes a, lanes b) LANES_EACH(_mm_sub_epi32)
static inline lanes lanes_words(const uint16_t *p) {
    __m128i words = _mm_loadu_si128((const __m128i *)p), zero = _mm_setzero_si128();
    lanes r = {_mm_unpacklo_epi16(words, zero), _mm_unpackhi_epi16(words, zero)};
    return r;
}
static inline lanes lanes_bytes(const uint8_t *p) {
    __m128i zero = _mm_setzero_si128();
    __m128i words = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p), zero);
    lanes r = {_mm_unpacklo_epi16(words, zero), _mm_unpackhi_epi16(words, zero)};
    return r;
}
static inline lanes lanes_mul(lanes a, lanes b) LANES_EACH(privfit_mul4)
static inline lanes lanes_min(lanes a, lanes b) LANES_EACH(privfit_min4)
static inline lanes lanes_and(lanes a, lanes b) LANES_EACH(_mm_and_si128)
static inline lanes lanes_min16(lanes a, lanes b) LANES_EACH(privfit_min_u16)
static inline lanes lanes_min8(lanes a, lanes b) LANES_EACH(_mm_min_epu8)
static inline lanes lanes_left(lanes a, int bits) {
    __m128i count = _mm_cvtsi32_si128(bits);
    lanes r = {_mm_sll_epi32(a.lo, count), _mm_sll_epi32(a.hi, count)};
    return r;
}
static inline lanes lanes_right(lanes a, int bits) {
    __m128i count = _mm_cvtsi32_si128(bits);
    lanes r = {_mm_sra_epi32(a.lo, count), _mm_sra_epi32(a.hi, count)};
    return r;
}
static inline lanes lanes_pairs(lanes a, lanes b) LANES_EACH(_mm_madd_epi16)
static inline lanes lanes_gaps(lanes a, lanes b) LANES_EACH(privfit_gaps4)

#else

typedef struct { int32_t v[LANES]; } lanes;

#define LANES_EACH(EXPR) { \
    lanes r; \
    for (int i = 0; i < LANES; i++) r.v[i] = (EXPR); \
    return r; }

static inline int32_t privfit_low(int32_t pair) { return (int16_t)(uint32_t)pair; }
static inline int32_t privfit_high(int32_t pair) { return (int16_t)((uint32_t)pair >> 16); }
static inline int32_t privfit_abs(int32_t v) { return v < 0 ? -v : v; }
static inline int32_t privfit_wrap(uint32_t v) { return (int32_t)v; }
static inline int32_t privfit_right(int32_t v, int bits) { return v < 0 ? ~(~v >> bits) : v >> bits; }

static inline lanes lanes_load(const void *p) { lanes r; memcpy(&r, p, sizeof r); return r; }
static inline void lanes_store(void *p, lanes a) { memcpy(p, &a, sizeof a); }
static inline lanes lanes_all(int32_t v) LANES_EACH(v)
static inline lanes lanes_add(lanes a, lanes b)
    LANES_EACH(privfit_wrap((uint32_t)a.v[i] + (uint32_t)b.v[i]))
static inline lanes lanes_sub(lanes a, lanes b)
    LANES_EACH(privfit_wrap((uint32_t)a.v[i] - (uint32_t)b.v[i]))
static inline lanes lanes_words(const uint16_t *p) LANES_EACH(p[i])
static inline lanes lanes_bytes(const uint8_t *p) LANES_EACH(p[i])
static inline lanes lanes_mul(lanes a, lanes b)
    LANES_EACH(privfit_wrap((uint32_t)a.v[i] * (uint32_t)b.v[i]))
static inline lanes lanes_min(lanes a, lanes b) LANES_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i])
static inline lanes lanes_and(lanes a, lanes b) LANES_EACH(a.v[i] & b.v[i])
static inline lanes lanes_min16(lanes a, lanes b) {
    uint16_t u[2 * LANES], v[2 * LANES];
    memcpy(u, &a, sizeof u), memcpy(v, &b, sizeof v);
    for (int i = 0; i < 2 * LANES; i++) u[i] = u[i] < v[i] ? u[i] : v[i];
    return lanes_load(u);
}
static inline lanes lanes_min8(lanes a, lanes b) {
    uint8_t u[4 * LANES], v[4 * LANES];
    memcpy(u, &a, sizeof u), memcpy(v, &b, sizeof v);
    for (int i = 0; i < 4 * LANES; i++) u[i] = u[i] < v[i] ? u[i] : v[i];
    return lanes_load(u);
}
static inline lanes lanes_left(lanes a, int bits)
    LANES_EACH(privfit_wrap((uint32_t)a.v[i] << bits))
static inline lanes lanes_right(lanes a, int bits) LANES_EACH(privfit_right(a.v[i], bits))
static inline lanes lanes_pairs(lanes a, lanes b)
    LANES_EACH(privfit_wrap((uint32_t)(privfit_low(a.v[i]) * privfit_low(b.v[i]))
                            + (uint32_t)(privfit_high(a.v[i]) * privfit_high(b.v[i]))))
static inline lanes lanes_gaps(lanes a, lanes b)
    LANES_EACH(privfit_abs(privfit_low(a.v[i]) - privfit_low(b.v[i]))
               + privfit_abs(privfit_high(a.v[i]) - privfit_high(b.v[i])))

#endif

/* out[c][r] = in[r][c] of 8 x 8 words. */
#if defined(__SSE2__) || defined(_M_X64)
static inline void transpose_words(const uint16_t *in, ptrdiff_t in_stride, uint16_t *out,
                                   ptrdiff_t out_stride)
{
    __m128i a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = _mm_loadu_si128((const __m128i *)(in + i * in_stride));
    for (int i = 0; i < 4; i++) {
        b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
        b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm_unpacklo_epi16(b[i], b[i + 4]);
        a[2 * i + 1] = _mm_unpackhi_epi16(b[i], b[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
        b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(out + i * out_stride), b[i]);
}
#else
static inline void transpose_words(const uint16_t *in, ptrdiff_t in_stride, uint16_t *out,
                                   ptrdiff_t out_stride)
{
    for (int c = 0; c < 8; c++)
        for (int r = 0; r < 8; r++) out[c * out_stride + r] = in[r * in_stride + c];
}
#endif

/* ---------------------------------------------------------------------------- four doubles */

#if defined(__AVX2__)

typedef __m256d four;

static inline four four_load(const double *p) { return _mm256_loadu_pd(p); }
static inline void four_store(double *p, four a) { _mm256_storeu_pd(p, a); }
static inline four four_zero(void) { return _mm256_setzero_pd(); }
static inline four four_add(four a, four b) { return _mm256_add_pd(a, b); }
static inline four four_sub(four a, four b) { return _mm256_sub_pd(a, b); }
static inline four four_mul(four a, four b) { return _mm256_mul_pd(a, b); }
static inline four four_abs(four a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
static inline four four_of_words(const int16_t *p) {
    return _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline double four_sum(four a) {
    const four halves = _mm256_hadd_pd(a, a);
    return _mm_cvtsd_f64(_mm_add_sd(_mm256_castpd256_pd128(halves), _mm256_extractf128_pd(halves, 1)));
}

#else

typedef struct { double v[4]; } four;

#define FOUR_EACH(EXPR) { \
    four r; \
    for (int i = 0; i < 4; i++) r.v[i] = (EXPR); \
    return r; }

static inline four four_load(const double *p) FOUR_EACH(p[i])
static inline void four_store(double *p, four a) { for (int i = 0; i < 4; i++) p[i] = a.v[i]; }
static inline four four_zero(void) FOUR_EACH(0.0)
static inline four four_add(four a, four b) FOUR_EACH(a.v[i] + b.v[i])
static inline four four_sub(four a, four b) FOUR_EACH(a.v[i] - b.v[i])
static inline four four_mul(four a, four b) FOUR_EACH(a.v[i] * b.v[i])
static inline four four_abs(four a) FOUR_EACH(fabs(a.v[i]))
static inline four four_of_words(const int16_t *p) FOUR_EACH((double)p[i])
static inline double four_sum(four a) { return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]); }

#endif

/* -------------------------------------------------------------------- pairs and cache lines */

/* Two int16 side by side, and the two of a pair, in the order of their columns. */
static inline int32_t pair_of(int16_t first, int16_t second) {
    const int16_t words[2] = {first, second};
    int32_t pair;
    memcpy(&pair, words, sizeof pair);
    return pair;
}
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
static inline int32_t pair_first(int32_t pair) { return pair >> 16; }
static inline int32_t pair_second(int32_t pair) { return (int32_t)((uint32_t)pair << 16) >> 16; }
#else
static inline int32_t pair_first(int32_t pair) { return (int32_t)((uint32_t)pair << 16) >> 16; }
static inline int32_t pair_second(int32_t pair) { return pair >> 16; }
#endif

#if defined(__GNUC__)
static inline void fetch(const void *p) { __builtin_prefetch(p); }
#else
static inline void fetch(const void *p) { (void)p; }
#endif

#endif
