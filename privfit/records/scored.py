"""Unpacked records, scored by a user-defined function whose values are clipped and rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_sparse
from privfit.records.csv_files import Cells
from privfit.records.packing import Run
from privfit.records.rows import Rows

TRIED = 64  # records that a score is tried on before anything is charged


class _ShapeError(Exception):
    """A score that is not an array (n, m)."""


@dataclass(frozen=True)
class OwnScore:
    """A user-defined function, the bounds and the unit of its values, and its block size."""

    function: Callable[[Any, Any], ArrayLike]
    low: float
    high: float
    unit: float
    block: int

    @property
    def top(self) -> int:
        """The largest score of a record, in units above low."""
        return round((self.high - self.low) / self.unit)


class ScoredRows(Rows):
    """Records that are passed to a user-defined function in blocks."""

    def __init__(self, records: Any, score: OwnScore) -> None:
        columns = list(records.values()) if isinstance(records, Mapping) else [records]
        n = int(np.shape(columns[0])[0]) if columns else 0
        if n == 0:
            raise InputError("records must hold at least one record; pass a non-empty table")
        super().__init__((Run(0, n, 0),), 0)
        self._records, self._score = records, score

    @classmethod
    def pack(cls, records: Any, y: None, *, score: OwnScore) -> ScoredRows:
        """Keep the records; columns of CSV and Arrow streams become arrays."""
        if is_sparse(records):
            records = scipy.sparse.csr_array(records)
        elif isinstance(records, Mapping):
            records = {name: _array(column) for name, column in records.items()}
        return cls(records, score)

    def _rows(self, first: int, last: int) -> Any:
        records = self._records
        if isinstance(records, Mapping):
            return {name: values[first:last] for name, values in records.items()}
        return records.iloc[first:last] if hasattr(records, "iloc") else records[first:last]

    def _values(self, first: int, last: int, P: Any) -> Floats:
        """What the function returns for these records, or its error."""
        with np.errstate(all="ignore"):  # a warning would tell of records
            values = np.asarray(self._score.function(self._rows(first, last), P), dtype=np.float64)
        if values.shape != (last - first, len(P)):
            raise _ShapeError
        return values

    def _integers(self, first: int, last: int, P: Any) -> Integers:
        """(n, m): clipped and rounded scores; `low` where the function returned none."""
        low, high = self._score.low, self._score.high
        try:
            values = self._values(first, last, P)
        except Exception:  # of some record: each of the others still has its own scores
            if last - first > 1:
                return self._each_alone(first, last, P)
            values = np.full((1, len(P)), low)
        inside = np.clip(np.where(np.isnan(values), low, values), low, high)
        units = np.rint((inside - low) / self._score.unit)
        return np.clip(units, 0, self._score.top).astype(np.int64)

    def _each_alone(self, first: int, last: int, P: Any) -> Integers:
        return np.concatenate([self._integers(i, i + 1, P) for i in range(first, last)])

    def _mixes(self, whole: Integers, first: int, last: int, P: Any) -> bool:
        """Whether the first or the last record of a block gets another score by itself."""
        ends = {first, last - 1} if last - first > 1 else ()
        return any((self._integers(i, i + 1, P)[0] != whole[i - first]).any() for i in ends)

    def _fault(self, i: int, P: Any) -> str:
        """What is wrong with one record's scores, without an error's text, which could show it."""
        try:
            self._values(i, i + 1, P)
        except _ShapeError:
            return "returned another shape"
        except Exception as error:
            return f"raised {type(error).__name__}"
        return ""

    def check(self, P: Any) -> Integers:
        """Refuse a score that fails on each of the first records, or that mixes records."""
        last = min(self.n_records, self._score.block, TRIED)
        faults = [self._fault(i, P) for i in range(last)]
        if all(faults):
            raise DeclarationError(
                f"score {faults[0]} for each of the first records; return an array (n, m), here "
                f"with {len(P)} columns"
            )
        if self._mixes(self._integers(0, last, P), 0, last, P):
            raise DeclarationError(
                "score must treat each record by itself; a record by itself got another value "
                "than in a block. Round inside score, or pass block=1"
            )
        return np.zeros(0, dtype=np.int64)

    def scores(self, P: Any) -> Integers:
        """int64 (m,): the sum over records of clipped scores minus `low`, in units."""
        total = np.zeros(len(P), dtype=np.int64)
        step = max(1, min(self._score.block, (1 << 22) // len(P)))
        for first in range(0, self.n_records, step):
            last = min(first + step, self.n_records)
            whole = self._integers(first, last, P)
            if self._mixes(whole, first, last, P):
                whole = self._each_alone(first, last, P)
            total += whole.sum(axis=0)
        return total


def _array(column: Any) -> Any:
    """A column of a stream as a numpy array; missing numbers are NaN, missing texts None."""
    if isinstance(column, Cells):
        return np.asarray(column)
    if not hasattr(column, "type"):  # only Arrow's have one
        return column
    if hasattr(column.type, "index_type"):  # a dictionary
        column = column.cast(column.type.value_type)
    return np.asarray(column)
