"""Records in a rotated frame: sums of products of clipped differences, and cells of projections.

A frame has a whole origin and whole axes, directions times 2^AXIS_BITS. What a record contributes
is computed from that record and the frame alone, in whole numbers, so it is the same wherever
records are stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Integers
from privfit.records.cells import halved_columns

__all__ = ["AXIS_BITS", "clipped_rows", "coded_rows"]

AXIS_BITS = 12  # of a direction's coordinates


def clipped_rows(differences: Integers, radius: int, norm: int) -> Integers:
    """(n, d) rows shrunk to an l1 or l2 norm of at most `radius`, rounded towards zero.

    As in the kernel of residuals: by 32 bits of radius / length, both rounded so that no row is
    longer. Squares of lengths are below 2^53, so their root is exact enough to be rounded up.
    """
    if norm == 1:
        length = np.abs(differences).sum(axis=1)
    else:
        square = np.square(differences).sum(axis=1)
        length = np.sqrt(square.astype(np.float64)).astype(np.int64)
        length += np.square(length) < square
    long = length > radius
    factor = (np.int64(radius) << 32) // length[long]
    result = differences.copy()
    size = (np.abs(differences[long]) * factor[:, None]) >> 32
    result[long] = np.sign(differences[long]) * size
    return result


def coded_rows(
    block: Integers, origin: Integers, frame: Integers, reach: Integers, axes: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """(n,) the cell of each record among the halvings of a box about the origin of a frame.

    Column j of the box is the projection on `frame` (q, d), divided by 2^AXIS_BITS and rounded
    down; what lies beyond -reach .. reach counts as its end.
    """
    place = np.clip(((block - origin) @ frame.T) >> AXIS_BITS, -reach, reach)
    columns, bits = halved_columns(axes, -reach, reach)
    codes = np.zeros(len(block), dtype=np.uint64)
    for column, low, _, start in columns.tolist():
        codes |= bits[start + place[:, column] - low]
    return codes
