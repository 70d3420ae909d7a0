"""The chain over records from a pool; see pool.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
UInt8: TypeAlias = NDArray[np.uint8]
Float64: TypeAlias = NDArray[np.float64]

class Parts:
    def __init__(
        self,
        ids: Int32,
        vectors: Int32,
        counts: Float64,
        sums: Float64,
        count_weights: Float64,
        sum_weights: Float64,
        quadratic: UInt8,
        each: float,
    ) -> None: ...

def put_in(parts: Parts, chosen: Int32) -> None: ...
def log_likelihood(parts: Parts, part_of: Int32) -> float: ...
def walk(
    parts: Parts,
    chosen: Int32,
    index: Int64,
    offered: Int64,
    log_u: Float64,
    betas: Float64,
    values: Float64,
    best: Int32,
) -> int: ...
def locate(points: Float64, low: Float64, high: Float64, out: Int32) -> None: ...
