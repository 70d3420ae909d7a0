"""Private k-means: its methods by name, and the cost of a clustering.

==============  ==================================================================================
`Lloyd`         noisy counts and sums of the clusters, step by step (`lloyd.py`)
`UniformGrid`   noisy counts of a fixed grid, then weighted k-means (`grids.py`)
`Tree`          noisy counts of an adaptive partition, then weighted k-means (`grids.py`)
`Hybrid`        a tree to find a start, then Lloyd steps on clipped residuals (`hybrid.py`)
==============  ==================================================================================

Searches and sample-and-aggregate fit centres, too.
"""

from __future__ import annotations

from privfit.base.typing import Floats
from privfit.clustering.grids import Tree, UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.lloyd import Lloyd
from privfit.objectives import CentersObjective
from privfit.privacy.mechanisms import DiscreteLaplace
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
    "privgene": PrivGene,
    "eem": EEM,
    "local": Local,
    "dpsga": DPSGA,
    "gupt": Gupt,
}


def best_of(objective: CentersObjective) -> Tree | Hybrid:
    """The method of solver='auto': a tree alone up to two columns, otherwise a hybrid."""
    return Tree() if objective.n_features <= 2 else Hybrid()


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
