"""Filters: what may be drawn if sizes are chosen along the way.

`compose` is for sizes that are fixed before the first draw. If the next size is chosen after seeing
outputs, a filter covers it: a running sum with a limit that no draw may exceed, whatever was seen
before.

====== ============================================= ===============================================
filter what is summed, and its limit                 for
====== ============================================= ===============================================
basic  epsilons and deltas; epsilon and delta        all but Gaussian releases
gdp    squares of mu; the square of the largest mu   Gaussian releases, and few selections
       that costs epsilon at delta
zcdp   mu^2/2, eps_s^2/8, epsilon^2/2; the largest   selections, and few Gaussian releases (from
       rho that costs epsilon at delta               about 31 % of the cost on, at epsilon 1)
====== ============================================= ===============================================

Which filter is a public choice, made before the first draw. `docs/ledger.md` has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from privfit.base.errors import DeclarationError
from privfit.privacy.accounting import Event, compose
from privfit.privacy.privacy_curves import MARGIN

__all__ = ["FILTERS", "check_filter", "filtered"]

FILTERS = ("basic", "gdp", "zcdp")
LARGEST = 1e6  # mu: beyond, no epsilon that a grant may have is enough


def filtered(events: Iterable[Event], delta: float, by: str) -> float:
    """Epsilon at delta of events whose sizes were chosen along the way, by the filter's sum.

    >>> from privfit.privacy.accounting import Event
    >>> from privfit.privacy.filters import filtered
    >>> round(filtered([Event("gaussian", 0.1, 4), Event("selection", 0.1)], 1e-6, "gdp"), 3)
    0.877
    """
    events = tuple(events)
    check_filter(by, delta, events)
    if by == "basic":
        return compose(events, delta, "naive")

    size_of = _gdp_size if by == "gdp" else _zcdp_size
    whole = math.sqrt(math.fsum(event.count * size_of(event) ** 2 for event in events))
    if whole > LARGEST:
        return math.inf
    method = "tight" if by == "gdp" else "zcdp"
    return compose([Event("gaussian", whole * (1 + MARGIN))], delta, method)


def check_filter(by: str, delta: float, events: Iterable[Event] = ()) -> None:
    """Refuse a filter that does not apply to a delta, or to events."""
    if by not in FILTERS:
        raise DeclarationError(f"filter ({by!r}) must be known; pass one of {FILTERS}")
    if by != "basic" and not delta:
        raise DeclarationError(f"filter ({by!r}) needs delta > 0; pass 'basic', or reserve a delta")
    unfit = "gaussian" if by == "basic" else "approximate"
    if any(event.kind == unfit for event in events):
        other = "'gdp' or 'zcdp'" if by == "basic" else "'basic'"
        raise DeclarationError(f"filter ({by!r}) does not cover {unfit} releases; pass {other}")


def _zcdp_size(event: Event) -> float:
    """The mu of a Gaussian release of the same rho: e^2/8 for a selection, e^2/2 for a pure one."""
    return event.parameter / 2 if event.kind == "selection" else event.parameter


def _gdp_size(event: Event) -> float:
    """The mu for which a release is mu-GDP, rounded up.

    Epsilon-DP is 2 Phi^-1(1/(1 + e^-epsilon))-GDP: its trade-off curve has one corner, on the
    diagonal, and a convex curve through the corner and both ends lies below. An eps_s-bounded-range
    selection is as much as eps_s/2-DP is (`test_a_selection_is_as_gaussian_as_half_its_epsilon`).
    """
    from scipy.special import erfinv, expit, ndtri

    if event.kind == "gaussian":
        return event.parameter
    epsilon = event.parameter / 2 if event.kind == "selection" else event.parameter
    if epsilon < 1:  # where 1/(1 + e^-epsilon) would lose digits
        half = math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    else:
        half = -float(ndtri(expit(-epsilon)))
    return 2 * half * (1 + MARGIN)
