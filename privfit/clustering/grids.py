"""Private k-means from noisy cell counts: a fixed grid, or an adaptive tree, then weighted k-means.

==============  ==================================================================================
`UniformGrid`   noisy counts of a fixed grid, then weighted k-means (EUGkM: Su, Cao, Li, Bertino,
                Jin 2016)
`Tree`          noisy counts of an adaptive partition (`privtree.py`), then weighted k-means
==============  ==================================================================================

Everything after the release of the counts costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privfit.base.rulers import Ruler
from privfit.base.typing import Floats, Integers
from privfit.clustering.clustering import Clustering
from privfit.clustering.parts import CellCounts
from privfit.clustering.sizes import Sizes
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.privtree import MOST_LEVELS, Cells, Partition, check_depth
from privfit.runs.means import weighted_means
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Blank, Settings, blank, check_counts, check_split
from privfit.runs.spaces import Reals

__all__ = ["Tree", "UniformGrid", "summarised"]

MOST_CELLS = 2**17  # of a uniform grid
PARTS, FEW_COLUMNS = 3, 3  # a column of a cell, in few columns
DRAWN_IN = 0.7  # their distance from its middle: records are not even in a cell
KEPT_CELLS = 2**12  # for post-processing: a model file stays small, however fine the cells


@dataclass(frozen=True, repr=False)
class UniformGrid(Settings):
    """Settings of EUGkM: noisy counts of a fixed grid, then weighted k-means.

    Parameters
    ----------
    cells : int, optional
        Maximum number of cells; by default the paper's rule (n epsilon / 10)^(2d / (2 + d)), and at
        most 2^17. The rule needs a public number of records.
    restarts : int, optional
        Number of k-means restarts; the paper's published runs had one.
    paper : bool, default=False
        Whether to use the paper's number of restarts.

    See Also
    --------
    privfit.clustering.Tree : An adaptive partition instead of a grid.
    Hybrid : A few Lloyd steps afterwards.
    KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: a noisy count for each cell. Cost: one pure release of the whole epsilon; delta is not
    used. A record changes one count by one, or two counts if it is replaced.

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially private k-means clustering", CODASPY
    2016.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans, UniformGrid
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=UniformGrid(cells=100)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    takes: ClassVar[type[CentersObjective]] = CentersObjective

    without_size: ClassVar[str] = "UniformGrid(cells=...)"

    cells: int | None = None
    restarts: Blank[int] = blank(20, paper=1)
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "cells", "restarts")

    @property
    def needs_size(self) -> bool:
        return self.cells is None

    def plan(
        self, objective: CentersObjective, epsilon: float, neighbours: Neighbours
    ) -> _GridPlan:
        """The release of a grid with this budget; a record is in one cell.

        Parameters
        ----------
        objective : CentersObjective
            The objective.
        epsilon : float
            The budget.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        plan
            Its events, and a method that draws.
        """
        return _GridPlan(self, DiscreteLaplace(epsilon, neighbours.changes))

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        self.plan(task.objective, task.budget.epsilon, task.neighbours)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """Release noisy counts of a uniform grid; weighted k-means of the cells' middles.

        Released: a count for each cell. Cost: one pure release, the grant's epsilon: a record
        changes one count by one, two if it is replaced.
        """
        plan = self.plan(run.objective, run.whole.epsilon, run.neighbours)
        return _summarise(run, plan, self.restarts)


@dataclass(frozen=True)
class _GridPlan:
    """The one release of a grid."""

    settings: UniformGrid
    mechanism: DiscreteLaplace
    parts: ClassVar[int] = 1  # cells are small

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.mechanism.event,)

    def draw(self, run: Run[CentersObjective, Reals]) -> tuple[Cells, dict[str, Any]]:
        """The noisy cells, and the settings as they were used."""
        parts = self._parts(run)
        used = {"cells": math.prod(parts.tolist()), "parts": parts.tolist()}
        counts = run.release(self.mechanism, run.objective.grid_counts(parts))
        cells = _grid_cells(run.objective, parts, counts, self.mechanism.scale)
        return _kept(run, cells), used

    def _parts(self, run: Run[CentersObjective, Reals]) -> Integers:
        """(d,) parts of each column: add one to the widest while there are not too many cells."""
        objective, d = run.objective, run.objective.n_features
        wanted: float = self.settings.cells or self._cells_by_rule(self.settings.size(run), d)
        low, high = objective.bounds
        width = (high - low + 1).astype(np.float64)
        parts, most = np.ones(d, dtype=np.int64), min(wanted, MOST_CELLS)
        while True:
            axis = int(np.argmax(np.where(parts < width, width / parts, 0.0)))
            grown = math.prod(parts.tolist()) // parts[axis] * (parts[axis] + 1)
            if grown > most or parts[axis] >= width[axis]:
                return parts
            parts[axis] += 1

    def _cells_by_rule(self, n: int, d: int) -> float:
        """(n epsilon / 10)^(2d / (2 + d)), as published."""
        strength = max(n * self.mechanism.epsilon / 10, 1.0)
        return math.exp(min(50.0, 2 * d / (2 + d) * math.log(strength)))


def _grid_cells(
    objective: CentersObjective, parts: Integers, counts: Integers, scale: float
) -> Cells:
    """The cells of a grid with a positive weight: a grid has many, and most are empty."""
    filled = np.flatnonzero(counts > scale * math.log(2))
    stride = np.append(np.cumprod(parts[:0:-1])[::-1], 1)  # the last column varies fastest
    place = filled[:, None] // stride % parts
    low, high = objective.bounds
    first, last = (low + -(-p * (high + 1 - low) // parts) for p in (place, place + 1))
    return Cells(first, last, counts[filled], scale)


@dataclass(frozen=True, repr=False)
class Tree(Settings):
    """Settings of noisy counts of an adaptive partition, then weighted k-means.

    Parameters
    ----------
    shape_share : float, optional
        Fraction of the budget that finds the partition; the rest counts its cells.
    roots : int, optional
        Number of initial halvings that are made without a test; by default round(log2(3 k)).
    depth : int, optional
        Maximum depth: how often a cell may be halved.
    restarts : int, optional
        Number of k-means restarts.

    See Also
    --------
    privfit.UniformGrid : A fixed grid instead of an adaptive partition.
    privfit.Hybrid : A few Lloyd steps afterwards.
    privfit.KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: the partition and a noisy count for each of its cells. Cost: two pure releases,
    together the whole epsilon; delta is not used.

    References
    ----------
    J. Zhang, X. Xiao, X. Xie, "PrivTree: a differentially private algorithm for hierarchical
    decompositions", SIGMOD 2016.

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

    takes: ClassVar[type[CentersObjective]] = CentersObjective

    shape_share: float = 0.35
    roots: int | None = None
    depth: int = MOST_LEVELS
    restarts: int = 20

    def __post_init__(self) -> None:
        check_counts(self, "roots", "depth", "restarts")
        check_split(self, "shape_share")
        check_depth(self.depth)

    def plan(
        self,
        objective: CentersObjective,
        epsilon: float,
        neighbours: Neighbours,
        ruler: Ruler | None = None,
    ) -> TreePlan:
        """The releases of a tree with this budget.

        Parameters
        ----------
        objective : CentersObjective
            The objective.
        epsilon : float
            The budget.
        neighbours : Neighbours
            The neighbour relation.
        ruler : Ruler, optional
            The scale on which columns are halved, released before.

        Returns
        -------
        plan
            Its events, and a method that draws.
        """
        k = objective.n_clusters
        return TreePlan(Partition.plan(self, objective.bounds, k, epsilon, neighbours, ruler))

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        self.plan(task.objective, task.budget.epsilon, task.neighbours)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """Release an adaptive partition and noisy counts of its cells; weighted k-means of them.

        Released: the partition and a count for each of its cells. Cost: two pure releases, together
        the grant's epsilon (proof: `privtree.py`).
        """
        plan = self.plan(run.objective, run.whole.epsilon, run.neighbours)
        return _summarise(run, plan, self.restarts)


@dataclass(frozen=True)
class TreePlan:
    """The two releases of a tree."""

    partition: Partition

    @property
    def parts(self) -> int:
        """The points a column that a cell is clustered as; in many columns there would be many."""
        return PARTS if self.partition.halvings.width <= FEW_COLUMNS else 1

    @property
    def events(self) -> tuple[Event, ...]:
        return self.partition.events

    def draw(self, run: Run[CentersObjective, Reals]) -> tuple[Cells, dict[str, Any]]:
        """The noisy cells, and the settings as they were used."""
        halvings = self.partition.halvings
        cells = run.objective.cells(halvings.axes, halvings.ruler)
        return _kept(run, self.partition.grow(cells, run.release)), dict(self.partition.noted)


def _kept(run: Run[CentersObjective, Reals], cells: Cells) -> Cells:
    """The cells; those of the largest counts are kept for post-processing, if there are any."""
    unit = np.float64(run.objective.candidate_units)
    largest = np.sort(np.argsort(-cells.counts, kind="stable")[:KEPT_CELLS])
    low, high, counts = (part[largest] for part in (cells.low, cells.high, cells.counts))
    if len(largest):
        run.keep(CellCounts(unit * low, unit * high, counts.astype(np.float64), cells.scale))
    return cells


def _summarise(
    run: Run[CentersObjective, Reals], plan: _GridPlan | TreePlan, restarts: int
) -> Clustering:
    """All releases of a plan, and the centres of the resulting cells."""
    run.set_aside(*plan.events)
    cells, used = plan.draw(run)
    run.note(**used)
    centers = summarised(run, cells, restarts, plan.parts)
    run.report(centers[None])
    sizes = None  # of a grid only cells that stand out of the noise are kept: their sum is too high
    if isinstance(plan, TreePlan):
        sizes = Sizes.of_cells(cells, centers, run.objective.candidate_units)
    return Clustering.of(run.path(), sizes=sizes, cells=cells)


def summarised(
    run: Run[CentersObjective, Reals], cells: Cells, restarts: int, parts: int
) -> Floats:
    """k centres of the cells, weighted by their noisy counts; the start if all counts are 0.

    A cell is so many points a column, that share its weight: so one cell may have two centres.
    """
    objective, weights = run.objective, cells.weights
    if not (weights > 0).any():
        return objective.project(run.space.middle)
    points, shares = cells.spread(weights, parts, DRAWN_IN)
    k, n_threads, unit = objective.n_clusters, objective.n_threads, objective.candidate_units
    return objective.project(
        weighted_means(points * unit, shares, k, run.coins, restarts, n_threads)
    )
