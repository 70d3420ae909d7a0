"""What a bought schema says of its purchase: a price and the columns, for reports and auditors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from privfit.base.errors import DeclarationError

__all__ = ["Purchase"]


@dataclass(frozen=True)
class Purchase:
    """The release that bought columns of a schema: its budget, relation and identifier.

    `columns` are the names of the columns that it bought; all others were declared. `release` is
    the beginning of the SHA-256 of the release's JSON, which tells two purchases apart. A schema
    carries it as a mark of plain values, which mean nothing to it.
    """

    epsilon: float
    delta: float
    adjacency: str
    columns: tuple[str, ...]
    release: str = ""

    def to_mark(self) -> dict[str, object]:
        """Plain values, which a schema carries to TOML and JSON."""
        return {**asdict(self), "columns": list(self.columns)}

    @classmethod
    def of(cls, mark: Mapping[str, object] | None) -> Purchase | None:
        """What a schema's mark says; None if nothing was bought."""
        if mark is None:
            return None
        values = {"release": "", **mark}
        epsilon, delta, adjacency, columns, release = (values.get(one.name) for one in fields(cls))
        if (
            isinstance(epsilon, int | float)
            and isinstance(delta, int | float)
            and isinstance(adjacency, str)
            and isinstance(columns, list)
            and isinstance(release, str)
            and len(values) == len(fields(cls))
        ):
            return cls(float(epsilon), float(delta), adjacency, tuple(columns), release)
        raise DeclarationError(
            "bought must have numbers as epsilon and delta, texts as adjacency and release, and "
            "columns; pass it as learn_schema wrote it, or leave it out"
        )
