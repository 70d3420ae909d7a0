"""What a command says, and where: products on stdout, all else on stderr.

A command never prints by itself. `--json` leaves stdout to one JSON object, `--quiet` leaves the
terminal to errors and warnings. Nothing that is said may hold a private value: errors name columns
and never their values, and an exception of unknown origin is told by its type alone.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from privfit.base.errors import BudgetError, FileAccessError, PrivfitError
from privfit.base.json import write

if TYPE_CHECKING:
    from privfit.commands.spending import RunLedger

__all__ = ["Console", "end_of"]

DONE, FAILED, REFUSED, OVERSPENT, CHARGED, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 4, 130, 141

EXIT_CODES = """\
exit codes:
    0  done
    1  failed by a fault of privfit itself; nothing was spent
    2  refused: wrong options, files or records; nothing was spent
    3  refused: the budget does not cover it; nothing was spent
    4  failed after the budget was charged; the message says what was charged
  130  interrupted by Ctrl-C; the message says what was charged
  141  the reader of the output went away"""

REMEDIES = {
    errno.ENOENT: "does not exist; pass the path of an existing file or folder",
    errno.EISDIR: "is a directory; pass the path of a file",
    errno.ENOTDIR: "lies below a file; pass the path of a file in a folder",
    errno.EACCES: "is not permitted to you; change its permissions, or pass another path",
    errno.EPERM: "is not permitted to you; change its permissions, or pass another path",
    errno.EROFS: "lies on a read-only disk; pass a path on another one",
    errno.ENOSPC: "lies on a full disk; free some space, or pass a path on another disk",
    errno.EDQUOT: "exceeds your share of the disk; free some space, or pass another path",
    errno.EFBIG: "would exceed the largest file you may write; raise the limit (ulimit -f)",
    errno.ENAMETOOLONG: "has too long a name; pass a shorter one",
}


OPTIONS = {
    "n_public": "--n-public",
    "adjacency='add_remove'": "--adjacency add_remove",
    "adjacency='replace'": "--adjacency replace",
}


class Console:
    """The streams of one command, and the ledger that it spends from."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._json, self._quiet, self._debug = options.json, options.quiet, options.debug
        self.ledger: RunLedger | None = None

    @property
    def watched(self) -> bool:
        """Whether somebody looks at a terminal that may show a progress bar."""
        return not self._quiet and sys.stderr.isatty()

    @property
    def machine(self) -> bool:
        """Whether stdout belongs to one JSON object."""
        return bool(self._json)

    def say(self, text: str = "") -> None:
        """A line of the report."""
        if not self._quiet and not self._json:
            print(text)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table of the report: the first column to the left, the others to the right."""
        lines = [tuple(head), *map(tuple, rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
            self.say("  ".join([line[0].ljust(widths[0]), *cells[1:]]).rstrip())

    def product(self, text: str) -> None:
        """What the command was called for: stdout, as UTF-8, and all of it.

        An unbuffered stdout may take a part and say so; what goes through `print` would be lost.
        """
        left = memoryview(text.encode())
        while left:
            left = left[sys.stdout.buffer.write(left) :]

    def result(self, fields: dict[str, Any]) -> None:
        """The machine-readable result, where `--json` asks for it."""
        if self._json:
            print(write(fields, indent=2))

    def note(self, text: str) -> None:
        """Something worth knowing, on stderr."""
        if not self._quiet:
            print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        """A warning, on stderr whatever was asked for."""
        print(f"warning: {text}", file=sys.stderr)

    def fail(self, error: BaseException) -> int:
        """Say how a command ended that did not come to its end; the exit code."""
        if self._debug:
            print("debug: what follows may show private values", file=sys.stderr)
            traceback.print_exception(error)
        code, sentence = end_of(error)
        charged = self.ledger is not None and self.ledger.charged
        if charged and self.ledger is not None:
            code = INTERRUPTED if code == INTERRUPTED else CHARGED
            sentence = f"{sentence}; {self.ledger.budget} was charged and stays spent"
        elif code in (FAILED, INTERRUPTED):
            sentence = f"{sentence}; nothing was spent"
        print(f"privfit: error: {sentence}", file=sys.stderr)
        return code


def end_of(error: BaseException) -> tuple[int, str]:
    """The exit code and the sentence for an exception, as if nothing had been charged."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, BudgetError):
        return OVERSPENT, str(error)
    if isinstance(error, MemoryError):
        return REFUSED, "memory ran out; pass fewer columns, or use a larger machine"
    if isinstance(error, OSError):
        return REFUSED, _of_file(error)
    if isinstance(error, PrivfitError):
        return REFUSED, _with_options(str(error))
    return FAILED, (
        f"{type(error).__name__} inside privfit; its text is withheld, since it may quote "
        "records: run again with --debug where you may see them, and report it"
    )


def _with_options(sentence: str) -> str:
    """The library's words for what a user of the command calls by an option."""
    for parameter, option in OPTIONS.items():
        sentence = sentence.replace(parameter, option)
    return sentence


def _of_file(error: OSError) -> str:
    """What is wrong with a file: what privfit itself says of it, else by the error's number."""
    if isinstance(error, FileAccessError):
        return error.strerror or str(error)
    number = error.errno or 0
    name = "the output" if error.filename is None else repr(os.fspath(error.filename))
    about = os.strerror(number).lower()
    return f"{name} {REMEDIES.get(number, f'cannot be used: {about}; pass another path')}"
