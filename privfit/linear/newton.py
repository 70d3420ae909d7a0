"""Convex problems over private records: a public coding into the unit ball, a certified solver.

Perturbation methods want records phi of l2 norm at most 1, an intercept among their columns if one
is fitted. `coding_of` makes such records from those of any declared domain: phi = A (x, 1), with A
public. The margin <phi, u> of a coded model u is that of the linear model w = A' u on the records
themselves.

======================  ============================================================================
domain                  coded record, up to the common scale that makes its largest l2 norm 1
======================  ============================================================================
box                     every column as [-1, 1]; intercept 1
l1 or l2 ball           (x / radius, 1) / sqrt 2, as Chaudhuri and Monteleoni (2008) have it
schema                  numbers as [-1/2, 1/2]; intercept 1/2; a one-hot group of k levels by k - 1
                        orthonormal contrasts, where its one level has the squared norm 1 - 1/k
======================  ============================================================================

**Without an intercept** phi = A x: the last column of A is 0, and so is the last weight of A' u. No
middle can be subtracted and no contrast taken then, so zero stays zero:

======================  ============================================================================
box                     every column as x / (its largest size), within [-1, 1]
l1 or l2 ball           x / radius
schema                  numbers as [0, 1], one-hot columns as 0 and 1
======================  ============================================================================

A record of m columns (or numbers and groups) has an l2 norm of at most sqrt m there, one of a ball
at most 1. The shape of a one-hot group is the l1 ball, the hull of its +-e_j.

With an intercept contrasts lose nothing (a constant added to a group is an intercept), shorten the
record, and leave one coordinate less to each group, which else carries noise and no signal.

The l2 ball is larger than what records fill. `UnitCoding.shape` is a product over columns and
groups: an interval for a number and for the intercept, the hull of +-(e_j - 1/k) for a group (of
+-e_j where there is no intercept), the ball itself for a ball. It is symmetric and holds every
coded record: its norm of one is at most 1.

Tables of many numbers are often sparse: most of a record is near the low ends of its columns. A
`radius` then codes the numbers of a schema as [0, 1] and clips them, all of a record's together, to
an l1 norm of the radius. Their shape is the l1 ball, much smaller than a cube of many dimensions.

**A coded record is exact.** Columns are centred as integers before anything else: with x_j the
whole number of units that a record has in column j, and m_j twice the middle of its declared range,
2 x_j - m_j is at most the width of the range. A coded record is a float64 number, the scale, times
a matrix of multiples of 2^-47 on these integers. So errors are relative to a column's half width,
not to how far from 0 it lies.

`Problem` holds coded records and a loss l of the signed margin m with slopes in [-1, 1] (`losses`):

    F(u) = sum over records of l(m) + ridge/2 l2(u)^2 + <tilt, u>,

which is ridge-strongly convex. `Problem.minimise` returns u where the gradient of F has an l2 norm
of at most the tolerance gamma, hence within gamma / ridge of the minimiser: always, whatever the
records and the tilt. All that is asked of the records are sums of integers (`objectives.smooth`),
so u is the same bit for bit wherever they lie.

**The error of a computed gradient.** Models, tilts and what is done to the sums are exact numbers
of any length (`dyadic`), so that only slopes are rounded. With n records and c the largest
curvature, each record adds at most, since coded records are no longer than 1:

- SLOPE_ERROR (1 + c): of a slope, given its margin (`objectives/test_smooth.py`). A tabled slope is
  r - f d, with f within 2^-53, d <= c and one product and one sum rounded: 2^-52 (1 + c) at most;
- 2^-51 sup of abs(m) l''(m), the loss's `swing`: a margin, a sum of exact integers, becomes a float
  with a relative error of at most 2^-51. What it moves a slope by is bounded however large it is;
- c times the error of the weights, which are whole numbers, in a margin: less than c ABSOLUTE with
  as many limbs as that takes, or what one limb leaves;
- 2^-61 for a slope that is cut in two parts; or, where products with columns are rounded, 0.51
  2^-45 times the root of the number of a record's entries, times the spectral norm of the coding,
  the square of which is at most the product of the largest absolute sums of its rows and its
  columns.

The finest of these, `least_error`, is a public number of the loss, free of u, of the tilt and of
the domain. `gamma_for` makes gamma at least 8 n least_error, with n the number of records where it
is public and 2^32, which nothing exceeds, where it is not: 2^-14.3 for the logistic loss. One limb
and rounded products are taken wherever their error is below gamma / 8, as it is for 10^7 records.

**Newton's method ends.** Let L = ridge + c n, at least the largest eigenvalue of any Hessian; g the
gradient at u, h what is computed of it, E <= gamma / 8 its error. While l2(h) + E > gamma:

1. Find a direction s by conjugate gradients. If <h, s> > -4 E l2(s), or l2(s) < l2(h) / (2 L), take
   s = -h / L.
2. Go to the first u + t s, with t = 1, or twice the last t if that is less, and halved while
   t l2(s) > gamma / (16 L), where the slope of F along the step is at most 0, errors included, and
   was below -3 E l2(t s) at u; or where the gradient is at most 3/4 as long as the shortest one so
   far. The first 100 steps may also end where the slope is at most half as steep as it was at u.
3. If there is none, go to u - h / L.

Slopes along a line rise, so F falls all the way to a point of the first kind, and it falls by a
constant at least, since the slope rises by no more than L l2(t s)^2 on the way. A step of 3. lowers
F by l2(h) (l2(h) / 2 - E) / L, less what rounding takes, a twentieth of that. Points of the second
kind shorten the shortest gradient by a quarter, so there are at most log(l2(h_0) / gamma) /
log(4/3) of them, and after each of them F is no more than l2(h_0)^2 / (2 ridge) above its minimum.
So the number of steps is finite for every tilt and all records. In practice all of them are Newton
steps, fewer than 30 for the logistic loss.

u lies on a grid of 2^-f with f such that rounding a step, by gamma / (128 L) at most, moves no
gradient by more than gamma / 128.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.dyadic import Dyadic, FixedMatrix, integers
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.linear.losses import HuberHinge, Logistic, Loss
from privfit.objectives import LinearObjective
from privfit.objectives.smooth import (
    MARGIN_BITS,
    PULL_BITS,
    MarginGrid,
    Weights,
    exact_slopes,
    from_halves,
)
from privfit.privacy.noise_bodies import (
    CONTRAST_BITS,
    Ball,
    Contrasts,
    Cross,
    Cube,
    Product,
    Shape,
    contrasts,
)

__all__ = [
    "HuberHinge",
    "Logistic",
    "Problem",
    "UnitCoding",
    "coding_of",
    "gamma_for",
]


SLOPE_ERROR = 2.0**-50  # of a slope, given its margin, times 1 + the largest curvature
MARGIN_ERROR = 2.0**-51  # of a margin, relative
ABSOLUTE = 2.0**-53  # of a margin, by its weights
PARTS = 8  # of the tolerance, of which the error of a gradient takes one at most
INSIDE = 1 - 2.0**-30  # so that no coded record leaves the unit ball by the rounding of its entries
PAIRS = 30  # of directions and what a Hessian made of them, remembered
BOLD_STEPS = 100  # that may go beyond the lowest point of their line


# ------------------------------------------------------------------------------------------ coding


@dataclass(frozen=True, eq=False)
class UnitCoding:
    """Coded records scale * columns @ (2 x - middle, 2^(a+1)) * 2^-(a+1), x in record units.

    columns   (p, d + 1) of multiples of 2^-CONTRAST_BITS; its last row is the intercept's, unless
              there is none: then its last column is 0
    middle    (d,) twice the middle of each column, in record units
    scale     of all
    shape     of p dimensions, within the l2 ball only as far as records are
    units     (d,) what a record unit is worth, and the bits a of the grid
    """

    columns: FixedMatrix
    middle: Integers
    scale: float
    shape: Product
    units: Floats
    a: int
    intercept: bool

    @property
    def of_columns(self) -> Product:
        """The shape without the intercept's factor."""
        return Product(self.shape.factors[:-1]) if self.intercept else self.shape

    @cached_property
    def matrix(self) -> Any:
        """CSR (p, d + 1), in float64: A of coded records A (x, 1), x a record itself."""
        d = self.middle.size
        nu = np.append(np.ldexp(1 / self.units, -self.a), 1.0)
        shift = np.ldexp(-self.middle.astype(np.float64), -self.a - 1)
        ends = (np.append(np.arange(d + 1), np.arange(d)), np.append(np.arange(d + 1), [d] * d))
        centring = scipy.sparse.csr_array((np.append(nu, shift), ends), shape=(d + 1, d + 1))
        A = self.scale * (self.columns.matrix @ centring)
        A.eliminate_zeros()
        return A


@lru_cache(maxsize=8)  # several classes ask for the same one
def coding_of(domain: Domain, radius: float | None = None, intercept: bool = True) -> UnitCoding:
    """The coding of a domain's records; with a radius, that of records with clipped numbers."""
    a, units = domain.grid.a, domain.record_units()
    low, high = (np.rint(bound / units).astype(np.int64) for bound in (domain.low, domain.high))
    middle = np.zeros(domain.width, dtype=np.int64)
    constant = 1.0  # the intercept's column
    if domain.groups or domain.shares:  # coded columns lie in [0, 1]
        rows, squared_norm = _schema_rows(domain, radius, intercept)
        constant = 0.5
        if radius is None and intercept:  # else zero stays zero
            middle[domain.numbers] = 1 << a
    elif domain.order < math.inf:
        rows = scipy.sparse.csr_array(scipy.sparse.diags(np.ldexp(1.0, a) / high))
        squared_norm = 1.0
    else:
        if intercept:
            middle = low + high
        rows = _box_rows(np.maximum(np.abs(2 * low - middle), np.abs(2 * high - middle)), a)
        squared_norm = float(rows.shape[0])
    if not rows.shape[0] and not intercept:
        raise DeclarationError(
            "domain must have a column that is not 0 for all records if no intercept is fitted; "
            "pass wider bounds, or fit_intercept=True"
        )
    rows.data = np.ldexp(np.rint(np.ldexp(rows.data, CONTRAST_BITS)), -CONTRAST_BITS)
    last = scipy.sparse.csr_array(np.full((int(intercept), 1), constant))
    columns = scipy.sparse.block_diag([rows, last], format="csr")
    scale = 1 / math.sqrt(squared_norm + (constant**2 if intercept else 0.0))
    factors = _factors(domain, scale, radius, intercept)
    if intercept:
        factors.append(Cube(1, constant * scale))
    matrix = FixedMatrix(scipy.sparse.csr_array(columns), CONTRAST_BITS)
    return UnitCoding(matrix, middle, INSIDE * scale, Product(tuple(factors)), units, a, intercept)


def _box_rows(widest: Integers, a: int) -> Any:
    """Rows of the columns that are not 0 for all records, over the largest abs(2 x - middle)."""
    filled = np.flatnonzero(widest > 0)
    return scipy.sparse.csr_array(
        (np.ldexp(1 / widest[filled], a + 1), (np.arange(filled.size), filled)),
        shape=(filled.size, widest.size),
    )


def _schema_rows(domain: Domain, radius: float | None, intercept: bool) -> tuple[Any, float]:
    """The same for a schema, and the largest squared norm of a record.

    Contrasts are orthogonal to the middle of a group, 1/2 everywhere. Clipped numbers come first.
    Their squares add up to no more than they do, each being at most 1.
    """
    numbers = domain.numbers
    if not intercept:
        grouped = len(domain.groups)
        rows = scipy.sparse.csr_array(scipy.sparse.eye(domain.width))
        squared_norm = float(grouped)
    else:
        squared_norm = sum(1 - 1 / levels for levels in _levels(domain) if levels)
        parts = [contrasts(levels) if levels else np.ones((1, 1)) for levels in _levels(domain)]
        rows = scipy.sparse.block_diag(list(map(scipy.sparse.csr_array, parts)), format="csr")
    if radius is None:
        return rows, squared_norm + numbers.size / (4 if intercept else 1)
    plain = np.isin(rows.indices[rows.indptr[:-1]], numbers)  # by a row's first column
    order = np.argsort(~plain, kind="stable")
    return rows[order], squared_norm + min(radius, radius**2)


def _levels(domain: Domain) -> Iterator[int]:
    """The levels of each one-hot group, and 0 for a number, in the order of their columns."""
    groups = {part.start: part.stop - part.start for part in domain.groups}
    column = 0
    while column < domain.width:
        levels = groups.get(column, 0)
        yield levels
        column += levels or 1


def _factors(domain: Domain, scale: float, radius: float | None, intercept: bool) -> list[Shape]:
    """The shapes of the coded columns, in their order, without the intercept."""
    if domain.groups or domain.shares:
        group = Contrasts if intercept else Cross
        if radius is not None:
            groups = [group(levels, scale) for levels in _levels(domain) if levels]
            return [Cross(domain.numbers.size, radius * scale), *groups]
        number = Cube(1, scale / 2 if intercept else scale)
        return [group(levels, scale) if levels else number for levels in _levels(domain)]
    if domain.order < math.inf:
        return [(Cross if domain.order == 1 else Ball)(domain.width, scale)]
    filled = domain.high > domain.low if intercept else (domain.low != 0) | (domain.high != 0)
    return [Cube(int(np.count_nonzero(filled)), scale)]


# ------------------------------------------------------------------------------------------ errors


def least_error(loss: Loss) -> float:
    """A bound on what a record adds to the error of a gradient that is computed finely."""
    return 1.01 * (_slope_error(loss) + loss.curvature * ABSOLUTE + 2.0**-61)


def gamma_for(loss: Loss, most: int) -> float:
    """The smallest tolerance that is always met with this number of records."""
    return PARTS * most * least_error(loss)


def _slope_error(loss: Loss) -> float:
    return SLOPE_ERROR * (1 + loss.curvature) + MARGIN_ERROR * loss.swing


# ----------------------------------------------------------------------------------------- problems


@dataclass(frozen=True, eq=False, repr=False)
class _Point:
    """A coded model u, the gradient there, a bound on its error in l2 norm; the last t."""

    u: Dyadic
    weights: Weights
    gradient: Floats
    error: float
    t: float = 1.0

    @property
    def length(self) -> float:
        """The length of the computed gradient, rounded up."""
        return float(np.linalg.norm(self.gradient)) * (1 + 2.0**-40)

    def steepest_along(self, step: Floats) -> float:
        """An upper bound on the slope of the function along a step."""
        size = float(np.linalg.norm(step)) * (1 + 2.0**-40)
        return float(self.gradient @ step) + (self.error + 2.0**-40 * self.length) * size

    def falls(self, step: Floats) -> bool:
        """Whether the function falls along a step by more than three times the possible error."""
        size = float(np.linalg.norm(step)) * (1 + 2.0**-40)
        return self.steepest_along(step) <= -3 * self.error * size


class Problem:
    """Coded private records and a loss; not released, and its repr shows no records."""

    def __init__(
        self,
        objective: LinearObjective,
        loss: Loss,
        ridge: float,
        radius: float | None = None,
        coding: UnitCoding | None = None,
    ) -> None:
        self.loss, self.ridge = loss, float(ridge)
        self.coding = coding or coding_of(objective.domain, radius, objective.fit_intercept)
        self._origin = objective.domain.origin
        self._n = objective.n_records
        numbers = objective.domain.numbers if radius is not None else np.arange(0)
        self._sums = objective.smooth(
            loss.smoothing, numbers, radius or math.inf, loss.knots, loss.curvature
        )
        self._grid = MarginGrid(objective.domain, self.coding.middle)
        self._decoding, self._a = self.coding.columns.T, self.coding.a
        self._stretch = _stretch(self.coding, objective.domain)

    def __repr__(self) -> str:
        return "<Problem of private records>"

    @property
    def size(self) -> int:
        """The number of coordinates of a coded model."""
        return self.coding.shape.size

    @property
    def _steepest(self) -> float:
        """L: at least the largest eigenvalue of any Hessian."""
        return (self.ridge + self.loss.curvature * self._n) * (1 + 2.0**-40)

    def linear(self, u: Floats) -> Floats:
        """(n_weights,): the weights of a coded model on the records themselves."""
        w = np.asarray(self.coding.matrix.T @ u)
        if not self.coding.intercept:
            return w[:-1]
        w[-1] -= w[:-1] @ self._origin
        return w

    @property
    def directions(self) -> Any:
        """CSR (p, n_weights): the weights of each coordinate of a coded model; see `linear`."""
        columns, last = self.coding.matrix[:, :-1], self.coding.matrix[:, -1:]
        if not self.coding.intercept:
            return columns
        shift = scipy.sparse.csr_array((columns @ self._origin)[:, None])
        return scipy.sparse.hstack([columns, last - shift], format="csr")

    def minimise(self, tilt: Dyadic, tolerance: float) -> Dyadic:
        """(p,): a point where the gradient is no longer than `tolerance`; the proof is above.

        The tolerance must be at least `gamma_for` the loss and the records.
        """
        if tolerance < gamma_for(self.loss, self._n):
            raise DeclarationError(
                f"tolerance ({tolerance!r}) must be at least gamma_for(loss, records); pass more"
            )
        bits = math.ceil(math.log2(64 * self._steepest * math.sqrt(self.size) / tolerance))
        here = self._at(Dyadic(integers([0] * self.size), max(bits, 0)), tilt, tolerance)
        shortest, steps, guess = here.length, 0, InverseGuess(self.size)
        while here.length + here.error > tolerance:
            bold = 0.5 if steps < BOLD_STEPS else 0.0
            step = self._newton_step(here, guess, tolerance)
            if not (here.falls(step) and step.any()):  # by rounding: nearly dependent pairs
                guess.forget()
            here = self._next(here, step, shortest, bold, tilt, tolerance)
            shortest, steps = min(shortest, here.length), steps + 1
        return here.u

    def untilted(self, u: Floats) -> _Point:
        """A coded model in float64 and its gradient without a tilt, as exactly as possible."""
        none = Dyadic(integers([0] * self.size), 0)
        return self._at(Dyadic.of(u), none, gamma_for(self.loss, self._n))

    def _next(
        self,
        here: _Point,
        step: Floats,
        shortest: float,
        bold: float,
        tilt: Dyadic,
        tolerance: float,
    ) -> _Point:
        """The next point of the method above, along this direction if it leads down."""
        downhill = -here.gradient / self._steepest
        size = float(np.linalg.norm(step))
        if not here.falls(step) or size < here.length / (2 * self._steepest):
            step, size = downhill, float(np.linalg.norm(downhill))
        t = min(1.0, 2 * here.t)
        while t * size > tolerance / (16 * self._steepest):
            moved, u = self._rounded(here.u, t * step)
            there = self._at(u, tilt, tolerance)
            before, after = float(here.gradient @ moved), there.steepest_along(moved)
            if there.length <= 0.75 * shortest or (here.falls(moved) and after <= -bold * before):
                return replace(there, t=t)
            t *= 0.5
        return self._at(self._rounded(here.u, downhill)[1], tilt, tolerance)

    @staticmethod
    def _rounded(u: Dyadic, step: Floats) -> tuple[Floats, Dyadic]:
        """A step on the grid of u, in float64, and where it leads."""
        whole = Dyadic.of(step).rounded(u.bits)
        return Dyadic(whole, u.bits).floats(), Dyadic(u.whole + whole, u.bits)

    def _at(self, u: Dyadic, tilt: Dyadic, tolerance: float) -> _Point:
        """The gradient at u: fast if its error is then at most an eighth of the tolerance."""
        meant = self._decoded(u)
        weights, fine = self._grid.weights(meant), False
        error = self._error(weights.error, fine)
        if error > tolerance / PARTS:
            weights, fine = self._grid.weights(meant, ABSOLUTE), True
            error = self._error(weights.error, fine)
        sums = exact_slopes(self._sums.slopes(weights.whole, weights.bits, fine), self._a)
        gradient = u.times(self.ridge) + tilt - self._coded(sums)
        return _Point(u, weights, gradient.floats(), error)

    def _decoded(self, u: Dyadic) -> Dyadic:
        """(d + 1,): exact weights of 2 x - middle, and the intercept."""
        weights = (self._decoding @ u).times(self.coding.scale)
        whole = weights.whole.copy()
        whole[-1] <<= self._a + 1
        return Dyadic(whole, weights.bits + self._a + 1)

    def _coded(self, sums: Dyadic) -> Dyadic:
        """(p,): the coding of sums of packed columns, of which the last is 2^a for each record."""
        columns = (sums.whole[:-1] << (self._a + 1)) - self.coding.middle.astype(
            object
        ) * sums.whole[-1]
        whole = np.append(columns, sums.whole[-1:] << (self._a + 1))
        nu = Dyadic(whole, sums.bits + 2 * self._a + 1)
        return (self.coding.columns @ nu).times(self.coding.scale)

    def _error(self, margin: float, fine: bool) -> float:
        """A bound on the l2 error of a gradient, from that of a margin; see the top."""
        product = 2.0**-61 if fine else math.ldexp(0.51, -PULL_BITS) * self._stretch
        one = _slope_error(self.loss) + self.loss.curvature * margin + product
        return 1.01 * self._n * one

    def _newton_step(self, here: _Point, guess: InverseGuess, tolerance: float) -> Floats:
        """Minus the inverse Hessian times the gradient, by preconditioned conjugate gradients.

        Only as exact as useful: to a tenth of the gradient far from the minimum, and near it to the
        tolerance.
        """
        step, residual = np.zeros(self.size), -here.gradient
        goal = max(0.01 * float(residual @ residual), (0.3 * tolerance) ** 2)
        tried: list[Floats] = []
        bent: list[Floats] = []
        direction = guess(residual)
        drop = float(residual @ direction)
        while float(residual @ residual) > goal and len(tried) < 2 * self.size:
            change = self._bent(here, direction) if 0 < drop < math.inf else direction
            along = float(direction @ change)
            if not 0 < drop * along < math.inf:  # by rounding alone: take what was found so far
                break
            tried.append(direction)
            bent.append(change)
            step = step + drop / along * direction
            residual = residual - drop / along * change
            better = guess(residual)
            before, drop = drop, float(residual @ better)
            direction = better + drop / before * direction
        if tried:
            guess.learn(tried, bent)
        return step

    def _bent(self, here: _Point, direction: Floats) -> Floats:
        """The Hessian at a point times a direction, in float64."""
        coded, scale, a = self.coding.columns.matrix, self.coding.scale, self._a
        meant = scale * np.asarray(self._decoding.matrix @ direction)
        meant[:-1] = np.ldexp(meant[:-1], -a - 1)
        along = self._grid.near(meant)
        sums = self._sums.bends(here.weights.whole, here.weights.bits, along.whole)
        pull = from_halves(sums, PULL_BITS + int(along.bits[0]) - MARGIN_BITS)
        pull[:-1] -= np.ldexp(self.coding.middle, -a - 1) * pull[-1]
        return self.ridge * direction + self.loss.curvature * scale * np.asarray(coded @ pull)


class InverseGuess:
    """An approximate inverse of the Hessian, learned from its products with directions.

    By the BFGS formula of the last `PAIRS` pairs, in the matrix form of Byrd, Nocedal and Schnabel
    (1994). The Hessian of one step is close to that of the next, so fewer conjugate gradients are
    needed.
    """

    def __init__(self, size: int) -> None:
        self._none = np.empty((0, size))
        self.forget()

    def forget(self) -> None:
        """Start again, with the identity."""
        self._directions = self._bent = self._none

    def learn(self, directions: list[Floats], bent: list[Floats]) -> None:
        """Learn from directions of one step, and the Hessian's products with them."""
        S = self._directions = np.vstack([self._directions, *directions])[-PAIRS:]
        Y = self._bent = np.vstack([self._bent, *bent])[-PAIRS:]
        products = S @ Y.T
        self._unit = products[-1, -1] / float(Y[-1] @ Y[-1])
        self._inverse = np.linalg.inv(np.triu(products))
        self._middle = np.diag(np.diag(products)) + self._unit * (Y @ Y.T)

    def __call__(self, vector: Floats) -> Floats:
        """The guess times a vector."""
        S, Y = self._directions, self._bent
        if not len(S):
            return vector
        first = self._inverse @ (S @ vector)
        second = self._inverse.T @ (self._middle @ first - self._unit * (Y @ vector))
        return np.asarray(self._unit * (vector - first @ Y) + second @ S)


def _stretch(coding: UnitCoding, domain: Domain) -> float:
    """How much larger a coded record's error can be than that of each of its packed columns.

    The error of an entry affects a centred column, and so does that of the intercept, as often as
    the middle is away from 0. A record of a schema is non-zero in one column of each group.
    """
    filled = len(domain.filled()) + 1  # with the intercept
    units = np.append(1 + np.ldexp(np.abs(coding.middle), -coding.a - 1), 1.0)
    sizes = abs(coding.columns.matrix) * coding.scale
    rows, columns = sizes @ units, units * (sizes.T @ np.ones(sizes.shape[0]))
    return math.sqrt(filled * rows.max() * columns.max())
