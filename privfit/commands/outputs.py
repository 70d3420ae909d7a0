"""Files that a command writes: claimed before anything is spent, complete or not at all.

A run pays before it knows its result, so there must be space for the result. `claim` writes as many
bytes as the result may need to a file next to the requested one. The result replaces those bytes,
which are already on disk, and the file is then renamed in one step.
"""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from privfit.base.errors import InputError
from privfit.base.files import beside, write_through

__all__ = ["Claim", "check_outputs", "claim", "claim_if"]

READ = ("data", "schema", "model", "ledger", "places", "curve", "accuracy")  # which are paths
WRITTEN = ("out", "plot", "roc")

ROOM = 1 << 20  # bytes for all but the numbers of a large model: schema, settings, events
DIGITS = 32  # bytes that a number may take in a text


class Claim:
    """A file that is still to be written."""

    def __init__(self, path: Path, temporary: Path) -> None:
        self._path, self._temporary = path, temporary

    def write(self, content: str | bytes) -> None:
        """Write the file and rename it to its final name."""
        write_through(self._temporary, content, "r+b", like=self._path)
        os.replace(self._temporary, self._path)


@contextmanager
def claim(path: str, numbers: int = 0) -> Iterator[Claim]:
    """Check that a file with this many numbers can be written, and refuse now if it cannot."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        raise InputError(f"{path!r} must be a file, not a folder or device; pass another path")
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "", path)
    if not place.parent.is_dir():
        raise InputError(
            f"{path!r} is in a folder that does not exist; create the folder, or pass another path"
        )
    with beside(place) as temporary:
        try:
            write_through(temporary, bytes(ROOM + DIGITS * numbers), "xb", like=place)
        except OSError as error:  # name the file that the user asked for
            raise OSError(error.errno, "", path) from None
        yield Claim(place, temporary)


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse an output that would replace an input of the command, or another output."""
    taken = {os.path.realpath(path) for name in READ if (path := getattr(options, name, None))}
    for name in WRITTEN:
        path = getattr(options, name, None)
        if not path:
            continue
        if os.path.realpath(path) in taken:
            raise InputError(
                f"--{name} ({path!r}) must not be another input or output of the command; "
                "pass another path"
            )
        taken.add(os.path.realpath(path))


def claim_if(path: str | None) -> AbstractContextManager[Claim | None]:
    """A claim, if a path was given."""
    return nullcontext() if path is None else claim(path)
