"""A ledger whose budget lives in a file, shared by processes and kept over kills.

    ledger = open_ledger("budget.json", epsilon=1.0, delta=1e-6)

Whoever opens the file shares its budget. To reserve is to lock the file, read it, check the exact
sums, write it anew with the charge, and only then hand out the grant: nothing is drawn before its
charge is on disk. So no order of events across processes overspends, and a run that is killed at
any moment leaves a whole file that counts all that was granted; a charge whose grant never came
into use stays charged.

The file is replaced as a whole at each change, and the lock is a file beside it, which stays. The
operating system frees the lock of a process that dies. `docs/ledger.md` has the format, and what a
file cannot protect from: above all, an old copy that is put back between two runs.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privfit.files import remove_leftovers, write_atomically
from privfit.ledger import (
    Budget,
    BudgetError,
    Entry,
    Ledger,
    Release,
    fields_of,
    ledger_json,
    ledger_of,
)

__all__ = ["BudgetFileWarning", "LedgerFile", "open_ledger"]

WAIT = 60.0  # seconds for the lock: a change takes milliseconds, hundreds of runs may queue
POLL = 0.005  # seconds between two tries for it


class BudgetFileWarning(RuntimeWarning):
    """A budget file does not yet tell of a release that was charged and made."""


def open_ledger(
    path: str | os.PathLike[str], epsilon: float | None = None, delta: float | None = None
) -> Ledger:
    """The ledger in a budget file, to pass as `ledger=` like any other.

    Parameters
    ----------
    path : path
        The budget file. Its lock is kept beside it, so the folder must be one you may write in.
    epsilon, delta : float, optional
        The budget. They start a file where there is none (delta 0 if left out). Of a file that is
        there they may be left out: what it says rules, and another number is refused.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privfit import open_ledger
    >>> path = Path(tempfile.mkdtemp()) / "budget.json"
    >>> grant = open_ledger(path, epsilon=1.0).reserve(0.75, name="morning")
    >>> open_ledger(path).remaining  # here, in another process, or after a crash
    Budget(epsilon=0.25, delta=0.0)
    """
    place = _place(path)
    try:
        ledger = LedgerFile(place)
    except FileNotFoundError:
        if epsilon is None:
            raise FileNotFoundError(
                f"path ({path}) must be a budget file, and there is none; pass epsilon to start one"
            ) from None
        _create(place, Budget(epsilon, 0.0 if delta is None else delta))
        ledger = LedgerFile(place)
    for name, wanted in (("epsilon", epsilon), ("delta", delta)):
        kept = getattr(ledger.budget, name)
        if wanted is not None and wanted != kept:
            raise ValueError(
                f"{name} ({wanted!r}) must be that of the budget file, {kept!r}; leave it out, or "
                "start another file"
            )
    return ledger


class LedgerFile(Ledger):
    """A ledger in a file; `open_ledger` makes it.

    What it shows (`entries`, `spent`, `remaining`, `releases`) is what the file says now, whoever
    spent it. `events` are those of this process. A pickle of it is a closed copy, without a file.
    """

    def __init__(self, path: Path) -> None:
        found, self._identity = _read(path)
        super().__init__(found.budget.epsilon, found.budget.delta)
        self._file = path
        self._entries, self._releases = list(found.entries), list(found.releases)
        self._unwritten: list[Release] = []

    def __repr__(self) -> str:
        try:
            state = f"spent {self.spent}"
        except (OSError, ValueError, BudgetError):
            state = "its file cannot be read"
        return f"LedgerFile({str(self._file)!r}, {self._budget}; {state})"

    def __reduce__(self) -> Any:
        return Ledger, (self._budget.epsilon, self._budget.delta), self.__getstate__()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """(group, name, budget) of every grant of every process, in order."""
        self._refresh()
        return super().entries

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public: the release of every grant that was closed, in any process."""
        self._refresh()
        return (*super().releases, *self._unwritten)

    def _refresh(self) -> None:
        """Read what was spent since by anyone; refuse a file that forgot some of it."""
        with self._lock:
            try:
                found, identity = _read(self._file)
            except FileNotFoundError:
                raise BudgetError(
                    f"the budget file ({self._file}) is gone, and with it what was spent; put it "
                    "back to go on"
                ) from None
            now = (identity, found.budget, list(found.entries)[: len(self._entries)])
            if now != (self._identity, self._budget, self._entries):
                raise BudgetError(
                    f"the budget file ({self._file}) is another one or an older copy: it lacks "
                    "what was spent since; put the newest copy back to go on"
                )
            self._entries, self._releases = list(found.entries), list(found.releases)

    def _charge(self, entry: Entry) -> None:
        with _locked(self._file):
            self._refresh()
            self._check_covers(entry)
            self._write([*self._entries, entry])

    def _publish(self, release: Release) -> None:
        """Write a release. The draw was made, so a failure warns, and the next change writes it.

        One that failed in the last step of writing may then be there twice; the charge is not.
        """
        self._unwritten.append(Release.from_json(release.to_json()))
        try:
            with _locked(self._file):
                self._refresh()
                self._write(self._entries)
        except (OSError, ValueError, BudgetError) as error:
            warnings.warn(
                f"the release of {release.name!r} is charged and made, but not yet in its budget "
                f"file: {error}. The next reserve or close here writes it; until then keep "
                "release.to_json()",
                BudgetFileWarning,
                stacklevel=3,
            )

    def _write(self, entries: list[Entry]) -> None:
        """Replace the file, and only then take note. Call it with the lock and a fresh reading."""
        releases = [*self._releases, *self._unwritten]
        _replace(self._file, self._budget, entries, releases, self._identity)
        self._entries, self._releases, self._unwritten = entries, releases, []


def _place(path: str | os.PathLike[str]) -> Path:
    """Where the file itself is: one lock and one file, whichever links lead there."""
    place = Path(os.path.realpath(path))
    if os.path.islink(path) and not os.path.exists(place):
        raise ValueError(
            f"path ({path}) must not be a link to nothing; put the budget file back at {place}, or "
            "remove the link"
        )
    if not os.path.isdir(place.parent):
        raise ValueError(f"path ({path}) must lie in a folder that exists; make {place.parent}")
    return place


def _create(path: Path, budget: Budget) -> None:
    with _locked(path):
        if not os.path.exists(path):  # another process may have been quicker
            _replace(path, budget, [], [], secrets.token_hex(16))


def _read(path: Path) -> tuple[Ledger, str]:
    """The ledger in a file, and the file's own identity."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"path ({path}) must be a file, no folder or device; pass another")
        if status.st_nlink > 1:  # a change would leave the other name with an old copy
            raise ValueError(
                f"path ({path}) must be the only name of its file; remove the other hard links"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _explained(error, path) from None
    try:
        fields = fields_of(content)
        return ledger_of(fields), fields.get("id", "")
    except (ValueError, BudgetError) as error:
        raise ValueError(
            f"path ({path}) must be a budget file as privfit wrote it: {error}. Put its newest "
            "copy back, or start another file"
        ) from None


def _replace(
    path: Path,
    budget: Budget,
    entries: Sequence[Entry],
    releases: Sequence[Release],
    identity: str,
) -> None:
    """Write the file anew. Call it with the lock."""
    remove_leftovers(path)
    try:
        if os.path.exists(path) and not os.access(path, os.W_OK):  # a rename would not ask
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        write_atomically(path, ledger_json(budget, entries, releases, id=identity))
    except OSError as error:
        raise _explained(error, path) from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file."""
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise ImportError('a budget file needs filelock; run pip install "privfit[cli]"') from None
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=WAIT, poll_interval=POLL)
    except Timeout:
        raise TimeoutError(
            f"the budget file ({path}) was locked by another process for {WAIT:g} seconds; wait "
            "for that process or end it, then try again"
        ) from None
    except NotImplementedError:
        raise ValueError(
            f"path ({path}) must lie on a file system that has locks; move it to a local disk"
        ) from None
    except OSError as error:
        raise _explained(error, path) from None
    try:
        yield
    finally:
        lock.release()


def _explained(error: OSError, path: Path) -> OSError:
    return OSError(
        error.errno,
        f"{error.strerror or error}: budget file {path}. You must be allowed to read and write the "
        "file, its .lock and its folder, which needs room for a copy; see to that, then try again",
    )
