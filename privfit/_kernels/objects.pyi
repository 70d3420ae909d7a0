"""Cells that are Python objects; see objects.pyx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def look_up(
    cells: list[Any], first: int, seen: dict[Any, int], unseen: int, out: NDArray[np.int64]
) -> None: ...
