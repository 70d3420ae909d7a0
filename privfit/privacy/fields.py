"""Releases, charges and ledgers as JSON has them: the names and the types of their fields.

These are what a file should hold. What it does hold is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

__all__ = [
    "NAMES",
    "ChargeFields",
    "EventFields",
    "JournalFields",
    "LedgerFields",
    "ReleaseFields",
]


class EventFields(TypedDict):
    """An event."""

    kind: str
    parameter: float
    count: int
    delta: float


class ReleaseFields(TypedDict, total=False):
    """A release; `filter` is left out where there was none."""

    name: str
    epsilon: float
    delta: float
    adjacency: str
    events: Sequence[EventFields]
    domain: str
    settings: Mapping[str, object]
    parameters: Mapping[str, object]
    seeded: bool
    filter: str


class ChargeFields(TypedDict, total=False):
    """A charge; the first version wrote no relation. `charged` is for the reader alone.

    From `time` on, the fields of a reservation: those of budget files since the third version.
    """

    group: str
    name: str
    epsilon: float
    delta: float
    adjacency: str | None
    charged: Mapping[str, float]
    time: str
    run: str
    part: int
    user: str
    host: str
    version: str
    model: str
    state: str


class JournalFields(TypedDict, total=False):
    """How far the journal of a run has got."""

    run: str
    lines: int
    sum: str
    last: str


class LedgerFields(TypedDict, total=False):
    """A ledger; `id`, `renewal` and `journals` are those of a budget file."""

    privfit: int
    id: str
    epsilon: float
    delta: float
    adjacency: str | None
    max_rows: int
    renewal: str | None
    entries: Sequence[ChargeFields]
    journals: Sequence[JournalFields]
    releases: Sequence[ReleaseFields]


# The names of all fields, which messages may show.
NAMES = frozenset(
    name
    for kind in (EventFields, ReleaseFields, ChargeFields, JournalFields, LedgerFields)
    for name in kind.__annotations__
)
