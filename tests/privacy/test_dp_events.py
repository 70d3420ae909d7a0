"""Events for dp_accounting and back: never cheaper than they are, by its own accountants."""

import math
from pathlib import Path

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event, pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.raises import assert_reached, messages_of

from privfit import (
    Event,
    MissingExtraError,
    calibrate,
    compose,
    delta_at,
    from_dp_accounting,
    to_dp_accounting,
)
from privfit.privacy import dp_events

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def by_losses(event, delta, interval=1e-4) -> float:
    """Epsilon by privacy loss distributions, whose losses are rounded up."""
    accountant = pld.PLDAccountant(value_discretization_interval=interval)
    return accountant.compose(event).get_epsilon(delta)


def by_moments(event, delta) -> float:
    return rdp.RdpAccountant().compose(event).get_epsilon(delta)


# ------------------------------------------------------------------------ against their accountants


@pytest.mark.parametrize(("mu", "n"), [(0.01, 1), (0.3, 1), (0.1, 25), (1.0, 3)])
def test_gaussian_releases_cost_no_more_than_theirs_and_hardly_less(mu, n):
    events = [Event("gaussian", mu, n)]
    ours, exported = compose(events, 1e-6), to_dp_accounting(events)
    theirs = by_losses(exported, 1e-6)
    assert ours <= theirs * (1 + 1e-6)  # delta is rounded down to 20 bits
    assert theirs <= ours + 2e-4  # their grid
    assert ours <= by_moments(exported, 1e-6)


@pytest.mark.parametrize(("eps_s", "n"), [(0.5, 1), (0.1, 20), (0.053, 101), (1.0, 8)])
@pytest.mark.parametrize("delta", [1e-8, 1e-5])
def test_selections_cost_less_than_the_noise_that_stands_for_them(eps_s, n, delta):
    events = [Event("selection", eps_s, n)]
    exported = to_dp_accounting(events)
    assert compose(events, delta) <= by_losses(exported, delta)
    assert compose(events, delta) <= by_moments(exported, delta)
    assert delta_at(events, 0.5) <= pld.PLDAccountant().compose(exported).get_delta(0.5) + 1e-12


def test_by_how_much_selections_cost_less():
    """Half the epsilon at 101 selections: they know no bounded range."""
    eps_s = calibrate(101, epsilon=1.0, delta=1e-5)
    assert 1.9 < by_losses(to_dp_accounting([Event("selection", eps_s, 101)]), 1e-5) < 2.4


@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 1), (0.1, 20), (0.05, 100), (2.0, 3)])
def test_pure_releases_cost_no_more_than_the_noise_that_stands_for_them(epsilon, n):
    events = [Event("pure", epsilon, n)]
    exported = to_dp_accounting(events)
    for theirs in (by_losses(exported, 1e-6), by_moments(exported, 1e-6)):
        assert compose(events, 1e-6) <= theirs
    if epsilon <= 0.1:  # and not by much: small noise of either kind looks Gaussian
        assert by_losses(exported, 1e-6) <= 1.1 * compose(events, 1e-6)


def test_laplace_noise_of_the_same_epsilon_would_be_too_cheap():
    """So the size of pure releases has to grow: the fault that the tests above find."""
    naive = dp_event.LaplaceDpEvent(1 / 0.5)
    assert by_losses(naive, 0.1) < 0.9 * compose([Event("pure", 0.5)], 0.1)


def test_a_repeated_randomised_response_is_charged_once_there():
    """Why pure releases are not exported as what they are at worst."""
    one = dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(0.5)), 2)
    many = dp_event.SelfComposedDpEvent(one, 20)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    charged = pld.PLDAccountant(relation).compose(many).get_epsilon(1e-6)
    assert charged < 0.51 < compose([Event("pure", 0.5, 20)], 1e-6)


def test_mixed_releases_cost_no_more_than_theirs():
    events = [Event("selection", 0.1, 20), Event("gaussian", 0.05, 4), Event("pure", 0.2, 2)]
    exported = to_dp_accounting(events)
    assert compose(events, 1e-6) < by_losses(exported, 1e-6) < 2 * compose(events, 1e-6)


def test_count_k_is_k_events_there():
    once, many = Event("selection", 0.2), Event("selection", 0.2, 9)
    assert by_losses(to_dp_accounting([many]), 1e-6) == pytest.approx(
        by_losses(to_dp_accounting([once] * 9), 1e-6), rel=1e-6
    )


# -------------------------------------------------------------------------------- curves, by mpmath


def laplace(x, noise_multiplier):
    e = 1 / mpmath.mpf(noise_multiplier)
    return 1 - mpmath.exp((x - e) / 2) if x < e else mpmath.mpf(0)


@pytest.mark.parametrize("e", [1e-6, 0.01, 0.5, 0.999, 1.0, 3.0, 40.0])
def test_the_curve_of_the_noise_lies_above_what_it_stands_for(e):
    with mpmath.workdps(60):
        exact = mpmath.mpf(e)
        for_pure, for_selection = (
            to_dp_accounting([Event(kind, e)]).events[0].noise_multiplier
            for kind in ("pure", "selection")
        )
        for share in np.linspace(0, 0.999, 50):
            x = exact * mpmath.mpf(float(share))
            response = (mpmath.exp(exact) - mpmath.exp(x)) / (1 + mpmath.exp(exact))
            selection = (1 - mpmath.exp((x - exact) / 2)) ** 2 / (1 - mpmath.exp(-exact))
            assert response <= laplace(x, for_pure)
            assert selection <= laplace(x, for_selection)
        touches = (mpmath.exp(exact) - 1) / (1 + mpmath.exp(exact))
        assert laplace(mpmath.mpf(0), for_pure) <= touches * (1 + mpmath.mpf(10) ** -11)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.5, 10.0])
@pytest.mark.parametrize("x", [0.0, 1e-9, 0.3, 5.0])
def test_gaussian_noise_covers_what_discrete_noise_adds(mu, x):
    """The curve at the exported size, against that at mu with 2^-60 less of epsilon."""

    def delta(epsilon, size):
        tail = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / size - size / 2)
        return mpmath.ncdf(-epsilon / size + size / 2) - tail

    with mpmath.workdps(400):
        multiplier = to_dp_accounting([Event("gaussian", mu)]).events[0].noise_multiplier
        shifted = delta(mpmath.mpf(x) - mpmath.mpf(2) ** -60, mpmath.mpf(mu))
        assert shifted <= delta(mpmath.mpf(x), 1 / mpmath.mpf(multiplier))


# ----------------------------------------------------------------------------------- there and back

sizes = st.floats(-6, 1.5).map(lambda x: 10.0**x)
events_of = st.builds(
    Event, st.sampled_from(["selection", "pure", "gaussian", "approximate"]), sizes,
    st.integers(1, 40),
)  # fmt: skip


@quick
@given(st.lists(events_of, max_size=5))
def test_what_comes_back_is_no_cheaper(events):
    back = from_dp_accounting(to_dp_accounting(events))
    assert [event.count for event in back] == [event.count for event in events]
    for old, new in zip(events, back, strict=True):
        assert new.parameter >= old.parameter
        assert new.kind == ("gaussian" if old.kind == "gaussian" else "pure")
        if old.kind in ("gaussian", "selection"):
            assert new.parameter <= old.parameter * (1 + 1e-9)
        else:  # e + 2 ln cosh(e/2)
            e = old.parameter
            assert new.parameter <= (e + 2 * math.log(math.cosh(e / 2))) * (1 + 1e-9)


def test_events_of_theirs_are_read_at_every_depth():
    noise = dp_event.GaussianDpEvent(4.0)
    nested = dp_event.ComposedDpEvent([
        dp_event.SelfComposedDpEvent(dp_event.ComposedDpEvent([noise, dp_event.NoOpDpEvent()]), 3),
        dp_event.SelfComposedDpEvent(dp_event.SelfComposedDpEvent(noise, 2), 5),
        dp_event.LaplaceDpEvent(2.0),
        dp_event.DiscreteLaplaceDpEvent(0.125, 3),
        dp_event.SelfComposedDpEvent(noise, 0),
    ])  # fmt: skip
    assert from_dp_accounting(nested) == (
        Event("gaussian", 0.25, 3), Event("gaussian", 0.25, 10), Event("pure", 0.5),
        Event("pure", 0.375),
    )  # fmt: skip
    assert from_dp_accounting(dp_event.NoOpDpEvent()) == ()


def test_events_that_cost_nothing_are_left_out():
    exported = to_dp_accounting([Event("pure", 0.0, 7), Event("gaussian", 0.0)])
    assert exported.events == []
    assert to_dp_accounting([]).events == []


def test_the_smallest_sizes_are_rounded_up():
    for kind in ("pure", "selection", "gaussian"):
        (back,) = from_dp_accounting(to_dp_accounting([Event(kind, 5e-324)]))
        assert 5e-324 < back.parameter < 1e-17


# ----------------------------------------------------------------------------------------- refusals


def without_the_package():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "dp_accounting", None)
        to_dp_accounting([])


GAUSSIAN = dp_event.GaussianDpEvent(1.0)
OTHERS = [
    dp_event.PoissonSampledDpEvent(0.1, GAUSSIAN),
    dp_event.ZCDpEvent(0.1),
    dp_event.RandomizedResponseDpEvent(0.5, 2),
    dp_event.NonPrivateDpEvent(),
    dp_event.UnsupportedDpEvent(),
    dp_event.ComposedDpEvent([GAUSSIAN, dp_event.NonPrivateDpEvent()]),
    Event("pure", 0.1),
    None,
]
REFUSED = [
    (lambda: to_dp_accounting([Event("approximate", 0.1, 2, 1e-8)]),
     r"delta \(1e-08\) of an approximate event must be 0, because no event of dp_accounting has"),
    (lambda: to_dp_accounting([0.5]), r"event \(float\) must be an Event; pass \[Event\('gauss"),
    *((lambda event=event: from_dp_accounting(event),
       r"event \(\w+\) must be Gaussian, Laplace or discrete Laplace noise, or composed of these; ")
      for event in OTHERS),
    *((lambda event=event: from_dp_accounting(event),
       r"noise_\w+ \(.*\) of \w+ must be a finite number above 0; pass an event that adds noise")
      for event in (dp_event.GaussianDpEvent(0.0), dp_event.LaplaceDpEvent(-1.0),
                    dp_event.GaussianDpEvent(math.nan), dp_event.LaplaceDpEvent(math.inf),
                    dp_event.DiscreteLaplaceDpEvent(0.0, 1))),
    *((lambda count=count: from_dp_accounting(
          dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1.0), count)),
       r"count \(.*\) of SelfComposedDpEvent must be a whole number of at least 0; pass how often")
      for count in (2.5, 0.5, -3, True, "4", math.nan, math.inf, None)),
    (lambda: to_dp_accounting(3), r"events \(int\) must be a list of events; pass \[Event\('gauss"),
    (without_the_package,
     r"events of dp_accounting need that package; install it with: pip install dp-accounting"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals_name_the_value_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("count", [0, 4, 4.0])
def test_a_whole_count_is_read(count):
    many = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1.0), count)
    assert sum(event.count for event in from_dp_accounting(many)) == count


def test_a_missing_package_is_an_import_error():
    with pytest.raises(MissingExtraError):
        without_the_package()


def test_every_refusal_is_reached():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    assert_reached([Path(dp_events.__file__)], seen)
