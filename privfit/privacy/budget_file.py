"""A ledger whose budget is stored in a file, shared by processes and safe against crashes.

    ledger = open_ledger("budget.json", epsilon=1.0, delta=1e-6)

Every process that opens the file shares its budget. To reserve is to lock the file, read it, check
the exact sums, write it again with the charge, and only then return the grant: nothing is drawn
before its charge is on disk. So no order of events across processes overspends, and a run that is
killed at any moment leaves a complete file that counts everything that was granted; a charge whose
grant was never used stays charged.

The file is replaced as a whole at each change. Two locks keep others out meanwhile: that of a file
beside it, which all versions take, and that of the folder, which is still held when a cleaner
removes the other. The operating system frees the locks of a process that dies. `docs/ledger.md` has
the format, and what a file cannot protect against: above all, an old copy that is put back between
two runs.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from privfit.base.errors import (
    BudgetError,
    DeclarationError,
    FileAccessError,
    FileBusyError,
    FileError,
    FileMissingError,
    MissingExtraError,
    access_error,
)
from privfit.base.files import remove_leftovers, write_atomically
from privfit.privacy.budgets import Budget
from privfit.privacy.charges import UNKNOWN, Charge
from privfit.privacy.fields import LedgerFields
from privfit.privacy.grants import Release, fields_of
from privfit.privacy.ledger import VERSION, Ledger, ledger_json, ledger_of
from privfit.privacy.neighbours import Adjacency, Neighbours, check_rows, relation_of

__all__ = ["BudgetFileWarning", "LedgerFile", "open_ledger"]

WAIT = 60.0  # seconds for the lock: a change takes milliseconds, hundreds of runs may queue
POLL = 0.005  # seconds between two tries for it


class BudgetFileWarning(RuntimeWarning):
    """A budget file is incomplete: it lacks a release that was made, or its neighbour relation."""


def open_ledger(
    path: str | os.PathLike[str],
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: Adjacency | None = None,
    max_rows: int = 1,
) -> Ledger:
    """Open the ledger of a budget file, to pass as `ledger=` like any other.

    Parameters
    ----------
    path : str or path-like
        The budget file. Its lock is kept beside it, so the folder must be writable.
    epsilon, delta : float, optional
        The budget. They start a new file if there is none (delta is 0 if left out). For an existing
        file they may be left out; other numbers than the file's are refused.
    adjacency : {'replace', 'add_remove'}, optional
        The neighbour relation of the guarantee; by default that of the first grant that has one.
        For a file of the first version, which did not record it, you declare it: that of all
        charges whose fits left no release.
    max_rows : int, default=1
        How many rows one person may own; see `Ledger`.

    Returns
    -------
    Ledger
        The ledger. Every charge is on disk before anything is drawn.

    See Also
    --------
    Ledger : A ledger in memory.
    Checkpoint : A run that can be resumed.

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
    declared = None if adjacency is None else Neighbours.of(adjacency)
    check_rows(max_rows, "max_rows")
    place = _place(path)
    try:
        ledger = LedgerFile(place)
    except FileNotFoundError:
        if epsilon is None:
            raise FileMissingError(
                f"path ({path}) must be a budget file, but there is none; pass epsilon to start one"
            ) from None
        _create(place, Ledger(epsilon, 0.0 if delta is None else delta, adjacency, max_rows))
        ledger = LedgerFile(place)
    if declared is not None and ledger.adjacency is None:
        ledger.declare(declared)
    _check_declared(ledger, epsilon=epsilon, delta=delta, adjacency=relation_of(declared),
                    max_rows=None if max_rows == 1 else max_rows)  # fmt: skip
    if ledger.adjacency is None and any(charge.adjacency for charge in ledger.charges):
        warnings.warn(
            f"the budget file ({path}) is of an earlier version, which did not record its "
            f"neighbour relation; pass adjacency='replace' or 'add_remove', or let the "
            "next grant declare it",
            BudgetFileWarning,
            stacklevel=2,
        )
    return ledger


def _check_declared(ledger: Ledger, **declared: float | str | None) -> None:
    """Refuse declarations that differ from the file's."""
    budget = ledger.budget
    said = {"epsilon": budget.epsilon, "delta": budget.delta, "adjacency": ledger.adjacency,
            "max_rows": ledger.max_rows}  # fmt: skip
    for name, wanted in declared.items():
        if wanted is not None and wanted != said[name]:
            raise DeclarationError(
                f"{name} ({wanted!r}) must be that of the budget file, {said[name]!r}; leave it "
                "out, or start another file"
            )


class _Kept(NamedTuple):
    """What a change leaves in the file besides releases."""

    charges: list[Charge]
    neighbours: Neighbours | None


class LedgerFile(Ledger):
    """A ledger in a file; `open_ledger` makes it.

    What it shows (`entries`, `spent`, `remaining`, `releases`) is the present content of the file,
    including what other processes spent. `events` are those of this process. A pickle of it is a
    closed copy, without a file.
    """

    def __init__(self, path: Path) -> None:
        found, self._identity = _read(path)
        super().__init__(found.budget.epsilon, found.budget.delta, found.adjacency, found.max_rows)
        self._file = path
        self._charges, self._releases = list(found.charges), list(found.releases)
        self._unwritten: list[Release] = []

    def __repr__(self) -> str:
        try:
            state = self._shown()
        except (OSError, ValueError, BudgetError):
            state = f"{self._budget}; its file cannot be read"
        return f"LedgerFile({str(self._file)!r}, {state})"

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation and the privacy unit; None until somebody, in any process, declares them."""
        self._refresh()
        return self._known()

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What every grant of every process asked for and under which relation, in order."""
        self._refresh()
        return super().charges

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is public: the release of every grant that was closed, in any process."""
        self._refresh()
        return (*super().releases, *self._unwritten)

    def _refresh(self) -> None:
        """Read what any process has spent since; refuse a file that lacks some of it."""
        with self._lock:
            try:
                found, identity = _read(self._file)
            except FileNotFoundError:
                raise BudgetError(
                    f"the budget file ({self._file}) is missing, and with it the record of what "
                    f"was spent; put it back to continue"
                ) from None
            then, now = _asked(self._charges), _asked(found.charges)
            unchanged = (identity, found.budget, found.max_rows, now[: len(then)])
            if unchanged != (self._identity, self._budget, self._max_rows, then):
                raise BudgetError(
                    f"the budget file ({self._file}) is another one or an older copy: it lacks "
                    f"what was spent since; put the newest copy back to continue"
                )
            self._charges, self._releases = list(found.charges), list(found.releases)
            self._neighbours = found.neighbours or self._neighbours

    def declare(self, neighbours: Neighbours) -> None:
        """Count for these neighbours; charges without a relation are declared to be for them.

        Refused if the charges then have no cost, or exceed the budget.
        """
        with self._lock, _locked(self._file):
            self._refresh()
            if self._known() is not None:
                return
            neighbours = replace(neighbours, rows=self._max_rows)
            charges = [replace(one, adjacency=None) if one.adjacency == UNKNOWN else one
                       for one in self._charges]  # fmt: skip
            if self._exceeded_by((c.group, c.name, c.cost(neighbours)) for c in charges):
                raise BudgetError(
                    f"the charges in the budget file ({self._file}) exceed its budget under "
                    f"{neighbours.relation!r}, where one under 'add_remove' costs more; start "
                    "another file"
                )
            self._write(_Kept(charges, neighbours))

    def agree(self, neighbours: Neighbours | None) -> Neighbours:
        """The ledger's neighbours, or from now on these; `publish` writes them."""
        with suppress(OSError, ValueError, BudgetError):  # which `publish` tells
            self._refresh()
        return super().agree(neighbours)

    def _charge(self, charge: Charge) -> None:
        with _locked(self._file):
            self._refresh()
            self._write(_Kept([*self._charges, charge], self._check_covers(charge)))

    def publish(self, release: Release) -> None:
        """Write a release. The draw was made, so a failure warns, and the next change writes it.

        If the last step of writing failed, the release may be there twice; the charge is not.
        """
        self._unwritten.append(Release.from_json(release.to_json()))
        try:
            with _locked(self._file):
                self._refresh()
                self._write(_Kept(self._charges, self._known()))
        except (OSError, ValueError, BudgetError) as error:
            warnings.warn(
                f"the release of {release.name!r} is charged and made, but not yet in its budget "
                f"file: {error}. The next reserve or close here writes it; until then keep "
                "release.to_json()",
                BudgetFileWarning,
                stacklevel=3,
            )

    def _write(self, kept: _Kept) -> None:
        """Replace the file, and only then take note. Call it with the lock and a fresh reading."""
        releases = [*self._releases, *self._unwritten]
        promise = replace(self._budget, adjacency=relation_of(kept.neighbours))
        text = ledger_json(promise, kept.charges, releases, self._max_rows, id=self._identity)
        _replace(self._file, text)
        self._charges, self._neighbours = kept
        self._releases, self._unwritten = releases, []

    def _after_fork(self) -> None:
        """A forked child keeps the file; it drops the parent's grants and unwritten releases."""
        self._lock, self._process, self._unwritten = threading.RLock(), os.getpid(), []
        for grant in self._grants:
            grant.close_in_fork(self._lock)


def _asked(charges: Iterable[Charge]) -> list[tuple[str, str, Budget]]:
    """What stays the same of charges whose relation is declared later."""
    return [(charge.group, charge.name, charge.budget) for charge in charges]


def _place(path: str | os.PathLike[str]) -> Path:
    """The file itself: one lock and one file, whatever links lead there."""
    place = Path(os.path.realpath(path))
    if os.path.islink(path) and not os.path.exists(place):
        raise FileError(
            f"path ({path}) must not be a link to nothing; put the budget file back at {place}, or "
            "remove the link"
        )
    try:
        is_folder = stat.S_ISDIR(os.stat(place.parent).st_mode)
    except PermissionError as error:
        raise _explained(error, place) from None
    except OSError:
        is_folder = False
    if not is_folder:
        raise FileError(f"path ({path}) must be in a folder that exists; make {place.parent}")
    return place


def _create(path: Path, ledger: Ledger) -> None:
    with _locked(path):
        if not os.path.exists(path):  # another process may have been quicker
            promise = replace(ledger.budget, adjacency=ledger.adjacency)
            identity = secrets.token_hex(16)
            _replace(path, ledger_json(promise, [], [], ledger.max_rows, id=identity))


def _read(path: Path) -> tuple[Ledger, str]:
    """The ledger in a file, and the file's own identity."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"path ({path}) must be a file, not a folder or device; pass another")
        if status.st_nlink > 1:  # a change would leave the other name with an old copy
            raise FileError(
                f"path ({path}) must be the only name of its file; remove the other hard links"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _explained(error, path) from None
    try:
        fields = cast("LedgerFields", fields_of(content, *range(1, VERSION + 1)))
        return ledger_of(fields), fields.get("id", "")
    except (ValueError, BudgetError) as error:
        raise FileError(
            f"path ({path}) must be a budget file as privfit wrote it: {error}. Put its newest "
            "copy back, or start another file"
        ) from None


def _replace(path: Path, text: str) -> None:
    """Write the file anew. Call it with the lock."""
    remove_leftovers(path)
    try:
        if os.path.exists(path) and not os.access(path, os.W_OK):  # a rename would not ask
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        write_atomically(path, text)
    except OSError as error:
        raise _explained(error, path) from None


# ------------------------------------------------------------------------------------------ locks


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file."""
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise MissingExtraError(
            'a budget file needs filelock; run pip install "privfit[cli]"'
        ) from None
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=WAIT, poll_interval=POLL)
    except Timeout:
        raise _waited(path) from None
    except NotImplementedError:
        raise _lockless(path) from None
    except OSError as error:
        raise _explained(error, path) from None
    try:
        with _locked_folder(path):
            yield
    finally:
        lock.release()


_HELD: set[int] = set()  # folders that this process has locked


@contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """Hold the lock that nobody removes: a lock file that is unlinked is a lock for two.

    On Windows a file that is open cannot be removed, so that the lock file is enough.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise _explained(error, path) from None
    _HELD.add(folder)
    try:
        _wait_for(lambda: fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB), path)
        yield
    finally:
        if folder in _HELD:  # not in a forked child, which would free the parent's
            _HELD.discard(folder)
            with suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_UN)
            os.close(folder)


def _wait_for(lock: Callable[[], None], path: Path) -> None:
    """Try until the lock is free, for at most `WAIT`."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return lock()
        except BlockingIOError:
            if time.monotonic() > end:
                raise _waited(path) from None
            time.sleep(POLL)
        except OSError:
            raise _lockless(path) from None


def _let_go_in_fork() -> None:
    """A forked child keeps no lock of its parent's alive."""
    while _HELD:
        os.close(_HELD.pop())


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_let_go_in_fork)


def _waited(path: Path) -> FileBusyError:
    return FileBusyError(
        f"the budget file ({path}) was locked by another process for {WAIT:g} seconds; wait "
        "for that process or end it, then try again"
    )


def _lockless(path: Path) -> FileError:
    return FileError(
        f"path ({path}) must lie on a file system that has locks; move it to a local disk"
    )


def _explained(error: OSError, path: Path) -> FileAccessError:
    return access_error(
        error.errno,
        f"{error.strerror or error}: budget file {path}. You must be allowed to read and write the "
        "file, its .lock and its folder, which needs room for a copy; change that, then try again",
    )
