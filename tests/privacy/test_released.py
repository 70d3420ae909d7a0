"""What a metric returns is a float that carries its release."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

from privfit import (
    KMeans,
    KMedian,
    Ledger,
    Release,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
)
from privfit.privacy.released import ReleasedFloat

Y = np.arange(400) % 2
SCORE = np.where(Y, 0.8, 0.3)
X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
PLACES = [[0.0, 0.0], [0.5, 0.5]]


def kmeans(ledger):
    model = KMeans(2, 1.0, domain=(-1, 1), ledger=ledger, random_state=1).fit(X)
    return model.private_inertia(X, 0.5)


def kmedian(ledger):
    model = KMedian(1, 1.0, facilities=PLACES, domain=(-1, 1), ledger=ledger, random_state=1).fit(X)
    return model.private_cost(X, 0.5)


METRICS = {
    "accuracy": lambda ledger: accuracy_score(Y, SCORE, 0.5, ledger=ledger, random_state=1),
    "auc": lambda ledger: roc_auc_score(Y, SCORE, 0.5, ledger=ledger, random_state=1),
    "inertia": kmeans,
    "cost": kmedian,
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_keeps_its_release(metric):
    ledger = Ledger(10.0)
    number = metric(ledger)
    assert isinstance(number, float)
    assert number.release == ledger.releases[-1]
    assert number.release.epsilon == 0.5
    assert number.release.verify()
    assert Release.from_json(number.release.to_json()).verify()


def test_a_confusion_matrix_keeps_its_release():
    ledger = Ledger(10.0)
    found = confusion_matrix(Y, SCORE, 0.5, ledger=ledger, random_state=1)
    assert found.release is ledger.releases[-1]


def test_a_released_number_is_a_float_in_all_else():
    number = METRICS["accuracy"](Ledger(1.0))
    plain = float(number)
    assert type(plain) is float
    assert (number, repr(number), str(number), f"{number:.3f}") == (
        plain, repr(plain), str(plain), f"{plain:.3f}"
    )  # fmt: skip
    assert hash(number) == hash(plain)
    assert {number: 1}[plain] == 1
    for result in (number + 1, 1 - number, number * 2, -number, round(number, 2), number / 3):
        assert type(result) is float
    assert json.loads(json.dumps({"a": number})) == {"a": plain}
    assert math.sqrt(number) == math.sqrt(plain)


def test_numpy_takes_a_released_number_as_a_float():
    number = METRICS["auc"](Ledger(1.0))
    for array in (np.array([number, 1.0]), np.asarray(number), np.mean([number, number])):
        assert array.dtype == np.float64
    assert type(np.float64(number) + number) is np.float64


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))]
)
def test_copies_keep_the_release(again):
    number = METRICS["accuracy"](Ledger(1.0))
    other = again(number)
    assert type(other) is ReleasedFloat
    assert other == number
    assert other.release.to_json() == number.release.to_json()
