"""Columns of any library, in chunks of few kinds.

A chunk is an array of numbers, with a mask or without; a list or an array of Python objects; a
`Coded` column, which lists its different values once; or a `Written` one, whose cells are texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.texts import cells_between, cells_of_points
from privfit.base.typing import Array, Integers

__all__ = ["Coded", "Odd", "Written", "chunks", "is_numeric", "moments", "objects"]

LONGEST = 1 << 31  # bytes that a block of cells may span
FEW = 1 << 10  # texts that are read faster as a list


class Odd(Enum):
    """Why a cell has no canonical text."""

    MISSING = "missing"
    NOTHING = "matches nothing"


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A column with few different values: `codes` picks one for each cell; -1 is missing.

    `missing` marks cells that are missing whatever their code is; None if there are none.
    """

    values: Any
    codes: Array
    missing: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)


class Written(ABC):
    """A column of texts that are bytes in a buffer; see texts.py."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def block(self, first: int, rows: int) -> tuple[NDArray[np.uint8], Integers]:
        """The text and the cells of at most so many rows, and of one at least."""

    @abstractmethod
    def cell(self, row: int) -> Any:
        """The text of a cell, or its bytes; None if it is missing."""

    @abstractmethod
    def tolist(self) -> list[Any]:
        """All cells."""


def is_numeric(column: Array) -> bool:
    """Whether an array has cells that are numbers."""
    return column.dtype.kind in "biuf"


def objects(column: Any) -> Iterator[Any]:
    """The cells of a column, one by one, as Python objects; missing ones are None."""
    for cells in chunks(column):
        if isinstance(cells, Coded):
            values = [*objects(cells.values), None]
            codes = cells.codes if cells.missing is None else np.where(
                cells.missing, -1, cells.codes.astype(np.int64)
            )  # fmt: skip
            yield from (values[code] for code in codes.tolist())
        else:
            yield from cells.tolist() if isinstance(cells, np.ndarray | Written) else cells


def chunks(column: Any) -> Iterator[Any]:
    """The cells of a column, in order."""
    library = type(column).__module__.partition(".")[0]
    if isinstance(column, Coded | Written):
        yield column
    elif isinstance(column, list | tuple):
        yield column if type(column) in (list, tuple) else list(column)
    elif isinstance(column, np.ndarray):
        yield _of_numpy(column)
    elif library == "pandas":
        yield from _of_pandas(column)
    elif library == "polars":
        yield from _of_polars(column)
    elif library == "pyarrow":
        for chunk in getattr(column, "chunks", [column]):
            yield _of_arrow(chunk)
    else:
        yield _of_numpy(np.asarray(column)) if hasattr(column, "__array__") else list(column)


# -------------------------------------------------------------------------------------------- numpy


def _of_numpy(column: Array) -> Any:
    kind = column.dtype.kind
    if kind in "biuf":
        return column
    if type(column) is np.ndarray and column.ndim == 1:
        if kind == "O":
            return column
        if kind == "U" and column.dtype.isnative and column.dtype.itemsize:
            return _NumpyTexts(column)
    cells = moments(column) if kind in "mM" else np.asarray(column).tolist()
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column).tolist()
        return [None if hidden else cell for cell, hidden in zip(cells, mask, strict=True)]
    return cells


class _NumpyTexts(Written):
    """An array of texts of one width."""

    def __init__(self, column: Array) -> None:
        self._column, self._width = column, column.dtype.itemsize // 4

    def __len__(self) -> int:
        return len(self._column)

    def block(self, first: int, rows: int) -> tuple[NDArray[np.uint8], Integers]:
        rows = min(rows, max(1, (LONGEST - 1) // self._width))
        part = np.ascontiguousarray(self._column[first : first + rows])
        points = part.view(np.uint32).reshape(len(part), self._width)
        text = np.empty((len(part), self._width), dtype=np.uint8)
        cells = np.empty(len(part), dtype=np.int64)
        cells_of_points(points, text, cells)
        return text.ravel(), cells

    def cell(self, row: int) -> str:
        return str(self._column[row])

    def tolist(self) -> list[Any]:
        return list(self._column.tolist())


def moments(column: Array, zone: str = "") -> list[Any]:
    """ISO texts of numpy's dates; a duration is not a date, and matches nothing."""
    if column.dtype.kind == "m":
        return [Odd.MISSING if lost else Odd.NOTHING for lost in np.isnat(column).tolist()]
    unit = np.datetime_data(column.dtype)[0]
    fine = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "generic": "D"}.get(unit)
    texts = np.datetime_as_string(column.astype(f"M8[{fine}]") if fine else column).tolist()
    lost = np.isnat(column).tolist()
    return [None if gone else text + zone for text, gone in zip(texts, lost, strict=True)]


# ---------------------------------------------------------------------------------------- libraries


def _of_pandas(column: Any) -> Iterator[Any]:
    dtype = column.dtype
    array = getattr(column, "array", column)  # of a series or an index
    kind = type(dtype).__name__
    if isinstance(dtype, np.dtype):
        yield _of_numpy(column.to_numpy())
    elif kind == "CategoricalDtype":
        values = array.categories
        few = len(values) <= FEW and str(values.dtype) in ("object", "str", "string")
        yield Coded(values.tolist() if few else values, array.codes)
    elif kind == "ArrowDtype" or getattr(dtype, "storage", "") == "pyarrow":
        yield from chunks(array.__arrow_array__())
    elif kind == "SparseDtype":
        yield _of_numpy(np.asarray(array))
    elif isinstance(getattr(dtype, "numpy_dtype", None), np.dtype):  # a mask beside the numbers
        numbers = array.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        yield np.ma.MaskedArray(numbers, array.isna())
    else:
        yield array.to_numpy(dtype=object)


def _of_polars(column: Any) -> Iterator[Any]:
    kind = str(column.dtype).partition("(")[0]
    if (kind.startswith(("Int", "UInt", "Float")) and "128" not in kind) or kind == "Boolean":
        yield _of_numpy(column.to_numpy())  # NaN or None where a cell is missing
    elif kind in ("Date", "Datetime"):
        zone = getattr(column.dtype, "time_zone", None)
        if zone:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        yield moments(column.to_numpy(), "+00:00" if zone else "")
    elif kind in ("String", "Categorical", "Enum"):
        try:
            yield from chunks(column.to_arrow())
        except ImportError:  # without pyarrow
            yield column.to_list()
    else:
        yield column.to_list()


def _of_arrow(column: Any) -> Any:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _of_arrow(column.storage)
    if str(kind) == "string_view":
        return _of_arrow(column.cast("large_string"))
    if types.is_dictionary(kind):
        return _of_dictionary(column)
    if types.is_string(kind) or types.is_large_string(kind):
        return _ArrowTexts(column)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return _of_numpy(column.to_numpy(zero_copy_only=False))  # NaN or None where it is missing
    if types.is_timestamp(kind) or types.is_date(kind):
        zone = "+00:00" if getattr(kind, "tz", None) else ""
        return moments(column.to_numpy(zero_copy_only=False), zone)
    return column.to_pylist()


def _of_dictionary(column: Any) -> Coded:
    codes, missing = column.indices, None
    if codes.null_count:
        missing = codes.is_null().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(0)
    return Coded(column.dictionary, codes.to_numpy(zero_copy_only=False), missing)


class _ArrowTexts(Written):
    """An Arrow array of texts, which need not be valid."""

    def __init__(self, column: Any) -> None:
        from pyarrow import types

        valid, offsets, text = column.buffers()
        wide = np.int64 if types.is_large_string(column.type) else np.int32
        self._column, self._first = column, column.offset
        end = column.offset + len(column) + 1
        self._offsets = np.zeros(end, wide) if offsets is None else np.frombuffer(offsets, wide)
        self._valid = np.frombuffer(valid or b"", dtype=np.uint8)
        self._text = np.frombuffer(text or b"", dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._column)

    def block(self, first: int, rows: int) -> tuple[NDArray[np.uint8], Integers]:
        at = self._first + first
        offsets = self._offsets[at : at + min(rows, len(self) - first) + 1]
        while len(offsets) > 2 and offsets[-1] - offsets[0] >= LONGEST:
            offsets = offsets[: len(offsets) // 2 + 1]
        cells = np.empty(len(offsets) - 1, dtype=np.int64)
        if offsets[-1] - offsets[0] >= LONGEST:
            cells[:] = 1  # one text that is too long to be found: odd
        else:
            cells_between(offsets, self._valid, at, cells)
        return self._text[offsets[0] : offsets[-1]], cells

    def cell(self, row: int) -> Any:
        return self._column.slice(row, 1).cast("large_binary").to_pylist()[0]

    def tolist(self) -> list[Any]:
        try:
            return list(self._column.to_pylist())
        except UnicodeDecodeError:
            return list(self._column.cast("large_binary").to_pylist())
