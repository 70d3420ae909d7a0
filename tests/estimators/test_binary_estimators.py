"""What the estimators of binary features keep alike: refusals that cost and show nothing, seeds."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from privfit import BernoulliNB, Budget, Ledger, PrivacyLeakWarning, SelectFeatures
from privfit._kernels.random import BitSource
from privfit.records.rows import KernelCalls

SECRET = 0.1234567890123
GENERATOR = np.random.default_rng(5)
N = 397
X = GENERATOR.uniform(-1, 1, (N, 6))
X[0] = SECRET
Y = (X[:, 0] + X[:, 1] > X[:, 2]).astype(int)

# Each estimator, and what a fit of it releases.
ESTIMATORS: dict[Any, tuple[str, ...]] = {
    BernoulliNB: ("class_count_", "feature_count_"),
    SelectFeatures: ("ranking_",),
}
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS)


def make(kind: Any, **changes: Any) -> Any:
    return kind(**{"epsilon": 0.5, "classes": [0, 1], "random_state": 7, **changes})


def released(model: Any) -> list[np.ndarray]:
    return [getattr(model, name) for name in ESTIMATORS[type(model)]]


def same(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, released(one), released(other)))


WORDS = X.astype(object)
WORDS[5, 1] = f"canary {SECRET}"

BAD: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "NaN": (np.where(X > 0.9, np.nan, X), Y, {}, "Input (X )?contains NaN"),
    "sparse NaN": (sp.csr_array(np.where(X > 0.9, np.nan, X)), Y, {}, "Input (X )?contains NaN"),
    "infinity": (np.where(X > 0.9, np.inf, X), Y, {}, "Input (X )?contains infinity"),
    "a vector": (X[:, 0], Y, {}, "Expected 2D array.*Reshape your data"),
    "complex": (X + 1j * SECRET, Y, {}, "Complex data not supported"),
    "words": (WORDS, Y, {}, "X must hold numbers"),
    "no record": (X[:0], Y[:0], {}, r"Found array with 0 sample\(s\)"),
    "no column": (X[:, :0], Y, {}, r"Found array with 0 feature\(s\)"),
    "short labels": (X, Y[1:], {}, "y must have one label for each record"),
    "two labels": (X, np.c_[Y, Y], {}, "y should be a 1d array"),
    "other labels": (X, X[:, 0], {}, "y has labels outside the declared classes"),
    "one class": (X, Y, {"classes": [0]}, "classes must be at least two different labels"),
    "mixed classes": (X, Y, {"classes": [None, 1]}, "classes must be labels of one kind"),
    **{
        f"epsilon {epsilon}": (X, Y, {"epsilon": epsilon}, r"epsilon \(.*\) must be a number of at")
        for epsilon in (-1, np.nan, np.inf, "1", None, True)
    },
    "epsilon 0": (X, Y, {"epsilon": 0}, r"epsilon \(0\) must be positive"),
    "delta 1": (X, Y, {"delta": 1}, r"delta \(1\) must lie in \[0, 1\)"),
    "adjacency": (X, Y, {"adjacency": None}, r"adjacency \(None\) must be 'replace' or"),
    "max_ones": (X, Y, {"max_ones": True}, r"max_ones \(True\) must be a positive whole number"),
    "n_threads": (X, Y, {"n_threads": 0}, r"n_threads \(0\) must be a whole number"),
    "random_state": (X, Y, {"random_state": "x"}, r"random_state \(.*\) must"),
    "ledger": (X, Y, {"ledger": Budget(1.0)}, r"ledger \(Budget\) must be a Ledger"),
}


@every_estimator
@pytest.mark.parametrize(("table", "labels", "changes", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_clearly_and_costs_nothing(kind, table, labels, changes, message):
    ledger = Ledger(1.0, 1e-6)
    model = make(kind, **{"ledger": ledger, **changes})
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}") as error:
        model.fit(table, labels)
    assert not ledger.entries
    assert not any(name.endswith("_") for name in vars(model))
    assert "canary" not in str(error.value)
    assert str(SECRET)[:6] not in str(error.value)


@every_estimator
def test_a_failed_refit_leaves_the_model_as_it_was(kind):
    model = make(kind).fit(X, Y)
    before = copy.deepcopy(released(model))
    with pytest.raises(ValueError, match="Input"):
        model.fit(np.where(X > 0.9, np.nan, X)[:, :3], Y)
    assert all(map(np.array_equal, released(model), before))
    assert model.n_features_in_ == X.shape[1]


@every_estimator
def test_an_interrupted_fit_stays_charged(kind, monkeypatch):
    ledger = Ledger(1.0)

    def stop(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privfit.records.binary.count_ones", stop)
    model = make(kind, ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert ledger.spent == Budget(0.5)
    assert not ledger.events
    assert not any(name.endswith("_") for name in vars(model))


@every_estimator
@pytest.mark.parametrize(
    "seed", [lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3),
             lambda: BitSource(3)],
)  # fmt: skip
def test_a_seed_of_any_kind_gives_the_same_model_and_is_confessed(kind, seed):
    one, other = (make(kind, random_state=seed(), max_ones=2).fit(X, Y) for _ in range(2))
    assert same(one, other)
    assert one.release_.seeded
    assert not make(kind, random_state=None).fit(X, Y).release_.seeded


@every_estimator
def test_nothing_is_drawn_from_the_bits_before_the_charge(kind):
    """A refused fit leaves a caller's generator as it was."""
    source, twin = np.random.default_rng(1), np.random.default_rng(1)
    with pytest.raises(ValueError, match="max_ones"):
        make(kind, random_state=source, max_ones=0).fit(X, Y)
    assert source.bit_generator.state == twin.bit_generator.state


@every_estimator
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_threads_and_the_form_of_a_table_do_not_matter(kind, delta, adjacency, monkeypatch):
    monkeypatch.setattr(KernelCalls, "thread_work", -1.0)
    monkeypatch.setattr(KernelCalls, "patient_work", -1.0)
    options = {"delta": delta, "adjacency": adjacency, "max_ones": 2}
    one = make(kind, n_threads=1, **options).fit(X, Y)
    for form in (np.asfortranarray, sp.csr_array, sp.coo_array, pd.DataFrame, np.float32):
        table, before = form(X), copy.deepcopy(form(X))
        assert same(one, make(kind, n_threads=3, **options).fit(table, Y))
        changed = table != before
        assert not (changed.nnz if sp.issparse(changed) else np.asarray(changed).any())


@every_estimator
def test_no_record_is_in_a_saved_model(kind):
    for options in ({}, {"max_ones": 2}, {"delta": 1e-6}):
        saved = pickle.dumps(make(kind, **options).fit(X, Y))
        assert len(saved) < 4000
        assert np.float64(SECRET).tobytes() not in saved
        assert str(N).encode() not in saved


def test_the_warning_on_classes_that_were_not_declared_names_who_called_fit():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.warns(PrivacyLeakWarning, match="reads its classes from") as caught:
        BernoulliNB(1.0).fit(X, y)
    assert caught[0].filename == __file__
