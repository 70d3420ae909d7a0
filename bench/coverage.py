"""How often 90 % intervals cover the weights that the same solver reaches without noise.

Each fit has a table of its own, with weights, correlations and a share of ones of its own. Its twin
is the same solver on the same table, with the second moments that the fit released and no noise on
what follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from bench import command, measure
from bench.pages import refresh, table
from bench.results import Results
from privfit import (
    Box,
    Categorical,
    Gradient,
    Ledger,
    LinearObjective,
    Numeric,
    OutputPerturbation,
    PrivateSVM,
    Reals,
    Schema,
)
from privfit.linear.descent import BOUND
from privfit.linear.summary import half_width
from privfit.privacy.neighbours import REPLACE
from privfit.runs import Run

PAGE = measure.ROOT / "docs" / "benchmarks" / "coverage.md"
KEY = ("solver", "table", "epsilon")
FIRST = 10_000  # seed: rules were chosen by other tables, with seeds below
LEVEL, FITS, DELTA = 0.9, 84, 1e-6  # a solver has 12 cells to choose rules by: 1,008 fits


class WithoutNoise(Run[Any, Any]):
    """A run whose first draws, as many as `noisy`, have noise, and whose others have none."""

    noisy = 0

    def release(self, mechanism: Any, value: Any) -> Any:
        drawn = super().release(mechanism, value)
        self.noisy -= 1
        return drawn if self.noisy >= 0 else np.asarray(value)


# ------------------------------------------------------------------------------------------ tables


def numbers(n: int, d: int, coins: np.random.Generator) -> tuple[Any, Any, Any]:
    """Correlated numbers that fill a part of a box, and labels with linear log odds."""
    mixed = coins.normal(size=(n, d)) @ (np.eye(d) + 0.4 * coins.normal(size=(d, d)) / np.sqrt(d))
    X = np.clip(0.35 * mixed + coins.uniform(-0.2, 0.2, d), -1, 1)
    return X, _labels(X, coins), Box(-1, 1, d)


def people(n: int, d: int, coins: np.random.Generator) -> tuple[Any, Any, Any]:
    """Columns of a schema in turns: a number, a category with rare values, a cut number."""
    columns: dict[str, Any] = {}
    kinds: dict[str, Any] = {}
    parts = []
    for j in range(d):
        name = f"c{j}"
        if j % 3 == 0:
            columns[name], kinds[name] = coins.beta(2, 5, n) * 80 + 10, Numeric(0, 100)
            parts.append((columns[name] / 100)[:, None])
            continue
        levels = 4 if j % 3 == 1 else 5
        shares = coins.dirichlet(np.full(levels, 1.5))
        code = coins.choice(levels, n, p=shares)
        parts.append(np.eye(levels)[code])
        if j % 3 == 1:
            columns[name], kinds[name] = code, Categorical(range(levels))
        else:
            cuts = list(range(10, 10 * levels, 10))
            columns[name] = 10 * code + coins.uniform(0, 10, n)
            kinds[name] = Numeric(0, 10 * levels, bins=cuts)
    return columns, _labels(np.hstack(parts), coins), Schema(kinds)


def skewed(n: int, d: int, coins: np.random.Generator) -> tuple[Any, Any, Any]:
    """Numbers that are often 0 and have long tails, and rare ones; no rule was chosen by it."""
    amounts = coins.exponential(coins.uniform(0.05, 0.2, d), (n, d))
    rare = coins.random((n, d)) < coins.uniform(0.05, 0.5, d)
    X = np.where(np.arange(d) % 2, np.minimum(amounts * rare, 1), rare * 1.0)
    return X, _labels(X, coins), Box(0, 1, d)


def _labels(X: Any, coins: np.random.Generator) -> Any:
    """Labels whose log odds have a standard deviation of 1 to 3, and a share of ones of its own."""
    z = X @ coins.normal(size=X.shape[1])
    z = (z - z.mean()) / z.std() * coins.uniform(1, 3) + coins.uniform(-1.5, 0.5)
    return (coins.random(len(X)) < expit(z)).astype(int)


# ------------------------------------------------------------------------------------------- cells

SOLVERS: dict[str, tuple[Any, str, int, float]] = {  # settings, loss, draws before, delta
    "gradient": (Gradient(), "logistic", 1, DELTA),
    "gradient, hinge": (Gradient(), "hinge", 1, DELTA),
    "gradient, momentum": (Gradient(momentum=0.5), "logistic", 1, DELTA),
    "gradient, last step": (Gradient(average=0.0), "logistic", 1, DELTA),
    "output": (OutputPerturbation(), "logistic", 0, DELTA),
    "output, pure": (OutputPerturbation(), "logistic", 0, 0.0),
    "privatesvm": (PrivateSVM(), "hinge", 0, 0.0),
}
TABLES: dict[str, tuple[Callable[..., Any], int, int]] = {
    "numbers 2,000 x 5": (numbers, 2000, 5),
    "numbers 10,000 x 20": (numbers, 10_000, 20),
    "people 5,000 x 6": (people, 5000, 6),
    "people 10,000 x 12": (people, 10_000, 12),
    "skewed 5,000 x 8": (skewed, 5000, 8),
}
EPSILONS = (0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Cell:
    """A solver, a kind of table and a budget."""

    solver: str
    table: str
    epsilon: float

    @property
    def key(self) -> str:
        return f"{self.solver} / {self.table} / {self.epsilon:g}"

    def fit(self, seed: int) -> tuple[Any, Any]:
        """How many deviations away from its twin each weight is, and the margin of 100 records."""
        settings, loss, before, delta = SOLVERS[self.solver]
        make, n, d = TABLES[self.table]
        coins = np.random.default_rng([seed, n, d, int(1000 * self.epsilon)])
        X, y, domain = make(n, d, coins)
        if getattr(settings, "centres_columns", False):
            domain = domain.centred()
        objective = LinearObjective(X, y, loss, domain, n_threads=1)
        high = np.full(objective.n_weights, BOUND)
        noise, answers = coins.integers(1 << 62), []
        for kind in (Run, WithoutNoise):
            grant = Ledger(self.epsilon, delta).reserve(self.epsilon, delta)
            run = kind(
                objective, Reals(-high, high, len(high)), grant, int(noise), neighbours=REPLACE
            )
            if isinstance(run, WithoutNoise):
                run.noisy = before
            answers.append(settings(run))
        path, twin = answers
        gap, rows = path.answer - twin.answer, domain.rounded(X)[:100]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        return gap / path.noise.errors, rows @ gap / path.noise.along(rows)


def all_cells() -> Iterator[Cell]:
    for solver in SOLVERS:
        for name in TABLES:
            yield from (Cell(solver, name, epsilon) for epsilon in EPSILONS)


def measure_cell(cell: Cell, fits: int) -> dict[str, Any]:
    """The share of intervals that cover: of weights, of each fit's margins, of the worst weight."""
    found = [cell.fit(seed) for seed in range(FIRST, FIRST + fits)]
    half = half_width(LEVEL)
    weights, margins = (np.array([one[part] for one in found]) for part in (0, 1))
    covered = np.abs(weights) <= half
    return {
        "solver": cell.solver, "table": cell.table, "epsilon": cell.epsilon, "fits": fits,
        "weights": float(covered.mean()), "worst": float(covered.mean(axis=0).min()),
        "margins": float((np.abs(margins) <= half).mean()),
        "ratio": float(np.sqrt(np.square(weights).mean())),
    }  # fmt: skip


# -------------------------------------------------------------------------------------- the command


def tables(found: Results) -> Iterator[str]:
    """What docs/benchmarks/coverage.md shows: all weights, the worst one and margins, by budget."""
    rows = []
    for solver in SOLVERS:
        for name in TABLES:
            cells = [found.get(solver, name, epsilon) for epsilon in EPSILONS]
            if all(cells):
                parts = ("weights", "worst", "margins")
                shown = [" / ".join(f"{float(one[part]):.2f}" for part in parts)
                         for one in cells if one]  # fmt: skip
                rows.append([f"`{solver}`", name, *shown])
    yield from table(("solver", "table", *(f"epsilon {one:g}" for one in EPSILONS)), rows)


def run(options: argparse.Namespace) -> None:
    """Measure the chosen cells; with --write, refresh docs/benchmarks/coverage.md."""
    chosen = command.chosen(options, all_cells(), lambda cell: cell.key)
    if not chosen:
        return
    values = ("fits", "weights", "worst", "margins", "ratio")
    found = Results(options.out / "coverage.csv", KEY, values)
    fits = options.seeds or (20 if options.quick else FITS)
    for cell in command.in_time(options, chosen[:1] if options.quick else chosen):
        row = found.add(measure_cell(cell, fits))
        print(f"{cell.key}: {row['weights']}, margins {row['margins']}, worst weight "
              f"{row['worst']}, ratio {row['ratio']}", flush=True)  # fmt: skip
    if options.write:
        refresh(PAGE, "\n".join(tables(found)), "table")
