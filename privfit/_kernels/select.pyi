"""Exact private selection; see select.pyx."""

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.random import BitSource

def top_k(
    scores: NDArray[np.int64],
    count: int,
    k: int,
    scale: int,
    source: BitSource,
    n_threads: int = 1,
) -> NDArray[np.int64]: ...
def permute_and_flip(scores: NDArray[np.int64], k: int, scale: int, source: BitSource) -> int: ...
def uniform_distinct(m: int, count: int, source: BitSource) -> NDArray[np.int64]: ...
