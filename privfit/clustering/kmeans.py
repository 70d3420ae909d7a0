"""Private k-means: its methods by name, and the cost of a clustering.

==============  ==================================================================================
`Lloyd`         noisy counts and sums of the clusters, step by step (`lloyd.py`)
`UniformGrid`   noisy counts of a fixed grid, then weighted k-means (`grids.py`)
`Tree`          noisy counts of an adaptive partition, then weighted k-means (`grids.py`)
`Hybrid`        a tree to find a start, then Lloyd steps on clipped residuals (`hybrid.py`)
`OverSeeded`    a tree, more seeds than clusters, bought radii, then Lloyd steps (`over_seeded.py`)
`Mean`          all centres at the mean, where noise leaves no more (`averages.py`)
==============  ==================================================================================

Searches and sample-and-aggregate fit centres, too.
"""

from __future__ import annotations

from privfit.base.typing import Floats
from privfit.clustering.averages import Mean
from privfit.clustering.grids import Tree, UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.over_seeded import OverSeeded, buys_deviations, buys_frame, too_noisy
from privfit.clustering.signals import Signal
from privfit.objectives import CentersObjective
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.runs.payment import Paid
from privfit.runs.settings import Settings
from privfit.searches.dpsga import DPSGA
from privfit.searches.privgene import EEM, Local, PrivGene
from privfit.searches.sample_aggregate import Gupt

__all__ = ["METHODS", "best_of", "inertia_noise", "private_inertia"]

METHODS: dict[str, type[Settings]] = {
    "lloyd": Lloyd,
    "grid": UniformGrid,
    "tree": Tree,
    "hybrid": Hybrid,
    "over_seeded": OverSeeded,
    "mean": Mean,
    "privgene": PrivGene,
    "eem": EEM,
    "local": Local,
    "dpsga": DPSGA,
    "gupt": Gupt,
}


RESTARTS = 100  # of k-means of a tree's cells, of which there are few
STRONG = 0.0025  # noise below which seeds are cheap
MOST_PER_CLUSTER, MOST_SEEDS = 5, 40  # of a strong signal
TREE_SHARE, SMALL_TREE_SHARE = 0.26, 0.15  # of epsilon; the small one beside noisy seeds
NOISY = 0.15  # noise of steps up to which noisy seeds are taken
FEW_RECORDS = 250.0  # epsilon n / k below which a pure fit has no records to spare for seeds


def best_of(
    objective: CentersObjective, budget: Budget, neighbours: Neighbours, size: int | None
) -> Settings:
    """The method of solver='auto', by a public rule in (n, d, k, epsilon, delta, relation).

    A tree alone up to two columns; the mean alone where noise leaves no more; a hybrid for three
    columns, for one cluster, up to three unless the signal is strong, and where records are few or
    not counted; otherwise `OverSeeded`, by the strength of the signal.
    """
    d, k = objective.n_features, objective.n_clusters
    if d <= 2:
        return Tree(restarts=RESTARTS)
    if size is None or budget.epsilon == 0:  # which the ledger refuses
        return Hybrid()
    signal = Signal.of(objective, budget, neighbours, size)
    if signal.is_drowned:
        return Mean()
    few = signal.is_pure and budget.epsilon * signal.size / k < FEW_RECORDS
    alone = k == 1 or (k <= 3 and signal.noise >= STRONG)  # more seeds would add little
    hidden = too_noisy(signal) and not (signal.is_pure and signal.noise <= NOISY)
    if d == 3 or alone or few or hidden:
        forced = signal.is_pure and budget.delta > 0
        return Hybrid(pure=True) if forced else Hybrid()
    return _over_seeded(signal)


def _over_seeded(signal: Signal) -> OverSeeded:
    """The seeds of `auto`: more where the signal is strong.

    Where the step of seeds is mostly noise, the mean is worth more than a tree.
    """
    k = signal.n_clusters
    if too_noisy(signal):
        return OverSeeded(mean=True, tree_share=SMALL_TREE_SHARE)
    is_strong = signal.noise < STRONG
    seeds = min(MOST_PER_CLUSTER, k, MOST_SEEDS // k) if is_strong else 2
    frame = True if buys_frame(signal) else None
    scales = True if frame is None and buys_deviations(signal) else None
    return OverSeeded(
        seeds=max(2, seeds), frame=frame, tree_share=TREE_SHARE, deviations=scales
    )  # fmt: skip


def private_inertia(
    objective: CentersObjective, centers: Floats, noise: DiscreteLaplace, paid: Paid
) -> float:
    """The sum of squared distances to the nearest centres, with discrete Laplace noise, >= 0.

    One release of the whole budget.
    """
    cost = -paid.release(noise, objective.scores(centers[None]))[0]
    return max(0.0, float(cost * objective.unit))


def inertia_noise(objective: CentersObjective, centers: Floats, epsilon: float) -> DiscreteLaplace:
    """The noise: a record's cost is between 0 and the domain's largest, for all neighbours."""
    return DiscreteLaplace(epsilon, max(1, objective.largest_cost(centers[None])))
