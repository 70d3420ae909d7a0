"""How many threads BLAS may use: one for small matrices, and no more than a caller allowed.

BLAS shares the decomposition of a matrix of a hundred columns among all cores, many small pieces at
a time, and waits for every one of them. This gains nothing, loses much where another process needs
a core (beside two busy ones `eigh` of 136 columns took 24 to 320 ms instead of 2), and the last
bits of an answer then depend on the number of cores.

The number is one for the whole process, whoever sets it. So blocks may overlap, in one thread or in
several, and the smallest of their numbers counts.

**Forks.** OpenBLAS ends its threads before a fork, and waits for ever if they are at work for
another thread just then. So a fork waits until no other thread is in a block that lets BLAS use
several, and no such block begins before the child is made; a fit is a block of one thread. A forked
child begins without blocks, since the threads that opened them are not in it, and with the number
that it found: to set it while the child begins could wait for a thread of BLAS that is not in it
either.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, TypeVar

__all__ = ["as_declared", "at_most", "calm", "one_thread"]

F = TypeVar("F", bound=Callable[..., Any])

FORK = 60.0  # seconds that a fork waits for others: beyond, they may be waiting for the fork


@dataclass(eq=False)
class _Block:
    """What a block allows: so many threads, or one (`calm`), or what blocks of one took away."""

    most: float = math.inf
    calm: bool | None = None
    thread: int = field(default_factory=threading.get_ident)


_changed = threading.Condition(threading.RLock())
_blocks: dict[_Block, None] = {}  # that are open, in the order of their beginning
_before: list[tuple[Any, int]] = []  # libraries that had more than one thread, and how many
_forks = 0  # that wait for others


def _libraries() -> tuple[Any, ...]:
    """The BLAS of numpy and of others; SciPy may load its own later."""
    return _loaded("scipy.linalg._fblas" in sys.modules)


@cache
def _loaded(_: bool) -> tuple[Any, ...]:
    """Found once for each argument, since looking for them takes milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn
    except ImportError:  # as in an environment without it: nobody knows how many threads there are
        return ()
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def at_most(n_threads: int | None) -> Iterator[None]:
    """Let BLAS use at most so many threads within a block; None leaves it as it is."""
    with _open(_Block(math.inf if n_threads is None else n_threads)):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread within a block."""
    with _open(_Block(calm=True)):
        yield


def calm(call: F) -> F:
    """A function, the whole of which is a block of one thread."""

    @wraps(call)
    def found(*arguments: Any, **named: Any) -> Any:
        with one_thread():
            return call(*arguments, **named)

    return found  # type: ignore[return-value]


@contextmanager
def as_declared() -> Iterator[None]:
    """Within blocks of `one_thread`: what the blocks of `at_most` allow, for the code of a user."""
    with _open(_Block(calm=False)):
        yield


@contextmanager
def _open(block: _Block) -> Iterator[None]:
    with _changed:
        while _forks and not block.calm and block.thread not in _allowed():
            _changed.wait()
        if not _blocks:
            _before.clear()
        known = [one for one, _ in _before]
        counts = ((one, one.get_num_threads()) for one in _libraries() if one not in known)
        _before.extend((one, count) for one, count in counts if count and count > 1)
        _blocks[block] = None
        _set()
    try:
        yield
    finally:
        with _changed:
            if block in _blocks:  # not opened before a fork
                del _blocks[block]
                _set()
                _changed.notify_all()


def _allowed() -> dict[int, float]:
    """The number of threads that the open blocks of each thread allow."""
    most: dict[int, float] = {}
    calm: dict[int, bool] = {}
    for block in _blocks:
        most[block.thread] = min(most.get(block.thread, math.inf), block.most)
        calm[block.thread] = calm.get(block.thread, False) if block.calm is None else block.calm
    return {thread: 1 if calm[thread] else number for thread, number in most.items()}


def _set() -> None:
    """Give each library what all open blocks allow, or what it had before."""
    allowed = min(_allowed().values(), default=math.inf)
    for one, count in _before:
        wanted = int(min(count, allowed))
        if one.get_num_threads() != wanted:
            _free(one)
            one.set_num_threads(wanted)
            _free(one)


def _free(library: Any) -> None:
    """Let any thread set the number: newer versions of threadpoolctl ignore all but the first."""
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


def _others_share() -> bool:
    """Whether another thread is in a block in which BLAS may have several threads."""
    here = threading.get_ident()
    return any(number > 1 for thread, number in _allowed().items() if thread != here)


def _before_fork() -> None:
    """Wait for others; then no thread sets a number or begins a block until the child is made."""
    global _forks
    _changed.acquire()
    _forks += 1
    end = time.monotonic() + FORK
    while _before and _others_share() and time.monotonic() < end:
        _changed.wait(end - time.monotonic())
    _forks -= 1
    _changed.notify_all()


def _after_fork_here() -> None:
    _changed.release()


def _after_fork_there() -> None:
    global _changed, _forks
    _changed, _forks = threading.Condition(threading.RLock()), 0
    _blocks.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_here, after_in_child=_after_fork_there
    )
