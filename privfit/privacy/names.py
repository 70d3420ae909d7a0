"""Names of frequent values: which of them may be published, although nobody declared them.

Every value of a column is counted; a record has at most one value in a column. A value that one
record alone has must stay hidden, so its name appears with a probability of at most delta.

**One to three columns: `NameSet`**, the optimal rule for a set of names (Desfontaines, Voss,
Gipson, Mandayam 2022). A value with c records is kept with probability pi(c), pi(0) = 0 and

    pi(c + 1) = min(e^epsilon pi(c) + delta,  1 - e^-epsilon (1 - pi(c) - delta),  1),

independently of all others. The first term bounds how much more likely a kept value becomes with
one more record, the second how much less likely it is that a value is not kept: each value is
(epsilon, delta)-DP. A record that is added or removed changes one value's count by one. One that is
replaced changes two, so pi is that of (epsilon / 2, delta / 2). pi is computed in whole units of
2^-62, rounded down with bounds of e^epsilon on the safe side; since pi never falls, these two terms
are the only ones that bind, and a smaller pi(c + 1) meets both. The draws are exact.

**More columns: `NoisyNames`**, Gaussian counts of all d columns at once. A value is kept if its
count plus discrete Gaussian noise Z is at least T. Values that no record has are never kept; let
p = P(Z >= T - 1). Suppose a record is added: values that it alone has are kept with a probability
of q <= d p. Otherwise the two tables differ by one in at most d counts, and the noise covers that:
with probability 1 - q the guarantee is Gaussian of parameter mu = sqrt(d) / sqrt(sigma^2 - 4), and
with probability q nothing holds (since a privacy curve is convex, this bounds both directions). A
record replaced changes 2 d counts by one, and there are such values on both sides. So the cost is
that of a Gaussian release of mu, and a delta of d p / (1 - p) for add_remove and 2 d p / (1 - p)
for replace. That delta is a release of its own, `Unlikely`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privfit._kernels.random import BitSource, exp_interval
from privfit.base.errors import DeclarationError
from privfit.base.rounding import ABOVE
from privfit.base.validation import is_finite, is_whole
from privfit.privacy.accounting import Event, event_of
from privfit.privacy.mechanisms import DiscreteGaussian, Mechanism, RelatedMechanism
from privfit.privacy.neighbours import Neighbours

__all__ = ["NameSet", "NoisyNames", "Unlikely"]

BITS = 62  # of a probability
ONE = 1 << BITS
LONGEST = 1 << 20  # counts up to which the probability may grow
EXACT = 80  # bits of e^-epsilon


@dataclass(frozen=True, repr=False)
class NameSet(RelatedMechanism[Mapping[str, int], list[str]]):
    """The names of frequent values of one column, in the order of their texts.

    Parameters
    ----------
    epsilon, delta : float
        What it costs.
    neighbours : Neighbours
        The neighbour relation.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if not is_finite(self.epsilon) or self.epsilon <= 0:
            raise DeclarationError(
                f"epsilon ({self.epsilon!r}) must be a positive number; pass a budget such as 1.0"
            )
        _check_delta(self.delta)

    @property
    def event(self) -> Event:
        return Event("approximate", self.epsilon, 1, self.delta)

    @property
    def chances(self) -> tuple[int, ...]:
        """pi(0), pi(1), ... in units of 2^-62, until it stays."""
        changes = self.neighbours.changes
        return _chances(Fraction(self.epsilon) / changes, Fraction(self.delta) / changes)

    def __call__(self, value: Mapping[str, int], rng: object = None) -> list[str]:
        """The names that are kept; `value` has the private count of each."""
        source, chances = BitSource.of(rng), self.chances
        last = len(chances) - 1
        return [name for name in sorted(value)
                if source.draw_below(ONE) < chances[min(value[name], last)]]  # fmt: skip


@lru_cache(maxsize=64)
def _chances(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    _, high = exp_interval(epsilon, EXACT)  # of e^-epsilon, in units of 2^-EXACT
    step = delta.numerator * ONE // delta.denominator
    found, last = [0], 0
    while last < ONE and len(found) < LONGEST:
        rises = (last << EXACT) // high + step
        hides = ONE - -(-(ONE - last - step) * high >> EXACT)
        last = max(last, min(rises, hides, ONE))
        if last == found[-1]:
            break
        found.append(last)
    return tuple(found)


@dataclass(frozen=True, repr=False)
class NoisyNames(RelatedMechanism[Sequence[Mapping[str, int]], list[list[str]]]):
    """The names of frequent values of several columns, each in the order of their texts.

    Parameters
    ----------
    mu : float
        The parameter of its Gaussian release.
    delta : float
        What it costs besides: release its `Unlikely` first.
    columns : int
        The number of columns.
    neighbours : Neighbours
        The neighbour relation.
    """

    mu: float
    delta: float
    columns: int
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _check_delta(self.delta)
        if not is_whole(self.columns) or self.columns < 1:
            raise DeclarationError(
                f"columns ({self.columns!r}) must be a positive whole number; pass how many there "
                "are"
            )
        self.noise  # noqa: B018  # which refuses an invalid mu

    @property
    def event(self) -> Event:
        return event_of("gaussian", self.mu)

    @property
    def noise(self) -> DiscreteGaussian:
        """The noise of one count, as that of a vector of all changes; counts are `factor` units."""
        l2 = math.sqrt(self.columns * self.neighbours.changes) * ABOVE
        return DiscreteGaussian(self.mu, self.factor * l2)

    @property
    def factor(self) -> int:
        """Units of a count: as many as it takes for noise to cover the grid."""
        return max(1, math.ceil(4 * self.mu / math.sqrt(self.columns)))

    @property
    def threshold(self) -> int:
        """T: the least noisy count of a name, in units, that costs no more than delta."""
        most = self.delta / (self.columns * self.neighbours.changes)
        low, high = 0, 1
        while _fails(self.tail(high), most):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _fails(self.tail(middle), most) else (low, middle)
        return high + self.factor

    def tail(self, k: int) -> float:
        """A bound on P(Z >= k); 1 if k is not positive.

        Its terms exp(-j^2 / 2v) fall by exp(-(2k + 1) / 2v) at least, and all of them over the
        whole numbers add up to sqrt(2 pi v) at least (Poisson summation).
        """
        if k < 1:
            return 1.0
        v = float(self.noise.variance)
        first = math.exp(-k * k / (2 * v)) / -math.expm1(-(2 * k + 1) / (2 * v))
        return first / math.sqrt(2 * math.pi * v) * ABOVE

    def __call__(self, value: Sequence[Mapping[str, int]], rng: object = None) -> list[list[str]]:
        """The names that are kept in each column; `value` has their private counts."""
        if len(value) != self.columns:
            raise DeclarationError(
                f"value ({len(value)} columns) must have the declared number of columns; pass "
                f"{self.columns}"
            )
        source, bar = BitSource.of(rng), self.threshold
        kept = []
        for counts in value:
            names = sorted(counts)
            units = [self.factor * counts[name] for name in names]
            noisy = self.noise(units, source).tolist() if units else []
            kept.append([name for name, count in zip(names, noisy, strict=True) if count >= bar])
        return kept


def _fails(p: float, most: float) -> bool:
    return p >= 1 or p / (1 - p) * ABOVE > most


@dataclass(frozen=True)
class Unlikely(Mechanism[Sequence[Mapping[str, int]], None]):
    """The chance that noisy names contain one that a single record has; it draws nothing.

    Parameters
    ----------
    names : NoisyNames
        The release that may fail.
    """

    names: NoisyNames

    @property
    def event(self) -> Event:
        return Event("approximate", 0.0, 1, self.names.delta)

    def __call__(self, value: Sequence[Mapping[str, int]], rng: object = None) -> None:
        """Nothing: it is only charged."""


def _check_delta(delta: object) -> None:
    if not is_finite(delta) or not 0 < delta < 1:
        raise DeclarationError(
            f"delta ({delta!r}) must lie between 0 and 1, since a name is published with some "
            "probability; pass one such as 1e-6"
        )
