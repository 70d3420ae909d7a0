"""Locks of budget files: one that all versions take, and one that nobody can remove.

The first is that of a file beside the budget file, the second that of their folder. The operating
system frees the locks of a process that dies.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privfit.base import extras
from privfit.base.errors import (
    FileAccessError,
    FileBusyError,
    FileError,
    MissingExtraError,
    access_error,
)
from privfit.privacy.reservations import who

__all__ = ["explained", "locked"]

WAIT = 60.0  # seconds for the lock: a change takes milliseconds, hundreds of runs may queue
POLL = 0.005  # seconds between two tries for it
HOLDER = re.compile(r"process \d+ of [^\n]{1,99} on [^\n]{1,255}\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file."""
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise MissingExtraError(
            f"a budget file needs filelock; run {extras.install('cli')}"
        ) from None
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=WAIT, poll_interval=POLL)
    except Timeout:
        raise _waited(path) from None
    except NotImplementedError:
        raise _lockless(path) from None
    except OSError as error:
        raise explained(error, path) from None
    try:
        with _locked_folder(path):
            user, host = who()
            _sign(path, f"process {os.getpid()} of {user} on {host}\n")
            try:
                yield
            finally:
                _sign(path, "")
    finally:
        lock.release()


def _sign(path: Path, text: str) -> None:
    """Say in the lock file who holds it, for those who wait in vain; nothing depends on it."""
    with suppress(OSError):
        Path(f"{path}.lock").write_text(text)


def _holder(path: Path) -> str:
    """Who holds the lock, as the holder wrote it; a lock file that was removed does not say it."""
    with suppress(OSError, ValueError):
        said = Path(f"{path}.lock").read_text()
        if HOLDER.fullmatch(said):
            return said.strip()
    return "another process"


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
        raise explained(error, path) from None
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
        f"the budget file ({path}) was locked by {_holder(path)} for {WAIT:g} seconds; wait "
        "for that process or end it, then try again"
    )


def _lockless(path: Path) -> FileError:
    return FileError(
        f"path ({path}) must lie on a file system that has locks; move it to a local disk"
    )


def explained(error: OSError, path: Path) -> FileAccessError:
    """What to say of an error of the operating system."""
    return access_error(
        error.errno,
        f"{error.strerror or error}: budget file {path}. You must be allowed to read and write the "
        "file, its .lock and its folder, which needs room for a copy; change that, then try again",
    )
