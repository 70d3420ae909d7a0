"""What a cell of the speed benches is: a call of ours, its rivals, and when they agree.

A case is made into a `Ready`, whose `ours()` and `rivals[...]()` are plain calls:

    from bench.speed import CASES
    ready = CASES["logistic one-hot sparse"].make(threads=2)
    ready.ours()
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.measure import Call, Limits


@dataclass(frozen=True)
class Work:
    """The least a call has to do, in 256-bit vector operations and bytes.

    multiplies, loads   start at most at the rate of fused multiplications (two a cycle)
    others              additions, minima, shifts, conversions; with the multiplications, at most
                        twice that rate (four vector pipes)
    bytes               read from or written to memory, each once

    Operations of the straightforward algorithm on the packed records are counted; loop control,
    broadcasts and stores are not. A fraction above one means that a better algorithm is at work.
    """

    multiplies: float = 0
    others: float = 0
    loads: float = 0
    bytes: float = 0

    def __add__(self, more: Work) -> Work:
        return Work(*(getattr(self, f) + getattr(more, f) for f in self.__dataclass_fields__))

    def __mul__(self, times: float) -> Work:
        return Work(*(times * getattr(self, f) for f in self.__dataclass_fields__))

    def least_time(self, limits: Limits) -> tuple[float, str]:
        """Seconds at the machine's limits, and which limit binds."""
        times = {
            "arithmetic": max(
                self.multiplies / limits.vectors,
                (self.multiplies + self.others) / (2 * limits.vectors),
            ),
            "L1 loads": self.loads / limits.vectors,
            "bandwidth": self.bytes / limits.bandwidth,
        }
        bound = max(times, key=times.__getitem__)
        return times[bound], bound


@dataclass
class Ready:
    """A case with its data in place.

    ours      the call that is timed
    rivals    named alternatives; the fastest is the one a ratio is taken to
    agree     (our result, name, its result) -> None, or AssertionError
    work      the least that ours has to do, where that is known
    around    entered while the calls are timed
    close     called afterwards
    """

    size: str
    ours: Call
    rivals: dict[str, Call]
    agree: Callable[[Any, str, Any], None]
    work: Work | None = None
    around: AbstractContextManager[Any] = field(default_factory=nullcontext)
    close: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Case:
    """A cell: `build(threads, scale)` makes it ready; scale multiplies the number of records.

    target, goal    the ratio to the fastest rival that is asked for, and hoped for
    """

    group: str
    name: str
    build: Callable[[int, float], Ready] = field(repr=False)
    target: float | None = None
    goal: float | None = None
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.group}: {self.name}"

    def make(self, threads: int = 2, scale: float = 1.0) -> Ready:
        return self.build(threads, scale)


CASES: dict[str, Case] = {}


def case(
    group: str, name: str, target: float | None = None, goal: float | None = None, note: str = "",
    **settings: Any,
) -> Callable[[Callable[..., Ready]], Callable[..., Ready]]:  # fmt: skip
    """Register a builder under a name, with these settings."""
    if name in CASES:
        raise ValueError(f"name ({name!r}) must be new; pass another")
    place = Case(group, name, lambda *_: NotImplemented)
    CASES[name] = place  # stacked decorators are read downwards, applied upwards

    def register(build: Callable[..., Ready]) -> Callable[..., Ready]:
        def bound(threads: int, scale: float) -> Ready:
            return build(threads, scale, **settings)

        CASES[name] = Case(group, name, bound, target, goal, note)
        return build

    return register


def scaled(n: int, scale: float) -> int:
    """How many records a case has."""
    return max(64, round(n * scale))


def within(tolerance: float, to_real: Callable[[Any], Any]) -> Callable[[Any, str, Any], None]:
    """An `agree` that compares our result, made real, with the rival's."""

    def agree(ours: Any, name: str, theirs: Any) -> None:
        gap = float(np.abs(to_real(ours) - theirs).max())
        assert gap <= tolerance, f"{name} differs by {gap:g}, allowed {tolerance:g}"

    return agree


def same(ours: Any, name: str, theirs: Any) -> None:
    """An `agree` for results that must be equal to the bit."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    assert all(np.array_equal(a, b) for a, b in pairs), f"{name} differs"
