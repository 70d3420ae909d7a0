"""Ask and tell: any optimiser's loop around one private selection."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from makers.raises import assert_reached, messages_of

from privfit import (
    AskTell,
    Bits,
    Box,
    BudgetError,
    Checkpoint,
    Ledger,
    LinearObjective,
    Reals,
    RecordObjective,
    SolverError,
    Subsets,
)
from privfit.audit import audit_runs, paired
from privfit.searches import ask_tell

RECORDS = np.random.default_rng(0).random(300)
LINE = Reals(0, 1, 1)
SIZES = {"generations": 4, "population": 10, "parents": 3}


def nearness(x: Any, P: Any) -> Any:
    return -np.abs(x[:, None] - P[:, 0])


OWN = RecordObjective(RECORDS, nearness, -1.0, 0.0)


def door_of(objective: Any = OWN, space: Any = LINE, epsilon: float = 1.0, **more: Any) -> AskTell:
    return AskTell(objective, space, epsilon, **{**SIZES, "random_state": 1, **more})


def loop(door: AskTell, space: Any = LINE, seed: int = 0) -> AskTell:
    coins = np.random.default_rng(seed)
    with door:
        for _ in door:
            P = space.sample(10, coins)
            P = space.nudge(P[door.select(P)], 0.1, coins)
    return door


# ------------------------------------------------------------------------------------------ a loop


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_loop_is_charged_planned_and_released(delta):
    ledger, heard = Ledger(1.0, 1e-6), []
    door = loop(door_of(delta=delta, ledger=ledger, callback=heard.append))
    release = door.release
    assert release.verify()
    assert (release.name, release.adjacency, release.epsilon) == ("ask_tell", "replace", 1.0)
    assert sum(event.count for event in release.events) == 4 * 3
    assert release.settings["selections"] == 4 * 3 + 1
    assert (len(door.path.generations), len(heard), heard[-1].total) == (4, 4, 5)
    assert np.array_equal(release.parameters["answer"], door.answer)
    assert ledger.releases == (release,)


def test_selected_candidates_are_mostly_the_best():
    P = np.linspace(0, 1, 10)[:, None]
    with door_of(epsilon=1e4) as door:
        chosen = door.select(P)
        assert chosen.dtype.kind == "i"
        assert np.array_equal(door.path.generations[0], LINE.snap(P[chosen]))
    exact = np.argsort(-np.asarray(OWN.scores(P)))[:3]
    assert sorted(chosen) == sorted(exact)


def test_the_best_at_the_end_is_the_answer():
    with door_of() as door:
        for _ in door:
            door.select(LINE.sample(10, np.random.default_rng(1)))
        best = door.best(LINE.sample(50, np.random.default_rng(2)))
    assert np.array_equal(door.answer, best)
    assert sum(event.count for event in door.release.events) == 13
    assert door.release.verify()


def test_leaving_early_is_free_and_saves_nothing():
    ledger = Ledger(1.0)
    with door_of(ledger=ledger) as door:
        for generation in door:
            door.select(LINE.sample(10, np.random.default_rng(1)))
            if generation == 1:
                break
    assert sum(event.count for event in door.release.events) == 2 * 3
    assert ledger.spent.epsilon == 1.0
    with door_of() as idle:
        for _ in idle:  # an optimiser that has nothing to ask
            pass
    assert idle.release.events == ()


def test_a_callback_ends_the_loop():
    door = loop(door_of(callback=lambda now: now.index == 2))
    assert len(door.path.generations) == 2
    assert door.release.verify()
    assert "failed" not in door.release.settings


def test_an_error_in_the_block_closes_the_grant():
    ledger = Ledger(1.0)

    def fails(door: AskTell) -> None:
        door.select(LINE.sample(10, np.random.default_rng(1)))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        within(fails, ledger=ledger)()
    [release] = ledger.releases
    assert release.settings["failed"] == "ZeroDivisionError"
    assert sum(event.count for event in release.events) == 3
    assert release.verify()


@pytest.mark.parametrize("space", [Subsets(6, 2), Bits(4)])
def test_every_space_is_taken(space):
    def some(x: Any, P: Any) -> Any:
        return -np.abs(x[:, None] - np.asarray(P).mean(axis=1) / 6)

    assert loop(door_of(RecordObjective(RECORDS, some, -1.0, 0.0), space), space).release.verify()


def test_real_candidates_are_rounded_to_the_grid():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    objective = LinearObjective(X, X[:, 0] > 0, "logistic", Box(-1, 1, 2))
    P = np.random.default_rng(1).uniform(-1, 1, (10, 3))
    with door_of(objective, Reals(-1, 1, 3)) as door:
        chosen = door.select(P)
    units = objective.candidate_units
    assert (np.abs(door.path.generations[0] - P[chosen]) <= units / 2).all()
    assert np.array_equal(door.path.generations[0] / units, np.rint(P[chosen] / units))


def test_a_loop_is_replayed_from_a_checkpoint(tmp_path):
    def run() -> AskTell:
        with Checkpoint(tmp_path / "journal", 1.0) as journal:
            return loop(door_of(ledger=journal.ledger, random_state=journal.coins))

    assert np.array_equal(run().answer, run().answer)


# ------------------------------------------------------------------------------------------- audit

CANDIDATES = np.arange(4) / 4


def favours(x: Any, P: Any) -> Any:
    """Record 0 favours candidate 0, record 1 all the others."""
    first = np.asarray(P)[:, 0] == 0
    return np.where(np.asarray(x)[:, None] == 0, first, ~first).astype(float)


def table(record: int, narrow: int = 1) -> RecordObjective:
    objective = RecordObjective(np.array([record]), favours, 0.0, 1.0, bits=6)
    range_of = objective.range
    objective.range = lambda P, adjacency: range_of(P, adjacency) // narrow  # type: ignore[method-assign]
    return objective


def outcome(objective: RecordObjective, rng: Any) -> tuple[bool, bool]:
    with AskTell(objective, Reals(0, 1, 1), 2.0, generations=1, population=4, parents=1,
                 random_state=rng) as door:  # fmt: skip
        chosen = int(door.select(CANDIDATES[:, None])[0])
        best = float(door.best(CANDIDATES[:, None])[0])
    return chosen == 0, best == 0


@pytest.mark.slow
@pytest.mark.statistical
def test_what_is_drawn_costs_no_more_than_was_charged():
    """False alarms have probability 1e-6; a range that is too small by a factor of 8 is found."""
    audit = partial(audit_runs, outcome, runs=2000, confidence=1 - 1e-6, rng=1)
    assert audit(table(0), table(1)).passes(2.0)
    assert not audit(table(0, narrow=8), table(1, narrow=8)).passes(2.0)


def test_a_loop_passes_the_audit_of_pairs():
    def run(table: Any, ledger: Any, random_state: Any) -> Any:
        objective = RecordObjective(np.array(table), favours, 0.0, 1.0)
        door = loop(door_of(objective, ledger=ledger, random_state=random_state))
        return door.path, door.release

    found = paired(run, [0, 1, 0], [0, 1, 1])
    assert found.passes()
    assert found.strain <= 1


# ---------------------------------------------------------------------------------------- refusals


def within(call: Any, **more: Any) -> Any:
    def run() -> None:
        with door_of(**more) as door:
            call(door)

    return run


def again(door: AskTell) -> None:
    with door:
        pass


def used_up(door: AskTell) -> None:
    for _ in range(5):
        door.select(LINE.sample(10, np.random.default_rng(1)))


def goes_on(door: AskTell) -> None:
    for _ in range(2):
        door.select(LINE.sample(10, np.random.default_rng(1)))


def best_after_the_end(door: AskTell) -> None:
    door.select(LINE.sample(10, np.random.default_rng(1)))
    door.best(LINE.sample(10, np.random.default_rng(1)))


def best_twice(door: AskTell) -> None:
    for _ in range(2):
        door.best(LINE.sample(10, np.random.default_rng(1)))


ALL = LINE.sample(10, np.random.default_rng(1))
BEFORE = [
    *((partial(door_of, **{name: value}), rf"{name} \(.*\) must be a positive whole number; pass")
      for name in SIZES for value in (0, -1, 2.0, True, None)),
    (partial(door_of, parents=11), r"parents \(11\) must be at most the population \(10\)"),
    (within(id, epsilon=math.inf), r"epsilon \(inf\) is .*; pass a finite epsilon, or call s"),
    (within(id, epsilon=0.0), r"epsilon \(0\) must be positive to reserve"),
    (within(id, objective=3), r"objective \(int\) must have a method scores"),
    (within(id, space=3), r"space \(int\) must have 'shape' for solver 'ask_tell'"),
    (within(id, callback=3), r"callback \(int\) must be a function"),
    (lambda: door_of().select(ALL), "a door must be open to select, and it is charged when"),
    (lambda: list(door_of()), "a door must be open to select"),
    (lambda: door_of().path, "a door must be open"),
    (lambda: door_of().release, "the release is made when the block ends; look at it after that"),
]  # fmt: skip
AFTER = [
    (within(again), "a door must be entered once, since it was charged; make another"),
    (within(used_up), r"generations \(4\) must not be exceeded, since no more selections were pla"),
    (within(best_twice), "best must be called once, since one selection was planned for it"),
    (
        within(goes_on, callback=lambda now: True),
        "callback ended this loop, so nothing",
    ),
    (
        within(best_after_the_end, callback=lambda now: True),
        "callback ended this loop, so no best",
    ),
    (within(lambda door: door.answer), "nothing was selected yet; call select first"),
    (within(lambda door: door.select(ALL[:9])), "P must hold 10 candidates, the declared populat"),
    (within(lambda door: door.select(ALL + 1)), r"P must lie in .* grid; pass space\.snap\(P\)"),
    (within(lambda door: door.select(ALL * np.nan)), "P must lie in the space"),
    (within(lambda door: door.select(ALL[:, 0])), r"P \(shape \(10,\)\) must be candidates of sha"),
    (within(lambda door: door.select([["a"]] * 10)), "P must lie in the space"),
    (within(lambda door: door.select([[1], [2, 3]])), "P must be candidates of one shape; pass an"),
]


@pytest.mark.parametrize(("call", "message"), [*BEFORE, *AFTER])
def test_wrong_use_is_refused_with_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("more", [{"epsilon": math.inf}, {"objective": 3}, {"space": 3}])
def test_what_cannot_run_is_refused_before_the_charge(more):
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=r"must have|is for"):
        within(id, ledger=ledger, **more)()
    assert ledger.entries == ()


def test_a_refused_generation_may_be_asked_again():
    with door_of() as door:
        with pytest.raises(ValueError, match="P must lie in the space"):
            door.select(ALL + 1)
        assert len(door.select(ALL)) == 3
    assert "failed" not in door.release.settings
    with pytest.raises(BudgetError, match="a door must be open"):
        door.select(ALL)
    assert repr(door) == "AskTell(<3 of 4 generations left>)"


def test_a_callback_that_ends_the_loop_at_the_best_is_heard():
    with door_of(callback=lambda now: True) as door:
        best = door.best(ALL)
        assert list(door) == []
    assert np.array_equal(door.answer, best)
    assert "failed" not in door.release.settings


class Failing:
    """An objective of a user that quotes records, or returns what is no score."""

    n_records = len(RECORDS)

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def prior(self, P: Any) -> Any:
        return np.zeros(len(P), dtype=np.int64)

    def range(self, P: Any, neighbours: Any, /) -> int:
        return 5


def quotes(P: Any) -> Any:
    raise OSError(f"the records are {RECORDS}")


@pytest.mark.parametrize("how", ["select", "best"])
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (quotes, r"failed \(OSError, test_ask_tell\.py line \d+\) after"),
        (lambda P: RECORDS[: len(P)], "must be integers, one for each candidate; return arrays"),
        (lambda P: np.arange(3), "must be integers, one for each candidate; return arrays"),
        (lambda P: np.arange(len(P))[:, None], "must be integers, one for each candidate"),
    ],
)
def test_an_objective_that_fails_closes_the_door_and_is_not_quoted(scores, message, how):
    ledger = Ledger(1.0)
    with door_of(Failing(scores), ledger=ledger) as door:
        with pytest.raises(SolverError, match=message) as caught:
            getattr(door, how)(ALL)
        with pytest.raises(BudgetError, match="a door must be open"):
            door.select(ALL)
    assert caught.value.__context__ is None
    assert not any(f"{one:.4f}" in str(caught.value) for one in RECORDS)
    assert ledger.releases == (door.release,)
    assert "failed" in door.release.settings
    assert door.release.verify()


def interrupted(P: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupted_selection_closes_the_door():
    ledger = Ledger(1.0)
    with pytest.raises(KeyboardInterrupt):
        within(lambda door: door.select(ALL), objective=Failing(interrupted), ledger=ledger)()
    assert ledger.releases[0].settings["failed"] == "KeyboardInterrupt"


class Snaps:
    """A space of a user whose snap has a fault."""

    shape, low, high = (1,), 0, 1

    def snap(self, P: Any) -> Any:
        return P.nope


def test_faults_of_a_users_snap_are_not_hidden():
    with pytest.raises(AttributeError, match="nope"):
        within(lambda door: door.select(ALL), space=Snaps())()


def test_every_refusal_is_reached():
    seen = "\n".join(messages_of(call) for call, _ in [*BEFORE, *AFTER])
    assert_reached([File(ask_tell.__file__)], seen)
