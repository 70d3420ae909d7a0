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

**Objective.** `tilts.py` has the mechanism and its proof, `objective_perturbation.py` the solver.

**PrivateSVM** is output perturbation with discrete Laplace noise on every coordinate: the l1
distance is at most sqrt(p) S, and that of whole units sqrt(p) S / g + p.

All guarantees are for the program: nothing here depends on how float64 rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.dyadic import Dyadic, integers
from privfit.base.errors import DeclarationError
from privfit.base.rounding import BELOW
from privfit.base.typing import Array
from privfit.base.validation import is_finite
from privfit.domains import Domain
from privfit.linear.losses import LEAST, MOST, HuberHinge, Logistic, Loss, Tabled
from privfit.linear.newton import Problem, UnitCoding, coding_of, gamma_for
from privfit.objectives import LinearObjective
from privfit.objectives.common import room_for
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, GammaVector, Mechanism
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.noise_bodies import ABOVE
from privfit.privacy.remainder import gaussian_left
from privfit.runs.noise import Spread, spread_rows
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings, check_positive_shares
from privfit.runs.sizes import known_size

__all__ = ["OutputPerturbation", "Perturbation", "PrivateSVM"]

USUAL_TOLERANCE = 2.0**-16
LARGEST_TOLERANCE = 2.0**-4  # that a rule takes: one adds 1/16 to the change of a gradient
LARGEST_WHOLE = 2.0**52  # of an answer in whole units


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True, repr=False)
class Perturbation(Settings):
    """What the settings of all three methods share; see `OutputPerturbation`."""

    centres_columns: ClassVar[bool] = True
    without_size: ClassVar[str] = "settings with regularisation="
    through_origin: ClassVar[bool] = True  # as published

    regularisation: float | None = None
    smoothing: float = 0.5
    tolerance: float | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        if self.regularisation is not None and not (
            is_finite(self.regularisation) and LEAST <= self.regularisation <= MOST
        ):
            raise DeclarationError(
                f"regularisation ({self.regularisation!r}) must be a positive number, from "
                f"{LEAST:g} to {MOST:g}; leave it out"
            )
        check_positive_shares(self, "smoothing", "tolerance")

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what the method would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective = task.objective
        if not isinstance(objective, LinearObjective) or objective.loss == "zero_one":
            raise DeclarationError(
                f"{type(self).__name__} needs a convex loss of a linear model; pass a "
                "LinearObjective with loss='logistic' or 'hinge'"
            )
        if objective.C != 1.0:
            raise DeclarationError(
                f"C ({objective.C}) must be 1 for {type(self).__name__}; pass regularisation="
            )
        if self.paper and self.through_origin and objective.fit_intercept:
            raise DeclarationError(
                f"fit_intercept (True) must be False for {type(self).__name__}(paper=True), since "
                "the published algorithm has no intercept; pass fit_intercept=False"
            )
        loss = self.loss_of(objective)
        self.ridge(self.coding(objective), loss, task.budget, task.neighbours, task.n_public)
        self._check_tolerance(loss, gamma_for(loss, room_for(objective, task.neighbours)))

    def _check_tolerance(self, loss: Loss, least: float) -> None:
        """Refuse a tolerance that rounding errors may prevent the solver from reaching."""
        if self.tolerance is not None and self.tolerance < least:
            raise DeclarationError(
                f"tolerance ({self.tolerance!r}) must be at least {least:.2g}, to cover the "
                f"rounding errors of all records; leave it out"
            )
        if self.tolerance is None and least > LARGEST_TOLERANCE:
            own = isinstance(loss, Tabled)
            bends = "curvature" if own else f"smoothing ({self.smoothing!r})"
            raise DeclarationError(
                f"{bends} makes slopes change too fast to cover the rounding errors of all "
                f"records; pass {'a smoother loss' if own else 'smoothing=0.1'}"
            )

    def stops_at(self, loss: Loss, most: int) -> float:
        """The tolerance gamma: as given, or 2^-16, or what the rounding errors need.

        Parameters
        ----------
        loss : Loss
            The loss that is minimised.
        most : int
            The largest possible number of records.

        Returns
        -------
        float
            The length of the gradient at which the solver stops.
        """
        return self.tolerance or max(USUAL_TOLERANCE, gamma_for(loss, most))

    def loss_of(self, objective: LinearObjective) -> Loss:
        """The loss that is minimised, with slopes of at most 1.

        Parameters
        ----------
        objective : LinearObjective
            The objective.

        Returns
        -------
        Loss
            The loss.
        """
        return Logistic() if objective.loss == "logistic" else HuberHinge(self.smoothing)

    def coding(self, objective: LinearObjective, radius: float | None = None) -> UnitCoding:
        """The coding of records into the unit ball.

        Parameters
        ----------
        objective : LinearObjective
            The objective, of which the domain is used.
        radius : float or None, default=None
            The l1 norm to which the numbers of a record are clipped.

        Returns
        -------
        UnitCoding
            The coding.
        """
        return coding_of(objective.domain, radius, objective.fit_intercept)

    def ridge(
        self,
        coding: UnitCoding,
        loss: Loss,
        budget: Budget,
        neighbours: Neighbours,
        size: int | None,
    ) -> float:
        """The regularisation Lambda: as given, the paper's, or by our rule, from public numbers.

        Parameters
        ----------
        coding : UnitCoding
            The coding of the records.
        loss : Loss
            The loss that is minimised.
        budget : Budget
            The budget of the fit.
        neighbours : Neighbours
            The neighbour relation.
        size : int or None
            Public number of records.

        Returns
        -------
        float
            Lambda, for the loss divided by its slope, as it is minimised.
        """
        if self.regularisation is not None:
            return self.regularisation / loss.slope
        if not self.paper:
            return self._rule(coding, loss, budget, neighbours, size)
        remedy = f"a public estimate, or {self.without_size}"
        return 0.01 * known_size(size, remedy=remedy) / loss.slope

    def _rule(
        self,
        coding: UnitCoding,
        loss: Loss,
        budget: Budget,
        neighbours: Neighbours,
        size: int | None,
    ) -> float:
        """Lambda by our rule: such that the noise of the weights has a length of min(4, p / 15).

        Compared with the best of 4, 16, 64, ... on Adult, 4,000 records of Adult, Credit and
        Mushroom (p = 124, 124, 29, 105), and of 1/4, 1/2, 1, ... on generated tables with p = 4 and
        11, at epsilon 0.1, 1 and 10. The number of records matters little.
        """
        p = coding.shape.size
        return noise_length(p, budget, neighbours) / min(4.0, p / 15)


def noise_length(p: int, budget: Budget, neighbours: Neighbours) -> float:
    """The typical l2 norm of noise that hides a sum of gradients at this budget."""
    changes = neighbours.changes
    if budget.delta:
        return changes * math.sqrt(p) / gaussian_left(budget)
    return changes * p / budget.epsilon


# ------------------------------------------------------------------------------------------ output


@dataclass(frozen=True, repr=False)
class OutputPerturbation(Perturbation):
    """Settings of output perturbation (minimise, then add noise), for the parameter `solver`.

    Parameters
    ----------
    regularisation : float, optional
        Weight Lambda of l2(u)^2 / 2 relative to the *sum* of losses, for coded records; by default
        a public rule in epsilon, delta and the dimension.
    smoothing : float, optional
        Half the width of the parabola that rounds the hinge; the logistic loss needs none.
    tolerance : float, optional
        Length gamma of the gradient at which the solver stops; a record's is at most 1. By default
        2^-16, or more if the rounding errors of all records need it: from 2^30 records on, or if
        their number is private.
    paper : bool, default=False
        Whether to run Algorithm 1 of Chaudhuri and Monteleoni (2008): records x of the unit ball, a
        model through the origin (pass ``fit_intercept=False``), Lambda = 0.01 n as in their
        simulations, and noise for a pure epsilon, whatever delta is. `docs/perturbation.md` has a
        table.

    See Also
    --------
    ObjectivePerturbation : Noise on the objective.
    PrivateSVM : Laplace noise on every coordinate.

    Notes
    -----
    Released: the noisy model. Cost: one pure release of epsilon, or one Gaussian release if delta >
    0.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, "Privacy-preserving logistic regression", NeurIPS 2008.

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

    def rows_held(self, width: int, n_threads: int) -> float:
        """Directions of noise, what is correlated in them, and an eigendecomposition.

        Parameters
        ----------
        width : int
            The number of weights.
        n_threads : int
            The number of threads.

        Returns
        -------
        float
            The number of rows.
        """
        return spread_rows(width)

    def __call__(self, run: Run[LinearObjective, Space]) -> Path:
        """Minimise, then add noise proportional to what one record can change.

        Released: the noisy model. Cost: one pure release of epsilon, or, with a delta, one Gaussian
        release by discrete noise; as published it is always pure.
        """
        fit = _Fit.of(self, run)
        if run.whole.delta and not self.paper:
            mu = run.size_of("gaussian", 1)
            unit = fit.unit(fit.reach / mu)
            return fit.release(DiscreteGaussian(mu, fit.moved(unit, 2)), unit)
        epsilon = run.size_of("pure", 1, "naive")
        unit = fit.unit(fit.reach / epsilon)
        return fit.release(GammaVector(epsilon, fit.moved(unit, 2), 1.0), unit)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit whose minimiser gets noise: its public numbers, and how it is released."""

    run: Run[LinearObjective, Space]
    loss: Loss
    ridge: float
    size: int  # p
    tolerance: float

    @classmethod
    def of(cls, settings: Perturbation, run: Run[LinearObjective, Space]) -> _Fit:
        coding, loss = settings.coding(run.objective), settings.loss_of(run.objective)
        ridge = settings.ridge(coding, loss, run.budget, run.neighbours, run.n_public)
        gamma = settings.stops_at(loss, room_for(run.objective, run.neighbours))
        return cls(run, loss, ridge, coding.shape.size, gamma)

    @property
    def reach(self) -> float:
        """S: a bound on the l2 distance between the solver's answers for neighbours, rounded up."""
        return (self.run.neighbours.changes + 2 * self.tolerance) / self.ridge / BELOW

    def unit(self, scale: float) -> float:
        """The step of a grid that is fine compared to noise of this scale: a power of two.

        No model is longer than the number of records over Lambda, and a little; its whole units
        stay below 2^53.
        """
        most = room_for(self.run.objective, self.run.neighbours)
        fine = math.floor(math.log2(scale)) - 24
        return 2.0 ** max(fine, math.ceil(math.log2((most + 1) / self.ridge / LARGEST_WHOLE)))

    def moved(self, unit: float, order: int, reach: float = 0.0) -> float:
        """A bound on the l1 or l2 distance between neighbours' answers in whole units."""
        units, p = (reach or self.reach) / unit, self.size
        return (units + math.sqrt(p) if order == 2 else math.sqrt(p) * units + p) * ABOVE

    def release(self, mechanism: Mechanism[ArrayLike, Array], unit: float) -> Path:
        """Plan, minimise, release in whole units."""
        run = self.run
        run.set_aside(mechanism.event)
        problem = Problem(run.objective, self.loss, self.ridge)
        u = problem.minimise(Dyadic(integers([0] * self.size), 0), self.tolerance)
        whole = np.array(u.floors(unit), dtype=np.int64)
        value = whole.astype(np.float64) if isinstance(mechanism, GammaVector) else whole
        run.report(problem.linear(run.release(mechanism, value) * unit)[None])
        run.note(
            regularisation=self.ridge, smoothing=self.loss.smoothing or None,
            tolerance=self.tolerance, grid=unit, **origin_of(run.objective.domain),
        )  # fmt: skip
        deviation = _deviation(mechanism, self.size) * unit
        return replace(run.path(), noise=Spread.of(deviation * problem.directions))


def _deviation(mechanism: Mechanism[ArrayLike, Array], p: int) -> float:
    """The standard deviation of the noise of each of p coordinates.

    A vector of density exp(-l2(b) / s) has a squared length of p (p + 1) s^2 on average.
    """
    if isinstance(mechanism, DiscreteGaussian):
        return math.sqrt(mechanism.variance)
    if isinstance(mechanism, GammaVector):
        return math.sqrt(p + 1) * mechanism.sensitivity / mechanism.epsilon
    assert isinstance(mechanism, DiscreteLaplace)
    return math.sqrt(2) * mechanism.scale


def origin_of(domain: Domain) -> dict[str, list[float]]:
    """What was subtracted from records, if anything: a note for a release."""
    return {"origin": domain.origin.tolist()} if domain.origin.any() else {}


# -------------------------------------------------------------------------------------- privatesvm


@dataclass(frozen=True, repr=False)
class PrivateSVM(Perturbation):
    """Settings of output perturbation for a linear SVM, for the parameter `solver`.

    An intercept, if one is fitted, is a coordinate like any other.

    Parameters
    ----------
    regularisation : float, optional
        Weight Lambda of l2(u)^2 / 2 relative to the *sum* of losses, for coded records; by default
        a public rule. In the paper's terms Lambda is n / C.
    smoothing : float, optional
        Half the width of the parabola that rounds the hinge.
    tolerance : float, optional
        Length gamma of the gradient at which the solver stops; a record's is at most 1. By default
        2^-16, or more if the rounding errors of all records need it.
    paper : bool, default=False
        Whether to use the published l1 sensitivity 4 sqrt(p) / Lambda, twice what can be proved to
        be enough, and Lambda = 0.01 n.

    See Also
    --------
    OutputPerturbation : Noise in the l2 norm.
    LinearSVC : The estimator that takes these settings.

    Notes
    -----
    Released: the noisy model. Cost: one pure release of epsilon; delta is not used.

    References
    ----------
    B. Rubinstein, P. Bartlett, L. Huang, N. Taft, "Learning in a large function space:
    privacy-preserving mechanisms for SVM learning", Journal of Privacy and Confidentiality, 2012.

    Examples
    --------
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

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what the method would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        if isinstance(task.objective, LinearObjective) and task.objective.loss == "logistic":
            raise DeclarationError(
                "privatesvm is a support vector machine, not a logistic regression; pass "
                "solver='output', or fit a LinearSVC"
            )
        super().check(task)

    def _rule(
        self,
        coding: UnitCoding,
        loss: Loss,
        budget: Budget,
        neighbours: Neighbours,
        size: int | None,
    ) -> float:
        """The rule of `output`; p Laplace draws of scale sqrt(p) S / epsilon are sqrt 2 as long."""
        return math.sqrt(2) * super()._rule(coding, loss, Budget(budget.epsilon), neighbours, size)

    def rows_held(self, width: int, n_threads: int) -> float:
        """Directions of noise, what is correlated in them, and an eigendecomposition.

        Parameters
        ----------
        width : int
            The number of weights.
        n_threads : int
            The number of threads.

        Returns
        -------
        float
            The number of rows.
        """
        return spread_rows(width)

    def __call__(self, run: Run[LinearObjective, Space]) -> Path:
        """Add Laplace noise to the minimiser (Rubinstein et al. 2012, Mechanism 1).

        Released: the noisy model. Cost: one pure release of epsilon; delta is not used.
        """
        fit = _Fit.of(self, run)
        reach = fit.reach * (2 if self.paper else 1)
        epsilon = run.size_of("pure", 1, "naive")
        unit = fit.unit(math.sqrt(fit.size) * reach / epsilon)
        noise = DiscreteLaplace(epsilon, math.ceil(fit.moved(unit, 1, reach)))
        return fit.release(noise, unit)
