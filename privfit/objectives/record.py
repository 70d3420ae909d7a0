"""A user-defined score of a record for a candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Integers
from privfit.base.validation import is_finite, is_whole
from privfit.objectives.common import Objective
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.places import sums_of
from privfit.records.scored import OwnScore, ScoredRows


class RecordObjective(Objective[ScoredRows]):
    """A user-defined score of a record for a candidate, clipped and rounded.

    Parameters
    ----------
    records : array, sparse matrix, DataFrame, list, dict of columns, Stream or Dask collection
        Private records; rows are passed to `score` in blocks, where they are stored. A block of a
        streamed table is a dict of arrays; cells of CSV files are texts, None where a record lacks
        the field.
    score : callable (records, P) -> array of shape (n, m)
        Higher is better. It must treat each record by itself: a record's scores may not depend on
        the other records in the block. A search checks this on the first records before anything is
        charged. Later nothing is refused: a block in which a record by itself gets another score is
        scored record by record, and so is one for which `score` raises.
    low, high : float
        Public bounds. Scores are clipped to them, so sensitivity does not depend on `score`. NaN
        counts as `low`; a record for which `score` raises, or returns another shape, has `low` for
        every candidate. So a run that began ends with an answer, whatever the records are.
    bits : int, default=16
        A score has 2^bits levels between the bounds, at most 2^30. Sums over 2^32 records are then
        at most 2^62: none wraps, whatever the neighbour relation.
    block : int, default=4096
        Number of records in a block.

    See Also
    --------
    search : Searches for a candidate.
    LinearObjective, CentersObjective, FacilityObjective : Fast objectives.

    Notes
    -----
    `scores` are not released; pass them to a grant's `release`.

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
        records: object,
        score: Callable[..., ArrayLike],
        low: float,
        high: float,
        *,
        bits: int = 16,
        block: int = 4096,
    ) -> None:
        if not callable(score):
            raise DeclarationTypeError(
                "score must be a function; pass score(records, P) -> array (n, m)"
            )
        for name, value in (("low", low), ("high", high)):
            if not is_finite(value):
                raise DeclarationError(
                    f"{name} ({value!r}) must be a finite number; pass a public bound"
                )
        if not low < high:
            raise DeclarationError(
                f"low ({low}) must be below high ({high}); pass the public bounds"
            )
        if not is_whole(bits) or not 1 <= bits <= 30:
            raise DeclarationError(
                f"bits ({bits!r}) must be a whole number from 1 to 30; pass bits=16"
            )
        if not is_whole(block) or block < 1:
            raise DeclarationError(f"block ({block!r}) must be a positive number; pass block=4096")
        self.low, self.high = float(low), float(high)
        width = self.high - self.low
        if not 1e-100 <= width <= 1e100:
            raise DeclarationError(
                f"high - low ({width}) must lie in 1e-100..1e100; pass scaled scores"
            )
        self.unit = 2.0 ** (math.frexp(width)[1] - bits)
        own = OwnScore(score, self.low, self.high, self.unit, block)
        self._sums, self._top = sums_of(records, None, partial(ScoredRows.pack, score=own)), own.top

    def __repr__(self) -> str:
        return f"<RecordObjective of private records, scores in [{self.low}, {self.high}]>"

    def check(self, P: Sized) -> None:
        """Refuse a `score` that fails on each of the first records, or mixes records.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        """
        self._sums.try_one(ScoredRows.check, P)

    def scores(self, P: Sized) -> Integers:
        """The sum over records of clipped scores minus `low`, in units of `unit`.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        if len(P) == 0:
            raise DeclarationError("P must hold at least one candidate; pass a non-empty array")
        return self._sums.sum(ScoredRows.scores, P)

    def prior(self, P: Sized) -> Integers:
        """Zeros: there is no data-free part.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.

        Returns
        -------
        array of int64 of shape (m,)
            Zeros.
        """
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Sized, adjacency: Adjacency) -> int:
        """The range high - low in score units, twice that under 'replace'.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range; 0 for a single candidate. It is public.
        """
        changes = Neighbours.of(adjacency).changes
        return 0 if len(P) < 2 else self._top * changes

    spread = range
