"""k-means and k-median: by noisy steps, trees, grids, searches, and post-processing."""

from privfit.base.cautions import old_names
from privfit.clustering.grids import Tree, UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.kmedian import Coreset, Greedy, Swaps, Synopsis
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.postprocess import mcmc
from privfit.clustering.trace import LloydTrace

__all__ = [
    "Coreset",
    "Greedy",
    "Hybrid",
    "Lloyd",
    "LloydTrace",
    "Swaps",
    "Synopsis",
    "Tree",
    "UniformGrid",
    "mcmc",
]

__getattr__ = old_names(__name__, {"Gupta": "Swaps"})
