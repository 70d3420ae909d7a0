"""Features, a classifier and its ROC curve on one ledger: what a whole run spends and says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from privfit import BernoulliNB, Budget, BudgetError, HashWords, Ledger, SelectFeatures, roc_curve

SECRET = "unspeakable"  # a word of one record


@pytest.fixture
def texts(rng):
    """(1200,) texts, and whether each is spam."""
    spam = rng.random(1200) < 0.3
    words = np.array([f"word{i}" for i in range(200)])
    said = [" ".join([*rng.choice(words, 5), *["prize"] * int(s)]) for s in spam]
    said[7] += f" {SECRET}"
    return np.array(said), spam


def pipeline(ledger, epsilon=(0.75, 0.25), seed=1):
    declared = {"classes": [False, True], "ledger": ledger, "random_state": seed}
    return Pipeline(
        [
            ("words", HashWords(512)),
            ("select", SelectFeatures(epsilon=epsilon[0], k=3, max_ones=10, **declared)),
            ("bayes", BernoulliNB(epsilon=epsilon[1], max_ones=3, **declared)),
        ]
    )


def whole_run(texts, ledger):
    said, spam = texts
    train = np.arange(len(said)) < 800
    with ledger.group("train"):
        model = pipeline(ledger).fit(said[train], spam[train])
    with ledger.group("test"):
        scores = model.predict_proba(said[~train])[:, 1]
        curve = roc_curve(spam[~train], scores, 1.0, ledger=ledger, random_state=2)
    return model, curve


def test_disjoint_groups_cost_the_larger_and_steps_of_one_group_add_up(texts):
    ledger = Ledger(1.0)
    model, curve = whole_run(texts, ledger)
    assert ledger.spent == Budget(1.0)
    assert [name for _, name, _ in ledger.entries] == ["SelectFeatures", "BernoulliNB", "roc_curve"]
    # A word that says it all is found, with 800 records and noise of a few: no false alarm in 1e9.
    assert curve.auc > 0.8
    assert model["words"].transform(["prize"]).indices[0] in model["select"].get_support(True)
    for more in (lambda: pipeline(ledger, (0.1, 0.1)).fit(*texts), lambda: ledger.reserve(1e-6)):
        with pytest.raises(BudgetError, match=r"the ledger has epsilon 0, delta 0 left"):
            more()


def test_without_groups_the_same_run_is_refused(texts):
    said, spam = texts
    ledger = Ledger(1.0)
    model = pipeline(ledger).fit(said, spam)
    with pytest.raises(BudgetError, match=r"'roc_curve' asks for epsilon 1"):
        roc_curve(spam, model.predict_proba(said)[:, 1], 1.0, ledger=ledger)
    assert len(ledger.releases) == 2


def test_one_json_holds_every_release_and_no_record(texts):
    ledger = Ledger(1.0)
    model, curve = whole_run(texts, ledger)
    text = ledger.to_json()
    assert SECRET not in text
    assert [release["name"] for release in json.loads(text)["releases"]] == [
        "SelectFeatures",
        "BernoulliNB",
        "roc_curve",
    ]
    read = Ledger.from_json(text)
    assert read.spent == ledger.spent
    assert all(release.verify() for release in read.releases)
    assert [release.epsilon for release in read.releases] == [0.75, 0.25, 1.0]
    chosen = read.releases[0].parameters["features"]
    assert sorted(chosen) == model["select"].get_support(True).tolist()
    assert np.array_equal(read.releases[2].parameters["fpr"], curve.fpr)
