"""The thesis's experiments: data, budgets and settings as printed, claims about curves that are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from makers.places import ROOT

from bench import papers
from bench.accuracy import medians
from bench.papers import humphries_2021, humphries_tasks
from bench.papers.humphries_2021 import FIGURES, GA, MEDIANS, PRIVGENE, generations_of
from bench.papers.humphries_tasks import Logistic, Medians, way
from privfit import DPSGA, Coreset, PrivGene, Subsample, Swaps
from privfit.searches.dpsga import thesis_delta

pytestmark = pytest.mark.usefixtures("data_folder")

PAGE = ROOT / "docs" / "papers" / "humphries_2021.md"
SHAPES = {"Adult": (48_842, 104), "Credit": (30_000, 23), "Spam": (4_601, 57),
          "Mushrooms": (8_124, 107)}  # fmt: skip


@pytest.fixture(scope="module")
def figures(data_folder):
    return {name: make() for name, make in FIGURES.items()}


def test_every_claim_names_curves_and_points_of_its_panel(figures):
    for figure in figures.values():
        for panel in figure.panels:
            for claim in panel.claims:
                assert {claim.lower, claim.higher} <= set(panel.curves)
                assert claim.points is None or claim.points
                assert set(claim.points or ()) <= set(panel.points)


def test_titles_tell_panels_apart(figures):
    for figure in figures.values():
        titles = [panel.title for panel in figure.panels]
        assert len(set(titles)) == len(titles)


def test_the_page_has_a_place_for_every_figure_of_chapters_6_to_8():
    wanted = {"6.1", "6.2", *(f"7.{i}" for i in range(1, 7)), *(f"8.{i}" for i in range(1, 9))}
    assert set(FIGURES) == wanted
    text = PAGE.read_text(encoding="utf-8")
    for name in FIGURES:
        assert text.count(f"<!-- figure {name}: begin -->") == 1
        assert text.count(f"<!-- figure {name}: end -->") == 1


def test_all_that_is_declared_was_measured(figures):
    found = papers.Found(papers.FOLDER / "papers" / "humphries_2021.csv")
    for name, figure in figures.items():
        assert not list(papers.jobs_of(name, figure, figure.seeds, found)), name
        assert figure.seeds >= 10 or name in ("6.1", "8.2")  # no coin is flipped there


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_tables_are_coded_as_the_thesis_says(name, shape):
    table = humphries_tasks.table(name)
    assert table.X.shape == shape
    assert (table.X.min(axis=0) >= 0).all()
    assert (table.X.max(axis=0) == 1).all()
    assert set(np.unique(table.y)) == {0, 1}


def test_a_missing_category_is_the_most_frequent_one_and_two_values_are_a_bit():
    coded = humphries_tasks.one_hot(np.array(["b", "?", "a", "b", "c"]))
    assert coded.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert humphries_tasks.one_hot(np.array(["x", "y", "?", "y"])).tolist() == [[0], [1], [1], [1]]


def test_a_seed_splits_off_a_fifth():
    train, test = humphries_tasks.split("Spam", 3)
    assert (len(train.y), len(test.y)) == (3_680, 921)
    other = humphries_tasks.split("Spam", 4)[1]
    assert not np.array_equal(test.X, other.X)


def test_public_facilities_are_a_fifth_of_all_and_distances_are_clipped():
    problem = humphries_tasks.problem("Spam", True)
    assert problem.objective.n_facilities == 4_601 // 4
    assert problem.objective.clip == (57 / 4, 57 / 2)
    assert humphries_tasks.problem("Spam", False).objective.clip == (0, 57)


def test_budgets_are_the_thesis_s(monkeypatch):
    """delta = n^-1.1 of what is fitted to; the local search of Gupta et al. has none."""
    asked = []
    monkeypatch.setattr(medians, "members", lambda *fit: asked.append(fit) or np.arange(4))
    Medians.fit.cache_clear()
    Medians("Spam", 4).fit(GA, 0.5, 0)
    Medians("Spam", 4).fit(way(Swaps, pure=True, paper=True), 0.5, 0)
    Medians.fit.cache_clear()
    assert [fit[4] for fit in asked] == [thesis_delta(4_601), 0.0]
    assert thesis_delta(4_601) == pytest.approx(4_601**-1.1)


def test_solvers_are_the_published_ones():
    assert GA.settings == DPSGA(paper=True)
    assert GA.settings.average == 0
    assert (GA.settings.selection, GA.settings.composition) == ("exponential", "bounded_range")
    assert PRIVGENE.settings == PrivGene(paper=True)
    assert way(Subsample, paper=True).settings.candidates == 1_000
    assert way(Coreset, alpha=0.6).text == "Coreset(alpha=0.6)"
    grid = humphries_2021.grid(Logistic("Spam"))
    assert len(grid) == 12
    assert all(one.settings.paper and one.settings.average == 0 for one in grid)
    assert {one.settings.mutation for one in grid} == {round(m / 59, 6) for m in (1, 2)}


def test_generations_follow_the_printed_rules():
    assert [generations_of(GA, 9, epsilon) for epsilon in (0.1, 1.0, 10.0)] == [20, 75, 120]
    for n, epsilon in ((4_601, 0.1), (48_842, 1.0), (48_842, 10.0)):
        printed = 1.25e-3 * n * epsilon / 10
        assert generations_of(PRIVGENE, n, epsilon) == max(1, round(printed))


def test_random_sets_are_a_thousand_and_their_mean_is_that_of_single_costs():
    problem = humphries_tasks.problem("Spam", True)
    sets = np.random.default_rng(0).choice(problem.objective.n_facilities, (5, 4), replace=False)
    assert problem.costs(sets) == pytest.approx([problem.cost(members) for members in sets])
    drawn = []
    scores = problem.objective.scores

    class Counting:
        clip, unit = problem.objective.clip, problem.objective.unit
        n_facilities = problem.objective.n_facilities

        def scores(self, P):
            drawn.append(P)
            return scores(P)

    mean = medians.Problem(Counting(), problem.n).random_cost(4, 1)
    assert [len(P) for P in drawn] == [1_000]
    assert mean == pytest.approx(np.mean([problem.cost(members) for members in drawn[0]]))


def test_what_was_best_on_the_seeds_of_tuning_is_fitted(monkeypatch):
    seen = []

    def fit(self, one, epsilon, seed):
        seen.append(seed)
        return abs(one.settings.generations - 20) + 0.001 * seed

    monkeypatch.setattr(Logistic, "fit", fit)
    ways = [way(DPSGA, generations=r, paper=True) for r in (2, 10, 20, 50)]
    humphries_tasks.best_of.cache_clear()
    assert humphries_tasks.tuned(Logistic("Spam"), ways, 1.0, 7) == pytest.approx(0.007)
    humphries_tasks.best_of.cache_clear()
    assert set(seen) == {*humphries_tasks.TUNING, 7}
    assert not set(humphries_tasks.TUNING) & set(range(100))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["6.1", "8.2"])
def test_curves_give_finite_numbers(figures, name):
    for panel in figures[name].panels:
        for curve in panel.curves.values():
            assert math.isfinite(curve.fit(panel.points[0], 0))


def test_a_small_panel_of_fits_gives_finite_numbers(figures):
    """The sub-sampled mechanism on 4-median, Spam: both references, and the solvers."""
    panel = next(p for p in figures["8.6"].panels if p.title == "4-median, Spam")
    assert set(MEDIANS) >= {Medians("Spam", 4)}
    for curve in panel.curves.values():
        value = curve.fit(panel.points[:1], 0)[0] if curve.whole else curve.fit(panel.points[0], 0)
        assert 57 / 4 < value < 57 / 2
