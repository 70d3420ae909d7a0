"""Files that are there whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["remove_leftovers", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, as UTF-8, so that the path has all of it or what it had before.

    The text goes to a new file in the same folder, then to the disk, and takes the path's place in
    one step. After a full disk, an error or an interrupt the file is as it was (unless the very
    last step failed, the one that makes its new name last), and nothing else is left; a kill or a
    power cut may leave the new file, named ``.<name>.*.tmp``, which nothing reads. A link stays a
    link. What is no ordinary file, such as a pipe, is simply written to. An `OSError` names the
    path.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from privfit.files import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/a.txt", "whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        else:
            _replace(target, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _replace(target: Path, text: str) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        # Mode "x" makes the file itself, with the rights of any new one, and follows no link.
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # an interrupt too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


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
