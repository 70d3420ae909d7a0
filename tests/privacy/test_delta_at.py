"""Delta at a given epsilon: exact curves from below, the inverse of `compose` from above."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.privacy import accounting
from privfit.privacy.accounting import Event, compose, delta_at

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def gaussian(epsilon, mu):
    """Balle and Wang 2018, in 60 digits."""
    with mpmath.workdps(60):
        m, x = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = mpmath.exp(x) * mpmath.ncdf(-x / m - m / 2)
        return mpmath.ncdf(-x / m + m / 2) - tail


def responses(epsilon, e, n):
    """Randomised response n times: the sum of (P - e^epsilon Q)+ over the number of lies."""
    with mpmath.workdps(60):
        q, g = 1 / (1 + mpmath.exp(mpmath.mpf(e))), mpmath.exp(mpmath.mpf(epsilon))
        masses = (
            (mpmath.binomial(n, i) * q**i * (1 - q) ** (n - i),
             mpmath.binomial(n, i) * q ** (n - i) * (1 - q) ** i)
            for i in range(n + 1)
        )  # fmt: skip
        return sum(max(0, p - g * other) for p, other in masses)


def one_selection(epsilon, e):
    """The supremum over t, which Dong, Durfee and Rogers have in closed form."""
    with mpmath.workdps(60):
        x, e = mpmath.mpf(epsilon), mpmath.mpf(e)
        return (1 - mpmath.exp((x - e) / 2)) ** 2 / (1 - mpmath.exp(-e))


EPSILONS = [0.0, 1e-3, 0.05, 0.3, 0.9, 2.5]


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_gaussian_delta_lies_just_above_the_exact_one(epsilon, mu):
    exact, ours = gaussian(epsilon, mu), delta_at([Event("gaussian", mu)], epsilon)
    assert exact <= ours
    assert ours <= exact * (1 + 1e-6) or ours < 1e-60  # which `compose` never asks for


@pytest.mark.parametrize(("e", "n"), [(0.1, 1), (0.1, 9), (1.0, 4), (0.03, 60)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pure_delta_lies_just_above_the_exact_one(epsilon, e, n):
    exact, ours = responses(epsilon, e, n), delta_at([Event("pure", e, n)], epsilon)
    assert exact <= ours
    if compose([Event("pure", e, n)], 0.0) <= epsilon:
        assert ours == 0
    else:  # curves end in steep slopes, where the margin of epsilon shows
        assert ours <= responses(epsilon * (1 - 1e-11), e, n) * (1 + 1e-6)


@pytest.mark.parametrize("e", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 0.95])
def test_the_delta_of_a_selection_lies_just_above_the_exact_one(e, share):
    exact, ours = one_selection(share * e, e), delta_at([Event("selection", e)], share * e)
    assert exact <= ours <= exact * 1.002


def test_mixed_releases_against_dp_accounting():
    """Their losses are rounded up to a grid of 1e-3, so theirs is a little above."""
    one = pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=1e-3)
    peer = one.self_compose(4)
    for epsilon in (0.5, 1.0, 2.0):
        ours = delta_at([Event("gaussian", 0.3, 4)], epsilon)
        assert ours <= peer.get_delta_for_epsilon(epsilon) <= ours * 1.02


MIXED = [
    Event("selection", 0.1, 3),
    Event("pure", 0.2, 2),
    Event("selection", 0.05, 2),
    Event("gaussian", 0.1, 2),
    Event("approximate", 0.1, 2, 1e-7),
]


def test_count_k_is_k_events_in_any_order():
    singles = [Event(e.kind, e.parameter, 1, e.delta) for e in MIXED for _ in range(e.count)]
    orders = {delta_at(order, 0.8) for order in itertools.permutations(MIXED)}
    assert orders == {delta_at(singles, 0.8)}
    once = delta_at([Event(e.kind, e.parameter, 1, e.delta) for e in MIXED], 0.8)
    assert once < delta_at(MIXED, 0.8)


def test_deltas_of_approximate_releases_are_added():
    pure, both = [Event("pure", 0.3, 4)], [Event("pure", 0.3, 3), Event("approximate", 0.3, 1, 0.1)]
    for epsilon in (0.0, 0.4, 0.9):
        assert delta_at(both, epsilon) == pytest.approx(delta_at(pure, epsilon) + 0.1, rel=1e-15)
    assert delta_at([Event("approximate", 0.3, 5, 0.01)], 1.5) >= 0.05
    assert delta_at([Event("approximate", 0.3, 30, 0.5)], 1.0) == 1.0


def test_selections_of_different_sizes_cover_every_order():
    """The largest delta of two selections, one after the other, by trying many t."""
    large, small, epsilon = 1.0, 0.3, 0.5
    t = np.linspace(0, 1, 2001)

    def curve(x, e):
        inside = (1 - np.exp((np.clip(x, -e, e) - e) / 2)) ** 2 / -np.expm1(-e)
        return np.where(x <= -e, -np.expm1(x), inside)

    worst = 0.0
    for first, then in ((large, small), (small, large)):
        shift = t * first
        p = np.expm1(shift - first) / math.expm1(-first)
        both = p * curve(epsilon - shift, then) + (1 - p) * curve(epsilon + first - shift, then)
        worst = max(worst, both.max())
    ours = delta_at([Event("selection", large), Event("selection", small)], epsilon)
    assert worst <= ours <= 1.1 * worst


kinds = st.sampled_from(["selection", "pure", "gaussian", "approximate"])
sizes = st.floats(-3, 0.5).map(lambda x: 10.0**x)


@st.composite
def events(draw):
    kind = draw(kinds)
    delta = draw(st.sampled_from([0.0, 1e-9, 1e-4])) if kind == "approximate" else 0.0
    return Event(kind, draw(sizes), draw(st.sampled_from([1, 2, 5, 20])), delta)


@quick
@given(st.lists(events(), max_size=3), st.floats(-10, -1).map(lambda x: 10.0**x))
def test_it_is_the_inverse_of_compose(plan, delta):
    epsilon = compose(plan, delta)
    if epsilon == math.inf:  # the additive deltas are too large
        return
    # the margins by which both are rounded up: curves end in steep slopes, and have tails cut off
    assert delta_at(plan, epsilon * (1 + 1e-11)) <= delta * (1 + 1e-5)
    assert delta_at(plan, epsilon * 0.98) > delta * 0.99 or epsilon < 1e-15


@quick
@given(st.lists(events(), min_size=1, max_size=3), st.floats(0, 3), st.floats(0, 1))
def test_it_falls_with_epsilon_and_rises_with_events(plan, epsilon, more):
    at = delta_at(plan, epsilon)
    assert 0 <= delta_at(plan, epsilon + more) <= at * (1 + 1e-3) + 1e-300
    assert delta_at(plan[1:], epsilon) <= at * (1 + 1e-3)


def test_the_extremes_stay_safe():
    assert delta_at([], 0.0) == delta_at([Event("selection", 0.0, 9)], 0.0) == 0
    assert delta_at([Event("selection", 400.0, 2)], 800.0) == 0
    assert 0 < delta_at([Event("gaussian", 0.01)], 5.0) < 1e-200  # never 0: it is not pure
    assert delta_at([Event("selection", 1.0, 10**9)], 1.0) == 1.0
    assert delta_at([Event("gaussian", 1e4)], 1.0) == 1.0
    assert delta_at([Event("selection", 400.0)], 1.0) == 1.0
    tiny = delta_at([Event("gaussian", 1e-200)], 0.0)
    assert 0 < tiny < 1e-12


def test_curves_are_as_fine_as_the_delta_that_they_tell():
    """A closed form alone is far above where delta is small: 44 times here."""
    plan = [Event("selection", 0.05, 100)]
    groups = accounting._grouped(plan)
    assert accounting._zcdp_delta(groups, 2.5) > 20 * delta_at(plan, 2.5)
    assert compose(plan, delta_at(plan, 2.5)) == pytest.approx(2.5, rel=1e-3)


@pytest.mark.parametrize("epsilon", [-0.1, math.inf, math.nan, "1", None])
def test_refusals_name_the_value_and_the_remedy(epsilon):
    message = r"epsilon \(.*\) must be a finite number >= 0; pass epsilon=0.1"
    with pytest.raises(ValueError, match=message):
        delta_at([Event("pure", 0.1)], epsilon)


@pytest.mark.parametrize("call", [lambda one: delta_at(one, 1), lambda one: compose(one, 0)])
def test_what_is_no_event_is_refused(call):
    with pytest.raises(TypeError, match=r"events \(int\) must be a list of events; pass \[Event"):
        call(3)
    with pytest.raises(TypeError, match=r"event \(int\) must be an Event; pass \[Event\('gau"):
        call([3])
