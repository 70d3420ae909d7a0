"""Small matrices, decomposed on one thread of BLAS.

BLAS shares the decomposition of a matrix of a hundred columns among all cores, many small pieces at
a time, and waits for every one of them. This gains nothing, loses much where another process needs
a core (beside two busy ones `eigh` of 136 columns took 24 to 320 ms instead of 2), and the last
bits of an answer then depend on the number of cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_thread"]

_lock = threading.Lock()
_inside = 0
_before: list[tuple[Any, int]] = []  # libraries that had more threads, and how many


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS of numpy and of others; found once, since looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread within a block; blocks of several threads may overlap."""
    global _inside
    with _lock:
        if not _inside:
            counts = ((one, one.get_num_threads()) for one in _libraries())
            _before[:] = [(one, count) for one, count in counts if count and count > 1]
            for one, _ in _before:
                one.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for one, count in _before:
                    one.set_num_threads(count)
