"""Private k-median: what each solver releases is what it is charged for, and no more tells.

Exact audits replay a solver over every outcome of its selections, for neighbouring data sets, and
compare the probabilities of whole transcripts: they raise no false alarm. Black-box audits use a
confidence of 1 - 1e-6 and fixed seeds.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from makers.cases import ADJACENCIES, packed
from makers.raises import assert_reached, messages_of
from makers.trees import leaves_of, shape_log, shapes
from scipy.spatial.distance import cdist

import privfit
from privfit import (
    DPSGA,
    EEM,
    Box,
    Budget,
    BudgetError,
    Categorical,
    Coreset,
    FacilityObjective,
    Greedy,
    KMedian,
    Ledger,
    Lloyd,
    Local,
    Numeric,
    PrivGene,
    Release,
    Schema,
    Subsample,
    Subsets,
    Swaps,
    Synopsis,
    search,
)
from privfit._kernels.random import BitSource
from privfit.audit import audit_outcomes, neighbours, output_distribution
from privfit.clustering import kmedian as methods
from privfit.clustering.kmedian import Weighted, weighted_kmedian
from privfit.objectives.moves import Moves
from privfit.privacy.ledger import Grant
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import ADD_REMOVE, Neighbours
from privfit.privacy.privtree import SplitTree
from privfit.runs.run import Run

SURE = 1 - 1e-6

# Each solver with few generations, and the draws of a fit with k clusters among f facilities.
SETTINGS: dict[str, tuple[Any, Any]] = {
    "greedy": (Greedy(), lambda k, f: 2 + k),
    "greedy, all distances": (Greedy(focus=0), lambda k, f: k),
    "greedy with swaps": (Greedy(swaps=3), lambda k, f: 2 + k + 3),
    "greedy, over-seeded": (Greedy(seeds=2), lambda k, f: 2 + min(2 * k, f) + 1),
    "over-seeded with swaps": (
        Greedy(seeds=3, swaps=2, focus=0),
        lambda k, f: min(3 * k, f) + 1 + 2,
    ),
    "swaps": (Swaps(steps=3), lambda k, f: 3 + 1),
    "swaps by rule": (Swaps(), lambda k, f: k + 1),
    "swaps, paper": (Swaps(paper=True), lambda k, f: math.ceil(6 * k * math.log(max(f, 2))) + 1),
    "coreset": (Coreset(radii=2), lambda k, f: min(2 * k, f) + 1),
    "synopsis": (Synopsis(depth=8), lambda k, f: 2),
    "dpsga": (DPSGA(generations=3, population=20, survivors=4), lambda k, f: 3 * 4 + 1),
    "privgene": (PrivGene(generations=3, population=20, survivors=4), lambda k, f: 3 * 4 + 1),
    "eem": (EEM(generations=4, population=20), lambda k, f: 4),
    "local": (Local(generations=4), lambda k, f: 4),
    "subsample": (Subsample(candidates=40), lambda k, f: 1),
}
every_solver = pytest.mark.parametrize(("settings", "draws"), SETTINGS.values(), ids=SETTINGS)

GENERATOR = np.random.default_rng(11)
GRID = np.array([[x, y] for x in range(6) for y in range(6)]) / 5
TWO = np.clip(GENERATOR.normal([[0.2, 0.2], [0.8, 0.6]], 0.05, (150, 2, 2)).reshape(-1, 2), 0, 1)


def make(**changes: Any) -> KMedian:
    declared = {"n_clusters": 2, "epsilon": 1.0, "facilities": GRID, "domain": (0, 1),
                "random_state": 7, "n_public": 300}  # fmt: skip
    return KMedian(**{**declared, **changes})


# ------------------------------------------------------------------------------------------ budgets


@pytest.mark.few(5)
@every_solver
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_drawn_was_planned_and_fits_the_budget(settings, draws, adjacency, delta):
    ledger = Ledger(2.0, 1e-5)
    model = make(solver=settings, adjacency=adjacency, delta=delta, ledger=ledger).fit(TWO)
    release = model.release_
    assert release.verify()
    assert sum(event.count for event in release.events) == draws(2, 36)
    assert ledger.entries == (("", "KMedian", Budget(1.0, delta)),)
    assert release.adjacency == adjacency
    assert 0.9 < release.cost() <= 1.0
    assert Release.from_json(release.to_json()).parameters["facilities"] == list(model.facilities_)


@pytest.mark.few(2)
@every_solver
@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("epsilon", [0.003, 30.0])
def test_budgets_of_any_size_are_kept(settings, draws, k, epsilon):
    for adjacency, delta in itertools.product(ADJACENCIES, (0.0, 1e-9)):
        model = make(n_clusters=k, solver=settings, epsilon=epsilon, delta=delta,
                     adjacency=adjacency, facilities=GRID[:9]).fit(TWO[:60])  # fmt: skip
        assert model.release_.verify()
        assert model.release_.cost() > 0.5 * epsilon
        assert sum(event.count for event in model.release_.events) == draws(k, 9)


SIZES = [(1, 1), (1, 64), (2, 3), (3, 64), (10, 16), (33, 3), (100, 1), (100, 64)]
ANY_SIZE = {name: case[0] for name, case in SETTINGS.items() if name != "swaps, paper"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ANY_SIZE, "auto"])
def test_spent_is_epsilon_for_all_sizes(name, rng):
    """d from 1 to 100, k from 1 to 64; each kind of guarantee in turn."""
    guarantees = itertools.cycle(itertools.product(ADJACENCIES, (0.0, 1e-6)))
    for (d, k), (adjacency, delta) in zip(SIZES, guarantees, strict=False):
        if name == "synopsis" and d > 3:
            continue
        X, places = rng.uniform(0, 1, (7, d)), rng.uniform(0, 1, (70, d))
        ledger = Ledger(0.7, delta)
        model = make(n_clusters=k, facilities=places, solver=ANY_SIZE.get(name, name), epsilon=0.7,
                     delta=delta, adjacency=adjacency, ledger=ledger).fit(X)  # fmt: skip
        release = Release.from_json(model.release_.to_json())
        assert release.verify()
        assert 0.9 * 0.7 < release.cost() <= 0.7
        assert ledger.spent == Budget(0.7, delta)
        assert len(set(model.facilities_)) == k


FORMS = {"numbers": np.array, "ones": lambda X: (X > 0.5) * 1.0, "alike": np.ones_like,
         "sparse": sp.csr_array, "sparse ones": lambda X: sp.csr_array((X > 0.5) * 1.0),
         "table": pd.DataFrame}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("metric", ["l1", "l2"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
def test_auto_depends_on_the_number_of_columns_and_not_on_records(d, metric, rng):
    """Zeros and ones are packed otherwise, which must not show in what is released."""
    X, places = rng.uniform(0, 1, (30, d)), rng.uniform(0, 1, (9, d))
    for adjacency in ADJACENCIES:
        model = make(facilities=places, metric=metric, adjacency=adjacency)
        releases = [model.fit(form(X)).release_ for form in FORMS.values()]
        assert {release.settings["solver"] for release in releases} == {
            "synopsis" if d <= 3 else "greedy"
        }
        assert len({(release.events, str(release.settings)) for release in releases}) == 1


# ----------------------------------------------------------------------------------- exact audits


class Script:
    """Stands for a grant: every draw is told, and its probability is reckoned.

    `choices` says which outcome each draw has, by position among its outcomes; beyond its end the
    first one. Outcomes of a noisy vector are a few given ones, whose entries rise and fall.
    """

    events = ()

    def __init__(self, epsilon: float, choices: tuple[int, ...]) -> None:
        self.budget, self.choices = Budget(epsilon), choices
        self.options: list[int] = []
        self.transcript: list[Any] = []
        self.log = mpmath.mpf(0)
        self.planned = mpmath.mpf(0)

    def plan(self, *events: Any) -> None:
        self.planned += sum(mpmath.mpf(event.parameter) * event.count for event in events)
        assert self.planned <= self.budget.epsilon

    def release(self, mechanism: Any, value: Any, rng: Any) -> Any:
        outcomes = self.outcomes(mechanism, value)
        position = len(self.options)
        self.options.append(len(outcomes))
        choice = self.choices[position] if position < len(self.choices) else 0
        outcome, log = outcomes[choice]
        self.log += log
        self.transcript.append(str(outcome))
        return outcome

    def outcomes(self, mechanism: Any, value: Any) -> list[tuple[Any, mpmath.mpf]]:
        if isinstance(mechanism, DiscreteLaplace):
            rate, values = mpmath.mpf(mechanism.epsilon) / mechanism.sensitivity, np.asarray(value)
            told = [np.where(np.arange(values.size) % 2 == i, 9, -9) for i in range(2)]
            return [(t, -rate * int(np.abs(t - values).sum())) for t in told]
        if isinstance(mechanism, SplitTree):
            every = shapes(mechanism.roots, mechanism.depth)
            return [(leaves_of(shape), shape_log(mechanism, shape, value)) for shape in every]
        law = output_distribution(mechanism, value)
        return [(np.array(key) if isinstance(key, tuple) else key, mpmath.mpf(str(log)))
                for key, log in law.items()]  # fmt: skip


def transcripts(settings: Any, rows: Any, k: int, adjacency: str, epsilon: float) -> dict[Any, Any]:
    """The log probability of every transcript of a solver on these records."""
    found, choices = {}, ()
    objective = FacilityObjective(np.array(rows)[:, None], LINE, (0.0, 2.0), Box(0, 1))
    while choices is not None:
        grant = Script(epsilon, choices)
        space = Subsets(len(LINE), k)
        settings(Run(objective, space, grant, 5, neighbours=Neighbours(adjacency), n_public=2))
        found[tuple(grant.transcript)] = grant.log
        played = [*choices, *[0] * (len(grant.options) - len(choices))]
        while played and played[-1] == grant.options[len(played) - 1] - 1:
            played.pop()
        choices = (*played[:-1], played[-1] + 1) if played else None
    return found


LINE = np.array([[0.0], [0.25], [1.0]])
POINTS = [0.0, 0.5, 1.0]
AUDITED = {
    "greedy": (Greedy(focus=0), 2),
    "greedy with focus": (Greedy(focus=0.4), 1),
    "greedy with swaps": (Greedy(focus=0, swaps=1), 1),
    "swaps": (Swaps(steps=2), 1),
    "swaps, paper": (Swaps(steps=2, paper=True), 1),
    "coreset": (Coreset(radii=2, places=1), 1),
    "coreset, alpha": (Coreset(alpha=0.9), 1),
    "synopsis": (Synopsis(depth=2, roots=1), 1),
    "dpsga": (DPSGA(generations=1, population=3, survivors=1), 1),
    "privgene": (PrivGene(generations=1, population=3, survivors=2), 1),
    "eem": (EEM(generations=2, population=3), 1),
    "local": (Local(generations=2), 1),
    "subsample": (Subsample(candidates=4), 1),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("settings", "k"), AUDITED.values(), ids=AUDITED)
def test_no_transcript_tells_neighbours_apart_by_more_than_epsilon(
    settings, k, adjacency, monkeypatch
):
    """All transcripts, all neighbours over three points of a line; and it is not for nothing."""
    monkeypatch.setattr(methods, "LEVELS", 3)
    epsilon = 1.0
    pairs = neighbours(len(POINTS), 2 if adjacency == "replace" else 1, adjacency)
    laws = [
        transcripts(settings, [POINTS[i] for i in rows], k, adjacency, epsilon)
        for rows in pairs.data_sets
    ]
    worst = mpmath.mpf(0)
    for i, j in pairs.pairs:
        assert laws[i].keys() == laws[j].keys()
        worst = max(worst, *(abs(laws[i][told] - laws[j][told]) for told in laws[i]))
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > 0.2 * epsilon  # something is told
    for law in laws:  # of selections every transcript is there
        if not isinstance(settings, Coreset | Synopsis):
            assert abs(mpmath.fsum(mpmath.exp(log) for log in law.values()) - 1) < 1e-12


def test_a_coreset_selects_the_place_that_serves_the_records_not_its_neighbour():
    """The neighbour, first in order, is nearer to that place than lo, and far from all records."""
    places = np.array([[0.45, 0.0], [0.0, 0.0], [1.0, 1.0]])
    records = np.tile([0.0, 0.3], (500, 1))
    objective = FacilityObjective(records, places, (0.5, 2.0), Box(0, 1), metric="l1")
    away = objective.scores(np.array([[0], [1]]))
    assert away[1] == 0 > away[0]
    grant = Ledger(50.0).reserve(50.0)
    settings = Coreset(radii=2, places=2)
    path = settings(Run(objective, Subsets(3, 1), grant, 1, n_public=500))
    assert path.answer.tolist() == [1]


BLACK_BOX = {
    "greedy": Greedy(),
    "swaps": Swaps(steps=2),
    "coreset": Coreset(radii=1),
    "synopsis": Synopsis(depth=4, roots=1),
    "dpsga": DPSGA(generations=1, population=6, survivors=1),
    "privgene": PrivGene(generations=1, population=6, survivors=1),
    "eem": EEM(generations=2, population=6),
    "local": Local(generations=2),
    "subsample": Subsample(candidates=6),
}


def outcomes(settings: Any, x: float, adjacency: str, epsilon: float, runs: int, seed: int) -> Any:
    """(runs,): the facility chosen for one record at x."""
    objective = FacilityObjective([[x]], LINE[[0, 2]], (0.0, 1.0), Box(0, 1))
    source, space = BitSource(seed), Subsets(2, 1)
    chosen = []
    for _ in range(runs):
        grant = Ledger(epsilon).reserve(epsilon)
        path = settings(
            Run(objective, space, grant, source, neighbours=Neighbours(adjacency), n_public=1)
        )
        chosen.append(int(path.answer[0]))
    return chosen


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", BLACK_BOX.values(), ids=BLACK_BOX)
def test_fits_of_neighbours_stay_within_epsilon(settings):
    epsilon = 1.5
    pair = [outcomes(settings, x, "replace", epsilon, 200, 3) for x in (0.0, 1.0)]
    assert audit_outcomes(*pair, confidence=SURE).passes(epsilon)


def test_an_overspending_solver_is_found():
    """The same audit of the same solver with the budget of two."""
    pair = [outcomes(Greedy(focus=0), x, "replace", 12.0, 200, 3) for x in (0.0, 1.0)]
    assert not audit_outcomes(*pair, confidence=SURE).passes(1.5)


# --------------------------------------------------------------------------------- post-processing


@pytest.mark.parametrize("k", [1, 2, 3])
def test_weighted_clustering_finds_the_best_of_few_places(k, rng):
    for _ in range(20):
        places = rng.uniform(0, 1, (7, 2))
        D, w = cdist(rng.uniform(0, 1, (25, 2)), places, "cityblock"), rng.integers(0, 9, 25) * 1.0
        found = weighted_kmedian(Weighted(D, w), k)
        assert len(set(found.tolist())) == k
        best = min(reference.weighted_cost(D, w, C) for C in itertools.combinations(range(7), k))
        cost = reference.weighted_cost(D, w, found.tolist())
        swapped = [[*found[:i], f, *found[i + 1 :]] for i in range(k) for f in range(7)]
        assert cost <= min(reference.weighted_cost(D, w, C) for C in swapped) * (1 + 1e-8)
        assert best <= cost <= 1.2 * best


def test_weighted_clustering_of_nothing_still_answers():
    for D, w in ((np.zeros((0, 4)), np.zeros(0)), (np.ones((3, 4)), np.zeros(3))):
        assert len(set(weighted_kmedian(Weighted(D, w), 3).tolist())) == 3


# --------------------------------------------------------------------------------------- soundness


def test_focus_keeps_the_distances_that_decide(monkeypatch, rng):
    """Its bounds are the steps of the public grid around two medians, when noise is small."""
    bounds = []
    narrowed = FacilityObjective.narrowed

    def spy(self, low, high):
        bounds.append((low, high))
        return narrowed(self, low, high)

    monkeypatch.setattr(FacilityObjective, "narrowed", spy)
    X, places = rng.uniform(0, 1, (500, 8)), rng.uniform(0, 1, (100, 8))
    objective = FacilityObjective(X, places, (0, 8), Box(0, 1))
    nearest = packed(objective).distances().nearest
    table = nearest(np.arange(100), 0), nearest(np.arange(100), 100 // 12)
    grant = Ledger(1000.0).reserve(1000.0)
    Greedy()(Run(objective, Subsets(100, 3), grant, 1))
    low, high = bounds[0]
    step = objective.largest / methods.LEVELS
    assert low <= np.median(table[0]) <= low + step + 1
    assert high - step - 1 <= np.median(table[1]) <= high


@pytest.mark.parametrize("solver", ["auto", "greedy", "swaps", Coreset(radii=5), "synopsis"])
@pytest.mark.parametrize("metric", ["l1", "l2"])
def test_clusters_are_found_with_a_large_budget(solver, metric):
    model = make(epsilon=200.0, solver=solver, metric=metric).fit(TWO)
    assert {tuple(c) for c in np.round(model.cluster_centers_, 1)} == {(0.2, 0.2), (0.8, 0.6)}


def test_searches_over_subsets_use_the_incremental_view(monkeypatch):
    """The general `local` and `eem` take swaps from the view, with the answers of full scores."""
    objective = FacilityObjective(TWO, GRID, (0, 2), Box(0, 1))
    solvers = [Local(generations=4), EEM(generations=4, population=30)]
    found = [search(objective, Subsets(36, 3), 3.0, solver=s, random_state=2) for s in solvers]
    used = []

    class Slow(Moves):
        def scores(self, where, what):
            used.append(len(where))
            return super().scores(where, what)

    monkeypatch.setattr(Run, "around", lambda self, w: Slow(objective, w, self.space))
    for solver, quick in zip(solvers, found, strict=True):
        slow = search(objective, Subsets(36, 3), 3.0, solver=solver, random_state=2)
        if isinstance(solver, EEM):  # all pairs are compared, so the ranges agree too
            assert np.array_equal(slow.answer, quick.answer)
        assert quick.release.verify()
    assert used == [3 * 33] * 4 + [30] * 4


@every_solver
def test_as_many_clusters_as_facilities_take_them_all(settings, draws):
    model = make(n_clusters=4, facilities=GRID[:4], solver=settings).fit(TWO)
    assert model.facilities_.tolist() == [0, 1, 2, 3]
    assert sum(event.count for event in model.release_.events) == draws(4, 4)


@pytest.mark.few(14)
@every_solver
@pytest.mark.parametrize("rows", [TWO[:1], np.repeat(TWO[:1], 50, axis=0)], ids=["one", "equal"])
def test_one_record_and_equal_records_are_data_too(settings, draws, rows):
    model = make(solver=settings).fit(rows)
    assert len(set(model.facilities_.tolist())) == 2
    assert sum(event.count for event in model.release_.events) == draws(2, 36)
    assert model.predict(rows).shape == (len(rows),)


@every_solver
def test_equal_facilities_and_one_facility_are_places_too(settings, draws):
    model = make(facilities=np.repeat(GRID[:1], 5, axis=0), solver=settings).fit(TWO)
    assert len(set(model.facilities_.tolist())) == 2
    alone = make(n_clusters=1, facilities=GRID[:1], solver=settings).fit(TWO)
    assert alone.facilities_.tolist() == [0]
    assert sum(event.count for event in alone.release_.events) == draws(1, 1)


@every_solver
def test_a_clip_narrower_than_a_unit_is_survived(settings, draws):
    model = make(clip=(0.5, 0.5 + 1e-9), solver=settings).fit(TWO)
    assert model.release_.verify()


# ----------------------------------------------------------------------------------- the estimator


def test_distances_labels_and_scores_are_those_of_the_rounded_records(rng):
    X = rng.uniform(-0.2, 1.2, (50, 2))
    for metric, name in (("l1", "cityblock"), ("l2", "euclidean")):
        model = make(n_clusters=3, metric=metric, clip=(0.1, 0.6)).fit(X)
        seen = np.array(reference.records(X, Box(0, 1, 2), uniform=True)) / 4096
        expected = cdist(seen, model.cluster_centers_, name)
        assert model.transform(X) == pytest.approx(expected, abs=1e-12)
        assert np.array_equal(model.predict(X), expected.argmin(axis=1))
        assert model.score(X) == pytest.approx(-np.clip(expected.min(axis=1), 0.1, 0.6).sum())
        objective = FacilityObjective(X, GRID, (0.1, 0.6), Box(0, 1), metric=metric)
        cost = objective.scores(model.facilities_[None])[0] * objective.unit - 50 * 0.1
        assert model.score(X) == pytest.approx(cost, abs=50 * objective.unit)
        assert np.abs(model.cluster_centers_ - GRID[model.facilities_]).max() <= 2.0**-12


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_private_cost_is_paid_from_the_ledger(adjacency):
    ledger = Ledger(3.0)
    model = make(ledger=ledger, adjacency=adjacency, clip=(0.1, 0.5)).fit(TWO)
    told = [model.private_cost(TWO, 0.5)]
    assert [entry[1:] for entry in ledger.entries] == [
        ("KMedian", Budget(1.0)), ("KMedian cost", Budget(0.5))
    ]  # fmt: skip
    assert [event.kind for event in ledger.events[-1:]] == ["pure"]
    told.append(replace_seed(model, 8).private_cost(TWO, 0.5))
    assert told[0] != told[1]
    with pytest.raises(BudgetError, match="ask for less"):
        model.private_cost(TWO, 1.5)
    exact = make(ledger=Ledger(1e9), adjacency=adjacency, clip=(0.1, 0.5)).fit(TWO)
    exact.facilities_, exact.cluster_centers_ = model.facilities_, model.cluster_centers_
    assert exact.private_cost(TWO, 1e6) == pytest.approx(-model.score(TWO), abs=0.1)
    scale = (0.5 if adjacency == "add_remove" else 0.4) / 0.5
    assert all(abs(cost + model.score(TWO)) < 25 * scale for cost in told)


def replace_seed(model: KMedian, seed: int) -> KMedian:
    return model.set_params(random_state=seed)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_of_a_private_cost_covers_one_record(adjacency, monkeypatch):
    """The sum moves between neighbours by at most the sensitivity, and by that much."""
    seen: list[tuple[int, int]] = []
    release = Grant.release

    def spy(self, mechanism, value, rng=None):
        if isinstance(mechanism, DiscreteLaplace):
            seen.append((mechanism.sensitivity, int(value[0])))
        return release(self, mechanism, value, rng)

    monkeypatch.setattr(Grant, "release", spy)
    model = make(n_clusters=1, facilities=GRID[:1], adjacency=adjacency, clip=(0.25, 1.5),
                 solver="greedy").fit(TWO)  # fmt: skip
    near, far = np.zeros((1, 2)), np.ones((1, 2))
    sets = [np.vstack([far, near]), np.vstack([far, far]), far]
    for rows in sets:
        model.private_cost(rows, 1.0)
    (span, one), (_, two), (_, less) = seen
    assert abs(two - one) <= span
    if adjacency == "replace":
        assert two - one == span
    else:
        assert two - less == span


def test_a_metric_of_ones_own(rng):
    words = ["cat", "car", "dog", "dot", "cot"] * 30
    places = ["cat", "dog", "zzz"]

    def letters(records, facilities):
        return [[sum(a != b for a, b in zip(r, f, strict=True)) for f in facilities]
                for r in records]  # fmt: skip

    model = make(facilities=places, metric=letters, clip=(0, 3), domain=None, epsilon=20.0)
    model.fit(words)
    assert model.cluster_centers_ == ["cat", "dog"]
    assert model.release_.settings["solver"] == "greedy"
    assert model.predict(["car", "dot", "zog"]).tolist() == [0, 1, 1]
    assert model.score(words) == -float(np.min(letters(words, places[:2]), axis=1).sum())
    assert model.private_cost(words, 1e5) == pytest.approx(-model.score(words), abs=0.05)
    assert not hasattr(model, "n_features_in_")


def test_schemas_tables_and_sparse_records(rng):
    schema = Schema({"sex": Categorical(["f", "m"]), "age": Numeric(0, 100)})
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "age": rng.uniform(0, 100, 200)})
    places = np.array([[1, 0, 0.2], [0, 1, 0.2], [1, 0, 0.8], [0, 1, 0.8]])
    model = make(facilities=places, domain=schema, epsilon=50.0).fit(frame)
    assert model.feature_names_in_.tolist() == ["sex", "age"]
    assert model.transform(frame).shape == (200, 2)
    dense = (rng.random((80, 20)) < 0.2) * 1.0
    sparse = make(facilities=dense[:9]).fit(sp.csr_array(dense))
    expected = make(facilities=dense[:9]).fit(dense)
    assert np.array_equal(sparse.facilities_, expected.facilities_)
    assert np.array_equal(sparse.transform(sp.csr_array(dense)), expected.transform(dense))


# ------------------------------------------------------------------------------------- wrong input

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"facilities": 3}, r"facilities \(int\) must be a sequence of places; pass an array"),
    ({"facilities": None}, r"metric \(l1\) must be 'l2' if there are no facilities; pass metric="),
    ({"facilities": None, "metric": cdist, "clip": (0, 1)}, r"metric \(a metric of their own\) m"),
    ({"facilities": None, "metric": "l2", "clip": (2, 1)}, r"clip \(2.0, 1.0\) must increase from"),
    ({"facilities": None, "metric": "l2", "solver": "greedy"},
     r"solver \('greedy'\) must be one of medians, cell_medians, hybrid, mean"),
    ({"facilities": None, "metric": "l2", "solver": Greedy()}, r"must be a FacilityObjective"),
    ({"facilities": None, "metric": "l2", "domain": None}, r"KMedian needs the declared domain"),
    ({"facilities": None, "metric": "l2", "adjacency": "add_remove", "n_public": None,
      "solver": "medians"}, r"n_public must be given"),
    ({"n_clusters": 37}, r"n_clusters \(37\) must be at most the number of facilities \(36\)"),
    *(({"n_clusters": k}, r"n_clusters \(.*\) must be a positive whole number; pass n_clusters=8")
      for k in (0, -1, 2.0, "2", True, None)),
    ({"metric": cdist}, r"clip must bound the distances of a user-defined metric; pass clip=\(lo, "
                        r"hi\)"),
    ({"metric": "cosine"}, r"metric \('cosine'\) must be 'l1', 'l2' or a function"),
    ({"clip": (2, 1)}, r"clip \(2.0, 1.0\) must increase from 0 or more"),
    ({"solver": "pam"}, r"solver \('pam'\) must be one of synopsis, greedy, swaps, coreset, local"),
    ({"solver": Lloyd()}, r"objective \(Facility.*\) must be a CentersObjective"),
    ({"adjacency": "swap"}, r"adjacency \('swap'\) must be 'replace' or 'add_remove'"),
    ({"domain": "unit"}, r"domain \(str\) must be a pair of bounds or a Domain"),
    ({"epsilon": 0}, r"epsilon \(0\) must be positive to reserve"),
    ({"epsilon": -1.0}, r"epsilon \(-1.0\) must be a number of at least 0"),
    ({"epsilon": math.inf}, r"epsilon \(inf\) is for the plain genetic algorithm"),
    ({"delta": 2.0}, r"delta \(2.0\) must lie in \[0, 1\)"),
    ({"callback": 3}, r"callback \(int\) must be a function"),
    ({"ledger": 3}, r"ledger \(int\) must be a Ledger"),
    ({"n_threads": 0}, r"n_threads \(0\) must be a whole number of at least 1"),
    ({"facilities": np.eye(40)}, r"X has 2 columns but facilities 40; pass equal columns"),
    ({"solver": "synopsis", "metric": lambda x, f: cdist(x, f).round(6), "clip": (0, 1)},
     r"cells are found for l1 and l2 distances of at most 3 columns; use a solver that needs"),
    ({"solver": "eem", "adjacency": "add_remove", "n_public": None}, r"n_public must be given"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[str(c)[:40] for c, _ in WRONG])
def test_wrong_input_is_refused_and_charges_nothing(changes, message):
    ledger = Ledger(5.0, 0.5)
    model = make(**{"ledger": ledger, **changes})
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(TWO)
    assert not ledger.entries
    assert not [name for name in vars(model) if name.endswith("_")]


CASES: list[tuple[Any, str]] = [
    *((lambda v=v: Greedy(focus=v), r"focus \(.*\) must lie in \[0, 1\]; leave it out")
      for v in (-0.1, 1.1, "x")),
    (lambda: Greedy(focus=1.0), r"focus \(1.0\) must leave a budget for selections; pass focus="),
    *((lambda v=v: Greedy(swaps=v), r"swaps \(.*\) must be a positive whole number; leave it out")
      for v in (-1, 1.5, "2")),
    *((lambda v=v: Swaps(steps=v), r"steps \(.*\) must be a positive whole number; leave it out")
      for v in (0, -1, 1.5)),
    *((lambda v=v: Coreset(alpha=v), r"alpha \(.*\) must lie between 0 and 1; leave it out")
      for v in (0, 1, -0.5, math.nan, "x")),
    *((lambda given=given: Coreset(alpha=0.2, **given), r"alpha \(0.2\) must not be given with "
       rf"{next(iter(given))}, which follows from it; pass one of them")
      for given in ({"radii": 3}, {"places": 2})),
    (lambda: Coreset(paper=True).plan(100, 2, None), r"n_public must be given under adjacency="
     r"'add_remove', .* or Coreset\(radii=...\)"),
    (lambda: Coreset(radii=0), r"radii \(0\) must be a positive whole number; leave it out"),
    *((lambda v=v: Coreset(places=v), r"places \(.*\) must be a positive whole") for v in (0, 1.0)),
    *((lambda v=v: Coreset(share=v), r"share \(.*\) must lie between 0 and 1; leave it out")
      for v in (0, 1, -1, "x", None)),
    *((lambda v=v: Synopsis(shape_share=v), r"shape_share \(.*\) must lie between 0 and 1; leave")
      for v in (0, 1, math.nan, "x", None)),
    *((lambda name=name: Synopsis(**{name: 0}), rf"{name} \(0\) must be a positive whole number")
      for name in ("roots", "depth")),
    (lambda: Synopsis(depth=63), r"depth \(63\) must be at most 62; leave it out"),
    (lambda: methods.cost_noise(
        FacilityObjective.of_distances([[1.0]], (1e6, 1e6 + 1)), 1.0, ADD_REMOVE),
     r"clip \(1000000.0, 1000001.0\) is too far from 0 for an exact sum of costs; pass bounds"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CASES, ids=[f"{i}" for i in range(len(CASES))])
def test_wrong_settings_have_one_clear_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_raise_is_reached_by_a_case_above():
    package = Path(privfit.__file__).parent
    sources = [package / "clustering/kmedian.py"]
    seen = "\n".join(
        [*(messages_of(call) for call, _ in CASES),
         *(messages_of(lambda c=c: make(**c).fit(TWO)) for c, _ in WRONG)]
    )  # fmt: skip
    assert_reached(sources, seen)


@every_solver
def test_settings_are_frozen(settings, draws):
    with pytest.raises(AttributeError):
        settings.paper = True
