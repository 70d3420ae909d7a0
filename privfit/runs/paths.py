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
    """Where a search stands: released values only.

    `parameters` is the generation's leading candidate; `spent` what the search was granted, which
    was charged whole before it began, or None if it is not private.

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
    """All that a search released: the selected candidates (s, ...) of each generation, in order.

    `average` is the share of the path whose mean is the answer; 0 means the last selection.
    `notes` are settings as they were used: what rules chose, and None for what had no use. They are
    public, and go into the settings of a `Release`: see `realised`.

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
        """The mean of all that the last generations released; post-processing, hence free."""
        count = max(1, round(share * len(self.generations)))
        return np.asarray(np.concatenate(self.generations[-count:]).mean(axis=0))

    @property
    def answer(self) -> Array:
        """The mean of the last `average` of the path, or its last selection."""
        return self.mean(self.average) if self.average else self.last
