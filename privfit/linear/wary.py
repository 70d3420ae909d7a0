"""The descent of additive models: it slows down, and looks at its first gradient before it goes.

Both rules see released gradients alone, and change neither the number of draws nor their price.

**Slower.** The block metric knows nothing of how columns are related. A step that is too long for
some direction carries the path from one side of it to the other, and the next gradient points
back. Under this metric, whenever two successive gradients g and g', in whitened
coordinates, have a cosine below -max(.15, 2.5 / sqrt(p)), steps become .7 times as long. Gradients
of noise alone have a cosine of 0 +- 1 / sqrt(p).

**Weak labels.** Where labels say little of the columns, features with few records are noise, and
the floor should be higher. At weights of 0 the mean gradient is one of residuals on whitened
features, whose squared length is an R^2 in units of the squared clip c^2. With the direction m of
the mean record taken out, and noise of variance s in each of p coordinates,

    R^2 = (g'g - (g'm)^2 - (p - 1) s) / (c^2 max(.2, 1 - (g'm / c)^2)),

and at least its own standard error. The floor is multiplied by (w / R^2)^1.5, within [1, 10]; w is
.2 by rule. If it rises by more than a twentieth, the coordinates are made anew from the moments
that were released, and the first gradient, which is of the old ones, moves nothing.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from privfit.base.typing import Floats
from privfit.linear.descent import CURVATURE, LEAST, SLOPE, Noise
from privfit.linear.feature_frames import FeatureFrame, Filled
from privfit.objectives import LinearObjective
from privfit.objectives.clipping import ClippedGradient
from privfit.objectives.coding import Coding
from privfit.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from privfit.runs.run import Run
from privfit.runs.spaces import Reals
from privfit.runs.stops import RunEnded

__all__ = ["Trail", "descend_warily"]

SLOWER = 0.7
OPPOSED, OPPOSED_BY_CHANCE = 0.15, 2.5  # cosines, the second in standard deviations of noise
HIGHEST_RISE, STEEP = 10.0, 1.5
WORTHWHILE = 1.05  # a rise of the floor for which coordinates are made anew
LEAST_STRENGTH, LEAST_SPREAD = 1e-4, 0.2


@dataclass(eq=False)
class Trail:
    """Where a descent went: after each step its weights, how long it was, and what it kept of them.

    `deviation` is that of the noise of a mean gradient, and `clip` the bound on the length of one.
    """

    deviation: float
    clip: float
    weights: list[Floats] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def add(self, weights: Floats, step: float, kept: float) -> None:
        """Note a step; one of length 0 used no gradient."""
        self.weights.append(weights)
        self.steps.append(step)
        self.kept.append(kept)


@dataclass(frozen=True, eq=False)
class _Gauge:
    """What a frame says of gradients: how they are clipped, their noise, and the first step."""

    clipped: ClippedGradient
    draw: DiscreteGaussian | DiscreteLaplace
    deviation: float
    step: float

    @classmethod
    def of(
        cls,
        run: Run[LinearObjective, Reals],
        coding: Coding,
        frame: FeatureFrame,
        s: Filled,
        noise: Noise,
    ) -> _Gauge:
        loss = run.objective.loss
        clip = s.clip * SLOPE[loss] * frame.length
        clipped = ClippedGradient(run.objective, coding, frame.of_codes(), clip, noise.order)
        sensitivity = clipped.sensitivity(run.neighbours)
        deviation = noise.deviation(sensitivity) * clipped.unit / frame.size
        drowned = math.sqrt(len(frame.basis)) * deviation / clipped.clip
        step = min(frame.fastest, 1 / math.sqrt(drowned)) / CURVATURE[loss]
        return cls(clipped, noise.of_gradient(sensitivity), deviation, step)


def descend_warily(
    run: Run[LinearObjective, Reals],
    coding: Coding,
    frame: FeatureFrame,
    s: Filled,
    noise: Noise,
) -> tuple[FeatureFrame, Trail]:
    """Take steps along noisy gradients from weights of 0, within the space; report each.

    Returns the frame of the steps, and the trail. If a callback ends the run, the descent ends.
    """
    gauge = _Gauge.of(run, coding, frame, s, noise)
    trail, step = Trail(gauge.deviation, gauge.clipped.clip), gauge.step
    weights = np.zeros(frame.features.dimensions)
    coded, before = frame.coded(weights), np.zeros(len(weights))
    with suppress(RunEnded):
        for index in range(s.steps):
            sums = gauge.clipped.sums(coding.weights(coded))
            noisy = np.asarray(run.release(gauge.draw, sums) * gauge.clipped.unit, np.float64)
            noisy /= frame.size
            factor = 1.0
            if index == 0 and s.weak:
                unit = s.clip * SLOPE[run.objective.loss]
                factor = _rise(noisy, frame, gauge.deviation, unit, s.weak)
            if factor > WORTHWHILE:
                frame = frame.raised(factor)
                del gauge  # whose matrices make room for others of their size
                gauge = _Gauge.of(run, coding, frame, s, noise)
                trail, step = Trail(gauge.deviation, gauge.clipped.clip), gauge.step
                trail.add(weights, 0.0, 1.0)
            else:
                slower = s.metric == "block" and _opposed(noisy, before)
                step *= SLOWER if slower else 1.0
                kept = 1 / (1 + step * s.ridge * gauge.deviation)
                moved = kept * (weights + step * (frame.basis.T @ noisy))
                weights, coded = frame.placed(moved, run.space)
                before = noisy
                trail.add(weights, step, kept)
            run.report(coding.weights(coded)[None])
    return frame, trail


def _opposed(gradient: Floats, before: Floats) -> bool:
    """Whether two gradients point against each other, more than noise does by chance."""
    bar = max(OPPOSED, OPPOSED_BY_CHANCE / math.sqrt(len(gradient)))
    lengths = float(np.linalg.norm(gradient)) * float(np.linalg.norm(before))
    return float(gradient @ before) < -bar * lengths


def _rise(
    gradient: Floats, frame: FeatureFrame, deviation: float, clip: float, weak: float
) -> float:
    """By how much the floor is raised, from the first gradient."""
    mean = frame.basis @ frame.means
    along = float(gradient @ mean) / max(float(np.linalg.norm(mean)), LEAST)
    spread = max(LEAST_SPREAD, 1 - min(1.0, abs(along) / clip) ** 2)
    noise = (len(gradient) - 1) * deviation**2
    unit = clip**2 * spread
    strength = (float(gradient @ gradient) - along**2 - noise) / unit
    error = noise * math.sqrt(2 / len(gradient)) / unit
    ratio = weak / max(strength, error, LEAST_STRENGTH)
    return float(np.clip(ratio**STEEP, 1.0, HIGHEST_RISE))
