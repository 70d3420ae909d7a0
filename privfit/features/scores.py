"""Scores of binary features by their class-conditional counts, and what one record changes.

With n_1, n_0 the sizes of the two classes, x_1, x_0 how many records of each have the feature,
a = x_1 - x_0 and c = n_1 - n_0, a feature's score is (Stoddard, Chen, Machanavajjhala 2014)

====================  ============================================================================
total_count           x_1 + x_0; needs no labels
difference_count      abs(a)
purity_index          max(abs(a), abs(c - a)) = abs(c)/2 + abs(a - c/2)
information_gain      n times the mutual information of feature and class, in nats
====================  ============================================================================

**Sensitivity.** One record changes a score by at most S, and the scores of two features apart by at
most R (what a selection pays for); a record added or removed / replaced:

====================  =================  =======================  ==================
score                 S                  R                        what noise is on
====================  =================  =======================  ==================
total_count           1 / 1              1 / 2                    the scores
difference_count      1 / 2              2 / 4                    the scores
purity_index          1 / 2              1 / 2                    all a, and c
information_gain      psi / psi          psi / 2 psi              all x, and n_1, n_0
====================  =================  =======================  ==================

Why: a new record of class 1 raises a by one where it has the feature, and c everywhere. So abs(a)
moves by one, either way. In the purity index abs(c)/2 is common to all features, and a - c/2 moves
by exactly 1/2: hence R = 1 although S = 1 for every feature, present or not. Replacing is two such
steps.

Noise on all scores pays for the sum of changes over features. With at most s ones a record (and d
features) l1 and l2 squared are

====================  ==========================  ==============================
score                 l1                          l2 squared
====================  ==========================  ==============================
total_count           s / min(2 s, d)             s / min(2 s, d)
difference_count      s / 2 s                     s / 4 s
purity_index          (s + 1) / 2 (s + 1)         (s + 1) / 4 (s + 1)
information_gain      (s + 1) / 2 (s + 1)         (s + 1) / 2 (s + 1)
====================  ==========================  ==============================

since a record touches x of its own features alone; a record that keeps its features and changes its
class moves each a by two, and c by two. All purity indices move with c, and every information gain
with n: noise on those scores themselves would have to pay for d features, not s.

**Information gain.** Let f(m) = m ln m and psi(m) = f(m + 1) - f(m). psi(0) = 0, and psi rises and
is concave, so psi(a + b) <= psi(a) + psi(b). T = n IG is the sum of f over the four cells n_FL,
less those over n_F and over n_L, plus f(n). A new record in cell (F, L) of n records changes T by

    psi(n_FL) - psi(n_F) - psi(n_L) + psi(n),    n_FL <= n_F, n_L <= n.

It is at most psi(n) - psi(n_F), and at least -psi(n_F): S = psi(n). The last two terms are common
to all features, the first two lie in [-psi(n), 0]: R = psi(n). Replacing adds one of two records to
the same m = n - 1 others: R = 2 psi(m). For S let the new one fall into a cell with d others, the
old one into the opposite cell with a, and let b, c be the cells between. T changes by

    [psi(a+b) - psi(a)] + [psi(d) - psi(b+d)] + [psi(a+c) - psi(c+d)] <= psi(a+b) <= psi(m),

as the second part is at most 0 and the third at most psi(a). If the cells share a row or a column,
that margin is common, and the change is at most psi(the old cell's other margin) - psi(a). The
other way round the two records trade places.

*In integers*, T in units of 2^-10 is the same sum of phi(m) = round(2^10 f(m)) over nine counts.
Each phi is within 0.55 of the truth (half a rounding, and 3 ulp of m ln m up to m = 2^32, where a
phi is below 2^47 and a gain below 2^42: nothing wraps), so S grows by 2 * 9 * 0.55 < 10; for R
three of the nine are common and cancel, 4 * 6 * 0.55 < 14.

*If records are added or removed*, n is private, and psi(n) needs a public bound B. A table that is
larger all the same is not refused, which would tell; its gains are scaled by h(n) = psi(B) / psi(n)
and rounded again (S 12, R 16). Then u(D + t) - u(D) = h(n+1) (T' - T) - (h(n) - h(n+1)) T with T in
[0, n ln 2]. The first part is at most h(n+1) psi(n) <= psi(B). As psi(n+1) - psi(n) <= 1/n, the
second is at most psi(B) n ln 2 / (n psi(n)^2) <= ln 2 / psi(B): S = R = psi(B) + ln 2 / psi(B).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.typing import Floats, Integers
from privfit.privacy.neighbours import Neighbours
from privfit.records.binary import ClassCounts, count_sensitivity

__all__ = ["SCORES", "Score"]


GAIN_UNITS = 1 << 10  # of information gain in a nat
USUAL_RECORDS = 2**31 - 1  # B where no size is declared: it steers, and larger tables are scaled


class Score:
    """A score of each feature, and what one record changes; the tables at the top derive it."""

    name: ClassVar[str]
    units: ClassVar[int] = 1  # integers to a unit of the score
    is_local: ClassVar[bool] = True  # whether a record moves the scores of its own features alone

    def of(self, ones: Any, sizes: Any) -> Any:
        """(d,): the scores, of exact or noisy counts."""
        raise NotImplementedError

    def integers(self, counts: ClassCounts, bound: int | None) -> Integers:
        """int64 (d,): exact scores in units of 1 / `units`; `bound` is a public size."""
        return np.asarray(self.of(counts.ones, counts.sizes))

    def sensitivity(self, neighbours: Neighbours, bound: int | None) -> int:
        """S, in the same units."""
        raise NotImplementedError

    def range(self, neighbours: Neighbours, bound: int | None) -> int:
        """R, in the same units."""
        raise NotImplementedError

    def slope(self, bound: int | None) -> int:
        """How far one count can move a score, in the same units."""
        return 1

    def statistic(self, counts: ClassCounts) -> Integers:
        """What noise is put on."""
        return np.asarray(self.of(counts.ones, counts.sizes))

    def spread(self, ones: int, d: int, neighbours: Neighbours) -> tuple[int, int]:
        """l1 and l2 squared of the statistic, with so many ones a record."""
        raise NotImplementedError

    def of_noisy(self, statistic: Floats) -> Floats:
        """The scores (d,) of a noisy statistic."""
        return statistic


class TotalCount(Score):
    """x_1 + x_0: in how many records a feature is present."""

    name = "total_count"

    def of(self, ones: Any, sizes: Any) -> Any:
        return ones.sum(axis=0)

    def sensitivity(self, neighbours: Neighbours, bound: int | None) -> int:
        return 1

    def range(self, neighbours: Neighbours, bound: int | None) -> int:
        return neighbours.changes

    def spread(self, ones: int, d: int, neighbours: Neighbours) -> tuple[int, int]:
        changed = min(2 * ones, d) if neighbours.replaces else ones
        return changed, changed


class DifferenceCount(Score):
    """abs(x_1 - x_0)."""

    name = "difference_count"

    def of(self, ones: Any, sizes: Any) -> Any:
        return np.abs(ones[1] - ones[0])

    def sensitivity(self, neighbours: Neighbours, bound: int | None) -> int:
        return neighbours.changes

    def range(self, neighbours: Neighbours, bound: int | None) -> int:
        return 2 * neighbours.changes

    def spread(self, ones: int, d: int, neighbours: Neighbours) -> tuple[int, int]:
        return neighbours.changes * ones, neighbours.changes**2 * ones


class PurityIndex(Score):
    """max(abs(a), abs(c - a)): the larger difference of classes, with the feature or without."""

    name = "purity_index"
    is_local = False

    def of(self, ones: Any, sizes: Any) -> Any:
        return self._of_differences(ones[1] - ones[0], sizes[1] - sizes[0])

    @staticmethod
    def _of_differences(a: Any, c: Any) -> Any:
        return np.maximum(np.abs(a), np.abs(c - a))

    def sensitivity(self, neighbours: Neighbours, bound: int | None) -> int:
        return neighbours.changes

    def range(self, neighbours: Neighbours, bound: int | None) -> int:
        return neighbours.changes

    def statistic(self, counts: ClassCounts) -> Integers:
        return np.append(counts.ones[1] - counts.ones[0], counts.sizes[1] - counts.sizes[0])

    def spread(self, ones: int, d: int, neighbours: Neighbours) -> tuple[int, int]:
        return neighbours.changes * (ones + 1), neighbours.changes**2 * (ones + 1)

    def of_noisy(self, statistic: Floats) -> Floats:
        return np.asarray(self._of_differences(statistic[:-1], statistic[-1]))


class InformationGain(Score):
    """n times the mutual information of a feature and the class."""

    name = "information_gain"
    is_local = False
    units = GAIN_UNITS

    def of(self, ones: Any, sizes: Any) -> Any:
        sizes = np.maximum(sizes, 1.0)
        ones = np.clip(ones, 0.0, sizes[:, None])
        return _signed_sum(lambda m: scipy.special.xlogy(m, m), ones, sizes)

    def integers(self, counts: ClassCounts, bound: int | None) -> Integers:
        gains = _signed_sum(_phi, counts.ones, counts.sizes)
        n, limit = int(counts.sizes.sum()), USUAL_RECORDS if bound is None else bound
        return gains if n <= limit else np.rint(gains * (psi(limit) / psi(n))).astype(np.int64)

    def sensitivity(self, neighbours: Neighbours, bound: int | None) -> int:
        if neighbours.replaces:
            assert bound is not None  # the size is public
            return _units_above(psi(bound - 1)) + 10
        return _units_above(_enlarged(bound)) + 12

    def range(self, neighbours: Neighbours, bound: int | None) -> int:
        if neighbours.replaces:
            assert bound is not None  # the size is public
            return _units_above(2 * psi(bound - 1)) + 14
        return _units_above(_enlarged(bound)) + 16

    def slope(self, bound: int | None) -> int:
        return _units_above(_enlarged(bound))

    def statistic(self, counts: ClassCounts) -> Integers:
        return np.concatenate([counts.ones.ravel(), counts.sizes])

    def spread(self, ones: int, d: int, neighbours: Neighbours) -> tuple[int, int]:
        changed = count_sensitivity(ones, neighbours)
        return changed, changed

    def of_noisy(self, statistic: Floats) -> Floats:
        return np.asarray(self.of(statistic[:-2].reshape(2, -1), statistic[-2:]))


def _signed_sum(f: Callable[[Any], Any], ones: Any, sizes: Any) -> Any:
    """n IG for f(m) = m ln m: cells less rows and columns, plus the whole."""
    zeros = sizes[:, None] - ones
    by_class = f(sizes).sum() - f(sizes.sum())
    return (f(ones) + f(zeros)).sum(axis=0) - f(ones.sum(axis=0)) - f(zeros.sum(axis=0)) - by_class


def _phi(m: Any) -> Any:
    return np.rint(GAIN_UNITS * scipy.special.xlogy(m, m)).astype(np.int64)


def psi(m: int) -> float:
    """(m + 1) ln(m + 1) - m ln m, written so that nothing cancels."""
    return math.log(m + 1) + m * math.log1p(1 / m) if m > 0 else 0.0


def _enlarged(bound: int | None) -> float:
    """psi(B) + ln 2 / psi(B): for tables of any size."""
    most = psi(USUAL_RECORDS if bound is None else bound)
    return most + math.log(2) / most


def _units_above(nats: float) -> int:
    return math.ceil(GAIN_UNITS * nats * (1 + 1e-12))


SCORES: dict[str, Score] = {
    score.name: score
    for score in (TotalCount(), DifferenceCount(), PurityIndex(), InformationGain())
}
