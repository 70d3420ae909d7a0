"""Perturbation of convex fits: `output`, `objective` (Chaudhuri and Monteleoni 2008), `privatesvm`.

All three minimise, over models u of coded records phi with l2(phi) <= 1 (see `convex`),

    F(D, u) = sum over records of l(m) + Lambda/2 l2(u)^2,    -1 <= l' <= 0,    0 <= l'' <= c,

where m is the signed margin; the intercept is a coordinate like any other. Neighbours D, D' differ
in one record, which is replaced ('replace') or added or removed ('add_remove'); Lambda, the
dimension p and the tolerance gamma are public. A solver stops where the gradient is no longer than
gamma, so its answer is within gamma / Lambda of the minimiser, F being Lambda-strongly convex.

**Output.** The gradients of neighbours differ by at most 2 (replace) or 1 (add_remove). By strong
convexity the minimiser moves by at most that over Lambda, and the solver's answer by at most
S = (2 + 2 gamma) / Lambda or (1 + 2 gamma) / Lambda. Noise of density exp(-epsilon l2(b) / S) makes
it epsilon-DP; Gaussian noise of deviation S / mu makes it a Gaussian release of mu.

**Objective.** Draw b of density exp(-beta K(b)) and minimise F(D, u) + <b, u>, with K a norm that
is at most 1 for every coded record: l2, as published, or that of the domain's shape (below). The
minimiser u determines b = -grad F(D, u), and by the change of variables its density is that of b
times det(Hessian of F(D, .) at u), the Jacobian that the paper's proof forgets. Let D have one
record more than D', with s = -l'(m). At the same u, b and b' differ by s times the signed phi, so
K(b) and K(b') differ by at most s K(phi) <= s; and the determinants differ by a factor
1 + l'' phi' H^-1 phi <= 1 + l'' / Lambda, where the l2 norm enters: H is at least Lambda I. For the
logistic loss l'' = s (1 - s), so that

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
epsilon. A sum over the other corners bounds their maximum. Hence, with H(mu, e) the delta at e of a
Gaussian release of mu, and e = epsilon - ln(1 + c / Lambda) > 0,

    delta <= H(1/sigma, e)  (add_remove),     delta <= H(2/sigma, e) + 2 H(1/sigma, e)  (replace).

For GLMs this is the observation of Redberg, Koskela and Wang (2023), after Kifer, Smith and
Thakurta (2012). Nothing is claimed at any other epsilon: the event is an (epsilon, delta) one.

**A look at the numbers.** Whether the numbers of a schema are better coded around their middle or
clipped to a small l1 norm (`convex`) depends on the data, so it is bought: a count of records by
the l1 norm of their numbers, in four classes. One record changes one count by 1 (add_remove) or two
(replace), and discrete Laplace noise hides that for a share of epsilon, exactly. The classes are
multiples of the number of columns, and the clip of a record depends on it and the class alone.

**The repair of approximate minima.** The solver's answer is u + e with l2(e) <= gamma / Lambda, and
e is a function of D and u. Noise eta of density exp(-epsilon_3 Lambda l2(eta) / (2 gamma)) on top
hides e: given u, the densities of u + e + eta under D and D' differ by a factor e^epsilon_3 at
most. So the release costs epsilon_3 more. It is one event: nothing leaves in between.

**PrivateSVM** is output perturbation with Laplace noise on every coordinate: the l1 distance is at
most sqrt(p) S.

**Real-valued: the guarantees of `objective`, and of `output` with delta = 0, are for real
arithmetic.** Their noise is drawn in float64, and what is released is on a grid of 2^-30.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels.random import BitSource
from privfit.accounting import Event, calibrate, gaussian_calibrate, gaussian_total
from privfit.checks import is_finite
from privfit.convex import (
    HuberHinge,
    Logistic,
    Problem,
    coding_of,
    numbers_of,
)
from privfit.domains import Domain, Schema
from privfit.ledger import Budget, Grant
from privfit.mechanisms import DiscreteGaussian, DiscreteLaplace, GammaVector, Mechanism
from privfit.objectives import LinearObjective
from privfit.paths import Conduct, Generation, Path, check_positive_shares, check_shares
from privfit.shapes import Ball, Product, Shape
from privfit.spaces import Space

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
Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Logistic | HuberHinge

CHANGES = {"replace": 2, "add_remove": 1}  # gradients of single records that neighbours differ in
# Of the tolerance, a record, where no curvature exceeds 1: at least three times the errors of
# computed gradients on our tables, 2^-37.8 to 2^-43 a record at a Lambda of 0.3 to 30.
LEAST = 2.0**-36
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
    module's text for the proof. A share `repair` of epsilon pays for the inexactness of the solver.
    `shape` must hold all coded records; None is the unit l2 ball, which does. Gaussian noise, for a
    delta, has no shape.
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
    def scale(self) -> float:
        """1 / beta of the noise, or its sigma if delta is positive; inf if Lambda is too small."""
        epsilon = self.epsilon * (1 - self.repair) * SAFE
        if self.delta:
            return tilt_deviation(epsilon, self.delta, self.ridge, self.loss, self.adjacency)
        rate = tilt_rate(epsilon, self.ridge, self.loss, self.adjacency)
        return 1 / rate if rate else math.inf

    def __call__(self, value: Any, rng: Any = None) -> Floats:
        """float64 (p,): the coded model, on a grid of 2^-30."""
        if (value.loss, value.ridge) != (self.loss, self.ridge):
            raise ValueError(
                "value must be a problem with the loss and the ridge of the mechanism; pass "
                "Problem(objective, loss, ridge)"
            )
        source = BitSource.of(rng)
        u = value.minimise(self._tilt(value.size, source), self.tolerance)
        hidden = GammaVector(self.repair * self.epsilon, 2 * self.tolerance / self.ridge)
        return hidden(u, source)

    def _tilt(self, size: int, source: BitSource) -> Floats:
        if not self.delta:
            return GammaVector.noise(self.shape or Ball(size), self.scale, source)
        generator = np.random.Generator(np.random.Philox(source.bits(128)))
        return self.scale * generator.standard_normal(size)


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True)
class _Perturbation:
    """What the settings of all three methods share; see `OutputPerturbation`."""

    regularisation: float | None = None
    smoothing: float = 0.5
    tolerance: float | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        if self.regularisation is not None and not (
            is_finite(self.regularisation) and self.regularisation > 0
        ):
            raise ValueError(
                f"regularisation ({self.regularisation!r}) must be a positive number; leave it out"
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
        shape = coding_of(objective.domain).shape
        self.ridge(shape, self.loss(objective), budget, adjacency, size)
        least = self._least_tolerance(size or 0)
        if self.tolerance is not None and self.tolerance < least:
            raise ValueError(
                f"tolerance ({self.tolerance!r}) must be at least {least:.2g}, to cover the "
                "rounding errors of so many records; leave it out"
            )

    def stops_at(self, size: int | None) -> float:
        """gamma: as given, or 2^-16, or more for more than a million records."""
        return self.tolerance or max(2.0**-16, self._least_tolerance(size or 0))

    def _least_tolerance(self, size: int) -> float:
        """A sharper hinge turns the errors of margins into larger ones of slopes."""
        return LEAST * size * max(1.0, HuberHinge(self.smoothing).curvature)

    def loss(self, objective: LinearObjective) -> Loss:
        """The loss that is minimised."""
        return Logistic() if objective.loss == "logistic" else HuberHinge(self.smoothing)

    def ridge(
        self, shape: Product, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """Lambda: as given, the paper's, or by our rule; from public numbers alone."""
        if self.regularisation is not None:
            return float(self.regularisation)
        if not self.paper:
            return self._rule(shape, loss, budget, adjacency, size)
        if size is None:
            raise ValueError(
                "n_public must be given under adjacency='add_remove', where the number of records "
                "is private; pass a public estimate, or settings with regularisation="
            )
        return 0.01 * size

    def _rule(
        self, shape: Product, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """Lambda by our rule: such that the noise of the weights has a length of min(4, p / 15).

        Compared with the best of 4, 16, 64, ... on Adult, 4,000 records of Adult, Credit and
        Mushroom (p = 124, 124, 29, 105), and of 1/4, 1/2, 1, ... on generated tables with p = 4
        and 11, at epsilon 0.1, 1 and 10. The number of records matters little.
        """
        return _noise_length(shape.size, budget, adjacency) / min(4.0, shape.size / 15)


def _noise_length(p: int, budget: Budget, adjacency: str) -> float:
    """The typical l2 norm of noise that hides a sum of gradients at this budget."""
    changes = CHANGES[adjacency]
    if budget.delta:
        return changes * math.sqrt(p) / gaussian_calibrate(budget.epsilon, budget.delta)
    return changes * p / budget.epsilon


def _reach(gamma: float, ridge: float, adjacency: str) -> float:
    """S: how far the solver's answer may lie from a neighbour's, in l2 norm, rounded up."""
    return (CHANGES[adjacency] + 2 * gamma) / ridge / SAFE


def _unit(scale: float) -> float:
    """A grid that is fine beside noise of this scale: a power of two."""
    return 2.0 ** (math.floor(math.log2(scale)) - 24)


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
        default 2^-16, or 2^-36 n if that is more (times 0.5 / smoothing, if that is below 0.5).
        Pass `n_public` under 'add_remove' for more than a million records: n is then not known, and
        rounding errors beyond gamma keep the solver from its end.
    paper : bool
        Lambda = 0.01 n, as in the simulations of Chaudhuri and Monteleoni (2008).

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

    Released: the noisy model. Cost: one pure release of epsilon by real-valued noise, or, with a
    delta, one Gaussian release by discrete noise on integers, which is exact.
    """
    conduct, ridge, shape = _begin(objective, space, settings, grant, rng, callback, **public)
    reach, whole = _reach(settings.stops_at(conduct.size), ridge, conduct.adjacency), grant.budget
    if whole.delta:
        mu = gaussian_calibrate(whole.epsilon, whole.delta) / math.sqrt(conduct.share) * SAFE
        unit = _unit(reach / mu)  # rounding moves each coordinate of a difference by a unit
        mechanism: Mechanism = DiscreteGaussian(mu, reach / unit + math.sqrt(shape.size))
    else:
        unit, mechanism = 0.0, GammaVector(calibrate(conduct.share, whole.epsilon, 0.0), reach)
    return _release_minimiser(conduct, settings, grant, mechanism, unit, ridge)


def _begin(
    objective: Any, space: Space, settings: Any, grant: Grant, *rest: Any, **public: Any
) -> tuple[Conduct, float, Product]:
    """The conduct of a fit, its Lambda, and the shape of its coded records; all public."""
    conduct = Conduct(objective, space, grant, *rest, **public)
    settings.check(objective, conduct.budget, conduct.adjacency, conduct.size)
    shape, loss = coding_of(objective.domain).shape, settings.loss(objective)
    ridge = settings.ridge(shape, loss, conduct.budget, conduct.adjacency, conduct.size)
    return conduct, ridge, shape


def _release_minimiser(
    conduct: Conduct,
    settings: _Perturbation,
    grant: Grant,
    mechanism: Mechanism,
    unit: float,
    ridge: float,
) -> Path:
    """Plan, minimise, release; in whole units if there is a unit."""
    grant.plan(mechanism.event)
    problem = Problem(conduct.objective, settings.loss(conduct.objective), ridge)
    u = problem.minimise(np.zeros(problem.size), settings.stops_at(conduct.size))
    value = np.rint(u / unit).astype(np.int64) if unit else u
    noisy = grant.release(mechanism, value, conduct.source) * (unit or 1.0)
    conduct.tell(problem.linear(noisy)[None])
    return replace(conduct.path(), notes={"regularisation": ridge})


# --------------------------------------------------------------------------------------- objective


@dataclass(frozen=True)
class ObjectivePerturbation(_Perturbation):
    """Settings of `objective_perturbation`: those of `OutputPerturbation`, and three more.

    Parameters
    ----------
    repair : float
        The share of epsilon that pays for noise on top, which hides that the solver is inexact.
    shaped : bool
        Noise of the shape of the declared domain for a pure budget; otherwise, and always in the
        paper, its length is an l2 norm.
    look : float
        The share of epsilon that buys a look at the numbers, where the noise is shaped and a schema
        has at least 16 of them; 0 for none.

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
    shaped: bool = True
    look: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_shares(self, "repair")
        if self.repair == 1:
            raise ValueError("repair (1) must be below 1: the tilt needs a budget; leave it out")
        check_shares(self, "look")
        if self.look == 1:
            raise ValueError("look (1) must be below 1: the fit needs a budget; leave it out")

    def fits(self, budget: Budget) -> bool:
        """Whether the noise has the shape of the domain."""
        return self.shaped and not self.paper and not budget.delta

    def looks(self, domain: Domain, budget: Budget) -> bool:
        """Whether a look at the numbers is bought."""
        many = isinstance(domain, Schema) and numbers_of(domain).size >= MANY_NUMBERS
        return many and self.look > 0 and self.fits(budget)

    def _rule(
        self, shape: Product, loss: Loss, budget: Budget, adjacency: str, size: int | None
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
        length = _noise_length(shape.size, budget, adjacency)
        if not self.fits(budget):
            return max(length**1.5 / 280, _roomy_ridge(loss, budget))
        squares = math.fsum(factor.mean_square for factor in shape.factors[:-1])
        by_noise = 1.9 * squares * length * (length / (size or USUAL_SIZE)) ** 0.8
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
    epsilon, delta = _part(grant.budget, conduct.share)
    radius = None
    if settings.looks(objective.domain, grant.budget):
        sight, epsilon = settings.look * epsilon, (1 - settings.look) * epsilon * SAFE
        counting = DiscreteLaplace(sight, CHANGES[conduct.adjacency])
        grant.plan(counting.event, Event("pure", epsilon))
        radius = _chosen_radius(objective, grant, counting, conduct.source)
    else:
        grant.plan(Event("approximate", epsilon, delta=delta) if delta else Event("pure", epsilon))
    mechanism = _mechanism(conduct, settings, epsilon, delta, radius)
    problem = Problem(objective, mechanism.loss, mechanism.ridge, radius)
    conduct.tell(problem.linear(grant.release(mechanism, problem, conduct.source))[None])
    notes = {"regularisation": mechanism.ridge, "tilt": mechanism.scale, "radius": radius}
    return replace(conduct.path(), notes=notes)


def _chosen_radius(
    objective: LinearObjective, grant: Grant, counting: DiscreteLaplace, source: BitSource
) -> float | None:
    """The least of the radii that hold half of the records, by noisy counts; None if none does.

    The radii are chosen so that the largest halves the noise of a number: a point of the l1 ball
    has a deviation of sqrt 2 radius / m in each of m coordinates, one of the cube 1 / sqrt 12.
    """
    numbers = numbers_of(objective.domain)
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
    loss, shape = (
        settings.loss(conduct.objective),
        coding_of(conduct.objective.domain, radius).shape,
    )
    ridge = settings.ridge(shape, loss, conduct.budget, conduct.adjacency, conduct.size)

    def mechanism_at(ridge: float) -> PerturbedMinimiser:
        return PerturbedMinimiser(
            epsilon, delta, ridge, loss, conduct.adjacency, settings.stops_at(conduct.size),
            settings.repair, shape if settings.fits(conduct.budget) else None,
        )  # fmt: skip

    mechanism = mechanism_at(ridge)
    if mechanism.scale < math.inf:
        return mechanism
    raised = _roomy_ridge(loss, Budget(epsilon * (1 - settings.repair)))
    warnings.warn(
        f"regularisation ({ridge:g}) is too small for any noise to give epsilon {epsilon:g}; "
        f"it is raised to {raised:g}",
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
    enough, and Lambda = 0.01 n. In the paper's terms Lambda is n / C.

    >>> import numpy as np
    >>> from privfit import LinearSVC, PrivateSVM
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = PrivateSVM(regularisation=10)
    >>> model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

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
        self, shape: Product, loss: Loss, budget: Budget, adjacency: str, size: int | None
    ) -> float:
        """That of `output`; p Laplace draws of scale sqrt(p) S / epsilon are sqrt 2 as long."""
        return math.sqrt(2) * super()._rule(shape, loss, Budget(budget.epsilon), adjacency, size)


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

    Released: the noisy model. Cost: one pure release of epsilon, by discrete noise on integers,
    which is exact. A delta is not used.
    """
    conduct, ridge, shape = _begin(objective, space, settings, grant, rng, callback, **public)
    p = shape.size
    reach = _reach(settings.stops_at(conduct.size), ridge, conduct.adjacency) * (
        2 if settings.paper else 1
    )
    epsilon = calibrate(conduct.share, grant.budget.epsilon, 0.0)
    unit = _unit(math.sqrt(p) * reach / epsilon)
    mechanism = DiscreteLaplace(epsilon, math.ceil(math.sqrt(p) * reach / unit) + p)
    return _release_minimiser(conduct, settings, grant, mechanism, unit, ridge)


METHODS: dict[str, tuple[type[Any], Callable[..., Path]]] = {
    "output": (OutputPerturbation, output),
    "objective": (ObjectivePerturbation, objective_perturbation),
    "privatesvm": (PrivateSVM, privatesvm),
}
