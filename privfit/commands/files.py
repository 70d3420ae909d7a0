"""Files of records: their columns, some rows at a time.

What a file is shows in its first bytes: CSV, plain or compressed, Parquet, Arrow, a spreadsheet. A
database is asked by a query (``--sql``). A table may also be the files of a folder or of a path
with wildcards, as a `Stream` finds them. All else about a CSV file is declared: its encoding, its
delimiter, its decimal mark, whether it has a header. Nothing is inferred from records. A file with
unknown columns is never quoted: its first line may be a record.
"""

from __future__ import annotations

import argparse
import bz2
import codecs
import glob
import gzip
import io
import lzma
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import IO, Any, TypeAlias

import numpy as np

from privfit.base import extras
from privfit.base.errors import InputError
from privfit.records.csv_files import CsvReader, check_delimiter
from privfit.records.files import File, find_files
from privfit.records.sources import ArrowFile, ArrowTable, Constant, ParquetTable

__all__ = [
    "STDIN",
    "CsvForm",
    "Raw",
    "Told",
    "add_csv_form",
    "is_partitioned",
    "nearest",
    "opened",
    "size_of",
]

Told: TypeAlias = Callable[[int, int], object]  # (done, total)
Raw: TypeAlias = dict[str, Any]  # some rows of the wanted columns: cells of CSV, Arrow or objects

STDIN = "-"
BLOCK, LARGEST = 1 << 17, 1 << 22  # bytes of text read at a time: the least, and the most
BLOCKS = 100  # of a file that is large enough, so that a progress bar moves smoothly
ROWS = 1 << 14  # of other files read at a time
DELIMITERS = ",;\t|"
MOST_NAMED = 8  # columns in a message
NAMELESS = "column_"  # with its number: a column of a file without a header
TABLE = "table of records: CSV (also .gz .bz2 .xz .zst), Parquet, Arrow, .xlsx, or - for stdin"

NO_RECORDS = "{!r} has no records below its header; pass a table with records"
DAMAGED = "{!r} is a truncated or damaged {} file; copy or compress it again"

REFUSED = {
    b"SQLite format 3": "a database; pass a query: --sql 'select * from people'",
    b"\xff\xfe": "UTF-16 text; pass --encoding utf-16, or save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; pass --encoding utf-16, or save it as UTF-8",
}
WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


# ----------------------------------------------------------------------------- what is declared


@dataclass(frozen=True)
class CsvForm:
    """What is declared of a file; by default the header shows the delimiter of CSV."""

    delimiter: str | None = None
    line_breaks: bool = False
    encoding: str = "utf-8"
    decimal: str = "."
    header: bool | None = None
    sql: str | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> CsvForm:
        """As the options of a command declare it."""
        if options.delimiter is not None:
            try:
                check_delimiter(options.delimiter, "--delimiter")
            except ValueError as error:
                raise InputError(str(error)) from None
        form = cls(
            options.delimiter, options.line_breaks, _encoding(options.encoding or cls.encoding),
            options.decimal or cls.decimal, options.header, options.sql,
        )  # fmt: skip
        if form.decimal == "," and form.delimiter == ",":
            raise InputError(
                "--decimal ',' cannot also be the delimiter; pass another one, such as "
                "--delimiter ';'"
            )
        return form

    @property
    def shows_kind(self) -> bool:
        """Whether first bytes show what a file is; without a header they may be a record's."""
        return self.header is not False

    @property
    def declared(self) -> dict[str, str]:
        """What a schema file keeps of it, for later commands."""
        kept = {"decimal": self.decimal, "encoding": self.encoding}
        return {name: value for name, value in kept.items() if value != getattr(CsvForm, name)}

    @property
    def delimiters(self) -> str:
        """The declared delimiter, or those of which the header shows one."""
        if self.delimiter is not None:
            return self.delimiter
        if self.header is False:
            return ";" if self.decimal == "," else ","
        return DELIMITERS.replace(",", "") if self.decimal == "," else DELIMITERS


AS_SEEN = CsvForm()


def add_csv_form(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that reads a table."""
    form = parser.add_argument_group("table")
    form.add_argument(
        "--delimiter", metavar="CHAR", help="field delimiter; default: from the header"
    )
    form.add_argument(
        "--decimal", choices=(".", ","),
        help="decimal mark of numbers; default: that of the schema file, or a point",
    )  # fmt: skip
    form.add_argument(
        "--encoding", metavar="NAME",
        help="encoding of text; default: that of the schema file, or utf-8",
    )  # fmt: skip
    form.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None,
        help="the first line names the columns, even by numbers; or none does, and they are "
        f"called {NAMELESS}1, {NAMELESS}2, ...",
    )  # fmt: skip
    form.add_argument(
        "--line-breaks", action="store_true",
        help="allow line breaks in quoted fields; an unclosed quote then hides records",
    )  # fmt: skip
    form.add_argument(
        "--sql", metavar="QUERY", help="query of a SQLite or DuckDB file; a row must be a record"
    )


def _encoding(name: str) -> str:
    """The canonical name of an encoding in which one record cannot change how others are read."""
    try:
        found = codecs.lookup(name).name
        known = found in ("utf-8", "utf-8-sig", *WIDE) or _is_of_single_bytes(found)
    except LookupError:
        known = False
    if not known:
        raise InputError(
            f"--encoding ({name!r}) must be utf-8, utf-16, utf-32 or one of single bytes, such as "
            "latin-1 or cp1252; pass one of these, or save the file as UTF-8"
        )
    return "utf-8" if found == "utf-8-sig" else found


def _is_of_single_bytes(name: str) -> bool:
    """Whether every byte is a character by itself, and lines and fields end as in ASCII."""
    if name in ("ascii", "latin-1"):
        return True
    try:
        table = import_module(f"encodings.{name.replace('-', '_')}").decoding_table
    except (ImportError, AttributeError):
        return False
    return all(table[ord(mark)] == mark for mark in '\n\r",;\t|')


def nearest(name: str, known: list[str]) -> str:
    """' (did you mean ...?)' with the nearest of the known names, or nothing."""
    close = get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


# ------------------------------------------------------------------------------------------ opening


def size_of(path: str) -> int:
    """The size of a table on this machine in bytes; 0 for stdin, and for one that is elsewhere."""
    if path == STDIN:
        return 0
    local = (file.local for file in _files(path))
    return sum(os.path.getsize(one) for one in local if one is not None)


def is_partitioned(path: str) -> bool:
    """Whether names of folders add columns to the records in them."""
    return path != STDIN and any(file.partition for file in _files(path))


def _files(path: str) -> list[File]:
    """The files of a folder, of wildcards, or of another file system; else the file itself."""
    is_file = "://" not in path and not os.path.isdir(path)
    if is_file and (os.path.exists(path) or not glob.has_magic(path)):
        return [File(path)]
    return find_files(path)


@contextmanager
def opened(
    path: str,
    names: list[str] | None = None,
    form: CsvForm = AS_SEEN,
    told: Told | None = None,
) -> Iterator[Iterator[Raw]]:
    """Yield these columns of a table, or all named columns, some rows at a time."""
    if form.sql is not None:
        yield _refusing_none(_asked(path, form.sql, names), path)
        return
    if path == STDIN:
        yield _refusing_none(_told_apart(sys.stdin.buffer, path, names, form, told), path)
        return
    files = _files(path)
    if len(files) > 1 or files[0].partition:
        yield _refusing_none(_of_several(files, names, form, told), path)
        return
    with _bytes_of(files[0]) as file:
        yield _refusing_none(_told_apart(file, path, names, form, told), path)


def _bytes_of(file: File) -> Any:
    return io.BufferedReader(file.open())


def _of_several(
    files: list[File], names: list[str] | None, form: CsvForm, told: Told | None
) -> Iterator[Raw]:
    """The pieces of all files, with the columns that the names of their folders add."""
    for i, file in enumerate(files):
        added = {
            name: value for name, value in file.partition.items() if names is None or name in names
        }
        own = None if names is None else [name for name in names if name not in added]
        with _bytes_of(file) as content:
            for piece in _told_apart(content, str(file), own or None, form, None):
                n = len(next(iter(piece.values())))
                more = {name: Constant(value, n) for name, value in added.items()}
                yield {**(piece if own or names is None else {}), **more}
        if told is not None:
            told(100 * (i + 1) // len(files), 100)


def _refusing_none(pieces: Iterator[Raw], path: str) -> Iterator[Raw]:
    empty = True
    for piece in pieces:
        yield piece
        empty = False
    if empty:
        raise InputError(NO_RECORDS.format(path))


def _told_apart(
    file: Any, path: str, names: list[str] | None, form: CsvForm, told: Told | None
) -> Iterator[Raw]:
    """The pieces of a file, whatever it is."""
    start = file.peek(16)[:16]
    if not start:
        raise InputError(f"{path!r} is empty; pass a CSV file that begins with column names")
    shown = form.shows_kind or (form.encoding == "utf-8" and start[0] > 127)  # which is no UTF-8
    for signature, what in REFUSED.items():
        if start.startswith(signature) and form.encoding not in WIDE and shown:
            raise InputError(f"{path!r} is {what}")
    yield from _watched(_pieces(file, start, path, names, form), file, told)


def _pieces(
    file: Any, start: bytes, path: str, names: list[str] | None, form: CsvForm
) -> Iterator[Raw]:
    """The rows of a file of the kind that its first bytes show."""
    for signature, read in TABLES.items():
        if start.startswith(signature) and form.shows_kind:
            whole = file if file.seekable() else io.BytesIO(file.read())
            return read(whole, path, names)
    block = BLOCK
    if file.seekable():
        block = max(BLOCK, min(_size(file) // BLOCKS, LARGEST))
    return _csv(_decoded(_decompressed(file, start), form, path), path, names, form, block)


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _watched(pieces: Iterator[Raw], file: IO[bytes], told: Told | None) -> Iterator[Raw]:
    """Yield the same pieces and report the progress, in per cent of the file."""
    if told is None:
        yield from pieces
        return
    size, last = _size(file), 0
    for piece in pieces:
        yield piece
        now = min(100 * file.tell() // size, 99)
        if now > last:
            told(now, 100)
            last = now
    told(100, 100)


def _decompressed(file: Any, start: bytes) -> Any:
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh") and start[4:10] == b"1AY&SY":
        return bz2.BZ2File(file)
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd(file)
    return file


def _zstd(file: Any) -> Any:
    """A decompressed file: by Python from 3.14 on, else by pyarrow."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import pyarrow
        except ImportError:
            raise InputError(
                f"files compressed by zstd need pyarrow; run {extras.install('parquet')}, or "
                "decompress the file"
            ) from None
        return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")
    return zstd.ZstdFile(file)


def _decoded(content: Any, form: CsvForm, path: str) -> Any:
    return content if form.encoding == "utf-8" else _InUtf8(content, form.encoding, path)


class _InUtf8(io.RawIOBase):
    """A file in another encoding, as UTF-8.

    In an encoding of several bytes, one that is not valid could shift all that follow: such a file
    is refused. In one of single bytes, those without a meaning are replaced.
    """

    def __init__(self, content: Any, encoding: str, path: str) -> None:
        errors = "strict" if encoding in WIDE else "replace"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._content, self._left, self._ended = content, b"", False
        self._refusal = f"{path!r} is not valid {encoding} text; pass its --encoding"

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self._left and not self._ended:
            raw = self._content.read(max(len(room) // 4, 1))
            self._ended = not raw
            try:
                self._left = self._decoder.decode(raw, final=self._ended).encode()
            except UnicodeError:
                raise InputError(self._refusal) from None
        part, self._left = self._left[: len(room)], self._left[len(room) :]
        room[: len(part)] = part
        return len(part)


# ---------------------------------------------------------------------------------------------- CSV


def _csv(
    content: Any, path: str, names: list[str] | None, form: CsvForm, block: int
) -> Iterator[Raw]:
    try:
        reader = CsvReader(
            content, form.delimiters, form.line_breaks, block, header=form.header is not False
        )
        if form.header is False:
            header = [f"{NAMELESS}{i + 1}" for i in range(len(reader.names))]
            places = _numbered(names) if names else {name: i for i, name in enumerate(header)}
        else:
            header = [name.strip() for name in reader.names]
            _check_header(header, path)
            places = _places(header, names, path)
        for columns in reader.blocks(list(places.values())):
            yield dict(zip(places, columns, strict=True))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(DAMAGED.format(path, "gzip")) from None
    except (lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        raise InputError(DAMAGED.format(path, "compressed")) from None


def _numbered(names: list[str]) -> dict[str, int]:
    """The positions of columns of a file without a header, by their names."""
    places = {}
    for name in names:
        number = name.removeprefix(NAMELESS)
        if number == name or not number.isdecimal() or not 0 < int(number) <= 1 << 20:
            raise InputError(
                f"column {name!r} must be called {NAMELESS}1, {NAMELESS}2, ..., since --no-header "
                "says that the file has no names; rename it in the schema, or add a header line"
            )
        places[name] = int(number) - 1
    return places


def _check_header(header: list[str], path: str) -> None:
    if not any(header):
        raise InputError(f"{path!r} must have a header line with the column names; add it")
    line = "".join(header)
    if "\0" in line:
        raise InputError(f"{path!r} contains zero bytes, so it is not a text file; save it as CSV")
    if "\ufffd" in line:  # the replacement character of invalid UTF-8
        raise InputError(
            f"{path!r} is not UTF-8 text; save the table as CSV in UTF-8, or pass --encoding"
        )


def _places(header: list[str], names: list[str] | None, path: str) -> dict[str, int]:
    """The position of each wanted column, or of every named column if all are wanted."""
    wanted = list(filter(None, header)) if names is None else names
    counts = Counter(header)
    twice = [name for name in wanted if counts[name] > 1]
    if twice:
        which = f"column {twice[0]!r}" if names else "a column"
        raise InputError(f"{path!r} has {which} more than once; rename or remove the others")
    lacking = [name for name in wanted if name not in counts]
    if lacking:
        if len(lacking) == len(wanted) > 1:
            raise InputError(
                f"{path!r} has none of the columns of the schema; its first line must name them, "
                "or pass --no-header; pass --delimiter if it is not one of , ; | or tab"
            )
        # If some columns are found, the first line is a header, whose names are public.
        seen = header if len(lacking) < len(wanted) else []
        named = [f"{name!r}{nearest(name, seen)}" for name in lacking[:MOST_NAMED]]
        more = len(lacking) - len(named)
        which = " and no column ".join(named) + (f" and {more} others" if more else "")
        raise InputError(
            f"{path!r} has no column {which}; its header must use the column names of the "
            "schema; pass --delimiter if it is not one of , ; | or tab"
        )
    places = {name: place for place, name in enumerate(header)}
    return {name: places[name] for name in wanted}


# ------------------------------------------------------------------------------------ other tables


def _arrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            f"{what} need pyarrow; run {extras.install('parquet')}, or pass a CSV file"
        ) from None
    return pyarrow


class _Given:
    """An open file in the place of one that a table would open itself."""

    local = None

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def open(self) -> AbstractContextManager[IO[bytes]]:
        return nullcontext(self._file)


def _in_arrow(
    kind: type[ArrowTable], what: str, file: IO[bytes], path: str, names: list[str] | None
) -> Iterator[Raw]:
    """A file that a `Stream` reads in the same way."""
    pyarrow = _arrow(f"{what} files")
    table = kind(_Given(file))
    try:
        yield from table.pieces(list(_places(table.names, names, path)), ROWS)
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{path!r} is a damaged {what} file; create it again") from None


def _spreadsheet(file: IO[bytes], path: str, names: list[str] | None) -> Iterator[Raw]:
    """The first sheet of a workbook; a row is a record."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"spreadsheets need openpyxl; run {extras.install('xlsx')}, or save the sheet as CSV"
        ) from None
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception:  # openpyxl raises many kinds, with parts of the file in their texts
        raise InputError(
            f"{path!r} is a zip archive, but no spreadsheet; save it as .xlsx or CSV"
        ) from None
    with closing(book):
        rows = book.worksheets[0].iter_rows(values_only=True)
        try:
            header = ["" if name is None else str(name).strip() for name in next(rows, ())]
            _check_header(header, path)
            yield from _of_rows(rows, _places(header, names, path))
        except (InputError, MemoryError):
            raise
        except Exception:  # of a cell that cannot be read; its text would be quoted
            raise InputError(DAMAGED.format(path, ".xlsx")) from None


def _of_rows(rows: Iterator[Any], places: dict[str, int]) -> Iterator[Raw]:
    """Rows of objects as columns."""
    while part := [row for _, row in zip(range(ROWS), rows, strict=False)]:
        yield {
            name: _column([row[place] if place < len(row) else None for row in part])
            for name, place in places.items()
        }


def _column(cells: list[Any]) -> Any:
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


TABLES: dict[bytes, Callable[[IO[bytes], str, list[str] | None], Iterator[Raw]]] = {
    b"PAR1": partial(_in_arrow, ParquetTable, "Parquet"),
    b"ARROW1": partial(_in_arrow, ArrowFile, "Arrow"),
    b"PK\x03\x04": _spreadsheet,
}


# ---------------------------------------------------------------------------------------- databases


def _asked(path: str, query: str, names: list[str] | None) -> Iterator[Raw]:
    """The rows of a query, each of which must be made from one record."""
    with open(path, "rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3"):
        return _sqlite(path, query, names)
    if start[8:12] == b"DUCK":
        return _duckdb(path, query, names)
    raise InputError(f"--sql needs a SQLite or DuckDB file, which {path!r} is not; leave it out")


def _sqlite(path: str, query: str, names: list[str] | None) -> Iterator[Raw]:
    import sqlite3
    from pathlib import Path

    uri = f"{Path(path).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        database.text_factory = partial(str, encoding="utf-8", errors="replace")  # cell by cell
        try:
            rows = database.execute(query)
            header = [name for name, *_ in rows.description or ()]
            yield from _of_rows(iter(rows), _places(header, names, path))
        except sqlite3.Error as error:
            raise InputError(_wrong_query(type(error).__name__)) from None


def _duckdb(path: str, query: str, names: list[str] | None) -> Iterator[Raw]:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"DuckDB files need duckdb; run {extras.install('duckdb')}, or export a CSV file"
        ) from None
    _arrow("DuckDB files")
    with closing(duckdb.connect(path, read_only=True)) as database:
        try:
            result: Any = database.sql(query)
            if result is None:
                raise InputError(_wrong_query("no rows"))
            named = (
                "to_arrow_reader" if hasattr(result, "to_arrow_reader") else "fetch_arrow_reader"
            )
            batches = getattr(result, named)(ROWS)  # another name from DuckDB 2 on
            places = _places(batches.schema.names, names, path)
            for batch in batches:
                yield {name: batch.column(place) for name, place in places.items()}
        except duckdb.Error as error:
            raise InputError(_wrong_query(type(error).__name__)) from None


def _wrong_query(why: str) -> str:
    """What is wrong with a query; the database's own text could quote a cell."""
    return (
        f"--sql must be a query that the database can answer ({why}); try it there, and pass one "
        "that returns a row for each record"
    )
