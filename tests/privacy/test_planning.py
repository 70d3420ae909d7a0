"""Parts of a budget: together they never cost more than it, and nearly all of it."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers.raises import assert_reached, messages_of

from privfit import (
    Budget,
    BudgetError,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Ledger,
    calibrate,
    compose,
    plan,
)
from privfit.base.rounding import exact
from privfit.privacy import Plan, planning
from privfit.privacy.accounting import gaussian_calibrate
from privfit.privacy.ledger import LEAST, MOST

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SHARES = {"select": 0.3, "fit": 0.6, "roc": 0.1}
DRAWS = {"select": ("selection", 20), "fit": ("gaussian", 40), "roc": ("pure", 2)}
WHOLE = Budget(1.0, 1e-6)


def counts(event: Event) -> float:
    """What a part adds to mu^2 in the limit."""
    mu = event.parameter / 2 if event.kind == "selection" else event.parameter
    return event.count * mu**2


# ----------------------------------------------------------------------------- budgets of their own


def test_shares_alone_are_budgets_that_a_ledger_takes():
    parts = plan(WHOLE, shares=SHARES)
    assert parts.budgets == {"select": Budget(0.3, 3e-7), "fit": Budget(0.6, 6e-7),
                             "roc": Budget(0.1, 1e-7)}  # fmt: skip
    assert (parts.events, parts.drawn) == ({}, None)
    ledger = Ledger(1.0, 1e-6)
    for name, part in parts.budgets.items():
        ledger.reserve(part.epsilon, part.delta, name)
    assert ledger.remaining == Budget(0.0, 0.0)
    assert parts.cost() == WHOLE


positive = st.floats(1e-3, 1.0)


@quick
@given(st.lists(positive, min_size=1, max_size=7), st.floats(1e-4, 50), st.floats(0, 1e-3))
def test_budgets_add_up_to_no_more_than_the_whole_and_a_ledger_takes_them(weights, epsilon, delta):
    whole = math.fsum(weights)
    parts = plan(Budget(epsilon, delta), {str(i): w / whole for i, w in enumerate(weights)})
    assert sum(exact(part.epsilon) for part in parts.budgets.values()) <= exact(epsilon)
    assert sum(exact(part.delta) for part in parts.budgets.values()) <= exact(delta)
    assert parts.cost().epsilon >= epsilon * (1 - 1e-12)
    ledger = Ledger(epsilon, delta)
    for part in parts.budgets.values():
        ledger.reserve(part.epsilon, part.delta)


# -------------------------------------------------------------------------------------------- draws


def test_draws_cost_the_budget_and_their_sizes_follow_the_shares():
    parts = plan(WHOLE, SHARES, DRAWS)
    events = list(parts.events.values())
    assert [(event.kind, event.count) for event in events] == list(DRAWS.values())
    assert 0.9999 < compose(events, 1e-6) <= 1.0
    assert parts.drawn == parts.budget == WHOLE
    squares = {name: counts(event) for name, event in parts.events.items()}
    for name, share in SHARES.items():
        assert squares[name] / sum(squares.values()) == pytest.approx(share, rel=1e-12)


kinds = st.sampled_from(["selection", "pure", "gaussian", None])  # None: a budget of its own
part = st.tuples(kinds, st.sampled_from([1, 2, 7, 40, 200]), positive)
epsilons = st.floats(-3, 2).map(lambda x: 10.0**x)
deltas = st.one_of(st.just(0.0), st.floats(-12, -2).map(lambda x: 10.0**x))


@quick
@given(st.lists(part, min_size=1, max_size=5), epsilons, deltas)
def test_the_certified_total_never_exceeds_the_budget(described, epsilon, delta):
    if delta == 0:
        described = [("pure" if k == "gaussian" else k, n, w) for k, n, w in described]
    whole = math.fsum(weight for _, _, weight in described)
    shares = {str(i): weight / whole for i, (_, _, weight) in enumerate(described)}
    draws = {str(i): (kind, n) for i, (kind, n, _) in enumerate(described) if kind}
    parts = plan(Budget(epsilon, delta), shares, draws)
    cost = parts.cost()
    assert cost.epsilon <= epsilon
    assert cost.delta <= delta
    assert cost.epsilon >= epsilon * 0.995  # little is wasted
    assert set(parts.events) == set(draws)
    assert set(parts.budgets) == set(shares) - set(draws)
    spent = sum((exact(b.epsilon) for b in parts.budgets.values()), Fraction(0))
    if parts.drawn is None:
        assert not draws
        return
    assert compose(parts.events.values(), parts.drawn.delta) <= parts.drawn.epsilon
    assert spent + exact(parts.drawn.epsilon) <= exact(epsilon)
    assert all(event.parameter > 0 for event in parts.events.values())
    ledger = Ledger(epsilon, delta)
    parts.reserve(ledger)  # the accountant of grants agrees
    for own in parts.budgets.values():
        ledger.reserve(own.epsilon, own.delta)


@pytest.mark.parametrize("epsilon", [LEAST, 300.0, MOST])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 0.999])
def test_the_extremes_fit(epsilon, delta):
    parts = plan(Budget(epsilon, delta), SHARES, DRAWS)
    assert parts.cost().epsilon <= epsilon
    assert all(event.parameter > 0 for event in parts.events.values())


def test_one_part_gets_what_calibrate_gives():
    selections = plan(WHOLE, {"a": 1.0}, {"a": ("selection", 101)}).events["a"]
    assert selections.parameter == pytest.approx(calibrate(101, epsilon=1.0, delta=1e-6), rel=5e-5)
    steps = plan(WHOLE, {"a": 1.0}, {"a": ("gaussian", 25)}).events["a"]
    assert steps.parameter == pytest.approx(gaussian_calibrate(1.0, 1e-6) / 5, rel=5e-5)
    pure = plan(Budget(1.0), {"a": 1.0}, {"a": ("pure", 4)}).events["a"]
    assert pure == Event("pure", 0.25, 4)


def test_a_pure_budget_shares_epsilon():
    parts = plan(Budget(2.0), {"a": 0.25, "b": 0.75}, {"a": ("selection", 2), "b": ("pure", 3)})
    assert parts.events == {"a": Event("selection", 0.25, 2), "b": Event("pure", 0.5, 3)}
    assert parts.cost() == Budget(2.0)


def test_few_pure_draws_get_no_less_than_their_plain_sum():
    """One part in 65536 would be lost by the search alone."""
    parts = plan(Budget(1.0, 1e-300), {"a": 0.5, "b": 0.5}, {"a": ("pure", 1), "b": ("pure", 1)})
    assert parts.events["a"] == parts.events["b"] == Event("pure", 0.5)


def test_twice_the_share_is_half_the_variance():
    """The noise of a Gaussian draw has the deviation sensitivity / mu."""
    draws = {"a": ("gaussian", 3), "b": ("gaussian", 3)}
    parts = plan(WHOLE, {"a": 1 / 3, "b": 2 / 3}, draws)
    ratio = parts.events["b"].parameter / parts.events["a"].parameter
    assert ratio == pytest.approx(math.sqrt(2), rel=1e-12)


def test_a_larger_budget_gives_larger_parts():
    small, large = (plan(Budget(e, 1e-6), SHARES, DRAWS).events for e in (1.0, 1.01))
    assert all(small[name].parameter < large[name].parameter for name in SHARES)


# ----------------------------------------------------------------------- the value that is returned


def test_a_grant_draws_what_was_planned_and_no_more():
    ledger = Ledger(1.0, 1e-6)
    parts = plan(WHOLE, SHARES, {"select": ("selection", 2), "roc": ("pure", 1)})
    grant = parts.reserve(ledger, "by hand", adjacency="add_remove")
    assert grant.budget == Budget(0.4, 4e-7)
    assert ledger.remaining == parts.budgets["fit"] == Budget(0.6, 6e-7)
    choose = Exponential(parts.events["select"].parameter, 1)
    for _ in range(2):
        grant.release(choose, [3, 700, 5])
    grant.release(DiscreteLaplace(parts.events["roc"].parameter, 1), [10])
    with pytest.raises(BudgetError, match=r"was not planned|costs epsilon"):
        grant.release(choose, [3, 700, 5])
    release = grant.close()
    assert (release.name, release.adjacency, release.verify()) == ("by hand", "add_remove", True)


def test_sizes_are_those_that_mechanisms_take():
    parts = plan(WHOLE, SHARES, DRAWS)
    grant = parts.reserve(Ledger(1.0, 1e-6))
    step = DiscreteGaussian(parts.events["fit"].parameter, sensitivity=1)
    assert [grant.release(step, [0]) for _ in range(40)]
    assert grant.close().verify()


def test_the_relation_of_the_budget_is_kept():
    parts = plan(Budget(1.0, 1e-6, "add_remove"), {"a": 0.5, "b": 0.5}, {"a": ("pure", 1)})
    assert parts.budgets["b"].adjacency == parts.cost().adjacency == "add_remove"
    ledger = Ledger(4.0, 1e-4, adjacency="replace")
    assert parts.reserve(ledger).budget.adjacency == "add_remove"
    assert ledger.spent.epsilon == 1.0  # twice its half
    assert parts.reserve(ledger, adjacency="replace").budget.adjacency == "replace"


def test_a_plan_is_a_frozen_value():
    parts = plan(WHOLE, SHARES, DRAWS)
    assert parts == plan(WHOLE, SHARES, DRAWS) == pickle.loads(pickle.dumps(parts))
    assert copy.deepcopy(parts) == parts != plan(WHOLE, SHARES)
    with pytest.raises(FrozenInstanceError):
        parts.budget = Budget(9.0)
    assert isinstance(parts, Plan)
    assert str(parts).splitlines()[1].startswith("  select: 0.3, 20 selection draws of size 0.05")


# ----------------------------------------------------------------------------------------- refusals

REFUSED = [
    (lambda: plan(1.0, SHARES), r"budget \(float\) must be a Budget; pass Budget\(1.0, 1e-6\)"),
    *((lambda e=e: plan(Budget(e, 1e-6), SHARES),
       r"budget \(epsilon .*\) must have an epsilon between 1e-\d+ and .*; pass Budget")
      for e in (0.0, 1e-300, 1e300)),
    (lambda: plan(WHOLE, {}), r"shares \(dict\) must map the names of parts to numbers; p"),
    (lambda: plan(WHOLE, [0.5, 0.5]), r"shares \(list\) must map the names of parts to numbers; p"),
    *((lambda share=share: plan(WHOLE, {"a": share, "b": 0.5}),
       r"share \(.*\) of 'a' must be a number of at least 1e-12; pass shares=")
      for share in (0, -0.5, 5e-324, math.nan, math.inf, "x", None, True)),
    (lambda: plan(WHOLE, {"a": 0.5, "b": 0.4}), r"shares \(0.9 together\) must add up to 1; pass"),
    (lambda: plan(WHOLE, {"a": 0.5, "b": 0.6}), r"shares \(1.1 together\) must add up to 1; pass"),
    (lambda: plan(WHOLE, SHARES, ["fit"]), r"draws \(list\) must map names of parts to kind and"),
    (lambda: plan(WHOLE, SHARES, {"x": ("pure", 1)}), r"draws of 'x' must belong to a part with a"),
    *((lambda drawn=drawn: plan(WHOLE, SHARES, {"fit": drawn}),
       r"draws \(.*\) of 'fit' must be a kind among \['selection', 'pure', 'gaussian'\] and a numb")
      for drawn in ("pure", 3, ("pure",), ("approximate", 1), ("laplace", 1), ("pure", 1, 2),
                    ([], 1))),
    *((lambda n=n: plan(WHOLE, SHARES, {"fit": ("pure", n)}),
       r"number of draws \(.*\) of 'fit' must be a whole number >= 1; pass draws=")
      for n in (0, -1, 1.5, "x", True)),
    (lambda: plan(Budget(1.0), SHARES, {"fit": ("gaussian", 3)}),
     r"delta \(0\) must be above 0 for the gaussian draws of 'fit'; pass Budget\(1.0, 1e-6\), or"),
    (lambda: plan(WHOLE, SHARES).reserve(Ledger(1.0, 1e-6)),
     r"draws \(None\) must name the parts that are drawn; pass draws to plan, or each of plan"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals_name_the_value_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_refusal_is_reached():
    seen = "\n".join(messages_of(call) for call, _ in REFUSED)
    assert_reached([Path(planning.__file__)], seen)
