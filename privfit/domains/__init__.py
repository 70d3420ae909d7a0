"""What a record may be: declared, never read off the data.

A domain clips, codes and rounds a record by itself, and answers for its geometry: norms, distances
and boxes, from which every sensitivity follows.
"""

from privfit.domains.box import Box, Categorical, Domain, Grid, L1Ball, L2Ball, Numeric, Schema

__all__ = ["Box", "Categorical", "Domain", "Grid", "L1Ball", "L2Ball", "Numeric", "Schema"]
