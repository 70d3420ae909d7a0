"""Records of zeros and ones, four columns to a byte: they are compared by looking up a table.

A code is a number below 16, so that one instruction looks up 32 of them. What is kept of a record
and a facility depends only on the number of columns in which they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.typing import Array, Integers
from privfit.base.validation import is_sparse
from privfit.domains import Domain
from privfit.records.packing import aligned

Bytes = NDArray[np.uint8]

MOST_COLUMNS = 252  # whose differences are counted in a byte
BLOCK_BYTES = 1 << 19  # of float64 input that are read at a time, and stay in the cache

# The number of columns in which two codes differ.
UNLIKE = np.array([[(i ^ j).bit_count() for i in range(16)] for j in range(16)], dtype=np.uint8)


def fours(ones: Array) -> Bytes:
    """(n, d) zeros and ones as (n, codes), four columns to a code."""
    bits = np.packbits(ones, axis=1, bitorder="little")
    codes = np.empty((len(bits), 2 * bits.shape[1]), dtype=np.uint8)
    np.bitwise_and(bits, 15, out=codes[:, ::2])
    np.right_shift(bits, 4, out=codes[:, 1::2])
    return np.ascontiguousarray(codes[:, : -(-ones.shape[1] // 4)])


def packed_fours(X: Any, domain: Domain, width: int) -> Bytes | None:
    """(codes, width): the records, column by column; None if one has another value than 0 and 1."""
    codes = aligned((-(-X.shape[1] // 4), width), np.uint8)
    for first, rows, one in _blocks(X, domain):
        ones = rows == one
        if np.count_nonzero(rows) != np.count_nonzero(ones):
            return None
        codes[:, first : first + len(rows)] = fours(ones).T
    return codes


def _blocks(X: Any, domain: Domain) -> Iterator[tuple[int, Array, float]]:
    """Blocks (first, rows, one): in units of the grid, or as they are where it comes to the same.

    A domain that leaves a record of zeros as it is, and one of ones, has all records of zeros and
    ones: those of a box are judged column by column, and in a ball none is longer than the latter.
    """
    one, unit = 1 << domain.grid.a, float(domain.record_units(uniform=True)[0])
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        ends = np.array([[0.0], [one * unit]]).repeat(X.shape[1], axis=1)
        if np.array_equal(domain.quantise(ends, uniform=True), np.rint(ends / unit)):
            rows = max(1, BLOCK_BYTES // (8 * X.shape[1]))
            for first in range(0, X.shape[0], rows):
                yield first, X[first : first + rows], one * unit
            return
    for first, block in domain.blocks(X, True, BLOCK_BYTES):
        yield first, block.toarray() if is_sparse(block) else block, one


def sixteens(values: Integers) -> tuple[Bytes, int]:
    """Ascending values as (2, tables, 16) low and high bytes, from the last of the least on.

    The number before them is the position of the first that is kept; beyond the end, the largest
    goes on.
    """
    least = int(np.searchsorted(values, values[0], side="right")) - 1
    last = max(least, int(np.searchsorted(values, values[-1])))
    kept = values[least : last + 1]
    kept = np.pad(kept, (0, -len(kept) % 16), mode="edge")
    return np.stack([kept & 255, kept >> 8]).astype(np.uint8).reshape(2, -1, 16), least
