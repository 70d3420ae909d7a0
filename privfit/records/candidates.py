"""Candidates in the kernels' layouts: pairs of int16 in quads, or side by side in lanes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import LANE_WIDTH, QUAD_SIZE
from privfit.base.typing import Array, Floats
from privfit.records.packing import aligned


def quads(whole: Array, pairs: int) -> NDArray[np.int32]:
    """(m, d) integers as (quads, pairs, QUAD) pairs of int16; the last row pads the last quad."""
    m = len(whole)
    padded = np.zeros((-(-m // QUAD_SIZE) * QUAD_SIZE, 2 * pairs), dtype=np.int16)
    padded[:m, : whole.shape[1]] = whole
    padded[m:] = padded[m - 1]
    parts = padded.reshape(-1, QUAD_SIZE, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(parts).view(np.int32)[..., 0]


def quad_starts(start: Array) -> NDArray[np.int32]:
    """(m,) start values as (quads, QUAD)."""
    m = len(start)
    padded = np.empty(-(-m // QUAD_SIZE) * QUAD_SIZE, dtype=np.int32)
    padded[:m] = wrap32(start)
    padded[m:] = padded[m - 1]
    return padded.reshape(-1, QUAD_SIZE)


def wrap32(whole: Array) -> NDArray[np.int32]:
    """Integers modulo 2^32: sums wrap too, and only a final margin has to fit."""
    return whole.astype(np.int64).astype(np.int32)


def wrap16(whole: Array) -> NDArray[np.int16]:
    """Integers modulo 2^16."""
    return whole.astype(np.int64).astype(np.int16)


def lane_groups(whole: Floats, side: int = LANE_WIDTH) -> NDArray[np.int32]:
    """(m, d + 1) integers as (groups, d + 1, side), candidates side by side."""
    m, width = whole.shape
    padded = np.zeros((-(-m // side) * side, width), dtype=np.int32)
    padded[:m] = wrap32(whole)
    result = aligned((len(padded) // side, width, side), np.int32, zero=False)
    result[:] = padded.reshape(-1, side, width).transpose(0, 2, 1)
    return result


def two_to_a_lane(low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.int32]:
    """low + 2^16 high, whose sums part again if those of both fit in 16 bits."""
    result = aligned(low.shape, np.int32, zero=False)
    return np.add(low, high << 16, out=result)
