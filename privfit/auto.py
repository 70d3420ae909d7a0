"""What `solver="auto"` is for a linear model: a rule in public facts, and nothing else.

The facts are the declared number of records, the number of coded columns, the budget, the
adjacency and the number of classes; records are never looked at. With mu the Gaussian parameter of
the budget of one model, doubled under 'add_remove', *signal* = n mu / columns says how far a
column stands above the noise (`descent.signal_of`).

==========================  ===================  ================================================
where                       solver               because
==========================  ===================  ================================================
delta = 0                   `Local`              Gaussian noise is not to be had
4096 columns and more       `Local`              second moments would not fit in memory
signal < 3                  `LinearHybrid`       noise on all columns would drown them
1025 to 4095 columns        `LinearHybrid`       it whitens the columns it chose, not all
otherwise                   `Gradient`           with steps, clip and floor by `Gradient.filled`
==========================  ===================  ================================================

Evidence (docs/linear.md, delta 1e-6): Mushroom prefers the hybrid up to a signal of 3, by 3 points
at 0.7 and by 1 at 2.8; Credit Default prefers the gradient from 5 on, and Adult from 1 on.
"""

from __future__ import annotations

import math

from privfit.accounting import gaussian_calibrate
from privfit.descent import WIDEST, WIDEST_WHITENED, Gradient, signal_of
from privfit.hybrid import LinearHybrid
from privfit.ledger import Budget
from privfit.privgene import Local

__all__ = ["choose"]

DROWNED = 3.0  # the signal below which columns are selected first


def choose(
    size: int | None, columns: int, budget: Budget, adjacency: str, models: int
) -> Gradient | LinearHybrid | Local:
    """The settings of `auto` for so many records, coded columns, and models on one budget."""
    if size is None:
        raise ValueError(
            "n_public must be given under adjacency='add_remove', where the number of records is "
            "private and solver='auto' depends on it; pass a public estimate"
        )
    if not budget.delta or columns >= WIDEST:
        return Local()
    mu = gaussian_calibrate(budget.epsilon, budget.delta) / math.sqrt(models)
    signal = signal_of(size, mu, adjacency, columns)
    assert signal is not None
    if signal < DROWNED or columns > WIDEST_WHITENED:
        return LinearHybrid()
    return Gradient()
