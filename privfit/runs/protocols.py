"""What a search asks of an objective, of a space of candidates, and of a view of moves.

Ours are in `privfit.objectives` and `privfit.runs.spaces`; anything that has these methods will do.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from privfit.base.typing import Array, Coins, Integers
from privfit.privacy.neighbours import Neighbours

__all__ = ["Objective", "Space", "View"]

Kind = TypeVar("Kind", bound="Space")


class Objective(Protocol):
    """Exact scores of candidates over private records, and what one record can change."""

    @property
    def n_records(self) -> int:
        """How many records there are; public only where records are replaced."""

    def scores(self, P: Array) -> Integers:
        """int64 (m,): a sum over records for each candidate of P (m, ...)."""

    def prior(self, P: Array) -> Integers:
        """int64 (m,): the part of the objective that depends on no record."""

    def range(self, P: Array, neighbours: Neighbours, /) -> int:
        """How far the scores of two of these candidates can drift apart between neighbours."""

    def spread(self, P: Array, neighbours: Neighbours, /) -> int:
        """The same from the sensitivity of each candidate by itself."""


class Space(Protocol):
    """What a candidate may be, and how new ones come from old ones without any data."""

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
        """Where a walk starts."""

    @property
    def extremes(self) -> Array:
        """(m, ...): outermost candidates; what holds for these holds for all."""

    def on_grid_of(self: Kind, objective: object) -> Kind:
        """This space on the grid that an objective asks for."""

    def sample(self, m: int, coins: Coins) -> Array:
        """(m, ...): candidates drawn uniformly."""

    def all_moves(self, w: Array, step: float) -> tuple[Integers, Array]:
        """All moves away from a candidate: where, and what."""

    def some_moves(self, w: Array, m: int, step: float, coins: Coins) -> tuple[Integers, Array]:
        """m moves away from a candidate, drawn uniformly."""

    def moved(self, w: Array, where: Array, what: Array) -> Array:
        """(m, ...): the candidates after each move."""

    def splice(self, A: Array, B: Array, coins: Coins) -> Array:
        """One-point crossover of two populations."""

    def mix(self, A: Array, B: Array, coins: Coins) -> Array:
        """Uniform crossover of two populations."""

    def sibling(self, A: Array, B: Array, child: Array, coins: Coins) -> Array:
        """The other child of each pair."""

    def nudge(self, P: Array, step: float, coins: Coins) -> Array:
        """Mutate one coordinate of each candidate."""

    def jitter(self, P: Array, step: float, rate: float, coins: Coins) -> Array:
        """Mutate each coordinate at this rate."""


class View(Protocol):
    """A candidate, and the scores of moves away from it."""

    @property
    def w(self) -> Array:
        """Where moves start from, as the space has it."""

    @property
    def model(self) -> Array:
        """The same as a candidate of the objective."""

    def scores(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the scores after each move."""

    def prior(self, where: Integers, what: Array) -> Integers:
        """int64 (m,): the part that depends on no record, after each move."""

    def range(self, where: Integers, what: Array, neighbours: Neighbours, /) -> int:
        """The range of these scores between neighbours."""

    def step(self, where: int, what: Any) -> None:
        """Move."""
