"""Events for Google's dp_accounting, and back. What it has no event for becomes a costlier one.

=============== ================================= ================================================
event           exported as                       because
=============== ================================= ================================================
gaussian        GaussianDpEvent(1 / mu)           the same pair; mu + 2^-59 covers discrete noise
selection       LaplaceDpEvent(1 / eps_s)         Laplace noise is costlier, see below
pure            LaplaceDpEvent(1 / e),            the least Laplace noise that is costlier
                e = 2 ln((1 + e^epsilon) / 2)
approximate     refused, unless its delta is 0    no event there fails with a probability
=============== ================================= ================================================

**Proof.** The curve of Laplace noise of size e is V(x) = 1 - e^((x - e)/2) for 0 <= x <= e; with
s = e^(x/2) and c = e^(-e/2) it is the straight line 1 - c s. All curves here are symmetric, so that
x >= 0 is enough, and one that lies above dominates, in every composition (Blackwell).

- *Pure.* The worst pair is randomised response, (e^epsilon - s^2) / (1 + e^epsilon). With
  c = 2 / (1 + e^epsilon) the line is above it by (s - 1)^2 / (1 + e^epsilon).
- *Selection.* The worst that all its pairs do at x is (1 - c s)^2 / (1 - c^2), c = e^(-eps_s/2): by
  1 - c s <= 1 - c <= 1 - c^2 that is at most 1 - c s.
- *Gaussian.* `DiscreteGaussian` may add 2^-60 to epsilon. With a = mu/2 - x/mu the curve rises by
  phi(a) for each unit of mu, and falls by phi(a) R(mu/2 + x/mu), R Mills' ratio, for each of x; so
  2^-59 more of mu make up for 2^-60 less of x, since R < 2 there.

Randomised response itself is no way to export a pure release: the PLD accountant of dp_accounting
0.6 charges it once, however often it is repeated.

**Neighbours.** The sizes of events are for the relation of their release already. Add them up under
``ADD_OR_REMOVE_ONE``, the default of dp_accounting's accountants, whichever relation it is. What is
imported is under 'add_remove'; under 'replace' its sizes are twice as large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from types import ModuleType
from typing import TYPE_CHECKING

from privfit.base.errors import DeclarationError, MissingExtraError
from privfit.base.rounding import rounded_down, rounded_up
from privfit.base.validation import is_finite
from privfit.privacy.accounting import Event, checked_events
from privfit.privacy.privacy_curves import MARGIN

if TYPE_CHECKING:
    from dp_accounting.dp_event import ComposedDpEvent, DpEvent

__all__ = ["from_dp_accounting", "to_dp_accounting"]

DISCRETE = Fraction(1, 2**59)  # of mu: what discrete noise costs more
LEAST = 1e-300  # sizes below are rounded up: their inverse is no float


def to_dp_accounting(events: Iterable[Event]) -> ComposedDpEvent:
    """Write events as an event of dp_accounting that costs no less.

    Parameters
    ----------
    events : iterable of Event
        The releases: selections, pure and Gaussian ones.

    Returns
    -------
    dp_accounting.ComposedDpEvent
        One event of Gaussian and Laplace noise for each. Add it up under ``ADD_OR_REMOVE_ONE``,
        the default there, whatever the relation of the releases: their sizes are for it already.

    See Also
    --------
    from_dp_accounting : The way back.
    compose : The cost by privfit's own accountant.

    Notes
    -----
    Gaussian releases are exported as they are. A selection becomes Laplace noise of its eps_s, and
    a pure release Laplace noise of epsilon + 2 ln cosh(epsilon/2): both cost more than what they
    stand for. An approximate release with a delta is refused. `privfit.privacy.dp_events` has the
    proofs. Needs ``pip install dp-accounting``.

    Examples
    --------
    >>> from privfit import Event, to_dp_accounting
    >>> exported = to_dp_accounting([Event("gaussian", 0.25, 40), Event("selection", 0.5)])
    >>> round(exported.events[0].event.noise_multiplier, 6), exported.events[0].count
    (4.0, 40)
    """
    dp = _dp_accounting()
    exported = []
    for event in checked_events(events):
        one = _exported(event, dp)
        if one is not None:
            many = event.count > 1
            exported.append(dp.SelfComposedDpEvent(one, int(event.count)) if many else one)
    return dp.ComposedDpEvent(exported)


def from_dp_accounting(event: DpEvent) -> tuple[Event, ...]:
    """Read an event of dp_accounting as events that cost no less.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian, Laplace and discrete Laplace noise, or nothing, composed in any way.

    Returns
    -------
    tuple of Event
        The releases, under 'add_remove'; under 'replace' their sizes are twice as large.

    See Also
    --------
    to_dp_accounting : The way there.
    compose : Their cost.

    Notes
    -----
    Gaussian noise is read as it is, Laplace noise as a pure release, which costs more. Everything
    else is refused, such as sampling, which has no kind here: ask dp_accounting for its epsilon and
    delta, and pass ``Event("approximate", epsilon, 1, delta)``. Needs ``pip install
    dp-accounting``.

    Examples
    --------
    >>> import dp_accounting
    >>> from privfit import compose, from_dp_accounting
    >>> steps = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(8.0), 4)
    >>> from_dp_accounting(steps)
    (Event(kind='gaussian', parameter=0.125, count=4, delta=0.0),)
    >>> round(compose(from_dp_accounting(steps), 1e-6), 3)
    1.061
    """
    return tuple(_imported(event, 1, _dp_accounting()))


def _dp_accounting() -> ModuleType:
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise MissingExtraError(
            "events of dp_accounting need that package; install it with: pip install dp-accounting"
        ) from None
    module: ModuleType = dp_event
    return module


def _exported(event: Event, dp: ModuleType) -> DpEvent | None:
    """One release; None if it costs nothing."""
    if event.delta:
        raise DeclarationError(
            f"delta ({event.delta:g}) of an approximate event must be 0, because no event of "
            "dp_accounting has one; pass the other events, and ask for a delta that is smaller by "
            "this one"
        )
    if event.parameter == 0:
        return None
    size = max(float(event.parameter), LEAST)
    if event.kind == "gaussian":
        return dp.GaussianDpEvent(rounded_down(1 / (Fraction(size) + DISCRETE)))
    if event.kind != "selection":
        size = _laplace_above(size)
    return dp.LaplaceDpEvent(rounded_down(1 / Fraction(size)))


def _laplace_above(epsilon: float) -> float:
    """2 ln((1 + e^epsilon) / 2), rounded up, with no digits lost at either end."""
    if epsilon < 1:
        return 2 * math.log1p(math.expm1(epsilon) / 2) * (1 + MARGIN)
    return 2 * (epsilon - math.log(2) + math.log1p(math.exp(-epsilon))) * (1 + MARGIN)


def _imported(event: DpEvent, count: int, dp: ModuleType) -> Iterator[Event]:
    if isinstance(event, dp.ComposedDpEvent):
        for part in event.events:
            yield from _imported(part, count, dp)
    elif isinstance(event, dp.SelfComposedDpEvent):
        if not is_finite(event.count) or event.count < 0 or event.count % 1:
            raise DeclarationError(
                f"count ({event.count!r}) of SelfComposedDpEvent must be a whole number of at "
                "least 0; pass how often it happens, rounded up"
            )
        if event.count > 0:
            yield from _imported(event.event, count * int(event.count), dp)
    elif isinstance(event, dp.GaussianDpEvent):
        yield Event("gaussian", rounded_up(1 / _noise(event, "noise_multiplier")), count)
    elif isinstance(event, dp.LaplaceDpEvent):
        yield Event("pure", rounded_up(1 / _noise(event, "noise_multiplier")), count)
    elif isinstance(event, dp.DiscreteLaplaceDpEvent):
        rate = _noise(event, "noise_parameter") * Fraction(event.sensitivity)
        yield Event("pure", rounded_up(rate), count)
    elif not isinstance(event, dp.NoOpDpEvent):
        raise DeclarationError(
            f"event ({type(event).__name__}) must be Gaussian, Laplace or discrete Laplace noise, "
            "or composed of these; pass Event('approximate', epsilon, 1, delta) with the epsilon "
            "and delta that dp_accounting gives for it"
        )


def _noise(event: DpEvent, name: str) -> Fraction:
    value = getattr(event, name)
    if not is_finite(value) or value < LEAST:
        raise DeclarationError(
            f"{name} ({value!r}) of {type(event).__name__} must be a finite number above 0; pass "
            "an event that adds noise"
        )
    return Fraction(float(value))
