"""Smooth losses of linear models; see smooth.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.linear import SparseRows

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]

def dense_margins(
    panels: Int32, tile_rows: Int64, w: Int64, start: int, z: Int64, n_threads: int
) -> None: ...
def sparse_margins(
    records: SparseRows, tile_rows: Int64, w: Int64, a: int, z: Int64, n_threads: int
) -> None: ...
def slopes(
    z: Float64,
    tile_rows: Int64,
    width: float,
    slope: Float64,
    bend: Float64,
    loss: Float64,
    n_threads: int,
) -> None: ...
def dense_pull(
    panels: Int32, tile_rows: Int64, residual: Float64, a: int, out: Int64
) -> None: ...
def sparse_pull(
    records: SparseRows, tile_rows: Int64, residual: Float64, a: int, out: Int64
) -> None: ...
def whole_sum(values: Float64, unit: float) -> int: ...
