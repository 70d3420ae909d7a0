"""Loops over public numbers; see candidates.pyx."""

import numpy as np
from numpy.typing import NDArray

FINE: int
ELSEWHERE: int
NOT_FINITE: int
OFF_GRID: int

def whole_units(
    P: NDArray[np.float64],
    units: NDArray[np.float64],
    largest: NDArray[np.float64],
    whole: NDArray[np.float64],
) -> tuple[int, float]: ...
def whole_moves(
    coords: NDArray[np.int64],
    steps: NDArray[np.float64],
    n_weights: int,
    units: NDArray[np.float64],
    largest: NDArray[np.float64],
    whole: NDArray[np.float64],
    reach: NDArray[np.float64],
) -> int: ...
def snap(
    P: NDArray[np.float64],
    units: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None: ...
def both_ways(
    here: NDArray[np.float64],
    share: float,
    width: NDArray[np.float64],
    units: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def group_norms(
    V: NDArray[np.float64],
    starts: NDArray[np.int64],
    least: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def curve_step(
    full: NDArray[np.float64],
    nodes: NDArray[np.int64],
    p: NDArray[np.float64],
    chords: NDArray[np.float64],
    ratio: float,
    margin: float,
    least: float,
    out: NDArray[np.float64],
) -> None: ...
