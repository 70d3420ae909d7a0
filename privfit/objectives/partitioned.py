"""Objectives over records that lie in parts.

A score is a sum over records of integers, so the score of all records is the sum of their parts'
scores, bit for bit. A *part* holds an ordinary objective over its own records; a *partitioned
objective* has the interface of the ordinary one, so no algorithm knows the difference: ranges,
units, priors and grids are functions of the domain and the candidates, and what needs records goes
to `Parts.sum`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from privfit.base.typing import Array, Floats, Integers
from privfit.base.validation import is_partitioned
from privfit.domains import Domain
from privfit.objectives.center_moves import CenterMoves
from privfit.objectives.centers import CentersObjective
from privfit.objectives.facility import (
    FEW_COLUMNS,
    FacilityGrowth,
    FacilityMoves,
    FacilityObjective,
    Metric,
)
from privfit.objectives.linear import LinearObjective
from privfit.objectives.linear_moves import LinearMoves
from privfit.objectives.record import RecordObjective
from privfit.objectives.smooth import SmoothSums
from privfit.records import place
from privfit.records.binary import BinaryRecords, ClassCounts
from privfit.records.packing import check_domain
from privfit.records.parts import Make, Part, Parts, Several, as_table


def _refuse(what: str) -> NoReturn:
    raise ValueError(
        f"{what} needs all records at once, but they lie in parts; pass an array in memory, or a "
        "solver that takes sums alone"
    )


# ------------------------------------------------------------------------------------ linear models


class LinearPart(Part):
    """Answers of a `LinearObjective` over the records of one part."""

    _records: LinearObjective

    def against(self, head: int, question: str, *arguments: Any) -> Integers:
        """The answer for one of several classes against the rest; only caps outlast another."""
        if self._records.head != head:
            self._records = self._records.against(head)
            self._kept = {name: kept for name, kept in self._kept.items() if name == "caps"}
        answer: Integers = getattr(self, question)(*arguments)
        return answer

    def scores(self, P: Floats) -> Integers:
        return self._records.scores(P)

    def gradient(self, w: Floats, cap: float, *image: Any) -> Integers:
        """The gradient, each record capped by its image under a linear map if one is given."""
        if not image:
            return self._records.gradient(w, cap)
        caps = self._memo("caps", image, lambda: self.keep(self._records.caps(*image)))
        return self._records.gradient(w, cap, caps)

    def second_moments(self) -> Integers:
        return self._records.second_moments()

    def label_counts(self) -> Integers:
        return self._records.label_counts()

    def followed_gradient(self, w: Floats, cap: int) -> Integers:
        """The gradient with a cap in residual units."""
        if self.passing:
            return self._records.follower()(w, cap)
        return self._memo("follower", (), self._records.follower)(w, cap)

    def slope_sums(self, loss: tuple[Any, ...], *at: Any) -> Integers:
        """`SmoothSums.slopes` of a loss and a clip."""
        return self._smooth(*loss).slopes(*at)

    def bend_sums(self, loss: tuple[Any, ...], *at: Any) -> Integers:
        """`SmoothSums.bends` of a loss and a clip."""
        return self._smooth(*loss).bends(*at)

    def size_counts(self, numbers: Integers, radii: Floats) -> Integers:
        return self._records.size_counts(numbers, radii)

    def _smooth(self, *loss: Any) -> SmoothSums:
        if self.passing:
            return self._records.smooth(*loss)
        return self._memo("smooth", loss, lambda: self._records.smooth(*loss))

    def moved_scores(self, w: Floats, coords: Integers, steps: Floats) -> Integers:
        """The scores of w + steps[i] e_coords[i]."""
        if self.passing:  # margins of one candidate serve few moves before they are gone
            return self._records.scores(moved(w, coords, steps))
        return self._around(w).scores(coords, steps)

    def _around(self, w: Floats) -> LinearMoves:
        """The view around w: the last one if it stood there, or one step away."""
        _, view = self._kept.pop("moves", (None, None))  # a view that fails midway is not kept
        if view is not None:
            before = view.w
            changed = np.flatnonzero(before != w)
            if len(changed) == 1:
                view.step(int(changed[0]), float((w - before)[changed[0]]))
        if view is None or len(changed) > 1:
            view = self._records.at(w)
        self._kept["moves"] = (), view
        return view


def moved(w: Floats, coords: Integers, steps: Floats) -> Floats:
    """(m, n_weights): the candidates w + steps[i] e_coords[i]."""
    P = np.tile(w, (len(coords), 1))
    P[np.arange(len(coords)), coords] += steps
    return P


@dataclass(frozen=True, repr=False)
class PartitionedCaps:
    """Caps of single records, by the image that they follow from: each part has its own."""

    image: tuple[Any, ...] = ()


UNCAPPED = PartitionedCaps()


class PartitionedLinear(LinearObjective):
    """A `LinearObjective` over parts; the same scores, gradients and ranges."""

    layout = "parts"  # each part has its own

    def __init__(self, parts: Parts, loss: str, domain: Domain, **settings: Any) -> None:
        self._parts = self._all = parts
        super().__init__(None, None, loss, domain, **settings)
        if self.n_classes is not None:
            self._take_side()

    def _take_side(self) -> None:
        self._parts = _Against(self._all, self.head)

    def _load(self, X: Any, y: Any, domain: Domain | None, layout: str) -> None:
        assert domain is not None
        self.n_records, self.n_features = self._parts.n_records, self._parts.n_features
        self.domain = domain.bind(self.n_features)

    def scores(self, P: ArrayLike) -> Integers:
        return self._parts.sum("scores", self._scored(P)[0][:, : self.n_weights])

    def joined(self, others: Sequence[LinearObjective]) -> LinearObjective:
        several = Several([one._all for one in _alike(self, others)])
        result = self._emptied(others)
        result._all = result._parts = several
        if result.n_classes is not None:
            result._take_side()
        return cast(LinearObjective, result)

    def gradient(self, w: ArrayLike, cap: float, caps: Any = UNCAPPED) -> Integers:
        if not isinstance(caps, PartitionedCaps):
            raise TypeError(
                f"caps ({type(caps).__name__}) must be with the records, which lie in parts; pass "
                "objective.caps(...) of this objective"
            )
        return self._parts.sum("gradient", np.asarray(w, dtype=np.float64), cap, *caps.image)

    def caps(self, *image: Any) -> Any:
        """What `gradient` takes as caps; those of single records stay with the parts."""
        return PartitionedCaps(image)

    def second_moments(self) -> Integers:
        return self._parts.sum("second_moments")

    def label_counts(self) -> Integers:
        return self._parts.sum("label_counts")

    def follower(self) -> Callable[[Floats, int], Integers]:
        return lambda w, cap: self._parts.sum("followed_gradient", w, cap)

    def smooth(self, *loss: Any) -> SmoothSums:
        return _PartitionedSmooth(self._parts, loss)

    def size_counts(self, numbers: Integers, radii: Floats) -> Integers:
        return self._parts.sum("size_counts", numbers, radii)

    def at(self, w: ArrayLike) -> LinearMoves:
        return _PartitionedMoves(self, w)

    def labelled_blocks(self, rows: int) -> NoReturn:
        _refuse("this solver")


class _Against(Parts):
    """Parts that are asked about one class against the rest."""

    def __init__(self, parts: Parts, head: int) -> None:
        self.n_records, self.n_features = parts.n_records, parts.n_features
        self._parts, self._head = parts, head

    def sum(self, question: str, *arguments: Any) -> Integers:
        return self._parts.sum("against", self._head, question, *arguments)


class _PartitionedSmooth(SmoothSums):
    """`SmoothSums` whose curvatures are with the parts."""

    def __init__(self, parts: Parts, loss: tuple[Any, ...]) -> None:
        self._parts, self._loss = parts, loss

    def slopes(self, w: Integers, bits: Integers, fine: bool = False) -> Integers:
        return self._parts.sum("slope_sums", self._loss, w, bits, fine)

    def bends(self, w: Integers, bits: Integers, v: Integers) -> Integers:
        return self._parts.sum("bend_sums", self._loss, w, bits, v)


class _PartitionedMoves(LinearMoves):
    """`LinearMoves` whose margins are with the parts."""

    _objective: PartitionedLinear

    def _move_to(self, w: Floats) -> None:
        self._parent = None
        P, whole = self._objective._candidates(w[None])
        self._whole, self._norm = whole[0], float(self._objective.domain.norm(P)[0])

    def step(self, coord: int, step: float) -> None:
        self._move_to(self.candidates([coord], [step])[0])

    def scores(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        coords, whole, _ = self._moves(coords, steps)
        if coords.size == 0:
            return np.empty(0, dtype=np.int64)
        steps = whole * self._objective.domain.weight_units()[coords]
        self._objective._scored(self.candidates(coords, steps))  # may all records be summed?
        return self._objective._parts.sum("moved_scores", self.w, coords, steps)


# -------------------------------------------------------------------------------- cells and centres


class _CellPart(Part):
    """Counts of cells, for records that lie in a box."""

    def cell_counts(self, axes: Array, codes: Array, shift: Any) -> Integers:
        """How many records lie in each of these cells."""
        cells = self._memo("cells", (axes,), lambda: self.keep(np.sort(self._records.cells(axes))))
        first = np.searchsorted(cells, codes << shift)
        return np.asarray(np.searchsorted(cells, (codes + np.uint64(1)) << shift) - first)


@dataclass(frozen=True, repr=False)
class _PartitionedCells:
    """Cells of records that `privfit.privacy.privtree` counts where they are."""

    parts: Parts
    axes: Array

    def count(self, codes: Array, shift: Any) -> Integers:
        return self.parts.sum("cell_counts", self.axes, codes, shift)


class CentersPart(_CellPart):
    """Answers of a `CentersObjective` over the records of one part."""

    _records: CentersObjective

    def scores(self, P: Floats) -> Integers:
        return self._records.scores(P)

    def clusters(self, centers: Floats, *clip: int) -> Integers:
        """(k, 1 + d): counts and sums, of residuals if they are clipped."""
        found = self._records.residuals(centers, *clip) if clip else self._records.lloyd(centers)
        return np.column_stack(found)

    def grid_counts(self, parts: Integers) -> Integers:
        return self._records.grid_counts(parts)

    def moved_scores(self, centers: Floats, which: Integers, new: Floats) -> Integers:
        """The scores with centre which[i] replaced by new[i]."""
        view = self._records.at(centers) if self.passing else self._memo(
            "moves", (centers,), lambda: self._records.at(centers)
        )  # fmt: skip
        return view.scores(which, new)


class PartitionedCenters(CentersObjective):
    """A `CentersObjective` over parts; the same scores, sums and ranges."""

    def __init__(self, parts: Parts, n_clusters: int, domain: Domain, **settings: Any) -> None:
        self._parts = parts
        super().__init__(None, n_clusters, domain, **settings)

    def _load(self, X: Any, domain: Domain | None) -> None:
        assert domain is not None
        self.n_records, self.n_features = self._parts.n_records, self._parts.n_features
        self.domain = self._roomy(domain.bind(self.n_features))

    def scores(self, P: ArrayLike) -> Integers:
        self._scored(P)
        return self._parts.sum("scores", np.asarray(P, dtype=np.float64))

    def joined(self, others: Sequence[CentersObjective]) -> CentersObjective:
        several = Several([one._parts for one in _alike(self, others)])
        result = self._emptied(others)
        result._parts = several
        return cast(CentersObjective, result)

    def lloyd(self, centers: ArrayLike) -> tuple[Integers, Integers]:
        return self._summed(centers)

    def residuals(self, centers: ArrayLike, radius: int, norm: int) -> tuple[Integers, Integers]:
        return self._summed(centers, radius, norm)

    def _summed(self, centers: ArrayLike, *clip: int) -> tuple[Integers, Integers]:
        found = self._parts.sum("clusters", np.asarray(centers, dtype=np.float64), *clip)
        return found[:, 0], found[:, 1:]

    def grid_counts(self, parts: ArrayLike) -> Integers:
        return self._parts.sum("grid_counts", np.asarray(parts))

    def cells(self, axes: ArrayLike) -> Any:
        """What counts cells; the records' own codes stay with the parts."""
        return _PartitionedCells(self._parts, np.asarray(axes))

    def decoded(self) -> NoReturn:
        _refuse("this solver")

    def at(self, centers: ArrayLike) -> CenterMoves:
        return _PartitionedCenterMoves(self, centers)


class _PartitionedCenterMoves(CenterMoves):
    """`CenterMoves` whose nearest centres are with the parts."""

    _objective: PartitionedCenters

    def _load(self) -> None:
        self._state, self._shift = None, 0

    def scores(self, which: ArrayLike, centers: ArrayLike) -> Integers:
        which, centers = self._moves(which, centers)
        if which.size == 0:
            return np.empty(0, dtype=np.int64)
        unit = self._objective._record_unit
        self._objective._check_room(self._covers(which, centers / unit))
        return self._objective._parts.sum("moved_scores", self.centers, which, centers)


# --------------------------------------------------------------------------------------- facilities


class FacilityPart(_CellPart):
    """Answers of a `FacilityObjective` over the records of one part.

    `bounds` are those of distances that were clipped further: none, or two in score units. Of few
    columns records are kept, not their distances, and a part that streams by works these out again
    for each question: for two columns that takes as long as reading them, and no room on disk.
    """

    _records: FacilityObjective

    def _sum(self, bounds: tuple[int, ...], ask: Callable[[FacilityObjective], Any]) -> Integers:
        """The sum of what is asked of all records, or of a few of them at a time."""
        if self.passing:
            return sum(ask(_clipped(strip, bounds)) for strip in self._records.strips())
        return ask(self._memo("narrow", (bounds,), lambda: _clipped(self._records, bounds)))

    def scores(self, bounds: tuple[int, ...], P: Integers) -> Integers:
        return self._sum(bounds, lambda objective: objective.scores(P))

    def moved_scores(
        self, bounds: tuple[int, ...], members: Integers, which: Integers, facilities: Integers
    ) -> Integers:
        """The scores with member which[i] replaced by facilities[i]."""
        return self._sum(bounds, lambda objective: objective.at(members).scores(which, facilities))

    def all_moved_scores(self, bounds: tuple[int, ...], members: Integers) -> Integers:
        """(k, f): the scores with any member replaced by any facility."""
        return self._sum(bounds, lambda objective: objective.at(members).all_scores())

    def grown_scores(self, bounds: tuple[int, ...], members: list[int]) -> Integers:
        """The scores of the members with each facility added."""
        return self._sum(bounds, lambda objective: objective.growth(members).scores())

    def covered(self, bounds: tuple[int, ...], members: list[int], radius: int) -> Integers:
        return self._sum(bounds, lambda objective: objective.growth(members).covered(radius))

    def nearest_counts(self, bounds: tuple[int, ...], members: list[int]) -> Integers:
        """How many records are nearest to each member."""
        return self._sum(bounds, lambda objective: objective.growth(members).counts())

    def nearer(
        self, bounds: tuple[int, ...], members: Integers, rank: int, levels: Integers
    ) -> Integers:
        """How many records have less than each of these distances to one of the members."""
        return self._sum(bounds, lambda objective: objective.nearer(members, rank, levels))


def _clipped(objective: FacilityObjective, bounds: tuple[int, ...]) -> FacilityObjective:
    return objective.narrowed(*bounds) if bounds else objective


class PartitionedFacility(FacilityObjective):
    """A `FacilityObjective` over parts; the same scores, counts and ranges."""

    _bounds: tuple[int, ...] = ()  # of distances that were clipped further

    def __init__(self, parts: Parts, *settings: Any, **more: Any) -> None:
        self._parts = parts
        super().__init__(None, *settings, **more)

    def _load(self, X: Any, domain: Domain | None) -> None:
        self.n_records = self._parts.n_records
        self.domain = None if domain is None else domain.bind(self._parts.n_features)

    def _fill(self, X: Any) -> None:
        """Distances are with the parts."""

    def _fill_own(self, records: Any, facilities: Any, metric: Callable[..., Any]) -> None:
        """Distances are with the parts."""

    def joined(self, others: Sequence[FacilityObjective]) -> FacilityObjective:
        several = Several([one._parts for one in _alike(self, others)])
        result = self._emptied(others)
        result._parts = several
        return cast(FacilityObjective, result)

    def _ask(self, question: str, *arguments: Any) -> Integers:
        return self._parts.sum(question, self._bounds, *arguments)

    def scores(self, P: ArrayLike) -> Integers:
        return self._ask("scores", self._candidates(P))

    def nearer(self, members: Integers, rank: int, levels: Integers) -> Integers:
        return self._ask("nearer", members, rank, levels)

    def _narrow(self, low: int, high: int) -> None:
        first = self._bounds[0] if self._bounds else 0
        self._bounds = first + low, first + high

    def cells(self, axes: ArrayLike) -> Any:
        """What counts cells; the records' own codes stay with the parts."""
        self.check_cells()
        return _PartitionedCells(self._parts, np.asarray(axes))

    def at(self, members: ArrayLike) -> FacilityMoves:
        return _PartitionedSwaps(self, members)

    def _empty_growth(self) -> FacilityGrowth:
        return _PartitionedGrowth(self)


class _PartitionedSwaps(FacilityMoves):
    """`FacilityMoves` whose nearest members are with the parts."""

    _objective: PartitionedFacility

    def _load(self) -> None:
        """Each question names the members."""

    def _scores(self, which: Integers, facilities: Integers) -> Integers:
        return self._objective._ask("moved_scores", self._members, which, facilities)

    def all_scores(self) -> Integers:
        return self._objective._ask("all_moved_scores", self._members)


class _PartitionedGrowth(FacilityGrowth):
    """`FacilityGrowth` whose nearest members are with the parts."""

    _objective: PartitionedFacility

    def _load(self) -> None:
        """Each question names the members."""

    def scores(self) -> Integers:
        return self._objective._ask("grown_scores", self._members)

    def _covered(self, radius: int) -> Integers:
        return self._objective._ask("covered", self._members, radius)

    def _join(self, facility: int) -> None:
        """The members are all there is to know."""

    def counts(self) -> Integers:
        return self._objective._ask("nearest_counts", self._members)


# ----------------------------------------------------------------------------- anybody's own scores


class RecordPart(Part):
    """Answers of a `RecordObjective` over the records of one part."""

    _records: RecordObjective

    def scores(self, P: Any) -> Integers:
        return self._records.scores(P)

    def check(self, P: Any) -> Integers:
        """Nothing, unless the score is refused."""
        self._records.check(P)
        return np.zeros(0, dtype=np.int64)


class PartitionedRecords(RecordObjective):
    """A `RecordObjective` over parts."""

    def __init__(self, parts: Parts, *settings: Any, **more: Any) -> None:
        self._parts = parts
        super().__init__(None, *settings, **more)

    def _load(self, records: Any) -> None:
        self.n_records = self._parts.n_records

    def check(self, P: Any) -> None:
        self._parts.try_one("check", P)

    def scores(self, P: Any) -> Integers:
        return self._parts.sum("scores", P)


# ---------------------------------------------------------------------------------- binary features


class BinaryPart(Part):
    """Counts of the binary records of one part."""

    _records: BinaryRecords

    _n_threads = 1

    def use_threads(self, n_threads: int) -> None:
        self._n_threads = n_threads

    def counts(self, *sample: int) -> Integers:
        """(classes, d + 1): records with each feature, and all; each keeps a sample of its ones."""
        records = self._records
        if sample:
            ones, key = sample
            records = records.at_most(ones, key, self._n_threads)
        found = records.counts(self._n_threads)
        return np.column_stack([found.ones, found.sizes])


@dataclass(frozen=True, repr=False)
class PartitionedBinary:
    """What `BinaryRecords` count, over parts."""

    parts: Parts
    n_classes: int
    sample: tuple[int, ...] = ()

    @property
    def n_records(self) -> int:
        """How many records there are; private if records are added or removed."""
        return self.parts.n_records

    @property
    def n_features(self) -> int:
        """How many features a record may have."""
        return self.parts.n_features

    def at_most(self, ones: int, key: int, n_threads: int | None = None) -> PartitionedBinary:
        """The same records, those with more ones reduced to a sample by the coins of `key`."""
        return replace(self, sample=(ones, key))

    def counts(self, n_threads: int | None = None) -> ClassCounts:
        """Exact counts."""
        table = self.parts.sum("counts", *self.sample)
        return ClassCounts(table[:, :-1], table[:, -1])


# ---------------------------------------------------------------- objectives wherever records lie


def _alike(first: Any, others: Sequence[Any]) -> tuple[Any, ...]:
    """All of these objectives, if they are of one kind."""
    if any(type(one) is not type(first) for one in others):
        raise TypeError(
            f"others must lie in parts, like the {type(first).__name__} that they join; pass "
            "objectives of Streams or Dask collections"
        )
    return (first, *others)


def linear_objective(
    X: Any,
    y: Any,
    loss: str = "logistic",
    domain: Domain | None = None,
    *,
    labels: Callable[[Any], Any] | None = None,
    n_threads: int | None = None,
    **settings: Any,
) -> LinearObjective:
    """A `LinearObjective` of records wherever they lie; `labels(y)` are y as it takes them."""
    domain = check_domain(domain, "LinearObjective")
    make: Any = partial(_linear, loss=loss, domain=domain, labels=labels, **settings)
    if not is_partitioned(X):
        return make(X, y, n_threads=n_threads)
    parts = place(X, y, partial(_part_of, LinearPart, make), n_threads)
    return PartitionedLinear(parts, loss, domain, n_threads=n_threads, **settings)


def _linear(X: Any, y: Any, *, labels: Any, domain: Any, **settings: Any) -> LinearObjective:
    y = y if labels is None else labels(y)
    return LinearObjective(as_table(X, domain), y, domain=domain, **settings)


def centers_objective(
    X: Any,
    n_clusters: int,
    domain: Domain | None = None,
    power: int = 2,
    n_threads: int | None = None,
    *,
    adjacency: str = "replace",
) -> CentersObjective:
    """A `CentersObjective` of records wherever they lie."""
    domain = check_domain(domain, "CentersObjective")
    settings: Any = {"power": power, "adjacency": adjacency}
    make: Any = partial(_centers, n_clusters=n_clusters, domain=domain, **settings)
    if not is_partitioned(X):
        return make(X, n_threads=n_threads)
    parts = place(X, None, partial(_part_of, CentersPart, make), n_threads)
    return PartitionedCenters(parts, n_clusters, domain, n_threads=n_threads, **settings)


def _centers(X: Any, y: None = None, *, domain: Any, **settings: Any) -> CentersObjective:
    return CentersObjective(as_table(X, domain), domain=domain, **settings)


def facility_objective(
    X: Any,
    facilities: Any,
    clip: tuple[float, float],
    domain: Domain | None = None,
    n_threads: int | None = None,
    *,
    metric: Metric = "l1",
) -> FacilityObjective:
    """A `FacilityObjective` of records wherever they lie; a metric of your own is sent there."""
    make: Any = partial(_facility, facilities=facilities, clip=clip, domain=domain, metric=metric)
    if not is_partitioned(X):
        return make(X, n_threads=n_threads)
    few = not callable(metric) and np.shape(facilities)[-1:] <= (FEW_COLUMNS,)
    parts = place(
        X, None, partial(_part_of, FacilityPart, make), n_threads, 0 if few else len(facilities)
    )
    return PartitionedFacility(parts, facilities, clip, domain, n_threads, metric=metric)


def _facility(X: Any, y: None = None, *, domain: Any, **settings: Any) -> FacilityObjective:
    return FacilityObjective(as_table(X, domain), domain=domain, **settings)


def record_objective(
    records: Any, score: Callable[[Any, Any], Any], low: float, high: float, **settings: Any
) -> RecordObjective:
    """A `RecordObjective` of records wherever they lie; a table's block is a dict of arrays.

    Cells of CSV files are texts, None where a record lacks the field; your function reads them.
    """
    make: Any = partial(_own, score=score, low=low, high=high, **settings)
    if not is_partitioned(records):
        return make(records)
    parts = place(records, None, partial(_part_of, RecordPart, make))
    return PartitionedRecords(parts, score, low, high, **settings)


def _own(records: Any, y: None = None, **settings: Any) -> RecordObjective:
    if isinstance(records, Mapping):
        records = {name: _array(column) for name, column in records.items()}
    return RecordObjective(records, **settings)


def _array(column: Any) -> Any:
    """A column as numpy has it; missing numbers of Arrow are NaN, missing texts None."""
    if hasattr(getattr(column, "type", None), "index_type"):  # a dictionary of Arrow
        column = column.cast(column.type.value_type)
    return np.asarray(column)


def _part_of(kind: type[Part], make: Make, X: Any, y: Any) -> Part:
    return kind(make(X, y))
