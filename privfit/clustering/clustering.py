"""What a k-means method released in addition to its path."""

from __future__ import annotations

from dataclasses import dataclass

from privfit.clustering.postprocess import LloydTrace
from privfit.clustering.sizes import Sizes
from privfit.privacy.privtree import Cells
from privfit.runs.paths import Path

__all__ = ["Clustering"]


@dataclass(frozen=True, eq=False, repr=False)
class Clustering(Path):
    """The centres of each step, and what they were computed from.

    `trace` has the noisy counts and sums of plain Lloyd steps, for post-processing; `sizes` the
    noisy sizes of the clusters, if the releases tell them; `cells` the counts of a grid or tree.
    """

    trace: LloydTrace | None = None
    sizes: Sizes | None = None
    cells: Cells | None = None

    @classmethod
    def of(
        cls,
        path: Path,
        trace: LloydTrace | None = None,
        sizes: Sizes | None = None,
        cells: Cells | None = None,
    ) -> Clustering:
        """A path with what it was computed from."""
        return cls(**vars(path), trace=trace, sizes=sizes, cells=cells)
