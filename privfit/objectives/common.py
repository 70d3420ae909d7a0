"""What the objectives share: checks, grids, kernel layouts of candidates, interruptible calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import threads
from privfit._kernels.centers import cells as kernel_cells
from privfit._kernels.centers import set_gaps as kernel_set_gaps
from privfit._kernels.linear import LANE_WIDTH, PANEL_ROWS, QUAD_SIZE
from privfit.base.typing import Floats, Integers
from privfit.records.packing import MAX_RECORDS, DenseRecords, Run, aligned, tiles

ADJACENCIES = ("replace", "add_remove")
METRICS = ("l1", "l2", "linf")  # by number, as the kernel knows them
MOST_HALVINGS = 62  # bits of a cell's code
MOST_SUM = 2**62  # no score, prior or sum reaches it: two of them still add up in 64 bits


class Objective:
    """What the compiled objectives share: threads, tiles, and calls short enough to interrupt."""

    _runs: tuple[Run, ...]
    _n_threads: int | None
    n_records: int
    adjacency: str = "replace"  # sums have room for as many records as this relation allows

    _tile_rows = 256  # records whose panels and margins share the first two levels of cache
    _slice_work = 4e8  # elementary steps between two looks at the keyboard, some 50 ms
    _thread_work = 2e6  # below this many steps, a second thread costs more than it gives

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    def room(self, adjacency: str | None = None) -> int:
        """How many records a sum must have room for, by a relation and by this objective's own.

        Their number where a record is replaced, which makes it public. Else `MAX_RECORDS`, so that
        no refusal and no unit depends on how many there are.
        """
        return max(room_for(self, self.adjacency), room_for(self, adjacency or self.adjacency))

    def _remedy(self, adjacency: str | None) -> str:
        """What else may be passed where sums are refused for a relation."""
        if adjacency != "add_remove" or self.adjacency == adjacency:
            return ""
        return ", or adjacency='add_remove' to the objective, which then takes coarser units"

    def _emptied(self, others: Sequence[Any]) -> Any:
        """A copy for the records of all; what was worked out from its own is forgotten."""
        result = copy(self)
        for name in ("_tile_tables", "_squares", "_matrix"):
            result.__dict__.pop(name, None)
        result.n_records = self.n_records + sum(one.n_records for one in others)
        return result

    @cached_property
    def _tile_tables(self) -> dict[int, Integers]:
        return {}

    def _threads(self, work: float) -> int:
        return threads.resolve(self._n_threads) if work > self._thread_work else 1

    def _slices(self, work: float, rows: int | None = None) -> Iterator[Integers]:
        """All tiles, in parts of bounded work; between parts Python sees Ctrl-C."""
        rows = rows or self._tile_rows
        if rows not in self._tile_tables:
            self._tile_tables[rows] = tiles(self._runs, rows)
        table = self._tile_tables[rows]
        step = max(1, int(len(table) * self._slice_work / max(work, 1.0)))
        for first in range(0, len(table), step):
            yield table[first : first + step]

    def _cells(
        self, records: DenseRecords, bounds: tuple[Integers, Integers], axes: ArrayLike
    ) -> NDArray[np.uint64]:
        """(n,) the cell of each record in a box halved across these columns, one bit each."""
        axes, d = np.ascontiguousarray(axes, dtype=np.int32), records.n_features
        if axes.ndim != 1 or len(axes) > MOST_HALVINGS:
            raise ValueError(
                f"axes (shape {axes.shape}) must be at most {MOST_HALVINGS} columns; pass "
                "Halvings(low, high).axes"
            )
        if len(axes) and not (0 <= axes.min() and axes.max() < d):
            raise ValueError(f"axes must lie in 0..{d - 1}; pass columns to halve")
        work = float(self.n_records) * (len(axes) + d)
        box = np.array([bounds[0], bounds[1] + 1], dtype=np.int32)
        out = np.empty(len(records.panels) * PANEL_ROWS, dtype=np.uint64)
        buffer = np.empty((self._threads(work), 2, d), dtype=np.int32)
        for part in self._slices(work):
            kernel_cells(records.panels, part, axes, box, buffer, out)
        return np.concatenate([out[run.first : run.first + run.count] for run in self._runs])


def room_for(records: Any, adjacency: str) -> int:
    """How many records there may be: their number if it is public, or else `MAX_RECORDS`."""
    check_adjacency(adjacency)
    return int(records.n_records) if adjacency == "replace" else MAX_RECORDS


def check_adjacency(adjacency: str) -> None:
    """Refuse anything but the two neighbour relations."""
    if adjacency not in ADJACENCIES:
        raise ValueError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )


def all_same(P: NDArray[Any]) -> bool:
    """Whether all candidates are one and the same."""
    return bool((P == P[:1]).all())


def integer_range(bound: float, unit: float, slack: int, exact: bool = False) -> int:
    """A bound in score units, rounded up, plus what rounding single records can add.

    A bound that is not exact is raised above the rounding errors of the float64 it comes from.
    """
    return math.ceil(bound / unit * (1 if exact else 1 + 1e-12)) + slack


def check_finite(P: ArrayLike, ndim: int, shape: str) -> Floats:
    """Candidates as a contiguous float64 array."""
    P = np.ascontiguousarray(P, dtype=np.float64)
    if P.ndim != ndim:
        raise ValueError(f"P (shape {P.shape}) must have {ndim} dimensions; pass {shape}")
    if len(P) == 0:
        raise ValueError("P must hold at least one candidate; pass a non-empty array")
    if not np.isfinite(P).all():
        raise ValueError("P must be finite; pass candidates without NaN or infinity")
    return P


def on_grid(P: Floats, units: Floats | float, remedy: str) -> Floats:
    """P in whole units, or an error."""
    whole = P / units
    if (whole != np.rint(whole)).any():
        raise ValueError(f"P must lie on the grid; pass {remedy}")
    return np.asarray(whole)


def quads(whole: Floats, pairs: int) -> NDArray[np.int32]:
    """(m, d) integers as (quads, pairs, QUAD) pairs of int16; the last row fills the last quad."""
    m = len(whole)
    padded = np.zeros((-(-m // QUAD_SIZE) * QUAD_SIZE, 2 * pairs), dtype=np.int16)
    padded[:m, : whole.shape[1]] = whole
    padded[m:] = padded[m - 1]
    parts = padded.reshape(-1, QUAD_SIZE, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(parts).view(np.int32)[..., 0]


def quad_starts(start: NDArray[Any]) -> NDArray[np.int32]:
    """(m,) start values as (quads, QUAD)."""
    m = len(start)
    padded = np.empty(-(-m // QUAD_SIZE) * QUAD_SIZE, dtype=np.int32)
    padded[:m] = wrap32(start)
    padded[m:] = padded[m - 1]
    return padded.reshape(-1, QUAD_SIZE)


def wrap32(whole: NDArray[Any]) -> NDArray[np.int32]:
    """Integers modulo 2^32: sums wrap too, and only a final margin has to fit."""
    return whole.astype(np.int64).astype(np.int32)


def lane_groups(whole: Floats) -> NDArray[np.int32]:
    """(m, d + 1) integers as (groups, d + 1, WIDTH), candidates side by side."""
    m, width = whole.shape
    padded = np.zeros((-(-m // LANE_WIDTH) * LANE_WIDTH, width), dtype=np.int32)
    padded[:m] = wrap32(whole)
    result = aligned((len(padded) // LANE_WIDTH, width, LANE_WIDTH), np.int32)
    result[:] = padded.reshape(-1, LANE_WIDTH, width).transpose(0, 2, 1)
    return result


def set_gaps(centers: Floats, level: Floats, metric: str, run: Objective) -> Floats:
    """(m, m) bounds on cost(t, C) - cost(t, C') over all records t, for sets (m, k, d).

    For two centres the supremum is level(c) - level(c') + distance(c, c') in the metric that is
    dual to the domain: 'l1' for a box, 'l2' and 'linf' for the balls.
    """
    m, k, d = centers.shape
    work = float(m * m) * k * k * d
    n_threads = run._threads(work)
    columns = np.ascontiguousarray(centers.transpose(0, 2, 1))
    gaps = np.empty((m, m))
    step = max(1, int(m * run._slice_work / max(work, 1.0)))
    for first in range(0, m, step):
        part = slice(first, first + step)
        kernel_set_gaps(
            columns[part], level[part], columns, level, METRICS.index(metric),
            np.empty((n_threads, k)), gaps[part],
        )  # fmt: skip
    return gaps
