"""Whether candidates lie in a space."""

from __future__ import annotations

import numpy as np

from privfit import Reals, Subsets
from privfit.runs import Space


def check_inside(space: Space, P: np.ndarray) -> None:
    assert P.shape[1:] == space.shape
    if isinstance(space, Reals):
        assert P.dtype == np.float64
        assert (space.low <= P).all()
        assert (space.high >= P).all()
        if space.units is not None:
            whole = P / space.units
            assert np.array_equal(whole, np.rint(whole))
    elif isinstance(space, Subsets):
        assert P.dtype == np.int64
        assert P.min() >= 0
        assert P.max() < space.n
        assert all(len(set(row)) == space.k for row in P.tolist())
    else:
        assert P.dtype == bool
