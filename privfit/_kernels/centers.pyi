"""Distances of records to centres; see centers.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]

def costs(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    power: int,
    work: Int32,
    out: Int64,
) -> None: ...
def costs_wide(
    panels: Int16,
    tile_rows: Int64,
    centers: Float64,
    power: int,
    work: Float64,
    out: Int64,
) -> None: ...
def nearest_two(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    k: int,
    power: int,
    work: Int32,
    state: Int32,
    n_threads: int,
) -> None: ...
def swaps(
    panels: Int32,
    tile_rows: Int64,
    state: Int32,
    w: Int32,
    start: Int32,
    replaced: Int32,
    power: int,
    work: Int32,
    out: Int64,
) -> None: ...
def lloyd(
    panels: Int16,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    power: int,
    centers: Int32,
    radius: int,
    norm: int,
    work: Int32,
    counts: Int64,
    sums: Int64,
) -> None: ...
def lloyd_wide(
    panels: Int16,
    tile_rows: Int64,
    points: Float64,
    power: int,
    centers: Int32,
    radius: int,
    norm: int,
    work: Float64,
    which: Int32,
    counts: Int64,
    sums: Int64,
) -> None: ...
def norms(
    panels: Int16,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    power: int,
    centers: Int32,
    limits: Int64,
    norm: int,
    work: Int32,
    counts: Int64,
) -> None: ...
def norms_wide(
    panels: Int16,
    tile_rows: Int64,
    points: Float64,
    power: int,
    centers: Int32,
    limits: Int64,
    norm: int,
    work: Float64,
    which: Int32,
    counts: Int64,
) -> None: ...
def set_gaps(
    rows: Float64,
    row_level: Float64,
    centers: Float64,
    level: Float64,
    metric: int,
    work: Float64,
    out: Float64,
) -> None: ...
