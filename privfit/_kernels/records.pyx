"""What kernels are handed besides arrays: packed records, and a loss on its grid.

One module serves every instruction set, so that what it makes can be given to any kernel.
"""

from libc.math cimport M_LN2, ldexp
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t

from privfit._kernels.grid cimport (
    BLOCK, HINGE, HINGE_SCALED, LOGISTIC, PANEL, QUAD, RESIDUAL_BITS, WIDTH, ZERO_ONE, loss_args,
)

PANEL_ROWS = PANEL
QUAD_SIZE = QUAD
LANE_WIDTH = WIDTH
BLOCK_ROWS = BLOCK
RESIDUAL_UNIT = 1.0 / (1 << RESIDUAL_BITS)


cdef class SparseRows:
    """Packed sparse records in row order; holds the arrays that the kernels read."""

    def __init__(self, const int64_t[::1] one_start, const int32_t[::1] one_column,
                 const int64_t[::1] value_start, const int32_t[::1] value_column,
                 const int16_t[::1] value):
        self._arrays = (one_start, one_column, value_start, value_column, value)
        self.view.one_start = &one_start[0]
        self.view.value_start = &value_start[0]
        self.view.one_column = &one_column[0] if one_column.shape[0] else NULL
        self.view.value_column = &value_column[0] if value_column.shape[0] else NULL
        self.view.value = &value[0] if value.shape[0] else NULL


cdef class CodeRows:
    """Packed records of a schema; holds the arrays that the kernels read."""

    def __init__(self, const uint16_t[:, ::1] codes, const int16_t[:, ::1] numbers):
        self._arrays = (codes, numbers)
        self.view.rows, self.view.joints = codes.shape[0], codes.shape[1]
        self.view.numbers = numbers.shape[0]
        self.view.code = &codes[0, 0]
        self.view.number = &numbers[0, 0] if numbers.shape[0] else NULL


cdef class Loss:
    """A loss on a grid: bits a of records, b of candidates, c of scores.

    Residuals of class 0 and of class 1 are multiplied by weights of at most 1; losses are not.
    """

    def __init__(self, str name, int a, int b, int c, double C=1.0, double weight_0=1.0,
                 double weight_1=1.0):
        cdef loss_args args
        cdef int power
        args.one = 1 << (a + b)
        args.far_wide = 16.0 * args.one
        args.far = <int32_t>min(args.far_wide, 2.0**31 - 1)
        args.to_log2 = <float>(ldexp(1.0, -(a + b)) / M_LN2)
        args.shift = a + b - c
        args.factor = ldexp(C, -args.shift)
        self.kind = {"logistic": LOGISTIC, "hinge": HINGE, "zero_one": ZERO_ONE}[name]
        if self.kind == HINGE:
            power = 0
            while ldexp(1.0, power) < C:
                power += 1
            while ldexp(1.0, power) > C:
                power -= 1
            if ldexp(1.0, power) == C and 7 <= args.shift - power <= 30:
                args.shift -= power
            else:
                self.kind = HINGE_SCALED
        args.flip = 0
        args.slope_unit = <float>ldexp(weight_1, RESIDUAL_BITS)
        self.of_class[1] = args
        args.flip = -1
        args.slope_unit = <float>ldexp(weight_0, RESIDUAL_BITS)
        self.of_class[0] = args

    cdef loss_args of(self, int64_t flip) noexcept nogil:
        return self.of_class[1 + flip]
