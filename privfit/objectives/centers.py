"""Sets of centres: the k-means and k-median costs of a population of candidates."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import threads
from privfit.base.errors import DeclarationError
from privfit.base.rulers import Ruler
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_whole
from privfit.domains import Domain, Grid
from privfit.objectives.center_moves import CenterMoves, CenterSteps
from privfit.objectives.common import (
    MOST_SUM,
    Objective,
    all_same,
    check_finite,
    integer_range,
    on_grid,
    set_gaps,
)
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.cells import Halved
from privfit.records.centers import CentersRows
from privfit.records.packing import MAX_RECORDS, check_domain
from privfit.records.places import sums_of
from privfit.records.sums import Sums

LEAST_BITS = 4  # of records on the coarsest grid that is taken by itself


class CentersObjective(Objective[CentersRows]):
    """Minus the cost of sets of centres: squared l2 (k-means) or l1 (k-median) distances.

    Candidates are (m, k, d) on the grid of the records; `snap` rounds them to it. Distances are
    exact integers: nothing is rounded, and `unit` is the record unit to the power.

    Parameters
    ----------
    X : array, CSR/CSC matrix, DataFrame, dict of columns, Stream or Dask collection
        Private records. Packed once, where they are stored; X itself is not kept.
    n_clusters : int
        Number k of centres in a candidate.
    domain : Domain
        The declared domain of a record.
    power : {2, 1}, default=2
        Squared l2 distances, or l1 distances.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation that sums have room for. Under 'add_remove' the number of records is
        private, so there is room for 2^32 of them: records with many columns are then on a coarser
        grid than the domain's, which the attribute `domain` shows.

    See Also
    --------
    KMeans : The estimator.
    search : Searches for centres.

    Notes
    -----
    `scores` are not released; pass them to a grant's `release`.

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

    def __init__(
        self,
        X: object,
        n_clusters: int,
        domain: Domain | None = None,
        power: int = 2,
        n_threads: int | None = None,
        *,
        adjacency: Adjacency = "replace",
    ) -> None:
        self.neighbours = Neighbours.of(adjacency)
        if power not in (1, 2):
            raise DeclarationError(
                f"power ({power!r}) must be 2 (squared l2) or 1 (l1); pass one of them"
            )
        if not is_whole(n_clusters) or n_clusters < 1:
            raise DeclarationError(
                f"n_clusters ({n_clusters!r}) must be a positive whole number; pass n_clusters=5"
            )
        threads.resolve(n_threads)
        self.n_clusters, self.power, self._n_threads = int(n_clusters), int(power), n_threads
        regrid = partial(_roomy, power=self.power, neighbours=self.neighbours)
        declared = check_domain(domain, "CentersObjective")
        if declared.n_features is not None:  # before reading, which may code records on its grid
            declared = regrid(declared)
        pack = partial(CentersRows.pack, domain=declared, regrid=regrid, power=self.power,
                       n_threads=n_threads)  # fmt: skip
        # A record is packed with all of its coded columns, at two bytes each.
        coded = declared.width // 8 if declared.declared_columns else 0
        self._sums = sums_of(X, None, pack, n_threads, coded)
        self.n_features = self._sums.n_features
        self.domain: Domain = regrid(declared.bind(self.n_features))
        unit = self._record_unit = float(self.domain.record_units(uniform=True)[0])
        self._low, self._high = self.domain.low / unit, self.domain.high / unit

    @property
    def n_threads(self) -> int | None:
        """Number of threads that was asked for; None for all cores."""
        return self._n_threads

    @property
    def unit(self) -> float:
        """The value of one unit of a score."""
        return self._record_unit**self.power

    @property
    def candidate_units(self) -> float:
        """The grid of candidates: that of the records."""
        return self._record_unit

    def snap(self, P: ArrayLike) -> Floats:
        """Round centres to the nearest point of the record grid.

        Parameters
        ----------
        P : array-like of shape (..., d)
            The centres.

        Returns
        -------
        array of shape (..., d)
            The rounded centres.
        """
        return np.rint(np.asarray(P, dtype=np.float64) / self._record_unit) * self._record_unit

    def _candidates(self, P: ArrayLike) -> Floats:
        P = check_finite(P, 3, "sets of centres (m, k, d)")
        if P.shape[1:] != (self.n_clusters, self.n_features):
            raise DeclarationError(
                f"P (shape {P.shape}) must be sets of {self.n_clusters} centres with "
                f"{self.n_features} columns; pass candidates (m, k, d)"
            )
        whole = on_grid(P, self._record_unit, "objective.snap(P)")
        reach = np.maximum(np.abs(whole - self._low), np.abs(self._high - whole))
        if (reach**2).sum(axis=2).max() * 8 >= 2.0**53:
            raise DeclarationError(
                "centres are too far out for exact distances; pass centres inside the domain"
            )
        return whole

    def _scored(self, P: ArrayLike, neighbours: Neighbours | None = None) -> Floats:
        """`_candidates` whose scores cannot wrap."""
        whole = self._candidates(P)
        self._check_room(self._cover(whole), neighbours)
        return whole

    def _check_room(self, cover: Floats, neighbours: Neighbours | None = None) -> None:
        """Refuse sets with these largest costs of a record if they could not be summed."""
        if float(cover.max(initial=0.0)) * (1 + 1e-9) * self.room(neighbours) >= MOST_SUM:
            raise DeclarationError(
                "centres are too far out for exact sums of distances; pass centres inside the "
                f"domain, or a domain with a smaller Grid(a=...){self._remedy(neighbours)}"
            )

    def scores(self, P: ArrayLike) -> Integers:
        """Minus the cost of each set of centres, in units of `unit`.

        Parameters
        ----------
        P : array-like of shape (m, k, d)
            Sets of centres, on the grid.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        return -self._sums.sum(CentersRows.costs, self._scored(P))

    def outermost(self, low: Floats, high: Floats) -> Floats:
        """Of the sets of centres between two, the one farthest from the domain's records.

        Parameters
        ----------
        low, high : array
            The two sets.

        Returns
        -------
        array
            The set.
        """
        ends = self.domain.low, self.domain.high
        reach = [np.maximum(*(np.abs(centers - end) for end in ends)) for centers in (low, high)]
        return np.where(reach[0] > reach[1], low, high)

    def prior(self, P: ArrayLike) -> Integers:
        """Zeros: there is no data-free part.

        Parameters
        ----------
        P : array-like of shape (m, k, d)
            Sets of centres, on the grid.

        Returns
        -------
        array of int64 of shape (m,)
            Zeros.
        """
        return np.zeros(len(self._scored(P)), dtype=np.int64)

    # rho and cov of THEORY section 1, on integers.
    def range(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up.

        Parameters
        ----------
        P : array-like of shape (m, k, d)
            Sets of centres, on the grid.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        neighbours = Neighbours.of(adjacency)
        whole = self._scored(P, neighbours)
        if all_same(whole):
            return 0
        gaps, cover = self._gaps(whole), self._cover(whole)
        if neighbours.replaces:
            bound = np.minimum(gaps + gaps.T, cover[:, None] + cover)
        else:
            bound = np.minimum(gaps, cover[:, None])
        return integer_range(float(bound.max()), 1.0, 0, exact=self.domain.exact_distances)

    def spread(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """A bound on `range` from each candidate alone, for too many candidates to compare.

        Parameters
        ----------
        P : array-like of shape (m, k, d)
            Sets of centres, on the grid.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The bound. It is public.
        """
        neighbours = Neighbours.of(adjacency)
        return neighbours.changes * self._most(self._scored(P, neighbours))

    def largest_cost(self, P: ArrayLike) -> int:
        """A bound on the cost of one record of the domain with any of these sets.

        Parameters
        ----------
        P : array-like of shape (m, k, d)
            Sets of centres, on the grid.

        Returns
        -------
        int
            The bound in score units. It is public.
        """
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
            return set_gaps(whole, np.zeros_like(squares), "l1", self._n_threads)
        level = squares - whole @ (self._low + self._high)
        wide = whole * (self._high - self._low)
        return set_gaps(wide, level, self.domain.dual_norm, self._n_threads)

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
        """Counts and sums of the records nearest to each centre.

        Each record belongs to exactly one centre; ties go to the lowest index.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.

        Returns
        -------
        tuple of arrays of int64 of shapes (k,) and (k, d)
            Counts, and sums in record units. They are private.
        """
        return self._clusters(centers, 0, 0)

    def residuals(self, centers: ArrayLike, radius: int, norm: int) -> tuple[Integers, Integers]:
        """The same as `lloyd`, with clipped sums of x - c.

        A record adds an integer vector of norm at most `radius` to one centre, whatever the centre:
        longer differences are shrunk and rounded towards zero, each by itself.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.
        radius : int
            Bound on the norm of x - c, in record units.
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        tuple of arrays of int64 of shapes (k,) and (k, d)
            Counts, and sums in record units. They are private.
        """
        _check_norm(norm)
        _check_radius(radius)
        return self._clusters(centers, int(radius), norm)

    def norm_counts(self, centers: ArrayLike, radii: ArrayLike, norm: int) -> Integers:
        """How many records lie within each radius of their nearest centre, and not within a less.

        Each record is counted once, so one record more changes one count by one, and another record
        in its place two.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.
        radii : array-like of int of shape (m,)
            Ascending bounds on the norm of x - c, in record units.
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        array of int64 of shape (m + 1,)
            The counts; the last is of the records beyond all radii. They are private.
        """
        _check_norm(norm)
        bounds = np.asarray(radii)
        whole = bounds.ndim == 1 and bounds.dtype.kind in "iu"
        if not whole or not ((bounds >= 0) & (bounds < 2**31)).all() or (np.diff(bounds) < 0).any():
            raise DeclarationError(
                "radii must be ascending whole numbers of record units below 2^31; pass public "
                "radii / objective.candidate_units, rounded down"
            )
        points = self._candidates(np.asarray(centers, dtype=np.float64)[None])[0]
        return self._sums.sum(CentersRows.norm_counts, points, bounds.astype(np.int64), norm)

    def cost_steps(self, sets: Sequence[ArrayLike], most: int, shift: int = 0) -> Integers:
        """The clipped costs of several sets of centres, as the last cost and differences.

        A record adds an integer vector whose absolute values add up to at most `most`, whatever
        the sets are: see `privfit.clustering.curves`.

        Parameters
        ----------
        sets : sequence of array-like of shape (k_i, d)
            Sets of centres, on the grid, of any sizes.
        most : int
            The most that a record may cost, from 1 to 2^30 - 1, in units of 2^shift score units.
        shift : int, default=0
            The binary digits of a cost that are left out, from 0 to 40.

        Returns
        -------
        array of int64 of shape (len(sets),)
            The cost of the last set, then of each other set what it costs more than the next. They
            are private.
        """
        if not is_whole(most) or not 1 <= most < 1 << 30:
            raise DeclarationError(
                f"most ({most!r}) must be a whole number from 1 to 2^30 - 1; pass a public bound "
                "on the cost of a record, and a larger shift if it is larger"
            )
        if not is_whole(shift) or not 0 <= shift <= 40:
            raise DeclarationError(
                f"shift ({shift!r}) must be a whole number from 0 to 40; pass shift=0"
            )
        tables = [np.asarray(one, dtype=np.float64)[None] for one in sets]
        if not tables or any(one.ndim != 3 for one in tables):
            raise DeclarationError("sets must be one or more sets of centres; pass arrays (k, d)")
        whole = [self.with_clusters(one.shape[1])._candidates(one)[0] for one in tables]
        starts = np.cumsum([0, *(len(one) for one in whole[:-1])])
        return self._sums.sum(
            CentersRows.cost_steps, np.concatenate(whole), starts, int(most), int(shift)
        )

    def products(self, center: ArrayLike, shift: int, radius: int, norm: int) -> Integers:
        """The sum of v v' over all records, v their clipped difference to one point.

        A difference is divided by 2^shift, rounded towards zero, and shrunk to a norm of at most
        `radius`. So one record adds a matrix whose entries have an absolute sum of at most
        radius^2 if the norm is l1, and whose squares have at most the sum radius^4 if it is l2.

        Parameters
        ----------
        center : array-like of shape (d,)
            The point, on the grid.
        shift : int
            Bits that differences lose.
        radius : int
            Bound on the norm of a difference, in 2^shift record units.
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        array of int64 of shape (d, d)
            The sums. They are private.
        """
        _check_norm(norm)
        if not is_whole(radius) or not 1 <= radius < 2**24 or not 0 <= shift < 16:
            raise DeclarationError(
                f"radius ({radius!r}) and shift ({shift!r}) must be whole, from 1 to 2^24 and from "
                "0 to 15; pass a public radius in units of 2^shift objective.candidate_units"
            )
        alone = np.asarray(center, dtype=np.float64)[None, None]
        point = self.with_clusters(1)._candidates(alone)[0, 0]
        return self._sums.sum(CentersRows.products, point.astype(np.int64), shift, radius, norm)

    def deviations(self, center: ArrayLike, radius: int, norm: int) -> Integers:
        """The sums of abs(v) over all records, v their clipped difference to one point.

        A difference is shrunk to a norm of at most `radius`, and so is what one record adds.

        Parameters
        ----------
        center : array-like of shape (d,)
            The point, on the grid.
        radius : int
            Bound on the norm of a difference, in record units.
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        array of int64 of shape (d,)
            The sums, in record units. They are private.
        """
        _check_norm(norm)
        _check_radius(radius)
        alone = np.asarray(center, dtype=np.float64)[None, None]
        point = self.with_clusters(1)._candidates(alone)[0, 0]
        return self._sums.sum(CentersRows.deviations, point.astype(np.int64), int(radius), norm)

    def framed_cells(
        self, origin: Integers, frame: Integers, reach: Integers, axes: ArrayLike
    ) -> Framed:
        """Cells of records in a rotated frame, repeatedly halved. Private: to be released.

        Parameters
        ----------
        origin : array of int64 of shape (d,)
            The origin, in record units.
        frame : array of int64 of shape (q, d)
            Directions times 2^12.
        reach : array of int64 of shape (q,)
            How far the halved box reaches on both sides of the origin, in record units; records
            beyond belong to its outermost cells.
        axes : array-like of int
            The column of the box of each halving.

        Returns
        -------
        Framed
            Counts the records of cells.
        """
        return Framed(self._sums, (origin, frame, reach, np.asarray(axes, dtype=np.int32)))

    def with_clusters(self, n_clusters: int) -> CentersObjective:
        """The same records, packed once, for sets of another number of centres.

        Parameters
        ----------
        n_clusters : int
            Number of centres in a candidate.

        Returns
        -------
        CentersObjective
            The objective.
        """
        other = copy.copy(self)
        other.n_clusters = int(n_clusters)
        return other

    def _clusters(self, centers: ArrayLike, radius: int, norm: int) -> tuple[Integers, Integers]:
        whole = self._candidates(np.asarray(centers, dtype=np.float64)[None])[0]
        found = self._sums.sum(CentersRows.clusters, whole, radius, norm)
        return found[:, 0], found[:, 1:]

    # ----------------------------------------------------------- what is public about the records

    @property
    def bounds(self) -> tuple[Integers, Integers]:
        """(d,) the smallest and the largest integer of each column, in record units."""
        return self.domain.whole_bounds

    @property
    def middle(self) -> Integers:
        """(d,) a public central point, in record units; see `reach`."""
        return self.domain.whole_middle

    def reach(self, norm: int) -> int:
        """The largest norm of a record minus `middle`, in record units, rounded up.

        Parameters
        ----------
        norm : {1, 2}
            The l1 or the l2 norm.

        Returns
        -------
        int
            The bound. It is public.
        """
        return self.domain.whole_reach(norm)

    def project(self, centers: ArrayLike) -> Floats:
        """Move centres into the domain and onto the grid.

        Parameters
        ----------
        centers : array-like of shape (..., d)
            The centres.

        Returns
        -------
        array of shape (..., d)
            The moved centres.
        """
        return self.domain.project(np.asarray(centers, dtype=np.float64))

    # --------------------------------------------------------------------------------------- cells

    def cells(self, axes: ArrayLike, ruler: Ruler | None = None) -> Halved[CentersRows]:
        """Cells of records in `bounds`, repeatedly halved. Private: to be released.

        Parameters
        ----------
        axes : array-like of int
            The column of each halving.
        ruler : Ruler, optional
            The scale on which columns are halved.

        Returns
        -------
        Halved
            Counts the records of cells.
        """
        return Halved.along(self._sums, axes, ruler)

    def grid_counts(self, parts: ArrayLike) -> Integers:
        """The number of records in each cell of a grid. Private: to be released.

        Parameters
        ----------
        parts : array-like of int of shape (d,)
            Number of equal parts of each column.

        Returns
        -------
        array of int64
            The counts.
        """
        return self._sums.sum(CentersRows.grid_counts, np.asarray(parts, dtype=np.int64))

    def decoded(self) -> tuple[Floats, None]:
        """Private: records as floats, clipped and rounded, and no labels.

        Returns
        -------
        tuple of array of shape (n, d) and None
            The records.
        """
        records = self._sums.whole("this solver").dense
        whole = np.concatenate(list(records.blocks(1 << 16)))
        return whole.astype(np.float64) * self._record_unit, None

    def at(self, centers: ArrayLike) -> CenterMoves:
        """A view around one set of centres that scores changes of one centre incrementally.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.

        Returns
        -------
        CenterMoves
            The view.
        """
        return CenterMoves(self, centers)

    def walk(self, centers: ArrayLike) -> CenterSteps:
        """A view that scores moves of one coordinate, numbered 0 .. k d - 1.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.

        Returns
        -------
        CenterSteps
            The view.
        """
        return CenterSteps(self, centers)

    def around(self, centers: ArrayLike, space: object) -> CenterSteps:
        """The view that searches ask for: `walk`, whatever the space.

        Parameters
        ----------
        centers : array-like of shape (k, d)
            The centres.
        space : Space
            The space that is searched.

        Returns
        -------
        CenterSteps
            The view.
        """
        return self.walk(centers)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Framed:
    """Records in a box about the origin of a frame, which is halved."""

    sums: Sums[CentersRows]
    frame: tuple[Integers, Integers, Integers, NDArray[np.int32]]

    def count(self, codes: NDArray[np.uint64], shift: NDArray[np.uint64]) -> Integers:
        """int64: the number of records in each cell, whose code lacks the last `shift` halvings."""
        return self.sums.sum(CentersRows.framed_counts, *self.frame, codes, shift)


D = TypeVar("D", bound=Domain)


def _check_norm(norm: int) -> None:
    """Refuse anything but the l1 and the l2 norm."""
    if norm not in (1, 2):
        raise DeclarationError(f"norm ({norm!r}) must be 1 or 2; pass one of them")


def _check_radius(radius: int) -> None:
    """Refuse what is no number of record units."""
    if not is_whole(radius) or not 1 <= radius < 2**31:
        raise DeclarationError(
            f"radius ({radius!r}) must be a whole number of record units, at least 1; pass "
            "a public radius / objective.candidate_units"
        )


def _roomy(domain: D, power: int, neighbours: Neighbours) -> D:
    """The domain, under 'add_remove' on a grid that has room for 2^32 costs.

    A rule of the domain alone, so that records have one grid wherever they are stored.
    """
    if neighbours.size_is_public:
        return domain
    while MAX_RECORDS * _farthest_apart(domain, power) >= MOST_SUM:
        grid = domain.grid
        if grid.a <= LEAST_BITS:
            raise DeclarationError(
                f"domain ({domain.width} columns) must leave room for the costs of 2^32 records "
                "under adjacency='add_remove'; pass a domain of fewer columns"
            )
        a, b = grid.a - 1, min(grid.b + 1, 16)  # a grid has at least c + 8 of both
        changed: Any = domain  # a dataclass, as all domains are
        domain = dataclasses.replace(changed, grid=Grid(a, b, min(grid.c, a + b - 8)))
    return domain


def _farthest_apart(domain: Domain, power: int) -> float:
    """The largest cost of a record of the domain and a centre within it, in score units."""
    return domain.farthest_apart(power) / float(domain.record_units(uniform=True)[0]) ** power
