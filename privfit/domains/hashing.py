"""Categories that nobody declared: the texts of cells, and public buckets that they are hashed to.

The bucket of a value depends on the name of its column and its canonical text alone, so that
everybody can compute it, for any value, without looking at the records. Missing cells, the texts
that stand for them and what has no canonical text are in no bucket; they are `other`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.typing import Array, Integers
from privfit.domains.chunks import is_numeric
from privfit.domains.reading import LevelReader, canonical

__all__ = ["BUCKETS", "Bucket", "BucketReader", "NameReader", "bucket_of"]

BUCKETS = 1024  # of a column
LONGEST = 256  # characters of a text that may be released as a name


def bucket_of(column: str, text: str) -> int:
    """The bucket of a canonical text.

    >>> bucket_of("job", "nurse"), bucket_of("job", "clerk"), bucket_of("work", "nurse")
    (529, 774, 78)
    """
    return zlib.crc32(f"{column}\0{text}".encode("utf-8", "surrogatepass")) % BUCKETS


@dataclass(frozen=True)
class Bucket:
    """A value of which nothing but its bucket is kept."""

    number: int


class _OpenReader(LevelReader):
    """A reader of values that are not declared; `missing` are texts that stand for none."""

    def __init__(self, missing: Iterable[str] = ()) -> None:
        super().__init__({})
        self._missing = frozenset(canonical(token) for token in missing)

    def place(self, text: Any) -> int:
        """The code of a value; -1 if it is missing or has no text."""
        read = canonical(text)
        return self._code(read) if isinstance(read, str) and read not in self._missing else -1

    def _code(self, text: str) -> int:
        """The code of a canonical text."""
        raise NotImplementedError

    def _write(self, cells: Any, out: Array, odd: int) -> bool:
        if not (isinstance(cells, np.ndarray) and is_numeric(cells)):
            return super()._write(cells, out, odd)
        different, where = np.unique(np.ma.getdata(cells), return_inverse=True)
        codes = np.array([self.place(value) for value in different.tolist()], dtype=np.int64)
        codes[codes < 0] = odd
        out[:] = codes[where.ravel()]
        out[np.ma.getmaskarray(cells)] = odd
        return bool((out == odd).any())


class BucketReader(_OpenReader):
    """Finds the bucket of each cell of a column."""

    def __init__(self, column: str, missing: Iterable[str] = ()) -> None:
        super().__init__(missing)
        self._column = column

    def place(self, text: Any) -> int:
        return text.number if isinstance(text, Bucket) else super().place(text)

    def _code(self, text: str) -> int:
        return bucket_of(self._column, text)


class NameReader(_OpenReader):
    """Numbers the different texts of a column; `counts` counts them."""

    def __init__(self, missing: Iterable[str] = ()) -> None:
        super().__init__(missing)
        self._numbers: dict[str, int] = {}

    def _code(self, text: str) -> int:
        if len(text) > LONGEST or not _is_valid(text):
            return -1
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        """The different texts seen so far, by their number; they are private."""
        return list(self._numbers)

    def counts(self, column: Any) -> dict[str, int]:
        """How many cells have each text; it is private."""
        codes: Integers = self.codes(column)
        found = np.bincount(codes[codes >= 0], minlength=len(self._numbers)).tolist()
        return {text: count for text, count in zip(self._numbers, found, strict=True) if count}


def _is_valid(text: str) -> bool:
    """Whether a text can be written to a file; half of a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
