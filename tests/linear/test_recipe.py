"""The public rule of additive models, at both sides of each of its bounds."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from privfit.linear.recipe import Recipe
from privfit.privacy.neighbours import ADD_REMOVE, REPLACE


def at(signal: float, columns: int = 14, numbers: int = 6, **more: object) -> Recipe:
    return Recipe.of(10**6, signal * columns / 10**6, ADD_REMOVE, columns, numbers, **more)


# By signal: metric, share of moments, floor, steps, fastest step, share of cuts, expected slope.
RULES = {
    10: ("block", 0.05, 16.0, 24, 1.5, 0.0, 0.75),
    49: ("block", 0.05, 16.0, 24, 1.5, 0.0, 0.75),
    51: ("block", 0.05, 8.0, 48, 1.5, 0.0, 0.75),
    79: ("block", 0.05, 8.0, 48, 1.5, 0.0, 0.75),
    81: ("block", 0.05, 8.0, 48, 1.5, 0.1, 0.75),
    149: ("block", 0.05, 8.0, 48, 1.5, 0.1, 0.75),
    151: ("full", 0.1, 0.6, 32, 2.4 / 0.7, 0.1, 0.85),
    499: ("full", 0.1, 0.6, 32, 2.4 / (0.7 * math.sqrt(499 / 250)), 0.1, 0.85),
    501: ("full", 0.1, 0.3, 32, 2.4 / (0.7 * math.sqrt(501 / 250)), 0.3, 0.95),
    1001: ("full", 0.1, 0.3, 48, 2.4 / (0.7 * math.sqrt(1001 / 250)), 0.3, 0.95),
    9000: ("full", 0.1, 0.3, 48, 1.6, 0.3, 0.95),
}


@pytest.mark.parametrize(("signal", "expected"), RULES.items())
def test_rules_follow_the_signal(signal, expected):
    r = at(signal)
    assert r.signal == pytest.approx(signal)
    assert (r.metric, r.moments, r.floor, r.steps) == expected[:4]
    assert r.fastest == pytest.approx(expected[4])
    assert (r.cut_share, r.slope) == expected[5:]
    assert r.category_share == 0.1
    assert r.clip == pytest.approx(0.4 if signal < 150 else 2.4 / r.fastest)
    assert (r.depth == 0) == (signal < 80)


# By dimensions: public, learned, depth, mixing.
SIZES = {
    8: (4, 4, 3, 0.6),
    13: (7, 6, 3, 0.6),
    14: (7, 7, 4, 0.5),
    15: (8, 7, 4, 0.5),
    16: (8, 8, 4, 0.5),
    28: (8, 20, 4, 0.5),
    29: (8, 21, 5, 0.3),
    48: (8, 40, 5, 0.3),
}


@pytest.mark.parametrize(("dimensions", "expected"), SIZES.items())
def test_dimensions_follow_the_signal_and_the_numbers(dimensions, expected):
    columns = 4
    signal = max(81.0, (dimensions * 10 / 2.5) ** 2 / columns)
    numbers = 10 if signal > 81 else round(2.5 * math.sqrt(signal * columns) / dimensions)
    r = at(signal, columns, numbers)
    assert r.dimensions == dimensions
    assert (r.public, r.learned, r.depth, r.mixing) == expected


def test_the_highest_signals_have_more_functions_and_less_caution():
    below, above, most = at(999), at(1001), at(2001, columns=40, numbers=8)
    assert (below.caution, below.average) == (4.0, 0.75)
    assert (above.caution, above.average) == (1.0, 0.5)
    assert (most.dimensions, most.depth, most.mixing) == (80, 6, 0.3)
    assert at(1999, columns=40, numbers=8).dimensions == 48
    crowded = at(1e6, columns=100, numbers=100)
    assert crowded.dimensions * 100 <= 2048
    assert at(1e6, columns=900, numbers=900).dimensions == 8


def test_labels_are_measured_under_the_full_metric_alone():
    assert [at(s).weak for s in (20, 149, 151, 5000)] == [0, 0, 0.2, 0.2]


@pytest.mark.parametrize(
    ("signal", "columns", "numbers", "wide"),
    [(11, 20, 15, True), (13, 20, 15, False), (11, 20, 14, False), (11, 30, 15, False)],
)
def test_wide_tables_of_numbers_have_rules_of_their_own(signal, columns, numbers, wide):
    r = at(signal, columns, numbers)
    assert r.pool == wide
    assert (r.public, r.dimensions) == ((5, 5) if wide else (8, 8))
    assert (r.smooth, r.fastest, r.average) == ((2.0, 0.7, 0.5) if wide else (0.7, 1.5, 0.75))
    prior = (r.slope, r.slope_error, r.intercept_error)
    assert prior == pytest.approx((0.85, 0.3, 0.3) if wide else (0.75, max(0.25, signal / 50), 0.1))
    assert (r.straight, r.beside) == (0.0, 32)
    assert (r.steps, r.floor, r.clip, r.caution) == (24, 16.0, 0.4, 4.0)
    assert not at(signal, columns, numbers, metric="full").pool
    assert at(signal, columns, numbers, pool=not wide).pool != wide


@pytest.mark.parametrize(
    ("signal", "columns", "numbers", "widest"),
    [(11, 40, 30, True), (13, 40, 30, False), (11, 40, 29, False), (11, 60, 30, False)],
)
def test_very_wide_tables_shrink_less_and_expect_any_slope(signal, columns, numbers, widest):
    r = at(signal, columns, numbers)
    assert (r.caution == 1.0, r.slope == 1.1, r.slope_error == 0.5) == (widest, widest, widest)
    assert (r.clip, r.straight) == (0.4, 0.0)


@pytest.mark.parametrize(
    ("signal", "columns", "ranged", "crowded"),
    [(11, 40, 30, True), (13, 40, 30, False), (11, 40, 29, False), (11, 60, 30, False)],
)
def test_crowded_tables_have_a_straight_line_for_a_declared_range(signal, columns, ranged, crowded):
    r = at(signal, columns, numbers=columns - 2, ranged=ranged)
    assert (r.straight, r.floor, r.clip) == ((0.6, 10.0, 0.6) if crowded else (0.0, 16.0, 0.4))
    assert r.pool == (crowded or signal < 12)
    assert (r.slope, r.slope_error) == ((1.1, 0.5) if r.pool else (0.75, 0.26))
    assert r.caution == (1.0 if r.pool and not crowded else 4.0)
    assert not at(signal, columns, columns - 2, ranged=ranged, pool=False).straight


def test_crowded_tables_have_no_bins_beside_the_scale_and_little_clip_at_a_low_signal():
    assert [at(s, 40, 38, ranged=30).beside for s in (2, 19, 21, 60)] == [0, 0, 0, 0]
    assert [at(s, 40, 38, ranged=29).beside for s in (2, 19, 21, 60)] == [32, 32, 32, 32]
    assert [at(s, 40, 38, ranged=30).clip for s in (2.9, 3.1)] == [0.4, 0.6]


def test_the_prior_on_a_slope_lets_go_as_the_signal_grows():
    assert [at(s).slope_error for s in (2, 12, 20, 40, 50, 5000)] == pytest.approx(
        [0.25, 0.25, 0.4, 0.8, 1.0, 1.0]
    )
    assert at(2, columns=20, numbers=15).slope_error == 0.3


def test_a_pure_budget_has_no_bins_beside_the_scale():
    assert Recipe.pure(1000, 1.0, ADD_REMOVE, 10, 3).beside == 0


# By records times mu: the share of spans of 4 of 9 columns, were all columns bought.
SPANS = {
    209: 0.0,  # an error of three hundredths at the largest share
    211: 0.1 * 9 / 4,
    632: 0.1 * 9 / 4,
    640: (200 / 640) ** 2 * 9 / 4,  # an error of one hundredth
    719: (200 / 719) ** 2 * 9 / 4,
    721: 0.0,  # cuts are bought
}


@pytest.mark.parametrize(("size", "share"), SPANS.items())
def test_spans_are_bought_where_counts_of_cells_say_something(size, share):
    found = Recipe.of(4 * size, 0.25, ADD_REMOVE, 9, 6, ranged=2)
    assert found.span_share == pytest.approx(share)
    replaced = Recipe.of(4 * size, math.sqrt(2) / 4, REPLACE, 9, 6, ranged=2)
    assert replaced.span_share == pytest.approx(share if size != 721 else (200 / 721) ** 2 * 9 / 4)
    assert Recipe.pure(size, 1.0, ADD_REMOVE, 9, 6).span_share == 0


def test_no_spans_are_bought_of_ranges_and_in_wide_tables():
    assert Recipe.of(1200, 0.25, ADD_REMOVE, 9, 6, ranged=6).span_share == 0
    assert Recipe.of(1200, 0.25, ADD_REMOVE, 9, 0).span_share == 0
    assert Recipe.of(None, 1.0, ADD_REMOVE, 9, 6).span_share == 0
    assert Recipe.of(12000, 0.25, ADD_REMOVE, 50, 29).span_share > 0
    assert Recipe.of(12000, 0.25, ADD_REMOVE, 50, 30).span_share == 0  # many numbers
    assert Recipe.of(2396, 0.25, ADD_REMOVE, 50, 26).span_share == 0  # a wide table
    assert Recipe.of(2404, 0.25, ADD_REMOVE, 50, 26).span_share > 0
    assert Recipe.of(2404, 0.25, ADD_REMOVE, 50, 26, pool=True).span_share == 0


def test_low_signals_have_the_public_scale_alone():
    r = at(20)
    assert (r.dimensions, r.public, r.learned, r.depth) == (8, 8, 8, 0)


def test_a_replaced_record_halves_the_signal():
    one = Recipe.of(4000, 0.25, ADD_REMOVE, 10, 3)
    other = Recipe.of(4000, 0.5, REPLACE, 10, 3)
    assert one == other


def test_a_table_of_categories_and_one_of_unknown_size_have_a_recipe():
    assert at(300, numbers=0).dimensions == 48
    assert Recipe.of(None, 0.3, REPLACE, 10, 3).signal == 100


def test_a_given_metric_brings_what_it_needs():
    full, block = at(20, metric="full"), at(900, metric="block")
    assert (full.metric, full.moments, full.floor) == ("full", 0.1, 0.6)
    assert full.fastest == pytest.approx(6.0)
    assert (block.metric, block.moments, block.floor, block.fastest) == ("block", 0.05, 8.0, 1.5)
    assert (full.clip, full.steps) == (at(20).clip, at(20).steps)
    assert all(getattr(block, one.name) is not None for one in fields(Recipe))


def test_a_large_budget_counts_for_no_more_where_sampling_limits_a_fit():
    most = Recipe.of(4000, 0.9, ADD_REMOVE, 14, 6)
    assert most.signal == pytest.approx(4000 * 0.9 / 14)
    assert Recipe.of(4000, 1.85, ADD_REMOVE, 14, 6) == most
    assert Recipe.of(4000, 0.8, ADD_REMOVE, 14, 6).signal < most.signal
    assert Recipe.pure(4000, 10.0, ADD_REMOVE, 14, 6).signal == pytest.approx(4000 * 10 / 14)
