"""Fit models to sensitive records under differential privacy, on CPUs, fast."""

from privfit.domains import Box, Categorical, Domain, Grid, L1Ball, L2Ball, Numeric, Schema
from privfit.objectives import (
    CentersObjective,
    FacilityObjective,
    LinearObjective,
    RecordObjective,
)

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Categorical",
    "CentersObjective",
    "Domain",
    "FacilityObjective",
    "Grid",
    "L1Ball",
    "L2Ball",
    "LinearObjective",
    "Numeric",
    "RecordObjective",
    "Schema",
]
