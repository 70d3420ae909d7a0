"""A tree to find a start, then Lloyd steps; as published (Su et al.) a grid, then one step."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from privfit.clustering.clustering import Clustering
from privfit.clustering.grids import Tree, UniformGrid, summarised
from privfit.clustering.lloyd import MOST_STEPS, Lloyd, Steps, rate, take_steps
from privfit.objectives import CentersObjective
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.remainder import gaussian_left
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Blank, Settings, blank, check_split
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["Hybrid"]


@dataclass(frozen=True, repr=False)
class Hybrid(Settings):
    """Settings of a tree followed by Lloyd steps, for the parameter `solver`.

    Parameters
    ----------
    tree_share : float, optional
        Fraction of epsilon for the tree or the grid.
    tree : Tree or UniformGrid, optional
        What finds the centres to start from.
    lloyd : Lloyd, optional
        The steps that follow; by default on clipped residuals.
    paper : bool, default=False
        Whether to run the hybrid of Su et al.: EUGkM with half of epsilon, then one step of noisy
        Lloyd, on sums, with the other half; pure, whatever delta is. A grid needs a public number
        of records.
    pure : bool, optional
        Whether to use Laplace noise, whatever delta is; by default steps are Gaussian if delta > 0.

    See Also
    --------
    Lloyd, UniformGrid, privfit.clustering.Tree : The parts.
    KMeans : The estimator that takes these settings.

    Notes
    -----
    Released: what the tree and the steps release. Cost: the budget of the fit.

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially private k-means clustering", CODASPY
    2016.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Hybrid, KMeans
    >>> X = np.random.default_rng(0).normal([[-0.5], [0.5]], 0.1, (2, 5000)).reshape(-1, 1)
    >>> model = KMeans(2, epsilon=1.0, domain=(-1, 1), solver=Hybrid(tree_share=0.5)).fit(X)
    >>> model.cluster_centers_.shape
    (2, 1)
    """

    takes: ClassVar[type[CentersObjective]] = CentersObjective
    unlisted: ClassVar[tuple[str, ...]] = ("pure",)

    tree_share: float = 0.5
    tree: Blank[Tree | UniformGrid] = blank(Tree(), paper=UniformGrid(paper=True))
    lloyd: Blank[Lloyd] = blank(Lloyd(residual=True), paper=Lloyd(steps=1, paper=True))
    paper: bool = False
    pure: bool | None = None

    def __post_init__(self) -> None:
        check_split(self, "tree_share")

    def check(self, task: Task[CentersObjective, Space]) -> None:
        """Refuse what a run would refuse, before anything is charged.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        share = self.tree_share * task.budget.epsilon
        self.tree.check(replace(task, epsilon=share, delta=0.0))
        plan = self.tree.plan(task.objective, share, task.neighbours)
        cost = rate(self._spends(task.budget), self.lloyd.steps or MOST_STEPS, *plan.events)
        Steps.of(self.lloyd, task.objective, cost, task.neighbours)

    def __call__(self, run: Run[CentersObjective, Reals]) -> Clustering:
        """A tree with part of the budget, then Lloyd steps from its centres with the rest.

        Released: what `tree` and `lloyd` release. Cost: the grant's budget. The number of steps may
        depend on the tree's noisy number of records, which is released; it changes how the rest of
        the budget is divided, not how large it is: a sum of epsilons, or of squares of mu
        (`grants.py`).
        """
        budget = self._spends(run.whole)
        plan = self.tree.plan(run.objective, self.tree_share * budget.epsilon, run.neighbours)
        whole = _all_steps(budget, plan.events)
        run.set_aside(*plan.events, *whole, generations=1 + MOST_STEPS)
        cells, used = plan.draw(run)

        size = run.n_public or cells.size
        steps = self.lloyd.plan(run.objective, budget, run.neighbours, size, *plan.events)
        run.set_aside(steps.event, generations=1 + steps.count)
        average = self.lloyd.average
        run.note(tree=used, lloyd=steps.noted(run.objective), average=average)
        centers = summarised(run, cells, self.tree.restarts, plan.parts)
        with suppress(RunEnded):
            run.report(centers[None])
            return Clustering.of(*take_steps(run, steps, centers, size, average), cells)
        return Clustering.of(run.path(), cells=cells)

    def _spends(self, budget: Budget) -> Budget:
        """The part of a budget that is used: epsilon only if all is pure."""
        return Budget(budget.epsilon) if self.pure else self.lloyd.spends(budget)


def _all_steps(budget: Budget, spent: tuple[Event, ...]) -> tuple[Event, ...]:
    """The plan for steps whose number is chosen later: the Gaussian release they add up to.

    Epsilons of pure steps are covered by their plain sum, and need no plan.
    """
    mu = gaussian_left(budget, *spent, rule="near") if budget.delta > 0 else 0.0
    return (Event("gaussian", mu),) if mu > 0 else ()
