"""Private k-median without public facilities: centres anywhere in the domain, for l2 distances.

A public grid of facilities has no chance in many columns, so places are bought instead. `Medians`
starts as `OverSeeded` does, with the same releases and proofs, and ends with *median steps*;
`CellMedians` clusters the cells of a tree, in one or two columns.

**Median steps.** A step releases, for every centre c, the number of its records and the sum of
their residuals x - c, each shrunk to a norm of at most r: `Steps` of `lloyd.py`, with the
sensitivities that are proved there for both relations, W + V or sqrt(W^2 + V^2) if a record is
added or removed, and twice that, or max(sqrt(2 W^2 + 2 V^2), 2 V), if one is replaced. If r is
small, nearly every record adds a vector of length r in its own direction: the gradient of the sum
of distances, whose zero is the geometric median. A larger r is Huber's compromise with the mean.

**The radius** is the one that SHARE of the residuals stay within, by one noisy histogram of their
norms: each record is counted once, at the least of some public radii that holds its residual, so
the l1 sensitivity is 1, and 2 if a record is replaced (`radii.py`).

**How far to go.** Weiszfeld's step divides the sum not by the number of records, but by the sum of
min(1, r / norm(x - c)). Its mean over all records follows from the same histogram, at no cost. The
noise of such a step is that of one record times r / E min(1, r / norm), which falls with r: a small
radius costs nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privfit.base.typing import Array, Floats, Integers
from privfit.clustering import kmeans
from privfit.clustering.averages import Mean, norm_of
from privfit.clustering.clustering import Clustering
from privfit.clustering.grids import Tree
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.lloyd import Lloyd, Steps, radius_by_rule, take_steps
from privfit.clustering.over_seeded import AVERAGE, WIDER, OverSeeded, Plan
from privfit.clustering.radii import LEAST_RECORDS, bin_middles, l2_in_l1, tried_radii
from privfit.clustering.seeding import MANY_COLUMNS, carried, over_seed
from privfit.clustering.weiszfeld import weighted_medians
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import Cells
from privfit.runs.run import Run
from privfit.runs.settings import Blank, Settings, blank
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["METHODS", "CellMedians", "MedianSteps", "Medians", "best_of", "short_radius"]

SHARE = 0.3  # of residuals that stay within the radius
RESTARTS = 30
FEW_CLUSTERS = 3  # up to which k-means takes no more seeds than clusters
CELL_BLUR = 8  # times nearer are the records of a cell than those of a seed


@dataclass(frozen=True, repr=False)
class Medians(OverSeeded):
    """Settings of a tree, more seeds than clusters and steps towards geometric medians.

    Parameters
    ----------
    seeds : int, optional
        Seeds for each cluster.
    tree : Tree, optional
        What finds the seeds.
    steps : int, optional
        Number of median steps after the seeds' own step; by default a public rule in (n, d, k,
        epsilon, delta).
    mean : bool, optional
        Whether to buy the mean of the records first; by default a public rule in the same.
    pure : bool, optional
        Whether to use Laplace noise, whatever delta is; by default a public rule decides.
    frame : bool, optional
        Whether to grow the tree along principal axes of the records, which are bought.
    tree_share : float, optional
        The tree's part of epsilon.
    deviations : bool, optional
        Whether to halve columns on scales that follow their deviations, which are bought.

    See Also
    --------
    privfit.clustering.OverSeeded : The same for k-means.
    privfit.clustering.CellMedians : For one or two columns.
    privfit.KMedian : The estimator that takes these settings, without facilities.

    Notes
    -----
    Released: sums of clipped residuals, a tree, histograms of norms, and noisy counts and sums of
    clusters in each step. Cost: the budget of the fit. The number of records must be public.

    References
    ----------
    E. Weiszfeld, "Sur le point pour lequel la somme des distances de n points donnes est minimum",
    Tohoku Mathematical Journal 43, 1937.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMedian
    >>> from privfit.clustering import Medians
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 9000)).reshape(-1, 3)
    >>> model = KMedian(2, epsilon=1.0, domain=(-1, 1), metric="l2", solver=Medians(steps=2))
    >>> model.fit(X).cluster_centers_.shape
    (2, 3)
    """

    tree: Blank[Tree] = blank(Tree())

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """The parts in turn, as planned.

        Released: what the parts release. Cost: the grant's budget.
        """
        objective, size = run.objective, self.size(run)
        plan = Plan.of(self, objective, run.whole, run.neighbours, size)
        run.set_aside(*plan.events, generations=1 + plan.steps.count)
        points, cells, used = self._cells(run, plan, size)
        run.note(tree=used, seeds=self.seeds, steps=plan.steps.count, average=AVERAGE, **plan.noted)
        many = self.seeds * objective.n_clusters
        seeds = over_seed(objective, *points, many, run.coins, self.tree.restarts)
        centers = _reduced(run, plan, points, seeds, size)
        steps = median_steps(run, centers, plan.radii.parameter, plan.steps)
        with suppress(RunEnded):
            run.report(centers[None])
            return Clustering.of(*take_steps(run, steps, centers, size, AVERAGE), cells)
        return Clustering.of(run.path(), cells=cells)


def _reduced(
    run: Run[CentersObjective, Reals],
    plan: Plan,
    points: tuple[Floats, Floats],
    seeds: Floats,
    size: int,
) -> Floats:
    """(k, d): one clipped step of the seeds, then medians of where it moves them.

    In few columns the points of cells are clustered, as in `seeding.reduce`. Released: the noisy
    counts and sums of the step. Cost: one histogram of norms and one step.
    """
    objective, many = run.objective.with_clusters(len(seeds)), len(seeds)
    steps = plan.lloyd(run, seeds, plan.seeding)
    counts, sums = steps.released(run, objective, seeds)
    least = max(1.0, size / (20 * many))
    moved = objective.project(steps.moved(objective, seeds, counts, sums, least))
    counts = np.maximum(counts, size / (100 * many))
    blur = (steps.radius or 0) * objective.candidate_units
    blur /= l2_in_l1(objective.n_features) if steps.norm == 1 else 1.0
    if objective.n_features <= MANY_COLUMNS:
        moved, counts = carried(*points, seeds, moved, counts)
        blur /= CELL_BLUR
    k = run.objective.n_clusters
    return objective.project(weighted_medians(moved, counts, k, run.coins, RESTARTS, blur))


# ------------------------------------------------------------------------------------ median steps


@dataclass(frozen=True)
class MedianSteps(Steps):
    """Steps on residuals of a small radius, which go `lengthen` times as far as their mean."""

    lengthen: float

    def moved(
        self,
        objective: CentersObjective,
        centers: Floats,
        counts: Floats,
        sums: Floats,
        least: float,
    ) -> Floats:
        """(k, d): where noisy counts and sums move the centres, as Weiszfeld's step does."""
        nearer = super().moved(objective, centers, counts, sums, least)
        return centers + self.lengthen * (nearer - centers)


def median_steps(
    run: Run[CentersObjective, Reals], centers: Floats, epsilon: float, cost: Event
) -> MedianSteps:
    """Steps of this cost about these centres, on residuals of a radius that is bought.

    Released: ten counts. Cost: one pure release of epsilon.
    """
    objective, norm = run.objective, norm_of(cost)
    unit, usual = objective.candidate_units, WIDER * radius_by_rule(objective, norm)
    noise = DiscreteLaplace(epsilon, run.neighbours.changes)
    radii = tried_radii(usual / unit)
    counts: Array = run.release(noise, objective.norm_counts(centers, radii, norm))
    radius, lengthen = usual / unit, 1.0
    if LEAST_RECORDS * noise.scale <= (run.n_public or 0):
        radius, lengthen = short_radius(radii, counts)
    share = 3 / 13 if norm == 2 else None
    settings = Lloyd(residual=True, radius=radius * unit, count_share=share)
    steps = Steps.of(settings, objective, cost, run.neighbours)
    return MedianSteps(**vars(steps), lengthen=lengthen)


def short_radius(radii: Integers, counts: Array) -> tuple[float, float]:
    """The radius that SHARE of the norms are within, and 1 / E min(1, radius / norm)."""
    shares = np.maximum(counts, 0) / max(1.0, float(np.maximum(counts, 0).sum()))
    within, middles = np.cumsum(shares)[:-1], bin_middles(radii)
    radius = float(radii[min(int(np.searchsorted(within, SHARE)), len(radii) - 1)])
    weight = float((shares * np.minimum(1.0, radius / middles)).sum())
    return radius, 1 / weight if weight > 0 else 1.0


# ----------------------------------------------------------------------------------- few columns


@dataclass(frozen=True, repr=False)
class CellMedians(Tree):
    """Settings of noisy counts of an adaptive partition, then weighted k-median.

    Parameters
    ----------
    shape_share : float, optional
        Fraction of the budget that finds the partition; the rest counts its cells.
    roots : int, optional
        Number of initial halvings that are made without a test; by default round(log2(3 k)).
    depth : int, optional
        Maximum depth: how often a cell may be halved.
    restarts : int, optional
        Number of restarts of k-median.

    See Also
    --------
    privfit.clustering.Tree : The same for k-means.
    privfit.clustering.Medians : For more columns.
    privfit.KMedian : The estimator that takes these settings, without facilities.

    Notes
    -----
    Released: the partition and a noisy count for each of its cells. Cost: two pure releases,
    together the whole epsilon; delta is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMedian
    >>> from privfit.clustering import CellMedians
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMedian(2, domain=(-1, 1), metric="l2", solver=CellMedians(depth=12)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """Release an adaptive partition and noisy counts of its cells; weighted k-median of them.

        Released: the partition and a count for each of its cells. Cost: two pure releases, together
        the grant's epsilon (proof: `privtree.py`).
        """
        objective, k = run.objective, run.objective.n_clusters
        plan = self.plan(objective, run.whole.epsilon, run.neighbours)
        run.set_aside(*plan.events)
        cells, used = plan.draw(run)
        run.note(**used)
        points, weights, blur = _quarters(objective, cells)
        centers = run.space.middle
        if len(points):
            centers = weighted_medians(points, weights, k, run.coins, self.restarts, blur)
        run.report(objective.project(centers)[None])
        return Clustering.of(run.path(), cells=cells)


def _quarters(objective: CentersObjective, cells: Cells) -> tuple[Floats, Floats, float]:
    """(m, d), (m,): points a quarter from the sides of cells, which share the cell's weight.

    And how far records are from their point, if they fill its part of the cell evenly. In many
    columns a cell is its middle: there would be 2^d points.
    """
    weights, d = cells.weights, cells.low.shape[1]
    filled, parts, unit = weights > 0, 2 if d <= 3 else 1, objective.candidate_units
    points, share = cells.spread(weights, parts)
    sides = (cells.high - 1 - cells.low)[filled] / parts  # of what a point stands for
    spread = np.sqrt(np.square(sides).sum(axis=1) / 12)
    blur = float(np.average(spread, weights=weights[filled])) * unit if filled.any() else 0.0
    return points * unit, share, blur


# ------------------------------------------------------------------------------------ public rules

METHODS: dict[str, type[Settings]] = {
    "medians": Medians,
    "cell_medians": CellMedians,
    "hybrid": Hybrid,
    "mean": Mean,
}


def best_of(
    objective: CentersObjective, budget: Budget, neighbours: Neighbours, size: int | None
) -> Settings:
    """The method of solver='auto' without facilities.

    It is the rule of k-means, with medians; and `Medians` for two or three clusters, too, if the
    rule would choose `OverSeeded` for more of them.
    """
    k, d = objective.n_clusters, objective.n_features
    found = kmeans.best_of(objective, budget, neighbours, size)
    if type(found) is Tree:
        return CellMedians()
    if 1 < k <= FEW_CLUSTERS and d > FEW_CLUSTERS:
        more = objective.with_clusters(FEW_CLUSTERS + 1)
        if type(kmeans.best_of(more, budget, neighbours, size)) is OverSeeded:
            return Medians()
    return Medians() if type(found) is OverSeeded else found
