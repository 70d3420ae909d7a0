"""Clipped distances to facilities; see facility.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import SparseRows

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Small: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

STRIP_ROWS: int
TOGETHER: int
QUICK_CODES: bool

def dense_distances(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    low: int,
    high: int,
    shift: int,
    work: Int32,
    out: Small,
) -> None: ...
def short_distances(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    level: Int32,
    chunk: int,
    shift: int,
    top: int,
    work: Int32,
    out: Small,
) -> None: ...
def onehot_distances(
    records: SparseRows,
    tile_rows: Int64,
    w: Int32,
    low: int,
    high: int,
    shift: int,
    work: Int32,
    out: Small,
) -> None: ...
def code_distances(
    codes: Bytes,
    places: Bytes,
    looks: Bytes,
    stored: Bytes,
    least: int,
    out: Small,
    n_threads: int,
) -> None: ...
def root_distances(
    panels: NDArray[np.int16],
    tile_rows: Int64,
    places: NDArray[np.float64],
    low: float,
    high: float,
    unit: float,
    work: NDArray[np.float64],
    out: Small,
) -> None: ...
def least_sums(
    matrix: Small,
    tile_rows: Int64,
    sets: Int64,
    out: Int64,
) -> None: ...
def nearest_two(
    matrix: Small,
    members: Int64,
    distances: Small,
    which: Int32,
    n_threads: int,
) -> None: ...
def swap_sums(
    matrix: Small,
    tile_rows: Int64,
    distances: Small,
    which: Int32,
    replaced: Int64,
    facility: Int64,
    work: Small,
    out: Int64,
) -> None: ...
def addition_sums(
    matrix: Small,
    nearest: Small,
    out: Int64,
    n_threads: int,
) -> None: ...
def all_swap_sums(
    matrix: Small,
    distances: Small,
    which: Int32,
    work: Int32,
    out: Int64,
) -> None: ...
