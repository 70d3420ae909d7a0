"""How a private search is run: its space, its plan, its callback, and the path that it releases."""

from privfit.runs.paths import Generation, Path
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import Run
from privfit.runs.spaces import Bits, Reals, Subsets

__all__ = ["Bits", "Generation", "Objective", "Path", "Reals", "Run", "Solver", "Space", "Subsets"]
