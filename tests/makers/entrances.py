"""Every way by which records come in, for the contract of test_reading.py.

An entrance is a function (schema, rows) -> (n, width) coded records, where a row is a tuple of
cells in the order of the schema's columns. It raises `UnableError` if its library does not take the
cells. Those in EXACT hold the very cells; others let a library choose what a column becomes, so
that one cell may change the type of its whole column.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privfit import Schema, Stream
from privfit.commands.files import CsvForm
from privfit.commands.tables import read_table

Rows = Sequence[tuple[Any, ...]]
Entrance = Callable[[Schema, Rows], np.ndarray]


class UnableError(Exception):
    """The library refuses these cells by itself."""


def made(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a library makes of these cells."""
    try:
        return make(*arguments)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        raise UnableError from error


EXACT: dict[str, Entrance] = {}
INFERRING: dict[str, Entrance] = {}


def entrance(known: dict[str, Entrance]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function (names, rows) -> a table that a schema reads."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        def coded(schema: Schema, rows: Rows) -> np.ndarray:
            return schema.encode(made(make, list(schema.columns), rows)).toarray()

        known[make.__name__.replace("_", " ")] = coded
        return make

    return register


def columns(names: list[str], rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def cells(values: Sequence[Any]) -> np.ndarray:
    """An array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


# ------------------------------------------------------------------------------ the very cells


@entrance(EXACT)
def dict_of_lists(names, rows):
    return columns(names, rows)


@entrance(EXACT)
def dict_of_tuples(names, rows):
    return {name: tuple(column) for name, column in columns(names, rows).items()}


@entrance(EXACT)
def dict_of_object_arrays(names, rows):
    return {name: cells(column) for name, column in columns(names, rows).items()}


@entrance(EXACT)
def list_of_lists(names, rows):
    return [list(row) for row in rows]


@entrance(EXACT)
def list_of_tuples_with_more(names, rows):
    return [(*row, "dropped") for row in rows]


@entrance(EXACT)
def list_of_dicts(names, rows):
    return [dict(zip(names, row, strict=True)) for row in rows]


@entrance(EXACT)
def object_array(names, rows):
    return np.column_stack([cells(column) for column in columns(names, rows).values()])


@entrance(EXACT)
def structured_array(names, rows):
    table = np.empty(len(rows), dtype=[(name, object) for name in names])
    for name, column in columns(names, rows).items():
        table[name] = cells(column)
    return table


@entrance(EXACT)
def pandas_objects(names, rows):
    objects = {name: cells(column) for name, column in columns(names, rows).items()}
    return pd.DataFrame(objects, dtype=object)


# --------------------------------------------------------------------- what libraries make of them


@entrance(INFERRING)
def dict_of_arrays(names, rows):
    return {name: np.array(column) for name, column in columns(names, rows).items()}


@entrance(INFERRING)
def array_of_text(names, rows):
    return np.array([[str(cell) for cell in row] for row in rows])


@entrance(INFERRING)
def array_of_bytes(names, rows):
    texts = [["" if cell is None else str(cell).encode() for cell in row] for row in rows]
    return np.array(texts, dtype=bytes)


@entrance(INFERRING)
def pandas_inferred(names, rows):
    return pd.DataFrame(columns(names, rows))


@entrance(INFERRING)
def pandas_from_csv(names, rows):
    text = pd.DataFrame(columns(names, rows), dtype=object).to_csv(index=False)
    return pd.read_csv(io.StringIO(text), low_memory=False)


@entrance(INFERRING)
def pandas_nullable(names, rows):
    return pd.DataFrame(columns(names, rows)).convert_dtypes()


@entrance(INFERRING)
def pandas_arrow_backed(names, rows):
    return pd.DataFrame(columns(names, rows)).convert_dtypes(dtype_backend="pyarrow")


@entrance(INFERRING)
def pandas_python_strings(names, rows):
    texts = {n: [_text(cell) for cell in column] for n, column in columns(names, rows).items()}
    return pd.DataFrame(texts, dtype="string[python]")


@entrance(INFERRING)
def pandas_strings(names, rows):
    texts = {n: [_text(cell) for cell in column] for n, column in columns(names, rows).items()}
    return pd.DataFrame(texts, dtype="string[pyarrow]")


@entrance(INFERRING)
def pandas_categories(names, rows):
    frame = pd.DataFrame(columns(names, rows))
    return frame.astype("category")


@entrance(INFERRING)
def arrow_table(names, rows):
    import pyarrow

    return pyarrow.table({n: _arrow(column) for n, column in columns(names, rows).items()})


@entrance(INFERRING)
def arrow_dictionaries(names, rows):
    import pyarrow

    coded = {n: _arrow(column).dictionary_encode() for n, column in columns(names, rows).items()}
    table = pyarrow.table(coded)
    return pyarrow.concat_tables([table.slice(0, 1), table.slice(1)])


@entrance(INFERRING)
def arrow_batch(names, rows):
    import pyarrow

    arrays = {n: _arrow(column) for n, column in columns(names, rows).items()}
    return pyarrow.RecordBatch.from_pydict(arrays)


@entrance(INFERRING)
def polars_frame(names, rows):
    return _polars(columns(names, rows))


@entrance(INFERRING)
def polars_categories(names, rows):
    import polars

    texts = {n: [_text(cell) for cell in column] for n, column in columns(names, rows).items()}
    return polars.DataFrame(texts, schema=dict.fromkeys(names, polars.Categorical))


def dask_frame(schema: Schema, rows: Rows) -> np.ndarray:
    """As the workers do: each partition by itself."""
    from dask.dataframe import from_pandas

    def partitions() -> list[Any]:
        frame = pd.DataFrame(columns(list(schema.columns), rows))
        delayed = from_pandas(frame, npartitions=2).to_delayed()
        return [part.compute(scheduler="synchronous") for part in delayed]

    return np.concatenate([schema.encode(part).toarray() for part in made(partitions)])


def dask_array(schema: Schema, rows: Rows) -> np.ndarray:
    from dask.array import from_array

    table = np.column_stack(
        [cells(column) for column in columns(list(schema.columns), rows).values()]
    )
    whole = from_array(table, chunks=(1, table.shape[1]))
    parts = [part.compute(scheduler="synchronous") for part in whole.to_delayed().ravel()]
    return np.concatenate([schema.encode(part).toarray() for part in parts])


INFERRING["dask frame"] = dask_frame
EXACT["dask array"] = dask_array


def files(
    suffix: str, write: Callable[[dict[str, list[Any]], Path], None], by_command: bool = False
) -> Entrance:
    """A table that is written to a file, and read as a stream or by the command line."""

    def coded(schema: Schema, rows: Rows) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x.{suffix}"
            try:
                write(columns(list(schema.columns), rows), path)
            except Exception as error:
                raise UnableError from error
            if by_command:
                read = read_table(str(path), schema, None, CsvForm(",", line_breaks=True))
                return schema.encode(read.columns).toarray()
            blocks = Stream(path, line_breaks=True)._source.blocks(None, 256)
            return np.concatenate([schema.encode(part).toarray() for part, _ in blocks])

    return coded


def write_csv(made: dict[str, list[Any]], path: Path) -> None:
    text = io.StringIO()
    rows = zip(*made.values(), strict=True)
    csv.writer(text, lineterminator="\n").writerows([list(made), *rows])
    path.write_bytes(text.getvalue().encode())


def write_parquet(made: dict[str, list[Any]], path: Path) -> None:
    from pyarrow import parquet, table

    parquet.write_table(table({n: _arrow(column) for n, column in made.items()}), path)


def write_arrow(made: dict[str, list[Any]], path: Path) -> None:
    from pyarrow import feather, table

    made = {n: _arrow(column) for n, column in made.items()}
    feather.write_feather(table(made), str(path), "uncompressed")


INFERRING |= {
    "stream of csv": files("csv", write_csv),
    "stream of parquet": files("parquet", write_parquet),
    "stream of arrow": files("arrow", write_arrow),
    "stream of feather": files("feather", write_arrow),
    "command line csv": files("csv", write_csv, by_command=True),
    "command line parquet": files("parquet", write_parquet, by_command=True),
}


def _text(cell: Any) -> str | None:
    return None if cell is None or cell != cell else str(cell)


def _arrow(column: list[Any]) -> Any:
    """What Arrow makes of a column; of mixed cells texts, as its readers do."""
    import pyarrow

    try:
        return pyarrow.array(column)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([_text(cell) for cell in column])


def _polars(columns: dict[str, list[Any]]) -> Any:
    import polars

    frame = {}
    for name, column in columns.items():
        try:
            frame[name] = made(polars.Series, name, column)
        except UnableError:
            frame[name] = polars.Series(name, [_text(cell) for cell in column])
    return polars.DataFrame(frame)
