"""Weights of evidence: an additive model from one table of noisy counts, for few records.

Noise of objective perturbation has the size of a record in every coordinate, and the inverse of the
curvature makes it larger still along columns that are related. At a low signal less is more: of
each level of each column the records of either class are counted, and a level's weight is what the
classes say of it by itself, as in naive Bayes, shrunk by the noise that is known.

**Privacy.** Columns are all levels, so that a record has one level in each of d columns. Released
are two sums over records, by discrete Laplace noise, so that their epsilons add up:

- the *balance*, the records of class 1 minus those of class 0: a record adds 1 or -1, so that it
  changes by at most 1 (add or remove) or 2 (replace);
- the *counts* of records by class and level: a record adds 1 to d of them, whatever its class, so
  that their l1 sensitivity is d (add or remove) or 2 d (replace).

Everything else is a function of these, of the public number n of records and of the domain.

**Share of class 1.** With k_c levels, noise of variance v in a count, and B noise of variance u in
the balance, column c says of the balance what its counts add up to, with a variance of 2 k_c v. The
estimates are combined by their precision, and the log odds are shrunk towards 0.

**Weights.** Of a column, T is the noisy counts of both classes, moved to the nearest numbers of at
least 0 with sum n, and D those of class 1 minus p T', p the share of class 1 and T' as released,
less their mean. With H = p (1 - p) T, D is about H w plus errors of variance

    V = v (p^2 + (1 - p)^2) + p (1 - p) T,

of noise and of sampling. Weights are expected to be normal around 0, with variance SPREAD K, where
K is exp(-abs(i - j) / ALIKE) for two cells of a number, and the identity for categories and missing
values. Their mean given D is (K^-1 / SPREAD + H V^-1 H)^-1 H V^-1 D. The inverse of K is known, and
is 0 but for neighbouring cells, so that time and memory grow with the number of levels, and not
with its square. Weights are centred over records, and multiplied by DAMPED: columns repeat each
other, which naive Bayes does not know. A calibration (`calibration`) finds out by how much.

**Intercept.** Scores of records are taken to be normal, with a variance that is the sum of those of
the columns, divided by DAMPED. The intercept is where their mean probability is p.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationError
from privfit.base.rounding import BELOW
from privfit.base.typing import Floats
from privfit.domains import Domain
from privfit.domains.columns import Column
from privfit.linear.calibration import Facts, Prior
from privfit.linear.levels import log_odds
from privfit.linear.recipe import LEAST_EPSILON, Recipe
from privfit.linear.uncertainty import NODES, SHARES
from privfit.objectives import LinearObjective
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Reals

__all__ = ["Evidence"]

BALANCE = 40.0  # for n epsilon / changes of so much
LEAST_BALANCE, MOST_BALANCE = 1 / 64, 0.5  # of epsilon
SPREAD = 0.7  # the variance of weights before anything is known
ALIKE = 4.0  # cells of a number over which its weights fall to 1/e
DAMPED = 0.6  # of the sum of all columns' log odds
SHARE = 0.15  # of the budget of a fit, for a calibration
SLOPE_ERROR, INTERCEPT_ERROR = 0.8, 0.25  # before it
TELLING = 200.0  # n epsilon / changes from which a calibration has its say
HALVINGS = 50  # in which an intercept is found
ROUNDED = 20  # bits of a weight: libraries of linear algebra differ in the last ones


@dataclass(frozen=True, repr=False)
class Evidence(Settings):
    """Settings of weights of evidence, for the parameter `solver`: naive Bayes, shrunk.

    See Also
    --------
    LogisticRegression : A classifier that takes these settings.
    BernoulliNB : Naive Bayes as it is.

    Notes
    -----
    Released: the noisy difference of the classes, and the noisy counts of each level by class.
    Cost: two pure releases, which add up to epsilon; a delta buys names of categories, if there are
    any to buy, and nothing else. Columns are coded first, by
    ``Coding(family="decades")``.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, Numeric, Schema
    >>> x = np.random.default_rng(0).uniform(0, 10, 500)
    >>> model = LogisticRegression(
    ...     1.0, domain=Schema({"x": Numeric(0, 10)}), classes=[False, True], solver="evidence"
    ... )
    >>> model.fit({"x": x}, x > 6).predict({"x": [2.0, 9.0]}).tolist()
    [False, True]
    """

    leaves_delta: ClassVar[bool] = True
    calibration_share: ClassVar[float] = SHARE

    def score_prior(self, facts: Facts) -> Prior:
        """What a calibration expects of the scores of such a model.

        Parameters
        ----------
        facts : Facts
            What is public of them.

        Returns
        -------
        Prior
            A slope of about 1, since weights are damped already; the surer, the larger the noise of
            what a calibration buys.
        """
        per_change = known_size(facts.size) * facts.mu / facts.neighbours.changes
        told = min(1.0, per_change / TELLING)
        return Prior(1.0, told * SLOPE_ERROR, told * INTERCEPT_ERROR)

    def following(self, recipe: Recipe) -> Evidence:
        """These settings, whatever the recipe.

        Parameters
        ----------
        recipe : Recipe
            The rule for the whole budget of a fit.

        Returns
        -------
        Evidence
            The settings to use.
        """
        return self

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective = task.objective
        if not isinstance(objective, LinearObjective) or objective.loss != "logistic":
            raise DeclarationError(
                "solver 'evidence' is for log odds; pass LogisticRegression, or another solver"
            )
        if not objective.fit_intercept:
            raise DeclarationError(
                "fit_intercept (False) must be True for solver 'evidence', whose weights have no "
                "level of their own; leave it out"
            )
        _check_levels(objective.domain)
        self.size(task)
        if task.epsilon < LEAST_EPSILON:
            raise DeclarationError(
                f"epsilon ({task.epsilon!r}) is too small for counts of all levels; pass a larger "
                "epsilon, or solver='majority'"
            )

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Release the balance and the counts, and report the model that follows from them."""
        size, changes = self.size(run), run.neighbours.changes
        columns = run.objective.domain.declared_columns
        epsilon = calibrate(run.share, epsilon=run.whole.epsilon, delta=0.0)
        share = _balance(size, epsilon, changes)
        first, rest = share * epsilon, (1 - share) * epsilon * BELOW
        run.set_aside(Event("pure", first), Event("pure", rest))
        lower, upper = run.objective.label_counts().tolist()
        balance = DiscreteLaplace(first, changes)
        noisy = int(run.release(balance, np.array([upper - lower]))[0])
        counting = DiscreteLaplace(rest, changes * len(columns))
        counts = run.release(counting, run.objective.level_counts()).astype(np.float64)
        variance = 2 * counting.scale**2
        odds = _odds(noisy, 2 * balance.scale**2, counts, variance, columns, size)
        weights, variances = zip(*_weights(counts, variance, columns, odds, size), strict=True)
        intercept = _intercept(odds, sum(variances) / DAMPED)
        model = np.concatenate([*weights, [intercept]])
        model = np.ldexp(np.rint(np.ldexp(model, ROUNDED)), -ROUNDED)
        run.report(model[None])
        run.note(balance=share)
        return run.path()


def _check_levels(domain: Domain) -> None:
    columns = domain.declared_columns
    plain = [name for name, one in columns.items() if one.coded_range is not None]
    if plain or not columns:
        raise DeclarationError(
            f"domain ({plain or type(domain).__name__}) must be a Schema of levels for solver "
            "'evidence'; pass a Schema, and leave coding out"
        )


def _balance(size: int, epsilon: float, changes: int) -> float:
    """The part of an epsilon that buys the balance."""
    return min(max(BALANCE * changes / (size * epsilon), LEAST_BALANCE), MOST_BALANCE)


def _groups(columns: Mapping[str, Column]) -> Iterator[tuple[Any, slice]]:
    """Each column and its levels."""
    end = 0
    for column in columns.values():
        first, end = end, end + column.width
        yield column, slice(first, end)


def _odds(
    balance: float,
    its_variance: float,
    counts: Floats,
    variance: float,
    columns: Mapping[str, Column],
    size: int,
) -> float:
    """The log odds of class 1, by the balance and by what the counts of each column add up to."""
    differences = counts[1] - counts[0]
    precision, found = 1 / its_variance, balance / its_variance
    for column, levels in _groups(columns):
        own = 1 / (2 * column.width * variance)
        precision, found = precision + own, found + own * float(differences[levels].sum())
    return log_odds(found / precision, math.sqrt(1 / precision), size)


def _weights(
    counts: Floats, variance: float, columns: Mapping[str, Column], odds: float, size: int
) -> Iterator[tuple[Floats, float]]:
    """The weights of each column's levels, and their variance over records."""
    p = 1 / (1 + math.exp(-odds))
    h, noise = p * (1 - p), (p**2 + (1 - p) ** 2) * variance
    both = counts.sum(axis=0)
    above = counts[1] - p * both
    for column, levels in _groups(columns):
        totals = _nearest(both[levels], size)
        curvature, rest = h * totals, above[levels] - above[levels].mean()
        told = curvature / (noise + h * totals)
        diagonal, beside = _precision(column)
        found = _solved(diagonal / SPREAD + told * curvature, beside / SPREAD, told * rest)
        centred = DAMPED * (found - totals @ found / size)
        yield centred, float(totals @ np.square(centred)) / size


def _intercept(odds: float, variance: float) -> float:
    """Where normal scores of this variance have the mean probability that belongs to log odds."""
    scores, share = math.sqrt(variance) * NODES, scipy.special.expit(odds)
    reach = abs(odds) + 4 * math.sqrt(variance) + 1
    low, high = -reach, reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = SHARES @ scipy.special.expit(scores + middle) < share
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def _precision(column: Any) -> tuple[Floats, Floats]:
    """The inverse of K: its diagonal (levels,), and what is beside it (levels - 1,).

    Cells of a number are a chain: the next is r times the one before, and a part of its own.
    """
    is_next = np.zeros(column.width - 1, dtype=np.bool_)
    if column.holds_numbers:
        is_next[: column.width - column.missing - 1] = True
    r = math.exp(-1 / ALIKE)
    own = 1 / (1 - r**2)
    diagonal = np.append(1.0, np.where(is_next, own, 1.0))
    diagonal[:-1] += np.where(is_next, r**2 * own, 0.0)
    return diagonal, np.where(is_next, -r * own, 0.0)


def _solved(diagonal: Floats, beside: Floats, right: Floats) -> Floats:
    """The solution of equations whose matrix has this diagonal, and `beside` on either side.

    It is positive definite. One loop forth and one back: a column of one level is no special case.
    """
    pivots, found, off = diagonal.tolist(), right.tolist(), beside.tolist()
    for i, one in enumerate(off):
        ratio = one / pivots[i]
        pivots[i + 1] -= ratio * one
        found[i + 1] -= ratio * found[i]
    found[-1] /= pivots[-1]
    for i in range(len(off) - 1, -1, -1):
        found[i] = (found[i] - off[i] * found[i + 1]) / pivots[i]
    return np.array(found)


def _nearest(counts: Floats, total: int) -> Floats:
    """The numbers of at least 0 with this sum that are nearest to noisy counts."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
