"""Coded records of convex fits whose numbers are a few smooth functions: public maps of levels.

`privfit.linear.newton` codes a schema's levels one by one, so that a number of 211 cells has 210
coordinates. Here it has the few of its row of `Features`, in coordinates of its own.

======================  ============================================================================
column                  coded record, up to the common scale that makes its largest l2 norm 1
======================  ============================================================================
a number                B (T[l] - c): its row from a public centre c, turned and stretched by a
                        public B, rounded towards zero to whole numbers in units of 2^-MAP_BITS
a category              k - 1 orthonormal contrasts, as in `newton`: the squared norm 1 - 1/k
intercept               1/2
======================  ============================================================================

**Why c and B.** A constant that is added to a column is an intercept, so c takes nothing from the
model, and neither does B, which has an inverse. What they take is noise, which has the size of a
body that holds all rows. Rows of eight functions of the public scale are up to 1 long, within a
ball of radius .78, and within an ellipsoid whose axes have a geometric mean of .67. c and B make
the ellipsoid of (nearly) the least volume a ball of radius 1.

**Proof.** Objective perturbation (`tilts`) asks two things of a coded record phi, for either
neighbour relation: l2(phi) <= 1, and K(phi) <= 1 for the norm K of its noise. With R_c the largest
length of a coded row of column c, computed from the whole numbers and rounded up, the squared
length of a record is at most sum of R_c^2 + sum of (1 - 1/k) + 1/4, whose root is the scale. K is
the largest of the norms of the columns: l2 over R_c for a number, that of the hull of
+-(e_j - 1/k) for a category, size over 1/2 for the intercept. Each part of a record has a norm of
at most 1, hence so has the record. A replaced record changes the gradient by two of them, one that
is added or removed by one, as everywhere; curvatures are those of the loss, at most c. Nothing here
depends on records, and nothing depends on how well the ellipsoid fits: R_c is what the table says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its submodules load when first used

from privfit.base import blas
from privfit.base.dyadic import FixedMatrix
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.domains.scales import MAP_BITS
from privfit.linear.newton import INSIDE, UnitCoding
from privfit.objectives.features import ONE, Curve, Features, Table
from privfit.privacy.noise_bodies import (
    ABOVE,
    CONTRAST_BITS,
    Ball,
    Contrasts,
    Cube,
    Product,
    Shape,
    contrasts,
)

__all__ = ["feature_coding"]

CONSTANT = 0.5  # the intercept's column
LAST = np.array([[CONSTANT]])
ROUNDS = 100  # in which weights settle: R is then 1.003 or so
LEAST = 1e-6  # of a variance: what is below is a constant


def feature_coding(domain: Domain, features: Features) -> UnitCoding:
    """The coding of a schema whose columns are all levels, by their maps; it has an intercept."""
    parts = [_Part.of(table) for table in features.tables]
    scale = 1 / math.sqrt(CONSTANT**2 + math.fsum(part.square for part in parts))
    blocks = [scipy.sparse.csr_array(rows) for rows in (*(part.rows for part in parts), LAST)]
    columns = scipy.sparse.csr_array(scipy.sparse.block_diag(blocks, format="csr"))
    shape = Product((*(part.shape(scale) for part in parts), Cube(1, CONSTANT * scale)))
    return UnitCoding(
        FixedMatrix(columns, CONTRAST_BITS), np.zeros(domain.width, dtype=np.int64),
        INSIDE * scale, shape, domain.record_units(), domain.grid.a, True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Part:
    """One column: what levels add to a coded record, (coordinates, levels), and the longest."""

    rows: Floats
    radius: float
    is_curve: bool

    @classmethod
    def of(cls, table: Table) -> _Part:
        if not isinstance(table, Curve):
            return cls(contrasts(len(table.rows)), 1.0, is_curve=False)
        rows = _known(table.rows.tobytes(), table.rows.shape)
        longest = math.sqrt(int(np.square(rows).sum(axis=1).max())) * ABOVE / ONE
        return cls(np.ldexp(rows.T.astype(np.float64), -MAP_BITS), longest, is_curve=True)

    @property
    def square(self) -> float:
        """The largest squared length of a row."""
        return self.radius**2 if self.is_curve else 1 - 1 / self.rows.shape[1]

    def shape(self, scale: float) -> Shape:
        """A body that holds all rows, scaled."""
        if self.is_curve:
            return Ball(self.rows.shape[0], self.radius * scale)
        return Contrasts(self.rows.shape[1], scale)


@lru_cache(maxsize=64)  # numbers of a table mostly have the same rows
def _known(rows: bytes, shape: tuple[int, int]) -> Integers:
    return rounded(np.frombuffer(rows, dtype=np.int64).reshape(shape))


def rounded(rows: Integers) -> Integers:
    """(levels, dimensions): rows in coordinates in which a small ellipsoid around them is a ball.

    By Khachiyan's algorithm (Todd and Yildirim 2007): the ellipsoid of the least volume around
    points is that of their second moments under weights, which grow where a point is outside.
    """
    distinct = np.unique(rows, axis=0).astype(np.float64) / ONE
    points = np.column_stack([distinct, np.ones(len(distinct))])
    weights = np.full(len(points), 1 / len(points))
    with blas.one_thread():
        for _ in range(ROUNDS):
            inverse = np.linalg.pinv((points.T * weights) @ points, hermitian=True)
            outside = ((points @ inverse) * points).sum(axis=1)
            weights = weights * outside
            weights = weights / weights.sum()
        middle = weights @ distinct
        spread = (distinct.T * weights) @ distinct - np.outer(middle, middle)
        values, vectors = np.linalg.eigh(spread)
        kept = values > LEAST * values.max()
        turn = vectors[:, kept] / np.sqrt(values[kept] * kept.sum())
        found = (rows / ONE - middle) @ turn
    return np.trunc(found * ONE).astype(np.int64)
