"""Unpacked records, scored by a user-defined function whose values are clipped and rounded.

A Python function is called with blocks of records, several blocks at a time; a compiled one with
one record at a time, in a kernel. Either way a record's integers depend on that record and on the
question alone, so neither blocks nor threads nor the order of records matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels.scored import sum_compiled, sum_values
from privfit.base.blas import one_thread
from privfit.base.errors import DeclarationError, InputError
from privfit.base.frozen import frozen
from privfit.base.typing import Array, Floats, Integers
from privfit.base.validation import is_sparse
from privfit.domains.chunks import Coded
from privfit.domains.frames import column_names, columns_of, numbers_of
from privfit.domains.reading import raw_numbers
from privfit.records.ahead import in_order
from privfit.records.compiled import Compiled, refuse_missing
from privfit.records.csv_files import Cells
from privfit.records.packing import Run
from privfit.records.rows import Rows

TRIED = 64  # records that a score is tried on before anything is charged
LARGEST = 1 << 22  # scores in a block
STEPS = 20.0  # elementary steps of a score, besides those for each column
LINE = 8  # doubles in a cache line

Function = Callable[..., ArrayLike] | Compiled


class _ShapeError(Exception):
    """A score that is not an array (n, m)."""


@dataclass(frozen=True)
class OwnScore:
    """User-defined functions, the bounds and the unit of their values, and their block size.

    `function` scores candidates; `moves`, if there is one, the moves away from a candidate.
    """

    function: Function
    moves: Function | None
    low: float
    high: float
    unit: float
    block: int

    @property
    def top(self) -> int:
        """The largest score of a record, in units above low."""
        return round((self.high - self.low) / self.unit)

    @property
    def is_compiled(self) -> bool:
        """Whether records are rows of numbers, because a function is compiled."""
        return isinstance(self.function, Compiled) or isinstance(self.moves, Compiled)

    @property
    def has_python(self) -> bool:
        """Whether a function is in Python, and gets records as they are kept."""
        return any(callable(one) for one in (self.function, self.moves))


@dataclass(frozen=True, repr=False)
class _Call:
    """A function, what it is asked besides the records, and the number of its answers."""

    function: Function
    arguments: tuple[Any, ...]
    m: int
    name: str


class ScoredRows(Rows):
    """Records that are passed to a user-defined function in blocks, or one by one."""

    def __init__(self, records: Any, score: OwnScore, n_threads: int | None = None) -> None:
        columns = list(records.values()) if isinstance(records, Mapping) else [records]
        n = int(np.shape(columns[0])[0]) if columns else 0
        if n == 0:
            raise InputError("records must hold at least one record; pass a non-empty table")
        super().__init__((Run(0, n, 0),), records.shape[1] if score.is_compiled else 0, n_threads)
        self._records, self._score = records, score

    @classmethod
    def pack(
        cls, records: Any, y: None, *, score: OwnScore, n_threads: int | None = None
    ) -> ScoredRows:
        """Keep the records; columns of CSV and Arrow streams become arrays."""
        refuse_missing(score.function, score.moves)
        if is_sparse(records):
            records = scipy.sparse.csr_array(records)
        if score.is_compiled:
            records = _numbers(records, halves=not score.has_python)
        elif isinstance(records, Mapping):
            records = {name: _array(column) for name, column in records.items()}
        return cls(records, score, n_threads)

    def _rows(self, first: int, last: int) -> Any:
        records = self._records
        if isinstance(records, Mapping):
            return {name: values[first:last] for name, values in records.items()}
        return records.iloc[first:last] if hasattr(records, "iloc") else records[first:last]

    # ---------------------------------------------------------------------------------- questions

    def scores(self, P: Any) -> Integers:
        """int64 (m,): the sum over records of clipped scores minus `low`, in units."""
        return self._summed(self._of_candidates(P))

    def moved_scores(self, w: Any, where: Any, what: Any) -> Integers:
        """int64 (m,): the same for moves away from a candidate, by the function for moves."""
        return self._summed(self._of_moves(w, where, what))

    def check(self, P: Any) -> Integers:
        """Refuse a score that fails on each of the first records, or that mixes records."""
        self._tried(self._of_candidates(P))
        return np.zeros(0, dtype=np.int64)

    def check_moves(self, P: Any, w: Any, where: Any, what: Any) -> Integers:
        """Refuse moves that fail or mix records, or whose scores are not those of candidates P."""
        moved = self._tried(self._of_moves(w, where, what))
        if (moved != self._each_alone(0, len(moved), self._of_candidates(P))).any():
            raise DeclarationError(
                "moves must return the scores of the moved candidates, to the unit; pass a "
                "function that returns what score does for space.moved(w, where, what)"
            )
        return np.zeros(0, dtype=np.int64)

    def _of_candidates(self, P: Any) -> _Call:
        return _Call(self._score.function, (frozen(P),), len(P), "score")

    def _of_moves(self, w: Any, where: Any, what: Any) -> _Call:
        assert self._score.moves is not None, "there is no function for moves"
        asked = frozen(w), frozen(where), frozen(what)  # a function must not write into answers
        return _Call(self._score.moves, asked, len(where), "moves")

    def _summed(self, call: _Call) -> Integers:
        if isinstance(call.function, Compiled):
            return self._compiled_sum(0, self.n_records, call)
        return self._block_sums(call)

    # ----------------------------------------------------------------------------- Python functions

    def _block_sums(self, call: _Call) -> Integers:
        """The sum over all blocks, of which each thread takes one at a time."""
        n = self.n_records
        step = max(1, min(self._score.block, LARGEST // call.m))
        blocks = ((first, min(first + step, n)) for first in range(0, n, step))
        at_once = min(-(-n // step), self.threads(STEPS * n * call.m))
        total = np.zeros(call.m, dtype=np.int64)
        with one_thread():  # of BLAS: there are as many of ours as there are cores
            for part in in_order(partial(self._block_sum, call), blocks, at_once):
                total += part
        return total

    def _block_sum(self, call: _Call, block: tuple[int, int]) -> Integers:
        """The sum over a block; over records by themselves, if one gets another score there."""
        first, last = block
        try:
            values = self._values(first, last, call)
        except Exception:  # of some record: each of the others still has its own scores
            values = None
        if values is None or self._mixes(values, first, last, call):
            return self._each_alone(first, last, call).sum(axis=0)
        return self._units(values)

    def _values(self, first: int, last: int, call: _Call) -> NDArray[np.floating]:
        """What the function returns for these records, or its error."""
        assert not isinstance(call.function, Compiled), "a compiled function fills a buffer"
        with np.errstate(all="ignore"):  # a warning would tell of records
            values = np.asarray(call.function(self._rows(first, last), *call.arguments))
            if values.dtype not in (np.float32, np.float64):
                values = values.astype(np.float64)
        if values.shape != (last - first, call.m):
            raise _ShapeError
        return np.ascontiguousarray(values)

    def _units(self, values: NDArray[np.floating]) -> Integers:
        """int64 (m,): the sum over records of clipped and rounded values."""
        total = np.zeros(values.shape[1], dtype=np.int64)
        sum_values(values, self._score.low, self._score.high, self._score.unit, total)
        return total

    def _mixes(self, values: NDArray[np.floating], first: int, last: int, call: _Call) -> bool:
        """Whether the first or the last record of a block gets another score by itself."""
        ends = {first, last - 1} if last - first > 1 else ()
        return any(
            (self._alone(i, call) != self._units(values[i - first : i - first + 1])).any()
            for i in ends
        )

    # ----------------------------------------------------------------------------- single records

    def _alone(self, i: int, call: _Call) -> Integers:
        """int64 (m,): one record's integers; zeros, for `low`, where a function returned none."""
        if isinstance(call.function, Compiled):
            return self._compiled_sum(i, i + 1, call)
        try:
            return self._units(self._values(i, i + 1, call))
        except Exception:
            return np.zeros(call.m, dtype=np.int64)

    def _each_alone(self, first: int, last: int, call: _Call) -> Integers:
        return np.array([self._alone(i, call) for i in range(first, last)])

    def _fault(self, i: int, call: _Call) -> str:
        """What is wrong with one record's scores, without an error's text, which could show it."""
        try:
            self._values(i, i + 1, call)
        except _ShapeError:
            return "returned another shape"
        except Exception as error:
            return f"raised {type(error).__name__}"
        return ""

    def _tried(self, call: _Call) -> Integers:
        """int64 (n, m): the integers of the first records, unless the function is refused."""
        last = min(self.n_records, self._score.block, TRIED)
        alone = self._each_alone(0, last, call)
        if isinstance(call.function, Compiled):
            backwards = [self._alone(i, call) for i in reversed(range(last))]
            if (alone[::-1] != backwards).any():
                raise DeclarationError(
                    f"{call.name} must treat each record by itself; a record got another value "
                    "after other records. Pass a function that keeps nothing between calls"
                )
            return alone
        faults = [self._fault(i, call) for i in range(last)]
        if all(faults):
            raise DeclarationError(
                f"{call.name} {faults[0]} for each of the first records; return an array (n, m), "
                f"here with {call.m} columns"
            )
        if not any(faults) and self._differs(alone, call):
            raise DeclarationError(
                f"{call.name} must treat each record by itself; a record by itself got another "
                "value than in a block. Round inside the function, or pass block=1"
            )
        return alone

    def _differs(self, alone: Integers, call: _Call) -> bool:
        """Whether one of the first records has other integers in a block than by itself."""
        try:
            values = self._values(0, len(alone), call)
        except Exception:  # blocks fail, and are scored record by record
            return False
        together = [self._units(values[i : i + 1]) for i in range(len(alone))]
        return bool((alone != together).any())

    # ------------------------------------------------------------------------- compiled functions

    def _compiled_sum(self, first: int, last: int, call: _Call) -> Integers:
        """int64 (m,): the sum over some records, each passed to the function by itself."""
        assert isinstance(call.function, Compiled), "a Python function takes blocks"
        score, n, d = self._score, last - first, self.n_features
        candidates, where, what = _laid_out(call)
        work = float(n) * call.m * (d + STEPS)
        n_threads = self.threads(work)
        record, values = _lines((n_threads, d)), _lines((n_threads, call.m))
        total = np.zeros((n_threads, call.m), dtype=np.int64)
        if is_sparse(self._records):  # fewer at a time: they are copied, with their zeros
            work = max(work, 100.0 * n * d)
        for part in self.steps(n, work):
            rows = self._records[first + part.start : first + part.stop]
            if is_sparse(rows):
                rows = rows.toarray()
            sum_compiled(
                call.function.capsule, call.function.takes_data, rows, candidates, where, what,
                score.low, score.high, score.unit, record, values, total,
            )  # fmt: skip
        return np.asarray(total.sum(axis=0))


def _laid_out(call: _Call) -> tuple[Floats, NDArray[np.intp] | None, Floats | None]:
    """Candidates side by side, (coordinates, m), or one of them with moves away from it."""
    one, *moves = call.arguments
    if not moves:
        return _copied(np.asarray(one).reshape(call.m, -1).T, np.float64), None, None
    where, what = map(np.asarray, moves)
    if where.shape != (call.m,) or what.shape != (call.m,):
        raise DeclarationError(
            f"what (shape {what.shape}) must be a number for each move, where (shape "
            f"{where.shape}) a position; pass a Python function for other moves"
        )
    one = _copied(np.asarray(one).reshape(-1, 1), np.float64)
    return one, _copied(where, np.intp), _copied(what, np.float64)


def _copied(values: Array, kind: Any) -> Array:
    """A copy at the start of a cache line."""
    room = np.empty(values.size + LINE, dtype=kind)
    first = -room.ctypes.data % (LINE * room.itemsize) // room.itemsize
    copy = room[first : first + values.size].reshape(values.shape)
    copy[...] = values
    return copy


def _lines(shape: tuple[int, int]) -> Floats:
    """Rows of at least this length, each of whole cache lines."""
    rows, length = shape
    return _copied(np.zeros((rows, -(-length // LINE) * LINE)), np.float64)


def _numbers(records: Any, halves: bool) -> Any:
    """(n, d): the numbers of each record; NaN for a cell that is missing or not a number.

    They are float64, or float32 if this is allowed and their type has no other values.
    """
    if is_sparse(records):
        return records.astype(np.float64)
    if names := column_names(records):
        columns = columns_of(records, names)[1]
        return np.ascontiguousarray(np.column_stack([raw_numbers(one) for one in columns]))
    table = np.asarray(numbers_of(records))
    width = math.prod(table.shape[1:])
    if table.dtype.kind not in "biuf" or table.ndim == 0 or width == 0:
        raise InputError(
            f"records (dtype {table.dtype}) must be rows of numbers for a compiled function; pass "
            "an array, a table with columns of numbers, or a Python function"
        )
    kind = np.float32 if halves and np.can_cast(table.dtype, np.float32) else np.float64
    with np.errstate(over="ignore"):  # a warning would tell of records
        return np.ascontiguousarray(table.reshape(len(table), width), dtype=kind)


def _array(column: Any) -> Any:
    """A column of a stream as a numpy array; missing numbers are NaN, missing texts None."""
    if isinstance(column, Cells | Coded):
        return np.asarray(column)
    if not hasattr(column, "type"):  # only Arrow's have one
        return column
    if hasattr(column.type, "index_type"):  # a dictionary
        column = column.cast(column.type.value_type)
    return np.asarray(column)
