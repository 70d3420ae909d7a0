"""Whether candidates lie in a space, checked naively, row by row."""

from __future__ import annotations

import numpy as np

from privfit import Bits, Integers, Mixed, Permutations, Reals, Subsets
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
    elif isinstance(space, Integers):
        assert P.dtype == np.int64
        assert (space.low <= P).all()
        assert (space.high >= P).all()
    elif isinstance(space, Subsets):
        assert P.dtype == np.int64
        assert P.min() >= 0
        assert P.max() < space.n
        assert all(len(set(row)) == space.k for row in P.tolist())
    elif isinstance(space, Permutations):
        assert P.dtype == np.int64
        assert all(sorted(row) == list(range(space.n)) for row in P.tolist())
    elif isinstance(space, Mixed):
        assert P.dtype == np.result_type(*(one.middle for one in space.spaces))
        start = 0
        for one in space.spaces:
            part = P[:, start : start + one.size].reshape(-1, *one.shape)
            assert np.array_equal(part, part.astype(one.middle.dtype))
            check_inside(one, part.astype(one.middle.dtype))
            start += one.size
    else:
        assert isinstance(space, Bits)
        assert P.dtype == bool
    assert space.contains(P).tolist() == [True] * len(P)
