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
of at most the tolerance, hence within tolerance / ridge of the minimiser. The tolerance covers the
rounding errors of the computed gradient, by a bound that is computed at u.
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

from privfit.checks import is_sparse
from privfit.domains import Domain, L1Ball, L2Ball, Schema
from privfit.objectives import LinearObjective
from privfit.shapes import Ball, Contrasts, Cross, Cube, Product, Shape, contrasts

__all__ = [
    "HuberHinge",
    "Logistic",
    "Problem",
    "UnitCoding",
    "coding_of",
    "number_sizes",
    "numbers_of",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ROWS = 1 << 14  # records whose gradients are added in one go: bounds the error of the sum
ROUNDING = 2.0**-53  # of one operation in float64, relative
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

    def values(self, m: Floats) -> Floats:
        """The loss at each margin."""
        return np.maximum(-m, 0.0) + np.log1p(np.exp(-np.abs(m)))

    def slopes(self, m: Floats) -> Floats:
        """Minus the slope at each margin, in [0, 1]."""
        return np.asarray(scipy.special.expit(-m))

    def curvatures(self, s: Floats) -> Floats:
        """The curvature where minus the slope is s."""
        return s * (1 - s)


@dataclass(frozen=True)
class HuberHinge:
    """The hinge max(1 - m, 0), rounded by a parabola where m is within `smoothing` of 1."""

    smoothing: float

    @property
    def curvature(self) -> float:
        """The largest curvature."""
        return 1 / (2 * self.smoothing)

    def values(self, m: Floats) -> Floats:
        """The loss at each margin."""
        return np.where(m < 1 - self.smoothing, 1 - m, self.smoothing * np.square(self.slopes(m)))

    def slopes(self, m: Floats) -> Floats:
        """Minus the slope at each margin, in [0, 1]."""
        return np.clip((1 + self.smoothing - m) * self.curvature, 0.0, 1.0)

    def curvatures(self, s: Floats) -> Floats:
        """The curvature where minus the slope is s."""
        return np.where((s > 0) & (s < 1), self.curvature, 0.0)


# ----------------------------------------------------------------------------------------- problems


class Problem:
    """Coded private records and a loss; not released, and its repr shows nothing of them."""

    def __init__(
        self, objective: LinearObjective, loss: Any, ridge: float, radius: float | None = None
    ) -> None:
        self.loss, self.ridge = loss, float(ridge)
        self.coding = coding_of(objective.domain, radius).matrix
        self._decoding = self.coding.T.tocsr()
        self._blocks = list(objective.labelled_blocks(ROWS))
        if radius is not None:
            numbers = numbers_of(objective.domain)
            self._blocks = [(_clipped(X, numbers, radius), sign) for X, sign in self._blocks]
        # For the rounding errors: the sums of absolute values of each column, the same coded, and
        # the most terms that make up a margin or a coordinate of the coded gradient.
        columns = sum(np.asarray(abs(X).sum(axis=0)) for X, _ in self._blocks)
        self._mass = np.append(columns, objective.n_records)
        self._coded_mass = float(np.linalg.norm(abs(self.coding) @ self._mass))
        self._terms = _longest_row(self.coding) + _longest_row(self._decoding) + 8
        self._terms += max(_longest_row(X) for X, _ in self._blocks)

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
        u = np.zeros(self.size)
        for _ in range(MOST_STEPS):
            m = self._margins(u)
            s = self.loss.slopes(m)
            gradient = self.ridge * u + tilt - self._pull(s)
            length = float(np.linalg.norm(gradient))
            if length < tolerance and length + self._gradient_error(u) <= tolerance:
                return u
            step = self._newton_step(self.loss.curvatures(s), gradient, tolerance)
            u = u + self._damping(u, m, step, gradient, tilt) * step
        return np.zeros(self.size)

    def _margins(self, u: Floats) -> Floats:
        """(n,): <phi, u> of each record, with the sign of its label."""
        w = self.linear(u)
        return np.concatenate([sign * (_times(X, w[:-1]) + w[-1]) for X, sign in self._blocks])

    def _pull(self, r: Floats) -> Floats:
        """(p,): the sum over records of r times phi, with the sign of its label."""
        total, first = np.zeros(self._mass.size), 0
        for X, sign in self._blocks:
            part = r[first : first + X.shape[0]]
            total[:-1] += sign * _transposed_times(X, part)
            total[-1] += sign * part.sum()
            first += X.shape[0]
        return np.asarray(self.coding @ total)

    def _gradient_error(self, u: Floats) -> float:
        """A bound on the rounding errors of the computed gradient at u, in l2 norm.

        A sum of k products is wrong by at most k ROUNDING times the sum of their sizes. Records
        are no longer than 1, so errors of margins reach the gradient times the largest curvature,
        all of them together. Twice these two covers the few steps besides.
        """
        sizes = abs(self._decoding) @ np.abs(u)
        margins = self._terms * float(sizes @ self._mass)
        sums = (ROWS + len(self._blocks) + self._terms) * self._coded_mass
        length = self.ridge * float(np.linalg.norm(u))
        return 2 * ROUNDING * (self.loss.curvature * margins + sums + 8 * length)

    def _newton_step(self, weights: Floats, gradient: Floats, tolerance: float) -> Floats:
        """Minus the inverse Hessian times the gradient, by conjugate gradients.

        Only as exact as is worth it: to a tenth of the gradient far from the minimum, and near it
        to what the tolerance asks.
        """
        step, residual = np.zeros(self.size), -gradient
        direction, squared = residual, float(residual @ residual)
        goal = max(0.01 * squared, (0.3 * tolerance) ** 2)
        for _ in range(2 * self.size):
            if squared <= goal:
                break
            bent = self.ridge * direction + self._pull(weights * self._margins(direction))
            length = squared / float(direction @ bent)
            step = step + length * direction
            residual = residual - length * bent
            before, squared = squared, float(residual @ residual)
            direction = residual + squared / before * direction
        return step

    def _damping(self, u: Floats, m: Floats, step: Floats, gradient: Floats, tilt: Floats) -> float:
        """How much of a step to take: all of it or a power of 1/2, so that the function falls."""
        along, descent = self._margins(step), float(gradient @ step)
        rise = self.ridge * float(u @ step) + float(tilt @ step)  # of what is not a loss

        def change(t: float) -> float:
            losses = self.loss.values(m + t * along).sum() - start
            return float(losses + t * rise + t * t / 2 * self.ridge * float(step @ step))

        start = self.loss.values(m).sum()
        slack = 2.0**-40 * float(start)  # a full step near the minimum falls by less than that
        t = 1.0
        while t > 2.0**-30 and change(t) > 0.1 * t * descent + slack:
            t /= 2
        return t


def number_sizes(objective: LinearObjective) -> Floats:
    """Private (n,): the l1 norm of each record's numbers, coded as [0, 1]; exact on their grid."""
    numbers = numbers_of(objective.domain)
    blocks = objective.labelled_blocks(ROWS)
    return np.concatenate([np.asarray(X[:, numbers].sum(axis=1)).ravel() for X, _ in blocks])


def _clipped(X: Any, numbers: Integers, radius: float) -> Any:
    """A block whose numbers are scaled down, where need be, to an l1 norm of the radius."""
    sizes = np.asarray(X[:, numbers].sum(axis=1)).ravel()
    factors = radius / np.maximum(sizes, radius)
    if not is_sparse(X):
        X[:, numbers] *= factors[:, None]
        return X
    is_number = np.isin(X.indices, numbers)
    X.data *= np.where(is_number, np.repeat(factors, np.diff(X.indptr)), 1.0)
    return X


# BLAS would start threads for every product of a matrix and a vector; on a busy machine that made a
# fit ten times slower.


def _times(X: Any, w: Floats) -> Floats:
    """X w for a CSR or a dense block."""
    return np.asarray(X @ w if is_sparse(X) else np.einsum("ij,j->i", X, w))


def _transposed_times(X: Any, r: Floats) -> Floats:
    """X' r for a CSR or a dense block."""
    return np.asarray(X.T @ r if is_sparse(X) else np.einsum("ij,i->j", X, r))


def _longest_row(X: Any) -> int:
    """The largest number of entries of a row."""
    return int(np.diff(X.indptr).max()) if is_sparse(X) else int(X.shape[1])
