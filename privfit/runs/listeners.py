"""What is called after each generation: the caller's function, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

from privfit.base.errors import DeclarationTypeError
from privfit.runs.paths import Generation
from privfit.runs.stops import says_stop

__all__ = ["Listener", "bar", "check_callback", "progress"]

Listener: TypeAlias = Callable[[Generation], object]


def check_callback(callback: object) -> None:
    """Refuse a callback that cannot be called."""
    if callback is not None and not callable(callback):
        raise DeclarationTypeError(
            f"callback ({type(callback).__name__}) must be a function; pass callback(generation)"
        )


def progress(callback: Listener | None, verbose: int, name: str) -> Listener | None:
    """The callback, after a progress bar if `verbose`; tqdm's if it is installed."""
    if not verbose:
        return callback
    show = bar(name, "generation")

    def listen(generation: Generation) -> object:
        show(generation.index, generation.total)
        answer = None if callback is None else callback(generation)
        if says_stop(answer):
            show(generation.index, generation.index)
        return answer

    return listen


def bar(name: str, unit: str) -> Callable[[int, int], object]:
    """A progress bar, to be called with (done, total); tqdm's if it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return lambda done, total: print(
            f"\r{name}: {unit} {done} of {total}",
            end="\n" if done == total else "",
            file=sys.stderr,
            flush=True,
        )
    shown, seen = tqdm(desc=name, unit=unit), 0

    def show(done: int, total: int) -> None:
        nonlocal seen
        shown.total = total
        shown.update(done - seen)
        seen = done
        if done == total:
            shown.close()

    return show
