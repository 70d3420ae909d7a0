"""Sets of public facilities: clipped distances of records to the nearest one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import facility as kernels
from privfit._kernels import threads
from privfit._kernels.linear import LANE_WIDTH, PANEL_ROWS, QUAD_SIZE
from privfit.base.typing import Floats, Integers
from privfit.domains import Box, Domain
from privfit.objectives.common import (
    Objective,
    all_same,
    check_adjacency,
    integer_range,
    lane_groups,
    quads,
    set_gaps,
)
from privfit.records.packing import (
    MAX_RECORDS,
    DenseRecords,
    Run,
    SparseRecords,
    aligned,
    check_records,
    pack,
    repacked,
)

Metric: TypeAlias = str | Callable[[Any, Any], ArrayLike]

BLOCK = 1 << 19  # distances of a user's own function that are computed at a time
# Distances that are made, looked at and forgotten: 0.6 ns each for two columns, but 0.9 with four
# times as many, which the cache does not hold, or with a sixteenth.
STRIP = 1 << 22
FEW_MOVES = 256  # up to here, ranges are computed over all pairs of moves
FEW_SETS = 4  # whose gaps to the others are computed first
# Up to here records are kept, and their distances made when they are first needed: 'synopsis' needs
# none. A distance takes 0.4 (l1) to 1.5 ns (l2) of two columns, 3 to 35 ns of a hundred.
FEW_COLUMNS = 3


class FacilityObjective(Objective):
    """Minus the clipped distance of records to the nearest facility of a public set.

    Candidates are int (m, k): indices into the facilities. Distances are computed once, clipped to
    [lo, hi], rounded to one or two bytes and kept by facility; `lo` itself is left out of scores,
    since it is the same for all.

    Parameters
    ----------
    X : array or CSR/CSC matrix
        Private records.
    facilities : (f, d) array
        Public places; for a metric of your own, any sequence that it understands.
    clip : (lo, hi)
        Public bounds of a distance.
    domain : Domain, optional
        The declared domain of a record. By default the box that the facilities span, widened to
        eighths of its scale; farther records are clipped to it, which shifts their l1 distances to
        all facilities alike. A metric of your own needs none.
    bits : 16 or 8
        Size of a stored distance.
    metric : 'l1', 'l2' or callable (records, facilities) -> (rows, f)
        A function of your own must treat each record by itself, as is checked on single records of
        each block. Its values are clipped and rounded by us, so that sensitivity does not rest on
        it, and the range is hi - lo: nothing is known about how facilities lie to each other.

    Notes
    -----
    **No sum wraps.** A stored distance is below 2^16, so a score over 2^32 records is below 2^48,
    and a count at most 2^32, whatever the neighbour relation.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import FacilityObjective
    >>> homes, places = np.array([[0.0], [1.0]]), np.array([[0.0], [0.5], [1.0]])
    >>> objective = FacilityObjective(homes, places, clip=(0, 1))
    >>> scores = objective.scores(np.array([[0, 2], [1, 2]]))  # two sets of two places
    >>> bool(scores[0] > scores[1])
    True
    """

    _records: DenseRecords | None

    def __init__(
        self,
        X: Any,
        facilities: Any,
        clip: tuple[float, float],
        domain: Domain | None = None,
        n_threads: int | None = None,
        *,
        bits: int = 16,
        metric: Metric = "l1",
    ) -> None:
        if bits not in (8, 16):
            raise ValueError(f"bits ({bits!r}) must be 16 or 8; pass one of them")
        if not callable(metric) and metric not in ("l1", "l2"):
            raise ValueError(
                f"metric ({metric!r}) must be 'l1', 'l2' or a function; pass metric(records, "
                "facilities) -> array (rows, f)"
            )
        low, high = _check_clip(clip)
        threads.resolve(n_threads)
        self.clip, self.bits, self.metric = (low, high), bits, metric
        self._n_threads, self._records = n_threads, None
        if callable(metric):
            self._load(X, None)
            self._measure_clip(facilities)
            self._fill_own(X, facilities, metric)
        else:
            places = _check_places(facilities)
            X = self._load(X, domain or spanned_box(places))
            self._measure_places(places)
            self._fill(X)

    @classmethod
    def of_distances(
        cls,
        distances: ArrayLike,
        clip: tuple[float, float],
        n_threads: int | None = None,
        *,
        bits: int = 16,
    ) -> FacilityObjective:
        """The same from ready distances (n, f): row r from record r and public facts alone."""
        table = np.asarray(distances)
        if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "fiub":
            raise ValueError(
                f"distances ({table.ndim} dimensions, dtype {table.dtype}) must be a non-empty "
                "table of numbers; pass distances (n, f)"
            )

        def as_given(rows: Any, _: Any) -> Any:
            return rows

        return cls(table, range(table.shape[1]), clip, None, n_threads, bits=bits, metric=as_given)

    # ----------------------------------------------------------------------------------- distances

    def _load(self, X: Any, domain: Domain | None) -> Any:
        """The records, checked; their number and their domain are kept."""
        self.domain: Domain | None = None
        if domain is not None:
            X, self.domain = check_records(X, domain, "FacilityObjective")
        self.n_records = X.shape[0] if hasattr(X, "shape") else len(X)
        return X

    def _measure_places(self, places: Floats) -> None:
        """Units and bounds of l1 or l2 distances: coordinates are on the domain's grid."""
        assert self.domain is not None
        domain, record_unit = self.domain, self.record_unit
        if domain.width != places.shape[1]:
            raise ValueError(
                f"X has {domain.width} columns but facilities {places.shape[1]}; pass equal columns"
            )
        self.n_features, self.n_facilities = domain.width, len(places)
        self._places: Floats | None = np.rint(places / record_unit)
        # No distance exceeds the widest; a clip beyond it is no clip.
        reach = np.maximum(np.abs(domain.low), np.abs(domain.high)) / record_unit
        sides = np.abs(self._places).max(axis=0) + reach
        widest = float(sides.sum() if self.metric == "l1" else np.ceil(np.sqrt((sides**2).sum())))
        if sides.max() > 32767 or widest >= 2.0**31 - 1:
            raise ValueError(
                "facilities lie too far outside the domain for exact distances; pass a domain that "
                "contains them"
            )
        low, high = self.clip
        self._low = round(min(low / record_unit, widest))
        self._high = round(min(high / record_unit, widest))
        self._shift = 0
        while self._rounded(self._high - self._low) >= 1 << self.bits:
            self._shift += 1
        self.largest: int = self._rounded(self._high - self._low)
        self.unit = record_unit * 2.0**self._shift

    def _rounded(self, distance: int) -> int:
        """A distance in score units."""
        return (distance + (1 << self._shift >> 1)) >> self._shift

    def _empty_matrix(self) -> NDArray[Any]:
        shape, kind = _matrix_shape(self.n_facilities, self.n_records, self.bits)
        return aligned(shape, kind, zero=False)  # sums stop before the padding of a row

    def _fill(self, X: Any) -> None:
        """Keep records of few columns; of others, keep their distances alone."""
        assert self.domain is not None
        # Whether cells can be found must not depend on the records: few columns are always dense.
        layout = "dense" if self.has_cells or self.metric == "l2" else "auto"
        records = pack(X, self.domain, layout=layout, uniform=True)
        if isinstance(records, SparseRecords) and records.value.size:
            records = pack(X, self.domain, layout="dense", uniform=True)
        self._runs = records.runs
        if self.has_cells:
            assert isinstance(records, DenseRecords)
            self._records = records
        else:
            self._matrix = self._distances(records)

    @cached_property
    def _matrix(self) -> NDArray[Any]:
        """(f, n padded): clipped distances in score units."""
        return self._distances(self._kept)

    @property
    def _kept(self) -> DenseRecords:
        assert self._records is not None
        return self._records

    def _distances(self, records: DenseRecords | SparseRecords) -> NDArray[Any]:
        matrix = self._empty_matrix()
        if isinstance(records, SparseRecords):
            self._onehot_distances(records, matrix)
        elif self.metric == "l1":
            self._l1_distances(records, matrix)
        else:
            self._l2_distances(records, matrix)
        return matrix

    def _onehot_distances(self, records: SparseRecords, matrix: NDArray[Any]) -> None:
        """Records of zeros and ones: additions alone.

        l1(x - f) = sum of abs(f_j) + sum over the ones of abs(1 - f_j) - abs(f_j).
        """
        assert self._places is not None
        work = float(self.n_records) * self._places.size
        zero, one = np.abs(self._places), np.abs(records.one - self._places)
        weights = lane_groups(np.column_stack([one - zero, zero.sum(axis=1)]))
        buffer = aligned((self._threads(work), PANEL_ROWS, LANE_WIDTH), np.int32)
        for part in self._slices(work, 1024):
            kernels.onehot_distances(
                records.rows, part, weights, self._low, self._high, self._shift, buffer, matrix
            )

    def _l1_distances(self, records: DenseRecords, matrix: NDArray[Any]) -> None:
        assert self._places is not None
        work = float(self.n_records) * self._places.size
        weights = quads(self._places, records.pairs)
        buffer = aligned((self._threads(work), QUAD_SIZE, 128), np.int32)
        for part in self._slices(work, 128):
            kernels.dense_distances(
                records.as_pairs, part, weights, self._low, self._high, self._shift, buffer, matrix
            )

    def _l2_distances(self, records: DenseRecords, matrix: NDArray[Any]) -> None:
        """Whole squares below 2^53, a correctly rounded root."""
        assert self._places is not None
        places = np.zeros((self.n_facilities, 2 * records.pairs))
        places[:, : self._places.shape[1]] = self._places
        work = 4.0 * self.n_records * places.size
        buffer = aligned((self._threads(work), 128), np.float64)
        for part in self._slices(work, 128):
            kernels.root_distances(
                records.panels, part, places, self._low, self._high, 2.0**self._shift, buffer,
                matrix,
            )  # fmt: skip

    @property
    def has_cells(self) -> bool:
        """Whether records are kept beside their distances, so that `cells` can find them."""
        return self._places is not None and self._places.shape[1] <= FEW_COLUMNS

    @cached_property
    def bounds(self) -> tuple[Integers, Integers]:
        """(d,) the least and the largest integer of each column, in record units."""
        assert self.domain is not None
        return self.domain.whole_bounds

    @property
    def record_unit(self) -> float:
        """What one unit of a coordinate is worth."""
        assert self.domain is not None
        return float(self.domain.record_units(uniform=True)[0])

    def check_cells(self) -> None:
        """Refuse where `cells` would: known from the metric and the number of columns alone."""
        if not self.has_cells:
            raise ValueError(
                f"cells are found for l1 and l2 distances of at most {FEW_COLUMNS} columns; use a "
                "solver that needs distances alone"
            )

    def cells(self, axes: ArrayLike) -> NDArray[np.uint64]:
        """(n,) the cell of each record after these halvings of `bounds`, one bit each."""
        self.check_cells()
        return self._cells(self._kept, self.bounds, axes)

    def places(self) -> Floats:
        """(f, d): the public facilities on the grid of the records."""
        assert self._places is not None
        return self._places * self.record_unit

    def clipped(self, points: Floats) -> Floats:
        """(m, f): clipped distances of public points to the facilities, less lo, as floats."""
        return np.asarray(np.clip(self._measured(points), *self.clip) - self.clip[0])

    def _measured(self, points: Floats) -> Floats:
        """(m, f): distances of public points to the facilities, as they are."""
        name = "cityblock" if self.metric == "l1" else "euclidean"
        return np.asarray(scipy.spatial.distance.cdist(points, self.places(), name))

    def between(self, members: Integers) -> Floats:
        """(k, f): distances between facilities, at most hi; unknown ones count as hi.

        They are not raised to lo, unlike those of records: others may be nearer than lo to a
        facility, and yet it serves the records that are nearest to it best.
        """
        if self._places is not None:
            return np.minimum(self._measured(self.places()[members]), self.clip[1])
        found = np.full((len(members), self.n_facilities), self.clip[1])
        found[np.arange(len(members)), members] = 0.0
        return found

    def _measure_clip(self, facilities: Any) -> None:
        """Units and bounds of a user's distances."""
        self.n_facilities = len(facilities)
        if not 0 < self.n_records <= MAX_RECORDS or self.n_facilities == 0:
            raise ValueError(
                "X and facilities must hold at least one record and one facility; pass non-empty "
                "ones"
            )
        self._places, self._shift = None, 0
        low, high = self.clip
        self.unit = 2.0 ** (math.frexp(high - low)[1] - self.bits)
        if round((high - low) / self.unit) >= 1 << self.bits:
            self.unit *= 2
        self.largest = round((high - low) / self.unit)

    def _fill_own(self, records: Any, facilities: Any, metric: Callable[..., Any]) -> None:
        """Fill the matrix with a user's distances, a block of records at a time."""
        low, high = self.clip
        self._runs = (Run(0, self.n_records, 0),)

        def integers(first: int, last: int) -> Floats:
            rows = records.iloc[first:last] if hasattr(records, "iloc") else records[first:last]
            values = np.asarray(metric(rows, facilities), dtype=np.float64)
            if values.shape != (last - first, self.n_facilities):
                raise ValueError(
                    f"metric must return one row a record and {self.n_facilities} columns, one a "
                    "facility; return an array (rows, f)"
                )
            if np.isnan(values).any():
                raise ValueError(
                    "metric returned NaN; return a number for every record and facility"
                )
            return np.asarray(np.rint((np.clip(values, low, high) - low) / self.unit))

        self._matrix = self._empty_matrix()
        step = max(1, BLOCK // self.n_facilities)
        for first in range(0, self.n_records, step):
            last = min(first + step, self.n_records)
            block = integers(first, last)
            for i in {first, last - 1} if last - first > 1 else ():
                if not np.array_equal(integers(i, i + 1)[0], block[i - first]):
                    raise ValueError(
                        "metric must treat each record by itself; it gave another distance to a "
                        "record that stood alone. Round inside metric"
                    )
            self._matrix[:, first:last] = block.T

    # ---------------------------------------------------------------------------- scores and ranges

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
        for part in self._slices(work, 2048):
            kernels.least_sums(self._matrix, part, P, out)
        return -out.sum(axis=0)

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._candidates(P)), dtype=np.int64)

    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        At most hi - lo for one record, and at most how far a facility of one set can be from the
        nearest of the other: by the triangle inequality in l1 and l2.
        """
        check_adjacency(adjacency)
        P = np.sort(self._candidates(P), axis=1)
        if all_same(P):
            return 0
        if self._places is None:
            return self.spread(P, adjacency)
        # A few of the pairs often show that no bound but hi - lo holds.
        for C in P[:FEW_SETS]:
            apart = self._apart(C, P.ravel()).reshape(-1, *P.shape)
            there, back = apart.min(axis=0).max(axis=1), apart.min(axis=2).max(axis=0)
            bound = there + back if adjacency == "replace" else np.maximum(there, back)
            if self._in_units(float(bound.max()), adjacency) == self.spread(P, adjacency):
                return self.spread(P, adjacency)
        gaps = set_gaps(self._places[P], np.zeros(P.shape), str(self.metric), self)
        bound = gaps + gaps.T if adjacency == "replace" else gaps
        return self._in_units(float(bound.max()), adjacency)

    def _in_units(self, bound: float, adjacency: str) -> int:
        """A bound in record units as a range of scores."""
        sides = 2 if adjacency == "replace" else 1
        # Distances round to units of 2^shift: two roundings of a record differ by at most one unit,
        # which also pays for the errors of a root. No stored distance exceeds the rounded hi - lo.
        exact = self.metric == "l1"
        slack = sides if self._shift or not exact else 0
        found = integer_range(bound, 2.0**self._shift, slack, exact=exact)
        return min(found, sides * self.largest)

    def _apart(self, members: Integers, others: Integers) -> Floats:
        """(members, others): distances between facilities, in record units."""
        assert self._places is not None
        name = "cityblock" if self.metric == "l1" else "euclidean"
        return np.asarray(
            scipy.spatial.distance.cdist(self._places[members], self._places[others], name)
        )

    def spread(self, P: ArrayLike, adjacency: str) -> int:
        """A bound on `range` for any sets: hi - lo, twice that under replace."""
        check_adjacency(adjacency)
        return self.largest * (2 if adjacency == "replace" else 1)

    def at(self, members: ArrayLike) -> FacilityMoves:
        """A view around one set that scores replacements of one facility incrementally."""
        return FacilityMoves(self, members)

    def growth(self, members: Sequence[int] = ()) -> FacilityGrowth:
        """A view of a growing set, empty at first, that scores all additions of one facility."""
        view = self._empty_growth()
        for member in members:
            view.add(member)
        return view

    def _empty_growth(self) -> FacilityGrowth:
        return FacilityGrowth(self)

    def nearest(self, members: Integers, rank: int) -> Integers:
        """(n,): each record's distance, less lo, to the rank-th nearest of some facilities.

        Ranks count from 0. In score units; private.
        """
        if rank == 0:
            least = self._matrix[members[0], : self.n_records].copy()
            for facility in members[1:]:
                np.minimum(least, self._matrix[facility, : self.n_records], out=least)
            return least.astype(np.int64)
        found = np.empty(self.n_records, dtype=np.int64)
        step = max(1, BLOCK // len(members))
        for first in range(0, self.n_records, step):
            part = slice(first, min(first + step, self.n_records))
            # A record's distances side by side: partitions along columns crawl.
            block = np.ascontiguousarray(self._matrix[members, part].T)
            found[part] = np.partition(block, rank, axis=1)[:, rank]
        return found

    def nearer(self, members: Integers, rank: int, levels: Integers) -> Integers:
        """int64: how many records have less than each of these distances by `nearest`; private."""
        values = np.sort(self.nearest(members, rank))
        return np.asarray(np.searchsorted(values, levels, side="left"), dtype=np.int64)

    def narrowed(self, low: int, high: int) -> FacilityObjective:
        """The same records with stored distances clipped further, to low..high in score units.

        A record's integers still depend on that record and the facility alone, and the range is at
        most high - low for one record.
        """
        if not 0 <= low < high <= self.largest:
            raise ValueError(
                f"low ({low}) and high ({high}) must rise within 0..{self.largest}; pass bounds "
                "in score units above lo"
            )
        narrow = copy.copy(self)
        narrow.clip = (self.clip[0] + low * self.unit, self.clip[0] + high * self.unit)
        narrow.largest = high - low
        narrow._narrow(low, high)
        return narrow

    def _narrow(self, low: int, high: int) -> None:
        """Clip the table further; one that is not made yet is made so.

        Both are the same: bounds are whole score units above lo, from where distances are rounded.
        """
        if "_matrix" not in self.__dict__:
            first = self._low
            self._low = first + (low << self._shift)
            self._high = min(self._high, first + (high << self._shift))
            return
        wide, self._matrix = self._matrix, self._empty_matrix()
        bounds = np.array([low, high]).astype(wide.dtype)
        for facility, row in enumerate(wide[:, : self.n_records]):
            self._matrix[facility, : self.n_records] = np.clip(row, *bounds) - bounds[0]

    # ---------------------------------------------------------------------- fewer records, and more

    @property
    def layout(self) -> str:
        """What is kept of the records."""
        return "distances" if self._records is None else "records"

    def joined(self, others: Sequence[FacilityObjective]) -> FacilityObjective:
        """One objective over the records of all, which must be alike in all else."""
        result: FacilityObjective = self._emptied(others)
        result._runs = (Run(0, result.n_records, 0),)
        everyone = (self, *others)
        if self._records is not None:
            blocks = [block for one in everyone for block in one._kept.blocks(1 << 16)]
            result._records = repacked(blocks)
        else:
            rows = [one._matrix[:, : one.n_records] for one in everyone]
            result._matrix = result._empty_matrix()
            np.concatenate(rows, axis=1, out=result._matrix[:, : result.n_records])
        return result

    def strips(self) -> Iterator[FacilityObjective]:
        """The same records a few at a time, where their distances are not made yet.

        Few enough that these stay in the cache while they are looked at, and are then forgotten.
        """
        if "_matrix" in self.__dict__:
            yield self
            return
        step = max(1, STRIP // (self.n_facilities * PANEL_ROWS))
        records = self._kept
        for first in range(0, len(records.panels), step):
            strip: FacilityObjective = self._emptied([])
            strip.n_records = min(step * PANEL_ROWS, self.n_records - first * PANEL_ROWS)
            strip._runs = (Run(0, strip.n_records, 0),)
            panels = records.panels[first : first + step]
            strip._records = replace(records, panels=panels, runs=strip._runs)
            yield strip

    def _groups(self, work: float) -> Iterator[slice]:
        """All facilities, in parts of bounded work; between parts Python sees Ctrl-C."""
        step = max(64, int(self.n_facilities * self._slice_work / max(work, 1.0)))
        for first in range(0, self.n_facilities, step):
            yield slice(first, min(first + step, self.n_facilities))


def _matrix_shape(facilities: int, records: int, bits: int) -> tuple[tuple[int, int], Any]:
    """Rows of whole strips, an odd number of cache lines apart: even ones collide in the cache."""
    kind = np.dtype(np.uint16 if bits == 16 else np.uint8)
    strips = -(-records // kernels.STRIP_ROWS)
    lines = strips * kernels.STRIP_ROWS * kind.itemsize // 64
    return (facilities, (lines | 1) * 64 // kind.itemsize), kind


def _check_places(facilities: ArrayLike) -> Floats:
    places = np.asarray(facilities, dtype=np.float64)
    if places.ndim != 2 or places.size == 0 or not np.isfinite(places).all():
        raise ValueError(
            f"facilities (shape {places.shape}) must be a non-empty, finite array; pass places "
            "(f, d)"
        )
    return places


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


def spanned_box(places: Floats) -> Box:
    """The facilities' bounding box, widened to eighths of the power of two that covers it."""
    step = 2.0 ** (math.frexp(max(float(np.abs(places).max()), 1e-300))[1] - 3)
    return Box(
        np.floor(places.min(axis=0) / step) * step, np.ceil(places.max(axis=0) / step) * step
    )


class FacilityMoves:
    """The sets that differ from a parent in one facility; two rows are read instead of k."""

    def __init__(self, objective: FacilityObjective, members: ArrayLike) -> None:
        self._objective = objective
        self._members = objective._candidates(np.asarray(members)[None])[0]
        self._load()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    @property
    def members(self) -> Integers:
        """The parent."""
        return self._members.copy()

    w = model = members  # as searches call it

    def _load(self) -> None:
        objective = self._objective
        n = objective.n_records
        self._distances = np.empty((2, n), dtype=objective._matrix.dtype)
        self._which = np.empty(n, dtype=np.int32)
        kernels.nearest_two(
            objective._matrix, self._members, self._distances, self._which,
            objective._threads(float(n) * len(self._members) * 4),
        )  # fmt: skip

    def _moves(self, which: ArrayLike, facilities: ArrayLike) -> tuple[Integers, Integers]:
        which, facilities = np.atleast_1d(np.asarray(which)), np.atleast_1d(np.asarray(facilities))
        k = len(self._members)
        if which.ndim != 1 or which.shape != facilities.shape:
            raise ValueError(
                f"which (shape {which.shape}) and facilities (shape {facilities.shape}) must be "
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
        which, facilities = self._moves(which, facilities)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        if which.size > 2 * self._objective.n_facilities:  # one pass serves all swaps
            return self.all_scores()[which, facilities]
        return self._scores(which, facilities)

    def _scores(self, which: Integers, facilities: Integers) -> Integers:
        objective = self._objective
        order = np.argsort(which, kind="stable")
        work = float(objective.n_records) * len(which) / 2
        n_threads = objective._threads(work)
        out = np.zeros((n_threads, len(which)), dtype=np.int64)
        rows = 1024
        buffer = np.empty((n_threads, rows), dtype=objective._matrix.dtype)
        for part in objective._slices(work, rows):
            kernels.swap_sums(
                objective._matrix, part, self._distances, self._which, which[order],
                facilities[order], buffer, out,
            )  # fmt: skip
        result = np.empty(len(which), dtype=np.int64)
        result[order] = -out.sum(axis=0)
        return result

    def all_scores(self) -> Integers:
        """int64 (k, f): the scores with member i replaced by facility j, all in one pass."""
        objective, k = self._objective, len(self._members)
        work = float(objective.n_records) * objective.n_facilities
        buffer = aligned((objective._threads(work), k + 1, kernels.TOGETHER), np.int32)
        out = np.empty((objective.n_facilities, k), dtype=np.int64)
        for part in objective._groups(work):
            kernels.all_swap_sums(
                objective._matrix[part], self._distances, self._which, buffer, out[part]
            )
        return -out.T

    def prior(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._moves(which, facilities)[0]), dtype=np.int64)

    def range(self, which: ArrayLike, facilities: ArrayLike, adjacency: str) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        Of many moves not all pairs are compared. Two sets that differ from the parent in one member
        each differ for a record by at most how far a newcomer, or the member that left, is from
        the nearest of those that stayed: at most its second nearest in the parent.
        """
        check_adjacency(adjacency)
        objective = self._objective
        which, facilities = self._moves(which, facilities)
        if len(which) <= FEW_MOVES:
            return objective.range(self.candidates(which, facilities), adjacency)
        if objective._places is None or len(self._members) == 1:
            return objective.spread(self._members[None], adjacency)
        met = np.union1d(facilities, self._members)
        second = np.partition(objective._apart(self._members, met), 1, axis=0)[1]
        sides = 2 if adjacency == "replace" else 1
        return objective._in_units(sides * float(second.max()), adjacency)

    def step(self, which: int, facility: int) -> None:
        """Replace one facility of the parent."""
        self._members = self.candidates([which], [facility])[0]
        self._load()


class FacilityGrowth:
    """A set that grows by one facility at a time; all additions are scored in one pass."""

    def __init__(self, objective: FacilityObjective) -> None:
        self._objective = objective
        self._members: list[int] = []
        self._load()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    def _load(self) -> None:
        kind = self._objective._matrix.dtype
        self._nearest = np.full(self._objective.n_records, np.iinfo(kind).max, dtype=kind)

    @property
    def members(self) -> Integers:
        """The set so far."""
        return np.array(self._members, dtype=np.int64)

    def scores(self) -> Integers:
        """int64 (f,): the scores of the set with each facility added."""
        return -self._sums(self._nearest)

    def _sums(self, nearest: NDArray[Any]) -> Integers:
        """int64 (f,): the sums over records of the lesser of a distance and `nearest`."""
        objective = self._objective
        work = float(objective.n_records) * objective.n_facilities / 8
        out = np.empty(objective.n_facilities, dtype=np.int64)
        for part in objective._groups(work):
            kernels.addition_sums(
                objective._matrix[part], nearest, out[part], objective._threads(work)
            )
        return out

    def range(self, adjacency: str) -> int:
        """The range of these scores between neighbours, in score units, rounded up.

        With f or g added to a set C, a record's costs differ by at most the distance of g from the
        nearest of C and f; hence by the largest distance of a facility from C, or under replace,
        where two records do so in opposite directions, by the two largest together. Never by more
        than hi - lo for a record.
        """
        check_adjacency(adjacency)
        objective = self._objective
        if objective.n_facilities == 1:
            return 0
        if objective._places is None:
            return objective.spread(self.members, adjacency)
        sides = 2 if adjacency == "replace" else 1
        if self._members:
            gaps = objective._apart(self.members, np.arange(objective.n_facilities)).min(axis=0)
            return objective._in_units(float(np.sort(gaps)[-sides:].sum()), adjacency)
        width = np.ptp(objective._places, axis=0)  # no two facilities are farther apart
        apart = width.sum() if objective.metric == "l1" else math.sqrt((width**2).sum())
        return objective._in_units(sides * float(apart), adjacency)

    def covered(self, radius: int) -> Integers:
        """int64 (f,): how many records without a member within the radius each would have within.

        The radius is in score units, above lo. One record changes one count by at most 1, in one
        direction for all facilities.
        """
        farthest = max(self._objective.largest - 1, 0)
        if not 0 <= radius <= farthest:
            raise ValueError(
                f"radius ({radius}) must lie in 0..{farthest}; pass a distance below hi in score "
                "units"
            )
        return self._covered(radius)

    def _covered(self, radius: int) -> Integers:
        alone = self._nearest > radius
        kind = self._nearest.dtype.type
        # min(v, radius + 1) - min(v, radius) is 1 for a distance v beyond the radius, else 0.
        beyond = self._sums(np.where(alone, kind(radius + 1), kind(0)))
        beyond -= self._sums(np.where(alone, kind(radius), kind(0)))
        return int(alone.sum()) - beyond

    def add(self, facility: int) -> None:
        """Let a facility join."""
        index = int(self._objective._candidates([[facility]])[0, 0])
        self._join(index)
        self._members.append(index)

    def _join(self, facility: int) -> None:
        row = self._objective._matrix[facility, : self._objective.n_records]
        self._nearest = np.minimum(self._nearest, row)

    def counts(self) -> Integers:
        """int64 (k,): how many records are nearest to each member, ties to the first."""
        view = self._objective.at(self._members)
        return np.bincount(view._which, minlength=len(self._members)).astype(np.int64)
