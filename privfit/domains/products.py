"""Inner products of records with weights, block by block: no copy of the table is made.

**A product depends on its row alone.** BLAS rounds a row of a product by how many rows there are,
since it computes small matrices and the last rows of others in other ways: a record would then
change the last bits of what is predicted of others, and private counts of right predictions
(`accuracy_score`, `roc_curve`, `choose`) with them. So all products are of blocks of one shape,
which depends on the number of columns alone and is a power of two, on one thread; the last block is
filled up, and what it is filled up with is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privfit.base import blas
from privfit.base.errors import InputError
from privfit.base.typing import Array, Floats

__all__ = ["check_finite", "not_finite", "products_of_rows", "rounded_products"]

# Numbers of a block: it and its bounds stay in cache. Of 1,000,000 x 20, blocks of 2^13 took 26 ms
# of CPU time, 2^15 17 ms.
BLOCK = 1 << 15


def rounded_products(
    X: Any, W: Floats, units: Floats, origin: Floats, low: Floats, high: Floats
) -> Floats:
    """(n, m) products of the rows of X, clipped and rounded towards zero, with the rows of W.

    Units are powers of two, so that it makes no difference which factor is multiplied by them.
    """
    # A row of bounds for each row of a block: numpy's loops over whole blocks are the fast ones.
    rows = min(len(X), _rows_of_block(X.shape[1]))
    inverse, least, most = (np.tile(one, (rows, 1)) for one in (1 / units, low, high))
    centred = bool(origin.any())

    def rounded(block: Any, part: Floats) -> None:
        m = len(block)
        np.multiply(np.subtract(block, origin, out=part) if centred else block, inverse[:m],
                    out=part)  # fmt: skip
        check_finite(block, part.ravel())
        np.trunc(part, out=part)
        np.maximum(part, least[:m], out=part)
        np.minimum(part, most[:m], out=part)
        if centred:
            part *= units
            part += origin

    with np.errstate(over="ignore", invalid="ignore"):
        return _products(X, W.T if centred else (W * units).T, rounded)


def products_of_rows(A: Array, V: Floats) -> Floats:
    """(n, m) products of the rows of A with the columns of V (d, m), each by itself."""

    def copied(block: Array, part: Floats) -> None:
        part[:] = block

    return _products(A, V, copied)


def _products(X: Any, V: Floats, write: Callable[[Any, Floats], None]) -> Floats:
    """Products of what `write` makes of each block of X, with the columns of V."""
    n, d = X.shape
    rows = _rows_of_block(d)
    work, found = np.zeros((rows, d)), np.empty((n, V.shape[1]))
    with blas.one_thread():
        for first in range(0, n, rows):
            block = X[first : first + rows]
            write(block, work[: len(block)])
            if len(block) == rows:
                np.matmul(work, V, out=found[first : first + rows])
            else:
                found[first:] = np.matmul(work, V)[: len(block)]
    return found


def _rows_of_block(d: int) -> int:
    return 1 << (max(1, BLOCK // max(d, 1)).bit_length() - 1)


def check_finite(X: Any, multiples: Floats) -> None:
    """Refuse NaN and infinity. A sum of squares of multiples is the fastest look at all of them."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.dot(multiples, multiples)
    if not np.isfinite(square) and not np.isfinite(X).all():
        raise not_finite()


def not_finite() -> InputError:
    """The error for a table with NaN or infinity."""
    return InputError(
        "X must be finite; replace NaN and infinity first, or declare a Schema with fill="
    )
