"""Mechanisms: frozen parameters and an exact draw. They hold no data and never see records.

A mechanism is called with a value computed from private records and a source of random bits, and
returns what may be published; its `event` is the cost. Call mechanisms through a grant's `release`,
which charges first and draws second.

Values are integers, in units that the mechanism need not know; `GammaVector` takes real ones. All
draws are exact: integers and rationals decide (see `_kernels/random.pyx` and `lazy`), so a
guarantee on paper holds in the code. Rates such as epsilon / range are rounded down to 32 bits,
which spends a little less.

`rng` is None (the operating system's entropy), a `BitSource`, or a seed: an int, a `Generator` or a
`RandomState` of numpy. **A known seed voids privacy**; seeds are for tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from privfit._kernels import select, threads
from privfit._kernels.random import (
    BitSource,
    DiscreteGaussianSampler,
    DiscreteLaplaceSampler,
    binary_rate,
)
from privfit.base.dyadic import Dyadic, integers
from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.accounting import Event, event_of
from privfit.privacy.neighbours import Neighbours
from privfit.privacy.noise_bodies import Ball, Shape, noise

__all__ = [
    "AboveThreshold",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "GammaVector",
    "Mechanism",
    "NoisyMax",
    "PermuteAndFlip",
    "RelatedMechanism",
    "Releasing",
    "TopK",
]


WIDEST = Fraction(1, 2**49)  # the least rate of noise whose draws fit in 64 bits
FIRST_BITS = 48  # of the variables that real noise is made of, beyond those of a unit
MANY = 1 << 17  # candidates from which weighing them is worth a second thread


V_contra = TypeVar("V_contra", contravariant=True)  # what is computed from private records
T_co = TypeVar("T_co", covariant=True)  # what may be published


class Mechanism(Generic[V_contra, T_co]):
    """What all mechanisms share: parameters, an event, a draw."""

    @property
    def event(self) -> Event:
        """The cost of one call."""
        raise NotImplementedError

    def __call__(self, value: V_contra, rng: object = None) -> T_co:
        """Draw what may be published."""
        raise NotImplementedError


V = TypeVar("V")
T = TypeVar("T")


class Releasing(Protocol):
    """Whoever pays for a draw and makes it: the `release` of a grant or of a run."""

    def __call__(self, mechanism: Mechanism[V, T], value: V, /) -> T:
        """Charge, and draw."""


@dataclass(frozen=True, repr=False)
class RelatedMechanism(Mechanism[V_contra, T_co]):
    """A mechanism whose noise depends on the neighbour relation, which is a parameter of it."""

    def __repr__(self) -> str:
        """The parameters; the relation by its word, as journals of checkpoints have it."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        shown = (("adjacency", value.relation) if isinstance(value, Neighbours) else (name, value)
                 for name, value in values)  # fmt: skip
        return f"{type(self).__qualname__}({', '.join(f'{n}={value!r}' for n, value in shown)})"


# -------------------------------------------------------------------------------------- selections


@dataclass(frozen=True)
class TopK(Mechanism[ArrayLike, Integers]):
    """Select k different candidates, each by the exponential mechanism among the rest.

    Equal in distribution to the one-shot race of Gumbel variables.

    Parameters
    ----------
    k : int
        Number of candidates to select.
    epsilon_each : float
        The epsilon of each selection.
    range : int
        How much the difference of two candidates' scores can change between neighbours. 0 means a
        uniform choice.

    See Also
    --------
    Exponential : A single selection.

    Notes
    -----
    Called with integer scores (m,), it returns the indices (k,) of the selected candidates. Cost: k
    selections, each `epsilon_each`-bounded-range.

    Examples
    --------
    >>> from privfit import TopK
    >>> TopK(2, epsilon_each=1.0, range=2)([0, 900, 5, 300]).tolist()
    [1, 3]
    """

    k: int
    epsilon_each: float
    range: int

    def __post_init__(self) -> None:
        if not is_whole(self.k) or self.k < 1:
            raise DeclarationError(f"k ({self.k!r}) must be a positive whole number; pass k=1")
        _check_epsilon("epsilon_each", self.epsilon_each)
        _check_range(self.range)

    @property
    def event(self) -> Event:
        return event_of("selection", self.epsilon_each, self.k)

    def __call__(self, value: ArrayLike, rng: object = None) -> Integers:
        """int64 (k,): indices of the selected candidates, in order of selection."""
        return _peel(self.k, self.epsilon_each, self.range, value, rng)


def _peel(k: int, epsilon: float, range: int, value: ArrayLike, rng: object) -> Integers:
    scores = _check_scores(value)
    if k > scores.size:
        raise DeclarationError(
            f"k ({k}) must be at most the number of candidates ({scores.size}); pass fewer"
        )
    source = BitSource.of(rng)
    if range == 0:
        return select.uniform_distinct(scores.size, k, source)
    n_threads = threads.team() if scores.size >= MANY else 1
    return select.top_k(scores, k, *_selection_rate(epsilon, range), source, n_threads)


@lru_cache(maxsize=1024)
def _selection_rate(epsilon: float, range: int) -> tuple[int, int]:
    """epsilon / range as the kernels take it: a public number, the same for many draws."""
    return binary_rate(_exact(epsilon) / int(range))


@dataclass(frozen=True)
class _Selection(Mechanism[ArrayLike, int]):
    """What the selections of one candidate share: a budget and a range; range 0 means uniform."""

    epsilon: float
    range: int

    def __post_init__(self) -> None:
        _check_epsilon("epsilon", self.epsilon)
        _check_range(self.range)

    def _rate(self) -> Fraction:
        return _exact(self.epsilon) / int(self.range)


@dataclass(frozen=True)
class Exponential(_Selection):
    """Select one candidate with probability proportional to exp(epsilon score / range).

    Parameters
    ----------
    epsilon : float
        The budget.
    range : int
        How much the difference of two candidates' scores can change between neighbours. 0 means a
        uniform choice.

    See Also
    --------
    PermuteAndFlip : Never worse for a single selection.
    TopK : Several selections.

    Notes
    -----
    Called with integer scores (m,), it returns the index of the selected candidate. Cost: one
    epsilon-bounded-range selection.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    Examples
    --------
    >>> from privfit import Exponential
    >>> Exponential(epsilon=1.0, range=2)([0, 100, 5])  # drawn exactly; note that this is a release
    1
    """

    @property
    def event(self) -> Event:
        return event_of("selection", self.epsilon)

    def __call__(self, value: ArrayLike, rng: object = None) -> int:
        """The index of the selected candidate."""
        return int(_peel(1, self.epsilon, self.range, value, rng)[0])


@dataclass(frozen=True)
class PermuteAndFlip(_Selection):
    """Select one candidate by permute-and-flip: never worse than the exponential mechanism.

    Parameters
    ----------
    epsilon : float
        The budget.
    range : int
        How much the difference of two candidates' scores can change between neighbours. 0 means a
        uniform choice.

    See Also
    --------
    Exponential : Composes better.

    Notes
    -----
    It is epsilon-DP at rate epsilon / range, since the walk does not change if all scores shift by
    the same amount; but it is not bounded-range, and many of them compose only as pure releases.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.

    Examples
    --------
    >>> from privfit import PermuteAndFlip
    >>> PermuteAndFlip(epsilon=1.0, range=2)([0, 100, 5])
    1
    """

    @property
    def event(self) -> Event:
        return event_of("pure", self.epsilon)

    def __call__(self, value: ArrayLike, rng: object = None) -> int:
        """The index of the selected candidate."""
        scores, source = _check_scores(value), BitSource.of(rng)
        if self.range == 0:
            return source.draw_below(scores.size)
        return select.permute_and_flip(scores, *_selection_rate(self.epsilon, self.range), source)


@dataclass(frozen=True)
class NoisyMax(_Selection):
    """Select the candidate with the largest score after discrete Laplace noise; ties to the first.

    Parameters
    ----------
    epsilon : float
        The budget.
    range : int
        How much the difference of two candidates' scores can change between neighbours. 0 means a
        uniform choice.

    See Also
    --------
    Exponential, PermuteAndFlip : Other selections.

    Notes
    -----
    Fix the noise of the others: candidate i wins if its own noise reaches a threshold, which moves
    by at most `range` between neighbours, and a tail of the noise falls by at most exp(-epsilon /
    range) per unit. Hence epsilon-DP; not bounded-range.

    Examples
    --------
    >>> from privfit import NoisyMax
    >>> NoisyMax(epsilon=1.0, range=2)([0, 100, 5])
    1
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range > 0:
            _check_rate(self._rate())

    @property
    def event(self) -> Event:
        return event_of("pure", self.epsilon)

    def __call__(self, value: ArrayLike, rng: object = None) -> int:
        """The index of the selected candidate."""
        scores, source = _check_scores(value), BitSource.of(rng)
        if self.range == 0:
            return source.draw_below(scores.size)
        noise = _laplace(scores.size, self._rate(), source)
        noisy = [
            score + shift for score, shift in zip(scores.tolist(), noise.tolist(), strict=True)
        ]
        return noisy.index(max(noisy))


@dataclass(frozen=True)
class AboveThreshold(Mechanism[ArrayLike, Integers]):
    """Find the first `most` scores that pass a noisy threshold: the sparse vector technique.

    With discrete Laplace noise z of rate epsilon_1 / sensitivity, drawn once, and v_i of rate
    epsilon_2 / (most range), score i passes if q_i + v_i >= threshold + z; after `most` of them the
    rest is not looked at. epsilon_1 + epsilon_2 = epsilon, `share` of it is epsilon_1.

    Parameters
    ----------
    epsilon : float
        The budget.
    most : int
        How many scores may pass.
    threshold : int
        The public threshold.
    sensitivity : int
        How much one record changes a score.
    range : int
        How much the difference of two scores can change between neighbours.
    share : float
        Fraction of epsilon for the noise of the threshold.

    See Also
    --------
    SparseVector : Selects features by it.

    Notes
    -----
    **Why it is private.** Let q' = q + e be the scores of a neighbour: each e_i is in [m, M] with M
    - m <= range, and abs(M) <= sensitivity; all are whole numbers. Sum over z the probability of an
    answer, and compare z for q with z + M for q'.

    1. P(z) <= exp(epsilon_1) P(z + M), since abs(M) <= sensitivity.
    2. A score that fails has v_i < threshold + z - q_i, which is no more than
       threshold + (z + M) - q'_i: at least as likely for q'.
    3. A score that passes has v_i >= threshold + z - q_i. For q' that bound is higher by
       M - e_i <= range, and a tail of the noise falls by at most exp(-epsilon_2 / most) over so
       many units. At most `most` scores pass.

    z -> z + M runs over all whole numbers, so the sums compare as their terms: epsilon-DP. With
    range <= 2 sensitivity these are the paper's constants; a smaller range needs less noise.

    References
    ----------
    M. Lyu, D. Su, N. Li, "Understanding the sparse vector technique for differential privacy", VLDB
    2017; here for integers.

    Examples
    --------
    >>> from privfit import AboveThreshold
    >>> passing = AboveThreshold(1.0, most=2, threshold=500, sensitivity=1, range=2, share=0.5)
    >>> passing([900, 0, 800, 990]).tolist()
    [0, 2]
    """

    epsilon: float
    most: int
    threshold: int
    sensitivity: int
    range: int
    share: float

    def __post_init__(self) -> None:
        _check_epsilon("epsilon", self.epsilon)
        _check_range(self.range)
        for name, least in (("most", 1), ("sensitivity", 1), ("threshold", None)):
            value = getattr(self, name)
            if not is_whole(value) or (least is not None and value < least):
                raise DeclarationError(
                    f"{name} ({value!r}) must be a whole number"
                    f"{'' if least is None else f' of at least {least}'}; pass one"
                )
        if not is_finite(self.share) or not 0 < self.share < 1:
            raise DeclarationError(f"share ({self.share!r}) must lie between 0 and 1; pass 0.5")
        for rate in self._rates():
            _check_rate(rate)

    def _rates(self) -> tuple[Fraction, Fraction]:
        """The rates of the threshold's noise, and of the scores'."""
        first = _exact(self.epsilon) * _exact(self.share)
        rest = _exact(self.epsilon) - first
        return first / int(self.sensitivity), rest / (int(self.most) * max(1, int(self.range)))

    @property
    def event(self) -> Event:
        return event_of("pure", self.epsilon)

    def __call__(self, value: ArrayLike, rng: object = None) -> Integers:
        """int64: the indices of scores that passed, in order; at most `most`."""
        scores, source = _check_scores(_check_integers(value)), BitSource.of(rng)
        of_threshold, of_scores = self._rates()
        shift = _laplace(1, of_threshold, source)
        noisy = scores + _laplace(scores.size, of_scores, source)
        return np.flatnonzero(noisy >= int(self.threshold) + shift[0])[: self.most]


# ------------------------------------------------------------------------------------------- noise


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism[ArrayLike, Integers]):
    """Integers plus noise x with probability proportional to exp(-epsilon abs(x) / sensitivity).

    Parameters
    ----------
    epsilon : float
        The budget.
    sensitivity : int
        Bound on the l1 distance of the integers between neighbours.

    See Also
    --------
    DiscreteGaussian : Less noise for many integers, if delta > 0.

    Notes
    -----
    Called with integers, it returns noisy integers of the same shape. Cost: one epsilon-DP release.

    Examples
    --------
    >>> from privfit import DiscreteLaplace
    >>> noisy = DiscreteLaplace(epsilon=1.0, sensitivity=1)([1000, 2000])
    >>> bool(abs(noisy - [1000, 2000]).max() < 50)
    True
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        _check_epsilon("epsilon", self.epsilon)
        if not is_whole(self.sensitivity) or self.sensitivity < 1:
            raise DeclarationError(
                f"sensitivity ({self.sensitivity!r}) must be a positive whole number; pass the l1 "
                "sensitivity in units of the integers, rounded up"
            )
        _check_rate(_exact(self.epsilon) / int(self.sensitivity))

    @property
    def event(self) -> Event:
        return event_of("pure", self.epsilon)

    @property
    def scale(self) -> float:
        """The scale b of the noise: sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    def __call__(self, value: ArrayLike, rng: object = None) -> Integers:
        """int64: the integers with noise, in their shape."""
        values = _check_integers(value)
        noise = np.empty(values.size, dtype=np.int64)
        _laplace_noise(self.epsilon, self.sensitivity).fill(BitSource.of(rng), noise)
        return values + noise.reshape(values.shape)


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism[ArrayLike, Integers]):
    """Integers plus discrete Gaussian noise, no worse than a real Gaussian release of `mu`.

    Parameters
    ----------
    mu : float
        The Gaussian parameter: l2 sensitivity / standard deviation.
    sensitivity : float
        Bound on the l2 distance of the integers between neighbours.

    See Also
    --------
    DiscreteLaplace : Pure differential privacy.

    Notes
    -----
    Called with integers, it returns noisy integers of the same shape. Cost: one Gaussian release of
    `mu`. The variance is (sensitivity / mu)^2 + 4.

    What the 4 pays for: at the same sigma the real Gaussian's curve does not bound that of the
    discrete one (sigma 4, l2 1: delta is up to 11 % larger). The real curve at variance
    sigma^2 - 4 does. Proof: from a real x ~ N(s, sigma^2 - 4) draw in each coordinate an integer z
    with probability proportional to exp(-(z - x)^2 / 8). By Poisson summation the sum over z is the
    same for all x within a factor 1 +- k, k = 2 exp(-8 pi^2) + ... < 1.1e-34, and so z has the law
    of the discrete Gaussian around the integer s within (1 + k)^2 a coordinate. Post-processing
    cannot hurt, and what the factors add to epsilon, 4 k a coordinate, is in the rounding (1e-18:
    enough for 2e15 coordinates).

    Examples
    --------
    >>> from privfit import DiscreteGaussian
    >>> noisy = DiscreteGaussian(mu=0.25, sensitivity=1)([1000, 2000])
    >>> bool(abs(noisy - [1000, 2000]).max() < 100)
    True
    """

    mu: float
    sensitivity: float

    def __post_init__(self) -> None:
        for name, value in (("mu", self.mu), ("sensitivity", self.sensitivity)):
            if not is_finite(value) or value <= 0:
                raise DeclarationError(
                    f"{name} ({value!r}) must be a positive number; pass such a number"
                )
        if self.sensitivity < self.mu * math.sqrt(12):
            raise DeclarationError(
                f"mu ({self.mu!r}) must be at most sensitivity / sqrt(12), so that noise covers "
                "the grid; pass integers on a finer grid"
            )
        _check_rate(_exact(self.mu) / _exact(self.sensitivity))

    @property
    def variance(self) -> Fraction:
        """The variance of the noise, exactly."""
        return _gaussian_variance(self.mu, self.sensitivity)

    @property
    def event(self) -> Event:
        return event_of("gaussian", self.mu)

    def __call__(self, value: ArrayLike, rng: object = None) -> Integers:
        """int64: the integers with noise, in their shape."""
        values = _check_integers(value)
        noise = np.empty(values.size, dtype=np.int64)
        _gaussian_noise(self.mu, self.sensitivity).fill(BitSource.of(rng), noise)
        return values + noise.reshape(values.shape)


@dataclass(frozen=True)
class GammaVector(Mechanism[ArrayLike, Floats]):
    """A vector plus noise b of density proportional to exp(-epsilon K(b) / sensitivity).

    K is the norm whose unit ball is `shape`. K(b) is Gamma(d, sensitivity / epsilon).

    Parameters
    ----------
    epsilon : float
        The budget.
    sensitivity : float
        Bound on K of the difference between neighbours.
    unit : float, optional
        The result is rounded to multiples of it.
    shape : Shape or None, default=None
        The unit ball of K; by default the l2 ball.

    See Also
    --------
    OutputPerturbation : Uses it.

    Notes
    -----
    Cost: one epsilon-DP release. The vector is exact, and so is the noise: a real vector of this
    distribution, of which as many bits are drawn as are needed to round the sum to a multiple of
    `unit`. The sum is rounded as in real arithmetic, so the guarantee, which is that of the sum,
    holds for the program.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, "Privacy-preserving logistic regression", NeurIPS 2008, for the l2
    norm; M. Hardt, K. Talwar, "On the geometry of differential privacy", STOC 2010, for any other.

    Examples
    --------
    >>> from privfit import GammaVector
    >>> GammaVector(epsilon=1.0, sensitivity=0.01)([0.25, 0.5]).shape
    (2,)
    """

    epsilon: float
    sensitivity: float
    unit: float = 2.0**-30
    shape: Shape | None = None

    def __post_init__(self) -> None:
        _check_epsilon("epsilon", self.epsilon)
        for name, value in (("sensitivity", self.sensitivity), ("unit", self.unit)):
            if not is_finite(value) or value <= 0:
                raise DeclarationError(
                    f"{name} ({value!r}) must be a positive number; pass such a number"
                )

    @property
    def event(self) -> Event:
        return event_of("pure", self.epsilon)

    def __call__(self, value: ArrayLike, rng: object = None) -> Floats:
        """float64 (d,): the vector with noise, rounded to multiples of `unit`."""
        vector = np.asarray(value, dtype=np.float64)
        if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
            raise DeclarationError("value must be a non-empty, finite vector; pass an array (d,)")
        shape = self.shape or Ball(vector.size)
        if shape.size != vector.size:
            raise DeclarationError(
                f"value ({vector.size} entries) must have the dimension of the shape; pass "
                f"{shape.size}"
            )
        scale = math.nextafter(self.sensitivity / self.epsilon, math.inf)
        draw, exact = noise(shape, scale, BitSource.of(rng)), Dyadic.of(vector)
        bits = max(FIRST_BITS, math.frexp(scale / self.unit)[1] + FIRST_BITS)
        whole = _whole_units(exact, draw(bits), self.unit)
        while whole is None:
            bits += 64
            whole = _whole_units(exact, draw(bits), self.unit)
        return Dyadic(integers(whole), 0).floats() * self.unit


def _whole_units(value: Dyadic, drawn: tuple[Dyadic, float], unit: float) -> list[int] | None:
    """The nearest whole units of a value plus noise, if the error of the noise leaves no doubt.

    It leaves none if both ends of the noise's interval round to the same number.
    """
    vector, error = drawn
    half, slack = (Dyadic.of(np.full(value.size, size)) for size in (unit / 2, error))
    middle = value + vector + half
    low, high = (middle - slack).floors(unit), (middle + slack).floors(unit)
    return low if low == high else None


def _exact(value: float | Fraction) -> Fraction:
    """A number without rounding; numpy's integers would overflow inside a Fraction."""
    if is_whole(value):
        return Fraction(int(value))
    return value if isinstance(value, Fraction) else Fraction(float(value))


# Samplers are kept, tables of 1 kB: the same parameters, which are public, serve many draws.


@lru_cache(maxsize=64)
def _laplace_noise(epsilon: float | Fraction, sensitivity: int) -> DiscreteLaplaceSampler:
    return DiscreteLaplaceSampler(*binary_rate(_exact(epsilon) / int(sensitivity)))


def _laplace(size: int, rate: Fraction, source: BitSource) -> Integers:
    noise = np.empty(size, dtype=np.int64)
    _laplace_noise(rate, 1).fill(source, noise)
    return noise


def _gaussian_variance(mu: float, sensitivity: float) -> Fraction:
    return (_exact(sensitivity) / _exact(mu)) ** 2 + 4


@lru_cache(maxsize=64)
def _gaussian_noise(mu: float, sensitivity: float) -> DiscreteGaussianSampler:
    return DiscreteGaussianSampler(_gaussian_variance(mu, sensitivity))


def _check_rate(rate: Fraction) -> None:
    if rate < WIDEST:
        raise DeclarationError(
            "noise this wide does not fit in 64 bits; pass a larger epsilon, or integers on a "
            "coarser grid"
        )


# ------------------------------------------------------------------------------------------ checks


def _check_epsilon(name: str, epsilon: object) -> None:
    if not is_finite(epsilon) or epsilon <= 0:
        raise DeclarationError(
            f"{name} ({epsilon!r}) must be a positive number; pass a budget such as 1.0"
        )


def _check_range(value: object) -> None:
    if not is_whole(value) or value < 0:
        raise DeclarationError(
            f"range ({value!r}) must be a whole number of at least 0; pass objective.range(P, ...)"
        )


def _check_integers(value: ArrayLike) -> Integers:
    values = np.asarray(value)
    if values.dtype.kind not in "iu":
        raise DeclarationError(
            f"values (dtype {values.dtype}) must be integers; pass sums in whole units of a grid"
        )
    if values.size and (values.max() >= 2**62 or values.min() <= -(2**62)):
        raise DeclarationError("values must be below 2^62 in size; pass coarser units")
    return values.astype(np.int64)


def _check_scores(value: ArrayLike) -> Integers:
    scores = np.asarray(value)
    if scores.dtype.kind not in "iu" or scores.ndim != 1 or scores.size == 0:
        raise DeclarationError(
            f"scores (dtype {scores.dtype}, shape {scores.shape}) must be a non-empty vector of "
            "integers; pass objective.scores(P)"
        )
    if scores.dtype.kind == "u" and scores.max() >= 2**63:
        raise DeclarationError("scores must fit in 64 bits with a sign; pass int64")
    return np.ascontiguousarray(scores, dtype=np.int64)
