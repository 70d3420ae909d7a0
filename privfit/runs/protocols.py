"""What a search needs from an objective, from a space of candidates, and from a view of moves.

privfit's own are in `privfit.objectives` and `privfit.runs.spaces`; any object with these methods
works.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from privfit.base.typing import Array, Coins, Integers
from privfit.privacy.neighbours import Neighbours

__all__ = ["Objective", "Space", "View"]

Kind = TypeVar("Kind", bound="Space")


class Objective(Protocol):
    """Exact scores of candidates over private records, and how much one record can change them.

    This is a protocol: any object with these methods works.

    See Also
    --------
    privfit.RecordObjective : A user-defined score.
    privfit.LinearObjective, privfit.CentersObjective, privfit.FacilityObjective : Fast scores.

    Notes
    -----
    Scores are private: only a mechanism may release them.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import RecordObjective
    >>> from privfit.runs import Objective
    >>> def score(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> objective: Objective = RecordObjective(np.zeros(9), score, low=-1.0, high=0.0)
    >>> objective.range(np.array([[0.0], [1.0]]), "replace") > 0
    True
    """

    @property
    def n_records(self) -> int:
        """The number of records; public only if neighbours replace a record."""

    def scores(self, P: Array) -> Integers:
        """The sum over records of each candidate's score.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """

    def prior(self, P: Array) -> Integers:
        """The part of the objective that does not depend on the records.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            What to add to the scores. It is public.
        """

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How much the difference of two candidates' scores can change between neighbours.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        int
            A bound over all pairs of candidates. It is public.
        """

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The same as `range`, computed from the sensitivity of each candidate by itself.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        neighbours : Neighbours
            The neighbour relation.

        Returns
        -------
        int
            A bound, at least as large as `range` and faster to compute. It is public.
        """


class Space(Protocol):
    """What a candidate may be, and how to make new candidates from old ones without any data.

    This is a protocol: any object with these methods works.

    See Also
    --------
    privfit.Reals, privfit.Subsets, privfit.Bits : The spaces of privfit.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Bits
    >>> from privfit.runs import Space
    >>> space: Space = Bits(4)
    >>> space.sample(3, np.random.default_rng(0)).shape
    (3, 4)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a candidate."""

    @property
    def size(self) -> int:
        """The number of coordinates of a candidate."""

    @property
    def has_means(self) -> bool:
        """Whether the mean of candidates is a candidate."""

    @property
    def middle(self) -> Array:
        """The start of a walk."""

    @property
    def extremes(self) -> Array:
        """(m, ...): outermost candidates; bounds that hold for these hold for all."""

    def on_grid_of(self: Kind, objective: object) -> Kind:
        """This space on the grid of an objective.

        Parameters
        ----------
        objective : Objective
            The objective whose candidates are searched.

        Returns
        -------
        Space
            The space to search.
        """

    def sample(self, m: int, coins: Coins) -> Array:
        """Draw candidates uniformly.

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

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Array]:
        """All moves away from a candidate.

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

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """Draw moves away from a candidate uniformly.

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

    def moved(self, w: Array, where: Array, what: Array) -> Array:
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

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover of two populations.

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

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Uniform crossover of two populations.

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

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of each pair.

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

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Mutate one coordinate of each candidate.

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

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Mutate each coordinate with probability `rate`.

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


class View(Protocol):
    """A candidate, and the scores of moves away from it."""

    @property
    def w(self) -> Array:
        """The candidate that moves start from, as the space represents it."""

    @property
    def model(self) -> Array:
        """The same as a candidate of the objective."""

    def scores(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the scores after each move."""

    def prior(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the part that does not depend on records, after each move."""

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""

    def step(self, where: int, what: Any) -> None:
        """Move."""
