"""k-means and k-median: from noisy steps, trees, grids, searches, and post-processing."""

from privfit.clustering.kmeans import Hybrid, Lloyd, Tree, UniformGrid
from privfit.clustering.kmedian import Coreset, Greedy, Gupta, Synopsis
from privfit.clustering.postprocess import mcmc
from privfit.clustering.trace import LloydTrace

__all__ = [
    "Coreset",
    "Greedy",
    "Gupta",
    "Hybrid",
    "Lloyd",
    "LloydTrace",
    "Synopsis",
    "Tree",
    "UniformGrid",
    "mcmc",
]
