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

Floats: TypeAlias = NDArray[np.float64]


def demo() -> int:
    """Score a population of models on generated records: show exactness, then speed."""
    rng = np.random.default_rng(0)
    n, m = 48_842, 200
    records, labels, schema = _census(n, rng)
    objective = privfit.LinearObjective(records, labels, "logistic", schema)
    P = schema.candidates(m, rng)

    print(f"privfit {privfit.__version__}: exact scores on {threads.resolve()} thread(s), "
          f"{simd.active()} kernels")  # fmt: skip
    print(
        f"{n:,} generated census-like records, {schema.width} encoded columns, {m} random models\n"
    )

    half = n // 2
    parts = [
        privfit.LinearObjective(
            {k: v[s] for k, v in records.items()}, labels[s], "logistic", schema
        )
        for s in (slice(0, half), slice(half, n))
    ]
    scores = objective.scores(P)
    added = parts[0].scores(P) + parts[1].scores(P)
    threaded = privfit.LinearObjective(records, labels, "logistic", schema, n_threads=1).scores(P)
    print(f"scores(A) + scores(B) == scores(A + B), bit for bit: {np.array_equal(added, scores)}")
    print(
        f"one thread and all threads agree, bit for bit:       {np.array_equal(threaded, scores)}"
    )
    print(f"range of the scores when one record is replaced:      "
          f"{objective.range(P, 'replace') * objective.unit:.3f} in loss")  # fmt: skip

    ledger = privfit.Ledger(epsilon=1.0)
    grant = ledger.reserve(1.0, name="best of the population")
    chosen = grant.release(privfit.Exponential(1.0, objective.range(P, "replace")), scores)
    print(f"model {chosen} chosen by the exponential mechanism, rank "
          f"{int((scores > scores[chosen]).sum()) + 1} of {m} (generated records: the rank may be "
          "shown)")  # fmt: skip
    print(f"spent: {ledger.spent}")

    dense = schema.encode(records).toarray() / 2.0**schema.grid.a
    sign = np.where(labels > 0, 1.0, -1.0)[:, None]

    def numpy_scores() -> Floats:
        return -np.logaddexp(0, -sign * (dense @ P[:, :-1].T + P[:, -1])).sum(axis=0)

    ours, theirs = _race(lambda: objective.scores(P), numpy_scores)
    print(f"\nprivfit {ours * 1e3:8.1f} ms    numpy {theirs * 1e3:8.1f} ms    "
          f"{theirs / ours:.0f} times faster")  # fmt: skip
    worst = np.abs(scores * objective.unit - numpy_scores()).max()
    print(f"largest difference to numpy over {n:,} records: {worst:.3f} in loss")
    return 0


def _census(
    n: int, rng: np.random.Generator
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64], privfit.Schema]:
    """Generated records with the shape of a census table, labels, and their declared schema."""
    sizes = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relation": 6,
             "race": 5, "sex": 2, "country": 38}  # fmt: skip
    ranges = {"age": (17, 90), "years": (1, 16), "gain": (0, 99_999), "loss": (0, 4_356),
              "hours": (1, 99), "weight": (10_000, 1_500_000)}  # fmt: skip
    records = {name: rng.integers(0, size, n) for name, size in sizes.items()}
    records |= {name: rng.integers(low, high + 1, n) for name, (low, high) in ranges.items()}
    schema = privfit.Schema(
        {name: privfit.Categorical(range(size)) for name, size in sizes.items()}
        | {name: privfit.Numeric(low, high) for name, (low, high) in ranges.items()}
    )
    labels = (records["years"] + rng.normal(0, 4, n) > 10).astype(np.int64)
    return records, labels, schema


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
    commands.add_parser("demo", help="score generated records: exactness and speed")
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
