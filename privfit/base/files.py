"""Files that are written completely or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["beside", "remove_leftovers", "write_atomically", "write_through"]


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or a text as UTF-8, so that the path has all of it or what it had before.

    The content is written to a new file in the same folder, flushed to disk, and renamed to the
    path in one step. After a full disk, an error or an interrupt the file is as it was (unless the
    very last step failed, which makes the new name durable), and nothing else is left; a kill or a
    power cut may leave the new file, named ``.<name>.*.tmp``, which nothing reads. A link stays a
    link. Anything but an ordinary file, such as a pipe, is simply written to. An `OSError` names
    the path.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from privfit.base.files import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/a.txt", "whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(_as_bytes(content))
            return
        with beside(target) as temporary:
            write_through(temporary, content, "xb", like=target)
            os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """The path of a new file in the same folder, which is removed in the end if it is there."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
    finally:
        with suppress(OSError):  # on a read-only disk, even for what is not there
            temporary.unlink(missing_ok=True)


def write_through(path: Path, content: str | bytes, mode: str, like: Path) -> None:
    """Write a file through to the disk, with the permissions of `like` if that exists.

    Mode "xb" creates the file, with the permissions of any new one, and follows no link; "r+b"
    overwrites bytes that are on the disk.
    """
    with open(path, mode) as file:
        if like.exists():  # first: nobody else may read it meanwhile
            os.chmod(path, stat.S_IMODE(like.stat().st_mode))
        file.write(_as_bytes(content))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _as_bytes(content: str | bytes) -> bytes:
    """A text as UTF-8."""
    return content.encode() if isinstance(content, str) else content


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of a file left beside it. Call it when nobody can be writing."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 16}.tmp"):
        with suppress(OSError):  # another user's
            left.unlink()


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # where folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
