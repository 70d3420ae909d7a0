"""How far noise moved the weights of a released linear model: a normal law, by known numbers.

All noise that a solver draws has a public size, so how far it carried the answer from what the same
solver would have reached without it - clips, ridge and steps in place - is known to first order.
It is a function of public numbers and of what was released: post-processing, which costs nothing.
Errors are of noise alone, and not of sampling.

**Output perturbation** adds noise to the weights: nothing is approximated.

**Descent.** In coordinates in which records are uncorrelated, a step moves weights v, from noise
that has a standard deviation s in each coordinate of each gradient, by

    velocity = m velocity - h_j v_j + s xi_j,    v_j = shrink (v_j + step velocity),

where v is the distance to the path without noise, m the momentum and h_j the curvature of the loss
along coordinate j (`noise_of` turns coordinates until there is none between them). So noise of step
i arrives in weights of step t times a public response that depends on t - i alone, and in the mean
of the last steps times a mean of responses; the sum of their squares over i is the variance
(`deviations`).

**Curvature.** Released second moments say how far records reach in each direction, after what
noise did to their eigenvalues is undone (`estimated`). Records are taken as normal, labels as the
model says (less sure, as clipped slopes make weights too large), and squared lengths of records as
Gamma variables. Then margins are normal, and the mean curvature at the released weights is known
along the direction of the weights, where it is smaller, and across it (`Records.curvature`). A
record whose gradient is clipped has no curvature: its length no longer depends on the weights.

**What is left out**: noise carries weights to where the loss bends less, and noisy moments seem to
bend more in one direction and less in another; both make errors larger. `TRUSTED` is the part of
the curvature that was chosen for this, by the coverage of intervals on generated tables
(docs/uncertainty.md). The formula is a rule with measured coverage, not a theorem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load when first used

from privfit.base import blas
from privfit.base.typing import Floats

__all__ = [
    "NODES",
    "SHARES",
    "Margins",
    "Records",
    "Stride",
    "Walk",
    "deviations",
    "estimated",
    "noise_of",
]

NODES = np.linspace(-6.0, 6.0, 121)  # of a standard normal margin
SHARES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
TRUSTED = {"logistic": 0.75, "hinge": 0.6}  # parts of the curvature, by measured coverage
LEAST = 1e-12  # of a residual: a shorter gradient is not clipped either
NARROWEST = 1e-3  # standard deviation of margins: below, a model says next to nothing
ODDS = 0.7  # log odds of a label, a unit of a margin: clipped slopes make weights too large
ODDS_OF_HINGE = 2.0  # log odds of a label, a unit of a margin of the hinge loss


@dataclass(frozen=True)
class Walk:
    """The public numbers of a descent: its pace, and the noise of each step.

    Parameters
    ----------
    step : float
        How far a step goes along a mean gradient.
    shrink : float
        What a step multiplies weights by.
    momentum : float
        What a step keeps of the velocity.
    deviation : float
        Standard deviation of the noise of a mean gradient, in each coordinate.
    steps : int
        Number of steps that were taken.
    averaged : int
        Number of last steps whose mean is the answer.
    """

    step: float
    shrink: float
    momentum: float
    deviation: float
    steps: int
    averaged: int

    def settles(self, curvature: Floats) -> bool:
        """Whether noise decays in a loss of this curvature (k, k), rather than growing by steps.

        A step multiplies (weight, velocity) by a matrix of trace shrink (1 - step h) + m and
        determinant shrink m, whose eigenvalues are within the unit circle if
        shrink step h < (1 + m) (1 + shrink). Beyond, only the clip ends the growth, and a linear
        law says nothing.
        """
        with blas.one_thread():
            steepest = float(np.linalg.eigvalsh(curvature)[-1])
        edge = (1 + self.momentum) * (1 + self.shrink)
        return self.shrink * self.step * steepest < edge


@dataclass(frozen=True)
class Stride:
    """The public numbers of a descent whose steps differ, without momentum.

    Parameters
    ----------
    steps : sequence of float
        How far each step goes along a mean gradient; 0 if it used none.
    kept : sequence of float
        What each step multiplies weights by.
    deviation : float
        Standard deviation of the noise of a mean gradient, in each coordinate.
    averaged : int
        Number of last steps whose mean is the answer.
    """

    steps: Sequence[float]
    kept: Sequence[float]
    deviation: float
    averaged: int


def noise_of(walk: Walk | Stride, curvature: Floats, basis: Floats) -> Floats:
    """(k, width): independent directions of the answer's noise in coded weights, with lengths.

    `basis` (k, width) is what the descent multiplies coded records by, and `curvature` (k, k) that
    of the loss in its coordinates, or (k,) if it has none between them.
    """
    if curvature.ndim == 1:
        return deviations(walk, curvature)[:, None] * basis
    with blas.one_thread():
        values, vectors = np.linalg.eigh(curvature)
        return np.asarray((vectors * deviations(walk, np.maximum(values, 0.0))).T @ basis)


def deviations(walk: Walk | Stride, curvature: Floats) -> Floats:
    """(k,): the standard deviation of the answer's noise in coordinates with these curvatures."""
    if isinstance(walk, Stride):
        return _of_stride(walk, curvature)
    responses = np.empty((walk.steps, len(curvature)))
    moved = np.zeros(len(curvature))
    velocity = np.ones(len(curvature))
    for response in responses:
        moved = walk.shrink * (moved + walk.step * velocity)
        response[:] = moved
        velocity = walk.momentum * velocity - curvature * moved
    # Noise of the step before the last i is in the last i + 1 weights, of which some are averaged.
    sums = np.cumsum(responses, axis=0)
    sums[walk.averaged :] -= sums[: walk.steps - walk.averaged].copy()
    return np.asarray(walk.deviation / walk.averaged * np.sqrt(np.square(sums).sum(axis=0)))


def _of_stride(walk: Stride, curvature: Floats) -> Floats:
    """The same by following the noise of each step."""
    moved = np.zeros((len(walk.steps), len(curvature)))
    sums = np.zeros_like(moved)
    for i, (step, kept) in enumerate(zip(walk.steps, walk.kept, strict=True)):
        moved *= 1 - step * curvature
        moved[i] += step
        moved *= kept
        if i >= len(walk.steps) - walk.averaged:
            sums += moved
    return np.asarray(walk.deviation / walk.averaged * np.sqrt(np.square(sums).sum(axis=0)))


# ---------------------------------------------------------------------------------------- curvature


def estimated(noisy: Floats, deviation: float, empty: Floats) -> Floats:
    """(k, k): the matrix that is likely before noise of this standard deviation was added.

    `empty` (g, k) are directions that no record has any part of, by declaration. Along the others
    noise pushes eigenvalues apart and turns eigenvectors: the smallest become negative where
    records do reach, and the largest are too large. An eigenvector has on average the square
    value_j - 2 deviation^2 sum of 1 / (value_j - value_i) in the matrix before noise (Bun, Allez,
    Bouchaud, Potters 2016); of values that are close, noise alone decides, and they count for less.
    """
    with blas.one_thread():
        whole, _ = np.linalg.qr(empty.T, mode="complete")
        filled = whole[:, len(empty) :]
        values, vectors = np.linalg.eigh(filled.T @ noisy @ filled)
        apart = values[:, None] - values
        pushes = (apart / (apart**2 + deviation**2)).sum(axis=1)
        squares = np.maximum(values - 2 * deviation**2 * pushes, 0.0)
        axes = filled @ vectors
        return np.asarray((axes * squares) @ axes.T)


@dataclass(frozen=True, eq=False)
class Records:
    """What released second moments say of records, in the coordinates of a descent.

    Parameters
    ----------
    moments : array of shape (k, k)
        The mean of u u' over coded records u, as estimated.
    basis : array of shape (k, k)
        What a descent multiplies coded records by.
    constant : float
        The last entry of every coded record; 0 if there is no such entry.
    """

    moments: Floats
    basis: Floats
    constant: float

    def curvature(self, loss: str, weights: Floats, clip: float) -> Floats:
        """(k, k): the mean curvature of the clipped loss at coded weights, in these coordinates.

        With phi = m + b t + rest for records in these coordinates, t a standard normal margin, and
        c_i the mean of t^i times the curvature of a record of margin t, it is
        c_0 (F - b b') + c_1 (m b' + b m') + c_2 b b', F the mean of phi phi'.
        """
        u, F = weights, self.basis @ self.moments @ self.basis.T
        mean = self.moments[:, -1] / self.constant if self.constant else np.zeros(len(u))
        middle = float(mean @ u)
        deviation = math.sqrt(max(float(u @ self.moments @ u) - middle**2, NARROWEST**2))
        m, b = self.basis @ mean, self.basis @ (self.moments @ u - middle * mean) / deviation
        margins = Margins(middle, deviation, *_lengths(F, m, b))
        c = margins.hinge(clip) if loss == "hinge" else margins.logistic(clip)
        c, mixed = TRUSTED[loss] * c, np.outer(m, b)
        return np.asarray(c[0] * F + c[1] * (mixed + mixed.T) + (c[2] - c[0]) * np.outer(b, b))


def _lengths(F: Floats, m: Floats, b: Floats) -> tuple[Floats, float]:
    """Coefficients of the mean squared length in t, and the shape of its Gamma distribution."""
    C = F - np.outer(m, m)
    total = float(np.trace(F))
    varies = 2 * float(np.square(C).sum()) + 4 * float(m @ C @ m)
    powers = np.array([total - float(b @ b), 2 * float(m @ b), float(b @ b)])
    return powers, total**2 / max(varies, 1e-9 * total**2, LEAST)


@dataclass(frozen=True, eq=False)
class Margins:
    """Normal margins, and squared lengths of records: a quadratic in t times a Gamma variable."""

    mean: float
    deviation: float
    squares: Floats
    shape: float

    def logistic(self, clip: float) -> Floats:
        """(3,): the means of t^i times the curvature of the logistic loss, without clipped records.

        A gradient that is longer than `clip` is clipped, and its length no longer bends.
        """
        p = scipy.special.expit(self.mean + self.deviation * NODES)
        wrong = np.maximum(np.stack([p, 1 - p]), LEAST)  # residuals of labels 0 and 1
        ratio = clip / (wrong * self._lengths(NODES))
        unclipped = scipy.special.gammainc(
            self.shape + 1, self.shape * ratio**2
        )  # of squared lengths
        ones = scipy.special.expit(ODDS * (self.mean + self.deviation * NODES))
        bends = p * (1 - p) * (np.stack([1 - ones, ones]) * unclipped).sum(axis=0)
        return np.asarray(np.stack([np.ones_like(NODES), NODES, NODES**2]) @ (SHARES * bends))

    def hinge(self, clip: float) -> Floats:
        """(3,): the means of t^i times the density of margins where the hinge bends, at 1.

        A gradient falls from its clipped length to 0 there.
        """
        ends = (np.array([1.0, -1.0]) - self.mean) / self.deviation
        density = np.exp(-(ends**2) / 2) / (self.deviation * math.sqrt(2 * math.pi))
        ratio, shape = clip / self._lengths(ends), self.shape
        at = shape * ratio**2
        root = math.exp(
            scipy.special.gammaln(shape + 0.5) - scipy.special.gammaln(shape + 1)
        ) * math.sqrt(shape)
        kept = scipy.special.gammainc(shape + 1, at) + ratio * root * scipy.special.gammaincc(
            shape + 0.5, at
        )
        bends = scipy.special.expit(ODDS_OF_HINGE) * density * kept
        return np.asarray(np.stack([np.ones_like(ends), ends, ends**2]) @ bends)

    def _lengths(self, t: Floats) -> Floats:
        """Typical lengths of records with these margins."""
        squares = self.squares[0] + self.squares[1] * t + self.squares[2] * t**2
        return np.asarray(np.sqrt(np.maximum(squares, 1e-9)))
