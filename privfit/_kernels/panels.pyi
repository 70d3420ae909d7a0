"""Records of a box, put into panels; see panels.pyx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def pack_rows(
    X: NDArray[Any],
    box: NDArray[np.float64],
    places: NDArray[np.int64],
    first: int,
    work: NDArray[np.int16],
    panels: NDArray[np.int16],
) -> int: ...
