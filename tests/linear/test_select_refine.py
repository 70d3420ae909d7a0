"""The hybrid of selections and descent, and the rule of `auto`: costs, sensitivities, refusals.

White box: what is summed over chosen columns, by enumeration of all records of small grids and all
pairs of neighbours; each selection's log ratios over all neighbours. Black box: whole fits on two
neighbours at confidence 1 - 1e-6, so a right fit raises a false alarm at most once in 1e6 runs on
fresh seeds; seeds are fixed.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from makers.cases import ADJACENCIES, DOMAINS, case
from makers.descents import (
    COUNTING,
    SMALL,
    WIDE,
    assert_nothing_is_charged,
    every_record,
    fitted,
    largest_changes,
)
from makers.raises import assert_reached, messages_of

from privfit import (
    Box,
    Budget,
    Categorical,
    Gradient,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    Numeric,
    ObjectivePerturbation,
    Reals,
    Schema,
    SelectRefine,
)
from privfit.audit import audit_runs
from privfit.linear import auto, descent, select_refine
from privfit.objectives.clipping import ClippedGradient, SecondMoments
from privfit.objectives.coding import Broad
from privfit.objectives.linear_moves import LinearSlopes
from privfit.privacy.accounting import Event, compose, gaussian_calibrate
from privfit.privacy.neighbours import REPLACE, Neighbours
from privfit.runs.run import Run, Task

SURE = 1 - 1e-6


def few(T: int = 6, steps: int = 4, **more: Any) -> SelectRefine:
    """Settings of so many selections and steps."""
    return SelectRefine(
        select=Local(generations=T), refine=Gradient(steps=steps, whiten=True), **more
    )


def fit(
    objective: Any,
    settings: SelectRefine,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    rng: Any = 1,
    callback: Any = None,
    adjacency: str = "replace",
    **public: Any,
) -> Any:
    """A whole fit: the path and the grant."""
    grant = Ledger(epsilon, delta).reserve(epsilon, delta)
    space = Reals(-descent.BOUND, descent.BOUND, objective.domain.width + 1)
    run = Run(objective, space, grant, rng, callback, neighbours=Neighbours(adjacency), **public)
    return settings(run), grant


# ---------------------------------------------------------------------------------- the wide coding


@pytest.mark.parametrize("name", DOMAINS)
def test_broad_columns_span_what_is_promised_and_positions_undo_weights(name, rng):
    domain = case(name).domain
    coding = Broad(domain)
    reach = coding.reach[:-1] * coding.unit
    hot = np.zeros(domain.width, dtype=bool)
    for group in domain.groups if isinstance(domain, Schema) else []:
        hot[group] = True
    assert (reach[hot] == 0.5).all()
    widths = (domain.high - domain.low)[~hot]
    assert (reach[~hot] <= 1).all()
    assert (reach[~hot][widths > 0] > 0.5).all()
    u = rng.normal(size=(3, coding.width))
    assert coding.positions(coding.weights(u)) == pytest.approx(u, abs=2.0**-6)


CHOSEN = {"box": [[0], [1], []], "far box": [[0]], "l1": [[1]], "l2": [[0]],
          "schema": [[0], [2], [1, 2], [0, 2, 4], [3, 4, 5], []]}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("name", "columns"), [(n, c) for n, all_ in CHOSEN.items() for c in all_])
def test_no_record_moves_moments_of_chosen_columns_further_than_stated(name, columns, adjacency):
    domain, rows = SMALL[name], every_record(SMALL[name])

    def triangle(*numbers: int) -> Any:
        objective = LinearObjective(rows[list(numbers)], [1] * len(numbers), domain=domain)
        moments = SecondMoments(objective, Broad(domain), np.array(columns, dtype=np.int64))
        return moments.triangle(), moments.sensitivity(Neighbours(adjacency))

    others, bound = triangle(0)
    assert len(others) == (len(columns) + 1) * (len(columns) + 2) // 2
    found = largest_changes([triangle(0, i)[0] for i in range(len(rows))], others, 2)[adjacency]
    assert found <= bound
    if columns:
        assert found >= 0.5 * bound


@pytest.mark.few(2)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", SMALL)
def test_no_record_moves_a_gradient_of_chosen_columns_further_than_stated(name, loss, rng):
    domain, rows = SMALL[name], every_record(SMALL[name])
    coding = Broad(domain)
    kept = [0, coding.width - 1]
    basis = np.zeros((2, coding.width))
    basis[:, kept] = rng.normal(size=(2, 2))
    w = coding.weights(rng.normal(size=coding.width))

    def sums(numbers: Any, y: Any) -> Any:
        objective = LinearObjective(rows[numbers], y, loss, domain)
        clipped = ClippedGradient(objective, coding, basis, 0.3)
        return clipped.sums(w), clipped

    others, clipped = sums([0], [1])
    moved = [sums([0, i], [1, y])[0] for i in range(len(rows)) for y in (0, 1)]
    for adjacency, found in largest_changes(moved, others, 2).items():
        bound = clipped.sensitivity(Neighbours(adjacency))
        assert 0.3 * bound < found <= bound


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", SMALL)
def test_log_ratios_of_a_selection_span_at_most_its_epsilon(name, loss, adjacency, rng):
    """Over all neighbours: the exponential mechanism's own log probabilities."""
    domain, rows = SMALL[name], every_record(SMALL[name])
    box = Reals(-select_refine.WALK, select_refine.WALK, domain.width + 1)
    position = rng.normal(size=domain.width + 1)
    eps_s = 0.7

    def log_probabilities(numbers: Any, y: Any) -> Any:
        objective = LinearObjective(rows[numbers], y, loss, domain)
        view = objective.slopes(position, 0.5)
        moves = box.all_moves(view.w, 0.03)
        scores = view.scores(*moves) * (eps_s / view.range(*moves, adjacency))
        return scores - np.logaddexp.reduce(scores)

    one = [log_probabilities([0, i], [1, y]) for i in range(len(rows)) for y in (0, 1)]
    other = one if adjacency == "replace" else [log_probabilities([0], [1])]
    spans = [np.ptp(a - b) for a in one for b in other]
    assert 0.4 * eps_s < max(spans) <= eps_s * (1 + 1e-12)


# -------------------------------------------------------------------------------------------- costs


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_a_gaussian_release_beside_others_fills_the_budget_and_no_more(epsilon, delta):
    mu = gaussian_calibrate(epsilon, delta)
    beside = [Event("selection", 2 * mu * math.sqrt(0.3 / 20), 20), Event("pure", epsilon / 9)]
    left = gaussian_calibrate(epsilon, delta, beside)
    assert 0.99 * epsilon < compose([*beside, Event("gaussian", left)], delta) <= epsilon
    assert compose([*beside, Event("gaussian", left * (1 + 2.0**-12))], delta) > epsilon
    assert gaussian_calibrate(epsilon, delta, [Event("pure", 2 * epsilon)]) == 0.0
    assert gaussian_calibrate(epsilon, delta, [Event("approximate", 0.0, 1, delta)]) == 0.0
    assert gaussian_calibrate(epsilon, delta, []) == mu


@pytest.mark.few(2)
@pytest.mark.parametrize("share", [1, 3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_what_is_drawn_is_what_was_planned_and_fills_the_budget(epsilon, adjacency, share, rng):
    """Each of `share` fits on one grant draws the same, and together they fill it."""
    X = rng.uniform(-1, 1, (400, 3))
    objective = LinearObjective(X, X[:, 0] > 0, "logistic", Box(-1, 1, 3))
    grant = Ledger(epsilon, 1e-6).reserve(epsilon, 1e-6)
    space, heard = Reals(-50, 50, 4), []
    for model in range(share):
        few()(
            Run(
                objective, space, grant, model, heard.append,
                neighbours=Neighbours(adjacency), n_public=400, share=share,
            )
        )  # fmt: skip
        assert sum(grant._planned.values()) == share * (6 + 1 + 4)  # before the first draw of all
    assert grant._planned == grant._drawn
    assert {event.kind: event.count for event in grant.events if event.kind == "selection"} == {
        "selection": 6 * share
    }
    assert sum(event.count for event in grant.events) == share * (6 + 1 + 4)
    assert 0.99 * epsilon < grant.spent <= epsilon
    assert [g.index for g in heard] == share * list(range(1, 11))
    assert {g.total for g in heard} == {10}


def test_a_share_of_the_squared_parameter_buys_the_selections(rng):
    X = rng.uniform(-1, 1, (400, 3))
    objective = LinearObjective(X, X[:, 0] > 0, "logistic", Box(-1, 1, 3))
    mu = gaussian_calibrate(1.0, 1e-6)
    for share in (0.2, 0.8):
        _, grant = fit(objective, few(T=50, share=share))
        chosen, *noisy = sorted(grant.events, key=lambda event: event.kind != "selection")
        assert chosen.count * (chosen.parameter / 2) ** 2 == pytest.approx(share * mu**2)
        left = sum(event.count * event.parameter**2 for event in noisy)
        assert left == pytest.approx((1 - share) * mu**2, rel=0.02)


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_number_of_selections_is_a_rule_in_n_and_mu(adjacency, rng):
    X = rng.uniform(-1, 1, (300, 3))
    objective = LinearObjective(X, X[:, 0] > 0, "logistic", Box(-1, 1, 3))
    n_mu = 5000 * gaussian_calibrate(0.5, 1e-6) * (2 if adjacency == "add_remove" else 1)
    _, grant = fit(objective, SelectRefine(), 0.5, adjacency=adjacency, n_public=5000)
    (count,) = (event.count for event in grant.events if event.kind == "selection")
    assert count == round(1.5 * math.sqrt(n_mu))
    _, grant = fit(objective, SelectRefine(), 0.01, adjacency=adjacency, n_public=50)
    assert {event.count for event in grant.events if event.kind == "selection"} == {8}


# ----------------------------------------------------------------------------------------- learning


def sparse_truth(rng: Any, n: int = 2000, width: int = 100, loss: str = "logistic") -> Any:
    """The first three of many columns decide; the best accuracy is about 0.91."""
    X = rng.integers(0, 2, (n, width)) * 2.0 - 1
    y = X[:, :3].sum(axis=1) + rng.logistic(size=n) / 2 > 0
    return LinearObjective(X, y, loss, Box(-1, 1, width)), X, y


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_few_columns_of_many_are_found_where_a_gradient_drowns(loss, rng):
    """Three seeds each, at a signal of 0.55: the hybrid leads by far."""
    objective, X, y = sparse_truth(rng, loss=loss)
    space = Reals(-descent.BOUND, descent.BOUND, 101)

    def accuracy(settings: Any, seed: int) -> float:
        grant = Ledger(0.1, 1e-6).reserve(0.1, 1e-6)
        w = settings(Run(objective, space, grant, seed)).answer
        return float(np.mean((X @ w[:-1] + w[-1] > 0) == y))

    ours = np.mean([accuracy(SelectRefine(), seed) for seed in range(3)])
    dense = np.mean([accuracy(Gradient(), seed) for seed in range(3)])
    assert ours > dense + 0.05


def test_columns_that_no_move_touched_stay_at_zero(rng):
    objective, _, _ = sparse_truth(rng)
    path, _ = fit(objective, few(T=6), 0.5)
    walk, rest = path.generations[:6], path.generations[6:]
    touched = np.any([w[0, :-1] != 0 for w in walk], axis=0)
    assert 1 <= touched.sum() <= 6
    assert all((w[0, :-1][~touched] == 0).all() for w in rest)
    assert np.any([w[0, :-1][touched] != walk[-1][0, :-1][touched] for w in rest])
    on_grid = np.concatenate(path.generations) / objective.candidate_units
    assert (on_grid == np.rint(on_grid)).all()


def test_the_answer_is_the_mean_of_the_last_steps(rng):
    objective, _, _ = sparse_truth(rng)
    refine = Gradient(steps=8, whiten=True, average=0.5)
    path, _ = fit(objective, SelectRefine(select=Local(generations=9), refine=refine))
    assert np.array_equal(path.answer, np.concatenate(path.generations[-4:]).mean(axis=0))


def test_a_fit_needs_no_public_size_if_the_walk_is_given(rng):
    """Its size comes from the noisy second moments then."""
    objective, X, y = sparse_truth(rng)
    path, grant = fit(objective, few(T=12, steps=8), 10.0, adjacency="add_remove")
    assert grant.spent <= 10.0
    assert np.mean((X @ path.answer[:-1] + path.answer[-1] > 0) == y) > 0.8


# ---------------------------------------------------------------------------------------- black box

CANARY = Box(-1, 1, 1)


def audit(adjacency: str, runs: int) -> Any:
    one, other = [[1.0]], [[-1.0]]
    pair = (
        [(one, [1]), (other, [1])] if adjacency == "replace" else [(one + one, [1, 1]), (one, [1])]
    )
    objectives = [LinearObjective(X, y, "logistic", CANARY) for X, y in pair]

    def whole(objective: Any, rng: Any) -> float:
        path, _ = fit(objective, few(T=2, steps=2), 1.0, 1e-3, rng, adjacency=adjacency, n_public=1)
        return float(sum(w[:-1].sum() for (w,) in path.generations))

    return audit_runs(whole, *objectives, runs=runs, confidence=SURE, delta=1e-3, rng=7)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_whole_fits_stay_within_epsilon(adjacency):
    report = audit(adjacency, runs=300)
    assert report.passes(1.0), report


@pytest.mark.slow
@pytest.mark.statistical
def test_the_black_box_sees_a_range_and_sensitivities_that_are_too_small(monkeypatch):
    """A twentieth of them."""
    for kind, method in [(ClippedGradient, "sensitivity"), (LinearSlopes, "range")]:
        right = getattr(kind, method)
        small = lambda self, *a, right=right: max(1, right(self, *a) // 20)  # noqa: E731
        monkeypatch.setattr(kind, method, small)
    report = audit("replace", runs=500)
    assert not report.passes(1.0), report


# --------------------------------------------------------------------------------------------- auto

FACTS = [  # records, columns, epsilon, delta, adjacency, models -> what
    ((6499, 126, 0.1, 1e-6, "replace", 1), SelectRefine),
    ((6499, 126, 0.1, 1e-6, "add_remove", 1), SelectRefine),
    ((6499, 126, 0.2, 1e-6, "add_remove", 1), Gradient),
    ((6499, 126, 0.3, 1e-6, "replace", 1), Gradient),
    ((6499, 126, 0.3, 1e-6, "replace", 20), SelectRefine),
    ((39073, 108, 0.05, 1e-6, "replace", 1), Gradient),
    ((39073, 108, 0.05, 0.0, "replace", 1), Local),
    ((39073, 108, 0.06, 0.0, "replace", 1), ObjectivePerturbation),
    ((10**6, 1025, 1.0, 1e-6, "replace", 1), SelectRefine),
    ((1000, 4096, 0.1, 1e-6, "replace", 1), Local),
]


@pytest.mark.parametrize(("facts", "kind"), FACTS)
def test_auto_follows_its_table(facts, kind):
    size, columns, epsilon, delta, adjacency, models = facts
    chosen = auto.choose(
        size, Box(-1, 1, columns), Budget(epsilon, delta), Neighbours(adjacency), models
    )
    assert chosen == kind()


def test_auto_turns_where_the_signal_is_three():
    budget, domain = Budget(0.5, 1e-6), Box(-1, 1, 50)
    turn = 3 * 50 / gaussian_calibrate(0.5, 1e-6)
    assert auto.choose(math.floor(turn), domain, budget, REPLACE, 1) == SelectRefine()
    assert auto.choose(math.ceil(turn), domain, budget, REPLACE, 1) == Gradient()


SCHEMA = Schema({"age": Numeric(0, 100), "job": Categorical(["a", "b", "c"], other=True)})


def table_of(rng: Any, constant: bool, n: int = 300) -> Any:
    if constant:
        return {"age": np.full(n, 50.0), "job": np.full(n, "b")}, np.arange(n) % 3 == 0
    ages = rng.uniform(0, 100, n)
    return {"age": ages, "job": rng.choice(["a", "b", "?"], n)}, ages > 30


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.05, 3.0])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_auto_takes_the_same_settings_whatever_the_records(kind, epsilon, adjacency, rng):
    """Records and labels differ in every way; public facts do not, nor does what is released."""
    kept = []
    for constant in (False, True):
        X, y = table_of(rng, constant)
        model = kind(epsilon, 1e-6, domain=SCHEMA, classes=[False, True], adjacency=adjacency,
                     coding="declared", calibrate=False, n_public=300,
                     random_state=1).fit(X, y)  # fmt: skip
        kept.append((model.release_.settings, model.release_.events))
    assert kept[0] == kept[1]
    assert kept[0][0]["solver"] == ("select_refine" if epsilon < 1 else "gradient")


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_auto_is_the_chosen_solver_with_its_defaults(kind, rng):
    X, y = table_of(rng, constant=False)
    for epsilon, solver in [(0.05, "select_refine"), (3.0, Gradient())]:
        options = {"domain": SCHEMA, "classes": [False, True], "coding": "declared",
                   "random_state": 3}  # fmt: skip
        by_rule = kind(epsilon, 1e-6, **options).fit(X, y)
        by_name = kind(epsilon, 1e-6, solver=solver, **options).fit(X, y)
        assert by_rule.release_.to_json() == by_name.release_.to_json()


def test_several_classes_share_the_budget_of_a_hybrid(rng):
    X = rng.uniform(-1, 1, (3000, 3))
    y = X.argmax(axis=1)
    model = LogisticRegression(8.0, 1e-6, domain=(-1, 1), classes=[0, 1, 2], solver=few(),
                               calibrate=False, random_state=1).fit(X, y)  # fmt: skip
    assert model.release_.verify()
    assert model.release_.cost() > 0.99 * 8.0
    assert sum(event.count for event in model.release_.events) == 3 * (6 + 1 + 4)
    assert model.score(X, y) > 0.75


# ----------------------------------------------------------------------------------------- refusals


def checked(objective: Any) -> None:
    SelectRefine().check(Task(objective, None, 1.0, 1e-6, REPLACE, 4))


SETTINGS = [
    *((partial(SelectRefine, share=value), r"share \(.*\) must lie between 0 and 1; leave it out")
      for value in (0, 1, -0.5, math.nan, "x")),
    (partial(SelectRefine, select=Gradient()), r"select \(Gradient\) must be settings of this"),
    (partial(SelectRefine, refine="gradient"), r"refine \(str\) must be .*; pass Gradient\(...\)"),
    (partial(SelectRefine, select=Local(paper=True)), r"select must score moves by the gradient"),
    *((partial(SelectRefine, refine=refine), r"refine must be whitened; pass Gradient\(whiten=True")
      for refine in (Gradient(), Gradient(whiten=False))),
]  # fmt: skip
REFUSED = [
    (partial(checked, COUNTING), r"solver 'select_refine' needs a linear model with a slope"),
    (partial(checked, WIDE), r"solver 'select_refine' takes fewer than 4096 columns; pass"),
    (partial(fitted, "select_refine", delta=0.0), r"and so needs delta > 0; pass delta=1e-6"),
    (partial(fitted, "select_refine", adjacency="add_remove"), r"a public estimate, or SelectRefi"),
    (partial(fitted, SelectRefine(select=Local(generations=4)), adjacency="add_remove",
             fit_intercept=False), r"if no intercept is fitted, whose moments would reveal the"),
    (partial(fitted, "select_refine", epsilon=1e-12, delta=1e-9), r"epsilon \(1e-12\) is too sma"),
    (partial(fitted, "auto", adjacency="add_remove"), r"solver='auto' depends on it; pass a"),
    (partial(fitted, "auto", epsilon=math.inf), r"epsilon \(inf\) is for the plain genetic"),
    (partial(fitted, "auto", epsilon=0.0), r"epsilon \(0.0\) must be"),
    (partial(fitted, "auto", epsilon=-1.0), r"epsilon \(-1.0\) must be a number of at least 0"),
    (partial(fitted, "auto", adjacency="both"), r"adjacency \('both'\) must be 'replace'"),
]  # fmt: skip


@pytest.mark.few(11)
@pytest.mark.parametrize(("call", "message"), SETTINGS + REFUSED)
def test_wrong_settings_are_refused_with_the_remedy(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_refusals_come_before_the_charge():
    assert_nothing_is_charged(REFUSED)


def test_every_refusal_is_tested():
    seen = "\n".join(messages_of(call) for call, _ in SETTINGS + REFUSED)
    assert_reached([File(select_refine.__file__), File(auto.__file__)], seen)


def test_a_rich_budget_is_no_obstacle(rng):
    """Selections so large that the accountant takes them as pure."""
    objective, X, y = sparse_truth(rng, n=300, width=5)
    path, grant = fit(objective, few(), 1000.0)
    assert grant.spent <= 1000.0
    assert np.mean((X @ path.answer[:-1] + path.answer[-1] > 0) == y) > 0.8
