"""Domains: what a record may be, declared in advance and never read from the data.

A domain clips, codes and rounds each record by itself. It also answers questions about its geometry
(norms, distances and boxes), from which every sensitivity follows.
"""

from privfit.domains.balls import L1Ball, L2Ball
from privfit.domains.box import Box
from privfit.domains.columns import Categorical, Numeric
from privfit.domains.domain import Domain
from privfit.domains.grid import Grid
from privfit.domains.schema import Schema

__all__ = ["Box", "Categorical", "Domain", "Grid", "L1Ball", "L2Ball", "Numeric", "Schema"]
