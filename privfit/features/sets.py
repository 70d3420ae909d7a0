"""Sets of features as candidates: how any solver of a `Run` selects features.

A candidate is a set of k features, and its score the sum of theirs. Let D_j be how much the score
of feature j changes between two neighbours; abs(D_i - D_j) <= R for all i and j (`scores.py`). For
sets A and B of k features each, the change of F(A) - F(B) is the sum of D over A - B less that over
B - A. Both have the same number m of members, so they make m pairs: the change is at most m R.

**m for many candidates.** m is at most k, and at most d - k. For any set C of k features, m is at
most the sum of abs(A - C) and abs(B - C), whatever C is: take the k features that most candidates
have. Sets that differ from one set by a swap each, as in a step of `Local` or `EEM`, have m <= 2,
however large k is.

A record with more ones than `max_ones` is reduced once for all draws of a run, by a key and the
record itself: for each key, what it counts as is a function of that record alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Integers
from privfit.features.selection import FeatureScores, Selected, SelectionMethod
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours
from privfit.runs.payment import Paid, Terms
from privfit.runs.settings import Settings
from privfit.runs.spaces import Subsets

__all__ = ["BySets", "FeatureSets"]

MOST = 1 << 20  # features of a set: a score is below 2^42, so that their sum is below 2^62


class FeatureSets:
    """The objective: the score of a set of features is the sum of theirs.

    `source` is for the key by which records are reduced, which is drawn when scores are first asked
    for.
    """

    def __init__(self, problem: FeatureScores, k: int, source: BitSource | None = None) -> None:
        self._problem, self._k, self._source = problem, k, source
        self.domain = f"binary features, at most {problem.max_ones} ones a record"

    @property
    def n_records(self) -> int:
        """The number of records."""
        return self._problem.records.n_records

    @cached_property
    def _each(self) -> Integers:
        assert self._source is not None, "before the charge nobody asks for scores"
        return self._problem.scores(self._source)

    def scores(self, P: Array) -> Integers:
        """int64 (m,): the sums of the scores of the features of each set (m, k)."""
        return np.asarray(self._each[np.asarray(P)].sum(axis=1, dtype=np.int64))

    def prior(self, P: Array) -> Integers:
        """Zeros: there is no data-free part."""
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """m R of the head of this module."""
        counts = np.bincount(np.ravel(P), minlength=self._problem.d)
        common = np.argsort(-counts, kind="stable")[: self._k]
        away = np.sort((~np.isin(P, common)).sum(axis=1))
        return min(int(away[-2:].sum()), self._widest) * self._range(neighbours)

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The same for any two sets."""
        return self._widest * self._range(neighbours)

    @property
    def _widest(self) -> int:
        return min(self._k, self._problem.d - self._k)

    def _range(self, neighbours: Neighbours) -> int:
        return self._problem.how.range(neighbours, self._problem.bound)


@dataclass(frozen=True, repr=False)
class BySets(SelectionMethod):
    """A solver of a `Run`, as a method that selects k features: it searches the sets of k."""

    name: str
    solver: Settings
    k: int
    terms: Terms

    def check(self, problem: FeatureScores, budget: Budget) -> None:
        """Refuse what the solver would refuse, before anything is charged."""
        if self.k > MOST:
            raise DeclarationError(
                f"k ({self.k}) must be at most {MOST} for a solver that searches sets; pass "
                "solver='peeling'"
            )
        self.terms.check(self.name, self.solver, *self._task(problem))

    def __call__(self, problem: FeatureScores, paid: Paid) -> Selected:
        """Search the sets of k features."""
        run = paid.run(*self._task(problem, paid.source), self.name)
        path = paid.solved(self.name, self.solver, run)
        return Selected(np.asarray(path.answer), None, path.notes)

    def _task(self, problem: FeatureScores, source: Any = None) -> tuple[FeatureSets, Subsets]:
        k = min(self.k, problem.d)
        return FeatureSets(problem, k, source), Subsets(problem.d, k)
