"""Columns of numbers and of codes; see columns.pyx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS: dict[str, int]

def narrow(entry: NDArray[np.int64], odd: int, out: NDArray[np.uint8]) -> bool: ...
def take(
    codes: NDArray[Any], kind: int, table: NDArray[np.int64], odd: int, out: NDArray[np.uint8]
) -> bool: ...
def code_numbers(
    numbers: NDArray[Any],
    kind: int,
    cut: NDArray[np.float32],
    low: float,
    high: float,
    one: float,
    odd: int,
    out: NDArray[np.uint8],
) -> bool: ...
def code_table(
    numbers: NDArray[Any],
    kind: int,
    ranges: NDArray[np.float64],
    odd: NDArray[np.int32],
    seen: NDArray[np.uint8],
    out: NDArray[np.int16],
) -> None: ...
def find_numbers(
    numbers: NDArray[Any],
    kind: int,
    known: NDArray[np.float64],
    entries: NDArray[np.int64],
    odd: int,
    out: NDArray[np.uint8],
) -> bool: ...
