"""The messages of sms_spam as binary words, in ten folds, as the paper of 2014 has them.

Stoddard, Chen and Machanavajjhala, Section 5.1.1: words but stop words, 8,021 of them. They are
read off the messages to learn from, which is not private: for experiments alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import KFold

from bench import tables
from privfit.features.scores import SCORES
from privfit.records.binary import BinaryRecords

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@lru_cache(maxsize=1)
def messages() -> tuple[NDArray[Any], Integers]:
    """All messages, and labels: 1 is no spam, as for 481 of the paper's 558 test messages."""
    data = tables.real("sms_spam")
    return data.table["text"], (data.target != "spam") * 1


@dataclass(frozen=True, eq=False)
class Fold:
    """Binary words and labels to learn from, and to test on."""

    X: Any
    y: Integers
    X_test: Any
    y_test: Integers

    def only(self, columns: Any) -> Fold:
        """Some of the words."""
        return Fold(self.X[:, columns], self.y, self.X_test[:, columns], self.y_test)

    def sampled(self, most: int, seed: int) -> Fold:
        """Each message to learn from with a sample of its words, at most so many."""
        start, row = self.X.indptr, np.repeat(np.arange(len(self.y)), np.diff(self.X.indptr))
        order = np.lexsort((np.random.default_rng([seed, 5]).random(self.X.nnz), row))
        kept = self.X.copy()
        kept.data[order] = np.arange(self.X.nnz) - start[row] < most
        kept.eliminate_zeros()
        return replace(self, X=kept)

    def error(self, predicted: Any) -> float:
        """The share of wrong predictions on the messages to test on."""
        return float(np.mean(np.asarray(predicted) != self.y_test))


@lru_cache(maxsize=16)
def fold(seed: int) -> Fold:
    """Fold `seed % 10` of shuffle `seed // 10`."""
    texts, y = messages()
    shuffle, number = divmod(seed, 10)
    train, test = list(KFold(10, shuffle=True, random_state=shuffle).split(texts))[number]
    words = CountVectorizer(binary=True, stop_words="english").fit(texts[train])
    return Fold(words.transform(texts[train]), y[train], words.transform(texts[test]), y[test])


@lru_cache(maxsize=16)
def common_fold(seed: int) -> Fold:
    """The fold's 5,000 most frequent words: all that the paper gives to logistic regression."""
    whole = fold(seed)
    return whole.only(np.argsort(-scores(whole, "total_count"), kind="stable")[:5000])


def scores(data: Fold, criterion: str) -> Floats:
    """Exact scores of all words; not private."""
    counts = BinaryRecords.of(data.X, data.y, 2, n_threads=1).counts()
    how = SCORES[criterion]
    return np.asarray(how.integers(counts, len(data.y)) / how.units)
