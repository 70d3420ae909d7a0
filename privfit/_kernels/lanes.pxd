"""Eight int32 lanes, and four doubles: what no compiler finds by itself. See lanes.h."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, uint8_t, uint16_t

cdef extern from "lanes.h" nogil:
    enum:
        LANES

    ctypedef struct lanes:
        pass

    lanes lanes_load(const void *p)
    void lanes_store(void *p, lanes a)
    lanes lanes_all(int32_t v)
    lanes lanes_add(lanes a, lanes b)
    lanes lanes_sub(lanes a, lanes b)
    lanes lanes_mul(lanes a, lanes b)
    lanes lanes_min(lanes a, lanes b)
    lanes lanes_and(lanes a, lanes b)
    lanes lanes_left(lanes a, int bits)
    lanes lanes_right(lanes a, int bits)     # arithmetic: the sign is kept
    lanes lanes_min16(lanes a, lanes b)      # sixteen unsigned words
    lanes lanes_min8(lanes a, lanes b)       # thirty-two unsigned bytes
    lanes lanes_words(const uint16_t *p)     # eight words as eight lanes
    lanes lanes_bytes(const uint8_t *p)      # eight bytes as eight lanes
    lanes lanes_pairs(lanes x, lanes w)      # x[0] w[0] + x[1] w[1] of the int16 pairs in a lane
    lanes lanes_gaps(lanes x, lanes c)       # abs(x[0] - c[0]) + abs(x[1] - c[1]) of the same
    int32_t pair_of(int16_t first, int16_t second)
    int32_t pair_first(int32_t pair)         # the first and the second int16 of a pair
    int32_t pair_second(int32_t pair)
    void transpose_words(const uint16_t *p, ptrdiff_t stride, uint16_t *out, ptrdiff_t out_stride)

    ctypedef struct four:
        pass

    four four_load(const double *p)
    void four_store(double *p, four a)
    four four_zero()
    four four_add(four a, four b)
    four four_sub(four a, four b)
    four four_mul(four a, four b)
    four four_abs(four a)
    four four_of_words(const int16_t *p)     # four int16 as four doubles
    double four_sum(four a)                  # (a[0] + a[1]) + (a[2] + a[3])
    void fetch(const void *p)                # bring a line into cache
