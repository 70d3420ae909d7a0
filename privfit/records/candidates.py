"""Candidates in the kernels' layouts: pairs of int16 in quads, or side by side in lanes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import LANE_WIDTH, QUAD_SIZE
from privfit.base.typing import Array, Floats
from privfit.records.packing import aligned


def quads(whole: Floats, pairs: int) -> NDArray[np.int32]:
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


def lane_groups(whole: Floats) -> NDArray[np.int32]:
    """(m, d + 1) integers as (groups, d + 1, WIDTH), candidates side by side."""
    m, width = whole.shape
    padded = np.zeros((-(-m // LANE_WIDTH) * LANE_WIDTH, width), dtype=np.int32)
    padded[:m] = wrap32(whole)
    result = aligned((len(padded) // LANE_WIDTH, width, LANE_WIDTH), np.int32)
    result[:] = padded.reshape(-1, LANE_WIDTH, width).transpose(0, 2, 1)
    return result
