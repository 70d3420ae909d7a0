"""What the objectives share: sums over records, checks, and gaps between sets of places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels.centers import set_gaps as kernel_set_gaps
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.typing import Array, Counted, Floats
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.records.packing import MAX_RECORDS
from privfit.records.rows import KernelCalls
from privfit.records.sums import R, Sums, joined

METRICS = ("l1", "l2", "linf")  # by number, as the kernel knows them
MOST_SUM = 2**62  # no score, prior or sum reaches it: two of them still add up in 64 bits

O = TypeVar("O", bound="Objective[Any]")  # noqa: E741


class Objective(Generic[R]):
    """What the compiled objectives share: their records are a `Sums`, wherever these are."""

    _sums: Sums[R]
    neighbours: Neighbours = REPLACE  # sums have room for as many records as these allow

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    @property
    def n_records(self) -> int:
        """The number of records; private if records are added or removed."""
        return self._sums.n_records

    @property
    def column_names(self) -> tuple[object, ...]:
        """The names of the columns, if they were only read where the records are."""
        return self._sums.column_names

    def joined(self: O, others: Sequence[O]) -> O:
        """One objective over the records of all, which must agree in everything else.

        Parameters
        ----------
        others : sequence of objectives
            The other objectives.

        Returns
        -------
        objective
            The joined objective.
        """
        return self._over(joined([one._sums for one in (self, *others)]))

    def _over(self: O, sums: Sums[R]) -> O:
        """The same objective for other records."""
        result = copy(self)
        result._sums = sums
        return result

    def room(self, neighbours: Neighbours | None = None) -> int:
        """How many records a sum must have room for, by a relation and by this objective's own.

        Parameters
        ----------
        neighbours : Neighbours or None, default=None
            The neighbour relation.

        Returns
        -------
        int
            The number of records under 'replace', where it is public; otherwise 2^32, so that no
            refusal and no unit depends on the number.
        """
        return max(room_for(self, self.neighbours), room_for(self, neighbours or self.neighbours))

    def _remedy(self, neighbours: Neighbours | None) -> str:
        """What else may be passed where sums are refused for a relation."""
        if neighbours is None or neighbours.size_is_public or neighbours == self.neighbours:
            return ""
        return ", or adjacency='add_remove' to the objective, which then takes coarser units"


def room_for(records: Counted, neighbours: Neighbours) -> int:
    """How many records there may be: their number if it is public, otherwise `MAX_RECORDS`."""
    return int(records.n_records) if neighbours.size_is_public else MAX_RECORDS


def all_same(P: Array) -> bool:
    """Whether all candidates are equal."""
    return bool((P[-1] == P[0]).all() and (P == P[:1]).all())


def integer_range(bound: float, unit: float, slack: int, exact: bool = False) -> int:
    """A bound in score units, rounded up, plus what rounding single records can add.

    A bound that is not exact is raised above the rounding errors of the float64 it comes from.
    """
    return math.ceil(bound / unit * (1 if exact else ABOVE)) + slack


def check_candidates(P: ArrayLike, ndim: int, shape: str) -> Floats:
    """Candidates as a contiguous float64 array, at least one."""
    P = np.ascontiguousarray(P, dtype=np.float64)
    if P.ndim != ndim:
        raise DeclarationError(f"P (shape {P.shape}) must have {ndim} dimensions; pass {shape}")
    if len(P) == 0:
        raise DeclarationError("P must hold at least one candidate; pass a non-empty array")
    return P


def check_finite(P: ArrayLike, ndim: int, shape: str) -> Floats:
    """Finite candidates as a contiguous float64 array, at least one."""
    P = check_candidates(P, ndim, shape)
    if not np.isfinite(P).all():
        refuse_candidates(False, "")
    return P


def on_grid(P: Floats, units: Floats | float, remedy: str) -> Floats:
    """P in whole units, or an error."""
    whole = P / units
    if (whole != np.rint(whole)).any():
        refuse_candidates(True, remedy)
    return np.asarray(whole)


def refuse_candidates(finite: bool, remedy: str) -> NoReturn:
    """Say that candidates are not finite, or not on the grid."""
    if not finite:
        raise DeclarationError("P must be finite; pass candidates without NaN or infinity")
    raise DeclarationError(f"P must lie on the grid; pass {remedy}")


def set_gaps(centers: Floats, level: Floats, metric: str, n_threads: int | None) -> Floats:
    """(m, m) bounds on cost(t, C) - cost(t, C') over all records t, for sets (m, k, d).

    For two centres the supremum is level(c) - level(c') + distance(c, c') in the metric that is
    dual to the domain: 'l1' for a box, 'l2' and 'linf' for the balls.
    """
    m, k, d = centers.shape
    calls, work = KernelCalls(n_threads), float(m * m) * k * k * d
    columns = np.ascontiguousarray(centers.transpose(0, 2, 1))
    gaps = np.empty((m, m))
    for part in calls.steps(m, work):
        kernel_set_gaps(
            columns[part], level[part], columns, level, METRICS.index(metric),
            np.empty((calls.threads(work), k)), gaps[part],
        )  # fmt: skip
    return gaps
