"""Types of arrays, and of the generator that proposals are drawn with."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Coins", "Floats", "Integers"]

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Coins: TypeAlias = np.random.Generator  # never sees records: see `runs`
