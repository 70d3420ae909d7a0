"""Convex losses of a signed margin that perturbed fits minimise: two of our own, and a user's.

Perturbation (Theorem 3 of Chaudhuri and Monteleoni 2008) needs two bounds on a loss l,

    abs(l'(m)) <= slope,    0 <= l''(m) <= curvature    at every margin m,

and a gradient that is computed to a known error. `Logistic` and `HuberHinge` have both by
construction. A user's function has neither: its bounds are promises, and the rounding of its floats
is unknown. So it is never called with a record. `SmoothLoss` evaluates its derivative at public
margins, the multiples of 1/CELLS up to REACH, checks what was declared, and rounds; the loss that
is minimised is the `Tabled` one, whose derivative is the straight line between these numbers, and
constant beyond the outermost. Its bounds hold because the tabled numbers obey them, not because
somebody promised it:

- the numbers do not fall, so the tabled loss is convex;
- none is larger than the declared slope in size, so no point of a line between two of them is;
- no two neighbours differ by more than the curvature / CELLS, so no line is steeper.

It differs from the user's loss by what the derivative bends within 1/CELLS, at most sup abs(l''') /
(8 CELLS^2) in the slope, which is a matter of accuracy and not of privacy. None of this depends on
a record.

**One scale.** `convex` needs slopes of at most 1. A loss divided by its slope, with a regulariser
divided by the same number, has the same minimiser, so `Tabled` is l / slope, and its `slope` is
what a regularisation is divided by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.typing import Floats
from privfit.base.validation import is_finite
from privfit.objectives.smooth import CELLS, NO_KNOTS

__all__ = ["HuberHinge", "Logistic", "Loss", "SmoothLoss", "Tabled"]


REACH = 32  # beyond which slopes are constant
KNOT_BITS = 40  # of a tabled slope: differences of two are exact
LEAST, MOST = 1e-50, 1e50  # of bounds and regularisers: their ratios and squares stay finite
ROUNDING = 1e-9  # of declared bounds, relative: more than float64 adds to a smooth function


@dataclass(frozen=True)
class Logistic:
    """ln(1 + e^-m). With s minus its slope, the curvature is s (1 - s)."""

    slope = 1.0  # the steepest
    curvature = 0.25  # the largest
    swing = 0.5  # above abs(m) l'' wherever m is: at most 0.224, and 0.37 of a bound on it
    smoothing = 0.0  # none is needed
    knots = NO_KNOTS
    both_ways = False  # whether slopes have either sign


@dataclass(frozen=True)
class HuberHinge:
    """The hinge max(1 - m, 0), rounded by a parabola where m is within `smoothing` of 1."""

    smoothing: float

    slope = 1.0
    knots = NO_KNOTS
    both_ways = False

    @property
    def curvature(self) -> float:
        """The largest curvature."""
        return 1 / (2 * self.smoothing)

    @property
    def swing(self) -> float:
        """A bound on abs(m) l'' at every margin m: slopes change only up to 1 + smoothing."""
        return 1.01 * (1 + self.smoothing) * self.curvature


@dataclass(frozen=True, eq=False)
class Tabled:
    """A loss given by its slopes at margins i / CELLS, linear in between; divided by its slope.

    `knots` are minus these slopes, 2 REACH CELLS + 1 numbers, none larger than the one before.
    """

    name: str
    slope: float
    curvature: float
    knots: Floats = field(repr=False)

    smoothing = 0.0

    @property
    def both_ways(self) -> bool:
        """Whether slopes have either sign."""
        return bool(self.knots[0] > 0 > self.knots[-1])

    @cached_property
    def swing(self) -> float:
        """A bound on abs(m) l'' at every margin m."""
        ends = np.abs(_margins())
        farthest = np.maximum(ends[:-1], ends[1:])
        return 1.01 * float((farthest * -np.diff(self.knots)).max()) * CELLS


Loss: TypeAlias = Logistic | HuberHinge | Tabled


@dataclass(frozen=True)
class SmoothLoss:
    """A user-defined convex loss of the signed margin m, with bounds that are checked.

    m is a record's <x, w> + intercept for class 1 and minus that for class 0, for the coded record.
    The bounds are checked at 8,193 margins from -32 to 32, before anything is charged; the loss
    that is minimised has these slopes, with straight lines in between, so that the guarantee does
    not depend on how the functions behave elsewhere. They are never called with a record.

    Parameters
    ----------
    value, derivative : callable (margins) -> array
        The loss and its derivative, each a function of a float64 array.
    slope : float
        The largest absolute value of the derivative. The noise is proportional to it.
    curvature : float
        The largest second derivative.

    Raises
    ------
    DeclarationError
        If the loss is not as declared: not convex, too steep, too curved, or with a derivative that
        is not its own. The message names the margin and the bound.

    See Also
    --------
    ObjectivePerturbation : Takes a loss.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, "Privacy-preserving logistic regression", NeurIPS 2008, Theorem 3.

    Examples
    --------
    A hinge whose corner is rounded by a square root:

    >>> import numpy as np
    >>> from privfit import LinearSVC, ObjectivePerturbation, SmoothLoss
    >>> rounded = SmoothLoss(
    ...     lambda m: (1 - m + np.sqrt((1 - m) ** 2 + 1)) / 2,
    ...     lambda m: (-1 - (1 - m) / np.sqrt((1 - m) ** 2 + 1)) / 2,
    ...     slope=1, curvature=0.5,
    ... )
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> settings = ObjectivePerturbation(loss=rounded)
    >>> model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=settings)
    >>> model.fit(X, y).coef_.shape
    (1, 2)
    """

    value: Callable[[Floats], Any]
    derivative: Callable[[Floats], Any]
    slope: float
    curvature: float

    def __post_init__(self) -> None:
        for name in ("value", "derivative"):
            if not callable(getattr(self, name)):
                raise DeclarationTypeError(
                    f"{name} ({type(getattr(self, name)).__name__}) must be a function; pass "
                    f"{name}(margins)"
                )
        for name in ("slope", "curvature"):
            bound = getattr(self, name)
            if not is_finite(bound) or not LEAST <= bound <= MOST:
                raise DeclarationError(
                    f"{name} ({bound!r}) must be a positive number, from {LEAST:g} to {MOST:g}; "
                    "pass a bound"
                )
        self._check_slopes(slopes := self._at_margins("derivative"))
        self._check_values(self._at_margins("value"), slopes)

    def __repr__(self) -> str:
        return f"SmoothLoss({self.name}, slope={self.slope:g}, curvature={self.curvature:g})"

    @property
    def name(self) -> str:
        """The name of the loss in a release."""
        return getattr(self.value, "__name__", type(self.value).__name__)

    @cached_property
    def tabled(self) -> Tabled:
        """The loss that is minimised."""
        minus = np.clip(-self._at_margins("derivative") / self.slope, -1.0, 1.0)
        knots = np.minimum.accumulate(np.ldexp(np.rint(np.ldexp(minus, KNOT_BITS)), -KNOT_BITS))
        steepest = float(-np.diff(knots).min()) * CELLS  # rounding may have raised it
        return Tabled(self.name, float(self.slope), max(self.curvature / self.slope, steepest),
                      knots)  # fmt: skip

    def _at_margins(self, which: str) -> Floats:
        """The values of one of the functions at all margins of the table."""
        margins = _margins()
        try:
            found = np.asarray(getattr(self, which)(margins.copy()), dtype=np.float64)
        except Exception as error:
            raise DeclarationError(
                f"{which} must take an array of margins, but raised {type(error).__name__}; pass a "
                "function of numpy arrays"
            ) from None
        if found.shape != margins.shape:
            raise DeclarationError(
                f"{which} (shape {found.shape}) must return a number for each margin; pass a "
                "function of numpy arrays"
            )
        if not np.isfinite(found).all():
            where = margins[~np.isfinite(found)][0]
            raise DeclarationError(
                f"{which} must be finite, but is not at a margin of {where:g}; pass a loss that is "
                f"finite from -{REACH} to {REACH}"
            )
        return found

    def _check_slopes(self, slopes: Floats) -> None:
        """Check that slopes are as steep and curved as declared, and do not fall."""
        margins, room = _margins(), self.slope * ROUNDING
        steep = int(np.abs(slopes).argmax())
        if abs(slopes[steep]) > self.slope + room:
            raise DeclarationError(
                f"slope ({self.slope:g}) must bound the derivative, which is {slopes[steep]:g} at "
                f"a margin of {margins[steep]:g}; pass slope={abs(slopes[steep]):.4g} or more"
            )
        rise = np.diff(slopes)
        least, most = int(rise.argmin()), int(rise.argmax())
        if rise[least] < -room:
            raise DeclarationError(
                f"derivative must not fall, as it does after a margin of {margins[least]:g}; pass "
                "a convex loss"
            )
        if rise[most] * CELLS > self.curvature * (1 + ROUNDING) + room * CELLS:
            raise DeclarationError(
                f"curvature ({self.curvature:g}) must bound the second derivative, which is "
                f"{rise[most] * CELLS:.4g} or more after a margin of {margins[most]:g}; pass "
                f"curvature={1.01 * rise[most] * CELLS:.4g} or more"
            )

    def _check_values(self, values: Floats, slopes: Floats) -> None:
        """Check that the loss rises between two margins as its slopes at both of them allow."""
        rise, room = np.diff(values) * CELLS, self.slope * 1e-6 + np.abs(values).max() * ROUNDING
        outside = np.maximum(slopes[:-1] - rise, rise - slopes[1:])
        worst = int(outside.argmax())
        if outside[worst] > room:
            raise DeclarationError(
                f"derivative must be that of value, which rises by {rise[worst]:g} a unit after a "
                f"margin of {_margins()[worst]:g} and not by {slopes[worst]:g}; pass both of one "
                "loss"
            )


def _margins() -> Floats:
    """(2 REACH CELLS + 1,): the margins at which a loss is tabled."""
    return np.arange(-REACH * CELLS, REACH * CELLS + 1) / CELLS
