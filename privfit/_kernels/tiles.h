/* The tile functions, and the table that holds one build of them.
 *
 * tiles.c is compiled once for the baseline instruction set and once for AVX2; each build fills
 * one table, and simd.pyx picks a table when the package is imported. A tile function works on
 * memory it is handed, allocates nothing, draws nothing and never sees epsilon.
 *
 * Records are int16 on the domain's grid. Dense records come in panels of PANEL rows, two columns
 * to an int32: (n_panels, pairs, PANEL). Arithmetic is on integers and wraps, so the order of the
 * columns cannot matter and only a final value has to fit. Where it might not fit in 32 bits the
 * wide functions do the same on integers held in double.
 */
#ifndef PRIVFIT_TILES_H
#define PRIVFIT_TILES_H

#include <stddef.h>
#include <stdint.h>

enum {
    PANEL = 16,  /* records in a panel */
    QUAD = 4,    /* candidates, or centres, that a microkernel takes at once */
    WIDTH = 32,  /* candidates side by side in a sparse tile */
    BLOCK = 256, /* records whose int32 losses may be added before widening to int64 */
    RESIDUAL_BITS = 12, /* of a residual in [0, 1] */
    IMAGE = 256  /* coordinates of a record's image that are summed at a time */
};

enum { LOGISTIC, HINGE, HINGE_SCALED, ZERO_ONE, LOSSES };
enum { L1 = 1, L2 = 2 };

/* What a loss knows of the grid: a, b, c are the bits of records, candidates and scores. */
typedef struct {
    int32_t flip;   /* 0 for class 1, -1 for class 0: the margin is (z ^ flip) - flip */
    int32_t shift;  /* margin units to score units: a + b - c, less log2 C for the hinge */
    int32_t one;    /* a margin of one: 2^(a+b) */
    int32_t far;    /* beyond this distance from 0, exp(-t) is below every unit; or the largest int */
    double far_wide; /* the same where it need not fit */
    float to_log2;  /* 2^-(a+b) / ln 2 */
    double factor;  /* hinge with any C: C 2^(c-a-b) */
} loss_args;

/* Packed sparse records: the columns that are exactly 1, and the (column, value) pairs. */
typedef struct {
    const int64_t *one_start;
    const int32_t *one_column;
    const int64_t *value_start;
    const int32_t *value_column;
    const int16_t *value;
} sparse_rows;

typedef struct {
    const char *name;

    /* linear models */
    void (*margins)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                    const int32_t *w, const int32_t *start, int32_t *z, ptrdiff_t stride);
    void (*margin)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                   const int32_t *w, int32_t start, int32_t *z);
    void (*margin_wide)(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const double *w, double start, double *z);
    void (*sparse_margins)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                           const int32_t *w, ptrdiff_t d, int a, int32_t *z);
    void (*sparse_margins_paired)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                  const int32_t *w, const int32_t *pairs, ptrdiff_t d, int a,
                                  int32_t *z);
    void (*sparse_margin)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                          const int32_t *w, ptrdiff_t d, int a, int32_t *z);
    int64_t (*loss_sum[LOSSES])(const int32_t *z, ptrdiff_t n, const loss_args *args);
    void (*loss_each[LOSSES])(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t *out);
    void (*loss_lanes[LOSSES])(const int32_t *z, ptrdiff_t rows, const loss_args *args, int64_t *out);
    int64_t (*loss_wide[LOSSES])(const double *z, ptrdiff_t n, const loss_args *args);
    void (*shift_column)(const int32_t *panels, ptrdiff_t n, ptrdiff_t pairs, ptrdiff_t column,
                         int32_t step, const int32_t *z, int32_t *out);
    void (*shift_entries)(const int32_t *z, const int16_t *value, ptrdiff_t n, int32_t step,
                          int32_t *out);
    void (*shift_all)(const int32_t *z, ptrdiff_t n, int32_t start, int32_t *out);
    void (*shift_rows)(const int32_t *row, const int16_t *value, ptrdiff_t n, int32_t step, int32_t *z);
    /* by loss; zero-one errors have no slope */
    void (*residuals[LOSSES])(const int32_t *z, ptrdiff_t n, const loss_args *args, int32_t cap, int32_t *out);
    void (*residuals_wide[LOSSES])(const double *z, ptrdiff_t n, const loss_args *args, int32_t cap, int32_t *out);
    void (*cap_each)(int32_t *residual, ptrdiff_t n, const int16_t *cap);
    void (*gradient)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                     const int32_t *residual, int32_t *work, int64_t *out);
    void (*sparse_gradient)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last, ptrdiff_t d,
                            const int32_t *residual, int64_t *ones, int64_t *values);
    void (*sparse_lengths)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                           const int64_t *columns, ptrdiff_t d, ptrdiff_t k, int a, int shift,
                           int squared, int64_t *out);

    /* centres, by power 1 or 2; the entry 0 is empty */
    void (*distances[3])(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                         const int32_t *w, const int32_t *start, int32_t *z, ptrdiff_t stride);
    void (*nearest[3])(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                       const int32_t *w, const int32_t *start, ptrdiff_t quads, int32_t *best);
    void (*distance_wide)(const int16_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                          const double *centre, int power, double *z);
    int64_t (*sum)(const int32_t *v, ptrdiff_t n);
    int64_t (*sum_smaller)(const int32_t *v, const int32_t *w, ptrdiff_t n);
    void (*keep_nearest)(const int32_t *z, ptrdiff_t n, int32_t index, int32_t *first, int32_t *which);
    void (*keep_two)(const int32_t *z, ptrdiff_t n, int32_t index,
                     int32_t *first, int32_t *which, int32_t *second);
    void (*without)(const int32_t *first, const int32_t *which, const int32_t *second, ptrdiff_t n,
                    int32_t index, int32_t *out);

    void (*member_sums)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const int32_t *which, ptrdiff_t k, int64_t *counts, int64_t *sums);

    /* facilities: clipped distances of two or one bytes, one row a facility */
    void (*clip_store16)(const int32_t *z, ptrdiff_t n, int32_t low, int32_t high, int shift, uint16_t *out);
    void (*clip_store8)(const int32_t *z, ptrdiff_t n, int32_t low, int32_t high, int shift, uint8_t *out);
    void (*clip_transpose16)(const int32_t *z, ptrdiff_t rows, ptrdiff_t facilities, int32_t low,
                             int32_t high, int shift, uint16_t *out, ptrdiff_t stride);
    void (*clip_transpose8)(const int32_t *z, ptrdiff_t rows, ptrdiff_t facilities, int32_t low,
                            int32_t high, int shift, uint8_t *out, ptrdiff_t stride);
    int64_t (*least16)(const uint16_t *rows, ptrdiff_t stride, const int64_t *set, ptrdiff_t k,
                       ptrdiff_t first, ptrdiff_t n);
    int64_t (*least8)(const uint8_t *rows, ptrdiff_t stride, const int64_t *set, ptrdiff_t k,
                      ptrdiff_t first, ptrdiff_t n);

    /* selection */
    void (*extremes)(const int64_t *scores, ptrdiff_t n, int64_t *best, int64_t *least);
    uint64_t (*weights_above)(const int64_t *scores, ptrdiff_t n, int64_t best, int64_t least,
                              float to_log2, uint32_t *out);
} tile_table;

extern const tile_table privfit_tiles_baseline;
extern const tile_table privfit_tiles_avx2;

#endif
