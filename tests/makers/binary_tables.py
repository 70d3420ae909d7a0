"""Small public worlds of binary records, enumerated, and naive twins of what is counted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.audit import neighbours
from privfit.privacy.ledger import Budget
from privfit.records.binary import ClassCounts
from privfit.runs.payment import Paid, Terms


def count_by_hand(X: Any, y: Any, classes: int) -> ClassCounts:
    """The naive twin of `BinaryRecords.counts`."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    ones = np.zeros((classes, X.shape[1]), dtype=np.int64)
    sizes = np.zeros(classes, dtype=np.int64)
    for row, label in zip(X, y, strict=True):
        sizes[label] += 1
        for j, value in enumerate(row):
            ones[label, j] += value > 0
    return ClassCounts(ones, sizes)


WORD = 2**64


def mixed_by_hand(word: int) -> int:
    """SplitMix64's finalizer."""
    word = (word + 0x9E3779B97F4A7C15) % WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def sample_by_hand(features: list[int], most: int, key: int) -> list[int]:
    """The naive twin of `BinaryRecords.at_most`, of one record."""
    if len(features) <= most:
        return features
    coins = {j: mixed_by_hand(j ^ mixed_by_hand(key)) for j in features}
    own = mixed_by_hand(sum(coins.values()) % WORD)
    return sorted(sorted(features, key=lambda j: mixed_by_hand(coins[j] ^ own))[:most])


@dataclass(frozen=True)
class World:
    """All data sets of n records (or n and n + 1) with d features, at most s ones, two classes."""

    d: int
    counts: list[ClassCounts]
    pairs: np.ndarray  # (p, 2) numbers of data sets

    @classmethod
    def of(cls, d: int, ones: int, n: int, adjacency: str) -> World:
        rows = [row for row in itertools.product((0, 1), repeat=d) if sum(row) <= ones]
        records = [(row, label) for row in rows for label in (0, 1)]
        found = neighbours(len(records), n, adjacency)
        counts = [
            count_by_hand(np.array([records[t][0] for t in data]).reshape(len(data), d),
                          [records[t][1] for t in data], 2)
            for data in found.data_sets
        ]  # fmt: skip
        return cls(d, counts, np.array(found.pairs))

    def changes(self, of: Any) -> np.ndarray:
        """(p, ...) what a function of counts changes between neighbours."""
        values = np.array([of(counts) for counts in self.counts])
        return values[self.pairs[:, 0]] - values[self.pairs[:, 1]]


def paid_by(grant: Any, source: Any, adjacency: str = "replace") -> Paid:
    """An account on this grant."""
    return Paid(Terms("test", grant.budget.epsilon, adjacency=adjacency), source, grant)


class FreeGrant:
    """A budget without a book: for audits, which make thousands of runs."""

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.budget = Budget(epsilon, delta)
        self.planned: list[Any] = []
        self.released: list[Any] = []

    def plan(self, *events: Any) -> None:
        self.planned += events

    def release(self, mechanism: Any, value: Any, rng: Any = None) -> Any:
        self.released.append(mechanism)
        return mechanism(value, rng)
