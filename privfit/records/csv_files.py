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


class Cells:
    """A column of CSV: (n,) texts, read when they are needed.

    A `Schema` reads them by `read_codes` and `read_numbers`. As an array they are texts, None where
    a record lacks the field; as an array of floats they are numbers, NaN where a text is not a
    number.
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

    def texts(self) -> list[str | None]:
        """The texts of the cells; None where a record lacks the field."""
        whole = self._text.data
        return [_text(whole, word) for word in self._words.tolist()]

    def numbers(self) -> NDArray[np.float64]:
        """(n,) the double nearest to each cell's number; NaN where a cell is not a number."""
        found = np.empty(len(self), dtype=np.float64)
        left = np.empty(len(self), dtype=np.int64)
        count = read_numbers(self._text, self._words, found, left)
        whole = self._text.data
        for row in left[:count].tolist():
            found[row] = float(_raw(whole, int(self._words[row])))
        return found

    def read_numbers(self, reader: Any) -> NDArray[np.float64]:
        """(n,) the numbers; NaN where ``reader.number(text)`` finds none."""
        numbers = self.numbers()
        for row in reader.doubtful(numbers).tolist():
            numbers[row] = reader.number(_text(self._text.data, int(self._words[row])))
        return numbers

    def read_codes(self, reader: Any) -> NDArray[np.int64]:
        """(n,) ``reader.place(text)`` of each cell, called once for each text; -1 if missing."""
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
    """The text of a quoted field: doubled quotes become one, the closing one goes."""
    parts = raw.split(b'""')
    for i, part in enumerate(parts):
        before, closing, behind = part.partition(b'"')
        if closing:
            return b'"'.join([*parts[:i], before]) + b'""'.join([behind, *parts[i + 1 :]])
    return b'"'.join(parts)


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
        """The columns at these positions of the header, at most `rows` records at a time."""
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
        self._lines = int(np.count_nonzero(self._text == LINE_FEED))

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
