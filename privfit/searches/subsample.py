"""The sub-sampled exponential mechanism: draw candidates without data, then select one of them.

What a genetic search has to beat: as many candidates as it would look at, and the whole budget on
a single selection among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.privacy.ledger import Grant
from privfit.privacy.mechanisms import Exponential, PermuteAndFlip
from privfit.runs.paths import OPEN, Conduct, Generation, Path, check_counts, fill
from privfit.runs.spaces import Space

__all__ = ["Subsample", "subsample"]


@dataclass(frozen=True)
class Subsample:
    """Settings of `subsample`.

    Parameters
    ----------
    candidates : int
        How many are drawn; by default as many as 75 generations of 200, the thesis has 1,000.
    paper : bool
        The thesis's number of candidates, selected by the exponential mechanism; ours is
        permute-and-flip, which is never worse for a single selection.

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

    candidates: int = OPEN
    paper: bool = False

    def __post_init__(self) -> None:
        fill(self, ours={"candidates": 15_000}, paper={"candidates": 1000})
        check_counts(self, "candidates")


def subsample(
    objective: Any,
    space: Space,
    settings: Subsample,
    grant: Grant,
    rng: Any = None,
    callback: Callable[[Generation], object] | None = None,
    **public: Any,
) -> Path:
    """Draw candidates uniformly and select one.

    Released: the selected candidate. Cost: one pure release of the grant's epsilon.
    """
    conduct = Conduct(objective, space, grant, rng, callback, **public)
    epsilon = conduct.plan_one("selection" if settings.paper else "pure")
    mechanism = Exponential if settings.paper else PermuteAndFlip
    P = conduct.space.sample(settings.candidates, conduct.coins)
    blocks = np.array_split(P, -(-len(P) // 256))
    scores = np.concatenate([objective.scores(block) + objective.prior(block) for block in blocks])
    reach = objective.spread(P, conduct.adjacency)
    conduct.tell(P[[grant.release(mechanism(epsilon, reach), scores, conduct.source)]])
    return conduct.path()
