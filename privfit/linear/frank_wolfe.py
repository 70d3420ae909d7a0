"""Frank-Wolfe for linear models: descent over an l1 ball; every step selects one of its corners.

The scores of corners and their range between neighbours are in `objectives/linear.py`, for both
neighbour relations. Weights, paths and averages are functions of the selected corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.linear.descent import SLOPE, Descending, check_slopes
from privfit.objectives import LinearObjective
from privfit.privacy.mechanisms import Exponential
from privfit.runs.paths import Path
from privfit.runs.protocols import Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import check_counts, check_positive_shares, check_shares
from privfit.runs.spaces import Reals

__all__ = ["FrankWolfe"]


@dataclass(frozen=True, repr=False)
class FrankWolfe(Descending):
    """Settings of a descent from corner to corner of an l1 ball, for the parameter `solver`.

    Parameters
    ----------
    steps : int, optional
        Number of steps T; by default a public rule in (n, epsilon, delta): (n mu)^(2/3) / 4, or
        sqrt(n epsilon) / 3 if delta is 0.
    radius : float, optional
        Radius of the l1 ball of the centred weights (`objective.centred`).
    cap : float, optional
        Bound on a record's residual; by default 0.5 for the logistic loss and 1 for the hinge, the
        slopes at a margin of 0. 1 means no clipping.
    average : float, optional
        Fraction of the path whose mean is the answer; 0 for the last step.

    See Also
    --------
    Gradient : A descent with noise on all columns.
    Local : A walk along single columns.

    Notes
    -----
    Released: the selected corners. Cost: T selections, which together cost the budget of the fit.

    References
    ----------
    K. Talwar, A. Thakurta, L. Zhang, "Nearly optimal private LASSO", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import FrankWolfe, LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = FrankWolfe(radius=10)
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    weighs_classes: ClassVar[bool] = True
    without_size: ClassVar[str] = "FrankWolfe(steps=...)"

    steps: int | None = None
    radius: float = 20.0
    cap: float | None = None
    average: float = 0.0

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        check_shares(self, "average")
        check_positive_shares(self, "cap")
        if not is_finite(self.radius) or self.radius <= 0:
            raise DeclarationError(
                f"radius ({self.radius!r}) must be a positive number; leave it out"
            )

    @property
    def needs_size(self) -> bool:
        return self.steps is None

    def rows_held(self, width: int, n_threads: int) -> float:
        """All corners, of which there are two a weight, and two copies of them while checked.

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
        return 7.0 * width

    def check(self, task: Task[LinearObjective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        check_slopes(task.objective, "frank_wolfe")
        super().check(task)
        corners = _corners(task.objective, self.radius)
        task.objective.check_margins(task.objective.centred.weights(corners))

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Go from corner to corner of an l1 ball: w = (1 - g) w + g corner, g = 2 / (t + 2).

        The score of a corner +-radius e_j is the clipped gradient along it; the range of these
        scores is 4 x_max cap under replace and 2 x_max cap under add_remove, x_max = 1/2 in the
        centred coding, whatever the radius. Released: the corners. Cost: T selections; together the
        grant's budget.
        """
        steps = self.steps or self._steps_by_rule(run)
        eps_s = run.plan("selection", steps)
        cap = self.cap or SLOPE[run.objective.loss]
        run.note(selections=steps, eps_s=eps_s, steps=steps, cap=cap)
        corners = _corners(run.objective, self.radius)
        moves = np.nonzero(corners)[1], corners[np.nonzero(corners)]
        view = run.objective.slopes(np.zeros(corners.shape[1]), cap)
        choose = Exponential(eps_s, view.range(*moves, run.neighbours))
        for t in range(steps):
            chosen = run.release(choose, view.scores(*moves))
            share = 2 / (t + 2)
            view.w = (1 - share) * view.w + share * corners[chosen]
            run.report(view.model[None])
        return run.path(self.average)

    def _steps_by_rule(self, run: Run[LinearObjective, Reals]) -> int:
        """(n mu)^(2/3) / 4, or sqrt(n epsilon) / 3 for a pure budget; at least 8."""
        n = self.size(run)
        if run.mu:
            return max(8, round((n * run.mu) ** (2 / 3) / 4))
        return max(8, round(math.sqrt(n * run.budget.epsilon) / 3))


def _corners(objective: LinearObjective, radius: float) -> Floats:
    """(2 n_weights, n_weights): the corners of the ball."""
    ahead = np.eye(objective.n_weights) * radius
    return np.vstack([ahead, -ahead])
