"""Sizes chosen on the way: covered by the plan, by a plain sum or by a filter, or refused.

A strategy is a function from the outcomes so far to the next draw. `worst` walks all its outcomes
through real grants, and adds up the exact delta of what the grants let it draw. Draws are the worst
of their kind: randomised response for a pure release, a coin of bounded range for a selection, and
a Gaussian, which ends a branch, in closed form. There is nothing random in here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr, ndtri

from privfit import (
    BudgetError,
    DiscreteGaussian,
    Event,
    FrankWolfe,
    Gradient,
    Gupt,
    Hybrid,
    KMeans,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    Release,
    Schema,
    compose,
)
from privfit.estimators import linear
from privfit.privacy import filters, grants
from privfit.privacy.accounting import gaussian_calibrate
from privfit.privacy.filters import FILTERS, _gdp_size, filtered
from privfit.privacy.grants import Grant
from privfit.privacy.mechanisms import Mechanism

EPSILON, DELTA = 2.0, 0.01
Strategy = Callable[[str], Event | None]


class Draw(Mechanism):
    """A draw of this event; what it gives is decided by the walk."""

    def __init__(self, event: Event) -> None:
        self._event = event

    @property
    def event(self) -> Event:
        return self._event

    def __call__(self, value: Any, rng: Any = None) -> None:
        return None


def grant_of(by: str = "") -> Grant:
    grant = Ledger(EPSILON, DELTA).reserve(EPSILON, DELTA)
    if by:
        grant.filter(by)
    return grant


def coin(event: Event) -> tuple[float, float]:
    """The chances of heads of the worst pair of neighbours."""
    if event.kind == "pure":
        return float(expit(event.parameter)), float(expit(-event.parameter))
    tilt = event.parameter / 2  # bounded range: the losses are tilt and tilt - eps_s
    q = -math.expm1(tilt - event.parameter) / (math.exp(tilt) - math.exp(tilt - event.parameter))
    return q * math.exp(tilt), q


def gaussian_delta(epsilon: float, mu: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def accepted(strategy: Strategy, outcomes: str, grant: Grant) -> Event | None:
    """The next draw after these outcomes, if the grant lets it be made."""
    for i in range(len(outcomes)):
        grant.release(Draw(strategy(outcomes[:i])), None)
    event = strategy(outcomes)
    try:
        if event is not None:
            grant.release(Draw(event), None)
    except BudgetError:
        return None
    return event


def worst(strategy: Strategy, by: str = "", outcomes: str = "", p: float = 1.0, q: float = 1.0):
    """The delta at EPSILON of all that the strategy is let draw."""
    event = accepted(strategy, outcomes, grant_of(by))
    if event is None:
        return max(0.0, p - math.exp(EPSILON) * q)
    if event.kind == "gaussian":
        return p * gaussian_delta(EPSILON - math.log(p / q), event.parameter)
    heads_p, heads_q = coin(event)
    return worst(strategy, by, outcomes + "h", p * heads_p, q * heads_q) + worst(
        strategy, by, outcomes + "t", p * (1 - heads_p), q * (1 - heads_q)
    )


def largest(kind: str, first: Event, cost: Callable[[list[Event]], float]) -> Event:
    """The largest release of a kind that fits beside the first one."""
    low, high = 0.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if cost([first, Event(kind, middle)]) <= EPSILON else (
            low, middle)  # fmt: skip
    return Event(kind, low)


def two_steps(cost: Callable[[list[Event]], float]) -> Strategy:
    """After heads all that is left in one pure release; after tails in one Gaussian release."""
    first = Event("pure", 0.05)
    heads, tails = (largest(kind, first, cost) for kind in ("pure", "gaussian"))
    return lambda outcomes: {"": first, "h": heads, "t": tails}.get(outcomes)


def careless(self: Grant, events: Any) -> None:
    """The fault: what is chosen after a draw is composed as if it had been fixed before."""
    wanted = [*self.events, *events]
    if compose(wanted, self.budget.delta) > self.budget.epsilon:
        raise BudgetError


TIGHT = two_steps(lambda events: compose(events, DELTA))


# -------------------------------------------------------------------------------------------- plans


def test_the_strategy_of_two_steps_would_exceed_delta_and_is_refused(monkeypatch):
    first, heads, tails = TIGHT(""), TIGHT("h"), TIGHT("t")
    for second in (heads, tails):
        assert compose([first, second], DELTA) <= EPSILON  # each by itself is a plan that fits
        grant = grant_of()
        grant.release(Draw(first), None)
        message = (
            "has drawn already, and 1 .* was not planned: sizes chosen after a draw are not "
            r"covered .*; plan all draws before the first, or choose a filter before it"
        )
        for call in (lambda e: grant.plan(e), lambda e: grant.release(Draw(e), None)):  # noqa: B023
            if second is tails:
                with pytest.raises(BudgetError, match=message):
                    call(second)
        assert grant.events == (first,)
    assert worst(TIGHT) <= DELTA
    with monkeypatch.context() as patched:
        patched.setattr(Grant, "_check_covered", careless)
        assert worst(TIGHT) > 1.3 * DELTA  # the walk finds the fault


def test_what_was_planned_before_the_first_draw_can_be_drawn_in_any_order():
    grant = grant_of()
    grant.plan(Event("pure", 0.05, 2), Event("gaussian", 0.3))
    grant.plan(Event("selection", 0.05))
    for event in (Event("gaussian", 0.3), Event("pure", 0.05), Event("selection", 0.05)):
        grant.release(Draw(event), None)
    grant.plan(Event("pure", 0.05))  # it is there already
    grant.release(Draw(Event("pure", 0.05)), None)
    with pytest.raises(BudgetError, match="was not planned"):
        grant.plan(Event("pure", 0.05))
    assert grant.close().verify()


def test_gaussian_draws_may_share_out_what_was_planned_of_them():
    grant = grant_of()
    grant.plan(Event("pure", 0.5), Event("gaussian", 0.5))
    grant.release(Draw(Event("pure", 0.5)), None)
    grant.release(Draw(Event("gaussian", 0.3)), None)
    grant.plan(Event("gaussian", 0.2, 3))
    with pytest.raises(BudgetError, match=r"2 gaussian release\(s\) of size 0\.3 was not planned"):
        grant.plan(Event("gaussian", 0.3, 2))
    grant.release(Draw(Event("gaussian", 0.399)), None)
    with pytest.raises(BudgetError, match="was not planned"):
        grant.release(Draw(Event("gaussian", 0.05)), None)


def test_sharing_out_a_gaussian_release_on_the_way_costs_nothing():
    """After half of mu^2 the rest, a part of it, or nothing, by what was seen: exact integrals."""
    mu = gaussian_calibrate(EPSILON, DELTA)
    half = mu / math.sqrt(2)

    def delta_of(rest: Callable[[float], float]) -> float:
        def at(z: float) -> float:
            loss = half * z + half * half / 2  # z standard normal under the first neighbour
            left, part = EPSILON - loss, rest(loss)
            tail = gaussian_delta(left, part) if part else max(0.0, -math.expm1(left))
            return tail * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        return quad(at, -8, 8, limit=500, points=[(0.5 - half * half / 2) / half])[0]

    assert delta_of(lambda loss: half) == pytest.approx(DELTA, rel=1e-4)
    for rest in (lambda loss: half if loss > 0.5 else 0.0, lambda loss: half if loss < 0.5 else 0.0,
                 lambda loss: half / (1 + abs(loss))):  # fmt: skip
        assert delta_of(rest) <= DELTA * (1 + 1e-9)
    assert delta_of(lambda loss: half if loss < 0.5 else 2 * half) > 1.1 * DELTA  # a fault is seen


def test_epsilons_that_add_up_need_no_plan():
    """Also after a plan: a transcript whose loss never exceeds epsilon adds nothing to delta."""
    grant = grant_of()
    for size in (0.5, 0.7, 0.75):
        grant.release(Draw(Event("pure", size)), None)
    with pytest.raises(BudgetError, match=r"was not planned|costs epsilon"):
        grant.release(Draw(Event("pure", 0.1)), None)
    n = 40
    small = Event("selection", 0.12)
    assert n * 0.12 > EPSILON >= compose([Event("selection", 0.12, n)], DELTA)

    def leaves_its_plan(outcomes: str) -> Event | None:
        return Event("pure", 1.8) if outcomes.endswith("t") else small

    grant = grant_of()
    grant.plan(Event("selection", 0.12, n))
    grant.release(Draw(small), None)
    grant.release(Draw(Event("pure", 1.8)), None)
    with pytest.raises(BudgetError, match=r"costs epsilon|was not planned"):
        grant.release(Draw(small), None)
    assert worst(leaves_its_plan) <= DELTA


@pytest.mark.parametrize("kind", ["gaussian", "approximate"])
def test_a_plain_sum_does_not_cover_what_has_no_epsilon_of_its_own(kind):
    event = Event(kind, 0.1, delta=1e-4 if kind == "approximate" else 0.0)
    grant = grant_of()
    grant.release(Draw(event), None)
    with pytest.raises(BudgetError, match="was not planned"):
        grant.release(Draw(event), None)


# ------------------------------------------------------------------------------------------ filters


def sprees(by: str) -> list[Strategy]:
    """Strategies of up to seven draws: as large as six would fit, or more by what was seen."""

    def spree(kind: str, ahead: float, behind: float) -> Strategy:
        whole = largest(kind, Event(kind, 0.0), lambda e: filtered([*e] * 6, DELTA, by)).parameter
        sizes = ahead * whole, behind * whole
        return lambda outcomes: None if len(outcomes) > 6 else Event(
            kind, sizes[outcomes.count("h") * 2 < len(outcomes)])  # fmt: skip

    return [spree("pure", 1, 1), spree("pure", 1.5, 0.5), spree("selection", 0.7, 1.5)]


@pytest.mark.slow
@pytest.mark.parametrize("by", FILTERS)
def test_no_strategy_exceeds_delta_under_a_filter(by, monkeypatch):
    strategies = sprees(by)
    if by != "basic":
        strategies.append(two_steps(lambda events: filtered(events, DELTA, by)))
    exact = [worst(strategy, by) for strategy in strategies]
    assert max(exact) <= DELTA
    if by != "basic":
        assert max(exact) > 0.1 * DELTA  # the walk sees something
    with monkeypatch.context() as patched:
        patched.setattr(Grant, "_check_covered", careless)
        assert worst(TIGHT, by) > 1.3 * DELTA


@pytest.mark.few(1)
@pytest.mark.parametrize("by", ["gdp", "zcdp"])
def test_a_filter_that_counts_half_of_a_release_is_found(by, monkeypatch):
    kind = f"_{by}_size"
    whole = getattr(filters, kind)
    with monkeypatch.context() as patched:
        patched.setattr(filters, kind, lambda event: whole(event) / 2)
        assert max(worst(strategy, by) for strategy in sprees(by)) > 1.5 * DELTA


@pytest.mark.parametrize("by", FILTERS)
def test_a_filter_adds_up_and_refuses_what_exceeds_it(by):
    grant = grant_of(by)
    event = Event("pure" if by == "basic" else "gaussian", 0.25)
    drawn = event
    while filtered([replace(drawn, count=drawn.count + 1)], DELTA, by) <= EPSILON:
        drawn = replace(drawn, count=drawn.count + 1)
    for _ in range(drawn.count):
        grant.release(Draw(event), None)
    with pytest.raises(BudgetError, match=r"has epsilon 2, delta 0\.01, but what is planned with"):
        grant.release(Draw(event), None)
    assert grant.events == (drawn,)
    assert filtered([drawn], DELTA, by) == grant.spent <= EPSILON
    release = grant.close("add_remove")
    assert release.filter == by
    assert release.verify()
    again = Release.from_json(release.to_json())
    assert (again, again.cost()) == (release, grant.spent)
    assert "filter" not in grant_of().close().to_json()  # as the first version wrote it


def test_the_better_filter_depends_on_what_is_drawn():
    selections = [Event("selection", 0.05, 100)]
    sums = [Event("gaussian", 0.05, 100)]
    assert filtered(selections, 1e-5, "zcdp") < filtered(selections, 1e-5, "gdp")
    assert filtered(sums, 1e-5, "gdp") < filtered(sums, 1e-5, "zcdp")
    assert filtered(sums, 1e-5, "gdp") == pytest.approx(compose(sums, 1e-5), rel=1e-6)


@pytest.mark.parametrize("eps_s", [1e-6, 0.01, 0.3, 0.999, 1.001, 3.0, 20.0])
def test_a_selection_is_as_gaussian_as_half_its_epsilon(eps_s):
    """Over all tilts of the range: the corner (q, 1 - p) lies on a Gaussian curve of that mu."""
    tilt = np.linspace(0, eps_s, 20_001)[1:-1]
    q = -np.expm1(tilt - eps_s) / (np.exp(tilt) * -np.expm1(-eps_s))
    p_tails = np.exp(tilt - eps_s) * (1 - q)  # 1 - p, without cancellation
    needed = -ndtri(p_tails) - ndtri(q)
    mu = _gdp_size(Event("selection", eps_s))
    assert needed.max() <= mu * (1 + 1e-9 + 1e-15 / eps_s)
    assert needed.max() == pytest.approx(mu, rel=1e-6 + 1e-14 / eps_s)
    assert mu <= 0.627 * eps_s
    assert mu == pytest.approx(_gdp_size(Event("pure", eps_s / 2)))


def test_releases_beyond_any_use_cost_everything():
    for by in ("gdp", "zcdp"):
        assert filtered([Event("pure", 1e7)], 1e-6, by) == math.inf
        assert filtered([], 1e-6, by) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grant_of("rdp"), r"filter \('rdp'\) must be known; pass one of \('basic', 'gdp'"),
        (
            lambda: Ledger(1.0).reserve(1.0).filter("gdp"),
            r"filter \('gdp'\) needs delta > 0; pass 'basic', or reserve a delta",
        ),
        (
            lambda: grant_of("basic").release(Draw(Event("gaussian", 0.1)), None),
            r"filter \('basic'\) does not cover gaussian releases; pass 'gdp' or 'zcdp'",
        ),
        (
            lambda: grant_of("zcdp").plan(Event("approximate", 0.1, delta=1e-6)),
            r"filter \('zcdp'\) does not cover approximate releases; pass 'basic'",
        ),
    ],
)
def test_a_filter_that_does_not_apply_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_plan_or_filter_is_decided_before_the_first_draw():
    grant = grant_of()
    grant.release(DiscreteGaussian(0.1, 1), [5], 0)
    message = "has drawn already, and plan or filter is decided before the first draw; reserve anot"
    with pytest.raises(BudgetError, match=message):
        grant.filter("gdp")
    grant.close()
    with pytest.raises(BudgetError, match="is closed: its release was made"):
        grant.filter("gdp")


# ------------------------------------------------------------------------------------------ solvers

X = np.random.default_rng(0).uniform(-1, 1, (600, 3))
MANY = (2 * (X[:, 0] > 0.3) + (X[:, 1] > 0)).clip(0, 2)
SET = {
    "gradient": Gradient(steps=3), "gupt": Gupt(blocks=20), "frank_wolfe": FrankWolfe(steps=4),
    "objective": ObjectivePerturbation(look=0.1),
}  # fmt: skip
CASES = [(name, delta) for name in linear.METHODS if name != "additive" for delta in (0.0, 1e-6)]
CASES.remove(("select_refine", 0.0))  # it adds Gaussian noise
CUT = Schema({f"x{j}": Numeric(-1, 1) for j in range(3)})


@pytest.fixture
def nothing_unplanned(monkeypatch):
    """No plain sum helps out: all is planned before the first draw."""
    monkeypatch.setattr(grants, "in_plain_sum", lambda counts, epsilon: False)


@pytest.mark.few(2)
@pytest.mark.usefixtures("nothing_unplanned")
@pytest.mark.parametrize(("solver", "delta"), CASES)
def test_every_solver_plans_all_classes_before_its_first_draw(solver, delta):
    kind = LinearSVC if solver == "privatesvm" else LogisticRegression
    domain = CUT if solver == "evidence" else (-1, 1)
    declared = {"domain": domain, "classes": [0, 1, 2], "solver": SET.get(solver, solver)}
    model = kind(4.0, delta, **declared).fit(X, MANY)
    assert model.release_.verify()


@pytest.mark.few(1)
@pytest.mark.usefixtures("nothing_unplanned")
@pytest.mark.parametrize("public", [{}, {"adjacency": "add_remove"}], ids=["n", "no n"])
def test_the_steps_of_the_hybrid_are_planned_though_their_number_is_not(public):
    model = KMeans(2, 4.0, 1e-6, domain=(-1, 1), solver=Hybrid(), **public).fit(X)
    assert {event.kind for event in model.release_.events} == {"pure", "gaussian"}
    assert model.release_.verify()
