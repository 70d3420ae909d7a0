"""Weighted k-means of public points; see means.pyx."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int32: TypeAlias = NDArray[np.int32]
Float64: TypeAlias = NDArray[np.float64]

def lloyd_steps(
    points: Float64,
    own: Float64,
    weighed: Float64,
    live: Int32,
    reach: float,
    work: Float64,
    places: Int32,
    centers: Float64,
    shifts: Float64,
    nearest: Int32,
    lower: Float64,
    moved: Float64,
    costs: Float64,
) -> None: ...
def closer(
    turned: Float64,
    own: Float64,
    weights: Float64,
    some: Float64,
    far: Float64,
    fars: Float64,
    costs: Float64,
) -> None: ...
