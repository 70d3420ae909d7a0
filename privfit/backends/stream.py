"""More records than memory: packed once into a cache on disk, then read back block by block.

Each block of the source is made a part, and the part's arrays (int16 columns in the kernels' own
layout, a quarter of float64) are written to a cache file. A pass maps one block after the other. A
thread brings in the next one while this one answers, and a block that has answered is let go, so
that no more is resident than `memory_limit` allows; what fits stays.

**The cache holds private records.** It has no name: the file is unlinked as soon as it is open, so
that nobody else can open it, and it is gone when the process ends, however it ends. It lies in
`folder`, by default the system's for temporary files; choose an encrypted one if disks may be read
by others.
"""

from __future__ import annotations

import mmap
import os
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.backends.parts import Make, Part, Parts
from privfit.backends.sources import source_of
from privfit.checks import is_whole
from privfit.objectives.common import Integers

Array: TypeAlias = NDArray[Any]

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
LEAST_MEMORY = 64 * 10**6  # Python, numpy and a kernel's buffers take as much by themselves
LARGEST_BLOCK = 1 << 26  # bytes: some 10 ms of work, beside which starting a block is nothing
POPULATE_READ = 22  # of madvise in Linux since 5.14: map all pages now


class Stream:
    """Records on disk, or more than memory holds, for the `fit` of an estimator.

    Parameters
    ----------
    source : array, path, list of paths or Arrow table
        A (memory-mapped) array; a .npy file; .parquet, .arrow, .feather or .csv files, or a folder
        of them. Tables need the extra ``privfit[parquet]``.
    memory_limit : str or int
        What the process may hold in memory, roughly: ``"1GB"`` or a number of bytes. It decides
        on the size of blocks and on how many of them stay.
    columns : sequence of str, optional
        The columns of a table that are records; by default all but that of the labels.
    folder : path, optional
        Where the cache lies. It holds private records: see the top of this module.
    progress : callable (blocks) -> object, optional
        Told how many blocks were packed so far; for who holds the records.

    `fit(stream, y)` takes labels y as an array or a .npy path beside an array, or as the name of a
    column of a table. The model is that of the same records in memory, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, Stream
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 3)).astype(np.float32)
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LogisticRegression(1.0, 1e-6, domain=(-1, 1), classes=[False, True], random_state=0)
    >>> streamed = model.fit(Stream(X, memory_limit="256MB"), y).coef_
    >>> bool((streamed == model.fit(X, y).coef_).all())
    True
    """

    def __init__(
        self,
        source: Any,
        *,
        memory_limit: str | int = "1GB",
        columns: Sequence[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        self._limit = _bytes(memory_limit)
        self._source = source_of(source, columns)
        self._folder, self._progress = folder, progress

    def __repr__(self) -> str:
        return "<Stream of private records>"

    @property
    def columns(self) -> list[str] | None:
        """The names of the records' columns, once they were read."""
        return self._source.columns

    def place(self, y: Any, make: Make, n_threads: int | None) -> Parts:
        """The parts that `make` makes of the blocks, in a cache on disk."""
        cache = _Cache(self._folder)
        # Packing holds a block of the source, its float64 form and the packed one; a pass two.
        room = min(LARGEST_BLOCK, self._limit // 16)
        parts = []
        for X, labels in self._source.blocks(y, room):
            parts.append(_Mapped(make(X, labels, n_threads), cache))
            del X, labels
            if self._progress is not None:
                self._progress(len(parts))
        return _Streamed(parts, stays=self._limit // 2)


def _bytes(limit: Any) -> int:
    """'1GB' as a number of bytes."""
    text = str(limit) if is_whole(limit) else limit
    found = isinstance(text, str) and re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    size = float(found[1]) * UNITS.get(found[2].upper(), 0) if found else 0
    if size < LEAST_MEMORY:
        raise ValueError(
            f"memory_limit ({limit!r}) must be at least 64MB; pass a text such as '1GB' or a "
            "number of bytes"
        )
    return int(size)


class _Cache:
    """A file without a name that arrays are written to and mapped from."""

    def __init__(self, folder: Any) -> None:
        try:
            # 0600, and unlinked at once; it lives as long as the parts that are mapped from it.
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise ValueError(
                f"folder ({str(folder)!r}) must be one that a cache can be written to "
                f"({error.strerror}); pass another folder"
            ) from None
        self._end = 0

    def write(self, chunks: list[memoryview]) -> mmap.mmap:
        """A map of these bytes, each chunk at a multiple of 64 from the map's beginning."""
        start = -(-self._end // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        sizes = [_padded(chunk.nbytes) for chunk in chunks]
        try:
            for chunk, offset in zip(chunks, _offsets(sizes), strict=True):
                self._file.seek(start + offset)
                self._file.write(chunk)
            self._file.flush()
            os.truncate(self._file.fileno(), start + max(1, sum(sizes)))
        except OSError as error:
            raise OSError(
                error.errno,
                f"the cache of packed records cannot be written ({error.strerror}); free some "
                "room, or pass Stream(..., folder=...) with more",
            ) from None
        self._end = start + max(1, sum(sizes))
        return mmap.mmap(
            self._file.fileno(), max(1, sum(sizes)), offset=start, access=mmap.ACCESS_READ
        )


def _padded(size: int) -> int:
    return -(-size // 64) * 64


def _offsets(sizes: list[int]) -> list[int]:
    return [0, *np.cumsum(sizes[:-1]).tolist()] if sizes else []


class _Mapped:
    """A part whose arrays are in the cache; resident only between `bring` and `let_go`."""

    def __init__(self, part: Part, cache: _Cache) -> None:
        self.n_records, self.n_features = part.n_records, part.n_features
        self._cache = cache
        buffers: list[pickle.PickleBuffer] = []
        # Out of band, the arrays are written as they are, and are mapped when it is read back.
        form = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        chunks = [buffer.raw() for buffer in buffers]
        self._maps = [cache.write(chunks)]
        view, sizes = memoryview(self._maps[0]), [_padded(chunk.nbytes) for chunk in chunks]
        places = zip(chunks, _offsets(sizes), strict=True)
        self.part: Part = pickle.loads(
            form, buffers=[view[first : first + chunk.nbytes] for chunk, first in places]
        )
        if isinstance(self.part, Part):
            self.part.passing, self.part.keep = True, self._keep  # type: ignore[method-assign]

    def _keep(self, values: Array) -> Array:
        """The array in the cache, mapped with the part."""
        if values.size == 0:
            return values
        found = self._cache.write([np.ascontiguousarray(values).data.cast("B")])
        self._maps.append(found)
        return np.frombuffer(found, values.dtype, values.size).reshape(values.shape)

    @property
    def nbytes(self) -> int:
        """What is resident of it."""
        return sum(map(len, self._maps))

    def bring(self) -> None:
        """Map all its pages, reading those that are not in memory."""
        for mapped in self._maps:
            try:
                mapped.madvise(POPULATE_READ)
            except (AttributeError, OSError, ValueError):  # an older system, or another
                np.frombuffer(mapped, np.uint8)[:: mmap.PAGESIZE].max()

    def let_go(self) -> None:
        """Give its pages back; they are read again when they are touched."""
        for mapped in self._maps:
            with suppress(AttributeError):  # a system without madvise gives them back by itself
                mapped.madvise(mmap.MADV_DONTNEED)


class _Streamed(Parts):
    """Parts in a cache on disk, asked one after the other."""

    def __init__(self, parts: list[_Mapped], stays: int) -> None:
        super().__init__([p.n_records for p in parts], [p.n_features for p in parts])
        self._parts, self._stays = parts, stays

    def sum(self, question: str, *arguments: Any) -> Integers:
        answers = (getattr(part, question)(*arguments) for part in self._passing())
        total = np.array(next(answers), dtype=np.int64)
        for answer in answers:
            total += answer
        return total

    def _passing(self) -> Iterator[Part]:
        """Each part in turn, its pages in memory; the next one is brought in meanwhile."""
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._parts[0].bring)
            resident = 0
            for i, mapped in enumerate(self._parts):
                coming.result()
                if i + 1 < len(self._parts):
                    coming = reader.submit(self._parts[i + 1].bring)
                yield mapped.part
                resident += mapped.nbytes
                if resident > self._stays:  # the first ones stay, where a pass begins
                    mapped.let_go()
                    resident -= mapped.nbytes
