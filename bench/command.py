"""What all subjects do with the options of `python -m bench`."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def chosen(
    options: argparse.Namespace, cells: Iterable[T], name: Callable[[T], str],
    shown: Callable[[T], str] | None = None,
) -> list[T]:  # fmt: skip
    """The cells whose name matches; none if they are only listed, as all are if no one matches."""
    every = list(cells)
    found = [cell for cell in every if options.filter.search(name(cell))]
    if options.list or not found:
        print(*map(shown or name, found or every), sep="\n")
        return []
    return found


def is_time_left(options: argparse.Namespace) -> bool:
    """Whether the minutes are not over."""
    return bool(time.perf_counter() < options.until)


def in_time(options: argparse.Namespace, cells: Iterable[T]) -> Iterator[T]:
    """These cells, until the minutes are over."""
    return itertools.takewhile(lambda _: is_time_left(options), cells)
