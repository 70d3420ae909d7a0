"""What a bought schema says of its purchase: a price and the columns, for reports and auditors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from privfit.base.errors import DeclarationError
from privfit.base.validation import is_finite

__all__ = ["Purchase"]

FIELDS = ("epsilon", "delta", "adjacency", "release", "columns")


@dataclass(frozen=True)
class Purchase:
    """The release that bought columns of a schema: its budget, relation and identifier.

    `columns` are the names of the columns that it bought; all others were declared. `release` is
    the beginning of the SHA-256 of the release's JSON, which tells two purchases apart.
    """

    epsilon: float
    delta: float
    adjacency: str
    release: str
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for TOML and JSON."""
        return {**{name: getattr(self, name) for name in FIELDS}, "columns": list(self.columns)}

    @classmethod
    def from_dict(cls, said: Any, names: Iterable[str]) -> Purchase:
        """What `to_dict` wrote; without a list of columns, all `names` were bought."""
        known = list(names)
        if not isinstance(said, Mapping) or said.keys() - set(FIELDS):
            raise DeclarationError(
                f"bought must have the fields {', '.join(FIELDS)} and no others; pass it as "
                "learn_schema wrote it"
            )
        values = {"release": "", "columns": known, **said}
        columns, price = values["columns"], [values.get("epsilon"), values.get("delta")]
        texts = [values.get("adjacency"), values["release"]]
        texts += columns if isinstance(columns, list) else [None]
        if not all(map(is_finite, price)) or not all(isinstance(one, str) for one in texts):
            raise DeclarationError(
                "bought must have numbers as epsilon and delta, and texts as adjacency, release "
                "and columns; pass it as learn_schema wrote it"
            )
        listed = tuple(name for name in columns if name in known)
        first = float(values["epsilon"]), float(values["delta"])
        return cls(*first, values["adjacency"], values["release"], listed)

    def of(self, names: Iterable[str]) -> Purchase | None:
        """The same purchase for a schema of these columns; None if it bought none of them."""
        known = set(names)
        kept = tuple(name for name in self.columns if name in known)
        return replace(self, columns=kept) if kept else None
