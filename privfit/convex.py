"""Convex problems over private records: a public coding into the unit ball, a certified solver.

Perturbation methods want records phi of l2 norm at most 1, the intercept among their columns.
`coding_of` makes such records from those of any declared domain: phi = A (x, 1), with A public. The
margin <phi, u> of a coded model u is that of the linear model w = A' u on the records themselves.

======================  ============================================================================
domain                  coded record, up to the common scale that makes its largest l2 norm 1
======================  ============================================================================
box                     every column as [-1, 1]; intercept 1
l1 or l2 ball           (x / radius, 1) / sqrt 2, as Chaudhuri and Monteleoni (2008) have it
schema                  numbers as [-1/2, 1/2]; intercept 1/2; a one-hot group of k levels by k - 1
                        orthonormal contrasts, where its one level has the squared norm 1 - 1/k
======================  ============================================================================

Contrasts lose nothing (a constant added to a group is an intercept), shorten the record, and leave
one coordinate less to each group, which otherwise carries noise and no signal.

The l2 ball is larger than what records fill. `UnitCoding.shape` is a product over columns and
groups: an interval for a number and for the intercept, the hull of +-(e_j - 1/k) for a group, the
ball itself for a ball. It is symmetric and holds every coded record: its norm of one is at most 1.

Tables of many numbers are often sparse: most of a record is near the low ends of its columns. A
`radius` then codes the numbers of a schema as [0, 1] and clips them, all of a record's together, to
an l1 norm of the radius. Their shape is the l1 ball, much smaller than a cube of many dimensions.

`Problem` holds coded records and a loss l of the signed margin m with slopes in [-1, 0]:

    F(u) = sum over records of l(m) + ridge/2 l2(u)^2 + <tilt, u>,

which is ridge-strongly convex. `Problem.minimise` returns u where the gradient of F has an l2 norm
of at most the tolerance, hence within tolerance / ridge of the minimiser. All that is asked of the
records are sums of integers (`objectives.smooth`), so u is the same bit for bit wherever they lie.

**The tolerance covers the errors of the computed gradient**, by a bound that is worked out at u.
With n records, c the largest curvature and r = 2^-53 the rounding of one operation:

- A weight w = A' u is off by k r times the sizes of its k terms, and once more by half a unit of
  its grid. Summed with the largest that a record's columns can be, this bounds the error of a
  margin, and c times it that of a slope. Turning a whole margin into a float adds a few r of it.
- A slope, given its margin, is off by at most 2^-50 (1 + c) (`tests/test_smooth.py`).
- Coded records are no longer than 1, so the errors of slopes reach the gradient no longer.
- The product of a slope and a column of a record is off by 0.51 2^-45: half a unit of rounding, and
  r of at most 2^45 units. In l2 norm the error of the coded record is that times the root of the
  number of its entries that are not 0, times the spectral norm of A, the square of which is at most
  the product of the largest absolute sums of its rows and of its columns.
- What is done to the sums, once, adds k r of the sizes of the terms.

All but the last count n times. A hundredth on top is for the errors of the bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit.domains import Domain, L1Ball, L2Ball, Schema
from privfit.objectives import LinearObjective
from privfit.objectives.smooth import MARGIN_BITS, PULL_BITS, MarginGrid, Weights, from_halves
from privfit.shapes import Ball, Contrasts, Cross, Cube, Product, Shape, contrasts

__all__ = [
    "HuberHinge",
    "Logistic",
    "Problem",
    "UnitCoding",
    "coding_of",
    "numbers_of",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ROUNDING = 2.0**-53  # of one operation in float64, relative
SLOPE_ERROR = 2.0**-50  # of a slope, given its margin, times 1 + the largest curvature
LOSS_ERROR = 2.0**-44  # of a loss, given its margin
INSIDE = 1 - 2.0**-40  # so that no coded record leaves the unit ball by rounding
MOST_STEPS = 500  # of Newton's method; the fits of our tests and benchmarks took at most 30


# ------------------------------------------------------------------------------------------ coding


@dataclass(frozen=True, eq=False)
class UnitCoding:
    """The matrix of a coding, and a body that holds all coded records.

    matrix    CSR (p, d + 1): A of coded records A (x, 1); its last row is the intercept's
    shape     of p dimensions, within the l2 ball only as far as records are
    """

    matrix: Any
    shape: Product


@lru_cache(maxsize=8)  # several classes ask for the same one
def coding_of(domain: Domain, radius: float | None = None) -> UnitCoding:
    """The coding of a domain's records; with a radius, of records with clipped numbers."""
    if isinstance(domain, Schema):
        rows, squared_norm, intercept = _schema_rows(domain, radius)
    elif isinstance(domain, L1Ball | L2Ball):
        rows = scipy.sparse.csr_array(scipy.sparse.diags(1 / domain.high))
        squared_norm, intercept = 1.0, 1.0
    else:
        rows, squared_norm, intercept = _box_rows(domain)
    middle = (domain.low + domain.high) / 2
    if radius is not None:  # zero stays zero
        middle = np.zeros(domain.width)
    constant = np.append(-(rows @ middle), intercept)
    columns = scipy.sparse.vstack([rows, scipy.sparse.csr_array((1, domain.width))])
    A = scipy.sparse.hstack([columns, scipy.sparse.csr_array(constant[:, None])], format="csr")
    A.eliminate_zeros()
    scale = 1 / math.sqrt(squared_norm + intercept**2)
    factors = (*_factors(domain, scale, radius), Cube(1, intercept * scale))
    return UnitCoding(A * (INSIDE * scale), Product(factors))


def _box_rows(domain: Domain) -> tuple[Any, float, float]:
    """Rows of the columns that vary, the largest squared norm of a record, the intercept."""
    half = (domain.high - domain.low) / 2
    varies = np.flatnonzero(half > 0)
    rows = scipy.sparse.csr_array(
        (1 / half[varies], (np.arange(varies.size), varies)), shape=(varies.size, domain.width)
    )
    return rows, float(varies.size), 1.0


def _schema_rows(schema: Schema, radius: float | None) -> tuple[Any, float, float]:
    """The same for a schema; its middle, 1/2 everywhere, is orthogonal to contrasts.

    Clipped numbers come first. Their squares add up to no more than they do, each being at most 1.
    """
    squared_norm = sum(1 - 1 / levels for levels in _levels(schema) if levels)
    parts = [contrasts(levels) if levels else np.ones((1, 1)) for levels in _levels(schema)]
    blocks = [scipy.sparse.csr_array(part) for part in parts]
    rows, numbers = scipy.sparse.block_diag(blocks, format="csr"), numbers_of(schema)
    if radius is None:
        return rows, squared_norm + numbers.size / 4, 0.5
    plain = np.isin(rows.indices[rows.indptr[:-1]], numbers)  # by a row's first column
    order = np.argsort(~plain, kind="stable")
    return rows[order], squared_norm + min(radius, radius**2), 0.5


def numbers_of(domain: Domain) -> Integers:
    """The columns that are numbers: all but those of one-hot groups."""
    groups = domain.groups if isinstance(domain, Schema) else []
    grouped = [column for part in groups for column in range(part.start, part.stop)]
    return np.setdiff1d(np.arange(domain.width), grouped)


def _levels(schema: Schema) -> Iterator[int]:
    """The levels of each one-hot group, and 0 for a number, in the order of their columns."""
    groups = {part.start: part.stop - part.start for part in schema.groups}
    column = 0
    while column < schema.width:
        levels = groups.get(column, 0)
        yield levels
        column += levels or 1


def _factors(domain: Domain, scale: float, radius: float | None) -> list[Shape]:
    """The shapes of the coded columns, in their order, without the intercept."""
    if isinstance(domain, Schema):
        if radius is not None:
            groups = [Contrasts(levels, scale) for levels in _levels(domain) if levels]
            return [Cross(numbers_of(domain).size, radius * scale), *groups]
        return [
            Contrasts(levels, scale) if levels else Cube(1, scale / 2) for levels in _levels(domain)
        ]
    if isinstance(domain, L1Ball | L2Ball):
        return [(Cross if isinstance(domain, L1Ball) else Ball)(domain.width, scale)]
    return [Cube(int(np.count_nonzero(domain.high > domain.low)), scale)]


# ------------------------------------------------------------------------------------------ losses


@dataclass(frozen=True)
class Logistic:
    """ln(1 + e^-m). With s minus its slope, the curvature is s (1 - s)."""

    curvature = 0.25  # the largest
    smoothing = 0.0  # none is needed


@dataclass(frozen=True)
class HuberHinge:
    """The hinge max(1 - m, 0), rounded by a parabola where m is within `smoothing` of 1."""

    smoothing: float

    @property
    def curvature(self) -> float:
        """The largest curvature."""
        return 1 / (2 * self.smoothing)


# ----------------------------------------------------------------------------------------- problems


@dataclass(frozen=True, eq=False, repr=False)
class _Point:
    """A coded model u, the function and its gradient there, and bounds on their errors."""

    u: Floats
    weights: Weights
    value: float
    value_error: float
    gradient: Floats
    gradient_error: float

    @property
    def length(self) -> float:
        """Of the gradient, as it was computed."""
        return float(np.linalg.norm(self.gradient))


class Problem:
    """Coded private records and a loss; not released, and its repr shows nothing of them."""

    def __init__(
        self,
        objective: LinearObjective,
        loss: Any,
        ridge: float,
        radius: float | None = None,
    ) -> None:
        self.loss, self.ridge = loss, float(ridge)
        self.coding = coding_of(objective.domain, radius).matrix
        self._decoding = self.coding.T.tocsr()
        self._domain, self._n = objective.domain, objective.n_records
        numbers = numbers_of(objective.domain) if radius is not None else np.arange(0)
        self._sums = objective.smooth(loss.smoothing, numbers, radius or math.inf)
        self._grid = MarginGrid(self._domain)
        self._column_units = np.ldexp(1.0, np.append(self._domain.exponents, 0))
        self._coding_sizes, self._decoding_sizes = abs(self.coding), abs(self._decoding)
        self._terms = _longest_row(self.coding) + _longest_row(self._decoding)
        self._half_units = _largest_sum(self._domain, 0.5 / self._grid.units)
        self._stretch = _stretch(self._coding_sizes, self._column_units, self._domain)

    def __repr__(self) -> str:
        return "<Problem of private records>"

    @property
    def size(self) -> int:
        """The number of coordinates of a coded model."""
        return int(self.coding.shape[0])

    def linear(self, u: Floats) -> Floats:
        """(d + 1,): the weights of a coded model on the records themselves, the intercept last."""
        return np.asarray(self._decoding @ u)

    def minimise(self, tilt: Floats, tolerance: float) -> Floats:
        """(p,): where the gradient is no longer than `tolerance`, by a damped Newton method.

        The function is strongly convex and every step descends, so the method converges from
        anywhere. If it has not after `MOST_STEPS` the answer is 0: free of data, and no abort that
        could be seen.
        """
        here = self._at(np.zeros(self.size), tilt)
        for _ in range(MOST_STEPS):
            if here.length + here.gradient_error <= tolerance:
                return here.u
            here = self._descend(here, self._newton_step(here, tolerance), tilt)
        return np.zeros(self.size)

    def _at(self, u: Floats, tilt: Floats) -> _Point:
        """The function F + <tilt, u> at u."""
        weights = self._grid.weights(self.linear(u))
        sums = self._sums.slopes(weights.whole, weights.bits)
        pull = self._column_units * from_halves(sums[:, :-1], PULL_BITS)
        losses = float(from_halves(sums[:, -1], weights.loss_bits))
        value = losses + self.ridge / 2 * float(u @ u) + float(tilt @ u)
        gradient = self.ridge * u + tilt - self.coding @ pull
        value_error, gradient_error = self._errors(u, weights, pull, tilt)
        return _Point(u, weights, value, value_error, gradient, gradient_error)

    def _newton_step(self, here: _Point, tolerance: float) -> Floats:
        """Minus the inverse Hessian times the gradient, by conjugate gradients.

        Only as exact as is worth it: to a tenth of the gradient far from the minimum, and near it
        to what the tolerance asks.
        """
        step, residual = np.zeros(self.size), -here.gradient
        direction, squared = residual, float(residual @ residual)
        goal = max(0.01 * squared, (0.3 * tolerance) ** 2)
        for _ in range(2 * self.size):
            if squared <= goal:
                break
            bent = self._bent(here, direction)
            length = squared / float(direction @ bent)
            step = step + length * direction
            residual = residual - length * bent
            before, squared = squared, float(residual @ residual)
            direction = residual + squared / before * direction
        return step

    def _bent(self, here: _Point, direction: Floats) -> Floats:
        """The Hessian at a point times a direction."""
        along = self._grid.weights(self.linear(direction))
        sums = self._sums.bends(here.weights.whole, here.weights.bits, along.whole)
        pull = self._column_units * from_halves(sums, PULL_BITS + along.bits - MARGIN_BITS)
        return self.ridge * direction + self.loss.curvature * np.asarray(self.coding @ pull)

    def _descend(self, here: _Point, step: Floats, tilt: Floats) -> _Point:
        """Where all of a step leads, or a power of 1/2 of it, so that the function falls.

        Near the minimum it falls by less than its own errors, which are granted.
        """
        descent, t = float(here.gradient @ step), 1.0
        while True:
            there = self._at(here.u + t * step, tilt)
            slack = here.value_error + there.value_error
            if t < 2.0**-30 or there.value <= here.value + 0.1 * t * descent + slack:
                return there
            t /= 2

    def _errors(
        self, u: Floats, weights: Weights, pull: Floats, tilt: Floats
    ) -> tuple[float, float]:
        """Bounds on the errors of the value at u and of its gradient, in l2 norm; see the top."""
        curvature, n, sizes = self.loss.curvature, self._n, self._decoding_sizes @ np.abs(u)
        margin = (self._terms + 8) * ROUNDING * _largest_sum(self._domain, sizes)
        margin += math.ldexp(self._half_units, -weights.bits)
        product = math.ldexp(0.51, -PULL_BITS) * self._stretch
        gradient = n * (curvature * margin + SLOPE_ERROR * (1 + curvature) + product)
        terms = [self._coding_sizes @ np.abs(pull), self.ridge * u, tilt]
        gradient += (self._terms + 5) * ROUNDING * sum(map(float, map(np.linalg.norm, terms)))
        value = n * (margin + LOSS_ERROR + math.ldexp(1.0, -weights.loss_bits))
        sizes = np.abs(u) * (self.ridge * np.abs(u) + np.abs(tilt))
        value += (self.size + 8) * ROUNDING * float(sizes.sum())
        return 1.01 * value, 1.01 * gradient


def _largest_sum(domain: Domain, sizes: Floats) -> float:
    """The most that the sum of sizes_j abs(x_j) can be over records (x, 1) of a domain."""
    if isinstance(domain, Schema | L1Ball | L2Ball):  # no column is negative, or signs are free
        return float(domain.norm(sizes)[0])
    return float(sizes @ np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0))


def _stretch(sizes: Any, units: Floats, domain: Domain) -> float:
    """How much longer a coded record's error can be than that of each of its entries.

    By the sizes of a coding's entries, for columns in these units. A record of a schema fills one
    column of each group.
    """
    ones = np.ones(domain.width + 1)
    filled = domain.norm(ones)[0] if isinstance(domain, Schema) else ones.size
    rows, columns = sizes @ units, units * (sizes.T @ np.ones(sizes.shape[0]))
    return math.sqrt(filled * rows.max() * columns.max())


def _longest_row(X: Any) -> int:
    """The largest number of entries of a row of a CSR matrix."""
    return int(np.diff(X.indptr).max())
