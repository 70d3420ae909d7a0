"""The mean of all records, by clipped means about the last one; and a clustering that is only that.

**Sensitivity.** A step releases F times the sum of the residuals x - m about a released point m,
each shrunk to a norm of at most r and rounded towards zero (`objective.residuals`): an integer
vector of norm at most V = F r that depends on x and m alone. One record added or removed changes
the sum by at most V, in l1 and in l2; one replaced by at most 2 V, since norm(v - v') <= 2 r. The
number of records is public, and divides the sum afterwards.

Each step starts nearer to the mean, so its radius may be smaller, and the noise with it. With
Laplace noise the second radius is bought by a histogram of norms (`radii.py`): a pure release more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Floats
from privfit.clustering.clustering import Clustering
from privfit.clustering.lloyd import FINE, Lloyd, Steps, noise_of, rate
from privfit.clustering.parts import ClusterSums
from privfit.clustering.radii import radius_by_histogram
from privfit.clustering.signals import Signal
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.privacy.neighbours import Neighbours
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings, check_counts
from privfit.runs.spaces import Reals

__all__ = ["Mean", "clipped_mean", "norm_of"]

HALVINGS = 4  # clipped means of ever smaller radii
FIRST, RADIUS = 0.4, 0.05  # of epsilon, for a mean of the widest radius and for the next radius
CLEAR = 5.0  # epsilon n / d below which a first mean may be anywhere, so that radii are not bought


@dataclass(frozen=True, repr=False)
class Mean(Settings):
    """Settings of all centres at the mean of the records, for tables whose signal is drowned.

    Parameters
    ----------
    steps : int, optional
        Number of clipped means, each about the last one, with radii 1, 1/2, 1/4, ... of the
        domain's, and equal budgets. By default four, or two if a radius is bought.
    pure : bool, optional
        Whether to use Laplace noise, whatever delta is; by default a public rule decides.
    bought : bool, optional
        Whether there are two means with Laplace noise, the second with a radius that is bought. By
        default, if neither steps nor Gaussian noise are asked for, and epsilon n >= 5 d.

    See Also
    --------
    privfit.clustering.OverSeeded : For tables with more signal.
    privfit.KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: a noisy sum of d numbers in each step, and perhaps a histogram of norms. Cost: pure or
    Gaussian releases, which together cost the budget of the fit. The number of records must be
    public.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import KMeans
    >>> from privfit.clustering import Mean
    >>> X = np.random.default_rng(0).normal(0.5, 0.1, (5000, 3))
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Mean(), random_state=0).fit(X)
    >>> bool((model.cluster_centers_[0] == model.cluster_centers_[1]).all())
    True
    >>> float(abs(model.cluster_centers_ - 0.5).max()) < 0.05
    True
    """

    takes: ClassVar[type[CentersObjective]] = CentersObjective

    steps: int | None = None
    pure: bool | None = None
    bought: bool | None = None

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        if self.bought and (self.pure is False or self.steps not in (None, 2)):
            raise DeclarationError(
                "bought (True) must go with two steps and Laplace noise; leave out steps and pure"
            )

    @property
    def needs_size(self) -> bool:
        return True

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        super().check(task)
        plan = self._plan(task.objective, task.budget, task.neighbours, self.size(task))
        for cost in plan.means:
            check_room(task.objective, cost, task.neighbours)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """Release clipped means, each about the last one; all centres are there.

        Released: d numbers in each step, and ten counts if a radius is bought. Cost: the grant's
        budget.
        """
        objective, size = run.objective, self.size(run)
        plan = self._plan(objective, run.whole, run.neighbours, size)
        costs = [cost for cost in plan.means for _ in range(cost.count)]
        run.set_aside(*plan.events, generations=len(costs))
        bought = plan.radius is not None
        run.note(steps=len(costs), pure=costs[0].kind == "pure", bought=bought)
        mean = objective.project(objective.middle * objective.candidate_units)
        widest = objective.reach(norm_of(costs[0])) * objective.candidate_units
        for step, cost in enumerate(costs):
            radius = math.ldexp(widest, -step)
            if step and plan.radius is not None:
                usual, changes = widest / math.sqrt(2), run.neighbours.changes
                length = changes * math.sqrt(2 * objective.n_features) / (cost.parameter * size)
                epsilon = plan.radius.parameter
                radius = radius_by_histogram(run, mean[None], usual, 1, epsilon, length)
            shift, _ = clipped_mean(run, mean, radius, cost, size)
            mean = objective.project(mean + shift)
            run.report(np.tile(mean, (1, objective.n_clusters, 1)))
        return Clustering.of(run.path())

    def _plan(
        self, objective: CentersObjective, budget: Budget, neighbours: Neighbours, size: int
    ) -> _Plan:
        """Releases that cost a budget."""
        signal = Signal.of(objective, budget, neighbours, size)
        pure = self.bought or (signal.is_pure if self.pure is None else self.pure)
        whole = Budget(budget.epsilon) if pure else budget
        equal, bought = rate(whole, self.steps or HALVINGS), self.bought
        if bought is None:
            clear = budget.epsilon * signal.size >= CLEAR * signal.n_features
            bought = self.steps is None and equal.kind == "pure" and clear
        if not bought:
            return _Plan((equal,), None)
        first, radius = (Event("pure", share * whole.epsilon) for share in (FIRST, RADIUS))
        return _Plan((first, rate(Budget(whole.epsilon), 1, first, radius)), radius)


@dataclass(frozen=True)
class _Plan:
    """The clipped means with their costs, and the histogram before the second, if there is one."""

    means: tuple[Event, ...]
    radius: Event | None

    @property
    def events(self) -> tuple[Event, ...]:
        return self.means if self.radius is None else (*self.means, self.radius)


def clipped_mean(
    run: Run[CentersObjective, Reals], mean: Floats, radius: float, cost: Event, size: float
) -> tuple[Floats, float]:
    """(d,) the noisy mean of residuals about a released mean, and the deviation of each column.

    Released: d numbers. Cost: one release of this cost.
    """
    objective, norm = run.objective.with_clusters(1), norm_of(cost)
    widest = max(1, 2 * objective.reach(norm))
    whole = max(1, min(math.floor(radius / objective.candidate_units), widest))
    F = math.ceil(FINE / whole)
    span = F * whole * run.neighbours.changes
    noise: DiscreteLaplace | DiscreteGaussian = (
        DiscreteLaplace(cost.parameter, span)
        if norm == 1
        else DiscreteGaussian(cost.parameter, float(span))
    )
    deviation = math.sqrt(2) * span / cost.parameter if norm == 1 else span / cost.parameter
    centers = objective.project(mean)[None]
    _, sums = objective.residuals(centers, whole, norm)
    found: Array = run.release(noise, F * sums[0])
    unit, longest = objective.candidate_units / F, whole * objective.candidate_units
    kind, scale = noise_of(noise)
    kept = ClusterSums(centers, None, found[None] * unit, 1.0, scale * unit, kind, longest, norm)
    run.keep(kept)
    per = objective.candidate_units / (F * size)
    return found * per, deviation * per


def norm_of(cost: Event) -> int:
    """The norm in which residuals are clipped: l1 for Laplace noise, l2 for Gaussian noise."""
    return 1 if cost.kind == "pure" else 2


def check_room(objective: CentersObjective, cost: Event, neighbours: Neighbours) -> None:
    """Refuse sums of residuals that could wrap, whatever radius is chosen later."""
    widest = 2.0 * (objective.reach(norm_of(cost)) + 1) * objective.candidate_units
    Steps.of(Lloyd(residual=True, radius=widest), objective, cost, neighbours)
