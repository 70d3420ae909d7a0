"""The geometry of records: sizes, norms and distances, from which every sensitivity follows.

By default the answers are those for the box of a domain's bounds, where of a one-hot group only one
column is filled at a time. Balls and schemas override what their shape makes smaller.

Answers are in the units of the columns, or in whole units of the grid where the name says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit.base.rounding import ABOVE
from privfit.base.typing import Floats, Integers
from privfit.domains.grid import frozen

__all__ = ["Geometry", "pair_distances"]


class Geometry:
    """What a domain answers about the sizes of its records and the distances between them."""

    # p, where records fill a ball of the l_p norm; infinite where each column has its own bounds.
    order: ClassVar[float] = math.inf
    # The dual of that norm, in which `spans` measures a vector once columns are scaled to one size.
    dual_norm: ClassVar[str] = "l1"
    # Whether `spans`, `farthest` and `farthest_apart` take no root, so that nothing is rounded.
    exact_distances: ClassVar[bool] = True

    # ------------------------------------------------------------------------------------ bounds

    @property
    def width(self) -> int:
        """The number of columns of an encoded record."""
        raise NotImplementedError

    @cached_property
    def low(self) -> Floats:
        """(d,) lower bounds that every rounded record keeps."""
        raise NotImplementedError

    @cached_property
    def high(self) -> Floats:
        """(d,) upper bounds that every rounded record keeps."""
        raise NotImplementedError

    def record_units(self, uniform: bool = False) -> Floats:
        """(d,) what one record integer is worth in each column."""
        raise NotImplementedError

    @property
    def groups(self) -> list[slice]:
        """The encoded columns of each one-hot group."""
        return []

    @cached_property
    def numbers(self) -> Integers:
        """The encoded columns that are numbers: all but those of one-hot groups."""
        grouped = [column for group in self.groups for column in range(group.start, group.stop)]
        return frozen(np.setdiff1d(np.arange(self.width), grouped))

    def filled(self, columns: Iterable[int] | None = None) -> list[int]:
        """Of these columns (all), those that a record can fill at once: of a group the first."""
        index = np.arange(self.width) if columns is None else np.array([*columns], dtype=np.int64)
        if not self.groups:
            return index.tolist()
        owner = np.arange(self.width)
        for group in self.groups:
            owner[group] = group.start
        return index[np.unique(owner[index], return_index=True)[1]].tolist()

    # ------------------------------------------------------------------------------------- norms

    def norm(self, V: ArrayLike) -> Floats:
        """(m,) support norms N(v) of vectors (m, d + 1), the intercept last. Exact on the grid."""
        raise NotImplementedError

    def pair_norms(self, P: Floats) -> Floats:
        """(m, m) support norms N(w - w') of all pairs of candidates."""
        raise NotImplementedError

    def rescaled_norm(self, sizes: Floats, reach: Floats) -> float:
        """N of weights (d + 1,), none negative, if column j were scaled to be at most reach_j."""
        largest = np.where(self.high > 0, self.high, 1.0)  # no column is below 0 throughout
        return float(self.norm(np.append(sizes[:-1] * reach / largest, sizes[-1]))[0])

    def power_sum(self, sizes: list[int], power: int, columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of abs(u_j)^power over these columns (all) of a record u.

        Column j of the record, in whatever units, is at most sizes_j.
        """
        return sum(sizes[j] ** power for j in self.filled(columns))

    def square_changes(self, sizes: list[int], columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of (u_j^2 - v_j^2)^2 over these columns (all) of two records u, v."""
        grouped = set(self.filled(columns)).difference(self.numbers.tolist())
        # A group's old column falls to 0, and its new one rises.
        return self.power_sum(sizes, 4, columns) + self.power_sum(sizes, 4, grouped)

    # --------------------------------------------------------------------------------- distances

    def spans(self, V: Floats) -> Floats:
        """(m,) the largest <t - t', v> of two records t, t', for vectors (m, d)."""
        return np.abs(V) @ (self.high - self.low)

    def farthest(self, points: Floats, power: int) -> Floats:
        """(...) the largest distance of a record to each of the points (..., d).

        Distances are squared l2 (power 2) or l1 (power 1).
        """
        reach = np.maximum(np.abs(points - self.low), np.abs(self.high - points))
        return np.asarray((reach**power).sum(axis=-1))

    def farthest_apart(self, power: int) -> float:
        """A bound on the distance of two points within the domain: see `farthest`."""
        return float(((self.high - self.low) ** power).sum())

    @property
    def l1_diameter(self) -> int:
        """How far two records can be apart in l1, in whole units of each column, at least 1."""
        return max(1, sum(self._whole_widths))

    @property
    def l2_diameter(self) -> float:
        """How far two records can be apart in l2, in whole units of each column, at least 1."""
        return max(1.0, math.sqrt(sum(w * w for w in self._whole_widths)) * ABOVE)

    @property
    def _whole_widths(self) -> list[int]:
        widths = np.rint((self.high - self.low) / self.record_units())
        return widths.astype(np.int64).tolist()

    @property
    def typical_length(self) -> float:
        """Root mean square distance from the middle, of records uniform in the domain."""
        variance = np.square(self.high - self.low) / 12
        for group in self.groups:  # one of so many corners
            levels = group.stop - group.start
            variance[group] = (1 - 1 / levels) / levels
        return math.sqrt(float(variance.sum()))

    # ------------------------------------------------------- in whole units of the widest column

    @property
    def _uniform_unit(self) -> float:
        return float(self.record_units(uniform=True)[0])

    @cached_property
    def whole_bounds(self) -> tuple[Integers, Integers]:
        """(d,) the least and the largest integer of each column, in the unit of the widest."""
        unit = self._uniform_unit
        low, high = np.ceil(self.low / unit), np.floor(self.high / unit)
        return frozen(low.astype(np.int64)), frozen(high.astype(np.int64))

    @cached_property
    def whole_middle(self) -> Integers:
        """(d,) a point about which records are short, in the unit of the widest column."""
        low, high = self.whole_bounds
        middle = (low + high) // 2
        for group in self.groups:
            middle[group] = 0
        return frozen(middle)

    def whole_reach(self, norm: int) -> int:
        """The largest l1 or l2 norm of a record less `whole_middle`, in its unit, rounded up."""
        low, high = self.whole_bounds
        ends = np.maximum(high - self.whole_middle, self.whole_middle - low).tolist()
        for group in self.groups:  # one entry of a group is one, the others are zero
            ends[group] = [ends[group.start]] + [0] * (group.stop - group.start - 1)
        square = sum(v * v for v in ends)
        return sum(ends) if norm == 1 else math.isqrt(square) + (math.isqrt(square) ** 2 < square)

    def project(self, points: Floats) -> Floats:
        """Points (..., d) moved into the domain and onto the grid of `whole_bounds`."""
        unit, (low, high) = self._uniform_unit, self.whole_bounds
        return np.clip(np.rint(points / unit), low, high) * unit

    # ------------------------------------------------------------------------ points and pictures

    def uniform_points(self, m: int, rng: np.random.Generator) -> Floats:
        """(m, d) points uniform in the domain, on no grid; of a schema, in its box."""
        return rng.uniform(self.low, self.high, (m, self.width))

    def drawn_in(self, points: Floats, distance: float) -> Floats:
        """Points drawn together towards the middle, until they keep a distance from the border."""
        middle, width = (self.low + self.high) / 2, self.high - self.low
        shrink = np.maximum(0.0, 1 - 2 * distance / np.where(width > 0, width, np.inf))
        return np.asarray(middle + (points - middle) * shrink)

    def outline(self, i: int, j: int) -> Floats:
        """(m, 2) corners of what the domain allows for two columns, all others being free."""
        (left, right), (bottom, top) = ((self.low[k], self.high[k]) for k in (i, j))
        return np.array([[left, bottom], [right, bottom], [right, top], [left, top]])


def pair_distances(P: Floats, metric: str) -> Floats:
    """(m, m) distances of all pairs of points, in a metric of scipy."""
    distance = scipy.spatial.distance
    return np.asarray(distance.squareform(distance.pdist(P, metric)))
