"""Losses of linear models; see linear.pyx for shapes and units."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import Loss, SparseRows

Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]

HALF_BITS: int

def dense_losses(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    start: Int32,
    loss: Loss,
    work: Int32,
    out: Int64,
) -> None: ...
def dense_losses_wide(
    panels: Int16,
    tile_rows: Int64,
    w: Float64,
    start: Float64,
    loss: Loss,
    work: Float64,
    out: Int64,
) -> None: ...
def sparse_losses(
    records: SparseRows,
    tile_rows: Int64,
    w: Int32,
    pairs: Int32,
    a: int,
    loss: Loss,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_losses_wide(
    records: SparseRows,
    tile_rows: Int64,
    w: Float64,
    a: int,
    loss: Loss,
    work: Float64,
    out: Int64,
) -> None: ...
def dense_margin(
    panels: Int32,
    w: Int32,
    start: int,
    z: Int32,
    n_threads: int,
) -> None: ...
def sparse_margins(
    records: SparseRows,
    tile_rows: Int64,
    w: Int32,
    a: int,
    z: Int32,
    n_threads: int,
) -> None: ...
def losses_each(
    z: Int32,
    tile_rows: Int64,
    loss: Loss,
    out: Int32,
    n_threads: int,
) -> None: ...
def dense_moves(
    panels: Int32,
    tile_rows: Int64,
    z: Int32,
    columns: Int64,
    steps: Int32,
    intercept: int,
    loss: Loss,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_moves(
    state: Int32,
    segments: Int64,
    groups: Int64,
    rows: Int32,
    values: Int16,
    steps: Int32,
    loss: Loss,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_step(
    state: Int32,
    segments: Int64,
    rows: Int32,
    values: Int16,
    step: int,
    loss: Loss,
    work: Int32,
) -> int: ...
def dense_gradient(
    panels: Int32,
    tile_rows: Int64,
    w: Int32,
    start: int,
    loss: Loss,
    cap: int,
    caps: Int16,
    work: Int32,
    out: Int64,
) -> None: ...
def dense_gradient_wide(
    panels: Int16,
    tile_rows: Int64,
    w: Float64,
    start: float,
    loss: Loss,
    cap: int,
    caps: Int16,
    wide_z: Float64,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_gradient(
    records: SparseRows,
    tile_rows: Int64,
    w: Float64,
    narrow_w: Int32,
    a: int,
    loss: Loss,
    cap: int,
    caps: Int16,
    wide_z: Float64,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_lengths(
    records: SparseRows,
    tile_rows: Int64,
    columns: Int64,
    a: int,
    shift: int,
    squared: bool,
    out: Int64,
    n_threads: int,
) -> None: ...
def sparse_moments(
    records: SparseRows,
    tile_rows: Int64,
    a: int,
    out: Int64,
) -> None: ...
def mapped(matrix: Int32, sums: Int64, drop: int, work: Int32, out: Int64) -> None: ...
def group_pair_norms(
    columns: Float64,
    starts: Int64,
    least: Float64,
    work: Float64,
    out: Float64,
) -> None: ...
def sparse_gradient_at(
    records: SparseRows,
    tile_rows: Int64,
    z: Int32,
    start: int,
    loss: Loss,
    cap: int,
    work: Int32,
    out: Int64,
) -> None: ...
def sparse_shift(rows: Int32, values: Int16, step: int, z: Int32) -> None: ...
