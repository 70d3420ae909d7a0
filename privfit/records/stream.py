"""More records than fit in memory: packed once into a cache on disk, then read block by block.

Each block of the source is packed into a table, and the table's arrays (int16 columns in the
kernels' own layout, a quarter of float64) are written to a memory-mapped cache file. In a pass,
every thread takes one block after the other while the system reads ahead. After its answer, a block
is released, so that no more than `memory_limit` is resident. As many of the first blocks as fit
stay in memory and are not written.

**The cache holds private records.** It has no name: the file is unlinked as soon as it is open, so
that nobody else can open it, and it is gone when the process ends, however it ends. It is in
`folder`, by default the system's folder for temporary files; choose an encrypted one if others may
read the disk.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import count
from types import FunctionType
from typing import Any, Generic
from weakref import WeakSet

import numpy as np

from privfit.base.errors import DeclarationError, access_error
from privfit.base.typing import Array, Integers
from privfit.domains import Domain
from privfit.domains.schema import Schema
from privfit.records.ahead import in_order
from privfit.records.memory import Room, check_room, give_back, limit_of, resident
from privfit.records.once import ReadRows, ReadSource
from privfit.records.rows import Rows
from privfit.records.sources import source_of
from privfit.records.sums import Make, Question, R, Sums, share_threads

READ_ONCE = 0.25  # share of free memory for blocks that are to be coded, which takes as much again


class Stream:
    """Records on disk, or more than fit in memory, for the `fit` of an estimator.

    `fit(stream, y)` takes the labels y as an array or a .npy path if the source is an array, and as
    the name of a column if it is a table.

    Parameters
    ----------
    source : array, path, list of paths or Arrow table
        A (memory-mapped) array; a .npy file; .csv, .tsv (both also .gz), .parquet, .arrow or
        .feather files, a folder of them, or a path with wildcards. Folders called
        ``column=value`` add that column. Parquet and Arrow need the extra ``privfit[parquet]``, and
        paths such as ``s3://...`` the extra ``privfit[remote]``.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the whole process while records are read and asked: a text
        such as ``"1GB"`` or a number of bytes. It determines the size of blocks and how many of
        them stay in memory. A limit that is too low beside what the process holds and a model needs
        is refused before a record is read, or, where the size of the model depends on the number of
        records, before anything is charged. None stands for 1 GB beside both.
    columns : sequence of str or None, default=None
        The columns of a table that make up a record; by default all but that of the labels.
    folder : path or None, default=None
        Folder of the cache, which holds private records; by default the system's folder for
        temporary files. The cache is a file without a name that is gone when the process ends.
    progress : callable (blocks) -> object or None, default=None
        Called with the number of blocks packed so far. This number is private: do not publish it.
    delimiter : str, default=","
        The character between the fields of CSV files. It is declared, not guessed: pass a tab
        for .tsv files.
    line_breaks : bool, default=False
        Whether quoted fields of CSV files may contain line breaks. By default a record is a line,
        and no record can change how another one is read. With line breaks, a quote that is not
        closed hides the records up to the next quote: pass True only for files in which all quotes
        are closed.

    See Also
    --------
    LogisticRegression, KMeans : Estimators whose `fit` takes a stream.

    Notes
    -----
    A stream releases nothing. The fitted model is the same as that of the same records in memory,
    bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, Stream
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3)).astype(np.float32)
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[False, True], random_state=0)
    >>> streamed = model.fit(Stream(X, memory_limit="4GB"), y).coef_
    >>> bool((streamed == model.fit(X, y).coef_).all())
    True
    """

    def __init__(
        self,
        source: Any,
        *,
        memory_limit: str | int | None = None,
        columns: Sequence[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[int], object] | None = None,
        delimiter: str = ",",
        line_breaks: bool = False,
    ) -> None:
        self._limit = limit_of(memory_limit)
        self._source: Any = source_of(source, columns, delimiter, line_breaks)
        self._folder, self._progress = folder, progress
        self._left = self._later = 0  # bytes of the limit that are left to a model, or may be
        # Of the first reading in a fit: what was held before it, and the bytes of its blocks, which
        # fit later, too. Copies share the list; None if each reading stands by itself.
        self._first: list[int] | None = None

    def __repr__(self) -> str:
        return "<Stream of private records>"

    @property
    def columns(self) -> list[str] | None:
        """The names of the records' columns; None if they have no names."""
        return self._source.columns

    def kinds(self, y: Any = None) -> dict[str, str]:
        """The kinds of the columns, from the types that the source declares; no cell is read.

        Parameters
        ----------
        y : array, path, str or None, default=None
            The labels; the name of their column is left out.

        Returns
        -------
        dict of str to str
            'number', 'boolean' or 'category', by the name of the column.
        """
        return self._source.kinds(y)

    def blocks(self) -> Iterator[Any]:
        """The records, block by block, with all columns of the stream.

        Yields
        ------
        array or dict of columns
            Some records, which are private.
        """
        room = Room(self._limit, None, self._source.reader_bytes(None))
        for records, _ in self._source.blocks(None, room.block):
            yield records

    def of_a_fit(self) -> Stream:
        """A stream of the same records, for a fit that may read them several times.

        Returns
        -------
        Stream
            The stream. Whether its limit is too low is decided when it is read first.
        """
        other = copy(self)
        other._first = []
        return other

    def leaving(self, room: int, most: int = 0) -> Stream:
        """A stream of the same records, which leaves memory to what is computed of them.

        Parameters
        ----------
        room : int
            The bytes to leave. They depend on public facts alone.
        most : int, default=0
            Bytes that may be asked for later, which blocks that stay in memory leave free under a
            declared limit.

        Returns
        -------
        Stream
            The stream; it is refused when it is read, if its limit is too low for that.
        """
        other = copy(self)
        other._left, other._later = room, max(0, most - room)
        return other

    def check_room(self) -> None:
        """Refuse a limit without room for a model whose size follows from the records' number.

        Blocks in memory leave room for it. They do not count here: they depend on records.
        """
        held = self._first[0] if self._first else resident()
        check_room(self._limit, held, self._left)

    def read_once(
        self, schema: Schema, y: Any, classes: Array, n_threads: int | None = None
    ) -> Stream:
        """Read the source into the cache; the result passes over that, and not over the source.

        Parameters
        ----------
        schema : Schema
            The declared columns, which may have blanks.
        y : array, path or str
            The labels, or the name of their column.
        classes : array
            The declared labels.
        n_threads : int or None, default=None
            Number of threads.

        Returns
        -------
        Stream
            A stream of the same records for any schema of the same kinds. It is private.
        """
        make = partial(ReadRows.pack, schema=schema, classes=classes)
        cached: Any = self._placed(y, make, n_threads, staying=READ_ONCE)
        again = copy(self)
        again._source = ReadSource(list(schema.columns), cached.tables)
        return again

    def place(
        self, y: Any, make: Make[R], n_threads: int | None = None, more_columns: int = 0
    ) -> Sums[R]:
        """Pack the blocks into a cache on disk.

        Parameters
        ----------
        y : array, path or str
            The labels, or the name of their column.
        make : callable (records, labels) -> Rows
            Packs a block of records.
        n_threads : int or None, default=None
            Number of threads.
        more_columns : int, default=0
            Number of columns that a packed record has in addition to its own.

        Returns
        -------
        Sums
            Sums over the packed records. They are private.
        """
        return self._placed(y, make, n_threads, more_columns)

    def _placed(
        self,
        y: Any,
        make: Make[R],
        n_threads: int | None,
        more_columns: int = 0,
        staying: float | None = None,
    ) -> _Streamed[R]:
        source = self._source
        reader = source.reader_bytes(y)  # which looks at the declared columns of all files
        first, left = self._first, (self._left, self._later)
        room = Room(self._limit, n_threads, reader, staying, *left, again=bool(first))
        block = max(room.block, first[1]) if first else room.block
        if first is not None:
            first[:] = first or [room.held, block]
        cache = _Cache(self._folder)
        packed = in_order(
            lambda block: make(*block), source.blocks(y, block, more_columns), room.packers
        )
        blocks: list[_Block[R]] = []
        for table in _joined(packed, room.packed):
            blocks.append(_Block(table, cache, room))
            del table  # its memory is that of the next block
            room.tidy()
            if self._progress is not None:
                self._progress(len(blocks))
        give_back()
        return _Streamed(blocks, n_threads)


def _joined(tables: Iterator[R], most: int) -> Iterator[R]:
    """The same records in tables of about this many bytes, as far as they can be joined."""
    group: list[R] = []
    total = 0
    for table in tables:
        size = 0 if table.kind is None else table.nbytes
        if group and (table.kind is None or table.kind != group[0].kind or total + size > most):
            yield _taken(group)
            total = 0
        group.append(table)
        total += size
        del table  # whoever gets it may free it
    if group:
        yield _taken(group)


def _taken(group: list[R]) -> R:
    """All records of a group of tables in one, and none are left in the group."""
    first, *others = group
    group.clear()
    return first.joined(others) if others else first


@dataclass(frozen=True, repr=False)
class _Region:
    """Mapped bytes of the cache, aligned to a page."""

    memory: mmap.mmap
    start: int
    length: int

    @property
    def view(self) -> memoryview:
        """The bytes themselves, read-only."""
        return memoryview(self.memory)[self.start : self.start + self.length]

    def let_go(self) -> None:
        """Return the pages to the system; they are read again on the next access."""
        with suppress(AttributeError):  # a system without madvise gives them back by itself
            self.memory.madvise(mmap.MADV_DONTNEED, self.start, self.length)


_FORKED: WeakSet[_Cache | _Streamed[Any]] = WeakSet()  # what a forked child must not use as it is


def _after_fork() -> None:
    for one in list(_FORKED):
        one.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


class _Cache:
    """A file without a name, to which bytes are written and from which they are mapped.

    It is mapped in segments, each twice as long as the last: a map takes a file descriptor. A
    forked child goes on in a file of its own: its parent writes to the same places of this one.
    """

    def __init__(self, folder: Any) -> None:
        self._folder, self._lock, self._is_parents = folder, threading.Lock(), False
        self._begin()
        _FORKED.add(self)

    def _begin(self) -> None:
        try:
            # 0600, and unlinked at once; it lives as long as the tables that are mapped from it.
            self._file = tempfile.TemporaryFile(buffering=0, dir=self._folder)  # noqa: SIM115
        except OSError as error:
            raise DeclarationError(
                f"folder ({str(self._folder)!r}) must be writable for a cache "
                f"({error.strerror}); pass another folder"
            ) from None
        self._first = self._size = self._used = 0  # of the last segment
        self._memory: mmap.mmap | None = None

    def after_fork(self) -> None:
        """In a child, where no thread holds the lock."""
        self._lock, self._is_parents = threading.Lock(), True

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def write(self, chunks: list[memoryview]) -> _Region:
        """A region with these chunks, each at a multiple of 64 bytes from its start."""
        offsets, length = _offsets(chunks)
        with self._lock:  # tables that answer at the same time write what they keep
            if self._is_parents:
                self._begin()
                self._is_parents = False
            try:
                return self._write(chunks, offsets, length)
            except OSError as error:
                raise access_error(
                    error.errno,
                    f"the cache of packed records cannot be written ({error.strerror}); free some "
                    f"disk space, or pass Stream(..., folder=...) with more",
                ) from None

    def _write(self, chunks: list[memoryview], offsets: list[int], length: int) -> _Region:
        if self._memory is None or self._used + length > self._size:
            self._first += self._size
            self._size, self._used = _whole_pages(max(2 * self._size, length)), 0
            self._file.truncate(self._first + self._size)  # takes no room before it is written
            self._memory = mmap.mmap(
                self._file.fileno(), self._size, offset=self._first, access=mmap.ACCESS_READ
            )
            # Linux then reads two megabytes ahead, and maps as many at a time where the file system
            # can: a pass over a cold cache took half as long, 1.3 times less CPU over a warm one.
            with suppress(AttributeError, OSError):
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        for chunk, offset in zip(chunks, offsets, strict=True):
            self._file.seek(self._first + self._used + offset)
            while chunk:
                chunk = chunk[self._file.write(chunk) :]
        region = _Region(self._memory, self._used, length)
        self._used += _whole_pages(length)
        return region


def _offsets(chunks: list[memoryview]) -> tuple[list[int], int]:
    """Where chunks begin, on cache lines, and the length of all of them."""
    ends = np.cumsum([0, *(-(-chunk.nbytes // 64) * 64 for chunk in chunks)]).tolist()
    return ends[:-1], max(1, ends[-1])


def _whole_pages(length: int) -> int:
    return -(-length // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


class _Pickler(pickle.Pickler):
    """Pickles a table without its arrays, and without what is kept as it is.

    Functions and classes may be unnamed; a domain is large if it has many columns, and is that of
    all blocks.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.named: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, type | FunctionType | Domain):
            return None
        self.named.append(value)
        return len(self.named) - 1


class _Unpickler(pickle.Unpickler):
    named: list[Any]

    def persistent_load(self, index: int) -> Any:
        return self.named[index]


def _taken_apart(table: Rows) -> tuple[bytes, list[Any], list[memoryview]]:
    """The table without its arrays, what is kept as it is, and the arrays as raw memory."""
    buffers: list[pickle.PickleBuffer] = []
    pickler = _Pickler(form := BytesIO(), protocol=5, buffer_callback=buffers.append)
    pickler.dump(table)
    return form.getvalue(), pickler.named, [buffer.raw() for buffer in buffers]


class _Block(Generic[R]):
    """A table, and the regions of the cache that its arrays are mapped from; none if in memory."""

    def __init__(self, table: R, cache: _Cache, room: Room) -> None:
        form, named, chunks = _taken_apart(table)
        offsets, length = _offsets(chunks)
        self._regions = [] if room.keeps(length) else [cache.write(chunks)]
        for region in self._regions:
            views = [region.view[i : i + c.nbytes] for i, c in zip(offsets, chunks, strict=True)]
            unpickler = _Unpickler(BytesIO(form), buffers=views)
            unpickler.named = named
            table = unpickler.load()
        self.table = table
        table.passing = True
        # The table must not hold what holds it.
        table.keep = partial(_keep, cache, self._regions)  # type: ignore[method-assign]

    def let_go(self) -> None:
        """Return its pages to the system."""
        for region in self._regions:
            region.let_go()


def _keep(cache: _Cache, regions: list[_Region], values: Array) -> Array:
    """The array in the cache, mapped, with its region among those of its table."""
    regions.append(cache.write([np.ascontiguousarray(values).data.cast("B")]))
    return np.frombuffer(regions[-1].view, values.dtype, values.size).reshape(values.shape)


class _Streamed(Sums[R]):
    """Sums over blocks, each answered by one of a few threads."""

    def __init__(self, blocks: list[_Block[R]], n_threads: int | None) -> None:
        tables = [block.table for block in blocks]
        self._count([one.n_records for one in tables], [one.n_features for one in tables])
        self._blocks, self._at_once = blocks, share_threads(tables, n_threads)
        self.after_fork()
        _FORKED.add(self)

    def after_fork(self) -> None:
        """Threads that exist in this process; they start when they are needed."""
        self._threads = ThreadPoolExecutor(self._at_once, thread_name_prefix="privfit")

    def tables(self) -> Iterator[R]:
        """The packed blocks, one after the other."""
        for block in self._blocks:
            yield block.table
            block.let_go()

    def _try_one(self, question: Question[R, Integers]) -> None:
        question(self._blocks[0].table)
        self._blocks[0].let_go()

    def _sum(self, question: Question[R, Integers]) -> Integers:
        turns, stopped = count(), threading.Event()

        def answer() -> Integers | None:
            """The sum of blocks that this thread was the first to take."""
            total = None
            while (turn := next(turns)) < len(self._blocks) and not stopped.is_set():
                block = self._blocks[turn]
                total = _added(total, question(block.table))
                block.let_go()
            return total

        asked = [self._threads.submit(answer) for _ in range(self._at_once)]
        try:
            totals = [total for one in asked if (total := one.result()) is not None]
        finally:  # after an error or Ctrl-C nobody is left answering when the next one asks
            stopped.set()
            wait(asked)
        return np.asarray(sum(totals[1:], totals[0]))


def _added(total: Integers | None, answer: Integers) -> Integers:
    return np.array(answer) if total is None else total + answer
