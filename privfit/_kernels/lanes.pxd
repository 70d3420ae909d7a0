"""Eight int32 lanes, and four doubles: what no compiler finds by itself. See lanes.h."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, uint8_t, uint16_t

cdef extern from "lanes.h" nogil:
    enum:
        LANES
        LOOKS  # whether `lanes_look` is one instruction

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
    lanes lanes_less(lanes a, lanes b)       # -1 where a < b, else 0
    lanes lanes_pick(lanes mask, lanes a, lanes b)  # a where such a mask is -1, else b
    lanes lanes_left(lanes a, int bits)
    lanes lanes_right(lanes a, int bits)     # arithmetic: the sign is kept
    lanes lanes_min16(lanes a, lanes b)      # sixteen unsigned words
    lanes lanes_add16(lanes a, lanes b)      # sixteen words
    lanes lanes_max16(lanes a, lanes b)      # sixteen words with a sign
    lanes lanes_above16(lanes a, lanes b)    # a - b of sixteen unsigned words, at least 0
    lanes lanes_right16(lanes a, int bits)   # unsigned words
    lanes lanes_upper(lanes a)               # the upper word of each lane
    lanes lanes_min8(lanes a, lanes b)       # thirty-two unsigned bytes
    lanes lanes_add8(lanes a, lanes b)       # thirty-two bytes
    lanes lanes_sixteen(const uint8_t *p)    # a table of sixteen bytes
    lanes lanes_above8(lanes a, lanes b)     # a - b of thirty-two bytes, at least 0
    lanes lanes_look(lanes table, lanes i)   # table[i] of thirty-two indices below sixteen
    lanes lanes_look_in(lanes table, lanes i)  # the same of any indices, 0 from sixteen on
    void lanes_store_words(uint16_t *p, lanes low, lanes high)  # of thirty-two low and high bytes
    lanes lanes_words(const uint16_t *p)     # eight words as eight lanes
    lanes lanes_bytes(const uint8_t *p)      # eight bytes as eight lanes
    lanes lanes_pairs(lanes x, lanes w)      # x[0] w[0] + x[1] w[1] of the int16 pairs in a lane
    lanes lanes_gaps(lanes x, lanes c)       # abs(x[0] - c[0]) + abs(x[1] - c[1]) of the same
    # sixteen lanes above -2^30 as words or bytes between 0 and top
    void lanes_store16(uint16_t *p, lanes a, lanes b, int top)
    void lanes_store8(uint8_t *p, lanes a, lanes b, int top)
    int32_t pair_of(int16_t first, int16_t second)
    int32_t pair_first(int32_t pair)         # the first and the second int16 of a pair
    int32_t pair_second(int32_t pair)
    void transpose_words(const uint16_t *p, ptrdiff_t stride, uint16_t *out, ptrdiff_t out_stride)

    # 8 x 8 lanes; rows from `count` on are 0
    void transpose_lanes(const int32_t *p, ptrdiff_t stride, ptrdiff_t count, int32_t *out)

    ctypedef struct four:
        pass

    four four_load(const double *p)
    void four_store(double *p, four a)
    four four_zero()
    four four_add(four a, four b)
    four four_sub(four a, four b)
    four four_mul(four a, four b)
    four four_abs(four a)
    four four_all(double v)
    four four_min(four a, four b)            # b where one is NaN
    four four_max(four a, four b)
    four four_where_less(four a, four b, four c, four d)  # c where a < b, else d
    four four_of_words(const int16_t *p)     # four int16 as four doubles
    four four_of_lanes(const int32_t *p)     # four lanes as four doubles
    void four_add_whole(int32_t *p, four a)  # add four doubles to lanes, rounded towards zero
    double four_sum(four a)                  # (a[0] + a[1]) + (a[2] + a[3])
    void fetch(const void *p)                # bring a line into cache
