"""The experiments of PrivGene's paper: the set-up is the paper's, and every curve can be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from makers.figures_of_papers import check_claims, check_fits, check_page

from bench.accuracy import clusters
from bench.papers import privgene_2013 as script
from privfit import EEM, LogisticRegression, PrivGene

pytestmark = pytest.mark.filterwarnings("ignore")


def test_claims_name_curves_and_the_page_has_a_place_for_each_figure():
    check_claims(script)
    check_page(script)


@pytest.fixture
def few(monkeypatch):
    """Generated records in place of the real ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 4))
    y = (X[:, 0] > 0.2).astype(np.int64)
    monkeypatch.setattr(script, "records", lambda name: (X, y))
    monkeypatch.setattr(clusters, "records", lambda name: X)
    for cached in (script.fold, script.at_rate, script.variance):
        cached.cache_clear()
    yield X
    for cached in (script.fold, script.at_rate, script.variance):
        cached.cache_clear()


@pytest.mark.few(1)
@pytest.mark.parametrize("figure", ["2", "3", "4", "5"])
def test_every_curve_can_be_drawn(few, figure):
    for panel in script.FIGURES[figure]().panels:
        check_fits(panel, 1.0)


def test_folds_are_those_of_cross_validation(few):
    for repetition in range(2):
        folds = [script.fold("adult", script.FOLDS * repetition + i) for i in range(script.FOLDS)]
        tests = np.concatenate([test for _, _, test, _ in folds])
        assert np.array_equal(np.sort(tests, axis=0), np.sort(few, axis=0))
        assert {len(X) + len(test) for X, _, test, _ in folds} == {500}
    assert not np.array_equal(script.fold("adult", 0)[2], script.fold("adult", 5)[2])


def test_errors_are_of_weights_with_the_intercept_last():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert script.wrong(np.array([1.0, 0, 0]), X, np.array([1, 0, 0])) == 0
    assert script.wrong(np.array([0, 0, 1.0]), X, np.array([1, 0, 0])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("task", ["logistic", "svm"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_rival_has_the_printed_regularisation_and_noise(few, task, epsilon):
    """Algorithm 2 of 2011: 2 ln(1 + c / Lambda) = epsilon / 2, and noise of rate epsilon / 4."""
    budget, settings = script.printed_noise(task, epsilon, 500)
    curvature = {"logistic": 0.25, "svm": 1.0}[task]
    assert 2 * math.log1p(curvature / settings.regularisation) == pytest.approx(epsilon / 2)
    assert budget < epsilon
    kind = {"logistic": LogisticRegression, "svm": script.LinearSVC}[task]
    model = kind(budget, domain=(-1, 1), classes=[0, 1], solver=settings, random_state=0)
    noted = model.fit(few, few[:, 0] > 0).release_.settings
    assert noted["tilt"] == pytest.approx(4 / epsilon, rel=1e-6)
    assert not noted["shaped"]
    ours = script.our_noise(task, epsilon, 500)
    assert ours == (epsilon, settings)


def test_the_support_vector_machine_has_the_printed_weight(few, monkeypatch):
    seen = []
    monkeypatch.setattr(script.LinearSVC, "fit", lambda self, X, y: seen.append(self.C) or self)
    for attribute in ("coef_", "intercept_"):
        monkeypatch.setattr(script.LinearSVC, attribute, np.zeros(4), raising=False)
    for solver in (EEM(paper=True), PrivGene(paper=True), script.Majority()):
        script.fitted("svm", 1.0, solver, few, few[:, 0] > 0, 0)
    assert seen == [10.0, 10.0, 1.0]


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "size", "width"),
    [("adult", 48_842, 108), ("bank_full", 45_211, 51), ("adult, LIBSVM", 48_842, 123)],
)
def test_columns_lie_between_minus_one_and_one(name, size, width):
    X, y = script.records(name)
    assert X.shape == (size, width)
    assert (X.min(), X.max()) == (-1, 1)
    assert set(y.tolist()) == {0, 1}
    if "LIBSVM" in name:
        assert set(np.unique(X)) == {-1, 1}


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_an_iteration_releases_one_vector_and_the_last_is_the_answer():
    """On Banking: 45 of them, which is 1.25e-3 of four fifths of its records."""
    panel = script.FIGURES["7"]().panels[0]
    assert panel.points[-1] == 45
    check_fits(panel, 1.0)
    for solver in (EEM(paper=True), PrivGene(survivors=1, paper=True)):
        path = script.errors_on_the_way("bank_full", "logistic", solver, 0)
        assert len(path) == 45
        assert path[-1] == script.error("bank_full", "logistic", solver, 1.0, 0)
    label, gap = list(panel.curves)[2], panel.points.index(script.EARLY)
    curves = [panel.curves[each].fit(panel.points, 0) for each in ("EM, one survivor", label)]
    assert curves[0][gap] == pytest.approx(curves[1][gap])
