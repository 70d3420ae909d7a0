"""Types of arrays, of the generator that proposals are drawn with, and of what has records."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Coins", "Counted", "Flags", "Floats", "Integers", "Rows", "SparseRows"]

Array: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Coins: TypeAlias = np.random.Generator  # never sees records: see `runs`


class Counted(Protocol):
    """What has a number of records, which is looked at only where it is public."""

    @property
    def n_records(self) -> int:
        """How many records there are."""


class SparseRows(Protocol):
    """A sparse matrix of SciPy, which has no types of its own, by rows."""

    data: Floats
    indices: Integers

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def __getitem__(self, rows: Integers, /) -> "SparseRows":
        """Some of the rows."""

    def toarray(self) -> Floats:
        """The same with its zeros."""


Rows: TypeAlias = Floats | SparseRows  # (n, d)
