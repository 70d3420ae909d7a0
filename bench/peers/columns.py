"""Peers on whole tables: DP-EBM, diffprivlib's logistic regression and noisy Adam.

Each has a few settings. The page shows the best of them in each cell, chosen by the scores on the
test parts: that is in the peers' favour. All of them know the declared ranges; noisy Adam also runs
on cuts that are bought for a tenth of its budget. Sums and noise are floats: simulations, not
releases.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from bench.accuracy.columns import DECLARED, KINDS, kinds, measures, split
from bench.accuracy.tasks import Cell
from bench.peers.contestants import Worker, coded_arrays
from bench.peers.noisy_descent import coded
from privfit import Schema, learn_schema
from privfit.privacy.accounting import gaussian_calibrate, gaussian_total

BOUGHT = 0.1  # of mu^2 for cuts, as a fit of ours buys its blanks
INTERVAL = 1e-4  # of discrete privacy losses

Answer = tuple[dict[str, float], float]


# ---------------------------------------------------------------------------------- other libraries


@dataclass(frozen=True)
class Boosting:
    """interpret's DP-EBM, which accounts for a record added or removed."""

    settings: tuple[tuple[str, float], ...]
    delta = None  # spends that of the cell

    def __call__(self, worker: Worker, cell: Cell, seed: int) -> Answer:
        train, test = split(cell.data, seed)
        columns, named = train.schema.columns, kinds(train)
        ranges = [(i, (columns[name].low, columns[name].high)) for i, name in enumerate(named)
                  if columns[name].holds_numbers]  # fmt: skip
        found = worker.ask(
            ("boosting", cell.data, seed), lambda: _plain(train, test), model="boosting",
            epsilon=cell.epsilon, delta=cell.delta, seed=seed, ranges=ranges,
            kinds=["continuous" if columns[name].holds_numbers else "nominal" for name in named],
            settings=dict(self.settings),
        )  # fmt: skip
        return measures(test.labels, found["probabilities"]), found["seconds"]


def _plain(train: Any, test: Any) -> dict[str, Any]:
    """Numbers within their ranges, categories as codes."""

    def numbers(name: str, column: Any) -> tuple[Any, Any]:
        if column.holds_numbers:
            both = (np.clip(part.table[name], column.low, column.high) for part in (train, test))
        else:
            values = np.unique(np.concatenate([train.table[name], test.table[name]]))
            both = (np.searchsorted(values, part.table[name]) for part in (train, test))
        first, second = both
        return first, second

    parts = zip(*(numbers(*one) for one in train.schema.columns.items()), strict=True)
    X, X_test = (np.column_stack(part).astype(np.float64) for part in parts)
    return {"X": X, "y": train.labels, "X_test": X_test, "y_test": test.labels}


@dataclass(frozen=True)
class Diffprivlib:
    """Its logistic regression on our coding; it spends no delta."""

    C: float
    delta = 0.0

    def __call__(self, worker: Worker, cell: Cell, seed: int) -> Answer:
        train, test = split(cell.data, seed)
        found = worker.ask(
            ("coded", cell.data, seed), lambda: coded_arrays(train, test), model="logistic",
            epsilon=cell.epsilon, seed=seed, C=self.C, norm=math.sqrt(len(train.table)),
        )  # fmt: skip
        return measures(test.labels, found["probabilities"]), found["seconds"]


# --------------------------------------------------------------------------------------- noisy Adam


@dataclass(frozen=True)
class Adam:
    """Adam on clipped noisy gradients of a `share` of the records, by Poisson sampling."""

    share: float
    steps: int
    rate: float
    clip: float
    bought: bool = False
    delta = None

    def __call__(self, worker: Worker | None, cell: Cell, seed: int) -> Answer:
        train, test = split(cell.data, seed)
        epsilon = cell.epsilon
        if self.bought:
            train, test, epsilon = _bought(cell, seed)
        X, X_test = coded(train), coded(test)
        start = time.perf_counter()
        w = self.fit(X, train.labels, self.noise(epsilon, cell.delta), seed)
        seconds = time.perf_counter() - start
        return measures(test.labels, expit(X_test @ w[:-1] + w[-1])), seconds

    def noise(self, epsilon: float, delta: float) -> float:
        """The standard deviation of a step's noise, in units of the clip, for add_remove."""
        if self.share == 1:
            return math.sqrt(self.steps) / gaussian_calibrate(epsilon, delta)
        return _sampled_noise(epsilon, delta, self.share, self.steps)

    def fit(self, X: Any, y: Any, noise: float, seed: int) -> Any:
        """(d + 1,) weights, the mean of the last half of the steps; the intercept is the last."""
        n, d = X.shape
        X = np.hstack([X, np.ones((n, 1), dtype=np.float32)])
        lengths = np.linalg.norm(X, axis=1)
        rng = np.random.default_rng(seed)
        w, mean, square, total = (np.zeros(d + 1) for _ in range(4))
        for t in range(1, self.steps + 1):
            rows = slice(None) if self.share == 1 else np.flatnonzero(rng.random(n) < self.share)
            residual = y[rows] - expit(X[rows] @ w.astype(np.float32))
            bound = self.clip / lengths[rows]
            noisy = X[rows].T @ np.clip(residual, -bound, bound).astype(np.float32)
            g = (noisy + rng.normal(0, noise * self.clip, d + 1)) / (n * self.share)
            mean = 0.9 * mean + 0.1 * g
            square = 0.999 * square + 0.001 * g * g
            size = np.sqrt(square / (1 - 0.999**t)) + 1e-8
            w = w + self.rate * mean / (1 - 0.9**t) / size
            total += w * (t > self.steps // 2)
        return total / (self.steps - self.steps // 2)


@lru_cache(maxsize=1)
def _bought(cell: Cell, seed: int) -> Any:
    """Both parts under a schema that was bought, and the epsilon of the rest."""
    train, test = split(cell.data, seed)
    mu = gaussian_calibrate(cell.epsilon, cell.delta)
    price, rest = (gaussian_total(mu * math.sqrt(part), cell.delta)
                   for part in (BOUGHT, 1 - BOUGHT))  # fmt: skip
    schema = learn_schema(
        train.table, price, cell.delta, columns=Schema.blank(kinds(train)),
        adjacency=cell.adjacency, n_public=len(train), n_threads=1, random_state=seed,
    )  # fmt: skip
    return replace(train, schema=schema), replace(test, schema=schema), rest


@cache
def _sampled_noise(epsilon: float, delta: float, share: float, steps: int) -> float:
    """By the privacy loss distributions of dp_accounting."""
    import dp_accounting
    from dp_accounting import pld

    def event(noise: float) -> Any:
        sampled = dp_accounting.PoissonSampledDpEvent(share, dp_accounting.GaussianDpEvent(noise))
        return dp_accounting.SelfComposedDpEvent(sampled, steps)

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    return float(dp_accounting.calibrate_dp_mechanism(
        lambda: pld.PLDAccountant(relation, INTERVAL), event, epsilon, delta,
        dp_accounting.ExplicitBracketInterval(0.3, 200.0), tol=1e-3,
    ))  # fmt: skip


# -------------------------------------------------------------------------------------------- names


def _named() -> Iterator[tuple[str, Any]]:
    for bins, rounds, rate in ((16, 100, 0.2), (32, 30, 0.1), (32, 30, 0.3), (32, 100, 0.1),
                               (32, 100, 0.3), (64, 100, 0.4), (64, 100, 0.8)):  # fmt: skip
        settings = (("max_bins", bins), ("max_rounds", rounds), ("learning_rate", rate))
        yield f"DP-EBM, {bins} bins, {rounds} rounds, rate {rate:g}", Boosting(settings)
    for C in (0.001, 0.01, 1.0):
        yield f"diffprivlib, C = {C:g}", Diffprivlib(C)
    for bought in (False, True):
        told = KINDS if bought else DECLARED
        for share, steps, rate, clip in (
            (1.0, 30, 0.1, 1.0), (1.0, 100, 0.1, 1.0), (1.0, 100, 0.1, 2.0), (1.0, 100, 0.1, 4.0),
            (0.05, 200, 0.05, 1.0), (0.05, 200, 0.05, 2.0), (0.05, 200, 0.05, 4.0),
        ):  # fmt: skip
            one = Adam(share, steps, rate, clip, bought)
            batch = "full batch" if share == 1 else f"batches of {share:.0%}"
            yield f"noisy Adam, {told}, {batch}, {steps} steps, rate {rate:g}, clip {clip:g}", one


PEERS: dict[str, Any] = dict(_named())
