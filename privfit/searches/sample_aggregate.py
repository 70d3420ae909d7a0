"""Sample and aggregate, with any estimator; and the noisy count of the classes.

`gupt` (Smith 2011; Mohan, Thakurta, Shi, Song, Culler: GUPT, SIGMOD 2012) splits the records into
disjoint blocks, computes an ordinary statistic of each block, clips it to public bounds, and
releases the noisy mean. The statistic is never looked into, so it may be anything: scikit-learn's
estimators, or a function of one's own (`aggregate`).

**Sensitivity.** Each record draws its block by itself: all draws are independent and alike. Let D
and D' be neighbours, in the order of their records but for the one that was added, removed or
replaced. Couple their draws: a record of both gets the same block in both, and so does the one
that replaced another. Each side has the distribution that it should have, whatever the order in
which records were packed. Given the coupled draws, all blocks but one hold the same records in the
same order, so that their statistics agree (or agree in distribution, if they flip coins); one
block's clipped and rounded statistic moves within the bounds. Hence the sum over blocks moves by
at most the diameter of the bounds, under both adjacencies; and a mixture over the draws of
mechanisms that are private for each draw is private. The number of blocks is public.

=============  =======================  =========================
bounds         l1 diameter              l2 diameter
=============  =======================  =========================
`Box`          sum of the widths        root of their squares' sum
`L1Ball(r)`    2 r                      2 r
`L2Ball(r)`    2 sqrt(d) r              2 r
=============  =======================  =========================

Bounds clip and round as domains do: towards zero, so that what lay in a ball still does. A block
whose statistic fails - an exception, a value that is not a number, a wrong shape - counts as a
fixed public value. No failure and no warning of a block is ever seen.

`majority` releases the number of records of class 1: l1 sensitivity 1 where a record is replaced,
since the other class is the rest of a public number; under add_remove it releases both numbers,
of which one record changes one by 1.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels.random import BitSource
from privfit.base.cautions import caution
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_sparse
from privfit.domains import Box, Domain, Grid, L1Ball, L2Ball
from privfit.domains.frames import column_names, columns_of
from privfit.domains.reading import objects
from privfit.objectives import CentersObjective, LinearObjective
from privfit.objectives.coding import Compact
from privfit.privacy.budget_noise import noise_for
from privfit.privacy.ledger import Budget, Grant, Ledger, Release, reserve_from
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.runs.paths import Conduct, Generation, Path, check_counts, public_size
from privfit.runs.spaces import Reals

__all__ = ["METHODS", "Aggregated", "Gupt", "Majority", "aggregate", "gupt", "majority"]

Callback: TypeAlias = Callable[[Generation], object] | None
Statistic: TypeAlias = Callable[..., ArrayLike]

LLOYD_STEPS = 10  # of a block that is clustered
FINEST = Grid(a=14)  # bits of a block's clipped statistic


# -------------------------------------------------------------------------------- blocks and bounds


def blocks_by_rule(n: int, budget: Budget, least: int) -> int:
    """2 sqrt(n / epsilon) blocks, of at least `least` records on average.

    The noise of a mean over k blocks falls as 1 / (k epsilon), the bias of a block's statistic
    grows as k / n. On Adult half as many blocks were worse, at epsilon 0.1 and 1, and twice as
    many no better at 1.
    """
    return max(1, min(round(2 * math.sqrt(n / budget.epsilon)), n // least))


def diameters(bounds: Domain) -> tuple[int, float]:
    """How far two points within the bounds can be apart in l1 and in l2, in record units."""
    return bounds.l1_diameter, bounds.l2_diameter


def block_sums(
    parts: Sequence[Any],
    statistic: Statistic,
    blocks: int,
    bounds: Domain,
    fallback: Floats,
    source: BitSource,
) -> Integers:
    """int64 (m,): the sum over blocks of their clipped statistics, in units of the bounds."""
    total = np.zeros(bounds.width, dtype=np.int64)
    for rows in _partition(_count(parts[0]), blocks, source):
        value = _attempt(statistic, [(part, rows) for part in parts], fallback)
        total += bounds.quantise(value[None])[0]
    return total


def _count(part: Any) -> int:
    return len(part) if isinstance(part, list) else int(part.shape[0])


def _rows(part: Any, rows: Integers) -> Any:
    """Some rows; those of a list become an array by themselves, whatever the other rows are."""
    if isinstance(part, list):
        return np.asarray([part[row] for row in rows.tolist()])
    return part[rows]


def _partition(n: int, blocks: int, source: BitSource) -> Iterator[Integers]:
    """The records of each block, in order; each record draws its block by itself."""
    drawn = np.fromiter((source.draw_below(blocks) for _ in range(n)), dtype=np.int64, count=n)
    order = np.argsort(drawn, kind="stable")
    ends = np.searchsorted(drawn[order], np.arange(blocks + 1))
    return (order[first:last] for first, last in pairwise(ends))


def _attempt(
    statistic: Statistic, parts: Sequence[tuple[Any, Integers]], fallback: Floats
) -> Floats:
    """The statistic of a block, or the fallback: a failure must not be seen."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            block = [_rows(part, rows) for part, rows in parts]
            value = np.array(statistic(*block), dtype=np.float64).ravel()
    except Exception:
        return fallback
    return value if value.shape == fallback.shape and np.isfinite(value).all() else fallback


def _as_bounds(bounds: Any, width: int | None) -> Domain:
    """Declared bounds of a vector: a domain, or a pair of numbers or of vectors."""
    if isinstance(bounds, Domain):
        return bounds if width is None else bounds.bind(width)
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise TypeError(
            f"bounds ({type(bounds).__name__}) must be a pair (low, high), a Box, an L1Ball or an "
            "L2Ball; pass one of them"
        )
    low, high = bounds
    box = Box(low, high, grid=FINEST)
    return box.bind(width or box.n_features or 1)


def _mean(noisy: Integers, blocks: int, bounds: Domain) -> Floats:
    """The noisy mean over blocks, brought back within the bounds."""
    mean = noisy / blocks * bounds.record_units()
    return np.asarray(bounds.quantise(mean[None])[0] * bounds.record_units())


# ---------------------------------------------------------------------------------------- aggregate


@dataclass(frozen=True, eq=False)
class Aggregated:
    """What `aggregate` released: the noisy mean of the blocks, and what it cost."""

    answer: Floats
    release: Release


def aggregate(
    records: Any,
    statistic: Statistic,
    bounds: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    blocks: int | None = None,
    adjacency: str = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> Aggregated:
    """Any statistic of private records: its noisy mean over disjoint blocks of them.

    Parameters
    ----------
    records : array or tuple of arrays
        Private; a row, or the rows of one number in all arrays, is a record.
    statistic : callable (rows, ...) -> number or vector
        Of some of the records, given as arrays like `records`. It must depend on its arguments
        alone, and neither print nor keep anything. Where it fails, the middle of the bounds counts.
        Try it on public data first: what goes wrong here does so in silence.
    bounds : pair (low, high), Box, L1Ball or L2Ball
        Public bounds of the statistic, to which it is clipped; they set the noise.
    epsilon, delta : float
        The budget.
    blocks : int, optional
        By default a public rule in (n, epsilon): see `blocks_by_rule`.
    adjacency, n_public, ledger, random_state
        As for the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.searches.sample_aggregate import aggregate
    >>> ages = np.random.default_rng(0).gamma(9.0, 5.0, 100_000)
    >>> found = aggregate(ages, np.median, (0, 120), epsilon=1.0, random_state=0)
    >>> bool(42 < found.answer[0] < 45)
    True
    """
    parts = _tables(records)
    if not callable(statistic):
        raise TypeError(
            f"statistic ({type(statistic).__name__}) must be a function; pass statistic(rows)"
        )
    within, settings = _as_bounds(bounds, None), Gupt(blocks=blocks)
    rows = SimpleNamespace(n_records=_count(parts[0]))
    size = public_size(rows, adjacency, n_public)
    budget = Budget(epsilon, delta)
    noise = noise_for(budget, *diameters(within))
    count = _block_count(settings, size, budget, least=1)
    source = BitSource.of(random_state)
    caution(epsilon, delta, source, rows, adjacency, n_public)
    grant = reserve_from(ledger, epsilon, delta, "aggregate", adjacency)
    grant.plan(noise.event)
    middle = np.asarray((within.low + within.high) / 2)
    total = block_sums(parts, statistic, count, within, middle, source)
    answer = _mean(grant.release(noise, total, source), count, within)
    shown = {"blocks": count, "bounds": within}
    return Aggregated(answer, grant.close(adjacency, within, shown, {"answer": answer}))


def _tables(records: Any) -> tuple[Any, ...]:
    """Arrays or lists whose rows can be picked, all with as many."""
    tables = records if isinstance(records, tuple) else (records,)
    tables = tuple(map(_table, tables))
    if not tables or any(table is None for table in tables):
        raise ValueError("records must be an array, or a tuple of arrays; pass records as rows")
    if len(set(map(_count, tables))) != 1:
        raise ValueError("records must be arrays with equally many rows; pass one row a record")
    return tables


def _table(records: Any) -> Any:
    """An array of numbers or a list of rows, None of neither.

    A type that numpy found for all rows together would tell each block of the rows of others.
    """
    if is_sparse(records):
        return records.tocsr()
    if isinstance(records, list):
        return records
    if type(records).__module__.partition(".")[0] in ("polars", "pyarrow"):
        names = column_names(records)
        columns = [records] if names is None else columns_of(records, names)[1]
        cells = [list(objects(column)) for column in columns]
        return cells[0] if names is None else list(zip(*cells, strict=True))
    table = np.asarray(records)
    if table.ndim == 0:
        return None
    return table if table.dtype.kind in "biufcmMV" else table.tolist()


# --------------------------------------------------------------------------------------------- gupt


@dataclass(frozen=True)
class Gupt:
    """Settings of `gupt`; what is left out takes our default, or the paper's.

    Parameters
    ----------
    estimator : object with fit, optional
        Fitted to each block, a fresh copy each time. For linear models it sees columns coded in
        [-1/2, 1/2] and labels 0 and 1, and must give `coef_` and, where an intercept is fitted,
        `intercept_`; for k-means it must
        give `cluster_centers_`. By default scikit-learn's LogisticRegression or LinearSVC, and
        Lloyd's steps from public centres.
    blocks : int, optional
        By default a public rule in (n, epsilon): see `blocks_by_rule`; the paper's is n^0.4.
    bounds : pair (low, high), Box, L1Ball or L2Ball, optional
        To which the weights of a block are clipped, those of columns in [-1/2, 1/2] and of an
        intercept coded as 1/2, or all the centres of a block in a row. By default the ball of
        radius 20 in l1 for a pure budget, of radius 5 in l2 otherwise; centres lie in the domain.
    paper : bool
        The publication's number of blocks and pure budget, whatever delta is, and bounds by
        coordinate, (-10, 10) for weights of coded columns: [-5, 5] of columns in [-1, 1].
        Repaired: records draw their blocks independently, so that adding one shifts no other; the
        noise is discrete, on exact sums; a block that fails counts as a public value.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Gupt, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = Gupt(blocks=20)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    estimator: Any = None
    blocks: int | None = None
    bounds: Any = None
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "blocks")
        if self.bounds is not None:
            _as_bounds(self.bounds, None)
        if self.estimator is not None and not callable(getattr(self.estimator, "fit", None)):
            raise TypeError(
                f"estimator ({type(self.estimator).__name__}) must have a method fit; pass one "
                "such as scikit-learn's LogisticRegression()"
            )

    def budget_of(self, budget: Budget) -> Budget:
        """What is spent: as published there is no delta."""
        return Budget(budget.epsilon) if self.paper else budget

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `gupt` would refuse; nothing is drawn."""
        task = _task(objective, self, budget, np.random.default_rng(0))
        noise_for(self.budget_of(budget), *diameters(task.bounds))
        _block_count(self, size, budget, task.least)
        if self.estimator is not None:
            task.rehearse()


def gupt(
    objective: LinearObjective | CentersObjective,
    space: Reals,
    settings: Gupt,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Fit each block by itself and release the noisy mean of the clipped models.

    Released: one model. Cost: one release, pure or Gaussian, of the grant's budget. The space
    bounds the weights of coded columns, or the centres.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    task = _task(objective, settings, grant.budget, conduct.coins)
    noise = noise_for(settings.budget_of(grant.budget), *diameters(task.bounds), conduct.share)
    blocks = _block_count(settings, conduct.size, grant.budget, task.least)
    conduct.set_aside(1, noise.event)
    conduct.note(blocks=blocks, bounds=task.bounds, estimator=task.named)
    parts = [part for part in objective.decoded() if part is not None]
    total = block_sums(parts, task.statistic, blocks, task.bounds, task.fallback, conduct.source)
    mean = _mean(conduct.release(noise, total), blocks, task.bounds)
    conduct.tell(task.model(np.clip(mean, np.ravel(space.low), np.ravel(space.high)))[None])
    return conduct.path()


def _block_count(settings: Gupt, size: int | None, budget: Budget, least: int) -> int:
    if settings.blocks is not None:
        return settings.blocks
    if size is None:
        raise ValueError(
            "n_public must be given under adjacency='add_remove', where the number of records is "
            "private; pass a public estimate, or blocks="
        )
    return max(1, round(size**0.4)) if settings.paper else blocks_by_rule(size, budget, least)


def _task(
    objective: Any, settings: Gupt, budget: Budget, coins: np.random.Generator
) -> _LinearTask | _CentersTask:
    if isinstance(objective, LinearObjective):
        return _LinearTask(objective, settings, budget)
    if isinstance(objective, CentersObjective):
        return _CentersTask(objective, settings, coins)
    raise ValueError(
        f"gupt fits linear models and centres, not a {type(objective).__name__}; pass records and "
        "a statistic to aggregate()"
    )


class _LinearTask:
    """What a block is asked: the weights of coded columns, and of the intercept 1/2 if any."""

    least = 20  # records of a block: fewer are often of one class

    def __init__(self, objective: LinearObjective, settings: Gupt, budget: Budget) -> None:
        width, bounds = objective.n_weights, settings.bounds
        if bounds is None and settings.paper:
            bounds = (-10.0, 10.0)
        elif bounds is None:
            bounds = L2Ball(5.0, grid=FINEST) if budget.delta else L1Ball(20.0, grid=FINEST)
        self.bounds, self.fallback = _as_bounds(bounds, width), np.zeros(width)
        self._intercept, self._domain = objective.fit_intercept, objective.domain
        self._coding = Compact(objective.domain, intercept=self._intercept)
        self._estimator = settings.estimator or _plain_estimator(objective.loss, self._intercept)
        self.named = self._estimator

    def statistic(self, records: Any, labels: Integers) -> ArrayLike:
        fitted = copy.deepcopy(self._estimator).fit(self._coding.records(records), labels)
        if not self._intercept:
            return np.ravel(fitted.coef_)
        return np.append(np.ravel(fitted.coef_), 2 * np.ravel(fitted.intercept_))

    def model(self, mean: Floats) -> Floats:
        return self._coding.weights(mean)

    def rehearse(self) -> None:
        made_up, labels = self._domain.points(40, np.random.default_rng(0)), np.arange(40) % 2
        _rehearse(self, "coef_ (1, d) and intercept_ (1,)", made_up, labels)
        if not self._intercept and getattr(self._estimator, "fit_intercept", False):
            raise ValueError(
                "estimator must not fit an intercept, which the model does not have; pass one with "
                "fit_intercept=False"
            )


def _plain_estimator(loss: str, intercept: bool) -> Any:
    """scikit-learn's classifier of this loss; of 0.1, 1 and 10 (1 and 4) C was best for Adult."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if loss == "logistic":
        return LogisticRegression(C=10.0, solver="liblinear", tol=1e-3, fit_intercept=intercept)
    return LinearSVC(C=4.0, dual=False, tol=1e-3, fit_intercept=intercept)


class _CentersTask:
    """What a block is asked: k centres in a row, each in the place of the public one it matches.

    Without a common order a mean over blocks would mix the clusters.
    """

    def __init__(
        self, objective: CentersObjective, settings: Gupt, coins: np.random.Generator
    ) -> None:
        k, d = objective.n_clusters, objective.n_features
        self.least = 10 * k
        self._shape, self._domain, self._snap = (k, d), objective.domain, objective.snap
        self.references = _spread_out(objective.domain, k, coins)
        self.fallback = self.references.ravel()
        bounds = settings.bounds
        self.bounds = (
            objective.domain.repeated(k, FINEST) if bounds is None else _as_bounds(bounds, k * d)
        )
        self._estimator = settings.estimator
        self.named = settings.estimator or f"{LLOYD_STEPS} of Lloyd's steps"

    def statistic(self, records: Floats) -> ArrayLike:
        if self._estimator is None:
            return lloyd_steps(records, self.references)
        fitted = copy.deepcopy(self._estimator).fit(records)
        centers = np.asarray(fitted.cluster_centers_, dtype=np.float64)
        squares = scipy.spatial.distance.cdist(self.references, centers, "sqeuclidean")
        return centers[scipy.optimize.linear_sum_assignment(squares)[1]]

    def model(self, mean: Floats) -> Floats:
        return np.asarray(self._snap(mean.reshape(self._shape)))

    def rehearse(self) -> None:
        made_up = self._domain.points(20 * self._shape[0], np.random.default_rng(0))
        _rehearse(self, "cluster_centers_ (k, d)", made_up)


def _rehearse(task: _LinearTask | _CentersTask, attributes: str, *made_up: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value: Any = np.asarray(task.statistic(*made_up), dtype=np.float64)
    except Exception as error:
        raise ValueError(f"estimator fails on made-up records: {error}; pass another") from None
    if value.size != task.fallback.size:
        raise ValueError(
            f"estimator must have {attributes} once it is fitted; pass one for this problem"
        )


def _spread_out(domain: Domain, k: int, coins: np.random.Generator) -> Floats:
    """k public points far from each other: the means of points drawn from the domain."""
    points = domain.points(max(500, 20 * k), coins)
    return lloyd_steps(points, points[:k])


def lloyd_steps(records: Floats, centers: Floats, steps: int = LLOYD_STEPS) -> Floats:
    """Centres after so many of Lloyd's steps; a centre without records stays where it is."""
    for _ in range(steps):
        nearest = scipy.spatial.distance.cdist(records, centers, "sqeuclidean").argmin(axis=1)
        member = nearest == np.arange(len(centers))[:, None]
        count = member.sum(axis=1, keepdims=True)
        centers = np.where(count > 0, member @ records / np.maximum(count, 1), centers)
    return centers


# ----------------------------------------------------------------------------------------- majority


@dataclass(frozen=True)
class Majority:
    """Settings of `majority`, of which there are none.

    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X, y = np.zeros((1000, 1)), np.arange(1000) < 700
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[False, True], solver="majority")
    >>> bool(model.fit(X, y).predict([[0.5]])[0])
    True
    """

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `majority` would refuse; nothing is drawn."""
        _check_labels(objective)
        DiscreteLaplace(budget.epsilon, 1)


def majority(
    objective: LinearObjective,
    space: Reals,
    settings: Majority,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """The model that knows the classes alone: what any other has to beat.

    Released: the noisy number of records of class 1, and of class 0 under add_remove, where the
    sum is private. All weights are 0 and the intercept is the log-odds of class 1, or for other
    losses its share less that of class 0. Cost: one pure release of the grant's epsilon.
    """
    _check_labels(objective)
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    noise = DiscreteLaplace(conduct.plan_one("pure"), 1)
    counts = objective.label_counts()
    if conduct.adjacency == "replace":
        n = objective.n_records
        positive = conduct.release(noise, counts[1:])[0]
        negative = n - min(max(positive, 0), n)
    else:
        negative, positive = conduct.release(noise, counts)
    # One record more of each class keeps the odds finite.
    ones, zeros = (max(float(count), 0.0) + 1 for count in (positive, negative))
    logistic = objective.loss == "logistic"
    w = np.zeros(objective.n_features + 1)
    w[-1] = math.log(ones / zeros) if logistic else (ones - zeros) / (ones + zeros)
    conduct.tell(space.on_grid_of(objective).snap(w[None]))
    return conduct.path()


def _check_labels(objective: Any) -> None:
    if not isinstance(objective, LinearObjective):
        raise ValueError(
            f"majority needs labelled records, not a {type(objective).__name__}; pass a "
            "LinearObjective"
        )
    if not objective.fit_intercept:
        raise ValueError(
            "majority releases nothing but an intercept; pass fit_intercept=True, or another solver"
        )


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "gupt": (Gupt, gupt),
    "majority": (Majority, majority),
}
