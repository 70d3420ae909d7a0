"""The tilt of objective perturbation: how much noise, and the mechanism that hides the minimiser.

The problem is that of `perturbation.py`: F(D, u) with a regulariser Lambda, coded records phi with
l2(phi) <= 1, losses with slopes of at most 1 and curvatures of at most c.

**Objective.** Draw b of density exp(-beta K(b)) and minimise F(D, u) + <b, u>, with K a norm that
is at most 1 for every coded record: l2, as published, or that of the domain's shape (below). The
minimiser u determines b = -grad F(D, u), and by the change of variables its density is that of b
times det(Hessian of F(D, .) at u), the Jacobian that the paper's proof forgets. Let D have one
record more than D', with s = -l'(m). At the same u, b and b' differ by s times the signed phi, so
K(b) and K(b') differ by at most s K(phi) <= s; and the determinants differ by a factor
1 + l'' phi' H^-1 phi <= 1 + l'' / Lambda, where the l2 norm enters: H is at least Lambda I. (Slopes
of either sign change nothing here: s is in [-1, 1] then, and its size counts.) For the logistic
loss l'' = s (1 - s), so that

    epsilon = sup over s in [0, 1] of  beta s + ln(1 + s (1 - s) / Lambda)            (add_remove),

and under replace the other record adds at most beta (its s is 1, its curvature then 0). For any
other loss, epsilon = ln(1 + c / Lambda) + beta (add_remove) or + 2 beta (replace). `tilt_rate`
solves for beta. There is a solution iff Lambda > c / (e^epsilon - 1); else Lambda is raised.

**The shape of the noise.** Any symmetric convex body that holds all coded records is the unit ball
of such a K, and the smaller the body the less the noise (Hardt and Talwar 2010). Under add_remove
gradients differ by +-s phi, which fills the hull of the records and their negatives; under replace
by twice that. So one body serves both, and no norm of the weights (a dual norm) enters. What we
take is a product, K(b) = max over columns g of K_g(b_g): abs(b_g) over the largest size of a number
or of the intercept, and for a one-hot group the norm of the hull of +-(e_j - 1/k), in k - 1
dimensions (`shapes`). It holds every record because each part of it does. The l1 norm of all k
columns would do too, but pays for a dimension more in each group. The hull of whole records is a
little smaller than the product, by 3 to 6 % a coordinate on our tables, since all groups share one
label; no fit was the better for it, so the product, which is simple to draw from, stays.

**Objective, Gaussian.** b ~ N(0, sigma^2 I). The log of the densities' ratio at u is at most
ln(1 + c/Lambda) + (2 <b, g> + l2(g)^2) / (2 sigma^2), with g = +-s phi, or +-s phi +- s' phi' under
replace. It is the record's direction that is fixed, while s, s' in [0, 1] depend on b. But the
bound is convex in (s, s'), so it is largest where each is 0 or 1; and where both are 0 it is below
epsilon. A sum over the other corners bounds their maximum. (Where slopes have either sign, s and s'
are in [-1, 1], and the corners are 2 or 4, of length at most 1 or 2 each: delta <= 2 H(1/sigma, e)
or 4 H(2/sigma, e) below.) Hence, with H(mu, e) the delta at e of a
Gaussian release of mu, and e = epsilon - ln(1 + c / Lambda) > 0,

    delta <= H(1/sigma, e)  (add_remove),     delta <= H(2/sigma, e) + 2 H(1/sigma, e)  (replace).

For GLMs this is the observation of Redberg, Koskela and Wang (2023), after Kifer, Smith and
Thakurta (2012). Nothing is claimed at any other epsilon: the event is an (epsilon, delta) one.

**The cover of approximate minima.** What is proved above is for real b and its exact minimiser u.
The program has a vector that is within eta of b in l2 norm, for every draw (`shapes`), and
minimises to gamma, so its answer v is within e_1 = sqrt(p) (gamma + eta) / Lambda of u in l1 norm:
the minimiser is 1/Lambda-Lipschitz in the tilt. Released is floor(v / g) plus discrete Laplace
noise of epsilon_3 at an l1 sensitivity of 2 e_1 / g + p: given u, the answers under D and D' are
within 2 e_1, and rounding adds less than one unit a coordinate. Let Q(y | x) be the law of what is
released from x. For x, x' both within e_1 of u, Q(y | x) <= e^epsilon_3 Q(y | x'). So

    P_D(y) <= int p_D(u) sup_x Q(y | x) <= e^epsilon_1 int p_D'(u) e^epsilon_3 inf_x Q(y | x)
           <= e^(epsilon_1 + epsilon_3) P_D'(y).

With a delta, min(1, e^epsilon_3 inf_x Q(S | x)) is a function of u with values in [0, 1], so that
the release is (epsilon_1 + epsilon_3, delta)-DP, and delta is not multiplied. g is a power of two
of at most e_1 / (4 p). It is one event: nothing leaves in between.

All guarantees are for the program: nothing here depends on how float64 rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels.random import BitSource
from privfit.base.dyadic import Dyadic, integers
from privfit.base.errors import DeclarationError
from privfit.base.rounding import BELOW
from privfit.base.typing import Floats
from privfit.linear.losses import Logistic, Loss
from privfit.privacy.accounting import Event, gaussian_calibrate, gaussian_total
from privfit.privacy.lazy import Normals
from privfit.privacy.mechanisms import DiscreteLaplace, RelatedMechanism
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.noise_bodies import ABOVE, Ball, Draw, Shape, noise

__all__ = ["PerturbedMinimiser", "tilt_deviation", "tilt_rate"]

FIRST_BITS = 48  # of the variables that a tilt is made of: nearly always enough
ETA = 2.0**-32  # the error of a tilt, in units of its typical length, and 1/16 of the tolerance


def tilt_rate(epsilon: float, ridge: float, loss: Loss, neighbours: Neighbours) -> float:
    """beta: the largest rate of noise exp(-beta K(b)) that costs epsilon, 0 if there is none.

    For the logistic loss, beta = min over s in (0, 1] of N(s) / (k + s), where N(s) =
    epsilon - ln(1 + s (1 - s) / ridge) and k = 1 under replace, else 0. N is convex, so that
    N' (k + s) - N rises, and the minimum is at its zero, or at s = 1 if it has none.
    """
    room = _room(epsilon, ridge, loss)
    if not room or not isinstance(loss, Logistic):
        return room / neighbours.changes
    k = neighbours.changes - 1

    def left(s: float) -> float:
        return epsilon - math.log1p(s * (1 - s) / ridge)

    def rising(s: float) -> float:
        return (2 * s - 1) / (ridge + s * (1 - s)) * (k + s) - left(s)

    s = 1.0 if rising(1.0) <= 0 else float(scipy.optimize.brentq(rising, 0.0, 1.0, xtol=1e-14))
    return left(s) / (k + s) * BELOW


def tilt_deviation(
    epsilon: float, delta: float, ridge: float, loss: Loss, neighbours: Neighbours
) -> float:
    """sigma: the least deviation of Gaussian noise that costs (epsilon, delta); inf if none."""
    left = _room(epsilon, ridge, loss)
    if not left:
        return math.inf
    if loss.both_ways:
        longest = neighbours.changes
        corners = 2 * longest
        return longest / (gaussian_calibrate(left, delta / corners) * BELOW)
    if not neighbours.replaces:
        return 1 / (gaussian_calibrate(left, delta) * BELOW)
    # H(mu, left) takes a share of delta and 2 H(mu / 2, left) the rest; a third always does.
    for share in (0.999, 0.9, 0.5, 1 / 3):
        mu = gaussian_calibrate(left, share * delta) * BELOW
        if gaussian_total(mu / 2, (1 - share) * delta / 2) <= left:
            break
    return 2 / mu


def _room(epsilon: float, ridge: float, loss: Loss) -> float:
    """What the Jacobian leaves of epsilon in the worst case, rounded down; 0 if almost nothing."""
    left = epsilon - math.log1p(loss.curvature / ridge)
    return left * BELOW if left > 1e-9 * epsilon else 0.0


@dataclass(frozen=True, repr=False)
class PerturbedMinimiser(RelatedMechanism[Any, Floats]):
    """The minimiser of a problem that is tilted by noise; epsilon-DP, or (epsilon, delta)-DP.

    It is called with a `Problem`, whose one minimiser it hides; the proof is at the top of this
    module. A fraction `repair` of epsilon pays for the inexactness of the solver and of the tilt.
    `shape` must contain all coded records; None is the unit l2 ball, which does. Gaussian noise,
    for a delta, has no shape.
    """

    epsilon: float
    delta: float
    ridge: float
    loss: Loss
    neighbours: Neighbours
    tolerance: float
    repair: float
    shape: Shape | None = None

    @property
    def event(self) -> Event:
        if self.delta:
            return Event("approximate", self.epsilon, delta=self.delta)
        return Event("pure", self.epsilon)

    @property
    def epsilon_1(self) -> float:
        """The cost of the tilt."""
        return self.epsilon * (1 - self.repair) * BELOW

    @property
    def epsilon_3(self) -> float:
        """The cost of the cover."""
        return self.epsilon * self.repair * BELOW

    @property
    def scale(self) -> float:
        """1 / beta of the noise, or its sigma if delta is positive; inf if Lambda is too small."""
        if self.delta:
            return tilt_deviation(
                self.epsilon_1, self.delta, self.ridge, self.loss, self.neighbours
            )
        rate = tilt_rate(self.epsilon_1, self.ridge, self.loss, self.neighbours)
        return 1 / rate if rate else math.inf

    def eta(self, size: int) -> float:
        """A bound on the l2 error of a tilt with this many coordinates."""
        return self.tolerance / 16 + ETA * (size + 1) * self.scale

    def cover(self, size: int) -> tuple[DiscreteLaplace, float]:
        """The noise on whole units of a model with this many coordinates, and the unit."""
        reach = math.sqrt(size) * (self.tolerance + self.eta(size)) / self.ridge * ABOVE  # e_1
        unit = 2.0 ** math.floor(math.log2(reach / (4 * size)))
        return DiscreteLaplace(self.epsilon_3, math.ceil(2 * reach / unit * ABOVE) + size), unit

    def __call__(self, value: Any, rng: Any = None) -> Floats:
        """float64 (p,): the coded model, on a grid."""
        if (value.loss, value.ridge) != (self.loss, self.ridge):
            raise DeclarationError(
                "value must be a problem with the loss and the ridge of the mechanism; pass "
                "Problem(objective, loss, ridge)"
            )
        source = BitSource.of(rng)
        u = value.minimise(self._tilt(value.size, source), self.tolerance)
        cover, unit = self.cover(value.size)
        drawn = cover(np.zeros(value.size, dtype=np.int64), source).tolist()
        total = [x + y for x, y in zip(u.floors(unit), drawn, strict=True)]  # of any size
        return Dyadic(integers(total), 0).floats() * unit

    def _tilt(self, size: int, source: BitSource) -> Dyadic:
        """As many bits of b as bring it within eta."""
        draw = (
            _gaussian_tilt(self.scale, size, source)
            if self.delta
            else noise(self.shape or Ball(size), self.scale, source)
        )
        bits = FIRST_BITS
        tilt, error = draw(bits)
        while error > self.eta(size):
            bits += 64
            tilt, error = draw(bits)
        return tilt


def _gaussian_tilt(deviation: float, size: int, source: BitSource) -> Draw:
    """A vector of independent normal numbers, with as many bits as requested."""
    normals = Normals(source, size)

    def draw(bits: int) -> tuple[Dyadic, float]:
        error = math.ldexp(deviation * math.sqrt(size), -bits) * ABOVE
        return Dyadic(normals.upto(bits), bits).times(deviation), error

    return draw
