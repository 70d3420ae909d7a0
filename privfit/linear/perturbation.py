"""Perturbation of convex fits: `output`, `objective` (Chaudhuri and Monteleoni 2008), `privatesvm`.

All three minimise, over models u of coded records phi with l2(phi) <= 1 (see `convex`),

    F(D, u) = sum over records of l(m) + Lambda/2 l2(u)^2,    -1 <= l' <= 1,    0 <= l'' <= c,

where m is the signed margin; the intercept is a coordinate like any other. Without one phi = A x
has no such coordinate (`convex`); p and K are then those of what is left. All that is asked of
coded records is l2(phi) <= 1 and K(phi) <= 1, which holds for them too. Neighbours D, D' differ in
one record, which is replaced ('replace') or added or removed ('add_remove'); Lambda, the
dimension p and the tolerance gamma are public. The solver stops where the gradient is no longer
than gamma, whatever the records are (`convex`), so its answer is within gamma / Lambda of the
minimiser, F being Lambda-strongly convex. gamma depends on the loss, and on the number of records
where it is public; else on 2^32, which nothing exceeds. It is checked before anything is charged.

**Output.** The gradients of neighbours differ by at most 2 (replace) or 1 (add_remove). By strong
convexity the minimiser moves by at most that over Lambda, and the solver's answer by at most
S = (2 + 2 gamma) / Lambda or (1 + 2 gamma) / Lambda. Rounded down to whole units g, it moves by at
most S / g + sqrt(p) of them. Noise of density exp(-epsilon l2(b)) over that makes it epsilon-DP,
and so does noise that is then rounded to whole numbers, provided that it is rounded as the real
number that it stands for (`GammaVector`). Discrete Gaussian noise makes it a Gaussian release.

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

**A look at the numbers.** Whether the numbers of a schema are better coded around their middle or
clipped to a small l1 norm (`convex`) depends on the data, so it is bought: a count of records by
the l1 norm of their numbers, in four classes. One record changes one count by 1 (add_remove) or two
(replace), and discrete Laplace noise hides that for a share of epsilon, exactly. The classes are
multiples of the number of columns, and the clip of a record depends on it and the class alone.

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

**PrivateSVM** is output perturbation with discrete Laplace noise on every coordinate: the l1
distance is at most sqrt(p) S, and that of whole units sqrt(p) S / g + p.

All guarantees are for the program: nothing here depends on how float64 rounds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules load when first used

from privfit._kernels.random import BitSource
from privfit.base.dyadic import Dyadic, integers
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.domains import Domain
from privfit.linear.losses import LEAST, MOST, HuberHinge, Logistic, Loss, SmoothLoss, Tabled
from privfit.linear.newton import (
    Problem,
    UnitCoding,
    coding_of,
    gamma_for,
)
from privfit.objectives import LinearObjective
from privfit.objectives.common import room_for
from privfit.privacy.accounting import Event, calibrate, gaussian_calibrate, gaussian_total
from privfit.privacy.lazy import Normals
from privfit.privacy.ledger import Budget, Grant
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, GammaVector, Mechanism
from privfit.privacy.noise_bodies import ABOVE, Ball, Draw, Shape, noise
from privfit.runs.paths import Conduct, Generation, Path, check_positive_shares, check_shares
from privfit.runs.spaces import Space

__all__ = [
    "METHODS",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PerturbedMinimiser",
    "PrivateSVM",
    "objective_perturbation",
    "output",
    "privatesvm",
    "tilt_deviation",
    "tilt_rate",
]

Callback = Callable[[Generation], object] | None

CHANGES = {"replace": 2, "add_remove": 1}  # gradients of single records that neighbours differ in
USUAL_TOLERANCE = 2.0**-16
LARGEST_TOLERANCE = 2.0**-4  # that a rule takes: one adds 1/16 to the change of a gradient
FIRST_BITS = 48  # of the variables that a tilt is made of: nearly always enough
ETA = 2.0**-32  # the error of a tilt, in units of its typical length, and 1/16 of the tolerance
LARGEST_WHOLE = 2.0**52  # of an answer in whole units
USUAL_LOOK = 0.05  # of epsilon
MANY_NUMBERS = 16  # from which a look at them is worth its budget
USUAL_SIZE = 10_000  # of a table where nobody declared it: what a rule takes
SAFE = 1 - 1e-12  # factor on calibrated parameters: more than their rounding errors


# ------------------------------------------------------------------------------------ calibration


def tilt_rate(epsilon: float, ridge: float, loss: Loss, adjacency: str) -> float:
    """beta: the largest rate of noise exp(-beta K(b)) that costs epsilon, 0 if there is none.

    For the logistic loss, beta = min over s in (0, 1] of N(s) / (k + s), where N(s) =
    epsilon - ln(1 + s (1 - s) / ridge) and k = 1 under replace, else 0. N is convex, so that
    N' (k + s) - N rises, and the minimum is at its zero, or at s = 1 if it has none.
    """
    room = _room(epsilon, ridge, loss)
    if not room or not isinstance(loss, Logistic):
        return room / CHANGES[adjacency]
    k = CHANGES[adjacency] - 1

    def left(s: float) -> float:
        return epsilon - math.log1p(s * (1 - s) / ridge)

    def rising(s: float) -> float:
        return (2 * s - 1) / (ridge + s * (1 - s)) * (k + s) - left(s)

    s = 1.0 if rising(1.0) <= 0 else float(scipy.optimize.brentq(rising, 0.0, 1.0, xtol=1e-14))
    return left(s) / (k + s) * SAFE


def tilt_deviation(epsilon: float, delta: float, ridge: float, loss: Loss, adjacency: str) -> float:
    """sigma: the least deviation of Gaussian noise that costs (epsilon, delta); inf if none."""
    left = _room(epsilon, ridge, loss)
    if not left:
        return math.inf
    if loss.both_ways:
        corners, longest = (2, 1) if adjacency == "add_remove" else (4, 2)
        return longest / (gaussian_calibrate(left, delta / corners) * SAFE)
    if adjacency == "add_remove":
        return 1 / (gaussian_calibrate(left, delta) * SAFE)
    # H(mu, left) takes a share of delta and 2 H(mu / 2, left) the rest; a third always does.
    for share in (0.999, 0.9, 0.5, 1 / 3):
        mu = gaussian_calibrate(left, share * delta) * SAFE
        if gaussian_total(mu / 2, (1 - share) * delta / 2) <= left:
            break
    return 2 / mu


def _room(epsilon: float, ridge: float, loss: Loss) -> float:
    """What the Jacobian leaves of epsilon at worst, rounded down; 0 if next to nothing."""
    left = epsilon - math.log1p(loss.curvature / ridge)
    return left * SAFE if left > 1e-9 * epsilon else 0.0


@dataclass(frozen=True)
class PerturbedMinimiser(Mechanism):
    """The minimiser of a problem that is tilted by noise; epsilon-DP, or (epsilon, delta)-DP.

    It is called with a `Problem`, which it asks for the one minimiser that it then hides; see the
    module's text for the proof. A share `repair` of epsilon pays for the inexactness of the solver
    and of the tilt. `shape` must hold all coded records; None is the unit l2 ball, which does.
    Gaussian noise, for a delta, has no shape.
    """

    epsilon: float
    delta: float
    ridge: float
    loss: Loss
    adjacency: str
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
        """What the tilt costs."""
        return self.epsilon * (1 - self.repair) * SAFE

    @property
    def epsilon_3(self) -> float:
        """What the cover costs."""
        return self.epsilon * self.repair * SAFE

    @property
    def scale(self) -> float:
        """1 / beta of the noise, or its sigma if delta is positive; inf if Lambda is too small."""
        if self.delta:
            return tilt_deviation(self.epsilon_1, self.delta, self.ridge, self.loss, self.adjacency)
        rate = tilt_rate(self.epsilon_1, self.ridge, self.loss, self.adjacency)
        return 1 / rate if rate else math.inf

    def eta(self, size: int) -> float:
        """What the tilt of so many coordinates is off by at most, in l2 norm."""
        return self.tolerance / 16 + ETA * (size + 1) * self.scale

    def cover(self, size: int) -> tuple[DiscreteLaplace, float]:
        """The noise on whole units of a model of so many coordinates, and the unit."""
        reach = math.sqrt(size) * (self.tolerance + self.eta(size)) / self.ridge * ABOVE  # e_1
        unit = 2.0 ** math.floor(math.log2(reach / (4 * size)))
        return DiscreteLaplace(self.epsilon_3, math.ceil(2 * reach / unit * ABOVE) + size), unit

    def __call__(self, value: Any, rng: Any = None) -> Floats:
        """float64 (p,): the coded model, on a grid."""
        if (value.loss, value.ridge) != (self.loss, self.ridge):
            raise ValueError(
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
    """A vector of independent normal numbers, as many bits of it as one asks for."""
    normals = Normals(source, size)

    def draw(bits: int) -> tuple[Dyadic, float]:
        error = math.ldexp(deviation * math.sqrt(size), -bits) * ABOVE
        return Dyadic(normals.upto(bits), bits).times(deviation), error

    return draw


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True)
class _Perturbation:
    """What the settings of all three methods share; see `OutputPerturbation`."""

    through_origin: ClassVar[bool] = True  # as published

    regularisation: float | None = None
    smoothing: float = 0.5
    tolerance: float | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        if self.regularisation is not None and not (
            is_finite(self.regularisation) and LEAST <= self.regularisation <= MOST
        ):
            raise ValueError(
                f"regularisation ({self.regularisation!r}) must be a positive number, from "
                f"{LEAST:g} to {MOST:g}; leave it out"
            )
        check_positive_shares(self, "smoothing", "tolerance")

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what the method would refuse, before anything is charged."""
        if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
            raise ValueError(
                f"{type(self).__name__} needs a convex loss of a linear model; pass a "
                "LinearObjective with loss='logistic' or 'hinge'"
            )
        if objective.C != 1.0:
            raise ValueError(
                f"C ({objective.C}) must be 1 for {type(self).__name__}; pass regularisation="
            )
        if self.paper and self.through_origin and objective.fit_intercept:
            raise ValueError(
                f"fit_intercept (True) must be False for {type(self).__name__}(paper=True), since "
                "the published algorithm has no intercept; pass fit_intercept=False"
            )
        coding, loss = _coding(objective), self.loss_of(objective)
        self.ridge(coding, loss, budget, adjacency, size)
        least = gamma_for(loss, room_for(objective, adjacency))
        if self.tolerance is not None and self.tolerance < least:
            raise ValueError(
                f"tolerance ({self.tolerance!r}) must be at least {least:.2g}, to cover the "
                "rounding errors of so many records; leave it out"
            )
        if self.tolerance is None and least > LARGEST_TOLERANCE:
            own = isinstance(loss, Tabled)
            bends = "curvature" if own else f"smoothing ({self.smoothing!r})"
            raise ValueError(
                f"{bends} makes slopes change too fast for the rounding errors of so many records "
                f"to be covered; pass {'a smoother loss' if own else 'smoothing=0.1'}"
            )

    def stops_at(self, loss: Loss, most: int) -> float:
        """gamma: as given, or 2^-16, or what rounding errors of up to `most` records take."""
        return self.tolerance or max(USUAL_TOLERANCE, gamma_for(loss, most))

    def loss_of(self, objective: LinearObjective) -> Loss:
        """The loss that is minimised, with slopes of at most 1."""
        return Logistic() if objective.loss == "logistic" else HuberHinge(self.smoothing)

    def ridge(
        self, coding: UnitCoding, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """Lambda: as given, the paper's, or by our rule; from public numbers alone.

        Of the loss divided by its slope, as it is minimised.
        """
        if self.regularisation is not None:
            return self.regularisation / loss.slope
        if not self.paper:
            return self._rule(coding, loss, budget, adjacency, size)
        if size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or settings with regularisation="
            )
        return 0.01 * size / loss.slope

    def _rule(
        self, coding: UnitCoding, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """Lambda by our rule: such that the noise of the weights has a length of min(4, p / 15).

        Compared with the best of 4, 16, 64, ... on Adult, 4,000 records of Adult, Credit and
        Mushroom (p = 124, 124, 29, 105), and of 1/4, 1/2, 1, ... on generated tables with p = 4
        and 11, at epsilon 0.1, 1 and 10. The number of records matters little.
        """
        p = coding.shape.size
        return _noise_length(p, budget, adjacency) / min(4.0, p / 15)


def _coding(objective: LinearObjective, radius: float | None = None) -> UnitCoding:
    return coding_of(objective.domain, radius, objective.fit_intercept)


def _noise_length(p: int, budget: Budget, adjacency: str) -> float:
    """The typical l2 norm of noise that hides a sum of gradients at this budget."""
    changes = CHANGES[adjacency]
    if budget.delta:
        return changes * math.sqrt(p) / gaussian_calibrate(budget.epsilon, budget.delta)
    return changes * p / budget.epsilon


def _unit(scale: float, most: int, ridge: float) -> float:
    """A grid that is fine beside noise of this scale: a power of two.

    No model is longer than the number of records over Lambda, and a little; its whole units stay
    below 2^53.
    """
    fine = math.floor(math.log2(scale)) - 24
    return 2.0 ** max(fine, math.ceil(math.log2((most + 1) / ridge / LARGEST_WHOLE)))


# ------------------------------------------------------------------------------------------ output


@dataclass(frozen=True)
class OutputPerturbation(_Perturbation):
    """Settings of `output`.

    Parameters
    ----------
    regularisation : float, optional
        Lambda, the weight of l2(u)^2 / 2 beside the *sum* of losses, for coded records (`convex`);
        by default a public rule in epsilon, delta and the dimension.
    smoothing : float
        Half the width of the parabola that rounds the hinge; the logistic loss needs none.
    tolerance : float, optional
        gamma: the length of the gradient at which the solver stops; a record's is at most 1. By
        default 2^-16, or as much as the rounding errors of all records may take if that is more:
        from 2^30 records on, or where their number is private.
    paper : bool
        Algorithm 1 of Chaudhuri and Monteleoni (2008): records x of the unit ball, a model through
        the origin (pass ``fit_intercept=False``), Lambda = 0.01 n as in their simulations, and
        noise for a pure epsilon, whatever delta is. `docs/perturbation.md` has a table.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, OutputPerturbation
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = OutputPerturbation(regularisation=10)
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """


def output(
    objective: Any,
    space: Space,
    settings: OutputPerturbation,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Minimise, then add noise in proportion to what one record can change.

    Released: the noisy model. Cost: one pure release of epsilon, or, with a delta, one Gaussian
    release by discrete noise; as published it is pure in any case.
    """
    plan = _Plan.of(objective, space, settings, grant, rng, callback, **public)
    whole, share = grant.budget, plan.conduct.share
    if whole.delta and not settings.paper:
        mu = gaussian_calibrate(whole.epsilon, whole.delta) / math.sqrt(share) * SAFE
        unit = plan.unit(plan.reach / mu)
        return plan.release(DiscreteGaussian(mu, plan.moved(unit, 2)), unit)
    epsilon = calibrate(share, whole.epsilon, 0.0)
    unit = plan.unit(plan.reach / epsilon)
    return plan.release(GammaVector(epsilon, plan.moved(unit, 2), 1.0), unit)


@dataclass(frozen=True, eq=False)
class _Plan:
    """A fit whose minimiser gets noise: its public numbers, and how it is released."""

    conduct: Conduct
    grant: Grant
    loss: Loss
    ridge: float
    size: int  # p
    tolerance: float

    @classmethod
    def of(
        cls, objective: Any, space: Space, settings: Any, grant: Grant, *rest: Any, **public: Any
    ) -> _Plan:
        conduct = Conduct(objective, space, grant, *rest, **public)
        settings.check(objective, conduct.budget, conduct.adjacency, conduct.size)
        coding, loss = _coding(objective), settings.loss_of(objective)
        ridge = settings.ridge(coding, loss, conduct.budget, conduct.adjacency, conduct.size)
        gamma = settings.stops_at(loss, room_for(objective, conduct.adjacency))
        return cls(conduct, grant, loss, ridge, coding.shape.size, gamma)

    @property
    def reach(self) -> float:
        """S: how far the solver's answer may lie from a neighbour's, in l2 norm, rounded up."""
        return (CHANGES[self.conduct.adjacency] + 2 * self.tolerance) / self.ridge / SAFE

    def unit(self, scale: float) -> float:
        """The unit of answers that get noise of this scale."""
        most = room_for(self.conduct.objective, self.conduct.adjacency)
        return _unit(scale, most, self.ridge)

    def moved(self, unit: float, order: int, reach: float = 0.0) -> float:
        """How far the answer in whole units may lie from a neighbour's, in the l1 or l2 norm."""
        units, p = (reach or self.reach) / unit, self.size
        return (units + math.sqrt(p) if order == 2 else math.sqrt(p) * units + p) * ABOVE

    def release(self, mechanism: Mechanism, unit: float) -> Path:
        """Plan, minimise, release in whole units."""
        conduct = self.conduct
        conduct.set_aside(1, mechanism.event)
        problem = Problem(conduct.objective, self.loss, self.ridge)
        u = problem.minimise(Dyadic(integers([0] * self.size), 0), self.tolerance)
        whole = np.array(u.floors(unit), dtype=np.int64)
        value = whole.astype(np.float64) if isinstance(mechanism, GammaVector) else whole
        noisy = self.grant.release(mechanism, value, conduct.source) * unit
        conduct.tell(problem.linear(noisy)[None])
        notes = {
            "regularisation": self.ridge, "smoothing": self.loss.smoothing or None,
            "tolerance": self.tolerance, "grid": unit, **_origin(conduct.objective.domain),
        }  # fmt: skip
        return replace(conduct.path(), notes=notes)


def _origin(domain: Domain) -> dict[str, list[float]]:
    """What was subtracted from records, if anything was: a note of a release."""
    return {"origin": domain.origin.tolist()} if domain.origin.any() else {}


# --------------------------------------------------------------------------------------- objective


@dataclass(frozen=True)
class ObjectivePerturbation(_Perturbation):
    """Settings of `objective_perturbation`: those of `OutputPerturbation`, and three more.

    `paper` is Algorithm 2 of Chaudhuri and Monteleoni (2008), with the same model and Lambda, and
    noise in the l2 norm. Repaired: its rate, which forgets a Jacobian, and the noise on top.

    Parameters
    ----------
    repair : float
        The share of epsilon that pays for noise on top, which hides that the solver is inexact.
    shaped : bool, optional
        Noise of the shape of the declared domain, which takes a pure budget; by default wherever
        there is one, but not in the paper. Otherwise its length is an l2 norm.
    look : float, optional
        The share of epsilon that buys a look at the numbers, where the noise is shaped and a schema
        has at least 16 of them; by default 0.05, and 0 for none.
    loss : SmoothLoss, optional
        A convex loss of your own (Theorem 3 of the paper), in place of the estimator's. A
        regularisation is the weight of l2(u)^2 / 2 beside the sum of these losses.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, ObjectivePerturbation
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = ObjectivePerturbation(regularisation=10)
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    repair: float = 0.01
    shaped: bool | None = None
    look: float | None = None
    loss: SmoothLoss | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_shares(self, "repair")
        if self.loss is not None and not isinstance(self.loss, SmoothLoss):
            raise TypeError(
                f"loss ({type(self.loss).__name__}) must be a SmoothLoss; pass SmoothLoss(value, "
                "derivative, slope=..., curvature=...), or leave it out"
            )
        if self.repair == 1:
            raise ValueError("repair (1) must be below 1: the tilt needs a budget; leave it out")
        check_shares(self, "look")
        if self.look == 1:
            raise ValueError("look (1) must be below 1: the fit needs a budget; leave it out")

    def loss_of(self, objective: LinearObjective) -> Loss:
        """The user's own, tabled, or that of the objective."""
        return super().loss_of(objective) if self.loss is None else self.loss.tabled

    def fits(self, budget: Budget) -> bool:
        """Whether the noise has the shape of the domain."""
        return self.shaped is not False and not self.paper and not budget.delta

    def looks(self, domain: Domain, budget: Budget) -> float:
        """The share of epsilon that buys a look at the numbers; 0 for none."""
        many = len(domain.shares) >= MANY_NUMBERS
        share = USUAL_LOOK if self.look is None else self.look
        return share if many and self.fits(budget) else 0.0

    def _rule(
        self, coding: UnitCoding, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """N^1.5 / 280, at least 8 c / epsilon; shaped, 1.9 q N (N / n)^0.8, at least 5 c / epsilon.

        N is the typical length of a tilt, in the norm of the noise, and q the mean square of the
        shape without its last factor, the intercept. The latter was chosen on Adult (with bins and
        without), Credit and Mushroom at pure epsilon 0.05 to 3.2, replace, beside 0.1, 0.2, ...,
        6.4 times p / epsilon in the units of the columns: within 1 % accuracy of the best of them
        in all cells where `auto` takes it. The former: within a factor of 2 or 0.3 % of the best.
        From 8 c / epsilon on the Jacobian costs at most an eighth of epsilon, and next to nothing
        for the logistic loss under replace.
        """
        length = _noise_length(coding.shape.size, budget, adjacency)
        if not self.fits(budget):
            return max(length**1.5 / 280, _roomy_ridge(loss, budget))
        by_noise = (
            1.9 * coding.of_columns.mean_square * length * (length / (size or USUAL_SIZE)) ** 0.8
        )
        return max(by_noise, 5 / 8 * _roomy_ridge(loss, budget))


def _roomy_ridge(loss: Loss, budget: Budget) -> float:
    return 8 * loss.curvature / budget.epsilon


def objective_perturbation(
    objective: Any,
    space: Space,
    settings: ObjectivePerturbation,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Add a random linear function to the objective, then minimise.

    Released: the minimiser, and a count of records in four classes where a look is bought. Cost: a
    pure release of epsilon (or two that add up to it), or one (epsilon, delta) release.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    settings.check(objective, conduct.budget, conduct.adjacency, conduct.size)
    whole = Budget(grant.budget.epsilon) if settings.paper else grant.budget
    epsilon, delta = _part(whole, conduct.share)
    radius, look = None, settings.looks(objective.domain, grant.budget)
    if look:
        sight, epsilon = look * epsilon, (1 - look) * epsilon * SAFE
        counting = DiscreteLaplace(sight, CHANGES[conduct.adjacency])
        conduct.set_aside(1, counting.event, Event("pure", epsilon))
        radius = _chosen_radius(objective, grant, counting, conduct.source)
    else:
        event = Event("approximate", epsilon, delta=delta) if delta else Event("pure", epsilon)
        conduct.set_aside(1, event)
    mechanism = _mechanism(conduct, settings, epsilon, delta, radius)
    problem = Problem(objective, mechanism.loss, mechanism.ridge, radius)
    conduct.tell(problem.linear(grant.release(mechanism, problem, conduct.source))[None])
    notes = _notes(mechanism, problem.size, look, radius) | _origin(objective.domain)
    return replace(conduct.path(), notes=notes)


def _notes(
    mechanism: PerturbedMinimiser, size: int, look: float, radius: float | None
) -> dict[str, Any]:
    """What was really used, for the settings of a release."""
    return {
        "shaped": mechanism.shape is not None,
        "look": look,
        "radius": radius,
        "loss": mechanism.loss.name if isinstance(mechanism.loss, Tabled) else None,
        "regularisation": mechanism.ridge * mechanism.loss.slope,
        "smoothing": mechanism.loss.smoothing or None,
        "tolerance": mechanism.tolerance,
        "tilt": mechanism.scale,
        "epsilon_1": mechanism.epsilon_1,
        "epsilon_3": mechanism.epsilon_3,
        "grid": mechanism.cover(size)[1],
    }


def _chosen_radius(
    objective: LinearObjective, grant: Grant, counting: DiscreteLaplace, source: BitSource
) -> float | None:
    """The least of the radii that hold half of the records, by noisy counts; None if none does.

    The radii are chosen so that the largest halves the noise of a number: a point of the l1 ball
    has a deviation of sqrt 2 radius / m in each of m coordinates, one of the cube 1 / sqrt 12.
    """
    numbers = objective.domain.numbers
    radii = numbers.size * np.array([1 / 64, 1 / 32, 1 / 16])
    counts = objective.size_counts(numbers, radii)
    noisy = np.cumsum(grant.release(counting, counts, source))
    holds = np.flatnonzero(2 * noisy[:-1] >= noisy[-1])
    return float(radii[holds[0]]) if holds.size else None


def _mechanism(
    conduct: Conduct,
    settings: ObjectivePerturbation,
    epsilon: float,
    delta: float,
    radius: float | None,
) -> PerturbedMinimiser:
    """The release at this budget, with a larger Lambda if there is no noise for the asked one."""
    loss, coding = settings.loss_of(conduct.objective), _coding(conduct.objective, radius)
    ridge = settings.ridge(coding, loss, conduct.budget, conduct.adjacency, conduct.size)
    gamma = settings.stops_at(loss, room_for(conduct.objective, conduct.adjacency))

    def mechanism_at(ridge: float) -> PerturbedMinimiser:
        return PerturbedMinimiser(
            epsilon, delta, ridge, loss, conduct.adjacency, gamma, settings.repair,
            coding.shape if settings.fits(conduct.budget) else None,
        )  # fmt: skip

    mechanism = mechanism_at(ridge)
    if mechanism.scale < math.inf:
        return mechanism
    raised = _roomy_ridge(loss, Budget(epsilon * (1 - settings.repair)))
    warnings.warn(
        f"regularisation ({ridge * loss.slope:g}) is too small for any noise to give epsilon "
        f"{epsilon:g}; it is raised to {raised * loss.slope:g}",
        UserWarning,
        stacklevel=3,
    )
    return mechanism_at(raised)


def _part(whole: Budget, share: int) -> tuple[float, float]:
    """The (epsilon, delta) of each of `share` equal releases.

    Half of delta pays for their own deltas, half for composing what does not fail.
    """
    if not whole.delta or share == 1:
        return calibrate(share, whole.epsilon, 0.0), whole.delta
    delta = whole.delta / (2 * share) * SAFE
    return calibrate(share, whole.epsilon, whole.delta / 2, "kov_exact"), delta


# -------------------------------------------------------------------------------------- privatesvm


@dataclass(frozen=True)
class PrivateSVM(_Perturbation):
    """Settings of `privatesvm`: those of `OutputPerturbation`.

    `paper` takes the published l1 sensitivity 4 sqrt(p) / Lambda, twice of what can be proved to be
    enough, and Lambda = 0.01 n. In the paper's terms Lambda is n / C. An intercept, if one is
    fitted, is a coordinate like any other.

    >>> import numpy as np
    >>> from privfit import LinearSVC, PrivateSVM
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = PrivateSVM(regularisation=10)
    >>> model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    through_origin: ClassVar[bool] = False

    smoothing: float = 0.1

    def check(self, objective: Any, budget: Budget, adjacency: str, size: int | None) -> None:
        """Refuse what `privatesvm` would refuse, before anything is charged."""
        if isinstance(objective, LinearObjective) and objective.loss == "logistic":
            raise ValueError(
                "privatesvm is a support vector machine, not a logistic regression; pass "
                "solver='output', or fit a LinearSVC"
            )
        super().check(objective, budget, adjacency, size)

    def _rule(
        self, coding: UnitCoding, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """That of `output`; p Laplace draws of scale sqrt(p) S / epsilon are sqrt 2 as long."""
        return math.sqrt(2) * super()._rule(coding, loss, Budget(budget.epsilon), adjacency, size)


def privatesvm(
    objective: Any,
    space: Space,
    settings: PrivateSVM,
    grant: Grant,
    rng: Any = None,
    callback: Callback = None,
    **public: Any,
) -> Path:
    """Output perturbation of a linear SVM by Laplace noise (Rubinstein et al. 2012, Mechanism 1).

    Released: the noisy model. Cost: one pure release of epsilon. A delta is not used.
    """
    plan = _Plan.of(objective, space, settings, grant, rng, callback, **public)
    reach = plan.reach * (2 if settings.paper else 1)
    epsilon = calibrate(plan.conduct.share, grant.budget.epsilon, 0.0)
    unit = plan.unit(math.sqrt(plan.size) * reach / epsilon)
    return plan.release(DiscreteLaplace(epsilon, math.ceil(plan.moved(unit, 1, reach))), unit)


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "output": (OutputPerturbation, output),
    "objective": (ObjectivePerturbation, objective_perturbation),
    "privatesvm": (PrivateSVM, privatesvm),
}
