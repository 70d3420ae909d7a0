"""The public number of records: declared, known if neighbours replace a record, or unknown."""

from __future__ import annotations

from privfit.base.errors import DeclarationError
from privfit.base.typing import Counted
from privfit.base.validation import is_whole
from privfit.privacy.neighbours import Neighbours

__all__ = ["PRIVATE", "known_size", "public_size"]

PRIVATE = ", where the number of records is private"


def public_size(records: Counted, neighbours: Neighbours, n_public: int | None) -> int | None:
    """The public number of records: as declared, or the actual one if a record is replaced."""
    if n_public is None:
        return int(records.n_records) if neighbours.size_is_public else None
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
