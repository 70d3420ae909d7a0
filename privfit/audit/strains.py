"""Strain: which fraction of the charged privacy loss two neighbouring values would use up.

For each mechanism the distribution of its draws is known, so the largest privacy loss between two
values can be written down: the distance of the values in the norm that the mechanism hides, times
the rate of its noise. Divided by the loss of its event, that is the *strain*: at most 1 between
neighbours if the sensitivity is right, whatever the records. Nothing is drawn and nothing is
estimated, so there are no false alarms; an error is found as soon as the strain of one pair of
neighbours exceeds 1.

================================  ===============================================================
mechanism                         loss between the values v and v'
================================  ===============================================================
a selection, `TopK`               (max - min of v - v') epsilon / range, for each choice
`AboveThreshold`                  that of its threshold, and of each score that passes
`DiscreteLaplace`                 l1(v - v') epsilon / sensitivity
`DiscreteGaussian`                mu = l2(v - v') / sigma of the real Gaussian that covers it
`GammaVector`                     K(v - v') epsilon / sensitivity
`Medians`                         the first row, added up over the cells of a level
`SmoothMedians`                   the largest log ratio of a cut, added up in the same way
`SegmentQuantiles`                the first row, added up over its segments
`NameSet`                         the delta that the changed names need at their epsilon
`NoisyNames`                      that of its noise, over names that both tables have
`Unlikely`                        the chance that a name of one table is kept, by its delta
`SplitTree`                       the largest log ratio over all trees, by recursion
`PerturbedMinimiser`              the log ratio of densities, at points that favour one side
================================  ===============================================================

Values are compared; the sampler is not tested here (see `black_box`, and the tests of mechanisms).
"""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.base.errors import DeclarationTypeError
from privfit.base.typing import Floats
from privfit.evaluation.roc_plan import Medians
from privfit.linear.tilts import PerturbedMinimiser, tilt_deviation
from privfit.privacy.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    Mechanism,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.privacy.names import NameSet, NoisyNames, Unlikely
from privfit.privacy.noise_bodies import Ball
from privfit.privacy.privtree import Leaves, SplitTree
from privfit.privacy.quantiles import SegmentQuantiles
from privfit.privacy.smooth_medians import SmoothMedians

__all__ = ["strain"]


# Densities are compared so far out, in noise scales, along the change of the gradient, along this
# many axes and in as many random directions; then around the best point, so often at each distance.
FAR, DIRECTIONS, CLIMBS = 4.0 ** np.arange(-1, 4), 8, 6


@singledispatch
def strain(mechanism: Mechanism[Any, Any], first: Any, second: Any, output: Any = None) -> float:
    """The privacy loss between two values as a fraction of that of the mechanism's event.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism, with the parameters that it is run with.
    first, second : object
        Its values on two neighbouring tables.
    output : object, optional
        What it drew; mechanisms whose loss depends on it look there first.

    Returns
    -------
    float
        At most 1 if the sensitivity is right for these neighbours. Infinite if no epsilon holds.

    See Also
    --------
    paired : Applies it to every release of a run.

    Notes
    -----
    For a user-defined mechanism: ``strain.register(MyMechanism, rule)``, with such a function.

    Examples
    --------
    >>> from privfit import DiscreteLaplace
    >>> from privfit.audit import strain
    >>> strain(DiscreteLaplace(epsilon=1.0, sensitivity=1), [10, 5], [11, 6])
    2.0
    """
    raise DeclarationTypeError(
        f"mechanism ({type(mechanism).__name__}) must have a rule; pass one by "
        "privfit.audit.strain.register(kind, rule)"
    )


def _difference(first: Any, second: Any) -> list[int]:
    """second - first in Python's integers, which cannot overflow."""
    pairs = zip(np.ravel(first).tolist(), np.ravel(second).tolist(), strict=True)
    return [b - a for a, b in pairs]


def _spread(first: Any, second: Any) -> int:
    difference = _difference(first, second)
    return max(difference) - min(difference)


def _per_unit(epsilon: float, span: float) -> float:
    """A rate; if one record may change nothing, any change is too much."""
    return epsilon / span if span else math.inf


@strain.register(Exponential)
@strain.register(PermuteAndFlip)
@strain.register(NoisyMax)
def _(mechanism: Any, first: Any, second: Any, output: Any = None) -> float:
    spread = _spread(first, second)
    rate = _per_unit(mechanism.epsilon, mechanism.range)
    return spread * rate / mechanism.event.parameter if spread else 0.0


@strain.register
def _(mechanism: TopK, first: Any, second: Any, output: Any = None) -> float:
    spread = _spread(first, second)
    rate = _per_unit(mechanism.epsilon_each, mechanism.range)
    return spread * rate / mechanism.event.parameter if spread else 0.0


@strain.register
def _(mechanism: AboveThreshold, first: Any, second: Any, output: Any = None) -> float:
    difference = _difference(first, second)
    passing = min(mechanism.most, len(difference))
    of_threshold = mechanism.epsilon * mechanism.share / mechanism.sensitivity
    of_scores = mechanism.epsilon * (1 - mechanism.share) / mechanism.most
    loss = max(map(abs, difference)) * of_threshold
    loss += passing * _spread(first, second) * of_scores / max(1, mechanism.range)
    return loss / mechanism.event.parameter


@strain.register
def _(mechanism: DiscreteLaplace, first: Any, second: Any, output: Any = None) -> float:
    distance = sum(map(abs, _difference(first, second)))
    return distance * mechanism.epsilon / mechanism.sensitivity / mechanism.event.parameter


@strain.register
def _(mechanism: DiscreteGaussian, first: Any, second: Any, output: Any = None) -> float:
    square = sum(change * change for change in _difference(first, second))
    return math.sqrt(square / (mechanism.variance - 4)) / mechanism.event.parameter


@strain.register
def _(mechanism: GammaVector, first: Any, second: Any, output: Any = None) -> float:
    difference = np.asarray(second) - np.asarray(first)
    shape = mechanism.shape or Ball(difference.size)
    loss = shape.norm(difference) * mechanism.epsilon / mechanism.sensitivity
    return loss / mechanism.event.parameter


# ----------------------------------------------------------------------------------------- medians


@strain.register
def _(mechanism: Medians, first: Any, second: Any, output: Any = None) -> float:
    """The first cut, and every level of those that were drawn."""
    before, after = (np.concatenate([[0], np.cumsum(value)]) for value in (first, second))
    spreads = [[_cut_spread(before, after, a, b) for a, b in pairwise(ends)]
               for ends in _levels(mechanism, len(first), output)]  # fmt: skip
    spread = max(map(sum, spreads))
    rate = mechanism.epsilon_each / mechanism.range
    return spread * rate / mechanism.event.parameter


@strain.register
def _(mechanism: SmoothMedians, first: Any, second: Any, output: Any = None) -> float:
    """The same cells; those with the same records under both have the same law."""

    def loss(a: int, b: int) -> float:
        one, other = (np.asarray(value)[a:b] for value in (first, second))
        if b - a < 2 or np.array_equal(one, other):
            return 0.0
        before, after = (np.log(mechanism.law(cell)) for cell in (one, other))
        return float(np.abs(before - after).max())

    losses = [[loss(a, b) for a, b in pairwise(ends)]
              for ends in _levels(mechanism, len(first), output)]  # fmt: skip
    return max(map(sum, losses)) / mechanism.event.parameter


def _levels(mechanism: Medians | SmoothMedians, places: int, output: Any) -> list[Any]:
    """The ends of cells that were halved: all places, and those on each level that was drawn."""
    levels = [np.array([0, places])]
    if output is not None and len(output) == 2**mechanism.levels + 1:
        levels += [output[:: 2**step] for step in range(1, mechanism.levels)]
    return levels


def _cut_spread(first: Any, second: Any, a: int, b: int) -> int:
    """The spread of the scores of all cuts of the cell [a, b), between two cumulative counts."""
    if b - a < 2:
        return 0
    scores = [-np.abs(2 * below[a + 1 : b] - below[a] - below[b]) for below in (first, second)]
    return _spread(*scores)


@strain.register
def _(mechanism: SegmentQuantiles, first: Any, second: Any, output: Any = None) -> float:
    pairs = zip(first, second, strict=True)
    spread = sum(_spread(*map(mechanism.scores, pair)) for pair in pairs)
    return spread * mechanism.epsilon / mechanism.range / mechanism.event.parameter


# ------------------------------------------------------------------------------------------- names


@strain.register
def _(mechanism: NameSet, first: Any, second: Any, output: Any = None) -> float:
    """Of each changed name, the least delta at the epsilon that it has."""
    chances, changes = mechanism.chances, mechanism.neighbours.changes
    grow = math.exp(mechanism.event.parameter / changes)
    needed = 0.0
    for name in first.keys() | second.keys():
        p, q = (chances[min(one.get(name, 0), len(chances) - 1)] * 2.0**-62
                for one in (first, second))  # fmt: skip
        pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
        needed += max(0.0, *(a - grow * b for a, b in pairs))
    return needed / mechanism.event.delta


@strain.register
def _(mechanism: NoisyNames, first: Any, second: Any, output: Any = None) -> float:
    square = sum((one[name] - other[name]) ** 2 for one, other in zip(first, second, strict=True)
                 for name in one.keys() & other.keys())  # fmt: skip
    deviation = math.sqrt(mechanism.noise.variance - 4) / mechanism.factor
    return math.sqrt(square) / deviation / mechanism.event.parameter


@strain.register
def _(mechanism: Unlikely, first: Any, second: Any, output: Any = None) -> float:
    needed, names = 0.0, mechanism.names
    for one, other in zip(first, second, strict=True):
        for name in one.keys() ^ other.keys():
            count = names.factor * (one.get(name, 0) + other.get(name, 0))
            p = names.tail(names.threshold - count)
            needed += p / (1 - p) if p < 1 else math.inf
    return needed / mechanism.event.delta


# ------------------------------------------------------------------------------------------- trees


@strain.register
def _(mechanism: SplitTree, first: Any, second: Any, output: Any = None) -> float:
    tests = _Tests(mechanism, first, second)
    roots = [tests.extremes(code, mechanism.roots) for code in range(2**mechanism.roots)]
    low, high = (sum(end) for end in zip(*roots, strict=True))
    return max(-low, high) / mechanism.event.parameter


class _Tests:
    """The distributions of all tests of a tree under two values."""

    def __init__(self, mechanism: SplitTree, first: Any, second: Any) -> None:
        self._mechanism = mechanism
        self._cells = [_cells_of(value, mechanism.depth) for value in (first, second)]
        self._rate = mechanism.epsilon / mechanism.tests

    def extremes(self, code: int, level: int) -> tuple[float, float]:
        """The least and the largest log ratio (second to first) of subtrees below a cell."""
        shift = np.uint64(self._mechanism.depth - level)
        inside = [cells[cells >> shift == code] for cells in self._cells]
        if level == self._mechanism.depth or np.array_equal(*inside):
            return 0.0, 0.0
        stops, halves = self._logs([len(cells) for cells in inside], level)
        below = [self.extremes(2 * code + side, level + 1) for side in (0, 1)]
        low, high = (halves + sum(end) for end in zip(*below, strict=True))
        return min(stops, low), max(stops, high)

    def _logs(self, counts: list[int], level: int) -> tuple[float, float]:
        """The log ratios of a cell that is not halved, and of one that is."""
        decay = self._mechanism.decay
        above = level - self._mechanism.roots
        biased = [max(-decay, count - above * decay) for count in counts]
        stops, halves = ([part(self._rate, b) for b in biased] for part in (_log_stop, _log_halve))
        return stops[1] - stops[0], halves[1] - halves[0]


def _cells_of(value: Any, depth: int) -> NDArray[np.uint64]:
    """The sorted cells of all records, from an array or an object that can only count them."""
    if isinstance(value, np.ndarray):
        return value
    codes, counts = np.zeros(1, dtype=np.uint64), np.ones(1, dtype=np.int64)
    for level in range(1, depth + 1):
        codes = np.repeat(codes << np.uint64(1), 2)
        codes[1::2] += np.uint64(1)
        counts = Leaves(codes, np.full(len(codes), level)).counts(value, depth)
        codes, counts = codes[counts > 0], counts[counts > 0]
    return np.repeat(codes, counts)


def _log_halve(rate: float, u: int) -> float:
    """ln P(u + Z > 0), Z discrete Laplace of this rate."""
    scale = math.log1p(math.exp(-rate))
    if u <= 1:
        return rate * (u - 1) - scale
    return math.log1p(-math.exp(-rate * u - scale))


def _log_stop(rate: float, u: int) -> float:
    """ln P(u + Z <= 0): Z is symmetric."""
    return _log_halve(rate, 1 - u)


# -------------------------------------------------------------------------------- tilted minimisers


@strain.register
def _(mechanism: PerturbedMinimiser, first: Any, second: Any, output: Any = None) -> float:
    start = np.zeros(first.size) if output is None else np.asarray(output)
    along = _bend(second, start)[0] - _bend(first, start)[0]
    coins = np.random.default_rng(0)
    some = coins.standard_normal((DIRECTIONS, first.size))
    lines = np.array([along, *np.eye(first.size)[:DIRECTIONS], *some])
    lines /= np.maximum(np.linalg.norm(lines, axis=1), 1e-300)[:, None]
    steps = mechanism.scale * first.size / mechanism.ridge * FAR
    points = [start, *(start + s * line for line in lines for s in [*steps, *-steps])]
    found = [_density_strain(mechanism, first, second, point) for point in points]
    best, place = max(found), points[int(np.argmax(found))]
    for s in np.repeat(steps, CLIMBS):
        point = place + s * coins.standard_normal(first.size)
        better = _density_strain(mechanism, first, second, point)
        best, place = max((best, place), (better, point), key=lambda one: one[0])
    return best


def _density_strain(mechanism: PerturbedMinimiser, first: Any, second: Any, u: Floats) -> float:
    """The strain of the exact minimiser's densities at u; the share for repairs counts as used."""
    (tilt, volume), (other_tilt, other_volume) = _bend(first, u), _bend(second, u)
    promised = mechanism.event.parameter
    if mechanism.delta:
        change = float(np.linalg.norm(other_tilt - tilt)) / mechanism.neighbours.changes
        # The ridge at which the worst ratio of Hessians is the one of these two.
        ridge = mechanism.loss.curvature / max(math.expm1(abs(other_volume - volume)), 1e-9)
        epsilon = promised * (1 - mechanism.repair)
        needed = tilt_deviation(
            epsilon, mechanism.delta, ridge, mechanism.loss, mechanism.neighbours
        )
        return change * needed / mechanism.scale
    norm = (mechanism.shape or Ball(u.size)).norm
    loss = (norm(tilt) - norm(other_tilt)) / mechanism.scale + other_volume - volume
    return (abs(loss) + mechanism.repair * mechanism.epsilon) / promised


def _bend(problem: Any, u: Floats) -> tuple[Floats, float]:
    """The tilt whose minimiser is u, and the log determinant of the Hessian there."""
    here = problem.untilted(u)
    hessian = np.array([problem._bent(here, axis) for axis in np.eye(problem.size)])
    return -here.gradient, float(np.linalg.slogdet((hessian + hessian.T) / 2)[1])
