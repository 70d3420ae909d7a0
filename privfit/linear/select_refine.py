"""Select columns, then refine: private selections and a whitened descent on one budget.

If a table has few records for its columns, noise drowns a gradient of all of them. Here a walk like
`Local` first selects moves along single columns; the columns that it changed are then refined by a
descent like `Gradient`, whitened by second moments of those columns alone, starting where the walk
ended. Noise is added to k columns instead of d, and to shorter records.

**Neighbours.** Data sets differ by one record, replaced ('replace', the size n is public) or added
or removed ('add_remove', n is private and rules use `n_public`). A selection's scores have the
range of `objective.slopes`; moments and gradients have the l2 sensitivities of
`objectives/clipping.py`, for the columns that were selected: these are released, so the same for
both neighbours.

**Cost.** T selections of eps_s, one Gaussian draw of moments and S of gradients: a mixed plan,
whose mu is the largest that the accountant certifies beside the selections (`gaussian_left`).
In the limit of many small draws eps_s = 2 mu_1 / sqrt(T) costs as much as a Gaussian draw of mu_1,
and parameters add up as squares: mu_1^2 is a `share` of the squared parameter of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.base.cautions import old_names
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.linear.descent import (
    ALMOST,
    LEAST,
    WIDEST,
    WIDEST_WHITENED,
    Descending,
    Descent,
    Gradient,
    Noise,
    buy_frame,
    check_reach,
    check_slopes,
    descend,
    signal_of,
    with_noise,
)
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import OF_THREAD, SecondMoments
from privfit.objectives.coding import Broad
from privfit.privacy.accounting import Event
from privfit.privacy.ledger import Budget
from privfit.privacy.remainder import gaussian_left, gaussian_part
from privfit.runs.paths import Path
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Blank, blank, check_split
from privfit.runs.sizes import known_size
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded
from privfit.searches.privgene import Local, climb

__all__ = ["SelectRefine"]

WALK = 10.0  # bounds the centred weights of the walk, like those of `Local`


@dataclass(frozen=True, repr=False)
class SelectRefine(Descending):
    """Settings of a walk followed by a descent, the solver 'select_refine' of linear models.

    The defaults were chosen on Mushroom, Adult and Credit Default (docs/select_refine.md).

    Parameters
    ----------
    share : float, optional
        Fraction of the squared Gaussian parameter that pays for the selections.
    select : Local, optional
        The walk; its `generations` is T, by default 1.5 sqrt(n mu) from 8 to 1024, with mu the
        Gaussian parameter of the budget, doubled under 'add_remove'. The descent starts from the
        mean of the last `average` of the walk.
    refine : Gradient, optional
        The descent on the columns that the walk changed.

    See Also
    --------
    Gradient : A descent on all columns.
    Local : The walk alone.

    Notes
    -----
    Released: the moves, the noisy second moments of the selected columns, and noisy gradients.
    Cost: the budget of the fit; delta must be positive. The defaults were
    chosen on Mushroom, Adult and Credit Default (docs/select_refine.md).

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import SelectRefine, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = SelectRefine(share=0.5)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    clips_slopes: ClassVar[bool] = True
    weighs_classes: ClassVar[bool] = True
    without_size: ClassVar[str] = "SelectRefine(select=Local(generations=...))"

    share: float = 0.7
    select: Blank[Local] = blank(Local(step=0.03, last_step=0.009, average=0.5))
    refine: Blank[Gradient] = blank(Gradient(steps=16, whiten=True, floor=1.0, ridge=0.0))

    def __post_init__(self) -> None:
        check_split(self, "share")
        for name, kind in (("select", Local), ("refine", Gradient)):
            if not isinstance(getattr(self, name), kind):
                raise DeclarationTypeError(
                    f"{name} ({type(getattr(self, name)).__name__}) must be settings of this "
                    f"step; pass {kind.__name__}(...), or leave it out"
                )
        if self.select.scoring != "gradient":
            raise DeclarationError("select must score moves by the gradient; leave scoring out")
        if not self.refine.whiten:
            raise DeclarationError("refine must be whitened; pass Gradient(whiten=True, ...)")

    @property
    def needs_size(self) -> bool:
        return self.select.generations is None

    def rows_held(self, width: int, n_threads: int) -> float:
        """Second moments, and what whitens the columns that were selected.

        Parameters
        ----------
        width : int
            The number of weights.
        n_threads : int
            The number of threads, each of which adds up moments of its own.

        Returns
        -------
        float
            The number of rows.
        """
        whitened = 6 * min(width, WIDEST_WHITENED) ** 2 / width
        return (5 + OF_THREAD * (n_threads - 1)) * width + whitened

    def check(self, task: Task[LinearObjective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        objective, budget = task.objective, task.budget
        check_slopes(objective, "select_refine")
        if not budget.delta:
            raise DeclarationError(
                "solver 'select_refine' adds Gaussian noise, and so needs delta > 0; pass "
                "delta=1e-6, or solver='local'"
            )
        if objective.domain.width >= WIDEST:
            raise DeclarationError(
                f"solver 'select_refine' takes fewer than {WIDEST} columns; pass solver='local'"
            )
        super().check(task)
        mu = gaussian_left(budget)
        signal = signal_of(task.n_public, mu, task.neighbours, 1)
        if _Plan.of(self, budget, 1, signal).noise.least < LEAST:
            raise DeclarationError(
                f"epsilon ({budget.epsilon!r}) is too small for this number of draws; pass fewer "
                "generations and steps, or a larger epsilon"
            )
        if not objective.fit_intercept:
            where = " if no intercept is fitted, whose moments would reveal the number of records"
            known_size(task.n_public, where)
        coding = Broad(objective.domain, objective.fit_intercept)
        check_reach(objective, coding)
        SecondMoments(objective, coding).sensitivity(task.neighbours)
        check_reach(objective, objective.centred, WALK)

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Walk along single columns, then descend on those that the walk changed.

        Released: the moves, the noisy second moments of the columns, and noisy gradients. The
        weights after each are reported. Cost: the grant's budget. The space bounds coded weights
        (`Broad`).
        """
        objective = run.objective
        plan = _Plan.of(
            self, run.whole, run.share, signal_of(run.n_public, run.mu, run.neighbours, 1)
        )
        generations = plan.selections + plan.refine.steps
        selections = Event("selection", plan.eps_s, plan.selections)
        run.set_aside(selections, *plan.noise.events, generations=generations)
        cap = self.select.cap_of(objective)
        run.note(
            select={**self.select.noted(plan.selections), "eps_s": plan.eps_s, "cap": cap},
            refine=plan.refine.noted,
        )

        coding = Broad(objective.domain, objective.fit_intercept)
        box = Reals(-WALK, WALK, coding.width)
        view = objective.slopes(box.middle, cap)
        try:
            walk = climb(run, box, view, plan.eps_s, self.select.schedule(plan.selections))
        except RunEnded:
            run.note(average=self.select.average)
            return run.path(self.select.average)
        columns = np.flatnonzero((walk[:, : objective.n_features] != 0).any(axis=0))
        start = coding.positions(run.path(self.select.average).answer)

        frame = buy_frame(run, coding, plan.refine, plan.noise, columns)
        pace = descend(run, coding, frame, plan.refine, plan.noise, start)
        steps = run.reported - plan.selections  # the mean is over steps alone, and they may be few
        average = plan.refine.average * steps / (plan.selections + steps)
        run.note(average=average)
        return with_noise(run.path(average), coding, frame, pace, steps)


@dataclass(frozen=True)
class _Plan:
    """T selections of eps_s, and the noise of the descent after them."""

    selections: int
    eps_s: float
    refine: Descent
    noise: Noise

    @classmethod
    def of(cls, s: SelectRefine, budget: Budget, fits: int, signal: float | None) -> _Plan:
        """The plan of one of several equal fits; `signal` is n mu, or None if T is given."""
        T = s.select.generations or min(
            WIDEST_WHITENED, max(8, round(1.5 * math.sqrt(signal or 0)))
        )
        refine = s.refine.filled(budget, T, None if signal is None else signal / T)
        mu = gaussian_left(budget)
        eps_s = 2 * mu * math.sqrt(s.share / (T * fits))
        chosen = Event("selection", eps_s, T * fits)
        left = gaussian_left(budget, chosen)
        return cls(T, eps_s, refine, Noise(refine, gaussian_part(left, fits, ALMOST)))


__getattr__ = old_names(__name__, {"LinearHybrid": "SelectRefine"})
