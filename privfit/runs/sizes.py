"""The public number of records: declared, known if neighbours replace a record, or unknown."""

from __future__ import annotations

from typing import Protocol

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_whole
from privfit.privacy.ledger import ADJACENCIES

__all__ = ["PRIVATE", "Counted", "known_size", "public_size"]

PRIVATE = ", where the number of records is private"


class Counted(Protocol):
    """An object with a number of records, which is read only if it is public."""

    @property
    def n_records(self) -> int:
        """The number of records."""


def public_size(records: Counted, adjacency: str, n_public: int | None) -> int | None:
    """The public number of records: as declared, or the actual one under 'replace'."""
    if adjacency not in ADJACENCIES:
        raise DeclarationError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )
    if n_public is None:
        return int(records.n_records) if adjacency == "replace" else None
    if not is_whole(n_public) or n_public < 1:
        raise DeclarationError(
            f"n_public ({n_public!r}) must be a positive whole number; pass a public estimate of "
            "the number of records"
        )
    return int(n_public)


def known_size(size: int | None, where: str = PRIVATE, remedy: str = "a public estimate") -> int:
    """The public number of records, which is required; the error says where, and what to pass."""
    if size is None:
        raise DeclarationError(
            f"n_public must be given under adjacency='add_remove'{where}; pass {remedy}"
        )
    return size
