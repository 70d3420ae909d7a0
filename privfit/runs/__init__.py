"""How a private search is run: its space, its plan, its listener, and the path that it releases."""

from privfit.runs.paths import Generation, Path
from privfit.runs.spaces import Bits, Reals, Space, Subsets

__all__ = ["Bits", "Generation", "Path", "Reals", "Space", "Subsets"]
