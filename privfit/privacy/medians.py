"""Thresholds that halve the positions of records repeatedly: what all such mechanisms share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.random import BitSource
from privfit.base.errors import DeclarationError
from privfit.base.typing import Integers
from privfit.base.validation import is_whole
from privfit.privacy.accounting import Event
from privfit.privacy.mechanisms import RelatedMechanism
from privfit.privacy.neighbours import Neighbours

__all__ = ["RecursiveMedians"]


MOST_LEVELS = 12


@dataclass(frozen=True, repr=False)
class RecursiveMedians(RelatedMechanism[ArrayLike, Integers]):
    """A cut of each cell, near the median of its records, on every level.

    Parameters
    ----------
    epsilon_each : float
        What one level costs.
    neighbours : Neighbours
    levels : int
    """

    kind: ClassVar[str]  # of the event of a level

    epsilon_each: float
    neighbours: Neighbours
    levels: int

    def __post_init__(self) -> None:
        if not is_whole(self.levels) or not 1 <= self.levels <= MOST_LEVELS:
            raise DeclarationError(
                f"levels ({self.levels!r}) must be a whole number from 1 to {MOST_LEVELS}; pass one"
            )

    @property
    def event(self) -> Event:
        return Event(self.kind, self.epsilon_each, self.levels)

    def __call__(self, value: ArrayLike, rng: object = None) -> Integers:
        """int64 (m + 1,): rising ends of the cells, from 0 to G; `value` is int64 (G,) counts.

        A cell of one place is not halved, so m is 2^levels or less.
        """
        counts, source = np.asarray(value, dtype=np.int64), BitSource.of(rng)
        ends = [0, len(counts)]
        for _ in range(self.levels):
            cells = [(a, b) for a, b in pairwise(ends) if b - a > 1]
            ends = sorted([*ends, *(a + self.cut(counts[a:b], source) for a, b in cells)])
        return np.array(ends, dtype=np.int64)

    @abstractmethod
    def cut(self, counts: Integers, source: BitSource) -> int:
        """Where a cell of two places or more is cut, from 1 to the number of its places less 1."""
