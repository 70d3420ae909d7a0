"""Records in the kernels' own layout: checked, clipped, rounded and packed once.

Dense records are stored in panels of 16 rows, two int16 columns to an int32, so that one
instruction multiplies a pair of columns of eight records. Sparse records list the columns that are
exactly one (a pure addition) apart from other values. Records of one class are stored together, so
that a loss never looks up the class of a record; their order does not matter, since scores are sums
of integers. With several classes, each in turn is class 1 and the rest class 0: that flips the
signs of runs, and nothing is packed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels.panels import move_rows, pack_pair, pack_rows
from privfit._kernels.records import PANEL_ROWS, SparseRows
from privfit.base.errors import DeclarationError, DeclarationTypeError, InputError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_sparse
from privfit.domains import Domain
from privfit.domains.codes import Codes
from privfit.domains.domain import not_finite
from privfit.domains.frames import length
from privfit.domains.reading import LevelReader, positions, two_classes

MAX_RECORDS = 2**32  # a public bound: sums are proved not to overflow up to here
TABLE_RECORDS = 2**31 - 1  # of one table in memory, whose rows have 32-bit numbers
CHUNK_BYTES = 1 << 22  # of float64 input that are checked, clipped and packed at a time
PACKING = 10.0  # elementary steps of a number that is clipped, rounded and packed
NO_ROWS, NO_NUMBERS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int16)


def aligned(shape: tuple[int, ...], dtype: Any, zero: bool = True) -> NDArray[Any]:
    """Memory that starts on a cache line: a vector load across two lines costs two loads."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    # numpy asks for huge pages in empty(), not in zeros(): fewer page faults on large tables.
    memory = np.empty(size + 64, dtype=np.uint8)
    if zero:
        memory.fill(0)
    first = -memory.__array_interface__["data"][0] % 64  # quicker than .ctypes
    return memory[first : first + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class Run:
    """`count` packed records of one group from row `first` on; flip 0 is class 1, -1 class 0."""

    first: int
    count: int
    flip: int
    group: int = 0


def against(runs: tuple[Run, ...], group: int) -> tuple[Run, ...]:
    """The same runs where this group is class 1 and all others are class 0."""
    return tuple(replace(run, flip=0 if run.group == group else -1) for run in runs)


@dataclass(frozen=True, repr=False)
class DenseRecords:
    """Panels (n_panels, pairs, 16, 2) of int16; rows that pad a panel are zero."""

    panels: NDArray[np.int16]
    runs: tuple[Run, ...]
    n_features: int

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return self.panels.nbytes

    @property
    def pairs(self) -> int:
        """Columns, two to a pair."""
        return int(self.panels.shape[1])

    @property
    def as_pairs(self) -> NDArray[np.int32]:
        """The panels with a pair of columns in one int32."""
        return self.panels.view(np.int32)[..., 0]

    def against(self, group: int) -> DenseRecords:
        """The same records; those of this group are class 1, all others class 0."""
        return replace(self, runs=against(self.runs, group))

    def blocks(self, rows: int) -> Iterator[NDArray[np.int16]]:
        """The records, unpacked: blocks (at most `rows` rounded down to panels, d)."""
        for _, block in self.labelled_blocks(rows):
            yield block

    def labelled_blocks(self, rows: int) -> Iterator[tuple[Run, NDArray[np.int16]]]:
        """The same blocks, each of one class, with the run that it belongs to."""
        step = max(1, rows // PANEL_ROWS)
        for run in self.runs:
            for first in range(0, run.count, step * PANEL_ROWS):
                p = (run.first + first) // PANEL_ROWS
                block = np.ascontiguousarray(_pairs(self.panels[p : p + step]).transpose(0, 2, 1))
                count = min(step * PANEL_ROWS, run.count - first)
                whole = block.reshape(-1, self.pairs).view(np.int16)
                yield run, whole[:count, : self.n_features]


@dataclass(frozen=True, repr=False)
class SparseRecords:
    """Rows that list their ones, and their other values."""

    one_start: Integers
    one_column: NDArray[np.int32]
    value_start: Integers
    value_column: NDArray[np.int32]
    value: NDArray[np.int16]
    runs: tuple[Run, ...]
    n_features: int
    one: int
    rows: SparseRows = field(init=False)

    def __post_init__(self) -> None:
        rows = SparseRows(
            self.one_start, self.one_column, self.value_start, self.value_column, self.value
        )
        object.__setattr__(self, "rows", rows)

    def __reduce__(self) -> Any:  # what the kernel reads is made anew
        return SparseRecords, tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def against(self, group: int) -> SparseRecords:
        """The same records; those of this group are class 1, all others class 0."""
        result = replace(self, runs=against(self.runs, group))
        if "by_column" in self.__dict__:
            result.__dict__["by_column"] = self.by_column.of(result.runs)
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        arrays = self.one_start, self.one_column, self.value_start, self.value_column, self.value
        return sum(array.nbytes for array in arrays)

    @property
    def mean_entries(self) -> float:
        """Non-zeros of a record on average."""
        return (self.one_column.size + self.value_column.size) / (self.one_start.size - 1)

    def labelled_blocks(self, rows: int) -> Iterator[tuple[Run, scipy.sparse.csr_array]]:
        """The records as CSR blocks (at most `rows`, d) of one class, with the run of each."""
        for run in self.runs:
            for first in range(run.first, run.first + run.count, rows):
                last = min(first + rows, run.first + run.count)
                ones = self._block(first, last, self.one_start, self.one_column)
                values = self._block(first, last, self.value_start, self.value_column, self.value)
                yield run, ones + values  # no entry is in both

    def _block(
        self,
        first: int,
        last: int,
        start: Integers,
        column: NDArray[np.int32],
        value: NDArray[np.int16] | None = None,
    ) -> scipy.sparse.csr_array:
        part = slice(start[first], start[last])
        data = np.full(column[part].size, self.one, np.int16) if value is None else value[part]
        starts = (start[first : last + 1] - start[first]).astype(np.int32)
        return scipy.sparse.csr_array(
            (data, column[part], starts), shape=(last - first, self.n_features)
        )

    @cached_property
    def by_column(self) -> Columns:
        """The same entries column by column."""
        n, d = self.one_start.size - 1, self.n_features
        every = np.arange(n, dtype=np.int32)
        row = np.concatenate([np.repeat(every, np.diff(self.one_start)),
                              np.repeat(every, np.diff(self.value_start)), every])  # fmt: skip
        column = np.concatenate([self.one_column, self.value_column, np.full(n, d, np.int32)])
        ones = (np.full(size, self.one, np.int16) for size in (self.one_column.size, n))
        value = np.concatenate([next(ones), self.value, next(ones)])
        by_row = np.argsort(row, kind="stable")  # three sorted runs: quick to merge
        # Columns of 16 bits are sorted by their digits, several times quicker.
        key = column[by_row].astype(np.uint16 if d < 1 << 16 else np.int32)
        order = by_row[np.argsort(key, kind="stable")]
        start = np.zeros(d + 2, dtype=np.int64)
        np.cumsum(np.bincount(column, minlength=d + 1), out=start[1:])
        return Columns(start, row[order], value[order], self.runs)


SEGMENT = 8192  # entries of a column that one thread takes at a time


@dataclass(frozen=True, repr=False)
class Columns:
    """Entries (row, value) column by column; the last column is the intercept's."""

    start: Integers
    row: NDArray[np.int32]
    value: NDArray[np.int16]
    runs: tuple[Run, ...]

    @cached_property
    def _segments(self) -> tuple[Integers, Integers]:
        """(s, 4) rows (first entry, last entry, column, run), and where each column's begin."""
        parts = []
        for column, (first, last) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            for i, run in enumerate(self.runs):
                edges = np.searchsorted(self.row[first:last], (run.first, run.first + run.count))
                begin, end = (int(edge) for edge in first + edges)
                for at in range(begin, end, SEGMENT):
                    parts.append((at, min(at + SEGMENT, end), column, i))
        table = np.array(parts, dtype=np.int64).reshape(-1, 4)
        return table, np.searchsorted(table[:, 2], np.arange(self.start.size))

    def segments(self, columns: Integers) -> Integers:
        """(s, 4) rows (first entry, last entry, position in `columns`, flip) of these columns."""
        table, start = self._segments
        count = start[columns + 1] - start[columns]
        position = np.repeat(np.arange(columns.size), count)
        within = np.arange(position.size) - np.repeat(np.cumsum(count) - count, count)
        chosen = table[start[columns][position] + within]
        chosen[:, 2] = position
        chosen[:, 3] = np.array([run.flip for run in self.runs])[chosen[:, 3]]
        return chosen

    def of(self, runs: tuple[Run, ...]) -> Columns:
        """The same entries; of the same runs, with other signs."""
        result = copy(self)
        object.__setattr__(result, "runs", runs)
        return result


def tiles(runs: tuple[Run, ...], rows: int) -> Integers:
    """(t, 3) rows (first, count, flip): the runs cut into pieces of at most `rows` records."""
    parts = []
    for run in runs:
        offset = np.arange(0, run.count, rows, dtype=np.int64)
        count = np.minimum(rows, run.count - offset)
        parts.append(np.column_stack([run.first + offset, count, np.full_like(offset, run.flip)]))
    return np.concatenate(parts) if parts else np.empty((0, 3), dtype=np.int64)


def joined(tables: Sequence[Any]) -> Any:
    """All records of tables with one layout in a single table, as `pack` makes it: by group."""
    if not isinstance(tables[0], DenseRecords | SparseRecords):
        return tables[0].joined(tables)
    if isinstance(tables[0], SparseRecords):
        return _joined_sparse([table for table in tables if isinstance(table, SparseRecords)])
    return _joined_dense([table for table in tables if isinstance(table, DenseRecords)])


def repacked(blocks: Sequence[NDArray[np.int16]]) -> DenseRecords:
    """Unpacked rows of one class, of one or more tables, in panels without gaps."""
    count = np.array([sum(map(len, blocks))])
    return _dense(count, blocks[0].shape[1], ((0, block) for block in blocks))


def _joined_dense(tables: Sequence[DenseRecords]) -> DenseRecords:
    """The same for panels, whose rows move on by as many as the last panel of their group has."""
    parts = [(table, run) for table in tables for run in table.runs]
    groups, sizes = zip(*((run.group, run.count) for _, run in parts), strict=True)
    panels, runs = _panels(
        np.bincount(groups, sizes).astype(np.int64), tables[0].n_features, zero=False
    )
    places = {run.group: _panels_of(run) for run in runs}
    filled, pairs = dict.fromkeys(places, 0), panels.view(np.int32)[..., 0]
    for where in places.values():
        panels[where.stop - 1] = 0
    for table, run in parts:
        out = pairs[places[run.group]]
        move_rows(table.as_pairs[_panels_of(run)], filled[run.group], out)
        filled[run.group] += run.count
    return DenseRecords(panels, runs, tables[0].n_features)


def _joined_sparse(tables: Sequence[SparseRecords]) -> SparseRecords:
    """The first group of all tables, then the second, and so on."""
    runs = sorted(((table, run) for table in tables for run in table.runs),
                  key=lambda of: of[1].group)  # fmt: skip
    count = np.bincount([run.group for _, run in runs], [run.count for _, run in runs])

    def rows(starts: str) -> tuple[Integers, Callable[[str], Any]]:
        """Row starts of all runs, and what picks the entries of their rows."""
        cuts = [getattr(table, starts)[run.first : run.first + run.count + 1]
                for table, run in runs]  # fmt: skip
        lengths = np.concatenate([np.zeros(1, np.int64), *map(np.diff, cuts)])

        def picked(name: str) -> Any:
            return np.concatenate([
                getattr(table, name)[cut[0] : cut[-1]]
                for (table, _), cut in zip(runs, cuts, strict=True)
            ])  # fmt: skip

        return np.cumsum(lengths), picked

    (one_start, ones), (value_start, values) = rows("one_start"), rows("value_start")
    return SparseRecords(
        one_start,
        ones("one_column"),
        value_start,
        values("value_column"),
        values("value"),
        runs_of(count.astype(np.int64)),
        tables[0].n_features,
        tables[0].one,
    )


# ------------------------------------------------------------------------------------- checking


def check_domain(domain: Any, what: str) -> Domain:
    """Refuse records whose domain is not declared."""
    if domain is None:
        raise DeclarationError(
            f"{what} needs the declared domain of a record; pass domain=Box(low, high), "
            "L1Ball(radius), L2Ball(radius) or Schema({...}) from documentation, not from the data"
        )
    if not isinstance(domain, Domain):
        raise DeclarationTypeError(
            f"domain ({type(domain).__name__}) must be a Domain; pass domain=Box(low, high) or a "
            "Schema"
        )
    return domain


def check_records(X: Any, domain: Any, what: str) -> tuple[Any, Domain]:
    """X as an array, CSR matrix or encoded schema, and the domain bound to its columns."""
    domain = check_domain(domain, what)
    X = domain.read(X)
    if X.shape[0] == 0:
        raise InputError("X must have at least one record; pass a non-empty table")
    if max(X.shape) > TABLE_RECORDS:
        raise InputError(
            f"X must have at most {TABLE_RECORDS} records and columns in memory; pass more records "
            "as a Stream"
        )
    return X, domain.bind(X.shape[1])


def check_length(y: Any, n: int) -> None:
    """Refuse labels of another number of records."""
    if length(y) != n:
        raise InputError("y must have one label for each record of X; pass a vector of that length")


def check_labels(y: Any, n: int, n_classes: int | None = None) -> Integers:
    """(n,) the group of each record: 0 for class 1 and 1 for class 0, or one of several classes."""
    check_length(y, n)
    if n_classes is not None:
        codes = LevelReader(positions(range(n_classes), "classes")).codes(y)
        if (codes < 0).any():
            raise InputError(
                f"y must hold whole numbers in 0..{n_classes - 1}; encode labels by their declared "
                "classes"
            )
        return codes
    groups = two_classes(y)
    if groups is None:
        raise InputError(
            "y must hold 0 and 1, or -1 and +1; encode other labels by their declared classes"
        )
    return groups


# -------------------------------------------------------------------------------------- packing


def pack(
    X: Any,
    domain: Domain,
    groups: Integers | None = None,
    *,
    layout: str = "auto",
    uniform: bool = False,
    n_threads: int = 1,
) -> DenseRecords | SparseRecords:
    """Round and pack records, sorted by `groups`; the first is class 1, all others class 0."""
    if layout not in ("auto", "dense", "sparse"):
        raise DeclarationError(
            f"layout ({layout!r}) must be 'auto', 'dense' or 'sparse'; leave it out"
        )
    if layout == "auto":
        layout = "sparse" if _is_sparse(X) else "dense"
    if groups is None:
        groups = np.zeros(X.shape[0], dtype=np.int64)
    if layout == "sparse":
        return _pack_sparse(X, domain, groups, uniform)
    box = domain.clipping(uniform)
    if box is not None and isinstance(X, np.ndarray):
        return _pack_boxed(X, box, groups, n_threads)
    if isinstance(X, Codes) and not X.levels:
        return _pack_columns(X, groups, n_threads)
    return _pack_dense(X, domain, groups, uniform)


def _is_sparse(X: Any) -> bool:
    """Whether adding the non-zeros is faster than multiplying all columns: measured at 0.4."""
    if X.shape[1] < 16:  # row starts would take more room than they save
        return False
    if isinstance(X, Codes):
        return len(X.levels) + len(X.numbers) < 0.4 * X.shape[1]
    if is_sparse(X):
        return bool(X.nnz < 0.4 * X.shape[0] * X.shape[1])
    rows = max(1, CHUNK_BYTES // X.shape[1])
    filled = sum(np.count_nonzero(X[i : i + rows]) for i in range(0, X.shape[0], rows))
    return bool(filled < 0.4 * X.size)


def _pack_dense(X: Any, domain: Domain, groups: Integers, uniform: bool) -> DenseRecords:
    count = np.bincount(groups)
    there = np.flatnonzero(count).tolist()

    def rows() -> Iterator[tuple[int, NDArray[np.int16]]]:
        for first, block in domain.dense_blocks(X, uniform, CHUNK_BYTES):
            mine = groups[first : first + len(block)]
            whole = np.ascontiguousarray(block).view(f"V{2 * block.shape[1]}")[:, 0]  # row by row
            for group in there:
                some = block if len(there) == 1 else whole[mine == group]
                yield group, some.view(np.int16).reshape(-1, block.shape[1])

    return _dense(count, X.shape[1], rows())


def _pack_boxed(X: Any, box: Floats, groups: Integers, n_threads: int) -> DenseRecords:
    """The same for columns that are clipped by themselves: one pass over numbers as they are."""
    panels, runs = _panels(np.bincount(groups), X.shape[1])
    work = np.zeros((n_threads, 2 * panels.shape[1]), dtype=np.int16)
    places = np.empty(X.shape[0] if len(runs) > 1 else 0, dtype=np.int64)
    for run in runs if places.size else ():
        places[groups == run.group] = np.arange(run.first, run.first + run.count)
    odd = 0
    for first, rows in _numbers(X):
        odd += pack_rows(rows, box, places[first : first + len(rows)], first, work, panels)
    if odd:
        raise not_finite()
    return DenseRecords(panels, runs, X.shape[1])


def _pack_columns(X: Codes, groups: Integers, n_threads: int) -> DenseRecords:
    """The same for columns that are on the grid: two at a time, without a table of rows."""
    panels, runs = _panels(np.bincount(groups), X.shape[1], zero=False)
    columns = [np.ascontiguousarray(X.numbers[i]) for i in np.argsort(X.places).tolist()]
    for run in runs:
        rows = np.flatnonzero(groups == run.group) if len(runs) > 1 else NO_ROWS
        its = panels[_panels_of(run)]
        for j, one in enumerate(columns[::2]):
            other = columns[2 * j + 1] if 2 * j + 1 < len(columns) else NO_NUMBERS
            pack_pair(one, other, rows, j, its, n_threads)
    return DenseRecords(panels, runs, X.shape[1])


def _numbers(X: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks (first, rows) of float32 or float64, as `pack_rows` can read them."""
    as_it_is = X.dtype.char in "fd" and X.dtype.isnative and X.flags.aligned
    as_it_is &= all(stride % X.itemsize == 0 for stride in X.strides)
    rows = max(1, (16 if as_it_is else 1) * CHUNK_BYTES // (8 * X.shape[1]))
    for first in range(0, X.shape[0], rows):
        block = X[first : first + rows]
        with np.errstate(over="ignore"):  # a warning would tell that some record is huge
            yield first, block if as_it_is else np.ascontiguousarray(block, dtype=np.float64)


def _panels(
    count: Integers, d: int, zero: bool = True
) -> tuple[NDArray[np.int16], tuple[Run, ...]]:
    """Empty panels for so many records of each group, and where these go."""
    size = -(-count // PANEL_ROWS)  # a group begins with a panel of its own
    panels = aligned((int(size.sum()), -(-d // 2), PANEL_ROWS, 2), np.int16, zero)
    return panels, runs_of(count, PANEL_ROWS * (np.cumsum(size) - size))


def _panels_of(run: Run) -> slice:
    """Where the panels of a run are, which has them to itself."""
    first = run.first // PANEL_ROWS
    return slice(first, first - (-run.count // PANEL_ROWS))


def _dense(count: Integers, d: int, rows: Iterable[tuple[int, NDArray[np.int16]]]) -> DenseRecords:
    """Records in panels, `count` of each group; the rows of a group come in order."""
    panels, runs = _panels(count, d)
    filled = {run.group: run.first for run in runs}
    for group, block in rows:
        _write_rows(panels, filled[group], block)
        filled[group] += len(block)
    return DenseRecords(panels, runs, d)


def _write_rows(panels: NDArray[np.int16], first: int, rows: NDArray[np.int16]) -> None:
    """Write rows to consecutive places of the panels: whole panels at once, the ends one by one."""
    if rows.shape[1] % 2:
        rows = np.pad(rows, ((0, 0), (0, 1)))
    n, pairs = rows.shape[0], rows.shape[1] // 2
    head = min(n, -first % PANEL_ROWS)
    body = (n - head) // PANEL_ROWS * PANEL_ROWS
    table, rows = _pairs(panels), np.ascontiguousarray(rows).view(np.int32)
    for some in (slice(0, head), slice(head + body, n)):
        where = first + np.arange(some.start, some.stop)
        table[where // PANEL_ROWS, :, where % PANEL_ROWS] = rows[some]
    if body:
        p = (first + head) // PANEL_ROWS
        whole = rows[head : head + body].reshape(-1, PANEL_ROWS, pairs)
        table[p : p + body // PANEL_ROWS] = whole.transpose(0, 2, 1)


def _pairs(panels: NDArray[np.int16]) -> NDArray[np.int32]:
    """(p, pairs, rows): panels with two columns as one number, which are copied at once."""
    return panels.view(np.int32)[..., 0]


def _pack_sparse(X: Any, domain: Domain, groups: Integers, uniform: bool) -> SparseRecords:
    one = 1 << domain.grid.a
    blocks = [scipy.sparse.csr_array(block) for _, block in domain.blocks(X, uniform, CHUNK_BYTES)]
    table = scipy.sparse.vstack(blocks, format="csr", dtype=np.int16)
    table.eliminate_zeros()
    if groups.any():
        table = table[np.argsort(groups, kind="stable")]
    is_one = table.data == one
    return SparseRecords(
        _starts(table.indptr, is_one),
        table.indices[is_one].astype(np.int32),
        _starts(table.indptr, ~is_one),
        table.indices[~is_one].astype(np.int32),
        table.data[~is_one].astype(np.int16),
        runs_of(np.bincount(groups)),
        X.shape[1],
        one,
    )


def _starts(indptr: NDArray[Any], chosen: NDArray[np.bool_]) -> Integers:
    """Row starts of the chosen entries alone."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen, dtype=np.int64)])[indptr]


def runs_of(count: Integers, first: Integers | None = None) -> tuple[Run, ...]:
    """A run for each group that is not empty; the rows of a group follow those before."""
    first = np.cumsum(count) - count if first is None else first
    return against(
        tuple(Run(int(first[g]), int(count[g]), 0, g) for g in np.flatnonzero(count).tolist()), 0
    )
