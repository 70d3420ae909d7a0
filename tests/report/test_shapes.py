"""Pictures of shapes: panels show what `model.shape` gives, on one scale, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from makers.pictures import png_of, shapes_of

from privfit import Categorical, LinearSVC, LogisticRegression, Numeric, Schema
from privfit.report.plotting import draw_shapes

matplotlib = pytest.importorskip("matplotlib")


def panels_of(ax) -> dict:
    """The panels by the columns that they show, in order."""
    return {panel.get_title(loc="left"): panel for panel in ax.figure.axes if panel is not ax}


def legend_of(ax) -> list[str]:
    (frame,) = ax.figure.subfigs
    return [text.get_text() for legend in frame.legends for text in legend.get_texts()]


def steps_of(panel) -> list:
    return [patch for patch in panel.patches if type(patch).__name__ == "StepPatch"]


def bars_of(panel) -> list:
    return [patch for patch in panel.patches if type(patch).__name__ == "Rectangle"]


# ------------------------------------------------------------------------------------ what is drawn


def test_panels_come_by_importance_and_share_one_scale():
    model = shapes_of()
    panels = panels_of(draw_shapes(model))
    assert list(panels) == list(model.importances())
    scales = {panel.get_xlim() if model.shape(name).kind == "category" else panel.get_ylim()
              for name, panel in panels.items()}  # fmt: skip
    assert len(scales) == 1
    low, high = scales.pop()
    for name in panels:
        shape = model.shape(name)
        assert low < shape.values.min() <= shape.values.max() < high


def test_panels_stand_as_many_side_by_side_as_asked_for():
    model = shapes_of()
    for across, columns in ((1, 1), (2, 2), (9, len(model.importances()))):
        ax = draw_shapes(model, across=across)
        grid = panels_of(ax)[next(iter(model.importances()))].get_subplotspec().get_gridspec()
        assert grid.ncols == columns


def test_steps_are_those_of_the_shape():
    model = shapes_of()
    panel, shape = panels_of(draw_shapes(model))["hours"], model.shape("hours")
    (steps,) = steps_of(panel)
    values, edges, _ = steps.get_data()
    np.testing.assert_array_equal(values, shape.values)
    np.testing.assert_array_equal(edges[1:-1], shape.edges[1:-1])
    assert edges[0] == panel.get_xlim()[0]  # no range is declared: up to the end of the axis
    assert edges[-1] == panel.get_xlim()[1]
    assert panel.get_xscale() == "linear"


def test_a_plain_number_is_a_line_from_end_to_end():
    model = shapes_of()
    panel, shape = panels_of(draw_shapes(model))["height"], model.shape("height")
    line = next(line for line in panel.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(line.get_xdata(), [100, 150, 200])
    np.testing.assert_allclose(line.get_ydata(), [shape.values[0], 0, shape.values[1]])


def test_categories_are_bars_with_their_names():
    model = shapes_of()
    panel, shape = panels_of(draw_shapes(model))["sex"], model.shape("sex")
    np.testing.assert_allclose([bar.get_width() for bar in bars_of(panel)], shape.values)
    assert [text.get_text() for text in panel.get_yticklabels()] == list(shape.levels)
    assert panel.get_xlabel() == "log odds"


def test_of_many_categories_the_farthest_from_zero_are_shown():
    model = shapes_of()
    panel, shape = panels_of(draw_shapes(model))["job"], model.shape("job")
    kept = sorted(np.argsort(-np.abs(shape.values), kind="stable")[:12])
    assert [text.get_text() for text in panel.get_yticklabels()] == [shape.levels[j] for j in kept]
    np.testing.assert_allclose([bar.get_width() for bar in bars_of(panel)], shape.values[kept])
    assert panel.get_xlabel() == "log odds; 8 levels nearer to 0 are left out"


def test_missing_values_are_marked_beside_the_panel():
    model = shapes_of()
    ax = draw_shapes(model)
    (mark,) = panels_of(ax)["hours"].containers
    assert mark[0].get_ydata()[0] == model.shape("hours").missing
    assert mark[0].get_xdata()[0] > 1  # in units of the panel's width
    assert "missing values" in legend_of(ax)
    assert legend_of(draw_shapes(model, columns=["sex"])) == []


def test_widths_that_span_decades_are_drawn_on_a_logarithmic_scale():
    panels = panels_of(draw_shapes(shapes_of()))
    scales = {name: panel.get_xscale() for name, panel in panels.items()}
    assert {name for name, scale in scales.items() if scale == "symlog"} == {"gain", "debt"}
    assert panels["gain"].get_xlim() == (0, 99_999)
    low, high = panels["debt"].get_xlim()  # the whole scale, a decade beyond its last cuts
    assert low == -high < -1e9
    assert panels["pay"].get_xlim() == (100, 10_900)  # a tenth beyond cuts that lie close together


def test_steps_outside_the_view_leave_no_mark_on_its_edge():
    (steps,) = steps_of(panels_of(draw_shapes(shapes_of()))["pay"])
    edges = steps.get_data()[1]
    assert (np.diff(edges)[1:-1] > 0).all()
    assert np.isfinite(edges).all()


def pairs_of_cuts() -> LogisticRegression:
    """A model whose value 40 is a bin of its own, far from its neighbours."""
    coins = np.random.default_rng(0)
    hours = np.where(coins.uniform(size=4000) < 0.5, 40.0, coins.uniform(0, 100, 4000))
    cut = Numeric(0, 100, bins=[20, 39.9, 40.1, 60])
    model = LogisticRegression(50.0, 1e-6, domain=Schema({"hours": cut}), classes=[False, True])
    return model.fit({"hours": hours}, hours == 40)


def test_a_narrow_bin_far_from_its_neighbours_is_a_point_and_no_spike():
    model = pairs_of_cuts()
    ax = draw_shapes(model)
    panel, shape = panels_of(ax)["hours"], model.shape("hours")
    at = int(np.argmax(shape.values))
    assert shape.edges[at] > 39
    (point,) = [one for one in panel.containers if len(one[0].get_xdata())]
    assert point[0].get_xdata()[0] == pytest.approx(40, abs=0.1)
    assert point[0].get_ydata()[0] == shape.values[at]
    *_, steps = steps_of(panel)
    assert steps.get_data()[0].tolist() == np.delete(shape.values, at).tolist()
    edges = steps.get_data()[1]
    assert len(edges) == len(shape.values)
    assert edges[2] == pytest.approx(40, abs=0.1)  # where its neighbours meet
    assert "single values" in legend_of(ax)


# -------------------------------------------------------------------------------- bands and classes


def test_bands_and_whiskers_are_those_of_the_shape():
    model = shapes_of(errors=True)
    ax = draw_shapes(model, level=0.5)
    panels = panels_of(ax)
    band, _ = steps_of(panels["hours"])
    shape = model.shape("hours", level=0.5)
    np.testing.assert_array_equal(band.get_data()[0], shape.upper)
    np.testing.assert_array_equal(band.get_data()[2], shape.lower)
    (area,) = panels["height"].collections
    line = model.shape("height", level=0.5)
    ends = area.get_paths()[0].vertices[:, 1]
    assert {ends.min(), ends.max()} == {line.lower.min(), line.upper.max()}
    assert 0.0 in ends  # the middle of the range, where a line is centred
    sex = model.shape("sex", level=0.5)
    (bars,) = (one for one in panels["sex"].containers if hasattr(one, "errorbar"))
    (whiskers,) = bars.errorbar[2]
    found = np.array([segment[:, 0] for segment in whiskers.get_segments()])
    np.testing.assert_allclose(found, np.column_stack([sex.lower, sex.upper]))
    assert legend_of(ax)[-1] == "50 % of the noise"


def test_without_known_errors_no_band_is_drawn():
    ax = draw_shapes(shapes_of())
    assert len(steps_of(panels_of(ax)["hours"])) == 1
    assert not any("noise" in text for text in legend_of(ax))


def test_each_class_is_a_curve_unless_one_is_chosen():
    model = shapes_of(classes=3)
    ax = draw_shapes(model)
    panels = panels_of(ax)
    assert legend_of(ax)[:3] == ["0", "1", "2"]
    drawn = [steps.get_data()[0] for steps in steps_of(panels["hours"])]
    assert len(drawn) == 3
    for label, values in enumerate(drawn):
        np.testing.assert_array_equal(values, model.shape("hours", label).values)
    assert len({(str(one.get_linestyle()), one.get_edgecolor())
                for one in steps_of(panels["hours"])}) == 3  # fmt: skip
    assert len(bars_of(panels["sex"])) == 3 * 3
    one = draw_shapes(model, label=2)
    (steps,) = steps_of(panels_of(one)["hours"])
    np.testing.assert_array_equal(steps.get_data()[0], model.shape("hours", 2).values)
    assert list(panels_of(one)) == list(model.importances(2))


def test_the_scale_says_whose_score_it_is():
    (frame,) = draw_shapes(shapes_of()).figure.subfigs
    assert frame.get_supylabel() == "contribution to the log odds of 1"
    (frame,) = draw_shapes(shapes_of(kind=LinearSVC), columns=["sex"]).figure.subfigs
    assert frame.get_supylabel() == "contribution to the margin of 1"
    (frame,) = draw_shapes(shapes_of(classes=3)).figure.subfigs
    assert frame.get_supylabel() == "contribution to the log odds"


def test_columns_may_be_chosen_and_are_twelve_at_most():
    assert list(panels_of(draw_shapes(shapes_of(), columns=("sex", "age")))) == ["sex", "age"]
    wide = Schema({f"x{j}": Numeric(0, 1) for j in range(15)})
    table = {name: np.linspace(0, 1, 60) for name in wide.columns}
    model = LogisticRegression(1.0, 1e-6, domain=wide, classes=[0, 1]).fit(table, [0, 1] * 30)
    assert list(panels_of(draw_shapes(model))) == list(model.importances())[:12]
    assert len(panels_of(draw_shapes(model, columns=list(wide.columns)))) == 15


def test_a_model_of_zeros_and_one_without_any_cut_are_drawn():
    model = shapes_of()
    model.coef_ = np.zeros_like(model.coef_)
    assert png_of(draw_shapes(model)).startswith(b"\x89PNG")
    odd = Schema({"a": Numeric(bins=[0.0]), "b": Numeric(0, 1, bins=1), "c": Categorical(["x"]),
                  "tax in $": Numeric(bins=[-1e6, -1.0, 0.0])})  # fmt: skip
    table = {"a": [1, 2] * 9, "b": [0, 1] * 9, "c": ["x"] * 18, "tax in $": [0, -5] * 9}
    fitted = LogisticRegression(1.0, 1e-6, domain=odd, classes=[0, 1]).fit(table, [0, 1] * 9)
    ax = draw_shapes(fitted)
    assert png_of(ax).startswith(b"\x89PNG")
    assert panels_of(ax)[r"tax in \$"].get_xlim() == (-1e7, 1.0)


def test_panels_fill_the_place_of_the_axes_given():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw_shapes(shapes_of(), right) is right
    figure.draw_without_rendering()
    boxes = [panel.get_position() for panel in figure.axes if panel not in (left, right)]
    (frame,) = figure.subfigs
    inside = [box.transformed(frame.transSubfigure).transformed(figure.transFigure.inverted())
              for box in boxes]  # fmt: skip
    assert len(inside) == len(shapes_of().importances())
    assert min(box.x0 for box in inside) >= 0.5
