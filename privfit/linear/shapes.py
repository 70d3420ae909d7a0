"""Shapes: what each value of a column adds to the score of a released linear model.

A linear model under a schema is a sum of curves, one for each declared column: a step for each
level of a cut number, a bar for each category, a straight line for a plain number. The weights are
released, so a shape is post-processing, and costs nothing.

**Centre.** A record has one level of each column, so that a constant may move between a column and
the intercept. A shape is *centred*: its mean is 0 over all records, as far as it is known which
part a_k of them is in level k. Moments that an additive fit released tell it
(`privfit.linear.level_shares`), missing values too. Where nothing was released, the parts are
assumed: by the ranks of a column that has them (`Numeric.ranks`), and equal otherwise, with none
missing; a line is 0 in the middle of its range. No record is counted for it. The value of level j
is

    s_j = w_j - sum over k of a_k w_k,

a linear function of the weights, and its error is that of this function.

**Importance.** The standard deviation of a column's values over records, by the same parts; of a
line with weight w, over its range, abs(w) / sqrt(12). It is the standard deviation and not the mean
size because released second moments determine it: a mean size would depend on how the parts are
filled in between. It is never negative, and at most half of what the values span.

**Score.** The intercept, all centres and the values of all shapes add up to the margin of a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy  # its submodules load when first used

from privfit.base.errors import DeclarationError
from privfit.base.tables import Frame, as_frame
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.domains import Domain
from privfit.domains.grid import frozen
from privfit.domains.parts import Part
from privfit.linear.level_shares import read_shares

__all__ = ["Shape", "Shares", "importance_of", "importances_of", "part_of", "shape_of"]

ALIKE = 1e-12  # neighbouring levels whose values differ by no more are one step


@dataclass(frozen=True, eq=False)
class Shape:
    """What each value of a column adds to the score of a class.

    Parameters
    ----------
    name : str
        The name of the column.
    kind : {'number', 'category', 'line'}
        Steps of a number, levels of a category, or a number that enters as it is.
    label : object
        The class whose score it is.
    measure : {'log odds', 'margin'}
        What the score is.
    edges : array of shape (m + 1,) or None
        The ends of a number's steps, in order; infinite where no range is declared. Of a line, the
        two ends of its range. None for a category.
    levels : tuple of str
        The names of a category's levels; empty for a number.
    values : array of shape (m,)
        The centred value of each step or level; of a line, at the two ends of its range.
    lower, upper : array of shape (m,) or None
        The ends of the band. Without the noise of the fit, values would be within it with
        probability `level`, each by itself. None if no errors are known.
    missing : float or None
        The value of missing cells, if they are a level of their own.
    missing_lower, missing_upper : float or None
        The ends of its band.
    centre : float
        What was subtracted from the weights.
    importance : float
        The standard deviation of the values over records, as far as it is known where they are.
    level : float
        The probability of the band.
    part : Part
        The declared column.
    steps : array of int
        The position in `values` of each encoded level; that of missing cells is behind the last.

    See Also
    --------
    privfit.report.plotting.draw_shapes : Draws the shapes of a model.

    Notes
    -----
    Bands are of the noise alone, and not of sampling: other records of the same population would
    give other shapes, too.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import LogisticRegression, Numeric, Schema
    >>> ages = np.random.default_rng(0).integers(18, 90, 5000)
    >>> schema = Schema({"age": Numeric(18, 90, bins=[30, 65])})
    >>> model = LogisticRegression(1.0, 1e-6, domain=schema, classes=[False, True])
    >>> shape = model.fit({"age": ages}, ages > 65).shape("age")
    >>> shape.edges
    array([18., 30., 65., 90.])
    >>> bool(shape(20) < shape(80))
    True
    """

    name: str
    kind: Literal["number", "category", "line"]
    label: Any
    measure: str
    edges: Floats | None
    levels: tuple[str, ...]
    values: Floats
    lower: Floats | None
    upper: Floats | None
    missing: float | None
    missing_lower: float | None
    missing_upper: float | None
    centre: float
    importance: float
    level: float
    part: Part = field(repr=False)
    steps: Integers = field(repr=False)

    def __repr__(self) -> str:
        ends = f"{self.values.min():+.4g} to {self.values.max():+.4g}"
        return f"Shape({self.name!r}, {self.kind}, {ends} {self.measure} of {self.label!r})"

    def __call__(self, value: Any) -> float:
        """The value of a single cell."""
        return float(self.at([value])[0])

    def at(self, cells: Any) -> Floats:
        """The value of each cell of a column, which is read as the model reads it.

        Parameters
        ----------
        cells : array-like of shape (n,)
            Cells of the column, of any type that a table may hold.

        Returns
        -------
        array of shape (n,)
            What each of them adds to the score.
        """
        codes = self.part.codes(cells)
        if self.kind == "line":
            first, last = self.values
            return np.asarray(first + (last - first) * (codes / self.part.one))
        known = [] if self.missing is None else [self.missing]
        return np.append(self.values, known)[self.steps[codes]]

    def to_frame(self) -> Frame:
        """A table with one row for each step, level or end of a line, and one for missing values.

        Returns
        -------
        pandas.DataFrame
            The columns `column`, `label`, `level` (the name of a category, or '<missing>'), `low`
            and `high` (of a number's step), `value`, `lower` and `upper` (NaN if no errors are
            known).
        """
        n = len(self.values)
        unknown = np.full(n, np.nan)
        low, high = unknown, unknown
        if self.edges is not None:
            low, high = self.edges[-n:] if self.kind == "line" else self.edges[:-1], self.edges[-n:]
        rows: dict[str, Any] = {
            "level": [*self.levels] or [None] * n,
            "low": low,
            "high": high,
            "value": self.values,
            "lower": unknown if self.lower is None else self.lower,
            "upper": unknown if self.upper is None else self.upper,
        }
        if self.missing is not None:
            last = ("<missing>", np.nan, np.nan, self.missing, self.missing_lower,
                    self.missing_upper)  # fmt: skip
            rows = {key: [*cells, np.nan if one is None else one]
                    for (key, cells), one in zip(rows.items(), last, strict=True)}  # fmt: skip
        many = len(rows["level"])
        return as_frame({"column": [self.name] * many, "label": [self.label] * many, **rows})


Errors = Callable[[Floats], Floats | None]  # deviations of linear functions (m, width + 1)
Shares: TypeAlias = Sequence[float] | None  # of all levels, as a release keeps them


def part_of(domain: Domain, column: Any) -> Part:
    """The declared column of this name."""
    _check_named(domain)
    found = domain.parts.get(column) if isinstance(column, str) else None
    if found is None:
        names = list(domain.parts)
        more = ", ..." if len(names) > 12 else ""
        raise DeclarationError(
            f"column ({column!r}) must be a column of the schema; pass one of "
            f"{', '.join(map(repr, names[:12]))}{more}"
        )
    return found


def _check_named(domain: Domain) -> None:
    """Refuse a domain whose columns have no names."""
    if not domain.parts:
        raise DeclarationError(
            f"domain ({type(domain).__name__}) must declare columns by name, which have shapes; "
            "pass domain=Schema(...), and fit again"
        )


def shape_of(
    part: Part,
    weights: Floats,
    errors: Errors,
    shares: Shares,
    *,
    label: Any,
    measure: str,
    level: float,
) -> Shape:
    """The shape of a column.

    `weights` (width + 1,) are those of a model, its intercept last, `errors` the deviations from
    noise of linear functions of them, if they are known, and `shares` the parts of all records in
    all levels, if they were released.
    """
    if not is_finite(level) or not 0 < level < 1:
        raise DeclarationError(
            f"level ({level!r}) must be a probability between 0 and 1; pass one such as 0.9"
        )
    parts, own = read_shares(part, shares), weights[part.place]
    curves = _curves(part, parts, weights, errors, level)
    steps = _steps(part, curves)
    n, unknown = curves.shape[1] - part.has_missing, [None] * (3 - len(curves))
    firsts = np.unique(steps[:n], return_index=True)[1]
    kept: list[Any] = [*map(frozen, curves[:, firsts]), *unknown]
    lost: list[Any] = [*curves[:, -1].tolist(), *unknown] if part.has_missing else [None] * 3
    return Shape(
        name=part.name,
        kind=part.kind,
        label=label,
        measure=measure,
        edges=_edges(part, firsts),
        levels=part.names if part.kind == "category" else (),
        values=kept[0],
        lower=kept[1],
        upper=kept[2],
        missing=lost[0],
        missing_lower=lost[1],
        missing_upper=lost[2],
        centre=_centre(part, parts, own),
        importance=importance_of(part, parts, own),
        level=float(level),
        part=part,
        steps=frozen(steps),
    )


def _curves(part: Part, parts: Floats, weights: Floats, errors: Errors, level: float) -> Floats:
    """(1 or 3, values): the values, and the ends of their band if errors are known."""
    directions = _directions(part, parts)
    placed = np.zeros((len(directions), len(weights)))
    placed[:, part.place] = directions
    values, deviations = directions @ weights[part.place], errors(placed)
    if deviations is None:
        return values[None]
    half = float(scipy.special.ndtri((1 + level) / 2)) * deviations
    return np.stack([values, values - half, values + half])


def importances_of(domain: Domain, models: Floats, shares: Shares) -> dict[str, float]:
    """The importance of each column in models (n, width + 1), on average; the largest first."""
    _check_named(domain)
    found = {
        name: float(np.mean([importance_of(part, read_shares(part, shares), one[part.place])
                             for one in models]))
        for name, part in domain.parts.items()
    }  # fmt: skip
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def importance_of(part: Part, parts: Floats, own: Floats) -> float:
    """The standard deviation of a column's values over records; see above."""
    if part.kind == "line":
        return abs(float(own[0])) / math.sqrt(12)
    return math.sqrt(float(parts @ np.square(own - parts @ own)))


def _directions(part: Part, parts: Floats) -> Floats:
    """(values, encoded columns): the linear functions of a column's weights that values are."""
    if part.kind == "line":
        return np.array([[-0.5], [0.5]])
    return np.asarray(np.eye(part.column.width) - parts)


def _centre(part: Part, parts: Floats, own: Floats) -> float:
    return float(own[0] / 2) if part.kind == "line" else float(parts @ own)


def _steps(part: Part, curves: Floats) -> Integers:
    """The step of each value, where neighbouring levels of a number that are alike are one."""
    steps = np.arange(curves.shape[1])
    if part.kind != "number":
        return steps
    first = 0
    for i in range(1, part.n_levels):
        is_alike = (np.abs(curves[:, i] - curves[:, first]) <= ALIKE).all()
        first = first if is_alike else i
        steps[i] = steps[i - 1] + (not is_alike)
    if part.has_missing:
        steps[-1] = steps[part.n_levels - 1] + 1
    return steps


def _edges(part: Part, firsts: Integers) -> Floats | None:
    """The ends of steps that begin with these levels."""
    if part.kind == "category":
        return None
    return frozen(part.edges if part.kind == "line" else part.edges[[*firsts, -1]])
