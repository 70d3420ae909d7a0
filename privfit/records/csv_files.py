"""A CSV reader in which every record is read by itself: cells are texts until a schema reads them.

A record is a line. Nothing is inferred from records: the delimiter and UTF-8 are declared, columns
have no types, and no record changes how another one is read. Fields are quoted as in RFC 4180,
except that a quote that is not closed ends with its line. Fields beyond those of the header are
dropped, and fields that a record lacks are missing. `privfit/_kernels/cells.pyx` has the exact
rules.

An empty line is a record, too: its first cell is empty, and the others are missing. Skipping it
would shift the records after it and change their number.

If `line_breaks` is declared, a quoted field may continue on the next line. Then one record can hide
others: those up to the next quote, at most `LONGEST_CELL` bytes. Declaring it accepts this
exception to the rule that a record is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.cells import count_lines, split_records
from privfit.base.errors import DeclarationError
from privfit.domains.chunks import Written
from privfit.domains.texts import bytes_of, written_numbers

__all__ = ["Cells", "CsvReader", "check_delimiter"]

Words: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

# Bytes that are read at a time. A block's text and cells stay in the cache, and its columns are
# long enough: of a quarter of these bytes, a table took 1.25 times as long to read.
BLOCK = 1 << 22
ROWS = (1 << 16) + 8  # of a block at most; columns of 2^16 cells would share the cache's places
LONGEST = 1 << 24  # bytes of a record; fields that end behind them are missing
LONGEST_CELL = 1 << 17  # bytes of a field with line breaks
LINE_FEED = 10
MARK = b"\xef\xbb\xbf"  # which some programs write before UTF-8


def check_delimiter(delimiter: Any, name: str = "delimiter") -> int:
    """The declared delimiter as a byte."""
    if (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter in '"\r\n'
    ):
        raise DeclarationError(
            f"{name} ({delimiter!r}) must be one ASCII character, and neither a quote nor the end "
            "of a line; pass one such as ';'"
        )
    return ord(delimiter)


class Cells(Written):
    """A column of CSV: (n,) texts, read when they are needed.

    A `Schema` reads their bytes. As an array they are texts, None where a record lacks the field;
    as an array of floats they are numbers, NaN where a text is not a number.
    """

    def __init__(self, text: Bytes, words: Words) -> None:
        self._text, self._words = text, words

    def __repr__(self) -> str:
        return "<Cells of private records>"

    def __len__(self) -> int:
        return len(self._words)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the column as an array: (n,)."""
        return self._words.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is not None and np.dtype(dtype).kind == "f":
            return self.numbers().astype(dtype)
        texts = np.empty(len(self), dtype=object)
        texts[:] = self.texts()
        return texts

    def block(self, first: int, rows: int) -> tuple[Bytes, Words]:
        return self._text, self._words[first : first + rows]

    def cell(self, row: int) -> str | None:
        return _text(self._text.data, int(self._words[row]))

    def tolist(self) -> list[str | None]:
        return self.texts()

    def texts(self) -> list[str | None]:
        """The texts of the cells; None where a record lacks the field."""
        whole = self._text.data
        return [_text(whole, word) for word in self._words.tolist()]

    def numbers(self) -> NDArray[np.float64]:
        """(n,) the double nearest to each cell's number; NaN where a cell is not a number."""
        return written_numbers(self._text, self._words)


def _text(whole: memoryview, word: int) -> str | None:
    if word < 0:
        return None
    raw = bytes_of(whole, word)
    return (_without_quotes(raw) if word & 1 else raw).decode("utf-8", "replace")


def _without_quotes(raw: bytes) -> bytes:
    """The text of a quoted field: doubled quotes become one, the closing one goes."""
    parts = raw.split(b'""')
    for i, part in enumerate(parts):
        before, closing, behind = part.partition(b'"')
        if closing:
            return b'"'.join([*parts[:i], before]) + b'""'.join([behind, *parts[i + 1 :]])
    return b'"'.join(parts)


class _Piece:
    """Lines that are records, not yet split."""

    def __init__(
        self, reader: CsvReader, place: NDArray[np.int32], behind: int, lines: int
    ) -> None:
        self.text = reader._text[:behind]
        self._arguments = reader._first, True, reader._delimiter, 0, LONGEST, place
        self._lines = lines

    @cached_property
    def words(self) -> Words:
        """(columns, n) the cells."""
        words = np.empty((int(self._arguments[-1].max()) + 1, self._lines), dtype=np.int64)
        count, _ = split_records(self.text, *self._arguments, words)
        return words[:, :count]


class _Later(Cells):
    """A column of lines that may not be split yet."""

    def __init__(self, piece: _Piece, column: int) -> None:
        self._text, self._piece, self._column = piece.text, piece, column

    @cached_property
    def _words(self) -> Words:  # type: ignore[override]
        return self._piece.words[self._column]


def _end_of_lines(text: Bytes) -> int:
    """Where the last whole line ends; 0 if there is none."""
    size = 1 << 10
    while True:
        [ends] = np.nonzero(text[-size:] == LINE_FEED)
        if len(ends):
            return int(max(len(text) - size, 0) + ends[-1]) + 1
        if size >= len(text):
            return 0
        size *= 16


class CsvReader:
    """Reads the header of an open file, and then its records, block by block.

    Parameters
    ----------
    file : binary file
        The file, read in order.
    delimiter : str or sequence of str
        One ASCII character; or several, of which the one that splits the header into the most
        fields is used. The names of columns are public.
    line_breaks : bool
        Whether quoted fields may contain line breaks; see the top of this module.
    block : int
        Number of bytes to read at a time. The result does not depend on it.
    header : bool
        Whether the first line names the columns. If not, it is the first record, and `names` has as
        many names as that has fields, which may differ from others.
    """

    def __init__(
        self,
        file: IO[bytes],
        delimiter: str = ",",
        line_breaks: bool = False,
        block: int = BLOCK,
        header: bool = True,
    ) -> None:
        self._file, self._block = file, block
        self._widest = LONGEST_CELL if line_breaks else 0
        self._text, self._first, self._ended = np.empty(0, dtype=np.uint8), 0, False
        self._lines = 0  # of the text, at least as many as its records
        while len(self._text) < len(MARK) and not self._ended:
            self._read_on()
        if self._text[: len(MARK)].tobytes() == MARK:
            self._first = len(MARK)
        headers = [self._header(check_delimiter(one)) for one in delimiter]
        self._delimiter, self.names, length = max(headers, key=lambda found: len(found[1]))
        if header:
            self._first += length

    def _header(self, delimiter: int) -> tuple[int, list[str], int]:
        """The delimiter, the names of the columns, and the length of the header in bytes."""
        self._delimiter = delimiter
        while True:
            cells, behind = self._split(np.zeros(1, dtype=np.int32), 1)
            if cells.shape[1] or self._is_used_up(behind):
                break
            self._read_on()
        most = np.count_nonzero(self._text[self._first : behind] == delimiter) + 1
        cells, _ = self._split(np.arange(most, dtype=np.int32), 1)
        names = [text for column in cells for text in Cells(self._text, column).texts()]
        return delimiter, [name for name in names if name is not None], behind - self._first

    def blocks(self, places: Sequence[int], rows: int = ROWS) -> Iterator[list[Cells]]:
        """The columns at these positions of the header, at most `rows` records at a time.

        Where each line is a record, lines are split when a cell of them is first asked for: by
        whoever reads the block, while the next one is on its way.
        """
        place = np.full(max(places) + 1, -1, dtype=np.int32)
        place[list(places)] = np.arange(len(places))
        rows = min(rows, ROWS)
        while True:
            yield from self._parted(place, rows) if self._widest else self._lined(place, rows)
            if self._is_used_up(self._first):
                return
            self._read_on()

    def _parted(self, place: NDArray[np.int32], rows: int) -> Iterator[list[Cells]]:
        """All whole records of the text, which may go on behind a line."""
        while True:
            cells, self._first = self._split(place, rows)
            if cells.shape[1]:
                yield [Cells(self._text, column) for column in cells]
            if cells.shape[1] < rows:
                return

    def _lined(self, place: NDArray[np.int32], rows: int) -> Iterator[list[Cells]]:
        """All whole lines of the text, each of which is a record."""
        for behind, lines in self._runs(rows):
            piece = _Piece(self, place, behind, lines)
            self._first = behind
            yield [_Later(piece, j) for j in range(int(place.max()) + 1)]

    def _runs(self, rows: int) -> Iterator[tuple[int, int]]:
        """Where runs of lines end, and how many lines a run has at most."""
        if self._lines <= rows:
            behind = _end_of_lines(self._text)
            if behind > self._first:
                yield behind, self._lines
            return
        ends = self._first + 1 + np.flatnonzero(self._text[self._first :] == LINE_FEED)
        for first in range(0, len(ends), rows):
            run = ends[first : first + rows]
            yield int(run[-1]), len(run)

    def _is_used_up(self, behind: int) -> bool:
        return self._ended and behind == len(self._text)

    def _split(self, place: NDArray[np.int32], rows: int) -> tuple[Words, int]:
        cells = np.empty((int(place.max()) + 1, min(rows, self._lines)), dtype=np.int64)
        count, behind = split_records(
            self._text, self._first, self._ended, self._delimiter, self._widest, LONGEST, place,
            cells,
        )  # fmt: skip
        return cells[:, :count], behind

    def _read_on(self) -> None:
        """Read more text, after what is left over, into new memory: earlier cells use the old."""
        rest = self._text[self._first :]
        if len(rest) > LONGEST:
            rest = self._shortened(rest)
        room = max(self._block, len(rest))
        text = np.empty(len(rest) + room + 1, dtype=np.uint8)
        text[: len(rest)] = rest
        filled = len(rest) + self._fill(text[len(rest) : -1])
        self._ended = filled < len(text) - 1
        if self._ended and filled and text[filled - 1] != LINE_FEED:
            text[filled] = LINE_FEED
            filled += 1
        self._text, self._first = text[:filled], 0
        self._lines = count_lines(self._text)

    def _shortened(self, rest: Bytes) -> Bytes:
        """The start of a record that is too long, one byte over the limit, and what follows it."""
        kept, behind = rest[: LONGEST + 1], rest[LONGEST + 1 :]
        while not len(ends := np.flatnonzero(behind == LINE_FEED)):
            behind = np.empty(self._block, dtype=np.uint8)
            behind = behind[: self._fill(behind)]
            if not len(behind):
                return np.append(kept, np.uint8(LINE_FEED))
        return np.concatenate([kept, behind[ends[0] :]])

    def _fill(self, room: Bytes) -> int:
        """Read until the buffer is full or the file ends; return the number of bytes."""
        view, filled = room.data, 0
        while filled < len(view):
            got = self._file.readinto(view[filled:])  # type: ignore[attr-defined]
            if not got:
                break
            filled += got
        return filled
