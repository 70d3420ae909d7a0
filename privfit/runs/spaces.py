"""Search spaces: what a candidate may be, and how to make new ones without any data.

`Reals` is a box, `Subsets` the sets of k indices, `Bits` the strings of n bits. Each space has

- `sample`, which draws candidates uniformly, and `extremes`, to test an objective with;
- *moves*, a pair of arrays (where, what): `all_moves` and `some_moves` of one candidate, and
  `moved`, the candidates they lead to;
- *operators* on populations (m, ...): `splice` and `mix` cross two of them, `sibling` is the other
  child of such a pair, `nudge` and `jitter` mutate one.

`coins` is a numpy Generator: proposals never see records, so their randomness costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.candidates import both_ways, snap
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins, Floats, Integers
from privfit.base.validation import is_whole

__all__ = ["Bits", "Reals", "Subsets", "side_by_side"]


def _check_size(name: str, value: Any) -> None:
    if not is_whole(value) or value < 1:
        raise DeclarationError(
            f"{name} ({value!r}) must be a positive whole number; pass {name}=10"
        )


@dataclass(frozen=True, eq=False)
class Reals:
    """A box of real numbers: d of them, or an array of shape d, each from low to high.

    Parameters
    ----------
    low, high : float or array of shape d
        The bounds. They must not depend on the records.
    d : int or tuple of int
        The number of coordinates, or the shape of a candidate.
    units : float, array or None, default=None
        The grid of the candidates; a search takes it from its objective.
    start : array or None, default=None
        The start of a walk, which must not depend on the records; by default the candidate nearest
        to zero.

    See Also
    --------
    search : Searches a space.
    Bits, Subsets : Discrete spaces.

    Notes
    -----
    The sizes of steps are fractions of a coordinate's width, as in the papers.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Reals, RecordObjective, search
    >>> heights = np.random.default_rng(0).normal(170, 10, 5000)  # private
    >>> def nearness(heights, P):
    ...     return -np.abs(heights[:, None] - P[:, 0])
    >>> objective = RecordObjective(heights, nearness, low=-50.0, high=0.0)
    >>> found = search(objective, Reals(100, 250, 1), 1.0, 1e-6, random_state=0)
    >>> bool(abs(found.answer[0] - 170) < 5)
    True
    """

    has_means: ClassVar[bool] = True

    low: Any
    high: Any
    d: int | tuple[int, ...]
    units: ArrayLike | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        for size in self.shape:
            _check_size("d", size)
        try:
            low, high = (
                np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), self.shape))
                for bound in (self.low, self.high)
            )
        except ValueError:
            raise DeclarationError(
                f"low and high must be numbers or arrays of shape {self.shape}; pass Reals(low, "
                "high, d)"
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise DeclarationError("low must be below high, both finite; pass Reals(-1, 1, d)")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if np.greater(*self._ends).any():
            raise DeclarationError(
                "low and high must have a point of the grid between them in every coordinate; pass "
                "wider bounds, or a finer grid"
            )

    def __repr__(self) -> str:
        return f"Reals(<{' x '.join(map(str, self.shape))} numbers>)"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return self.d if isinstance(self.d, tuple) else (self.d,)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return math.prod(self.shape)

    @property
    def width(self) -> Floats:
        """The width of each coordinate."""
        return np.asarray(np.subtract(self.high, self.low))

    @property
    def middle(self) -> Floats:
        """The start of a walk: the candidate nearest to zero, or the declared one."""
        return self.snap(np.zeros(self.shape) if self.start is None else self.start)

    @property
    def extremes(self) -> Floats:
        """(4, ...): the middle and outermost candidates; bounds that hold there hold everywhere."""
        farthest = np.where(np.abs(self.low) > np.abs(self.high), self.low, self.high)
        return self.snap(np.stack([self.middle, self.low, self.high, farthest]))

    def on_grid_of(self, objective: Any) -> Reals:
        """This box on the grid of an objective.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Reals
            The space to search.
        """
        units = getattr(objective, "candidate_units", None)
        if self.units is not None or units is None:
            return self
        if np.shape(units) not in ((), self.shape, self.shape[-1:]):
            raise DeclarationError(
                f"candidates (shape {self.shape}) must have the shape of the objective's, "
                f"{np.shape(units)}; pass Reals(low, high, d) with it"
            )
        return replace(self, units=units)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The lowest and the highest candidate of the box, on its grid."""
        if self.units is None:
            return self.low, self.high
        low, high = np.ceil(self.low / self.units), np.floor(self.high / self.units)
        return low * self.units, high * self.units

    def snap(self, P: ArrayLike) -> Floats:
        """Clip candidates to the box and round them to the grid.

        Parameters
        ----------
        P : array-like of shape (m, ...)
            The candidates.

        Returns
        -------
        array of shape (m, ...)
            The rounded candidates.
        """
        P = np.asarray(P, dtype=np.float64)
        shape = np.broadcast_shapes(P.shape, self.shape)
        return self._snapped(np.array(np.broadcast_to(P, shape), order="C"))

    def _snapped(self, P: Floats) -> Floats:
        """The same in place, for a contiguous array of candidates."""
        low, high, _, units = self._flat
        snap(P.reshape(-1, self.size), units, low, high)
        return P

    def contains(self, P: Array) -> Array:
        """Which candidates lie in the box and on its grid.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that do.
        """
        if P.dtype.kind not in "fiu":
            return np.zeros(len(P), dtype=bool)
        return np.asarray((self.snap(P) == P).reshape(len(P), -1).all(axis=1))

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates uniformly in the box.

        Parameters
        ----------
        m : int
            Number of draws.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        return self.snap(coins.uniform(self.low, self.high, (m, *self.shape)))

    # ---------------------------------------------------------------------------------------- moves

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Floats]:
        """All moves by one step up or down along one coordinate.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Size of a step, as a fraction of a coordinate's width.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        return self._every_coordinate, self._both_ways(w, step).ravel()

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Floats]:
        """Draw moves uniformly: a coordinate, up or down.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        where = coins.integers(self.size, size=m)
        up = coins.random(m) < 0.5
        ahead, back = self._both_ways(w, step)
        return where, np.where(up, ahead[where], back[where])

    @cached_property
    def _every_coordinate(self) -> Integers:
        where = np.tile(np.arange(self.size), 2)
        where.setflags(write=False)
        return where

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The outermost points, widths and units of all coordinates, flattened; no units, none."""
        units = np.empty(0)
        if self.units is not None:
            units = np.ravel(np.broadcast_to(np.asarray(self.units, dtype=np.float64), self.shape))
        low, high = self._ends
        return np.ravel(low), np.ravel(high), np.ravel(self.width), units

    def _both_ways(self, w: Array, share: float) -> Floats:
        """(2, size): a step up and one down each coordinate, on the grid.

        Steps that would leave the box are shortened.
        """
        low, high, width, units = self._flat
        steps = np.empty((2, self.size))
        both_ways(np.ravel(w), share, width, units, low, high, steps)
        return steps

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The candidates after each move.

        Parameters
        ----------
        w : array
            The candidate.
        where : array of int
            The coordinate or position that each move changes.
        what : array
            The new value, or the step, of each move.

        Returns
        -------
        array of shape (m, ...)
            The candidates after each move.
        """
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(np.ravel(w), (len(where), 1))
        P[np.arange(len(where)), where] += what
        return P.reshape(-1, *self.shape)

    # ------------------------------------------------------------------------------------ operators

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover: the first coordinates from A, the others from B.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        a, b = A.reshape(len(A), -1), B.reshape(len(B), -1)
        cut = coins.integers(1, max(self.size, 2), size=(len(a), 1))
        return np.where(np.arange(self.size) < cut, a, b).reshape(A.shape)

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Uniform crossover: each coordinate from A or B with equal probability.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        return np.where(coins.random(A.shape) < 0.5, A, B)

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of A and B: from B what `child` has from A, and vice versa.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        child : array of shape (m, ...)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The other children.
        """
        return np.where(child == A, B, A)

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Move one coordinate of each candidate up or down by a step.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        flat = P.reshape(len(P), -1).copy()
        where = coins.integers(self.size, size=len(P))
        signs = coins.choice((-1.0, 1.0), size=len(P))
        flat[np.arange(len(P)), where] += signs * step * np.ravel(self.width)[where]
        return self.snap(flat.reshape(P.shape))

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Add normal noise, with a step as its deviation, with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Size of a step, as a fraction of a coordinate's width.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        result = np.array(P, dtype=np.float64, order="C")
        hit = np.flatnonzero(coins.random(P.shape) < rate)
        spread = step * self._flat[2][hit % self.size]
        result.reshape(-1)[hit] += coins.normal(0.0, 1.0, spread.shape) * spread
        return self._snapped(result)


@dataclass(frozen=True)
class Subsets:
    """Sets of k different indices below n, as rows of integers in no particular order.

    Parameters
    ----------
    n : int
        The number of indices to choose from.
    k : int
        The size of a set.

    See Also
    --------
    search : Searches a space.
    FacilityObjective : Scores sets of facilities.

    Examples
    --------
    >>> from privfit import Subsets
    >>> Subsets(200, 5)  # five of 200 public places, for `search`
    Subsets(n=200, k=5)
    """

    has_means: ClassVar[bool] = False

    n: int
    k: int

    def __post_init__(self) -> None:
        _check_size("n", self.n)
        _check_size("k", self.k)
        if self.k > self.n:
            raise DeclarationError(f"k ({self.k}) must be at most n ({self.n}); pass a smaller k")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return (self.k,)

    @property
    def size(self) -> int:
        """The number of genes."""
        return self.k

    @property
    def middle(self) -> Integers:
        """The start of a walk: the first k indices."""
        return np.arange(self.k)

    @property
    def extremes(self) -> Integers:
        """(2, k): the first and the last indices."""
        return np.stack([self.middle, self.middle + self.n - self.k])

    def on_grid_of(self, objective: Any) -> Subsets:
        """The space itself: indices need no grid.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Subsets
            The space to search.
        """
        return self

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw sets uniformly.

        Parameters
        ----------
        m : int
            Number of draws.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        return np.stack([coins.choice(self.n, self.k, replace=False) for _ in range(m)])

    def contains(self, P: Array) -> Array:
        """Which rows are sets of k different indices below n.

        Parameters
        ----------
        P : array of shape (m, k)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that are.
        """
        if P.dtype.kind not in "iu":
            return np.zeros(len(P), dtype=bool)
        ordered = np.sort(P, axis=1)
        below = (0 <= ordered[:, 0]) & (ordered[:, -1] < self.n)
        return np.asarray(below & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Integers]:
        """All swaps: the positions that leave and the indices that come.

        If there is nothing to swap with, staying is the only move.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Has no effect here.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        if self.k == self.n:
            return np.zeros(1, dtype=np.int64), np.array(w[:1])
        outside = np.setdiff1d(np.arange(self.n), w)
        return np.repeat(np.arange(self.k), len(outside)), np.tile(outside, self.k)

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Integers]:
        """Draw swaps uniformly.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        where = coins.integers(self.k, size=m)
        return where, self._newcomers(np.tile(w, (m, 1)), where, coins)

    def _newcomers(self, P: Array, where: Integers, coins: Coins) -> Integers:
        """A uniformly drawn index outside each set; the present one if there is none."""
        if self.k == self.n:
            return P[np.arange(len(P)), where]
        rank = coins.integers(self.n - self.k, size=(len(P), 1))
        # The rank-th index outside: every member at or below it pushes it up by one.
        below = np.sort(P, axis=1) - np.arange(self.k) <= rank
        return np.asarray(rank[:, 0] + below.sum(axis=1))

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The sets after each swap.

        Parameters
        ----------
        w : array
            The candidate.
        where : array of int
            The coordinate or position that each move changes.
        what : array
            The new value, or the step, of each move.

        Returns
        -------
        array of shape (m, ...)
            The candidates after each move.
        """
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(w, (len(where), 1))
        P[np.arange(len(where)), where] = what
        return P

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Draw k members from the union of two sets.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        both = np.concatenate([A, B], axis=1)
        keys = coins.random(both.shape)
        keys[:, self.k :][(B[:, :, None] == A[:, None, :]).any(axis=2)] = 2.0  # once each
        order = np.argsort(keys, axis=1)[:, : self.k]
        return np.take_along_axis(both, order, axis=1)

    splice = mix

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of two sets: another draw from their union.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        child : array of shape (m, ...)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The other children.
        """
        return self.mix(A, B, coins)

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Swap one member of each set for a new index.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        where = coins.integers(self.k, size=len(P))
        result = P.copy()
        result[np.arange(len(P)), where] = self._newcomers(P, where, coins)
        return result

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Swap each member for a new index with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        result = P.copy()
        for position in range(self.k):
            hit = np.flatnonzero(coins.random(len(P)) < rate)
            if len(hit):
                where = np.full(len(hit), position)
                result[hit, position] = self._newcomers(result[hit], where, coins)
        return result


@dataclass(frozen=True)
class Bits:
    """Strings of n bits, as rows of booleans.

    Parameters
    ----------
    n : int
        The number of bits.

    See Also
    --------
    search : Searches a space.
    Subsets : Sets of a given size.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits, RecordObjective, search
    >>> taste = np.random.default_rng(0).random((2000, 8)) < [0.9, 0.1] * 4  # private
    >>> def agreement(taste, P):
    ...     return (taste[:, None] == P).mean(axis=2)
    >>> found = search(RecordObjective(taste, agreement, 0.0, 1.0), Bits(8), 1.0)
    >>> found.answer.shape
    (8,)
    """

    has_means: ClassVar[bool] = False

    n: int

    def __post_init__(self) -> None:
        _check_size("n", self.n)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""
        return (self.n,)

    @property
    def size(self) -> int:
        """The number of genes."""
        return self.n

    @property
    def middle(self) -> Array:
        """The start of a walk: all zeros."""
        return np.zeros(self.n, dtype=bool)

    @property
    def extremes(self) -> Array:
        """(2, n): all zeros and all ones."""
        return np.stack([self.middle, ~self.middle])

    def on_grid_of(self, objective: Any) -> Bits:
        """The space itself: bits need no grid.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Bits
            The space to search.
        """
        return self

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw strings uniformly.

        Parameters
        ----------
        m : int
            Number of draws.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The candidates.
        """
        return coins.random((m, self.n)) < 0.5

    def contains(self, P: Array) -> Array:
        """Which candidates are arrays of booleans: all or none.

        Parameters
        ----------
        P : array of shape (m, n)
            The candidates.

        Returns
        -------
        array of bool of shape (m,)
            True for those that are.
        """
        return np.full(len(P), P.dtype.kind == "b")

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Array]:
        """All flips of a single bit.

        Parameters
        ----------
        w : array
            The candidate.
        step : float
            Has no effect here.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        return np.arange(self.n), ~w

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw flips uniformly.

        Parameters
        ----------
        w : array
            The candidate.
        m : int
            Number of draws.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays
            Where each move changes the candidate, and to what.
        """
        where = coins.integers(self.n, size=m)
        return where, ~w[where]

    def moved(self, w: Array, where: ArrayLike, what: ArrayLike) -> Array:
        """The strings after each flip.

        Parameters
        ----------
        w : array
            The candidate.
        where : array of int
            The coordinate or position that each move changes.
        what : array
            The new value, or the step, of each move.

        Returns
        -------
        array of shape (m, ...)
            The candidates after each move.
        """
        where, what = np.atleast_1d(where), np.atleast_1d(what)
        P = np.tile(w, (len(where), 1))
        P[np.arange(len(where)), where] = what
        return P

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        cut = coins.integers(1, max(self.n, 2), size=(len(A), 1))
        return np.where(np.arange(self.n) < cut, A, B)

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Uniform crossover.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The children.
        """
        return np.where(coins.random(A.shape) < 0.5, A, B)

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of A and B.

        Parameters
        ----------
        A, B : array of shape (m, ...)
            Two populations, paired row by row.
        child : array of shape (m, ...)
            The first child of each pair.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The other children.
        """
        return np.where(child == A, B, A)

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Flip one bit of each string.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        result = P.copy()
        result[np.arange(len(P)), coins.integers(self.n, size=len(P))] ^= True
        return result

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Flip each bit with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        step : float
            Has no effect here.
        rate : float
            Probability that a coordinate changes.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        return P ^ (coins.random(P.shape) < rate)


def side_by_side(first: Array, second: Array) -> Array:
    """(2 m, ...): two populations (m, ...) as one, pair by pair."""
    return np.stack([first, second], axis=1).reshape(-1, *first.shape[1:])
