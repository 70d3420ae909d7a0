"""Linear models over rows of codes; see codes.pyx."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import CodeRows, Loss

Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
UInt16: TypeAlias = NDArray[np.uint16]
Float64: TypeAlias = NDArray[np.float64]

def tables(parts: Int64, w: Int32, out: Int32) -> None: ...
def tables_long(parts: Int64, w: Int64, out: Int64) -> None: ...
def tables_wide(parts: Int64, w: Float64, out: Float64) -> None: ...
def folded(parts: Int64, ends: Int64, sums: Int64, out: Int64) -> None: ...
def losses(
    records: CodeRows,
    tile_rows: Int64,
    table: Int32,
    start: Int32,
    w: Int32,
    a: int,
    loss: Loss,
    work: Int32,
    out: Int64,
) -> None: ...
def losses_wide(
    records: CodeRows,
    tile_rows: Int64,
    table: Float64,
    w: Float64,
    a: int,
    loss: Loss,
    work: Float64,
    out: Int64,
) -> None: ...
def margins(
    records: CodeRows,
    tile_rows: Int64,
    table: Int32,
    w: Int32,
    a: int,
    loss: Loss,
    state: Int32,
    work: Int32,
) -> None: ...
def gradient(
    records: CodeRows,
    tile_rows: Int64,
    table: Int32,
    w: Int32,
    wide_table: Float64,
    wide_w: Float64,
    a: int,
    loss: Loss,
    cap: int,
    caps: Int16,
    wide_z: Float64,
    work: Int32,
    counted: Int64,
    sums: Int32,
    out: Int64,
) -> None: ...
def moves(
    records: CodeRows,
    tile_rows: Int64,
    table: Int32,
    w: Int32,
    steps: Int32,
    columns: Int64,
    number_steps: Int32,
    a: int,
    loss: Loss,
    most: int,
    work: Int32,
    counted: Int64,
    sums: Int32,
    out: Int64,
    losses: Int64,
) -> None: ...
def follow(
    records: CodeRows,
    joint: int,
    table: Int32,
    w: Int32,
    a: int,
    z: Int32,
    n_threads: int,
) -> None: ...
def gradient_at(
    records: CodeRows,
    tile_rows: Int64,
    z: Int32,
    start: int,
    loss: Loss,
    cap: int,
    work: Int32,
    counted: Int64,
    sums: Int32,
    out: Int64,
) -> None: ...
def finished(parts: Int64, ends: Int64, a: int, sums: Int32, wide: Int64, out: Int64) -> None: ...
def add_lengths(
    records: CodeRows,
    tile_rows: Int64,
    table: Float64,
    start: Float64,
    numbers: Float64,
    a: int,
    shift: int,
    squared: bool,
    work: Float64,
    out: Int64,
) -> None: ...
def add_counts(
    records: CodeRows,
    tile_rows: Int64,
    pieces: Int64,
    lookup: UInt16,
    levels: UInt16,
    counts: Int32,
    sums: Int64,
) -> None: ...
def moments(
    pieces: Int64,
    parts: Int64,
    ends: Int64,
    a: int,
    counts: Int64,
    sums: Int64,
    work: Int64,
    out: Int64,
) -> None: ...
