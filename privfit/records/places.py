"""Where records may be: in memory, in a `Stream`, or on the workers of a Dask cluster."""

from __future__ import annotations

import sys
from typing import Any

from privfit.records.stream import Stream
from privfit.records.sums import Held, Make, R, Sums


def is_partitioned(X: Any) -> bool:
    """Whether records are a `Stream` or a Dask collection, rather than in memory.

    Parameters
    ----------
    X : object
        The records. A list of Dask partitions is a Dask collection, too.

    Returns
    -------
    bool
        False for records in memory.

    See Also
    --------
    sums_of : Pack records in place.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.records import Stream, is_partitioned
    >>> is_partitioned(np.eye(2)), is_partitioned(Stream(np.eye(2)))
    (False, True)
    """
    one = X[0] if isinstance(X, list) and X else X
    return isinstance(one, Stream) or _is_of_dask(one)


def _is_of_dask(one: Any) -> bool:
    """Whether this is a Dask collection or a future; dask is not imported to find out."""
    if hasattr(type(one), "__dask_graph__"):
        return True
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(one, distributed.Future)


def of_a_fit(X: Any) -> Any:
    """Records that a fit may read several times: a stream's memory limit is checked at first.

    Parameters
    ----------
    X : object
        The records.

    Returns
    -------
    object
        A copy of a stream; anything else as it is.
    """
    return X.of_a_fit() if isinstance(X, Stream) else X


def sums_of(
    X: Any, y: Any, make: Make[R], n_threads: int | None = None, more_columns: int = 0
) -> Sums[R]:
    """Pack records in the place where they are stored.

    Parameters
    ----------
    X : array, DataFrame, dict of columns, Stream or Dask collection
        The records.
    y : array, str, Dask collection or None
        Their labels, or the name of their column in a stream of tables.
    make : callable (records, labels) -> Rows
        Packs a table of records with their labels.
    n_threads : int or None, default=None
        Number of threads; by default as many as there are cores.
    more_columns : int, default=0
        Number of columns that a packed record has in addition to its own.

    Returns
    -------
    Sums
        Sums over the packed records. They are private.

    See Also
    --------
    Sums : What can be asked.

    Examples
    --------
    >>> import numpy as np
    >>> from functools import partial
    >>> from privfit.records import sums_of
    >>> from privfit.records.binary import BinaryRows
    >>> made_up = np.array([[1, 0], [1, 1], [0, 1]])
    >>> sums_of(made_up, np.array([0, 0, 1]), partial(BinaryRows.pack, n_classes=2)).n_records
    3
    """
    if not is_partitioned(X):
        return Held(make(X, y))
    if isinstance(X, Stream):
        return X.place(y, make, n_threads, more_columns)
    from privfit.records.dask import place_on_workers

    return place_on_workers(X, y, make)
