"""Private k-means by noisy statistics: noisy Lloyd, a grid, an adaptive tree, and both together.

==============  ==================================================================================
`Lloyd`         each step releases noisy counts and sums of the clusters (Blum, Dwork, McSherry,
                Nissim 2005), or sums of *residuals* clipped to a public radius about the centres
`UniformGrid`   noisy counts of a fixed grid, then weighted k-means (EUGkM: Su, Cao, Li, Bertino,
                Jin 2016)
`Tree`          noisy counts of an adaptive partition (`privtree.py`), then weighted k-means
`Hybrid`        a tree for where to start, then Lloyd steps on clipped residuals; as published (Su
                et al.) a grid, then one Lloyd step on sums
==============  ==================================================================================

A method is a frozen settings dataclass and a plain function, as the searches of `privgene.py`, and
returns a `Clustering` of released values. Starting centres never look at records. Every cluster
gets noise, empty ones too; what happens next depends on released values alone.

**Sensitivity of a Lloyd step.** A step releases the integers (W n_j, F s_j) of all clusters j: n_j
counts its records, s_j sums vectors v of norm at most r, one a record, W and F are public whole
numbers. Each record counts in exactly one cluster, and which one depends on that record and the
released centres alone. v is the record less a public middle of the domain (`objective.reach`), or
its residual clipped to the radius. With V = F r, one record

=============================  ==============================  ===================================
changes the integers by        l1 (discrete Laplace)           l2 (discrete Gaussian)
=============================  ==============================  ===================================
added or removed               W + V                           sqrt(W^2 + V^2)
replaced, another cluster      2 W + 2 V                       sqrt(2 W^2 + 2 V^2)
replaced, the same cluster     2 V (n_j does not change)       2 V
=============================  ==============================  ===================================

since norm(v - v') <= 2 r. So the joint l1 sensitivity is W + V, twice that if replaced: 2 and 4 on
the unit L1 ball with W = 1, and 1 + d and 2 (1 + d) on [-1, 1]^d. In l2 a replaced record makes
counts free of charge up to W = V.

**Clipped residuals.** v = x - c_j for the nearest centre c_j, shrunk to norm r if longer and
rounded towards zero (`objective.residuals`): an integer vector of norm at most r that depends on x
and the released centres alone, so the table holds with that r, however large the domain. The noise
shrinks as r does. Most records are near their centre, so little is lost; where the pulls of a
cluster's records balance, the sum is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from privfit._kernels.random import BitSource
from privfit.base.means import weighted_means
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.clustering.starts import packed, spread_out
from privfit.clustering.trace import LloydTrace
from privfit.objectives import CentersObjective
from privfit.objectives.common import MOST_SUM
from privfit.privacy.accounting import Event, calibrate, compose, gaussian_calibrate
from privfit.privacy.ledger import Budget, Grant
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.privtree import (
    MOST_LEVELS,
    Cells,
    Partition,
    check_depth,
    rounded_down,
)
from privfit.runs.paths import (
    OPEN,
    Conduct,
    Generation,
    Path,
    check_counts,
    check_shares,
    check_split,
    fill,
)
from privfit.runs.spaces import Reals
from privfit.searches.dpsga import DPSGA, dpsga
from privfit.searches.privgene import EEM, Local, PrivGene, eem, local, privgene
from privfit.searches.sample_aggregate import Gupt, gupt

__all__ = [
    "METHODS",
    "Clustering",
    "Hybrid",
    "Lloyd",
    "Tree",
    "UniformGrid",
    "best_of",
    "centre_space",
    "grid",
    "hybrid",
    "lloyd",
    "tree",
]

Callback: TypeAlias = Callable[[Generation], object] | None

FINE = 1024  # units of a sum's bound below which it is released on a finer grid
MOST_CELLS = 2**17  # of a uniform grid
MOST_STEPS = 16
NOISE = 0.05  # of the radius: how far noise may move a mean, which sets the number of steps


@dataclass(frozen=True, eq=False)
class Clustering:
    """What a method released.

    `path` has the centres of each step; `trace` the noisy counts and sums of plain Lloyd steps, as
    the post-processors take them; `cells` the counts of a grid or tree.
    """

    path: Path
    trace: LloydTrace | None = None
    cells: Cells | None = None


# ------------------------------------------------------------------------------------------- Lloyd


@dataclass(frozen=True)
class Lloyd:
    """Settings of `lloyd`; what is left out takes our default, or the paper's.

    Parameters
    ----------
    steps : int, optional
        T; by default a public rule in (n, d, k, epsilon, delta): see `_steps_by_rule`; 5 where
        the number of records is not public.
    residual : bool
        Sum residuals clipped to a public radius about the current centres.
    radius : float, optional
        Of residuals, in units of the records; by default from the domain, d and k: see
        `_radius_by_rule`.
    count_share : float, optional
        The part of a step's sensitivity that counts take, W / (W + V); by default 0.15 for
        residuals, and for sums what makes the centres' error least: see `_count_weight`.
    average : float
        The share of the released path whose mean is the answer, 0 for the last step; by default
        0.5 for residuals, whose last steps differ by their noise alone, and 0 for sums.
    paper : bool
        Lee and Kifer's parameters: 5 steps of Laplace noise, whatever delta is, sums of records,
        W = 1 whatever the domain, and starts that are packed as far apart as they fit (`packed`).
        Repaired: every cluster gets noise, counts are at least 1, centres stay in the domain.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, Lloyd
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Lloyd(steps=5)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    steps: int | None = None
    residual: bool = OPEN
    radius: float | None = None
    count_share: float | None = None
    average: float = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        average = 0.5 if self.residual and not self.paper else 0.0
        fill(
            self,
            ours={"residual": False, "average": average},
            paper={"residual": False, "average": average, "steps": 5},
        )
        check_counts(self, "steps")
        check_shares(self, "average")
        if self.count_share is not None:
            check_split(self, "count_share")
        if self.radius is not None and (not is_finite(self.radius) or self.radius <= 0):
            raise ValueError(f"radius ({self.radius!r}) must be a positive number; leave it out")

    def check(
        self, objective: CentersObjective, budget: Budget, adjacency: str, size: int | None
    ) -> None:
        """Refuse what `lloyd` would, before anything is charged: plan, and draw nothing."""
        budget = self.spends(budget)
        steps = _steps_by_rule(objective, self, budget, adjacency, size)
        _plan_step(objective, self, steps, _rate(budget, steps), adjacency)

    def spends(self, budget: Budget) -> Budget:
        """What of a budget the steps use: as published epsilon alone."""
        return Budget(budget.epsilon) if self.paper else budget


def lloyd(
    objective: CentersObjective,
    space: Reals,
    settings: Lloyd,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Clustering:
    """From spread-out centres, release noisy counts and sums T times, and go to their quotients.

    Released: (k d + k) numbers a step. Cost: T pure releases of epsilon / T, or T Gaussian ones of
    mu / sqrt(T): the grant's budget.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    budget = settings.spends(grant.budget)
    rule = _steps_by_rule(objective, settings, budget, conduct.adjacency, conduct.size)
    step = _plan_step(objective, settings, rule, _rate(budget, rule), conduct.adjacency)
    conduct.set_aside(rule, step.event(rule))
    conduct.note(**_noted(objective, step, rule))
    start = packed(objective, conduct.coins) if settings.paper else space.middle
    return _iterate(conduct, objective, start, step, rule, conduct.size, settings.average)


def _noted(objective: CentersObjective, step: _Step, steps: int) -> dict[str, Any]:
    """The settings of Lloyd steps as they are used; the radius in units of the records."""
    radius = None if step.radius is None else step.radius * objective.candidate_units
    return {"steps": steps, "radius": radius, "count_share": step.W / (step.W + step.V)}


@dataclass(frozen=True)
class _Step:
    """The public plan of a Lloyd step: what is summed, in which units, with which noise."""

    mechanism: DiscreteLaplace | DiscreteGaussian
    W: int
    F: int
    V: int
    radius: int | None  # of residuals, in record units
    norm: int

    def event(self, count: int) -> Event:
        one = self.mechanism.event
        return Event(one.kind, one.parameter, count)

    @property
    def scale(self) -> float:
        """b of Laplace noise, or the standard deviation, in units of the released integers."""
        if isinstance(self.mechanism, DiscreteLaplace):
            return _laplace_scale(self.mechanism)
        return math.sqrt(self.mechanism.variance)


def _iterate(
    conduct: Conduct,
    objective: CentersObjective,
    centers: Floats,
    step: _Step,
    steps: int,
    size: float | None,
    average: float,
) -> Clustering:
    unit, origin = objective.candidate_units, objective.middle * objective.candidate_units
    k, d = centers.shape
    least = 1.0 if size is None else max(1.0, size / (20 * k))
    used, counts, sums = [], [], []
    for _ in range(steps):
        if step.radius is None:
            n, s = objective.lloyd(centers)
            s = s - n[:, None] * objective.middle
        else:
            n, s = objective.residuals(centers, step.radius, step.norm)
        noisy = conduct.release(step.mechanism, np.concatenate([step.W * n, step.F * s.ravel()]))
        used.append(centers)
        counts.append(noisy[:k] / step.W)
        sums.append(noisy[k:].reshape(k, d) * (unit / step.F))
        if step.radius is None:
            moved = origin + sums[-1] / np.maximum(counts[-1], 1.0)[:, None]
        else:
            shift = sums[-1] / np.maximum(counts[-1], least)[:, None]
            moved = centers + _shortened(shift, step.radius * unit, step.norm)
        centers = objective.project(moved)
        conduct.tell(centers[None])
    trace = None if step.radius is not None else _trace(objective, step, used, counts, sums)
    return Clustering(conduct.path(average), trace)


def _trace(
    objective: CentersObjective,
    step: _Step,
    used: list[Floats],
    counts: list[Floats],
    sums: list[Floats],
) -> LloydTrace:
    """What plain Lloyd steps released, as post-processors take it."""
    unit, domain = objective.candidate_units, objective.domain
    origin = objective.middle * unit
    low, high = (bound * unit - origin for bound in objective.bounds)
    return LloydTrace(
        np.array(used) - origin,
        np.array(counts),
        np.array(sums),
        scale_counts=step.scale / step.W,
        scale_sums=step.scale / step.F * unit,
        low=low,
        high=high,
        kind="laplace" if isinstance(step.mechanism, DiscreteLaplace) else "gaussian",
        domain={1: "l1", 2: "l2", math.inf: "box"}[domain.order],
        radius=float(high[0]) if domain.order < math.inf else 0.0,
        origin=origin,
    )


def _shortened(steps: Floats, radius: float, norm: int) -> Floats:
    """Steps of at most the radius: a mean of clipped residuals is no longer."""
    length = np.linalg.norm(steps, ord=norm, axis=1, keepdims=True)
    return steps * np.minimum(1.0, radius / np.maximum(length, 1e-300))


def joint_sensitivity(W: int, V: int, norm: int, adjacency: str) -> float:
    """How far one record moves the integers of a step; the table at the top of this module."""
    if norm == 1:
        return (W + V) * (2 if adjacency == "replace" else 1)
    if adjacency == "add_remove":
        return math.sqrt(W * W + V * V) * (1 + 1e-12)
    return max(math.sqrt(2 * W * W + 2 * V * V) * (1 + 1e-12), 2.0 * V)


def _plan_step(
    objective: CentersObjective, settings: Lloyd, steps: int, rate: _Rate, adjacency: str
) -> _Step:
    """The noise of each of so many steps at this rate.

    No sum wraps: with N records (replace) or 2^32 (add_remove), W n_j <= N W and F s_j <= N V are
    below 2^62, or else the step is refused.
    """
    norm = 1 if rate.kind == "pure" else 2
    radius = None
    if settings.residual:
        length = settings.radius or _radius_by_rule(objective, norm)
        radius = max(1, min(math.floor(length / objective.candidate_units),
                            2 * objective.reach(norm) or 1))  # fmt: skip
    reach = objective.reach(norm) if radius is None else radius
    F = math.ceil(FINE / max(reach, 1))
    V = F * reach
    W = max(_count_weight(objective, settings, V, F, norm, adjacency), math.ceil(8 * rate.size))
    if max(W, V) * objective.room(adjacency) >= MOST_SUM:
        raise ValueError(
            f"counts ({W}) or sums ({V} units a record) are too fine for exact totals; pass a "
            "smaller count_share or epsilon, or a domain of fewer columns"
        )
    span = joint_sensitivity(W, V, norm, adjacency)
    if rate.kind == "pure":
        return _Step(DiscreteLaplace(rate.size, int(span)), W, F, V, radius, norm)
    return _Step(DiscreteGaussian(rate.size, span), W, F, V, radius, norm)


def _count_weight(
    objective: CentersObjective, settings: Lloyd, V: int, F: int, norm: int, adjacency: str
) -> int:
    """W: what a count is worth beside sums of vectors of norm at most V.

    Noise of scale b on all integers moves n times a centre s/n by b in each coordinate, through s,
    and by b M / W along the centre, through n, where M is a typical length of a centre, here in the
    units of F s. The squares add up to b^2 (d + (M / W)^2). With b proportional to W + V that is
    least at W = (V M^2 / d)^(1/3); with b proportional to sqrt(W^2 + V^2), at sqrt(V M / sqrt(d));
    and where a replaced record makes counts free, at V.
    """
    unit, d = objective.candidate_units, objective.n_features
    if norm == 2 and adjacency == "replace":
        best = float(V)
    elif settings.count_share is not None:
        best = V * settings.count_share / (1 - settings.count_share)
    elif settings.paper:
        best = F / unit
    elif settings.residual:
        best = V * 0.15 / 0.85
    else:
        M = F * objective.domain.typical_length / unit
        best = (V * M * M / d) ** (1 / 3) if norm == 1 else math.sqrt(V * M / math.sqrt(d))
    return max(1, round(best))


# ------------------------------------------------------------------------------------------ budgets


@dataclass(frozen=True)
class _Rate:
    """The size of one of several equal releases: epsilon of a pure one, mu of a Gaussian one."""

    kind: str
    size: float


def _rate(budget: Budget, steps: int, *spent: Event) -> _Rate:
    """What each of so many equal steps may cost, after what is spent already."""
    mu = 0.0
    if budget.delta > 0:
        mu = _mu_left(budget, spent) if spent else gaussian_calibrate(budget.epsilon, budget.delta)
    if mu > 0:
        return _Rate("gaussian", mu / math.sqrt(steps) * (1 - 1e-12))
    left = Fraction(budget.epsilon) - sum(Fraction(event.parameter) for event in spent)
    return _Rate("pure", calibrate(steps, rounded_down(left), 0.0))


def _whole_left(budget: Budget, spent: tuple[Event, ...]) -> tuple[Event, ...]:
    """What is planned for steps whose number is chosen later: the Gaussian release they add up to.

    Epsilons of pure steps are covered by their plain sum, and need no plan.
    """
    mu = _mu_left(budget, spent) if budget.delta > 0 else 0.0
    return (Event("gaussian", mu),) if mu > 0 else ()


def _mu_left(budget: Budget, spent: tuple[Event, ...]) -> float:
    """The largest mu that fits beside pure releases, to one part in 1000, from below.

    By simple composition what epsilon is left fits, but for the accountant's rounding. That grows
    with epsilon: where budgets are in the hundreds there may be no such mu, which is 0.
    """

    def fits(mu: float) -> bool:
        return compose([*spent, Event("gaussian", mu)], budget.delta) <= budget.epsilon

    left = budget.epsilon - math.fsum(event.parameter for event in spent)
    low, high = (gaussian_calibrate(e, budget.delta) for e in (left, budget.epsilon))
    least = low / 1000
    while not fits(low):
        low, high = low / 2, low
        if low < least:
            return 0.0
    while high > 1.001 * low:
        mu = math.sqrt(low * high)
        low, high = (mu, high) if fits(mu) else (low, mu)
    return low


# ------------------------------------------------------------------------------------ public rules


def _radius_by_rule(objective: CentersObjective, norm: int) -> float:
    """Of residuals: 0.866 typical lengths k^(-1/d), that is 0.5 sqrt(d) k^(-1/d) on [-1, 1]^d.

    A k-th of the domain has a diameter of that order. In l1 it is sqrt(2 d / pi) times as long:
    such is the l1 norm of a vector of that l2 norm in a random direction.
    """
    d = objective.n_features
    radius = math.sqrt(0.75) * objective.domain.typical_length * objective.n_clusters ** (-1 / d)
    return max(radius, objective.candidate_units) * (
        max(1.0, math.sqrt(2 * d / math.pi)) if norm == 1 else 1
    )


def _steps_by_rule(
    objective: CentersObjective,
    settings: Lloyd,
    budget: Budget,
    adjacency: str,
    size: float | None,
    *spent: Event,
) -> int:
    """T: as many steps as keep the noise of a mean at 5 % of the radius; from 1 to 16.

    For residuals a pure step's noise is about sqrt(d (d + 1)) r T k / (0.85 epsilon n) long, a
    Gaussian one's sqrt(d) r sqrt(T) k / (mu n); replaced records double it. Sums of whole records
    take 5 steps, as in the papers.
    """
    if settings.steps is not None:
        return settings.steps
    if size is None or not settings.residual:
        return 5
    d, k = objective.n_features, objective.n_clusters
    rate = _rate(budget, 1, *spent)
    share = rate.size * size / k / (2 if adjacency == "replace" else 1)
    if rate.kind == "pure":
        steps = NOISE * 0.85 * share / math.sqrt(d * (d + 1))
    else:
        steps = (NOISE * share) ** 2 / d
    return min(max(round(min(steps, MOST_STEPS)), 1), MOST_STEPS)


def centre_space(objective: CentersObjective, rng: Any = None) -> Reals:
    """Where centres may lie, and where they start: far apart, without a look at records."""
    unit, coins = objective.candidate_units, np.random.default_rng(BitSource.of(rng).bits(128))
    low, high = (bound * unit for bound in objective.bounds)
    shape = (objective.n_clusters, objective.n_features)
    start = objective.project(spread_out(objective, coins))
    return Reals(low, np.where(high > low, high, low + unit), shape, start=start)


# ------------------------------------------------------------------------------- grid and tree


@dataclass(frozen=True)
class UniformGrid:
    """Settings of `grid` (EUGkM); what is left out takes our default, or the paper's.

    Parameters
    ----------
    cells : int, optional
        At most so many cells; by default the paper's rule (n epsilon / 10)^(2d / (2 + d)), and at
        most 2^17. Needs a public number of records.
    restarts : int
        Of the weighted k-means; the paper's published runs had one.
    paper : bool

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, UniformGrid
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=UniformGrid(cells=100)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    cells: int | None = None
    restarts: int = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        fill(self, ours={"restarts": 20}, paper={"restarts": 1})
        check_counts(self, "cells", "restarts")

    def plan(self, objective: CentersObjective, epsilon: float, adjacency: str) -> _GridPlan:
        """The release that a grid of this budget takes."""
        return _GridPlan(_counts_noise(epsilon, adjacency))

    def check(
        self, objective: CentersObjective, budget: Budget, adjacency: str, size: int | None
    ) -> None:
        """Refuse what `grid` would, before anything is charged."""
        if self.cells is None and size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or UniformGrid(cells=...)"
            )
        _counts_noise(budget.epsilon, adjacency)


def grid(
    objective: CentersObjective,
    space: Reals,
    settings: UniformGrid,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Clustering:
    """Release noisy counts of a uniform grid; weighted k-means of the cells' middles.

    Released: a count for each cell. Cost: one pure release, the grant's epsilon: a record changes
    one count by one, two if it is replaced.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    plan = settings.plan(objective, grant.budget.epsilon, conduct.adjacency)
    conduct.set_aside(1, *plan.events)
    cells, used = _drawn_cells(objective, settings, plan, conduct)
    conduct.note(**used)
    conduct.tell(_summarised(objective, cells, space, settings.restarts, conduct)[None])
    return Clustering(conduct.path(), cells=cells)


@dataclass(frozen=True)
class _GridPlan:
    """The one release of a grid."""

    mechanism: DiscreteLaplace

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.mechanism.event,)


def _drawn_cells(
    objective: CentersObjective,
    settings: Tree | UniformGrid,
    plan: Partition | _GridPlan,
    conduct: Conduct,
) -> tuple[Cells, dict[str, Any]]:
    """The noisy cells of a tree or of a grid, and its settings as they were used."""
    if isinstance(plan, Partition):
        return plan.grow(objective.cells(plan.halvings.axes), conduct.release), plan.noted
    assert isinstance(settings, UniformGrid)
    parts = _grid_parts(objective, settings, plan.mechanism.epsilon, conduct)
    used = {"cells": math.prod(parts.tolist()), "parts": parts.tolist()}
    counts = conduct.release(plan.mechanism, objective.grid_counts(parts))
    return _grid_cells(objective, parts, counts, _laplace_scale(plan.mechanism)), used


def _grid_cells(
    objective: CentersObjective, parts: Integers, counts: Integers, scale: float
) -> Cells:
    """The cells of a grid that have a weight: a grid has many, and most are empty."""
    filled = np.flatnonzero(counts > scale * math.log(2))
    stride = np.append(np.cumprod(parts[:0:-1])[::-1], 1)  # the last column varies fastest
    place = filled[:, None] // stride % parts
    low, high = objective.bounds
    first, last = (low + -(-p * (high + 1 - low) // parts) for p in (place, place + 1))
    return Cells(first, last, counts[filled], scale)


def _counts_noise(epsilon: float, adjacency: str) -> DiscreteLaplace:
    """Of counts of disjoint cells: a record is in one of them."""
    return DiscreteLaplace(epsilon, 2 if adjacency == "replace" else 1)


def _laplace_scale(mechanism: DiscreteLaplace) -> float:
    return mechanism.sensitivity / mechanism.epsilon


def _grid_parts(
    objective: CentersObjective, settings: UniformGrid, epsilon: float, conduct: Conduct
) -> Integers:
    """(d,) parts of each column: one more for the widest, as long as the cells are not too many."""
    d = objective.n_features
    if settings.cells is None:
        power = 2 * d / (2 + d)
        wanted = math.exp(min(50.0, power * math.log(max(conduct.n * epsilon / 10, 1.0))))
    else:
        wanted = settings.cells
    low, high = objective.bounds
    width = (high - low + 1).astype(np.float64)
    parts, most = np.ones(d, dtype=np.int64), min(wanted, MOST_CELLS)
    while True:
        axis = int(np.argmax(np.where(parts < width, width / parts, 0.0)))
        grown = math.prod(parts.tolist()) // parts[axis] * (parts[axis] + 1)
        if grown > most or parts[axis] >= width[axis]:
            return parts
        parts[axis] += 1


@dataclass(frozen=True)
class Tree:
    """Settings of `tree`.

    Parameters
    ----------
    shape_share : float
        The part of the budget that finds the partition; the rest counts its cells.
    roots : int, optional
        Halvings that are made without a test; by default round(log2(3 k)).
    depth : int
        No cell is halved more often.
    restarts : int
        Of the weighted k-means.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.clustering import Tree
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Tree(depth=12)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    shape_share: float = 0.35
    roots: int | None = None
    depth: int = MOST_LEVELS
    restarts: int = 20

    def __post_init__(self) -> None:
        check_counts(self, "roots", "depth", "restarts")
        check_split(self, "shape_share")
        check_depth(self.depth)

    def plan(self, objective: CentersObjective, epsilon: float, adjacency: str) -> Partition:
        """The releases that a tree of this budget takes."""
        k = objective.n_clusters
        return Partition.plan(self, objective.bounds, k, epsilon, adjacency)

    def check(
        self, objective: CentersObjective, budget: Budget, adjacency: str, size: int | None
    ) -> None:
        """Refuse what `tree` would, before anything is charged."""
        self.plan(objective, budget.epsilon, adjacency)


def tree(
    objective: CentersObjective,
    space: Reals,
    settings: Tree,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Clustering:
    """Release an adaptive partition and noisy counts of its cells; weighted k-means of them.

    Released: the partition and a count for each of its cells. Cost: two pure releases, together the
    grant's epsilon (proof: `privtree.py`).
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    plan = settings.plan(objective, grant.budget.epsilon, conduct.adjacency)
    conduct.set_aside(1, *plan.events)
    cells, used = _drawn_cells(objective, settings, plan, conduct)
    conduct.note(**used)
    conduct.tell(_summarised(objective, cells, space, settings.restarts, conduct)[None])
    return Clustering(conduct.path(), cells=cells)


def _summarised(
    objective: CentersObjective, cells: Cells, space: Reals, restarts: int, conduct: Conduct
) -> Floats:
    """k centres of the cells, weighted by their noisy counts; where all are 0, the start."""
    weights = cells.weights
    filled = weights > 0
    if not filled.any():
        return objective.project(space.middle)
    middles = (cells.low + cells.high - 1)[filled] / 2 * objective.candidate_units
    k = objective.n_clusters
    return objective.project(weighted_means(middles, weights[filled], k, conduct.coins, restarts))


# ------------------------------------------------------------------------------------------ hybrid


@dataclass(frozen=True)
class Hybrid:
    """Settings of `hybrid`; what is left out takes our default, or the paper's.

    Parameters
    ----------
    tree_share : float
        The part of epsilon that the tree or the grid gets.
    tree : Tree or UniformGrid
        What finds the centres to start from.
    lloyd : Lloyd
        Of the steps that follow; by default on clipped residuals.
    paper : bool
        The hybrid of Su et al.: EUGkM with half of epsilon, then one step of noisy Lloyd, on sums,
        with the other half; pure, whatever delta is. A grid needs a public number of records.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Hybrid, KMeans
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Hybrid(tree_share=0.5)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    tree_share: float = 0.5
    tree: Tree | UniformGrid = OPEN
    lloyd: Lloyd = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        fill(
            self,
            ours={"tree": Tree(), "lloyd": Lloyd(residual=True)},
            paper={"tree": UniformGrid(paper=True), "lloyd": Lloyd(steps=1, paper=True)},
        )
        check_split(self, "tree_share")

    def check(
        self, objective: CentersObjective, budget: Budget, adjacency: str, size: int | None
    ) -> None:
        """Refuse what `hybrid` would, before anything is charged."""
        share = Budget(self.tree_share * budget.epsilon)
        self.tree.check(objective, share, adjacency, size)
        plan = self.tree.plan(objective, share.epsilon, adjacency)
        steps = self.lloyd.steps or MOST_STEPS
        rate = _rate(self.lloyd.spends(budget), steps, *plan.events)
        _plan_step(objective, self.lloyd, steps, rate, adjacency)


def hybrid(
    objective: CentersObjective,
    space: Reals,
    settings: Hybrid,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Clustering:
    """A tree with part of the budget, then Lloyd steps from its centres with the rest.

    Released: what `tree` and `lloyd` release. Cost: the grant's budget. The number of steps may
    depend on the tree's noisy number of records, which is released; it changes how the rest of the
    budget is cut, not how much it is: a sum of epsilons, or of squares of mu (`grants.py`).
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    budget = settings.lloyd.spends(grant.budget)
    plan = settings.tree.plan(objective, settings.tree_share * budget.epsilon, conduct.adjacency)
    conduct.set_aside(1 + MOST_STEPS, *plan.events, *_whole_left(budget, plan.events))
    cells, used = _drawn_cells(objective, settings.tree, plan, conduct)
    size = conduct.size or cells.size
    steps = _steps_by_rule(objective, settings.lloyd, budget, conduct.adjacency, size, *plan.events)
    rate = _rate(budget, steps, *plan.events)
    step = _plan_step(objective, settings.lloyd, steps, rate, conduct.adjacency)
    conduct.set_aside(1 + steps, step.event(steps))
    conduct.note(tree=used, lloyd=_noted(objective, step, steps))
    centers = _summarised(objective, cells, space, settings.tree.restarts, conduct)
    conduct.tell(centers[None])
    done = _iterate(conduct, objective, centers, step, steps, size, settings.lloyd.average)
    return Clustering(done.path, done.trace, cells)


# ----------------------------------------------------------------------------------------- by name

# By name: how each method is set, and what runs it. Searches return a `Path`.
METHODS: dict[str, tuple[type[Any], Callable[..., Clustering | Path]]] = {
    "lloyd": (Lloyd, lloyd),
    "grid": (UniformGrid, grid),
    "tree": (Tree, tree),
    "hybrid": (Hybrid, hybrid),
    "privgene": (PrivGene, privgene),
    "eem": (EEM, eem),
    "local": (Local, local),
    "dpsga": (DPSGA, dpsga),
    "gupt": (Gupt, gupt),
}


def best_of(objective: CentersObjective) -> Tree | Hybrid:
    """The method of solver='auto': a tree alone up to two columns, else a hybrid."""
    return Tree() if objective.n_features <= 2 else Hybrid()


def private_inertia(
    objective: CentersObjective, centers: Floats, grant: Grant, rng: Any = None
) -> float:
    """The sum of squared distances to the nearest centres, with discrete Laplace noise, >= 0.

    One release of the grant's epsilon.
    """
    mechanism = inertia_noise(objective, centers, grant.budget.epsilon)
    cost = -grant.release(mechanism, objective.scores(centers[None]), rng)[0]
    return max(0.0, float(cost * objective.unit))


def inertia_noise(objective: CentersObjective, centers: Floats, epsilon: float) -> DiscreteLaplace:
    """A record's cost lies between 0 and the largest of the domain, however neighbours differ."""
    return DiscreteLaplace(epsilon, max(1, objective.largest_cost(centers[None])))
