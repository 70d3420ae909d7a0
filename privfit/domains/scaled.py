"""Schemas whose categories weigh less than numbers: a level is coded as a public number below 1.

Two values of a number are at most 1 apart, and two levels of a one-hot group sqrt(2). For distances
a level is therefore coded as `level` in its column, where a linear model has 1. All geometry
follows from the bounds of the coded columns: a group reaches `level`, rounded down to the grid, and
one of its columns is non-zero at a time, as in every schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.domains.grid import frozen
from privfit.domains.schema import Schema

__all__ = ["LEAST_LEVEL", "ScaledSchema"]

LEAST_LEVEL = 0.1


@dataclass(frozen=True, eq=False)
class ScaledSchema(Schema):
    """A schema whose levels of categories and cut numbers are coded as a number from 0.1 to 1."""

    level: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_finite(self.level) or not LEAST_LEVEL <= self.level <= 1:
            raise DeclarationError(
                f"level ({self.level!r}) must be a number from {LEAST_LEVEL} to 1; pass level=0.7"
            )

    def __repr__(self) -> str:
        return f"{super().__repr__()}, levels {self.level:.4g}"

    def __str__(self) -> str:
        if self.has_blanks:
            return super().__str__()
        return f"{super().__str__()[:-2]}, levels {self.level:.4g}>)"

    @property
    def level_units(self) -> int:
        return max(1, math.floor(self.level * (1 << self.grid.a)))

    @cached_property
    def high(self) -> Floats:
        ends = np.ones(self.width)
        for group in self.groups:
            ends[group] = math.ldexp(self.level_units, -self.grid.a)
        return frozen(ends)

    @cached_property
    def _sizes(self) -> Floats:
        """(d + 1,): the largest value of each coordinate, the intercept's last."""
        return np.append(self.high, 1.0)

    def norm(self, V: ArrayLike) -> Floats:
        return super().norm(np.asarray(V, dtype=np.float64) * self._sizes)

    def pair_norms(self, P: Floats) -> Floats:
        return super().pair_norms(P * self._sizes)
