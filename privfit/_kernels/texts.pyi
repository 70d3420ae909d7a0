"""Texts that are looked up in a table; see texts.pyx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def add_texts(
    cells: NDArray[np.int64],
    kept: NDArray[np.uint8],
    entries: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None: ...
def find_texts(
    text: NDArray[np.uint8],
    cells: NDArray[np.int64],
    slots: NDArray[np.int64],
    kept: NDArray[np.uint8],
    absent: int,
    out: NDArray[np.int64],
) -> int: ...
def cells_between(
    offsets: NDArray[Any], valid: NDArray[np.uint8], first: int, out: NDArray[np.int64]
) -> None: ...
def cells_of_points(
    points: NDArray[np.uint32], text: NDArray[np.uint8], out: NDArray[np.int64]
) -> None: ...
