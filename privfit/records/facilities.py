"""Distances from records to public facilities: tables of clipped distances, and sums over them.

Records with few columns are kept, and their distances are computed when they are first needed.
Streamed records compute them again for each question, a strip of records at a time: for two columns
that takes as long as reading the distances, and no disk space. For other records only the distances
are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import facility as kernels
from privfit._kernels.records import LANE_WIDTH, PANEL_ROWS, QUAD_SIZE
from privfit.base import blas
from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array, Floats, Integers
from privfit.domains import Domain
from privfit.domains.frames import numbers_of
from privfit.records.candidates import lane_groups, quad_starts, quads, wrap16
from privfit.records.cells import CellRows
from privfit.records.fours import MOST_COLUMNS, UNLIKE, fours, packed_fours, sixteens
from privfit.records.packing import (
    MAX_RECORDS,
    DenseRecords,
    Run,
    SparseRecords,
    aligned,
    check_records,
    pack,
    repacked,
    tiles,
)
from privfit.records.rows import KernelCalls, Rows

Q = ParamSpec("Q")

BLOCK = 1 << 19  # distances of a user's own function that are computed at a time
# Distances that are made, looked at and forgotten: 0.6 ns each for two columns, but 0.9 with four
# times as many, which the cache does not hold, or with a sixteenth.
STRIP = 1 << 22
# Up to here records are kept, and their distances made when they are first needed: 'synopsis' needs
# none. A distance takes 0.4 (l1) to 1.5 ns (l2) of two columns, 3 to 35 ns of a hundred.
FEW_COLUMNS = 3
SHORT_REACH = 2**30  # of distances that are made from sums of 16 bits, in record units


# -------------------------------------------------------------------------------------- distances


@dataclass(frozen=True, eq=False)
class Ruler:
    """How l1 or l2 distances are stored: clipped to low..high record units, less low, in 2^shift.

    Parameters
    ----------
    places : (f, d)
        The facilities in record units.
    bits : 16 or 8
        Size of a stored distance.
    bounds : (d,), (d,)
        The smallest and the largest integer of each column, in record units.
    """

    places: Floats
    metric: str
    bits: int
    low: int
    high: int
    shift: int
    bounds: tuple[Integers, Integers]

    @property
    def has_cells(self) -> bool:
        """Whether records have few enough columns to be kept in addition to their distances."""
        return self.places.shape[1] <= FEW_COLUMNS

    def rounded(self, distance: Any) -> Any:
        """Distances in score units."""
        return (distance + (1 << self.shift >> 1)) >> self.shift

    def narrowed(self, low: int, high: int) -> Ruler:
        """Distances clipped further, to low..high in score units above the present low.

        The result is the same whether they are clipped before or after rounding: bounds are whole
        score units above low, from which distances are rounded.
        """
        first = self.low
        top = min(self.high, first + (high << self.shift))
        return replace(self, low=first + (low << self.shift), high=top)

    def table(self, records: DenseRecords | SparseRecords, calls: KernelCalls) -> Array:
        """(f, n padded): the distances of these records."""
        n = sum(run.count for run in records.runs)
        matrix = _empty_table(len(self.places), n, self.bits)
        work = float(n) * self.places.size
        if isinstance(records, SparseRecords):
            self._onehot_distances(records, work, calls, matrix)
        elif self.metric == "l1":
            self._l1_distances(records, work, calls, matrix)
        else:
            self._l2_distances(records, 4 * work, calls, matrix)
        return matrix

    def compares(self, domain: Domain) -> bool:
        """Whether facilities of zeros and ones are compared with records of the same by codes."""
        binary = (self.places == 0) | (self.places == 1 << domain.grid.a)
        few = self.places.shape[1] <= MOST_COLUMNS
        return bool(kernels.QUICK_CODES and few and binary.all())

    def code_table(self, codes: NDArray[np.uint8], n: int, one: int, calls: KernelCalls) -> Array:
        """(f, n padded): the distances of records of zeros and ones, from `packed_fours`."""
        places, matrix = fours(self.places == one), _empty_table(len(self.places), n, self.bits)
        stored, least = sixteens(self._kept(np.arange(self.places.shape[1] + 1), one))
        work = float(n) * len(places) * (1 + len(codes) / 8)
        for part in calls.steps(len(places), work, 64):
            kernels.code_distances(
                codes, places[part], UNLIKE, stored, least, matrix[part], calls.threads(work)
            )
        return matrix

    def _kept(self, differing: Integers, one: int) -> Integers:
        """What is kept of records that differ from a facility in so many columns, by 0 and one."""
        if self.metric == "l1":
            return self.rounded(np.clip(differing * one, self.low, self.high) - self.low)
        roots = np.clip(np.sqrt(differing * float(one) ** 2), self.low, self.high) - self.low
        return (roots / 2.0**self.shift + 0.5).astype(np.int64)

    def _onehot_distances(
        self, records: SparseRecords, work: float, calls: KernelCalls, matrix: Array
    ) -> None:
        """Distances of records of zeros and ones, by additions alone.

        l1(x - f) = sum of abs(f_j) + sum over the ones of abs(1 - f_j) - abs(f_j).
        """
        zero, one = np.abs(self.places), np.abs(records.one - self.places)
        weights = lane_groups(np.column_stack([one - zero, zero.sum(axis=1)]))
        buffer = aligned((calls.threads(work), PANEL_ROWS, LANE_WIDTH), np.int32)
        pieces = tiles(records.runs, 1024)
        for part in calls.steps(len(pieces), work):
            kernels.onehot_distances(
                records.rows, pieces[part], weights, self.low, self.high, self.shift, buffer, matrix
            )

    def _l1_distances(
        self, records: DenseRecords, work: float, calls: KernelCalls, matrix: Array
    ) -> None:
        low, high = self.bounds
        farthest = np.maximum(high - self.places, self.places - low).sum(axis=1).max()
        if max(farthest, self.high) < SHORT_REACH:
            self._short_distances(records, work, calls, matrix)
            return
        weights = quads(self.places, records.pairs)
        buffer = aligned((calls.threads(work), QUAD_SIZE, 128), np.int32)
        pieces = tiles(records.runs, 128)
        for part in calls.steps(len(pieces), work):
            kernels.dense_distances(
                records.as_pairs, pieces[part], weights, self.low, self.high, self.shift, buffer,
                matrix,
            )  # fmt: skip

    def _short_distances(
        self, records: DenseRecords, work: float, calls: KernelCalls, matrix: Array
    ) -> None:
        """The same by sums of 16 bits, over as many columns as are certain to fit.

        A facility outside the domain's box is moved to it: that changes its distances by the same
        amount for all records, which is added to `level`.
        """
        inside, pairs = np.clip(self.places, *self.bounds), records.pairs
        chunk = min(pairs, 65535 // max(1, int(np.max(self.bounds[1] - self.bounds[0]))))
        chunks = -(-pairs // chunk)
        sums = np.zeros((len(inside), 2 * chunks * chunk))
        sums[:, : inside.shape[1]] = inside
        sums = -sums.reshape(len(inside), chunks, chunk, 2).sum(axis=2) - 2**15
        start = quads(wrap16(sums).reshape(len(inside), -1), chunks)
        level = inside.sum(axis=1) + np.abs(self.places - inside).sum(axis=1) + 2**17 * chunks
        level += (1 << self.shift >> 1) - self.low
        rows = min(512, max(1, (1 << 15) // (4 * pairs * kernels.STRIP_ROWS)) * kernels.STRIP_ROWS)
        buffer, pieces = aligned((calls.threads(work), rows), np.int32), tiles(records.runs, rows)
        for part in calls.steps(len(pieces), work):
            kernels.short_distances(
                records.as_pairs, pieces[part], quads(inside, pairs), start, quad_starts(level),
                chunk, self.shift, self.rounded(self.high - self.low), buffer, matrix,
            )  # fmt: skip

    def _l2_distances(
        self, records: DenseRecords, work: float, calls: KernelCalls, matrix: Array
    ) -> None:
        """Whole squares below 2^53, a correctly rounded root."""
        places = np.zeros((len(self.places), 2 * records.pairs))
        places[:, : self.places.shape[1]] = self.places
        buffer = aligned((calls.threads(work), 128), np.float64)
        pieces = tiles(records.runs, 128)
        for part in calls.steps(len(pieces), work):
            kernels.root_distances(
                records.panels, pieces[part], places, self.low, self.high, 2.0**self.shift, buffer,
                matrix,
            )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OwnRuler:
    """How distances of a user's own function are stored: clipped, less clip[0], in `unit`."""

    facilities: Any
    metric: Callable[[Any, Any], ArrayLike]
    clip: tuple[float, float]
    unit: float
    bits: int

    def table(self, X: Any, n: int) -> Array:
        """(f, n padded): the distances of these records, a block of them at a time."""
        f = len(self.facilities)
        matrix = _empty_table(f, n, self.bits)
        step = max(1, BLOCK // f)
        for first in range(0, n, step):
            last = min(first + step, n)
            block = self._integers(X, first, last)
            for i in {first, last - 1} if last - first > 1 else ():
                if not np.array_equal(self._integers(X, i, i + 1)[0], block[i - first]):
                    raise DeclarationError(
                        "metric must treat each record by itself; a record by itself got another "
                        "distance than in a block. Round inside metric"
                    )
            matrix[:, first:last] = block.T
        return matrix

    def _integers(self, X: Any, first: int, last: int) -> Floats:
        """(rows, f): stored distances of some records."""
        (low, high), f = self.clip, len(self.facilities)
        rows = X.iloc[first:last] if hasattr(X, "iloc") else X[first:last]
        with blas.as_declared():
            values = np.asarray(self.metric(rows, self.facilities), dtype=np.float64)
        if values.shape != (last - first, f):
            raise DeclarationError(
                f"metric must return one row per record and {f} columns, one per facility; return "
                f"an "
                "array (rows, f)"
            )
        if np.isnan(values).any():
            raise DeclarationError(
                "metric returned NaN; return a number for every record and facility"
            )
        return np.asarray(np.rint((np.clip(values, low, high) - low) / self.unit))


def _empty_table(facilities: int, records: int, bits: int) -> Array:
    shape, kind = table_shape(facilities, records, bits)
    return aligned(shape, kind, zero=False)  # sums stop before the padding of a row


def table_shape(facilities: int, records: int, bits: int) -> tuple[tuple[int, int], Any]:
    """Rows of whole strips, an odd number of cache lines apart: even ones collide in the cache."""
    kind = np.dtype(np.uint16 if bits == 16 else np.uint8)
    strips = -(-records // kernels.STRIP_ROWS)
    lines = strips * kernels.STRIP_ROWS * kind.itemsize // 64
    return (facilities, (lines | 1) * 64 // kind.itemsize), kind


class Distances(Rows):
    """A table (f, n padded) of clipped distances in score units, and sums over its records."""

    def __init__(self, matrix: Array, n_records: int, n_threads: int | None = None) -> None:
        super().__init__((Run(0, n_records, 0),), 0, n_threads)
        self.matrix = matrix

    @property
    def n_facilities(self) -> int:
        """The number of facilities."""
        return len(self.matrix)

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes

    def joined(self, others: Sequence[Distances]) -> Distances:
        rows = [one.matrix[:, : one.n_records] for one in (self, *others)]
        total = sum(row.shape[1] for row in rows)
        matrix = _empty_table(self.n_facilities, total, 8 * self.matrix.itemsize)
        np.concatenate(rows, axis=1, out=matrix[:, :total])
        return Distances(matrix, total, self.n_threads)

    def narrowed(self, low: int, high: int) -> Distances:
        """The same distances clipped further, less low."""
        n, wide = self.n_records, self.matrix
        matrix = _empty_table(self.n_facilities, n, 8 * wide.itemsize)
        bounds = np.array([low, high]).astype(wide.dtype)
        for facility, row in enumerate(wide[:, :n]):
            matrix[facility, :n] = np.clip(row, *bounds) - bounds[0]
        return Distances(matrix, n, self.n_threads)

    def costs(self, P: Integers) -> Integers:
        """int64 (m,): the summed distances to each set of facilities (m, k)."""
        work = float(self.n_records) * P.size / 4
        n_threads, costs = self.threads(work), np.empty(len(P), dtype=np.int64)
        # Long pieces of rows are read faster; each thread has one at least.
        strips = -(-self.n_records // (n_threads * kernels.STRIP_ROWS))
        rows = kernels.STRIP_ROWS * min(max(strips, 8), 32)
        # A piece of rows and all sets may take a second: few sets at a time, then few pieces.
        for sets in self.steps(len(P), work, 64):
            out = np.zeros((n_threads, len(P[sets])), dtype=np.int64)
            for part in self.slices(work * len(P[sets]) / len(P), rows):
                kernels.least_sums(self.matrix, part, P[sets], out)
            costs[sets] = out.sum(axis=0)
        return costs

    # -------------------------------------------------------------------------- one member swapped

    def nearest_two(self, members: Integers) -> tuple[Array, Array]:
        """(2, n) distances to the nearest two members, and (n,) the nearest one's position."""

        def found() -> tuple[Array, Array]:
            n = self.n_records
            distances = np.empty((2, n), dtype=self.matrix.dtype)
            which = np.empty(n, dtype=np.int32)
            n_threads = self.threads(float(n) * len(members) * 4)
            kernels.nearest_two(self.matrix, members, distances, which, n_threads)
            return distances, which

        nearest: tuple[Array, Array] = self._last("nearest", (members,), found)
        return nearest

    def swapped(self, members: Integers, which: Integers, facilities: Integers) -> Integers:
        """int64 (m,): the costs with member which[i] replaced by facilities[i]."""
        nearest, order = self.nearest_two(members), np.argsort(which, kind="stable")
        work = float(self.n_records) * len(which) / 2
        n_threads = self.threads(work)
        out = np.zeros((n_threads, len(which)), dtype=np.int64)
        rows = 1024
        buffer = np.empty((n_threads, rows), dtype=self.matrix.dtype)
        for part in self.slices(work, rows):
            kernels.swap_sums(
                self.matrix, part, *nearest, which[order], facilities[order], buffer, out
            )
        result = np.empty(len(which), dtype=np.int64)
        result[order] = out.sum(axis=0)
        return result

    def all_swapped(self, members: Integers) -> Integers:
        """int64 (k, f): the costs with member i replaced by facility j, all in one pass."""
        nearest, k = self.nearest_two(members), len(members)
        work = float(self.n_records) * self.n_facilities
        buffer = aligned((self.threads(work), k + 1, kernels.TOGETHER), np.int32)
        out = np.empty((self.n_facilities, k), dtype=np.int64)
        for part in self.steps(self.n_facilities, work, 64):
            kernels.all_swap_sums(self.matrix[part], *nearest, buffer, out[part])
        return out.T

    def nearest_counts(self, members: Integers) -> Integers:
        """int64 (k,): the number of records nearest to each member, ties going to the first."""
        which = self.nearest_two(members)[1]
        return np.bincount(which, minlength=len(members)).astype(np.int64)

    # ---------------------------------------------------------------------------- one member added

    def _nearest(self, members: Integers) -> Array:
        """(n,): distances to the nearest member, the largest number if there is no member."""
        kind = self.matrix.dtype
        wanted: list[int] = members.tolist()
        known, nearest = self._taken("grown") or ([], None)
        if nearest is None or known != wanted[: len(known)]:
            known, nearest = [], np.full(self.n_records, np.iinfo(kind).max, dtype=kind)
        for facility in wanted[len(known) :]:
            nearest = np.minimum(nearest, self.matrix[facility, : self.n_records])
        self._put("grown", (), (wanted, nearest))
        return nearest

    def grown(self, members: Integers) -> Integers:
        """int64 (f,): the costs of the members with each facility added."""
        return self._lesser_sums(self._nearest(members))

    def _lesser_sums(self, nearest: Array) -> Integers:
        """int64 (f,): the sums over records of the lesser of a distance and `nearest`."""
        work = float(self.n_records) * self.n_facilities / 8
        out = np.empty(self.n_facilities, dtype=np.int64)
        for part in self.steps(self.n_facilities, work, 64):
            kernels.addition_sums(self.matrix[part], nearest, out[part], self.threads(work))
        return out

    def covered(self, members: Integers, radius: int) -> Integers:
        """int64 (f,): the records within the radius of each facility and of no member."""
        nearest = self._nearest(members)
        alone, kind = nearest > radius, nearest.dtype.type
        # min(v, radius + 1) - min(v, radius) is 1 for a distance v beyond the radius, else 0.
        beyond = self._lesser_sums(np.where(alone, kind(radius + 1), kind(0)))
        beyond -= self._lesser_sums(np.where(alone, kind(radius), kind(0)))
        return int(alone.sum()) - beyond

    # ---------------------------------------------------------------------------- single distances

    def nearest(self, members: Integers, rank: int) -> Integers:
        """(n,): each record's distance to the rank-th nearest of some facilities, from 0."""
        if rank == 0:
            least = self.matrix[members[0], : self.n_records].copy()
            for facility in members[1:]:
                np.minimum(least, self.matrix[facility, : self.n_records], out=least)
            return least.astype(np.int64)
        found = np.empty(self.n_records, dtype=np.int64)
        step = max(1, BLOCK // len(members))
        for first in range(0, self.n_records, step):
            part = slice(first, min(first + step, self.n_records))
            # A record's distances side by side: partitions along columns crawl.
            block = np.ascontiguousarray(self.matrix[members, part].T)
            found[part] = np.partition(block, rank, axis=1)[:, rank]
        return found

    def nearer(self, members: Integers, rank: int, levels: Integers) -> Integers:
        """int64: the number of records below each of these distances, by `nearest`."""
        values = np.sort(self.nearest(members, rank))
        return np.asarray(np.searchsorted(values, levels, side="left"), dtype=np.int64)


# ---------------------------------------------------------------------------------------- records


class FacilityRows(CellRows):
    """Records with few columns and how to measure them, or the distances of other records."""

    def __init__(
        self,
        source: DenseRecords | Distances,
        n_features: int,
        ruler: Ruler | None = None,
        domain: Domain | None = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(source.runs, n_features, n_threads)
        self._ruler, self._domain = ruler, domain
        self.dense = source if isinstance(source, DenseRecords) else None
        self._distances = source if isinstance(source, Distances) else None
        if domain is not None:
            self.bounds = domain.whole_bounds

    @classmethod
    def pack(
        cls,
        X: Any,
        y: None,
        *,
        domain: Domain,
        measure: Callable[[Domain], Ruler],
        n_threads: int | None = None,
    ) -> FacilityRows:
        """Check and pack records; how they are measured follows from the domain's columns."""
        X, domain = check_records(X, domain, "FacilityObjective")
        ruler = measure(domain)
        if not ruler.has_cells and ruler.compares(domain):
            (_, width), _ = table_shape(0, X.shape[0], 8)
            codes = packed_fours(X, domain, width)
            if codes is not None:
                calls, one = KernelCalls(n_threads), 1 << domain.grid.a
                table = Distances(ruler.code_table(codes, X.shape[0], one, calls), X.shape[0])
                return cls(table, X.shape[1], ruler, domain, n_threads)
        # Whether cells can be found must not depend on the records: few columns are always dense.
        layout = "dense" if ruler.has_cells or ruler.metric == "l2" else "auto"
        packers = KernelCalls(n_threads).packers(X)
        records = pack(X, domain, layout=layout, uniform=True, n_threads=packers)
        if isinstance(records, SparseRecords) and records.value.size:
            records = pack(X, domain, layout="dense", uniform=True, n_threads=packers)
        if ruler.has_cells and isinstance(records, DenseRecords):
            return cls(records, X.shape[1], ruler, domain, n_threads)
        table = Distances(ruler.table(records, KernelCalls(n_threads)), X.shape[0])
        return cls(table, X.shape[1], ruler, domain, n_threads)

    @classmethod
    def pack_own(
        cls, X: Any, y: None, *, ruler: OwnRuler, n_threads: int | None = None
    ) -> FacilityRows:
        """Measure records by a user-defined function; columns of a table are put side by side."""
        if isinstance(X, Mapping):
            X = numbers_of(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if not 0 < n <= MAX_RECORDS or len(ruler.facilities) == 0:
            raise InputError(
                "X and facilities must hold at least one record and one facility; pass non-empty "
                "ones"
            )
        return cls(Distances(ruler.table(X, n), n), 0, n_threads=n_threads)

    @property
    def kind(self) -> str:
        return "distances" if self.dense is None else "records"

    @property
    def nbytes(self) -> int:
        return self._source.nbytes

    @property
    def _source(self) -> DenseRecords | Distances:
        """What is kept of the records."""
        source = self._distances if self.dense is None else self.dense
        assert source is not None
        return source

    def joined(self, others: Sequence[FacilityRows]) -> FacilityRows:
        source: DenseRecords | Distances
        if self.dense is None:
            assert self._distances is not None
            source = self._distances.joined([one.distances() for one in others])
        else:
            everyone = [one.dense for one in (self, *others) if one.dense is not None]
            source = repacked([block for one in everyone for block in one.blocks(1 << 16)])
        return FacilityRows(source, self.n_features, self._ruler, self._domain, self.n_threads)

    def narrowed(self, low: int, high: int) -> FacilityRows:
        """The view where distances are clipped further, to low..high in score units."""
        rows = copy(self)
        if self._distances is not None:
            rows._distances = self._distances.narrowed(low, high)
        if self._ruler is not None:
            rows._ruler = self._ruler.narrowed(low, high)
        return rows

    # ----------------------------------------------------------------------------------- distances

    def distances(self) -> Distances:
        """The table of all distances, computed when it is first needed."""
        if self._distances is None:
            self._distances = Distances(self._measured(self.dense), self.n_records)
        self._distances.n_threads, self._distances.passing = self.n_threads, self.passing
        return self._distances

    def _measured(self, records: DenseRecords | None) -> Array:
        assert self._ruler is not None
        assert records is not None
        return self._ruler.table(records, self)

    def _strips(self) -> Iterator[Distances]:
        """The distances of a few records at a time.

        They are few enough to stay in the cache while they are used, and are then dropped.
        """
        assert self.dense is not None
        assert self._ruler is not None
        step = max(1, STRIP // (len(self._ruler.places) * PANEL_ROWS))
        for first in range(0, len(self.dense.panels), step):
            n = min(step * PANEL_ROWS, self.n_records - first * PANEL_ROWS)
            panels = self.dense.panels[first : first + step]
            strip = replace(self.dense, panels=panels, runs=(Run(0, n, 0),))
            yield Distances(self._measured(strip), n, self.n_threads)

    def _sum(
        self, question: Callable[Concatenate[Distances, Q], Integers],
        *args: Q.args, **named: Q.kwargs,
    ) -> Integers:  # fmt: skip
        """Answer from the table of all distances, or from strips if records are streamed."""
        if self._distances is not None or not self.passing:
            return question(self.distances(), *args, **named)
        first, *others = (question(strip, *args, **named) for strip in self._strips())
        return np.asarray(sum(others, first))

    # ----------------------------------------------------------------------------------- questions

    def costs(self, P: Integers) -> Integers:
        """int64 (m,): the summed distances to each set of facilities (m, k)."""
        return self._sum(Distances.costs, P)

    def swapped(self, members: Integers, which: Integers, facilities: Integers) -> Integers:
        """int64 (m,): the costs with member which[i] replaced by facilities[i]."""
        return self._sum(Distances.swapped, members, which, facilities)

    def all_swapped(self, members: Integers) -> Integers:
        """int64 (k, f): the costs with any member replaced by any facility."""
        return self._sum(Distances.all_swapped, members)

    def nearest_counts(self, members: Integers) -> Integers:
        """int64 (k,): the number of records nearest to each member."""
        return self._sum(Distances.nearest_counts, members)

    def grown(self, members: Integers) -> Integers:
        """int64 (f,): the costs of the members with each facility added."""
        return self._sum(Distances.grown, members)

    def covered(self, members: Integers, radius: int) -> Integers:
        """int64 (f,): the records within the radius of each facility and of no member."""
        return self._sum(Distances.covered, members, radius)

    def nearer(self, members: Integers, rank: int, levels: Integers) -> Integers:
        """int64: the number of records below each of these distances to one of the members."""
        return self._sum(Distances.nearer, members, rank, levels)
