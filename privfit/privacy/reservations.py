"""What a budget file knows of a reservation besides its cost: when, by whom, for what, how it went.

All of it is public before records are read, except the state. The time is that of the reservation,
to the minute; `LedgerFile.run` takes it earlier, before any record is read. Nothing says when a run
ended, since that may depend on records. The state says only whether there is a release:

    reserved       none yet: the run goes on, or was killed
    finished       its release was made
    interrupted    it ended by an error or an interrupt, with a release of what was drawn

**Renewal** is a declared rule: a file that renews has its whole budget again in every period, a
day, an ISO week, a month or a year of UTC. The guarantee of the file then is one per period. What
several periods released about the same person adds up to the budget times the number of periods.
Times in a file never run backwards, so that a clock that is set back opens no earlier period.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from typing import NamedTuple

from privfit.base import watching
from privfit.base.errors import DeclarationError
from privfit.base.version import __version__

__all__ = ["RENEWALS", "Begun", "Reservation", "check_renewal", "now", "period_of", "who"]

RENEWALS = ("day", "week", "month", "year")
RESERVED, FINISHED, INTERRUPTED = STATES = ("reserved", "finished", "interrupted")
MINUTE = "%Y-%m-%dT%H:%MZ"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ")


class Begun(NamedTuple):
    """When a run began, and the model file that its result goes to ('' if none was named)."""

    time: str
    model: str = ""


@dataclass(frozen=True)
class Reservation:
    """Who reserved a charge, when and for what; `part` counts the grants of one run."""

    time: str
    run: str
    part: int
    user: str
    host: str
    version: str
    model: str
    state: str

    @classmethod
    def made(cls, begun: Begun, run: str, part: int) -> Reservation:
        """A reservation by this process."""
        user, host = who()
        return cls(begun.time, run, part, user, host, __version__, begun.model, RESERVED)

    @classmethod
    def of(cls, entry: Mapping[str, object]) -> Reservation | None:
        """The reservation among the fields of an entry; None for one of an earlier version.

        Raises
        ------
        KeyError
            If some of its fields are missing or wrong.
        """
        said = {one.name: entry[one.name] for one in fields(cls) if one.name in entry}
        if not said:
            return None
        texts = (value for name, value in said.items() if name != "part")
        if not all(isinstance(text, str) for text in texts) or type(entry["part"]) is not int:
            raise KeyError
        found = cls(**said)  # type: ignore[arg-type]  # a TypeError if one is missing
        if not found.run or found.state not in STATES or not _is_time(found.time):
            raise KeyError
        return found

    def fields(self) -> dict[str, object]:
        """Its fields, for JSON."""
        return asdict(self)


def now() -> str:
    """The time in UTC, to the minute; of a fit, when it began."""
    return datetime.fromtimestamp(watching.now(), timezone.utc).strftime(MINUTE)


def _is_time(text: str) -> bool:
    try:
        return bool(TIME.fullmatch(text) and datetime.strptime(text, MINUTE))
    except ValueError:
        return False


def who() -> tuple[str, str]:
    """The user and the host, as the system names them; neither is proved."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may have users without a name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return user, socket.gethostname()


def period_of(time: str, renewal: str | None) -> str:
    """The period that a time belongs to; '' for a file that does not renew."""
    if renewal is None:
        return ""
    if renewal == "week":
        year, week, _ = datetime.strptime(time, MINUTE).isocalendar()
        return f"{year:04}-W{week:02}"
    return time[: {"day": 10, "month": 7, "year": 4}[renewal]]


def check_renewal(renewal: object) -> None:
    """Refuse what is no period."""
    if renewal is not None and renewal not in RENEWALS:
        raise DeclarationError(
            f"renewal ({renewal!r}) must be one of {', '.join(RENEWALS)}, or None for a budget "
            "that is spent once; pass one of them"
        )
