"""How much memory a stream takes: block sizes and packers that keep the declared limit.

The limit is on the resident memory of the whole process. What the process holds already, Python and
its libraries included, is measured when a stream is read. Of the rest, one part is for blocks that
stay in memory, and the other for work: blocks that are being read and packed, with the copies that
this takes, and later those that answer. A limit that leaves too little is refused before a record
is read, or, where the size of a model depends on the number of records, after that and before the
charge. Sizes of blocks follow from the limit, the number of threads and the declared columns.

Freed memory does not return to the system by itself: `give_back` asks for it.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import re
import sys
from contextlib import suppress
from functools import cache
from typing import Any

from privfit._kernels import threads
from privfit.base.errors import DeclarationError
from privfit.base.validation import is_whole

__all__ = ["Room", "check_room", "give_back", "limit_of", "resident"]

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
LEAST_LIMIT = 64 * 10**6  # Python and numpy take as much by themselves
USUAL_ROOM = 10**9  # beside what the process holds, if no limit is declared

LARGEST_BLOCK = 1 << 26  # bytes of a block before it is packed
# Bytes of a packed block. A gradient of 2,000,000 x 50 from the page cache took 1.05 times the CPU
# of one from memory with blocks of 16 MB, and 1.34 times with 4 MB: a block costs 0.1 ms by itself.
PACKED_BLOCK = 1 << 24
MOST_PACKERS = 4  # blocks that are packed at a time

LEAST_ROOM = 40 * 10**6  # for one packer, its block and all below
AT_HAND = 28 * 10**6  # buffers of BLAS and of kernels, threads, modules that a fit imports
PACKER = 32 * 10**6  # room that is worth another packer
COPIES = 5  # a block while it is packed: cells, numbers read from them, codes and packed records
STAYING = 0.5  # share of the free memory that is for blocks that stay
ROUNDED = 50 * 10**6  # limits that messages suggest: nobody needs to know more of the process


def limit_of(limit: Any) -> int | None:
    """'1GB' as a number of bytes; None stays None."""
    if limit is None:
        return None
    text = str(limit) if is_whole(limit) else limit
    found = isinstance(text, str) and re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    size = float(found[1]) * UNITS.get(found[2].upper(), 0) if found else 0
    if not size:
        raise DeclarationError(
            f"memory_limit ({limit!r}) must be a size; pass a text such as '1GB' or a number of "
            "bytes"
        )
    if size < LEAST_LIMIT:
        raise DeclarationError(
            f"memory_limit ({limit!r}) must be at least 64MB; pass a text such as '1GB' or a "
            "number of bytes"
        )
    return int(size)


def resident() -> int:
    """Resident memory of this process in bytes; 0 if the system does not report it."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE
    return 0


@cache
def _trim() -> Any:
    """What returns freed memory of the C library to the system; None if it cannot."""
    with suppress(OSError, AttributeError, TypeError):
        return ctypes.CDLL(None).malloc_trim
    return None


def give_back() -> None:
    """Return freed memory to the system: that of the C library, and that of Arrow."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


def check_room(limit: int | None, held: int, left: int, later: int = 0) -> None:
    """Refuse a limit that is too low for a block, beside what is held and what is left to a model.

    What is held is measured before records are read, so that nothing here depends on them. The
    limit that is proposed has room for what may be asked for later as well.
    """
    if limit is None or limit - held - left >= LEAST_ROOM:
        return
    most = left + later
    least, sure = (math.ceil((held + asked + LEAST_ROOM) / ROUNDED) * ROUNDED // 10**6
                   for asked in (left, most))  # fmt: skip
    model = f", and for a model of up to {most // 10**6} MB" if most > ROUNDED else ""
    remedy = ", or declare more of its columns" if most > ROUNDED else ""
    less = f" ('{least}MB' may do: that depends on the number of records)" if least < sure else ""
    raise DeclarationError(
        f"memory_limit ({limit} bytes) must leave room to read and pack a block{model}, "
        f"beside what the process holds; pass memory_limit='{sure}MB' or more{less}{remedy}"
    )


class Room:
    """What one reading of a source may take.

    Parameters
    ----------
    limit : int or None
        The declared limit on the memory of the process; None for what it holds and `USUAL_ROOM`.
    n_threads : int or None
        Number of threads.
    reader : int
        Bytes that the source's reader takes, however short its blocks are.
    staying : float
        Share of the free memory for blocks that stay.
    left, later : int
        Bytes that are left to a model of the records, and those that it may ask for later. Without
        a limit nothing is refused later, and blocks that stay leave only the former.
    again : bool
        Whether the same records were read before, so that too little room is no reason to stop.

    Attributes
    ----------
    held : int
        Bytes that the process held, and those of the reader.
    block, packed : int
        Bytes of a block as its source counts them, and of a packed one.
    packers : int
        Number of blocks that are packed at a time.
    """

    def __init__(
        self,
        limit: int | None,
        n_threads: int | None,
        reader: int = 0,
        staying: float | None = None,
        left: int = 0,
        later: int = 0,
        again: bool = False,
    ) -> None:
        give_back()
        self.held = resident() + reader
        taken = self.held + left
        self._limit = taken + USUAL_ROOM if limit is None else limit
        free = self._limit - taken
        if not again:
            check_room(limit, self.held, left, later)
        free = max(free, LEAST_ROOM)
        kept = max(0, free - LEAST_ROOM - (0 if limit is None else later))
        self._left = int(kept * (STAYING if staying is None else staying))
        work = free - self._left - AT_HAND
        at_once = threads.resolve(n_threads)
        self.packers = max(1, min(at_once, MOST_PACKERS, work // PACKER))
        # One packed block grows while another is written; later each thread has one mapped.
        self.packed = min(PACKED_BLOCK, LARGEST_BLOCK, work // max(8, 2 * at_once))
        self.block = min(LARGEST_BLOCK, 3 * work // (4 * COPIES * (self.packers + 1)))
        self._full = self._limit - left - work // 2

    def keeps(self, length: int) -> bool:
        """Whether a packed block of so many bytes may stay in memory; if so, it is counted."""
        if length > self._left or resident() + length > self._full:
            return False
        self._left -= length
        return True

    def tidy(self) -> None:
        """Return freed memory if the process comes near its limit."""
        if resident() > self._full:
            give_back()
