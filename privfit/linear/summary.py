"""Weights for people to read: names, errors, intervals, and what one unit of a column is worth.

Of a text, a row is what a person takes in at once: a number that enters as it is, one category, or
the whole curve of a number with levels. Rows are ordered by their *size*, the root of the mean
square of what they add to the score of a record: of a category with weight w that a part a of all
records has, abs(w) sqrt(a); of a curve its importance (`privfit.linear.shapes`). What noise alone
could have made comes behind all others, and categories that hardly any record has come last.

A curve is below its noise if its importance is no larger than what noise makes of a curve that is
flat: the root of the mean square of its errors, times the width of an interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationError
from privfit.base.tables import Frame, aligned, as_frame
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.domains.parts import Part
from privfit.runs.noise import Spread

__all__ = [
    "Group",
    "Intervals",
    "Line",
    "Outline",
    "Released",
    "Summary",
    "Weight",
    "half_width",
]

Cells: TypeAlias = tuple[str, ...]  # a row of a table

SHOWN = 12  # rows that a text shows of each class
RARE = 0.005  # of all records: levels that fewer have are no ends of a curve


def half_width(level: Any) -> float:
    """How many standard deviations an interval of this level reaches to either side."""
    if not is_finite(level) or not 0 < level < 1:
        raise DeclarationError(f"level ({level!r}) must be between 0 and 1; pass one such as 0.9")
    return float(scipy.special.ndtri((1 + level) / 2))


@dataclass(frozen=True)
class Weight:
    """One weight of a released linear model.

    Parameters
    ----------
    name : str
        The encoded column, or 'intercept'.
    label : object
        The class whose log odds the weight adds to.
    weight : float
        The weight; those of a column's levels have mean 0 over records if there is an intercept.
    per_unit : float or None
        The same for one unit of the records' own scale; None for categories.
    error : float or None
        Its standard deviation from noise alone; None if it is not known.
    lower, upper : float or None
        The interval around the weight from noise alone.
    below_noise : bool or None
        Whether the interval contains 0, so that noise alone could have made the weight.
    column : str, default=''
        The column of the table, if it has levels.
    share : float, default=1.0
        The part of all records that has this level, as far as it is known.

    See Also
    --------
    Summary : All weights of a model.

    Examples
    --------
    >>> from privfit.linear import Weight
    >>> Weight("age", 1, 0.5, 0.01, 0.1, 0.34, 0.66, False).error
    0.1
    """

    name: str
    label: Any
    weight: float
    per_unit: float | None
    error: float | None
    lower: float | None
    upper: float | None
    below_noise: bool | None
    column: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class Outline:
    """The curve of a number with levels, in short.

    Parameters
    ----------
    name : str
        The column.
    label : object
        The class whose score the curve adds to.
    importance : float
        The standard deviation of its values over records.
    smallest, largest : float
        Its smallest and its largest value, of levels that are not rare: at least one record in
        200 has them, or half as many as all levels have on average.
    smallest_at, largest_at : str
        Where these are.
    error : float or None
        The standard deviation of a value from noise alone, as a root of the mean square over
        records; None if it is not known.
    below_noise : bool or None
        Whether noise alone could have made a curve of this importance.

    See Also
    --------
    Summary : Has the outlines of all numbers with levels.
    Shape : The whole curve.

    Examples
    --------
    >>> from privfit.linear import Outline
    >>> Outline("age", 1, 0.8, -1.5, 0.9, "below 25", "45 to 50", 0.1, False).largest_at
    '45 to 50'
    """

    name: str
    label: Any
    importance: float
    smallest: float
    largest: float
    smallest_at: str
    largest_at: str
    error: float | None
    below_noise: bool | None


@dataclass(frozen=True)
class Summary:
    """The weights of a released linear model with errors and intervals, as `summary` returns them.

    Errors are of noise alone, not of sampling: an interval covers the weight that the same solver
    would have reached on the same records without noise.

    Parameters
    ----------
    weights : tuple of Weight
        The weights of each class, in the order of the columns, and the intercept.
    level : float
        The level of the intervals.
    solver : str
        The name of the solver.
    outlines : tuple of Outline, default=()
        The curve of each number with levels, for each class.

    See Also
    --------
    privfit.LogisticRegression : Has a method `summary`.

    Notes
    -----
    It is post-processing of what was released, and costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> declared = {"domain": (-1, 1), "classes": [0, 1], "solver": "gradient"}
    >>> model = LogisticRegression(1.0, 1e-6, **declared).fit(X, (X[:, 0] > 0).astype(int))
    >>> [one.name for one in model.summary().weights]
    ['x0', 'x1', 'intercept']
    """

    weights: tuple[Weight, ...]
    level: float
    solver: str
    outlines: tuple[Outline, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether the noise of the weights is known."""
        return all(one.error is not None for one in self.weights)

    def to_dict(self) -> dict[str, Any]:
        """The weights as plain values.

        Returns
        -------
        dict
            `solver`, `level`, and lists of `weights` and `outlines`.
        """
        weights, outlines = ([asdict(one) for one in some]
                             for some in (self.weights, self.outlines))  # fmt: skip
        return {"solver": self.solver, "level": self.level, "weights": weights,
                "outlines": outlines}  # fmt: skip

    def to_frame(self) -> Frame:
        """A table with one row for each weight of each class.

        Returns
        -------
        pandas.DataFrame
            By `name`: `label`, `weight`, `per_unit`, `error`, `lower`, `upper`, `below_noise`,
            `column`, `share`.
        """
        rows = [asdict(one) for one in self.weights]
        return as_frame({key: [row[key] for row in rows] for key in rows[0]}, "name")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, most: int = SHOWN) -> list[str]:
        """A text: what matters most first, what is below its noise last.

        A number with levels is one row: its smallest and its largest value, and where they are.

        Parameters
        ----------
        most : int, default=12
            How many rows of each class to show beside its intercept.

        Returns
        -------
        list of str
            The lines.
        """
        lines: list[str] = []
        for head, rows, note in self.tables(most):
            lines += [*([""] if lines else []), *aligned(head, rows), *([note] if note else [])]
        if not self.has_errors:
            lines.append(f"no errors are known for solver {self.solver!r}")
        return lines

    def tables(self, most: int = SHOWN) -> list[tuple[Cells, list[Cells], str]]:
        """What `lines` shows, as tables: a head, rows and a note for each class.

        Parameters
        ----------
        most : int, default=12
            How many rows of each class to show beside its intercept.

        Returns
        -------
        list of (head, rows, note)
            Texts; the note is empty if there is nothing to add.
        """
        labels = dict.fromkeys(one.label for one in self.weights)
        return [self._class_table(label, most) for label in labels]

    def _class_table(self, label: Any, most: int) -> tuple[Cells, list[Cells], str]:
        """The table of one class."""
        weights = [one for one in self.weights if one.label == label]
        curves = [one for one in self.outlines if one.label == label]
        bent = {one.name for one in curves}
        plain = [one for one in weights if one.name != "intercept" and one.column not in bent]
        rows: list[Weight | Outline] = [*curves, *plain]
        levels = Counter(one.column for one in plain if one.column)
        ordered = sorted(rows, key=lambda one: (_is_rare(one, levels), bool(one.below_noise),
                                                -_size(one)))  # fmt: skip
        shown = ordered[:most] + [one for one in weights if one.name == "intercept"]
        what = "rows" if curves else "weights"
        head: Cells = (f"largest of {len(rows)} {what}", str(label), "per unit")
        if curves:
            head = (head[0], "size", *head[1:])
        if self.has_errors:
            head += ("error", f"{100 * self.level:g} % interval", "")
        below, note = sum(bool(one.below_noise) for one in rows), ""
        if below:
            one_is = f"1 {what[:-1]} is below its noise"
            note = one_is if below == 1 else f"{below} {what} are below their noise"
        return head, [self._cells(one, bool(curves)) for one in shown], note

    def _cells(self, one: Weight | Outline, sized: bool) -> Cells:
        """A row of the text."""
        size = () if not sized else ("",) if one.name == "intercept" else (f"{_size(one):.4f}",)
        if isinstance(one, Outline):
            ends = (f"{one.smallest:+.2f} at {one.smallest_at}",
                    f"{one.largest:+.2f} at {one.largest_at}")  # fmt: skip
            cells: Cells = (one.name, *size, ", ".join(ends), "")
            interval = ""
        else:
            per_unit = "" if one.per_unit is None else f"{one.per_unit:+.4g}"
            cells = (one.name, *size, f"{one.weight:+.4f}", per_unit)
            interval = f"{one.lower:+.4f} to {one.upper:+.4f}" if self.has_errors else ""
        if self.has_errors:
            cells += (f"{one.error:.4f}", interval, "below noise" if one.below_noise else "")
        return cells


def _size(one: Weight | Outline) -> float:
    """The root of the mean square of what a row adds to the scores of records."""
    if isinstance(one, Outline):
        return one.importance
    unit = 1 / math.sqrt(12) if one.per_unit is not None else 1.0  # over a range, from its middle
    return abs(one.weight) * unit * math.sqrt(one.share)


def _is_rare(one: Weight | Outline, levels: Mapping[str, int]) -> bool:
    """Whether a row is a category that hardly any record has; `levels` counts those of columns."""
    if isinstance(one, Outline) or not one.column:
        return False
    return one.share < rare_share(levels[one.column])


def rare_share(levels: int) -> float:
    """The part of all records below which one of so many levels is rare."""
    return min(RARE, 0.5 / levels)


@dataclass(frozen=True, eq=False)
class Group:
    """The levels of a column: their place among the weights, names, and parts of all records."""

    part: Part
    place: slice
    shares: Floats

    def outline(self, label: Any, values: Floats, errors: Floats | None, reach: float) -> Outline:
        """The curve of a number with these centred values (n_levels + missing,)."""
        n = self.part.n_levels
        known = self.shares[:n]
        frequent = np.flatnonzero(known >= rare_share(n) * known.sum())
        low, high = (int(frequent[find(values[frequent])]) for find in (np.argmin, np.argmax))
        names = self.part.names
        size = math.sqrt(float(self.shares @ np.square(values)))
        error = None if errors is None else math.sqrt(float(self.shares @ np.square(errors)))
        return Outline(
            self.part.name, label, size, float(values[low]), float(values[high]), names[low],
            names[high], error, None if error is None else size <= reach * error,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Released:
    """A released linear model: weights (heads, d), intercepts, and their noise if it is known.

    `groups` are the columns of levels, and `ranges` what 0 and 1 stand for in columns of fractions.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    coef: Floats
    intercept: Floats | None
    groups: Sequence[Group]
    ranges: Mapping[int, tuple[float, float]]
    spreads: Sequence[Spread] | None
    solver: str

    def summary(self, level: float = 0.9) -> Summary:
        """All weights, with intervals of this level."""
        reach, map_ = half_width(level), self._centring()
        weights, outlines = [], []
        for head, label in enumerate(self.labels):
            own = self.coef[head]
            if self.intercept is not None:
                own = np.append(own, self.intercept[head])
            values = map_ @ own
            errors = None if self.spreads is None else self.spreads[head].along(map_)
            weights += self._weights(label, values, errors, reach)
            outlines += [
                one.outline(
                    label, values[one.place], None if errors is None else errors[one.place], reach
                )
                for one in self.groups
                if one.part.kind == "number"
            ]
        return Summary(tuple(weights), level, self.solver, tuple(outlines))

    def _centring(self) -> Floats:
        """(n, n): moves the mean weight of each column's levels to the intercept.

        A record has one category of each column, so this is the same model; without an intercept
        weights stay as they are.
        """
        width = self.coef.shape[1]
        if self.intercept is None:
            return np.eye(width)
        map_ = np.eye(width + 1)
        for group in self.groups:
            map_[group.place, group.place] -= group.shares
            map_[width, group.place] += group.shares
        return map_

    def _weights(
        self, label: Any, weights: Floats, errors: Floats | None, reach: float
    ) -> list[Weight]:
        """The weights of one class, the intercept last."""
        levels = {j: (name, group.part.name, share) for group in self.groups
                  for j, name, share in zip(range(group.place.start, group.place.stop),
                                            group.part.full_names, group.shares.tolist(),
                                            strict=True)}  # fmt: skip
        found = []
        for j, weight in enumerate(weights.tolist()):
            unit = None
            if j in levels:
                name, column, share = levels[j]
            else:
                name, column, share = "intercept", "", 1.0
                if j < len(self.names):
                    name, (low, high) = self.names[j], self.ranges.get(j, (0.0, 1.0))
                    unit = weight / (high - low)
            one = Weight(name, label, weight, unit, None, None, None, None, column, share)
            if errors is not None:
                error = float(errors[j])
                half = reach * error
                one = replace(one, error=error, lower=weight - half, upper=weight + half,
                              below_noise=abs(weight) <= half)  # fmt: skip
            found.append(one)
        return found


@dataclass(frozen=True, eq=False)
class Line:
    """The slope and the intercept that make log odds of margins, for each head."""

    slope: Floats
    intercept: Floats


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of predictions from the known noise of a model, as `predict_interval` returns them.

    They are of noise alone, not of sampling: an interval covers what the model would have said that
    the same solver reaches on the same records without noise.

    Parameters
    ----------
    level : float
        The level of the intervals.
    lower, upper : array of shape (n,) or (n, n_classes)
        The ends of the intervals of the margins, which are log odds of a logistic regression.
    lower_proba, upper_proba : array of shape (n, n_classes) or None
        The ends of the intervals of the classes' probabilities; None if there are no probabilities.

    See Also
    --------
    privfit.LogisticRegression : Has a method `predict_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> declared = {"domain": (-1, 1), "classes": [0, 1], "solver": "gradient"}
    >>> model = LogisticRegression(1.0, 1e-6, **declared).fit(X, (X[:, 0] > 0).astype(int))
    >>> found = model.predict_interval([[0.5, 0.0]])
    >>> bool(found.lower[0] < model.decision_function([[0.5, 0.0]])[0] < found.upper[0])
    True
    """

    level: float
    lower: Floats
    upper: Floats
    lower_proba: Floats | None
    upper_proba: Floats | None

    @classmethod
    def of(cls, level: float, z: Floats, errors: Floats, scale: Line | None) -> Intervals:
        """The intervals around margins.

        Parameters
        ----------
        level : float
            The level of the intervals.
        z : array of shape (n,) or (n, n_classes)
            The margins.
        errors : array of the same shape
            Their standard deviations.
        scale : Line or None
            What makes log odds of margins; None if there are no probabilities.

        Returns
        -------
        Intervals
            The intervals.
        """
        half = half_width(level) * errors
        lower, upper = z - half, z + half
        if scale is None:
            return cls(level, lower, upper, None, None)
        odds, deviations = z * scale.slope + scale.intercept, errors * np.abs(scale.slope)
        if z.ndim == 1:
            odds, deviations = np.stack([-odds, odds], 1), np.stack([deviations] * 2, 1)
        else:
            odds, deviations = _of_shares(odds, deviations)
        half = half_width(level) * deviations
        return cls(
            level, lower, upper, scipy.special.expit(odds - half), scipy.special.expit(odds + half)
        )


def _of_shares(odds: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """The log odds of classes' shares of all their probabilities, and standard deviations.

    p_k = s_k / sum s_j for the probabilities s of each class versus the rest, whose noise is
    independent; to first order, log(p_k / (1 - p_k)) changes with odds k by 1 - s_k, and with any
    other odds j by -(1 - s_j) s_j / sum of all s but s_k.
    """
    s = scipy.special.expit(odds)
    others = s.sum(axis=1, keepdims=True) - s
    moves = np.square((1 - s) * s * deviations)
    squares = np.square((1 - s) * deviations)
    squares += (moves.sum(axis=1, keepdims=True) - moves) / others**2
    return np.log(s / others), np.sqrt(squares)
