"""k-means and k-median: by noisy steps, trees, grids, searches, and post-processing."""

from privfit.base.cautions import old_names
from privfit.clustering.averages import Mean
from privfit.clustering.grids import Tree, UniformGrid
from privfit.clustering.hybrid import Hybrid
from privfit.clustering.kmedian import Coreset, Greedy, Swaps, Synopsis
from privfit.clustering.lloyd import Lloyd
from privfit.clustering.medians import CellMedians, Medians
from privfit.clustering.over_seeded import OverSeeded
from privfit.clustering.parts import CellCounts, ClusterSums, KMeansTrace, NormCounts
from privfit.clustering.postprocess import mcmc
from privfit.clustering.trace import LloydTrace

__all__ = [
    "CellCounts",
    "CellMedians",
    "ClusterSums",
    "Coreset",
    "Greedy",
    "Hybrid",
    "KMeansTrace",
    "Lloyd",
    "LloydTrace",
    "Mean",
    "Medians",
    "NormCounts",
    "OverSeeded",
    "Swaps",
    "Synopsis",
    "Tree",
    "UniformGrid",
    "mcmc",
]

__getattr__ = old_names(__name__, {"Gupta": "Swaps"})
