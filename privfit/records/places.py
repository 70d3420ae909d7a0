"""Where records may live: in memory, in a `Stream`, or on the workers of a Dask cluster."""

from __future__ import annotations

import sys
from typing import Any

from privfit.records.stream import Stream
from privfit.records.sums import Held, Make, R, Sums


def is_partitioned(X: Any) -> bool:
    """Whether records are a `Stream` or a collection of Dask; else they are in memory.

    A list of Dask's partitions is such a collection, too.
    """
    one = X[0] if isinstance(X, list) and X else X
    return isinstance(one, Stream) or _is_of_dask(one)


def _is_of_dask(one: Any) -> bool:
    """Whether this is a collection or a future; dask is not imported to find out."""
    if hasattr(type(one), "__dask_graph__"):
        return True
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(one, distributed.Future)


def sums_of(
    X: Any, y: Any, make: Make[R], n_threads: int | None = None, more_columns: int = 0
) -> Sums[R]:
    """The sums over what ``make(records, labels)`` packs of X and y, where these lie.

    `more_columns` are those that a packed record has besides its own.
    """
    if not is_partitioned(X):
        return Held(make(X, y))
    if isinstance(X, Stream):
        return X.place(y, make, n_threads, more_columns)
    from privfit.records.dask import place_on_workers

    return place_on_workers(X, y, make)
