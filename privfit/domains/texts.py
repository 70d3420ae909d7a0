"""Texts of cells as bytes: a table that finds their entries, and the numbers that they write.

Cells of CSV, of Arrow and of numpy's arrays of texts are runs of bytes in one buffer. A cell is one
int64, ``begin << 32 | length << 1 | odd``, and -1 if it is missing; an odd cell's text is not what
its bytes say. No Python text is made for a cell whose bytes the table knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.cells import read_numbers
from privfit._kernels.texts import add_texts, find_texts
from privfit.base.typing import Floats, Integers

__all__ = ["ROOM", "UNSEEN", "Texts", "bytes_of", "written_numbers"]

UNSEEN = -2  # the entry of a text that was not seen before
ROOM = 1 << 16  # different texts that a table remembers beside those that it was made of
LONGEST = 1 << 8  # bytes of a text that is remembered
SLOTS = 1 << 6  # of a table at least


class Texts:
    """Entries of texts, by their bytes.

    Its arrays are never written to once they are here: texts are added to copies. So threads may
    look texts up while one of them adds some, and tables that begin alike share their beginning.
    """

    def __init__(self, known: Mapping[bytes, int]) -> None:
        self._room = ROOM + len(known)
        self._state = _State(_free(SLOTS), np.zeros(1, dtype=np.uint8), 0).with_texts(known)

    @property
    def table(self) -> tuple[Integers, NDArray[np.uint8]]:
        """Slots, and bytes that are kept, for kernels that look texts up."""
        return self._state.slots, self._state.kept

    def copy(self) -> Texts:
        """A table of the same texts, to which others may be added."""
        other = Texts.__new__(Texts)
        other.__dict__.update(self.__dict__)
        return other

    def add(self, found: Mapping[bytes, int]) -> None:
        """Remember entries of texts, as far as there is room."""
        state = self._state  # of two threads that add some, one may be in vain
        short = [raw for raw in found if len(raw) <= LONGEST][: max(self._room - state.known, 0)]
        if short:
            self._state = state.with_texts({raw: found[raw] for raw in short})

    def find(
        self,
        text: NDArray[np.uint8],
        cells: Integers,
        entry: Callable[[int, bytes | None], int],
        out: Integers,
    ) -> None:
        """Write the entry of each cell; -1 if it is missing.

        ``entry(row, raw)`` is asked for entries of bytes that the table does not know, once for
        each different text, and ``entry(row, None)`` for each odd cell.
        """
        if not find_texts(text, cells, *self.table, -1, out):
            return
        found: dict[bytes, int] = {}
        for row in np.flatnonzero(out == UNSEEN).tolist():
            if cells[row] & 1:
                out[row] = entry(row, None)
                continue
            raw = bytes_of(text.data, int(cells[row]))
            if raw not in found:
                found[raw] = entry(row, raw)
            out[row] = found[raw]
        self.add(found)


class _State(NamedTuple):
    """Slots of a table, the bytes of its texts, and their number."""

    slots: Integers
    kept: NDArray[np.uint8]
    known: int

    def with_texts(self, found: Mapping[bytes, int]) -> _State:
        """The same with some more."""
        ends = len(self.kept) + np.cumsum([0, *map(len, found)], dtype=np.int64)
        cells = ends[:-1] << 32 | np.diff(ends) << 1
        entries = np.fromiter(found.values(), dtype=np.int64, count=len(found))
        slots, count = self.slots.copy(), self.known + len(found)
        if 2 * count > len(slots):
            taken = slots[slots[:, 2] >= 0]
            cells, entries = np.append(taken[:, 2], cells), np.append(taken[:, 3], entries)
            slots = _free(1 << (4 * count - 1).bit_length())
        kept = np.append(self.kept, np.frombuffer(b"".join(found), dtype=np.uint8))
        add_texts(cells, kept, entries, slots)
        return _State(slots, kept, count)


def _free(slots: int) -> Integers:
    return np.full((slots, 4), -1, dtype=np.int64)


def bytes_of(text: memoryview, cell: int) -> bytes:
    """The bytes of a cell that is there."""
    begin, length = cell >> 32, (cell & 0xFFFFFFFF) >> 1
    return bytes(text[begin : begin + length])


def written_numbers(text: NDArray[np.uint8], cells: Integers) -> Floats:
    """(n,) the double nearest to each cell's number; NaN where a cell writes none."""
    found = np.empty(len(cells), dtype=np.float64)
    left: NDArray[Any] = np.empty(len(cells), dtype=np.int64)
    count = read_numbers(text, cells, found, left)
    for row in left[:count].tolist():
        found[row] = float(bytes_of(text.data, int(cells[row])))
    return found
