"""Our own reader of CSV: cells are texts until a schema reads them, and a record is read by itself.

A record is a line. Nothing is inferred from records: the delimiter and UTF-8 are declared, columns
have no types, and no record changes how another one is read. Fields are quoted as RFC 4180 has it,
but a quote that is not closed ends with its line. Fields beyond those of the header are dropped,
fields that a record lacks are missing. `privfit/_kernels/cells.pyx` has the rules to the letter.

A line that is empty is a record, too: its first cell is empty, and the others are missing. To skip
it would shift the records behind it, and change their number.

Where `line_breaks` is declared, a quoted field may go on behind its line. Then one record can hide
others: those up to the next quote, `LONGEST_CELL` bytes of them at most. The declaration accepts
that; it is outside of the rule that a record is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.cells import code_cells, read_numbers, remember, split_records
from privfit.base.errors import DeclarationError

__all__ = ["Cells", "CsvReader", "check_delimiter"]

Words: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

BLOCK = 1 << 20  # bytes that are read at a time: a block's text and cells stay in the cache
ROWS = (1 << 16) + 8  # of a block at most; columns of 2^16 cells would share the cache's places
LONGEST = 1 << 24  # bytes of a record; fields that end behind them are missing
LONGEST_CELL = 1 << 17  # bytes of a field with line breaks
SLOTS = 1 << 10  # of the table of a column's texts, at first
LINE_FEED = 10
MARK = b"\xef\xbb\xbf"  # which some programs write before UTF-8


def check_delimiter(delimiter: Any, name: str = "delimiter") -> int:
    """The byte that a declared delimiter is."""
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


class Cells:
    """A column of CSV: (n,) texts, read when they are asked for.

    A `Schema` reads them by `read_codes` and `read_numbers`. As an array they are texts, None where
    a record lacks the field; as an array of floats they are numbers, NaN where they write none.
    """

    def __init__(self, text: Bytes, words: Words) -> None:
        self._text, self._words = text, words

    def __repr__(self) -> str:
        return "<Cells of private records>"

    def __len__(self) -> int:
        return len(self._words)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array: (n,)."""
        return self._words.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is not None and np.dtype(dtype).kind == "f":
            return self.numbers().astype(dtype)
        texts = np.empty(len(self), dtype=object)
        texts[:] = self.texts()
        return texts

    def texts(self) -> list[str | None]:
        """What the cells hold; None where a record lacks the field."""
        whole = self._text.data
        return [_text(whole, word) for word in self._words.tolist()]

    def numbers(self) -> NDArray[np.float64]:
        """(n,) the double nearest to what each cell writes; NaN where it writes no number."""
        found = np.empty(len(self), dtype=np.float64)
        left = np.empty(len(self), dtype=np.int64)
        count = read_numbers(self._text, self._words, found, left)
        whole = self._text.data
        for row in left[:count].tolist():
            found[row] = float(_raw(whole, int(self._words[row])))
        return found

    def read_numbers(self, reader: Any) -> NDArray[np.float64]:
        """(n,) the numbers, NaN where ``reader.number(text)`` says that a text stands for none."""
        numbers = self.numbers()
        for row in reader.doubtful(numbers).tolist():
            numbers[row] = reader.number(_text(self._text.data, int(self._words[row])))
        return numbers

    def read_codes(self, reader: Any) -> NDArray[np.int64]:
        """(n,) ``reader.place(text)`` of each cell, asked once for each text; -1 if it lacks."""
        codes = np.empty(len(self), dtype=np.int64)
        table, known, row = _free(SLOTS), 0, 0
        whole = self._text.data
        while (row := code_cells(self._text, self._words, row, table, -1, codes)) < len(self):
            word = int(self._words[row])
            codes[row] = code = reader.place(_text(whole, word))
            if 2 * known == len(table):
                table = self._enlarged(table)
            remember(self._text, word, code, table)
            known, row = known + 1, row + 1
        return codes

    def _enlarged(self, table: Words) -> Words:
        larger = _free(4 * len(table))
        for word, code in table[table[:, 0] >= 0].tolist():
            remember(self._text, word, code, larger)
        return larger


def _free(slots: int) -> Words:
    return np.full((slots, 2), -1, dtype=np.int64)


def _raw(whole: memoryview, word: int) -> bytes:
    """The bytes of a cell."""
    begin, length = word >> 32, (word & 0xFFFFFFFF) >> 1
    return bytes(whole[begin : begin + length])


def _text(whole: memoryview, word: int) -> str | None:
    if word < 0:
        return None
    raw = _raw(whole, word)
    return (_without_quotes(raw) if word & 1 else raw).decode("utf-8", "replace")


def _without_quotes(raw: bytes) -> bytes:
    """A quoted field: doubled quotes are one, the closing one is none, what follows stays."""
    parts = raw.split(b'""')
    for i, part in enumerate(parts):
        before, closing, behind = part.partition(b'"')
        if closing:
            return b'"'.join([*parts[:i], before]) + b'""'.join([behind, *parts[i + 1 :]])
    return b'"'.join(parts)


class CsvReader:
    """The header of a file that is open, and then its records, block by block.

    Parameters
    ----------
    file
        What bytes are read from, in order.
    delimiter
        One ASCII character; or several, of which the header chooses that which gives it the most
        fields. The names of columns are public.
    line_breaks
        Whether quoted fields may hold line breaks; see the top of this module.
    block
        Bytes that are read at a time. What is read does not depend on it.
    """

    def __init__(
        self, file: IO[bytes], delimiter: str = ",", line_breaks: bool = False, block: int = BLOCK
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
        """The columns at these places of the header, at most so many records at a time."""
        place = np.full(max(places) + 1, -1, dtype=np.int32)
        place[list(places)] = np.arange(len(places))
        rows = min(rows, ROWS)
        while True:
            cells, behind = self._split(place, rows)
            if cells.shape[1]:
                yield [Cells(self._text, column) for column in cells]
            self._first = behind
            if cells.shape[1] < rows:
                if self._is_used_up(behind):
                    return
                self._read_on()

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
        """More text, behind what is left over, in memory of its own: cells lie in what was."""
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
        self._lines = int(np.count_nonzero(self._text == LINE_FEED))

    def _shortened(self, rest: Bytes) -> Bytes:
        """The record that is too long, with one byte more than it may have, and what follows it."""
        kept, behind = rest[: LONGEST + 1], rest[LONGEST + 1 :]
        while not len(ends := np.flatnonzero(behind == LINE_FEED)):
            behind = np.empty(self._block, dtype=np.uint8)
            behind = behind[: self._fill(behind)]
            if not len(behind):
                return np.append(kept, np.uint8(LINE_FEED))
        return np.concatenate([kept, behind[ends[0] :]])

    def _fill(self, room: Bytes) -> int:
        """Read until the room is full or the file ends: how many bytes."""
        view, filled = room.data, 0
        while filled < len(view):
            got = self._file.readinto(view[filled:])  # type: ignore[attr-defined]
            if not got:
                break
            filled += got
        return filled
