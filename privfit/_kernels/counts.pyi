"""Records that list their ones; see counts.pyx."""

import numpy as np
from numpy.typing import NDArray

def count_ones(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    label: NDArray[np.int32],
    work: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None: ...
def sample_ones(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    most: int,
    key: int,
    out_start: NDArray[np.int64],
    work: NDArray[np.uint64],
    out: NDArray[np.int32],
) -> None: ...
