"""A user-defined score of a record for a candidate."""

from __future__ import annotations

import math
from collections.abc import Sized
from functools import partial

import numpy as np

from privfit._kernels import threads
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.objectives.common import Objective
from privfit.objectives.moves import MoveSpace
from privfit.objectives.record_moves import RecordMoves
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.compiled import MOVES, SCORE, Compiled, is_compiled
from privfit.records.places import sums_of
from privfit.records.scored import Function, OwnScore, ScoredRows

TRIED_MOVES = 16  # moves that are compared with their candidates before anything is charged


class RecordObjective(Objective[ScoredRows]):
    """A user-defined score of a record for a candidate, clipped and rounded.

    Parameters
    ----------
    records : array, sparse matrix, DataFrame, list, dict of columns, Stream or Dask collection
        Private records; rows are passed to `score` in blocks, where they are stored. A block of a
        streamed table is a dict of arrays; cells of CSV files are texts, None where a record lacks
        the field.
    score : callable (records, P) -> array of shape (n, m), or a compiled function
        Higher is better. P is read-only. It must treat each record by itself: a record's scores may
        not depend on the other records in the block. A search checks this on the first records
        before anything is charged. Later nothing is refused: a block in which a record by itself
        gets another score is scored record by record, and so is one for which `score` raises.
        Several threads may call it at the same time.

        A compiled function is called once for each record, with its numbers as doubles. Pass a
        `scipy.LowLevelCallable`, a numba `cfunc`, a function of ctypes, or a text
        ``"module:function"``; ``docs/own_fitness.md`` shows its signature and examples.
    low, high : float
        Public bounds. Scores are clipped to them, so sensitivity does not depend on the values that
        `score` returns. NaN counts as `low`; a record for which `score` raises, or returns another
        shape, has `low` for every candidate. So a run that began ends with an answer.
    bits : int, default=16
        A score has 2^bits levels between the bounds, at most 2^30. Sums over 2^32 records are then
        at most 2^62: none wraps, whatever the neighbour relation.
    block : int, default=4096
        Number of records in a block.
    moves : callable (records, w, where, what) -> array of shape (n, m), or compiled; default=None
        Scores of candidates that differ from w by one move each: what `score` returns for
        ``space.moved(w, where, what)``, computed faster. `EEM` and `Local` use it. A search checks
        that both agree, on the first records, before anything is charged.
    n_threads : int or None, default=None
        Number of threads; by default as many as there are cores. Pass 1 for a Python function that
        must not be called by several threads at the same time.

    See Also
    --------
    search : Searches for a candidate.
    LinearObjective, CentersObjective, FacilityObjective : Fast objectives.

    Notes
    -----
    `scores` are not released; pass them to a grant's `release`.

    The range follows from clipping, whatever the functions return, as long as they treat each
    record by itself: the guarantee rests on that. A compiled function runs within this process,
    like any extension module: one that writes beyond `out` can corrupt or crash it.

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
        score: object,
        low: float,
        high: float,
        *,
        bits: int = 16,
        block: int = 4096,
        moves: object = None,
        n_threads: int | None = None,
    ) -> None:
        threads.resolve(n_threads)
        scores = _function(score, "score", "(records, P)", SCORE)
        moved = None
        if moves is not None:
            moved = _function(moves, "moves", "(records, w, where, what)", MOVES)
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
        own = OwnScore(scores, moved, self.low, self.high, self.unit, block)
        make = partial(ScoredRows.pack, score=own, n_threads=n_threads)
        self._sums, self._own = sums_of(records, None, make, n_threads), own

    def __repr__(self) -> str:
        return f"<RecordObjective of private records, scores in [{self.low}, {self.high}]>"

    @property
    def has_moves(self) -> bool:
        """Whether there is a function for moves."""
        return self._own.moves is not None

    @property
    def functions(self) -> tuple[object, object]:
        """The functions for scores and moves; None if there is none for moves."""
        return self._own.function, self._own.moves

    def check(self, P: Sized, space: MoveSpace | None = None) -> None:
        """Refuse functions that fail on each of the first records, mix records or disagree.

        Parameters
        ----------
        P : array of shape (m, ...)
            The candidates.
        space : Space or None, default=None
            The space that is searched: scores of some moves in it are compared with the scores of
            the moved candidates, if there is a function for moves.
        """
        self._sums.try_one(ScoredRows.check, P)
        if space is None or not self.has_moves:
            return
        coins = np.random.default_rng(0)  # public: which moves are tried depends on nothing else
        w = space.sample(1, coins)[0]
        where, what = space.some_moves(w, TRIED_MOVES, 0.1, coins)
        moved = space.moved(w, where, what)
        self._sums.try_one(ScoredRows.check_moves, moved, w, where, what)

    def at(self, w: Array, space: MoveSpace) -> RecordMoves:
        """A view that scores moves away from a candidate.

        Parameters
        ----------
        w : array
            The candidate.
        space : Space
            The space of candidates, which says what a move is.

        Returns
        -------
        RecordMoves
            The view. Its scores are private.
        """
        return RecordMoves(self, w, space)

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

    around = at  # what a search asks for

    def moved_scores(self, w: Array, where: Integers, what: Array) -> Integers:
        """The scores of moves away from a candidate, by the function for moves.

        Parameters
        ----------
        w : array
            The candidate.
        where, what : array of shape (m,)
            The moves.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        if len(where) == 0:
            return np.zeros(0, dtype=np.int64)
        return self._sums.sum(ScoredRows.moved_scores, w, where, what)

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
        return 0 if len(P) < 2 else self._own.top * changes

    spread = range


def _function(function: object, name: str, arguments: str, form: str) -> Function:
    """A Python function as it is, or a compiled one that is checked."""
    if is_compiled(function):
        return Compiled(function, form, name)
    if not callable(function):
        raise DeclarationTypeError(
            f"{name} must be a function; pass {name}{arguments} -> array (n, m), or a compiled one"
        )
    return function
