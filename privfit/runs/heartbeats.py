"""Signs of life of solvers that report nothing for long: a public tick, and nothing else.

A convex fit or a tree releases once, at its end, so that a callback hears nothing until then. If
the callback has a method `alive`, it is called about every second, without arguments, by a thread
of its own, whatever the solver does meanwhile. A tick says that the process runs. It cannot end the
run, and an error in it ends the ticks alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SECONDS", "beating"]

SECONDS = 1.0


@contextmanager
def beating(callback: object) -> Iterator[None]:
    """Call `callback.alive()` about every second within a block, if there is such a method."""
    alive = getattr(callback, "alive", None)
    if not callable(alive):
        yield
        return
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(SECONDS):
            alive()

    thread = threading.Thread(target=beat, name="privfit-alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
