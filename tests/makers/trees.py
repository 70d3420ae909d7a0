"""Shapes of trees as sets of strings of bits, and the chance of each."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import reference

from privfit.objectives.centers import Framed
from privfit.privacy.privtree import Leaves, SplitTree
from privfit.records.cells import Halved


def shapes(roots: int, depth: int) -> list[frozenset[str]]:
    """Every shape of a tree of so many levels, of which the first ones are always there."""
    below = [reference.trees(depth - roots, "".join(bits))
             for bits in itertools.product("01", repeat=roots)]  # fmt: skip
    return [frozenset().union(*parts) for parts in itertools.product(*below)]


def shape_of(leaves: Leaves) -> frozenset[str]:
    return frozenset(names_of(leaves))


def names_of(leaves: Leaves) -> list[str]:
    return [format(code, f"0{level}b") if level else ""
            for code, level in zip(leaves.codes.tolist(), leaves.levels.tolist(), strict=True)
            ]  # fmt: skip


def leaves_of(shape: frozenset[str]) -> Leaves:
    """In the order of their codes, as the mechanism gives them."""
    names = sorted(shape)
    codes = np.array([int(name, 2) if name else 0 for name in names], dtype=np.uint64)
    return Leaves(codes, np.array([len(name) for name in names]))


def shape_log(mechanism: SplitTree, shape: frozenset[str], cells: Any) -> mpmath.mpf:
    """ln P of a shape, given the sorted cells of all records."""
    if isinstance(cells, Halved):
        cells = cells.sums.whole("this test").cells(cells.axes, *cells.scale)
    elif isinstance(cells, Framed):
        cells = cells.sums.whole("this test").framed_cells(*cells.frame)
    texts = [format(c, f"0{mechanism.depth}b") for c in map(int, cells)]
    return reference.tree_log_probability(
        shape, texts, rate_of(mechanism), mechanism.decay, mechanism.roots, mechanism.depth
    )


def rate_of(mechanism: SplitTree) -> mpmath.mpf:
    tests = {"replace": 4, "add_remove": 3}[mechanism.neighbours.relation]
    return mpmath.mpf(mechanism.epsilon) / tests
