"""Operators of `PrivGene` and `DPSGA`: the papers' are combinations, and a user's function is one.

A statistical test asks for at most ten p-values, each of at least 1e-7: on fresh seeds it fails for
right code with a probability of at most 1e-6.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from makers.raises import assert_reached, messages_of
from makers.spaces import check_inside
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from privfit import (
    DPSGA,
    Bits,
    Box,
    CentersObjective,
    FacilityObjective,
    Integers,
    KMedian,
    Ledger,
    LinearObjective,
    LogisticRegression,
    Mixed,
    Permutations,
    PrivGene,
    Reals,
    RecordObjective,
    Release,
    Stream,
    Subsets,
    load,
    save,
    search,
)
from privfit.runs import Space
from privfit.runs.run import Run
from privfit.searches import (
    EEM,
    Constant,
    Decay,
    Gaussian,
    Geometric,
    Insertion,
    InterceptStarts,
    Local,
    MiddleStarts,
    OnePoint,
    RandomStarts,
    Redraw,
    Step,
    Swap,
    Uniform,
    Union,
    breeding,
    operators,
)

LEAST = 1e-7  # p-value

RECORDS = np.random.default_rng(0).integers(0, 4, 60)
X = np.random.default_rng(1).uniform(-1, 1, (60, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)


def own_score(x: Any, P: Any) -> np.ndarray:
    """Some number in [0, 1] of a record and a candidate, whatever the candidates are."""
    flat = P.reshape(len(P), -1).astype(float)
    place = np.asarray(x).reshape(len(x), -1)[:, 0].astype(int) % flat.shape[1]
    return 1 / (1 + np.abs(flat.T[place]))


SPACES: dict[str, Space] = {
    "reals": Reals(-1, 1, 4),
    "a table of reals": Reals(-1, 1, (2, 2)),
    "bits": Bits(4),
    "subsets": Subsets(9, 4),
    "permutations": Permutations(4),
    "integers": Integers(-3, 8, 4),
    "mixed": Mixed(Reals(-1, 1, 2), Subsets(6, 2), Bits(3), Permutations(4), Integers(0, 5, 2)),
}
OBJECTIVE = RecordObjective(RECORDS, own_score, 0.0, 1.0)
LINEAR = LinearObjective(X, Y, "logistic", Box(-1, 1, 2))
PLACES = FacilityObjective(X, X[:9], (0, 2), Box(-1, 1, 2))
CENTRES = CentersObjective(X, 2, Box(-1, 1, 2))
WITH_INTERCEPT = Reals(-1, 1, 3)


def found(solver: Any, space: Any, objective: Any = OBJECTIVE, **more: Any) -> Any:
    return search(objective, space, 1.0, 1e-6, solver, random_state=3, **more)


def same(one: Any, other: Any) -> bool:
    """Whether two searches released the same."""
    paths = zip(one.path.generations, other.path.generations, strict=True)
    return all(np.array_equal(a, b) for a, b in paths) and np.array_equal(one.answer, other.answer)


SHORT = {"generations": 3, "population": 20, "survivors": 4}
BRED = [partial(PrivGene, **SHORT), partial(DPSGA, **SHORT)]
kinds = pytest.mark.parametrize("kind", BRED, ids=["privgene", "dpsga"])

# ------------------------------------------------------------------------- papers are combinations


@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("name", SPACES)
def test_searches_are_combinations_of_operators(name, paper):
    space = SPACES[name]
    middle = MiddleStarts() if isinstance(space, Reals) else RandomStarts()
    decay = Decay(0.95 if paper else 0.98)
    privgene = PrivGene(**SHORT, paper=paper, crossover=OnePoint(), mutation=Step(0.05),
                        schedule=decay, starts=RandomStarts())  # fmt: skip
    dpsga = DPSGA(**SHORT, paper=paper, crossover=Uniform(0.5), schedule=Constant(),
                  mutation=Gaussian(0.05, 1 / (space.size + 1)), starts=middle)  # fmt: skip
    assert same(found(privgene, space), found(PrivGene(**SHORT, paper=paper), space))
    assert same(found(dpsga, space), found(DPSGA(**SHORT, paper=paper), space))


@pytest.mark.parametrize("paper", [False, True])
def test_starts_of_a_linear_model_are_an_operator(paper):
    settings = {**SHORT, "population": 40, "paper": paper}
    usual = found(PrivGene(**settings), WITH_INTERCEPT, LINEAR)
    given = PrivGene(**settings, starts=InterceptStarts(0.1))
    assert same(found(given, WITH_INTERCEPT, LINEAR), usual)
    other = PrivGene(**settings, starts=RandomStarts())
    assert not same(found(other, WITH_INTERCEPT, LINEAR), usual)


def test_what_an_operator_leaves_out_is_the_searches_own():
    space = SPACES["reals"]
    for usual, given in [
        (PrivGene(**SHORT, step=0.2), PrivGene(**SHORT, step=0.2, mutation=Step())),
        (PrivGene(**SHORT, step=0.2), PrivGene(**SHORT, mutation=Step(0.2))),
        (PrivGene(**SHORT, decay=0.5), PrivGene(**SHORT, schedule=Decay(0.5))),
        (DPSGA(**SHORT, step=0.2), DPSGA(**SHORT, step=0.2, mutation=Gaussian())),
        (DPSGA(**SHORT, mutation=0.7), DPSGA(**SHORT, mutation=Gaussian(rate=0.7))),
        (DPSGA(**SHORT), DPSGA(**SHORT, crossover=Uniform())),
        (DPSGA(**SHORT, crossover=0.8), DPSGA(**SHORT, crossover=Uniform(0.8))),
        (PrivGene(**SHORT, crossover=0.8), PrivGene(**SHORT, crossover=OnePoint(0.8))),
    ]:
        assert same(found(usual, space), found(given, space))


def test_settings_beside_an_operator_read_as_what_is_used():
    assert PrivGene().step == PrivGene(mutation=Step()).step == 0.05
    assert PrivGene(mutation=Gaussian(0.2)).step == DPSGA(mutation=Step(0.2)).step == 0.2
    assert PrivGene(mutation=Redraw()).step is DPSGA(mutation=Swap()).step is None
    assert PrivGene(schedule=Decay(0.5)).decay == 0.5
    assert PrivGene(schedule=Constant()).decay is None
    assert PrivGene(paper=True).decay == 0.95


# --------------------------------------------------------------------------------- new combinations

CROSSOVERS = [OnePoint(), Uniform(0.3), Union(0.6)]
MUTATIONS = [Step(0.3), Gaussian(0.2, 0.5), Redraw(0.4), Swap(), Insertion()]


@kinds
@pytest.mark.parametrize("name", SPACES)
def test_every_combination_runs_where_the_space_has_its_operators(name, kind):
    space, runs = SPACES[name], 0
    for crossover, mutation in itertools.product(CROSSOVERS, MUTATIONS):
        solver = kind(crossover=crossover, mutation=mutation, schedule=Geometric(0.1))
        if all(hasattr(space, part) for part in (*crossover.needs, *mutation.needs)):
            result = found(solver, space)
            for generation in result.path.generations:
                check_inside(space, generation)
            assert result.release.verify()
            runs += 1
        else:
            with pytest.raises(ValueError, match=r"space \(.*\) must have '"):
                found(solver, space)
    assert runs >= 6


@pytest.mark.parametrize("solver", [EEM(generations=3), Local(generations=3), *(k() for k in BRED)])
@pytest.mark.parametrize("name", SPACES)
def test_every_space_is_searched_by_every_search_in_memory_and_as_a_stream(name, solver):
    streamed = RecordObjective(Stream(RECORDS[:, None]), own_score, 0.0, 1.0)
    one, other = found(solver, SPACES[name]), found(solver, SPACES[name], streamed)
    assert same(one, other)
    assert one.release.to_json() == other.release.to_json()


def test_operators_are_taken_for_every_objective():
    for objective, space in [(LINEAR, WITH_INTERCEPT), (CENTRES, Reals(-1, 1, (2, 2))),
                             (PLACES, Subsets(9, 2))]:  # fmt: skip
        for kind in BRED:
            result = found(kind(crossover=Uniform(), mutation=Redraw()), space, objective)
            assert result.release.verify()


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_rate_is_the_fraction_of_children_with_two_parents(rate):
    """Parents are all zeros and all ones: a child with both is neither."""
    space, coins = Bits(40), np.random.default_rng(1)
    parents = np.array([[False] * 40, [True] * 40])
    bred = breeding.Breeding(Uniform(), rate, Step(), Constant(), RandomStarts(), both=False)
    children = bred.children(space, parents, 6000, coins)
    mixed = int((children.any(axis=1) & ~children.all(axis=1)).sum())
    # Both parents are different half of the time.
    assert scipy.stats.binomtest(mixed, 6000, rate / 2).pvalue > LEAST


def test_schedules():
    assert [Constant()(t, 9) for t in range(3)] == [1.0, 1.0, 1.0]
    assert [Decay(0.5)(t, 9) for t in range(3)] == [1.0, 0.5, 0.25]
    assert np.allclose([Geometric(0.01)(t, 5) for t in (0, 2, 4)], [1.0, 0.1, 0.01])
    assert Geometric(0.01)(0, 1) == 1.0


def test_a_schedule_scales_steps_and_rates():
    space, P, coins = Reals(-100, 100, 2), np.zeros((50, 2)), np.random.default_rng(0)
    assert np.abs(Step(0.1)(space, P, 0.5, coins)).max() == 10.0
    assert np.array_equal(Redraw(1.0)(space, P, 0.0, coins), P)
    assert (Redraw(0.5)(space, P, 9.0, coins) != 0).all()


@pytest.mark.parametrize("m", [1, 4, 19, 20, 39, 40, 60, 200, 12_345])
def test_starts_have_whole_shares(m):
    space, coins = Reals(-1, 1, 3), np.random.default_rng(0)
    P = MiddleStarts()(space, m, coins)
    assert (P == 0).all(axis=1).sum() == m // 20
    P = InterceptStarts()(space, m, coins)
    alone = (P[:, :-1] == 0).all(axis=1)
    assert (alone & (P[:, -1] > 0)).sum() == (alone & (P[:, -1] < 0)).sum() == m // 20
    for share in (0.05, 0.1 / 2):
        assert int(m * share) == m // 20


def test_starts_with_an_intercept_stay_in_a_box_without_zero():
    space = Reals([1, 1], [2, 2], 2, units=0.25)
    check_inside(space, InterceptStarts(1.0)(space, 40, np.random.default_rng(0)))


# ------------------------------------------------------------------------------- functions of users


def blend(space: Any, A: Any, B: Any, coins: Any) -> Any:
    share = coins.random((len(A), *[1] * (A.ndim - 1)))
    return space.snap(A + share * (B - A))


def towards_zero(space: Any, P: Any, scale: float, coins: Any) -> Any:
    return space.snap(P * (1 - 0.1 * scale))


def corners(space: Any, m: int, coins: Any) -> Any:
    return space.extremes[coins.integers(len(space.extremes), size=m)]


def halves(generation: int, generations: int) -> float:
    return 1 / (1 + generation)


OWN = {"crossover": blend, "mutation": towards_zero, "schedule": halves, "starts": corners}


@kinds
def test_a_function_is_an_operator(kind):
    space = SPACES["reals"]
    result = found(kind(**OWN), space)
    for generation in result.path.generations:
        check_inside(space, generation)
    shown = json.loads(result.release.to_json())["settings"]
    for name, operator in OWN.items():
        assert shown[name] == f"{operator.__module__}.{operator.__qualname__}"
    assert shown["step"] is None
    assert shown.get("decay") is None
    assert result.release.verify()


def test_a_function_that_does_what_an_operator_does_gives_the_same():
    one = PrivGene(
        **SHORT,
        crossover=lambda space, A, B, coins: space.splice(A, B, coins),
        mutation=lambda space, P, scale, coins: space.nudge(P, 0.05 * scale, coins),
        schedule=lambda generation, generations: 0.98**generation,
        starts=lambda space, m, coins: space.sample(m, coins),
    )
    for space in SPACES.values():
        assert same(found(one, space), found(PrivGene(**SHORT), space))


@dataclass(frozen=True)
class Shrink:
    """A user's operator with settings of its own, one of which the search completes."""

    by: float = 0.5
    rate: float | None = None

    def __call__(self, space: Any, P: Any, scale: float, coins: Any) -> Any:
        hit = coins.random(P.shape) < self.rate
        return space.snap(np.where(hit, P * self.by, P))


def test_a_users_value_is_completed_and_shown_with_its_fields():
    release = found(DPSGA(**SHORT, mutation=Shrink(0.25)), SPACES["reals"]).release
    assert release.settings["mutation"] == {"operator": "Shrink", "by": 0.25, "rate": 1 / 5}


class Drawn:
    def __call__(self, space: Any, m: int, coins: Any) -> Any:
        return space.sample(m, coins)


def test_an_object_without_fields_is_shown_by_its_class():
    release = found(PrivGene(**SHORT, starts=Drawn()), SPACES["bits"]).release
    assert release.settings["starts"] == f"{__name__}.Drawn"


# ------------------------------------------------------------------------------------- without data


class First:
    """A grant that always draws the first candidates."""

    def __init__(self) -> None:
        self._grant = Ledger(1.0, 1e-6).reserve(1.0, 1e-6)
        self.budget, self.plan = self._grant.budget, self._grant.plan

    @property
    def events(self) -> Any:
        return self._grant.events

    def release(self, mechanism: Any, scores: Any, rng: Any = None) -> Any:
        k = getattr(mechanism, "k", None)
        return 0 if k is None else np.arange(k)


def spied(calls: list[Any], call: Callable[..., Any]) -> Callable[..., Any]:
    def spy(*arguments: Any) -> Any:
        calls.append(arguments)
        return call(*arguments)

    return spy


def reaches(thing: Any, targets: list[Any], depth: int = 6) -> bool:
    """Whether an object, its attributes or its items are one of these, or share their memory."""
    for target in targets:
        if thing is target:
            return True
        both = isinstance(thing, np.ndarray), isinstance(target, np.ndarray)
        if all(both) and np.shares_memory(thing, target):
            return True
    if depth == 0 or isinstance(thing, np.random.Generator | type | str | int | float):
        return False
    inner = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, list | tuple):
        inner += thing
    if isinstance(thing, dict):
        inner += thing.values()
    return any(reaches(part, targets, depth - 1) for part in inner)


@kinds
@pytest.mark.parametrize("paper", [False, True])
def test_no_operator_sees_data(kind, paper):
    """What operators are called with is the same for any records, and leads to none of them."""
    seen = []
    for seed in (1, 2):
        records = np.random.default_rng(seed).integers(0, 4, 30)
        objective = RecordObjective(records, own_score, 0.0, 1.0)
        calls: list[Any] = []
        solver = kind(
            paper=paper,
            **{name: spied(calls, operator) for name, operator in OWN.items()},
        )
        run = Run(objective, SPACES["reals"], First(), 5)
        solver(run)
        targets = [records, objective, objective._sums, run]
        assert not any(reaches(call, targets) for call in calls)
        assert reaches([{"a": run}], targets)  # it would be found
        seen.append(calls)
    for one, other in zip(*seen, strict=True):
        assert len(one) == len(other) in (2, 3, 4)
        for a, b in zip(one, other, strict=True):
            if isinstance(a, np.ndarray):
                assert np.array_equal(a, b)
            elif isinstance(a, int | float):
                assert a == b
            else:
                assert a is SPACES["reals"] or isinstance(a, np.random.Generator)


# ------------------------------------------------------------------------- parameters, files, JSON


def model(solver: Any) -> LogisticRegression:
    return LogisticRegression(
        1.0, 1e-6, domain=(-1, 1), classes=[0, 1], solver=solver, random_state=1
    )


def test_fields_of_operators_are_parameters():
    one = model(DPSGA(**SHORT, mutation=Gaussian(0.1)))
    assert one.get_params()["solver__mutation__step"] == 0.1
    again = clone(one).set_params(solver__mutation__step=0.2, solver__crossover=OnePoint())
    assert again.solver == DPSGA(**SHORT, mutation=Gaussian(0.2), crossover=OnePoint())
    assert one.solver.mutation.step == 0.1
    steps = ParameterGrid({"solver__mutation__step": [0.1, 0.3]})
    shown = [clone(one).set_params(**each).fit(X, Y).release_.settings for each in steps]
    assert [each["mutation"]["step"] for each in shown] == [0.1, 0.3]
    assert [each["step"] for each in shown] == [0.1, 0.3]


def test_settings_are_written_as_they_were_given():
    settings = PrivGene(mutation=Gaussian(0.1), schedule=Decay(0.5), crossover=0.5)
    assert repr(settings) == (
        "PrivGene(crossover=0.5, mutation=Gaussian(step=0.1), schedule=Decay(factor=0.5))"
    )
    assert eval(repr(settings)) == settings
    for one in (getattr(operators, name)() for name in operators.__all__):
        assert eval(repr(one)) == one
        with pytest.raises(AttributeError, match="cannot assign"):
            one.rate = 1


def test_a_release_has_operators_only_if_they_were_passed():
    usual = found(PrivGene(**SHORT), SPACES["bits"]).release
    assert not {"crossover", "mutation", "schedule", "starts"} & set(usual.settings)
    usual = found(DPSGA(**SHORT), SPACES["bits"]).release
    assert usual.settings["crossover"] == 0.5
    assert usual.settings["mutation"] == 1 / 5
    assert not {"schedule", "starts"} & set(usual.settings)
    solver = PrivGene(**SHORT, crossover=OnePoint(0.5), mutation=Gaussian(), schedule=Geometric())
    release = found(solver, SPACES["bits"]).release
    shown = {
        "crossover": {"operator": "OnePoint", "rate": 0.5},
        "mutation": {"operator": "Gaussian", "step": 0.05, "rate": 1 / 5},
        "schedule": {"operator": "Geometric", "last": 0.3},
    }
    assert {name: release.settings[name] for name in shown} == shown
    assert (
        Release.from_json(release.to_json()).settings == json.loads(release.to_json())["settings"]
    )


@pytest.mark.parametrize(
    "solver",
    [
        PrivGene(**SHORT, crossover=Uniform(0.5), mutation=Gaussian(0.1), schedule=Geometric()),
        PrivGene(**SHORT, starts=MiddleStarts()),
        PrivGene(**SHORT, crossover=0.5),
        DPSGA(**SHORT, crossover=OnePoint(), mutation=Redraw(), starts=InterceptStarts()),
        DPSGA(**SHORT, mutation=Step(), schedule=Decay()),
    ],
    ids=repr,
)
def test_a_model_with_operators_is_saved_and_loaded(solver, tmp_path):
    fitted = model(solver).fit(X, Y)
    save(fitted, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.solver == solver
    assert np.array_equal(again.coef_, fitted.coef_)


def test_a_model_of_sets_with_operators_is_saved_and_loaded(tmp_path):
    solver = DPSGA(**SHORT, crossover=Union(), mutation=Step())
    fitted = KMedian(2, 1.0, 1e-6, facilities=X[:9], clip=(0, 2), solver=solver).fit(X)
    save(fitted, tmp_path / "model.json")
    assert load(tmp_path / "model.json").solver == solver


def test_a_model_with_a_function_is_not_saved(tmp_path):
    fitted = model(PrivGene(**SHORT, mutation=towards_zero)).fit(X, Y)
    with pytest.raises(TypeError, match=r"solver \(towards_zero\) cannot be written to a mod"):
        save(fitted, tmp_path / "model.json")


# ------------------------------------------------------------------------------------------- errors


def refused(settings: Callable[[], Any], space: Any = SPACES["reals"]) -> Callable[[Any], Any]:
    return lambda ledger: search(OBJECTIVE, space, 1.0, 1e-6, settings(), ledger=ledger)


def too_few(space: Any, A: Any, B: Any, coins: Any) -> Any:
    return A[:1]


def outside(space: Any, P: Any, scale: float, coins: Any) -> Any:
    return P + 5


def fewer_starts(space: Any, m: int, coins: Any) -> Any:
    return space.sample(m - 1, coins)


OTHER_KIND = r"must be an operator such as .*, or a function \(.*\) -> .*; pass one of them"
REFUSED = [
    *((refused(partial(kind, **{name: value})), rf"{name} \(.*\) {OTHER_KIND}")
      for kind in BRED for name, values in {
          "schedule": (0.5, "Decay", Decay, Step()), "starts": (3, RandomStarts, Uniform())}.items()
      for value in values),
    *((refused(partial(PrivGene, mutation=value)), rf"mutation \(.*\) {OTHER_KIND}")
      for value in (0.5, "Step", Step, Uniform())),
    *((refused(partial(kind, crossover=value)), r"crossover \(.*\) must be a fraction, an operator")
      for kind in BRED for value in (Uniform, Step())),
    (refused(partial(DPSGA, mutation=Uniform())), r"mutation \(.*\) must be a fraction, an operat"),
    *((refused(partial(kind, crossover=value)), r"crossover \(.*\) must lie in \[0, 1\]; leave it")
      for kind in BRED for value in (1.5, -0.1, math.nan, "0.5")),
    *((refused(partial(kind, mutation=Gaussian(0.1), step=0.2)),
       r"step \(0.2\) must be left out beside mutation=Gaussian\(step=0.1\); pass it there")
      for kind in BRED),
    (refused(partial(PrivGene, mutation=Redraw(), step=0.2)),
     r"step \(0.2\) must be left out beside mutation=Redraw\(\); pass it there"),
    (refused(partial(PrivGene, schedule=Geometric(), decay=0.9)),
     r"decay \(0.9\) must be left out beside schedule=Geometric\(\); pass it there"),
    (refused(partial(PrivGene, schedule=Decay(0.5), decay=0.9)),
     r"decay \(0.9\) must be left out beside schedule=Decay\(factor=0.5\); pass it there"),
    *((refused(partial(kind, mutation=Insertion()), Bits(3)),
       r"space \(Bits\) must have 'insert' for solver '\w+'; pass another solver or operator")
      for kind in BRED),
    (refused(partial(DPSGA, crossover=Union())),
     r"space \(Reals\) must have 'unite' for solver 'dpsga'; pass another solver or operator"),
    *((refused(partial(kind, crossover=too_few)),
       r"crossover \(.*too_few\) must return candidates of shape \(4, 4\), not \(1, 4\); correct")
      for kind in BRED),
    *((refused(partial(kind, crossover=lambda *_: 1 / 0)),
       r"crossover \(.*\) raised ZeroDivisionError; it must be a function \(space, A, B, coins\)")
      for kind in BRED),
    *((refused(partial(kind, schedule=lambda generation: 1.0)),
       r"schedule \(.*\) raised TypeError; it must be a function \(generation, generations\)")
      for kind in BRED),
    *((refused(partial(kind, mutation=outside)),
       r"mutation \(.*outside\) must return candidates that lie in Reals\(<4 numbers>\); correct")
      for kind in BRED),
    *((refused(partial(kind, starts=fewer_starts)),
       r"starts \(.*fewer_starts\) must return candidates of shape \(4, 4\), not \(3, 4\)")
      for kind in BRED),
    *((refused(partial(kind, schedule=lambda *_, value=value: value)),
       r"schedule \(.*\) must return a factor of at least 0, which is a finite number, for gener")
      for kind in BRED for value in (-1.0, math.nan, math.inf, None, "1")),
    (refused(partial(PrivGene, crossover=blend), Bits(3)),
     r"crossover \(.*blend\) raised TypeError; it must be a function"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"), REFUSED, ids=[f"{i} {m[:30]}" for i, (_, m) in enumerate(REFUSED)]
)
def test_wrong_operators_are_refused_and_nothing_is_charged(call, message):
    ledger = Ledger(5.0, 0.5)
    with pytest.raises((ValueError, TypeError), match=message):
        call(ledger)
    assert ledger.entries == ()


WRONG = [
    *((partial(kind, **{name: value}), rf"{name} \({value!r}\) must lie in \[0, 1\]; leave it out")
      for kind, names in [(OnePoint, ["rate"]), (Uniform, ["rate"]), (Union, ["rate"]),
                          (Step, ["step"]), (Gaussian, ["step", "rate"]), (Redraw, ["rate"]),
                          (Decay, ["factor"]), (Geometric, ["last"]), (MiddleStarts, ["share"]),
                          (InterceptStarts, ["share"])]
      for name in names for value in (-0.1, 1.1, math.nan, "1", True)),
    (partial(Geometric, 0), r"last \(0\) must be above 0 and at most 1; leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_wrong_fields_of_operators_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_raise_is_reached_by_a_case_above():
    seen = "\n".join(messages_of(partial(call, Ledger(5.0, 0.5))) for call, _ in REFUSED)
    assert_reached([Path(module.__file__) for module in (breeding, operators)], seen)


def test_a_function_that_fails_later_ends_the_run_with_a_sentence():
    """The trial before the charge has two generations; this one fails in the third."""

    def late(generation: int, generations: int) -> float:
        return -1.0 if generation == 2 else 1.0

    with pytest.raises(ValueError, match=r"schedule \(.*late\) must return a factor of at least 0"):
        found(PrivGene(**SHORT, schedule=late), SPACES["reals"])


def test_a_step_may_repeat_what_the_operator_has():
    assert PrivGene(step=0.1, mutation=Step(0.1)).step == 0.1
    assert PrivGene(decay=0.5, schedule=Decay(0.5)).decay == 0.5


def test_searches_say_what_they_need_of_a_space():
    assert PrivGene().space_needs == ("splice", "nudge", "sample")
    assert DPSGA().space_needs == ("size", "mix", "jitter", "sample")
    assert DPSGA(paper=True, mutation=0.5).space_needs == ("mix", "jitter", "sample", "sibling")
    one = PrivGene(crossover=blend, mutation=Insertion(), starts=corners)
    assert one.space_needs == ("insert",)
    for settings in (PrivGene(), DPSGA(), PrivGene(paper=True), DPSGA(paper=True)):
        assert all(hasattr(space, part) for space in SPACES.values()
                   for part in settings.space_needs)  # fmt: skip
