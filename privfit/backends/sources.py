"""Where streamed records come from: arrays, .npy, Parquet, Arrow and CSV files, block by block.

A source yields (records, labels) of a bounded number of rows, in order. Messages name files and
columns, never values: what a reader says of a bad value would quote it.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Block: TypeAlias = "tuple[Any, Any]"
Array: TypeAlias = NDArray[Any]

CELL = 8  # bytes of a number while it is packed
TEXT = 96  # bytes of a text while it is packed: a Python string and its place in an array


def source_of(X: Any, columns: Sequence[str] | None) -> ArraySource | TableSource:
    """The source that X stands for: an array, a path or several, or an Arrow table."""
    if isinstance(X, np.ndarray):
        return ArraySource(X, columns)
    table = _arrow_table(X)
    if table is not None:
        return TableSource([table], columns)
    paths = _paths(X)
    if [path.suffix for path in paths] == [".npy"]:
        return ArraySource(_load(paths[0]), columns)
    unknown = sorted({path.suffix for path in paths} - READERS.keys())
    if unknown:
        raise ValueError(
            f"source has files of unknown kinds ({', '.join(unknown)}); pass one .npy file, or "
            f"files that end in {', '.join(READERS)}"
        )
    return TableSource(paths, columns)


def _arrow_table(X: Any) -> Any:
    """A table of Arrow, also of one batch; None if X is neither."""
    if type(X).__module__.split(".")[0] != "pyarrow":
        return None
    import pyarrow

    if isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    return X if isinstance(X, pyarrow.Table) else None


def _paths(X: Any) -> list[Path]:
    """The files that a path, a folder or a list of paths stands for, in order."""
    listed = X if isinstance(X, list | tuple) else [X]
    if not listed or not all(isinstance(path, str | os.PathLike) for path in listed):
        raise TypeError(
            f"source ({type(X).__name__}) must be an array, a path, a list of paths or an Arrow "
            "table; pass one of them"
        )
    found: list[Path] = []
    for path in map(Path, listed):
        if not path.exists():
            raise FileNotFoundError(f"source ({str(path)!r}) must exist; pass the path of a file")
        found += sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [path]
    if not found:
        raise ValueError("source must hold at least one file; pass a folder that is not empty")
    return found


def _load(path: Path) -> Array:
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, OSError, EOFError):
        raise ValueError(
            f"source ({str(path)!r}) must be a whole .npy file of numbers; write it again with "
            "numpy.save"
        ) from None


# ------------------------------------------------------------------------------------------- arrays


class ArraySource:
    """Rows of an array, in memory or memory-mapped."""

    def __init__(self, X: Array, columns: Sequence[str] | None) -> None:
        if columns is not None:
            raise ValueError("columns must be left out for an array, whose columns have no names")
        self._X, self.columns = X, None

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes while they are packed, to so many more columns."""
        X, y = self._X, self._labels(y)
        width = (X.shape[1] if X.ndim == 2 else 1) + more_columns
        rows = max(1, room // (CELL * width))
        for first in range(0, X.shape[0], rows):
            part = slice(first, first + rows)
            yield X[part], None if y is None else y[part]
            for array in (X, y):
                _forget_pages(array)

    def _labels(self, y: Any) -> Array | None:
        if isinstance(y, str | os.PathLike):
            y = _load(Path(y))
        if y is None:
            return None
        y = y if isinstance(y, np.ndarray) else np.asarray(y)
        if y.shape[:1] != self._X.shape[:1]:
            raise ValueError(
                "y must have one label for each record of X; pass a vector of that length"
            )
        return y


def _forget_pages(array: Any) -> None:
    """Give a mapped file's pages back to the system; what was written to them stays in the file."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and array.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


# ------------------------------------------------------------------------------------------- tables


class TableSource:
    """Named columns of Parquet, Arrow or CSV files, or of an Arrow table."""

    def __init__(self, tables: Sequence[Any], columns: Sequence[str] | None) -> None:
        _need_pyarrow()
        self._tables, self._chosen = tables, columns
        with _clear_errors(tables[0]):
            fields = list(_schema(tables[0]))
        found = Counter(field.name for field in fields)
        self._types = {field.name: field.type for field in fields if found[field.name] == 1}
        wrong = [name for name in columns or found if found[name] != 1]
        if wrong:
            raise ValueError(
                f"columns ({wrong}) must be in the source; pass names that it has, and has once"
            )
        self.columns: list[str] | None = None

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[Block]:
        """Blocks of at most `room` bytes while they are packed, to so many more columns."""
        if y is not None and (not isinstance(y, str) or y not in self._types):
            raise ValueError(
                f"y ({y if isinstance(y, str) else type(y).__name__}) must name a column of the "
                "source, which holds the labels; pass its name"
            )
        names = [name for name in self._chosen or self._types if name != y]
        self.columns = names
        wanted = names if y is None else [*names, y]
        row_bytes = CELL * more_columns + sum(_cell_bytes(self._types[name]) for name in wanted)
        rows = max(1, room // row_bytes)
        for table in self._tables:
            with _clear_errors(table):
                for batch in _gathered(_batches(table, wanted, rows, self._types), rows):
                    columns = {name: _numpy(batch.column(name)) for name in wanted}
                    labels = None if y is None else columns.pop(y)
                    yield columns, labels


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            'reading tables block by block needs pyarrow; run pip install "privfit[parquet]"'
        ) from None


def _cell_bytes(kind: Any) -> int:
    from pyarrow import types

    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return CELL if numeric else TEXT


def _numpy(column: Any) -> Array:
    """A column as numpy has it; missing numbers are NaN, missing texts None."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column)


class _clear_errors:  # noqa: N801, reads as a function
    """Say which file is at fault, and nothing of what is in it."""

    def __init__(self, table: Any) -> None:
        self._name = repr(str(table)) if isinstance(table, Path) else "an Arrow table"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        import pyarrow

        if kind is not None and issubclass(kind, pyarrow.ArrowException | OSError):
            raise ValueError(
                f"source ({self._name}) could not be read to its end; check that the file is whole "
                "and that every column holds values of one kind"
            ) from None


def _schema(table: Any) -> Any:
    return READERS[table.suffix][0](table) if isinstance(table, Path) else table.schema


def _batches(table: Any, names: list[str], rows: int, types: dict[str, Any]) -> Iterator[Any]:
    if isinstance(table, Path):
        yield from READERS[table.suffix][1](table, names, rows, types)
    else:
        yield from table.select(names).to_batches(max_chunksize=rows)


def _gathered(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """The same rows in fewer batches: a file of many small row groups makes few blocks."""
    from pyarrow import Table

    waiting: list[Any] = []
    for batch in batches:
        if waiting and sum(other.num_rows for other in waiting) + batch.num_rows > rows:
            yield Table.from_batches(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield Table.from_batches(waiting)


def _parquet_schema(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_schema(path)


def _parquet_batches(path: Path, names: list[str], rows: int, _: Any) -> Iterator[Any]:
    from pyarrow import parquet

    # Buffered, so that a row group larger than memory is read page by page.
    with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
        yield from file.iter_batches(batch_size=rows, columns=names, use_threads=False)


def _arrow_schema(path: Path) -> Any:
    from pyarrow import ipc

    with ipc.open_file(path) as file:
        return file.schema


def _arrow_batches(path: Path, names: list[str], rows: int, _: Any) -> Iterator[Any]:
    import pyarrow

    with pyarrow.memory_map(str(path)) as memory, pyarrow.ipc.open_file(memory) as file:
        for i in range(file.num_record_batches):
            batch = file.get_batch(i).select(names)
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


def _open_csv(path: Path, room: int, **options: Any) -> Any:
    from pyarrow import csv

    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=room, use_threads=False),
        convert_options=csv.ConvertOptions(**options),
    )


def _csv_schema(path: Path) -> Any:
    with _open_csv(path, 1 << 20) as file:
        return file.schema


def _csv_batches(path: Path, names: list[str], rows: int, types: dict[str, Any]) -> Iterator[Any]:
    # Types were found in the first megabyte; whole numbers may yet turn out to be others.
    from pyarrow import float64
    from pyarrow.types import is_integer

    kinds = {name: float64() if is_integer(types[name]) else types[name] for name in names}
    with _open_csv(path, 1 << 22, include_columns=names, column_types=kinds) as file:
        for batch in file:
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


READERS: dict[str, tuple[Any, Any]] = {
    ".parquet": (_parquet_schema, _parquet_batches),
    ".arrow": (_arrow_schema, _arrow_batches),
    ".feather": (_arrow_schema, _arrow_batches),
    ".csv": (_csv_schema, _csv_batches),
}
