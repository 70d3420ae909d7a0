"""How each cell of a table becomes a coded number, as plain values: cuts, and lists of values.

All of this is public: it follows from the declarations alone. It is what a program needs that codes
records without privfit, such as a pipeline of scikit-learn.

A number is rounded by steps that never descend as it ascends. So a step begins at a least double,
which is found by halving all doubles in their order, with the code that rounds records itself. A
program that compares doubles with these edges codes every number as privfit does, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.typing import Floats

__all__ = ["Cut", "Listed", "least_numbers"]

LAST = 0x7FEFFFFFFFFFFFFF  # bits of the largest double


@dataclass(frozen=True, eq=False)
class Cut:
    """A column of numbers, coded by the number of edges that are not above a cell.

    edges      ascending; infinite for a step that no number reaches
    step       what a step adds to the coded column; None if each step is a level of its own
    first      the coded value before the first edge, if steps add up
    fill       what a missing number counts as; None if it has a level of its own, or is refused
    missing    whether missing numbers are a last level
    level      what a level is coded as
    """

    edges: Floats
    step: float | None = None
    first: float = 0.0
    fill: float | None = None
    missing: bool = False
    level: float = 1.0

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return 1 if self.step is not None else len(self.edges) + 1 + self.missing


@dataclass(frozen=True, eq=False)
class Listed:
    """A column of declared values, each a level; `other` is a last level for all others."""

    values: tuple[Any, ...]
    other: bool
    level: float = 1.0

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return len(self.values) + self.other


def least_numbers(steps: Callable[[Floats], Any], first: int, last: int) -> Floats:
    """(last - first,): the least double of each step from first + 1 to `last`; infinite if none.

    `steps` are whole numbers that never descend as numbers ascend.

    >>> least_numbers(np.trunc, -1, 2).tolist()
    [-0.9999999999999999, 1.0, 2.0]
    """
    wanted = np.arange(first + 1, last + 1)
    below, least = np.full((2, len(wanted)), [[-LAST - 1], [LAST + 1]], dtype=np.int64)
    while (least > below + 1).any():
        middle = (below >> 1) + (least >> 1) + (below & least & 1)  # their sum may wrap
        inside = np.asarray(steps(_number_at(middle))) >= wanted
        below, least = np.where(inside, below, middle), np.where(inside, middle, least)
    return np.where(least > LAST, np.inf, _number_at(np.minimum(least, LAST)))


def _number_at(place: Any) -> Floats:
    """The double at each place in the order of all of them: 0 at 0, negative ones mirrored."""
    size = np.abs(place).view(np.float64)
    return np.where(place < 0, -size, size)
