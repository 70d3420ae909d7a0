"""Cells that are Python objects; see objects.pyx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def find_objects(
    cells: Any,
    first: int,
    seen: dict[Any, int],
    slots: NDArray[np.int64],
    kept: NDArray[np.uint8],
    out: NDArray[np.int64],
) -> int: ...
