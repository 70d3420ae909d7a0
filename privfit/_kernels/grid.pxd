"""Sizes that all kernels share, and what a loss knows of its grid.

Records are int16 on the domain's grid. Dense records come in panels of PANEL rows, two columns to
an int32: (n_panels, pairs, PANEL). Arithmetic is on integers and wraps, so the order of the columns
cannot matter and only a final value has to fit.
"""

from libc.stdint cimport int32_t

cdef enum:
    PANEL = 16          # records in a panel
    QUAD = 4            # candidates, or centres, that a microkernel takes at once
    WIDTH = 32          # candidates side by side in a sparse tile
    BLOCK = 256         # records whose int32 losses may be added before widening to int64
    RESIDUAL_BITS = 12  # of a residual in [0, 1]

cdef enum:
    LOGISTIC
    HINGE
    HINGE_SCALED
    ZERO_ONE

# What a loss knows of the grid: a, b, c are the bits of records, candidates and scores.
ctypedef struct loss_args:
    int32_t flip     # 0 for class 1, -1 for class 0: the margin is (z ^ flip) - flip
    int32_t shift    # margin units to score units: a + b - c, less log2 C for the hinge
    int32_t one      # a margin of one: 2^(a+b)
    int32_t far      # beyond this distance from 0, exp(-t) is below every unit; or the largest int
    double far_wide  # the same where it need not fit
    float to_log2    # 2^-(a+b) / ln 2
    double factor    # hinge with any C: C 2^(c-a-b)
    float slope_unit  # of a residual of 1: 2^RESIDUAL_BITS times the weight of its class

# Debug builds stop where this does not hold; others do not look.
cdef extern from "assert.h" nogil:
    void check "assert"(bint holds)
