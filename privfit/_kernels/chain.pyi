"""The chain over synthetic data sets; see chain.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.random import BitSource

Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
UInt8: TypeAlias = NDArray[np.uint8]
UInt16: TypeAlias = NDArray[np.uint16]
UInt64: TypeAlias = NDArray[np.uint64]
Float64: TypeAlias = NDArray[np.float64]

CROWD_SIZE: int
STREAM_COUNT: int

class Mixture:
    def __init__(
        self,
        centers: Int16,
        n_assign: int,
        slots: UInt16,
        spread: Float64,
        precision: float,
        bounds: Float64,
        norm: int,
        limit: float,
    ) -> None: ...

def streams(source: BitSource) -> UInt64: ...
def quads(centers: Int16) -> tuple[Int32, Int32]: ...
def assign(mixture: Mixture, points: Int16, ids: UInt16, log_q: Float64) -> None: ...
def propose(
    mixture: Mixture, state: UInt64, n: int
) -> tuple[Int32, Int16, UInt16, Float64, Float64]: ...
def walk(
    mixture: Mixture,
    state: UInt64,
    points: Int16,
    ids: UInt16,
    log_q: Float64,
    rows: Float64,
    weight: Float64,
    quadratic: bool,
    betas: Float64,
    steps: int,
    tilt: float,
    best: Int16,
    stale: Int64,
    is_stale: UInt8,
    counters: Int64,
    values: Float64,
) -> None: ...
