/* One build of the tile functions: see tiles.h. PRIVFIT_TABLE names the table it fills. */
#include "tiles.h"

#include <math.h>
#include <stdlib.h>
#include "lanes.h"

#if defined(PRIVFIT_DEBUG)
#include <stdio.h>
#define CHECK(TRUTH) \
    ((TRUTH) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #TRUTH), abort()))
#else
#define CHECK(TRUTH) ((void)0)
#endif

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define ALWAYS_INLINE __forceinline
#else
#define ALWAYS_INLINE inline
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FIRST_OF_PAIR_IS_HIGH 1
#else
#define FIRST_OF_PAIR_IS_HIGH 0
#endif

#include "linear_tiles.h"
#include "smooth_tiles.h"
#include "centers_tiles.h"
#include "facility_tiles.h"
#include "select_tiles.h"
#include "chain_tiles.h"

#define TEXT(NAME) #NAME
#define NAME_OF(TABLE) TEXT(TABLE)

const tile_table PRIVFIT_TABLE = {
    .name = NAME_OF(PRIVFIT_TABLE),
    .margins = margins,
    .margin = margin,
    .margin_wide = margin_wide,
    .sparse_margins = sparse_margins,
    .sparse_margins_paired = sparse_margins_paired,
    .sparse_margin = sparse_margin,
    .loss_sum = {logistic_sum, hinge_sum, hinge_scaled_sum, zero_one_sum},
    .loss_each = {logistic_each, hinge_each, hinge_scaled_each, zero_one_each},
    .loss_lanes = {logistic_lanes, hinge_lanes, hinge_scaled_lanes, zero_one_lanes},
    .loss_wide = {logistic_wide, hinge_wide, hinge_scaled_wide, zero_one_wide},
    .shift_column = shift_column,
    .shift_entries = shift_entries,
    .shift_all = shift_all,
    .shift_rows = shift_rows,
    .residuals = {logistic_residuals, hinge_residuals, hinge_residuals, 0},
    .residuals_wide = {logistic_residuals_wide, hinge_residuals_wide, hinge_residuals_wide, 0},
    .cap_each = cap_each,
    .gradient = gradient,
    .sparse_gradient = sparse_gradient,
    .sparse_lengths = sparse_lengths,
    .margin_long = margin_long,
    .sparse_margin_long = sparse_margin_long,
    .smooth = {logistic_smooth, hinge_smooth},
    .table_smooth = table_smooth,
    .split = split,
    .pull = pull,
    .sparse_pull = sparse_pull,
    .whole_sum = whole_sum,
    .distances = {0, gaps, margins},
    .nearest = {0, nearest_l1, nearest_l2},
    .distance_wide = distance_wide,
    .sum = sum,
    .sum_smaller = sum_smaller,
    .keep_nearest = keep_nearest,
    .keep_two = keep_two,
    .without = without,
    .member_sums = member_sums,
    .residual_sums = residual_sums,
    .clip_store16 = clip_store16,
    .clip_store8 = clip_store8,
    .clip_transpose16 = clip_transpose16,
    .clip_transpose8 = clip_transpose8,
    .least16 = least16,
    .least8 = least8,
    .root_store16 = root_store16,
    .root_store8 = root_store8,
    .lesser16 = lesser16,
    .lesser8 = lesser8,
    .swaps16 = swaps16,
    .swaps8 = swaps8,
    .extremes = extremes,
    .weights_above = weights_above,
    .stream_words = stream_words,
    .log_uniforms = log_uniforms,
    .normals = normals,
    .place = place,
    .lay_out = lay_out,
    .nearest_of = nearest_of,
    .density = density,
    .refuse_strays = refuse_strays,
    .walk = walk,
    .save_best = save_best,
    .log_likelihood = log_likelihood,
};
