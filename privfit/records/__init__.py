"""Where records live, and how they are packed: in memory, on disk, or on the workers of a cluster.

Scores add up exactly, so where records live is a detail. An estimator's `fit` takes arrays as ever;
a `Stream` of files or memory-mapped arrays that do not fit into memory; or Dask arrays, DataFrames
and delayed partitions, which stay on their workers. `sums_of` packs them where they are, to tables
of one kind (`LinearRows`, `CentersRows`, ...); an objective asks their `Sums`. The same seed gives
the same model, bit for bit.
"""

from privfit.records.places import is_partitioned, sums_of
from privfit.records.stream import Stream
from privfit.records.sums import Sums

__all__ = ["Stream", "Sums", "is_partitioned", "sums_of"]
