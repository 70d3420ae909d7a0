"""Sets of centres: the k-means and k-median costs of a population of candidates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import centers as kernels
from privfit._kernels import threads
from privfit._kernels.linear import QUAD_SIZE
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_whole
from privfit.domains import Domain, Grid
from privfit.objectives.center_moves import CenterMoves, CenterSteps
from privfit.objectives.common import (
    MOST_SUM,
    Objective,
    all_same,
    check_adjacency,
    check_finite,
    integer_range,
    on_grid,
    quad_starts,
    quads,
    set_gaps,
)
from privfit.records.packing import (
    MAX_RECORDS,
    DenseRecords,
    aligned,
    check_domain,
    check_records,
    joined,
    pack,
)

LEAST_BITS = 4  # of records on the coarsest grid that is taken by itself


class CentersObjective(Objective):
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
    adjacency : 'replace' or 'add_remove'
        The neighbour relation that sums have room for. Under 'add_remove' the number of records is
        private, so there is room for 2^32 of them: records of many columns then lie on a coarser
        grid than the domain's, and `domain` says on which.

    Notes
    -----
    **No sum wraps.** With N the number of records (replace) or 2^32 (add_remove), a set of centres
    is refused unless N times the largest cost of a record is below 2^62. Under 'add_remove' the
    grid is made coarser until that holds for every centre inside the domain. Counts are at most
    2^32; sums of columns are below 2^32 2^14, and those of residuals below 2^32 2^30.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Box, CentersObjective
    >>> X = np.array([[0.0], [0.25], [1.0]])
    >>> objective = CentersObjective(X, 1, Box(0, 1))
    >>> P = objective.snap([[[0.25]], [[0.5]]])
    >>> (objective.scores(P) * objective.unit).tolist()
    [-0.625, -0.5625]
    """

    layout = "dense"  # how records are packed

    def __init__(
        self,
        X: Any,
        n_clusters: int,
        domain: Domain | None = None,
        power: int = 2,
        n_threads: int | None = None,
        *,
        adjacency: str = "replace",
    ) -> None:
        check_adjacency(adjacency)
        if power not in (1, 2):
            raise ValueError(
                f"power ({power!r}) must be 2 (squared l2) or 1 (l1); pass one of them"
            )
        if not is_whole(n_clusters) or n_clusters < 1:
            raise ValueError(
                f"n_clusters ({n_clusters!r}) must be a positive whole number; pass n_clusters=5"
            )
        threads.resolve(n_threads)
        self.n_clusters, self.power, self._n_threads = int(n_clusters), int(power), n_threads
        self.adjacency = adjacency
        self._load(X, domain)
        unit = self._record_unit = float(self.domain.record_units(uniform=True)[0])
        self._low, self._high = self.domain.low / unit, self.domain.high / unit

    def _load(self, X: Any, domain: Domain | None) -> None:
        """Check and pack the records."""
        domain = check_domain(domain, "CentersObjective")
        if domain.n_features is not None:  # before reading, which may code records on its grid
            domain = self._roomy(domain)
        X, bound = check_records(X, domain, "CentersObjective")
        self.domain = self._roomy(bound)
        self.n_records, self.n_features = X.shape
        records = pack(X, self.domain, layout="dense", uniform=True)
        assert isinstance(records, DenseRecords)
        self._records, self._runs = records, records.runs

    def _roomy(self, domain: Any) -> Any:
        """The domain, where records are added or removed on a grid that has room for 2^32 costs.

        A rule of the domain alone, so that parts of the records have the same grid.
        """
        if self.adjacency == "replace":
            return domain
        while MAX_RECORDS * _farthest_apart(domain, self.power) >= MOST_SUM:
            grid = domain.grid
            if grid.a <= LEAST_BITS:
                raise ValueError(
                    f"domain ({domain.width} columns) must leave room for the costs of 2^32 "
                    "records under adjacency='add_remove'; pass a domain of fewer columns"
                )
            a, b = grid.a - 1, min(grid.b + 1, 16)  # a grid has at least c + 8 of both
            domain = dataclasses.replace(domain, grid=Grid(a, b, min(grid.c, a + b - 8)))
        return domain

    def joined(self, others: Sequence[CentersObjective]) -> CentersObjective:
        """One objective over the records of all, which must be alike in all else."""
        result: CentersObjective = self._emptied(others)
        records = joined([one._records for one in (self, *others)])
        assert isinstance(records, DenseRecords)
        result._records, result._runs = records, records.runs
        return result

    @property
    def unit(self) -> float:
        """What one unit of a score is worth."""
        return self._record_unit**self.power

    @property
    def candidate_units(self) -> float:
        """The grid of candidates: that of the records."""
        return self._record_unit

    def snap(self, P: ArrayLike) -> Floats:
        """Centres (..., d), rounded to the nearest point of the record grid."""
        return np.rint(np.asarray(P, dtype=np.float64) / self._record_unit) * self._record_unit

    def _candidates(self, P: ArrayLike) -> Floats:
        P = check_finite(P, 3, "sets of centres (m, k, d)")
        if P.shape[1:] != (self.n_clusters, self.n_features):
            raise ValueError(
                f"P (shape {P.shape}) must be sets of {self.n_clusters} centres with "
                f"{self.n_features} columns; pass candidates (m, k, d)"
            )
        whole = on_grid(P, self._record_unit, "objective.snap(P)")
        reach = np.maximum(np.abs(whole - self._low), np.abs(self._high - whole))
        if (reach**2).sum(axis=2).max() * 8 >= 2.0**53:
            raise ValueError(
                "centres are too far out for exact distances; pass centres inside the domain"
            )
        return whole

    def _scored(self, P: ArrayLike, adjacency: str | None = None) -> Floats:
        """`_candidates` whose scores cannot wrap."""
        whole = self._candidates(P)
        self._check_room(self._cover(whole), adjacency)
        return whole

    def _check_room(self, cover: Floats, adjacency: str | None = None) -> None:
        """Refuse sets with these largest costs of a record if they could not be summed."""
        if float(cover.max(initial=0.0)) * (1 + 1e-9) * self.room(adjacency) >= MOST_SUM:
            raise ValueError(
                "centres are too far out for exact sums of distances; pass centres inside the "
                f"domain, or a domain with a smaller Grid(a=...){self._remedy(adjacency)}"
            )

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
        """What the kernel's sums of distances lack, modulo 2^64: only costs themselves must fit."""
        added = self.n_records * shift + (self._squares if self.power == 2 else 0)
        return (added + 2**63) % 2**64 - 2**63

    def scores(self, P: ArrayLike) -> Integers:
        """int64 (m,): minus the cost of each set of centres (m, k, d), in units of `unit`."""
        whole = self._scored(P)
        m, k, d = whole.shape
        padded_k = -(-k // QUAD_SIZE) * QUAD_SIZE
        padded = np.concatenate([whole, np.repeat(whole[:, -1:], padded_k - k, axis=1)], axis=1)
        form = self._kernel_form(padded.reshape(-1, d))
        work = float(self.n_records) * m * k * (1 + d / 16)
        n_threads = self._threads(work)
        out = np.zeros((n_threads, m), dtype=np.int64)
        if form is None:
            centres = self._padded(whole)
            buffer = aligned((n_threads, 2, self._tile_rows), np.float64)
            for part in self._slices(8 * work):
                kernels.costs_wide(self._records.panels, part, centres, self.power, buffer, out)
            return -out.sum(axis=0)
        w, start, shift = form
        w = w.reshape(m, padded_k // QUAD_SIZE, -1, QUAD_SIZE)
        start = start.reshape(m, padded_k // QUAD_SIZE, QUAD_SIZE)
        narrow = aligned((n_threads, self._tile_rows), np.int32)
        for part in self._slices(work):
            kernels.costs(self._records.as_pairs, part, w, start, self.power, narrow, out)
        return -(out.sum(axis=0) + self._added_back(shift))

    def _padded(self, whole: Floats) -> Floats:
        result = np.zeros((*whole.shape[:-1], 2 * self._records.pairs))
        result[..., : self.n_features] = whole
        return result

    def outermost(self, low: Floats, high: Floats) -> Floats:
        """Of the sets of centres between two, the one farthest from the domain's records."""
        ends = self.domain.low, self.domain.high
        reach = [np.maximum(*(np.abs(centers - end) for end in ends)) for centers in (low, high)]
        return np.where(reach[0] > reach[1], low, high)

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): there is no data-free part."""
        return np.zeros(len(self._scored(P)), dtype=np.int64)

    # rho and cov of THEORY section 1, on integers.
    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up."""
        check_adjacency(adjacency)
        whole = self._scored(P, adjacency)
        if all_same(whole):
            return 0
        gaps, cover = self._gaps(whole), self._cover(whole)
        if adjacency == "replace":
            bound = np.minimum(gaps + gaps.T, cover[:, None] + cover)
        else:
            bound = np.minimum(gaps, cover[:, None])
        return integer_range(float(bound.max()), 1.0, 0, exact=self.domain.exact_distances)

    def spread(self, P: ArrayLike, adjacency: str) -> int:
        """A bound on `range` from each candidate alone, for more of them than pairs allow."""
        check_adjacency(adjacency)
        return (2 if adjacency == "replace" else 1) * self._most(self._scored(P, adjacency))

    def largest_cost(self, P: ArrayLike) -> int:
        """A bound on what one record of the domain costs with any of these sets, in score units."""
        return self._most(self._scored(P))

    def _most(self, whole: Floats) -> int:
        most = float(self._cover(whole).max())
        return integer_range(most, 1.0, 0, exact=self.domain.exact_distances)

    def _gaps(self, whole: Floats) -> Floats:
        """(m, m) rho(C, C') for this domain, in score units.

        The supremum of dist(t, c) - dist(t, c') over records t is, for squared l2 distances,
        norm2(c)^2 - norm2(c')^2 + 2 sup <t, c' - c>, and at most l1(c - c') for l1 distances.
        """
        squares = np.square(whole).sum(axis=2)
        if self.power == 1:
            return set_gaps(whole, np.zeros_like(squares), "l1", self)
        level = squares - whole @ (self._low + self._high)
        return set_gaps(whole * (self._high - self._low), level, self.domain.dual_norm, self)

    def _step_gaps(self, old: Floats, new: Floats) -> tuple[Floats, Floats]:
        """(m,) sup of dist(t, new) - dist(t, old), and the other way round, for centres (m, d)."""
        if self.power == 1:
            span = np.abs(new - old).sum(axis=1)
            return span, span
        rise = np.square(new).sum(axis=1) - np.square(old).sum(axis=1)
        rise -= (new - old) @ (self._low + self._high)
        span = self.domain.spans(new - old) / self._record_unit
        return rise + span, span - rise

    def _cover(self, whole: Floats) -> Floats:
        """(m,) cov(C): the largest cost of a record, in score units."""
        return np.asarray(self._farthest(whole).min(axis=1))

    def _farthest(self, whole: Floats) -> Floats:
        """(m, k): the largest distance of a record to each centre, in score units."""
        return self.domain.farthest(whole * self._record_unit, self.power) / self.unit

    def lloyd(self, centers: ArrayLike) -> tuple[Integers, Integers]:
        """Counts (k,) and sums (k, d) of the records nearest to each centre, in record units.

        Each record belongs to exactly one centre; ties go to the lowest index.
        """
        return self._clusters(centers, 0, 0)

    def residuals(self, centers: ArrayLike, radius: int, norm: int) -> tuple[Integers, Integers]:
        """As `lloyd`, with the sums of x - c clipped to this l1 or l2 norm, in record units.

        A record adds an integer vector of norm at most `radius` to one centre, whatever the centre:
        longer differences are shrunk and rounded towards zero, each by itself.
        """
        if norm not in (1, 2):
            raise ValueError(f"norm ({norm!r}) must be 1 or 2; pass one of them")
        if not is_whole(radius) or not 1 <= radius < 2**31:
            raise ValueError(
                f"radius ({radius!r}) must be a whole number of record units, from 1 on; pass "
                "a public radius / objective.candidate_units"
            )
        return self._clusters(centers, int(radius), norm)

    def _clusters(self, centers: ArrayLike, radius: int, norm: int) -> tuple[Integers, Integers]:
        whole = self._candidates(np.asarray(centers, dtype=np.float64)[None])[0]
        k, d = whole.shape
        work = float(self.n_records) * (k * (2 + d / 8) + (4 if norm == 0 else 8) * d)
        n_threads = self._threads(work)
        counts = np.zeros((n_threads, k), dtype=np.int64)
        sums = np.zeros((n_threads, k, 2 * self._records.pairs), dtype=np.int64)
        form, padded = self._kernel_form(whole), self._padded(whole)
        about = (padded.astype(np.int32), radius, norm)
        if form is None:
            wide = aligned((n_threads, 2, self._tile_rows), np.float64)
            which = aligned((n_threads, self._tile_rows), np.int32)
            for part in self._slices(8 * work):
                kernels.lloyd_wide(
                    self._records.panels, part, padded, self.power, *about, wide, which, counts,
                    sums,
                )  # fmt: skip
        else:
            buffer = aligned((n_threads, QUAD_SIZE + 2, self._tile_rows), np.int32)
            for part in self._slices(work):
                kernels.lloyd(
                    self._records.panels, part, form[0], form[1], self.power, *about, buffer,
                    counts, sums,
                )  # fmt: skip
        return counts.sum(axis=0), sums.sum(axis=0)[:, :d]

    # ----------------------------------------------------------- what is public about the records

    @property
    def bounds(self) -> tuple[Integers, Integers]:
        """(d,) the least and the largest integer of each column, in record units."""
        return self.domain.whole_bounds

    @property
    def middle(self) -> Integers:
        """(d,) a public point, in record units, about which records are short; see `reach`."""
        return self.domain.whole_middle

    def reach(self, norm: int) -> int:
        """The largest l1 or l2 norm of a record less `middle`, in record units, rounded up."""
        return self.domain.whole_reach(norm)

    def project(self, centers: ArrayLike) -> Floats:
        """Centres (..., d) moved into the domain and onto the grid."""
        return self.domain.project(np.asarray(centers, dtype=np.float64))

    # --------------------------------------------------------------------------------------- cells

    def cells(self, axes: ArrayLike) -> NDArray[np.uint64]:
        """(n,) the cell of each record after these halvings of `bounds`, one bit each."""
        return self._cells(self._records, self.bounds, axes)

    def grid_counts(self, parts: ArrayLike) -> Integers:
        """The number of records in each cell of a grid with so many equal parts a column."""
        parts = np.asarray(parts, dtype=np.int64)
        low, high = self.bounds
        total = np.zeros(int(np.prod(parts)), dtype=np.int64)
        stride = total.size // np.cumprod(parts)  # the last column varies fastest
        for block in self._records.blocks(1 << 16):
            place = (block.astype(np.int64) - low) * parts // (high - low + 1)
            total += np.bincount(place @ stride, minlength=total.size)
        return total

    def decoded(self) -> tuple[Floats, None]:
        """Private: records (n, d) as floats, clipped and rounded, and no labels."""
        whole = np.concatenate(list(self._records.blocks(1 << 16)))
        return whole.astype(np.float64) * self._record_unit, None

    def at(self, centers: ArrayLike) -> CenterMoves:
        """A view around one set of centres that scores changes of one centre incrementally."""
        return CenterMoves(self, centers)

    def walk(self, centers: ArrayLike) -> CenterSteps:
        """The same for moves of one coordinate, numbered 0 .. k d - 1, as searches make them."""
        return CenterSteps(self, centers)


def _farthest_apart(domain: Domain, power: int) -> float:
    """The largest cost of a record of the domain and a centre within it, in score units."""
    return domain.farthest_apart(power) / float(domain.record_units(uniform=True)[0]) ** power
