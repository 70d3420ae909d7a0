"""Linear models: logistic, hinge and zero-one losses of a population of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike, NDArray

from privfit._kernels import linear as kernels
from privfit._kernels import threads
from privfit.checks import is_finite, is_sparse, is_whole
from privfit.domains import Domain, Grid
from privfit.objectives.coding import Centred
from privfit.objectives.common import (
    Floats,
    Integers,
    Objective,
    all_same,
    check_adjacency,
    check_finite,
    integer_range,
    on_grid,
    wrap32,
)
from privfit.objectives.layouts import (
    NO_CAPS,
    Caps,
    DenseLayout,
    SparseFollower,
    SparseLayout,
)
from privfit.objectives.smooth import SmoothSums
from privfit.packing import DenseRecords, check_labels, check_records, joined, pack

MOST_RESIDUAL = round(1 / kernels.RESIDUAL_UNIT)


class LinearObjective(Objective):
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
    n_classes : int, optional
        y then holds 0 .. n_classes - 1, and class 0 is told from the rest; `against` tells another.

    Notes
    -----
    `scores` are not released; hand them to a grant's `release`.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import Box, LinearObjective
    >>> X, y = np.array([[-1.0], [0.5], [1.0]]), [0, 1, 1]
    >>> objective = LinearObjective(X, y, loss="zero_one", domain=Box(-1, 1))
    >>> objective.scores(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist()  # minus the errors
    [0, -3]
    >>> objective.range(np.array([[1.0, 0.0], [-1.0, 0.0]]), "replace")
    2
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
        n_classes: int | None = None,
    ) -> None:
        if loss not in ("logistic", "hinge", "zero_one"):
            raise ValueError(
                f"loss ({loss!r}) must be 'logistic', 'hinge' or 'zero_one'; pass one of them"
            )
        if not is_finite(C) or C <= 0:
            raise ValueError(f"C ({C!r}) must be a positive number; pass C=1.0")
        if C != 1.0 and loss != "hinge":
            raise ValueError(f"C ({C!r}) weights the hinge loss only; leave it out")
        l2 = float(loss == "hinge") if l2 is None else l2
        if not is_finite(l2) or l2 < 0:
            raise ValueError(f"l2 ({l2!r}) must be 0 or a positive number; pass l2=0.0")
        if n_classes is not None and (not is_whole(n_classes) or n_classes < 2):
            raise ValueError(
                f"n_classes ({n_classes!r}) must be a whole number from 2 on; leave it out for "
                "labels 0 and 1"
            )
        threads.resolve(n_threads)
        self.loss, self.C, self.l2, self._n_threads = loss, float(C), float(l2), n_threads
        self.n_classes, self.head = n_classes, 0
        self._load(X, y, domain, layout)

    def _load(self, X: Any, y: Any, domain: Domain | None, layout: str) -> None:
        """Check and pack the records."""
        X, self.domain = check_records(X, domain, "LinearObjective")
        groups = check_labels(y, X.shape[0], self.n_classes)
        self.n_records, self.n_features = X.shape
        records = pack(X, self.domain, groups, layout=layout)
        self._runs, grid = records.runs, self.grid
        kernel_loss = kernels.Loss(self.loss, grid.a, grid.b, grid.c, self.C)
        self._layout = (
            DenseLayout(records, kernel_loss, grid.a)
            if isinstance(records, DenseRecords)
            else SparseLayout(records, kernel_loss, grid.a)
        )

    def joined(self, others: Sequence[LinearObjective]) -> LinearObjective:
        """One objective over the records of all, which must be alike in all else."""
        result = self._emptied(others)
        records: Any = joined([one._layout.records for one in (self, *others)])
        result._layout = replace(self._layout, records=records)
        result._take_side()  # some may have told another class
        return result

    def against(self, head: int) -> LinearObjective:
        """The objective that tells another class from the rest; records are packed once for all."""
        if self.n_classes is None or not 0 <= head < self.n_classes:
            raise ValueError(
                f"head ({head}) must be one of the classes 0 .. n_classes - 1; pass n_classes= to "
                "the objective, and one of them"
            )
        if head == self.head:
            return self
        result: LinearObjective = self._emptied([])
        result.head = head
        result._take_side()
        return result

    def _take_side(self) -> None:
        """Let the records of class `head` be those of class 1."""
        records: Any = self._layout.records.against(self.head)
        self._layout, self._runs = replace(self._layout, records=records), records.runs

    @property
    def layout(self) -> str:
        """How records are packed."""
        return "dense" if isinstance(self._layout, DenseLayout) else "sparse"

    @property
    def grid(self) -> Grid:
        """Bits of records, candidates and scores."""
        return self.domain.grid

    @property
    def unit(self) -> float:
        """What one unit of a score is worth: 1 for zero-one errors, else 2^-c."""
        return 1.0 if self.loss == "zero_one" else 2.0**-self.grid.c

    @property
    def candidate_units(self) -> Floats:
        """(d + 1,): the grid of candidates."""
        return self.domain.weight_units()

    @property
    def gradient_unit(self) -> float:
        """What one unit of `gradient` is worth."""
        return 2.0**-self.grid.a * kernels.RESIDUAL_UNIT

    def _candidates(self, P: ArrayLike) -> tuple[Floats, Floats]:
        """P checked, and in whole units of the grid."""
        P = check_finite(P, 2, "candidates (m, d + 1), the intercept last")
        if P.shape[1] != self.n_features + 1:
            raise ValueError(
                f"P (shape {P.shape}) must have {self.n_features + 1} columns, the intercept last; "
                "pass candidates (m, d + 1)"
            )
        whole = on_grid(P, self.domain.weight_units(), "domain.snap(P)")
        # Partial sums of a margin must be exact, and 65,536 records (or as many as there are) must
        # not overflow a sum of losses: up to that number a refusal does not depend on n.
        margin = float((np.abs(P) @ self._largest_record).max())
        largest = 1.0 if self.loss == "zero_one" else self.C * (margin + 1) * 2.0**self.grid.c + 1
        if (
            margin * 2.0 ** (self.grid.a + self.grid.b) >= 2.0**52
            or largest * max(self.n_records, 2**16) >= 2.0**63
        ):
            raise ValueError(
                "candidates are too large for exact margins; pass smaller weights, or a Grid with "
                "smaller bits"
            )
        return P, whole

    @cached_property
    def _largest_record(self) -> Floats:
        """(d + 1,) the largest size of each column, 1 for the intercept."""
        return np.append(np.maximum(np.abs(self.domain.low), np.abs(self.domain.high)), 1.0)

    def _narrow(self, norm: Floats) -> NDArray[np.bool_]:
        """(m,) which margins, bounded by these norms, are sure to fit in 32 bits."""
        grid = self.grid
        fits = (norm + 1) * 2.0 ** (grid.a + grid.b) < 2.0**31
        if self.loss == "hinge":
            fits &= self.C * (norm + 1) * 2.0**grid.c < 2.0**24
        return np.asarray(fits)

    def _narrow_candidates(self, P: Floats, whole: Floats) -> NDArray[np.bool_]:
        """(m,) which candidates' margins and weights are sure to fit in 32 bits."""
        narrow = self._narrow(np.abs(P) @ self._largest_record)  # quick, and enough for most
        if not narrow.all():
            narrow = self._narrow(self.domain.norm(P))
        return narrow & self._layout.fits(whole)

    def _short(self, P: Floats) -> bool:
        """Whether the sum of weights over a sparse record's ones is sure to fit in 16 bits.

        It is the margin of that record with its other columns at 0, if 0 is inside the domain.
        """
        if isinstance(self._layout, DenseLayout):
            return False
        inside = (self.domain.low <= 0).all() and (self.domain.high >= 0).all()
        return bool(inside and (self.domain.norm(P) * 2.0**self.grid.b < 2.0**15).all())

    def scores(self, P: ArrayLike) -> Integers:
        """int64 (m,): minus the loss of each candidate (m, d + 1), in units of `unit`."""
        P, whole = self._candidates(P)
        narrow = self._narrow_candidates(P, whole)
        result = np.empty(len(P), dtype=np.int64)
        if narrow.any():
            result[narrow] = -self._layout.losses(whole[narrow], self, self._short(P[narrow]))
        if not narrow.all():
            result[~narrow] = -self._layout.losses_wide(whole[~narrow], self)
        return result

    def prior(self, P: ArrayLike) -> Integers:
        """int64 (m,): the data-free part of the objective, -l2/2 norm2(w)^2, in score units.

        A weight counts in units of its column's scale, so the units of a column do not matter.
        """
        P, _ = self._candidates(P)
        if self.l2 == 0:
            return np.zeros(len(P), dtype=np.int64)
        penalty = self.l2 / 2 * np.square(np.ldexp(P[:, :-1], self.domain.exponents)).sum(axis=1)
        if penalty.max() / self.unit >= 2.0**62:
            raise ValueError("prior is too large for 64 bits; pass smaller weights or a smaller l2")
        return -np.rint(penalty / self.unit).astype(np.int64)

    # The table of THEORY section 1, with B = N(w) and D = N(w - w').
    def range(self, P: ArrayLike, adjacency: str) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up."""
        check_adjacency(adjacency)
        P, _ = self._candidates(P)
        if all_same(P):
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
        return integer_range(float(bound.max()), self.unit, 2 if replaced else 1)

    def spread(self, P: ArrayLike, adjacency: str) -> int:
        """A bound on `range` from each candidate alone, for more of them than pairs allow.

        A record's score of w spans at most N(w) (logistic), C min(2 N(w), 1 + N(w)) (hinge) or 1.
        """
        check_adjacency(adjacency)
        P, _ = self._candidates(P)
        replaced = adjacency == "replace"
        if self.loss == "zero_one":
            return 2 if replaced else 1
        B = float(self.domain.norm(P).max())
        span = B if self.loss == "logistic" else self.C * min(2 * B, 1 + B)
        return integer_range((2 if replaced else 1) * span, self.unit, 2 if replaced else 1)

    def gradient(self, w: ArrayLike, cap: float, caps: Caps = NO_CAPS) -> Integers:
        """int64 (d + 1,): sums of y x_j min(r, cap), in units of `gradient_unit`.

        r is minus the slope of the loss at a record's margin m: sigma(-m) for the logistic loss,
        max(1 - m, 0) for the hinge (capped, this is the slope of Huber's hinge). Entry j scores
        the move +e_j and its negative the move -e_j, all moves in one pass. Columns are taken in
        units of their scale 2^e_j (1 for the unit box, the balls and a schema). `caps` are further
        caps, one for each packed row, in units of RESIDUAL_UNIT: see `clipping`.
        """
        if self.loss == "zero_one":
            raise ValueError(
                "gradient needs a loss with a slope, not 'zero_one'; pass loss='logistic'"
            )
        top = self._cap(cap)
        P, whole = self._candidates(np.atleast_2d(np.asarray(w, dtype=np.float64)))
        if len(P) != 1:
            raise ValueError(
                f"w (shape {np.shape(w)}) must be one candidate; pass a vector (d + 1,)"
            )
        narrow = self._narrow_candidates(P, whole)
        return self._layout.gradient(whole[0], not narrow[0], top, self, caps)

    def _cap(self, cap: float) -> int:
        if not is_finite(cap) or not 0 < cap <= 1:
            raise ValueError(f"cap ({cap!r}) must lie in (0, 1]; pass cap=0.5")
        return max(1, math.floor(cap / kernels.RESIDUAL_UNIT))

    def gradient_range(self, cap: float, adjacency: str) -> int:
        """The range of the scores +-gradient(w, cap): 2 x_max cap, twice that under replace."""
        check_adjacency(adjacency)
        units = self._largest_record[:-1] / self.domain.record_units()
        x_max = max(1 << self.grid.a, round(float(units.max())))  # the intercept is a move too
        return (4 if adjacency == "replace" else 2) * x_max * self._cap(cap)

    def caps(self, columns: Integers, shift: int, squared: bool, bound: int) -> Caps:
        """(packed rows,): bound / norm of each record's image, in residual units, at most 1.

        A record goes to sum_j x_j columns[j] + columns[d], with x_j in record units; sizes are
        divided by 2^shift, rounded up, and added, or their squares. Private: release none of it.
        """
        lengths = self._layout.lengths(np.ascontiguousarray(columns), shift, squared, self)
        if squared:  # a root of at most 2^31 is off by 2^-51 of itself, and one more is above it
            lengths = np.sqrt(lengths.astype(np.float64)).astype(np.int64) + 1
        return np.minimum(bound // np.maximum(lengths, 1), MOST_RESIDUAL).astype(np.int16)

    def capped(self, *image: Any) -> Callable[[ArrayLike], Integers]:
        """The gradient of a candidate, each record capped by its image: see `caps`."""
        caps = self.caps(*image)
        return lambda w: self.gradient(w, 1.0, caps)

    def follower(self) -> Callable[[Floats, int], Integers]:
        """The gradient of a candidate and a cap in residual units, quick if asked of near ones."""
        follower = SparseFollower(self._layout) if isinstance(self._layout, SparseLayout) else None

        def gradient(w: Floats, cap: int) -> Integers:
            P, whole = self._candidates(w[None])
            narrow = bool(self._narrow_candidates(P, whole)[0])
            if follower is not None and narrow:
                return follower.gradient(whole[0], cap, self)
            return self._layout.gradient(whole[0], not narrow, cap, self)

        return gradient

    def smooth(self, width: float, numbers: Integers, radius: float) -> SmoothSums:
        """Sums of slopes and curvatures of a smooth loss, as Newton's method asks for them."""
        return SmoothSums(self, width, numbers, radius)

    def size_counts(self, numbers: Integers, radii: Floats) -> Integers:
        """int64 (radii + 1,): records by the l1 norm of numbers, in classes up to each radius."""
        return SmoothSums(self, 0.0, numbers, math.inf).size_counts(radii)

    def second_moments(self) -> Integers:
        """int64 (d + 1, d + 1): the sum of x~ x~', the intercept last, in units of 4^-a."""
        return self._layout.second_moments(self)

    def label_counts(self) -> Integers:
        """int64 (2,): the records of class 0 and of class 1."""
        positive = sum(run.count for run in self._runs if run.flip == 0)
        return np.array([self.n_records - positive, positive])

    def decoded(self) -> tuple[Any, Integers]:
        """Private: records (n, d) as floats or CSR, clipped and rounded, and labels 0/1.

        Class 1 comes first; within a class, records keep their order.
        """
        blocks, signs = zip(*self.labelled_blocks(1 << 16), strict=True)
        labels = np.repeat([int(sign > 0) for sign in signs], [block.shape[0] for block in blocks])
        if is_sparse(blocks[0]):
            return scipy.sparse.vstack(blocks, format="csr"), labels
        return np.concatenate(blocks), labels

    def labelled_blocks(self, rows: int) -> Iterator[tuple[Any, float]]:
        """(block (at most `rows`, d), sign): the private records, float64 or CSR, by class.

        For solvers that need more than scores. Nothing of it may leave but by a grant's `release`.
        """
        units = self.domain.record_units()
        for run, block in self._layout.records.labelled_blocks(rows):
            real: Any = block.astype(np.float64)
            if is_sparse(real):
                real.data *= units[real.indices]
            else:
                real *= units
            yield real, 1.0 if run.flip == 0 else -1.0

    def at(self, w: ArrayLike) -> LinearMoves:
        """A view around one parent that scores one-coordinate moves incrementally."""
        return LinearMoves(self, w)

    def slopes(self, position: ArrayLike, cap: float) -> LinearSlopes:
        """A view that scores all moves of centred weights by the clipped gradient, in one pass."""
        return LinearSlopes(self, position, cap)

    @cached_property
    def centred(self) -> Centred:
        """The coding of every column as [-1/2, 1/2]."""
        return Centred(self.domain)


def _logistic_gap(B: Floats, D: Floats) -> Floats:
    """phi(B_w', D) for all pairs (w, w'): ln((1 + e^B) / (1 + e^(B - D)))."""
    return np.asarray(np.logaddexp(0, B)[None, :] - np.logaddexp(0, B[None, :] - D))


class LinearMoves:
    """The candidates w + step e_coord around one parent w.

    Equal to `LinearObjective.scores` of them bit for bit; only a column's non-zeros are touched.
    """

    def __init__(self, objective: LinearObjective, w: ArrayLike) -> None:
        w = np.asarray(w, dtype=np.float64)
        if w.ndim != 1:
            raise ValueError(f"w (shape {w.shape}) must be one candidate; pass a vector (d + 1,)")
        self._objective = objective
        self._move_to(w)

    @property
    def w(self) -> Floats:
        """The parent."""
        return self._whole * self._objective.domain.weight_units()

    @property
    def model(self) -> Floats:
        """The parent as a candidate of the objective: itself."""
        return self.w

    def _move_to(self, w: Floats) -> None:
        """Take w as the parent, with its margins if they fit in 32 bits."""
        objective = self._objective
        whole = objective._candidates(w[None])[1]
        norm = objective.domain.norm(w)
        fits = objective._narrow(norm) & objective._layout.fits(whole)
        self._parent = objective._layout.parent(whole[0], objective) if fits[0] else None
        self._whole, self._norm = whole[0], float(norm[0])

    def _moves(self, coords: ArrayLike, steps: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """Coordinates, steps in whole units, and bounds on the norms of the moved candidates."""
        objective = self._objective
        coords = np.atleast_1d(np.asarray(coords))
        steps = np.atleast_1d(np.asarray(steps, dtype=np.float64))
        if coords.ndim != 1 or coords.shape != steps.shape:
            raise ValueError(
                f"coords (shape {coords.shape}) and steps (shape {steps.shape}) must be vectors "
                "of one length; pass one step for each coordinate"
            )
        if coords.dtype.kind not in "iu":
            raise ValueError(f"coords (dtype {coords.dtype}) must be whole numbers; pass indices")
        if coords.size and not (0 <= coords.min() and coords.max() <= objective.n_features):
            raise ValueError(
                f"coords must lie in 0..{objective.n_features}, the intercept last; pass indices"
            )
        if not np.isfinite(steps).all():
            raise ValueError("steps must be finite; pass steps without NaN or infinity")
        coords = coords.astype(np.int64)
        whole = on_grid(steps, objective.domain.weight_units()[coords], "steps on the grid")
        return coords, whole, self._norm + np.abs(steps) * objective._largest_record[coords]

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
        if self._parent is None or not objective._narrow(norms).all():
            units = objective.domain.weight_units()[coords]
            return objective.scores(self.candidates(coords, whole * units))
        return -self._parent.moved_losses(coords, wrap32(whole), objective)

    def prior(self, coords: ArrayLike, steps: ArrayLike) -> Integers:
        """int64 (m,): `LinearObjective.prior` of the moved candidates."""
        objective = self._objective
        coords, whole, _ = self._moves(coords, steps)
        if objective.l2 == 0:
            return np.zeros(len(coords), dtype=np.int64)
        unit = 2.0**-objective.grid.b  # of a weight in units of its column's scale
        w, step = self._whole[:-1] * unit, whole * unit
        grown = step * (2 * np.append(w, 0.0)[coords] + step)
        squares = w @ w + np.where(coords == len(w), 0.0, grown)
        return -np.rint(objective.l2 / 2 * squares / objective.unit).astype(np.int64)

    def step(self, coord: int, step: float) -> None:
        """Move the parent."""
        coords, steps, norms = self._moves([coord], [step])
        moved = self._whole.copy()
        moved[coords] += steps
        objective = self._objective
        narrow = objective._narrow(norms) & objective._layout.fits(moved[None])
        if self._parent is None or not narrow[0]:
            self._move_to(moved * objective.domain.weight_units())
            return
        self._parent.step(int(coords[0]), int(wrap32(steps)[0]))
        self._whole = moved
        self._norm = float(objective.domain.norm(self.w)[0])

    def range(self, coords: ArrayLike, steps: ArrayLike, adjacency: str) -> int:
        """The range of these moves' scores: at least that of `LinearObjective.range`, and quick.

        With r_i = abs(steps[i]) max abs(x_coord), two moved candidates differ by at most the sum
        of the two largest r_i, and no norm exceeds N(w) plus the largest.
        """
        check_adjacency(adjacency)
        objective = self._objective
        _, whole, norms = self._moves(coords, steps)
        reach = norms - self._norm
        if not whole.any():
            return 0
        replaced = adjacency == "replace"
        if objective.loss == "zero_one":
            return 2 if replaced else 1
        B, D = norms.max(), np.sort(reach)[-2:].sum()
        if objective.loss == "logistic":
            gap = np.logaddexp(0, B) - np.logaddexp(0, B - D)
            bound = min(2 * gap, 2 * B) if replaced else gap
        elif replaced:
            bound = objective.C * min(2 * D, 2 * min(2 * B, 1 + B))
        else:
            bound = objective.C * min(D, 1 + B)
        return integer_range(float(bound), objective.unit, 2 if replaced else 1)


class LinearSlopes:
    """Moves of centred weights by +-step along one coordinate, scored by the clipped gradient.

    A move scores the gradient of its coordinate with its sign; its size does not enter, so one
    record changes the difference of two scores by at most 2 x_max cap (add or remove) or 4 x_max
    cap (replace), x_max = 1/2: less than the loss itself allows, and one pass serves all moves.
    """

    def __init__(self, objective: LinearObjective, position: ArrayLike, cap: float) -> None:
        self._objective, self._cap = objective, objective._cap(cap)
        self.w = np.array(position, dtype=np.float64)
        self._gradient = objective.follower()

    @property
    def model(self) -> Floats:
        """(d + 1,): the linear candidate at the present position."""
        return self._objective.centred.weights(self.w)

    def scores(self, coords: Integers, steps: Floats) -> Integers:
        """int64 (m,): the gradient along each move."""
        gradient = self._objective.centred.gradient(self._gradient(self.model, self._cap))
        return gradient[coords] * np.sign(steps).astype(np.int64)

    def prior(self, coords: Integers, steps: Floats) -> Integers:
        """int64 (m,): zeros; the slope of a regulariser is lost beside that of many records."""
        return np.zeros(len(coords), dtype=np.int64)

    def range(self, coords: Integers, steps: Floats, adjacency: str) -> int:
        """The range of the scores; the same wherever the view stands."""
        check_adjacency(adjacency)
        ways = 4 if adjacency == "replace" else 2
        return ways * self._objective.centred.largest * self._cap

    def step(self, coord: int, step: float) -> None:
        """Move."""
        self.w[coord] += step
