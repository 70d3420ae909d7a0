"""The command ``privfit``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import privfit
from privfit._kernels import simd, threads
from privfit.accounting import table

Columns: TypeAlias = dict[str, NDArray[np.int64]]


def demo() -> int:
    """Fit a private model to generated records, and show it beside the one without privacy."""
    from sklearn.linear_model import LogisticRegression  # scikit-learn loads slowly

    rng = np.random.default_rng(0)
    n = 48_842
    people, rich, schema = _census(n, rng)
    train, test = np.split(rng.permutation(n), [4 * n // 5])
    print(f"privfit {privfit.__version__}: {simd.active()} kernels, {threads.resolve()} thread(s)")
    print(f"{n:,} generated census-like records, {len(schema.columns)} columns coded as "
          f"{schema.width}; a fifth is kept for testing\n")  # fmt: skip

    table = schema.encode(people) / 2.0**schema.grid.a
    exposed = LogisticRegression(max_iter=300).fit(table[train], rich[train])
    _line(exposed.score(table[test], rich[test]), "without privacy, by scikit-learn")
    ledger = privfit.Ledger(epsilon=1.1, delta=2e-6)
    for epsilon in (1.0, 0.1):
        model = privfit.LogisticRegression(
            epsilon, 1e-6, domain=schema, classes=[0, 1], ledger=ledger
        )
        start = time.perf_counter()
        model.fit(_rows(people, train), rich[train])
        seconds, steps = time.perf_counter() - start, model.release_.events[0].count
        accuracy = model.score(_rows(people, test), rich[test])
        _line(accuracy, f"at epsilon {epsilon}, delta 1e-6: {steps} private steps, {seconds:.2f} s")
    _line(max(rich[test].mean(), 1 - rich[test].mean()), "by naming the larger class")
    print(f"\n{ledger}")

    objective = privfit.LinearObjective(people, rich, "logistic", schema)
    P = schema.candidates(200, rng)
    dense, sign = table.toarray(), np.where(rich > 0, 1.0, -1.0)[:, None]
    ours, theirs = _race(
        lambda: objective.scores(P),
        lambda: np.logaddexp(0, -sign * (dense @ P[:, :-1].T + P[:, -1])).sum(axis=0),
    )
    print(f"200 models scored on all records: {ours * 1e3:.1f} ms, exactly; numpy "
          f"{theirs * 1e3:.0f} ms, {theirs / ours:.0f} times slower")  # fmt: skip
    return 0


def _line(accuracy: float, how: str) -> None:
    print(f"accuracy {accuracy:.4f}  {how}")


def _rows(people: Columns, index: NDArray[np.int64]) -> Columns:
    return {name: values[index] for name, values in people.items()}


def _census(n: int, rng: np.random.Generator) -> tuple[Columns, NDArray[np.int64], privfit.Schema]:
    """Generated records with the shape of a census table, labels, and their declared schema."""
    levels = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relation": 6,
              "race": 5, "sex": 2, "country": 38}  # fmt: skip
    ranges = {"age": (17, 90), "years": (1, 16), "hours": (1, 99)}
    people = {name: np.minimum(rng.geometric(2 / size, n) - 1, size - 1)
              for name, size in levels.items()}  # fmt: skip
    people |= {name: rng.integers(low, high + 1, n) for name, (low, high) in ranges.items()}
    people["gain"] = np.where(rng.random(n) < 0.1, rng.geometric(1e-4, n), 0)
    schema = privfit.Schema(
        {name: privfit.Categorical(range(size)) for name, size in levels.items()}
        | {name: privfit.Numeric(low, high) for name, (low, high) in ranges.items()}
        | {"gain": privfit.Numeric(0, 100_000, bins=[1, 1_000, 2_000, 5_000, 10_000, 20_000])}
    )
    z = 0.6 * (people["years"] - 13) + 0.04 * (people["age"] - 40) + 3.0 * (people["gain"] > 5_000)
    z = z + 2.0 * (people["marital"] == 0) + 0.03 * (people["hours"] - 50)
    for name in ("occupation", "relation", "workclass"):
        z = z + rng.normal(0, 1, levels[name])[people[name]]
    return people, (z + rng.logistic(0, 1, n) > 1).astype(np.int64), schema


def _race(*runners: Callable[[], object], rounds: int = 7) -> list[float]:
    """The best time of each runner over interleaved rounds."""
    best = [float("inf")] * len(runners)
    for _ in range(rounds):
        for i, runner in enumerate(runners):
            start = time.perf_counter()
            runner()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    parser = argparse.ArgumentParser(
        prog="privfit", description="Fit models to sensitive records under differential privacy."
    )
    parser.add_argument("--version", action="version", version=f"privfit {privfit.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("demo", help="fit a private model to generated records")
    budget = commands.add_parser("budget", help="what a budget gives each of n selections")
    budget.add_argument("--epsilon", type=float, default=1.0)
    budget.add_argument("--delta", type=float, default=1e-6)
    budget.add_argument("--selections", type=int, nargs="+", default=[10, 101, 1001], metavar="N")
    chosen = parser.parse_args(arguments)
    if chosen.command == "demo":
        return demo()
    try:
        print(table(chosen.epsilon, chosen.delta, chosen.selections))
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
