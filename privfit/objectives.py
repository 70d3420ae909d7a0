"""Objectives: exact integer scores of candidates against private records, and their range.

An objective holds packed records and answers with numbers that are *not* released: only a
mechanism of the ledger may see them. A score is a sum over records of integers, each a function of
that record and the candidate alone, so scores of two data sets add up bit for bit. The range is the
one sensitivity that selection needs (THEORY, theorem 1): how far two candidates' scores can drift
apart between neighbouring data sets. It is computed from the candidates and the declared domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import centers as center_kernels
from privfit._kernels import facility as facility_kernels
from privfit._kernels import linear as linear_kernels
from privfit._kernels import threads
from privfit._kernels.linear import LANE_WIDTH, PANEL_ROWS, QUAD_SIZE
from privfit.domains import Box, Domain, Grid
from privfit.packing import (
    DenseRecords,
    SparseRecords,
    check_labels,
    check_records,
    pack,
    tiles,
)

__all__ = ["CentersObjective", "FacilityObjective", "LinearObjective", "RecordObjective"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ADJACENCIES = ("replace", "add_remove")
TILE_ROWS = 256  # records whose panels and margins share the first two levels of cache
SLICE_WORK = 4e8  # elementary steps between two looks at the keyboard, some 50 ms
THREAD_WORK = 2e6  # below this many steps, a second thread costs more than it gives


class _Objective:
    """What the compiled objectives share: threads, tiles, and calls short enough to interrupt."""

    _runs: tuple[Any, ...]
    _n_threads: int | None
    n_records: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_records={self.n_records})"

    def _threads(self, work: float) -> int:
        return threads.resolve(self._n_threads) if work > THREAD_WORK else 1

    def _slices(self, work: float, rows: int = TILE_ROWS) -> Iterator[Integers]:
        """All tiles, in parts of bounded work; between parts Python sees Ctrl-C."""
        table = tiles(self._runs, rows)
        step = max(1, int(len(table) * SLICE_WORK / max(work, 1.0)))
        for first in range(0, len(table), step):
            yield table[first : first + step]


def _check_adjacency(adjacency: str) -> None:
    if adjacency not in ADJACENCIES:
        raise ValueError(
            f"adjacency ({adjacency!r}) must be 'replace' or 'add_remove'; pass one of them"
        )


def _same(P: NDArray[Any]) -> bool:
    return bool((P == P[:1]).all())


def _integer_range(bound: float, unit: float, slack: int) -> int:
    """A real bound in score units, rounded up, plus what rounding single records can add."""
    return math.ceil(bound / unit * (1 + 1e-12)) + slack


def _check_finite(P: ArrayLike, ndim: int, shape: str) -> Floats:
    P = np.ascontiguousarray(P, dtype=np.float64)
    if P.ndim != ndim:
        raise ValueError(f"P (shape {P.shape}) must have {ndim} dimensions; pass {shape}")
    if len(P) == 0:
        raise ValueError("P must hold at least one candidate; pass a non-empty array")
    if not np.isfinite(P).all():
        raise ValueError("P must be finite; pass candidates without NaN or infinity")
    return P


def _on_grid(P: Floats, units: Floats | float, remedy: str) -> Floats:
    """P in whole units, or an error."""
    whole = P / units
    if (whole != np.rint(whole)).any():
        raise ValueError(f"P must lie on the grid; pass {remedy}")
    return np.asarray(whole)


def _quads(whole: Floats, pairs: int) -> NDArray[np.int32]:
    """(m, d) integers as (quads, pairs, QUAD) pairs of int16; the last quad repeats its last row."""
    m = len(whole)
    padded = np.zeros((-(-m // QUAD_SIZE) * QUAD_SIZE, 2 * pairs), dtype=np.int16)
    padded[:m, : whole.shape[1]] = whole
    padded[m:] = padded[m - 1]
    parts = padded.reshape(-1, QUAD_SIZE, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(parts).view(np.int32)[..., 0]


def _quad_starts(start: NDArray[Any]) -> NDArray[np.int32]:
    m = len(start)
    padded = np.pad(_wrap32(start), (0, -m % QUAD_SIZE), mode="edge")
    return padded.reshape(-1, QUAD_SIZE)


def _wrap32(whole: NDArray[Any]) -> NDArray[np.int32]:
    """Integers modulo 2^32: sums wrap too, and only a final margin has to fit."""
    return whole.astype(np.int64).astype(np.int32)


def _lane_groups(whole: Floats) -> NDArray[np.int32]:
    """(m, d + 1) integers as (groups, d + 1, WIDTH), candidates side by side."""
    m, width = whole.shape
    padded = np.zeros((-(-m // LANE_WIDTH) * LANE_WIDTH, width), dtype=np.int32)
    padded[:m] = _wrap32(whole)
    return np.ascontiguousarray(padded.reshape(-1, LANE_WIDTH, width).transpose(0, 2, 1))


# ---------------------------------------------------------------------------------- linear models


class LinearObjective(_Objective):
    """Minus the loss of linear models z = <x, w> + intercept over labelled records.

    Parameters
    ----------
    X : array, CSR/CSC matrix, DataFrame or dict of columns (with a `Schema`)
        Private records. Packed once; X itself is not kept.
    y : (n,) of 0/1 or -1/+1
        Private labels. A model predicts 1 where z > 0.
    loss : 'logistic', 'hinge' or 'zero_one'
    domain : Domain
        The declared domain of a record.
    C : float
        Weight of the hinge loss.
    l2 : float, optional
        Weight of the regulariser -l2/2 norm2(w)^2 in `prior`; 1 for the hinge, else 0.
    layout : 'auto', 'dense' or 'sparse'
        How records are packed. It changes speed and nothing else.

    Notes
    -----
    `scores` are not released; hand them to a grant's `release`.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str = "logistic",
        domain: Domain | None = None,
        C: float = 1.0,
        n_threads: int | None = None,
        *,
        l2: float | None = None,
        layout: str = "auto",
    ) -> None:
        if loss not in ("logistic", "hinge", "zero_one"):
            raise ValueError(
                f"loss ({loss!r}) must be 'logistic', 'hinge' or 'zero_one'; pass one of them"
            )
        if isinstance(C, bool | str) or not math.isfinite(C) or C <= 0:
            raise ValueError(f"C ({C!r}) must be a positive number; pass C=1.0")
        if C != 1.0 and loss != "hinge":
            raise ValueError(f"C ({C!r}) weights the hinge loss only; leave it out")
        l2 = float(loss == "hinge") if l2 is None else l2
        if isinstance(l2, bool | str) or not math.isfinite(l2) or l2 < 0:
            raise ValueError(f"l2 ({l2!r}) must be 0 or a positive number; pass l2=0.0")
        threads.resolve(n_threads)
        X, domain = check_records(X, domain, "LinearObjective")
        positive = check_labels(y, X.shape[0])
        self.loss, self.domain, self.C, self.l2 = loss, domain, float(C), float(l2)
        self.n_records, self.n_features = X.shape
        self._n_threads = n_threads
        self._records = pack(X, domain, positive, layout=layout)
        self._runs = self._records.runs
        grid = domain.grid
        self._loss = linear_kernels.Loss(loss, grid.a, grid.b, grid.c, self.C)
        if self.n_records * self._largest_loss(2.0 ** (52 - grid.a - grid.b)) >= 2.0**62:
            raise ValueError("this many records could overflow a sum; pass a Grid with smaller c")

    @property
    def grid(self) -> Grid:
        """Bits of records, candidates and scores."""
        return self.domain.grid

    @property
    def unit(self) -> float:
        """What one unit of a score is worth: 1 for zero-one errors, else 2^-c."""
        return 1.0 if self.loss == "zero_one" else 2.0**-self.grid.c

    @property
    def gradient_unit(self) -> float:
        """What one unit of `gradient` is worth."""
        return 2.0**-self.grid.a * linear_kernels.RESIDUAL_UNIT

    def _largest_loss(self, margin: float) -> float:
        """A bound on one record's integer at margins up to this size."""
        if self.loss == "zero_one":
            return 1.0
        return (self.C * (margin + 1) + 1) * 2.0**self.grid.c

    def _candidates(self, P: ArrayLike) -> tuple[Floats, Floats]:
        """P checked, and in whole units of the grid."""
        P = _check_finite(P, 2, "candidates (m, d + 1), the intercept last")
        if P.shape[1] != self.n_features + 1:
            raise ValueError(
                f"P (shape {P.shape}) must have {self.n_features + 1} columns, the intercept last; "
                "pass candidates (m, d + 1)"
            )
        return P, _on_grid(P, self.domain.weight_units(), "domain.snap(P)")

    def _narrow(self, norm: Floats) -> NDArray[np.bool_]:
        """Which margins are sure to fit in 32 bits, and refuse those that exceed 53."""
        grid = self.grid
        if norm.max() * 2.0 ** (grid.a + grid.b) >= 2.0**52:
            raise ValueError(
                "candidates are too large for exact margins; pass smaller weights, or a Grid with "
                "smaller a or b"
            )
        fits = (norm + 1) * 2.0 ** (grid.a + grid.b) < 2.0**31
        if self.loss == "hinge":
            fits &= self.C * (norm + 1) * 2.0**grid.c < 2.0**24
        return np.asarray(fits)

    def scores(self, P: ArrayLike) -> Integers:
        """int64 (m,): minus the loss of each candidate (m, d + 1), in units of `unit`."""
        P, whole = self._candidates(P)
        narrow = self._narrow(self.domain.norm(P))
        if isinstance(self._records, DenseRecords):
            narrow &= np.abs(whole[:, :-1]).max(axis=1) <= 32767
        result = np.empty(len(P), dtype=np.int64)
        if narrow.any():
            result[narrow] = self._narrow_scores(whole[narrow])
        if not narrow.all():
            result[~narrow] = self._wide_scores(whole[~narrow])
        return result

    def _narrow_scores(self, whole: Floats) -> Integers:
        m = len(whole)
        records = self._records
        work = float(self.n_records) * m * (8 + self.n_features / 16)
        n_threads = self._threads(work)
        if isinstance(records, DenseRecords):
            w, start = self._dense_weights(whole)
            out = np.zeros((n_threads, w.shape[0] * QUAD_SIZE), dtype=np.int64)
            buffer = np.empty((n_threads, QUAD_SIZE, TILE_ROWS), dtype=np.int32)
            for part in self._slices(work):
                linear_kernels.dense_losses(
                    records.as_pairs, part, w, start, self._loss, buffer, out
                )
        else:
            w = _lane_groups(whole)
            out = np.zeros((n_threads, w.shape[0] * LANE_WIDTH), dtype=np.int64)
            buffer = np.empty((n_threads, 32, LANE_WIDTH), dtype=np.int32)
            for part in self._slices(work):
                linear_kernels.sparse_losses(
                    records.rows, part, w, self.grid.a, self._loss, buffer, out
                )
        return -out.sum(axis=0)[:m]

    def _wide_scores(self, whole: Floats) -> Integers:
        m = len(whole)
        records = self._records
        work = float(self.n_records) * m * (20 + self.n_features)
        n_threads = self._threads(work)
        out = np.zeros((n_threads, m), dtype=np.int64)
        buffer = np.empty((n_threads, TILE_ROWS))
        for part in self._slices(work):
            if isinstance(records, DenseRecords):
                linear_kernels.dense_losses_wide(
                    records.panels, part, *self._wide_weights(whole), self._loss, buffer, out
                )
            else:
                linear_kernels.sparse_losses_wide(
                    records.rows, part, whole, self.grid.a, self._loss, buffer, out
                )
        return -out.sum(axis=0)

    def _dense_weights(self, whole: Floats) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        pairs = self._records.pairs
        return _quads(whole[:, :-1], pairs), _quad_starts(whole[:, -1] * 2.0**self.grid.a)

    def _wide_weights(self, whole: Floats) -> tuple[Floats, Floats]:
        weights = np.zeros((len(whole), 2 * self._records.pairs))
        weights[:, : self.n_features] = whole[:, :-1]
        return weights, whole[:, -1] * 2.0**self.grid.a

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): the data-free part of the objective, -l2/2 norm2(w)^2, in score units."""
        P, _ = self._candidates(P)
        penalty = self.l2 / 2 * np.square(P[:, :-1]).sum(axis=1)
        return -np.rint(penalty / self.unit).astype(np.int64)

    # The table of THEORY section 1, with B = N(w) and D = N(w - w').
    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up."""
        _check_adjacency(adjacency)
        P, _ = self._candidates(P)
        if _same(P):
            return 0
        replaced = adjacency == "replace"
        if self.loss == "zero_one":
            return 2 if replaced else 1
        B = self.domain.norm(P)
        D = self.domain.pair_norms(P)
        if self.loss == "logistic":
            gap = _logistic_gap(B, D)
            bound = np.minimum(gap + gap.T, B[:, None] + B) if replaced else gap
        elif replaced:
            swing = np.minimum(2 * B, 1 + B)
            bound = self.C * np.minimum(2 * D, swing[:, None] + swing)
        else:
            bound = self.C * np.minimum(D, 1 + B)
        return _integer_range(float(bound.max()), self.unit, 2 if replaced else 1)

    def gradient(self, w: ArrayLike, cap: float) -> Integers:
        """int64 (d + 1,): sums of y x_j min(sigma(-m), cap), in units of `gradient_unit`.

        Entry j scores the move +e_j and its negative the move -e_j, all moves in one pass. Columns
        are taken in units of their scale 2^e_j (1 for the unit box, the balls and a schema).
        """
        if self.loss != "logistic":
            raise ValueError(f"gradient needs the logistic loss, not {self.loss!r}; pass loss=")
        top = self._cap(cap)
        P, whole = self._candidates(np.atleast_2d(np.asarray(w, dtype=np.float64)))
        if len(P) != 1:
            raise ValueError(f"w (shape {np.shape(w)}) must be one candidate; pass a vector (d + 1,)")
        wide = not self._narrow(self.domain.norm(P))[0]
        records = self._records
        work = float(self.n_records) * (20 + self.n_features / 4)
        n_threads = self._threads(work)
        rows = max(TILE_ROWS, self.n_records // (16 * n_threads) // 256 * 256)
        if isinstance(records, SparseRecords):
            out = np.zeros((n_threads, 2, self.n_features + 1), dtype=np.int64)
            linear_kernels.sparse_gradient(
                records.rows, tiles(self._runs, rows), whole[0], wide, self.grid.a, self._loss, top,
                np.empty((n_threads, self.n_features + 1), np.int32),
                np.empty((n_threads, 256)), np.empty((n_threads, 2, 256), np.int32), out,
            )  # fmt: skip
            total = out.sum(axis=0)
            return np.asarray((total[0] << self.grid.a) + total[1])
        wide |= bool(np.abs(whole[0, :-1]).max() > 32767)
        out = np.zeros((n_threads, 2 * records.pairs + 1), dtype=np.int64)
        work_rows = np.empty((n_threads, 3, 128), dtype=np.int32)
        for part in self._slices(work, rows):
            if wide:
                weights, start = self._wide_weights(whole)
                linear_kernels.dense_gradient_wide(
                    records.panels, part, weights[0], start[0], self._loss, top,
                    np.empty((n_threads, 128)), work_rows, out,
                )  # fmt: skip
            else:
                weights = np.ascontiguousarray(_quads(whole[:, :-1], records.pairs)[0, :, 0])
                start = _wrap32(whole[:, -1] * 2.0**self.grid.a)
                linear_kernels.dense_gradient(
                    records.as_pairs, part, weights, start[0], self._loss, top, work_rows, out
                )
        total = out.sum(axis=0)
        return np.append(total[: self.n_features], total[-1] << self.grid.a)

    def _cap(self, cap: float) -> int:
        if isinstance(cap, bool | str) or not 0 < cap <= 1:
            raise ValueError(f"cap ({cap!r}) must lie in (0, 1]; pass cap=0.5")
        return max(1, math.floor(cap / linear_kernels.RESIDUAL_UNIT))

    def gradient_range(self, cap: float, adjacency: str) -> int:
        """The range of the scores +-gradient(w, cap): 2 x_max cap, twice that under replace."""
        _check_adjacency(adjacency)
        units = np.maximum(np.abs(self.domain.low), np.abs(self.domain.high))
        x_max = max(1 << self.grid.a, round(float((units / self.domain.record_units()).max())))
        return (4 if adjacency == "replace" else 2) * x_max * self._cap(cap)

    def second_moments(self) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~', the intercept last, in units of 4^-a."""
        d, one = self.n_features, 1 << self.grid.a
        records = self._records
        if isinstance(records, SparseRecords):
            n_threads = self._threads(float(self.n_records) * 100)
            sums = np.zeros((n_threads, d + 1, d + 1), dtype=np.int64)
            for part in self._slices(float(self.n_records) * 100):
                linear_kernels.sparse_moments(records.rows, part, self.grid.a, sums, n_threads)
            upper = np.triu(sums.sum(axis=0))
            return np.asarray(upper + np.triu(upper, 1).T)
        total = np.zeros((d + 1, d + 1), dtype=np.int64)
        rows = max(256, (1 << 22) // (d + 1))
        for run in records.runs:
            for first in range(0, run.count, rows):
                x = records.rows(run, first, min(rows, run.count - first)).astype(np.float64)
                x = np.column_stack([x, np.full(len(x), float(one))])
                # Whole numbers below 2^53: any order of summation, and any BLAS, is exact.
                total += (x.T @ x).astype(np.int64)
        return total

    def at(self, w: ArrayLike) -> LinearMoves:
        """A view around one parent that scores one-coordinate moves incrementally."""
        return LinearMoves(self, w)


def _logistic_gap(B: Floats, D: Floats) -> Floats:
    """phi(B_w', D) for all pairs (w, w'): ln((1 + e^B) / (1 + e^(B - D)))."""
    return np.asarray(np.logaddexp(0, B)[None, :] - np.logaddexp(0, B[None, :] - D))


class LinearMoves:
    """The candidates w + step e_coord around one parent w.

    Equal to `LinearObjective.scores` of them bit for bit, but only a column's non-zeros are touched.
    """

    def __init__(self, objective: LinearObjective, w: ArrayLike) -> None:
        w = np.asarray(w, dtype=np.float64)
        if w.ndim != 1:
            raise ValueError(f"w (shape {w.shape}) must be one candidate; pass a vector (d + 1,)")
        self._objective = objective
        self._whole = objective._candidates(w[None])[1][0]
        self._norm = float(objective.domain.norm(w)[0])
        self._load()

    @property
    def w(self) -> Floats:
        """The parent."""
        return self._whole * self._objective.domain.weight_units()

    def _load(self) -> None:
        """The parent's margins and losses, if they fit in 32 bits."""
        objective, records = self._objective, self._objective._records
        dense = isinstance(records, DenseRecords)
        self._state: NDArray[np.int32] | None = None
        if not objective._narrow(np.array([self._norm]))[0]:
            return
        if dense and np.abs(self._whole[:-1]).max() > 32767:
            return
        n_threads = objective._threads(float(objective.n_records) * 20)
        parts = tiles(objective._runs, TILE_ROWS)
        if isinstance(records, DenseRecords):
            z = np.empty(records.panels.shape[0] * PANEL_ROWS, dtype=np.int32)
            weights, start = objective._dense_weights(self._whole[None])
            linear_kernels.dense_margin(
                records.as_pairs, np.ascontiguousarray(weights[0, :, 0]), start[0, 0], z, n_threads
            )
            self._state = z
            return
        z = np.empty(objective.n_records, dtype=np.int32)
        linear_kernels.sparse_margins(
            records.rows, parts, _wrap32(self._whole), objective.grid.a, z, n_threads
        )
        losses = np.empty_like(z)
        linear_kernels.losses_each(z, parts, objective._loss, losses, n_threads)
        self._state = np.column_stack([z, losses])
        self._total = int(losses.sum(dtype=np.int64))

    def _moves(self, coords: ArrayLike, steps: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """Coordinates, steps in whole units, and bounds on the norms of the moved candidates."""
        objective = self._objective
        coords = np.atleast_1d(np.asarray(coords))
        steps = np.atleast_1d(np.asarray(steps, dtype=np.float64))
        if coords.ndim != 1 or coords.shape != steps.shape:
            raise ValueError(
                f"coords (shape {coords.shape}) and steps (shape {steps.shape}) must be two vectors "
                "of one length; pass one step for each coordinate"
            )
        if coords.dtype.kind not in "iu":
            raise ValueError(f"coords (dtype {coords.dtype}) must be whole numbers; pass indices")
        if coords.size and not (0 <= coords.min() and coords.max() <= objective.n_features):
            raise ValueError(
                f"coords must lie in 0..{objective.n_features}, the intercept last; pass such indices"
            )
        if not np.isfinite(steps).all():
            raise ValueError("steps must be finite; pass steps without NaN or infinity")
        coords = coords.astype(np.int64)
        whole = _on_grid(steps, objective.domain.weight_units()[coords], "steps on the grid")
        size = np.append(np.maximum(-objective.domain.low, objective.domain.high), 1.0)
        return coords, whole, self._norm + np.abs(steps) * size[coords]

    def candidates(self, coords: ArrayLike, steps: ArrayLike) -> Floats:
        """(m, d + 1): the moved candidates themselves."""
        coords, whole, _ = self._moves(coords, steps)
        P = np.tile(self._whole, (len(coords), 1))
        P[np.arange(len(coords)), coords] += whole
        return P * self._objective.domain.weight_units()

    def scores(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """int64 (m,): the scores of w + steps[i] e_coords[i]."""
        objective = self._objective
        coords, whole, norms = self._moves(coords, steps)
        if coords.size == 0:
            return np.empty(0, dtype=np.int64)
        fits = (norms + 1) * 2.0 ** (objective.grid.a + objective.grid.b) < 2.0**31
        if self._state is None or not fits.all() or not objective._narrow(norms).all():
            return objective.scores(self.candidates(coords, whole * self._units(coords)))
        if isinstance(objective._records, DenseRecords):
            return self._dense_scores(coords, whole)
        return self._sparse_scores(coords, whole)

    def _units(self, coords: Integers) -> Floats:
        return self._objective.domain.weight_units()[coords]

    def _dense_scores(self, coords: Integers, whole: Floats) -> Integers:
        objective = self._objective
        intercept = objective.n_features
        scale = np.where(coords == intercept, 2.0**objective.grid.a, 1.0)
        work = float(objective.n_records) * len(coords) * 8
        n_threads = objective._threads(work)
        out = np.zeros((n_threads, len(coords)), dtype=np.int64)
        buffer = np.empty((n_threads, TILE_ROWS), dtype=np.int32)
        for part in objective._slices(work):
            linear_kernels.dense_moves(
                objective._records.as_pairs, part, self._state, coords, _wrap32(whole * scale),
                intercept, objective._loss, buffer, out,
            )  # fmt: skip
        return -out.sum(axis=0)

    def _sparse_scores(self, coords: Integers, whole: Floats) -> Integers:
        objective, records = self._objective, self._objective._records
        order = np.argsort(coords, kind="stable")
        used, first = np.unique(coords[order], return_index=True)
        groups = np.column_stack([first, np.append(first[1:], len(coords))]).astype(np.int64)
        columns = records.by_column
        segments = columns.segments(used)
        entries = columns.start[used + 1] - columns.start[used]
        work = float(entries @ (groups[:, 1] - groups[:, 0])) * 12
        n_threads = objective._threads(work)
        out = np.zeros((n_threads, len(coords)), dtype=np.int64)
        linear_kernels.sparse_moves(
            self._state, segments, groups, columns.row, columns.value, _wrap32(whole[order]),
            objective._loss, np.empty((n_threads, 2, 256), dtype=np.int32), out,
        )  # fmt: skip
        result = np.empty(len(coords), dtype=np.int64)
        result[order] = -self._total - out.sum(axis=0)
        return result

    def step(self, coord: int, step: float) -> None:
        """Move the parent."""
        coords, whole, _ = self._moves([coord], [step])
        self._whole = self._whole.copy()
        self._whole[coords[0]] += whole[0]
        self._norm = float(self._objective.domain.norm(self.w)[0])
        self._load()


# ---------------------------------------------------------------------------------------- centres


class CentersObjective(_Objective):
    """Minus the cost of sets of centres: squared l2 (k-means) or l1 (k-median) distances.

    Candidates are (m, k, d) on the grid of the records; put them there with `snap`. Distances are
    exact integers: nothing is rounded, and `unit` is the record unit to the power.

    Parameters
    ----------
    X : array or CSR/CSC matrix
        Private records. Packed once; X itself is not kept.
    n_clusters : int
        Number k of centres in a candidate.
    domain : Domain
        The declared domain of a record.
    power : 2 or 1
        Squared l2 distances, or l1 distances.
    """

    def __init__(
        self,
        X: Any,
        n_clusters: int,
        domain: Domain | None = None,
        power: int = 2,
        n_threads: int | None = None,
    ) -> None:
        if power not in (1, 2):
            raise ValueError(f"power ({power!r}) must be 2 (squared l2) or 1 (l1); pass one of them")
        if isinstance(n_clusters, bool) or not isinstance(n_clusters, int) or n_clusters < 1:
            raise ValueError(
                f"n_clusters ({n_clusters!r}) must be a whole number of at least 1; pass such a number"
            )
        threads.resolve(n_threads)
        X, domain = check_records(X, domain, "CentersObjective")
        self.domain, self.n_clusters, self.power = domain, n_clusters, power
        self.n_records, self.n_features = X.shape
        self._n_threads = n_threads
        records = pack(X, domain, layout="dense", uniform=True)
        assert isinstance(records, DenseRecords)
        self._records, self._runs = records, records.runs
        self._record_unit = float(domain.record_units(uniform=True)[0])
        self._low, self._high = domain.low / self._record_unit, domain.high / self._record_unit

    @property
    def unit(self) -> float:
        """What one unit of a score is worth."""
        return self._record_unit**self.power

    def snap(self, P: ArrayLike) -> Floats:
        """Centres (..., d), rounded to the nearest point of the record grid."""
        return np.rint(np.asarray(P, dtype=np.float64) / self._record_unit) * self._record_unit

    def _candidates(self, P: ArrayLike) -> Floats:
        P = _check_finite(P, 3, "sets of centres (m, k, d)")
        if P.shape[1:] != (self.n_clusters, self.n_features):
            raise ValueError(
                f"P (shape {P.shape}) must be sets of {self.n_clusters} centres with "
                f"{self.n_features} columns; pass candidates (m, k, d)"
            )
        whole = _on_grid(P, self._record_unit, "objective.snap(P)")
        if np.abs(whole).max() >= 2.0**20 or self.n_features * (2.0**21) ** 2 >= 2.0**53:
            raise ValueError(
                "centres are too far out for exact distances; pass centres inside the domain"
            )
        return whole

    @cached_property
    def _squares(self) -> int:
        """The sum of the records' own squares, which all candidates share."""
        panels, total = self._records.panels, 0
        step = max(1, (1 << 18) // panels[0].size)
        for first in range(0, len(panels), step):
            x = panels[first : first + step].astype(np.float64).ravel()
            total += int(x @ x)  # whole numbers below 2^53: exact in any order
        return total

    def _kernel_form(
        self, whole: Floats, shift: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], int] | None:
        """Centres (n, d) as quads, their start values, and the shift to add back for each record.

        None where 32 bits may not do. For l2 the kernel computes norm2(c)^2 - 2 <x, c> - shift;
        its bounds over the box show that it fits. A shift that is not given is put in the middle.
        """
        pairs = self._records.pairs
        if self.power == 1:
            reach = np.maximum(np.abs(whole - self._low), np.abs(self._high - whole))
            if reach.max() > 32767 or reach.sum(axis=1).max() >= 2.0**31:
                return None
            return _quads(whole, pairs), _quad_starts(np.zeros(len(whole))), 0
        squares = np.square(whole).sum(axis=1)
        least = squares - 2 * np.maximum(self._low * whole, self._high * whole).sum(axis=1)
        most = squares - 2 * np.minimum(self._low * whole, self._high * whole).sum(axis=1)
        if shift is None:
            shift = math.floor((least.min() + most.max()) / 2)
        extreme = max(most.max() - shift, shift - least.min())
        if np.abs(whole).max() > 16383 or extreme >= 2.0**31 - 1:
            return None
        return _quads(-2 * whole, pairs), _quad_starts(squares - shift), shift

    def _added_back(self, shift: int) -> int:
        """What the kernel's sums of distances lack."""
        return self.n_records * shift + (self._squares if self.power == 2 else 0)

    def scores(self, P: ArrayLike) -> Integers:
        """int64 (m,): minus the cost of each set of centres (m, k, d), in units of `unit`."""
        whole = self._candidates(P)
        m, k, d = whole.shape
        padded_k = -(-k // QUAD_SIZE) * QUAD_SIZE
        padded = np.concatenate([whole, np.repeat(whole[:, -1:], padded_k - k, axis=1)], axis=1)
        form = self._kernel_form(padded.reshape(-1, d))
        work = float(self.n_records) * m * k * (1 + d / 16)
        n_threads = self._threads(work)
        out = np.zeros((n_threads, m), dtype=np.int64)
        if form is None:
            centres = self._padded(whole)
            buffer = np.empty((n_threads, 2, TILE_ROWS))
            for part in self._slices(8 * work):
                center_kernels.costs_wide(
                    self._records.panels, part, centres, self.power, buffer, out
                )
            return -out.sum(axis=0)
        w, start, shift = form
        w = w.reshape(m, padded_k // QUAD_SIZE, -1, QUAD_SIZE)
        start = start.reshape(m, padded_k // QUAD_SIZE, QUAD_SIZE)
        narrow = np.empty((n_threads, TILE_ROWS), dtype=np.int32)
        for part in self._slices(work):
            center_kernels.costs(self._records.as_pairs, part, w, start, self.power, narrow, out)
        return -(out.sum(axis=0) + self._added_back(shift))

    def _padded(self, whole: Floats) -> Floats:
        result = np.zeros((*whole.shape[:-1], 2 * self._records.pairs))
        result[..., : self.n_features] = whole
        return result

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._candidates(P)), dtype=np.int64)

    # rho and cov of THEORY section 1, on integers.
    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up."""
        _check_adjacency(adjacency)
        whole = self._candidates(P)
        if _same(whole):
            return 0
        m, k, d = whole.shape
        gaps = np.empty((m, m))
        n_threads = self._threads(float(m * m) * k * k * d)
        center_kernels.set_gaps(whole, self._low, self._high, self.power, gaps, n_threads)
        reach = np.maximum(np.abs(whole - self._low), np.abs(self._high - whole))
        cover = (reach**self.power).sum(axis=2).min(axis=1)
        if adjacency == "replace":
            bound = np.minimum(gaps + gaps.T, cover[:, None] + cover)
        else:
            bound = np.minimum(gaps, cover[:, None])
        return _integer_range(float(bound.max()), 1.0, 0)

    def lloyd(self, centers: ArrayLike) -> tuple[Integers, Integers]:
        """Counts (k,) and sums (k, d) of the records nearest to each centre, in record units.

        Each record belongs to exactly one centre; ties go to the lowest index.
        """
        whole = self._candidates(np.asarray(centers, dtype=np.float64)[None])[0]
        k, d = whole.shape
        work = float(self.n_records) * (k * (2 + d / 8) + 4 * d)
        n_threads = self._threads(work)
        counts = np.zeros((n_threads, k), dtype=np.int64)
        sums = np.zeros((n_threads, k, 2 * self._records.pairs), dtype=np.int64)
        form = self._kernel_form(whole)
        if form is None:
            wide = np.empty((n_threads, 2, TILE_ROWS))
            which = np.empty((n_threads, TILE_ROWS), dtype=np.int32)
            for part in self._slices(8 * work):
                center_kernels.lloyd_wide(
                    self._records.panels, part, self._padded(whole), self.power, wide, which,
                    counts, sums,
                )  # fmt: skip
        else:
            buffer = np.empty((n_threads, QUAD_SIZE + 2, TILE_ROWS), dtype=np.int32)
            for part in self._slices(work):
                center_kernels.lloyd(
                    self._records.panels, part, form[0], form[1], k, self.power, buffer, counts, sums
                )
        return counts.sum(axis=0), sums.sum(axis=0)[:, :d]

    def at(self, centers: ArrayLike) -> CenterMoves:
        """A view around one set of centres that scores changes of one centre incrementally."""
        return CenterMoves(self, centers)


class CenterMoves:
    """The sets that differ from a parent in one centre; k times less work than from scratch."""

    def __init__(self, objective: CentersObjective, centers: ArrayLike) -> None:
        self._objective = objective
        self._whole = objective._candidates(np.asarray(centers, dtype=np.float64)[None])[0]
        self._load()

    @property
    def centers(self) -> Floats:
        """The parent."""
        return self._whole * self._objective._record_unit

    def _load(self) -> None:
        """Each record's two nearest centres, if distances fit in 32 bits."""
        objective = self._objective
        form = objective._kernel_form(self._whole)
        self._state: NDArray[np.int32] | None = None
        if form is None:
            return
        k = objective.n_clusters
        n_threads = objective._threads(float(objective.n_records) * k * objective.n_features)
        w, start, self._shift = form
        rows = objective._records.panels.shape[0] * PANEL_ROWS
        self._state = np.empty((3, rows), dtype=np.int32)
        buffer = np.empty((n_threads, QUAD_SIZE, TILE_ROWS), dtype=np.int32)
        center_kernels.nearest_two(
            objective._records.as_pairs, tiles(objective._runs, TILE_ROWS), w, start, k,
            objective.power, buffer, self._state, n_threads,
        )  # fmt: skip

    def _moves(self, which: ArrayLike, centers: ArrayLike) -> tuple[Integers, Floats]:
        objective = self._objective
        which = np.atleast_1d(np.asarray(which))
        centers = np.atleast_2d(np.asarray(centers, dtype=np.float64))
        if which.ndim != 1 or centers.shape != (len(which), objective.n_features):
            raise ValueError(
                f"which (shape {which.shape}) and centers (shape {centers.shape}) must match; pass "
                f"one new centre with {objective.n_features} columns for each index"
            )
        if which.dtype.kind not in "iu" or (
            which.size and not (0 <= which.min() and which.max() < objective.n_clusters)
        ):
            raise ValueError(
                f"which must hold indices in 0..{objective.n_clusters - 1}; pass centres to replace"
            )
        return which.astype(np.int64), centers

    def candidates(self, which: ArrayLike, centers: ArrayLike) -> Floats:
        """(m, k, d): the changed sets themselves."""
        which, centers = self._moves(which, centers)
        P = np.tile(self.centers, (len(which), 1, 1))
        P[np.arange(len(which)), which] = centers
        return P

    def scores(self, which: ArrayLike, centers: ArrayLike) -> Integers:
        """int64 (m,): the scores with centre which[i] replaced by centers[i]."""
        objective = self._objective
        which, centers = self._moves(which, centers)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        new = objective._candidates(np.repeat(centers[:, None], objective.n_clusters, axis=1))[:, 0]
        form = None if self._state is None else self._form(new, which)
        if form is None:
            return objective.scores(self.candidates(which, centers))
        w, start, replaced, place = form
        work = float(objective.n_records) * len(which) * (4 + objective.n_features / 8)
        n_threads = objective._threads(work)
        out = np.zeros((n_threads, w.shape[0] * QUAD_SIZE), dtype=np.int64)
        buffer = np.empty((n_threads, QUAD_SIZE + 1, TILE_ROWS), dtype=np.int32)
        for part in objective._slices(work):
            center_kernels.swaps(
                objective._records.as_pairs, part, self._state, w, start, replaced,
                objective.power, buffer, out,
            )  # fmt: skip
        return -(out.sum(axis=0)[place] + objective._added_back(self._shift))

    def _form(
        self, new: Floats, which: Integers
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Integers] | None:
        """New centres in quads that replace one and the same centre, and where each one stands."""
        objective = self._objective
        order = np.argsort(which, kind="stable")
        rows: list[int] = []
        place = np.empty(len(which), dtype=np.int64)
        for index in np.unique(which):
            members = order[which[order] == index]
            place[members] = len(rows) + np.arange(len(members))
            rows += [*members, *[members[-1]] * (-len(members) % QUAD_SIZE)]
        form = objective._kernel_form(new[rows], self._shift)
        if form is None:
            return None
        return form[0], form[1], which[rows][::QUAD_SIZE].astype(np.int32), place

    def step(self, which: int, center: ArrayLike) -> None:
        """Replace one centre of the parent."""
        index, new = self._moves([which], np.asarray(center, dtype=np.float64)[None])
        moved = self.candidates(index, new)
        self._whole = self._objective._candidates(moved)[0]
        self._load()


# ------------------------------------------------------------------------------------- facilities


class FacilityObjective(_Objective):
    """Minus the clipped l1 distance of records to the nearest facility of a public set.

    Candidates are int (m, k): indices into the facilities. Distances are computed once, clipped to
    [lo, hi], rounded to one or two bytes and kept by facility; `lo` itself is left out of scores,
    since it is the same for all.

    Parameters
    ----------
    X : array or CSR/CSC matrix
        Private records.
    facilities : (f, d) array
        Public places.
    clip : (lo, hi)
        Public bounds of a distance.
    domain : Domain, optional
        The declared domain of a record. By default the box that the facilities span, widened to
        eighths of its scale; farther records are clipped to it, which shifts their distances to
        all facilities alike.
    bits : 16 or 8
        Size of a stored distance.
    """

    def __init__(
        self,
        X: Any,
        facilities: ArrayLike,
        clip: tuple[float, float],
        domain: Domain | None = None,
        n_threads: int | None = None,
        *,
        bits: int = 16,
    ) -> None:
        if bits not in (8, 16):
            raise ValueError(f"bits ({bits!r}) must be 16 or 8; pass one of them")
        low, high = _check_clip(clip)
        places = np.asarray(facilities, dtype=np.float64)
        if places.ndim != 2 or places.size == 0 or not np.isfinite(places).all():
            raise ValueError(
                f"facilities (shape {places.shape}) must be a non-empty, finite array; pass places "
                "(f, d)"
            )
        threads.resolve(n_threads)
        X, domain = check_records(X, domain or _spanned_box(places), "FacilityObjective")
        if X.shape[1] != places.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} columns but facilities {places.shape[1]}; pass the same columns"
            )
        self.domain, self.clip, self.bits = domain, (low, high), bits
        self.n_records, self.n_facilities = X.shape[0], len(places)
        self._n_threads = n_threads
        record_unit = float(domain.record_units(uniform=True)[0])
        self._low, self._high = round(low / record_unit), round(high / record_unit)
        span = max(self._high - self._low, 1)
        self._shift = max(0, span.bit_length() - bits)
        self.unit = record_unit * 2.0**self._shift
        self._places = np.rint(places / record_unit)
        self._matrix = self._distances(X, domain)

    def _distances(self, X: Any, domain: Domain) -> NDArray[Any]:
        """(f, n padded): clipped distances in score units."""
        places = self._places
        reach = np.maximum(np.abs(domain.low), np.abs(domain.high)) / domain.record_units(True)
        widest = np.abs(places).max(axis=0) + reach
        if widest.max() > 32767 or widest.sum() >= 2.0**31:
            raise ValueError(
                "facilities lie too far outside the domain for exact distances; pass a domain that "
                "contains them"
            )
        records = pack(X, domain, uniform=True)
        onehot = isinstance(records, SparseRecords) and records.value.size == 0
        if not onehot and isinstance(records, SparseRecords):
            records = pack(X, domain, layout="dense", uniform=True)
        self._runs = records.runs
        rows = -(-self.n_records // facility_kernels.STRIP_ROWS) * facility_kernels.STRIP_ROWS
        kind = np.uint16 if self.bits == 16 else np.uint8
        matrix = np.zeros((self.n_facilities, rows), dtype=kind)
        work = float(self.n_records) * places.size
        n_threads = self._threads(work)
        bounds = (self._low, self._high, self._shift)
        for part in self._slices(work, 128):
            if isinstance(records, SparseRecords):
                # l1(x - f) = sum of f + sum over ones of (1 - 2 f_j), where 0 <= f <= 1; a facility
                # outside [0, 1] changes the absolute values, hence the two terms in full.
                zero, one = np.abs(places), np.abs((1 << domain.grid.a) - places)
                weights = _lane_groups(np.column_stack([one - zero, zero.sum(axis=1)]))
                buffer = np.empty((n_threads, 2 * PANEL_ROWS, LANE_WIDTH), dtype=np.int32)
                facility_kernels.onehot_distances(
                    records.rows, part, weights, *bounds, buffer, matrix
                )
            else:
                buffer = np.empty((n_threads, QUAD_SIZE, 128), dtype=np.int32)
                facility_kernels.dense_distances(
                    records.as_pairs, part, _quads(places, records.pairs), *bounds, buffer, matrix
                )
        return matrix

    def _candidates(self, P: ArrayLike) -> Integers:
        P = np.asarray(P)
        if P.ndim != 2 or P.size == 0:
            raise ValueError(f"P (shape {P.shape}) must be sets of facilities; pass indices (m, k)")
        if P.dtype.kind not in "iu":
            raise ValueError(f"P (dtype {P.dtype}) must hold whole numbers; pass indices (m, k)")
        if not (0 <= P.min() and P.max() < self.n_facilities):
            raise ValueError(
                f"P must hold indices in 0..{self.n_facilities - 1}; pass indices of facilities"
            )
        return np.ascontiguousarray(P, dtype=np.int64)

    def scores(self, P: ArrayLike) -> Integers:
        """int64 (m,): minus the summed distances (less lo) to each set, in units of `unit`."""
        P = self._candidates(P)
        work = float(self.n_records) * P.size / 4
        out = np.zeros((self._threads(work), len(P)), dtype=np.int64)
        for part in self._slices(work, 128):
            facility_kernels.least_sums(self._matrix, part, P, out)
        return -out.sum(axis=0)

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._candidates(P)), dtype=np.int64)

    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        At most hi - lo for one record, and at most how far a facility of one set can be from the
        nearest of the other.
        """
        _check_adjacency(adjacency)
        P = np.sort(self._candidates(P), axis=1)
        if _same(P):
            return 0
        used, inverse = np.unique(P, return_inverse=True)
        sets = np.zeros((len(P), P.shape[1], self._places.shape[1]))
        sets[:] = self._places[used][inverse.reshape(P.shape)]
        gaps = np.empty((len(P), len(P)))
        bounds = np.zeros(sets.shape[2])
        center_kernels.set_gaps(
            sets, bounds, bounds, 1, gaps, self._threads(float(len(P)) ** 2 * sets[0].size)
        )
        sides = 2 if adjacency == "replace" else 1
        bound = gaps + gaps.T if sides == 2 else gaps
        # Distances round to units of 2^shift: two roundings of a record differ by at most one unit.
        # No stored distance exceeds the rounded hi - lo.
        slack = sides if self._shift else 0
        largest = (self._high - self._low + (1 << self._shift >> 1)) >> self._shift
        return min(_integer_range(float(bound.max()), 2.0**self._shift, slack), sides * largest)

    def at(self, members: ArrayLike) -> FacilityMoves:
        """A view around one set that scores replacements of one facility incrementally."""
        return FacilityMoves(self, members)


def _check_clip(clip: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in clip)
    except (TypeError, ValueError):
        raise ValueError("clip must be two numbers; pass clip=(lo, hi)") from None
    if not (math.isfinite(high) and 0 <= low < high):
        raise ValueError(
            f"clip ({low}, {high}) must rise from 0 or more to a finite bound; pass clip=(lo, hi)"
        )
    return low, high


def _spanned_box(places: Floats) -> Box:
    """The facilities' bounding box, widened to eighths of the power of two that covers it."""
    step = 2.0 ** (math.frexp(max(float(np.abs(places).max()), 1e-300))[1] - 3)
    return Box(np.floor(places.min(axis=0) / step) * step, np.ceil(places.max(axis=0) / step) * step)


class FacilityMoves:
    """The sets that differ from a parent in one facility; two rows are read instead of k."""

    def __init__(self, objective: FacilityObjective, members: ArrayLike) -> None:
        self._objective = objective
        self._members = objective._candidates(np.asarray(members)[None])[0]
        self._load()

    @property
    def members(self) -> Integers:
        """The parent."""
        return self._members.copy()

    def _load(self) -> None:
        objective = self._objective
        n = objective.n_records
        self._distances = np.empty((2, n), dtype=objective._matrix.dtype)
        self._which = np.empty(n, dtype=np.int32)
        facility_kernels.nearest_two(
            objective._matrix, self._members, self._distances, self._which,
            objective._threads(float(n) * len(self._members) * 4),
        )  # fmt: skip

    def _moves(self, which: ArrayLike, facilities: ArrayLike) -> tuple[Integers, Integers]:
        which, facilities = np.atleast_1d(np.asarray(which)), np.atleast_1d(np.asarray(facilities))
        k = len(self._members)
        if which.ndim != 1 or which.shape != facilities.shape:
            raise ValueError(
                f"which (shape {which.shape}) and facilities (shape {facilities.shape}) must be two "
                "vectors of one length; pass one facility for each position"
            )
        if which.dtype.kind not in "iu" or (
            which.size and not (0 <= which.min() and which.max() < k)
        ):
            raise ValueError(f"which must hold positions in 0..{k - 1}; pass members to replace")
        if which.size:
            facilities = self._objective._candidates(facilities[:, None])[:, 0]
        return which.astype(np.int64), facilities.astype(np.int64)

    def candidates(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """(m, k): the changed sets themselves."""
        which, facilities = self._moves(which, facilities)
        P = np.tile(self._members, (len(which), 1))
        P[np.arange(len(which)), which] = facilities
        return P

    def scores(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """int64 (m,): the scores with member which[i] replaced by facilities[i]."""
        objective = self._objective
        which, facilities = self._moves(which, facilities)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        order = np.argsort(which, kind="stable")
        work = float(objective.n_records) * len(which) / 2
        n_threads = objective._threads(work)
        out = np.zeros((n_threads, len(which)), dtype=np.int64)
        rows = 1024
        buffer = np.empty((n_threads, rows), dtype=objective._matrix.dtype)
        for part in objective._slices(work, rows):
            facility_kernels.swap_sums(
                objective._matrix, part, self._distances, self._which, which[order],
                facilities[order], buffer, out,
            )  # fmt: skip
        result = np.empty(len(which), dtype=np.int64)
        result[order] = -out.sum(axis=0)
        return result

    def step(self, which: int, facility: int) -> None:
        """Replace one facility of the parent."""
        self._members = self.candidates([which], [facility])[0]
        self._load()


# ------------------------------------------------------------------------------ anybody's fitness


class RecordObjective:
    """Anybody's own score of a record under a candidate, clipped and rounded by us.

    Parameters
    ----------
    records : array, sparse matrix, DataFrame or list
        Private records; rows are handed to `score` in blocks.
    score : callable (records, P) -> (n, m)
        Higher is better. It must treat each record by itself: a record's scores may not depend on
        which others stand in the block. This is checked on single records of each block.
    low, high : float
        Public bounds. Scores are clipped to them, so sensitivity does not rest on `score`.
    bits : int
        Levels of a score between the bounds: 2^bits.
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
            if isinstance(value, bool | str) or not math.isfinite(value):
                raise ValueError(f"{name} ({value!r}) must be a finite number; pass a public bound")
        if not low < high:
            raise ValueError(f"low ({low}) must be below high ({high}); pass the public bounds")
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 30:
            raise ValueError(f"bits ({bits!r}) must be a whole number from 1 to 30; pass bits=16")
        if isinstance(block, bool) or not isinstance(block, int) or block < 1:
            raise ValueError(f"block ({block!r}) must be a positive number; pass block=4096")
        self._records = sp.csr_array(records) if sp.issparse(records) else records
        self.n_records = int(np.shape(records)[0])
        if self.n_records == 0:
            raise ValueError("records must hold at least one record; pass a non-empty table")
        self._score, self._block = score, block
        self.low, self.high = float(low), float(high)
        self.unit = 2.0 ** (math.frexp(self.high - self.low)[1] - bits)
        self._floor, self._ceiling = round(self.low / self.unit), round(self.high / self.unit)

    def __repr__(self) -> str:
        return f"RecordObjective(n_records={self.n_records}, low={self.low}, high={self.high})"

    def _rows(self, first: int, last: int) -> Any:
        records = self._records
        return records.iloc[first:last] if hasattr(records, "iloc") else records[first:last]

    def _integers(self, rows: Any, P: Any, n: int) -> Integers:
        """Each record's clipped and rounded scores."""
        values = np.asarray(self._score(rows, P), dtype=np.float64)
        if values.shape != (n, len(P)):
            raise ValueError(
                f"score returned shape {values.shape} for {n} records and {len(P)} candidates; "
                "return an array (n, m)"
            )
        if np.isnan(values).any():
            raise ValueError("score returned NaN; return a number for every record and candidate")
        units = np.rint(np.clip(values, self.low, self.high) / self.unit)
        return np.clip(units, self._floor, self._ceiling).astype(np.int64)

    def scores(self, P: Any) -> Integers:
        """int64 (m,): the sum over records of clipped scores, in units of `unit`."""
        if len(P) == 0:
            raise ValueError("P must hold at least one candidate; pass a non-empty array")
        total = np.zeros(len(P), dtype=np.int64)
        step = max(1, min(self._block, (1 << 22) // len(P)))
        for first in range(0, self.n_records, step):
            last = min(first + step, self.n_records)
            whole = self._integers(self._rows(first, last), P, last - first)
            for i in {first, last - 1} if last - first > 1 else ():
                alone = self._integers(self._rows(i, i + 1), P, 1)
                if not np.array_equal(alone[0], whole[i - first]):
                    raise ValueError(
                        "score must treat each record by itself; it gave another value to a record "
                        "that stood alone. Round inside score, or pass block=1"
                    )
            total += whole.sum(axis=0)
        return total

    def prior(self, P: Any) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Any, adjacency: str) -> int:
        """high - low in score units, twice that under replace; 0 for a single candidate."""
        _check_adjacency(adjacency)
        if len(P) < 2:
            return 0
        return (self._ceiling - self._floor) * (2 if adjacency == "replace" else 1)
