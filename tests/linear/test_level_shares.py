"""Parts of records in levels: what released moments tell of them, and no more than that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from privfit import (
    Additive,
    Categorical,
    Ledger,
    LinearObjective,
    LogisticRegression,
    Numeric,
    Reals,
    Schema,
)
from privfit.linear import descent
from privfit.linear.feature_frames import FeatureFrame
from privfit.linear.level_shares import level_shares, read_shares, usual_shares, written_shares
from privfit.objectives.features import ONE, Features
from privfit.privacy.neighbours import ADJACENCIES, Neighbours
from privfit.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore::privfit.SeedWarning")

SCHEMA = Schema({
    "age": Numeric(bins=[20.0, 30.0, 45.0], ranks=[0.2, 0.5, 0.7], missing=True),
    "job": Categorical(["a", "b", "c"], other=True),
})  # fmt: skip
TRUE = np.array([0.1, 0.05, 0.6, 0.05, 0.2, 0.5, 0.25, 0.25, 0.0])  # of all levels


def frame_of(
    schema: Schema, shares: Any, noise: float, drawn: Any = None, functions: int = 4
) -> FeatureFrame:
    """A frame whose moments are those of these parts of 1,000 records, and what was drawn."""
    features, n = Features.of(schema, functions, functions, 0.5), 1000.0
    p = features.dimensions
    matrix = np.zeros((p, p))
    for part, group, table in zip(features.parts, features.groups, features.tables, strict=True):
        rows = table.rows / ONE
        matrix[part, part] = (rows.T * shares[group]) @ rows
        matrix[part, -1] = matrix[-1, part] = shares[group] @ rows
    matrix[-1, -1] = 1.0
    matrix = n * (matrix + (0.0 if drawn is None else drawn))
    return FeatureFrame.made(matrix, matrix / n, 1.0, n, 1.5, features, n * noise)


def symmetric_noise(p: int, deviation: float, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).normal(0, deviation, (p, p)))
    return upper + np.triu(upper, 1).T


def naive_shares(frame: FeatureFrame, schema: Schema, noise: float) -> np.ndarray:
    """The same by the definition: a sum over released numbers, and a general minimiser."""
    found = []
    columns = zip(frame.features.tables, frame.features.parts, schema.parts.values(), strict=True)
    for table, place, part in columns:
        rows, width = table.rows / ONE, part.column.width
        p = 0.99 * usual_shares(part) + 0.01 / width
        mean, square = (frame.matrix[place, one] / 1000 for one in (-1, place))
        pairs = [(i, j) for i in range(len(mean)) for j in range(i, len(mean))]
        pairs = pairs if part.kind == "number" else []  # squares of levels are levels
        moments = np.array([[*row, *(row[i] * row[j] for i, j in pairs)] for row in rows])
        released = np.array([*mean, *(square[i, j] for i, j in pairs)])

        def loss(a: Any, moments: Any = moments, released: Any = released, p: Any = p) -> float:
            a = np.maximum(a, 1e-12)
            off = a @ moments - released
            return float(off @ off / (2 * noise**2) + a @ np.log(a / p))

        best = minimize(
            loss, p, bounds=[(1e-12, 1)] * width, method="SLSQP",
            constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        kept = np.where(best.x < 3 * noise, 0, best.x)
        few = part.kind == "category" and kept.sum() >= 0.5
        found.append(kept / kept.sum() if few else best.x)
    return np.concatenate(found)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of old versions of SciPy
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_parts_minimise_what_the_page_says(noise, seed):
    p = Features.of(SCHEMA, 4, 4, 0.5).dimensions
    frame = frame_of(SCHEMA, TRUE, noise, symmetric_noise(p, noise, seed))
    found = level_shares(frame, SCHEMA)
    np.testing.assert_allclose(found, naive_shares(frame, SCHEMA, noise), atol=2e-4)


@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0, 1e6])
def test_parts_are_parts_whatever_was_drawn(noise):
    p = Features.of(SCHEMA, 4, 4, 0.5).dimensions
    for seed in range(5):
        found = level_shares(frame_of(SCHEMA, TRUE, noise, symmetric_noise(p, noise, seed)), SCHEMA)
        assert (found >= 0).all()
        for part in SCHEMA.parts.values():
            assert found[part.place].sum() == pytest.approx(1.0, abs=1e-9)


def test_without_noise_parts_are_those_of_the_records():
    np.testing.assert_allclose(level_shares(frame_of(SCHEMA, TRUE, 0.0), SCHEMA), TRUE, atol=1e-3)


def test_where_noise_drowns_everything_parts_are_the_assumed_ones():
    found = level_shares(frame_of(SCHEMA, TRUE, 1e4), SCHEMA)
    for part in SCHEMA.parts.values():
        np.testing.assert_allclose(found[part.place], usual_shares(part), atol=0.011)


def test_levels_that_share_a_row_divide_their_part_as_assumed():
    """More than 256 bins are taken together, and no moment tells them apart."""
    schema = Schema({"x": Numeric(0, 1, bins=1000, fill=0)})
    rows = Features.of(schema, 8, 8, 0.5).tables[0].rows
    shares = np.zeros(1000)
    shares[700:900] = 1 / 200
    found = level_shares(frame_of(schema, shares, 1e-3, functions=8), schema)
    for row in np.unique(rows, axis=0)[::20]:
        same = found[(rows == row).all(axis=1)]
        np.testing.assert_allclose(same, same[0], rtol=1e-9)
    assert found[650:950].sum() > 0.9


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300])
def test_parts_are_finite_whatever_moments_are(odd):
    """Nothing may fail once a fit is paid for."""
    frame = frame_of(SCHEMA, TRUE, 0.1)
    frame.matrix[0, 0] = frame.matrix[0, -1] = frame.matrix[-2, -1] = odd
    found = level_shares(frame, SCHEMA)
    assert (found >= 0).all()
    for part in SCHEMA.parts.values():
        assert found[part.place].sum() == pytest.approx(1.0, abs=1e-9)


def test_kept_parts_are_read_as_they_were():
    kept = written_shares(TRUE)
    for part in SCHEMA.parts.values():
        np.testing.assert_allclose(read_shares(part, kept), TRUE[part.place], atol=1e-6)
        np.testing.assert_array_equal(read_shares(part, None), usual_shares(part))


# ------------------------------------------------------------------------------------------ privacy


class Replayed(Run[Any, Any]):
    """A run that keeps what it releases, or releases what another run did, whatever it is asked."""

    kept: list[Any]
    replays = False

    def release(self, mechanism: Any, value: Any) -> Any:
        drawn = super().release(mechanism, value)
        if self.replays:
            return self.kept.pop(0)
        self.kept.append(drawn)
        return drawn


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("metric", ["block", "full"])
def test_parts_and_errors_are_functions_of_what_was_released(metric, adjacency):
    """Other records, whose releases happen to be the same, have the same ones, bit for bit.

    Under 'add_remove' there is even another number of them.
    """
    paths: list[Any] = []
    kept: list[Any] = []
    for seed, n in enumerate((500, 500) if adjacency == "replace" else (500, 731)):
        rng = np.random.default_rng(seed)
        table = {"age": rng.integers(10, 60, n), "job": rng.choice(["a", "b", "z"], n)}
        objective = LinearObjective(
            table, rng.integers(0, 2, n), "logistic", SCHEMA, adjacency=adjacency
        )
        high = np.full(objective.n_weights, descent.BOUND)
        run = Replayed(
            objective, Reals(-high, high, len(high)), Ledger(1.0, 1e-6).reserve(1.0, 1e-6), 3,
            neighbours=Neighbours(adjacency), n_public=500,
        )  # fmt: skip
        run.kept, run.replays = kept, bool(seed)
        paths.append(Additive(steps=6, metric=metric)(run))
    assert not kept
    first, second = paths
    np.testing.assert_array_equal(first.answer, second.answer)
    np.testing.assert_array_equal(first.shares, second.shares)
    np.testing.assert_array_equal(first.noise.factor, second.noise.factor)


# --------------------------------------------------------------------------------------- estimators


def test_only_a_fit_that_released_moments_knows_parts():
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(10, 60, 2000), "job": rng.choice(["a", "b", "z"], 2000)}
    labels = (table["age"] > 35).astype(int)
    for solver, known in (("additive", True), ("gradient", False), ("local", False)):
        model = LogisticRegression(
            1.0, 1e-6, domain=SCHEMA, classes=[0, 1], solver=solver, coding="declared",
            random_state=0,
        ).fit(table, labels)  # fmt: skip
        assert ("shares" in model.release_.parameters) == known
        parts = SCHEMA.parts["age"].assumed
        centre = parts @ model.coef_[0, :4]
        assert (abs(model.shape("age").centre - centre) < 1e-12) == (not known)


def test_a_fit_that_a_callback_ended_knows_none():
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(10, 60, 500), "job": rng.choice(["a", "b", "z"], 500)}
    model = LogisticRegression(
        1.0, 1e-6, domain=SCHEMA, classes=[0, 1], solver="additive", coding="declared",
        callback=lambda now: now.index == 3,
    ).fit(table, rng.integers(0, 2, 500))  # fmt: skip
    assert model.path_.shares is None
    assert "shares" not in model.release_.parameters
    assert set(model.importances()) == {"age", "job"}
