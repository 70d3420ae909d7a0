"""Where streamed records come from: arrays, .npy, Parquet, Arrow and CSV files, block by block.

A source yields (records, labels) with a bounded number of rows, in order. It passes on columns of a
table unchanged: cells of CSV are texts, Arrow columns keep their types and dictionaries. The schema
reads each value by itself, so that files with different types are coded alike. Messages name files
and columns, never values: a reader's own message about a bad value would quote it.
"""

from __future__ import annotations

import gzip
import mmap
import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from privfit.base import extras
from privfit.base.errors import DeclarationError, InputError, MissingExtraError
from privfit.base.typing import Array
from privfit.domains.chunks import Coded
from privfit.domains.kinds import kinds_of, kinds_of_types
from privfit.records.csv_files import BLOCK, CsvReader, check_delimiter
from privfit.records.files import File, find_files

Block: TypeAlias = "tuple[Any, Any]"

CELL = 8  # bytes of a number while it is packed
LIST = 1 << 20  # bytes of a list of texts in Parquet at most, as most programs write it
LISTED = 4  # bytes of a cell beside it at most
TEXT = 96  # bytes of a text while it is packed: a Python string and its place in an array
PAGE = 1 << 20  # bytes of a page of Parquet, and of a list before it, as most programs write them
BUFFER = 1 << 16  # bytes of a column of Parquet that are read at a time
STEPS = 8  # in which a block of Parquet is read: texts may be longer than they are counted
WHOLE = 4  # times its room that a batch may take which can only be read as a whole
ARROW = 1 << 23  # bytes that Arrow's readers take by themselves
HEADER = 1 << 16  # bytes of CSV that are read for the names of its columns


def source_of(
    X: Any, columns: Sequence[str] | None, delimiter: str = ",", line_breaks: bool = False
) -> ArraySource | TableSource:
    """The source for X: an array, a path or several, or an Arrow table."""
    check_delimiter(delimiter)
    if isinstance(X, np.ndarray):
        return ArraySource(X, columns)
    table = _arrow_table(X)
    if table is not None:
        return TableSource([ArrowTable(table)], columns)
    files = find_files(X)
    if [file.kind for file in files] == [".npy"]:
        return ArraySource(_load(str(files[0]), files[0].local), columns)
    kinds = {file.kind for file in files}
    unknown = sorted(kinds - KINDS.keys())
    if unknown:
        packed = "; decompress them first" if {*unknown} <= PACKED else ""
        raise DeclarationError(
            f"source has files of unknown kinds ({', '.join(unknown)}); pass one .npy file, or "
            f"files that end in {', '.join(KINDS)}{packed}"
        )
    if kinds & TABBED and delimiter == ",":
        raise DeclarationError(
            "source has .tsv files, which have tabs between their fields; pass delimiter='\\t'"
        )
    options = {"delimiter": delimiter, "line_breaks": line_breaks}
    return TableSource([KINDS[file.kind](file, **options) for file in files], columns)


def _arrow_table(X: Any) -> Any:
    """An Arrow table, also for a single batch; None if X is neither."""
    if type(X).__module__.split(".")[0] != "pyarrow":
        return None
    import pyarrow

    if isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    return X if isinstance(X, pyarrow.Table) else None


def _load(name: str, path: Path | None) -> Array:
    """A mapped array."""
    if path is None:
        raise DeclarationError(
            f"source ({name!r}) must be on this machine, since .npy files are mapped; copy it, or "
            "pass Parquet files"
        )
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, OSError, EOFError):
        raise DeclarationError(
            f"source ({str(path)!r}) must be a complete .npy file of numbers; write it again with "
            "numpy.save"
        ) from None


# ------------------------------------------------------------------------------------------- arrays


class ArraySource:
    """Rows of an array, in memory or memory-mapped."""

    def __init__(self, X: Array, columns: Sequence[str] | None) -> None:
        if columns is not None:
            raise DeclarationError(
                "columns must be left out for an array, whose columns have no names"
            )
        self._X, self.columns = X, None

    def reader_bytes(self, y: Any) -> int:
        """None: rows are mapped, or in memory already."""
        return 0

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes during packing, with `more_columns` columns added."""
        X, y = self._X, self._labels(y)
        width = (X.shape[1] if X.ndim == 2 else 1) + more_columns
        rows = max(1, room // (CELL * width))
        for first in range(0, X.shape[0], rows):
            part = slice(first, first + rows)
            _read_ahead(X, first + rows, rows)  # while this block is packed
            yield X[part], None if y is None else y[part]
            for array in (X, y):
                _forget_pages(array)

    def kinds(self, y: Any) -> dict[str, str]:
        """The kinds of its columns, which are numbers or refused."""
        return kinds_of(self._X)

    def _labels(self, y: Any) -> Array | None:
        if isinstance(y, str | os.PathLike):
            y = _load(os.fspath(y), Path(y))
        if y is None:
            return None
        y = y if isinstance(y, np.ndarray) else np.asarray(y)
        if y.shape[:1] != self._X.shape[:1]:
            raise InputError(
                "y must have one label for each record of X; pass a vector of that length"
            )
        return y


def _read_ahead(array: Any, first: int, rows: int) -> None:
    """Ask the system to fetch some rows of a mapped file; they take no memory of the process."""
    mapped = getattr(array, "_mmap", None)
    some = array[first : first + rows]
    if mapped is None or not some.size or not some.flags.c_contiguous:
        return
    start = some.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    page = start - start % mmap.PAGESIZE
    with suppress(AttributeError, OSError):
        mapped.madvise(mmap.MADV_WILLNEED, page, start + some.nbytes - page)


def _forget_pages(array: Any) -> None:
    """Return a mapped file's pages to the system; what was written to them stays in the file."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and array.mode != "c":
        _drop_pages(mapped)


# ------------------------------------------------------------------------------------------- tables


class TableSource:
    """Named columns of Parquet, Arrow or CSV files, or of an Arrow table."""

    def __init__(self, tables: Sequence[Table], columns: Sequence[str] | None) -> None:
        self._tables, self._chosen = tables, columns
        with tables[0].clear_errors():
            found = Counter(tables[0].names)
        if not found:
            raise DeclarationError("source must name its columns in the first line; add that line")
        self._names = [name for name, count in found.items() if count == 1]
        wrong = [name for name in columns or found if found[name] != 1]
        if wrong:
            raise DeclarationError(
                f"columns ({wrong}) must each occur once in the source; pass names that do"
            )
        self.columns: list[str] | None = None

    def _wanted(self, y: Any) -> list[str]:
        """The columns that are read; refuses a file that lacks one of them, before any is read."""
        if y is not None and (not isinstance(y, str) or y not in self._names):
            raise InputError(
                f"y ({y if isinstance(y, str) else type(y).__name__}) must name a column of the "
                "source, which contains the labels; pass its name"
            )
        names = [name for name in self._chosen or self._names if name != y]
        self.columns = names
        wanted = names if y is None else [*names, y]
        for table in self._tables:
            with table.clear_errors():
                table.check(wanted)
        return wanted

    def reader_bytes(self, y: Any) -> int:
        """Bytes that the readers of its files take, however short blocks are."""
        wanted, most = self._wanted(y), 0
        for table in self._tables:
            with table.clear_errors():
                most = max(most, table.reader_bytes(wanted))
        return most

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes during packing, with `more_columns` columns added."""
        wanted = self._wanted(y)
        for table in self._tables:
            with table.clear_errors():
                added = CELL * more_columns
                for columns in table.blocks(wanted, room, added):
                    labels = None if y is None else columns.pop(y)
                    yield columns, labels

    def kinds(self, y: Any) -> dict[str, str]:
        """The kinds of the columns of a record, which all files must declare alike."""
        label = y if isinstance(y, str) else None
        names = [name for name in self._chosen or self._names if name != label]
        found = []
        for table in self._tables:
            with table.clear_errors():
                table.check(names)
                found.append(kinds_of_types(names, table.types(names)))
        if any(kinds != found[0] for kinds in found):
            raise DeclarationError(
                "source must have files whose columns are of the same kinds for domain='learn'; "
                "write them with the same types, or pass a Schema"
            )
        return found[0]


class Constant(Coded):
    """A column with one value, which the name of a folder declares; None if it is missing."""

    def __init__(self, value: str | None, rows: int) -> None:
        codes = np.full(rows, -1 if value is None else 0, dtype=np.int8)
        super().__init__([] if value is None else [value], codes)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array: (n,)."""
        return self.codes.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.full(len(self), [*self.values, None][0], dtype=dtype or object)


class Table(ABC):
    """One file of named columns, or an Arrow table; `partition` has the columns of its folders."""

    def __init__(self, source: Any, **_: Any) -> None:
        self._source = source
        self._partition: dict[str, str | None] = getattr(source, "partition", {})

    @abstractmethod
    def _columns(self) -> list[str]:
        """The names of the columns within the file."""

    @abstractmethod
    def _row_bytes(self, names: list[str]) -> int:
        """Bytes that these columns of a record take during packing."""

    @abstractmethod
    def _blocks(self, names: list[str], rows: int, room: int) -> Iterator[dict[str, Any]]:
        """These columns of the file, at most `rows` rows and about `room` bytes at a time."""

    def reader_bytes(self, names: list[str]) -> int:
        """Bytes that a reader of these columns takes, however short blocks are."""
        return 0

    @cached_property
    def names(self) -> list[str]:
        """The names of all its columns."""
        return [*self._columns(), *self._partition]

    def blocks(self, names: list[str], room: int, added: int = 0) -> Iterator[dict[str, Any]]:
        """These columns, in blocks of about `room` bytes, of which each record takes `added`."""
        own = [name for name in names if name not in self._partition] or self.names[:1]
        rows = max(1, room // (added + CELL * len(names) + self._row_bytes(own)))
        for columns in self._blocks(own, rows, room):
            n = len(columns[own[0]])
            more = {name: Constant(value, n) for name, value in self._partition.items()}
            yield {name: more[name] if name in more else columns[name] for name in names}

    def pieces(self, names: list[str], rows: int) -> Iterator[dict[str, Any]]:
        """These columns of the file, `rows` rows at a time, however much memory they take."""
        return self._blocks(names, rows, sys.maxsize)

    def types(self, names: list[str]) -> list[Any]:
        """The types that the file declares for these columns; None where it declares none."""
        text = np.dtype(str)
        return [text if name in self._partition else self._type(name) for name in names]

    def _type(self, name: str) -> Any:
        return None

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse a table that does not have each wanted column exactly once."""
        found = Counter(self.names)
        for name in wanted:
            if found[name] != 1:
                raise DeclarationError(
                    f"source ({str(self._source)!r}) must have the column {name!r} exactly once, "
                    f"like its first file; rename its columns, or leave the file out"
                )

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Name the file that failed, without any of its contents."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, (OSError, EOFError, zlib.error, *self._errors())):
                raise
            what = repr(str(self._source)) if isinstance(self._source, File) else "an Arrow table"
            if isinstance(self._source, File) and _is_damage(error):
                raise DeclarationError(
                    f"source ({what}) is a truncated or damaged file; copy or create it again"
                ) from None
            raise DeclarationError(
                f"source ({what}) could not be read to its end; check that the file is complete"
            ) from None

    def _errors(self) -> tuple[type[Exception], ...]:
        """The errors that a damaged file makes its reader raise."""
        return ()


def _is_damage(error: Exception) -> bool:
    """Whether an error is of what a file contains; those of the disk and the network have numbers.

    pyarrow raises a plain `OSError` for a page that differs from its checksum.
    """
    if isinstance(error, OSError):
        return type(error) in (OSError, gzip.BadGzipFile) and error.errno is None
    return isinstance(error, (EOFError, zlib.error, ValueError))  # the last of pyarrow


class CsvTable(Table):
    """A CSV file, gzipped or not, whose cells are texts."""

    def __init__(self, source: File, delimiter: str, line_breaks: bool) -> None:
        super().__init__(source)
        self._options: dict[str, Any] = {"delimiter": delimiter, "line_breaks": line_breaks}

    @contextmanager
    def _opened(self, block: int) -> Iterator[CsvReader]:
        with self._source.open() as raw:
            packed = self._source.kind.endswith(".gz")
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            yield CsvReader(file, **self._options, block=block)

    def _columns(self) -> list[str]:
        with self._opened(HEADER) as reader:
            return reader.names

    def _row_bytes(self, names: list[str]) -> int:
        return 3 * CELL * len(names)  # where a cell lies, some text, and what is read from it

    def _blocks(self, names: list[str], rows: int, room: int) -> Iterator[dict[str, Any]]:
        with self._opened(max(HEADER, min(BLOCK, room // 4))) as reader:
            places = [reader.names.index(name) for name in names]
            for columns in reader.blocks(places, rows):
                yield dict(zip(names, columns, strict=True))


class ArrowTable(Table):
    """An Arrow table in memory; also the base of Arrow and Parquet files."""

    def __init__(self, source: Any, **_: Any) -> None:
        super().__init__(source)
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "reading Arrow and Parquet block by block needs pyarrow; run "
                f"{extras.install('parquet')}, or pass CSV files"
            ) from None

    def _errors(self) -> tuple[type[Exception], ...]:
        from pyarrow import ArrowException

        return (ArrowException,)

    def _columns(self) -> list[str]:
        return [field.name for field in self._schema]

    def _type(self, name: str) -> Any:
        return self._schema.field(name).type

    def _row_bytes(self, names: list[str]) -> int:
        return sum(_cell_bytes(self._type(name)) for name in names)

    def reader_bytes(self, names: list[str]) -> int:
        return ARROW

    def _blocks(self, names: list[str], rows: int, room: int) -> Iterator[dict[str, Any]]:
        for batch in _gathered(self._batches(names, rows, room), rows, room):
            yield {name: batch.column(name) for name in names}

    @cached_property
    def _schema(self) -> Any:
        return self._source.schema

    def _batches(self, names: list[str], rows: int, room: int) -> Iterator[Any]:
        yield from self._source.select(names).to_batches(max_chunksize=rows)


class ParquetTable(ArrowTable):
    """A Parquet file, whose pages are compared with their checksums where it has them."""

    @contextmanager
    def _opened(self, **options: Any) -> Iterator[Any]:
        from pyarrow import parquet

        # Buffered, so that a row group larger than memory is read page by page.
        with (
            self._source.open() as raw,
            parquet.ParquetFile(
                raw,
                buffer_size=BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
                **options,
            ) as file,
        ):
            yield file

    @cached_property
    def _facts(self) -> tuple[Any, list[str], Counter[str]]:
        """Its schema, the columns of `listed_once`, and the largest part of each column in bytes.

        Its metadata are not kept: of thousands of files they would take more than the records.
        """
        largest = Counter[str]()
        with self._opened() as file:
            metadata = file.metadata
            for i in range(metadata.num_row_groups):
                group = metadata.row_group(i)
                for part in map(group.column, range(group.num_columns)):
                    name = part.path_in_schema
                    largest[name] = max(largest[name], part.total_uncompressed_size)
            return metadata.schema.to_arrow_schema(), listed_once(metadata), largest

    @cached_property
    def _schema(self) -> Any:
        return self._facts[0]

    def reader_bytes(self, names: list[str]) -> int:
        """Of each column its list of values, and the pages that are unpacked at a time."""
        parts = (
            2 * min(size, 2 * PAGE) + BUFFER
            for name, size in self._facts[2].items()
            if name in names or name.partition(".")[0] in names  # of nested cells, several parts
        )
        return ARROW + sum(parts)

    def _batches(self, names: list[str], rows: int, room: int) -> Iterator[Any]:
        step = max(1, rows // STEPS)
        with self._opened(read_dictionary=self._facts[1]) as file:
            yield from file.iter_batches(batch_size=step, columns=names, use_threads=False)


def listed_once(metadata: Any) -> list[str]:
    """The columns of a Parquet file that list their texts once, and cells by their place there.

    Read as they are, they are coded text by text, not cell by cell. A column that met too many
    different texts goes on without a list, and takes more room.
    """
    from pyarrow import types

    fields = metadata.schema.to_arrow_schema()
    listed = {field.name: types.is_string(field.type) for field in fields}
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for part in map(group.column, range(group.num_columns)):
            few = part.total_uncompressed_size <= LISTED * part.num_values + LIST
            if not (part.has_dictionary_page and few):
                listed[part.path_in_schema] = False
    return [name for name, yes in listed.items() if yes]


class ArrowFile(ArrowTable):
    """A file in Arrow's own format; Feather is the same format."""

    @contextmanager
    def _opened(self, **options: Any) -> Iterator[tuple[Any, mmap.mmap | None]]:
        """The file's batches, and its map if it is on this machine."""
        from pyarrow import ipc, py_buffer

        options = {"options": ipc.IpcReadOptions(**options)}
        with self._source.open() as raw:
            if self._source.local is None:
                with ipc.open_file(raw, **options) as file:
                    yield file, None
                return
            if not os.fstat(raw.fileno()).st_size:
                raise EOFError
            memory = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
        with ipc.open_file(py_buffer(memory), **options) as file:
            yield file, memory

    @cached_property
    def _schema(self) -> Any:
        with self._opened() as (file, _):
            return file.schema

    def _batches(self, names: list[str], rows: int, room: int) -> Iterator[Any]:
        # Some columns of a mapped file are views, unless they are asked for: then all are copied.
        chosen = [self._schema.get_field_index(name) for name in names]
        wanted = [] if self._source.local else sorted(chosen)
        with self._opened(included_fields=wanted) as (file, memory):
            for i in range(file.num_record_batches):
                batch = self._batch(file, i, WHOLE * room).select(names)
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)
                    if memory is not None:
                        _drop_pages(memory)
                del batch  # before the next one is read

    def _batch(self, file: Any, i: int, most: int) -> Any:
        """A batch; one that is compressed, or on another machine, is read as a whole."""
        from pyarrow import total_allocated_bytes

        before = total_allocated_bytes()
        batch = file.get_batch(i)
        if total_allocated_bytes() - before > most:
            raise DeclarationError(
                f"source ({str(self._source)!r}) must have batches that fit into memory_limit; "
                "write it with fewer records in a batch, or pass a larger memory_limit"
            )
        return batch


def _drop_pages(mapped: mmap.mmap) -> None:
    """Return a mapped file's pages to the system; they are read again on the next access."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _cell_bytes(kind: Any) -> int:
    from pyarrow import types

    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return CELL if numeric or types.is_dictionary(kind) else TEXT


def _gathered(batches: Iterator[Any], rows: int, room: int) -> Iterator[Any]:
    """The same rows in fewer batches, so that a file of many small row groups makes few blocks."""
    from pyarrow import Table

    waiting: list[Any] = []
    count = size = 0
    for batch in batches:
        if waiting and (count + batch.num_rows > rows or size + batch.nbytes > room):
            table = Table.from_batches(waiting)
            waiting, count, size = [], 0, 0
            yield table
            del table
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
    if waiting:
        yield Table.from_batches(waiting)


KINDS: dict[str, Any] = {
    ".parquet": ParquetTable,
    ".arrow": ArrowFile,
    ".feather": ArrowFile,
    ".csv": CsvTable,
    ".csv.gz": CsvTable,
    ".tsv": CsvTable,
    ".tsv.gz": CsvTable,
}
TABBED = {".tsv", ".tsv.gz"}
PACKED = {".bz2", ".xz", ".zst", ".zip"}  # their readers take memory that nobody declared
