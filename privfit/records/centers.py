"""Records packed for sets of centres: costs, Lloyd's counts and sums, moves of one centre.

Centres come in whole units of the records' grid, near enough for exact distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import NDArray

from privfit._kernels import centers as kernels
from privfit._kernels.records import PANEL_ROWS, QUAD_SIZE
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.records.candidates import quad_starts, quads
from privfit.records.cells import CellRows
from privfit.records.frames import clipped_rows, coded_rows
from privfit.records.packing import DenseRecords, aligned, check_records, joined, pack, tiles
from privfit.records.rows import KernelCalls


class CentersRows(CellRows):
    """Records whose distances to centres are squared l2 (power 2) or l1 (power 1)."""

    dense: DenseRecords

    def __init__(
        self, records: DenseRecords, domain: Domain, power: int, n_threads: int | None = None
    ) -> None:
        super().__init__(records.runs, records.n_features, n_threads)
        self.dense, self.domain, self.power = records, domain, power
        self.bounds = domain.whole_bounds
        unit = float(domain.record_units(uniform=True)[0])
        self._low, self._high = domain.low / unit, domain.high / unit

    @classmethod
    def pack(
        cls,
        X: Any,
        y: None,
        *,
        domain: Domain,
        regrid: Callable[[Domain], Domain],
        power: int,
        n_threads: int | None = None,
    ) -> CentersRows:
        """Check and pack records, on a grid that follows from the domain's columns."""
        X, bound = check_records(X, domain, "CentersObjective")
        domain = regrid(bound)
        packers = KernelCalls(n_threads).packers(X)
        records = pack(X, domain, layout="dense", uniform=True, n_threads=packers)
        assert isinstance(records, DenseRecords)
        return cls(records, domain, power, n_threads)

    @property
    def kind(self) -> str:
        return "dense"

    @property
    def nbytes(self) -> int:
        return self.dense.nbytes

    def joined(self, others: Sequence[CentersRows]) -> CentersRows:
        records = joined([one.dense for one in (self, *others)])
        assert isinstance(records, DenseRecords)
        return CentersRows(records, self.domain, self.power, self.n_threads)

    # ---------------------------------------------------------------------------- kernels' centres

    @cached_property
    def _squares(self) -> int:
        """The sum of the records' own squares, which all candidates share."""
        panels, total = self.dense.panels, 0
        step = max(1, (1 << 18) // panels[0].size)
        for first in range(0, len(panels), step):
            x = panels[first : first + step].astype(np.float64).ravel()
            total += int(x @ x)  # whole numbers below 2^53: exact in any order
        return total

    def _kernel_form(
        self, whole: Floats, shift: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], int] | None:
        """Centres (n, d) as quads, their start values, and the shift to add back for each record.

        None if 32 bits may not be enough. For l2 the kernel computes norm2(c)^2 - 2 <x, c> - shift;
        its bounds over the box show that it fits. A shift that is not given is put in the middle.
        """
        pairs = self.dense.pairs
        if self.power == 1:
            reach = np.maximum(np.abs(whole - self._low), np.abs(self._high - whole))
            if reach.max() > 32767 or reach.sum(axis=1).max() >= 2.0**31:
                return None
            return quads(whole, pairs), quad_starts(np.zeros(len(whole))), 0
        squares = np.square(whole).sum(axis=1)
        least = squares - 2 * np.maximum(self._low * whole, self._high * whole).sum(axis=1)
        most = squares - 2 * np.minimum(self._low * whole, self._high * whole).sum(axis=1)
        if shift is None:
            shift = math.floor((least.min() + most.max()) / 2)
        extreme = max(most.max() - shift, shift - least.min())
        if np.abs(whole).max() > 16383 or extreme >= 2.0**31 - 1:
            return None
        return quads(-2 * whole, pairs), quad_starts(squares - shift), shift

    def _added_back(self, shift: int) -> int:
        """What is missing from the kernel's sums of distances, modulo 2^64: only costs must fit."""
        added = self.n_records * shift + (self._squares if self.power == 2 else 0)
        return (added + 2**63) % 2**64 - 2**63

    def _padded(self, whole: Floats) -> Floats:
        result = np.zeros((*whole.shape[:-1], 2 * self.dense.pairs))
        result[..., : self.n_features] = whole
        return result

    # ----------------------------------------------------------------------------------- questions

    def costs(self, whole: Floats) -> Integers:
        """int64 (m,): the cost of each set of centres (m, k, d)."""
        m, k, d = whole.shape
        padded_k = -(-k // QUAD_SIZE) * QUAD_SIZE
        padded = np.concatenate([whole, np.repeat(whole[:, -1:], padded_k - k, axis=1)], axis=1)
        form = self._kernel_form(padded.reshape(-1, d))
        work = float(self.n_records) * m * k * (1 + d / 16)
        n_threads = self.threads(work)
        out = np.zeros((n_threads, m), dtype=np.int64)
        if form is None:
            centres = self._padded(whole)
            buffer = aligned((n_threads, 2, self.tile_rows), np.float64)
            for part in self.slices(8 * work):
                kernels.costs_wide(self.dense.panels, part, centres, self.power, buffer, out)
            return out.sum(axis=0)
        w, start, shift = form
        w = w.reshape(m, padded_k // QUAD_SIZE, -1, QUAD_SIZE)
        start = start.reshape(m, padded_k // QUAD_SIZE, QUAD_SIZE)
        narrow = aligned((n_threads, self.tile_rows), np.int32)
        for part in self.slices(work):
            kernels.costs(self.dense.as_pairs, part, w, start, self.power, narrow, out)
        return out.sum(axis=0) + self._added_back(shift)

    def clusters(self, whole: Floats, radius: int = 0, norm: int = 0) -> Integers:
        """int64 (k, 1 + d): counts and sums of the records nearest to each centre (k, d).

        If `norm` is 1 or 2, the sums are those of x - c, clipped to this radius.
        """
        k, d = whole.shape
        work = float(self.n_records) * (k * (2 + d / 8) + (4 if norm == 0 else 8) * d)
        n_threads = self.threads(work)
        counts = np.zeros((n_threads, k), dtype=np.int64)
        sums = np.zeros((n_threads, k, 2 * self.dense.pairs), dtype=np.int64)
        form, padded = self._kernel_form(whole), self._padded(whole)
        about = (padded.astype(np.int32), radius, norm)
        if form is None:
            wide = aligned((n_threads, 2, self.tile_rows), np.float64)
            which = aligned((n_threads, self.tile_rows), np.int32)
            for part in self.slices(8 * work):
                kernels.lloyd_wide(
                    self.dense.panels, part, padded, self.power, *about, wide, which, counts, sums
                )
        else:
            buffer = aligned((n_threads, 2, self.tile_rows), np.int32)
            for part in self.slices(work):
                kernels.lloyd(
                    self.dense.panels, part, form[0], form[1], self.power, *about, buffer, counts,
                    sums,
                )  # fmt: skip
        result = np.empty((k, 1 + d), dtype=np.int64)
        result[:, 0], result[:, 1:] = counts.sum(axis=0), sums.sum(axis=0)[:, :d]
        return result

    def moved_costs(self, whole: Floats, which: Integers, new: Floats) -> Integers:
        """int64 (m,): the costs of one set (k, d) with centre which[i] replaced by new[i]."""
        state, shift = self._last("nearest", (whole,), lambda: self._nearest_two(whole))
        form = None if state is None else self._replaced(new, which, shift)
        if form is None:
            P = np.tile(whole, (len(which), 1, 1))
            P[np.arange(len(which)), which] = new
            return self.costs(P)
        w, start, replaced, place = form
        work = float(self.n_records) * len(which) * (4 + self.n_features / 8)
        n_threads = self.threads(work)
        out = np.zeros((n_threads, w.shape[0] * QUAD_SIZE), dtype=np.int64)
        buffer = aligned((n_threads, QUAD_SIZE + 1, self.tile_rows), np.int32)
        for part in self.slices(work):
            kernels.swaps(
                self.dense.as_pairs, part, state, w, start, replaced, self.power, buffer, out
            )
        return out.sum(axis=0)[place] + self._added_back(shift)

    def _nearest_two(self, whole: Floats) -> tuple[NDArray[np.int32] | None, int]:
        """Each record's two nearest centres, if distances fit in 32 bits, and their shift."""
        form, k = self._kernel_form(whole), len(whole)
        if form is None:
            return None, 0
        n_threads = self.threads(float(self.n_records) * k * self.n_features)
        w, start, shift = form
        state = np.empty((3, len(self.dense.panels) * PANEL_ROWS), dtype=np.int32)
        buffer = aligned((n_threads, QUAD_SIZE, self.tile_rows), np.int32)
        kernels.nearest_two(
            self.dense.as_pairs, tiles(self.runs, self.tile_rows), w, start, k, self.power, buffer,
            state, n_threads,
        )  # fmt: skip
        return state, shift

    def _replaced(
        self, new: Floats, which: Integers, shift: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Integers] | None:
        """New centres in quads, each quad replacing one centre, and where each new centre is."""
        order = np.argsort(which, kind="stable")
        rows: list[int] = []
        place = np.empty(len(which), dtype=np.int64)
        for index in np.unique(which):
            members = order[which[order] == index]
            place[members] = len(rows) + np.arange(len(members))
            rows += [*members, *[members[-1]] * (-len(members) % QUAD_SIZE)]
        form = self._kernel_form(new[rows], shift)
        if form is None:
            return None
        return form[0], form[1], which[rows][::QUAD_SIZE].astype(np.int32), place

    def norm_counts(self, whole: Floats, radii: Integers, norm: int) -> Integers:
        """int64 (m + 1,): records by the least radius that holds x - c, c the nearest of (k, d).

        Squares of l2 norms are compared with squares of radii, so that all is exact.
        """
        k, d = whole.shape
        work = float(self.n_records) * (k * (2 + d / 8) + 4 * d + len(radii))
        n_threads = self.threads(work)
        counts = np.zeros((n_threads, len(radii) + 1), dtype=np.int64)
        form, padded = self._kernel_form(whole), self._padded(whole)
        about = (padded.astype(np.int32), radii**norm, norm)
        if form is None:
            wide = aligned((n_threads, 2, self.tile_rows), np.float64)
            which = aligned((n_threads, self.tile_rows), np.int32)
            for part in self.slices(8 * work):
                kernels.norms_wide(
                    self.dense.panels, part, padded, self.power, *about, wide, which, counts
                )
        else:
            buffer = aligned((n_threads, 2, self.tile_rows), np.int32)
            for part in self.slices(work):
                kernels.norms(
                    self.dense.panels, part, form[0], form[1], self.power, *about, buffer, counts
                )
        return counts.sum(axis=0)

    def cost_steps(self, whole: Floats, starts: Integers, most: int, shift: int) -> Integers:
        """int64 (m,): the last set's cost, and what each set before costs more than the next.

        The centres of set i are the rows of (K, d) from starts[i] on. A record's costs, less their
        last `shift` bits, are cut at `most`, which is below 2^30. Its m numbers are then shrunk
        until their absolute values add up to at most `most`, and rounded towards zero. Distances
        are whole numbers below 2^53, so they are exact in double, and products are below 2^60.
        """
        total = np.zeros(len(starts), dtype=np.int64)
        metric = "sqeuclidean" if self.power == 2 else "cityblock"
        for block in self.dense.blocks(max(64, min(1 << 13, (1 << 24) // len(whole)))):
            away = scipy.spatial.distance.cdist(block.astype(np.float64), whole, metric)
            least = np.minimum.reduceat(away, starts, axis=1).astype(np.int64) >> shift
            costs = np.minimum(least, most)
            steps = np.concatenate([costs[:, -1:], costs[:, :-1] - costs[:, 1:]], axis=1)
            length = np.maximum(np.abs(steps).sum(axis=1, keepdims=True), most)
            total += (np.sign(steps) * (np.abs(steps) * most // np.maximum(length, 1))).sum(axis=0)
        return total

    def products(self, whole: Integers, shift: int, radius: int, norm: int) -> Integers:
        """int64 (d, d): the sum of v v', v the difference to one point (d,), clipped.

        Differences are divided by 2^shift, rounded towards zero, before they are clipped. Whole
        numbers below 2^53 are exact in double, and so are their sums in any order.
        """
        total = np.zeros((self.n_features, self.n_features), dtype=np.int64)
        for block in self.dense.blocks(1 << 14):
            away = block.astype(np.int64) - whole
            away = np.sign(away) * (np.abs(away) >> shift)
            v = clipped_rows(away, radius, norm).astype(np.float64)
            total += (v.T @ v).astype(np.int64)
        return total

    def deviations(self, whole: Integers, radius: int, norm: int) -> Integers:
        """int64 (d,): the sums of abs(v), v the difference to one point (d,), clipped."""
        total = np.zeros(self.n_features, dtype=np.int64)
        for block in self.dense.blocks(1 << 14):
            away = clipped_rows(block.astype(np.int64) - whole, radius, norm)
            total += np.abs(away).sum(axis=0)
        return total

    def framed_counts(
        self,
        origin: Integers,
        frame: Integers,
        reach: Integers,
        axes: NDArray[np.int32],
        codes: NDArray[np.uint64],
        shift: NDArray[np.uint64],
    ) -> Integers:
        """int64: as `cell_counts`, of a box about the origin of a frame."""
        key = (origin, frame, reach, axes)
        cells = self._stay("framed cells", key, lambda: np.sort(self.framed_cells(*key)))
        first = np.searchsorted(cells, codes << shift)
        return np.asarray(np.searchsorted(cells, (codes + np.uint64(1)) << shift) - first)

    def framed_cells(self, *frame: Any) -> NDArray[np.uint64]:
        """(n,) the cell of each record in a frame: origin, directions, reach and halved columns."""
        blocks = self.dense.blocks(1 << 14)
        found = [coded_rows(block.astype(np.int64), *frame) for block in blocks]
        return np.concatenate([np.empty(0, dtype=np.uint64), *found])

    def grid_counts(self, parts: Integers) -> Integers:
        """int64: the number of records in each cell of a grid with equal parts per column."""
        low, high = self.bounds
        total = np.zeros(int(np.prod(parts)), dtype=np.int64)
        stride = total.size // np.cumprod(parts)  # the last column varies fastest
        for block in self.dense.blocks(1 << 16):
            place = (block.astype(np.int64) - low) * parts // (high - low + 1)
            total += np.bincount(place @ stride, minlength=total.size)
        return total
