"""Sets of public facilities: clipped distances of records to the nearest one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import facility as kernels
from privfit._kernels import threads
from privfit._kernels.linear import LANE_WIDTH, PANEL_ROWS, QUAD_SIZE
from privfit.domains import Box, Domain
from privfit.objectives.common import (
    Floats,
    Integers,
    Objective,
    all_same,
    check_adjacency,
    integer_range,
    lane_groups,
    quads,
    set_gaps,
)
from privfit.packing import SparseRecords, aligned, check_records, pack


class FacilityObjective(Objective):
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
                f"X has {X.shape[1]} columns but facilities {places.shape[1]}; pass equal columns"
            )
        self.domain, self.clip, self.bits = domain, (low, high), bits
        self.n_records, self.n_facilities = X.shape[0], len(places)
        self._n_threads = n_threads
        record_unit = float(domain.record_units(uniform=True)[0])
        self._places = np.rint(places / record_unit)
        # No distance exceeds the widest; a clip beyond it is no clip.
        reach = np.maximum(np.abs(domain.low), np.abs(domain.high)) / record_unit
        widest = np.abs(self._places).max(axis=0) + reach
        if widest.max() > 32767 or widest.sum() >= 2.0**31 - 1:
            raise ValueError(
                "facilities lie too far outside the domain for exact distances; pass a domain that "
                "contains them"
            )
        self._low = round(min(low / record_unit, widest.sum()))
        self._high = round(min(high / record_unit, widest.sum()))
        self._shift = 0
        while self._largest >= 1 << bits:
            self._shift += 1
        self.unit = record_unit * 2.0**self._shift
        self._matrix = self._distances(X, domain)

    @property
    def _largest(self) -> int:
        """The largest stored distance: hi - lo in score units, rounded."""
        return (self._high - self._low + (1 << self._shift >> 1)) >> self._shift

    def _distances(self, X: Any, domain: Domain) -> NDArray[Any]:
        """(f, n padded): clipped distances in score units."""
        places = self._places
        records = pack(X, domain, uniform=True)
        onehot = isinstance(records, SparseRecords) and records.value.size == 0
        if not onehot and isinstance(records, SparseRecords):
            records = pack(X, domain, layout="dense", uniform=True)
        self._runs = records.runs
        shape, kind = _matrix_shape(self.n_facilities, self.n_records, self.bits)
        matrix = aligned(shape, kind, zero=False)  # sums stop before the padding of a row
        work = float(self.n_records) * places.size
        n_threads = self._threads(work)
        bounds = (self._low, self._high, self._shift)
        if isinstance(records, SparseRecords):
            # Records of zeros and ones: l1(x - f) = sum of abs(f_j) + sum over the ones of
            # abs(1 - f_j) - abs(f_j), additions alone.
            zero, one = np.abs(places), np.abs((1 << domain.grid.a) - places)
            weights = lane_groups(np.column_stack([one - zero, zero.sum(axis=1)]))
            buffer = aligned((n_threads, PANEL_ROWS, LANE_WIDTH), np.int32)
            for part in self._slices(work, 1024):
                kernels.onehot_distances(records.rows, part, weights, *bounds, buffer, matrix)
        else:
            weights = quads(places, records.pairs)
            buffer = aligned((n_threads, QUAD_SIZE, 128), np.int32)
            for part in self._slices(work, 128):
                kernels.dense_distances(records.as_pairs, part, weights, *bounds, buffer, matrix)
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
        for part in self._slices(work, 2048):
            kernels.least_sums(self._matrix, part, P, out)
        return -out.sum(axis=0)

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._candidates(P)), dtype=np.int64)

    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        At most hi - lo for one record, and at most how far a facility of one set can be from the
        nearest of the other.
        """
        check_adjacency(adjacency)
        P = np.sort(self._candidates(P), axis=1)
        if all_same(P):
            return 0
        gaps = set_gaps(self._places[P], np.zeros(P.shape), "l1", self)
        sides = 2 if adjacency == "replace" else 1
        bound = gaps + gaps.T if sides == 2 else gaps
        # Distances round to units of 2^shift: two roundings of a record differ by at most one unit.
        # No stored distance exceeds the rounded hi - lo.
        slack = sides if self._shift else 0
        found = integer_range(float(bound.max()), 2.0**self._shift, slack, exact=True)
        return min(found, sides * self._largest)

    def spread(self, P: ArrayLike, adjacency: str) -> int:
        """A bound on `range` for any sets: hi - lo, twice that under replace."""
        check_adjacency(adjacency)
        return self._largest * (2 if adjacency == "replace" else 1)

    def at(self, members: ArrayLike) -> FacilityMoves:
        """A view around one set that scores replacements of one facility incrementally."""
        return FacilityMoves(self, members)


def _matrix_shape(facilities: int, records: int, bits: int) -> tuple[tuple[int, int], Any]:
    """Rows of whole strips, an odd number of cache lines apart: even ones collide in the cache."""
    kind = np.dtype(np.uint16 if bits == 16 else np.uint8)
    strips = -(-records // kernels.STRIP_ROWS)
    lines = strips * kernels.STRIP_ROWS * kind.itemsize // 64
    return (facilities, (lines | 1) * 64 // kind.itemsize), kind


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
    return Box(
        np.floor(places.min(axis=0) / step) * step, np.ceil(places.max(axis=0) / step) * step
    )


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
            kernels.swap_sums(
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
