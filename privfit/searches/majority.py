"""The noisy count of the classes: the baseline that any other model has to beat.

The number of records of class 1 is released. Its l1 sensitivity is 1 under 'replace', where class 0
is the rest of a public number; under 'add_remove' both numbers are released, and one record changes
one of them by 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.objectives import LinearObjective
from privfit.privacy.mechanisms import DiscreteLaplace
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run, Task
from privfit.runs.settings import Settings
from privfit.runs.spaces import Reals

__all__ = ["Majority"]


@dataclass(frozen=True, repr=False)
class Majority(Settings):
    """Settings of the baseline that ignores the features, for the parameter `solver`.

    See Also
    --------
    LogisticRegression : A classifier that takes these settings.

    Notes
    -----
    Released: the noisy number of records of each class. Cost: one pure release of the whole
    epsilon; delta is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X, y = np.zeros((1000, 1)), np.arange(1000) < 700
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[False, True], solver="majority")
    >>> bool(model.fit(X, y).predict([[0.5]])[0])
    True
    """

    has_honest_scores: ClassVar[bool] = True  # log odds of the logistic loss

    def check(self, task: Task[Objective, Space]) -> None:
        """Refuse what a run would refuse; nothing is drawn.

        Parameters
        ----------
        task : Task
            The public part of what the solver is asked to do.
        """
        _check_labels(task.objective)
        DiscreteLaplace(task.budget.epsilon, 1)

    def __call__(self, run: Run[LinearObjective, Reals]) -> Path:
        """Release the noisy number of records of class 1, and of class 0 if the sum is private.

        All weights are 0 and the intercept is the log-odds of class 1; for other losses it is the
        fraction of class 1 minus that of class 0. Cost: one pure release of the grant's epsilon.
        """
        _check_labels(run.objective)
        objective = run.objective
        noise = DiscreteLaplace(run.plan("pure", composition="naive"), 1)
        counts = objective.label_counts()
        if run.neighbours.size_is_public:
            n = objective.n_records
            positive = run.release(noise, counts[1:])[0]
            negative = n - min(max(positive, 0), n)
        else:
            negative, positive = run.release(noise, counts)
        # One record more of each class keeps the odds finite.
        ones, zeros = (max(float(count), 0.0) + 1 for count in (positive, negative))
        logistic = objective.loss == "logistic"
        w = np.zeros(objective.n_features + 1)
        w[-1] = math.log(ones / zeros) if logistic else (ones - zeros) / (ones + zeros)
        run.report(run.space.snap(w[None]))
        return run.path()


def _check_labels(objective: Objective) -> None:
    if not isinstance(objective, LinearObjective):
        raise DeclarationError(
            f"majority needs labelled records, not a {type(objective).__name__}; pass a "
            "LinearObjective"
        )
    if not objective.fit_intercept:
        raise DeclarationError(
            "majority releases only an intercept; pass fit_intercept=True, or another solver"
        )
