"""Work on a sequence, a few items at a time, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")
R = TypeVar("R")


def in_order(work: Callable[[T], R], items: Iterator[T], at_once: int) -> Iterator[R]:
    """``work(item)`` of each item in order; `at_once` of them are worked on at the same time.

    An item is fetched when there is room for it, by whoever asks for results.
    """
    if at_once == 1:
        yield from map(work, items)
        return
    waiting = deque[Future[R]]()
    with ThreadPoolExecutor(at_once, thread_name_prefix="privfit") as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            del item
            if len(waiting) == at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
