"""Cells of dense records in a box that is halved again and again; see halvings.pyx."""

import numpy as np
from numpy.typing import NDArray

def cells(
    panels: NDArray[np.int16],
    tile_rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    bits: NDArray[np.uint64],
    out: NDArray[np.uint64],
    n_threads: int,
) -> None: ...
