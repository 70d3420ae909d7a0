"""Search spaces: what a candidate may be, and how to make new ones without any data.

`Reals` is a box, `Integers` a box of whole numbers, `Bits` the strings of n bits, `Subsets` the
sets of k indices, `Permutations` the orders of n things, and `Mixed` several spaces side by side.
Each space has

- `sample`, which draws candidates uniformly, `contains`, and `extremes`, to test an objective with;
- *moves*, a pair of arrays (where, what): `all_moves` and `some_moves` of one candidate, and
  `moved`, the candidates they lead to;
- *operators* on populations (m, ...): `splice` and `mix` cross two of them, `sibling` is the other
  child of such a pair, `nudge`, `jitter` and `redraw` mutate one.

`coins` is a numpy Generator: proposals never see records, so their randomness costs no privacy.
"""

from privfit.runs.spaces.bits import Bits
from privfit.runs.spaces.common import side_by_side
from privfit.runs.spaces.integers import Integers
from privfit.runs.spaces.mixed import Mixed
from privfit.runs.spaces.permutations import Permutations
from privfit.runs.spaces.reals import Reals
from privfit.runs.spaces.subsets import Subsets

__all__ = ["Bits", "Integers", "Mixed", "Permutations", "Reals", "Subsets", "side_by_side"]
