"""Class weights: what they weigh, that no bound changes, and what counts cost."""

from __future__ import annotations

import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
import reference
from makers.cases import ADJACENCIES, DOMAINS, case, labels

from privfit import (
    Box,
    FrankWolfe,
    Gradient,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    SelectRefine,
    Stream,
)
from privfit._kernels.records import RESIDUAL_UNIT
from privfit.audit import paired
from privfit.linear.calibration import Parts
from privfit.linear.class_weights import ClassWeights
from privfit.models.model import dumps, loads
from privfit.objectives.clipping import ClippedGradient
from privfit.objectives.coding import Coding
from privfit.privacy.accounting import compose

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

ONE = round(1 / RESIDUAL_UNIT)


def rare(n: int = 4000, seed: int = 0) -> tuple[Any, Any]:
    """Records in a box; the last tenth along one column is class 1, more or less."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] + rng.normal(0, 0.3, n) > 1.0).astype(int)


def model(kind: Any = LogisticRegression, delta: float = 1e-6, **more: Any) -> Any:
    return kind(1.0, delta, **{
        "domain": (-1, 1), "classes": [0, 1], "random_state": 3, "n_public": 4000, **more,
    })  # fmt: skip


# -------------------------------------------------------------------------------------- the slopes


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("layout", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("name", DOMAINS)
def test_weighted_slopes_are_those_of_the_naive_twin(name, layout, loss, rng):
    """One record at a time, so that each residual shows: weighted, then rounded, then capped."""
    one, weights = case(name), (0.375, 0.8)
    X, y = one.rows(rng, 12), labels(rng, 12)
    grid, cap = one.domain.grid, 0.6
    for i, (x, label) in enumerate(zip(reference.records(X, one.domain), y, strict=True)):
        objective = LinearObjective(X[i : i + 1], y[i : i + 1], loss, one.domain, layout=layout)
        w = np.ldexp(np.rint(rng.normal(0, 1, objective.n_weights) * 8), -3)
        w *= np.append(np.ldexp(1.0, -objective.domain.exponents), 1.0)
        z = reference.margin(x, [int(v) for v in w / objective.candidate_units], grid.a)
        twin = reference.true_residual if loss == "logistic" else reference.hinge_residual
        meant = min(weights[label] * float(twin(z, label, ONE, grid, ONE)), math.floor(cap * ONE))
        got = objective.weighed(*weights).gradient(w, cap)
        residual = abs(int(got[-1])) >> grid.a
        assert abs(residual - meant) <= 0.51 + (loss == "logistic") * 0.02
        assert got.tolist() == reference.gradient([x], [label], [residual], grid.a)


def test_weights_of_one_change_nothing(rng):
    X, y = rare(500)
    objective = LinearObjective(X, y, domain=Box(-1, 1))
    assert objective.weighed(1.0, 1.0) is objective
    w = np.zeros(4)
    near = objective.weighed(1.0, 0.5)
    np.testing.assert_array_equal(near.weighed(1.0, 1.0 - 2**-30).gradient(w, 1.0),
                                  objective.gradient(w, 1.0))  # fmt: skip


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("order", [1, 2])
def test_weighted_gradients_keep_the_bound_of_all_pairs(order, adjacency):
    """Every record of a coarse box, weighted as badly as can be: no sum moves farther."""
    records = [*itertools.product((-1.0, 0.0, 1.0), repeat=2)]
    objective = LinearObjective(np.array(records * 2), [0] * 9 + [1] * 9, domain=Box(-1, 1))
    coding = Coding(objective.domain, True)
    found = []
    for x, label in itertools.product(records, (0, 1)):
        alone = LinearObjective(np.array([x]), [label], domain=Box(-1, 1)).weighed(0.25, 1.0)
        clipped = ClippedGradient(alone, coding, np.eye(3), 0.4, order)
        found.append(clipped.sums(np.array([3.0, -2.0, 0.5])))
    others = [np.zeros(3)] if adjacency == "add_remove" else found
    farthest = max(np.linalg.norm(a - b, order) for a in found for b in others)
    from privfit.privacy.neighbours import Neighbours

    assert farthest <= clipped.sensitivity(Neighbours(adjacency))
    assert farthest > 0.4 * clipped.sensitivity(Neighbours(adjacency))


def test_views_of_joined_and_streamed_records_agree(monkeypatch):
    from privfit.records import memory

    monkeypatch.setattr(memory, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(memory, "PACKED_BLOCK", 1)
    X, y = rare(900)
    one, other = (model(class_weight="balanced", calibrate=True).fit(table, y)
                  for table in (X, Stream(X)))  # fmt: skip
    np.testing.assert_array_equal(one.coef_, other.coef_)
    parts = [LinearObjective(X[part], y[part], domain=Box(-1, 1)).weighed(0.5, 1.0)
             for part in (slice(400), slice(400, None))]  # fmt: skip
    whole = LinearObjective(X, y, domain=Box(-1, 1)).weighed(0.5, 1.0)
    np.testing.assert_array_equal(parts[0].joined(parts[1:]).gradient(np.ones(4), 1.0),
                                  whole.gradient(np.ones(4), 1.0))  # fmt: skip


@pytest.mark.parametrize("bad", [(0.0, 1.0), (1.0, 1.5), (math.nan, 1.0), (1.0, "1")])
def test_objectives_refuse_weights_above_one(bad):
    X, y = rare(20)
    with pytest.raises(ValueError, match=r"weights \(.*\) must lie in \(0, 1\]; divide them"):
        LinearObjective(X, y, domain=Box(-1, 1)).weighed(*bad)


# ---------------------------------------------------------------------------------------- the fits


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("solver", ["auto", "gradient", "local", "frank_wolfe", "select_refine"])
def test_a_rare_class_is_found_with_weights(solver, kind):
    (X, y), (fresh, truth) = rare(), rare(seed=1)
    plain = model(kind, solver=solver).fit(X, y)
    fitted = model(kind, solver=solver, class_weight={1: 12.0}).fit(X, y)
    before, after = (one.predict(fresh)[truth == 1].mean() for one in (plain, fitted))
    assert after > before + 0.1
    assert fitted.release_.settings["class_weight"]["weights"] == [[1 / 12, 1.0]]


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize(("delta", "solver"), [(1e-6, "auto"), (0.0, "auto"), (0.0, "gradient")])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_balanced_weights_and_their_counts_cost_the_budget(delta, solver, adjacency, calibrate):
    X, y = rare()
    ledger = Ledger(1.0, delta)
    fitted = model(delta=delta, solver=solver, adjacency=adjacency, class_weight="balanced",
                   ledger=ledger, calibrate=calibrate).fit(X, y)  # fmt: skip
    release = fitted.release_
    assert compose(release.events, delta) <= 1.0 == release.epsilon == ledger.spent.epsilon
    said = release.settings["class_weight"]
    ((of_rest, of_head),) = said["weights"]
    assert (said["share"], of_head) == (0.01 if delta else 0.05, 1.0)
    assert abs(of_rest - y.mean() / (1 - y.mean())) < 0.5 * of_rest


def test_several_classes_are_balanced_one_by_one():
    X, y = rare()
    y = y + 2 * (X[:, 1] > 0.9) * (1 - y)
    fitted = model(classes=[0, 1, 2], class_weight="balanced").fit(X, y)
    weights = fitted.release_.settings["class_weight"]["weights"]
    assert len(weights) == 3
    assert all(max(pair) == 1.0 for pair in weights)
    assert compose(fitted.release_.events, 1e-6) <= 1.0


@pytest.mark.parametrize("solver", ["gradient", "local"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_dict_weighs_each_of_several_classes_against_a_rest_of_one(delta, solver):
    X, y = rare()
    y = y + 2 * (X[:, 1] > 0.9) * (1 - y)
    given = {"delta": delta, "solver": solver, "classes": [0, 1, 2], "calibrate": False}
    plain = model(**given).fit(X, y)
    fitted = model(class_weight={0: 0.5, 2: 8.0}, **given).fit(X, y)
    weights = fitted.release_.settings["class_weight"]["weights"]
    assert weights == [[1.0, 0.5], [1.0, 1.0], [1 / 8, 1.0]]
    assert compose(fitted.release_.events, delta) <= 1.0
    before, after = (one.decision_function(X).mean(axis=0) for one in (plain, fitted))
    assert after[2] > before[2] + 0.5  # of a fixed seed
    assert after[0] < before[0]


def test_a_dict_for_several_classes_is_that_of_each_class_against_the_rest():
    weights = ClassWeights({1: 4.0}, np.arange(3)).weighings(range(3), np.array([300.0, 60, 240]))
    two = ClassWeights({1: 4.0}, np.arange(2)).weighings(range(1, 2), np.array([540.0, 60]))
    assert weights[1] == two[0]
    assert [one.pair for one in weights] == [(1.0, 1.0), (0.25, 1.0), (1.0, 1.0)]
    assert weights[1].mean == pytest.approx((540 / 4 + 60) / 600)


def test_a_model_file_keeps_weights():
    X, y = rare(400)
    for weights in ("balanced", {0: 0.5, 1: 2.0}):
        fitted = model(class_weight=weights).fit(X, y)
        again = loads(dumps(fitted))
        assert again.class_weight == weights
        np.testing.assert_array_equal(again.coef_, fitted.coef_)


def fits(adjacency: str, delta: float) -> Any:
    def run(table: Any, ledger: Any, random_state: Any) -> Any:
        return model(
            delta=delta, adjacency=adjacency, solver=Gradient(steps=3), class_weight="balanced",
            n_public=41, ledger=ledger, random_state=random_state, n_threads=1,
        ).fit(*table)  # fmt: skip

    return run


def neighbours(adjacency: str) -> list[tuple[Any, Any]]:
    X, y = rare(40, 1)
    extremes = itertools.product(([1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]), (0, 1))
    whole = [(np.vstack([X, x]), np.append(y, label)) for x, label in extremes]
    if adjacency == "add_remove":
        return [((X, y), one) for one in whole]
    return list(itertools.combinations(whole, 2))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_audit_passes_and_finds_counts_with_too_little_noise(adjacency, delta):
    run = fits(adjacency, delta)
    assert all(paired(run, *pair).passes() for pair in neighbours(adjacency))
    honest = Parts.buy_counts

    def doubled(self: Parts, account: Any, counts: Any) -> Any:
        return honest(self, account, 2 * counts) / 2

    with mock.patch.object(Parts, "buy_counts", doubled):
        found = [paired(run, *pair) for pair in neighbours(adjacency)]
    assert max(one.strain for one in found) > 1.9


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_weight": "even"}, "must be 'balanced' or a dict of positive numbers by label"),
        ({"class_weight": {0: 0.0}}, "must be 'balanced' or a dict of positive numbers by label"),
        ({"class_weight": [1, 2]}, "must be 'balanced' or a dict of positive numbers by label"),
        ({"class_weight": {7: 2.0}}, "must have labels of the declared classes alone; pass"),
        ({"class_weight": "balanced", "solver": "objective"},
         "must be None for solver 'objective', which does not weigh slopes; pass solver='"),
        ({"class_weight": {0: 0.5}, "solver": Local(scoring="loss")},
         "must be None for solver 'local', which does not weigh slopes; pass solver='"),
        ({"class_weight": "balanced", "solver": FrankWolfe()},
         r"class_weight \('balanced'\) must be a dict for solver 'frank_wolfe', since its draws"),
        ({"class_weight": "balanced", "solver": SelectRefine()},
         r"class_weight \('balanced'\) must be a dict for solver 'select_refine'"),
    ],
)  # fmt: skip
def test_bad_weights_are_refused_before_the_charge(changes, message):
    X, y = rare(100)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        model(ledger=ledger, **changes).fit(X, y)
    assert not ledger.entries
