"""Records put into panels; see panels.pyx."""

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
def pack_pair(
    one: NDArray[np.int16],
    other: NDArray[np.int16],
    rows: NDArray[np.int64],
    j: int,
    panels: NDArray[np.int16],
    n_threads: int,
) -> None: ...
def move_rows(found: NDArray[np.int32], first: int, out: NDArray[np.int32]) -> None: ...
