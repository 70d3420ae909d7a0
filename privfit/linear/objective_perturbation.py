"""Objective perturbation (Chaudhuri and Monteleoni 2008), repaired: `tilts.py` has the proof.

**A look at the numbers.** Whether the numbers of a schema are better coded around their middle or
clipped to a small l1 norm (`convex`) depends on the data, so it is bought: a count of records by
the l1 norm of their numbers, in four classes. One record changes one count by 1 (add_remove) or two
(replace), and discrete Laplace noise hides that for a fraction of epsilon, exactly. The classes are
multiples of the number of columns, and the clip of a record depends on it and the class alone.

**Functions.** With `functions` the model is additive: a number is a few public functions of it, and
`feature_coding.py` proves that its coded records are as the proof wants them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.rounding import BELOW
from privfit.base.validation import is_whole
from privfit.domains import Domain, Schema
from privfit.domains.columns import Column
from privfit.domains.scales import MOST_DIMENSIONS, SMOOTH, SMOOTHEST
from privfit.linear.feature_coding import feature_coding
from privfit.linear.levels import LEAST_PART, Level
from privfit.linear.losses import Loss, SmoothLoss, Tabled
from privfit.linear.newton import Problem, UnitCoding
from privfit.linear.perturbation import Perturbation, noise_length, origin_of
from privfit.linear.recipe import PUBLIC, Recipe
from privfit.linear.tilts import PerturbedMinimiser
from privfit.objectives import LinearObjective
from privfit.objectives.common import room_for
from privfit.objectives.features import Features, room_for_levels
from privfit.privacy.accounting import Event, calibrate
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import check_positive_shares, check_shares
from privfit.runs.sizes import known_size

__all__ = ["ObjectivePerturbation"]

USUAL_LOOK = 0.05  # of epsilon
MANY_NUMBERS = 16  # from which a look at them is worth its budget
MIXING = 0.6  # the smooth part of the kernel of bins
FEW_COORDINATES = 300  # below which a fit with functions is regularised more
USUAL_SIZE = 10_000  # of a table where nobody declared it: what a rule takes


@dataclass(frozen=True, repr=False)
class ObjectivePerturbation(Perturbation):
    """Settings of objective perturbation, for the parameter `solver`.

    Parameters
    ----------
    regularisation : float, optional
        Weight Lambda of l2(u)^2 / 2 relative to the *sum* of losses, for coded records; by default
        a public rule in epsilon, delta and the domain.
    smoothing : float, optional
        Half the width of the parabola that rounds the hinge; the logistic loss needs none.
    tolerance : float, optional
        Length gamma of the gradient at which the solver stops; a record's is at most 1. By default
        2^-16, or more if the rounding errors of all records need it.
    paper : bool, default=False
        Whether to run Algorithm 2 of Chaudhuri and Monteleoni (2008): records x of the unit ball, a
        model through the origin (pass ``fit_intercept=False``), Lambda = 0.01 n, and noise in the
        l2 norm. Repaired: its rate, which forgets a Jacobian, and the additional noise.
    repair : float, optional
        Fraction of epsilon that pays for additional noise, which hides that the solver is inexact.
    shaped : bool, optional
        Whether the noise has the shape of the declared domain, which needs a pure budget; by
        default whenever delta is 0, but not in the paper. Otherwise its length is an l2 norm.
    look : float, optional
        Fraction of epsilon that buys a look at the numbers, if the noise is shaped and a schema has
        at least 16 of them; by default 0.05, and 0 for none.
    loss : SmoothLoss or None, default=None
        A user-defined convex loss (Theorem 3 of the paper), instead of the estimator's.
        `regularisation` is then the weight relative to the sum of these losses.
    functions : int, optional
        The most smooth functions of each number, from 2 to 24: an additive model under a `Schema`,
        whose numbers are coded first (`privfit.linear.coding`). It needs delta = 0 and an
        intercept. By default none, except that 'auto' follows a public rule.
    smooth : {0.7, 2.0}, optional
        Decades over which functions of the public scale are smooth, with `functions`.
    level : float, optional
        Fraction of epsilon that buys the intercept by itself, with `functions`; at 1 the model is
        nothing else. It needs log odds and a public number of records. By default 0, except that
        'auto' follows a public rule.

    See Also
    --------
    OutputPerturbation : Noise on the minimiser.
    SmoothLoss : A user-defined loss.

    Notes
    -----
    Released: the minimiser of a randomly tilted objective, and a count of records in four classes
    if a look is bought. Cost: the whole budget, by one pure release (or two that add up to it), or
    by one (epsilon, delta) release.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, "Privacy-preserving logistic regression", NeurIPS 2008. D. Kifer,
    A. Smith, A. Thakurta, "Private convex empirical risk minimization and high-dimensional
    regression", COLT 2012.

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
    functions: int | None = None
    smooth: float | None = None
    level: float | None = None

    unlisted: ClassVar[tuple[str, ...]] = ("functions", "smooth", "level")

    @property
    def has_honest_scores(self) -> bool:
        """Whether log odds need no calibration: the estimator's own loss is minimised."""
        return self.loss is None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_shares(self, "repair")
        if self.loss is not None and not isinstance(self.loss, SmoothLoss):
            raise DeclarationTypeError(
                f"loss ({type(self.loss).__name__}) must be a SmoothLoss; pass SmoothLoss(value, "
                "derivative, slope=..., curvature=...), or leave it out"
            )
        if self.repair == 1:
            raise DeclarationError(
                "repair (1) must be below 1: the tilt needs a budget; leave it out"
            )
        check_shares(self, "look", "level")
        if self.look == 1:
            raise DeclarationError("look (1) must be below 1: the fit needs a budget; leave it out")
        self._check_functions()

    def _check_functions(self) -> None:
        count = self.functions
        if count is not None and (not is_whole(count) or not 2 <= count <= MOST_DIMENSIONS):
            raise DeclarationError(
                f"functions ({count!r}) must be a whole number from 2 to {MOST_DIMENSIONS}; leave "
                "it out"
            )
        if self.smooth not in (None, SMOOTH, SMOOTHEST):
            raise DeclarationError(
                f"smooth ({self.smooth!r}) must be {SMOOTH} or {SMOOTHEST}; leave it out"
            )
        if self.level and count is None:
            raise DeclarationError(
                f"level ({self.level!r}) is for additive models, which have functions; pass "
                "functions=8, or leave it out"
            )
        if count is not None and (self.paper or self.shaped is False):
            raise DeclarationError(
                "functions must be left out with paper=True and shaped=False, which have no shape "
                "of curves; pass ObjectivePerturbation(functions=8)"
            )

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what the method would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective = task.objective
        if self.functions is not None and isinstance(objective, LinearObjective):
            if task.budget.delta:
                raise DeclarationError(
                    "delta must be 0 for objective perturbation with functions; pass delta=0.0, or "
                    "solver='additive'"
                )
            if not objective.fit_intercept:
                raise DeclarationError(
                    "fit_intercept (False) must be True for objective perturbation with functions, "
                    "whose curves have no level of their own; leave it out"
                )
            if self.level:
                self._check_level(self.level, objective, task)
        super().check(task)

    def _check_level(
        self, level: float, objective: LinearObjective, task: Task[Objective, Space]
    ) -> None:
        """Refuse levels of other scores than log odds, and those for which there is no noise."""
        known_size(task.n_public, remedy="a public estimate, or level=0")
        if objective.loss != "logistic" or self.loss is not None:
            raise DeclarationError(
                f"level ({level!r}) is for log odds, which the logistic loss alone has; pass "
                "level=0"
            )
        if level < 1 and task.epsilon * min(level / 2, 1 - level) < LEAST_PART:
            raise DeclarationError(
                f"level ({level!r}) must be 1, or leave each release a larger part of epsilon "
                f"{task.epsilon!r}; pass level=1, or level=0"
            )

    def following(self, recipe: Recipe) -> ObjectivePerturbation:
        """These settings, and a recipe's functions if they were left out.

        Parameters
        ----------
        recipe : Recipe
            The rule for the whole budget of a fit, of which the solver gets a part.

        Returns
        -------
        ObjectivePerturbation
            The settings to use.
        """
        functions, smooth, level = self.functions, self.smooth, self.level
        by_rule = recipe.level if functions is None else 0.0  # what is passed is fitted
        return replace(
            self,
            functions=recipe.public if functions is None else functions,
            smooth=recipe.smooth if smooth is None else smooth,
            level=by_rule if level is None else level,
        )

    def room(self, schema: Schema) -> int:
        """How many levels of blank categories a model has room for.

        Parameters
        ----------
        schema : Schema
            The columns.

        Returns
        -------
        int
            The number of levels.
        """
        return room_for_levels(schema.columns, self.most_of(schema.columns))

    def most_of(self, columns: Mapping[str, Column]) -> int:
        """The most coordinates of a number.

        Parameters
        ----------
        columns : dict of str to Column
            The columns, all of which are coded alike.

        Returns
        -------
        int
            The number of coordinates.
        """
        return 2 * (self.functions or PUBLIC) + 1

    def coding(self, objective: LinearObjective, radius: float | None = None) -> UnitCoding:
        """The coding of records into the unit ball, by functions of numbers if there are any.

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
        if self.functions is None:
            return super().coding(objective, radius)
        smooth = SMOOTH if self.smooth is None else self.smooth
        count = self.functions
        return feature_coding(
            objective.domain, Features.of(objective.domain, count, count, MIXING, smooth)
        )

    def loss_of(self, objective: LinearObjective) -> Loss:
        """The loss to minimise: the user's, tabled, or the objective's.

        Parameters
        ----------
        objective : LinearObjective
            The objective.

        Returns
        -------
        Loss
            The loss, with slopes of at most 1.
        """
        return super().loss_of(objective) if self.loss is None else self.loss.tabled

    def fits(self, budget: Budget) -> bool:
        """Whether the noise has the shape of the domain.

        Parameters
        ----------
        budget : Budget
            The budget of the fit.

        Returns
        -------
        bool
            As passed, or by the rule.
        """
        return self.shaped is not False and not self.paper and not budget.delta

    def looks(self, domain: Domain, budget: Budget) -> float:
        """The fraction of epsilon that buys a look at the numbers.

        Parameters
        ----------
        domain : Domain
            The domain of the records.
        budget : Budget
            The budget of the fit.

        Returns
        -------
        float
            The fraction; 0 for no look.
        """
        many = len(domain.shares) >= MANY_NUMBERS
        share = USUAL_LOOK if self.look is None else self.look
        return share if many and self.fits(budget) and self.functions is None else 0.0

    def _rule(
        self,
        coding: UnitCoding,
        loss: Loss,
        budget: Budget,
        neighbours: Neighbours,
        size: int | None,
    ) -> float:
        """N^1.5 / 280, at least 8 c / epsilon; shaped, 1.9 q N (N / n)^0.8, at least 5 c / epsilon.

        N is the typical length of a tilt, in the norm of the noise, and q the mean square of the
        shape without its last factor, the intercept. The latter was chosen on Adult (with bins and
        without), Credit and Mushroom at pure epsilon 0.05 to 3.2, replace, beside 0.1, 0.2, ...,
        6.4 times p / epsilon in the units of the columns: within 1 % accuracy of the best of them
        in all cells where `auto` takes it. The former: within a factor of 2 or 0.3 % of the best.
        With `functions` it is 0.5 q^1.5 N (N / n)^0.6, chosen on the same tables with all columns
        coded (docs/perturbation.md), beside q and q^2, N / n to the 0.8 and factors of 1/2 to 4;
        times 300 / p of p < 300 coordinates, unless functions are of the smoother kind, chosen
        beside 2, 200 / p and sqrt(600 / p).
        From 8 c / epsilon on the Jacobian costs at most an eighth of epsilon, and next to nothing
        for the logistic loss under replace.
        """
        length = noise_length(coding.shape.size, budget, neighbours)
        if not self.fits(budget):
            return max(length**1.5 / 280, _roomy_ridge(loss, budget))
        square, part = coding.of_columns.mean_square, length / (size or USUAL_SIZE)
        if self.functions is None:
            by_noise = 1.9 * square * length * part**0.8
        else:
            few = FEW_COORDINATES / coding.shape.size if self.smooth != SMOOTHEST else 1.0
            by_noise = 0.5 * max(1.0, few) * square**1.5 * length * part**0.6
        return max(by_noise, 5 / 8 * _roomy_ridge(loss, budget))

    def __call__(self, run: Run[LinearObjective, Space]) -> Path:
        """Add a random linear function to the objective, then minimise.

        Released: the minimiser, and a count of records in four classes if a look is bought, and one
        or two sums if an intercept is. Cost: a pure release of epsilon (or several that add up to
        it), or one (epsilon, delta) release.
        """
        epsilon, delta = _part(Budget(run.whole.epsilon) if self.paper else run.whole, run.share)
        if self.level:
            return self._levelled(run, epsilon)
        objective = run.objective
        radius, look = None, self.looks(objective.domain, run.whole)
        if look:
            sight, epsilon = look * epsilon, (1 - look) * epsilon * BELOW
            counting = DiscreteLaplace(sight, run.neighbours.changes)
            run.set_aside(counting.event, Event("pure", epsilon))
            radius = _chosen_radius(run, counting)
        else:
            run.set_aside(
                Event("approximate", epsilon, delta=delta) if delta else Event("pure", epsilon)
            )
        mechanism = self._mechanism(run, epsilon, delta, radius)
        coding = self.coding(objective, radius)
        problem = Problem(objective, mechanism.loss, mechanism.ridge, radius, coding)
        run.report(problem.linear(run.release(mechanism, problem))[None])
        run.note(**_notes(mechanism, problem.size, look, radius), **origin_of(objective.domain))
        if self.functions is not None:
            run.note(functions=self.functions, smooth=self.smooth or SMOOTH)
        return run.path()

    def _levelled(self, run: Run[LinearObjective, Space], epsilon: float) -> Path:
        """The same with functions, and an intercept that is bought by itself."""
        share = self.level or 0.0
        alone = share == 1
        level, rest = Level(share * epsilon, alone), (1 - share) * epsilon * BELOW
        run.set_aside(*(() if alone else (Event("pure", rest),)), *level.events)
        model = np.zeros(run.objective.n_weights)
        if not alone:
            mechanism = self._mechanism(run, rest, 0.0, None)
            coding = self.coding(run.objective)
            problem = Problem(run.objective, mechanism.loss, mechanism.ridge, None, coding)
            model = problem.linear(run.release(mechanism, problem))
            run.note(**_notes(mechanism, problem.size, 0.0, None))
        run.report(level.applied(run, model, known_size(run.n_public))[None])
        run.note(functions=self.functions, smooth=self.smooth or SMOOTH, level=share)
        run.note(**origin_of(run.objective.domain))
        return run.path()

    def _mechanism(
        self,
        run: Run[LinearObjective, Space],
        epsilon: float,
        delta: float,
        radius: float | None,
    ) -> PerturbedMinimiser:
        """The release at this budget, with a larger Lambda if there is no noise for this one."""
        loss, coding = self.loss_of(run.objective), self.coding(run.objective, radius)
        ridge = self.ridge(coding, loss, run.budget, run.neighbours, run.n_public)
        gamma = self.stops_at(loss, room_for(run.objective, run.neighbours))

        def mechanism_at(ridge: float) -> PerturbedMinimiser:
            return PerturbedMinimiser(
                epsilon, delta, ridge, loss, run.neighbours, gamma, self.repair,
                coding.shape if self.fits(run.budget) else None,
            )  # fmt: skip

        mechanism = mechanism_at(ridge)
        if mechanism.scale < math.inf:
            return mechanism
        raised = _roomy_ridge(loss, Budget(epsilon * (1 - self.repair)))
        warnings.warn(
            f"regularisation ({ridge * loss.slope:g}) is too small for any noise to give epsilon "
            f"{epsilon:g}; it is raised to {raised * loss.slope:g}",
            UserWarning,
            stacklevel=3,
        )
        return mechanism_at(raised)


def _roomy_ridge(loss: Loss, budget: Budget) -> float:
    return 8 * loss.curvature / budget.epsilon


def _notes(
    mechanism: PerturbedMinimiser, size: int, look: float, radius: float | None
) -> dict[str, Any]:
    """The values that were used, for the settings of a release."""
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


def _chosen_radius(run: Run[LinearObjective, Space], counting: DiscreteLaplace) -> float | None:
    """The smallest radius that contains half of the records, by noisy counts; None if none does.

    The radii are chosen so that the largest halves the noise of a number: a point of the l1 ball
    has a deviation of sqrt 2 radius / m in each of m coordinates, one of the cube 1 / sqrt 12.
    """
    numbers = run.objective.domain.numbers
    radii = numbers.size * np.array([1 / 64, 1 / 32, 1 / 16])
    counts = run.objective.size_counts(numbers, radii)
    noisy = np.cumsum(run.release(counting, counts))
    holds = np.flatnonzero(2 * noisy[:-1] >= noisy[-1])
    return float(radii[holds[0]]) if holds.size else None


def _part(whole: Budget, share: int) -> tuple[float, float]:
    """The (epsilon, delta) of each of `share` equal releases.

    Half of delta pays for their own deltas, half for the composition.
    """
    if not whole.delta or share == 1:
        return calibrate(share, epsilon=whole.epsilon, delta=0.0), whole.delta
    delta = whole.delta / (2 * share) * BELOW
    epsilon = calibrate(share, epsilon=whole.epsilon, delta=whole.delta / 2, method="kov_exact")
    return epsilon, delta
