"""The ledger: nothing is drawn uncharged, nothing is charged twice, nothing leaves unseen."""

import copy
import json
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import cross_val_score

from privfit.base.errors import BudgetError
from privfit.privacy import grants
from privfit.privacy.accounting import Event, calibrate, compose
from privfit.privacy.ledger import Budget, Grant, Ledger, Release
from privfit.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Mechanism,
    TopK,
)

SCORES = np.arange(20)


class Failing(Mechanism):
    """A draw that is interrupted."""

    event = Event("pure", 0.25)

    def __call__(self, value, rng=None):
        raise KeyboardInterrupt


class Counting(Mechanism):
    """Counts how often it was drawn."""

    def __init__(self, epsilon=0.25):
        self.epsilon, self.draws = epsilon, 0

    @property
    def event(self):
        return Event("pure", self.epsilon)

    def __call__(self, value, rng=None):
        self.draws += 1
        return value


# ------------------------------------------------------------------------------------------ grants


def test_a_release_is_charged_before_it_is_drawn():
    grant = Ledger(1.0).reserve(1.0)
    with pytest.raises(KeyboardInterrupt):
        grant.release(Failing(), SCORES)
    assert grant.events == (Event("pure", 0.25),)
    assert grant.spent == 0.25


def test_a_refused_release_draws_nothing_and_charges_nothing():
    grant, mechanism = Ledger(1.0).reserve(0.6), Counting()
    grant.release(mechanism, 1)
    grant.release(mechanism, 1)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.6.*reserve more, or plan fewer"):
        grant.release(mechanism, 1)
    assert mechanism.draws == 2
    assert grant.spent == 0.5


def test_the_draw_after_the_last_one_planned_is_refused():
    n, budget = 31, Budget(1.0, 1e-6)
    eps_s = calibrate(n, epsilon=budget.epsilon, delta=budget.delta)
    grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
    grant.plan(Event("selection", eps_s, n))
    for _ in range(n):
        grant.release(Exponential(eps_s, 3), SCORES, 0)
    assert grant.events == (Event("selection", eps_s, n),)
    with pytest.raises(BudgetError, match="1 selection release"):
        grant.release(Exponential(eps_s, 3), SCORES, 0)


def test_a_plan_that_does_not_fit_is_refused_and_leaves_the_grant_as_it_was():
    grant = Ledger(1.0).reserve(1.0)
    grant.plan(Event("pure", 0.5))
    with pytest.raises(BudgetError, match=r"costs epsilon 1\.1"):
        grant.plan(Event("pure", 0.3, 2))
    grant.plan(Event("pure", 0.25, 2))


def test_plans_and_draws_do_not_cost_twice():
    grant, mechanism = Ledger(1.0).reserve(1.0), Counting()
    grant.plan(Event("pure", 0.25, 3))
    for _ in range(4):
        grant.release(mechanism, 1)
    assert grant.spent == 1.0


def test_draws_as_planned_are_not_accounted_for_again(monkeypatch):
    grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
    grant.plan(Event("selection", 0.05, 3), Event("gaussian", 0.05, 2))

    def never(*_):
        raise AssertionError("the plan was accounted for already")

    monkeypatch.setattr(grants, "compose", never)
    monkeypatch.setattr(grants, "in_plain_sum", never)
    for _ in range(2):
        grant.release(Exponential(0.05, 1), SCORES)
        grant.release(DiscreteGaussian(0.05, 1), SCORES)
    grant.release(Exponential(0.05, 1), SCORES)
    with pytest.raises(AssertionError, match="accounted for"):
        grant.release(Exponential(0.05, 1), SCORES)
    assert grant.events == (Event("selection", 0.05, 3), Event("gaussian", 0.05, 2))


def test_a_draw_beside_the_plan_takes_from_what_was_planned():
    grant = Ledger(1.0).reserve(1.0)
    grant.plan(Event("pure", 0.4, 2))
    grant.release(Counting(0.4), SCORES)
    grant.release(Counting(0.6), SCORES)  # the plain sum covers it
    second = Counting(0.4)
    with pytest.raises(BudgetError, match=r"costs epsilon 1\.4"):
        grant.release(second, SCORES)  # as planned, but its budget is spent
    assert second.draws == 0


def test_a_grant_costs_what_its_events_cost():
    grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
    grant.release(TopK(5, 0.05, 2), SCORES, 1)
    grant.release(Exponential(0.05, 2), SCORES, 1)
    grant.release(DiscreteLaplace(0.1, 1), SCORES, 1)
    assert grant.spent == compose([Event("selection", 0.05, 6), Event("pure", 0.1)], 1e-6)


def test_a_closed_grant_refuses_everything():
    grant = Ledger(1.0).reserve(1.0, name="mean")
    grant.close()
    for call in (
        lambda: grant.release(Counting(), 1),
        lambda: grant.plan(Event("pure", 0.1)),
        grant.close,
    ):
        with pytest.raises(BudgetError, match="grant 'mean' is closed: its release was made"):
            call()


def test_a_grant_cannot_be_copied():
    grant = Ledger(1.0).reserve(1.0)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a grant cannot be copied or pickled"):
            way(grant)


def test_reprs_show_budgets_and_no_values():
    ledger = Ledger(1.0, 1e-6)
    grant = ledger.reserve(0.5, name="fit")
    grant.release(DiscreteLaplace(0.25, 1), np.array([123456789]), 1)
    assert repr(grant) == "Grant('fit', epsilon 0.5, delta 0)"
    assert repr(ledger) == "Ledger(epsilon 1, delta 1e-06; spent epsilon 0.5, delta 0)"


# ----------------------------------------------------------------------------------------- ledgers


def test_grants_add_up_and_an_overspend_says_what_is_left():
    ledger = Ledger(1.0, 1e-6)
    ledger.reserve(0.75, 1e-7, "first")
    assert ledger.spent == Budget(0.75, 1e-7)
    assert ledger.remaining.epsilon == 0.25
    message = r"has epsilon 0\.25, delta 9e-07 left of epsilon 1, delta 1e-06, but 'fit' asks for"
    with pytest.raises(BudgetError, match=message):
        ledger.reserve(0.3)
    with pytest.raises(BudgetError, match="ask for less, or start a larger ledger"):
        ledger.reserve(0.1, 1e-6)
    assert ledger.spent == Budget(0.75, 1e-7)
    assert len(ledger.entries) == 1


def decimal(typed):
    return Fraction(repr(typed))


@settings(max_examples=50)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_many_small_grants_never_exceed_the_budget_by_rounding(parts):
    ledger = Ledger(float(np.sum(parts)))
    granted = []
    for part in parts:
        try:
            ledger.reserve(part)
        except BudgetError:
            continue
        granted.append(part)
    exact, budget = sum(map(decimal, granted)), decimal(ledger.budget.epsilon)
    assert exact <= budget * (1 + Fraction(1, 2**51))
    assert decimal(ledger.spent.epsilon) >= exact
    assert decimal(ledger.remaining.epsilon) <= max(budget - exact, 0)


def test_disjoint_groups_cost_the_largest_and_shared_records_cost_in_each():
    ledger = Ledger(1.0)
    ledger.reserve(0.5, group="train")
    ledger.reserve(0.75, group="test")
    assert ledger.spent == Budget(0.75)
    assert ledger.remaining == Budget(0.25)
    assert ledger.remaining_for("train") == Budget(0.5)
    ledger.reserve(0.125)
    assert ledger.spent == Budget(0.875)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.125"):
        ledger.reserve(0.25, group="test")
    ledger.reserve(0.375, group="train")
    assert ledger.spent == Budget(1.0)


def test_a_scope_costs_what_was_reserved_in_it():
    ledger = Ledger(1.0, 1e-6)
    with ledger.scope("pipeline"):
        with ledger.scope("select"):
            ledger.reserve(0.25, 1e-7, "counts")
        ledger.reserve(0.125, 0.0, "fit")
    ledger.reserve(0.5, 0.0, "pipeline-two")
    assert [entry[1] for entry in ledger.entries] == [
        "pipeline/select/counts", "pipeline/fit", "pipeline-two",
    ]  # fmt: skip
    assert ledger.cost("pipeline") == Budget(0.375, 1e-7)
    assert ledger.cost("pipeline/select") == Budget(0.25, 1e-7)
    assert ledger.cost("absent") == Budget(0.0)


def test_a_scope_ends_with_its_block_even_after_an_error():
    ledger = Ledger(1.0)
    with pytest.raises(ZeroDivisionError), ledger.scope("broken"):
        raise ZeroDivisionError
    ledger.reserve(0.5, name="after")
    assert ledger.entries[0][1] == "after"


def test_a_nested_ledger_shares_out_what_was_charged_whole():
    ledger = Ledger(1.0, 1e-6)
    inner = ledger.nested(0.5, 1e-7, "team")
    assert ledger.spent == Budget(0.5, 1e-7)
    inner.reserve(0.25)
    inner.reserve(0.25)
    with pytest.raises(BudgetError, match=r"left of epsilon 0\.5"):
        inner.reserve(0.01)
    assert ledger.spent == Budget(0.5, 1e-7)


def test_threads_together_cannot_overspend():
    ledger, granted = Ledger(1.0), []

    def spend():
        for _ in range(50):
            try:
                granted.append(ledger.reserve(1 / 64))
            except BudgetError:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 64
    assert ledger.spent.epsilon == 1.0


def test_threads_together_cannot_overdraw_a_grant():
    grant, mechanism = Ledger(1.0).reserve(1.0), Counting(1 / 64)

    def draw():
        for _ in range(40):
            try:
                grant.release(mechanism, 0)
            except BudgetError:
                return

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mechanism.draws == 64


# ------------------------------------------------------------------------------- copies and files


class Spender(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger

    def fit(self, X, y=None):
        self.ledger.reserve(0.125)
        return self

    def score(self, X, y=None):
        return 0.0


def test_clones_and_cross_validation_spend_from_the_same_ledger():
    ledger = Ledger(1.0)
    assert clone(Spender(ledger)).ledger is ledger
    cross_val_score(Spender(ledger), np.zeros((8, 1)), cv=4)
    assert ledger.spent == Budget(0.5)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy(ledger) is ledger


def test_a_pickled_ledger_is_a_closed_copy():
    ledger = Ledger(1.0, 1e-6)
    ledger.reserve(0.5, 1e-7, "fit")
    closed = pickle.loads(pickle.dumps(ledger))
    assert closed.spent == ledger.spent
    assert closed.entries == ledger.entries
    assert "closed" in repr(closed)
    with pytest.raises(
        BudgetError, match="this ledger is closed: it is a copy; spend from the orig"
    ):
        closed.reserve(0.1)
    assert pickle.loads(pickle.dumps(closed)).spent == ledger.spent


def test_json_keeps_a_ledger():
    ledger = Ledger(1.0, 1e-6)
    ledger.reserve(0.3, 1e-7, "first")
    ledger.reserve(0.1, 0.0, "second", group="test")
    again = Ledger.from_json(ledger.to_json())
    assert again.budget == ledger.budget
    assert again.entries == ledger.entries
    assert again.spent == ledger.spent
    again.reserve(0.5)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epsilon": 1}', "nonsense"])
def test_other_json_is_refused(text):
    for reader in (Ledger.from_json, Release.from_json):
        with pytest.raises(ValueError, match="text must be JSON written by to_json"):
            reader(text)


def test_json_of_another_version_or_overspent_is_refused():
    fields = json.loads(Ledger(1.0).to_json())
    with pytest.raises(
        ValueError, match=r"version \(99\) must be 1 or 2 or 3; use the privfit that wrote it"
    ):
        Ledger.from_json(json.dumps(fields | {"privfit": 99}))
    entry = {"group": "", "name": "x", "epsilon": 2.0, "delta": 0.0}
    with pytest.raises(BudgetError, match="reserved more than its budget"):
        Ledger.from_json(json.dumps(fields | {"entries": [entry]}))


# ---------------------------------------------------------------------------------------- releases


def made(**changes):
    grant = Ledger(1.0, 1e-6).reserve(0.5, 1e-6, "fit")
    grant.release(TopK(3, 0.05, 2), SCORES, 1)
    return grant.close(**{"adjacency": "add_remove", "domain": "Box(-1, 1)", **changes})


def test_a_release_carries_what_somebody_needs_to_recompute_it():
    release = made(settings={"generations": 3}, parameters={"w": np.array([0.5, 1.0])})
    assert (release.epsilon, release.delta, release.adjacency) == (0.5, 1e-6, "add_remove")
    assert release.events == (Event("selection", 0.05, 3),)
    assert release.seeded
    assert release.cost() == compose([Event("selection", 0.05, 3)], 1e-6)
    assert release.verify()
    fields = json.loads(release.to_json())
    assert fields["parameters"] == {"w": [0.5, 1.0]}
    again = Release.from_json(release.to_json())
    assert (again.events, again.epsilon, again.domain) == (release.events, 0.5, "Box(-1, 1)")
    assert again.verify()


def test_a_release_that_promises_too_little_is_found_out():
    release = made()
    forged = Release("fit", 0.01, 1e-6, "replace", release.events)
    with pytest.raises(
        BudgetError, match=r"promises epsilon 0\.01 but its events cost .*do not rely"
    ):
        forged.verify()


def test_private_entropy_is_not_marked_as_seeded():
    grant = Ledger(1.0).reserve(1.0)
    grant.release(Exponential(0.1, 1), SCORES)
    assert not grant.close().seeded


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Budget(-1.0), r"epsilon \(-1\.0\) must be a number of at least 0"),
        (
            lambda: Ledger(float("nan")),
            r"epsilon \(nan\) must be a number of at least 0; pass a budget",
        ),
        (lambda: Ledger(float("inf")), r"epsilon \(inf\) must be"),
        (lambda: Ledger("1"), r"epsilon \('1'\) must be"),
        (lambda: Ledger(1.0, 1.0), r"delta \(1\.0\) must lie in \[0, 1\); pass one such as 1e-6"),
        (lambda: Ledger(1.0, -1e-9), r"delta \(-1e-09\) must lie"),
        (lambda: Ledger(1.0, "0"), r"delta \('0'\) must lie"),
        (lambda: Ledger(1.0).reserve(0.0), r"epsilon \(0\) must be positive to reserve"),
        (
            lambda: Ledger(1.0).reserve(0.5).close("swap"),
            r"adjacency \('swap'\) must be 'replace' or",
        ),
    ],
)
def test_bad_budgets_have_one_clear_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_grants_come_from_ledgers():
    assert isinstance(Ledger(1.0).reserve(0.5), Grant)
    assert Ledger(1.0).reserve(0.5, name="n").name == "n"
    assert Ledger(1.0, 0.5).reserve(0.5, 0.25).budget == Budget(0.5, 0.25)
    ledger = Ledger(1.0)
    ledger.reserve(0.5).release(Counting(), 0)
    assert ledger.events == (Event("pure", 0.25),)


# ------------------------------------------------------------------------------------------- groups


def test_what_is_reserved_within_a_group_concerns_its_records_alone():
    ledger = Ledger(1.0)
    ledger.reserve(0.25)
    with ledger.group("train") as same:
        assert same is ledger
        ledger.reserve(0.5, name="fit")
        with ledger.group("train"):
            ledger.reserve(0.125)
        with ledger.scope("inner"):
            ledger.reserve(0.125)
    with ledger.group("test"):
        ledger.reserve(0.75)
        with pytest.raises(BudgetError, match="asks for epsilon"):
            ledger.reserve(0.1)
    assert [group for group, _, _ in ledger.entries] == ["", *["train"] * 3, "test"]
    assert ledger.spent.epsilon == 1.0
    with pytest.raises(BudgetError, match="asks for epsilon"):
        ledger.reserve(0.1)


def test_a_group_ends_with_an_error_and_is_this_threads_own():
    ledger = Ledger(1.0)
    with ledger.group("train"):
        other = threading.Thread(target=lambda: ledger.reserve(0.1, name="elsewhere"))
        other.start()
        other.join()
        with pytest.raises(BudgetError):
            ledger.reserve(2.0)
    with pytest.raises(KeyError), ledger.group("train"):
        {}["nothing"]
    ledger.reserve(0.1)
    assert [group for group, _, _ in ledger.entries] == ["", ""]


def test_groups_must_have_names_and_not_nest():
    ledger = Ledger(1.0)
    for name in ("", None, 3):
        with pytest.raises(ValueError, match=r"name \(.*\) must name a group of records"):
            ledger.group(name).__enter__()
    with (
        ledger.group("train"),
        pytest.raises(ValueError, match=r"group \('test'\) must not lie within group 'train'"),
    ):
        ledger.group("test").__enter__()


def test_a_ledger_keeps_the_releases_of_closed_grants():
    ledger = Ledger(1.0, 1e-6)
    first, second = ledger.reserve(0.3, name="first"), ledger.reserve(0.3, name="second")
    second.release(DiscreteLaplace(0.3, 1), [5], 1)
    assert ledger.releases == ()
    release = second.close("add_remove", parameters={"count": np.array([5])})
    assert ledger.releases == (release,)
    first.close()
    again = Ledger.from_json(ledger.to_json())
    assert [each.name for each in again.releases] == ["second", "first"]
    assert again.releases[0].events == release.events
    assert again.releases[0].parameters == {"count": [5]}
    assert pickle.loads(pickle.dumps(ledger)).releases[1] == ledger.releases[1]


@pytest.mark.parametrize("share", [0.75, 0.1, 0.9, 1 / 3])
@pytest.mark.parametrize("whole", [0.05, 0.1, 0.3, 1.0, 3.162])
def test_a_part_and_what_subtraction_leaves_make_up_the_whole(whole, share):
    """0.75 of 0.05 and the rest add up to 0.05 as doubles, and to a little more as decimals."""
    ledger = Ledger(whole)
    ledger.reserve(share * whole)
    ledger.reserve(whole - share * whole)
    assert not ledger._exceeded_by(ledger.entries)
    assert ledger.remaining.epsilon <= 1e-15
    assert ledger.spent.epsilon == pytest.approx(whole, rel=1e-15)
    with pytest.raises(BudgetError, match="the ledger has epsilon"):
        ledger.reserve(1e-9)


def test_a_difference_that_was_rounded_up_fits_too():
    """Off by exactly half a unit in the last place of the whole."""
    whole, part = 0.7052833998544062, 0.1944001701948989
    assert Fraction(part) + Fraction(whole - part) > Fraction(whole)
    ledger = Ledger(whole)
    ledger.reserve(part)
    ledger.reserve(whole - part)


def test_neither_decimals_nor_doubles_may_exceed_the_budget():
    ledger = Ledger(0.3)
    ledger.reserve(0.1)
    ledger.reserve(0.1)
    with pytest.raises(BudgetError, match=r"asks for epsilon 0\.10000000000000002"):
        ledger.reserve(0.10000000000000002)
    ledger.reserve(0.1)


def test_draws_of_a_grant_add_up_as_decimals():
    """Three times 0.1 is 0.3 within a grant, planned or not, and no more."""
    grant = Ledger(0.3).reserve(0.3)
    for _ in range(3):
        grant.release(DiscreteLaplace(0.1, 1), SCORES, 1)
    with pytest.raises(BudgetError, match=r"grant 'fit' has epsilon 0\.3"):
        grant.release(DiscreteLaplace(1e-12, 1), SCORES, 1)
    assert grant.close().verify()
    grant = Ledger(0.3).reserve(0.3)
    grant.plan(Event("pure", 0.1, 2), Event("selection", 0.1))
    with pytest.raises(BudgetError, match=r"grant 'fit' has epsilon 0\.3"):
        grant.plan(Event("pure", 1e-12))
    grant = Ledger(0.3).reserve(0.3)
    grant.filter("basic")
    for _ in range(3):
        grant.release(DiscreteLaplace(0.1, 1), SCORES, 1)
    with pytest.raises(BudgetError, match=r"grant 'fit' has epsilon 0\.3"):
        grant.release(DiscreteLaplace(1e-12, 1), SCORES, 1)
