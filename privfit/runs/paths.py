"""What a private run releases: the survivors of each generation, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privfit.base.typing import Array
from privfit.privacy.ledger import Budget

__all__ = ["Generation", "Path"]


@dataclass(frozen=True)
class Generation:
    """The progress of a search, as passed to callbacks: released values only.

    Parameters
    ----------
    index : int
        Number of this generation.
    total : int
        Number of generations of the search.
    parameters : array
        The leading candidate of the generation.
    spent : Budget or None
        The budget of the search, which was charged in full before it began; None if the search is
        not private.

    See Also
    --------
    privfit.LogisticRegression : Has a parameter `callback`.
    Path : All generations.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> seen = []
    >>> declared = {"domain": (-1, 1), "classes": [0, 1], "solver": "local"}
    >>> model = LogisticRegression(1.0, 1e-6, callback=seen.append, **declared)
    >>> _ = model.fit(np.linspace(-1, 1, 1000)[:, None], np.repeat([0, 1], 500))
    >>> len(seen) == seen[-1].total
    True
    """

    index: int
    total: int
    parameters: Array
    spent: Budget | None


@dataclass(frozen=True, eq=False)
class Path:
    """Everything that a search released: the selected candidates of each generation, in order.

    Parameters
    ----------
    generations : tuple of arrays of shape (s, ...)
        The selected candidates of each generation.
    average : float, default=0.0
        The fraction of the path whose mean is the answer; 0 means the last selection.
    notes : dict, default={}
        Settings as they were used: the values that rules chose, and None for those that had no
        effect. They are public, and become settings of the `Release`.

    See Also
    --------
    privfit.search : Returns a path in its `Found`.
    Generation : One generation, as passed to callbacks.

    Notes
    -----
    Everything in a path has been released and paid for; computing with it is post-processing and
    costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, search
    >>> objective = RecordObjective(np.zeros(9), lambda x, P: np.zeros((len(x), len(P))), -1.0, 0.0)
    >>> found = search(objective, Bits(4), 1.0)
    >>> found.path.answer.shape
    (4,)
    """

    generations: tuple[Array, ...]
    average: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{len(self.generations)} generations>)"

    @property
    def last(self) -> Array:
        """The candidate that was selected last."""
        return np.asarray(self.generations[-1][0])

    def mean(self, share: float) -> Array:
        """The mean of everything that the last generations released.

        Parameters
        ----------
        share : float
            Fraction of the generations to take, at least one.

        Returns
        -------
        array
            The mean. It is post-processing and costs nothing.
        """
        count = max(1, round(share * len(self.generations)))
        return np.asarray(np.concatenate(self.generations[-count:]).mean(axis=0))

    @property
    def answer(self) -> Array:
        """The mean of the last `average` of the path, or the last selection."""
        return self.mean(self.average) if self.average else self.last
