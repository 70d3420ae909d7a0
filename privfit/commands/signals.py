"""Signals that end a command: schedulers send SIGTERM, closed terminals SIGHUP.

Both become an exception like that of Ctrl-C, so that files are closed, temporary ones are removed,
and the message says what was charged. Kernels return within a fraction of a second, and Python
raises it then.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Stopped", "stopped_by_signals"]

NAMES = ("SIGTERM", "SIGHUP")  # Windows has the first alone


class Stopped(KeyboardInterrupt):
    """A command was told to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What shells report for a program that this signal ended."""
        return 128 + self.number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """While this lasts, such a signal raises `Stopped`; one that is ignored, as by nohup, stays so.

    A second signal while the first is being answered is ignored: what began must end.
    """
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            try:
                before[number] = signal.signal(number, stop)
            except ValueError:  # only the main thread may say what signals do
                break
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
