"""Solvers of users, as they would write them: a dataclass, a function, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privfit.runs import Path, Run


@dataclass(frozen=True)
class ES:
    """An evolution strategy with private recombination, and no facts at all."""

    generations: int = 4
    population: int = 20
    parents: int = 3
    step: float = 0.3

    def __call__(self, run: Run[Any, Any]) -> Path:
        run.plan("selection", self.generations * self.parents, generations=self.generations)
        space, w, step = run.space, run.space.middle, self.step
        for _ in range(self.generations):
            noise = run.coins.normal(0, step, (self.population, *space.shape))
            P = space.snap(w + noise * space.width)
            parents = P[run.select(P, self.parents)]
            run.report(parents)
            w, step = parents.mean(axis=0), 0.8 * step
        return run.path(average=0.5)


def best_of_some(run: Run[Any, Any]) -> Path:
    """One selection among random candidates, of any space."""
    run.plan("selection")
    P = run.space.sample(20, run.coins)
    run.report(P[run.select(P)])
    return run.path()


@dataclass
class Schedule:
    """A setting of a setting."""

    step: float = 0.3


@dataclass
class Nested:
    """A solver with settings within, and a name of its own."""

    schedule: Schedule
    name: str = "nested"

    def __call__(self, run: Run[Any, Any]) -> Path:
        return ES(step=self.schedule.step)(run)


class Plain:
    """A solver with neither fields nor parameters."""

    def __call__(self, run: Run[Any, Any]) -> Path:
        return best_of_some(run)


class Hidden:
    """A solver whose settings nobody can find."""

    def __init__(self, step: float) -> None:
        self.step = step

    def __call__(self, run: Run[Any, Any]) -> Path:
        return best_of_some(run)


@dataclass
class Remembers:
    """A solver that writes exact scores into its own fields while it runs."""

    size: int = 5
    history: list[Any] = field(default_factory=list)
    inner: Schedule = field(default_factory=Schedule)

    def __call__(self, run: Run[Any, Any]) -> Path:
        run.plan("selection")
        P = run.space.sample(self.size, run.coins)
        scores = run.objective.scores(P).tolist()
        self.history.append(scores)
        self.size, self.inner.step = scores[0], float(scores[0])
        run.report(P[run.select(P)])
        return run.path()


class RemembersToo:
    """The same, with the parameters that scikit-learn would find."""

    def __init__(self, history: Any = ()) -> None:
        self.history = list(history)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"history": self.history}

    def __call__(self, run: Run[Any, Any]) -> Path:
        path = best_of_some(run)
        self.history.append(run.objective.scores(path.generations[0]).tolist())
        return path


@dataclass(frozen=True)
class Holds:
    """A solver with a field of any kind."""

    part: Any = None

    def __call__(self, run: Run[Any, Any]) -> Path:
        return best_of_some(run)


@dataclass(frozen=True)
class SaysMore:
    """A dataclass whose `get_params` says something else than its fields."""

    size: int = 5

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"size": self.size, "other": 1}

    def __call__(self, run: Run[Any, Any]) -> Path:
        return best_of_some(run)


class MadeOtherwise(Plain):
    """A solver whose class takes an argument, and does not keep it where anyone looks."""

    def __new__(cls, step: float) -> MadeOtherwise:
        return super().__new__(cls)


# ------------------------------------------------------------------------------------- what fails


def no_plan(run: Run[Any, Any]) -> Path:
    P = run.space.sample(5, run.coins)
    run.report(P[run.select(P)])
    return run.path()


def too_many(run: Run[Any, Any]) -> Path:
    run.plan("selection", 2)
    for _ in range(3):
        P = run.space.sample(5, run.coins)
        run.report(P[run.select(P)])
    return run.path()


def outside(run: Run[Any, Any]) -> Path:
    run.plan("selection")
    P = run.space.sample(5, run.coins) + 100.0
    run.report(P[run.select(P)])
    return run.path()


def wrong_shape(run: Run[Any, Any]) -> Path:
    run.plan("selection")
    P = run.space.sample(5, run.coins)[:, :, None]
    run.report(P[run.select(P)])
    return run.path()


def too_few(run: Run[Any, Any]) -> Path:
    run.plan("selection", 9)
    run.select(run.space.sample(5, run.coins), 9)
    return run.path()


def no_path(run: Run[Any, Any]) -> Any:
    best_of_some(run)
    return np.zeros(1)


def no_report(run: Run[Any, Any]) -> Path:
    run.plan("selection")
    run.select(run.space.sample(5, run.coins))
    return run.path()


def no_row(run: Run[Any, Any]) -> Path:
    run.plan("selection")
    P = run.space.sample(5, run.coins)
    run.report(P[run.select(P)][0])
    return run.path()


def not_finite(run: Run[Any, Any]) -> Path:
    path = best_of_some(run)
    return Path((path.generations[0] * np.nan,))


def broken(run: Run[Any, Any]) -> Path:
    run.plan("selection", 2)
    run.select(run.space.sample(5, run.coins))
    raise KeyError(f"the scores are {run.objective.scores(run.space.sample(2, run.coins))}")


def of_two_shapes(run: Run[Any, Any]) -> Path:
    path = best_of_some(run)
    return Path((path.generations[0][0],))


def far_out(run: Run[Any, Any]) -> Path:
    path = best_of_some(run)
    return Path((path.generations[0] + 1e9,))


SELECTS = r"run\.select takes candidates of the space as rows"
FAILING = {
    no_plan: r"must be planned before it is drawn, .*; call run\.plan\('selection', count\) first",
    too_many: r"no more may be drawn than was planned",
    outside: SELECTS,
    wrong_shape: SELECTS,
    too_few: SELECTS,
    no_path: r"it returned a value that must be a Path; return run\.path\(\)",
    no_report: r"a path without candidates, which must have one; call run\.report",
    no_row: r"run\.report takes survivors as rows, at least one, of the shape of a candidate",
    of_two_shapes: r"its answer must have the shape of a candidate; report survivors as rows",
    not_finite: r"its answer must be a candidate of the space, or a mean of candidates",
    far_out: r"its answer must be a candidate of the space, or a mean of candidates",
    broken: r"failed \(KeyError, own_solvers\.py line \d+\) after",
}
