"""Fit models to sensitive records under differential privacy, on CPUs, fast."""

from privfit.accounting import Event, calibrate, compose, total
from privfit.domains import Box, Categorical, Domain, Grid, L1Ball, L2Ball, Numeric, Schema
from privfit.ledger import Budget, BudgetError, Ledger, Release
from privfit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Budget",
    "BudgetError",
    "Categorical",
    "CentersObjective",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Domain",
    "Event",
    "Exponential",
    "FacilityObjective",
    "GammaVector",
    "Grid",
    "L1Ball",
    "L2Ball",
    "Ledger",
    "LinearObjective",
    "NoisyMax",
    "Numeric",
    "PermuteAndFlip",
    "RecordObjective",
    "Release",
    "Schema",
    "TopK",
    "calibrate",
    "compose",
    "total",
]
