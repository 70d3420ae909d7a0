"""The installed package works: small, needs numpy, pytest and privfit alone.

Run it against a wheel, outside the source tree: ``pytest test_smoke.py``.
"""

import numpy as np
import pytest

import privfit


def records(n=500, d=6):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.2, 1.2, (n, d))
    return rng, X, (X[:, 0] + rng.normal(0, 0.5, n) > 0).astype(int)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_logistic_scores_are_those_of_numpy(layout):
    rng, X, y = records()
    domain = privfit.Box(-1, 1, 6)
    P = domain.candidates(20, rng)
    objective = privfit.LinearObjective(X, y, "logistic", domain, layout=layout)
    kept = np.trunc(np.clip(X, -1, 1) * 4096) / 4096
    z = (kept @ P[:, :-1].T + P[:, -1]) * np.where(y, 1, -1)[:, None]
    expected = -np.logaddexp(0, -z).sum(axis=0)
    assert np.abs(objective.scores(P) * objective.unit - expected).max() <= 0.6 * 500 / 4096
    assert objective.range(P, "replace") > objective.range(P, "add_remove") > 0


def test_scores_of_two_halves_add_up():
    rng, X, y = records()
    domain = privfit.L2Ball(1.0, 6)
    P = domain.candidates(9, rng)
    parts = [privfit.LinearObjective(X[some], y[some], "hinge", domain).scores(P)
             for some in (slice(0, 123), slice(123, None))]  # fmt: skip
    whole = privfit.LinearObjective(X, y, "hinge", domain, n_threads=2)
    assert np.array_equal(sum(parts), whole.scores(P))
    moved = whole.at(P[0]).scores([0, 6], [0.5, -0.25])
    assert np.array_equal(
        moved, whole.scores(P[0] + np.array([[0.5] + [0] * 6, [0] * 6 + [-0.25]]))
    )


def test_schema_centres_facilities_and_own_scores():
    schema = privfit.Schema({"sex": privfit.Categorical(["f", "m"], other=True),
                             "age": privfit.Numeric(17, 90)})  # fmt: skip
    people = {"sex": np.array(["f", "m", "?"]), "age": np.array([17.0, 90.0, 200.0])}
    errors = privfit.LinearObjective(people, [0, 1, 1], "zero_one", schema)
    assert errors.scores([[0.0, 0.0, 0.0, 1.0, -0.5]]).tolist() == [0]

    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.5]])
    centers = privfit.CentersObjective(X, 1, privfit.Box(0, 1))
    assert (centers.scores(np.zeros((1, 1, 2))) * centers.unit).tolist() == [-2.25]
    places = privfit.FacilityObjective(X, X[:2], (0, 1), privfit.Box(0, 1))
    assert (places.scores([[0], [0, 1][:1], [1]]) * places.unit).tolist() == [-1.5, -1.5, -2.0]
    own = privfit.RecordObjective(X, lambda x, P: x.sum(axis=1)[:, None] * P, 0, 1)
    assert (own.scores(np.array([1.0, -1.0])) * own.unit).tolist() == [1.5, 0.0]


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="pass domain=Box"):
        privfit.LinearObjective(np.eye(2), [0, 1])
