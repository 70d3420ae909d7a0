"""Signs of life of fits that report nothing for long: a public tick, and nothing else.

A convex fit or a tree releases once, at its end, so that a callback hears nothing until then, and
nobody hears anything while records are read. If the callback has a method `alive`, it is called
about every second, without arguments, by a thread of its own, from the beginning of a fit to its
end. A tick says that the process runs. It cannot end the run, and an error in it ends the ticks
alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

__all__ = ["SECONDS", "beating", "heard"]

F = TypeVar("F", bound=Callable[..., Any])

SECONDS = 1.0
_begun = threading.local()  # `callback`: whose beats a fit of this thread has begun


@contextmanager
def beating(callback: object) -> Iterator[None]:
    """Call `callback.alive()` about every second within a block, if there is such a method.

    Within another block of the same callback nothing begins: that one goes on.
    """
    alive, outer = getattr(callback, "alive", None), getattr(_begun, "callback", None)
    if not callable(alive) or outer is callback:
        yield
        return
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(SECONDS):
            alive()

    thread = threading.Thread(target=beat, name="privfit-alive", daemon=True)
    thread.start()
    _begun.callback = callback
    try:
        yield
    finally:
        _begun.callback = outer
        ended.set()
        thread.join()


def heard(fit: F) -> F:
    """A method that shows signs of life to the callback of its estimator, all the time."""

    @wraps(fit)
    def found(self: Any, *arguments: Any, **named: Any) -> Any:
        with beating(self.callback):
            return fit(self, *arguments, **named)

    return found  # type: ignore[return-value]
