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
    one step. A full disk, an error or an interrupt leaves no trace; a kill or a power cut may
    leave the new file, named ``.privfit-*.tmp``, which nothing reads. A link stays a link. What is
    no ordinary file, such as a pipe, is simply written to. An `OSError` names the path.

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
    temporary = target.with_name(f".privfit-{secrets.token_hex(8)}.tmp")
    try:
        # Mode "x" makes the file itself, with the rights of any new one, and follows no link.
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
        temporary.replace(target)
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
    """Have the new name on the disk too; not every system and folder allows it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
