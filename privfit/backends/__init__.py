"""Where records live: in memory, on disk, or on the workers of a Dask cluster.

Scores add up exactly, so where records live is a detail. An estimator's `fit` takes arrays as ever;
a `Stream` of files or memory-mapped arrays that do not fit into memory; or Dask arrays, DataFrames
and delayed partitions, which stay on their workers. `place` cuts such records into parts, and the
partitioned objectives of `parts` ask every part the same questions and add the answers. The same
seed gives the same model, bit for bit.
"""

from __future__ import annotations

from typing import Any

from privfit.backends.parts import (
    BinaryPart,
    CentersPart,
    LinearPart,
    Make,
    Part,
    PartitionedBinary,
    PartitionedCenters,
    PartitionedLinear,
    Parts,
    as_table,
)
from privfit.backends.stream import Stream

__all__ = [
    "BinaryPart",
    "CentersPart",
    "LinearPart",
    "Part",
    "PartitionedBinary",
    "PartitionedCenters",
    "PartitionedLinear",
    "Parts",
    "Stream",
    "as_table",
    "is_partitioned",
    "place",
]


def is_partitioned(X: Any) -> bool:
    """Whether records lie in parts: in a `Stream`, or on the workers of a Dask cluster."""
    return isinstance(X, Stream) or _is_dask(X)


def _is_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or a list of delayed partitions; Dask is not imported."""
    one = X[0] if isinstance(X, list) and X else X
    return type(one).__module__.partition(".")[0] in ("dask", "dask_expr")


def place(X: Any, y: Any, make: Make, n_threads: int | None = None) -> Parts:
    """The parts that ``make(records, labels)`` makes of X and y, where these lie."""
    if isinstance(X, Stream):
        return X.place(y, make, n_threads)
    from privfit.backends.cluster import place_on_workers

    return place_on_workers(X, y, make)
