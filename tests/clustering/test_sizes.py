"""Sizes of clusters: what was counted, the law of its noise, and centres in units of the table."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from privfit import Box, Categorical, KMeans, Lloyd, Numeric, Schema, load, save
from privfit.clustering import Tree
from privfit.clustering.sizes import Sizes, _half
from privfit.clustering.units import in_units
from privfit.privacy.privtree import Cells

X = np.repeat([[-0.5, -0.5], [0.5, 0.5]], [3000, 5000], axis=0)
X = X + np.random.default_rng(0).normal(0, 0.05, (8000, 2))
COUNTING = {"tree": Tree(), "lloyd": "lloyd", "residuals": Lloyd(residual=True), "auto": "auto",
            "hybrid": "hybrid", "over_seeded": "over_seeded"}  # fmt: skip


def fitted(solver, delta=0.0, **more):
    settings = {"domain": (-1, 1), "random_state": 3, **more}
    return KMeans(2, 1.0, delta, solver=solver, **settings).fit(X)


# --------------------------------------------------------------------------------- what is counted


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", COUNTING)
def test_sizes_are_those_of_the_clusters_within_twelve_errors(name, delta):
    """Laplace noise is beyond twelve deviations once in 2e7; 24 sizes: an alarm in 1e6 runs."""
    model = fitted(COUNTING[name], delta)
    exact = np.bincount(model.predict(X), minlength=2)
    assert (np.abs(model.cluster_sizes_ - exact) < 12 * model.cluster_size_errors_).all()
    low, high = model.cluster_size_intervals(0.9).T
    assert np.allclose((low + high) / 2, model.cluster_sizes_)
    wider = model.cluster_size_intervals(0.99)
    assert ((wider[:, 0] < low) & (high < wider[:, 1])).all()


def test_sizes_of_plain_steps_are_the_counts_of_the_trace():
    """Of the last step alone, or the mean of those that the centres are a mean of."""
    last = fitted(Lloyd(steps=4))
    assert last.cluster_sizes_.tolist() == last.path_.trace.counts[-1].tolist()
    mean = fitted(Lloyd(steps=4, average=0.5))
    assert np.allclose(mean.cluster_sizes_, mean.path_.trace.counts[-2:].mean(axis=0))
    scale = last.path_.trace.scale_counts
    assert np.allclose(last.cluster_size_errors_, math.sqrt(2) * scale)
    assert np.allclose(mean.cluster_size_errors_, math.sqrt(2) * scale / math.sqrt(2))


def test_sizes_of_a_tree_add_up_to_the_counts_of_its_cells():
    model = fitted(Tree())
    cells = model.path_.cells
    assert model.cluster_sizes_.sum() == cells.counts.sum()
    noise = model.release_.parameters["size_noise"]
    assert sum(noise["draws"]) == len(cells.counts)
    assert noise["scale"] == cells.scale


def test_a_cell_counts_for_the_centre_nearest_to_its_middle():
    low, high = np.array([[0], [4], [8]]), np.array([[4], [8], [16]])
    sizes = Sizes.of_cells(
        Cells(low, high, np.array([5, -2, 7]), 3.0), np.array([[0.2], [1.1]]), 0.1
    )
    # Middles 0.15, 0.55 and 1.15.
    assert sizes.counts.tolist() == [3.0, 7.0]
    assert sizes.draws.tolist() == [2, 1]


@pytest.mark.parametrize("solver", ["mean", "grid", "local"])
def test_solvers_without_counts_have_no_sizes_and_say_so(solver):
    model = fitted(solver)
    assert model.cluster_sizes_ is None
    assert model.cluster_size_errors_ is None
    assert "sizes" not in model.release_.parameters
    with pytest.raises(ValueError, match=rf"solver \('{solver}'\) released no counts of clusters; "
                       "fit with solver='tree'"):  # fmt: skip
        model.cluster_size_intervals()


def test_centres_that_were_postprocessed_have_no_sizes():
    assert fitted(Lloyd(steps=2), postprocess="mcmc").cluster_sizes_ is None


@pytest.mark.parametrize("name", [*COUNTING, "mean"])
def test_sizes_come_back_from_a_file(name, tmp_path):
    model = fitted(COUNTING.get(name, name), 1e-6)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    if model.cluster_sizes_ is None:
        assert again.cluster_sizes_ is None
        return
    assert again.cluster_sizes_.tolist() == model.cluster_sizes_.tolist()
    assert again.cluster_size_intervals().tolist() == model.cluster_size_intervals().tolist()


# ------------------------------------------------------------------------------- the law of noise


@pytest.mark.statistical
@pytest.mark.parametrize("draws", [1, 2, 3, 10, 60])
def test_intervals_of_laplace_sums_have_their_level(draws):
    """100,000 sums: a share off by more than 5.5 deviations comes once in 2e7 runs."""
    sums = np.abs(np.random.default_rng(draws).laplace(0, 1, (100_000, draws)).sum(axis=1))
    for level in (0.5, 0.9, 0.99):
        share = (sums <= _half("laplace", draws, level)).mean()
        assert abs(share - level) < 5.5 * math.sqrt(level * (1 - level) / len(sums)) + 5e-4


def test_one_laplace_draw_many_and_gaussian_draws_have_closed_forms():
    assert _half("laplace", 1, 0.9) == pytest.approx(math.log(10))
    assert _half("gaussian", 4, 0.95) == pytest.approx(2 * 1.959964, rel=1e-6)
    assert _half("laplace", 300, 0.9) == pytest.approx(_half("laplace", 299, 0.9), rel=0.005)
    assert _half("laplace", 0, 0.9) == 0.0


@pytest.mark.parametrize("level", [0, 1, -0.5, 2.0, math.nan, "0.9", None])
def test_levels_beyond_0_and_1_are_refused(level):
    with pytest.raises(ValueError, match=r"level \(.*\) must be between 0 and 1; pass one such as"):
        fitted("lloyd").cluster_size_intervals(level)


# ------------------------------------------------------------------------------- centres in units

SCHEMA = Schema({"age": Numeric(20, 70), "job": Categorical(["clerk", "nurse"]),
                 "pay": Numeric(0, 100, bins=2)})  # fmt: skip


def test_numbers_go_back_to_their_range_and_levels_are_shares():
    centers = np.array([[0.5, 0.3, 0.9, -0.1, 0.5], [1.0, -0.2, 0.0, 0.25, 0.75]])
    found = in_units(SCHEMA, centers)
    assert list(found) == ["age", "job=clerk", "job=nurse", "pay[0]", "pay[1]"]
    assert found["age"].tolist() == [45.0, 70.0]
    assert np.allclose(found["job=clerk"], [0.25, 0.5])
    assert np.allclose(found["job=clerk"] + found["job=nurse"], 1)
    assert np.allclose(found["pay[1]"], [1.0, 0.75])


def test_columns_of_a_box_keep_their_numbers_and_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["x", "y"])
    model = KMeans(2, 1.0, domain=Box(-1, 1), random_state=0).fit(frame)
    table = model.centers_in_units()
    assert list(table.columns) == ["x", "y"]
    assert np.array_equal(table.to_numpy(), model.cluster_centers_)
    assert list(fitted("tree").centers_in_units(as_frame=False)) == ["x0", "x1"]


def test_without_pandas_a_dict_is_offered(monkeypatch):
    model = fitted("tree")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"a frame of centres needs pandas; .* pass as_frame=Fal"):
        model.centers_in_units()
    assert len(model.centers_in_units(as_frame=False)["x0"]) == 2


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999, 1 - 1e-6, 1 - 1e-9])
def test_intervals_of_few_draws_have_their_level_far_out(level):
    """P(|sum| > t) of two Laplace draws is e^-t (1 + t/2), and of three e^-t (1 + 5t/8 + t^2/8)."""
    two, three = _half("laplace", 2, level), _half("laplace", 3, level)
    assert math.exp(-two) * (1 + two / 2) == pytest.approx(1 - level, rel=1e-6)
    assert math.exp(-three) * (1 + 5 * three / 8 + three**2 / 8) == pytest.approx(
        1 - level, rel=1e-6
    )
