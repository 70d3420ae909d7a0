"""Calibration curves: how often predicted probabilities come true, from released ROC curves.

`roc_curve` releases noisy counts of the negatives and the positives whose scores lie between
thresholds. Where scores are probabilities, the share of positives between two thresholds should lie
between these thresholds, too. So a calibration curve is a function of a released ROC curve, and
costs nothing.

**Intervals.** A count is a weighted sum of independent noises of a known law, whose variance is
exact. Laplace noises are taken for one Laplace noise of that variance: of all weighted sums of
Laplace noises with one variance it has the largest moment generating function, and at 98 % the
widest interval. The interval of a share then covers the noise of both counts and the choice of the
test records, as that of an accuracy under 'add_remove' does (`estimates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationTypeError
from privfit.base.typing import Floats
from privfit.clustering.sizes import Sizes
from privfit.evaluation.cumulative import Flat, Haar, Measurement, best_hierarchy
from privfit.evaluation.roc import RocCurve
from privfit.privacy.ledger import Release
from privfit.privacy.neighbours import Neighbours
from privfit.report.axes import BEHIND, COLOURS, axes, finish
from privfit.report.estimates import LEVEL, share_interval

__all__ = ["CalibrationCurve", "draw_calibration"]

MOST_CELLS = 8  # of a curve: neighbouring cells of the release are added up
SCORES = "scores in (0.0, 1.0)"  # what a release says of probabilities
MEASUREMENTS: dict[str, Callable[[int], Measurement]] = {
    "Flat": Flat, "Haar": Haar, "Hierarchy": best_hierarchy,
}  # fmt: skip
RARE = 0.35  # below this last threshold, axes are stretched near 0


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """The share of positives among records with similar predicted probabilities.

    Parameters
    ----------
    edges : array of shape (m + 1,)
        The ends of the cells of predicted probabilities, from 0 to 1.
    shares : array of shape (m,)
        The share of positives in each cell, after noise.
    lower, upper : array of shape (m,)
        The ends of its 95 % interval, of the noise and of the choice of test records.
    positives : float
        The share of positives among all records, after noise.

    See Also
    --------
    privfit.roc_curve : Releases what a calibration curve is computed from.
    privfit.report.plotting.draw_calibration : Plots one.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> from privfit.report.reliability import CalibrationCurve
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.uniform(size=20_000)
    >>> curve = roc_curve(rng.uniform(size=20_000) < chance, chance, 1.0)
    >>> found = CalibrationCurve.of(curve)
    >>> bool((found.lower <= found.edges[1:]).all() and (found.upper >= found.edges[:-1]).all())
    True
    """

    edges: Floats
    shares: Floats
    lower: Floats
    upper: Floats
    positives: float

    @classmethod
    def of(cls, curve: RocCurve) -> CalibrationCurve | None:
        """The calibration curve of a released ROC curve.

        Parameters
        ----------
        curve : RocCurve
            A curve of probabilities.

        Returns
        -------
        CalibrationCurve or None
            None if scores have other bounds than 0 and 1, or if the curve is one of 2014.
        """
        if not isinstance(curve, RocCurve):
            raise DeclarationTypeError(
                f"curve ({type(curve).__name__}) must be a RocCurve; pass what privfit.roc_curve "
                "returns"
            )
        counted = _Counted.of(curve.release)
        if counted is None:
            return None
        cuts = np.asarray(curve.release.parameters["cuts"], dtype=np.float64)
        starts = np.arange(0, len(cuts) + 1, -(-(len(cuts) + 1) // MOST_CELLS))
        counts, errors = counted.sums(starts, len(cuts) + 1)
        known = np.maximum(counts, 0.0)
        shares = known[1] / np.maximum(known.sum(axis=0), 1.0)
        ends = np.array([share_interval(Sizes(pair, counted.kind, error, np.array([1, 1])))
                         for pair, error in zip(counts[::-1].T, errors, strict=True)])  # fmt: skip
        edges = np.concatenate([[0.0], cuts[starts[1:] - 1], [1.0]])
        both = np.maximum(counts.sum(axis=1), 0.0)
        positives = float(both[1] / max(both.sum(), 1.0))
        lower, upper = ends.T
        return cls(edges, np.clip(shares, lower, upper), lower, upper, positives)

    def rows(self) -> list[tuple[str, str, str]]:
        """The cells as a table: predicted, observed and the interval."""
        cells = zip(self.edges[:-1], self.edges[1:], self.shares, self.lower, self.upper,
                    strict=True)  # fmt: skip
        return [(f"{low:.3f} to {high:.3f}", f"{share:.3f}", f"{least:.3f} to {most:.3f}")
                for low, high, share, least, most in cells]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Counted:
    """Released counts of a ROC curve: how they were measured, and with which noise."""

    measurement: Measurement
    noisy: Floats  # (2, q), in records
    kind: str
    scale: float  # of one Laplace draw, or the standard deviation of a Gaussian one, in records

    @classmethod
    def of(cls, release: Release) -> _Counted | None:
        said = release.settings
        name, bits = str(said.get("measurement")).partition("(")[0], said.get("bits")
        draws = [event for event in release.events if event.kind in ("pure", "gaussian")]
        if name not in MEASUREMENTS or not isinstance(bits, int) or len(draws) != 1:
            return None
        measurement = MEASUREMENTS[name](bits)
        if repr(measurement) != said["measurement"] or release.domain != SCORES:
            return None
        change = measurement.sensitivity(Neighbours.of(release.adjacency))
        noisy = np.asarray(release.parameters["noisy"], dtype=np.float64)
        noisy = noisy / float(said["factor"])  # type: ignore[arg-type]
        if draws[0].kind == "gaussian":
            return cls(measurement, noisy, "gaussian", math.sqrt(change) / draws[0].parameter)
        return cls(measurement, noisy, "laplace", change / draws[0].parameter)

    def sums(self, starts: Any, m: int) -> tuple[Floats, Floats]:
        """Counts (2, g) of runs of the m cells, and the scale (g,) of one noise like theirs."""
        cells = self.measurement.estimate(self.noisy)[:, :m]
        weights = self.measurement.estimate(np.eye(self.noisy.shape[1]))[:, :m]
        lengths = np.sqrt(np.square(np.add.reduceat(weights, starts, axis=1)).sum(axis=0))
        return np.add.reduceat(cells, starts, axis=1), self.scale * lengths


def draw_calibration(curve: Any, ax: Any = None) -> Any:
    """Draw how often predicted probabilities come true, by a released ROC curve.

    Parameters
    ----------
    curve : RocCurve or CalibrationCurve
        What `roc_curve` released of probabilities. A box spans the predicted probabilities of a
        cell and the 95 % interval of its share of positives; probabilities are honest where boxes
        meet the diagonal. If nearly all predictions are small, both axes are stretched near 0.
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import roc_curve
    >>> from privfit.report.plotting import draw_calibration
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.uniform(size=5000)
    >>> draw_calibration(roc_curve(rng.uniform(size=5000) < chance, chance, 1.0)).get_xlabel()
    'predicted probability'
    """
    found = curve if isinstance(curve, CalibrationCurve) else CalibrationCurve.of(curve)
    if found is None:
        raise DeclarationTypeError(
            "curve must be one of probabilities to show calibration; pass what privfit.roc_curve "
            "returns for scores between 0 and 1, with its own thresholds"
        )
    ax = axes(ax, (4.8, 5.2))
    ax.plot([0, 1], [0, 1], color="0.45", linewidth=1.2, linestyle=(0, (1, 2)), zorder=BEHIND,
            label="honest probabilities")  # fmt: skip
    ax.stairs(found.upper, found.edges, baseline=found.lower, fill=True, color=COLOURS[0],
              alpha=0.25, linewidth=0, label=f"{100 * LEVEL:g} % interval")  # fmt: skip
    ax.hlines(found.shares, found.edges[:-1], found.edges[1:], color=COLOURS[0], linewidth=1.6,
              label="share of positives, after noise")  # fmt: skip
    if len(found.edges) > 2 and found.edges[-2] < RARE:
        stretched = {"functions": (np.sqrt, np.square)}
        ax.set_xscale("function", **stretched)
        ax.set_yscale("function", **stretched)
        ticks = [0, 0.02, 0.1, 0.25, 0.5, 1]
        ax.set(xticks=ticks, yticks=ticks)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="predicted probability", ylabel="share of positives", box_aspect=1)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    finish(ax, columns=1)
    return ax
