"""The public scale of all numbers: its cells, its map, and columns that are cut at it."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import Numeric, Schema
from privfit.base.errors import DeclarationError
from privfit.domains.columns import columns_from
from privfit.domains.scales import CUTS, MAP_BITS, cell_map, cells_of, computed_map, leading


def test_cells_cover_all_numbers_and_mirror_each_other():
    assert len(CUTS) == 210
    assert np.diff(CUTS).min() > 0
    np.testing.assert_array_equal(CUTS, -np.array(CUTS[::-1]))
    zero = cells_of(np.array([0.0]))[0]
    assert zero == 105
    assert cells_of(np.array([-1e-7, 1e-7])).tolist() == [zero, zero]
    assert cells_of(np.array([-np.inf, -1e30, 1e30, np.inf])).tolist() == [0, 0, 210, 210]
    sizes = np.array([1e-5, 0.02, 1.0, 37.0, 1e8])
    np.testing.assert_array_equal(cells_of(sizes) - zero, zero - cells_of(-sizes))


def test_eight_cells_are_a_decade():
    ratios = np.array(CUTS[107:]) / np.array(CUTS[106:-1])
    np.testing.assert_allclose(ratios, 10**0.125, rtol=2e-3)


@pytest.mark.parametrize("smooth", [0.7, 2.0])
def test_the_maps_that_ship_are_those_that_are_computed(smooth):
    np.testing.assert_allclose(cell_map(smooth), computed_map(smooth), atol=1.5)
    assert np.array_equal(cell_map(smooth), cell_map()) == (smooth == 0.7)


@pytest.mark.parametrize("smooth", [0.7, 2.0])
def test_rows_of_a_map_are_no_longer_than_one_however_many_dimensions(smooth):
    squares = np.cumsum(cell_map(smooth) ** 2, axis=1)
    assert squares.max() <= 4**MAP_BITS
    assert squares[105, -1] > 0.99 * 4**MAP_BITS  # 0 has a function of its own


def test_the_map_of_a_kernel_gives_the_kernel_back():
    x = np.linspace(0, 1, 9)
    kernel = np.exp(-np.abs(x[:, None] - x))
    functions = leading(kernel, np.full(9, 1 / 9), 9)
    np.testing.assert_allclose(functions @ functions.T, kernel, atol=1e-12)
    assert (functions[np.abs(functions).argmax(axis=0), range(9)] > 0).all()


def test_a_column_on_the_scale_needs_no_range_and_refuses_nothing():
    column = Numeric(scale="log", missing=True)
    assert not column.is_blank
    assert column.width == 212
    assert column.coded_range is None
    codes = Schema({"x": column}).read({"x": [0, 1.0, -1e30, None, "?", 3e38]}).levels[0]
    assert codes.tolist() == [105, cells_of(np.array([1.0]))[0], 0, 211, 211, 210]


def test_cells_refine_bins_within_the_range():
    column = Numeric(0, 100, bins=[30.0, 65.0], scale="log", ranks=[0.2, 0.9], fill=0)
    assert set(column.cuts) == {30.0, 65.0} | {cut for cut in CUTS if 0 < cut < 100}
    assert column.level_names("x")[-1] == f"x[{len(column.cuts)}]"
    values = [0.0, 29.9, 30.0, 64.9, 65.0, 99.0]
    codes = Schema({"x": column}).read({"x": values}).levels[0]
    np.testing.assert_array_equal(codes, np.searchsorted(column.cuts, values, side="right"))
    wide = Numeric(0, 100, bins=4, scale="log", fill=0)
    assert {25.0, 50.0, 75.0} < set(wide.cuts)


def test_a_blank_on_the_scale_is_still_a_blank():
    assert Numeric(bins="auto", scale="log").is_blank
    assert Numeric(bins=8, scale="log").is_blank
    assert Numeric(bins="auto", scale="log").to_dict() == {
        "kind": "number", "bins": "auto", "scale": "log"}  # fmt: skip


@pytest.mark.parametrize(
    "column",
    [
        Numeric(scale="log", missing=True),
        Numeric(bins=[1.5, 2.5], ranks=[0.25, 0.5], scale="log", missing=True),
        Numeric(0, 9, bins=[1.5], ranks=[0.25], fill=1.0),
    ],
)
def test_declarations_come_back(column):
    assert columns_from({"x": column.to_dict()}) == {"x": column}
    schema = Schema({"x": column})
    assert Schema({"x": columns_from(schema.to_dict()["columns"])["x"]}) == schema


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": "linear"},
        {"bins": [1, 2], "ranks": [0.5]},
        {"bins": [1, 2], "ranks": [0.6, 0.5]},
        {"bins": [1, 2], "ranks": [0.0, 0.5]},
        {"bins": [1, 2], "ranks": [0.5, 1.0]},
        {"low": 0, "high": 1, "bins": 4, "ranks": [0.1, 0.2, 0.3]},
        {"low": 0, "high": 1, "ranks": []},
    ],
)
def test_wrong_scales_and_ranks_are_refused(wrong):
    with pytest.raises(DeclarationError, match=r"scale|ranks"):
        Numeric(**wrong)
