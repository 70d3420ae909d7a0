/* Which of 64 bytes are one of two, as the bits of a word: the byte of the lowest address is the
   lowest bit. All versions give the same word. */

#ifndef PRIVFIT_BYTES_H
#define PRIVFIT_BYTES_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)

#include <emmintrin.h>

static inline uint64_t bytes_among(const uint8_t *p, uint8_t a, uint8_t b)
{
    const __m128i x = _mm_set1_epi8((char)a), y = _mm_set1_epi8((char)b);
    uint64_t found = 0;
    for (int i = 0; i < 4; i++) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        const __m128i one = _mm_or_si128(_mm_cmpeq_epi8(v, x), _mm_cmpeq_epi8(v, y));
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(one) << 16 * i;
    }
    return found;
}

#elif defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

/* The high bit of each byte of v that is zero: adding 127 to seven bits carries nothing over. */
static inline uint64_t privfit_zeros(uint64_t v)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    return ~(((v & low) + low) | v | low);
}

static inline uint64_t bytes_among(const uint8_t *p, uint8_t a, uint8_t b)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t found = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t v;
        memcpy(&v, p + 8 * i, sizeof v);
        v = privfit_zeros(v ^ ones * a) | privfit_zeros(v ^ ones * b);
        found |= (v >> 7) * 0x0102040810204080u >> 56 << 8 * i; /* high bits side by side */
    }
    return found;
}

#else

static inline uint64_t bytes_among(const uint8_t *p, uint8_t a, uint8_t b)
{
    uint64_t found = 0;
    for (int i = 0; i < 64; i++) found |= (uint64_t)(p[i] == a || p[i] == b) << i;
    return found;
}

#endif

/* The place of the lowest one bit of a word that is not 0. */
#if defined(__GNUC__)
static inline int lowest_bit(uint64_t v) { return __builtin_ctzll(v); }
#else
static inline int lowest_bit(uint64_t v)
{
    int i = 0;
    for (int half = 32; half; half /= 2)
        if (!(v << (64 - i - half))) i += half;
    return i;
}
#endif

#endif
