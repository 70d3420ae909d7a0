"""``privfit demo``: private and non-private models of generated records, side by side."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import privfit
from privfit._kernels import cpu, threads
from privfit.base.cautions import public_records
from privfit.base.errors import InputError
from privfit.base.typing import Integers
from privfit.commands.console import Console, end_of
from privfit.commands.pictures import claim_picture
from privfit.domains import Categorical, Numeric, Schema
from privfit.privacy.ledger import Ledger
from privfit.report import plotting

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

PICTURE = "privfit-demo.png"
HELP = "compare private and non-private models on generated records"
DESCRIPTION = (
    "Fit private models and a non-private one to generated census-like records, compare them, and "
    f"draw {PICTURE} if matplotlib is installed."
)

Columns: TypeAlias = dict[str, Integers]

N = 48_842
EPSILONS = (1.0, 0.1)
CURVE = (0.1, 0.3, 1.0)
SPLITS = 3


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options: there are none."""


def run(options: argparse.Namespace, console: Console) -> None:
    """Fit, compare, draw."""
    rng = np.random.default_rng(0)
    census = _census(N, rng)
    schema = census.schema
    console.say(f"privfit {privfit.__version__}: {cpu.active()} kernels, "
                f"{threads.resolve()} thread(s)")  # fmt: skip
    console.say(f"{N:,} generated census-like records, {len(schema.columns)} columns coded as "
                f"{schema.width}; a fifth is held out for testing\n")  # fmt: skip
    ledger = Ledger(epsilon=sum(EPSILONS), delta=1e-6 * len(EPSILONS))
    accuracies = _compare(census, ledger, console)
    console.say(f"\n{ledger}")
    ours, theirs = _timed(census, schema.candidates(200, rng))
    console.say(f"200 models scored on all records: {ours * 1e3:.1f} ms, exactly; numpy "
                f"{theirs * 1e3:.0f} ms, {theirs / ours:.0f} times slower")  # fmt: skip
    console.result({"accuracies": accuracies, "picture": _drawn(census, console)})


@dataclass(frozen=True, eq=False, repr=False)
class _Census:
    """Generated records, their labels and the schema that declares them."""

    people: Columns
    rich: Integers
    schema: Schema

    def part(self, index: Integers) -> tuple[Columns, Integers]:
        """Some of the records, with their labels."""
        return {name: values[index] for name, values in self.people.items()}, self.rich[index]

    def coded(self) -> Any:
        """The records as a model sees them."""
        return self.schema.encode(self.people) / 2.0**self.schema.grid.a


def _compare(census: _Census, ledger: Ledger, console: Console) -> dict[str, float]:
    """Accuracies on held-out records, printed one by one: non-private, private, constant."""
    from sklearn.linear_model import LogisticRegression

    accuracies: dict[str, float] = {}

    def tell(name: str, accuracy: float, how: str) -> None:
        accuracies[name] = float(accuracy)
        console.say(f"accuracy {accuracy:.4f}  {how}")

    train, test = np.split(np.random.default_rng(1).permutation(N), [4 * N // 5])
    coded, rich = census.coded(), census.rich
    exposed = LogisticRegression(max_iter=300).fit(coded[train], rich[train])
    score = exposed.score(coded[test], rich[test])
    tell("not private", score, "without privacy, by scikit-learn")
    for epsilon in EPSILONS:
        model = privfit.LogisticRegression(
            epsilon, 1e-6, domain=census.schema, classes=[0, 1], ledger=ledger
        )
        start = time.perf_counter()
        model.fit(*census.part(train))
        seconds = time.perf_counter() - start
        draws = sum(event.count for event in model.release_.events)
        how = f"at epsilon {epsilon}, delta 1e-6: {draws} private draws, {seconds:.2f} s"
        with public_records():  # made up, as all of these are
            tell(f"epsilon {epsilon:g}", model.score(*census.part(test)), how)
    share = rich[test].mean()
    tell("larger class", max(share, 1 - share), "by always predicting the larger class")
    return accuracies


def _timed(census: _Census, P: NDArray[np.float64]) -> list[float]:
    """Seconds that the kernels and numpy take to score candidates."""
    objective = privfit.LinearObjective(census.people, census.rich, "logistic", census.schema)
    dense, sign = census.coded().toarray(), np.where(census.rich > 0, 1.0, -1.0)[:, None]
    return _race(
        lambda: objective.scores(P),
        lambda: np.logaddexp(0, -sign * (dense @ P[:, :-1].T + P[:, -1])).sum(axis=0),
    )


def _drawn(census: _Census, console: Console) -> str | None:
    """Draw accuracy against epsilon in the working folder, if possible; the path."""
    from privfit.report.sweeps import sweep

    try:
        with claim_picture(PICTURE) as plot:
            model = privfit.LogisticRegression(delta=1e-6, domain=census.schema, classes=[0, 1])
            found = sweep(model, census.people, census.rich, CURVE, public=True, seeds=SPLITS)
            plot(lambda ax: plotting.draw_sweep(found, ax=ax))
    except (InputError, OSError) as error:
        console.note(f"no plot: {end_of(error)[1]}")
        return None
    path = os.path.abspath(PICTURE)
    console.say(f"plot of accuracy against epsilon: {path}")
    return path


def _census(n: int, rng: np.random.Generator) -> _Census:
    """Records with the shape of a census table."""
    levels = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relation": 6,
              "race": 5, "sex": 2, "country": 38}  # fmt: skip
    ranges = {"age": (17, 90), "years": (1, 16), "hours": (1, 99)}
    people = {name: np.minimum(rng.geometric(2 / size, n) - 1, size - 1)
              for name, size in levels.items()}  # fmt: skip
    people |= {name: rng.integers(low, high + 1, n) for name, (low, high) in ranges.items()}
    people["gain"] = np.where(rng.random(n) < 0.1, rng.geometric(1e-4, n), 0)
    schema = Schema(
        {name: Categorical(range(size)) for name, size in levels.items()}
        | {name: Numeric(low, high) for name, (low, high) in ranges.items()}
        | {"gain": Numeric(0, 100_000, bins=[1, 1_000, 2_000, 5_000, 10_000, 20_000])}
    )
    z = 0.6 * (people["years"] - 13) + 0.04 * (people["age"] - 40) + 3.0 * (people["gain"] > 5_000)
    z = z + 2.0 * (people["marital"] == 0) + 0.03 * (people["hours"] - 50)
    for name in ("occupation", "relation", "workclass"):
        z = z + rng.normal(0, 1, levels[name])[people[name]]
    return _Census(people, (z + rng.logistic(0, 1, n) > 1).astype(np.int64), schema)


def _race(*runners: Callable[[], object], rounds: int = 3) -> list[float]:
    """The best time of each runner over interleaved rounds."""
    best = [float("inf")] * len(runners)
    for _ in range(rounds):
        for i, runner in enumerate(runners):
            start = time.perf_counter()
            runner()
            best[i] = min(best[i], time.perf_counter() - start)
    return best
