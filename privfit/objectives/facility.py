"""Sets of public facilities: clipped distances of records to the nearest one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels import threads
from privfit.base.errors import DeclarationError, InputError
from privfit.base.typing import Array, Floats, Integers
from privfit.domains import Box, Domain
from privfit.objectives.common import (
    Objective,
    all_same,
    integer_range,
    set_gaps,
)
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.cells import Halved
from privfit.records.facilities import FEW_COLUMNS, FacilityRows, OwnRuler, Ruler
from privfit.records.places import sums_of

Metric: TypeAlias = str | Callable[..., ArrayLike]

FEW_MOVES = 256  # up to here, ranges are computed over all pairs of moves
FEW_SETS = 4  # whose gaps to the others are computed first


class FacilityObjective(Objective[FacilityRows]):
    """Minus the clipped distance of records to the nearest facility of a public set.

    Candidates are int (m, k): indices of facilities. Distances are computed once, clipped to [lo,
    hi], rounded to one or two bytes and stored by facility; `lo` itself is not part of scores,
    since it is the same for all.

    Parameters
    ----------
    X : array, CSR/CSC matrix, DataFrame, dict of columns, Stream or Dask collection
        Private records. Packed once, where they are stored; X itself is not kept.
    facilities : array of shape (f, d)
        Public places; with a user-defined metric, any sequence that it understands.
    clip : pair (lo, hi)
        Public bounds of a distance.
    domain : Domain or None, default=None
        The declared domain of a record. By default the box that the facilities span, widened to
        eighths of its scale; records outside are clipped to it, which shifts their l1 distances to
        all facilities by the same amount. A user-defined metric needs none.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    bits : {16, 8}, default=16
        Size of a stored distance.
    metric : {'l1', 'l2'} or callable (records, facilities) -> (rows, f), default='l1'
        A user-defined function must treat each record by itself, which is checked on single records
        of each block. Its values are clipped and rounded, so that sensitivity does not depend on
        it, and the range is hi - lo: nothing is known about the distances between facilities. It is
        called where the records are stored.

    See Also
    --------
    KMedian : The estimator.
    Subsets : The space of candidates.

    Notes
    -----
    `scores` are not released; pass them to a grant's `release`.

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

    def __init__(
        self,
        X: object,
        facilities: Sized,
        clip: tuple[float, float],
        domain: Domain | None = None,
        n_threads: int | None = None,
        *,
        bits: int = 16,
        metric: Metric = "l1",
    ) -> None:
        if bits not in (8, 16):
            raise DeclarationError(f"bits ({bits!r}) must be 16 or 8; pass one of them")
        if not callable(metric) and metric not in ("l1", "l2"):
            raise DeclarationError(
                f"metric ({metric!r}) must be 'l1', 'l2' or a function; pass metric(records, "
                "facilities) -> array (rows, f)"
            )
        low, high = check_clip(clip)
        threads.resolve(n_threads)
        self.clip, self.bits, self.metric = (low, high), bits, metric
        self._n_threads = n_threads
        if callable(metric):
            self._measure_by(metric, X, facilities)
        else:
            places = _check_places(facilities)
            self._measure_places(X, places, domain or spanned_box(places))

    @classmethod
    def of_distances(
        cls,
        distances: ArrayLike,
        clip: tuple[float, float],
        n_threads: int | None = None,
        *,
        bits: int = 16,
    ) -> FacilityObjective:
        """Make an objective from computed distances.

        Parameters
        ----------
        distances : array-like of shape (n, f)
            Private distances: row r from record r and public facts alone.
        clip : pair (lo, hi)
            Public bounds of a distance.
        n_threads : int or None, default=None
            Number of threads.
        bits : {16, 8}, default=16
            Size of a stored distance.

        Returns
        -------
        FacilityObjective
            The objective.
        """
        table = np.asarray(distances)
        if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "fiub":
            raise DeclarationError(
                f"distances ({table.ndim} dimensions, dtype {table.dtype}) must be a non-empty "
                "table of numbers; pass distances (n, f)"
            )

        def as_given(rows: Array, _: object) -> Array:
            return rows

        return cls(table, range(table.shape[1]), clip, None, n_threads, bits=bits, metric=as_given)

    # ----------------------------------------------------------------------------------- distances

    def _measure_places(self, X: object, places: Floats, declared: Domain) -> None:
        """Records, units and bounds of l1 or l2 distances: coordinates are on the domain's grid."""
        measure = partial(
            _ruler, places=places, clip=self.clip, metric=str(self.metric), bits=self.bits
        )
        pack = partial(
            FacilityRows.pack, domain=declared, measure=measure, n_threads=self._n_threads
        )
        distances = 0 if places.shape[1] <= FEW_COLUMNS else len(places)  # of a packed record
        self._sums = sums_of(X, None, pack, self._n_threads, distances)
        self.n_features, self.n_facilities = self._sums.n_features, len(places)
        self.domain: Domain | None = declared.bind(self.n_features)
        ruler = measure(self.domain)
        self._places: Floats | None = ruler.places
        self._shift, self.unit = ruler.shift, self.record_unit * 2.0**ruler.shift
        self.largest: int = ruler.rounded(ruler.high - ruler.low)

    def _measure_by(self, metric: Callable[..., ArrayLike], X: object, facilities: Sized) -> None:
        """Records, units and bounds of a user's distances."""
        low, high = self.clip
        self.unit = 2.0 ** (math.frexp(high - low)[1] - self.bits)
        if round((high - low) / self.unit) >= 1 << self.bits:
            self.unit *= 2
        ruler = OwnRuler(facilities, metric, self.clip, self.unit, self.bits)
        pack = partial(FacilityRows.pack_own, ruler=ruler, n_threads=self._n_threads)
        self.domain, self._places, self._shift = None, None, 0
        self.n_facilities, self.largest = len(facilities), round((high - low) / self.unit)
        self._sums = sums_of(X, None, pack, self._n_threads, self.n_facilities)

    @property
    def has_cells(self) -> bool:
        """Whether records are kept in addition to distances, so that `cells` can find them."""
        return self._places is not None and self._places.shape[1] <= FEW_COLUMNS

    @cached_property
    def bounds(self) -> tuple[Integers, Integers]:
        """(d,) the smallest and the largest integer of each column, in record units."""
        assert self.domain is not None
        return self.domain.whole_bounds

    @property
    def record_unit(self) -> float:
        """The value of one unit of a coordinate."""
        assert self.domain is not None
        return float(self.domain.record_units(uniform=True)[0])

    def check_cells(self) -> None:
        """Refuse what `cells` would refuse: known from the metric and the number of columns."""
        if not self.has_cells:
            raise DeclarationError(
                f"cells are found for l1 and l2 distances of at most {FEW_COLUMNS} columns; use a "
                "solver that needs distances alone"
            )

    def cells(self, axes: ArrayLike) -> Halved[FacilityRows]:
        """Cells of records in `bounds`, repeatedly halved. Private: to be released.

        Parameters
        ----------
        axes : array-like of int
            The column of each halving.

        Returns
        -------
        Halved
            Counts the records of cells.
        """
        self.check_cells()
        return Halved.along(self._sums, axes)

    def places(self) -> Floats:
        """The public facilities on the grid of the records.

        Returns
        -------
        array of shape (f, d)
            The places.
        """
        assert self._places is not None
        return self._places * self.record_unit

    def clipped(self, points: Floats) -> Floats:
        """Clipped distances of public points to the facilities, minus lo.

        Parameters
        ----------
        points : array of shape (m, d)
            The points.

        Returns
        -------
        array of shape (m, f)
            The distances.
        """
        return np.asarray(np.clip(self._measured(points), *self.clip) - self.clip[0])

    def _measured(self, points: Floats) -> Floats:
        """(m, f): distances of public points to the facilities, not clipped."""
        name = "cityblock" if self.metric == "l1" else "euclidean"
        return np.asarray(scipy.spatial.distance.cdist(points, self.places(), name))

    def between(self, members: Integers) -> Floats:
        """Distances between facilities, at most hi; unknown ones count as hi.

        They are not raised to lo, unlike those of records: two facilities may be nearer than lo to
        each other, and yet each serves its nearest records best.

        Parameters
        ----------
        members : array-like of int of shape (k,)
            Indices of facilities.

        Returns
        -------
        array of shape (k, f)
            The distances.
        """
        if self._places is not None:
            return np.minimum(self._measured(self.places()[members]), self.clip[1])
        found = np.full((len(members), self.n_facilities), self.clip[1])
        found[np.arange(len(members)), members] = 0.0
        return found

    # ---------------------------------------------------------------------------- scores and ranges

    def _candidates(self, P: ArrayLike) -> Integers:
        P = np.asarray(P)
        if P.ndim != 2 or P.size == 0:
            raise DeclarationError(
                f"P (shape {P.shape}) must be sets of facilities; pass indices (m, k)"
            )
        if P.dtype.kind not in "iu":
            raise DeclarationError(
                f"P (dtype {P.dtype}) must hold whole numbers; pass indices (m, k)"
            )
        if not (0 <= P.min() and P.max() < self.n_facilities):
            raise DeclarationError(
                f"P must hold indices in 0..{self.n_facilities - 1}; pass indices of facilities"
            )
        return np.ascontiguousarray(P, dtype=np.int64)

    def scores(self, P: ArrayLike) -> Integers:
        """Minus the sum of distances (minus lo) to each set, in units of `unit`.

        Parameters
        ----------
        P : array-like of int of shape (m, k)
            Sets of facilities.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        return -self._sums.sum(FacilityRows.costs, self._candidates(P))

    def prior(self, P: ArrayLike) -> Integers:
        """Zeros: there is no data-free part.

        Parameters
        ----------
        P : array-like of int of shape (m, k)
            Sets of facilities.

        Returns
        -------
        array of int64 of shape (m,)
            Zeros.
        """
        return np.zeros(len(self._candidates(P)), dtype=np.int64)

    def range(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        At most hi - lo for one record, and at most the distance of a facility of one set from the
        nearest of the other: by the triangle inequality in l1 and l2.

        Parameters
        ----------
        P : array-like of int of shape (m, k)
            Sets of facilities.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        neighbours = Neighbours.of(adjacency)
        P = np.sort(self._candidates(P), axis=1)
        if all_same(P):
            return 0
        if self._places is None:
            return self.spread(P, neighbours)
        # A few of the pairs often show that no bound but hi - lo holds.
        for C in P[:FEW_SETS]:
            apart = self._apart(C, P.ravel()).reshape(-1, *P.shape)
            there, back = apart.min(axis=0).max(axis=1), apart.min(axis=2).max(axis=0)
            bound = neighbours.span(-back, there)
            if self._in_units(float(bound.max()), neighbours) == self.spread(P, neighbours):
                return self.spread(P, neighbours)
        gaps = set_gaps(self._places[P], np.zeros(P.shape), str(self.metric), self._n_threads)
        bound = neighbours.span(-gaps.T, gaps)
        return self._in_units(float(bound.max()), neighbours)

    def _in_units(self, bound: float, neighbours: Neighbours) -> int:
        """A bound in record units as a range of scores."""
        sides = neighbours.changes
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

    def spread(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """A bound on `range` for any sets: hi - lo, twice that under 'replace'.

        Parameters
        ----------
        P : array-like of int of shape (m, k)
            Sets of facilities.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The bound. It is public.
        """
        return self.largest * Neighbours.of(adjacency).changes

    def at(self, members: ArrayLike) -> FacilityMoves:
        """A view around one set that scores replacements of one facility incrementally.

        Parameters
        ----------
        members : array-like of int of shape (k,)
            Indices of facilities.

        Returns
        -------
        FacilityMoves
            The view.
        """
        return FacilityMoves(self, members)

    def growth(self, members: Sequence[int] = ()) -> FacilityGrowth:
        """A view of a growing set that scores all additions of one facility.

        Parameters
        ----------
        members : sequence of int, default=()
            The set to start from.

        Returns
        -------
        FacilityGrowth
            The view.
        """
        view = FacilityGrowth(self)
        for member in members:
            view.add(member)
        return view

    def nearer(self, members: Integers, rank: int, levels: Integers) -> Integers:
        """The number of records below each of some distances. Private: to be released.

        Parameters
        ----------
        members : array-like of int of shape (k,)
            Indices of facilities.
        rank : int
            Take the distance to the rank-th nearest member, counted from 0.
        levels : array of int
            Distances in score units, minus lo.

        Returns
        -------
        array of int64
            The counts.
        """
        return self._sums.sum(FacilityRows.nearer, members, rank, levels)

    def narrowed(self, low: int, high: int) -> FacilityObjective:
        """The same records with stored distances clipped further.

        A record's integers still depend on that record and the facility alone.

        Parameters
        ----------
        low, high : int
            The new bounds, in score units above lo.

        Returns
        -------
        FacilityObjective
            The objective. Its range is at most high - low for one record.
        """
        if not 0 <= low < high <= self.largest:
            raise DeclarationError(
                f"low ({low}) and high ({high}) must increase within 0..{self.largest}; pass "
                f"bounds "
                "in score units above lo"
            )
        narrow = self._over(self._sums.viewed(FacilityRows.narrowed, low, high))
        narrow.clip = (self.clip[0] + low * self.unit, self.clip[0] + high * self.unit)
        narrow.largest = high - low
        return narrow


def _ruler(
    domain: Domain, places: Floats, clip: tuple[float, float], metric: str, bits: int
) -> Ruler:
    """How distances of the domain's records to these places are stored.

    A rule of the domain alone, so that records have one unit wherever they are stored.
    """
    if domain.width != places.shape[1]:
        raise InputError(
            f"X has {domain.width} columns but facilities {places.shape[1]}; pass equal columns"
        )
    unit = float(domain.record_units(uniform=True)[0])
    whole = np.rint(places / unit)
    # No distance exceeds the widest; a clip beyond it is no clip.
    reach = np.maximum(np.abs(domain.low), np.abs(domain.high)) / unit
    sides = np.abs(whole).max(axis=0) + reach
    widest = float(sides.sum() if metric == "l1" else np.ceil(np.sqrt((sides**2).sum())))
    if sides.max() > 32767 or widest >= 2.0**31 - 1:
        raise DeclarationError(
            "facilities are too far outside the domain for exact distances; pass a domain that "
            "contains them"
        )
    low, high = (round(min(bound / unit, widest)) for bound in clip)
    ruler = Ruler(whole, metric, bits, low, high, 0, domain.whole_bounds)
    while ruler.rounded(high - low) >= 1 << bits:
        ruler = replace(ruler, shift=ruler.shift + 1)
    return ruler


def _check_places(facilities: object) -> Floats:
    places = np.asarray(facilities, dtype=np.float64)
    if places.ndim != 2 or places.size == 0 or not np.isfinite(places).all():
        raise DeclarationError(
            f"facilities (shape {places.shape}) must be a non-empty, finite array; pass places "
            "(f, d)"
        )
    return places


def check_clip(clip: tuple[float, float]) -> tuple[float, float]:
    """Public bounds of a distance, as floats; refuse what is not a pair that increases from 0."""
    try:
        low, high = (float(bound) for bound in clip)
    except (TypeError, ValueError):
        raise DeclarationError("clip must be two numbers; pass clip=(lo, hi)") from None
    if not (math.isfinite(high) and 0 <= low < high):
        raise DeclarationError(
            f"clip ({low}, {high}) must increase from 0 or more to a finite bound; pass clip=(lo, "
            f"hi)"
        )
    return low, high


def spanned_box(places: Floats) -> Box:
    """The facilities' bounding box, widened to eighths of the power of two that covers it."""
    step = 2.0 ** (math.frexp(max(float(np.abs(places).max()), 1e-300))[1] - 3)
    return Box(
        np.floor(places.min(axis=0) / step) * step, np.ceil(places.max(axis=0) / step) * step
    )


class FacilityMoves:
    """The sets that differ from a parent in one facility; two rows are read instead of k.

    Parameters
    ----------
    objective : FacilityObjective
        The objective.
    members : array-like of int of shape (k,)
        The parent.

    See Also
    --------
    privfit.FacilityObjective.at : Makes it.

    Examples
    --------
    >>> from privfit import FacilityObjective
    >>> objective = FacilityObjective([[0.0], [1.0]], [[0.0], [0.5], [1.0]], clip=(0, 1))
    >>> objective.at([0, 1]).candidates([1], [2]).tolist()
    [[0, 2]]
    """

    def __init__(self, objective: FacilityObjective, members: ArrayLike) -> None:
        self._objective = objective
        self._members = objective._candidates(np.asarray(members)[None])[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    @property
    def members(self) -> Integers:
        """The parent."""
        return self._members.copy()

    w = model = members  # as searches call it

    def _moves(self, which: ArrayLike, facilities: ArrayLike) -> tuple[Integers, Integers]:
        which, facilities = np.atleast_1d(np.asarray(which)), np.atleast_1d(np.asarray(facilities))
        k = len(self._members)
        if which.ndim != 1 or which.shape != facilities.shape:
            raise DeclarationError(
                f"which (shape {which.shape}) and facilities (shape {facilities.shape}) must be "
                "vectors of one length; pass one facility for each position"
            )
        if which.dtype.kind not in "iu" or (
            which.size and not (0 <= which.min() and which.max() < k)
        ):
            raise DeclarationError(
                f"which must hold positions in 0..{k - 1}; pass members to replace"
            )
        if which.size:
            facilities = self._objective._candidates(facilities[:, None])[:, 0]
        return which.astype(np.int64), facilities.astype(np.int64)

    def candidates(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """The changed sets themselves.

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The position that each move replaces.
        facilities : array-like of int of shape (m,)
            The new facilities.

        Returns
        -------
        array of int of shape (m, k)
            The sets.
        """
        which, facilities = self._moves(which, facilities)
        P = np.tile(self._members, (len(which), 1))
        P[np.arange(len(which)), which] = facilities
        return P

    def scores(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """The scores with member which[i] replaced by facilities[i].

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The position that each move replaces.
        facilities : array-like of int of shape (m,)
            The new facilities.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        which, facilities = self._moves(which, facilities)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        if which.size > 2 * self._objective.n_facilities:  # one pass serves all swaps
            return self.all_scores()[which, facilities]
        return -self._objective._sums.sum(FacilityRows.swapped, self._members, which, facilities)

    def all_scores(self) -> Integers:
        """The scores with member i replaced by facility j, all in one pass.

        Returns
        -------
        array of int64 of shape (k, f)
            The scores. They are private.
        """
        return -self._objective._sums.sum(FacilityRows.all_swapped, self._members)

    def prior(self, which: ArrayLike, facilities: ArrayLike) -> Integers:
        """Zeros: there is no data-free part.

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The position that each move replaces.
        facilities : array-like of int of shape (m,)
            The new facilities.

        Returns
        -------
        array of int64 of shape (m,)
            Zeros.
        """
        return np.zeros(len(self._moves(which, facilities)[0]), dtype=np.int64)

    def range(self, which: ArrayLike, facilities: ArrayLike, adjacency: Adjacency) -> int:
        """The range of these sets' scores between neighbours, in score units, rounded up.

        If there are many moves, not all pairs are compared. Two sets that differ from the parent in
        one member each differ for a record by at most the distance of a newcomer, or of the member
        that left, from the nearest of those that stayed: at most its second nearest in the parent.

        Parameters
        ----------
        which : array-like of int of shape (m,)
            The position that each move replaces.
        facilities : array-like of int of shape (m,)
            The new facilities.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        neighbours, objective = Neighbours.of(adjacency), self._objective
        which, facilities = self._moves(which, facilities)
        if len(which) <= FEW_MOVES:
            return objective.range(self.candidates(which, facilities), neighbours)
        if objective._places is None or len(self._members) == 1:
            return objective.spread(self._members[None], neighbours)
        met = np.union1d(facilities, self._members)
        second = np.partition(objective._apart(self._members, met), 1, axis=0)[1]
        return objective._in_units(neighbours.changes * float(second.max()), neighbours)

    def step(self, which: int, facility: int) -> None:
        """Replace one facility of the parent.

        Parameters
        ----------
        which : int
            The position to replace.
        facility : int
            The new facility.
        """
        self._members = self.candidates([which], [facility])[0]


class FacilityGrowth:
    """A set to which one facility at a time is added; all additions are scored in one pass."""

    def __init__(self, objective: FacilityObjective) -> None:
        self._objective = objective
        self._members: list[int] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of private records>"

    @property
    def members(self) -> Integers:
        """The set so far."""
        return np.array(self._members, dtype=np.int64)

    def scores(self) -> Integers:
        """int64 (f,): the scores of the set with each facility added."""
        return -self._objective._sums.sum(FacilityRows.grown, self.members)

    def range(self, adjacency: Adjacency) -> int:
        """The range of these scores between neighbours, in score units, rounded up.

        With f or g added to a set C, a record's costs differ by at most the distance of g from the
        nearest of C and f; hence by the largest distance of a facility from C, or under replace,
        where two records do so in opposite directions, by the two largest together. Never by more
        than hi - lo for a record.
        """
        neighbours, objective = Neighbours.of(adjacency), self._objective
        if objective.n_facilities == 1:
            return 0
        if objective._places is None:
            return objective.spread(self.members, neighbours)
        sides = neighbours.changes
        if self._members:
            gaps = objective._apart(self.members, np.arange(objective.n_facilities)).min(axis=0)
            return objective._in_units(float(np.sort(gaps)[-sides:].sum()), neighbours)
        width = np.ptp(objective._places, axis=0)  # no two facilities are farther apart
        apart = width.sum() if objective.metric == "l1" else math.sqrt((width**2).sum())
        return objective._in_units(sides * float(apart), neighbours)

    def covered(self, radius: int) -> Integers:
        """int64 (f,): the records within the radius of each facility and of no member.

        The radius is in score units, above lo. One record changes one count by at most 1, in one
        direction for all facilities.
        """
        farthest = max(self._objective.largest - 1, 0)
        if not 0 <= radius <= farthest:
            raise DeclarationError(
                f"radius ({radius}) must lie in 0..{farthest}; pass a distance below hi in score "
                "units"
            )
        return self._objective._sums.sum(FacilityRows.covered, self.members, radius)

    def add(self, facility: int) -> None:
        """Add a facility."""
        self._members.append(int(self._objective._candidates([[facility]])[0, 0]))

    def counts(self) -> Integers:
        """int64 (k,): the number of records nearest to each member, ties going to the first."""
        return self._objective._sums.sum(FacilityRows.nearest_counts, self.members)
