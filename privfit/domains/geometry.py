"""The geometry of records: sizes, norms and distances, from which every sensitivity follows.

By default the answers are those for the box of a domain's bounds, in which only one column of a
one-hot group is non-zero at a time. Balls and schemas override the answers that their shape makes
smaller.

Answers are in the units of the columns, or in whole units of the grid if the name says so.
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
    """What a domain knows about the sizes of its records and the distances between them."""

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
        """(d,) lower bounds of every rounded record."""
        raise NotImplementedError

    @cached_property
    def high(self) -> Floats:
        """(d,) upper bounds of every rounded record."""
        raise NotImplementedError

    def record_units(self, uniform: bool = False) -> Floats:
        """(d,) the value of one unit of the record grid in each column."""
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
        """Columns that can be non-zero at the same time; of a one-hot group, the first.

        Parameters
        ----------
        columns : iterable of int or None, default=None
            The columns to choose from; by default all.

        Returns
        -------
        list of int
            The chosen columns.
        """
        index = np.arange(self.width) if columns is None else np.array([*columns], dtype=np.int64)
        if not self.groups:
            return index.tolist()
        owner = np.arange(self.width)
        for group in self.groups:
            owner[group] = group.start
        return index[np.unique(owner[index], return_index=True)[1]].tolist()

    # ------------------------------------------------------------------------------------- norms

    def norm(self, V: ArrayLike) -> Floats:
        """Support norms N(v), exact for vectors on the grid.

        Parameters
        ----------
        V : array-like of shape (m, d + 1)
            Vectors, the intercept last.

        Returns
        -------
        array of shape (m,)
            The largest absolute margin that a record can have with each vector.
        """
        raise NotImplementedError

    def pair_norms(self, P: Floats) -> Floats:
        """Support norms N(w - w') of all pairs of candidates.

        Parameters
        ----------
        P : array of shape (m, d + 1)
            Candidates, the intercept last.

        Returns
        -------
        array of shape (m, m)
            The norms.
        """
        raise NotImplementedError

    def rescaled_norm(self, sizes: Floats, reach: Floats) -> float:
        """The support norm of non-negative weights if column j were scaled to at most reach_j.

        Parameters
        ----------
        sizes : array of shape (d + 1,)
            The weights, none negative, the intercept's last.
        reach : array of shape (d,)
            The largest absolute value of each scaled column.

        Returns
        -------
        float
            The norm.
        """
        largest = np.where(self.high > 0, self.high, 1.0)  # no column is below 0 throughout
        return float(self.norm(np.append(sizes[:-1] * reach / largest, sizes[-1]))[0])

    def power_sum(self, sizes: list[int], power: int, columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of abs(u_j)^power over some columns of a record u.

        Parameters
        ----------
        sizes : list of int
            The largest absolute value of each column, in any unit.
        power : int
            The exponent.
        columns : iterable of int or None, default=None
            The columns of the sum; by default all.

        Returns
        -------
        int
            The bound.
        """
        return sum(sizes[j] ** power for j in self.filled(columns))

    def square_changes(self, sizes: list[int], columns: Iterable[int] | None = None) -> int:
        """A bound on the sum of (u_j^2 - v_j^2)^2 over some columns of two records u and v.

        Parameters
        ----------
        sizes : list of int
            The largest absolute value of each column, in any unit.
        columns : iterable of int or None, default=None
            The columns of the sum; by default all.

        Returns
        -------
        int
            The bound.
        """
        grouped = set(self.filled(columns)).difference(self.numbers.tolist())
        # A group's old column falls to 0, and its new one rises.
        return self.power_sum(sizes, 4, columns) + self.power_sum(sizes, 4, grouped)

    # --------------------------------------------------------------------------------- distances

    def spans(self, V: Floats) -> Floats:
        """The largest <t - t', v> over two records t and t'.

        Parameters
        ----------
        V : array of shape (m, d)
            Vectors.

        Returns
        -------
        array of shape (m,)
            The largest products.
        """
        return np.abs(V) @ (self.high - self.low)

    def farthest(self, points: Floats, power: int) -> Floats:
        """The largest distance from a record to each of some points.

        Parameters
        ----------
        points : array of shape (..., d)
            The points.
        power : {1, 2}
            Distances are l1 (1) or squared l2 (2).

        Returns
        -------
        array of shape (...)
            The distances.
        """
        reach = np.maximum(np.abs(points - self.low), np.abs(self.high - points))
        return np.asarray((reach**power).sum(axis=-1))

    def farthest_apart(self, power: int) -> float:
        """A bound on the distance between two points of the domain.

        Parameters
        ----------
        power : {1, 2}
            Distances are l1 (1) or squared l2 (2).

        Returns
        -------
        float
            The bound.
        """
        return float(((self.high - self.low) ** power).sum())

    @property
    def l1_diameter(self) -> int:
        """The largest l1 distance between two records in whole units of each column, at least 1."""
        return max(1, sum(self._whole_widths))

    @property
    def l2_diameter(self) -> float:
        """The largest l2 distance between two records in whole units of each column, at least 1."""
        return max(1.0, math.sqrt(sum(w * w for w in self._whole_widths)) * ABOVE)

    @property
    def _whole_widths(self) -> list[int]:
        widths = np.rint((self.high - self.low) / self.record_units())
        return widths.astype(np.int64).tolist()

    @property
    def typical_length(self) -> float:
        """Root mean square distance from the middle for records uniform in the domain."""
        variance = np.square(self.high - self.low) / 12
        for group in self.groups:  # one of so many corners
            levels = group.stop - group.start
            variance[group] = self.high[group] ** 2 * (1 - 1 / levels) / levels
        return math.sqrt(float(variance.sum()))

    # ------------------------------------------------------- in whole units of the widest column

    @property
    def _uniform_unit(self) -> float:
        return float(self.record_units(uniform=True)[0])

    @cached_property
    def whole_bounds(self) -> tuple[Integers, Integers]:
        """(d,) the smallest and the largest integer of each column, in the widest one's unit."""
        unit = self._uniform_unit
        low, high = np.ceil(self.low / unit), np.floor(self.high / unit)
        return frozen(low.astype(np.int64)), frozen(high.astype(np.int64))

    @cached_property
    def whole_middle(self) -> Integers:
        """(d,) a central point, about which records are short, in the widest column's unit."""
        low, high = self.whole_bounds
        middle = (low + high) // 2
        for group in self.groups:
            middle[group] = 0
        return frozen(middle)

    def whole_reach(self, norm: int) -> int:
        """The largest norm of a record minus `whole_middle`, in its unit, rounded up.

        Parameters
        ----------
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        int
            The bound.
        """
        low, high = self.whole_bounds
        ends = np.maximum(high - self.whole_middle, self.whole_middle - low).tolist()
        for group in self.groups:  # one entry of a group is one, the others are zero
            ends[group] = [ends[group.start]] + [0] * (group.stop - group.start - 1)
        square = sum(v * v for v in ends)
        return sum(ends) if norm == 1 else math.isqrt(square) + (math.isqrt(square) ** 2 < square)

    def project(self, points: Floats) -> Floats:
        """Move points into the domain and onto the grid of `whole_bounds`.

        Parameters
        ----------
        points : array of shape (..., d)
            The points.

        Returns
        -------
        array of shape (..., d)
            The nearest allowed points.
        """
        unit, (low, high) = self._uniform_unit, self.whole_bounds
        return np.clip(np.rint(points / unit), low, high) * unit

    # ------------------------------------------------------------------------ points and pictures

    def uniform_points(self, m: int, rng: np.random.Generator) -> Floats:
        """Draw points uniform in the domain, not rounded to a grid; for a schema, in its box.

        Parameters
        ----------
        m : int
            Number of points.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, d)
            The points.
        """
        return rng.uniform(self.low, self.high, (m, self.width))

    def drawn_in(self, points: Floats, distance: float) -> Floats:
        """Move points towards the middle until they keep a distance from the boundary.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.
        distance : float
            The distance to keep.

        Returns
        -------
        array of shape (m, d)
            The moved points.
        """
        middle, width = (self.low + self.high) / 2, self.high - self.low
        shrink = np.maximum(0.0, 1 - 2 * distance / np.where(width > 0, width, np.inf))
        return np.asarray(middle + (points - middle) * shrink)

    def outline(self, i: int, j: int) -> Floats:
        """The region that the domain allows for two columns, whatever the others are.

        Parameters
        ----------
        i, j : int
            The two columns.

        Returns
        -------
        array of shape (m, 2)
            Corners of the region.
        """
        (left, right), (bottom, top) = ((self.low[k], self.high[k]) for k in (i, j))
        return np.array([[left, bottom], [right, bottom], [right, top], [left, top]])


def pair_distances(P: Floats, metric: str) -> Floats:
    """(m, m) distances between all pairs of points, in one of scipy's metrics."""
    distance = scipy.spatial.distance
    return np.asarray(distance.squareform(distance.pdist(P, metric)))
