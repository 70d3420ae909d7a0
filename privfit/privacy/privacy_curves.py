"""Privacy curves: delta as a function of epsilon, bounded from above by certified numerics.

The curve of a group of releases is V(g) = sup of P(S) - g Q(S): the delta at epsilon = ln g, over
all that the group may do to two neighbours and all events S. Such functions are convex in g and
satisfy, with x = ln g,

    V(-x) = 1 - e^-x + e^-x V(x).

Each is the curve of one pair (P, Q), which dominates the whole group (Blackwell). `selections`,
`responses` and `gaussian_delta` are the curves of equal selections, of equal pure releases and of
Gaussian ones; `product` joins groups. Every step errs upwards only.

**Groups multiply, however they are interleaved.** Proof by induction on the number of releases
left. Let C_r be the curve of r releases of one group, X the product of the other groups' pairs. If
the next release, of this group, has likelihood ratio L, all that is left is bounded by the curve of
C_{r-1} x X at g/L; so the whole is bounded by the product of (this release x C_{r-1}) and X. The
curve of (this release x C_{r-1}) lies below C_r by definition, and domination survives a product
with X. (Vadhan and Zhang 2023 have the general statement.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy  # its submodules load when first used

from privfit._kernels.candidates import curve_step
from privfit.base.typing import Floats

LONGEST = 1024  # selections in one recursion; a longer group is a product of shorter ones
MARGIN = 2.0**-40  # relative, far above the rounding of sums and formulas
_SHIFT = 2.0**-60  # what the discrete Gaussian may add to epsilon: see DiscreteGaussian


@dataclass(frozen=True, eq=False)
class Curve:
    """Upper bounds v of delta at the epsilons x, which ascend from 0; v stays put after the last.

    Between nodes the chord in g = e^x is a bound, since the curve is convex in g.
    """

    x: Floats
    v: Floats

    def __call__(self, at: Floats) -> Floats:
        """Bound delta at any epsilons, at negative ones by symmetry."""
        y = np.minimum(np.abs(at), self.x[-1])
        j = np.minimum(np.searchsorted(self.x, y, side="right"), len(self.x) - 1)
        share = np.expm1(y - self.x[j - 1]) / np.expm1(self.x[j] - self.x[j - 1])
        return _both_signs(at, self.v[j - 1] + share * (self.v[j] - self.v[j - 1]))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon where the bound is at most delta."""
        if np.isnan(self.v).any():  # nodes so far apart that e^x overflowed: no bound at all
            return math.inf
        j = int(np.count_nonzero(np.minimum.accumulate(self.v) > delta))
        if j == 0 or j == len(self.v):
            return 0.0 if j == 0 else math.inf
        share = (self.v[j - 1] - delta) / (self.v[j - 1] - self.v[j])
        return float(self.x[j - 1] + np.log1p(share * np.expm1(self.x[j] - self.x[j - 1])))

    def delta(self, epsilon: float) -> float:
        """Return the bound at one epsilon >= 0, rounded up; NaN where nodes are too far apart."""
        y = min(epsilon, float(self.x[-1]))
        j = max(1, int(np.searchsorted(self.x, y)))
        rounding = 2.0**-46 * self.v[j - 1]  # of the chord, which falls from v[j - 1]
        return float(self(np.array([y]))[0] * (1 + MARGIN) + rounding)


NOTHING = Curve(np.array([0.0, 1.0]), np.zeros(2))


def _grid(h: float, start: int, stop: int) -> Floats:
    return h * np.arange(start, stop, dtype=np.float64)


def _both_signs(x: Floats, v: Floats) -> Floats:
    """V(x) from v = V(|x|)."""
    y = np.abs(x)
    result: Floats = np.where(x < 0, -np.expm1(-y) + np.exp(-y) * v, v)
    return result


# ------------------------------------------------------------------------------- products of groups


def product(a: Curve, b: Curve) -> Curve:
    """Join two groups: the sum over losses x of mass_a(x) V_b(. - x)."""
    h = max(a.x[-1], b.x[-1]) / 1024
    n, m = math.ceil(a.x[-1] / h), math.ceil((a.x[-1] + b.x[-1]) / h)
    losses = _grid(h, -n, n + 1)
    v = np.convolve(b(_grid(h, -n, m + n + 1)), _masses(losses, a(losses)), mode="valid")
    v = v * (1 + MARGIN) + a.v[-1]
    size = max(2, min(m, int(np.count_nonzero(v > 2 * (a.v[-1] + b.v[-1])))) + 1)
    return Curve(_grid(h, 0, size), v[:size])


def power(curve: Curve, n: int) -> Curve:
    """Join n groups alike."""
    if n == 1:
        return curve
    half = power(curve, n // 2)
    return product(product(half, half), curve) if n % 2 else product(half, half)


def _masses(x: Floats, v: Floats) -> Floats:
    """Probabilities m under P of the losses x: V(g) = v[-1] + sum of m_j (1 - g e^-x_j)_+.

    m_j is e^x_j times the change of the slope of V at e^x_j; the rounding of that is added on top.
    """
    left = np.concatenate([[1.0], -np.expm1(x[:-1] - x[1:])])  # (g_j - g_{j-1}) / g_j, first from 0
    right = np.concatenate([np.expm1(x[1:] - x[:-1]), [1.0]])  # (g_{j+1} - g_j) / g_j
    v = np.concatenate([[1.0], v, v[-1:]])
    mass = (v[:-2] - v[1:-1]) / left - (v[1:-1] - v[2:]) / right
    result: Floats = np.maximum(mass, 0.0) + 2.0**-50 * (v[:-2] / left + v[1:-1] / right)
    return result


# ---------------------------------------------------------------------------------------- Gaussian


def gaussian_delta(epsilon: Floats, mu: float) -> Floats:
    """Phi(a) - e^eps Phi(b), a = mu/2 - eps/mu, b = a - mu (Balle and Wang 2018), rounded up.

    Since e^eps phi(b) = phi(a), both terms are phi(a) times a scaled erfc and nothing overflows.
    """
    a = mu / 2 - np.abs(epsilon) / mu
    density = np.exp(-a * a / 2) / 2
    first = np.where(
        a > 0,
        scipy.special.ndtr(a),
        density * scipy.special.erfcx(-np.minimum(a, 0.0) / math.sqrt(2)),
    )
    second = density * scipy.special.erfcx((mu - a) / math.sqrt(2))
    v = np.maximum(first - second, 0.0) * (1 + MARGIN) + 2.0**-45 * first
    return _both_signs(epsilon, v)


def epsilon_with_gaussian(curve: Curve, mu: float, delta: float) -> float:
    """Epsilon of a curve and Gaussian releases, mu^2 = sum of mu_i^2 (Dong, Roth, Su 2022)."""
    bound = _with_gaussian(curve, mu)
    return _first_false(lambda epsilon: bound(epsilon) > delta, mu) + _SHIFT


def delta_with_gaussian(curve: Curve, mu: float, epsilon: float) -> float:
    """Return the delta of a curve and Gaussian releases at one epsilon."""
    return _with_gaussian(curve, mu)(epsilon - _SHIFT)


def _with_gaussian(curve: Curve, mu: float) -> Callable[[float], float]:
    x = np.concatenate([-curve.x[:0:-1], curve.x])
    mass = _masses(x, curve(x))

    def bound(epsilon: float) -> float:
        together = np.sum(mass * gaussian_delta(epsilon - x, mu)) * (1 + MARGIN)
        return float(together + curve.v[-1])

    return bound


def _first_false(exceeds: Callable[[float], bool], start: float) -> float:
    """Return the upper end of a bisection for where `exceeds` stops to hold."""
    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, start
    while exceeds(high):
        low, high = high, 2 * high
        if high > 2.0**100:
            return math.inf
    while high - low > 2.0**-48 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


# ----------------------------------------------------------------------------------- pure releases


def responses(e: float, n: int, floor: float) -> Curve:
    """Make n pure releases: every e-DP pair is post-processed randomised response.

    (Kairouz, Oh, Viswanath 2015.) The losses are (n - 2i) e, i binomial(n, 1/(1 + e^e)) under P;
    V(x) = P(loss > x) - e^x Q(loss > x) bends there only. What is below the floor is cut off.
    """
    q = 1 / (1 + math.exp(e))
    fewest = max(0, math.floor(n * q - 40 * math.sqrt(n * q * (1 - q))) - 1)  # 40 sigma: 1e-300
    i = np.arange(n // 2, fewest - 1, -1)
    x, fewer = np.asarray((n - 2 * i) * e, dtype=np.float64), i - 1
    if n % 2:  # a node at epsilon = 0
        x, fewer = np.concatenate([[0.0], x]), np.concatenate([[n // 2], fewer])
    p_tail, q_tail = _binomial(fewer, n, q), _binomial(fewer, n, 1 - q)
    rounding = (1e-10 + 1e-14 * n) * p_tail  # of the incomplete beta function, with a wide margin
    v = np.maximum(p_tail - np.exp(np.minimum(x, 700.0)) * q_tail, 0.0) + rounding
    size = max(2, int(np.count_nonzero(v > floor)) + 1)
    return Curve(x[:size], v[:size])


def _binomial(k: npt.NDArray[np.int64], n: int, p: float) -> Floats:
    """P(at most k successes among n), 0 for k < 0."""
    result: Floats = np.where(
        k < 0, 0.0, scipy.special.betainc(n - np.maximum(k, 0), np.maximum(k, 0) + 1, 1 - p)
    )
    return result


# -------------------------------------------------------------------------------------- selections
#
# Let e be the range of a selection. From the last selection to the first, V_0(g) = (1 - g)_+ and
#     V_k(g) = sup over t in [0, e] of p_t V_{k-1}(g e^-t) + (1 - p_t) V_{k-1}(g e^{e-t}),
#     p_t = (1 - e^{t-e}) / (1 - e^-e)        (the pair: Dong, Durfee, Rogers 2020).
# The likelihood ratio L of a bounded-range pair lies in some [e^{t-e}, e^t] and has mean 1 under Q;
# L V(g/L) is convex in L, so mass at the two ends is worst. Hence V_n is the curve of n adaptive
# selections, and it is attained. The order of selections of different range matters: the recursion
# is for the order given.


@lru_cache(maxsize=64)
def selections(e: float, n: int, floor: float) -> Curve:
    """Make n selections of range e; above LONGEST in equal parts, their length rounded up."""
    if n > LONGEST:
        parts = -(-n // LONGEST)
        return power(selections(e, -(-n // parts), floor / parts**2), parts)
    # steps of the grid in one range: the bound on eps_s loses a share of about 0.4 / steps^2
    steps = next((s for most, s in ((2, 512), (16, 128), (128, 64)) if n <= most), 24)
    return recursion([steps] * n, e / steps, floor)


def recursion(widths: Sequence[int], h: float, floor: float) -> Curve:
    """Make selections of range widths[0] * h, widths[1] * h, ..., in this order.

    V is kept on the grid 0, h, 2h, ... Where it falls to `tail`, which rises from the floor to
    twice that, it is cut off and taken to stay there.
    """
    v, tail = np.empty(0), floor
    steps: dict[tuple[int, float], _Step] = {}
    for k, width in enumerate(reversed(widths)):
        # near the kink of V_0 any t may be best, later those near e/2: far ones may be coarse
        growth = next((g for most, g in ((16, 1.0), (64, 1.25), (128, 1.5)) if k < most), 4.0)
        if (width, growth) not in steps:
            steps[width, growth] = _Step(width, h, growth)
        v = steps[width, growth](v, tail)
        tail = floor * (1 + (k + 1) / len(widths))
        v = v[: len(v) - np.argmax(v[::-1] > tail)]
    v = np.concatenate([v, [tail, tail]])
    return Curve(_grid(h, 0, len(v)), v)


class _Step:
    """V_{k-1} -> V_k for one selection of range e = width * h.

    With s = e^t, F(s) = p V(g/s) + (1 - p) V(g e^e/s). Between nodes s_i < s_{i+1} chords bound V.
    Then F(s) = C - A/s - B s with A, B >= 0, at most F_i + (A/s_i)(1 - sqrt w)^2, reached at
    s = s_i / sqrt w, w = s_i^2 B/A. With gap = s_{i+1} - s_i and Z = V(g/s) - e^-e V(g e^e/s),
        A/s_i = c (Z_{i+1} - Z_i),  c = s_{i+1} / gap / (1 - e^-e),
        1 - w = gap / s_{i+1} + (F_{i+1} - F_i) s_i / gap / (A/s_i).
    Since s <= s_{i+1}, 1 - sqrt w is at most (1 - w) / (1 + s_i/s_{i+1}), which saves the root; and
    u below is that times sqrt c.
    """

    def __init__(self, width: int, h: float, growth: float) -> None:
        e = width * h
        spread = -math.expm1(-e)
        self.width, self.nodes, self.ratio = width, _nodes(width, growth), math.exp(-e)
        t = self.nodes * h
        s, gap = np.exp(t), np.diff(np.expm1(t))
        root = np.sqrt(s[1:] / gap / spread)
        both = s[:-1] + s[1:]
        self.p = -np.expm1(t - e) / spread
        self.chords = np.array([s[:-1] / both * (spread * root), gap / both * root,
                                gap / s[1:] * root])  # fmt: skip
        self.below = _grid(h, -width, 0)
        self.margin = 2.0**-48 / spread  # above the rounding of a step, relative to V(g e^-e)

    def __call__(self, v: Floats, tail: float) -> Floats:
        """Give V_k on one range more than v = V_{k-1}, which is at most `tail` after its end."""
        full = np.concatenate([v, np.full(2 * self.width + 1, tail)])
        full = np.concatenate([_both_signs(self.below, full[self.width : 0 : -1]), full])
        result = np.empty(len(v) + self.width)
        curve_step(full, self.nodes, self.p, self.chords, self.ratio, self.margin,
                   tail * 2.0**-60, result)  # fmt: skip
        return result


def _nodes(width: int, growth: float) -> npt.NDArray[np.int64]:
    """Grid steps among 0..width, both ends included, `growth` times denser towards width/2."""
    centre = width // 2
    chosen = {0, centre, width}
    for side, far in ((-1, centre), (1, width - centre)):
        while far > 0:
            chosen |= {centre + side * far, centre + side}
            far = min(far - 1, int(far / growth))
    return np.array(sorted(chosen))
