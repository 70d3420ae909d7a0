"""Anybody's own fitness of a record under a candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_sparse, is_whole
from privfit.objectives.common import check_adjacency

TRIED = 64  # records that a score is tried on before anything is charged


class _ShapeError(Exception):
    """A score that is no array (n, m)."""


class RecordObjective:
    """Anybody's own score of a record under a candidate, clipped and rounded by us.

    Parameters
    ----------
    records : array, sparse matrix, DataFrame, list or dict of columns
        Private records; rows are handed to `score` in blocks.
    score : callable (records, P) -> (n, m)
        Higher is better. It must treat each record by itself: a record's scores may not depend on
        which others stand in the block. A search checks this on the first records before anything
        is charged. Later nothing is refused: a block in which a record that stands alone scores
        otherwise is scored record by record, and so is one that `score` raises for.
    low, high : float
        Public bounds. Scores are clipped to them, so sensitivity does not rest on `score`. NaN
        counts as `low`; a record that `score` raises for, or gives another shape, has `low` for
        every candidate. So a run that began ends with an answer, whatever the records are.
    bits : int
        Levels of a score between the bounds: 2^bits, at most 2^30. Sums over 2^32 records are then
        at most 2^62: none wraps, whatever the neighbour relation.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import RecordObjective
    >>> def nearness(records, P):
    ...     return -np.abs(records[:, None] - P)
    >>> objective = RecordObjective(np.array([0.0, 1.0, 1.0]), nearness, low=-1.0, high=0.0)
    >>> scores = objective.scores(np.array([0.0, 1.0]))
    >>> bool(scores[1] > scores[0])
    True
    """

    def __init__(
        self,
        records: Any,
        score: Callable[[Any, Any], ArrayLike],
        low: float,
        high: float,
        *,
        bits: int = 16,
        block: int = 4096,
    ) -> None:
        if not callable(score):
            raise TypeError("score must be a function; pass score(records, P) -> array (n, m)")
        for name, value in (("low", low), ("high", high)):
            if not is_finite(value):
                raise ValueError(f"{name} ({value!r}) must be a finite number; pass a public bound")
        if not low < high:
            raise ValueError(f"low ({low}) must be below high ({high}); pass the public bounds")
        if not is_whole(bits) or not 1 <= bits <= 30:
            raise ValueError(f"bits ({bits!r}) must be a whole number from 1 to 30; pass bits=16")
        if not is_whole(block) or block < 1:
            raise ValueError(f"block ({block!r}) must be a positive number; pass block=4096")
        self._load(records)
        self._score, self._block = score, block
        self.low, self.high = float(low), float(high)
        width = self.high - self.low
        if not 1e-100 <= width <= 1e100:
            raise ValueError(f"high - low ({width}) must lie in 1e-100..1e100; pass scaled scores")
        self.unit = 2.0 ** (math.frexp(width)[1] - bits)
        self._top = round(width / self.unit)

    def _load(self, records: Any) -> None:
        self._records = scipy.sparse.csr_array(records) if is_sparse(records) else records
        columns = list(records.values()) if isinstance(records, Mapping) else [records]
        self.n_records = int(np.shape(columns[0])[0]) if columns else 0
        if self.n_records == 0:
            raise ValueError("records must hold at least one record; pass a non-empty table")

    def __repr__(self) -> str:
        return f"<RecordObjective of private records, scores in [{self.low}, {self.high}]>"

    def _rows(self, first: int, last: int) -> Any:
        records = self._records
        if isinstance(records, Mapping):
            return {name: values[first:last] for name, values in records.items()}
        return records.iloc[first:last] if hasattr(records, "iloc") else records[first:last]

    def _values(self, first: int, last: int, P: Any) -> Floats:
        """What `score` returns for these records, or its error."""
        with np.errstate(all="ignore"):  # a warning would tell of records
            values = np.asarray(self._score(self._rows(first, last), P), dtype=np.float64)
        if values.shape != (last - first, len(P)):
            raise _ShapeError
        return values

    def _integers(self, first: int, last: int, P: Any) -> Integers:
        """(n, m): clipped and rounded scores, those of `low` where there are none."""
        try:
            values = self._values(first, last, P)
        except Exception:  # of some record: each of the others still has its own scores
            if last - first > 1:
                return self._each_alone(first, last, P)
            values = np.full((1, len(P)), self.low)
        inside = np.clip(np.where(np.isnan(values), self.low, values), self.low, self.high)
        units = np.rint((inside - self.low) / self.unit)
        return np.clip(units, 0, self._top).astype(np.int64)

    def _each_alone(self, first: int, last: int, P: Any) -> Integers:
        return np.concatenate([self._integers(i, i + 1, P) for i in range(first, last)])

    def _mixes(self, whole: Integers, first: int, last: int, P: Any) -> bool:
        """Whether the first or the last record of a block scores otherwise alone."""
        ends = {first, last - 1} if last - first > 1 else ()
        return any((self._integers(i, i + 1, P)[0] != whole[i - first]).any() for i in ends)

    def _fault(self, i: int, P: Any) -> str:
        """What is wrong with the scores of a record alone; an error's text may show the record."""
        try:
            self._values(i, i + 1, P)
        except _ShapeError:
            return "returned another shape"
        except Exception as error:
            return f"raised {type(error).__name__}"
        return ""

    def check(self, P: Any) -> None:
        """Refuse a `score` that fails on each of the first records, or mixes them."""
        last = min(self.n_records, self._block, TRIED)
        faults = [self._fault(i, P) for i in range(last)]
        if all(faults):
            raise ValueError(
                f"score {faults[0]} for each of the first records; return an array (n, m), here "
                f"with {len(P)} columns"
            )
        if self._mixes(self._integers(0, last, P), 0, last, P):
            raise ValueError(
                "score must treat each record by itself; it gave another value to a record that "
                "stood alone. Round inside score, or pass block=1"
            )

    def scores(self, P: Any) -> Integers:
        """int64 (m,): the sum over records of clipped scores less `low`, in units of `unit`."""
        if len(P) == 0:
            raise ValueError("P must hold at least one candidate; pass a non-empty array")
        total = np.zeros(len(P), dtype=np.int64)
        step = max(1, min(self._block, (1 << 22) // len(P)))
        for first in range(0, self.n_records, step):
            last = min(first + step, self.n_records)
            whole = self._integers(first, last, P)
            if self._mixes(whole, first, last, P):
                whole = self._each_alone(first, last, P)
            total += whole.sum(axis=0)
        return total

    def prior(self, P: Any) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Any, adjacency: str) -> int:
        """high - low in score units, twice that under replace; 0 for a single candidate."""
        check_adjacency(adjacency)
        if len(P) < 2:
            return 0
        return self._top * (2 if adjacency == "replace" else 1)

    spread = range
