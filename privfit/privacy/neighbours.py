"""What a guarantee hides: the relation between neighbouring data sets, and the privacy unit.

Two data sets are neighbours if one person's rows are replaced by others ('replace'), or are added
or removed ('add_remove'). A replacement is a removal followed by an addition, so a guarantee for
one step of 'add_remove' holds for 'replace' at the cost of two steps. There is no way from
'replace' to 'add_remove': a release under 'replace' may publish the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_whole

__all__ = ["ADJACENCIES", "Neighbours", "check_adjacency"]

ADJACENCIES = ("replace", "add_remove")


@dataclass(frozen=True)
class Neighbours:
    """A neighbour relation and a privacy unit.

    Parameters
    ----------
    relation : {'replace', 'add_remove'}
        Whether a person's rows are replaced, or added or removed.
    rows : int, default=1
        How many rows one person may own.

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
    """

    relation: str
    rows: int = 1

    def __post_init__(self) -> None:
        check_adjacency(self.relation, "relation")
        check_rows(self.rows, "rows")

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


def check_adjacency(adjacency: Any, name: str = "adjacency") -> None:
    """Refuse anything but a neighbour relation."""
    if not isinstance(adjacency, str) or adjacency not in ADJACENCIES:
        raise DeclarationError(
            f"{name} ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )


def check_rows(rows: Any, name: str) -> None:
    """Refuse anything but a number of rows."""
    if not is_whole(rows) or rows < 1:
        raise DeclarationError(f"{name} ({rows!r}) must be a positive whole number; pass {name}=1")
