# The tile functions of the CPU at hand. Declarations follow tiles.h, where they are explained.
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from privfit._kernels.records cimport sparse_rows

cdef extern from "tiles.h" nogil:
    enum:
        PANEL
        QUAD
        WIDTH
        EIGHT
        BLOCK
        RESIDUAL_BITS
        LOGISTIC
        HINGE
        HINGE_SCALED
        ZERO_ONE
        LOSSES
        CROWD
        STREAMS

    ctypedef struct loss_args:
        int32_t flip
        int32_t shift
        int32_t one
        int32_t far
        double far_wide
        float to_log2
        double factor

    ctypedef struct chain_state:
        ptrdiff_t sets
        ptrdiff_t width
        int16_t *points
        uint16_t *ids
        double *log_q
        double *rows
        const double *weight
        int16_t *best
        int64_t *stale
        uint8_t *is_stale
        int64_t n_stale
        int64_t accepted
        double value
        double best_value
        int at_best

    ctypedef struct chain_source:
        ptrdiff_t d
        const double *centers
        const uint16_t *slots
        int slot_shift
        int norm
        const double *spread
        const double *bounds
        double limit

    ctypedef struct chain_block:
        ptrdiff_t n
        const int32_t *index
        const int16_t *points
        const uint16_t *ids
        const double *log_q
        const double *log_u
        double beta
        double tilt

    ctypedef struct tile_table:
        const char *name
        void (*margins)(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *, const int32_t *,
                        int32_t *, ptrdiff_t) noexcept nogil
        void (*margin)(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *, int32_t,
                       int32_t *) noexcept nogil
        void (*margin_wide)(const int16_t *, ptrdiff_t, ptrdiff_t, const double *, double,
                            double *) noexcept nogil
        void (*sparse_margins)(const sparse_rows *, ptrdiff_t, ptrdiff_t, const int32_t *,
                               ptrdiff_t, int, int32_t *) noexcept nogil
        void (*sparse_margins_paired)(const sparse_rows *, ptrdiff_t, ptrdiff_t, const int32_t *,
                                      const int32_t *, ptrdiff_t, int, int32_t *) noexcept nogil
        void (*sparse_margin)(const sparse_rows *, ptrdiff_t, ptrdiff_t, const int32_t *,
                              ptrdiff_t, int, int32_t *) noexcept nogil
        int64_t (*loss_sum[4])(const int32_t *, ptrdiff_t, const loss_args *) noexcept nogil
        void (*loss_each[4])(const int32_t *, ptrdiff_t, const loss_args *,
                             int32_t *) noexcept nogil
        void (*loss_lanes[4])(const int32_t *, ptrdiff_t, const loss_args *,
                              int64_t *) noexcept nogil
        int64_t (*loss_wide[4])(const double *, ptrdiff_t, const loss_args *) noexcept nogil
        void (*shift_column)(const int32_t *, ptrdiff_t, ptrdiff_t, ptrdiff_t, int32_t,
                             const int32_t *, int32_t *) noexcept nogil
        void (*shift_entries)(const int32_t *, const int16_t *, ptrdiff_t, int32_t,
                              int32_t *) noexcept nogil
        void (*shift_all)(const int32_t *, ptrdiff_t, int32_t, int32_t *) noexcept nogil
        void (*shift_rows)(const int32_t *, const int16_t *, ptrdiff_t, int32_t,
                           int32_t *) noexcept nogil
        void (*residuals[4])(const int32_t *, ptrdiff_t, const loss_args *, int32_t,
                             int32_t *) noexcept nogil
        void (*residuals_wide[4])(const double *, ptrdiff_t, const loss_args *, int32_t,
                                  int32_t *) noexcept nogil
        void (*cap_each)(int32_t *, ptrdiff_t, const int16_t *) noexcept nogil
        void (*gradient)(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *, int32_t *,
                         int64_t *) noexcept nogil
        void (*sparse_gradient)(const sparse_rows *, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                                const int32_t *, int64_t *, int64_t *) noexcept nogil
        void (*sparse_lengths)(const sparse_rows *, ptrdiff_t, ptrdiff_t, const int64_t *,
                               ptrdiff_t, ptrdiff_t, int, int, int, int64_t *) noexcept nogil
        void (*margin_long)(const int32_t *, ptrdiff_t, ptrdiff_t, const int64_t *, int64_t,
                            int64_t *) noexcept nogil
        void (*sparse_margin_long)(const sparse_rows *, ptrdiff_t, ptrdiff_t, const int64_t *,
                                   ptrdiff_t, int, int64_t *) noexcept nogil
        void (*smooth[2])(const double *, ptrdiff_t, double, double, double *,
                          double *) noexcept nogil
        void (*table_smooth)(const double *, ptrdiff_t, double, const double *, ptrdiff_t, double,
                             double *, double *) noexcept nogil
        void (*split)(double *, ptrdiff_t, double, double *) noexcept nogil
        void (*pull)(const int32_t *, ptrdiff_t, ptrdiff_t, const double *,
                     int64_t *) noexcept nogil
        void (*sparse_pull)(const sparse_rows *, ptrdiff_t, ptrdiff_t, ptrdiff_t, int,
                            const double *, int64_t *) noexcept nogil
        int64_t (*whole_sum)(const double *, ptrdiff_t, double) noexcept nogil
        void (*distances[3])(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *,
                             const int32_t *, int32_t *, ptrdiff_t) noexcept nogil
        void (*nearest[3])(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *,
                           const int32_t *, ptrdiff_t, int32_t *) noexcept nogil
        void (*distance_wide)(const int16_t *, ptrdiff_t, ptrdiff_t, const double *, int,
                              double *) noexcept nogil
        int64_t (*sum)(const int32_t *, ptrdiff_t) noexcept nogil
        int64_t (*sum_smaller)(const int32_t *, const int32_t *, ptrdiff_t) noexcept nogil
        void (*keep_nearest)(const int32_t *, ptrdiff_t, int32_t, int32_t *,
                             int32_t *) noexcept nogil
        void (*keep_two)(const int32_t *, ptrdiff_t, int32_t, int32_t *, int32_t *,
                         int32_t *) noexcept nogil
        void (*without)(const int32_t *, const int32_t *, const int32_t *, ptrdiff_t, int32_t,
                        int32_t *) noexcept nogil
        void (*member_sums)(const int32_t *, ptrdiff_t, ptrdiff_t, const int32_t *, ptrdiff_t,
                            int64_t *, int64_t *) noexcept nogil
        void (*residual_sums)(const int16_t *, ptrdiff_t, ptrdiff_t, const int32_t *,
                              const int32_t *, int64_t, int, int64_t *, int64_t *) noexcept nogil
        void (*clip_store16)(const int32_t *, ptrdiff_t, int32_t, int32_t, int,
                             uint16_t *) noexcept nogil
        void (*clip_store8)(const int32_t *, ptrdiff_t, int32_t, int32_t, int,
                            uint8_t *) noexcept nogil
        void (*clip_transpose16)(const int32_t *, ptrdiff_t, ptrdiff_t, int32_t, int32_t, int,
                                 uint16_t *, ptrdiff_t) noexcept nogil
        void (*clip_transpose8)(const int32_t *, ptrdiff_t, ptrdiff_t, int32_t, int32_t, int,
                                uint8_t *, ptrdiff_t) noexcept nogil
        int64_t (*least16)(const uint16_t *, ptrdiff_t, const int64_t *, ptrdiff_t, ptrdiff_t,
                           ptrdiff_t) noexcept nogil
        int64_t (*least8)(const uint8_t *, ptrdiff_t, const int64_t *, ptrdiff_t, ptrdiff_t,
                          ptrdiff_t) noexcept nogil
        void (*root_store16)(const double *, ptrdiff_t, double, double, double,
                             uint16_t *) noexcept nogil
        void (*root_store8)(const double *, ptrdiff_t, double, double, double,
                            uint8_t *) noexcept nogil
        int64_t (*lesser16)(const uint16_t *, const uint16_t *, ptrdiff_t) noexcept nogil
        int64_t (*lesser8)(const uint8_t *, const uint8_t *, ptrdiff_t) noexcept nogil
        void (*swaps16)(const uint16_t *, ptrdiff_t, ptrdiff_t, const uint16_t *,
                        const uint16_t *, const int32_t *, ptrdiff_t, int32_t *,
                        int32_t *) noexcept nogil
        void (*swaps8)(const uint8_t *, ptrdiff_t, ptrdiff_t, const uint8_t *,
                       const uint8_t *, const int32_t *, ptrdiff_t, int32_t *,
                       int32_t *) noexcept nogil
        void (*extremes)(const int64_t *, ptrdiff_t, int64_t *, int64_t *) noexcept nogil
        uint64_t (*weights_above)(const int64_t *, ptrdiff_t, int64_t, int64_t, float,
                                  uint32_t *) noexcept nogil
        void (*stream_words)(uint64_t *, ptrdiff_t, uint64_t *) noexcept nogil
        void (*log_uniforms)(const uint64_t *, ptrdiff_t, double *) noexcept nogil
        void (*normals)(const uint64_t *, ptrdiff_t, double *, double *) noexcept nogil
        void (*place)(const chain_source *, const uint64_t *, uint64_t, const double *, int32_t *,
                      int32_t *, int32_t *, double *) noexcept nogil
        void (*lay_out)(const int32_t *, ptrdiff_t, ptrdiff_t, int16_t *, int16_t *,
                        double *) noexcept nogil
        void (*nearest_of)(const int32_t *, ptrdiff_t, int32_t, int32_t *,
                           int32_t *) noexcept nogil
        void (*density)(const int32_t *, const int32_t *, ptrdiff_t, const float *, double,
                        const double *, double *) noexcept nogil
        void (*refuse_strays)(const int32_t *, const int32_t *, ptrdiff_t,
                              double *) noexcept nogil
        void (*walk)(chain_state *, const chain_block *, int) noexcept nogil
        void (*save_best)(chain_state *) noexcept nogil
        double (*log_likelihood)(const chain_state *, ptrdiff_t, int) noexcept nogil

cdef const tile_table *tiles() noexcept nogil
