"""``privfit demo``: private and non-private models of generated records, side by side."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import privfit
from privfit._kernels import cpu, threads
from privfit.base.cautions import public_records
from privfit.base.errors import InputError
from privfit.commands.console import Console, end_of
from privfit.commands.pictures import claim_picture
from privfit.datasets.dataset import Dataset
from privfit.datasets.made import census_schema, make_census
from privfit.domains import Schema
from privfit.privacy.ledger import Ledger
from privfit.report import plotting

__all__ = ["DESCRIPTION", "EXAMPLE", "HELP", "add", "run"]

PICTURE = "privfit-demo.png"
HELP = "compare private and non-private models on generated records"
EXAMPLE = "privfit demo"
DESCRIPTION = (
    "Fit private models and a non-private one to generated census-like records, compare them, and "
    f"draw {PICTURE} if matplotlib is installed."
)

N = 48_842
EPSILONS = (1.0, 0.1)
CURVE = (0.1, 0.3, 1.0)
SPLITS = 3


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options: there are none."""


def run(options: argparse.Namespace, console: Console) -> None:
    """Fit, compare, draw."""
    census, schema = make_census(N, seed=0), census_schema()
    console.say(f"privfit {privfit.__version__}: {cpu.active()} kernels, "
                f"{threads.resolve()} thread(s)")  # fmt: skip
    console.say(f"{N:,} generated census-like records, {len(schema.columns)} columns coded as "
                f"{schema.width}; a fifth is held out for testing\n")  # fmt: skip
    ledger = Ledger(epsilon=sum(EPSILONS), delta=1e-6 * len(EPSILONS))
    accuracies = _compare(census, schema, ledger, console)
    console.say(f"\n{ledger}")
    ours, theirs = _timed(census, schema)
    console.say(f"200 models scored on all records: {ours * 1e3:.1f} ms, exactly; numpy "
                f"{theirs * 1e3:.0f} ms, {theirs / ours:.0f} times slower")  # fmt: skip
    console.result({"accuracies": accuracies, "picture": _drawn(census, schema, console)})


def _coded(census: Dataset, schema: Schema) -> Any:
    """The records as a model sees them."""
    return schema.encode(census.table) / 2.0**schema.grid.a


def _compare(census: Dataset, schema: Schema, ledger: Ledger, console: Console) -> dict[str, float]:
    """Accuracies on held-out records, printed one by one: non-private, private, constant."""
    from sklearn.linear_model import LogisticRegression

    accuracies: dict[str, float] = {}

    def tell(name: str, accuracy: float, how: str) -> None:
        accuracies[name] = float(accuracy)
        console.say(f"accuracy {accuracy:.4f}  {how}")

    train, test = np.split(np.random.default_rng(1).permutation(N), [4 * N // 5])
    coded, rich = _coded(census, schema), census.labels
    private, fresh = census.take(train), census.take(test)
    exposed = LogisticRegression(max_iter=300).fit(coded[train], rich[train])
    score = exposed.score(coded[test], rich[test])
    tell("not private", score, "without privacy, by scikit-learn")
    for epsilon in EPSILONS:
        model = privfit.LogisticRegression(
            epsilon, 1e-6, domain=schema, classes=[0, 1], ledger=ledger
        )
        start = time.perf_counter()
        model.fit(private.table, private.labels)
        seconds = time.perf_counter() - start
        draws = sum(event.count for event in model.release_.events)
        how = f"at epsilon {epsilon}, delta 1e-6: {draws} private draws, {seconds:.2f} s"
        with public_records():  # made up, as all of these are
            tell(f"epsilon {epsilon:g}", model.score(fresh.table, fresh.labels), how)
    share = rich[test].mean()
    tell("larger class", max(share, 1 - share), "by always predicting the larger class")
    return accuracies


def _timed(census: Dataset, schema: Schema) -> list[float]:
    """Seconds that the kernels and numpy take to score 200 candidates."""
    P = schema.candidates(200, np.random.default_rng(2))
    objective = privfit.LinearObjective(census.table, census.labels, "logistic", schema)
    dense = _coded(census, schema).toarray()
    sign = np.where(census.labels > 0, 1.0, -1.0)[:, None]
    return _race(
        lambda: objective.scores(P),
        lambda: np.logaddexp(0, -sign * (dense @ P[:, :-1].T + P[:, -1])).sum(axis=0),
    )


def _drawn(census: Dataset, schema: Schema, console: Console) -> str | None:
    """Draw accuracy against epsilon in the working folder, if possible; the path."""
    from privfit.report.sweeps import sweep

    try:
        with claim_picture(PICTURE) as plot:
            model = privfit.LogisticRegression(delta=1e-6, domain=schema, classes=[0, 1])
            found = sweep(model, census.table, census.labels, CURVE, public=True, seeds=SPLITS)
            plot(lambda ax: plotting.draw_sweep(found, ax=ax))
    except (InputError, OSError) as error:
        console.note(f"no plot: {end_of(error)[1]}")
        return None
    path = os.path.abspath(PICTURE)
    console.say(f"plot of accuracy against epsilon: {path}")
    return path


def _race(*runners: Callable[[], object], rounds: int = 3) -> list[float]:
    """The best time of each runner over interleaved rounds."""
    best = [float("inf")] * len(runners)
    for _ in range(rounds):
        for i, runner in enumerate(runners):
            start = time.perf_counter()
            runner()
            best[i] = min(best[i], time.perf_counter() - start)
    return best
