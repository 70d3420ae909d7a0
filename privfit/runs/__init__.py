"""How a private search is run: its space, its plan, its callback, and the path that it releases."""

from privfit.runs.paths import Generation, Path, Paths, Step
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import Run
from privfit.runs.spaces import Bits, Integers, Mixed, Permutations, Reals, Subsets

__all__ = [
    "Bits",
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
    "Step",
    "Subsets",
]
