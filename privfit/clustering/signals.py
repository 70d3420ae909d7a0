"""How strong a table's signal is beside the noise of a fit: public rules of `auto`.

All rules are functions of the public number of records n, the numbers of columns d and clusters k,
epsilon, delta and the neighbour relation. Replacing a record is removing one and adding another, so
sums are as noisy as for a record added or removed at half the budget: n is halved in what follows.

A sum of clipped residuals of a cluster of n / k records has noise of about g radii, with

====================  ============================================================================
discrete Laplace      g = 1.13 d k / (epsilon n)
discrete Gaussian     g = sqrt(d) k / (mu n), mu that of (0.6 epsilon, delta): a tree stays pure
====================  ============================================================================

The constants were chosen by experiments on real tables and mixtures: docs/kmeans.md names them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privfit.objectives import CentersObjective
from privfit.privacy.accounting import gaussian_calibrate
from privfit.privacy.ledger import Budget
from privfit.privacy.neighbours import Neighbours

__all__ = ["Signal"]

DROWNED = 0.25  # noise beyond which centres are worse than the mean alone
PREFERRED = 1.4  # Gaussian noise is taken up to so many times the Laplace noise
STEPS_SHARE = 0.6  # of epsilon, beside a tree


@dataclass(frozen=True)
class Signal:
    """The public numbers that decide how a table is clustered."""

    size: float  # records, halved if they are replaced
    n_features: int
    n_clusters: int
    budget: Budget

    @classmethod
    def of(
        cls, objective: CentersObjective, budget: Budget, neighbours: Neighbours, size: int
    ) -> Signal:
        """The signal of so many records, a public number."""
        return cls(
            size / neighbours.changes, objective.n_features, objective.n_clusters, budget
        )  # fmt: skip

    @property
    def laplace(self) -> float:
        """g of Laplace noise."""
        return 1.13 * self.n_features * self.n_clusters / (self.budget.epsilon * self.size)

    @property
    def gaussian(self) -> float:
        """g of Gaussian noise; infinite without a delta."""
        if self.budget.delta == 0:
            return math.inf
        mu = gaussian_calibrate(STEPS_SHARE * self.budget.epsilon, self.budget.delta)
        return math.sqrt(self.n_features) * self.n_clusters / (mu * self.size) if mu else math.inf

    @property
    def is_pure(self) -> bool:
        """Whether Laplace noise is the better one."""
        return self.gaussian >= PREFERRED * self.laplace / STEPS_SHARE

    @property
    def noise(self) -> float:
        """g of the better noise."""
        return self.laplace if self.is_pure else self.gaussian

    @property
    def is_drowned(self) -> bool:
        """Whether noise leaves no more than the mean of all records."""
        return self.noise > DROWNED

    @property
    def strength(self) -> float:
        """s = epsilon n / (k d)."""
        return self.budget.epsilon * self.size / (self.n_clusters * self.n_features)
