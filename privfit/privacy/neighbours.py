"""What a guarantee hides: the relation between neighbouring data sets, and the privacy unit.

Two data sets are neighbours if one person's rows are replaced by others ('replace'), or are added
or removed ('add_remove'). A replacement is a removal followed by an addition, so a guarantee for
one step of 'add_remove' holds for 'replace' at the cost of two steps. There is no way from
'replace' to 'add_remove': a release under 'replace' may publish the number of records.

Users write a relation as one of these two words. `Neighbours.of` makes a value of it, once, where
it enters; every range, sensitivity and rule takes that value and asks it what it needs to know:

`changes`
    In how many records do neighbours differ? A sum moves by so many contributions.
`span`
    How far does a sum move whose contributions lie in [low, high]?
`replaces`
    Does another record come where one leaves? For bounds that are derived twice, once for pairs of
    records and once for a single one.
`size_is_public`
    May the number of records be used as it is?

All answers are for persons who own one row. Others are refused in one place, `check_one_row`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Array, Floats
from privfit.base.validation import is_whole

__all__ = ["ADD_REMOVE", "ADJACENCIES", "REPLACE", "Adjacency", "Neighbours"]

ADJACENCIES = ("replace", "add_remove")

Adjacency: TypeAlias = "Neighbours | str"  # what a caller may write

N = TypeVar("N", int, float, Floats)


@dataclass(frozen=True)
class Neighbours:
    """A neighbour relation and a privacy unit.

    Parameters
    ----------
    relation : {'replace', 'add_remove'}
        Whether a person's rows are replaced, or added or removed.
    rows : int, default=1
        How many rows one person may own. More than 1 can be declared and is not supported yet.

    See Also
    --------
    Ledger : Counts under one relation.

    Examples
    --------
    >>> from privfit import Neighbours
    >>> Neighbours("add_remove").steps_to(Neighbours("replace"))
    2
    >>> print(Neighbours("replace").steps_to(Neighbours("add_remove")))
    None
    >>> Neighbours("replace").span(-1.0, 3.0), Neighbours("add_remove").span(-1.0, 3.0)
    (4.0, 3.0)
    """

    relation: str
    rows: int = 1

    def __post_init__(self) -> None:
        _check_relation(self.relation, "relation")
        check_rows(self.rows, "rows")

    def __eq__(self, other: object) -> bool:
        """Whether both are the same; an error for a text.

        A text is never equal. An objective of your own that compares its argument with 'replace'
        would take every relation for the other one, and halve its noise.
        """
        if isinstance(other, str):
            raise DeclarationTypeError(
                f"{self!r} must not be compared with a text ({other!r}); ask for its `changes`, "
                "`span` or `relation`"
            )
        if not isinstance(other, Neighbours):
            return NotImplemented
        return (self.relation, self.rows) == (other.relation, other.rows)

    def __hash__(self) -> int:
        """That of the word, so that looking it up among words compares, and is an error too."""
        return hash(self.relation)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        """The word for numpy, by which scikit-learn's displays compare parameters with defaults."""
        return np.array(self.relation)

    @classmethod
    def of(cls, adjacency: object, name: str = "adjacency") -> Neighbours:
        """The value of what a caller wrote.

        Parameters
        ----------
        adjacency : {'replace', 'add_remove'} or Neighbours
            What was written.
        name : str, default='adjacency'
            The name of the parameter, for errors.

        Returns
        -------
        Neighbours
            The value.
        """
        if isinstance(adjacency, Neighbours):
            adjacency.check_one_row()
            return adjacency
        return cls(_check_relation(adjacency, name))

    def check_one_row(
        self, name: str = "rows", where: str = "", remedy: str = "pass Neighbours(relation)"
    ) -> None:
        """Refuse persons with several rows.

        Parameters
        ----------
        name : str, default='rows'
            The name of the parameter, for the error.
        where : str, default=''
            Where it must be 1.
        remedy : str
            What to pass instead.
        """
        if self.rows > 1:
            raise DeclarationError(
                f"{name} ({self.rows}) must be 1{where}, since fits bound what a row can change "
                f"and not what a person can; {remedy}"
            )

    @property
    def replaces(self) -> bool:
        """Whether another record comes where one leaves."""
        self.check_one_row()
        return self.relation == "replace"

    @property
    def size_is_public(self) -> bool:
        """Whether neighbours have equally many records, so that their number hides nobody."""
        return self.replaces

    @property
    def changes(self) -> int:
        """How many records neighbours differ in: 2 if one leaves and another comes, else 1.

        A sum over records to which each adds a vector of norm s at most moves by ``changes * s`` at
        most. The same holds for the difference of two scores, which one record moves by s at most.
        """
        return 2 if self.replaces else 1

    @property
    def hidden(self) -> str:
        """What a guarantee is for, in a few words."""
        what = "the contents of one row" if self.replaces else "the presence of one record"
        return f"{what} ({self.relation})"

    def span(self, low: N, high: N) -> N:
        """How far a sum over records moves to which each adds a number from `low` to `high`.

        Parameters
        ----------
        low, high : number or array
            The least and the largest number.

        Returns
        -------
        number or array
            A record that is added or removed moves the sum by its own number, max(high, -low) at
            most. If one leaves and another comes, the sum moves by the difference of two numbers,
            high - low at most.
        """
        if self.replaces:
            return high - low
        if isinstance(high, np.ndarray):
            return np.maximum(high, -low)
        return max(high, -low)

    def steps_to(self, other: Neighbours) -> int | None:
        """How many steps of this relation lead to every neighbour of the other.

        Parameters
        ----------
        other : Neighbours
            The other relation.

        Returns
        -------
        int or None
            None if no number of steps does, or if the privacy units differ.
        """
        if self.rows != other.rows:
            return None
        if self.relation == other.relation:
            return 1
        return 2 if self.relation == "add_remove" else None


def relation_of(neighbours: Neighbours | None) -> str | None:
    """The word that is shown and written to files; None where the relation is not known."""
    return None if neighbours is None else neighbours.relation


def _check_relation(relation: object, name: str) -> str:
    """Refuse anything but a neighbour relation."""
    if not isinstance(relation, str) or relation not in ADJACENCIES:
        raise DeclarationError(
            f"{name} ({relation!r}) must be 'replace' or 'add_remove'; pass one of them"
        )
    return relation


def check_rows(rows: object, name: str) -> int:
    """Refuse anything but a number of rows."""
    if not is_whole(rows) or rows < 1:
        raise DeclarationError(f"{name} ({rows!r}) must be a positive whole number; pass {name}=1")
    return int(rows)


REPLACE = Neighbours("replace")
ADD_REMOVE = Neighbours("add_remove")
