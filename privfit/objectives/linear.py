"""Linear models: logistic, hinge and zero-one losses of a population of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
import scipy  # its submodules load when first used
from numpy.typing import ArrayLike

from privfit._kernels import threads
from privfit._kernels.candidates import FINE, NOT_FINITE, whole_units
from privfit._kernels.records import RESIDUAL_UNIT
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers, Rows
from privfit.base.validation import is_finite, is_whole
from privfit.domains import Domain, Grid
from privfit.objectives.coding import Centred
from privfit.objectives.common import (
    MOST_SUM,
    Objective,
    all_same,
    check_candidates,
    integer_range,
    refuse_candidates,
)
from privfit.objectives.linear_moves import LinearMoves, LinearSlopes
from privfit.objectives.smooth import NO_KNOTS, Smoothing, SmoothSums
from privfit.privacy.neighbours import Adjacency, Neighbours
from privfit.records.codes import JOINT
from privfit.records.linear import Image, LinearRows, LossGrid
from privfit.records.packing import MAX_RECORDS, check_domain
from privfit.records.places import sums_of

MOST_LOSS = 2.0**50  # of one record: a float64 has four bits below its unit
USUAL_WEIGHT = 10.0  # of a column in units of its scale: searches look no further by default


class LinearObjective(Objective[LinearRows]):
    """Minus the loss of linear models z = <x, w> + intercept, or <x, w>, over labelled records.

    Parameters
    ----------
    X : array, CSR/CSC matrix, DataFrame, dict of columns, Stream or Dask collection
        Private records. Packed once, where they are stored; X itself is not kept.
    y : array of shape (n,) of 0/1 or -1/+1, str or Dask collection
        Private labels; the name of a column of a `Stream`, or a Dask collection partitioned like X.
        A model predicts 1 where z > 0.
    loss : {'logistic', 'hinge', 'zero_one'}, default='logistic'
        The loss.
    domain : Domain
        The declared domain of a record.
    C : float, default=1.0
        Weight of the hinge loss.
    n_threads : int or None, default=None
        Number of threads; by default all cores of this process. It affects speed and nothing else.
    l2 : float or None, default=None
        Weight of the regulariser -l2/2 norm2(w)^2 in `prior`; by default 1 for the hinge and 0
        otherwise.
    layout : {'auto', 'dense', 'sparse'}, default='auto'
        How records are packed; by default those of a schema as rows of codes. It affects speed and
        nothing else.
    joint : int, default=1024
        The most combinations of levels for which one code stands, of records that are rows of
        codes. It affects speed and nothing else.
    n_classes : int or None, default=None
        If given, y contains 0 .. n_classes - 1, and the objective is that of class 0 versus the
        rest; `against` returns that of another class.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation that sums have room for. Under 'add_remove' the number of records is
        private, so there is room for 2^32 of them: if weights of 10 would not fit, scores have
        fewer bits than the grid's c.
    fit_intercept : bool, default=True
        Whether candidates (m, d + 1) end with an intercept. Otherwise they are (m, d), and records
        are x, not (x, 1).
    labels : callable (y) -> array of shape (n,), optional
        Converts labels to those above, a block at a time, where they are stored.

    See Also
    --------
    LogisticRegression, LinearSVC : The estimators.
    search : Searches for weights.

    Notes
    -----
    `scores` are not released; pass them to a grant's `release`.

    **No sum wraps.** With N the number of records (replace) or 2^32 (add_remove), and M a
    candidate's largest margin, a record's loss is at most L = C (M + 1) 2^c + 1 units. Candidates
    are refused unless L < 2^50 and N L < 2^62, and unless the prior is below 2^62: their sum is
    below 2^63. Gradients are at most 2^32 2^12 2^a <= 2^58 (of coded columns four times that), and
    second moments at most 2^32 4^a <= 2^60.

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
        X: object,
        y: object,
        loss: str = "logistic",
        domain: Domain | None = None,
        C: float = 1.0,
        n_threads: int | None = None,
        *,
        l2: float | None = None,
        layout: str = "auto",
        joint: int = JOINT,
        n_classes: int | None = None,
        adjacency: Adjacency = "replace",
        fit_intercept: bool = True,
        labels: Callable[..., object] | None = None,
    ) -> None:
        self.neighbours = Neighbours.of(adjacency)
        if fit_intercept not in (True, False):
            raise DeclarationError(
                f"fit_intercept ({fit_intercept!r}) must be True or False; pass one of them"
            )
        if loss not in ("logistic", "hinge", "zero_one"):
            raise DeclarationError(
                f"loss ({loss!r}) must be 'logistic', 'hinge' or 'zero_one'; pass one of them"
            )
        if not is_finite(C) or C <= 0:
            raise DeclarationError(f"C ({C!r}) must be a positive number; pass C=1.0")
        if C != 1.0 and loss != "hinge":
            raise DeclarationError(f"C ({C!r}) weights the hinge loss only; leave it out")
        l2 = float(loss == "hinge") if l2 is None else l2
        if not is_finite(l2) or l2 < 0:
            raise DeclarationError(f"l2 ({l2!r}) must be 0 or a positive number; pass l2=0.0")
        if n_classes is not None and (not is_whole(n_classes) or n_classes < 2):
            raise DeclarationError(
                f"n_classes ({n_classes!r}) must be a whole number of at least 2; leave it out for "
                "labels 0 and 1"
            )
        if not is_whole(joint) or joint < 2:
            raise DeclarationError(
                f"joint ({joint!r}) must be a whole number of at least 2; pass joint=1024"
            )
        threads.resolve(n_threads)
        self.loss, self.C, self.l2 = loss, float(C), float(l2)
        self.n_classes, self.head, self.mean_weight = n_classes, 0, 1.0
        self.fit_intercept = bool(fit_intercept)
        declared = check_domain(domain, "LinearObjective")
        rule = partial(_loss_grid, loss, float(C), self.neighbours)
        pack = partial(LinearRows.pack, domain=declared, loss=rule, layout=layout, joint=joint,
                       n_classes=n_classes, labels=labels, n_threads=n_threads)  # fmt: skip
        self._sums = sums_of(X, y, pack, n_threads)
        self.n_features = self._sums.n_features
        self.domain: Domain = declared.bind(self.n_features)
        self.score_bits = rule(self.domain).bits

    def joined(self, others: Sequence[LinearObjective]) -> LinearObjective:
        """One objective over the records of all, which must agree in everything else.

        Parameters
        ----------
        others : sequence of LinearObjective
            The other objectives.

        Returns
        -------
        LinearObjective
            The joined objective.
        """
        if self.n_classes is not None:  # some may have told another class
            others = [one.against(self.head) for one in others]
        return super().joined(others)

    def against(self, head: int) -> LinearObjective:
        """The objective of another class versus the rest; records are packed only once.

        Parameters
        ----------
        head : int
            The class.

        Returns
        -------
        LinearObjective
            The objective.
        """
        if self.n_classes is None or not 0 <= head < self.n_classes:
            raise DeclarationError(
                f"head ({head}) must be one of the classes 0 .. n_classes - 1; pass n_classes= to "
                "the objective, and one of them"
            )
        if head == self.head:
            return self
        result = self._over(self._sums.viewed(LinearRows.against, head))
        result.head = head
        return result

    def weighed(self, of_rest: float, of_head: float, mean: float = 1.0) -> LinearObjective:
        """The objective whose slopes are weighted by class; records are packed only once.

        Losses are not weighted.

        Parameters
        ----------
        of_rest, of_head : float
            Weights of class 0 and of class 1, above 0 and at most 1, so that no bound on residuals
            changes.
        mean : float, default=1.0
            A public estimate of the mean weight of a record.

        Returns
        -------
        LinearObjective
            The objective.
        """
        if not all(is_finite(one) and 0 < one <= 1 for one in (of_rest, of_head, mean)):
            raise DeclarationError(
                f"weights ({of_rest!r}, {of_head!r}, {mean!r}) must lie in (0, 1]; divide them by "
                "the largest, and pass those"
            )
        if (of_rest, of_head) == (1.0, 1.0):
            return self
        result = self._over(self._sums.viewed(LinearRows.weighed, of_rest, of_head))
        result.mean_weight = mean
        return result

    @property
    def grid(self) -> Grid:
        """Bits of records, candidates and scores."""
        return self.domain.grid

    @property
    def unit(self) -> float:
        """The value of one unit of a score: 1 for zero-one errors, otherwise 2^-c."""
        return 1.0 if self.loss == "zero_one" else 2.0**-self.score_bits

    @property
    def n_weights(self) -> int:
        """Coordinates of a candidate: one for each column, and the intercept if there is one."""
        return self.n_features + self.fit_intercept

    @property
    def candidate_units(self) -> Floats:
        """(n_weights,): the grid of candidates."""
        return self.domain.weight_units()[: self.n_weights]

    @property
    def gradient_unit(self) -> float:
        """The value of one unit of `gradient`."""
        return 2.0**-self.grid.a * RESIDUAL_UNIT

    def _candidates(self, P: ArrayLike) -> tuple[Floats, Floats, float]:
        """P checked, in whole units of the grid, and a bound on the sizes of margins.

        Both arrays are (m, d + 1), with an intercept of 0 if none is fitted.
        """
        shape = "(m, d + 1), the intercept last" if self.fit_intercept else "(m, d), no intercept"
        P = check_candidates(P, 2, f"candidates {shape}")
        if P.shape[1] != self.n_weights:
            raise DeclarationError(
                f"P (shape {P.shape}) must have {self.n_weights} columns; pass candidates {shape}"
            )
        P = self._padded(P)
        whole = np.empty_like(P)
        verdict, margin = whole_units(P, self.domain.weight_units(), self._largest_record, whole)
        if verdict != FINE:
            refuse_candidates(verdict != NOT_FINITE, "domain.snap(P)")
        if margin >= self._exact_margin:
            raise DeclarationError(
                "candidates are too large for exact margins; pass smaller weights, or a Grid with "
                "smaller bits"
            )
        return P, whole, margin

    def _padded(self, P: Floats) -> Floats:
        """(m, d + 1): candidates with an intercept, 0 where none is fitted.

        So all bounds hold as they stand: N(w, 0) is the largest abs(<x, w>) of the domain.
        """
        return P if self.fit_intercept else np.pad(P, ((0, 0), (0, 1)))

    def _scored(self, P: ArrayLike, neighbours: Neighbours | None = None) -> tuple[Floats, Floats]:
        """`_candidates` whose scores cannot wrap: see the notes of the class."""
        P, whole, margin = self._candidates(P)  # the margin grows with every weight
        if not self._has_room(margin, neighbours):
            raise DeclarationError(
                "candidates are too large for exact sums of losses; pass smaller weights, a "
                f"smaller C or a Grid with a smaller c{self._remedy(neighbours)}"
            )
        return P, whole

    @property
    def _exact_margin(self) -> float:
        """Below it, all partial sums on the way to a margin are exact in float64."""
        return 2.0 ** (52 - self.grid.a - self.grid.b)

    def _safe_margin(self) -> float:
        """Below it, `_scored` refuses nothing."""
        if self.loss == "zero_one":
            return self._exact_margin
        most = min(MOST_LOSS, MOST_SUM / self.room()) * (1 - 2.0**-40)
        return min(self._exact_margin, (most - 1) / (self.C * 2.0**self.score_bits) - 1)

    def _has_room(self, margin: float, neighbours: Neighbours | None = None) -> bool:
        """Whether losses at this margin are exact, and their sum over all records is."""
        if self.loss == "zero_one":
            return True
        loss = self.C * (margin + 1) * 2.0**self.score_bits + 1
        return loss < MOST_LOSS and loss * self.room(neighbours) < MOST_SUM

    def check_margins(self, P: ArrayLike) -> None:
        """Refuse candidates without exact margins, for solvers that need only gradients.

        Parameters
        ----------
        P : array-like of shape (m, n_weights)
            Candidates, on the grid; the intercept last.
        """
        self._candidates(P)

    @cached_property
    def _largest_record(self) -> Floats:
        """(d + 1,) the largest size of each column; 1 for the intercept, which may always be 0."""
        return np.append(np.maximum(np.abs(self.domain.low), np.abs(self.domain.high)), 1.0)

    def scores(self, P: ArrayLike) -> Integers:
        """Minus the loss of each candidate, in units of `unit`.

        Parameters
        ----------
        P : array-like of shape (m, n_weights)
            Candidates, on the grid; the intercept last.

        Returns
        -------
        array of int64 of shape (m,)
            The scores. They are private.
        """
        return -self._sums.sum(LinearRows.losses, self._scored(P)[1])

    def prior(self, P: ArrayLike) -> Integers:
        """The data-free part of the objective, -l2/2 norm2(w)^2, in score units.

        A weight counts in units of its column's scale, so the units of a column do not matter.

        Parameters
        ----------
        P : array-like of shape (m, n_weights)
            Candidates, on the grid; the intercept last.

        Returns
        -------
        array of int64 of shape (m,)
            What to add to the scores. It is public.
        """
        P, _ = self._scored(P)
        if self.l2 == 0:
            return np.zeros(len(P), dtype=np.int64)
        return self._priors(np.square(np.ldexp(P[:, :-1], self.domain.exponents)).sum(axis=1))

    def _priors(self, squares: Floats) -> Integers:
        """int64 (m,): the priors of weights with these squared lengths, below 2^62 in size."""
        penalty = np.rint(self.l2 / 2 * squares / self.unit)
        if penalty.max(initial=0.0) >= MOST_SUM:
            raise DeclarationError(
                "prior is too large for 64 bits; pass smaller weights or a smaller l2"
            )
        return -penalty.astype(np.int64)

    # The table of THEORY section 1, with B = N(w) and D = N(w - w').
    def range(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """The range of these candidates' scores between neighbours, in score units, rounded up.

        Parameters
        ----------
        P : array-like of shape (m, n_weights)
            Candidates, on the grid; the intercept last.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        neighbours = Neighbours.of(adjacency)
        P, _ = self._scored(P, neighbours)
        if all_same(P):
            return 0
        if self.loss == "zero_one":
            return neighbours.changes
        B = self.domain.norm(P)
        D = self.domain.pair_norms(P)
        if self.loss == "logistic":
            gap = _logistic_gap(B, D)
            bound = np.minimum(gap + gap.T, B[:, None] + B) if neighbours.replaces else gap
        elif neighbours.replaces:
            swing = np.minimum(2 * B, 1 + B)
            bound = self.C * np.minimum(2 * D, swing[:, None] + swing)
        else:
            bound = self.C * np.minimum(D, 1 + B)
        return integer_range(float(bound.max()), self.unit, neighbours.changes)

    def spread(self, P: ArrayLike, adjacency: Adjacency) -> int:
        """A bound on `range` from each candidate alone, for too many candidates to compare.

        A record's score of w spans at most N(w) (logistic), C min(2 N(w), 1 + N(w)) (hinge) or 1.

        Parameters
        ----------
        P : array-like of shape (m, n_weights)
            Candidates, on the grid; the intercept last.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The bound. It is public.
        """
        neighbours = Neighbours.of(adjacency)
        P, _ = self._scored(P, neighbours)
        if self.loss == "zero_one":
            return neighbours.changes
        B = float(self.domain.norm(P).max())
        span = B if self.loss == "logistic" else self.C * min(2 * B, 1 + B)
        return integer_range(neighbours.changes * span, self.unit, neighbours.changes)

    def gradient(self, w: ArrayLike, cap: float, image: Image | None = None) -> Integers:
        """Sums of y x_j min(r, cap), in units of `gradient_unit`.

        r is minus the slope of the loss at a record's margin m: sigma(-m) for the logistic loss,
        max(1 - m, 0) for the hinge (capped, this is the slope of Huber's hinge). Entry j scores the
        move +e_j and its negative the move -e_j, all moves in one pass. Columns are in units of
        their scale 2^e_j (1 for the unit box, the balls and a schema).

        Parameters
        ----------
        w : array-like of shape (n_weights,)
            One candidate.
        cap : float
            Bound on a record's residual r, in (0, 1].
        image : Image or None, default=None
            Caps each record further, by the length of its image: see `clipping`.

        Returns
        -------
        array of int64 of shape (n_weights,)
            The sums. They are private.
        """
        if self.loss == "zero_one":
            raise DeclarationError(
                "gradient needs a loss with a slope, not 'zero_one'; pass loss='logistic'"
            )
        top = self._cap(cap)
        P, whole, _ = self._candidates(np.atleast_2d(np.asarray(w, dtype=np.float64)))
        if len(P) != 1:
            raise DeclarationError(
                f"w (shape {np.shape(w)}) must be one candidate; pass a vector (n_weights,)"
            )
        return self._sums.sum(LinearRows.gradient, whole[0], top, image)[: self.n_weights]

    def _cap(self, cap: float) -> int:
        if not is_finite(cap) or not 0 < cap <= 1:
            raise DeclarationError(f"cap ({cap!r}) must lie in (0, 1]; pass cap=0.5")
        return max(1, math.floor(cap / RESIDUAL_UNIT))

    def gradient_range(self, cap: float, adjacency: Adjacency) -> int:
        """The range of the scores +-gradient(w, cap): 2 x_max cap, twice that under 'replace'.

        Parameters
        ----------
        cap : float
            Bound on a record's residual.
        adjacency : {'replace', 'add_remove'}
            The neighbour relation.

        Returns
        -------
        int
            The range. It is public.
        """
        ways = 2 * Neighbours.of(adjacency).changes
        units = self._largest_record[:-1] / self.domain.record_units()
        constant = 1 << self.grid.a if self.fit_intercept else 0  # the intercept is a move too
        x_max = max(constant, round(float(units.max())))
        return ways * x_max * self._cap(cap)

    def followed_gradient(self, w: Floats, cap: int) -> Integers:
        """The same as `gradient`, but fast if the last candidate was nearby.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
            One candidate.
        cap : int
            Bound on a record's residual, in residual units.

        Returns
        -------
        array of int64 of shape (n_weights,)
            The sums. They are private.
        """
        whole = self._candidates(w[None])[1][0]
        return self._sums.sum(LinearRows.followed_gradient, whole, cap)[: self.n_weights]

    def smooth(
        self,
        width: float,
        numbers: Integers,
        radius: float,
        knots: Floats = NO_KNOTS,
        steepest: float = 1.0,
    ) -> SmoothSums:
        """Sums of slopes and curvatures of a smooth loss, for Newton's method.

        Parameters
        ----------
        width : float
            Half the width of the parabola that rounds a hinge; 0 for the logistic loss.
        numbers : array of int
            The columns that are clipped together.
        radius : float
            Bound on their l1 norm; infinite for no clipping.
        knots : array, optional
            Minus the slopes of another loss: see `Smoothing`.
        steepest : float, default=1.0
            The largest slope between knots.

        Returns
        -------
        SmoothSums
            The sums. They are private.
        """
        return SmoothSums(self._sums, Smoothing(width, numbers, radius, knots, steepest))

    def size_counts(self, numbers: Integers, radii: Floats) -> Integers:
        """Counts of records by the l1 norm of some columns. Private: to be released.

        Parameters
        ----------
        numbers : array of int
            The columns.
        radii : array
            Increasing norms.

        Returns
        -------
        array of int64 of shape (radii + 1,)
            Counts up to each radius, and beyond.
        """
        return self._sums.sum(LinearRows.size_counts, numbers, radii)

    def second_moments(self) -> Integers:
        """The sum of x~ x~', the intercept last, in units of 4^-a. Private: to be released.

        Returns
        -------
        array of int64 of shape (d + 1, d + 1)
            The sums.
        """
        return self._sums.sum(LinearRows.second_moments)

    def level_counts(self) -> Integers:
        """The records of each class at each level of a schema of levels. Private: to be released.

        Returns
        -------
        array of int64 of shape (2, d)
            The counts of class 0 and of class 1.
        """
        return self._sums.sum(LinearRows.level_counts)

    def feature_moments(self, matrix: Integers) -> Integers:
        """The sum of phi phi' for features phi of a record's levels. Private: to be released.

        Parameters
        ----------
        matrix : array of int64 of shape (p, d + 1)
            What each level adds to phi, and last what every record has: whole numbers of at most
            2^12 in size, as those of `Features`.

        Returns
        -------
        array of int64 of shape (p, p)
            The sums.
        """
        return self._sums.sum(LinearRows.feature_moments, matrix)

    def label_counts(self) -> Integers:
        """The number of records of class 0 and of class 1. Private: to be released.

        Returns
        -------
        array of int64 of shape (2,)
            The counts.
        """
        return self._sums.sum(LinearRows.label_counts)

    def margin_counts(self, w: ArrayLike, fine: int, reach: int) -> Integers:
        """Counts of records by class and by the margin of one model. Private: to be released.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
            A released model of the records themselves; it need not be on the grid. If the domain
            is centred, its margins are those of the records before the origin was subtracted.
        fine : int
            A cell is 2^-fine wide; at most 10.
        reach : int
            Number of cells on each side of the one around 0. Margins farther away count in the
            last one.

        Returns
        -------
        array of int64 of shape (2, 2 * reach + 1)
            Counts of class 0 and of class 1.
        """
        model = self._padded(np.array(w, dtype=np.float64)[None])[0]
        model[-1] += model[:-1] @ self.domain.origin
        farthest = float(np.abs(model) @ self._largest_record)
        model = model * min(1.0, 2.0**48 / max(farthest, 1.0))
        # Sums of absolute products stay below 2^61: exact, and 12 bits and more are left.
        bits = 60 - math.frexp(min(max(farthest, 1.0), 2.0**48))[1]
        units = np.append(self.domain.record_units(), 1.0)
        whole = np.rint(np.ldexp(model * units, bits)).astype(np.int64)
        return self._sums.sum(LinearRows.margin_counts, whole, bits - fine, reach)

    def decoded(self) -> tuple[Rows, Integers]:
        """Private: records as floats or CSR, clipped and rounded, and labels 0/1.

        Returns
        -------
        tuple of array of shape (n, d) and array of shape (n,)
            Class 1 comes first; within a class, records keep their order.
        """
        blocks, signs = zip(*self.labelled_blocks(1 << 16), strict=True)
        labels = np.repeat([int(sign > 0) for sign in signs], [block.shape[0] for block in blocks])
        if isinstance(blocks[0], np.ndarray):
            return np.concatenate(blocks), labels
        return scipy.sparse.vstack(blocks, format="csr"), labels

    def labelled_blocks(self, rows: int) -> Iterator[tuple[Rows, float]]:
        """Private: the records in blocks by class, for solvers that need more than scores.

        Parameters
        ----------
        rows : int
            Maximum number of rows of a block.

        Returns
        -------
        iterator of (array of shape (rows, d), float)
            Blocks, float64 or CSR, and the sign of their class. Nothing of them may be published
            except by a grant's `release`.
        """
        return self._decoded_blocks(self._sums.whole("this solver"), rows)

    def _decoded_blocks(self, packed: LinearRows, rows: int) -> Iterator[tuple[Rows, float]]:
        units = self.domain.record_units()
        for run, block in packed.records.labelled_blocks(rows):
            real: Rows = block.astype(np.float64)
            if isinstance(real, np.ndarray):
                real *= units
            else:
                real.data *= units[real.indices]
            yield real, 1.0 if run.flip == 0 else -1.0

    def at(self, w: ArrayLike) -> LinearMoves:
        """A view around one parent that scores one-coordinate moves incrementally.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
            One candidate.

        Returns
        -------
        LinearMoves
            The view.
        """
        return LinearMoves(self, w)

    def slopes(self, position: ArrayLike, cap: float) -> LinearSlopes:
        """A view that scores all moves of centred weights by the clipped gradient, in one pass.

        Parameters
        ----------
        position : array-like of shape (n_weights,)
            The centred weights.
        cap : float
            Bound on a record's residual.

        Returns
        -------
        LinearSlopes
            The view.
        """
        return LinearSlopes(self, position, cap)

    @cached_property
    def centred(self) -> Centred:
        """The coding of every column as [-1/2, 1/2]."""
        return Centred(self.domain, self.fit_intercept)


def _loss_grid(loss: str, C: float, neighbours: Neighbours, domain: Domain) -> LossGrid:
    """The loss, with the grid's c bits of a score, or fewer if sums over 2^32 records need them.

    A rule of the domain's width and C alone, so that records have one unit wherever they are
    stored.
    """
    bits = domain.grid.c
    if not neighbours.size_is_public:
        most = C * (USUAL_WEIGHT * (domain.width + 1) + 1)
        fit = math.floor(math.log2((MOST_SUM // MAX_RECORDS - 2) / most))
        bits = max(0, min(bits, fit))
    return LossGrid(loss, C, bits)


def _logistic_gap(B: Floats, D: Floats) -> Floats:
    """phi(B_w', D) for all pairs (w, w'): ln((1 + e^B) / (1 + e^(B - D)))."""
    return np.asarray(np.logaddexp(0, B)[None, :] - np.logaddexp(0, B[None, :] - D))
