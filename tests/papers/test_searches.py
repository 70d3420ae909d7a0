"""What `paper=True` is for PrivGene, EEM, PrivLocal and the simple genetic algorithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from makers.published import Checks, calls, drawn, listed, sizes

from privfit import (
    DPSGA,
    EEM,
    Box,
    CentersObjective,
    FacilityObjective,
    Ledger,
    LinearObjective,
    LinearSVC,
    Local,
    LogisticRegression,
    PrivGene,
    Reals,
    RecordObjective,
    Subsample,
    Subsets,
    search,
)
from privfit.linear.labelled import space_of
from privfit.privacy.ledger import Grant
from privfit.privacy.mechanisms import Exponential
from privfit.searches import privgene
from privfit.searches.dpsga import GENERATIONS, thesis_delta

pytestmark = pytest.mark.filterwarnings("ignore::privfit.base.cautions.UnwiseBudgetWarning")

CHECKS = Checks()
row = CHECKS.row


def near_zero(x: Any, P: Any) -> np.ndarray:
    return -np.abs(np.asarray(x)[:, None] - P.reshape(len(P), -1)[:, 0])


TINY = RecordObjective(np.linspace(-1, 1, 6), near_zero, -2.0, 0.0)
COINS = np.random.default_rng(0)
X = COINS.uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)


def found(settings: Any, n: int, epsilon: float = 1.0, delta: float = 0.0) -> Any:
    """A search among pairs of numbers with so many records, as far as is public."""
    return search(TINY, Reals(-1, 1, 2), epsilon, delta, settings, n_public=n, random_state=1)


# ------------------------------------------------------------------------- PrivGene, EEM, PrivLocal


@row("privgene", "rounds r, n = 40,000, epsilon 1")
def _() -> str:
    return str(len(found(PrivGene(paper=True), 40_000).path.generations))


@row("privgene", "selections, n = 40,000, epsilon 1")
def _() -> str:
    return sizes(found(PrivGene(paper=True), 40_000).release)


@row("privgene", "selections of a single round")
def _() -> str:
    return sizes(found(PrivGene(paper=True), 4_000).release)


@row("privgene", "selections with EEM, n = 40,000, epsilon 1")
def _() -> str:
    return sizes(found(EEM(paper=True), 40_000).release)


@row("privgene", "selections of PrivLocal, n = 40,000, epsilon 1")
def _() -> str:
    return sizes(found(Local(paper=True), 40_000).release)


@row("privgene", "the same with delta = 1e-6")
def _() -> str:
    kinds = (PrivGene, EEM, Local)
    return "; ".join(sizes(found(kind(paper=True), 40_000, delta=1e-6).release) for kind in kinds)


@row("privgene", "m and m'")
def _() -> str:
    settings = PrivGene(paper=True)
    assert EEM(paper=True).population == settings.population
    return listed(settings.population, settings.survivors)


@row("privgene", "children of a pair")
def _() -> str:
    run = lambda: found(PrivGene(generations=2, paper=True), 10)  # noqa: E731
    [(children, _, A, B, child, _)] = calls(Reals, "sibling", run)
    assert (np.sort([child, children], axis=0) == np.sort([A, B], axis=0)).all()
    [(mutants, *_)] = calls(Reals, "nudge", run)
    assert len(mutants) == 2 * len(A) == 200
    return f"both, of {len(A)} pairs"


@row("privgene", "starts of a linear model")
def _() -> str:
    objective = LinearObjective(X, Y, "logistic", Box(-1, 1, 3))
    space, coins = Reals(-5, 5, 4), np.random.default_rng(0)
    P = privgene._usual_starts(objective, space)(space, 200, coins)
    alone = (P[:, :-1] == 0).all(axis=1)
    return listed(*map(int, (
        (~alone).sum(), (alone & (P[:, -1] > 0)).sum(), (alone & (P[:, -1] < 0)).sum()
    )))  # fmt: skip


@row("privgene", "starts of k-means")
def _() -> str:
    objective = CentersObjective(X, 2, Box(-1, 1, 3))
    run = lambda: search(objective, Reals(-1, 1, (2, 3)), 1.0, solver=PrivGene(1, paper=True))  # noqa: E731
    [(P, *_)] = calls(Reals, "sample", run)
    return f"{len(P)} random"


@row("privgene", "mutation of the first rounds, in widths")
def _() -> str:
    run = lambda: found(PrivGene(generations=4, paper=True), 10)  # noqa: E731
    steps = [call[3] for call in calls(Reals, "nudge", run)]
    moves = [call[4] for call in calls(Reals, "some_moves",
                                       lambda: found(EEM(4, paper=True), 10))]  # fmt: skip
    walk = [call[3] for call in calls(Reals, "all_moves", lambda: found(Local(generations=3,
                                      paper=True), 10))]  # fmt: skip
    assert steps == moves == walk
    return listed(*steps)


@row("privgene", "coordinates that mutate")
def _() -> str:
    space, P = Reals(-1, 1, 4), np.zeros((4000, 4))
    moved = (space.nudge(P, 0.05, np.random.default_rng(0)) != 0).mean(axis=0)
    where, _ = space.some_moves(P[0], 4000, 0.05, np.random.default_rng(0))
    assert np.allclose(moved, 1 / 4, atol=0.05)
    assert set(where.tolist()) == {0, 1, 2, 3}
    return "all alike"


@row("privgene", "mutants at the border")
def _() -> str:
    space = Reals(-1, 1, 4)
    P = space.nudge(np.ones((400, 4)), 0.05, np.random.default_rng(0))
    assert P.max() == 1
    return "stay in the space"


@row("privgene", "weights of linear models")
def _() -> str:
    objective = LinearObjective(X, Y, "logistic", Box(-1, 1, 3))
    published = PrivGene(paper=True), EEM(paper=True), Local(paper=True)
    spaces = [space_of(settings, objective) for settings in published]
    ends = {(float(space.low.min()), float(space.high.max())) for space in spaces}
    assert len(ends) == 1
    return "[{:g}, {:g}]".format(*ends.pop())


@row("privgene", "dampening of the logistic loss, l1 norm B")
def _() -> str:
    objective = LinearObjective(X, Y, "logistic", Box(-1, 1, 3))
    w = np.array([[1.0, -2.0, 0.5, 0.5]])  # B = 4
    factor, rest = divmod(objective.spread(w, "replace") * objective.unit, 4)
    assert rest < 0.01
    return f"{factor:g} B"


@row("privgene", "dampening for k-means, span S of a record's score")
def _() -> str:
    objective = CentersObjective(X, 2, Box(-1, 1, 3))
    P = objective.snap(np.zeros((1, 2, 3)))
    span = objective.spread(P, "add_remove")
    assert span * objective.unit == pytest.approx(3)  # a corner's squared distance
    mechanism = drawn(lambda: search(objective, Reals(-1, 1, (2, 3)), 1.0, random_state=0,
                                     solver=PrivGene(1, paper=True)))[0]  # fmt: skip
    assert mechanism.range > span
    return f"{objective.spread(P, 'replace') / span:g} S"


@row("privgene", "dampening of mutants by a scale, support vector machine")
def _() -> str:
    C, scale = 10.0, 0.5
    objective = LinearObjective(X, Y, "hinge", Box(-1, 1, 3), C=C)
    view = objective.at(np.array([3.0, -2.0, 1.0, 0.0]))
    reach = view.range([0, 0, 1], [scale, -scale, scale], "replace") * objective.unit
    return f"{round(reach / (C * scale), 2):g} C times it"


@row("privgene", "dampening of mutants by a scale, logistic regression")
def _() -> str:
    objective = LinearObjective(X, Y, "logistic", Box(-1, 1, 3))
    far = objective.at(np.array([5.0, -5.0, 5.0, 5.0])).range([0, 1], [0.5, 0.5], "replace")
    near = objective.at(np.zeros(4)).range([0, 1], [0.5, 0.5], "replace")
    assert near < far <= 4 * 0.5 / objective.unit + 4
    return f"at most {round(far * objective.unit / 0.5):g} times it"


@row("privgene", "EEM on k-means")
def _() -> str:
    objective = CentersObjective(X, 2, Box(-1, 1, 3))
    space = Reals(-1, 1, (2, 3))
    draws = calls(Grant, "release", lambda: search(objective, space, 1.0, random_state=0,
                                                   solver=EEM(3, 20, paper=True)))  # fmt: skip
    tight = drawn(lambda: search(objective, space, 1.0, random_state=0, solver=EEM(3, 20)))
    assert all(draw[2].range > 4 * tight[0].range for draw in draws)
    return "each candidate's own span"


@row("privgene", "C of the support vector machine")
def _() -> str:
    model = LinearSVC(1.0, domain=(-1, 1), classes=[0, 1], solver=PrivGene(2, 20, 2, paper=True),
                      C=10, random_state=0).fit(X, Y)  # fmt: skip
    assert model.release_.settings["C"] == 10
    objective = LinearObjective(X, Y, "hinge", Box(-1, 1, 3), C=10)
    w = np.array([[0.5, -0.25, 0.0, 1.0]])
    losses = np.maximum(0, 1 - np.where(Y, 1, -1) * (np.rint(X * 2**14) / 2**14 @ w[0, :3] + 1))
    scored = (objective.scores(w) + objective.prior(w))[0] * objective.unit
    assert scored == pytest.approx(-10 * losses.sum() - (0.25 + 0.0625) / 2, rel=1e-2)
    return "`LinearSVC(C=10)`"


# ---------------------------------------------------------------------- the simple GA, sub-sampling


@row("dpsga", "N_p, N_s, p_c")
def _() -> str:
    s = DPSGA(paper=True)
    return listed(s.population, s.survivors, s.crossover)


@row("dpsga", "N_g at epsilon 10^-2 to 10^1.5, by half decades")
def _() -> str:
    budgets = [10 ** (half / 2) for half in range(-4, 4)]
    small = DPSGA(population=3, survivors=1, paper=True)
    counts = [len(found(small, 9, epsilon).path.generations) - 1 for epsilon in budgets]
    assert tuple(counts) == GENERATIONS
    return listed(*counts)


@row("dpsga", "mutation rate p_m of c genes")
def _() -> str:
    rates = {call[4] for call in calls(Reals, "jitter",
                                       lambda: found(DPSGA(1, paper=True), 9))}  # fmt: skip
    assert rates == {1 / (2 + 1)}
    return "1 / (c + 1)"


@row("dpsga", "mutation of a weight, and the weights")
def _() -> str:
    objective = LinearObjective(X, Y, "zero_one", Box(-1, 1, 3))
    space = space_of(DPSGA(paper=True), objective)
    deviation = DPSGA(paper=True).step * float(space.width[0])
    P = space.jitter(np.zeros((20_000, 4)), DPSGA(paper=True).step, 1.0, np.random.default_rng(0))
    assert P.std() == pytest.approx(deviation, rel=0.02)
    return f"deviation {deviation:g} in [{space.low[0]:g}, {space.high[0]:g}]"


@row("dpsga", "starts of a linear model")
def _() -> str:
    scored = calls(RecordObjective, "scores", lambda: found(DPSGA(1, paper=True), 9))
    starts = next(call[2] for call in scored if len(call[2]) == 200)
    zero = int((starts == 0).all(axis=1).sum())
    return f"{len(starts) - zero} random, {zero} at zero"


@row("dpsga", "population after a generation")
def _() -> str:
    draws = calls(Grant, "release", lambda: found(DPSGA(2, paper=True), 9))
    assert len({len(draw[3]) for draw in draws}) == 1
    return str(len(draws[1][3]))


@row("dpsga", "parents that are kept, and children of a pair")
def _() -> str:
    run = lambda: found(DPSGA(1, paper=True, mutation=0.0), 9)  # noqa: E731
    path = run().path
    [(_, _, A, *_)] = calls(Reals, "sibling", run)
    children = calls(RecordObjective, "scores", run)[-1][2]
    assert len(children) == 190
    assert 25 < len(A) < 70  # about half of 95 pairs are crossed, and each child has a sibling
    return f"{len(path.generations[0])}; both, crossed or copied"


@row("dpsga", "selections at epsilon 1")
def _() -> str:
    return str(sum(event.count for event in found(DPSGA(paper=True), 9).release.events))


@row("dpsga", "selection and composition")
def _() -> str:
    s = DPSGA(paper=True)
    return f"{s.selection}, {s.composition}"


@row("dpsga", "composition of other selections")
def _() -> str:
    names = {DPSGA(selection=name, paper=True).composition
             for name in ("noisy_max", "permute_and_flip")}  # fmt: skip
    return names.pop() if len(names) == 1 else "different"


@row("dpsga", "budget of a selection, epsilon 1, delta 1e-5, N_g = 100")
def _() -> str:
    release = found(DPSGA(100, paper=True), 9, delta=1e-5).release
    eps, n = release.events[0].parameter, release.events[0].count
    u = eps / (1 - math.exp(-eps))
    lemma = n * (u - 1 - math.log(u)) + math.sqrt(n * eps**2 / 2 * math.log(1e5))
    assert lemma == pytest.approx(1.0, rel=1e-6)
    return f"{eps:.4f}"


@row("dpsga", "delta of n records")
def _() -> str:
    assert thesis_delta(30_000) == pytest.approx(30_000**-1.1)
    return "`thesis_delta(n)`"


@row("dpsga", "utility of linear models, and its dampening")
def _() -> str:
    assert DPSGA().counts_errors
    model = LogisticRegression(1.0, domain=(-1, 1), classes=[0, 1], random_state=0,
                               solver=DPSGA(1, 20, 2, paper=True))  # fmt: skip
    ranges = {mechanism.range for mechanism in drawn(lambda: model.fit(X, Y))}
    return f"errors, {ranges.pop()}"


@row("dpsga", "dampening for k-median, distances in [a, b]")
def _() -> str:
    places = np.random.default_rng(0).uniform(0, 1, (9, 2))
    objective = FacilityObjective(np.abs(X[:, :2]), places, (0.5, 1.0), Box(0, 1, 2))
    ranges = {mechanism.range for mechanism in drawn(lambda: search(
        objective, Subsets(9, 2), 1.0, solver=DPSGA(1, 20, 2, paper=True)))}  # fmt: skip
    return f"{ranges.pop() / objective.largest:g} (b - a)"


@row("dpsga", "answer")
def _() -> str:
    run = found(DPSGA(2, paper=True), 9)
    assert np.array_equal(run.answer, run.path.last)
    return "the last selection"


@row("dpsga", "candidates of the sub-sampled mechanism")
def _() -> str:
    [draw] = calls(Grant, "release", lambda: found(Subsample(paper=True), 9))
    assert isinstance(draw[2], Exponential)
    return f"{len(draw[3]):,}, by the exponential mechanism"


CHECKED = CHECKS.keys()


@pytest.mark.few(4)
@pytest.mark.parametrize(("page", "what"), CHECKED, ids=[" ".join(key) for key in CHECKED])
def test_ours_is_what_the_page_says(page, what):
    CHECKS.compare(page, what)


def test_every_row_has_a_check_and_every_check_a_row():
    CHECKS.cover("privgene", "dpsga")


# ------------------------------------------------------------------------- what budgets must not do


@pytest.mark.few(6)
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1 / 3, 7e-5])
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_rounds_never_cost_more_than_epsilon(heads, epsilon, rounds):
    """Mixed sizes, several models on one grant: the sum is within the budget, exactly."""
    y = np.arange(60) % heads if heads > 1 else Y
    ledger = Ledger(epsilon, 1e-6)
    model = LogisticRegression(epsilon, 1e-6, domain=(-1, 1), classes=sorted(set(y.tolist())),
                               solver=PrivGene(rounds, 6, 3, paper=True),
                               ledger=ledger)  # fmt: skip
    release = model.fit(X, y).release_
    total = sum(event.count * event.parameter for event in release.events)
    assert epsilon * (1 - 1e-12) <= total <= epsilon
    assert release.verify()
