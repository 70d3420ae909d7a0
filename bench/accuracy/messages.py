"""The messages of sms_spam: features selected and naive Bayes under one budget, and ROC curves."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import BernoulliNB as Plain
from sklearn.pipeline import Pipeline

from bench import tables
from privfit import BernoulliNB, HashWords, Ledger, SelectFeatures, roc_curve
from privfit.evaluation.roc import exact_roc

FEATURES, MOST = 8192, 20
SHARE, KEPT = 0.75, 3  # of epsilon for the selection; of the selected features, ones a message


# ---------------------------------------------------------------------------------------- features


@lru_cache(maxsize=1)
def hashed() -> tuple[Any, Any]:
    """Binary features (5574, 8192) of the messages, and whether each is spam."""
    data = tables.real("sms_spam")
    return HashWords(FEATURES).transform(data.table["text"].tolist()), (data.target == "spam") * 1


def fold(seed: int) -> tuple[Any, Any, Any, Any]:
    """Messages and labels to train on and to test on: fold `seed % 10` of shuffle `seed // 10`."""
    X, y = hashed()
    shuffle, number = divmod(seed, 10)
    train, test = list(KFold(10, shuffle=True, random_state=shuffle).split(X))[number]
    return X[train], y[train], X[test], y[test]


def selected(
    seed: int, k: int = 8, share: float = SHARE, epsilon: float = 1.0, delta: float = 0.0,
    adjacency: str = "add_remove", **options: Any,
) -> Pipeline:  # fmt: skip
    """Selection and naive Bayes on one ledger."""
    common = {"classes": [0, 1], "adjacency": adjacency, "ledger": Ledger(epsilon, delta),
              "random_state": seed}  # fmt: skip
    first = share * epsilon, share * delta
    second = epsilon - first[0], delta - first[1]  # no rounding beyond the ledger's whole
    return Pipeline([
        ("select", SelectFeatures(*first, k=k, max_ones=MOST, **options, **common)),
        ("bayes", BernoulliNB(*second, max_ones=KEPT, **common)),
    ])  # fmt: skip


def everything(seed: int, epsilon: float, delta: float, adjacency: str) -> BernoulliNB:
    """Naive Bayes on all features."""
    return BernoulliNB(
        epsilon, delta, max_ones=MOST, classes=[0, 1], adjacency=adjacency, random_state=seed
    )


def fold_accuracy(make: Callable[[int], Any], seed: int) -> float:
    """Accuracy on one fold."""
    X, y, X_test, y_test = fold(seed)
    return float(make(seed).fit(X, y).score(X_test, y_test))


def plain_accuracy(seed: int) -> float:
    """Of scikit-learn's naive Bayes on all features."""
    return fold_accuracy(lambda _: Plain(), seed)


def constant_accuracy(seed: int) -> float:
    """Of the most frequent class."""
    _, y, _, y_test = fold(seed)
    return float(np.mean(y_test == (y.mean() > 0.5)))


# ------------------------------------------------------------------------------------------ curves
# Distance: the area between the curves, |true positive rate - true one| averaged over the false
# positive rate, on 558 test messages. Classifiers are scikit-learn's, not private.

TEST = 558
AT = (np.arange(4000) + 0.5) / 4000
MODELS = {
    "BernoulliNB": (Plain, 8192, 5016),
    "LogisticRegression": (LogisticRegression, 8192, 5016),
    "LogisticRegression, 60 messages": (LogisticRegression, 8192, 60),
    "BernoulliNB, 400 words": (Plain, 400, 5016),
}  # the model, how many words it sees, and from how many messages it learns
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "no smoothing": {"smooth": False},
    "medians, wavelet": {"thresholds": "medians", "levels": 4, "noise": "wavelet"},
}


@lru_cache(maxsize=1)
def words() -> tuple[Any, Any]:
    """Hashed words (n, 8192), at most 20 a message, and labels."""
    data = tables.real("sms_spam")
    found = [
        sorted({zlib.crc32(word.encode()) % 8192 for word in re.findall(r"\w+", text.lower())})[:20]
        for text in data.table["text"]
    ]
    starts = np.cumsum([0, *map(len, found)])
    X = sp.csr_matrix((np.ones(starts[-1]), np.concatenate(found), starts), (len(found), 8192))
    return X, data.target == "spam"


@lru_cache(maxsize=64)
def tested(name: str, seed: int) -> tuple[Any, Any, Any]:
    """Labels, scores and the true curve of a classifier's test set."""
    (X, y), (make, seen, learns) = words(), MODELS[name]
    rng = np.random.default_rng(seed)
    order, some = rng.permutation(len(y)), rng.choice(X.shape[1], seen, replace=False)
    test, train = order[:TEST], order[TEST : TEST + learns]
    model = make().fit(X[train][:, some], y[train])
    score = model.predict_proba(X[test][:, some])[:, 1]
    return y[test], score, np.interp(AT, *exact_roc(y[test], score))


def distance(name: str, way: str, epsilon: float, delta: float, adjacency: str, seed: int) -> float:
    """The area between the true curve of a test set and a private one."""
    labels, score, true = tested(name, seed)
    curve = roc_curve(
        labels, score, epsilon, delta, adjacency=adjacency, n_public=TEST, random_state=seed,
        **WAYS[way],
    )  # fmt: skip
    return float(np.abs(np.interp(AT, curve.fpr, curve.tpr) - true).mean())
