"""Class-conditional counts of features; see counts.pyx."""

import numpy as np
from numpy.typing import NDArray

def count_ones(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    label: NDArray[np.int32],
    work: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None: ...
