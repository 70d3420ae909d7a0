"""Where records are stored and how they are packed: in memory, on disk, or on a cluster's workers.

Scores add up exactly, so it does not matter where the records are. An estimator's `fit` takes
arrays as usual; a `Stream` of files or memory-mapped arrays that do not fit into memory; or Dask
arrays, DataFrames and delayed partitions, which stay on their workers. `sums_of` packs them in
place, into tables of one kind (`LinearRows`, `CentersRows`, ...), and an objective queries their
`Sums`. The same seed gives the same model, bit for bit.
"""

from privfit.records.places import is_partitioned, sums_of
from privfit.records.stream import Stream
from privfit.records.sums import Sums

__all__ = ["Stream", "Sums", "is_partitioned", "sums_of"]
