"""Cells of CSV text; see cells.pyx."""

import numpy as np
from numpy.typing import NDArray

def count_lines(text: NDArray[np.uint8]) -> int: ...
def split_records(
    text: NDArray[np.uint8],
    first: int,
    last: bool,
    delimiter: int,
    widest: int,
    longest: int,
    place: NDArray[np.int32],
    out: NDArray[np.int64],
) -> tuple[int, int]: ...
def read_numbers(
    text: NDArray[np.uint8],
    cells: NDArray[np.int64],
    out: NDArray[np.float64],
    left: NDArray[np.int64],
) -> int: ...
