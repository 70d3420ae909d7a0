"""Labelled records packed for linear models: losses, gradients, moves and moments of candidates.

Candidates are whole numbers of grid units (m, d + 1), the intercept last; the caller guarantees
that their margins are exact. The width of integers that is certain to hold them is chosen here,
from the domain alone: it affects speed and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit._kernels.records import LANE_WIDTH, RESIDUAL_UNIT, Loss
from privfit.base.typing import Floats, Integers
from privfit.domains import Domain
from privfit.domains.codes import Codes
from privfit.records.candidates import wrap32
from privfit.records.codes import JOINT, pack_codes, plan_of
from privfit.records.layouts import (
    NO_CAPS,
    Caps,
    CodeLayout,
    DenseLayout,
    Records,
    layout_of,
)
from privfit.records.packing import (
    check_labels,
    check_records,
    joined,
    pack,
)
from privfit.records.parents import DenseParent, Follower, SparseParent
from privfit.records.rows import KernelCalls, Rows
from privfit.records.smooth import Smoothing, SmoothPass, margins, sizes

MOST_RESIDUAL = round(1 / RESIDUAL_UNIT)
CAPPED = 1 << 15  # records whose caps are computed at a time
FEW_STEPS = 4  # by which margins follow a candidate; of more they are computed afresh


@dataclass(frozen=True)
class LossGrid:
    """A loss, its weight C, and the bits of a score."""

    name: str
    C: float
    bits: int


@dataclass(frozen=True, eq=False)
class Image:
    """A public map of records, and a bound on the length of a record's gradient in its image.

    A record is mapped to sum_j x_j columns[j] + columns[d], with x_j in record units; its sizes, or
    their squares, are divided by 2^shift, rounded up and added. Its residual is capped at bound /
    length.
    """

    columns: Integers
    shift: int
    squared: bool
    bound: int

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """A hashable identity."""
        return self.columns, self.shift, self.squared, self.bound


class LinearRows(Rows):
    """Labelled records, and the loss in question.

    With several classes, `head` is class 1 and all others are class 0.
    """

    def __init__(
        self,
        records: Records,
        domain: Domain,
        loss: LossGrid,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(records.runs, records.n_features, n_threads)
        self.domain, self.loss, self.head, self.weights = domain, loss, 0, (1.0, 1.0)
        self.layout = layout_of(records, self._kernel_loss(), domain.grid.a)
        # The largest size of each column, 1 for the intercept, in margins of a candidate's unit.
        largest = np.append(np.maximum(np.abs(domain.low), np.abs(domain.high)), 1.0)
        self._reaches = largest * domain.weight_units()
        self._narrowest = _narrowest(domain, loss)

    def _kernel_loss(self) -> Loss:
        loss, grid = self.loss, self.domain.grid
        return Loss(loss.name, grid.a, grid.b, loss.bits, loss.C, *self.weights)

    @classmethod
    def pack(
        cls,
        X: Any,
        y: Any,
        *,
        domain: Domain,
        loss: Callable[[Domain], LossGrid],
        layout: str = "auto",
        joint: int = JOINT,
        n_classes: int | None = None,
        labels: Callable[[Any], Any] | None = None,
        n_threads: int | None = None,
    ) -> LinearRows:
        """Check and pack records; the loss follows from the domain once its width is known."""
        X, domain = check_records(X, domain, "LinearObjective")
        groups = check_labels(y if labels is None else labels(y), X.shape[0], n_classes)
        plan = plan_of(X, joint) if layout == "auto" and isinstance(X, Codes) else None
        records = (
            pack(X, domain, groups, layout=layout, n_threads=KernelCalls(n_threads).packers(X))
            if plan is None
            else pack_codes(X, plan, groups, 1 << domain.grid.a, keep=False)
        )
        return cls(records, domain, loss(domain), n_threads)

    @property
    def records(self) -> Records:
        """The packed records."""
        return self.layout.records

    @property
    def kind(self) -> str:
        return type(self.layout).__name__

    @property
    def nbytes(self) -> int:
        return self.records.nbytes

    def joined(self, others: Sequence[LinearRows]) -> LinearRows:
        several = [one.records for one in (self, *others)]
        records = joined(several)
        rows = LinearRows(records, self.domain, self.loss, self.n_threads).against(self.head)
        return rows.weighed(*self.weights)

    def against(self, head: int) -> LinearRows:
        """A view where another class is class 1; the records are packed only once."""
        if head == self.head:
            return self
        rows = copy(self)
        records: Any = self.records.against(head)
        rows.head, rows.layout = head, replace(self.layout, records=records)
        rows.runs = records.runs
        return rows

    def weighed(self, of_rest: float, of_head: float) -> LinearRows:
        """A view where residuals of class 0 and class 1 have weights, of at most 1."""
        if (of_rest, of_head) == self.weights:
            return self
        rows = copy(self)
        rows.weights = of_rest, of_head
        rows.layout = replace(self.layout, loss=rows._kernel_loss())
        return rows

    # -------------------------------------------------------------------------- widths of integers

    def narrow(self, reach: Floats) -> NDArray[np.bool_]:
        """(m,) which margins, of at most these sizes, are certain to fit in 32 bits."""
        return np.asarray(reach < self._narrowest)

    def _norms(self, whole: Floats) -> Floats:
        return self.domain.norm(whole * self.domain.weight_units())

    def _narrow_candidates(self, whole: Floats) -> NDArray[np.bool_]:
        """(m,) which candidates' margins and weights are certain to fit in 32 bits."""
        narrow = self.narrow(np.abs(whole) @ self._reaches)  # quick, and enough for most
        if not narrow.all():
            narrow = self.narrow(self._norms(whole))
        return narrow & self.layout.fits(whole)

    def _short(self, whole: Floats) -> NDArray[np.bool_]:
        """(m,) for which the sum of weights over a sparse record's ones surely fits in 16 bits.

        It is the margin of that record with its other columns at 0, if 0 is inside the domain.
        """
        if isinstance(self.layout, DenseLayout):
            return np.zeros(len(whole), dtype=np.bool_)
        inside = (self.domain.low <= 0).all() and (self.domain.high >= 0).all()
        return np.asarray(inside & (self._norms(whole) * 2.0**self.domain.grid.b < 2.0**15))

    # ----------------------------------------------------------------------------------- questions

    def losses(self, whole: Floats) -> Integers:
        """int64 (m,): the loss of each candidate."""
        narrow = self._narrow_candidates(whole)
        if narrow.all():
            return self._narrow_losses(whole)
        result = np.empty(len(whole), dtype=np.int64)
        if narrow.any():
            result[narrow] = self._narrow_losses(whole[narrow])
        result[~narrow] = self.layout.losses_wide(whole[~narrow], self)
        return result

    def _narrow_losses(self, whole: Floats) -> Integers:
        """The same of margins that fit in 32 bits; short ones apart, if no group is added by it."""
        short = self._short(whole)
        groups = [-(-int(some) // LANE_WIDTH) for some in (short.sum(), (~short).sum(), len(short))]
        if short.all() or groups[0] + groups[1] > groups[2]:
            return self.layout.losses(whole, self, bool(short.all()))
        result = np.empty(len(whole), dtype=np.int64)
        for some, is_short in ((short, True), (~short, False)):
            if some.any():
                result[some] = self.layout.losses(whole[some], self, is_short)
        return result

    def moved_losses(
        self, whole: Floats, coords: Integers, steps: Floats, farther: float
    ) -> Integers:
        """int64 (m,): the losses of one candidate (d + 1,) moved by steps[i] along coords[i].

        No move changes a margin by more than `farther`.
        """
        whole_steps = wrap32(steps)
        if self._in_one_pass(whole, coords, whole_steps, farther):
            assert isinstance(self.layout, CodeLayout)
            most = self._most_changes(farther)
            return self.layout.moved_losses(whole, coords, whole_steps, most, self)
        # Margins of one candidate serve few moves of records that stream by.
        parent = None if self.passing else self._parent_of(whole, farther)
        if parent is None:
            P = np.tile(whole, (len(coords), 1))
            P[np.arange(len(coords)), coords] += steps
            return self.losses(P)
        answer = parent.moved_losses(coords, whole_steps, self)
        self._put("parent", (), (whole, parent))
        return answer

    def _most_changes(self, farther: float) -> int:
        """The records whose changes of the loss, by margins of `farther` each, fit in 32 bits."""
        change = farther * self.loss.C * 2.0**self.loss.bits + 2
        return int((2.0**31 - 1) / change)

    def _in_one_pass(
        self, whole: Floats, coords: Integers, steps: NDArray[np.int32], farther: float
    ) -> bool:
        """Whether one pass over coded records is faster than the records of each level by turns."""
        if not isinstance(self.layout, CodeLayout) or not self._is_narrow(whole, farther):
            return False
        if self._most_changes(farther) < 4 * self.tile_rows:
            return False
        plan = self.layout.records.plan
        touched = 1.0 if self.passing else 4 * len(plan.groups) / (plan.n_features + 1)
        return self.layout.pass_work(coords, steps) < touched * len(coords)

    def _parent_of(self, whole: Floats, farther: float) -> DenseParent | SparseParent | None:
        """Margins of this candidate, if those of all its moves fit in 32 bits."""
        if not self._is_narrow(whole, farther):
            return None
        before, parent = self._taken("parent") or (whole, None)
        if parent is None or not self._follow(parent, before, whole):
            fits = self.layout.fits(whole[None])[0]
            parent = self.layout.parent(whole, self) if fits else None
        return parent

    def _is_narrow(self, whole: Floats, farther: float) -> bool:
        """Whether one candidate's margins fit in 32 bits, even if they grow by `farther`."""
        quick = float(np.abs(whole) @ self._reaches) + farther
        return quick < self._narrowest or (
            float(self._norms(whole[None])[0]) + farther < self._narrowest
        )

    def _fits(self, whole: Floats) -> bool:
        """Whether one candidate's margins and weights are certain to fit in 32 bits."""
        return self._is_narrow(whole, 0.0) and bool(self.layout.fits(whole[None])[0])

    def _follow(self, parent: DenseParent | SparseParent, before: Floats, whole: Floats) -> bool:
        """Move the margins to this candidate in a few steps, if they and its weights still fit."""
        if before is whole:
            return True
        steps = whole - before
        changed = np.flatnonzero(steps)
        if len(changed) > FEW_STEPS or not self.layout.fits(whole[None])[0]:
            return False
        if not self._is_narrow(before, float(np.abs(steps) @ self._reaches)):
            return False
        for coord, step in zip(changed.tolist(), wrap32(steps[changed]).tolist(), strict=True):
            parent.step(coord, step)
        return True

    def gradient(self, whole: Floats, cap: int, image: Image | None = None) -> Integers:
        """int64 (d + 1,): sums of y x_j min(r, cap), the cap in residual units.

        With an image, the cap of a record is further bounded by its length there.
        """
        narrow = self._fits(whole)
        caps = NO_CAPS if image is None else self._caps(image)
        return self.layout.gradient(whole, not narrow, cap, self, caps)

    def _caps(self, image: Image) -> Caps:
        """(packed rows,): bound / length of each record's image, in residual units, at most 1."""

        def capped() -> Caps:
            columns = np.ascontiguousarray(image.columns)
            lengths = self.layout.lengths(columns, image.shift, image.squared, self)
            caps = np.empty(lengths.shape, dtype=np.int16)
            for first in range(0, len(caps), CAPPED):
                some = lengths[first : first + CAPPED]
                if image.squared:  # a root of at most 2^31 is off by 2^-51: one more is above
                    some = np.sqrt(some.astype(np.float64)).astype(np.int64) + 1
                longest = image.bound // np.maximum(some, 1)
                caps[first : first + CAPPED] = np.minimum(longest, MOST_RESIDUAL)
            return caps

        return self._stay("caps", image.key, capped)

    def followed_gradient(self, whole: Floats, cap: int) -> Integers:
        """The same as `gradient`, but fast if the last candidate was nearby."""
        narrow = self._fits(whole)
        if self.passing or not narrow or isinstance(self.layout, DenseLayout):
            return self.layout.gradient(whole, not narrow, cap, self)
        follower = self._taken("follower") or Follower(self.layout)
        answer = follower.gradient(whole, cap, self)
        self._put("follower", (), follower)
        return np.asarray(answer)

    def second_moments(self) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~', the intercept last, in units of 4^-a."""
        return self.layout.second_moments(self)

    def level_counts(self) -> Integers:
        """int64 (2, d): the records of each class at each level, of records of levels alone."""
        return self.layout.level_counts()

    def feature_moments(self, matrix: Integers) -> Integers:
        """int64 (p, p): the sum of phi phi' over records of levels, phi = matrix x~.

        x~ is 1 at a record's levels and last for the intercept, otherwise 0.
        """
        return self.layout.feature_moments(matrix)

    def label_counts(self) -> Integers:
        """int64 (2,): the records of class 0 and of class 1."""
        positive = sum(run.count for run in self.runs if run.flip == 0)
        return np.array([self.n_records - positive, positive])

    def margin_counts(self, w: Integers, shift: int, reach: int) -> Integers:
        """int64 (2, 2 reach + 1): records of class 0 and of class 1 by their margins.

        A margin is the sum of packed columns times weights, the last one added, rounded to cells
        of 2^shift units; beyond `reach` cells from 0 it counts in the last cell of its side.
        """
        z = margins(self.layout, w, self)
        cells = np.clip((z + (1 << shift >> 1)) >> shift, -reach, reach) + reach
        counts = np.zeros((2, 2 * reach + 1), dtype=np.int64)
        for run in self.runs:
            of_run = cells[run.first : run.first + run.count]
            counts[1 + run.flip] += np.bincount(of_run, minlength=2 * reach + 1)
        return counts

    def slopes(self, smoothing: Smoothing, w: Integers, bits: Integers, fine: bool) -> Integers:
        """int64 (2, 1 or 2, d + 1): see `SmoothSums.slopes`."""
        sums = self._smoothed(smoothing)
        answer = sums.slopes(self, w, bits, fine)
        self._put("smooth", smoothing.key, sums)
        return answer

    def bends(self, smoothing: Smoothing, w: Integers, bits: Integers, v: Integers) -> Integers:
        """int64 (2, d + 1): see `SmoothSums.bends`."""
        sums = self._smoothed(smoothing)
        answer = sums.bends(self, w, bits, v)
        self._put("smooth", smoothing.key, sums)
        return answer

    def _smoothed(self, smoothing: Smoothing) -> SmoothPass:
        sums: SmoothPass | None = self._taken("smooth", smoothing.key)
        return sums or SmoothPass(self.layout, smoothing)

    def size_counts(self, numbers: Integers, radii: Floats) -> Integers:
        """int64 (radii + 1,): records by the l1 norm of numbers, in classes up to each radius."""
        places = np.searchsorted(radii, sizes(self.layout, numbers, self))
        runs = [places[run.first : run.first + run.count] for run in self.runs]
        return np.bincount(np.concatenate(runs), minlength=len(radii) + 1).astype(np.int64)


def _narrowest(domain: Domain, loss: LossGrid) -> float:
    """A bound: smaller margins of all sizes are certain to fit in 32 bits, and hinges in 24."""
    grid = domain.grid
    widest = 2.0 ** (31 - grid.a - grid.b)
    if loss.name == "hinge":
        widest = min(widest, 2.0 ** (24 - loss.bits) / loss.C)
    return widest * (1 - 2.0**-40) - 1
