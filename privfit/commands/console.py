"""The output of a command: results on stdout, everything else on stderr.

Commands never print directly. With `--json`, stdout receives a single JSON object; with `--quiet`,
only errors and warnings are printed. No output may contain a private value: errors name columns and
never their values, and of an exception of unknown origin only the type is printed.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from privfit.base.errors import BudgetError, FileAccessError, PrivfitError
from privfit.base.json import write
from privfit.base.signals import Stopped
from privfit.base.tables import aligned
from privfit.commands.wording import in_options

if TYPE_CHECKING:
    from privfit.commands.spending import RunLedger

__all__ = ["Console", "end_of"]

DONE, FAILED, REFUSED, OVERSPENT, CHARGED, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 4, 130, 141

EXIT_CODES = """\
exit codes:
    0  done
    1  internal error in privfit; nothing was spent
    2  refused: invalid options, files or records; nothing was spent
    3  refused: the budget does not cover it; nothing was spent
    4  failed after the budget was charged; the message says what was charged
  130  interrupted by Ctrl-C; the message says what was charged
  141  the output pipe was closed
  143  stopped by SIGTERM (129: SIGHUP); the message says what was charged"""

REMEDIES = {
    errno.ENOENT: "does not exist; pass the path of an existing file or folder",
    errno.EISDIR: "is a directory; pass the path of a file",
    errno.ENOTDIR: "has a file where a folder is expected; pass the path of a file in a folder",
    errno.EACCES: "cannot be accessed; change its permissions, or pass another path",
    errno.EPERM: "cannot be accessed; change its permissions, or pass another path",
    errno.EROFS: "is on a read-only disk; pass a path on another disk",
    errno.ENOSPC: "is on a full disk; free some space, or pass a path on another disk",
    errno.EDQUOT: "exceeds your disk quota; free some space, or pass another path",
    errno.EFBIG: "would exceed the file size limit; raise the limit (ulimit -f)",
    errno.ENAMETOOLONG: "has a name that is too long; pass a shorter one",
}


class Console:
    """The streams of one command, and the ledger that it spends from."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._json, self._quiet, self._debug = options.json, options.quiet, options.debug
        self.ledger: RunLedger | None = None

    @property
    def watched(self) -> bool:
        """Whether stderr is a terminal that may show a progress bar."""
        return not self._quiet and sys.stderr.isatty()

    @property
    def machine(self) -> bool:
        """Whether stdout is reserved for one JSON object."""
        return bool(self._json)

    def say(self, text: str = "") -> None:
        """Print a line of the report."""
        if not self._quiet and not self._json:
            print(text)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table: the first column left-aligned, the others right-aligned."""
        for line in aligned(head, rows):
            self.say(line)

    def product(self, text: str) -> None:
        """Write the result to stdout, as UTF-8 and completely.

        An unbuffered stdout may accept only a part; `print` would then lose the rest.
        """
        left = memoryview(text.encode())
        while left:
            left = left[sys.stdout.buffer.write(left) :]

    def result(self, fields: dict[str, Any]) -> None:
        """Print the machine-readable result, if `--json` was passed."""
        if self._json:
            print(write(fields, indent=2))

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        if not self._quiet:
            print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        """Print a warning on stderr, even with `--quiet`."""
        print(f"warning: {text}", file=sys.stderr)

    def fail(self, error: BaseException) -> int:
        """Print why a command failed, and return the exit code."""
        if self._debug:
            print("debug: the traceback below may show private values", file=sys.stderr)
            traceback.print_exception(error)
        code, sentence = end_of(error)
        charged = self.ledger is not None and self.ledger.charged
        if charged and self.ledger is not None:
            code = code if isinstance(error, KeyboardInterrupt) else CHARGED
            sentence = f"{sentence}; {self.ledger.budget} was charged and stays spent"
        elif code == FAILED or isinstance(error, KeyboardInterrupt):
            sentence = f"{sentence}; nothing was spent"
        print(f"privfit: error: {sentence}", file=sys.stderr)
        return code


def end_of(error: BaseException) -> tuple[int, str]:
    """The exit code and the message for an exception, assuming that nothing was charged."""
    if isinstance(error, Stopped):
        return error.exit_code, f"stopped by {signal.Signals(error.number).name}"
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, BudgetError):
        return OVERSPENT, in_options(str(error))
    if isinstance(error, MemoryError):
        return REFUSED, "out of memory; pass fewer columns, or use a larger machine"
    if isinstance(error, OSError):
        return REFUSED, _of_file(error)
    if isinstance(error, PrivfitError):
        return REFUSED, in_options(str(error))
    return FAILED, (
        f"{type(error).__name__} inside privfit; its text is withheld, because it may quote "
        "records: run again with --debug if you may see them, and report it"
    )


def _of_file(error: OSError) -> str:
    """What is wrong with a file: privfit's own message, else one for the error number."""
    if isinstance(error, FileAccessError):
        return error.strerror or str(error)
    number = error.errno or 0
    name = "the output" if error.filename is None else repr(os.fspath(error.filename))
    about = os.strerror(number).lower()
    return f"{name} {REMEDIES.get(number, f'cannot be used: {about}; pass another path')}"
