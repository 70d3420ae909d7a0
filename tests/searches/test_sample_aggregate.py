"""Sample and aggregate, and the noisy count: coupled blocks, hidden failures, what is released."""

from __future__ import annotations

import doctest
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from makers.cases import ADJACENCIES, scikit_learn_checks
from sklearn.cluster import KMeans as PlainKMeans
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.linear_model import Perceptron

from privfit import (
    Box,
    BudgetError,
    CentersObjective,
    FacilityObjective,
    L1Ball,
    L2Ball,
    Ledger,
    LinearObjective,
    LinearSVC,
    LogisticRegression,
    Numeric,
    Reals,
    Release,
    Schema,
)
from privfit.audit import audit_runs
from privfit.domains import Grid
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.runs.run import Run, Task
from privfit.searches import sample_aggregate as module
from privfit.searches.majority import Majority
from privfit.searches.sample_aggregate import (
    Gupt,
    _partition,
    _plain_estimator,
    aggregate,
    block_sums,
    blocks_by_rule,
    diameters,
    lloyd_steps,
)

SURE = 1 - 1e-6

X = np.random.default_rng(8).uniform(-1, 1, (3000, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)


class Scripted:
    """Blocks as the test wants them, in place of random bits."""

    def __init__(self, drawn: Any) -> None:
        self._drawn: Iterator[int] = iter(drawn)

    def draw_below(self, n: int) -> int:
        value = next(self._drawn)
        assert 0 <= value < n
        return value


# --------------------------------------------------------------------------------------- the blocks


def test_blocks_are_disjoint_whole_and_in_order():
    drawn = [2, 0, 2, 2, 0, 3]
    blocks = [rows.tolist() for rows in _partition(6, 5, Scripted(drawn))]
    assert blocks == [[1, 4], [], [0, 2, 3], [5], []]
    assert [rows.tolist() for rows in _partition(0, 2, Scripted([]))] == [[], []]


def test_each_record_draws_its_block_by_itself():
    """Chi-square of 60,000 pairs of draws over 9 cells: false alarms below 1e-6 (limit 45)."""
    from privfit._kernels.random import BitSource

    blocks = list(_partition(60_000, 3, BitSource(4)))
    of = np.empty(60_000, dtype=int)
    for number, rows in enumerate(blocks):
        of[rows] = number
    seen = np.bincount(3 * of[:-1] + of[1:], minlength=9)
    expected = (60_000 - 1) / 9
    assert ((seen - expected) ** 2 / expected).sum() < 45


@pytest.mark.parametrize(
    ("n", "epsilon", "least", "blocks"),
    [(10_000, 1.0, 20, 200), (10_000, 0.01, 20, 500), (30, 1.0, 20, 1), (5, 1.0, 20, 1),
     (10_000, 1e6, 20, 1), (400, 4.0, 1, 20)],
)  # fmt: skip
def test_the_number_of_blocks_is_a_public_rule(n, epsilon, least, blocks):
    assert blocks_by_rule(n, Budget(epsilon), least) == blocks


@pytest.mark.parametrize(
    "bounds",
    [Box(-1, 1, 2, grid=Grid(a=1, b=7, c=0)), Box([0, -3], [1, 5], grid=Grid(a=2, b=6, c=0)),
     L1Ball(1.0, 3, grid=Grid(a=1, b=7, c=0)), L1Ball(1.5, 2, grid=Grid(a=2, b=6, c=0)),
     L2Ball(1.0, 2, grid=Grid(a=3, b=5, c=0)), L2Ball(0.9, 3, grid=Grid(a=2, b=6, c=0)),
     Box(0.5, 0.5, 2)],
    ids=repr,
)  # fmt: skip
def test_diameters_bound_every_pair_of_clipped_points(bounds):
    l1, l2 = diameters(bounds)
    points = np.array(reference.every_record(bounds))
    gaps = points[:, None] - points
    widest = np.abs(gaps).sum(axis=2).max(), np.linalg.norm(gaps, axis=2).max()
    assert widest[0] <= l1
    assert widest[1] <= l2
    if widest[0]:
        assert widest[1] >= 0.9 * l2
        assert widest[0] >= (0.7 if isinstance(bounds, L2Ball) else 1.0) * l1


def mixture(parts_of: Any, statistic: Any, n: int, blocks: int, bounds: Any) -> Counter[int]:
    """How often each sum comes up over all draws of n records."""
    fallback = np.zeros(bounds.width)
    sums: Counter[int] = Counter()
    for drawn in itertools.product(range(blocks), repeat=n):
        total = block_sums(parts_of, statistic, blocks, bounds, fallback, Scripted(drawn))
        sums[int(total[0])] += 1
    return sums


def output(sums: Counter[int], rate: float, outcomes: range) -> np.ndarray:
    """Probabilities after discrete Laplace noise of this rate."""
    weights = {total: count / sum(sums.values()) for total, count in sums.items()}
    noise = math.tanh(rate / 2)
    return np.array([sum(p * noise * math.exp(-rate * abs(o - total))
                         for total, p in weights.items()) for o in outcomes])  # fmt: skip


def worst_ratio(first: Counter[int], second: Counter[int], width: int) -> float:
    """The largest log ratio at epsilon 1; beyond the sums it is constant."""
    outcomes = range(min(first | second) - 1, max(first | second) + 2)
    p, q = (output(sums, 1.0 / width, outcomes) for sums in (first, second))
    return float(np.abs(np.log(p / q)).max())


def test_neighbours_are_as_close_as_promised_whatever_the_statistic():
    """Exactly, over all draws of blocks: any function of a block, any three records."""
    bounds = Box(-1, 1, 1, grid=Grid(a=2, b=6, c=0))
    width, worst = diameters(bounds)[0], 0.0
    for trial in range(3):
        coins = np.random.default_rng(trial)
        table: dict[Any, float] = {}

        def statistic(rows: np.ndarray, table: Any = table, coins: Any = coins) -> float:
            return table.setdefault(tuple(rows.tolist()), coins.uniform(-1.5, 1.5))

        found = {
            data: mixture((np.array(data),), statistic, len(data), 2, bounds)
            for n in (1, 2, 3)
            for data in itertools.product((0, 1, 2), repeat=n)
        }
        for data, i, new in itertools.product(found, range(3), (0, 1, 2)):
            if i >= len(data):
                continue
            replaced = (*data[:i], new, *data[i + 1 :])
            worst = max(worst, worst_ratio(found[data], found[replaced], width))
            removed = (*data[:i], *data[i + 1 :])
            if removed:
                worst = max(worst, worst_ratio(found[data], found[removed], width))
    assert 0.5 < worst <= 1 + 1e-12


@pytest.mark.slow
def test_neighbours_whose_records_are_packed_in_another_order_are_as_close():
    """A record that changes its label moves to the other end of the packed table."""
    bounds, fallback = Box(-1, 1, 1, grid=Grid(a=2, b=6, c=0)), np.zeros(1)
    rows = np.array([[0.5], [-0.25], [1.0], [0.25]])

    def statistic(records: np.ndarray, labels: np.ndarray) -> float:
        return float(math.sin(40 * (records[:, 0] * (2 + labels)).sum() + len(labels)))

    def sums(keep: list[int], y: list[int]) -> Counter[int]:
        parts = LinearObjective(rows[keep], y, domain=Box(-1, 1)).decoded()
        return mixture(parts, statistic, len(keep), 2, bounds)

    width = diameters(bounds)[0]
    assert fallback.shape == (1,)
    for y in itertools.product((0, 1), repeat=4):
        whole = sums([0, 1, 2, 3], list(y))
        for i in range(4):
            flipped = sums([0, 1, 2, 3], [*y[:i], 1 - y[i], *y[i + 1 :]])
            assert worst_ratio(whole, flipped, width) <= 1 + 1e-12
            rest = [j for j in range(4) if j != i]
            removed = sums(rest, [y[j] for j in rest])
            assert worst_ratio(whole, removed, width) <= 1 + 1e-12


# ---------------------------------------------------------------------------------------- aggregate


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_any_statistic_of_any_arrays_is_aggregated(delta, adjacency):
    def slopes(rows: Any, labels: np.ndarray) -> np.ndarray:
        rows = rows.toarray() if sp.issparse(rows) else rows
        return np.linalg.lstsq(rows, labels, rcond=None)[0]

    coins = np.random.default_rng(1)
    A = coins.normal(size=(20_000, 2))
    b = A @ [0.5, -1.0] + coins.normal(size=20_000)
    ledger = Ledger(2.0, 1e-5)
    for records in ((A, b), (sp.csc_array(A), b)):
        found = aggregate(records, slopes, (-2, [2, 2]), 1.0, delta, adjacency=adjacency,
                          n_public=20_000, ledger=ledger, random_state=3)  # fmt: skip
        # Noise of 0.03 and a block's error of 0.004: six times both.
        assert found.answer == pytest.approx([0.5, -1.0], abs=0.25)
        assert found.release.verify()
        assert Release.from_json(found.release.to_json()).settings["blocks"] == 283
        assert found.release.adjacency == adjacency
    assert ledger.spent == Budget(2.0, 2 * delta)


def test_without_noise_the_answer_is_the_mean_over_blocks():
    records = np.arange(10.0)
    drawn = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    total = block_sums((records,), np.mean, 3, Box(0, 8, 1), np.array([4.0]), Scripted(drawn))
    assert total[0] * 8 / 4096 == np.mean([0 + 3 + 6 + 9, 4 * 4, 5 * 4]) * 3 / 4
    assert aggregate(records, np.mean, (0, 8), 1e6, blocks=1, random_state=1).answer == [4.5]
    clipped = aggregate(records, lambda rows: [1e300, -9, 0.5], ([0, 0, 0], 8), 1e6, blocks=4)
    assert clipped.answer.tolist() == [8, 0, 0.5]
    ball = aggregate(records, lambda rows: [30.0, 40.0], L2Ball(1.0, 2), 1e6, blocks=4)
    assert ball.answer == pytest.approx([0.6, 0.8], abs=1e-3)


def fails(rows: np.ndarray) -> Any:
    raise RuntimeError(f"secret {rows}")


def warns(rows: np.ndarray) -> float:
    warnings.warn(f"secret {rows}", stacklevel=1)
    return 0.75


@pytest.mark.parametrize(
    ("statistic", "answer"),
    [(fails, 0.5), (lambda rows: math.nan, 0.5), (lambda rows: [0.1, 0.2], 0.5),
     (lambda rows: "text", 0.5), (lambda rows: -math.inf, 0.5), (warns, 0.75),
     (lambda rows: np.divide(1.0, 0.0), 0.5), (lambda rows: None, 0.5)],
)  # fmt: skip
def test_failures_and_warnings_of_a_block_are_never_seen(statistic, answer, capsys):
    found = aggregate(np.arange(50.0), statistic, (0, 1), 1e6, blocks=5, random_state=1)
    assert found.answer == [answer]
    assert capsys.readouterr() == ("", "")


def test_an_interruption_is_seen_and_the_budget_stays_charged():
    ledger = Ledger(1.0)

    def stop(rows: np.ndarray) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aggregate(np.arange(9.0), stop, (0, 1), 1.0, ledger=ledger)
    assert ledger.spent == Budget(1.0)
    assert ledger.events == ()


def test_the_statistic_may_flip_coins_and_blocks_may_be_empty():
    coins = np.random.default_rng(0)
    found = aggregate(np.arange(3.0), lambda rows: coins.normal(), (-1, 1), 1.0, blocks=500)
    assert -1 <= found.answer[0] <= 1
    nothing = aggregate(np.empty((0, 2)), lambda rows: rows.mean(), (0, 1), 1e6, blocks=3)
    assert nothing.answer == [0.5]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"records": 3.0}, ValueError, "records must be an array, or a tuple of arrays; pass"),
        ({"records": ()}, ValueError, "records must be an array, or a tuple of arrays; pass"),
        ({"records": (X, Y[:-1])}, ValueError, "records must be arrays with equally many rows; p"),
        ({"bounds": 3}, TypeError, r"bounds \(int\) must be a pair \(low, high\), a Box, an L1Ba"),
        ({"bounds": "ab"}, TypeError, r"bounds \(str\) must be a pair"),
        ({"bounds": (0, 1, 2)}, TypeError, r"bounds \(tuple\) must be a pair"),
        ({"bounds": (1, 0)}, ValueError, "Box lower bounds must not exceed the upper ones"),
        ({"bounds": L2Ball(1.0)}, ValueError, "does not know its number of columns"),
        ({"blocks": 0}, ValueError, r"blocks \(0\) must be a positive whole number; leave it out"),
        ({"adjacency": "add_remove"}, ValueError, "n_public must be given .* or blocks="),
        ({"adjacency": "both"}, ValueError, r"adjacency \('both'\) must be 'replace' or 'add_"),
        ({"n_public": 0}, ValueError, r"n_public \(0\) must be a positive whole number"),
        ({"epsilon": -1.0}, ValueError, r"epsilon \(-1.0\) must be a number of at least 0"),
        ({"epsilon": 0.0}, ValueError, r"epsilon \(0.0\) must be a finite number > 0"),
        ({"epsilon": 2.0}, BudgetError, "ask for less"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_charged(changes, error, message):
    ledger = Ledger(1.0)
    given = {"records": X, "statistic": pytest.fail, "bounds": (0, 1), "epsilon": 1.0,
             "ledger": ledger, **changes}  # fmt: skip
    with pytest.raises(error, match=message):
        aggregate(**given)
    assert not ledger.entries


def test_examples_hold():
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


# ------------------------------------------------------------------------------------ linear models


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_fits_learn_and_tell_the_truth(kind, delta, adjacency):
    ledger = Ledger(2.0, 1e-5)
    model = kind(2.0, delta, domain=(-1, 1), classes=[0, 1], solver="gupt", calibrate=False,
                 adjacency=adjacency, n_public=3000, ledger=ledger, random_state=3)  # fmt: skip
    model.fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert ledger.spent == Budget(2.0, delta)
    release = Release.from_json(model.release_.to_json())
    assert release.verify()
    assert 1.99 < release.cost() <= 2.0
    assert sum(event.count for event in release.events) == 1


DECLARED = {
    "box": Box([-1, 0], [1, 2]),
    "far from zero": Box(1000, 3000),
    "l1": L1Ball(2.0),
    "l2": L2Ball(2.0),
    "numbers": Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1)}),
    "levels": Schema({"a": Numeric(-1, 1, bins=8), "b": Numeric(-1, 1, bins=8)}),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", DECLARED)
def test_one_block_and_little_noise_give_the_model_of_the_estimator(name):
    domain = DECLARED[name]
    rows = X * 1000 + 2000 if name == "far from zero" else X
    model = LogisticRegression(1e6, domain=domain, classes=[0, 1], random_state=1,
                               solver=Gupt(Plain(C=10), 1, (-1000, 1000)))  # fmt: skip
    model.fit(rows, Y)
    if name == "box":
        rows = np.clip(rows, [-1, 0], [1, 2])
    if name == "levels":
        assert model.coef_.shape == (1, 16)
    else:
        assert model.coef_[0, 0] * model.coef_[0, 1] < 0
    assert model.score(rows, Y) > (0.8 if name in ("box", "levels") else 0.95)
    bounded = LogisticRegression(1e6, domain=domain, classes=[0, 1], random_state=1,
                                 solver=Gupt(blocks=1)).fit(rows, Y)  # fmt: skip
    assert np.isfinite(bounded.coef_).all()


@pytest.mark.slow
def test_any_estimator_of_weights_will_do():
    for estimator in (Plain(), Perceptron(), None):
        solver = Gupt(estimator, blocks=30)
        model = LogisticRegression(50.0, domain=(-1, 1), classes=[0, 1], solver=solver,
                                   random_state=1).fit(X, Y)  # fmt: skip
        assert model.score(X, Y) > 0.9
        assert not hasattr(estimator, "coef_")  # copies are fitted
        shown = Release.from_json(model.release_.to_json()).settings["estimator"]
        assert shown == repr(_plain_estimator("logistic", True) if estimator is None else estimator)


def test_blocks_of_one_class_count_as_no_weights(rng):
    model = LogisticRegression(1e6, domain=(-1, 1), classes=[0, 1], solver="gupt", calibrate=False,
                               random_state=1)  # fmt: skip
    model.fit(X, np.ones(len(X), dtype=int))
    assert (model.coef_ == 0).all()
    assert model.intercept_ == 0


def test_sparse_records_give_the_model_of_dense_ones():
    wide = np.where(np.random.default_rng(2).random((600, 40)) < 0.1, 0.5, 0.0)
    y = (wide[:, 0] > wide[:, 1]).astype(int)
    fit = {"domain": (0, 1), "classes": [0, 1], "solver": "gupt", "random_state": 4}
    dense = LogisticRegression(5.0, **fit).fit(wide, y)
    sparse = LogisticRegression(5.0, **fit).fit(sp.csr_array(wide), y)
    assert np.array_equal(dense.coef_, sparse.coef_)
    assert np.array_equal(dense.intercept_, sparse.intercept_)


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_several_classes_share_one_budget(delta):
    three = (X[:, 0] > 0.3).astype(int) + 2 * (X[:, 0] < -0.3)
    for solver in ("gupt", "majority"):
        model = LogisticRegression(6.0, delta, domain=(-1, 1), classes=[0, 1, 2], solver=solver,
                                   calibrate=False, random_state=1).fit(X, three)  # fmt: skip
        assert sum(event.count for event in model.release_.events) == 3
        assert model.release_.verify()
        assert 5.8 < model.release_.cost() <= 6.0
    assert (model.predict(X) == np.bincount(three).argmax()).all()


def test_a_seed_fixes_a_fit():
    fit = {"domain": (-1, 1), "classes": [0, 1], "solver": Gupt(blocks=20)}
    one, two, other = (
        LogisticRegression(1.0, random_state=seed, **fit).fit(X, Y) for seed in (5, 5, 6)
    )
    assert np.array_equal(one.coef_, two.coef_)
    assert not np.array_equal(one.coef_, other.coef_)


@pytest.mark.slow
def test_both_adjacencies_give_the_very_same_model():
    """One block changes in either case; the number of blocks is public in both."""
    fit = {"domain": (-1, 1), "classes": [0, 1], "solver": "gupt", "calibrate": False,
           "random_state": 5}  # fmt: skip
    one = LogisticRegression(1.0, **fit).fit(X, Y)
    two = LogisticRegression(1.0, adjacency="add_remove", n_public=len(X), **fit).fit(X, Y)
    assert np.array_equal(one.coef_, two.coef_)


@pytest.mark.few(2)
@pytest.mark.parametrize("solver", ["gupt", Gupt(paper=True), Gupt(blocks=50), "majority"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_little_and_dull_data_are_fitted(delta, adjacency, solver):
    for rows in ([[0.5, 0.0]], [[0.5, 1.0]] * 7, [[0.0, 0.0], [1.0, 0.0]]):
        for domain in (Box([0, 0], [1, 0]), L2Ball(2.0)):
            model = LogisticRegression(0.5, delta, domain=domain, classes=[0, 1], solver=solver,
                                       adjacency=adjacency, n_public=9, random_state=2)  # fmt: skip
            model.fit(rows, np.arange(len(rows)) % 2)
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_).all()


class Blank:
    """Fits anything and has learned nothing."""

    def fit(self, X: Any, y: Any = None) -> Blank:
        return self


class Short(Blank):
    coef_, intercept_, cluster_centers_ = np.zeros(1), np.zeros(1), np.zeros((1, 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Gupt(Blank()), "estimator fails on made-up records: .*no attribute 'coef_'; pass another"),
        (Gupt(Short()), r"estimator must have coef_ \(1, d\) and intercept_ \(1,\) once it is fit"),
        (Gupt(bounds=L2Ball(1.0, 7)), "columns"),
        (Gupt(), "n_public must be given under adjacency='add_remove'.*or blocks="),
    ],
)
def test_what_never_works_is_refused_before_anything_is_charged(settings, message):
    ledger = Ledger(1.0)
    model = LogisticRegression(domain=(-1, 1), classes=[0, 1], solver=settings, ledger=ledger,
                               adjacency="add_remove",
                               n_public=None if settings == Gupt() else 100)  # fmt: skip
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not ledger.entries


def test_settings_without_meaning_are_refused():
    with pytest.raises(TypeError, match=r"estimator \(int\) must have a method fit; pass one such"):
        Gupt(3)
    with pytest.raises(TypeError, match=r"bounds \(float\) must be a pair"):
        Gupt(bounds=1.0)
    with pytest.raises(ValueError, match=r"blocks \(1.5\) must be a positive whole number"):
        Gupt(blocks=1.5)


def test_other_objectives_are_refused():
    places = FacilityObjective(X, X[:3], (0, 1), Box(-1, 1))
    task = Task(places, Reals(0, 1, 2), 1.0, 0.0, REPLACE, 100)
    with pytest.raises(ValueError, match=r"gupt fits linear models and centres, not a F.*agg"):
        Gupt().check(task)
    with pytest.raises(ValueError, match=r"majority needs labelled records, not a F.*; pass"):
        Majority().check(task)


# ------------------------------------------------------------------------ scikit-learn's own checks

KINDS = (LogisticRegression, LinearSVC)
CHECKS = scikit_learn_checks([kind(epsilon=1000, domain=(-5, 5), solver="gupt") for kind in KINDS])


@pytest.mark.few(7)
@pytest.mark.filterwarnings(
    "ignore::privfit.PrivacyLeakWarning", "ignore:invalid value encountered in cast:RuntimeWarning"
)
@CHECKS
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------------------ k-means


def blobs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    middles = np.array([[-0.6, -0.5], [0.6, -0.4], [0.1, 0.7]])
    return middles, np.repeat(middles, 2000, axis=0) + rng.normal(0, 0.08, (6000, 2))


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("domain", [Box(-1, 1), L2Ball(1.5), L1Ball(2.0)], ids=repr)
def test_centres_are_found(domain, delta, adjacency, rng):
    middles, points = blobs(rng)
    objective = CentersObjective(points, 3, domain)
    space = Reals(-2, 2, (3, 2))
    Gupt().check(Task(objective, space, 4.0, delta, Neighbours(adjacency), 6000))
    grant = Ledger(4.0, delta).reserve(4.0, delta, "test")
    path = Gupt()(Run(objective, space, grant, 1, neighbours=Neighbours(adjacency), n_public=6000))
    centers = path.answer
    objective.scores(centers[None])  # on the grid
    gaps = np.linalg.norm(middles[:, None] - centers, axis=2)
    # At most 0.15 of noise in a coordinate, 77 blocks.
    assert gaps.min(axis=1).max() < 0.5
    assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]
    assert grant.close(adjacency).verify()


@pytest.mark.slow
def test_centres_of_any_estimator_are_put_in_one_order(rng):
    middles, points = blobs(rng)
    objective = CentersObjective(points, 3, Box(-1, 1))
    grant = Ledger(1e6).reserve(1e6, 0.0, "test")
    shuffled = PlainKMeans(3, n_init=3)  # numbers its clusters at random
    settings = Gupt(shuffled, blocks=40)
    space = Reals(-1, 1, (3, 2))
    settings.check(Task(objective, space, 1e6, 0.0, REPLACE, 6000))
    path = settings(Run(objective, space, grant, 3))
    gaps = np.linalg.norm(middles[:, None] - path.answer, axis=2)
    assert gaps.min(axis=1).max() < 0.05


def test_lloyd_steps_are_those_of_the_textbook():
    records = np.array([[0.0], [1.0], [9.0], [11.0]])
    centers = lloyd_steps(records, np.array([[2.0], [3.0], [100.0]]))
    assert centers.tolist() == [[0.5], [10.0], [100.0]]


def test_blocks_with_fewer_records_than_centres_count_as_public_centres(rng):
    objective = CentersObjective(rng.uniform(-1, 1, (2, 2)), 4, Box(-1, 1))
    grant = Ledger(1e6).reserve(1e6, 0.0, "test")
    path = Gupt(PlainKMeans(4), blocks=1)(Run(objective, Reals(-1, 1, (4, 2)), grant, 5))
    assert len(np.unique(path.answer, axis=0)) == 4


def test_an_estimator_without_centres_is_refused():
    objective = CentersObjective(X, 2, Box(-1, 1))
    task = Task(objective, Reals(-1, 1, (2, 2)), 1.0, 0.0, REPLACE, 100)
    with pytest.raises(ValueError, match=r"estimator must have cluster_centers_ \(k, d\) once it"):
        Gupt(Short()).check(task)
    with pytest.raises(ValueError, match=r"estimator fails on made-up records: .*cluster_centers_"):
        Gupt(Blank()).check(task)


# ----------------------------------------------------------------------------------------- majority


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_the_majority_is_released(kind, adjacency):
    y = (np.arange(3000) % 4 == 0).astype(int)
    model = kind(5.0, domain=(-1, 1), classes=[0, 1], solver="majority", adjacency=adjacency,
                 random_state=1).fit(X, y)  # fmt: skip
    assert (model.coef_ == 0).all()
    # 3 to 1; noise above 10 in a million, the grid is 2^-10.
    expected = math.log(1 / 3) if kind is LogisticRegression else -0.5
    assert model.intercept_[0] == pytest.approx(expected, abs=0.02)
    assert model.release_.events == (Event("pure", 5.0),)
    assert (model.predict(X) == 0).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_and_much_noise_stay_in_bounds(label, adjacency):
    for seed in range(30):
        model = LogisticRegression(0.01, domain=(-1, 1), classes=[0, 1], solver="majority",
                                   adjacency=adjacency, random_state=seed)  # fmt: skip
        model.fit(X[:5], [label] * 5)
        assert abs(model.intercept_[0]) <= 10


def test_counts_change_by_one_with_a_record():
    for y in itertools.product((0, 1), repeat=3):
        counts = LinearObjective(X[:3], y, domain=Box(-1, 1)).label_counts()
        assert counts.tolist() == [3 - sum(y), sum(y)]
        for i in range(3):
            flipped = [*y[:i], 1 - y[i], *y[i + 1 :]]
            other = LinearObjective(X[:3], flipped, domain=Box(-1, 1)).label_counts()
            assert abs(other[1] - counts[1]) == 1  # all that is released under replace
            rest = LinearObjective(X[:2], [*y[:i], *y[i + 1 :]], domain=Box(-1, 1)).label_counts()
            assert np.abs(rest - counts).sum() == 1


# ------------------------------------------------------------------------------------------- audits

# The first record differs in its label, or is there or not.
PAIRS = {
    "replace": (([[0.5], [0.5]], [1, 0]), ([[0.5], [0.5]], [0, 0])),
    "add_remove": (([[0.5], [0.5]], [1, 1]), ([[0.5]], [1])),
}


class Labels:
    """The most that a block can show: the sign of its labels' mean, at the bounds."""

    def fit(self, X: Any, y: Any) -> Labels:
        self.coef_ = np.zeros(X.shape[1])
        self.intercept_ = 1e6 * (2 * np.mean(y) - 1 if len(y) else -1.0)
        return self


def audit(name: str, adjacency: str, delta: float, runs: int = 600) -> Any:
    objectives = [LinearObjective(rows, y, domain=Box(-1, 1)) for rows, y in PAIRS[adjacency]]
    settings: Any = Majority() if name == "majority" else Gupt(Labels(), 2, (-1.0, 1.0))

    def run(objective: LinearObjective, rng: Any) -> float:
        grant = Ledger(1.0, delta).reserve(1.0, delta, "audit")
        path = settings(
            Run(objective, Reals(-9, 9, 2), grant, rng, neighbours=Neighbours(adjacency))
        )
        return float(path.answer[-1])

    return audit_runs(run, *objectives, runs=runs, confidence=SURE, delta=delta, rng=7)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("adjacency", "delta"), [("replace", 0.0), ("add_remove", 1e-3)])
@pytest.mark.parametrize("name", ["gupt", "majority"])
def test_fits_stay_within_epsilon(name, adjacency, delta):
    """False alarms: one in a million."""
    report = audit(name, adjacency, delta)
    assert report.passes(1.0), report


@pytest.mark.slow
@pytest.mark.statistical
def test_the_black_box_sees_a_diameter_that_is_too_small(monkeypatch):
    right = module.diameters
    monkeypatch.setattr(module, "diameters", lambda bounds: (right(bounds)[0] // 10, 1.0))
    report = audit("gupt", "replace", 0.0)
    assert not report.passes(1.0), report


def test_a_statistic_or_a_ledger_of_another_kind_is_refused():
    for wrong, message in (
        ({"statistic": 3}, r"statistic \(int\) must be a function; pass statistic\(rows\)"),
        ({"ledger": 3}, r"ledger \(int\) must be a Ledger; pass Ledger\(epsilon, delta\)"),
    ):
        with pytest.raises(TypeError, match=message):
            aggregate(
                np.arange(9.0), **{"statistic": np.mean, "bounds": (0, 9), "epsilon": 1.0, **wrong}
            )
