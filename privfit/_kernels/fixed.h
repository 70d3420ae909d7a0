/* exp(-g) in 64-bit fixed point: integers only, the same on every machine.
 *
 * g comes in units of 2^-58 (so g < 64). It is cut into its whole part, three bytes and a rest
 * below 2^-24; four tables and 1 - r + r^2/2 give the factors. Each table entry and each product is
 * off by less than two units of 2^-64, the term r^3/6 is below 2^-74, and a g that was rounded down
 * by one unit adds up to 2^6: the result is within EXP_ERROR of 2^64 exp(-g).
 */
#ifndef PRIVFIT_FIXED_H
#define PRIVFIT_FIXED_H

#include <stdint.h>

enum { GAMMA_BITS = 58, EXP_ERROR = 128 };

typedef struct {
    uint64_t whole[64];    /* 2^64 exp(-i), less one for i = 0 */
    uint64_t byte[3][256]; /* 2^64 exp(-i 2^-8), exp(-i 2^-16), exp(-i 2^-24) */
} exp_tables;

#if defined(__SIZEOF_INT128__)
static inline uint64_t mul_high(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
#elif defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
static inline uint64_t mul_high(uint64_t a, uint64_t b) { return __umulh(a, b); }
#else
static inline uint64_t mul_high(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}
#endif

/* 2^64 exp(-g), g in units of 2^-58. */
static inline uint64_t exp_fixed(const exp_tables *t, uint64_t g)
{
    uint64_t r = g << 30;                       /* the last 34 bits, as a fraction of 2^-24 */
    uint64_t rest = r >> 24;                    /* r in units of 2^-64 */
    uint64_t tail = 0 - rest + mul_high(rest, rest) / 2 - (rest == 0);
    uint64_t v = mul_high(t->whole[g >> 58], t->byte[0][(g >> 50) & 255]);
    v = mul_high(v, t->byte[1][(g >> 42) & 255]);
    v = mul_high(v, t->byte[2][(g >> 34) & 255]);
    return mul_high(v, tail);
}

/* difference * rate / 2^scale in units of 2^-58, rounded down; UINT64_MAX beyond 64. rate < 2^32. */
static inline uint64_t gamma_fixed(uint64_t difference, uint64_t rate, int scale)
{
    uint64_t low = difference * rate, high = mul_high(difference, rate);
    int right = scale - GAMMA_BITS;
    if (right >= 128) return 0;
    if (right >= 64) return high >> (right - 64);
    if (right > 0) return high >> right ? UINT64_MAX : (high << (64 - right)) | (low >> right);
    if (high || right <= -64) return high | low ? UINT64_MAX : 0;
    return right && low >> (64 + right) ? UINT64_MAX : low << -right;
}

#endif
