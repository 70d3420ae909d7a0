"""What a fitted model says of records that are not in memory at once: block by block.

Of a stream the answers are an array. Of a Dask collection they are a Dask array, and of a list of
partitions a list: nothing is computed before it is asked for, and workers get a copy of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privfit.records.stream import Stream

__all__ = ["Form", "answers_of"]


class Form(NamedTuple):
    """The type of an answer, and the number of its columns; none for one number per record."""

    dtype: Any
    columns: int | None = None

    @property
    def tail(self) -> tuple[int, ...]:
        """The shape of the answer for one record."""
        return () if self.columns is None else (self.columns,)


def answers_of(X: Any, answer: Callable[[Any], Any], form: Form) -> Any:
    """The answers for all records of a stream or a Dask collection, in order."""
    if isinstance(X, Stream):
        parts = [np.empty((0, *form.tail), form.dtype), *map(answer, X.blocks())]
        return np.concatenate(parts)
    from dask import delayed

    from privfit.records.dask import partitions_of

    found = [delayed(answer, pure=False)(part) for part in partitions_of(X)]
    if isinstance(X, list):
        return found
    import dask.array as da

    rows = getattr(X, "chunks", None)
    counts = rows[0] if rows else [math.nan] * len(found)
    blocks = [da.from_delayed(one, (n, *form.tail), form.dtype)
              for one, n in zip(found, counts, strict=True)]  # fmt: skip
    return da.concatenate(blocks, axis=0)
