"""The experiments of 2014: data, shares and settings as printed, claims about curves that are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from makers.places import ROOT

from bench import papers
from bench.papers import published_selections, sms_words, stoddard_2014
from bench.papers.sms_words import fold
from bench.papers.stoddard_2014 import BAYES, FIGURES, METHODS, TABLE_1, TESTING

pytestmark = [
    pytest.mark.usefixtures("data_folder"),
    pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning"),
]


@pytest.fixture(scope="module")
def figures(data_folder):
    return {name: make() for name, make in FIGURES.items()}


def test_every_claim_names_curves_and_points_of_its_panel(figures):
    assert set(figures) == {"1", "2", "3", "4", "5", "table 1", "6", "7", "8"}
    for figure in figures.values():
        for panel in figure.panels:
            for claim in panel.claims:
                assert {claim.lower, claim.higher} <= set(panel.curves)
                assert set(claim.points or ()) <= set(panel.points)


def test_the_page_has_a_place_for_every_figure():
    text = (ROOT / "docs" / "papers" / "stoddard_2014.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert text.count(f"<!-- figure {name}: begin -->") == 1
        assert text.count(f"<!-- figure {name}: end -->") == 1


def test_all_that_is_declared_was_measured(figures):
    found = papers.Found(papers.FOLDER / "papers" / "stoddard_2014.csv")
    for name, figure in figures.items():
        assert not list(papers.jobs_of(name, figure, figure.seeds, found)), name
        assert figure.seeds >= 10


@pytest.mark.slow
def test_messages_are_those_of_the_paper():
    texts, y = sms_words.messages()
    assert (len(texts), int(y.sum())) == (5_574, 5_574 - 747)
    data = fold(0)
    assert data.X_test.shape[0] == 558
    widths = [fold(seed).X.shape[1] for seed in range(10)]
    assert min(widths) < 8_021 < max(widths)  # the paper's number of features
    assert sms_words.common_fold(0).X.shape[1] == 5_000
    together = np.sort(np.concatenate([fold(seed).y_test for seed in range(10)]))
    assert np.array_equal(together, np.sort(y))


def test_a_sample_keeps_some_words_of_every_message():
    data = fold(0)
    some = data.sampled(3, 7)
    before, after = (np.asarray(X.sum(axis=1)).ravel() for X in (data.X, some.X))
    assert np.array_equal(after, np.minimum(before, 3))
    assert (data.X - some.X).min() == 0  # no word that was not there
    assert (data.sampled(3, 8).X != some.X).nnz > 0
    assert some.X_test is data.X_test


def test_settings_are_those_of_the_paper(figures):
    assert (stoddard_2014.S, stoddard_2014.R, stoddard_2014.RUNS) == (20, 10, 10)
    shares = {name: (way.share, way.most) for name, way in METHODS.items()}
    assert shares == {"score perturbation": (0.5, 10), "clusters": (0.2, 10),
                      "clusters, as published": (0.2, 10), TESTING: (0.2, 20)}  # fmt: skip
    assert TABLE_1["k-RecursiveMedians"] == (0.092, 0.054, 0.029, 0.023)
    best = figures["table 1"].panels[1].curves["k-RecursiveMedians"]
    assert best.published == {0.1: 0.092, 0.25: 0.054, 0.5: 0.029, 1.0: 0.023}
    assert "paper=PriROC(thresholds='medians', k=10" in best.settings


def test_every_curve_of_a_figure_gives_an_error(figures):
    for label, curve in figures["3"].panels[0].curves.items():
        assert 0 <= curve.fit(80, 0) <= 1, label
    for label, curve in figures["4"].panels[0].curves.items():
        assert 0 <= curve.fit(1.0, 0) <= 0.3, label
    for panel in figures["6"].panels[:1]:
        for curve in panel.curves.values():
            assert np.all(np.diff(curve.fit(panel.points, 0)) >= 0)


def test_no_word_is_no_news():
    assert BAYES(fold(0), np.array([], dtype=int), 1.0, 0, 10) == stoddard_2014.majority(1.0, 0)


def test_published_selections_are_right_where_noise_is_small():
    data = fold(0)
    exact = sms_words.scores(data, "total_count")
    right = exact >= 80
    assert np.array_equal(published_selections.threshold_testing(exact, 79.5, 1e-6, 0), right)
    assert np.array_equal(published_selections.noisy_cut(exact, 79.5, 1e6, 0), right)
    found = stoddard_2014.centred(data, 1e6, 0, "total_count", 80.0)
    assert 0.5 < np.sum(found & right) / math.sqrt(found.sum() * right.sum()) <= 1
