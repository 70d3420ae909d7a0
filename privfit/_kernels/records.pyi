"""Packed records, and a loss on its grid; see records.pyx."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
UInt16: TypeAlias = NDArray[np.uint16]

PANEL_ROWS: int
QUAD_SIZE: int
LANE_WIDTH: int
BLOCK_ROWS: int
RESIDUAL_UNIT: float

class Loss:
    def __init__(
        self,
        name: str,
        a: int,
        b: int,
        c: int,
        C: float = 1.0,
        weight_0: float = 1.0,
        weight_1: float = 1.0,
    ) -> None: ...

class CodeRows:
    def __init__(self, codes: UInt16, numbers: Int16) -> None: ...

class SparseRows:
    def __init__(
        self,
        one_start: Int64,
        one_column: Int32,
        value_start: Int64,
        value_column: Int32,
        value: Int16,
    ) -> None: ...
