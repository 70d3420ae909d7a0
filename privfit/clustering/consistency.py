"""Noisy counts and sums of several iterations, made consistent by a linear program."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from privfit.base.typing import Floats
from privfit.clustering.trace import LloydTrace, check_trace

__all__ = ["consistent"]


def consistent(trace: LloydTrace) -> LloydTrace:
    """The trace with the nearest counts and sums that one data set could have.

    Minimises sum abs(s^ - s~) / scale_sums + sum abs(n^ - n~) / scale_counts by a linear program.
    Totals are equal over iterations; n^ >= 0; low n^ <= s^ <= high n^, and l1(s^) <= radius n^ on
    the L1 ball. For the L2 ball the linear constraint l1(s^) <= sqrt(d) radius n^ is used.
    """
    from scipy.optimize import linprog

    check_trace(trace)
    program = _Program(trace)
    A_ub, b_ub = program.at_most()
    A_eq, b_eq = program.equal()
    solution = linprog(
        program.cost(), A_ub=A_ub, b_ub=b_ub, A_eq=A_eq, b_eq=b_eq, bounds=program.signs(),
        method="highs",
    )  # fmt: skip
    if solution.x is None:  # all zeros are feasible, so this is a solver's own trouble
        raise RuntimeError(
            f"the linear program must have a solution, but HiGHS reports {solution.message!r}; "
            f"pass a "
            "trace whose numbers differ less in size"
        )
    T, k, d = trace.sums.shape
    counts, sums = solution.x[: T * k], solution.x[T * k : T * k * (1 + d)] * program.unit
    return replace(trace, counts=np.maximum(counts, 0.0).reshape(T, k), sums=sums.reshape(T, k, d))


class _Program:
    """The linear program, in blocks of variables for all m = T k clusters of a trace.

    n (m) and s (m d) are the consistent counts and sums, gap_n and gap_s bound their distance from
    the released ones, and on a ball size (m d) bounds abs(s).
    """

    def __init__(self, trace: LloydTrace) -> None:
        self._trace, (T, k, d) = trace, trace.sums.shape
        top = max(trace.radius, np.abs(trace.low).max(), np.abs(trace.high).max())
        self.unit = 2.0 ** math.frexp(top)[1] if top > 0 else 1.0  # records are small in these
        m = T * k
        self._widths = {"n": m, "s": m * d, "gap_n": m, "gap_s": m * d}
        if trace.domain != "box":
            self._widths["size"] = m * d

    def cost(self) -> Floats:
        """The cost of a unit of each variable."""
        costs = {"gap_n": 1 / self._trace.scale_counts, "gap_s": self.unit / self._trace.scale_sums}
        each = [costs.get(name, 0.0) for name in self._widths]
        return np.repeat(each, list(self._widths.values()))

    def signs(self) -> list[tuple[int | None, None]]:
        """The smallest and largest value of each variable: only sums may be negative."""
        return [
            (None if name == "s" else 0, None)
            for name, width in self._widths.items()
            for _ in range(width)
        ]

    def at_most(self) -> tuple[Any, Floats]:
        """A and b of A x <= b."""
        from scipy import sparse

        trace, unit, (T, k, d) = self._trace, self.unit, self._trace.sums.shape
        m, none = T * k, np.zeros(T * k * d)
        eye_n, eye_s = sparse.identity(m), sparse.identity(m * d)
        low = sparse.kron(eye_n, trace.low[:, None] / unit)
        high = sparse.kron(eye_n, trace.high[:, None] / unit)
        n, s = trace.counts.ravel(), trace.sums.ravel() / unit
        rows = [
            ({"n": eye_n, "gap_n": -eye_n}, n), ({"n": -eye_n, "gap_n": -eye_n}, -n),
            ({"s": eye_s, "gap_s": -eye_s}, s), ({"s": -eye_s, "gap_s": -eye_s}, -s),
            ({"n": low, "s": -eye_s}, none), ({"n": -high, "s": eye_s}, none),
        ]  # fmt: skip
        if "size" in self._widths:
            reach = trace.radius / unit * (math.sqrt(d) if trace.domain == "l2" else 1.0)
            over = sparse.kron(eye_n, np.ones((1, d)))  # the sum over a cluster's coordinates
            rows += [
                ({"s": eye_s, "size": -eye_s}, none), ({"s": -eye_s, "size": -eye_s}, none),
                ({"n": -reach * eye_n, "size": over}, np.zeros(m)),
            ]  # fmt: skip
        return self._matrix([row for row, _ in rows]), np.concatenate([b for _, b in rows])

    def equal(self) -> tuple[Any, Any]:
        """A and b of A x = b: totals of iteration t minus those of iteration t + 1."""
        from scipy import sparse

        T, k, d = self._trace.sums.shape
        if T == 1:
            return None, None
        steps = sparse.diags([np.ones(T - 1), -np.ones(T - 1)], [0, 1], shape=(T - 1, T))
        over = sparse.kron(steps, np.ones((1, k)))
        rows = [{"n": over}, {"s": sparse.kron(over, sparse.identity(d))}]
        return self._matrix(rows), np.zeros((T - 1) * (1 + d))

    def _matrix(self, rows: list[dict[str, Any]]) -> Any:
        """Rows of blocks by variable; blocks that are not named are zero."""
        from scipy import sparse

        full = []
        for row in rows:
            height = next(iter(row.values())).shape[0]
            zeros = {name: sparse.csr_matrix((height, w)) for name, w in self._widths.items()}
            full.append([row.get(name, zeros[name]) for name in self._widths])
        return sparse.bmat(full, format="csr")
