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
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from privfit.base.errors import (
    DeclarationError,
    DeclarationTypeError,
    FileMissingError,
    InputError,
    MissingExtraError,
)
from privfit.base.typing import Array
from privfit.domains.kinds import kinds_of, kinds_of_types
from privfit.records.csv_files import CsvReader, check_delimiter

Block: TypeAlias = "tuple[Any, Any]"

CELL = 8  # bytes of a number while it is packed
LIST = 1 << 20  # bytes of a list of texts in Parquet at most, as most programs write it
LISTED = 4  # bytes of a cell beside it at most
TEXT = 96  # bytes of a text while it is packed: a Python string and its place in an array


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
    paths = _paths(X)
    if [path.suffix for path in paths] == [".npy"]:
        return ArraySource(_load(paths[0]), columns)
    unknown = sorted({_kind(path) for path in paths} - KINDS.keys())
    if unknown:
        raise DeclarationError(
            f"source has files of unknown kinds ({', '.join(unknown)}); pass one .npy file, or "
            f"files that end in {', '.join(KINDS)}"
        )
    options = {"delimiter": delimiter, "line_breaks": line_breaks}
    return TableSource([KINDS[_kind(path)](path, **options) for path in paths], columns)


def _kind(path: Path) -> str:
    """The ending of a file's name; .csv.gz is one ending."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def _arrow_table(X: Any) -> Any:
    """An Arrow table, also for a single batch; None if X is neither."""
    if type(X).__module__.split(".")[0] != "pyarrow":
        return None
    import pyarrow

    if isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    return X if isinstance(X, pyarrow.Table) else None


def _paths(X: Any) -> list[Path]:
    """The files of a path, a folder or a list of paths, in order."""
    listed = X if isinstance(X, list | tuple) else [X]
    if not listed or not all(isinstance(path, str | os.PathLike) for path in listed):
        raise DeclarationTypeError(
            f"source ({type(X).__name__}) must be an array, a path, a list of paths or an Arrow "
            "table; pass one of them"
        )
    found: list[Path] = []
    for path in map(Path, listed):
        if not path.exists():
            raise FileMissingError(f"source ({str(path)!r}) must exist; pass the path of a file")
        found += sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [path]
    if not found:
        raise DeclarationError(
            "source must hold at least one file; pass a folder that is not empty"
        )
    return found


def _load(path: Path) -> Array:
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

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes during packing, with `more_columns` columns added."""
        X, y = self._X, self._labels(y)
        width = (X.shape[1] if X.ndim == 2 else 1) + more_columns
        rows = max(1, room // (CELL * width))
        for first in range(0, X.shape[0], rows):
            part = slice(first, first + rows)
            yield X[part], None if y is None else y[part]
            for array in (X, y):
                _forget_pages(array)

    def kinds(self, y: Any) -> dict[str, str]:
        """The kinds of its columns, which are numbers or refused."""
        return kinds_of(self._X)

    def _labels(self, y: Any) -> Array | None:
        if isinstance(y, str | os.PathLike):
            y = _load(Path(y))
        if y is None:
            return None
        y = y if isinstance(y, np.ndarray) else np.asarray(y)
        if y.shape[:1] != self._X.shape[:1]:
            raise InputError(
                "y must have one label for each record of X; pass a vector of that length"
            )
        return y


def _forget_pages(array: Any) -> None:
    """Return a mapped file's pages to the system; what was written to them stays in the file."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and array.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


# ------------------------------------------------------------------------------------------- tables


class TableSource:
    """Named columns of Parquet, Arrow or CSV files, or of an Arrow table."""

    def __init__(self, tables: Sequence[Table], columns: Sequence[str] | None) -> None:
        self._tables, self._chosen = tables, columns
        with tables[0].clear_errors():
            found = Counter(tables[0].names())
        if not found:
            raise DeclarationError("source must name its columns in the first line; add that line")
        self._names = [name for name, count in found.items() if count == 1]
        wrong = [name for name in columns or found if found[name] != 1]
        if wrong:
            raise DeclarationError(
                f"columns ({wrong}) must each occur once in the source; pass names that do"
            )
        self.columns: list[str] | None = None

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes during packing, with `more_columns` columns added."""
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
                rows = max(1, room // (CELL * more_columns + table.row_bytes(wanted)))
                for columns in table.blocks(wanted, rows):
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


class Table(ABC):
    """One file of named columns, or an Arrow table."""

    def __init__(self, source: Any, **_: Any) -> None:
        self._source = source

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all its columns."""

    @abstractmethod
    def row_bytes(self, names: list[str]) -> int:
        """Bytes that these columns of a record take during packing."""

    @abstractmethod
    def blocks(self, names: list[str], rows: int) -> Iterator[dict[str, Any]]:
        """These columns, at most `rows` rows at a time."""

    def types(self, names: list[str]) -> list[Any]:
        """The types that the file declares for these columns; None where it declares none."""
        return [None] * len(names)

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse a table that does not have each wanted column exactly once."""
        found = Counter(self.names())
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
            what = repr(str(self._source)) if isinstance(self._source, Path) else "an Arrow table"
            raise DeclarationError(
                f"source ({what}) could not be read to its end; check that the file is complete"
            ) from None

    def _errors(self) -> tuple[type[Exception], ...]:
        """The errors that a damaged file makes its reader raise."""
        return ()


class CsvTable(Table):
    """A CSV file, gzipped or not, whose cells are texts."""

    def __init__(self, source: Path, delimiter: str, line_breaks: bool) -> None:
        super().__init__(source)
        self._options: dict[str, Any] = {"delimiter": delimiter, "line_breaks": line_breaks}

    @contextmanager
    def _opened(self) -> Iterator[CsvReader]:
        with self._source.open("rb", buffering=0) as raw:
            packed = self._source.suffix == ".gz"
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            yield CsvReader(file, **self._options)

    def names(self) -> list[str]:
        with self._opened() as reader:
            return reader.names

    def row_bytes(self, names: list[str]) -> int:
        return 3 * CELL * len(names)  # where a cell lies, some text, and what is read from it

    def blocks(self, names: list[str], rows: int) -> Iterator[dict[str, Any]]:
        with self._opened() as reader:
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
                "reading Arrow and Parquet block by block needs pyarrow; run pip install "
                '"privfit[parquet]", or pass CSV files'
            ) from None

    def _errors(self) -> tuple[type[Exception], ...]:
        from pyarrow import ArrowException

        return (ArrowException,)

    def names(self) -> list[str]:
        return [field.name for field in self._schema()]

    def types(self, names: list[str]) -> list[Any]:
        schema = self._schema()
        return [schema.field(name).type for name in names]

    def row_bytes(self, names: list[str]) -> int:
        schema = self._schema()
        return sum(_cell_bytes(schema.field(name).type) for name in names)

    def blocks(self, names: list[str], rows: int) -> Iterator[dict[str, Any]]:
        for batch in _gathered(self._batches(names, rows), rows):
            yield {name: batch.column(name) for name in names}

    def _schema(self) -> Any:
        return self._source.schema

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        yield from self._source.select(names).to_batches(max_chunksize=rows)


class ParquetTable(ArrowTable):
    """A Parquet file."""

    def _schema(self) -> Any:
        from pyarrow import parquet

        return parquet.read_schema(self._source)

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        from pyarrow import parquet

        listed = listed_once(parquet.read_metadata(self._source))
        # Buffered, so that a row group larger than memory is read page by page.
        with parquet.ParquetFile(
            self._source, buffer_size=1 << 20, pre_buffer=False, read_dictionary=listed
        ) as file:
            yield from file.iter_batches(batch_size=rows, columns=names, use_threads=False)


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

    def _schema(self) -> Any:
        from pyarrow import ipc

        with ipc.open_file(self._source) as file:
            return file.schema

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        import pyarrow

        with pyarrow.memory_map(str(self._source)) as memory, pyarrow.ipc.open_file(memory) as file:
            for i in range(file.num_record_batches):
                batch = file.get_batch(i).select(names)
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)


def _cell_bytes(kind: Any) -> int:
    from pyarrow import types

    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return CELL if numeric or types.is_dictionary(kind) else TEXT


def _gathered(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """The same rows in fewer batches, so that a file of many small row groups makes few blocks."""
    from pyarrow import Table

    waiting: list[Any] = []
    for batch in batches:
        if waiting and sum(other.num_rows for other in waiting) + batch.num_rows > rows:
            yield Table.from_batches(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield Table.from_batches(waiting)


KINDS: dict[str, Any] = {
    ".parquet": ParquetTable,
    ".arrow": ArrowFile,
    ".feather": ArrowFile,
    ".csv": CsvTable,
    ".csv.gz": CsvTable,
}
