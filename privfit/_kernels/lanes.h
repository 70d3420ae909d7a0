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
/* -1 where a < b, else 0; and a where such a mask is -1, else b */
static inline lanes lanes_less(lanes a, lanes b) { return _mm256_cmpgt_epi32(b, a); }
static inline lanes lanes_pick(lanes mask, lanes a, lanes b) {
    return _mm256_blendv_epi8(b, a, mask);
}
static inline lanes lanes_min16(lanes a, lanes b) { return _mm256_min_epu16(a, b); }
static inline lanes lanes_add16(lanes a, lanes b) { return _mm256_add_epi16(a, b); }
static inline lanes lanes_max16(lanes a, lanes b) { return _mm256_max_epi16(a, b); } /* signed */
/* a - b of words, at least 0; and words without a sign, moved to the right */
static inline lanes lanes_above16(lanes a, lanes b) { return _mm256_subs_epu16(a, b); }
static inline lanes lanes_right16(lanes a, int bits) {
    return _mm256_srl_epi16(a, _mm_cvtsi32_si128(bits));
}
/* the upper word of each lane */
static inline lanes lanes_upper(lanes a) { return _mm256_srli_epi32(a, 16); }
static inline lanes lanes_min8(lanes a, lanes b) { return _mm256_min_epu8(a, b); }
static inline lanes lanes_add8(lanes a, lanes b) { return _mm256_add_epi8(a, b); }
/* a table of sixteen bytes, and table[i] of thirty-two indices below sixteen */
#define LOOKS 1
static inline lanes lanes_sixteen(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}
static inline lanes lanes_look(lanes table, lanes i) { return _mm256_shuffle_epi8(table, i); }
/* the same of any indices, 0 from sixteen on */
static inline lanes lanes_look_in(lanes table, lanes i) {
    return _mm256_shuffle_epi8(table, _mm256_adds_epu8(i, _mm256_set1_epi8(0x70)));
}
/* a - b of bytes, at least 0 */
static inline lanes lanes_above8(lanes a, lanes b) { return _mm256_subs_epu8(a, b); }
/* thirty-two words of these low and high bytes */
static inline void lanes_store_words(uint16_t *p, lanes low, lanes high) {
    const __m256i a = _mm256_unpacklo_epi8(low, high), b = _mm256_unpackhi_epi8(low, high);
    lanes_store(p, _mm256_permute2x128_si256(a, b, 0x20));
    lanes_store(p + 16, _mm256_permute2x128_si256(a, b, 0x31));
}
/* sixteen lanes as words or bytes between 0 and top */
static inline lanes lanes_words_of(lanes a, lanes b, int top) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
    return _mm256_min_epu16(words, _mm256_set1_epi16((int16_t)top));
}
static inline void lanes_store16(uint16_t *p, lanes a, lanes b, int top) {
    lanes_store(p, lanes_words_of(a, b, top));
}
static inline void lanes_store8(uint8_t *p, lanes a, lanes b, int top) {
    const __m256i words = lanes_words_of(a, b, top);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                   _mm256_extracti128_si256(words, 1)));
}
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
static inline lanes lanes_less(lanes a, lanes b) LANES_EACH(_mm_cmplt_epi32)
static inline __m128i privfit_pick4(__m128i mask, __m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
}
static inline lanes lanes_pick(lanes mask, lanes a, lanes b) {
    lanes r = {privfit_pick4(mask.lo, a.lo, b.lo), privfit_pick4(mask.hi, a.hi, b.hi)};
    return r;
}
static inline lanes lanes_min16(lanes a, lanes b) LANES_EACH(privfit_min_u16)
static inline lanes lanes_add16(lanes a, lanes b) LANES_EACH(_mm_add_epi16)
static inline lanes lanes_max16(lanes a, lanes b) LANES_EACH(_mm_max_epi16)
static inline lanes lanes_above16(lanes a, lanes b) LANES_EACH(_mm_subs_epu16)
static inline lanes lanes_right16(lanes a, int bits) {
    __m128i count = _mm_cvtsi32_si128(bits);
    lanes r = {_mm_srl_epi16(a.lo, count), _mm_srl_epi16(a.hi, count)};
    return r;
}
static inline lanes lanes_upper(lanes a) {
    lanes r = {_mm_srli_epi32(a.lo, 16), _mm_srli_epi32(a.hi, 16)};
    return r;
}
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
/* sixteen lanes above -2^30 as words or bytes between 0 and top */
static inline __m128i privfit_words(lanes a, int top) {
    const __m128i half = _mm_set1_epi32(32768), flip = _mm_set1_epi16((int16_t)0x8000);
    __m128i words = _mm_packs_epi32(_mm_sub_epi32(a.lo, half), _mm_sub_epi32(a.hi, half));
    return privfit_min_u16(_mm_xor_si128(words, flip), _mm_set1_epi16((int16_t)top));
}
static inline void lanes_store16(uint16_t *p, lanes a, lanes b, int top) {
    _mm_storeu_si128((__m128i *)p, privfit_words(a, top));
    _mm_storeu_si128((__m128i *)p + 1, privfit_words(b, top));
}
static inline void lanes_store8(uint8_t *p, lanes a, lanes b, int top) {
    _mm_storeu_si128((__m128i *)p,
                     _mm_packus_epi16(privfit_words(a, top), privfit_words(b, top)));
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
static inline lanes lanes_less(lanes a, lanes b) LANES_EACH(a.v[i] < b.v[i] ? -1 : 0)
static inline lanes lanes_pick(lanes mask, lanes a, lanes b)
    LANES_EACH(mask.v[i] ? a.v[i] : b.v[i])
#define WORDS_EACH(TYPE, EXPR) { \
    TYPE u[2 * LANES], v[2 * LANES]; \
    memcpy(u, &a, sizeof u), memcpy(v, &b, sizeof v); \
    for (int i = 0; i < 2 * LANES; i++) u[i] = (TYPE)(EXPR); \
    return lanes_load(u); }

static inline lanes lanes_min16(lanes a, lanes b) WORDS_EACH(uint16_t, u[i] < v[i] ? u[i] : v[i])
static inline lanes lanes_max16(lanes a, lanes b) WORDS_EACH(int16_t, u[i] > v[i] ? u[i] : v[i])
static inline lanes lanes_add16(lanes a, lanes b) WORDS_EACH(uint16_t, u[i] + v[i])
static inline lanes lanes_above16(lanes a, lanes b)
    WORDS_EACH(uint16_t, u[i] > v[i] ? u[i] - v[i] : 0)
static inline lanes lanes_right16(lanes a, int bits) {
    const lanes b = a;
    WORDS_EACH(uint16_t, v[i] >> bits)
}
static inline lanes lanes_upper(lanes a) LANES_EACH((int32_t)((uint32_t)a.v[i] >> 16))
static inline lanes lanes_min8(lanes a, lanes b) {
    uint8_t u[4 * LANES], v[4 * LANES];
    memcpy(u, &a, sizeof u), memcpy(v, &b, sizeof v);
    for (int i = 0; i < 4 * LANES; i++) u[i] = u[i] < v[i] ? u[i] : v[i];
    return lanes_load(u);
}
static inline int32_t privfit_clip(int32_t v, int top) { return v < 0 ? 0 : v < top ? v : top; }
static inline void lanes_store16(uint16_t *p, lanes a, lanes b, int top) {
    for (int i = 0; i < LANES; i++) p[i] = (uint16_t)privfit_clip(a.v[i], top);
    for (int i = 0; i < LANES; i++) p[LANES + i] = (uint16_t)privfit_clip(b.v[i], top);
}
static inline void lanes_store8(uint8_t *p, lanes a, lanes b, int top) {
    for (int i = 0; i < LANES; i++) p[i] = (uint8_t)privfit_clip(a.v[i], top);
    for (int i = 0; i < LANES; i++) p[LANES + i] = (uint8_t)privfit_clip(b.v[i], top);
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

#if !defined(LOOKS) /* exact, but byte by byte */
#define LOOKS 0
#define BYTES_EACH(EXPR) { \
    uint8_t u[4 * LANES], v[4 * LANES]; \
    lanes_store(u, a), lanes_store(v, b); \
    for (int i = 0; i < 4 * LANES; i++) u[i] = (uint8_t)(EXPR); \
    return lanes_load(u); }

static inline lanes lanes_add8(lanes a, lanes b) BYTES_EACH(u[i] + v[i])
static inline lanes lanes_above8(lanes a, lanes b) BYTES_EACH(u[i] > v[i] ? u[i] - v[i] : 0)
static inline lanes lanes_look(lanes b, lanes a) BYTES_EACH(v[u[i]])
static inline lanes lanes_look_in(lanes b, lanes a) BYTES_EACH(u[i] < 16 ? v[u[i]] : 0)
static inline lanes lanes_sixteen(const uint8_t *p) {
    uint8_t both[4 * LANES];
    memcpy(both, p, 16), memcpy(both + 16, p, 16);
    return lanes_load(both);
}
static inline void lanes_store_words(uint16_t *p, lanes low, lanes high) {
    uint8_t u[4 * LANES], v[4 * LANES];
    lanes_store(u, low), lanes_store(v, high);
    for (int i = 0; i < 4 * LANES; i++) p[i] = (uint16_t)(u[i] | v[i] << 8);
}
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

/* out[c][r] = in[r][c] of 8 x 8 lanes; rows from `count` on are 0. */
#if defined(__AVX2__)
static inline void transpose_lanes(const int32_t *in, ptrdiff_t in_stride, ptrdiff_t count,
                                   int32_t *out)
{
    __m256i a[8], b[8];
    for (int i = 0; i < 8; i++)
        a[i] = i < count ? lanes_load(in + i * in_stride) : _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) { /* pairs of rows, then fours, then halves */
        b[2 * i] = _mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = _mm256_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm256_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
    }
    for (int i = 0; i < 4; i++) {
        lanes_store(out + i * LANES, _mm256_permute2x128_si256(a[i], a[i + 4], 0x20));
        lanes_store(out + (i + 4) * LANES, _mm256_permute2x128_si256(a[i], a[i + 4], 0x31));
    }
}
#else
static inline void transpose_lanes(const int32_t *in, ptrdiff_t in_stride, ptrdiff_t count,
                                   int32_t *out)
{
    for (int r = 0; r < LANES; r++)
        for (int c = 0; c < LANES; c++) out[c * LANES + r] = r < count ? in[r * in_stride + c] : 0;
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
static inline four four_all(double v) { return _mm256_set1_pd(v); }
static inline four four_min(four a, four b) { return _mm256_min_pd(a, b); }
static inline four four_max(four a, four b) { return _mm256_max_pd(a, b); }
/* c where a < b, else d */
static inline four four_where_less(four a, four b, four c, four d) {
    return _mm256_blendv_pd(d, c, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
static inline four four_of_words(const int16_t *p) {
    return _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline four four_of_lanes(const int32_t *p) {
    return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)p));
}
/* add four numbers below 2^31 to four lanes, each rounded towards zero */
static inline void four_add_whole(int32_t *p, four a) {
    _mm_storeu_si128((__m128i *)p, _mm_add_epi32(_mm_loadu_si128((const __m128i *)p),
                                                 _mm256_cvttpd_epi32(a)));
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
static inline four four_all(double v) FOUR_EACH(v)
static inline four four_min(four a, four b) FOUR_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i])
static inline four four_max(four a, four b) FOUR_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i])
static inline four four_where_less(four a, four b, four c, four d)
    FOUR_EACH(a.v[i] < b.v[i] ? c.v[i] : d.v[i])
static inline four four_of_words(const int16_t *p) FOUR_EACH((double)p[i])
static inline four four_of_lanes(const int32_t *p) FOUR_EACH((double)p[i])
static inline void four_add_whole(int32_t *p, four a) {
    for (int i = 0; i < 4; i++) p[i] += (int32_t)a.v[i];
}
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
