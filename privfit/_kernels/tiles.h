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
    EIGHT = 8,   /* facilities whose swaps are summed at once, one to a lane */
    BLOCK = 256, /* records whose int32 losses may be added before widening to int64 */
    RESIDUAL_BITS = 12, /* of a residual in [0, 1] */
    CROWD = 64,  /* proposals of a chain that are drawn, assigned and walked together */
    STREAMS = 8, /* random generators side by side */
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

/* A chain over synthetic records. A row of `points` has `width` int16: the record, a one, zeros. */
typedef struct {
    ptrdiff_t sets, width;
    int16_t *points;      /* (n, width) */
    uint16_t *ids;        /* (n, sets): which row of `rows` a record belongs to in each set */
    double *log_q;        /* (n,): ln of the density with which it would be proposed */
    double *rows;         /* (sets k, width): noisy sums and counts less those of the points */
    const double *weight; /* (width,): 1 / scale or 1 / (2 scale^2); 0 for padding */
    int16_t *best;        /* (n, width): the points of the best state, but for the stale ones */
    int64_t *stale;       /* (n,): indices of points that changed since, each once */
    uint8_t *is_stale;    /* (n,) */
    int64_t n_stale, accepted;
    double value, best_value; /* log likelihoods */
    int at_best;          /* whether the points are the best state */
} chain_state;

/* Where proposals come from: centre + spread * noise, refused outside the domain. */
typedef struct {
    ptrdiff_t d;
    const double *centers;  /* (components, d) */
    const uint16_t *slots;  /* components; a word's bits above slot_shift choose a slot */
    int slot_shift, norm;   /* norm 0: a box; L1, L2: a ball as well */
    const double *spread;   /* (d,) */
    const double *bounds;   /* (2, d) least and largest coordinate */
    double limit;           /* of the norm; of its square for L2 */
} chain_source;

/* Proposals: point `index` is to be replaced by a row of `points`. */
typedef struct {
    ptrdiff_t n;
    const int32_t *index;
    const int16_t *points; /* (n, width) */
    const uint16_t *ids;   /* (n, sets) */
    const double *log_q, *log_u;
    double beta, tilt; /* accept if log_u < beta gain + tilt (log_q of the old - of the new) */
} chain_block;

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

    /* smooth losses, by LOGISTIC or HINGE */
    void (*margin_long)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                        const int64_t *w, int64_t start, int64_t *z);
    void (*sparse_margin_long)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last,
                               const int64_t *w, ptrdiff_t d, int a, int64_t *z);
    void (*smooth[2])(const double *z, ptrdiff_t n, double sign, double width, double *slope,
                      double *bend);
    void (*table_smooth)(const double *z, ptrdiff_t n, double sign, const double *table,
                         ptrdiff_t cells, double per_unit, double *slope, double *bend);
    void (*split)(double *v, ptrdiff_t n, double fine, double *rest);
    void (*pull)(const int32_t *panels, ptrdiff_t n_panels, ptrdiff_t pairs,
                 const double *residual, int64_t *out);
    void (*sparse_pull)(const sparse_rows *rows, ptrdiff_t first, ptrdiff_t last, ptrdiff_t d, int a,
                        const double *residual, int64_t *out);
    int64_t (*whole_sum)(const double *v, ptrdiff_t n, double unit);

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
    void (*residual_sums)(const int16_t *panels, ptrdiff_t pairs, ptrdiff_t rows,
                          const int32_t *which, const int32_t *centers, int64_t radius, int norm,
                          int64_t *counts, int64_t *sums);

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
    void (*root_store16)(const double *z, ptrdiff_t n, double low, double high, double unit,
                         uint16_t *out);
    void (*root_store8)(const double *z, ptrdiff_t n, double low, double high, double unit,
                        uint8_t *out);
    int64_t (*lesser16)(const uint16_t *a, const uint16_t *b, ptrdiff_t n);
    int64_t (*lesser8)(const uint8_t *a, const uint8_t *b, ptrdiff_t n);
    void (*swaps16)(const uint16_t *rows, ptrdiff_t stride, ptrdiff_t count,
                    const uint16_t *first, const uint16_t *second, const int32_t *which,
                    ptrdiff_t n, int32_t *added, int32_t *gone);
    void (*swaps8)(const uint8_t *rows, ptrdiff_t stride, ptrdiff_t count,
                   const uint8_t *first, const uint8_t *second, const int32_t *which,
                   ptrdiff_t n, int32_t *added, int32_t *gone);

    /* selection */
    void (*extremes)(const int64_t *scores, ptrdiff_t n, int64_t *best, int64_t *least);
    uint64_t (*weights_above)(const int64_t *scores, ptrdiff_t n, int64_t best, int64_t least,
                              float to_log2, uint32_t *out);

    /* the chain; arrays of CROWD records */
    void (*stream_words)(uint64_t *state, ptrdiff_t n, uint64_t *out);
    void (*log_uniforms)(const uint64_t *words, ptrdiff_t n, double *out);
    void (*normals)(const uint64_t *words, ptrdiff_t n, double *even, double *odd);
    void (*place)(const chain_source *source, const uint64_t *words, uint64_t n, const double *noise,
                  int32_t *whole, int32_t *component, int32_t *index, double *log_u);
    void (*lay_out)(const int32_t *whole, ptrdiff_t d, ptrdiff_t width, int16_t *points,
                    int16_t *panels, double *square);
    void (*nearest_of)(const int32_t *z, ptrdiff_t k, int32_t first, int32_t *which, int32_t *least);
    void (*density)(const int32_t *which, const int32_t *least, ptrdiff_t sets, const float *weight,
                    double precision, const double *square, double *out);
    void (*refuse_strays)(const int32_t *component, const int32_t *which, ptrdiff_t sets,
                          double *log_u);
    void (*walk)(chain_state *state, const chain_block *block, int quadratic);
    void (*save_best)(chain_state *state);
    double (*log_likelihood)(const chain_state *state, ptrdiff_t n_rows, int quadratic);
} tile_table;

extern const tile_table privfit_tiles_baseline;
extern const tile_table privfit_tiles_avx2;

#endif
