"""How a private search is run: its space, its plan, its callback, and the path that it releases."""

from privfit.base.cautions import old_names
from privfit.runs.noise import Spread
from privfit.runs.paths import Draws, Generation, Path, Paths
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import Run
from privfit.runs.spaces import Bits, Integers, Mixed, Permutations, Reals, Subsets

__all__ = [
    "Bits",
    "Draws",
    "Generation",
    "Integers",
    "Mixed",
    "Objective",
    "Path",
    "Paths",
    "Permutations",
    "Reals",
    "Run",
    "Solver",
    "Space",
    "Spread",
    "Subsets",
]

__getattr__ = old_names(__name__, {"Step": "Draws"})
