"""Smooth losses of linear models; see smooth.pyx for shapes and units."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import CodeRows, SparseRows

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]

HALF_BITS: int
MOST_SUMMED: int

class Packed:
    columns: int

    @staticmethod
    def dense(panels: Int32, a: int) -> Packed: ...
    @staticmethod
    def sparse(records: SparseRows, d: int, a: int) -> Packed: ...
    @staticmethod
    def coded(records: CodeRows, bins: int, a: int) -> Packed: ...

def margins(records: Packed, tile_rows: Int64, w: Int64, z: Int64, n_threads: int) -> None: ...
def slopes(
    records: Packed,
    tile_rows: Int64,
    w: Int64,
    units: Float64,
    width: float,
    table: Float64,
    per_unit: float,
    scale: float,
    bend: Float64,
    z: Int64,
    work: Float64,
    summed: Int64,
    sums: Int64,
    halves: Int64,
) -> None: ...
def bends(
    records: Packed,
    tile_rows: Int64,
    v: Int64,
    units: Float64,
    bend: Float64,
    z: Int64,
    work: Float64,
    summed: Int64,
    sums: Int64,
    halves: Int64,
) -> None: ...
def permuted_descent(
    start: Int64,
    column: Int32,
    value: Float64,
    offset: Float64,
    sign: Float64,
    order: Int64,
    hinge: bool,
    batch: int,
    passes: int,
    step: float,
    ridge: float,
    radius: float,
    gradient: Float64,
    w: Float64,
) -> None: ...
