"""Sample and aggregate, with any estimator.

`Gupt` (Smith 2011; Mohan, Thakurta, Shi, Song, Culler: GUPT, SIGMOD 2012) splits the records into
disjoint blocks, computes an ordinary statistic of each block, clips it to public bounds, and
releases the noisy mean. The statistic is a black box, so it may be anything: scikit-learn's
estimators, or a user-defined function (`aggregate`).

**Sensitivity.** Each record draws its block by itself: all draws are independent and identically
distributed. Let D and D' be neighbours, in the order of their records except for the one that was
added, removed or replaced. Couple their draws: a record of both gets the same block in both, and so
does a record and its replacement. Each side has the right distribution, whatever the order in which
records were packed. Given the coupled draws, all blocks but one contain the same records in the
same order, so that their statistics agree (or agree in distribution, if they are random); one
block's clipped and rounded statistic moves within the bounds. Hence the sum over blocks moves by at
most the diameter of the bounds, under both adjacencies; and a mixture, over the draws, of
mechanisms that are private for each draw is private. The number of blocks is public.

=============  =======================  =========================
bounds         l1 diameter              l2 diameter
=============  =======================  =========================
`Box`          sum of the widths        root of their squares' sum
`L1Ball(r)`    2 r                      2 r
`L2Ball(r)`    2 sqrt(d) r              2 r
=============  =======================  =========================

Bounds clip and round as domains do: towards zero, so that a point in a ball stays in it. A block
whose statistic fails (an exception, a value that is not a number, a wrong shape) counts as a fixed
public value. Failures and warnings of blocks are never shown.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError, DeclarationTypeError, InputError
from privfit.base.typing import Array, Coins, Floats, Integers, SparseRows
from privfit.base.validation import is_sparse
from privfit.domains import Box, Domain, Grid, L1Ball, L2Ball
from privfit.domains.frames import column_names, columns_of
from privfit.domains.reading import objects
from privfit.objectives import CentersObjective, LinearObjective
from privfit.objectives.coding import Compact
from privfit.privacy.budget_noise import noise_for
from privfit.privacy.ledger import Budget, Ledger, Release
from privfit.privacy.neighbours import Adjacency
from privfit.runs.paths import Path
from privfit.runs.payment import Terms
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings, check_counts
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Reals

__all__ = ["Aggregated", "Gupt", "aggregate"]

Bounds: TypeAlias = Domain | Sequence[ArrayLike]  # a domain, or low and high
Statistic: TypeAlias = Callable[..., ArrayLike]
Table: TypeAlias = Array | SparseRows | list[object]  # rows that can be picked


class Estimator(Protocol):
    """An object that can be fitted to a block; `fit` returns an object with fitted attributes."""

    @property
    def fit(self) -> Callable[..., object]:
        """Fit to records, and labels if there are any."""


LLOYD_STEPS = 10  # of a block that is clustered
FINEST = Grid(a=14)  # bits of a block's clipped statistic


# -------------------------------------------------------------------------------- blocks and bounds


def blocks_by_rule(n: int, budget: Budget, least: int) -> int:
    """2 sqrt(n / epsilon) blocks, of at least `least` records on average.

    The noise of a mean over k blocks falls as 1 / (k epsilon), and the bias of a block's statistic
    grows as k / n. On Adult half as many blocks were worse, at epsilon 0.1 and 1, and twice as many
    no better at 1.
    """
    return max(1, min(round(2 * math.sqrt(n / budget.epsilon)), n // least))


def diameters(bounds: Domain) -> tuple[int, float]:
    """The largest l1 and l2 distances between two points within the bounds, in record units."""
    return bounds.l1_diameter, bounds.l2_diameter


def block_sums(
    parts: Sequence[Table],
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


def _count(part: Table) -> int:
    return len(part) if isinstance(part, list) else int(part.shape[0])


def _rows(part: Table, rows: Integers) -> Array | SparseRows:
    """Some rows; those of a list become an array regardless of the other rows."""
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
    statistic: Statistic, parts: Sequence[tuple[Table, Integers]], fallback: Floats
) -> Floats:
    """The statistic of a block, or the fallback: a failure must not be visible."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            block = [_rows(part, rows) for part, rows in parts]
            value = np.array(statistic(*block), dtype=np.float64).ravel()
    except Exception:
        return fallback
    return value if value.shape == fallback.shape and np.isfinite(value).all() else fallback


def _as_bounds(bounds: Bounds, width: int | None) -> Domain:
    """Declared bounds of a vector: a domain, or a pair of numbers or of vectors."""
    if isinstance(bounds, Domain):
        return bounds if width is None else bounds.bind(width)
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise DeclarationTypeError(
            f"bounds ({type(bounds).__name__}) must be a pair (low, high), a Box, an L1Ball or an "
            "L2Ball; pass one of them"
        )
    low, high = bounds
    box = Box(low, high, grid=FINEST)
    return box.bind(width or box.n_features or 1)


def _mean(noisy: Integers, blocks: int, bounds: Domain) -> Floats:
    """The noisy mean over blocks, projected to the bounds."""
    mean = noisy / blocks * bounds.record_units()
    return np.asarray(bounds.quantise(mean[None])[0] * bounds.record_units())


# ---------------------------------------------------------------------------------------- aggregate


@dataclass(frozen=True, eq=False)
class Aggregated:
    """The result of `aggregate`: the noisy mean of the blocks, and its release."""

    answer: Floats
    release: Release


def aggregate(
    records: object,
    statistic: Statistic,
    bounds: Bounds,
    epsilon: float,
    delta: float = 0.0,
    *,
    blocks: int | None = None,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    random_state: object = None,
) -> Aggregated:
    """Release any statistic of private records: its noisy mean over disjoint blocks.

    Parameters
    ----------
    records : array or tuple of arrays
        Private records: the rows of an array, or the rows of equal number of all arrays.
    statistic : callable (rows, ...) -> float or array of shape (m,)
        Computes the statistic of some records, passed as arrays like `records`. It must depend on
        its arguments alone, and neither print nor store anything. If it fails, the middle of the
        bounds is used. Try it on public data first: here it fails silently.
    bounds : pair (low, high), Box, L1Ball or L2Ball
        Public bounds of the statistic, to which it is clipped; they determine the noise.
    epsilon : float
        The budget.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy.
    blocks : int or None, default=None
        Number of blocks; by default a public rule in (n, epsilon): 2 sqrt(n / epsilon).
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records; needed under 'add_remove' if `blocks` is
        not given.
    ledger : Ledger or None, default=None
        The ledger to charge; by default a new one.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    Aggregated
        Has the noisy mean as `answer`, and its `release`.

    See Also
    --------
    Gupt : The same for models.

    Notes
    -----
    Released: one noisy mean. Cost: one release with discrete Laplace noise, or discrete Gaussian
    noise if delta > 0, for the diameter of the bounds divided by the number of blocks.

    References
    ----------
    A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: privacy preserving data analysis made
    easy", SIGMOD 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import aggregate
    >>> ages = np.random.default_rng(0).gamma(9.0, 5.0, 100_000)
    >>> found = aggregate(ages, np.median, (0, 120), epsilon=1.0, random_state=0)
    >>> bool(42 < found.answer[0] < 45)
    True
    """
    parts = _tables(records)
    if not callable(statistic):
        raise DeclarationTypeError(
            f"statistic ({type(statistic).__name__}) must be a function; pass statistic(rows)"
        )
    within = _as_bounds(bounds, None)
    rows = SimpleNamespace(n_records=_count(parts[0]))
    terms = Terms("aggregate", epsilon, delta, adjacency, n_public, ledger, random_state)
    settings, size = Gupt(blocks=blocks), terms.size(rows)
    noise = noise_for(terms.budget, *diameters(within))
    count = settings.count(size, terms.budget, least=1)
    paid = terms.charge(rows)
    paid.plan(noise.event)
    middle = np.asarray((within.low + within.high) / 2)
    total = block_sums(parts, statistic, count, within, middle, paid.source)
    answer = _mean(paid.release(noise, total), count, within)
    shown = {"blocks": count, "bounds": within}
    return Aggregated(answer, paid.close(within, shown, {"answer": answer}))


def _tables(records: object) -> tuple[Table, ...]:
    """Arrays or lists whose rows can be picked, all of one length."""
    tables = records if isinstance(records, tuple) else (records,)
    read = [table for table in map(_table, tables) if table is not None]
    if not tables or len(read) < len(tables):
        raise InputError("records must be an array, or a tuple of arrays; pass records as rows")
    if len(set(map(_count, read))) != 1:
        raise InputError("records must be arrays with equally many rows; pass one row per record")
    return tuple(read)


def _table(records: object) -> Table | None:
    """An array of numbers or a list of rows; None if it is neither.

    A type that numpy chose for all rows together would reveal to each block the rows of others.
    """
    if is_sparse(records):
        sparse: Any = records
        return sparse.tocsr()
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


@dataclass(frozen=True, repr=False)
class Gupt(Settings):
    """Settings of sample and aggregate, for the parameter `solver`.

    Parameters
    ----------
    estimator : object with fit, optional
        Fitted to each block, a fresh copy each time. For linear models it sees columns coded in
        [-1/2, 1/2] and labels 0 and 1, and must have `coef_` and, if an intercept is fitted,
        `intercept_`; for k-means it must have `cluster_centers_`. By default scikit-learn's
        LogisticRegression or LinearSVC, and Lloyd's steps from public centres.
    blocks : int, optional
        Number of blocks; by default a public rule in (n, epsilon): 2 sqrt(n / epsilon). The paper's
        is n^0.4.
    bounds : pair (low, high), Box, L1Ball or L2Ball, optional
        Bounds of a block's weights, those of columns in [-1/2, 1/2] and of an intercept coded as
        1/2, or of all the centres of a block in a row. By default the l1 ball of radius 20 if delta
        is 0, and the l2 ball of radius 5 otherwise; centres are in the domain.
    paper : bool, default=False
        Whether to use the publication's number of blocks and pure budget, whatever delta is, and
        bounds by coordinate, (-10, 10) for weights of coded columns: [-5, 5] for columns in [-1,
        1]. Repaired: records draw their blocks independently, so that adding one moves no other;
        the noise is discrete, on exact sums; a block that fails counts as a public value.

    See Also
    --------
    aggregate : The same for any statistic.

    Notes
    -----
    Released: one model. Cost: one release, pure or Gaussian, of the whole budget.

    References
    ----------
    P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: privacy preserving data analysis made
    easy", SIGMOD 2012.

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

    needs_order: ClassVar[bool] = True
    without_size: ClassVar[str] = "blocks="

    estimator: Estimator | None = None
    blocks: int | None = None
    bounds: Bounds | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "blocks")
        if self.bounds is not None:
            _as_bounds(self.bounds, None)
        if self.estimator is not None and not callable(getattr(self.estimator, "fit", None)):
            raise DeclarationTypeError(
                f"estimator ({type(self.estimator).__name__}) must have a method fit; pass one "
                "such as scikit-learn's LogisticRegression()"
            )

    @property
    def largest_weight(self) -> float:
        return 5.0 if self.paper else 10.0

    def bounds_codes(self, objective: Objective) -> bool:
        return True

    def spends(self, budget: Budget) -> Budget:
        """The part of a budget that is spent; as published there is no delta.

        Parameters
        ----------
        budget : Budget
            The budget of the fit.

        Returns
        -------
        Budget
            What is spent.
        """
        return Budget(budget.epsilon) if self.paper else budget

    def count(self, size: int | None, budget: Budget, least: int) -> int:
        """The number of blocks: as given, or by a rule.

        Parameters
        ----------
        size : int or None
            Public number of records.
        budget : Budget
            The budget of the fit.
        least : int
            Smallest average number of records in a block.

        Returns
        -------
        int
            The number of blocks.
        """
        if self.blocks is not None:
            return self.blocks
        n = known_size(size, remedy=f"a public estimate, or {self.without_size}")
        return max(1, round(n**0.4)) if self.paper else blocks_by_rule(n, budget, least)

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        asked = _asked(task.objective, self, task.budget, np.random.default_rng(0))
        noise_for(self.spends(task.budget), *diameters(asked.bounds))
        self.count(task.n_public, task.budget, asked.least)
        if self.estimator is not None:
            asked.rehearse()

    def __call__(self, run: Run[LinearObjective | CentersObjective, Reals]) -> Path:
        """Fit each block by itself and release the noisy mean of the clipped models.

        Released: one model. Cost: one release, pure or Gaussian, of the grant's budget. The space
        bounds the weights of coded columns, or the centres.
        """
        asked = _asked(run.objective, self, run.whole, run.coins)
        noise = noise_for(self.spends(run.whole), *diameters(asked.bounds), run.share)
        blocks = self.count(run.n_public, run.whole, asked.least)
        run.set_aside(noise.event)
        run.note(blocks=blocks, bounds=asked.bounds, estimator=asked.named)
        parts = [part for part in run.objective.decoded() if part is not None]
        total = block_sums(parts, asked.statistic, blocks, asked.bounds, asked.fallback, run.source)
        mean = _mean(run.release(noise, total), blocks, asked.bounds)
        low, high = np.ravel(run.space.low), np.ravel(run.space.high)
        run.report(asked.model(np.clip(mean, low, high))[None])
        return run.path()


def _asked(
    objective: Objective, settings: Gupt, budget: Budget, coins: Coins
) -> _LinearModel | _Centers:
    if isinstance(objective, LinearObjective):
        return _LinearModel(objective, settings, budget)
    if isinstance(objective, CentersObjective):
        return _Centers(objective, settings, coins)
    raise DeclarationError(
        f"gupt fits linear models and centres, not a {type(objective).__name__}; pass records and "
        "a statistic to aggregate()"
    )


class _LinearModel:
    """The statistic of a block: weights of coded columns, and of the intercept 1/2 if any."""

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

    def statistic(self, records: Array, labels: Integers) -> ArrayLike:
        fitted: Any = copy.deepcopy(self._estimator).fit(self._coding.records(records), labels)
        if not self._intercept:
            return np.ravel(fitted.coef_)
        return np.append(np.ravel(fitted.coef_), 2 * np.ravel(fitted.intercept_))

    def model(self, mean: Floats) -> Floats:
        return self._coding.weights(mean)

    def rehearse(self) -> None:
        made_up, labels = self._domain.points(40, np.random.default_rng(0)), np.arange(40) % 2
        _rehearse(self, "coef_ (1, d) and intercept_ (1,)", made_up, labels)
        if not self._intercept and getattr(self._estimator, "fit_intercept", False):
            raise DeclarationError(
                "estimator must not fit an intercept, which the model does not have; pass one with "
                "fit_intercept=False"
            )


def _plain_estimator(loss: str, intercept: bool) -> Estimator:
    """scikit-learn's classifier of this loss; on Adult C was best of 0.1, 1, 10 (SVC: 1, 4)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if loss == "logistic":
        return LogisticRegression(C=10.0, solver="liblinear", tol=1e-3, fit_intercept=intercept)
    return LinearSVC(C=4.0, dual=False, tol=1e-3, fit_intercept=intercept)


class _Centers:
    """The statistic of a block: k centres in a row, each in the place of the public one it matches.

    Without a common order a mean over blocks would mix the clusters.
    """

    def __init__(self, objective: CentersObjective, settings: Gupt, coins: Coins) -> None:
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
        fitted: Any = copy.deepcopy(self._estimator).fit(records)
        centers = np.asarray(fitted.cluster_centers_, dtype=np.float64)
        squares = scipy.spatial.distance.cdist(self.references, centers, "sqeuclidean")
        return centers[scipy.optimize.linear_sum_assignment(squares)[1]]

    def model(self, mean: Floats) -> Floats:
        return np.asarray(self._snap(mean.reshape(self._shape)))

    def rehearse(self) -> None:
        made_up = self._domain.points(20 * self._shape[0], np.random.default_rng(0))
        _rehearse(self, "cluster_centers_ (k, d)", made_up)


def _rehearse(asked: _LinearModel | _Centers, attributes: str, *made_up: Array) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value: Array = np.asarray(asked.statistic(*made_up), dtype=np.float64)
    except Exception as error:
        raise DeclarationError(
            f"estimator fails on made-up records: {error}; pass another"
        ) from None
    if value.size != asked.fallback.size:
        raise DeclarationError(
            f"estimator must have {attributes} once it is fitted; pass one for this problem"
        )


def _spread_out(domain: Domain, k: int, coins: Coins) -> Floats:
    """k public points far from each other: the means of points drawn from the domain."""
    points = domain.points(max(500, 20 * k), coins)
    return lloyd_steps(points, points[:k])


def lloyd_steps(records: Floats, centers: Floats, steps: int = LLOYD_STEPS) -> Floats:
    """Centres after this many of Lloyd's steps; a centre without records does not move."""
    for _ in range(steps):
        nearest = scipy.spatial.distance.cdist(records, centers, "sqeuclidean").argmin(axis=1)
        member = nearest == np.arange(len(centers))[:, None]
        count = member.sum(axis=1, keepdims=True)
        centers = np.where(count > 0, member @ records / np.maximum(count, 1), centers)
    return centers
