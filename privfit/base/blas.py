"""How many threads BLAS may use: one for small matrices, and no more than a caller allowed.

BLAS shares the decomposition of a matrix of a hundred columns among all cores, many small pieces at
a time, and waits for every one of them. This gains nothing, loses much where another process needs
a core (beside two busy ones `eigh` of 136 columns took 24 to 320 ms instead of 2), and the last
bits of an answer then depend on the number of cores.

The number is one for the whole process, whoever sets it. So blocks may overlap, in one thread or in
several, and the smallest of their numbers counts. A forked child begins without blocks, since the
threads that opened them are not in it, and with the number that it found: to set it while the child
begins could wait for a thread of BLAS that is not in it either.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["at_most", "one_thread"]

_lock = threading.RLock()
_blocks: dict[object, int] = {}  # the number of threads that each open block allows
_before: list[tuple[Any, int]] = []  # libraries that had more than one thread, and how many


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS of numpy and of others; found once, since looking for them takes milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn
    except ImportError:  # as in an environment without it: nobody knows how many threads there are
        return ()
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def at_most(n_threads: int | None) -> Iterator[None]:
    """Let BLAS use at most so many threads within a block; None leaves it as it is."""
    if n_threads is None:
        yield
        return
    block = object()
    with _lock:
        if not _blocks:
            counts = ((one, one.get_num_threads()) for one in _libraries())
            _before[:] = [(one, count) for one, count in counts if count and count > 1]
        _blocks[block] = n_threads
        _set()
    try:
        yield
    finally:
        with _lock:
            if _blocks.pop(block, None) is not None:  # not opened before a fork
                _set()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread within a block."""
    with at_most(1):
        yield


def _set() -> None:
    """Give each library what all open blocks allow, or what it had before."""
    for one, count in _before:
        wanted = min(count, *_blocks.values()) if _blocks else count
        if one.get_num_threads() != wanted:
            one.set_num_threads(wanted)


def _before_fork() -> None:
    """No thread is setting a number while a child is made: it would leave locks of BLAS behind."""
    _lock.acquire()


def _after_fork_here() -> None:
    _lock.release()


def _after_fork_there() -> None:
    global _lock
    _lock = threading.RLock()
    _blocks.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_here, after_in_child=_after_fork_there
    )
