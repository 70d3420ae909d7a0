"""What a plan of private releases costs: epsilon at a given delta, and back.

An `Event` says what is released and how often. `compose` gives the epsilon of a fixed list of
events at a delta, `delta_at` their delta at an epsilon, `total` the epsilon of n equal selections,
`calibrate` the largest selection that fits a budget.
The analyst may be adaptive: each mechanism may depend on every earlier output. Parameters and
counts are fixed in advance; stopping early is free.

=============== ==================================================================================
method          what is used
=============== ==================================================================================
naive           epsilons add up
advanced        Dwork, Rothblum, Vadhan 2010
kov             Kairouz, Oh, Viswanath 2015, closed form
kov_exact       the same, exactly: every pure release is a randomised response
rdp             Mironov 2017, with the Renyi curve of randomised response
bounded_range   Dong, Durfee, Rogers 2020: selections only
zcdp            Bun, Steinke 2016, with the conversion of Canonne, Kamath, Steinke 2020
tight           the least that is proved: the exact `privacy_curves`, or a formula if smaller;
                for equal selections (up to 1024) the exact optimum but for upward rounding
=============== ==================================================================================

The first five treat a selection as a pure release, which it also is. No method is worse than naive,
and with delta = 0 each means naive. Answers are rounded to the safe side: epsilon up, eps_s and mu
down. All of this is arithmetic on public parameters; no private value enters.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np

from privfit.base.cautions import old_order
from privfit.base.errors import DeclarationError, DeclarationTypeError
from privfit.base.rounding import rounded_down, rounded_up
from privfit.base.typing import Floats
from privfit.privacy import privacy_curves
from privfit.privacy.privacy_curves import MARGIN, Curve

__all__ = [
    "METHODS",
    "Event",
    "calibrate",
    "checked_events",
    "compose",
    "delta_at",
    "gaussian_calibrate",
    "gaussian_total",
    "table",
    "total",
]

METHODS = ("naive", "advanced", "kov", "kov_exact", "rdp", "bounded_range", "zcdp", "tight")
KINDS = ("selection", "pure", "gaussian", "approximate")


@dataclass(frozen=True)
class Event:
    """A release made `count` times.

    =========== ========= =========================================================================
    kind        parameter what is promised
    =========== ========= =========================================================================
    selection   eps_s     eps_s-bounded-range: the exponential mechanism, each round of peeling
    pure        eps       eps-DP, no more: permute-and-flip, report-noisy-max, discrete Laplace
    gaussian    mu        the curve of N(0, 1) against N(mu, 1): mu = l2 sensitivity / sigma for
                          real noise; `DiscreteGaussian` for the discrete one
    approximate eps       (eps, `delta`)-DP, no more; `delta` is 0 for the other kinds
    =========== ========= =========================================================================

    Parameters
    ----------
    kind : {'selection', 'pure', 'gaussian', 'approximate'}
        The kind of release.
    parameter : float
        Its parameter, as in the table.
    count : int, default=1
        How often it is made.
    delta : float, default=0.0
        The delta of an approximate release.

    See Also
    --------
    compose : The cost of several events.

    Examples
    --------
    >>> from privfit import Event, compose
    >>> round(compose([Event("selection", 0.05, 100), Event("gaussian", 0.1)], 1e-6), 3)
    1.149
    """

    kind: str
    parameter: float
    count: int = 1
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.kind not in KINDS:
            raise DeclarationError(f"kind ({self.kind!r}) must be known; pass one of {KINDS}")
        _check_size("parameter", self.parameter)
        _check_count("count", self.count)
        _check_delta(self.delta)
        if self.delta and self.kind != "approximate":
            raise DeclarationError(
                f"delta ({self.delta!r}) belongs to an approximate release; leave it out for a "
                f"{self.kind} one"
            )


@lru_cache(maxsize=1024, typed=True)
def event_of(kind: str, parameter: float, count: int = 1) -> Event:
    """An event that may have been made before: searches draw many equal ones."""
    return Event(kind, parameter, count)


Groups: TypeAlias = tuple[Event, ...]  # all different, sorted, none with parameter 0


# --------------------------------------------------------------------------------- public functions


def compose(events: Iterable[Event], delta: float, method: str = "tight") -> float:
    """Epsilon at delta of several events, in any order and however interleaved.

    Parameters
    ----------
    events : iterable of Event
        The releases. Their parameters and counts are fixed in advance; each release may depend on
        the outputs before it.
    delta : float
        The delta of the guarantee.
    method : str, default='tight'
        'naive', 'advanced', 'kov', 'kov_exact', 'rdp', 'bounded_range', 'zcdp', or 'tight', the
        smallest epsilon that is proved.

    Returns
    -------
    float
        Epsilon, rounded up.

    See Also
    --------
    delta_at : The delta at a given epsilon.
    total : The same for equal selections.
    calibrate : The largest selections that fit a budget.

    References
    ----------
    `privfit.privacy.accounting` lists the paper of each method.

    Examples
    --------
    >>> from privfit import Event, compose
    >>> compose([Event("pure", 0.25), Event("pure", 0.5)], 0.0)
    0.75
    """
    _check_delta(delta)
    _check_method(method)
    events = checked_events(events)
    left = _unspent(events, delta)
    groups = _grouped(_unfailing(events))
    if left < 0 or (left == 0 < delta and any(group.kind == "gaussian" for group in groups)):
        return math.inf  # no epsilon is enough
    return _epsilon(groups, left, method if left > 0 else "naive")


def delta_at(events: Iterable[Event], epsilon: float) -> float:
    """Delta at epsilon of several events, in any order and however interleaved.

    The inverse of `compose` with the method 'tight', except for rounding.

    Parameters
    ----------
    events : iterable of Event
        The releases. Their parameters and counts are fixed in advance; each release may depend on
        the outputs before it.
    epsilon : float
        The epsilon of the guarantee.

    Returns
    -------
    float
        Delta, rounded up; at most 1.

    See Also
    --------
    compose : The epsilon at a given delta.

    Examples
    --------
    >>> from privfit import Event, delta_at
    >>> fit = [Event("selection", 0.05, 100), Event("gaussian", 0.1)]
    >>> f"{delta_at(fit, 1.0):.2g}, {delta_at(fit, 1.2):.2g}"
    '1.1e-05, 4.2e-07'
    """
    _check_size("epsilon", epsilon)
    events = checked_events(events)
    failing = sum((event.count * Fraction(event.delta) for event in events), Fraction(0))
    within = _delta(_grouped(_unfailing(events)), float(epsilon))
    return min(1.0, rounded_up(failing + Fraction(within)))


@old_order("eps_s", "n", "delta", "method")
def total(n: int, *, eps_s: float, delta: float, method: str = "tight") -> float:
    """Epsilon at delta of n selections, each eps_s-bounded-range.

    Parameters
    ----------
    n : int
        The number of selections.
    eps_s : float
        The parameter of each selection.
    delta : float
        The delta of the guarantee.
    method : str, default='tight'
        A method of `compose`.

    Returns
    -------
    float
        Epsilon, rounded up.

    See Also
    --------
    calibrate : The inverse.
    compose : Events of different kinds.

    Examples
    --------
    >>> from privfit import total
    >>> round(total(101, eps_s=0.05, delta=1e-6), 3)
    1.066
    >>> round(total(101, eps_s=0.05, delta=1e-6, method="naive"), 3)
    5.05
    """
    _check_size("eps_s", eps_s)
    _check_count("n", n)
    return compose([Event("selection", eps_s, n)], delta, method)


@old_order("n", "epsilon", "delta", "method")
def calibrate(n: int, *, epsilon: float, delta: float, method: str = "tight") -> float:
    """The largest eps_s such that n selections cost at most epsilon at delta.

    `total(n, eps_s=calibrate(n, epsilon=e, delta=d), delta=d) <= e` holds exactly. Cached.

    Parameters
    ----------
    n : int
        The number of selections.
    epsilon : float
        The budget.
    delta : float
        The delta of the guarantee.
    method : str, default='tight'
        A method of `compose`.

    Returns
    -------
    float
        The parameter of each selection, rounded down.

    See Also
    --------
    total : The inverse.
    plan : Parts of a budget for releases of different kinds.

    Examples
    --------
    >>> from privfit import calibrate
    >>> round(calibrate(101, epsilon=1.0, delta=1e-6), 5)  # of each of 101 selections
    0.04712
    >>> round(calibrate(101, epsilon=1.0, delta=0.0), 5)  # a pure budget is shared evenly
    0.0099
    """
    _check_count("n", n)
    _check_budget(epsilon)
    _check_delta(delta)
    _check_method(method)
    return _calibrate(int(n), float(epsilon), float(delta), method if delta > 0 else "naive")


def gaussian_total(mu: float, delta: float) -> float:
    """Epsilon at delta of one Gaussian release; n of them are one with mu * sqrt(n)."""
    _check_size("mu", mu)
    return compose([Event("gaussian", mu)], delta)


def gaussian_calibrate(epsilon: float, delta: float, beside: Iterable[Event] = ()) -> float:
    """Largest mu of a Gaussian release that costs at most epsilon at delta; sigma = l2 / mu.

    `beside` are other events of the same plan: mu is then what they leave, 0 if that is nothing.
    """
    _check_budget(epsilon)
    _check_delta(delta)
    return _gaussian_calibrate(float(epsilon), float(delta), tuple(beside))


def table(
    epsilon: float = 1.0, delta: float = 1e-6, counts: Sequence[int] = (10, 101, 1001)
) -> str:
    """The eps_s that each method grants to each of n selections, one method per line."""
    lines = [
        f"eps_s of n selections, epsilon = {epsilon:g}, delta = {delta:g}",
        f"{'method':<14}" + "".join(f"{f'n = {n}':>12}" for n in counts),
    ]
    for method in METHODS:
        row = (calibrate(n, epsilon=epsilon, delta=delta, method=method) for n in counts)
        lines.append(f"{method:<14}" + "".join(f"{eps_s:>12.5f}" for eps_s in row))
    return "\n".join(lines)


# --------------------------------------------------------------------------- from events to a bound

# An (eps, delta) release is post-processed from one that tells all with probability delta and is
# eps-DP otherwise (Kairouz, Oh, Viswanath 2015). So the deltas are set aside, and what is left
# of delta pays for the rest.


def _unspent(events: Iterable[Event], delta: float) -> float:
    """What the approximate releases leave of delta, rounded down; negative if they exceed it."""
    left = Fraction(delta) - sum(event.count * Fraction(event.delta) for event in events)
    return rounded_down(left)


def _unfailing(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events if no approximate release fails: those are then pure."""
    return tuple(
        Event("pure", event.parameter, event.count) if event.kind == "approximate" else event
        for event in events
    )


def _grouped(events: Iterable[Event]) -> Groups:
    """Merge equal events. Counts add up here and nowhere else: k events are one with count k."""
    counts: Counter[tuple[str, float]] = Counter()
    for event in events:
        counts[event.kind, float(event.parameter)] += int(event.count)
    return tuple(Event(kind, p, n) for (kind, p), n in sorted(counts.items()) if p > 0)


@lru_cache(maxsize=4096)
def _epsilon(groups: Groups, delta: float, method: str) -> float:
    bound, refused = _BOUNDS[method]
    for group in groups:
        if group.kind in refused:
            raise DeclarationError(
                f"method ({method!r}) must apply to every event, and a {group.kind} release "
                f"{refused[group.kind]}; pass method='tight' and delta > 0"
            )
    if any(group.kind == "gaussian" for group in groups):
        return bound(groups, delta)
    return min(bound(groups, delta), _naive(groups)) if groups else 0.0


def _add(groups: Iterable[Event], **cost: Callable[[float], float]) -> float:
    """Sum count * cost[kind](parameter)."""
    return math.fsum(group.count * cost[group.kind](group.parameter) for group in groups)


def _square(x: float) -> float:
    return x * x


# ------------------------------------------------------------------------------------- closed forms

_MOST = Fraction(sys.float_info.max)
_ORDERS = 1 + np.geomspace(1e-6, 1e15, 6000)  # each order gives a bound; so dense, 1e-5 is lost


def _naive(groups: Groups, delta: float = 0.0) -> float:
    exact = sum((group.count * Fraction(group.parameter) for group in groups), Fraction(0))
    return rounded_up(exact) if exact <= _MOST else math.inf


def _advanced(groups: Groups, delta: float) -> float:
    """Dwork, Rothblum, Vadhan 2010: sqrt(2 ln(1/d) sum e^2) + sum e (e^e - 1)."""
    drift = _add(groups, selection=_excess, pure=_excess)
    squares = _add(groups, selection=_square, pure=_square)
    return (math.sqrt(-2 * math.log(delta) * squares) + drift) * (1 + MARGIN)


def _excess(e: float) -> float:
    return e * math.expm1(e) if e < 700 else math.inf


def _kov(groups: Groups, delta: float) -> float:
    """Kairouz, Oh, Viswanath 2015, theorem 3.5: sum e tanh(e/2) + sqrt(2 S ln(.)), S = sum e^2."""
    drift = _add(groups, selection=_mean_response, pure=_mean_response)
    squares = _add(groups, selection=_square, pure=_square)
    log = min(math.log(math.e + math.sqrt(squares) / delta), -math.log(delta))
    return (drift + math.sqrt(2 * squares * log)) * (1 + MARGIN)


def _mean_response(e: float) -> float:
    return e * math.tanh(e / 2)


@np.errstate(over="ignore")
def _rdp(groups: Groups, delta: float) -> float:
    """Mironov 2017: min over orders a of sum D_a + ln(1/d)/(a - 1)."""
    divergence = np.zeros_like(_ORDERS)
    for group in groups:
        one = _renyi_gaussian if group.kind == "gaussian" else _renyi_response
        divergence += group.count * one(group.parameter)
    return float(np.min(divergence - math.log(delta) / (_ORDERS - 1))) * (1 + MARGIN)


def _renyi_gaussian(mu: float) -> Floats:
    return _ORDERS * (mu * mu / 2)


def _renyi_response(e: float) -> Floats:
    """ln[(sinh(a e) - sinh((a-1) e)) / sinh e] / (a - 1), written so that nothing cancels.

    The ratio is cosh((a - 1/2) e) / cosh(e/2) = 1 + 2 sinh(a e/2) sinh((a-1) e/2) / cosh(e/2).
    """
    half = min(e / 2, 300.0)
    a, b = np.minimum(_ORDERS * half, 300.0), np.minimum((_ORDERS - 1) * half, 300.0)
    exact = np.log1p(2 * np.sinh(a) * np.sinh(b) / math.cosh(half)) / (_ORDERS - 1)
    result: Floats = np.where(a < 300.0, np.minimum(exact, e), e)  # never more than e
    return result


def _bounded_range(groups: Groups, delta: float) -> float:
    """Dong, Durfee, Rogers 2020: the largest mean losses and sqrt(sum e^2 / 2 ln(1/d))."""
    drift = _add(groups, selection=_mean_selection)
    spread = math.sqrt(-math.log(delta) * _add(groups, selection=_square) / 2)
    return (drift + spread) * (1 + MARGIN)


def _mean_selection(e: float) -> float:
    """Mean loss u - 1 - ln u, u = e/(1 - exp(-e)); its series where that cancels."""
    if e < 0.1:
        return e**2 / 8 - e**4 / 576 + e**6 / 25920
    u = e / -math.expm1(-e)
    return u - 1 - math.log(u)


@np.errstate(over="ignore")
def _zcdp(groups: Groups, delta: float) -> float:
    """Rho adds up; delta = exp((a-1)(a rho - eps)) (1 - 1/a)^a / (a-1) for every order a > 1.

    The conversion is proposition 12 of Canonne, Kamath, Steinke 2020; a selection is e^2/8-zCDP
    (Cesar, Rogers 2021), a pure release e^2/2, a Gaussian one mu^2/2 (Bun, Steinke 2016).
    """
    a, rho = _ORDERS, _rho(groups)
    logs = -math.log(delta) + a * np.log1p(-1 / a) - np.log(a - 1)
    rounding = MARGIN * (a * rho + (np.abs(logs) + 1) / (a - 1))
    return max(0.0, float(np.min(a * rho + logs / (a - 1) + rounding)))


def _rho(groups: Groups) -> float:
    return _add(
        groups,
        selection=lambda e: e * e / 8,
        pure=lambda e: e * e / 2,
        gaussian=lambda mu: mu * mu / 2,
    )


# ------------------------------------------------------------------------------------- exact curves

_SMALLEST, _LARGEST = 2.0**-30, 8.0  # selections below are rounded up, above taken as pure
_EPS_BITS, _DELTA_BITS = 16, 20  # eps_s is rounded up, delta down, to so many bits: see _largest
_FLOOR = 2.0**-24  # the share of delta that pays for cutting off tails
_SMALLEST_DELTA = 2.0**-200  # below, the closed forms decide
_LEAST_LOG = -700.0  # of a delta: not 0, which would be more than is proved


def _tight(groups: Groups, delta: float) -> float:
    """Take the least of what is proved for these events."""
    bounds = [_zcdp(groups, delta), *(_curve_bound(each, delta) for each in _covers(groups))]
    if _only_selections(groups):
        bounds.append(_bounded_range(groups, delta))
    return min(bounds)


def _only_selections(groups: Groups) -> bool:
    return all(group.kind == "selection" for group in groups)


def _covers(groups: Groups) -> list[Groups]:
    """What costs no less than these: themselves, and selections all as large as the largest.

    The recursion for equal selections may beat the product over sizes.
    """
    if len(groups) < 2 or not _only_selections(groups):
        return [groups]
    largest = groups[-1].parameter
    return [groups, _grouped(Event("selection", largest, group.count) for group in groups)]


def _kov_exact(groups: Groups, delta: float) -> float:
    """Kairouz, Oh, Viswanath 2015, theorem 3.3, for releases of any sizes."""
    pure = _grouped(Event("pure", group.parameter, group.count) for group in groups)
    return _curve_bound(pure, delta)


@np.errstate(over="ignore", invalid="ignore")  # a curve of NaN is no bound
def _curve_bound(groups: Groups, delta: float) -> float:
    """Epsilon at which the product of the groups' curves falls to delta."""
    delta = _down(delta, _DELTA_BITS)
    if delta < _SMALLEST_DELTA or any(group.parameter > 300 for group in groups):
        return math.inf  # beyond any use: the closed forms decide
    curve, mu = _joined(groups, delta)
    if mu == 0:
        return curve.epsilon(delta) * (1 + MARGIN)
    return privacy_curves.epsilon_with_gaussian(curve, mu, delta) * (1 + MARGIN)


def _joined(groups: Groups, delta: float) -> tuple[Curve, float]:
    """The curve of all but the Gaussian groups, fine enough for this delta, and the mu of these."""
    floor = delta * _FLOOR / (len(groups) + 1)
    factors = [_curve(group, floor) for group in groups if group.kind != "gaussian"]
    curve = reduce(privacy_curves.product, factors) if factors else privacy_curves.NOTHING
    gaussian = [group for group in groups if group.kind == "gaussian"]
    mu = math.sqrt(_add(gaussian, gaussian=_square))
    return curve, max(mu, 1e-150) if gaussian else 0.0


def _curve(group: Event, floor: float) -> Curve:
    if group.kind == "selection" and group.parameter <= _LARGEST:
        e = _up(max(group.parameter, _SMALLEST), _EPS_BITS)
        return privacy_curves.selections(e, group.count, floor)
    return privacy_curves.responses(group.parameter, group.count, floor)


# Delta at epsilon, by the same bounds. How fine a curve must be depends on the delta that it tells;
# so a closed form starts, and curves are repeated while they find far less than they were made for.


@lru_cache(maxsize=4096)
def _delta(groups: Groups, epsilon: float) -> float:
    """Delta at epsilon, rounded up: the least of what is proved for these events."""
    if not groups:
        return 0.0
    if all(group.kind != "gaussian" for group in groups) and _naive(groups) <= epsilon:
        return 0.0
    least = min(1.0, _zcdp_delta(groups, epsilon))
    if _only_selections(groups):
        least = min(least, _bounded_range_delta(groups, epsilon))
    for each in _covers(groups):
        while _SMALLEST_DELTA <= least:
            made_for, least = least, min(least, _curve_delta(each, epsilon, least))
            if least >= made_for / 64:
                break
    return least


@np.errstate(over="ignore", invalid="ignore")
def _curve_delta(groups: Groups, epsilon: float, delta: float) -> float:
    """The product of the groups' curves at epsilon, made for values of about delta; 1 if none."""
    if any(group.parameter > 300 for group in groups):
        return 1.0
    curve, mu = _joined(groups, delta)
    near = epsilon / (1 + 2 * MARGIN)
    bound = curve.delta(near) if mu == 0 else privacy_curves.delta_with_gaussian(curve, mu, near)
    return bound if bound < 1 else 1.0  # also where it is not a number


@np.errstate(over="ignore", invalid="ignore")
def _zcdp_delta(groups: Groups, epsilon: float) -> float:
    """The delta of `_zcdp`: exp((a-1)(a rho - eps)) (1 - 1/a)^a / (a-1), the least over orders."""
    a, rho = _ORDERS, _rho(groups)
    shape, log = a * np.log1p(-1 / a), np.log(a - 1)
    logs = (a - 1) * (a * rho - epsilon) + shape - log
    rounding = MARGIN * ((a - 1) * (a * rho + epsilon) + np.abs(shape) + np.abs(log) + 1)
    least = float(np.nanmin(logs + rounding))
    return math.exp(max(least, _LEAST_LOG)) * (1 + MARGIN) if least < 0 else 1.0


def _bounded_range_delta(groups: Groups, epsilon: float) -> float:
    """The delta of `_bounded_range`: exp(-2 (eps - drift)^2 / sum e^2) above the drift."""
    above = epsilon / (1 + 2 * MARGIN) - _add(groups, selection=_mean_selection)
    log = -2 * above**2 / _add(groups, selection=_square)
    return math.exp(max(log, _LEAST_LOG)) * (1 + MARGIN) if above > 0 else 1.0


_Bound: TypeAlias = Callable[[Groups, float], float]
_NOT_PURE = {"gaussian": "is not epsilon-DP for any epsilon"}
_NOT_RANGE = {"pure": "need not be bounded-range (permute-and-flip and noisy-max are not)"}
_BOUNDS: dict[str, tuple[_Bound, dict[str, str]]] = {  # and the kinds refused, with the reason
    "naive": (_naive, _NOT_PURE),
    "advanced": (_advanced, _NOT_PURE),
    "kov": (_kov, _NOT_PURE),
    "kov_exact": (_kov_exact, _NOT_PURE),
    "rdp": (_rdp, {}),
    "bounded_range": (_bounded_range, _NOT_PURE | _NOT_RANGE),
    "zcdp": (_zcdp, {}),
    "tight": (_tight, {}),
}


def applies(method: str, kind: str) -> bool:
    """Whether a method of composition takes releases of this kind."""
    _check_method(method)
    return ("pure" if kind == "approximate" else kind) not in _BOUNDS[method][1]


# -------------------------------------------------------------------------------------- calibration
#
# Floats with a given number of significant bits are counted in order. A search among them ends at
# the very largest that fits, so answers are monotone to the last bit where costs are; and they are,
# since one step from float to float outweighs their numerical noise.


@lru_cache(maxsize=4096)
def _calibrate(n: int, epsilon: float, delta: float, method: str) -> float:
    def cost(eps_s: float, delta: float = delta) -> float:
        return compose([Event("selection", eps_s, n)], delta, method)

    naive = _largest(lambda e: cost(e, 0.0), epsilon, float(Fraction(epsilon) / n), bits=53)
    if method == "naive":
        return naive
    # in the limit n selections are one Gaussian release of mu = eps_s sqrt(n) / 2
    guess = max(naive, 1.998 * _gaussian_calibrate(epsilon, delta) / math.sqrt(n))
    bits = _EPS_BITS if method == "tight" else 40
    eps_s = _largest(cost, epsilon, guess, bits)
    return max(eps_s, naive)


@lru_cache(maxsize=4096)
def _gaussian_calibrate(epsilon: float, delta: float, beside: tuple[Event, ...] = ()) -> float:
    if not beside:
        guess = epsilon / (math.sqrt(epsilon) + math.sqrt(2 * math.log(2 / max(delta, 1e-300))))
        return _largest(lambda mu: gaussian_total(mu, delta), epsilon, guess, bits=40)
    if compose(beside, delta) > epsilon:
        return 0.0
    alone = _gaussian_calibrate(epsilon, delta)
    # in the limit a selection is a Gaussian release of mu = eps_s / 2, and a pure one of mu = eps
    halves = ((e, 0.5 if e.kind == "selection" else 1.0) for e in beside)
    taken = math.fsum(e.count * (half * e.parameter) ** 2 for e, half in halves)
    guess = math.sqrt(max(0.99 * alone**2 - taken, 1e-3 * alone**2))

    def cost(mu: float) -> float:
        return compose([*beside, Event("gaussian", mu)], delta)

    return _largest(cost, epsilon, guess, _EPS_BITS)


@lru_cache(maxsize=256)
def enlarged(events: tuple[Event, ...], epsilon: float, delta: float) -> tuple[Event, ...]:
    """These events, their parameters times the largest common factor with which they fit.

    Pure releases and selections may also be as large as their plain sum allows.
    """

    def scaled(factor: float) -> tuple[Event, ...]:
        return tuple(replace(event, parameter=factor * event.parameter) for event in events)

    factor = _largest(lambda f: compose(scaled(f), delta), epsilon, 1.0, _EPS_BITS)
    if all(event.kind in ("selection", "pure") for event in events):
        plain = float(Fraction(epsilon) / Fraction(_naive(events)))
        factor = max(factor, _largest(lambda f: _naive(scaled(f)), epsilon, plain, bits=53))
    return scaled(factor)


def _largest(cost: Callable[[float], float], budget: float, guess: float, bits: int) -> float:
    """The largest float with this many bits whose cost, an increasing function, is in the budget.

    Secant steps in the logarithms, always into the bracket: from a good guess three or four costs.
    """
    fits: int | None = None
    fails: int | None = None
    octave = 2 ** (bits - 1)
    probe, last = _index(max(guess, 1e-280), bits), (math.inf, math.nan)
    slope = 1.1 * math.log(_value(probe + 1, bits) / _value(probe, bits))  # if cost ~ eps_s^1.1
    for trial in range(10_000):
        if _value(probe, bits) < 1e-290:
            return 0.0
        spent = cost(_value(probe, bits))
        fits, fails = (probe, fails) if spent <= budget else (fits, probe)
        if fits is not None and fails == fits + 1:
            break
        excess = math.log(min(max(spent, 1e-300), 1e300)) - math.log(budget)
        secant = (excess - last[1]) / (probe - last[0])
        slope, last = secant if secant > 0 else slope, (probe, excess)
        near = probe - math.ceil(max(-4 * octave, min(4 * octave, excess / slope)))
        reach = 2 ** max(0, trial - 2)  # grows while only one side of the bracket is known
        if fails is None:
            probe = max(near, probe + reach)
        elif fits is None:
            probe = min(near, probe - reach)
        else:
            near = near if trial % 4 else (fits + fails) // 2
            probe = min(max(near, fits + 1), fails - 1)
    assert fits is not None
    return _value(fits, bits)


def _index(x: float, bits: int) -> int:
    """Count to the largest float of so many bits that is at most x."""
    mantissa, exponent = math.frexp(x)
    octave: int = 2 ** (bits - 1)
    return exponent * octave + int(mantissa * 2 * octave) - octave


def _value(index: int, bits: int) -> float:
    octave: int = 2 ** (bits - 1)
    exponent, mantissa = divmod(index, octave)
    return math.ldexp(mantissa + octave, exponent - bits)


def _down(x: float, bits: int) -> float:
    return _value(_index(x, bits), bits)


def _up(x: float, bits: int) -> float:
    low = _down(x, bits)
    return low if low == x else _value(_index(x, bits) + 1, bits)


# ------------------------------------------------------------------------------------------- checks


def checked_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events; anything else is refused."""
    if not isinstance(events, Iterable):
        raise DeclarationTypeError(
            f"events ({type(events).__name__}) must be a list of events; pass "
            "[Event('gaussian', 0.1)]"
        )
    found = tuple(events)
    for event in found:
        if not isinstance(event, Event):
            raise DeclarationTypeError(
                f"event ({type(event).__name__}) must be an Event; pass [Event('gaussian', 0.1)]"
            )
    return found


def _check_size(name: str, value: float) -> None:
    if not (isinstance(value, Real) and 0 <= value < math.inf):
        raise DeclarationError(f"{name} ({value!r}) must be a finite number >= 0; pass {name}=0.1")


def _check_budget(epsilon: float) -> None:
    if not (isinstance(epsilon, Real) and 0 < epsilon < math.inf):
        raise DeclarationError(
            f"epsilon ({epsilon!r}) must be a finite number > 0; pass epsilon=1.0"
        )


def _check_delta(delta: float) -> None:
    if not (isinstance(delta, Real) and 0 <= delta < 1):
        raise DeclarationError(
            f"delta ({delta!r}) must be a number in [0, 1); pass delta=1e-6, or 0 for pure privacy"
        )


def _check_count(name: str, value: int) -> None:
    if not (isinstance(value, Integral) and value >= 1):
        raise DeclarationError(f"{name} ({value!r}) must be a whole number >= 1; pass {name}=1")


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise DeclarationError(f"method ({method!r}) must be known; pass one of {METHODS}")
