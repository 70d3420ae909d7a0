"""What privacy costs, and the one door out: mechanisms, their accounting, ledgers and grants.

Nothing here sees a record. A mechanism is parameters, an exact sampler and its cost; a `Ledger`
holds a budget, a `Grant` is a part of it, and ``grant.release(mechanism, value, rng)`` charges
first and draws second.
"""

from privfit.base.errors import BudgetError
from privfit.privacy.accounting import Event, calibrate, compose, delta_at, total
from privfit.privacy.budget_file import open_ledger
from privfit.privacy.checkpoint import Checkpoint
from privfit.privacy.dp_events import from_dp_accounting, to_dp_accounting
from privfit.privacy.ledger import Budget, Grant, Ledger, Release
from privfit.privacy.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.planning import Plan, plan

__all__ = [
    "AboveThreshold",
    "Budget",
    "BudgetError",
    "Checkpoint",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "GammaVector",
    "Grant",
    "Ledger",
    "Neighbours",
    "NoisyMax",
    "PermuteAndFlip",
    "Plan",
    "Release",
    "TopK",
    "calibrate",
    "compose",
    "delta_at",
    "from_dp_accounting",
    "open_ledger",
    "plan",
    "to_dp_accounting",
    "total",
]
