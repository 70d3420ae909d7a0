"""What spaces share: checks of sizes, the crossover of coordinates, and pairs of populations."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Coins
from privfit.base.validation import is_whole
from privfit.runs.protocols import Space

__all__ = ["Genes", "Gridless", "check_size", "of_shape", "side_by_side"]

Own = TypeVar("Own")


def check_size(name: str, value: Any) -> None:
    """Refuse what is not a positive whole number."""
    if not is_whole(value) or value < 1:
        raise DeclarationError(
            f"{name} ({value!r}) must be a positive whole number; pass {name}=10"
        )


def of_shape(P: ArrayLike, shape: tuple[int, ...], kinds: str) -> Array | None:
    """Candidates (m, ...) as an array; None if they have another shape or kind of numbers."""
    P = np.asarray(P)
    return P if P.shape[1:] == shape and P.ndim > 0 and P.dtype.kind in kinds else None


def side_by_side(first: Array, second: Array) -> Array:
    """(2 m, ...): two populations (m, ...) as one, pair by pair."""
    return np.stack([first, second], axis=1).reshape(-1, *first.shape[1:])


class Gridless:
    """A space whose candidates need no grid."""

    def on_grid_of(self: Own, objective: Any) -> Own:
        """The space itself: its candidates need no grid.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Space
            The space to search.
        """
        return self


class Genes(Space):
    """A space in which every coordinate may have any of its values, whatever the others have."""

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
        a, b = A.reshape(len(A), self.size), B.reshape(len(B), self.size)
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

    def redraw(self, P: Array, rate: float, coins: Coins) -> Array:
        """Draw each coordinate anew, uniformly, with probability `rate`.

        Parameters
        ----------
        P : array of shape (m, ...)
            A population.
        rate : float
            Probability that a coordinate is drawn anew.
        coins : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (m, ...)
            The mutants.
        """
        return np.where(coins.random(P.shape) < rate, self.sample(len(P), coins), P)
