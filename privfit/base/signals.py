"""Signals that end a command: schedulers send SIGTERM, closed terminals SIGHUP.

While modules are still being imported they end it at once. Later both become an exception like that
of Ctrl-C, so that files are closed, temporary ones are removed, and the message says what was
charged. Kernels return within a fraction of a second, and Python raises it then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopped", "end_by_signals", "stopped_by_signals"]

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


def end_by_signals() -> None:
    """From now on such a signal ends the process, which has not begun: it says so."""
    for number in _unanswered():
        signal.signal(number, _end)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """While this lasts, such a signal raises `Stopped`; one that is ignored, as by nohup, stays so.

    A second signal while the first is being answered is ignored: what began must end.
    """
    numbers = _unanswered()

    def stop(number: int, frame: FrameType | None) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _unanswered() -> list[int]:
    """The signals that nobody else answers or ignores; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []  # which alone may say what signals do
    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [one for one in known if signal.getsignal(one) in (signal.SIG_DFL, _end)]


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: an exception within an import may be swallowed there."""
    name = signal.Signals(number).name
    print(f"privfit: error: stopped by {name}; nothing was spent", file=sys.stderr, flush=True)
    os._exit(128 + number)
