"""The experiment of Lee and Kifer: its set-up is the paper's, and every curve can be drawn."""

from __future__ import annotations

import numpy as np
import pytest
from makers.figures_of_papers import check_claims, check_fits, check_page

from bench.papers import lee_kifer as script
from privfit import Lloyd
from privfit.clustering.postprocess import LloydTrace, mcmc


@pytest.fixture
def few(monkeypatch):
    """Generated records in place of the real ones."""
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    monkeypatch.setattr(script, "table", lambda name: X)
    script.objective.cache_clear()
    yield X
    script.objective.cache_clear()


def test_claims_name_curves_and_the_page_has_a_place_for_the_figure():
    check_claims(script)
    check_page(script)


def test_every_curve_can_be_drawn(few):
    check_fits(script.panel("lifesci"), 1.0)


def test_costs_are_sums_of_squares_in_the_ball(few):
    ball = few / np.maximum(np.abs(few).sum(axis=1, keepdims=True), 1)
    centers = np.array([[0.5, 0, 0], [-0.5, 0, 0], [0, 0.5, 0]])
    exact = np.square(ball[:, None] - centers).sum(axis=2).min(axis=1).sum()
    assert script.squares("lifesci", centers) == pytest.approx(exact, rel=1e-3)


def test_the_chain_works_on_the_release_that_it_is_compared_with(few):
    plain = script.fitted("lifesci", Lloyd(paper=True), None, 1.0, 3)
    chained = script.fitted("lifesci", Lloyd(paper=True), "mcmc", 1.0, 3)
    first, second = (LloydTrace.from_release(model.release_) for model in (plain, chained))
    assert np.array_equal(first.counts, second.counts)
    assert np.array_equal(first.sums, second.sums)
    assert len(first.counts) == 5  # T
    assert first.scale_counts == pytest.approx(2 * 5 / 1.0, rel=0.01)
    published = mcmc(first, 3, rng=3, paper=True).centers
    assert np.allclose(chained.cluster_centers_, published, atol=1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_tables_are_those_at_hand():
    sizes = {name: script.table(name).shape for name in script.CLUSTERS}
    assert sizes == {
        "s1": (5000, 2), "gowalla_pois": (32_510, 2), "image_house_rgb": (33_925, 3),
        "adult": (48_842, 6), "lifesci": (26_733, 10),
    }  # fmt: skip
    assert script.CLUSTERS == {
        "s1": 15, "gowalla_pois": 5, "image_house_rgb": 3, "adult": 5, "lifesci": 3
    }  # fmt: skip
