"""What draws: each mechanism's sampler against its law, and the smallest wrong rate that shows.

`paired` audits compare values and laws; that a sampler follows its law is tested here, by a
chi-square test where outcomes are few and by Kolmogorov's where they are real. A fault is a sampler
that draws as for `factor` times the budget that is claimed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from privfit import Box, LinearObjective
from privfit._kernels.random import BitSource
from privfit.audit import output_distribution
from privfit.evaluation.roc_plan import Medians
from privfit.linear.newton import Logistic, Problem
from privfit.linear.tilts import PerturbedMinimiser
from privfit.privacy.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    GammaVector,
    NoisyMax,
    PermuteAndFlip,
    TopK,
)
from privfit.privacy.names import NoisyNames
from privfit.privacy.neighbours import REPLACE
from privfit.privacy.noise_bodies import Ball
from privfit.privacy.privtree import SplitTree

FALSE_ALARM = 1e-6
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0)
SCORES = np.array([0, 1, 2, 4])
SAME = Problem(
    LinearObjective([[0.5], [-0.5], [1.0]], [1, 0, 1], "logistic", Box(-1, 1, 1)), Logistic(), 4.0
)


@dataclass(frozen=True)
class Sampler:
    """A mechanism at `factor` times epsilon 1, and how likely its draws are under epsilon 1."""

    name: str
    draws: int
    p_value: Callable[[float, int, BitSource], float]

    def alarm(self, factor: float, seed: int = 0) -> bool:
        return self.p_value(factor, self.draws, BitSource(seed)) < FALSE_ALARM

    def smallest(self) -> float | None:
        """The smallest factor that is found; None if no one is, infinite for a false alarm."""
        if self.alarm(1.0):
            return math.inf
        return next((factor for factor in FACTORS if self.alarm(factor)), None)


def _fits(outcomes: Any, law: dict[Any, float]) -> float:
    """The p-value of a chi-square test; rare outcomes are pooled."""
    seen, n = Counter(outcomes), len(outcomes)
    common = [x for x, p in law.items() if n * p >= 20]
    expected = np.array([n * law[x] for x in common])
    observed = np.array([seen[x] for x in common], dtype=float)
    rest = n - expected.sum()
    if rest >= 20:
        expected, observed = np.append(expected, rest), np.append(observed, n - observed.sum())
    else:  # keep the sums equal, as the test asks
        expected *= observed.sum() / expected.sum()
    return float(scipy.stats.chisquare(observed, expected).pvalue)


def _selection(make: Callable[[float], Any]) -> Callable[[float, int, BitSource], float]:
    law = {x: float(log.exp()) for x, log in output_distribution(make(1.0), SCORES).items()}

    def p_value(factor: float, n: int, source: BitSource) -> float:
        mechanism = make(factor)
        drawn = [mechanism(SCORES, source) for _ in range(n)]
        return _fits([tuple(x.tolist()) if np.ndim(x) else x for x in drawn], law)

    return p_value


def _integers(make: Callable[[float], Any], weight: Callable[[Any], Any]) -> Any:
    """Noise on zeros, whose law is in proportion to `weight`."""
    x = np.arange(-400, 401)
    weights = weight(x)
    law = dict(zip(x.tolist(), (weights / weights.sum()).tolist(), strict=True))
    return lambda factor, n, source: _fits(
        make(factor)(np.zeros(n, dtype=np.int64), source).tolist(), law
    )


def _length(factor: float, n: int, source: BitSource) -> float:
    mechanism = GammaVector(factor, 1.0)
    drawn = [np.linalg.norm(mechanism(np.zeros(3), source)) for _ in range(n)]
    return float(scipy.stats.kstest(drawn, scipy.stats.gamma(3).cdf).pvalue)


def _tilts(factor: float, n: int, source: BitSource) -> float:
    """The tilts behind released minimisers: their length has a gamma law."""

    def made(epsilon: float) -> PerturbedMinimiser:
        return PerturbedMinimiser(epsilon, 0.0, 4.0, Logistic(), REPLACE, 2.0**-16, 0.01)

    mechanism = made(factor)
    tilts = [-SAME.untilted(mechanism(SAME, source)).gradient for _ in range(n)]
    lengths = [Ball(2).norm(tilt) for tilt in tilts]
    law = scipy.stats.gamma(2, scale=made(1.0).scale)
    return float(scipy.stats.kstest(lengths, law.cdf).pvalue)


def _above(factor: float, n: int, source: BitSource) -> float:
    def made(epsilon: float) -> AboveThreshold:
        return AboveThreshold(epsilon, most=1, threshold=2, sensitivity=1, range=2, share=0.5)

    x = np.arange(-300, 301)
    z, v = (np.tanh(rate / 2) * np.exp(-rate * np.abs(x)) for rate in (0.5, 0.25))
    tail = np.cumsum(v[::-1])[::-1]  # P(v >= x)

    def passes(score: int) -> Any:
        places = np.clip(2 + x - score - x[0], 0, len(x) - 1)
        return tail[places]

    first, second = passes(SCORES[0]), passes(SCORES[-1])
    law = {
        0: float(z @ first), 1: float(z @ ((1 - first) * second)),
        None: float(z @ ((1 - first) * (1 - second))),
    }  # fmt: skip
    mechanism = made(factor)
    drawn = [mechanism(SCORES[[0, -1]], source).tolist() for _ in range(n)]
    return _fits([found[0] if found else None for found in drawn], law)


def _medians(factor: float, n: int, source: BitSource) -> float:
    counts = np.array([2, 0, 3, 1, 0, 4])
    below = np.concatenate([[0], np.cumsum(counts)])

    def cuts(a: int, b: int) -> dict[int, float]:
        if b - a < 2:
            return {a: 1.0}
        scores = -np.abs(2 * below[a + 1 : b] - below[a] - below[b])
        logs = output_distribution(Exponential(0.5, 2 * REPLACE.changes), scores)
        return {a + 1 + i: float(log.exp()) for i, log in logs.items()}

    law: Counter[Any] = Counter()
    for middle, p in cuts(0, 6).items():
        for (left, q), (right, r) in itertools.product(
            cuts(0, middle).items(), cuts(middle, 6).items()
        ):
            law[tuple(sorted({0, left, middle, right, 6}))] += p * q * r
    mechanism = Medians(0.5 * factor, REPLACE, 2)
    return _fits([tuple(mechanism(counts, source).tolist()) for _ in range(n)], law)


def _trees(factor: float, n: int, source: BitSource) -> float:
    """Two halvings of eight records: which cells are halved."""
    cells = np.array([0, 0, 0, 0, 0, 2, 3, 3], dtype=np.uint64)
    honest = SplitTree(1.0, REPLACE, 0, 2)
    rate = 1.0 / honest.tests

    def halved(count: int, level: int) -> float:
        u = max(-honest.decay, count - level * honest.decay)
        q = math.exp(-rate)
        return q ** (1 - u) / (1 + q) if u <= 1 else 1 - q**u / (1 + q)

    root, left, right = halved(8, 0), halved(5, 1), halved(3, 1)
    law = {(0,): 1 - root, (1, 1): root * (1 - left) * (1 - right),
           (2, 2, 1): root * left * (1 - right), (1, 2, 2): root * (1 - left) * right,
           (2, 2, 2, 2): root * left * right}  # fmt: skip
    mechanism = SplitTree(factor, REPLACE, 0, 2)
    return _fits([tuple(mechanism(cells, source).levels.tolist()) for _ in range(n)], law)


NAME_COUNTS = (0.6, 0.9, 1.0, 1.1, 1.4)  # relative to the threshold of names


def _names(factor: float, n: int, source: BitSource) -> float:
    """Which of five names are kept; each has noise of its own."""
    honest = NoisyNames(1.0, 1e-3, 1, REPLACE)
    tally = {f"{i}": round(share * honest.threshold / honest.factor)
             for i, share in enumerate(NAME_COUNTS)}  # fmt: skip
    x = np.arange(-400, 401)
    weights = np.exp(-(x**2) / (2 * float(honest.noise.variance)))
    tail = np.cumsum((weights / weights.sum())[::-1])[::-1]  # P(Z >= x)
    chances = [float(tail[honest.threshold - honest.factor * count - x[0]])
               for count in tally.values()]  # fmt: skip
    law = {kept: math.prod(p if keeps else 1 - p for p, keeps in zip(chances, kept, strict=True))
           for kept in itertools.product((False, True), repeat=len(tally))}  # fmt: skip
    mechanism = NoisyNames(factor, 1e-3, 1, REPLACE)
    drawn = [set(mechanism([tally], source)[0]) for _ in range(n)]
    return _fits([tuple(name in kept for name in tally) for kept in drawn], law)


SAMPLERS = [
    Sampler("Exponential", 20_000, _selection(lambda e: Exponential(e, 2))),
    Sampler("PermuteAndFlip", 20_000, _selection(lambda e: PermuteAndFlip(e, 2))),
    Sampler("NoisyMax", 20_000, _selection(lambda e: NoisyMax(e, 2))),
    Sampler("TopK", 20_000, _selection(lambda e: TopK(2, e, 2))),
    Sampler("AboveThreshold", 10_000, _above),
    Sampler("DiscreteLaplace", 100_000,
            _integers(lambda e: DiscreteLaplace(e, 4), lambda x: np.exp(-np.abs(x) / 4))),
    Sampler("DiscreteGaussian", 100_000,
            _integers(lambda e: DiscreteGaussian(e, 8.0), lambda x: np.exp(-(x**2) / 136))),
    Sampler("GammaVector", 1000, _length),
    Sampler("Medians", 5000, _medians),
    Sampler("SplitTree", 5000, _trees),
    Sampler("PerturbedMinimiser", 700, _tilts),
    Sampler("NoisyNames", 5000, _names),
]  # fmt: skip
