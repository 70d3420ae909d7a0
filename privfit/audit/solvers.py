"""White box: what a solver does with scores, on pairs of tables and one history of releases.

`audit_solver` runs a solver twice with the same coins, and answers the second run from the tape of
the first (`pairs`). Two kinds of pairs are tried.

**Far pairs.** The second objective has other scores altogether: the reverse of the first, or those
of other records. Given the same releases, a solver must do the same whatever the scores are: plan
the same draws, propose the same candidates, report, note and answer the same, and fail or not. What
differs was computed from scores that were not released. Since any two objectives may be compared,
this has full power against a solver that *looks*, or that *plans after looking*: the least use of a
score that changes a proposal is seen as soon as the reversed scores would change it.

**Neighbours.** The second objective differs by one record, as far as its range allows. Each value
that goes to a mechanism may then use up at most what the mechanism's event promises (`strain`). If
the objective's range is the same for all candidates, the record is made: it favours half of the
candidates, chosen by their bits, by the whole range, so that a selection among two or more is
strained by exactly 1, and any range that is too small is found; that of a view (`Run.around`) is
held to the objective's range of the candidates that its moves lead to. If the range depends on the
candidates, or a view has a smaller one with good reason, neighbouring tables are made of the
`records` that are passed.

No number is estimated, so there are no false alarms; only the pairs that were tried are tested.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.audit.pairs import PairedAudit, worst_pair
from privfit.base.errors import DeclarationError
from privfit.base.typing import Array, Integers
from privfit.base.validation import is_whole
from privfit.privacy.ledger import Ledger
from privfit.privacy.neighbours import Adjacency
from privfit.privacy.neighbours import Neighbours as Relation
from privfit.runs.protocols import Objective, Solver, Space
from privfit.runs.run import gridded
from privfit.searches.solvers import search

__all__ = ["SolverAudit", "audit_solver"]


@dataclass(frozen=True)
class SolverAudit:
    """What two objectives with one history showed about a solver.

    Parameters
    ----------
    far : PairedAudit
        The worst pair of objectives that have nothing in common; only its differences count.
    near : PairedAudit
        The worst pair of neighbours.

    See Also
    --------
    audit_solver : Returns it.

    Examples
    --------
    >>> from privfit.audit import PairedAudit, SolverAudit
    >>> SolverAudit(PairedAudit((), ("the answers differ",)), PairedAudit((), ())).passes()
    False
    """

    far: PairedAudit
    near: PairedAudit

    @property
    def differences(self) -> tuple[str, ...]:
        """What depended on scores that were not released: each is a leak."""
        return tuple(dict.fromkeys((*self.far.differences, *self.near.differences)))

    @property
    def strain(self) -> float:
        """The largest strain of a release between neighbours."""
        return self.near.strain

    @property
    def finds(self) -> float:
        """The power: a range that is too small by more than this factor is detected."""
        return self.near.finds

    def passes(self) -> bool:
        """Whether nothing was found.

        Returns
        -------
        bool
            False if anything depended on scores, or a release was strained by more than 1.
        """
        return not self.differences and self.near.passes()


def audit_solver(
    solver: str | Solver,
    objective: Objective | Callable[[list[Any]], Objective],
    space: Space,
    epsilon: float = 1.0,
    delta: float = 0.0,
    *,
    records: Sequence[Any] | None = None,
    n: int = 20,
    adjacency: Adjacency = "replace",
    seeds: Iterable[int] = range(5),
) -> SolverAudit:
    """Find out whether a solver looks at scores, or draws with too little noise.

    Parameters
    ----------
    solver : str or Solver
        The solver, as for `search`.
    objective : Objective, or callable (list of records) -> Objective
        An objective of made-up records. If its range depends on the candidates, as those of linear
        models and of centres do, or is smaller for moves: a function that makes one of records.
    space : Space
        What a candidate may be.
    epsilon, delta : float, default=1.0 and 0.0
        The budget of a run.
    records : sequence or None, default=None
        Possible records, for such a function; the corners of the domain are a good choice.
    n : int, default=20
        Number of records of a table that is made of them.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation.
    seeds : iterable of int, default=range(5)
        Seeds of the coins; each is a run on every pair.

    Returns
    -------
    SolverAudit
        `passes()` says whether a leak was found, `differences` and `strain` which, `finds` how
        small an error of a range would be found.

    See Also
    --------
    paired : One pair of tables, of anything that releases.
    audit_runs : What the draws themselves reveal.

    Notes
    -----
    Run it on made-up records only: its report shows values that were computed from them. It does
    not see run time, nor what a solver keeps elsewhere than in its fields, which are copied.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Reals, RecordObjective
    >>> from privfit.audit import audit_solver
    >>> def nearness(x, P):
    ...     return -np.abs(x[:, None] - P[:, 0])
    >>> objective = RecordObjective(np.linspace(0, 1, 50), nearness, low=-1.0, high=0.0)
    >>> def peeks(run):  # the better of two candidates, without noise
    ...     run.plan("selection")
    ...     P = run.space.sample(2, run.coins)
    ...     best = P[run.objective.scores(P).argmax()]
    ...     run.report(P[run.select(P)])
    ...     run.report(best[None])
    ...     return run.path()
    >>> audit_solver("dpsga", objective, Reals(0, 1, 1)).passes()
    True
    >>> audit_solver(peeks, objective, Reals(0, 1, 1)).differences
    ('answers of the two runs differ',)
    """
    relation, seeds = Relation.of(adjacency), _listed(seeds)
    if records is None:
        far, near = _made_pairs(objective, space, relation)
    else:
        far, near = _table_pairs(objective, records, n, relation)

    def run(watched: Callable[[], _Watched], ledger: Ledger, random_state: Any) -> Any:
        known = watched()
        found = search(
            known, space, epsilon, delta, solver, adjacency=relation,
            n_public=None if relation.size_is_public else n, ledger=ledger,
            random_state=random_state,
        )  # fmt: skip
        return found, known.proposed

    try:
        return SolverAudit(worst_pair(run, far, seeds=seeds), worst_pair(run, near, seeds=seeds))
    except _Varies:
        raise DeclarationError(
            "objective must have one range for all candidates, or a neighbour cannot be made from "
            "it; pass a function that makes the objective of a list of records, and records=[...]"
        ) from None


def _listed(seeds: Any) -> list[int]:
    """The seeds, of which there must be some."""
    found = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    if not found or not all(is_whole(seed) and seed >= 0 for seed in found):
        raise DeclarationError(
            f"seeds ({seeds!r}) must be whole numbers of at least 0; pass seeds=range(5)"
        )
    return found


Pairs = list[tuple[Callable[[], "_Watched"], Callable[[], "_Watched"]]]


def _made_pairs(objective: Any, space: Space, relation: Relation) -> tuple[Pairs, Pairs]:
    """Objectives that are far from this one, and that are neighbours of it."""
    if not hasattr(objective, "scores"):
        raise DeclarationError(
            "records must be given for a function that makes objectives; pass records=[...], the "
            "corners of the domain"
        )

    def known() -> _Watched:
        return _Made(objective, space)

    def favoured(side: int) -> Callable[[], _Watched]:
        return lambda: _Favoured(objective, space, relation, side)

    far: Pairs = [
        (known, lambda: _Reversed(objective, space)), (known, lambda: _Shuffled(objective, space))
    ]  # fmt: skip
    near: Pairs = [(known, favoured(side)) for side in (0, 1)]
    return far, near


def _table_pairs(
    make: Any, records: Sequence[Any], n: int, relation: Relation
) -> tuple[Pairs, Pairs]:
    """Objectives of tables that are far from each other, and of neighbouring ones."""
    if not callable(make) or not is_whole(n) or n < 1 or len(records) < 2:
        raise DeclarationError(
            f"records ({len(records)}) must be at least two, n ({n!r}) positive, and objective a "
            "function that makes an objective of a list of records; pass all three"
        )
    coins, rows = np.random.default_rng(0), list(records)

    def drawn(m: int) -> list[Any]:
        return [rows[i] for i in coins.integers(len(rows), size=m)]

    def one(table: list[Any]) -> Callable[[], _Watched]:
        objective = make(table)
        return lambda: _Watched(objective)

    far: Pairs = [(one(drawn(n)), one(drawn(n))) for _ in range(4)]
    far += [(one([row] * n), one([other] * n)) for row, other in _apart(rows)]
    if not relation.replaces:
        rest = drawn(n)
        return far, [(one(rest), one([*rest, row])) for row in rows]
    rest = drawn(n - 1)
    return far, [(one([*rest, row]), one([*rest, other])) for row, other in _apart(rows)]


def _apart(rows: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Each record with the one half way around the list, and with the next."""
    for i, row in enumerate(rows):
        for j in {(i + 1) % len(rows), (i + len(rows) // 2) % len(rows)} - {i}:
            yield row, rows[j]


# -------------------------------------------------------------------------------------- objectives


class _Watched:
    """An objective that remembers which candidates it was asked for; otherwise the same."""

    def __init__(self, objective: Any) -> None:
        self._objective = objective
        self.proposed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._objective, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # solvers may ask which objective it is
        return type(self._objective)

    def scores(self, P: Array) -> Integers:
        """The scores, and a digest of the candidates."""
        return self.seen(np.ascontiguousarray(P), self._objective.scores(P))

    def seen(self, P: Array, scores: Any) -> Integers:
        """The scores of candidates as the solver gets them."""
        self.proposed.append(hashlib.sha256(np.ascontiguousarray(P).tobytes()).hexdigest())
        return self.changed(P, np.asarray(scores, dtype=np.int64))

    def changed(self, P: Array, scores: Integers) -> Integers:
        """The scores of another table."""
        return scores


class _Made(_Watched):
    """An objective whose views are watched as well: they score moves of the other table."""

    def __init__(self, objective: Any, space: Space) -> None:
        super().__init__(objective)
        self._space = space

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("around", "at") or found is None:
            return found

        def view(w: Array, *space: Any) -> _View:
            return _View(self, found(w, *space), *(space or [gridded(self._space, self)]))

        return view


class _View:
    """A view whose scores are those of the other table; all else is the objective's own."""

    def __init__(self, owner: _Made, view: Any, space: Any) -> None:
        self._owner, self._view, self._space = owner, view, space

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._view, name)

    def scores(self, where: Integers, what: Array) -> Integers:
        """The scores after each move, and a digest of the candidates."""
        P = np.asarray(self._space.moved(self._view.w, where, what))
        return self._owner.seen(P, self._view.scores(where, what))


class _Reversed(_Made):
    """The best is the worst."""

    def changed(self, P: Array, scores: Integers) -> Integers:
        return -scores


class _Shuffled(_Made):
    """Scores that have nothing to do with the candidates."""

    def changed(self, P: Array, scores: Integers) -> Integers:
        return np.array([_bits(row) % 1_000_003 for row in P], dtype=np.int64)


class _Favoured(_Made):
    """A neighbour: one record favours half of all candidates as much as the range allows."""

    def __init__(self, objective: Any, space: Space, relation: Relation, side: int) -> None:
        super().__init__(objective, space)
        self._relation, self._side = relation, side
        self._span: int | None = None

    def changed(self, P: Array, scores: Integers) -> Integers:
        self.range(P, self._relation)
        favoured = np.array([_bits(row) % 2 == self._side for row in P])
        return scores + np.where(favoured, self._span or 0, 0)

    def range(self, P: Array, neighbours: Relation, /) -> int:
        """The range, which must be the same for all candidates for the record to be a neighbour."""
        two = P if len(P) > 1 else np.concatenate([P, P])  # one has no range by itself
        span = int(self._objective.range(two, neighbours))
        if self._span is None:
            self._span = span
        if span != self._span:
            raise _Varies
        return int(self._objective.range(P, neighbours))


class _Varies(BaseException):
    """The range depends on the candidates, so no record can be made from it."""


def _bits(row: Array) -> int:
    """A number that depends on a candidate alone."""
    return int.from_bytes(hashlib.sha256(np.ascontiguousarray(row).tobytes()).digest()[:7], "big")
