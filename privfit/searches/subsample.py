"""The sub-sampled exponential mechanism: draw candidates without data, then select one of them.

This is the baseline of a genetic search: as many candidates as it would look at, and the whole
budget for a single selection among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.privacy.mechanisms import Exponential, PermuteAndFlip
from privfit.runs.paths import Path
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run
from privfit.runs.settings import Blank, Search, blank, check_counts

__all__ = ["Subsample"]


@dataclass(frozen=True, repr=False)
class Subsample(Search):
    """Settings of a single selection among random candidates, for the parameter `solver`.

    Parameters
    ----------
    candidates : int, optional
        Number of candidates to draw; by default as many as in 75 generations of 200. The thesis has
        1,000.
    paper : bool, default=False
        Whether to use the thesis's number of candidates and the exponential mechanism. By default
        the mechanism is permute-and-flip, which is never worse for a single selection.

    See Also
    --------
    DPSGA : The genetic search that it is a baseline of.

    Notes
    -----
    Released: the selected candidate. Cost: one pure release of the whole epsilon; delta is not
    used.

    References
    ----------
    Humphries, "Differentially private simple genetic algorithms", thesis, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, Subsample
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = Subsample(candidates=1000)
    >>> model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    counts_errors: ClassVar[bool] = True

    candidates: Blank[int] = blank(15_000, paper=1000)
    paper: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "candidates")

    @property
    def largest_weight(self) -> float:
        return 1.0

    @property
    def space_needs(self) -> tuple[str, ...]:
        return ("sample",)

    def rows_held(self, width: int, n_threads: int) -> float:
        """All candidates, as they are drawn and as they are rounded.

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
        return 2.1 * self.candidates

    def __call__(self, run: Run[Objective, Space]) -> Path:
        """Draw candidates uniformly and select one.

        Released: the selected candidate. Cost: one pure release of the grant's epsilon.
        """
        objective = run.objective
        epsilon = run.plan("selection" if self.paper else "pure", composition="naive")
        mechanism = Exponential if self.paper else PermuteAndFlip
        P = run.space.sample(self.candidates, run.coins)
        blocks = np.array_split(P, -(-len(P) // 256))
        scores = np.concatenate(
            [objective.scores(block) + objective.prior(block) for block in blocks]
        )
        bound = objective.spread(P, run.neighbours)
        run.report(P[[run.release(mechanism(epsilon, bound), scores)]])
        return run.path()
