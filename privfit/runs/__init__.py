"""How a private search is run: its space, its plan, its callback, and the path that it releases."""

from privfit.runs.paths import Generation, Path, Paths, Step
from privfit.runs.protocols import Objective, Space
from privfit.runs.run import Run
from privfit.runs.spaces import Bits, Reals, Subsets

__all__ = [
    "Bits",
    "Generation",
    "Objective",
    "Path",
    "Paths",
    "Reals",
    "Run",
    "Space",
    "Step",
    "Subsets",
]
