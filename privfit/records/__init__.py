"""Where records live, and how they are packed: in memory, on disk, or on the workers of a cluster.

Scores add up exactly, so where records live is a detail. An estimator's `fit` takes arrays as ever;
a `Stream` of files or memory-mapped arrays that do not fit into memory; or Dask arrays, DataFrames
and delayed partitions, which stay on their workers. `place` cuts such records into parts, which are
asked the same questions and whose answers are added. The same seed gives the same model, bit for
bit.
"""

from __future__ import annotations

from typing import Any

from privfit.records.parts import Make, Parts
from privfit.records.stream import Stream

__all__ = ["Stream", "place"]


def place(X: Any, y: Any, make: Make, n_threads: int | None = None, more_columns: int = 0) -> Parts:
    """The parts that ``make(records, labels)`` makes of X and y, where these lie.

    `more_columns` are those that a packed record has besides its own.
    """
    if isinstance(X, Stream):
        return X.place(y, make, n_threads, more_columns)
    from privfit.records.dask import place_on_workers

    return place_on_workers(X, y, make)
