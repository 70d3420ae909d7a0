"""Streams that are read once: cells as short arrays, cached block by block like packed records.

A fit that buys its columns passes over its records more than once. Files are parsed and texts are
hashed in the first pass alone; later ones take the blocks of `privfit.domains.once` from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from privfit.base.typing import Array
from privfit.domains.once import ReadLevels, read_once
from privfit.domains.reading import LevelReader, positions
from privfit.domains.schema import Schema
from privfit.records.packing import Run, check_length
from privfit.records.rows import Rows

__all__ = ["ReadRows", "ReadSource"]


class ReadRows(Rows):
    """A block of a stream, read: its columns by name, and its labels."""

    def __init__(self, table: dict[str, Any], labels: ReadLevels, n_threads: int | None = None):
        super().__init__((Run(0, len(labels), 0),), len(table), n_threads)
        self.table, self.labels = table, labels

    @classmethod
    def pack(
        cls, X: Any, y: Any, *, schema: Schema, classes: Array, n_threads: int | None = None
    ) -> ReadRows:
        """Read a block; labels that are not declared are refused by whoever uses them."""
        table = read_once(schema, X)
        codes = LevelReader(positions(classes, "classes")).codes(y)
        check_length(codes, len(next(iter(table.values()))))
        return cls(table, ReadLevels(codes.astype("int32")), n_threads)


class ReadSource:
    """Where a stream that was read takes its blocks from."""

    def __init__(self, names: list[str], tables: Callable[[], Iterator[ReadRows]]) -> None:
        self.columns: list[str] | None = names
        self._tables = tables

    def reader_bytes(self, y: Any) -> int:
        """None: its blocks are in memory, or mapped."""
        return 0

    def blocks(self, y: Any, room: int, more_columns: int = 0) -> Iterator[tuple[Any, Any]]:
        """The blocks as they were cached; labels were read with them."""
        for rows in self._tables():
            yield rows.table, rows.labels
