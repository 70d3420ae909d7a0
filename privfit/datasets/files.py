"""Where the files of data sets are, and how they are read: each cell by itself, by declared kinds.

A file is a CSV file, gzipped or not, in UTF-8, with a header. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privfit.base.errors import FileError, FileMissingError
from privfit.base.typing import Array
from privfit.records.csv_files import ROWS, Cells
from privfit.records.files import File
from privfit.records.sources import CsvTable

__all__ = ["VARIABLE", "find", "read", "verify"]

VARIABLE = "PRIVFIT_DATA"  # of the environment: the folder of the data sets
ROOM = ROWS << 12  # bytes of a block, so that its number of rows is what the reader allows


def find(name: str, folder: str | os.PathLike[str] | None, source: str, columns: list[str]) -> Path:
    """The file of a data set: in this folder, or in that of the environment."""
    listed = ", ".join(columns if len(columns) <= 6 else [*columns[:3], "...", columns[-1]])
    remedy = (
        f"get the data ({source}), write them as CSV with a header and the {len(columns)} columns "
        f"{listed}, and pass folder=..., or set {VARIABLE}; privfit downloads nothing"
    )
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise FileMissingError(
            f"folder ({chosen!r}) must be the folder that has {name}.csv.gz; {remedy}"
        )
    for ending in (".csv.gz", ".csv"):
        path = Path(chosen, name + ending)
        if path.is_file():
            return path
    raise FileMissingError(
        f"folder ({os.fspath(chosen)!r}) must have {name}.csv.gz or {name}.csv; {remedy}"
    )


def verify(path: Path, sha256: str) -> None:
    """Refuse a file whose text, unpacked, does not have this hash."""
    try:
        found = hashlib.sha256()
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    except (OSError, EOFError, zlib.error):
        raise FileError(f"path ({str(path)!r}) must be a complete file; get it again") from None
    if found.hexdigest() != sha256:
        raise FileError(
            f"path ({str(path)!r}) must have the known contents, of SHA-256 {sha256} unpacked; get "
            "the data again, or pass verify=False if they were written in another way"
        )


def read(path: Path, kinds: Mapping[str, str]) -> dict[str, Array]:
    """The columns of a file, in the order of `kinds`: "number" is float64, and "text" str.

    A number is the double nearest to its cell, NaN if the cell is no number. Texts are an array of
    objects, whose width does not depend on the records.
    """
    table = CsvTable(File(str(path)), delimiter=",", line_breaks=False)
    with table.clear_errors():
        names = table.names
        if sorted(names) != sorted(kinds):
            raise FileError(
                f"path ({str(path)!r}) must have the declared columns, each once; rename or remove "
                f"{sorted(set(names) - set(kinds))}, and add {sorted(set(kinds) - set(names))}"
            )
        parts: dict[str, list[Array]] = {name: [_empty(kind)] for name, kind in kinds.items()}
        known: dict[str, dict[Any, Any]] = {name: {} for name in kinds}
        for block in table.blocks(list(kinds), ROOM):
            for name, kind in kinds.items():
                cells: Cells = block[name]
                parts[name].append(
                    cells.numbers() if kind == "number" else _texts(cells, known[name])
                )
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _empty(kind: str) -> Array:
    return np.empty(0, dtype=np.float64 if kind == "number" else object)


def _texts(cells: Cells, known: dict[Any, Any]) -> Array:
    """The texts of cells; equal ones are one object."""
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [known.setdefault(text, text) for text in cells.texts()]
    return texts
