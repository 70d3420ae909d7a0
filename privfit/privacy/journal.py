"""The lines of a journal: read while there are any, then appended to.

A line is a JSON object with the kind of a step, what was asked, the answer, and `sum`: a SHA-256
over the sum of the line before it and the rest of this one. So a line that was changed, left out or
moved is noticed before anything is replayed. Anybody can compute sums, so that they protect against
accidents alone; the budget file of a run, if it has one, keeps the sum of the last draw.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from privfit.base.errors import FileError
from privfit.base.json import parse, write

__all__ = ["VERSION", "Journal", "Line"]

VERSION = 2  # of journals; the first had no sums
START = b'{"kind": "run", "what": {"privfit": '  # of every journal


class Line(NamedTuple):
    """A line that is about to be written: its number, its sum and its text."""

    number: int
    sum: str
    text: str


class Journal:
    """A file of steps; `before_draw` is called with the line of a draw before it is written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file: int | None = os.open(self._path, flags, 0o600)
        self.sums = [""]  # over the first lines, from none of them on
        self._steps: list[dict[str, Any]] = []
        self._next, self._process = 0, os.getpid()
        self.drawing = False
        self.before_draw: Callable[[Line], None] | None = None
        try:
            self._take(self._file)
        except BaseException:  # whoever keeps the error keeps this object, but not the lock
            self.close()
            raise

    def _take(self, file: int) -> None:
        """Lock the file, and read it or refuse it."""
        self._lock_file(file)
        with open(self._path, "rb") as reader:
            whole = reader.read()
        lines = whole[: whole.rfind(b"\n") + 1]  # a line that a crash cut short was never told
        self._read(whole, lines)
        os.ftruncate(file, len(lines))  # only now: another file is left as it is
        os.lseek(file, 0, os.SEEK_END)

    def _read(self, whole: bytes, lines: bytes) -> None:
        """Take the steps of all complete lines, or refuse the file."""
        try:
            if not whole.startswith(START[: len(whole)]):
                raise ValueError
            for line in lines.splitlines():
                self._steps.append(parse(line, finite=False))
        except ValueError:
            raise FileError(
                f"path ({self._path!r}) must be a journal of privfit, or new; pass another path"
            ) from None
        if self._steps and not any("sum" in step for step in self._steps):
            raise FileError(
                f"path ({self._path!r}) is a journal of an earlier version, which had no "
                "checksums; finish the run with the privfit that began it, or pass another path"
            )
        for number, line in enumerate(lines.splitlines(), 1):
            if not self.follows(line.decode(errors="replace")):
                raise FileError(
                    f"path ({self._path!r}) must be a journal as it was written, but line {number} "
                    "was changed; put the newest copy back, or pass another path"
                )
            self.sums.append(self._steps[number - 1]["sum"])

    def follows(self, text: str) -> bool:
        """Whether this line may be the next one: it is as privfit writes it, with its sum."""
        try:
            step = parse(text, finite=False)
            return text == self._line(step["kind"], step["what"], step["value"]).text
        except (ValueError, KeyError):
            return False

    def _line(self, kind: str, what: object, value: object) -> Line:
        step = write({"kind": kind, "what": what, "value": value})
        found = hashlib.sha256(f"{self.sums[-1]}{step}".encode()).hexdigest()
        return Line(len(self.sums), found, f'{step[:-1]}, "sum": "{found}"}}')

    def close(self) -> None:
        """Release the file for another run."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def _lock_file(self, file: int) -> None:
        """Refuse a journal that another run is writing to."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(
                f"path ({self._path!r}) must not be in use by another run; wait until it ends, or "
                "pass another path"
            ) from None

    @property
    def left(self) -> int:
        """Steps on record that were not replayed yet."""
        return len(self._steps) - self._next

    @property
    def draws(self) -> list[int]:
        """The numbers of the lines that are draws."""
        return [i for i, step in enumerate(self._steps, 1) if step["kind"] == "draw"]

    def check(self, kind: str, what: object) -> bool:
        """Whether a step is on record; refuse it if another one is, or if none can be written."""
        if self.left:
            step = self._steps[self._next]
            if (step["kind"], step["what"]) != (kind, what):
                raise FileError(
                    f"path ({self._path!r}) must be the journal of this run, but step "
                    f"{self._next + 1} differs; pass the same settings and fits in the same order, "
                    "or another path"
                )
            return True
        if self._file is None:
            raise FileError(
                f"path ({self._path!r}) was closed; fit within `with Checkpoint(...) as journal:`"
            )
        if os.getpid() != self._process:
            raise FileError(
                f"path ({self._path!r}) is the journal of another process, of which this one is a "
                f"fork; fit there, or pass another path to a new Checkpoint"
            )
        return False

    def recorded(self, kind: str, what: object) -> object:
        """What is on record for this step; None if the record has ended."""
        if not self.check(kind, what):
            return None
        self._next += 1
        return self._steps[self._next - 1]["value"]

    def append(self, kind: str, what: object, value: object) -> None:
        """Write a step to the record, on disk."""
        self.check(kind, what)
        line = self._line(kind, what, value)
        if kind == "draw" and self.before_draw is not None:
            self.before_draw(line)
        self.write(line.text)
        self._next += 1

    def write(self, text: str) -> None:
        """Write the next line through to the disk."""
        assert self._file is not None, "`check` refuses a journal that was closed"
        left = text.encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except BaseException:  # Ctrl-C, too
            self.close()  # a line may be cut short, and none may follow it
            raise
        step = parse(text, finite=False)
        self._steps.append(step)
        self.sums.append(step["sum"])

    def step(self, kind: str, what: object, value: object = True) -> object:
        """A step whose answer is this, unless another is on record."""
        known = self.recorded(kind, what)
        if known is None:
            self.append(kind, what, value)
            return value
        return known

    @contextmanager
    def draw(self) -> Iterator[None]:
        """While a mechanism draws, bits are noise, and are not recorded."""
        self.drawing = True
        try:
            yield
        finally:
            self.drawing = False
