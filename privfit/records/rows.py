"""What all kinds of packed records share: kernel calls, and results kept between questions.

A kind of packed records answers *questions*: methods that return integers of one shape, each the
sum over its records. `sums` asks them, wherever the records are.

**A question contains everything that is needed to answer it.** It says "the moves around this
candidate", never "the moves around the current one". Packed records may keep margins from one
question to the next and update them, but this only saves time: records that were packed a moment
ago, on another machine, give the same integers. So a question may be asked twice, answered twice,
or answered by a replacement, and there is no state to restore when a worker dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from privfit._kernels import SPINNING, cores, threads
from privfit.base.typing import Array, Integers
from privfit.records.packing import PACKING, Run, tiles

P = TypeVar("P", bound="Rows")
Key = tuple[Any, ...]

SLOWEST = 4e9  # elementary steps a second, of one thread on an idle core


class KernelCalls:
    """The number of threads for a kernel, and slices of its work short enough to be interrupted."""

    tile_rows: ClassVar[int] = 256  # records whose panels and margins share two levels of cache
    slice_work: ClassVar[float] = 4e8  # steps between two looks at the keyboard, some 50 ms
    thread_work: ClassVar[float] = 2e6  # below it, a second thread costs more than it gives
    if SPINNING:  # and idle threads may take the core of one that has work: some milliseconds
        thread_work = 4e7
    patient_work: ClassVar[float] = 1e8  # above it, threads may have to wait for a core

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    def threads(self, work: float) -> int:
        """The number of threads for this number of elementary steps.

        A team of threads ends when its last one does, and a thread that has to wait for a core
        waits longer than a short call takes. So a short call asks for no more than are idle.
        """
        if work <= self.thread_work:
            return 1
        wanted = threads.team(self.n_threads, work / SLOWEST)
        if wanted == 1 or work > self.patient_work:
            return wanted
        return min(wanted, cores.idle())

    def packers(self, X: Any) -> int:
        """The number of threads that pack a table."""
        return self.threads(PACKING * X.shape[0] * X.shape[1])

    def steps(self, count: int, work: float, least: int = 1) -> Iterator[slice]:
        """`count` pieces of work in slices of bounded work; between slices Python sees Ctrl-C."""
        step = max(least, int(count * self.slice_work / max(work, 1.0)))
        for first in range(0, count, step):
            yield slice(first, min(first + step, count))


class Rows(KernelCalls):
    """Private records of one kind, packed for their kernels.

    `keep` stores an array for later; for streamed records it is stored on disk. Such records are
    `passing`: they keep only what is expensive to compute again.
    """

    passing = False

    def __init__(
        self, runs: tuple[Run, ...], n_features: int, n_threads: int | None = None
    ) -> None:
        super().__init__(n_threads)
        self.runs, self.n_features = runs, n_features
        self.n_records = sum(run.count for run in runs)
        self._kept: dict[str, tuple[Key, Any]] = {}  # of this view
        self._stored: dict[str, tuple[Key, Any]] = {}  # of all views: facts that none changes
        self._tiles: dict[int, Integers] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    # ------------------------------------------------------------------------ fewer, larger tables

    @property
    def kind(self) -> str | None:
        """Records of one kind can be joined; None for a kind that need not be."""
        return None

    @property
    def nbytes(self) -> int:
        """Size of the packed records in bytes, for a kind that can be joined."""
        raise NotImplementedError

    def joined(self: P, others: Sequence[P]) -> P:
        """One table with all their records; the tables must agree in everything else."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------ kernels' tiles

    def slices(self, work: float, rows: int | None = None) -> Iterator[Integers]:
        """All tiles of so many rows, in slices of bounded work."""
        rows = rows or self.tile_rows
        if rows not in self._tiles:
            self._tiles[rows] = tiles(self.runs, rows)
        table = self._tiles[rows]
        for part in self.steps(len(table), work):
            yield table[part]

    # -------------------------------------------------------------------- what outlasts a question

    def keep(self, values: Array) -> Array:
        """Store an array so that it can stay."""
        return values

    def __getstate__(self) -> dict[str, Any]:
        """Copies may show the same records differently, so they start without kept results."""
        return self.__dict__ | {"_kept": {}, "_tiles": {}}

    def seen(self: P, view: Callable[[P], P], key: Key) -> P:
        """A view of these records; the last one, if it was for the same key."""
        rows: P = self._last("view", key, lambda: view(self))
        rows.n_threads = self.n_threads
        return rows

    def _last(self, name: str, key: Key, make: Callable[[], Any]) -> Any:
        """The value last made under this name if it was for the same key, for reading only."""
        value = self._taken(name, key)
        if value is None:
            value = make()
        self._put(name, key, value)
        return value

    def _taken(self, name: str, key: Key = ()) -> Any:
        """Take the value stored under this name for the same key, or None.

        It is removed, so that nobody else changes it meanwhile, and nobody finds it half changed
        after an error.
        """
        known, value = self._kept.pop(name, (None, None))
        return value if known is not None and _same(known, key) else None

    def _put(self, name: str, key: Key, value: Any) -> None:
        """Keep a value for the next question, unless the records are streamed."""
        if not self.passing and value is not self:
            self._kept[name] = key, value

    def _stay(self, name: str, key: Key, make: Callable[[], Array]) -> Array:
        """The array that was last made for this key; it is kept, on disk for streamed records."""
        known, value = self._stored.get(name, (None, None))
        if known is None or not _same(known, key):
            self._stored.pop(name, None)  # before it is replaced, it makes room
            value = self.keep(make())
            self._stored[name] = key, value
        return np.asarray(value)


def _same(one: Key, other: Key) -> bool:
    if one is other:
        return True
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a is not b and not np.array_equal(a, b):
            return False
    return True
