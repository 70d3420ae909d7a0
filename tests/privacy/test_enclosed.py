"""Parts of a grant that plan for themselves: what covers them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from privfit import (
    Budget,
    BudgetError,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Ledger,
    compose,
)

PART = Event("approximate", 0.7, 1, 5e-7)
INSIDE = Budget(0.7, 5e-7)


def grant(*planned: Event):
    found = Ledger(1.0, 1e-6).reserve(1.0, 1e-6, "a fit")
    found.plan(*planned)
    return found


def begun():
    """A grant whose part has begun, after one draw."""
    found = grant(Event("pure", 0.25), PART)
    found.release(DiscreteLaplace(0.25, 1), [1], 1)
    found.enclose(INSIDE)
    return found


def test_a_part_plans_anew_and_is_one_event_of_the_release():
    one = begun()
    assert one.planned == ()
    one.plan(Event("selection", 0.05, 20), Event("gaussian", 0.05))
    for _ in range(20):
        one.release(Exponential(0.05, 2), np.array([0, 5]), 1)
    one.release(DiscreteGaussian(0.05, 8.0), [3], 1)
    inside = (Event("selection", 0.05, 20), Event("gaussian", 0.05))
    assert one.enclosed == inside
    assert compose(inside, INSIDE.delta) <= INSIDE.epsilon
    assert one.events == (Event("pure", 0.25), PART)
    assert one.spent == compose(one.events, 1e-6) <= 1.0
    assert one.budget == Budget(1.0, 1e-6)
    release = one.close()
    assert release.verify()
    assert release.events == (Event("pure", 0.25), PART)
    assert release.seeded


def test_a_grant_without_a_part_has_nothing_enclosed():
    one = grant(Event("pure", 0.25))
    one.release(DiscreteLaplace(0.25, 1), [1], 1)
    assert one.enclosed == ()


def test_draws_of_a_part_cost_no_more_than_the_part():
    one = begun()
    with pytest.raises(BudgetError, match=r"has epsilon 0\.7, delta 5e-07, but what is planned"):
        one.plan(Event("pure", 0.71))
    one.release(DiscreteLaplace(0.5, 1), [1], 1)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.7, delta 5e-07, but what is planned"):
        one.release(DiscreteLaplace(0.25, 1), [1], 1)  # which the whole would have covered
    with pytest.raises(BudgetError, match=r"has drawn already, and .* was not planned"):
        one.release(DiscreteGaussian(0.01, 8.0), [1], 1)


def test_what_was_planned_outside_is_not_drawn_inside():
    one = grant(Event("gaussian", 0.05), Event("approximate", 0.7, 1, 5e-7))
    one.enclose(INSIDE)
    one.release(DiscreteLaplace(0.7, 1), [1], 1)
    with pytest.raises(BudgetError, match=r"costs epsilon|was not planned"):
        one.release(DiscreteGaussian(0.05, 8.0), [1], 1)


def unplanned():
    return grant(Event("pure", 0.25))


def larger():
    return grant(Event("approximate", 0.6, 1, 5e-7))


def drawn_beside_the_plan():
    """By the plain sum of epsilons, which the plan of the part does not know."""
    found = grant(Event("pure", 0.125), PART)
    found.release(DiscreteLaplace(0.125, 1), [1], 1)
    found.release(DiscreteLaplace(0.25, 1), [1], 1)
    return found


def with_a_filter():
    found = Ledger(1.0, 1e-6).reserve(1.0, 1e-6, "a fit")
    found.filter("basic")
    return found


@pytest.mark.parametrize("made", [unplanned, larger, drawn_beside_the_plan, with_a_filter, begun])
def test_a_part_that_no_plan_covers_is_refused(made):
    with pytest.raises(BudgetError, match=r"must have planned a part of epsilon 0\.7, delta 5e-07"):
        made().enclose(INSIDE)


def test_a_part_has_no_filter_and_ends_with_its_grant():
    one = begun()
    with pytest.raises(BudgetError, match="plan or filter is decided before the first draw"):
        one.filter("gdp")
    one.close()
    with pytest.raises(BudgetError, match="is closed"):
        one.release(DiscreteLaplace(0.1, 1), [1], 1)
    with pytest.raises(BudgetError, match="is closed"):
        one.enclose(INSIDE)


def test_sizes_chosen_by_what_was_seen_stay_within_the_promise():
    """The exact delta of a strategy: two coins outside, then one of two releases inside.

    Outcomes are enumerated. The inside is pure after heads, and after tails reveals everything
    with probability delta, so both choices are (epsilon, delta)-DP and neither dominates.
    """
    outer, inner = 0.25, Event("approximate", 0.7, 1, 1e-2)
    promised = compose([Event("pure", outer), inner], 2e-2)
    p, q = (1 / (1 + np.exp(-e)) for e in (outer, inner.parameter))
    half, reveal = 1 / (1 + np.exp(-inner.parameter / 2)), inner.delta
    first, second = [], []
    for heads in (True, False):
        seen = (p, 1 - p) if heads else (1 - p, p)
        if heads:
            pairs = [(q, 1 - q), (1 - q, q)]
        else:
            pairs = [(reveal, 0.0), (0.0, reveal), ((1 - reveal) * half, (1 - reveal) * (1 - half)),
                     ((1 - reveal) * (1 - half), (1 - reveal) * half)]  # fmt: skip
        first += [seen[0] * a for a, _ in pairs]
        second += [seen[1] * b for _, b in pairs]
    assert sum(first) == pytest.approx(1)
    assert sum(second) == pytest.approx(1)
    spent = sum(max(0.0, a - np.exp(promised) * b) for a, b in zip(first, second, strict=True))
    assert spent <= 2e-2
    assert spent > 1e-3  # the strategy does use delta
